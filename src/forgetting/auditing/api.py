"""The function `audit`, which compares the tasks of a user and the orderings of these tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from forgetting import bounds
from forgetting.auditing.findings import Fit, find_cases, find_outliers, last_task_share, measure_fit
from forgetting.auditing.influence import Influence, forgetting_matrix, random_influence
from forgetting.auditing.measures import measure_orders, orders_to_try
from forgetting.auditing.order_search import OrderSearch, search_orders
from forgetting.auditing.ordering_values import QUANTITIES, Desk, from_all_orders, with_expected_mean
from forgetting.auditing.orders import as_permutation
from forgetting.auditing.preparation import Recipe, Standard, held_out
from forgetting.auditing.result import Audit, Guarantee, OrderingRow, Pass, Split, TaskRow
from forgetting.auditing.sentences import opening, recommend
from forgetting.auditing.similarity import Similarity, find_duplicates, principal_angles
from forgetting.auditing.verdict import judge, repeat_verdicts
from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_number, seed_from
from forgetting.core.progress import Progress, progress_bar, reports_progress
from forgetting.dynamics.loop import resolve, run
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings import (
    Cyclic,
    Explicit,
    GreedyDistance,
    Ordering,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
)
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem
from forgetting.tasks.readers import Columns, read, task_notes, warn_of_doubts

MOST_TASKS = 1000  # the most tasks, because every pair is compared
ROUNDING = 1e-13  # of the loss before learning: less is not forgetting


@reports_progress
def audit(
    tasks: Any,
    *,
    order: Sequence[int] | None = None,
    passes: int = 3,
    test: Any = None,
    rows: int | None = None,
    features: Any = None,
    standardize: Standard | None = None,
    intercept: bool = False,
    loss: Literal["sum", "mean"] | None = None,
    repeats: int = 8,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    seed: Seed = 0,
    runs: int | None = None,
    patience: float = 5.0,
    title: str | None = None,
    progress: Progress = False,
) -> Audit:
    """Audit tasks: how much of the low forgetting is the order, by every measure; similar tasks; bounds; advice.

    Orders are compared by training loss, by held-out loss if there are test rows, and by accuracy if the labels are
    classes. An order is advised only if all measures, and all draws of rows and features, agree.

    Args:
        tasks: `RegressionTasks`, `KernelTasks`, `ClassificationTasks`, `ConvexSets`, or whatever `fg.load` reads: a
            file, a DataFrame, arrays, pairs (X, y).
        order: the given order; 0, 1, ..., T - 1 if left out.
        passes: orderings are compared after one pass (k = T) and after this many passes (k = passes T).
        test: held-out rows of the same tasks, which are never learned: whatever `fg.load` reads, with the same names of
            tasks, or the same number of tasks in the same order.
        rows: the most rows of each task; larger tasks are sub-sampled.
        features: a feature map to apply: a number of random features, a `RandomFeatures`, or any function of X.
        standardize: shift and scale each column to mean 0 and deviation 1, as in all tasks ("all") or as in the first
            task of the given order ("first"); after the feature map.
        intercept: whether a column of ones is added, after everything else.
        loss: "sum" or "mean" over the rows of a task; that of the tasks if left out.
        repeats: the number of draws of rows and random features that the verdict is repeated for, this one included.
        scheme, w0: as for `fg.run`; a linear scheme for regression tasks, and none that draws random numbers.
        seed: the seed of sub-sampling, features, search and simulation; as for `fg.run`.
        runs: the number of simulated runs where exact values are too expensive; 128 to 4096 by default.
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
    stages = ("tasks", "similarity", "orders", "random orderings", "who forgets whom", "bounds", "repeats")
    seed, P = seed_from(seed), as_count(passes, "passes", least=2)
    count = as_count(repeats, "repeats", least=1)
    patience = as_number(patience, "patience", least=0)
    recipe = Recipe(rows, features, standardize, intercept, loss)
    with progress_bar("auditing") as report:

        def begin(stage: int) -> None:
            report(stages[stage], stage, len(stages))

        begin(0)
        given_tasks, notes, name = _door(tasks)
        T = given_tasks.num_tasks
        if T > MOST_TASKS:
            raise InvalidInputError(f"an audit compares all pairs of tasks, at most {MOST_TASKS} of them; got {T}")
        given = np.arange(T) if order is None else as_permutation(order, T)
        problem = _prepared(given_tasks, recipe, seed, given)
        done = recipe.words(problem)
        held = None if test is None else held_out(test, given_tasks, problem)
        chosen, space = resolve(problem, scheme, w0)
        linear = problem.linear
        if chosen.random or (linear is not None and chosen.linear_on(problem) is None):
            raise NotSupportedError(f"an audit needs a linear scheme, such as Kaczmarz or SGD, not {chosen}")
        original = given_tasks.linear
        fit = _plain_fit(problem, space.w0)
        if linear is not None:
            fit = measure_fit(linear, space.w0, seed, original, recipe.feature_map(seed))

        begin(1)
        similarity = None if linear is None else principal_angles(linear.geometry)
        duplicates = () if similarity is None or linear is None else (
            find_duplicates(linear.geometry, similarity, realizable=fit.holds)
        )  # fmt: skip

        begin(2)
        search = search_orders(problem, scheme=chosen, w0=space.w0, starts=[given], seed=seed)
        tried = orders_to_try(problem, seed)
        measures = measure_orders(problem, chosen, space.w0, tried, given, P, search, held)
        rounding = ROUNDING * fit.start

        begin(3)
        desk = Desk(problem, chosen, space.w0, P, seed, runs, patience)
        orderings = desk.compare(given, search)
        if tried.exact and linear is None and chosen.solves_task:
            orderings = from_all_orders(orderings, measures[0])
        random = next(row for row in orderings if (row.name, row.passes) == ("random permutation", 1))
        own = next(row for row in orderings if (row.name, row.passes) == ("given order", 1))
        measures = with_expected_mean(measures, random)
        ends = random.forgetting_low, random.forgetting_high
        verdicts = [judge(search, measures, fit.start, own.forgetting, ends, seed)]
        notes += (*problem.notes, *desk.notes)

        begin(4)
        influence = random_influence(problem, chosen, space.w0, seed)
        alone = forgetting_matrix(problem, [given], chosen, space.w0)
        norms = {} if problem.norms is None else {"norm": problem.norms}
        outliers = find_outliers(
            {**norms, "forgotten": influence.forgotten, "causes": influence.caused},
            {"forgotten": influence.forgotten_error, "causes": influence.caused_error},
            rounding,
        )

        begin(5)
        guarantees = _guarantees(problem, chosen, space.w0, orderings)
        last = last_task_share(tried.orders, measures[0].values)
        cases = find_cases(problem, chosen, space.w0, given, fit.start, last)

        begin(6)
        drawn = () if original is None else recipe.drawn(original)
        if drawn and T > 1 and original is not None:
            verdicts += repeat_verdicts(
                original, recipe, seed, range(1, count), given, scheme, w0, P, test,
                lambda repeat: report(f"repeat {repeat}", 6, len(stages)),
            )  # fmt: skip
        result = Audit(
            title=title or ", ".join([name, *done]),
            tasks=_task_rows(problem, similarity, influence, alone),
            dim=problem.dim,
            rank_joint=None if linear is None else linear.rank_joint,
            radius=problem.radius,
            scheme=str(chosen),
            seed=seed,
            passes=P,
            given=tuple(given.tolist()),
            luck=measures[0].share_better if len(measures) == 1 or chosen.solves_task else measures[1].share_better,
            fit=fit,
            overlap=_plain(similarity.overlap) if similarity else (),
            smallest_angle=_plain(similarity.smallest) if similarity else (),
            largest_angle=_plain(similarity.largest) if similarity else (),
            orderings=orderings,
            search=search,
            passes_along=_along(problem, chosen, space.w0, given, search),
            splits=_splits(orderings, P, rounding),
            influence=_plain(influence.matrix),
            influence_runs=influence.runs,
            influence_exact=influence.exact,
            guarantees=guarantees,
            duplicates=duplicates,
            outliers=outliers,
            notes=tuple(note for note in dict.fromkeys(notes) if note != fit.message),
            kind_of_tasks=problem.kind if linear is None else linear.kind,
            unit=measures[0].unit,
            tried=len(tried.orders),
            tried_exact=tried.exact,
            measures=measures,
            verdicts=tuple(verdicts),
            preparation=", ".join(done),
            drawn=" and the ".join(drawn),
            cases=cases,
            missing=_missing(problem, held),
            orders=tuple(map(tuple, tried.orders.tolist())) if tried.exact else (),
        )
        report("done", len(stages), len(stages))
        return replace(result, opening=opening(result), recommendation=recommend(result))


