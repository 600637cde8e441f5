"""An audit as a report: figures and tables for the browser and the terminal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from forgetting.auditing.audit_figures import along, asked_first, lead_figure, pair_matrix, units_of
from forgetting.auditing.landscape_page import landscape_section
from forgetting.auditing.ordering_values import LITTLE
from forgetting.auditing.sentences import Said
from forgetting.auditing.words import LOSSES, SLACK, capital, listed, number, percent, shown, task_name
from forgetting.core.numerical import ROUNDING
from forgetting.core.text import one_line
from forgetting.figures.items import Item, Table
from forgetting.figures.text_formats import table_text
from forgetting.report.document import Report, Section, summary_text
from forgetting.report.pages import first_rows
from forgetting.report.provenance import versions

if TYPE_CHECKING:
    from forgetting.auditing.ordering_values import OrderingRow
    from forgetting.auditing.result import Audit


ROWS = 12  # tasks shown in a terminal


def report_of(audit: Audit, said: Said) -> Report:
    """The audit as a report: the figure of all orders and at most four sentences, then all sections.

    >>> import forgetting as fg
    >>> report = fg.audit(fg.families.two_lines(0.5)).to_report()
    >>> [section.key for section in report.sections]
    ['orderings', 'randomness', 'tasks', 'pairs', 'fit', 'guarantees', 'missing']
    """
    landscape = landscape_section(audit)
    sections = [_orderings(audit, said), _randomness(audit, said), *([] if landscape is None else [landscape])]
    sections += [part(audit, said) for part in (_tasks, _pairs, _fit, _guarantees)]
    if audit.missing:
        sections.append(Section("missing", "Not in this audit", f"{'; '.join(audit.missing)}.", ()))
    meta = {
        "tasks": audit.num_tasks,
        "dimension": audit.dim,
        "joint rank": "unknown" if audit.rank_joint is None else audit.rank_joint,
        "radius": "unknown" if audit.radius is None else f"{audit.radius:.6g}",
        "scheme": audit.scheme,
        "preparation": audit.preparation or "none",
        "seed": audit.seed,
        "method": {f"{row.name}, k = {row.k}": row.method for row in audit.orderings},
        "versions": versions(),
    }
    lead = lead_figure(audit)
    title, summary = f"Audit of {audit.title}", said.opening or audit.recommendation
    notes = tuple(f"Note: {note}." for note in audit.notes)
    return Report(title, tuple(sections), meta, summary, notes, lead="" if lead is None else lead.key)


def text_of(audit: Audit, report: Report, width: int) -> str:
    """The audit and its report as text for a terminal: the recommendation, and the tables that fit."""
    orders = tuple(f"{name}: {listed(audit, order)}" for name, order in _orders(audit))
    parts = [summary_text(report, width), summary_text(Report(_head(audit), (), {}, orders), width)]
    for key in ("measures", "chosen", "heads", "orderings", "intervals", "split", "landscape", "tasks", "tightest"):
        table = next((item for item in report.items() if item.key == key and isinstance(item, Table)), None)
        if table is not None and table.rows:
            shown = replace(table, notes=(table.caption,)) if key == "intervals" else table  # what they are worth
            parts.append(table_text(first_rows(shown, ROWS), width))
    more = tuple(line for line in audit.recommendation if line not in report.summary)
    for title, lines in (("Further findings", more), ("Not in this audit", audit.missing)):
        if lines:
            parts.append(summary_text(Report(title, (), {}, lines), width))
    return "\n\n".join(parts)


def _head(audit: Audit) -> str:
    """The tasks in a line: number, dimension, joint rank, radius, loss before learning, and realizability."""
    rank = "" if audit.rank_joint is None else f", joint rank {audit.rank_joint}"
    radius = "" if audit.radius is None else f", largest norm of a task R = {audit.radius:.4g}"
    unit = f" ({audit.unit})" if audit.unit else ""
    fits = audit.fit.message  # of tasks of which it is not known
    if audit.fit.holds:
        fits = "one model fits all tasks"
    elif audit.fit.floor is not None:
        fits = "no single model fits all tasks"
    return (
        f"T = {audit.num_tasks} tasks, d = {audit.dim} dimensions{rank}{radius}, mean loss before learning "
        f"{number(audit.fit.start)}{unit}; {fits}"
    )


# ------------------------------------------------------------------------------------------------------------- sections


def _orderings(audit: Audit, said: Said) -> Section:
    P = audit.passes
    pairs: dict[str, dict[int, OrderingRow]] = {}
    for row in audit.orderings:
        pairs.setdefault(row.name, {})[row.passes] = row
    names = {
        "given order": "given order (then cyclic)",
        "random permutation": "random (then reshuffled)",
        "with replacement": "random, with replacement",
        "greedy": "greedy, largest distance",
        "periphery first": "periphery first (Li and Hiratani)",
        "Herman-Meyer": "order of Herman and Meyer",
        "best order": f"best order, {'exact' if audit.search.exact else 'searched'}",
        "worst order": f"worst order, {'exact' if audit.search.exact else 'searched'}",
    }
    rows = []
    for name, both in pairs.items():
        once, many = both[1], both[P]
        method = once.method if once.method == many.method else f"{once.method}, {many.method}"
        rows.append((names.get(name, name), once.forgetting, once.loss, many.forgetting, many.loss, method))
    heads = ("ordering", "F once", "L once", f"F x{P}", f"L x{P}", "method")
    caption = (
        f"Expected forgetting F and loss L after one pass (k = {audit.num_tasks}) and after {P} (k = "
        f"{P * audit.num_tasks}); loss: {audit.unit or 'mean over tasks'}. Best and worst order: "
        f"{audit.search.method}. {100 * audit.luck:.0f} % of random orders forget less in one pass than the given one."
    )
    legend = f"F: forgetting, L: loss, expected; once: k = {audit.num_tasks}; x{P}: k = {P * audit.num_tasks}."
    table = Table("orderings", "What each ordering leads to", caption, heads, tuple(rows), (legend,))
    lead = lead_figure(audit)
    items: list[Item] = [*([] if lead is None else [lead]), *_measures(audit), table, along(audit), *_intervals(audit)]
    every = tuple(
        (name, ", ".join(one_line(audit.tasks[task].name) for task in order))
        for name, order in _orders(audit, along=True)
    )
    items.append(Table("orders", "The orders themselves", audit.search.method, ("order", "tasks"), every))
    text = " ".join([_head(audit) + ".", *said.rest("orderings")])
    return Section("orderings", "Orderings", text, tuple(items))


def _intervals(audit: Audit) -> list[Table]:
    """The table of the simulated values with their intervals; none if all values are exact."""
    simulated = [row for row in audit.orderings if not row.exact]
    if not simulated:
        return []
    cells = tuple(
        (row.name, row.k, quantity, *(getattr(row, f"{quantity}{end}") for end in ("", "_low", "_high")))
        for row in simulated
        for quantity in ("forgetting", "loss")
    )
    level = f"{simulated[0].confidence:g}"
    meaning = f"each interval holds with probability at least {level}, for any distribution of the values."
    if not all(row.bounded for row in simulated):
        meaning = (
            f"no bound on the values is known, so that the intervals are normal approximations at {level}, which "
            "may fail for heavy tails."
        )
    columns = ("ordering", "k", "quantity", "mean", "low", "high")
    return [Table("intervals", "Intervals", f"Simulated; {meaning}", columns, cells)]


def _orders(audit: Audit, *, along: bool = False) -> list[tuple[str, tuple[int, ...]]]:
    """The given order, those that forget least and most, and the best and the worst by every other measure.

    With `along`, also by accuracies along the pass.
    """
    best, worst = audit.search.best, audit.search.worst
    named = [("given order", audit.given), (f"best order, forgets least{best.ties}", best.order)]
    named.append((f"worst order, forgets most{worst.ties}", worst.order))
    measures = [measure for measure in audit.measures if measure.name not in LOSSES]
    if along:
        measures += [measure.along for measure in measures if measure.along is not None]
    for measure in measures:
        which = "all" if audit.tried_exact and len(measure.values) == audit.tried else "those tried"
        for found, end in ((measure.top, "best"), (measure.bottom, "worst")):
            name = f"{end} of {which} by {measure.name} ({measure.number(found.value)}){found.ties}"
            named.append((name, found.order))
    return named


def _measures(audit: Audit) -> list[Table]:
    """Every measure of the given and of a random order, with its own best and worst value; and of the orders that
    forget least and most."""
    if not audit.measures:
        return []
    measures = [part for measure in asked_first(audit) for part in (measure, measure.along) if part is not None]
    rows: list[tuple[str, ...]] = []
    chosen: list[tuple[str, ...]] = []
    for measure in measures:
        top, bottom = measure.extremes
        values = measure.given, top.value, bottom.value, measure.mean, measure.cyclic
        rows.append((measure.name, *shown(audit, measure, values), percent(measure.share_worse, 1.0)))
        chosen.append((measure.name, *shown(audit, measure, (measure.given, measure.best, measure.worst))))
    orders = "all orders" if audit.tried_exact else f"{audit.tried:,} random orders"
    heads = ("measure", "given", "best", "worst", "random", f"given x{audit.passes}", "given beats")
    own = " Each row has a best and a worst order of its own." if len(measures) > 1 else ""
    notes = [
        f"After one pass: the given order, the best and the worst value of this measure over {orders}, and the mean "
        f"over random orders; given x{audit.passes}: after {audit.passes} passes; given beats: the part of the orders "
        f"that are worse.{own}"
    ]
    notes += [f"{capital(words)}." for words in units_of(measures)]
    for measure in measures:
        if len(measure.values) < audit.tried:
            notes.append(f"{measure.name}: of {len(measure.values):,} random orders; more take too long.")
    if any(measure.is_accuracy for measure in measures):
        notes.append("Classes that tie share the row: guessing counts as much as it is right on average.")
    ties = [
        f"{name}: the first of {extreme.tied:,} orders that forget the same; other measures may differ."
        for name, extreme in (("forgets least", audit.search.best), ("forgets most", audit.search.worst))
        if extreme.tied > 1
    ]
    tables = [Table("measures", "Every measure of the orders", "", heads, tuple(rows), tuple(notes))]
    if len(measures) > 1:
        columns = ("measure", "given", "forgets least", "forgets most")
        told = ("One pass in the orders that forget least and most, by every measure.", *ties)
        title = "What the orders that forget least and most give"
        tables.append(Table("chosen", title, "", columns, tuple(chosen), told))
    if audit.all_rows is not None:
        reached: list[tuple[str, ...]] = []
        for measure in asked_first(audit):
            value = audit.all_rows.of(measure.name)
            if value is not None:
                numbers = measure.given, measure.mean, value.head, value.joint
                reached.append((measure.name, *shown(audit, measure, numbers)))
        ways = ("measure", "given order", "random order", "head", "all at once")
        note = (
            "One task after another, beside a head that learns the same rows in any order and forgets none "
            f"(fg.IncrementalRidge, alpha = {number(audit.all_rows.alpha)} by generalised cross-validation), and least "
            "squares on all rows at once."
        )
        tables.append(Table("heads", "What is reached without forgetting", "", ways, tuple(reached), (note,)))
    return [*tables, *_replayed(audit)]


def _replayed(audit: Audit) -> list[Table]:
    """The measures with some rows of each task replayed, beside none."""
    if audit.replay is None:
        return []
    known = {measure.name: measure for measure in audit.measures}
    rows = []
    for at, name in enumerate(audit.replay.measures):
        values = [row.values[at] for row in audit.replay.rows]
        rows.append((name, *shown(audit, known.get(name, audit.measures[0]), values)))
    heads = ("measure", *("none" if not row.memory else f"{row.memory} a task" for row in audit.replay.rows))
    orders = "all orders" if audit.replay.exact else f"the same {audit.replay.orders} random orders"
    note = (
        f"Means over {orders} after one pass; the first rows of each task are kept, and learned together with each "
        "later task (fg.schemes.Replay)."
    )
    return [Table("replay", "What replay of rows of earlier tasks would change", "", heads, tuple(rows), (note,))]


def _randomness(audit: Audit, said: Said) -> Section:
    rows = []
    for split in audit.splits:
        values = split.fixed_once, split.random_once, split.fixed_many, split.random_many
        shares = (None, None) if split.little else (split.randomness, split.repetition)
        rows.append((split.baseline, *values, *map(_share, shares)))
    P = audit.passes
    heads = ("from", "F once", "F random", f"F x{P}", f"F random x{P}", "random", "repeat")
    caption = (
        "Shares of randomness and of repetition in the fall of forgetting from a fixed order, once, to random orders."
    )
    text = (
        f"The table compares the forgetting of a fixed order, learned once and {P} times, with that of random "
        f"orders, learned once (without replacement) and {P} times (reshuffled). The share of a cause is the "
        "mean of its effect without and with the other one; one half each means that either alone would do. A fall of "
        f"less than {100 * LITTLE:.0f} % of what is forgotten leaves nothing to share."
    )
    text = " ".join([*said.rest("randomness"), text])
    table = Table("split", "Randomness against repetition", caption, heads, tuple(rows))
    return Section("randomness", "Randomness or repetition", text, (table,))


def _share(value: float | None) -> str:
    return "-" if value is None or not -SLACK <= value <= 1 + SLACK else f"{round(100 * value)} %"


def _tasks(audit: Audit, said: Said) -> Section:
    remarks: dict[int, list[str]] = {}
    for duplicate in audit.duplicates:
        verb = "contradicts" if duplicate.contradicts else "repeats"
        remarks.setdefault(duplicate.task, []).append(
            f"{verb} {one_line(audit.tasks[duplicate.of].name)} ({duplicate.kind})"
        )
    for other in audit.outliers:
        remarks.setdefault(other.task, []).append(f"outlier: {other.measure}")
    order = sorted(range(audit.num_tasks), key=lambda task: (task not in remarks, -audit.tasks[task].forgotten))
    rows = []
    for task in order:
        row = audit.tasks[task]
        near = "" if row.nearest is None else f"{one_line(audit.tasks[row.nearest].name)} ({row.overlap:.2f})"
        numbers = row.rows or None, row.rank, row.norm, row.forgotten, row.causes
        rows.append((one_line(row.name), *numbers, near, "; ".join(remarks.get(task, []))))
    heads = ("task", "rows", "rank", "norm", "forgotten", "causes", "nearest (overlap)", "remarks")
    caption = (
        "Forgotten: the increase of the loss of a task from when it was learned to the end of a random pass. Causes: "
        "the increase of other losses while it is learned. Overlap: mean cos^2 of the principal angles. Tasks with "
        "remarks come first, then the most forgotten."
    )
    items: list[Item] = [Table("tasks", "Tasks", caption, heads, tuple(rows))]
    lines = said.rest("tasks")
    if audit.overlap:
        for key, title, values in (
            ("overlap", "Overlap of row spaces, mean cos² of the principal angles", audit.overlap),
            ("angles", "Smallest principal angle, degrees", audit.smallest_angle),
        ):
            picture = pair_matrix(audit, key, title, "task", "task", values)
            items += [picture] if picture is not None else []
            lines += [] if picture is not None or audit.num_tasks < 2 else [f"{title}: {_level(values)}."]
        lines.append("Principal angles between row spaces: 0 degrees is a shared direction, 90 none.")
    return Section("tasks", "Tasks", " ".join(lines), tuple(items))


def _pairs(audit: Audit, said: Said) -> Section:
    how = "all orders" if audit.influence_exact else f"{audit.influence_runs} random orders"
    text = (
        f"Each number is the mean over {how} of the increase of the loss of a task (row) while another one (column) is "
        "learned after it, in one pass. A row sums to what is forgotten of a task, a column to what a task makes "
        "others forget; negative: it helps."
    )
    top = sorted(
        ((value, i, j) for i, row in enumerate(audit.influence) for j, value in enumerate(row) if value > 0),
        reverse=True,
    )[:10]
    rows = tuple((task_name(audit, i), task_name(audit, j), value) for value, i, j in top)
    table = Table("top-pairs", "The ten largest", "", ("forgotten", "while learning", "increase of loss"), rows)
    picture = pair_matrix(audit, "influence", "Who forgets whom", "task learned", "task forgotten", audit.influence)
    text = " ".join([*said.rest("pairs"), text])
    items = (table,) if picture is None else (picture, table)
    return Section("pairs", "Which tasks are forgotten, and by which", text, items)


def _level(values: tuple[tuple[float, ...], ...]) -> str:
    """The values of all pairs that are alike, in words."""
    table = np.array(values)
    off = table[~np.eye(len(table), dtype=bool)]
    return f"about {np.median(off):.3g} for every pair" if len(off) else "there is no pair"


def _fit(audit: Audit, said: Said) -> Section:
    fit = audit.fit
    rows = [
        ("largest relative residual", fit.residual),
        ("tolerance", fit.tolerance),
        ("tasks missed", len(fit.offenders)),
        ("mean loss of the best single model", "unknown" if fit.floor is None else fit.floor),
        ("mean loss before learning", fit.start),
        *(("way out" + (", tried" if offer.tried else ""), offer.words) for offer in fit.offers),
    ]
    if audit.rank_joint is None:
        rows = rows[3:]
    text = " ".join([fit.message[:1].upper() + fit.message[1:] + ".", *said.rest("fit")])
    table = Table("fit", "One model for all tasks", "", ("", "value"), tuple(rows))
    return Section("fit", "Does one model fit all tasks?", text, (table,))


def _guarantees(audit: Audit, said: Said) -> Section:
    if not audit.guarantees:
        why = f"no upper bound applies{'' if audit.fit.holds else ' to tasks that no single model fits'}"
        return Section("guarantees", "Guarantees", "", (), missing=why)
    floor = ROUNDING * audit.fit.start  # less is rounding, and would seem to violate a bound of 0
    best: list[tuple[str | int | float, ...]] = []
    every: list[tuple[str | int | float, ...]] = []
    for bound in audit.guarantees:
        where = bound.ordering, bound.k, bound.quantity
        values = bound.value, bound.measured if abs(bound.measured) > floor else 0.0
        every.append((*where, bound.key, *values, "vacuous" if bound.vacuous else "tightest" if bound.tightest else ""))
        if bound.tightest:
            name = "none but the trivial one" if bound.key.startswith("trivial/") else bound.key
            best.append((*where, name, *values))
    heads = ("ordering", "k", "quantity", "bound", "value", "measured")
    tables = (
        Table("tightest", "Tightest guarantee", "", heads, tuple(best)),
        Table("all-bounds", "All that apply", "", (*heads, "remark"), tuple(every)),
    )
    meaning = (
        "Upper bounds that apply to these tasks, beside the expected values. Vacuous: no smaller than the trivial bound"
    )
    return Section("guarantees", "Guarantees", f"{' '.join(said.rest('guarantees'))} {meaning}.", tables)
