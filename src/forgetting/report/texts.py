"""A report as text: its summary for a terminal, and its tables for a paper."""

from __future__ import annotations

import textwrap

from forgetting.figures.items import Table
from forgetting.figures.latex import to_latex
from forgetting.report.document import Report

__all__ = ["summary_text", "to_latex_file"]


def to_latex_file(report: Report) -> str:
    """All tables of a report."""
    return "\n".join(to_latex(item) for item in report.items() if isinstance(item, Table))


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
