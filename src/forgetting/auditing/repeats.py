"""The same verdict for other draws of rows and of random features: how much of it is one seed's luck."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from forgetting.auditing.measures import Measure, measure_orders, orders_to_try
from forgetting.auditing.orders import search_orders
from forgetting.auditing.preparation import Recipe, held_out
from forgetting.auditing.verdict import Verdict, judge
from forgetting.core.arrays import IntArray
from forgetting.dynamics.space import resolve
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import LinearTasks

__all__ = ["forgetting_from", "repeat_verdicts"]

SEARCHED = 2000  # orders that a search tries in a repeat, for the best and for the worst
DEVIATIONS = 3.0


def repeat_verdicts(
    tasks: LinearTasks,
    recipe: Recipe,
    seed: int,
    repeats: Iterable[int],
    given: IntArray,
    scheme: SchemeLike | None,
    w0: Any,
    passes: int,
    test: Any = None,
    progress: Callable[[int], None] = lambda repeat: None,
) -> list[Verdict]:
    """The verdict of each repeat, in which rows and random features are drawn with the seed plus its number.

    Cost: a search of orders and all measures for each repeat.
    """
    verdicts = []
    for repeat in repeats:
        progress(repeat)
        problem = recipe.prepare(tasks, seed, int(given[0]), repeat)
        rows = None if test is None else held_out(test, tasks, problem)
        chosen, space = resolve(problem, scheme, w0)
        search = search_orders(
            problem, scheme=chosen, w0=space.w0, starts=[given], seed=seed + repeat, evaluations=SEARCHED
        )
        tried = orders_to_try(problem, seed + repeat)
        measures = measure_orders(problem, chosen, space.w0, tried, given, passes, search, rows)
        own, mean, error = forgetting_from(measures, problem)
        start = float(problem.geometry.mean_losses(problem.geometry.start(space.w0)))
        random = mean - DEVIATIONS * error, mean + DEVIATIONS * error
        verdicts.append(judge(search, measures, start, own, random, seed + repeat))
    return verdicts


def forgetting_from(measures: tuple[Measure, ...], problem: Any) -> tuple[float, float, float]:
    """Forgetting of the given order, its mean over random orders and the standard error of the mean.

    If there is no measure of forgetting, every task is solved when it is learned, up to what no w can fit.
    """
    named = {measure.name: measure for measure in measures}
    geometry = problem.geometry
    if "forgetting" in named:
        measure, kept = named["forgetting"], 0.0
    else:
        measure = named["training loss"]
        kept = 0.0 if geometry is None else float(geometry.unexplained @ geometry.counts) / geometry.num_tasks
    return measure.given - kept, measure.mean - kept, measure.error
