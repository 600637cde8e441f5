"""Matrices as coloured squares: blue for positive values, orange for negative ones, strength by size."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting._text import one_line
from forgetting.report.data import Matrix
from forgetting.report.render.markup import escape
from forgetting.report.render.palette import COLOURS
from forgetting.report.render.ticks import known

__all__ = ["draw_matrix", "matrix_svg", "short_number"]

WIDTH, TOP = 440.0, 10.0
LETTER = 6.6  # width of a letter
LABELS = 25  # more names than this are thinned out
SHADES = 20  # of the scale
LONGEST = 120  # letters of a title
ROOM = 30.0  # a square at least this wide shows its number


def matrix_svg(item: Matrix) -> str:
    """One <svg> element with a scale; each square has a title with its value, and the value itself where it fits.

    Squares without a number are left empty.

    >>> picture = matrix_svg(Matrix("m", "", "", "row", "column", ("a",), ("b",), ((0.5,),)))
    >>> picture.count("<title>"), ">0.5</text>" in picture
    (1, True)
    """
    high, wide = len(item.rows), len(item.columns)
    longest = LETTER * max((len(_short(name)) for name in item.columns), default=0)
    left = 30 + LETTER * max((len(_short(name)) for name in item.rows), default=0)
    scale, right = _scale(item), 58.0
    size = (WIDTH - left - right) / max(wide, 1)
    level = longest <= size
    depth = min(size, 330.0 / max(high, 1))
    top = _largest(item)
    parts = []
    for i, (name, row) in enumerate(zip(item.rows, item.values, strict=True)):
        for j, (other, value) in enumerate(zip(item.columns, row, strict=True)):
            if not known(value):
                continue
            title = f"<title>{escape(name)}, {escape(other)}: {value:.4g}</title>"
            parts.append(
                f'<rect class="area c{int(value < 0)}" x="{left + j * size:.2f}" y="{TOP + i * depth:.2f}" '
                f'width="{size:.2f}" height="{depth:.2f}" fill-opacity="{abs(value) / top:.3f}">{title}</rect>'
            )
            if size >= ROOM and depth >= 14:
                x, y = left + (j + 0.5) * size, TOP + (i + 0.5) * depth + 4
                kind = "on" if abs(value) > 0.55 * top else "name"
                parts.append(
                    f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle" font-size="10" '
                    f'pointer-events="none">{short_number(value)}</text>'
                )
    bottom = TOP + high * depth
    for i in _shown(high):
        place = TOP + (i + 0.5) * depth + 4
        parts.append(f'<text x="{left - 6}" y="{place:.1f}" text-anchor="end">{escape(_short(item.rows[i]))}</text>')
    for j in _shown(wide, LABELS if level else 12):
        place = left + (j + 0.5) * size
        turn = 'text-anchor="middle"' if level else 'text-anchor="end"'
        move = f"translate({place:.1f} {bottom + 14:.1f})" + ("" if level else " rotate(-25)")
        parts.append(f'<text transform="{move}" {turn}>{escape(_short(item.columns[j]))}</text>')
    end = left + wide * size
    parts.append(f'<path class="frame" d="M{left} {TOP}H{end:.2f}V{bottom:.2f}H{left}Z"/>')
    parts += _bar(scale, top, end + 10, TOP, bottom)
    tall = bottom + 34 + (0.0 if level else 0.45 * longest)
    parts.append(
        f'<text class="name" x="{(left + end) / 2:.1f}" y="{tall - 4:.1f}" text-anchor="middle">'
        f"{escape(item.xlabel)}</text>"
    )
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="name" transform="translate(11 {middle:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(item.ylabel)}</text>"
    )
    label = escape(item.title)
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {tall:.0f}" role="img" aria-label="{label}" class="plot">'
    return "".join([head, *parts, "</svg>"])


def _bar(scale: tuple[float, float], top: float, x: float, upper: float, lower: float) -> list[str]:
    """The colours from the largest value down, with numbers at the ends and at 0; the scale is in units of `top`."""
    low, high = scale
    step = (lower - upper) / SHADES
    parts = []
    for i in range(SHADES):
        value = high - (i + 0.5) / SHADES * (high - low)
        parts.append(
            f'<rect class="area c{int(value < 0)}" x="{x:.1f}" y="{upper + i * step:.2f}" width="9" '
            f'height="{step:.2f}" fill-opacity="{abs(value):.3f}"/>'
        )
    parts.append(f'<path class="frame" d="M{x:.1f} {upper}h9V{lower:.2f}h-9Z"/>')
    for value in sorted({low, 0.0, high}):
        y = upper + (high - value) / (high - low) * (lower - upper)
        parts.append(f'<text x="{x + 13:.1f}" y="{y + 4:.1f}" font-size="10">{short_number(value * top)}</text>')
    return parts


def short_number(value: float) -> str:
    """Two digits in at most six characters.

    >>> [short_number(value) for value in (0.0, -0.4231, 13.86, 1203.0, -2.2e-16)]
    ['0', '-0.42', '14', '1e3', '-2e-16']
    """
    size = abs(value)
    if size == 0 or 0.01 <= size < 999.5:
        return f"{value:.0f}" if size >= 9.95 else f"{value:.2g}"
    mantissa, power = f"{value:.0e}".split("e")
    return f"{mantissa}e{int(power)}"


def draw_matrix(item: Matrix, plt: Any) -> Any:
    """A matplotlib figure with a colour bar; colours are in units of the largest value."""
    from matplotlib.colors import LinearSegmentedColormap

    figure, axes = plt.subplots(figsize=(4.8, 3.8))
    top, (low, high) = _largest(item), _scale(item)
    shades = [COLOURS[1], "white", COLOURS[0]] if low < 0 else ["white", COLOURS[0]]
    colours = LinearSegmentedColormap.from_list("values", shades)
    shares = np.full((max(len(item.rows), 1), max(len(item.columns), 1)), np.nan)
    for i, row in enumerate(item.values):
        shares[i, : len(row)] = [value / top if known(value) else np.nan for value in row]
    image = axes.imshow(
        shares, cmap=colours, vmin=-1.0 if low < 0 else 0.0, vmax=1.0, aspect="auto", interpolation="nearest"
    )
    for axis, names, most in ((axes.yaxis, item.rows, LABELS), (axes.xaxis, item.columns, 12)):
        places = _shown(len(names), most)
        axis.set_ticks(places, [_short(names[i]) for i in places])
    if any(len(name) > 3 for name in item.columns):
        plt.setp(axes.get_xticklabels(), rotation=25, ha="right", rotation_mode="anchor")
    axes.grid(False)
    axes.set_xlabel(one_line(item.xlabel, LONGEST))
    axes.set_ylabel(one_line(item.ylabel, LONGEST))
    axes.set_title(one_line(item.title, LONGEST), loc="left")
    bar = figure.colorbar(image, ax=axes)
    marks = sorted({low, 0.0, high})
    bar.set_ticks(marks, labels=[short_number(mark * top) for mark in marks])
    bar.ax.set_ylim(low, high)
    return figure


def _short(name: str) -> str:
    return one_line(name, 16)


def _largest(item: Matrix) -> float:
    return max((abs(value) for row in item.values for value in row if known(value)), default=0.0) or 1.0


def _scale(item: Matrix) -> tuple[float, float]:
    """The span of the values in units of the largest, with 0 in it."""
    top = _largest(item)
    shares = [value / top for row in item.values for value in row if known(value)]
    low, high = min(0.0, *shares, 0.0), max(0.0, *shares, 0.0)
    return (low, high) if low < high else (0.0, 1.0)


def _shown(count: int, most: int = LABELS) -> list[int]:
    """Places of the names that fit."""
    return list(range(0, count, -(-count // most))) if count else []
