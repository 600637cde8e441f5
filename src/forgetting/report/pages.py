"""Results that show themselves as pages: in a terminal, in a browser, and in files of other endings."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike

from forgetting.core.arrays import as_count, as_path
from forgetting.figures.items import Table
from forgetting.figures.text_formats import table_text
from forgetting.report.document import Report, summary_text
from forgetting.report.html import to_html
from forgetting.report.saving import write_file
from forgetting.results import PlainResult

ROWS = 20  # of a table in a terminal


class ResultWithPage(PlainResult):
    """The base class of results that are a report: a class says its figures and tables, and is written in all forms."""

    def to_report(self) -> Report:
        """The figures and tables as data, for the renderers of `forgetting.report`."""
        raise NotImplementedError

    def to_text(self, width: int = 80) -> str:
        """A page for a terminal that is `width` characters wide."""
        return self._text(self.to_report(), as_count(width, "width", least=1))

    def _text(self, report: Report, width: int) -> str:
        """The sentences, and all tables with what they mean."""
        parts = [summary_text(report, width)]
        for item in report.items():
            if isinstance(item, Table):
                meant = replace(item, notes=(*item.notes, *filter(None, [item.caption])))
                parts.append(table_text(first_rows(meant, ROWS), width))
        return "\n\n".join(parts)

    def to_html(self) -> str:
        """A page for a browser, as a single HTML file."""
        return to_html(self.to_report())

    def write_page(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the page for a browser (.html), its tables (.tex, .csv) or its first figure (.png, .pdf)."""
        write_file(self.to_report(), as_path(path), force=force)

    def __str__(self) -> str:
        return self.to_text()


def first_rows(table: Table, most: int) -> Table:
    """The table with its first rows, and a note of how many there are more.

    >>> first_rows(Table("t", "", "", ("k",), ((1,), (2,), (3,))), 2).notes
    ('... and 1 more',)
    """
    more = len(table.rows) - most
    return table if more <= 0 else replace(table, rows=table.rows[:most], notes=(f"... and {more} more", *table.notes))
