"""Figures as inline SVG, coloured by the style sheet of the page; complete without scripts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from forgetting.report.data import Curves, Item, Matrix, Paths, Regions, Series, Stage
from forgetting.report.render.heat import matrix_svg
from forgetting.report.render.palette import colour_index, dash_index, greek, ordered, region_index, short_name
from forgetting.report.render.ticks import log_ticks, span, tick_label, ticks

__all__ = ["figure_svg", "legend"]

WIDTH, HEIGHT = 440.0, 300.0
LEFT, RIGHT, TOP, BOTTOM = 60.0, 12.0, 10.0, 42.0
DASHES = ("6 3", "2 3", "8 3 2 3", "4 2 1 2 1 2")


@dataclass(frozen=True)
class Axis:
    """From values to coordinates of the drawing.

    >>> Axis(1.0, 100.0, 0.0, 10.0, log=True).at(10.0)
    5.0
    """

    low: float
    high: float
    start: float
    end: float
    log: bool
    whole: bool = False

    def at(self, value: float) -> float:
        """The coordinate, cut at the ends of the axis."""
        low, high, mark = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, mark = math.log10(low), math.log10(high), math.log10(mark)
        return round(self.start + (self.end - self.start) * (mark - low) / (high - low), 2)

    def words(self) -> str:
        """For the script of the page."""
        return f"{self.low} {self.high} {self.start} {self.end} {int(self.log)}"

    def marks(self) -> list[tuple[float, str]]:
        """Coordinates and labels of the ticks."""
        found = log_ticks(self.low, self.high) if self.log else ticks(self.low, self.high, whole=self.whole)
        return [(self.at(value), tick_label(value, self.log)) for value in found]


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
        return "\n".join(_stage(item, stage) for stage in item.stages)
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
        return [(f"c{place}", "line", line.name) for place, line in enumerate(item.lines)]
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
    points = {one: _points(one, item) for one in item.series}
    values = [point for several in points.values() for point in several]
    x = Axis(*span([p[0] for p in values], item.xlog), LEFT, WIDTH - RIGHT, item.xlog, item.whole)
    low, high = span([p[1] for p in values], item.ylog)
    if item.ylog:  # a little air above and below
        low, high = low / (high / low) ** 0.03, high * (high / low) ** 0.03
    y = Axis(low, high, HEIGHT - BOTTOM, TOP, item.ylog)
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
    return _svg(parts, item.title, f'class="plot curves" data-key="{item.key}" {box}')


def _points(one: Series, item: Curves) -> list[tuple[float, float]]:
    """The points that can be drawn."""
    return [
        (a, b)
        for a, b in zip(one.x, one.y, strict=True)
        if b is not None and math.isfinite(b) and (a > 0 or not item.xlog) and _shown(b, item)
    ]


def _shown(value: float, item: Curves) -> bool:
    return not item.ylog or value > (item.floor or 0.0)


def _band(item: Curves, one: Series, x: Axis, y: Axis) -> list[str]:
    if one.low is None or one.high is None:
        return []
    pairs = [
        p for p in zip(one.x, one.low, one.high, strict=True) if _shown(p[2], item) and (p[0] > 0 or not item.xlog)
    ]
    if not pairs:
        return []
    up = [f"{x.at(a)} {y.at(c)}" for a, _, c in pairs]
    down = [f"{x.at(a)} {y.at(max(b, y.low))}" for a, b, _ in reversed(pairs)]
    return [f'<path class="band c{colour_index(item, one)}" d="M{"L".join([*up, *down])}Z"/>']


def _frame(x: Axis, y: Axis, xlabel: str, ylabel: str) -> str:
    parts = ['<g class="axes">']
    for at, label in x.marks():
        parts.append(f'<path class="gridline" d="M{at} {y.end}V{y.start}"/>')
        parts.append(f'<text x="{at}" y="{y.start + 15}" text-anchor="middle">{label}</text>')
    for at, label in y.marks():
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
    rows = sorted({band.y for band in item.bands})
    x = Axis(min(b.first for b in item.bands), max(b.last for b in item.bands), LEFT, WIDTH - RIGHT, True)
    edges = row_edges(rows)
    y = Axis(edges[0][0], edges[-1][1], HEIGHT - BOTTOM, TOP, True)
    parts = []
    for band in item.bands:
        low, high = edges[rows.index(band.y)]
        left, right, top, bottom = x.at(band.first), x.at(band.last + 1), y.at(high), y.at(low)
        title = f"<title>{escape(band.name)}: {band.first:.0f} to {band.last:.0f} at {band.y:.4g}</title>"
        parts.append(
            f'<rect class="area {_area(item, band.name)}" x="{left}" y="{top}" width="{round(right - left, 2)}" '
            f'height="{round(bottom - top + 0.3, 2)}">{title}</rect>'
        )
    return _svg(
        [*parts, _frame(x, y, item.xlabel, item.ylabel)], item.title, f'class="plot regions" data-key="{item.key}"'
    )


def _area(item: Regions, name: str) -> str:
    index = region_index(item, name)
    return "minor" if index < 0 else f"c{index}"


def row_edges(rows: list[float]) -> list[tuple[float, float]]:
    """Where each row of a map begins and ends, on a log scale.

    >>> row_edges([1.0, 4.0])
    [(0.5, 2.0), (2.0, 8.0)]
    """
    if len(rows) == 1:
        return [(rows[0] / 2, rows[0] * 2)]
    middles = [math.sqrt(a * b) for a, b in pairwise(rows)]
    lows = [rows[0] ** 2 / middles[0], *middles]
    highs = [*middles, rows[-1] ** 2 / middles[-1]]
    return list(zip(lows, highs, strict=True))


def _stage(item: Paths, stage: Stage) -> str:
    every = [point for one in item.stages for point in one.points] + [item.solution]
    to = _plane(every)
    parts = []
    for place, line in enumerate(item.lines):
        reach = 100 / math.hypot(*line.direction)
        ends = [
            to((line.point[0] + sign * reach * line.direction[0], line.point[1] + sign * reach * line.direction[1]))
            for sign in (-1, 1)
        ]
        (a, b), (c, d) = ends
        parts.append(f'<path class="line c{place} task" d="M{a} {b}L{c} {d}"><title>{escape(line.name)}</title></path>')
    dots = [to(point) for point in stage.points]
    for step, ((a, b), (c, d)) in enumerate(pairwise(dots), start=1):
        parts.append(f'<path class="move" data-step="{step}" d="M{a} {b}L{c} {d}"/>')
        parts.append(f'<circle class="stop" data-step="{step}" cx="{c}" cy="{d}" r="2.2"/>')
    (a, b), (c, d) = dots[0], to(item.solution)
    parts.append(f'<rect class="start" x="{a - 4}" y="{b - 4}" width="8" height="8"/>')
    parts.append(f'<text x="{a + 8}" y="{b - 6}">w₀</text>')
    parts.append(
        f'<circle class="solution" cx="{c}" cy="{d}" r="5"/><text class="halo" x="{c + 9}" y="{d + 16}">w⋆</text>'
    )
    parts.append(f'<circle class="walker" cx="0" cy="0" r="5" transform="translate({dots[-1][0]} {dots[-1][1]})"/>')
    stops = " ".join(f"{a},{b}" for a, b in dots)
    order = " ".join(str(task) for task in stage.order)
    head = f'<text class="name" x="10" y="18">{escape(stage.name)}</text>'
    return _svg(
        [*parts, head],
        f"{item.title}: {stage.name}",
        f'class="plot path" data-key="{item.key}" data-stops="{stops}" data-order="{order}"',
    )


def _plane(points: list[tuple[float, float]]) -> Callable[[tuple[float, float]], tuple[float, float]]:
    """A map that keeps angles and leaves a margin."""
    xs, ys = zip(*points, strict=True)
    size = min((WIDTH - 90) / (max(xs) - min(xs) or 1.0), (HEIGHT - 80) / (max(ys) - min(ys) or 1.0))
    middle = (max(xs) + min(xs)) / 2, (max(ys) + min(ys)) / 2

    def to(point: tuple[float, float]) -> tuple[float, float]:
        return (
            round(WIDTH / 2 + size * (point[0] - middle[0]), 2),
            round(HEIGHT / 2 + 6 - size * (point[1] - middle[1]), 2),
        )

    return to


def _svg(parts: list[str], title: str, attributes: str) -> str:
    head = (
        f'<svg viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" aria-label="{escape(title, quote=True)}" {attributes}>'
    )
    return "".join([head, *parts, "</svg>"])
