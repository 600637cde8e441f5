"""Evron et al. 2023: continual classification of jointly separable tasks, random and cyclic."""

from __future__ import annotations

from forgetting.theory.bound import Bound, Condition, Quantity, Range
from forgetting.theory.expression import DISTANCE, Expression, K, S, T, exponential, minimum, root
from forgetting.theory.statement import register_bound

_POSITIVE = Condition(lambda s, k: s.scale > 0, "needs |w_0 - w*| R > 0")
_ZERO = Condition(lambda s, k: s.from_zero, "is for w_0 = 0")
_THREE = Condition(lambda s, k: s.T is not None and s.T >= 3, "needs T >= 3")


def _bound(
    name: str, quantity: Quantity, title: str, ordering: str, right: Expression, convention: str, covered: Range,
    *conditions: Condition,
) -> Bound:  # fmt: skip
    return Bound(
        key=f"evron2023:{name}/{quantity}",
        title=title,
        source="Evron et al. 2023",
        quantity=quantity,
        orderings=(ordering,),
        problems=("classification",),
        assumptions="jointly separable tasks, in the limit of vanishing regularisation",
        status="second-hand",
        expression=right,
        range=covered,
        conditions=(_ZERO, _POSITIVE, *conditions),
        convention=convention,
    )


_CYCLE = minimum(2 * T**2 / root(K), 4 * exponential(-(K / (16 * T**2 * S))))
register_bound(
    _bound(
        "random",
        "forgetting",
        "random classification, problem-dependent",
        "with replacement",
        S * exponential(-(K / (4 * T * S))),
        "their losses carry no 1/2; their number is kept, which is weaker by 2 at most",
        Range(1),
    )
)
register_bound(
    _bound(
        "cyclic",
        "forgetting",
        "cyclic classification",
        "cyclic",
        S / 2 * _CYCLE,
        "they bound the largest squared distance over tasks; F <= R^2/2 times that",
        Range(1, every="T"),
        _THREE,
    )
)
register_bound(
    _bound(
        "cyclic",
        "residual",
        "cyclic classification",
        "cyclic",
        DISTANCE / 2 * _CYCLE,
        "they bound the largest squared distance over tasks, which is at least the mean",
        Range(1, every="T"),
        _THREE,
    )
)
