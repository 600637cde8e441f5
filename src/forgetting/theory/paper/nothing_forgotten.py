"""Section 2 and Appendix A: forgetting is not regret, and there are data and schemes with which nothing is forgotten.

What the engines or a run give is compared with a closed form, or with least squares on the stacked rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import comb

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.space import view_of
from forgetting.orderings import Explicit, Ordering, WithoutReplacement, WithReplacement
from forgetting.orderings.laws import Fixed, Independent, Permutation
from forgetting.schemes import RecursiveLeastSquares
from forgetting.theory.checking import ROUNDING, all_of, covers, paths, projection, regression, steps, trajectory
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import equations
from forgetting.theory.draws import Rng, projected, realizable
from forgetting.theory.expectations import Expected, probabilities
from forgetting.theory.instance import Instance
from forgetting.theory.verdict import Missing, Sides

MOST_TASKS = 1000  # whose rows are compared in pairs
_PROJECTED = all_of(regression, projection, covers("any"), steps(1))


def _single_rows(instance: Instance) -> tuple[Array, Array] | None:
    """The rows x_m and the labels y_m of at most 1000 tasks with one nonzero row each; None for other tasks."""
    if instance.tasks.num_tasks > MOST_TASKS:
        return None
    tasks = [equations(instance.tasks, task) for task in range(instance.tasks.num_tasks)]
    if any(len(matrix) != 1 or not matrix.any() for matrix, _ in tasks):
        return None
    return np.concatenate([matrix for matrix, _ in tasks]), np.concatenate([label for _, label in tasks])


def _starting_losses(instance: Instance) -> Array:
    """L_m(w_0) of tasks of one row."""
    rows = _single_rows(instance)
    assert rows is not None
    return np.asarray((rows[0] @ instance.start - rows[1]) ** 2 / 2)


def _given_order(instance: Instance) -> IntArray | None:
    """The tasks of an ordering that is the same in every run, or None."""
    ordering = instance.ordering
    if ordering is None or not isinstance(ordering.law, Fixed):
        return None
    return ordering.first(view_of(instance.posed), instance.k)


def _frame(rng: Rng, size: int) -> Array:
    """Orthonormal rows, in as many dimensions as rows or a few more."""
    return np.linalg.qr(rng.standard_normal((size + int(rng.integers(3)), size)))[0].T


def _vector(rng: Rng, frame: Array) -> Array:
    return np.asarray(rng.standard_normal(frame.shape[1]))


# text:regret ----------------------------------------------------------------------------------------------------------


def _each_once(cosines: Callable[[int], Array], words: str) -> Missing:
    """k tasks of one row, each learned once, whose rows in the order of learning have one norm and these cosines."""

    def missing(instance: Instance) -> str | None:
        rows, order, k = _single_rows(instance), _given_order(instance), instance.k
        if rows is not None and order is not None and instance.tasks.num_tasks == k == len(set(order.tolist())):
            learned = rows[0][order] / np.max(np.linalg.norm(rows[0], axis=1))
            if np.allclose(learned @ learned.T, cosines(k), rtol=0, atol=1e-12):
                return None
        return f"is about at most {MOST_TASKS} {words}, each learned once"

    return missing


def _angles(k: int) -> Array:
    return np.linspace(0, np.pi / 2, k)


def _on_the_first(instance: Instance) -> str | None:
    losses, order = _starting_losses(instance), _given_order(instance)
    assert order is not None
    return None if losses[order[0]] <= 1e-24 * losses.max() else "is about a start that solves the first task"


def _drawn_rows(rng: Rng, rows: Array, w_star: Array) -> Instance:
    """Rows of any norm, numbered at random, learned in the order given."""
    k = len(rows)
    number = rng.permutation(k)
    tasks = realizable([row[None] for row in rows[number] * 10.0 ** rng.uniform(-2, 2)], w_star)
    return Instance(tasks, Explicit(np.argsort(number)), k)


def _turning(rng: Rng, index: int) -> Instance:
    k, frame = (2 + index if index < 40 else int(rng.integers(2, 100))), _frame(rng, 2)
    rows = np.column_stack([-np.sin(_angles(k)), np.cos(_angles(k))]) @ frame
    return _drawn_rows(rng, rows, 10.0 ** rng.uniform(-2, 2) * frame[0])


def _orthogonal(rng: Rng, index: int) -> Instance:
    frame = _frame(rng, 1 + index % 8)
    return _drawn_rows(rng, frame, 10.0 ** rng.uniform(-2, 2) * _vector(rng, frame))


def _regret_above_forgetting(closed_form: Callable[[Instance], float], instance: Instance, numbers: Expected) -> Sides:
    k = instance.k
    lhs = numbers.regret_sum(k) / k - numbers.forgetting(k)
    scale = 2 * float(np.max(_starting_losses(instance)))
    return Sides(lhs, closed_form(instance), numbers.doubt + k * ROUNDING * scale, scale or 1.0, numbers.how)


def _turned(instance: Instance) -> float:
    k, losses = instance.k, _starting_losses(instance)
    left = np.cos(np.pi / (2 * k - 2)) ** (2 * k - 2) if k > 2 else 0.0
    return float(2 * np.max(losses) * ((1 - left) / (2 * k) - left / 4))


_regret = partial(declare_claim, label="text:regret", kind="equality")
_regret(
    part="no forgetting",
    statement="orthogonal rows, each learned once: regret - forgetting = mean_m L_m(w_0), as much as regret can be "
    "(lem:regret_bound), and forgetting is 0",
    missing=all_of(_PROJECTED, _each_once(np.eye, "orthogonal rows of one norm")),
    draw=_orthogonal,
)(paths(partial(_regret_above_forgetting, lambda instance: float(np.mean(_starting_losses(instance))))))
_regret(
    part="little regret",
    statement="k lines turned evenly by 90 degrees, in this order, from a start on the first: regret - forgetting = "
    "|w_0 - w*|^2 R^2 ((1 - q)/(2k) - q/4), q = cos(pi/(2k-2))^(2k-2): forgetting tends to 1/4, regret to 0",
    missing=all_of(
        _PROJECTED,
        steps(2),
        _each_once(lambda k: np.cos(_angles(k)[:, None] - _angles(k)), "lines turned evenly by 90 degrees"),
        _on_the_first,
    ),
    draw=_turning,
)(paths(partial(_regret_above_forgetting, _turned)))

# text:nlms ------------------------------------------------------------------------------------------------------------


def _directions(rng: Rng, index: int) -> Instance:
    """Tasks of one row along a few orthogonal directions, of any norm and sign, in a random or given order."""
    frame, T = _frame(rng, int(rng.integers(1, 5))), int(rng.integers(1, 9))
    rows = frame[rng.integers(len(frame), size=T)] * (rng.choice([-1, 1], T) * 10.0 ** rng.uniform(-2, 2, T))[:, None]
    tasks = realizable([row[None] for row in rows], _vector(rng, frame))
    k = int(rng.integers(1, T + 1)) if index % 3 == 1 else int(rng.integers(1, 12))
    orderings: list[Ordering] = [
        WithReplacement(rng.dirichlet(np.ones(T)) + 1e-12), WithoutReplacement(), Explicit(rng.integers(T, size=k)),
    ]  # fmt: skip
    return Instance(tasks, orderings[index % 3], k, w0=_vector(rng, frame))


def _parallel(instance: Instance) -> Array | None:
    """The (T, T) matrix with 1 where rows are parallel and 0 where they are orthogonal; None if some are neither."""
    rows = _single_rows(instance)
    if rows is None:
        return None
    units = rows[0] / np.linalg.norm(rows[0], axis=1, keepdims=True)
    cosines = abs(units @ units.T)
    return np.rint(cosines) if np.allclose(cosines, np.rint(cosines), rtol=0, atol=1e-12) else None


def _unseen(instance: Instance) -> Array:
    """The probability that no task parallel to m is among the first k, for every task m."""
    parallel, order, k = _parallel(instance), _given_order(instance), instance.k
    assert parallel is not None
    assert instance.ordering is not None
    if order is not None:
        return np.asarray(parallel[:, order].sum(axis=1) == 0, dtype=float)
    if isinstance(instance.ordering.law, Independent):
        return np.asarray((1 - parallel @ probabilities(instance)) ** k)
    T = instance.tasks.num_tasks
    return np.array([comb(T - int(many), k) / comb(T, k) for many in parallel.sum(axis=1)])


def _nothing(instance: Instance, numbers: Expected) -> Sides:
    scale = float(np.max(_starting_losses(instance)))
    return Sides(numbers.forgetting(instance.k), 0.0, numbers.doubt + ROUNDING * scale, scale or 1.0, numbers.how)


def _only_unseen(instance: Instance, numbers: Expected) -> Sides:
    losses = _starting_losses(instance)
    scale = float(np.max(losses))
    rhs = float(np.mean(losses * _unseen(instance)))
    return Sides(numbers.loss(instance.k), rhs, numbers.doubt + ROUNDING * scale, scale or 1.0, numbers.how)


_ORTHOGONAL_OR_PARALLEL = all_of(
    _PROJECTED,
    lambda i: f"is about at most {MOST_TASKS} rows, orthogonal or parallel" if _parallel(i) is None else None,
)


def _known_law(instance: Instance) -> bool:
    return instance.ordering is not None and isinstance(instance.ordering.law, Fixed | Independent | Permutation)


_nlms = partial(declare_claim, label="text:nlms", kind="equality", draw=_directions)
_nlms(
    part="forgetting",
    statement="rows that are pairwise orthogonal or parallel: F(k) = 0 in every order",
    missing=_ORTHOGONAL_OR_PARALLEL,
)(paths(_nothing))
_nlms(
    part="loss",
    statement="rows that are pairwise orthogonal or parallel: E L(w_k) = mean_m P(none of the first k tasks is "
    "parallel to m) L_m(w_0), what is still unseen",
    missing=all_of(
        _ORTHOGONAL_OR_PARALLEL,
        lambda i: None if _known_law(i) else "is checked for independent draws, permutations and given orders",
    ),
)(paths(_only_unseen))

# text:rls -------------------------------------------------------------------------------------------------------------


def _stacked(instance: Instance, order: IntArray) -> tuple[Array, Array, float]:
    """The rows and the labels of the tasks seen, each task over its norm, and the condition number of the rows."""
    tasks = [equations(instance.tasks, task) for task in dict.fromkeys(order.tolist())]
    sizes = [float(np.linalg.norm(matrix, 2)) or 1.0 for matrix, _ in tasks]
    rows = np.concatenate([matrix / size for (matrix, _), size in zip(tasks, sizes, strict=True)])
    values = np.linalg.svd(rows, compute_uv=False)
    values = values[values > 1e-9 * values[0]]
    labels = np.concatenate([label / size for (_, label), size in zip(tasks, sizes, strict=True)])
    return rows, labels, float(values[0] / values[-1]) if len(values) else 1.0


def _separated(instance: Instance) -> str | None:
    condition = _stacked(instance, trajectory(instance).order)[2]
    return None if condition <= 1e4 else "is checked where the stacked rows have a condition number of at most 1e4"


_rls = partial(
    declare_claim, label="text:rls", kind="equality", missing=all_of(_PROJECTED, _separated), draw=projected(most=20)
)


@_rls(part="forgetting", statement="recursive least squares: F(k) = mean_t L_tau(t)(w_k) = 0 in every order")
def _(instance: Instance) -> Sides:
    run = trajectory(instance, RecursiveLeastSquares())
    losses = []
    for task in run.order.tolist():
        matrix, label = equations(instance.tasks, task)
        losses.append(float(np.sum((matrix @ run.iterates[-1] - label) ** 2)) / 2)
    gap = instance.start - instance.tasks.nearest_solution(instance.start)
    scale = instance.tasks.radius**2 * float(gap @ gap + instance.start @ instance.start) or 1.0
    return Sides(float(np.mean(losses)), 0.0, ROUNDING * scale, scale, "one run")


@_rls(
    part="iterate",
    statement="recursive least squares: w_k = w_0 + X^+ (y - X w_0), X and y the rows and labels of all tasks seen",
)
def _(instance: Instance) -> Sides:
    run, start = trajectory(instance, RecursiveLeastSquares()), instance.start
    rows, labels, condition = _stacked(instance, run.order)
    nearest = start + np.linalg.lstsq(rows, labels - rows @ start, rcond=1e-9)[0]
    scale = float(np.linalg.norm(start) + np.linalg.norm(instance.tasks.w_star)) or 1.0
    gap = float(np.linalg.norm(run.iterates[-1] - nearest))
    return Sides(gap, 0.0, ROUNDING * condition**2 * scale, scale, "one run")
