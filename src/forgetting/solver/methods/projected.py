"""Projected conjugate gradients: least squares over bounds, inequalities and convex sets, for large matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.solver.methods.base import Accuracy, Distance, Moves, System, norm, register
from forgetting.solver.methods.limited import SMALLEST, Constrained

POWERS = 12  # products to estimate the largest eigenvalue
RENEWED = 50  # iterations after which the residual is computed anew, against rounding errors
STEEPEST = 1e6  # of penalties, in units of those at the start
DRAWN = 1e-3  # the first pull to x0 on the way to the nearest minimiser, in units of the square of the longest column
WEAKEST = 1e-5  # the last one
FINE = 1e-10  # the KKT residual, or the relative residual, at which A x is that of all minimisers
ROUNDED = 64  # times EPS |A| |d| is the length up to which A d is nothing but rounding errors
TURNS = 60  # steps of a line search, at most


@register
class Projected(Constrained):
    """Conjugate gradients with projections onto bounds; inequalities and sets by augmented Lagrangians.

    With bounds alone it is MPRGP (Dostal and Schoeberl, Comput. Optim. Appl. 30, 2005): conjugate gradients on the
    variables between their bounds, a projected step where one would leave them (the rest of the step of conjugate
    gradients if that leads down, else one along the gradient: Kruzik, Horak, Cermak, Pospisil and Pecha, Adv. Eng.
    Software 149, 2020), and a step that frees variables where the gradient asks for it. All is done in the unknowns
    |a_j| x_j, in which columns have the norm 1 and bounds stay bounds. Each iteration is one product with A and one
    with A^T, or two of each at the bounds. Rows that are inequalities and sets have multipliers y and a penalty p:
    p / 2 dist^2(x + y / p), minimised in the same way with an exact line search, and y <- p (x + y / p - projection)
    (Hestenes, Powell, Rockafellar).

    The minimiser nearest to x0, if the system asks for it, has two stages, since A x is the same y for all minimisers:
    once y is known, x minimises |A x - y - s|^2 + e^2 |x - x0|^2 over the constraints, with multipliers
    s <- s + y - A x. Such an x is the point nearest to x0 among those with the same A x, up to its gradient divided by
    e^2.

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
        #: |a_j|^2 of the columns of equations, and of inequalities with their shares
        self.squares = np.zeros((2, n))
        #: A x of all minimisers, once it is known, and the side that x is led to
        self.common, self.side = system.b.copy(), system.b.copy()
        #: the bound on the curvature, the penalties of rows and sets, what was missed, and iterations
        self.curvature, self.row_penalty, self.set_penalty, self.before, self.count = 0.0, 1.0, 1.0, np.inf, 0.0
        #: e^2 or damp^2; whether x is led to the nearest minimiser; its KKT residual, and |A x - y| when s last changed
        self.pull, self.leads, self.reached, self.left = system.damp**2, 0.0, 0.0, np.inf

    @property
    def seeks(self) -> bool:
        """Whether x is to be the minimiser nearest to x0."""
        return self.system.nearest and not self.system.damp

    @property
    def uniqueness(self) -> str:
        if self.seeks:
            return "x is the minimiser nearest to x0"
        return "x is the only minimiser" if self.system.damp else "of several minimisers x may be any"

    # ----------------------------------------------------------------------------------------------- products with A

    @property
    def penalised(self) -> bool:
        """Whether there are constraints beside bounds."""
        return bool(len(self.rows) or len(self.cuts))

    def _start(self) -> None:
        """Compute the norms of columns and the gradient, and bound the curvature.

        Where each column is divided by its norm, the largest eigenvalue of a sum of matrices is at most that of one of
        them, so that it does not change with penalties.
        """
        sweeper, kinds = self.system.sweeper, [np.ones(len(self.system.b))]
        if len(self.rows):
            kinds = [self.equations.astype(np.float64), np.where(self.equations, 0.0, self.shares)]
        self.curvature = 1.0
        for kind, weights in enumerate(kinds):
            self.squares[kind] = sweeper.column_squares(weights)
            self.curvature = max(self.curvature, 1.1 * self._largest(weights, self.squares[kind]))
        longest = float(self.squares[0].max()) or 1.0
        self.set_penalty = 0.1 * (self.curvature * longest + self.system.damp**2)
        self._renew()
        if self.seeks and not self.equations.any():
            self._lead(0.0)

    def _largest(self, weights: Array, squares: Array) -> float:
        """An estimate of the largest eigenvalue of A^T W A with columns of norm 1, by the power method."""
        sweeper, value = self.system.sweeper, 0.0
        units = np.divide(1.0, np.sqrt(squares), out=np.zeros(len(squares)), where=squares > 0)
        v = np.random.default_rng(self.system.seed).standard_normal(len(units))
        zero, plain = np.zeros(len(weights)), not len(self.rows)
        for _ in range(POWERS):
            v = units * v / (norm(v) or 1.0)
            v = units * (sweeper.normal(v)[1] if plain else sweeper.back(-weights * sweeper.slack(zero, v)))
            value = norm(v)
        return value

    def _fresh(self) -> tuple[Array, Array]:
        """b + s - A x and the gradient, computed from x."""
        sweeper, x = self.system.sweeper, self.iterate.x
        if not len(self.rows):
            gap, back = sweeper.gap_and_back(self.side, x)
        else:
            gap = sweeper.slack(self.side, x)
            back = sweeper.back(self._weights(gap))
        return gap, self._gradient(x, back)

    def _renew(self) -> None:
        """Compute the residual and the gradient anew, and begin a new direction."""
        self._measure_columns()
        self.slack, self.gradient = self._fresh()
        self.direction = self._free(self.gradient) / self.metric

    def _measure_columns(self) -> None:
        """The squares of columns with all penalties and the pull to x0."""
        metric = self.squares[0] + self.pull + self.row_penalty * self.squares[1] + self.set_penalty * len(self.cuts)
        self.metric = np.where(metric > 0, metric, 1.0)

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
        gradient = self.pull * (x - self.system.x0) - back
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

    def _move(self, direction: Array, longest: float) -> tuple[float, Array]:
        """Go against the direction to the minimum, at most to the bounds; how much farther that would be, and H d."""
        sweeper, x = self.system.sweeper, self.iterate.x
        slope = float(self.gradient @ direction)
        if not self.penalised:
            along, bent = sweeper.normal(direction)
            bent = bent + self.pull * direction
            bend = float(along @ along) + self.pull * float(direction @ direction)
            if not bend > (ROUNDED * EPS) ** 2 * float(direction @ (self.metric * direction)):
                # A is 0 along the direction, and so is the slope, up to rounding errors
                return 0.0, np.zeros_like(bent)
            best = slope / bend
            step = min(best, longest)
            self.iterate.x = x - step * direction
            self.slack = self.slack + step * along
            self.gradient = self.gradient - step * bent
            return best - step, bent
        along = np.zeros(len(self.side)) - sweeper.slack(np.zeros(len(self.side)), direction)
        step = self._searched(direction, along, longest)
        before = self.gradient
        self.iterate.x, self.slack = x - step * direction, self.slack + step * along
        back = sweeper.back(self._weights(self.slack))
        self.gradient = self._gradient(self.iterate.x, back)
        return float(step == longest), (before - self.gradient) / step if step else np.zeros_like(before)

    def _searched(self, direction: Array, along: Array, longest: float) -> float:
        """The step to the minimum against a direction: a zero of the slope, which falls and is piecewise linear."""

        def slope(step: float) -> float:
            x = self.iterate.x - step * direction
            value = float(self.pull * ((x - self.system.x0) @ direction))
            value -= float(self._weights(self.slack + step * along) @ along)
            return value + (float(self._pulls(x).sum(axis=0) @ direction) if len(self.cuts) else 0.0)

        low, high, first = 0.0, longest, slope(0.0)
        if not first > 0:
            return 0.0
        if np.isfinite(longest):
            right = slope(longest)
            if right >= 0:
                return longest
        else:  # all penalties act at most
            high = first / float(direction @ (self.metric * direction))
            right = slope(high)
            for _ in range(TURNS):
                if right <= 0:
                    break
                low, high = high, 2 * high
                right = slope(high)
        left = first if low == 0 else slope(low)
        for _ in range(TURNS):
            middle = low + (high - low) * (left / (left - right) if left > right else 0.5)
            value = slope(middle)
            if abs(value) <= 1e-3 * first or high - low <= 1e-12 * high:
                return middle
            if value > 0:
                low, left = middle, value
            else:
                high, right = middle, value
        return low

    def sweep(self, visits: IntArray) -> Array:
        """The squared residual that is known, in the share of these visits: x moves at the ends of epochs only."""
        missed = self.system.sweeper.limits.missed(self._gap()) if self.curvature else self.system.b
        return np.atleast_1d(np.sum(missed * missed) * self.system.sweeper.rows_in(visits) / len(missed))

    def _gap(self) -> Array:
        """b - A x, as the kept residual has it."""
        return self.slack - (self.side - self.system.b)

    def end_epoch(self) -> None:
        if not self.curvature:
            self._start()
        self._iterate()
        self.count += 1
        if self.penalised or self.leads:
            self._multiply()
        elif self.count % RENEWED == 0:  # and the direction goes on
            self.slack, self.gradient = self._fresh()
        if self.seeks and not self.leads:
            self._find()
        self.moves.add(self.iterate.x)

    def _iterate(self) -> None:
        free, chopped = self._free(self.gradient), self._chopped(self.gradient)
        rounding = EPS * (norm(self.side) + norm(np.sqrt(self.metric) * self.iterate.x))
        if not norm((free + chopped) / np.sqrt(self.metric)) > rounding:
            return
        step, x, steepest = 1.0 / self.curvature, self.iterate.x, free / self.metric
        room = np.where(free > 0, (x - self.low) / step, (x - self.high) / step)
        reduced = np.where(free > 0, np.minimum(room, steepest), np.maximum(room, steepest))
        if float(chopped @ (chopped / self.metric)) > float(reduced @ free):  # free variables
            leaving = chopped / self.metric
            self._move(leaving, self._longest(leaving))
            self.iterate.x = np.clip(self.iterate.x, self.low, self.high)
            self.direction = self._free(self.gradient) / self.metric
            return
        if not float(self.direction @ free) > 0:
            self.direction = steepest
        rest, bent = self._move(self.direction, self._longest(self.direction))
        free = self._free(self.gradient)
        steepest = free / self.metric
        if not rest:
            bend = float(bent @ self.direction)
            self.direction = steepest - (float(steepest @ bent) / bend if bend > 0 else 0.0) * self.direction
            return
        x = self.iterate.x
        if not self._shift(np.clip(x - rest * self.direction, self.low, self.high), lower=True):
            self._shift(np.clip(x - step * steepest, self.low, self.high))
        self.direction = self._free(self.gradient) / self.metric

    def _shift(self, x: Array, *, lower: bool = False) -> bool:
        """Go to a point, with its residual and gradient; with `lower`, only if that lessens what is minimised."""
        sweeper, moved = self.system.sweeper, x - self.iterate.x
        if self.penalised:
            if not lower:
                self.iterate.x = x
                self.slack, self.gradient = self._fresh()
            return not lower
        along, bent = sweeper.normal(moved)
        bent = bent + self.pull * moved
        if lower and not float(moved @ (self.gradient + 0.5 * bent)) < 0:
            return False
        self.iterate.x, self.slack, self.gradient = x, self.slack - along, self.gradient + bent
        return True

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

    def _rest(self, gradient: Array) -> Array:
        """The gradient less the multipliers of bounds."""
        return self._free(gradient) + self._chopped(gradient)

    def _multiply(self) -> None:
        """New multipliers where the gradient is small beside what is missed.

        Larger penalties if what is missed of constraints falls slowly, a weaker pull to x0 if |A x - y| does.
        """
        off, rows, cuts = self._off(self.slack) if self.penalised else (0.0, self.rows, self.cuts)
        missed = norm(self._gap()[self.equations]) + self.system.damp * norm(self.x - self.system.x0)
        scale = np.sqrt(len(self.metric)) * missed or norm(np.sqrt(self.metric) * self.iterate.x) or 1.0
        left = self._apart(self.slack) if self.leads else 0.0
        if norm(self._rest(self.gradient) / np.sqrt(self.metric)) > 0.1 * max(off * scale, left):
            return
        if off > max(0.25 * self.before, FINE) and not self.leads:
            factor = 4.0 if self.row_penalty < STEEPEST else 1.0
            self.row_penalty, self.set_penalty = factor * self.row_penalty, factor * self.set_penalty
        self.rows, self.cuts, self.before = rows, cuts, off
        if self.leads:
            slow = not self.penalised and left > max(0.8 * self.left, FINE * float(self.sizes[0]))
            factor = 0.1 if slow and self.pull > WEAKEST * float(self.squares[0].max()) else 1.0
            shift = np.where(self.equations, factor * self.slack, 0.0)  # s / e^2 stays
            self.pull, self.left, self.side = factor * self.pull, left, self.common + shift
        self._renew()

    def _apart(self, slack: Array) -> float:
        """|A x - y| for the residual of the side that x is led to."""
        return norm((slack - (self.side - self.common))[self.equations])

    def _find(self) -> None:
        """Lead x to the nearest minimiser once A x is that of all of them."""
        measured = self._accuracy(self._gap(), self.gradient)
        exact = measured.residual <= FINE
        if exact or (measured.normal is not None and measured.normal <= FINE):
            self.slack, self.gradient = self._fresh()
            measured = self._accuracy(self._gap(), self.gradient)
            exact = exact and measured.residual <= FINE
            if exact or (measured.normal is not None and measured.normal <= FINE):
                self.common = np.where(self.equations, self.system.b - (0.0 if exact else 1.0) * self._gap(), self.side)
                self._lead(0.0 if exact else float(measured.normal or 0.0))

    def _lead(self, reached: float) -> None:
        """Begin the second stage, by multipliers of its own."""
        longest = float(self.squares[0].max()) or 1.0
        self.side, self.leads, self.reached, self.before = self.common.copy(), 1.0, reached, np.inf
        self.rows, self.cuts = np.zeros_like(self.rows), np.zeros_like(self.cuts)
        self.pull, self.row_penalty, self.set_penalty = DRAWN * longest, 1.0, 0.1 * self.curvature * longest
        self._renew()

    def error(self) -> float | None:
        """By the moves, and only where the KKT residual, as the kept gradient has it, is small as well."""
        moved = self._moved()
        normal = self._accuracy(self._gap(), self.gradient).normal
        return None if moved is None or normal is None else max(moved, normal)

    def _moved(self) -> float | None:
        """The error as far as moves tell; None on the way to what the nearest minimiser is sought from."""
        return None if self.seeks and not self.leads else self.moves.error()

    def _accuracy(self, gap: Array, gradient: Array) -> Accuracy:
        if not self.curvature:  # nothing was done yet
            return replace(self.judged(gap, 0.0), left=np.inf if self.seeks else self.judged(gap, 0.0).left)
        rest, off = self._rest(gradient), self._off(gap)[0] if self.penalised else 0.0
        if not self.leads:
            measured = self.judged(gap, norm(rest), norm(rest / np.sqrt(self.metric)), off)
            return replace(measured, left=np.inf) if self.seeks else measured
        measured = self.judged(gap, 0.0, 0.0, off)
        assert measured.normal is not None
        assert measured.each is not None
        size = float(self.sizes[0])
        missed = self._apart(gap + (self.side - self.system.b)) / max(norm(gap[self.equations]), SMALLEST * size)
        away = norm(rest) / self.pull / (norm(self.iterate.x - self.system.x0) or 1.0)
        normal = max(measured.normal, self.reached + missed, away)
        each = (np.array([np.inf]), np.array([normal]), measured.each[2])  # a small residual does not end the search
        return replace(measured, left=max(measured.left, away, off), normal=normal, each=each)

    def measure(self) -> Accuracy:
        slack, gradient = self._fresh()
        gap = slack - (self.side - self.system.b)
        self.last_gap = self.system.sweeper.limits.missed(gap.copy())
        measured = replace(self._accuracy(gap, gradient), error=self._moved())
        return measured if self.curvature else replace(measured, normal=None, each=None)

    def distance(self, *, decompose: bool = True) -> Distance | None:
        """With damping and bounds alone, |x - x*| is at most |gradient| / damp^2."""
        if not self.system.damp or self.penalised or not self.curvature:
            return None
        size, squared = norm(self.x) or 1.0, self.system.damp**2
        rounding = EPS * self.frobenius * (norm(self.system.b) + self.frobenius * size) / squared
        if rounding > 1e-3 * size:
            return None
        return Distance((norm(self._rest(self._fresh()[1])) / squared + rounding) / size, rounding / size)

    def arrays(self) -> dict[str, Array]:
        numbers = [self.curvature, self.row_penalty, self.set_penalty, self.before, self.count]
        numbers += [self.pull, self.leads, self.reached, self.left]
        return {
            **super().arrays(),
            **self.moves.arrays(),
            "direction": self.direction,
            "slack": self.slack,
            "gradient": self.gradient,
            "rows": self.rows,
            "cuts": self.cuts,
            "squares": self.squares,
            "side": self.side,
            "common": self.common,
            "numbers": np.array(numbers),
        }

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.direction, self.slack, self.gradient = (arrays[k].copy() for k in ("direction", "slack", "gradient"))
        self.rows, self.cuts = arrays["rows"].copy(), arrays["cuts"].copy()
        self.squares, self.common, self.side = (arrays[k].copy() for k in ("squares", "common", "side"))
        self.moves.restore(arrays)
        numbers = arrays["numbers"].tolist()
        self.curvature, self.row_penalty, self.set_penalty, self.before, self.count = numbers[:5]
        self.pull, self.leads, self.reached, self.left = numbers[5:]
        self._measure_columns()
