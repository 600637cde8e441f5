"""Attia et al. 2025: the last iterate of SGD at any step below 2/beta, with noise, and of projections.

Their abstract has the rates, up to logarithms; the number at the greedy step is quoted in Tsipory et al. 2025.
"""

from __future__ import annotations

from forgetting.theory.bound import Bound, Quantity, Range
from forgetting.theory.expression import D_SQUARED, DISTANCE, ETA, Expression, K, S, X, parameter, root
from forgetting.theory.paper.last_iterate import STEP, X_IS
from forgetting.theory.statement import register_bound


def _bound(name: str, quantity: Quantity, covered: Range) -> Bound:
    return Bound(
        key=f"attia2025:{name}/{quantity}",
        title="last iterate at the greedy step",
        source="Attia et al. 2025",
        quantity=quantity,
        orderings=(f"{name} replacement",),
        range=covered,
        status="second-hand",
        expression=6.5 * S / root(K),
        note="O(1/sqrt(k)) is theirs; the constant in this convention is second-hand.",
    )


register_bound(_bound("with", "loss", Range(1)))
register_bound(_bound("with", "forgetting", Range(1)))
register_bound(_bound("without", "loss", Range(1, "T")))
register_bound(_bound("without", "forgetting", Range(1, "T")))


_AT_MINIMISER = (
    "sigma_star is the standard deviation of the gradients at w*, the minimiser of f nearest to w_0; the rate is that "
    "of E f(w_k) - f(w*)."
)


def _any_step(name: str, title: str, right: Expression, assumptions: str) -> Bound:
    return Bound(
        key=f"attia2025:{name}/objective",
        title=f"last iterate at any step below 2/beta{title}",
        source="Attia et al. 2025, abstract",
        quantity="objective",
        orderings=("i.i.d.",),
        kind="rate",
        status="rate only",
        schemes=("projection", "sgd"),
        expression=right.where(X_IS),
        assumptions=assumptions,
        conditions=(STEP,),
        convention="the source hides constants, logarithms and the distance, which is put back here as D^2",
        needs=("sgd_dist_sq",) if name == "noise" else (),
        note=_AT_MINIMISER if name == "noise" else "",
        noisy=name == "noise",
    )


_SIGMA_STAR = parameter("sigma_star", "sigma_star", r"\sigma_\star")


_REALIZABLE = D_SQUARED / (ETA * (2 - X) * K ** (1 - X / 2))
_NOISE = ETA * _SIGMA_STAR**2 * K ** (X / 2) / (2 - X) ** 2
register_bound(_any_step("any-step", "", _REALIZABLE, "convex, beta-smooth, realizable"))
register_bound(_any_step("noise", ", with noise", _REALIZABLE + _NOISE, "convex, beta-smooth, variance sigma^2 at w*"))
register_bound(
    Bound(
        key="attia2025:projections/residual",
        title="last iterate of projections",
        source="Attia et al. 2025, abstract, at the greedy step on half the squared distance (reduc:pocs)",
        quantity="residual",
        orderings=("with replacement",),
        kind="rate",
        status="rate only",
        problems=("regression", "classification", "sets"),
        assumptions="closed convex sets with a common point, learned by projection",
        convention="mean over all tasks of half the squared distance to the task's solutions",
        expression=DISTANCE / root(K),
        note="For independent draws: the abstract has no rate without replacement, and the full text was not read.",
    )
)
