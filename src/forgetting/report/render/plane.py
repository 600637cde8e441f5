"""Runs in the plane: one map from points to places for both renderers, which keeps angles."""

from __future__ import annotations

import math
from dataclasses import dataclass

from forgetting.report.data import Line, Paths, Stage
from forgetting.report.render.ticks import known, tick_label, ticks

__all__ = ["Place", "Plane"]

Place = tuple[float, float]
#: half the room for the points, in units of the drawing
WIDE, HIGH = 175.0, 110.0
#: half of a line; longer than half the diagonal of a drawing
REACH = 600.0


@dataclass(frozen=True)
class Plane:
    """Places are relative to the middle of all points, to the right and up.

    >>> plane = Plane.of(Paths("p", "", "", (), (2.0, 0.0), (Stage("s", ((0.0, 0.0),), ()),)))
    >>> plane.at((0.0, 0.0)), plane.at((2.0, 0.0))
    ((-175.0, 0.0), (175.0, 0.0))
    """

    middle: Place
    unit: float  # of the points, in a unit of the drawing
    half: Place

    @classmethod
    def of(cls, item: Paths) -> Plane:
        """The map that shows all points of an item."""
        every = [point for stage in item.stages for point in stage.points] + [item.solution]
        x, y = (_ends([point[i] for point in every]) for i in (0, 1))
        halves = x[1] / 2 - x[0] / 2, y[1] / 2 - y[0] / 2
        unit = max(halves[0] / WIDE, halves[1] / HIGH) or 0.5 / WIDE
        return cls((x[0] / 2 + x[1] / 2, y[0] / 2 + y[1] / 2), unit, (halves[0] / unit, halves[1] / unit))

    def at(self, point: tuple[float | None, float | None]) -> Place | None:
        """The place of a point; None if there is none, or far outside."""
        a, b = point
        if not known(a) or not known(b):
            return None
        x, y = (a - self.middle[0]) / self.unit, (b - self.middle[1]) / self.unit
        return (round(x, 2), round(y, 2)) if max(abs(x), abs(y)) < 1e6 else None

    def stops(self, stage: Stage) -> list[Place]:
        """The places of a run; what has none stays where the run was before."""
        stops: list[Place] = []
        for point in stage.points:
            stops.append(self.at(point) or (stops[-1] if stops else (0.0, 0.0)))
        return stops

    def line(self, line: Line) -> tuple[Place, Place] | None:
        """The ends of a line, beyond the drawing; None where it has no direction, or passes far outside."""
        start, (a, b) = self.at(line.point), line.direction
        if start is None or not known(a) or not known(b) or a == b == 0:
            return None
        larger = max(abs(a), abs(b))
        size = math.hypot(a / larger, b / larger)
        u, v = a / larger / size, b / larger / size
        along = start[0] * u + start[1] * v
        x, y = start[0] - along * u, start[1] - along * v  # nearest to the middle
        if math.hypot(x, y) > REACH:
            return None
        return (round(x - REACH * u, 2), round(y - REACH * v, 2)), (round(x + REACH * u, 2), round(y + REACH * v, 2))

    def ticks(self, axis: int, half: float) -> list[tuple[float, str]]:
        """Places and labels of the marks up to `half` a drawing from the middle, horizontally (0) or vertically (1)."""
        middle = self.middle[axis]
        low, high = middle - half * self.unit, middle + half * self.unit
        if not known(low) or not known(high) or not high - low > 1e-4 * max(abs(low), abs(high)):
            return [(0.0, tick_label(middle, False))]  # the digits of labels end here
        return [((value - middle) / self.unit, tick_label(value, False)) for value in ticks(low, high, 5)]


def _ends(values: list[float | None]) -> tuple[float, float]:
    numbers = [value for value in values if known(value)] or [0.0]
    return min(numbers), max(numbers)
