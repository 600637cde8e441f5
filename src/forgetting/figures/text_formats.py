"""Tables as text for a terminal and as LaTeX, and the data of figures and tables as CSV."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from io import StringIO
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np

from forgetting.core.text import csv_text, one_line
from forgetting.figures.items import Bars, Curves, Item, Matrix, Paths, Regions, Spread, Table, cell

# ------------------------------------------------------------------------------------------------------------- terminal

_STAY = "\ue000"  # a character that nobody prints, in place of a space at which a line must not end


def table_text(table: Table, width: int = 80) -> str:
    """A table of at most this width, as plain text; long words are broken after their punctuation.

    >>> print(table_text(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5), (10, 0.25)))))
    Numbers
    k   loss
    --  ----
    1   0.5
    10  0.25
    """
    from rich.table import Table as Grid

    cells = [[name, *(cell(row[place]) for row in table.rows)] for place, name in enumerate(table.columns)]
    widths = _widths(cells, width)
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column, size in zip(cells, widths, strict=True):
        grid.add_column(_Folded(column[0]), width=size)
    grid.add_row(*("-" * size for size in widths))
    for row in zip(*(column[1:] for column in cells), strict=True):
        grid.add_row(*map(_Folded, row))
    body = printed(grid, width) if cells else []
    notes = [line for note in table.notes for line in textwrap.wrap(note, width)]
    return "\n".join([table.title, *body, *notes])


def _widths(cells: list[list[str]], width: int) -> list[int]:
    """Widths of columns that fit: the widest gives way first, and words are broken only where nothing else is left."""
    lines = [[line for words in column for line in words.split("\n")] for column in cells]
    widths = [max(map(len, column), default=1) or 1 for column in lines]
    least = [max((len(part) for line in column for part in _parts(line)), default=1) for column in lines]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        loose = [j for j, size in enumerate(widths) if size > least[j]] or [
            j for j, size in enumerate(widths) if size > 6
        ]
        if not loose:
            break
        widths[max(loose, key=lambda j: widths[j])] -= 1
    return widths


class _Folded:
    """Words in a cell of a rich table; long words are broken after their punctuation."""

    def __init__(self, words: str) -> None:
        self.lines = words.split("\n")

    def __rich_console__(self, console: Any, options: Any) -> Any:
        from rich.text import Text

        for line in self.lines:
            for part in _fold(line, options.max_width):
                yield Text(part, no_wrap=True, overflow="ignore")


def _parts(line: str) -> list[str]:
    """The parts of a line that are not broken: words, spaces, and the pieces of a key."""
    return re.findall(r"\s+|[^\s/]+/?|/", line)


def _fold(line: str, width: int) -> list[str]:
    """Lines of at most this width."""
    lines = [""]
    for part in _parts(line):
        if len(lines[-1]) + len(part.rstrip()) > width and lines[-1]:
            lines.append("")
        part = part if lines[-1] else part.lstrip()
        while len(part.rstrip()) > width:
            lines[-1:] = [part[:width], ""]
            part = part[width:]
        lines[-1] += part
    return [folded.rstrip() for folded in lines]


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int = 80, *, ruled: bool = False) -> str:
    """A table of at most this width; with `ruled`, lines between rows and columns, else all but the first at the right.

    >>> print(text_table(("bound", "value"), [("trivial/loss", "0.5")], width=24))
    bound              value
      trivial/loss       0.5
    """
    from rich import box
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=box.ASCII if ruled else None, show_edge=False, show_lines=ruled, pad_edge=False, expand=not ruled)
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


def unbroken(words: str) -> str:
    """The same words, which `text_table` keeps on one line if the line is long enough."""
    return words.replace(" ", _STAY)


def printed(grid: Any, width: int) -> list[str]:
    """The lines that rich prints for a table on a page of this width, without colours."""
    from rich.console import Console

    console = Console(
        file=StringIO(), width=max(width, 1), color_system=None, legacy_windows=False, force_jupyter=False
    )
    with console.capture() as shown:
        console.print(grid)
    return [line.rstrip() for line in shown.get().splitlines()]


# ---------------------------------------------------------------------------------------------------------------- LaTeX

_LATEX = {letter: f"\\{letter}" for letter in "&%_#${}"} | {
    "^": r"\^{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "∧": r"$\wedge$", "⇒": r"$\Rightarrow$", "→": r"$\to$",
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "\u00d7": r"$\times$", "∞": r"$\infty$", "…": r"\ldots{}",
}  # fmt: skip
_SCIENTIFIC = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")
_LONG = 40  # characters of a cell that is broken into lines
_DIGITS = 3  # significant ones, of numbers in a table of a paper


def to_latex(table: Table) -> str:
    r"""A table environment with booktabs rules; columns of numbers are aligned at their decimal points.

    >>> print(to_latex(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5), (100, 3.1234e-6)))))
    \begin{table}
    \centering
    \caption{Numbers}
    \label{tab:t}
    \begin{tabular}{rr@{}l}
    \toprule
    k & \multicolumn{2}{c}{loss} \\
    \midrule
    $1$ & $0$ & $.500$ \\
    $100$ & $3$ & $.12\times10^{-6}$ \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    caption = _escaped(". ".join(part for part in (table.title, table.caption) if part))
    rows = [[_latex_cell(value) for value in row] for row in table.rows]
    columns, notes = [_escaped(name) for name in table.columns], [_escaped(note) for note in table.notes]
    return latex_table(caption, columns, rows, notes, label=table.key)


