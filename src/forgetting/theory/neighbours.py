"""Neighbours of a problem, which a hunt tries once it has used up its fresh problems."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from forgetting.errors import NotSupportedError
from forgetting.orderings import Explicit, WithReplacement, laws
from forgetting.tasks import RegressionTasks
from forgetting.theory.draws import MOST_CLONES, MOST_STEPS, Rng
from forgetting.theory.expectations import distinct
from forgetting.theory.instance import Instance
from forgetting.theory.noisy_draws import near, noisy
from forgetting.theory.sizes import with_radius

__all__ = ["mutate"]

MOST_COUNTED = 1e12  # where a task stands for many


def mutate(rng: Rng, instance: Instance, size: float) -> Instance:
    """A neighbour: every number moved by about `size` of itself, and k by a few.

    >>> from forgetting.theory.draws import projected
    >>> case = projected()(np.random.default_rng(0), 0)
    >>> other = mutate(np.random.default_rng(1), case, 0.1)
    >>> other.problem.realizability.holds, bool((other.problem.w_star == case.problem.w_star).all())
    (True, False)
    """
    problem, scheme = instance.posed, instance.scheme
    linear = problem.linear
    data = linear.data if linear is not None and linear is problem else None
    if data is not None:
        moved = _moved_tasks(rng, data, size)
        step = None if scheme is None else scheme.as_sgd(2.0)
        if step is not None and step.smoothness > 1:  # SGD on the loss, whose smoothness is R^2
            factor = 1.0 if rng.random() < 0.6 else float(np.exp(size * rng.standard_normal()))
            scheme = with_radius(scheme, data.radius, moved.radius, factor)
        problem = moved
    else:
        common = np.asarray(instance.extras.get("common", np.zeros(problem.dim)))
        with suppress(NotSupportedError):  # a problem of a user's own may not know how
            problem = problem.rebuilt(lambda values: _moved(rng, values, size), common=common)
    k = instance.k
    if rng.random() < 0.4:
        k = max(1, k + int(np.rint(rng.standard_normal() * max(1.0, size * k))))
        k = min(k, max(instance.k, MOST_STEPS))  # the cost of a check grows with k, and so may its ratio for ever
    extras = {name: _moved(rng, value, size) for name, value in instance.extras.items()}
    if "common" in extras:  # stays in all sets
        extras["common"] = instance.extras["common"]
    if "multiplicity" in extras:  # stays a count
        factors = np.exp(size * rng.standard_normal(len(extras["multiplicity"])))
        extras["multiplicity"] = np.minimum(np.ceil(instance.extras["multiplicity"] * factors), MOST_COUNTED)
    w0 = None if instance.w0 is None else _moved(rng, instance.w0, size * (rng.random() < 0.5))
    ordering = instance.ordering
    match None if ordering is None else ordering.law:
        case laws.Independent(p=tuple(given)):
            weights = np.resize(np.asarray(given), problem.num_tasks)
            factors = np.exp(size * rng.standard_normal(len(weights)) * (rng.random() < 0.5))
            ordering = WithReplacement(weights * factors)
        case laws.Fixed(sequence=tuple(given)):
            order = np.resize(np.array(given), k)
            order[int(rng.integers(k))] = int(rng.integers(problem.num_tasks))
            ordering = Explicit(order)
    return replace(instance, problem=problem, k=k, scheme=scheme, w0=w0, extras=extras, ordering=ordering)


def _moved(rng: Rng, value: Any, size: float) -> Any:
    if np.ndim(value) == 0:
        return value if isinstance(value, int) else value * float(np.exp(size * rng.standard_normal()))
    array = np.asarray(value)
    if array.dtype.kind in "iu":
        return array
    return array + size * rng.standard_normal(array.shape) * float(np.sqrt(np.mean(array**2)))


def _moved_tasks(rng: Rng, tasks: RegressionTasks, size: float) -> RegressionTasks:
    counts = tasks.geometry.counts.copy()
    matrices = [np.asarray(tasks.task(task)[0]) for task in distinct(tasks)]
    moving = rng.random(len(matrices)) < 0.5
    matrices = [_moved(rng, x, size) if on else x for x, on in zip(matrices, moving, strict=True)]
    if rng.random() < 0.2 and counts.max() > 1:
        counts = np.maximum(1, np.rint(counts * np.exp(size * rng.standard_normal(len(counts)))).astype(int))
        counts = np.maximum(1, (counts * min(1.0, MOST_CLONES / counts.sum())).astype(int))
    w, residuals = near(tasks)
    w = w if rng.random() < 0.5 else _moved(rng, w, size)
    if not tasks.realizability.holds:
        residuals = [_moved(rng, residual, size) for residual in residuals]
    return noisy(matrices, w, residuals, counts)
