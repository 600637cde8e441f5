"""QR factorisations of many rows, part by part: the triangle of a tall matrix, and a basis of the rows of all tasks.

The triangle R of X = Q R comes from a tree of QR factorisations of parts of the rows; Q is never formed. Since
|X v| = |R v| for every v, R has the singular values, the row space and, beside a right-hand side, the least-squares
solutions of X (Demmel, Grigori, Hoemmen and Langou 2012, "communication-optimal QR"). Householder's factorisation does
not square the condition number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from forgetting.compute.threads import cores
from forgetting.compute.workers import lost_part, some_parts, workers
from forgetting.core.arrays import Array, IntArray, as_dense, is_sparse
from forgetting.errors import WorkerError

__all__ = [
    "CHUNK_ENTRIES",
    "Matrix",
    "dense",
    "is_tall",
    "orthogonal_complement",
    "parts_of",
    "row_space_qr",
    "spectrum_of",
    "triangle",
    "triangle_of",
]


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

    reduced = triangle_of(part, parts_of(rows)) if is_tall(rows) else part(slice(None))
    _, values, vectors = np.linalg.svd(reduced, full_matrices=False)
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


def orthogonal_complement(rows: Array) -> Array:
    """Orthonormal rows that are orthogonal to these orthonormal rows, and together with them span everything.

    >>> np.abs(orthogonal_complement(np.array([[0.0, 1.0]]))).tolist()
    [[1.0, 0.0]]
    """
    return np.asarray(np.linalg.qr(rows.T, "complete")[0][:, len(rows) :].T)


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
    for triangles in ([triangle(part(cut))] for cut in cuts) if alone else _elsewhere(part, cuts):
        level = 0
        levels[0] += triangles
        while len(levels[level]) == ARITY:
            joined, levels[level] = triangle(np.concatenate(levels[level])), []
            level += 1
            if level == len(levels):
                levels.append([])
            levels[level].append(joined)
    last = triangle(np.concatenate([part_triangle for level in levels for part_triangle in level]))
    return np.concatenate([last, np.zeros((last.shape[1] - len(last), last.shape[1]))])


def _elsewhere(part: Callable[[slice], Array], cuts: Sequence[slice]) -> Iterator[list[Array]]:
    """The triangles of the parts from workers of joblib, eight at a time and in the order of the parts."""
    groups = [cuts[first : first + ARITY] for first in range(0, len(cuts), ARITY)]
    ready: dict[int, list[Array]] = {}
    done = 0
    numbered = ((place, [part(cut) for cut in group]) for place, group in enumerate(groups))
    for place, triangles in some_parts(_triangles, numbered, None, _lost):
        ready[place] = triangles
        while done in ready:
            yield ready.pop(done)
            done += 1


def _triangles(parts: list[Array]) -> list[Array]:
    return [triangle(part) for part in parts]


def _lost(group: int) -> None:
    raise WorkerError(f"{lost_part()} while it computed a QR factorisation; use fewer workers, or none")


# ----------------------------------------------------------------------------------- the basis of the rows of all tasks


Matrix: TypeAlias = Any  # a dense array or a scipy.sparse CSR array
CHUNK_ENTRIES = 2**24  # entries of X^T in one chunk of the QR factorisation: 128 MiB


def dense(matrix: Matrix, columns: IntArray | slice | None) -> Array:
    """Some columns of a matrix, or all of them, as a dense array."""
    return as_dense(matrix if columns is None else matrix[:, columns])


def row_space_qr(matrices: Sequence[Matrix], columns: IntArray | None) -> tuple[Array, Array]:
    """(basis, triangle) with X^T = basis @ triangle and orthonormal columns in basis; X is read in chunks."""
    if columns is not None or any(is_sparse(matrix) for matrix in matrices):
        import scipy.sparse as sp

        stacked = sp.csc_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices]))
        parts: list[Matrix] = [stacked if columns is None else stacked[:, columns]]
    else:
        parts = list(matrices)
    width = parts[0].shape[1]
    num_rows = sum(part.shape[0] for part in parts)
    size = max(2 * num_rows, CHUNK_ENTRIES // num_rows)
    cuts = [slice(start, min(start + size, width)) for start in range(0, width, size)]
    if len(cuts) > 1 and cuts[-1].stop - cuts[-1].start < num_rows:  # every chunk needs at least num_rows columns
        cuts[-2:] = [slice(cuts[-2].start, cuts[-1].stop)]

    def chunk(cut: slice) -> Array:
        return np.concatenate([dense(part, cut) for part in parts])

    return _cholesky_qr(chunk, cuts, num_rows) or _householder_qr(chunk, cuts, num_rows)


def _cholesky_qr(chunk: Callable[[slice], Array], cuts: list[slice], num_rows: int) -> tuple[Array, Array] | None:
    """Cholesky QR, done twice; only matrix products, six times faster than Householder on tall matrices.

    The second pass restores the orthogonality that the first pass loses, up to rounding, if the condition number of the
    scaled rows is below 1e6 (Yamamoto et al. 2015). None if the condition number is larger.
    """
    gram = np.zeros((num_rows, num_rows))
    for cut in cuts:
        part = chunk(cut)
        gram += part @ part.T
    norms = np.sqrt(np.diag(gram))
    if not norms.all():
        return None
    gram /= np.outer(norms, norms)
    spectrum = np.linalg.eigvalsh(gram)
    if spectrum[0] < 1e-12 * spectrum[-1]:
        return None
    first = np.linalg.cholesky(gram).T
    mix = np.linalg.inv(first) / norms[:, None]
    basis = np.empty((cuts[-1].stop, num_rows))
    again = np.zeros((num_rows, num_rows))
    for cut in cuts:
        np.matmul(chunk(cut).T, mix, out=basis[cut])
        again += basis[cut].T @ basis[cut]
    second = np.linalg.cholesky(again).T
    mix = np.linalg.inv(second)
    for cut in cuts:
        basis[cut] = basis[cut] @ mix
    return basis, second @ first * norms


def _householder_qr(chunk: Callable[[slice], Array], cuts: list[slice], num_rows: int) -> tuple[Array, Array]:
    """Householder QR of the chunks, then of the stacked triangles: slower, and stable for any condition number."""
    basis = np.empty((cuts[-1].stop, num_rows))
    triangles = []
    for cut in cuts:
        basis[cut], triangle = np.linalg.qr(chunk(cut).T)
        triangles.append(triangle)
    if len(cuts) == 1:
        return basis, triangles[0]
    mix, triangle = np.linalg.qr(np.concatenate(triangles))
    for position, cut in enumerate(cuts):
        basis[cut] = basis[cut] @ mix[position * num_rows : (position + 1) * num_rows]
    return basis, triangle
