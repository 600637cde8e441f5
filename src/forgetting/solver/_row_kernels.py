"""Compiled row steps, for dense rows and for rows in compressed form (CSR), with one or several right-hand sides.

The step of row i, with t = scale[i] (b[i] - a_i.x - shrink duals[i]), adds t a_i to x. `scale[i]` is the relaxation
divided by |a_i|^2 + shrink, or 0 for a row that is skipped. The number -1 - j in an order sets x[j] to 0. An empty
array switches a feature off:

- relations: 0 for a_i.x = b_i, 1 for >=, -1 for <=; empty if all rows are equations.
- duals: the sum of the steps of each row, for damping (shrink > 0) and for the nearest point of inequalities (Hildreth
  1957, which is Dykstra's method on half-spaces); empty if no row needs the sum.
- low, high: bounds on x, which is clipped where a row changes x; empty without bounds. `clipped` holds what was cut
  off, as Dykstra's method needs it for the nearest point; empty for a point within the bounds.

Kernels release the GIL. Sums may be reassociated, always in the same way: results do not depend on threads.
"""

from __future__ import annotations

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting._compile import compiled_fast, inlined


@inlined
def limited(step: float, error: float, relation: int, dual: float, remembers: bool) -> float:
    """The step of an inequality: none if the row holds; never more than all earlier steps of the row are undone."""
    if relation > 0:
        return max(step, -dual) if remembers else (step if error > 0.0 else 0.0)
    return min(step, -dual) if remembers else (step if error < 0.0 else 0.0)


@inlined
def missed(error: float, relation: int) -> float:
    """The part of b_i - a_i.x that violates the row."""
    if relation > 0:
        return max(error, 0.0)
    if relation < 0:
        return min(error, 0.0)
    return error


@inlined
def clip(x: Array, j: int, low: Array, high: Array, clipped: Array) -> None:
    """Clip entry j of x to its bounds."""
    wanted = x[j]
    if len(clipped) > 0:
        wanted += clipped[j]
    inside = min(max(wanted, low[j]), high[j])
    if len(clipped) > 0:
        clipped[j] = wanted - inside
    x[j] = inside


@compiled_fast
def squares_dense(rows: Array) -> Array:
    """|a_i|^2 for every row."""
    squares = np.empty(rows.shape[0])
    for i in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * rows[i, j]
        squares[i] = total
    return squares


@compiled_fast
def squares_sparse(data: Array, starts: IntArray) -> Array:
    """|a_i|^2 for every row."""
    squares = np.empty(len(starts) - 1)
    for i in range(len(squares)):
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += data[p] * data[p]
        squares[i] = total
    return squares


@compiled_fast
def sweep_dense(
    rows: Array,
    b: Array,
    scale: Array,
    shrink: float,
    relations: IntArray,
    order: IntArray,
    x: Array,
    duals: Array,
    low: Array,
    high: Array,
    clipped: Array,
) -> float:
    """Make the steps of the rows in `order`, changing x, duals and clipped; the sum of the squared errors seen."""
    total = 0.0
    size = rows.shape[1]
    mixed, remembers, bounded = len(relations) > 0, len(duals) > 0, len(low) > 0
    for position in range(len(order)):
        i = order[position]
        if i < 0:  # the row e_j of a ridge
            x[-1 - i] = 0.0
            continue
        if scale[i] == 0.0:
            continue
        error = 0.0
        for j in range(size):
            error += rows[i, j] * x[j]
        error = b[i] - error
        if remembers:
            error -= shrink * duals[i]
        step = scale[i] * error
        if mixed:
            total += missed(error, relations[i]) ** 2
            if relations[i] != 0:
                step = limited(step, error, relations[i], duals[i] if remembers else 0.0, remembers)
        else:
            total += error * error
        if remembers:
            duals[i] += step
        if step != 0.0:
            for j in range(size):
                x[j] += step * rows[i, j]
        if bounded:
            for j in range(size):
                clip(x, j, low, high, clipped)
    return total


@compiled_fast
def sweep_sparse(
    data: Array,
    indices: IntArray,
    starts: IntArray,
    b: Array,
    scale: Array,
    shrink: float,
    relations: IntArray,
    order: IntArray,
    x: Array,
    duals: Array,
    low: Array,
    high: Array,
    clipped: Array,
) -> float:
    """`sweep_dense` for rows in compressed form: only the entries of x that a row has are read, changed and clipped."""
    total = 0.0
    mixed, remembers, bounded = len(relations) > 0, len(duals) > 0, len(low) > 0
    for position in range(len(order)):
        i = order[position]
        if i < 0:  # the row e_j of a ridge
            x[-1 - i] = 0.0
            continue
        if scale[i] == 0.0:
            continue
        error = 0.0
        for p in range(starts[i], starts[i + 1]):
            error += data[p] * x[indices[p]]
        error = b[i] - error
        if remembers:
            error -= shrink * duals[i]
        step = scale[i] * error
        if mixed:
            total += missed(error, relations[i]) ** 2
            if relations[i] != 0:
                step = limited(step, error, relations[i], duals[i] if remembers else 0.0, remembers)
        else:
            total += error * error
        if remembers:
            duals[i] += step
        for p in range(starts[i], starts[i + 1]):
            x[indices[p]] += step * data[p]
        if bounded:
            for p in range(starts[i], starts[i + 1]):
                clip(x, indices[p], low, high, clipped)
    return total


