"""The different orders of things of which some are alike: their number, and a list of them."""

from __future__ import annotations

import math

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
