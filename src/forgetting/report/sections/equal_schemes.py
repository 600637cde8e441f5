"""The reductions as measured residuals: schemes that the paper proves equal, run side by side."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.dynamics.loop import whole_run
from forgetting.errors import ForgettingError
from forgetting.orderings import WithReplacement
from forgetting.report.data import Curves, Section, Series, Table
from forgetting.report.numbers import column
from forgetting.report.settings import Settings
from forgetting.schemes import POCS, SGD, GradientDescent, Kaczmarz, Scheme
from forgetting.tasks import ConvexSets, RegressionTasks

__all__ = ["reductions_section"]

STEPS = 60
#: below this, iterates agree to the last bit and a log axis has nothing to show
SMALLEST = 1e-18


def reductions_section(settings: Settings) -> Section:
    """How far apart the iterates of equivalent schemes are.

    >>> from forgetting.report.settings import default_problem
    >>> table = reductions_section(Settings(default_problem())).items[1]
    >>> len(table.rows), max(row[2] for row in table.rows) < 1e-9
    (4, True)
    """
    problem = settings.problem
    if not isinstance(problem, RegressionTasks):
        return Section("reductions", "The reductions, measured", "", (), "needs regression tasks")
    exact = _iterates(problem, Kaczmarz(), settings.seed)
    scale = float(np.linalg.norm(exact, axis=1).max()) or 1.0
    cases: list[tuple[str, str, Any]] = [
        ("reduc:cl_to_kaczmarz", "gradient descent to convergence = block Kaczmarz", GradientDescent(accelerated=True)),
        ("reduc:kaczmarz", "block Kaczmarz = SGD, step 1, modified objective", SGD(1.0)),
        ("reduc:pocs", "block Kaczmarz = projections onto convex sets", POCS()),
        ("reduc:pocs (ii)", "projection = gradient step on dist^2 / 2", None),
    ]
    series: list[Series] = []
    rows: list[tuple[Any, ...]] = []
    for group, (label, words, scheme) in enumerate(cases):
        try:
            if label == "reduc:pocs":
                gap = np.linalg.norm(_iterates(ConvexSets.from_affine(problem), scheme, settings.seed) - exact, axis=1)
            elif scheme is None:
                gap = _gradient_gap(problem, exact, settings.seed)
            else:
                gap = np.linalg.norm(_iterates(problem, scheme, settings.seed) - exact, axis=1)
        except ForgettingError as error:
            rows.append((label, words, None, str(error)))
            continue
        relative = np.maximum(gap / scale, 0.0)
        rows.append((label, words, float(relative.max()), "iterates compared"))
        series.append(
            Series(words, column(np.arange(1, len(gap))), column(np.maximum(relative[1:], SMALLEST)), method=label,
                   group=group)
        )  # fmt: skip
    figure = Curves(
        "reductions",
        "Distance between the iterates of equal schemes",
        f"Largest distance relative to the largest iterate, on one random order of {STEPS} tasks. The gradient of "
        "dist^2 / 2 is taken by central differences, which limits it to about 1e-10; the rest is rounding and the "
        f"tolerance of the inner solver. A line at {SMALLEST:g} means equal to the last bit.",
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
    return Section("reductions", "The reductions, measured", text, (figure, table))


def _iterates(problem: Any, scheme: Scheme, seed: int) -> Array:
    return whole_run(problem, WithReplacement(), STEPS, scheme=scheme, seed=seed).iterates


def _gradient_gap(problem: RegressionTasks, exact: Array, seed: int) -> Array:
    """|w_t - (w_(t-1) - grad f(w_(t-1)))| with the gradient by central differences (exact for a quadratic)."""
    order = whole_run(problem, WithReplacement(), STEPS, seed=seed).order
    step = 1e-3
    gaps = [0.0]
    for t, task in enumerate(order.tolist(), start=1):
        w = exact[t - 1]
        moves = step * np.eye(problem.dim)
        gradient = np.array([(_half_square(problem, task, w + e) - _half_square(problem, task, w - e)) for e in moves])
        gaps.append(float(np.linalg.norm(exact[t] - (w - gradient / (2 * step)))))
    return np.array(gaps)


def _half_square(problem: RegressionTasks, task: int, w: Array) -> float:
    gap = w - problem.project(task, w)
    return 0.5 * float(gap @ gap)
