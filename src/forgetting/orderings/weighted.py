"""Orderings that draw tasks by their current distances: far tasks are more likely, or the only ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_number
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, register
from forgetting.orderings.view import TIED, TaskView

__all__ = ["RelaxedGreedy", "Steinerberger"]


@dataclass(frozen=True)
class _Weighted(Ordering):
    """Draws a task with probabilities that depend on the distances; uniform where all distances are 0."""

    law = laws.Adaptive()

    def probabilities(self, tasks: TaskView) -> Array:
        """The probability of each task at the current iterate."""
        distances = tasks.distances()
        top = float(np.max(distances))
        if not 0 < top < np.inf:  # solved, or diverged
            return np.full(tasks.num_tasks, 1 / tasks.num_tasks)
        weights = self.weights(tasks, distances / top)
        return np.asarray(weights / weights.sum())

    @abstractmethod
    def weights(self, tasks: TaskView, distances: Array) -> Array:
        """Numbers in proportion to the probabilities, from the distances divided by the largest one."""

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        while True:
            p = self.probabilities(tasks)
            edges = np.cumsum(p)
            edges[np.flatnonzero(p)[-1] :] = 1.0  # rounding must never pick a task of probability zero
            yield int(np.searchsorted(edges, rng.random(), side="right"))


@register
@dataclass(frozen=True)
class Steinerberger(_Weighted):
    """Draws task i with probability proportional to d_i^power, where d_i is the distance to the solutions of the task.

    For single rows d_i = |<a_i, x> - b_i| / |a_i|, the residual of the normalised row (S. Steinerberger, A weighted
    randomized Kaczmarz method for solving linear systems, Math. Comp. 90, 2021). Power 0 draws uniformly, and large
    powers come close to `GreedyDistance`. If all tasks are solved, all are equally likely. A step needs all distances.

    >>> view = TaskView(3, None, lambda: np.array([0.0, 1.0, 2.0]))
    >>> Steinerberger().probabilities(view).tolist(), Steinerberger(power=1).probabilities(view).round(3).tolist()
    ([0.0, 0.2, 0.8], [0.0, 0.333, 0.667])
    """

    power: float = 2.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "power", as_number(self.power, "power", least=0))

    def weights(self, tasks: TaskView, distances: Array) -> Array:
        return np.asarray(distances**self.power)


@register
@dataclass(frozen=True)
class RelaxedGreedy(_Weighted):
    """Draws one of the tasks that are far enough, with probability proportional to its squared residual.

    A task is far enough if d_i^2 >= theta max_j d_j^2 + (1 - theta) |r|^2 / sum_j |a_j|^2, with the distance d_i to its
    solutions and the residual r_i = |a_i| d_i; |a_i| is the norm of the row, or the spectral norm of a block. Greedy
    randomized Kaczmarz is theta = 1/2 (Z.-Z. Bai and W.-T. Wu, SIAM J. Sci. Comput. 40, 2018), the others are its
    relaxations (the same, Appl. Math. Lett. 83, 2018), and theta = 1 draws among the farthest tasks, as Motzkin's rule
    does. Norms are 1 for tasks that have none. If all tasks are solved, all are equally likely. A step needs all
    distances.

    >>> view = TaskView(4, np.array([1.0, 1.0, 1.0, 2.0]), lambda: np.array([1.0, 2.0, 4.0, 3.0]))
    >>> RelaxedGreedy(0.0).probabilities(view).round(3).tolist()   # d^2 >= (1 + 4 + 16 + 36) / 7
    [0.0, 0.0, 0.308, 0.692]
    >>> RelaxedGreedy(0.5).probabilities(view).tolist()   # d^2 >= (16 + 57 / 7) / 2
    [0.0, 0.0, 1.0, 0.0]
    """

    theta: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "theta", as_number(self.theta, "theta", least=0, most=1))

    def weights(self, tasks: TaskView, distances: Array) -> Array:
        norms = np.ones(tasks.num_tasks) if tasks.norms is None else np.maximum(tasks.norms, np.finfo(float).tiny)
        shares = (norms / np.max(norms)) ** 2
        enough = self.theta + (1 - self.theta) * float(shares @ distances**2) / float(shares.sum())
        residuals = np.where(distances**2 >= enough * (1 - TIED), norms * distances, 0.0)
        return np.asarray((residuals / np.max(residuals)) ** 2)
