"""The measures by which an audit compares orders: losses and accuracies, on learned and on held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from forgetting.auditing.order_search import OrderSearch, search_orders
from forgetting.auditing.orders import (
    SLOW,
    FoundOrder,
    as_tasks,
    extreme_order,
    held_out_losses,
    pass_cost,
    pass_ends,
    unexplained_loss,
)
from forgetting.auditing.preparation import Prepared
from forgetting.core.arrangements import count_orders, distinct_orders
from forgetting.core.arrays import Array, IntArray, as_number
from forgetting.dynamics.loop import run
from forgetting.dynamics.metrics import average_incremental
from forgetting.orderings import Explicit
from forgetting.tasks import Problem

FLOPS = 3e10  # operations a second, roughly
ALL = 720  # up to this many different orders, all are tried
SAMPLE = 1000  # otherwise this many random orders, or as many as 4e10 operations allow,
FEWEST = 100  # and no fewer than this
POINT = 0.005  # half a percentage point: a smaller difference of mean accuracies is no reason to prefer an order
SAME = 1e-9  # relative difference below which two values count as equal
INCREMENTAL = 5.0  # seconds, as estimated, for average incremental accuracies of orders
LEAST = 20  # orders below which these have no mean
RATE = "rows classified correctly, in %; mean over tasks"
SO_FAR = "rows classified correctly, in %; mean over the tasks learned so far, averaged over the steps of the pass"
DEVIATIONS = 3.0  # standard errors that a mean over random orders may be off


@dataclass(frozen=True)
class Measure:
    """One measure of every order that was tried, at the end of a pass; all values are means over tasks.

    Attributes:
        name: "training loss", "forgetting", "held-out loss", "training accuracy" or "held-out accuracy".
        unit: what a value is, in words.
        higher: whether more is better; accuracies are parts of 1.
        given, cyclic: the value of the given order after one pass, and after all passes.
        best, worst: the values of the two orders that forget least and most (`Audit.search`; of tied orders, of the
            one that is named there).
        mean, error: the mean over random orders and its standard error, 0 if exact.
        values: the value of each order that was tried.
        top, bottom: the orders with the best and the worst value among those that were tried.
        incremental: of an accuracy, its mean over the steps of a pass on the tasks learned so far (average incremental
            accuracy), for the given, the best and the worst order.
        task_values: the value of each task after each order, if all orders were tried; empty for forgetting.
        along: of an accuracy, the average incremental accuracy as a measure of its own; of all orders tried, or of as
            many random ones as `INCREMENTAL` seconds allow. None where these are too few, and of all other measures.

    >>> order = FoundOrder((0,), 1.0)
    >>> loss = Measure("training loss", "", False, 2.0, 2.0, 1.0, 2.0, 1.5, 0.0, (1.0, 2.0), order, order)
    >>> loss.compare(loss.mean, loss.given), loss.compare(2.0, 2.0 + 1e-12), loss.share_better
    (1, 0, 0.5)
    """

    name: str
    unit: str
    higher: bool
    given: float
    cyclic: float
    best: float
    worst: float
    mean: float
    error: float
    values: tuple[float, ...]
    top: FoundOrder
    bottom: FoundOrder
    incremental: tuple[float, ...] = ()
    task_values: tuple[tuple[float, ...], ...] = ()
    along: Measure | None = None

    @property
    def extremes(self) -> tuple[FoundOrder, FoundOrder]:
        """The orders with the best and the worst value that is known; those that were searched for have no names here.

        >>> order = FoundOrder((0,), 1.0)
        >>> loss = Measure("training loss", "", False, 2.0, 2.0, 0.5, 2.0, 1.5, 0.0, (1.0, 2.0), order, order)
        >>> [found.value for found in loss.extremes]
        [0.5, 2.0]
        """
        top, bottom = self.top, self.bottom
        for value in (self.best, self.worst, self.given):
            top = FoundOrder((), value) if self.compare(value, top.value) > 0 else top
            bottom = FoundOrder((), value) if self.compare(value, bottom.value) < 0 else bottom
        return top, bottom

    @property
    def is_accuracy(self) -> bool:
        """Whether the values are parts of rows, which are shown in %."""
        return self.higher

    @cached_property
    def slack(self) -> float:
        """The difference up to which two values count as equal."""
        return SAME * max((abs(value) for value in (*self.values, self.given)), default=0.0)

    def compare(self, one: float, other: float, error: float = 0.0) -> int:
        """1 if the first value is better than the second, -1 if it is worse, 0 if they are equal up to the error."""
        one, other, error = as_number(one, "one"), as_number(other, "other"), as_number(error, "error")
        gain = (one - other) if self.higher else (other - one)
        return int(math.copysign(1, gain)) if abs(gain) > self.slack + DEVIATIONS * error else 0

    def _prefers(self, one: float, other: float, error: float = 0.0) -> int:
        """`compare`, where accuracies have to differ by half a percentage point."""
        return 0 if self.is_accuracy and abs(one - other) < POINT else self.compare(one, other, error)

    @property
    def random_against_given(self) -> int:
        """1 if a random order is better than the given one, on average and more often than not; -1 if worse; else 0."""
        mean = self._prefers(self.mean, self.given, self.error)
        often = self.share_better if mean > 0 else self.share_worse
        return mean if often > 0.5 else 0

    @property
    def best_against_given(self) -> int:
        """1 if the order that forgets least is better than the given order, -1 if it is worse, 0 if it is as good."""
        return self._prefers(self.best, self.given)

    @property
    def best_against_random(self) -> int:
        """1 if the order that forgets least is better than a random one on average, -1 if worse, 0 if that is open."""
        return self._prefers(self.best, self.mean, self.error)

    @property
    def tied(self) -> int:
        """The number of orders tried that are as good as the given one."""
        return sum(self.compare(value, self.given) == 0 for value in self.values)

    @property
    def share_better(self) -> float:
        """The part of all orders tried that are better than the given order."""
        return float(np.mean([self.compare(value, self.given) > 0 for value in self.values])) if self.values else 0.0

    @property
    def share_worse(self) -> float:
        """The part of all orders tried that are worse than the given order."""
        return float(np.mean([self.compare(value, self.given) < 0 for value in self.values])) if self.values else 0.0

    def number(self, value: float) -> str:
        """The value in words with four digits, accuracies in per cent."""
        value = as_number(value, "value")
        if self.is_accuracy:
            return f"{100 * value:.1f} %"
        short = float(f"{value:.4g}")
        return f"{short:,.0f}" if 1e4 <= abs(short) < 1e9 else f"{value:,.4g}"


def orders_to_try(problem: Problem, seed: int) -> tuple[IntArray, bool]:
    """All different orders of the tasks, one per row, and True; of more than 720, up to 1000 random ones, and False.

    >>> import forgetting as fg
    >>> orders, exact = orders_to_try(fg.families.two_lines(0.5), 0)
    >>> orders.tolist(), exact
    ([[0, 1], [1, 0]], True)
    """
    T, geometry = problem.num_tasks, problem.geometry
    counts = np.ones(T, dtype=np.int64) if geometry is None else geometry.counts
    index = np.arange(T) if geometry is None else geometry.index
    if count_orders(counts) <= ALL:
        return as_tasks(distinct_orders(counts), index), True
    work = SLOW * T if geometry is None else pass_cost(geometry) / 10  # products of matrices are faster than loops
    count = int(np.clip(4e9 / max(work, 1.0), FEWEST, SAMPLE))
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(11,)))
    return rng.permuted(np.tile(np.arange(T), (count, 1)), axis=1), False


# ------------------------------------------------------------------------------------------------------------ measuring


@dataclass(frozen=True, eq=False)
class MeasuredOrders:
    """The orders of the prepared tasks with their values: the stage between the tasks and the verdict.

    Attributes:
        search: the orders that forget least and most.
        tried: the orders that were tried, one per row.
        exact: whether these are all different orders.
        measures: the values of the orders by every measure of these tasks.
        start: the loss before learning.
        given: the forgetting of the given order after one pass.
        random: the two ends of an interval around the expected forgetting of a random order.
        seed: of the draw of rows and features.
    """

    search: OrderSearch
    tried: IntArray
    exact: bool
    measures: tuple[Measure, ...]
    start: float
    given: float
    random: tuple[float, float]
    seed: int = 0


def measure_orders(prepared: Prepared, evaluations: int | None = None, *, along: bool = True) -> MeasuredOrders:
    """Search for the best and the worst order, and measure these, the given order and all orders to try.

    `evaluations` are the orders that the search tries, as in `search_orders`; `along` says whether accuracies are
    measured along the orders, too.
    """
    problem, seed = prepared.problem, prepared.seed
    search = search_orders(
        problem, scheme=prepared.scheme, w0=prepared.w0, starts=[prepared.given], seed=seed, evaluations=evaluations
    )
    tried, exact = orders_to_try(problem, seed)
    measures = _measures(prepared, search, tried, exact, along=along)
    # if forgetting is no measure, every task is solved when it is learned, up to what no w can fit
    forgetting = next((measure for measure in measures if measure.name == "forgetting"), measures[0])
    kept = unexplained_loss(problem) if forgetting is measures[0] else 0.0
    mean, doubt = forgetting.mean - kept, DEVIATIONS * forgetting.error
    ends = mean - doubt, mean + doubt
    return MeasuredOrders(search, tried, exact, measures, prepared.start, forgetting.given - kept, ends, seed)


def _measures(
    prepared: Prepared, search: OrderSearch, tried: IntArray, exact: bool, *, along: bool
) -> tuple[Measure, ...]:
    """Every measure that these tasks have, of all orders tried and of the given, the best and the worst order.

    Forgetting is a measure of its own only if the scheme leaves some task unsolved: otherwise forgetting is the
    training loss less a constant.

    Cost: T steps for every order, many orders at once where the scheme is linear, and the losses and predictions at
    its end.
    """
    problem, given, test = prepared.problem, prepared.given, prepared.held_out
    named = [given, np.array(search.best.order), np.array(search.worst.order)]
    tables = order_tables(prepared, np.concatenate([tried, np.array(named)]))
    cycles = Explicit(np.tile(given, prepared.passes))
    repeated = run(problem, cycles, len(cycles.seq), prepared.scheme, w0=prepared.w0)
    last = {"training loss": repeated.losses[-1], "forgetting": repeated.forgetting[-1]}
    point = repeated.scaled_iterates[-1:]
    loss_unit = f"{problem.loss_meaning}; mean over tasks" if problem.loss_meaning else "mean over tasks"
    units = {
        "forgetting": f"increase of the loss since a task was learned: {loss_unit}",
        "training accuracy": RATE,
        "held-out accuracy": RATE,
    }
    rows_of = {"training accuracy": problem, "held-out accuracy": test}
    measures = []
    for name, table in tables.items():
        column = table.mean(axis=1)
        rows = rows_of.get(name)
        incremental: tuple[float, ...] = ()
        so_far = None
        if rows is not None:
            last[name] = rows.accuracies(point).mean()
            if along:
                first, least, most = incremental = tuple(_incremental(prepared, rows, np.array(named)).tolist())
                every = average_incremental(rows.accuracies(repeated.scaled_iterates[1:]), cycles.seq)
                so_far = _measure_along(prepared, rows, name, tried, exact, (first, every, least, most))
        elif name == "held-out loss" and test is not None:
            last[name] = held_out_losses(test, point).mean()
        values = column[: len(tried)]
        own, best, worst = (float(value) for value in column[len(tried) :])
        parts = table[: len(tried)].tolist() if exact and table.shape[1] > 1 else []
        ends = own, float(last[name]), best, worst
        plain = _measure(name, units.get(name, loss_unit), rows is not None, ends, tried, values, exact=exact)
        measures.append(replace(plain, incremental=incremental, task_values=tuple(map(tuple, parts)), along=so_far))
    return tuple(measures)


def _measure(
    name: str,
    unit: str,
    higher: bool,
    ends: tuple[float, float, float, float],
    tried: IntArray,
    values: Array,
    *,
    exact: bool,
) -> Measure:
    """A measure from its values of the orders tried; `ends` are those of the given order, cycles, best and worst."""
    spread = 0.0 if exact else float(np.std(values, ddof=1) / math.sqrt(len(values)))
    low, high = (extreme_order(tried, values, largest=largest) for largest in (False, True))
    top, bottom = (high, low) if higher else (low, high)
    mean = float(np.mean(values))
    return Measure(name, unit, higher, *ends, mean, spread, tuple(values.tolist()), top, bottom)


def _measure_along(
    prepared: Prepared, rows: Problem, name: str, tried: IntArray, exact: bool, ends: tuple[float, float, float, float]
) -> Measure | None:
    """The average incremental accuracy of the orders tried, or of as many of them as `INCREMENTAL` seconds allow."""
    points = 0.0 if rows.linear is None else float(rows.linear.num_rows.sum())
    width = float(rows.outputs or 1)
    each = tried.shape[1] * (1e-4 + points * width * (3e-8 + 2 * rows.dim / FLOPS))
    if prepared.problem.linear is None:  # a run of its own
        each += tried.shape[1] * SLOW / FLOPS
    most = int(INCREMENTAL / each)
    if most < min(len(tried), LEAST):
        return None
    if most < len(tried):
        rng = np.random.default_rng(np.random.SeedSequence(prepared.seed, spawn_key=(12,)))
        tried, exact = tried[np.sort(rng.choice(len(tried), most, replace=False))], False
    values = _incremental(prepared, rows, tried)
    return _measure(f"incremental {name}", SO_FAR, True, ends, tried, values, exact=exact)


def order_tables(prepared: Prepared, orders: IntArray) -> dict[str, Array]:
    """The values of each measure after each order, with a column for each task; forgetting has one column."""
    problem, scheme, test = prepared.problem, prepared.scheme, prepared.held_out
    parts: dict[str, list[Array]] = {}

    def add(name: str, table: Array) -> None:
        parts.setdefault(name, []).append(table)

    for ends in pass_ends(problem, scheme, prepared.w0, orders):
        add("training loss", ends.losses)
        if not scheme.solves_task:
            add("forgetting", ends.forgetting[:, None])
        if test is not None:
            add("held-out loss", held_out_losses(test, ends.points))
        for name, rows in (("training accuracy", problem), ("held-out accuracy", test)):
            if rows is not None and rows.labels_stand_for is not None:
                add(name, rows.accuracies(ends.points))
    return {name: np.concatenate(tables) for name, tables in parts.items()}


def _incremental(prepared: Prepared, rows: Problem, orders: IntArray) -> Array:
    """The accuracy on the tasks learned so far, averaged over the steps of a pass, for each order.

    Orders that begin alike are learned together.
    """
    problem, T = prepared.problem, orders.shape[1]
    if problem.linear is None:
        runs = (run(problem, Explicit(order), T, prepared.scheme, w0=prepared.w0) for order in orders)
        return np.array([
            average_incremental(rows.accuracies(once.scaled_iterates[1:]), once.order) for once in runs
        ])  # fmt: skip
    total = np.zeros(len(orders))
    for t in range(1, T + 1):
        begun, which = np.unique(orders[:, :t], axis=0, return_inverse=True)
        parts = [rows.accuracies(ends.points) for ends in pass_ends(problem, prepared.scheme, prepared.w0, begun)]
        total += np.take_along_axis(np.concatenate(parts), begun, axis=1).mean(axis=1)[which.ravel()]
    return np.asarray(total / T)
