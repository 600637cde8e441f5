"""Certificates: nonnegative combinations of rows that are 0 up to rounding."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS, numerical_rank

SLACK = 8.0  # rounding errors that count as one: rows were scaled, and their weights are computed numbers


def rounding(dim: int) -> float:
    """The share of sum_j |x_j| that rounding may leave of sum_j x_j, where the x_j have `dim` coordinates."""
    return SLACK * EPS * (dim + 1)


def vanishes(rows: Array, y: Array) -> bool:
    """Whether sum_i y_i rows_i is 0 up to rounding in every column, each measured by its own terms.

    A column that is small in all rows can separate them, so that it must not be measured by the large ones.

    >>> vanishes(np.array([[1.0, 1e-9], [-1.0, 1e-9]]), np.ones(2))
    False
    >>> vanishes(np.array([[0.1, 3e-9], [-0.3, -9e-9]]), np.array([3.0, 1.0]))
    True
    """
    support = np.flatnonzero(y)
    terms = rows[support] * y[support, None]
    allowed = rounding(rows.shape[1]) * np.sum(np.abs(terms), axis=0)
    return support.size > 0 and bool(np.all(np.abs(np.sum(terms, axis=0)) <= allowed))


def refined(rows: Array, y: Array) -> Array:
    """The weights y, changed by small factors such that their combination vanishes; y itself if no change is found.

    The given weights are accurate for the largest columns; here every column counts alike. Weights that are rounding
    errors can stand alone in a column, so that the change is also tried without these weights.

    >>> rows = np.array([[1.0, 1e-9], [-1.0, -1e-9], [0.0, 1.0]])
    >>> y = np.array([1.0, 1.01, 1e-18])
    >>> vanishes(rows, y), vanishes(rows, refined(rows, y))
    (False, True)
    """
    sizes = y * np.max(np.abs(rows), axis=1)
    for least in (0.0, 64 * EPS):
        better = np.where(sizes > least * np.max(sizes), y, 0.0)
        if vanishes(rows, better):
            return better
        better = _corrected(rows, better)
        if vanishes(rows, better):
            return better
    return y


def _corrected(rows: Array, y: Array) -> Array:
    """The weights y with the least change by factors that makes all columns 0; y itself if the change is not small."""
    support = np.flatnonzero(y)
    weights = y[support].astype(np.float64)
    for _ in range(3):  # the first time leaves its own rounding
        terms = rows[support] * weights[:, None]
        sizes = np.sum(np.abs(terms), axis=0)
        terms /= np.where(sizes > 0, sizes, 1.0)
        factors = np.linalg.lstsq(terms.T, -terms.sum(axis=0), rcond=None)[0]
        if not np.max(np.abs(factors), initial=0.0) < 0.5:
            return y  # all weights 0 is a combination, too, and no use
        weights *= 1 + factors
    better = np.zeros(len(y))
    better[support] = weights
    return better


def best_combination(rows: Array, levels: Array) -> Array:
    """The y >= 0 with sum y = 1 and rows^T y = 0 of the largest levels.y, or 0 if there is none.

    A linear programme in an orthonormal basis of all y with rows^T y = 0: its tolerances then do not depend on how
    nearly parallel the rows are. For rows in thousands at most, as it costs O(n^3).

    >>> best_combination(np.array([[1.0], [-1.0], [-2.0]]), np.array([2.0, -1.0, -5.0])).round(9)
    array([0.5, 0.5, 0. ])
    """
    from scipy.optimize import linprog

    largest = np.max(np.abs(rows), axis=0)
    _, values, basis = np.linalg.svd((rows / np.where(largest > 0, largest, 1.0)).T)
    rank = numerical_rank(values, rows.shape)
    free, none = basis[rank:].T, np.zeros(len(rows))
    # the basis is off by the rounding of the rows, relative to the smallest singular value that is not 0
    error = min(1e-3, 1e-9 + 8 * EPS * float(values[0] / values[rank - 1]))
    if free.shape[1] == 0:
        return none
    size = float(np.max(np.abs(levels))) or 1.0
    programme = linprog(
        -(levels / size) @ free,
        A_ub=-free,
        b_ub=np.full(len(rows), error),
        A_eq=free.sum(axis=0)[None],
        b_eq=np.ones(1),
        bounds=(None, None),
    )
    if programme.status != 0:
        return none
    y = free @ programme.x
    return np.where(y > 2 * error, y, 0.0)
