"""Figures and tables as plain data, which every renderer reads and which reloads from a file; numbers in them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.errors import InvalidInputError

Role = Literal["exact", "simulated", "bound", "guarantee", "trivial", "worst", "rate", "reference"]
#: None is what is not known; NaN and infinity become None in JSON, and none of them is drawn
Number = float | None
Point = tuple[Number, Number]
#: keys are names of files, and of places in a page
KEY = re.compile(r"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9_.-]{0,79}")


def check_key(key: str) -> None:
    """Raise unless the key can name a file, and a place in a page."""
    if not KEY.fullmatch(key):
        raise InvalidInputError(
            f"invalid key {key!r:.90}: use up to 80 letters, digits, '_', '-' and single '.', a letter or digit first"
        )


@dataclass(frozen=True)
class _Titled:
    """The fields that all figures and tables have."""

    key: str
    title: str
    caption: str

    def __post_init__(self) -> None:
        check_key(self.key)


@dataclass(frozen=True)
class Series:
    """One curve: points (x, y), with an interval where the values were simulated.

    Attributes:
        name: the name of the curve; the key of a bound.
        x, y: the points; a point with None is not drawn.
        low, high: the band around y, or None.
        role: exact and simulated values are drawn solid; bounds, a guarantee on the values of the same group, and
            references, for the eye, dashed; in gray the trivial bound, the worst case over all tasks, and a rate of
            unknown constant.
        method: how the values were obtained.
        group: an index that fixes the colour and the dashes, the same in every figure; -1 leaves them to the place in
            the legend.
        label: for the legend; the name if left out.
        minor: drawn thin and gray, without a legend entry of its own.
    """

    name: str
    x: tuple[Number, ...]
    y: tuple[Number, ...]
    low: tuple[Number, ...] | None = None
    high: tuple[Number, ...] | None = None
    role: Role = "exact"
    method: str = ""
    group: int = -1
    label: str = ""
    minor: bool = False

    def __post_init__(self) -> None:
        for name in ("y", "low", "high"):
            values = getattr(self, name)
            if values is not None and len(values) != len(self.x):
                raise InvalidInputError(f"series {self.name!r}: {len(values)} values of {name} for {len(self.x)} of x")


def through(name: str, points: Iterable[tuple[float, float]], role: Role = "exact", label: str = "") -> Series:
    """The curve through these points (x, y).

    >>> through("loss", [(1.0, 0.5), (2.0, 0.25)]).y
    (0.5, 0.25)
    """
    pairs = list(points)
    return Series(name, tuple(x for x, _ in pairs), tuple(y for _, y in pairs), role=role, label=label)


@dataclass(frozen=True)
class Curves(_Titled):
    """Curves over one pair of axes.

    `floor` is the smallest y that a logarithmic axis shows: below it there is rounding and nothing else.

    >>> figure = Curves("demo", "A line", "One line.", "k", "loss", (Series("loss", (1.0, 2.0), (0.5, 0.25)),))
    >>> figure.kind, figure.xlog, figure.whole
    ('curves', True, True)
    """

    xlabel: str
    ylabel: str
    series: tuple[Series, ...]
    xlog: bool = True
    ylog: bool = True
    floor: Number = None
    kind: Literal["curves"] = "curves"

    @property
    def whole(self) -> bool:
        """Whether x counts something, so that ticks between whole numbers mean nothing."""
        return all(x is None or float(x).is_integer() for series in self.series for x in series.x)


@dataclass(frozen=True)
class Band:
    """A cell of a `Regions` figure: x from `first` to `last` at one y belongs to the name."""

    y: Number
    first: Number
    last: Number
    name: str


@dataclass(frozen=True)
class Regions(_Titled):
    """A map of the plane: which name holds where, on logarithmic axes.

    A star may mark a place. `groups` fix the colours of the names, the same in every map; -1 is gray.
    """

    xlabel: str
    ylabel: str
    bands: tuple[Band, ...]
    names: tuple[str, ...]
    mark: Point | None = None
    groups: tuple[int, ...] = ()
    kind: Literal["regions"] = "regions"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups and len(self.groups) != len(self.names):
            raise InvalidInputError(f"map {self.key!r}: {len(self.groups)} groups for {len(self.names)} names")
        stranger = next((band.name for band in self.bands if band.name not in self.names), None)
        if stranger is not None:
            raise InvalidInputError(f"map {self.key!r}: the name {stranger!r} of a cell is not among the names")


@dataclass(frozen=True)
class Line:
    """The solutions of one task in the plane: a line through a point along a direction."""

    name: str
    point: Point
    direction: Point


@dataclass(frozen=True)
class Stage:
    """One run in the plane: the points visited and the tasks learned."""

    name: str
    points: tuple[Point, ...]
    order: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.points) != len(self.order) + 1:
            raise InvalidInputError(
                f"run {self.name!r}: {len(self.points)} points for {len(self.order)} tasks; the start is one more"
            )


@dataclass(frozen=True)
class Paths(_Titled):
    """Projections in the plane, step by step: the lines, the common solution and one or more runs."""

    lines: tuple[Line, ...]
    solution: Point
    stages: tuple[Stage, ...]
    kind: Literal["paths"] = "paths"


@dataclass(frozen=True)
class Table(_Titled):
    """Rows of words and numbers under headings; a compact table may stand beside a figure.

    Scalars of NumPy become plain numbers, so that every table can be written as JSON.

    >>> Table("demo", "Numbers", "", ("k", "loss"), ((np.int64(1), 0.5),)).rows[0]
    (1, 0.5)
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    compact: bool = False
    kind: Literal["table"] = "table"

    def __post_init__(self) -> None:
        super().__post_init__()
        rows = tuple(tuple(cell.item() if isinstance(cell, np.generic) else cell for cell in row) for row in self.rows)
        object.__setattr__(self, "rows", rows)
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InvalidInputError(f"table {self.key!r}: a row of {len(row)} cells under {len(self.columns)}")
            if any(isinstance(cell, (list, tuple, dict)) for cell in row):
                raise InvalidInputError(f"table {self.key!r}: a cell is a word or a number, not several")


