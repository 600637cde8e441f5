"""Halfspaces, slabs and polyhedra {w: A w >= b}.

The projection onto a polyhedron is exact, by a dual active-set method; if the set is empty, there is a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag, as_number, as_vector, real_array
from forgetting.errors import ForgettingError, InfeasibleError, InvalidInputError
from forgetting.sets._certificate import best_combination, refined, rounding, vanishes
from forgetting.sets.affine import as_rows
from forgetting.sets.base import ConvexSet, UnitRows, as_point, check_near, register

__all__ = ["Halfspace", "Polyhedron", "Projection", "Slab", "WarmStart"]


def _normal(a: Any) -> tuple[Array, Array, float]:
    """The vector, its direction and its norm; the zero vector is refused."""
    normal = as_point(real_array(a, "a"), "a")
    largest = float(np.max(np.abs(normal)))
    if largest == 0.0:
        raise InvalidInputError("a is zero, so that a.w is 0 for every w; leave the set out, or there is no solution")
    scaled = normal / largest  # first by the largest entry: squares must not overflow
    norm = float(np.linalg.norm(scaled))
    return normal, scaled / norm, largest * norm


@register
class Halfspace(ConvexSet):
    """{w: a.w >= b}, with project(w) = w + (b - a.w)_+ a / |a|^2. Cost O(d).

    >>> Halfspace([0.0, 2.0], 2.0).project([5, 0]), Halfspace([0.0, 2.0], 2.0).distance([5, 3])
    (array([5., 1.]), 0.0)
    """

    parts = ("a", "b")
    shown = ("b",)
    a: Array
    b: float
    _unit: Array
    _level: float

    def __init__(self, a: Any, b: float) -> None:
        normal, unit, norm = _normal(a)
        level = as_number(b, "b")
        check_near(level / norm, "the halfspace")
        self._freeze(dim=len(normal), a=normal, b=level, _unit=unit, _level=level / norm)

    def nearest(self, w: Array) -> Array:
        return w + max(0.0, self._level - float(self._unit @ w)) * self._unit

    def inequalities(self) -> tuple[Array, Array]:
        return self.a[None], np.array([self.b])

    def rebuilt(self, change: Callable[[Array], Array], common: Array) -> Halfspace:
        normal = change(self.a)
        return Halfspace(normal, min(self.b, float(normal @ common)))


@register
class Slab(ConvexSet):
    """{w: lo <= a.w <= hi}: between two parallel hyperplanes (or on one, if lo = hi). Cost O(d).

    >>> Slab([1.0, 0.0], -1.0, 1.0).project([3, 2])
    array([1., 2.])
    >>> Slab([1.0, 0.0], 1.0, -1.0)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: the slab is empty: lo = 1 is above hi = -1
    """

    parts = ("a", "lo", "hi")
    shown = ("lo", "hi")
    a: Array
    lo: float
    hi: float
    _unit: Array
    _norm: float

    def __init__(self, a: Any, lo: float, hi: float) -> None:
        normal, unit, norm = _normal(a)
        low, high = as_number(lo, "lo"), as_number(hi, "hi")
        if low > high:
            raise InvalidInputError(f"the slab is empty: lo = {low:g} is above hi = {high:g}")
        check_near(max(low, -high) / norm, "the slab")
        self._freeze(dim=len(normal), a=normal, lo=low, hi=high, _unit=unit, _norm=norm)

    def nearest(self, w: Array) -> Array:
        level = float(self._unit @ w)
        return w + (min(max(level, self.lo / self._norm), self.hi / self._norm) - level) * self._unit

    def inequalities(self) -> tuple[Array, Array]:
        return np.stack([self.a, -self.a]), np.array([self.lo, -self.hi])


GRAM_ROWS = 2000  # above this A A^T is not kept (32 MiB here), and every projection uses orthogonal factors
OPTIMAL, EMPTY, LOST = 0, 1, 2
FAR = 1e6  # points further away than this many times the size of the data are only looked for when there is no other
FARTHEST = 1e14  # and further away than this no digits are left
MISSED = 1e-9  # a row that is missed by this share of the size of the data counts as satisfied
NO_ROWS = np.empty(0, dtype=np.int64)
NO_FACTOR = np.empty((0, 0))


class WarmStart(NamedTuple):
    """The start of a projection onto a polyhedron of `total` rows: the active rows of the last one, and their factor.

    >>> WarmStart(5).rows.shape
    (0,)
    """

    total: int
    rows: IntArray = NO_ROWS
    factor: Array = NO_FACTOR


@dataclass(frozen=True, eq=False)
class Projection:
    """A projection and its proof: w = p + A^T y with y >= 0, and y_i > 0 only if row i holds with equality.

    Lengths are measured with the rows of A scaled to norm 1.

    Attributes:
        point: the projection.
        multipliers: y, one per row of A as given.
        active: the rows with a multiplier.
        kkt_residual: the larger of |p + A^T y - w| and max_i |min(y_i, a_i.w - b_i)|. Rows at an angle t to each other
            can need multipliers of size 1/t, and the first term then holds 1/t times the rounding error.
        feasibility: max_i (b_i - a_i.w)_+.
        iterations: rows that entered or left the active set.
        warm: the start for the next projection onto the same set.

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


