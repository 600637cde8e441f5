"""Section 6, with Appendix F: projections onto convex sets, and weakly regularised classification in its limit.

A projection onto a convex set is a gradient step, and satisfies the inequality behind the rate.

C is the intersection of the sets, w* its point nearest to w_0, S = |w_0 - w*|^2 R^2; A(k) as in `regression_rates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.errors import NotSupportedError
from forgetting.orderings import Explicit
from forgetting.schemes import POCS
from forgetting.theory.bound import Bound
from forgetting.theory.checking import (
    all_of,
    at_most,
    classification,
    convex_sets,
    covers,
    pocs,
    setting_of,
    steps,
    trajectory,
)
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import check_point
from forgetting.theory.expectations import over_orders
from forgetting.theory.expression import DISTANCE, SUM, E, Expression, K, S, T, last_iterate, number, root
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PRINTED, cite
from forgetting.theory.paper.regression_rates import PRODUCT, WITH, WITHOUT, average_iterate
from forgetting.theory.precise import halfspace_walk
from forgetting.theory.registry import add_statement, get_bound
from forgetting.theory.set_draws import classified, sets, weakly
from forgetting.theory.statement import Range
from forgetting.theory.theorem import Checked, Theorem, compared
from forgetting.theory.verdict import Check, CheckPaths, Draw, Missing, Sides

_ALL = ("w", "z", "task")


def _project(instance: Instance, task: int, w: Array) -> Array:
    """The projection onto the set of a task."""
    point = instance.posed.project(task, w)
    check_point(instance, task, w, point)
    return np.asarray(point)


def _half_square(instance: Instance, task: int, w: Array) -> tuple[float, Array]:
    """f(w) = 1/2 dist(w, C)^2 and w - P(w), its gradient by the statement."""
    gap = w - _project(instance, task, w)
    return 0.5 * float(gap @ gap), gap


_pocs = partial(declare_claim, label="reduc:pocs", missing=convex_sets)


@_pocs(
    part="convex and smooth",
    statement="f(w) = 1/2 dist(w, C)^2 is convex and 1-smooth: |g(w) - g(z)|^2 <= <g(w) - g(z), w - z>, g = I - P",
    draw=sets(*_ALL),
)
def _(instance: Instance, w: Array, z: Array, task: int) -> Sides:
    change = _half_square(instance, task, w)[1] - _half_square(instance, task, z)[1]
    size = float(np.linalg.norm(w) + np.linalg.norm(z) + np.linalg.norm(change))
    return Sides(float(change @ change), float(change @ (w - z)), 1e-9 * float(np.linalg.norm(w - z)) * size)


@_pocs(
    part="gradient step",
    statement="P(w) = w - grad f(w): |f(w+v) - f(w-v) - 2 <w - P(w), v>| <= |v|^2 / 2, and so for every small v",
    note="Convexity and 1-smoothness put f(w +- v) within |v|^2/2 above the tangent, so the difference is at most "
    "that; v -> 0 identifies the gradient. Checked with v scaled to 1e-3.",
    draw=sets("w", "v", "task"),
)
def _(instance: Instance, w: Array, v: Array, task: int) -> Sides:
    v = 1e-3 * v / max(float(np.linalg.norm(v)), 1e-300)
    (above, _), (below, _), (_, gradient) = (_half_square(instance, task, point) for point in (w + v, w - v, w))
    lhs = abs(above - below - 2 * float(gradient @ v))
    return Sides(lhs, float(v @ v) / 2, 1e-12 * (1 + float(gradient @ gradient)))


def _noise(*vectors: Array) -> float:
    return 1e-11 * float(sum(np.linalg.norm(v) for v in vectors)) ** 2


_gradient = partial(declare_claim, label="lem:proj_gradineq", missing=convex_sets)


@_gradient(
    part="inequality",
    statement="(2 - gamma) f(w) - f(z)/gamma <= (w - P(w)).(w - z) for every z and gamma > 0, f = 1/2 dist^2",
    draw=sets(*_ALL, "gamma"),
    note="The last display of the proof prints an equality where its first part has proved >= only.",
)
def _(instance: Instance, w: Array, z: Array, task: int, gamma: float) -> Sides:
    value, gradient = _half_square(instance, task, w)
    lhs = (2 - gamma) * value - _half_square(instance, task, z)[0] / gamma
    return Sides(lhs, float(gradient @ (w - z)), (1 + gamma + 1 / gamma) * _noise(w, z, gradient))


@_gradient(
    part="inside",
    statement="2 f(w) <= (w - P(w)).(w - u) for every u in the set; u = P(z) here",
    draw=sets(*_ALL),
)
def _(instance: Instance, w: Array, z: Array, task: int) -> Sides:
    inside = _project(instance, task, z)
    value, gradient = _half_square(instance, task, w)
    return Sides(2 * value, float(gradient @ (w - inside)), _noise(w, inside, gradient))


_LEAVING_ONE_OUT = (
    "Without replacement the printed proof uses a next set that does not exist at k = T. Leaving one set out instead "
    "(projections do not expand distances) gives 2 A(k-1) + 1/k for the sets seen, which also covers k = T."
)
_ONE_PASS = Range(1, "T")


def _rate(bound: Bound) -> CheckPaths:
    def check(instance: Instance) -> Sides:
        orders, setting = over_orders(instance), setting_of(instance)
        lhs, doubt = orders.seen if bound.quantity == "forgetting" else orders.loss
        return at_most(lhs, bound, setting, instance.k, doubt + 1e-9 * setting.scale, orders.how)

    return CheckPaths(check)


def checked_on(
    left: str, ordering: tuple[str, ...], kind: Missing, draw: Callable[..., Draw], part: str = "{}"
) -> Checked:
    """The check of a bound on convex sets or on classification tasks, under this ordering."""
    drawn = "independent draws with any weights" if ordering[0] == "i.i.d." else ordering[0]
    words = f"{left} <= {{}}, w* the common solution nearest to w_0, {drawn}"
    applies = all_of(kind, pocs, covers(*ordering), steps(1, last=0 if ordering == WITHOUT else None))
    chosen = draw(ordering=ordering[0].partition(" ")[0], long=True)  # i.i.d., with or without
    return compared(_rate, words, chosen, applies, part.format(ordering[0]))


# thm:pocs-rate --------------------------------------------------------------------------------------------------------

#: a theorem on the residual of projections
of_projections = partial(
    Theorem,
    problems=("regression", "classification", "sets"),
    assumptions="closed convex sets with a common point, learned by projection",
    convention="mean over all tasks of half the squared distance to the task's solutions",
)
_residual = of_projections("thm:pocs-rate", "universal rate of projections")
ON_SETS = partial(checked_on, "E (1/2T) sum_m dist(w_k, C_m)^2", kind=convex_sets, draw=sets)


def _seen(steps_made: int) -> float:
    return 2 * last_iterate(1, steps_made - 1) + 1 / steps_made if steps_made > 1 else 0.0


#: The in-sample residual in units of |w_0 - w*|^2; one step leaves exactly 0.
SEEN = Expression("2 A(k-1) + 1/k", r"2A(k-1)+\frac1k", lambda s, k: _seen(k), level=SUM)

_residual("residual", 7 * DISTANCE / root(K, 4), "with", orderings=WITH, check=ON_SETS(WITH))
_residual(
    "residual",
    7 * DISTANCE / root(K, 4),
    "without",
    orderings=WITHOUT,
    range=_ONE_PASS,
    status="gap in the printed proof",
    note=_LEAVING_ONE_OUT,
    check=ON_SETS(WITHOUT),
)
_residual("residual", E * DISTANCE / (2 * root(K, 4)), "with/proof", orderings=WITH)
_residual("residual", DISTANCE * average_iterate(K), "with/product", orderings=WITH, note=PRODUCT)
_residual(
    "residual",
    DISTANCE * (K / T * SEEN + (T - K) / T * average_iterate(K)),
    "without/corrected",
    title=f"{_residual.title} without replacement, leaving one set out",
    orderings=WITHOUT,
    range=_ONE_PASS,
    status="corrected",
    origin="tightened",
    note=_LEAVING_ONE_OUT,
    check=ON_SETS(WITHOUT, part="{}, corrected"),
)

# cor:pocs_forgetting --------------------------------------------------------------------------------------------------

_DISPLAY = "The display before the theorem should bound F(k) by distances of w_k, not of w_(k-1)."
#: a theorem on forgetting where tasks are learned by projection onto sets
of_classification = partial(
    Theorem,
    problems=("classification", "sets"),
    assumptions="jointly separable tasks, in the limit of vanishing regularisation (R = 1 for sets)",
    convention="L_m = 1/2 max_i (1 - y_i x_i.w)_+^2 <= R^2/2 dist^2",
)
_forgetting = of_classification("cor:pocs_forgetting", "universal rate of continual classification")
ON_TASKS = partial(checked_on, "E F(k)", kind=classification, draw=classified)
_FROM_PROOF = (E / root(K, 4) + number(4) / K) * S
_leaving_one_out = partial(
    _forgetting,
    "forgetting",
    (SEEN * S).where("0 at k = 1"),
    title=f"{_forgetting.title}, leaving one task out",
    origin="tightened",
    note="The argument of lem:in_to_all_sample carried over: the run that skips task i has never seen it.",
)


def declare_on_sets(bound: Bound, part: str = "sets, {}") -> None:
    """Declare the check of a bound on convex sets, where L_m = dist^2/2, with the status of the first check."""
    check = checked_on("E F(k), L_m = dist^2/2,", bound.orderings, convex_sets, sets, part)
    claim = check(bound)
    add_statement(claim=replace(claim, title="") if bound.label in PRINTED else claim)


FORGETTING_WITH = _forgetting(
    "forgetting", 7 * S / root(K, 4), "with", orderings=WITH, note=_DISPLAY, check=ON_TASKS(WITH)
)
_forgetting("forgetting", _FROM_PROOF, "with/proof", orderings=WITH)
_leaving_one_out("with/product", orderings=WITH)
_FORGETTING_WITHOUT = _forgetting(
    "forgetting",
    7 * S / root(K, 4),
    "without",
    orderings=WITHOUT,
    range=_ONE_PASS,
    status="gap in the printed proof",
    note=f"{_DISPLAY} {_LEAVING_ONE_OUT}",
    check=ON_TASKS(WITHOUT),
)
_forgetting("forgetting", _FROM_PROOF, "without/proof", orderings=WITHOUT, range=Range(1, "T-1"))
_leaving_one_out(
    "without/product",
    orderings=WITHOUT,
    range=_ONE_PASS,
    status="corrected",
    check=ON_TASKS(WITHOUT, part="{}, corrected"),
)
declare_on_sets(FORGETTING_WITH)
declare_on_sets(_FORGETTING_WITHOUT)


def _display(step: int) -> Check:
    """F(k) against distances of the iterate at this place from the end."""

    def check(instance: Instance) -> Sides:
        problem = instance.classified
        run = trajectory(instance)
        lhs = float(np.mean(problem.task_losses(run.iterates[-1])[run.order]))
        squares = problem.distances(run.iterates[step])[run.order] ** 2
        rhs = problem.radius**2 / 2 * float(np.mean(squares))
        return Sides(lhs, rhs, 1e-12 * problem.scale, how="one run")

    return check


def _display_exactly(instance: Instance) -> Sides:
    problem = instance.classified
    if problem.num_rows.max() > 1:
        raise NotSupportedError("50 digits are available only for classification tasks of one row each")
    order = trajectory(instance).order.tolist()
    rows = np.concatenate([problem.signed_rows(task) for task in range(problem.num_tasks)])
    missed, distances = halfspace_walk(rows, order, instance.start)
    lhs, rhs = np.mean(missed[-1][order] ** 2) / 2, problem.radius**2 / 2 * np.mean(distances[-2][order] ** 2)
    return Sides(lhs, rhs, how="50 digits")


_display_claim = partial(
    declare_claim,
    label="cor:pocs_forgetting",
    source=f"{cite('cor:pocs_forgetting')}, display before it",
    draw=classified(ordering="sequence"),
    missing=all_of(classification, pocs, covers("any"), steps(1)),
)
_display_claim(
    part="display, w_(k-1)",
    statement="F(k) <= (R^2/2k) sum_(t<=k) dist(w_(k-1), C_tau(t))^2 for any order",
    status="refuted",
    note="As printed before the theorem, with distances of w_(k-1): those count what the last task still had to learn, "
    "and not what learning it did to the others.",
    precise=_display_exactly,
)(_display(-2))
_display_claim(
    part="display, w_k",
    statement="F(k) <= (R^2/2k) sum_(t<=k) dist(w_k, C_tau(t))^2 for any order",
    status="corrected",
    note="With distances of w_k.",
)(_display(-1))


def _at_example(instance: Instance) -> int:
    """k = 4 T |w*|^2 R^2, rounded up, which makes every rate smaller."""
    return math.ceil(4 * instance.classified.num_tasks * instance.classified.scale * (1 - 1e-12))


def _said(instance: Instance) -> float:
    """5 / (T^(1/4) sqrt(|w*| R)), from the rows."""
    problem = instance.classified
    rows = np.concatenate([problem.signed_rows(task) for task in range(problem.num_tasks)])
    size = float(np.linalg.norm(problem.w_star) * np.max(np.linalg.norm(rows, axis=1)))
    return float(5 / (problem.num_tasks**0.25 * size**0.5))


_example = partial(
    declare_claim,
    label="cor:pocs_forgetting",
    source=f"{cite('cor:pocs_forgetting')}, example after it",
    draw=classified(),
    settle=lambda instance: replace(instance, k=_at_example(instance)),
)
_EXAMPLE = all_of(
    classification,
    pocs,
    covers("with replacement"),
    lambda i: None if not i.start.any() and i.k == _at_example(i) else "is about w_0 = 0 and k = 4 T |w*|^2 R^2",
)


def _rate_there(bound: Bound, instance: Instance) -> float:
    """The bound at k, over |w*|^2 R^2."""
    setting = setting_of(instance)
    return bound.value(setting, instance.k) / setting.scale


@_example(
    part="example",
    statement="7 / k^(1/4) <= 5 / (T^(1/4) sqrt(|w*| R)) at k = 4 T |w*|^2 R^2",
    missing=_EXAMPLE,
)
def _(instance: Instance) -> Sides:
    return Sides(_rate_there(FORGETTING_WITH, instance), _said(instance))


@_example(
    part="example, smaller",
    statement="exp(-k / (4 T |w*|^2 R^2)) <= 5 / (T^(1/4) sqrt(|w*| R)) at k = 4 T |w*|^2 R^2, unless "
    "T |w*|^2 R^2 > (5e)^4",
    note="The paper calls its rate potentially much smaller than the earlier 1/e: it is so for T |w*|^2 R^2 above "
    "(5e)^4 = 34124 only.",
    missing=all_of(
        _EXAMPLE,
        lambda i: None if i.posed.num_tasks * i.classified.scale <= (5 * math.e) ** 4 else "T |w*|^2 R^2 > (5e)^4",
    ),
)
def _(instance: Instance) -> Sides:
    return Sides(_rate_there(get_bound("evron2023:random/forgetting"), instance), _said(instance))


# reduc:classification_to_pocs -----------------------------------------------------------------------------------------


def _weak(instance: Instance) -> str | None:
    scheme = instance.scheme
    if scheme is None or not scheme.short_of_its_limit or not scheme.scale_of_iterates > 1:
        return "needs scheme=WeaklyRegularized(log_lambda) with log_lambda < -1"
    return None if not instance.start.any() else "is about a start at 0"


@declare_claim(
    label="reduc:classification_to_pocs",
    statement="weakly regularised iterates w_k align with projected v_k as lambda -> 0; checked as |w_k/L - v_k| <= "
    "sum_t sqrt(n_t/(e L^2) + D_t |w*| log(n_t + (D_t L)^2/2) / L), L = log(1/lambda), D_t = |v_t - v_(t-1)|, n_t rows",
    source=f"{cite('reduc:classification_to_pocs')}, from Evron et al. 2023",
    note="The paper states the limit; the rate is added here, so that there is something to check at every lambda. One "
    "step from v_(t-1): with multipliers alpha of the regularised step and mu of the projection, |v - v_t|^2 <= "
    "sum_i (alpha_i - mu_i)(z_i.v - 1), where z_i.v = 1 - log(L alpha_i)/L; then -x log x <= 1/e, sum_i L alpha_i <= "
    "n + (D L)^2/2 by optimality, and sum_i mu_i <= D |w*|. Steps do not expand distances, so errors add up.",
    draw=weakly(),
    missing=all_of(classification, _weak, covers("any"), steps(1)),
)
def _(instance: Instance) -> Sides:
    problem, scheme = instance.classified, instance.scheme
    assert scheme is not None
    limit = trajectory(instance, POCS())
    weak = trajectory(replace(instance, ordering=Explicit(limit.order)), scheme)
    if weak.complaints:
        raise NotSupportedError(weak.complaints[0])
    level, norm = scheme.scale_of_iterates, float(np.linalg.norm(problem.w_star))
    rhs = 0.0
    for task, moved in zip(limit.order, np.diff(limit.iterates, axis=0), strict=True):
        rows, length = int(problem.num_rows[task]), float(np.linalg.norm(moved))
        most = math.log(rows + (length * level) ** 2 / 2)
        rhs += math.sqrt(rows / (math.e * level**2) + length * norm * most / level)
    lhs = float(np.linalg.norm(weak.iterates[-1] / level - limit.iterates[-1]))
    return Sides(lhs, rhs, 1e-9 * norm, how="one run each")
