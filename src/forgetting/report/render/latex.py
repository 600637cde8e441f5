"""Tables for a paper."""

from __future__ import annotations

from forgetting._text import one_line
from forgetting.report.data import Report, Table
from forgetting.report.numbers import cell
from forgetting.theory.writers import escape_latex, latex_table

__all__ = ["to_latex", "to_latex_file"]


def to_latex(table: Table) -> str:
    r"""A table environment with booktabs rules.

    >>> print(to_latex(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5),))))
    \begin{table}
    \centering
    \caption{Numbers}
    \label{tab:t}
    \begin{tabular}{ll}
    \toprule
    k & loss \\
    \midrule
    1 & 0.5 \\
    \bottomrule
    \end{tabular}
    \end{table}
    <BLANKLINE>
    """
    caption = _words(". ".join(part for part in (table.title, table.caption) if part))
    rows = [[_words(cell(value)) for value in row] for row in table.rows]
    columns, notes = [_words(name) for name in table.columns], [_words(note) for note in table.notes]
    return latex_table(caption, columns, rows, notes, label=table.key)


def to_latex_file(report: Report) -> str:
    """All tables of a report."""
    return "\n".join(to_latex(item) for item in report.items() if isinstance(item, Table))


def _words(words: str) -> str:
    """The words on one line; characters that LaTeX would obey are escaped."""
    return escape_latex(one_line(words))
