"""The function `audit`, which compares the tasks of a user and the orderings of these tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np

from forgetting.auditing.findings import Fit, Outlier, find_cases, find_outliers, last_task_share, measure_fit
from forgetting.auditing.influence import Influence, forgetting_matrix, random_influence
from forgetting.auditing.measures import Measure, Tried, measure_orders, orders_to_try
from forgetting.auditing.order_search import OrderSearch, search_orders
from forgetting.auditing.ordering_values import (
    OrderingValues,
    applicable_guarantees,
    from_all_orders,
    passes_along,
    shares_of_causes,
    with_expected_mean,
)
from forgetting.auditing.orders import as_permutation
from forgetting.auditing.preparation import Recipe, Standard, held_out
from forgetting.auditing.result import Audit, OrderingRow, TaskRow
from forgetting.auditing.sentences import opening, recommend
from forgetting.auditing.similarity import Similarity, find_duplicates, principal_angles
from forgetting.auditing.verdict import Verdict, judge, repeat_verdicts
from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_number, seed_from
from forgetting.core.numerical import ROUNDING
from forgetting.core.progress import Progress, progress_bar, reports_progress
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem
from forgetting.tasks.readers import Columns, read, task_notes, warn_of_doubts

MOST_TASKS = 1000  # the most tasks, because every pair is compared


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
        source, notes, name = _read(tasks)
        subject = _prepare(source, recipe, order, test, scheme, w0, seed, P)
        problem, linear = subject.problem, subject.problem.linear
        done = recipe.words(problem)
        fit = _fit(subject)
        rounding = ROUNDING * fit.start

        begin(1)
        similarity = None if linear is None else principal_angles(linear.geometry)
        duplicates = () if similarity is None or linear is None else (
            find_duplicates(linear.geometry, similarity, realizable=fit.holds)
        )  # fmt: skip

        begin(2)
        search = search_orders(problem, scheme=subject.scheme, w0=subject.w0, starts=[subject.given], seed=seed)
        tried = orders_to_try(problem, seed)
        measures = measure_orders(
            problem, subject.scheme, subject.w0, tried, subject.given, P, search, subject.held_out
        )

        begin(3)
        orderings, more_notes = _compare_orderings(subject, search, tried, measures, runs, patience)
        measures, verdict = _judge(subject, search, measures, orderings, fit.start)

        begin(4)
        influence = random_influence(problem, subject.scheme, subject.w0, seed)
        alone = forgetting_matrix(problem, [subject.given], subject.scheme, subject.w0)
        outliers = _outliers(problem, influence, rounding)

        begin(5)
        guarantees = applicable_guarantees(problem, subject.scheme, subject.w0, orderings)
        last = last_task_share(tried.orders, measures[0].values)
        cases = find_cases(problem, subject.scheme, subject.w0, subject.given, fit.start, last)

        begin(6)
        drawn = () if source.linear is None else recipe.drawn(source.linear)
        verdicts = [verdict]
        if drawn and problem.num_tasks > 1 and source.linear is not None:
            verdicts += repeat_verdicts(
                source.linear, recipe, seed, range(1, count), subject.given, scheme, w0, P, test,
                lambda repeat: report(f"repeat {repeat}", 6, len(stages)),
            )  # fmt: skip
        notes = (*notes, *problem.notes, *more_notes)
        result = Audit(
            title=title or ", ".join([name, *done]),
            tasks=_task_rows(problem, similarity, influence, alone),
            dim=problem.dim,
            rank_joint=None if linear is None else linear.rank_joint,
            radius=problem.radius,
            scheme=str(subject.scheme),
            seed=seed,
            passes=P,
            given=tuple(subject.given.tolist()),
            luck=_luck(measures, subject.scheme),
            fit=fit,
            overlap=_plain(similarity.overlap) if similarity else (),
            smallest_angle=_plain(similarity.smallest) if similarity else (),
            largest_angle=_plain(similarity.largest) if similarity else (),
            orderings=orderings,
            search=search,
            passes_along=passes_along(problem, subject.scheme, subject.w0, subject.given, search),
            splits=shares_of_causes(orderings, P, rounding),
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
            missing=_missing(problem, subject.held_out),
            orders=tuple(map(tuple, tried.orders.tolist())) if tried.exact else (),
        )
        report("done", len(stages), len(stages))
        return replace(result, opening=opening(result), recommendation=recommend(result))


@dataclass(frozen=True, eq=False)
class _Subject:
    """The subject of an audit: prepared tasks, how they are learned, and the given order.

    Attributes:
        source: the tasks before they were prepared.
        problem: the tasks as they are learned.
        held_out: test rows of the same tasks, prepared like those; None if there are none.
        scheme, w0: how tasks are learned, and from where.
        given: the given order.
    """

    source: Problem
    problem: Problem
    held_out: Problem | None
    scheme: Scheme
    w0: Array
    given: IntArray
    passes: int
    seed: int
    recipe: Recipe


def _read(source: Any) -> tuple[Problem, tuple[str, ...], str]:
    """The tasks of any source that `audit` accepts (linear ones if all are affine), notes about them, and a title."""
    reading = read(source, Columns(), {})
    warn_of_doubts(reading, stacklevel=5)  # at the call of `audit`
    tasks = reading.tasks
    problem: Problem = tasks if tasks.linear is None else tasks.linear
    T = problem.num_tasks
    title = Path(source).name if isinstance(source, str | PathLike) else f"{T} task{'s' if T != 1 else ''}"
    notes = () if problem.linear is None else task_notes(problem.linear)
    return problem, tuple(dict.fromkeys([*reading.notes, *notes])), title


def _prepare(
    source: Problem,
    recipe: Recipe,
    order: Sequence[int] | None,
    test: Any,
    scheme: SchemeLike | None,
    w0: Any,
    seed: int,
    passes: int,
) -> _Subject:
    """The tasks as they are learned; an error for too many tasks, or for a scheme that is not linear."""
    T = source.num_tasks
    if T > MOST_TASKS:
        raise InvalidInputError(f"an audit compares all pairs of tasks, at most {MOST_TASKS} of them; got {T}")
    given = np.arange(T) if order is None else as_permutation(order, T)
    problem = source
    if source.linear is not None:
        problem = recipe.prepare(source.linear, seed, int(given[0]))
    elif recipe.changes:
        raise NotSupportedError(
            "rows, features, standardize, intercept and loss prepare the rows of regression tasks, not of "
            f"{type(source).__name__}"
        )
    test_tasks = None if test is None else held_out(test, source, problem)
    chosen, space = resolve(problem, scheme, w0)
    if chosen.random or (problem.linear is not None and chosen.linear_on(problem) is None):
        raise NotSupportedError(f"an audit needs a linear scheme, such as Kaczmarz or SGD, not {chosen}")
    return _Subject(source, problem, test_tasks, chosen, space.w0, given, passes, seed, recipe)


def _fit(subject: _Subject) -> Fit:
    """Joint realizability of the tasks; residuals and the least loss are known of linear tasks alone."""
    linear = subject.problem.linear
    if linear is not None:
        return measure_fit(
            linear, subject.w0, subject.seed, subject.source.linear, subject.recipe.feature_map(subject.seed)
        )
    finding = subject.problem.realizability
    holds = finding is not None and bool(finding.holds)
    message = "it is not known whether some w solves all tasks" if finding is None else finding.message
    return Fit(holds, 0.0, 0.0, (), 0.0 if holds else None, subject.problem.loss(subject.w0), (), message)


def _compare_orderings(
    subject: _Subject,
    search: OrderSearch,
    tried: Tried,
    measures: tuple[Measure, ...],
    runs: int | None,
    patience: float,
) -> tuple[tuple[OrderingRow, ...], list[str]]:
    """Expected values of every ordering that is compared, and notes about them."""
    values = OrderingValues(subject.problem, subject.scheme, subject.w0, subject.passes, subject.seed, runs, patience)
    rows = values.compare(subject.given, search)
    if tried.exact and subject.problem.linear is None and subject.scheme.solves_task:
        rows = from_all_orders(rows, measures[0])
    return rows, values.notes


def _judge(
    subject: _Subject, search: OrderSearch, measures: tuple[Measure, ...], rows: tuple[OrderingRow, ...], start: float
) -> tuple[tuple[Measure, ...], Verdict]:
    """The measures with the expected values of random orders, and the verdict on the given order."""
    random = next(row for row in rows if (row.name, row.passes) == ("random permutation", 1))
    given = next(row for row in rows if (row.name, row.passes) == ("given order", 1))
    measures = with_expected_mean(measures, random)
    ends = random.forgetting_low, random.forgetting_high
    return measures, judge(search, measures, start, given.forgetting, ends, subject.seed)


def _luck(measures: tuple[Measure, ...], scheme: Scheme) -> float:
    """The share of the orders tried that forget less than the given one, by forgetting itself where it is a measure."""
    return measures[0 if len(measures) == 1 or scheme.solves_task else 1].share_better


def _outliers(problem: Problem, influence: Influence, rounding: float) -> tuple[Outlier, ...]:
    """The tasks that stand out by their norm, by what is forgotten of them, or by what they make others forget."""
    norms = {} if problem.norms is None else {"norm": problem.norms}
    return find_outliers(
        {**norms, "forgotten": influence.forgotten, "causes": influence.caused},
        {"forgotten": influence.forgotten_error, "causes": influence.caused_error},
        rounding,
    )


def _missing(problem: Problem, held: Problem | None) -> tuple[str, ...]:
    """The parts that this audit leaves out, each with the reason."""
    absent = []
    if problem.linear is None:
        absent.append(
            f"ranks, principal angles, duplicates and exact expectations: they need linear tasks, not "
            f"{type(problem).__name__}, so that random orders are simulated"
        )
    if problem.labels_stand_for is None:
        absent.append("accuracy: the labels are not classes (-1 and +1, or one-hot rows)")
    if held is None:
        absent.append("held-out loss: no test rows were given (test=)")
    return tuple(absent)


def _task_rows(
    problem: Problem, similarity: Similarity | None, influence: Influence, alone: Influence
) -> tuple[TaskRow, ...]:
    linear, T = problem.linear, problem.num_tasks
    others = np.full((T, T), -1.0) if similarity is None else similarity.overlap.copy()
    np.fill_diagonal(others, -1.0)
    rows = []
    for task in range(T):
        nearest = int(np.argmax(others[task])) if T > 1 and similarity is not None else None
        by = int(np.argmax(influence.matrix[task]))
        rows.append(
            TaskRow(
                problem.names[task],
                _num_rows(problem, task),
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


def _num_rows(problem: Problem, task: int) -> int:
    """The number of rows of a task; 0 for tasks that have none, such as convex sets."""
    if problem.linear is not None:
        return int(problem.linear.num_rows[task])
    rows = problem.signed_rows(task)
    return 0 if rows is None else len(rows)


def _plain(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
