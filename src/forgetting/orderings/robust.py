"""Orderings for systems in which some rows are wrong: a visit to a suspect task makes no update."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import IntArray, as_count, as_number
from forgetting.orderings import laws
from forgetting.orderings.base import NO_UPDATE, Ordering, register
from forgetting.orderings.view import TIED, TaskView

__all__ = ["Quantile"]


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
