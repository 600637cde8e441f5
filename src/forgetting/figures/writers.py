"""Tables as text for a terminal, by rich, and as LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from io import StringIO
from numbers import Integral, Real
from typing import Any, Literal

__all__ = ["escape_latex", "latex_number", "latex_table", "printed", "text_table", "unbroken"]

_LATEX = {letter: f"\\{letter}" for letter in "&%_#${}"} | {
    "^": r"\^{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "∧": r"$\wedge$", "⇒": r"$\Rightarrow$", "→": r"$\to$",
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "\u00d7": r"$\times$", "∞": r"$\infty$", "…": r"\ldots{}",
}  # fmt: skip
_SCIENTIFIC = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")
_STAY = "\ue000"  # a character that nobody prints, in place of a space at which a line must not end
_LONG = 40  # characters of a cell that is broken into lines
_DIGITS = 3  # significant ones, of numbers in a table of a paper


def escape_latex(words: str) -> str:
    r"""Words for LaTeX; numbers such as 1e-06 become mathematics.

    >>> print(escape_latex("r_max ^ k"), escape_latex(r"\input{x}"), escape_latex("= 2.12e-06"))
    r\_max \^{} k \textbackslash{}input\{x\} = $2.12\times10^{-6}$
    """
    pieces = _SCIENTIFIC.split(words)  # words, mantissa, exponent, words, ...
    numbers = [rf"${one}\times10^{{{int(power)}}}$" for one, power in zip(pieces[1::3], pieces[2::3], strict=True)]
    plain = ["".join(_LATEX.get(letter, letter) for letter in piece) for piece in pieces[::3]]
    return "".join(part for pair in zip(plain, [*numbers, ""], strict=True) for part in pair)


def latex_number(value: float) -> str:
    r"""A number with three significant digits, as mathematics without its dollars.

    >>> [latex_number(x) for x in (3.1234e-6, 0.5, 12.345, 45678.0, 7, float("inf"))]
    ['3.12\\times10^{-6}', '0.500', '12.3', '4.57\\times10^{4}', '7', '\\infty']
    """
    if isinstance(value, Integral):
        return str(int(value))
    if not math.isfinite(value):
        return "" if math.isnan(value) else r"\infty" if value > 0 else r"-\infty"
    mantissa, _, power = f"{value:.{_DIGITS - 1}e}".partition("e")
    if value == 0 or -4 < int(power) < 4:
        return f"{value:.{max(_DIGITS - 1 - int(power), 0)}f}"
    return rf"{mantissa}\times10^{{{int(power)}}}"


def latex_table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], notes: Sequence[str], label: str = ""
) -> str:
    """A table environment with booktabs rules.

    Words are LaTeX already; numbers are numbers, and None an empty cell. A column of numbers is aligned at the decimal
    points: it is set as two columns, before and after the point, without a space between them.
    """
    shown = [_column(name, [row[place] for row in rows]) for place, name in enumerate(columns)]
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
    lines += [rf"\label{{tab:{label}}}"] if label else []
    lines += [r"\renewcommand{\arraystretch}{1.5}"] * any(r"\frac" in cell for _, _, cells in shown for cell in cells)
    lines += [rf"\begin{{tabular}}{{{''.join(spec for spec, _, _ in shown)}}}", r"\toprule"]
    lines += [" & ".join(head for _, head, _ in shown) + r" \\", r"\midrule"]
    lines += [" & ".join(cells) + r" \\" for cells in zip(*(cells for _, _, cells in shown), strict=True)]
    lines += [r"\bottomrule", r"\end{tabular}", *(rf"\par\raggedright\footnotesize {note}" for note in notes)]
    return "\n".join([*lines, r"\end{table}", ""])


def _column(name: str, values: list[Any]) -> tuple[str, str, list[str]]:
    """How a column is aligned, its heading and its cells."""
    numeric = [isinstance(value, Real) and not isinstance(value, bool) for value in values]
    if not any(numeric) or not all(one or value is None for one, value in zip(numeric, values, strict=True)):
        return "l", name, [_words(value) for value in values]
    numbers = ["" if value is None else latex_number(value) for value in values]
    if not any("." in number for number in numbers):
        return "r", name, [f"${number}$" if number else "" for number in numbers]
    pairs = [number.partition(".") for number in numbers]
    cells = [
        f"${whole}$ & ${point}{rest}$" if point else f"${whole}$ &" if whole else " &" for whole, point, rest in pairs
    ]
    return "r@{}l", rf"\multicolumn{{2}}{{c}}{{{name}}}", cells


def _words(value: Any) -> str:
    """A cell of words, in several lines where it is long and has no formula."""
    words = "" if value is None else value if isinstance(value, str) else latex_number(value)
    long = len(words) > _LONG and "$" not in words
    return rf"\parbox[t]{{0.3\textwidth}}{{\raggedright {words}\strut}}" if long else words


def unbroken(words: str) -> str:
    """The same words, which `text_table` keeps on one line if the line is long enough."""
    return words.replace(" ", _STAY)


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int = 80, *, ruled: bool = False) -> str:
    """A table of at most this width; with `ruled`, lines between rows and columns, else all but the first at the right.

    >>> print(text_table(("bound", "value"), [("trivial/loss", "0.5")], width=24))
    bound              value
      trivial/loss       0.5
    """
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.ASCII if ruled else None, show_edge=False, show_lines=ruled, pad_edge=False, expand=not ruled)
    words = [[len(word) for row in rows for word in row[place].split()] for place in range(len(columns))]
    least = [max(lengths, default=0) for lengths in words]
    fits = sum(least) + 3 * (len(columns) - 1) <= width
    for place, name in enumerate(columns):
        kept = fits and any(_STAY in row[place] for row in rows)
        justify: Literal["left", "right"] = "left" if ruled or not place else "right"
        ratio = None if ruled or place else 1
        grid.add_column(Text(name), justify=justify, overflow="fold", ratio=ratio, no_wrap=kept)
    for row in rows:
        first, *others = row if fits else [cell.replace(_STAY, " ") for cell in row]
        grid.add_row(Text(first) if ruled else Padding(Text(first), (0, 0, 0, 2)), *map(Text, others))
    return "\n".join(printed(grid, width)).replace(_STAY, " ")


def printed(grid: Any, width: int) -> list[str]:
    """The lines that rich prints for a table on a page of this width, without colours."""
    from rich.console import Console

    console = Console(
        file=StringIO(), width=max(width, 1), color_system=None, legacy_windows=False, force_jupyter=False
    )
    with console.capture() as shown:
        console.print(grid)
    return [line.rstrip() for line in shown.get().splitlines()]
