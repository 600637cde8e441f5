"""What a report looks like in a terminal or a pipe: no colour is needed to read it."""

from __future__ import annotations

import re
import textwrap

from forgetting.report.data import Report, Table
from forgetting.report.numbers import cell

__all__ = ["summary_text", "table_text"]


def table_text(table: Table, width: int = 80) -> str:
    """A table of at most this width, as plain text; long words are broken after their punctuation.

    >>> print(table_text(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5), (10, 0.25)))))
    Numbers
    k   loss
    --  ----
    1   0.5
    10  0.25
    """
    cells = [[cell(value).split("\n") for value in row] for row in table.rows]
    columns = range(len(table.columns))
    widths = [max(len(table.columns[j]), *(len(line) for row in cells for line in row[j]), 1) for j in columns]
    words = [[part for row in cells for line in row[j] for part in _parts(line)] for j in columns]
    least = [max([len(table.columns[j]), *map(len, words[j])]) for j in columns]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        loose = [j for j in columns if widths[j] > least[j]] or [j for j in columns if widths[j] > 6]
        if not loose:
            break
        widths[max(loose, key=lambda j: widths[j])] -= 1
    body = [line for row in cells for line in _block(row, widths)]
    head = _block([[name] for name in table.columns], widths)
    notes = [line for note in table.notes for line in textwrap.wrap(note, width)]
    rule = "  ".join("-" * size for size in widths)
    return "\n".join([table.title, *head, rule, *body, *notes])


def _block(cells: list[list[str]], widths: list[int]) -> list[str]:
    wrapped = [[part for line in one for part in _fold(line, size)] for one, size in zip(cells, widths, strict=True)]
    height = max((len(one) for one in wrapped), default=0)
    rows = zip(*(one + [""] * (height - len(one)) for one in wrapped), strict=True)
    return ["  ".join(part.ljust(size) for part, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def _parts(line: str) -> list[str]:
    """What may not be broken: words, and the pieces of a key."""
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


def summary_text(report: Report, width: int = 80) -> str:
    """The headline numbers, one paragraph each.

    >>> print(summary_text(Report("Title", (), {}, ("one finding",))))
    Title
    - one finding
    """
    lines = [*textwrap.wrap(report.title, width)]
    for line in report.summary:
        lines += textwrap.wrap(f"- {line}", width, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)
