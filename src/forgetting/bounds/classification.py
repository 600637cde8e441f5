"""Projections onto convex sets and weakly regularised classification: the paper's rates and the earlier ones.

C is the intersection of the sets, w* its point nearest to w_0, S = |w_0 - w*|^2 R^2; A(k) as in `paper`.
"""

from __future__ import annotations

import math

from forgetting.bounds.formulas import last_iterate
from forgetting.bounds.paper import PAPER, PRODUCT
from forgetting.bounds.registry import Condition, Range, declare
from forgetting.bounds.setting import Setting, known

_ALL = ("regression", "classification", "sets")
_POCS = {
    "source": f"{PAPER}, Theorem thm:pocs-rate",
    "quantity": "residual",
    "problems": _ALL,
    "assumptions": "closed convex sets with a common point, learned by projection",
    "convention": "mean over all tasks of half the squared distance to the task's solutions",
}
_WR = ("with replacement",)
_WOR = ("without replacement",)
_LAST = (
    "Without replacement the printed proof uses a next set that does not exist at k = T. Leaving one set out instead "
    "(projections do not expand distances) gives 2 A(k-1) + 1/k for the sets seen, which also covers k = T."
)


def _seen(k: int) -> float:
    """In-sample residual in units of |w_0 - w*|^2: exactly 0 after one step."""
    return 2 * last_iterate(1, k - 1) + 1 / k if k > 1 else 0.0


def _wor_residual(s: Setting, k: int) -> float:
    T = known(s.T)
    unseen = (T - k) / T * last_iterate(1, k) if k < T else 0.0
    return s.dist_sq * (k / T * _seen(k) + unseen)


for _name, _orderings, _range in (("with", _WR, Range(1)), ("without", _WOR, Range(1, "T"))):
    declare(
        key=f"thm:pocs-rate/residual/{_name}",
        title="universal rate of projections",
        orderings=_orderings,
        range=_range,
        formula="7 |w_0 - w*|^2 / k^(1/4)",
        latex=r"\frac{7\Vert w_0-w_\star\Vert^2}{\sqrt[4]{k}}",
        note=_LAST if _name == "without" else "",
        **_POCS,
    )(lambda s, k: 7 * s.dist_sq * k**-0.25)
declare(
    key="thm:pocs-rate/residual/with/proof",
    title="universal rate of projections, from the proof",
    orderings=_WR,
    formula="e |w_0 - w*|^2 / (2 k^(1/4))",
    latex=r"\frac{e\Vert w_0-w_\star\Vert^2}{2\sqrt[4]{k}}",
    origin="proof",
    **_POCS,
)(lambda s, k: math.e / 2 * s.dist_sq * k**-0.25)
declare(
    key="thm:pocs-rate/residual/with/product",
    title="universal rate of projections, product of the proof",
    orderings=_WR,
    formula="|w_0 - w*|^2 A(k)",
    latex=r"\Vert w_0-w_\star\Vert^2A(k)",
    origin="proof",
    note=PRODUCT,
    **_POCS,
)(lambda s, k: s.dist_sq * last_iterate(1, k))
declare(
    key="thm:pocs-rate/residual/without/corrected",
    title="universal rate of projections without replacement, leaving one set out",
    orderings=_WOR,
    range=Range(1, "T"),
    formula="|w_0 - w*|^2 (k/T (2 A(k-1) + 1/k) + (T-k)/T A(k))",
    latex=r"\Vert w_0-w_\star\Vert^2\left(\frac kT\left(2A(k-1)+\frac1k\right)+\frac{T-k}{T}A(k)\right)",
    status="corrected",
    origin="tightened",
    note=_LAST,
    **_POCS,
)(_wor_residual)

