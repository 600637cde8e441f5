"""Figures of the gallery, drawn into the page as SVG with the colours of its style sheet, light or dark.

Each figure is also written as PNG, from which sphinx-gallery makes the small pictures of its index.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.collections import QuadMesh

from forgetting.figures.style import COLOURS, PAGE
from forgetting.figures.svg import _drawn, _themed

#: the look of the report; ticks of logarithmic axes are mathematics, and letters are outlines, which keep their places
STYLE = {
    **PAGE.style,
    "text.parse_math": True,
    "svg.fonttype": "path",
    "axes.prop_cycle": cycler(color=COLOURS),
    "savefig.dpi": 150,
}


def page_style(gallery_conf: Any, file: Any) -> None:
    """Called by sphinx-gallery before each example, after it has reset matplotlib."""
    matplotlib.rcParams.update(STYLE)


def page_figures(block: Any, block_vars: Any, gallery_conf: Any) -> str:
    """Called by sphinx-gallery after each block of code: the figures that it left open, in reStructuredText."""
    import matplotlib.pyplot as plt

    parts = []
    for number in plt.get_fignums():
        figure = plt.figure(number)
        target = Path(next(block_vars["image_path_iterator"]))
        figure.savefig(target)
        parts.append(drawing(figure, target.stem))
    plt.close("all")
    return "".join(f"\n.. raw:: html\n\n    {part}\n\n" for part in parts)


def drawing(figure: Any, name: str) -> str:
    """The figure as an <svg> element on one line."""
    for artist in figure.findobj(lambda artist: artist.get_rasterized()):  # long colour bars
        artist.set_rasterized(False)
    for mesh in figure.findobj(QuadMesh):
        mesh.set(edgecolor="face", linewidth=0.4)  # no light lines between cells
    root = _drawn(figure)
    for part in root.iter():
        if "scale(" in part.get("transform", ""):  # letters are drawn large and made small: 0.015625 is not 0.02
            part.set("transform", re.sub(r"(?<=scale\().*?(?=\))", _whole_numbers, part.get("transform")))
    element = _themed(root, name, {"class": "plot", "aria-label": words(figure)})
    if "<image" in element:
        raise ValueError(f"{name} holds pixels: draw it with pcolormesh in place of imshow")
    return " ".join(element.split())


def _whole_numbers(match: re.Match[str]) -> str:
    """Factors as 15625e-6 and such, which are not rounded like coordinates."""
    return " ".join(f"{round(float(number) * 1e6)}e-6" for number in match[0].replace(",", " ").split())


def words(figure: Any) -> str:
    """What the figure shows, for people who do not see it: the titles and the labels of its axes."""
    shown = []
    for axes in figure.axes:
        title, x, y = axes.get_title() or axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()
        shown += [part for part in (title, f"{y} against {x}" if x and y else x or y) if part]
    return "; ".join(shown) or "figure"