def _door(source: Any) -> tuple[Problem, tuple[str, ...], str]:
    """The tasks of any source that `audit` accepts (linear ones if all are affine), notes about them, and a title."""
    reading = read(source, Columns(), {})
    warn_of_doubts(reading, stacklevel=5)  # at the call of `audit`
    found = reading.tasks
    problem: Problem = found if found.linear is None else found.linear
    T = problem.num_tasks
    title = Path(source).name if isinstance(source, str | PathLike) else f"{T} task{'s' if T != 1 else ''}"
    notes = () if problem.linear is None else task_notes(problem.linear)
    return problem, tuple(dict.fromkeys([*reading.notes, *notes])), title


def _prepared(problem: Problem, recipe: Recipe, seed: int, given: IntArray) -> Problem:
    """The prepared tasks; only regression tasks are prepared."""
    if problem.linear is not None:
        return recipe.prepare(problem.linear, seed, int(given[0]))
    if recipe.changes:
        raise NotSupportedError(
            "rows, features, standardize, intercept and loss prepare the rows of regression tasks, not of "
            f"{type(problem).__name__}"
        )
    return problem


def _plain_fit(problem: Problem, w0: Array) -> Fit:
    """Whether some w solves all tasks, for tasks that are not linear: no residuals and no least loss are known."""
    finding = problem.realizability
    holds = finding is not None and bool(finding.holds)
    message = "it is not known whether some w solves all tasks" if finding is None else finding.message
    return Fit(holds, 0.0, 0.0, (), 0.0 if holds else None, problem.loss(w0), (), message)


