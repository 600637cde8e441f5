"""A table of formulas and the bounds behind them, as text, Markdown, LaTeX and HTML."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

from forgetting.core.arrays import IntArray, as_count, as_kind
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Curves, spread_steps, through
from forgetting.figures.text_formats import escape_latex, latex_number, latex_table, text_table, unbroken
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.results import Result
from forgetting.theory.curves import bound_role
from forgetting.theory.setting import Setting
from forgetting.theory.statement import get_bound

__all__ = ["Cell", "Table", "latex_of", "prose"]


POINTS = 60  # of a curve
_MARKED = re.compile(r"«([^«»¦]*)(?:¦([^«»]*))?»")
_GIVEN = re.compile(r"\b([A-Za-z_]+) = (-?[\d.]+(?:e[+-]?\d+)?)(?![\w*^])")  # such as rank_avg = 2
_COMMAND = re.compile(r"\\([A-Za-z]+)")
#: commands of the formulas in cells; a cell with others, as in a file from elsewhere, is shown as words
_COMMANDS = {"frac", "sqrt", "wedge", "bar", "max", "min", "exp", "log", "left", "right", "eta", "beta", "sigma"}
#: how the parameters of a setting are written
_SYMBOLS = {
    "rank_avg": r"\bar r", "rank_max": r"r_{\max}", "rank_joint": "D", "dist_sq": r"\Vert w_0-w_\star\Vert^2",
    "radius": "R", "radius_sq_mean": r"\bar R", "eta": r"\eta", "beta": r"\beta", "sigma": r"\sigma",
    "rank_weighted": "r_p", "weight_ratio": r"\max_m\Vert X_m\Vert^2/(Tp_m)", "k": "k", "T": "T", "d": "d", "G": "G",
}  # fmt: skip
_PROSE: dict[str, str] = {}  # the LaTeX of words with formulas


def prose(marked: str) -> str:
    r"""Words with formulas, for a terminal; «plain¦latex» marks a formula, and `latex_of` gives the words for a paper.

    >>> words = prose(r"at rate «1/sqrt(k)¦1/\sqrt k», 50 % of «d»")
    >>> words, latex_of(words)
    ('at rate 1/sqrt(k), 50 % of d', 'at rate $1/\\sqrt k$, 50 \\% of $d$')
    """
    words = _MARKED.sub(lambda formula: formula[1], marked)
    pieces = _MARKED.split(marked)  # words, plain, latex, words, ...
    formulas = [f"${latex or plain}$" for plain, latex in zip(pieces[1::3], pieces[2::3], strict=True)]
    parts = zip(map(escape_latex, pieces[::3]), [*formulas, ""], strict=True)
    _PROSE[words] = "".join(part for pair in parts for part in pair)
    return words


def latex_of(words: str) -> str:
    r"""Words as LaTeX; formulas of `prose`, and values such as `rank_avg = 2`, are mathematics.

    >>> print(latex_of("At k = 1000, rank_avg = 2, at 50 %"))
    At $k=1000$, $\bar r=2$, at 50 \%
    """
    if words in _PROSE:
        return _PROSE[words]
    pieces = _GIVEN.split(words)  # words, name, value, words, ...
    values = [
        f"${_SYMBOLS[name]}={latex_number(float(value) if '.' in value or 'e' in value else int(value))}$"
        if name in _SYMBOLS
        else escape_latex(f"{name} = {value}")
        for name, value in zip(pieces[1::3], pieces[2::3], strict=True)
    ]
    return "".join(part for pair in zip(map(escape_latex, pieces[::3]), [*values, ""], strict=True) for part in pair)


@dataclass(frozen=True)
class Cell:
    """One cell: terms whose minimum is meant, in plain text and in LaTeX, and the bounds that give numbers.

    >>> Cell(("T^3/k",), r"\\frac{T^3}{k}", ("swartworth2023:cyclic/forgetting",)).text
    'T^3/k'
    """

    terms: tuple[str, ...]
    latex: str = ""
    keys: tuple[str, ...] = ()
    mark: str = ""
    single_pass: bool = False

    @property
    def text(self) -> str:
        """The terms in one line."""
        return " ∧ ".join(self.terms)

    @property
    def math(self) -> str:
        """What LaTeX shows: a formula, or words."""
        known = self.latex and set(_COMMAND.findall(self.latex)) <= _COMMANDS
        return f"${self.latex}$" if known else latex_of(self.text)

    def number(self, setting: Setting, k: int) -> str:
        """The smallest value of the bounds behind the cell: '~' without constants, 'n/a' outside a range."""
        if not self.keys:
            return ""
        known = self._value(setting, k)
        return "n/a" if known is None else f"{'= ' if known[1] else '~'}{known[0]:.3g}"

    def math_number(self, setting: Setting, k: int) -> str:
        """The same as LaTeX."""
        if not self.keys:
            return ""
        if (known := self._value(setting, k)) is None:
            return "n/a"
        sign = "=" if known[1] else r"\sim"
        return f"${sign}{latex_number(known[0])}$"

    def _value(self, setting: Setting, k: int) -> tuple[float, bool] | None:
        """The smallest value of the bounds behind the cell, and whether its constant is known; None outside a range."""
        if self.why_not(setting, k) is not None:
            return None
        step = self._step(setting, k)
        usable = [bound for key in self.keys if (bound := get_bound(key)).why_not(setting, step) is None]
        return min(bound.value(setting, step) for bound in usable), all(one.status != "rate only" for one in usable)

    def why_not(self, setting: Setting, k: int) -> str | None:
        """Why no bound behind the cell can be evaluated, or None."""
        reasons = [get_bound(key).why_not(setting, self._step(setting, k)) for key in self.keys]
        return reasons[0] if reasons and None not in reasons else None

    def _step(self, setting: Setting, k: int) -> int:
        tasks = as_kind(setting, Setting, "a Setting").T
        return tasks if self.single_pass and tasks is not None else k


@dataclass(frozen=True, repr=False)
class Table(Result):
    """A table of the paper; print it, or ask for Markdown, LaTeX or HTML.

    Attributes:
        name: regression, classification or sgd.
        caption: what it shows.
        columns: headings.
        rows: cells, one tuple per row.
        footnotes: marks and texts.
        setting, k: the numbers it is evaluated at, or None for symbols only.

    >>> import forgetting as fg
    >>> print(fg.bounds.table("classification").columns)
    ('Paper', 'Random with replacement', 'Random w/o replacement', 'Cyclic')
    """

    kind = "table"

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footnotes: tuple[str, ...]
    setting: Setting | None = None
    k: int | None = None

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InvalidInputError(f"table {self.name!r:.40}: each row needs {len(self.columns)} cells")

    def numbers(self) -> tuple[tuple[str, ...], ...] | None:
        """The evaluated cells, or None if no numbers were given."""
        return self._numbers(Cell.number)

    def _numbers(self, number: Callable[[Cell, Setting, int], str]) -> tuple[tuple[str, ...], ...] | None:
        if self.setting is None or self.k is None:
            return None
        return tuple(tuple(number(cell, self.setting, self.k) for cell in row) for row in self.rows)

    @property
    def headline(self) -> str:
        at = "" if self.k is None else f", with numbers at k = {self.k}"
        return f"Table of bounds: {self.name}{at}"

    def _num_rows(self) -> int:
        return len(self.rows)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        cells = self._cells(lambda cell, number: _joined(cell.text, cell.mark, number))
        return {name: [cells[row][place] for row in rows] for place, name in enumerate(self.columns)}

    def figure(self) -> Curves | None:
        """The bounds of the cells against k; None without numbers."""
        if self.setting is None or self.k is None:
            return None
        steps = spread_steps(max(10 * self.k, 1000), POINTS, first=2).tolist()
        curves = []
        for key in dict.fromkeys(key for row in self.rows for cell in row for key in cell.keys):
            bound = get_bound(key)
            points = [(float(k), bound.value(self.setting, k)) for k in steps if bound.why_not(self.setting, k) is None]
            if points:
                curves.append(through(key, points, bound_role(bound), bound.name))
        return Curves(f"table-{self.name}", self.headline, "", "k, tasks learned", "bound", tuple(curves))

    def to_text(self, width: int = 80) -> str:
        """For a terminal."""
        width = as_count(width, "width", least=1)

        def lines(cell: Cell, number: str) -> str:
            first, *others = cell.terms
            terms = "\n".join([first, *(f"∧ {term}" for term in others)])
            shown = (unbroken(terms) if cell.latex else terms) + (f" {cell.mark}" if cell.mark else "")
            return f"{shown}\n{unbroken(number)}" if number else shown

        heads = [textwrap.fill(name, 12) for name in self.columns]
        table = text_table(heads, self._cells(lines), width, ruled=True)
        notes = [line for note in self.footnotes for line in textwrap.wrap(note, width)]
        return "\n".join([*textwrap.wrap(self.caption, width), "", table, "", *notes])

    def to_markdown(self) -> str:
        """For a README: a pipe table, with formulas as code."""
        rows = self._cells(
            lambda cell, number: _joined(f"`{cell.text}`" if cell.latex else cell.text, number, cell.mark)
        )
        lines = [self.columns, ["---"] * len(self.columns), *rows]
        table = ["| " + " | ".join(map(_pipe, line)) + " |" for line in lines]
        return "\n".join([f"**{_pipe(self.caption)}**", "", *table, "", "\n\n".join(map(_pipe, self.footnotes)), ""])

    def to_latex(self) -> str:
        """A table with its footnotes, for amsmath and booktabs; numbers and formulas are mathematics."""
        rows = self._cells(
            lambda cell, number: _joined(cell.math, number, rf"\texttt{{{cell.mark}}}" if cell.mark else ""),
            Cell.math_number,
        )
        columns, notes = map(latex_of, self.columns), map(latex_of, self.footnotes)
        return latex_table(latex_of(self.caption), list(columns), rows, list(notes), label=self.name)

    def to_html(self) -> str:
        """A <table> with caption and footnotes, without scripts."""
        rows = self._cells(
            lambda cell, number: (
                (f"<code>{escape(cell.text)}</code>" if cell.latex else escape(cell.text))
                + (f" <sup>{escape(cell.mark)}</sup>" if cell.mark else "")
                + (f"<br>{escape(number)}" if number else "")
            )
        )
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        lines = ["<table>", f"<caption>{escape(self.caption)}</caption>", f"<thead><tr>{head}</tr></thead>", "<tbody>"]
        lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
        lines += ["</tbody>", "<tfoot>"]
        lines += [f'<tr><td colspan="{len(self.columns)}">{escape(note)}</td></tr>' for note in self.footnotes]
        return "\n".join([*lines, "</tfoot>", "</table>", ""])

    def _cells(
        self, show: Callable[[Cell, str], str], number: Callable[[Cell, Setting, int], str] = Cell.number
    ) -> list[list[str]]:
        """What each cell and its number look like."""
        numbers = self._numbers(number) or [[""] * len(row) for row in self.rows]
        return [[show(*pair) for pair in zip(*pairs, strict=True)] for pairs in zip(self.rows, numbers, strict=True)]

    def __str__(self) -> str:
        return self.to_text()


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def _pipe(words: str) -> str:
    return words.replace("|", r"\|").replace("*", r"\*")


add_codec(dataclass_codec(Cell, "cell"))
