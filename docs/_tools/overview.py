"""The picture of the README: `python docs/_tools/overview.py report-out docs/images/overview.png`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from forgetting.report import Report, load_report
from forgetting.report.data import Curves
from forgetting.report.render.drawable_points import clipped, curve_points
from forgetting.report.render.figures import plot_curves
from forgetting.report.render.looks import drawing
from forgetting.report.render.palette import GRAY

STYLE = {"font.family": "sans-serif", "font.size": 9, "axes.titlesize": 10.5, "axes.titleweight": "bold"}
#: bounds that get a name, and how far it is moved up, in points; the others are thin lines
NAMED = {
    "thm:cl_by_sgd_main/forgetting": ("the paper, for any dimension", 4),
    "trivial/forgetting": ("trivial", -3),
    "evron2022:random/forgetting": ("Evron et al. 2022", 0),
    "thm:random_convergence_rate/forgetting": ("the paper, in the dimension", 0),
}
PANELS = ("forgetting", "forgetting-with-replacement", "randomness-repetition")


def draw_overview(report: Report, plt: Any) -> Any:
    """Two panels: expected forgetting under the bounds, and randomness against repetition."""
    values, bounds, right = (_curves(report, key) for key in PANELS)
    figure, axes = plt.subplots(1, 2, figsize=(9.8, 3.6), layout="constrained")
    plot_curves(replace(values, xlabel="k, tasks learned", ylabel=""), axes[0], highest=150.0)
    for series in bounds.series:
        points = [(clipped(x, log=True), clipped(y, log=True)) for x, y in curve_points(series, bounds)]
        if series.role == "bound" and points:
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


def main(arguments: Sequence[str]) -> None:
    """Read a report, write the picture."""
    source, target = (Path(word) for word in arguments)
    with drawing() as plt, plt.rc_context(STYLE):
        figure = draw_overview(load_report(source), plt)
        figure.savefig(target, dpi=150)
        plt.close(figure)


if __name__ == "__main__":
    main(sys.argv[1:])
