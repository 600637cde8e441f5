"""Every kind of figure, drawn by matplotlib: on paper, as PNG and PDF, and as the source of the drawings of a page.

Artists carry attributes for the page in their `gid`, as "name=value;name=value": what belongs to a curve or a region is
`class=series` with its number, and what stands for it in the legend is `class=key` with the same number.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np

from forgetting.core.arrays import as_kind
from forgetting.core.text import one_line
from forgetting.figures.axes import (
    CLOSE,
    LABEL,
    NAME,
    NAMES,
    band_points,
    clipped,
    curve_points,
    curve_spans,
    drawn_cells,
    known,
    legend_below,
    map_spans,
    set_axis,
    short_number,
    shown_words,
    span,
)
from forgetting.figures.items import (
    Bars,
    Curves,
    Item,
    Line,
    Matrix,
    Panel,
    Paths,
    Point,
    Regions,
    Series,
    Spread,
    Stage,
)
from forgetting.figures.style import (
    COLOURS,
    FOR_BOUNDS,
    GRAY,
    IDLE,
    PAPER,
    Look,
    Studio,
    curve_look,
    drawing,
    ordered,
    region_index,
    short_name,
)

WIDE_LABEL = 64  # letters beside a value of its own
WIDEST = 60.0  # inches
DIRECT = 5  # more curves than this are named at their ends, where there is room beside the axes
ROWS = 25  # more rows of a matrix than this are not all named
STRONGEST = 0.5  # opacity of the largest value of a matrix
SHADES = 41  # of a matrix; matplotlib draws a bar of fewer than 50 as shapes
BINS = 30
DECADES = 3.0  # values that span more are drawn on a logarithmic axis
SHAPES = "osv^D"  # of the marks
AROUND = 1.28  # axes with their words, as part of the axes before their layout
NARROW, COLUMN = 2.5, 5.0  # inches: narrower axes have fewer names; narrower ones, smaller letters
HIGH, LOW = 3.5, 2.1  # inches: lower axes have short names; lower ones, fewer
LETTER = 0.54  # width of a letter, as part of its height
#: names where there is little room: "Theorem 8", "guarantee, loss"
SHORT: dict[str, Callable[[str], str]] = {
    "bound": lambda name: name.partition(", ")[0],
    "worst": lambda name: "a worst case",
    "guarantee": lambda name: name.partition(": ")[0],
}
PANEL = 0.5  # height of a panel, as part of the height of a figure


def draw(item: Item, studio: Studio, look: Look = PAPER) -> Any:
    """Draw the item as a matplotlib figure."""
    drawn: dict[type, Callable[[Any, Studio, Look], Any]] = {
        Curves: _curves, Regions: _regions, Paths: _stages, Matrix: _matrix, Bars: _bars, Spread: _spread,
    }  # fmt: skip
    if type(item) not in drawn:
        raise TypeError(f"no picture of a {item.kind}")
    return drawn[type(item)](item, studio, look)


def draw_on(item: Item, axes: Any = None) -> Any:
    """Draw curves, bars, a matrix or the first panel of a spread onto axes of pyplot (None: new ones); returns them.

    Letters, lines of words and the number of names follow the size of the axes, and the legend is below them. A figure
    without a layout gets the constrained one, which leaves room for both.
    """
    from matplotlib import rcParams
    from matplotlib.axes import Axes

    if axes is None:
        import matplotlib.pyplot as plt

        wide, tall = rcParams["figure.figsize"]
        if isinstance(item, Bars):
            tall = max(tall, 0.3 * len(item.names) + 1.5)
        axes = plt.subplots(figsize=(wide, tall), layout="constrained")[1]
    as_kind(axes, Axes, "axes of matplotlib", "ax: ")
    figure = axes.figure.canvas.figure  # of a subfigure, too
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    width, height = AROUND * axes.bbox.width / figure.dpi, AROUND * axes.bbox.height / figure.dpi
    most = 7 if width < NARROW else 8 if width < COLUMN or isinstance(item, Bars) else math.inf
    points = min(rcParams["font.size"], most)
    letters = int(width / (LETTER * points / 72))
    axes.tick_params(labelsize=points)
    with np.errstate(all="ignore"):
        if isinstance(item, Curves):
            plot_curves(_few(item, width, height), axes)
        elif isinstance(item, Matrix):
            plot_matrix(item, axes)
        elif isinstance(item, Bars):
            plot_bars(item, axes, (72 * height - 10 * points) / (1.3 * points), letters // 2)
        elif isinstance(item, Spread) and item.panels:
            plot_panel(item, item.panels[0], axes)
        else:
            raise TypeError(f"no axes for a {item.kind}")
    names = [label.get_text() for label in axes.get_yticklabels()] if isinstance(item, Bars) else []
    beside = max([10, *(3 + len(line) for name in names for line in name.split("\n"))])  # letters left of the axes
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set(size=points, text=_folded(label.get_text(), letters - beside))
    axes.set_title(_folded(shown_words(item.title), int(0.9 * (letters - beside))), fontsize=1.1 * points)
    _legend_under(axes, letters, 0.8 * beside, points)
    return axes


def _folded(words: str, letters: int) -> str:
    """The words in lines of at most so many letters, which end between words."""
    return textwrap.fill(words, max(letters, 8), break_on_hyphens=False)


def _few(item: Curves, width: float, height: float) -> Curves:
    """The curves with one name for each family of bounds, that of the smallest: the others are thin and gray.

    Axes that are not high have short names, and small ones name one bound in all.
    """
    small = width < NARROW or height < LOW
    series: list[Series] = []
    named: set[tuple[str, int]] = set()
    for curve in item.series:
        if curve.role in ("bound", "worst", "rate") and not curve.minor:
            family = (curve.role, curve.group % len(FOR_BOUNDS))
            curve = replace(curve, minor=family in named or curve.role == "rate" or (small and bool(named)))
            named.add(family)
        if height < HIGH and curve.role in SHORT:
            curve = replace(curve, label=SHORT[curve.role](short_name(curve)))
        series.append(curve)
    return replace(item, series=tuple(series))


def _legend_under(axes: Any, letters: int, left: float, points: float) -> None:
    """Draw the legend below the words of the horizontal axis, from so many letters left of the axes."""
    from matplotlib.transforms import ScaledTranslation

    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    labels = [_folded(label, letters - 7) for label in labels[:NAMES]]
    longest = {n: [max(map(len, part)) for part in np.array_split(labels, n)] for n in (3, 2) if n <= len(labels)}
    columns = next((n for n, sizes in longest.items() if sum(sizes) + 7 * n <= letters), 1)
    lines = 1 + axes.get_xlabel().count("\n")
    down = (1.3 * (1 + lines) * points + 9) / 72  # marks, their words, and those of the axis
    shift = ScaledTranslation(-left * LETTER * points / 72, -down, axes.figure.dpi_scale_trans)
    axes.legend(
        handles[:NAMES], labels, fontsize=points, handlelength=2.4, labelspacing=0.3, columnspacing=1.5, frameon=False,
        loc="upper left", bbox_to_anchor=(0.0, 0.0), bbox_transform=axes.transAxes + shift, borderpad=0.0,
        borderaxespad=0.0, ncols=columns,
    )  # fmt: skip


def pictures(item: Item, endings: Sequence[str] = (".png", ".pdf")) -> dict[str, bytes]:
    """The figure of an item as the content of a file for each ending; it depends on the data alone, not on the day."""
    made = {}
    with drawing() as studio:
        figure = draw(item, studio)
        figure.draw_without_rendering()
        figure.set_layout_engine(None)  # the layout, and the box, once for all files
        box = figure.get_tightbbox().padded(0.06)
        for ending in endings:
            buffer = BytesIO()
            dates = {"CreationDate": None} if ending == ".pdf" else None
            figure.savefig(buffer, format=ending[1:], metadata=dates, bbox_inches=box)
            made[ending] = buffer.getvalue()
    return made


def _figure(item: Item, studio: Studio, look: Look, layout: str | None = "constrained") -> tuple[Any, Any]:
    figure, axes = studio.subplots(figsize=(look.width, look.height), layout=layout)
    if look.titled:
        axes.set_title(shown_words(item.title))
    return figure, axes


# --------------------------------------------------------------------------------------------------------------- curves


def _curves(item: Curves, studio: Studio, look: Look) -> Any:
    direct = look.titled and sum(not series.minor for series in item.series) > DIRECT
    figure, axes = _figure(item, studio, look, None if direct else "constrained")
    plot_curves(item, axes)
    if direct:
        _name_directly(item, axes)
    else:
        legend_below(figure, look, *axes.get_legend_handles_labels())
    return figure


def _name_directly(item: Curves, axes: Any) -> None:
    """Write each curve's name at its right end, moved apart where names would touch."""
    share = axes.transScale + axes.transLimits
    named = []
    for series in item.series:
        points = curve_points(series, item)
        if points and not series.minor and series.low is None:
            named.append((float(share.transform(_placed(points[-1], item))[1]), series))
    del named[NAMES:]
    named.sort(key=lambda pair: pair[0])
    gap = 0.062
    heights: list[float] = []
    for place, _ in named:
        heights.append(max(place, heights[-1] + gap) if heights else place)
    if heights and heights[-1] > 1.0:  # push down what left the figure
        heights = [min(height, 1.0 - gap * (len(heights) - 1 - i)) for i, height in enumerate(heights)]
    for height, (place, series) in zip(heights, named, strict=True):
        axes.annotate(
            shown_words(short_name(series), NAME), (1.0, place), xytext=(1.045, height), xycoords="axes fraction",
            textcoords="axes fraction", fontsize=7, va="center", color=curve_look(item, series).colour,
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "#888", "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )  # fmt: skip
    if others := _others(item):
        axes.text(1.045, -0.13, f"gray: {others}", transform=axes.transAxes, fontsize=7, color="#777777", va="center")


def _others(item: Curves) -> str:
    """The legend entry of all thin gray curves together."""
    gray = sum(series.minor for series in item.series)
    return f"{gray} other bound{'s' if gray > 1 else ''}" if gray else ""


def _placed(point: tuple[float, float], item: Curves) -> tuple[float, float]:
    return clipped(point[0], item.xlog), clipped(point[1], item.ylog)


def plot_curves(item: Curves, axes: Any) -> None:
    """Draw all curves of an item onto given axes; the legend is in the item's own order."""
    x, y = curve_spans(item)
    set_axis(axes.xaxis, x, item.xlog, item.whole)
    set_axis(axes.yaxis, y, item.ylog)
    order = {series: place for place, series in enumerate(ordered(item))}
    for place, series in enumerate(item.series):
        gid = f"class=series;data-series={'minor' if series.minor else place}"
        label = "_" if series.minor else shown_words(short_name(series), NAME)
        _curve(item, series, axes, label=label, gid=gid, zorder=2 + order[series] / (100 + len(order)))
    if others := _others(item):
        axes.plot([], [], color=GRAY, linewidth=0.7, label=others, gid="class=series;data-series=minor")
    axes.set_xlabel(shown_words(item.xlabel, LABEL))
    axes.set_ylabel(shown_words(item.ylabel, LABEL))


def _curve(item: Curves, series: Series, axes: Any, **options: Any) -> None:
    look = curve_look(item, series)
    points = [_placed(point, item) for point in curve_points(series, item)]
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=look.colour,
        linestyle=look.dashes,
        linewidth=look.width,
        marker="o" if len(points) == 1 else look.marker or None,
        markersize=4,
        markevery=max(1, len(points) // 6),
        markerfacecolor="none" if look.marker else look.colour,
        clip_on=len(points) != 1,
        **options,
    )
    if bands := band_points(series, item):
        ends = axes.get_ylim()
        x = [clipped(x, item.xlog) for x, _, _ in bands]
        low, high = (np.clip([band[side] for band in bands], *ends) for side in (1, 2))
        axes.fill_between(x, low, high, color=look.colour, alpha=0.16, linewidth=0, gid=options["gid"])


# ----------------------------------------------------------------------------------------------------------------- maps


def _regions(item: Regions, studio: Studio, look: Look) -> Any:
    from matplotlib.collections import PolyCollection

    figure, axes = _figure(item, studio, look)
    spans = map_spans(item)
    set_axis(axes.xaxis, spans[0], log=True)
    set_axis(axes.yaxis, spans[1], log=True)
    cells = drawn_cells(item)
    for place, name in enumerate(item.names):
        corners = []
        for band, *ends in cells:
            if band.name == name:
                (left, right), (low, high) = (np.clip(end, *reach) for end, reach in zip(ends, spans, strict=True))
                corners.append([(left, low), (right, low), (right, high), (left, high)])
        index = region_index(item, name)
        axes.add_collection(
            PolyCollection(
                corners, facecolor=IDLE if index < 0 else COLOURS[index], edgecolor="face", linewidth=0.4,
                label=shown_words(name, NAME), gid=f"class=series;data-series={place}",
            ),
            autolim=False,
        )  # fmt: skip
    if item.mark is not None and all(known(part) and part > 0 for part in item.mark):
        x, y = (float(np.clip(part or 1.0, *ends)) for part, ends in zip(item.mark, spans, strict=True))
        axes.plot(x, y, marker="*", color="white", markeredgecolor="black", markersize=13, zorder=5, clip_on=False)
    axes.grid(False)
    axes.set_xlabel(shown_words(item.xlabel, LABEL))
    axes.set_ylabel(shown_words(item.ylabel, LABEL))
    legend_below(figure, look, *axes.get_legend_handles_labels())
    return figure


# --------------------------------------------------------------------------------------------------- paths in the plane


def _stages(item: Paths, studio: Studio, look: Look) -> Any:
    """Draw the runs of an item side by side, all in the view that shows every run."""
    stages = item.stages
    count = max(len(stages), 1)
    width = look.width if count == 1 else min(0.72 * look.width * count, WIDEST)
    figure, panels = studio.subplots(1, count, figsize=(width, look.height), squeeze=False, layout="constrained")
    middle, halves = _view(item)
    for axes in panels[0]:
        for place, line in enumerate(item.lines):
            x, y = _segment(line, middle, 10 * max(halves))
            axes.plot(
                x, y, color=COLOURS[place % len(COLOURS)], linewidth=1.2, label=shown_words(line.name, NAME),
                gid=f"class=series;data-series={place}",
            )  # fmt: skip
    for axes, stage in zip(panels[0], stages, strict=False):
        _run(item, stage, axes, look)
        axes.set_title(shown_words(stage.name, NAME))
    for axes in panels[0]:
        axes.set_aspect("equal", adjustable="datalim")  # the longer side of a panel shows more
        axes.set_xlim(middle[0] - halves[0], middle[0] + halves[0])
        axes.set_ylim(middle[1] - halves[1], middle[1] + halves[1])
        axes.locator_params(nbins=6)
    legend_below(figure, look, *panels[0][0].get_legend_handles_labels())
    return figure


def _run(item: Paths, stage: Stage, axes: Any, look: Look) -> None:
    """Draw the path of one run, its start and the common solution."""
    places = stops(item, stage)
    axes.plot(*zip(*places, strict=True), color="black", lw=0.9, marker="o", markersize=2.2, zorder=4)
    axes.plot(*places[0], marker="s", color="black", markersize=5, zorder=5)
    axes.annotate("$w_0$" if look.titled else "w₀", places[0], (6, 4), textcoords="offset points", parse_math=True)
    if all(map(known, item.solution)):
        solution = [clipped(part or 0.0) for part in item.solution]
        axes.plot(*solution, marker="*", color=COLOURS[4], markersize=11, zorder=6, markeredgecolor="black")
        name = r"$w_\star$" if look.titled else "w⋆"
        axes.annotate(name, solution, (8, -14), textcoords="offset points", parse_math=True)


def stops(item: Paths, stage: Stage) -> list[tuple[float, float]]:
    """The point of a run after each step; a point that is not known is replaced by the point before.

    >>> stage = Stage("s", ((1.0, 0.0), (None, 2.0)), (0,))
    >>> stops(Paths("p", "", "", (), (0.0, 0.0), (stage,)), stage)
    [(1.0, 0.0), (1.0, 0.0)]
    """
    places: list[tuple[float, float]] = []
    for x, y in stage.points:
        before = places[-1] if places else _view(item)[0]
        places.append((clipped(x), clipped(y)) if known(x) and known(y) else before)
    return places


def _view(item: Paths) -> tuple[tuple[float, float], tuple[float, float]]:
    """The middle of all points of an item, and how far the axes reach from there."""
    points: list[Point] = [*(point for stage in item.stages for point in stage.points), item.solution]
    middle, halves = [], []
    for axis in (0, 1):
        values = [clipped(value) for point in points if known(value := point[axis])] or [0.0]
        middle.append(min(values) / 2 + max(values) / 2)
        halves.append(max(values) / 2 - min(values) / 2)
    size, largest = max(map(abs, middle)), max(halves)
    if largest <= max(CLOSE * size, 1e-250):
        largest = max(0.5, 0.05 * size)
    reach = [1.3 * half + 0.06 * largest for half in halves]
    return (middle[0], middle[1]), (reach[0], reach[1])


def _segment(line: Line, middle: tuple[float, float], reach: float) -> tuple[Any, Any]:
    """The part of a line within `reach` of the middle; nothing if the line has no direction or passes far outside."""
    (x, y), (a, b) = line.point, line.direction
    if not (known(x) and known(y) and known(a) and known(b)) or a == b == 0:
        return (), ()
    larger = max(abs(a), abs(b))
    along = np.array([a / larger, b / larger]) / math.hypot(a / larger, b / larger)
    away = np.array([along[1], -along[0]])
    distance = float((np.array([clipped(x), clipped(y)]) - middle) @ away)
    if not abs(distance) < reach:
        return (), ()
    ends = np.array(middle) + distance * away + reach * np.array([[-1.0], [1.0]]) * along
    return ends[:, 0], ends[:, 1]


# ------------------------------------------------------------------------------------------------------------- matrices


def _matrix(item: Matrix, studio: Studio, look: Look) -> Any:
    figure, axes = _figure(item, studio, look)
    plot_matrix(item, axes, 0.8 * look.style["font.size"])
    return figure


def plot_matrix(item: Matrix, axes: Any, letters: float = 8.0) -> None:
    """Draw coloured squares on given axes: blue for positive values, orange for negative ones, strength by size."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    high, wide = max(len(item.rows), 1), max(len(item.columns), 1)
    shares = np.full((high, wide), np.nan)
    values = [abs(value) for row in item.values for value in row if known(value)]
    largest = max(values, default=0.0) or 1.0
    for i, row in enumerate(item.values):
        shares[i, : len(row)] = [value / largest if known(value) else np.nan for value in row]
    seen = shares[np.isfinite(shares)]
    low, top = min(0.0, *seen, 0.0), max(0.0, *seen, 0.0)
    low, top = (low, top) if low < top else (0.0, 1.0)
    strong = STRONGEST  # numbers in the squares stay readable on light and on dark pages
    shades = [(0.0, to_rgba(COLOURS[1], strong)), (0.5, to_rgba(COLOURS[1], 0.0)), (0.5, to_rgba(COLOURS[0], 0.0)),
              (1.0, to_rgba(COLOURS[0], strong))]  # fmt: skip
    colours = LinearSegmentedColormap.from_list("values", shades, N=SHADES)
    mesh = axes.pcolormesh(np.ma.masked_invalid(shares), cmap=colours, vmin=-1.0, vmax=1.0)
    axes.invert_yaxis()
    long = max((len(_short(name)) for name in item.columns), default=0) * min(wide, ROWS) > 50
    for axis, names, most in ((axes.yaxis, item.rows, ROWS), (axes.xaxis, item.columns, 12 if long else ROWS)):
        places = range(0, len(names), -(-len(names) // most)) if names else []
        axis.set_ticks([place + 0.5 for place in places], [_short(names[place]) for place in places])
    axes.tick_params(length=0)
    if long:
        for label in axes.get_xticklabels():
            label.set(rotation=25, ha="right", rotation_mode="anchor")
    if wide <= 12 and high <= 18:
        for (i, j), share in np.ndenumerate(shares):
            if np.isfinite(share):
                axes.text(
                    j + 0.5, i + 0.5, short_number(share * largest), ha="center", va="center", clip_on=True,
                    fontsize=letters, color="black",
                )  # fmt: skip
    axes.grid(False)
    axes.set_xlabel(shown_words(item.xlabel, LABEL))
    axes.set_ylabel(shown_words(item.ylabel, LABEL))
    bar = axes.figure.colorbar(mesh, ax=axes)
    marks = sorted({low, 0.0, top})
    bar.set_ticks(marks, labels=[short_number(mark * largest) for mark in marks])
    bar.ax.set_ylim(low, top)


def _short(name: str) -> str:
    return one_line(name, 16)


# ----------------------------------------------------------------------------------------------------------------- bars


def _bars(item: Bars, studio: Studio, look: Look) -> Any:
    names = max((len(name) for name in item.names), default=0)
    wide = look.width + 0.06 * max(min(names, WIDE_LABEL) - 24, 0)
    tall = replace(look, width=wide, height=max(look.height, 0.25 * len(item.names) + 0.8))
    figure, axes = _figure(item, studio, tall)
    plot_bars(item, axes)
    legend_below(figure, look, *axes.get_legend_handles_labels())
    return figure


def plot_bars(item: Bars, axes: Any, lines: float = math.inf, letters: int = WIDE_LABEL) -> None:
    """Draw a dot for each name on given axes, from the top down; marked dots are filled.

    There is room for so many lines of words, each of so many letters. Of more names than fit the first are drawn, one
    for each beginning before a comma.
    """
    names = [_folded(shown_words(name, WIDE_LABEL), letters) for name in item.names]
    if sum(name.count("\n") + 1 for name in names) > lines:
        first = {name.partition(", ")[0]: place for place, name in reversed([*enumerate(item.names)])}
        folded = {
            _folded(shown_words(name, WIDE_LABEL), letters): first[name]
            for name in sorted(first, key=lambda name: first[name])
        }
        high = [name.count("\n") + 1 for name in folded]
        pairs = [sum(pair) / 2 for pair in pairwise(high)]  # the distance that two neighbours need
        fit = (n for n in range(len(high), 2, -1) if n * max(pairs[: n - 1]) <= lines)
        names = list(folded)[: next(fit, 2)]
        kept = [folded[name] for name in names]
        item = replace(
            item, xlabel=f"{item.xlabel} ({len(kept)} of {len(item.names)})", names=tuple(names),
            values=tuple(item.values[place] for place in kept),
            marked=tuple(kept.index(place) for place in item.marked if place in kept),
        )  # fmt: skip
    places = [place for place, value in enumerate(item.values) if known(value) and (value > 0 or not item.log)]
    values = [clipped(item.values[place] or 0.0, item.log) for place in places]
    crossing = [] if not known(item.line) else [clipped(item.line, item.log)]
    set_axis(axes.xaxis, span([*values, *crossing], item.log, air=0.05), item.log)
    for place, value in zip(places, values, strict=True):
        filled = COLOURS[0] if place in item.marked else "none"
        axes.plot(value, place, marker="o", color=COLOURS[0], markerfacecolor=filled, clip_on=False)
    for line in crossing:
        name = shown_words(item.line_name, NAME)
        axes.axvline(line, color=COLOURS[1], linewidth=1.2, label=name, gid="class=crossing")
    axes.set_yticks(range(len(item.names)), names)
    axes.set_ylim(len(item.names) - 0.5, -0.5)
    axes.set_xlabel(shown_words(item.xlabel, 2 * LABEL))


# -------------------------------------------------------------------------------------------------------- distributions


def _spread(item: Spread, studio: Studio, look: Look) -> Any:
    """Draw the panels one below the other, with one legend, as a matplotlib figure."""
    count = max(len(item.panels), 1)
    height = look.height * (PANEL * count if count > 1 else 0.75)
    figure, panels = studio.subplots(count, 1, figsize=(look.width, height), squeeze=False, layout="constrained")
    for axes, panel in zip(panels[:, 0], item.panels, strict=False):
        plot_panel(item, panel, axes)
    if look.titled:
        panels[0, 0].set_title(shown_words(item.title))
    legend_below(figure, look, *panels[0, 0].get_legend_handles_labels())
    return figure


def plot_panel(item: Spread, panel: Panel, axes: Any) -> None:
    """Draw the histogram of a panel on given axes, and its marks; names with no mark here stay in the legend."""
    everything = [value for value in (*panel.values, *panel.marks) if known(value)]
    log = (
        bool(everything) and min(everything) > 0 and math.log10(max(everything)) - math.log10(min(everything)) > DECADES
    )
    values = [clipped(value, log) for value in panel.values if known(value)]
    places = [clipped(mark, log) if known(mark) else None for mark in panel.marks]
    ends = span([*values, *(place for place in places if place is not None)], log, air=0.04)
    if not log:  # marks at the ends stay inside
        ends = ends[0] - 0.04 * (ends[1] - ends[0]), ends[1] + 0.04 * (ends[1] - ends[0])
    edges = np.geomspace(*ends, BINS + 1) if log else np.linspace(*ends, BINS + 1)
    edges[0], edges[-1] = ends  # geomspace may round
    counts = np.histogram(values, edges)[0] if values else np.zeros(BINS)
    shares = 100 * counts / max(len(values), 1)
    tallest = float(shares.max()) or 1.0
    axes.stairs(shares, edges, fill=True, color=GRAY, alpha=0.55)
    set_axis(axes.yaxis, (0.0, 1.12 * tallest))
    set_axis(axes.xaxis, ends, log)
    axes.locator_params(axis="y", nbins=3)
    for number, (name, place) in enumerate(zip(item.names, places, strict=True)):
        look = {"color": COLOURS[number % len(COLOURS)], "linewidth": 1.2}
        height = tallest * (1.02 - 0.13 * (number % 7))  # marks at the same place stay apart
        label = {"label": shown_words(name, NAME), "gid": f"class=series;data-series={number}"}
        shown = ([], []) if place is None else ([place, place], [0.0, height])
        axes.plot(
            *shown,
            marker=SHAPES[number % len(SHAPES)],
            markersize=5,
            markevery=[1] if shown[0] else None,
            **look,
            **label,
        )
    axes.set_xlabel(shown_words(panel.xlabel, 2 * LABEL))
    axes.set_ylabel(shown_words(f"% of {item.unit}", LABEL))
