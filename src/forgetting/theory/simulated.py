"""Means over simulated orders, with intervals, for the sides of statements where nothing is exact."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forgetting.compute.threads import cores
from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.ensembles import batch_losses
from forgetting.dynamics.loop import resolve
from forgetting.errors import NotSupportedError
from forgetting.expectation import expect
from forgetting.expectation.intervals import column_intervals
from forgetting.theory.instance import Instance

BATCH = 1024
RUNS = 16 * BATCH  # compiled ones
FEWER_RUNS = 4 * BATCH  # by projections onto convex sets, which take longer
WORK = 2**25  # compiled steps in all
CONFIDENCE = 0.999  # of each interval; a verdict allows for its whole width


class Sampled(NamedTuple):
    """Means over random orders of k tasks, and one more, each with the width of its interval.

    Attributes:
        loss: the mean loss of all tasks.
        seen: the mean loss of the tasks that were learned, 0 for none.
        following: the loss of the task that is learned next, 0 where there is none.
        how: in words.

    >>> import forgetting as fg
    >>> some = simulate(Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1), 1)
    >>> round(some.following[0], 12), some.seen[0], some.how
    (0.25, 0.0, '16384 simulated runs')
    """

    loss: tuple[float, float]
    seen: tuple[float, float]
    following: tuple[float, float]
    how: str


def runs_for(steps: int, most: int) -> int:
    """The number of runs of this many compiled steps: fewer of long ones, 256 at least.

    >>> runs_for(100, RUNS), runs_for(10_000, RUNS), runs_for(10**6, RUNS)
    (16384, 3072, 256)
    """
    runs = min(most, WORK // max(steps, 1))
    return runs // BATCH * BATCH if runs >= BATCH else 256


def simulate(instance: Instance, k: int) -> Sampled:
    """Run random orders of k tasks, and one more where there is one, with the seed and the runs of the instance."""
    problem, ordering, w0, names = instance.posed, instance.ordering, instance.w0, ("loss", "seen_loss", "next_loss")
    assert ordering is not None
    scheme, _ = resolve(problem, instance.scheme, w0)
    slow = scheme.linear_on(problem) is None
    runs = instance.runs or runs_for(64 * (k + problem.num_tasks) if slow else k, FEWER_RUNS if slow else RUNS)
    options = {"seed": instance.seed, "runs": runs, "confidence": CONFIDENCE}
    result = expect(problem, ordering, k, scheme, w0, "monte-carlo", names, **options)  # type: ignore[arg-type]

    def mean(name: str) -> tuple[float, float]:
        low, high = result.interval(name)
        return (0.0, 0.0) if np.isnan(result.values[name]) else (float(result.values[name]), float(high - low))

    return Sampled(mean("loss"), mean("seen_loss"), mean("next_loss"), f"{runs} simulated runs")


def width(values: Array, bounds: tuple[float, float] | None) -> float:
    """The width of an interval for the expectation of values that stay within these bounds.

    >>> width(np.tile([0.0, 1.0], 2048), (0.0, 1.0)) < 0.1
    True
    """
    low, high = column_intervals(values[:, None], bounds, CONFIDENCE)[0]
    return float(high - low)


def losses_after(instance: Instance, orders: IntArray, tasks: IntArray) -> Array:
    """The loss that each order of a linear scheme, one per row, ends with on a task of its own.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1)
    >>> losses_after(case, np.array([[0], [0]]), np.array([0, 1])).round(12)
    array([0.  , 0.25])
    """
    given, space = resolve(instance.posed, instance.scheme, instance.w0)
    scheme = given.linear_on(instance.posed)
    if scheme is None:
        raise NotSupportedError(f"{given} is not a linear scheme")
    start, none, workers = space.w0, np.zeros(1, dtype=np.int64), cores()
    losses = np.empty(len(orders))
    for at in range(0, len(orders), BATCH):
        few = slice(at, at + BATCH)
        visits = np.column_stack([orders[few], tasks[few]])
        losses[few] = batch_losses(instance.tasks.geometry, scheme, visits, start, none, threads=workers)[1][:, -1]
    return losses