@compiled_fast
def sweep_dense_many(
    rows: Array, b: Array, scale: Array, shrink: float, order: IntArray, x: Array, duals: Array, seen: Array
) -> None:
    """`sweep_dense` for equations with several right-hand sides: x is n x c; `seen` gets the sums of squared errors."""
    size, count = x.shape
    remembers = len(duals) > 0
    errors = np.empty(count)
    for position in range(len(order)):
        i = order[position]
        if i < 0:
            for o in range(count):
                x[-1 - i, o] = 0.0
            continue
        if scale[i] == 0.0:
            continue
        for o in range(count):
            errors[o] = b[i, o]
        if remembers:
            for o in range(count):
                errors[o] -= shrink * duals[i, o]
        for j in range(size):
            value = rows[i, j]
            for o in range(count):
                errors[o] -= value * x[j, o]
        for o in range(count):
            seen[o] += errors[o] * errors[o]
            errors[o] *= scale[i]
        if remembers:
            for o in range(count):
                duals[i, o] += errors[o]
        for j in range(size):
            value = rows[i, j]
            for o in range(count):
                x[j, o] += value * errors[o]


@compiled_fast
def sweep_sparse_many(
    data: Array,
    indices: IntArray,
    starts: IntArray,
    b: Array,
    scale: Array,
    shrink: float,
    order: IntArray,
    x: Array,
    duals: Array,
    seen: Array,
) -> None:
    """`sweep_dense_many` for rows in compressed form."""
    count = x.shape[1]
    remembers = len(duals) > 0
    errors = np.empty(count)
    for position in range(len(order)):
        i = order[position]
        if i < 0:
            for o in range(count):
                x[-1 - i, o] = 0.0
            continue
        if scale[i] == 0.0:
            continue
        for o in range(count):
            errors[o] = b[i, o]
        if remembers:
            for o in range(count):
                errors[o] -= shrink * duals[i, o]
        for p in range(starts[i], starts[i + 1]):
            value, j = data[p], indices[p]
            for o in range(count):
                errors[o] -= value * x[j, o]
        for o in range(count):
            seen[o] += errors[o] * errors[o]
            errors[o] *= scale[i]
        if remembers:
            for o in range(count):
                duals[i, o] += errors[o]
        for p in range(starts[i], starts[i + 1]):
            value, j = data[p], indices[p]
            for o in range(count):
                x[j, o] += value * errors[o]


@compiled_fast
def products_dense(rows: Array, order: IntArray, first: int, last: int, x: Array, products: Array) -> None:
    """a_i.x for the rows at the positions first to last of `order`; for these rows themselves if `order` is empty."""
    for position in range(first, last):
        i = order[position] if len(order) > 0 else position
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[i, j] * x[j]
        products[position] = total


@compiled_fast
def products_sparse(
    data: Array,
    indices: IntArray,
    starts: IntArray,
    order: IntArray,
    first: int,
    last: int,
    x: Array,
    products: Array,
) -> None:
    """`products_dense` for rows in compressed form."""
    for position in range(first, last):
        i = order[position] if len(order) > 0 else position
        total = 0.0
        for p in range(starts[i], starts[i + 1]):
            total += data[p] * x[indices[p]]
        products[position] = total


@compiled_fast
def combine_dense(rows: Array, order: IntArray, first: int, last: int, weights: Array, x: Array) -> None:
    """Add weights[position] a_i to x for the rows at the positions first to last of `order` (all rows if empty)."""
    for position in range(first, last):
        i = order[position] if len(order) > 0 else position
        for j in range(rows.shape[1]):
            x[j] += weights[position] * rows[i, j]


@compiled_fast
def combine_sparse(
    data: Array,
    indices: IntArray,
    starts: IntArray,
    order: IntArray,
    first: int,
    last: int,
    weights: Array,
    x: Array,
) -> None:
    """`combine_dense` for rows in compressed form."""
    for position in range(first, last):
        i = order[position] if len(order) > 0 else position
        for p in range(starts[i], starts[i + 1]):
            x[indices[p]] += weights[position] * data[p]
