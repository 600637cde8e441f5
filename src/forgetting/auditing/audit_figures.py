"""The figures of an audit: all orders tried, forgetting along a pass, and values over pairs of tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from forgetting.auditing.words import capital
from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.core.text import joined
from forgetting.figures.items import Curves, Matrix, Panel, Series, Spread

if TYPE_CHECKING:
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.result import Audit


MARKS = ("given order", "given order, {} passes (cyclic)", "order that forgets least", "order that forgets most")
SQUARES = 60  # rows of a matrix that are still drawn one by one
ALIKE = 0.2  # values that differ by less than this part of the largest make no picture


def asked_first(audit: Audit) -> list[Measure]:
    """The measures, accuracies before losses, and of these those of held-out rows first."""
    accuracies = [measure for measure in audit.measures if measure.is_accuracy]
    return [*reversed(accuracies), *(measure for measure in audit.measures if not measure.is_accuracy)]


def units_of(measures: Sequence[Measure]) -> list[str]:
    """The unit of each measure, of measures with the same unit once."""
    return [
        f"{joined([measure.name for measure in measures if measure.unit == unit])}: {unit}"
        for unit in dict.fromkeys(measure.unit for measure in measures)
    ]


def lead_figure(audit: Audit) -> Spread | None:
    """The values of all orders tried, a panel for each measure; None in audits of earlier versions.

    >>> import forgetting as fg
    >>> figure = lead_figure(fg.audit(fg.families.two_lines(0.5)))
    >>> figure.names[0], [panel.xlabel for panel in figure.panels]
    ('given order', ['training loss (half the squared residual, summed over rows)'])
    """
    if not audit.measures:
        return None
    orders = f"all {audit.tried:,} orders" if audit.tried_exact else f"{audit.tried:,} random orders"
    measures = asked_first(audit)
    units = "; ".join(units_of(measures))
    return Spread(
        "orders-tried",
        "All orders after one pass" if audit.tried_exact else "Random orders after one pass",
        f"Gray: {orders}, each learned once. {capital(units)}.",
        "orders",
        tuple(name.format(audit.passes) for name in MARKS),
        tuple(_panel(measure) for measure in measures),
    )


def _panel(measure: Measure) -> Panel:
    marks = measure.given, measure.cyclic, measure.best, measure.worst
    factor = 100.0 if measure.is_accuracy else 1.0
    return Panel(
        f"{measure.name} ({_short(measure)})",
        tuple(factor * value for value in measure.values),
        tuple(factor * mark for mark in marks),
    )


def _short(measure: Measure) -> str:
    """The unit in the short form that fits beside an axis."""
    if measure.is_accuracy:
        return "% of rows"
    words = measure.unit.split(";")[0].removeprefix("increase of the loss since a task was learned: ")
    if words.endswith(" outputs"):  # all of it is in the caption, and does not fit here
        return "mean over rows, summed over outputs" if "mean over" in words else "summed over rows and outputs"
    for long, short in (
        (" of a task, ", ", "),
        ("its mean over the rows", "mean over rows"),
        ("summed over its rows", "summed over rows"),
        (", at the worst row of a task", ", worst row"),
    ):
        words = words.replace(long, short)
    return words


def along(audit: Audit) -> Curves:
    """Forgetting after each step of a pass, for the orders of `Audit.passes_along`, and a random order at the end."""
    steps = tuple(float(t) for t in range(1, audit.num_tasks + 1))
    floor = ROUNDING * audit.fit.start or None
    series = [
        Series(single.name, steps, single.forgetting, method="one run", group=group)
        for group, single in enumerate(audit.passes_along)
    ]
    random = audit.ordering("random permutation")
    low, high = (None, None) if random.exact else ((random.forgetting_low,), (random.forgetting_high,))
    end, value = steps[-1:], (random.forgetting,)
    series.append(Series("random, at the end", end, value, low, high, method=random.method, group=len(series)))
    wide = max((value for curve in series for value in curve.y if value is not None), default=0.0)
    log = wide > 0 and wide > (floor or 0.0)
    return Curves(
        "along",
        "Forgetting along one pass",
        "Each task is learned once.",
        "k, tasks learned",
        "forgetting",
        tuple(series),
        xlog=audit.num_tasks > 20,
        ylog=log,
        floor=floor if log else None,
    )


def pair_matrix(
    audit: Audit, key: str, title: str, xlabel: str, ylabel: str, values: tuple[tuple[float, ...], ...]
) -> Matrix | None:
    """The picture of values over pairs of tasks; None if all pairs are alike, so that it would show nothing."""
    if not _shows_something(np.array(values), ROUNDING * audit.fit.start if key == "influence" else 1e-9):
        return None
    names = tuple(row.name for row in audit.tasks)
    caption = ""
    if len(names) > SQUARES:
        size = math.ceil(len(names) / SQUARES)
        starts = np.arange(0, len(names), size)
        with np.errstate(over="ignore"):
            sums = np.add.reduceat(np.add.reduceat(np.array(values), starts, axis=0), starts, axis=1)
        counts = np.diff([*starts, len(names)])
        means = sums / np.outer(counts, counts)
        if not _shows_something(means, float(np.std(values)) / size):
            return None
        values = tuple(tuple(row) for row in means.tolist())
        names = tuple(names[i] for i in starts.tolist())
        caption = f"Each square is the mean over {size} x {size} tasks."
    return Matrix(key, title, caption, xlabel, ylabel, names, names, values)


def _shows_something(values: Array, floor: float) -> bool:
    """Whether the values off the diagonal differ by more than the floor and by more than 20 % of the largest.

    >>> [_shows_something(np.array([[0.0, 1.0], [other, 0.0]]), 0.0) for other in (1.02, 2.0)]
    [False, True]
    """
    off = values[~np.eye(len(values), dtype=bool)]
    if len(off) < 2:
        return False
    return bool(np.ptp(off) > max(floor, ALIKE * float(np.abs(off).max())))
