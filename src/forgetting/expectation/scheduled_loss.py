"""The strengths of k steps with the least expected loss after them, by the adjoint.

Step t has one strength x_t in [0, 1], from which every direction i gets its gain g_i(x_t). The state is the second
moment M of the error (of (z, 1), where no w solves all tasks), one for each *node*: independent draws and given orders
have one node, permutations have one for each multiset of tasks that were seen, with its probability in M. A step moves
M along edges, M_child += p S_m M_parent S_m^T with S_m = I - a_m b_m^T, a_m = U_m diag(g(x_t)). So the expected loss is
f = sum_nodes <H, M_k> + c, and with the adjoint G_k = H, G_parent += p S_m^T G_child S_m,

    df/dx_t = -2 sum_edges p sum_i g_i'(x_t) (u_i G_child) . (b_i M_parent S_m^T).

A gradient costs about three times as much as the loss. f is quadratic in the gains of every single step, but not convex
in all of them: the search descends on log f from several starts (L-BFGS-B within [0, 1]^k).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.moment_map import kernels
from forgetting.expectation.engines.multisets import none_seen, one_more
from forgetting.expectation.least_loss import form_of_loss

LOWEST = 1e-18  # the least x: nearly no step
ODDS = 6.0  # powers of ten of (1 - x) / x that are looked at for a fixed strength, beside `reach` and log10(k)
LOOKS = 4  # strengths looked at for each power of ten
FINEST = 14.0  # powers of ten of x / (1 - x) that are looked at: beyond them x is 1 to nearly all digits
BRACKETS = 3  # lowest places of that look that are searched further
ITERATIONS = 400  # of a local search
SOLVED = 1e-12  # a share of the loss at the best fixed strength below which losses count as alike
EVEN = 1e-10  # the least eigenvalue over the largest of a mean loss that is minimised in float64
TINY = 1e-280  # a loss that counts as 0, in units of the start, or as a float


class Part(NamedTuple):
    """What one step may learn: tasks, from nodes to nodes.

    Attributes:
        tasks: the distinct tasks that may be learned.
        weights: for each of their directions, the probability of its task; these sum to 1 over the tasks.
        parents, children: the nodes before and after, no child twice.
        shares: the probability of each edge.
    """

    tasks: slice
    weights: Array
    parents: IntArray
    children: IntArray
    shares: Array


class Layer(NamedTuple):
    """All that one step may learn, and the numbers of nodes before and after it."""

    parts: tuple[Part, ...]
    before: int
    after: int


class Gains(NamedTuple):
    """The gains of all directions at a strength x in [0, 1], and their derivatives."""

    value: Callable[[float], Array]
    slope: Callable[[float], Array]


ONE: IntArray = np.zeros(1, dtype=np.int64)


def drawn(moments: Float64Moments, k: int) -> list[Layer]:
    """k independent draws."""
    tasks = slice(0, moments.geometry.num_learned)
    weights = moments.probability[0][moments.geometry.owner]
    return [Layer((Part(tasks, weights, ONE, ONE, np.ones(1)),), 1, 1)] * k


def given(moments: Float64Moments, order: IntArray) -> list[Layer]:
    """The distinct tasks of a given order, one after the other."""
    ranks = moments.geometry.ranks
    single = {
        m: Layer((Part(slice(m, m + 1), np.ones(ranks[m]), ONE, ONE, np.ones(1)),), 1, 1) for m in set(order.tolist())
    }
    return [single[m] for m in order.tolist()]


def permuted(moments: Float64Moments, k: int) -> list[Layer]:
    """Epochs of permutations, k steps in all: nodes are the multisets of distinct tasks seen in the epoch."""
    counts, ranks = moments.geometry.counts, moments.geometry.ranks
    total, layers, seen = int(counts.sum()), list[Layer](), none_seen(counts)
    for step in range(min(k, total)):
        following, edges = one_more(seen, counts)
        parts = [
            Part(slice(m, m + 1), np.ones(ranks[m]), parents, children, left / (total - step))
            for m, parents, children, left, _ in edges
        ]
        layers.append(Layer(tuple(parts), len(seen), len(following)))
        seen = following
    return (layers * -(-k // total))[:k]


@dataclass(eq=False)
class ScheduledLoss:
    """E L(w_k) as a function of the strengths x of the k steps, in float64.

    Attributes:
        moments: the maps S_m at gains of 1, the start, and what no w fits.
        layers: what each step may learn.
        gains: the gain of every direction at a strength.
    """

    moments: Float64Moments
    layers: list[Layer]
    gains: Gains

    def __post_init__(self) -> None:
        moments, n = self.moments, self.moments.size
        self.form, self.floor = form_of_loss(moments)
        self.start = np.ascontiguousarray(moments.second()[0][:, None, :])
        self.unit = moments.unit**2
        self.nothing = TINY * max(self.unit, 1e-20)  # a loss that counts as 0
        kept = 8.0 * n * n * sum(layer.before for layer in self.layers)
        require_memory(
            kept, f"the moments of {len(self.layers)} steps in dimension {n}", "use fewer steps, or fewer tasks"
        )

    def least(self) -> float:
        """The least mean loss that any w has, less what rounding may add to it."""
        inner, D = self.form, self.moments.dim
        sizes = np.linalg.eigvalsh(inner[:D, :D])
        if len(inner) == D or sizes[0] <= EVEN * sizes[-1]:
            return self.floor
        reached = inner[D:, :D] @ np.linalg.solve(inner[:D, :D], inner[:D, D:])
        missed = float(np.trace(inner[D:, D:]))
        rounding = 16 * len(inner) * EPS * float(sizes[-1] / sizes[0]) * missed
        return self.unit * max(0.0, missed - float(np.trace(reached)) - rounding) + self.floor

    def value(self, x: Array) -> float:
        """E L(w_k)."""
        state = self.start
        for layer, strength in zip(self.layers, x.tolist(), strict=True):
            state = self._step(layer, state, self._left(strength))
        return self._value(state)

    def gradient(self, x: Array) -> tuple[float, Array]:
        """E L(w_k), and its derivatives by the strengths."""
        left, states = [self._left(strength) for strength in x.tolist()], [self.start]
        for layer, rows in zip(self.layers, left, strict=True):
            states.append(self._step(layer, states[-1], rows))
        value, slopes = self._value(states.pop()), np.zeros(len(x))
        adjoint = np.repeat(self.form[:, None, :], self.layers[-1].after, axis=1)
        for t in range(len(x) - 1, -1, -1):
            by_gain = self._by_gain(self.layers[t], states.pop(), adjoint, left[t])
            slopes[t] = self.unit * float(by_gain @ self.gains.slope(float(x[t])))
            adjoint = self._back(self.layers[t], adjoint, left[t])
        return value, slopes

    def _value(self, state: Array) -> float:
        return self.unit * float(np.vdot(self.form, state.sum(axis=1))) + self.floor

    def _left(self, strength: float) -> Array:
        return np.asarray(self.moments.left[0] * self.gains.value(strength)[:, None])

    def _step(self, layer: Layer, state: Array, left: Array) -> Array:
        """S_m M S_m^T along all edges."""
        moved = np.zeros((len(state), layer.after, len(state)))
        for part in layer.parts:
            moved[:, part.children] += self._mapped(part, state[:, part.parents], left, self.moments.right[0])
        return moved

    def _back(self, layer: Layer, adjoint: Array, left: Array) -> Array:
        """S_m^T G S_m along all edges, backwards."""
        moved = np.zeros((len(adjoint), layer.before, len(adjoint)))
        for part in layer.parts:
            moved[:, part.parents] += self._mapped(part, adjoint[:, part.children], self.moments.right[0], left)
        return moved

    def _mapped(self, part: Part, stack: Array, left: Array, right: Array) -> Array:
        """share * sum_m p_m (I - a_m^T b_m) A (I - b_m^T a_m) for each matrix A of a stack along the middle axis."""
        rows, done = self._completed(part, stack, left, right)
        flat = done.reshape(len(done), stack.shape[1] * stack.shape[2])
        half = ((part.weights[:, None] * left[rows]).T @ flat).reshape(stack.shape)
        return np.asarray((stack + (half + np.swapaxes(half, 0, 2))) * part.shares[:, None])

    def _completed(self, part: Part, stack: Array, left: Array, right: Array) -> tuple[slice, Array]:
        """The directions of the tasks, and 1/2 (b_m A b_m^T) a_m - b_m A for each task."""
        offsets = self.moments.geometry.offsets[part.tasks.start : part.tasks.stop + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        size, count, _ = stack.shape
        flat = np.ascontiguousarray(stack).reshape(size, count * size)
        products = (right[rows] @ flat).reshape(rows.stop - rows.start, count, size)
        squares = np.empty((count, len(products)))
        kernels().complete_blocks(left[rows], right[rows], offsets - offsets[0], products, squares)
        return rows, products

    def _by_gain(self, layer: Layer, state: Array, adjoint: Array, left: Array) -> Array:
        """Derivatives of f / unit^2 by the gain of each direction in this step."""
        base, right = self.moments.left[0], self.moments.right[0]
        slopes = np.zeros(len(base))
        for part in layer.parts:
            rows, done = self._completed(part, state[:, part.parents], 2 * left, right)  # -b_m M S_m^T
            flat = np.ascontiguousarray(adjoint[:, part.children]).reshape(len(adjoint), -1 if adjoint.size else 0)
            seen = (base[rows] @ flat).reshape(done.shape)
            slopes[rows] += 2 * part.weights * np.einsum("isn,isn,s->i", seen, done, part.shares)
        return slopes


# ------------------------------------------------------------------------------------------------------ the search
class ScheduleOptimum(NamedTuple):
    """The strengths with the least loss that was found, and how they were found.

    Attributes:
        x: the strengths.
        fixed: the best fixed strength that was found.
        slope: the norm of the gradient of log f at x, without what leads out of [0, 1].
        searches: the number of local searches.
        agreeing: how many of them ended at the least value.
    """

    x: Array
    fixed: float
    slope: float
    searches: int
    agreeing: int


def best_fixed(loss: ScheduledLoss, reach: float) -> float:
    """The one strength for all steps with the least loss: a look at many strengths, and a search about the best.

    The loss may have several minima: it is looked at four times for each power of ten of x / (1 - x), and the three
    lowest places are searched between their neighbours. `reach` is the number of powers of ten by which the
    gains of single directions are apart from x.
    """
    from scipy.optimize import minimize_scalar

    k = len(loss.layers)

    def at(odds: float) -> float:
        return loss.value(np.full(k, _from_odds(odds)))

    least = -ODDS - reach - np.log10(k)
    looks = np.linspace(least, FINEST, int(LOOKS * (FINEST - least)) + 1)
    values = [at(float(odds)) for odds in looks]
    found = [(loss.value(np.ones(k)), 1.0)]
    lows = [i for i in range(len(looks)) if values[i] <= min(values[max(i - 1, 0) : i + 2])]
    for i in sorted(lows, key=lambda i: values[i])[:BRACKETS]:
        found.append((values[i], _from_odds(float(looks[i]))))
        ends = float(looks[max(i - 1, 0)]), float(looks[min(i + 1, len(looks) - 1)])
        end = minimize_scalar(at, bounds=ends, method="bounded", options={"xatol": 1e-8})
        found.append((float(end.fun), _from_odds(float(end.x))))
    return min(found)[1]


def _from_odds(power: float) -> float:
    return float(max(LOWEST, 1 / (1 + 10.0**-power)))


def least_scheduled(loss: ScheduledLoss, fixed: float, others: Iterable[Array]) -> ScheduleOptimum:
    """The strengths with the least loss that local searches find, from the best fixed one and from other starts."""
    k = len(loss.layers)
    along = np.arange(k) / max(k - 1, 1)
    ramps = [fixed + (1 - fixed) * (1 - along), fixed * (1 - 0.9 * along), fixed + (1 - fixed) * along]
    starts = [np.full(k, fixed), *others, *ramps, np.ones(k)]
    ends = [_descend(loss, np.clip(start, LOWEST, 1.0)) for start in starts]
    value, x = min(ends, key=lambda end: end[0])
    agreeing = sum(end[0] <= value * (1 + 1e-6) + SOLVED * loss.value(starts[0]) for end in ends)
    best, slopes = loss.gradient(x)
    at_most = (slopes < 0) & (-slopes * (1 - x) <= SOLVED * best)  # what is left to the end gains nothing
    inward = np.where((x <= LOWEST) & (slopes > 0) | at_most, 0.0, slopes)
    slope = float(np.linalg.norm(inward)) / best if best > loss.nothing else 0.0
    return ScheduleOptimum(x, fixed, slope, len(ends), agreeing)


def _descend(loss: ScheduledLoss, start: Array) -> tuple[float, Array]:
    """A local minimum of log f near a start; the best strengths that were seen."""
    from scipy.optimize import minimize

    first = loss.value(start)
    seen: list[tuple[float, Array]] = [(first, start)]

    def evaluate(x: Array) -> tuple[float, Array]:
        value, slopes = loss.gradient(x)
        if value < seen[0][0]:
            seen[0] = value, x.copy()
        floor = max(value, loss.nothing)
        return float(np.log(floor)), slopes / floor

    if first > loss.nothing:
        options = {"maxiter": ITERATIONS, "maxfun": 2 * ITERATIONS, "ftol": 1e-13, "gtol": 1e-9, "maxcor": 20}
        minimize(evaluate, start, jac=True, method="L-BFGS-B", bounds=[(LOWEST, 1.0)] * len(start), options=options)
    return seen[0]
