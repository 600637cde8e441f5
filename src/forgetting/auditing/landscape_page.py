"""A landscape of orders in sentences, figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.auditing.distribution import distribution
from forgetting.auditing.order_statistics import LEVELS, PARTS
from forgetting.auditing.words import percent
from forgetting.core.text import joined, one_line
from forgetting.errors import NotSupportedError
from forgetting.figures.items import Curves, Item, Matrix, Table, column
from forgetting.report.document import Report, Section
from forgetting.report.provenance import versions

if TYPE_CHECKING:
    from forgetting.auditing.landscapes import Landscape
    from forgetting.auditing.measures import Measure
    from forgetting.auditing.result import Audit


BINS = 30  # most bars of a histogram
FEW = 5  # orders listed at each end
LEAST = 0.1  # share that positions must explain to be drawn
FEWEST = 3  # tasks, from which there is something to explain


def sentences(landscape: Landscape) -> tuple[str, ...]:
    """Sentences on the values: their spread, what explains it, agreement of seeds, disparity of tasks."""
    spread, better = landscape.spread, "high" if landscape.higher_is_better else "low"
    said = [
        f"Over {'all' if landscape.complete else 'the'} {len(landscape.values)} orders, the {landscape.quantity} is "
        f"{spread.mean:.4g} on average (standard deviation {spread.sd:.2g}; {better} values are good): best "
        f"{spread.best.value:.4g} in the order {_words(spread.best.order)}{spread.best.ties}, worst "
        f"{spread.worst.value:.4g} in the order {_words(spread.worst.order)}{spread.worst.ties}."
    ]
    said.append(explained(landscape))
    agreement = landscape.agreement
    if agreement is not None:
        said.append(
            f"The best order is the best of {agreement.best_agree} of {agreement.seeds} seeds (which have "
            f"{agreement.different_best} different best orders), and the worst order the worst of "
            f"{agreement.worst_agree} ({agreement.different_worst} different worst orders)."
        )
        if agreement.correlation is not None:
            said[-1] += f" Two seeds have a rank correlation of {agreement.correlation:.2f} over orders, on average."
    if landscape.disparity is not None:
        most = int(np.argmax(landscape.disparity.per_task))
        said.append(
            "Order-normalised performance disparity (Yoon et al. 2020; largest minus smallest value of a task over "
            f"orders): {landscape.disparity.mean:.4g} on average over tasks, at most "
            f"{landscape.disparity.maximum:.4g} (task {one_line(landscape.names[most], 40)})."
        )
    return tuple(said)


def explained(landscape: Landscape) -> str:
    """A sentence or two on the part of the variance over orders that positions and pairs explain."""
    if not landscape.complete:
        return (
            f"The orders are a sample: better and worse ones may exist among the others, and what positions and pairs "
            f"explain is known only if all orders of {landscape.num_tasks} tasks are there."
        )
    split = landscape.variance
    if split.shares is None:
        return "All orders have the same value: the order does not matter."
    said = (
        f"Which task stands where explains {_parts(split.shares[:1])} of the variance over orders, pairs of tasks "
        f"{_parts(split.shares[1:2])} more, and {_parts(split.shares[2:])} needs three tasks or more (without any "
        f"pattern: {_parts(split.chance)})."
    )
    if split.noise is None or split.signal is None:
        return said
    shares, errors = split.signal_shares, split.signal_errors
    if shares is None:
        return f"{said} But no variance over orders is common to the seeds: what there is, is their noise."
    inflated = float(split.noise.sum()) / split.num_seeds / split.variance
    error = "" if errors is None else f" (standard errors {', '.join(f'{100 * value:.1g}' for value in errors)} %)"
    return (
        f"{said} Noise of the seeds is {100 * inflated:.0f} % of that variance; without it the shares are "
        f"{_parts(shares)}{error}."
    )


def _parts(shares: Any) -> str:
    return joined(f"{round(100 * float(share))} %" for share in shares)


def _words(order: Sequence[int]) -> str:
    return " ".join(map(str, order[:20])) + (" ..." if len(order) > 20 else "")


def histogram(landscape: Landscape, order: Any = None) -> Curves:
    """The distribution of the means over seeds as steps, with marks at the best, the worst, the mean and an order."""
    values, spread = landscape.means, landscape.spread
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # all orders alike
        low, high = low - 0.5 * max(abs(low), 1.0), high + 0.5 * max(abs(high), 1.0)
    counts, edges = np.histogram(values, int(np.clip(np.sqrt(len(values)), 6, BINS)), (low, high))
    marks = [("best", spread.best.value), ("worst", spread.worst.value), ("mean over orders", spread.mean)]
    if order is not None:
        row = landscape.row(order)
        marks.append((f"order {_words(landscape.permutations[row].tolist())}", float(values[row])))
    label = f"{landscape.quantity}{', mean over seeds' if landscape.num_seeds > 1 else ''}"
    said = [(name, value, f"{value:.4g}") for name, value in marks]
    return distribution("orders", landscape.headline, label, edges, 100.0 * counts / len(values), said)


def positions(landscape: Landscape) -> Matrix | None:
    """The change of the mean by a task at a position; None if positions explain little, or no more than noise would."""
    if not landscape.complete or landscape.variance.shares is None:
        return None
    split = landscape.variance
    shares = split.shares if split.num_seeds < 2 else split.signal_shares
    if shares is None or shares[0] < max(LEAST, split.chance[0]):
        return None
    places = tuple(str(place) for place in range(1, landscape.num_tasks + 1))
    caption = (
        f"Mean {landscape.quantity} over the orders with a task at a position, minus the mean over all orders. "
        f"Position alone explains {100 * shares[0]:.0f} % of the variance over orders."
    )
    table = tuple(column(row) for row in split.table)
    title = f"{landscape.quantity}: which task stands where"
    return Matrix("positions", title, caption, "position", "task", landscape.names, places, table)


def landscape_report(landscape: Landscape, title: str, order: Any = None) -> Report:
    """Sentences, figures and tables of a landscape, for the renderers of `forgetting.report`."""
    spread = landscape.spread
    numbers: list[tuple[str, Any]] = [("best", spread.best.value)]
    numbers += [
        (f"{100 * level:g} % of orders below", value) for level, value in zip(LEVELS, spread.quantiles, strict=True)
    ]
    numbers += [("worst", spread.worst.value), ("mean", spread.mean), ("standard deviation", spread.sd)]
    summary = list(landscape.findings)
    if order is not None:
        row = landscape.row(order)
        rank, value = int(landscape.ranks[row]), float(landscape.means[row])
        numbers.append((f"order {_words(landscape.permutations[row].tolist())}", value))
        summary.insert(
            1,
            f"The order {_words(landscape.permutations[row].tolist())} has {value:.4g}, rank {rank} of "
            f"{len(landscape.values)}: {100 * (rank - 1) / len(landscape.values):.0f} % of the orders are better.",
        )
    items: list[Item] = [
        Table("spread", f"{landscape.quantity} over orders", "", ("over orders", landscape.quantity), tuple(numbers)),
        histogram(landscape, order),
        _extremes(landscape),
    ]
    if landscape.complete and landscape.variance.shares is not None:
        items.append(_variance_table(landscape))
    matrix = positions(landscape)
    items += [] if matrix is None else [matrix]
    if landscape.disparity is not None:
        rows = tuple(zip(landscape.names, landscape.disparity.per_task, strict=True))
        caption = "Largest minus smallest value of the task at the end of an order, of the mean over seeds."
        items.append(Table("disparity", "Disparity of tasks over orders", caption, ("task", "disparity"), rows))
    meta = {
        "tasks": landscape.num_tasks,
        "orders": len(landscape.values),
        "seeds": landscape.seeds.tolist(),
        "quantity": landscape.quantity,
        "higher is better": landscape.higher_is_better,
        **({"parts": _numbers(landscape)} if landscape.complete else {}),
        "versions": versions(),
    }
    section = Section("landscape", "Orders", "", tuple(items))
    return Report(title, (section,), meta, tuple(summary), lead="distribution")


def _extremes(landscape: Landscape) -> Table:
    """The best and the worst orders."""
    total = len(landscape.values)
    rows = np.unique(np.concatenate([np.arange(min(FEW, total)), np.arange(max(total - FEW, 0), total)]))
    columns = landscape._columns(rows, full=False)
    return Table("orders", "Best and worst orders", "", tuple(columns), tuple(zip(*columns.values(), strict=True)))


def _variance_table(landscape: Landscape) -> Table:
    split = landscape.variance
    known = (
        ("dimension", split.dimensions),
        ("by chance, %", _percent(split.chance)),
        ("share, %", _percent(split.shares)),
        ("of signal, %", _percent(split.signal_shares)),
        ("error, %", _percent(split.signal_errors)),
    )
    columns = {"part": PARTS} | {name: values for name, values in known if values is not None}
    caption = (
        f"The variance over orders of the mean over {split.num_seeds} seed(s), {split.variance:.4g}, in orthogonal "
        "parts: position (which task stands where), what pairs of tasks at pairs of positions add, and the rest. By "
        "chance: the shares of values that do not depend on the order. The signal is what seeds have in common, "
        "estimated without bias from products of different seeds, so that the estimate of a part may be negative."
    )
    rows = tuple(zip(*columns.values(), strict=True))
    return Table("variance", "What explains the differences between orders", caption, tuple(columns), rows)


def _percent(shares: Any) -> tuple[float, ...] | None:
    return None if shares is None else tuple(round(100 * share, 2) + 0.0 for share in column(shares))


def _numbers(landscape: Landscape) -> dict[str, Any]:
    """The parts of the variance at full precision, for machines."""
    split = landscape.variance
    known = {"variance": split.variances, "signal": split.signal, "noise of a seed": split.noise}
    return {name: dict(zip(PARTS, column(part), strict=True)) for name, part in known.items() if part is not None}


# ------------------------------------------------------------------------------------------------- the page of an audit


def landscape_section(audit: Audit) -> Section | None:
    """The section on what explains the differences between orders, and on the disparity of tasks, by every measure."""
    if audit.num_tasks < FEWEST or not audit.orders:
        return None
    try:
        landscapes = [audit.landscape(measure.name) for measure in audit.measures]
    except NotSupportedError:
        return None
    first = landscapes[0]
    rows = tuple(_row(measure, landscape) for measure, landscape in zip(audit.measures, landscapes, strict=True))
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


def _row(measure: Measure, landscape: Landscape) -> tuple[str, ...]:
    shares, disparity = landscape.variance.shares, landscape.disparity
    parts = ("-",) * 3 if shares is None else tuple(percent(float(share), 1.0) for share in shares)
    ends = ("-", "-")
    if disparity is not None:
        most = int(np.argmax(disparity.per_task))
        task = one_line(landscape.names[most], 40)
        ends = _difference(measure, disparity.mean), f"{_difference(measure, disparity.maximum)} (task {task})"
    return measure.name, _difference(measure, landscape.spread.sd), *parts, *ends


def _difference(measure: Measure, value: float) -> str:
    """A difference of two values with its unit."""
    return f"{100 * value:.1f} points" if measure.is_accuracy else measure.number(value)
