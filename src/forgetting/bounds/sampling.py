"""Norm-weighted sampling (`prop:mean_norm`), the lemmas that pass from loss to forgetting, and what holds trivially."""

from __future__ import annotations

import math
from functools import partial

from forgetting.bounds.formulas import last_iterate
from forgetting.bounds.paper import PAPER, PRODUCT, WITH
from forgetting.bounds.registry import Condition, Range, declare
from forgetting.bounds.setting import Setting, known

_SOURCE = f"{PAPER}, Claim prop:mean_norm"
_WEIGHTED = ("norm-weighted",)
STEP = Condition(lambda s, k: known(s.eta) * known(s.beta) < 2, "eta must be below 2/beta")


def _mean_norm(s: Setting) -> float:
    return known(s.radius_sq_mean) * s.dist_sq


declare(
    key="prop:mean_norm/loss",
    title="average-norm rate",
    source=_SOURCE,
    quantity="loss",
    orderings=_WEIGHTED,
    formula="2 |w_0 - w*|^2 Rbar / k^(1/4)",
    latex=r"\frac{2\Vert w_0-w_\star\Vert^2\bar R}{\sqrt[4]{k}}",
    range=Range(2),
    needs=("radius_sq_mean",),
    status="holds where proved",
    note=(
        "The sketch proves it for sampling by squared norm. Under uniform sampling, which is what the words 'random "
        "ordering with replacement' mean elsewhere, it is false: one task of norm 1 and 9999 of norm 0, k = 5000. "
        "The sketch's A/(2T) should read A/T."
    ),
)(lambda s, k: 2 * _mean_norm(s) * k**-0.25)
declare(
    key="prop:mean_norm/loss/proof",
    title="average-norm rate, from the proof",
    source=_SOURCE,
    quantity="loss",
    orderings=_WEIGHTED,
    formula="e |w_0 - w*|^2 Rbar / (2 k^(1/4))",
    latex=r"\frac{e\Vert w_0-w_\star\Vert^2\bar R}{2\sqrt[4]{k}}",
    needs=("radius_sq_mean",),
    origin="proof",
)(lambda s, k: math.e / 2 * _mean_norm(s) * k**-0.25)
declare(
    key="prop:mean_norm/loss/weights",
    title="universal rate for any weights",
    source=_SOURCE + ", extended",
    quantity="loss",
    orderings=("i.i.d.",),
    formula="|w_0 - w*|^2 max_m(|X_m|^2 / (T p_m)) A(k)",
    latex=r"\Vert w_0-w_\star\Vert^2\max_m\frac{\Vert X_m\Vert^2}{T p_m}A(k)",
    needs=("weight_ratio",),
    origin="tightened",
    note="L <= max_m(|X_m|^2/(T p_m)) sum_m p_m f_m, and SGD on the weighted objective. " + PRODUCT,
)(lambda s, k: s.dist_sq * known(s.weight_ratio) * last_iterate(1, k))
declare(
    key="prop:mean_norm/forgetting",
    title="average-norm rate",
    source=_SOURCE,
    quantity="forgetting",
    orderings=_WEIGHTED,
    formula="5 |w_0 - w*|^2 Rbar / (k-1)^(1/4)",
    latex=r"\frac{5\Vert w_0-w_\star\Vert^2\bar R}{\sqrt[4]{k-1}}",
    range=Range(2),
    needs=("radius_sq_mean",),
    status="refuted",
    note=(
        "Norm-weighted sampling visits the tasks of large norm most, so forgetting sees sum_m |X_m|^4 and not the mean "
        "norm; the step from loss to forgetting is proved for uniform sampling only. Two unit lines at angle 1 among "
        "T = 1000 tasks, the others of norm 1e-6: E F(3) = 0.0218 against 0.0084."
    ),
)(lambda s, k: 5 * _mean_norm(s) * (k - 1) ** -0.25)
declare(
    key="prop:mean_norm/forgetting/corrected",
    title="universal rate for any weights",
    source=_SOURCE + ", corrected",
    quantity="forgetting",
    orderings=("i.i.d.",),
    formula="5 S / (k-1)^(1/4)",
    latex=r"\frac{5S}{\sqrt[4]{k-1}}",
    range=Range(2),
    status="corrected",
    note="R^2 in place of Rbar; the first part of lem:in_to_all_sample needs only exchangeable tasks.",
)(lambda s, k: 5 * s.scale * (k - 1) ** -0.25)
declare(
    key="prop:mean_norm/forgetting/corrected/product",
    title="universal rate for any weights, product of the proof",
    source=_SOURCE + ", corrected",
    quantity="forgetting",
    orderings=("i.i.d.",),
    formula="2 S A(k-1) + S/k",
    latex=r"2S\,A(k-1)+\frac Sk",
    range=Range(2),
    status="corrected",
    origin="proof",
    note="R^2 in place of Rbar. " + PRODUCT,
)(lambda s, k: s.scale * (2 * last_iterate(1, k - 1) + 1 / k))

