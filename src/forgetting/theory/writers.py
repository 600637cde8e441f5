"""Tables as text for a terminal, by rich, and as LaTeX."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any, Literal

__all__ = ["escape_latex", "latex_table", "printed", "text_table", "unbroken"]

_LATEX = {letter: f"\\{letter}" for letter in "&%_#${}"} | {
    "^": r"\^{}", "~": r"\textasciitilde{}", "∧": r"$\wedge$", "\\": r"\textbackslash{}",
    "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_STAY = "\ue000"  # a character that nobody prints, in place of a space at which a line must not end


def escape_latex(words: str) -> str:
    r"""Words for LaTeX.

    >>> print(escape_latex("r_max ^ k"), escape_latex(r"\input{x}"))
    r\_max \^{} k \textbackslash{}input\{x\}
    """
    return "".join(_LATEX.get(letter, letter) for letter in words)


def latex_table(
    caption: str, columns: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str], label: str = ""
) -> str:
    """A table environment with booktabs rules; all words are LaTeX already."""
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}"]
    lines += [rf"\label{{tab:{label}}}"] if label else []
    lines += [rf"\begin{{tabular}}{{{'l' * len(columns)}}}", r"\toprule", " & ".join(columns) + r" \\", r"\midrule"]
    lines += [" & ".join(row) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}", *(rf"\par\footnotesize {note}" for note in notes)]
    return "\n".join([*lines, r"\end{table}", ""])


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
    least = [max(len(word) for row in rows for word in row[place].split() or [""]) for place in range(len(columns))]
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

    console = Console(file=StringIO(), width=max(width, 1), color_system=None, legacy_windows=False)
    with console.capture() as shown:
        console.print(grid)
    return [line.rstrip() for line in shown.get().splitlines()]
