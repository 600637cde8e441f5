"""Rows of Parquet files, read part by part, and the groups that a column of them names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.core.groups import Groups
from forgetting.errors import ProblemFileError
from forgetting.files.row_sources import RowSource, file_stamp
from forgetting.files.table_files import arrow_for_parquet
from forgetting.files.tables import NAMELESS, Origin, cell_error, finite_matrix_of


class ParquetColumns(RowSource):
    """The numbers in columns of a Parquet file; blocks are groups of rows, and pieces are parts of a group."""

    remedy = "give numbers, or leave the column out"  # for a column of words

    def __init__(self, path: Path) -> None:
        self.path = path
        with arrow_for_parquet(path).parquet_file(path) as (file, _):
            self.names: list[str] = file.schema_arrow.names
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            counts = [group.num_rows for group in groups]
            if min(counts, default=0) < 0:
                raise ValueError(f"{min(counts)} rows in a group")
            self.packed = max((group.total_byte_size / max(1, group.num_rows) for group in groups), default=0.0)
        Origin.file(path).require_distinct(self.names)
        self.first = np.cumsum([0, *counts])
        self.size = max(1, 2**21 // max(1, len(self.names)))  # rows of a piece: about 16 MiB of numbers
        self.shape = (int(self.first[-1]), len(self.names))
        self.row_bytes = 16.0 * len(self.names) + self.packed

    def only(self, names: list[str], remedy: str = remedy) -> ParquetColumns:
        """The same, with these columns only, and what to do if they hold words."""
        some = copy(self)
        some.remedy = remedy
        some.names, some.shape = names, (self.shape[0], len(names))
        some.row_bytes = 16.0 * len(names) + self.packed
        return some

    def starts(self, size: int) -> IntArray:
        return np.unique(self.first)

    def _raw(self, start: int, stop: int) -> Any:
        return np.concatenate([numbers for numbers, _ in self._raw_pieces(start, stop)])

    def _raw_pieces(self, start: int, stop: int) -> Iterator[tuple[Any, int]]:
        groups = np.flatnonzero((self.first[:-1] >= start) & (self.first[:-1] < stop)).tolist()
        done = start
        for table in arrow_for_parquet(self.path).parquet_parts(self.path, groups, self.names, self.size, start):
            numbers = finite_matrix_of(table, f"; {self.remedy}")
            done += len(numbers)
            if done <= stop:
                yield numbers, len(numbers)
        if done != stop:
            raise ProblemFileError(f"{self.path}: damaged ({done - start} rows where {stop - start} are announced)")

    def stamp(self) -> str:
        return file_stamp(self.path)

    def mark(self) -> str:
        """The names of the columns; what is in them is known by the stamp of the file."""
        return repr(self.names)


def groups_in(files: Sequence[ParquetColumns], column: str) -> Groups:
    """The groups that a column of words or numbers names."""
    names: dict[str, int] = {}
    parts = []
    for file in files:
        if not file.shape[0]:
            continue
        table = arrow_for_parquet(file.path).parquet_table(file.path, [column])
        codes, words = table.coded(0)
        if len(codes) != file.shape[0]:
            raise ProblemFileError(f"{file.path}: damaged ({len(codes)} rows where {file.shape[0]} are announced)")
        for row in np.sort(np.unique(codes, return_index=True)[1]).tolist():
            if words[codes[row]].lower() in NAMELESS:
                raise cell_error(table, row, 0, "no task is named; fill it in, or leave such rows out")
            names.setdefault(words[codes[row]], len(names))
        parts.append(np.array([names.get(word, -1) for word in words])[codes])
    return Groups.in_order(list(names), np.concatenate(parts))
