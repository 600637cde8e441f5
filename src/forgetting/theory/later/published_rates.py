"""Published rates: of continual learning and of SGD on tasks with a common solution, and linear ones of projections.

Attia et al. 2025: the last iterate of SGD at any step below 2/beta, with noise, and of projections. Their abstract has
the rates, up to logarithms; the number at the greedy step is quoted in Tsipory et al. 2025.

Cai and Diakonikolas 2025: the last iterate of SGD with steps of order 1/(T beta) in reshuffled epochs, with or without
a common solution. Their abstract also has cyclic orders and proximal steps (ridge regularisation to the previous
solution) without a formula; the rate of the average iterate stands in its place.

Derezinski and Dong 2026: smooth quadratics under interpolation.

Evron et al. 2022: the first rates for continual regression, random and cyclic. Evron et al. 2023: continual
classification of jointly separable tasks, random and cyclic.

Jung et al. 2025: a fixed number of gradient steps on the logistic loss of each task, in cycles. This library has no
such scheme, so that these rates are listed and never apply.

Levinstein et al. 2025: continual regression with ridge regularisation to the previous solution, whose strength is tuned
to k, or grows along the run. Their abstract has the rates; `Ridge("fixed")` and `Ridge("increasing")` are strengths of
these kinds with constants of this library, for which docs/schedules.md proves bounds (`ridge_strengths.py`).

Gower and Richtarik, and Strohmer and Vershynin: linear rates of E|w_k - w*|^2, where w* is the solution nearest to w_0.
w_0 - w* is then in the joint row space of the tasks, of which E P = sum_m p_m P_m has the least eigenvalue lambda, and
E|w_(k+1) - w*|^2 = E <w_k - w*, (I - E P) (w_k - w*)> <= (1 - lambda) E|w_k - w*|^2. Where tasks with p_m > 0 span less
than all tasks do, lambda is 0, and nothing more is true: what they do not span is never learned.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.orderings import NormWeighted
from forgetting.tasks import RegressionTasks, families
from forgetting.theory.checking import all_of, covers, paths, projection, regression, setting_of, small, steps
from forgetting.theory.definition import equations
from forgetting.theory.draws import Rng, projected, realizable
from forgetting.theory.expectations import Expected, distinct, probabilities
from forgetting.theory.expression import (
    BETA,
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
from forgetting.theory.paper.extensions import of_projections
from forgetting.theory.paper.last_iterate import SGD_SCHEMES, STEP, X_IS
from forgetting.theory.paper.regression_rates import JOINT_RANK, WITH, WITHOUT
from forgetting.theory.setting import known
from forgetting.theory.statement import Condition, Range
from forgetting.theory.theorem import Theorem, compared
from forgetting.theory.verdict import CheckPaths, Sides

_rate = partial(Theorem, kind="rate", status="rate only")

# Attia et al. 2025 ----------------------------------------------------------------------------------------------------

for _orderings, _covered in ((WITH, Range(1)), (WITHOUT, Range(1, "T"))):
    _greedy_step = Theorem(
        f"attia2025:{_orderings[0].partition(' ')[0]}",
        "last iterate at the greedy step",
        source="Attia et al. 2025",
        orderings=_orderings,
        range=_covered,
        status="second-hand",
        note="O(1/sqrt(k)) is theirs; the constant in this convention is second-hand.",
    )
    _greedy_step("loss", 6.5 * S / root(K))
    _greedy_step("forgetting", 6.5 * S / root(K))

_ANY_STEP = D_SQUARED / (ETA * (2 - X) * K ** (1 - X / 2))
_SIGMA_STAR = parameter("sigma_star", "sigma_star", r"\sigma_\star")
_any_step = partial(
    _rate,
    source="Attia et al. 2025, abstract",
    orderings="i.i.d.",
    schemes=SGD_SCHEMES,
    conditions=(STEP,),
    convention="the source hides constants, logarithms and the distance, which is put back here as D^2",
)
_any_step("attia2025:any-step", "last iterate at any step below 2/beta")(
    "objective", _ANY_STEP.where(X_IS), assumptions="convex, beta-smooth, realizable"
)
_any_step("attia2025:noise", "last iterate at any step below 2/beta, with noise")(
    "objective",
    (_ANY_STEP + ETA * _SIGMA_STAR**2 * K ** (X / 2) / (2 - X) ** 2).where(X_IS),
    assumptions="convex, beta-smooth, variance sigma^2 at w*",
    needs=("sgd_dist_sq",),
    note="sigma_star is the standard deviation of the gradients at w*, the minimiser of f nearest to w_0; the rate is "
    "that of E f(w_k) - f(w*).",
    noisy=True,
)
of_projections("attia2025:projections", "last iterate of projections", orderings=WITH)(
    "residual",
    DISTANCE / root(K),
    kind="rate",
    status="rate only",
    source="Attia et al. 2025, abstract, at the greedy step on half the squared distance (reduc:pocs)",
    note="For independent draws: the abstract has no rate without replacement, and the full text was not read.",
)

# Cai and Diakonikolas 2025 --------------------------------------------------------------------------------------------

_small_steps = partial(
    _rate,
    source="Cai and Diakonikolas 2025, as quoted in Liu 2026",
    orderings="reshuffled",
    schemes=SGD_SCHEMES,
    range=Range(1, every="T"),
    conditions=(
        Condition(lambda s, k: known(s.eta) * known(s.beta) * known(s.T) <= 1, "is for steps of order 1/(T beta)"),
    ),
    convention="the source hides constants and logarithms; f is the mean of all f_m",
)
_small_steps("cai2025:reshuffled", "last iterate of reshuffled epochs with small steps")(
    "objective", D_SQUARED / (ETA * K), needs=("beta", "T"), assumptions="convex, beta-smooth, realizable"
)
_small_steps("cai2025:noise", "last iterate of reshuffled epochs with small steps, with noise")(
    "objective",
    D_SQUARED / (ETA * K) + ETA**2 * T * BETA * _SIGMA_STAR**2,
    assumptions="convex, beta-smooth, variance sigma^2 at w*",
    needs=("sgd_dist_sq",),
    note="sigma_star is the standard deviation of the gradients at w*, the minimiser of f nearest to w_0; the rate is "
    "that of E f(w_k) - f(w*).",
    noisy=True,
)

_rate(
    "cai2025:proximal", "last iterate of ridge in cycles, its strength tuned to k", source="Cai and Diakonikolas 2025"
)(
    "loss",
    T * S / K,
    orderings=("cyclic", "reshuffled"),
    schemes="ridge tuned to cycles",
    range=Range(2, every="T"),
    assumptions="convex, smooth, realizable tasks, each learned by ridge to the previous solution (a proximal step)",
    convention="the source hides constants and logarithms",
    note="The abstract says that the last iterate of incremental proximal steps is as good as the average one up to "
    "logarithms, and T S / k is the rate of that; the full text, which has the strength, was not read.",
)

# Derezinski and Dong 2026 ---------------------------------------------------------------------------------------------

_rate("derezinski2026:random", "smooth quadratics under interpolation, greedy step", orderings=WITH)(
    "loss", S / K ** (number(3) / 4), source="Derezinski and Dong 2026"
)
_rate("derezinski2026b:random", "last iterate of independent draws, announced", orderings=WITH)(
    "loss", S / K, source="Derezinski and Dong 2026b"
)

# Evron et al. 2022 and 2023 -------------------------------------------------------------------------------------------

HALVED = "the source has no factor 1/2; its number was halved"
WORST = "worst case over tasks, not a bound on given tasks"
ROOM = Condition(
    lambda s, k: s.d is None or (s.d >= 2 and (s.rank_max or 0) < s.d),
    "needs d >= 2 and no task of full rank d, so that two tasks can be lines in a plane",
)
_SOURCE = "Evron et al. 2022"
_random = Theorem(
    "evron2022:random",
    "random ordering, linear in the dimension",
    source=_SOURCE,
    orderings=WITH,
    convention=HALVED,
)
_cyclic = Theorem(
    "evron2022:cyclic",
    "cyclic ordering",
    source=_SOURCE,
    orderings="cyclic",
    range=Range(1, every="T"),
    convention=HALVED,
)


def _both_branches(dim: Expression) -> Expression:
    return T**2 * S / 2 * minimum(1 / root(K), gap(dim, RANK_MAX) / (2 * K))


_random("forgetting", 9 * gap(DIM, RANK) * S / (2 * K))
_random("forgetting", 9 * gap(JOINT, RANK) * S / (2 * K), "D", note=JOINT_RANK)
_cyclic("forgetting", T**2 * S / (2 * root(K)), "universal")
_cyclic("forgetting", _both_branches(DIM))
_cyclic("forgetting", _both_branches(JOINT), "D", note=JOINT_RANK)
Theorem("evron2022:alternating", "two tasks in turn: the exact worst case", orderings="cyclic")(
    "forgetting",
    S / (4 * K) * left_after(number(1) / K, K - 1),
    source=f"{_SOURCE}, Theorem 10",
    range=Range(2),
    needs=("T",),
    conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
    convention=HALVED,
    note="Reached by two lines with w* on the first and sin^2(theta) = 1/k, at even k.",
    tight=True,
)
_cyclic(
    "forgetting",
    T**2 * S / (48 * E * K),
    "lower",
    title="cyclic ordering, back and forth",
    source=f"{_SOURCE}, Theorem 11",
    kind="lower",
    range=Range("T^2", every="T"),
    conditions=(Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T"), ROOM),
    convention=f"{HALVED}; {WORST}",
    note="Reached with room to spare by families.back_and_forth(T, 1/sqrt(k-1)); the range k >= T^2 is a cautious one.",
    instance=lambda tasks, k: families.back_and_forth(tasks, 1 / math.sqrt(k - 1)),
)

_SEPARABLE = (
    Condition(lambda s, k: s.from_zero, "is for w_0 = 0"),
    Condition(lambda s, k: s.scale > 0, "needs |w_0 - w*| R > 0"),
)
_classification = partial(
    Theorem,
    source="Evron et al. 2023",
    problems="classification",
    assumptions="jointly separable tasks, in the limit of vanishing regularisation",
    status="second-hand",
)
_classification("evron2023:random", "random classification, problem-dependent", orderings=WITH)(
    "forgetting",
    S * exponential(-(K / (4 * T * S))),
    conditions=_SEPARABLE,
    convention="their losses carry no 1/2; their number is kept, which is weaker by 2 at most",
)
_CYCLE = minimum(2 * T**2 / root(K), 4 * exponential(-(K / (16 * T**2 * S))))
_cycles = _classification(
    "evron2023:cyclic",
    "cyclic classification",
    orderings="cyclic",
    range=Range(1, every="T"),
    conditions=(*_SEPARABLE, Condition(lambda s, k: s.T is not None and s.T >= 3, "needs T >= 3")),
)
_LARGEST = "they bound the largest squared distance over tasks"
_cycles("forgetting", S / 2 * _CYCLE, convention=f"{_LARGEST}; F <= R^2/2 times that")
_cycles("residual", DISTANCE / 2 * _CYCLE, convention=f"{_LARGEST}, which is at least the mean")

# Jung et al. 2025 -----------------------------------------------------------------------------------------------------

_logistic = partial(
    _rate,
    source="Jung et al. 2025, as summarised elsewhere",
    orderings="cyclic",
    schemes="gradient descent on the logistic loss",
    problems="classification",
    range=Range(1, every="T"),
    conditions=(Condition(lambda s, k: k >= 2 * known(s.T), "needs two cycles"),),
    assumptions="jointly separable tasks, a fixed number of gradient steps on each",
)
_logistic("jung2025:cyclic", "gradient descent on classification tasks in cycles")(
    "objective", T * logarithm(K / T) ** 2 / K, convention="f is the logistic loss of all tasks"
)
_logistic("jung2025:cyclic", "gradient descent on classification tasks in cycles")(
    "forgetting",
    T**2 * logarithm(K / T) ** 4 / K**2,
    convention="of logistic losses, from the end of each task to the end of the last cycle",
)

# Levinstein et al. 2025 -----------------------------------------------------------------------------------------------

_regularised = partial(
    _rate,
    source="Levinstein et al. 2025, abstract",
    orderings=WITH,
    assumptions="jointly realizable tasks, each learned by ridge to the previous solution at a prescribed strength",
    convention="the source hides constants; its own strengths may have others than those of this library",
)
_regularised("levinstein2025:fixed", "regularised continual regression, fixed strength")(
    "loss", S * logarithm(K) / K, schemes="ridge tuned to k", range=Range(2)
)
_regularised("levinstein2025:increasing", "regularised continual regression, increasing strength")(
    "loss", S / K, schemes="ridge with an increasing strength"
)

# Linear rates ---------------------------------------------------------------------------------------------------------

MOST_ROWS = 50
LARGEST = 2000  # dimension up to which singular values of all rows take a second


def error_at_most(left: Callable[[Instance], float]) -> CheckPaths:
    """Both sides of E|w_k - w*|^2 <= left |w_0 - w*|^2; `left` is computed from the data, apart from `Setting`."""

    def check(instance: Instance, numbers: Expected) -> Sides:
        value, size = numbers.error(instance.k), setting_of(instance).dist_sq
        return Sides(value, left(instance) * size, numbers.doubt + ROUNDING * size, how=numbers.how)

    return paths(check)


def least_eigenvalue(tasks: RegressionTasks, p: Array) -> float:
    """The least eigenvalue of sum_m p_m P_m on the row space of all rows, by projections X^+ X; 1 without rows.

    >>> import forgetting as fg
    >>> round(least_eigenvalue(fg.families.two_lines(np.pi / 3), np.array([0.5, 0.5])), 12)
    0.25
    """
    chances = np.bincount(tasks.geometry.index, p, tasks.geometry.num_distinct)
    blocks = [equations(tasks, m)[0] for m in distinct(tasks)]
    _, sizes, rows = np.linalg.svd(np.concatenate(blocks), full_matrices=False)
    frame = rows[sizes > 1e-12 * sizes[0]].T
    reduced = [X @ frame for X in blocks]
    mean = sum(chance * np.linalg.pinv(X) @ X for chance, X in zip(chances, reduced, strict=True))
    return float(np.linalg.eigvalsh(mean)[0]) if frame.size else 1.0  # zeros: nothing to learn


def _mean_projection(instance: Instance) -> float:
    """(1 - lambda)^k."""
    return (1 - least_eigenvalue(instance.tasks, probabilities(instance))) ** instance.k


def _scaled_condition(instance: Instance) -> float:
    """(1 - 1/kappa_F^2)^k, by the singular values of all rows, clones counted."""
    tasks = instance.tasks
    counted = zip(distinct(tasks), tasks.geometry.counts, strict=True)
    rows = np.concatenate([np.sqrt(count) * equations(tasks, m)[0] for m, count in counted])
    sizes = np.linalg.svd(rows, compute_uv=False)
    rate = 1 - np.min(sizes[sizes > 1e-12 * sizes[0]]) ** 2 / np.sum(sizes**2) if sizes.any() else 0.0
    return float(rate) ** instance.k


def _single_rows(rng: Rng, index: int) -> Instance:
    """Tasks of one row each, one for every row."""
    case = projected("norm-weighted", first=1)(rng, index)
    tasks = case.tasks
    rows = [row[None] for m in distinct(tasks) for row in equations(tasks, m)[0]]
    return replace(case, problem=realizable(rows[:MOST_ROWS], tasks.w_star), ordering=NormWeighted())


def _rank_one(instance: Instance) -> str | None:
    return None if instance.tasks.rank_max == 1 else "is about tasks of rank 1"


GAP = parameter("spectral_gap", "lambda_min", r"\lambda_{\min}")
GAP_IS = "lambda_min = the least eigenvalue of sum_m p_m P_m on the joint row space"
PER_ROW = parameter("spectral_gap", "1/kappa_F^2", r"\kappa_F^{-2}")  # the gap of single rows drawn by squared norms
KAPPA_IS = "kappa_F = |X|_F |X^+|, all rows stacked"
_LINEAR_RATE = "linear rate of randomised projections"
OF_SQUARES = "squared distances, without the factor 1/2"
_linear = partial(
    Theorem,
    assumptions="jointly realizable tasks, each learned to convergence; w* is the solution nearest to w_0",
    convention=OF_SQUARES,
    tight=True,
)
_linear("gower2015:any weights", _LINEAR_RATE, source="Gower and Richtarik 2015", orderings="i.i.d.")(
    "error",
    (left_after(GAP, K) * DISTANCE).where(GAP_IS),
    note="Stated there for positive definite E P. Reached by orthogonal tasks of the same weight.",
    check=compared(
        lambda bound: error_at_most(_mean_projection),
        "E|w_k - w*|^2 <= {}, k >= 1, independent draws with any weights",
        projected("any", first=1),
        all_of(regression, small(LARGEST), projection, covers("i.i.d."), steps(1)),
    ),
)
_linear("strohmer2009:single rows", _LINEAR_RATE, source="Strohmer and Vershynin 2009, Theorem 2")(
    "error",
    (left_after(PER_ROW, K) * DISTANCE).where(KAPPA_IS),
    orderings="norm-weighted",
    conditions=(Condition(lambda s, k: known(s.rank_max) <= 1, "is for tasks of rank 1"),),
    needs=("rank_max",),
    note="Stated there for rows of full column rank; the joint row space is enough. The bound of Gower and Richtarik "
    "here.",
    check=compared(
        lambda bound: error_at_most(_scaled_condition),
        "E|w_k - w*|^2 <= {}, k >= 1, single rows drawn by their squared norms",
        _single_rows,
        all_of(regression, small(LARGEST), projection, _rank_one, covers("norm-weighted"), steps(1)),
    ),
)
