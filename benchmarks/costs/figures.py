"""The figures of the page: seconds and memory against one axis, a curve for each call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import matplotlib

from forgetting.figures.drawing import draw
from forgetting.figures.items import Curves, Series
from forgetting.figures.style import COLOURS, PAGE, drawing

EXACT = ("moments", "spectral", "subsets", "deterministic")
WORDS = {
    "T": "tasks T",
    "d": "dimension d",
    "rank": "rank of each task",
    "k": "steps k",
    "N": "rows N of all tasks",
    "runs": "runs",
}
#: axis, whether the exact engines or the other calls, seconds or bytes
WANTED = (
    ("T", True, "seconds"), ("T", False, "seconds"), ("d", True, "seconds"), ("d", False, "seconds"),
    ("k", True, "seconds"), ("k", False, "seconds"), ("T", True, "bytes"), ("T", False, "bytes"),
)  # fmt: skip


def figures(points: list[Mapping[str, Any]]) -> Iterator[Curves]:
    """A figure for each of WANTED that has points."""
    for axis, exact, what in WANTED:
        chosen = [row for row in points if row["axis"] == axis and row["call"].startswith(EXACT) is exact]
        every = dict.fromkeys(
            row["call"] for row in points if row["call"].startswith(EXACT) is exact
        )  # one colour each
        unit = 2.0**20 if what == "bytes" else 1.0
        series = tuple(
            Series(name, *zip(*pairs, strict=True), group=place, role="exact" if place < len(COLOURS) else "reference")
            for place, name in enumerate(every)
            if (pairs := [(float(r["value"]), r[what] / unit) for r in chosen if r["call"] == name and r[what]])
        )
        if series:
            group = "exact engines" if exact else "other calls"
            noun = "Peak of memory" if unit > 1 else "Time of one core"
            yield Curves(
                f"how_far-{what}-{axis}-{'exact' if exact else 'other'}", f"{noun} against {WORDS[axis]}, {group}", "",
                WORDS[axis], "MiB" if unit > 1 else "seconds", series,
            )  # fmt: skip


def as_svg(figure: Curves) -> str:
    """An <svg> element on one line, as in the gallery: with the colours of the style sheet, and letters as outlines."""
    with drawing(PAGE) as studio, matplotlib.rc_context(gallery.STYLE):
        return gallery.drawing(draw(figure, studio, PAGE), figure.key) + "\n"


def _gallery_figures() -> ModuleType:
    """The tool that draws the figures of the gallery, which belongs to the pages and to no package."""
    path = Path(__file__).parents[2] / "docs" / "_tools" / "gallery_figures.py"
    spec = spec_from_file_location("gallery_figures", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery = _gallery_figures()
