"""An interactive figure of projections in the plane: the reader moves the lines, the start and the order.

matplotlib draws the axes. A script, which needs no network, projects, and draws lines, path, loss and forgetting.
"""

from __future__ import annotations

import json
import math
from importlib.resources import files
from typing import Any

import numpy as np

from forgetting.core.text import escape
from forgetting.errors import InvalidInputError
from forgetting.figures.axes import known, set_axis
from forgetting.figures.items import Line, Paths
from forgetting.figures.style import COLOURS, DARK, PAGE, Studio, css_colours, drawing
from forgetting.figures.svg import themed_svg

LARGEST = 1e6  # coordinates that a plane with readable axes can show
STEPS = 30  # that the curves have room for
LOWEST = -6  # power of ten


def lab_script() -> str:
    """The script, for a page that has a lab."""
    return (files("forgetting.figures") / "assets" / "lab.js").read_text(encoding="utf-8")


def lab_style() -> str:
    """The style sheet, for a page that has a lab."""
    return (files("forgetting.figures") / "assets" / "lab.css").read_text(encoding="utf-8")


def playable(item: Paths) -> bool:
    """Whether the script can run the tasks: lines that meet in the solution, coordinates of usual size, and a run.

    >>> from forgetting.figures.items import Stage
    >>> line = Line("task 0", (0.0, 0.0), (1.0, 0.0))
    >>> playable(Paths("p", "", "", (line,), (0.0, 0.0), (Stage("s", ((1.0, 1.0), (1.0, 0.0)), (0,)),)))
    True
    """
    solution, stages = item.solution, item.stages
    if not 1 <= len(item.lines) <= len(COLOURS) or not stages:
        return False
    if not all(known(part) and abs(part) <= LARGEST for part in (*solution, *stages[0].points[0])):
        return False
    if not all(0 <= task < len(item.lines) for stage in stages for task in stage.order):
        return False
    return all(_meets(line, (solution[0] or 0.0, solution[1] or 0.0)) for line in item.lines)


def _meets(line: Line, solution: tuple[float, float]) -> bool:
    (x, y), (a, b) = line.point, line.direction
    if not (known(x) and known(y) and known(a) and known(b)) or math.hypot(a, b) == 0:
        return False
    away = abs((solution[0] - x) * b - (solution[1] - y) * a) / math.hypot(a, b)
    return away <= 1e-9 * max(1.0, abs(x), abs(y), *map(abs, solution))


def lab_html(item: Paths) -> str:
    """The lab of an item: drawings without curves, the numbers for the script, and controls.

    Without the script, and in print, the static drawing of the same item has to do.
    """
    if not playable(item):
        raise InvalidInputError(f"{item.key}: a lab needs lines that meet in one point, and a run")
    solution = [float(part or 0.0) for part in item.solution]
    angles = [math.degrees(math.atan2(line.direction[1] or 0.0, line.direction[0] or 0.0)) for line in item.lines]
    settings = {
        "solution": solution,
        "start": [float(part or 0.0) for part in item.stages[0].points[0]],
        "angles": [round(angle, 6) for angle in angles],
        "names": [line.name for line in item.lines],
        "orders": {stage.name: list(stage.order) for stage in item.stages},
        "steps": STEPS,
        "lowest": 10.0**LOWEST,
    }
    with drawing(PAGE) as studio:
        plane, chart = _plane(studio, item, solution), _chart(studio, item)
    sliders = "".join(
        f'<label><i style="background:var(--c{m})"></i><span>{escape(line.name)}</span>'
        f'<input type="range" class="angle" data-task="{m}" min="-90" max="90" step="0.5" value="{angle:.1f}">'
        "<output></output></label>"
        for m, (line, angle) in enumerate(zip(item.lines, angles, strict=True))
    )
    orders = "".join(f'<option value="{escape(name)}">{escape(name)}</option>' for name in settings["orders"])  # type: ignore[attr-defined]
    learn = "".join(
        f'<button type="button" class="learn" data-task="{m}">learn {escape(line.name)}</button>'
        for m, line in enumerate(item.lines)
    )
    data = escape(json.dumps(settings, allow_nan=False))
    return "\n".join(
        [
            f'<div class="lab" data-lab="{data}" hidden>',
            f'<div class="plots">{plane}{chart}</div>',
            f'<div class="row angles">{sliders}</div>',
            f'<div class="row"><label>order <select class="order">{orders}<option value="">by hand</option></select>'
            '</label><button type="button" class="play">Play</button>'
            '<label class="long">step <input type="range" class="step" min="0" max="0" value="0"></label></div>',
            f'<div class="row">{learn}<button type="button" class="undo">undo</button>'
            '<button type="button" class="again">start again</button></div>',
            '<p class="said" role="status"></p>',
            "<p>Drag a dot to turn its line, and the square to move the start; choose an order, or learn by hand.</p>",
            "</div>",
        ]
    )


