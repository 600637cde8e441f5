"""Published rates: of continual learning and of SGD on tasks with a common solution, and linear ones of projections.

Attia et al. 2025: the last iterate of SGD at any step below 2/beta, with noise, and of projections. Their abstract has
the rates, up to logarithms; the number at the greedy step is quoted in Tsipory et al. 2025.

Derezinski and Dong 2026: smooth quadratics under interpolation, and 2026b, which announces the rate 1/k.

Evron et al. 2022: the first rates for continual regression, random and cyclic. Evron et al. 2023: continual
classification of jointly separable tasks, random and cyclic.

Levinstein et al. 2025: continual regression with ridge regularisation to the previous solution, whose strength is tuned
to k, or grows along the run. No scheme of this library states that it is tuned so, so that these rates are listed and
never apply.

Gower and Richtarik, and Strohmer and Vershynin: linear rates of E|w_k - w*|^2, where w* is the solution nearest to w_0.
w_0 - w* is then in the joint row space of the tasks, of which E P = sum_m p_m P_m has the least eigenvalue lambda, and
E|w_(k+1) - w*|^2 = E <w_k - w*, (I - E P) (w_k - w*)> <= (1 - lambda) E|w_k - w*|^2. Where tasks with p_m > 0 span less
than all tasks do, lambda is 0, and nothing more is true: what they do not span is never learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from forgetting.orderings import NormWeighted
from forgetting.tasks import families
from forgetting.theory.bound import Condition, Origin, Quantity, Range
from forgetting.theory.checking import ROUNDING, all_of, covers, projection, regression, setting_of, small, steps
from forgetting.theory.claim import CheckPaths, Sides
from forgetting.theory.definition import equations
from forgetting.theory.draws import Rng, projected, realizable
from forgetting.theory.expectations import Numbers, distinct, probabilities
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
from forgetting.theory.instance import Instance
from forgetting.theory.paper.last_iterate import STEP, X_IS
from forgetting.theory.precise import Precise
from forgetting.theory.setting import known
from forgetting.theory.statement import Bound, checked, register_bound

# Attia et al. 2025 ----------------------------------------------------------------------------------------------------


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


# Derezinski and Dong 2026, and 2026b ----------------------------------------------------------------------------------


def _last_iterate(year: str, title: str, right: Expression) -> Bound:
    return Bound(
        key=f"derezinski{year}:random/loss",
        title=title,
        source=f"Derezinski and Dong {year}",
        quantity="loss",
        orderings=("with replacement",),
        kind="rate",
        status="rate only",
        expression=right,
    )


register_bound(_last_iterate("2026", "smooth quadratics under interpolation, greedy step", S / K ** (number(3) / 4)))
register_bound(_last_iterate("2026b", "last iterate of independent draws, announced", S / K))


# Evron et al. 2022 and 2023 -------------------------------------------------------------------------------------------

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


# Levinstein et al. 2025 -----------------------------------------------------------------------------------------------


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


# Linear rates ---------------------------------------------------------------------------------------------------------

MOST_ROWS = 50
LARGEST = 2000  # dimension up to which singular values of all rows take a second


def _error_at_most(rate: Callable[[Instance], float]) -> CheckPaths:
    """Both sides of E|w_k - w*|^2 <= rate^k |w_0 - w*|^2; the rate is computed from the data, apart from `Setting`."""

    def right(instance: Instance) -> tuple[float, float]:
        size = setting_of(instance).dist_sq
        return rate(instance) ** instance.k * size, ROUNDING * size

    def sides(instance: Instance) -> Sides:
        numbers = Numbers(instance)
        value, (bound, rounding) = numbers.value("error", instance.k), right(instance)
        return Sides(value, bound, numbers.doubt + rounding, how=numbers.how)

    def precise(instance: Instance) -> Sides:
        numbers = Precise(instance)
        return Sides(numbers.error(instance.k), *right(instance), how=numbers.how)

    return CheckPaths(sides, precise)


def _linear_rate(
    name: str, part: str, source: str, ordering: str, right: Expression, note: str, *conditions: Condition
) -> Bound:  # fmt: skip
    return Bound(
        key=f"{name}:{part}/error",
        title="linear rate of randomised projections",
        source=source,
        quantity="error",
        orderings=(ordering,),
        expression=right,
        conditions=conditions,
        needs=("rank_max",) if conditions else (),
        assumptions="jointly realizable tasks, each learned to convergence; w* is the solution nearest to w_0",
        convention="squared distances, without the factor 1/2",
        note=note,
        tight=True,
    )


def _mean_projection(instance: Instance) -> float:
    """1 - lambda, by projections X^+ X on the row space of all rows."""
    tasks, p = instance.tasks, probabilities(instance)
    chances = np.bincount(tasks.geometry.index, p, tasks.geometry.num_distinct)
    blocks = [equations(tasks, m)[0] for m in distinct(tasks)]
    _, sizes, rows = np.linalg.svd(np.concatenate(blocks), full_matrices=False)
    frame = rows[sizes > 1e-12 * sizes[0]].T
    reduced = [X @ frame for X in blocks]
    mean = sum(chance * np.linalg.pinv(X) @ X for chance, X in zip(chances, reduced, strict=True))
    return float(1 - np.linalg.eigvalsh(mean)[0]) if frame.size else 0.0  # zeros: nothing to learn


def _scaled_condition(instance: Instance) -> float:
    """1 - 1/kappa_F^2, by the singular values of all rows, clones counted."""
    tasks = instance.tasks
    rows = np.concatenate(
        [
            np.sqrt(count) * equations(tasks, m)[0]
            for m, count in zip(distinct(tasks), tasks.geometry.counts, strict=True)
        ]
    )
    sizes = np.linalg.svd(rows, compute_uv=False)
    return float(1 - np.min(sizes[sizes > 1e-12 * sizes[0]]) ** 2 / np.sum(sizes**2)) if sizes.any() else 0.0


def _single_rows(rng: Rng, index: int) -> Instance:
    """Tasks of one row each, one for every row."""
    case = projected("norm-weighted", first=1)(rng, index)
    tasks = case.tasks
    rows = [row[None] for m in distinct(tasks) for row in equations(tasks, m)[0]]
    return replace(case, problem=realizable(rows[:MOST_ROWS], tasks.w_star), ordering=NormWeighted())


def _rank_one(instance: Instance) -> str | None:
    return None if instance.tasks.rank_max == 1 else "is about tasks of rank 1"


GAP = parameter("spectral_gap", "lambda_min", r"\lambda_{\min}")
_CONDITION = parameter("spectral_gap", "1/kappa_F^2", r"\kappa_F^{-2}")
GOWER = _linear_rate(
    "gower2015", "any weights", "Gower and Richtarik 2015", "i.i.d.",
    (left_after(GAP, K) * DISTANCE).where("lambda_min = the least eigenvalue of sum_m p_m P_m on the joint row space"),
    "Stated there for positive definite E P. Reached by orthogonal tasks of the same weight.",
)  # fmt: skip
checked(
    GOWER,
    part=None,
    statement=f"E|w_k - w*|^2 <= {GOWER.formula}, k >= 1, independent draws with any weights",
    paths=_error_at_most(_mean_projection),
    draw=projected("any", first=1),
    missing=all_of(regression, small(LARGEST), projection, covers("i.i.d."), steps(1)),
)
STROHMER = _linear_rate(
    "strohmer2009", "single rows", "Strohmer and Vershynin 2009, Theorem 2", "norm-weighted",
    (left_after(_CONDITION, K) * DISTANCE).where("kappa_F = |X|_F |X^+|, all rows stacked"),
    "Stated there for rows of full column rank; the joint row space is enough. The bound of Gower and Richtarik here.",
    Condition(lambda s, k: known(s.rank_max) <= 1, "is for tasks of rank 1"),
)  # fmt: skip
checked(
    STROHMER,
    part=None,
    statement=f"E|w_k - w*|^2 <= {STROHMER.formula}, k >= 1, single rows drawn by their squared norms",
    paths=_error_at_most(_scaled_condition),
    draw=_single_rows,
    missing=all_of(regression, small(LARGEST), projection, _rank_one, covers("norm-weighted"), steps(1)),
)