@register
class Polyhedron(ConvexSet):
    """{w: A w >= b}, the intersection of any number of halfspaces.

    The projection minimises 1/2 |w - p|^2 by the dual active-set method of Goldfarb and Idnani (Math. Programming 27,
    1983), started from a few sweeps of Hildreth's coordinate ascent or from the last active rows. It first works with
    the Gram matrix A A^T, at O(n a) per change of the a active rows, and checks the result on A itself; where rows are
    so close to dependent that this is not safe, it starts over with orthogonal factors, at O(n d) per change.
    Duplicated rows, nearly parallel rows and more rows than dimensions are fine.

    Args:
        A: (n, d), dense or scipy.sparse (stored dense). Rows may be scaled differently; zero rows are allowed.
        b: (n,).
        check: decide at once whether the set is empty; False leaves that to the first projection.

    A set counts as empty when there is a certificate: weights y >= 0 with b.y > 0 and A^T y = 0 up to rounding in every
    column. If neither a certificate nor a point is found, a `ForgettingError` says so: the set may be too far away for
    the digits of float64.

    >>> corner = Polyhedron([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0])
    >>> corner.project([-1, 2]), corner.distance([-3, -4]), corner.contains([1, 1])
    (array([0., 2.]), 5.0, True)
    >>> Polyhedron([[1.0], [-1.0]], [1.0, 0.0])
    Traceback (most recent call last):
    forgetting.errors.InfeasibleError: {A w >= b} is empty: ...
    """

    parts = ("A", "b", "check")
    A: Array
    b: Array
    check: bool
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
        if len(levels):
            first = int(np.argmax(np.abs(levels)))
            check_near(abs(float(levels[first])), f"{{a.w = b}} for row {int(kept[first])}")
        self._freeze(dim=matrix.shape[1], A=matrix, b=label, check=as_flag(check, "check"))
        # these go to compiled code, for which a read-only array is another type
        self.__dict__.update(_rows=rows, _levels=levels, _norms=norms * largest[kept], _kept=kept)
        if self.check:
            self._solve(np.zeros(self.dim), None)

    @cached_property
    def _gram(self) -> Array:
        return self._rows @ self._rows.T if len(self._rows) <= GRAM_ROWS else NO_FACTOR

    @cached_property
    def _kernels(self) -> Any:
        from forgetting.sets import _active_set  # here: numba takes long to import

        return _active_set

    def _solve(self, p: Array, warm: WarmStart | None) -> Any:
        """Project by compiled code, with the Gram matrix else with orthogonal factors; raise if the set is empty."""
        rows, factor = (NO_ROWS, NO_FACTOR) if warm is None else (warm.rows, warm.factor)
        if not p.flags.carray:
            p = np.array(p)
        if len(self._rows) == 0:
            return OPTIMAL, p.copy(), NO_ROWS, np.empty(0), NO_FACTOR, 0, 0.0, 0.0
        changes = 0
        if len(self._rows) <= GRAM_ROWS:
            result = self._kernels.project(self._rows, self._levels, self._gram, None, p, rows, factor, FAR)
            if result[0] == OPTIMAL:
                return result
            rows, factor, changes = result[2], NO_FACTOR, result[5]
        result = self._kernels.project(self._rows, self._levels, NO_FACTOR, self._room(), p, rows, factor, FAR)
        status, point, active, weights, factor, more, missed, residual = result
        if status == OPTIMAL and missed <= MISSED * self._reach(p, active):
            return status, point, active, weights, factor, changes + more, missed, residual
        return self._insist(p, result, changes + more)

    def _room(self) -> Array:
        """Room for the orthonormal rows of an exact projection."""
        return np.empty((min(self._rows.shape), self.dim))

    def _reach(self, p: Array, rows: IntArray) -> float:
        """The size of the data: of p, and of b in these rows."""
        return float(np.linalg.norm(p)) + float(np.max(np.abs(self._levels[rows]), initial=0.0))

    def _insist(self, p: Array, result: Any, changes: int) -> Any:
        """After a failed projection: raise with a certificate, accept the point, find a point far away, or raise."""
        status, point, active, weights = result[:4]
        if status == EMPTY:
            self._refuse(active, weights)
        accepted = self._accepted(p, point, changes)
        if accepted is not None:
            return accepted
        other = self._kernels.project(
            self._rows, self._levels, NO_FACTOR, self._room(), p, NO_ROWS, NO_FACTOR, FARTHEST
        )
        if other[0] == OPTIMAL:
            accepted = self._polished(p, other, changes)
            if accepted is not None:
                return accepted
        if other[0] == EMPTY:
            self._refuse(other[2], other[3])
        y = self._least_distance()
        self._refuse(np.flatnonzero(y), y[y > 0])
        if len(self._rows) <= GRAM_ROWS:
            y = best_combination(self._rows, self._levels)
            self._refuse(np.flatnonzero(y), y[y > 0])
        if status == EMPTY:
            raise ForgettingError(
                f"the projection onto {self} was not found: there is no point within {FAR:g} times the size of the "
                "data, and further away rounding hides whether there is one; scale the columns of A to similar size"
            )
        missed = float(np.max(self._levels - self._rows @ point))
        raise ForgettingError(
            f"the projection onto {self} did not converge: after {changes} changes of the active rows the point "
            f"found misses a row by {missed:.2g}; scale the data to moderate size, or leave out nearly parallel rows"
        )

    def _accepted(self, p: Array, point: Array, changes: int) -> Any:
        """The point with multipliers that prove it to be the projection up to rounding; None if there are none.

        The method can end elsewhere than at its own test: parallel rows that agree up to rounding contradict each other
        by that much.
        """
        from scipy.optimize import nnls

        slack = self._rows @ point - self._levels
        close = np.flatnonzero(np.abs(slack) <= MISSED * self._reach(p, np.arange(len(slack))))
        allowed = MISSED * self._reach(p, close)
        missed = max(0.0, float(np.max(-slack)))
        if missed > allowed or close.size == 0:
            return None
        try:
            weights, residual = nnls(self._rows[close].T, point - p, maxiter=100 * close.size)
        except RuntimeError:  # it ran out of iterations
            return None
        residual = max(float(residual), missed, float(np.max(np.minimum(weights, np.abs(slack[close])))))
        if residual > allowed:
            return None
        used = weights > 0
        return OPTIMAL, point, close[used], weights[used], NO_FACTOR, changes, missed, residual

    def _polished(self, p: Array, result: Any, changes: int) -> Any:
        """A projection far away, its active rows solved anew to the last digit; None if a row is still missed."""
        _, point, active, weights, _, more, _, _ = result
        rows, levels = self._rows[active], self._levels[active]
        frame, factor = np.linalg.qr(rows.T)
        for _ in range(3):
            point = point + frame @ np.linalg.solve(factor.T, levels - rows @ point)
        slack = self._rows @ point - self._levels
        # |w| is so large that rounding alone may miss a row, by no more than a millionth of the data
        reach = self._reach(p, active)
        noise = rounding(self.dim) * (np.abs(self._rows) @ np.abs(point) + np.abs(self._levels))
        if np.any(-slack > np.maximum(MISSED * reach, np.minimum(noise, reach / FAR))):
            return None
        missed = max(0.0, float(np.max(-slack)))
        residual = max(missed, float(np.linalg.norm(p + rows.T @ weights - point)))
        residual = max(residual, float(np.max(np.minimum(weights, np.abs(slack[active])), initial=0.0)))
        return OPTIMAL, point, active, weights, NO_FACTOR, changes + more, missed, residual

    def _refuse(self, active: IntArray, weights: Array) -> None:
        """Raise if these rows, with these weights, prove that the set is empty.

        A combination that is 0 up to rounding proves it out to |b.y| / rounding only. So the gap b.y must be so large
        that this is beyond the data by far.
        """
        y = np.zeros(len(self._rows))
        y[active] = weights
        if not y.any():
            return
        y, residual = self._scaled(refined(self._rows, y))
        if residual > 1e-5 or not vanishes(self._rows, y):
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
        projected = w.copy()
        rows, factor = (NO_ROWS, NO_FACTOR) if warm is None else (warm.rows, warm.factor)
        outcome = self._kernels.again(self._rows, self._levels, projected, rows, factor)
        if outcome >= 0:  # a point inside leaves nothing: the rows from before are the better guess for next time
            return (projected if outcome else w), warm, 1
        _, point, rows, _, factor, changes, _, _ = self._solve(w, warm)
        return point, WarmStart(len(self._rows), rows, factor), changes + 1

    def project_full(self, w: Any, warm: WarmStart | None = None) -> Projection:
        """The projection with its multipliers and residuals; `warm` is the `.warm` of an earlier one onto this set."""
        p = as_vector(w, self.dim, "w")
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

    def unit_rows(self) -> UnitRows | None:
        own = (type(self).nearest, type(self).nearest_from) == COMPILED
        few = 0 < len(self._rows) <= GRAM_ROWS
        return UnitRows(self._rows, self._levels, self._norms, self._gram) if own and few else None

    def contains(self, w: Any, tol: float = 1e-9) -> bool:
        point, allowed = as_vector(w, self.dim, "w"), as_number(tol, "tol", least=0)
        if len(self._rows) == 0:
            return True
        missed = float(np.max(self._levels - self._rows @ point))
        return missed <= 0 or (missed <= allowed and self.distance(point) <= allowed)  # the distance is at least that

    def inequalities(self) -> tuple[Array, Array]:
        return self.A, self.b

    def __repr__(self) -> str:
        return f"Polyhedron(n={len(self.b)}, d={self.dim})"


COMPILED = Polyhedron.nearest, Polyhedron.nearest_from  # what `UnitRows` may replace; a class may have others
