"""Irreducible representations of the symmetric groups, in Young's orthogonal form.

The basis of the representation of a shape are its standard tableaux. It suits the chain S_1 < S_2 < ...: the vectors
that all permutations of the first j letters keep are the tableaux with 1, ..., j in the first row (Sagan, The
Symmetric Group, second edition, chapter 3; James and Kerber 1981, section 3.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from forgetting.core.arrays import Array

Shape = tuple[int, ...]


def partitions(total: int, largest: int | None = None) -> Iterator[Shape]:
    """The partitions of a number.

    >>> list(partitions(3))
    [(3,), (2, 1), (1, 1, 1)]
    """
    if total == 0:
        yield ()
        return
    for first in range(min(total, total if largest is None else largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


class Representation:
    """An irreducible representation of S_n by orthogonal matrices.

    >>> representation((2, 1)).of((1, 0, 2)).round(6) + 0
    array([[-1.,  0.],
           [ 0.,  1.]])
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.letters = sum(shape)
        self.tableaux = list(_tableaux(shape, self.letters))  # for each letter, its row
        self.dim = len(self.tableaux)
        self._swaps = [self._swap(letter) for letter in range(self.letters - 1)]

    def of(self, images: Sequence[int]) -> Array:
        """The matrix of the permutation that takes letter i to images[i]."""
        matrix, order = np.eye(self.dim), list(images)
        for end in range(len(order) - 1, 0, -1):  # bubble sort: a product of swaps of neighbours
            for at in range(end):
                if order[at] > order[at + 1]:
                    order[at], order[at + 1] = order[at + 1], order[at]
                    matrix = self._swaps[at] @ matrix
        return matrix

    def kept_by_first(self, count: int) -> list[int]:
        """The basis vectors that permutations of the first `count` letters keep."""
        return [at for at, rows in enumerate(self.tableaux) if not any(rows[:count])]

    def _swap(self, letter: int) -> Array:
        """Young's rule for the swap of a letter and the next one, by their distance along the contents."""
        matrix, index = np.zeros((self.dim, self.dim)), {rows: at for at, rows in enumerate(self.tableaux)}
        for at, rows in enumerate(self.tableaux):
            contents = [rows[:x].count(rows[x]) - rows[x] for x in (letter, letter + 1)]
            near = 1 / (contents[1] - contents[0])
            matrix[at, at] = near
            swapped = (*rows[:letter], rows[letter + 1], rows[letter], *rows[letter + 2 :])
            if swapped in index and swapped != rows:
                matrix[at, index[swapped]] = np.sqrt(1 - near**2)
        return matrix


@cache
def representation(shape: Shape) -> Representation:
    """The representation of a shape, made once."""
    return Representation(shape)


def _tableaux(shape: Shape, letters: int) -> Iterator[tuple[int, ...]]:
    if letters == 0:
        yield ()
        return
    for row in range(len(shape)):
        after = shape[row + 1] if row + 1 < len(shape) else 0
        if shape[row] > after:  # the last letter may end this row
            smaller = (*shape[:row], shape[row] - 1, *shape[row + 1 :])
            yield from ((*rest, row) for rest in _tableaux(smaller, letters - 1))
