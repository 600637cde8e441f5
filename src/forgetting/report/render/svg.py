"""Figures as inline SVG, coloured by the style sheet of the page; complete without scripts."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from forgetting.report.data import Curves, Item, Matrix, Paths, Regions, Series, Stage
from forgetting.report.render.drawable import band_points, curve_axes, curve_points, drawn_cells, map_axes
from forgetting.report.render.heat import matrix_svg
from forgetting.report.render.markup import escape
from forgetting.report.render.palette import COLOURS, colour_index, dash_index, greek, ordered, region_index, short_name
from forgetting.report.render.plane import Place, Plane
from forgetting.report.render.ticks import Axis

__all__ = ["figure_svg", "legend"]

WIDTH, HEIGHT = 440.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 60.0, 12.0, 10.0, 42.0
DASHES = ("6 3", "2 3", "8 3 2 3", "4 2 1 2 1 2")


def figure_svg(item: Item) -> str:
    """The drawing of a figure: one or more <svg> elements.

    >>> figure_svg(Curves("f", "Title", "", "k", "loss", (Series("a", (1.0, 10.0), (1.0, 0.1)),)))[:4]
    '<svg'
    """
    if isinstance(item, Curves):
        return _curves(item)
    if isinstance(item, Regions):
        return _regions(item)
    if isinstance(item, Paths):
        plane = Plane.of(item)
        return "\n".join(_stage(item, stage, plane) for stage in item.stages)
    if isinstance(item, Matrix):
        return matrix_svg(item)
    raise TypeError(f"no picture of a {item.kind}")


def legend(item: Item) -> list[tuple[str, str, str]]:
    """Colour class, kind of mark and text of every entry.

    >>> legend(Curves("f", "", "", "k", "loss", (Series("a", (1.0,), (1.0,)),)))
    [('c0', 'line', 'a')]
    """
    if isinstance(item, Regions):
        return [(_area(item, name), "area", name) for name in item.names]
    if isinstance(item, Paths):
        return [(f"c{place % len(COLOURS)}", "line", line.name) for place, line in enumerate(item.lines)]
    if not isinstance(item, Curves):
        return []
    shown = []
    for one in item.series:
        if not one.minor:
            kind = "line" if one.role in ("exact", "simulated") else "dash"
            shown.append((f"c{colour_index(item, one)}", kind, short_name(one)))
    rest = sum(one.minor for one in item.series)
    if rest:
        shown.append(("minor", "line", f"{rest} other bound{'s' if rest > 1 else ''} and variants"))
    return shown


def _curves(item: Curves) -> str:
    x, y = _placed(*curve_axes(item))
    points = {one: curve_points(one, item) for one in item.series}
    parts = [_frame(x, y, item.xlabel, item.ylabel)]
    for one in ordered(item):
        parts += _band(item, one, x, y)
    for one in ordered(item):
        index = colour_index(item, one)
        name = "minor" if one.minor else f"c{index}"
        style = f"line {name} {one.role}"
        dash = (
            ""
            if one.role in ("exact", "simulated")
            else f' stroke-dasharray="{DASHES[dash_index(item, one) % len(DASHES)]}"'
        )
        body = "".join(f"{'M' if place == 0 else 'L'}{x.at(a)} {y.at(b)}" for place, (a, b) in enumerate(points[one]))
        title = f"<title>{escape(short_name(one))}: {escape(one.name)} ({escape(one.method)})</title>"
        if len(points[one]) == 1:
            a, b = points[one][0]
            parts.append(f'<circle class="dot {name}" cx="{x.at(a)}" cy="{y.at(b)}" r="3">{title}</circle>')
        elif body:
            parts.append(f'<path class="{style}"{dash} d="{body}">{title}</path>')
    box = f'data-x="{x.words()}" data-y="{y.words()}"'
    return _svg(parts, item.title, f'class="plot curves" data-key="{escape(item.key)}" {box}')


def _placed(x: Axis, y: Axis) -> tuple[Axis, Axis]:
    return replace(x, start=LEFT, end=WIDTH - RIGHT), replace(y, start=HEIGHT - BOTTOM, end=TOP)


def _band(item: Curves, one: Series, x: Axis, y: Axis) -> list[str]:
    triples = band_points(one, item)
    if not triples:
        return []
    up = [f"{x.at(a)} {y.at(c)}" for a, _, c in triples]
    down = [f"{x.at(a)} {y.at(b)}" for a, b, _ in reversed(triples)]
    return [f'<path class="band c{colour_index(item, one)}" d="M{"L".join([*up, *down])}Z"/>']


def _frame(x: Axis, y: Axis, xlabel: str, ylabel: str) -> str:
    parts = ['<g class="axes">']
    for at, label in ((x.at(value), label) for value, label in x.ticks()):
        parts.append(f'<path class="gridline" d="M{at} {y.end}V{y.start}"/>')
        parts.append(f'<text x="{at}" y="{y.start + 15}" text-anchor="middle">{label}</text>')
    for at, label in ((y.at(value), label) for value, label in y.ticks()):
        parts.append(f'<path class="gridline" d="M{x.start} {at}H{x.end}"/>')
        parts.append(f'<text x="{x.start - 6}" y="{at + 4}" text-anchor="end">{label}</text>')
    parts.append(f'<path class="frame" d="M{x.start} {y.end}V{y.start}H{x.end}"/>')
    parts.append(
        f'<text class="name" x="{(x.start + x.end) / 2}" y="{HEIGHT - 7}" text-anchor="middle">'
        f"{escape(greek(xlabel))}</text>"
    )
    middle = (y.start + y.end) / 2
    parts.append(
        f'<text class="name" transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">'
        f"{escape(greek(ylabel))}</text>"
    )
    return "".join([*parts, "</g>"])


def _regions(item: Regions) -> str:
    x, y = _placed(*map_axes(item))
    parts = []
    for band, (first, last), (low, high) in drawn_cells(item):
        left, right, top, bottom = x.at(first), x.at(last), y.at(high), y.at(low)
        title = f"<title>{escape(band.name)}: {band.first:.0f} to {band.last:.0f} at {band.y:.4g}</title>"
        parts.append(
            f'<rect class="area {_area(item, band.name)}" x="{left}" y="{top}" '
            f'width="{round(max(right - left, 0.0), 2)}" height="{round(bottom - top + 0.3, 2)}">{title}</rect>'
        )
    return _svg(
        [*parts, _frame(x, y, item.xlabel, item.ylabel)],
        item.title,
        f'class="plot regions" data-key="{escape(item.key)}"',
    )


def _area(item: Regions, name: str) -> str:
    index = region_index(item, name)
    return "minor" if index < 0 else f"c{index}"


def _stage(item: Paths, stage: Stage, plane: Plane) -> str:
    parts = []
    for place, line in enumerate(item.lines):
        ends = plane.line(line)
        if ends is not None:
            (a, b), (c, d) = map(_down, ends)
            title = f"<title>{escape(line.name)}</title>"
            parts.append(f'<path class="line c{place % len(COLOURS)} task" d="M{a} {b}L{c} {d}">{title}</path>')
    dots = [_down(stop) for stop in plane.stops(stage)]
    for step, ((a, b), (c, d)) in enumerate(pairwise(dots), start=1):
        parts.append(f'<path class="move" data-step="{step}" d="M{a} {b}L{c} {d}"/>')
        parts.append(f'<circle class="stop" data-step="{step}" cx="{c}" cy="{d}" r="2.2"/>')
    a, b = dots[0]
    parts.append(f'<rect class="start" x="{a - 4:.2f}" y="{b - 4:.2f}" width="8" height="8"/>')
    parts.append(f'<text x="{a + 8:.2f}" y="{b - 6:.2f}">w₀</text>')
    solution = plane.at(item.solution)
    if solution is not None:
        c, d = _down(solution)
        parts.append(f'<circle class="solution" cx="{c}" cy="{d}" r="5"/>')
        parts.append(f'<text class="halo" x="{c + 9:.2f}" y="{d + 16:.2f}">w⋆</text>')
    parts.append(f'<circle class="walker" cx="0" cy="0" r="5" transform="translate({dots[-1][0]} {dots[-1][1]})"/>')
    stops = " ".join(f"{a},{b}" for a, b in dots)
    order = " ".join(str(task) for task in stage.order)
    head = f'<text class="name" x="10" y="18">{escape(stage.name)}</text>'
    return _svg(
        [*parts, head],
        f"{item.title}: {stage.name}",
        f'class="plot path" data-key="{escape(item.key)}" data-stops="{stops}" data-order="{order}"',
    )


def _down(place: Place) -> Place:
    """From the middle of the plane to the corner of the drawing."""
    return round(WIDTH / 2 + place[0], 2), round(HEIGHT / 2 + 6 - place[1], 2)


def _svg(parts: list[str], title: str, attributes: str) -> str:
    head = f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(title)}" {attributes}>'
    return "".join([head, *parts, "</svg>"])
