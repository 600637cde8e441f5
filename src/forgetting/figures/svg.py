"""Figures as inline SVG: drawn by matplotlib, coloured by the style sheet of the page, complete without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

from forgetting.core.text import escape, one_line
from forgetting.figures.axes import clipped, curve_points, drawn_cells, known
from forgetting.figures.drawing import draw
from forgetting.figures.items import Bars, Curves, Item, Matrix, Regions
from forgetting.figures.style import COLOURS, GRAY, IDLE, PAGE, drawing, short_name

#: what the colours of matplotlib are called in the style sheet
THEME = {colour: f"var(--c{place})" for place, colour in enumerate(COLOURS)} | {
    GRAY: "var(--minor)", IDLE: "var(--idle)", "#e4e4e4": "var(--grid)", "#000000": "var(--text)",
    "#555555": "var(--soft)", "#ffffff": "var(--card)",
}  # fmt: skip
Place = tuple[float, float]


@dataclass(frozen=True)
class Drawing:
    """The <svg> elements of a figure, and what the script of the page says under the pointer.

    `hover` has `points`, one entry per curve with places in the drawing and values, or `cells`, each with its
    rectangle in the drawing and its words.
    """

    svg: str
    hover: dict[str, Any] = field(default_factory=dict)


def figure_drawing(item: Item) -> Drawing:
    """The drawing of a figure for the page.

    >>> from forgetting.figures.items import Series
    >>> made = figure_drawing(Curves("f", "Title", "", "k", "loss", (Series("a", (1.0, 10.0), (1.0, 0.1)),)))
    >>> made.svg[:4], made.hover["points"][0]["y"]
    ('<svg', [1.0, 0.1])
    """
    with drawing(PAGE) as studio:
        figure = draw(item, studio, PAGE)
        words = {"class": f"plot {item.kind}", "data-key": item.key, "aria-label": item.title}
        return Drawing(themed_svg(figure, f"fig-{item.key}", words), _hover(item, figure))


def themed_svg(figure: Any, prefix: str, words: dict[str, str]) -> str:
    """A matplotlib figure as an <svg> element with the colours and fonts of the page, and `words` as attributes.

    The prefix makes the ids of the element unique in the page.
    """
    return _themed(_drawn(figure), prefix, words)


def _places(figure: Any, points: list[Place]) -> list[Place]:
    """The coordinates in the drawing of points on the axes; the figure has its layout once it was drawn."""
    tall = 72 * figure.get_size_inches()[1]
    places = figure.axes[0].transData.transform(points) * 72 / figure.dpi if points else []
    return [(round(float(x), 1), round(float(tall - y), 1)) for x, y in places]


def _hover(item: Item, figure: Any) -> dict[str, Any]:
    if isinstance(item, Curves):
        curves = []
        for place, series in enumerate(item.series):
            points = curve_points(series, item)
            at = _places(figure, [(clipped(x, item.xlog), clipped(y, item.ylog)) for x, y in points])
            detail = ", ".join(filter(None, (series.name if series.label else "", series.method)))
            curves.append({
                "series": "minor" if series.minor else str(place), "name": one_line(short_name(series), 100),
                "detail": one_line(detail, 160), "at": at,
                "x": [_rounded(x) for x, _ in points], "y": [_rounded(y) for _, y in points],
            })  # fmt: skip
        return {"points": curves}
    cells: list[tuple[Place, Place, str]] = []
    if isinstance(item, Regions):
        for band, (left, right), (low, high) in drawn_cells(item):
            words = f"{band.name}: {band.first:.0f} to {band.last:.0f} at {band.y:.4g}"
            cells.append(((left, low), (right, high), words))
    elif isinstance(item, Matrix):
        for i, row in enumerate(item.values):
            for j, value in enumerate(row):
                if known(value):
                    cells.append(((j, i), (j + 1, i + 1), f"{item.rows[i]}, {item.columns[j]}: {value:.4g}"))
    elif isinstance(item, Bars):
        low, high = figure.axes[0].get_xlim()
        for place, (name, value) in enumerate(zip(item.names, item.values, strict=True)):
            if known(value):
                cells.append(((low, place - 0.5), (high, place + 0.5), f"{name}: {value:.4g}"))
    corners = _places(figure, [corner for cell in cells for corner in cell[:2]])
    return {
        "cells": [
            [min(a, c), min(b, d), max(a, c), max(b, d), one_line(words, 200)]
            for (a, b), (c, d), (_, _, words) in zip(corners[::2], corners[1::2], cells, strict=True)
        ]
    }


def _rounded(value: float) -> float:
    rounded = float(f"{value:.4g}")
    return rounded if known(rounded) else value  # the largest numbers are rounded to infinity


def _drawn(figure: Any) -> ElementTree.Element:
    """The figure as matplotlib writes it, without backgrounds."""
    for part in (figure, *figure.axes):
        part.patch.set_visible(False)
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return ElementTree.fromstring(buffer.getvalue())


def _themed(root: ElementTree.Element, prefix: str, words: dict[str, str]) -> str:
    """An <svg> element with the colours and fonts of the page; the prefix makes its ids unique."""
    inner = "".join(part for child in root for part in _markup(child, prefix))
    return f"<svg {_listed({'viewBox': root.attrib['viewBox'], 'role': 'img', **words})}>{inner}</svg>"


def _listed(attributes: dict[str, str]) -> str:
    return " ".join(f'{name}="{escape(value)}"' for name, value in attributes.items())


def _markup(element: ElementTree.Element, prefix: str) -> Iterator[str]:
    """An element and what is in it; groups that say nothing leave their content only."""
    name = element.tag.rpartition("}")[2]
    if name in ("metadata", "style"):
        return
    attributes = dict(_attributes(element, name, prefix))
    inner = "".join(part for child in element for part in _markup(child, prefix))
    words = escape(element.text) if name == "text" and element.text else ""
    if name in ("g", "defs") and not inner:
        return
    if name == "g" and not attributes:
        yield inner
        return
    head = f"{name} {_listed(attributes)}".rstrip()
    yield f"<{head}>{words}{inner}</{name}>" if words or inner else f"<{head}/>"


def _attributes(element: ElementTree.Element, name: str, prefix: str) -> Iterator[tuple[str, str]]:
    for full, value in element.attrib.items():
        attribute = full.rpartition("}")[2]
        if attribute == "id":
            if "=" in value:  # attributes for the page
                yield from (tuple(part.split("=", 1)) for part in value.split(";"))  # type: ignore[misc]
            elif name != "g":
                yield "id", f"{prefix}-{value}"
        elif attribute == "href":
            yield "href", f"#{prefix}-{value[1:]}"
        elif attribute == "clip-path":
            yield "clip-path", value.replace("#", f"#{prefix}-")
        elif attribute == "style":
            if style := _style(value):
                yield "style", style
        elif not value.startswith("rotate(-0 "):
            yield attribute, _short_numbers(value)


def _style(text: str) -> str:
    """The declarations without fonts, which the page decides, and with the colours of the page."""
    kept = []
    for declaration in text.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name in ("font-family", "font") or (name, value) == ("font-size", "11px"):
            continue
        kept.append(f"{name}:{THEME.get(value) or _short_numbers(value)}")
    return ";".join(kept)


def _short_numbers(text: str) -> str:
    """Coordinates with two digits after the point, and no spaces that mean nothing."""
    rounded = re.sub(r"-?\d+\.\d+", lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), text)
    return re.sub(r"\s*([MLCQz])\s*", r"\1", rounded).strip()
