"""The order in which `fg.solve` visits blocks unless it is told another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import IntArray
from forgetting.orderings import Ordering, TaskView, laws

__all__ = ["DrawnOnce"]


@dataclass(frozen=True)
class _Repeated(laws.Unknown):
    """The law of one random order, repeated."""

    uses_norms: ClassVar[bool] = False


@dataclass(frozen=True)
class DrawnOnce(Ordering):
    """One random order, drawn at the start and repeated in every epoch.

    On random and on structured matrices it takes as many epochs as a new order for each epoch, or up to a third fewer
    where rows are fewer than columns.

    >>> DrawnOnce().first(TaskView(3), 6).tolist()
    [2, 0, 1, 2, 0, 1]
    """

    law = _Repeated()

    @property
    def in_words(self) -> str:
        """The ordering in words."""
        return "one random order, repeated"

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        order = rng.permutation(tasks.num_tasks)
        while True:
            yield order
