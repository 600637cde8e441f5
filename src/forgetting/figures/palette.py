"""Colours and names of curves: colours that people who see fewer colours tell apart (Okabe and Ito)."""

from __future__ import annotations

import re

from forgetting.figures.items import Curves, Regions, Series

__all__ = ["COLOURS", "DARK", "GRAY", "IDLE", "greek", "ordered", "region_index", "short_name"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b85a92", "#c78500", "#3f9fd8", "#7a5195")
#: the same on a dark page
DARK = ("#5cb3ec", "#ff8a3d", "#2fcc9f", "#e59ac4", "#f0b840", "#8fd0f7", "#b890d6")
GRAY = "#9a9a9a"
IDLE = "#dcdfe2"  # regions in which nothing is known
LETTERS = {"beta": "β", "eps": "ε", "eta": "η", "lambda": "λ", "sigma": "\N{GREEK SMALL LETTER SIGMA}", "theta": "θ"}


def ordered(figure: Curves) -> list[Series]:
    """The curves in the order of drawing: what matters most is drawn last.

    >>> value, bound = Series("a", (), ()), Series("b", (), (), role="bound", minor=True)
    >>> [one.name for one in ordered(Curves("f", "", "", "", "", (value, bound)))]
    ['b', 'a']
    """
    rank = {"exact": 3, "simulated": 2, "bound": 1}
    return sorted(figure.series, key=lambda series: (not series.minor, rank.get(series.role, 0)))


def short_name(series: Series) -> str:
    """A legend entry."""
    return greek(series.label or series.name)


def region_index(figure: Regions, name: str) -> int:
    """The place of a region's colour, by its group; -1, gray, is what says nothing.

    >>> region_index(Regions("f", "", "", "k", "d", (), ("trivial", "theorem"), groups=(-1, 9)), "theorem")
    2
    """
    place = figure.names.index(name)
    group = figure.groups[place] if figure.groups else place
    return group if group < 0 else group % len(COLOURS)


def greek(words: str) -> str:
    """Names of Greek letters as letters, and sqrt as a root.

    >>> greek("log(1/lambda), sqrt(d - r)")
    'log(1/λ), √(d - r)'
    """
    text = re.sub(r"sqrt\((\w)\)", r"√\1", words).replace("sqrt(", "√(").replace("sqrt ", "√")
    return re.sub(r"\b(" + "|".join(LETTERS) + r")(?=\b|_)", lambda m: LETTERS[m[1]], text)
