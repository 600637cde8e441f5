"""Least squares over bounds, inequalities and convex sets: an active-set method, and projected conjugate gradients.

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
from forgetting.solver.methods.base import Accuracy, Distance, Method, Moves, System, norm, register
from forgetting.solver.quadratic import Minimiser, least_squares_over

POWERS = 12  # products to estimate the largest eigenvalue
SMALLEST = 1e-8  # residual, relative to |b|, below which gradients are not compared with it
RENEWED = 50  # iterations after which the residual is computed anew, against rounding errors
STEEPEST = 1e6  # of penalties, in units of those at the start


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

    def judged(self, gap: Array, stationarity: float, off: float = 0.0) -> Accuracy:
        """The accuracy of x for gap = b - A x, the norm of the gradient less multipliers, and what else is missed."""
        system, x = self.system, self.iterate.x
        moved = system.damp * norm(x - system.x0)
        missed = norm(gap[self.equations])
        size = float(self.sizes[0])
        scale = self.scale * max(np.hypot(missed, moved), SMALLEST * size)
        broken = norm(system.sweeper.limits.missed(gap.copy())[~self.equations]) / size
        apart = max((convex.distance(x) for convex in system.sets), default=0.0)
        apart /= max(norm(x), norm(system.x0)) or 1.0
        residual = float(np.hypot(missed / size, broken))
        kkt = max(stationarity / scale, off, broken, apart)
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
        return "x is the minimiser nearest to x0"

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
        return 0.0 if self.found is None else np.inf

    def error(self) -> float | None:
        return None if self.found is None and self.empty is None else 0.0

    def measure(self) -> Accuracy:
        gap = self.system.sweeper.slack(self.system.b, self.x)
        self.last_gap = self.system.sweeper.limits.missed(gap.copy())
        if self.found is None:
            return replace(self.judged(gap, 0.0), normal=None, each=None)
        return self.judged(gap, self.found.residual)

    def distance(self, *, decompose: bool = True) -> Distance | None:
        found = self.found
        if found is None or not found.curvature:
            return None
        size = norm(self.x) or 1.0
        rounding = EPS * self.frobenius * (norm(self.system.b) + self.frobenius * size)
        error = (found.residual + rounding) / found.curvature / size
        return Distance(error, error)  # a second sweep finds the same


@register
class Projected(Constrained):
    """Conjugate gradients with projections onto bounds; inequalities and sets by augmented Lagrangians.

    With bounds alone it is MPRGP (Dostal and Schoeberl, Comput. Optim. Appl. 30, 2005): conjugate gradients on the
    variables between their bounds, a projected gradient step where one would leave them, and a step that frees
    variables where the gradient asks for it. Each iteration is one product with A and one with A^T. Rows that are
    inequalities and sets have multipliers y and a penalty p: p / 2 dist^2(x + y / p), minimised in the same way with an
    exact line search, and y <- p (x + y / p - projection) (Hestenes, Powell, Rockafellar).

    An iteration counts as an epoch, and a streamed matrix is read once, or twice where rows are inequalities.
    """

    name: ClassVar[str] = "projected"
    by_epoch = True
    streams = True
    tells = True
    estimates = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        n = len(self.iterate.x)
        self.iterate.x = np.clip(self.iterate.x, self.low, self.high)
        self.direction, self.moves = np.zeros(n), Moves(self.iterate.x)
        self.slack, self.gradient = np.zeros(len(system.b)), np.zeros(n)
        #: multipliers of rows and of sets, and what the last test found to be missed
        self.rows = np.zeros(len(system.b) if not self.equations.all() else 0)
        self.cuts = np.zeros((len(system.sets), n))
        #: the penalties of rows in units of `row_penalty`, so that the lengths of inequalities do not matter
        self.shares = np.ones(len(self.rows))
        if len(self.rows):
            squares = system.sweeper.row_squares
            typical = float(np.mean(squares[self.equations])) if self.equations.any() else 1.0
            scaled = ~self.equations & (squares > 0)
            self.shares[scaled] = (typical or 1.0) / squares[scaled]
        #: the bound on the curvature, the penalties of rows and sets, what was missed, and iterations
        self.curvature, self.row_penalty, self.set_penalty, self.before, self.count = 0.0, 1.0, 1.0, np.inf, 0.0

    @property
    def uniqueness(self) -> str:
        return "x is the only minimiser" if self.system.damp else "of several minimisers x may be any"

    # ----------------------------------------------------------------------------------------------- products with A

    @property
    def penalised(self) -> bool:
        """Whether there are constraints beside bounds."""
        return bool(len(self.rows) or len(self.cuts))

    def _start(self) -> None:
        """Estimate the largest eigenvalue of A^T A by the power method, and compute the gradient."""
        sweeper = self.system.sweeper
        v = np.random.default_rng(self.system.seed).standard_normal(len(self.iterate.x))
        value = 0.0
        zero = np.zeros(len(self.system.b))
        for _ in range(POWERS):
            v /= norm(v) or 1.0
            v = sweeper.back(-self.shares * sweeper.slack(zero, v)) if len(self.rows) else sweeper.normal(v)[1]
            value = norm(v)
        self.curvature = 1.1 * value + self.system.damp**2 or 1.0
        self.set_penalty = 0.1 * self.curvature
        self._renew()

    def _fresh(self) -> tuple[Array, Array]:
        """b - A x and the gradient, computed from x."""
        sweeper, x = self.system.sweeper, self.iterate.x
        if not len(self.rows):
            gap, back = sweeper.gap_and_back(self.system.b, x)
        else:
            gap = sweeper.slack(self.system.b, x)
            back = sweeper.back(self._weights(gap))
        return gap, self._gradient(x, back)

    def _renew(self) -> None:
        """Compute b - A x and the gradient anew, and begin a new direction."""
        self.slack, self.gradient = self._fresh()
        self.direction = self._free(self.gradient)

    def _weights(self, gap: Array) -> Array:
        """What A^T is applied to in the gradient: the residuals of equations, the multipliers of inequalities."""
        if not len(self.rows):
            return gap
        penalties = self.row_penalty * self.shares
        shifted = self.system.sweeper.limits.missed(gap + self.rows / penalties)
        return np.where(self.equations, gap, penalties * shifted)

    def _pulls(self, x: Array) -> Array:
        """The multipliers of sets at x."""
        shifted = x + self.cuts / self.set_penalty
        nearest = [convex.nearest(point) for convex, point in zip(self.system.sets, shifted, strict=True)]
        return self.set_penalty * (shifted - np.reshape(nearest, shifted.shape))

    def _gradient(self, x: Array, back: Array) -> Array:
        gradient = self.system.damp**2 * (x - self.system.x0) - back
        return gradient + self._pulls(x).sum(axis=0) if len(self.cuts) else gradient

    # ---------------------------------------------------------------------------------------------------- iterations

    def _free(self, gradient: Array) -> Array:
        """The gradient of the variables between their bounds."""
        x = self.iterate.x
        return np.where((x > self.low) & (x < self.high), gradient, 0.0)

    def _chopped(self, gradient: Array) -> Array:
        """The gradient of the variables on their bounds that could leave them."""
        x = self.iterate.x
        inward = np.where(x <= self.low, np.minimum(gradient, 0.0), np.maximum(gradient, 0.0))
        on = ((x <= self.low) | (x >= self.high)) & (self.low < self.high)
        return np.where(on, inward, 0.0)

    def _longest(self, direction: Array) -> float:
        """The longest step against the direction that stays within the bounds."""
        x = self.iterate.x
        with np.errstate(all="ignore"):
            room = np.where(direction > 0, (x - self.low) / direction, (x - self.high) / direction)
        return float(np.min(room[direction != 0], initial=np.inf))

    def _move(self, direction: Array, longest: float) -> tuple[bool, Array]:
        """Go against the direction to the minimum, at most to the bounds; whether that was the minimum, and H d."""
        sweeper, system, x = self.system.sweeper, self.system, self.iterate.x
        slope = float(self.gradient @ direction)
        if not self.penalised:
            along, bent = sweeper.normal(direction)
            bent = bent + system.damp**2 * direction
            bend = float(along @ along) + system.damp**2 * float(direction @ direction)
            best = slope / bend if bend > 0 else 0.0
            step = min(best, longest)
            self.iterate.x = x - step * direction
            self.slack = self.slack + step * along
            self.gradient = self.gradient - step * bent
            return best <= longest, bent
        along = np.zeros(len(system.b)) - sweeper.slack(np.zeros(len(system.b)), direction)
        step, inside = self._searched(direction, along, longest)
        before = self.gradient
        self.iterate.x, self.slack = x - step * direction, self.slack + step * along
        back = sweeper.back(self._weights(self.slack))
        self.gradient = self._gradient(self.iterate.x, back)
        return inside, (before - self.gradient) / step if step else np.zeros_like(before)

    def _searched(self, direction: Array, along: Array, longest: float) -> tuple[float, bool]:
        """The step to the minimum against a direction: a zero of the slope, which falls and is piecewise linear."""

        def slope(step: float) -> float:
            x = self.iterate.x - step * direction
            value = float(self.system.damp**2 * ((x - self.system.x0) @ direction))
            value -= float(self._weights(self.slack + step * along) @ along)
            return value + (float(self._pulls(x).sum(axis=0) @ direction) if len(self.cuts) else 0.0)

        low, high, at_low = 0.0, longest, slope(0.0)
        if not at_low > 0:
            return 0.0, True
        if np.isfinite(longest):
            if slope(longest) >= 0:
                return longest, False
        else:
            high = float(direction @ direction) / max(float(along @ along), EPS * self.curvature) or 1.0
            for _ in range(60):
                if slope(high) <= 0:
                    break
                low, high = high, 2 * high
        first = at_low
        for _ in range(60):
            left, right = slope(low), slope(high)
            middle = low + (high - low) * (left / (left - right) if left > right else 0.5)
            value = slope(middle)
            if abs(value) <= 1e-3 * first or high - low <= 1e-12 * high:
                return middle, True
            low, high = (middle, high) if value > 0 else (low, middle)
        return low, True

    def sweep(self, visits: IntArray) -> Array:
        """The squared residual that is known, in the share of these visits: x moves at the ends of epochs only."""
        missed = self.system.sweeper.limits.missed(self.slack.copy()) if self.curvature else self.system.b
        return np.atleast_1d(np.sum(missed * missed) * self.system.sweeper.rows_in(visits) / len(missed))

    def end_epoch(self) -> None:
        if not self.curvature:
            self._start()
        self._iterate()
        self.count += 1
        if self.penalised:
            self._penalise()
        elif self.count % RENEWED == 0:
            self._renew()
        self.moves.add(self.iterate.x)

    def _iterate(self) -> None:
        free, chopped = self._free(self.gradient), self._chopped(self.gradient)
        step = 1.0 / (self.curvature + self._stiffness())
        x = self.iterate.x
        reduced = np.where(free > 0, np.minimum((x - self.low) / step, free), np.maximum((x - self.high) / step, free))
        if not free.any() and not chopped.any():
            return
        if float(chopped @ chopped) > float(reduced @ free):  # free variables
            self._move(chopped, self._longest(chopped))
            self.iterate.x = np.clip(self.iterate.x, self.low, self.high)
            self.direction = self._free(self.gradient)
            return
        if not float(self.direction @ free) > 0:
            self.direction = free
        longest = self._longest(self.direction)
        inside, bent = self._move(self.direction, longest)
        free = self._free(self.gradient)
        if inside:
            bend = float(bent @ self.direction)
            self.direction = free - (float(free @ bent) / bend if bend > 0 else 0.0) * self.direction
            return
        x = np.clip(self.iterate.x - step * free, self.low, self.high)
        self._shift(x)
        self.direction = self._free(self.gradient)

    def _stiffness(self) -> float:
        """What penalties add to the curvature, at most."""
        steep = max(0.0, self.row_penalty - 1.0) * self.curvature if len(self.rows) else 0.0
        return steep + self.set_penalty * len(self.cuts)

    def _shift(self, x: Array) -> None:
        """Go to a point, with its residual and gradient."""
        sweeper, moved = self.system.sweeper, x - self.iterate.x
        self.iterate.x = x
        if not self.penalised:
            along, bent = sweeper.normal(moved)
            self.slack, self.gradient = self.slack - along, self.gradient + bent + self.system.damp**2 * moved
            return
        self.slack, self.gradient = self._fresh()

    # ----------------------------------------------------------------------------------------- penalties and measures

    def _off(self, gap: Array) -> tuple[float, Array, Array]:
        """What is missed of constraints and complementarity, relative to |b| and |x|, and the new multipliers."""
        weights = self._weights(gap)
        rows = np.where(self.equations, 0.0, weights) if len(self.rows) else self.rows
        cuts = self._pulls(self.iterate.x) if len(self.cuts) else self.cuts
        by_rows = norm((rows - self.rows) / self.shares) / self.row_penalty / float(self.sizes[0]) if len(rows) else 0.0
        size = max(norm(self.iterate.x), norm(self.system.x0)) or 1.0
        by_sets = norm(cuts - self.cuts) / self.set_penalty / size if len(cuts) else 0.0
        return max(by_rows, by_sets), rows, cuts

    def _stationarity(self, gradient: Array) -> float:
        return norm(self._free(gradient) + self._chopped(gradient))

    def _penalise(self) -> None:
        """New multipliers where the gradient is small beside what is missed; larger penalties if that falls slowly."""
        off, rows, cuts = self._off(self.slack)
        scale = self.frobenius * (norm(self.slack[self.equations]) + self.system.damp * norm(self.x - self.system.x0))
        if self._stationarity(self.gradient) > 0.1 * off * (scale or self.curvature * (norm(self.iterate.x) or 1.0)):
            return
        if off > 0.25 * self.before:
            factor = 4.0 if self.row_penalty < STEEPEST else 1.0
            self.row_penalty, self.set_penalty = factor * self.row_penalty, factor * self.set_penalty
        self.rows, self.cuts, self.before = rows, cuts, off
        self._renew()

    def error(self) -> float | None:
        """By the moves, and only where the KKT residual, as the kept gradient has it, is small as well."""
        moved = self.moves.error()
        normal = self._accuracy(self.slack, self.gradient).normal
        return None if moved is None or normal is None else max(moved, normal)

    def _accuracy(self, gap: Array, gradient: Array) -> Accuracy:
        return self.judged(gap, self._stationarity(gradient), self._off(gap)[0] if self.penalised else 0.0)

    def measure(self) -> Accuracy:
        gap, gradient = self._fresh()
        self.last_gap = self.system.sweeper.limits.missed(gap.copy())
        measured = replace(self._accuracy(gap, gradient), error=self.moves.error())
        if not self.curvature:  # nothing was done yet
            measured = replace(measured, normal=None, each=None)
        return replace(measured, left=np.inf) if self.system.nearest else measured

    def distance(self, *, decompose: bool = True) -> Distance | None:
        """With damping and bounds alone, |x - x*| is at most |gradient| / damp^2."""
        if not self.system.damp or self.penalised or not self.curvature:
            return None
        size, squared = norm(self.x) or 1.0, self.system.damp**2
        rounding = EPS * self.frobenius * (norm(self.system.b) + self.frobenius * size) / squared
        if rounding > 1e-3 * size:
            return None
        return Distance((self._stationarity(self._fresh()[1]) / squared + rounding) / size, rounding / size)

    def arrays(self) -> dict[str, Array]:
        numbers = np.array([self.curvature, self.row_penalty, self.set_penalty, self.before, self.count])
        return {
            **super().arrays(),
            **self.moves.arrays(),
            "direction": self.direction,
            "slack": self.slack,
            "gradient": self.gradient,
            "rows": self.rows,
            "cuts": self.cuts,
            "numbers": numbers,
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.direction, self.slack, self.gradient = (arrays[k].copy() for k in ("direction", "slack", "gradient"))
        self.rows, self.cuts = arrays["rows"].copy(), arrays["cuts"].copy()
        self.moves.restore(arrays)
        self.curvature, self.row_penalty, self.set_penalty, self.before, self.count = arrays["numbers"].tolist()
