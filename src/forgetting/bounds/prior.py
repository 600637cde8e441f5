"""Results on regression before and after the paper, converted once to losses with the factor 1/2.

S = |w_0 - w*|^2 R^2 and r = rank_avg. Lower bounds are worst cases over tasks: some tasks with these parameters reach
them, which says nothing about given tasks.
"""

from __future__ import annotations

import math

from forgetting.bounds.formulas import two_lines_forgetting, two_lines_loss
from forgetting.bounds.registry import Condition, Range, declare
from forgetting.bounds.setting import Setting, known

_WR, _WOR, _CYCLIC = ("with replacement",), ("without replacement",), ("cyclic",)
_HALVED = "the source has no factor 1/2; its number was halved"
_WORST = "worst case over tasks, not a bound on given tasks"
_ROOM = Condition(
    lambda s, k: s.d is None or (s.d >= 2 and (s.rank_max or 0) < s.d),
    "needs d >= 2 and no task of full rank d, so that two tasks can be lines in a plane",
)


def _tasks(s: Setting) -> float:
    return known(s.T)


def _gap(s: Setting, rank: float | None) -> float:
    return max(known(s.d) - known(rank), 0.0)


declare(
    key="evron2022:random/forgetting",
    title="random ordering, linear in the dimension",
    source="Evron et al. 2022",
    quantity="forgetting",
    orderings=_WR,
    formula="9 (DIM - r) S / (2k)",
    latex=r"\frac{9(DIM-\bar r)S}{2k}",
    needs=("d", "rank_avg"),
    joint=True,
    convention=_HALVED,
)(lambda s, k: 4.5 * _gap(s, s.rank_avg) * s.scale / k)
declare(
    key="evron2022:cyclic/forgetting/universal",
    title="cyclic ordering, universal branch",
    source="Evron et al. 2022",
    quantity="forgetting",
    orderings=_CYCLIC,
    formula="T^2 S / (2 sqrt(k))",
    latex=r"\frac{T^2S}{2\sqrt k}",
    range=Range(1, every="T"),
    convention=_HALVED,
    origin="branch",
)(lambda s, k: _tasks(s) ** 2 * s.scale / (2 * math.sqrt(k)))
declare(
    key="evron2022:cyclic/forgetting",
    title="cyclic ordering",
    source="Evron et al. 2022",
    quantity="forgetting",
    orderings=_CYCLIC,
    formula="T^2 S/2 min(1/sqrt(k), (DIM - r_max)/(2k))",
    latex=r"\frac{T^2S}{2}\min\left(\frac{1}{\sqrt k},\frac{DIM-r_{\max}}{2k}\right)",
    range=Range(1, every="T"),
    needs=("d", "rank_max"),
    joint=True,
    convention=_HALVED,
)(lambda s, k: _tasks(s) ** 2 * s.scale / 2 * min(1 / math.sqrt(k), _gap(s, s.rank_max) / (2 * k)))
declare(
    key="evron2022:alternating/forgetting",
    title="two tasks in turn: the exact worst case",
    source="Evron et al. 2022, Theorem 10",
    quantity="forgetting",
    orderings=_CYCLIC,
    formula="S/(4k) (1 - 1/k)^(k-1)",
    latex=r"\frac{S}{4k}\left(1-\frac1k\right)^{k-1}",
    range=Range(2),
    needs=("T",),
    conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
    convention=_HALVED,
    note="Reached by two lines with w* on the first and sin^2(theta) = 1/k, at even k.",
    tight=True,
)(lambda s, k: s.scale / (4 * k) * (1 - 1 / k) ** (k - 1))
declare(
    key="evron2022:cyclic/forgetting/lower",
    title="cyclic ordering, back and forth",
    source="Evron et al. 2022, Theorem 11",
    quantity="forgetting",
    orderings=_CYCLIC,
    kind="lower",
    formula="T^2 S / (48 e k)",
    latex=r"\frac{T^2S}{48ek}",
    range=Range("T^2", every="T"),
    conditions=(Condition(lambda s, k: _tasks(s) % 2 == 0, "is for even T"), _ROOM),
    convention=f"{_HALVED}; {_WORST}",
    note="Reached with room to spare by families.back_and_forth(T, 1/sqrt(k-1)); the range k >= T^2 is a cautious one.",
)(lambda s, k: _tasks(s) ** 2 * s.scale / (48 * math.e * k))

# Two lines ------------------------------------------------------------------------------------------------------------

