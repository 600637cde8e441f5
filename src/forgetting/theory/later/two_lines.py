"""Two lines, cloned: worst cases of random orderings, which match the rates up to constants."""

from __future__ import annotations

from forgetting.theory.bound import Bound, Condition, Quantity, Range
from forgetting.theory.closed_forms import two_lines_forgetting, two_lines_loss
from forgetting.theory.expression import Expression, K, S
from forgetting.theory.later.evron2022 import ROOM, WORST
from forgetting.theory.setting import known
from forgetting.theory.statement import register_bound

_LINES = "two lines (the pair of Evron et al. 2022, Theorem 10, cloned), with w* halfway between them"
_PAIRS = Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T, so that both lines are cloned equally often")
_WORST_LOSS = S * Expression(
    "max_c (1-c^2)(1+c)/8 ((1+c^2)/2)^(k-1)",
    r"\max_c\frac{(1-c^2)(1+c)}{8}\left(\frac{1+c^2}{2}\right)^{k-1}",
    lambda s, k: two_lines_loss(k),
)
_WORST_FORGETTING = Expression(
    "E F(k) of two lines with sin^2(theta) = 2/(k+1), about S / (2 e k)",
    r"\mathbb{E}F(k)\ \text{of two lines with}\ \sin^2\theta=\tfrac{2}{k+1},\ \approx\frac{S}{2ek}",
    lambda s, k: s.scale * two_lines_forgetting(k),
)

register_bound(
    Bound(
        key="two-lines:random/loss/lower",
        title="two lines, random ordering",
        source=_LINES,
        quantity="loss",
        orderings=("with replacement",),
        kind="lower",
        expression=_WORST_LOSS.where("about S / (2 e k)", r"\approx\frac{S}{2ek}"),
        needs=("T",),
        conditions=(_PAIRS, ROOM),
        convention=WORST,
        note="Exceeds 0.989 of thm:random_convergence_rate at k = 100 and 0.994 at k = 200.",
        tight=True,
    )
)
register_bound(
    Bound(
        key="two-lines:random/loss",
        title="two tasks, random ordering: the exact worst case",
        source="principal angles of two subspaces",
        quantity="loss",
        orderings=("with replacement",),
        expression=_WORST_LOSS,
        needs=("T",),
        conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
        note="The problem splits into planes, in each of which the loss is an explicit function of one angle.",
        tight=True,
    )
)
register_bound(
    Bound(
        key="two-lines:random/forgetting/lower",
        title="two lines, random ordering",
        source=_LINES,
        quantity="forgetting",
        orderings=("with replacement",),
        kind="lower",
        expression=_WORST_FORGETTING,
        needs=("T",),
        conditions=(_PAIRS, ROOM),
        convention=WORST,
    )
)


def _single_pass(quantity: Quantity) -> Bound:
    return Bound(
        key=f"two-lines:single-pass/{quantity}/lower",
        title="two lines cloned, without replacement",
        source="footnote of Table 1 in Evron et al. 2026",
        quantity=quantity,
        orderings=("without replacement",),
        kind="lower",
        status="rate only",
        expression=(S / K).where("constant not known"),
        range=Range(2, "T"),
        conditions=(ROOM,),
        convention=WORST,
    )


register_bound(_single_pass("loss"))
register_bound(_single_pass("forgetting"))
