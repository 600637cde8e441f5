"""The base class of problems: everything that the loop, the engines and the bounds may use of tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, Self

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_kind, as_path, as_point, sealed
from forgetting.core.registry import Registry, dashed
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.figures.items import Matrix, column
from forgetting.figures.notebook import notebook_html
from forgetting.geometry import Directions, Geometry
from forgetting.results import Shown
from forgetting.sets import ConvexSet
from forgetting.storage.arrays import damaged, read_arrays, write_arrays
from forgetting.storage.records import Codec, add_codec

if TYPE_CHECKING:
    from forgetting.tasks.linear_tasks import LinearTasks
    from forgetting.tasks.preparation import Preparation

__all__ = ["Finding", "Kind", "Problem", "as_problem", "is_saved", "no_common_solution", "no_tasks", "problem_from"]

MOST_SHOWN = 40  # tasks of a figure
MOST_ROWS = 12  # tasks of a table in a notebook
Kind = Literal["regression", "classification", "sets"]


class Finding(Protocol):
    """Whether some w solves all tasks (`holds`; None if undecided), and a `message` that says so."""

    @property
    def holds(self) -> bool | None: ...
    @property
    def message(self) -> str: ...


class Problem(Shown, ABC):
    """T tasks, each with a loss, a distance and a projection onto its solutions.

    To define a problem, derive from this class, set `dim`, and implement `num_tasks`, `project`, `task_loss`,
    `task_losses` and `distances`. All other members say "not known" by default. Bounds need a `radius` and
    `nearest_solution`; exact engines need a `geometry`.

    >>> import forgetting as fg
    >>> import numpy as np
    >>> class Points(Problem):
    ...     num_tasks, dim = 2, 1
    ...     def project(self, task, w):
    ...         return np.array([float(task)])
    ...     def task_loss(self, task, w):
    ...         return 0.5 * float(w[0] - task) ** 2
    ...     def task_losses(self, w):
    ...         return 0.5 * (w[0] - np.arange(2.0)) ** 2
    ...     def distances(self, w):
    ...         return abs(w[0] - np.arange(2.0))
    >>> fg.run(Points(), fg.orderings.Cyclic(), k=3).losses.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    #: the kind of tasks; every bound covers some kinds
    kind: ClassVar[Kind] = "sets"
    #: whether L_m(w) = 1/2 dist(w, C_m)^2, so that a projection gives the loss too
    half_squared_distances: ClassVar[bool] = False

    #: the 'format' entry of a file with such tasks; empty if a class cannot be saved
    format: ClassVar[str] = ""

    #: inner products of all rows, for tasks whose iterates are dual coefficients
    kernel: Array | None = None

    #: what a reader of results should know about the data; see `fg.load`
    notes: tuple[str, ...] = ()

    #: c if labels are rows of c numbers, so that w is d x c; None if w is a vector
    outputs: int | None = None

    #: what was done with the columns of X; None if nothing was
    preparation: Preparation | None = None

    @property
    def labels_stand_for(self) -> Literal["signs", "classes"] | None:
        """What labels are, so that there is an accuracy: "signs" (+1, -1), "classes" (one-hot), or None."""
        return None

    def accuracies(self, points: Array) -> Array:
        """The accuracy of every task at each of a stack of w, (len(points), T), for tasks whose labels are classes."""
        raise NotSupportedError(f"accuracy needs labels that are classes, not {type(self).__name__}")

    dim: int

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if cls.__dict__.get("format"):
            _formats.add(cls.format, cls, replace=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled problem; its arrays are read-only again."""
        self.__dict__.update({name: sealed(value) for name, value in state.items()})

    @property
    @abstractmethod
    def num_tasks(self) -> int:
        """T."""

    @abstractmethod
    def project(self, task: int, w: Array) -> Array:
        """The solution of the task nearest to w."""

    @abstractmethod
    def task_loss(self, task: int, w: Array) -> float:
        """The loss of the task at w."""

    @abstractmethod
    def task_losses(self, w: Array) -> Array:
        """The T losses at w."""

    @abstractmethod
    def distances(self, w: Array) -> Array:
        """The T distances from w to the solutions of the tasks."""

    def __len__(self) -> int:
        return self.num_tasks

    @property
    def point_shape(self) -> tuple[int, ...]:
        """The shape (d,) of a point w, or (d, c) for tasks with c outputs.

        >>> import forgetting as fg
        >>> fg.families.two_lines(0.5).point_shape
        (2,)
        """
        return (self.dim,) if self.outputs is None else (self.dim, self.outputs)

    def point(self, w: Any, what: str = "w") -> Array:
        """The point w as an array of float64 of the `point_shape`; `what` is its name in errors."""
        return as_point(w, self.point_shape, what)

    def loss(self, w: Array) -> float:
        """L(w), the mean of the task losses."""
        return float(np.mean(self.task_losses(w)))

    # ------------------------------------------------------------------------------------- optional members

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, for reports."""
        return tuple(map(str, range(self.num_tasks)))

    @property
    def loss_meaning(self) -> str:
        """What the loss of a task is, in words that can follow "losses:"; empty if that is not known.

        >>> import forgetting as fg
        >>> fg.families.two_lines(0.5).loss_meaning
        'half the squared residual of a task, summed over its rows'
        """
        return ""

    @property
    def norms(self) -> Array | None:
        """The spectral norm of each task; None if tasks have no norm."""
        return None

    @property
    def radius(self) -> float | None:
        """R with L_m(w) <= R^2/2 dist(w, C_m)^2 for every task; None if no such R is known."""
        return None

    @property
    def geometry(self) -> Geometry | None:
        """The reduction to subspaces, for exact engines and compiled loops; None unless every task is affine."""
        return None

    @property
    def steps_on_own_rows(self) -> bool:
        """Whether linear schemes step on the rows as they were given, and not in a frame of the joint row space."""
        return False

    @property
    def directions(self) -> Directions | None:
        """What linear schemes step on: the geometry, or the rows of the tasks where a geometry is not needed."""
        return self.geometry

    @property
    def linear(self) -> LinearTasks | None:
        """The same problem as linear tasks; None unless every task is affine."""
        return None

    @property
    def members(self) -> tuple[ConvexSet, ...]:
        """The solution set of each task as a `ConvexSet`; empty if the sets are not known."""
        return ()

    @property
    def realizability(self) -> Finding | None:
        """Whether some w solves all tasks; None if this is not known."""
        return None

    def test_accuracies(self, points: Array) -> Array:
        """The accuracy of the held-out data of every task at each of a stack of w; an error if there are none."""
        raise NotSupportedError("the accuracy of held-out data needs held-out data: test=")

    def signed_rows(self, task: int) -> Array | None:
        """The rows y_i x_i of a classification task; None for other tasks."""
        return None

    def row_weights(self, task: int) -> Array | None:
        """How much each row of a classification task counts; None if each counts once."""
        return None

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The numbers, words and arrays that define the problem, in an order that never changes, for its hash."""
        yield (vars(self),)

    # ------------------------------------------------------------------------------------------ looking at it

    def __repr__(self) -> str:
        return f"{type(self).__name__}(T={self.num_tasks}, d={self.dim})"

    @property
    def headline(self) -> str:
        return repr(self)

    def _num_rows(self) -> int:
        return self.num_tasks

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        return {"task": rows, "name": [self.names[row] for row in rows]}

    def figure(self) -> Matrix:
        """What learning one task alone leaves of each: the losses of all tasks at the projection of 0 onto a task.

        The first tasks only, where there are many. Cost: a projection and T losses for each task.
        """
        shown = range(min(self.num_tasks, MOST_SHOWN))
        names = tuple(self.names[task] for task in shown)
        start = np.zeros(self.point_shape)
        losses = np.array([self.task_losses(self.project(task, start))[: len(names)] for task in shown])
        losses[losses <= 1e-20 * losses.max()] = 0.0  # rounding
        return Matrix(
            "transfer", "Losses after one task was learned", "", "loss of task", "learned alone", names, names,
            tuple(column(row) for row in losses),
        )  # fmt: skip

    def _repr_html_(self) -> str:
        return notebook_html(self.to_table(MOST_ROWS))  # without the picture, which takes a projection for each task

    def rebuilt(
        self, change: Callable[[Array], Array], without: int | None = None, common: Array | None = None
    ) -> Problem:
        """Tasks of the same kind with changed numbers, for searches: `common` still solves them, if it is given.

        `without` leaves one task out. A class that cannot do this raises `NotSupportedError`.
        """
        raise NotSupportedError(f"{type(self).__name__} cannot be made of other numbers")

    # --------------------------------------------------------------------------------------------------- files

    def file_arrays(self) -> dict[str, Any]:
        """The arrays that `save` writes, by name; the entry 'format' is the format of the class."""
        raise NotSupportedError(
            f"{type(self).__name__} cannot be saved: its class has no `format`, `file_arrays` and `from_file_arrays`"
        )

    @classmethod
    def from_file_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The tasks of the arrays that `file_arrays` gave; every array is checked."""
        raise NotSupportedError(f"{cls.__name__} cannot be loaded: its class has no `from_file_arrays`")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tasks to an .npz file, atomically and without pickle; `load` gives the same numbers back.

        >>> import forgetting as fg, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "two_lines.npz"
        ...     fg.families.two_lines(0.5).save(path)
        ...     fg.RegressionTasks.load(path)
        RegressionTasks(T=2, d=2, rows=2)
        """
        write_arrays(as_path(path), self.file_arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read tasks that `save` wrote; nothing is unpickled. `Problem.load` reads tasks of any kind."""
        problem = problem_from(read_arrays(path), path)
        if not isinstance(problem, cls):
            raise ProblemFileError(f"{path}: holds {type(problem).__name__}; use {type(problem).__name__}.load")
        return problem

    def nearest_solution(self, w0: Array) -> Array:
        """The common solution nearest to w_0; an error if no common solution exists or is known."""
        raise NotSupportedError(
            f"{type(self).__name__} does not know its common solutions; give the class a nearest_solution(w0)"
        )

    @property
    def scale(self) -> float:
        """|w*|^2 R^2, the factor in front of the bounds for a start at 0."""
        return self.scale_from(np.zeros(self.point_shape))

    def scale_from(self, w0: Array) -> float:
        """|w_0 - w*|^2 R^2, with w* the common solution nearest to w_0."""
        if self.radius is None:
            raise NotSupportedError(f"{type(self).__name__} has no radius R with L_m <= R^2/2 dist^2")
        gap = self.point(w0, "w0") - self.nearest_solution(w0)
        return float(np.vdot(gap, gap)) * self.radius**2

    def distance_sq(self, w0: Array) -> float | None:
        """min |w_0 - w|^2 over common solutions w; None if no common solution exists or is known."""
        try:
            gap = self.nearest_solution(w0) - w0
        except ForgettingError:
            return None
        return float(np.vdot(gap, gap))


def as_problem(value: Problem) -> Problem:
    """Return `value` if it is a problem; else say what makes one.

    >>> as_problem("tasks.csv")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: expected a problem such as RegressionTasks, got 'tasks.csv'; fg.load makes ...
    """
    try:
        return as_kind(value, Problem, "a problem such as RegressionTasks")
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}; fg.load makes one of a file, a DataFrame or arrays") from None


