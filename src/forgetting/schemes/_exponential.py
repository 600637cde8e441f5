"""The inner problem of weakly regularised classification: min_w sum_i exp(-z_i.w) + lambda/2 |w - p|^2.

With a_i = exp(-z_i.w) / lambda the minimiser is w = p + Z^T a, and a solves

    g(a) = log a + b + K a = 0,   K = Z Z^T,   b = Z p + log lambda,

the optimality condition of the dual min_a sum_i (a_i log a_i - a_i + a_i b_i) + 1/2 a^T K a. Everything here is in
the logarithm of lambda. Newton's method on log a needs one step per unit by which a margin is off, and on a itself it
runs into a = 0. In between lies t_i = log a_i + K_ii a_i, the negative of b_i + sum_(j != i) K_ij a_j at the solution:
linear in a_i where a_i is large and in log a_i where it is small, so that g is nearly piecewise linear in t, and
Newton's method with a line search on the dual needs few steps whatever lambda is. a_i = omega(t_i + log K_ii) / K_ii,
with Wright's omega function.

Without separability a grows like 1/lambda while Z^T a stays bounded, and the dual loses all digits; there Newton's
method on w itself takes over, along growing L = log(1/lambda). Some rows, the core, contradict each other: a
combination of them with positive weights is 0. On their span V the sum over them has a minimiser of its own, and the
other rows have a direction orthogonal to V with positive margins on all of them. The others pull on V by no more than
lambda L, so that once lambda is below rounding the two parts come apart: w in V is that minimiser, and the rest of w
solves the problem of the other rows across V, with the margins that V gives them. (Rows of the core whose weights are
far below the others make a core of their own there.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from forgetting._arrays import Array

__all__ = ["ExponentialTask", "Solution"]

EPS = float(np.finfo(np.float64).eps)
GRAM_ROWS = 4000  # up to here (122 MiB) the n x n Gram matrix may be kept
TRUSTED = 20.0  # log a to which a start needs no care, separable or not
SETTLED = 60.0  # log a of a core from which lambda is below its rounding
ENTRY = 4.0  # the largest log a at which a row that was idle may enter
NEAR = 0.1  # margins that are off by this are a step or two of Newton's method away
ROUGH = 1e-3  # how far margins may be off on the way
LARGEST = 600.0  # log a, within the range of float64
FEW = 50  # steps of Newton's method after which a stride along lambda is taken for too long


@dataclass(frozen=True, eq=False)
class Solution:
    """The minimiser and the Newton steps it took.

    `residual` is the largest change of a margin z_i.w that is still missing, relative to the largest margin; what is
    lost when w is rounded counts as nothing missing.
    """

    w: Array
    steps: int
    residual: float


class ExponentialTask:
    """The rows z_i of one task, with what every inner problem on them shares."""

    def __init__(self, rows: Array) -> None:
        sizes = np.einsum("ij,ij->i", rows, rows)
        self.rows = np.ascontiguousarray(rows[sizes > 0])  # a zero row adds a constant
        self.sizes = sizes[sizes > 0]
        self.log_sizes = np.log(self.sizes)
        self.dual_newton = len(self.rows) <= min(max(rows.shape[1], 200), GRAM_ROWS)

    @cached_property
    def gram(self) -> Array:
        """K, where it is the smaller way to a Newton step."""
        return np.asarray(self.rows @ self.rows.T)

    def solve(self, p: Array, log_lambda: float, tol: float, max_steps: int) -> Solution:
        """The minimiser of sum_i exp(-z_i.w) + lambda/2 |w - p|^2."""
        with np.errstate(all="ignore"):  # values that are not finite make a residual that is not small
            try:
                shift, residual, steps = self._shift(self.rows @ p, -log_lambda, tol, max_steps)
            except ValueError:  # or are refused by LAPACK
                return Solution(p, 0, np.inf)
        return Solution(p + shift, steps, residual) if np.isfinite(shift).all() else Solution(p, steps, np.inf)

    def _shift(self, margins: Array, level: float, tol: float, max_steps: int) -> tuple[Array, float, int]:
        """w - p for the margins of p, with the residual and the steps."""
        if len(self.rows) == 0:
            return np.zeros(self.rows.shape[1]), 0.0, 0
        a, error, steps = self._dual(margins, level, tol, max_steps)
        shift = self.rows.T @ a
        residual = tol * error / _allowed(self.rows, margins, shift, tol)
        if residual <= tol:
            return shift, residual, steps
        rows, basis = self.reduced
        if error <= NEAR:  # the digits that the dual has lost
            found = _primal(rows, margins, basis @ shift, level, tol, FEW)
            steps += found.steps
            if found.residual <= tol:
                return basis.T @ found.shift, found.residual, steps
        other, missed, more = _along(rows, margins, level, tol, max_steps)
        if residual <= missed:  # separable after all, and only just out of reach of tol
            return shift, residual, steps + more
        return basis.T @ other, missed, steps + more

    @cached_property
    def reduced(self) -> tuple[Array, Array]:
        """The rows in coordinates of their span, which Z^T a never leaves, and its orthonormal basis."""
        _, size, basis = np.linalg.svd(self.rows, full_matrices=False)
        basis = basis[size > size[0] * max(self.rows.shape) * EPS]
        if len(basis) == self.rows.shape[1]:
            return self.rows, np.eye(len(basis))
        return np.ascontiguousarray(self.rows @ basis.T), basis

    # ----------------------------------------------------------------------------------------------------------- dual

    def _weights(self, t: Array) -> tuple[Array, Array]:
        """a and log a."""
        from scipy.special import wrightomega

        scaled = wrightomega(t + self.log_sizes)
        with np.errstate(divide="ignore"):
            log_a = np.where(scaled > 1e-3, np.log(scaled) - self.log_sizes, t - scaled)
        return scaled / self.sizes, log_a

    def _dual(self, margins: Array, level: float, tol: float, max_steps: int) -> tuple[Array, float, int]:
        """Newton's method in t: a, by how much margins may be off, and the steps."""
        lengths = np.sqrt(self.sizes)
        reach = float(lengths.max())
        b = margins - level
        t = -b
        a, log_a = self._weights(t)
        pulled = self._apply(a)
        g = log_a + b + pulled
        error = np.inf
        for step in range(max_steps):
            largest, noise = float(np.max(np.abs(g))), 4 * EPS * reach * float(lengths @ a)
            error = largest + noise
            if largest <= max(0.5 * tol * (1 + float(np.max(np.abs(margins + pulled)))), noise):
                return a, error, step
            try:
                change, moved = self._newton(a, g)
            except ValueError:  # K a is lost in rounding, or has overflowed
                return a, error, step
            direction = -g - moved + self.sizes * change
            slope = float(g @ change)
            length, done = 1.0, False
            while length > 1e-10 and not done:
                t_new = t + length * direction
                a_new, log_new = self._weights(t_new)
                shift = a_new - a
                pulled_new = self._apply(a_new)
                g_new = log_new + b + pulled_new
                # the change of the dual objective, from parts that do not cancel
                gain = float(g @ shift) + 0.5 * float(shift @ (pulled_new - pulled))
                gain += float(np.sum(a_new * (log_new - log_a) - shift))
                smaller = float(np.max(np.abs(g_new))) <= 0.5 * float(np.max(np.abs(g)))
                done = smaller or gain <= 1e-4 * length * slope
                length /= 2
            if not done:
                return a, error, step
            t, a, log_a, pulled, g = t_new, a_new, log_new, pulled_new, g_new
        return a, error, max_steps

    def _apply(self, a: Array) -> Array:
        return np.asarray(self.gram @ a if self.dual_newton else self.rows @ (self.rows.T @ a))

    def _newton(self, a: Array, g: Array) -> tuple[Array, Array]:
        """-(diag(1/a) + K)^(-1) g, and K times that."""
        from scipy.linalg import cho_factor, cho_solve

        if self.dual_newton:
            live = np.flatnonzero(a * self.sizes > 1e-30)  # the others do not move the margins
            root = np.sqrt(a[live])
            system = root[:, None] * self.gram[np.ix_(live, live)] * root
            system[np.diag_indices(len(live))] += 1
            change = np.zeros_like(a)
            change[live] = -root * cho_solve(cho_factor(system, lower=True, check_finite=False), root * g[live])
            return change, self.gram[:, live] @ change[live]
        weighted = self.rows * a[:, None]
        system = weighted.T @ self.rows
        system[np.diag_indices(len(system))] += 1
        step = -cho_solve(cho_factor(system, lower=True, check_finite=False), weighted.T @ g)
        moved = self.rows @ step
        return -a * (g + moved), moved


