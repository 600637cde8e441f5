"""Compiled loops: steps of second moments in float64 and in numbers of two floats, and intervals by betting.

`left` and `right` hold a_m^T and b_m^T, R x n, so that learning task m is A -> S_m A S_m^T with S_m = I - a_m b_m^T.
In steps of two floats a_m^T is the first `dim` columns of b_m^T, each row times its gain in the row `g` of a table of
gains. A step is computed as A + (C + C^T), C = a (1/2 (b^T A b) a^T - b^T A), the sum in this order, and no sum of
matrices is reassociated, so that results are symmetric to the last bit. Beside moments of two floats runs the matrix E
that bounds their error.
"""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled, compiled_fast, inlined
from forgetting.compute.twofold import add, dot, mul
from forgetting.core.arrays import Array, IntArray


# entries are named by all their numbers, and cleared by loops: views and slices of arrays take seconds to compile
@inlined
def _clear(a: Array) -> None:
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 0.0


@compiled
def _products(
    right: Array, right_low: Array, first: int, last: int, a: Array, al: Array, out: Array, out_low: Array
) -> None:
    """Compute the rows first..last of b^T A."""
    size = a.shape[0]
    for i in range(first, last):
        for j in range(size):
            out[i, j], out_low[i, j] = 0.0, 0.0
        for n in range(size):
            b, bl = right[i, n], right_low[i, n]
            if b == 0.0:
                continue
            for j in range(size):
                p, e = mul(a[n, j], al[n, j], b, bl)
                out[i, j], out_low[i, j] = add(out[i, j], out_low[i, j], p, e)


@inlined
def _complete(
    right: Array, right_low: Array, gains: Array, gains_low: Array, g: int, dim: int, first: int, last: int,
    out: Array, out_low: Array,
) -> None:  # fmt: skip
    """Turn b^T A into 1/2 (b^T A b) a^T - b^T A, in place, for one task."""
    size, count = right.shape[1], last - first
    block, block_low = np.empty((count, count)), np.empty((count, count))
    for i in range(count):
        for j in range(i + 1):
            b, bl = dot(out, out_low, first + i, right, right_low, first + j, size)
            block[i, j], block_low[i, j] = 0.5 * b, 0.5 * bl
            block[j, i], block_low[j, i] = 0.5 * b, 0.5 * bl
    for i in range(first, last):
        for n in range(size):
            out[i, n], out_low[i, n] = -out[i, n], -out_low[i, n]
        for j in range(first, last):
            f, fl = mul(block[i - first, j - first], block_low[i - first, j - first], gains[g, j], gains_low[g, j])
            for n in range(dim):
                p, e = mul(right[j, n], right_low[j, n], f, fl)
                out[i, n], out_low[i, n] = add(out[i, n], out_low[i, n], p, e)


@inlined
def _outer(
    right: Array, right_low: Array, gains: Array, gains_low: Array, g: int, dim: int, first: int, last: int,
    p: float, pl: float, done: Array, done_low: Array, half: Array, half_low: Array,
) -> None:  # fmt: skip
    """half += p a times the completed products of one task."""
    size = right.shape[1]
    for i in range(first, last):
        q, ql = mul(gains[g, i], gains_low[g, i], p, pl)
        for n in range(dim):
            if right[i, n] == 0.0:
                continue
            f, fl = mul(right[i, n], right_low[i, n], q, ql)
            for j in range(size):
                v, e = mul(done[i, j], done_low[i, j], f, fl)
                half[n, j], half_low[n, j] = add(half[n, j], half_low[n, j], v, e)


@inlined
def _add_symmetric(a: Array, al: Array, half: Array, half_low: Array) -> None:
    """a += half + half^T, symmetric to the last bit."""
    size = len(a)
    for i in range(size):
        for j in range(i + 1):
            s, e = add(half[i, j], half_low[i, j], half[j, i], half_low[j, i])
            s, e = add(a[i, j], al[i, j], s, e)
            a[i, j], al[i, j] = s, e
            a[j, i], al[j, i] = s, e


