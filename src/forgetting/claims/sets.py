"""Projections onto convex sets, and continual classification as an example of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.bounds import get as get_bound
from forgetting.claims.common import (
    Check,
    Missing,
    all_of,
    classification,
    convex_sets,
    covers,
    pocs,
    setting_of,
    steps,
)
from forgetting.claims.draws import classified, sets, weakly
from forgetting.claims.exact import MOST_STATES, orders_needed, remembered, walk
from forgetting.claims.instance import Instance
from forgetting.claims.precise import halfspace_walk
from forgetting.claims.registry import PAPER, Claim, Sides, declare, register
from forgetting.claims.sampled import simulate
from forgetting.dynamics.loop import whole_run
from forgetting.errors import NotSupportedError
from forgetting.orderings import Explicit
from forgetting.schemes import POCS, WeaklyRegularized

_ALL = ("w", "z", "task")


def _set(instance: Instance) -> Any:
    return instance.problem.sets[int(instance.extra("task"))]


def _half_square(one: Any, w: Array) -> tuple[float, Array]:
    """f(w) = 1/2 dist(w, C)^2 and w - P(w), its gradient by the statement."""
    gap = w - one.project(w)
    return 0.5 * float(gap @ gap), gap


_POCS: dict[str, Any] = {"label": "reduc:pocs", "source": f"{PAPER}, Reduction reduc:pocs", "missing": convex_sets}


@declare(
    part="convex and smooth",
    statement="f(w) = 1/2 dist(w, C)^2 is convex and 1-smooth: |g(w) - g(z)|^2 <= <g(w) - g(z), w - z>, g = I - P",
    needs=_ALL,
    draw=sets(*_ALL),
    **_POCS,
)
def _(instance: Instance) -> Sides:
    w, z = instance.extra("w"), instance.extra("z")
    change = _half_square(_set(instance), w)[1] - _half_square(_set(instance), z)[1]
    size = float(np.linalg.norm(w) + np.linalg.norm(z) + np.linalg.norm(change))
    return Sides(float(change @ change), float(change @ (w - z)), 1e-9 * float(np.linalg.norm(w - z)) * size)


@declare(
    part="gradient step",
    statement="P(w) = w - grad f(w): |f(w+v) - f(w-v) - 2 <w - P(w), v>| <= |v|^2 / 2, and so for every small v",
    needs=("w", "v", "task"),
    note="Convexity and 1-smoothness put f(w +- v) within |v|^2/2 above the tangent, so the difference is at most "
    "that; v -> 0 identifies the gradient. Checked with v scaled to 1e-3.",
    draw=sets("w", "v", "task"),
    **_POCS,
)
def _(instance: Instance) -> Sides:
    w, v = instance.extra("w"), instance.extra("v")
    v = 1e-3 * v / max(float(np.linalg.norm(v)), 1e-300)
    one = _set(instance)
    _, gradient = _half_square(one, w)
    lhs = abs(_half_square(one, w + v)[0] - _half_square(one, w - v)[0] - 2 * float(gradient @ v))
    return Sides(lhs, float(v @ v) / 2, 1e-12 * (1 + float(gradient @ gradient)))


_GRAD: dict[str, Any] = {
    "label": "lem:proj_gradineq",
    "source": f"{PAPER}, Lemma lem:proj_gradineq",
    "missing": convex_sets,
}


def _noise(*vectors: Array) -> float:
    return 1e-11 * float(sum(np.linalg.norm(v) for v in vectors)) ** 2


@declare(
    part="inequality",
    statement="(2 - gamma) f(w) - f(z)/gamma <= (w - P(w)).(w - z) for every z and gamma > 0, f = 1/2 dist^2",
    needs=(*_ALL, "gamma"),
    draw=sets(*_ALL, "gamma"),
    note="The last display of the proof prints an equality where its first part has proved >= only.",
    **_GRAD,
)
def _(instance: Instance) -> Sides:
    w, z, gamma = instance.extra("w"), instance.extra("z"), float(instance.extra("gamma"))
    value, gradient = _half_square(_set(instance), w)
    lhs = (2 - gamma) * value - _half_square(_set(instance), z)[0] / gamma
    return Sides(lhs, float(gradient @ (w - z)), (1 + gamma + 1 / gamma) * _noise(w, z, gradient))


@declare(
    part="inside",
    statement="2 f(w) <= (w - P(w)).(w - u) for every u in the set; u = P(z) here",
    needs=_ALL,
    draw=sets(*_ALL),
    **_GRAD,
)
def _(instance: Instance) -> Sides:
    w = instance.extra("w")
    inside = _set(instance).project(instance.extra("z"))
    value, gradient = _half_square(_set(instance), w)
    return Sides(2 * value, float(gradient @ (w - inside)), _noise(w, inside, gradient))


# Expectations over orders ---------------------------------------------------------------------------------------------


class _Orders:
    """Means over the orders of a problem learned by projection: over all of them, or simulated where these are many.

    `values` has the mean loss of all tasks, of those seen and of those that can be next; `doubt` their intervals.
    """

    def __init__(self, instance: Instance) -> None:
        problem, k = instance.problem, instance.k
        everything = np.arange(problem.num_tasks)
        self.doubt = dict.fromkeys(("loss", "seen", "next"), 0.0)
        if orders_needed(instance, k) > MOST_STATES:
            runs = remembered(instance, ("simulated", k), lambda: simulate(instance, k))
            pairs = {"loss": runs.loss, "seen": runs.seen, "next": runs.following}
            self.values = {name: value for name, (value, _) in pairs.items()}
            self.doubt = {name: wide for name, (_, wide) in pairs.items()}
            self.how = runs.how
            return
        self.values, count = dict.fromkeys(self.doubt, 0.0), 0
        for end in walk(instance, k):
            losses = problem.task_losses(end.w)
            unseen = np.setdiff1d(everything, end.order)
            for name, picked in (("loss", everything), ("seen", list(end.order)), ("next", unseen)):
                self.values[name] += end.probability * (float(np.mean(losses[picked])) if len(picked) else 0.0)
            count += 1
        self.how = f"all {count} orders"


def _rate(key: str, quantity: str, orders: str, kind: Missing) -> dict[str, Any]:
    """`sides` and `missing` of the claim that `quantity` is at most the bound of this key."""
    bound = get_bound(key)

    def check(instance: Instance) -> Sides:
        setting = setting_of(instance)
        orders = _Orders(instance)
        name = "seen" if quantity == "forgetting" else quantity
        doubt = orders.doubt[name] + 1e-9 * setting.scale
        return Sides(orders.values[name], bound.compute(setting, instance.k), doubt, how=orders.how)

    last = 0 if orders == "without replacement" else None
    return {"sides": check, "missing": all_of(kind, pocs, covers(orders), steps(1, last=last))}


_ENDS = "The proof uses the next task, and there is none at k = T."
_RESIDUAL = ("thm:pocs-rate", "loss", "E (1/2T) sum_m dist(w_k, C_m)^2", convex_sets, sets)
_ON_SETS = ("cor:pocs_forgetting", "forgetting", "E F(k), L_m = dist^2/2,", convex_sets, sets)
_ON_TASKS = ("cor:pocs_forgetting", "forgetting", "E F(k)", classification, classified)
for (_label, _quantity, _words, _kind, _draw), _name, _part, _key, _status in (
    (_RESIDUAL, "with", "with replacement", "thm:pocs-rate/residual/with", "holds where proved"),
    (_RESIDUAL, "without", "without replacement", "thm:pocs-rate/residual/without", "gap in the printed proof"),
    (
        _RESIDUAL,
        "without",
        "without replacement, corrected",
        "thm:pocs-rate/residual/without/corrected",
        "corrected",
    ),
    (_ON_TASKS, "with", "with replacement", "cor:pocs_forgetting/forgetting/with", "holds where proved"),
    (_ON_TASKS, "without", "without replacement", "cor:pocs_forgetting/forgetting/without", "gap in the printed proof"),
    (
        _ON_TASKS,
        "without",
        "without replacement, corrected",
        "cor:pocs_forgetting/forgetting/without/product",
        "corrected",
    ),
    (_ON_SETS, "with", "sets, with replacement", "cor:pocs_forgetting/forgetting/with", "holds where proved"),
    (
        _ON_SETS,
        "without",
        "sets, without replacement",
        "cor:pocs_forgetting/forgetting/without",
        "gap in the printed proof",
    ),
):
    register(
        Claim(
            label=_label,
            part=_part,
            statement=f"{_words} <= {get_bound(_key).formula}, w* the common solution nearest to w_0, {_name} "
            "replacement",
            source=f"{PAPER}, Theorem {_label}",
            status=_status,  # type: ignore[arg-type]
            note=_ENDS if _status.startswith("gap") else get_bound(_key).note if _status == "corrected" else "",
            draw=_draw(ordering=_name),
            **_rate(_key, _quantity, f"{_name} replacement", _kind),
        )
    )


def _identity(instance: Instance) -> Sides:
    k, T = instance.k, instance.problem.num_tasks
    orders = _Orders(instance)
    mean, doubt = orders.values, orders.doubt
    scale = 0.5 * float(np.max(instance.problem.distances(instance.start))) ** 2
    rhs = k / T * mean["seen"] + (T - k) / T * mean["next"]
    total = doubt["loss"] + k / T * doubt["seen"] + (T - k) / T * doubt["next"]
    return Sides(mean["loss"], rhs, total + 1e-12 * scale, scale or 1.0, orders.how)


register(
    Claim(
        label="prop:loss_to_forgetting",
        part="POCS",
        statement="E L(w_k) = k/T E F(k) + (T-k)/(2T) E dist(w_k, C_tau(k+1))^2, without replacement, k <= T, with "
        "L_m = 1/2 dist^2",
        source=f"{PAPER}, Proposition prop:loss_to_forgetting",
        kind="equality",
        sides=_identity,
        draw=sets(ordering="without"),
        missing=all_of(convex_sets, pocs, covers("without replacement"), steps(1, last=0)),
    )
)

# The display before cor:pocs_forgetting -------------------------------------------------------------------------------


def _display(before: bool) -> Check:
    def check(instance: Instance) -> Sides:
        problem = instance.problem
        one = whole_run(problem, instance.ordering, instance.k, w0=instance.w0)
        lhs = float(np.mean(problem.task_losses(one.iterates[-1])[one.order]))
        squares = problem.distances(one.iterates[-2 if before else -1])[one.order] ** 2
        rhs = problem.radius**2 / 2 * float(np.mean(squares))
        return Sides(lhs, rhs, 1e-12 * problem.scale, how="one run")

    return check


def _display_exactly(instance: Instance) -> Sides:
    problem = instance.problem
    if problem.num_rows.max() > 1:
        raise NotSupportedError("high precision is for classification tasks of one row each")
    order = whole_run(problem, instance.ordering, instance.k, w0=instance.w0).order.tolist()
    rows = np.concatenate([problem.signed_rows(task) for task in range(problem.num_tasks)])
    missed, distances = halfspace_walk(rows, order, instance.start)
    lhs, rhs = np.mean(missed[-1][order] ** 2) / 2, problem.radius**2 / 2 * np.mean(distances[-2][order] ** 2)
    return Sides(lhs, rhs, how="50 digits")


for _part, _before, _status, _note in (
    (
        "display, w_(k-1)",
        True,
        "refuted",
        "As printed before the theorem, with distances of w_(k-1): those count what the last task still had to learn, "
        "and not what learning it did to the others.",
    ),
    ("display, w_k", False, "corrected", "With distances of w_k."),
):
    register(
        Claim(
            label="cor:pocs_forgetting",
            part=_part,
            statement=f"F(k) <= (R^2/2k) sum_(t<=k) dist({'w_(k-1)' if _before else 'w_k'}, C_tau(t))^2 for any order",
            source=f"{PAPER}, display before Theorem cor:pocs_forgetting",
            status=_status,  # type: ignore[arg-type]
            note=_note,
            sides=_display(_before),
            precise=_display_exactly if _before else None,
            draw=classified(ordering="sequence"),
            missing=all_of(classification, pocs, covers("any"), steps(1)),
        )
    )

# Classification as projections ----------------------------------------------------------------------------------------


def _weak(instance: Instance) -> str | None:
    if not isinstance(instance.scheme, WeaklyRegularized) or not instance.scheme.log_lambda < 0:
        return "needs scheme=WeaklyRegularized(log_lambda) with log_lambda < 0"
    return None if not instance.start.any() else "is about a start at 0"


@declare(
    label="reduc:classification_to_pocs",
    statement="weakly regularised iterates w_k align with projected v_k as lambda -> 0; checked as |w_k/L - v_k| <= "
    "sum_t sqrt(n_t/(e L^2) + D_t |w*| log(n_t + (D_t L)^2/2) / L), L = log(1/lambda), D_t = |v_t - v_(t-1)|, n_t rows",
    source=f"{PAPER}, Reduction reduc:classification_to_pocs (from Evron et al. 2023)",
    note="The paper states the limit; the rate is added here, so that there is something to check at every lambda. One "
    "step from v_(t-1): with multipliers alpha of the regularised step and mu of the projection, |v - v_t|^2 <= "
    "sum_i (alpha_i - mu_i)(z_i.v - 1), where z_i.v = 1 - log(L alpha_i)/L; then -x log x <= 1/e, sum_i L alpha_i <= "
    "n + (D L)^2/2 by optimality, and sum_i mu_i <= D |w*|. Steps do not expand distances, so errors add up.",
    draw=weakly(),
    missing=all_of(classification, _weak, covers("any"), steps(1)),
)
def _(instance: Instance) -> Sides:
    problem, scheme, k = instance.problem, instance.scheme, instance.k
    assert isinstance(scheme, WeaklyRegularized)
    limit = whole_run(problem, instance.ordering, k, POCS())
    weak = whole_run(problem, Explicit(limit.order), k, scheme)
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
