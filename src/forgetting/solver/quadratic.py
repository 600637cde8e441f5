"""Least squares over a polyhedron, for matrices that are small enough for a factorisation.

min |M x - c|^2 over {x: G x >= h}, and of its minimisers the one nearest to a point. With M = Q R the unknowns z = R x
make it a projection onto a polyhedron, which `fg.Polyhedron` finds by an active-set method, with a certificate if the
polyhedron is empty. Where M has no full column rank, or nearly none, proximal steps min |M x - c|^2 + e^2 |x - p|^2,
p <- x, lead to a minimiser: they converge for every e, and fast for the active rows of a quadratic program.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS, rank_tolerance
from forgetting.errors import ForgettingError, InfeasibleError
from forgetting.sets import Polyhedron

STEEP = 1e-5  # least singular value of R, relative to the largest: what is smaller is left to proximal steps
UNEVEN = 1e3  # times the shortest column that the longest is where columns are divided by their norms
GOOD = 1e-8  # what is left of the gradient in units of columns, relative to |M| |c - M x|, with which x is a minimiser
FLOOR = 1e-4  # of |c - M x|, relative to |c|, for that
STEPS = 40  # proximal steps, at most
CLOSE = 1e-10  # a row holds with equality if its slack is this share of the size of the data
POLISH = 60  # steps on the active rows, at most
FINE = 64  # the share of the bound on rounding errors of the gradient that is typical of them
TURNS = 3  # moves to the nearest minimiser, at most: after a long one A x is wrong by its rounding errors
WIDE = 16  # times EPS of its terms is the rounding error of the level of a row
BASES = 4  # points, at most, from which proximal steps count
SURE = 1e-9  # a multiplier above this share of the largest is not 0


@dataclass(frozen=True)
class Minimiser:
    """A minimiser of |M x - c|^2 over {x: G x >= h}.

    Attributes:
        point: x.
        multipliers: y >= 0, and 0 for rows that do not hold with equality.
        residual: |M^T (M x - c) - G^T y|, which is 0 at a minimiser.
        unique: whether there is no other minimiser.
        nearest: whether it is the minimiser nearest to the start.
        units: the norms of the columns of M if they are very different, else 1.
        scaled: `residual` with each entry divided by the unit of its column.
        curvature: the least s with |M d|^2 >= s |units d|^2 for all d; 0 if M has no full column rank.
    """

    point: Array
    multipliers: Array
    residual: float
    unique: bool
    nearest: bool
    units: Array
    scaled: float = 0.0
    curvature: float = 0.0


def least_squares_over(M: Array, c: Array, G: Array, h: Array, start: Array) -> Minimiser:
    """The minimiser of |M x - c|^2 over {x: G x >= h} that is nearest to `start`; rows of G have norm 1.

    Raises `InfeasibleError` if there is no such x.

    >>> found = least_squares_over(np.ones((1, 2)), np.array([3.0]), -np.eye(2), np.array([-1.0, -5.0]), np.zeros(2))
    >>> found.point.round(12).tolist(), found.unique, found.residual < 1e-12
    ([1.0, 2.0], False, True)
    """
    if not M.any():
        point = Polyhedron(G, h).nearest(start) if len(h) else start.copy()
        return Minimiser(point, np.zeros(len(h)), 0.0, unique=False, nearest=True, units=np.ones(len(start)))
    given, units = _Problem(M, c, G, h), _units(M)
    if (units == 1).all():
        return _minimiser(given, given, units, np.ones(len(h)), start)
    sizes = np.linalg.norm(G / units, axis=1)
    scaled = _Problem(M / units, c, G / units / sizes[:, None], h / sizes)
    found = _minimiser(scaled, given, units, sizes, start)
    if found.unique:
        return found
    other = _minimiser(given, given, units, np.ones(len(h)), start)
    size = np.sqrt(len(units)) * max(float(np.linalg.norm(c - M @ other.point)), FLOOR * float(np.linalg.norm(c)))
    good = max(GOOD * size, scaled.rounding(units * other.point))
    if other.nearest != found.nearest and max(found.scaled, other.scaled) <= good:
        return found if found.nearest else other
    return found if found.scaled < other.scaled and other.scaled > good else other


def _minimiser(problem: _Problem, given: _Problem, units: Array, sizes: Array, start: Array) -> Minimiser:
    """The minimiser by a problem, whose columns may be those of the given one divided by `units`, its rows by `sizes`.

    What is nearest to the start is measured in the given units.
    """
    turn, base = units if problem is not given else np.ones(len(units)), start
    for _ in range(1 if problem is given else TURNS):
        found = problem.proximal(turn * base)
        if problem.left(*found) > problem.rounding(found[0]) / FINE:
            found = min([found, problem.polished(*found)], key=lambda pair: problem.left(*pair))
        x, y = found[0] / turn, found[1] / sizes
        flat = problem.minimisers(*found, turn)
        point, unique, nearest = given.nearest(x, start, flat), not flat.shape[1], False
        if point is None:
            break
        allowed = max(2 * problem.left(*found), problem.rounding(np.abs(found[0]) + np.abs(turn * start)))
        nearest = unique or problem.left(turn * point, found[1]) <= allowed
        if nearest:
            x = point
            break
        base = point
    rest = given.gradient(x) - given.G.T @ y
    scaled, curvature = float(np.linalg.norm(rest / units)), problem.curvature
    if problem is given:
        curvature /= float(units.max()) ** 2
    return Minimiser(x, y, float(np.linalg.norm(rest)), unique, nearest, units, scaled, curvature)


def _wider(rows: Array, levels: Array, sizes: Array, error: ForgettingError) -> Polyhedron:
    """{z: rows z >= levels} with levels lower by their rounding errors, if it was found to be empty by these alone.

    Levels h - G x are differences: a proof y >= 0, y.rows = 0 that there is no such z counts, and is raised again, if
    y.levels is above the rounding errors of terms of these sizes.
    """
    y = error.certificate if isinstance(error, InfeasibleError) else None
    errors = WIDE * EPS * sizes
    if y is None or float(np.asarray(y) @ levels) > float(np.asarray(y) @ errors):
        raise error
    return Polyhedron(rows, levels - errors, check=False)


def _units(M: Array) -> Array:
    """The norms of the columns if they are very different: what is small beside others must count as much."""
    norms = np.linalg.norm(M, axis=0)
    norms = np.where(norms > 0, norms, norms.max(initial=0.0) or 1.0)
    return norms if norms.max() > UNEVEN * norms.min() else np.ones(len(norms))


class _Problem:
    """Least squares over a polyhedron: the steps towards a minimiser, and what is left of optimality."""

    def __init__(self, M: Array, c: Array, G: Array, h: Array) -> None:
        self.M, self.c, self.G, self.h = M, c, G, h
        n = M.shape[1]
        singular, right = np.linalg.svd(M, full_matrices=len(M) < n)[1:]
        self.largest = float(singular[0])
        rank = int(np.sum(singular > rank_tolerance(M.shape) * self.largest))
        self.null = right[rank:].T  # M is 0 there
        self.curvature = float(singular[-1]) ** 2 if rank == n else 0.0
        self.pull = 0.0 if rank == n and singular[-1] > STEEP * self.largest else STEEP * self.largest

    # ----------------------------------------------------------------------------------------------------- measures

    def gradient(self, x: Array) -> Array:
        """M^T (M x - c)."""
        product: Array = self.M.T @ (self.M @ x - self.c)
        return product

    def close(self, x: Array) -> float:
        """The slack up to which a row holds with equality, and the most by which it may be missed."""
        return CLOSE * float(np.linalg.norm(x) + np.max(np.abs(self.h), initial=0.0))

    def left(self, x: Array, y: Array) -> float:
        """What is left of the optimality conditions: of the gradient, and of slacks in the same units."""
        slack = self.G @ x - self.h
        off = float(np.max(np.where(y > 0, np.abs(slack), -slack), initial=0.0))
        return float(np.linalg.norm(self.gradient(x) - self.G.T @ y)) + self.largest**2 * off * (off > self.close(x))

    def rounding(self, x: Array) -> float:
        """The size of rounding errors of the gradient."""
        return 64 * EPS * self.largest * (float(np.linalg.norm(self.c)) + self.largest * float(np.linalg.norm(x)))

    def used(self, x: Array, y: Array) -> Any:
        """The rows with a multiplier that is not 0."""
        return np.flatnonzero(y > max(SURE * np.max(y, initial=0.0), self.rounding(x), 2 * self.left(x, y)))

    # ------------------------------------------------------------------------------------------------------- steps

    def proximal(self, start: Array) -> tuple[Array, Array]:
        """A minimiser and its multipliers by proximal steps, each a projection; by one if M has full column rank."""
        n = self.M.shape[1]
        frame, triangle = np.linalg.qr(np.concatenate([self.M, self.pull * np.eye(n)]) if self.pull else self.M)
        rows = solve_triangular(triangle, self.G.T, trans="T").T
        warm, best, least = None, (start, np.zeros(len(self.h))), np.inf
        for _ in range(BASES):  # z counts from a base: the nearer it is, the smaller are rounding errors
            base, before = best[0], least
            (x, y), side = best, self.c - self.M @ base
            levels = self.h - self.G @ base
            region = Polyhedron(rows, levels, check=False) if len(self.h) else None
            for _ in range(STEPS if self.pull else 1):
                z = frame.T @ (np.concatenate([side, self.pull * (x - base)]) if self.pull else side)
                if region is not None:
                    try:
                        found = region.project_full(z, warm)
                    except ForgettingError as error:
                        if least < np.inf:
                            return best  # there is a point: what is left of rows beside the base is rounding errors
                        region = _wider(rows, levels, np.abs(self.h) + np.linalg.norm(base), error)
                        found = region.project_full(z)
                    z, y, warm = found.point, found.multipliers, found.warm
                x = base + solve_triangular(triangle, z)
                size = self.left(x, y)
                slow = size > 0.5 * least
                if size < least:
                    best, least = (x, y), size
                if slow or size <= self.rounding(x):
                    break
            if least > 0.1 * before or least <= self.rounding(x):
                break
        return best

    def polished(self, x: Array, y: Array) -> tuple[Array, Array]:
        """A minimiser and its multipliers by steps on the active rows, from a point near one: a primal active set."""
        active = self.used(x, y).tolist()
        multipliers = y
        for _ in range(POLISH):
            rows = self.G[active]
            free = null_space(rows, self.M.shape[1])
            if active:
                x = x + np.linalg.lstsq(rows, self.h[active] - rows @ x)[0]
            step = free @ np.linalg.lstsq(self.M @ free, self.c - self.M @ x, rcond=rank_tolerance(self.M.shape))[0]
            along, slack = self.G @ step, np.maximum(self.G @ x - self.h, 0.0)
            along[active] = 0.0
            shrinking = along < -CLOSE * (float(np.linalg.norm(step)) or 1.0)
            times = np.divide(slack, -along, out=np.full(len(along), np.inf), where=shrinking)
            first = int(np.argmin(times)) if len(times) else 0
            if len(times) and times[first] < 1.0:
                x = x + times[first] * step
                active.append(first)
                continue
            x, multipliers = x + step, np.zeros(len(self.h))
            if not active:
                break
            weights = np.linalg.lstsq(rows.T, self.gradient(x))[0]
            multipliers[active] = np.maximum(weights, 0.0)
            if weights.min() >= -SURE * np.abs(weights).max():
                break
            active.pop(int(np.argmin(weights)))
        return x, multipliers

    def minimisers(self, x: Array, y: Array, units: Array) -> Array:
        """An orthonormal basis of the directions in x / units between minimisers that bounds and slacks do not see.

        All have the same M x and the same multipliers, so that rows with a multiplier hold with equality.
        """
        flat = self.null
        if flat.shape[1]:
            flat = flat @ null_space(self.G[self.used(x, y)] @ flat, flat.shape[1])
        return flat if (units == 1).all() else np.linalg.qr(flat / units[:, None])[0]

    def nearest(self, x: Array, start: Array, flat: Array) -> Array | None:
        """Of all minimisers the one nearest to `start`, from one of them; None if it was not found.

        `flat` is a basis of the directions between them.
        """
        if not flat.shape[1]:
            return x
        wanted, rows = flat.T @ (start - x), self.G @ flat
        seen = np.linalg.norm(rows, axis=1) > CLOSE  # other rows do not change
        if seen.any():
            slack = np.maximum(self.G[seen] @ x - self.h[seen], 0.0)
            slack[slack <= self.close(x)] = 0.0
            try:
                wanted = Polyhedron(rows[seen], -slack, check=False).nearest(wanted)
            except ForgettingError:  # rows that agree up to rounding
                return None
        return x + flat @ wanted


def null_space(rows: Array, n: int) -> Array:
    """An orthonormal basis of the vectors that all rows are orthogonal to."""
    if not len(rows) or not n:
        return np.eye(n)
    singular, right = np.linalg.svd(rows, full_matrices=True)[1:]
    rank = int(np.sum(singular > rank_tolerance(rows.shape) * max(singular[0], 1.0)))
    null: Array = right[rank:].T
    return null
