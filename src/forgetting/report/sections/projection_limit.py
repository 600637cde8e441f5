"""Weakly regularised classification against its projection limit, as lambda falls."""

from __future__ import annotations

import numpy as np

from forgetting import reductions
from forgetting.figures.items import Curves, Series, column
from forgetting.orderings import Cyclic
from forgetting.report.document import Section
from forgetting.report.section_registry import section
from forgetting.report.settings import Settings, Step, no_step
from forgetting.tasks import families

__all__ = ["classification_section"]

LEVELS = np.geomspace(10, 5000, 10)  # log(1 / lambda)
STEPS = (1, 3, 6, 12)


@section("classification", place=6, demonstration=True)
def classification_section(settings: Settings, _: Step = no_step) -> Section:
    """The angle between the iterates of weakly regularised learning and those of projections."""
    tasks = families.separable(T=3, d=8, n=6, margin=0.2, seed=settings.seed)
    curve = reductions.classification_to_pocs(tasks, Cyclic(), STEPS[-1], (-LEVELS).tolist())
    angles = np.nan_to_num(curve.angles)  # iterates at 0 have no direction
    series = [
        Series(f"after {t} task" + ("s" if t > 1 else ""), column(LEVELS), column(angles[:, t - 1]), group=i)
        for i, t in enumerate(STEPS)
    ]
    middle = float(np.exp(np.mean(np.log(np.maximum(angles[:, -1], 1e-300)))))
    pivot = float(np.exp(np.mean(np.log(LEVELS))))
    reference = column(middle * pivot / LEVELS)
    series.append(Series("slope 1 / log(1/lambda)", column(LEVELS), reference, role="reference", method="for the eye"))
    figure = Curves(
        "classification-limit",
        "Angle to the projection limit",
        "Three separable tasks learned in a cycle: the angle between w_t of the weakly regularised scheme and the "
        "iterate of the sequential projections, as the regularisation vanishes (Reduction 4).",
        "log(1 / lambda)",
        "angle, radians",
        tuple(series),
    )
    text = (
        "With exponential loss and vanishing regularisation, learning a separable task becomes a projection onto the "
        "points that classify it with margin 1. The limit is approached slowly, like 1 / log(1/lambda)."
    )
    return Section("classification", "Classification and its projection limit", text, (figure,))