def _missing(problem: Problem, held: Problem | None) -> tuple[str, ...]:
    """What this audit does not show, and why."""
    said = []
    if problem.linear is None:
        said.append(
            f"ranks, principal angles, duplicates and exact expectations: they need linear tasks, not "
            f"{type(problem).__name__}, so that random orders are simulated"
        )
    if problem.labels_stand_for is None:
        said.append("accuracy: the labels are not classes (-1 and +1, or one-hot rows)")
    if held is None:
        said.append("held-out loss: no test rows were given (test=)")
    return tuple(said)


def _task_rows(
    problem: Problem, similarity: Similarity | None, influence: Influence, alone: Influence
) -> tuple[TaskRow, ...]:
    linear, T = problem.linear, problem.num_tasks
    counted = getattr(problem, "num_rows", None)
    others = np.full((T, T), -1.0) if similarity is None else similarity.overlap.copy()
    np.fill_diagonal(others, -1.0)
    rows = []
    for task in range(T):
        nearest = int(np.argmax(others[task])) if T > 1 and similarity is not None else None
        by = int(np.argmax(influence.matrix[task]))
        rows.append(
            TaskRow(
                problem.names[task],
                0 if counted is None else int(counted[task]),
                None if linear is None else int(linear.ranks[task]),
                None if linear is None else float(linear.norms[task]),
                None if linear is None else float(linear.geometry.residuals[linear.geometry.index[task]]),
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


def _along(problem: Problem, scheme: Scheme, w0: Array, given: IntArray, search: OrderSearch) -> tuple[Pass, ...]:
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
    problem: Problem, scheme: Scheme, w0: Array, orderings: tuple[OrderingRow, ...]
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
