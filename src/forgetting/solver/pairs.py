"""Complex systems as real ones: a complex row is two real rows at right angles, of the same norm.

The unknowns are (Re x_0, Im x_0, Re x_1, ...), which is how NumPy stores x. Row a becomes (Re a, -Im a) and
(Im a, Re a) in pairs of entries: conj(a) and i conj(a) as NumPy stores them. A step for both is a step for the complex
row: x <- x + (b - a.x) / |a|^2 conj(a). Norms, residuals and least-squares solutions are those of the complex system.
"""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, any_array, fingerprint, is_sparse, numbers
from forgetting.core.memory import require_memory
from forgetting.core.numerical import SQUARED
from forgetting.errors import InvalidInputError
from forgetting.files.matrices import COMPLEX, as_matrix, read_matrix
from forgetting.files.matrix_sources import as_source, is_read_whole
from forgetting.files.row_sources import RowSource, sampled_rows
from forgetting.solver.rows import Rows, as_rows


def is_complex(value: Any) -> bool:
    """Whether an array, a list, a tensor, an operator or a source says that it holds complex numbers."""
    if value is None or isinstance(value, str | PathLike):
        return False
    parts = getattr(value, "parts", [value]) if isinstance(value, RowSource) else [value]
    kinds = [getattr(part, "dtype", None) for part in parts]
    if kinds == [None] and isinstance(value, list | tuple):
        try:
            return bool(any_array(value, "A").dtype.kind == "c")
        except InvalidInputError:  # said where the matrix is read
            return False
    return any("complex" in str(kind) or getattr(kind, "kind", "") == "c" for kind in kinds)


def opened(matrix: Any, budget: float, paired_sides: bool = False) -> tuple[Rows | RowSource, int]:
    """The rows of a matrix in memory, or the source of a matrix that takes more than half of the budget; and the unit.

    The unit is 2 if the rows are pairs of real ones, as they are of a complex matrix, and with `paired_sides`; else 1.
    Arrays in memory stay there, whatever they take. A file that is not .npy is read as a whole.

    >>> opened([[1.0, 2.0]], 0.0)[0].shape, opened([[1.0, 2.0j]], 0.0)[0].shape
    ((1, 2), (2, 4))
    """
    source, what = None, "A"
    if is_read_whole(matrix):
        matrix, what = read_matrix(matrix, "A", COMPLEX), str(matrix)
    else:
        source = as_source(matrix, kinds=COMPLEX)
    pairs = paired_sides or is_complex(matrix) or is_complex(source)
    if source is None:
        return (Rows(paired(_checked(matrix, 0, what))), 2) if pairs else (as_rows(matrix, what), 1)
    source = PairedRows(source) if pairs else source
    whole = source.loaded(budget)
    return source if whole is None else Rows(whole), 2 if pairs else 1


def paired(matrix: Any) -> Any:
    """The real matrix of a checked complex one, dense or CSR.

    >>> paired(np.array([[1 + 2j, 3j]]))
    array([[ 1., -2.,  0., -3.],
           [ 2.,  1.,  3.,  0.]])
    """
    m, n = matrix.shape
    if not is_sparse(matrix):
        require_memory(32.0 * m * n, f"A of shape {(m, n)} with real numbers in pairs", "give memory= to stream rows")
        rows = np.empty((2 * m, 2 * n))
        conjugate = np.conj(matrix)
        rows[0::2], rows[1::2] = conjugate.view(np.float64), (1j * conjugate).view(np.float64)
        return rows + 0.0  # no negative zeros
    from scipy.sparse import csr_array

    starts, conjugate = matrix.indptr.astype(np.int64), np.conj(matrix.data)
    lengths, count = 2 * np.diff(starts), len(matrix.data)
    ends = np.concatenate([[0], np.cumsum(np.repeat(lengths, 2))])
    first = np.arange(2 * count) + np.repeat(2 * starts[:-1], lengths)  # places of the first row of each pair
    second = first + np.repeat(lengths, lengths)
    columns = (2 * matrix.indices.astype(np.int64)[:, None] + np.arange(2)).ravel()
    data, indices = np.empty(4 * count), np.empty(4 * count, dtype=np.int64)
    for places, values in ((first, conjugate), (second, 1j * conjugate)):
        data[places], indices[places] = values.view(np.float64) + 0.0, columns
    return csr_array((data, indices, ends), shape=(2 * m, 2 * n))


