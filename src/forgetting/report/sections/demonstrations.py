"""Demonstrations on made-up tasks: randomness against repetition, paths in the plane, the limit of classification."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forgetting import bounds, reductions
from forgetting.dynamics.loop import run
from forgetting.figures.items import Curves, Line, Paths, Series, Stage, column, spread_steps
from forgetting.orderings import Cyclic, Explicit, Ordering, WithoutReplacement, WithReplacement
from forgetting.report.document import Section
from forgetting.report.sections.values_and_bounds import expected
from forgetting.report.settings import Settings, Step, no_step, section
from forgetting.tasks import Problem, RegressionTasks, families

# ---------------------------------------------------------------------------------------- randomness against repetition

FLOOR = 1e-12
#: the branches of the guarantee for one pass that are drawn
BRANCHES = ("thm:cl_by_sgd_wor/forgetting/universal", "thm:cl_by_sgd_wor/forgetting/dimension")


def _ends(figure: Curves) -> str:
    """Where each curve ends, in words."""
    ends = []
    for series in figure.series:
        value = series.y[-1] or 0.0
        words = f"at most {FLOOR:g}" if value <= FLOOR else f"{value:.2g}"
        ends.append(f"{series.name} {words} at k = {series.x[-1]:.0f}")
    return ", ".join(ends)


@section("repetition", "randomness and repetition", place=2, demonstration=True)
def repetition_section(settings: Settings, _: Step = no_step) -> Section:
    """Forgetting on the catastrophic family, along k and at the end of one pass as T grows."""
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
        f"loses nothing. The cycle is the given order until k = T. The curve without replacement is the mean of "
        f"simulated runs. What is below {FLOOR:g} is drawn at {FLOOR:g}.",
        "k, tasks learned",
        "expected forgetting",
        along,
        floor=FLOOR / 2,
    )
    text = (
        "Does a random order help because tasks come back, or because it is random? On tasks built to be forgotten, "
        "one pass in a random order, where nothing comes back, does as well as sampling with replacement, while a "
        "cycle through the given order forgets first and repairs later. At the ends of the curves, forgetting is: "
        f"{_ends(first)}."
    )
    return Section("repetition", "Randomness against repetition", text, (first, _single_pass(settings)))


def _along(tasks: Problem, ordering: Ordering, name: str, last: int, settings: Settings, group: int) -> Series:
    steps = spread_steps(last, settings.points)
    if not ordering.random:  # where a pass ends is where it matters
        T = tasks.num_tasks
        dense = [
            t for t in (T - 2, T - 1, T, T + 1, *np.linspace(T, 2 * T, settings.points).astype(int)) if 1 <= t <= last
        ]
        steps = np.unique([*steps.tolist(), *dense])
    result = expected(tasks, ordering, steps, settings.seed, ("forgetting",))
    spread = "" if result.exact else f"; 99 % interval up to {float(result.forgetting_interval[-1, 1]):.2g}"
    series = result.series("forgetting", name, group)
    # so that a curve goes on; after one task nothing can be forgotten
    drawn = tuple(y if y is None or x == 1 else max(y, FLOOR) for x, y in zip(series.x, series.y, strict=True))
    return replace(series, y=drawn, low=None, high=None, method=series.method + spread)


def _end(tasks: Problem, ordering: Ordering, settings: Settings) -> float:
    return float(expected(tasks, ordering, tasks.num_tasks, settings.seed, ("forgetting",)).forgetting)


def _single_pass(settings: Settings) -> Curves:
    sizes: list[float] = []
    given: list[float] = []
    random: list[float] = []
    limits: dict[str, list[float]] = {key: [] for key in BRANCHES}
    titles: dict[str, str] = {}
    for eps in settings.eps:
        tasks = families.catastrophic(eps)
        T = tasks.num_tasks
        sizes.append(float(T))
        given.append(_end(tasks, Explicit(range(T)), settings))
        random.append(max(_end(tasks, WithoutReplacement(), settings), 0.0))
        for row in bounds.evaluate(tasks, WithoutReplacement(), T):
            if row.bound.key in limits:
                limits[row.bound.key].append(row.value)
                titles[row.bound.key] = row.bound.formula
    x = tuple(sizes)
    series = (
        Series("the given order", x, tuple(given), method="deterministic", group=3),
        Series(
            "a random order, simulated", x, tuple(random), role="simulated", method="monte-carlo, 2048 runs", group=1
        ),
        *(Series(key, x, tuple(values), role="bound", method=key, label=titles[key]) for key, values in limits.items()),
    )
    return Curves(
        "single-pass",
        "One pass over ever more tasks",
        "Forgetting after each task was learned once, as eps falls and the catastrophic family grows: it tends to its "
        "maximum 1/2 in the given order and to 0 in a random one, below both branches of Theorem 11 at k = T, "
        "where S = |w*|^2 R^2.",
        "T, number of tasks",
        "forgetting after one pass",
        series,
        floor=FLOOR,
    )


# --------------------------------------------------------------------------------------------------- paths in the plane

ANGLES = (0.1, 0.55, 1.0)
PLANE_STEPS = 18


@section("plane", "projections", place=5, demonstration=True)
def plane_section(settings: Settings, _: Step = no_step) -> Section:
    """Three lines in the plane, learned in a cycle and at random."""
    text = "Learning a task to convergence is a projection. The interactive figure shows it in the plane."
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
    made = run(tasks, ordering, PLANE_STEPS, seed=seed, w0=np.array([-0.6, 1.5]))
    return Stage(name, tuple((float(x), float(y)) for x, y in made.iterates), tuple(made.order.tolist()))


# ------------------------------------------------------------------------------------------------------- classification

LEVELS = np.geomspace(10, 5000, 10)  # log(1 / lambda)
LIMIT_STEPS = (1, 3, 6, 12)


@section("classification", place=6, demonstration=True)
def classification_section(settings: Settings, _: Step = no_step) -> Section:
    """The angle between the iterates of weakly regularised learning and those of projections."""
    tasks = families.separable(T=3, d=8, n=6, margin=0.2, seed=settings.seed)
    curve = reductions.classification_to_pocs(tasks, Cyclic(), LIMIT_STEPS[-1], (-LEVELS).tolist())
    angles = np.nan_to_num(curve.angles)  # iterates at 0 have no direction
    series = [
        Series(f"after {t} task" + ("s" if t > 1 else ""), column(LEVELS), column(angles[:, t - 1]), group=i)
        for i, t in enumerate(LIMIT_STEPS)
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
