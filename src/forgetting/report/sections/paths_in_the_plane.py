"""The path of projections in the plane."""

from __future__ import annotations

import numpy as np

from forgetting.dynamics.loop import run
from forgetting.figures.items import Line, Paths, Stage
from forgetting.orderings import Cyclic, Ordering, WithReplacement
from forgetting.report.document import Section
from forgetting.report.section_registry import section
from forgetting.report.settings import Settings, Step, no_step
from forgetting.tasks import RegressionTasks

__all__ = ["plane_section", "three_lines"]

ANGLES = (0.1, 0.55, 1.0)
STEPS = 18


@section("plane", "projections", place=5, demonstration=True)
def plane_section(settings: Settings, _: Step = no_step) -> Section:
    """Three lines in the plane, learned in a cycle and at random."""
    text = "Learning a task to convergence is a projection. In the plane one can watch it happen, and take hold of it."
    return Section("plane", "Projections in the plane", text, (three_lines(settings.seed),))


def three_lines(seed: int = 0) -> Paths:
    """Runs on three tasks of one row each.

    >>> [line.name for line in three_lines().lines]
    ['task 0', 'task 1', 'task 2']
    """
    solution = np.array([1.0, 0.6])
    rows = [np.array([[-np.sin(angle), np.cos(angle)]]) for angle in ANGLES]
    tasks = RegressionTasks(rows, [row @ solution for row in rows])
    lines = tuple(
        Line(f"task {m}", (float(solution[0]), float(solution[1])), (float(np.cos(a)), float(np.sin(a))))
        for m, a in enumerate(ANGLES)
    )
    chosen: tuple[tuple[str, Ordering], ...] = (("cyclic", Cyclic()), ("random with replacement", WithReplacement()))
    stages = tuple(_stage(tasks, name, ordering, seed + 3) for name, ordering in chosen)
    return Paths(
        "projections",
        "The path of projections",
        "Each task is the line of its solutions; learning it moves w to the nearest point of that line. All lines meet "
        "in w*, and every step that is not orthogonal to the error brings w closer to it.",
        lines,
        (float(solution[0]), float(solution[1])),
        stages,
    )


def _stage(tasks: RegressionTasks, name: str, ordering: Ordering, seed: int) -> Stage:
    made = run(tasks, ordering, STEPS, seed=seed, w0=np.array([-0.6, 1.5]))
    return Stage(name, tuple((float(x), float(y)) for x, y in made.iterates), tuple(made.order.tolist()))
