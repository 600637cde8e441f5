"""Compiled operations on the rows of a matrix, dense or in compressed form (CSR), and runs on the rows of tasks.

A matrix is four arrays: `dense`, which is empty for a matrix in compressed form, and `data`, `indices`, `starts`, which
are empty for a dense one. So each kernel is written once, and whether a row is dense is asked once for each row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.compute.compiling import compiled_fast
from forgetting.compute.run_kernels import most_rows
from forgetting.core.arrays import Array, IntArray, is_sparse, read_only


def row_arrays(matrix: Any) -> tuple[Any, Any, Any, Any]:
    """A NumPy array in C order, or the three arrays of a scipy.sparse CSR array, as kernels read them.

    >>> row_arrays(np.eye(2))
    (array([[1., 0.],
           [0., 1.]]), None, None, None)
    """
    if not is_sparse(matrix):
        return read_only(matrix), None, None, None
    # compiled code wraps signed indices round, which would double the time of a pass
    indices, starts = (read_only(array.view(f"u{array.itemsize}")) for array in (matrix.indices, matrix.indptr))
    return None, read_only(matrix.data), indices, starts


@compiled_fast
def multiples(
    left: Array,
    left_at: IntArray,
    offsets: IntArray,
    gains: Array,
    g: int,
    keep: float,
    targets: Array,
    sigma: Array,
    task: int,
    size: int,
    products: Array,
    steps: Array,
) -> tuple[float, float]:
    """From the `size` products X_m w, the multiple of each row to subtract from keep w, and the loss before and after.

    The loss before is that of w. U_m^T = L_m X_m; row i of L_m is left[left_at[i]:left_at[i + 1]].
    """
    before = after = 0.0
    for j in range(size):
        steps[j] = 0.0
    for i in range(offsets[task], offsets[task + 1]):
        begin = left_at[i]
        seen = 0.0
        for j in range(size):
            seen += left[begin + j] * products[j]
        error = keep * seen - targets[i]
        step = gains[g, i] * error
        before += (sigma[i] * (seen - targets[i])) ** 2
        after += (sigma[i] * (1.0 - gains[g, i]) * error) ** 2
        for j in range(size):
            steps[j] += step * left[begin + j]
    return 0.5 * before, 0.5 * after


@compiled_fast
def advance_by_rows(
    dense: Any,
    data: Any,
    indices: Any,
    indptr: Any,
    starts: IntArray,
    left: Array,
    left_at: IntArray,
    offsets: IntArray,
    gains: Array,
    which: IntArray,
    keep: Array,
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
    most = most_rows(starts)
    products, steps = np.empty(most), np.empty(most)
    position = 0
    for t in range(len(order)):
        first, last = starts[order[t]], starts[order[t] + 1]
        for i in range(first, last):
            total = 0.0
            if data is not None:
                for p in range(indptr[i], indptr[i + 1]):
                    total += data[p] * w[indices[p]]
            if dense is not None:
                for j in range(dense.shape[1]):
                    total += dense[i, j] * w[j]
            products[i - first] = total
        before[t], after[t] = multiples(
            left, left_at, offsets, gains, which[t], keep[t], targets, sigma, order[t], last - first, products, steps
        )
        if keep[t] != 1.0:
            for j in range(len(w)):
                w[j] *= keep[t]
        for i in range(first, last):
            step = steps[i - first]
            if data is not None:
                for p in range(indptr[i], indptr[i + 1]):
                    w[indices[p]] -= step * data[p]
            if dense is not None:
                for j in range(dense.shape[1]):
                    w[j] -= step * dense[i, j]
        if position < len(kept_at) and kept_at[position] == t + 1:
            for j in range(len(w)):
                kept[position, j] = w[j]
            position += 1
