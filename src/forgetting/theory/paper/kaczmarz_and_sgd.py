"""Section 3: from continual regression to block Kaczmarz to SGD on a modified objective."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.schemes import GradientDescent, Kaczmarz
from forgetting.theory.checking import ROUNDING, all_of, regression, trajectory
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import equations
from forgetting.theory.draws import points, projected, realizable
from forgetting.theory.expectations import distinct
from forgetting.theory.instance import Instance
from forgetting.theory.verdict import Sides


def modified_loss(instance: Instance, task: int, w: Array) -> float:
    """f_m(w) = 1/2 |X_m^+ (X_m w - y_m)|^2, as the paper writes it.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), None, 1)
    >>> round(modified_loss(case, 0, np.zeros(2)), 12)
    0.25
    """
    return _half_square(_pinv(instance, task), *equations(instance.tasks, task), w)


def _half_square(pinv: Array, matrix: Array, label: Array, w: Array) -> float:
    step = pinv @ (matrix @ w - label)
    return 0.5 * float(step @ step)


def modified_gradient(instance: Instance, task: int, w: Array) -> Array:
    """The gradient of f_m by central differences, which are exact for quadratics up to rounding."""
    width = float(np.linalg.norm(w)) + _scale(instance) or 1.0
    shifts = width * np.eye(len(w))
    setting = _pinv(instance, task), *equations(instance.tasks, task)
    return np.array([(_half_square(*setting, w + h) - _half_square(*setting, w - h)) / (2 * width) for h in shifts])


def _pinv(instance: Instance, task: int) -> Array:
    matrix = equations(instance.tasks, task)[0]
    return np.asarray(np.linalg.pinv(matrix, rcond=max(matrix.shape) * np.finfo(float).eps))


def _missed(instance: Instance, task: int, w: Array) -> Array:
    matrix, label = equations(instance.tasks, task)
    return np.asarray(matrix @ w - label)


def _scale(instance: Instance) -> float:
    start = instance.start
    return float(np.linalg.norm(start - instance.tasks.nearest_solution(start)) + np.linalg.norm(start))


def _condition(instance: Instance) -> float:
    geometry = instance.tasks.geometry
    worst = [geometry.sigma[geometry.block(m)] for m in range(geometry.num_distinct)]
    return float(max((s[0] / s[-1] for s in worst if len(s)), default=1.0))


@declare_claim(
    label="reduc:cl_to_kaczmarz",
    statement="gradient descent on each task to convergence and block Kaczmarz have the same iterates w_1, ..., w_k",
    kind="equality",
    note="Gradient descent stops at a relative residual of 1e-13, which moves w by up to cond(X_m) times that.",
    missing=all_of(regression, lambda i: None if _condition(i) <= 50 else "is checked for cond(X_m) <= 50"),
    draw=projected(most=20),
)
def _(instance: Instance) -> Sides:
    runs = trajectory(instance, Kaczmarz()), trajectory(instance, GradientDescent())
    gap = float(np.max(np.linalg.norm(runs[0].iterates - runs[1].iterates, axis=1)))
    scale = _scale(instance)
    return Sides(gap, 0.0, 1e-11 * instance.k * _condition(instance) * scale, scale, "one run each")


@declare_claim(
    label="reduc:kaczmarz",
    statement="block Kaczmarz and SGD of step size 1 on f_m(w) = 1/2 |X_m^+ (X_m w - y_m)|^2 have the same iterates",
    kind="equality",
    note="The gradient is a central difference of f_m, so that it does not use the formula of lem:cl_gd_equiv.",
    missing=regression,
    draw=projected(most=20),
)
def _(instance: Instance) -> Sides:
    run = trajectory(instance, Kaczmarz())
    w, gap = instance.start, 0.0
    for t, task in enumerate(run.order.tolist()):
        w = w - modified_gradient(instance, task, w)
        gap = max(gap, float(np.linalg.norm(w - run.iterates[t + 1])))
    scale = _scale(instance)
    return Sides(gap, 0.0, 1e-12 * instance.k * _condition(instance) * scale, scale or 1.0, "one run each")


# eq:rank1_sgd ---------------------------------------------------------------------------------------------------------


def _single_rows(rng: np.random.Generator, index: int) -> Instance:
    """Tasks of one row each: the first row of each task of a drawn collection, where it is not 0."""
    case = projected(most=20)(rng, index)
    rows = [equations(case.tasks, task)[0][:1] for task in distinct(case.tasks)]
    return replace(case, problem=realizable([row for row in rows if row.any()], case.tasks.w_star))


def _one_row(instance: Instance) -> str | None:
    """Condition: each task has one row, which is not 0."""
    matrices = [equations(instance.tasks, task)[0] for task in distinct(instance.tasks)]
    single = all(len(matrix) == 1 and matrix.any() for matrix in matrices)
    return None if single else "is about tasks of one row that is not 0"


@declare_claim(
    label="eq:rank1_sgd",
    statement="on tasks of one row x, Kaczmarz steps are w - (x.w - y) x / |x|^2 = w - grad L(w) / |x|^2",
    kind="equality",
    note="Steps of `Kaczmarz` against the two formulas, with a gradient by central differences of the loss.",
    missing=all_of(regression, _one_row),
    draw=_single_rows,
)
def _(instance: Instance) -> Sides:
    run = trajectory(instance, Kaczmarz())
    w, gap = instance.start, 0.0
    width = _scale(instance) or 1.0
    for t, task in enumerate(run.order.tolist()):
        (x,), (y,) = equations(instance.tasks, task)
        above, below = (((w + side * np.eye(len(w))) @ x - y) ** 2 / 2 for side in (width, -width))
        steps = (x @ w - y) * x / (x @ x), (above - below) / (2 * width) / (x @ x)
        gap = max(gap, *(float(np.linalg.norm(w - step - run.iterates[t + 1])) for step in steps))
        w = w - steps[0]
    return Sides(gap, 0.0, 1e-12 * instance.k * width, width, "one run each")


# lem:cl_gd_equiv ------------------------------------------------------------------------------------------------------


_modified = partial(declare_claim, label="lem:cl_gd_equiv", missing=regression)


@_modified(part="upper bound", statement="L_m(w) <= R^2 f_m(w), for every w", draw=points("task", "w"))
def _(instance: Instance, task: int, w: Array) -> Sides:
    lhs = instance.tasks.task_loss(task, w)
    rhs = instance.tasks.radius**2 * modified_loss(instance, task, w)
    noise = ROUNDING * instance.tasks.radius**2 * (float(np.linalg.norm(w)) + _scale(instance)) ** 2
    return Sides(lhs, rhs, noise)


@_modified(
    part="gradient",
    statement="grad f_m(w) = X_m^+ X_m w - X_m^+ y_m",
    kind="equality",
    note="The gradient is a central difference, and is also compared with w - P_m(w), P_m the projection that the "
    "library computes.",
    draw=points("task", "w"),
)
def _(instance: Instance, task: int, w: Array) -> Sides:
    gradient = modified_gradient(instance, task, w)
    formula, step = _pinv(instance, task) @ _missed(instance, task, w), w - instance.tasks.project(task, w)
    gap = max(float(np.linalg.norm(gradient - formula)), float(np.linalg.norm(gradient - step)))
    scale = float(np.linalg.norm(w)) + _scale(instance)
    return Sides(gap, 0.0, 1e-12 * scale * _condition(instance), scale or 1.0, "central differences")


@_modified(
    part="convex and smooth",
    statement="f_m is convex and 1-smooth: |g(w) - g(z)|^2 <= <g(w) - g(z), w - z> for its gradient g (Baillon-Haddad)",
    draw=points("task", "w", "z"),
)
def _(instance: Instance, task: int, w: Array, z: Array) -> Sides:
    pinv, (matrix, _) = _pinv(instance, task), equations(instance.tasks, task)
    change = pinv @ (matrix @ (w - z))
    return Sides(float(change @ change), float(change @ (w - z)), ROUNDING * float((w - z) @ (w - z)))
