"""SIRT and SART: all rows, or those of a view, step from the same x, weighted by sums of rows and columns."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from forgetting.core.arrays import Array, IntArray, is_sparse
from forgetting.orderings import Cyclic
from forgetting.solver.block_sweeper import BlockSweeper
from forgetting.solver.methods.base import register
from forgetting.solver.methods.kaczmarz import KaczmarzMethod
from forgetting.solver.rows import Rows

COLUMN_SUMS = 2.0**27  # bytes for those of blocks that are kept
UNEVEN = 0.25  # of the largest sum of a column over blocks, below which weights of blocks may magnify errors


@register
class Sirt(KaczmarzMethod):
    """The simultaneous iterative reconstruction technique, with the weights of Gregor and Benson (2008).

        x <- x + w C A^T R (b - A x),    R_ii = 1 / sum_j |a_ij|,    C_jj = 1 / sum_i |a_ij|.

    Converges for w in (0, 2) to a minimiser of sum_i R_ii (b_i - a_i.x)^2, of the consistent system to a solution.
    Every step is one of a gradient: noise comes in slowly, and the monotone error rule applies. After Gilbert 1972.
    """

    name = "sirt"
    simultaneous = True
    streams = False
    usual_order = Cyclic

    @cached_property
    def absolute(self) -> Rows:
        """The rows with the absolute values of their entries."""
        rows = self._sweeper.rows
        entries = rows.matrix.data if is_sparse(rows.matrix) else rows.matrix
        return rows if entries.min(initial=0.0) >= 0 else Rows(abs(rows.matrix))

    @property
    def _sweeper(self) -> BlockSweeper:
        sweeper = self.system.sweeper
        assert isinstance(sweeper, BlockSweeper)
        return sweeper

    @cached_property
    def row_weights(self) -> Array:
        """1 / sum_j |a_ij|, and 0 for rows of zeros."""
        return _inverses(self.absolute.products(np.ones(self._sweeper.shape[1])))

    @cached_property
    def _column_weights(self) -> dict[int, Array]:
        return {}

    def _column_sums(self, block: int) -> Array:
        order = self._sweeper.blocks[block]
        return self.absolute.combined(np.ones(len(order)), order)

    @cached_property
    def _common_weights(self) -> Array | None:
        """1 / the largest sum of a column over blocks, if some block has a sum that is much smaller; else None.

        Steps with weights D of their own may lead away from a solution block by block, and without end. With one D for
        all, none leads away from it in the norm of D^(-1).
        """
        least, largest = np.full(self._sweeper.shape[1], np.inf), np.zeros(self._sweeper.shape[1])
        for block in range(self._sweeper.num_blocks):
            sums = self._column_sums(block)
            least, largest = np.minimum(least, np.where(sums > 0, sums, np.inf)), np.maximum(largest, sums)
        return _inverses(largest) if (least < UNEVEN * largest).any() else None

    def column_weights(self, block: int) -> Array:
        """1 / sum |a_ij| over the rows i of a block, and 0 for columns of zeros; kept as long as memory lasts."""
        if self._common_weights is not None:
            return self._common_weights
        kept = self._column_weights.get(block)
        if kept is None:
            kept = _inverses(self._column_sums(block))
            if 8.0 * len(kept) * (len(self._column_weights) + 1) <= COLUMN_SUMS:
                self._column_weights[block] = kept
        return kept

    @property
    def by_rows(self) -> bool:
        return False

    @property
    def simultaneous_weights(self) -> tuple[Array, Array] | None:
        if self._sweeper.num_blocks > 1 or not self.by_equations:
            return None
        return self.row_weights, self.column_weights(0)

    def _steps(self, visits: IntArray) -> Array:
        sweeper, x, b = self._sweeper, self.iterate.x, self.system.b
        seen = np.zeros(1 if x.ndim == 1 else x.shape[1])
        tail = (1,) * (x.ndim - 1)
        for block in visits.tolist():
            order = sweeper.blocks[block]
            error = b[order] - sweeper.rows.products(x, order, sweeper.threads)
            seen += np.sum(error * error, axis=0)
            weighted = self.row_weights[order].reshape(-1, *tail) * error
            move = sweeper.rows.combined(weighted, order, sweeper.threads)
            x += sweeper.relaxation * self.column_weights(block).reshape(-1, *tail) * move
            sweeper.clip(self.iterate)
        return seen


@register
class Sart(Sirt):
    """The simultaneous algebraic reconstruction technique (Andersen and Kak 1984): SIRT's step for one view at a time.

    The rows of a view are a block: all lie in `blocks`, which has to be given, or follows from `residual_shape`. Where
    the sum of a column in a view is below a quarter of that in another one, C has the largest sums over all views.
    """

    name = "sart"


def _inverses(sums: Array) -> Array:
    return np.divide(1.0, sums, out=np.zeros(len(sums)), where=sums > np.finfo(np.float64).tiny)
