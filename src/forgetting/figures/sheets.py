"""The data behind each figure and table as CSV."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from forgetting.core.text import csv_text
from forgetting.figures.items import Bars, Curves, Item, Matrix, Paths, Regions, Spread, Table

__all__ = ["to_csv"]


def to_csv(item: Item) -> str:
    """One long table per item, numbers at full precision.

    >>> from forgetting.figures.items import Series
    >>> print(to_csv(Curves("f", "", "", "k", "loss", (Series("a", (1.0,), (0.5,)),))).replace(chr(13), ""))
    series,role,method,k,loss,low,high
    a,exact,,1.0,0.5,,
    <BLANKLINE>
    """
    return csv_text(_rows(item))


def _rows(item: Item) -> Iterable[tuple[Any, ...]]:
    if isinstance(item, Curves):
        yield ("series", "role", "method", item.xlabel, item.ylabel, "low", "high")
        for one in item.series:
            low = one.low or ("",) * len(one.x)
            high = one.high or ("",) * len(one.x)
            for point in zip(one.x, one.y, low, high, strict=True):
                yield (one.name, one.role, one.method, *point)
    elif isinstance(item, Regions):
        yield (item.ylabel, f"{item.xlabel}: first", "last", "name")
        for band in item.bands:
            yield (band.y, band.first, band.last, band.name)
    elif isinstance(item, Paths):
        yield ("run", "step", "task", "x", "y")
        for stage in item.stages:
            for step, (x, y) in enumerate(stage.points):
                yield (stage.name, step, "" if step == 0 else stage.order[step - 1], x, y)
    elif isinstance(item, Matrix):
        yield (item.ylabel, *item.columns)
        for name, row in zip(item.rows, item.values, strict=True):
            yield (name, *row)
    elif isinstance(item, Bars):
        yield ("name", item.xlabel)
        yield from zip(item.names, item.values, strict=True)
    elif isinstance(item, Spread):
        yield ("panel", "name", "value")
        for panel in item.panels:
            yield from ((panel.xlabel, name, value) for name, value in zip(item.names, panel.marks, strict=True))
            yield from ((panel.xlabel, "", value) for value in panel.values)
    elif isinstance(item, Table):
        yield item.columns
        yield from item.rows
