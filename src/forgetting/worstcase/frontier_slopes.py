"""Local slopes of the frontier: what neighbouring numbers of steps say about the exponent of a rate."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["SAYS", "Slope", "slope_between"]

#: what a reader should know before quoting a slope
SAYS = (
    "A slope is -d log(value) / d log(k) between a row and the one before it. It compares the largest values that are "
    "known, which are lower bounds, so that it says what these tasks do between these k, and nothing about the limit: "
    "neither slopes below 1 nor slopes at 1 decide the exponent between 3/4 (proved) and 1 (attained by two tasks). "
    "Where both rows have upper bounds, the slope of the supremum itself is proved to be in the range beside it."
)


class Slope(NamedTuple):
    """-d log(value) / d log(k) between two rows of the frontier.

    Attributes:
        value: of the lower bounds.
        least, most: what the slope of the supremum is between, by the lower and upper bounds of both rows.
    """

    value: float
    least: float
    most: float


def slope_between(first: tuple[int, float, float], second: tuple[int, float, float]) -> Slope:
    """The slope between two rows (k, lower, upper), the second with the larger k.

    >>> [round(number, 6) for number in slope_between((1, 0.2, 0.2), (2, 0.1, 0.11))]
    [1.0, 0.862496, 1.0]
    """
    (k1, low1, high1), (k2, low2, high2) = first, second
    if not (low1 > 0 and low2 > 0):
        return Slope(math.nan, math.nan, math.nan)
    step = math.log(k2 / k1)
    return Slope(math.log(low1 / low2) / step, math.log(low1 / high2) / step, math.log(high1 / low2) / step)
