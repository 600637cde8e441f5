"""Randomised extended Kaczmarz: rows and columns."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.solver.methods.base import LeastSquares, System, register
from forgetting.solver.sweepers import Iterate

__all__ = ["Extended"]


@register
class Extended(LeastSquares):
    """Randomised extended Kaczmarz (Zouzias and Freris 2013): column steps take b onto the range of A; row steps.

    z starts at b and is projected onto the orthogonal complement of columns; x makes row steps for b - z. Rows and
    columns are read, so that a matrix in memory is needed, and a copy of its columns.
    """

    name = "extended"

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.columns = system.sweeper.columns()
        self.z = system.b.copy()
        self.visited = 0

    @property
    def target(self) -> Array:
        return self.system.b - self.z

    def sweep(self, visits: IntArray) -> Array:
        sweeper = self.system.sweeper
        count = self.columns.num_blocks
        picked = self._next_columns(-(-count * len(visits) // sweeper.num_blocks))
        self.columns.sweep(picked, np.zeros((count, *self.z.shape[1:])), Iterate(self.z))
        return sweeper.sweep(visits, self.target, self.iterate)

    def _next_columns(self, share: int) -> IntArray:
        """The next columns: each once before any has its second turn, in a new random order for every turn."""
        count, first = self.columns.num_blocks, self.visited
        self.visited += share
        turns = range(first // count, (self.visited - 1) // count + 1)
        orders = [np.random.default_rng([self.system.seed, turn]).permutation(count) for turn in turns]
        return np.concatenate(orders)[first % count :][:share].astype(np.int64)

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "z": self.z, "visited": np.array([self.visited])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.z, self.visited = arrays["z"].copy(), int(arrays["visited"][0])
