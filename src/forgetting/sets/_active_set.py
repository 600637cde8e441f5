"""Compiled projection onto {w: A w >= b} with unit rows: a dual active-set method with two kinds of arithmetic.

Goldfarb and Idnani's dual method (Math. Programming 27, 1983) for min 1/2 |w - p|^2: the active rows W are independent,
their multipliers are nonnegative and solve A_W A_W^T lam = b_W - A_W p, and the most violated row enters, pushing out
rows whose multiplier would turn negative. L is the triangular factor of A_W A_W^T = L L^T. It comes either

- from the Gram matrix K = A A^T (Q is None): O(|W|^2 + n |W|) per change of W, but squared condition numbers,
  so that anything close to dependent is handed back as LOST; or
- from A_W = L Q with orthonormal rows Q, by Gram-Schmidt done twice (Q is given): O(n d) per change of W.

Only the second finds sets empty, and its caller checks the certificate. None is a type of its own: the functions are
compiled for the first without the branches of the second, and for the second only where a projection needs it. A
literal number as an argument would be another type too, for which a function is compiled again.

Only the first |W| rows of L and Q mean anything.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forgetting.compute.compiling import compiled_fast
from forgetting.compute.run_kernels import dot, fill
from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS


@compiled_fast
def add(x: Array, factor: float, row: Array) -> None:
    """x += factor row, in place."""
    for k in range(len(x)):
        x[k] += factor * row[k]


@compiled_fast
def forward(L: Array, size: int, x: Array) -> None:
    """L x = x, in place."""
    for i in range(size):
        total = x[i]
        for k in range(i):
            total -= L[i, k] * x[k]
        x[i] = total / L[i, i]


@compiled_fast
def backward(L: Array, size: int, x: Array) -> None:
    """L^T x = x, in place."""
    for i in range(size - 1, -1, -1):
        x[i] /= L[i, i]
        factor = x[i]
        for k in range(i):
            x[k] -= factor * L[i, k]


@compiled_fast
def extend(
    A: Array, K: Array, Q: Array | None, L: Array, W: IntArray, size: int, j: int, row: Array, rest: Array
) -> float:
    """The row of L that row j would add, without its diagonal; returns the squared diagonal (and `rest`, with Q)."""
    if Q is None:
        gram = K[j]
        for i in range(size):
            row[i] = gram[W[i]]
        forward(L, size, row)
        total = gram[j]
        for i in range(size):
            total -= row[i] * row[i]
        return total
    fill(rest, A[j], len(rest))
    for i in range(size):
        row[i] = 0.0
    for _ in range(2):  # once leaves what cancellation left; twice is enough
        for i in range(size):
            q = Q[i]
            along = dot(q, rest)
            row[i] += along
            add(rest, -along, q)
    return dot(rest, rest)


@compiled_fast
def append(Q: Array | None, L: Array, W: IntArray, size: int, j: int, row: Array, square: float, rest: Array) -> None:
    diagonal = np.sqrt(square)
    fill(L[size], row, size)
    L[size, size] = diagonal
    W[size] = j
    if Q is not None:
        for k in range(len(rest)):
            Q[size, k] = rest[k] / diagonal


@compiled_fast
def remove(Q: Array | None, L: Array, W: IntArray, lam: Array, size: int, k: int) -> None:
    """Take out the k-th active row; Givens rotations make L triangular again."""
    for i in range(k + 1, size):
        W[i - 1] = W[i]
        lam[i - 1] = lam[i]
        fill(L[i - 1], L[i], i + 1)
    for i in range(k, size - 1):
        x, y = L[i, i], L[i, i + 1]
        length = np.hypot(x, y)
        c, s = x / length, y / length
        L[i, i] = length
        for m in range(i + 1, size - 1):
            x, y = L[m, i], L[m, i + 1]
            L[m, i] = c * x + s * y
            L[m, i + 1] = c * y - s * x
        if Q is not None:
            for m in range(Q.shape[1]):
                x, y = Q[i, m], Q[i + 1, m]
                Q[i, m] = c * x + s * y
                Q[i + 1, m] = c * y - s * x


BoolArray = NDArray[np.bool_]

OPTIMAL, EMPTY, LOST, STALLED = 0, 1, 2, 3  # endings of a projection
ENTERED, REFINE, FOLLOWS = 4, 5, 6  # outcomes for a violated row, beside EMPTY, LOST and STALLED
TOL = 2e-13  # a row counts as satisfied when it is missed by TOL * (|w| + |p|/50 + |b_i|): rounding of a_i.w
NEARLY_DEPENDENT = 1e-9  # squared distance of a unit row to the span of others that the Gram matrix can be trusted with
WELL_APART = 1e-6  # the same, for rows that are only a guess
HUGE = 1e6  # a multiplier of this many times the size of the point comes from a row that nearly follows from others
SWEEPS = 4  # sweeps of coordinate ascent, to guess the active rows of a cold start


@compiled_fast
def move(A: Array, W: IntArray, size: int, lam: Array, w: Array) -> None:
    """w += A_W^T lam."""
    for i in range(size):
        add(w, lam[i], A[W[i]])


@compiled_fast
def turn(Q: Array, size: int, x: Array, w: Array) -> None:
    """w += Q^T x."""
    for i in range(size):
        add(w, x[i], Q[i])


@compiled_fast
def slacks(A: Array, b: Array, p: Array, w: Array, slack: Array) -> tuple[int, float]:
    """A w - b into `slack`; the row that is missed most beyond rounding (-1: none), and the size of w.

    A part of |p| counts: w is p plus a correction, and known to the rounding of p even where it is 0.
    """
    size = np.sqrt(dot(w, w)) + 0.02 * np.sqrt(dot(p, p))
    worst, least = -1, 0.0
    for i in range(len(b)):
        slack[i] = dot(A[i], w) - b[i]
        if slack[i] < least and slack[i] < -TOL * (size + abs(b[i])):
            worst, least = i, slack[i]
    return worst, size


@compiled_fast
def guess(A: Array, b: Array, K: Array, Q: Array | None, p: Array, need: Array) -> IntArray:
    """Rows with a positive multiplier after a few sweeps of dual coordinate ascent (Hildreth's method)."""
    n = len(b)
    lam = np.zeros(n)
    slack = -need
    w = p.copy()
    for _ in range(SWEEPS):
        for i in range(n):
            value = slack[i]
            if Q is not None:
                value = dot(A[i], w) - b[i]
            step = max(-lam[i], -value)
            if step != 0.0:
                lam[i] += step
                if Q is None:
                    add(slack, step, K[i])
                else:
                    add(w, step, A[i])
    return falling(lam)


@compiled_fast
def falling(lam: Array) -> IntArray:
    """The places of the positive numbers, largest first (Shell's sort)."""
    places, size = np.empty(len(lam), dtype=np.int64), 0
    for i in range(len(lam)):
        if lam[i] > 0.0:
            places[size] = i
            size += 1
    gap = size // 2
    while gap > 0:
        for i in range(gap, size):
            moving, k = places[i], i
            while k >= gap and lam[places[k - gap]] < lam[moving]:
                places[k] = places[k - gap]
                k -= gap
            places[k] = moving
        gap //= 2
    return places[:size]


@compiled_fast
def most(slack: Array) -> float:
    """The largest amount by which a row is missed."""
    missed = 0.0
    for i in range(len(slack)):
        missed = max(missed, -slack[i])
    return missed


@compiled_fast
def kkt(
    A: Array, b: Array, p: Array, w: Array, W: IntArray, size: int, lam: Array, slack: Array
) -> tuple[float, float]:
    """Largest violation, and the KKT residual: |w - p - A^T lam| or max |min(lam_i, slack_i)|, the larger."""
    shift = np.empty(len(w))
    for k in range(len(w)):
        shift[k] = p[k] - w[k]
    move(A, W, size, lam, shift)
    residual = np.sqrt(dot(shift, shift))
    missed = most(slack)
    for i in range(size):
        residual = max(residual, abs(min(lam[i], slack[W[i]])))
    return missed, max(residual, missed)


@compiled_fast
def reuse(A: Array, b: Array, p: Array, W: IntArray, L: Array, lam: Array, w: Array, slack: Array) -> bool:
    """Try the active rows W as they are: multipliers, point and slacks; True if that is the projection."""
    size = len(W)
    for i in range(size):
        lam[i] = b[W[i]] - dot(A[W[i]], p)
    forward(L, size, lam)
    backward(L, size, lam)
    for i in range(size):
        if lam[i] < 0.0:
            return False
    fill(w, p, len(w))
    move(A, W, size, lam, w)
    return settle(A, b, p, None, L, W, size, lam, w, slack) < 0


@compiled_fast
def again(A: Array, b: Array, point: Array, W: IntArray, L: Array) -> int:
    """Try the cheapest outcomes: 1 if the last active rows W are active again, 0 if the point is inside, else -1.

    `point` is replaced by its projection.
    """
    p, slack = point.copy(), np.empty(len(b))
    if len(W) > 0 and len(L) == len(W) and reuse(A, b, p, W, L, np.empty(len(W)), point, slack):
        return 1
    fill(point, p, len(p))
    return 0 if slacks(A, b, p, p, slack)[0] < 0 else -1


@compiled_fast
def settle(
    A: Array,
    b: Array,
    p: Array,
    Q: Array | None,
    L: Array,
    W: IntArray,
    size: int,
    lam: Array,
    w: Array,
    slack: Array,
) -> int:
    """Refine w until the active rows hold to rounding; -1 if all rows then do, else the row missed most."""
    fix = np.empty(size)
    worst = -1
    for attempt in range(4):
        worst, length = slacks(A, b, p, w, slack)
        off = False
        for i in range(size):
            fix[i] = -slack[W[i]]
            off = off or abs(fix[i]) > TOL * (length + abs(b[W[i]]))
        if not off or attempt == 3:
            break
        forward(L, size, fix)
        if Q is not None:
            turn(Q, size, fix, w)
        else:
            backward(L, size, fix)
            for i in range(size):
                lam[i] += fix[i]
            move(A, W, size, fix, w)
    if Q is None and worst < 0 and off:
        return W[0]  # the active rows do not settle: the factor is too inaccurate
    return worst


@compiled_fast
def multipliers(Q: Array | None, L: Array, W: IntArray, size: int, need: Array, p: Array, lam: Array, w: Array) -> int:
    """Multipliers of the active rows, those that turn negative dropped, and (with Q) w; returns how many are left."""
    while True:
        for i in range(size):
            lam[i] = need[W[i]]
        forward(L, size, lam)
        if Q is not None:
            fill(w, p, len(w))
            turn(Q, size, lam, w)
        backward(L, size, lam)
        left = size
        for i in range(size - 1, -1, -1):
            if lam[i] <= 0.0:
                remove(Q, L, W, lam, left, i)
                left -= 1
        if left == size:
            return size
        size = left


@compiled_fast
def enter(
    A: Array,
    b: Array,
    K: Array,
    Q: Array | None,
    L: Array,
    W: IntArray,
    size: int,
    j: int,
    p: Array,
    w: Array,
    lam: Array,
    short: float,
    length: float,
    refined: bool,
    far: float,
    limit: int,
) -> tuple[int, int, int]:
    """Make row j, missed by -`short`, active, dropping rows that stand in the way: outcome, size of W, changes of W."""
    cap = len(L)
    row, u, rest = np.empty(cap), np.empty(cap), np.empty(A.shape[1])
    entered = 0.0
    reach = np.sqrt(dot(p, p)) + abs(b[j])
    for changes in range(1, limit + 1):
        square = extend(A, K, Q, L, W, size, j, row, rest)
        if Q is None and size < cap and square < NEARLY_DEPENDENT:  # d active rows span everything: no doubt there
            return LOST, size, changes
        fill(u, row, size)
        backward(L, size, u)
        weight, top = 1.0, 1.0
        for i in range(size):
            reach = max(reach, abs(b[W[i]]))
            weight += abs(u[i])
            top = max(top, abs(u[i]))
        distance = np.sqrt(square)
        # an exact combination of the active rows is seen at the distance that the rounding of Q gives it
        independent = size < cap and distance > 32 * EPS * weight and -short <= far * reach * distance
        full = -short / square if independent else np.inf
        partial, out = np.inf, size  # `size`: no row
        for i in range(size):
            if u[i] > 64 * EPS * top and lam[i] < partial * u[i]:
                partial, out = lam[i] / u[i], i
        # progress made for this row is never thrown away, or the method could go round in circles
        if Q is not None and full > HUGE * length and (entered == 0.0 or (out == size and not independent)):
            if not refined and entered == 0.0:
                return REFINE, size, changes
            if -short <= (10 * TOL + 32 * EPS * weight) * (length + abs(b[j])):
                return FOLLOWS, size, changes
        if out == size and not independent:
            if Q is None:
                return LOST, size, changes
            for i in range(size):
                lam[i] = max(0.0, -u[i])
            lam[size] = 1.0
            W[size] = j
            return EMPTY, size + 1, changes
        step = min(partial, full)
        for i in range(size):
            lam[i] -= step * u[i]
        entered += step
        if independent:
            short += step * square
            if Q is not None:
                add(w, step, rest)
        if full <= partial:
            append(Q, L, W, size, j, row, square, rest)
            lam[size] = entered
            return ENTERED, size + 1, changes
        remove(Q, L, W, lam, size, out)
        size -= 1
    return STALLED, size, limit


@compiled_fast
def most_missed(
    A: Array,
    b: Array,
    K: Array,
    Q: Array | None,
    p: Array,
    w: Array,
    need: Array,
    W: IntArray,
    size: int,
    lam: Array,
    skipped: BoolArray,
    slack: Array,
) -> tuple[int, float]:
    """Slacks of all rows, from w with Q and from the multipliers without; the row missed most, and the size of w."""
    n = len(b)
    if Q is not None:
        worst, length = slacks(A, b, p, w, slack)
    else:
        length = np.sqrt(dot(p, p))
        for k in range(n):
            slack[k] = -need[k]
        for i in range(size):
            length += lam[i]
            add(slack, lam[i], K[W[i]])
    worst = -1
    for i in range(n):
        if not skipped[i] and slack[i] < -TOL * (length + abs(b[i])) and (worst < 0 or slack[i] < slack[worst]):
            worst = i
    return worst, length


@compiled_fast
def project(
    A: Array, b: Array, K: Array, Q: Array | None, p: Array, start: IntArray, factor: Array, far: float
) -> tuple[int, Array, IntArray, Array, Array, int, float, float]:
    """Status, point, active rows, their multipliers, their factor L, changes of W, violation, KKT residual.

    Q is None, or room for min(n, d) rows; K is not read if Q is given.
    `start` and `factor` are the active rows to begin with and their L (either may be empty). A set further away than
    `far` times the size of the data is taken to be EMPTY; the rows and multipliers are then those of the certificate:
    y >= 0 with b.y > 0 and A^T y = 0, or as near to 0 as `far` lets it.
    """
    n, d = A.shape
    cap = min(n, d)
    w, slack, lam = p.copy(), np.empty(n), np.empty(cap + 1)
    none = np.empty((0, 0))
    known = len(start) > 0 and len(factor) == len(start)
    if known and reuse(A, b, p, start, factor, lam, w, slack):
        missed, residual = kkt(A, b, p, w, start, len(start), lam, slack)
        return OPTIMAL, w, start, lam[: len(start)], factor, 0, missed, residual
    fill(w, p, d)
    if slacks(A, b, p, p, slack)[0] < 0:
        missed = most(slack)
        return OPTIMAL, w, start[:0], lam[:0], none, 0, missed, missed
    need = -slack
    W, L = np.empty(cap + 1, dtype=np.int64), np.empty((cap, cap))
    size = len(start[:0])  # 0, but not a literal
    status = LOST
    if Q is not None:
        known, status = False, STALLED
    if known:
        size = len(start)
        fill(W, start, size)
        for i in range(size):
            fill(L[i], factor[i], size)
    else:
        row, rest = np.empty(cap), np.empty(d)
        for j in start if len(start) > 0 else guess(A, b, K, Q, p, need):
            square = extend(A, K, Q, L, W, size, j, row, rest) if size < cap else 0.0
            if square > WELL_APART:
                append(Q, L, W, size, j, row, square, rest)
                size += 1
    size = multipliers(Q, L, W, size, need, p, lam, w)

    skipped = np.zeros(n, dtype=np.bool_)
    changes = rounds = refined = 0
    most_changes = 10 * n + 100
    while rounds < 20:
        worst, length = most_missed(A, b, K, Q, p, w, need, W, size, lam, skipped, slack)
        if worst >= 0:
            outcome, size, more = enter(
                A, b, K, Q, L, W, size, worst, p, w, lam, slack[worst], length, refined > 0, far, most_changes - changes
            )
            changes += more
            if outcome == ENTERED:
                for i in range(n):
                    skipped[i] = False
                refined = 0
            elif outcome == REFINE:
                settle(A, b, p, Q, L, W, size, lam, w, slack)
                refined += 1
            elif outcome == FOLLOWS:
                size = multipliers(Q, L, W, size, need, p, lam, w)
                skipped[worst] = True
            else:
                status = outcome
                break
            continue
        rounds += 1
        size = multipliers(Q, L, W, size, need, p, lam, w)
        if Q is None:
            fill(w, p, len(w))
            move(A, W, size, lam, w)
        worst = settle(A, b, p, Q, L, W, size, lam, w, slack)
        if worst < 0 or skipped[worst]:
            status = OPTIMAL
            break
        if Q is None:
            break
    missed, residual = kkt(A, b, p, w, W, size, lam, slack)
    return status, w, W[:size].copy(), lam[:size].copy(), L[:size, :size].copy(), changes, missed, residual
