"""Tables as text for a terminal and as LaTeX, and the data of figures and tables as CSV."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from numbers import Integral, Real
from typing import Any
from unicodedata import combining, east_asian_width

import numpy as np

from forgetting.core.text import csv_text, one_line
from forgetting.figures.items import Bars, Curves, Item, Matrix, Paths, Regions, Spread, Table, cell

# ------------------------------------------------------------------------------------------------------------- terminal

#: characters that nobody prints, in place of those after which a line may end
_HIDDEN = str.maketrans({" ": "\ue000", "/": "\ue001"})
_SHOWN = str.maketrans({"\ue000": " ", "\ue001": "/"})


def table_text(table: Table, width: int = 80) -> str:
    """A table of at most this width, as plain text.

    >>> print(table_text(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5), (10, 0.25)))))
    Numbers
    k   loss
    --  ----
    1   0.5
    10  0.25
    """
    columns = [[name, *(cell(row[place]) for row in table.rows)] for place, name in enumerate(table.columns)]
    notes = [line for note in table.notes for line in textwrap.wrap(note, width)]
    return "\n".join([table.title, *([columns_text(columns, width)] if columns else []), *notes])


def columns_text(columns: Sequence[Sequence[str]], width: int = 80, *, ruled: bool = False) -> str:
    """Columns of words, each with its heading first; with `ruled`, lines stand between rows and columns.

    Long words are broken after their punctuation, and those of `unbroken` only where nothing else is left.

    >>> print(columns_text([("bound", "trivial/loss"), ("value", "0.5")], width=16, ruled=True))
    bound    | value
    ---------+------
    trivial/ | 0.5
    loss     |
    """
    between, crossing = (" | ", "-+-") if ruled else ("  ", "  ")
    room = width - len(between) * (len(columns) - 1)
    cells = [[words.split("\n") for words in column] for column in columns]
    if sum(map(_least, cells)) > room:
        cells = [[[line.translate(_SHOWN) for line in lines] for lines in column] for column in cells]
    widths = _widths(cells, room)
    folded = [
        [[part for line in lines for part in _fold(line, size)] for lines in column]
        for column, size in zip(cells, widths, strict=True)
    ]
    height = max(len(column[0]) for column in folded)
    for column in folded:
        column[0] = [""] * (height - len(column[0])) + column[0]  # headings stand on the rule
    shown = []
    for place, row in enumerate(zip(*folded, strict=True)):
        for parts in zip_longest(*row, fillvalue=""):
            padded = (part + " " * (size - _length(part)) for part, size in zip(parts, widths, strict=True))
            shown.append(between.join(padded).rstrip())
        if place == 0 or (ruled and place < len(folded[0]) - 1):
            shown.append(crossing.join("-" * size for size in widths))
    return "\n".join(shown).translate(_SHOWN)


def unbroken(words: str) -> str:
    """The same words, which `columns_text` keeps on one line if the line is long enough."""
    return words.translate(_HIDDEN)


def _widths(columns: list[list[list[str]]], room: int) -> list[int]:
    """Widths of columns that fit: the widest gives way first, and words are broken only where nothing else is left."""
    widths = [max(_length(line) for lines in column for line in lines) or 1 for column in columns]
    for floors in ([*map(_least, columns)], [6] * len(columns), [1] * len(columns)):
        while sum(widths) > room:
            loose = [place for place, size in enumerate(widths) if size > floors[place]]
            if not loose:
                break
            widths[max(loose, key=lambda place: widths[place])] -= 1
    return widths


def _least(column: list[list[str]]) -> int:
    """The length of the longest part of a column that is not broken."""
    return max((_length(part) for lines in column for line in lines for part in _parts(line)), default=1)


def _length(words: str) -> int:
    """The columns of a terminal that words take: two for each wide letter, none for an accent of its own."""
    if words.isascii():
        return len(words)
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in words)


def _parts(line: str) -> list[str]:
    """The parts of a line that are not broken: words, spaces, and the pieces of a key."""
    return re.findall(r"\s+|[^\s/]+/?|/", line)


def _fold(line: str, width: int) -> list[str]:
    """Lines of at most this width; only a word longer than a line is broken, if possible after its punctuation.

    >>> _fold("  a key/of/parts", 8)
    ['a key/', 'of/parts']
    """
    lines = [""]
    for word in re.findall(r"\s+|\S+", line):
        for part in [word] if _length(word) <= width else _parts(word):
            if _length(lines[-1]) + _length(part.rstrip()) > width and lines[-1]:
                lines.append("")
            part = part if lines[-1] else part.lstrip()
            while _length(part.rstrip()) > width:
                size = max((n for n in range(1, len(part)) if _length(part[:n]) <= width), default=1)
                lines[-1:] = [part[:size], ""]
                part = part[size:]
            lines[-1] += part
    return [folded.rstrip() for folded in lines]


# ---------------------------------------------------------------------------------------------------------------- LaTeX

_LATEX = {letter: f"\\{letter}" for letter in "&%_#${}"} | {
    "^": r"\^{}", "~": r"\textasciitilde{}", "\\": r"\textbackslash{}", "|": r"\textbar{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "∧": r"$\wedge$", "⇒": r"$\Rightarrow$", "→": r"$\to$",
    "≤": r"$\le$", "≥": r"$\ge$", "≈": r"$\approx$", "\u00d7": r"$\times$", "∞": r"$\infty$", "…": r"\ldots{}",
}  # fmt: skip
_SCIENTIFIC = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")
_PAGE, _COLUMN = 94, 45  # letters in a line of a page with two columns, and of one column, in small print
_COMMA = r",\ "  # between formulas
_WORDS = 24  # letters in a line of words beside long formulas
_NUMBER = 11  # letters that a column of numbers takes
_DIGITS = 3  # significant ones, of numbers in a table of a paper


def to_latex(table: Table) -> str:
    r"""A table environment with booktabs rules; columns of numbers are aligned at their decimal points.

    >>> print(to_latex(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5), (100, 3.1234e-6)))))
    \begin{table}
    \centering
    \small
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
    """A table environment with booktabs rules that fits a paper with two columns: in one of them, or across both.

    Words are LaTeX already; numbers are numbers, and None an empty cell. Long words and formulas are broken into lines.
    A column of numbers is aligned at the decimal points: it is set as two columns, before and after the point, without
    a space between them.
    """
    values = [[row[place] for row in rows] for place in range(len(columns))]
    lengths = [_longest(name, cells) for name, cells in zip(columns, values, strict=True)]
    star = "*" if sum(lengths) + 2 * len(columns) > _COLUMN else ""
    fixed = [_all_numbers(cells) for cells in values]
    rooms = _rooms(lengths, fixed, ["$" not in "".join(map(_text, cells)) for cells in values])
    shown = [_column(name, cells, room) for name, cells, room in zip(columns, values, rooms, strict=True)]
    lines = [rf"\begin{{table{star}}}", r"\centering", r"\small", rf"\caption{{{caption}}}"]
    lines += [rf"\label{{tab:{label}}}"] if label else []
    lines += [r"\renewcommand{\arraystretch}{1.5}"] * any(r"\frac" in cell for _, _, cells in shown for cell in cells)
    lines += [rf"\begin{{tabular}}{{{''.join(spec for spec, _, _ in shown)}}}", r"\toprule"]
    lines += [" & ".join(head for _, head, _ in shown) + r" \\", r"\midrule"]
    lines += [" & ".join(cells) + r" \\" for cells in zip(*(cells for _, _, cells in shown), strict=True)]
    lines += [r"\bottomrule", r"\end{tabular}", *(rf"\par\raggedright\footnotesize {note}" for note in notes)]
    return "\n".join([*lines, rf"\end{{table{star}}}", ""])