class Lab:
    """A lab that shows itself in a page of its own, as in the documentation, with its script and its style."""

    def __init__(self, item: Paths) -> None:
        self.item = item

    def _repr_html_(self) -> str:
        light, dark = css_colours(COLOURS), css_colours(DARK)
        colours = (
            f'.lab-frame{{{light}}}body[data-theme="dark"] .lab-frame{{{dark}}}'
            f"@media(prefers-color-scheme:dark){{body:not([data-theme=light]) .lab-frame{{{dark}}}}}"
        )
        return (
            f"<style>{colours}{lab_style()}</style>"
            f'<div class="lab-frame">{lab_html(self.item)}</div><script>{lab_script()}</script>'
        )


def _plane(studio: Studio, item: Paths, solution: list[float]) -> str:
    figure, axes = studio.subplots(figsize=(PAGE.width, PAGE.height * 1.15), layout="constrained")
    start = _start(item)
    half = max(1.1 * math.dist(start, solution), 1e-3 * max(1.0, *map(abs, solution)))
    middle = [(part + solution[axis]) / 2 for axis, part in enumerate(start)]
    axes.set_aspect("equal", adjustable="box")
    axes.set(xlim=(middle[0] - half, middle[0] + half), ylim=(middle[1] - half, middle[1] + half))
    axes.locator_params(nbins=5)
    return _with_frame(figure, axes, f"lab-{item.key}-plane", {"class": "plot plane", "aria-label": item.title})


def _start(item: Paths) -> list[float]:
    return [float(part or 0.0) for part in item.stages[0].points[0]]


def _chart(studio: Studio, item: Paths) -> str:
    figure, axes = studio.subplots(figsize=(PAGE.width, PAGE.height * 1.15), layout="constrained")
    set_axis(axes.xaxis, (0, STEPS), whole=True)
    set_axis(axes.yaxis, (10.0**LOWEST, 10.0), log=True)
    axes.set_xlabel("k, tasks learned")
    lines = [
        axes.plot([], [], color=COLOURS[place], linestyle=style, linewidth=1.8, label=name)[0]
        for place, (name, style) in enumerate((("loss", "-"), ("forgetting", "--")))
    ]
    axes.legend(handles=lines, loc="upper right", handlelength=3.4)
    return _with_frame(figure, axes, f"lab-{item.key}-chart", {"class": "plot chart", "aria-label": "loss, forgetting"})


def _with_frame(figure: Any, axes: Any, prefix: str, words: dict[str, str]) -> str:
    """The drawing, with the corners of its axes in the drawing and in values, for the script."""
    figure.canvas.draw()
    svg = themed_svg(figure, prefix, words)
    box = np.asarray(axes.get_window_extent().get_points()) * 72 / figure.dpi
    tall = 72 * figure.get_size_inches()[1]
    corners = [round(float(v), 2) for v in (box[0, 0], tall - box[0, 1], box[1, 0], tall - box[1, 1])]
    ends = [*map(float, axes.get_xlim()), *map(float, axes.get_ylim())]
    frame = json.dumps({"at": corners, "ends": ends}).replace('"', "&quot;")
    return svg.replace("<svg ", f'<svg data-frame="{frame}" ', 1)
