"""Columns of Arrow: of text files, of Parquet files, whole or part by part, and of objects with the Arrow protocols.

Only this module needs pyarrow. Numbers are rounded correctly: a cell is the float64 that Python reads from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as parquet
from numpy.typing import NDArray

from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.core.text import from_csv_cell, one_line
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.tables import NOTHING, Content, Origin, RowTable, parse_number

BLOCK = 2**26  # bytes of text that pyarrow splits into rows at a time; no row may be longer


@dataclass(frozen=True, eq=False)
class ArrowTable(RowTable):
    """Columns of Arrow.

    Attributes:
        categories: the names of columns of categories.
    """

    categories: Collection[str] = ()

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        try:
            return _numbers(self.columns[column])
        except pa.ArrowNotImplementedError:
            raise self._refusal(column, "is not a number") from None

    def coded(self, column: int) -> tuple[NDArray[np.int64], list[str]]:
        """A column as a code for each row, and the word of each code; the last word, of code -1, is "": no value."""
        try:
            codes, kinds = _encoded(self.columns[column])
            words = pc.utf8_trim_whitespace(pc.cast(kinds, pa.string())).to_pylist()
            if pa.types.is_boolean(kinds.type):  # as Python spells them
                words = [word and word.capitalize() for word in words]
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise self._refusal(column, "is neither numbers nor words") from None
        return codes, ["" if word is None else word for word in [*words, None]]

    def words(self, column: int) -> list[str]:
        codes, words = self.coded(column)
        return [words[code] for code in codes.tolist()]

    def content(self, column: int) -> Content:
        kind = self.columns[column].type
        if self.names[column] in self.categories:
            return "categories"
        if pa.types.is_floating(kind):
            return "floats"
        spelt = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_string, pa.types.is_large_string)
        return "spelt" if pa.types.is_dictionary(kind) or any(is_kind(kind) for is_kind in spelt) else "others"

    def _refusal(self, column: int, words: str) -> ForgettingError:
        return self.origin.refusal(f", column {self.names[column]!r:.60}: {self.columns[column].type} {words}")


class TextTable(ArrowTable):
    """Columns of a text file; words that look like formulas have an apostrophe before them there."""

    def coded(self, column: int) -> tuple[NDArray[np.int64], list[str]]:
        codes, words = super().coded(column)
        return codes, [from_csv_cell(word) for word in words]


def text_table(
    origin: Origin, header: list[str], data: bytes, separator: str, place: Callable[[int], int], *, above: int = 1
) -> TextTable | None:
    """The trimmed words, without blank rows and those `above` the table; None if pyarrow cannot split them."""
    names = [str(i) for i in range(len(header))]
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(data),
            pa.csv.ReadOptions(column_names=names, block_size=BLOCK),
            pa.csv.ParseOptions(
                delimiter=separator,
                newlines_in_values=True,
                invalid_row_handler=lambda row: "error" if row.text.replace(separator, " ").strip() else "skip",
            ),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), null_values=[]),
        )
    except pa.ArrowException:
        return None
    columns = [pc.utf8_trim_whitespace(column) for column in table.columns]
    kept = np.ones(len(table), dtype=bool)
    if pc.any(pc.equal(columns[-1], "")).as_py():
        kept &= ~np.logical_and.reduce([np.asarray(pc.equal(column, "")) for column in columns])
    kept[np.flatnonzero(kept)[:above]] = False  # the header
    if not kept.any():
        return None
    rows = pa.array(kept)  # not a slice: if_else of pyarrow 17 errs on those
    return TextTable(origin, header, [column.filter(rows) for column in columns], place)


def stream_table(source: Any, origin: Origin) -> ArrowTable:
    """The columns of an object with the Arrow stream protocol or the DataFrame interchange protocol."""
    try:
        if hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
        else:
            from pyarrow.interchange import from_dataframe

            table = from_dataframe(source)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise origin.refusal(f": not a table that pyarrow can read ({one_line(str(error), 200)})") from error
    return _filled(origin, table.column_names, [_plain(column) for column in table.columns], _categories(table.schema))


def _plain(column: Any) -> Any:
    """A column without views of words, which the functions of older pyarrow do not know."""
    return pa.array(column.to_pylist(), pa.string()) if pa.types.is_string_view(column.type) else column


def _filled(origin: Origin, names: list[str], columns: list[Any], categories: Collection[str]) -> ArrowTable:
    if not columns or not len(columns[0]):
        raise origin.refusal(": columns without rows")
    return ArrowTable(origin, names, columns, categories=categories)


def _categories(schema: Any) -> set[str]:
    """The names of columns of categories; of those of pandas that are no words, Parquet says it beside the schema."""
    names = {field.name for field in schema if pa.types.is_dictionary(field.type)}
    with suppress(Exception):  # anything may be there
        about = schema.pandas_metadata["columns"]
        names |= {column["field_name"] for column in about if column["pandas_type"] == "categorical"}
    return names


# ---------------------------------------------------------------------------------------------------------- Parquet


@contextmanager
def parquet_file(path: Path) -> Iterator[tuple[Any, Collection[str]]]:
    """The Parquet file at `path`, and its columns of categories. Whatever goes wrong in the block is its error.

    Words come as codes, so that a long word in many rows is unpacked once.
    """
    with open_regular(path) as handle:
        try:
            file = parquet.ParquetFile(handle, pre_buffer=False)
            words = [field.name for field in file.schema_arrow if pa.types.is_string(field.type)]
            coded = parquet.ParquetFile(handle, pre_buffer=False, read_dictionary=words) if words else file
            yield coded, _categories(file.schema_arrow)
        except ForgettingError:
            raise
        except Exception as error:  # damage has many names
            raise ProblemFileError(f"{path}: cannot be read as Parquet ({one_line(str(error), 200)})") from error


def parquet_table(path: Path, only: list[str] | None = None) -> ArrowTable:
    """The columns of a Parquet file, or some of them; sizes are checked before anything is unpacked."""
    with parquet_file(path) as (file, categories):
        sizes = file.metadata
        groups = [sizes.row_group(i).total_byte_size for i in range(sizes.num_row_groups)]
        width = max(1, sizes.num_columns if only is None else 2 * len(only))
        needed = float(max(16 * sizes.num_rows * width, 2 * sum(groups) if only is None else 0))
        require_memory(needed, f"the cells of {path}", "split the file, or leave columns out")
        table = file.read(columns=only)
        table.validate(full=True)
    return _filled(Origin.file(path), table.column_names, table.columns, categories)


def parquet_parts(path: Path, groups: list[int], names: list[str], size: int, first: int) -> Iterator[ArrowTable]:
    """Some columns of groups of rows, of which `first` is the first row, in parts of at most `size` rows."""
    with parquet_file(path) as (file, _):
        for batch in file.iter_batches(batch_size=size, row_groups=groups, columns=names):
            batch.validate(full=True)
            columns = [batch.column(name) for name in names]
            yield ArrowTable(Origin.file(path), names, columns, partial(add, first))
            first += len(batch)


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
        except pa.ArrowInvalid:
            continue
        wrong = np.zeros(len(numbers), dtype=bool)
        if str(column.type) in ("string", "large_string") and np.isnan(numbers).any():
            wrong = np.asarray(pc.fill_null(pc.match_substring(column, "("), False))  # nan(1) is NaN for pyarrow
        return numbers, wrong
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
