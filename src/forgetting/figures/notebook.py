"""A table and a small picture as HTML for notebooks: no script, and colours that suit light and dark pages."""

from __future__ import annotations

from forgetting.core.text import escape
from forgetting.figures.html_tables import html_rows
from forgetting.figures.items import Item, Table
from forgetting.figures.style import COLOURS, css_colours
from forgetting.figures.svg import figure_drawing

STYLE = """
.forgetting-result{font-family:inherit;color:inherit;display:flex;flex-wrap:wrap;gap:1.2em;align-items:flex-start;
--text:currentColor;--soft:currentColor;--grid:rgba(128,128,128,.25);--card:#ffffff;--minor:#8a8a8a;--idle:rgba(128,128,128,.3);}
.forgetting-result .head{flex-basis:100%;margin:0;font-weight:600}
.forgetting-result table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:0}
.forgetting-result th,.forgetting-result td{padding:.15em .7em;text-align:left;background:transparent;border:0}
.forgetting-result thead th{border-bottom:1px solid currentColor}
.forgetting-result td{min-width:3em}
.forgetting-result .rows{max-width:100%;overflow-x:auto}
.forgetting-result td.words{min-width:16em}
.forgetting-result td.num,.forgetting-result th.num{text-align:right}
.forgetting-result p{flex-basis:100%;margin:.2em 0;font-size:.92em;opacity:.85}
.forgetting-result svg{width:440px;max-width:100%;height:auto;color:inherit;font-size:11px}
.forgetting-result svg text{fill:currentColor}
"""


def notebook_html(table: Table, picture: Item | None = None) -> str:
    """The title, the rows and the notes of a table, and a picture beside them.

    >>> page = notebook_html(Table("t", "Numbers", "", ("k", "loss"), ((1, 0.5),)))
    >>> '<td class="num">0.5</td>' in page, "<script" in page
    (True, False)
    """
    drawn = "" if picture is None else f"<div>{figure_drawing(picture).svg}</div>"
    notes = "".join(f"<p>{escape(note)}</p>" for note in table.notes)
    return (
        f'<style>{STYLE}</style><div class="forgetting-result" style="{css_colours(COLOURS)}">'
        f'<p class="head">{escape(table.title)}</p>'
        f'<div class="rows"><table>{html_rows(table)}</table></div>'
        f"{drawn}{notes}</div>"
    )
