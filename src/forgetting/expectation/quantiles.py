"""Quantiles of simulated values, with intervals between order statistics, which hold for every distribution.

Of n independent values, the number that are at most the p-quantile xi_p = inf{x : F(x) >= p} is binomial with a
success probability of at least p, and the number below it with one of at most p. So the i-th smallest value is above
xi_p with probability at most P(Bin(n, p) < i), and below it with probability at most P(Bin(n, p) >= i), whatever F is
(David and Nagaraja, Order Statistics, 2003, section 7.1). Means of heavy-tailed values are decided by rare large ones;
quantiles are not.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, as_number
from forgetting.errors import InvalidInputError
from forgetting.expectation.intervals import Range
from forgetting.expectation.quantities import Quantity

__all__ = ["LEVELS", "Quantile", "at_level", "column_quantiles", "is_useless", "least_and_most"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
USELESS = 100.0  # an interval is no use if it is that many times wider than what it holds and most values are large


class Quantile(NamedTuple):
    """A quantile of the values of single runs, and an interval that holds it.

    Attributes:
        value: the least value that the share `level` of the runs does not exceed.
        low, high: the ends of the interval.
    """

    value: Any
    low: Any
    high: Any


def column_quantiles(samples: Array, confidence: float, ends: Range) -> Array:
    """Quantiles of each column of samples (along the first axis) at all LEVELS: last axes (level, (value, low, high)).

    `ends` are what no value can leave; an interval ends there if there are too few samples for another end. NaN in a
    column makes all its quantiles NaN. Cost: a selection in each column.

    >>> samples = np.random.default_rng(0).standard_cauchy(4000)
    >>> value, low, high = column_quantiles(samples, 0.99, (-np.inf, np.inf))[LEVELS.index(0.5)]
    >>> bool(low < 0 < high), bool(high - low < 0.15)
    (True, True)
    """
    count = len(samples)
    flat = samples.reshape(count, -1)
    places = np.array([_places(count, level, confidence) for level in LEVELS])
    inside = np.clip(places, 0, count - 1)
    found = np.empty((flat.shape[1], len(LEVELS), 3))
    for values, column in zip(found, flat.T, strict=True):
        if np.isnan(column).any():
            values[:] = np.nan
            continue
        values[:] = np.partition(column, np.unique(inside))[inside]
        values[places < 0] = min(ends[0], float(column.min()))
        values[places >= count] = max(ends[1], float(column.max()))
    return found.reshape(*samples.shape[1:], len(LEVELS), 3)


def _places(count: int, level: float, confidence: float) -> tuple[int, int, int]:
    """Which of `count` sorted values are the quantile and the ends of its interval, from 0; outside, if there is none.

    >>> _places(10, 0.5, 0.95), _places(4, 0.5, 0.95)   # P(Bin(10, 1/2) <= 1) = 0.0107, P(Bin(4, 1/2) = 0) = 0.0625
    ((4, 1, 8), (1, -1, 4))
    """
    from scipy.special import bdtr

    def below(share: float) -> int:
        """How many numbers j have P(Bin(count, share) <= j) <= (1 - confidence) / 2."""
        return bisect_right(range(count), (1 - confidence) / 2, key=lambda j: float(bdtr(j, count, share)))

    # the number of values above the quantile is binomial, too
    return max(0, int(np.ceil(count * level - 1e-9)) - 1), below(level) - 1, count - below(1 - level)


def least_and_most(quantity: Quantity, known: Range | None) -> Range:
    """What values of a quantity cannot leave: its range, if that is known; else, squares are not negative."""
    return known or ((-np.inf if quantity.subtracts_kept else 0.0), np.inf)


def at_level(table: Array, level: float) -> Quantile:
    """The quantile at one of the LEVELS from what `column_quantiles` gave."""
    number = as_number(level, "level")
    if number not in LEVELS:
        raise InvalidInputError(f"quantiles are kept at the levels {', '.join(map(str, LEVELS))}; got {number:g}")
    parts = (table[..., LEVELS.index(number), part] for part in range(3))
    return Quantile(*(float(part) if part.ndim == 0 else part for part in parts))


def is_useless(mean: Array, interval: Array, quantiles: Array) -> Any:
    """Whether the interval of a mean is so much wider than the mean and the quantiles are large that it says nothing.

    >>> quantiles = np.full((2, len(LEVELS), 3), [[[0.5]], [[1e-12]]])
    >>> is_useless(np.array([0.5, 1.94e-10]), np.array([[0.4, 0.6], [0.0, 0.15]]), quantiles).tolist()
    [False, True]
    """
    size = np.maximum(np.abs(mean), np.max(np.abs(quantiles[..., 0]), axis=-1))
    return np.diff(interval, axis=-1)[..., 0] > USELESS * size
