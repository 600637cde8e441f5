"""A report as text: its summary for a terminal, and its tables for a paper."""

from __future__ import annotations

import re
import textwrap

from forgetting.figures.items import Table
from forgetting.figures.text_formats import to_latex
from forgetting.report.document import Report

__all__ = ["summary_text", "to_latex_file"]


def to_latex_file(report: Report) -> str:
    """All tables of a report."""
    return "\n".join(to_latex(item) for item in report.items() if isinstance(item, Table))


def summary_text(report: Report, width: int = 80) -> str:
    """The sentences that open the report, then the findings, one paragraph each.

    >>> print(summary_text(Report("Title", (), {}, ("One sentence.",), ("one finding",))))
    Title
    - One sentence.
    - one finding
    """
    lines = [*textwrap.wrap(report.title, width)]
    for line in (*report.summary, *report.findings):
        lines += textwrap.wrap(f"- {without_links(line)}", width, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)


def without_links(words: str) -> str:
    """The words of a text of the report where links cannot be followed.

    >>> without_links("three are [false](#tab-false)")
    'three are false'
    """
    return re.sub(r"\[([^\[\]]*)\]\(#[\w.-]+\)", r"\1", words)
