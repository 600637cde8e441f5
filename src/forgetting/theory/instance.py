"""Instances on which statements are checked: problem, ordering, k, scheme, start, and further values by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike
from typing import Any, cast

import numpy as np

from forgetting import orderings, schemes
from forgetting.core.arrays import Array, any_array, as_count, as_flag, as_kind, as_path, as_vector, seed_from
from forgetting.core.registry import Registry, from_settings, saved_settings
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import damaged, read_arrays, whole_number, write_arrays
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.orderings import Ordering
from forgetting.orderings.base import as_ordering
from forgetting.schemes import Scheme
from forgetting.schemes.base import as_scheme
from forgetting.tasks import ClassificationTasks, ConvexSets, Problem, RegressionTasks
from forgetting.tasks.capabilities import problem_from
from forgetting.tasks.problem import as_problem

FORMAT = "forgetting/instance/1"


@dataclass(frozen=True, eq=False)
class Instance:
    """One case of a statement.

    Attributes:
        problem: regression tasks, classification tasks or convex sets; None for a lemma on matrices alone.
        ordering: who comes next, as for `fg.run`; None where the statement has no ordering.
        k: the number of steps, or the exponent n of a lemma on Q.
        scheme: as for `fg.run`; None is the problem's natural scheme.
        w0: the start, 0 if left out.
        extras: numbers and arrays that a lemma names: points w and z, matrices A, B, C, gamma, eta, ...
        seed, runs: of what is simulated, where nothing is exact; None is a number of runs that depends on k. They are
            not saved.

    >>> import forgetting as fg, tempfile, pathlib
    >>> case = Instance(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), k=3, extras={"gamma": 0.5})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     case.save(pathlib.Path(folder) / "case.npz")
    ...     again = Instance.load(pathlib.Path(folder) / "case.npz")
    >>> print(again)
    T=2, d=2, rank_avg=1, R=1, k=3, WithReplacement(), gamma=0.5
    """

    problem: Problem | None
    ordering: Ordering | None
    k: int
    scheme: Scheme | None = None
    w0: Array | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    runs: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", as_count(self.k, "k"))
        object.__setattr__(self, "seed", seed_from(self.seed))
        if self.runs is not None:
            object.__setattr__(self, "runs", as_count(self.runs, "runs", least=1))
        if self.ordering is not None:
            names = None if self.problem is None else as_problem(self.problem).names
            object.__setattr__(self, "ordering", as_ordering(self.ordering, names))
        if self.scheme is not None:
            object.__setattr__(self, "scheme", as_scheme(self.scheme))
        if self.problem is not None:
            as_problem(self.problem)
            if self.problem.outputs is not None:
                raise NotSupportedError(
                    f"statements are checked on tasks with one output, and these have {self.problem.outputs}: give "
                    "tasks.output(0) and so on, or learn one class against the others, positive= (--positive)"
                )
        as_kind(self.extras, Mapping, "extras by their names, such as {'gamma': 0.5}")
        if self.w0 is not None:
            object.__setattr__(self, "w0", as_vector(self.w0, self.posed.dim, "w0").copy())
        values = {}
        for name, value in self.extras.items():
            array = any_array(value, f"extras[{name!r}]")
            if array.dtype.kind not in "iuf":
                raise InvalidInputError(f"extras[{name!r}] must be numbers, got dtype {array.dtype}")
            values[name] = array if array.ndim else array.item()
        object.__setattr__(self, "extras", values)

    @property
    def posed(self) -> Problem:
        """The problem, for statements that need one."""
        if self.problem is None:
            raise InvalidInputError("needs a problem")
        return self.problem

    @property
    def tasks(self) -> RegressionTasks:
        """The problem as regression tasks with data, for statements about them."""
        tasks = self.posed.linear
        if tasks is None or tasks.data is None:
            raise InvalidInputError("is about regression tasks")
        return tasks.data

    @property
    def classified(self) -> ClassificationTasks:
        """The problem as classification tasks, for statements about them."""
        if self.posed.kind != "classification":
            raise InvalidInputError("is about classification tasks")
        return cast(ClassificationTasks, self.posed)

    @property
    def start(self) -> Array:
        """w_0, in full."""
        return np.zeros(self.posed.dim) if self.w0 is None else self.w0

    def written(self, *, labels: bool = True) -> str:
        """All numbers of the instance in a sentence, for a reader who computes both sides by hand.

        Args:
            labels: False leaves out the labels of regression tasks, where they play no role.

        >>> import forgetting as fg
        >>> case = Instance(fg.families.repeated(fg.families.orthogonal(2), 2), fg.orderings.Cyclic(), k=3)
        >>> case.written()
        'X = [1, 0], y = 0.707107 (2 times); X = [0, 1], y = 0.707107 (2 times); k = 3, Cyclic()'
        >>> case.written(labels=False)
        'X = [1, 0] (2 times); X = [0, 1] (2 times); k = 3, Cyclic()'
        """
        parts, problem, labels = [], self.posed, as_flag(labels, "labels")
        times = np.asarray(self.extras.get("multiplicity", np.ones(problem.num_tasks)))
        signed = [problem.signed_rows(task) for task in range(problem.num_tasks)]
        index = np.arange(problem.num_tasks) if problem.linear is None else problem.linear.geometry.index
        for kind in range(int(index.max()) + 1):
            mine = np.flatnonzero(index == kind)
            rows = signed[mine[0]]
            if rows is not None:
                text = f"rows y x = {_numbers(rows)}"
            else:
                X, y = self.tasks.task(int(mine[0]))
                text = f"X = {_numbers(X)}" + (f", y = {_numbers(y)}" if labels else "")
            many = int(times[mine].sum())
            parts.append(text if many == 1 else f"{text} ({many} times)")
        start = [] if self.w0 is None else [f"w_0 = {_numbers(self.w0)}"]
        order = [] if self.ordering is None else [f"k = {self.k}", _short(self.ordering)]
        scheme = [] if self.scheme is None else [_short(self.scheme)]
        return "; ".join([*parts, ", ".join([*start, *order, *scheme])]).removesuffix("; ")

    def extra(self, name: str) -> Any:
        """The extra of this name; an error names it if it is missing."""
        if not isinstance(name, str) or name not in self.extras:
            raise InvalidInputError(f"this statement needs extras={{{name!r:.80}: ...}}")
        return self.extras[name]

    @property
    def arrays(self) -> dict[str, Any]:
        """The arrays that `save` writes, by name."""
        arrays: dict[str, Any] = {"format": np.array(FORMAT), "k": np.array(self.k)}
        if self.problem is not None:
            arrays |= {f"problem/{name}": value for name, value in self.problem.file_arrays().items()}
        for role, registry, member in (
            ("ordering", orderings.registry, self.ordering),
            ("scheme", schemes.registry, self.scheme),
        ):
            settings = {} if member is None else saved_settings(registry, member)
            arrays |= {f"{role}/{name}": np.array(value) for name, value in settings.items()}
        if self.w0 is not None:
            arrays["w0"] = self.w0
        return arrays | {f"extras/{name}": np.asarray(value) for name, value in self.extras.items()}

    def save(self, path: str | PathLike[str]) -> None:
        """Write to an .npz file, atomically and without pickle; `load` gives the same numbers back."""
        write_arrays(as_path(path), self.arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Instance:
        """Read what `save` wrote."""
        arrays = read_arrays(path)
        if str(arrays.get("format")) != FORMAT:
            raise ProblemFileError(f"{path}: not a saved instance (its 'format' entry is not {FORMAT!r})")
        with damaged(path, "instance"):
            tasks = _under(arrays, "problem")
            if "kinds" in tasks:  # sets of files from before sets had a format of their own
                tasks.setdefault("format", np.array(ConvexSets.format))
            return cls(
                problem_from(tasks, path) if tasks else None,
                _member(orderings.registry, _under(arrays, "ordering")),
                whole_number(arrays, "k", 0),
                scheme=_member(schemes.registry, _under(arrays, "scheme")),
                w0=arrays.get("w0"),
                extras=_under(arrays, "extras"),
            )

    def __str__(self) -> str:
        parts = []
        linear = None if self.problem is None else self.problem.linear
        if linear is not None and linear is self.problem:
            shape = f"T={linear.num_tasks}, d={linear.dim}"
            parts.append(f"{shape}, rank_avg={linear.rank_avg:.3g}, R={linear.radius:.3g}")
        elif self.problem is not None:
            parts.append(f"{type(self.problem).__name__} T={self.problem.num_tasks}, d={self.problem.dim}")
        parts.append(f"k={self.k}")
        parts += [_short(part) for part in (self.ordering, self.scheme) if part is not None]
        if self.w0 is not None:
            parts.append("w0 given")
        for name, value in self.extras.items():
            parts.append(f"{name}{_digits(value)}")
        return ", ".join(parts)


def _digits(value: Any) -> str:
    if np.ndim(value) > 1 or np.size(value) > 6:
        return f" of shape {np.shape(value)}"
    return f"={value:.4g}" if np.ndim(value) == 0 else f"=({', '.join(f'{number:.4g}' for number in value)})"


def _short(part: Any) -> str:
    """An ordering or a scheme in short, with the fields that fit: SGD(step_size=0.5, objective=loss)."""
    parts = []
    for known in fields(part):
        value = getattr(part, known.name)
        if value is None or (known.default is not MISSING and value == known.default):
            continue
        if isinstance(value, str | int):
            parts.append(f"{known.name}={value}")
        elif isinstance(value, float):
            parts.append(f"{known.name}={value:.4g}")
        else:
            parts.append(f"{known.name}{_digits(value)}")
    return f"{type(part).__name__}({', '.join(parts)})"


def _member(registry: Registry[type], saved: dict[str, Any]) -> Any:
    """The ordering or scheme of these arrays, or None."""
    return from_settings(registry, {name: value.tolist() for name, value in saved.items()}) if saved else None


def _under(arrays: dict[str, Any], folder: str) -> dict[str, Any]:
    return {name[len(folder) + 1 :]: value for name, value in arrays.items() if name.startswith(folder + "/")}


def _numbers(values: Any) -> str:
    """A number, a vector, or the rows of a matrix; the row of a matrix with one row."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if array.size == 1 and array.ndim < 2:
        return f"{array.item():g}"
    rows = [f"[{', '.join(f'{value:g}' for value in row)}]" for row in np.atleast_2d(array)]
    return rows[0] if len(rows) == 1 else f"[{', '.join(rows)}]"


add_codec(dataclass_codec(Instance, "instance"))
