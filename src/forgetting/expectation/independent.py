"""Expectations under independent draws (any weights), and along a given order: the moments, step by step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.expectation.moments import Moments, Pair, two_floats
from forgetting.expectation.progress import track
from forgetting.expectation.quantities import conclude
from forgetting.orderings import Ordering, TaskView, Visits

__all__ = ["Concluded", "along", "decided", "iterate"]

Concluded = list[dict[str, tuple[Array, Array]]]
BATCH = 256  # steps between two looks at the clock and at Ctrl-C


def iterate(moments: Moments, steps: IntArray, names: Iterable[str]) -> Concluded:
    """Expected quantities at the given steps (sorted), for independent draws.

    W_k = E[z_k z_k^T] obeys W_(k+1) = Q[W_k]. For forgetting, c_m(k) counts the visits to m and
    V_m(k) = E[c_m(k) z_k z_k^T] obeys V_m(k+1) = Q[V_m(k)] + p_m S_m W_k S_m^T, whence
    E F(k) = 1/k (sum_m E[c_m(k) L_m(w_k)] - sum_(t<=k) E[loss that the task learned at t kept]).
    """
    wanted = tuple(names)
    state = moments.begin(visits=not {"forgetting", "in_sample"}.isdisjoint(wanted))
    found: Concluded = []
    for k, order in _batches(steps, np.full(int(steps[-1]), -1, dtype=np.int64), moments):
        moments.advance(state, order)
        if k is not None:
            many = np.full(moments.geometry.num_distinct, float(k))
            visits: Pair = two_floats().mul(*moments.probability, many, np.zeros_like(many))
            found.append(conclude(moments, moments.reading(state), k, visits, wanted))
    return found


def along(moments: Moments, order: IntArray, steps: IntArray, names: Iterable[str]) -> Concluded:
    """Quantities at the given steps (sorted) of one run through the distinct tasks of `order`."""
    wanted = tuple(names)
    state = moments.begin(visits=False)
    found: Concluded = []
    for k, part in _batches(steps, order, moments):
        moments.advance(state, part)
        if k is not None:
            counts = np.bincount(order[:k], minlength=moments.geometry.num_distinct).astype(np.float64)
            reading = moments.reading(state, counts)
            found.append(conclude(moments, reading, k, (counts, np.zeros_like(counts)), wanted))
    return found


def decided(moments: Moments, ordering: Ordering, k: int) -> IntArray:
    """The distinct tasks that an ordering which looks at the iterate chooses, seeing it with 31 digits.

    In float64, distances that are rounding decide differently on each processor.
    """
    tools, geometry = two_floats(), moments.geometry
    (left, left_low), (right, right_low) = moments.left, moments.right
    state = moments.first

    def squares() -> Array:
        """(b_i . v)^2 for all R directions."""
        high, _ = tools.products(right, right_low, state[0][None], state[1][None])
        return np.asarray(high[:, 0] ** 2)

    def distances() -> Array:
        return np.asarray(moments.unit * np.sqrt(geometry.per_task(squares()))[geometry.index])

    def losses() -> Array:
        missed = 0.5 * moments.unit**2 * geometry.per_task(moments.squares[0] * squares())
        return np.asarray((missed + moments.unexplained[0])[geometry.index])

    view = TaskView(geometry.num_tasks, geometry.norms[geometry.index], distances, losses)
    visits = Visits(ordering, view, np.random.default_rng(0))
    order = np.empty(k, dtype=np.int64)
    for step in track(range(k), "order"):
        order[step] = task = int(geometry.index[visits.take(1)[0]])
        block = geometry.block(task)
        high, low = tools.products(right[block], right_low[block], state[0][None], state[1][None])
        move, move_low = tools.products(left[block].T.copy(), left_low[block].T.copy(), high.T.copy(), low.T.copy())
        state = tools.sub(*state, move[:, 0], move_low[:, 0])
    return order


def _batches(steps: IntArray, order: IntArray, moments: Moments) -> Iterator[tuple[int | None, IntArray]]:
    """Parts of the order, cut where a step is asked for (k, else None); a step asked for twice comes twice."""
    size = max(1, min(BATCH, int(1e6 / max(1, moments.size**2 * len(moments.squares[0])))))
    cuts = np.unique(np.concatenate([steps, np.arange(0, int(steps[-1]) + 1, size)])).tolist()
    repeats = dict(zip(*np.unique(steps, return_counts=True), strict=True))
    done = 0
    for cut in track(cuts, "moments"):
        part, done = order[done:cut], cut
        asked = int(repeats.get(cut, 0))
        yield (cut if asked else None), part
        for _ in range(asked - 1):
            yield cut, order[:0]
