"""Tail averaging of random row steps."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.orderings import NormWeighted
from forgetting.solver.methods.base import LeastSquares, System, register

__all__ = ["Averaged"]


@register
class Averaged(LeastSquares):
    """Tail averaging (Epperly, Goldshlager and Webber 2024): the average of the iterates of random row steps.

    Rows are drawn with probabilities proportional to |a_i|^2, for which the mean of the iterates is a least-squares
    solution. The average begins anew whenever the number of epochs doubles, so that it covers the last half.
    """

    name = "averaged"
    usual_order = NormWeighted
    damps = True
    estimates = False  # the moves of an average shrink faster than its error

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        #: steps are those of x - x0, so that the ridge rows draw towards x0
        self.shifted = system.sweeper.slack(system.b, system.x0)
        self.iterate.x -= system.x0
        self.total, self.count = np.zeros_like(self.iterate.x), 0
        self.epochs, self.begun = 0, 0  # epochs that are over, now and when the average began

    @property
    def result(self) -> Array:
        return self.system.x0 + (self.total / self.count if self.count else self.iterate.x)

    @property
    def x(self) -> Array:
        return self.result

    @property
    def target(self) -> Array:
        return self.shifted

    def sweep(self, visits: IntArray) -> Array:
        sweeper = self.system.sweeper
        seen = np.zeros(1 if self.iterate.x.ndim == 1 else self.iterate.x.shape[1])
        size = max(1, sweeper.shape[1] // 4)  # iterates that are fewer steps apart hardly differ
        order = self._with_ridge(visits) if self.system.damp else visits
        if self.epochs & (self.epochs - 1) == 0 and self.epochs > self.begun:
            self.total, self.count, self.begun = np.zeros_like(self.total), 0, self.epochs
        for start in range(0, len(order), size):
            seen += sweeper.sweep(order[start : start + size], self.shifted, self.iterate)
            self.total += self.iterate.x
            self.count += 1
        return seen

    def _with_ridge(self, visits: IntArray) -> IntArray:
        """The visits with steps of the rows damp e_j among them, as often as their norms ask; -1 - j is row j."""
        n = self.system.sweeper.shape[1]
        ridge, rows = n * self.system.damp**2, self.system.sweeper.squares_sum
        if rows == 0:
            return visits
        rng = np.random.default_rng([self.system.seed, self.epochs, self.count])
        many = rng.geometric(rows / (rows + ridge), len(visits)) - 1  # steps of ridge rows before each visit
        places = np.repeat(np.arange(len(visits)), many)
        return np.insert(visits, places, -1 - rng.integers(n, size=len(places)))

    def end_epoch(self) -> None:
        self.epochs += 1
        super().end_epoch()

    def error(self) -> None:
        """No estimate."""
        return None

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "total": self.total, "counts": np.array([self.count, self.epochs, self.begun])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.total = arrays["total"].copy()
        self.count, self.epochs, self.begun = (int(number) for number in arrays["counts"])
