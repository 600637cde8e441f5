"""The functions that several bounds share."""

from __future__ import annotations

import math


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
