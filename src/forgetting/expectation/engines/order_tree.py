"""The orders that a law can draw, as the paths of a tree: which tasks can come next, how likely, and how many nodes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.space import view_of
from forgetting.expectation.engines.single_runs import made_run
from forgetting.expectation.quantities import Term
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Fixed, Independent, Permutation, Reshuffled

ENDLESS = 1e15  # nodes beyond which they are not counted
LEVELS = 1000  # of the tree whose orders are counted one level at a time


def walks(request: Request, terms: Iterable[Term]) -> bool:
    """Whether clones can be exchanged, and terms be read from iterates alone, which have a bound on their error.

    A scheme that is not linear, and a form of users, may look at the numbers of the tasks.
    """
    return request.linear is not None and all(term.form.quadratic or term.form.bounded for term in terms)


def countless(request: Request) -> bool:
    """Whether there are more than `ENDLESS` orders to list; of many tasks this is seen without their tree."""
    law, geometry = request.law, request.problem.geometry
    if isinstance(law, Permutation | Reshuffled) or (isinstance(law, Independent) and law.p is None):
        branches = request.problem.num_tasks if geometry is None else geometry.num_distinct
        fewest = gammaln(branches + 1.0) - gammaln(branches - min(request.last, branches) + 1.0)
        if fewest > np.log(ENDLESS):
            return True
    return Tree.of(request).nodes(request.last) > ENDLESS


@dataclass(frozen=True)
class Tree:
    """The orders of a law: which tasks can come next, and how likely.

    Attributes:
        clones: for each branch, the tasks that it stands for, which are identical.
        chance: the probability of each branch in every step; None where that depends on the order so far.
        order: the only order, as branches; None if there are several.
        epochs: whether tasks come again once all of them have come.

    >>> import forgetting as fg
    >>> from forgetting.expectation.api import ask
    >>> question = ask(fg.families.two_lines(0.5), fg.orderings.Reshuffled(), 5)
    >>> tree = Tree.of(question.request)
    >>> [tree.width(k) for k in range(6)], tree.nodes(5)
    ([1.0, 2.0, 2.0, 4.0, 4.0, 8.0], 20.0)
    """

    clones: tuple[IntArray, ...]
    chance: Array | None = None
    order: IntArray | None = None
    epochs: bool = False

    @classmethod
    def of(cls, request: Request) -> Tree:
        law, T = request.law, request.problem.num_tasks
        index: IntArray = np.arange(T)
        chance: Array | None = None
        if isinstance(law, Fixed):
            return cls(tuple(index[:, None]), order=index[:0])
        if request.problem.geometry is not None and walks(request, request.terms):
            index = request.problem.geometry.index
        if isinstance(law, Independent):
            # which of the clones of a task have come is not known from the branch
            index = np.arange(T) if request.averages("incremental") else index
            chance = np.asarray(np.bincount(index, law.probabilities(view_of(request.problem))), dtype=np.float64)
        groups = np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])
        if chance is not None:
            groups = [group for group, p in zip(groups, chance.tolist(), strict=True) if p > 0]
            chance = chance[chance > 0]
        return cls(tuple(groups), chance, epochs=isinstance(law, Reshuffled))

    @cached_property
    def tasks(self) -> IntArray:
        """For each branch, a task that stands for it."""
        return np.array([tasks[0] for tasks in self.clones])

    @cached_property
    def counts(self) -> IntArray:
        """The number of tasks that each branch stands for."""
        return np.array([len(tasks) for tasks in self.clones])

    def drawn(self, request: Request) -> Tree:
        """The tree with the order that a fixed law has."""
        if self.order is None:
            return self
        return replace(self, order=made_run(request).order)

    def as_tasks(self, branches: IntArray) -> IntArray:
        """An order of branches as one of tasks: each clone comes once before one of them comes again."""
        order = np.empty_like(branches)
        for branch, tasks in enumerate(self.clones):
            own = np.flatnonzero(branches == branch)
            order[own] = np.resize(tasks, len(own))
        return order

    def chances(self, visits: IntArray, t: int) -> Array:
        """The probability of each branch after t steps, for nodes (rows) with so many visits to each branch."""
        if self.chance is not None:
            return np.broadcast_to(self.chance, visits.shape)
        if self.order is not None:
            coming = np.arange(len(self.tasks)) == (self.order[t] if t < len(self.order) else -1)
            return np.broadcast_to(coming.astype(np.float64), visits.shape)
        total = int(self.counts.sum())
        epoch, step = divmod(t, total)
        if epoch and not self.epochs:
            return np.zeros(visits.shape)
        return ((epoch + 1) * self.counts - visits) / (total - step)

    def width(self, t: int) -> float:
        """The number of different orders of t tasks; where an epoch has more than `LEVELS` steps, no fewer than that.

        Infinite beyond what a float holds.
        """
        if self.order is not None or len(self.tasks) == 1:
            return 1.0
        with np.errstate(over="ignore"):
            if self.chance is not None:
                return float(np.rint(np.exp(np.log(len(self.tasks)) * t))) if t < ENDLESS else float("inf")
            epoch, step = divmod(t, int(self.counts.sum()))
            known = self._arrangements
            logs = epoch * self._all + (known[step] if step < len(known) else known[-1])
            return float(np.rint(np.exp(logs))) if logs < 34 else float(np.exp(logs))

    def nodes(self, last: int) -> float:
        """The number of nodes below the root down to level `last`."""
        total = 0.0
        for t in range(1, min(last, LEVELS) + 1):
            total += self.width(t)
            if total > ENDLESS:
                return total if last == t else float("inf")
        return total + max(0, last - LEVELS) * self.width(min(last, LEVELS))

    @cached_property
    def _all(self) -> float:
        """The logarithm of the number of orders of all tasks."""
        return float(gammaln(self.counts.sum() + 1.0) - gammaln(self.counts + 1.0).sum())

    @cached_property
    def _arrangements(self) -> Array:
        """The logarithms of the numbers of orders of 0, 1, ... tasks within an epoch.

        sum_t a_t x^t / t! is the product over branches of sum_(j <= n) x^j / j!.
        """
        most, branches = min(int(self.counts.sum()), LEVELS), len(self.clones)
        # each branch once; of very many branches these are fewer orders, and far too many of a few tasks already
        if branches > LEVELS or branches == self.counts.sum():
            return np.asarray(gammaln(branches + 1.0) - gammaln(branches + 1.0 - np.arange(most + 1.0)))
        lengths = np.arange(most + 1.0)
        logs = np.where(lengths == 0, 0.0, -np.inf)
        for count in self.counts.tolist():
            longer = logs.copy()
            for j in range(1, min(count, most) + 1):
                longer[j:] = np.logaddexp(longer[j:], logs[: most + 1 - j] - gammaln(j + 1.0))
            logs = longer
        return np.asarray(logs + gammaln(lengths + 1.0))
