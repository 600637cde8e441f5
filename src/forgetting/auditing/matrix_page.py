"""The audit of matrices of accuracies in sentences and tables, for the terminal and the browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgetting.auditing.words import between, rate
from forgetting.core.text import joined, one_line
from forgetting.figures.items import Item, Table
from forgetting.report.document import Report, Section
from forgetting.report.provenance import versions

if TYPE_CHECKING:
    from forgetting.auditing.accuracy_matrices import MatrixAudit, MatrixMetric, OrderEffect


def _with_interval(metric: MatrixMetric) -> str:
    words = rate(metric.mean)
    if metric.low is None or metric.high is None:
        return words
    return f"{words} (95 % interval {between(metric.low, metric.high)})"


def findings_of(audit: MatrixAudit) -> list[str]:
    """The numbers in a few sentences."""
    said: list[str] = []
    runs = len(audit.runs)
    parts = [
        f"{_with_interval(metric)} {when}"
        for quantity, word, when in (
            ("average_accuracy", "", "after the last task"),
            ("average_incremental", "icarl", "on average after each task"),
        )
        for metric in audit.metrics
        if (metric.quantity, metric.word) == (quantity, word)
    ]
    said.append(f"{f'Over {runs} runs, the' if runs > 1 else 'The'} average accuracy is {', and '.join(parts)}.")
    if runs == 1:
        said[-1] += " There is one run, so that nothing is known of the uncertainty: run other seeds and orders."
    for quantity, words in (("forgetting", "mean forgetting"), ("backward_transfer", "backward transfer")):
        ways = [metric for metric in audit.metrics if metric.quantity == quantity]
        if len(audit.tasks) > 1 and len(ways) > 1:
            low, high = min(ways, key=lambda way: way.mean), max(ways, key=lambda way: way.mean)
            if high.mean - low.mean > 0.0005:
                said.append(
                    f"The same accuracies have a {words} of {rate(low.mean)} by {_who(low)}, and of "
                    f"{rate(high.mean)} by {_who(high)}: say which formula a number is of."
                )
    most = max(audit.tasks, key=lambda task: task.forgotten)
    if len(audit.tasks) > 1 and most.forgotten > 0:
        said.append(
            f"Task {one_line(most.name, 40)} is forgotten most: {rate(most.learned)} right after it was learned, "
            f"{rate(most.last)} in the end."
        )
    said.append(_order_sentence(audit.effects[0]))
    return said


def _who(metric: MatrixMetric) -> str:
    return joined(dict.fromkeys(source.partition(":")[0] for source in metric.sources))


def _order_sentence(first: OrderEffect) -> str:
    effect, name = first.of, first.name
    if effect.share is None or effect.low is None or effect.high is None:
        if effect.share is None:
            return f"How much the order explains cannot be told: {effect.reason}."
        return f"The order explains all differences of the {name}: {effect.reason}."
    return (
        f"The order explains {100 * effect.share:.0f} % of the variance of the {name} over runs (95 % interval "
        f"{between(effect.low, effect.high, 0)} %; {effect.orders} orders, {effect.runs} runs, normal "
        f"effects): orders differ by a standard deviation of {rate(effect.between or 0.0)}, seeds by "
        f"{rate(effect.within or 0.0)}."
    )


def report_of(audit: MatrixAudit) -> Report:
    """The audit as a report: its metrics, the mean matrix, and what each task has lost."""
    items: list[Item] = [_metric_table(audit), audit.figure(), _task_table(audit)]
    if any(effect.of.share is not None for effect in audit.effects):
        items.append(_effect_table(audit))
    meta = {
        "tasks": len(audit.tasks),
        "runs": "; ".join(audit.runs),
        "orders": audit.orders,
        "unit": audit.unit,
        **({"notes": "; ".join(audit.notes)} if audit.notes else {}),
        "versions": versions(),
    }
    section = Section("accuracies", "Accuracies", "", tuple(items))
    return Report(audit.headline, (section,), meta, audit.findings, audit.notes, lead="matrix")


def _metric_table(audit: MatrixAudit) -> Table:
    several = len(audit.runs) > 1
    heads = ("metric", "%", *(("sd", "95 % interval") if several else ()), "formula", "given by")
    rows = []
    for metric in audit.metrics:
        ends = "-" if metric.low is None else between(metric.low, metric.high or 0.0)
        spread = (f"{100 * metric.sd:.1f}", ends) if several and metric.sd is not None else ()
        rows.append(
            (metric.name, f"{100 * metric.mean:.2f}", *spread, metric.formula, "; ".join(metric.sources))
        )  # fmt: skip
    caption = (
        "R[i, j] is the accuracy on the j-th task that was learned after the i-th, of T; b[j] that before learning; "
        "n[j] the number of test rows (taken as equal here)."
    )
    if several:
        over = "orders" if 1 < audit.orders < len(audit.runs) else "runs"
        caption += f" Means are over {over}, and intervals are those of the mean, by Student's t."
    return Table("metrics", "Metrics by each convention", caption, heads, tuple(rows))


def _task_table(audit: MatrixAudit) -> Table:
    several = len(audit.runs) > 1
    heads = (
        "task",
        "right after learning, %",
        "in the end, %",
        "forgotten, %",
        *(("95 % interval",) if several else ()),
    )
    rows = []
    for task in audit.tasks:
        numbers = (f"{100 * value:.1f}" for value in (task.learned, task.last, task.forgotten))
        ends = "-" if task.low is None else between(task.low, task.high or 0.0)
        rows.append((one_line(task.name, 40), *numbers, *((ends,) if several else ())))
    return Table("tasks", "What each task has lost", "", heads, tuple(rows))


def _effect_table(audit: MatrixAudit) -> Table:
    heads = ("metric", "share of the order, %", "95 % interval", "sd of orders, %", "sd of seeds, %", "p")
    rows: list[tuple[str, ...]] = []
    for effect in audit.effects:
        of = effect.of
        if of.share is None:
            rows.append((effect.name, "-", of.reason, "-", "-", "-"))
            continue
        ends = of.reason if of.low is None else between(of.low, of.high or 0.0, 0)
        deviations = (f"{100 * (value or 0.0):.2f}" for value in (of.between, of.within))
        p = "-" if of.p_value is None else f"{of.p_value:.2g}"
        rows.append((effect.name, f"{100 * of.share:.0f}", ends, *deviations, p))
    caption = (
        "The variance of a run is that of its order and that of its seed (one-way random effects, both normal; "
        "interval of Wald 1940). p: the probability of orders that differ as much if the order had no effect."
    )
    return Table("order", "How much the order explains", caption, heads, tuple(rows))
