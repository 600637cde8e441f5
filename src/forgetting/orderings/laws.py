"""Laws: how the visits of an ordering are distributed. Exact engines and bounds use the law, never the class.

An ordering that states a law needs no `visits` of its own. A law is one of `Independent`, `Permutation`, `Reshuffled`,
`Fixed` (with `Cycle`), `Adaptive` and `Unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag, as_index, real_array
from forgetting.core.memory import require_memory
from forgetting.core.names import only
from forgetting.core.numerical import EPS
from forgetting.errors import InvalidInputError, OrderingError
from forgetting.orderings.view import TaskView

__all__ = ["Adaptive", "Cycle", "Fixed", "Independent", "Law", "Permutation", "Reshuffled", "Unknown"]
__dir__ = only(__all__)

BLOCK = 4096  # draws made at once; the tasks that a seed gives depend on this number, so that it must not change

Visit = int | IntArray


class Law:
    """Base class of the laws."""

    adaptive: ClassVar[bool] = False  # whether the next task depends on the iterate
    skips: bool = False  # whether a visit may say "no update"
    uses_norms: ClassVar[bool] = True  # whether visits may depend on the norms of the tasks

    @property
    def random(self) -> bool:
        """Whether two runs from the same start can visit different tasks."""
        return True

    def limit(self, num_tasks: int) -> int | None:
        """The number of steps after which the visits end; None if they never end."""
        return None

    def check(self, num_tasks: int) -> None:
        """Raise if the law does not fit `num_tasks` tasks."""

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[Visit]:
        """Yield the visits of a run: task numbers, or arrays of task numbers."""
        raise OrderingError(f"the law {self} does not say which tasks are visited; define `visits` on the ordering")

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray | None:
        """`runs` orders of k tasks, one per row; None if the law has no faster way than `visits` for each run."""
        return None


@dataclass(frozen=True)
class Independent(Law):
    """Every step draws a task, independently of all other steps, with fixed probabilities.

    Args:
        p: numbers in proportion to the probabilities; None for equal probabilities; or a function that computes
            the probabilities from a `TaskView`.
        name: the name of the draws in error messages.

    >>> Independent([1, 2]).weights(TaskView(2))
    (array([1., 2.]), 0.0)
    >>> Independent(lambda tasks: tasks.norms / tasks.norms.sum()).probabilities(TaskView(2, np.array([1.0, 3.0])))
    array([0.25, 0.75])
    """

    p: Sequence[float] | Callable[[TaskView], Array] | None = None
    name: str = field(default="independent draws", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.p is not None and not callable(self.p):
            weights = real_array(self.p, "p")
            if weights.ndim != 1 or (weights < 0).any() or weights.sum() <= 0:
                raise InvalidInputError(f"p must be finite, nonnegative and not all zero, got {self.p!r}")
            object.__setattr__(self, "p", tuple(weights.tolist()))

    def weights(self, tasks: TaskView) -> tuple[Array, float]:
        """Numbers in proportion to the probabilities, and a bound on their relative error.

        Given weights are returned unchanged, with an error of 0: dividing them by their sum would round them.
        """
        if callable(self.p):
            return self.probabilities(tasks), 16 * EPS
        return self._given(tasks.num_tasks), 0.0

    def _given(self, num_tasks: int) -> Array:
        if self.p is None:
            return np.ones(num_tasks)
        given = np.array(self.p)
        if len(given) != num_tasks:
            raise InvalidInputError(f"p has {len(given)} entries for {num_tasks} tasks")
        return given

    def probabilities(self, tasks: TaskView) -> Array:
        """The probability of each task."""
        if not callable(self.p):
            weights = self._given(tasks.num_tasks)
            return np.asarray(weights / weights.sum())
        p = real_array(self.p(tasks), f"probabilities of {self.name}")
        if p.shape != (tasks.num_tasks,):
            raise InvalidInputError(f"probabilities of {self.name}: shape {p.shape} for {tasks.num_tasks} tasks")
        if (p < 0).any() or abs(float(p.sum()) - 1) > 1e-9:
            raise InvalidInputError(
                f"probabilities of {self.name}: they must be at least 0 and sum to 1, but the least is {p.min():.3g} "
                f"and their sum {p.sum():.10g}"
            )
        return p

    def _draw(self, tasks: TaskView, rng: np.random.Generator) -> Callable[[int | tuple[int, int]], IntArray]:
        p = self.probabilities(tasks)
        if np.all(p == p[0]):
            return lambda size: rng.integers(tasks.num_tasks, size=size)
        edges = np.cumsum(p)
        edges[np.flatnonzero(p)[-1] :] = 1.0  # rounding must never pick a task of probability zero
        return lambda size: np.searchsorted(edges, rng.random(size), side="right")

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[Visit]:
        draw = self._draw(tasks, rng)
        while True:
            yield draw(BLOCK)

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
        return self._draw(tasks, rng)((runs, k))


@dataclass(frozen=True)
class Permutation(Law):
    """Every task once, in a uniformly random order.

    >>> Permutation().limit(5)
    5
    """

    uses_norms = False

    def limit(self, num_tasks: int) -> int:
        return num_tasks

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[Visit]:
        yield rng.permutation(tasks.num_tasks)

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
        permutations = f"{runs} permutations of {tasks.num_tasks} tasks"
        require_memory(8.0 * runs * tasks.num_tasks, permutations, "draw fewer at a time: runs=")
        rows = np.tile(np.arange(tasks.num_tasks), (runs, 1))
        return rng.permuted(rows, axis=1, out=rows)[:, :k]


@dataclass(frozen=True)
class Reshuffled(Law):
    """Epochs of T steps; each epoch visits every task once, in a new uniformly random order.

    >>> Reshuffled().limit(5) is None
    True
    """

    uses_norms = False

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[Visit]:
        T = tasks.num_tasks
        while True:  # many at once: the same draws as by rng.permutation(T) again and again
            yield rng.permuted(np.tile(np.arange(T), (max(1, BLOCK // T), 1)), axis=1).reshape(-1)


@dataclass(frozen=True)
class Fixed(Law):
    """The same tasks in every run: the tasks of `sequence`, or, if that is None, of the `visits` of the ordering.

    >>> Fixed([2, 0, 0]).sequence, Fixed([2, 0, 0]).random
    ((2, 0, 0), False)
    """

    uses_norms: ClassVar[bool] = False

    sequence: Sequence[int] | IntArray | None = None

    @property
    def random(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if self.sequence is not None:
            order = as_index(self.sequence, None, "Explicit ordering: seq")
            require_memory(40.0 * len(order), f"an explicit ordering of {len(order)} steps", "use a shorter one")
            object.__setattr__(self, "sequence", tuple(order.tolist()))

    def limit(self, num_tasks: int) -> int | None:
        return None if self.sequence is None else len(self.sequence)

    def check(self, num_tasks: int) -> None:
        if self.sequence is not None:
            as_index(np.array(self.sequence, dtype=np.int64), num_tasks, "Explicit ordering: seq")

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[Visit]:
        if self.sequence is None:
            yield from super().visits(tasks, rng)
        yield np.array(self.sequence, dtype=np.int64)


@dataclass(frozen=True)
class Cycle(Fixed):
    """The tasks of `order`, repeated; 0, 1, ..., T - 1 if `order` is None.

    >>> Cycle().random, Cycle().limit(3) is None
    (False, True)
    >>> Cycle([2, 0, 1]).epoch(3).tolist(), Cycle([2, 0, 1]).permutes(3), Cycle([2, 0]).permutes(3)
    ([2, 0, 1], True, False)
    """

    sequence: None = field(default=None, init=False, repr=False)
    order: Sequence[int] | IntArray | None = None

    def __post_init__(self) -> None:
        if self.order is not None:
            order = as_index(self.order, None, "Cyclic ordering: order")
            if not len(order):
                raise InvalidInputError("Cyclic ordering: order is empty; it needs a task to repeat")
            require_memory(40.0 * len(order), f"a cycle of {len(order)} steps", "use a shorter one")
            object.__setattr__(self, "order", tuple(order.tolist()))

    def epoch(self, num_tasks: int) -> IntArray:
        """The tasks of one cycle."""
        return np.arange(num_tasks) if self.order is None else np.array(self.order, dtype=np.int64)

    def permutes(self, num_tasks: int) -> bool:
        """Whether a cycle visits every task once; statements about cyclic orderings are about such cycles."""
        return self.order is None or sorted(self.order) == list(range(num_tasks))

    def check(self, num_tasks: int) -> None:
        if self.order is not None:
            as_index(self.epoch(num_tasks), num_tasks, "Cyclic ordering: order")

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[Visit]:
        epoch = self.epoch(tasks.num_tasks)
        while True:
            yield np.resize(epoch, len(epoch) * max(1, BLOCK // len(epoch)))


@dataclass(frozen=True)
class Adaptive(Law):
    """The next task depends on the current iterate.

    Args:
        draws: whether the ordering also draws random numbers.
        greedy: whether the next task is always the task with the largest distance or loss.
        repeat: whether a task may be visited more than once.
        skips: whether a visit may say "no update", by None or -1 in place of a task.

    >>> Adaptive(draws=False, greedy=True, repeat=False).limit(7)
    7
    """

    draws: bool = True
    greedy: bool = False
    repeat: bool = True
    skips: bool = False
    adaptive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("draws", "greedy", "repeat", "skips"):
            as_flag(getattr(self, name), name)

    @property
    def random(self) -> bool:
        return self.draws

    def limit(self, num_tasks: int) -> int | None:
        return None if self.repeat else num_tasks


@dataclass(frozen=True)
class Unknown(Law):
    """Random visits with an unknown distribution: expectations can only be simulated, and few bounds apply.

    >>> Unknown().random, Unknown().adaptive
    (True, False)
    """
