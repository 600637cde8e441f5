"""Least squares over bounds, inequalities and convex sets, and the exact minimiser by an active-set method.

Rows that are equations are the objective |A x - b|^2 (+ damp^2 |x - x0|^2); bounds, rows that are inequalities and sets
are constraints. `normal` of an `Accuracy` is the KKT residual: the largest of |gradient - multipliers| / (|A| |r|), of
the violations of rows relative to |b|, and of distances to sets relative to |x|.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.errors import InfeasibleError
from forgetting.solver.methods.base import Accuracy, Distance, Method, System, norm, register
from forgetting.solver.quadratic import Minimiser, least_squares_over

SMALLEST = 1e-8  # residual, relative to |b|, below which gradients are not compared with it


class Constrained(Method):
    """The base class of methods that minimise over constraints."""

    least_squares = True
    damps = True
    constrains = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.frobenius = float(np.sqrt(system.sweeper.squares_sum))
        limits, n = system.sweeper.limits, len(self.iterate.x)
        self.low = limits.low if len(limits.low) else np.full(n, -np.inf)
        self.high = limits.high if len(limits.high) else np.full(n, np.inf)
        #: the rows that are equations
        self.equations = np.asarray(limits.relations == 0) if len(limits.relations) else np.ones(len(system.b), bool)

    @property
    def scale(self) -> float:
        """|A| with the rows of damping."""
        return float(np.hypot(self.frobenius, self.system.damp * np.sqrt(len(self.iterate.x)))) or 1.0

    def judged(self, gap: Array, stationarity: float, scaled: float = 0.0, off: float = 0.0) -> Accuracy:
        """The accuracy of x for gap = b - A x, the norm of the gradient less multipliers, and what else is missed.

        `scaled` is that norm with each entry divided by the norm of its column: a gradient along a column that is much
        smaller than others is small from the start, and says nothing of x there.
        """
        system, x = self.system, self.iterate.x
        moved = system.damp * norm(x - system.x0)
        missed = norm(gap[self.equations])
        size = float(self.sizes[0])
        length = max(np.hypot(missed, moved), SMALLEST * size)
        broken = norm(system.sweeper.limits.missed(gap.copy())[~self.equations]) / size
        apart = max((convex.distance(x) for convex in system.sets), default=0.0)
        apart /= max(norm(x), norm(system.x0)) or 1.0
        residual = float(np.hypot(missed / size, broken))
        kkt = max(stationarity / (self.scale * length), scaled / (np.sqrt(len(x)) * length), off, broken, apart)
        each = (
            np.array([np.inf if system.damp else residual]),
            np.array([kkt]),
            np.array([self.frobenius * (norm(x) + norm(system.x0)) / size]),
        )
        return Accuracy(residual, np.inf if system.damp else max(residual, apart), kkt, None, each)


@register
class ActiveSet(Constrained):
    """The exact minimiser over bounds, inequalities and polyhedral sets of a system that is small enough.

    One sweep is a QR factorisation and an active-set method; of several minimisers x is the one nearest to x0.
    """

    name: ClassVar[str] = "active-set"

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.found: Minimiser | None = None
        self.empty: str | None = None
        self.least = np.inf  # relative residual that is possible without the constraints

    @property
    def contradiction(self) -> str | None:
        return self.empty

    @property
    def uniqueness(self) -> str:
        if self.found is None or self.found.unique:
            return "x is the only minimiser"
        return "x is the minimiser nearest to x0" if self.found.nearest else "of several minimisers x may be any"

    def sweep(self, visits: IntArray) -> Array:
        if self.found is None and self.empty is None:
            self._solve()
        gap = self.system.sweeper.gap(self.system.b, self.x)
        return np.atleast_1d(np.sum(gap * gap))

    def _solve(self) -> None:
        system, n = self.system, len(self.iterate.x)
        dense = system.sweeper.dense()
        M, c = dense[self.equations], system.b[self.equations]
        if system.damp:
            M = np.concatenate([M, system.damp * np.eye(n)])
            c = np.concatenate([c, system.damp * system.x0])
        G, h, self.names = self._constraints(dense)
        try:
            self.found = least_squares_over(M, c, G, h, system.x0)
        except InfeasibleError as error:
            y = np.zeros(len(h)) if error.certificate is None else np.asarray(error.certificate)
            involved = sorted({self.names[i] for i in np.flatnonzero(y)})
            self.empty = ", ".join(involved[:6]) + (", ..." if len(involved) > 6 else "")
            return
        self.iterate.x = np.clip(self.found.point, self.low, self.high)
        if not system.damp and len(M):
            free = np.linalg.lstsq(M, c - M @ self.iterate.x)[0]
            self.least = norm(c - M @ (self.iterate.x + free)) / float(self.sizes[0])

    def _constraints(self, dense: Array) -> tuple[Array, Array, list[str]]:
        """G x >= h with rows of norm 1, and what every row is, in words."""
        system, n = self.system, len(self.iterate.x)
        relations = system.sweeper.limits.relations
        parts: list[tuple[Array, Array, list[str]]] = []
        rows = np.flatnonzero(~self.equations)
        if len(rows):
            signs = relations[rows].astype(np.float64)
            parts.append((signs[:, None] * dense[rows], signs * system.b[rows], [f"row {i}" for i in rows]))
        for sign, ends in ((1.0, self.low), (-1.0, self.high)):
            kept = np.flatnonzero(np.isfinite(ends))
            words = [f"the {'lower' if sign > 0 else 'upper'} bound on x[{j}]" for j in kept]
            parts.append((sign * np.eye(n)[kept], sign * ends[kept], words))
        for i, convex in enumerate(system.sets):
            inequalities = convex.inequalities()
            assert inequalities is not None
            parts.append((*inequalities, [f"set {i}"] * len(inequalities[1])))
        G, h = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        names = [name for part in parts for name in part[2]]
        norms = np.linalg.norm(G, axis=1)
        kept = np.flatnonzero((norms > 0) | (h > 0))  # a row 0 >= h > 0 contradicts itself
        norms = np.where(norms > 0, norms, 1.0)
        return (G / norms[:, None])[kept], (h / norms)[kept], [names[i] for i in kept]

    @property
    def floor(self) -> float:
        """Everything: a second sweep finds the same."""
        return 0.0 if self.found is None or self.elsewhere else np.inf

    @property
    def elsewhere(self) -> bool:
        """Whether x may be another minimiser than the nearest one, which is asked for."""
        return self.system.nearest and self.found is not None and not self.found.nearest

    def error(self) -> float | None:
        return None if self.found is None and self.empty is None else 0.0

    def measure(self) -> Accuracy:
        gap = self.system.sweeper.slack(self.system.b, self.x)
        self.last_gap = self.system.sweeper.limits.missed(gap.copy())
        if self.found is None:
            return replace(self.judged(gap, 0.0), normal=None, each=None)
        measured = self.judged(gap, self.found.residual, self.found.scaled)
        if self.elsewhere:
            return replace(measured, left=np.inf, normal=np.inf, each=None)
        return measured

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "ended": np.array([float(self.found is not None or self.empty is not None)])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        if arrays["ended"][0]:  # multipliers are found again
            self._solve()

    def distance(self, *, decompose: bool = True) -> Distance | None:
        found = self.found
        if found is None or not found.curvature:
            return None
        system, units = self.system, found.units
        size, length = norm(self.x) or 1.0, norm(units * self.x)
        squares = system.sweeper.column_squares(self.equations.astype(np.float64)) + system.damp**2
        frobenius = float(np.sqrt(np.sum(squares / units**2)))
        rounding = EPS * frobenius * (norm(system.b) + frobenius * length)
        error = (found.scaled + rounding) / found.curvature / float(units.min()) / size
        return Distance(error, error)  # a second sweep finds the same
