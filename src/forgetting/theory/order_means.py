"""Means over the orders of a problem that is learned by projection, whatever the problem is made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array
from forgetting.orderings.laws import Permutation
from forgetting.theory.checking import with_doubt
from forgetting.theory.definition import MOST_STATES, compare, law_of, orders_needed
from forgetting.theory.expectations import Numbers, remembered, walk
from forgetting.theory.instance import Instance
from forgetting.theory.sampled import simulate

__all__ = ["Orders", "over_orders"]


class Orders(NamedTuple):
    """Means over the orders of a problem learned by projection: over all of them, or simulated where these are many.

    Attributes:
        loss, seen, following: the mean loss of all tasks, of the tasks that were learned, and of the tasks that can be
            next, each with the width of its interval.
        how: in words.
    """

    loss: tuple[float, float]
    seen: tuple[float, float]
    following: tuple[float, float]
    how: str


def over_orders(instance: Instance) -> Orders:
    """The means over all orders of k tasks: one by one, by the engines for affine sets, or over simulated orders.

    >>> import forgetting as fg
    >>> sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 1.0)])
    >>> over_orders(Instance(sets, fg.orderings.WithoutReplacement(), 1))
    Orders(loss=(0.25, 0.0), seen=(0.0, 0.0), following=(0.5, 0.0), how='all 2 orders')
    """
    problem, k = instance.posed, instance.k
    if orders_needed(instance, k) > MOST_STATES and problem.linear is not None:
        return _by_engines(instance)
    if orders_needed(instance, k) > MOST_STATES:
        runs = remembered(instance, ("simulated", k), lambda: simulate(instance, k))
        return Orders(*runs)
    loss = seen = following = 0.0
    count = 0
    for end in walk(instance, k):
        losses = problem.task_losses(end.w)
        loss += end.probability * float(np.mean(losses))
        seen += end.probability * _mean(losses[list(end.order)])
        following += end.probability * _mean(np.delete(losses, list(end.order)))
        count += 1
    for name, value in (("loss", loss), ("seen_loss", seen)):
        compare(instance, k, name, value)
    return Orders((loss, 0.0), (seen, 0.0), (following, 0.0), f"all {count} orders")


def _by_engines(instance: Instance) -> Orders:
    """The same for affine sets, whose expectations the engines know for any number of orders."""
    numbers, k = Numbers(instance), instance.k
    values = with_doubt(numbers, numbers.loss, k), with_doubt(numbers, numbers.in_sample, k)
    last = isinstance(law_of(instance), Permutation) and k == instance.posed.num_tasks
    following = (0.0, 0.0) if last else with_doubt(numbers, numbers.next_loss, k)
    return Orders(*values, following, numbers.how)


def _mean(losses: Array) -> float:
    return float(np.mean(losses)) if len(losses) else 0.0
