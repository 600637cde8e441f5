"""Matrices in memory and from files, and blocks of rows: checked, and converted to dense in C order or compressed.

Files may be damaged or malicious: nothing in them is unpickled.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import check_finite, check_index, is_sparse, numbers, real_array
from forgetting.core.memory import require_memory
from forgetting.core.numerical import SQUARED
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.arrays import damaged, entry, read_array, read_arrays, read_bytes
from forgetting.files.table_files import TextFile
from forgetting.files.tables import finite_matrix_of

REAL = "biuf"  # kinds of dtypes
COMPLEX = REAL + "c"


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


# -------------------------------------------------------------------------------------------------- matrices from files


COMPACT = "save the matrix with np.save or scipy.sparse.save_npz"
SPARSE = ("csr", "csc", "coo")  # formats of scipy.sparse.save_npz that are read
#: the dtypes of the fields of a Matrix Market file, and its symmetries; symmetric real numbers are hermitian too
MARKET = {"real": "f8", "double": "f8", "integer": "i8", "unsigned-integer": "u8", "pattern": "f8"}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read_matrix(path: str | PathLike[str], what: str = "A", kinds: str = REAL) -> Any:
    """The matrix, or the vector, in a file: a NumPy array, or a scipy.sparse array in CSR, CSC or COO format.

    Files are .npz (of `scipy.sparse.save_npz`, or of `np.savez` with one array, with one called `what`, or with the
    arrays data, indices, indptr and shape of a CSR matrix), .npy, .mtx
    (Matrix Market), and .csv, .tsv and .txt (numbers; the first line may have names). `kinds` are those of dtypes, of
    which .mtx and text have real ones only.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "A.csv").write_text("a,b\\n1,2\\n3,4\\n")
    ...     read_matrix(Path(here, "A.csv")).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    ending = Path(path).suffix.lower()
    if os.path.isdir(path):
        raise ProblemFileError(f"{path}: a folder, where a file with {what} is expected; use {', '.join(ENDINGS)}")
    if ending not in READERS:
        hint = " (open other files, and give an array of them, as in h5py.File(path)['X'])"
        raise ProblemFileError(f"{path}: unknown ending of a file with {what}; use {', '.join(ENDINGS)}{hint}")
    matrix = READERS[ending](Path(path), what, kinds)
    if matrix.dtype.kind not in kinds:
        raise ProblemFileError(f"{path}: {what} holds {matrix.dtype}, expected real numbers")
    return matrix


def _npz(path: Path, what: str, kinds: str) -> Any:
    arrays = read_arrays(path, kinds=f"{kinds}US")  # scipy writes the format as bytes
    if "data" in arrays and "shape" in arrays:
        return _sparse(path, arrays, kinds)
    numbers = [name for name, array in arrays.items() if array.dtype.kind in kinds and array.ndim]
    if what in numbers or len(numbers) == 1:
        return arrays[what if what in numbers else numbers[0]]
    hint = nearest(what, numbers, "there are") if numbers else ""
    raise ProblemFileError(f"{path}: no array {what!r}{hint}; save one array, or scipy.sparse.save_npz(file, matrix)")


def _sparse(path: Path, arrays: dict[str, Any], kinds: str) -> Any:
    """The matrix that `scipy.sparse.save_npz` wrote; all indices are checked."""
    from scipy import sparse

    form = arrays.get("format", np.array("csr"))
    name = form.item() if form.ndim == 0 else ""
    kind = name.decode("latin1") if isinstance(name, bytes) else str(name)
    if kind not in SPARSE:
        raise ProblemFileError(f"{path}: a sparse matrix in the format {kind!r:.40}; save it as csr, csc or coo")
    with damaged(path, "sparse matrix"):
        shape = tuple(entry(arrays, "shape", "iu", 1).tolist())
        if len(shape) != 2 or min(shape) < 0:
            raise ValueError(f"its shape is {shape}")
        require_memory(8.0 * sum(shape), f"{path}: a matrix of shape {shape}", "leave out empty rows and columns")
        data = entry(arrays, "data", kinds, 1)
        if kind == "coo":
            pair = entry(arrays, "coords", "iu", 2) if "coords" in arrays else None
            parts = [entry(arrays, name, "iu", 1) for name in ("row", "col")] if pair is None else list(pair)
            return sparse.coo_array((data, tuple(parts)), shape=shape)
        indices, starts = entry(arrays, "indices", "iu", 1), entry(arrays, "indptr", "iu", 1)
        check_index(data, indices, starts, shape if kind == "csr" else shape[::-1])
        return (sparse.csr_array if kind == "csr" else sparse.csc_array)((data, indices, starts), shape=shape)


