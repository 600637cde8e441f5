"""What counts as a matrix: arrays, scipy.sparse, operators with row access, anything with a shape and row slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting._arrays import check_finite, is_sparse, real_array
from forgetting._memory import require_memory
from forgetting.errors import InvalidInputError
from forgetting.solver.rows import DenseRows, Rows, SparseRows

__all__ = ["as_rows", "checked_rows"]


def as_rows(matrix: Any, what: str = "A") -> Rows:
    """The rows of a matrix in memory: dense in C order, or compressed; copied only if they must be converted.

    >>> as_rows([[1, 2], [3, 4]]).squares
    array([ 5., 25.])
    """
    if is_sparse(matrix):
        if matrix.dtype.kind not in "biuf":
            raise InvalidInputError(f"{what}: expected real numbers, got dtype {matrix.dtype}")
        from scipy.sparse import csr_array

        csr = csr_array(matrix, dtype=np.float64)
        if not csr.has_canonical_format:
            csr = csr.copy()
            csr.sum_duplicates()
        check_finite(csr, what, squares=True)
        _check_shape(csr.shape, what)
        return SparseRows(csr)
    given: tuple[int, ...] = getattr(matrix, "shape", ())
    if len(given) == 2:
        require_memory(8.0 * given[0] * given[1], f"{what} of shape {given} in memory", "give memory= to stream rows")
    array = real_array(matrix, what, squares=True)
    _check_shape(array.shape, what)
    return DenseRows(np.ascontiguousarray(array))


def checked_rows(block: Any, first: int, width: int, what: str = "A") -> Rows:
    """Rows that a source gave for the rows from `first` on; errors name the rows."""
    rows = as_rows(block, f"{what}, rows {first} to {first + np.shape(block)[0] - 1}")
    if rows.shape[1] != width:
        raise InvalidInputError(f"{what}: row {first} has {rows.shape[1]} entries, expected {width}")
    return rows


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2 or 0 in shape:
        raise InvalidInputError(f"{what}: expected a matrix with rows and columns, got shape {shape}")
