"""The result of `audit`: plain data, a page for the terminal, and a page for a browser."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import permutations
from os import PathLike
from typing import Any

import numpy as np

from forgetting.auditing.all_rows import AllRows
from forgetting.auditing.audit_figures import along
from forgetting.auditing.duplicates import Duplicate
from forgetting.auditing.findings import Case, Fit
from forgetting.auditing.landscape_files import write_values
from forgetting.auditing.landscapes import MOST_RUNS, Landscape, arrays_of
from forgetting.auditing.measures import Measure
from forgetting.auditing.order_search import OrderSearch
from forgetting.auditing.ordering_values import Guarantee, OrderingRow, Pass, Split
from forgetting.auditing.page import report_of, text_of
from forgetting.auditing.replay import ReplayTable
from forgetting.auditing.sentences import say
from forgetting.auditing.task_rows import Outlier, TaskRow
from forgetting.auditing.verdict import Verdict
from forgetting.core.arrays import IntArray, as_count
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.figures.items import Curves
from forgetting.report.document import Report
from forgetting.report.pages import ResultWithPage

TaskMatrix = tuple[tuple[float, ...], ...]  # T x T


@dataclass(frozen=True, repr=False)
class Audit(ResultWithPage):
    """The result of `fg.audit`: plain data, so that `Audit.from_json(a.to_json()) == a`.

    `print` shows a page for the terminal; `write_page("page.html")` writes a page for a browser.

    Attributes:
        title: the title of the pages.
        tasks: a row for each task.
        dim, rank_joint, radius: d, D and R of the tasks.
        scheme, seed, passes: the scheme, the seed, and the number of passes P.
        given: the given order.
        luck: the fraction of random orders that forget less in a pass than the given order.
        fit: joint realizability of the tasks, and ways to make them realizable.
        overlap, smallest_angle, largest_angle: T x T, see `Similarity`.
        orderings: expected loss and forgetting of each ordering after one pass and after P passes.
        search: the best and the worst order.
        passes_along: forgetting after each step of a pass, for some orders.
        splits: the shares of randomness and repetition, compared with the given and with the worst order.
        influence: T x T, see `Influence`.
        influence_runs, influence_exact: the number of orders in `influence`, and whether these are all orders.
        guarantees: the bounds that apply.
        duplicates, outliers: tasks that repeat other tasks, and tasks that stand out.
        notes: warnings about the tasks and the numbers.
        recommendation: sentences that say what there is and what to do, those of `opening` first.
        opening: at most four sentences that open the pages.
        kind_of_tasks: "regression", "classification" or "sets".
        unit: what a loss is, in words.
        tried, tried_exact: the number of orders that the measures are of, and whether these are all different orders.
        measures: every measure of the orders; see `Measure`.
        verdicts: the verdict of this seed, and those of the repeats with other seeds.
        preparation: what was done with the rows before they were learned, in words; empty if nothing was.
        drawn: what is drawn at random before learning, in words; empty if nothing is.
        cases: degenerate cases, which are said first.
        missing: what was left out of the audit, and why.
        orders: the orders that were tried, if these are all different orders; else empty.
        all_rows: what a head reaches that learns the rows of all tasks and forgets none, and joint training.
        replay: what replay of a few rows of each task would change; None where it is not defined, or takes too long.
    """

    kind = "audit"
    _unbounded = False

    title: str
    tasks: tuple[TaskRow, ...]
    dim: int
    rank_joint: int | None
    radius: float | None
    scheme: str
    seed: int
    passes: int
    given: tuple[int, ...]
    luck: float
    fit: Fit
    overlap: TaskMatrix
    smallest_angle: TaskMatrix
    largest_angle: TaskMatrix
    orderings: tuple[OrderingRow, ...]
    search: OrderSearch
    passes_along: tuple[Pass, ...]
    splits: tuple[Split, ...]
    influence: TaskMatrix
    influence_runs: int
    influence_exact: bool
    guarantees: tuple[Guarantee, ...]
    duplicates: tuple[Duplicate, ...]
    outliers: tuple[Outlier, ...]
    notes: tuple[str, ...]
    recommendation: tuple[str, ...] = ()
    opening: tuple[str, ...] = ()
    kind_of_tasks: str = "regression"
    unit: str = ""
    tried: int = 0
    tried_exact: bool = False
    measures: tuple[Measure, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    preparation: str = ""
    drawn: str = ""
    cases: tuple[Case, ...] = ()
    missing: tuple[str, ...] = ()
    orders: tuple[tuple[int, ...], ...] = ()
    all_rows: AllRows | None = None
    replay: ReplayTable | None = None

    @property
    def num_tasks(self) -> int:
        """The number of tasks T."""
        return len(self.tasks)

    @property
    def headline(self) -> str:
        return f"Audit of {self.title}: {self.num_tasks} tasks in {self.dim} dimensions"

    def _num_rows(self) -> int:
        return len(self.orderings)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        chosen = [self.orderings[row] for row in rows]
        names = ("name", "k", "forgetting", "loss", "method")
        ends = ("forgetting_low", "forgetting_high", "loss_low", "loss_high") if full else ()
        return {name: [getattr(row, name) for row in chosen] for name in (*names, *ends)}

    def _remarks(self) -> tuple[str, ...]:
        return (self.opening or self.recommendation)[:2]

    def figure(self) -> Curves:
        """Forgetting along a pass, for the given, the best, the worst and a greedy order."""
        return along(self)

    def measure(self, name: str) -> Measure:
        """The measure of this name, such as "training loss" or "training accuracy".

        >>> import forgetting as fg
        >>> audit = fg.audit(fg.families.two_lines(0.5))
        >>> [measure.name for measure in audit.measures], audit.measure("training loss").higher
        (['training loss'], False)
        """
        for measure in self.measures:
            if isinstance(name, str) and measure.name == name:
                return measure
        raise InvalidInputError(
            f"no measure {name!r:.80}; there are {', '.join(known.name for known in self.measures)}"
        )

    def landscape(self, measure: str = "training loss") -> Landscape:
        """The values of a measure after all orders, as a `Landscape`; for up to 6 tasks, whose orders are all tried.

        >>> import forgetting as fg
        >>> audit = fg.audit(fg.families.gaussian(T=4, d=8, rank=2, seed=0))
        >>> [round(share, 3) for share in audit.landscape().variance.shares.tolist()]
        [0.679, 0.32, 0.001]
        """
        chosen, T = self.measure(measure), self.num_tasks
        why = ""
        if not self.tried_exact or not self.orders:
            why = f"{self.tried:,} random orders of {T} tasks were tried, and not all"
        elif math.factorial(T) > MOST_RUNS:
            why = f"{T} tasks have {math.factorial(T):,} orders, more than {MOST_RUNS:,}"
        if why:
            raise NotSupportedError(f"the landscape of orders needs the values of all orders: {why}")
        orders = np.array(list(permutations(range(T))), dtype=np.int64)
        rows = self._rows_of(orders)
        parts = np.array(chosen.task_values)[rows] if chosen.task_values else None
        values, names = np.array(chosen.values)[rows], tuple(task.name for task in self.tasks)
        return Landscape(orders, values, np.array([self.seed]), measure, chosen.higher, parts, names)

    def _rows_of(self, orders: IntArray) -> IntArray:
        """The rows of `Audit.orders` with these orders, up to the order of identical tasks."""
        index = np.arange(self.num_tasks)
        for duplicate in self.duplicates:
            if duplicate.kind == "identical":
                index[duplicate.task] = index[duplicate.of]
        place = {tuple(index[list(order)].tolist()): row for row, order in enumerate(self.orders)}
        return np.array([place[tuple(index[order].tolist())] for order in orders])

    def write_landscape(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the values of all orders to an .npz file, which `Landscape.from_npz` and the command line read.

        `values` are training losses; each measure has an array of its own, such as `training_accuracy`, and one of its
        values by task, such as `task_training_accuracy`.
        """
        write_values(path, landscape_arrays(self), force=force)

    def _check(self) -> None:
        check_parts(self)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict of the seed of the audit; None in files of earlier versions."""
        return self.verdicts[0] if self.verdicts else None

    def ordering(self, name: str, passes: int = 1) -> OrderingRow:
        """The row of the ordering with this name and number of passes.

        >>> import forgetting as fg
        >>> audit = fg.audit(fg.families.two_lines(0.5))
        >>> audit.ordering("given order").k, audit.ordering("with replacement", passes=3).k
        (2, 6)
        """
        passes = as_count(passes, "passes")
        for row in self.orderings:
            if isinstance(name, str) and row.name == name and row.passes == passes:
                return row
        names = ", ".join(dict.fromkeys(row.name for row in self.orderings))
        raise InvalidInputError(f"no ordering {name!r:.80} of {passes} passes; there are {names}, 1 and {self.passes}")

    def to_report(self) -> Report:
        return report_of(self, replace(say(self), opening=self.opening))

    def _text(self, report: Report, width: int) -> str:
        return text_of(self, report, width)


def landscape_arrays(audit: Audit) -> dict[str, Any]:
    """The arrays of an .npz file: `values` are training losses, and each measure has an array of its own."""
    arrays: dict[str, Any] = {}
    for measure in audit.measures:
        own = arrays_of(audit.landscape(measure.name))
        key = measure.name.replace(" ", "_").replace("-", "_")
        arrays = (arrays or own) | {key: own["values"]}
        if "task_values" in own:
            arrays[f"task_{key}"] = own["task_values"]
    return arrays


def check_parts(audit: Audit) -> None:
    """Raise if the parts of an audit do not fit together: task numbers, sizes, and required orderings."""
    T = audit.num_tasks
    named = [*audit.given, *audit.search.best.order, *audit.search.worst.order, *audit.fit.offenders]
    named += [task for single_pass in audit.passes_along for task in single_pass.order]
    named += [task for row in audit.tasks for task in (row.worst_by, row.nearest) if task is not None]
    named += [task for duplicate in audit.duplicates for task in (duplicate.task, duplicate.of)]
    named += [outlier.task for outlier in audit.outliers]
    named += [task for order in audit.orders for task in order]
    named += [task for verdict in audit.verdicts for task in (*verdict.worst, *verdict.best)]
    measures = [part for measure in audit.measures for part in (measure, measure.along) if part is not None]
    named += [task for measure in measures for task in (*measure.top.order, *measure.bottom.order)]
    stranger = next((task for task in named if not 0 <= task < T), None)
    if stranger is not None:
        raise ProblemFileError(f"there is no task {stranger} of {T}")
    for name in ("overlap", "smallest_angle", "largest_angle", "influence"):
        rows = getattr(audit, name)
        may_be_empty = name != "influence" and audit.kind_of_tasks != "regression"
        if not (may_be_empty and not rows) and [len(row) for row in rows] != [T] * T:
            raise ProblemFileError(f"{name} is not {T} x {T}")
    if not audit.measures and (audit.orders or audit.verdicts):  # files of the first version have none of these
        raise ProblemFileError("orders or verdicts, but no measure of the orders")
    for measure in audit.measures:
        count = len(audit.orders)
        if (count and len(measure.values) != count) or (measure.task_values and len(measure.task_values) != count):
            raise ProblemFileError(f"{measure.name} has not one value for each of {count} orders")
        if any(len(row) != T for row in measure.task_values):
            raise ProblemFileError(f"{measure.name}: not a value for each of {T} tasks")
    if any(sorted(order) != list(range(T)) for order in audit.orders):
        raise ProblemFileError(f"an order does not name each of {T} tasks once")
    if any(len(single_pass.forgetting) != T for single_pass in audit.passes_along):
        raise ProblemFileError(f"a pass does not have {T} steps")
    rows = {(row.name, row.passes) for row in audit.orderings}
    for name in {"random permutation", *(name for name, _ in rows)}:
        missing = {1, audit.passes} - {passes for other, passes in rows if other == name}
        if missing:
            raise ProblemFileError(f"no ordering {name!r} of {min(missing)} passes")
