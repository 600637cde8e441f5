"""Projections on tasks without a common solution: the horizon, the least-squares floor, and the mean of the iterates.

c_m(x) = X_m^+(y_m - X_m x) is the step of task m at x, in the row space of the task. With z = w - x a step is
z <- (I - P_m) z + c_m(x), and both parts are orthogonal, whatever x is. Proofs are in docs/new-bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from forgetting.core.numerical import EPS, ROUNDING
from forgetting.theory.bound import Bound
from forgetting.theory.checking import (
    NoiseFromData,
    all_of,
    at_most,
    by_engines,
    covers,
    noise_from_data,
    projection,
    small,
    steps,
    tasks_with_data,
)
from forgetting.theory.claim import Claim
from forgetting.theory.expectations import Engine, squared_distance
from forgetting.theory.expression import DISTANCE, PRODUCT, Expression, K, left_after
from forgetting.theory.instance import Instance
from forgetting.theory.later.proved_here import HERE
from forgetting.theory.later.published_rates import GAP, GAP_IS, KAPPA_IS, LARGEST, OF_SQUARES, PER_ROW
from forgetting.theory.noisy_draws import any_order, noisy_projected, noisy_rows
from forgetting.theory.setting import known
from forgetting.theory.statement import Condition, Range
from forgetting.theory.theorem import Checked, Theorem, compared
from forgetting.theory.verdict import CheckPaths, Draw, Missing, Sides

# Symbols --------------------------------------------------------------------------------------------------------------


def _of_misfit(name: str, text: str, latex: str, of: Callable[[float], float] = float) -> Expression:
    """A number of the misfit; 0 for tasks with a common solution."""
    return Expression(text, latex, lambda s, k: 0.0 if s.misfit is None else of(known(getattr(s.misfit, name))))


def times(rate: float, k: int) -> float:
    """1 + l + ... + l^(k-1) = (1 - l^k) / (1 - l) for l = 1 - rate, without cancellation.

    >>> times(0.5, 3), times(0.0, 3), times(1.0, 3), round(times(1e-17, 3), 12)
    (1.75, 3.0, 1.0, 3.0)
    """
    if rate <= 0 or rate >= 1:
        return float(k) if rate <= 0 else float(min(k, 1))
    return -math.expm1(k * math.log1p(-rate)) / rate


_LEFT = left_after(GAP, K)
_TIMES = Expression(
    "(1 - (1-lambda_min)^k) / lambda_min",
    r"\frac{1-(1-\lambda_{\min})^{k}}{\lambda_{\min}}",
    lambda s, k: times(known(s.spectral_gap), k),
    ("spectral_gap",),
    PRODUCT,
)
# the least loss is known up to rounding: a bound from above takes the larger end, one from below the smaller one
_FLOOR = _of_misfit("floor", "L_min", r"L_{\min}", lambda floor: floor * (1 + 64 * EPS))
_LEAST = _of_misfit("floor", "L_min", r"L_{\min}", lambda floor: floor * (1 - 64 * EPS))
_SMOOTH = _of_misfit("smoothness", "H", "H")
_NOISE = _of_misfit("noise", "N", "N")
_GAMMA = _of_misfit("noise_max", "gamma", r"\gamma", math.sqrt)
_CENTRE = _of_misfit("centre_loss", "L_c", "L_c")
_SLOPE = _of_misfit("centre_slope", "g_c", "g_c")
_AWAY = _of_misfit("centre_dist_sq", "D_c", "D_c", math.sqrt)
_NOISE_C = _of_misfit("centre_noise", "N_c", "N_c")

_NOISE_IS = "N = sum_m p_m |X_m^+(y_m - X_m w*)|^2"
_SMOOTH_IS = "H = the largest eigenvalue of sum_m X_m^T X_m / T"
_CENTRE_IS = (
    "w_c = the fixed point of the mean step with loss L_c and slope g_c and noise N_c at the distance D_c from w_0"
)


def _needs(*names: str) -> Condition:
    return Condition(
        lambda s, k: s.misfit is None or all(getattr(s.misfit, name) is not None for name in names),
        f"needs {', '.join(names)} of the misfit, not known here",
    )


_UNSOLVED = Condition(lambda s, k: s.misfit is not None, "is for tasks that no w solves")
_SPANNED = Condition(lambda s, k: known(s.spectral_gap) > 0, "needs tasks with p_m > 0 that span what all tasks do")
_LS = "w* is the minimiser of the mean loss nearest to w_0"
_noise = Theorem(
    "here:noise",
    "projections with noise",
    source=f"{HERE} (here:noise)",
    orderings="i.i.d.",
    status="proved here",
    assumptions=f"any regression tasks, each learned to convergence; {_LS}",
    tight=True,
    noisy=True,
)


# Checks ---------------------------------------------------------------------------------------------------------------


def unsolved(instance: Instance) -> str | None:
    """Condition: regression tasks without a common solution."""
    if (reason := tasks_with_data(instance)) is not None:
        return reason
    return "is for tasks that no w solves" if instance.tasks.realizability.holds else None


def _covered(bound: Bound) -> Callable[[Instance], str | None]:
    """The conditions of the bound, at the numbers of the data."""
    return lambda instance: bound.not_covered(noise_from_data(instance).setting, instance.k)


def _rounding(instance: Instance, data: NoiseFromData, value: float, quantity: str) -> float:
    """The most that rounding may move a square: residuals are differences of numbers as large as X w."""
    size = float(np.linalg.norm(data.best) + np.linalg.norm(instance.start))
    unit = size if quantity == "error" else size * instance.tasks.radius
    return ROUNDING * (value + math.sqrt(value) * unit)


def _left(engine: Engine, instance: Instance, data: NoiseFromData, quantity: str) -> tuple[float, float, str]:
    """A quantity by an engine, how far it may be off, and how it was obtained."""
    if quantity == "error":
        return squared_distance(instance, data.best, engine)
    numbers = engine(instance)
    value = numbers.loss(instance.k) if quantity == "loss" else numbers.averaged_loss(instance.k)
    return value, numbers.doubt, numbers.how


def _paths(bound: Bound) -> CheckPaths:
    """Both sides of a bound: the left one by an engine, the right one from the data."""

    def compare(engine: Engine, instance: Instance) -> Sides:
        data = noise_from_data(instance)
        value, doubt, how = _left(engine, instance, data, bound.quantity)
        rounding = _rounding(instance, data, float(bound.compute(data.setting, instance.k)), bound.quantity)
        return at_most(value, bound, data.setting, instance.k, doubt + rounding, how)

    return by_engines(compare)


_SETUP = (small(LARGEST), projection, steps(1))


#: the quantities as claims name them
_NAMES = {"error": "E|w_k - w*|^2", "loss": "E L(w_k)", "averaged_loss": "E L(mean of w_0, ..., w_(k-1))"}


def _checked(
    part: str | None, kind: Missing = unsolved, draw: Draw = noisy_projected, ordering: str = "i.i.d.",
    words: str = "independent draws with any weights p, any labels",
) -> Checked:  # fmt: skip
    """The check of a bound: its left side by the engines, and the right side and its conditions from the data."""

    def check(bound: Bound) -> Claim:
        applies = all_of(kind, *_SETUP, covers(ordering), _covered(bound))
        statement = f"{_NAMES[bound.quantity]} <= {{}}, k >= 1, {words}"
        return compared(_paths, statement, draw, applies, part)(bound)

    return check


# The horizon ----------------------------------------------------------------------------------------------------------

_noise(
    "error",
    (_LEFT * DISTANCE + _NOISE * _TIMES).where(GAP_IS).where(_NOISE_IS),
    title=f"{_noise.title}: linear rate to a horizon",
    conditions=(_needs("noise"),),
    convention=OF_SQUARES,
    note="The bound of Gower and Richtarik where one w solves all tasks. For single rows drawn by their squared norms "
    "N / lambda_min is |y - X w*|^2 / sigma_min(X)^2, at most the horizon of Needell 2010. Reached by orthogonal "
    "tasks, each with several labels.",
    check=_checked("error", tasks_with_data),
)
_noise(
    "loss",
    (_FLOOR + _SMOOTH / 2 * (_LEFT * DISTANCE + _NOISE * _TIMES)).where(_SMOOTH_IS).where(GAP_IS).where(_NOISE_IS),
    title=f"{_noise.title}: the loss",
    conditions=(_UNSOLVED, _needs("floor", "smoothness", "noise")),
    note="L(w) is L_min + <w - w*, (sum_m X_m^T X_m / T) (w - w*)> / 2, at most L_min + H |w - w*|^2 / 2.",
    check=_checked("loss"),
)
_noise(
    "loss",
    (_CENTRE + _LEFT * _SLOPE * _AWAY + _SMOOTH / 2 * (_LEFT * _AWAY**2 + _NOISE_C * _TIMES))
    .where(_CENTRE_IS)
    .where(_SMOOTH_IS)
    .where(GAP_IS),
    "centred",
    title=f"{_noise.title}: the loss, around the fixed point of the mean step",
    conditions=(_UNSOLVED, _needs("centre_loss", "smoothness", "centre_noise")),
    origin="tightened",
    note="As k grows, never larger than the bound around the minimiser of the loss.",
    check=_checked("loss, centred"),
)
_KAPPA = Expression("kappa_F", r"\kappa_F", lambda s, k: known(s.spectral_gap) ** -0.5, ("spectral_gap",))
Theorem(
    "needell2010:single rows",
    "randomised Kaczmarz with noise: linear rate to a horizon",
    source="Needell 2010",
    orderings="norm-weighted",
)(
    "error",
    (left_after(PER_ROW, K) * DISTANCE + _KAPPA**2 * _GAMMA**2)
    .where(KAPPA_IS)
    .where("gamma = max_i |y_i - x_i.w*| / |x_i|"),
    conditions=(
        Condition(lambda s, k: known(s.rank_max) <= 1, "is for tasks of rank 1"),
        _SPANNED,
        _needs("noise_max"),
    ),
    needs=("rank_max",),
    assumptions=f"single rows, any labels, each learned to convergence; {_LS}",
    convention=OF_SQUARES,
    note="Printed for E|w_k - w|, as the sum of the two roots, for any w with noise y - X w: this is the bound on "
    "squares from which that follows. Stated there for rows of full column rank; the joint row space is enough.",
    tight=True,
    noisy=True,
    check=_checked(
        None, tasks_with_data, noisy_rows, "norm-weighted", "single rows drawn by their squared norms, any labels"
    ),
)

# The mean of the iterates ---------------------------------------------------------------------------------------------

_noise(
    "averaged_loss",
    (
        _CENTRE
        + _SLOPE * _AWAY / (GAP * K)
        + _SMOOTH * (2 - GAP) / (2 * (GAP * K) ** 2) * (_AWAY**2 + (K - 1) * _NOISE_C)
    )
    .where(_CENTRE_IS)
    .where(_SMOOTH_IS)
    .where(GAP_IS),
    title=f"{_noise.title}: the loss of the mean of the iterates",
    source=f"{HERE} (here:noise), after Epperly et al. 2024",
    conditions=(_UNSOLVED, _SPANNED, _needs("centre_loss", "smoothness", "centre_noise")),
    note="The mean of w_0, ..., w_(k-1), which tends to the fixed point of the mean step; that is the minimiser of the "
    "loss for single rows drawn by their squared norms, where L_c = L_min and g_c = 0. That averages escape the "
    "horizon is shown for such rows by Epperly et al. 2024. Reached at lambda_min = 1.",
    check=_checked("averaged loss"),
)

# The floor ------------------------------------------------------------------------------------------------------------

_floor = Theorem(
    "floor",
    "the least-squares floor",
    source=f"the definition of the minimum ({HERE})",
    orderings="any",
    schemes="any",
    kind="floor",
    range=Range(0),
    conditions=(_UNSOLVED, _needs("floor")),
    assumptions="any regression tasks, any order, any scheme",
    tight=True,
    noisy=True,
)
_MINIMUM = _LEAST.where("L_min = the least mean loss of any w")


def _no_less(bound: Bound) -> CheckPaths:
    """The floor, from the data, against the expected loss."""

    def compare(engine: Engine, instance: Instance) -> Sides:
        data = noise_from_data(instance)
        value, doubt, how = _left(engine, instance, data, "loss")
        floor = bound.value(data.setting, instance.k)
        return Sides(floor, value, doubt + _rounding(instance, data, value, "loss"), how=how)

    return by_engines(compare)


_floor(
    "loss",
    _MINIMUM,
    check=compared(
        _no_less,
        "min_w L(w) <= E L(w_k), k >= 0, any order, any scheme",
        any_order,
        all_of(unsolved, small(LARGEST), covers("any")),
        "loss",
    ),
)
_floor("averaged_loss", _MINIMUM)
