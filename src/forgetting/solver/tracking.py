"""The errors of all rows, kept up to date step by step, for orderings that look at x."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array
from forgetting.solver.rows import Rows

__all__ = ["Tracked"]


class Tracked:
    """b - A x for orderings that look at x at every step, kept up to date by inner products of rows.

    The step t a_i changes the gaps by t A a_i. The m numbers A a_i are kept as long as memory lasts, so that a second
    visit costs m operations and not a pass over the matrix.
    """

    def __init__(self, rows: Rows, b: Array, x: Array, scale: Array, memory: float) -> None:
        self.rows, self.b, self.scale = rows, b, scale
        self.products: dict[int, Array] = {}
        self.most = int(memory / (8.0 * rows.shape[0]))
        norms = np.sqrt(rows.squares)
        self._inverse_norms = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
        self.refresh(x)

    def refresh(self, x: Array) -> None:
        """Compute all gaps anew, so that rounding errors do not add up."""
        self.gap = self.b - self.rows.products(x)

    def moved(self, row: int) -> None:
        """Note the step of a row."""
        product = self.products.get(row)
        if product is None:
            product = self.rows.products(self.rows.dense([row])[0])
            if len(self.products) < self.most:
                self.products[row] = product
        self.gap -= (self.scale[row] * self.gap[row]) * product

    def distances(self) -> Array:
        """The distance from x to the solutions of every row."""
        return np.abs(self.gap) * self._inverse_norms

    def losses(self) -> Array:
        """Half the squared residual of every row."""
        return 0.5 * self.gap**2
