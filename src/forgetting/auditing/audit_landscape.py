"""The landscape of the orders that an audit tried: as a `Landscape`, a section of the page, and arrays of a file."""

from __future__ import annotations

import math
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.auditing.landscape_page import explained, positions
from forgetting.auditing.landscapes import MOST_RUNS, Landscape
from forgetting.auditing.sentences import percent
from forgetting.core.arrays import IntArray
from forgetting.core.text import one_line
from forgetting.errors import NotSupportedError
from forgetting.figures.items import Item, Table
from forgetting.report.document import Section

if TYPE_CHECKING:
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.result import Audit


LEAST = 3  # tasks, from which there is something to explain


def why_no_landscape(audit: Audit) -> str:
    """The reason why the values of some orders are not known; empty if all are known."""
    T = audit.num_tasks
    if not audit.tried_exact or not audit.orders:
        return f"{audit.tried:,} random orders of {T} tasks were tried, and not all"
    if math.factorial(T) > MOST_RUNS:
        return f"{T} tasks have {math.factorial(T):,} orders, more than {MOST_RUNS:,}"
    return ""


def landscape_of(audit: Audit, name: str) -> Landscape:
    """The values of a measure after all orders; nothing is computed again."""
    measure, why = audit.measure(name), why_no_landscape(audit)
    if why:
        raise NotSupportedError(f"the landscape of orders needs the values of all orders: {why}")
    orders = np.array(list(permutations(range(audit.num_tasks))), dtype=np.int64)
    rows = _rows(audit, orders)
    parts = np.array(measure.task_values)[rows] if measure.task_values else None
    names = tuple(row.name for row in audit.tasks)
    values = np.array(measure.values)[rows]
    return Landscape(orders, values, np.array([audit.seed]), name, measure.higher, parts, names)


def _rows(audit: Audit, orders: IntArray) -> IntArray:
    """The rows of `audit.orders` with these orders, up to the order of identical tasks."""
    index = np.arange(audit.num_tasks)
    for duplicate in audit.duplicates:
        if duplicate.kind == "identical":
            index[duplicate.task] = index[duplicate.of]
    index = np.unique(index, return_inverse=True)[1]
    place = {tuple(index[list(order)].tolist()): row for row, order in enumerate(audit.orders)}
    return np.array([place[tuple(index[order].tolist())] for order in orders])


def landscape_arrays(audit: Audit) -> dict[str, Any]:
    """The arrays of an .npz file: `values` are training losses, and each measure has an array of its own."""
    arrays: dict[str, Any] = {}
    for measure in audit.measures:
        landscape = landscape_of(audit, measure.name)
        key = measure.name.replace(" ", "_").replace("-", "_")
        if not arrays:
            arrays = {"permutations": landscape.permutations, "values": landscape.values, "seeds": landscape.seeds}
            arrays["task_values"] = landscape.task_values
        arrays[key] = landscape.values
        if landscape.task_values is not None:
            arrays[f"task_{key}"] = landscape.task_values
    return arrays


def landscape_section(audit: Audit) -> Section | None:
    """The section on what explains the differences between orders, and on the disparity of tasks, by every measure."""
    if audit.num_tasks < LEAST or why_no_landscape(audit):
        return None
    landscapes = {measure.name: landscape_of(audit, measure.name) for measure in audit.measures}
    first = landscapes[audit.measures[0].name]
    rows = tuple(_row(audit, measure, landscapes[measure.name]) for measure in audit.measures)
    heads = ("measure", "sd over orders", "position", "pairs", "rest", "disparity", "largest disparity")
    chance = [percent(float(share), 1.0) for share in first.variance.chance]
    caption = (
        f"All {len(first.values):,} orders. Position, pairs, rest: the parts of the variance over orders that are "
        "explained by which task stands where, by pairs of tasks in addition, and by three tasks or more (of values "
        f"that do not depend on the order: {', '.join(chance)}). Disparity: the largest less the smallest value of a "
        "task at the end of an order, as a mean over tasks and for the task where it is largest (order-normalised "
        "performance disparity, Yoon et al. 2020). Deviations and disparities are in the unit of the measure; points "
        "are per cent of rows."
    )
    items: list[Item] = [Table("landscape", "What explains the differences between orders", caption, heads, rows)]
    picture = positions(first)
    items += [] if picture is None else [picture]
    said = explained(first)
    text = f"By {audit.measures[0].name}, {said[:1].lower()}{said[1:]}"
    return Section("landscape", "The landscape of orders", text, tuple(items))


def _row(audit: Audit, measure: Measure, landscape: Landscape) -> tuple[str, ...]:
    shares, disparity = landscape.variance.shares, landscape.disparity
    parts = ("-",) * 3 if shares is None else tuple(percent(float(share), 1.0) for share in shares)
    ends = ("-", "-")
    if disparity is not None:
        most = int(np.argmax(disparity.per_task))
        task = one_line(audit.tasks[most].name, 40)
        ends = _difference(measure, disparity.mean), f"{_difference(measure, disparity.maximum)} (task {task})"
    return measure.name, _difference(measure, landscape.spread.sd), *parts, *ends


def _difference(measure: Measure, value: float) -> str:
    """A difference of two values with its unit."""
    return f"{100 * value:.1f} points" if measure.is_accuracy else measure.number(value)