@inlined
def _step_of_error(
    right: Array, gains: Array, g: int, dim: int, first: int, last: int, p: float, a: Array, half: Array,
    squares: Array,
) -> None:  # fmt: skip
    """half += p C for one task, in float64; squares[i] becomes b_i^T A b_i for its directions."""
    size, count = right.shape[1], last - first
    row, done = np.empty((count, size)), np.empty((count, size))
    for i in range(count):
        for n in range(size):
            value = 0.0
            for j in range(size):
                value += right[first + i, j] * a[j, n]
            row[i, n], done[i, n] = value, -value
    for i in range(count):
        for j in range(first, last):
            value = 0.0
            for n in range(size):
                value += row[i, n] * right[j, n]
            if j == first + i:
                squares[j] = value
            f = 0.5 * value * gains[g, j]
            for n in range(dim):
                done[i, n] += f * right[j, n]
        f = p * gains[g, first + i]
        for n in range(dim):
            v = f * right[first + i, n]
            for j in range(size):
                half[n, j] += v * done[i, j]


@compiled
def _squares(right: Array, right_low: Array, work: Array, work_low: Array, high: Array, low: Array) -> None:
    """Inner products of the rows of b^T A and of b^T."""
    for i in range(len(right)):
        high[i], low[i] = dot(work, work_low, i, right, right_low, i, right.shape[1])


def read(right: Array, right_low: Array, a: Array, al: Array) -> tuple[Array, Array]:
    """Compute b_i^T A b_i for each of the R directions."""
    rows = len(right)
    work, work_low = np.empty(right.shape), np.empty(right.shape)
    _products(right, right_low, 0, rows, a, al, work, work_low)
    high, low = np.empty(rows), np.empty(rows)
    _squares(right, right_low, work, work_low, high, low)
    return high, low


@inlined
def spread(a: Array, dim: int) -> float:
    """The trace of A without the constant."""
    value = 0.0
    for n in range(dim):
        value += max(a[n, n], 0.0)
    return value


@inlined
def add_noise(error: Array, moment: Array, dim: int, relative: float, uniform: float, own: float) -> None:
    """error += relative * moment + (uniform + own * tr error) I, the identity on the first `dim` coordinates."""
    size = len(error)
    trace = 0.0
    for n in range(size):
        trace += max(error[n, n], 0.0)
    for n in range(size):
        for j in range(size):
            error[n, j] += relative * moment[n, j]
        error[n, n] += own * trace
        if n < dim:
            error[n, n] += uniform


@inlined
def _shrink(a: Array, al: Array, dim: int, keep: float, origin: Array, origin_low: Array) -> None:
    """A -> P A P^T for z -> keep z + (keep - 1) origin, symmetric to the last bit; the constants follow z."""
    size = len(a)
    loss, loss_low = add(keep, 0.0, -1.0, 0.0)
    for i in range(size):
        for n in range(dim):
            v, vl = mul(a[i, n], al[i, n], keep, 0.0)
            for c in range(len(origin)):
                p, e = mul(origin[c, n], origin_low[c, n], a[i, dim + c], al[i, dim + c])
                p, e = mul(p, e, loss, loss_low)
                v, vl = add(v, vl, p, e)
            a[i, n], al[i, n] = v, vl
    for j in range(size):  # a column of A P^T at a time; its lower half replaces the row
        for i in range(dim):
            v, vl = mul(a[i, j], al[i, j], keep, 0.0)
            for c in range(len(origin)):
                p, e = mul(origin[c, i], origin_low[c, i], a[dim + c, j], al[dim + c, j])
                p, e = mul(p, e, loss, loss_low)
                v, vl = add(v, vl, p, e)
            a[i, j], al[i, j] = v, vl
    for i in range(size):
        for j in range(i):
            a[j, i], al[j, i] = a[i, j], al[i, j]


@inlined
def _shrink_error(error: Array, work: Array, dim: int, keep: float, origin: Array) -> None:
    """`_shrink` for the bound on errors, in float64; `work` is of its size."""
    size, loss = len(error), keep - 1.0
    for i in range(size):
        for j in range(size):
            v = error[i, j]
            if j < dim:
                v = keep * v
                for c in range(len(origin)):
                    v += loss * origin[c, j] * error[i, dim + c]
            work[i, j] = v
    for i in range(size):
        for j in range(i + 1):
            v = work[i, j]
            if i < dim:
                v = keep * v
                for c in range(len(origin)):
                    v += loss * origin[c, i] * work[dim + c, j]
            error[i, j] = v
            error[j, i] = v


@inlined
def _noise_of_shrinking(
    error: Array, moment: Array, dim: int, trace: float, base: float, pull: float, unit: float
) -> None:
    """Add what rounding in `_shrink` adds to the bound on errors; `trace` is that of E before, `pull` |origin|^2."""
    tau = spread(moment, dim) + base + pull
    add_noise(error, moment, dim, unit, unit * tau, 0.0)
    after = spread(error, len(error))
    for n in range(len(error)):
        error[n, n] += 1e-14 * ((1.0 + pull) * trace + after)


