"""Columns of a table, by name: numbers or words, and the row and the column of a cell in errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, numbers
from forgetting.core.text import first_repeated, from_csv_cell
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError

NOTHING = ("", "nan", "na", "n/a", "null", "none", "<na>", "nat")  # spellings, in lower case, of a missing number
NAMELESS = ("", "nan")  # no name of a task; "na" and "none" may be one

#: what the type of a column says: "spelt" for numbers, truth values and words, which are told apart by how they are
#: spelt; "floats" where 3.0 is spelt 3; "categories" (of pandas, polars or Arrow); "others", such as times
Content = Literal["spelt", "floats", "categories", "others"]


@dataclass(frozen=True)
class Origin:
    """The source of rows: its name in messages, its file if it is one, and the task if all rows are one task."""

    name: str
    path: Path | None = None
    task: str = ""

    @classmethod
    def file(cls, path: Path) -> Origin:
        """A file."""
        return cls(str(path), path)

    def part(self, words: str) -> str:
        """A part of it, for messages."""
        return f"{self.name}, {words}" if self.name else words

    def refusal(self, words: str) -> ForgettingError:
        """The error that says what is wrong; `words` begin with a comma or a colon."""
        text = f"{self.name}{words}" if self.name else words.lstrip(",: ")
        return InvalidInputError(text) if self.path is None else ProblemFileError(text)

    def require_distinct(self, names: Iterable[str]) -> None:
        """Raise if two columns have the same name."""
        repeated = first_repeated(names)
        if repeated is not None:
            raise self.refusal(f": two columns are called {repeated!r:.60}")


@dataclass(frozen=True, eq=False)
class RowTable(ABC):
    """Columns with names, which give numbers or words on demand.

    Attributes:
        origin: where they come from.
        names: their names.
        columns: what holds them.
        place: gives the number by which a user knows a row: its line in a text file, its index elsewhere.
    """

    origin: Origin
    names: list[str]
    columns: Sequence[Any]
    place: Callable[[int], int] = int

    @abstractmethod
    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        """A column as float64, NaN where a number is missing, and in which rows it has other words."""

    @abstractmethod
    def words(self, column: int) -> list[str]:
        """A column as words, "" where a value is missing; equal words are one object."""

    def content(self, column: int) -> Content:
        """What the type of a column says about its values; text files have words only."""
        return "spelt"


class WordTable(RowTable):
    """Columns of the words in a text file."""

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        cells = self.columns[column]
        with suppress(ValueError):
            if "_" not in "".join(cells):  # 1_5 is a number to Python only
                return np.fromiter(map(float, cells), np.float64, len(cells)), np.zeros(len(cells), dtype=bool)
        return column_numbers(np.array(cells, dtype=object))

    def words(self, column: int) -> list[str]:
        plain: dict[str, str] = {}
        return [plain.setdefault(word, word) for word in map(from_csv_cell, self.columns[column])]


def matrix_of(table: RowTable, columns: Sequence[int], remedy: str) -> Array:
    """The numbers in some columns, NaN where a number is missing; an error names the first cell with another word.

    `remedy` is the end of the error: what to do with a column of words.
    """
    matrix, wrong = np.empty((0, 0)), list[tuple[int, int]]()
    for at, column in enumerate(columns):
        values, words = table.numbers(column)
        if not at:
            matrix = np.empty((len(values), len(columns)))
        matrix[:, at] = values
        if words.any():
            wrong.append((int(np.argmax(words)), column))
    if wrong:
        row, column = min(wrong)
        word = table.words(column)[row]
        raise cell_error(table, row, column, f"{word!r:.40} is not a number{decimals(word) or remedy}")
    return matrix


def finite_matrix_of(table: RowTable, remedy: str) -> Array:
    """The numbers in all columns; an error names the first cell that holds no finite number."""
    matrix = matrix_of(table, range(len(table.names)), remedy)
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0].tolist()
        words = f"{not_a_number(matrix[row, column])}; fill it in, or leave such rows out"
        raise cell_error(table, row, column, words)
    return matrix


def cell_error(table: RowTable, row: int, column: int, words: str) -> ForgettingError:
    """The error that says what is wrong with a cell."""
    return table.origin.refusal(f", row {table.place(row)}, column {table.names[column]!r:.60}: {words}")


def decimals(word: str) -> str:
    """The hint for a number with a comma; nothing for other words.

    >>> decimals("1,5"), decimals("cat")
    ('; decimals have a point', '')
    """
    return "; decimals have a point" if word.replace(",", "", 1).lstrip("+-").isdigit() and "," in word else ""


def parse_number(word: str) -> float | None:
    """The number that a word spells, or None.

    >>> parse_number("1e3"), parse_number("cat"), parse_number("1_000")
    (1000.0, None, None)
    """
    if "_" in word:  # a number to Python only
        return None
    try:
        return float(word)
    except ValueError:
        return None


def not_a_number(value: float) -> str:
    """The words of an error about a number that is missing or infinite."""
    return f"{'nan or nothing' if np.isnan(value) else value} is not a number to compute with"


# --------------------------------------------------------------------------------------------------- columns of arrays


def column_numbers(values: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
    """A vector of any kind as float64, NaN where a number is missing, and in which entries it has anything else.

    >>> column_numbers(np.array([1, "2.5", None, "cat"], dtype=object))
    (array([1. , 2.5, nan, nan]), array([False, False, False,  True]))
    """
    if values.dtype.kind in "biuf":
        return numbers(values, "a column"), np.zeros(len(values), dtype=bool)
    if values.dtype.kind in "mM":  # times count nanoseconds, which are no numbers of the user
        return np.full(len(values), np.nan), ~np.isnat(values)
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


def content_of(given: Any, values: NDArray[Any]) -> Content:
    """What the type of a column says about its values; `values` is the column as a vector, and objects are looked at.

    >>> [content_of(part, np.asarray(part)) for part in ([1.0, 2.0], ["cat", None], [b"cat"])]
    ['spelt', 'spelt', 'others']
    """
    named = str(getattr(given, "dtype", getattr(given, "type", ""))).lower()
    if named.startswith(("categor", "enum", "dictionary")):
        return "categories"
    if values.dtype.kind != "O":
        return "spelt" if values.dtype.kind in "biufU" else "others"
    missing = ("NoneType", "NAType", "NaTType")  # of pandas, which is not imported
    kinds = (kind for kind in set(map(type, values.tolist())) if kind.__name__ not in missing)
    return "spelt" if all(issubclass(kind, str | Real | np.bool_) for kind in kinds) else "others"


def _word(value: Any) -> str:
    word = str(value).strip()
    missing = value is None or (not isinstance(value, str) and word in ("<NA>", "NaT"))
    return "" if missing else word
