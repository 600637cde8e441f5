"""The paper's weakly regularised classification, with its lambda.

The inner problem is min_w sum_i exp(-z_i.w) + lambda/2 |w - p|^2.

A row of weight s_i is a row whose margin is log s_i smaller: s_i exp(-z_i.w) = exp(-(z_i.w - log s_i)).

With a_i = exp(-z_i.w) / lambda the minimiser is w = p + Z^T a, and a solves

    g(a) = log a + b + K a = 0,   K = Z Z^T,   b = Z p + log lambda,

the optimality condition of the dual min_a sum_i (a_i log a_i - a_i + a_i b_i) + 1/2 a^T K a. Everything here is in
the logarithm of lambda. Newton's method on log a needs one step per unit by which a margin is off, and on a itself it
runs into a = 0. In between lies t_i = log a_i + K_ii a_i, the negative of b_i + sum_(j != i) K_ij a_j at the solution:
linear in a_i where a_i is large and in log a_i where it is small, so that g is nearly piecewise linear in t, and
Newton's method with a line search on the dual needs few steps for any lambda. a_i = omega(t_i + log K_ii) / K_ii,
with Wright's omega function.

Without separability a grows like 1/lambda while Z^T a stays bounded, so that the dual loses all digits. Then Newton's
method is applied to w itself, for increasing L = log(1/lambda). Some rows, called the core, contradict each other: a
combination of the core rows with positive weights is 0. On the span V of the core, the sum over the core rows has a
minimiser; the other rows have positive margins in some direction orthogonal to V. The other rows move w in V by at most
lambda L, so that the problem splits once lambda is below rounding: the part of w in V is the minimiser for the core,
and the part orthogonal to V solves the problem of the other rows, whose margins from V are given. (Core rows with much
smaller weights than the others form a core of this second problem.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number
from forgetting.core.numerical import EPS, rank_tolerance
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes.base import Learned, Scheme, register
from forgetting.tasks.problem import Problem

__all__ = ["ExponentialSolution", "ExponentialTask", "WeaklyRegularized"]


SMALLEST = -1e14  # least log(lambda): its rounding changes log a by 1/64, where a is the weight of a row


@register
@dataclass(frozen=True)
class WeaklyRegularized(Scheme):
    """The paper's `scheme:regularized_cl`: w <- argmin_w sum_i exp(-y_i x_i.w) + lambda/2 |w - w_(t-1)|^2.

    The sum is over the rows of the task, each times its weight if the problem has `row_weights`. The minimiser is
    computed by Newton's method on the dual, with n variables for n rows (or d variables, if d is smaller), at O(n^3)
    per step after O(n^2 d) for the inner products; see the docstring of this module. A run records the Newton
    steps in `inner_steps`, and its `status` names a task whose residual stayed above `tol`. Tasks that are not
    separable are learned too.

    The iterates grow like L = log(1/lambda). `run.iterates` are the iterates themselves; `run.scaled_iterates` are
    divided by L, and losses and distances are computed from these (at lambda = 1, where L is 0, from the iterates
    themselves). As L grows, scaled iterates from w_0 = 0 tend to those of `POCS` (`reduc:classification_to_pocs`).

    Args:
        log_lambda: log(lambda), from 0 down to -1e14.
        tol: the largest allowed error of margins y_i x_i.w, relative to their size.
        max_steps: the most Newton steps per task on the dual; if the dual fails, as many again on w itself.

    >>> import forgetting as fg
    >>> tasks = fg.families.separable(T=2, d=3, n=4, margin=0.5, seed=0)
    >>> weak = fg.run(tasks, fg.orderings.Cyclic(), k=2, scheme=WeaklyRegularized(-10000))
    >>> limit = fg.run(tasks, fg.orderings.Cyclic(), k=2)
    >>> bool(abs(weak.scaled_iterates - limit.iterates).max() < 0.005)
    True
    """

    log_lambda: float
    tol: float = 1e-11
    max_steps: int = 500
    short_of_its_limit: ClassVar[str] = "a finite lambda (the rates are those of its limit, POCS)"
    random = remembers = False  # the memory saves work, and changes no step

    def __post_init__(self) -> None:
        value = as_number(self.log_lambda, "log_lambda")
        if value > 0:
            raise InvalidInputError(f"log_lambda must be at most 0 (lambda at most 1), got {self.log_lambda!r}")
        if value < SMALLEST:
            raise InvalidInputError(
                f"log_lambda must be at least {SMALLEST:g}, got {self.log_lambda!r}: below it the weights of the rows "
                "have no digits left; use POCS, the limit of small lambda"
            )
        object.__setattr__(self, "tol", as_number(self.tol, "tol", above=0))
        object.__setattr__(self, "max_steps", as_count(self.max_steps, "max_steps", least=1))

    @property
    def scale_of_iterates(self) -> float:
        """L = log(1/lambda), or 1 if L is 0."""
        return -float(self.log_lambda) or 1.0

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> list[ExponentialTask | None]:
        if problem.signed_rows(0) is None:
            raise NotSupportedError(f"{self} is a scheme for ClassificationTasks, not for {type(problem).__name__}")
        return [None] * int(problem.num_tasks)

    def learn(self, problem: Problem, task: int, w: Array, memory: list[ExponentialTask | None]) -> Learned:
        prepared = memory[task]
        if prepared is None:
            rows = problem.signed_rows(task)
            assert rows is not None  # `start` refused all other problems
            prepared = memory[task] = ExponentialTask(rows, problem.row_weights(task))
        solution = prepared.solve(w, float(self.log_lambda), self.tol, self.max_steps)
        if solution.residual <= self.tol:
            return Learned(solution.w, solution.steps)
        return Learned(
            solution.w,
            solution.steps,
            f"learning task {task} stopped after {solution.steps} Newton steps with a KKT residual of "
            f"{solution.residual:.1g}, above tol = {self.tol:g}; raise max_steps, or use a larger lambda",
        )


# ---------------------------------------------------------------------------------------------------- the inner problem


TRUSTED = 20.0  # up to this log a, Newton's method on w converges from 0, for separable rows or not
ROUGH = 1e-3  # allowed error of margins at intermediate values of lambda
FEW = 50  # Newton steps after which a stride in log(1/lambda) counts as too long


@dataclass(frozen=True, eq=False)
class ExponentialSolution:
    """The minimiser and the number of Newton steps.

    `residual` is the largest error of a margin z_i.w, relative to the largest margin; the error from rounding w itself
    does not count.
    """

    w: Array
    steps: int
    residual: float


class ExponentialTask:
    """The rows z_i of a task and their weights, and the quantities that all inner problems with these rows share."""

    def __init__(self, rows: Array, weights: Array | None = None) -> None:
        sizes = np.einsum("ij,ij->i", rows, rows)
        self.rows = np.ascontiguousarray(rows[sizes > 0])  # a zero row adds a constant
        self.given = 0.0 if weights is None else -np.log(weights[sizes > 0])  # added to margins
        self.sizes = sizes[sizes > 0]
        self.log_sizes = np.log(self.sizes)
        self.dual_newton = len(self.rows) <= min(max(rows.shape[1], 200), 4000)  # 4000 x 4000 numbers take 122 MiB

    @cached_property
    def gram(self) -> Array:
        """The Gram matrix K, used if n is small compared with d."""
        return np.asarray(self.rows @ self.rows.T)

    def solve(self, p: Array, log_lambda: float, tol: float, max_steps: int) -> ExponentialSolution:
        """The minimiser of sum_i s_i exp(-z_i.w) + lambda/2 |w - p|^2."""
        with np.errstate(all="ignore"):  # values that are not finite give a large residual
            try:
                shift, residual, steps = self._shift(self.rows @ p + self.given, -log_lambda, tol, max_steps)
            except ValueError:  # LAPACK refuses values that are not finite
                return ExponentialSolution(p, 0, np.inf)
        return (
            ExponentialSolution(p + shift, steps, residual)
            if np.isfinite(shift).all()
            else ExponentialSolution(p, steps, np.inf)
        )

    def _shift(self, margins: Array, level: float, tol: float, max_steps: int) -> tuple[Array, float, int]:
        """w - p, the residual and the number of steps; `margins` are those of p, `level` is log(1/lambda)."""
        if len(self.rows) == 0:
            return np.zeros(self.rows.shape[1]), 0.0, 0
        a, error, steps = self._dual(margins, level, tol, max_steps)
        shift = self.rows.T @ a
        residual = tol * error / _allowed(self.rows, margins, shift, tol)
        if residual <= tol:
            return shift, residual, steps
        rows, basis = self.reduced
        if error <= 0.1:  # a few Newton steps on w recover the digits that the dual has lost
            point = _primal(rows, margins, basis @ shift, level, tol, FEW)
            steps += point.steps
            if point.residual <= tol:
                return basis.T @ point.shift, point.residual, steps
        primal_shift, primal_residual, primal_steps = _along(rows, margins, level, tol, max_steps)
        if residual <= primal_residual:  # the rows are separable, and the dual only just misses tol
            return shift, residual, steps + primal_steps
        return basis.T @ primal_shift, primal_residual, steps + primal_steps

    @cached_property
    def reduced(self) -> tuple[Array, Array]:
        """The rows in coordinates on their span, which contains Z^T a, and an orthonormal basis of the span."""
        _, size, basis = np.linalg.svd(self.rows, full_matrices=False)
        basis = basis[size > size[0] * rank_tolerance(self.rows.shape)]
        if len(basis) == self.rows.shape[1]:
            return self.rows, np.eye(len(basis))
        return np.ascontiguousarray(self.rows @ basis.T), basis

    # ----------------------------------------------------------------------------------------------------------- dual

    def _weights(self, t: Array) -> tuple[Array, Array]:
        """a and log a for given t."""
        from scipy.special import wrightomega

        scaled = wrightomega(t + self.log_sizes)
        with np.errstate(divide="ignore"):
            log_a = np.where(scaled > 1e-3, np.log(scaled) - self.log_sizes, t - scaled)
        return scaled / self.sizes, log_a

    def _dual(self, margins: Array, level: float, tol: float, max_steps: int) -> tuple[Array, float, int]:
        """Newton's method in t; returns a, a bound on the error of margins, and the number of steps."""
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
            except ValueError:  # K a has no correct digits, or has overflowed
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
                # the change of the dual objective, from terms that do not cancel
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
            live = np.flatnonzero(a * self.sizes > 1e-30)  # rows with smaller weights do not change the margins
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
    """The result of Newton's method on w: w - p, the residual, the steps, and the derivative of w by log(1/lambda)."""

    shift: Array
    residual: float
    steps: int
    speed: Array


