"""Bounds on SGD with a fixed step size: the paper's last-iterate theorems and its Table 3.

The objective is f(w) = E_i 1/2 |A_i w - b_i|^2 with |A_i^T A_i| <= beta; D^2 = |w_0 - w*|^2 and x = eta beta. For a
regression problem f is the modified objective (beta = 1) or the loss (beta = R^2).
"""

from __future__ import annotations

import math

from forgetting.bounds.formulas import last_iterate
from forgetting.bounds.paper import PAPER, PRODUCT
from forgetting.bounds.registry import Condition, Range, declare
from forgetting.bounds.sampling import STEP
from forgetting.bounds.setting import Setting, known

_SMOOTH = "realizable least squares, beta-smooth in every task, fixed step size eta < 2/beta"
_WR = {
    "source": f"{PAPER}, Theorem thm:sgd_last_iterate_main",
    "quantity": "objective",
    "orderings": ("i.i.d.",),
    "schemes": ("projection", "sgd"),
    "assumptions": _SMOOTH,
    "needs": ("eta", "beta"),
    "convention": "f is the mean of the f_m under the sampling probabilities; T there is k here",
}


def _x(s: Setting) -> float:
    return known(s.eta) * known(s.beta)


def _unit(s: Setting) -> float:
    """beta D^2, the natural unit of the objective."""
    return known(s.beta) * s.dist_sq


def _at_greedy(s: Setting, k: int) -> bool:
    return math.isclose(_x(s), 1, rel_tol=1e-12)


def _at_log(s: Setting, k: int) -> bool:
    return k >= 2 and math.isclose(_x(s) * math.log(k), 1, rel_tol=1e-12)


GREEDY = Condition(_at_greedy, "is for eta = 1/beta")
LOG = Condition(_at_log, "is for eta = 1/(beta log k)")


def _stated(s: Setting, k: int) -> float:
    x = _x(s)
    return _unit(s) * math.e / (2 * x * (2 - x)) * math.exp(-((1 - x / 2) ** 2) * math.log(k))


declare(
    key="thm:sgd_last_iterate_main/objective",
    title="last iterate of SGD",
    formula="e D^2 / (2 eta (2-x) k^((1-x/2)^2)), x = eta beta",
    latex=r"\frac{eD^2}{2\eta(2-\eta\beta)k^{1-\eta\beta(1-\eta\beta/4)}}",
    conditions=(STEP,),
    **_WR,
)(_stated)
declare(
    key="thm:sgd_last_iterate_main/objective/greedy",
    title="last iterate of SGD at eta = 1/beta",
    formula="e beta D^2 / (2 k^(1/4))",
    latex=r"\frac{e\beta D^2}{2\sqrt[4]{k}}",
    conditions=(GREEDY,),
    **_WR,
)(lambda s, k: _unit(s) * math.e / 2 * k**-0.25)
declare(
    key="thm:sgd_last_iterate_main/objective/log",
    title="last iterate of SGD at eta = 1/(beta log k)",
    kind="rate",
    status="rate only",
    formula="beta D^2 log(k) / k",
    latex=r"\frac{\beta D^2\log k}{k}",
    range=Range(2),
    conditions=(LOG,),
    note="The theorem's own formula gives a factor exp(2 - 1/(4 log k)) / (4 - 2/log k), which tends to e^2/4.",
    **_WR,
)(lambda s, k: _unit(s) * math.log(k) / k)
declare(
    key="thm:sgd_last_iterate_main/objective/product",
    title="last iterate of SGD, product of the proof",
    formula="D^2 / (2 eta (2-x) (k+1)) prod_{j<=k} (1 + x(1-x/4)/j), x = eta beta",
    latex=r"\frac{D^2}{2\eta(2-\eta\beta)(k+1)}\prod_{j=1}^{k}\left(1+\frac{\eta\beta(1-\eta\beta/4)}{j}\right)",
    conditions=(STEP,),
    origin="proof",
    note=PRODUCT,
    **_WR,
)(lambda s, k: _unit(s) * last_iterate(_x(s), k))

# thm:wor_sgd_last_iterate_main ----------------------------------------------------------------------------------------

_WOR = {
    **_WR,
    "source": f"{PAPER}, Theorem thm:wor_sgd_last_iterate_main",
    "orderings": ("without replacement",),
    "convention": "mean of f over the k tasks that were learned and the next one; T there is k here, n there is T here",
    "range": Range(2, "T-1"),
}


