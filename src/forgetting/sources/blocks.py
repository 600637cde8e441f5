"""Matrices in memory and blocks of rows, checked and converted: dense in C order, or compressed."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.core.arrays import SQUARED, check_finite, check_index, is_sparse, numbers, real_array
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError

__all__ = ["as_matrix", "checked_block"]


def as_matrix(matrix: Any, what: str = "A") -> Any:
    """A matrix in memory: float64 in C order, or a CSR array; copied only if it must be converted.

    >>> as_matrix([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    if is_sparse(matrix):
        csr = _compressed(matrix, what)
        check_finite(csr, what, squares=True)
        _check_shape(csr.shape, what)
        return csr
    given: tuple[int, ...] = np.shape(matrix) if hasattr(matrix, "shape") else ()  # lists may be ragged
    if len(given) == 2:
        require_memory(8.0 * given[0] * given[1], f"{what} of shape {given} in memory", "give memory= to stream rows")
    array = real_array(matrix, what, squares=True)
    _check_shape(array.shape, what)
    return np.ascontiguousarray(array)


def checked_block(block: Any, first: int, count: int, width: int, what: str = "A") -> Any:
    """The `count` rows from row `first` on, as a source gave them; errors name the row of the matrix.

    >>> checked_block([[1.0, np.nan]], 7, 1, 2)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: A: entry at row 7, column 1 is nan; remove or impute it first
    """
    raw: Any = _compressed(block, what) if is_sparse(block) else numbers(block, what)
    if raw.shape != (count, width):
        last = first + count - 1
        raise InvalidInputError(f"{what}: rows {first} to {last} came in shape {raw.shape}, expected {(count, width)}")
    stored = raw.data if is_sparse(raw) else raw
    with np.errstate(all="ignore"):
        flat = stored.ravel(order="K")
        fine = np.dot(flat, flat) < SQUARED  # False for NaN
    if not fine:
        _name_entry(raw, first, what)
    return raw if is_sparse(raw) else np.ascontiguousarray(raw)


def _name_entry(block: Any, first: int, what: str) -> None:
    """Raise an error that names the first entry that is not finite, or else the largest one, if squares overflow."""
    stored = block.data if is_sparse(block) else block
    bad = np.flatnonzero(~np.isfinite(stored))
    place = int(bad[0]) if bad.size else int(np.argmax(np.abs(stored)))
    value = stored.ravel()[place]
    if is_sparse(block):
        row, column = int(np.searchsorted(block.indptr, place, side="right")) - 1, int(block.indices[place])
    else:
        row, column = divmod(place, block.shape[1])
    reason = "too large, its square overflows; scale A first" if np.isfinite(value) else "remove or impute it first"
    raise InvalidInputError(f"{what}: entry at row {first + row}, column {column} is {value:g}; {reason}")


def _compressed(matrix: Any, what: str) -> Any:
    """A scipy.sparse matrix as a CSR array of float64 without duplicates."""
    if matrix.dtype.kind not in "biuf":
        raise InvalidInputError(f"{what}: expected real numbers, got dtype {matrix.dtype}")
    from scipy.sparse import csr_array

    csr = csr_array(matrix, dtype=np.float64)
    try:
        check_index(csr.data, csr.indices, csr.indptr, csr.shape)  # compiled code reads x at these columns
    except ValueError as error:
        raise InvalidInputError(
            f"{what}: not a valid sparse matrix ({error}); make it again from its entries"
        ) from None
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


def _check_shape(shape: tuple[int, ...], what: str) -> None:
    if len(shape) != 2 or 0 in shape:
        raise InvalidInputError(f"{what}: expected a matrix with rows and columns, got shape {shape}")
