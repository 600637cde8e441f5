"""Orderings that adapt to the iterate, greedy ones first: tasks are chosen or left out by distances or losses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_count, as_flag, as_number
from forgetting.orderings import laws
from forgetting.orderings.base import NO_UPDATE, Ordering, register
from forgetting.orderings.view import TIED, TaskView

__all__ = ["GreedyDistance", "GreedyResidual", "GreedyThenRandom", "Quantile", "RelaxedGreedy", "Steinerberger"]


@dataclass(frozen=True)
class _Greedy(Ordering):
    """Visits the task with the largest score; ties go to the lowest number. With repeat=False each task comes once.

    Scores that differ by less than 1e-12 of the largest, or by less than rounding errors, are ties: once all tasks are
    solved, the lowest number of all comes again and again.
    """

    repeat: bool = True

    def __post_init__(self) -> None:
        as_flag(self.repeat, "repeat")

    @property
    def law(self) -> laws.Adaptive:
        """A greedy law without random draws."""
        return laws.Adaptive(draws=False, greedy=True, repeat=self.repeat)

    @abstractmethod
    def scores(self, tasks: TaskView) -> Array:
        """The score of each task; the task with the largest score is next."""

    def _noise(self, tasks: TaskView) -> Array:
        """The largest change of each score by rounding errors."""
        return np.full(tasks.num_tasks, tasks.rounding())

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        seen = np.zeros(tasks.num_tasks, dtype=bool)
        while self.repeat or not seen.all():
            scores = self.scores(tasks)
            allowed = scores if self.repeat else np.where(seen, -np.inf, scores)
            best = int(np.argmax(allowed))
            noise = self._noise(tasks)
            task = int(np.argmax(allowed >= allowed[best] - TIED * abs(allowed[best]) - noise - noise[best]))
            seen[task] = True
            yield task


@register
@dataclass(frozen=True)
class GreedyDistance(_Greedy):
    """Visits the task whose solution set is farthest from the iterate: maximum distance (Motzkin) control.

    >>> import forgetting as fg
    >>> fg.run(fg.families.two_lines(0.5, w_star=(1, 0)), GreedyDistance(), k=4).order.tolist()
    [1, 0, 1, 0]
    """

    def scores(self, tasks: TaskView) -> Array:
        return tasks.distances()


@register
@dataclass(frozen=True)
class GreedyResidual(_Greedy):
    """Visits the task with the largest loss.

    >>> import forgetting as fg
    >>> fg.run(fg.families.two_lines(0.5, w_star=(1, 0)), GreedyResidual(repeat=False), k=2).order.tolist()
    [1, 0]
    """

    def scores(self, tasks: TaskView) -> Array:
        return np.sqrt(tasks.losses())

    def _noise(self, tasks: TaskView) -> Array:
        noise = super()._noise(tasks)
        return noise if tasks.norms is None else noise * tasks.norms


@register
@dataclass(frozen=True)
class Quantile(Ordering):
    """Draws a task uniformly, and makes no update if its distance is above the q-quantile of the distances.

    This is QuantileRK (J. Haddock, D. Needell, E. Rebrova and W. Swartworth, Quantile-based iterative methods for
    corrupted systems of linear equations, SIAM J. Matrix Anal. Appl. 43, 2022): rows with a wrong label come to have
    the largest distances, and are left out. Choose q below the part of rows that are right. The quantile is over the
    distances of all tasks, or of `sample` tasks drawn anew at each step; it is the largest distance that is at most
    `np.quantile`. A step without an update has -1 in `run.order`; q = 1 updates always. A step needs all distances.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0]]] * 10, [[1.0]] * 9 + [[50.0]])   # nine rows say w = 1, and one says 50
    >>> run = fg.run(tasks, Quantile(q=0.8), k=40, seed=1)
    >>> float(run.iterates[-1, 0]), sorted(set(run.order.tolist())), int((run.order < 0).sum())
    (1.0, [-1, 0, 1, 2, 3, 4, 5, 6, 7, 8], 1)
    """

    q: float = 0.9
    sample: int | None = None

    law = laws.Adaptive(skips=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "q", as_number(self.q, "q", above=0, most=1))
        if self.sample is not None:
            object.__setattr__(self, "sample", as_count(self.sample, "sample", least=1))

    @property
    def trusted(self) -> float:
        """q: the tasks with larger distances may be wrong."""
        return self.q

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        T = tasks.num_tasks
        while True:
            task = int(rng.integers(T))
            distances = tasks.distances()
            among = distances
            if self.sample is not None and self.sample < T:
                among = distances[rng.choice(T, self.sample, replace=False)]
            largest = float(np.quantile(among, self.q, method="lower"))
            yield task if distances[task] <= largest * (1 + TIED) else NO_UPDATE


@dataclass(frozen=True)
class _DrawnByDistance(Ordering):
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
class Steinerberger(_DrawnByDistance):
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
class RelaxedGreedy(_DrawnByDistance):
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


@register
@dataclass(frozen=True)
class GreedyThenRandom(Ordering):
    """One pass: the first tasks by `GreedyDistance`, each of them once, and all others in random order.

    This is the hybrid of M. Tsipory et al. (Are greedy task orderings better than random in continual linear
    regression? NeurIPS 2025): greedy steps shrink the error fast at first, and the random rest does not fall into the
    traps of a greedy pass (`fg.families.greedy_failure`). No bound is known for a pass with 0 < part < 1; part = 0 is
    `WithoutReplacement`, part = 1 a greedy single pass. Expectations are simulated.

    Args:
        part: the share of the tasks that are chosen greedily, rounded up to whole tasks.
        repeat: whether further passes of this kind follow, instead of one pass.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=6, d=9, rank=2, seed=0)
    >>> orders = [fg.run(tasks, GreedyThenRandom(), k=6, seed=seed).order.tolist() for seed in range(2)]
    >>> orders[0][:3] == orders[1][:3], orders[0] == orders[1], sorted(orders[0])
    (True, False, [0, 1, 2, 3, 4, 5])
    """

    part: float = 0.5
    repeat: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "part", as_number(self.part, "part", least=0, most=1))
        as_flag(self.repeat, "repeat")

    @property
    def law(self) -> laws.Adaptive:
        """An adaptive law with random draws."""
        return laws.Adaptive(repeat=self.repeat)

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        count = ceil(round(self.part * tasks.num_tasks, 9))
        again = True
        while again:
            left = set(range(tasks.num_tasks))
            for task in islice(GreedyDistance(repeat=False).visits(tasks, rng), count):
                left.remove(int(np.asarray(task)))
                yield task
            yield from rng.permutation(sorted(left)).tolist()
            again = self.repeat
