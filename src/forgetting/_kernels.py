"""Compiled loops. Nothing here decides anything: settings, orders and records are prepared by the callers.

Sums may be reassociated (that is what makes them fast); the exact engines in `expectation` do not use these loops.
All kernels release the GIL, so callers parallelise over runs with threads, and a run is computed the same way
whatever thread it lands on.
"""

from __future__ import annotations

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting._compile import compiled_fast


@compiled_fast
def dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled_fast
def fill(target: Array | IntArray, source: Array | IntArray, size: int) -> None:
    """The first entries of source into target. A slice would do, but takes seconds to compile (here and below)."""
    for i in range(size):
        target[i] = source[i]


@compiled_fast
def most_rows(offsets: IntArray) -> int:
    """Of any task."""
    most = 0
    for m in range(len(offsets) - 1):
        most = max(most, offsets[m + 1] - offsets[m])
    return most


@compiled_fast
def learn_task(
    dual: bool,
    rows: Array,
    offsets: IntArray,
    gains: Array,
    targets: Array,
    sigma: Array,
    task: int,
    z: Array,
    steps: Array,
) -> tuple[float, float]:
    """Learn a task in place; its loss before and after. `steps` is room for as many numbers as the task has rows.

    Primal: z has D entries and rows is U^T. Dual: z is rho = U^T z - c, with R entries, and rows is M = U^T U.
    """
    first, last = offsets[task], offsets[task + 1]
    size = rows.shape[1]
    before = after = 0.0
    # entries are addressed one by one: taking a row would count references in the innermost loop
    for i in range(first, last):
        if dual:
            error = z[i]
        else:
            error = -targets[i]
            for j in range(size):
                error += rows[i, j] * z[j]
        steps[i - first] = gains[i] * error
        before += (sigma[i] * error) ** 2
        after += (sigma[i] * (1.0 - gains[i]) * error) ** 2
    for i in range(first, last):
        step = steps[i - first]
        for j in range(size):
            z[j] -= step * rows[i, j]
    return 0.5 * before, 0.5 * after


@compiled_fast
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
    steps = np.empty(most_rows(offsets))
    position = 0
    for t in range(len(order)):
        before[t], after[t] = learn_task(False, rows, offsets, gains, targets, sigma, order[t], z, steps)
        if position < len(kept_at) and kept_at[position] == t + 1:
            for j in range(len(z)):
                kept[position, j] = z[j]
            position += 1


@compiled_fast
def ensemble_dual(
    rows: Array,
    offsets: IntArray,
    gains: Array,
    sigma: Array,
    orders: IntArray,
    z0: Array,
    keep: IntArray,
    losses: Array,
    before: Array,
    after: Array,
) -> None:
    """Mean loss at the recorded steps of many runs, and each task's loss before and after; `after` starts as zeros.

    Errors are scaled such that the mean loss is |z|^2. The last row of a task is subtracted and the loss summed in one
    pass over memory.
    """
    steps = np.empty(most_rows(offsets))
    size = len(z0)
    z = np.empty(size)
    started = 0.0
    for j in range(size):
        started += z0[j] * z0[j]
    for run in range(len(orders)):
        fill(z, z0, size)
        position = 0
        if len(keep) > 0 and keep[0] == 0:
            losses[run, 0] = started
            position = 1
        for t in range(orders.shape[1]):
            first, last = offsets[orders[run, t]], offsets[orders[run, t] + 1]
            loss_before = loss_after = 0.0
            for i in range(first, last):
                error = z[i]
                steps[i - first] = gains[i] * error
                loss_before += (sigma[i] * error) ** 2
                loss_after += (sigma[i] * (1.0 - gains[i]) * error) ** 2
            before[run, t] = 0.5 * loss_before
            if loss_after != 0.0:  # projections leave nothing: that page of memory is never touched
                after[run, t] = 0.5 * loss_after
            recorded = position < len(keep) and keep[position] == t + 1
            held = last - 1 if recorded and last > first else last
            for i in range(first, held):
                step = steps[i - first]
                for j in range(size):
                    z[j] -= step * rows[i, j]
            if recorded:
                loss = 0.0
                if held < last:
                    step = steps[held - first]
                    for j in range(size):
                        value = z[j] - step * rows[held, j]
                        z[j] = value
                        loss += value * value
                else:
                    for j in range(size):
                        loss += z[j] * z[j]
                losses[run, position] = loss
                position += 1


@compiled_fast
def ensemble_primal(
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
    """Mean loss |form z - shift|^2 at the recorded steps of many runs, and each task's loss before and after."""
    steps = np.empty(most_rows(offsets))
    size = len(z0)
    z = np.empty(size)
    for run in range(len(orders)):
        fill(z, z0, size)
        position = 0
        for t in range(orders.shape[1] + 1):
            if t > 0:
                pair = learn_task(False, rows, offsets, gains, targets, sigma, orders[run, t - 1], z, steps)
                before[run, t - 1], after[run, t - 1] = pair
            if position < len(keep) and keep[position] == t:
                loss = 0.0
                for i in range(len(form)):
                    value = -shift[i]
                    for j in range(size):
                        value += form[i, j] * z[j]
                    loss += value**2
                losses[run, position] = loss
                position += 1


@compiled_fast
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
    steps = np.empty(most_rows(offsets))
    size = len(z0)
    z = np.empty(size)
    visits = np.empty(len(offsets) - 1)
    for run in range(len(orders)):
        fill(z, z0, size)
        for m in range(len(visits)):
            visits[m] = 0.0
        learned = 0.0
        position = 0
        for t in range(1, orders.shape[1] + 1):
            task = orders[run, t - 1]
            learned += learn_task(dual, rows, offsets, gains, targets, sigma, task, z, steps)[1]
            visits[task] += 1
            if position < len(keep) and keep[position] == t:
                total = 0.0
                for m in range(len(visits)):
                    if visits[m] > 0:
                        loss = 0.0
                        for i in range(offsets[m], offsets[m + 1]):
                            if dual:
                                error = z[i]
                            else:
                                error = -targets[i]
                                for j in range(size):
                                    error += rows[i, j] * z[j]
                            loss += (sigma[i] * error) ** 2
                        total += 0.5 * visits[m] * loss
                forgetting[run, position] = (total - learned) / t
                position += 1


@compiled_fast
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
        if not relative > tol or steps == max_steps:  # NaN ends it too
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


@compiled_fast
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
