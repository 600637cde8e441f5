"""Who comes next: orderings of tasks, as objects of their own.

An ordering is one generator. It gets a `TaskView` and a random generator and yields task numbers, one at a time or
(faster) in arrays, for ever or until it runs out. An adaptive one sets `adaptive = True` and may ask the view, before
each yield, for the distance or the loss of every task at the current iterate, and for nothing else.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from forgetting._arrays import (
    Array,
    IntArray,
    as_count,
    as_flag,
    as_index,
    as_kind,
    as_seed,
    read_only,
    real_array,
)
from forgetting._memory import require_memory
from forgetting.errors import InvalidInputError, NotSupportedError, OrderingError

__all__ = [
    "Cyclic",
    "Explicit",
    "GreedyDistance",
    "GreedyResidual",
    "NormWeighted",
    "Ordering",
    "Reshuffled",
    "TaskView",
    "Visits",
    "WithReplacement",
    "WithoutReplacement",
]

TIED = 1e-12  # of the largest score
NOTHING = 1000  # empty arrays in a row after which nothing more is expected
BLOCK = 4096  # draws made at once; part of what a seed means, so it never changes


@dataclass(frozen=True)
class TaskView:
    """What an ordering may know: how many tasks, their norms, and (adaptive ones) how far each is from solved.

    >>> TaskView(3).num_tasks
    3
    """

    num_tasks: int
    norms: Array | None = None
    _distances: Callable[[], Array] | None = None
    _losses: Callable[[], Array] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_tasks", as_count(self.num_tasks, "num_tasks", least=1))
        if self.norms is not None:
            object.__setattr__(self, "norms", read_only(np.asarray(self.norms)))

    def distances(self) -> Array:
        """Distance from the current iterate to every task's solutions."""
        return self._live(self._distances)

    def losses(self) -> Array:
        """Loss of every task at the current iterate."""
        return self._live(self._losses)

    @staticmethod
    def _live(source: Callable[[], Array] | None) -> Array:
        if source is None:
            raise OrderingError("this ordering looks at the iterate; set `adaptive = True` on its class")
        return source()


@dataclass(frozen=True)
class Ordering(ABC):
    """Base class: implement `visits`, and `limit` if it can run out; set `random = False` if it draws nothing.

    >>> from itertools import cycle
    >>> class BackAndForth(Ordering):
    ...     def visits(self, tasks, rng):
    ...         T = tasks.num_tasks
    ...         yield from cycle([*range(T), *range(T - 2, 0, -1)])
    >>> BackAndForth().first(TaskView(3), 6, seed=0).tolist()
    [0, 1, 2, 1, 0, 1]
    """

    adaptive: ClassVar[bool] = False
    random: ClassVar[bool] = True  # False: never asks `rng`, so that one run says all

    def __init_subclass__(cls, **options: Any) -> None:
        """The orderings of this module are known by more than their visits: exact engines and bounds rely on it."""
        super().__init_subclass__(**options)
        known = next((one for one in cls.__mro__[1:] if one.__module__ == __name__ and one is not Ordering), None)
        if known is not None and cls.__module__ != __name__ and {"visits", "batch"} & set(vars(cls)):
            raise InvalidInputError(
                f"{cls.__name__} visits tasks differently than {known.__name__}: derive from Ordering"
            )

    @abstractmethod
    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        """Yield task numbers, 0-based, one per step, or arrays of them; all randomness comes from `rng`."""

    def limit(self, num_tasks: int) -> int | None:
        """How many steps there are, or None for no end."""
        return None

    def check(self, num_tasks: int, k: int) -> None:
        """Raise if the ordering cannot give k steps over this many tasks."""
        limit = self.limit(num_tasks)
        if limit is not None and k > limit:
            raise OrderingError(
                f"{self} ends after {limit} steps over {num_tasks} tasks, but k = {k}; use k <= {limit}"
            )

    def first(self, tasks: TaskView, k: int, seed: int | np.random.Generator = 0) -> IntArray:
        """The first k tasks."""
        count = as_kind(tasks, TaskView, "a TaskView(num_tasks)").num_tasks
        k = as_count(k, "k")
        self.check(count, k)
        require_memory(16.0 * k, f"the first {k} tasks", "ask for fewer")
        rng = seed if isinstance(seed, np.random.Generator) else np.random.default_rng(as_seed(seed))
        return Visits(self, tasks, rng).take(k)

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
        """`runs` independent orders of length k, one per row; row i does not depend on how many rows there are."""
        rows = [self.first(tasks, k, child) for child in rng.spawn(runs)]
        return np.stack(rows) if rows else np.empty((0, k), dtype=np.int64)


