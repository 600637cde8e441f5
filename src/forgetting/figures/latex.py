"""Tables for a paper."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from forgetting.core.text import one_line
from forgetting.figures.items import Table
from forgetting.figures.numbers import cell
from forgetting.figures.writers import escape_latex, latex_table

__all__ = ["to_latex"]


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
    caption = _words(". ".join(part for part in (table.title, table.caption) if part))
    rows = [[_cell(value) for value in row] for row in table.rows]
    columns, notes = [_words(name) for name in table.columns], [_words(note) for note in table.notes]
    return latex_table(caption, columns, rows, notes, label=table.key)


def _cell(value: Any) -> Any:
    """A number as it is, None for a cell that holds nothing, and words as LaTeX."""
    text = cell(value)
    if not text:
        return None
    return value if isinstance(value, Real) and not isinstance(value, bool | np.bool_) else _words(text)


def _words(words: str) -> str:
    """The words on one line; characters that LaTeX would obey are escaped."""
    return escape_latex(one_line(words))
