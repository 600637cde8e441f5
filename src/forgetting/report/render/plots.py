"""PNG and PDF in a style that goes into a paper as it is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from forgetting.report.data import Curves, Item, Matrix, Paths, Regions, Series
from forgetting.report.render.heat import draw_matrix
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
from forgetting.report.render.svg import row_edges
from forgetting.report.render.ticks import log_ticks, span, tick_label, ticks

__all__ = ["draw", "save_figure"]

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
}
DASHES = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.2, 1, 1.2, 1, 1.2)))


def save_figure(item: Item, folder: Path) -> list[Path]:
    """Write KEY.png and KEY.pdf; tables have no picture.

    >>> from forgetting.report.data import Table
    >>> save_figure(Table("t", "Numbers", "", (), ()), Path("nowhere"))
    []
    """
    if item.kind == "table":
        return []
    with paper_style() as plt:
        figure = draw(item, plt)
        paths = [folder / f"{item.key}.{ending}" for ending in ("png", "pdf")]
        figure.canvas.draw()
        box = figure.get_tightbbox().padded(0.06)  # once for both files
        for path in paths:
            # a file that depends on its data alone, not on the day
            known = {"CreationDate": None} if path.suffix == ".pdf" else None
            figure.savefig(path, metadata=known, bbox_inches=box)
        plt.close(figure)
    return paths


@contextmanager
def paper_style() -> Iterator[Any]:
    """pyplot without a display, in the style of this module."""
    import logging

    import matplotlib

    logging.getLogger("fontTools").setLevel(logging.ERROR)  # remarks on the dates inside fonts
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with matplotlib.rc_context(cast(Any, STYLE)):
        yield plt


def draw(item: Item, plt: Any) -> Any:
    """A matplotlib figure of the item.

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
    plot_curves(item, axes)
    axes.set_title(greek(item.title), loc="left")
    if sum(not one.minor for one in item.series) > 5:
        _name_directly(item, axes)
    elif item.series:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, handlelength=2.4)
    return figure


def _name_directly(item: Curves, axes: Any) -> None:
    """Each curve's name at its right end, moved apart where they would touch."""
    low, high = axes.get_ylim()
    named = []
    for one in item.series:
        values = [v for v in one.y if v is not None and v > 0]
        if values and not one.minor and one.low is None:
            place = (
                math.log(values[-1] / low) / math.log(high / low) if item.ylog else (values[-1] - low) / (high - low)
            )
            named.append((place, one))
    gray = sum(one.minor for one in item.series)
    named.sort(key=lambda pair: pair[0])
    gap = 0.062
    at: list[float] = []
    for place, _ in named:
        at.append(max(place, at[-1] + gap) if at else max(place, 0.0))
    over = max(0.0, at[-1] - 1.0) if at else 0.0
    for i in reversed(range(len(at))):  # push down what left the figure
        at[i] = min(at[i], 1.0 - gap * (len(at) - 1 - i)) if over else at[i]
    for y, (place, one) in zip(at, named, strict=True):
        axes.annotate(
            short_name(one), (1.0, min(max(place, 0.0), 1.0)), xytext=(1.045, y), xycoords="axes fraction",
            textcoords="axes fraction", fontsize=7, va="center", color=COLOURS[colour_index(item, one)],
            arrowprops={"arrowstyle": "-", "lw": 0.4, "color": "#888", "shrinkA": 0, "shrinkB": 0, "relpos": (0, 0.5)},
        )  # fmt: skip
    if gray:
        words = f"gray: {gray} other bound{'s' if gray > 1 else ''} and variants"
        axes.text(1.045, -0.13, words, transform=axes.transAxes, fontsize=7, color="#777777", va="center")


def plot_curves(item: Curves, axes: Any) -> None:
    """All curves of an item onto given axes; the legend is in the item's own order."""
    if item.xlog:
        axes.set_xscale("log")
    if item.ylog:
        axes.set_yscale("log")
    order = {one: place for place, one in enumerate(ordered(item))}
    gray = 0
    for one in item.series:
        label = short_name(one)
        if one.minor:
            gray += 1
            label = "_"
        _one_curve(item, one, axes, label, 2 + order[one] / 100)
    if gray:
        axes.plot([], [], color=GRAY, linewidth=0.7, label=f"{gray} other bound{'s' if gray > 1 else ''} and variants")
    if item.ylog:  # bands may reach down to nothing
        seen = [v for one in item.series for v in one.y if v is not None and v > (item.floor or 0.0)]
        low, high = span(seen, log=True)
        axes.set_ylim(low / (high / low) ** 0.03, high * (high / low) ** 0.03)
    if item.xlog:
        least = (item.floor or 0.0) if item.ylog else -math.inf
        pairs = [pair for one in item.series for pair in zip(one.x, one.y, strict=True)]
        axes.set_xlim(*span([x for x, y in pairs if x > 0 and y is not None and y > least], log=True))
        axes.margins(x=0)
    _mark(axes, item.xlog, item.ylog, counts=item.whole)
    axes.set_xlabel(greek(item.xlabel))
    axes.set_ylabel(greek(item.ylabel))


