"""Greedy orderings: the next task is the task with the largest distance or loss at the current iterate."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, register
from forgetting.orderings.view import TIED, TaskView

__all__ = ["GreedyDistance", "GreedyResidual"]


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
        """How far rounding errors may have moved each score."""
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