# ------------------------------------------------------------------------------------------------------------- primal


class _Point(NamedTuple):
    """Where Newton's method on w came, the residual, the steps, and how w moves with log(1/lambda)."""

    shift: Array
    residual: float
    steps: int
    speed: Array


def _allowed(rows: Array, margins: Array, shift: Array, tol: float) -> float:
    """By how much margins may be off: tol of the largest, or what is lost when w is rounded."""
    size = 1 + float(np.max(np.abs(margins + rows @ shift)))
    lengths = float(np.max(np.linalg.norm(rows, axis=1))) * float(np.linalg.norm(shift))
    return max(tol * size, 4 * EPS * (float(np.max(np.abs(margins))) + lengths))


def _along(rows: Array, margins: Array, level: float, tol: float, max_steps: int) -> tuple[Array, float, int]:
    """Newton's method on w, along lambda from where no weight is large to where a core has settled.

    Where lambda is so small that rounding leaves no digits of the weights, strides come to nothing one by one; so
    `max_steps` is for all of them together.
    """
    reached = min(level, TRUSTED + float(margins.min()))
    shift, speed = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    basis = np.eye(rows.shape[1])
    apart = inside = np.zeros(len(rows), dtype=bool)
    ahead, rank, steps = 0.0, 0, 0
    while True:
        if steps >= max_steps:
            return basis.T @ shift, max(ROUGH, (level - reached) / (1 + abs(level))), steps
        most = min(max_steps - steps, FEW) if ahead else max_steps
        found = _primal(rows, margins, shift + ahead * speed, reached + ahead, tol, most, ROUGH)
        steps += found.steps
        if found.residual > tol:
            if ahead < 1e-2:
                return basis.T @ shift, max(found.residual, (level - reached) / (1 + abs(level))), steps
            ahead /= 4
            continue
        shift, speed, reached = found.shift, found.speed, reached + ahead
        log_a = reached - margins - rows @ shift
        top = float(log_a.max())
        core = (rows @ speed < 0.5) & (log_a > max(top, TRUSTED) / 2)  # it settles, and its weights keep growing
        settled = top >= SETTLED and bool(core.any())
        if core.any() and (core != apart).any():
            turn, rows, inside, rank = _apart(rows, core)
            basis, shift, speed, apart = turn @ basis, turn @ shift, turn @ speed, core
        if settled or reached >= level:
            found = _primal(rows, margins, shift, reached, tol, max(1, max_steps - steps))
            shift, residual, steps = found.shift, found.residual, steps + found.steps
            if settled:
                rest = ExponentialTask(rows[~inside][:, rank:])
                given = margins[~inside] + rows[~inside][:, :rank] @ shift[:rank]
                shift[rank:], missed, more = rest._shift(given, level, tol, max(1, max_steps - steps))
                residual, steps = max(residual, missed), steps + more
            return basis.T @ shift, residual, steps
        # no row that is idle so far may enter with a large weight, which rounding would not survive
        idle = log_a < 0
        rise = np.maximum(1 - rows[idle] @ speed, EPS)
        entry = float(np.min((ENTRY - log_a[idle]) / rise, initial=np.inf))
        ahead = min(2 * max(ahead, 2.0), level - reached, entry)