def _latex_cell(value: Any) -> Any:
    """A number as it is, None for a cell that holds nothing, and words as LaTeX."""
    text = cell(value)
    if not text:
        return None
    return value if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else _escaped(text)


def _escaped(words: str) -> str:
    """The words on one line; characters that LaTeX would obey are escaped."""
    return escape_latex(one_line(words))


def escape_latex(words: str) -> str:
    r"""Words for LaTeX; numbers such as 1e-06 become mathematics.

    >>> print(escape_latex("r_max ^ k"), escape_latex(r"\input{x}"), escape_latex("= 2.12e-06"))
    r\_max \^{} k \textbackslash{}input\{x\} = $2.12\times10^{-6}$
    """
    pieces = _SCIENTIFIC.split(words)  # words, mantissa, exponent, words, ...
    numbers = [
        rf"${mantissa}\times10^{{{int(power)}}}$" for mantissa, power in zip(pieces[1::3], pieces[2::3], strict=True)
    ]
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
    """The alignment of a column, its heading and its cells."""
    numeric = [isinstance(value, Real) and not isinstance(value, bool) for value in values]
    if not any(numeric) or not all(number or value is None for number, value in zip(numeric, values, strict=True)):
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


# ------------------------------------------------------------------------------------------------------------------ CSV


def to_csv(item: Item) -> str:
    """One long table per item, numbers at full precision.

    >>> from forgetting.figures.items import Series
    >>> print(to_csv(Curves("f", "", "", "k", "loss", (Series("a", (1.0,), (0.5,)),))).replace(chr(13), ""))
    series,role,method,k,loss,low,high
    a,exact,,1.0,0.5,,
    <BLANKLINE>
    """
    return csv_text(_csv_rows(item))


def _csv_rows(item: Item) -> Iterable[tuple[Any, ...]]:
    if isinstance(item, Curves):
        yield ("series", "role", "method", item.xlabel, item.ylabel, "low", "high")
        for series in item.series:
            low = series.low or ("",) * len(series.x)
            high = series.high or ("",) * len(series.x)
            for point in zip(series.x, series.y, low, high, strict=True):
                yield (series.name, series.role, series.method, *point)
    elif isinstance(item, Regions):
        yield (item.ylabel, f"{item.xlabel}: first", "last", "name")
        for band in item.bands:
            yield (band.y, band.first, band.last, band.name)
    elif isinstance(item, Paths):
        yield ("run", "step", "task", "x", "y")
        for stage in item.stages:
            for step, (x, y) in enumerate(stage.points):
                yield (stage.name, step, "" if step == 0 else stage.order[step - 1], x, y)
    elif isinstance(item, Matrix):
        yield (item.ylabel, *item.columns)
        for name, row in zip(item.rows, item.values, strict=True):
            yield (name, *row)
    elif isinstance(item, Bars):
        yield ("name", item.xlabel)
        yield from zip(item.names, item.values, strict=True)
    elif isinstance(item, Spread):
        yield ("panel", "name", "value")
        for panel in item.panels:
            yield from ((panel.xlabel, name, value) for name, value in zip(item.names, panel.marks, strict=True))
            yield from ((panel.xlabel, "", value) for value in panel.values)
    elif isinstance(item, Table):
        yield item.columns
        yield from item.rows
