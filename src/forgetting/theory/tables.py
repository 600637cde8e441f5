"""The paper's Tables 1, 2 and 3 as data: symbols, footnotes, and the bounds behind each cell."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields
from html import escape
from typing import Any, Literal

from forgetting._arrays import as_count, as_kind
from forgetting.errors import InvalidInputError
from forgetting.theory.setting import Setting
from forgetting.theory.statement import get_bound
from forgetting.theory.writers import escape_latex, latex_table, text_table, unbroken

__all__ = ["Cell", "Table", "table"]


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
        return f"${self.latex}$" if self.latex else escape_latex(self.terms[0])

    def number(self, setting: Setting, k: int) -> str:
        """The smallest value of the bounds behind the cell: '~' without constants, 'n/a' outside a range."""
        if not self.keys:
            return ""
        if self.why_not(setting, k) is not None:
            return "n/a"
        step = self._step(setting, k)
        usable = [bound for key in self.keys if (bound := get_bound(key)).why_not(setting, step) is None]
        sign = "~" if any(bound.status == "rate only" for bound in usable) else "= "
        return f"{sign}{min(bound.value(setting, step) for bound in usable):.3g}"

    def why_not(self, setting: Setting, k: int) -> str | None:
        """Why no bound behind the cell can be evaluated, or None."""
        reasons = [get_bound(key).why_not(setting, self._step(setting, k)) for key in self.keys]
        return reasons[0] if reasons and None not in reasons else None

    def _step(self, setting: Setting, k: int) -> int:
        tasks = as_kind(setting, Setting, "a Setting").T
        return tasks if self.single_pass and tasks is not None else k


@dataclass(frozen=True)
class Table:
    """A table of the paper; print it, or ask for Markdown, LaTeX or HTML.

    Attributes:
        name: regression, classification or sgd.
        caption: what it shows.
        columns: headings.
        rows: cells, one tuple per row.
        footnotes: marks and texts.
        setting, k: the numbers it is evaluated at, or None for symbols only.

    >>> print(table("classification").columns)
    ('Paper', 'Random with replacement', 'Random w/o replacement', 'Cyclic')
    """

    name: str
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    footnotes: tuple[str, ...]
    setting: Setting | None = None
    k: int | None = None

    def numbers(self) -> tuple[tuple[str, ...], ...] | None:
        """The evaluated cells, or None if no numbers were given."""
        if self.setting is None or self.k is None:
            return None
        return tuple(tuple(cell.number(self.setting, self.k) for cell in row) for row in self.rows)

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
        """A tabular with its footnotes, for amsmath and booktabs."""
        rows = self._cells(
            lambda cell, number: _joined(
                cell.math if cell.latex else escape_latex(cell.text),
                escape_latex(number),
                rf"\texttt{{{cell.mark}}}" if cell.mark else "",
            )
        )
        words = [[escape_latex(text) for text in texts] for texts in (self.columns, self.footnotes)]
        return latex_table(escape_latex(self.caption), words[0], rows, words[1])

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

    def _cells(self, show: Callable[[Cell, str], str]) -> list[list[str]]:
        """What each cell and its number look like."""
        numbers = self.numbers() or [[""] * len(row) for row in self.rows]
        return [[show(*pair) for pair in zip(*pairs, strict=True)] for pairs in zip(self.rows, numbers, strict=True)]

    def __str__(self) -> str:
        return self.to_text()


def _joined(*words: str) -> str:
    return " ".join(word for word in words if word)


def _pipe(words: str) -> str:
    return words.replace("|", r"\|").replace("*", r"\*")


NONE = Cell(("-",))
_WITH_SYMBOL = r"\sqrt[4]{k}"
_REGRESSION = (
    (
        Cell(("Evron et al. 2022",)),
        Cell(("Upper",)),
        Cell(("(d-r)/k",), r"\frac{d-\bar r}{k}", ("evron2022:random/forgetting",)),
        NONE,
        Cell(
            ("T^2/sqrt(k)", "T^2 (d-r_max)/k"),
            r"\frac{T^2}{\sqrt k}\wedge\frac{T^2(d-r_{\max})}{k}",
            ("evron2022:cyclic/forgetting",),
        ),
    ),
    (
        Cell(("Swartworth et al. 2023",)),
        Cell(("Upper",)),
        NONE,
        NONE,
        Cell(("T^3/k",), r"\frac{T^3}{k}", ("swartworth2023:cyclic/forgetting",)),
    ),
    (
        Cell(("Evron et al. 2026",)),
        Cell(("Upper",)),
        Cell(
            ("1/k^(1/4)", "sqrt(d-r)/k", "sqrt(T r)/k"),
            rf"\frac{{1}}{{{_WITH_SYMBOL}}}\wedge\frac{{\sqrt{{d-\bar r}}}}{{k}}\wedge\frac{{\sqrt{{T\bar r}}}}{{k}}",
            ("thm:cl_by_sgd_main/forgetting", "thm:random_convergence_rate/forgetting"),
        ),
        Cell(
            ("1/T^(1/4)", "(d-r)/T"),
            r"\frac{1}{\sqrt[4]{T}}\wedge\frac{d-\bar r}{T}",
            ("thm:cl_by_sgd_wor/forgetting",),
            single_pass=True,
        ),
        NONE,
    ),
    (
        Cell(("Evron et al. 2022",)),
        Cell(("Lower",)),
        Cell(("1/k",), r"\frac1k", ("two-lines:random/forgetting/lower",), mark="(*)"),
        Cell(("1/T",), r"\frac1T", ("two-lines:single-pass/forgetting/lower",), mark="(*)", single_pass=True),
        Cell(("T^2/k",), r"\frac{T^2}{k}", ("evron2022:cyclic/forgetting/lower",)),
    ),
)
_CLASSIFICATION = (
    (
        Cell(("Evron et al. 2023",)),
        Cell(("exp(-k/(4 T S))",), r"\exp\left(-\frac{k}{4TS}\right)", ("evron2023:random/forgetting",)),
        NONE,
        Cell(
            ("T^2/sqrt(k)", "exp(-k/(16 T^2 S))"),
            r"\frac{T^2}{\sqrt k}\wedge\exp\left(-\frac{k}{16T^2S}\right)",
            ("evron2023:cyclic/forgetting",),
        ),
    ),
    (
        Cell(("Evron et al. 2026",)),
        Cell(("1/k^(1/4)",), r"\frac{1}{\sqrt[4]{k}}", ("cor:pocs_forgetting/forgetting/with",)),
        Cell(("1/T^(1/4)",), r"\frac{1}{\sqrt[4]{T}}", ("cor:pocs_forgetting/forgetting/without",), single_pass=True),
        NONE,
    ),
)
#: bounds proved here that stand beside the rows of a table
_BESIDE = {"regression": ("here:weights/loss", "here:weights/forgetting"), "sgd": ("here:sgd/objective",)}
YES, NO = Cell(("yes",)), Cell(("no",))


def _sgd_row(setting: str, paper: str, text: str, latex: str, key: str, last: Cell, greedy: Cell) -> tuple[Cell, ...]:
    mark = "(*)" if key == "sgd:shamir-zhang-2013/objective" else ""
    return Cell((setting,)), Cell((paper,), mark=mark), Cell((text,), latex, (key,)), last, greedy


_SGD = (
    _sgd_row("Stochastic", "Shamir and Zhang 2013", "1/(eta k) + eta G^2 log k",
             r"\frac1{\eta k}+\eta G^2\log k", "sgd:shamir-zhang-2013/objective", YES, NO),
    _sgd_row("Deterministic smooth (sigma = 0)", "Nesterov 1998", "1/((2-x) eta k)",
             r"\frac1{(2-\eta\beta)\eta k}", "sgd:nesterov-1998/objective", YES, YES),
    _sgd_row("Stochastic smooth", "Lan 2012", "1/(eta k) + eta sigma^2",
             r"\frac1{\eta k}+\eta\sigma^2", "sgd:lan-2012/averaged_objective", NO, NO),
    _sgd_row("Stochastic smooth", "Liu and Zhou 2024", "1/(eta k) + eta sigma^2 log k",
             r"\frac1{\eta k}+\eta\sigma^2\log k", "sgd:liu-2024/objective", YES, NO),
    _sgd_row("Stochastic smooth, realizable", "Srebro et al. 2010", "1/((1-x) eta k)",
             r"\frac1{(1-\eta\beta)\eta k}", "sgd:srebro-2010/averaged_objective", NO, NO),
    _sgd_row("Regression, realizable", "Bach and Moulines 2013", "1/(eta k)",
             r"\frac1{\eta k}", "sgd:bach-moulines-2013/averaged_objective", NO, YES),
    _sgd_row("Regression, realizable", "Varre et al. 2021", "1/((1-2x log k) eta k)",
             r"\frac1{(1-2\eta\beta\log k)\eta k}", "sgd:varre-2021/objective", YES, NO),
    _sgd_row("Regression, realizable", "Evron et al. 2026", "1/((2-x) eta k^(1-x(1-x/4)))",
             r"\frac1{(2-\eta\beta)\eta k^{1-\eta\beta(1-\eta\beta/4)}}", "thm:sgd_last_iterate_main/objective", YES,
             YES),
)  # fmt: skip
_ORDERINGS = ("Random with replacement", "Random w/o replacement", "Cyclic")
_WEDGE = "a ∧ b is the smaller of the two."
_NUMBERS = (
    "Numbers are in this library's convention, with the constants of the statements (~: the constant is not known) and "
    "the factor S = |w_0 - w*|^2 R^2; those of Tables 1 and 2 are of the forgetting, and those without replacement for "
    "one whole pass, k = T."
)
_TABLES: dict[str, Table] = {
    "regression": Table(
        "regression",
        "Forgetting and loss in continual linear regression and block Kaczmarz, for any T jointly realizable tasks; "
        "lower bounds are worst cases; random orderings in expectation; constants and the factor S left out. k "
        "iterations, dimension d, average rank r, largest rank r_max.",
        ("Paper", "Bound", *_ORDERINGS),
        _REGRESSION,
        (
            "(*) Not stated there: the two tasks of the proof of Theorem 10, cloned floor(T/2) times, behave like 1/k "
            "under random orderings, without replacement too with the constant 1/(2e) in the limit.",
            "Proved here (docs, New bounds), for independent draws with any weights p: loss "
            "max_m(|X_m|^2/(T p_m)) sqrt(D)/k and forgetting sqrt(D)/k, D the joint rank. With their constants, "
            "the first is below prop:mean_norm (norm-weighted draws) from k = (sqrt(D)/(4e))^(4/3) on, the second "
            "below the corrected prop:mean_norm from k = 1 + ((sqrt(D)/e + 1)/5)^(4/3) on.",
            _WEDGE,
        ),
    ),
    "classification": Table(
        "classification",
        "Forgetting in weakly regularised continual linear classification of separable tasks, in units of "
        "S = |w*|^2 R^2; constants left out.",
        ("Paper", *_ORDERINGS),
        _CLASSIFICATION,
        (_WEDGE,),
    ),
    "sgd": Table(
        "sgd",
        "Loss of SGD with a fixed step size eta after k steps: convex objectives, beta-smooth in every sample; sigma^2 "
        "bounds the variance of gradients (sigma_star^2 the one at the solution, 0 where realizable), G their norm. "
        "Constants and the distance to the solution left out.",
        ("Setting", "Reference", "Bound at step k", "Last iterate", "Converges at x = 1"),
        _SGD,
        (
            "(*) On bounded domains; Orabona 2020 and Liu and Zhou 2024 have similar bounds without that. With step "
            "sizes that are not fixed, Jain et al. 2019 lose the logarithm.",
            "x = eta beta.",
            "Proved here (docs, New bounds): sqrt(D)/((2-x) eta k) for the last iterate of realizable regression, D "
            "the joint rank, for every x < 2. With its constants and x <= 1, it is below the row of Evron et al. 2026 "
            "from k = (sqrt(D)/e^2)^(1/(x(1-x/4))) on.",
        ),
    ),
}


def table(
    name: Literal["regression", "classification", "sgd"],
    setting: Setting | None = None,
    k: int | None = None,
    **numbers: Any,
) -> Table:
    """The paper's Table 1 (regression), 2 (classification) or 3 (sgd), in symbols or evaluated at numbers.

    Args:
        name: which table.
        setting: the numbers, as a `Setting`; or give them as keywords.
        k: number of steps; with it the cells get numbers.
        **numbers: parameters of `Setting`: d, T, rank_avg, rank_max; eta, beta, sigma, G; dist_sq, radius.

    >>> print(table("classification"))  # doctest: +NORMALIZE_WHITESPACE
    Forgetting in weakly regularised continual linear classification of separable
    tasks, in units of S = |w*|^2 R^2; constants left out.
    <BLANKLINE>
                      | Random with     | Random w/o  |
    Paper             | replacement     | replacement | Cyclic
    ------------------+-----------------+-------------+---------------------
    Evron et al. 2023 | exp(-k/(4 T S)) | -           | T^2/sqrt(k)
                      |                 |             | ∧ exp(-k/(16 T^2 S))
    ------------------+-----------------+-------------+---------------------
    Evron et al. 2026 | 1/k^(1/4)       | 1/T^(1/4)   | -
    <BLANKLINE>
    a ∧ b is the smaller of the two.
    >>> table("regression", k=10**6, d=10, T=2, rank_avg=1, rank_max=1).numbers()[2][2]
    '= 2.12e-06'
    """
    if name not in _TABLES:
        raise InvalidInputError(f"there is no table {name!r}; choose {', '.join(_TABLES)}")
    base = _TABLES[name]
    if setting is not None and numbers:
        raise InvalidInputError("give the numbers as a Setting or as keywords, not both")
    if k is None:
        if setting is not None or numbers:
            raise InvalidInputError("numbers are given, but not k; give k too, or leave all of them out")
        return base
    at = Setting(**numbers) if setting is None else as_kind(setting, Setting, "a Setting")
    step = as_count(k, "k", least=1)
    beside = [get_bound(key) for key in _BESIDE.get(name, ())]
    bounds = [*(get_bound(key) for row in base.rows for cell in row for key in cell.keys), *beside]
    used = {"dist_sq", "rank_joint", *(one for bound in bounds for one in bound.needs)}
    known = {field.name: getattr(at, field.name) for field in fields(at) if field.name in used}
    given = ", ".join(f"{name} = {value:g}" for name, value in known.items() if value is not None)
    reasons = {
        f"n/a, {', '.join(one.text for one in row[:2] if not one.keys)}: {why}."
        for row in base.rows
        for cell in row
        if (why := cell.why_not(at, step)) is not None
    }
    proved = [f"{bound.key} = {bound.value(at, step):.3g}" for bound in beside if bound.why_not(at, step) is None]
    notes = [*base.footnotes, _NUMBERS, f"At k = {step}, {given}.", *sorted(reasons)]
    notes += [f"Proved here: {', '.join(proved)}."] if proved else []
    return Table(base.name, base.caption, base.columns, base.rows, tuple(notes), at, step)
