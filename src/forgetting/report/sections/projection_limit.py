"""Weakly regularised classification against its projection limit, as lambda falls."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting import schemes
from forgetting import tasks as problems
from forgetting.dynamics.loop import whole_run
from forgetting.orderings import Cyclic
from forgetting.report.data import Curves, Section, Series
from forgetting.report.numbers import column
from forgetting.report.settings import Settings

__all__ = ["classification_section"]

TITLE = "Classification and its projection limit"
LOGS = tuple(np.geomspace(10, 5000, 10).tolist())
STEPS = (1, 3, 6, 12)


def classification_section(settings: Settings) -> Section:
    """The angle between the iterates of weakly regularised learning and those of projections.

    >>> from forgetting.report.settings import default_problem
    >>> classification_section(Settings(default_problem())).key
    'classification'
    """
    tasks_class = getattr(problems, "ClassificationTasks", None)
    weakly = getattr(schemes, "WeaklyRegularized", None)
    family = getattr(problems.families, "separable", None)
    if tasks_class is None or weakly is None or family is None:
        return Section("classification", TITLE, "", (), "classification tasks are not part of this version")
    tasks = family(T=3, d=8, n=6, margin=0.2, seed=settings.seed)
    limit = whole_run(tasks, Cyclic(), STEPS[-1], scheme=schemes.POCS()).iterates
    angles = np.array([_angles(whole_run(tasks, Cyclic(), STEPS[-1], scheme=weakly(-log)), limit) for log in LOGS])
    series = [
        Series(f"after {t} task" + ("s" if t > 1 else ""), column(LOGS), column(angles[:, t]), group=i, method="run")
        for i, t in enumerate(STEPS)
    ]
    middle = float(np.exp(np.mean(np.log(np.maximum(angles[:, STEPS[-1]], 1e-300)))))
    pivot = float(np.exp(np.mean(np.log(LOGS))))
    series.append(
        Series(
            "slope 1 / log(1/lambda)", column(LOGS), column(middle * pivot / np.array(LOGS)), role="reference",
            method="for the eye"
        )
    )  # fmt: skip
    figure = Curves(
        "classification-limit",
        "Angle to the projection limit",
        "Three separable tasks learned in a cycle: the angle between w_t of the weakly regularised scheme and the "
        "iterate of the sequential projections, as the regularisation vanishes (reduc:classification_to_pocs).",
        "log(1 / lambda)",
        "angle, radians",
        tuple(series),
    )
    text = (
        "With exponential loss and vanishing regularisation, learning a separable task becomes a projection onto the "
        "points that classify it with margin 1. The limit is approached slowly, like 1 / log(1/lambda)."
    )
    return Section("classification", TITLE, text, (figure,))


def _angles(found: Any, limit: Any) -> Any:
    """Angle between the rows; 0 where one of them is 0."""
    a, b = found.iterates, limit
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    unit_a = a / np.maximum(np.linalg.norm(a, axis=1, keepdims=True), 1e-300)
    unit_b = b / np.maximum(np.linalg.norm(b, axis=1, keepdims=True), 1e-300)
    # arcsin of half the chord keeps small angles, which arccos of the product loses
    angle = 2 * np.arcsin(np.clip(np.linalg.norm(unit_a - unit_b, axis=1) / 2, 0, 1))
    return np.where(norms > 0, angle, 0.0)
