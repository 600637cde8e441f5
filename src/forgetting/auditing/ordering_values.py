"""The orderings that an audit compares: expected loss and forgetting, shares of causes, passes, and guarantees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from math import factorial
from typing import Any

import numpy as np

from forgetting import bounds
from forgetting.auditing.measures import Measure, MeasuredOrders
from forgetting.auditing.orders import Quantity, pass_cost, unexplained_loss
from forgetting.auditing.preparation import Prepared
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import view_of
from forgetting.errors import PatienceError
from forgetting.expectation import Expectation, expect
from forgetting.expectation.api import ask
from forgetting.expectation.engines import choose
from forgetting.orderings import (
    Cyclic,
    DissimilarNeighbours,
    Explicit,
    GreedyDistance,
    GreedyThenRandom,
    HermanMeyer,
    Ordering,
    PeripheryFirst,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
    laws,
)

QUANTITIES: tuple[Quantity, Quantity] = ("loss", "forgetting")
FEW = 128  # simulated runs where steps are slow
MOST_WORK = 1.6e11  # operations of all simulated runs of an ordering, if that leaves enough of them
LITTLE = 0.05  # of what a fixed order forgets: a smaller fall leaves nothing to explain
MOST_COMPARED = 300  # tasks whose similarities are made into orders
MOST_LISTED = 300  # orders that are all followed
MOST_SIMULATED = 200  # steps of a run whose order is chosen step by step
HYBRID = "greedy, then random"
DEVIATIONS = 2.6  # standard errors between the value and the end of an interval


@dataclass(frozen=True)
class OrderingRow:
    """Expected loss and forgetting of an ordering after k steps, with intervals and the method.

    `bounded` says whether the values have a known range, so that simulated intervals hold for any distribution on it;
    if not, the intervals are normal approximations. `exact` says whether the values are exact up to rounding. If
    `exact` is not given, as in files of earlier versions, it says whether the intervals are points.

    >>> OrderingRow("given order", "Cyclic()", 3, 1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, "deterministic", 1.0).exact
    True
    """

    name: str
    ordering: str
    k: int
    passes: int
    loss: float
    loss_low: float
    loss_high: float
    forgetting: float
    forgetting_low: float
    forgetting_high: float
    method: str
    confidence: float
    bounded: bool = True
    exact: bool | None = None

    def __post_init__(self) -> None:
        if self.exact is None:
            points = self.loss_low == self.loss_high and self.forgetting_low == self.forgetting_high
            object.__setattr__(self, "exact", points)


@dataclass(frozen=True)
class Pass:
    """The forgetting after each step of a pass.

    >>> Pass("given order", (0, 1), (0.0, 0.25)).forgetting[-1]
    0.25
    """

    name: str
    order: tuple[int, ...]
    forgetting: tuple[float, ...]


@dataclass(frozen=True)
class Split:
    """The shares of randomness and repetition in the fall of forgetting.

    There are four values of forgetting: for a fixed order learned once and P times (cyclic), and for a random order
    learned once (without replacement) and P times (reshuffled). From the first value to the last, forgetting falls by
    fixed_once - random_many. The share of a cause is the mean of its effect without and with the other cause:

        randomness = 1/2 ((fixed_once - random_once) + (fixed_many - random_many)) / (fixed_once - random_many),

    and repetition = 1 - randomness. Shares of 1/2 mean that either cause alone has the full effect. A share is negative
    if its cause raises forgetting.

    Attributes:
        baseline: the name of the fixed order.
        replaced_once: for comparison, the forgetting after T draws with replacement.
        randomness, repetition: the shares; None if forgetting does not fall, or by less than 5 % (`LITTLE`) of what the
            fixed order forgets, or is negative.
    """

    baseline: str
    passes: int
    fixed_once: float
    random_once: float
    fixed_many: float
    random_many: float
    replaced_once: float
    randomness: float | None
    repetition: float | None

    @property
    def little(self) -> bool:
        """Whether forgetting falls by so little that there is nothing to explain; also in files with shares."""
        return 0 < self.fixed_once - self.random_many < LITTLE * self.fixed_once


@dataclass(frozen=True)
class Guarantee:
    """An upper bound that applies to an ordering after k steps, and the measured value.

    >>> Guarantee("with replacement", 10, "loss", "demo", 1.0, 0.25, True, False).ratio
    0.25
    """

    ordering: str
    k: int
    quantity: str
    key: str
    value: float
    measured: float
    tightest: bool
    vacuous: bool

    @property
    def ratio(self) -> float | None:
        """The measured value divided by the bound; None if the bound is 0."""
        return self.measured / self.value if self.value > 0 else None


Rows = tuple[OrderingRow, ...]


def compare_orderings(
    prepared: Prepared, measured: MeasuredOrders, runs: int | None, patience: float
) -> tuple[Rows, tuple[Pass, ...], list[str]]:
    """The rows of every ordering, after one pass and after all passes; passes in fixed orders; and notes.

    Random orderings are simulated, with `runs` runs, if exact values take more than `patience` seconds.
    """
    T, P, search = prepared.problem.num_tasks, prepared.passes, measured.search
    both = [T, P * T]
    given, best, worst = (
        _follow(prepared, name, Explicit(tuple(order) * P), both)
        for name, order in (
            ("given order", prepared.given.tolist()),
            ("best order", search.best.order),
            ("worst order", search.worst.order),
        )
    )
    # in a single pass of the greedy ordering each task comes once, which takes another ordering
    greedy = _follow(prepared, "greedy", GreedyDistance(repeat=False), both[:1])
    greedy_again = _follow(prepared, "greedy", GreedyDistance(), both[1:])
    by_rule = [
        row
        for name, order in _orders_by_rule(prepared)
        for row in _follow(prepared, name, Explicit(tuple(order) * P), both)[0]
    ]
    random: list[OrderingRow] = []
    notes: list[str] = []
    # the first pass of a reshuffled ordering is without replacement
    for name, ordering in (("random permutation", Reshuffled()), ("with replacement", WithReplacement())):
        values = _expected(prepared, ordering, both, runs, patience, notes)
        random += [_row(prepared, name, ordering, k, values, at) for at, k in enumerate(both)]
    if measured.exact and prepared.problem.linear is None and prepared.scheme.solves_task and not random[0].exact:
        # every order was tried, and forgetting is the loss of tasks that are solved when they are learned
        mean = measured.measures[0].mean
        random[0] = replace(
            random[0], loss=mean, loss_low=mean, loss_high=mean, forgetting=mean, forgetting_low=mean,
            forgetting_high=mean, method="all orders", confidence=1.0, bounded=True, exact=True,
        )  # fmt: skip
    by_rule += _hybrid(prepared, both, notes)
    rows = (*given[0], *random, *best[0], *worst[0], *greedy[0], *greedy_again[0], *by_rule)
    return rows, (given[1], best[1], worst[1], greedy[1]), notes


def _orders_by_rule(prepared: Prepared) -> list[tuple[str, list[int]]]:
    """Orders of linear tasks by rules that look at no loss, by name."""
    problem, T = prepared.problem, prepared.problem.num_tasks
    if problem.linear is None or T <= 2 or T > MOST_COMPARED:
        return []
    rules: list[tuple[str, Ordering]] = [
        ("periphery first", PeripheryFirst()),
        ("dissimilar neighbours", DissimilarNeighbours()),
        ("Herman-Meyer", HermanMeyer()),
    ]
    orders = [(name, rule.first(view_of(problem), T).tolist()) for name, rule in rules]
    # for a prime number of tasks, the last rule changes nothing
    return [(name, order) for name, order in orders if name != "Herman-Meyer" or order != list(range(T))]


def _hybrid(prepared: Prepared, steps: list[int], notes: list[str]) -> list[OrderingRow]:
    """The rows of greedy half passes with a random rest: means over all of them, or simulated; none if that is slow."""
    problem, ordering = prepared.problem, GreedyThenRandom(repeat=True)
    T, P = problem.num_tasks, prepared.passes
    if problem.linear is None or T <= 2 or steps[-1] > MOST_SIMULATED:
        return []
    if factorial(T // 2) ** P <= MOST_LISTED:
        listed = [_follow(prepared, HYBRID, Explicit(order), steps)[0] for order in _hybrid_orders(prepared)]
        rows = []
        for each in zip(*listed, strict=True):
            loss, forgetting = (float(np.mean([getattr(row, name) for row in each])) for name in QUANTITIES)
            ends = loss, loss, loss, forgetting, forgetting, forgetting
            k = each[0].k
            rows.append(OrderingRow(HYBRID, str(ordering), k, k // T, *ends, "all orders", 1.0, True, True))
        return rows
    values = expect(
        problem, ordering, steps, prepared.scheme, prepared.w0, method="monte-carlo", seed=prepared.seed, runs=FEW,
        quantities=QUANTITIES,
    )  # fmt: skip
    notes.append(f"{HYBRID} orders look at the iterate, and are simulated, by {FEW} runs")
    return [_row(prepared, HYBRID, ordering, k, values, at) for at, k in enumerate(steps)]


def _hybrid_orders(prepared: Prepared) -> list[tuple[int, ...]]:
    """All orders of `GreedyThenRandom` in all passes, each as likely as the others."""
    problem, scheme = prepared.problem, prepared.scheme
    T = problem.num_tasks
    greedy = T - T // 2
    found: list[tuple[tuple[int, ...], Any]] = [((), prepared.w0)]
    for _ in range(prepared.passes):
        longer = []
        for order, w in found:
            first = run(problem, GreedyDistance(repeat=False), greedy, scheme, w0=w, record_every=greedy)
            chosen = first.order.tolist()
            for rest in permutations(sorted(set(range(T)) - set(chosen))):
                then = run(
                    problem, list(rest), len(rest), scheme, w0=first.iterates[-1], record_every=max(1, len(rest))
                )
                longer.append(((*order, *chosen, *rest), then.iterates[-1]))
        found = longer
    return [order for order, _ in found]


def _follow(prepared: Prepared, name: str, ordering: Ordering, steps: list[int]) -> tuple[list[OrderingRow], Pass]:
    """The rows of an ordering that draws nothing at random, and its first pass, from one run."""
    T = prepared.problem.num_tasks
    recorded = sorted({*range(T + 1), *steps})
    followed = run(prepared.problem, ordering, steps[-1], prepared.scheme, w0=prepared.w0, record_every=recorded)
    rows = []
    for k in steps:
        loss, forgetting = float(followed.losses[recorded.index(k)]), float(followed.forgetting[k - 1])
        values = loss, loss, loss, forgetting, forgetting, forgetting
        rows.append(OrderingRow(name, str(ordering), k, k // T, *values, "deterministic", 1.0, True, True))
    return rows, Pass(name, tuple(followed.order[:T].tolist()), tuple(followed.forgetting[:T].tolist()))


def _expected(
    prepared: Prepared, ordering: Ordering, steps: list[int], runs: int | None, patience: float, notes: list[str]
) -> Expectation:
    """The expected loss and forgetting at the given steps; simulated if an exact method takes too long."""
    problem, scheme, w0 = prepared.problem, prepared.scheme, prepared.w0
    request = ask(problem, ordering, steps, scheme, w0, QUANTITIES).request
    try:
        method = choose(replace(request, patience=patience)).engine.name
    except PatienceError as error:
        method = error.method
    simulated = method == "monte-carlo"
    # after complete passes every task was visited equally often, so that tasks that are solved when they are learned
    # are forgotten by the loss, less what no w can fit
    solved = problem.geometry is not None and scheme.solves_task
    derived = simulated and solved and isinstance(ordering.law, laws.Reshuffled)
    count = runs or _affordable_runs(prepared)
    expectation = expect(
        problem, ordering, steps, scheme, w0, method=method, seed=prepared.seed, runs=count,
        quantities=QUANTITIES[:1] if derived else QUANTITIES,
    )  # fmt: skip
    if simulated:
        notes.append(f"random orderings are simulated, by {count:,} runs each: exact values take longer")
    notes += [note for note in expectation.notes if not note.startswith("completed")]
    if not derived:
        return expectation
    kept = unexplained_loss(problem)
    return replace(
        expectation,
        values={**expectation.values, "forgetting": expectation.values["loss"] - kept},
        intervals={**expectation.intervals, "forgetting": expectation.intervals["loss"] - kept},
    )


def _affordable_runs(prepared: Prepared) -> int:
    geometry = prepared.problem.geometry
    if geometry is None:  # every step is a projection that is not compiled
        return FEW
    work = 2.0 * prepared.passes * pass_cost(geometry)
    return 4096 if 4096 * work < 5e9 else int(np.clip(MOST_WORK / work, 2 * FEW, 1024))


def _row(prepared: Prepared, name: str, ordering: Ordering, k: int, values: Expectation, at: int) -> OrderingRow:
    """The row of an ordering after k steps; `at` is the index of step k in `values`."""
    (loss, a, b), (forgetting, c, d) = (
        (float(np.asarray(values.values[quantity])[at]), *values.interval(quantity)[at].tolist())
        for quantity in QUANTITIES
    )
    how = values.method, values.confidence, values.exact or "loss" in values.ranges, values.exact
    passes = k // prepared.problem.num_tasks
    return OrderingRow(name, str(ordering), k, passes, loss, a, b, forgetting, c, d, *how)


def with_expected_values(measured: MeasuredOrders, rows: Rows) -> MeasuredOrders:
    """The measured orders with the expected values of random orders in place of the means over the orders tried.

    Rare orders may have large losses, which a sample of orders misses.
    """
    given, random = (
        next(row for row in rows if (row.name, row.passes) == (name, 1))
        for name in ("given order", "random permutation")
    )
    values = {
        "training loss": (random.loss, random.loss_low, random.loss_high),
        "forgetting": (random.forgetting, random.forgetting_low, random.forgetting_high),
    }

    def expected(measure: Measure) -> Measure:
        if measure.error == 0 or measure.name not in values:
            return measure
        mean, low, high = values[measure.name]
        return replace(measure, mean=mean, error=(high - low) / 2 / DEVIATIONS)

    measures, ends = tuple(map(expected, measured.measures)), (random.forgetting_low, random.forgetting_high)
    return replace(measured, measures=measures, given=given.forgetting, random=ends)


def shares_of_causes(orderings: Rows, passes: int, rounding: float) -> tuple[Split, ...]:
    """The shares of randomness and repetition in the fall of forgetting; less than `rounding` is no fall."""
    values = {(row.name, row.passes): row.forgetting for row in orderings}
    splits = []
    for baseline in ("given order", "worst order"):
        a, b, c, d = (values[name, count] for count in (1, passes) for name in (baseline, "random permutation"))
        falls = a - d > max(rounding, LITTLE * a) and min(a, b, c, d) >= -rounding
        randomness = ((a - b) + (c - d)) / 2 / (a - d) if falls else None
        repetition = None if randomness is None else 1 - randomness
        splits.append(Split(baseline, passes, a, b, c, d, values["with replacement", 1], randomness, repetition))
    return tuple(splits)


def applicable_guarantees(prepared: Prepared, rows: Rows) -> tuple[Guarantee, ...]:
    """The upper bounds on loss and forgetting that apply to the orderings compared, with the values there."""
    wanted: dict[tuple[str, bool], tuple[str, Ordering]] = {
        ("with replacement", False): ("with replacement", WithReplacement()),
        ("random permutation", True): ("without replacement", WithoutReplacement()),
        ("random permutation", False): ("reshuffled", Reshuffled()),
        ("given order", False): ("cyclic", Cyclic()),  # no bound depends on the numbers of the tasks
    }
    guarantees = []
    for row in rows:
        name, ordering = wanted.get((row.name, row.passes == 1), ("", None))
        if ordering is None:
            continue
        evaluation = bounds.evaluate(prepared.problem, ordering, row.k, prepared.w0, scheme=prepared.scheme)
        for entry in evaluation.applicable():
            if entry.bound.kind == "upper" and entry.quantity in QUANTITIES:
                measured = row.loss if entry.quantity == "loss" else row.forgetting
                details = entry.bound.key, entry.value, measured, entry.tightest, entry.vacuous
                guarantees.append(Guarantee(name, row.k, entry.quantity, *details))
    return tuple(guarantees)