def _all_numbers(values: Sequence[Any]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and all(isinstance(value, Real) and not isinstance(value, bool) for value in known)


def _longest(name: str, values: Sequence[Any]) -> int:
    """The letters of the longest cell of a column, about."""
    return _NUMBER if _all_numbers(values) else max(_size(_text(words)) for words in (name, *values))


def _size(words: str) -> int:
    r"""The letters of words in LaTeX, about: most commands have one, and signs that are not printed have none.

    >>> _size("$d-\\bar r$"), _size("word")
    (4, 4)
    """
    printed = re.sub(r"\\(frac|left|right|bar)(?![A-Za-z]) ?|[$^_{}]", "", words)
    printed = re.sub(r"\\(min|max|log|exp|text)(?![A-Za-z]) ?", "xxx", printed)
    signs = len(re.findall(r"[-+=]|\\[lg]e(?![A-Za-z])", printed)) if "$" in words else 0  # with space around them
    return len(re.sub(r"\\[A-Za-z]+ ?", "x", printed)) + signs


def _rooms(lengths: Sequence[int], fixed: Sequence[bool], breakable: Sequence[bool]) -> list[int | None]:
    """The letters of a line in each column that is too long for the page; None for one that keeps its length.

    Words give way to formulas, which TeX breaks at few places.
    """
    room = _PAGE - 3 * len(lengths) - sum(size for size, number in zip(lengths, fixed, strict=True) if number)
    rooms: list[int | None] = [None] * len(lengths)
    wordy = [place for place, number in enumerate(fixed) if not number]
    if sum(lengths[place] for place in wordy) <= room:
        return rooms
    needed = [min(size, _WORDS) if free else size for size, free in zip(lengths, breakable, strict=True)]
    for done, place in enumerate(sorted(wordy, key=lambda place: needed[place])):
        share = min(max(room // (len(wordy) - done), 8), needed[place])
        rooms[place] = share if lengths[place] > share else None
        room -= share
    return rooms


def _column(name: str, values: list[Any], room: int | None) -> tuple[str, str, list[str]]:
    """The alignment of a column, its heading and its cells, in lines of so many letters if it has too many."""
    if not _all_numbers(values):
        head, *cells = (words if room is None else _lines(words, room) for words in map(_text, (name, *values)))
        return "l", head, cells
    numbers = ["" if value is None else latex_number(value) for value in values]
    if not any("." in number for number in numbers):
        return "r", name, [f"${number}$" if number else "" for number in numbers]
    pairs = [number.partition(".") for number in numbers]
    cells = [
        f"${whole}$ & ${point}{rest}$" if point else f"${whole}$ &" if whole else " &" for whole, point, rest in pairs
    ]
    return "r@{}l", rf"\multicolumn{{2}}{{c}}{{{name}}}", cells


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else latex_number(value)


def _lines(words: str, room: int) -> str:
    """Words in lines of about so many letters; a formula may end a line after its commas; long ones are small."""
    if not words:
        return ""
    parts = words.replace(_COMMA, "$, $")
    formulas = [part for formula in re.findall(r"\$[^$]*\$", parts) for part in formula.split(r"\wedge")]
    over = max((_size(f"${part}") for part in formulas), default=0) / room
    small = r"\tiny " if over > 0.95 else r"\scriptsize " if over > 0.8 else ""
    parts = parts.replace(r"\newline ", rf"\newline {small}") if r"\newline " in parts else small + parts
    return rf"\parbox[t]{{{room / _PAGE:.2f}\textwidth}}{{\raggedright {parts}\strut}}"


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
