"""The weights of independent draws with the least expected loss after k steps.

f(p) = <H, Q_p^k[W_0]> + c is a polynomial of degree k in the weights p, with the losses of all orders as coefficients.
Its gradient costs about two more passes, by the adjoint: with W_t = Q^t[W_0] and G_t = (Q*)^t[H],
df/dp_m = sum_t <G_(k-t), S_m W_(t-1) S_m^T>. Where no w solves all tasks the state is (z, 1) and S_m is not symmetric,
so that Q*[G] = sum_m p_m S_m^T G S_m is another map than Q.

f is linear for k = 1. For k > 1 it is not convex in general, and may have several local minima: the search starts from
many weights, and the logarithm of f, which has the same minima, is what it sees, since f falls like a k-th power.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.quantities import LOSS

STORED = 2.0**28  # bytes of moments that are kept for the backward pass before they are computed twice instead
QUICK = 1e8  # products in a gradient; the search takes fewer starts where a gradient takes more
SEARCHES = 8  # local searches from the best of the weights that are only looked at; 1 if not quick
EXCHANGES = 4  # local searches after the weight of one task went to another
SAMPLES = 24  # random weights that are looked at, and as many of which most are small
PAIRS = 30  # tasks, at most, of which all pairs are looked at
SEED = 0
ITERATIONS = 200  # of a local search
SMALL = 1e-4  # weights below it are tried without
NO_WORSE = 1e-14  # rounding errors in the logarithm of the loss


class LossOptimum(NamedTuple):
    """Weights of the distinct tasks, and how they were found.

    Attributes:
        weights: the best that were seen.
        slope: how much log E L falls, to first order, if all weight moves to the best single task: 0 at a minimum.
        searches: how many local searches were made.
        agreeing: how many of them ended at the least value.
    """

    weights: Array
    slope: float
    searches: int
    agreeing: int


def form_of_loss(moments: Float64Moments) -> tuple[Array, float]:
    """H and c of the expected loss <H, E z z^T> + c, before H is multiplied by the square of `unit`."""
    geometry = moments.geometry
    share = geometry.counts / geometry.num_tasks
    form = (moments.right[0].T * (0.5 * share[geometry.owner] * moments.weights(LOSS)[0])) @ moments.right[0]
    return form, float(share @ moments.unexplained[0])


class ExpectedLoss:
    """E L(w_k) as a function of the weights of the distinct tasks, in float64.

    Args:
        moments: the maps S_m, the start, and what no w fits.
        k: the number of steps, at least 1.
    """

    def __init__(self, moments: Float64Moments, k: int) -> None:
        geometry, n = moments.geometry, moments.size
        self.k, self.owner, self.count = k, geometry.owner, geometry.num_distinct
        self.forward, self.backward = moments, replace(moments, left=moments.right, right=moments.left)
        self.start, self.log_unit = moments.second()[0], 2 * np.log(moments.unit)
        self.form, self.floor = form_of_loss(moments)
        self.segment = k if 8.0 * k * n * n <= STORED else int(np.ceil(np.sqrt(k)))
        self.products = 6.0 * k * len(self.owner) * n * n
        kept = 8.0 * n * n * (self.segment + k / self.segment)
        require_memory(kept, f"the moments of {k} steps in dimension {n}", "use fewer steps or tasks of a smaller rank")

    def log_value(self, p: Array) -> float:
        """log E L(w_k); -inf where the loss is 0."""
        state = _Scaled(self.start)
        weights = p[self.owner][:, None] * self.forward.left[0]
        for _ in range(self.k):
            state = _step(self.forward, state, weights)
        return self._log_value(state)[0]

    def log_gradient(self, p: Array) -> tuple[float, Array]:
        """log E L(w_k), and its gradient by weights that need not sum to 1; zeros where the loss is 0."""
        weights, back = (p[self.owner][:, None] * maps.left[0] for maps in (self.forward, self.backward))
        marks, state = [_Scaled(self.start)], _Scaled(self.start)
        for t in range(1, self.k + 1):
            state = _step(self.forward, state, weights)
            if t % self.segment == 0 and t < self.k:
                marks.append(state)
        value, level = self._log_value(state)
        gradient = np.zeros(self.count)
        if level == -np.inf:
            return value, gradient
        adjoint = _Scaled(self.form)
        for before in self._backwards(marks, weights):
            size = np.exp((before.power + adjoint.power) * np.log(2) + self.log_unit - value)
            gradient += size * self._per_task(before.matrix, adjoint.matrix)
            adjoint = _step(self.backward, adjoint, back)
        return value, gradient

    def _log_value(self, state: _Scaled) -> tuple[float, float]:
        """log E L, and the logarithm of the part of E L that depends on the weights."""
        inner = float(np.vdot(self.form, state.matrix))
        level = float(np.log(inner)) + state.power * np.log(2) + self.log_unit if inner > 0 else -np.inf
        floor = float(np.log(self.floor)) if self.floor > 0 else -np.inf
        return float(np.logaddexp(level, floor)), level

    def _backwards(self, marks: list[_Scaled], weights: Array) -> Iterator[_Scaled]:
        """W_(k-1), ..., W_0, from every `segment`-th of them."""
        for number in range(len(marks) - 1, -1, -1):
            states = [marks[number]]
            for _ in range(min(self.segment, self.k - number * self.segment) - 1):
                states.append(_step(self.forward, states[-1], weights))
            yield from reversed(states)

    def _per_task(self, moment: Array, adjoint: Array) -> Array:
        """<G, S_m W S_m^T> of every task."""
        completed = self.forward.completed(moment[:, None])[0][:, 0]
        parts = np.einsum("in,in->i", self.forward.left[0] @ adjoint, completed)
        return np.asarray(np.vdot(adjoint, moment) + 2 * np.bincount(self.owner, parts, self.count))


class _Scaled(NamedTuple):
    """The matrix times a power of 2: k-th powers leave the range of floats."""

    matrix: Array
    power: int = 0


def _step(moments: Float64Moments, state: _Scaled, weighted: Array) -> _Scaled:
    """sum_m p_m S_m A S_m^T, with the rows p_m a of all directions."""
    matrix, power = moments.mixed(state.matrix[:, None], weighted)[0][:, 0], state.power
    size = float(np.abs(matrix).max(initial=0.0))
    if 0 < size < 2.0**-100 or 2.0**100 < size < np.inf:
        shift = int(np.frexp(size)[1])
        matrix, power = np.ldexp(matrix, -shift), power + shift
    return _Scaled(matrix, power)


# ------------------------------------------------------------------------------------------------------ the search
class _SolvedError(Exception):
    """Weights with loss 0 were found."""


def least_loss(loss: ExpectedLoss, starts: list[Array]) -> LossOptimum:
    """The weights with the least loss that local searches find, from these starts and from others.

    Single tasks, pairs of up to 30 tasks and random weights of a fixed seed are looked at, and the best eight of them
    are starts, too; the best one where a gradient takes more than about 0.1 seconds. Minima with few tasks in them are
    missed from the middle of the simplex. Then the weight of one task goes to another, as long as searches from there
    end lower. The result is never worse than a start.
    """
    if loss.k == 1:
        return _vertex(loss, starts[0])
    quick = loss.products <= QUICK
    others = sorted(_candidates(loss.count, pairs=quick and loss.count <= PAIRS), key=loss.log_value)
    ends: list[tuple[float, Array]] = []
    for start in [*starts, *others[: SEARCHES if quick else 1]]:
        ends.append(_descend(loss, start))
        if ends[-1][0] == -np.inf:
            break
    while quick:  # one task of the best for another
        before, best = min(ends, key=lambda end: end[0])
        moved = sorted(_exchanges(best), key=loss.log_value)[:EXCHANGES] if before > -np.inf else []
        ends += [_descend(loss, start) for start in moved]
        if not min([before, *(end[0] for end in ends[len(ends) - len(moved) :])]) < before - 1e-6:
            break
    value, best = min(ends, key=lambda end: end[0])
    value, best = _without_small(loss, value, best)
    gradient = loss.log_gradient(best)[1]
    agreeing = sum(end[0] <= value + 1e-6 for end in ends)
    return LossOptimum(best, float(gradient @ best - gradient.min()), len(ends), agreeing)


def _candidates(count: int, *, pairs: bool) -> list[Array]:
    """Single tasks, both tasks of a pair equally, and random weights."""
    single, rng = np.eye(count), np.random.default_rng(SEED)
    both = [(single[a] + single[b]) / 2 for a in range(count) for b in range(a)] if pairs else []
    drawn = [rng.dirichlet(np.full(count, spread), SAMPLES) for spread in (1.0, 0.3)]
    return [*single, *both, *drawn[0], *drawn[1]]


def _exchanges(p: Array) -> list[Array]:
    """The weights, with that of one task given to a task that has nearly none."""
    exchanged = []
    for giver in np.flatnonzero(p > SMALL):
        for taker in np.flatnonzero(p <= SMALL):
            moved = p.copy()
            moved[[giver, taker]] = 0.0, p[giver]
            exchanged.append(moved / moved.sum())
    return exchanged


def _vertex(loss: ExpectedLoss, start: Array) -> LossOptimum:
    """After one step the loss is linear in the weights: one task is best."""
    gradient = loss.log_gradient(start)[1]
    return LossOptimum(np.eye(loss.count)[int(np.argmin(gradient))], 0.0, 0, 0)


def _descend(loss: ExpectedLoss, start: Array) -> tuple[float, Array]:
    """A local minimum of log f near a start, by quadratic programs (SLSQP); the best weights that were seen."""
    from scipy.optimize import minimize

    seen: list[Any] = [np.inf, start]

    def evaluate(x: Array) -> tuple[float, Array]:
        p = np.maximum(x, 0.0)
        p /= p.sum()
        value, gradient = loss.log_gradient(p)
        if value < seen[0]:
            seen[:] = [value, p]
        if value == -np.inf:
            raise _SolvedError
        # log f / k is about the logarithm of a rate: its scale suits the first steps, which know no curvature
        return value / loss.k, (gradient - gradient @ p) / loss.k

    ones = np.ones(loss.count)
    simplex = {"type": "eq", "fun": lambda x: np.sum(x) - 1, "jac": lambda x: ones}
    options = {"ftol": 1e-11 / loss.k, "maxiter": ITERATIONS}
    bounds = [(0, 1)] * loss.count
    with suppress(_SolvedError):
        minimize(evaluate, start, jac=True, method="SLSQP", bounds=bounds, constraints=simplex, options=options)
    return seen[0], seen[1]


def _without_small(loss: ExpectedLoss, value: float, best: Array) -> tuple[float, Array]:
    """The same weights without tiny ones, where that is no worse but for rounding."""
    for limit in (SMALL, SMALL**2):
        large = np.where(best < limit, 0.0, best)
        large /= large.sum()
        now = loss.log_value(large)
        if now <= value + NO_WORSE:
            return now, large
    return value, best