class Visits:
    """The visits of one run, as many at a time as asked for, and checked.

    >>> visits = Visits(Cyclic(), TaskView(3), np.random.default_rng(0))
    >>> visits.take(2).tolist(), visits.take(4).tolist()
    ([0, 1], [2, 0, 1, 2])
    """

    def __init__(self, ordering: Ordering, tasks: TaskView, rng: np.random.Generator) -> None:
        self._ordering = ordering
        self._num_tasks = tasks.num_tasks
        self._source = iter(ordering.visits(tasks, rng))
        self._rest = np.empty(0, dtype=np.int64)
        self._done = 0

    def take(self, size: int) -> IntArray:
        """The next `size` tasks."""
        size = operator.index(size)
        blocks: list[Any] = [self._rest]
        singles: list[Any] = []
        have, empty = len(self._rest), 0
        while have < size:
            item = next(self._source, None)
            if item is None:
                raise OrderingError(f"{self._ordering} ran out after {self._done + have} tasks")
            if isinstance(item, np.ndarray):
                item = self._whole(item)
                empty = 0 if item.size else empty + 1
                if empty == NOTHING:
                    raise OrderingError(f"{self._ordering} yielded {empty} empty arrays in a row; end `visits` instead")
                blocks += [singles, item] if singles else [item]
                singles = []
                have += item.size
            else:
                singles.append(item)
                have += 1
        joined = np.concatenate([self._whole(block) for block in [*blocks, singles] if len(block)] or [self._rest])
        taken, self._rest = joined[:size], joined[size:]
        bad = np.flatnonzero((taken < 0) | (taken >= self._num_tasks))
        if bad.size:
            raise OrderingError(
                f"{self._ordering} named task {taken[bad[0]]} at step {self._done + bad[0] + 1}, "
                f"but tasks are 0 to {self._num_tasks - 1}"
            )
        self._done += size
        return taken

    def _whole(self, block: Any) -> IntArray:
        numbers = np.asarray(block)
        if numbers.ndim != 1 or numbers.dtype.kind not in "iub":
            raise OrderingError(f"{self._ordering} yields task numbers or arrays of them, not {block!r:.80}")
        return numbers.astype(np.int64, copy=False)


@dataclass(frozen=True)
class WithReplacement(Ordering):
    """Independent draws, uniform or with probabilities p (normalised): the paper's random ordering with replacement.

    >>> WithReplacement().first(TaskView(3), 8, seed=1).tolist()
    [1, 1, 2, 2, 0, 0, 2, 2]
    >>> WithReplacement(p=[0, 0, 2]).first(TaskView(3), 3).tolist()
    [2, 2, 2]
    """

    p: Any = None

    def __post_init__(self) -> None:
        if self.p is not None:
            weights = real_array(self.p, "p")
            if weights.ndim != 1 or (weights < 0).any() or weights.sum() <= 0:
                raise InvalidInputError(f"p must be finite, nonnegative and not all zero, got {self.p!r}")
            # exact expectations use the numbers as given, since normalising them rounds
            object.__setattr__(self, "_given", tuple(weights.tolist()))
            object.__setattr__(self, "p", tuple((weights / weights.sum()).tolist()))

    def weights(self, tasks: TaskView) -> tuple[Array, float]:
        """Numbers in proportion to the probabilities, and by how much they are off, relatively.

        >>> WithReplacement(p=[1, 2]).weights(TaskView(2))
        (array([1., 2.]), 0.0)
        """
        p = task_probabilities(self, tasks)
        if type(self).probabilities is not WithReplacement.probabilities:
            return p, 16 * float(np.finfo(np.float64).eps)
        return (np.ones(tasks.num_tasks) if self.p is None else np.array(self._given)), 0.0  # type: ignore[attr-defined]

    def probabilities(self, tasks: TaskView) -> Array:
        """The probability of each task."""
        if self.p is None:
            return np.full(tasks.num_tasks, 1 / tasks.num_tasks)
        if len(self.p) != tasks.num_tasks:
            raise InvalidInputError(f"p has {len(self.p)} entries for {tasks.num_tasks} tasks")
        return np.array(self.p)

    def _draw(self, tasks: TaskView, rng: np.random.Generator) -> Callable[[int | tuple[int, int]], IntArray]:
        p = task_probabilities(self, tasks)
        if np.all(p == p[0]):
            return lambda size: rng.integers(tasks.num_tasks, size=size)
        edges = np.cumsum(p)
        edges[np.flatnonzero(p)[-1] :] = 1.0  # rounding must never pick a task of probability zero
        return lambda size: np.searchsorted(edges, rng.random(size), side="right")

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        draw = self._draw(tasks, rng)
        while True:
            yield draw(BLOCK)

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
        return self._draw(tasks, rng)((runs, k))


