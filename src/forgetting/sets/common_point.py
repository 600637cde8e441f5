"""The nearest common point of convex sets: Dykstra's method, with a bound that shows when there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number, as_vector, as_word
from forgetting.errors import InfeasibleError, InvalidInputError, NotSupportedError
from forgetting.sets.base import ConvexSet
from forgetting.sets.polyhedra import Polyhedron

__all__ = ["CommonPoint", "nearest_common_point", "stacked"]


@dataclass(frozen=True, eq=False)
class CommonPoint:
    """The point of an intersection nearest to w_0, or the last iterate if the method did not converge.

    Attributes:
        point: the last iterate.
        converged: whether the stopping rule was met.
        status: a sentence about how the method ended.
        method: "dykstra" or "polyhedron".
        sweeps: passes over all sets (1 for "polyhedron").
        violation: the largest distance from the point to one of the sets.
        lower_bound: no common point is nearer to w_0 than this, whether or not the method converged.

    >>> from forgetting.sets import Ball, Halfspace
    >>> found = nearest_common_point([Ball([0.0, 0.0], 1.0), Halfspace([1.0, 0.0], 0.6)], [0.6, 3.0])
    >>> found.point.round(6), found.converged
    (array([0.6, 0.8]), True)
    """

    point: Array
    converged: bool
    status: str
    method: str
    sweeps: int
    violation: float
    lower_bound: float = field(default=0.0)


def stacked(sets: Sequence[ConvexSet], numbers: Sequence[int] | None = None) -> Polyhedron:
    """The intersection of polyhedral sets as one Polyhedron; `InfeasibleError` with a certificate if it is empty.

    The error names the sets by `numbers`, or by their places.

    >>> from forgetting.sets import Box, Halfspace
    >>> stacked([Box([0.0], [1.0]), Halfspace([1.0], 0.5)])
    Polyhedron(n=3, d=1)
    """
    parts = []
    for position, member in enumerate(sets):
        rows = member.inequalities()
        if rows is None:
            raise NotSupportedError(f"set {position}, {member}, is not a polyhedron; use method='dykstra'")
        parts.append(rows)
    A, b = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    if not len(b):
        return Polyhedron(np.zeros((1, sets[0].dim)), [0.0])
    try:
        return Polyhedron(A, b)
    except InfeasibleError as error:
        named = range(len(sets)) if numbers is None else numbers
        owners = np.repeat(np.array(named), [len(part[1]) for part in parts])
        guilty = np.unique(owners[np.flatnonzero(error.certificate)]).tolist()
        shown = ", ".join(str(number) for number in guilty[:6]) + (", ..." if len(guilty) > 6 else "")
        raise InfeasibleError(
            f"the sets have no common point: sets {shown} contradict each other. With the inequalities A w >= b of the "
            f"polyhedral sets in turn and the y >= 0 in .certificate, A^T y = 0 (to {error.residual:.1g}) but b.y = 1",
            certificate=error.certificate,
            residual=error.residual,
        ) from error


def nearest_common_point(
    sets: Sequence[ConvexSet],
    w0: Any,
    *,
    tol: float = 1e-10,
    max_sweeps: int = 10_000,
    method: Literal["auto", "dykstra", "polyhedron"] = "auto",
) -> CommonPoint:
    """The point of the intersection nearest to w_0.

    "dykstra" (Boyle and Dykstra 1986): sweeps x <- P_i(x + e_i), e_i <- x + e_i - P_i(x + e_i) over the sets. A sweep
    costs one projection onto each. It stops when the increments e_i change, in root sum of squares over a sweep, by at
    most tol (1 + |w_0 - x|), and every set is that near: the rule of Birgin and Raydan (SIAM J. Sci. Comput. 26, 2005),
    which, unlike a small step of x, is not met while the method stands still. "polyhedron" stacks all inequalities and
    projects once. "auto" is "polyhedron" where every set has inequalities, else "dykstra" with all sets that have them
    stacked into one; `.method` says which.

    Each e_i is normal to C_i at the point x_i it came with, so that a common point c has sum e_i.(c - x_i) <= 0, and is
    therefore at least sum e_i.(w_0 - x_i) / |sum e_i| away from w_0. When that exceeds the reach of a bounded set there
    is no common point (`InfeasibleError`); polyhedral sets are stacked for a certificate. Otherwise a run that does not
    converge reports the bound.

    >>> from forgetting.sets import Halfspace
    >>> wedge = [Halfspace([0.0, 1.0], 0.0), Halfspace([1.0, -1.0], 0.0)]
    >>> nearest_common_point(wedge, [-1.0, 0.5], method="dykstra").point.round(8) + 0.0
    array([0., 0.])
    """
    if not sets:
        raise InvalidInputError("no sets given; an intersection needs at least one")
    start = as_vector(w0, sets[0].dim, "w0")
    tol, limit = as_number(tol, "tol", above=0), as_count(max_sweeps, "max_sweeps", least=1)
    as_word(method, ("auto", "dykstra", "polyhedron"), "method")
    flat = [i for i, member in enumerate(sets) if member.inequalities() is not None]
    if method == "polyhedron" or (method == "auto" and len(flat) == len(sets)):
        projection = stacked(sets).project_full(start)
        return CommonPoint(
            point=projection.point,
            converged=True,
            status=f"projected onto {len(sets)} polyhedral sets at once, KKT residual {projection.kkt_residual:.1g}",
            method="polyhedron",
            sweeps=1,
            violation=projection.feasibility,
            lower_bound=float(np.linalg.norm(projection.point - start)),
        )
    if method == "auto" and len(flat) > 1:
        others = [member for i, member in enumerate(sets) if i not in flat]
        return _dykstra([stacked([sets[i] for i in flat], flat), *others], sets, [], start, tol, limit)
    return _dykstra(sets, sets, flat, start, tol, limit)


def _dykstra(
    sets: Sequence[ConvexSet],
    given: Sequence[ConvexSet],
    flat: Sequence[int],
    start: Array,
    tol: float,
    limit: int,
) -> CommonPoint:
    """Dykstra's method on `sets`, the `given` sets after stacking; `flat` lists the polyhedra among the given sets."""
    increments = np.zeros((len(sets), len(start)))
    points = np.tile(start, (len(sets), 1))
    warm: list[Any] = [None] * len(sets)
    reach, smallest = min((member.reach(start), i) for i, member in enumerate(given))
    x = start.copy()
    bound = 0.0
    for sweep in range(1, limit + 1):
        moved = 0.0
        for i, member in enumerate(sets):
            shifted = x + increments[i]
            x, warm[i], _ = member.nearest_from(shifted, warm[i])
            change = shifted - x - increments[i]
            increments[i] += change
            points[i] = x
            moved += float(change @ change)
        scale = 1 + float(np.linalg.norm(start - x))
        if sweep % 16 == 0 or np.sqrt(moved) <= tol * scale:
            total = increments.sum(axis=0)
            length = float(np.linalg.norm(total))
            if length > 0:
                bound = max(bound, float(np.sum(increments * (start - points))) / length)
            if bound > reach * (1 + 1e-9):
                if flat:
                    stacked([given[i] for i in flat], flat)  # raises with a certificate, if it is these
                raise InfeasibleError(
                    f"the sets have no common point: none is nearer to the start than {bound:.8g}, but set {smallest}, "
                    f"{given[smallest]}, ends at {reach:.8g}"
                )
        if np.sqrt(moved) <= tol * scale:
            violation = max(member.distance(x) for member in given)
            if violation <= tol * scale:
                status = f"converged after {sweep} sweeps: increments changed by {np.sqrt(moved):.1g} in the last one"
                return CommonPoint(x, True, status, "dykstra", sweep, violation, max(bound, 0.0))
    if flat:
        stacked([given[i] for i in flat], flat)  # raises with a certificate, if these have no common point
    violation = max(member.distance(x) for member in given)
    status = (
        f"not converged after {limit} sweeps: increments still change by {np.sqrt(moved):.1g} a sweep, and a set is "
        f"{violation:.1g} away. No common point is nearer to the start than {bound:.3g}; if that grows with "
        "max_sweeps, there is none"
    )
    return CommonPoint(x, False, status, "dykstra", limit, violation, max(bound, 0.0))
