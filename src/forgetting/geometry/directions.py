"""Tasks as orthonormal directions with singular values, on which linear schemes step, in any coordinates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from forgetting.core.arrays import Array, IntArray, read_only
from forgetting.geometry.row_blocks import row_sums

if TYPE_CHECKING:
    from forgetting.geometry.reduction import Geometry

__all__ = ["Directions", "Recorded", "StepGains", "Subspaces"]


class Subspaces(Protocol):
    """What steps of a linear scheme on many states need: U_m^T as blocks of rows, sigma and c; see `Directions`."""

    @property
    def rows(self) -> Array: ...
    @property
    def sigma(self) -> Array: ...
    @property
    def targets(self) -> Array: ...
    @property
    def unexplained(self) -> Array: ...
    @property
    def rows_learned(self) -> int: ...
    def block(self, task: int) -> slice: ...


class Recorded(NamedTuple):
    """Arrays that compiled steps fill: states and losses.

    `kept[i]` becomes the state after step `kept_at[i]` (counted from 1); `before` and `after` become the losses of the
    task learned, without the part that no w can fit.
    """

    kept_at: IntArray
    kept: Array
    before: Array
    after: Array


class StepGains(NamedTuple):
    """The gains of steps in a row, and what they keep.

    Attributes:
        table: one row for each different step, with a gain for each of the R directions.
        which: the row of each step.
        keep: for each step, the factor that w is multiplied with before the task is learned.
    """

    table: Array
    which: IntArray
    keep: Array

    @classmethod
    def alike(cls, gains: Array, count: int) -> StepGains:
        """`count` steps with these gains.

        >>> StepGains.alike(np.ones(1), 2).which
        array([0, 0])
        """
        return cls(gains[None], np.zeros(count, dtype=np.int64), np.ones(count))


class Directions(ABC):
    """Distinct tasks min |Sigma_m (U_m^T z - c_m)|^2, over states z; U_m has orthonormal columns.

    `Geometry` keeps U_m in a frame of the joint row space, and states are errors. `OwnRows` keeps the rows that the
    user gave, and states are iterates. Losses, distances and linear schemes need nothing but rho = U^T z - c.

    Attributes:
        offsets: the directions of distinct task m have the numbers offsets[m] to offsets[m + 1] - 1.
        sigma: R singular values.
        targets: R numbers c_m; c x R with several outputs.
        unexplained: for each distinct task, half the squared norm of the part of its labels that no w can fit.
        index: for each task, the number of its distinct task.
    """

    offsets: IntArray
    sigma: Array
    targets: Array
    unexplained: Array
    index: IntArray

    @property
    def rows_learned(self) -> int:
        """Number of directions of the tasks that are learned, which come first."""
        return len(self.sigma)

    @property
    def geometry(self) -> Geometry | None:
        """The geometry whose frame states refer to; None if states are iterates."""
        return None

    @abstractmethod
    def start(self, w0: Array) -> Array:
        """The state of a start w_0 in the user's coordinates."""

    @abstractmethod
    def lift(self, states: Array, w0: Array) -> Array:
        """Iterates in the user's coordinates for the states (rows) of a run that starts at w_0."""

    @abstractmethod
    def errors(self, states: Array) -> Array:
        """rho = U^T z - c for each state: R numbers, from which losses and distances are computed."""

    @abstractmethod
    def project(self, task: int, state: Array) -> Array:
        """The state nearest to this one that minimises the loss of the task."""

    @abstractmethod
    def advance(self, gains: StepGains, output: int | None, order: IntArray, state: Array, recorded: Recorded) -> None:
        """Learn the distinct tasks of `order` by compiled code, changing the state of one output in place.

        `output` is its number, None for tasks whose labels are single numbers.
        """

    @property
    def num_tasks(self) -> int:
        """Number of tasks, clones included."""
        return len(self.index)

    @property
    def outputs(self) -> int | None:
        """c, or None if labels are single numbers."""
        return None if self.targets.ndim == 1 else len(self.targets)

    @property
    def num_distinct(self) -> int:
        """Number of distinct tasks."""
        return len(self.offsets) - 1

    @cached_property
    def counts(self) -> IntArray:
        """The number of tasks that each distinct task stands for."""
        return read_only(np.bincount(self.index, minlength=self.num_distinct).astype(np.int64))

    @cached_property
    def ranks(self) -> IntArray:
        """Rank of each distinct task."""
        return read_only(np.diff(self.offsets))

    @cached_property
    def norms(self) -> Array:
        """Spectral norm of each distinct task (0 for a task of rank 0)."""
        norms = np.zeros(self.num_distinct)
        filled = self.ranks > 0
        norms[filled] = self.sigma[self.offsets[:-1][filled]]
        return read_only(norms)

    @cached_property
    def owner(self) -> IntArray:
        """Distinct task of each of the R directions."""
        return read_only(np.repeat(np.arange(self.num_distinct), self.ranks))

    @cached_property
    def explained(self) -> bool:
        """Whether every task can be solved on its own."""
        return not self.unexplained.any()

    @cached_property
    def _no_clones(self) -> bool:
        return np.array_equal(self.index, np.arange(self.num_distinct))

    def distinct(self, orders: IntArray) -> IntArray:
        """The numbers of the distinct tasks in the given orders, as a contiguous array."""
        return np.ascontiguousarray(orders if self._no_clones else self.index[orders])

    def block(self, task: int) -> slice:
        """The rows of the stacked arrays that belong to distinct task `task`."""
        return slice(int(self.offsets[task]), int(self.offsets[task + 1]))

    def squared(self, states: Array) -> Array:
        """rho^2 for each of the R directions at each state, summed over outputs."""
        squares = self.errors(states) ** 2
        return squares if self.outputs is None else squares.sum(axis=-2)

    def per_task(self, squares: Array) -> Array:
        """Sums of R columns over the directions of each distinct task."""
        return row_sums(squares, self.offsets)

    def distinct_losses(self, states: Array) -> Array:
        """Loss of each distinct task at each state."""
        if self.outputs is None:
            return 0.5 * self.per_task((self.sigma * self.errors(states)) ** 2) + self.unexplained
        return 0.5 * self.per_task(self.sigma**2 * self.squared(states)) + self.unexplained

    def task_losses(self, states: Array) -> Array:
        """L_m for every task (clones included) at each state; shape (..., T)."""
        return self.distinct_losses(states)[..., self.index]

    def mean_losses(self, states: Array) -> Array:
        """L, the mean over tasks, at each state; shape (...)."""
        share = self.counts / self.num_tasks
        weights = 0.5 * self.sigma**2 * share[self.owner]
        return self.squared(states) @ weights + float(self.unexplained @ share)

    def distances(self, states: Array) -> Array:
        """Distance to the solution set of every task; shape (..., T)."""
        return np.sqrt(self.per_task(self.squared(states)))[..., self.index]
