"""The reductions as measured residuals: schemes that the paper proves equal, run side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting import claims
from forgetting.core.arrays import Array
from forgetting.dynamics.loop import run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import ForgettingError
from forgetting.figures.items import Curves, Series, Table, column
from forgetting.orderings import Explicit, WithReplacement
from forgetting.report.document import Section
from forgetting.report.settings import Settings, Step, no_step, section
from forgetting.schemes import POCS, Kaczmarz
from forgetting.tasks import ConvexSets, RegressionTasks
from forgetting.theory.numbering import PRINTED

TITLE = "Schemes that are the same, compared"
STEPS = np.unique(np.linspace(1, 60, 20).astype(int))
#: below this, iterates agree to the last bit and a log axis has nothing to show
SMALLEST = 1e-18


@section("reductions", place=4)
def reductions_section(settings: Settings, _: Step = no_step) -> Section:
    """The distances between the iterates of schemes that are equal in exact arithmetic.

    >>> from forgetting.report.settings import default_problem
    >>> table = reductions_section(Settings(default_problem())).items[1]
    >>> len(table.rows), max(row[3] for row in table.rows) < 1e-9
    (4, True)
    """
    linear = settings.problem.linear
    if linear is None or linear.data is None:
        return Section("reductions", TITLE, "", (), "needs regression tasks")
    tasks = linear.data
    exact = run(tasks, WithReplacement(), int(STEPS[-1]), scheme=Kaczmarz(), seed=settings.seed)
    scale = float(np.linalg.norm(exact.iterates, axis=1).max()) or 1.0
    cases: list[tuple[str, str, Callable[..., Array], float]] = [
        ("reduc:cl_to_kaczmarz", "gradient descent to convergence = block Kaczmarz", _largest_gaps, scale),
        ("reduc:kaczmarz", "block Kaczmarz = SGD, step 1, modified objective", _largest_gaps, scale),
        ("reduc:pocs", "block Kaczmarz = projections onto convex sets", _projection_gaps, scale),
        ("reduc:pocs (gradient step)", "projection = gradient step on dist^2 / 2", _gradient_gaps, scale**2),
    ]
    series: list[Series] = []
    rows: list[tuple[Any, ...]] = []
    for group, (label, words, gaps, unit) in enumerate(cases):
        try:
            relative = gaps(tasks, exact, label) / unit
        except ForgettingError as error:
            rows.append((_name(label), label, words, None, str(error)))
            continue
        rows.append((_name(label), label, words, float(relative.max()), "iterates compared"))
        shown = column(np.maximum(relative, SMALLEST))
        series.append(Series(words, column(STEPS), shown, method=label, group=group))
    figure = Curves(
        "reductions",
        "Distance between the iterates of equal schemes",
        f"Largest distance so far, relative to the largest iterate, on one random order of {STEPS[-1]} tasks; for the "
        "gradient step, what a central difference of dist^2 / 2 misses. The gradient of the modified objective is a "
        "central difference, too; the rest is rounding and the tolerance of the inner solver. "
        f"A line at {SMALLEST:g} means equal to the last bit.",
        "step",
        "relative distance",
        tuple(series),
        xlog=False,
        floor=SMALLEST / 2,
    )
    table = Table(
        "reductions-table",
        "Residuals of the reductions",
        "The largest relative distance over all steps.",
        ("statement", "label", "says", "residual", "how"),
        tuple(rows),
        compact=True,
    )
    text = (
        "The paper reduces four schemes to each other: learning a task to convergence, a block Kaczmarz step, one SGD "
        "step of size 1 on a modified objective, and a projection move the model in the same way. Computed side "
        "by side on these tasks, "
    )
    residuals = [float(row[3]) for row in rows if row[3] is not None]
    text += f"their iterates agree to {max(residuals):.2g}." if residuals else "they could not be compared."
    return Section("reductions", TITLE, text, (figure, table))


def _name(label: str) -> str:
    """The number of a statement in the paper."""
    return PRINTED[label.partition(" (")[0]].number


def _largest_gaps(tasks: RegressionTasks, exact: Trajectory, label: str) -> Array:
    """The largest distance between the iterates of both sides of a reduction, up to each of the steps."""
    claim = claims.get(label)
    return np.array([claim.check(claims.Instance(tasks, Explicit(exact.order[:k]), k)).lhs for k in STEPS.tolist()])


def _projection_gaps(tasks: RegressionTasks, exact: Trajectory, _: str) -> Array:
    """The largest distance from the iterates of projections onto the solution sets, up to each of the steps."""
    projected = run(ConvexSets.from_affine(tasks), Explicit(exact.order), exact.k, scheme=POCS()).iterates
    return np.asarray(np.maximum.accumulate(np.linalg.norm(projected - exact.iterates, axis=1))[STEPS])


def _gradient_gaps(tasks: RegressionTasks, exact: Trajectory, _: str) -> Array:
    """The difference of dist^2 / 2 from its tangent, along each of the steps."""
    claim, sets = claims.get("reduc:pocs", part="gradient step"), ConvexSets.from_affine(tasks)
    gaps = []
    for k in STEPS.tolist():
        w = exact.iterates[k - 1]
        extras = {"w": w, "v": exact.iterates[k] - w, "task": exact.order[k - 1]}
        gaps.append(claim.check(claims.Instance(sets, None, 1, extras=extras)).lhs)
    return np.array(gaps)
