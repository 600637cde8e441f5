"""Rows with their labels and tasks: what every reader makes of a table, of a DataFrame, and of arrays in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, Seed, any_array, as_flag, as_kind, as_word, is_sparse, numbers, one_column
from forgetting.core.memory import require_memory
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.files.tables import (
    Content,
    Origin,
    RowTable,
    column_numbers,
    column_words,
    content_of,
    matrix_of,
    parse_number,
)
from forgetting.geometry import Matrix
from forgetting.tasks.preparation import Standardize, as_feature_map, as_standardize

__all__ = ["PREPARING", "Columns"]

PREPARING = ("intercept", "standardize", "features", "loss")  # fields of `Columns` about the preparation of features


@dataclass(frozen=True)
class Columns:
    """The caller's options for the columns of a table: their names, and how features are prepared; see `fg.load`.

    >>> Columns(drop="id").drop, Columns(intercept=True).preparing
    (('id',), {'intercept': True})
    """

    task: str = "task"
    label: str = "y"
    positive: str | None = None
    classes: Literal["auto", "all", "task", "none"] | None = "auto"
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
            "classes": as_classes(self.classes),
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
        if self.positive is not None and self.classes != "auto":
            raise InvalidInputError(
                "positive= (--positive) makes labels +1 and -1, classes= (--classes) says otherwise: give one of them"
            )

    @property
    def preparing(self) -> dict[str, Any]:
        """The preparation of the features, and the loss, as far as the caller names them: keywords of `prepare`."""
        values = {name: getattr(self, name) for name in PREPARING}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def seeded(self, seed: Seed) -> Columns:
        """The same, with random features that are drawn with this seed if only their number is given."""
        return replace(self, features=as_feature_map(self.features, seed))

    def require_unused(self, source: str, *, preparing: bool = True) -> None:
        """Raise if columns are named of a source that has none; there is nothing to drop there either.

        What is to be done with the features is refused, too, unless the caller does it (`preparing=False`).
        """
        if self.classes != "auto":
            raise InvalidInputError(f"{source}, so that classes= (--classes) would have no effect")
        for field in fields(self):
            if field.name not in ("drop_nan", *PREPARING) and getattr(self, field.name) != field.default:
                raise InvalidInputError(f"{source}, without columns that {field.name}= (--{field.name}) could name")
        if preparing and self.preparing:
            name = next(iter(self.preparing))
            raise InvalidInputError(f"{source}, so that {name}= (--{name}) would have no effect")


def as_classes(value: Any) -> Literal["auto", "all", "task"] | None:
    """The value if it says which labels are classes; "none", as a shell or a config has it, is None.

    >>> as_classes("none"), as_classes("task")
    (None, 'task')
    """
    if value is None or (isinstance(value, str) and value == "none"):
        return None
    checked: Literal["auto", "all", "task"] = as_word(value, ("auto", "all", "task", "none"), "classes")
    return checked


def _name(value: Any, what: str) -> str:
    """The name of a column or a class; numbers stand for their digits, as pandas has numbers for names."""
    kinds = str | int | float | np.generic
    return str(as_kind(value, kinds, "a name", f"{what}: "))


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
        content: gives what the type of the labels says about them.
        tasks: the name of the task of each row; None where the source is one task.
        place: gives the number by which a user knows a row.
        gaps: whether rows without a label were left out.
    """

    origin: Origin
    features: tuple[str, ...]
    named: bool
    X: Matrix
    y: Array
    spelt: Callable[[], list[str]]
    content: Callable[[], Content]
    tasks: list[str] | None
    place: Callable[[int], int]
    gaps: bool = False

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
    """The places of the columns: of tasks (None where the source is one task), of labels, and of features."""

    task: int | None
    label: int
    features: list[int]


def column_places(origin: Origin, names: list[str], columns: Columns, several: bool) -> Places:
    """Find the columns by their names; of several sources without a task column, each is a task."""
    origin.require_distinct(names)
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


def check_header(origin: Origin, header: list[str], columns: Columns) -> None:
    """Raise if the first line of a text file is no header: empty, not separated as expected, or numbers."""
    if not header:
        raise origin.refusal(": the file is empty")
    if len(header) == 1:
        raise origin.refusal(
            ": commas, semicolons and tabs were tried as separators, but the first line is one column, "
            f"{header[0]!r:.60}; save the file with one of them between columns"
        )
    numbers = [word for word in header if parse_number(word) is not None]
    fractions = [word for word in numbers if not word.isdecimal()]  # columns may be called 0, 1, 2, ...
    if columns.label not in header and (len(numbers) == len(header) or 2 * len(fractions) > len(header)):
        raise origin.refusal(
            f": its first line holds numbers ({', '.join(header[:3])}, ...); begin the file with the names of "
            f"its columns, such as {columns.task},a,b,{columns.label}"
        )


def sheet_of(table: RowTable, columns: Columns, several: bool) -> Sheet:
    """The rows of a table; an error names the first cell of a feature that is no number."""
    origin, names = table.origin, table.names
    places = column_places(origin, names, columns, several)
    X = matrix_of(table, places.features, "; if the column is no feature, leave it out with drop= (--drop)")
    return Sheet(
        origin,
        tuple(names[column] for column in places.features),
        True,
        X,
        table.numbers(places.label)[0],
        lambda: table.words(places.label),
        lambda: table.content(places.label),
        None if places.task is None else table.words(places.task),
        table.place,
    )


# ------------------------------------------------------------------------------------------------------- rows in memory


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
        lambda: content_of(y, label),
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


class FrameTable(RowTable):
    """The columns of a DataFrame; none of its library is imported. Rows are counted, whatever the index calls them."""

    def numbers(self, column: int) -> tuple[Array, NDArray[np.bool_]]:
        return column_numbers(np.asarray(self.columns[column].to_numpy()))

    def words(self, column: int) -> list[str]:
        return column_words(np.asarray(self.columns[column].to_numpy()))

    def content(self, column: int) -> Content:
        return content_of(self.columns[column], np.asarray(self.columns[column].to_numpy()))


def sheet_from_frame(frame: Any, columns: Columns, several: bool = False) -> Sheet:
    """The rows of a DataFrame; its index is no column. `several`: a column of tasks may be missing."""
    given = list(frame.columns)
    table = FrameTable(Origin(type(frame).__name__), list(map(str, given)), [frame[name] for name in given])
    if not len(frame):
        raise table.origin.refusal(": columns without rows")
    index = getattr(getattr(frame, "index", None), "names", ())
    for name in (columns.label,) if several else (columns.task, columns.label):
        if name not in table.names and name in index:
            raise table.origin.refusal(f": {name!r:.60} is in the index; frame.reset_index() makes it a column")
    return sheet_of(table, columns, several)
