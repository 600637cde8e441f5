"""The simplest counterexample: few numbers of few digits, so that a reader can check both sides by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.errors import ForgettingError
from forgetting.orderings import Explicit, NormWeighted, Ordering, WithoutReplacement, WithReplacement, laws
from forgetting.schemes import SGD
from forgetting.tasks import ClassificationTasks, Problem, RegressionTasks
from forgetting.theory.expectations import distinct
from forgetting.theory.instance import Instance
from forgetting.theory.noisy_draws import near, noisy

MOST_TRIED = 400  # simpler neighbours of one instance
DIGITS = 1, 2, 3  # significant ones, to which numbers are rounded
Complexity = tuple[float, ...]


def complexity(instance: Instance) -> Complexity:
    """The effort of checking an instance by hand: (numbers, digits, T, d, k), compared in this order.

    The numbers are those of its file, k included; digits are all their significant decimal digits, so 0.8 and 10^10
    have one each.

    >>> import forgetting as fg
    >>> complexity(Instance(fg.RegressionTasks([[[1]], [[1]]], [[2], [2]]), None, 1))
    (8, 5, 2, 1, 1)
    """
    saved = [np.ravel(value) for value in instance.arrays.values() if np.asarray(value).dtype.kind in "iuf"]
    values, counts = np.unique(np.abs(np.concatenate(saved).astype(np.float64)), return_counts=True)
    digits = sum(int(n) * _digits(value) for value, n in zip(values.tolist(), counts, strict=True))
    problem = instance.problem
    return int(counts.sum()), digits, *((problem.num_tasks, problem.dim) if problem else (0, 0)), instance.k


def _digits(value: float) -> int:
    if value == 0 or not math.isfinite(value):
        return 0
    return len(np.format_float_scientific(value, trim="-").partition("e")[0].replace(".", ""))


def by_hand() -> Iterator[Instance]:
    """Instances made of small integers and short decimals, for every kind of statement about tasks.

    >>> next(by_hand()).tasks.num_tasks
    2
    """
    unit, line, slope = [[1.0]], [[1.0, 0.0]], [[1.0, 1.0]]
    clones = RegressionTasks([unit, unit], [[1.0], [1.0]])
    yield Instance(clones, None, 1)
    lines = [RegressionTasks([line, slope], [[y], [z]]) for y, z in ((0.0, 1.0), (1.0, 1.0), (1.0, 2.0))]
    orderings: tuple[Ordering, ...] = WithReplacement(), WithoutReplacement(), NormWeighted()
    for tasks, ordering, k in product((clones, *lines), orderings, (1, 2, 3)):
        yield Instance(tasks, ordering, k)
        yield Instance(tasks, ordering, k, scheme=SGD(1 / tasks.radius**2, "loss"))
    small = RegressionTasks([line, [[0.06, 0.08]]], [[0.6], [0.1]])
    yield Instance(small, WithoutReplacement(), 2)
    yield Instance(RegressionTasks([line] * 9 + [[[0.8, 0.6]]], [[0.0]] * 9 + [[1.0]]), WithoutReplacement(), 10)
    away = ClassificationTasks([line, [[0.8, -0.6]]], [[1], [-1]])  # signed, (-0.8, 0.6)
    for order in ([0], [0, 1], [0, 0, 1]):
        yield Instance(away, Explicit(order), len(order))
    # few tasks among very many that hardly matter; extras["multiplicity"] says how many
    alone = RegressionTasks([unit, [[0.0]]], [[1.0], [0.0]])
    yield Instance(alone, WithReplacement(), 1000, extras={"multiplicity": [1, 4000]})
    weak = RegressionTasks([line, [[0.01, 0.01]]], [[0.0], [0.01]])
    yield Instance(weak, NormWeighted(), 2, extras={"multiplicity": [1, 5000]})
    weaker = RegressionTasks([line, [[1e-6, 1e-6]]], [[1.0], [0.0]])
    yield Instance(weaker, WithReplacement(), 10**8, extras={"multiplicity": [1, 10**10]})


def shrunk(instance: Instance, refutes: Callable[[Instance], bool]) -> Instance:
    """The instance made simpler step by step, as long as it refutes: fewer tasks, dimensions, steps, digits.

    >>> import forgetting as fg
    >>> start = Instance(fg.families.gaussian(5, 4, 1), fg.orderings.Cyclic(), 9)
    >>> end = shrunk(start, lambda case: case.posed.num_tasks >= 2)
    >>> end.posed.num_tasks, end.posed.dim, end.k
    (2, 1, 1)
    """
    tried, here = 0, complexity(instance)
    while True:
        for other in _simpler(instance):
            if tried >= MOST_TRIED:
                return instance
            tried += 1
            try:
                better = complexity(other) < here and refutes(other)
            except (ForgettingError, np.linalg.LinAlgError):
                continue
            if better:
                instance, here = other, complexity(other)
                break
        else:
            return instance


def _simpler(instance: Instance) -> Iterator[Instance]:
    """Neighbours that are simpler in one way each; a statement may not apply to some of them."""
    k, ordering, problem = instance.k, instance.ordering, instance.problem
    yield from (replace(instance, k=n) for n in sorted({1, 2, 3, k // 2, int(float(f"{k:.0e}")), k - 1}) if 0 < n != k)
    if instance.w0 is not None:
        yield replace(instance, w0=None)
    law = None if ordering is None else ordering.law
    if isinstance(law, laws.Independent) and law.p is not None:
        yield replace(instance, ordering=WithReplacement())
    order = np.array(law.sequence) if isinstance(law, laws.Fixed) and law.sequence is not None else None
    if order is not None and k > 1:
        yield from (
            replace(instance, ordering=Explicit(np.delete(order, t)), k=k - 1) for t in range(min(k, len(order)))
        )
    if problem is not None:
        for task in range(problem.num_tasks if problem.linear is None else problem.linear.geometry.num_distinct):
            fewer = instance if order is None else replace(instance, ordering=Explicit(order - (order > task)))
            yield from _made(fewer, lambda value: value, without=task)
        for axis in range(problem.dim if problem.dim > 1 else 0):
            yield from _made(instance, partial(_less, axis=axis, dim=problem.dim))
        for digits in DIGITS:
            yield from _made(instance, partial(_rounded, digits=digits))


def _made(instance: Instance, change: Callable[[Any], Any], without: int | None = None) -> Iterator[Instance]:
    """The instance with `change` applied to all numbers, optionally without one distinct task.

    Clones are removed, halved or kept.
    """
    extras = {name: value if name == "multiplicity" else change(value) for name, value in instance.extras.items()}
    if without is not None and "multiplicity" in extras:
        extras["multiplicity"] = np.delete(extras["multiplicity"], without)
    w0 = None if instance.w0 is None else change(instance.w0)
    try:
        for problem in _problems(instance.posed, change, without):
            yield replace(instance, problem=problem, w0=w0, extras=extras)
    except (ForgettingError, np.linalg.LinAlgError):
        return  # no such tasks


def _problems(problem: Problem, change: Callable[[Any], Any], without: int | None) -> Iterator[Problem]:
    linear = problem.linear
    data = linear.data if linear is not None and linear is problem else None
    if data is None:
        yield problem.rebuilt(change, without)
        return
    kept = [(m, task) for m, task in enumerate(distinct(data)) if m != without]
    matrices, counts = [change(np.asarray(data.task(task)[0])) for _, task in kept], data.geometry.counts
    w, residuals = near(data)
    residuals = [change(residuals[m]) for m, _ in kept]
    for many in ([1 for _ in kept], [(counts[m] + 1) // 2 for m, _ in kept], [counts[m] for m, _ in kept]):
        yield noisy(matrices, change(w), residuals, many)


def _less(value: Any, axis: int, dim: int) -> Any:
    """The vector or matrix without one of the coordinates."""
    for side, length in enumerate(np.shape(value)):
        if length == dim and (np.ndim(value) == 1 or side == np.ndim(value) - 1 or np.shape(value) == (dim, dim)):
            value = np.delete(value, axis, axis=side)
    return value


def _rounded(value: Any, digits: int) -> Any:
    """The numbers rounded to this many significant digits; whole numbers as they are."""
    if np.asarray(value).dtype.kind != "f":
        return value
    rounded: Array = np.vectorize(lambda number: float(f"{number:.{digits - 1}e}"), otypes=[float])(value)
    return rounded if np.ndim(value) else float(rounded)
