"""The forgetting of a pass, split over pairs of tasks: the task that is forgotten, and the task that is learned."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from forgetting.auditing.orders import PART, as_permutation, batch_steps
from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_flag, as_kind, as_list, seed_from
from forgetting.core.numerical import quietly
from forgetting.dynamics.ensembles import compiled_form
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import resolve
from forgetting.errors import InvalidInputError
from forgetting.orderings import Explicit
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem


@dataclass(frozen=True, eq=False)
class Influence:
    """The forgetting of a pass, split over pairs of tasks and averaged over orders.

    Attributes:
        matrix: T x T; entry (i, j) is the mean over orders of the increase of the loss of task i while task j is
            learned (0 for orders in which i comes after j). Row i sums to the forgetting of task i, and all entries
            sum to T times the forgetting of the pass.
        forgotten_error, caused_error: standard errors of the row sums and of the column sums; 0 if exact.
        runs: the number of orders.
        exact: whether the average is over all orders.
    """

    matrix: Array
    forgotten_error: Array
    caused_error: Array
    runs: int
    exact: bool

    @property
    def forgotten(self) -> Array:
        """The forgetting of each task at the end of the pass."""
        return np.asarray(self.matrix.sum(axis=1))

    @property
    def caused(self) -> Array:
        """The forgetting of other tasks that happens while each task is learned."""
        return np.asarray(self.matrix.sum(axis=0))


def forgetting_matrix(
    problem: Problem, orders: Iterable[Any], scheme: SchemeLike | None = None, w0: Any = None, exact: bool = True
) -> Influence:
    """The forgetting of a pass in each of the given orders, split over pairs of tasks; see `Influence`.

    >>> import forgetting as fg
    >>> tasks = fg.families.two_lines(0.5, w_star=(1, 0))
    >>> forgetting_matrix(tasks, [[0, 1]]).matrix.round(6).tolist()
    [[0.0, 0.088509], [0.0, 0.0]]
    >>> round(float(fg.run(tasks, fg.orderings.Explicit([0, 1]), k=2).forgetting[-1]), 6)    # half: a mean over tasks
    0.044255
    """
    T, certain = as_kind(problem, Problem, "a problem such as RegressionTasks").num_tasks, as_flag(exact, "exact")
    total, rows, columns = np.zeros((T, T)), [np.empty((0, T))], [np.empty((0, T))]
    for matrices in _matrices(
        problem, np.array([as_permutation(order, T, problem.names) for order in as_list(orders, "orders")]), scheme, w0
    ):
        total += matrices.sum(axis=0)
        rows.append(matrices.sum(axis=2))
        columns.append(matrices.sum(axis=1))
    runs = len(np.concatenate(rows))
    if runs == 0:
        raise InvalidInputError("orders is empty; give at least one")
    errors = [
        np.std(np.concatenate(part), axis=0) / math.sqrt(runs) if not certain else np.zeros(T)
        for part in (rows, columns)
    ]
    return Influence(total / runs, errors[0], errors[1], runs, certain)


def _matrices(problem: Problem, orders: IntArray, scheme: SchemeLike | None, w0: Any) -> Iterator[Array]:
    """The increase of the loss of task i while j is learned after it, (orders, i, j), for some orders at a time."""
    chosen, space = resolve(problem, scheme, w0)
    linear, geometry = compiled_form(problem, chosen)
    T = problem.num_tasks
    width = 1 if geometry is None else max(len(geometry.sigma), geometry.dim) * (geometry.outputs or 1)
    size = 1 if linear is None else max(1, PART // max(T * T, width))
    for first in range(0, len(orders), size):
        part = orders[first : first + size]
        if linear is None or geometry is None:
            tables = run(problem, Explicit(part[0]), T, chosen, w0=space.w0).loss_matrix[None]
        else:
            with quietly():
                start = np.broadcast_to(geometry.task_losses(geometry.start(space.w0)), part.shape)
                steps = batch_steps(geometry, linear, space.w0, part)
                tables = np.stack([start, *(geometry.task_losses(states) for states, _ in steps)], axis=1)
        place = np.argsort(part, axis=1)  # of each task in the order
        seen = place[:, None, :] < np.arange(T)[None, :, None]  # order, step, task
        matrices = np.zeros((len(part), T, T))
        with quietly():
            rises = np.where(seen, np.diff(tables, axis=1), 0.0)
        matrices[np.arange(len(part))[:, None], :, part] = rises
        yield matrices


def random_influence(
    problem: Problem, scheme: SchemeLike | None = None, w0: Any = None, seed: Seed = 0, runs: int | None = None
) -> Influence:
    """The forgetting of a pass, split over pairs of tasks and averaged over orders; see `Influence`.

    The average is over all orders for up to 6 tasks, and over `runs` random orders for more tasks.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=4, d=8, rank=2, seed=0)
    >>> influence = random_influence(tasks)
    >>> expected = fg.expect(tasks, fg.orderings.WithoutReplacement(), k=4).forgetting
    >>> influence.runs, round(float(influence.matrix.sum() / 4 - expected), 12) + 0.0
    (24, 0.0)
    """
    _, space = resolve(problem, scheme, w0)
    T = problem.num_tasks
    if T <= 6:
        return forgetting_matrix(problem, permutations(range(T)), scheme, space.w0)
    count = _affordable(problem) if runs is None else as_count(runs, "runs", least=2)
    rng = np.random.default_rng(np.random.SeedSequence(seed_from(seed), spawn_key=(7,)))
    return forgetting_matrix(problem, (rng.permutation(T) for _ in range(count)), scheme, space.w0, exact=False)


def _affordable(problem: Problem) -> int:
    """The number of orders, between 32 and 1000, that take a few seconds: 4e10 operations."""
    geometry = problem.geometry
    if geometry is None:
        return 32
    T, total = geometry.num_tasks, len(geometry.sigma) * (geometry.outputs or 1)
    cost = 2.0 * (T + 1) * total * geometry.dim + 4.0 * total * geometry.dim  # every step needs the loss of every task
    return int(np.clip(4e10 / cost, 32, 1000))
