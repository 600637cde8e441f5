"""Similarity of tasks: principal angles between their row spaces, and angles between their solutions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, as_kind
from forgetting.geometry.reduction import Geometry

__all__ = ["Similarity", "overlaps", "principal_angles", "solution_cosines"]


@dataclass(frozen=True, eq=False)
class Similarity:
    """Comparison of all pairs of tasks, as T x T matrices.

    theta_1 <= ... <= theta_s are the principal angles between the two row spaces, s the smaller of the two ranks.

    Attributes:
        overlap: mean of cos^2 theta_i: 0 for orthogonal tasks, 1 if a row space contains the other.
        smallest, largest: theta_1 and theta_s, in degrees.
        difference: |A - B|_F with A and B the matrices X^T X of the two tasks, each divided by its Frobenius norm: 0
            for tasks with the same inputs up to a factor.
    """

    overlap: Array
    smallest: Array
    largest: Array
    difference: Array


def principal_angles(geometry: Geometry) -> Similarity:
    """Compare the row spaces of all pairs of tasks; identical tasks are compared once.

    Cost: the product of the stacked bases with themselves, and an eigenvalue problem per pair of ranks above 1.

    >>> import forgetting as fg
    >>> similarity = principal_angles(fg.families.two_lines(np.pi / 3).geometry)
    >>> similarity.smallest.round(6).tolist(), similarity.overlap.round(6).tolist()
    ([[0.0, 60.0], [60.0, 0.0]], [[1.0, 0.25], [0.25, 1.0]])
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    count = geometry.num_distinct
    overlap, smallest, largest, inner = (np.zeros((count, count)) for _ in range(4))
    smallest[:], largest[:] = 90.0, 90.0  # of tasks without a row
    for i in range(count):
        block, first = geometry.block(i), geometry.offsets[i]
        cosines = geometry.rows[block] @ geometry.rows[first:].T  # with itself and the later tasks
        products = ((geometry.sigma[block, None] * cosines * geometry.sigma[first:]) ** 2).sum(axis=0)
        bounds = (geometry.offsets[i:] - first).tolist()
        for j, columns in enumerate(map(slice, bounds, bounds[1:]), i):
            squares = _squared(cosines[:, columns])
            if len(squares):
                overlap[i, j] = squares.mean()
                smallest[i, j], largest[i, j] = _degrees(squares[0]), _degrees(squares[-1])
            inner[i, j] = products[columns].sum()
    norms = np.sqrt(np.diag(inner))
    scale = np.outer(norms, norms)
    cosine = np.divide(inner, scale, out=np.zeros_like(inner), where=scale > 0)
    difference = np.sqrt(np.maximum(2 - 2 * cosine, 0.0))
    np.fill_diagonal(difference, 0.0)
    np.fill_diagonal(overlap, 1.0)
    for angles in (smallest, largest):
        np.fill_diagonal(angles, 0.0)
    tables = [np.triu(table) + np.triu(table, 1).T for table in (overlap, smallest, largest, difference)]
    index = np.ix_(geometry.index, geometry.index)
    return Similarity(*(table[index] for table in tables))


def overlaps(geometry: Geometry) -> Array:
    """The `overlap` of `principal_angles`: the squares of all inner products of two bases, over the smaller rank.

    Cost: the product of the stacked bases with themselves.

    >>> import forgetting as fg
    >>> overlaps(fg.families.two_lines(np.pi / 3).geometry).round(6).tolist()
    [[1.0, 0.25], [0.25, 1.0]]
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    blocks = [geometry.block(m) for m in range(geometry.num_distinct)]
    sums = np.stack([geometry.per_task(((geometry.rows[b] @ geometry.rows.T) ** 2).sum(axis=0)) for b in blocks])
    smaller = np.minimum.outer(geometry.ranks, geometry.ranks)
    overlap = np.clip(np.divide(sums, smaller, out=np.zeros_like(sums), where=smaller > 0), 0.0, 1.0)
    np.fill_diagonal(overlap, 1.0)
    return np.asarray(overlap[np.ix_(geometry.index, geometry.index)])


def solution_cosines(geometry: Geometry) -> Array:
    """The cosine of the angle between the least-norm solutions X_m^+ y_m of each pair of tasks, T x T.

    A task whose solution is 0 has the cosine 0 with all others. With several outputs, solutions are d x c matrices.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 1.0]], [[0.0, 1.0]]], [[1.0], [2.0], [-3.0]])
    >>> solution_cosines(tasks.geometry).round(3).tolist()
    [[1.0, 0.707, 0.0], [0.707, 1.0, -0.707], [0.0, -0.707, 1.0]]
    """
    as_kind(geometry, Geometry, "the geometry of tasks")
    count = geometry.num_distinct
    solved = geometry.targets + geometry.solution @ geometry.rows.T
    blocks = [geometry.block(m) for m in range(count)]
    points = np.stack([(solved[..., block] @ geometry.rows[block]).ravel() for block in blocks])
    sizes = np.linalg.norm(points, axis=1)
    units = points / np.where(sizes > 0, sizes, 1.0)[:, None]
    cosines = np.clip(units @ units.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return np.asarray(cosines[np.ix_(geometry.index, geometry.index)])


def _squared(cosines: Array) -> Array:
    """cos^2 of the principal angles between two row spaces, largest first, from the products of their bases."""
    if min(cosines.shape) == 1:
        squares = np.array([np.sum(cosines**2)])
    else:
        small = cosines @ cosines.T if cosines.shape[0] <= cosines.shape[1] else cosines.T @ cosines
        squares = np.linalg.eigvalsh(small)[::-1]
    return np.asarray(np.clip(squares, 0.0, 1.0))


def _degrees(squared: float) -> float:
    return float(np.degrees(np.arccos(np.sqrt(squared))))
