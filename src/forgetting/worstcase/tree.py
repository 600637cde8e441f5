"""The tree of all runs of a law: the errors that occur, and the expected quantity as a combination of their products.

Where all tasks are alike (uniform draws, shuffles), runs are counted up to the names of the tasks, so that the size of
a tree stops growing with the number of tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from forgetting.errors import NotSupportedError
from forgetting.worstcase.inner_products import Word, extended

Visits = tuple[int, ...]  # of each task; of those that were seen, where all tasks are alike

MOST_WORDS = 250  # their inner products make at least half the square of this many rows
ONE = Fraction(1)


@dataclass(frozen=True)
class TaskWalk:
    """The law of the tasks of a run. Letters are named by first appearance where tasks are alike.

    Attributes:
        num_tasks: None for the limit of infinitely many tasks, which only uniform draws have.
        law: "uniform" draws with replacement; "shuffles", a random permutation and another one after its end; draws
            with given "weights"; or one given "order".
        parts: the weights, or the tasks in their order.
    """

    num_tasks: int | None
    law: Literal["uniform", "shuffles", "weights", "order"]
    parts: tuple[Any, ...] = ()

    @property
    def symmetric(self) -> bool:
        """Whether all tasks are alike."""
        return not self.parts

    def in_words(self) -> Any:
        """The law in a certificate: a word, or weights, or an order."""
        if self.law == "weights":
            return {"weights": [str(weight) for weight in self.parts]}
        return {"order": list(self.parts)} if self.parts else self.law

    def following(self, seen: int, visits: Visits) -> list[tuple[int, Fraction]]:
        """The tasks that may come next, with their probabilities, after `seen` different ones and these visits."""
        if self.law == "order":
            return [(self.parts[sum(visits)], ONE)]
        if self.law == "weights":
            return [(letter, weight) for letter, weight in enumerate(self.parts) if weight]
        if self.law == "uniform" or self.num_tasks is None:
            return self.evenly(seen)
        passes = sum(visits) // self.num_tasks
        return self.evenly(seen, [letter for letter, count in enumerate(visits) if count > passes])

    def evenly(self, seen: int, without: Sequence[int] = ()) -> list[tuple[int, Fraction]]:
        """All tasks but some with equal weights; where all are alike, one of those not seen stands for all these."""
        if self.num_tasks is None:
            return [(seen, ONE)]
        known, left = seen if self.symmetric else self.num_tasks, self.num_tasks - len(without)
        weights = [(letter, Fraction(1, left)) for letter in range(known) if letter not in without]
        return weights if known == self.num_tasks else [*weights, (known, Fraction(self.num_tasks - known, left))]


@dataclass(frozen=True)
class Tree:
    """All runs of k steps.

    Attributes:
        words: the errors that occur on the way, by their words; named by first appearance where tasks are alike.
        ends: the words after k steps.
        losses: the expected quantity is the sum over (u, m) of losses[u, m] |(I - P_m) P_u z|^2.
    """

    walk: TaskWalk
    k: int
    quantity: str
    words: frozenset[Word]
    ends: frozenset[Word]
    losses: dict[tuple[Word, int], Fraction] = field(repr=False)


def tree(walk: TaskWalk, k: int, quantity: str) -> Tree:
    """All runs of k steps under a law, with the weights of their losses.

    >>> made = tree(TaskWalk(2, "uniform"), 1, "loss")
    >>> sorted(made.words), {word: str(weight) for word, weight in made.losses.items()}
    ([(), (0,)], {((0,), 1): '1/4'})
    """
    counted = quantity == "forgetting" or walk.law in ("shuffles", "order")
    level: dict[tuple[Word, Visits], Fraction] = {((), ()): ONE}
    words: set[Word] = {()}
    for step in range(k):
        longer: dict[tuple[Word, Visits], Fraction] = {}
        for (word, visits), weight in level.items():
            for letter, probability in walk.following(len(set(word)), visits):
                at = extended(word, letter), _with_visit(visits, letter) if counted else ()
                longer[at] = longer.get(at, 0) + weight * probability
        level = longer
        words |= {word for word, _ in level}
        if len(words) > MOST_WORDS:
            raise NotSupportedError(
                f"T = {walk.num_tasks or 'inf'}, k = {k}: there are {len(words)} different iterates after {step + 1} "
                f"steps, and a semidefinite program of their inner products is out of reach (at most {MOST_WORDS}). "
                "Use a smaller k, or fg.adversarial_search for a lower bound"
            )
    losses: dict[tuple[Word, int], Fraction] = {}
    for (word, visits), weight in level.items():
        seen = len(set(word))
        if quantity == "forgetting":
            shares = [(letter, Fraction(times, k)) for letter, times in enumerate(visits) if times]
        else:
            shares = walk.following(seen, visits) if quantity == "next_loss" else walk.evenly(seen)
        for letter, part in shares:
            if letter != word[-1]:  # a task just learned has no loss
                losses[word, letter] = losses.get((word, letter), Fraction(0)) + weight * part / 2
    return Tree(walk, k, quantity, frozenset(words), frozenset(word for word, _ in level), losses)


def _with_visit(visits: Visits, letter: int) -> Visits:
    longer = [*visits, *(0 for _ in range(letter + 1 - len(visits)))]
    longer[letter] += 1
    return tuple(longer)
