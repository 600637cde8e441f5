"""Compiled loops. Nothing here decides anything: settings, orders and records are prepared by the callers.

Sums may be reassociated (that is what makes them fast); the exact engines in `expectation` do not use these loops.
All kernels release the GIL, so callers parallelise over runs with threads, and a run is computed the same way
whatever thread it lands on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from forgetting._arrays import Array, IntArray

FAST = {"reassoc", "contract", "nsz"}
compiled: Any = njit(cache=True, nogil=True, fastmath=FAST)


@compiled
def dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def learn_task(
    dual: bool,
    rows: Array,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    task: int,
    z: Array,
    missed: Array,
) -> tuple[float, float]:
    """One step of a linear scheme, in place; half |sigma * error|^2 of the task before and after.

    Primal: z has D entries and rows is U^T. Dual: z is rho = U^T z - c, with R entries, and rows is M = U^T U.
    """
    first, last = offsets[task], offsets[task + 1]
    before = after = 0.0
    for i in range(first, last):
        missed[i - first] = z[i] if dual else dot(rows[i], z) - targets[i]
    for i in range(first, last):
        error = missed[i - first]
        before += (sigma[i] * error) ** 2
        after += (sigma[i] * (1.0 - gains[i]) * error) ** 2
        step = gains[i] * error
        row = rows[i]
        for j in range(len(z)):
            z[j] -= step * row[j]
    return 0.5 * before, 0.5 * after


@compiled
def advance(
    rows: Array,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    order: IntArray,
    z: Array,
    kept_at: IntArray,
    kept: Array,
    before: Array,
    after: Array,
) -> None:
    """Learn the tasks of `order` on z in place; `kept[i]` is z after step `kept_at[i]` (1-based within the order)."""
    missed = np.empty(np.max(np.diff(offsets)))
    position = 0
    for t in range(len(order)):
        before[t], after[t] = learn_task(False, rows, offsets, gains, targets, sigma, order[t], z, missed)
        if position < len(kept_at) and kept_at[position] == t + 1:
            kept[position] = z
            position += 1


@compiled
def ensemble(
    dual: bool,
    rows: Array,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    form: Array,
    shift: Array,
    orders: IntArray,
    z0: Array,
    keep: IntArray,
    losses: Array,
    before: Array,
    after: Array,
) -> None:
    """Mean loss at the recorded steps of many runs, and each task's loss before and after it is learned.

    The mean loss is sum_i (form[0, i] rho_i)^2 in dual form and |form z - shift|^2 in primal form.
    """
    missed = np.empty(np.max(np.diff(offsets)))
    z = np.empty(len(z0))
    for run in range(len(orders)):
        z[:] = z0
        position = 0
        for t in range(orders.shape[1] + 1):
            if t > 0:
                pair = learn_task(dual, rows, offsets, gains, targets, sigma, orders[run, t - 1], z, missed)
                before[run, t - 1], after[run, t - 1] = pair
            if position < len(keep) and keep[position] == t:
                loss = 0.0
                if dual:
                    weight = form[0]
                    for i in range(len(z)):
                        loss += (weight[i] * z[i]) ** 2
                else:
                    for i in range(len(form)):
                        loss += (dot(form[i], z) - shift[i]) ** 2
                losses[run, position] = loss
                position += 1


@compiled
def ensemble_forgetting(
    dual: bool,
    rows: Array,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    orders: IntArray,
    z0: Array,
    keep: IntArray,
    forgetting: Array,
) -> None:
    """F at the recorded steps (from 1) of many runs."""
    missed = np.empty(np.max(np.diff(offsets)))
    z = np.empty(len(z0))
    visits = np.empty(len(offsets) - 1)
    for run in range(len(orders)):
        z[:] = z0
        visits[:] = 0
        learned = 0.0
        position = 0
        for t in range(1, orders.shape[1] + 1):
            task = orders[run, t - 1]
            learned += learn_task(dual, rows, offsets, gains, targets, sigma, task, z, missed)[1]
            visits[task] += 1
            if position < len(keep) and keep[position] == t:
                total = 0.0
                for m in range(len(visits)):
                    if visits[m] > 0:
                        loss = 0.0
                        for i in range(offsets[m], offsets[m + 1]):
                            error = z[i] if dual else dot(rows[i], z) - targets[i]
                            loss += (sigma[i] * error) ** 2
                        total += 0.5 * visits[m] * loss
                forgetting[run, position] = (total - learned) / t
                position += 1


@compiled
def descend(
    matrix: Array, label: Array, start: Array, step: float, momentum: float, norm: float, tol: float, max_steps: int
) -> tuple[Array, int, float]:
    """Gradient descent (with momentum) on 1/2 |A z - b|^2; the point, the steps and the relative residual."""
    rows, dim = matrix.shape
    z = start.copy()
    change = np.zeros(dim)
    residual = np.empty(rows)
    scale = norm * np.sqrt(dot(z, z)) + np.sqrt(dot(label, label))
    if scale == 0.0:
        return z, 0, 0.0
    steps = 0
    while True:
        total = 0.0
        for i in range(rows):
            residual[i] = dot(matrix[i], z) - label[i]
            total += residual[i] ** 2
        relative = np.sqrt(total) / scale
        if relative <= tol or steps == max_steps:
            return z, steps, relative
        for j in range(dim):
            change[j] *= momentum
        for i in range(rows):
            row = matrix[i]
            factor = step * residual[i]
            for j in range(dim):
                change[j] -= factor * row[j]
        for j in range(dim):
            z[j] += change[j]
        steps += 1


@compiled
def stochastic_steps(matrix: Array, label: Array, z: Array, picks: IntArray, step: float) -> None:
    """Gradient steps on batches of rows, in place; row s of `picks` lists the rows of step s."""
    residual = np.empty(picks.shape[1])
    for s in range(len(picks)):
        for b in range(picks.shape[1]):
            residual[b] = dot(matrix[picks[s, b]], z) - label[picks[s, b]]
        for b in range(picks.shape[1]):
            factor = step * residual[b]
            row = matrix[picks[s, b]]
            for j in range(len(z)):
                z[j] -= factor * row[j]
