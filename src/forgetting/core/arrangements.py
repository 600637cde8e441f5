"""Orders of things of which some are alike, and ordered partitions of things: their number, and lists of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from forgetting.core.arrays import IntArray


def count_orders(counts: IntArray) -> int:
    """T! / prod n_i!, the number of different orders of things that come n_i times.

    >>> count_orders(np.array([1, 1, 1])), count_orders(np.array([6, 6]))
    (6, 924)
    """
    return math.factorial(int(counts.sum())) // math.prod(math.factorial(int(n)) for n in counts)


def distinct_orders(counts: IntArray) -> IntArray:
    """All different orders of things that come n_i times, one per row.

    >>> distinct_orders(np.array([2, 1])).tolist()
    [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    """
    orders = np.zeros((1, 0), dtype=np.int64)
    used = np.zeros((1, len(counts)), dtype=np.int64)
    for _ in range(int(counts.sum())):
        fits = used < counts
        rows, things = np.nonzero(fits)
        orders = np.column_stack([orders[rows], things])
        used = used[rows]
        used[np.arange(len(rows)), things] += 1
    return orders


@dataclass(frozen=True)
class OrderedPartitions:
    """The ordered partitions of 0, 1, ..., n - 1 into parts of the given sizes.

    A partition is a row of n numbers: those of the first part, of the second part, ...; of a part, in rising order.

    >>> pairs = OrderedPartitions((2, 2))
    >>> pairs.count, pairs.all()[:2].tolist(), pairs.num_sets
    (6, [[0, 1, 2, 3], [0, 2, 1, 3]], 6)
    """

    sizes: tuple[int, ...]

    @property
    def length(self) -> int:
        """n, the number of things."""
        return sum(self.sizes)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The places of a row at which parts begin, and n."""
        return (0, *np.cumsum(self.sizes).tolist())

    @property
    def count(self) -> int:
        """The number of ordered partitions, n! / (n_1! n_2! ...)."""
        return count_orders(np.array(self.sizes))

    @property
    def num_sets(self) -> int:
        """The number of sets that can be a part."""
        return sum(math.comb(self.length, size) for size in set(self.sizes))

    def sets(self) -> list[tuple[int, ...]]:
        """All sets that can be a part."""
        return [members for size in sorted(set(self.sizes)) for members in combinations(range(self.length), size)]

    def all(self) -> IntArray:
        """All ordered partitions, one per row."""
        return np.asarray(np.argsort(distinct_orders(np.array(self.sizes)), axis=1, kind="stable"))

    def draw(self, n: int, rng: np.random.Generator) -> IntArray:
        """n independent ordered partitions, each of all with the same probability."""
        return self.sorted(rng.permuted(np.tile(np.arange(self.length), (n, 1)), axis=1))

    def sorted(self, rows: IntArray) -> IntArray:
        """The rows with each part in rising order, so that equal partitions are equal rows."""
        return np.concatenate([np.sort(rows[:, low:high], axis=1) for low, high in pairwise(self.cuts)], axis=1)
