"""Where an axis has its marks, and what they say."""

from __future__ import annotations

import math

__all__ = ["log_ticks", "span", "tick_label", "ticks"]

UP = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def span(values: list[float], log: bool) -> tuple[float, float]:
    """The ends of an axis that shows all values, with a little room.

    >>> span([1.0, 100.0], log=True), span([], log=True), span([0.0, 10.0], log=False)
    ((1.0, 100.0), (0.1, 1.0), (0.0, 10.0))
    """
    low, high = (min(values), max(values)) if values else (0.1, 1.0)
    if low == high:
        return (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    return low, high


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Powers of ten between the ends, every second or third one where there are many.

    >>> log_ticks(1, 1000), log_ticks(0.2, 0.7)
    ([1.0, 10.0, 100.0, 1000.0], [0.2, 0.5])
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first < 1:
        marks = [step * 10.0**power for power in range(first - 1, last + 1) for step in (1, 2, 5)]
        return [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
    every = next(step for step in (1, 2, 3, 4, 5, 10, 20, 50, 100) if (last - first) // step < most)
    return [10.0**power for power in range(first, last + 1) if power % every == 0]


def ticks(low: float, high: float, most: int = 6, *, whole: bool = False) -> list[float]:
    """Round numbers between the ends; whole ones where a fraction means nothing.

    >>> ticks(0, 60), ticks(2, 3, whole=True)
    ([0, 10, 20, 30, 40, 50, 60], [2, 3])
    """
    raw = max((high - low) / most, 1.0 if whole else 0.0)
    size = 10 ** math.floor(math.log10(raw))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


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
