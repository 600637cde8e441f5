"""PNG and PDF in a style that goes into a paper as it is."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from forgetting._text import one_line
from forgetting.report.data import Curves, Item, Matrix, Paths, Regions, Series
from forgetting.report.render.drawable import band_points, curve_axes, curve_points, drawn_cells, map_axes
from forgetting.report.render.heat import LONGEST, draw_matrix
from forgetting.report.render.palette import (
    COLOURS,
    GRAY,
    colour_index,
    dash_index,
    greek,
    ordered,
    region_index,
    short_name,
)
from forgetting.report.render.plane import Plane
from forgetting.report.render.ticks import Axis

__all__ = ["draw", "paper_style", "pictures", "plot_curves", "save_figure"]

STYLE = {
    "font.family": "serif",
    "font.size": 9,
    "mathtext.fontset": "cm",
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
    "text.parse_math": False,  # a dollar in a name is a dollar
}
NAME = 80  # letters in a legend
NAMES = 40  # in a legend
WIDEST = 60.0  # inches
DASHES = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.2, 1, 1.2, 1, 1.2)))


def save_figure(item: Item, folder: Path) -> list[Path]:
    """Write KEY.png and KEY.pdf; tables have no picture.

    >>> from forgetting.report.data import Table
    >>> save_figure(Table("t", "Numbers", "", (), ()), Path("nowhere"))
    []
    """
    if item.kind == "table":
        return []
    paths = []
    for ending, content in pictures(item).items():
        paths.append(folder / f"{item.key}{ending}")
        paths[-1].write_bytes(content)
    return paths


def pictures(item: Item, endings: Sequence[str] = (".png", ".pdf")) -> dict[str, bytes]:
    """The content of a file for each ending; it depends on the data alone, not on the day.

    >>> from forgetting.report.data import Band
    >>> pictures(Regions("r", "Phases", "", "k", "d", (Band(10.0, 1.0, 5.0, "a"),), ("a",)), [".png"])[".png"][1:4]
    b'PNG'
    """
    made = {}
    with paper_style() as plt:
        figure = draw(item, plt)
        figure.canvas.draw()
        box = figure.get_tightbbox().padded(0.06)  # once for all files
        for ending in endings:
            buffer = BytesIO()
            known = {"CreationDate": None} if ending == ".pdf" else None
            figure.savefig(buffer, format=ending[1:], metadata=known, bbox_inches=box)
            made[ending] = buffer.getvalue()
        plt.close(figure)
    return made


@contextmanager
def paper_style() -> Iterator[Any]:
    """pyplot without a display, in the style of this module."""
    import logging

    import matplotlib

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # remarks on the dates inside fonts
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(cast(Any, STYLE)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)  # of a name in letters that the font does not have
        yield plt


def draw(item: Item, plt: Any) -> Any:
    """A matplotlib figure of the item; matplotlib sees places between 0 and 1, so that no number is too large for it.

    >>> with paper_style() as plt:
    ...     len(draw(Curves("f", "", "", "k", "loss", (Series("a", (1.0, 2.0), (1.0, 0.5)),)), plt).axes)
    1
    """
    if isinstance(item, Curves):
        return _curves(item, plt)
    if isinstance(item, Regions):
        return _regions(item, plt)
    if isinstance(item, Paths):
        return _paths(item, plt)
    if isinstance(item, Matrix):
        return draw_matrix(item, plt)
    raise TypeError(f"no picture of a {item.kind}")


def _curves(item: Curves, plt: Any) -> Any:
    figure, axes = plt.subplots(figsize=(4.8, 3.2))
    _, y = plot_curves(item, axes)
    axes.set_title(_words(item.title), loc="left")
    if sum(not one.minor for one in item.series) > 5:
        _name_directly(item, axes, y)
    else:
        _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, handlelength=2.4)
    return figure


def _name_directly(item: Curves, axes: Any, y: Axis) -> None:
    """Each curve's name at its right end, moved apart where they would touch."""
    named = []
    for one in item.series:
        points = curve_points(one, item)
        if points and not one.minor and one.low is None:
            named.append((y.share(points[-1][1]), one))
    del named[NAMES:]
    gray = sum(one.minor for one in item.series)
    named.sort(key=lambda pair: pair[0])
    gap = 0.062
    at: list[float] = []
    for place, _ in named:
        at.append(max(place, at[-1] + gap) if at else place)
    over = max(0.0, at[-1] - 1.0) if at else 0.0
    for i in reversed(range(len(at))):  # push down what left the figure
        at[i] = min(at[i], 1.0 - gap * (len(at) - 1 - i)) if over else at[i]
    for height, (place, one) in zip(at, named, strict=True):
        axes.annotate(
            _words(short_name(one), NAME), (1.0, place), xytext=(1.045, height), xycoords="axes fraction",
            textcoords="axes fraction", fontsize=7, va="center", color=COLOURS[colour_index(item, one)],
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "#888", "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )  # fmt: skip
    if gray:
        words = f"gray: {gray} other bound{'s' if gray > 1 else ''} and variants"
        axes.text(1.045, -0.13, words, transform=axes.transAxes, fontsize=7, color="#777777", va="center")


def plot_curves(item: Curves, axes: Any, highest: float | None = None) -> tuple[Axis, Axis]:
    """All curves of an item onto given axes, whose scales are returned; the legend is in the item's own order.

    `highest` is where the vertical axis ends, if not at the highest curve.
    """
    x, y = curve_axes(item)
    y = y if highest is None else replace(y, high=highest)
    order = {one: place for place, one in enumerate(ordered(item))}
    gray = sum(one.minor for one in item.series)
    for one in item.series:
        label = "_" if one.minor else _words(short_name(one), NAME)
        _one_curve(item, one, axes, (x, y), label, 2 + order[one] / (100 + len(order)))
    if gray:
        axes.plot([], [], color=GRAY, linewidth=0.7, label=f"{gray} other bound{'s' if gray > 1 else ''} and variants")
    _mark(axes, x, y)
    axes.set_xlabel(_words(item.xlabel))
    axes.set_ylabel(_words(item.ylabel))
    return x, y


def _words(words: str, most: int = LONGEST) -> str:
    """Words for matplotlib, which takes a first underscore for a secret."""
    line = greek(one_line(words, most))
    return f" {line}" if line.startswith("_") else line


def _legend(axes: Any, **options: Any) -> None:
    """A legend of what has a name; the first few where there are very many."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        axes.legend(handles[:NAMES], labels[:NAMES], **options)


def _mark(axes: Any, x: Axis, y: Axis) -> None:
    """The same few ticks as in the page."""
    axes.set_xlim(0.0, 1.0)
    axes.set_ylim(0.0, 1.0)
    for axis, scale in ((axes.xaxis, x), (axes.yaxis, y)):
        found = scale.ticks()
        axis.set_ticks([scale.share(value) for value, _ in found], [label for _, label in found])


def _one_curve(item: Curves, one: Series, axes: Any, scales: tuple[Axis, Axis], label: str, zorder: float) -> None:
    index = colour_index(item, one)
    colour = GRAY if one.minor else COLOURS[index]
    points, bands, (x, y) = curve_points(one, item), band_points(one, item), scales
    value = one.role in ("exact", "simulated")
    axes.plot(
        [x.share(a) for a, _ in points],
        [y.share(b, beyond=1.0) for _, b in points],
        color=colour,
        linestyle="-" if value else DASHES[dash_index(item, one) % len(DASHES)],
        linewidth=1.9 if one.role == "exact" else 1.1 if not one.minor else 0.6,
        marker="o" if len(points) == 1 else None,
        markersize=4,
        label=label,
        zorder=zorder,
    )
    if bands:
        axes.fill_between(
            [x.share(a) for a, _, _ in bands],
            [y.share(b, beyond=1.0) for _, b, _ in bands],
            [y.share(c, beyond=1.0) for _, _, c in bands],
            color=colour,
            alpha=0.16,
            linewidth=0,
        )


def _regions(item: Regions, plt: Any) -> Any:
    figure, axes = plt.subplots(figsize=(4.8, 3.2))
    x, y = map_axes(item)
    for band, (first, last), (low, high) in drawn_cells(item):
        ends = [x.share(first), x.share(last)]
        axes.fill_between(ends, y.share(low), y.share(high), color=_area(item, band.name), lw=0)
    for name in item.names:
        axes.fill_between([], [], [], color=_area(item, name), label=_words(name, NAME))
    _mark(axes, x, y)
    axes.grid(False)
    axes.set_xlabel(_words(item.xlabel))
    axes.set_ylabel(_words(item.ylabel))
    axes.set_title(_words(item.title), loc="left")
    _legend(axes, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return figure


def _area(item: Regions, name: str) -> str:
    index = region_index(item, name)
    return "#e4e4e4" if index < 0 else COLOURS[index]


def _paths(item: Paths, plt: Any) -> Any:
    count, plane = max(len(item.stages), 1), Plane.of(item)
    figure, panels = plt.subplots(
        1, count, figsize=(min(3.4 * count, WIDEST), 3.0), squeeze=False, sharex=True, sharey=True
    )
    wide, high = (1.3 * half + 10 for half in plane.half)
    for axes in panels[0]:
        for index, line in enumerate(item.lines):
            ends = plane.line(line)
            x, y = zip(*ends, strict=True) if ends else ((), ())
            axes.plot(x, y, color=COLOURS[index % len(COLOURS)], linewidth=1.2, label=_words(line.name, NAME))
        axes.set_aspect("equal")
        axes.set_xlim(-wide, wide)
        axes.set_ylim(-high, high)
        for axis, found in ((axes.xaxis, plane.ticks(0, wide)), (axes.yaxis, plane.ticks(1, high))):
            axis.set_ticks([place for place, _ in found], [label for _, label in found])
    solution = plane.at(item.solution)
    for axes, stage in zip(panels[0], item.stages, strict=False):
        stops = plane.stops(stage)
        axes.plot(*zip(*stops, strict=True), color="black", linewidth=0.9, marker="o", markersize=2.2, zorder=4)
        axes.plot(*stops[0], marker="s", color="black", markersize=5, zorder=5)
        axes.annotate("$w_0$", stops[0], xytext=(6, 4), textcoords="offset points", parse_math=True)
        if solution is not None:
            axes.plot(*solution, marker="*", color=COLOURS[4], markersize=11, zorder=6, markeredgecolor="black")
            axes.annotate(r"$w_\star$", solution, xytext=(8, -12), textcoords="offset points", parse_math=True)
        axes.set_title(_words(stage.name, NAME), loc="left")
    handles, labels = panels[0][0].get_legend_handles_labels()
    columns = min(max(len(handles), 1), 4)
    figure.legend(handles[:NAMES], labels[:NAMES], loc="upper center", bbox_to_anchor=(0.5, 0.04), ncols=columns)
    return figure