def _mark(axes: Any, xlog: bool, ylog: bool, *, counts: bool = False) -> None:
    """The same few ticks as in the page."""
    for axis, log, whole, (low, high) in (
        (axes.xaxis, xlog, counts, axes.get_xlim()),
        (axes.yaxis, ylog, False, axes.get_ylim()),
    ):
        found = log_ticks(low, high) if log else ticks(low, high, whole=whole)
        axis.set_ticks(found, [tick_label(value, log) for value in found])
        axis.set_ticks([], minor=True)


def _one_curve(item: Curves, one: Series, axes: Any, label: str, zorder: float) -> None:
    index = colour_index(item, one)
    colour = GRAY if one.minor else COLOURS[index]
    floor = (item.floor or 0.0) if item.ylog else None
    y = [math.nan if v is None or (floor is not None and v <= floor) else v for v in one.y]
    value = one.role in ("exact", "simulated")
    axes.plot(
        one.x,
        y,
        color=colour,
        linestyle="-" if value else DASHES[dash_index(item, one) % len(DASHES)],
        linewidth=1.9 if one.role == "exact" else 1.1 if not one.minor else 0.6,
        marker="o" if len(one.x) == 1 else None,
        markersize=4,
        label=label,
        zorder=zorder,
    )
    if one.low is not None and one.high is not None:
        least = -math.inf if floor is None else floor or 5e-324
        axes.fill_between(
            one.x,
            [max(v, least) for v in one.low],
            [max(v, least) for v in one.high],
            color=colour,
            alpha=0.16,
            linewidth=0,
        )


def _regions(item: Regions, plt: Any) -> Any:
    figure, axes = plt.subplots(figsize=(4.8, 3.2))
    rows = sorted({band.y for band in item.bands})
    edges = row_edges(rows)
    for band in item.bands:
        low, high = edges[rows.index(band.y)]
        axes.fill_between([band.first, band.last + 1], low, high, color=_area(item, band.name), lw=0)
    for name in item.names:
        axes.fill_between([], [], [], color=_area(item, name), label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(band.first for band in item.bands), max(band.last for band in item.bands))
    axes.set_ylim(edges[0][0], edges[-1][1])
    _mark(axes, True, True)
    axes.grid(False)
    axes.set_xlabel(item.xlabel)
    axes.set_ylabel(item.ylabel)
    axes.set_title(item.title, loc="left")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return figure


def _area(item: Regions, name: str) -> str:
    index = region_index(item, name)
    return "#e4e4e4" if index < 0 else COLOURS[index]


def _paths(item: Paths, plt: Any) -> Any:
    figure, panels = plt.subplots(
        1, len(item.stages), figsize=(3.4 * len(item.stages), 3.0), squeeze=False, sharex=True, sharey=True
    )
    for axes, stage in zip(panels[0], item.stages, strict=True):
        for index, line in enumerate(item.lines):
            axes.axline(
                line.point,
                (line.point[0] + line.direction[0], line.point[1] + line.direction[1]),
                color=COLOURS[index],
                linewidth=1.2,
                label=line.name,
            )
        x, y = zip(*stage.points, strict=True)
        axes.plot(x, y, color="black", linewidth=0.9, marker="o", markersize=2.2, zorder=4)
        axes.plot(x[0], y[0], marker="s", color="black", markersize=5, zorder=5)
        axes.plot(*item.solution, marker="*", color=COLOURS[4], markersize=11, zorder=6, markeredgecolor="black")
        axes.annotate("$w_0$", (x[0], y[0]), xytext=(6, 4), textcoords="offset points")
        axes.annotate(r"$w_\star$", item.solution, xytext=(8, -12), textcoords="offset points")
        axes.set_aspect("equal")
        axes.margins(0.15)
        axes.set_title(stage.name, loc="left")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, 0.04), ncols=len(item.lines))
    return figure
