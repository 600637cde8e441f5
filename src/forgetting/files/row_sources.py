"""Matrices whose rows are read when they are needed: files, folders, objects with row slices, operators, arrays."""

from __future__ import annotations

import mmap
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy
from hashlib import sha256
from itertools import pairwise
from math import prod
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, fingerprint, is_sparse
from forgetting.core.memory import in_bytes, require_memory
from forgetting.core.text import one_line
from forgetting.errors import ForgettingError, InvalidInputError, MemoryLimitError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import array_header, contents, damaged, entry, open_regular, read_arrays
from forgetting.files.matrices import COMPLEX, REAL, checked_block, read_matrix

BLOCK = 2**25  # bytes of a block, at most: reads of 32 MiB are as fast as larger ones
SHARE = 8  # the part of the budget that a block takes, so that read-ahead, conversion and kept blocks fit
OWN = 2**22  # bytes from which on an array has memory of its own
SAMPLE = 64  # rows that are compared when a solve is resumed


def sampled_rows(count: int) -> list[int]:
    """At most 64 of the numbers below `count`, evenly spaced."""
    return [int(i) for i in np.unique(np.linspace(0, count - 1, min(count, SAMPLE)).astype(int))]


class RowSource(ABC):
    """A matrix whose rows are read when they are needed.

    Attributes:
        shape: the shape of the matrix.
        row_bytes: the memory that a row takes while the row is read and converted.
        unit: the number of rows that are best read together.
    """

    shape: tuple[int, int]
    row_bytes: float
    unit: int = 1
    what: str = "A"  # the name of the matrix in errors

    @property
    def least_bytes(self) -> float:
        """The memory of the smallest block that can be read."""
        return self.row_bytes

    @abstractmethod
    def _raw(self, start: int, stop: int) -> Any:
        """The rows from `start` to `stop`, as an array of real numbers or a scipy.sparse matrix."""

    def read(self, start: int, stop: int) -> Any:
        """The rows from `start` to `stop`, checked: float64 in C order, or a CSR array."""
        return checked_block(self._raw(start, stop), start, stop - start, self.shape[1], self.what)

    def pieces(self, start: int, stop: int) -> Iterator[Any]:
        """The rows from `start` to `stop`, checked, one piece or several of them below one another."""
        for raw, count in self._raw_pieces(start, stop):
            yield checked_block(raw, start, count, self.shape[1], self.what)
            start += count

    def _raw_pieces(self, start: int, stop: int) -> Iterator[tuple[Any, int]]:
        """The rows from `start` to `stop` as they are stored, each piece with the number of rows that it must have."""
        yield self._raw(start, stop), stop - start

    def starts(self, size: int) -> IntArray:
        """The first row of every block of at most `size` rows, and the number of rows."""
        m = self.shape[0]
        count = -(-m // size)
        return np.arange(count + 1) * m // count

    def mark(self) -> str:
        """A text that identifies the matrix: a hash of the entries of 64 rows."""
        return fingerprint(*(self.read(i, i + 1) for i in sampled_rows(self.shape[0]))).hex()

    def stamp(self) -> str:
        """Sizes and times of the files with the rows; empty if there are none, or if they are not known."""
        return ""

    def identity(self) -> str:
        """A text that identifies the matrix and the files that hold it."""
        return f"{self.stamp()} {self.mark()}"

    def portion(self, start: int, stop: int) -> RowSource:
        """A source of these rows, by the same numbers, that is small when it is sent to another process."""
        return self

    def loaded(self, budget: float) -> Any:
        """The whole matrix in memory if that takes at most half of the budget, else None."""
        m, n = self.shape
        if self.row_bytes * m > budget / 2:
            return None
        parts = [self.read(start, stop) for start, stop in pairwise(self.starts(max(1, m // SHARE)).tolist())]
        if all(map(is_sparse, parts)):
            from scipy.sparse import csr_array, vstack

            return csr_array(vstack(parts, format="csr"))
        if 8.0 * m * n > budget / 2:
            return None
        return np.concatenate([part.toarray() if is_sparse(part) else part for part in parts])


def file_stamp(path: str | os.PathLike[str]) -> str:
    """The size and the time of the last change of a file."""
    with open_regular(path) as handle:
        status = os.fstat(handle.fileno())
    return f"{status.st_size} {status.st_mtime_ns}"


def block_starts(source: RowSource, budget: float, size: int | None) -> IntArray:
    """The first row of every block of a streamed matrix; `size` is the number of rows in a block, None for the best.

    The blocks depend on the shape and the budget only, never on the memory that happens to be free.
    """
    needed = 4 * max(source.least_bytes, 0 if size is None else size * source.row_bytes)
    if needed > budget:
        raise MemoryLimitError(
            f"blocks of A need about {in_bytes(needed / 4)} each, and four of them fit into memory= only if that is at "
            f"least {in_bytes(needed)}, not {in_bytes(budget)}; give more memory, or "
            f"{'write smaller block files' if size is None else 'smaller blocks='}",
            needed=needed,
            allowed=budget,
        )
    if size is None:
        size = max(1, int(min(BLOCK, budget / SHARE) / source.row_bytes))
        if source.unit < size:
            size -= size % source.unit
    return source.starts(size)


def _room(shape: tuple[int, int], dtype: Any) -> Any:
    """An array whose memory goes back to the system with it; what `np.empty` gave may be kept when it is freed."""
    size = shape[0] * shape[1] * dtype.itemsize
    if size < OWN or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.empty(shape, dtype)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without large pages
        pages.madvise(mmap.MADV_HUGEPAGE)  # few page faults: reading is 2.5 times faster
    return np.frombuffer(pages, dtype=dtype).reshape(shape)


class FileRows(RowSource):
    """Rows in a file of numbers, dense: read by plain reads at their place, so that no page of the file is mapped.

    Rows of a file in Fortran order are read column by column: slower by one seek for each column and block.
    """

    def __init__(
        self, path: str | os.PathLike[str], offset: int, dtype: Any, shape: tuple[int, int], fortran: bool = False
    ) -> None:
        self.path, self.offset, self.dtype, self.shape, self.fortran = path, offset, np.dtype(dtype), shape, fortran
        copied = fortran or self.dtype != np.float64
        self.row_bytes = float(shape[1] * (8 + (self.dtype.itemsize if copied else 0)))
        with open_regular(path) as handle:
            there = os.fstat(handle.fileno()).st_size
        needed = offset + shape[0] * shape[1] * self.dtype.itemsize
        if there < needed:
            raise ProblemFileError(
                f"{path}: damaged (a matrix of shape {shape} ends at byte {needed}, the file at {there})"
            )

    def _raw(self, start: int, stop: int) -> Any:
        (m, n), width = self.shape, self.dtype.itemsize
        with open_regular(self.path) as handle:
            if not self.fortran:
                rows = _room((stop - start, n), self.dtype)
                self._fill(handle, self.offset + start * n * width, rows)
                return rows
            columns = _room((n, stop - start), self.dtype)
            for j in range(n):
                self._fill(handle, self.offset + (j * m + start) * width, columns[j])
            return columns.T

    def stamp(self) -> str:
        return file_stamp(self.path)

    def _fill(self, handle: Any, place: int, array: Any) -> None:
        room, done = memoryview(array.reshape(-1).view(np.uint8)), 0
        handle.seek(place)
        while done < len(room):
            count = handle.readinto(room[done:])
            if not count:
                raise ProblemFileError(f"{self.path}: ends at byte {place + done}; was the file changed?")
            done += count


class PackedRows(RowSource):
    """Compressed rows in an .npz file, which is always read as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with damaged(path, "matrix"):
            given = entry(read_arrays(path, only="shape"), "shape", "iu", 1).tolist()
            if len(given) != 2:
                raise InvalidInputError(f"shape {given}")
        self.shape = (int(given[0]), int(given[1]))
        self.row_bytes = 2.0 * sum(size for size, _ in contents(path).values()) / max(1, self.shape[0])

    @property
    def least_bytes(self) -> float:
        return self.row_bytes * self.shape[0]

    def starts(self, size: int) -> IntArray:
        return np.array([0, self.shape[0]])

    def _raw(self, start: int, stop: int) -> Any:
        return read_matrix(self.path)

    def stamp(self) -> str:
        return file_stamp(self.path)

    def mark(self) -> str:
        """The checksums of the arrays in the file."""
        return repr(sorted(contents(self.path).items()))


class FolderRows(RowSource):
    """The rows of several sources, one below the other; a block has rows of one of them."""

    def __init__(self, parts: list[RowSource], names: list[str]) -> None:
        self.parts, self.names = parts, names
        self.first = np.cumsum([0, *(part.shape[0] for part in parts)])
        self.shape = (int(self.first[-1]), parts[0].shape[1])
        self.row_bytes = max(part.row_bytes for part in parts)

    @property
    def least_bytes(self) -> float:
        return max(part.least_bytes for part in self.parts)

    def starts(self, size: int) -> IntArray:
        within = [first + part.starts(size)[:-1] for first, part in zip(self.first, self.parts, strict=False)]
        return np.concatenate([*within, self.first[-1:]])

    def _raw(self, start: int, stop: int) -> Any:
        part, first = self._part(start)
        return part._raw(start - first, stop - first)

    def _raw_pieces(self, start: int, stop: int) -> Iterator[tuple[Any, int]]:
        part, first = self._part(start)
        return part._raw_pieces(start - first, stop - first)

    def _part(self, row: int) -> tuple[RowSource, int]:
        """The source that has a row, and the number of its first row."""
        part = int(np.searchsorted(self.first, row, side="right")) - 1
        return self.parts[part], int(self.first[part])

    def stamp(self) -> str:
        return " ".join(part.stamp() for part in self.parts)

    def mark(self) -> str:
        marks = [str(part.shape) for part in self.parts] + [self.parts[i].mark() for i in sampled_rows(len(self.parts))]
        return sha256("".join(marks).encode()).hexdigest()


class SlicedRows(RowSource):
    """Rows that a function gives, such as the slices A[start:stop] of an array of h5py, zarr or dask."""

    def __init__(self, shape: tuple[int, int], get: Callable[[int, int], Any], unit: int = 1, what: str = "A") -> None:
        self.shape, self.get, self.unit, self.what = shape, get, unit, what
        # dense rows may be converted, which takes twice their size; sparse rows differ: four times the mean
        self.row_bytes = 16.0 * shape[1]
        if is_sparse(self._raw(0, 1)):
            rows = sampled_rows(shape[0])
            self.row_bytes = 16 + 48.0 * sum(self._raw(i, i + 1).nnz for i in rows) / len(rows)

    def _raw(self, start: int, stop: int) -> Any:
        block = self.get(start, stop)
        return block if is_sparse(block) else np.asarray(block)


class AdjointRows(RowSource):
    """The rows of an operator that has only products: row i is A^T e_i, one product with the adjoint for each row."""

    def __init__(self, operator: Any, shape: tuple[int, int]) -> None:
        self.operator, self.shape = operator, shape
        self.row_bytes = 8.0 * (shape[0] + 2 * shape[1])

    def _raw(self, start: int, stop: int) -> Any:
        units = np.zeros((self.shape[0], stop - start))
        units[np.arange(start, stop), np.arange(stop - start)] = 1.0
        try:
            rows = np.asarray(self.operator.rmatmat(units)).T
            return rows.conj() if rows.dtype.kind == "c" else rows
        except (NotImplementedError, TypeError) as error:  # which one depends on the version of scipy
            raise NotSupportedError(
                "A is an operator without rows: give it a method rows(start, stop), or rmatvec, the product with A^T "
                "(if A is complex, with its conjugate)"
            ) from error


class Scaled(RowSource):
    """The rows of a source, multiplied by numbers that are not negative."""

    def __init__(self, source: RowSource, factors: Array) -> None:
        self.source, self.factors = source, factors
        self.shape, self.row_bytes, self.unit, self.what = source.shape, source.row_bytes, source.unit, source.what

    @property
    def least_bytes(self) -> float:
        return self.source.least_bytes

    def _raw(self, start: int, stop: int) -> Any:
        return times_rows(self.source.read(start, stop), self.factors[start:stop])

    def starts(self, size: int) -> IntArray:
        return self.source.starts(size)

    def stamp(self) -> str:
        return self.source.stamp()


def times_rows(matrix: Any, factors: Array) -> Any:
    """A copy of a dense or a CSR array whose rows are multiplied by factors."""
    if not is_sparse(matrix):
        return matrix * factors[:, None]
    copied = matrix.copy()
    copied.data *= np.repeat(factors, np.diff(copied.indptr))
    return copied


class MemoryRows(RowSource):
    """The rows of a matrix in memory, dense or CSR, or the entries of a vector as rows of one column."""

    def __init__(self, matrix: Any, what: str) -> None:
        self.matrix, self.what, self.first = matrix, what, 0
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]) if matrix.ndim > 1 else 1)
        self.row_bytes = 16.0 * self.shape[1]

    def _raw(self, start: int, stop: int) -> Any:
        rows = self.matrix[start - self.first : stop - self.first]
        return rows if is_sparse(rows) else rows.reshape(-1, self.shape[1])

    def starts(self, size: int) -> IntArray:
        return np.array([*range(0, self.shape[0], size), self.shape[0]])

    def portion(self, start: int, stop: int) -> RowSource:
        part = copy(self)
        part.matrix, part.first = self.matrix[start - self.first : stop - self.first], start
        return part

    def identity(self) -> str:
        """The SHA-256 of the array, or of the parts of a sparse matrix."""
        total = sha256(f"{self.matrix.shape} {self.matrix.dtype}".encode())
        sparse = is_sparse(self.matrix)
        for part in (self.matrix.data, self.matrix.indices, self.matrix.indptr) if sparse else (self.matrix,):
            array = np.ascontiguousarray(part)
            total.update(np.array(array.tolist(), dtype=str).data if array.dtype.kind == "O" else array.data)
        return total.hexdigest()


def is_read_whole(matrix: Any) -> bool:
    """Whether a matrix is a file that is read as a whole: `as_source` reads .npy files and folders part by part.

    >>> is_read_whole("A.csv"), is_read_whole("A.npy"), is_read_whole([[1.0]])
    (True, False, False)
    """
    return isinstance(matrix, str | os.PathLike) and Path(matrix).suffix != ".npy" and not os.path.isdir(matrix)


def as_source(matrix: Any, what: str = "A", vectors: bool = False, kinds: str = REAL) -> RowSource | None:
    """The source of a matrix that is not in memory; None for arrays, lists, tensors, frames and scipy.sparse.

    `what` is its name in errors; with `vectors`, a vector in a file is a matrix of one column. `kinds` are those of the
    dtypes of .npy files.

    >>> as_source([[1.0]]) is None
    True
    """
    if isinstance(matrix, str | os.PathLike):
        return _from_path(Path(matrix), what, vectors, kinds)
    if isinstance(matrix, np.memmap):
        return _from_map(matrix, what)
    if isinstance(matrix, np.ndarray | list | tuple) or is_sparse(matrix):
        return None
    with as_damage(matrix, what):  # also a closed file has no shape
        if any(hasattr(matrix, name) for name in ("detach", "to_numpy")) or not hasattr(matrix, "shape"):
            return None
        flat = vectors and len(matrix.shape) == 1
        shape = _matrix_shape((*matrix.shape, 1) if flat else matrix.shape, what)
        if hasattr(matrix, "__getitem__") and not callable(getattr(matrix, "rows", None)):
            chunks = getattr(matrix, "chunks", None) or (1,)  # h5py and zarr: the shape of the parts that are stored
            unit = chunks[0] if all(isinstance(size, int) for size in chunks) else 1
            needed = 16.0 * max(shape[1], prod(chunks) if isinstance(chunks[0], int) else 0)
            require_memory(needed, f"{_called(matrix, what)}: rows that are read together", "store smaller chunks")

            def get(start: int, stop: int) -> Any:
                rows = sliced(matrix, start, stop, what)
                return np.reshape(rows, (-1, 1)) if flat else rows

            return SlicedRows(shape, get, unit, what)
    if callable(getattr(matrix, "rows", None)):
        return SlicedRows(shape, matrix.rows, what=what)
    return AdjointRows(matrix, shape) if hasattr(matrix, "rmatmat") else None


def sliced(matrix: Any, start: int, stop: int, what: str) -> Any:
    """Rows of an array of h5py, zarr, dask, ...; an error of theirs becomes one that names the file and the rows.

    Arrays of zarr may name pickle as the way to unpack them, which would run code.
    """
    with as_damage(matrix, f"{what}, rows {start} to {stop - 1}"):
        ways = [way for name in ("filters", "compressors") for way in getattr(matrix, name, None) or ()]
        if "pickle" in [getattr(way, "codec_id", "") for way in ways]:
            raise ProblemFileError(f"{_called(matrix, what)}: it holds pickled objects, which are never loaded")
        return matrix[start:stop]


@contextmanager
def as_damage(matrix: Any, what: str) -> Iterator[None]:
    """Turn any error in the block, which reads from `matrix`, into a `ProblemFileError` that names its file."""
    try:
        yield
    except ForgettingError:
        raise
    except Exception as error:  # damage has many names
        reason = one_line(f"{type(error).__name__}: {error}", 200)
        raise ProblemFileError(f"{_called(matrix, what)}: cannot be read ({reason})") from error


def _called(matrix: Any, what: str) -> str:
    home = home_of(matrix)
    return what if home is None else f"{home}, {what}"


def home_of(X: Any) -> Path | None:
    """The file or folder in which a matrix is: a path, or that of a map, of an h5py data set or of a zarr array."""
    if isinstance(X, str | os.PathLike):
        return Path(X)
    if isinstance(X, np.memmap):
        return None if X.filename is None else Path(str(X.filename))
    with suppress(Exception):  # a closed file has no name
        inside = getattr(getattr(X, "file", None), "filename", None)  # h5py
        if isinstance(inside, str):
            return Path(inside + "." + "-".join(str(getattr(X, "name", "X")).strip("/").split("/")))
        root = getattr(getattr(X, "store", None), "root", None)  # zarr
        if isinstance(root, str | os.PathLike):
            return Path(root, str(getattr(X, "path", "")))
    return None


def _matrix_shape(shape: Any, what: str = "A") -> tuple[int, int]:
    try:
        m, n = (index(size) for size in shape)
    except (TypeError, ValueError):
        m = n = 0
    if m < 1 or n < 1:
        raise InvalidInputError(f"{what}: expected a matrix with rows and columns, got shape {shape!r:.60}")
    return m, n


def _from_map(array: Any, what: str) -> RowSource:
    """The source of a memory-mapped array: its file, or slices of the map if rows are not one after another there."""
    shape = _matrix_shape(array.shape, what)
    plain = array.flags.c_contiguous or array.flags.f_contiguous
    if array.filename is None or array.mode == "c" or not plain or array.dtype.kind not in COMPLEX:
        return SlicedRows(shape, lambda start, stop: array[start:stop], what=what)
    # `offset` is that of the first map, of which this array may be a part
    base = np.frombuffer(array._mmap, dtype=np.uint8).ctypes.data
    place = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY + array.ctypes.data - base
    if array.mode != "r":
        array.flush()
    return FileRows(array.filename, place, array.dtype, shape, not array.flags.c_contiguous)


def _from_path(path: Path, what: str, vectors: bool, kinds: str) -> RowSource:
    source = (_from_folder if os.path.isdir(path) else _from_npy)(path, vectors, kinds)
    source.what = what
    return source


def _from_npy(path: Path, vectors: bool, kinds: str) -> RowSource:
    with open_regular(path) as handle:
        try:
            shape, fortran, dtype, offset = array_header(handle, str(path), kinds)
        except ProblemFileError:
            raise
        except Exception as error:  # headers can be damaged in many ways
            raise ProblemFileError(f"{path}: damaged (its header ends early)") from error
    shape = (*shape, 1) if vectors and len(shape) == 1 else shape
    return FileRows(path, offset, dtype, _matrix_shape(shape, str(path)), fortran)


def names_in(path: Path, endings: tuple[str, ...]) -> list[str]:
    """The names of the files of a folder with one of the endings, sorted; hidden files do not count."""
    try:
        names = os.listdir(path)
    except OSError as error:
        raise ProblemFileError(f"{path}: cannot be read ({error.strerror})") from error
    return sorted(name for name in names if Path(name).suffix in endings and name[0] != ".")


def listed(path: Path, endings: tuple[str, ...]) -> list[str]:
    """The names of the files of a folder with one of the endings, in order; an error if numbers disagree with it."""
    names = names_in(path, endings)
    if not names:
        raise ProblemFileError(f"{path}: a folder without {' and '.join(endings)} files")
    counted = sorted(
        names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    )
    odd = next((pair for pair in zip(names, counted, strict=True) if pair[0] != pair[1]), None)
    if odd is not None:
        raise ProblemFileError(
            f"{path}: {odd[0]!r:.80} comes before {odd[1]!r:.80} by name, but not by number; use leading zeros"
        )
    return names


def _from_folder(path: Path, vectors: bool, kinds: str) -> RowSource:
    """The block files of a folder, in the order of their names."""
    names = listed(path, (".npy", ".npz"))
    parts: list[RowSource] = [
        _from_npy(path / name, vectors, kinds) if name.endswith("y") else PackedRows(path / name) for name in names
    ]
    for name, part in zip(names, parts, strict=True):
        if part.shape[1] != parts[0].shape[1]:
            raise InvalidInputError(
                f"{path / name} has {part.shape[1]} columns, but {names[0]} has {parts[0].shape[1]}"
            )
    return FolderRows(parts, names)
