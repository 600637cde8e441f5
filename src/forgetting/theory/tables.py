"""Tables of formulas with the bounds behind them, as text, Markdown, LaTeX and HTML.

The paper's Tables 1, 2 and 3 are data: symbols, footnotes, and the bounds behind each cell.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from forgetting.core.arrays import IntArray, as_count, as_kind, as_word
from forgetting.core.text import escape
from forgetting.errors import InvalidInputError
from forgetting.figures.html_tables import html_rows
from forgetting.figures.items import Curves, spread_steps, through
from forgetting.figures.text_formats import columns_text, escape_latex, latex_number, latex_table, unbroken
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.results import Result
from forgetting.tasks import Problem
from forgetting.theory.curves import bound_group, bound_role
from forgetting.theory.numbering import folded
from forgetting.theory.registry import get_bound
from forgetting.theory.setting import Setting

__all__ = ["Cell", "Table", "latex_of", "prose", "table"]


POINTS = 60  # of a curve
_MARKED = re.compile(r"«([^«»¦]*)(?:¦([^«»]*))?»")
_GIVEN = re.compile(r"\b([A-Za-z_]+) = (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w*^])")  # such as rank_avg = 2
#: a comparison of a symbol with a power, or the name of a Greek letter
_RELATED = re.compile(r"\b([kTd] [<>]= [\w^]+|(?:eta|beta|sigma)(?: [<>]= [\w^]+)?)(?![\w*^/(])")
_GREEK = re.compile(r"\b(?:eta|beta|sigma)\b")
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
    r"""The plain words for a terminal; «plain¦latex» marks a formula, and `latex_of` gives the words for a paper.

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
    r"""Words as LaTeX; formulas of `prose`, values such as `rank_avg = 2` and `k >= T^2` are mathematics.

    >>> print(latex_of("At k = 1000, rank_avg = 2, at 50 %; k >= T^2, eta must be small"))
    At $k=1000$, $\bar r=2$, at 50 \%; $k\ge T^2$, $\eta$ must be small
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
    return "".join(part for pair in zip(map(_related, pieces[::3]), [*values, ""], strict=True) for part in pair)


def _related(words: str) -> str:
    """Words as LaTeX, with comparisons of symbols, and names of Greek letters, as mathematics."""
    pieces = _RELATED.split(words)  # words, formula, words, ...
    signs = {">= ": r"\ge ", "<= ": r"\le "}
    shown = [
        f"${_GREEK.sub(lambda name: chr(92) + name[0], re.sub(' ?([<>]= )', lambda sign: signs[sign[1]], piece))}$"
        for piece in pieces[1::2]
    ]
    return "".join(part for pair in zip(map(escape_latex, pieces[::2]), [*shown, ""], strict=True) for part in pair)


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
        """The cell in LaTeX: a formula, or words."""
        known = self.latex and set(_COMMAND.findall(self.latex)) <= _COMMANDS
        return f"${self.latex}$" if known else latex_of(self.text)

    def number(self, setting: Setting, k: int) -> str:
        """The smallest value of the bounds behind the cell: '~' without constants, 'n/a' outside a range."""
        if not self.keys:
            return ""
        known = self._value(setting, k)
        return "n/a" if known is None else f"{'= ' if known[1] else '~'}{known[0]:.3g}"

    def math_number(self, setting: Setting, k: int) -> str:
        """The number of the cell as LaTeX."""
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
        return min(bound.value(setting, step) for bound in usable), all(bound.status != "rate only" for bound in usable)

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
        between = " " if full else "\n"  # a number stands below its formula
        cells = self._cells(lambda cell, number: between.join(filter(None, (_joined(cell.text, cell.mark), number))))
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
                curve = through(key, points, bound_role(bound), bound.name)
                curves.append(replace(curve, group=bound_group(bound)))
        curves.sort(key=lambda curve: curve.y[-1] or 0.0)
        return Curves(f"table-{self.name}", self.headline, "", "k, tasks learned", "bound", tuple(curves))

    def to_text(self, width: int = 80) -> str:
        """The table as text for a terminal."""
        width = as_count(width, "width", least=1)

        def lines(cell: Cell, number: str) -> str:
            first, *others = cell.terms
            terms = "\n".join([first, *(f"∧ {term}" for term in others)])
            shown = f"{terms} {cell.mark}" if cell.mark else terms
            shown = unbroken(shown) if cell.latex else shown
            return f"{shown}\n{unbroken(number)}" if number else shown

        heads = [textwrap.fill(name, 12) for name in self.columns]
        table = columns_text(list(zip(heads, *self._cells(lines), strict=True)), width, ruled=True)
        notes = [line for note in self.footnotes for line in textwrap.wrap(note, width)]
        return "\n".join([*textwrap.wrap(self.caption, width), "", table, "", *notes])

    def to_markdown(self) -> str:
        """The table in Markdown: a pipe table, with formulas as code."""
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
        notes = [f'<tr><td colspan="{len(self.columns)}">{escape(note)}</td></tr>' for note in self.footnotes]
        lines = ["<table>", f"<caption>{escape(self.caption)}</caption>", html_rows(self.to_table())]
        return "\n".join([*lines, "<tfoot>", *notes, "</tfoot>", "</table>", ""])

    def _cells(
        self, show: Callable[[Cell, str], str], number: Callable[[Cell, Setting, int], str] = Cell.number
    ) -> list[list[str]]:
        """The text of each cell, made by `show` from the cell and its number."""
        numbers = self._numbers(number) or [[""] * len(row) for row in self.rows]
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
    (
        Cell(("here",)),
        Cell(("Upper",)),
        Cell(("1/k",), r"\frac1k", ("here:last-iterate/forgetting",)),
        Cell(("1/T",), r"\frac1T", ("here:single-pass/forgetting",), single_pass=True),
        NONE,
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
    (
        Cell(("here",)),
        Cell(("1/sqrt(k)",), r"\frac1{\sqrt k}", ("here:classification/forgetting/with",)),
        Cell(("1/sqrt(T)",), r"\frac1{\sqrt T}", ("here:classification/forgetting/without",), single_pass=True),
        NONE,
    ),
)
#: bounds proved here that stand beside the rows of a table
_BESIDE = {
    "regression": ("here:last-iterate/loss/moments", "here:last-iterate/forgetting/moments"),
    "sgd": ("here:sgd/objective",),
}
YES, NO = Cell(("yes",)), Cell(("no",))


def _sgd_row(setting: str, paper: str, text: str, latex: str, key: str, last: Cell, greedy: Cell) -> tuple[Cell, ...]:
    mark = "(*)" if key == "sgd:shamir-zhang-2013/objective" else ""
    return Cell((setting,)), Cell((paper,), mark=mark), Cell((text,), latex, (key,)), last, greedy


_SGD = (
    _sgd_row("Stochastic", "Shamir and Zhang 2013", "1/(eta k) + eta G^2 log k",
             r"\frac1{\eta k}+\eta G^2\log k", "sgd:shamir-zhang-2013/objective", YES, NO),
    _sgd_row(prose(r"Deterministic smooth («sigma = 0¦\sigma=0»)"), "Nesterov 1998", "1/((2-x) eta k)",
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
    _sgd_row("Regression, realizable", "here", "1/((2-x)^2 eta k)",
             r"\frac1{(2-\eta\beta)^2\eta k}", "here:sgd-last-iterate/objective", YES, YES),
)  # fmt: skip
_ORDERINGS = ("Random with replacement", "Random w/o replacement", "Cyclic")
_WEDGE = prose(r"«a ∧ b¦a\wedge b» is the smaller of the two.")
_NUMBERS = prose(
    r"Numbers are in this library's convention, with the constants of the statements («~¦\sim»: the constant is not "
    r"known) and the factor «S = |w_0 - w*|^2 R^2¦S=\Vert w_0-w_\star\Vert^2R^2»; those of Tables 1 and 2 are of the "
    "forgetting, and those without replacement for one whole pass, «k = T¦k=T»."
)
_TABLES: dict[str, Table] = {
    "regression": Table(
        "regression",
        prose(
            "Forgetting and loss in continual linear regression and block Kaczmarz, for any «T» jointly realizable "
            "tasks; lower bounds are worst cases; random orderings in expectation; constants and the factor «S» left "
            r"out. «k» iterations, dimension «d», average rank «r¦\bar r», largest rank «r_max¦r_{\max}»."
        ),
        ("Paper", "Bound", *_ORDERINGS),
        _REGRESSION,
        (
            prose(
                "(*) Not stated there: the two tasks of the proof of Theorem 10, cloned "
                r"«floor(T/2)¦\lfloor T/2\rfloor» times, behave like «1/k» under random orderings, without replacement "
                "too with the constant «1/(2e)» in the limit."
            ),
            prose(
                "here: proved in the docs (The last iterate at rate 1/k), in any dimension, with the loss at most "
                r"«0.375 S/k¦0.375\,S/k» after independent draws. Also proved here (New bounds), for independent draws "
                "with any weights «p»: loss "
                r"«max_m(|X_m|^2/(T p_m)) sqrt(D)/k¦\max_m\frac{\Vert X_m\Vert^2}{Tp_m}\sqrt D/k» and forgetting "
                r"«sqrt(D)/k¦\sqrt D/k», «D» the joint rank. With their constants, the first is below Claim G.1 "
                r"(prop:mean_norm, norm-weighted draws) from «k = (sqrt(D)/(4e))^(4/3)¦k=(\sqrt D/(4e))^{4/3}» on, the "
                "second below the corrected Claim G.1 from "
                r"«k = 1 + ((sqrt(D)/e + 1)/5)^(4/3)¦k=1+((\sqrt D/e+1)/5)^{4/3}» on."
            ),
            _WEDGE,
        ),
    ),
    "classification": Table(
        "classification",
        prose(
            "Forgetting in weakly regularised continual linear classification of separable tasks, in units of "
            r"«S = |w*|^2 R^2¦S=\Vert w_\star\Vert^2R^2»; constants left out."
        ),
        ("Paper", *_ORDERINGS),
        _CLASSIFICATION,
        (_WEDGE,),
    ),
    "sgd": Table(
        "sgd",
        prose(
            r"Loss of SGD with a fixed step size «eta¦\eta» after «k» steps: convex objectives, «beta¦\beta»-smooth in "
            r"every sample; «sigma^2¦\sigma^2» bounds the variance of gradients («sigma_star^2¦\sigma_\star^2» the one "
            "at the solution, 0 where realizable), «G» their norm. Constants and the distance to the solution left out."
        ),
        ("Setting", "Reference", prose("Bound at step «k»"), "Last iterate", prose("Converges at «x = 1¦x=1»")),
        _SGD,
        (
            "(*) On bounded domains; Orabona 2020 and Liu and Zhou 2024 have similar bounds without that. With step "
            "sizes that are not fixed, Jain et al. 2019 lose the logarithm.",
            prose(r"«x = eta beta¦x=\eta\beta»."),
            prose(
                r"Proved here (docs, New bounds): «sqrt(D)/((2-x) eta k)¦\sqrt D/((2-x)\eta k)» for the last iterate "
                "of realizable regression, «D» the joint rank, for every «x < 2¦x<2». With its constants and "
                r"«x <= 1¦x\le1», it is below the row of Evron et al. 2026 from "
                r"«k = (sqrt(D)/e^2)^(1/(x(1-x/4)))¦k=(\sqrt D/e^2)^{1/(x(1-x/4))}» on."
            ),
        ),
    ),
}


def table(
    name: str | int | Problem | Setting,
    setting: Setting | Problem | None = None,
    k: int | None = None,
    **numbers: Any,
) -> Table:
    """The paper's Table 1 (regression), 2 (classification) or 3 (sgd), in symbols or evaluated at numbers.

    Args:
        name: which table: "regression" or "Table 1" or 1, "classification" or "Table 2", "sgd" or "Table 3"; or tasks,
            for the table about them: then there is no `setting`.
        setting: tasks, or the numbers as a `Setting`; or give them as keywords.
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
    ------------------+-----------------+-------------+---------------------
    here              | 1/sqrt(k)       | 1/sqrt(T)   | -
    <BLANKLINE>
    a ∧ b is the smaller of the two.
    >>> table("regression", k=10**6, d=10, T=2, rank_avg=1, rank_max=1).numbers()[2][2]
    '= 2.12e-06'
    """
    if isinstance(name, Problem | Setting):
        if setting is not None:
            raise InvalidInputError(
                "give tasks once, alone or after the name of a table, and the number of steps as k="
            )
        setting = name
    about = _table_about(name) if isinstance(name, Problem | Setting) else table_named(name)
    base = _TABLES[as_word(about, _TABLES, "the name of a table")]
    if setting is not None and numbers:
        raise InvalidInputError("give the numbers as tasks, as a Setting or as keywords, not in two ways")
    if k is None:
        if setting is not None or numbers:
            whole = "tasks are" if isinstance(setting, Problem) else "a Setting is"
            given = "numbers are" if setting is None else whole
            raise InvalidInputError(
                f"{given} given, but not the number of steps: give k=..., or for the table in symbols the name "
                f"{base.name!r} alone"
            )
        return base
    at = Setting(**numbers) if setting is None else Setting.of(setting)
    step = as_count(k, "k", least=1)
    beside = [get_bound(key) for key in _BESIDE.get(base.name, ())]
    bounds = [*(get_bound(key) for row in base.rows for cell in row for key in cell.keys), *beside]
    used = {"dist_sq", "rank_joint", *(name for bound in bounds for name in bound.needs)}
    known = {field.name: getattr(at, field.name) for field in fields(at) if field.name in used}
    given = ", ".join(f"{name} = {value:g}" for name, value in known.items() if value is not None)
    reasons: dict[str, dict[str, None]] = {}  # each once, with its rows
    for row in base.rows:
        for cell in row:
            if (why := cell.why_not(at, step)) is not None:
                reasons.setdefault(why, {})[", ".join(cell.text for cell in row[:2] if not cell.keys)] = None
    proved = [
        f"{bound.quantity} at most {bound.value(at, step):.3g} [{bound.key}]"
        for bound in beside
        if bound.why_not(at, step) is None
    ]
    notes = [
        *base.footnotes,
        _NUMBERS,
        f"At k = {step}, {given}.",
        *sorted(f"n/a, {'; '.join(rows)}: {why}." for why, rows in reasons.items()),
    ]
    notes += [f"Proved here: {', '.join(proved)}."] if proved else []
    return Table(base.name, base.caption, base.columns, base.rows, tuple(notes), at, step)


def table_named(name: Any) -> Any:
    """The name of a table that is named by its number in the PDF, in any spelling.

    >>> table_named(1), table_named("Table2"), table_named("tab. 3"), table_named("9")
    ('regression', 'classification', 'sgd', '9')
    """
    numbered = {folded(f"{word}{number}"): key for number, key in enumerate(_TABLES, 1) for word in ("", "table ")}
    spelt = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    return numbered.get(folded(spelt), name) if isinstance(spelt, str) else name


def _table_about(given: Problem | Setting) -> str:
    """The name of the table about tasks of a kind."""
    kind = given.problem if isinstance(given, Setting) else given.kind
    if kind not in _TABLES:
        raise InvalidInputError(f"no table is about {kind} alone; name one of {', '.join(_TABLES)} before the tasks")
    return kind


add_codec(dataclass_codec(Cell, "cell"))
