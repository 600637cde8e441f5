"""The triangle R of a tall matrix, X = Q R, by a tree of QR factorisations of parts of its rows; Q is never formed.

|X v| = |R v| for every v, so that R has the singular values, the row space and, beside a right-hand side, the
least-squares solutions of X (Demmel, Grigori, Hoemmen and Langou 2012, "communication-optimal QR"). Householder's
factorisation does not square the condition number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from forgetting.compute.threads import cores
from forgetting.compute.workers import lost_part, some_parts, workers
from forgetting.core.arrays import Array
from forgetting.errors import WorkerError

__all__ = ["is_tall", "parts_of", "spectrum_of", "triangle", "triangle_of"]

PART = 2**20  # numbers in one part: 8 MiB
ARITY = 8  # triangles that are joined at once
TALL = 2**21  # numbers in a matrix from which on its triangle is computed by a tree


def is_tall(rows: Array) -> bool:
    """Whether a matrix is so large, and so much longer than wide, that its triangle is computed first.

    >>> is_tall(np.empty((10, 3))), is_tall(np.empty((2**20, 3)))
    (False, True)
    """
    return rows.size > TALL and len(rows) > 4 * rows.shape[1]


def spectrum_of(rows: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """The singular values and the right singular vectors (rows) of a matrix, whose rows may be multiplied by weights.

    A tall matrix is reduced to its triangle first, without a copy of it.

    >>> spectrum_of(np.array([[3.0, 0.0], [0.0, 4.0]]))[0]
    array([4., 3.])
    """

    def part(cut: slice) -> Array:
        return rows[cut] if weights is None else rows[cut] * weights[cut, None]

    whole = triangle_of(part, parts_of(rows)) if is_tall(rows) else part(slice(None))
    _, values, vectors = np.linalg.svd(whole, full_matrices=False)
    return values, vectors


def parts_of(rows: Any) -> list[slice]:
    """The rows of a matrix in parts of about a million numbers, and at least four times as many rows as columns.

    >>> [part.start for part in parts_of(np.zeros((2**20, 2)))]
    [0, 524288]
    """
    count, width = rows.shape
    size = max(4 * width, PART // max(1, width), 1)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def triangle(rows: Array) -> Array:
    """R of the QR factorisation; rows that are no more than columns are returned as they are.

    >>> np.abs(triangle(np.array([[3.0], [4.0]]))).round(12)
    array([[5.]])
    """
    return rows if len(rows) <= rows.shape[1] else np.asarray(np.linalg.qr(rows, mode="r"))


def triangle_of(part: Callable[[slice], Array], cuts: Sequence[slice]) -> Array:
    """R of the matrix whose rows part(cut) gives, as many rows as columns; zeros where there are too few rows.

    Memory: a part, and eight triangles for each level of the tree. Within `joblib.parallel_config(n_jobs=...)`, or with
    the backend of a cluster, its workers compute the triangles of the parts, eight parts at a time.

    >>> rows = np.arange(12.0).reshape(6, 2)
    >>> found = triangle_of(lambda cut: rows[cut], [slice(0, 3), slice(3, 6)])
    >>> bool(np.allclose(found.T @ found, rows.T @ rows))
    True
    """
    levels: list[list[Array]] = [[], []]
    alone = workers(None) == 1 or cores() == 1
    for found in ([triangle(part(cut))] for cut in cuts) if alone else _elsewhere(part, cuts):
        level = 0
        levels[0] += found
        while len(levels[level]) == ARITY:
            joined, levels[level] = triangle(np.concatenate(levels[level])), []
            level += 1
            if level == len(levels):
                levels.append([])
            levels[level].append(joined)
    last = triangle(np.concatenate([found for level in levels for found in level]))
    return np.concatenate([last, np.zeros((last.shape[1] - len(last), last.shape[1]))])


def _elsewhere(part: Callable[[slice], Array], cuts: Sequence[slice]) -> Iterator[list[Array]]:
    """The triangles of the parts from workers of joblib, eight at a time and in the order of the parts."""
    groups = [cuts[first : first + ARITY] for first in range(0, len(cuts), ARITY)]
    ready: dict[int, list[Array]] = {}
    done = 0
    numbered = ((place, [part(cut) for cut in group]) for place, group in enumerate(groups))
    for place, found in some_parts(_triangles, numbered, None, _lost):
        ready[place] = found
        while done in ready:
            yield ready.pop(done)
            done += 1


def _triangles(parts: list[Array]) -> list[Array]:
    return [triangle(part) for part in parts]


def _lost(group: int) -> None:
    raise WorkerError(f"{lost_part()} while it computed a QR factorisation; use fewer workers, or none")
