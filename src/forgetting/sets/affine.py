"""Solution sets of linear equations, and linear subspaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_number, is_sparse, real_array
from forgetting.core.memory import require_memory
from forgetting.core.numerical import SQUARED, rank_tolerance
from forgetting.errors import InfeasibleError, InvalidInputError
from forgetting.sets.base import ConvexSet, register

__all__ = ["Affine", "Subspace", "as_rows"]


def as_rows(value: Any, what: str) -> Array:
    """A finite dense matrix with at least one row and one column, copied; scipy.sparse is accepted.

    >>> import scipy.sparse as sp
    >>> as_rows(sp.eye_array(2), "A")
    array([[1., 0.],
           [0., 1.]])
    """
    if is_sparse(value):
        shape = value.shape
        require_memory(
            24.0 * float(np.prod(shape)),
            f"the rows of {what}, {shape}, which are stored dense,",
            "use fewer rows or columns",
        )
    matrix = real_array(value.toarray() if is_sparse(value) else value, what)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInputError(f"{what}: expected a matrix with rows and columns, got shape {matrix.shape}")
    return np.array(matrix, order="C")


def _factored(matrix: Array, rank_tol: float | None) -> tuple[Array, Array, Array]:
    """The singular vectors and values of a matrix up to its rank: left (columns), values, right (rows)."""
    left, sigma, right = np.linalg.svd(matrix, full_matrices=False)
    tol = rank_tolerance(matrix.shape) if rank_tol is None else as_number(rank_tol, "rank_tol", least=0, below=1)
    rank = int(np.count_nonzero(sigma > tol * sigma[0]))
    return left[:, :rank], sigma[:rank], np.ascontiguousarray(right[:rank])


@register
class Affine(ConvexSet):
    """{w: A w = b}, with project(w) = w - A^+ (A w - b).

    The set is stored as orthonormal rows U and targets c with the same solutions, U w = c. Their SVD costs
    O(n d min(n, d)) once, and a projection O(rank d).

    Args:
        A: (n, d), dense or scipy.sparse; rows may depend on each other.
        b: (n,).
        rank_tol: relative tolerance for the rank; None is max(n, d) * eps.
        rtol: how far, relative to |A| |w| + |b|, b may be from the range of A before the set counts as empty.

    >>> line = Affine([[1.0, 1.0]], [2.0])
    >>> line.project([0, 0]), round(line.distance([2, 2]), 6)
    (array([1., 1.]), 1.414214)
    >>> Affine([[1.0, 1.0], [1.0, 1.0]], [0.0, 1.0])
    Traceback (most recent call last):
    forgetting.errors.InfeasibleError: {A w = b} is empty: ...
    """

    parts = ("A", "b", "rank_tol", "rtol")
    A: Array
    b: Array
    rank_tol: float | None
    rtol: float
    basis: Array
    targets: Array

    def __init__(self, A: Any, b: Any, *, rank_tol: float | None = None, rtol: float = 1e-8) -> None:
        matrix = as_rows(A, "A")
        label = np.array(real_array(b, "b", squares=True))
        if label.shape != (len(matrix),):
            raise InvalidInputError(f"b: expected shape ({len(matrix)},), one entry per row of A, got {label.shape}")
        left, sigma, basis = _factored(matrix, rank_tol)
        along = left.T @ label
        with np.errstate(over="ignore"):
            targets = along / sigma
        if not np.vdot(targets, targets) < SQUARED:
            raise InvalidInputError("A is so small beside b that w overflows when squared; rescale the rows")
        missed = label - left @ along
        size = float(np.max(sigma, initial=0.0) * np.linalg.norm(targets) + np.linalg.norm(label))
        if np.linalg.norm(missed) > as_number(rtol, "rtol", least=0) * size:
            certificate = missed / float(missed @ label)
            row = int(np.argmax(np.abs(missed)))
            raise InfeasibleError(
                f"{{A w = b}} is empty: the equations contradict each other, row {row} most (b is "
                f"{np.linalg.norm(missed):.2g} away from the range of A); remove equations, or raise rtol=",
                certificate=certificate,
                residual=float(np.linalg.norm(matrix.T @ certificate)),
            )
        self._freeze(dim=matrix.shape[1], A=matrix, b=label, rank_tol=rank_tol, rtol=rtol, basis=basis, targets=targets)

    def nearest(self, w: Array) -> Array:
        return w - self.basis.T @ (self.basis @ w - self.targets)

    def inequalities(self) -> tuple[Array, Array]:
        return np.concatenate([self.basis, -self.basis]), np.concatenate([self.targets, -self.targets])

    def equations(self) -> tuple[Array, Array]:
        return self.basis, self.targets

    def rebuilt(self, change: Callable[[Array], Array], common: Array) -> Affine:
        rows = change(self.A)
        return Affine(rows, rows @ common)

    def __repr__(self) -> str:
        return f"Affine(d={self.dim}, rank={len(self.basis)})"


@register
class Subspace(ConvexSet):
    """The span of the rows of a matrix, with project(w) = V^T V w for orthonormal rows V.

    O(n d min(n, d)) once, O(rank d) per projection.

    >>> Subspace([[1.0, 1.0]]).project([2, 0])
    array([1., 1.])
    """

    parts = ("vectors", "rank_tol")
    vectors: Array
    rank_tol: float | None
    basis: Array

    def __init__(self, vectors: Any, *, rank_tol: float | None = None) -> None:
        matrix = as_rows(vectors, "vectors")
        self._freeze(dim=matrix.shape[1], vectors=matrix, rank_tol=rank_tol, basis=_factored(matrix, rank_tol)[2])

    def nearest(self, w: Array) -> Array:
        return self.basis.T @ (self.basis @ w)

    def complement(self) -> Array:
        """Orthonormal rows N with the subspace equal to {w: N w = 0}; O(d^3)."""
        if len(self.basis) == 0:
            return np.eye(self.dim)
        full, _ = np.linalg.qr(self.basis.T, mode="complete")
        return np.ascontiguousarray(full[:, len(self.basis) :].T)

    def inequalities(self) -> tuple[Array, Array]:
        rows = self.complement()
        return np.concatenate([rows, -rows]), np.zeros(2 * len(rows))

    def equations(self) -> tuple[Array, Array]:
        rows = self.complement()
        return rows, np.zeros(len(rows))

    def __repr__(self) -> str:
        return f"Subspace(d={self.dim}, rank={len(self.basis)})"
