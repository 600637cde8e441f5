"""Text files of tables, read by pyarrow where it is installed and by Python elsewhere; pyarrow for Parquet files."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO, TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any

from forgetting.core.extras import module_for
from forgetting.core.memory import require_memory
from forgetting.core.text import from_csv_cell
from forgetting.errors import ProblemFileError
from forgetting.files.arrays import as_text, read_bytes
from forgetting.files.tables import Origin, RowTable, WordTable, parse_number

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


def _first_line(data: bytes) -> bytes:
    return data.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0].split(b"\r", 1)[0]


@dataclass(frozen=True)
class TextFile:
    """A text file with a header, and commas, semicolons or tabs between its columns.

    Attributes:
        above: the rows above those of the table: 1 for the header, 0 if columns have numbers for names.
    """

    path: Path
    data: bytes
    separator: str
    header: list[str]
    above: int = 1

    @classmethod
    def read(cls, path: Path) -> TextFile:
        """The file; an error if it is not in UTF-8, or if its cells would not fit into the memory."""
        data = read_bytes(path, f"the cells of {path}", "split the file, or save its columns with np.savez")
        as_text(path, data)
        separator = max(SEPARATORS, key=lambda mark: _first_line(data).count(mark.encode()))
        header = next((row for _, row in cls(path, data, separator, []).rows()), [])
        return cls(path, data, separator, [from_csv_cell(word) for word in header])

    @classmethod
    def of_numbers(cls, path: Path) -> TextFile:
        """A file of numbers, whose first row may be one; there may be blanks between its columns, too.

        A first row without a number is above the table, whatever it holds.
        """
        file = cls.read(path)
        if not any(mark.encode() in _first_line(file.data) for mark in SEPARATORS):
            file = replace(file, data=b"\n".join(b",".join(line.split()) for line in file.data.splitlines()))
        first, *more = [row for _, row in islice(file.rows(), 2)] or [[]]
        named = all(parse_number(word) is None for word in first)
        below = more[0] if named and more else first
        names = first if named and len(first) == len(below) else [str(place) for place in range(len(below))]
        return replace(file, header=names, above=int(named))

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
            table: RowTable | None = by_arrow.text_table(
                origin, self.header, self.data, self.separator, self.line, above=self.above
            )
            if table is not None:
                return table
        return WordTable(origin, self.header, self._columns(), self.line)

    def line(self, row: int) -> int:
        """The line of the file on which a row of the table ends."""
        return next((line for line, _ in islice(self.rows(), row + self.above, None)), row + self.above + 1)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The rows as Python reads them, trimmed, without blank rows, each with its line in the file."""
        text = TextIOWrapper(BytesIO(self.data), encoding="utf-8-sig", newline="")
        rows = csv.reader(text, delimiter=self.separator)
        limit = csv.field_size_limit(max(csv.field_size_limit(), len(self.data)))  # as pyarrow has none
        try:
            for row in rows:
                if any(words := list(map(str.strip, row))):
                    yield rows.line_num, words
        except csv.Error as error:
            raise ProblemFileError(f"{self.path}: cannot be read as CSV ({error})") from error
        finally:
            csv.field_size_limit(limit)

    def _columns(self) -> list[Any]:
        """The columns below the header, each a tuple of words; an error names the first row that has other columns."""
        rows = []
        for line, row in islice(self.rows(), self.above, None):
            if len(row) != len(self.header):
                raise ProblemFileError(
                    f"{self.path}, row {line}: {len(row)} cells under {len(self.header)} columns{self._hint(row)}"
                )
            rows.append(row)
        if not rows:
            raise ProblemFileError(f"{self.path}: a header without rows")
        return list(zip(*rows, strict=True))

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