def _apart(rows: Array, core: Any) -> tuple[Array, Array, Any, int]:
    """A rotation whose first axes span the core, the rows in it, which of them lie in that span, and its dimension.

    The weights a of the core grow like 1/lambda. Its components along the other axes are 0, and set to 0: rounding
    errors there would be multiplied by these weights.
    """
    _, size, turn = np.linalg.svd(rows[core], full_matrices=True)
    none = max(rows.shape) * EPS
    rank = int(np.count_nonzero(size > size[0] * none))
    turned = rows @ turn.T
    inside = core | (np.linalg.norm(turned[:, rank:], axis=1) <= none * np.linalg.norm(rows, axis=1))
    turned[np.ix_(np.flatnonzero(inside), np.arange(rank, len(turn)))] = 0.0
    return turn, turned, inside, rank


def _primal(
    rows: Array, margins: Array, shift: Array, level: float, tol: float, max_steps: int, rough: float = 0.0
) -> _Point:
    """min over s of sum_i exp(level - margins_i - z_i.s) + 1/2 |s|^2 by Newton's method.

    It ends when a step moves no margin by more than is allowed, or than `rough`.
    """
    from scipy.linalg import qr, solve_triangular

    sizes = np.einsum("ij,ij->i", rows, rows)
    residual, last, stuck = np.inf, np.inf, 0
    for step in range(max_steps):
        log_a = level - margins - rows @ shift
        if not log_a.max() < LARGEST:
            return _Point(shift, np.inf, step, np.zeros_like(shift))
        a = np.exp(log_a)
        live = np.flatnonzero(a * sizes > 1e-30)  # the others do not bend anything
        # orthogonal factors of (A^(1/2) Z; I): Z^T A Z + I itself would lose the I, and what is separable with it
        system = np.concatenate([rows[live] * np.sqrt(a[live, None]), np.eye(rows.shape[1])])
        factor, order = qr(system, mode="r", pivoting=True, overwrite_a=True, check_finite=False)
        factor = factor[: rows.shape[1]]

        def solve(v: Array, factor: Array = factor, order: Array = order) -> Array:
            x = np.empty_like(v)
            x[order] = solve_triangular(factor, solve_triangular(factor, v[order], trans="T"))
            return x

        gradient = shift - rows.T @ a
        change = -solve(gradient)
        moved = rows @ change
        largest, allowed = float(np.max(np.abs(moved))), max(rough, _allowed(rows, margins, shift, tol))
        residual = tol * largest / allowed
        if residual <= tol:  # what the rounding of the gradient may hide, by two of its signs
            noise = 4 * EPS * (np.abs(rows).T @ a)
            hidden = [rows @ solve(noise * signs) for signs in (1, np.where(np.arange(len(noise)) % 2, -1, 1))]
            residual = tol * max(largest, float(np.max(np.abs(hidden)))) / allowed
            if residual > tol:
                return _Point(shift + change, residual, step, solve(rows.T @ a))
        stuck = stuck + 1 if 0.5 * last < largest < ROUGH else 0  # all that is left is rounding
        if residual <= tol or stuck == 4:
            return _Point(shift + change if residual <= tol else shift, residual, step, solve(rows.T @ a))
        last = largest
        length = 1.0
        while length > 1e-10:
            part = length * moved
            gain = length * float(gradient @ change) + 0.5 * length**2 * float(change @ change)
            gain += float(np.sum(a * (np.expm1(-part) + part)))
            if gain <= 1e-4 * length * float(gradient @ change):
                break
            length /= 2
        else:
            return _Point(shift, residual, step, np.zeros_like(shift))
        shift = shift + length * change
    return _Point(shift, residual, max_steps, np.zeros_like(shift))
