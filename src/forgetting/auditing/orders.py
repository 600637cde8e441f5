"""Orders of all tasks: learned many at a time, their values after a pass, and the extreme ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from forgetting.compute.devices import as_device
from forgetting.compute.threads import cores
from forgetting.core.arrays import Array, IntArray, as_index, task_numbers
from forgetting.core.numerical import EPS, quietly
from forgetting.core.text import joined
from forgetting.dynamics.ensembles import batch_losses, compiled_form
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Geometry, Subspaces
from forgetting.orderings import Explicit
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike
from forgetting.schemes.linear import LinearScheme, linear_gains
from forgetting.tasks import Problem

PART = 2**23  # numbers at once: 64 MiB
MOST_ORDERS = 400_000  # more orders than 9 tasks have
BATCH = 512  # orders evaluated at once
SLOW = 5e6  # operations that a step counts as where it is not compiled
WIDE = 4096  # operations of a step from which products of matrices for all orders at once are faster
NAMED = 5  # the most names of missing tasks in a message
GAIN = 1e-12  # relative improvement below which two values count as equal
Quantity = Literal["forgetting", "loss"]


@dataclass(frozen=True)
class FoundOrder:
    """An order of all tasks, and the forgetting or loss after a pass in this order.

    Attributes:
        order: the order; of several with this value, that of the lowest task numbers.
        value: its forgetting, loss or other measure.
        tied: how many of the orders that were tried have this value up to rounding, this one included. A local search
            does not count them, and leaves 1.

    >>> FoundOrder((1, 0), 0.25).value, FoundOrder((0, 1), 0.25, tied=2).ties
    (0.25, ' (one of 2 equal ones)')
    """

    order: tuple[int, ...]
    value: float
    tied: int = 1

    @property
    def ties(self) -> str:
        """The number of tied orders in words, to be put after the order; empty if there is no other."""
        return f" (one of {self.tied:,} equal ones)" if self.tied > 1 else ""


# ------------------------------------------------------------------------------------------------------ learning orders


@dataclass(frozen=True, eq=False)
class Ends:
    """The ends of some orders: last iterates and losses, each task learned once.

    Attributes:
        points: (n, d) or (n, d, c), the last w of each order; divided by its scale where a scheme has one.
        losses: (n, T), the loss of each task at the end.
        forgetting: (n,), the mean over tasks of the increase of the loss since the task was learned.
    """

    points: Array
    losses: Array
    forgetting: Array

    def values(self, quantity: Quantity) -> Array:
        """(n,), the forgetting or the mean loss of each order."""
        return self.forgetting if quantity == "forgetting" else np.asarray(self.losses.mean(axis=1))


def pass_ends(problem: Problem, scheme: Scheme, w0: Array, orders: IntArray) -> Iterator[Ends]:
    """Yield the ends of the orders, some orders at a time, so that memory is bounded.

    Linear schemes on linear tasks learn these orders at once, by products of matrices; others take a run for each.

    >>> import forgetting as fg
    >>> tasks = fg.families.two_lines(0.5, w_star=(1, 0))
    >>> (ends,) = pass_ends(tasks, fg.schemes.Kaczmarz(), np.zeros(2), np.array([[0, 1], [1, 0]]))
    >>> ends.forgetting.round(6)
    array([0.044255, 0.034083])
    """
    chosen, space = resolve(problem, scheme, w0)
    linear, geometry = compiled_form(problem, chosen)
    T = problem.num_tasks
    if linear is None or geometry is None:
        for order in orders:
            once = run(problem, Explicit(order), T, chosen, w0=space.w0, record_every=T)
            yield Ends(once.scaled_iterates[-1:], once.loss_matrix[-1:], once.forgetting[-1:])
        return
    size = max(1, PART // _width(geometry))
    for first in range(0, len(orders), size):
        part = orders[first : first + size]
        kept, states = np.zeros(len(part)), np.empty(0)
        for after, learned in batch_steps(geometry, linear, space.w0, part):
            kept, states = kept + learned, after
        with quietly():
            losses = geometry.task_losses(states)
            points = geometry.lift(states, space.w0)
            forgetting = losses.mean(axis=1) - kept / T
        yield Ends(points, losses, forgetting)


def batch_steps(geometry: Geometry, scheme: LinearScheme, w0: Array, orders: IntArray) -> Iterator[tuple[Array, Array]]:
    """Yield after each step the states z of all orders, (n, D) or (n, c, D), and losses (n,) of the tasks just learned.

    The states are overwritten by the next step. z <- z - U (g (U^T z - c)) for all orders that learn the same task at
    once. Cost: 4 r D c operations for each order and task of rank r.
    """
    gains, distinct = linear_gains(geometry, scheme), geometry.distinct(orders)
    states = np.repeat(geometry.start(w0)[None], len(orders), axis=0)
    for t in range(orders.shape[1]):
        yield states, learn_tasks(geometry, gains, states, distinct[:, t])


def learn_tasks(geometry: Subspaces, gains: Array, states: Array, distinct: IntArray) -> Array:
    """Learn a task in each of the states z, (n, D) or (n, c, D), which are overwritten; the losses (n,) of these tasks.

    `distinct` holds the numbers of the distinct tasks. States that learn the same task learn together.
    """
    learned = np.empty(len(states))
    for task in np.unique(distinct).tolist():
        rows, block = np.flatnonzero(distinct == task), geometry.block(task)
        basis, part = geometry.rows[block], states[rows]
        flat = part.reshape(prod(part.shape[:-1]), part.shape[-1])  # of all orders and outputs, for one product
        with quietly():
            errors = (flat @ basis.T).reshape(*part.shape[:-1], -1) - geometry.targets[..., block]
            moved = (errors * gains[block]).reshape(len(flat), -1) @ basis
            states[rows] = part - moved.reshape(part.shape)
            left = (errors * (geometry.sigma[block] * (1.0 - gains[block]))).reshape(len(rows), -1)
            learned[rows] = 0.5 * np.einsum("ij,ij->i", left, left) + geometry.unexplained[task]
    return learned


def held_out_losses(test: Problem, points: Array) -> Array:
    """The loss of each task at each of a stack of w, (len(points), T), a product for each task.

    >>> import forgetting as fg
    >>> tasks = fg.families.two_lines(0.5, w_star=(1, 0))
    >>> points = np.array([[0.0, 0.0], [1.0, 2.0]])
    >>> bool(np.allclose(held_out_losses(tasks, points), [tasks.task_losses(w) for w in points]))
    True
    """
    data = None if test.linear is None else test.linear.data
    if data is None:
        return np.array([test.task_losses(point) for point in points])
    table = np.empty((len(points), data.num_tasks))
    for task in range(data.num_tasks):
        size = max(1, PART // (int(data.num_rows[task]) * (data.outputs or 1)))
        divisor = 1.0 if data.loss_kind == "sum" else float(data.num_rows[task])
        for first in range(0, len(points), size):
            some = points[first : first + size]
            with quietly():
                missed = (data.predictions(task, some)[0] - data.labels_of(task)).reshape(len(some), -1)
                table[first : first + size, task] = 0.5 * np.einsum("ij,ij->i", missed, missed) / divisor
    return table


def pass_cost(geometry: Geometry) -> float:
    """The approximate number of operations of a pass, all outputs together.

    >>> import forgetting as fg
    >>> pass_cost(fg.families.two_lines(0.5).geometry)
    16.0
    """
    return 4.0 * float(geometry.ranks @ geometry.counts) * geometry.dim * (geometry.outputs or 1)


def unexplained_loss(problem: Problem) -> float:
    """The part of the mean loss that no w can fit in any task; 0 for tasks that are not linear.

    >>> import forgetting as fg
    >>> round(unexplained_loss(fg.RegressionTasks([[[1.0], [1.0]], [[1.0]]], [[0.0, 2.0], [5.0]])), 12)
    0.5
    """
    geometry = problem.geometry
    return 0.0 if geometry is None else float(geometry.unexplained @ geometry.counts) / geometry.num_tasks


def _width(geometry: Geometry) -> int:
    """The number of floats that an order takes in memory."""
    return max(len(geometry.sigma), geometry.frame.dim, 1) * (geometry.outputs or 1)


def order_value(
    problem: Problem,
    quantity: Quantity = "forgetting",
    *,
    scheme: SchemeLike | None = None,
    w0: Any = None,
    device: Any = None,
) -> Callable[[IntArray], Array]:
    """A function that maps orders (rows, each a permutation of the tasks) to their forgetting or loss after a pass.

    `device` is where orders are evaluated, as for `fg.expect`.

    >>> import forgetting as fg
    >>> value = order_value(fg.families.two_lines(0.5, w_star=(1, 0)))
    >>> value(np.array([[0, 1], [1, 0]])).round(6)
    array([0.044255, 0.034083])
    """
    chosen, space = resolve(problem, scheme, w0)
    linear, geometry = compiled_form(problem, chosen)
    if chosen.random:
        raise NotSupportedError(f"orders are valued for schemes that draw no random numbers, not for {chosen}")
    there = as_device(device)
    if linear is None or geometry is None:
        if not there.host:
            raise NotSupportedError(f"device= evaluates orders of linear schemes, not of {chosen}; leave out device=")

        def value_of_run(order: IntArray) -> float:
            once = run(problem, Explicit(order), len(order), chosen, w0=space.w0, record_every=len(order))
            return float((once.forgetting if quantity == "forgetting" else once.losses)[-1])

        return lambda orders: np.array([value_of_run(order) for order in orders])
    if there.host and at_once(geometry):

        def value_at_once(orders: IntArray) -> Array:
            ends = pass_ends(problem, chosen, space.w0, orders)
            return np.concatenate([np.empty(0), *(part.values(quantity) for part in ends)])

        return value_at_once
    threads = cores()

    def value(orders: IntArray) -> Array:
        values = np.empty(len(orders))
        for first in range(0, len(orders), 8 * BATCH):
            part = np.ascontiguousarray(orders[first : first + 8 * BATCH])
            last = np.array([part.shape[1]])
            losses, _, after = batch_losses(geometry, linear, part, space.w0, last, threads=threads, device=there)
            learned = after.mean(axis=1) if quantity == "forgetting" else 0.0
            values[first : first + len(part)] = losses[:, 0] - learned
        return values

    return value


def at_once(geometry: Geometry) -> bool:
    """Whether steps are so large that products of matrices for many orders are faster than a loop for each order."""
    return pass_cost(geometry) >= WIDE * geometry.num_tasks


# ------------------------------------------------------------------------------------------------------ lists of orders


def as_tasks(orders: IntArray, index: IntArray) -> IntArray:
    """Orders of distinct tasks as orders of tasks: the i-th visit of a distinct task visits its i-th clone.

    >>> as_tasks(np.array([[0, 1, 0]]), np.array([0, 0, 1])).tolist()
    [[0, 2, 1]]
    """
    tasks = np.empty_like(orders)
    for distinct in range(int(index.max()) + 1):
        tasks[orders == distinct] = np.tile(np.flatnonzero(index == distinct), len(orders))
    return tasks


def as_permutation(order: Any, T: int, names: Sequence[str] = ()) -> IntArray:
    """Convert `order`, of numbers or names of tasks, to the numbers of T tasks, each of them once; else raise.

    >>> as_permutation(["b", "c", "a"], 3, ["a", "b", "c"]).tolist()
    [1, 2, 0]
    >>> as_permutation([0, 0, 1], 3)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: an order names each of the 3 tasks once, got 0, 0, 1: 2 is missing and 0 ...
    """
    tasks = as_index(task_numbers(order, names), T, "order")
    if not np.array_equal(np.sort(tasks), np.arange(T)):
        called = [str(name) for name in names] if len(names) == T else [str(task) for task in range(T)]
        given = tasks.tolist()
        missing = [called[task] for task in range(T) if task not in given]
        twice = [called[task] for task in dict.fromkeys(given) if given.count(task) > 1]
        wrong = [f"{_several(missing)} missing"] if missing else []
        wrong += [f"{_several(twice)} named more than once"] if twice else []
        raise InvalidInputError(
            f"an order names each of the {T} tasks once, got {', '.join(called[task] for task in given)!s:.80}: "
            f"{' and '.join(wrong)}"
        )
    return tasks


def _several(names: list[str]) -> str:
    """Names of tasks with a verb, the first five of them."""
    shown = names if len(names) <= NAMED else [*names[:NAMED], f"{len(names) - NAMED} more"]
    return f"{joined(shown)} {'is' if len(names) == 1 else 'are'}"


def extreme_order(orders: IntArray, values: Array, *, largest: bool, start: float = 0.0) -> FoundOrder:
    """The first order, by task numbers, of those with the least or the largest value, and the number of such orders.

    `start` is the loss before learning: differences that are rounding errors of it do not count.

    >>> extreme_order(np.array([[2, 1, 0], [0, 2, 1], [0, 1, 2]]), np.array([1.0, 1.0 + 1e-15, 0.5]), largest=True)
    FoundOrder(order=(0, 2, 1), value=1.000000000000001, tied=2)
    """
    rows = np.flatnonzero(_least(-values if largest else values, start))
    first = int(rows[np.lexsort(orders[rows].T[::-1])[0]])
    return FoundOrder(tuple(orders[first].tolist()), float(values[first]), len(rows))


def first_least(values: Array) -> int:
    """The first of the least values; values that are equal up to rounding count as equal.

    >>> first_least(np.array([2.0, 1.0 + 1e-15, 1.0]))
    1
    """
    return int(np.argmax(_least(values)))


def _least(values: Array, start: float = 0.0) -> NDArray[np.bool_]:
    """A mask of the least values, up to rounding errors of the largest of them and of the loss at the start."""
    least = float(values.min())
    size = max(float(np.max(np.abs(values))), abs(start))
    close: NDArray[np.bool_] = values <= least + GAIN * abs(least) + 64 * EPS * size
    return close if close.any() else np.arange(len(values)) == np.argmin(values)  # none is close to NaN
