"""Matrices as coloured squares: blue for positive values, orange for negative ones, strength by size."""

from __future__ import annotations

from html import escape
from typing import Any

from forgetting.report.data import Matrix
from forgetting.report.render.palette import COLOURS

__all__ = ["draw_matrix", "matrix_svg"]

WIDTH, TOP = 440.0, 10.0
LETTER = 6.6  # width of a letter
LABELS = 25  # more names than this are thinned out


def matrix_svg(item: Matrix) -> str:
    """One <svg> element; each square has a title with its value.

    >>> matrix_svg(Matrix("m", "", "", "row", "column", ("a",), ("b",), ((0.5,),))).count("<rect")
    1
    """
    high, wide = len(item.rows), len(item.columns)
    left = 30 + LETTER * max((len(_short(name)) for name in item.rows), default=0)
    below = 34 + 0.45 * LETTER * max((len(_short(name)) for name in item.columns), default=0)
    size = (WIDTH - left - 12) / max(wide, 1)
    depth = min(size, 330.0 / max(high, 1))
    top = _largest(item)
    parts = []
    for i, (name, row) in enumerate(zip(item.rows, item.values, strict=True)):
        for j, (other, value) in enumerate(zip(item.columns, row, strict=True)):
            title = f"<title>{escape(name)}, {escape(other)}: {value:.4g}</title>"
            parts.append(
                f'<rect class="area c{int(value < 0)}" x="{left + j * size:.2f}" y="{TOP + i * depth:.2f}" '
                f'width="{size:.2f}" height="{depth:.2f}" fill-opacity="{abs(value) / top:.3f}">{title}</rect>'
            )
    bottom = TOP + high * depth
    for i in _shown(high):
        place = TOP + (i + 0.5) * depth + 4
        parts.append(f'<text x="{left - 6}" y="{place:.1f}" text-anchor="end">{escape(_short(item.rows[i]))}</text>')
    for j in _shown(wide, 12):
        place = left + (j + 0.5) * size
        parts.append(
            f'<text transform="translate({place:.1f} {bottom + 12:.1f}) rotate(-25)" text-anchor="end">'
            f"{escape(_short(item.columns[j]))}</text>"
        )
    parts.append(f'<path class="frame" d="M{left} {TOP}H{left + wide * size:.2f}V{bottom:.2f}H{left}Z"/>')
    tall = bottom + below
    parts.append(
        f'<text class="name" x="{WIDTH / 2}" y="{tall - 4:.1f}" text-anchor="middle">{escape(item.xlabel)}</text>'
    )
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="name" transform="translate(11 {middle:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(item.ylabel)}</text>"
    )
    label = escape(item.title, quote=True)
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {tall:.0f}" role="img" aria-label="{label}" class="plot">'
    return "".join([head, *parts, "</svg>"])


def draw_matrix(item: Matrix, plt: Any) -> Any:
    """A matplotlib figure with a colour bar."""
    from matplotlib.colors import LinearSegmentedColormap

    figure, axes = plt.subplots(figsize=(4.8, 3.8))
    top = _largest(item)
    least = min((value for row in item.values for value in row), default=0.0)
    colours = LinearSegmentedColormap.from_list("signed", [COLOURS[1], "white", COLOURS[0]])
    if least >= 0:
        colours, low = LinearSegmentedColormap.from_list("positive", ["white", COLOURS[0]]), 0.0
    else:
        low = -top
    image = axes.imshow(item.values, cmap=colours, vmin=low, vmax=top, aspect="auto", interpolation="nearest")
    for axis, names, most in ((axes.yaxis, item.rows, LABELS), (axes.xaxis, item.columns, 12)):
        places = _shown(len(names), most)
        axis.set_ticks(places, [_short(names[i]) for i in places])
    plt.setp(axes.get_xticklabels(), rotation=25, ha="right", rotation_mode="anchor")
    axes.grid(False)
    axes.set_xlabel(item.xlabel)
    axes.set_ylabel(item.ylabel)
    axes.set_title(item.title, loc="left")
    figure.colorbar(image, ax=axes)
    return figure


def _short(name: str) -> str:
    return name if len(name) <= 16 else f"{name[:15]}…"


def _largest(item: Matrix) -> float:
    return max((abs(value) for row in item.values for value in row), default=0.0) or 1.0


def _shown(count: int, most: int = LABELS) -> list[int]:
    """Places of the names that fit."""
    return list(range(0, count, -(-count // most))) if count else []
