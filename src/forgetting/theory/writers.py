"""Thin renderers: a table of cells to the terminal, Markdown, LaTeX and HTML."""

from __future__ import annotations

import textwrap
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forgetting.theory.tables import Cell, Table

__all__ = ["escape_latex", "html", "latex", "markdown", "text"]

_LATEX = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "^": r"\^{}",
    "~": r"\textasciitilde{}",
    "∧": r"$\wedge$",
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


_STAY = "\N{NO-BREAK SPACE}"


def escape_latex(words: str) -> str:
    r"""Words for LaTeX.

    >>> print(escape_latex("r_max ^ k"), escape_latex(r"\input{x}"))
    r\_max \^{} k \textbackslash{}input\{x\}
    """
    return "".join(_LATEX.get(letter, letter) for letter in words)


def text(table: Table, width: int = 80) -> str:
    """Columns of words wrapped to the width, caption above, footnotes below."""
    numbers = table.numbers()
    blocks = [
        [_lines(cell, "" if numbers is None else numbers[i][j]) for j, cell in enumerate(row)]
        for i, row in enumerate(table.rows)
    ]
    widths = _fit([[[name] for name in table.columns], *blocks], width - 3 * (len(table.columns) - 1))
    rule = "-+-".join("-" * size for size in widths)
    head = _block([[name] for name in table.columns], widths)
    body = [line for block in blocks for line in (rule, *_block(block, widths))]
    notes = [line for note in table.footnotes for line in textwrap.wrap(note, width)]
    return "\n".join([*textwrap.wrap(table.caption, width), "", *head, *body, "", *notes])


def _lines(cell: Cell, number: str) -> list[str]:
    """One line per term of a minimum, then the number."""
    first, *rest = cell.terms
    lines = [first, *(f"∧ {term}" for term in rest)]
    if cell.latex:  # a formula is not broken at its spaces
        lines = [line.replace(" ", _STAY) for line in lines]
    lines[-1] += f" {cell.mark}" if cell.mark else ""
    return [*lines, number] if number else lines


def _fit(blocks: list[list[list[str]]], room: int) -> list[int]:
    """Column widths that fill at most the room: the widest column gives way first, but not below its longest word."""
    columns = range(len(blocks[0]))
    widths = [max(len(word) for word in blocks[0][j][0].split(" ")) for j in columns]  # headings may always be wrapped
    widths = [max(widths[j], *(len(line) for block in blocks[1:] for line in block[j])) for j in columns]
    least = [max(len(word) for block in blocks for line in block[j] for word in line.split(" ")) for j in columns]
    while sum(widths) > room:
        loose = [j for j in columns if widths[j] > least[j]]
        if not loose:  # words that cannot be broken at spaces are broken anywhere
            loose = [j for j in columns if widths[j] > 8]
        if not loose:
            break
        widest = max(loose, key=lambda j: widths[j])
        widths[widest] -= 1
    return widths


def _wrap(line: str, width: int) -> list[str]:
    return [part.replace(_STAY, " ") for part in textwrap.wrap(line, width, break_on_hyphens=False)]


def _block(cells: list[list[str]], widths: list[int]) -> list[str]:
    wrapped = [
        [part for line in cell for part in (_wrap(line, size) or [""])]
        for cell, size in zip(cells, widths, strict=True)
    ]
    height = max(len(cell) for cell in wrapped)
    padded = [cell + [""] * (height - len(cell)) for cell in wrapped]
    rows = zip(*padded, strict=True)
    return [" | ".join(f"{part:<{size}}" for part, size in zip(row, widths, strict=True)).rstrip() for row in rows]


def markdown(table: Table) -> str:
    """A pipe table; formulas as code."""
    numbers = table.numbers()
    lines = [f"**{_pipe(table.caption)}**", "", _row(table.columns), _row(["---"] * len(table.columns))]
    for i, row in enumerate(table.rows):
        shown = []
        for j, cell in enumerate(row):
            words = f"`{cell.text}`" if cell.latex else cell.text
            shown.append(" ".join(part for part in (words, numbers[i][j] if numbers else "", cell.mark) if part))
        lines.append(_row(shown))
    return "\n".join([*lines, "", *(f"{_pipe(note)}\n" for note in table.footnotes)]).rstrip() + "\n"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return "| " + " | ".join(_pipe(cell) for cell in cells) + " |"


def _pipe(words: str) -> str:
    return words.replace("|", r"\|").replace("*", r"\*")


def latex(table: Table) -> str:
    """A table environment with booktabs rules."""
    numbers = table.numbers()
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{escape_latex(table.caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule"]
    lines += [" & ".join(escape_latex(name) for name in table.columns) + r" \\", r"\midrule"]
    for i, row in enumerate(table.rows):
        shown = []
        for j, cell in enumerate(row):
            words = cell.math if cell.latex else escape_latex(cell.text)
            number = escape_latex(numbers[i][j]) if numbers else ""
            mark = rf"\texttt{{{cell.mark}}}" if cell.mark else ""
            shown.append(" ".join(part for part in (words, number, mark) if part))
        lines.append(" & ".join(shown) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {escape_latex(note)}" for note in table.footnotes]
    return "\n".join([*lines, r"\end{table}", ""])


def html(table: Table) -> str:
    """A plain <table>; formulas in <code>, footnotes in <tfoot>."""
    numbers = table.numbers()
    lines = ["<table>", f"<caption>{escape(table.caption)}</caption>"]
    lines += [
        "<thead><tr>" + "".join(f"<th>{escape(name)}</th>" for name in table.columns) + "</tr></thead>",
        "<tbody>",
    ]
    for i, row in enumerate(table.rows):
        shown = []
        for j, cell in enumerate(row):
            words = f"<code>{escape(cell.text)}</code>" if cell.latex else escape(cell.text)
            number = f"<br>{escape(numbers[i][j])}" if numbers and numbers[i][j] else ""
            mark = f" <sup>{escape(cell.mark)}</sup>" if cell.mark else ""
            shown.append(f"<td>{words}{mark}{number}</td>")
        lines.append("<tr>" + "".join(shown) + "</tr>")
    lines += ["</tbody>", "<tfoot>"]
    lines += [f'<tr><td colspan="{len(table.columns)}">{escape(note)}</td></tr>' for note in table.footnotes]
    return "\n".join([*lines, "</tfoot>", "</table>", ""])