def _wor_stated(s: Setting, k: int) -> float:
    return 2 * _stated(s, k) + 4 * _x(s) * _unit(s) / k


def _wor_corrected(s: Setting, k: int) -> float:
    x = _x(s)
    return (2 * k + 1) / (k + 1) * _stated(s, k) + 4 * x * _unit(s) / ((2 - x) * (k + 1))


def _wor_sharp(s: Setting, k: int) -> float:
    x = _x(s)
    seen = 2 * last_iterate(x, k - 1) + x / ((2 - x) * k)
    return _unit(s) * (k / (k + 1) * seen + last_iterate(x, k) / (k + 1))


declare(
    key="thm:wor_sgd_last_iterate_main/objective",
    title="last iterate of SGD without replacement",
    formula="e D^2 / (eta (2-x) k^((1-x/2)^2)) + 4 beta^2 eta D^2 / k, x = eta beta",
    latex=r"\frac{eD^2}{\eta(2-\eta\beta)k^{1-\eta\beta(1-\eta\beta/4)}}+\frac{4\beta^2\eta D^2}{k}",
    conditions=(STEP,),
    note=(
        "The proof ends with 4 beta^2 eta D^2 / ((2-x)(k+1)), and the statement drops 1/(2-x). It holds all the same "
        "for x > 1: up to k = 21 it exceeds the trivial beta D^2/2, and beyond that the slack of e against the product "
        "in lem:ratio_avg_last is larger than what was dropped."
    ),
    **_WOR,
)(_wor_stated)
declare(
    key="thm:wor_sgd_last_iterate_main/objective/greedy",
    title="last iterate of SGD without replacement at eta = 1/beta",
    formula="7 beta D^2 / k^(1/4)",
    latex=r"\frac{7\beta D^2}{\sqrt[4]{k}}",
    conditions=(GREEDY,),
    **_WOR,
)(lambda s, k: 7 * _unit(s) * k**-0.25)
declare(
    key="thm:wor_sgd_last_iterate_main/objective/log",
    title="last iterate of SGD without replacement at eta = 1/(beta log k)",
    formula="14 beta D^2 log(k) / k",
    latex=r"\frac{14\beta D^2\log k}{k}",
    conditions=(LOG,),
    note=(
        "At k = 2 it does not follow from the theorem's formula, which gives 6.09 beta D^2 against 4.85; it holds "
        "there because both exceed the trivial beta D^2/2."
    ),
    **_WOR,
)(lambda s, k: 14 * _unit(s) * math.log(k) / k)
declare(
    key="thm:wor_sgd_last_iterate_main/objective/corrected",
    title="last iterate of SGD without replacement, as proved",
    formula="(2k+1)/(k+1) e D^2 / (2 eta (2-x) k^((1-x/2)^2)) + 4 beta^2 eta D^2 / ((2-x)(k+1)), x = eta beta",
    latex=(
        r"\frac{2k+1}{k+1}\frac{eD^2}{2\eta(2-\eta\beta)k^{1-\eta\beta(1-\eta\beta/4)}}"
        r"+\frac{4\beta^2\eta D^2}{(2-\eta\beta)(k+1)}"
    ),
    status="corrected",
    origin="proof",
    conditions=(STEP,),
    note="With the factor 1/(2-x) that lem:wor_generalization loses between its proof and its statement.",
    **_WOR,
)(_wor_corrected)
declare(
    key="thm:wor_sgd_last_iterate_main/objective/product",
    title="last iterate of SGD without replacement, leaving one task out",
    formula="beta D^2 (k/(k+1) (2 A_x(k-1) + x/((2-x)k)) + A_x(k)/(k+1)), A_x as in the with-replacement product",
    latex=(
        r"\beta D^2\left(\frac{k}{k+1}\left(2A_x(k-1)+\frac{x}{(2-x)k}\right)+\frac{A_x(k)}{k+1}\right),"
        r"\ A_x(k)=\frac{\prod_{j\le k}(1+x(1-x/4)/j)}{2x(2-x)(k+1)},\ x=\eta\beta"
    ),
    origin="tightened",
    conditions=(STEP,),
    note=(
        "Compare w_k with the run that skips task i: steps do not expand distances, and that run has never seen i. The "
        "stability term shrinks from 4x to x. " + PRODUCT
    ),
    **_WOR,
)(_wor_sharp)

