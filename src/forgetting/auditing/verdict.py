"""The verdict on the orders of some tasks: whether the order matters, and what all measures agree to advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forgetting.auditing.measures import Measure
from forgetting.auditing.orders import OrderSearch

__all__ = ["Verdict", "agreed", "judge"]

EFFECT = 3.0  # the order matters much if the worst order forgets this many times as much as a random order,
SHARE = 0.01  # and forgets this part of the loss before learning; of accuracies, a hundredth of all rows
ROUNDING = 1e-13  # values below this part of the loss before learning count as 0
LITTLE, SOMEWHAT = 1.25, 2.0  # the worst order forgets at most this many times as much as the best


@dataclass(frozen=True)
class Verdict:
    """What the measures say about the orders, for tasks prepared with one seed.

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
    """How many of the verdicts agree with the first one about an attribute.

    >>> one = Verdict(0, (1, 0), (0, 1), "little", False, False, False, False, False)
    >>> agreed([one, one], "best")
    2
    """
    return sum(getattr(verdict, what) == getattr(verdicts[0], what) for verdict in verdicts)
