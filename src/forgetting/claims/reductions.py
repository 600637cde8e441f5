"""From continual regression to Kaczmarz to SGD, and between loss and forgetting."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.claims.common import ROUNDING, all_of, asked, covers, engines, projection, regression, setting_of, steps
from forgetting.claims.draws import permuted, points, projected
from forgetting.claims.exact import equations
from forgetting.claims.instance import Instance
from forgetting.claims.registry import PAPER, Claim, Sides, declare, register
from forgetting.dynamics.loop import whole_run
from forgetting.schemes import GradientDescent, Kaczmarz

__all__ = ["modified_gradient", "modified_loss"]


def modified_loss(instance: Instance, task: int, w: Array) -> float:
    """f_m(w) = 1/2 |X_m^+ (X_m w - y_m)|^2, as the paper writes it.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), None, 1)
    >>> round(modified_loss(case, 0, np.zeros(2)), 12)
    0.25
    """
    return _half_square(_pinv(instance, task), *equations(instance.problem, task), w)


def _half_square(pinv: Array, matrix: Array, label: Array, w: Array) -> float:
    step = pinv @ (matrix @ w - label)
    return 0.5 * float(step @ step)


def modified_gradient(instance: Instance, task: int, w: Array) -> Array:
    """The gradient of f_m by central differences, which are exact for quadratics up to rounding."""
    width = float(np.linalg.norm(w)) + _scale(instance) or 1.0
    shifts = width * np.eye(len(w))
    setting = _pinv(instance, task), *equations(instance.problem, task)
    return np.array([(_half_square(*setting, w + h) - _half_square(*setting, w - h)) / (2 * width) for h in shifts])


def _pinv(instance: Instance, task: int) -> Array:
    matrix = equations(instance.problem, task)[0]
    return np.asarray(np.linalg.pinv(matrix, rcond=max(matrix.shape) * np.finfo(float).eps))


def _missed(instance: Instance, task: int, w: Array) -> Array:
    matrix, label = equations(instance.problem, task)
    return np.asarray(matrix @ w - label)


def _scale(instance: Instance) -> float:
    start = instance.start
    return float(np.linalg.norm(start - instance.problem.nearest_solution(start)) + np.linalg.norm(start))


def _condition(instance: Instance) -> float:
    geometry = instance.problem.geometry
    worst = [geometry.sigma[geometry.block(m)] for m in range(geometry.num_distinct)]
    return float(max((s[0] / s[-1] for s in worst if len(s)), default=1.0))


@declare(
    label="reduc:cl_to_kaczmarz",
    statement="gradient descent on each task to convergence and block Kaczmarz have the same iterates w_1, ..., w_k",
    source=f"{PAPER}, Reduction reduc:cl_to_kaczmarz",
    kind="equality",
    note="Gradient descent stops at a relative residual of 1e-13, which moves w by up to cond(X_m) times that.",
    missing=all_of(regression, lambda i: None if _condition(i) <= 50 else "is checked for cond(X_m) <= 50"),
    draw=projected(most=20),
)
def _(instance: Instance) -> Sides:
    order = whole_run(instance.problem, instance.ordering, instance.k, Kaczmarz(), w0=instance.w0)
    other = whole_run(instance.problem, instance.ordering, instance.k, GradientDescent(), w0=instance.w0)
    gap = float(np.max(np.linalg.norm(order.iterates - other.iterates, axis=1)))
    scale = _scale(instance)
    return Sides(gap, 0.0, 1e-11 * instance.k * _condition(instance) * scale, scale, "one run each")


@declare(
    label="reduc:kaczmarz",
    statement="block Kaczmarz and SGD of step size 1 on f_m(w) = 1/2 |X_m^+ (X_m w - y_m)|^2 have the same iterates",
    source=f"{PAPER}, Reduction reduc:kaczmarz",
    kind="equality",
    note="The gradient is a central difference of f_m, so that it does not use the formula of lem:cl_gd_equiv.",
    missing=regression,
    draw=projected(most=20),
)
def _(instance: Instance) -> Sides:
    one = whole_run(instance.problem, instance.ordering, instance.k, Kaczmarz(), w0=instance.w0)
    w, gap = instance.start, 0.0
    for t, task in enumerate(one.order.tolist()):
        w = w - modified_gradient(instance, task, w)
        gap = max(gap, float(np.linalg.norm(w - one.iterates[t + 1])))
    scale = _scale(instance)
    return Sides(gap, 0.0, 1e-12 * instance.k * _condition(instance) * scale, scale or 1.0, "one run each")


# lem:cl_gd_equiv ------------------------------------------------------------------------------------------------------

_EQUIV: dict[str, Any] = {
    "label": "lem:cl_gd_equiv",
    "source": f"{PAPER}, Lemma lem:cl_gd_equiv",
    "missing": regression,
}


@declare(
    part="upper bound",
    statement="L_m(w) <= R^2 f_m(w), for every w",
    needs=("task", "w"),
    draw=points("task", "w"),
    **_EQUIV,
)
def _(instance: Instance) -> Sides:
    task, w = int(instance.extra("task")), instance.extra("w")
    lhs = instance.problem.task_loss(task, w)
    rhs = instance.problem.radius**2 * modified_loss(instance, task, w)
    noise = ROUNDING * instance.problem.radius**2 * (float(np.linalg.norm(w)) + _scale(instance)) ** 2
    return Sides(lhs, rhs, noise)


@declare(
    part="gradient",
    statement="grad f_m(w) = X_m^+ X_m w - X_m^+ y_m",
    kind="equality",
    needs=("task", "w"),
    draw=points("task", "w"),
    **_EQUIV,
)
def _(instance: Instance) -> Sides:
    task, w = int(instance.extra("task")), instance.extra("w")
    formula = _pinv(instance, task) @ _missed(instance, task, w)
    gap = float(np.linalg.norm(modified_gradient(instance, task, w) - formula))
    scale = float(np.linalg.norm(w)) + _scale(instance)
    return Sides(gap, 0.0, 1e-12 * scale * _condition(instance), scale or 1.0, "central differences")


@declare(
    part="convex and smooth",
    statement="f_m is convex and 1-smooth: |g(w) - g(z)|^2 <= <g(w) - g(z), w - z> for its gradient g (Baillon-Haddad)",
    needs=("task", "w", "z"),
    draw=points("task", "w", "z"),
    **_EQUIV,
)
def _(instance: Instance) -> Sides:
    task, w, z = int(instance.extra("task")), instance.extra("w"), instance.extra("z")
    pinv, (matrix, _) = _pinv(instance, task), equations(instance.problem, task)
    change = pinv @ (matrix @ (w - z))
    return Sides(float(change @ change), float(change @ (w - z)), ROUNDING * float((w - z) @ (w - z)))


# lem:in_to_all_sample and prop:loss_to_forgetting ---------------------------------------------------------------------


def _from_next(instance: Instance, numbers: Any) -> Sides:
    scale = setting_of(instance).scale
    rhs = 2 * numbers.next_loss(instance.k - 1) + scale / instance.k
    return Sides(numbers.forgetting(instance.k), rhs, 2 * numbers.doubt + ROUNDING * scale, how=numbers.how)


_SAMPLE: dict[str, Any] = {"label": "lem:in_to_all_sample", "source": f"{PAPER}, Lemma lem:in_to_all_sample"}
for _part, _ordering, _draw in (
    ("next task, with replacement", "i.i.d.", projected("any")),
    ("next task, without replacement", "without replacement", permuted()),
):
    register(
        Claim(
            part=_part,
            statement=f"E F(k) <= E |X_tau(k) w_(k-1) - y_tau(k)|^2 + |w_0 - w*|^2 R^2 / k, "
            f"{_part.split(', ')[1]}, k >= 1",
            note="The proof needs exchangeable draws only, so with replacement any weights will do.",
            draw=_draw,
            missing=all_of(regression, projection, covers(_ordering), steps(1)),
            **_SAMPLE,
            **engines(_from_next),
        )
    )


def _from_loss(instance: Instance, numbers: Any) -> Sides:
    scale = setting_of(instance).scale
    rhs = 2 * numbers.loss(instance.k - 1) + scale / instance.k
    return Sides(numbers.forgetting(instance.k), rhs, 2 * numbers.doubt + ROUNDING * scale, how=numbers.how)


register(
    Claim(
        part="loss, with replacement",
        statement="E F(k) <= 2 E L(w_(k-1)) + |w_0 - w*|^2 R^2 / k, with replacement, k >= 1",
        draw=projected(),
        missing=all_of(regression, projection, covers("with replacement"), steps(1)),
        **_SAMPLE,
        **engines(_from_loss),
    )
)


def _identity(instance: Instance, numbers: Any) -> Sides:
    k, T = instance.k, instance.problem.num_tasks
    scale, doubt = setting_of(instance).scale + numbers.doubt, numbers.doubt
    following, off_next = asked(numbers, "next_loss", k) if k < T else (0.0, 0.0)
    seen, off_seen = asked(numbers, "forgetting", k)
    whole, off = asked(numbers, "loss", k)
    doubt += off + k / T * off_seen + (T - k) / T * off_next
    return Sides(whole, k / T * seen + (T - k) / T * following, doubt, scale or 1.0, numbers.how)


register(
    Claim(
        label="prop:loss_to_forgetting",
        part="regression",
        statement="E L(w_k) = k/T E F(k) + (T-k)/(2T) E |X_tau(k+1) w_k - y_tau(k+1)|^2, without replacement, k <= T",
        source=f"{PAPER}, Proposition prop:loss_to_forgetting",
        kind="equality",
        draw=permuted(),
        missing=all_of(regression, projection, covers("without replacement"), steps(1, last=0)),
        **engines(_identity),
    )
)
