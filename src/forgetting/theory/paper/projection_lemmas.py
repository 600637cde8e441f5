"""Section 6.1 and Appendix F: a projection onto a convex set as a gradient step, and the inequality behind its rate."""

from __future__ import annotations

from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.theory.checking import convex_sets
from forgetting.theory.claim import Sides
from forgetting.theory.definition import check_point
from forgetting.theory.instance import Instance
from forgetting.theory.set_draws import sets
from forgetting.theory.statement import declare_claim

_ALL = ("w", "z", "task")


def _project(instance: Instance, w: Array) -> Array:
    """The projection onto the set of the task that the instance names."""
    task = int(instance.extra("task"))
    point = instance.posed.project(task, w)
    check_point(instance, task, w, point)
    return np.asarray(point)


def _half_square(instance: Instance, w: Array) -> tuple[float, Array]:
    """f(w) = 1/2 dist(w, C)^2 and w - P(w), its gradient by the statement."""
    gap = w - _project(instance, w)
    return 0.5 * float(gap @ gap), gap


_pocs = partial(declare_claim, label="reduc:pocs", missing=convex_sets)


@_pocs(
    part="convex and smooth",
    statement="f(w) = 1/2 dist(w, C)^2 is convex and 1-smooth: |g(w) - g(z)|^2 <= <g(w) - g(z), w - z>, g = I - P",
    needs=_ALL,
    draw=sets(*_ALL),
)
def _(instance: Instance) -> Sides:
    w, z = instance.extra("w"), instance.extra("z")
    change = _half_square(instance, w)[1] - _half_square(instance, z)[1]
    size = float(np.linalg.norm(w) + np.linalg.norm(z) + np.linalg.norm(change))
    return Sides(float(change @ change), float(change @ (w - z)), 1e-9 * float(np.linalg.norm(w - z)) * size)


@_pocs(
    part="gradient step",
    statement="P(w) = w - grad f(w): |f(w+v) - f(w-v) - 2 <w - P(w), v>| <= |v|^2 / 2, and so for every small v",
    needs=("w", "v", "task"),
    note="Convexity and 1-smoothness put f(w +- v) within |v|^2/2 above the tangent, so the difference is at most "
    "that; v -> 0 identifies the gradient. Checked with v scaled to 1e-3.",
    draw=sets("w", "v", "task"),
)
def _(instance: Instance) -> Sides:
    w, v = instance.extra("w"), instance.extra("v")
    v = 1e-3 * v / max(float(np.linalg.norm(v)), 1e-300)
    _, gradient = _half_square(instance, w)
    lhs = abs(_half_square(instance, w + v)[0] - _half_square(instance, w - v)[0] - 2 * float(gradient @ v))
    return Sides(lhs, float(v @ v) / 2, 1e-12 * (1 + float(gradient @ gradient)))


def _noise(*vectors: Array) -> float:
    return 1e-11 * float(sum(np.linalg.norm(v) for v in vectors)) ** 2


_gradient = partial(declare_claim, label="lem:proj_gradineq", missing=convex_sets)


@_gradient(
    part="inequality",
    statement="(2 - gamma) f(w) - f(z)/gamma <= (w - P(w)).(w - z) for every z and gamma > 0, f = 1/2 dist^2",
    needs=(*_ALL, "gamma"),
    draw=sets(*_ALL, "gamma"),
    note="The last display of the proof prints an equality where its first part has proved >= only.",
)
def _(instance: Instance) -> Sides:
    w, z, gamma = instance.extra("w"), instance.extra("z"), float(instance.extra("gamma"))
    value, gradient = _half_square(instance, w)
    lhs = (2 - gamma) * value - _half_square(instance, z)[0] / gamma
    return Sides(lhs, float(gradient @ (w - z)), (1 + gamma + 1 / gamma) * _noise(w, z, gradient))


@_gradient(
    part="inside",
    statement="2 f(w) <= (w - P(w)).(w - u) for every u in the set; u = P(z) here",
    needs=_ALL,
    draw=sets(*_ALL),
)
def _(instance: Instance) -> Sides:
    w = instance.extra("w")
    inside = _project(instance, instance.extra("z"))
    value, gradient = _half_square(instance, w)
    return Sides(2 * value, float(gradient @ (w - inside)), _noise(w, inside, gradient))
