"""Compiled runs on the rows of tasks as they were given, CSR or dense; see `geometry.own_rows`."""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled_fast
from forgetting.compute.run_kernels import most_rows
from forgetting.core.arrays import Array, IntArray


@compiled_fast
def multiples(
    left: Array,
    left_at: IntArray,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    task: int,
    size: int,
    products: Array,
    steps: Array,
) -> tuple[float, float]:
    """From the `size` products X_m w, the multiple of each row to subtract from w, and the loss before and after.

    U_m^T = L_m X_m; row i of L_m is left[left_at[i]:left_at[i + 1]].
    """
    before = after = 0.0
    for j in range(size):
        steps[j] = 0.0
    for i in range(offsets[task], offsets[task + 1]):
        begin = left_at[i]
        error = -targets[i]
        for j in range(size):
            error += left[begin + j] * products[j]
        step = gains[i] * error
        before += (sigma[i] * error) ** 2
        after += (sigma[i] * (1.0 - gains[i]) * error) ** 2
        for j in range(size):
            steps[j] += step * left[begin + j]
    return 0.5 * before, 0.5 * after


@compiled_fast
def advance_sparse(
    data: Array,
    indices: IntArray,
    indptr: IntArray,
    starts: IntArray,
    left: Array,
    left_at: IntArray,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    order: IntArray,
    w: Array,
    kept_at: IntArray,
    kept: Array,
    before: Array,
    after: Array,
) -> None:
    """`advance` on the rows of the tasks as they are, in CSR form; the rows of task m begin at starts[m]."""
    most = most_rows(starts)
    products, steps = np.empty(most), np.empty(most)
    position = 0
    for t in range(len(order)):
        first, last = starts[order[t]], starts[order[t] + 1]
        for i in range(first, last):
            total = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                total += data[j] * w[indices[j]]
            products[i - first] = total
        before[t], after[t] = multiples(
            left, left_at, offsets, gains, targets, sigma, order[t], last - first, products, steps
        )
        for i in range(first, last):
            step = steps[i - first]
            for j in range(indptr[i], indptr[i + 1]):
                w[indices[j]] -= step * data[j]
        if position < len(kept_at) and kept_at[position] == t + 1:
            for j in range(len(w)):
                kept[position, j] = w[j]
            position += 1


@compiled_fast
def advance_dense(
    rows: Array,
    starts: IntArray,
    left: Array,
    left_at: IntArray,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    order: IntArray,
    w: Array,
    kept_at: IntArray,
    kept: Array,
    before: Array,
    after: Array,
) -> None:
    """`advance` on the rows of the tasks as they are; the rows of task m begin at starts[m]."""
    most, size = most_rows(starts), rows.shape[1]
    products, steps = np.empty(most), np.empty(most)
    position = 0
    for t in range(len(order)):
        first, last = starts[order[t]], starts[order[t] + 1]
        for i in range(first, last):
            total = 0.0
            for j in range(size):
                total += rows[i, j] * w[j]
            products[i - first] = total
        before[t], after[t] = multiples(
            left, left_at, offsets, gains, targets, sigma, order[t], last - first, products, steps
        )
        for i in range(first, last):
            step = steps[i - first]
            for j in range(size):
                w[j] -= step * rows[i, j]
        if position < len(kept_at) and kept_at[position] == t + 1:
            for j in range(len(w)):
                kept[position, j] = w[j]
            position += 1
