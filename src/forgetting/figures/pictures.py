"""PNG and PDF that go into a paper as they are."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from forgetting.figures.drawing import draw
from forgetting.figures.items import Item
from forgetting.figures.looks import drawing

__all__ = ["pictures"]


def pictures(item: Item, endings: Sequence[str] = (".png", ".pdf")) -> dict[str, bytes]:
    """The content of a file for each ending; it depends on the data alone, not on the day."""
    made = {}
    with drawing() as studio:
        figure = draw(item, studio)
        figure.canvas.draw()
        figure.set_layout_engine("none")  # the layout, and the box, once for all files
        box = figure.get_tightbbox().padded(0.06)
        for ending in endings:
            buffer = BytesIO()
            dates = {"CreationDate": None} if ending == ".pdf" else None
            figure.savefig(buffer, format=ending[1:], metadata=dates, bbox_inches=box)
            made[ending] = buffer.getvalue()
    return made
