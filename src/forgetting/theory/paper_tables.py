"""The paper's Tables 1, 2 and 3 as data: symbols, footnotes, and the bounds behind each cell."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

from forgetting.core.arrays import as_count, as_kind, as_word
from forgetting.errors import InvalidInputError
from forgetting.theory.setting import Setting
from forgetting.theory.statement import get_bound
from forgetting.theory.tables import Cell, Table, prose

__all__ = ["table"]

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
                "Proved here (docs, New bounds), for independent draws with any weights «p»: loss "
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
    base = _TABLES[as_word(name, _TABLES, "the name of a table")]
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
    proved = [
        f"{bound.quantity} at most {bound.value(at, step):.3g} [{bound.key}]"
        for bound in beside
        if bound.why_not(at, step) is None
    ]
    notes = [*base.footnotes, _NUMBERS, f"At k = {step}, {given}.", *sorted(reasons)]
    notes += [f"Proved here: {', '.join(proved)}."] if proved else []
    return Table(base.name, base.caption, base.columns, base.rows, tuple(notes), at, step)
