"""The function `audit`, which compares the tasks of a user and the orderings of these tasks.

An audit goes through stages: tasks are read (`Reading`), prepared (`Prepared`), their orders are measured
(`MeasuredOrders`) and judged (`Verdict`); all findings (`Audit`) are said in sentences (`Said`), and put on a page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from forgetting.auditing.all_rows import learn_all_rows
from forgetting.auditing.duplicates import find_duplicates
from forgetting.auditing.findings import find_cases, last_task_share, measure_fit
from forgetting.auditing.influence import forgetting_matrix, random_influence
from forgetting.auditing.kinds import or_own_audit
from forgetting.auditing.measures import measure_orders
from forgetting.auditing.ordering_values import (
    applicable_guarantees,
    compare_orderings,
    shares_of_causes,
    with_expected_values,
)
from forgetting.auditing.preparation import Prepared, Recipe, Standard, load_tasks, prepare_tasks
from forgetting.auditing.replay import ReplayTable, replay_orders
from forgetting.auditing.result import Audit
from forgetting.auditing.sentences import say
from forgetting.auditing.task_rows import find_outliers, task_rows
from forgetting.auditing.verdict import judge
from forgetting.core.arrays import Array, Seed, as_count, as_number, seed_from
from forgetting.core.numerical import ROUNDING
from forgetting.core.progress import Progress, progress_bar, reports_progress
from forgetting.geometry import principal_angles
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem
from forgetting.tasks.readers import warn_of

STAGES = ("tasks", "similarity", "orders", "random orderings", "who forgets whom", "bounds", "repeats")
SEARCHED = 2000  # orders that a search tries in a repeat, for the best and for the worst


@reports_progress
@or_own_audit
def audit(
    tasks: Any,
    *,
    order: Sequence[int] | Sequence[str] | None = None,
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
            file, a DataFrame, arrays, pairs (X, y). Of `ClassSplits` the class orders are compared, with an audit of
            their own (`ClassOrderAudit`), which takes order, scheme, seed, patience (30 seconds), title and progress.
            `AccuracyMatrices`, arrays R[step, task] or R[run, step, task], and logs of accuracies have a `MatrixAudit`,
            which takes `title` alone.
        order: the given order, of numbers or names of tasks; 0, 1, ..., T - 1 if left out.
        passes: orderings are compared after one pass (k = T) and after this many passes (k = passes T).
        test: held-out rows of the same tasks, which are never learned: whatever `fg.load` reads, with the same names of
            tasks, or the same number of tasks in the same order. If the labels of the tasks are classes, theirs are the
            same classes.
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
    seed, P = seed_from(seed), as_count(passes, "passes", least=2)
    count = as_count(repeats, "repeats", least=1)
    patience = as_number(patience, "patience", least=0)
    recipe = Recipe(rows, features, standardize, intercept, loss)
    with progress_bar("auditing") as report:

        def begin(stage: str) -> None:
            report(stage, STAGES.index(stage), len(STAGES))

        def draw(repeat: int) -> Prepared:
            return prepare_tasks(source, recipe, order, held, scheme, w0, seed, P, repeat)

        begin("tasks")
        reading = load_tasks(tasks)
        warn_of(reading, stacklevel=5)  # at the call of `audit`
        source = reading.tasks
        held = None if test is None else load_tasks(test, source).tasks
        prepared = draw(0)
        problem, linear = prepared.problem, prepared.problem.linear
        fit = measure_fit(prepared)
        rounding = ROUNDING * fit.start

        begin("similarity")
        similarity = None if linear is None else principal_angles(linear.geometry)
        duplicates = () if similarity is None or linear is None else (
            find_duplicates(linear.geometry, similarity, realizable=fit.holds)
        )  # fmt: skip

        begin("orders")
        measured = measure_orders(prepared)

        begin("random orderings")
        orderings, passes_along, simulated = compare_orderings(prepared, measured, runs, patience)
        measured = with_expected_values(measured, orderings)
        search, measures = measured.search, measured.measures

        begin("who forgets whom")
        influence = random_influence(problem, prepared.scheme, prepared.w0, seed)
        alone = forgetting_matrix(problem, [prepared.given], prepared.scheme, prepared.w0)
        norms = {} if problem.norms is None else {"norm": problem.norms}
        outliers = find_outliers(
            {**norms, "forgotten": influence.forgotten, "causes": influence.caused},
            {"forgotten": influence.forgotten_error, "causes": influence.caused_error},
            rounding,
        )

        begin("bounds")
        guarantees = applicable_guarantees(prepared, orderings)
        cases = tuple(find_cases(prepared, last_task_share(measured.tried, measures[0].values)))

        begin("repeats")
        verdicts = [judge(measured)]
        drawn = () if source.linear is None else recipe.drawn(source.linear)
        for repeat in range(1, count) if drawn and problem.num_tasks > 1 else ():
            report(f"repeat {repeat}", STAGES.index("repeats"), len(STAGES))
            verdicts.append(judge(measure_orders(draw(repeat), SEARCHED, along=False)))
        done = recipe.words(problem)
        replayed = replay_orders(prepared, measured, patience)
        notes = dict.fromkeys((*reading.notes, *problem.notes, *simulated))
        # orders are compared by forgetting itself where that is a measure
        forgetting = measures[0 if len(measures) == 1 or prepared.scheme.solves_task else 1]
        result = Audit(
            title=title or ", ".join([_name(tasks, problem), *done]),
            tasks=task_rows(problem, similarity, influence, alone),
            dim=problem.dim,
            rank_joint=None if linear is None else linear.rank_joint,
            radius=problem.radius,
            scheme=str(prepared.scheme),
            seed=seed,
            passes=P,
            given=tuple(prepared.given.tolist()),
            luck=forgetting.share_better,
            fit=fit,
            overlap=_plain(similarity.overlap) if similarity else (),
            smallest_angle=_plain(similarity.smallest) if similarity else (),
            largest_angle=_plain(similarity.largest) if similarity else (),
            orderings=orderings,
            search=search,
            passes_along=passes_along,
            splits=shares_of_causes(orderings, P, rounding),
            influence=_plain(influence.matrix),
            influence_runs=influence.runs,
            influence_exact=influence.exact,
            guarantees=guarantees,
            duplicates=duplicates,
            outliers=outliers,
            notes=tuple(note for note in notes if note != fit.message),
            kind_of_tasks=problem.kind if linear is None else linear.kind,
            unit=measures[0].unit,
            tried=len(measured.tried),
            tried_exact=measured.exact,
            measures=measures,
            verdicts=tuple(verdicts),
            preparation=", ".join(done),
            drawn=" and the ".join(drawn),
            cases=cases,
            missing=(*_missing(problem, held), *([replayed] if isinstance(replayed, str) else [])),
            orders=tuple(map(tuple, measured.tried.tolist())) if measured.exact else (),
            all_rows=learn_all_rows(prepared, measured, patience),
            replay=replayed if isinstance(replayed, ReplayTable) else None,
        )
        report("done", len(STAGES), len(STAGES))
        said = say(result)
        return replace(result, opening=said.opening, recommendation=said.recommendation)


def _name(source: Any, problem: Problem) -> str:
    """The name of the file, or the number of the tasks."""
    if isinstance(source, str | PathLike):
        return Path(source).name
    return f"{problem.num_tasks} task{'s' if problem.num_tasks != 1 else ''}"


def _missing(problem: Problem, held: Problem | None) -> tuple[str, ...]:
    """The parts that this audit leaves out, each with the reason."""
    absent = []
    if problem.linear is None:
        absent.append(
            f"ranks, principal angles and duplicates: they need linear tasks, not {type(problem).__name__}, whose "
            "random orders are listed where they are few, and simulated elsewhere"
        )
    if problem.labels_stand_for is None:
        absent.append("accuracy: the labels are not classes (-1 and +1, or one-hot rows)")
    if held is None:
        absent.append("held-out loss: no test rows were given (test=)")
    return tuple(absent)


def _plain(matrix: Array) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in matrix.tolist())
