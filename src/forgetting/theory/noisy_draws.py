"""Draws of tasks without a common solution: structured ones first, then random ones with noise on the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic, NormWeighted, Ordering, Reshuffled, WithoutReplacement, WithReplacement
from forgetting.schemes import SGD, Ridge, Scheme
from forgetting.tasks import RegressionTasks
from forgetting.theory.definition import equations
from forgetting.theory.draws import Rng, collection, some_start, steps_from
from forgetting.theory.expectations import distinct
from forgetting.theory.instance import Instance

MOST_ROWS = 40
MOST_STEPS = 300
MOST_WORK = 3 * 10**6  # k T D^2 of distinct tasks
MOST_DIMENSIONS = 60
TRIES = 100


def noisy(matrices: Sequence[Any], w: Array, residuals: Sequence[Array], counts: Any = None) -> RegressionTasks:
    """Tasks with the labels X_m w + residual_m, each repeated `counts` times.

    >>> noisy([np.eye(1), np.eye(1)], np.ones(1), [np.ones(1), -np.ones(1)]).realizability.holds
    False
    """
    labels = [matrix @ w + residual for matrix, residual in zip(matrices, residuals, strict=True)]
    which = np.repeat(np.arange(len(matrices)), 1 if counts is None else counts).tolist()
    return RegressionTasks([matrices[i] for i in which], [labels[i] for i in which])


def near(tasks: RegressionTasks) -> tuple[Array, list[Array]]:
    """(w, residuals) with labels X_m w + residual_m of the distinct tasks; all residuals are 0 where w solves them.

    >>> near(RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [3.0]]))[1]
    [array([-1.]), array([1.])]
    """
    w = tasks.geometry.nearest_solution(np.zeros(tasks.dim))
    pairs = [tasks.task(m) for m in distinct(tasks)]
    solved = 0.0 if tasks.realizability.holds else 1.0
    return w, [solved * (np.asarray(label) - matrix @ w) for matrix, label in pairs]


def noisy_collection(rng: Rng, index: int, *, clones: int = 200) -> RegressionTasks:
    """Tasks without a common solution: number `index` of the structured ones, or random ones.

    Structured: coordinates of which each is learned twice, with labels that differ; a task drawn rarely against one
    that is drawn often. Random: tasks of `collection` with noise on their labels, from 1e-3 to 10 times as large as
    the labels, and one of the tasks once more with other labels if some w fits the noise.

    >>> noisy_collection(np.random.default_rng(0), 3).realizability.holds
    False
    """
    if index < 12:
        dim, size = 1 + index % 6, 10.0 ** rng.uniform(-2, 1)
        rows = list(np.eye(dim)[:, None] * (1.0 if index < 6 else 10.0 ** rng.uniform(-1, 1)))
        offs = [size * np.ones(1)] * dim
        return noisy([*rows, *rows], rng.standard_normal(dim), [*offs, *(-off for off in offs)])
    if index < 18:
        many = int(4.0 ** (index - 12))
        return noisy([np.eye(1)] * 2, np.ones(1), [np.ones(1), np.zeros(1)], [1, min(many, clones)])
    for attempt in range(TRIES):
        tasks = collection(rng, index if attempt == 0 else 60, clones=clones)
        if tasks.geometry.dim > MOST_DIMENSIONS or tasks.geometry.num_distinct > MOST_DIMENSIONS:
            continue
        matrices = [equations(tasks, m)[0] for m in distinct(tasks)]
        counts, w = tasks.geometry.counts, tasks.w_star
        scale = 10.0 ** rng.uniform(-3, 1)
        residuals = [scale * np.linalg.norm(X) * rng.standard_normal(len(X)) for X in matrices]
        made = noisy(matrices, w, residuals, counts)
        if made.realizability.holds:
            again = int(rng.integers(len(matrices)))
            other = scale * np.linalg.norm(matrices[again]) * rng.standard_normal(len(matrices[again]))
            made = noisy([*matrices, matrices[again]], w, [*residuals, other], [*counts, 1])
        if not made.realizability.holds:
            return made
    raise InvalidInputError(f"{TRIES} draws gave no tasks that no w solves")


def _steps(rng: Rng, tasks: RegressionTasks) -> int:
    """The first step a quarter of the time, else anything that is cheap, evenly on a log scale."""
    geometry = tasks.geometry
    return steps_from(rng, 1, min(MOST_STEPS, MOST_WORK // (geometry.num_distinct * (geometry.dim + 1) ** 2)))


def _weights(rng: Rng, tasks: RegressionTasks) -> Ordering:
    kind = int(rng.integers(3))
    if kind == 2 and tasks.norms.any():
        return NormWeighted()
    return WithReplacement() if kind else WithReplacement(rng.dirichlet(np.ones(tasks.num_tasks)) + 1e-6)


def noisy_projected(rng: Rng, index: int) -> Instance:
    """Tasks without a common solution, learned by projection, under independent draws with any weights.

    >>> 1 <= noisy_projected(np.random.default_rng(0), 20).k <= 300
    True
    """
    tasks = noisy_collection(rng, index)
    ordering = WithReplacement() if index < 12 else _weights(rng, tasks)
    return Instance(tasks, ordering, _steps(rng, tasks), w0=some_start(rng, tasks.dim))


def noisy_rows(rng: Rng, index: int) -> Instance:
    """Single rows with noise, drawn by their squared norms."""
    case = noisy_projected(rng, index)
    tasks = case.tasks
    rows, offs, (w, residuals) = [], [], near(tasks)
    for m, residual in zip(distinct(tasks), residuals, strict=True):
        rows += [row[None] for row in np.asarray(tasks.task(m)[0])]
        offs += [number[None] for number in residual]
    rows, offs = rows[:MOST_ROWS], offs[:MOST_ROWS]
    made = noisy(rows, w, offs)
    if made.realizability.holds:
        made = noisy([*rows, rows[0]], w, [*offs, offs[0] + np.linalg.norm(rows[0]) + 1.0])
    return Instance(made, NormWeighted(), _steps(rng, made), w0=case.w0)


def any_order(rng: Rng, index: int) -> Instance:
    """Tasks without a common solution, in any order, learned to convergence, by SGD or by ridge regression."""
    tasks = noisy_collection(rng, index, clones=3)
    few = tasks.geometry.num_distinct <= 6
    orders: list[Ordering] = [WithReplacement(), Cyclic(), *([WithoutReplacement(), Reshuffled()] if few else [])]
    ordering = orders[int(rng.integers(len(orders)))]
    limit = ordering.limit(tasks.num_tasks)
    k = min(_steps(rng, tasks), tasks.num_tasks if limit is None and few else (limit or MOST_STEPS))
    schemes: list[Scheme | None] = [None, SGD(float(rng.uniform(0.05, 1.95)) / max(tasks.radius, 1e-300) ** 2, "loss")]
    schemes.append(Ridge(10.0 ** rng.uniform(-2, 2) * max(tasks.radius, 1e-300) ** 2))
    return Instance(tasks, ordering, k, scheme=schemes[int(rng.integers(3))], w0=some_start(rng, tasks.dim))
