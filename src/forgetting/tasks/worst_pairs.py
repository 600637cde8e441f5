"""The worst pairs of tasks under random orders, in closed form: two lines in a plane, with w* halfway between them."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Worst", "two_lines_forgetting", "two_lines_loss", "two_lines_power"]


class Worst(NamedTuple):
    """The largest value over all angles between two lines, and the cosine of the angle at which it is reached."""

    value: float
    cosine: float


def two_lines_loss(k: int) -> Worst:
    """The largest E L(w_k) over all pairs of subspaces, with replacement, at |w_0 - w*| R = 1.

    max over c = cos(theta) of 1/8 (1 - c^2) (1 + c) ((1 + c^2)/2)^(k-1), reached by two lines with w* halfway. The
    derivative vanishes where (2k+1) c^3 - c^2 - (2k-5) c - 1 = 0, which has one root in (0, 1).

    >>> round(two_lines_loss(1).value * 27, 12)
    4.0
    """
    low, high = 0.0, 1.0
    for _ in range(60):  # the cubic is -1 at 0 and 4 at 1
        c = (low + high) / 2
        if (2 * k + 1) * c**3 - c**2 - (2 * k - 5) * c - 1 < 0:
            low = c
        else:
            high = c
    c = (low + high) / 2
    return Worst((1 - c * c) * (1 + c) / 8 * math.exp((k - 1) * math.log((1 + c * c) / 2)), c)


def two_lines_forgetting(k: int) -> Worst:
    """The largest E F(k) over all pairs of subspaces, with replacement, at |w_0 - w*| R = 1.

    With u = sin^2(theta), s = 1 - u, n = (1 + cos(theta))/2 and N visits to the task that was not learned last,
    E[|z_k|^2 N] = n s/2 * sum_{j=1..k-1} j b^(j-1) a^(k-1-j) for a = u/2, b = 1 - u/2, and F = u/(2k) times that. The
    maximum is at u = 2/(k+1) or near it, and w* is halfway between the lines.

    >>> two_lines_forgetting(1).value
    0.0
    >>> round(two_lines_forgetting(2).value / two_lines_power(2).value, 12)
    0.5
    """

    def value(u: float) -> float:
        s, b = 1 - u, math.exp((k - 1) * math.log1p(-u / 2))
        total = (k * b * s - (b * (1 - u / 2) - (u / 2) ** k)) / s**2
        return u / (2 * k) * (1 + math.sqrt(s)) / 2 * s / 2 * total

    if k < 2:
        return Worst(0.0, 1.0)
    low, high = 0.0, min(0.75, 4 / k)
    for _ in range(90):  # it rises to its maximum and falls from there
        third = (high - low) / 3
        low, high = (low + third, high) if value(low + third) < value(high - third) else (low, high - third)
    return Worst(value((low + high) / 2), math.sqrt(1 - (low + high) / 2))


def two_lines_power(power: float) -> Worst:
    """max over c of 1/8 (1 - c^2) (1 + c) c^power: E L of two lines, w* halfway, whose tasks change power/2 times.

    The derivative vanishes where (3 + power) c^2 - c - power = 0.

    >>> round(two_lines_power(0).value * 27, 12)
    4.0
    """
    c = (1 + math.sqrt(1 + 4 * power * (3 + power))) / (2 * (3 + power))
    return Worst((1 - c * c) * (1 + c) / 8 * c**power, c)