declare(
    key="lem:in_to_all_sample/forgetting",
    title="forgetting from the loss one step before",
    source=f"{PAPER}, Lemma lem:in_to_all_sample",
    quantity="forgetting",
    orderings=WITH,
    formula="2 E L(w_(k-1)) + S/k",
    latex=r"2\,\mathbb{E}\,\mathcal{L}(w_{k-1})+\frac Sk",
    needs=("previous_loss",),
)(lambda s, k: 2 * known(s.previous_loss) + s.scale / k)


def _regret(s: Setting, k: int) -> float:
    x = known(s.eta) * known(s.beta)
    return s.scale / (2 * x * (2 - x) * k)


declare(
    key="lem:regret_bound/regret",
    title="regret of every ordering",
    source=f"{PAPER}, Lemma lem:regret_bound",
    quantity="regret",
    orderings=("any",),
    schemes=("projection", "sgd"),
    formula="S / (2 x (2-x) k), x = eta beta (S/(2k) for projections)",
    latex=r"\frac{S}{2x(2-x)k},\ x=\eta\beta",
    needs=("eta", "beta"),
    conditions=(STEP,),
    assumptions="jointly realizable tasks, SGD on the modified objective (beta = 1) or on the loss (beta = R^2)",
    convention="mean over the k visits of the loss just before the task is learned; sums there run over T+1 = k visits",
    note="Holds for every sequence of tasks, not only on average.",
    tight=True,
)(_regret)

_TRIVIAL = {
    "source": "steps do not lengthen the error",
    "orderings": ("any",),
    "origin": "trivial",
    "assumptions": "jointly realizable tasks, eta beta <= 2",
    "range": Range(0),
}


def _trivial(quantity: str, s: Setting, k: int) -> float:
    return known(s.trivial(quantity))


_SCHEMES = ("projection", "sgd", "Ridge")
_NO_LONGER = Condition(
    lambda s, k: s.eta is None or s.beta is None or (s.eta >= 0 and s.beta >= 0 and s.eta * s.beta <= 2),
    "steps may lengthen the error: needs 0 <= eta beta <= 2",
)
for _quantity, _formula, _latex, _schemes in (
    (
        "loss",
        "Rbar |w_0 - w*|^2 / 2 (S/2 where Rbar is not known)",
        r"\frac{\bar R\Vert w_0-w_\star\Vert^2}{2}",
        _SCHEMES,
    ),
    ("forgetting", "S/2", r"\frac S2", _SCHEMES),
    ("regret", "S/2", r"\frac S2", _SCHEMES),
    ("residual", "|w_0 - w*|^2 / 2", r"\frac{\Vert w_0-w_\star\Vert^2}{2}", _SCHEMES),
    ("objective", "beta |w_0 - w*|^2 / 2", r"\frac{\beta\Vert w_0-w_\star\Vert^2}{2}", ("projection", "sgd")),
):
    declare(
        key=f"trivial/{_quantity}",
        title="trivial",
        quantity=_quantity,
        formula=_formula,
        latex=_latex,
        problems=("regression", "classification", "sets") if _quantity != "objective" else ("regression",),
        schemes=(*_schemes, "weakly regularised"),
        needs=("eta", "beta") if _quantity == "objective" else (),
        conditions=(_NO_LONGER,),
        **_TRIVIAL,
    )(partial(_trivial, _quantity))
