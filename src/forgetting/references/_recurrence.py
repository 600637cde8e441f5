"""Compiled loops of the delta rule: the recurrence with 31 digits, and by how much later steps damp an error."""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled
from forgetting.compute.twofold import add, mul, sub
from forgetting.core.arrays import Array

TOO_SMALL = 1e-150  # norms below, whose squares lose digits, are replaced by sums of absolute values, which are larger


@compiled
def recurrence(
    keys: Array, values: Array, beta: Array, gate: Array, queries: Array, state: Array, low: Array, outputs: Array,
    read: Array, sizes: Array, reach: Array, missed: Array,
) -> None:  # fmt: skip
    """Make all steps of one head, in place: S <- g S, then S <- S + beta k (v - S^T k)^T.

    sizes[t] becomes the norms of the columns of S after t steps; reach[t] and missed[t], for step t, the sums of
    |k_i g S_ij| over i and |v_j - g (S^T k)_j|; outputs[t] S^T q after the step, and read[t] the sums of |q_i S_ij|.
    """
    steps, rows = keys.shape
    columns = values.shape[1]
    told, told_low = np.empty(columns), np.empty(columns)
    for t in range(steps):
        g, b = gate[t], beta[t]
        for j in range(columns):
            told[j], told_low[j], reach[t, j] = 0.0, 0.0, 0.0
        for i in range(rows):
            k = keys[t, i]
            for j in range(columns):
                h, hl = mul(state[i, j], low[i, j], g, 0.0)
                state[i, j], low[i, j] = h, hl
                p, e = mul(h, hl, k, 0.0)
                told[j], told_low[j] = add(told[j], told_low[j], p, e)
                reach[t, j] += abs(p)
        for j in range(columns):
            r, rl = sub(values[t, j], 0.0, told[j], told_low[j])
            missed[t, j] = abs(r)
            told[j], told_low[j] = mul(r, rl, b, 0.0)
            sizes[t + 1, j] = 0.0
        for i in range(rows):
            k = keys[t, i]
            for j in range(columns):
                p, e = mul(told[j], told_low[j], k, 0.0)
                h, hl = add(state[i, j], low[i, j], p, e)
                state[i, j], low[i, j] = h, hl
                sizes[t + 1, j] += h * h
        for j in range(columns):
            sizes[t + 1, j] = np.sqrt(sizes[t + 1, j])
            if sizes[t + 1, j] < TOO_SMALL:
                sizes[t + 1, j] = 0.0
                for i in range(rows):
                    sizes[t + 1, j] += abs(state[i, j])
        if len(queries) > 0:
            for j in range(columns):
                told[j], told_low[j], read[t, j] = 0.0, 0.0, 0.0
            for i in range(rows):
                q = queries[t, i]
                for j in range(columns):
                    p, e = mul(state[i, j], low[i, j], q, 0.0)
                    told[j], told_low[j] = add(told[j], told_low[j], p, e)
                    read[t, j] += abs(p)
            for j in range(columns):
                outputs[t, j] = told[j]


@compiled
def dampings(keys: Array, beta: Array, gate: Array, rounding: float) -> Array:
    """A bound on |e_i^T A_T ... A_(t+2)| for each step t and each row i, with A_t = g_t (I - beta_t k_t k_t^T).

    An error d that step t makes in a column of S moves entry i of the final column by at most this number times |d|.
    """
    steps, rows = keys.shape
    norms, product, slack = np.empty((steps, rows)), np.eye(rows), np.zeros(rows)
    for t in range(steps - 1, -1, -1):
        g, b, square = gate[t], beta[t], 0.0
        for n in range(rows):
            square += keys[t, n] * keys[t, n]
        growth = abs(1.0 - b * square) + (rows + 4) * rounding * (1.0 + b * square)
        if rows > 1:
            growth = max(growth, 1.0)
        for i in range(rows):
            size, along = 0.0, 0.0
            for n in range(rows):
                size += product[i, n] * product[i, n]
                along += product[i, n] * keys[t, n]
            size = np.sqrt(size)
            if size < TOO_SMALL:
                size = 0.0
                for n in range(rows):
                    size += abs(product[i, n])
            norms[t, i] = (size + slack[i]) * (1.0 + rows * rounding)
            for n in range(rows):
                product[i, n] = g * (product[i, n] - b * along * keys[t, n])
            slack[i] = (g * growth * slack[i] + (rows + 6) * rounding * g * (1.0 + 2.0 * b * square) * size) * 1.0000001
    return norms
