"""The style of figures: sizes and fonts on paper and on a page, colours, names of curves, and how each curve is drawn.

Colours are those that people who see fewer colours tell apart (Okabe and Ito). A statement has the same colour in
every figure, that of its family: the paper, this library, or other papers. Values are solid. Guarantees are dashed and
coloured. Gray are the trivial bound, and what is no guarantee on the given tasks: worst cases over all tasks (with
triangles), and rates whose constant is not known (finely dotted).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from forgetting.figures.items import Curves, Regions, Role, Series

# ------------------------------------------------------------------------------------------------------- paper and page

COMMON = {
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "butt",
    "text.parse_math": False,  # a dollar in a name is a dollar
    "axes.unicode_minus": False,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.fonttype": "none",
    "svg.hashsalt": "forgetting",
}


@dataclass(frozen=True)
class Look:
    """Sizes and fonts of a figure.

    Attributes:
        width, height: of a figure without its legend, in inches.
        row: the height of a line of the legend, in inches.
        letters: in a line of the legend.
        titled: whether the title is part of the figure; a page has its own headings.
        style: settings of matplotlib.
    """

    width: float
    height: float
    row: float
    letters: int
    titled: bool
    style: Mapping[str, Any]


PAPER = Look(4.8, 3.1, 0.16, 70, True, COMMON | {
    "font.family": "serif", "font.size": 9, "mathtext.fontset": "cm", "axes.titlesize": 10, "axes.labelsize": 9,
    "legend.fontsize": 8, "grid.linewidth": 0.5,
})  # fmt: skip
PAGE = Look(400 / 72, 285 / 72, 0.22, 56, False, COMMON | {
    "font.family": "sans-serif", "font.size": 11, "axes.labelsize": 11, "legend.fontsize": 11, "xtick.labelsize": 11,
    "ytick.labelsize": 11, "xtick.color": "#555555", "ytick.color": "#555555", "axes.edgecolor": "#555555",
    "lines.linewidth": 1.8, "figure.dpi": 72,
})  # fmt: skip


class Studio:
    """Makes figures that belong to no window: pyplot and the backend that a user chose are left alone."""

    def subplots(self, *shape: int, figsize: tuple[float, float], layout: str | None = None, **options: Any) -> Any:
        """A figure and its axes, as `matplotlib.pyplot.subplots` gives them."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=figsize, layout=cast(Any, layout))
        FigureCanvasAgg(figure)
        return figure, figure.subplots(*shape, **options)


@contextmanager
def drawing(look: Look = PAPER) -> Iterator[Studio]:
    """A `Studio`, and the settings of a look while figures are drawn."""
    import logging

    import matplotlib

    for remarks in ("fontTools", "matplotlib.axes._base"):  # on the dates inside fonts, on limits that equal axes move
        logging.getLogger(remarks).setLevel(logging.ERROR)
    with matplotlib.rc_context(cast(Any, look.style)), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph ", UserWarning)  # of a name in letters that the font does not have
        warnings.filterwarnings("ignore", "constrained_layout not applied", UserWarning)  # very long names: no room
        yield Studio()


# ---------------------------------------------------------------------------------------------------- colours and names

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b85a92", "#c78500", "#3f9fd8", "#7a5195")
#: the same on a dark page
DARK = ("#5cb3ec", "#ff8a3d", "#2fcc9f", "#e59ac4", "#f0b840", "#8fd0f7", "#b890d6")
GRAY = "#9a9a9a"
IDLE = "#dcdfe2"  # regions in which nothing is known
LETTERS = {"beta": "β", "eps": "ε", "eta": "η", "lambda": "λ", "sigma": "\N{GREEK SMALL LETTER SIGMA}", "theta": "θ"}


def css_colours(colours: Sequence[str]) -> str:
    """Colours as variables of CSS, --c0, --c1, ...

    >>> css_colours(("#0072b2", "#d55e00"))
    '--c0:#0072b2;--c1:#d55e00;'
    """
    return "".join(f"--c{place}:{colour};" for place, colour in enumerate(colours))


def ordered(figure: Curves) -> list[Series]:
    """The curves in the order of drawing, the most important last.

    >>> value, bound = Series("a", (), ()), Series("b", (), (), role="bound", minor=True)
    >>> [series.name for series in ordered(Curves("f", "", "", "", "", (value, bound)))]
    ['b', 'a']
    """
    rank = {"exact": 3, "simulated": 2, "bound": 1}
    return sorted(figure.series, key=lambda series: (not series.minor, rank.get(series.role, 0)))


def short_name(series: Series) -> str:
    """The legend entry of a curve."""
    return greek(series.label or series.name)


def region_index(figure: Regions, name: str) -> int:
    """The place of a region's colour, by its group; -1, for gray, where nothing is said.

    >>> region_index(Regions("f", "", "", "k", "d", (), ("trivial", "theorem"), groups=(-1, 9)), "theorem")
    2
    """
    place = figure.names.index(name)
    group = figure.groups[place] if figure.groups else place
    return group if group < 0 else group % len(COLOURS)


def greek(words: str) -> str:
    """The words with names of Greek letters as letters, and sqrt as a root.

    >>> greek("log(1/lambda), sqrt(d - r)")
    'log(1/λ), √(d - r)'
    """
    text = re.sub(r"sqrt\((\w)\)", r"√\1", words).replace("sqrt(", "√(").replace("sqrt ", "√")
    return re.sub(r"\b(" + "|".join(LETTERS) + r")(?=\b|_)", lambda m: LETTERS[m[1]], text)


# --------------------------------------------------------------------------------------------------------------- curves

Dashes = Literal["-"] | tuple[int, tuple[float, ...]]
DASHES: tuple[Dashes, ...] = (
    (0, (5, 2)),
    (0, (1.5, 1.5)),
    (0, (6, 2, 1, 2)),
    (0, (3, 1.2, 1, 1.2, 1, 1.2)),
    (0, (9, 1.5)),
)
SOFT = "#555555"
#: places in COLOURS for bounds that have a group, one for each family: orderings and quantities use the first three
FOR_BOUNDS = (3, 4, 5)


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
    """The colour, dashes, width and marker of a curve of the figure.

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
    place = sum(
        divmod(series.group, len(FOR_BOUNDS))
    )  # families begin with other dashes, for eyes that see few colours
    used = {
        _dashes(figure, other) % len(DASHES)
        for other in figure.series[: figure.series.index(series)]
        if other.role == series.role and not other.minor and other.group >= 0
        and (other.group - series.group) % len(FOR_BOUNDS) == 0
    }  # fmt: skip
    return next((step for step in range(place, place + len(DASHES)) if step % len(DASHES) not in used), place)


def _loose(figure: Curves) -> list[Series]:
    return [series for series in figure.series if series.group < 0 and not series.minor and series.role not in PLAIN]
