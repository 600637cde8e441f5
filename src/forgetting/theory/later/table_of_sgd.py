"""Bounds on SGD with a fixed step size that Table 3 of the paper quotes; D^2 = |w_0 - w*|^2 and x = eta beta.

Three rows bound the mean of the iterates. Table 3 does not say which iterates are averaged; here they are w_0, ...,
w_(k-1), as in Bach and Moulines 2013 (Theorem 1). For them `lem:regret_bound` and convexity give a bound with a
constant, which is at most half of the rows of Srebro et al. and of Bach and Moulines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.schemes import SGD
from forgetting.theory.bound import Condition, Quantity
from forgetting.theory.checking import all_of, at_most, covers, least_squares, steps
from forgetting.theory.claim import CheckPaths, Sides
from forgetting.theory.draws import descents, with_beta
from forgetting.theory.expectations import Numbers, as_least_squares, probabilities
from forgetting.theory.expression import D_SQUARED, ETA, GRADIENT, SIGMA, Expression, K, X, logarithm
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PAPER, cite
from forgetting.theory.paper.last_iterate import SMOOTH, STEP, X_IS, setting, unit
from forgetting.theory.precise import Precise
from forgetting.theory.setting import Setting, known
from forgetting.theory.statement import Bound, checked, register_bound


def _quoted(
    key: str, title: str, authors: str, right: Expression, assumptions: str, *conditions: Condition,
    quantity: Quantity = "objective", ordering: str = "i.i.d.", note: str = "",
) -> Bound:  # fmt: skip
    return Bound(
        key=f"sgd:{key}/{quantity}",
        title=title,
        source=f"{authors}, as quoted in Table 3 of {PAPER}",
        quantity=quantity,
        orderings=(ordering,),
        kind="rate",
        status="rate only",
        schemes=("projection", "sgd"),
        convention="the table suppresses numerical constants and the distance, which is put back here as D^2",
        expression=right,
        needs=("beta",) if conditions else (),
        assumptions=assumptions,
        conditions=conditions,
        note=note,
    )


_BELOW_ONE = Condition(lambda s, k: known(s.eta) * known(s.beta) < 1, "eta must be below 1/beta")
_UP_TO_ONE = Condition(lambda s, k: known(s.eta) * known(s.beta) <= 1 + 1e-12, "eta must be at most 1/beta")
_BELOW_LOG = Condition(
    lambda s, k: 2 * known(s.eta) * known(s.beta) * math.log(k) < 1, "eta must be below 1/(2 beta log k)"
)
_FIRST = D_SQUARED / (ETA * K)

# The mean of the iterates ---------------------------------------------------------------------------------------------


def _noise(case: Instance, at: Setting) -> Setting:
    """With sigma, the largest deviation of a gradient at points no farther from w* than w_0, where all iterates are."""
    p = probabilities(case)
    geometry = case.tasks.geometry
    mean, square = np.zeros((geometry.dim, geometry.dim)), np.zeros((geometry.dim, geometry.dim))
    for m, chance in enumerate(np.bincount(geometry.index, p, geometry.num_distinct)):
        rows = geometry.rows[geometry.block(m)] * geometry.sigma[geometry.block(m), None]
        mean += chance * (hessian := rows.T @ rows)
        square += chance * (hessian @ hessian)
    variance = float(np.max(np.linalg.eigvalsh(square - mean @ mean), initial=0.0))
    return replace(at, sigma=math.sqrt(variance * at.dist_sq))


def _mean_at_most(bound: Bound, more: Callable[[Instance, Setting], Setting] = lambda case, at: at) -> CheckPaths:
    """Both sides of the statement that E f of the mean of the iterates is at most the bound, as it is written."""

    def compared(case: Instance, losses: Array, doubt: float, how: str) -> Sides:
        return at_most(float(probabilities(case) @ losses), bound, more(case, setting(case)), case.k, doubt, how)

    def sides(instance: Instance) -> Sides:
        case = as_least_squares(instance)
        numbers = Numbers(case)
        losses = numbers.value("averaged_task_losses", case.k)
        return compared(case, losses, numbers.doubt + ROUNDING * unit(case), numbers.how)

    def precise(instance: Instance) -> Sides:
        case = as_least_squares(instance)
        numbers = Precise(case, averaged=True)
        return compared(case, numbers.averaged_task_losses(case.k), 0.0, numbers.how)

    return CheckPaths(sides, precise)


def _shorter(below: float) -> Callable[[Instance], Instance]:
    """Halve a step size with eta beta >= below; every draw has eta beta < 2."""

    def settle(instance: Instance) -> Instance:
        x, beta = with_beta(instance)
        return instance if x < below else replace(instance, scheme=SGD(x / (2 * beta), "loss"))

    return settle


MEAN = Bound(
    key="sgd:mean-of-iterates/averaged_objective",
    title="mean of the iterates of SGD",
    source=f"{cite('lem:regret_bound')} and convexity",
    quantity="averaged_objective",
    orderings=("i.i.d.",),
    schemes=("projection", "sgd"),
    expression=(D_SQUARED / (2 * ETA * (2 - X) * K)).where(X_IS),
    conditions=(STEP,),
    origin="tightened",
    assumptions=SMOOTH,
    convention="f is the mean of the f_m under the sampling probabilities, at the mean of w_0, ..., w_(k-1)",
    note="E f(w_t) = E f(w_t; i_t) for independent draws, and f of the mean is at most the mean of the f(w_t), which "
    "lem:regret_bound bounds. Reached at k = 1 by one direction with x = 1.",
    tight=True,
)
checked(
    MEAN,
    part=None,
    statement=f"E f(mean of w_0, ..., w_(k-1)) <= {MEAN.formula}, k >= 1, with replacement, any weights",
    paths=_mean_at_most(MEAN),
    draw=descents(),
    missing=all_of(least_squares(), covers("i.i.d."), steps(1)),
)


def _averaged(bound: Bound, most: float, *, closed: bool, paths: CheckPaths) -> None:
    """Register a row on the mean of the iterates, checked with the constant 1 that Table 3 leaves out."""
    step = f"x {'<=' if closed else '<'} {most:g}"
    checked(
        bound,
        part=None,
        statement=f"E f(mean of w_0, ..., w_(k-1)) <= {bound.formula}, with the constant 1, {step}, any weights",
        paths=paths,
        draw=descents(),
        missing=all_of(least_squares(0, most, closed=closed), covers("i.i.d."), steps(1)),
        settle=_shorter(most * (1 + 1e-9 if closed else 1)),
    )


_AS_PRINTED = "Checked with the constant 1, on realizable least squares."
LAN = _quoted(
    "lan-2012",
    "smooth stochastic, average iterate",
    "Lan 2012",
    _FIRST + ETA * SIGMA**2,
    "convex, beta-smooth, variance at most sigma^2",
    quantity="averaged_objective",
    note=_AS_PRINTED + " sigma^2 is the largest variance of a gradient at distance |w_0 - w*| from w*, or nearer.",
)
SREBRO = _quoted(
    "srebro-2010",
    "smooth realizable, average iterate",
    "Srebro et al. 2010",
    (D_SQUARED / ((1 - X) * ETA * K)).where(X_IS),
    "convex, beta-smooth, realizable",
    _BELOW_ONE,
    quantity="averaged_objective",
    note=_AS_PRINTED,
)
BACH = _quoted(
    "bach-moulines-2013",
    "realizable regression, average iterate",
    "Bach and Moulines 2013",
    _FIRST,
    "realizable least squares, beta-smooth",
    _UP_TO_ONE,
    quantity="averaged_objective",
    note=_AS_PRINTED,
)
_averaged(LAN, 1, closed=True, paths=_mean_at_most(LAN, _noise))
_averaged(SREBRO, 1, closed=False, paths=_mean_at_most(SREBRO))
_averaged(BACH, 1, closed=True, paths=_mean_at_most(BACH))

# The last iterate -----------------------------------------------------------------------------------------------------

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
        "liu-2024",
        "smooth stochastic, last iterate",
        "Liu and Zhou 2024",
        _FIRST + ETA * SIGMA**2 * logarithm(K),
        "convex, beta-smooth, variance at most sigma^2",
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
