"""Blocks of moments that must be positive semidefinite: inner products of errors and of their projections by a task.

For a task m, take all errors of the tree and their projections by P_m where P_m is applied. Points of a Hilbert space
with such inner products, and subspaces (or convex sets) that project them so, exist if and only if these inner
products form a positive semidefinite matrix for each m that obeys the rules of projections: the matrices of two tasks
share the errors of the tree alone, so that they can be completed to one matrix (a chordal pattern; Grone et al. 1984),
and P_m is a projection onto a subspace if <P x, P x'> = <P x, x'> for all its arguments. Where P_m is applied to all
errors, the matrix splits into the products of P_m x and those of x - P_m x.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations, permutations, product
from math import factorial, inf, perm
from typing import Literal, NamedTuple

import numpy as np

from forgetting.core.arrays import Array
from forgetting.worstcase.inner_products import Algebra, Terms, Word, relabelled
from forgetting.worstcase.representations import partitions, representation
from forgetting.worstcase.tree import Tree

Part = Literal["kept", "lost", "error"]


class ErrorPoint(NamedTuple):
    """An error x = P_word z, or what a projection of it keeps (P_m x) or loses (x - P_m x)."""

    part: Part
    word: Word
    task: int

    def terms(self, algebra: Algebra) -> Terms:
        """The point as a combination of errors."""
        if self.part == "error":
            return ((Fraction(1), self.word),)
        return (algebra.kept if self.part == "kept" else algebra.lost)(self.word, self.task)


class BlockRow(NamedTuple):
    """A row of a diagonal block.

    Attributes:
        point: the representative of an orbit.
        row: of the representation.
        images: of the point under the group, each with the matrix of its group element.
        scale: by which the vector of the row is multiplied.
    """

    point: ErrorPoint
    row: int
    images: list[tuple[ErrorPoint, Array]]
    scale: float

    def terms(self) -> list[tuple[float, ErrorPoint]]:
        """The vector of the row, as a combination of points."""
        return [(float(self.scale * matrix[0, self.row]), point) for point, matrix in self.images]


class MomentBlock(NamedTuple):
    """A diagonal block: sums over images of inner products. Its name is that of the representation it belongs to."""

    name: str
    rows: list[BlockRow]


class ReachedErrors:
    """The errors that occur in a tree, and those that the projection of a task is applied to.

    Attributes:
        words: of the errors, named by first appearance where tasks are alike.
    """

    def __init__(self, tree: Tree, algebra: Algebra) -> None:
        self.tree, self.algebra = tree, algebra
        self.num_tasks, self.symmetric = tree.walk.num_tasks, tree.walk.symmetric
        self.words = _closed(tree.words) if algebra.closed else tree.words

    @property
    def watched(self) -> range:
        """One task of each kind: task 0 where all are alike, else all of them."""
        return range(1 if self.symmetric else self.num_tasks or 0)

    def has(self, word: Word) -> bool:
        """Whether the error occurs."""
        return self._named(word) in self.words

    def applied(self, word: Word, task: int) -> bool:
        """Whether the projection of a task is applied to an error that it changes."""
        if word[-1:] == (task,):
            return False
        return self.algebra.closed or self.has((*word, task)) or self._named(word) in self.tree.ends

    @property
    def num_errors(self) -> float:
        """The number of errors with the names of all tasks."""
        if not self.symmetric:
            return len(self.words)
        most = self.num_tasks
        return inf if most is None else sum(perm(most, len(set(word))) for word in self.words)

    def errors(self) -> list[Word]:
        """The words of all errors, with the names of all tasks; the start comes first."""
        if not self.symmetric:
            return sorted(self.words, key=_by_length)
        letters = range(self.num_tasks or 0)
        named = {tuple(names[letter] for letter in word) for word in self.words
                 for names in permutations(letters, len(set(word)))}  # fmt: skip
        return sorted(named, key=_by_length)

    def _named(self, word: Word) -> Word:
        return relabelled(word) if self.symmetric else word


def _by_length(word: Word) -> tuple[int, Word]:
    return len(word), word


def points_of(reach: ReachedErrors, task: int) -> list[ErrorPoint]:
    """The points of the matrix of one task; other letters are named 1, 2, ... where all tasks are alike."""
    splits, most = reach.algebra.splits, reach.num_tasks
    words = {named for word in reach.words for named in _with_zero(word)} if reach.symmetric else reach.words
    points = []
    for word in sorted(words, key=_by_length):
        if reach.symmetric and most is not None and len({*word, 0}) > most:
            continue
        if splits and word[-1:] == (task,):
            continue  # this is what the task keeps, or loses, of a shorter word
        applied = reach.applied(word, task)
        if applied and splits:
            points += [ErrorPoint("kept", word, task), ErrorPoint("lost", word, task)]
        else:
            points.append(ErrorPoint("error", word, task))
            if applied and not reach.has((*word, task)):
                points.append(ErrorPoint("error", (*word, task), task))
    return points


def _closed(words: frozenset[Word]) -> frozenset[Word]:
    """The words, and all that arise from them when letters are left out."""
    closed, queue = set(words), list(words)
    symmetric = all(word == relabelled(word) for word in words)
    while queue:
        word = queue.pop()
        for at in range(len(word)):
            shorter = word[:at]
            for letter in word[at + 1 :]:
                shorter = shorter[:-1] if shorter[-1:] == (letter,) else (*shorter, letter)
            shorter = relabelled(shorter) if symmetric else shorter
            if shorter not in closed:
                closed.add(shorter)
                queue.append(shorter)
    return frozenset(closed)


def _with_zero(word: Word) -> Iterator[Word]:
    """The names of a word's letters when one of them, or none, is task 0."""
    seen = len(set(word))
    for zero in range(seen + 1):  # the last: none
        yield tuple(0 if letter == zero else letter + (letter < zero) for letter in word)


