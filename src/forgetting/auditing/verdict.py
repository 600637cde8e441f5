"""The verdict on the orders of some tasks: whether the order matters, and what all measures advise."""

from __future__ import annotations

from dataclasses import dataclass

from forgetting.auditing.measures import MeasuredOrders
from forgetting.core.numerical import ROUNDING

EFFECT = 3.0  # the order matters much if the worst order forgets this many times as much as a random order,
SHARE = 0.01  # and forgets this part of the loss before learning; of accuracies, a hundredth of all rows
LITTLE, SOMEWHAT = 1.25, 2.0  # the worst order forgets at most this many times as much as the best


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


def judge(measured: MeasuredOrders) -> Verdict:
    """The verdict from the orders found, the measures, the loss before learning, and forgetting after one pass.

    >>> import numpy as np
    >>> from forgetting.auditing import FoundOrder, OrderSearch
    >>> search = OrderSearch("forgetting", FoundOrder((0, 1), 0.1), FoundOrder((1, 0), 1.0), True, 2, 0)
    >>> orders = np.array([[0, 1], [1, 0]])
    >>> verdict = judge(MeasuredOrders(search, orders, True, (), start=1.0, given=1.0, random=(0.3, 0.3)))
    >>> verdict.effect, verdict.bad, verdict.worst
    ('much', True, (1, 0))
    """
    search, measures, start, given, (low, high) = (
        measured.search, measured.measures, measured.start, measured.given, measured.random
    )  # fmt: skip
    worst, best = search.worst.value, search.best.value
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
        measured.seed,
        search.worst.order,
        search.best.order,
        effect,
        bad,
        far,
        bad and all(say == 1 for say in says),
        far and all(m.best_against_given == 1 and m.best_against_random == 1 for m in measures),
        material and 1 in says and -1 in says,
    )