def _market(path: Path, what: str, kinds: str) -> Any:
    """A Matrix Market file; sizes, and the number of entries, are checked before memory is used.

    Damaged files end the interpreter in the reader of scipy. Entries that are given twice are added, as there.
    """
    from scipy.sparse import coo_array

    content = BytesIO(read_bytes(path, f"{path}", COMPACT))
    with damaged(path, "Matrix Market file"):
        banner = content.readline().decode("latin1").lower().split()
        if len(banner) != 5 or banner[:2] != ["%%matrixmarket", "matrix"]:
            raise ValueError("its first line is not %%MatrixMarket matrix FORMAT FIELD SYMMETRY")
        form, field, symmetry = banner[2:]
        dense, skew = form == "array", symmetry == "skew-symmetric"
        for word, known in ((form, ("array", "coordinate")), (field, MARKET), (symmetry, SYMMETRIES)):
            if word not in known or (dense and word == "pattern"):
                raise ValueError(f"it holds {word!r:.40} numbers; {', '.join(known)} can be read")
        sizes = next((line.split() for line in content if line.strip() and not line.startswith(b"%")), [])
        if len(sizes) != 3 - dense or not all(size.isdigit() for size in sizes):
            raise ValueError(f"its size is {b' '.join(sizes)!r:.60}, expected {3 - dense} whole numbers")
        rows, columns, entries = *map(int, sizes), *([0] if dense else [])
        if symmetry != "general" and rows != columns:
            raise ValueError(f"{symmetry}, but of shape {(rows, columns)}")
        if dense:
            entries = rows * columns if symmetry == "general" else rows * (rows + 1 - 2 * skew) // 2
        cells = rows * columns if dense else rows + columns + 4 * entries  # symmetric ones are stored once
        require_memory(16.0 * cells, f"{path}: a matrix of shape {(rows, columns)}", "give a smaller file")
        places = [] if dense else [("i", "i8"), ("j", "i8")]
        entered = _lines(content, np.dtype(places + [("value", MARKET[field])] * (field != "pattern")), entries)
        value = np.ones(entries) if field == "pattern" else entered["value"]
        if dense and symmetry == "general":
            return value.reshape(columns, rows).T
        j, i = np.triu_indices(rows, int(skew)) if dense else (entered["j"] - 1, entered["i"] - 1)
        if entries and (min(i.min(), j.min()) < 0 or i.max() >= rows or j.max() >= columns):
            at = int(np.argmax((i < 0) | (j < 0) | (i >= rows) | (j >= columns)))
            raise ValueError(f"entry {at} is at {(int(i[at]) + 1, int(j[at]) + 1)}, outside of {(rows, columns)}")
        if symmetry != "general":
            other = i != j
            if skew and value[~other].any():
                raise ValueError("skew-symmetric, but its diagonal is not 0")
            value = np.concatenate([value, (-value if skew else value)[other]])
            i, j = np.concatenate([i, j[other]]), np.concatenate([j, i[other]])
        matrix = coo_array((value, (i, j)), shape=(rows, columns))
        return matrix.toarray() if dense else matrix


def _lines(content: BytesIO, dtype: np.dtype[Any], count: int) -> Any:
    """The numbers in the `count` lines that follow, by the names of their columns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no line at all
        warnings.simplefilter("error", DeprecationWarning)  # a fraction where a whole number belongs
        rows = np.loadtxt(content, dtype, comments=None, ndmin=1)
    if len(rows) != count:
        raise ValueError(f"{len(rows)} lines with entries, but its size says {count} entries")
    return rows


def _text(path: Path, what: str, kinds: str) -> Any:
    """Numbers in lines, with commas, semicolons, tabs or blanks between them; a first line of names is left out."""
    file = TextFile.of_numbers(path)
    if not file.header:
        raise ProblemFileError(f"{path}: no numbers")
    array = finite_matrix_of(file.table(), "")
    return array.ravel() if 1 in array.shape and what != "A" else array


READERS: dict[str, Callable[[Path, str, str], Any]] = {
    ".npz": _npz,
    ".npy": lambda path, what, kinds: read_array(path, f"{kinds}U"),
    ".mtx": _market,
    ".csv": _text,
    ".tsv": _text,
    ".txt": _text,
}
ENDINGS = tuple(READERS)
