"""The tree of all runs of a law: the errors that occur, and the expected quantity as a combination of their products.

Where all tasks are alike (uniform draws, shuffles), runs are counted up to the names of the tasks, so that the size of
a tree stops growing with the number of tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

from forgetting.errors import NotSupportedError
from forgetting.worstcase.inner_products import Word, extended

State = tuple[int, ...]

MOST_WORDS = 250  # their inner products make at least half the square of this many rows


class Move(NamedTuple):
    """A task that may come next, with its probability and the state of the law after it."""

    letter: int
    probability: Fraction
    state: State


@dataclass(frozen=True)
class TaskWalk:
    """The tasks that may come next after those of a word. Letters are named by first appearance where tasks are alike.

    Attributes:
        num_tasks: None for the limit of infinitely many tasks.
        symmetric: whether all tasks are alike.
        single: whether there is one run only.
    """

    num_tasks: int | None
    symmetric: ClassVar[bool] = True
    single: ClassVar[bool] = False

    def moves(self, seen: int, state: State) -> Iterator[Move]:
        """The next tasks, after `seen` different ones."""
        raise NotImplementedError

    def in_words(self) -> Any:
        """The law in a certificate: a word, or weights, or an order."""
        raise NotImplementedError

    def everyone(self, seen: int) -> Iterator[tuple[int, Fraction]]:
        """All tasks with equal weights; where they are alike, those that were seen, and one more for all the others."""
        if self.num_tasks is None:
            yield seen, Fraction(1)
            return
        known = seen if self.symmetric else self.num_tasks
        yield from ((letter, Fraction(1, self.num_tasks)) for letter in range(known))
        if known < self.num_tasks:
            yield known, Fraction(self.num_tasks - known, self.num_tasks)


@dataclass(frozen=True)
class Alike(TaskWalk):
    """Uniform draws with replacement."""

    def moves(self, seen: int, state: State) -> Iterator[Move]:
        return (Move(letter, weight, ()) for letter, weight in self.everyone(seen))

    def in_words(self) -> Any:
        return "uniform"


@dataclass(frozen=True)
class Shuffles(TaskWalk):
    """A random permutation, and another one after its end. The state lists the tasks of the current pass."""

    num_tasks: int

    def moves(self, seen: int, state: State) -> Iterator[Move]:
        passed = () if len(state) == self.num_tasks else state
        left = self.num_tasks - len(passed)
        for letter in range(seen):
            if letter not in passed:
                yield Move(letter, Fraction(1, left), tuple(sorted((*passed, letter))))
        if seen < self.num_tasks:
            yield Move(seen, Fraction(self.num_tasks - seen, left), (*passed, seen))

    def in_words(self) -> Any:
        return "shuffles"


@dataclass(frozen=True)
class Weighted(TaskWalk):
    """Draws with replacement and given probabilities."""

    num_tasks: int
    weights: tuple[Fraction, ...]
    symmetric: ClassVar[bool] = False

    def moves(self, seen: int, state: State) -> Iterator[Move]:
        return (Move(letter, weight, ()) for letter, weight in enumerate(self.weights) if weight)

    def in_words(self) -> Any:
        return {"weights": [str(weight) for weight in self.weights]}


@dataclass(frozen=True)
class Given(TaskWalk):
    """One given order. The state is the number of steps taken."""

    num_tasks: int
    order: tuple[int, ...]
    symmetric: ClassVar[bool] = False
    single: ClassVar[bool] = True

    def moves(self, seen: int, state: State) -> Iterator[Move]:
        step = len(state)
        yield Move(self.order[step], Fraction(1), (*state, 0))

    def in_words(self) -> Any:
        return {"order": list(self.order)}


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

    >>> made = tree(Alike(2), 1, "loss")
    >>> sorted(made.words), {word: str(weight) for word, weight in made.losses.items()}
    ([(), (0,)], {((0,), 1): '1/4'})
    """
    counts = quantity == "forgetting"
    level: dict[tuple[Word, State, tuple[int, ...]], Fraction] = {((), (), ()): Fraction(1)}
    words: set[Word] = {()}
    for step in range(k):
        following: dict[tuple[Word, State, tuple[int, ...]], Fraction] = {}
        for (word, state, visits), weight in level.items():
            for move in walk.moves(len(set(word)), state):
                counted = _with_visit(visits, move.letter) if counts else ()
                at = extended(word, move.letter), move.state, counted
                following[at] = following.get(at, Fraction(0)) + weight * move.probability
        level = following
        words |= {word for word, _, _ in level}
        if len(words) > MOST_WORDS:
            raise NotSupportedError(
                f"T = {walk.num_tasks or 'inf'}, k = {k}: there are {len(words)} different iterates after {step + 1} "
                f"steps, and a semidefinite program of their inner products is out of reach (at most {MOST_WORDS}). "
                "Use a smaller k, or fg.adversarial_search for a lower bound"
            )
    losses: dict[tuple[Word, int], Fraction] = {}
    for (word, state, visits), weight in level.items():
        seen = len(set(word))
        if counts:
            shares = [(letter, Fraction(times, k)) for letter, times in enumerate(visits) if times]
        elif quantity == "next_loss":
            shares = [(move.letter, move.probability) for move in walk.moves(seen, state)]
        else:
            shares = list(walk.everyone(seen))
        for letter, part in shares:
            if letter != word[-1]:  # a task just learned has no loss
                losses[word, letter] = losses.get((word, letter), Fraction(0)) + weight * part / 2
    return Tree(walk, k, quantity, frozenset(words), frozenset(word for word, _, _ in level), losses)


def _with_visit(visits: tuple[int, ...], letter: int) -> tuple[int, ...]:
    longer = [*visits, *(0 for _ in range(letter + 1 - len(visits)))]
    longer[letter] += 1
    return tuple(longer)
