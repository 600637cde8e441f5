"""The rank of a matrix over the rationals, where every float is taken as an exact number."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["exact_rank"]


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
