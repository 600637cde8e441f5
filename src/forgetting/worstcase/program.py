"""The semidefinite program of a worst case: moments that maximise the expected quantity.

Variables are the inner products of errors, one for each class of products that projections and symmetry make equal;
their value at the start, |z|^2, is 1. Each block of `moment_blocks` is positive semidefinite.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import groupby, permutations, product
from math import comb, factorial, inf, perm
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from forgetting.core.arrays import Array
from forgetting.worstcase.inner_products import Algebra, Word, combined
from forgetting.worstcase.moment_blocks import (
    ErrorPoint,
    MomentBlock,
    ReachedErrors,
    blocks,
    others_of,
    points_of,
)
from forgetting.worstcase.representations import partitions
from forgetting.worstcase.tree import Tree

MOST_KNOWN = 300_000  # inner products that are kept, some 300 bytes each


@dataclass
class MomentMatrix:
    """A matrix that is linear in the moments: for each nonzero, its row, column, class and factor."""

    block: MomentBlock
    members: list[int]  # rows of the block, where the block falls apart
    rows: Array
    cols: Array
    names: Array
    factors: Array

    @property
    def size(self) -> int:
        return len(self.members)


@dataclass(frozen=True)
class Normal:
    """<x - P x, P x - y> >= 0 for the projection on a convex set that contains y.

    Attributes:
        between: the task, the word of x, and the word of v where y = P v; None for the common point y = 0.
        form: the inner product, by the places of the moments.
    """

    between: tuple[int, Word, Word | None]
    form: dict[int, float]


@dataclass
class Program:
    """Maximise objective . y over moments y, y[0] = 1, all matrices positive semidefinite, all normals nonnegative."""

    tree: Tree
    algebra: Algebra
    names: list[Word]  # the first is the start
    objective: Array
    matrices: list[MomentMatrix] = field(repr=False)
    normals: list[Normal] = field(repr=False, default_factory=list)

    @cached_property
    def reach(self) -> ReachedErrors:
        """The errors that the moments are about."""
        return ReachedErrors(self.tree, self.algebra)

    @property
    def num_variables(self) -> int:
        return len(self.names) - 1


def program(tree: Tree, algebra: Algebra) -> Program:
    """The program of a tree of runs."""
    index: dict[Word, int] = {algebra.name((), ()): 0}
    reach, products = ReachedErrors(tree, algebra), _products(algebra, index)
    matrices = [made for task in reach.watched for block in blocks(reach, task) for made in _matrices(block, products)]
    expected = combined((weight, algebra.loss(word, task)) for (word, task), weight in tree.losses.items())
    objective = np.zeros(len(index))
    for name, value in expected.items():
        objective[index[name]] += float(value)
    normals = [] if algebra.splits else list(_normals(reach, index))
    return Program(tree, algebra, list(index), objective, matrices, normals)


def _normals(reach: ReachedErrors, index: dict[Word, int]) -> Iterator[Normal]:
    """The inequalities that projections on convex sets obey, each form once."""
    algebra, seen = reach.algebra, set()
    for task in reach.watched:
        words = _arguments(reach, task, points_of(reach, task))
        for word, other in product(words, [None, *words]):
            if other == word:
                continue
            for there in [other] if other is None or not reach.symmetric else _namings(word, other, reach.num_tasks):
                away = () if there is None else algebra.kept(there, task)
                target = (*algebra.kept(word, task), *((-share, after) for share, after in away))
                form = algebra.product(algebra.lost(word, task), target)
                moments = {index[name]: float(value) for name, value in form.items()}
                key = frozenset(moments.items())
                if moments and key not in seen:
                    seen.add(key)
                    yield Normal((task, word, there), moments)


def _arguments(reach: ReachedErrors, task: int, points: list[ErrorPoint]) -> list[Word]:
    """The errors that the projection of a task is applied to."""
    return [point.word for point in points if reach.has(point.word) and reach.applied(point.word, task)]


def _namings(word: Word, other: Word, num_tasks: int | None) -> Iterator[Word]:
    """The second word with all names of its letters other than 0, as seen from the first: old ones and new ones."""
    mine, letters = sorted({*word} - {0}), sorted({*other} - {0})
    most = (num_tasks or len(mine) + len(letters) + 1) - 1
    names = [*mine, *range(len(mine) + 1, min(most, len(mine) + len(letters)) + 1)]
    for chosen in permutations(names, len(letters)):
        to = dict(zip(letters, chosen, strict=True))
        yield tuple(to.get(letter, letter) for letter in other)


Products = Callable[[ErrorPoint, ErrorPoint], list[tuple[int, float]]]


def _products(algebra: Algebra, index: dict[Word, int]) -> Products:
    """Inner products of points by the places of their moments, each computed once: blocks share them."""

    @lru_cache(MOST_KNOWN)
    def product_of(point: ErrorPoint, image: ErrorPoint) -> list[tuple[int, float]]:
        terms = point.terms(algebra)
        if algebra.splits and {point.part, image.part} == {"kept", "lost"}:
            return []  # what a projection keeps is orthogonal to what the projection loses
        if algebra.splits and point.part == image.part:
            terms = ((Fraction(1), point.word),)  # <P x, P y> = <x, P y>
        form = algebra.product(terms, image.terms(algebra))
        return [(index.setdefault(name, len(index)), float(value)) for name, value in form.items()]

    return product_of


def _matrices(block: MomentBlock, products: Products) -> list[MomentMatrix]:
    nonzeros: list[tuple[int, int, int, float]] = []
    orbits = [list(rows) for _, rows in groupby(enumerate(block.rows), key=lambda row: id(row[1].images))]
    for a, mine in enumerate(orbits):
        point, scale = mine[0][1].point, mine[0][1].scale
        for yours in orbits[a:]:
            sums: dict[int, Array] = {}
            for image, matrix in yours[0][1].images:
                for at, value in products(point, image):
                    if at in sums:
                        sums[at] += value * matrix
                    else:
                        sums[at] = value * matrix
            ratio = yours[0][1].scale / scale
            for at, total in sums.items():
                for row, left in mine:
                    for col, right in yours:
                        factor = total[left.row, right.row] * ratio
                        if col >= row and abs(factor) > 1e-13:
                            nonzeros.append((row, col, at, factor))
    shape = (len(block.rows),) * 2
    *places, factors = np.array(nonzeros).reshape(-1, 4).T
    data = *(place.astype(int) for place in places), factors
    graph = sparse.coo_matrix((np.ones(len(factors)), data[:2]), shape)
    count, part = connected_components(graph, directed=False)
    matrices = []
    for at in range(count):
        members = np.flatnonzero(part == at)
        place = np.full(len(part), -1)
        place[members] = np.arange(len(members))
        here = part[data[0]] == at
        if here.any():
            matrices.append(MomentMatrix(block, members.tolist(), place[data[0][here]], place[data[1][here]],
                                data[2][here], data[3][here]))  # fmt: skip
    return matrices


class ProgramSize(NamedTuple):
    """The size of a program.

    Attributes:
        rows: of all matrices that are positive semidefinite, half of each. The memory of the solver is 10 to 35 bytes
            times their square, its time grows like their power 2.6 to 2.7 (measured, docs/worst-cases.md).
        products: inner products of errors that are summed up to build the matrices.
        normals: at most so many inequalities for projections on convex sets; equal forms count once in the program.
    """

    rows: int
    products: int
    normals: int = 0


def program_size(tree: Tree, algebra: Algebra, most_rows: float = inf, most_products: float = inf) -> ProgramSize:
    """The size of the program of a tree; counting stops where there are more than these numbers.

    >>> from forgetting.worstcase.inner_products import Reflections
    >>> from forgetting.worstcase.tree import TaskWalk, tree
    >>> runs = tree(TaskWalk(3, "uniform"), 2, "loss")
    >>> program_size(runs, Reflections(3, True)).rows      # two blocks of 4 and two of 3
    32
    """
    rows = products = normals = 0
    reach = ReachedErrors(tree, algebra)
    for task in reach.watched:
        points = points_of(reach, task)
        normals += 0 if algebra.splits else _num_normals(points, task, reach)
        for counted in _parts(points):
            for block_rows, block_products in _blocks(counted, reach):
                rows += block_rows * (block_rows + 1) // 2
                products += block_products
                if rows > most_rows or products > most_products:
                    return ProgramSize(rows, products, normals)
    return ProgramSize(rows, products, normals)


def _num_normals(points: list[ErrorPoint], task: int, reach: ReachedErrors) -> int:
    """Pairs of errors that the projection of a task is applied to, with all names of the tasks of the second."""
    words = _arguments(reach, task, points)
    if not reach.symmetric:
        return len(words) ** 2
    others, _ = others_of(reach.num_tasks, 0)
    used = Counter(len({*word} - {0}) for word in words)
    pairs = ((mine * yours, a, b) for (a, mine), (b, yours) in product(used.items(), repeat=2))
    return len(words) + sum(count * perm(a + b if others is None else min(others, a + b), b) for count, a, b in pairs)


def _parts(points: list[ErrorPoint]) -> list[Counter[int]]:
    """Points by the number of tasks that their words name, apart from task 0: what is kept and what is lost apart."""
    parts = sorted({point.part for point in points})
    groups = [parts] if "error" in parts else [[part] for part in parts]
    return [Counter(len({*point.word} - {0}) for point in points if point.part in group) for group in groups]


def _blocks(counted: Counter[int], reach: ReachedErrors) -> Iterator[tuple[int, int]]:
    """The size of each block, and the number of inner products that the block sums up."""
    total = sum(counted.values())
    if not reach.symmetric:
        yield total, total * (total + 1) // 2
        return
    others, many = others_of(reach.num_tasks, max(counted))
    if many or others is None:
        for named in range(max(counted) + 1):
            orbits = sum(count * comb(used, named) for used, count in counted.items())
            work = orbits * (orbits + 1) // 2 * 2**named * factorial(named)
            yield from ((orbits * _kept(shape, 0), work) for shape in partitions(named))
        return
    for shape in partitions(others):
        kept = {used: _kept(shape, others - used) for used in counted}
        images = sum(count * perm(others, used) for used, count in counted.items() if kept[used])
        yield sum(count * kept[used] for used, count in counted.items()), total * images // 2 + images


@cache
def _kept(shape: tuple[int, ...], first: int) -> int:
    """The number of standard tableaux of a shape with the letters 1, ..., first in the first row."""
    if sum(shape) == first:
        return int(len(shape) <= 1)
    ends = [row for row in range(len(shape)) if row + 1 == len(shape) or shape[row] > shape[row + 1]]
    smaller = [(*shape[:row], shape[row] - 1, *shape[row + 1 :]) for row in ends]
    return sum(_kept(tuple(length for length in less if length), first) for less in smaller)
