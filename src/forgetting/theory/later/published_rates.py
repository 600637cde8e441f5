"""Rates that were published for continual learning and for SGD on tasks with a common solution.

Attia et al. 2025: the last iterate of SGD at any step below 2/beta, with noise, and of projections. Their abstract has
the rates, up to logarithms; the number at the greedy step is quoted in Tsipory et al. 2025.

Derezinski and Dong 2026: smooth quadratics under interpolation.

Evron et al. 2022: the first rates for continual regression, random and cyclic. Evron et al. 2023: continual
classification of jointly separable tasks, random and cyclic.

Levinstein et al. 2025: continual regression with ridge regularisation to the previous solution, whose strength is tuned
to k, or grows along the run. No scheme of this library states that it is tuned so, so that these rates are listed and
never apply.
"""

from __future__ import annotations

import math

from forgetting.tasks import families
from forgetting.theory.bound import Condition, Origin, Quantity, Range
from forgetting.theory.expression import (
    D_SQUARED,
    DIM,
    DISTANCE,
    ETA,
    JOINT,
    RANK,
    RANK_MAX,
    E,
    Expression,
    K,
    S,
    T,
    X,
    exponential,
    gap,
    left_after,
    logarithm,
    minimum,
    number,
    parameter,
    root,
)
from forgetting.theory.paper.last_iterate import STEP, X_IS
from forgetting.theory.setting import known
from forgetting.theory.statement import Bound, register_bound


def _greedy_step(name: str, quantity: Quantity, covered: Range) -> Bound:
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


register_bound(_greedy_step("with", "loss", Range(1)))
register_bound(_greedy_step("with", "forgetting", Range(1)))
register_bound(_greedy_step("without", "loss", Range(1, "T")))
register_bound(_greedy_step("without", "forgetting", Range(1, "T")))


_AT_MINIMISER = (
    "sigma_star is the standard deviation of the gradients at w*, the minimiser of f nearest to w_0; the rate is that "
    "of E f(w_k) - f(w*)."
)


def _rate_at_any_step(name: str, title: str, right: Expression, assumptions: str) -> Bound:
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


_ANY_STEP = D_SQUARED / (ETA * (2 - X) * K ** (1 - X / 2))
_NOISY = ETA * _SIGMA_STAR**2 * K ** (X / 2) / (2 - X) ** 2
register_bound(_rate_at_any_step("any-step", "", _ANY_STEP, "convex, beta-smooth, realizable"))
register_bound(
    _rate_at_any_step("noise", ", with noise", _ANY_STEP + _NOISY, "convex, beta-smooth, variance sigma^2 at w*")
)
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


register_bound(
    Bound(
        key="derezinski2026:random/loss",
        title="smooth quadratics under interpolation, greedy step",
        source="Derezinski and Dong 2026",
        quantity="loss",
        orderings=("with replacement",),
        kind="rate",
        status="rate only",
        expression=S / K ** (number(3) / 4),
    )
)


CYCLIC = ("cyclic",)
HALVED = "the source has no factor 1/2; its number was halved"
WORST = "worst case over tasks, not a bound on given tasks"
ROOM = Condition(
    lambda s, k: s.d is None or (s.d >= 2 and (s.rank_max or 0) < s.d),
    "needs d >= 2 and no task of full rank d, so that two tasks can be lines in a plane",
)
SOURCE = "Evron et al. 2022"
JOINT_TITLE, JOINT_NOTE = ", joint rank for dimension", "D is the rank of all tasks together."


def _random(variant: str, dim: Expression, title: str = "", origin: Origin = "statement", note: str = "") -> Bound:
    return Bound(
        key=f"evron2022:random/forgetting{variant}",
        title=f"random ordering, linear in the dimension{title}",
        source=SOURCE,
        quantity="forgetting",
        orderings=("with replacement",),
        expression=9 * gap(dim, RANK) * S / (2 * K),
        convention=HALVED,
        origin=origin,
        note=note,
    )


def _cyclic(variant: str, right: Expression, title: str, origin: Origin = "statement", note: str = "") -> Bound:
    return Bound(
        key=f"evron2022:cyclic/forgetting{variant}",
        title=f"cyclic ordering{title}",
        source=SOURCE,
        quantity="forgetting",
        orderings=CYCLIC,
        range=Range(1, every="T"),
        expression=right,
        convention=HALVED,
        origin=origin,
        note=note,
    )


def _both_branches(dim: Expression) -> Expression:
    return T**2 * S / 2 * minimum(1 / root(K), gap(dim, RANK_MAX) / (2 * K))


register_bound(_random("", DIM))
register_bound(_random("/D", JOINT, JOINT_TITLE, "tightened", JOINT_NOTE))
register_bound(_cyclic("/universal", T**2 * S / (2 * root(K)), ", universal branch", "branch"))
register_bound(_cyclic("", _both_branches(DIM), ""))
register_bound(_cyclic("/D", _both_branches(JOINT), JOINT_TITLE, "tightened", JOINT_NOTE))
register_bound(
    Bound(
        key="evron2022:alternating/forgetting",
        title="two tasks in turn: the exact worst case",
        source=f"{SOURCE}, Theorem 10",
        quantity="forgetting",
        orderings=CYCLIC,
        expression=S / (4 * K) * left_after(number(1) / K, K - 1),
        range=Range(2),
        needs=("T",),
        conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
        convention=HALVED,
        note="Reached by two lines with w* on the first and sin^2(theta) = 1/k, at even k.",
        tight=True,
    )
)
register_bound(
    Bound(
        key="evron2022:cyclic/forgetting/lower",
        title="cyclic ordering, back and forth",
        source=f"{SOURCE}, Theorem 11",
        quantity="forgetting",
        orderings=CYCLIC,
        kind="lower",
        expression=T**2 * S / (48 * E * K),
        range=Range("T^2", every="T"),
        conditions=(Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T"), ROOM),
        convention=f"{HALVED}; {WORST}",
        note="Reached with room to spare by families.back_and_forth(T, 1/sqrt(k-1)); the range k >= T^2 is a cautious "
        "one.",
        instance=lambda tasks, k: families.back_and_forth(tasks, 1 / math.sqrt(k - 1)),
    )
)


_POSITIVE = Condition(lambda s, k: s.scale > 0, "needs |w_0 - w*| R > 0")
_ZERO = Condition(lambda s, k: s.from_zero, "is for w_0 = 0")
_THREE = Condition(lambda s, k: s.T is not None and s.T >= 3, "needs T >= 3")


def _classification(
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


_CLASSIFICATION_CYCLE = minimum(2 * T**2 / root(K), 4 * exponential(-(K / (16 * T**2 * S))))
register_bound(
    _classification(
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
    _classification(
        "cyclic",
        "forgetting",
        "cyclic classification",
        "cyclic",
        S / 2 * _CLASSIFICATION_CYCLE,
        "they bound the largest squared distance over tasks; F <= R^2/2 times that",
        Range(1, every="T"),
        _THREE,
    )
)
register_bound(
    _classification(
        "cyclic",
        "residual",
        "cyclic classification",
        "cyclic",
        DISTANCE / 2 * _CLASSIFICATION_CYCLE,
        "they bound the largest squared distance over tasks, which is at least the mean",
        Range(1, every="T"),
        _THREE,
    )
)


def _regularised(name: str, scheme: str, right: Expression, first: int) -> Bound:
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


register_bound(_regularised("fixed", "ridge tuned to k", S * logarithm(K) / K, 2))
register_bound(_regularised("increasing", "ridge with an increasing strength", S / K, 1))
