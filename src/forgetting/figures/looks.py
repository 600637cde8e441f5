"""The two looks of a figure: in a paper, and in a page whose style sheet decides the colours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

__all__ = ["PAGE", "PAPER", "Look", "drawing"]

COMMON = {
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "butt",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "axes.unicode_minus": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "forgetting",
}


@dataclass(frozen=True)
class Look:
    """Sizes and fonts of a figure.

    Attributes:
        width, height: of a figure without its legend, in inches.
        row: the height of a line of the legend, in inches.
        letters: in a line of the legend.
        titled: whether the title is part of the figure; a page has its own headings.
        style: settings of matplotlib.
    """

    width: float
    height: float
    row: float
    letters: int
    titled: bool
    style: Mapping[str, Any]


PAPER = Look(4.8, 3.1, 0.16, 70, True, COMMON | {
    "font.family": "serif", "font.size": 9, "mathtext.fontset": "cm", "axes.titlesize": 10, "axes.labelsize": 9,
    "legend.fontsize": 8, "grid.linewidth": 0.5,
})  # fmt: skip
PAGE = Look(400 / 72, 285 / 72, 0.22, 56, False, COMMON | {
    "font.family": "sans-serif", "font.size": 11, "axes.labelsize": 11, "legend.fontsize": 11, "xtick.labelsize": 11,
    "ytick.labelsize": 11, "xtick.color": "#555555", "ytick.color": "#555555", "axes.edgecolor": "#555555",
    "lines.linewidth": 1.8, "figure.dpi": 72,
})  # fmt: skip


class Studio:
    """Makes figures that belong to no window: pyplot and the backend that a user chose are left alone."""

    def subplots(self, *shape: int, figsize: tuple[float, float], layout: str | None = None, **options: Any) -> Any:
        """A figure and its axes, as `matplotlib.pyplot.subplots` gives them."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=figsize, layout=cast(Any, layout))
        FigureCanvasAgg(figure)
        return figure, figure.subplots(*shape, **options)


@contextmanager
def drawing(look: Look = PAPER) -> Iterator[Studio]:
    """A `Studio`, and the settings of a look while figures are drawn."""
    import logging

    import matplotlib

    for remarks in ("fontTools", "matplotlib.axes._base"):  # on the dates inside fonts, on limits that equal axes move
        logging.getLogger(remarks).setLevel(logging.ERROR)
    with matplotlib.rc_context(cast(Any, look.style)), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)  # of a name in letters that the font does not have
        warnings.filterwarnings("ignore", "constrained_layout not applied", UserWarning)  # very long names: no room
        yield Studio()
