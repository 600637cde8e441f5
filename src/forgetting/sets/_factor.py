"""The triangular factor of the active rows, A_W = L Q, and how it changes with W. Compiled.

Where Q is given, it is kept (Gram-Schmidt, done twice). Where Q is None, L alone is kept, as the Cholesky factor of
A_W A_W^T, whose entries come from the Gram matrix K. Only the first |W| rows of L and Q mean anything.

A literal number as an argument would be another type, for which a function is compiled again.
"""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled_fast
from forgetting.compute.run_kernels import dot, fill
from forgetting.core.arrays import Array, IntArray


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
