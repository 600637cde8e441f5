"""Bounds on SGD with a fixed step size that Table 3 of the paper quotes; D^2 = |w_0 - w*|^2 and x = eta beta."""

from __future__ import annotations

import math
from typing import Literal

from forgetting.theory.bound import Bound, Condition
from forgetting.theory.expression import D_SQUARED, ETA, GRADIENT, SIGMA, Expression, K, X, logarithm
from forgetting.theory.numbering import PAPER
from forgetting.theory.paper.last_iterate import STEP, X_IS
from forgetting.theory.setting import known
from forgetting.theory.statement import register_bound


def _quoted(
    key: str, title: str, authors: str, right: Expression, assumptions: str, *conditions: Condition,
    iterate: Literal["last", "average"] = "last", ordering: str = "i.i.d.",
) -> Bound:  # fmt: skip
    return Bound(
        key=f"sgd:{key}/objective",
        title=title,
        source=f"{authors}, as quoted in Table 3 of {PAPER}",
        quantity="objective",
        orderings=(ordering,),
        kind="rate",
        status="rate only",
        schemes=("projection", "sgd"),
        convention="the table suppresses numerical constants and the distance, which is put back here as D^2",
        expression=right,
        needs=("beta",) if conditions else (),
        assumptions=assumptions,
        conditions=conditions,
        iterate=iterate,
    )


_BELOW_ONE = Condition(lambda s, k: known(s.eta) * known(s.beta) < 1, "eta must be below 1/beta")
_UP_TO_ONE = Condition(lambda s, k: known(s.eta) * known(s.beta) <= 1, "eta must be at most 1/beta")
_BELOW_LOG = Condition(
    lambda s, k: 2 * known(s.eta) * known(s.beta) * math.log(k) < 1, "eta must be below 1/(2 beta log k)"
)
_FIRST = D_SQUARED / (ETA * K)

register_bound(
    _quoted(
        "shamir-zhang-2013",
        "stochastic convex, last iterate",
        "Shamir and Zhang 2013",
        _FIRST + ETA * GRADIENT**2 * logarithm(K),
        "convex, gradients bounded by G, bounded domain",
    )
)
register_bound(
    _quoted(
        "nesterov-1998",
        "smooth deterministic",
        "Nesterov 1998",
        (D_SQUARED / ((2 - X) * ETA * K)).where(X_IS),
        "convex, beta-smooth, full gradients",
        STEP,
        ordering="full gradient",
    )
)
register_bound(
    _quoted(
        "lan-2012",
        "smooth stochastic, average iterate",
        "Lan 2012",
        _FIRST + ETA * SIGMA**2,
        "convex, beta-smooth, variance at most sigma^2",
        iterate="average",
    )
)
register_bound(
    _quoted(
        "liu-2024",
        "smooth stochastic, last iterate",
        "Liu and Zhou 2024",
        _FIRST + ETA * SIGMA**2 * logarithm(K),
        "convex, beta-smooth, variance at most sigma^2",
    )
)
register_bound(
    _quoted(
        "srebro-2010",
        "smooth realizable, average iterate",
        "Srebro et al. 2010",
        (D_SQUARED / ((1 - X) * ETA * K)).where(X_IS),
        "convex, beta-smooth, realizable",
        _BELOW_ONE,
        iterate="average",
    )
)
register_bound(
    _quoted(
        "bach-moulines-2013",
        "realizable regression, average iterate",
        "Bach and Moulines 2013",
        _FIRST,
        "realizable least squares, beta-smooth",
        _UP_TO_ONE,
        iterate="average",
    )
)
register_bound(
    _quoted(
        "varre-2021",
        "realizable regression, last iterate",
        "Varre et al. 2021",
        (D_SQUARED / ((1 - 2 * X * logarithm(K)) * ETA * K)).where(X_IS),
        "realizable least squares, beta-smooth",
        _BELOW_LOG,
    )
)