_LINES = "two lines (the pair of Evron et al. 2022, Theorem 10, cloned), with w* halfway between them"
_PAIRS = Condition(lambda s, k: _tasks(s) % 2 == 0, "is for even T, so that both lines are cloned equally often")
declare(
    key="two-lines:random/loss/lower",
    title="two lines, random ordering",
    source=_LINES,
    quantity="loss",
    orderings=_WR,
    kind="lower",
    formula="S max_c (1-c^2)(1+c)/8 ((1+c^2)/2)^(k-1), about S/(2 e k)",
    latex=r"S\max_c\frac{(1-c^2)(1+c)}{8}\left(\frac{1+c^2}{2}\right)^{k-1}\approx\frac{S}{2ek}",
    needs=("T",),
    conditions=(_PAIRS, _ROOM),
    convention=_WORST,
    note="Exceeds 0.989 of thm:random_convergence_rate at k = 100 and 0.994 at k = 200.",
    tight=True,
)(lambda s, k: s.scale * two_lines_loss(k))
declare(
    key="two-lines:random/loss",
    title="two tasks, random ordering: the exact worst case",
    source="principal angles of two subspaces",
    quantity="loss",
    orderings=_WR,
    formula="S max_c (1-c^2)(1+c)/8 ((1+c^2)/2)^(k-1)",
    latex=r"S\max_c\frac{(1-c^2)(1+c)}{8}\left(\frac{1+c^2}{2}\right)^{k-1}",
    needs=("T",),
    conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
    note="The problem splits into planes, in each of which the loss is an explicit function of one angle.",
    tight=True,
)(lambda s, k: s.scale * two_lines_loss(k))
declare(
    key="two-lines:random/forgetting/lower",
    title="two lines, random ordering",
    source=_LINES,
    quantity="forgetting",
    orderings=_WR,
    kind="lower",
    formula="E F(k) of two lines with sin^2(theta) = 2/(k+1), about S/(2 e k)",
    latex=r"\mathbb{E}F(k)\ \text{of two lines with}\ \sin^2\theta=\tfrac{2}{k+1},\ \approx\frac{S}{2ek}",
    needs=("T",),
    conditions=(_PAIRS, _ROOM),
    convention=_WORST,
)(lambda s, k: s.scale * two_lines_forgetting(k))
for _quantity in ("loss", "forgetting"):
    declare(
        key=f"two-lines:single-pass/{_quantity}/lower",
        title="two lines cloned, without replacement",
        source="footnote of Table 1 in Evron et al. 2026",
        quantity=_quantity,
        orderings=_WOR,
        kind="lower",
        status="rate only",
        formula="S/k (constant not known)",
        latex=r"\frac Sk",
        range=Range(2, "T"),
        conditions=(_ROOM,),
        convention=_WORST,
    )(lambda s, k: s.scale / k)

# Others ---------------------------------------------------------------------------------------------------------------

declare(
    key="swartworth2023:cyclic/forgetting",
    title="cyclic ordering, dimension-free",
    source="Swartworth et al. 2023",
    quantity="forgetting",
    orderings=_CYCLIC,
    kind="rate",
    status="rate only",
    formula="T^3 S / k",
    latex=r"\frac{T^3S}{k}",
    needs=("T",),
)(lambda s, k: _tasks(s) ** 3 * s.scale / k)
for _name, _orderings, _range in (("with", _WR, Range(1)), ("without", _WOR, Range(1, "T"))):
    for _quantity in ("loss", "forgetting"):
        declare(
            key=f"attia2025:{_name}/{_quantity}",
            title="last iterate at the greedy step",
            source="Attia et al. 2025",
            quantity=_quantity,
            orderings=_orderings,
            range=_range,
            status="second-hand",
            formula="6.5 S / sqrt(k)",
            latex=r"\frac{6.5S}{\sqrt k}",
            note="O(1/sqrt(k)) is theirs; the constant in this convention is second-hand.",
        )(lambda s, k: 6.5 * s.scale / math.sqrt(k))
declare(
    key="derezinski2026:random/loss",
    title="smooth quadratics under interpolation, greedy step",
    source="Derezinski and Dong 2026",
    quantity="loss",
    orderings=_WR,
    kind="rate",
    status="rate only",
    formula="S / k^(3/4)",
    latex=r"\frac{S}{k^{3/4}}",
)(lambda s, k: s.scale * k**-0.75)
_RIDGE = {
    "source": "Levinstein et al. 2025",
    "quantity": "loss",
    "orderings": _WR,
    "kind": "rate",
    "status": "rate only",
    "assumptions": "jointly realizable tasks, each learned by ridge to the previous solution at a prescribed strength",
}
declare(
    key="levinstein2025:fixed/loss",
    title="regularised continual regression, fixed strength",
    schemes=("ridge tuned to k",),
    formula="S log(k) / k",
    latex=r"\frac{S\log k}{k}",
    range=Range(2),
    **_RIDGE,
)(lambda s, k: s.scale * math.log(k) / k)
declare(
    key="levinstein2025:increasing/loss",
    title="regularised continual regression, increasing strength",
    schemes=("ridge with an increasing strength",),
    formula="S / k",
    latex=r"\frac Sk",
    **_RIDGE,
)(lambda s, k: s.scale / k)
declare(
    key="tsipory2025:single-pass/loss/lower",
    title="greedy single pass can fail",
    source="Tsipory et al. 2025",
    quantity="loss",
    orderings=("greedy single pass",),
    kind="lower",
    formula="(1/16 - 1/(8d)) S",
    latex=r"\left(\frac1{16}-\frac1{8d}\right)S",
    needs=("d", "T"),
    conditions=(
        Condition(lambda s, k: known(s.d) >= 30, "is for d >= 30"),
        Condition(lambda s, k: 2 <= known(s.T) == k, "is for a whole pass over two or more tasks, k = T"),
        _ROOM,
    ),
    convention=f"{_HALVED}; {_WORST}; the number of tasks is that of the source's construction",
    status="second-hand",
)(lambda s, k: (1 / 16 - 1 / (8 * known(s.d))) * s.scale)
declare(
    key="tsipory2025:repeated/loss",
    title="greedy with repetition",
    source="Tsipory et al. 2025",
    quantity="loss",
    orderings=("greedy",),
    kind="rate",
    status="rate only",
    formula="S / k^(1/3)",
    latex=r"\frac{S}{\sqrt[3]{k}}",
)(lambda s, k: s.scale * k ** (-1 / 3))
