"""The rows of CSV, TSV and Parquet files, read by pyarrow; Python looks at single cells only to name a wrong one.

Only this module needs pyarrow. Numbers are rounded correctly: a cell is the float64 that Python reads from it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
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
import pyarrow.parquet
from numpy.typing import NDArray

from forgetting._arrays import Array
from forgetting._memory import require_memory
from forgetting._text import one_line
from forgetting.auditing.file_rows import NOTHING, Sheet, column_places, parse_number
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.storage.arrays import open_regular

__all__ = ["read_parquet", "read_text"]

SEPARATORS = (",", ";", "\t")  # of which the first line has most
BLOCK = 2**26  # bytes of text that pyarrow splits into rows at a time; no row may be longer


def read_text(path: Path, task: str, label: str, several: bool) -> Sheet:
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
    header = next((row for _, row in _records(path, data, separator)), [])
    if not header:
        raise ProblemFileError(f"{path}: the file is empty")
    column_places(path, header, task, label, several)  # a wrong name first: it explains whatever else is wrong
    columns = _text_columns(path, data, separator, header)
    if not len(columns[0]):
        raise ProblemFileError(f"{path}: a header without rows")
    return _sheet(path, header, columns, task, label, several, partial(_line, path, data, separator))


def read_parquet(path: Path, task: str, label: str, several: bool) -> Sheet:
    """The rows of a Parquet file; numbers of any type, and words that spell numbers, become float64."""
    try:
        with open_regular(path) as opened:
            file = pa.parquet.ParquetFile(opened)
            schema, sizes = file.schema_arrow, file.metadata
            groups = [sizes.row_group(i).total_byte_size for i in range(sizes.num_row_groups)]
            needed = float(max(16 * sizes.num_rows * max(1, sizes.num_columns), 2 * sum(groups)))
            require_memory(needed, f"the cells of {path}", "split the file, or leave columns out")
            words = [field.name for field in schema if pa.types.is_string(field.type)]
            opened.seek(0)  # words as codes: a long word in many rows is unpacked once
            table = pa.parquet.ParquetFile(opened, read_dictionary=words).read()
            table.validate(full=True)
    except ForgettingError:
        raise
    except Exception as error:  # damage has many names
        raise ProblemFileError(f"{path}: cannot be read as Parquet ({one_line(str(error), 200)})") from error
    if not len(table):
        raise ProblemFileError(f"{path}: columns without rows")
    return _sheet(path, table.column_names, table.columns, task, label, several, lambda row: row)


def _sheet(path: Path, names: list[str], columns: list[Any], task: str, label: str, several: bool, place: Any) -> Sheet:
    group, target = column_places(path, names, task, label, several)
    rest = [i for i in range(len(names)) if i not in (group, target)]
    if not rest:
        raise ProblemFileError(f"{path}: no features beside {label!r} and {task!r}")
    X = np.empty((len(columns[target]), len(rest)))
    wrong: list[tuple[int, int]] = []
    for at, column in enumerate(rest):
        X[:, at], words = _numbers(path, names[column], columns[column])
        if words.any():
            wrong.append((int(np.argmax(words)), column))
    if wrong:
        row, column = min(wrong)
        word = _words(path, names[column], columns[column].slice(row, 1))[0]
        hint = "; decimals have a point" if word.replace(",", "", 1).lstrip("+-").isdigit() else ""
        raise ProblemFileError(
            f"{path}, row {place(row)}, column {names[column]!r}: {word!r:.40} is not a number{hint}"
        )
    return Sheet(
        path,
        tuple(names[i] for i in rest),
        X,
        _words(path, label, columns[target]),
        _numbers(path, label, columns[target])[0],
        None if group is None else _words(path, task, columns[group]),
        place,
    )


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
        for line, row in _records(path, data, separator):
            if len(row) != len(header):
                raise ProblemFileError(f"{path}, row {line}: {len(row)} cells under {len(header)} columns") from None
        raise ProblemFileError(f"{path}: cannot be read as CSV ({one_line(str(error), 200)})") from error
    columns = [pc.utf8_trim_whitespace(column) for column in table.columns]
    kept = np.ones(len(table), dtype=bool)
    if pc.any(pc.equal(columns[-1], "")).as_py():
        kept &= ~np.logical_and.reduce([np.asarray(pc.equal(column, "")) for column in columns])
    kept[np.argmax(kept)] = False  # the header
    return [column.filter(pa.array(kept)) for column in columns]  # not a slice: if_else of pyarrow 17 errs on those


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


def _words(path: Path, name: str, column: Any) -> list[str]:
    """A column as words, "" where a value is missing; equal words are one object."""
    try:
        codes, kinds = _encoded(column)
        words = pc.utf8_trim_whitespace(pc.cast(kinds, pa.string())).to_pylist()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise ProblemFileError(f"{path}, column {name!r}: {column.type} is neither numbers nor words") from None
    words = ["" if word is None else word for word in [*words, None]]
    return [words[code] for code in codes.tolist()]


def _numbers(path: Path, name: str, column: Any) -> tuple[Array, NDArray[np.bool_]]:
    """A column as float64, NaN where a number is missing, and in which rows it has other words."""
    if pa.types.is_dictionary(column.type):
        codes, kinds = _encoded(column)
        numbers, wrong = _numbers(path, name, kinds)
        return np.append(numbers, np.nan)[codes], np.append(wrong, False)[codes]
    for blanked in (False, True):  # most columns have no missing number, and need no second look
        try:
            numbers = np.asarray(pc.cast(_without_nothing(column) if blanked else column, pa.float64(), safe=False))
            return numbers, np.zeros(len(numbers), dtype=bool)
        except pa.ArrowInvalid:
            continue
        except pa.ArrowNotImplementedError:
            raise ProblemFileError(f"{path}, column {name!r}: {column.type} is not a number") from None
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
