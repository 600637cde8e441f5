"""How large the semidefinite program of a worst case will be, counted before anything is built."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from math import comb, factorial, inf, perm
from typing import NamedTuple

from forgetting.worstcase.algebra import Algebra
from forgetting.worstcase.cliques import Point, Reach, others_of, points_of, watched
from forgetting.worstcase.tree import Tree
from forgetting.worstcase.young import partitions

__all__ = ["Size", "size"]


class Size(NamedTuple):
    """The size of a program.

    Attributes:
        rows: of all matrices that are positive semidefinite, half of each. The memory of the solver is 10 to 35 bytes
            times their square, its time grows like their power 2.6 to 2.7 (measured, docs/worst-cases.md).
        products: inner products of errors that are summed up to build the matrices.
        normals: what projections on convex sets obey, at most: equal forms count once in the program.
    """

    rows: int
    products: int
    normals: int = 0


def size(tree: Tree, algebra: Algebra, most_rows: float = inf, most_products: float = inf) -> Size:
    """The size of the program of a tree; counting stops where there are more than these numbers.

    >>> from forgetting.worstcase.algebra import Reflections
    >>> from forgetting.worstcase.tree import Alike, tree
    >>> size(tree(Alike(3), 2, "loss"), Reflections(3, True)).rows      # two blocks of 4 and two of 3
    32
    """
    rows = products = normals = 0
    for task in watched(tree):
        points = points_of(tree, task, algebra)
        normals += 0 if algebra.splits else _normals(points, task, Reach(tree, algebra), tree)
        for counted in _parts(points):
            for block_rows, block_products in _blocks(counted, tree):
                rows += block_rows * (block_rows + 1) // 2
                products += block_products
                if rows > most_rows or products > most_products:
                    return Size(rows, products, normals)
    return Size(rows, products, normals)


def _normals(points: list[Point], task: int, reach: Reach, tree: Tree) -> int:
    """Pairs of errors that the projection of a task is applied to, with all names of the tasks of the second."""
    words = [point.word for point in points if reach.has(point.word) and reach.applied(point.word, task)]
    if not tree.walk.symmetric:
        return len(words) ** 2
    others, _ = others_of(tree.walk.num_tasks, 0)
    used = Counter(len({*word} - {0}) for word in words)
    pairs = ((mine * yours, a, b) for (a, mine), (b, yours) in product(used.items(), repeat=2))
    return len(words) + sum(count * perm(a + b if others is None else min(others, a + b), b) for count, a, b in pairs)


def _parts(points: list[Point]) -> list[Counter[int]]:
    """Points by the number of tasks that their words name, apart from task 0: what is kept and what is lost apart."""
    parts = sorted({point.part for point in points})
    groups = [parts] if "error" in parts else [[part] for part in parts]
    return [Counter(len({*point.word} - {0}) for point in points if point.part in group) for group in groups]


def _blocks(counted: Counter[int], tree: Tree) -> Iterator[tuple[int, int]]:
    """For each block, its size and the number of inner products that it sums up."""
    total = sum(counted.values())
    if not tree.walk.symmetric:
        yield total, total * (total + 1) // 2
        return
    others, many = others_of(tree.walk.num_tasks, max(counted))
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
