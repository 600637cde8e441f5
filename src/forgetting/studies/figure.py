"""The figure of a table: one column against another, with the spread of the rows that agree in both axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.figures.items import Bars, Curves, Item, Series
from forgetting.studies.functions import FAILURE

Rows = Sequence[Mapping[str, Any]]
MOST_HUES = 7  # that a reader can tell apart
MOST_NAMES = 60  # of texts, one below the other
LOW, HIGH = 0.05, 0.95  # the ends of the band
OWN = ("repeat", "seed", FAILURE, "seconds", "version")  # neither asked for nor found
DECADE = 10.0


def table_figure(
    title: str, rows: Rows, x: str | None = None, y: str | None = None, hue: str | None = None
) -> Item | None:
    """The column `y` against the column `x`, one curve for each value of `hue`.

    Where several rows have the same x and hue, the curve is their median, and a band has the middle 90 % of them. An
    axis is logarithmic if its values are positive (but for a few zeros, which are then not drawn) and span more than a
    factor of 10. If x is a column of texts, the figure has a dot for each.

    Args:
        title: of the figure.
        rows: of the table. The columns before `seed` are what was asked for, those after it what was found.
        x: left out: k, or else the first column of numbers that varies among those before `seed`.
        y: left out: the first column of numbers after `seed`.
        hue: at most 7 values; left out: one curve.

    Returns:
        The figure; None if x and y are left out and the table has no such columns.

    >>> rows = [{"k": k, "seed": seed, "loss": (seed + 1) / k} for k in (1, 10, 100) for seed in range(3)]
    >>> figure = table_figure("Losses", rows)
    >>> figure.xlabel, figure.ylabel, figure.series[0].y
    ('k', 'loss', (2.0, 0.2, 0.02))
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for role, name in (("x", x), ("y", y), ("hue", hue)):
        if name is not None and not (isinstance(name, str) and name in columns):
            raise InvalidInputError(f"{role}: the table has no column {name!r:.60}{nearest(name, columns)}")
    across = _default_x(columns, rows) if x is None else x
    up = _default_y(columns, rows, across) if y is None else y
    if across is None or up is None:
        if x is None and y is None and hue is None:
            return None
        missing = "x: no column varies" if across is None else "y: the table has no column of numbers that were found"
        raise NotSupportedError(f"{missing}; name one of {', '.join(columns) or 'none'}")
    if not _numeric(up, rows):
        raise InvalidInputError(f"y: the column {up!r:.60} has values that are not numbers")
    drawn = [row for row in rows if row.get(across) is not None and row.get(up) is not None and _single(row, hue)]
    if not drawn:
        raise NotSupportedError(f"no row has both {across} and {up}; finished cells may all have failed")
    left = len(rows) - len(drawn)
    words = f" {left} rows without {across} or {up} are left out." if left else ""
    hues = _values(hue, drawn)
    if len(hues) > MOST_HUES:
        raise InvalidInputError(
            f"hue: {hue} has {len(hues)} values, and at most {MOST_HUES} curves can be told apart; choose another hue"
        )
    make = _curves if _numeric(across, drawn) else _bars
    return make(title, words, drawn, across, up, hue, hues)


# ---------------------------------------------------------------------------------------------------- which columns


def _default_x(columns: Sequence[str], rows: Rows) -> str | None:
    given = columns[: columns.index("seed")] if "seed" in columns else columns
    candidates = [name for name in ("k", *given) if name in columns and name not in OWN]
    varying = [name for name in candidates if len(_values(name, rows)) > 1]
    numbers = [name for name in varying if _numeric(name, rows)]
    return next(iter([*numbers, *varying, *(name for name in candidates if _numeric(name, rows))]), None)


def _default_y(columns: Sequence[str], rows: Rows, across: str | None) -> str | None:
    results = columns[columns.index("seed") + 1 :] if "seed" in columns else columns
    return next((name for name in results if name not in (*OWN, "k", across) and _numeric(name, rows)), None)


