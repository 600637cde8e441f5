"""The projection onto the solutions of all rows together."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.solver.methods.base import LeastSquares, register

__all__ = ["Direct"]


@register
class Direct(LeastSquares):
    """The projection onto the solutions of all rows together, by a singular value decomposition, repeated to refine it.

    For systems that are small enough, and too ill-conditioned for row steps. Cost about 10 m n min(m, n) operations.
    """

    name = "direct"
    damps = True

    def sweep(self, visits: IntArray) -> Array:
        gap = self.system.sweeper.slack(self.system.b, self.x)
        self.iterate.x = self.x + self.system.decomposition.correction(gap, self.x - self.system.x0)
        return np.atleast_1d(np.sum(gap * gap, axis=0))

    def error(self) -> float | None:
        """The size of the last refinement, relative to |x|; None before there was one."""
        return self.moves.sizes[-1] if len(self.moves.sizes) > 1 else None