def as_pairs(given: Any, what: str) -> Array:
    """Complex numbers (n,) as 2 n real ones, (n, c) as (2 n, c).

    >>> as_pairs([[1 + 2j], [3.0]], "b").ravel().tolist()
    [1.0, 2.0, 3.0, 0.0]
    """
    array = np.asarray(any_array(given, what))
    if array.dtype.kind not in COMPLEX:
        raise InvalidInputError(f"{what}: expected numbers, got dtype {array.dtype}")
    array = array.astype(np.complex128)
    bad = np.argwhere(~(np.isfinite(array) & (np.abs(array) ** 2 < SQUARED)))
    if len(bad):
        place, value = tuple(bad[0].tolist()), array[tuple(bad[0])]
        raise InvalidInputError(f"{what}: entry {place} is {value:g}; remove it, or rescale {what}")
    parts = np.stack([array.real, array.imag], axis=1) if array.ndim else np.zeros(0)
    return np.ascontiguousarray(parts.reshape(-1, *array.shape[1:]))


def as_complex(pairs: Array) -> Any:
    """The complex numbers that pairs of real ones stand for."""
    return pairs[0::2] + 1j * pairs[1::2]


def _checked(matrix: Any, first: int, what: str) -> Any:
    """A matrix of complex numbers in C order, or CSR; errors name the row of the matrix, with `first` on top."""
    if is_sparse(matrix):
        real, imaginary = (as_matrix(part, what) for part in (matrix.real, matrix.imag))
        return (real + 1j * imaginary).tocsr()
    numbers(np.real(matrix) if isinstance(matrix, np.ma.MaskedArray) else 0.0, what)  # masked entries
    array = any_array(matrix, what)
    if array.dtype.kind not in COMPLEX:
        raise InvalidInputError(f"{what}: expected numbers, got dtype {array.dtype}")
    if array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(f"{what}: expected a matrix with rows and columns, got shape {array.shape}")
    array = np.ascontiguousarray(array, dtype=np.complex128)
    with np.errstate(all="ignore"):
        bad = np.argwhere(~(np.abs(array) ** 2 < SQUARED))
    if len(bad):
        row, column = bad[0].tolist()
        value = array[row, column]
        reason = "too large, its square overflows; scale A first" if np.isfinite(value) else "remove or impute it first"
        raise InvalidInputError(f"{what}: entry at row {first + row}, column {column} is {value:g}; {reason}")
    return array


class PairedRows(RowSource):
    """The pairs of real rows of a source with complex rows."""

    def __init__(self, source: RowSource) -> None:
        self.source, self.what = source, source.what
        self.shape = (2 * source.shape[0], 2 * source.shape[1])
        self.row_bytes, self.unit = 2.5 * source.row_bytes, 2 * source.unit

    @property
    def least_bytes(self) -> float:
        return 2 * max(self.row_bytes, 2.5 * self.source.least_bytes)

    def starts(self, size: int) -> IntArray:
        return 2 * self.source.starts(max(1, size // 2))

    def _raw(self, start: int, stop: int) -> Any:
        first, last = start // 2, -(-stop // 2)
        raw = self.source._raw(first, last)
        if raw.shape != (last - first, self.source.shape[1]):
            wanted = (last - first, self.source.shape[1])
            raise InvalidInputError(
                f"{self.what}: rows {first} to {last - 1} came in shape {raw.shape}, expected {wanted}"
            )
        rows = paired(_checked(raw, first, self.what))
        return rows[start - 2 * first : stop - 2 * first]

    def stamp(self) -> str:
        return self.source.stamp()

    def mark(self) -> str:
        rows = (self.read(2 * i, 2 * i + 1) for i in sampled_rows(self.source.shape[0]))
        return fingerprint(*rows).hex()