_COR = {
    "source": f"{PAPER}, Theorem cor:pocs_forgetting",
    "quantity": "forgetting",
    "problems": ("classification", "sets"),
    "schemes": ("projection", "weakly regularised"),
    "assumptions": "jointly separable tasks, in the limit of vanishing regularisation (R = 1 for sets)",
    "convention": "L_m = 1/2 max_i (1 - y_i x_i.w)_+^2 <= R^2/2 dist^2",
}
for _name, _orderings, _range in (("with", _WR, Range(1)), ("without", _WOR, Range(1, "T"))):
    declare(
        key=f"cor:pocs_forgetting/forgetting/{_name}",
        title="universal rate of continual classification",
        orderings=_orderings,
        range=_range,
        formula="7 S / k^(1/4)",
        latex=r"\frac{7S}{\sqrt[4]{k}}",
        note="The display before the theorem should bound F(k) by distances of w_k, not of w_(k-1). "
        + (_LAST if _name == "without" else ""),
        **_COR,
    )(lambda s, k: 7 * s.scale * k**-0.25)
    declare(
        key=f"cor:pocs_forgetting/forgetting/{_name}/proof",
        title="universal rate of continual classification, from the proof",
        orderings=_orderings,
        range=_range if _name == "with" else Range(1, "T-1"),
        formula="(e / k^(1/4) + 4/k) S",
        latex=r"\left(\frac{e}{\sqrt[4]{k}}+\frac4k\right)S",
        origin="proof",
        **_COR,
    )(lambda s, k: (math.e * k**-0.25 + 4 / k) * s.scale)
    declare(
        key=f"cor:pocs_forgetting/forgetting/{_name}/product",
        title="universal rate of continual classification, leaving one task out",
        orderings=_orderings,
        range=_range,
        formula="(2 A(k-1) + 1/k) S (0 at k = 1)",
        latex=r"\left(2A(k-1)+\frac1k\right)S",
        origin="tightened",
        note="The argument of lem:in_to_all_sample carried over: the run that skips task i has never seen it.",
        **_COR,
    )(lambda s, k: _seen(k) * s.scale)

# Evron et al. 2023 ----------------------------------------------------------------------------------------------------

_OLD = {
    "problems": ("classification",),
    "schemes": ("projection", "weakly regularised"),
    "assumptions": "jointly separable tasks, in the limit of vanishing regularisation",
    "status": "second-hand",
    "needs": ("T",),
}
_POSITIVE = Condition(lambda s, k: s.scale > 0, "needs |w_0 - w*| R > 0")
_ZERO = Condition(lambda s, k: s.from_zero, "is for w_0 = 0")


def _tasks(s: Setting) -> float:
    return known(s.T)


declare(
    key="evron2023:random/forgetting",
    title="random classification, problem-dependent",
    source="Evron et al. 2023",
    quantity="forgetting",
    orderings=_WR,
    formula="S exp(-k / (4 T S))",
    latex=r"S\exp\left(-\frac{k}{4TS}\right)",
    conditions=(_ZERO, _POSITIVE),
    convention="their losses carry no 1/2; their number is kept, which is weaker by 2 at most",
    **_OLD,
)(lambda s, k: s.scale * math.exp(-k / (4 * _tasks(s) * s.scale)))
_THREE = Condition(lambda s, k: s.T is not None and s.T >= 3, "needs T >= 3")
declare(
    key="evron2023:cyclic/forgetting",
    title="cyclic classification",
    source="Evron et al. 2023",
    quantity="forgetting",
    orderings=("cyclic",),
    formula="S/2 min(2 T^2/sqrt(k), 4 exp(-k / (16 T^2 S)))",
    latex=r"\frac S2\min\left(\frac{2T^2}{\sqrt k},4\exp\left(-\frac{k}{16T^2S}\right)\right)",
    range=Range(1, every="T"),
    conditions=(_ZERO, _POSITIVE, _THREE),
    convention="they bound the largest squared distance over tasks; F <= R^2/2 times that",
    **_OLD,
)(lambda s, k: s.scale / 2 * min(2 * _tasks(s) ** 2 / math.sqrt(k), 4 * math.exp(-k / (16 * _tasks(s) ** 2 * s.scale))))
declare(
    key="evron2023:cyclic/residual",
    title="cyclic classification",
    source="Evron et al. 2023",
    quantity="residual",
    orderings=("cyclic",),
    formula="|w_0 - w*|^2/2 min(2 T^2/sqrt(k), 4 exp(-k / (16 T^2 S)))",
    latex=r"\frac{\Vert w_0-w_\star\Vert^2}{2}\min\left(\frac{2T^2}{\sqrt k},4e^{-k/(16T^2S)}\right)",
    range=Range(1, every="T"),
    conditions=(_ZERO, _POSITIVE, _THREE),
    convention="they bound the largest squared distance over tasks, which is at least the mean",
    **_OLD,
)(
    lambda s, k: (
        s.dist_sq / 2 * min(2 * _tasks(s) ** 2 / math.sqrt(k), 4 * math.exp(-k / (16 * _tasks(s) ** 2 * s.scale)))
    )
)
