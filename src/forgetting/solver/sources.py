"""The rows of matrices that users give to the solver: in memory, or read when they are needed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from forgetting.core.arrays import is_sparse
from forgetting.files.matrices import as_matrix, read_matrix
from forgetting.files.row_sources import RowSource, as_source
from forgetting.solver.rows import DenseRows, Rows, SparseRows

__all__ = ["as_rows", "opened", "rows_of"]


def rows_of(matrix: Any) -> Rows:
    """The rows of a checked matrix, dense in C order or CSR."""
    return SparseRows(matrix) if is_sparse(matrix) else DenseRows(matrix)


def as_rows(matrix: Any, what: str = "A") -> Rows:
    """The rows of a matrix in memory: dense in C order, or compressed; copied only if they must be converted.

    >>> as_rows([[1, 2], [3, 4]]).squares
    array([ 5., 25.])
    """
    return rows_of(as_matrix(matrix, what))


def opened(matrix: Any, budget: float) -> Rows | RowSource:
    """The rows of a matrix in memory, or the source of a matrix that takes more than half of the budget.

    Arrays in memory stay there, whatever they take. A file that is not .npy is read as a whole.

    >>> opened([[1.0, 2.0]], 0.0).shape
    (1, 2)
    """
    if isinstance(matrix, str | os.PathLike) and Path(matrix).suffix != ".npy" and not os.path.isdir(matrix):
        return as_rows(read_matrix(matrix), str(matrix))
    source = as_source(matrix)
    if source is None:
        return as_rows(matrix)
    loaded = source.loaded(budget)
    return source if loaded is None else rows_of(loaded)
