"""Appendix E.2, inside the proof of `lem:wor_generalization`: smooth losses, steps that do not expand, swapped tasks.

One side of each statement comes from the library, and the other from the definition: the formulas of a step and of a
loss on the matrices of the tasks, and all permutations one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import permutations
from math import perm
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.geometry import lift
from forgetting.schemes import SGD
from forgetting.theory.checking import (
    ROUNDING,
    all_of,
    convex_sets,
    covers,
    least_squares,
    regression,
    steps,
    trajectory,
)
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import check_point, equations
from forgetting.theory.draws import descents, points
from forgetting.theory.expectations import Engine, Numbers, as_least_squares
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import cite
from forgetting.theory.paper.last_iterate import unit
from forgetting.theory.paper.stability import few_tasks
from forgetting.theory.precise import Precise, at_full_precision
from forgetting.theory.set_draws import sets
from forgetting.theory.verdict import CheckPaths, Draw, Sides

Numeric = Any  # arrays of floats, or of decimal numbers
_Lift = Callable[[Any], Numeric]
MOST_PERMUTATIONS = 720


def _half_square(vector: Numeric) -> Any:
    return (vector @ vector) / 2


def _stretched(draw: Draw) -> Draw:
    """The draw, with z opposite of what w misses every other time, where the inequality is an equality."""

    def stretched(rng: np.random.Generator, index: int) -> Instance:
        case = draw(rng, index)
        if index % 2:
            return case
        w = case.extra("w")
        return replace(case, extras={**case.extras, "z": 2 * w - case.posed.project(int(case.extra("task")), w)})

    return stretched


# eq:h-bound -----------------------------------------------------------------------------------------------------------

_smooth = partial(declare_claim, label="eq:h-bound")
_H_BOUND = "|h(z) - h(w)| <= h(w) + beta |z - w|^2"
_TWICE = "Equality where z misses the task by twice as much as w does."


def _h_bound(instance: Instance, number: _Lift) -> tuple[Any, Any]:
    """|h(z) - h(w)| and the right side for the loss of the task, from its matrix."""
    matrix, label = map(number, equations(instance.tasks, int(instance.extra("task"))))
    w, z = number(instance.extra("w")), number(instance.extra("z"))
    h = [_half_square(matrix @ point - label) for point in (w, z)]
    return abs(h[1] - h[0]), h[0] + 2 * number(instance.tasks.radius) ** 2 * _half_square(z - w)


@at_full_precision
def _h_bound_exactly(instance: Instance) -> Sides:
    lhs, rhs = _h_bound(instance, lift)
    return Sides(float(lhs), float(rhs), how="50 digits")


@_smooth(
    part="least squares",
    statement=f"{_H_BOUND} for the loss h of a task that w* solves, beta = R^2",
    note=_TWICE,
    missing=regression,
    draw=_stretched(points("task", "w", "z")),
    precise=_h_bound_exactly,
)
def _(instance: Instance, task: int, w: Array, z: Array) -> Sides:
    tasks = instance.tasks
    size = sum(float(np.linalg.norm(point)) for point in (w, z, tasks.w_star))
    lhs = abs(tasks.task_loss(task, z) - tasks.task_loss(task, w))
    return Sides(lhs, _h_bound(instance, np.asarray)[1], ROUNDING * tasks.radius**2 * size**2)


@_smooth(
    part="sets",
    statement=f"{_H_BOUND} for h = dist^2/2 to a convex set, beta = 1",
    note=f"{_TWICE} The paper uses it so for projections (thm:pocs-rate).",
    missing=convex_sets,
    draw=_stretched(sets("task", "w", "z")),
)
def _(instance: Instance, task: int, w: Array, z: Array) -> Sides:
    problem = instance.posed
    for point in (w, z):
        check_point(instance, task, point, problem.project(task, point))
    before, after = problem.distances(w)[task] ** 2 / 2, problem.distances(z)[task] ** 2 / 2
    rhs = _half_square(w - problem.project(task, w)) + 2 * _half_square(z - w)
    return Sides(abs(after - before), rhs, 1e-12 * float(w @ w + z @ z))


# Steps that do not expand ---------------------------------------------------------------------------------------------


def _two_starts(rng: np.random.Generator, index: int) -> Instance:
    """A run of SGD and a second start; one step size in four is 1/beta, and one is 2/beta."""
    case = descents("sequence", most=40)(rng, index)
    x = {0: 1.0, 1: 2.0}.get(index % 4)
    scheme = case.scheme if x is None else SGD(x / case.tasks.radius**2, "loss")
    away = 10.0 ** rng.uniform(-1, 1) * rng.standard_normal(case.tasks.dim)
    return replace(case, scheme=scheme, extras={"z": case.start + away})


def _apart(instance: Instance, order: list[int], number: _Lift) -> tuple[Any, Any]:
    """|w_k - z_k|^2 of runs from w_0 and from z, and |w_0 - z|^2 less what each step takes away at least."""
    eta, beta = number(instance.scheme.step_size), number(instance.tasks.radius) ** 2  # type: ignore[union-attr]
    gap = number(instance.start) - number(instance.extra("z"))
    rest = gap @ gap
    for task in order:
        matrix = number(equations(instance.tasks, task)[0])
        seen = matrix @ gap
        rest = rest - eta * (2 - eta * beta) * (seen @ seen)
        gap = gap - eta * (matrix.T @ seen)
    return gap @ gap, rest


@at_full_precision
def _apart_exactly(instance: Instance) -> Sides:
    case = as_least_squares(instance)
    lhs, rhs = _apart(case, trajectory(case, case.scheme).order.tolist(), lift)
    return Sides(float(lhs), float(rhs), how="50 digits")


@declare_claim(
    label="lem:wor_generalization",
    part="steps do not expand",
    statement="|w_k - z_k|^2 <= |w_0 - z_0|^2 - eta (2 - eta beta) sum_t |A_t (w_t - z_t)|^2 for two runs of SGD in "
    "one order, A_t the matrix of task t: at most |w_0 - z_0|^2 for eta <= 2/beta",
    source=f"{cite('lem:wor_generalization')}, in the proof, from Hardt et al. 2016, Lemma 3.6",
    note="The paper uses that steps of eta <= 2/beta do not expand distances. What a step takes away is added here, so "
    "that there is something to check at every eta: equality at eta |A_t|^2 = 1 or at rank 1.",
    missing=all_of(least_squares(0, 2, closed=True), covers("any"), steps(1)),
    draw=_two_starts,
    precise=_apart_exactly,
)
def _(instance: Instance, z: Array) -> Sides:
    case = as_least_squares(instance)
    runs = [trajectory(start, case.scheme) for start in (case, replace(case, w0=z))]
    gap = runs[0].iterates[-1] - runs[1].iterates[-1]
    size = case.start @ case.start + z @ z + case.tasks.w_star @ case.tasks.w_star
    rhs = _apart(case, runs[0].order.tolist(), np.asarray)[1]
    return Sides(gap @ gap, rhs, ROUNDING * case.k * float(size), how="one run each")


# eq:wor_stab_main -----------------------------------------------------------------------------------------------------


def _swaps(instance: Instance, number: _Lift) -> tuple[Any, Any]:
    """Means over all permutations pi and i < k, w' being w_k of pi with i and k swapped.

    E [f(w_k; pi_k) - f(w'; pi_k)] and E f(w_k; pi_k) + beta E |w' - w_k|^2.
    """
    k, T = instance.k, instance.tasks.num_tasks
    tasks = [tuple(map(number, equations(instance.tasks, task))) for task in range(T)]
    eta, beta = number(instance.scheme.step_size), number(instance.tasks.radius) ** 2  # type: ignore[union-attr]

    @cache
    def after(order: tuple[int, ...]) -> Numeric:
        if not order:
            return number(instance.start)
        w, (matrix, label) = after(order[:-1]), tasks[order[-1]]
        return w - eta * (matrix.T @ (matrix @ w - label))

    change, bound = number(0.0), number(0.0)
    for order in permutations(range(T), k + 1):
        w, (matrix, label) = after(order[:k]), tasks[order[k]]
        loss = _half_square(matrix @ w - label)
        for i in range(k):
            swapped = after((*order[:i], order[k], *order[i + 1 : k]))
            change = change + loss - _half_square(matrix @ swapped - label)
            bound = bound + loss + 2 * beta * _half_square(swapped - w)
    return change / (k * perm(T, k + 1)), bound / (k * perm(T, k + 1))


def _few(instance: Instance) -> str | None:
    count = perm(instance.tasks.num_tasks, instance.k + 1)
    return None if count <= MOST_PERMUTATIONS else f"is checked on at most {MOST_PERMUTATIONS} permutations"


def _against_permutations(bound: bool) -> CheckPaths:
    """The next loss less the loss on what was seen, by the engines; the other side over all permutations."""

    def check(engine: Engine, number: _Lift, instance: Instance) -> Sides:
        case = as_least_squares(instance)
        numbers = engine(case)
        lhs = numbers.next_loss(case.k) - numbers.in_sample(case.k)
        doubt, scale = numbers.doubt + ROUNDING * unit(case), (unit(case) or 1.0)
        change, most = map(float, _swaps(case, number))
        return Sides(*((abs(lhs), most) if bound else (lhs, change)), doubt, scale, f"{numbers.how}, all permutations")

    return CheckPaths(partial(check, Numbers, np.asarray), at_full_precision(partial(check, Precise, lift)))


_swapped = partial(
    declare_claim,
    label="eq:wor_stab_main",
    missing=all_of(least_squares(0, 2, closed=True), covers("without replacement"), steps(1, last=1), _few),
    draw=few_tasks,
    note="The left side is exact by the sets of tasks seen, and the right side goes through all permutations.",
)
_SEEN = "E f(w_k; pi_k) - E mean_(i<k) f(w_k; pi_i)"
_swapped(
    part="bound",
    statement=f"|{_SEEN}| <= E f(w_k; pi_k) + beta mean_(i<k) E |w_k of pi with i and k swapped - w_k|^2, without "
    "replacement, 1 <= k <= T-1",
)(_against_permutations(bound=True))
_swapped(
    part="equality",
    statement=f"{_SEEN} = mean_(i<k) E [f(w_k; pi_k) - f(w_k of pi with i and k swapped; pi_k)], without replacement, "
    "1 <= k <= T-1",
    kind="equality",
)(_against_permutations(bound=False))