#: the classes of problems that can be saved, by the 'format' entry of their files
_formats: Registry[type[Problem]] = Registry("format of tasks")


def problem_from(arrays: dict[str, Any], path: str | PathLike[str]) -> Problem:
    """The tasks of the arrays of a file, of the kind that its 'format' entry names; `path` is named in errors.

    >>> problem_from({"format": np.array("spreadsheet")}, "tasks.npz")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: tasks.npz: no file of tasks that this library saved...
    """
    name = str(arrays.get("format"))
    if name not in _formats and is_saved(arrays):
        raise ProblemFileError(f"{path}: {no_tasks(name)}")
    if name not in _formats:
        given = f"its 'format' entry is {name!r:.80}" if "format" in arrays else "there is no 'format' entry"
        raise ProblemFileError(f"{path}: no file of tasks that this library saved ({given})")
    kind = _formats.get(name)
    with damaged(path, f"collection of {dashed(kind.__name__).replace('-', ' ')}"):
        return kind.from_file_arrays(arrays)


def is_saved(arrays: Mapping[str, Any]) -> bool:
    """Whether this library wrote the arrays, as their entry 'format' says.

    >>> is_saved({"format": np.array("forgetting/regression/1")}), is_saved({"X": np.eye(2)})
    (True, False)
    """
    return str(arrays.get("format")).startswith("forgetting/")


def no_tasks(form: str) -> str:
    """What to say of a file of this library that holds no tasks; `form` is its entry 'format'.

    >>> no_tasks("forgetting/instance/1")
    "holds 'forgetting/instance/1', a saved instance and no tasks; give the file with the tasks that it is about"
    """
    what = form.split("/")[1] if form.count("/") == 2 else "result"
    return f"holds {form!r:.60}, a saved {what:.40} and no tasks; give the file with the tasks that it is about"


def _problem_of(arrays: Any) -> Problem:
    if not isinstance(arrays, dict) or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ForgettingError("tasks are arrays by their names")
    return problem_from(arrays, "tasks")


add_codec(Codec("problem", Problem, lambda problem: problem.file_arrays(), _problem_of))


def no_common_solution(problem: Problem) -> list[str]:
    """Warnings if the tasks have no common solution, or if that is undecided; else an empty list.

    >>> import forgetting as fg
    >>> no_common_solution(fg.families.two_lines(0.5))
    []
    """
    try:
        finding = problem.realizability
    except ForgettingError as error:  # raised if realizability is undecided
        return [str(error)]
    return [] if finding is None or finding.holds else [finding.message]
