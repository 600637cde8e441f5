"""The axes of a figure: the points that can be drawn, for numbers of any size; ends, ticks, words and legend."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeGuard

from forgetting.core.text import one_line
from forgetting.figures.items import Band, Curves, Regions, Series
from forgetting.figures.style import Look, greek

Span = tuple[float, float]
#: values that agree to this share are drawn as equal: labels of ticks have six digits
CLOSE = 1e-4
#: larger numbers are drawn at the edge, and so are smaller ones on a logarithmic axis: matplotlib ends near 1e300
HUGE = 1e280
LONGEST = 120  # letters of a title
LABEL = 42  # letters beside an axis
NAME = 78  # letters of a name in a legend
NAMES = 40  # names in a legend
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


# ------------------------------------------------------------------------------------------------------ points and ends


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
    heights = [y for _, y in points]
    heights = [y for _, y in points]
    lowest = 0.1 * min(heights, default=0.0) if item.ylog else -math.inf  # of a band, what is near the curves
    bands = [max(end, lowest) for series in item.series for _, *ends in band_points(series, item) for end in ends]
    return span([x for x, _ in points], item.xlog), span([*heights, *bands], item.ylog, air=0.03)


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


# ---------------------------------------------------------------------------------------------- ticks, words and legend


def set_axis(axis: Any, ends: Span, log: bool = False, whole: bool = False) -> None:
    """Set ends, scale and ticks of an axis: round numbers, powers of ten over decades, whole numbers of what counts."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

    name = axis.axis_name
    axis.axes.set(**{f"{name}scale": "log" if log else "linear", f"{name}lim": ends})
    decades = math.log10(ends[1]) - math.log10(ends[0]) if log else 0.0
    if decades >= 1:
        axis.set_major_locator(LogLocator(subs=(1.0,) if decades >= 2 else (1.0, 2.0, 5.0), numticks=8))
    else:
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=whole, min_n_ticks=1))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)) if log else StrMethodFormatter("{x:g}"))


def _power(value: float) -> str:
    """The label of a number on a logarithmic axis; small and large powers of ten are written as powers."""
    power = math.log10(value) if 0 < value < math.inf else 0.5
    if abs(power - round(power)) < 1e-9 and not -2 < power < 3:
        return "10" + str(round(power)).translate(SUPERSCRIPTS)
    return f"{value:g}"


def shown_words(words: str, most: int = LONGEST) -> str:
    """Words for matplotlib, which hides names that begin with an underscore."""
    line = re.sub(r"\^(\d+)", lambda power: power[1].translate(SUPERSCRIPTS), greek(one_line(words, most)))
    return f" {line}" if line.startswith("_") else line


def short_number(value: float) -> str:
    """The value with two digits, in at most six characters.

    >>> [short_number(value) for value in (0.0, -0.4231, 13.86, 1203.0, -2.2e-16)]
    ['0', '-0.42', '14', '1e3', '-2e-16']
    """
    size = abs(value)
    if size == 0 or 0.01 <= size < 999.5:
        return f"{value:.0f}" if size >= 9.95 else f"{value:.2g}"
    mantissa, power = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(power)}"


def legend_below(figure: Any, look: Look, handles: list[Any], labels: list[str]) -> None:
    """Draw a legend below the axes, for which the figure grows; of very many names the first few."""
    if not handles:
        return
    labels = [textwrap.fill(label, look.letters, break_on_hyphens=False) for label in labels[:NAMES]]
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= look.letters // 2 - 4 else 1
    legend = figure.legend(
        handles[:NAMES], labels, loc="outside lower center", ncols=columns, handlelength=3.4, labelspacing=0.35
    )
    for handle, shown, text in zip(handles, legend.legend_handles, legend.get_texts(), strict=False):
        for part in (shown, text):
            part.set_gid(handle.get_gid().replace("class=series", "class=key"))
    width, height = figure.get_size_inches()
    rows = math.ceil(sum(label.count("\n") + 1 for label in labels) / columns)
    figure.set_size_inches(width, height + look.row * (rows + 0.5))
