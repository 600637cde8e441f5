"""Compiled loops of single runs and ensembles. The callers prepare settings, orders and arrays for the results.

Sums may be reassociated, which makes them fast; the exact engines in `expectation` do not use these loops. All kernels
release the GIL, so that callers can use threads; the numbers of a run do not depend on the thread.
"""

from __future__ import annotations

import numpy as np

from forgetting.compute.compiling import compiled_fast
from forgetting.core.arrays import Array, IntArray


@compiled_fast
def dot(a: Array, b: Array) -> float:
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled_fast
def fill(target: Array | IntArray, source: Array | IntArray, size: int) -> None:
    """Copy the first `size` entries of source into target; slices would take seconds to compile."""
    for i in range(size):
        target[i] = source[i]


@compiled_fast
def most_rows(offsets: IntArray) -> int:
    """The number of rows of the task with the most rows."""
    most = 0
    for m in range(len(offsets) - 1):
        most = max(most, offsets[m + 1] - offsets[m])
    return most


@compiled_fast
def shrink(
    dual: bool,
    rows: Array,
    offsets: IntArray,
    keep: float,
    origin: Array,
    targets: Array,
    sigma: Array,
    task: int,
    z: Array,
) -> float:
    """Let w become keep w, which is z + `origin`, in place, and return the loss of a task before; see `learn_task`."""
    before = 0.0
    for i in range(offsets[task], offsets[task + 1]):
        if dual:
            error = z[i]
        else:
            error = -targets[i]
            for j in range(rows.shape[1]):
                error += rows[i, j] * z[j]
        before += (sigma[i] * error) ** 2
    for j in range(len(z)):
        z[j] = keep * (z[j] + origin[j]) - origin[j]  # w = 0 stays 0
    return 0.5 * before


@compiled_fast
def learn_task(
    dual: bool,
    rows: Array,
    offsets: IntArray,
    gains: Array,
    g: int,
    targets: Array,
    sigma: Array,
    task: int,
    z: Array,
    steps: Array,
) -> tuple[float, float]:
    """Learn a task, changing z in place, and return the loss of the task before and after.

    The gains are in row `g` of a table. Primal: z has D entries and rows is U^T. Dual: z stands for rho = U^T z - c,
    with R entries, and rows is M = U^T U. `steps` is a work array with at least as many entries as the task has rows.
    """
    first, last = offsets[task], offsets[task + 1]
    size = rows.shape[1]
    before = after = 0.0
    # entries are addressed singly: a view of a row would count references in the innermost loop
    for i in range(first, last):
        if dual:
            error = z[i]
        else:
            error = -targets[i]
            for j in range(size):
                error += rows[i, j] * z[j]
        gain = gains[g, i]
        steps[i - first] = gain * error
        before += (sigma[i] * error) ** 2
        after += (sigma[i] * (1.0 - gain) * error) ** 2
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
    which: IntArray,
    keep: Array,
    origin: Array,
    targets: Array,
    sigma: Array,
    order: IntArray,
    z: Array,
    kept_at: IntArray,
    kept: Array,
    before: Array,
    after: Array,
) -> None:
    """Learn the tasks of `order`, changing z in place; `kept[i]` becomes z after step `kept_at[i]` (counted from 1).

    Step t has the gains in row which[t] of the table, and keeps the factor keep[t] of w.
    """
    steps = np.empty(most_rows(offsets))
    position = 0
    for t in range(len(order)):
        started = 0.0
        if keep[t] != 1.0:
            started = shrink(False, rows, offsets, keep[t], origin, targets, sigma, order[t], z)
        before[t], after[t] = learn_task(False, rows, offsets, gains, which[t], targets, sigma, order[t], z, steps)
        if keep[t] != 1.0:
            before[t] = started
        if position < len(kept_at) and kept_at[position] == t + 1:
            for j in range(len(z)):
                kept[position, j] = z[j]
            position += 1


@compiled_fast
def ensemble_dual(
    rows: Array,
    offsets: IntArray,
    gains: Array,
    which: IntArray,
    factors: Array,
    origin: Array,
    sigma: Array,
    orders: IntArray,
    z0: Array,
    keep: IntArray,
    losses: Array,
    before: Array,
    after: Array,
) -> None:
    """Many runs in the dual: mean loss at the steps in `keep`, and the loss of the task learned before and after.

    Gains and factors of w are as in `advance`. Errors are scaled such that the mean loss is |z|^2. `after` must be
    zeros on entry. At a step in `keep`, one pass over z both subtracts the last row of the task and sums the loss.
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
            g, keeps = which[t], factors[t]
            whole = 0.0
            if keeps != 1.0:
                whole = shrink(True, rows, offsets, keeps, origin, sigma, sigma, orders[run, t], z)
            for i in range(first, last):
                error = z[i]
                gain = gains[g, i]
                steps[i - first] = gain * error
                loss_before += (sigma[i] * error) ** 2
                loss_after += (sigma[i] * (1.0 - gain) * error) ** 2
            before[run, t] = 0.5 * loss_before if keeps == 1.0 else whole
            if loss_after != 0.0:  # projections leave no loss: pages of `after` then stay untouched
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
    which: IntArray,
    factors: Array,
    origin: Array,
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
    """Many runs: mean loss |form z - shift|^2 at the steps in `keep`, and loss of the task learned before and after."""
    steps = np.empty(most_rows(offsets))
    size = len(z0)
    z = np.empty(size)
    for run in range(len(orders)):
        fill(z, z0, size)
        position = 0
        for t in range(orders.shape[1] + 1):
            if t > 0:
                task, keeps, started = orders[run, t - 1], factors[t - 1], 0.0
                if keeps != 1.0:
                    started = shrink(False, rows, offsets, keeps, origin, targets, sigma, task, z)
                pair = learn_task(False, rows, offsets, gains, which[t - 1], targets, sigma, task, z, steps)
                before[run, t - 1], after[run, t - 1] = pair
                if keeps != 1.0:
                    before[run, t - 1] = started
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
    which: IntArray,
    factors: Array,
    origin: Array,
    targets: Array,
    sigma: Array,
    orders: IntArray,
    z0: Array,
    keep: IntArray,
    forgetting: Array,
) -> None:
    """The forgetting of many runs at the steps in `keep` (all at least 1)."""
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
            if factors[t - 1] != 1.0:
                shrink(dual, rows, offsets, factors[t - 1], origin, targets, sigma, task, z)
            learned += learn_task(dual, rows, offsets, gains, which[t - 1], targets, sigma, task, z, steps)[1]
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
    """Gradient descent with momentum on 1/2 |A z - b|^2; returns the point, the steps and the relative residual."""
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
        if not relative > tol or steps == max_steps:  # a NaN ends the loop too
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
    """Gradient steps on batches of rows, changing z in place; row s of `picks` lists the matrix rows of step s."""
    residual = np.empty(picks.shape[1])
    for s in range(len(picks)):
        for b in range(picks.shape[1]):
            residual[b] = dot(matrix[picks[s, b]], z) - label[picks[s, b]]
        for b in range(picks.shape[1]):
            factor = step * residual[b]
            row = matrix[picks[s, b]]
            for j in range(len(z)):
                z[j] -= factor * row[j]
