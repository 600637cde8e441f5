"""The points of a figure that can be drawn, and the ends of its axes, for numbers of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeGuard

from forgetting.figures.items import Band, Curves, Regions, Series

__all__ = ["Span", "band_points", "clipped", "curve_points", "curve_spans", "drawn_cells", "known", "map_spans", "span"]

Span = tuple[float, float]
#: values that agree to this share are drawn as equal: labels of ticks have six digits
CLOSE = 1e-4
#: larger numbers are drawn at the edge, and so are smaller ones on a logarithmic axis: matplotlib ends near 1e300
HUGE = 1e280


def known(value: float | None) -> TypeGuard[float]:
    """Whether a value is a number that can be drawn: not None, NaN or infinite.

    >>> known(1.0), known(None), known(math.inf)
    (True, False, False)
    """
    return value is not None and math.isfinite(value)


def clipped(value: float, log: bool = False) -> float:
    """The value, or the nearest value that matplotlib can place on an axis.

    >>> clipped(1e300), clipped(1e-300, log=True), clipped(-2.0)
    (1e+280, 1e-280, -2.0)
    """
    return min(max(value, 1 / HUGE if log else -HUGE), HUGE)


def span(values: Iterable[float], log: bool, air: float = 0.0) -> Span:
    """The ends of an axis that shows all values; `air` is the share of a logarithmic axis that stays empty at each end.

    Values that nearly agree are in the middle of an axis that is longer than they need.

    >>> span([1.0, 100.0], log=True), span([], log=True), span([0.0, 10.0], log=False)
    ((1.0, 100.0), (0.1, 1.0), (0.0, 10.0))
    >>> span([3.0, 3.0], log=False), span([1.0, 1.0 + 1e-16], log=True)
    ((2.5, 3.5), (0.5, 2.0))
    """
    shown = [clipped(value, log) for value in values] or [0.1, 1.0]
    low, high = min(shown), max(shown)
    if log:
        size = math.log10(high) - math.log10(low)
        factor = 10.0 ** (air * size) if size > CLOSE else 2.0
        return low / factor, high * factor
    largest = max(abs(low), abs(high))
    more = 0.0 if high - low > max(CLOSE * largest, 1 / HUGE) else max(0.5, 0.05 * largest)
    return low - more, high + more


def curve_spans(item: Curves) -> tuple[Span, Span]:
    """The ends of both axes of a figure of curves.

    >>> curve_spans(Curves("f", "", "", "k", "loss", (Series("a", (1.0, 10.0), (1.0, None)),), ylog=False))
    ((0.5, 2.0), (0.5, 1.5))
    """
    points = [point for series in item.series for point in curve_points(series, item)]
    return span([x for x, _ in points], item.xlog), span([y for _, y in points], item.ylog, air=0.03)


def curve_points(series: Series, item: Curves) -> list[tuple[float, float]]:
    """The points of a curve that can be drawn.

    >>> series = Series("a", (1.0, 2.0, 3.0), (0.5, None, 0.0))
    >>> curve_points(series, Curves("f", "", "", "k", "loss", (series,)))
    [(1.0, 0.5)]
    """
    pairs = zip(series.x, series.y, strict=True)
    return [(x, y) for x, y in pairs if known(x) and known(y) and (x > 0 or not item.xlog) and _shown(y, item)]


def band_points(series: Series, item: Curves) -> list[tuple[float, float, float]]:
    """x and the two ends of the band around a curve, where the band can be drawn.

    >>> series = Series("a", (1.0, 2.0), (0.5, None), (0.4, None), (0.6, 0.7))
    >>> band_points(series, Curves("f", "", "", "k", "loss", (series,)))
    [(1.0, 0.4, 0.6)]
    """
    if series.low is None or series.high is None:
        return []
    triples = zip(series.x, series.low, series.high, strict=True)
    return [
        (x, low, high)
        for x, low, high in triples
        if known(x) and known(low) and known(high) and (x > 0 or not item.xlog) and _shown(high, item)
    ]


def _shown(value: float, item: Curves) -> bool:
    floor = item.floor if known(item.floor) else 0.0
    return not item.ylog or value > max(floor, 0.0)


def drawn_cells(item: Regions) -> list[tuple[Band, Span, Span]]:
    """The cells of a map that can be drawn, each with its ends along x and along y.

    >>> [cell[1:] for cell in drawn_cells(Regions("f", "", "", "k", "d", (Band(2.0, 1.0, 5.0, "a"),), ("a",)))]
    [((1.0, 6.0), (1.0, 4.0))]
    """
    cells = [
        (band, clipped(band.y, log=True), clipped(band.first, log=True), clipped(band.last, log=True))
        for band in item.bands
        if known(band.y) and known(band.first) and known(band.last) and min(band.y, band.first, band.last) > 0
    ]
    rows = sorted({y for _, y, _, _ in cells})
    edges = dict(zip(rows, _row_edges(rows), strict=True))
    return [(band, (first, last + 1), edges[y]) for band, y, first, last in cells]


def map_spans(item: Regions) -> tuple[Span, Span]:
    """The ends of both axes of a map; the last column ends at its last value.

    >>> map_spans(Regions("f", "", "", "k", "d", (Band(2.0, 1.0, 5.0, "a"),), ("a",)))
    ((1.0, 5.0), (1.0, 4.0))
    """
    cells = drawn_cells(item)
    x = span([value for band, _, _ in cells for value in (band.first, band.last) if known(value)], log=True)
    return x, span([value for _, _, ends in cells for value in ends], log=True)


def _row_edges(rows: list[float]) -> list[Span]:
    """The ends of each row of a map: half-way between rows on a logarithmic scale."""
    if len(rows) < 2:
        return [(row / 2, row * 2) for row in rows]
    middles = [math.sqrt(a) * math.sqrt(b) for a, b in pairwise(rows)]
    first, last = (
        clipped(row * (row / middle), log=True) for row, middle in ((rows[0], middles[0]), (rows[-1], middles[-1]))
    )
    return list(zip([first, *middles], [*middles, last], strict=True))
