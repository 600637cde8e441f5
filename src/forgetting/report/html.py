"""The report as one HTML file that needs no network."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from forgetting.core.text import escape
from forgetting.figures.html_tables import html_rows, symbols
from forgetting.figures.items import Item, Paths, Table
from forgetting.figures.lab import lab_html, lab_script, lab_style, playable
from forgetting.figures.style import COLOURS, DARK, css_colours
from forgetting.figures.svg import Drawing, figure_drawing
from forgetting.report.document import Report, Section

#: the browser itself refuses every request
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def to_html(report: Report, explorer: str = "") -> str:
    """The report as one page: text, tables and drawings, and a link to an explorer of its tasks beside it.

    A small script adds readings under the pointer, legends that hide and show curves, projections that a reader can
    move by hand, and a theme.

    >>> page = to_html(Report("Title", (), {"versions": {}, "seconds": {"total": 1}}, ("one finding",)))
    >>> "://" in page, page.count("<h1>")
    (False, 1)
    """
    drawings = {item.key: figure_drawing(item) for item in report.items() if not isinstance(item, Table)}
    body = [
        _header(report),
        _lead(report, drawings),
        "<nav>"
        + "".join(f'<a href="#{escape(s.key)}">{escape(s.title)}</a>' for s in report.sections)
        + (f'<a href="{escape(explorer)}">Turn the tasks by hand</a>' if explorer else "")
        + "</nav>",
        *_sections(report, drawings),
        _meta(report.meta),
    ]
    labs = any(isinstance(item, Paths) and playable(item) for item in report.items())
    hover = {key: drawing.hover for key, drawing in drawings.items() if drawing.hover}
    data = json.dumps(hover, allow_nan=False, separators=(",", ":"))
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            f"<title>{escape(report.title)}</title>",
            '<link rel="icon" href="data:,">',
            f"<style>{_colours()}{_asset('report.css')}{lab_style() if labs else ''}</style>",
            "</head>",
            "<body>",
            "<main>",
            *body,
            "</main>",
            '<div id="tip" role="status" hidden></div>',
            # "<" inside JSON strings must not end the script element
            f'<script type="application/json" id="data">{data.replace("<", chr(92) + "u003c")}</script>',
            f"<script>{_asset('report.js')}{lab_script() if labs else ''}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _header(report: Report) -> str:
    subtitle = f'<p class="subtitle">{escape(report.subtitle)}</p>' if report.subtitle else ""
    button = '<button id="theme" type="button" hidden>Dark</button>'
    return f"<header><div><h1>{escape(report.title)}</h1>{subtitle}</div>{button}</header>"


def _asset(name: str) -> str:
    return (files("forgetting.report") / "assets" / name).read_text(encoding="utf-8")


def _colours() -> str:
    """The palette as variables of CSS, for a light and for a dark page."""
    light, dark = css_colours(COLOURS), css_colours(DARK)
    return (
        f":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}"
        f":root[data-theme=dark]{{{dark}}}\n"
    )


def _lead(report: Report, drawings: dict[str, Drawing]) -> str:
    """The head of the page: a figure and a few sentences, then the findings of the sections."""
    figure = _item(report.item(report.lead), drawings[report.lead]) if report.lead in drawings else ""
    sentences = "".join(f"<p>{_linked(sentence)}</p>" for sentence in report.summary)
    findings = "".join(f"<li>{_linked(finding)}</li>" for finding in report.findings)
    more = f'<ul class="findings">{findings}</ul>' if findings else ""
    return f'<div class="lead"><div class="summary">{sentences}{more}</div>{figure}</div>'


def _sections(report: Report, drawings: dict[str, Drawing]) -> Iterator[str]:
    """The sections, each part under its name."""
    part = ""
    for section in report.sections:
        if section.part != part:
            part = section.part
            yield f'<h2 class="part">{escape(part)}</h2>'
        yield _section(section, drawings, without=report.lead)


def _linked(words: str) -> str:
    """Words as HTML, in which [words](#key) is a link within the page.

    >>> _linked("three are [false](#tab-false)")
    'three are <a href="#tab-false">false</a>'
    """
    pieces = re.split(r"\[([^\[\]]*)\]\(#([\w.-]+)\)", words)  # words, link, key, words, ...
    links = [f'<a href="#{key}">{symbols(name)}</a>' for name, key in zip(pieces[1::3], pieces[2::3], strict=True)]
    return "".join(part for pair in zip(map(symbols, pieces[::3]), [*links, ""], strict=True) for part in pair)


def _section(section: Section, drawings: dict[str, Drawing], without: str) -> str:
    parts = [f'<section id="{escape(section.key)}">', f"<h2>{escape(section.title)}</h2>"]
    if section.text:
        parts.append(f"<p>{_linked(section.text)}</p>")
    if section.missing:
        parts.append(f'<p class="missing">Left out: {escape(section.missing)}.</p>')
    parts.append('<div class="grid">')
    shown = [item for item in section.items if item.key != without]
    parts += [_table(item) if isinstance(item, Table) else _item(item, drawings[item.key]) for item in shown]
    return "\n".join([*parts, "</div>", "</section>"])


def _item(item: Item, drawing: Drawing) -> str:
    lab = lab_html(item) if isinstance(item, Paths) and playable(item) else ""
    wide = " wide" if isinstance(item, Paths) else ""
    return "\n".join(
        [
            f'<figure class="figure{wide}" id="fig-{escape(item.key)}">',
            f"<h3>{escape(item.title)}</h3>",
            f'<div class="plots still">{drawing.svg}</div>',
            lab,
            f"<figcaption>{symbols(item.caption)}</figcaption>",
            "</figure>",
        ]
    )


def _table(table: Table) -> str:
    wide = " compact" if table.compact else " wide"
    notes = "".join(f"<p>{symbols(note)}</p>" for note in table.notes)
    return "\n".join(
        [
            f'<div class="table{wide}" id="tab-{escape(table.key)}">',
            f"<h3>{escape(table.title)}</h3>",
            f'<p class="caption">{symbols(table.caption)}</p>',
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}"><table>',
            html_rows(table),
            "</table></div>",
            f'<div class="notes">{notes}</div>',
            "</div>",
        ]
    )


def _meta(meta: dict[str, Any]) -> str:
    flat = {
        name: "; ".join(f"{key}: {entry}" for key, entry in value.items()) if isinstance(value, dict) else value
        for name, value in meta.items()
    }
    rows = "".join(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in flat.items())
    return f'<section id="about"><h2>Where this comes from</h2><dl>{rows}</dl></section>'
