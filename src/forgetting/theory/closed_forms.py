"""The functions that several bounds share."""

from __future__ import annotations

import math
from typing import NamedTuple

__all__ = ["Worst", "last_iterate", "spectral", "spiral", "two_lines_forgetting", "two_lines_loss", "two_lines_power"]


def spectral(n: float) -> float:
    """max over lambda in [0, 1] of lambda^n (1 - lambda) = n^n / (n+1)^(n+1), which is below 1/(e n).

    >>> spectral(0), spectral(1)
    (1.0, 0.25)
    """
    return math.exp(-n * math.log1p(1 / n)) / (n + 1) if n else 1.0


def last_iterate(x: float, k: int) -> float:
    """The bound on E f(w_k; next task) in units of beta |w_0 - w*|^2, for x = eta beta in (0, 2).

    `lem:regret_bound` and the product inside the proof of `lem:ratio_avg_last`, before 1 + u <= e^u is used:
    1 / (2 x (2 - x) (k + 1)) * prod_{j=1..k} (1 + a/j) with a = x (1 - x/4). Cost: constant.

    >>> round(last_iterate(1.0, 1), 12)
    0.4375
    """
    a = x * (1 - x / 4)
    if k < 1000:
        product = math.exp(math.lgamma(k + 1 + a) - math.lgamma(1 + a) - math.lgamma(k + 1))
    else:  # differences of lgamma lose digits; the expansion about the midpoint is good to k^-4
        middle = k + (1 + a) / 2
        ratio = middle**a * (1 - a * (a * a - 1) / (24 * middle**2))
        product = ratio / math.gamma(1 + a)
    return product / (2 * x * (2 - x) * (k + 1))


def spiral(tasks: int, cycles: int) -> float:
    """max |z^cycles (1 - z)| over the numbers <x, Ax> of all products A of so many projections, |x| = 1.

    They are products of n = tasks + 1 inner products of unit vectors in a circle, and fill the set that the sinusoidal
    spiral r = (cos(pi/n) / cos((pi - phi)/n))^n bounds, 0 <= phi <= 2 pi. For many cycles the maximum is about
    1 / (e cycles sin(pi/n)). Cost: constant.

    >>> round(spiral(2, 10**6) * 10**6, 5)  # 2 / (e sqrt(3))
    0.42479
    """
    n = tasks + 1

    def value(phi: float) -> float:
        log_r = n * (math.log(math.cos(math.pi / n)) - math.log(math.cos((math.pi - phi) / n)))
        r = math.exp(log_r)
        return math.exp(cycles * log_r) * math.hypot(1 - r, 2 * math.sqrt(r) * math.sin(phi / 2))

    low, high = 0.0, math.pi
    for _ in range(150):  # it rises to its maximum and falls from there
        third = (high - low) / 3
        low, high = (low + third, high) if value(low + third) < value(high - third) else (low, high - third)
    return value((low + high) / 2)


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
