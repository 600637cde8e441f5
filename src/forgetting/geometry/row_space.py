"""An orthonormal basis of the rows of all tasks, by a QR factorisation of X^T that reads X in chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from forgetting.core.arrays import Array, IntArray, is_sparse

__all__ = ["CHUNK_ENTRIES", "Matrix", "dense", "row_space_qr"]

Matrix: TypeAlias = Any  # a dense array or a scipy.sparse CSR array
CHUNK_ENTRIES = 2**24  # entries of X^T in one chunk of the QR factorisation: 128 MiB


def dense(matrix: Matrix, columns: IntArray | slice | None) -> Array:
    """Some columns of a matrix, or all of them, as a dense array."""
    picked = matrix if columns is None else matrix[:, columns]
    return picked.toarray() if is_sparse(picked) else np.asarray(picked)


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
