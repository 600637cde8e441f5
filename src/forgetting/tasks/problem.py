"""The base class of problems: everything that the loop, the engines and the bounds may use of tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import numpy as np

from forgetting._arrays import Array, as_vector
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.geometry import Geometry
from forgetting.sets import ConvexSet

if TYPE_CHECKING:
    from forgetting.tasks.linear_tasks import LinearTasks

__all__ = ["Finding", "Kind", "Problem", "no_common_solution"]

Kind = Literal["regression", "classification", "sets"]


class Finding(Protocol):
    """Whether some w solves all tasks (`holds`; None if undecided), and a `message` that says so."""

    @property
    def holds(self) -> bool | None: ...
    @property
    def message(self) -> str: ...


class Problem(ABC):
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

    #: inner products of all rows, for tasks whose iterates are dual coefficients
    kernel: Array | None = None

    dim: int

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

    def loss(self, w: Array) -> float:
        """L(w), the mean of the task losses."""
        return float(np.mean(self.task_losses(w)))

    # ------------------------------------------------------------------------------------- optional members

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the tasks, for reports."""
        return tuple(map(str, range(self.num_tasks)))

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

    def signed_rows(self, task: int) -> Array | None:
        """The rows y_i x_i of a classification task; None for other tasks."""
        return None

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The numbers, words and arrays that define the problem, in an order that never changes, for its hash."""
        yield (vars(self),)

    def nearest_solution(self, w0: Array) -> Array:
        """The common solution nearest to w_0; an error if no common solution exists or is known."""
        raise NotSupportedError(
            f"{type(self).__name__} does not know its common solutions; give the class a nearest_solution(w0)"
        )

    @property
    def scale(self) -> float:
        """|w*|^2 R^2, the factor in front of the bounds for a start at 0."""
        return self.scale_from(np.zeros(self.dim))

    def scale_from(self, w0: Array) -> float:
        """|w_0 - w*|^2 R^2, with w* the common solution nearest to w_0."""
        if self.radius is None:
            raise NotSupportedError(f"{type(self).__name__} has no radius R with L_m <= R^2/2 dist^2")
        gap = as_vector(w0, self.dim, "w0") - self.nearest_solution(w0)
        return float(gap @ gap) * self.radius**2

    def distance_sq(self, w0: Array) -> float | None:
        """min |w_0 - w|^2 over common solutions w; None if no common solution exists or is known."""
        try:
            gap = self.nearest_solution(w0) - w0
        except ForgettingError:
            return None
        return float(gap @ gap)


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
