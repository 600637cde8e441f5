"""The verdict on the orders of some tasks: whether the order matters, and what all measures advise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from forgetting.auditing.measures import Measure, measure_orders, orders_to_try
from forgetting.auditing.order_search import OrderSearch, search_orders
from forgetting.auditing.preparation import Recipe, held_out
from forgetting.core.arrays import IntArray
from forgetting.core.numerical import ROUNDING
from forgetting.dynamics.space import resolve
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import LinearTasks, Problem

EFFECT = 3.0  # the order matters much if the worst order forgets this many times as much as a random order,
SHARE = 0.01  # and forgets this part of the loss before learning; of accuracies, a hundredth of all rows
LITTLE, SOMEWHAT = 1.25, 2.0  # the worst order forgets at most this many times as much as the best
SEARCHED = 2000  # orders that a search tries in a repeat, for the best and for the worst
DEVIATIONS = 3.0


@dataclass(frozen=True)
class Verdict:
    """The verdict of the measures on the orders, for tasks prepared with one seed.

    Attributes:
        seed: of the sub-sampling and the random features.
        worst, best: the orders that forget most and least.
        effect: how much forgetting depends on the order: "little", "somewhat", "clearly" or "much".
        bad: whether the given order is a bad one by forgetting.
        best_is_far: whether the best order forgets far less than a random one.
        shuffle: whether all measures say that a random order is better than the given one, which is bad.
        prefer: whether all measures say that the best order, which is far, is better than a random and the given one.
        conflict: whether a random order is better than the given one by some measures, and worse by others.

    >>> Verdict(0, (1, 0), (0, 1), "little", False, False, False, False, False).matters
    False
    """

    seed: int
    worst: tuple[int, ...]
    best: tuple[int, ...]
    effect: str
    bad: bool
    best_is_far: bool
    shuffle: bool
    prefer: bool
    conflict: bool

    @property
    def matters(self) -> bool:
        """Whether forgetting depends on the order more than a little."""
        return self.effect != "little"


def judge(
    search: OrderSearch,
    measures: Sequence[Measure],
    start: float,
    given: float,
    random: tuple[float, float],
    seed: int = 0,
) -> Verdict:
    """The verdict from the orders found, the measures, the loss before learning, and forgetting after one pass.

    `given` is the forgetting of the given order; `random` are the two ends of the interval around the expected
    forgetting of a random order.
    """
    worst, best, (low, high) = search.worst.value, search.best.value, random
    if worst <= SHARE * start:
        effect, bad = "little", False
    elif worst >= EFFECT * high:
        effect, bad = "much", given >= SHARE * start and given >= EFFECT * high
    else:
        effect = "little" if worst <= LITTLE * best else "somewhat" if worst <= SOMEWHAT * best else "clearly"
        bad = effect != "little" and given >= worst * (1 - 1e-9)
    far = low > ROUNDING * start and low >= SHARE * start and best * EFFECT <= low
    says = [measure.random_against_given for measure in measures]
    material = effect != "little" or any(
        measure.is_accuracy and abs(measure.top.value - measure.bottom.value) > SHARE for measure in measures
    )
    return Verdict(
        seed,
        search.worst.order,
        search.best.order,
        effect,
        bad,
        far,
        bad and all(say == 1 for say in says),
        far and all(m.best_against_given == 1 and m.best_against_random == 1 for m in measures),
        material and 1 in says and -1 in says,
    )


def agreed(verdicts: Sequence[Verdict], what: str) -> int:
    """The number of verdicts that agree with the first one about an attribute, the first included.

    >>> verdict = Verdict(0, (1, 0), (0, 1), "little", False, False, False, False, False)
    >>> agreed([verdict, verdict], "best")
    2
    """
    return sum(getattr(verdict, what) == getattr(verdicts[0], what) for verdict in verdicts)


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
    """The verdict of each repeat, whose rows and random features are drawn with the seed plus the number of the repeat.

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


def forgetting_from(measures: tuple[Measure, ...], problem: Problem) -> tuple[float, float, float]:
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