def task_probabilities(ordering: WithReplacement, tasks: TaskView) -> Array:
    """The probability of each task, checked: a class derived from `WithReplacement` may compute its own.

    >>> task_probabilities(WithReplacement(p=[1, 3]), TaskView(2))
    array([0.25, 0.75])
    """
    p = real_array(ordering.probabilities(tasks), f"probabilities of {ordering}")
    if p.shape != (tasks.num_tasks,):
        raise InvalidInputError(f"probabilities of {ordering}: shape {p.shape} for {tasks.num_tasks} tasks")
    if (p < 0).any() or abs(float(p.sum()) - 1) > 1e-9:
        raise InvalidInputError(
            f"probabilities of {ordering}: they must be at least 0 and sum to 1, but the least is {p.min():.3g} and "
            f"their sum {p.sum():.10g}"
        )
    return p


def drawn_orders(ordering: Ordering, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
    """`ordering.batch`, checked: compiled loops trust that every number is that of a task.

    >>> drawn_orders(Cyclic(), TaskView(3), 4, 2, np.random.default_rng(0))
    array([[0, 1, 2, 0],
           [0, 1, 2, 0]])
    """
    orders = np.asarray(ordering.batch(tasks, k, runs, rng))
    if orders.shape != (runs, k) or orders.dtype.kind not in "iu":
        raise OrderingError(
            f"{ordering}: batch must give whole numbers in shape {(runs, k)}, got {orders.dtype} in {orders.shape}"
        )
    if orders.size and not 0 <= orders.min() <= orders.max() < tasks.num_tasks:
        run, step = (int(part[0]) for part in np.nonzero((orders < 0) | (orders >= tasks.num_tasks)))
        raise OrderingError(
            f"{ordering} named task {orders[run, step]} in run {run}, step {step + 1}, "
            f"but tasks are 0 to {tasks.num_tasks - 1}"
        )
    return orders.astype(np.int64, copy=False)


@dataclass(frozen=True)
class NormWeighted(WithReplacement):
    """Independent draws with probability proportional to the squared spectral norm (the paper's `prop:mean_norm`).

    >>> import forgetting as fg
    >>> tasks = fg.families.heterogeneous_norms(T=3, d=4, spread=1e6)
    >>> fg.run(tasks, NormWeighted(), k=6).order.tolist()
    [0, 0, 0, 0, 0, 0]
    """

    p: None = None

    def __repr__(self) -> str:
        return "NormWeighted()"

    def probabilities(self, tasks: TaskView) -> Array:
        if tasks.norms is None:
            raise NotSupportedError("norm-weighted sampling needs tasks with a norm; these have none")
        weights: Array = tasks.norms**2
        if weights.sum() == 0:
            raise InvalidInputError("norm-weighted sampling needs a task that is not zero; all of these are")
        return weights / float(weights.sum())


@dataclass(frozen=True)
class WithoutReplacement(Ordering):
    """A uniformly random permutation: every task once, so at most T steps.

    >>> WithoutReplacement().first(TaskView(5), 5, seed=0).tolist()
    [2, 4, 3, 0, 1]
    >>> WithoutReplacement().first(TaskView(3), 4)
    Traceback (most recent call last):
    forgetting.errors.OrderingError: WithoutReplacement() ends after 3 steps over 3 tasks, but k = 4; use k <= 3
    """

    def limit(self, num_tasks: int) -> int:
        return num_tasks

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        yield rng.permutation(tasks.num_tasks)

    def batch(self, tasks: TaskView, k: int, runs: int, rng: np.random.Generator) -> IntArray:
        what = f"{runs} permutations of {tasks.num_tasks} tasks"
        require_memory(8.0 * runs * tasks.num_tasks, what, "draw fewer at a time: runs=")
        rows = np.tile(np.arange(tasks.num_tasks), (runs, 1))
        return rng.permuted(rows, axis=1, out=rows)[:, :k]


@dataclass(frozen=True)
class Cyclic(Ordering):
    """0, 1, ..., T - 1, over and over.

    >>> Cyclic().first(TaskView(3), 5).tolist()
    [0, 1, 2, 0, 1]
    """

    random: ClassVar[bool] = False

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        T = tasks.num_tasks
        while True:
            yield np.resize(np.arange(T), T * max(1, BLOCK // T))


@dataclass(frozen=True)
class Reshuffled(Ordering):
    """A new random permutation every epoch.

    >>> Reshuffled().first(TaskView(3), 6, seed=0).tolist()
    [2, 0, 1, 2, 1, 0]
    """

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        while True:
            yield rng.permutation(tasks.num_tasks)


@dataclass(frozen=True)
class Explicit(Ordering):
    """The tasks of a given sequence, once.

    >>> Explicit([2, 0, 0]).first(TaskView(3), 3).tolist()
    [2, 0, 0]
    """

    seq: Sequence[int] | IntArray
    random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        order = as_index(self.seq, None, "Explicit ordering: seq")
        require_memory(40.0 * len(order), f"an explicit ordering of {len(order)} steps", "use a shorter one")
        object.__setattr__(self, "seq", tuple(order.tolist()))

    def limit(self, num_tasks: int) -> int:
        return len(self.seq)

    def check(self, num_tasks: int, k: int) -> None:
        super().check(num_tasks, k)
        as_index(np.array(self.seq, dtype=np.int64), num_tasks, "Explicit ordering: seq")

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        yield np.array(self.seq, dtype=np.int64)

    def __str__(self) -> str:
        return f"Explicit({len(self.seq)} tasks)"


@dataclass(frozen=True)
class _Greedy(Ordering):
    """The task with the largest score; ties go to the lowest number. With repeat=False each task comes once.

    Scores that differ by less than 1e-12 of the largest are tied: which of them is larger is rounding, and processors
    round differently.
    """

    repeat: bool = True
    adaptive: ClassVar[bool] = True
    random: ClassVar[bool] = False

    def __post_init__(self) -> None:
        as_flag(self.repeat, "repeat")

    def limit(self, num_tasks: int) -> int | None:
        return None if self.repeat else num_tasks

    @abstractmethod
    def scores(self, tasks: TaskView) -> Array:
        """One number per task; the largest is next."""

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray]:
        seen = np.zeros(tasks.num_tasks, dtype=bool)
        while self.repeat or not seen.all():
            scores = self.scores(tasks)
            open_ = scores if self.repeat else np.where(seen, -np.inf, scores)
            top = float(np.max(open_))
            task = int(np.argmax(open_ >= top - TIED * abs(top)))
            seen[task] = True
            yield task


@dataclass(frozen=True)
class GreedyDistance(_Greedy):
    """The task whose solutions are farthest from the iterate: maximum distance (Motzkin) control.

    >>> import forgetting as fg
    >>> fg.run(fg.families.two_lines(0.5, w_star=(1, 0)), GreedyDistance(), k=4).order.tolist()
    [1, 0, 1, 0]
    """

    def scores(self, tasks: TaskView) -> Array:
        return tasks.distances()


@dataclass(frozen=True)
class GreedyResidual(_Greedy):
    """The task of largest loss.

    >>> import forgetting as fg
    >>> fg.run(fg.families.two_lines(0.5, w_star=(1, 0)), GreedyResidual(repeat=False), k=2).order.tolist()
    [1, 0]
    """

    def scores(self, tasks: TaskView) -> Array:
        return np.sqrt(tasks.losses())
