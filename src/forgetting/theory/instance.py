"""What a statement is checked on: a problem, an ordering, k, a scheme, a start, and what else the statement names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from forgetting import orderings, schemes, sets
from forgetting._arrays import Array, any_array, as_count, as_kind, as_seed, as_vector
from forgetting._memory import require_memory
from forgetting._registry import Registry, registered_class
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.orderings import Ordering
from forgetting.schemes import Scheme
from forgetting.sets import ConvexSet
from forgetting.storage.arrays import damaged, entry, read_arrays, whole_number, words, write_arrays
from forgetting.tasks import ClassificationTasks, ConvexSets, Problem, RegressionTasks
from forgetting.tasks.files import classification_arrays, classification_from, regression_arrays, regression_from

__all__ = ["Instance"]

FORMAT = "forgetting/instance/1"


@dataclass(frozen=True, eq=False)
class Instance:
    """One case of a statement.

    Attributes:
        problem: regression tasks, classification tasks or convex sets; None for a lemma on matrices alone.
        ordering: who comes next; None where the statement has no ordering.
        k: the number of steps, or the exponent n of a lemma on Q.
        scheme: None is the problem's natural scheme.
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
        object.__setattr__(self, "seed", as_seed(self.seed))
        if self.runs is not None:
            object.__setattr__(self, "runs", as_count(self.runs, "runs", least=1))
        as_kind(self.ordering, Ordering | None, "an ordering such as fg.orderings.Cyclic()")
        as_kind(self.scheme, Scheme | None, "a scheme such as fg.schemes.Kaczmarz()")
        as_kind(self.problem, Problem | None, "a problem such as RegressionTasks")
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
        if not isinstance(tasks, RegressionTasks):
            raise InvalidInputError("is about regression tasks")
        return tasks

    @property
    def classified(self) -> ClassificationTasks:
        """The problem as classification tasks, for statements about them."""
        if not isinstance(self.problem, ClassificationTasks):
            raise InvalidInputError("is about classification tasks")
        return self.problem

    @property
    def start(self) -> Array:
        """w_0, in full."""
        return np.zeros(self.posed.dim) if self.w0 is None else self.w0

    @property
    def written(self) -> str:
        """All numbers of the instance in a sentence, for a reader who computes both sides by hand.

        >>> import forgetting as fg
        >>> Instance(fg.families.repeated(fg.families.orthogonal(2), 2), fg.orderings.Cyclic(), k=3).written
        'X = [1, 0], y = 0.707107 (2 times); X = [0, 1], y = 0.707107 (2 times); k = 3, Cyclic()'
        """
        parts, problem = [], self.posed
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
                text = f"X = {_numbers(X)}, y = {_numbers(y)}"
            many = int(times[mine].sum())
            parts.append(text if many == 1 else f"{text} ({many} times)")
        start = [] if self.w0 is None else [f"w_0 = {_numbers(self.w0)}"]
        order = [] if self.ordering is None else [f"k = {self.k}", _short(self.ordering)]
        scheme = [] if self.scheme is None else [_short(self.scheme)]
        return "; ".join([*parts, ", ".join([*start, *order, *scheme])]).removesuffix("; ")

    def extra(self, name: str) -> Any:
        """One of the extras; an error names it if it is missing."""
        if name not in self.extras:
            raise InvalidInputError(f"this statement needs extras={{{name!r}: ...}}")
        return self.extras[name]

    @property
    def arrays(self) -> dict[str, Any]:
        """What `save` writes, by name."""
        arrays: dict[str, Any] = {"format": np.array(FORMAT), "k": np.array(self.k)}
        if self.problem is not None:
            arrays |= {f"problem/{name}": value for name, value in _problem_arrays(self.problem).items()}
        for role in ("ordering", "scheme"):
            if getattr(self, role) is not None:
                arrays |= _settings(role, getattr(self, role))
        if self.w0 is not None:
            arrays["w0"] = self.w0
        return arrays | {f"extras/{name}": np.asarray(value) for name, value in self.extras.items()}

    def save(self, path: str | PathLike[str]) -> None:
        """Write to an .npz file, atomically and without pickle; `load` gives the same numbers back."""
        write_arrays(Path(path), self.arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Instance:
        """Read what `save` wrote."""
        arrays = read_arrays(path)
        if str(arrays.get("format")) != FORMAT:
            raise ProblemFileError(f"{path}: no saved instance (its 'format' entry is not {FORMAT!r})")
        with damaged(path, "instance"):
            return cls(
                _problem_from(_under(arrays, "problem"), path),
                _rebuild(orderings.registry, _under(arrays, "ordering")),
                whole_number(arrays, "k", 0),
                scheme=_rebuild(schemes.registry, _under(arrays, "scheme")),
                w0=arrays.get("w0"),
                extras=_under(arrays, "extras"),
            )

    def __str__(self) -> str:
        parts = []
        if isinstance(self.problem, RegressionTasks):
            p = self.problem
            parts.append(f"T={p.num_tasks}, d={p.dim}, rank_avg={p.rank_avg:.3g}, R={p.radius:.3g}")
        elif self.problem is not None:
            parts.append(f"{type(self.problem).__name__} T={self.problem.num_tasks}, d={self.problem.dim}")
        parts.append(f"k={self.k}")
        parts += [_short(one) for one in (self.ordering, self.scheme) if one is not None]
        if self.w0 is not None:
            parts.append("w0 given")
        for name, value in self.extras.items():
            parts.append(f"{name}{_digits(value)}")
        return ", ".join(parts)


def _digits(value: Any) -> str:
    if np.ndim(value) > 1 or np.size(value) > 6:
        return f" of shape {np.shape(value)}"
    return f"={value:.4g}" if np.ndim(value) == 0 else f"=({', '.join(f'{one:.4g}' for one in value)})"


def _short(one: Any) -> str:
    """An ordering or a scheme, with what fits of its fields: SGD(step_size=0.5, objective=loss)."""
    parts = []
    for known in fields(one):
        value = getattr(one, known.name)
        if value is None or (known.default is not MISSING and value == known.default):
            continue
        if isinstance(value, str | int):
            parts.append(f"{known.name}={value}")
        elif isinstance(value, float):
            parts.append(f"{known.name}={value:.4g}")
        else:
            parts.append(f"{known.name}{_digits(value)}")
    return f"{type(one).__name__}({', '.join(parts)})"


def _settings(role: str, one: Any) -> dict[str, Any]:
    """The class and the fields of an ordering or a scheme."""
    registry = orderings.registry if role == "ordering" else schemes.registry
    if registered_class(registry, type(one).__name__) is not type(one):
        raise NotSupportedError(f"{one} is not registered, and cannot be saved; put @fg.{role}s.register on its class")
    values = {f.name: getattr(one, f.name) for f in fields(one)}
    if values.get("p") is not None:
        values["p"] = one.law.p  # normalising once more what was normalised before may move a last bit
    saved = {f"{role}/{name}": np.array(value) for name, value in values.items() if value is not None}
    return {f"{role}/class": np.array(type(one).__name__)} | saved


def _rebuild(registry: Registry[type], saved: dict[str, Any]) -> Any:
    """What `_settings` wrote, by its own constructor, which checks the values."""
    if not saved:
        return None
    name = str(entry(saved, "class", "U", 0))
    kind: Any = registered_class(registry, name)
    if kind is None:
        raise ForgettingError(f"there is no {registry.kind} {name!r:.80}")
    return kind(**{key: value.tolist() for key, value in saved.items() if key != "class"})


def _problem_arrays(problem: Any) -> dict[str, Any]:
    if isinstance(problem, RegressionTasks):
        return regression_arrays(problem)
    if isinstance(problem, ClassificationTasks):
        return classification_arrays(problem)
    if isinstance(problem, ConvexSets):
        return _set_arrays(problem)
    raise NotSupportedError(f"{type(problem).__name__} cannot be saved; use regression or classification tasks or sets")


def _problem_from(arrays: dict[str, Any], path: str | PathLike[str]) -> Any:
    if not arrays:
        return None
    if "kinds" in arrays:
        return _sets_from(arrays)
    return (classification_from if "label_names" in arrays else regression_from)(arrays, path)


def _set_arrays(problem: ConvexSets) -> dict[str, Any]:
    arrays: dict[str, Any] = {
        "kinds": np.array([type(one).__name__ for one in problem.sets]),
        "names": np.array(problem.names),
    }
    for position, one in enumerate(problem.sets):
        if registered_class(sets.registry, type(one).__name__) is not type(one) or not one.parts:
            raise NotSupportedError(f"set {position}: {type(one).__name__} cannot be saved")
        for name in one.parts:
            arrays[f"{position}/{name}"] = np.asarray(getattr(one, name))
    return arrays


def _sets_from(arrays: dict[str, Any]) -> ConvexSets:
    members: list[ConvexSet] = []
    for position, kind in enumerate(entry(arrays, "kinds", "U", 1).tolist()):
        known = registered_class(sets.registry, kind)
        if known is None or not known.parts:
            raise ForgettingError(f"set {position}: there is no set {kind!r:.80}")
        values = [arrays[f"{position}/{name}"] for name in known.parts]
        members.append(known(*[value if value.ndim else value.item() for value in values]))
    require_memory(16.0 * max((one.dim for one in members), default=0), "points of the sets", "use fewer dimensions")
    return ConvexSets(members, names=words(arrays, "names", len(members)))


def _under(arrays: dict[str, Any], folder: str) -> dict[str, Any]:
    return {name[len(folder) + 1 :]: value for name, value in arrays.items() if name.startswith(folder + "/")}


def _numbers(values: Any) -> str:
    """A number, a vector, or the rows of a matrix, of which a single one stands for itself."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if array.size == 1 and array.ndim < 2:
        return f"{array.item():g}"
    rows = [f"[{', '.join(f'{value:g}' for value in row)}]" for row in np.atleast_2d(array)]
    return rows[0] if len(rows) == 1 else f"[{', '.join(rows)}]"
