"""Tables as plain text for a terminal or a pipe, without colours."""

from __future__ import annotations

import re
import textwrap
from typing import Any

from forgetting.figures.items import Table
from forgetting.figures.numbers import cell
from forgetting.figures.writers import printed

__all__ = ["table_text"]


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
    return [one.rstrip() for one in lines]
