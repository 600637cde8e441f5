"""Rows with labels that are read part by part, from matrices and from Parquet files, and the task of each row."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, any_array, as_index, is_sparse, one_column
from forgetting.core.groups import Groups, group_codes
from forgetting.core.memory import require_memory
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.matrices import as_matrix, read_matrix
from forgetting.files.matrix_sources import (
    as_damage,
    as_source,
    home_of,
    is_read_whole,
    listed,
    names_in,
    sliced,
)
from forgetting.files.parquet_rows import ParquetColumns, groups_in
from forgetting.files.row_sources import FolderRows, MemoryRows, RowSource


class LabelledBlock(NamedTuple):
    """Some rows: the number of the first, the dense rows, and their labels as a matrix."""

    start: int
    X: Array
    y: Array


class LabelledRows:
    """Rows with labels, read part by part.

    Attributes:
        X, y: the rows, and their labels as a matrix.
        outputs: the number of labels of a row; None if labels are single numbers.
        home: the file or folder of the rows; None if it is not known.
        groups: of a column of the data that names the group of each row: the groups.
        shape: the numbers of rows and of columns.
        row_bytes: the memory that a row takes while it is read.
        files: the names and numbers of rows of the files, if the rows are in a folder.
    """

    def __init__(
        self, X: RowSource, y: RowSource, outputs: int | None, home: Path | None, groups: Groups | None = None
    ) -> None:
        self.X, self.y, self.outputs, self.home, self.groups = X, y, outputs, home, groups
        self.shape = count, width = X.shape
        if y.shape[0] != count:
            raise InvalidInputError(f"X has {count} rows, but y has {y.shape[0]}")
        self.row_bytes = max(X.row_bytes, 8.0 * width) + 8.0 * (width + 3 * (outputs or 1))
        self.files: tuple[tuple[str, int], ...] = ()
        if isinstance(X, FolderRows):
            self.files = tuple(zip(X.names, np.diff(X.first).tolist(), strict=True))

    def spans(self, size: int) -> list[tuple[int, int]]:
        """The first row of each part and the row after its last, for parts of about `size` rows."""
        return list(itertools.pairwise(self.X.starts(max(size - size % self.X.unit, min(size, self.X.unit))).tolist()))

    def blocks(self, start: int, stop: int) -> Iterator[LabelledBlock]:
        """The rows of a part."""
        for rows, labels in zip(self.X.pieces(start, stop), self.y.pieces(start, stop), strict=True):
            yield LabelledBlock(start, _dense(rows), _dense(labels))
            start += rows.shape[0]

    def portion(self, start: int, stop: int) -> LabelledRows:
        """An object that gives these rows and is small when it is sent to another process."""
        part = copy(self)
        part.X, part.y, part.groups = self.X.portion(start, stop), self.y.portion(start, stop), None
        return part

    def mark(self) -> str:
        """A text that identifies rows and labels, at little cost: sizes and times of files, and some rows."""
        return f"{self.shape} {self.X.identity()} {self.y.identity()}"


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if is_sparse(rows) else rows)


def _source(X: Any, what: str) -> RowSource:
    if is_read_whole(X):
        return MemoryRows(as_matrix(read_matrix(X, what), str(X)), what)
    with as_damage(X, what):
        if not hasattr(X, "shape") and callable(getattr(X, "keys", None)):  # a file or a group of h5py or zarr
            names = ", ".join(itertools.islice(map(repr, X.keys()), 5))
            raise InvalidInputError(
                f"{what}: expected a matrix, got {type(X).__name__} with the arrays {names}; give an array"
            )
    return as_source(X, what) or MemoryRows(as_matrix(X, what), what)


#: the end of an error about labels that are words, and about classes=
NO_CLASSES = (
    "from_source learns labels as numbers, since classes would be known after the last row only, and its factors have "
    "no accuracy; give a column of 0 and 1 for each class, or rows in memory to fg.load"
)


def _labels(y: Any) -> tuple[RowSource, int | None]:
    """The labels as a matrix, and the number of labels of a row; None if they are single numbers."""
    if is_read_whole(y):
        y = read_matrix(y, "y")
    if isinstance(y, np.memmap) and y.ndim == 1:
        y = y.reshape(-1, 1)
    source = as_source(y, "y", vectors=True)
    if source is not None:
        return source, None if source.shape[1] == 1 else source.shape[1]
    values = one_column(any_array(y, "y"))
    first = values.ravel()[:1].tolist()
    if first and isinstance(first[0], str):
        raise InvalidInputError(f"y: {first[0]!r:.40} is not a number; {NO_CLASSES}")
    if values.ndim not in (1, 2) or 0 in values.shape:
        raise InvalidInputError(f"y: expected a label, or a row of labels, for each row, got shape {values.shape}")
    return MemoryRows(values, "y"), None if values.ndim == 1 else int(values.shape[1])


def labelled_rows(X: Any, y: Any, groups: Any = None) -> LabelledRows:
    """The rows and labels that a user gives: a Parquet file or a folder of them, or a matrix and labels.

    `groups` may be the name of a column of Parquet files; everything else is left to `owners_of`.

    >>> labelled_rows(np.eye(3), [1.0, 2.0, 3.0]).shape
    (3, 3)
    """
    named = groups if isinstance(groups, str) else None
    if isinstance(X, str | os.PathLike):
        path = Path(X)
        if path.suffix == ".parquet" or (os.path.isdir(path) and names_in(path, (".parquet",))):
            return _parquet_rows(path, y, named)
        if not os.path.exists(path):
            raise ProblemFileError(f"{path}: no such file or folder")
    if named is not None:
        raise InvalidInputError(f"groups: {named!r:.60} names a column, but X has none; give an entry for each row")
    return LabelledRows(_source(X, "X"), *_labels(y), home_of(X))


def _parquet_rows(path: Path, y: Any, group: str | None) -> LabelledRows:
    """The rows of Parquet files: columns of labels, a column of groups if there is one, and features.

    Features are all other columns, which hold numbers.
    """
    labels = [y] if isinstance(y, str) else list(y) if isinstance(y, list | tuple) else []
    if not labels or not all(isinstance(name, str) for name in labels):
        raise InvalidInputError(f"y: expected the name of a column of {path}, or a list of names, got {y!r:.60}")
    names = listed(path, (".parquet",)) if os.path.isdir(path) else []
    files = [ParquetColumns(path / name) for name in names] or [ParquetColumns(path)]
    columns = files[0].names
    odd = next((file for file in files if file.names != columns), None)
    if odd is not None:
        raise InvalidInputError(f"{odd.path}: its columns are not those of {files[0].path.name}")
    for what, wanted in (("y", labels), ("groups", [] if group is None else [group])):
        for name in wanted:
            if name not in columns:
                raise InvalidInputError(f"{what}: {path} has no column {name!r:.60}{nearest(name, columns)}")
    features = [name for name in columns if name not in labels and name != group]
    if not features:
        raise InvalidInputError(f"{path}: no column is left for X besides those of labels and groups")
    if not any(file.shape[0] for file in files):
        raise ProblemFileError(f"{path}: columns without rows")

    def joined(wanted: list[str], what: str, remedy: str = ParquetColumns.remedy) -> RowSource:
        parts: list[RowSource] = [file.only(wanted, remedy) for file in files]
        source = FolderRows(parts, names) if names else parts[0]
        source.what = what
        return source

    outputs = len(labels) if len(labels) > 1 else None
    named = None if group is None else groups_in(files, group)
    return LabelledRows(joined(features, "X"), joined(labels, "y", NO_CLASSES), outputs, path, named)


# ---------------------------------------------------------------------------------------------------- tasks of rows


@dataclass(frozen=True)
class Owners:
    """The task of each row.

    Attributes:
        names: of the tasks.
        counts: the number of rows of each task.
        codes: the number of the task of each row; None if the rows of task 0 come first, then those of task 1, ...
        notes: a note on the order of the tasks, if rows name theirs.
    """

    names: tuple[str, ...]
    counts: IntArray
    codes: Any
    notes: tuple[str, ...] = ()

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
        known = rows.groups or _given_groups(groups, count)
        called = _named(names, known.names)
        codes = known.codes.astype(np.int32) if known.mixed else None
        return Owners(called, np.bincount(known.codes), codes, known.told(called, stacklevel=4))
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


def _given_groups(groups: Any, count: int) -> Groups:
    """The groups that are given for all rows."""
    with as_damage(groups, "groups"):
        stored = hasattr(groups, "shape") and hasattr(groups, "__getitem__") and not hasattr(groups, "to_numpy")
        if stored and groups.shape[:1] != (count,):
            raise InvalidInputError(
                f"groups: expected one entry for each of {count} rows, got shape {groups.shape!r:.60}"
            )
    if stored:
        require_memory(64.0 * count, f"the groups of {count} rows", "give sizes=")
        groups = np.asarray(sliced(groups, 0, count, "groups"))
    return group_codes(groups, count)


def _named(names: Sequence[str] | None, task_names: list[str]) -> tuple[str, ...]:
    if names is not None and len(names) != len(task_names):
        raise InvalidInputError(f"{len(names)} names for {len(task_names)} tasks")
    return tuple(map(str, task_names if names is None else names))
