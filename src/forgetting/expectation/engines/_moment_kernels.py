"""Compiled pieces of the exact engine. Sums are never reassociated here, and results are symmetric to the last bit."""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled, compiled_fast
from forgetting.core.arrays import Array, IntArray


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
                one, two = completed[r, i], left[r, i]
                a, z = left[r], completed[r]
                for j in range(i + 1):
                    row[j] += one * a[j] + two * z[j]
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
