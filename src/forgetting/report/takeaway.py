"""The sentence that opens a report: whether a random order, repetition, both or neither protects the tasks."""

from __future__ import annotations

from dataclasses import dataclass

from forgetting.core.numerical import ROUNDING

PASSES = 3  # in the ways that repeat the tasks
FACTOR = 2.0  # values that differ by at most this factor are alike
SHARE = 0.01  # forgetting of at most this part of the loss before learning is next to nothing


@dataclass(frozen=True)
class Ways:
    """Expected forgetting in four ways: the given order and random orders, for one pass and for `PASSES`.

    Attributes:
        given_once, given_often: the tasks are learned in the given order.
        random_once, random_often: the tasks are learned in a random order, each pass in a new one.
        start: the mean loss before learning.
    """

    given_once: float
    given_often: float
    random_once: float
    random_often: float
    start: float

    @property
    def takeaway(self) -> str:
        """What these numbers say, in one sentence with the numbers.

        >>> Ways(given_once=0.19, given_often=0.15, random_once=0.02, random_often=0.01, start=0.5).takeaway[:61]
        'Random order, not repetition, is what protects these tasks: o'
        """
        most = max(self.given_once, self.given_often, self.random_once, self.random_often)
        anything = max(most, -min(self.given_once, self.given_often, self.random_once, self.random_often))
        if anything <= ROUNDING * self.start:
            return "Nothing is forgotten: not in the given order, not in a random one, and not after three passes."
        if most <= SHARE * self.start:
            share = f"{100 * max(most, 0.0) / self.start:.2g} % of the loss before learning"
            return (
                f"Next to nothing is forgotten: at most {share}, in the given order and in a random one, after one "
                "pass and after three."
            )
        return f"{self._finding()}: {self._values()}."

    def _finding(self) -> str:
        given, random = self.given_once, self.random_once
        given_often, random_often = self.given_often, self.random_often
        if not any(self._differ(*pair) for pair in ((given, random), (given_often, random_often))):
            if self._below(given_often, given) or self._below(random_often, random):
                return "Repetition is what protects these tasks, and their order makes little difference"
            if self._below(given, given_often) or self._below(random, random_often):
                return "Repetition makes these tasks forget more, and their order makes little difference"
            return "Neither the order of these tasks nor their repetition makes much difference"
        shuffling, repeating, both = (self._below(value, given) for value in (random, given_often, random_often))
        if shuffling and repeating:
            return "Random order and repetition both protect these tasks, and either of them is enough"
        if shuffling:
            return "Random order, not repetition, is what protects these tasks"
        if repeating:
            return "Repetition, not random order, is what protects these tasks"
        if both:
            return "Random order and repetition protect these tasks only together"
        if self._below(given, random):
            return "A random order makes these tasks forget more than the given one"
        return "Neither a random order nor repetition protects these tasks"

    def _values(self) -> str:
        once, often = (
            [f"{0.0 if abs(value) <= ROUNDING * self.start else value:.2g}" for value in values]
            for values in ((self.given_once, self.random_once), (self.given_often, self.random_often))
        )
        return (
            f"one pass leaves a forgetting of {once[0]} in the given order and {once[1]} in a random one, three passes "
            f"leave {often[0]} and {often[1]}"
        )

    def _below(self, low: float, high: float) -> bool:
        """Whether a value is far below another one; what is next to nothing counts as equal."""
        least = SHARE * self.start
        return max(high, least) > FACTOR * max(low, least)

    def _differ(self, one: float, other: float) -> bool:
        return self._below(one, other) or self._below(other, one)
