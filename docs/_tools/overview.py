"""The picture of the README and of the site, for light pages and for dark ones.

`python docs/_tools/overview.py report-out docs/images/overview.png` also writes overview-dark.png, beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib

from forgetting.figures.axes import clipped, curve_points
from forgetting.figures.drawing import plot_curves
from forgetting.figures.items import Curves
from forgetting.figures.style import COLOURS, DARK, GRAY, drawing
from forgetting.report import Report, load_report

STYLE = {"font.family": "sans-serif", "font.size": 9, "axes.titlesize": 10.5, "axes.titleweight": "bold"}
#: text, then what is less important, grid lines and the background of the dark picture, which is that of the site
LIGHT, SOFT, GRID, NIGHT = "#e4e7ea", "#a6afb8", "#2b3138", "#131416"
NIGHT_STYLE = {
    "text.color": LIGHT, "axes.labelcolor": LIGHT, "axes.edgecolor": SOFT, "xtick.color": SOFT, "ytick.color": SOFT,
    "axes.facecolor": NIGHT, "figure.facecolor": NIGHT, "grid.color": GRID,
}  # fmt: skip
#: what the other colours become on a dark page
AT_NIGHT = dict(zip(COLOURS, DARK, strict=True)) | {"#000000": LIGHT, "#555555": SOFT, GRAY: "#7d8690"}
#: bounds that get a name, and how far it is moved up, in points; the others are thin lines
NAMED = {
    "thm:cl_by_sgd_main/forgetting": ("the paper, for any dimension", 4),
    "trivial/forgetting": ("trivial", -3),
    "evron2022:random/forgetting": ("Evron et al. 2022", 0),
    "thm:random_convergence_rate/forgetting": ("the paper, in the dimension", 0),
    "here:last-iterate/forgetting": ("here, for any dimension", -2),
}
PANELS = ("forgetting", "forgetting-with-replacement", "randomness-repetition")


def draw_overview(report: Report, studio: Any) -> Any:
    """Two panels: expected forgetting under the bounds, and randomness against repetition."""
    values, bounds, right = (_curves(report, key) for key in PANELS)
    figure, axes = studio.subplots(1, 2, figsize=(9.8, 3.6), layout="constrained")
    expected = tuple(series for series in values.series if series.role != "guarantee")
    plot_curves(replace(values, series=expected, ylabel=""), axes[0], highest=150.0)
    for series in bounds.series:
        points = [(clipped(x, log=True), clipped(y, log=True)) for x, y in curve_points(series, bounds)]
        if series.role in ("bound", "trivial") and points:
            width = 1.2 if series.name in NAMED else 0.5
            axes[0].plot(*zip(*points, strict=True), color=GRAY, linewidth=width, zorder=1)
        if series.name in NAMED and points:
            words, up = NAMED[series.name]
            axes[0].annotate(
                words, points[-1], xytext=(4, up), textcoords="offset points", fontsize=7.5,
                color="#555555", va="center", annotation_clip=False,
            )  # fmt: skip
    axes[0].set_title("Expected forgetting, and all that is guaranteed")
    axes[0].legend(loc="lower left")
    plot_curves(replace(right, ylabel=""), axes[1])
    axes[1].set_title("Forgetting of tasks built to be forgotten")
    axes[1].legend(loc="lower left")
    return figure


def _curves(report: Report, key: str) -> Curves:
    item = report.item(key)
    if not isinstance(item, Curves):
        raise TypeError(f"{key} is a {item.kind}")
    return item


def darken(figure: Any) -> None:
    """Give the curves, markers and words of a figure the colours of a dark page."""
    from matplotlib.colors import to_hex

    for artist in figure.findobj():
        for name in ("color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"):
            if not hasattr(artist, f"set_{name}") or not hasattr(artist, f"get_{name}"):
                continue
            colour = getattr(artist, f"get_{name}")()
            if isinstance(colour, str) and colour != "none" and to_hex(colour) in AT_NIGHT:
                getattr(artist, f"set_{name}")(AT_NIGHT[to_hex(colour)])


def main(arguments: Sequence[str]) -> None:
    """Read a report, write both pictures."""
    source, target = (Path(word) for word in arguments)
    report = load_report(source)
    with drawing() as studio, matplotlib.rc_context(STYLE):
        draw_overview(report, studio).savefig(target, dpi=150)
        with matplotlib.rc_context(NIGHT_STYLE):
            figure = draw_overview(report, studio)
            darken(figure)
            figure.savefig(target.with_stem(f"{target.stem}-dark"), dpi=150)


if __name__ == "__main__":
    main(sys.argv[1:])
