"""Colours and names of curves: colours that people who see fewer colours tell apart (Okabe and Ito)."""

from __future__ import annotations

import re

from forgetting.figures.items import Curves, Regions, Series

__all__ = ["COLOURS", "DARK", "GRAY", "colour_index", "dash_index", "greek", "ordered", "region_index", "short_name"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b85a92", "#c78500", "#3f9fd8", "#7a5195")
#: the same on a dark page
DARK = ("#5cb3ec", "#ff8a3d", "#2fcc9f", "#e59ac4", "#f0b840", "#8fd0f7", "#b890d6")
GRAY = "#9a9a9a"
LETTERS = {"beta": "β", "eps": "ε", "eta": "η", "lambda": "λ", "sigma": "\N{GREEK SMALL LETTER SIGMA}", "theta": "θ"}


def colour_index(figure: Curves, series: Series) -> int:
    """The place of a curve's colour: its group, or the next free one after the values; -1 is gray.

    >>> one, two = Series("a", (), (), group=0), Series("b", (), (), role="bound")
    >>> colour_index(Curves("f", "", "", "", "", (one, two)), two)
    1
    """
    if series.minor:
        return -1
    if series.group >= 0:
        return series.group % len(COLOURS)
    taken = {one.group for one in figure.series if one.group >= 0}
    free = [i for i in range(len(COLOURS)) if i not in taken] or list(range(len(COLOURS)))
    loose = [one for one in figure.series if one.group < 0 and not one.minor]
    return free[loose.index(series) % len(free)]


def dash_index(figure: Curves, series: Series) -> int:
    """The place of a curve's dashes, which tell apart what has to share a colour.

    >>> bounds = tuple(Series(name, (), (), role="bound") for name in "ab")
    >>> [dash_index(Curves("f", "", "", "", "", bounds), one) for one in bounds]
    [0, 1]
    """
    loose = [one for one in figure.series if one.group < 0 and not one.minor]
    return loose.index(series) if series in loose else 0


def ordered(figure: Curves) -> list[Series]:
    """The curves in the order of drawing: what matters most is drawn last.

    >>> value, bound = Series("a", (), ()), Series("b", (), (), role="bound", minor=True)
    >>> [one.name for one in ordered(Curves("f", "", "", "", "", (value, bound)))]
    ['b', 'a']
    """
    rank = {"exact": 3, "simulated": 2, "bound": 1, "reference": 1}
    return sorted(figure.series, key=lambda one: (not one.minor, rank[one.role]))


def short_name(series: Series) -> str:
    """A legend entry."""
    return greek(series.label or series.name)


def region_index(figure: Regions, name: str) -> int:
    """The place of a region's colour; -1, gray, is what says nothing.

    >>> region_index(Regions("f", "", "", "k", "d", (), ("trivial", "theorem")), "theorem")
    0
    """
    return -1 if name == "trivial" else [one for one in figure.names if one != "trivial"].index(name) % len(COLOURS)


def greek(words: str) -> str:
    """Names of Greek letters as letters, and sqrt as a root.

    >>> greek("log(1/lambda), sqrt(d - r)")
    'log(1/λ), √(d - r)'
    """
    text = re.sub(r"sqrt\((\w)\)", r"√\1", words).replace("sqrt(", "√(").replace("sqrt ", "√")
    return re.sub(r"\b(" + "|".join(LETTERS) + r")(?=\b|_)", lambda m: LETTERS[m[1]], text)
