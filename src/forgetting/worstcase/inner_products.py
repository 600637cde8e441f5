"""Inner products of errors: words in projections name them, and rules say which are equal and what a loss is.

A word u = (u_1, ..., u_j) stands for the error P_{u_j} ... P_{u_1} z after learning the tasks u_1, ..., u_j one after
another, z the error before. No letter follows itself, since P P = P. The inner product of two such errors is a number
of one word again: <P_{u_j} ... P_{u_1} z, P_{v_i} ... P_{v_1} z> = <z, P_{u_1} ... P_{u_j} P_{v_i} ... P_{v_1} z>.

In place of a projection P a letter may stand for the reflection 2P - 1, which undoes itself: words of reflections are
as different from each other as can be, and semidefinite programs in them are well conditioned.

Letters are tasks. A negative letter stands for an average: over all tasks that the word does not name, different
negative letters being different tasks. Task 0 counts as named by every word, so that averages never hit task 0.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

Word = tuple[int, ...]
Form = Mapping[Word, Fraction]  # a linear combination of inner products, by their names
Terms = tuple[tuple[Fraction, Word], ...]  # a linear combination of errors, by their words
ONE, HALF = Fraction(1), Fraction(1, 2)


def extended(word: Word, letter: int) -> Word:
    """The word after one more task.

    >>> extended((0, 1), 0), extended((0, 1), 1)
    ((0, 1, 0), (0, 1))
    """
    return word if word and word[-1] == letter else (*word, letter)


def joined(left: Word, right: Word) -> Word:
    """The word whose number is the inner product of two errors.

    >>> joined((0, 1), (0, 1)), joined((0, 1), (2,))
    ((0, 1, 0), (0, 1, 2))
    """
    return (*left, *right[-2::-1]) if left and right and left[-1] == right[-1] else (*left, *right[::-1])


def reflected(left: Word, right: Word) -> Word:
    """The word of an inner product where letters are reflections, which undo themselves.

    >>> reflected((0, 1), (0, 1)), reflected((0, 1), (2, 1))
    ((), (0, 2))
    """
    same = 0
    while same < min(len(left), len(right)) and left[-1 - same] == right[-1 - same]:
        same += 1
    return (*left[: len(left) - same], *right[: len(right) - same][::-1])


@lru_cache(maxsize=1 << 20)
def canonical(word: Word, symmetric: bool) -> Word:
    """One name for all words with the same number: a word and its reverse, and all relabellings if tasks are alike.

    >>> canonical((3, 1, 2, 1), symmetric=True), canonical((3, 1, 2, 1), symmetric=False)
    ((0, 1, 0, 2), (1, 2, 1, 3))
    """
    back = word[::-1]
    return min(relabelled(word), relabelled(back)) if symmetric else min(word, back)


def canonical_pair(left: Word, right: Word, symmetric: bool) -> Word:
    """One name for the inner product of two errors that follow no rule but symmetry: both words, with -1 between.

    >>> canonical_pair((1,), (1, 2), symmetric=True)
    (0, -1, 0, 1)
    """
    pairs = ((*left, -1, *right), (*right, -1, *left))
    return min(map(relabelled, pairs)) if symmetric else min(pairs)


def relabelled(word: Word) -> Word:
    """The word with its letters named by first appearance.

    >>> relabelled((3, 1, 2, 1))
    (0, 1, 2, 1)
    """
    names: dict[int, int] = {-1: -1}
    for letter in word:
        if letter not in names:
            names[letter] = len(names) - 1
    return tuple(names[letter] for letter in word)


def combined(parts: Iterable[tuple[Fraction, Form]]) -> dict[Word, Fraction]:
    """A linear combination of forms, without zeros."""
    total: dict[Word, Fraction] = defaultdict(Fraction)
    for factor, form in parts:
        for name, value in form.items():
            total[name] += factor * value
    return {name: value for name, value in total.items() if value}


@dataclass(frozen=True)
class Algebra:
    """Names for the inner products of errors: equal names, equal numbers.

    Attributes:
        num_tasks: None for the limit of infinitely many tasks.
        symmetric: whether all tasks are alike.
        splits: whether what a projection keeps is orthogonal to what the projection loses.
        closed: whether words with letters left out are needed too.
    """

    num_tasks: int | None
    symmetric: bool
    kind: ClassVar[str]
    splits: ClassVar[bool] = True
    closed: ClassVar[bool] = False

    def name(self, left: Word, right: Word) -> Word:
        """The name of the inner product of two errors."""
        raise NotImplementedError

    def kept(self, word: Word, task: int) -> Terms:
        """The part of an error that the projection of a task keeps."""
        return ((ONE, (*word, task)),)

    def lost(self, word: Word, task: int) -> Terms:
        """The part of an error that the projection of a task takes away."""
        return ((ONE, word), (-ONE, (*word, task)))

    def loss(self, word: Word, task: int) -> Form:
        """The squared norm of what a task takes away from the error after learning the tasks of a word."""
        lost = self.lost(word, task)
        return self.product(lost, lost)

    def of(self, left: Word, right: Word) -> dict[Word, Fraction]:
        """The inner product of two errors, averaged where their words say so.

        >>> Reflections(5, True).of((0, -1), (0, 1))
        {(0, 1, 2, 0): Fraction(3, 4), (): Fraction(1, 4)}
        """
        ways: dict[Word, int] = defaultdict(int)
        for first, second, number in self._namings(left, right):
            ways[self.name(first, second)] += number
        total = sum(ways.values())
        return {name: Fraction(number, total) for name, number in ways.items()}

    def _namings(self, left: Word, right: Word) -> Iterator[tuple[Word, Word, int]]:
        """Both words with a task in place of each average, one that the other word has or a new one; and the ways."""
        first, second = (left, right) if min(left, default=0) < 0 else (right, left)
        average = min(first, default=0)
        if average >= 0:
            yield left, right, 1
            return
        mine, yours = ({0, *(letter for letter in word if letter >= 0)} for word in (first, second))
        both = mine | yours
        tasks = [(max(both) + 1, 1)]
        if self.num_tasks is not None:  # else a task that the other word has is one of infinitely many
            tasks = [(max(both) + 1, self.num_tasks - len(both)), *((task, 1) for task in sorted(yours - mine))]
        for task, number in tasks:
            named = tuple(task if letter == average else letter for letter in first)
            for some, others, ways in self._namings(named, second) if number else ():
                yield some, others, number * ways

    def product(self, left: Terms, right: Terms) -> dict[Word, Fraction]:
        """The inner product of two combinations of errors."""
        return combined((a * b, self.of(u, v)) for a, u in left for b, v in right)


class Projections(Algebra):
    """Subspaces; letters are projections, P P = P."""

    kind: ClassVar[str] = "projections"

    def name(self, left: Word, right: Word) -> Word:
        return canonical(joined(left, right), self.symmetric)


class Reflections(Algebra):
    """Subspaces; letters are reflections s = 2P - 1, s s = 1."""

    kind: ClassVar[str] = "reflections"
    closed: ClassVar[bool] = True  # P_1 P_2 = (1 + s_1 + s_2 + s_1 s_2) / 4

    def name(self, left: Word, right: Word) -> Word:
        return canonical(reflected(left, right), self.symmetric)

    def kept(self, word: Word, task: int) -> Terms:
        return ((HALF, word), (HALF, (*word, task)))

    def lost(self, word: Word, task: int) -> Terms:
        return ((HALF, word), (-HALF, (*word, task)))

    def loss(self, word: Word, task: int) -> Form:
        operator: dict[Word, Fraction] = {(): HALF, (task,): -HALF}  # I - P_m, then P (...) P for P = (1 + s) / 2
        for letter in reversed(word):
            around: dict[Word, Fraction] = defaultdict(Fraction)
            for inner, value in operator.items():
                before = inner[1:] if inner[:1] == (letter,) else (letter, *inner)
                for placed in (inner, before):
                    around[placed] += value / 4
                    around[placed[:-1] if placed[-1:] == (letter,) else (*placed, letter)] += value / 4
            operator = around
        return combined((value, {canonical(inner, self.symmetric): ONE}) for inner, value in operator.items())


class ConvexProjections(Algebra):
    """Convex sets with a common point, the origin of the errors: inner products obey no rule but symmetry."""

    kind: ClassVar[str] = "convex"
    splits: ClassVar[bool] = False

    def name(self, left: Word, right: Word) -> Word:
        return canonical_pair(left, right, self.symmetric)
