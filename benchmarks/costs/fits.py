"""Exponents of costs: least squares on logarithms, over the upper part of an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

LEAST = 3  # points of a fit
Point = tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """cost = cost at the last point * (x / last x)^exponent, or base^(x - last x) if `exponential`.

    Attributes:
        exponent: the slope, or log(base).
        error: the standard error of the slope.
        last: the last measured point (x, cost).
        points: how many points the fit has.
        exponential: whether the logarithm of the cost is linear in x rather than in log x.
    """

    exponent: float
    error: float
    last: Point
    points: int
    exponential: bool = False

    def at(self, x: float) -> float:
        """The cost at x by this law, through the last measured point."""
        end, cost = self.last
        return cost * float(np.exp(self.exponent * (x - end)) if self.exponential else (x / end) ** self.exponent)

    @property
    def grows(self) -> bool:
        """Whether the cost depends on x, as far as the fit can tell."""
        return self.exponent > max(0.05, self.error)

    def at_least(self, power: float) -> Fit:
        """The same with an exponent of `power` at least, if the cost grows.

        A smaller exponent comes from what does not depend on x, and would promise too much far beyond the data.
        """
        return replace(self, exponent=max(self.exponent, power)) if self.grows and not self.exponential else self

    def reach(self, cost: float) -> float:
        """The x at which the law has this cost; infinite where the cost does not grow."""
        end, known = self.last
        if not self.grows:
            return np.inf
        steps = np.log(cost / known) / self.exponent
        return float(end + steps) if self.exponential else float(end * np.exp(min(steps, 700.0)))


def fit(points: Sequence[Point], floor: float, *, exponential: bool = False) -> Fit | None:
    """The law of the upper two thirds of the points, at least three; None if no more than `floor` was measured there.

    Costs at the lower end of an axis are mostly what does not depend on it.

    >>> law = fit([(x, 3e-6 * x**2) for x in (10, 20, 40, 80, 160)], floor=1e-3)
    >>> round(law.exponent, 6), law.points, round(law.reach(3.0))
    (2.0, 4, 1000)
    """
    points = sorted(points)
    used = points[-max(LEAST, len(points) - len(points) // 3) :]
    used = [point for point in used if point[1] > floor]
    if len(used) < LEAST or used[-1] != points[-1]:
        return None
    x = np.array([point[0] for point in used])
    u, v = x if exponential else np.log(x), np.log([point[1] for point in used])
    centred = u - u.mean()
    spread = float(centred @ centred)
    slope = float(centred @ v) / spread
    left = v - v.mean() - slope * centred
    error = float(np.sqrt(left @ left / (len(used) - 2) / spread))
    return Fit(slope, error, (float(used[-1][0]), float(used[-1][1])), len(used), exponential)


def crossing(first: Sequence[Point], second: Sequence[Point]) -> float | None:
    """The x from which on the second curve is below the first, between measured points; None if it is nowhere.

    >>> round(crossing([(1, 1), (100, 100)], [(1, 10), (100, 10)]), 6)
    10.0
    """
    others = dict(second)
    gaps = [(np.log(x), np.log(cost / others[x])) for x, cost in sorted(first) if x in others]
    if not gaps or gaps[-1][1] <= 0:
        return None
    for (a, low), (b, high) in zip(gaps[-2::-1], gaps[:0:-1], strict=True):
        if low <= 0:
            return float(np.exp(a + (b - a) * low / (low - high)))
    return float(np.exp(gaps[0][0]))
