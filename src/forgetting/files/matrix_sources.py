"""A matrix of the user as a source of rows: a path, a folder, a map, an array of h5py or zarr, an operator."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from operator import index
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import is_sparse
from forgetting.core.memory import require_memory
from forgetting.core.text import one_line
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.files.arrays import array_header, open_regular
from forgetting.files.matrices import COMPLEX, REAL
from forgetting.files.row_sources import AdjointRows, FileRows, FolderRows, PackedRows, RowSource, SlicedRows


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
