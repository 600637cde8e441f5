"""Axes: where they begin and end, where they have their marks, and what these say, for numbers of any size."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

__all__ = ["Axis", "known", "log_ticks", "span", "tick_label", "ticks"]

UP = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
#: values that agree to this share are drawn as one: labels have six digits
CLOSE = 1e-4
#: an axis that is not logarithmic ends here, and is no shorter than the inverse
HUGE = 1e300
SMALLEST, LARGEST = 5e-324, sys.float_info.max


def known(value: float | None) -> TypeGuard[float]:
    """Whether there is a number to draw: not None, NaN or infinite.

    >>> known(1.0), known(None), known(math.inf)
    (True, False, False)
    """
    return value is not None and math.isfinite(value)


@dataclass(frozen=True)
class Axis:
    """From values to coordinates of the drawing.

    >>> Axis(1.0, 100.0, 0.0, 10.0, log=True).at(10.0)
    5.0
    """

    low: float
    high: float
    start: float = 0.0
    end: float = 1.0
    log: bool = False
    whole: bool = False

    def share(self, value: float, beyond: float = 0.0) -> float:
        """How far along the axis a value is, 0 to 1; what is outside is cut, `beyond` the ends at most."""
        if self.log:
            low, high = math.log10(self.low), math.log10(self.high)
            place = math.log10(min(max(value, SMALLEST), LARGEST))
        else:
            low, high, place = self.low, self.high, min(max(value, -2 * HUGE), 2 * HUGE)
        return min(max((place - low) / (high - low), -beyond), 1.0 + beyond)

    def at(self, value: float) -> float:
        """The coordinate, cut at the ends of the axis."""
        return round(self.start + (self.end - self.start) * self.share(value), 2)

    def words(self) -> str:
        """For the script of the page."""
        return f"{self.low} {self.high} {self.start} {self.end} {int(self.log)}"

    def ticks(self) -> list[tuple[float, str]]:
        """Values and labels of the marks."""
        found = log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high, whole=self.whole)
        return [(value, tick_label(value, self.log)) for value in found]


def span(values: Iterable[float], log: bool, air: float = 0.0) -> tuple[float, float]:
    """The ends of an axis that shows all values; `air` is the share of a logarithmic axis that is left at each end.

    Values that nearly agree are in the middle of an axis that is longer than they need.

    >>> span([1.0, 100.0], log=True), span([], log=True), span([0.0, 10.0], log=False)
    ((1.0, 100.0), (0.1, 1.0), (0.0, 10.0))
    >>> span([3.0, 3.0], log=False), span([1.0, 1.0 + 1e-16], log=True)
    ((2.5, 3.5), (0.5, 2.0))
    """
    seen = list(values) or [0.1, 1.0]
    low, high = min(seen), max(seen)
    if log:
        size = math.log10(high) - math.log10(low)
        more = 10.0 ** (air * size) if size > CLOSE else 2.0
        return max(low / more, SMALLEST), min(high * more, LARGEST)
    low, high = (min(max(value, -HUGE), HUGE) for value in (low, high))
    size = max(abs(low), abs(high))
    more = 0.0 if high - low > max(CLOSE * size, 1 / HUGE) else max(0.5, 0.05 * size)
    return low - more, high + more


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Powers of ten between the ends, every second or third one where there are many; round numbers where few.

    >>> log_ticks(1, 1000), log_ticks(0.2, 0.7), log_ticks(0.21, 0.45)
    ([1.0, 10.0, 100.0, 1000.0], [0.2, 0.5], [0.25, 0.3, 0.35, 0.4, 0.45])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        marks = [step * 10.0**power for power in range(first - 1, last + 1) for step in (1, 2, 5)]
        found = [mark for mark in marks if low * (1 - 1e-9) <= mark <= min(high * (1 + 1e-9), LARGEST)]
        return found if len(found) > 1 else ticks(low, high)
    every = next(step for step in (1, 2, 3, 4, 5, 10, 20, 50, 100) if (last - first) // step < most)
    return [10.0**power for power in range(first, last + 1) if power % every == 0]


def ticks(low: float, high: float, most: int = 6, *, whole: bool = False) -> list[float]:
    """Round numbers between the ends; whole ones where a fraction means nothing.

    >>> ticks(0, 60), ticks(2, 3, whole=True)
    ([0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0], [2.0, 3.0])
    """
    raw = max(high / most - low / most, 1.0 if whole else SMALLEST)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next((size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9)), raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{i * step:.12g}") for i in range(first, last + 1)]


def tick_label(value: float, log: bool) -> str:
    """Short, with powers of ten where the axis is logarithmic.

    >>> [tick_label(value, True) for value in (1.0, 10.0, 0.001, 0.5)], tick_label(0.25, False)
    (['1', '10', '10⁻³', '0.5'], '0.25')
    """
    if log and value > 0:
        power = math.log10(value)
        if abs(power - round(power)) < 1e-9 and not -2 < power < 3:
            return "10" + str(round(power)).translate(UP)
    return f"{value:g}"
