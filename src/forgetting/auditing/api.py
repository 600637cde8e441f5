"""The function `audit`, which compares the tasks of a user and the orderings of these tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from forgetting import bounds
from forgetting._arrays import Array, IntArray, Seed, as_count, as_number, seed_from
from forgetting._progress import Progress, progress_bar, reports_progress
from forgetting.auditing.advice import recommend
from forgetting.auditing.findings import find_outliers, measure_fit
from forgetting.auditing.influence import Influence, forgetting_matrix, random_influence
from forgetting.auditing.orders import OrderSearch, Quantity, as_permutation, count_orders, order_value, search_orders
from forgetting.auditing.result import Audit, Guarantee, OrderingRow, Pass, Split, TaskRow
from forgetting.auditing.similarity import Similarity, find_duplicates, principal_angles
from forgetting.auditing.sources import RandomFeatures, apply_features, subsample_rows
from forgetting.dynamics.ensembles import compiled_form
from forgetting.dynamics.loop import resolve, run
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation import Expectation, expect
from forgetting.expectation.asking import ask
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
from forgetting.schemes import LinearScheme, Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.schemes.linear import linear_gains
from forgetting.tasks import LinearTasks
from forgetting.tasks.readers import Columns, read, task_notes, warn_of_doubts

__all__ = ["audit"]

MOST_TASKS = 1000  # the most tasks, because every pair is compared
ALL_ORDERS = 6  # up to this many tasks, a random pass is averaged over all orders
QUANTITIES: tuple[Quantity, Quantity] = ("loss", "forgetting")


@reports_progress
def audit(
    tasks: Any,
    *,
    order: Sequence[int] | None = None,
    passes: int = 3,
    rows: int | None = None,
    features: Any = None,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    seed: Seed = 0,
    runs: int | None = None,
    patience: float = 5.0,
    title: str | None = None,
    progress: Progress = False,
) -> Audit:
    """Audit tasks: their similarity, the forgetting of each ordering and of each task, bounds, and recommendations.

    Args:
        tasks: `RegressionTasks`, `KernelTasks` or affine `ConvexSets`, or whatever `fg.load` reads: a file, a
            DataFrame, arrays, pairs (X, y).
        order: the given order; 0, 1, ..., T - 1 if left out.
        passes: orderings are compared after one pass (k = T) and after this many passes (k = passes T).
        rows: the most rows of each task; larger tasks are sub-sampled.
        features: a feature map to apply: a number of random features, a `RandomFeatures`, or any function of X.
        scheme, w0: as for `fg.run`; the scheme must be linear.
        seed: the seed of sub-sampling, features, search and simulation; as for `fg.run`.
        runs: the number of simulated runs where exact values are too expensive; 1024 or 4096 by default.
        patience: the most seconds (estimated beforehand) for an exact expectation; slower ones are simulated.
        title: the title of the pages.
        progress: as for `fg.run`.

    >>> import forgetting as fg
    >>> audit = fg.audit(fg.families.catastrophic(3.0))
    >>> audit.search.exact, audit.search.worst.order
    (True, (0, 1, 2, 3, 4, 5, 6, 7, 8))
    >>> round(audit.splits[0].randomness, 2), round(audit.splits[0].repetition, 2)   # either alone would do
    (0.5, 0.5)
    """
    stages = ("tasks", "similarity", "orders", "random orderings", "who forgets whom", "bounds")
    seed = seed_from(seed)
    with progress_bar("auditing") as report:

        def begin(stage: int) -> None:
            report(stages[stage], stage, len(stages))

        begin(0)
        given_tasks, notes, name = _door(tasks)
        problem, features, name = _prepared(given_tasks, rows, features, seed, name)
        T, P = problem.num_tasks, as_count(passes, "passes", least=2)
        if T > MOST_TASKS:
            raise InvalidInputError(f"an audit compares all pairs of tasks, at most {MOST_TASKS} of them; got {T}")
        chosen, space = resolve(problem, scheme, w0)
        linear, _ = compiled_form(problem, chosen)
        if linear is None:
            raise NotSupportedError(f"an audit needs a linear scheme, such as Kaczmarz or SGD, not {chosen}")
        given = np.arange(T) if order is None else as_permutation(order, T)
        fit = measure_fit(problem, space.w0, seed, given_tasks, features)

        begin(1)
        similarity = principal_angles(problem.geometry)
        duplicates = find_duplicates(problem.geometry, similarity, realizable=fit.holds)

        begin(2)
        search = search_orders(problem, scheme=chosen, w0=space.w0, starts=[given], seed=seed)
        rounding = 1e-13 * fit.start  # less is not forgetting
        luck = _luck(problem, chosen, space.w0, given, search, seed, rounding)

        begin(3)
        desk = _Desk(problem, linear, space.w0, P, seed, runs, as_number(patience, "patience", least=0))
        orderings = desk.compare(given, search)
        notes += tuple(desk.notes)

        begin(4)
        influence = random_influence(problem, chosen, space.w0, seed)
        alone = forgetting_matrix(problem, [given], chosen, space.w0)
        table = _task_rows(problem, similarity, influence, alone)
        outliers = find_outliers(
            {"norm": problem.norms, "forgotten": influence.forgotten, "causes": influence.caused},
            {"forgotten": influence.forgotten_error, "causes": influence.caused_error},
            rounding,
        )

        begin(5)
        result = Audit(
            title=title or name,
            tasks=table,
            dim=problem.dim,
            rank_joint=problem.rank_joint,
            radius=problem.radius,
            scheme=str(chosen),
            seed=seed,
            passes=P,
            given=tuple(given.tolist()),
            luck=luck,
            fit=fit,
            overlap=_plain(similarity.overlap),
            smallest_angle=_plain(similarity.smallest),
            largest_angle=_plain(similarity.largest),
            orderings=orderings,
            search=search,
            passes_along=_along(problem, chosen, space.w0, given, search),
            splits=_splits(orderings, P, rounding),
            influence=_plain(influence.matrix),
            influence_runs=influence.runs,
            influence_exact=influence.exact,
            guarantees=_guarantees(problem, chosen, space.w0, orderings) if fit.holds else (),
            duplicates=duplicates,
            outliers=outliers,
            notes=tuple(dict.fromkeys(notes)),
        )
        report("done", len(stages), len(stages))
        return replace(result, recommendation=recommend(result))


def _door(source: Any) -> tuple[LinearTasks, tuple[str, ...], str]:
    """The tasks of any source that `audit` accepts, notes about them, and a title."""
    reading = read(source, Columns(), {})
    warn_of_doubts(reading, stacklevel=5)  # at the call of `audit`
    linear = reading.tasks.linear
    if linear is None:
        raise NotSupportedError(
            f"an audit needs regression tasks, or pairs (X, y), not {type(reading.tasks).__name__}; labels -1 and +1 "
            "are learned by regression too"
        )
    T = linear.num_tasks
    title = Path(source).name if isinstance(source, str | PathLike) else f"{T} task{'s' if T != 1 else ''}"
    return linear, tuple(dict.fromkeys([*reading.notes, *task_notes(linear)])), title


def _prepared(
    tasks: LinearTasks, rows: int | None, features: Any, seed: int, name: str
) -> tuple[LinearTasks, Any, str]:
    """The tasks after sub-sampling and the feature map, the feature map, and the title."""
    if rows is not None:
        rows = as_count(rows, "rows", least=1)
        tasks = subsample_rows(tasks, rows, seed)
        name += f", at most {rows} row{'s' if rows != 1 else ''} each"
    if isinstance(features, int | float | np.number) and not isinstance(features, bool):
        features = RandomFeatures(features, seed=seed)  # type: ignore[arg-type]
    if features is not None:
        tasks = apply_features(tasks, features)
        name += f", {tasks.dim} features"
    return tasks, features, name


class _Desk:
    """Computes the expected loss and forgetting of many orderings of a problem."""

    def __init__(
        self,
        problem: LinearTasks,
        scheme: LinearScheme,
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
        work = 8.0 * passes * float(geometry.ranks @ geometry.counts) * geometry.dim * 4096
        self.runs = runs or (4096 if work < 5e9 else 1024)
        # whether a task that was just learned has no loss except the part that no w can fit
        self.solves = bool(np.all(linear_gains(geometry, scheme) == 1))
        self.unexplained = float(geometry.unexplained @ geometry.counts) / geometry.num_tasks

    def compare(self, given: IntArray, search: OrderSearch) -> tuple[OrderingRow, ...]:
        """A row for every ordering after one pass, and a row after `passes` passes."""
        T, P = self.problem.num_tasks, self.passes
        both: list[tuple[str, Ordering]] = [
            ("given order", Explicit(np.tile(given, P))),
            ("random permutation", Reshuffled()),  # its first pass is without replacement
            ("with replacement", WithReplacement()),
        ]
        for name, extreme in (("best order", search.best), ("worst order", search.worst)):
            both.append((name, Explicit(extreme.order * P)))
        rows = []
        for name, ordering in both:
            values = self.values(ordering, [T, P * T])
            once, many = (self.row(name, ordering, k, values, at) for at, k in enumerate((T, P * T)))
            few = name == "random permutation" and T <= ALL_ORDERS
            rows += [once if once.exact or not few else self.averaged(once), many]
        # in a single pass of the greedy ordering each task comes once, which takes another ordering
        for k, ordering in ((T, GreedyDistance(repeat=False)), (P * T, GreedyDistance())):
            rows.append(self.row("greedy", ordering, k, self.values(ordering, [k]), 0))
        return tuple(rows)

    def values(self, ordering: Ordering, steps: list[int]) -> Expectation:
        """The expected loss and forgetting at the given steps; simulated if an exact method takes too long."""
        request = ask(self.problem, ordering, steps, self.scheme, self.w0, QUANTITIES).request
        method = choose(replace(request, patience=self.patience))[0].name
        # after complete passes every task was visited equally often, so that forgetting follows from the loss
        derived = method == "monte-carlo" and self.solves and isinstance(ordering.law, laws.Reshuffled)
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
        self.notes += [note for note in expectation.notes if not note.startswith("completed")]
        if not derived:
            return expectation
        return replace(
            expectation,
            values={**expectation.values, "forgetting": expectation.values["loss"] - self.unexplained},
            intervals={**expectation.intervals, "forgetting": expectation.intervals["loss"] - self.unexplained},
        )

    def averaged(self, row: OrderingRow) -> OrderingRow:
        """The row with the simulated values replaced by means over all orders."""
        orders = np.array(list(permutations(range(self.problem.num_tasks))))
        loss, forgetting = (
            float(order_value(self.problem, quantity, scheme=self.scheme, w0=self.w0)(orders).mean())
            for quantity in QUANTITIES
        )
        return replace(
            row,
            loss=loss,
            loss_low=loss,
            loss_high=loss,
            forgetting=forgetting,
            forgetting_low=forgetting,
            forgetting_high=forgetting,
            method="all orders",
            confidence=1.0,
            bounded=True,
            exact=True,
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


def _luck(
    problem: LinearTasks, scheme: Scheme, w0: Array, given: IntArray, search: OrderSearch, seed: int, rounding: float
) -> float:
    """The fraction of orders that forget less than the given order: of all orders if T <= 6, else of random orders."""
    value = order_value(problem, scheme=scheme, w0=w0)
    count = int(np.clip(search.evaluations // 4, 300, 1000))
    if count_orders(problem.geometry.counts) == 1:
        return 0.0
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(11,)))
    few = len(given) <= ALL_ORDERS
    draws = np.array(list(permutations(given.tolist()))) if few else rng.permuted(np.tile(given, (count, 1)), axis=1)
    own = float(value(given[None])[0])
    return float(np.mean(value(draws) < own - max(rounding, 1e-12 * abs(own))))


def _task_rows(
    problem: LinearTasks, similarity: Similarity, influence: Influence, alone: Influence
) -> tuple[TaskRow, ...]:
    geometry, T = problem.geometry, problem.num_tasks
    others = similarity.overlap.copy()
    np.fill_diagonal(others, -1.0)
    rows = []
    for task in range(T):
        nearest = int(np.argmax(others[task])) if T > 1 else None
        by = int(np.argmax(influence.matrix[task]))
        rows.append(
            TaskRow(
                problem.names[task],
                int(problem.num_rows[task]),
                int(problem.ranks[task]),
                float(problem.norms[task]),
                float(geometry.residuals[geometry.index[task]]),
                float(influence.forgotten[task]),
                float(influence.caused[task]),
                float(influence.forgotten_error[task]),
                float(influence.caused_error[task]),
                float(alone.forgotten[task]),
                by if influence.matrix[task, by] > 0 else None,
                nearest,
                float(others[task, nearest]) if nearest is not None else 0.0,
            )
        )
    return tuple(rows)


def _along(problem: LinearTasks, scheme: Scheme, w0: Array, given: IntArray, search: OrderSearch) -> tuple[Pass, ...]:
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


def _splits(orderings: tuple[OrderingRow, ...], passes: int, rounding: float) -> tuple[Split, ...]:
    values = {(row.name, row.passes): row.forgetting for row in orderings}
    splits = []
    for baseline in ("given order", "worst order"):
        a, b, c, d = (values[name, count] for count in (1, passes) for name in (baseline, "random permutation"))
        falls = a - d > rounding and min(a, b, c, d) >= -rounding
        randomness = ((a - b) + (c - d)) / 2 / (a - d) if falls else None
        repetition = None if randomness is None else 1 - randomness
        splits.append(Split(baseline, passes, a, b, c, d, values["with replacement", 1], randomness, repetition))
    return tuple(splits)


def _guarantees(
    problem: LinearTasks, scheme: Scheme, w0: Array, orderings: tuple[OrderingRow, ...]
) -> tuple[Guarantee, ...]:
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


def _plain(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
