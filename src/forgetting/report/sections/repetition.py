"""Randomness against repetition: the tasks that are forgotten in order, learned in a random one."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.orderings import Cyclic, Explicit, Ordering, WithoutReplacement, WithReplacement
from forgetting.report.data import Curves, Section, Series
from forgetting.report.numbers import column, expected, spread_steps
from forgetting.report.settings import Settings
from forgetting.tasks import families

__all__ = ["repetition_section"]

FLOOR = 1e-12


def repetition_section(settings: Settings) -> Section:
    """Forgetting on the catastrophic family, along k and at the end of one pass as T grows.

    >>> from forgetting.report.settings import default_problem
    >>> section = repetition_section(Settings(default_problem(), eps=(3.0, 2.0), points=4))
    >>> [item.key for item in section.items]
    ['randomness-repetition', 'single-pass']
    """
    tasks = families.catastrophic(settings.eps[-1])
    T = tasks.num_tasks
    along = tuple(
        _along(tasks, ordering, name, last, settings, group)
        for group, (name, ordering, last) in enumerate(
            (
                ("random, with replacement", WithReplacement(), 3 * T),
                ("random, without replacement", WithoutReplacement(), T),
                ("cyclic (repetition, no randomness)", Cyclic(), 3 * T),
                ("the given order, once", Explicit(range(T)), T),
            )
        )
    )
    worst = along[3].y[-1] or 0.0
    first = Curves(
        "randomness-repetition",
        "Randomness against repetition",
        f"catastrophic(eps={settings.eps[-1]:g}): {T} lines in the plane that turn slowly, then fast. Learned in the "
        f"given order, forgetting ends at {worst:.3f} of at most 0.5; a random order, with or without repetition, "
        f"loses nothing. The cycle is the given order until k = T. Without replacement this is the mean of simulated "
        f"runs ({along[1].method}). Values below {FLOOR:g} are not drawn.",
        "k, tasks learned",
        "expected forgetting",
        along,
        floor=FLOOR,
    )
    text = (
        "Does a random order help because tasks come back, or because it is random? On tasks built to be forgotten, "
        "one pass in a random order, where nothing comes back, does as well as sampling with replacement, while a "
        "cycle through the given order forgets first and repairs later."
    )
    return Section("repetition", "Randomness against repetition", text, (first, _single_pass(settings)))


def _along(tasks: Any, ordering: Ordering, name: str, last: int, settings: Settings, group: int) -> Series:
    steps = spread_steps(last, settings.points)
    if isinstance(ordering, (Cyclic, Explicit)):  # where a pass ends is where it matters
        T = tasks.num_tasks
        dense = [
            t for t in (T - 2, T - 1, T, T + 1, *np.linspace(T, 2 * T, settings.points).astype(int)) if 1 <= t <= last
        ]
        steps = np.unique([*steps.tolist(), *dense])
    result = expected(tasks, ordering, steps, settings.seed, ("forgetting",))
    spread = "" if result.exact else f"; 99 % interval up to {float(result.forgetting_interval[-1, 1]):.2g}"
    return Series(
        name,
        column(steps),
        column(result.forgetting),
        role="exact" if result.exact else "simulated",
        method=f"{result.method}: {result.detail}{spread}",
        group=group,
    )


def _end(tasks: Any, ordering: Ordering, settings: Settings) -> float:
    return float(expected(tasks, ordering, tasks.num_tasks, settings.seed, ("forgetting",)).forgetting)


def _single_pass(settings: Settings) -> Curves:
    sizes: list[float] = []
    values: dict[str, list[float]] = {name: [] for name in ("without", "order", "universal", "dimension")}
    for eps in settings.eps:
        tasks = families.catastrophic(eps)
        T = tasks.num_tasks
        sizes.append(float(T))
        values["order"].append(_end(tasks, Explicit(range(T)), settings))
        values["without"].append(_end(tasks, WithoutReplacement(), settings))
        values["universal"].append(7 / (T - 1) ** 0.25)
        values["dimension"].append((tasks.dim - tasks.rank_avg + 1) / (T - 1))
    series = (
        Series("the given order", tuple(sizes), tuple(values["order"]), method="deterministic", group=3),
        Series(
            "a random order, simulated",
            tuple(sizes),
            tuple(max(v, 0.0) for v in values["without"]),
            role="simulated",
            method="monte-carlo, 2048 runs",
            group=1,
        ),
        Series("7 / (T-1)^(1/4)", tuple(sizes), tuple(values["universal"]), role="bound", method="thm:cl_by_sgd_wor"),
        Series(
            "(d - r + 1) / (T-1)", tuple(sizes), tuple(values["dimension"]), role="bound", method="thm:cl_by_sgd_wor"
        ),
    )
    return Curves(
        "single-pass",
        "One pass over ever more tasks",
        "Forgetting after each task was learned once, as eps falls and the catastrophic family grows: it tends to its "
        "maximum 1/2 in the given order and to 0 in a random one, below both branches of thm:cl_by_sgd_wor.",
        "T, number of tasks",
        "forgetting after one pass",
        series,
        floor=FLOOR,
    )
