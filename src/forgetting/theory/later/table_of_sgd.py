"""Bounds on SGD with a fixed step size that Table 3 of the paper quotes; D^2 = |w_0 - w*|^2 and x = eta beta.

Three rows bound the mean of the iterates. Table 3 does not say which iterates are averaged; here they are w_0, ...,
w_(k-1), as in Bach and Moulines 2013 (Theorem 1). For them `lem:regret_bound` and convexity give a bound with a
constant, which is at most half of the rows of Srebro et al. and of Bach and Moulines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from forgetting.core.numerical import ROUNDING
from forgetting.schemes import SGD
from forgetting.theory.bound import Bound
from forgetting.theory.checking import all_of, at_most, by_engines, covers, least_squares, steps
from forgetting.theory.draws import descents, with_beta
from forgetting.theory.expectations import Engine, Numbers, as_least_squares, probabilities
from forgetting.theory.expression import D_SQUARED, ETA, GRADIENT, SIGMA, K, X, logarithm
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PAPER, cite
from forgetting.theory.paper.last_iterate import SGD_SCHEMES, STEP, X_IS, of_sgd, setting, unit
from forgetting.theory.setting import Setting, known
from forgetting.theory.statement import Condition
from forgetting.theory.theorem import Checked, Theorem, compared
from forgetting.theory.verdict import CheckPaths, Sides, unchanged

_quoted = partial(
    Theorem,
    orderings="i.i.d.",
    kind="rate",
    status="rate only",
    schemes=SGD_SCHEMES,
    convention="the table suppresses numerical constants and the distance, which is put back here as D^2",
)


def _source(authors: str) -> str:
    return f"{authors}, as quoted in Table 3 of {PAPER}"


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


def _mean_at_most(bound: Bound, more: Callable[[Instance, Setting], Setting] | None) -> CheckPaths:
    """Both sides of the statement that E f of the mean of the iterates is at most the bound, as it is written."""

    def check(engine: Engine, instance: Instance) -> Sides:
        case = as_least_squares(instance)
        numbers = engine(case)
        value = float(probabilities(case) @ numbers.averaged_task_losses(case.k))
        at = setting(case) if more is None else more(case, setting(case))
        rounding = ROUNDING * unit(case) if engine is Numbers else 0.0
        return at_most(value, bound, at, case.k, numbers.doubt + rounding, numbers.how)

    return by_engines(check)


def _shorter(below: float) -> Callable[[Instance], Instance]:
    """Halve a step size with eta beta >= below; every draw has eta beta < 2."""

    def settle(instance: Instance) -> Instance:
        x, beta = with_beta(instance)
        return instance if x < below else replace(instance, scheme=SGD(x / (2 * beta), "loss"))

    return settle


def _checked(
    words: str, most: float = 2, *, closed: bool = False, noise: Callable[[Instance, Setting], Setting] | None = None
) -> Checked:
    """The check of a bound on the mean of the iterates, for eta beta below `most`, or up to it."""
    return compared(
        partial(_mean_at_most, more=noise),
        f"E f(mean of w_0, ..., w_(k-1)) <= {{}}, {words}, any weights",
        descents(),
        all_of(least_squares(0, most, closed=closed), covers("i.i.d."), steps(1)),
        settle=_shorter(most * (1 + 1e-9 if closed else 1)) if most < 2 else unchanged,
    )


of_sgd("sgd:mean-of-iterates", "mean of the iterates of SGD", orderings="i.i.d.")(
    "averaged_objective",
    (D_SQUARED / (2 * ETA * (2 - X) * K)).where(X_IS),
    source=f"{cite('lem:regret_bound')} and convexity",
    conditions=(STEP,),
    origin="tightened",
    convention="f is the mean of the f_m under the sampling probabilities, at the mean of w_0, ..., w_(k-1)",
    note="E f(w_t) = E f(w_t; i_t) for independent draws, and f of the mean is at most the mean of the f(w_t), which "
    "lem:regret_bound bounds. Reached at k = 1 by one direction with x = 1.",
    tight=True,
    check=_checked("k >= 1, with replacement"),
)
_AS_PRINTED = "Checked with the constant 1, on realizable least squares."
_quoted("sgd:lan-2012", "smooth stochastic, average iterate", source=_source("Lan 2012"))(
    "averaged_objective",
    _FIRST + ETA * SIGMA**2,
    assumptions="convex, beta-smooth, variance at most sigma^2",
    note=_AS_PRINTED + " sigma^2 is the largest variance of a gradient at distance |w_0 - w*| from w*, or nearer.",
    check=_checked("with the constant 1, x <= 1", 1, closed=True, noise=_noise),
)
_quoted("sgd:srebro-2010", "smooth realizable, average iterate", source=_source("Srebro et al. 2010"))(
    "averaged_objective",
    (D_SQUARED / ((1 - X) * ETA * K)).where(X_IS),
    assumptions="convex, beta-smooth, realizable",
    conditions=(_BELOW_ONE,),
    needs=("beta",),
    note=_AS_PRINTED,
    check=_checked("with the constant 1, x < 1", 1),
)
_quoted("sgd:bach-moulines-2013", "realizable regression, average iterate", source=_source("Bach and Moulines 2013"))(
    "averaged_objective",
    _FIRST,
    assumptions="realizable least squares, beta-smooth",
    conditions=(_UP_TO_ONE,),
    needs=("beta",),
    note=_AS_PRINTED,
    check=_checked("with the constant 1, x <= 1", 1, closed=True),
)

# The last iterate -----------------------------------------------------------------------------------------------------

_quoted("sgd:shamir-zhang-2013", "stochastic convex, last iterate", source=_source("Shamir and Zhang 2013"))(
    "objective",
    _FIRST + ETA * GRADIENT**2 * logarithm(K),
    assumptions="convex, gradients bounded by G, bounded domain",
)
_quoted("sgd:nesterov-1998", "smooth deterministic", source=_source("Nesterov 1998"))(
    "objective",
    (D_SQUARED / ((2 - X) * ETA * K)).where(X_IS),
    assumptions="convex, beta-smooth, full gradients",
    conditions=(STEP,),
    needs=("beta",),
    orderings="full gradient",
)
_quoted("sgd:liu-2024", "smooth stochastic, last iterate", source=_source("Liu and Zhou 2024"))(
    "objective",
    _FIRST + ETA * SIGMA**2 * logarithm(K),
    assumptions="convex, beta-smooth, variance at most sigma^2",
)
_quoted("sgd:varre-2021", "realizable regression, last iterate", source=_source("Varre et al. 2021"))(
    "objective",
    (D_SQUARED / ((1 - 2 * X * logarithm(K)) * ETA * K)).where(X_IS),
    assumptions="realizable least squares, beta-smooth",
    conditions=(_BELOW_LOG,),
    needs=("beta",),
)
