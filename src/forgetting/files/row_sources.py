"""Matrices whose rows are read when they are needed: in files, in folders, by a function, of an operator, in memory."""

from __future__ import annotations

import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, fingerprint, is_sparse
from forgetting.core.memory import in_bytes
from forgetting.errors import InvalidInputError, MemoryLimitError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import contents, damaged, entry, open_regular, read_arrays
from forgetting.files.matrices import checked_block, read_matrix

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
