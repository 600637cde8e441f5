"""The audit of matrices of accuracies: metrics by each convention, uncertainty over runs, the share of the order."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

from forgetting.auditing.kinds import audits, reads
from forgetting.auditing.matrix_page import findings_of, report_of
from forgetting.auditing.order_statistics import OrderShare, share_of_order
from forgetting.core.arrays import Array, IntArray, as_kind
from forgetting.core.text import counted, one_line
from forgetting.dynamics import metrics
from forgetting.dynamics.accuracy_matrices import (
    AccuracyMatrices,
    drawn_matrix,
    holds_matrices,
    mean_matrix,
)
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.figures.items import Matrix
from forgetting.report.document import Report
from forgetting.report.pages import ResultWithPage

LEVEL = 0.95
DERIVED = ("positive_backward_transfer", "remembering")  # numbers of Continuum that are functions of others
#: the numbers whose variance is split into order and seed, by the functions of `fg.metrics` and their conventions
COMPARED = (
    ("average_accuracy", ""),
    ("average_incremental", "icarl"),
    ("forgetting", "avalanche"),
    ("backward_transfer", "gem"),
)


@dataclass(frozen=True)
class MatrixMetric:
    """A number by one formula, for each run, with its uncertainty.

    Attributes:
        quantity, word: the function of `fg.metrics`, and its convention.
        formula: as in `fg.metrics.conventions`.
        sources: the libraries and papers that give this number, each with its name for the number.
        values: of each run.
        mean, sd: over runs, sd is None for one run. If orders were repeated, the mean is that of the means of orders:
            an order with more runs counts no more than the others.
        low, high: the 95 % interval of the mean, by Student's t over runs, or over orders if orders were repeated; None
            for one run (or one order).
    """

    quantity: str
    word: str
    formula: str
    sources: tuple[str, ...]
    values: tuple[float, ...]
    mean: float
    sd: float | None
    low: float | None
    high: float | None

    @property
    def name(self) -> str:
        """The quantity in words."""
        return self.quantity.replace("_", " ").replace("average incremental", "average incremental accuracy")


@dataclass(frozen=True)
class ForgottenTask:
    """A task (or a place in the order): its mean accuracy right after it was learned, and in the last row.

    `forgotten` is the difference; means and the 95 % interval are as those of a metric.
    """

    name: str
    learned: float
    last: float
    forgotten: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class OrderEffect:
    """The share of the order in the variance of a number over runs."""

    name: str
    word: str
    of: OrderShare


@dataclass(frozen=True, repr=False)
class MatrixAudit(ResultWithPage):
    """The result of `fg.audit` for matrices of accuracies; all accuracies are fractions.

    Attributes:
        title: the title of the pages.
        tasks: a row for each task that was learned.
        columns: the names of the columns of `mean`: all tasks, or places in the order.
        runs: the names of the runs.
        unit: the unit of the matrices that were read.
        doubts: signs of another convention, which come first.
        metrics: a row for each formula.
        effects: how much of the variance is between orders.
        mean: (steps, T), the mean over runs, with tasks in the order of learning; None where no run has a value.
        by_place: whether the columns of `mean` are places in the order, since runs have different orders.
        orders: the number of different orders.
        notes: where the numbers are from.

    >>> import forgetting as fg
    >>> audit = fg.audit(fg.AccuracyMatrices([[[0.9, 0.1], [0.6, 0.8]], [[0.9, 0.2], [0.7, 0.8]]]))
    >>> metric = audit.metric("backward_transfer", "gem")
    >>> round(metric.mean, 3), round(metric.low, 3), round(metric.high, 3)
    (-0.25, -0.885, 0.385)
    """

    kind = "matrix audit"

    title: str
    tasks: tuple[ForgottenTask, ...]
    columns: tuple[str, ...]
    runs: tuple[str, ...]
    unit: str
    doubts: tuple[str, ...]
    metrics: tuple[MatrixMetric, ...]
    effects: tuple[OrderEffect, ...]
    mean: tuple[tuple[float | None, ...], ...]
    by_place: bool
    orders: int
    notes: tuple[str, ...]

    def metric(self, quantity: str, word: str = "") -> MatrixMetric:
        """The number by a function of `fg.metrics` and a convention; the first one without a convention."""
        for metric in self.metrics:
            if metric.quantity == quantity and word in ("", metric.word):
                return metric
        known = ", ".join(f"{metric.quantity} {metric.word}".strip() for metric in self.metrics)
        raise InvalidInputError(f"no metric {quantity!r:.60} {word!r:.40}; there are {known}")

    @property
    def headline(self) -> str:
        return f"Audit of {self.title}: {counted(len(self.tasks), 'task')}, {counted(len(self.runs), 'run')}"

    @property
    def findings(self) -> tuple[str, ...]:
        """Signs of another convention, then the numbers, in a few sentences."""
        return (*self.doubts, *findings_of(self))

    def _num_rows(self) -> int:
        return len(self.metrics)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        chosen = [self.metrics[row] for row in rows]
        columns: dict[str, Any] = {"metric": [metric.name for metric in chosen]}
        columns["formula"] = [metric.formula for metric in chosen]
        columns["mean"] = [metric.mean for metric in chosen]
        if len(self.runs) > 1 or full:
            columns |= {name: [getattr(metric, name) for metric in chosen] for name in ("sd", "low", "high")}
        if full:
            columns["given by"] = ["; ".join(metric.sources) for metric in chosen]
        return columns

    def _remarks(self) -> tuple[str, ...]:
        return self.findings[:2]

    def figure(self) -> Matrix:
        """The mean accuracies over runs, in per cent: a row for each step."""
        mean = np.array([[np.nan if value is None else value for value in row] for row in self.mean])
        return drawn_matrix(mean, self.columns, self.by_place, len(self.runs))

    def to_report(self) -> Report:
        return report_of(self)

    def _check(self) -> None:
        if not self.effects or not self.tasks:
            raise ProblemFileError("no tasks, or no effects of the order")
        if any(len(metric.values) != len(self.runs) or not metric.sources for metric in self.metrics):
            raise ProblemFileError(
                f"a metric without a source, or not with one value for each of {len(self.runs)} runs"
            )
        if not self.metrics or not self.mean or any(len(row) != len(self.columns) for row in self.mean):
            raise ProblemFileError(f"no metrics, or rows of the mean matrix without {len(self.columns)} columns")


@reads
def matrices_in(source: Any) -> AccuracyMatrices | None:
    """The accuracies in an array, a file or several files that hold a matrix or a log of them; None for all else.

    A list of arrays is refused: it may hold the rows of tasks.
    """
    shape = _matrix_shape(source)
    if len(shape) in (2, 3) and shape[-2] - shape[-1] in (0, 1):
        if isinstance(source, np.ndarray):  # rows of tasks come with labels, in a pair
            return AccuracyMatrices(source)
        raise InvalidInputError(
            f"a list of shape {shape} does not say what it is: for accuracies (steps x tasks, or runs x "
            "steps x tasks) give fg.AccuracyMatrices(R), for tasks (X, y, task)"
        )
    files = [source] if isinstance(source, str | PathLike) else source
    if not isinstance(files, list | tuple) or not files or not all(isinstance(name, str | PathLike) for name in files):
        return None
    return AccuracyMatrices.load(list(files)) if all(map(holds_matrices, files)) else None


def _matrix_shape(source: Any) -> tuple[int, ...]:
    """The shape of an array, or of a list of lists or arrays that makes one; () of all else, such as pairs (X, y)."""
    if isinstance(source, list) and source and all(isinstance(part, list | np.ndarray) for part in source):
        with suppress(ValueError):  # parts of different shapes
            return np.shape(source)
    return source.shape if isinstance(source, np.ndarray) else ()


@audits(AccuracyMatrices.audited_as)
def audit_matrices(tasks: AccuracyMatrices, *, title: str | None = None) -> MatrixAudit:
    """The metrics of matrices of accuracies by every convention, their uncertainty over runs, and signs of mistakes.

    Args:
        tasks: the matrices.
        title: the title of the pages.
    """
    scale = 100.0 if tasks.unit == "per cent" else 1.0
    values = tasks.values / scale
    before = None if tasks.before is None else tasks.before / scale
    T = tasks.num_tasks
    orders = np.tile(np.arange(T), (len(values), 1)) if tasks.orders is None else tasks.orders
    rows = []
    for run, order in enumerate(orders):
        lost = [task for task in np.unique(order[order >= 0]).tolist() if np.isnan(values[run, -1, task])]
        if lost:
            raise InvalidInputError(
                f"run {one_line(tasks.runs[run], 40)}: task {one_line(tasks.names[lost[0]], 40)} was not evaluated in "
                "the last row, which all metrics need; give the accuracies of all tasks after the last step"
            )
        table = values[run] if before is None else np.vstack([before[run], values[run]])
        rows.append(metrics.conventions(table, order, before=before is not None).rows)
    found = _metrics(rows, tasks.order_names)
    effects = []
    for quantity, word in COMPARED:
        mine = [metric for metric in found if metric.quantity == quantity and metric.word == word]
        effects += [
            OrderEffect(metric.name, metric.word, share_of_order(metric.values, tasks.order_names)) for metric in mine
        ]
    mean, columns, by_place = mean_matrix(tasks)
    name = title if title is not None else _title(tasks)
    return MatrixAudit(
        title=as_kind(name, str, "a text", "title: "),
        tasks=_forgotten(tasks, values, orders),
        columns=columns,
        runs=tasks.runs,
        unit=tasks.unit,
        doubts=tuple(map(str, tasks.doubts)),
        metrics=found,
        effects=tuple(effects),
        mean=tuple(tuple(map(_known, row)) for row in (mean / scale).tolist()),
        by_place=by_place,
        orders=len(set(tasks.order_names)),
        notes=tasks.notes,
    )


def _title(tasks: AccuracyMatrices) -> str:
    files = dict.fromkeys(Path(run.partition(",")[0]).name for run in tasks.runs)
    return one_line(next(iter(files)), 60) if len(files) == 1 and "." in next(iter(files)) else "accuracy matrices"


def _known(value: float) -> float | None:
    """The value; None in place of NaN."""
    return None if value != value else value


def _metrics(rows: Sequence[Sequence[metrics.Convention]], orders: Sequence[str]) -> tuple[MatrixMetric, ...]:
    """A row for each formula that all runs have a value for, with all who give it."""
    found: dict[tuple[str, str], MatrixMetric] = {}
    for place, row in enumerate(rows[0]):
        values = [run[place].value for run in rows]
        if any(value is None for value in values):
            continue
        key, source = (row.quantity, row.formula), f"{row.library}: {row.theirs}"
        if key in found:
            found[key] = replace(found[key], sources=(*found[key].sources, source))
            continue
        numbers = np.array(values, dtype=float)
        sd = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
        mean, low, high = _mean_with_interval(numbers, orders)
        quantity = row.theirs if row.theirs in DERIVED else row.quantity
        found[key] = MatrixMetric(
            quantity, row.word, row.formula, (source,), tuple(numbers.tolist()), mean, sd, low, high
        )
    names = [*dict.fromkeys(row.quantity for row in rows[0]), *DERIVED]
    return tuple(sorted(found.values(), key=lambda metric: names.index(metric.quantity)))


def _mean_with_interval(values: Array, orders: Sequence[str]) -> tuple[float, float | None, float | None]:
    """The mean and its 95 % interval by Student's t: over runs, or over the means of orders if orders were repeated.

    Runs with one order are no independent draws of orders, so that they count once, and orders count alike.

    >>> [round(number, 4) for number in _mean_with_interval(np.array([0.0, 1.0, 1.0]), ["a", "b", "b"])]
    [0.5, -5.8531, 6.8531]
    """
    names = list(orders)
    known = dict.fromkeys(names)
    if "" not in known and 1 < len(known) < len(values):
        values = np.array([values[[name == own for own in names]].mean() for name in known])
    mean = float(values.mean())
    if len(values) < 2:
        return mean, None, None
    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / np.sqrt(len(values)))
    return mean, mean - half, mean + half


def _forgotten(tasks: AccuracyMatrices, values: Array, orders: IntArray) -> tuple[ForgottenTask, ...]:
    """What each task that was learned has lost, over the runs that learned it."""
    found = []
    columns, by_place = mean_matrix(tasks)[1:]
    names = [f"at place {place}" for place in columns] if by_place and tasks.orders is None else tasks.names
    for task, name in enumerate(names):
        runs, steps = np.nonzero(orders == task)
        runs, first = np.unique(runs, return_index=True)
        if not runs.size:
            continue
        learned, last = values[runs, steps[first], task], values[runs, -1, task]
        kinds = [tasks.order_names[run] for run in runs]
        after, end = (_mean_with_interval(part, kinds)[0] for part in (learned, last))
        found.append(ForgottenTask(name, after, end, *_mean_with_interval(learned - last, kinds)))
    return tuple(found)