def _allowed(rows: Array, margins: Array, shift: Array, tol: float) -> float:
    """The allowed error of margins: tol times the largest margin, or the error from rounding w if that is larger."""
    size = 1 + float(np.max(np.abs(margins + rows @ shift)))
    lengths = float(np.max(np.linalg.norm(rows, axis=1))) * float(np.linalg.norm(shift))
    return max(tol * size, 4 * EPS * (float(np.max(np.abs(margins))) + lengths))


def _along(rows: Array, margins: Array, level: float, tol: float, max_steps: int) -> tuple[Array, float, int]:
    """Newton's method on w for increasing log(1/lambda), from small weights to `level` or until a core has settled.

    If lambda is so small that the weights have no correct digits, many strides fail one after another; `max_steps`
    therefore limits the steps of all strides together.
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
        point = _primal(rows, margins, shift + ahead * speed, reached + ahead, tol, most, ROUGH)
        steps += point.steps
        if point.residual > tol:
            if ahead < 1e-2:
                return basis.T @ shift, max(point.residual, (level - reached) / (1 + abs(level))), steps
            ahead /= 4
            continue
        shift, speed, reached = point.shift, point.speed, reached + ahead
        log_a = reached - margins - rows @ shift
        top = float(log_a.max())
        core = (rows @ speed < 0.5) & (log_a > max(top, TRUSTED) / 2)  # margins settle, and weights keep growing
        settled = top >= 60 and bool(core.any())  # lambda is below the rounding error of the core
        if core.any() and (core != apart).any():
            turn, rows, inside, rank = _apart(rows, core)
            basis, shift, speed, apart = turn @ basis, turn @ shift, turn @ speed, core
        if settled or reached >= level:
            point = _primal(rows, margins, shift, reached, tol, max(1, max_steps - steps))
            shift, residual, steps = point.shift, point.residual, steps + point.steps
            if settled:
                outside = ExponentialTask(rows[~inside][:, rank:])
                given = margins[~inside] + rows[~inside][:, :rank] @ shift[:rank]
                shift[rank:], missed, outside_steps = outside._shift(given, level, tol, max(1, max_steps - steps))
                residual, steps = max(residual, missed), steps + outside_steps
            return basis.T @ shift, residual, steps
        # the stride ends before the weight of a row that was small so far exceeds e^4: rounding would spoil w
        idle = log_a < 0
        rise = np.maximum(1 - rows[idle] @ speed, EPS)
        entry = float(np.min((4 - log_a[idle]) / rise, initial=np.inf))
        ahead = min(2 * max(ahead, 2.0), level - reached, entry)


def _apart(rows: Array, core: Any) -> tuple[Array, Array, Any, int]:
    """A rotation whose first axes span the core, the rotated rows, a mask of the rows in the span, and its dimension.

    The components of rows in the span along the other axes are set to exactly 0: the weights of the core grow like
    1/lambda and would multiply rounding errors there.
    """
    _, size, turn = np.linalg.svd(rows[core], full_matrices=True)
    none = rank_tolerance(rows.shape)
    rank = int(np.count_nonzero(size > size[0] * none))
    turned = rows @ turn.T
    inside = core | (np.linalg.norm(turned[:, rank:], axis=1) <= none * np.linalg.norm(rows, axis=1))
    turned[np.ix_(np.flatnonzero(inside), np.arange(rank, len(turn)))] = 0.0
    return turn, turned, inside, rank


def _primal(
    rows: Array, margins: Array, shift: Array, level: float, tol: float, max_steps: int, rough: float = 0.0
) -> _Point:
    """Minimise sum_i exp(level - margins_i - z_i.s) + 1/2 |s|^2 over s by Newton's method.

    The iteration ends when a step changes no margin by more than `rough` or `_allowed`.
    """
    from scipy.linalg import qr, solve_triangular

    sizes = np.einsum("ij,ij->i", rows, rows)
    residual, last, stuck = np.inf, np.inf, 0
    for step in range(max_steps):
        log_a = level - margins - rows @ shift
        if not log_a.max() < 600:  # exp(600) and its products with rows are within the range of float64
            return _Point(shift, np.inf, step, np.zeros_like(shift))
        a = np.exp(log_a)
        live = np.flatnonzero(a * sizes > 1e-30)  # rows with smaller weights do not contribute to the Hessian
        # QR of (A^(1/2) Z; I): forming Z^T A Z + I would lose the I in rounding, and with it the separable directions
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
        if residual <= tol:  # estimate the error of margins from rounding of the gradient, with two patterns of signs
            noise = 4 * EPS * (np.abs(rows).T @ a)
            hidden = [rows @ solve(noise * signs) for signs in (1, np.where(np.arange(len(noise)) % 2, -1, 1))]
            residual = tol * max(largest, float(np.max(np.abs(hidden)))) / allowed
            if residual > tol:
                return _Point(shift + change, residual, step, solve(rows.T @ a))
        stuck = stuck + 1 if 0.5 * last < largest < ROUGH else 0  # steps that only change rounding errors
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
