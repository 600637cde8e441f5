"""Orderings without randomness: the cyclic ordering, and a given sequence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forgetting.core.arrays import IntArray
from forgetting.errors import InvalidInputError
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, register

__all__ = ["Cyclic", "Explicit"]


@register
@dataclass(frozen=True)
class Cyclic(Ordering):
    """Cyclic ordering: the tasks 0, 1, ..., T - 1, or those of `order`, repeated.

    `order` may be any list of tasks. Bounds on cyclic orderings cover it if it has every task once.

    >>> from forgetting.orderings import TaskView
    >>> Cyclic().first(TaskView(3), 5).tolist(), Cyclic([2, 0, 1]).first(TaskView(3), 5).tolist()
    ([0, 1, 2, 0, 1], [2, 0, 1, 2, 0])
    """

    order: Sequence[int] | IntArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_law", laws.Cycle(self.order))
        object.__setattr__(self, "order", self.law.order)

    @property
    def law(self) -> laws.Cycle:
        """A fixed cycle of tasks."""
        law: laws.Cycle = self._law  # type: ignore[attr-defined]
        return law

    def __repr__(self) -> str:
        return "Cyclic()" if self.order is None else f"Cyclic(order={self.order})"

    def __str__(self) -> str:
        return repr(self) if self.order is None else f"Cyclic(order of {len(self.order)} tasks)"


@register
@dataclass(frozen=True)
class Explicit(Ordering):
    """The tasks of a given sequence, once.

    >>> from forgetting.orderings import TaskView
    >>> Explicit([2, 0, 0]).first(TaskView(3), 3).tolist()
    [2, 0, 0]
    """

    seq: Sequence[int] | IntArray

    def __post_init__(self) -> None:
        if self.seq is None:
            raise InvalidInputError("seq must be a sequence of task numbers, got None")
        object.__setattr__(self, "_law", laws.Fixed(self.seq))
        object.__setattr__(self, "seq", self.law.sequence)

    @property
    def law(self) -> laws.Fixed:
        """A fixed sequence of tasks."""
        law: laws.Fixed = self._law  # type: ignore[attr-defined]
        return law

    def __str__(self) -> str:
        return f"Explicit({len(self.seq)} tasks)"
