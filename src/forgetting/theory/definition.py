"""The definitions of the paper in plain numpy: a second road to what schemes, sets and engines compute.

Both sides of a statement often come from the same engine, so that wrong dynamics would satisfy the statement as well.
Checks therefore compare the engine with this module wherever all orders of the tasks can be walked through: one step
after another, by `numpy.linalg.lstsq` for regression tasks and by `scipy.optimize.nnls` for polyhedra. Nothing here
uses the geometry, the gains, the projections or the engines of the package.
"""

from __future__ import annotations

from functools import singledispatch
from itertools import chain, permutations, product
from math import perm, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from forgetting.core.arrays import Array, IntArray, as_dense
from forgetting.core.numerical import rank_tolerance
from forgetting.dynamics.space import view_of
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.orderings.laws import Fixed, Independent, Law, Permutation, Reshuffled, Unknown
from forgetting.schemes import natural_scheme
from forgetting.sets import Affine, Ball, ConvexSet
from forgetting.tasks import RegressionTasks
from forgetting.theory.instance import Instance

MOST_STATES = 20_000  # orders that an exact value may take
MOST_ORDERS, MOST_PROJECTED = 300, 64  # orders that are walked through here: of regression tasks, and of other sets
MOST_TASKS, MOST_REPLAYED = 8, 60
MOST_CONDITION = 1e5  # sigma_max/sigma_min of a task, beyond which two roads may differ by rounding
APART = 1e-9  # by how much both roads may differ, of R^2 max |w_t|^2 + max L_m(w_t)


class Value(NamedTuple):
    """A quantity by its definition, and how far rounding may move it."""

    value: Array
    allowed: float


class DisagreementError(ForgettingError):
    """An engine and the definition differ.

    Attributes:
        name: the quantity on which they differ.
        computed, defined: its value by the engine, and by the definition.

    >>> print(DisagreementError("loss", 0.3, 0.25))
    loss: computed 0.3, but its definition gives 0.25
    """

    def __init__(self, name: str, computed: float, defined: float) -> None:
        super().__init__(f"{name}: computed {computed:.6g}, but its definition gives {defined:.6g}")
        self.name, self.computed, self.defined = name, float(computed), float(defined)


def law_of(instance: Instance) -> Law:
    """The law of the ordering, `Unknown` where there is no ordering."""
    return Unknown() if instance.ordering is None else instance.ordering.law


def equations(problem: RegressionTasks, task: int) -> tuple[Array, Array]:
    """(X_m, y_m) as they enter the loss, dense."""
    matrix, label = problem.equations(task)
    return as_dense(matrix), label


def all_orders(instance: Instance, k: int) -> IntArray:
    """Every order of k tasks, one per row: permutations, epochs, sequences of independent draws, or the given order.

    >>> import forgetting as fg
    >>> all_orders(Instance(fg.families.orthogonal(3), fg.orderings.WithoutReplacement(), k=2), 2).tolist()
    [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    >>> all_orders(Instance(fg.families.orthogonal(2), fg.orderings.Reshuffled(), k=3), 3).tolist()
    [[0, 1, 0], [0, 1, 1], [1, 0, 0], [1, 0, 1]]
    """
    T, law = instance.posed.num_tasks, law_of(instance)
    if orders_needed(instance, k) > MOST_STATES:
        raise NotSupportedError(f"more than {MOST_STATES} orders; use fewer tasks or steps")
    if isinstance(law, Fixed):
        return _given(instance, law, k)[None]
    if isinstance(law, Permutation | Reshuffled):
        parts = product(*(permutations(range(T), n) for n in _epochs(T, k)))
        rows = [tuple(chain.from_iterable(epochs)) for epochs in parts]
    else:
        rows = list(product(range(T), repeat=k))
    return np.array(rows, dtype=np.int64).reshape(len(rows), k)


