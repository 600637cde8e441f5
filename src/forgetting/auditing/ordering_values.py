"""The orderings that an audit compares: expected loss and forgetting, shares of causes, passes, and guarantees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forgetting import bounds
from forgetting.auditing.measures import Measure
from forgetting.auditing.order_search import OrderSearch
from forgetting.auditing.orders import Quantity, pass_cost
from forgetting.auditing.result import Guarantee, OrderingRow, Pass, Split
from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.loop import run
from forgetting.errors import PatienceError
from forgetting.expectation import Expectation, expect
from forgetting.expectation.api import ask
from forgetting.expectation.engines import choose
from forgetting.orderings import (
    Cyclic,
    Explicit,
    GreedyDistance,
    Ordering,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
    laws,
)
from forgetting.schemes import Scheme
from forgetting.tasks import Problem

QUANTITIES: tuple[Quantity, Quantity] = ("loss", "forgetting")
FEW = 128  # simulated runs where steps are slow
MOST_WORK = 1.6e11  # operations of all simulated runs of an ordering, if that leaves enough of them
DEVIATIONS = 2.6  # standard errors between the value and the end of an interval


class OrderingValues:
    """Computes the expected loss and forgetting of many orderings of a problem."""

    def __init__(
        self,
        problem: Problem,
        scheme: Scheme,
        w0: Array,
        passes: int,
        seed: int,
        runs: int | None,
        patience: float,
    ) -> None:
        self.problem, self.scheme, self.w0, self.passes, self.seed = problem, scheme, w0, passes, seed
        self.patience = patience
        self.notes: list[str] = []
        geometry = problem.geometry
        if geometry is None:  # every step is a projection that is not compiled
            self.runs = runs or FEW
        else:
            work = 2.0 * passes * pass_cost(geometry)
            self.runs = runs or (4096 if 4096 * work < 5e9 else int(np.clip(MOST_WORK / work, 2 * FEW, 1024)))
        # after complete passes of tasks that are solved when they are learned, forgetting is the loss less this
        solved = geometry is not None and scheme.solves_task
        self.kept = float(geometry.unexplained @ geometry.counts) / problem.num_tasks if solved and geometry else None

    def compare(self, given: IntArray, search: OrderSearch) -> tuple[OrderingRow, ...]:
        """The rows of every ordering: one after a single pass, and one after `passes` passes."""
        T, P = self.problem.num_tasks, self.passes
        rows = self.fixed("given order", Explicit(np.tile(given, P)), [T, P * T])
        # the first pass of a reshuffled ordering is without replacement
        for name, random in (("random permutation", Reshuffled()), ("with replacement", WithReplacement())):
            values = self.values(random, [T, P * T])
            rows += [self.row(name, random, k, values, at) for at, k in enumerate((T, P * T))]
        for name, extreme in (("best order", search.best), ("worst order", search.worst)):
            rows += self.fixed(name, Explicit(extreme.order * P), [T, P * T])
        # in a single pass of the greedy ordering each task comes once, which takes another ordering
        for k, greedy in ((T, GreedyDistance(repeat=False)), (P * T, GreedyDistance())):
            rows += self.fixed("greedy", greedy, [k])
        return tuple(rows)

    def fixed(self, name: str, ordering: Ordering, steps: list[int]) -> list[OrderingRow]:
        """The rows of an ordering that draws nothing at random, from one run."""
        made = run(self.problem, ordering, steps[-1], self.scheme, w0=self.w0, record_every=steps)
        rows = []
        for k, loss in zip(steps, made.losses[-len(steps) :].tolist(), strict=True):
            forgetting, passes = float(made.forgetting[k - 1]), k // self.problem.num_tasks
            values = loss, loss, loss, forgetting, forgetting, forgetting
            rows.append(OrderingRow(name, str(ordering), k, passes, *values, "deterministic", 1.0, True, True))
        return rows

    def values(self, ordering: Ordering, steps: list[int]) -> Expectation:
        """The expected loss and forgetting at the given steps; simulated if an exact method takes too long."""
        request = ask(self.problem, ordering, steps, self.scheme, self.w0, QUANTITIES).request
        try:
            method = choose(replace(request, patience=self.patience)).engine.name
        except PatienceError as error:
            method = error.method
        # after complete passes every task was visited equally often, so that forgetting follows from the loss
        derived = method == "monte-carlo" and self.kept is not None and isinstance(ordering.law, laws.Reshuffled)
        expectation = expect(
            self.problem,
            ordering,
            steps,
            self.scheme,
            self.w0,
            method=method,
            quantities=QUANTITIES[:1] if derived else QUANTITIES,
            seed=self.seed,
            runs=self.runs,
        )
        if method == "monte-carlo":
            self.notes.append(f"random orderings are simulated, by {self.runs:,} runs each: exact values take longer")
        self.notes += [note for note in expectation.notes if not note.startswith("completed")]
        if not derived or self.kept is None:
            return expectation
        return replace(
            expectation,
            values={**expectation.values, "forgetting": expectation.values["loss"] - self.kept},
            intervals={**expectation.intervals, "forgetting": expectation.intervals["loss"] - self.kept},
        )

    def row(self, name: str, ordering: Ordering, k: int, values: Expectation, at: int) -> OrderingRow:
        """The row of an ordering after k steps; `at` is the index of step k in `values`."""
        (loss, a, b), (forgetting, c, d) = (
            (float(np.asarray(values.values[quantity])[at]), *values.interval(quantity)[at].tolist())
            for quantity in QUANTITIES
        )
        passes, method, confidence = k // self.problem.num_tasks, values.method, values.confidence
        how = (method, confidence, values.exact or "loss" in values.ranges, values.exact)
        return OrderingRow(name, str(ordering), k, passes, loss, a, b, forgetting, c, d, *how)


def from_all_orders(rows: tuple[OrderingRow, ...], measure: Measure) -> tuple[OrderingRow, ...]:
    """The rows, with the simulated loss of one pass in a random order replaced by the mean over all orders.

    For tasks that are solved when they are learned, so that forgetting is the loss.
    """

    def exact(row: OrderingRow) -> OrderingRow:
        if row.exact or (row.name, row.passes) != ("random permutation", 1):
            return row
        mean = measure.mean
        return replace(
            row, loss=mean, loss_low=mean, loss_high=mean, forgetting=mean, forgetting_low=mean, forgetting_high=mean,
            method="all orders", confidence=1.0, bounded=True, exact=True,
        )  # fmt: skip

    return tuple(exact(row) for row in rows)


def with_expected_mean(measures: tuple[Measure, ...], row: OrderingRow) -> tuple[Measure, ...]:
    """The measures, with the means of loss and forgetting over random orders replaced by those of an engine.

    Rare orders may have large losses, which a sample of orders misses.
    """

    def expected(measure: Measure) -> Measure:
        if measure.error == 0 or measure.name not in ("training loss", "forgetting"):
            return measure
        if measure.name == "training loss":
            mean, low, high = row.loss, row.loss_low, row.loss_high
        else:
            mean, low, high = row.forgetting, row.forgetting_low, row.forgetting_high
        return replace(measure, mean=mean, error=(high - low) / 2 / DEVIATIONS)

    return tuple(expected(measure) for measure in measures)


def passes_along(problem: Problem, scheme: Scheme, w0: Array, given: IntArray, search: OrderSearch) -> tuple[Pass, ...]:
    """Forgetting after each step of a pass, for the given, the best, the worst and a greedy order."""
    T = problem.num_tasks
    wanted: list[tuple[str, Ordering]] = [
        ("given order", Explicit(given)),
        ("best order", Explicit(search.best.order)),
        ("worst order", Explicit(search.worst.order)),
        ("greedy", GreedyDistance(repeat=False)),
    ]
    passes = []
    for name, ordering in wanted:
        trajectory = run(problem, ordering, T, scheme, w0=w0)
        passes.append(Pass(name, tuple(trajectory.order.tolist()), tuple(trajectory.forgetting.tolist())))
    return tuple(passes)


def shares_of_causes(orderings: tuple[OrderingRow, ...], passes: int, rounding: float) -> tuple[Split, ...]:
    """The shares of randomness and repetition in the fall of forgetting; less than `rounding` is no fall."""
    values = {(row.name, row.passes): row.forgetting for row in orderings}
    splits = []
    for baseline in ("given order", "worst order"):
        a, b, c, d = (values[name, count] for count in (1, passes) for name in (baseline, "random permutation"))
        falls = a - d > rounding and min(a, b, c, d) >= -rounding
        randomness = ((a - b) + (c - d)) / 2 / (a - d) if falls else None
        repetition = None if randomness is None else 1 - randomness
        splits.append(Split(baseline, passes, a, b, c, d, values["with replacement", 1], randomness, repetition))
    return tuple(splits)


def applicable_guarantees(
    problem: Problem, scheme: Scheme, w0: Array, orderings: tuple[OrderingRow, ...]
) -> tuple[Guarantee, ...]:
    """The upper bounds on loss and forgetting that apply to the orderings compared, with the values there."""
    T = problem.num_tasks
    wanted: dict[tuple[str, int], tuple[str, Ordering]] = {
        ("with replacement", 0): ("with replacement", WithReplacement()),
        ("random permutation", 1): ("without replacement", WithoutReplacement()),
        ("random permutation", 0): ("reshuffled", Reshuffled()),
        ("given order", 0): ("cyclic", Cyclic()),  # no bound depends on the numbers of the tasks
    }
    guarantees = []
    for row in orderings:
        name, ordering = wanted.get((row.name, 1 if row.k == T else 0), ("", None))
        if ordering is None:
            continue
        for entry in bounds.evaluate(problem, ordering, row.k, w0, scheme=scheme).applicable():
            if entry.bound.kind == "upper" and entry.quantity in QUANTITIES:
                measured = row.loss if entry.quantity == "loss" else row.forgetting
                details = entry.bound.key, entry.value, measured, entry.tightest, entry.vacuous
                guarantees.append(Guarantee(name, row.k, entry.quantity, *details))
    return tuple(guarantees)
