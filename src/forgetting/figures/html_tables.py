"""The rows of a table as HTML, for the report, for notebooks and for the tables of the paper; formulas as in print."""

from __future__ import annotations

import re
from typing import Any

from forgetting.core.text import escape
from forgetting.figures.items import Table, cell
from forgetting.figures.style import greek

LONG = 24  # letters of a cell that gets some width in notebooks


def html_rows(table: Table) -> str:
    """The headings and the rows, to stand in a <table>; style sheets know numbers, words and verdicts by their class.

    >>> print(html_rows(Table("t", "Numbers", "", ("k", "loss"), ((1, None),))))
    <thead><tr><th class="num">k</th><th class="word">loss</th></tr></thead>
    <tbody>
    <tr><td class="num">1</td><td class="word"></td></tr>
    </tbody>
    """
    heads = ""
    for place, name in enumerate(table.columns):
        above_numbers = any(_kind(row[place]) == "num" for row in table.rows)
        heads += f'<th class="{"num" if above_numbers else "word"}">{escape(name)}</th>'
    rows = ["".join(f'<td class="{_kind(value)}">{_breaks(cell(value))}</td>' for value in row) for row in table.rows]
    return "\n".join([f"<thead><tr>{heads}</tr></thead>", "<tbody>", *(f"<tr>{row}</tr>" for row in rows), "</tbody>"])


def _kind(value: Any) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "num"
    verdicts = {"holds": "good", "violated": "bad", "refuted": "bad"}
    return verdicts.get(value, "words" if len(cell(value)) > LONG else "word")


def _breaks(words: str) -> str:
    """A cell as HTML: a label may break after its punctuation, so that columns are narrow; a second line is a value."""
    first, *more = words.split("\n")
    broken = (
        re.sub(r"([/:_])(?=\w)", r"\1<wbr>", escape(first)) if ":" in first and " " not in first else symbols(first)
    )
    broken = re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", broken)
    return broken + "".join(f'<br><span class="value">{escape(line)}</span>' for line in more)


def symbols(words: str) -> str:
    """Formulas in words as HTML: powers, indices, roots and Greek letters.

    >>> symbols("2 S / k^(1/4) at w_0, eta = 1, R^2.")
    '2 S / k<sup>1/4</sup> at w<sub>0</sub>, η = 1, R<sup>2</sup>.'
    """
    text = (
        escape(greek(words)).replace("&lt;=", "≤").replace("&gt;=", "≥").replace("&#x27;", "'").replace("&quot;", '"')
    )
    return re.sub(
        r"(?<![\w:])(max|min|sum|mean|[^\W\d_])_(?:\(([^()]*)\)|(\w{1,4}?)(?![\w:]))",
        lambda m: f"{m[1]}<sub>{m[2] or m[3]}</sub>",
        _powers(text),
    )


def _powers(text: str) -> str:
    """Powers as superscripts, also powers of powers."""
    nested = r"(?:[^()]|\((?:[^()]|\([^()]*\))*\))*"
    power = rf"\^\(({nested})\)|\^(\+|-?\w+(?:\.\w+)*)"
    return re.sub(power, lambda m: f"<sup>{_powers(m[1] or m[2])}</sup>", text)
