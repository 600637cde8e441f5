"""Rows with labels in a Parquet file, or in the Parquet files of a folder, read group by group of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting._text import nearest, one_line
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.sources.blocks import checked_block
from forgetting.sources.labelled import Block, LabelledRows
from forgetting.sources.readers import file_stamp, listed
from forgetting.storage.arrays import open_regular

__all__ = ["ParquetRows"]


class ParquetRows(LabelledRows):
    """The rows of Parquet files: columns of labels, a column of groups if there is one, and features.

    Features are all other columns, which hold numbers. A group of rows is read in parts of at most `size` rows.
    """

    def __init__(self, path: Path, y: Any) -> None:
        self.home = path
        names = [name.name for name in [path]] if path.is_file() else listed(path, (".parquet",))
        self.paths = [path] if path.is_file() else [path / name for name in names]
        self.labels = [y] if isinstance(y, str) else list(y)
        if not self.labels or not all(isinstance(name, str) for name in self.labels):
            raise InvalidInputError(f"y: expected the name of a column of {path}, or a list of names, got {y!r:.60}")
        self.group: str | None = None
        self.columns: list[str] = []
        #: for each group of rows: its first row, the number of its rows, its file and its number there
        self.parts: list[tuple[int, int, int, int]] = []
        sizes, largest, count = [], 0.0, 0
        for number, file in enumerate(self.paths):
            with _opened(file) as found:
                columns = found.schema_arrow.names
                self.columns = self.columns or columns
                if columns != self.columns:
                    raise InvalidInputError(f"{file}: its columns are not those of {self.paths[0].name}")
                about = found.metadata
                for group in range(about.num_row_groups):
                    rows = about.row_group(group).num_rows
                    largest = max(largest, about.row_group(group).total_byte_size / max(1, rows))
                    if rows:
                        self.parts.append((count, rows, number, group))
                    count += rows
                sizes.append(about.num_rows)
        self._check(self.labels, "y")
        self.files = tuple(zip(names, sizes, strict=True)) if path.is_dir() else ()
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
        import pyarrow.compute as pc

        found = []
        for file in self.paths:
            with _opened(file) as opened:
                found.append(opened.read(columns=[column]).column(0))
        whole = pa.chunked_array([chunk for part in found for chunk in part.chunks])
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
        first, _, number, group = next(part for part in self.parts if part[0] == start)
        wanted = [*self.features, *self.labels]
        with _opened(self.paths[number]) as found:
            for batch in found.iter_batches(batch_size=self.batch, row_groups=[group], columns=wanted):
                both = self._numbers(batch, wanted, self.paths[number])
                width = len(self.features)
                X = checked_block(both[:, :width], first, len(both), width, "X")
                yield Block(first, X, checked_block(both[:, width:], first, len(both), len(self.labels), "y"))
                first += len(both)

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


class _Opened:
    """A Parquet file, open in a block; errors of pyarrow name the file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> Any:
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise InvalidInputError("Parquet needs pyarrow: pip install 'forgetting[data]'") from error
        self.handle = open_regular(self.path)
        try:
            return parquet.ParquetFile(self.handle, pre_buffer=False)
        except Exception as error:  # damage has many names
            self.handle.close()
            raise self._error(error) from error

    def __exit__(self, kind: Any, error: Any, _: Any) -> None:
        self.handle.close()
        if error is not None and not isinstance(error, ForgettingError) and "pyarrow" in type(error).__module__:
            raise self._error(error) from error

    def _error(self, error: Exception) -> ProblemFileError:
        return ProblemFileError(f"{self.path}: cannot be read as Parquet ({one_line(str(error), 200)})")


def _opened(path: Path) -> _Opened:
    return _Opened(path)