def _numeric(name: str, rows: Rows) -> bool:
    """Whether a column has numbers, and nothing else; booleans are words."""
    given = [row[name] for row in rows if row.get(name) is not None]
    return bool(given) and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in given)


def _single(row: Mapping[str, Any], hue: str | None) -> bool:
    return hue is None or row.get(hue) is not None


def _values(name: str | None, rows: Rows) -> list[Any]:
    """The different values of a column: numbers sorted, others in the order in which they come."""
    if name is None:
        return [None]
    given = {_word(row[name]): row[name] for row in rows if row.get(name) is not None}
    return sorted(given.values()) if _numeric(name, rows) else list(given.values())


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and value == float(f"{value:g}") else str(value)


# --------------------------------------------------------------------------------------------------------- drawing


def _float(value: Any) -> float:
    """The number as a float; infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _curves(title: str, words: str, rows: Rows, x: str, y: str, hue: str | None, hues: Sequence[Any]) -> Curves:
    """Curves with bands."""
    series = []
    sizes = set()
    for number, value in enumerate(hues):
        chosen = [row for row in rows if hue is None or row[hue] == value]
        groups: dict[float, list[float]] = {}
        for row in chosen:
            groups.setdefault(_float(row[x]), []).append(_float(row[y]))
        places = sorted(place for place in groups if not math.isnan(place))
        several = any(len(groups[place]) > 1 for place in places)
        sizes |= {len(groups[place]) for place in places}
        ends = {level: tuple(_quantile(groups[place], level) for place in places) for level in (LOW, 0.5, HIGH)}
        name = y if hue is None else f"{hue} = {_word(value)}"
        series.append(
            Series(
                name, tuple(places), ends[0.5], ends[LOW] if several else None, ends[HIGH] if several else None,
                role="exact", group=number,
            )
        )  # fmt: skip
    across = [place for curve in series for place in curve.x]
    up = [value for curve in series for value in curve.y]
    return Curves("study", title, _caption(y, sizes) + words, x, y, tuple(series), xlog=_spans(across), ylog=_spans(up))


def _bars(title: str, words: str, rows: Rows, x: str, y: str, hue: str | None, hues: Sequence[Any]) -> Bars:
    """A dot for each text."""
    names: list[str] = []
    values: list[float] = []
    sizes = set()
    for place in _values(x, rows):
        for value in hues:
            group = [_float(row[y]) for row in rows if row[x] == place and (hue is None or row[hue] == value)]
            if group:
                names.append(_word(place) if hue is None else f"{_word(place)}, {hue} = {_word(value)}")
                values.append(_quantile(group, 0.5))
                sizes.add(len(group))
    if len(names) > MOST_NAMES:
        raise InvalidInputError(f"x: {x} has {len(names)} texts, and at most {MOST_NAMES} can be drawn")
    return Bars("study", title, _caption(y, sizes, "") + words, y, tuple(names), tuple(values), log=_spans(values))


def _caption(y: str, sizes: set[int], bands: str = "; bands have the middle 90 % of them") -> str:
    if sizes == {1}:
        return f"{y}, one row each."
    least, most = min(sizes), max(sizes)
    rows = f"{most} rows" if least == most else f"{least} to {most} rows"
    return f"{y}: the median of {rows} each{bands}."


def _quantile(values: Sequence[float], level: float) -> float:
    """A quantile, between neighbours; NaN where a value is NaN, and no arithmetic with infinity."""
    ordered = sorted(values)
    if any(map(math.isnan, ordered)):
        return math.nan
    place = level * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return low if low == high else float(np.interp(place % 1, (0, 1), (low, high))) if math.isfinite(high) else high


def _spans(values: Sequence[float | None]) -> bool:
    """Whether a logarithmic axis shows more: no value is negative, few are 0, and the others span a factor of 10."""
    finite = [value for value in values if value is not None and math.isfinite(value)]
    positive = [value for value in finite if value > 0]
    few = 2 * len(positive) > len(finite) and min(finite) >= 0
    return few and max(positive) / min(positive) > DECADE