@compiled
def shrink_all(
    moments: Array, moments_low: Array, errors: Array, dim: int, keep: float, origin: Array, origin_low: Array,
    base: float, pull: float, unit: float,
) -> None:  # fmt: skip
    """`_shrink` for a stack of moments, in place, and for the bounds on their errors."""
    work = np.empty(errors.shape[1:])
    for s in range(len(moments)):
        trace = spread(errors[s], len(errors[s]))
        _shrink(moments[s], moments_low[s], dim, keep, origin, origin_low)
        _shrink_error(errors[s], work, dim, keep, origin)
        _noise_of_shrinking(errors[s], moments[s], dim, trace, base, pull, unit)


@compiled
def advance(
    right: Array, right_low: Array, gains: Array, gains_low: Array, noises: Array, slips: Array, which: IntArray,
    keep: Array, origin: Array | None, origin_low: Array | None, offsets: IntArray, chance: Array, chance_low: Array,
    dim: int, order: IntArray, stack: Array, stack_low: Array, error: Array, learnt: Array, learnt_low: Array,
    learnt_doubt: Array, after: Array, after_low: Array, after_doubt: Array, sums: Array, base: float, pull: float,
    unit: float,
) -> None:  # fmt: skip
    """Make a step for each entry of `order`, in place: the task to learn, or -1 for one drawn by `chance`.

    Step t keeps the factor keep[t] of w, and has the row which[t] of the tables: `gains`; `noises`, (relative, uniform,
    own, reading) for each task: what a step adds to `error`, as multiples of the moment, of its trace and of the trace
    of `error`, and what reading a square adds; and `slips`, by how much gains are off. `origin` is z = 0, or None where
    all of w is kept: None is a type, for which the function is compiled without what decays. `stack` holds E z z^T and,
    where visits are counted, E c_m z z^T for every task m. `error` bounds the error of the first of them, and k times
    it the sum of those of the others. `learnt` sums the squares that a task has just before it is learned, over all
    steps, `after` those just after, and `sums` the spread of z.
    """
    rows, size = right.shape
    tasks, count = len(offsets) - 1, len(stack)
    half, half_low, error_half = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    work, work_low = np.empty((rows, size)), np.empty((rows, size))
    now, now_low = np.empty((rows, size)), np.empty((rows, size))  # completed products of E z z^T
    doubts = np.empty(rows)
    for t in range(len(order)):
        only, g = order[t], which[t]
        start, stop = (0, tasks) if only < 0 else (only, only + 1)
        tau = spread(stack[0], dim) + base
        trace = spread(error, size)
        before = tau
        decays = False
        if origin is not None and origin_low is not None:
            decays = keep[t] != 1.0
            if decays:
                _clear(error_half)
                for m in range(start, stop):
                    p, pl = (chance[m], chance_low[m]) if only < 0 else (1.0, 0.0)
                    if p == 0.0:
                        continue
                    first, last = offsets[m], offsets[m + 1]
                    _products(right, right_low, first, last, stack[0], stack_low[0], now, now_low)
                    _step_of_error(right, gains, g, dim, first, last, p, error, error_half, doubts)
                    for i in range(first, last):
                        v, vl = dot(now, now_low, i, right, right_low, i, size)
                        v, vl = mul(v, vl, p, pl)
                        learnt[i], learnt_low[i] = add(learnt[i], learnt_low[i], v, vl)
                        learnt_doubt[i] += p * (max(doubts[i], 0.0) + noises[g, m, 3] * tau + noises[g, m, 2] * trace)
                for s in range(count):
                    _shrink(stack[s], stack_low[s], dim, keep[t], origin, origin_low)
                _shrink_error(error, error_half, dim, keep[t], origin)
                _noise_of_shrinking(error, stack[0], dim, trace, base, pull, unit)
                tau = spread(stack[0], dim) + base
                trace = spread(error, size)
        sums[0] += max(before, tau)
        _clear(error_half)
        relative, uniform, own = 0.0, 0.0, 0.0
        for m in range(start, stop):
            p, pl = (chance[m], chance_low[m]) if only < 0 else (1.0, 0.0)
            if p == 0.0:
                continue
            first, last = offsets[m], offsets[m + 1]
            _products(right, right_low, first, last, stack[0], stack_low[0], now, now_low)
            _step_of_error(right, gains, g, dim, first, last, p, error, error_half, doubts)
            slip = slips[g, m]
            for i in range(first, last):
                v, vl = dot(now, now_low, i, right, right_low, i, size)
                v, vl = mul(v, vl, p, pl)
                off = p * (max(doubts[i], 0.0) + noises[g, m, 3] * tau + noises[g, m, 2] * trace)
                if not decays:
                    learnt[i], learnt_low[i] = add(learnt[i], learnt_low[i], v, vl)
                    learnt_doubt[i] += off
                left, left_low = add(1.0, 0.0, -gains[g, i], -gains_low[g, i])
                share, share_low = mul(left, left_low, left, left_low)
                after_doubt[i] += share * off + slip * (2.0 * abs(left) + slip) * (max(v, 0.0) + off)
                v, vl = mul(v, vl, share, share_low)
                after[i], after_low[i] = add(after[i], after_low[i], v, vl)
            _complete(right, right_low, gains, gains_low, g, dim, first, last, now, now_low)
            relative = max(relative, noises[g, m, 0])
            uniform += p * noises[g, m, 1] * tau
            own = max(own, noises[g, m, 2])
        for s in range(count - 1, -1, -1):  # E z z^T moves last: the others read it
            done, done_low = (work, work_low) if s > 0 else (now, now_low)
            _clear(half)
            _clear(half_low)
            for m in range(start, stop):
                p, pl = (chance[m], chance_low[m]) if only < 0 else (1.0, 0.0)
                if p == 0.0:
                    continue
                first, last = offsets[m], offsets[m + 1]
                if s > 0:
                    _products(right, right_low, first, last, stack[s], stack_low[s], work, work_low)
                    _complete(right, right_low, gains, gains_low, g, dim, first, last, work, work_low)
                _outer(right, right_low, gains, gains_low, g, dim, first, last, p, pl, done, done_low, half, half_low)
                if m == s - 1:  # E c_m z z^T grows by what was learned just now
                    _outer(right, right_low, gains, gains_low, g, dim, first, last, p, pl, now, now_low, half, half_low)
                    for i in range(size):
                        for j in range(size):
                            v, vl = mul(stack[0, i, j], stack_low[0, i, j], 0.5 * p, 0.5 * pl)
                            half[i, j], half_low[i, j] = add(half[i, j], half_low[i, j], v, vl)
            _add_symmetric(stack[s], stack_low[s], half, half_low)
        for i in range(size):
            for j in range(i + 1):
                v = error[i, j] + (error_half[i, j] + error_half[j, i])
                error[i, j] = v
                error[j, i] = v
        # rounding of E itself: relative to the larger of its traces before and after
        add_noise(error, stack[0], dim, relative, uniform + own * trace, own)


