"""Figures and tables as plain data: what every renderer reads, and what reloads from report.json."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from forgetting.errors import InvalidInputError, ProblemFileError

__all__ = [
    "Band",
    "Curves",
    "Item",
    "Line",
    "Matrix",
    "Paths",
    "Regions",
    "Report",
    "Section",
    "Series",
    "Stage",
    "Table",
]

FORMAT = "forgetting/report/1"
Role = Literal["exact", "simulated", "bound", "reference"]


@dataclass(frozen=True)
class Series:
    """One curve: points (x, y), with an interval where it was simulated.

    Attributes:
        name: what it is; a bound's key.
        x, y: the points; a y of None is a gap.
        low, high: the band around y, or None.
        role: exact and simulated values are drawn solid, bounds and references dashed.
        method: how the values were obtained.
        group: an index that fixes the colour, the same in every figure; -1 leaves it to the place in the legend.
        label: for the legend; the name if left out.
        minor: drawn thin and gray, and not in the legend.

    >>> Series("loss", (1.0, 2.0), (0.5, 0.25)).role
    'exact'
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
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


@dataclass(frozen=True)
class Curves:
    """Curves over one pair of axes.

    `floor` is the smallest y that a logarithmic axis shows: below it there is rounding and nothing else.

    >>> figure = Curves("demo", "A line", "One line.", "k", "loss", (Series("loss", (1.0, 2.0), (0.5, 0.25)),))
    >>> figure.kind, figure.xlog, figure.whole
    ('curves', True, True)
    """

    key: str
    title: str
    caption: str
    xlabel: str
    ylabel: str
    series: tuple[Series, ...]
    xlog: bool = True
    ylog: bool = True
    floor: float | None = None
    kind: Literal["curves"] = "curves"

    @property
    def whole(self) -> bool:
        """Whether x counts something, so that marks between whole numbers mean nothing."""
        return all(float(x).is_integer() for one in self.series for x in one.x)


@dataclass(frozen=True)
class Band:
    """A cell of a `Regions` figure: x from `first` to `last` at one y belongs to the name.

    >>> Band(10.0, 1.0, 256.0, "trivial").name
    'trivial'
    """

    y: float
    first: float
    last: float
    name: str


@dataclass(frozen=True)
class Regions:
    """A map of the plane: which name holds where, on logarithmic axes.

    >>> Regions("demo", "Phases", "", "k", "d", (Band(10.0, 1.0, 5.0, "a"),), ("a",)).names
    ('a',)
    """

    key: str
    title: str
    caption: str
    xlabel: str
    ylabel: str
    bands: tuple[Band, ...]
    names: tuple[str, ...]
    kind: Literal["regions"] = "regions"


@dataclass(frozen=True)
class Line:
    """The solutions of one task in the plane: a line through a point along a direction.

    >>> Line("task 1", (0.0, 0.0), (1.0, 0.0)).name
    'task 1'
    """

    name: str
    point: tuple[float, float]
    direction: tuple[float, float]


@dataclass(frozen=True)
class Stage:
    """One run in the plane: the points visited and the tasks learned.

    >>> Stage("cyclic", ((0.0, 0.0), (1.0, 0.0)), (0,)).order
    (0,)
    """

    name: str
    points: tuple[tuple[float, float], ...]
    order: tuple[int, ...]


@dataclass(frozen=True)
class Paths:
    """Projections in the plane, step by step: the lines, the common solution and one or more runs.

    >>> Paths("demo", "Path", "", (), (0.0, 0.0), ()).kind
    'paths'
    """

    key: str
    title: str
    caption: str
    lines: tuple[Line, ...]
    solution: tuple[float, float]
    stages: tuple[Stage, ...]
    kind: Literal["paths"] = "paths"


