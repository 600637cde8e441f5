"""What of a figure can be drawn, and on which axes: the same for the page and for matplotlib."""

from __future__ import annotations

import math
from itertools import pairwise

from forgetting.report.data import Band, Curves, Regions, Series
from forgetting.report.render.ticks import LARGEST, SMALLEST, Axis, known, span

__all__ = ["band_points", "curve_axes", "curve_points", "drawn_cells", "map_axes", "row_edges"]


def curve_axes(item: Curves) -> tuple[Axis, Axis]:
    """The two axes of a figure: they show every point that can be drawn.

    >>> x, y = curve_axes(Curves("f", "", "", "k", "loss", (Series("a", (1.0, 10.0), (1.0, None)),), ylog=False))
    >>> (x.low, x.high), (y.low, y.high)
    ((0.5, 2.0), (0.5, 1.5))
    """
    values = [point for one in item.series for point in curve_points(one, item)]
    x = Axis(*span([a for a, _ in values], item.xlog), log=item.xlog, whole=item.whole)
    # a little air above and below
    y = Axis(*span([b for _, b in values], item.ylog, air=0.03), log=item.ylog)
    return x, y


def curve_points(one: Series, item: Curves) -> list[tuple[float, float]]:
    """The points that can be drawn.

    >>> series = Series("a", (1.0, 2.0, 3.0), (0.5, None, 0.0))
    >>> curve_points(series, Curves("f", "", "", "k", "loss", (series,)))
    [(1.0, 0.5)]
    """
    pairs = zip(one.x, one.y, strict=True)
    return [(a, b) for a, b in pairs if known(a) and known(b) and (a > 0 or not item.xlog) and _shown(b, item)]


def band_points(one: Series, item: Curves) -> list[tuple[float, float, float]]:
    """x and the two ends of the band around a curve, where it can be drawn.

    >>> series = Series("a", (1.0, 2.0), (0.5, None), (0.4, None), (0.6, 0.7))
    >>> band_points(series, Curves("f", "", "", "k", "loss", (series,)))
    [(1.0, 0.4, 0.6)]
    """
    if one.low is None or one.high is None:
        return []
    triples = zip(one.x, one.low, one.high, strict=True)
    return [
        (a, b, c)
        for a, b, c in triples
        if known(a) and known(b) and known(c) and (a > 0 or not item.xlog) and _shown(c, item)
    ]


def _shown(value: float, item: Curves) -> bool:
    floor = item.floor if known(item.floor) else 0.0
    return not item.ylog or value > max(floor, 0.0)


def drawn_cells(item: Regions) -> list[tuple[Band, tuple[float, float], tuple[float, float]]]:
    """The cells that can be drawn, with where each begins and ends, horizontally and vertically.

    >>> [cell[1:] for cell in drawn_cells(Regions("f", "", "", "k", "d", (Band(2.0, 1.0, 5.0, "a"),), ("a",)))]
    [((1.0, 6.0), (1.0, 4.0))]
    """
    cells = [
        (band, band.y, band.first, band.last)
        for band in item.bands
        if known(band.y) and known(band.first) and known(band.last) and min(band.y, band.first, band.last) > 0
    ]
    rows = sorted({y for _, y, _, _ in cells})
    edges = dict(zip(rows, row_edges(rows), strict=True))
    return [(band, (first, last + 1), edges[y]) for band, y, first, last in cells]


def map_axes(item: Regions) -> tuple[Axis, Axis]:
    """The two axes of a map; the last column is cut at its last value.

    >>> x, y = map_axes(Regions("f", "", "", "k", "d", (Band(2.0, 1.0, 5.0, "a"),), ("a",)))
    >>> (x.low, x.high), (y.low, y.high)
    ((1.0, 5.0), (1.0, 4.0))
    """
    cells = drawn_cells(item)
    x = span([value for band, _, _ in cells for value in (band.first, band.last) if known(value)], log=True)
    y = span([value for _, _, edges in cells for value in edges], log=True)
    return Axis(*x, log=True), Axis(*y, log=True)


def row_edges(rows: list[float]) -> list[tuple[float, float]]:
    """Where each row of a map begins and ends, on a log scale.

    >>> row_edges([1.0, 4.0])
    [(0.5, 2.0), (2.0, 8.0)]
    """
    if len(rows) < 2:
        return [(max(row / 2, SMALLEST), min(row * 2, LARGEST)) for row in rows]
    middles = [math.sqrt(a) * math.sqrt(b) for a, b in pairwise(rows)]
    lows = [max(rows[0] * (rows[0] / middles[0]), SMALLEST), *middles]
    highs = [*middles, min(rows[-1] * (rows[-1] / middles[-1]), LARGEST)]
    return list(zip(lows, highs, strict=True))
