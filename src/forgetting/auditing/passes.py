"""Many orders of the tasks learned at once: states of all orders as one matrix, a product of matrices for each step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.ensembles import compiled_form
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import resolve
from forgetting.geometry import Geometry
from forgetting.orderings import Explicit
from forgetting.schemes import Scheme
from forgetting.schemes.linear import LinearScheme, linear_gains
from forgetting.tasks import Problem

__all__ = ["Ends", "batch_steps", "held_out_losses", "pass_cost", "pass_ends", "quietly"]

PART = 2**23  # numbers at once: 64 MiB


def quietly() -> np.errstate:
    """For a run that diverges, which has infinite losses."""
    return np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True, eq=False)
class Ends:
    """Where some orders end, each task learned once.

    Attributes:
        rows: which of the orders these are.
        points: (n, d) or (n, d, c), the last w of each order; divided by its scale where a scheme has one.
        losses: (n, T), the loss of each task at the end.
        forgetting: (n,), the mean over tasks of the increase of the loss since the task was learned.
    """

    rows: slice
    points: Array
    losses: Array
    forgetting: Array


def pass_ends(problem: Problem, scheme: Scheme, w0: Array, orders: IntArray) -> Iterator[Ends]:
    """Where each order of the tasks ends, some orders at a time, so that memory is bounded.

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
        for row, order in enumerate(orders):
            made = run(problem, Explicit(order), T, chosen, w0=space.w0, record_every=T)
            parts = made.scaled_iterates[-1:], made.loss_matrix[-1:], made.forgetting[-1:]
            yield Ends(slice(row, row + 1), *parts)
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
        yield Ends(slice(first, first + len(part)), points, losses, forgetting)


def batch_steps(geometry: Geometry, scheme: LinearScheme, w0: Array, orders: IntArray) -> Iterator[tuple[Array, Array]]:
    """After each step: the states z of all orders, (n, D) or (n, c, D), and the losses (n,) of the tasks just learned.

    The states are overwritten by the next step. z <- z - U (g (U^T z - c)) for all orders that learn the same task at
    once. Cost: 4 r D c operations for each order and task of rank r.
    """
    gains, distinct = linear_gains(geometry, scheme), geometry.distinct(orders)
    start = geometry.start(w0)
    states = np.repeat(start[None], len(orders), axis=0)
    for t in range(orders.shape[1]):
        learned = np.empty(len(orders))
        for task in np.unique(distinct[:, t]).tolist():
            rows, block = np.flatnonzero(distinct[:, t] == task), geometry.block(task)
            basis, part = geometry.rows[block], states[rows]
            flat = part.reshape(prod(part.shape[:-1]), geometry.dim)  # of all orders and outputs, for one product
            with quietly():
                errors = (flat @ basis.T).reshape(*part.shape[:-1], -1) - geometry.targets[..., block]
                moved = (errors * gains[block]).reshape(len(flat), -1) @ basis
                states[rows] = part - moved.reshape(part.shape)
                left = (errors * (geometry.sigma[block] * (1.0 - gains[block]))).reshape(len(rows), -1)
                learned[rows] = 0.5 * np.einsum("ij,ij->i", left, left) + geometry.unexplained[task]
        yield states, learned


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
    """About how many operations a pass takes, all outputs together.

    >>> import forgetting as fg
    >>> pass_cost(fg.families.two_lines(0.5).geometry)
    16.0
    """
    return 4.0 * float(geometry.ranks @ geometry.counts) * geometry.dim * (geometry.outputs or 1)


def _width(geometry: Geometry) -> int:
    """Numbers that an order takes."""
    return max(len(geometry.sigma), geometry.frame.dim, 1) * (geometry.outputs or 1)