@compiled
def step_all(
    right: Array, right_low: Array, gains: Array, gains_low: Array, first: int, last: int, dim: int, noise: Array,
    base: float, parents: IntArray, places: IntArray, shares: Array, shares_low: Array, moments: Array,
    moments_low: Array, errors: Array, out: Array, out_low: Array, out_errors: Array,
) -> None:  # fmt: skip
    """out[places] += shares * S_m moments[parents] S_m^T for one task m, and the same for the bounds on errors."""
    rows, size = right.shape
    half, half_low, error_half = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    work, work_low = np.empty((rows, size)), np.empty((rows, size))
    moved, moved_low, moved_error = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))
    squares = np.empty(rows)
    for s in range(len(parents)):
        a, al, error = moments[parents[s]], moments_low[parents[s]], errors[parents[s]]
        target, target_low, target_error = out[places[s]], out_low[places[s]], out_errors[places[s]]
        p, pl = shares[s], shares_low[s]
        _clear(half)
        _clear(half_low)
        _products(right, right_low, first, last, a, al, work, work_low)
        _complete(right, right_low, gains, gains_low, 0, dim, first, last, work, work_low)
        _outer(right, right_low, gains, gains_low, 0, dim, first, last, 1.0, 0.0, work, work_low, half, half_low)
        for i in range(size):
            for j in range(size):
                moved[i, j], moved_low[i, j] = a[i, j], al[i, j]
        _add_symmetric(moved, moved_low, half, half_low)
        _clear(error_half)
        _step_of_error(right, gains, 0, dim, first, last, 1.0, error, error_half, squares)
        tau, trace = spread(a, dim) + base, spread(error, size)
        for i in range(size):
            for j in range(size):
                moved_error[i, j] = error[i, j] + (error_half[i, j] + error_half[j, i])
        add_noise(moved_error, moved, dim, noise[0], noise[1] * tau + noise[2] * trace, noise[2])
        for i in range(size):
            for j in range(size):
                v, vl = mul(moved[i, j], moved_low[i, j], p, pl)
                target[i, j], target_low[i, j] = add(target[i, j], target_low[i, j], v, vl)
                target_error[i, j] += p * moved_error[i, j]