@dataclass(frozen=True)
class Table:
    """Rows of words and numbers under headings; a compact table may stand beside a figure.

    >>> Table("demo", "Numbers", "", ("k", "loss"), ((1, 0.5),)).rows[0]
    (1, 0.5)
    """

    key: str
    title: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    notes: tuple[str, ...] = ()
    compact: bool = False
    kind: Literal["table"] = "table"

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise InvalidInputError(f"table {self.key!r}: a row of {len(row)} cells under {len(self.columns)}")


@dataclass(frozen=True)
class Matrix:
    """Values over pairs of names, drawn as coloured squares.

    >>> Matrix("demo", "Overlap", "", "task", "task", ("a",), ("a", "b"), ((1.0, 0.5),)).values[0][1]
    0.5
    """

    key: str
    title: str
    caption: str
    xlabel: str
    ylabel: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    kind: Literal["matrix"] = "matrix"


Item = Curves | Regions | Paths | Matrix | Table
KINDS: dict[str, type[Any]] = {"curves": Curves, "regions": Regions, "paths": Paths, "matrix": Matrix, "table": Table}
PARTS: dict[str, type[Any]] = {"series": Series, "bands": Band, "lines": Line, "stages": Stage}


@dataclass(frozen=True)
class Section:
    """A heading, what to read off it, and its figures and tables; `missing` says why there are none.

    >>> Section("rates", "Rates", "What is shown.", ()).missing
    ''
    """

    key: str
    title: str
    text: str
    items: tuple[Item, ...]
    missing: str = ""


@dataclass(frozen=True)
class Report:
    """All sections, the headline numbers, and where everything came from.

    >>> report = Report("Title", (), {"seed": 0}, ("one finding",))
    >>> Report.from_dict(report.to_dict()) == report
    True
    """

    title: str
    sections: tuple[Section, ...]
    meta: dict[str, Any]
    summary: tuple[str, ...] = field(default=())

    def items(self) -> Iterator[Item]:
        """Every figure and table, in order."""
        for section in self.sections:
            yield from section.items

    def item(self, key: str) -> Item:
        """The figure or table of this key."""
        for one in self.items():
            if one.key == key:
                return one
        raise InvalidInputError(f"no item {key!r}; there are {', '.join(one.key for one in self.items())}")

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, ready for JSON; numbers that are not finite become None."""
        plain: dict[str, Any] = _finite({"format": FORMAT, **asdict(self)})
        return plain

    def to_json(self, indent: int | None = None) -> str:
        """As JSON text.

        >>> Report.from_json(Report("Title", (), {"seed": 0}).to_json()).meta
        {'seed': 0}
        """
        return json.dumps(self.to_dict(), allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """What `to_json` gave."""
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise ProblemFileError(f"not a report of this library ({error})") from error
        return cls.from_dict(data if isinstance(data, dict) else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """What `to_dict` gave, also after a trip through JSON."""
        if data.get("format") != FORMAT:
            raise ProblemFileError(f"not a report of this library (its 'format' entry is not {FORMAT!r})")
        try:
            sections = tuple(
                Section(**{**section, "items": tuple(_item(item) for item in section["items"])})
                for section in data["sections"]
            )
            return cls(str(data["title"]), sections, dict(data["meta"]), tuple(data["summary"]))
        except (KeyError, TypeError) as error:
            raise ProblemFileError(f"a damaged report ({error})") from error


def _item(data: Mapping[str, Any]) -> Item:
    fields = {name: _frozen(value) for name, value in data.items()}
    for name, part in PARTS.items():
        if name in fields:
            fields[name] = tuple(part(**{key: _frozen(value) for key, value in one.items()}) for one in fields[name])
    made: Item = KINDS[fields["kind"]](**fields)
    return made


def _finite(value: Any) -> Any:
    """The same without NaN and infinity, which JSON does not know."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _frozen(value: Any) -> Any:
    """Lists of JSON as the tuples they were."""
    return tuple(_frozen(one) for one in value) if isinstance(value, (list, tuple)) else value
