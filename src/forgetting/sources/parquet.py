"""Rows with labels in a Parquet file, or in the Parquet files of a folder, read group by group of rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.core.text import nearest, one_line
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.sources.blocks import checked_block
from forgetting.sources.labelled import Block, LabelledRows
from forgetting.sources.readers import file_stamp, listed
from forgetting.storage.arrays import open_regular

__all__ = ["ParquetRows", "parquet_file"]


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
            with parquet_file(file) as found:
                columns = found.schema_arrow.names
                repeated = next((name for name, times in Counter(columns).items() if times > 1), None)
                if repeated is not None:
                    raise ProblemFileError(f"{file}: two columns are called {repeated!r:.60}")
                self.columns = self.columns or columns
                if columns != self.columns:
                    raise InvalidInputError(f"{file}: its columns are not those of {self.paths[0].name}")
                about = found.metadata
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
        found = [name for name in self.columns if name not in self.labels and name != self.group]
        if not found:
            raise InvalidInputError(f"{self.home}: no column is left for X besides those of labels and groups")
        return found

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

        found: list[Any] = []
        for file in self.paths:
            require_memory(32.0 * self.shape[0], f"{file}: the groups of {self.shape[0]} rows", "split the files")
            with parquet_file(file) as opened:
                part = opened.read(columns=[column]).column(0)
                part.validate(full=True)
                if pa.types.is_nested(part.type) or (found and part.type != found[0].type):
                    raise ProblemFileError(f"{file}, column {column!r:.60}: {part.type} is neither numbers nor words")
                found.extend(part.chunks)
        with _as_damage(self.paths[0]):
            return self._grouped(pa.chunked_array(found), column)

    def _grouped(self, whole: Any, column: str) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        if whole.null_count:
            row = int(np.flatnonzero(np.asarray(pc.is_null(whole)))[0])
            raise InvalidInputError(f"groups: row {row} belongs to no group ({column!r:.60} is missing there)")
        if not pa.types.is_dictionary(whole.type) and not pa.types.is_string(whole.type):
            return whole.to_numpy()
        coded = whole if pa.types.is_dictionary(whole.type) else pc.dictionary_encode(whole)
        joined = coded.unify_dictionaries().combine_chunks()
        joined = joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined
        words = np.array(joined.dictionary.to_pylist())
        return words[np.asarray(joined.indices)]

    def spans(self, size: int) -> list[tuple[int, int]]:
        return [(first, first + rows) for first, rows, _, _ in self.parts]

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        first, rows, number, group = next(part for part in self.parts if part[0] == start)
        wanted, width, file = [*self.features, *self.labels], len(self.features), self.paths[number]
        with parquet_file(file) as found:
            for batch in found.iter_batches(batch_size=self.batch, row_groups=[group], columns=wanted):
                both = self._numbers(batch, wanted, file)
                if first + len(both) > start + rows:
                    break
                X = checked_block(both[:, :width], first, len(both), width, "X")
                yield Block(first, X, checked_block(both[:, width:], first, len(both), len(self.labels), "y"))
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
    with open_regular(path) as handle, _as_damage(path):
        yield parquet.ParquetFile(handle, pre_buffer=False, **options)


@contextmanager
def _as_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except ForgettingError:
        raise
    except Exception as error:  # damage has many names
        raise ProblemFileError(f"{path}: cannot be read as Parquet ({one_line(str(error), 200)})") from error
