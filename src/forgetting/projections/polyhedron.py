"""Polyhedra {w: A w >= b}: an exact projection by a dual active-set method, or a proof that there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forgetting._arrays import Array, IntArray, as_number, real_array
from forgetting.errors import ForgettingError, InfeasibleError, InvalidInputError
from forgetting.projections.affine import as_rows
from forgetting.projections.base import ConvexSet, as_point

__all__ = ["Polyhedron", "Projection", "WarmStart"]

GRAM_ROWS = 2000  # above this A A^T is not kept (32 MiB here), and every projection uses orthogonal factors
OPTIMAL, EMPTY, LOST = 0, 1, 2
NO_ROWS = np.empty(0, dtype=np.int64)
NO_FACTOR = np.empty((0, 0))


class WarmStart(NamedTuple):
    """What a projection leaves for the next one onto the same set of `total` rows: the active ones and their factor.

    >>> WarmStart(5).rows.shape
    (0,)
    """

    total: int
    rows: IntArray = NO_ROWS
    factor: Array = NO_FACTOR


@dataclass(frozen=True, eq=False)
class Projection:
    """A projection with what proves it: w = p + A^T y with y >= 0, and y_i > 0 only where row i holds with equality.

    Lengths are measured with the rows of A scaled to norm 1.

    Attributes:
        point: the projection.
        multipliers: y, one per row of A as given.
        active: the rows with a multiplier.
        kkt_residual: the larger of |p + A^T y - w| and max_i |min(y_i, a_i.w - b_i)|. Rows at an angle t to each other
            can need multipliers of size 1/t, and the first term then holds 1/t times the rounding error.
        feasibility: max_i (b_i - a_i.w)_+.
        iterations: rows that entered or left the active set.
        warm: hand this to the next projection onto the same set.

    >>> found = Polyhedron([[1.0, 0.0], [0.0, 2.0]], [1.0, 2.0]).project_full([0.0, 5.0])
    >>> found.point, found.multipliers, found.active.tolist(), found.feasibility
    (array([1., 5.]), array([1., 0.]), [0], 0.0)
    """

    point: Array
    multipliers: Array
    active: IntArray
    kkt_residual: float
    feasibility: float
    iterations: int
    warm: WarmStart = field(repr=False)


class Polyhedron(ConvexSet):
    """{w: A w >= b}: halfspaces in any number and position.

    The projection minimises 1/2 |w - p|^2 by the dual active-set method of Goldfarb and Idnani (Math. Programming 27,
    1983), started from a few sweeps of Hildreth's coordinate ascent or from the last active rows. It first works with
    the Gram matrix A A^T, at O(n a) per change of the a active rows, and checks the result on A itself; where rows are
    so close to dependent that this is not safe, it starts over with orthogonal factors, at O(n d) per change.
    Duplicated rows, nearly parallel rows and more rows than dimensions are fine.

    Args:
        A: (n, d), dense or scipy.sparse (stored dense). Rows may be scaled differently; zero rows are allowed.
        b: (n,).
        check: decide at once whether the set is empty; False leaves that to the first projection.

    A set counts as empty when it has no point within 10^6 times the size of the data.

    >>> corner = Polyhedron([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    >>> corner.project([-1, 2]), corner.distance([-3, -4]), corner.contains([1, 1])
    (array([0., 2.]), 5.0, True)
    >>> Polyhedron([[1.0], [-1.0]], [1.0, 0.0])
    Traceback (most recent call last):
    forgetting.errors.InfeasibleError: {A w >= b} is empty: ...
    """

    A: Array
    b: Array
    _rows: Array
    _levels: Array
    _norms: Array
    _kept: IntArray

    def __init__(self, A: Any, b: Any, *, check: bool = True) -> None:
        matrix = as_rows(A, "A")
        label = np.array(real_array(b, "b"))
        if label.shape != (len(matrix),):
            raise InvalidInputError(f"b: expected shape ({len(matrix)},), one entry per row of A, got {label.shape}")
        largest = np.max(np.abs(matrix), axis=1)
        impossible = np.flatnonzero((largest == 0) & (label > 0))
        if impossible.size:
            row = int(impossible[0])
            raise InfeasibleError(
                f"{{A w >= b}} is empty: row {row} of A is zero, but b[{row}] = {label[row]:g} is above 0",
                certificate=np.eye(1, len(label), row)[0] / label[row],
            )
        kept = np.flatnonzero(largest)
        rows = matrix[kept] / largest[kept, None]  # first by the largest entry: squares must not overflow
        norms = np.linalg.norm(rows, axis=1)
        rows /= norms[:, None]
        with np.errstate(over="ignore"):
            levels = label[kept] / largest[kept] / norms
        if not np.isfinite(levels).all():
            row = int(kept[np.argmin(np.isfinite(levels))])
            raise InvalidInputError(f"b[{row}] / |row {row} of A| overflows; scale the row, or leave it out")
        self._freeze(dim=matrix.shape[1], A=matrix, b=label)
        # these go to compiled code, for which a read-only array is another type
        self.__dict__.update(_rows=rows, _levels=levels, _norms=norms * largest[kept], _kept=kept)
        if check:
            self._solve(np.zeros(self.dim), None)

    @cached_property
    def _gram(self) -> Array:
        return self._rows @ self._rows.T if len(self._rows) <= GRAM_ROWS else NO_FACTOR

    @cached_property
    def _compiled(self) -> Any:
        from forgetting.projections import _active_set

        return _active_set.project

    @cached_property
    def _again(self) -> Any:
        from forgetting.projections import _active_set

        return _active_set.again

    def _solve(self, p: Array, warm: WarmStart | None) -> Any:
        """The compiled projection in the arithmetic it needs; raises if there is no projection."""
        rows, factor = (NO_ROWS, NO_FACTOR) if warm is None else (warm.rows, warm.factor)
        if not p.flags.carray:
            p = np.array(p)
        if len(self._rows) == 0:
            return OPTIMAL, p.copy(), NO_ROWS, np.empty(0), NO_FACTOR, 0, 0.0, 0.0
        changes = 0
        if len(self._rows) <= GRAM_ROWS:
            result = self._compiled(False, self._rows, self._levels, self._gram, p, rows, factor)
            if result[0] == OPTIMAL:
                return result
            rows, factor, changes = result[2], NO_FACTOR, result[5]
        result = self._compiled(True, self._rows, self._levels, NO_FACTOR, p, rows, factor)
        status, point, active, weights, factor, more, missed, residual = result
        reach = float(np.linalg.norm(p)) + float(np.max(np.abs(self._levels[active]), initial=0.0))
        if status == OPTIMAL and missed <= 1e-9 * reach:
            return status, point, active, weights, factor, changes + more, missed, residual
        self._explain(status, active, weights)
        raise ForgettingError(
            f"the projection onto {self} did not converge: after {changes + more} changes of the active rows the point "
            f"found misses a row by {missed:.2g}; scale the data to moderate size, or leave out nearly parallel rows"
        )

    def _explain(self, status: int, active: IntArray, weights: Array) -> None:
        """Raise if there is a certificate of emptiness."""
        y, residual = np.zeros(len(self._rows)), np.inf
        if status == EMPTY:
            y[active] = weights
            y, residual = self._scaled(y)
        if residual > 1e-10:
            other, left = self._scaled(self._least_distance())
            y, residual = (other, left) if left < residual else (y, residual)
        if residual > 1e-5:
            return
        residual = float(np.linalg.norm(self._rows.T @ y))
        full = np.zeros(len(self.b))
        full[self._kept] = y / self._norms
        involved = self._kept[y > 0]
        shown = ", ".join(str(row) for row in involved[:6]) + (", ..." if len(involved) > 6 else "")
        raise InfeasibleError(
            f"{{A w >= b}} is empty: rows {shown} contradict each other; with the y >= 0 in .certificate, A^T y = 0 "
            f"(to {residual:.1g}) but b.y = 1. Leave out one of these rows or lower its b",
            certificate=full,
            residual=residual,
        )

    def _scaled(self, y: Array) -> tuple[Array, float]:
        """y with b.y = 1, and |A^T y| times the size of b (infinite if b.y is not above 0)."""
        gap = float(self._levels @ y)
        if gap <= 0:
            return y, np.inf
        size = float(np.max(np.abs(self._levels[y > 0])))
        return y / gap, float(np.linalg.norm(self._rows.T @ y)) * size / gap

    def _least_distance(self) -> Array:
        """min_(y >= 0) |A^T y|^2 + (b.y - 1)^2, which is 0 for empty sets only (Lawson and Hanson 1974, chapter 23)."""
        from scipy.optimize import nnls

        size = float(np.max(np.abs(self._levels)))
        if size == 0:
            return np.zeros(len(self._rows))  # the origin is in the set
        system = np.concatenate([self._rows.T, self._levels[None] / size])
        try:
            y: Array = nnls(system, np.eye(1, self.dim + 1, self.dim)[0], maxiter=100 * len(self._rows))[0]
        except RuntimeError:  # it ran out of iterations
            return np.zeros(len(self._rows))
        return y

    def nearest(self, w: Array) -> Array:
        point: Array = self._solve(w, None)[1]
        return point

    def nearest_from(self, w: Array, warm: WarmStart | None) -> tuple[Array, WarmStart | None, int]:
        found = w.copy()
        rows, factor = (NO_ROWS, NO_FACTOR) if warm is None else (warm.rows, warm.factor)
        outcome = self._again(self._rows, self._levels, found, rows, factor)
        if outcome >= 0:  # a point inside leaves nothing: the rows from before are the better guess for next time
            return (found if outcome else w), warm, 1
        _, point, rows, _, factor, changes, _, _ = self._solve(w, warm)
        return point, WarmStart(len(self._rows), rows, factor), changes + 1

    def project_full(self, w: Any, warm: WarmStart | None = None) -> Projection:
        """The projection with its multipliers and residuals; `warm` is the `.warm` of an earlier one onto this set."""
        p = as_point(w, self.dim)
        if warm is not None and not isinstance(warm, WarmStart):
            raise InvalidInputError(f"warm must be the .warm of an earlier projection, got {type(warm).__name__}")
        if warm is not None and warm.total != len(self._rows):
            raise InvalidInputError(f"warm comes from another set, of {warm.total} rows, not from {self}")
        _, point, rows, weights, factor, changes, missed, residual = self._solve(p, warm)
        active = self._kept[rows]
        multipliers = np.zeros(len(self.b))
        multipliers[active] = weights / self._norms[rows]
        active.sort()
        left = WarmStart(len(self._rows), rows, factor) if len(rows) or warm is None else warm
        return Projection(point, multipliers, active, residual, missed, changes, left)

    def contains(self, w: Any, tol: float = 1e-9) -> bool:
        point, allowed = as_point(w, self.dim), as_number(tol, "tol", least=0)
        if len(self._rows) == 0:
            return True
        missed = float(np.max(self._levels - self._rows @ point))
        return missed <= 0 or (missed <= allowed and self.distance(point) <= allowed)  # the distance is at least that

    def inequalities(self) -> tuple[Array, Array]:
        return self.A, self.b

    def __repr__(self) -> str:
        return f"Polyhedron(n={len(self.b)}, d={self.dim})"
