"""Ranks and roots of matrices over the rationals, where every float is taken as an exact number."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from forgetting.core.arrays import Array

__all__ = ["ExactRoot", "exact_rank", "exact_root", "lift"]


def lift(array: Any) -> Any:
    """The same numbers, exactly, as decimal ones.

    >>> lift([0.5])
    array([Decimal('0.5')], dtype=object)
    """
    raw = np.asarray(array, dtype=np.float64)
    return np.array([Decimal(value) for value in raw.ravel().tolist()], dtype=object).reshape(raw.shape)


def exact_rank(matrix: Any) -> int:
    """The exact rank of a matrix of floats, by elimination without fractions (Bareiss 1968).

    >>> exact_rank([[1.0, 0.1], [2.0, 0.2]]), exact_rank([[1.0, 0.1], [3.0, 0.3]])  # 0.3 is not 3 times 0.1
    (1, 2)
    """
    rows = [_integers(row) for row in np.asarray(matrix, dtype=np.float64).tolist()]
    rank, last = 0, 1
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        top = rows[rank]
        for i in range(rank + 1, len(rows)):
            row, head = rows[i], rows[i][column]
            rows[i] = [(top[column] * x - head * y) // last for x, y in zip(row, top, strict=True)]
        last = top[column]
        rank += 1
    return rank


def _integers(row: list[float]) -> list[int]:
    """The row times the power of two that makes its entries the smallest possible integers."""
    ratios = [value.as_integer_ratio() for value in row]
    most = max((bottom for _, bottom in ratios), default=1)
    integers = [top * (most // bottom) for top, bottom in ratios]
    shared = min(((value & -value) for value in integers if value), default=1)
    return [value // shared for value in integers]


@dataclass(frozen=True)
class ExactRoot:
    """Columns v_j / sqrt(radicand_j) of whole numbers whose squares add up to a matrix."""

    columns: tuple[tuple[int, ...], ...]
    radicands: tuple[Fraction, ...]
    size: int

    def decimals(self, factor: Fraction) -> Any:
        """The columns times sqrt(factor), with the digits of the current decimal context."""
        scaled = np.zeros((self.size, len(self.columns)), dtype=object)
        for j, (column, radicand) in enumerate(zip(self.columns, self.radicands, strict=True)):
            square = factor / radicand
            scale = (Decimal(square.numerator) / Decimal(square.denominator)).sqrt()
            scaled[:, j] = [Decimal(entry) * scale for entry in column]
        return scaled


def exact_root(matrix: Array) -> ExactRoot | None:
    """Columns q_j with sum_j q_j q_j^T the symmetric part of the matrix, as many as its exact rank.

    By elimination without fractions, the largest remaining diagonal entry next. None if the matrix has a negative
    eigenvalue, however small. The rows of the root keep the digits that entries determine, where eigenvectors lose
    those of small eigenvalues.

    >>> root = exact_root(np.array([[1.0, 1 - 2**-40], [1 - 2**-40, 1.0]]))
    >>> (root.decimals(Fraction(1)).astype(float) ** 2).sum(axis=1).tolist()
    [1.0, 1.0]
    >>> exact_root(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
    True
    """
    size = len(matrix)
    ratios = [[value.as_integer_ratio() for value in row] for row in matrix.tolist()]
    most = max((bottom for row in ratios for _, bottom in row), default=1)
    integers = [[top * (most // bottom) for top, bottom in row] for row in ratios]
    rest = [[integers[i][j] + integers[j][i] for j in range(size)] for i in range(size)]  # 2 most times the matrix
    left, columns, radicands, last = list(range(size)), [], [], 1
    while left:
        place = max(left, key=lambda i: rest[i][i])
        pivot = rest[place][place]
        if any(abs(rest[i][j]) > pivot for i in left for j in left):
            return None
        if pivot == 0:
            break
        column = [rest[i][place] if i in left else 0 for i in range(size)]
        columns.append(tuple(column))
        radicands.append(Fraction(pivot * last * 2 * most))
        left.remove(place)
        for i in left:
            rest[i] = [(pivot * rest[i][j] - column[i] * column[j]) // last for j in range(size)]
        last = pivot
    return ExactRoot(tuple(columns), tuple(radicands), size)
