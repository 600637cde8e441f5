"""Appendix E.1: elementary inequalities on gradient descent for f(w; m) = 1/2 |A_m w - b_m|^2, |A_m^T A_m| <= beta."""

from __future__ import annotations

from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.theory.checking import ROUNDING, all_of, regression
from forgetting.theory.claim import Sides
from forgetting.theory.definition import equations
from forgetting.theory.draws import points
from forgetting.theory.instance import Instance
from forgetting.theory.statement import declare_claim


@declare_claim(
    label="lem:gd_funadmental_inequality",
    statement="w_(t+1) = w_t - eta g_t implies sum_t g_t.(w_t - v) <= |w_0 - v|^2/(2 eta) + eta/2 sum_t |g_t|^2, any g",
    needs=("gradients", "eta", "w", "v"),
    draw=points("gradients", "eta", "w", "v"),
    note="The slack is |w_(T+1) - v|^2 / (2 eta): equality when the last iterate is v.",
)
def _(instance: Instance) -> Sides:
    gradients, eta, v = instance.extra("gradients"), float(instance.extra("eta")), instance.extra("v")
    w, lhs, size = instance.extra("w"), 0.0, 0.0
    rhs = float((w - v) @ (w - v)) / (2 * eta)
    for gradient in gradients:
        term = float(gradient @ (w - v))
        lhs, size = lhs + term, size + abs(term)
        rhs += eta / 2 * float(gradient @ gradient)
        w = w - eta * gradient
    return Sides(lhs, rhs, ROUNDING * (size + rhs))


def _loss(instance: Instance, w: Array) -> tuple[float, Array]:
    """The loss of the named task at w, and its gradient."""
    matrix, label = equations(instance.tasks, int(instance.extra("task")))
    missed = matrix @ w - label
    return 0.5 * float(missed @ missed), np.asarray(matrix.T @ missed)


_SMOOTH = all_of(regression, lambda i: None if i.tasks.radius > 0 else "beta must be positive")


def _noise(instance: Instance, *vectors: Array) -> float:
    size = max(float(np.linalg.norm(v)) for v in vectors) + float(np.linalg.norm(instance.tasks.w_star))
    return float(ROUNDING * instance.tasks.radius**2 * size**2)


_descent = partial(declare_claim, label="lem:gd_descent", missing=_SMOOTH)


@_descent(
    part="descent",
    statement="f(w - eta g) <= f(w) - eta (1 - eta beta/2) |g|^2 with g = grad f(w), for every eta > 0",
    needs=("task", "w", "eta"),
    draw=points("task", "w", "eta"),
)
def _(instance: Instance) -> Sides:
    w, eta, beta = instance.extra("w"), float(instance.extra("eta")), instance.tasks.radius**2
    value, gradient = _loss(instance, w)
    after, _ = _loss(instance, w - eta * gradient)
    rhs = value - eta * (1 - eta * beta / 2) * float(gradient @ gradient)
    return Sides(after, rhs, _noise(instance, w, eta * gradient))


@_descent(
    part="gradient", statement="|grad f(w)|^2 <= 2 beta (f(w) - f(w*))", needs=("task", "w"), draw=points("task", "w")
)
def _(instance: Instance) -> Sides:
    value, gradient = _loss(instance, instance.extra("w"))
    beta = instance.tasks.radius**2
    return Sides(float(gradient @ gradient), 2 * beta * value, 2 * beta * _noise(instance, instance.extra("w")))


_square = partial(declare_claim, label="lem:sqloss_gradineq", missing=regression)


@_square(
    part="identity",
    statement="2 f(w) = grad f(w).(w - w*) for f(w) = 1/2 |A w - b|^2 with A w* = b",
    kind="equality",
    needs=("task", "w"),
    draw=points("task", "w"),
)
def _(instance: Instance) -> Sides:
    w = instance.extra("w")
    value, gradient = _loss(instance, w)
    gap = w - instance.tasks.w_star
    return Sides(2 * value, float(gradient @ gap), _noise(instance, w), instance.tasks.radius**2 * float(gap @ gap))


@_square(
    part="inequality",
    statement="(2 - gamma) f(w) - f(z)/gamma <= grad f(w).(w - z) for every z and gamma > 0",
    needs=("task", "w", "z", "gamma"),
    draw=points("task", "w", "z", "gamma"),
    note="Equality where A z - b = gamma (A w - b).",
)
def _(instance: Instance) -> Sides:
    w, z, gamma = instance.extra("w"), instance.extra("z"), float(instance.extra("gamma"))
    value, gradient = _loss(instance, w)
    lhs = (2 - gamma) * value - _loss(instance, z)[0] / gamma
    return Sides(lhs, float(gradient @ (w - z)), (1 + gamma + 1 / gamma) * _noise(instance, w, z))
