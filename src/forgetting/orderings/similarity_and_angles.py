"""Orderings that compare the tasks with one another before the first step, and orders of angles."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag, as_word
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, register
from forgetting.orderings.view import TaskView

__all__ = ["DissimilarNeighbours", "HermanMeyer", "PeripheryFirst"]

EXACT = 12  # tasks up to which the best path is found exactly: 2^T T^2 sums
WORK = 3e7  # comparisons that the search for a first path may take, about a second
ROUNDS = 50  # the most rounds of reversals, of which few are needed


@dataclass(frozen=True)
class _BySimilarity(Ordering):
    """One order of the tasks, once or again and again, from their similarities."""

    by: Literal["rows", "solutions"] = "rows"
    repeat: bool = False
    law = laws.Fixed()

    def __post_init__(self) -> None:
        as_word(self.by, ("rows", "solutions"), "by")
        as_flag(self.repeat, "repeat")

    def limit(self, num_tasks: int) -> int | None:
        return None if self.repeat else num_tasks

    def order(self, similarity: Array) -> IntArray:
        """The order of one pass."""
        raise NotImplementedError

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        order = self.order(tasks.similarity(self.by))
        yield order
        while self.repeat:
            yield order


@register
@dataclass(frozen=True)
class PeripheryFirst(_BySimilarity):
    """The least representative task first: tasks in the order of their mean similarity to all others.

    This is the first rule of Z. Li and N. Hiratani (Optimal task order for continual learning of multiple tasks, ICML
    2025), who find it for random linear teachers in the limit of many dimensions. For given tasks nothing is promised:
    no bound covers the order before it is known, and then those on cyclic orders do (`Cyclic(order)`). `fg.audit` has
    its exact loss beside those of all orders.

    Args:
        by: "rows" for the mean of cos^2 of the principal angles between row spaces, "solutions" for the cosine between
            the least-norm solutions of the tasks. Ties go to the lowest number.
        repeat: whether the order comes again and again, instead of once.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.1]], [[0.0, 1.0]], [[1.0, 0.0]]], [[1.0], [1.0], [1.0]])
    >>> fg.run(tasks, PeripheryFirst(), k=3).order.tolist()   # the rows of tasks 0 and 2 are almost the same
    [1, 2, 0]
    """

    def order(self, similarity: Array) -> IntArray:
        return np.argsort(typicality(similarity), kind="stable").astype(np.int64)


@register
@dataclass(frozen=True)
class DissimilarNeighbours(_BySimilarity):
    """Tasks next to each other are dissimilar: a path through all tasks with the least sum of similarities along it.

    This is the second rule of Z. Li and N. Hiratani (ICML 2025; see `PeripheryFirst`, also for what is promised). Of
    the two directions of a path, the one that begins with the less representative task is taken. The path is the best
    one for at most 12 tasks; for more it is found by insertion and exchange from each start, and may not be the best.

    Args:
        by, repeat: as for `PeripheryFirst`.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.1]], [[1.0, 0.0]], [[0.1, 1.0]], [[0.0, 1.0]]], [[1.0]] * 4)
    >>> fg.run(tasks, DissimilarNeighbours(), k=4).order.tolist()   # 0 and 1 are alike, and 2 and 3
    [0, 3, 1, 2]
    """

    def order(self, similarity: Array) -> IntArray:
        T = len(similarity)
        path = _best_path(similarity) if T <= EXACT else _good_path(similarity)
        typical = typicality(similarity)
        if (typical[path[-1]], path[-1]) < (typical[path[0]], path[0]):
            path.reverse()
        return np.array(path, dtype=np.int64)


def typicality(similarity: Array) -> Array:
    """The mean similarity of each task to all others, rounded to 11 digits; 0 for a single task.

    >>> typicality(np.array([[1.0, 0.5], [0.5, 1.0]])).tolist()
    [0.5, 0.5]
    """
    T = len(similarity)
    return np.asarray(np.round((similarity.sum(axis=1) - np.diag(similarity)) / max(T - 1, 1), 11))


def _best_path(similarity: Array) -> list[int]:
    """The path with the least sum, by dynamic programming over the sets of visited tasks (Held and Karp)."""
    T = len(similarity)
    least = np.full((1 << T, T), np.inf)
    before = np.zeros((1 << T, T), dtype=np.int64)
    least[1 << np.arange(T), np.arange(T)] = 0.0
    for visited in range(1, 1 << T):
        ends = [task for task in range(T) if visited >> task & 1]
        rest = visited & (visited - 1)
        if not rest:
            continue
        for task in ends:
            sums = np.round(least[visited ^ (1 << task)] + similarity[:, task], 11)
            before[visited, task] = at = int(np.argmin(sums))
            least[visited, task] = sums[at]
    visited = (1 << T) - 1
    task = int(np.argmin(least[visited]))
    path = [task]
    while visited & (visited - 1):
        visited, task = visited ^ (1 << task), int(before[visited, task])
        path.append(task)
    return path


def _good_path(similarity: Array) -> list[int]:
    """A path with a small sum: the farthest task next, from the start that gives the best, then reversals of parts.

    O(T^2) for each of at most T starts (fewer for more than 300 tasks), and for each round of reversals.
    """
    T = len(similarity)
    best: tuple[float, list[int]] | None = None
    starts = np.argsort(typicality(similarity), kind="stable")[: max(1, int(WORK / T**2))]
    for start in starts.tolist():
        path, left = [start], np.ones(T, dtype=bool)
        left[start] = False
        while left.any():
            path.append(int(np.argmin(np.where(left, similarity[path[-1]], np.inf))))
            left[path[-1]] = False
        total = round(float(similarity[path[:-1], path[1:]].sum()), 9)
        if best is None or total < best[0]:
            best = total, path
    assert best is not None
    order = np.array(best[1])
    for _ in range(ROUNDS):
        improved = False
        for first in range(T - 1):
            # reversing order[first:last + 1] replaces at most two neighbours
            lasts = np.arange(first + 1, T)
            inner, ends = order[first], order[lasts]
            gain = np.zeros(len(lasts))
            if first > 0:
                gain += similarity[order[first - 1], inner] - similarity[order[first - 1], ends]
            follows = lasts < T - 1
            after = order[np.minimum(lasts + 1, T - 1)]
            gain += np.where(follows, similarity[ends, after] - similarity[inner, after], 0.0)
            at = int(np.argmax(gain))
            if gain[at] > 1e-9:
                order[first : lasts[at] + 1] = order[first : lasts[at] + 1][::-1]
                improved = True
        if not improved:
            break
    return [int(task) for task in order]


@dataclass(frozen=True)
class _DigitReversal(laws.Cycle):
    """The cycle of `HermanMeyer`, of any number of tasks."""

    def epoch(self, num_tasks: int) -> IntArray:
        order, factor, left = np.zeros(1, dtype=np.int64), 2, num_tasks
        while left > 1:
            if left % factor:
                factor = factor + 1 if factor * factor <= left else left
                continue
            left //= factor
            # the next digit of the step has the weight that is left
            order = (order[None] + left * np.arange(factor)[:, None]).ravel()
        return order


@register
@dataclass(frozen=True)
class HermanMeyer(Ordering):
    """A cycle in which neighbours are far apart in number, for tasks that are numbered by the angles of a scan.

    The number of the step is written with the prime factors of T as bases, the smallest first, and its digits are read
    in reverse (G. T. Herman and L. B. Meyer, Algebraic reconstruction techniques can be made computationally
    efficient, IEEE Trans. Med. Imaging 12, 1993). If T is prime, the order is 0, 1, ..., T - 1. Every cycle has every
    task once, so that bounds on cyclic orderings cover it.

    >>> HermanMeyer().first(TaskView(12), 12).tolist()
    [0, 6, 3, 9, 1, 7, 4, 10, 2, 8, 5, 11]
    >>> HermanMeyer().first(TaskView(8), 8).tolist(), HermanMeyer().first(TaskView(5), 6).tolist()
    ([0, 4, 2, 6, 1, 5, 3, 7], [0, 1, 2, 3, 4, 0])
    """

    law = _DigitReversal()
