"""Rows with labels that are read part by part, from matrices and from Parquet files, and the task of each row."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, any_array, as_index, group_codes, is_sparse, numbers, one_column
from forgetting.core.memory import require_memory
from forgetting.core.text import first_repeated, nearest, one_line
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.matrices import as_matrix, checked_block, read_matrix
from forgetting.files.row_sources import (
    FolderRows,
    RowSource,
    as_damage,
    as_source,
    file_stamp,
    home_of,
    listed,
    names_in,
    sliced,
)


class LabelledBlock(NamedTuple):
    """Some rows: the number of the first, the dense rows, and their labels as a matrix."""

    start: int
    X: Array
    y: Array


class LabelledRows(ABC):
    """Rows with labels, read part by part.

    Attributes:
        shape: the numbers of rows and of columns.
        outputs: the number of labels of a row; None if labels are single numbers.
        row_bytes: the memory that a row takes while it is read.
        files: the names and numbers of rows of the files, if the rows are in a folder.
        home: the file or folder of the rows; None if it is not known.
    """

    shape: tuple[int, int]
    outputs: int | None
    row_bytes: float
    files: tuple[tuple[str, int], ...] = ()
    home: Path | None = None

    @abstractmethod
    def spans(self, size: int) -> list[tuple[int, int]]:
        """The first row of each part and the row after its last, for parts of about `size` rows."""

    @abstractmethod
    def blocks(self, start: int, stop: int) -> Iterator[LabelledBlock]:
        """The rows of a part."""

    def portion(self, start: int, stop: int) -> LabelledRows:
        """An object that gives these rows and is small when it is sent to another process."""
        return self

    @abstractmethod
    def mark(self) -> str:
        """A text that identifies rows and labels, at little cost: sizes and times of files, and some rows."""

    def named_groups(self, column: Any) -> Any:
        """The groups of rows in a column of the data; an error if the data have no columns with names."""
        raise InvalidInputError(f"groups: {column!r:.60} names a column, but X has none; give an entry for each row")


class MatrixRows(LabelledRows):
    """The rows of a matrix, and labels beside them."""

    def __init__(self, X: Any, y: Any) -> None:
        self.X, self.y = _source(X, "X"), _labels(y)
        count, width = (int(size) for size in self.X.shape)
        if len(self.y) != count:
            raise InvalidInputError(f"X has {count} rows, but y has {len(self.y)}")
        self.shape, self.outputs = (count, width), self.y.outputs
        own = self.X.row_bytes if isinstance(self.X, RowSource) else 16.0 * width
        self.row_bytes = max(own, 8.0 * width) + 8.0 * (width + 3 * (self.outputs or 1))
        self.home = home_of(X)
        if isinstance(self.X, FolderRows):
            self.files = tuple(zip(self.X.names, np.diff(self.X.first).tolist(), strict=True))

    def spans(self, size: int) -> list[tuple[int, int]]:
        if isinstance(self.X, RowSource):
            starts = self.X.starts(max(size - size % self.X.unit, min(size, self.X.unit))).tolist()
        else:
            starts = [*range(0, self.shape[0], size), self.shape[0]]
        return list(itertools.pairwise(starts))

    def blocks(self, start: int, stop: int) -> Iterator[LabelledBlock]:
        rows = self.X.read(start, stop) if isinstance(self.X, RowSource) else self.X[start:stop]
        yield LabelledBlock(start, rows.toarray() if is_sparse(rows) else rows, self.y.read(start, stop))

    def portion(self, start: int, stop: int) -> LabelledRows:
        if isinstance(self.y.values, RowSource):
            return self
        part = copy(self)
        part.y = _Labels(self.y.values[start:stop], self.outputs, start)
        return part

    def mark(self) -> str:
        X = f"{self.X.stamp()} {self.X.mark()}" if isinstance(self.X, RowSource) else _digest(self.X)
        return f"{self.shape} {X} {self.y.mark()}"


@dataclass(frozen=True)
class _Labels:
    """Labels of rows, from row `first` on: a vector or a matrix in memory, or a source of a matrix."""

    values: Any
    outputs: int | None
    first: int = 0

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def read(self, start: int, stop: int) -> Array:
        """The labels of some rows, as a matrix."""
        if isinstance(self.values, RowSource):
            rows = self.values.read(start, stop)
            return np.asarray(rows.toarray() if is_sparse(rows) else rows)
        own = self.values[start - self.first : stop - self.first]
        part = numbers(own, "y").reshape(stop - start, -1)
        return np.asarray(checked_block(part, start, stop - start, self.outputs or 1, "y"))

    def mark(self) -> str:
        if isinstance(self.values, RowSource):
            return f"{self.values.stamp()} {self.values.mark()}"
        return _digest(self.values)


def _source(X: Any, what: str) -> Any:
    """A source, or a matrix in memory."""
    if isinstance(X, str | os.PathLike) and Path(X).suffix != ".npy" and not os.path.isdir(X):
        return as_matrix(read_matrix(X, what), str(X))
    with as_damage(X, what):
        if not hasattr(X, "shape") and callable(getattr(X, "keys", None)):  # a file or a group of h5py or zarr
            names = ", ".join(itertools.islice(map(repr, X.keys()), 5))
            raise InvalidInputError(
                f"{what}: expected a matrix, got {type(X).__name__} with the arrays {names}; give an array"
            )
    source = as_source(X, what)
    return as_matrix(X, what) if source is None else source


def _labels(y: Any) -> _Labels:
    if isinstance(y, str | os.PathLike) and Path(y).suffix != ".npy" and not os.path.isdir(y):
        y = read_matrix(y, "y")
    if isinstance(y, np.memmap) and y.ndim == 1:
        y = y.reshape(-1, 1)
    source = as_source(y, "y", vectors=True)
    if source is not None:
        return _Labels(source, None if source.shape[1] == 1 else source.shape[1])
    values = one_column(any_array(y, "y"))
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise InvalidInputError(f"y: expected a label, or a row of labels, for each row, got shape {values.shape}")
    return _Labels(values, None if values.ndim == 1 else int(values.shape[1]))


def _digest(matrix: Any) -> str:
    """The SHA-256 of an array in memory, or of the parts of a sparse matrix."""
    total = sha256(f"{matrix.shape} {matrix.dtype}".encode())
    parts = (matrix.data, matrix.indices, matrix.indptr) if is_sparse(matrix) else (matrix,)
    for part in parts:
        array = np.ascontiguousarray(part)
        total.update(np.array(array.tolist(), dtype=str).data if array.dtype.kind == "O" else array.data)
    return total.hexdigest()


def labelled_rows(X: Any, y: Any) -> LabelledRows:
    """The rows and labels that a user gives: a Parquet file or a folder of them, or a matrix and labels.

    >>> labelled_rows(np.eye(3), [1.0, 2.0, 3.0]).shape
    (3, 3)
    """
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if path.suffix == ".parquet" or (os.path.isdir(path) and names_in(path, (".parquet",))):
            return ParquetRows(path, y)
        if not os.path.exists(path):
            raise ProblemFileError(f"{path}: no such file or folder")
    return MatrixRows(X, y)


# ---------------------------------------------------------------------------------------------------- tasks of rows


@dataclass(frozen=True)
class Owners:
    """The task of each row.

    Attributes:
        names: of the tasks, in order of their first row.
        counts: the number of rows of each task.
        codes: the number of the task of each row; None if the rows of task 0 come first, then those of task 1, ...
    """

    names: tuple[str, ...]
    counts: IntArray
    codes: Any

    def of(self, start: int, stop: int) -> IntArray:
        """The tasks of the rows from `start` to `stop`."""
        if self.codes is not None:
            return np.asarray(self.codes[start:stop], dtype=np.int64)
        ends = np.cumsum(self.counts)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right").tolist()
        own = slice(first, last + 1)
        inside = np.minimum(ends[own], stop) - np.maximum(ends[own] - self.counts[own], start)
        return np.repeat(np.arange(first, last + 1), inside)

    def mark(self) -> str:
        """A hash that identifies the tasks of the rows."""
        total = sha256(np.ascontiguousarray(self.counts).data)
        if self.codes is not None:
            total.update(self.codes.data)
        total.update("\0".join(self.names).encode(errors="surrogatepass"))
        return total.hexdigest()


def owners_of(rows: LabelledRows, groups: Any, sizes: Any, names: Sequence[str] | None) -> Owners:
    """The tasks of the rows: by a group for each row, by the number of rows of each task, or by files.

    >>> owners_of(labelled_rows(np.eye(3), [1.0, 2.0, 3.0]), None, [2, 1], None).of(1, 3)
    array([0, 1])
    """
    count = rows.shape[0]
    if groups is not None and sizes is not None:
        raise InvalidInputError("give groups= (a group for each row) or sizes= (rows of each task), not both")
    if groups is not None:
        given = rows.named_groups(groups) if isinstance(groups, str) else groups
        with as_damage(given, "groups"):
            stored = hasattr(given, "shape") and hasattr(given, "__getitem__") and not hasattr(given, "to_numpy")
            if stored and given.shape[:1] != (count,):
                raise InvalidInputError(
                    f"groups: expected one entry for each of {count} rows, got shape {given.shape!r:.60}"
                )
        if stored:
            require_memory(64.0 * count, f"the groups of {count} rows", "give sizes=")
            given = np.asarray(sliced(given, 0, count, "groups"))
        task_names, codes = group_codes(given, count)
        counts = np.bincount(codes)
        in_turn = not (codes[1:] < codes[:-1]).any()
        return Owners(_named(names, task_names), counts, None if in_turn else codes.astype(np.int32))
    if sizes is not None:
        counts = as_index(sizes, None, "sizes", least=1)
        if int(counts.sum()) != count:
            raise InvalidInputError(f"sizes: {int(counts.sum())} rows in all, but X has {count}")
        return Owners(_named(names, [str(m) for m in range(len(counts))]), counts, None)
    if not rows.files:
        raise InvalidInputError(
            "which rows form a task? Give groups= (a group for each row), sizes= (the number of rows of each task), or "
            "a folder with a file for each task"
        )
    task_names = [Path(name).stem for name, _ in rows.files]
    return Owners(_named(names, task_names), np.array([size for _, size in rows.files]), None)


def _named(names: Sequence[str] | None, task_names: list[str]) -> tuple[str, ...]:
    if names is not None and len(names) != len(task_names):
        raise InvalidInputError(f"{len(names)} names for {len(task_names)} tasks")
    return tuple(map(str, task_names if names is None else names))


# -------------------------------------------------------------------------------------------------------------- Parquet


class ParquetRows(LabelledRows):
    """The rows of Parquet files: columns of labels, a column of groups if there is one, and features.

    Features are all other columns, which hold numbers. A group of rows is read in parts of at most `size` rows.
    """

    def __init__(self, path: Path, y: Any) -> None:
        self.home = path
        names = listed(path, (".parquet",)) if os.path.isdir(path) else []
        self.paths = [path / name for name in names] or [path]
        self.labels = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
        if not self.labels or not all(isinstance(name, str) for name in self.labels):
            raise InvalidInputError(f"y: expected the name of a column of {path}, or a list of names, got {y!r:.60}")
        self.group: str | None = None
        self.columns: list[str] = []
        #: for each group of rows: its first row, the number of its rows, its file and its number there
        self.parts: list[tuple[int, int, int, int]] = []
        sizes, largest, count = [], 0.0, 0
        for number, file in enumerate(self.paths):
            with parquet_file(file) as opened:
                columns = opened.schema_arrow.names
                repeated = first_repeated(columns)
                if repeated is not None:
                    raise ProblemFileError(f"{file}: two columns are called {repeated!r:.60}")
                self.columns = self.columns or columns
                if columns != self.columns:
                    raise InvalidInputError(f"{file}: its columns are not those of {self.paths[0].name}")
                about = opened.metadata
                for group in range(about.num_row_groups):
                    rows = about.row_group(group).num_rows
                    if rows < 0:
                        raise ValueError(f"{rows} rows in group {group}")
                    largest = max(largest, about.row_group(group).total_byte_size / max(1, rows))
                    if rows:
                        self.parts.append((count, rows, number, group))
                    count += rows
                sizes.append(about.num_rows)
        self._check(self.labels, "y")
        self.files = tuple(zip(names, sizes, strict=False))  # none of a single file
        self.outputs = len(self.labels) if len(self.labels) > 1 else None
        if not count:
            raise InvalidInputError(f"{path}: columns without rows")
        self.shape = (count, len(self.features))
        self.row_bytes = 24.0 * len(self.columns) + largest

    @property
    def features(self) -> list[str]:
        """The names of the columns of X."""
        left = [name for name in self.columns if name not in self.labels and name != self.group]
        if not left:
            raise InvalidInputError(f"{self.home}: no column is left for X besides those of labels and groups")
        return left

    def _check(self, names: list[str], what: str) -> None:
        for name in names:
            if name not in self.columns:
                raise InvalidInputError(f"{what}: {self.home} has no column {name!r:.60}{nearest(name, self.columns)}")

    def named_groups(self, column: Any) -> Any:
        """The column of groups, which is then no feature: numbers, or words by their codes."""
        self._check([column], "groups")
        self.group = column
        self.shape = (self.shape[0], len(self.features))
        import pyarrow as pa

        chunks: list[Any] = []
        for file in self.paths:
            require_memory(32.0 * self.shape[0], f"{file}: the groups of {self.shape[0]} rows", "split the files")
            with parquet_file(file) as opened:
                part = opened.read(columns=[column]).column(0)
                part.validate(full=True)
                if pa.types.is_nested(part.type) or (chunks and part.type != chunks[0].type):
                    raise ProblemFileError(f"{file}, column {column!r:.60}: {part.type} is neither numbers nor words")
                chunks.extend(part.chunks)
        with _as_parquet_damage(self.paths[0]):
            return self._grouped(pa.chunked_array(chunks), column)

    def _grouped(self, groups: Any, column: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if groups.null_count:
            row = int(np.flatnonzero(np.asarray(pc.is_null(groups)))[0])
            raise InvalidInputError(f"groups: row {row} belongs to no group ({column!r:.60} is missing there)")
        if not pa.types.is_dictionary(groups.type) and not pa.types.is_string(groups.type):
            return groups.to_numpy()
        coded = groups if pa.types.is_dictionary(groups.type) else pc.dictionary_encode(groups)
        joined = coded.unify_dictionaries().combine_chunks()
        joined = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
        words = np.array(joined.dictionary.to_pylist())
        return words[np.asarray(joined.indices)]

    def spans(self, size: int) -> list[tuple[int, int]]:
        return [(first, first + rows) for first, rows, _, _ in self.parts]

    def blocks(self, start: int, stop: int) -> Iterator[LabelledBlock]:
        first, rows, number, group = next(part for part in self.parts if part[0] == start)
        wanted, width, file = [*self.features, *self.labels], len(self.features), self.paths[number]
        with parquet_file(file) as opened:
            for batch in opened.iter_batches(batch_size=self.batch, row_groups=[group], columns=wanted):
                both = self._numbers(batch, wanted, file)
                if first + len(both) > start + rows:
                    break
                X = checked_block(both[:, :width], first, len(both), width, "X")
                yield LabelledBlock(first, X, checked_block(both[:, width:], first, len(both), len(self.labels), "y"))
                first += len(both)
            else:
                if first == start + rows:
                    return
        raise ProblemFileError(f"{file}: damaged (group {group} does not have the {rows} rows that it announces)")

    @property
    def batch(self) -> int:
        """Rows that are converted at once: about 16 MiB of numbers."""
        return max(1, 2**21 // len(self.columns))

    def _numbers(self, batch: Any, wanted: list[str], file: Path) -> Array:
        both = np.empty((len(batch), len(wanted)), order="F")
        for place, name in enumerate(wanted):
            column = batch.column(name)
            kind = str(column.type)
            if not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool")):
                raise InvalidInputError(f"{file}, column {name!r:.60}: {kind}, expected numbers; leave the column out")
            both[:, place] = column.cast("float64").to_numpy(zero_copy_only=False)
        return both

    def mark(self) -> str:
        stamps = " ".join(file_stamp(file) for file in self.paths)
        return f"{self.shape} {self.columns} {self.labels} {self.group} {stamps}"


@contextmanager
def parquet_file(path: Path, **options: Any) -> Iterator[Any]:
    """The Parquet file at `path`, open in the block. Whatever goes wrong in the block is an error of the file."""
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise InvalidInputError("Parquet needs pyarrow: pip install 'forgetting[data]'") from error
    with open_regular(path) as handle, _as_parquet_damage(path):
        yield parquet.ParquetFile(handle, pre_buffer=False, **options)


@contextmanager
def _as_parquet_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except ForgettingError:
        raise
    except Exception as error:  # damage has many names
        raise ProblemFileError(f"{path}: cannot be read as Parquet ({one_line(str(error), 200)})") from error