@dataclass(frozen=True)
class Matrix(_Titled):
    """Values over pairs of names, drawn as coloured squares.

    >>> Matrix("demo", "Overlap", "", "task", "task", ("a",), ("a", "b"), ((1.0, 0.5),)).values[0][1]
    0.5
    """

    xlabel: str
    ylabel: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[Number, ...], ...]
    kind: Literal["matrix"] = "matrix"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.values) != len(self.rows) or any(len(row) != len(self.columns) for row in self.values):
            raise InvalidInputError(
                f"matrix {self.key!r}: the values are not {len(self.rows)} rows of {len(self.columns)}"
            )


@dataclass(frozen=True)
class Bars(_Titled):
    """One value for each name, on one axis; marked names stand out, and a line may cross all of them.

    >>> Bars("demo", "Bounds", "", "bound", ("a", "b"), (0.5, 2.0), marked=(0,)).kind
    'bars'
    """

    xlabel: str
    names: tuple[str, ...]
    values: tuple[Number, ...]
    marked: tuple[int, ...] = ()
    line: Number = None
    line_name: str = ""
    log: bool = True
    kind: Literal["bars"] = "bars"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.names) != len(self.values):
            raise InvalidInputError(f"bars {self.key!r}: {len(self.values)} values for {len(self.names)} names")


@dataclass(frozen=True)
class Panel:
    """A distribution on one axis, and the places of marks on the same axis; a mark at None is not drawn."""

    xlabel: str
    values: tuple[Number, ...]
    marks: tuple[Number, ...]


@dataclass(frozen=True)
class Spread(_Titled):
    """Distributions of values, one below the other, with marks of the same names in each.

    >>> Spread("demo", "Orders", "", "orders", ("given",), (Panel("loss", (0.5, 2.0), (0.5,)),)).kind
    'spread'
    """

    unit: str
    names: tuple[str, ...]
    panels: tuple[Panel, ...]
    kind: Literal["spread"] = "spread"

    def __post_init__(self) -> None:
        super().__post_init__()
        for panel in self.panels:
            if len(panel.marks) != len(self.names):
                raise InvalidInputError(f"spread {self.key!r}: {len(panel.marks)} marks for {len(self.names)} names")


Item = Curves | Regions | Paths | Matrix | Bars | Spread | Table


# -------------------------------------------------------------------------------------------------------------- numbers


def spread_steps(k: int, points: int, first: int = 1) -> IntArray:
    """At most `points` different steps from `first` to k, evenly on a log scale, both ends included.

    >>> spread_steps(100, 5).tolist()
    [1, 3, 10, 32, 100]
    """
    if k <= first:
        return np.array([k], dtype=np.int64)
    return np.unique(np.round(np.geomspace(first, k, points)).astype(np.int64))


def column(values: Any) -> tuple[float, ...]:
    """The values as a tuple of plain floats."""
    return tuple(float(value) for value in np.asarray(values).ravel())


def cell(value: Any) -> str:
    """A number or a word as a short cell of a table.

    >>> [cell(x) for x in (3, 0.123456, 1e-12, None, True, "word")]
    ['3', '0.1235', '1e-12', '', 'yes', 'word']
    """
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{float(value):.4g}"
    return str(value)
