"""The figures of an audit: all orders as distributions, which opens the page, and forgetting along a pass."""

from __future__ import annotations

from forgetting.auditing.measures import Measure
from forgetting.auditing.result import Audit
from forgetting.figures.items import Curves, Panel, Series, Spread

__all__ = ["along", "lead_figure"]

MARKS = ("given order", "given order, {} passes (cyclic)", "order that forgets least", "order that forgets most")


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
    units = "; ".join(f"{measure.name}: {measure.unit}" for measure in audit.measures)
    return Spread(
        "orders-tried",
        "All orders after one pass" if audit.tried_exact else "Random orders after one pass",
        f"Gray: {orders}, each learned once. {units[:1].upper()}{units[1:]}.",
        "orders",
        tuple(name.format(audit.passes) for name in MARKS),
        tuple(_panel(measure) for measure in audit.measures),
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
    """The unit as it stands beside an axis."""
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
    floor = 1e-13 * audit.fit.start or None
    series = [
        Series(one.name, steps, one.forgetting, method="one run", group=at) for at, one in enumerate(audit.passes_along)
    ]
    random = audit.ordering("random permutation")
    low, high = (None, None) if random.exact else ((random.forgetting_low,), (random.forgetting_high,))
    end, value = steps[-1:], (random.forgetting,)
    series.append(Series("random, at the end", end, value, low, high, method=random.method, group=len(series)))
    wide = max((value for one in series for value in one.y if value is not None), default=0.0)
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