@compiled_fast  # inner products; what matters is that the final sum is made in one place, symmetrically
def complete_blocks(left: Array, right: Array, offsets: IntArray, products: Array, quadratic: Array) -> None:
    """Turn products Y = b^T A into 1/2 (b_m^T A b_m) a_m^T - Y_m, in place, for a stack along the middle axis.

    `left` and `right` hold a^T and b^T, R x n; `products` is R x stack x n. `quadratic[s, i]` becomes b_i^T A_s b_i.
    """
    size = left.shape[1]
    widest = 0
    for m in range(len(offsets) - 1):
        widest = max(widest, offsets[m + 1] - offsets[m])
    block = np.empty((widest, widest))
    for s in range(products.shape[1]):
        for m in range(len(offsets) - 1):
            first, last = offsets[m], offsets[m + 1]
            for i in range(first, last):
                for j in range(first, i + 1):
                    value = 0.0
                    row, basis = products[i, s], right[j]
                    for n in range(size):
                        value += row[n] * basis[n]
                    block[i - first, j - first] = value
                    block[j - first, i - first] = value
                quadratic[s, i] = block[i - first, i - first]
            for i in range(first, last):
                row = products[i, s]
                for n in range(size):
                    row[n] = -row[n]
                for j in range(first, last):
                    factor = 0.5 * block[i - first, j - first]
                    other = left[j]
                    for n in range(size):
                        row[n] += factor * other[n]


@compiled
def add_symmetric(base: Array, half: Array) -> None:
    """base += half + half^T for each matrix of a stack along the middle axis, exactly symmetric."""
    size = len(base)
    for i in range(size):
        for s in range(base.shape[1]):
            for j in range(i + 1):
                value = base[i, s, j] + (half[i, s, j] + half[j, s, i])
                base[i, s, j] = value
                base[j, s, i] = value


@compiled
def add_steps(base: Array, completed: Array, left: Array, offsets: IntArray, probability: Array, sums: Array) -> None:
    """sums[:, m] += p_m S_m A S_m^T, given A and its completed products; exactly symmetric."""
    size = len(base)
    row = np.empty(size)
    for m in range(sums.shape[1]):
        p = probability[m]
        if p == 0.0:
            continue
        for i in range(size):
            for j in range(i + 1):
                row[j] = base[i, j]
            for r in range(offsets[m], offsets[m + 1]):
                completed_i, left_i = completed[r, i], left[r, i]
                a, z = left[r], completed[r]
                for j in range(i + 1):
                    row[j] += completed_i * a[j] + left_i * z[j]
            for j in range(i + 1):
                sums[i, m, j] += p * row[j]
            for j in range(i):
                sums[j, m, i] = sums[i, m, j]


@compiled
def betting_bounds(samples: Array, stakes: Array, level: float, upper: bool) -> float:
    """One-sided confidence bound on the mean of samples in [0, 1] by betting against it (Waudby-Smith & Ramdas 2024).

    A bettor who stakes `stakes[i]` (chosen before sample i is seen, at most half of what can be lost) multiplies the
    capital by 1 + stake (x - m), or 1 - stake (x - m) for the upper bound. If m is the true mean, the capital exceeds
    1 / level with probability at most `level`; the bound is the m at which it does.
    """
    goal = np.log(1.0 / level)
    low, high = 0.0, 1.0
    for _ in range(60):
        m = 0.5 * (low + high)
        wealth = 0.0
        capital = 1.0
        for i in range(len(samples)):
            if upper:
                room = 0.5 / (1.0 - m) if m < 1.0 else 0.5e300
                capital *= 1.0 - min(stakes[i], room) * (samples[i] - m)
            else:
                room = 0.5 / m if m > 0.0 else 0.5e300
                capital *= 1.0 + min(stakes[i], room) * (samples[i] - m)
            if capital < 1e-100 or capital > 1e100:
                wealth += np.log(capital)
                capital = 1.0
        wealth += np.log(capital)
        rejected = wealth >= goal
        if upper:
            if rejected:
                high = m
            else:
                low = m
        elif rejected:
            low = m
        else:
            high = m
    return high if upper else low
