"""The view of the tasks that an ordering gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from forgetting._arrays import Array, as_count, read_only
from forgetting.errors import OrderingError

__all__ = ["TIED", "TaskView"]

TIED = 1e-12  # distances that differ by less than this part are ties, because processors round differently


@dataclass(frozen=True)
class TaskView:
    """The information that an ordering may use: the number of tasks, their norms, and current distances and losses.

    >>> TaskView(3).num_tasks
    3
    """

    num_tasks: int
    norms: Array | None = None
    _distances: Callable[[], Array] | None = None
    _losses: Callable[[], Array] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_tasks", as_count(self.num_tasks, "num_tasks", least=1))
        if self.norms is not None:
            object.__setattr__(self, "norms", read_only(np.asarray(self.norms)))

    def distances(self) -> Array:
        """The distance from the current iterate to the solution set of every task."""
        return self._live(self._distances)

    def losses(self) -> Array:
        """The loss of every task at the current iterate."""
        return self._live(self._losses)

    @staticmethod
    def _live(source: Callable[[], Array] | None) -> Array:
        if source is None:
            raise OrderingError(
                "this ordering looks at the iterate; set `adaptive = True` on its class, or `law = laws.Adaptive()`"
            )
        return source()
