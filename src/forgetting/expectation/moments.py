"""Second moments of the error: E[z z^T] under random orderings evolves linearly, and losses are linear in it.

Learning task m multiplies the state by S_m = I - a_m b_m^T. In primal form the state is z (D numbers), b_m = U_m and
a_m = U_m diag(g). In dual form it is rho = U^T z (R numbers), b_m picks block m and a_m = M[:, m] diag(g). Both forms
share this file. The dual form costs more when R > D, and keeps all digits when subspaces nearly coincide: the loss is
then a small part of |z|^2, which the primal form has to find by cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.geometry import Geometry
from forgetting.schemes import LinearScheme
from forgetting.schemes.linear import linear_gains

__all__ = ["Moments"]

NEARLY_EQUAL = 1e-3  # least eigenvalue of U U^T below which cancellation costs more than three digits


@dataclass(frozen=True, eq=False)
class Moments:
    """The maps A -> S_m A S_m^T and Q[A] = sum_m p_m S_m A S_m^T on second moments of a linear scheme.

    Attributes:
        probability: p_m of each distinct task (clones summed).
        left, right: R x n, the stacked a_m^T and b_m^T.
        weights: `left` with each row multiplied by the probability of its task.
    """

    geometry: Geometry
    gains: Array
    probability: Array
    dual: bool
    left: Array = field(repr=False)
    right: Array = field(repr=False)
    weights: Array = field(repr=False)

    @classmethod
    def of(cls, geometry: Geometry, scheme: LinearScheme, probability: Array, *, dual: bool) -> Moments:
        """Set up for the probabilities of the distinct tasks."""
        gains = linear_gains(geometry, scheme)
        right = np.eye(len(gains)) if dual else geometry.rows
        left = gains[:, None] * (geometry.gram if dual else geometry.rows)
        weights = left * probability[geometry.owner][:, None]
        return cls(geometry, gains, probability, dual, left, right, weights)

    @property
    def size(self) -> int:
        """n, the order of the second-moment matrices."""
        return int(self.left.shape[1])

    def start(self, z0: Array) -> Array:
        """The moment of a certain start."""
        state = self.geometry.rows @ z0 if self.dual else z0
        return np.outer(state, state)

    def _completed(self, stack: Array) -> tuple[Array, Array]:
        """1/2 (b_m^T A b_m) a_m^T - b_m^T A for every task, R x stack x n; and all b_i^T A b_i, stack x R."""
        size, count, _ = stack.shape
        products = stack.copy() if self.dual else (self.right @ stack.reshape(size, -1)).reshape(-1, count, size)
        quadratic = np.empty((count, len(self.left)))
        _kernels().complete_blocks(self.dual, self.left, self.right, self.geometry.offsets, products, quadratic)
        return products, np.maximum(quadratic, 0.0)

    def advance(self, stack: Array) -> tuple[Array, Array]:
        """Q[A], and the R numbers b_i^T A b_i on which all losses at A depend, for a stack of matrices.

        The stack lies along the middle axis (n x stack x n), so that it takes two matrix products in all. Computed as
        A + (C + C^T) with C = (p a) (1/2 (b^T A b) a^T - b^T A). The sum must stay in this order, or an antisymmetric
        rounding error appears that is never damped.
        """
        completed, quadratic = self._completed(stack)
        half = (self.weights.T @ completed.reshape(len(completed), stack.shape[1] * stack.shape[2])).reshape(
            stack.shape
        )
        result = stack.copy()
        _kernels().add_symmetric(result, half)
        return result, quadratic

    def apply(self, moments: Array) -> Array:
        """Q[A], for one matrix or for each of several (along the first axis)."""
        if moments.ndim == 2:
            return self.advance(moments[:, None])[0][:, 0]
        return np.swapaxes(self.advance(np.ascontiguousarray(np.swapaxes(moments, 0, 1)))[0], 0, 1)

    def step(self, task: int, moments: Array) -> Array:
        """S_m A S_m^T for one matrix, or for each of a stack."""
        block = self.geometry.block(task)
        left, right = self.left[block], self.right[block]
        products = moments[..., block, :] if self.dual else right @ moments
        inner = products[..., block] if self.dual else products @ right.T
        half = left.T @ (0.5 * inner @ left - products)
        return np.asarray(moments + (half + np.swapaxes(half, -1, -2)))

    def add_steps(self, moment: Array, sums: Array) -> None:
        """sums[:, m] += p_m S_m A S_m^T for every distinct task m."""
        completed = self._completed(moment[:, None])[0][:, 0]
        _kernels().add_steps(moment, completed, self.left, self.geometry.offsets, self.probability, sums)

    def quadratic(self, moments: Array) -> Array:
        """b_i^T A b_i for each of the R directions i, never negative; shape (..., R)."""
        if self.dual:
            values = np.diagonal(moments, axis1=-2, axis2=-1)
        else:
            values = np.einsum("...in,in->...i", self.right @ moments, self.right)
        return np.maximum(values, 0.0)

    def losses(self, quadratic: Array) -> Array:
        """Expected loss of each distinct task from the R numbers b_i^T A b_i; shape (..., number of distinct tasks)."""
        return 0.5 * self.geometry.per_task(self.geometry.sigma**2 * quadratic)

    def learned(self, quadratic: Array) -> Array:
        """Expected loss that each distinct task would keep if it were learned now."""
        kept = (self.geometry.sigma * (1 - self.gains)) ** 2
        return 0.5 * self.geometry.per_task(kept * quadratic)

    def shrinkage(self, quadratic: Array) -> Array:
        """Expected fall of |z|^2 if each distinct task were learned now: g (2 - g) rho^2 in each direction."""
        return self.geometry.per_task(self.gains * (2 - self.gains) * quadratic)


def prefers_dual(geometry: Geometry) -> bool:
    """Accuracy first: dual where subspaces nearly coincide, or where it is no dearer."""
    total, dim = len(geometry.sigma), geometry.dim
    if total <= dim:
        return True
    spectrum = np.linalg.eigvalsh(geometry.rows.T @ geometry.rows)
    return bool(spectrum[0] < NEARLY_EQUAL) and total <= 4096


def _kernels() -> Any:
    from forgetting.expectation import _moment_kernels

    return _moment_kernels