def blocks(reach: ReachedErrors, task: int) -> Iterator[MomentBlock]:
    """The diagonal blocks of the matrix of one task."""
    points = points_of(reach, task)
    if not reach.symmetric:
        yield MomentBlock("all", [BlockRow(point, 0, [(point, np.ones((1, 1)))], 1.0) for point in points])
        return
    most = max((len({*point.word} - {0}) for point in points), default=0)
    others, many = others_of(reach.num_tasks, most)
    if many or others is None:
        yield from _many(points, most)
    else:
        yield from _few(points, others)


def others_of(num_tasks: int | None, most: int) -> tuple[int | None, bool]:
    """The number of tasks other than task 0, and whether there are many: twice as many as a word names."""
    others = None if num_tasks is None else num_tasks - 1
    return others, others is None or others >= 2 * most


def _few(points: list[ErrorPoint], others: int) -> Iterator[MomentBlock]:
    """The blocks of few tasks: one for each representation of all permutations of the other tasks."""
    for shape in partitions(others):
        irreducible = representation(shape)
        chosen: list[BlockRow] = []
        group = factorial(others)
        for point in points:
            used = len({*point.word} - {0})
            unused = others - used
            rows = irreducible.kept_by_first(unused)
            if not rows:
                continue
            images = []
            for named in permutations(range(others), used):
                rest = [letter for letter in range(others) if letter not in named]
                matrix = irreducible.of((*rest, *named))
                images.append((_renamed(point, {at + 1: letter + 1 for at, letter in enumerate(named)}), matrix))
            kept = factorial(unused)
            first = _renamed(point, {at + 1: unused + at + 1 for at in range(used)})
            chosen += [BlockRow(first, row, images, np.sqrt(irreducible.dim * kept / group)) for row in rows]
        if chosen:
            yield MomentBlock(str(shape), chosen)


def _many(points: list[ErrorPoint], most: int) -> Iterator[MomentBlock]:
    """The blocks of many tasks, by representations (n - r, shape): r named tasks, each minus a partner; averages."""
    for named in range(most + 1):
        for shape in partitions(named):
            irreducible = representation(shape)
            chosen: list[BlockRow] = []
            group = 2**named * factorial(named)
            moves = [(order, signs, irreducible.of(order) * np.prod(signs)) for order in permutations(range(named))
                     for signs in product((1, -1), repeat=named)]  # fmt: skip
            for point in points:
                used = sorted({*point.word} - {0})
                for marked in combinations(used, named):
                    averaged = [letter for letter in used if letter not in marked]
                    names = {letter: at + 1 for at, letter in enumerate(marked)}
                    names |= {letter: -at - 1 for at, letter in enumerate(averaged)}
                    first = _renamed(point, names)
                    images = []
                    for order, signs, matrix in moves:
                        to = {at + 1: order[at] + 1 + (named if signs[order[at]] < 0 else 0) for at in range(named)}
                        images.append((_renamed(first, to), matrix))
                    scale = np.sqrt(irreducible.dim / group)
                    chosen += [BlockRow(first, row, images, scale) for row in range(irreducible.dim)]
            if chosen:
                yield MomentBlock(f"(n-{named}, {', '.join(map(str, shape))})", chosen)


def _renamed(point: ErrorPoint, names: dict[int, int]) -> ErrorPoint:
    return point._replace(word=tuple(names.get(letter, letter) for letter in point.word))
