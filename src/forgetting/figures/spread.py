"""Distributions drawn by matplotlib: a histogram for each panel, with marks at heights of their own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forgetting.figures.drawable_points import clipped, known, span
from forgetting.figures.drawing import LABEL, NAME, legend_below, set_axis, shown_words
from forgetting.figures.items import Panel, Spread
from forgetting.figures.looks import Look, Studio
from forgetting.figures.palette import COLOURS, GRAY

__all__ = ["draw_spread", "plot_panel"]

BINS = 30
DECADES = 3.0  # values that span more are drawn on a logarithmic axis
SHAPES = "osv^D"  # of the marks
PANEL = 0.5  # height of a panel, as part of the height of a figure


def draw_spread(item: Spread, studio: Studio, look: Look) -> Any:
    """A matplotlib figure with the panels one below the other and one legend."""
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
    """The histogram of a panel on given axes, and its marks; names with no mark here stay in the legend."""
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
