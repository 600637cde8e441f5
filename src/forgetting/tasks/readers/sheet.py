"""Rows with their labels and tasks: what every reader makes of a table, whatever the table is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, as_flag, as_kind, as_word
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.geometry import Matrix
from forgetting.tasks.preparation import Standardize, as_feature_map, as_standardize

__all__ = [
    "NOTHING",
    "PREPARING",
    "Columns",
    "Origin",
    "Places",
    "Sheet",
    "Table",
    "column_places",
    "decimals",
    "first_repeated",
    "parse_number",
    "sheet_of",
]

NOTHING = ("", "nan", "na", "n/a", "null", "none", "<na>", "nat")  # spellings, in lower case, of a missing number

PREPARING = ("intercept", "standardize", "features", "loss")  # fields of `Columns` about what is done with features


@dataclass(frozen=True)
class Columns:
    """What the caller says about the columns of a table, and what is to be done with them; see `fg.load`.

    >>> Columns(drop="id").drop, Columns(intercept=True).preparing
    (('id',), {'intercept': True})
    """

    task: str = "task"
    label: str = "y"
    positive: str | None = None
    drop: Sequence[str] = ()
    drop_nan: bool = False
    intercept: bool = False
    standardize: Standardize | None = None
    features: Any = None
    loss: Literal["sum", "mean"] | None = None

    def __post_init__(self) -> None:
        listed = [self.drop] if isinstance(self.drop, str | int) else self.drop
        if not isinstance(listed, Sequence):
            raise InvalidInputError(f"drop: expected names of columns, got {self.drop!r:.80}")
        values = {
            "task": _name(self.task, "task"),
            "label": _name(self.label, "label"),
            "positive": None if self.positive is None else _name(self.positive, "positive"),
            "drop": tuple(_name(name, "drop") for name in listed),
            "drop_nan": as_flag(self.drop_nan, "drop_nan"),
            "intercept": as_flag(self.intercept, "intercept"),
            "standardize": as_standardize(self.standardize),
        }
        as_feature_map(self.features)
        if self.loss is not None:
            as_word(self.loss, ("sum", "mean"), "loss")
        for name, value in values.items():
            object.__setattr__(self, name, value)
        if self.task == self.label:
            raise InvalidInputError(f"task and label are both {self.task!r:.60}; they are two columns")

    @property
    def preparing(self) -> dict[str, Any]:
        """What is to be done with the features, and the loss, as far as the caller says: keywords of `prepare`."""
        values = {name: getattr(self, name) for name in PREPARING}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def seeded(self, seed: int) -> Columns:
        """The same, with random features that are drawn with this seed if only their number is given."""
        return replace(self, features=as_feature_map(self.features, seed))

    def require_unused(self, source: str, *, preparing: bool = True) -> None:
        """Raise if columns are named of a source that has none; there is nothing to drop there either.

        What is to be done with the features is refused, too, unless the caller does it (`preparing=False`).
        """
        for field in fields(self):
            if field.name not in ("drop_nan", *PREPARING) and getattr(self, field.name) != field.default:
                raise InvalidInputError(f"{source}, without columns that {field.name}= (--{field.name}) could name")
        if preparing and self.preparing:
            name = next(iter(self.preparing))
            raise InvalidInputError(f"{source}, so that {name}= (--{name}) would have no effect")


def _name(value: Any, what: str) -> str:
    """The name of a column or a class; numbers stand for their digits, as pandas has numbers for names."""
    kinds = str | int | float | np.generic
    return str(as_kind(value, kinds, "a name", f"{what}: "))


@dataclass(frozen=True)
class Origin:
    """Where rows come from: how messages call it, the file, if it is one, and the task, if all rows are one."""

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


class Table(Protocol):
    """Columns with names, which give numbers or words on demand."""

    @property
    def origin(self) -> Origin: ...
    @property
    def names(self) -> list[str]: ...

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        """A column as float64, NaN where a number is missing, and in which rows it has other words."""

    def words(self, column: int) -> list[str]:
        """A column as words, "" where a value is missing."""

    def place(self, row: int) -> int:
        """The number by which a user knows a row: its line in a text file, its index elsewhere."""


@dataclass(frozen=True, eq=False)
class Sheet:
    """The rows of one source.

    Attributes:
        origin: where they come from.
        features: names of the columns of X.
        named: whether these names were given, and are not only numbers.
        X: a number for each row and feature, NaN where the number is missing; dense or CSR.
        y: the labels as numbers, NaN where a label is missing or is a word.
        spelt: gives the label of each row as the source spells it.
        tasks: the name of the task of each row; None where the source is one task.
        place: gives the number by which a user knows a row.
    """

    origin: Origin
    features: tuple[str, ...]
    named: bool
    X: Matrix
    y: Array
    spelt: Callable[[], list[str]]
    tasks: list[str] | None
    place: Callable[[int], int]

    @cached_property
    def labels(self) -> list[str]:
        """The label of each row, as the source spells it."""
        return self.spelt()

    def take(self, rows: list[int]) -> Sheet:
        """The sheet with these rows only."""
        return replace(
            self,
            X=self.X[rows],
            y=self.y[rows],
            spelt=lambda: [self.labels[row] for row in rows],
            tasks=None if self.tasks is None else [self.tasks[row] for row in rows],
            place=lambda row: self.place(rows[row]),
        )

    def without(self, names: Iterable[str]) -> Sheet:
        """The sheet without these features."""
        gone = set(names)
        kept = [at for at, name in enumerate(self.features) if name not in gone]
        if not kept:
            raise self.origin.refusal(": no features are left")
        return replace(self, features=tuple(self.features[at] for at in kept), X=self.X[:, kept])


@dataclass(frozen=True)
class Places:
    """Where the columns are: tasks (None where the source is one task), labels, and features."""

    task: int | None
    label: int
    features: list[int]


def column_places(origin: Origin, names: list[str], columns: Columns, several: bool) -> Places:
    """Find the columns by their names; of several sources without a task column, each is a task."""
    repeated = first_repeated(names)
    if repeated is not None:
        raise origin.refusal(f": two columns are called {repeated!r:.60}")
    wanted = {"label": columns.label} | ({} if several else {"task": columns.task})
    for what, name in wanted.items():
        if name not in names:
            hint = nearest(name, [other or "''" for other in names], "the columns are")
            raise origin.refusal(f": no column {name!r:.60} for the {what}s{hint}; name it with {what}= (--{what})")
    for name in columns.drop:
        if name not in names:
            raise origin.refusal(f": no column {name!r:.60} to drop{nearest(name, names, 'the columns are')}")
        if name in (columns.label, columns.task):
            raise origin.refusal(f": column {name!r:.60} holds the tasks or the labels, and cannot be dropped")
    others = {columns.task, columns.label, *columns.drop}
    rest = [at for at, name in enumerate(names) if name not in others]
    if not rest:
        raise origin.refusal(f": no features beside {columns.label!r:.60} and {columns.task!r:.60}")
    return Places(names.index(columns.task) if columns.task in names else None, names.index(columns.label), rest)


def sheet_of(table: Table, columns: Columns, several: bool) -> Sheet:
    """The rows of a table; an error names the first cell of a feature that is no number."""
    origin, names = table.origin, table.names
    places = column_places(origin, names, columns, several)
    y = table.numbers(places.label)[0]
    X = np.empty((len(y), len(places.features)))
    wrong: list[tuple[int, int]] = []
    for at, column in enumerate(places.features):
        X[:, at], words = table.numbers(column)
        if words.any():
            wrong.append((int(np.argmax(words)), column))
    if wrong:
        row, column = min(wrong)
        word = table.words(column)[row]
        remedy = decimals(word) or "; if the column is no feature, leave it out with drop= (--drop)"
        place = f"row {table.place(row)}, column {names[column]!r:.60}"
        raise origin.refusal(f", {place}: {word!r:.40} is not a number{remedy}")
    return Sheet(
        origin,
        tuple(names[column] for column in places.features),
        True,
        X,
        y,
        lambda: table.words(places.label),
        None if places.task is None else table.words(places.task),
        table.place,
    )


def decimals(word: str) -> str:
    """The hint for a number with a comma; nothing for other words.

    >>> decimals("1,5"), decimals("cat")
    ('; decimals have a point', '')
    """
    return "; decimals have a point" if word.replace(",", "", 1).lstrip("+-").isdigit() and "," in word else ""


def parse_number(word: str) -> float | None:
    """The number that a word spells, or None.

    >>> parse_number("1e3"), parse_number("cat")
    (1000.0, None)
    """
    try:
        return float(word)
    except ValueError:
        return None


def first_repeated(names: Iterable[Any]) -> Any:
    """The first name that occurs more than once, or None.

    >>> first_repeated(["a", "b", "a"]), first_repeated([])
    ('a', None)
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)
