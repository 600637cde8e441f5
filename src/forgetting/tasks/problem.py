"""The base class of problems: what every problem has; `capabilities` holds what a problem may have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_kind, as_point, sealed
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.figures.items import Matrix, column
from forgetting.figures.notebook import notebook_html
from forgetting.files.records import Codec, add_codec
from forgetting.results import Shown
from forgetting.tasks.capabilities import WithFile, WithGeometry, WithRows, WithSets, problem_from

MOST_SHOWN = 40  # tasks of a figure
MOST_ROWS = 12  # tasks of a table in a notebook
Kind = Literal["regression", "classification", "sets"]


class Finding(Protocol):
    """The answer to whether some w solves all tasks: `holds` (None if undecided), and a `message` that says so."""

    @property
    def holds(self) -> bool | None: ...
    @property
    def message(self) -> str: ...


class Problem(Shown, WithGeometry, WithRows, WithSets, WithFile, ABC):
    """T tasks, each with a loss, a distance and a projection onto its solutions.

    To define a problem, derive from this class, set `dim`, and implement `num_tasks`, `project`, `task_loss`,
    `task_losses` and `distances`. All other members say "not known" by default, also those of its base classes. Bounds
    need a `radius` and `nearest_solution`; exact engines need a `geometry`.

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
    #: notes on the data for a reader of results; see `fg.load`
    notes: tuple[str, ...] = ()

    dim: int

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled problem; its arrays are read-only again."""
        self.__dict__.update({name: sealed(value) for name, value in state.items()})

    @property
    @abstractmethod
    def num_tasks(self) -> int:
        """T, the number of tasks."""

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

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, for reports."""
        return tuple(map(str, range(self.num_tasks)))

    @property
    def loss_meaning(self) -> str:
        """The loss of a task in words that can follow "losses:"; empty if there are none.

        >>> import forgetting as fg
        >>> fg.families.two_lines(0.5).loss_meaning
        'half the squared residual of a task, summed over its rows'
        """
        return ""

    @property
    def radius(self) -> float | None:
        """R with L_m(w) <= R^2/2 dist(w, C_m)^2 for every task; None if no such R is known."""
        return None

    @property
    def realizability(self) -> Finding | None:
        """Whether some w solves all tasks; None if this is not known."""
        return None

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The numbers, words and arrays that define the problem, in an order that never changes, for its hash."""
        yield (vars(self),)

    def rebuilt(
        self, change: Callable[[Array], Array], without: int | None = None, common: Array | None = None
    ) -> Problem:
        """Tasks of the same kind with changed numbers, for searches: `common` still solves them, if it is given.

        `without` leaves one task out. A class that cannot do this raises `NotSupportedError`.
        """
        raise NotSupportedError(
            f"{type(self).__name__} cannot be rebuilt with other numbers; give the class a `rebuilt`"
        )

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
        """The losses of all tasks after one task was learned alone: at the projection of 0 onto each task.

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


def as_problem(value: Problem) -> Problem:
    """Return `value` if it is a problem; else raise an error that says how to make one.

    >>> as_problem("tasks.csv")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: expected a problem such as RegressionTasks, got 'tasks.csv'; fg.load makes ...
    """
    try:
        return as_kind(value, Problem, "a problem such as RegressionTasks")
    except InvalidInputError as error:
        remedy = getattr(value, "instead_of_tasks", None) or "fg.load makes one of a file, a DataFrame or arrays"
        raise InvalidInputError(f"{error}; {remedy}") from None


def _problem_of(arrays: Any) -> Problem:
    if not isinstance(arrays, dict) or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ForgettingError("tasks must be a dictionary of arrays")
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
