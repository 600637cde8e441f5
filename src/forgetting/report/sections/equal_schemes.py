"""The reductions as measured residuals: schemes that the paper proves equal, run side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np

from forgetting import claims
from forgetting._arrays import Array, IntArray
from forgetting.dynamics.loop import run
from forgetting.errors import ForgettingError
from forgetting.orderings import Explicit, WithReplacement
from forgetting.report.data import Curves, Section, Series, Table
from forgetting.report.numbers import column
from forgetting.report.section_registry import section
from forgetting.report.settings import Settings, Step, no_step
from forgetting.schemes import POCS, Kaczmarz
from forgetting.tasks import ConvexSets, Problem, RegressionTasks

__all__ = ["reductions_section"]

TITLE = "The reductions, measured"
STEPS = np.unique(np.linspace(1, 60, 20).astype(int))
#: below this, iterates agree to the last bit and a log axis has nothing to show
SMALLEST = 1e-18


def _summary(section: Section) -> list[str]:
    tables = [item for item in section.items if isinstance(item, Table)]
    residuals = [row[2] for table in tables for row in table.rows if row[2] is not None]
    return [f"reductions: iterates agree within {max(residuals, default=0.0):.2g}"] if tables else []


@section("reductions", place=4, summary=_summary)
def reductions_section(settings: Settings, _: Step = no_step) -> Section:
    """How far apart the iterates of equivalent schemes are.

    >>> from forgetting.report.settings import default_problem
    >>> table = reductions_section(Settings(default_problem())).items[1]
    >>> len(table.rows), max(row[2] for row in table.rows) < 1e-9
    (4, True)
    """
    problem = settings.problem
    if problem.kind != "regression" or problem.kernel is not None:
        return Section("reductions", TITLE, "", (), "needs regression tasks")
    exact = run(problem, WithReplacement(), int(STEPS[-1]), scheme=Kaczmarz(), seed=settings.seed)
    scale = float(np.linalg.norm(exact.iterates, axis=1).max()) or 1.0
    cases: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "reduc:cl_to_kaczmarz",
            "gradient descent to convergence = block Kaczmarz",
            lambda: _largest_gaps("reduc:cl_to_kaczmarz", problem, exact.order) / scale,
        ),
        (
            "reduc:kaczmarz",
            "block Kaczmarz = SGD, step 1, modified objective",
            lambda: _largest_gaps("reduc:kaczmarz", problem, exact.order) / scale,
        ),
        (
            "reduc:pocs",
            "block Kaczmarz = projections onto convex sets",
            lambda: _projection_gaps(problem, exact.order, exact.iterates) / scale,
        ),
        (
            "reduc:pocs (gradient step)",
            "projection = gradient step on dist^2 / 2",
            lambda: _gradient_gaps(problem, exact.order, exact.iterates) / scale**2,
        ),
    ]
    series: list[Series] = []
    rows: list[tuple[Any, ...]] = []
    for group, (label, words, measure) in enumerate(cases):
        try:
            relative = measure()
        except ForgettingError as error:
            rows.append((label, words, None, str(error)))
            continue
        rows.append((label, words, float(relative.max()), "iterates compared"))
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
        ("label", "statement", "residual", "how"),
        tuple(rows),
        compact=True,
    )
    text = (
        "Learning a task to convergence, a block Kaczmarz step, one SGD step of size 1 on a modified objective and a "
        "projection are the same thing. Here is how equal they are in floating point."
    )
    return Section("reductions", TITLE, text, (figure, table))


def _largest_gaps(label: str, problem: Problem, order: IntArray) -> Array:
    """The largest distance between the iterates of both sides of a reduction, up to each of the steps."""
    claim = claims.get(label)
    cases = (claims.Instance(problem, Explicit(order[:k]), k) for k in STEPS.tolist())
    return np.array([claim.check(case).lhs for case in cases])


def _projection_gaps(problem: Problem, order: IntArray, iterates: Array) -> Array:
    projected = run(_as_sets(problem), Explicit(order), len(order), scheme=POCS()).iterates
    gaps = np.maximum.accumulate(np.linalg.norm(projected - iterates, axis=1))
    return np.asarray(gaps[STEPS])


def _gradient_gaps(problem: Problem, order: IntArray, iterates: Array) -> Array:
    """How much dist^2 / 2 differs from its tangent, along each of the steps."""
    claim, sets = claims.get("reduc:pocs", part="gradient step"), _as_sets(problem)
    gaps = []
    for k in STEPS.tolist():
        w, task = iterates[k - 1], int(order[k - 1])
        extras = {"w": w, "v": iterates[k] - w, "task": task}
        gaps.append(claim.check(claims.Instance(sets, None, 1, extras=extras)).lhs)
    return np.array(gaps)


def _as_sets(problem: Problem) -> ConvexSets:
    return ConvexSets.from_affine(cast(RegressionTasks, problem))  # which refuses other tasks
