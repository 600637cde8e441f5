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
from math import perm
from typing import ClassVar

Word = tuple[int, ...]
LEFT, RIGHT = 1 << 20, 1 << 21  # letters that averages of the left and of the right word become
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


def coincidences(left: Word, right: Word) -> Iterator[tuple[Word, Word, tuple[int, int, int, int, int, int]]]:
    """All ways in which averaged letters of two words may be the same task, or tasks that the other word names.

    Yields both words with their averages replaced by tasks, and the sizes that `share` needs. Words without averages
    are yielded once, unchanged.
    """
    mine = sorted({letter for letter in left if letter < 0})
    yours = sorted({letter for letter in right if letter < 0})
    if not mine and not yours:
        yield left, right, (0, 0, 0, 0, 0, 0)
        return
    named_left, named_right = ({0, *(letter for letter in word if letter >= 0)} for word in (left, right))
    only_left, only_right = sorted(named_left - named_right), sorted(named_right - named_left)
    sizes = len(named_left | named_right), len(named_left), len(named_right), len(mine), len(yours)
    for first in _matchings(len(mine), [*only_right, *yours]):
        taken = {letter for letter in first if letter is not None}
        free = [letter for letter in yours if letter not in taken]
        left_names = {letter: LEFT - letter if to is None else RIGHT - to if to < 0 else to
                      for letter, to in zip(mine, first, strict=True)}  # fmt: skip
        shown_left = tuple(left_names.get(letter, letter) for letter in left)
        for second in _matchings(len(free), only_left):
            right_names = {letter: RIGHT - letter for letter in yours}
            right_names |= {letter: to for letter, to in zip(free, second, strict=True) if to is not None}
            fresh = {name for name in (*left_names.values(), *right_names.values()) if name >= LEFT}
            yield shown_left, tuple(right_names.get(letter, letter) for letter in right), (*sizes, len(fresh))


def _matchings(count: int, targets: list[int]) -> Iterator[tuple[int | None, ...]]:
    """All ways to give each of `count` letters one of the targets, or none, no target twice."""
    if count == 0:
        yield ()
        return
    for rest in _matchings(count - 1, targets):
        yield (*rest, None)
        for target in targets:
            if target not in rest:
                yield (*rest, target)


@lru_cache(maxsize=1 << 16)
def share(num_tasks: int | None, sizes: tuple[int, int, int, int, int, int]) -> Fraction:
    """The probability of one coincidence when averaged letters are drawn from the tasks that a word does not name.

    `num_tasks` is None for the limit of infinitely many tasks.

    >>> share(5, (2, 1, 2, 1, 1, 2)), share(None, (2, 1, 2, 1, 1, 2)), share(None, (2, 1, 2, 1, 1, 1))
    (Fraction(1, 2), Fraction(1, 1), Fraction(0, 1))
    """
    both, left, right, mine, yours, fresh = sizes
    if num_tasks is None:
        return Fraction(fresh == mine + yours)
    return Fraction(perm(num_tasks - both, fresh), perm(num_tasks - left, mine) * perm(num_tasks - right, yours))


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
        """The inner product of two errors, averaged where their words say so."""
        total: dict[Word, Fraction] = defaultdict(Fraction)
        for mine, yours, sizes in coincidences(left, right):
            weight = share(self.num_tasks, sizes)
            if weight:
                total[self.name(mine, yours)] += weight
        return total

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
