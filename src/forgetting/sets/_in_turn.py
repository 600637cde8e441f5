"""The compiled loop of projections onto polyhedra in turn; `in_turn` prepares its arrays."""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled_fast
from forgetting.compute.run_kernels import dot, fill, most_rows
from forgetting.core.arrays import Array, IntArray
from forgetting.sets._active_set import OPTIMAL, project, reuse, slacks
from forgetting.sets.polyhedra import FAR

ELSEWHERE = -1  # a set, or its size, that this loop leaves to other code


@compiled_fast
def shortfall(lengths: Array, first: int, slack: Array) -> float:
    """Half the square of the most by which a row is missed, for rows of these lengths."""
    missed = 0.0
    for i in range(len(slack)):
        missed = max(missed, -slack[i] * lengths[first + i])
    return 0.5 * missed * missed


@compiled_fast
def advance(
    rows: Array,
    levels: Array,
    lengths: Array,
    grams: Array,
    starts: IntArray,
    squares: IntArray,
    corners: IntArray,
    sizes: IntArray,
    active: IntArray,
    factors: Array,
    shortfalls: bool,
    order: IntArray,
    w: Array,
    kept_at: IntArray,
    kept: Array,
    before: Array,
    after: Array,
    changes: IntArray,
) -> int:
    """`InTurn.advance`; returns the number of steps made before one that other code must make."""
    p, most = np.empty(len(w)), most_rows(starts)
    slack, lam = np.empty(most), np.empty(most)
    position = 0
    for t in range(len(order)):
        m = order[t]
        if m == ELSEWHERE or sizes[m] == ELSEWHERE:
            return t
        first, last, size = starts[m], starts[m + 1], sizes[m]
        A, b, missed = rows[first:last], levels[first:last], slack[: last - first]
        outside = slacks(A, b, w, w, missed)[0] >= 0
        before[t] = after[t] = shortfall(lengths, first, missed) if shortfalls else 0.0
        changes[t] = 0
        if outside:
            fill(p, w, len(w))
            W = active[first : first + size]
            L = factors[corners[m] : corners[m] + size * size].reshape((size, size))
            if size == 0 or not reuse(A, b, p, W, L, lam, w, missed):
                K = grams[squares[m] : squares[m + 1]].reshape((last - first, last - first))
                status, point, W, _, L, changes[t], _, _ = project(A, b, K, None, p, W, L, FAR)
                if status != OPTIMAL:
                    sizes[m] = ELSEWHERE  # rows so close to dependent are so at the next visit, too
                    fill(w, p, len(w))
                    return t
                fill(w, point, len(w))
                sizes[m] = len(W)
                fill(active[first:last], W, len(W))
                fill(factors[corners[m] : corners[m + 1]], L.ravel(), L.size)
                if shortfalls:
                    slacks(A, b, w, w, missed)
            if not np.isfinite(dot(w, w)):
                fill(w, p, len(w))
                return t
            if shortfalls:
                after[t] = shortfall(lengths, first, missed)
            else:
                for j in range(len(w)):
                    p[j] -= w[j]
                before[t] = 0.5 * dot(p, p)
        if position < len(kept_at) and kept_at[position] == t + 1:
            fill(kept[position], w, len(w))
            position += 1
    return len(order)
