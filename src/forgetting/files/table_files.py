"""Files of tables: CSV and TSV, by pyarrow where it is installed and by Python elsewhere; Parquet, by pyarrow only."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.core.extras import module_for
from forgetting.core.groups import Groups
from forgetting.core.memory import require_memory
from forgetting.core.text import from_csv_cell
from forgetting.errors import ProblemFileError
from forgetting.files.arrays import as_text, read_bytes
from forgetting.files.row_sources import RowSource, file_stamp
from forgetting.files.tables import NAMELESS, Origin, RowTable, WordTable, cell_error, matrix_of, not_a_number

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # of which the first line has most
COLUMN, CELL = 6500, 130  # bytes that Arrow takes for a column of text, and Python for a cell; times are in proportion
WIDE = 1000  # columns from which on that matters


def arrow() -> Any:
    """The module that reads tables by pyarrow; None where pyarrow is not installed."""
    try:
        from forgetting.files import arrow_tables
    except ImportError:
        return None
    return arrow_tables


def arrow_for(what: str, instead: str) -> Any:
    """The module that reads tables by pyarrow; an error says `what` needs pyarrow, and what to do `instead`."""
    module_for(what, "pyarrow", instead)
    return arrow()


def arrow_for_parquet(path: Path) -> Any:
    """The module that reads Parquet files."""
    return arrow_for(f"{path}: a Parquet file", "save the table as CSV, or its columns with np.savez")


@dataclass(frozen=True)
class TextFile:
    """A text file with a header, and commas, semicolons or tabs between its columns."""

    path: Path
    data: bytes
    separator: str
    header: list[str]

    @classmethod
    def read(cls, path: Path) -> TextFile:
        """The file; an error if it is not in UTF-8, or if its cells would not fit into the memory."""
        data = read_bytes(path, f"the cells of {path}", "split the file, or save its columns with np.savez")
        as_text(path, data)
        first = data.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0].split(b"\r", 1)[0]
        separator = max(SEPARATORS, key=lambda mark: first.count(mark.encode()))
        header = next((row for _, row in cls(path, data, separator, []).rows()), [])
        return cls(path, data, separator, [from_csv_cell(word) for word in header])

    def table(self) -> RowTable:
        """The columns below the header.

        pyarrow is faster, but takes more memory and time for a column than Python for a few cells.
        """
        lines, columns = self.data.count(b"\n"), len(self.header)
        by_arrow = arrow() if columns <= WIDE or lines * CELL >= COLUMN else None
        needed = columns * (CELL * lines if by_arrow is None else COLUMN)
        require_memory(float(needed), f"the cells of {self.path}", "save its columns with np.savez")
        origin = Origin.file(self.path)
        if by_arrow is not None:
            table: RowTable | None = by_arrow.text_table(origin, self.header, self.data, self.separator, self.line)
            if table is not None:
                return table
        return WordTable(origin, self.header, self._columns(), self.line)

    def line(self, row: int) -> int:
        """The line of the file on which a row below the header ends."""
        return next((line for line, _ in islice(self.rows(), row + 1, None)), row + 2)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows as Python reads them, trimmed, without blank rows, each with its line in the file."""
        text = TextIOWrapper(BytesIO(self.data), encoding="utf-8-sig", newline="")
        rows = csv.reader(text, delimiter=self.separator)
        limit = csv.field_size_limit(max(csv.field_size_limit(), len(self.data)))  # as pyarrow has none
        try:
            for row in rows:
                if any(words := [word.strip() for word in row]):
                    yield rows.line_num, words
        except csv.Error as error:
            raise ProblemFileError(f"{self.path}: cannot be read as CSV ({error})") from error
        finally:
            csv.field_size_limit(limit)

    def _columns(self) -> list[Any]:
        """The columns below the header, each a tuple of words; an error names the first row that has other columns."""
        rows = []
        for line, row in self.rows():
            if len(row) != len(self.header):
                raise ProblemFileError(
                    f"{self.path}, row {line}: {len(row)} cells under {len(self.header)} columns{self._hint(row)}"
                )
            rows.append(row)
        if len(rows) == 1:
            raise ProblemFileError(f"{self.path}: a header without rows")
        return list(zip(*rows[1:], strict=True))

    def _hint(self, row: list[str]) -> str:
        """Why a row may have another number of cells than the header."""
        other, width = max(SEPARATORS, key=lambda mark: row[0].count(mark)), len(self.header)
        if len(row) == 1 and row[0].count(other) == width - 1:
            return (
                f"; the header has {SEPARATORS[self.separator]} between its columns, but this row has "
                f"{SEPARATORS[other]}"
            )
        if len(row) > width and self.separator == ",":
            return "; a comma within a number or a word separates columns too: decimals have a point, words need quotes"
        return ""


# ---------------------------------------------------------------------------------------------- Parquet, part by part


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
            numbers = matrix_of(table, range(len(self.names)), f"; {self.remedy}")
            if not np.isfinite(numbers).all():
                row, column = np.argwhere(~np.isfinite(numbers))[0].tolist()
                words = f"{not_a_number(numbers[row, column])}; fill it in, or leave such rows out"
                raise cell_error(table, row, column, words)
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
