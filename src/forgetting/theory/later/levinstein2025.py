"""Levinstein et al. 2025: continual regression with ridge regularisation to the previous solution.

The strength is tuned to k, or grows along the run. No scheme of this library states that it is tuned so, so that these
rates are listed and never apply.
"""

from __future__ import annotations

from forgetting.theory.bound import Bound, Range
from forgetting.theory.expression import Expression, K, S, logarithm
from forgetting.theory.statement import register_bound


def _bound(name: str, scheme: str, right: Expression, first: int) -> Bound:
    return Bound(
        key=f"levinstein2025:{name}/loss",
        title=f"regularised continual regression, {name} strength",
        source="Levinstein et al. 2025",
        quantity="loss",
        orderings=("with replacement",),
        kind="rate",
        status="rate only",
        schemes=(scheme,),
        assumptions="jointly realizable tasks, each learned by ridge to the previous solution at a prescribed strength",
        expression=right,
        range=Range(first),
    )


register_bound(_bound("fixed", "ridge tuned to k", S * logarithm(K) / K, 2))
register_bound(_bound("increasing", "ridge with an increasing strength", S / K, 1))