# Table 3 --------------------------------------------------------------------------------------------------------------

_TABLE = {
    "quantity": "objective",
    "kind": "rate",
    "status": "rate only",
    "schemes": ("projection", "sgd"),
    "convention": "the table suppresses numerical constants and the distance, which is put back here as D^2",
}
_IID, _FULL = ("i.i.d.",), ("full gradient",)
_ROWS = (
    ("shamir-zhang-2013", "stochastic convex, last iterate", "Shamir and Zhang 2013", _IID, "last", ("eta", "G"), (),
     "D^2/(eta k) + eta G^2 log(k)", r"\frac{D^2}{\eta k}+\eta G^2\log k",
     "convex, gradients bounded by G, bounded domain",
     lambda s, k: s.dist_sq / (s.eta * k) + s.eta * s.G**2 * math.log(k)),
    ("nesterov-1998", "smooth deterministic", "Nesterov 1998", _FULL, "last", ("eta", "beta"), (STEP,),
     "D^2 / ((2-x) eta k), x = eta beta", r"\frac{D^2}{(2-\eta\beta)\eta k}",
     "convex, beta-smooth, full gradients",
     lambda s, k: s.dist_sq / ((2 - _x(s)) * s.eta * k)),
    ("lan-2012", "smooth stochastic, average iterate", "Lan 2012", _IID, "average", ("eta", "sigma"), (),
     "D^2/(eta k) + eta sigma^2", r"\frac{D^2}{\eta k}+\eta\sigma^2",
     "convex, beta-smooth, variance at most sigma^2",
     lambda s, k: s.dist_sq / (s.eta * k) + s.eta * s.sigma**2),
    ("liu-2024", "smooth stochastic, last iterate", "Liu and Zhou 2024", _IID, "last", ("eta", "sigma"), (),
     "D^2/(eta k) + eta sigma^2 log(k)", r"\frac{D^2}{\eta k}+\eta\sigma^2\log k",
     "convex, beta-smooth, variance at most sigma^2",
     lambda s, k: s.dist_sq / (s.eta * k) + s.eta * s.sigma**2 * math.log(k)),
    ("srebro-2010", "smooth realizable, average iterate", "Srebro et al. 2010", _IID, "average", ("eta", "beta"),
     (Condition(lambda s, k: _x(s) < 1, "eta must be below 1/beta"),),
     "D^2 / ((1-x) eta k), x = eta beta", r"\frac{D^2}{(1-\eta\beta)\eta k}",
     "convex, beta-smooth, realizable",
     lambda s, k: s.dist_sq / ((1 - _x(s)) * s.eta * k)),
    ("bach-moulines-2013", "realizable regression, average iterate", "Bach and Moulines 2013", _IID, "average",
     ("eta", "beta"), (Condition(lambda s, k: _x(s) <= 1, "eta must be at most 1/beta"),),
     "D^2 / (eta k)", r"\frac{D^2}{\eta k}",
     "realizable least squares, beta-smooth",
     lambda s, k: s.dist_sq / (s.eta * k)),
    ("varre-2021", "realizable regression, last iterate", "Varre et al. 2021", _IID, "last", ("eta", "beta"),
     (Condition(lambda s, k: 2 * _x(s) * math.log(k) < 1, "eta must be below 1/(2 beta log k)"),),
     "D^2 / ((1 - 2x log k) eta k), x = eta beta", r"\frac{D^2}{(1-2\eta\beta\log k)\eta k}",
     "realizable least squares, beta-smooth",
     lambda s, k: s.dist_sq / ((1 - 2 * _x(s) * math.log(k)) * s.eta * k)),
)  # fmt: skip
for _key, _title, _by, _orderings, _iterate, _needs, _conditions, _formula, _latex, _assumptions, _compute in _ROWS:
    declare(
        key=f"sgd:{_key}/objective",
        title=_title,
        source=f"{_by}, as quoted in Table 3 of {PAPER}",
        orderings=_orderings,
        iterate=_iterate,
        needs=_needs,
        conditions=_conditions,
        formula=_formula,
        latex=_latex,
        assumptions=_assumptions,
        **_TABLE,
    )(_compute)
