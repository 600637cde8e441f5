"""The sides of a statement where nothing is exact: means over simulated orders, with intervals."""

from __future__ import annotations

import os
from functools import cached_property

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.claims.instance import Instance
from forgetting.ensembles import batch_losses, run_many
from forgetting.errors import NotSupportedError
from forgetting.expectation.api import ask
from forgetting.expectation.monte_carlo import column_intervals, value_range
from forgetting.loop import resolve
from forgetting.orderings import WithoutReplacement
from forgetting.schemes import LinearScheme

__all__ = ["CONFIDENCE", "RUNS", "Sampled", "losses_after", "width"]

BATCH = 1024
RUNS = 16 * BATCH  # compiled ones
FEWER_RUNS = 4 * BATCH  # by projections onto convex sets, which take longer
CONFIDENCE = 0.999  # of each interval; a verdict allows for its whole width


class Sampled:
    """What random orders of k tasks, and one more, lead to: one value per run.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithoutReplacement(), k=1)
    >>> some = Sampled(case, 1)
    >>> float(some.seen.max()), float(some.following.mean().round(12)), some.how
    (0.0, 0.25, '16384 simulated runs')
    """

    def __init__(self, instance: Instance, k: int) -> None:
        problem, ordering = instance.problem, instance.ordering
        assert ordering is not None
        self.instance, self.k = instance, k
        runs = RUNS if isinstance(resolve(problem, instance.scheme, instance.w0)[0], LinearScheme) else FEWER_RUNS
        self.how = f"{runs} simulated runs"
        more = 0 if isinstance(ordering, WithoutReplacement) and k == problem.num_tasks else 1
        losses, seen, following = [], [], []
        for batch in range(runs // BATCH):
            many = run_many(problem, ordering, k + more, BATCH, instance.scheme, batch, instance.w0, record_every=[k])
            losses.append(many.losses[:, np.searchsorted(many.steps, k)])
            if k:
                seen.append(many.forgetting[:, k - 1] + many.after[:, :k].mean(axis=1))
            if more:
                following.append(many.before[:, k])
        self.losses = np.concatenate(losses)
        #: the mean loss of the tasks that were learned, and the loss of the one that is learned next; 0 without any
        self.seen = np.concatenate(seen) if k else np.zeros(runs)
        self.following = np.concatenate(following) if more else np.zeros(runs)

    @cached_property
    def range(self) -> tuple[float, float] | None:
        """What the loss of a task can be on the way, or None if nothing is known."""
        one = self.instance
        return value_range(ask(one.problem, one.ordering, self.k, one.scheme, one.w0, ("regret",))[0], "regret")  # type: ignore[arg-type]

    def width(self, values: Array) -> float:
        """How far the mean of some of the losses may be from its expectation."""
        return width(values, self.range)


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
    scheme, space = resolve(instance.problem, instance.scheme, instance.w0)
    if not isinstance(scheme, LinearScheme):
        raise NotSupportedError(f"{scheme} is not a linear scheme")
    start, none, workers = space.w0, np.zeros(1, dtype=np.int64), os.cpu_count() or 1
    found = np.empty(len(orders))
    for at in range(0, len(orders), BATCH):
        few = slice(at, at + BATCH)
        visits = np.column_stack([orders[few], tasks[few]])
        found[few] = batch_losses(space.problem, scheme, visits, start, none, threads=workers)[1][:, -1]
    return found
