"""Rows that are in memory already: arrays and tensors, and the columns of a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, any_array, is_sparse, numbers, one_column
from forgetting.core.memory import require_memory
from forgetting.core.text import nearest
from forgetting.geometry import Matrix
from forgetting.tasks.readers.sheet import (
    NOTHING,
    Columns,
    Origin,
    Sheet,
    column_places,
    parse_number,
    sheet_of,
)

__all__ = ["is_frame", "sheet_from_arrays", "sheet_from_frame", "sheet_from_mapping"]


# ------------------------------------------------------------------------------------------------------------- arrays


def sheet_from_arrays(origin: Origin, columns: Columns, X: Any, y: Any, tasks: Any = None, *, name: str = "X") -> Sheet:
    """The rows of a matrix X, dense or sparse, with a label and, unless all are one task, a task for each row.

    >>> sheet = sheet_from_arrays(Origin("mine"), Columns(), [[1.0], [2.0]], [[3], [4]], ["a", "b"])
    >>> sheet.y.tolist(), sheet.tasks
    ([3.0, 4.0], ['a', 'b'])
    """
    matrix = _matrix(origin, X, name)
    rows = matrix.shape[0]
    label = _column(origin, columns.label, y, rows, name)
    features = tuple(map(str, X.columns)) if is_frame(X) else tuple(map(str, range(matrix.shape[1])))
    sheet = Sheet(
        origin,
        features,
        is_frame(X),
        matrix,
        column_numbers(label)[0],
        lambda: column_words(label),
        None if tasks is None else column_words(_column(origin, columns.task, tasks, rows, name)),
        lambda row: row,
    )
    for dropped in columns.drop:
        if dropped not in features:
            raise origin.refusal(f": no column {dropped!r:.60} to drop{nearest(dropped, features, 'the columns are')}")
    return sheet.without(columns.drop) if columns.drop else sheet


def sheet_from_mapping(origin: Origin, columns: Columns, arrays: Mapping[str, Any], several: bool) -> Sheet:
    """The rows of named arrays: a matrix X, labels and, unless each of several sources is a task, tasks."""
    names = [str(name) for name in arrays]
    column_places(origin, names, Columns(columns.task, columns.label), several)
    rest = [name for name in arrays if name not in (columns.task, columns.label)]
    name = "X" if "X" in rest else rest[0] if len(rest) == 1 else ""
    if not name:
        raise origin.refusal(f": expected one matrix X of features, found {', '.join(map(str, rest)) or 'none'}")
    return sheet_from_arrays(
        origin, columns, arrays[name], arrays[columns.label], arrays.get(columns.task), name=str(name)
    )


def _matrix(origin: Origin, X: Any, name: str) -> Matrix:
    """X as a matrix of numbers; NaN is allowed."""
    if is_sparse(X):
        from scipy.sparse import csr_array

        return csr_array(X)
    raw = any_array(X, origin.part(name))
    if raw.ndim != 2 or raw.dtype.kind not in "biuf":
        raise origin.refusal(f", array {name!r}: expected a matrix of numbers, got {raw.dtype}, shape {raw.shape}")
    return numbers(X, origin.part(name))


def _column(origin: Origin, name: str, values: Any, rows: int, matrix: str) -> NDArray[Any]:
    column = one_column(any_array(values, origin.part(name)))
    if column.shape != (rows,):
        several = column.ndim == 2 and len(column) == rows
        way = "; RegressionTasks(Xs, ys) and RegressionTasks.from_arrays take several outputs" if several else ""
        raise origin.refusal(f", array {name!r}: shape {column.shape} for {rows} rows of {matrix!r}{way}")
    require_memory(64.0 * rows, f"{rows} labels", "give fewer rows")
    return column


# ---------------------------------------------------------------------------------------------------------- DataFrames


def is_frame(value: Any) -> bool:
    """Whether `value` has columns that are known by name and become arrays: a DataFrame of pandas, polars or the like.

    >>> is_frame([1.0])
    False
    """
    parts = ("to_numpy", "columns", "__getitem__", "__len__")  # of polars, a lazy frame has no `to_numpy`
    return not isinstance(value, type) and all(hasattr(value, part) for part in parts)


@dataclass(frozen=True, eq=False)
class _FrameTable:
    """The columns of a DataFrame, as a `Table`; none of its library is imported."""

    origin: Origin
    frame: Any

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def _values(self, column: int) -> NDArray[Any]:
        return np.asarray(self.frame[list(self.frame.columns)[column]].to_numpy())

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        """A column as float64, NaN where a number is missing, and in which rows it has other words."""
        return column_numbers(self._values(column))

    def words(self, column: int) -> list[str]:
        """A column as words, "" where a value is missing."""
        return column_words(self._values(column))

    def place(self, row: int) -> int:
        """The row itself, whatever the index of the frame calls it."""
        return row


def sheet_from_frame(frame: Any, columns: Columns) -> Sheet:
    """The rows of a DataFrame; its index is no column."""
    table = _FrameTable(Origin(type(frame).__name__), frame)
    if not len(frame):
        raise table.origin.refusal(": columns without rows")
    index = getattr(getattr(frame, "index", None), "names", ())
    for name in (columns.task, columns.label):
        if name not in table.names and name in index:
            raise table.origin.refusal(f": {name!r:.60} is in the index; frame.reset_index() makes it a column")
    return sheet_of(table, columns, False)


# --------------------------------------------------------------------------------------------------- columns of arrays


def column_numbers(values: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
    """A vector of any kind as float64, NaN where a number is missing, and where it has anything else.

    >>> column_numbers(np.array([1, "2.5", None, "cat"], dtype=object))
    (array([1. , 2.5, nan, nan]), array([False, False, False,  True]))
    """
    if values.dtype.kind in "biuf":
        return numbers(values, "a column"), np.zeros(len(values), dtype=bool)
    parsed = [_number(value) for value in values.tolist()]
    return (
        np.array([np.nan if number is None else number for number in parsed], dtype=np.float64),
        np.array([number is None for number in parsed], dtype=bool),
    )


def _number(value: Any) -> float | None:
    """The number that a value is or spells, NaN if it is missing, None if it is something else."""
    if isinstance(value, Real):
        try:
            return float(value)
        except OverflowError:
            return float("inf")
    word = str(value).strip()
    return float("nan") if word.lower() in NOTHING else parse_number(word)


def column_words(values: NDArray[Any]) -> list[str]:
    """A vector of any kind as words, "" where a value is missing; equal words are one object.

    >>> column_words(np.array([1, 2, 1])), column_words(np.array(["na", None], dtype=object))
    (['1', '2', '1'], ['na', ''])
    """
    if values.dtype.kind == "M":
        values = np.datetime_as_string(values, unit="auto")
    known: dict[Any, str] = {}
    return [known.setdefault(word, word) for word in map(_word, values.tolist())]


def _word(value: Any) -> str:
    word = str(value).strip()
    missing = value is None or (not isinstance(value, str) and word in ("<NA>", "NaT"))
    return "" if missing else word
