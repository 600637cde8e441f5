"""What a search is asked for: the quantity and the ordering, checked, and as an objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.compute.devices import Device
from forgetting.core.arrays import Array, IntArray, as_word
from forgetting.errors import InvalidInputError, NotSupportedError, OrderingError
from forgetting.orderings import Ordering, TaskView
from forgetting.orderings.laws import Cycle, Fixed, Independent
from forgetting.worstcase.objective import Drawn, DrawnForgetting, InOrder, Objective

__all__ = ["QUANTITIES", "Asked"]

QUANTITIES = ("loss", "next_loss", "forgetting")
COVERED = (
    "the search covers independent draws with given weights, cyclic orderings and explicit orders (fg.orderings."
    "WithReplacement, Cyclic, Explicit)"
)


@dataclass(frozen=True, eq=False)
class Asked:
    """The largest `quantity` after k steps in an ordering, over T subspaces of dimension d.

    Attributes:
        weights: the probabilities of independent draws, where the search begins; equal ones for fixed orders.
        epoch: the tasks that are repeated; None for independent draws.
    """

    T: int
    d: int
    k: int
    quantity: str
    ordering: Ordering
    free_weights: bool
    weights: Array
    epoch: IntArray | None

    @classmethod
    def checked(cls, T: int, d: int, k: int, quantity: Any, ordering: Ordering, weights: Any) -> Asked:
        """The question; an error says what is wrong, or not covered."""
        as_word(quantity, QUANTITIES, "quantity")
        if not isinstance(weights, str) or weights not in ("fixed", "free"):
            raise InvalidInputError(
                f"weights must be 'fixed' or 'free', got {weights!r:.40}; fixed weights are those "
                "of the ordering, such as fg.orderings.WithReplacement(p=[1, 2])"
            )
        law, free = ordering.law, weights == "free"
        law.check(T)
        if quantity == "forgetting" and k == 1:
            raise InvalidInputError("forgetting is 0 after k = 1 step, whatever the tasks are; give k of at least 2")
        if isinstance(law, Independent):
            if callable(law.p):
                raise NotSupportedError(f"{ordering}: its weights depend on the tasks; {COVERED}")
            if free and quantity == "loss":
                raise InvalidInputError(
                    "the mean loss over all tasks is largest if one task alone is drawn for ever, so that weights of "
                    "the draws cannot be free; use quantity='next_loss' or 'forgetting', or weights='fixed'"
                )
            return cls(T, d, k, quantity, ordering, free, law.probabilities(TaskView(T)), None)
        if not isinstance(law, Fixed) or (not isinstance(law, Cycle) and law.sequence is None):
            raise NotSupportedError(f"{ordering} is not covered: {COVERED}")
        if free:
            raise InvalidInputError(f"weights='free' is about independent draws, and {ordering} draws nothing")
        if isinstance(law, Cycle):
            epoch = law.epoch(T)
        else:
            epoch = np.array(law.sequence, dtype=np.int64)
            needed = k + (quantity == "next_loss")
            if len(epoch) < needed:
                raise OrderingError(
                    f"{ordering} has {len(epoch)} steps, and {quantity} after k = {k} steps needs {needed}; give a "
                    "longer order or a smaller k"
                )
            epoch = epoch[:needed]
        return cls(T, d, k, quantity, ordering, False, np.full(T, 1 / T), epoch)

    def objective(self, device: Device) -> Objective:
        """What is maximised, on a device."""
        equal = np.full(self.T, 1 / self.T)
        if self.epoch is None:
            if self.quantity == "forgetting":
                return DrawnForgetting(device, self.d, self.k)
            return Drawn(device, self.d, self.k, equal if self.quantity == "loss" else None)
        cycles, rest = divmod(self.k, len(self.epoch))
        shares = equal
        if self.quantity == "next_loss":
            shares = (np.arange(self.T) == self.epoch[rest]).astype(np.float64)
        elif self.quantity == "forgetting":
            visits = cycles * np.bincount(self.epoch, minlength=self.T)
            shares = (visits + np.bincount(self.epoch[:rest], minlength=self.T)) / self.k
        return InOrder(device, self.epoch, cycles, rest, shares)
