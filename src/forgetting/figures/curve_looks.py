"""How the curves of a figure are drawn. A statement has the same colour and dashes in every figure.

Values are solid. Guarantees are dashed and coloured. Gray are the trivial bound, and what is no guarantee on the given
tasks: worst cases over all tasks (with triangles), and rates whose constant is not known (finely dotted).
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from forgetting.figures.items import Curves, Role, Series
from forgetting.figures.palette import COLOURS, GRAY

__all__ = ["CurveLook", "curve_look"]

Dashes = Literal["-"] | tuple[int, tuple[float, ...]]
DASHES: tuple[Dashes, ...] = ((0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)), (0, (3, 1.2, 1, 1.2, 1, 1.2)))
SOFT = "#555555"
#: places in COLOURS for bounds that have a group: orderings and quantities use the first three
FOR_BOUNDS = (3, 4, 5, 6)


class CurveLook(NamedTuple):
    """Colour, dashes, width and marker of a curve."""

    colour: str
    dashes: Dashes
    width: float
    marker: str = ""


PLAIN: dict[Role, CurveLook] = {
    "trivial": CurveLook(SOFT, (0, (9, 3)), 1.1),
    "worst": CurveLook(SOFT, (0, (1, 1.5)), 0.8, "^"),
    "rate": CurveLook(SOFT, (0, (1, 3)), 1.0),
}


def curve_look(figure: Curves, series: Series) -> CurveLook:
    """How a curve of the figure is drawn.

    >>> value, bound = Series("a", (), (), group=0), Series("b", (), (), role="bound")
    >>> figure = Curves("f", "", "", "", "", (value, bound))
    >>> curve_look(figure, value).dashes, curve_look(figure, bound).dashes, curve_look(figure, bound).colour
    ('-', (0, (5, 2)), '#d55e00')
    """
    if series.minor:
        return CurveLook(GRAY, "-" if _is_value(series) else DASHES[1], 0.6)
    if series.role in PLAIN:
        return PLAIN[series.role]
    width = 1.9 if series.role == "exact" else 1.2
    if _is_value(series):
        return CurveLook(COLOURS[_colour(figure, series)], "-", width)
    return CurveLook(COLOURS[_colour(figure, series)], DASHES[_dashes(figure, series) % len(DASHES)], width)


def _is_value(series: Series) -> bool:
    return series.role in ("exact", "simulated")


def _colour(figure: Curves, series: Series) -> int:
    """The place of a curve's colour: by its group, or the next free one after the groups."""
    if series.group >= 0:
        return FOR_BOUNDS[series.group % len(FOR_BOUNDS)] if series.role == "bound" else series.group % len(COLOURS)
    taken = {_colour(figure, other) for other in figure.series if other.group >= 0 and other.role not in PLAIN}
    free = [place for place in range(len(COLOURS)) if place not in taken] or list(range(len(COLOURS)))
    return free[_loose(figure).index(series) % len(free)]


def _dashes(figure: Curves, series: Series) -> int:
    """The place of a curve's dashes, which tell apart what shares a colour."""
    if series.group < 0:
        return _loose(figure).index(series)
    if series.role != "bound":
        return 0
    place = series.group // len(FOR_BOUNDS)
    used = {
        _dashes(figure, other) % len(DASHES)
        for other in figure.series[: figure.series.index(series)]
        if other.role == series.role and not other.minor and other.group >= 0
        and (other.group - series.group) % len(FOR_BOUNDS) == 0
    }  # fmt: skip
    return next((step for step in range(place, place + len(DASHES)) if step % len(DASHES) not in used), place)


def _loose(figure: Curves) -> list[Series]:
    return [series for series in figure.series if series.group < 0 and not series.minor and series.role not in PLAIN]
