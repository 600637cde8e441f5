"""The view of the tasks that an ordering gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from forgetting.core.arrays import Array, as_count, read_only
from forgetting.core.numerical import EPS
from forgetting.errors import OrderingError

__all__ = ["TIED", "TaskView", "rounding_of"]

TIED = 1e-12  # distances that differ by less than this part are ties, because processors round differently


def rounding_of(*points: Array, unit: float = EPS) -> float:
    """The distance of a task from an iterate that rounding alone may cause, if it is a difference of these points.

    >>> rounding_of(np.array([3.0, 4.0])) < 1e-13
    True
    """
    sizes = [float(np.max(np.abs(point), initial=0.0)) * np.sqrt(point.size) for point in points]
    return 32 * unit * float(sum(sizes))


@dataclass(frozen=True)
class TaskView:
    """The information that an ordering may use: the number of tasks, their norms, how similar they are, and current
    distances and losses.

    Distances and losses of tasks that are solved up to rounding are 0.

    >>> TaskView(3).num_tasks
    3
    >>> TaskView(2, np.array([1.0, 9.0]), lambda: np.array([1.0, 1e-16]), None, lambda: 1e-15).distances().tolist()
    [1.0, 0.0]
    """

    num_tasks: int
    norms: Array | None = None
    _distances: Callable[[], Array] | None = None
    _losses: Callable[[], Array] | None = None
    _rounding: Callable[[], float] | None = None
    _similarity: Callable[[Literal["rows", "solutions"]], Array | None] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_tasks", as_count(self.num_tasks, "num_tasks", least=1))
        if self.norms is not None:
            object.__setattr__(self, "norms", read_only(np.asarray(self.norms)))

    def distances(self) -> Array:
        """The distance from the current iterate to the solution set of every task."""
        distances = self._live(self._distances)
        rounding = self.rounding()
        return distances if rounding == 0 else np.where(distances <= rounding, 0.0, distances)

    def losses(self) -> Array:
        """The loss of every task at the current iterate."""
        losses = self._live(self._losses)
        rounding = self.rounding()
        if rounding == 0:
            return losses
        return np.where(losses <= 0.5 * (rounding * (1.0 if self.norms is None else self.norms)) ** 2, 0.0, losses)

    def similarity(self, by: Literal["rows", "solutions"]) -> Array:
        """The similarity of each pair of tasks, T x T, of their row spaces or of their solutions; rounded to 12 digits,
        because processors round differently."""
        known = None if self._similarity is None else self._similarity(by)
        if known is None:
            raise OrderingError(
                "this ordering compares tasks by their rows or solutions, which are those of regression tasks; these "
                "tasks have none, nor do the blocks of fg.solve; take another ordering such as 'reshuffled'"
            )
        return np.round(known, 12)

    def rounding(self) -> float:
        """The largest change of a distance by rounding errors; 0 if it is not known."""
        return 0.0 if self._rounding is None else self._rounding()

    @staticmethod
    def _live(source: Callable[[], Array] | None) -> Array:
        if source is None:
            raise OrderingError(
                "this ordering looks at the iterate; set `adaptive = True` on its class, or `law = laws.Adaptive()`"
            )
        return source()
