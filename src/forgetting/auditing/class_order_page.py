"""The audit of class orders in sentences, figures and tables, for the terminal and the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.auditing.distribution import distribution
from forgetting.auditing.words import between, capital, percent, points, rate
from forgetting.core.text import joined, large, one_line
from forgetting.expectation.intervals import LEVELS
from forgetting.figures.items import Curves, Item, Matrix, Series, Table
from forgetting.report.document import Report, Section
from forgetting.report.provenance import versions

if TYPE_CHECKING:
    from forgetting.auditing.class_order_result import ClassOrderAudit, ClassOrderMeasure, FoundClassOrder


EQUAL = 1e-9  # difference of accuracies that is rounding
POINT = 0.01  # one percentage point, below which the class order hardly matters
NAMED = 3  # pairs of classes in the opening
WIDEST = 90  # letters of a class order in a sentence
ENDS = 10  # pairs of classes in a table, of either sign
ERRORS = (0.01, 0.005)  # errors of a mean for which the number of orders is given
THE_LIE = "Lai et al. 2025, arXiv 2509.22580"


def opening_of(audit: ClassOrderAudit) -> tuple[str, ...]:
    """At most five sentences: how much final accuracy depends on the class order, and what to do about that."""
    if _spread(audit) <= EQUAL:
        return (_dependence(audit),)
    return (_dependence(audit), *_given(audit), _few(audit), _needed(audit), *_pairs(audit))


def _spread(audit: ClassOrderAudit) -> float:
    """The difference of the best and the worst final accuracy."""
    return abs(audit.measures[0].best.value - audit.measures[0].worst.value)


def _all(audit: ClassOrderAudit) -> str:
    return f"all {audit.num_orders:,} class orders" if audit.exact else f"{audit.drawn:,} random class orders"


def _dependence(audit: ClassOrderAudit) -> str:
    final = audit.measures[0]
    low, high = sorted((final.worst.value, final.best.value))
    rows = "held-out rows" if audit.held_out else "learned rows, since no others were given"
    if _spread(audit) <= EQUAL:
        return f"The class order does not matter: the final accuracy ({rows}) is {rate(high)} in {_all(audit)}."
    verb = "hardly depends" if high - low < POINT else "depends"
    sd = points(final.sd)
    if not audit.exact:
        sd += f", at most {points(final.sd_interval[1])} with 99 % confidence"
    spread = f"it is {rate(final.mean)} on average, from {rate(low)} to {rate(high)}, with a standard deviation of {sd}"
    extremes = "" if audit.exact else (
        f"; the two extremes were found by a search that tried {audit.searched:,} more, and others may lie beyond"
    )  # fmt: skip
    number = f"{100 * (high - low):.1f} points" if high - low < 0.1 else f"{100 * (high - low):.0f} points"
    return (
        f"The final accuracy ({rows}) {verb} on the class order, by {number} between the worst and the best: over "
        f"{_all(audit)}, {spread}{extremes}."
    )


def _given(audit: ClassOrderAudit) -> tuple[str, ...]:
    final, given = audit.measures[0], audit.given
    if given is None or final.better is None:
        return ()
    return (
        f"The given class order, {_words(audit, given)}, reaches {rate(given.value)}: {percent(final.better, 1.0)} of "
        f"{_all(audit)} are better.",
    )


def _few(audit: ClassOrderAudit) -> str:
    few = audit.few[0]
    return (
        f"Three random class orders, as papers average them: mean +- standard deviation misses the mean over class "
        f"orders in {percent(1 - few.sd_covers, 1.0)} of cases, the standard deviation is less than half the true one "
        f"in {percent(few.halved, 1.0)}, and a t-interval (95 %), which holds the mean in "
        f"{percent(few.t_covers, 1.0)}, is {points(few.t_width)} wide to each side."
    )


def _needed(audit: ClassOrderAudit) -> str:
    final = audit.measures[0]
    most = "" if audit.exact else (
        f" (at most {_at_most(audit, final, ERRORS[0])} and {_at_most(audit, final, ERRORS[1])}, since the standard "
        "deviation was itself estimated)"
    )  # fmt: skip
    one, half = (_orders(audit, final.orders_needed(error)) for error in ERRORS)
    orders = "random class order" if one == "1" else "class orders" if one.startswith("all") else "random class orders"
    return (
        f"For a mean within 1 point of the mean over all, in 95 % of cases, average {one} {orders}; within 0.5 "
        f"points, {half}{most}."
    )


def _at_most(audit: ClassOrderAudit, measure: ClassOrderMeasure, error: float) -> str:
    return _orders(audit, replace(measure, sd=measure.sd_interval[1]).orders_needed(error))


def _orders(audit: ClassOrderAudit, needed: int) -> str:
    """A number of random class orders in words: all of them, where that is not more."""
    return f"{needed:,}" if needed < audit.num_orders else f"all {audit.num_orders:,}"


def _pairs(audit: ClassOrderAudit) -> tuple[str, ...]:
    """The pairs of classes that should not share a task, if any costs as much as is worth a sentence."""
    least = max(audit.measures[0].sd, 1e-9)
    harmful = [pair for pair in audit.pairs if pair.interval[1] < 0 and pair.difference < -0.25 * least]
    if not harmful:
        return ()
    listed = joined(
        f"{one_line(pair.classes[0], 20)} and {one_line(pair.classes[1], 20)} ({100 * pair.difference:.1f} points)"
        for pair in harmful[:NAMED]
    )
    return (f"Classes that should not share a task, by the mean final accuracy that this costs: {listed}.",)


def tasks_of(audit: ClassOrderAudit, found: FoundClassOrder) -> tuple[str, ...]:
    """The classes of each task of a class order, in words."""
    parts = np.split(np.array(found.order), np.cumsum(audit.sizes)[:-1])
    return tuple(", ".join(part.tolist()) for part in parts)


def _words(audit: ClassOrderAudit, found: FoundClassOrder) -> str:
    return one_line(" | ".join(tasks_of(audit, found)), WIDEST)


# --------------------------------------------------------------------------------------------------- figures and tables


def histogram(audit: ClassOrderAudit) -> Curves:
    """The distribution of the final accuracy, with the extremes, the mean and the given order."""
    final = audit.measures[0]
    marks = [("best", final.best.value), ("worst", final.worst.value), ("mean", final.mean)]
    if audit.given is not None:
        marks.append(("given order", audit.given.value))
    return distribution(
        "class orders",
        capital(f"Final accuracy over {_all(audit)}"),
        "final accuracy, %",
        100 * np.linspace(*final.edges, len(final.shares) + 1),
        100 * np.array(final.shares),
        [(name, 100 * value, rate(value)) for name, value in marks],
    )


def along(audit: ClassOrderAudit) -> Curves:
    """The accuracy of the classes seen so far after each task: of the best, the worst and the given class order."""
    final = audit.measures[0]
    named = [("best", final.best), ("worst", final.worst)]
    named += [] if audit.given is None else [("given", audit.given)]
    steps = tuple(float(t) for t in range(1, len(audit.sizes) + 1))
    series = tuple(
        Series(f"{name} class order", steps, tuple(100 * value for value in found.seen), group=group)
        for group, (name, found) in enumerate(named, 1)
    )
    caption = "Best and worst by final accuracy; rows of the classes seen so far."
    return Curves(
        "along", "Accuracy of the classes seen so far", caption, "tasks learned", "accuracy, %", series, xlog=False,
        ylog=False,
    )  # fmt: skip


def report_of(audit: ClassOrderAudit) -> Report:
    """The audit as a report: the distribution and at most five sentences, then all sections."""
    sections = [_distribution(audit), _extremes(audit), _averaging(audit), *_classes(audit)]
    meta = {
        "classes": len(audit.class_names),
        "sizes of tasks": ", ".join(map(str, audit.sizes)),
        "features": audit.dim,
        "learned rows": audit.rows,
        "rows scored": f"{audit.scored} {'held out' if audit.held_out else 'learned'}",
        "predictions": "among the classes seen so far" if audit.outputs == "all" else "among the classes of the task",
        "scheme": audit.scheme,
        "class orders": large(audit.num_orders),
        "listed or drawn": f"{audit.drawn:,} {'listed' if audit.exact else 'drawn'}, {audit.searched:,} searched",
        "seed": audit.seed,
        "versions": versions(),
    }
    title = f"Class orders of {audit.title}"
    return Report(title, tuple(sections), meta, audit.opening, lead="distribution")


def _convention(audit: ClassOrderAudit) -> str:
    among = (
        "Predictions are among the classes seen so far, as in class-incremental learning"
        if audit.outputs == "all"
        else "The task of a row is known, and predictions are among its classes"
    )
    rows = "held-out rows" if audit.held_out else "the learned rows, since no held-out rows were given"
    return f"{among}; classes on a tie share the row. Accuracies are of {rows}."


def _distribution(audit: ClassOrderAudit) -> Section:
    rows = []
    for measure in audit.measures:
        places = [100 * measure.quantiles[LEVELS.index(level)][0] for level in (0.05, 0.5, 0.95)]
        row: list[Any] = [measure.name, 100 * measure.mean, 100 * measure.sd, *places]
        if measure.given is not None and measure.better is not None:
            row += [100 * measure.given, percent(measure.better, 1.0)]
        rows.append(tuple(_short(value) for value in row))
    heads = ("measure, %", "mean", "sd", "5 %", "50 %", "95 %", *(("given", "better") if audit.given else ()))
    meant = "; ".join(f"{measure.name}: {measure.meaning}" for measure in audit.measures)
    how = (
        f"All {audit.num_orders:,} class orders were learned: the numbers are exact."
        if audit.exact
        else f"{audit.drawn:,} of {large(audit.num_orders)} class orders were drawn at random."
    )
    caption = f"{how} {_convention(audit)} {capital(meant)}."
    title = "The numbers of the benchmark over class orders"
    items: list[Item] = [histogram(audit), Table("measures", title, caption, heads, tuple(rows))]
    if not audit.exact:
        ends = tuple(
            (measure.name, _ends(measure.mean_interval), _ends(measure.sd_interval), _ends(measure.quantiles[2][1:]))
            for measure in audit.measures
        )
        heads = ("measure, %", "mean", "sd", "median")
        caption = (
            "Intervals around what was estimated from random class orders. Each holds with a probability of 99 %, "
            "whatever the distribution is: those of means and standard deviations by betting (Waudby-Smith and Ramdas "
            "2024), of medians by order statistics."
        )
        items.append(Table("intervals", "How sure the numbers are", caption, heads, ends))
    return Section("orders", "How much depends on the class order", "", tuple(items))


def _short(value: Any) -> Any:
    return round(value, 2) + 0.0 if isinstance(value, float) else value


def _ends(interval: Sequence[float]) -> str:
    return between(interval[0], interval[1], 2)


def _extremes(audit: ClassOrderAudit) -> Section:
    rows = []
    for measure in audit.measures:
        for name, found in (("best", measure.best), ("worst", measure.worst)):
            ties = f" (one of {found.tied:,})" if found.tied > 1 else ""
            order = f"{' | '.join(tasks_of(audit, found))}{ties}"
            rows.append((measure.name, name, round(100 * found.value, 2) + 0.0, order))
    how = (
        "Exact: all class orders were learned."
        if audit.exact
        else f"Found by search, of {audit.drawn + audit.searched:,} class orders tried; the search is for final "
        "accuracy, and swaps classes of different tasks and whole tasks. Better and worse class orders may exist."
    )
    caption = f"{how} Best and worst are those of the measure; tasks are separated by |."
    table = Table("extremes", "Best and worst class orders", caption, ("measure", "", "%", "class order"), tuple(rows))
    return Section("extremes-section", "Best and worst class orders", "", (along(audit), table))


def _averaging(audit: ClassOrderAudit) -> Section:
    by_name = {measure.name: measure for measure in audit.measures}
    rows = []
    for few in audit.few:
        measure = by_name[few.measure]
        row: list[Any] = [few.measure, *(_orders(audit, measure.orders_needed(error)) for error in ERRORS)]
        row += [] if audit.exact else [_at_most(audit, measure, error) for error in ERRORS]
        rows.append(tuple(row))
    heads = ("measure", "for 1 point", "for 0.5 points", *(() if audit.exact else ("at most", "at most ")))
    caption = (
        "The number of random class orders whose mean is within so many points of the mean over all class orders, in "
        "95 % of cases: (1.96 sd / error)^2."
    )
    needed = Table("needed", "How many random class orders to average", caption, heads, tuple(rows))
    columns = ("of three random class orders", *(few.measure for few in audit.few))
    said = (
        ("t-interval (95 %) holds the mean", lambda few: percent(few.t_covers, 1.0)),
        ("its half width, points", lambda few: _short(100 * few.t_width)),
        ("mean +- sd holds the mean", lambda few: percent(few.sd_covers, 1.0)),
        ("the sd, on average, points", lambda few: _short(100 * few.sd_width)),
        ("the sd over all class orders, points", lambda few: _short(100 * by_name[few.measure].sd)),
        ("sd less than half of that", lambda few: percent(few.halved, 1.0)),
        ("part of the range that they miss", lambda few: percent(few.range_missed, 1.0)),
    )  # fmt: skip
    body = tuple((words, *(value(few) for few in audit.few)) for words, value in said)
    caption = (
        "What the usual protocol says, by 100,000 draws of three class orders from this distribution. Few class "
        f"orders show neither the mean nor the spread ({THE_LIE})."
    )
    three = Table("few", "What three seeds would say", caption, columns, body)
    return Section("averaging", "How many class orders to average", "", (needed, three))


def _classes(audit: ClassOrderAudit) -> tuple[Section, ...]:
    """The effects of classes that share a task, and of the first and the last task."""
    items: list[Item] = []
    if audit.pairs:
        shown = audit.pairs if len(audit.pairs) <= 2 * ENDS else (*audit.pairs[:ENDS], *audit.pairs[-ENDS:])
        rows = tuple(
            _effect_row(" and ".join(pair.classes), [(pair.difference, pair.interval)], audit) for pair in shown
        )
        all_pairs = len(audit.class_names) * (len(audit.class_names) - 1) // 2
        if len(audit.pairs) == all_pairs:
            items.append(_matrix(audit))
        caption = (
            "Mean final accuracy of the class orders in which two classes share a task, less that of the others, in "
            f"points; the {len(shown)} largest effects of {all_pairs} pairs, most harmful first. {_intervals(audit)}"
        )
        items.append(
            Table(
                "pairs",
                "Which classes should not share a task",
                caption,
                ("classes", *_heads(audit, "effect")),
                rows,
                compact=True,
            )
        )
    rows = tuple(
        _effect_row(place.name, [(place.first, place.first_interval), (place.last, place.last_interval)], audit)
        for place in sorted(audit.places, key=lambda place: place.last, reverse=True)
    )
    caption = (
        "Mean final accuracy of the class orders with a class in the first (in the last) task, less that of the "
        f"others, in points. {_intervals(audit)}"
    )
    heads = ("class", *_heads(audit, "in the first task"), *_heads(audit, "in the last task"))
    items.append(Table("places", "Which class should come first or last", caption, heads, rows))
    return (Section("classes", "Which classes to learn together, first and last", "", tuple(items)),)


def _matrix(audit: ClassOrderAudit) -> Matrix:
    """The effect of every pair of classes that shares a task."""
    names = audit.class_names
    effect = {pair.classes: 100 * pair.difference for pair in audit.pairs}
    values = tuple(tuple(effect.get((a, b), effect.get((b, a))) for b in names) for a in names)
    caption = "Mean final accuracy of the class orders in which two classes share a task, less that of the others."
    short = tuple(one_line(name, 20) for name in names)
    return Matrix("together", "Classes in one task, points", caption, "class", "class", short, short, values)


def _intervals(audit: ClassOrderAudit) -> str:
    if audit.exact:
        return "Exact."
    return (
        "The intervals hold for all of them at once, with a probability of 99 %; one that contains 0 decides nothing."
    )


def _heads(audit: ClassOrderAudit, name: str) -> tuple[str, ...]:
    return (name,) if audit.exact else (name, f"interval{' ' * len(name)}")


def _effect_row(name: str, effects: list[tuple[float, tuple[float, float]]], audit: ClassOrderAudit) -> tuple[Any, ...]:
    row: list[Any] = [one_line(name, 40)]
    for difference, interval in effects:
        row += [_short(100 * difference), *([] if audit.exact else [_ends(interval)])]
    return tuple(row)