def _epochs(T: int, k: int) -> list[int]:
    """The number of steps in each epoch of T, k in all."""
    return [T] * (k // T) + [k % T] * (k % T > 0)


def _given(instance: Instance, law: Fixed, k: int) -> IntArray:
    """The first k tasks of an order that is given."""
    assert instance.ordering is not None
    if law.sequence is not None:
        return np.array(law.sequence[:k], dtype=np.int64)
    return np.asarray(instance.ordering.first(view_of(instance.posed), k))


def _chances(instance: Instance, law: Independent) -> Array:
    """The probability of each task, from the weights that the law was made with."""
    weights = law.p(view_of(instance.posed)) if callable(law.p) else law.p
    given = np.ones(instance.posed.num_tasks) if weights is None else np.asarray(weights, dtype=float)
    return np.asarray(given / np.sum(given))


def orders_needed(instance: Instance, k: int) -> int:
    """The number of orders of k tasks."""
    T, law = int(instance.posed.num_tasks), law_of(instance)
    if isinstance(law, Permutation | Reshuffled):
        return prod(perm(T, n) for n in _epochs(T, k)) if k * np.log(max(T, 1)) < 400 else MOST_STATES * 1000
    if isinstance(law, Fixed):
        return 1
    return int(T**k) if k * np.log(max(T, 1)) < 40 else MOST_STATES * 1000


# ------------------------------------------------------------------------------------------------------------- steps


@singledispatch
def nearest(member: ConvexSet, w: Array) -> Array:
    """The point of a polyhedron {x: A x >= b} nearest to w, by least distance programming (Lawson and Hanson 1974).

    >>> from forgetting.sets import Halfspace
    >>> nearest(Halfspace([2.0, 0.0], 2.0), np.zeros(2)).round(12)
    array([1., 0.])
    """
    from scipy.optimize import nnls  # a third of a second, which bounds on their own need not wait for

    constraints = member.inequalities()
    if constraints is None:
        raise NotSupportedError(f"{member} has no definition in inequalities")
    A, b = constraints
    missing = b - A @ w
    if (missing <= 0).all():
        return w
    size = float(np.max(np.abs(missing)))
    stacked = np.vstack([A.T, missing[None] / size])
    target = np.zeros(len(w) + 1)
    target[-1] = 1.0
    residual = stacked @ nnls(stacked, target)[0] - target
    return np.asarray(w - size * residual[:-1] / residual[-1])


@nearest.register
def _(member: Affine, w: Array) -> Array:
    # an equation is two inequalities, of which rounding leaves none that both can be met
    return np.asarray(w + np.linalg.lstsq(member.A, member.b - member.A @ w, rcond=None)[0])


@nearest.register
def _(member: Ball, w: Array) -> Array:
    offset = w - member.center
    return np.asarray(member.center + offset / max(1.0, float(np.linalg.norm(offset)) / max(member.radius, 1e-300)))


def _condition(matrix: Array) -> float:
    """The largest singular value over the smallest that is not 0."""
    sigma = np.linalg.svd(matrix, compute_uv=False)
    sigma = sigma[sigma > rank_tolerance(matrix.shape) * np.max(sigma, initial=0.0)]
    return float(sigma[0] / sigma[-1]) if len(sigma) else 1.0


class _Defined:
    """The step and the loss of every task of an instance, by their definitions; k steps of ridge have k strengths."""

    def __init__(self, instance: Instance, k: int) -> None:
        problem = instance.posed
        scheme = instance.scheme or natural_scheme(problem)
        fitted, step = scheme.fitted_to(problem, k), scheme.as_sgd(radius=2.0)
        self.strengths = [fitted.at_step(t).penalty for t in range(1, k + 1)] if scheme.known_as else None
        if step is None and self.strengths is None:
            raise NotSupportedError(f"{instance.scheme} is not a projection, a gradient step or ridge")
        self.size, self.on_loss = (1.0, True) if step is None else (step.step_size, step.smoothness != 1)
        self.members = problem.members if problem.linear is not problem else ()
        self.signed = [problem.signed_rows(task) for task in range(problem.num_tasks)]
        self.data: list[tuple[Array, Array]] = []
        if not self.members:
            if problem.linear is None or problem.kernel is not None:
                raise NotSupportedError(f"{problem} has no definition in data or sets")
            self.data = [equations(instance.tasks, task) for task in range(problem.num_tasks)]
            if not self.on_loss and max(_condition(matrix) for matrix, _ in self.data) > MOST_CONDITION:
                raise NotSupportedError(f"a task has a condition number above {MOST_CONDITION:g}")
        self.radius = float(problem.radius or 1.0)

    def learn(self, task: int, points: Array, strength: float | None = None) -> Array:
        """One step on the task from each point; of ridge, if a strength is given."""
        if self.members:
            moved = np.array([nearest(self.members[task], w) for w in points]).reshape(points.shape)
            return np.asarray(points + self.size * (moved - points))
        matrix, label = self.data[task]
        missed = matrix @ points.T - label[:, None]
        way = matrix.T @ missed if self.on_loss else np.linalg.lstsq(matrix, missed, rcond=None)[0]
        if strength is not None:
            way = np.linalg.solve(matrix.T @ matrix + strength * np.eye(len(way)), way)
        return np.asarray(points - self.size * way.T)

    def losses(self, points: Array) -> Array:
        """The loss of every task at each point, (n, T)."""
        return np.column_stack([self._loss(task, points) for task in range(len(self.members) or len(self.data))])

    def _loss(self, task: int, points: Array) -> Array:
        rows = self.signed[task]
        if rows is not None:
            return np.asarray(0.5 * np.max(np.maximum(1 - points @ rows.T, 0.0), axis=1) ** 2)
        if self.members:
            gaps = points - np.array([nearest(self.members[task], w) for w in points]).reshape(points.shape)
        else:
            matrix, label = self.data[task]
            gaps = points @ matrix.T - label
        return np.asarray(0.5 * np.sum(gaps**2, axis=1))

    def along(self, orders: IntArray, start: Array) -> Array:
        """The iterates of each order, (n, k + 1, d)."""
        points = np.empty((len(orders), orders.shape[1] + 1, len(start)))
        points[:, 0] = start
        for t in range(orders.shape[1]):
            for task in np.unique(orders[:, t]):
                on = orders[:, t] == task
                points[on, t + 1] = self.learn(int(task), points[on, t], self.strengths[t] if self.strengths else None)
        return points

    def solution(self, start: Array) -> Array | None:
        """The common solution of regression tasks nearest to the start; None where rounding would move it."""
        if self.members:
            return None
        X, y = np.concatenate([matrix for matrix, _ in self.data]), np.concatenate([label for _, label in self.data])
        if _condition(X) > MOST_CONDITION:
            return None
        return np.asarray(start + np.linalg.lstsq(X, y - X @ start, rcond=None)[0])

    def allowed(self, points: Array, losses: Array) -> float:
        """The difference between two computations of a loss that rounding may explain."""
        return APART * (self.radius**2 * float(np.max(np.sum(points**2, axis=-1))) + float(np.max(losses)))


# ------------------------------------------------------------------------------------------------------ comparisons


def expectations(instance: Instance, k: int) -> dict[str, Value]:
    """The quantities of w_k by their definitions, as a mean over all orders.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.two_lines(np.pi / 3), fg.orderings.WithReplacement(), 2)
    >>> {name: round(float(expectations(case, 2)[name].value), 6) for name in ("loss", "forgetting", "regret")}
    {'loss': 0.087891, 'forgetting': 0.017578, 'regret': 0.132812}
    """
    problem, law, T = instance.posed, law_of(instance), instance.posed.num_tasks
    few = MOST_ORDERS if problem.linear is problem else MOST_PROJECTED
    if not isinstance(law, Independent | Permutation | Reshuffled | Fixed):
        raise NotSupportedError(f"the orders of {instance.ordering} cannot be listed")
    if T > MOST_TASKS or k > MOST_REPLAYED or orders_needed(instance, k) > few:
        raise NotSupportedError("too many orders, or too long ones, to walk through")
    defined, orders = _Defined(instance, k), all_orders(instance, k)
    share = _chances(instance, law) if isinstance(law, Independent) else np.full(T, 1 / T)
    chances = np.prod(share[orders], axis=1) if isinstance(law, Independent) else np.full(len(orders), 1 / len(orders))
    points = defined.along(orders, instance.start)
    losses = np.stack([defined.losses(points[:, t]) for t in range(k + 1)], axis=1)
    now, runs = losses[:, -1], np.arange(len(orders))[:, None]
    values: dict[str, Array] = {"loss": chances @ now.mean(axis=1), "task_losses": chances @ now}
    if k:
        at = np.arange(k)
        mean = defined.losses(points[:, :-1].mean(axis=1))
        values["averaged_loss"], values["averaged_task_losses"] = chances @ mean.mean(axis=1), chances @ mean
        values["seen_loss"] = chances @ now[runs, orders].mean(axis=1)
        values["forgetting"] = values["seen_loss"] - chances @ losses[runs, at + 1, orders].mean(axis=1)
        values["regret"] = chances @ losses[runs, at, orders].mean(axis=1)
    if isinstance(law, Independent):
        values["next_loss"] = chances @ (now @ share)
    elif isinstance(law, Permutation) and k < T:
        left = np.ones_like(now)
        left[runs, orders] = 0
        values["next_loss"] = chances @ (np.sum(now * left, axis=1) / (T - k))
    allowed = dict.fromkeys(values, defined.allowed(points, losses))
    if (solution := defined.solution(instance.start)) is not None:
        squares = np.sum((points - solution) ** 2, axis=2)
        values["error"], allowed["error"] = chances @ squares[:, -1], 100 * APART * float(np.max(squares))
    return {name: Value(value, allowed[name]) for name, value in values.items()}


def compare(instance: Instance, k: int, name: str, computed: Array | float, doubt: float = 0.0) -> None:
    """Raise `DisagreementError` if a computed expectation is not what its definition gives, where that can be told."""
    try:
        values = expectations(instance, k)
    except NotSupportedError:
        return
    if name in values:
        _agree(name, computed, values[name].value, doubt + values[name].allowed)


def replay(instance: Instance, order: IntArray, iterates: Array) -> None:
    """Raise `DisagreementError` if these are not the iterates of this order, or if the ordering gives another order."""
    if len(order) > MOST_REPLAYED:
        return
    law = law_of(instance)
    if isinstance(law, Fixed):
        _agree("order", order, _given(instance, law, len(order)), 0.0)
    if isinstance(law, Permutation):
        _agree("number of different tasks", len(set(order.tolist())), len(order), 0.0)
    try:
        points = _Defined(instance, len(order)).along(order[None], instance.start)[0]
    except NotSupportedError:
        return
    _agree("iterates", iterates, points, 100 * APART * float(np.max(np.abs(points))))


def check_point(instance: Instance, task: int, w: Array, computed: Array) -> None:
    """Raise `DisagreementError` if a point is not the point nearest to w in the set of the task."""
    try:
        point = nearest(instance.posed.members[task], w)
    except NotSupportedError:
        return
    _agree("projection", computed, point, 100 * APART * float(np.max(np.abs([w, point]))))


def check_projections(instance: Instance, tasks: list[int], computed: list[Array]) -> None:
    """Raise `DisagreementError` if these matrices are not X_m^+ X_m of the tasks, up to 50 x 50."""
    for task, matrix in zip(tasks, computed, strict=True):
        rows = equations(instance.tasks, task)[0]
        if max(rows.shape) <= 50 and _condition(rows) <= MOST_CONDITION:
            _agree("projection", matrix, np.linalg.lstsq(rows, rows, rcond=None)[0], 1e-8)


def losses_after(instance: Instance, orders: IntArray, tasks: IntArray) -> Array:
    """The loss that each order, one per row, ends with on a task of its own.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1)
    >>> losses_after(case, np.array([[0], [0]]), np.array([0, 1])).round(12)
    array([0.  , 0.25])
    """
    defined = _Defined(instance, orders.shape[1])
    last = defined.losses(defined.along(orders, instance.start)[:, -1])
    return np.asarray(last[np.arange(len(orders)), tasks])


def _agree(name: str, computed: ArrayLike, defined: ArrayLike, allowed: float) -> None:
    left, right = np.broadcast_arrays(np.asarray(computed, dtype=float), np.asarray(defined, dtype=float))
    gaps = np.abs(left - right)
    if gaps.size and not np.max(gaps) <= allowed:
        worst = np.unravel_index(int(np.argmax(gaps)), gaps.shape)
        raise DisagreementError(name, float(left[worst]), float(right[worst]))
