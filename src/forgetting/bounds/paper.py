"""Regression bounds of the paper (Evron et al. 2026): its theorems, their branches, and what their proofs give.

Notation: S = |w_0 - w*|^2 R^2, r = rank_avg, D = joint rank, A(k) = `last_iterate(1, k)`, about 0.544 k^(-1/4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from forgetting.bounds.formulas import last_iterate, spectral
from forgetting.bounds.registry import Range, declare
from forgetting.bounds.setting import Setting, known

PAPER = "Evron et al. 2026"
RANKS = ("T", "d", "rank_avg")
WITH, WITHOUT = ("with replacement",), ("without replacement",)
PRODUCT = "Keeps the product of the proof of lem:ratio_avg_last, where the paper uses 1 + u <= e^u and 1/(k+1) <= 1/k."


def _min_rank(s: Setting) -> float:
    return min(_dimension(s), _rows(s))


def _codim(s: Setting) -> float:
    return max(known(s.d) - known(s.rank_avg), 0.0)


def _span(s: Setting) -> float:
    return max(known(s.span) - known(s.rank_avg), 0.0)


def _dimension(s: Setting) -> float:
    return math.sqrt(_codim(s))


def _rows(s: Setting) -> float:
    return math.sqrt(known(s.T) * known(s.rank_avg))


def _fourth(k: int) -> float:
    return float(k**-0.25)


# thm:random_convergence_rate ------------------------------------------------------------------------------------------

_RATE = {"source": f"{PAPER}, Theorem thm:random_convergence_rate", "orderings": WITH, "range": Range(3)}
_BRANCHES = (
    ("", _min_rank, "min(sqrt(DIM - r), sqrt(T r))", r"\min(\sqrt{DIM-\bar r},\sqrt{T\bar r})", RANKS, "statement"),
    ("/dimension", _dimension, "sqrt(DIM - r)", r"\sqrt{DIM-\bar r}", ("d", "rank_avg"), "branch"),
    ("/rows", _rows, "sqrt(T r)", r"\sqrt{T\bar r}", ("T", "rank_avg"), "branch"),
)
_SMALL_MIN = (
    "The printed last step needs min(...) >= 0.883. Below that the statement still holds: d - r < 0.78 means that all "
    "but a fraction q <= d - r of the tasks have full rank, one of which ends all forgetting, so E F(k) <= q^k S/2, "
    "and (k - 2) q^(k - 1/2) stays below 3."
)


def _rate_loss(factor: Callable[[Setting], float], s: Setting, k: int) -> float:
    return factor(s) * s.scale / (2 * math.e * (k - 1))


def _rate_forgetting(factor: Callable[[Setting], float], s: Setting, k: int) -> float:
    return 3 * factor(s) * s.scale / (2 * (k - 2))


for _part, _factor, _text, _latex, _needs, _origin in _BRANCHES:
    declare(
        key=f"thm:random_convergence_rate/loss{_part}",
        title="parameter-dependent rate" + (f", {_part[1:]} branch" if _part else ""),
        quantity="loss",
        formula=f"{_text} S / (2e(k-1))",
        latex=rf"\frac{{{_latex}\,S}}{{2e(k-1)}}",
        needs=_needs,
        origin=_origin,
        joint=_part == "",
        tight=_part != "/rows",
        note="Stated for k >= 3; the proof covers k >= 2.",
        **_RATE,
    )(partial(_rate_loss, _factor))
    declare(
        key=f"thm:random_convergence_rate/forgetting{_part}",
        title="parameter-dependent rate" + (f", {_part[1:]} branch" if _part else ""),
        quantity="forgetting",
        formula=f"3 {_text} S / (2(k-2))",
        latex=rf"\frac{{3{_latex}\,S}}{{2(k-2)}}",
        needs=_needs,
        origin=_origin,
        joint=_part == "",
        note=_SMALL_MIN,
        **_RATE,
    )(partial(_rate_forgetting, _factor))


def _rate_proof(s: Setting, k: int) -> float:
    once = math.sqrt(_span(s)) * spectral(k - 1)
    return s.scale / 2 * min(once, math.sqrt(known(s.span)) * spectral(k))


declare(
    key="thm:random_convergence_rate/loss/proof",
    title="parameter-dependent rate, from the proof",
    quantity="loss",
    formula="S/2 min(sqrt(D - r) g(k-1), sqrt(D) g(k)), g(n) = n^n/(n+1)^(n+1)",
    latex=r"\frac S2\min\left(\sqrt{D-\bar r}\,g(k-1),\sqrt{D}\,g(k)\right),\ g(n)=\frac{n^n}{(n+1)^{n+1}}",
    needs=("span", "rank_avg"),
    origin="proof",
    tight=True,
    note="Keeps the maximum of x^n (1-x) in place of 1/(en), and applies I - Q to X^+ X itself as well as to Q[X^+ X].",
    **{**_RATE, "range": Range(1)},
)(_rate_proof)
declare(
    key="thm:random_convergence_rate/forgetting/proof",
    title="parameter-dependent rate, from the proof",
    quantity="forgetting",
    formula="S min(sqrt(D - r) g(k-2), sqrt(D) g(k-1)) + S/k, g(n) = n^n/(n+1)^(n+1)",
    latex=r"S\min\left(\sqrt{D-\bar r}\,g(k-2),\sqrt{D}\,g(k-1)\right)+\frac Sk,\ g(n)=\frac{n^n}{(n+1)^{n+1}}",
    needs=("span", "rank_avg"),
    origin="proof",
    note="lem:in_to_all_sample and the sharper loss bound, before they are merged into one term.",
    **{**_RATE, "range": Range(2)},
)(lambda s, k: 2 * _rate_proof(s, k - 1) + s.scale / k)

# thm:cl_by_sgd_main ---------------------------------------------------------------------------------------------------

_MAIN = {"source": f"{PAPER}, Theorem thm:cl_by_sgd_main", "orderings": WITH}
_UNIVERSAL = (
    ("loss", "", 2, "2 S / k^(1/4)", r"\frac{2S}{\sqrt[4]{k}}", lambda s, k: 2 * s.scale * _fourth(k)),
    (
        "loss",
        "/proof",
        1,
        "e S / (2 k^(1/4))",
        r"\frac{eS}{2\sqrt[4]{k}}",
        lambda s, k: math.e / 2 * s.scale * _fourth(k),
    ),
    ("loss", "/product", 1, "S A(k)", r"S\,A(k)", lambda s, k: s.scale * last_iterate(1, k)),
    ("forgetting", "", 2, "5 S / (k-1)^(1/4)", r"\frac{5S}{\sqrt[4]{k-1}}", lambda s, k: 5 * s.scale * _fourth(k - 1)),
    (
        "forgetting",
        "/proof",
        2,
        "e S / (k-1)^(1/4) + S/k",
        r"\frac{eS}{\sqrt[4]{k-1}}+\frac Sk",
        lambda s, k: s.scale * (math.e * _fourth(k - 1) + 1 / k),
    ),
    (
        "forgetting",
        "/product",
        2,
        "2 S A(k-1) + S/k",
        r"2S\,A(k-1)+\frac Sk",
        lambda s, k: s.scale * (2 * last_iterate(1, k - 1) + 1 / k),
    ),
)
_ORIGIN = {"": "statement", "/proof": "proof", "/product": "proof"}
for _quantity, _part, _first, _formula, _latex, _compute in _UNIVERSAL:
    declare(
        key=f"thm:cl_by_sgd_main/{_quantity}{_part}",
        title="universal rate" + {"": "", "/proof": ", from the proof", "/product": ", product of the proof"}[_part],
        quantity=_quantity,
        formula=_formula,
        latex=_latex,
        range=Range(_first),
        origin=_ORIGIN[_part],
        note=PRODUCT if _part == "/product" else "",
        **_MAIN,
    )(_compute)

# thm:cl_by_sgd_wor ----------------------------------------------------------------------------------------------------

_WOR = {"source": f"{PAPER}, Theorem thm:cl_by_sgd_wor", "orderings": WITHOUT, "range": Range(2, "T")}


def _wor_universal(s: Setting, k: int) -> float:
    return 7 * s.scale * _fourth(k - 1)


def _wor_dimension(s: Setting, k: int) -> float:
    return (_codim(s) + 1) * s.scale / (k - 1)


def _wor_next(s: Setting, k: int) -> float:
    """What the proof has for |X_tau(k) w_(k-1) - y|^2 / S."""
    return min(2 * math.e * _fourth(k - 1), _codim(s) / (k - 1))


def _wor_next_sharp(s: Setting, k: int) -> float:
    """The same with the product, the joint rank, and the telescoping sum started one step earlier."""
    return min(2 * last_iterate(1, k - 1), _span(s) / (k - 1), known(s.span) / k)


def _wor_forgetting_sharp(s: Setting, k: int) -> float:
    return s.scale * (_wor_next_sharp(s, k) + 1 / k)


def _wor_loss_proof(s: Setting, k: int) -> float:
    T = known(s.T)
    return s.scale * ((T + k) / (2 * T) * _wor_next(s, k) + 1 / k)


def _wor_loss_sharp(s: Setting, k: int) -> float:
    T = known(s.T)
    unseen = (T - k) / (2 * T) * _wor_next_sharp(s, k + 1) if k < T else 0.0
    return k / T * _wor_forgetting_sharp(s, k) + s.scale * unseen


for _quantity in ("loss", "forgetting"):
    declare(
        key=f"thm:cl_by_sgd_wor/{_quantity}",
        title="rate without replacement",
        quantity=_quantity,
        formula="min(7/(k-1)^(1/4), (DIM - r + 1)/(k-1)) S",
        latex=r"\min\left(\frac{7}{\sqrt[4]{k-1}},\frac{DIM-\bar r+1}{k-1}\right)S",
        needs=("d", "rank_avg"),
        joint=True,
        **_WOR,
    )(lambda s, k: min(_wor_universal(s, k), _wor_dimension(s, k)))
    declare(
        key=f"thm:cl_by_sgd_wor/{_quantity}/universal",
        title="rate without replacement, universal branch",
        quantity=_quantity,
        formula="7 S / (k-1)^(1/4)",
        latex=r"\frac{7S}{\sqrt[4]{k-1}}",
        origin="branch",
        **_WOR,
    )(_wor_universal)
    declare(
        key=f"thm:cl_by_sgd_wor/{_quantity}/dimension",
        title="rate without replacement, dimension branch",
        quantity=_quantity,
        formula="(d - r + 1) S / (k-1)",
        latex=r"\frac{(d-\bar r+1)S}{k-1}",
        needs=("d", "rank_avg"),
        origin="branch",
        **_WOR,
    )(_wor_dimension)

declare(
    key="thm:cl_by_sgd_wor/loss/proof",
    title="rate without replacement, from the proof",
    quantity="loss",
    formula="(T+k)/(2T) min(2e/(k-1)^(1/4), (d - r)/(k-1)) S + S/k",
    latex=r"\frac{T+k}{2T}\min\left(\frac{2e}{\sqrt[4]{k-1}},\frac{d-\bar r}{k-1}\right)S+\frac Sk",
    needs=RANKS,
    origin="proof",
    note="One display of the proof drops the factor 2 R^2 of E f(w_k; next task); the next one has it.",
    **_WOR,
)(_wor_loss_proof)
declare(
    key="thm:cl_by_sgd_wor/forgetting/proof",
    title="rate without replacement, from the proof",
    quantity="forgetting",
    formula="min(2e/(k-1)^(1/4), (d - r)/(k-1)) S + S/k",
    latex=r"\min\left(\frac{2e}{\sqrt[4]{k-1}},\frac{d-\bar r}{k-1}\right)S+\frac Sk",
    needs=("d", "rank_avg"),
    origin="proof",
    note="The proof uses e where its own lem:wor_last_before_stab gives e/2.",
    **_WOR,
)(lambda s, k: s.scale * (_wor_next(s, k) + 1 / k))
_SHARP = "h(k) = min(2 A(k-1), (D - r)/(k-1), D/k)"
_SHARP_LATEX = r"\ h(k)=\min\left(2A(k-1),\frac{D-\bar r}{k-1},\frac Dk\right)"
declare(
    key="thm:cl_by_sgd_wor/loss/product",
    title="rate without replacement, product of the proof",
    quantity="loss",
    formula=f"S (k h(k) + 1)/T + S (T-k)/(2T) h(k+1), {_SHARP}",
    latex=r"\frac{S(k\,h(k)+1)}{T}+\frac{S(T-k)}{2T}h(k+1)," + _SHARP_LATEX,
    needs=("T", "span", "rank_avg"),
    origin="proof",
    note=PRODUCT + " The telescoping sum may start one step earlier, which gives D/k.",
    **_WOR,
)(_wor_loss_sharp)
declare(
    key="thm:cl_by_sgd_wor/forgetting/product",
    title="rate without replacement, product of the proof",
    quantity="forgetting",
    formula=f"S h(k) + S/k, {_SHARP}",
    latex=r"S\,h(k)+\frac Sk," + _SHARP_LATEX,
    needs=("span", "rank_avg"),
    origin="proof",
    note=PRODUCT + " The telescoping sum may start one step earlier, which gives D/k.",
    **_WOR,
)(_wor_forgetting_sharp)
