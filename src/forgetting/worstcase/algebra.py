"""The rules that inner products of errors obey: which of them are equal, and what a loss is in terms of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from forgetting.worstcase.words import (
    Word,
    canonical,
    canonical_pair,
    coincidences,
    joined,
    reflected,
    share,
)

__all__ = ["Algebra", "ConvexSets", "Form", "Projections", "Reflections", "Terms", "combined"]

Form = Mapping[Word, Fraction]  # a linear combination of inner products, by their names
Terms = tuple[tuple[Fraction, Word], ...]  # a linear combination of errors, by their words
ONE, HALF = Fraction(1), Fraction(1, 2)


def combined(parts: Iterable[tuple[Fraction, Form]]) -> dict[Word, Fraction]:
    """A linear combination of forms, without zeros."""
    found: dict[Word, Fraction] = defaultdict(Fraction)
    for factor, form in parts:
        for name, value in form.items():
            found[name] += factor * value
    return {name: value for name, value in found.items() if value}


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
        """What the projection of a task keeps of an error."""
        raise NotImplementedError

    def lost(self, word: Word, task: int) -> Terms:
        """What the projection of a task takes away from an error."""
        raise NotImplementedError

    def loss(self, word: Word, task: int) -> Form:
        """The squared norm of what a task takes away from the error after learning the tasks of a word."""
        raise NotImplementedError

    def of(self, left: Word, right: Word) -> dict[Word, Fraction]:
        """The inner product of two errors, averaged where their words say so."""
        found: dict[Word, Fraction] = defaultdict(Fraction)
        for mine, yours, sizes in coincidences(left, right):
            weight = share(self.num_tasks, sizes)
            if weight:
                found[self.name(mine, yours)] += weight
        return found

    def product(self, left: Terms, right: Terms) -> dict[Word, Fraction]:
        """The inner product of two combinations of errors."""
        return combined((a * b, self.of(u, v)) for a, u in left for b, v in right)


class Projections(Algebra):
    """Subspaces; letters are projections, P P = P."""

    kind: ClassVar[str] = "projections"

    def name(self, left: Word, right: Word) -> Word:
        return canonical(joined(left, right), self.symmetric)

    def kept(self, word: Word, task: int) -> Terms:
        return ((ONE, (*word, task)),)

    def lost(self, word: Word, task: int) -> Terms:
        return ((ONE, word), (-ONE, (*word, task)))

    def loss(self, word: Word, task: int) -> Form:
        after = (*word, task)
        return combined([(ONE, self.of(word, word)), (-ONE, self.of(after, after))])


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
                for one in (inner, before):
                    around[one] += value / 4
                    around[one[:-1] if one[-1:] == (letter,) else (*one, letter)] += value / 4
            operator = around
        return combined((value, {canonical(inner, self.symmetric): ONE}) for inner, value in operator.items())


class ConvexSets(Algebra):
    """Convex sets with a common point, the origin of the errors: inner products obey no rule but symmetry."""

    kind: ClassVar[str] = "convex"
    splits: ClassVar[bool] = False

    def name(self, left: Word, right: Word) -> Word:
        return canonical_pair(left, right, self.symmetric)

    def kept(self, word: Word, task: int) -> Terms:
        return ((ONE, (*word, task)),)

    def lost(self, word: Word, task: int) -> Terms:
        return ((ONE, word), (-ONE, (*word, task)))

    def loss(self, word: Word, task: int) -> Form:
        lost = self.lost(word, task)
        return self.product(lost, lost)
