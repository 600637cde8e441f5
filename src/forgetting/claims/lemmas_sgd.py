"""SGD with a fixed step size on realizable least squares: f(w; m) = 1/2 |A_m w - b_m|^2, |A_m^T A_m| <= beta.

Runs by projection, and on the modified objective, are rewritten as SGD on tasks with orthonormal rows first. beta is
the least there is, max_m |A_m|^2: a larger one weakens every statement. T in the paper is k here, except in
`lem:regret_bound`, whose T + 1 terms are k here.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.bounds import Setting
from forgetting.bounds import get as get_bound
from forgetting.claims.common import (
    ROUNDING,
    all_of,
    asked,
    covers,
    engines,
    least_squares,
    regression,
    settling,
    steps,
)
from forgetting.claims.draws import descents, permuted, points, with_beta
from forgetting.claims.exact import equations
from forgetting.claims.instance import Instance
from forgetting.claims.registry import PAPER, Claim, Sides, declare, register
from forgetting.schemes import SGD

__all__ = ["against_average", "dist_sq", "greedy", "last_iterate", "setting", "unit"]


def dist_sq(instance: Instance) -> float:
    """|w_0 - w*|^2."""
    gap = instance.problem.geometry.start(instance.start)
    return float(gap @ gap)


def unit(instance: Instance) -> float:
    """beta |w_0 - w*|^2, the natural unit of the objective."""
    return float(instance.problem.radius**2 * dist_sq(instance))


def setting(instance: Instance) -> Setting:
    """The parameters of SGD on the loss."""
    x, beta = with_beta(instance)
    return Setting(T=instance.problem.num_tasks, dist_sq=dist_sq(instance), eta=x / beta, beta=beta)


# Elementary inequalities ----------------------------------------------------------------------------------------------


@declare(
    label="lem:gd_funadmental_inequality",
    statement="w_(t+1) = w_t - eta g_t implies sum_t g_t.(w_t - v) <= |w_0 - v|^2/(2 eta) + eta/2 sum_t |g_t|^2, any g",
    source=f"{PAPER}, Lemma lem:gd_funadmental_inequality",
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
    matrix, label = equations(instance.problem, int(instance.extra("task")))
    missed = matrix @ w - label
    return 0.5 * float(missed @ missed), np.asarray(matrix.T @ missed)


_DESCENT: dict[str, Any] = {
    "label": "lem:gd_descent",
    "source": f"{PAPER}, Lemma lem:gd_descent",
    "missing": all_of(regression, lambda i: None if i.problem.radius > 0 else "beta must be positive"),
}


def _noise(instance: Instance, *vectors: Array) -> float:
    size = max(float(np.linalg.norm(v)) for v in vectors) + float(np.linalg.norm(instance.problem.w_star))
    return float(ROUNDING * instance.problem.radius**2 * size**2)


@declare(
    part="descent",
    statement="f(w - eta g) <= f(w) - eta (1 - eta beta/2) |g|^2 with g = grad f(w), for every eta > 0",
    needs=("task", "w", "eta"),
    draw=points("task", "w", "eta"),
    **_DESCENT,
)
def _(instance: Instance) -> Sides:
    w, eta, beta = instance.extra("w"), float(instance.extra("eta")), instance.problem.radius**2
    value, gradient = _loss(instance, w)
    after, _ = _loss(instance, w - eta * gradient)
    rhs = value - eta * (1 - eta * beta / 2) * float(gradient @ gradient)
    return Sides(after, rhs, _noise(instance, w, eta * gradient))


@declare(
    part="gradient",
    statement="|grad f(w)|^2 <= 2 beta (f(w) - f(w*))",
    needs=("task", "w"),
    draw=points("task", "w"),
    **_DESCENT,
)
def _(instance: Instance) -> Sides:
    value, gradient = _loss(instance, instance.extra("w"))
    beta = instance.problem.radius**2
    return Sides(float(gradient @ gradient), 2 * beta * value, 2 * beta * _noise(instance, instance.extra("w")))


_SQUARE: dict[str, Any] = {
    "label": "lem:sqloss_gradineq",
    "source": f"{PAPER}, Lemma lem:sqloss_gradineq",
    "missing": regression,
}


@declare(
    part="identity",
    statement="2 f(w) = grad f(w).(w - w*) for f(w) = 1/2 |A w - b|^2 with A w* = b",
    kind="equality",
    needs=("task", "w"),
    draw=points("task", "w"),
    **_SQUARE,
)
def _(instance: Instance) -> Sides:
    w = instance.extra("w")
    value, gradient = _loss(instance, w)
    gap = w - instance.problem.w_star
    return Sides(2 * value, float(gradient @ gap), _noise(instance, w), instance.problem.radius**2 * float(gap @ gap))


@declare(
    part="inequality",
    statement="(2 - gamma) f(w) - f(z)/gamma <= grad f(w).(w - z) for every z and gamma > 0",
    needs=("task", "w", "z", "gamma"),
    draw=points("task", "w", "z", "gamma"),
    note="Equality where A z - b = gamma (A w - b).",
    **_SQUARE,
)
def _(instance: Instance) -> Sides:
    w, z, gamma = instance.extra("w"), instance.extra("z"), float(instance.extra("gamma"))
    value, gradient = _loss(instance, w)
    lhs = (2 - gamma) * value - _loss(instance, z)[0] / gamma
    return Sides(lhs, float(gradient @ (w - z)), (1 + gamma + 1 / gamma) * _noise(instance, w, z))


# Regret and the last iterate ------------------------------------------------------------------------------------------


def _regret(instance: Instance, numbers: Any) -> Sides:
    x, beta = with_beta(instance)
    rhs = dist_sq(instance) * beta / (2 * x * (2 - x))
    return Sides(numbers.regret_sum(instance.k), rhs, numbers.doubt * instance.k + ROUNDING * rhs, how=numbers.how)


register(
    Claim(
        label="lem:regret_bound",
        part=None,
        statement="sum_(t<k) f(w_t; i_t) <= |w_0 - w*|^2 / (2 eta (2 - eta beta)) for every sequence i_0, ..., i_(k-1)",
        source=f"{PAPER}, Lemma lem:regret_bound",
        note="The bound is reached in the limit of one task of rank 1 repeated for ever. T + 1 there is k here.",
        draw=descents("sequence"),
        missing=all_of(least_squares(), covers("any"), steps(1)),
        **engines(_regret, sgd=True),
    )
)


def against_average(instance: Instance, numbers: Any) -> Sides:
    """E f(w_k; i_k) against (e k)^(x(1-x/4)) times the mean of E f(w_t; i_t) over t <= k."""
    x, k = with_beta(instance)[0], instance.k
    doubt = numbers.doubt + ROUNDING * unit(instance)
    last, off = asked(numbers, "next_loss", k)
    before, off_mean = asked(numbers, "regret_sum", k)
    factor = (math.e * k) ** (x * (1 - x / 4)) / (k + 1)
    doubt = doubt * (1 + factor * (k + 1)) + off * (1 + factor) + off_mean * k * factor
    return Sides(last, factor * (before + last), doubt, how=numbers.how)


for _part, _tag, _draw, _last in (
    ("independent", "i.i.d.", descents(), None),
    ("without replacement", "without replacement", permuted(1, 1, projections=False), 1),
):
    register(
        Claim(
            label="lem:ratio_avg_last",
            part=_part,
            statement=f"E f(w_k; i_k) <= (e k)^(x(1-x/4)) E mean_(t<=k) f(w_t; i_t), x = eta beta < 2, {_part} draws",
            source=f"{PAPER}, Lemma lem:ratio_avg_last",
            note="Stated for draws whose future is exchangeable given the past; these are the two cases that the paper "
            "uses. The last line of its proof drops the expectation on the right.",
            draw=_draw,
            missing=all_of(least_squares(), covers(_tag), steps(1, last=_last)),
            **engines(against_average, sgd=True),
        )
    )


def last_iterate(key: str) -> dict[str, Any]:
    """`sides` and `precise` of the claim that E f(w_k; i_k) is at most the bound of this key."""
    bound = get_bound(key)

    def check(instance: Instance, numbers: Any) -> Sides:
        rhs = bound.value(setting(instance), instance.k)
        lhs = numbers.next_loss(instance.k)
        return Sides(lhs, rhs, numbers.doubt + ROUNDING * unit(instance), how=numbers.how)

    return engines(check, sgd=True)


def greedy(instance: Instance) -> Instance:
    """The same with eta = 1/beta."""
    return replace(instance, scheme=SGD(1 / instance.problem.radius**2, "loss"))


for _part, _key, _settle, _missing in (
    ("general", "thm:sgd_last_iterate_main/objective", None, least_squares()),
    ("eta = 1/beta", "thm:sgd_last_iterate_main/objective/greedy", greedy, least_squares(1 - 1e-9, 1, closed=True)),
):
    register(
        Claim(
            label="thm:sgd_last_iterate_main",
            part=_part,
            statement=f"E f(w_k) <= {get_bound(_key).formula}, k >= 1, with replacement, any weights",
            source=f"{PAPER}, Theorem thm:sgd_last_iterate_main",
            draw=descents(),
            missing=all_of(_missing, covers("i.i.d."), steps(1)),
            **settling(_settle),
            **last_iterate(_key),
        )
    )
