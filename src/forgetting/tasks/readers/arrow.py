"""The rows of CSV, TSV and Parquet files and of Arrow tables, by pyarrow; Python looks at a cell only to name it.

Only this module needs pyarrow. Numbers are rounded correctly: a cell is the float64 that Python reads from it.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from io import BytesIO, TextIOWrapper
from itertools import islice
from os import fstat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.core.text import from_csv_cell, one_line
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.labelled_rows import parquet_file
from forgetting.tasks.readers.sheet import (
    NOTHING,
    Columns,
    Origin,
    Sheet,
    column_numbers,
    column_places,
    column_words,
    parse_number,
    sheet_of,
)

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}  # of which the first line has most
BLOCK = 2**26  # bytes of text that pyarrow splits into rows at a time; no row may be longer
COLUMN, CELL = 6500, 130  # bytes that Arrow takes for a column of text, and Python for a cell; times are in proportion
WIDE = 1000  # columns from which on that matters


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """Columns of Arrow, as a `RowTable`."""

    origin: Origin
    names: list[str]
    columns: list[Any]
    place: Callable[[int], int]

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        """A column as float64, NaN where a number is missing, and in which rows it has other words."""
        try:
            return _numbers(self.columns[column])
        except pa.ArrowNotImplementedError:
            raise self._refusal(column, "is not a number") from None

    def words(self, column: int) -> list[str]:
        """A column as words, "" where a value is missing; equal words are one object."""
        try:
            codes, kinds = _encoded(self.columns[column])
            words = pc.utf8_trim_whitespace(pc.cast(kinds, pa.string())).to_pylist()
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise self._refusal(column, "is neither numbers nor words") from None
        words = ["" if word is None else word for word in [*words, None]]
        return [words[code] for code in codes.tolist()]

    def _refusal(self, column: int, words: str) -> ForgettingError:
        return self.origin.refusal(f", column {self.names[column]!r:.60}: {self.columns[column].type} {words}")


@dataclass(frozen=True, eq=False)
class TextTable(ArrowTable):
    """Columns of a text file; words that look like formulas have an apostrophe before them there."""

    def words(self, column: int) -> list[str]:
        """A column as words, "" where a value is missing; equal words are one object."""
        words = super().words(column)
        plain = {word: from_csv_cell(word) for word in set(words)}
        return [plain[word] for word in words]


@dataclass(frozen=True, eq=False)
class WideTable(ArrowTable):
    """Columns of few words each, as a `RowTable`: Arrow needs more memory and time for a column than for many cells."""

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        """A column as float64, NaN where a number is missing, and in which rows it has other words."""
        return column_numbers(np.array(self.columns[column], dtype=object))

    def words(self, column: int) -> list[str]:
        """A column as words, "" where a value is missing; equal words are one object."""
        return column_words(np.array([from_csv_cell(word) for word in self.columns[column]], dtype=object))


def read_text(path: Path, columns: Columns, several: bool) -> Sheet:
    """The rows of a text file with a header, and commas, semicolons or tabs between its columns."""
    with open_regular(path) as opened:
        size = fstat(opened.fileno()).st_size
        require_memory(8.0 * size, f"the cells of {path}", "split the file, or save its columns with np.savez")
        data = opened.read()
    try:
        data.decode()
    except UnicodeDecodeError as error:
        what = f"{data[error.start : error.start + 1]!r} at byte {error.start}"
        raise ProblemFileError(f"{path}: not in UTF-8 ({what}); save it as UTF-8") from None
    separator = _separator(data)
    header = [from_csv_cell(word) for word in next((row for _, row in _records(path, data, separator)), [])]
    _check_header(path, header, columns)
    column_places(Origin.file(path), header, columns, several)  # a wrong name explains whatever else is wrong
    wide = len(header) > WIDE and data.count(b"\n") * CELL < COLUMN
    needed = len(header) * (CELL * data.count(b"\n") if wide else COLUMN)
    require_memory(float(needed), f"the cells of {path}", "save its columns with np.savez")
    kind, read_cells = (WideTable, _text_rows) if wide else (TextTable, _text_columns)
    cells = read_cells(path, data, separator, header)
    if not len(cells[0]):
        raise ProblemFileError(f"{path}: a header without rows")
    return sheet_of(kind(Origin.file(path), header, cells, partial(_line, path, data, separator)), columns, several)


def read_parquet(path: Path, columns: Columns, several: bool) -> Sheet:
    """The rows of a Parquet file; numbers of any type, and words that spell numbers, become float64."""
    with parquet_file(path) as file:
        schema, sizes = file.schema_arrow, file.metadata
        groups = [sizes.row_group(i).total_byte_size for i in range(sizes.num_row_groups)]
        needed = float(max(16 * sizes.num_rows * max(1, sizes.num_columns), 2 * sum(groups)))
        require_memory(needed, f"the cells of {path}", "split the file, or leave columns out")
        words = [field.name for field in schema if pa.types.is_string(field.type)]
    with parquet_file(path, read_dictionary=words) as file:  # words as codes: a long word is unpacked once
        table = file.read()
        table.validate(full=True)
    return _sheet(Origin.file(path), table, columns, several)


def read_stream(source: Any, origin: Origin, columns: Columns) -> Sheet:
    """The rows of an object with the Arrow stream protocol or the DataFrame interchange protocol."""
    try:
        if hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
        else:
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise origin.refusal(f": not a table that pyarrow can read ({one_line(str(error), 200)})") from error
    return _sheet(origin, pa.table([_plain(column) for column in table.columns], table.column_names), columns, False)


def _plain(column: Any) -> Any:
    """A column without views of words, which the functions of older pyarrow do not know."""
    return pa.array(column.to_pylist(), pa.string()) if pa.types.is_string_view(column.type) else column


def _sheet(origin: Origin, table: Any, columns: Columns, several: bool) -> Sheet:
    if not len(table):
        raise origin.refusal(": columns without rows")
    return sheet_of(ArrowTable(origin, table.column_names, table.columns, lambda row: row), columns, several)


# ------------------------------------------------------------------------------------------------------------- text


def _text_columns(path: Path, data: bytes, separator: str, header: list[str]) -> list[Any]:
    """The columns below the header as trimmed words, without the rows in which every cell is blank."""
    names = [str(i) for i in range(len(header))]
    filling = str.maketrans({separator: " ", '"': " "})
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            pa.csv.ReadOptions(column_names=names, block_size=BLOCK),
            pa.csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.translate(filling).strip() else "skip",
            ),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[]),
        )
    except pa.ArrowException as error:
        _text_rows(path, data, separator, header)
        raise ProblemFileError(f"{path}: cannot be read as CSV ({one_line(str(error), 200)})") from error
    columns = [pc.utf8_trim_whitespace(column) for column in table.columns]
    kept = np.ones(len(table), dtype=bool)
    if pc.any(pc.equal(columns[-1], "")).as_py():
        kept &= ~np.logical_and.reduce([np.asarray(pc.equal(column, "")) for column in columns])
    kept[np.argmax(kept)] = False  # the header
    return [column.filter(pa.array(kept)) for column in columns]  # not a slice: if_else of pyarrow 17 errs on those


def _text_rows(path: Path, data: bytes, separator: str, header: list[str]) -> list[Any]:
    """The columns below the header, each a tuple of words; an error names the first row that has other columns."""
    rows = []
    for line, row in _records(path, data, separator):
        if len(row) != len(header):
            hint = _hint(row, len(header), separator)
            raise ProblemFileError(f"{path}, row {line}: {len(row)} cells under {len(header)} columns{hint}")
        rows.append(row)
    return list(zip(*rows[1:], strict=True)) or [()]


def _check_header(path: Path, header: list[str], columns: Columns) -> None:
    """Raise if the first line is no header: empty, not separated as expected, or numbers."""
    if not header:
        raise ProblemFileError(f"{path}: the file is empty")
    if len(header) == 1:
        raise ProblemFileError(
            f"{path}: commas, semicolons and tabs were tried as separators, but the first line is one column, "
            f"{header[0]!r:.60}; save the file with one of them between columns"
        )
    numbers = [word for word in header if parse_number(word) is not None]
    fractions = [word for word in numbers if not word.isdecimal()]  # columns may be called 0, 1, 2, ...
    if columns.label not in header and (len(numbers) == len(header) or 2 * len(fractions) > len(header)):
        raise ProblemFileError(
            f"{path}: its first line holds numbers ({', '.join(header[:3])}, ...); begin the file with the names of "
            f"its columns, such as {columns.task},a,b,{columns.label}"
        )


def _hint(row: list[str], width: int, separator: str) -> str:
    """Why a row may have another number of cells than the header."""
    other = max(SEPARATORS, key=lambda mark: row[0].count(mark))
    if len(row) == 1 and row[0].count(other) == width - 1:
        return f"; the header has {SEPARATORS[separator]} between its columns, but this row has {SEPARATORS[other]}"
    if len(row) > width and separator == ",":
        return "; a comma within a number or a word separates columns too: decimals have a point, words need quotes"
    return ""


def _separator(data: bytes) -> str:
    """The separator that the first line has most of."""
    first = data.lstrip(b"\xef\xbb\xbf\r\n").split(b"\n", 1)[0].split(b"\r", 1)[0]
    return max(SEPARATORS, key=lambda separator: first.count(separator.encode()))


def _records(path: Path, data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """The rows as Python reads them, without blank rows, each with its line in the file."""
    rows = csv.reader(TextIOWrapper(BytesIO(data), encoding="utf-8-sig", newline=""), delimiter=separator)
    try:
        for row in rows:
            if any(words := [word.strip() for word in row]):
                yield rows.line_num, words
    except csv.Error as error:
        raise ProblemFileError(f"{path}: cannot be read as CSV ({error})") from error


def _line(path: Path, data: bytes, separator: str, row: int) -> int:
    """The line of the file on which a row below the header ends."""
    return next((line for line, _ in islice(_records(path, data, separator), row + 1, None)), row + 2)


# ---------------------------------------------------------------------------------------------------------- columns


def _numbers(column: Any) -> tuple[Array, NDArray[np.bool_]]:
    """A column as float64, NaN where a number is missing, and in which rows it has other words."""
    if pa.types.is_dictionary(column.type):
        codes, kinds = _encoded(column)
        numbers, wrong = _numbers(kinds)
        return np.append(numbers, np.nan)[codes], np.append(wrong, False)[codes]
    for blanked in (False, True):  # most columns have no missing number, and need no second look
        try:
            numbers = np.asarray(pc.cast(_without_nothing(column) if blanked else column, pa.float64(), safe=False))
            return numbers, np.zeros(len(numbers), dtype=bool)
        except pa.ArrowInvalid:
            continue
    parsed = [np.nan if word is None else parse_number(word) for word in _without_nothing(column).to_pylist()]
    return (
        np.array([np.nan if number is None else number for number in parsed]),
        np.array([number is None for number in parsed]),
    )


def _without_nothing(column: Any) -> Any:
    """Words with null for each spelling of a missing number."""
    return pc.if_else(pc.is_in(pc.utf8_lower(column), value_set=pa.array(NOTHING)), None, column)


def _encoded(column: Any) -> tuple[NDArray[np.int64], Any]:
    """A column as a code for each row, -1 where a value is missing, and the distinct values."""
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    coded = pa.chunked_array(column).unify_dictionaries().combine_chunks()
    return np.asarray(pc.fill_null(pc.cast(coded.indices, pa.int64()), -1)), coded.dictionary
