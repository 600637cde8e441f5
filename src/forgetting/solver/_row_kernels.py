"""Compiled row steps, for dense rows and for rows in compressed form (CSR), with one or several right-hand sides.

A matrix is the four arguments dense, data, indices, starts of `compute.row_kernels`.

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

from typing import Any

import numpy as np

from forgetting.compute.compiling import compiled_fast, inlined
from forgetting.core.arrays import Array, IntArray


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
def sweep(
    dense: Any,
    data: Any,
    indices: Any,
    starts: Any,
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
    """Make the steps of the rows in `order`, changing x, duals and clipped; the sum of the squared errors seen.

    Of a row in compressed form, only the entries of x that the row has are read, changed and clipped.
    """
    total = 0.0
    mixed, remembers, bounded, dykstra = len(relations) > 0, len(duals) > 0, len(low) > 0, len(clipped) > 0
    for position in range(len(order)):
        i = order[position]
        if i < 0:  # the row e_j of a ridge
            x[-1 - i] = 0.0
            continue
        if scale[i] == 0.0:
            continue
        error = 0.0
        if data is not None:
            for p in range(starts[i], starts[i + 1]):
                error += data[p] * x[indices[p]]
        if dense is not None:
            for j in range(dense.shape[1]):
                error += dense[i, j] * x[j]
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
        if data is not None:
            for p in range(starts[i], starts[i + 1]):
                x[indices[p]] += step * data[p]
            if bounded:
                for p in range(starts[i], starts[i + 1]):
                    j = indices[p]
                    wanted = x[j] + clipped[j] if dykstra else x[j]
                    x[j] = min(max(wanted, low[j]), high[j])
                    if dykstra:
                        clipped[j] = wanted - x[j]
        if dense is not None:
            if step != 0.0:
                for j in range(dense.shape[1]):
                    x[j] += step * dense[i, j]
            if bounded:
                for j in range(dense.shape[1]):
                    wanted = x[j] + clipped[j] if dykstra else x[j]
                    x[j] = min(max(wanted, low[j]), high[j])
                    if dykstra:
                        clipped[j] = wanted - x[j]
    return total


@compiled_fast
def products_of_fours(rows: Array, squares: Array, products: Array) -> None:
    """Squares of all rows, and the six inner products of the rows of each group of four; `products` has a row a group.

    The order is that of `sweep_fours`: a0.a1, a0.a2, a1.a2, a0.a3, a1.a3, a2.a3.
    """
    size = rows.shape[1]
    for group in range(len(products)):
        i = 4 * group
        aa = bb = cc = dd = ab = ac = bc = ad = bd = cd = 0.0
        for j in range(size):
            a, b, c, d = rows[i, j], rows[i + 1, j], rows[i + 2, j], rows[i + 3, j]
            aa += a * a
            bb += b * b
            cc += c * c
            dd += d * d
            ab += a * b
            ac += a * c
            bc += b * c
            ad += a * d
            bd += b * d
            cd += c * d
        squares[i], squares[i + 1], squares[i + 2], squares[i + 3] = aa, bb, cc, dd
        products[group, 0], products[group, 1], products[group, 2] = ab, ac, bc
        products[group, 3], products[group, 4], products[group, 5] = ad, bd, cd
    for i in range(4 * len(products), rows.shape[0]):
        total = 0.0
        for j in range(size):
            total += rows[i, j] * rows[i, j]
        squares[i] = total


@compiled_fast
def sweep_fours(
    rows: Array,
    products: Array,
    b: Array,
    scale: Array,
    shrink: float,
    groups: IntArray,
    x: Array,
    duals: Array,
) -> float:
    """`sweep` for equations in groups of four consecutive rows: the same steps, with half of the accesses to x.

    All four errors are computed from the x before the group, and corrected by the inner products of the rows.
    """
    total = 0.0
    size, remembers = rows.shape[1], len(duals) > 0
    for position in range(len(groups)):
        group = groups[position]
        i = 4 * group
        if group == len(products):  # the last rows, fewer than four
            for row in range(i, rows.shape[0]):
                error = 0.0
                for j in range(size):
                    error += rows[row, j] * x[j]
                error = b[row] - error
                if remembers:
                    error -= shrink * duals[row]
                step = scale[row] * error
                total += error * error if scale[row] != 0.0 else 0.0
                if remembers:
                    duals[row] += step
                for j in range(size):
                    x[j] += step * rows[row, j]
            continue
        e0 = e1 = e2 = e3 = 0.0
        for j in range(size):
            value = x[j]
            e0 += rows[i, j] * value
            e1 += rows[i + 1, j] * value
            e2 += rows[i + 2, j] * value
            e3 += rows[i + 3, j] * value
        e0, e1, e2, e3 = b[i] - e0, b[i + 1] - e1, b[i + 2] - e2, b[i + 3] - e3
        if remembers:
            e0 -= shrink * duals[i]
            e1 -= shrink * duals[i + 1]
            e2 -= shrink * duals[i + 2]
            e3 -= shrink * duals[i + 3]
        t0 = scale[i] * e0
        e1 -= t0 * products[group, 0]
        t1 = scale[i + 1] * e1
        e2 -= t0 * products[group, 1] + t1 * products[group, 2]
        t2 = scale[i + 2] * e2
        e3 -= t0 * products[group, 3] + t1 * products[group, 4] + t2 * products[group, 5]
        t3 = scale[i + 3] * e3
        if remembers:
            duals[i] += t0
            duals[i + 1] += t1
            duals[i + 2] += t2
            duals[i + 3] += t3
        total += e0 * e0 if scale[i] != 0.0 else 0.0
        total += e1 * e1 if scale[i + 1] != 0.0 else 0.0
        total += e2 * e2 if scale[i + 2] != 0.0 else 0.0
        total += e3 * e3 if scale[i + 3] != 0.0 else 0.0
        for j in range(size):
            x[j] += t0 * rows[i, j] + t1 * rows[i + 1, j] + t2 * rows[i + 2, j] + t3 * rows[i + 3, j]
    return total


@compiled_fast
def sweep_fours_back(rows: Array, products: Array, b: Array, scale: Array, groups: IntArray, x: Array) -> float:
    """The steps of `sweep_fours` in the opposite order, from the last row of the last group to the first one."""
    total = 0.0
    size = rows.shape[1]
    for position in range(len(groups) - 1, -1, -1):
        group = groups[position]
        i = 4 * group
        if group == len(products):
            for row in range(rows.shape[0] - 1, i - 1, -1):
                error = 0.0
                for j in range(size):
                    error += rows[row, j] * x[j]
                error = b[row] - error
                step = scale[row] * error
                total += error * error if scale[row] != 0.0 else 0.0
                for j in range(size):
                    x[j] += step * rows[row, j]
            continue
        e0 = e1 = e2 = e3 = 0.0
        for j in range(size):
            value = x[j]
            e0 += rows[i, j] * value
            e1 += rows[i + 1, j] * value
            e2 += rows[i + 2, j] * value
            e3 += rows[i + 3, j] * value
        e0, e1, e2, e3 = b[i] - e0, b[i + 1] - e1, b[i + 2] - e2, b[i + 3] - e3
        t3 = scale[i + 3] * e3
        e2 -= t3 * products[group, 5]
        t2 = scale[i + 2] * e2
        e1 -= t3 * products[group, 4] + t2 * products[group, 2]
        t1 = scale[i + 1] * e1
        e0 -= t3 * products[group, 3] + t2 * products[group, 1] + t1 * products[group, 0]
        t0 = scale[i] * e0
        total += e0 * e0 if scale[i] != 0.0 else 0.0
        total += e1 * e1 if scale[i + 1] != 0.0 else 0.0
        total += e2 * e2 if scale[i + 2] != 0.0 else 0.0
        total += e3 * e3 if scale[i + 3] != 0.0 else 0.0
        for j in range(size):
            x[j] += t0 * rows[i, j] + t1 * rows[i + 1, j] + t2 * rows[i + 2, j] + t3 * rows[i + 3, j]
    return total


@compiled_fast
def sweep_many(
    dense: Any,
    data: Any,
    indices: Any,
    starts: Any,
    b: Array,
    scale: Array,
    shrink: float,
    order: IntArray,
    x: Array,
    duals: Array,
    seen: Array,
) -> None:
    """`sweep` for equations with several right-hand sides: x is n x c; `seen` gets the sums of squared errors."""
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
        if data is not None:
            for p in range(starts[i], starts[i + 1]):
                value, j = data[p], indices[p]
                for o in range(count):
                    errors[o] -= value * x[j, o]
        if dense is not None:
            for j in range(dense.shape[1]):
                value = dense[i, j]
                for o in range(count):
                    errors[o] -= value * x[j, o]
        for o in range(count):
            seen[o] += errors[o] * errors[o]
            errors[o] *= scale[i]
        if remembers:
            for o in range(count):
                duals[i, o] += errors[o]
        if data is not None:
            for p in range(starts[i], starts[i + 1]):
                value, j = data[p], indices[p]
                for o in range(count):
                    x[j, o] += value * errors[o]
        if dense is not None:
            for j in range(dense.shape[1]):
                value = dense[i, j]
                for o in range(count):
                    x[j, o] += value * errors[o]


@compiled_fast
def row_products(
    dense: Any,
    data: Any,
    indices: Any,
    starts: Any,
    order: IntArray,
    first: int,
    last: int,
    x: Array,
    products: Array,
) -> None:
    """a_i.x for the rows at the positions first to last of `order`; for these rows themselves if `order` is empty."""
    for position in range(first, last):
        i = order[position] if len(order) > 0 else position
        total = 0.0
        if data is not None:
            for p in range(starts[i], starts[i + 1]):
                total += data[p] * x[indices[p]]
        if dense is not None:
            for j in range(dense.shape[1]):
                total += dense[i, j] * x[j]
        products[position] = total


@compiled_fast
def combine(
    dense: Any,
    data: Any,
    indices: Any,
    starts: Any,
    order: IntArray,
    first: int,
    last: int,
    weights: Array,
    x: Array,
) -> None:
    """Add weights[position] a_i to x for the rows at the positions first to last of `order` (all rows if empty)."""
    for position in range(first, last):
        i = order[position] if len(order) > 0 else position
        if data is not None:
            for p in range(starts[i], starts[i + 1]):
                x[indices[p]] += weights[position] * data[p]
        if dense is not None:
            for j in range(dense.shape[1]):
                x[j] += weights[position] * dense[i, j]


@compiled_fast
def normal(
    dense: Any, data: Any, indices: Any, starts: Any, first: int, last: int, x: Array, products: Array, total: Array
) -> None:
    """a_i.x into `products`, and (a_i.x) a_i added to `total`, for the rows first to last, which are read once."""
    if data is not None:
        for i in range(first, last):
            product = 0.0
            for p in range(starts[i], starts[i + 1]):
                product += data[p] * x[indices[p]]
            products[i] = product
            for p in range(starts[i], starts[i + 1]):
                total[indices[p]] += product * data[p]
    if dense is not None:
        size = dense.shape[1]
        fours = last - (last - first) % 4
        for i in range(first, fours, 4):
            e0 = e1 = e2 = e3 = 0.0
            for j in range(size):
                value = x[j]
                e0 += dense[i, j] * value
                e1 += dense[i + 1, j] * value
                e2 += dense[i + 2, j] * value
                e3 += dense[i + 3, j] * value
            products[i], products[i + 1], products[i + 2], products[i + 3] = e0, e1, e2, e3
            for j in range(size):
                total[j] += e0 * dense[i, j] + e1 * dense[i + 1, j] + e2 * dense[i + 2, j] + e3 * dense[i + 3, j]
        for i in range(fours, last):
            product = 0.0
            for j in range(size):
                product += dense[i, j] * x[j]
            products[i] = product
            for j in range(size):
                total[j] += product * dense[i, j]


@compiled_fast
def project_many(
    rows: Array, b: Array, starts: IntArray, inverses: Array, relaxation: float, visits: IntArray, x: Array, seen: Array
) -> None:
    """Project x, n x c, onto the solutions of blocks of consecutive rows; `seen` gets the sums of squared errors.

    Block m has the rows starts[m] to starts[m + 1], and its inverse has the same rows of `inverses`. The products are
    those of BLAS, without the GIL, which threads would lose each other's time to between short calls.
    """
    count = x.shape[1]
    for position in range(len(visits)):
        first, last = starts[visits[position]], starts[visits[position] + 1]
        part = rows[first:last]
        error = np.dot(part, x)
        weights = np.zeros((last - first, count))
        for i in range(last - first):
            for o in range(count):
                value = b[first + i, o] - error[i, o]
                error[i, o] = value
                seen[o] += value * value
        for i in range(last - first):
            for k in range(last - first):
                factor = relaxation * inverses[first + i, k]
                for o in range(count):
                    weights[i, o] += factor * error[k, o]
        move = np.dot(part.T, weights)
        for j in range(x.shape[0]):
            for o in range(count):
                x[j, o] += move[j, o]
