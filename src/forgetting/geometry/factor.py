"""Factorisation of a task into orthonormal basis, singular values and targets; the rank of a task and of all tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, SQUARED
from forgetting.errors import InvalidInputError
from forgetting.geometry.qr import is_tall, parts_of, spectrum_of, triangle_of
from forgetting.geometry.row_blocks import RowBlocks


@dataclass(frozen=True)
class Tolerance:
    """The rank tolerance, relative to the largest singular value: max(shape) * eps, or its root for Gram matrices.

    `given` is the tolerance of the user, if any. `squared` says that the matrix comes from a Gram matrix. `columns` is
    the number of columns of the data before the reduction: entries of the reduced data are sums of that many products.

    >>> Tolerance(None, squared=False)((10, 4)) == 10 * EPS, Tolerance(None, squared=False, columns=50)((10, 4)) / EPS
    (True, 50.0)
    """

    given: float | None
    squared: bool
    columns: int = 0

    def size(self, shape: tuple[int, ...]) -> int:
        """The factor in front of eps."""
        return max(*shape, self.columns)

    def __call__(self, shape: tuple[int, ...]) -> float:
        if self.given is not None:
            return self.given
        return float(np.sqrt(self.size(shape) * EPS)) if self.squared else self.size(shape) * EPS

    @property
    def scales_rows(self) -> bool:
        """Whether rows are scaled to the same size before the rank is decided, so that small rows count too."""
        return self.given is None and not self.squared


class Factor(NamedTuple):
    """The factorisation X = L diag(sigma) basis of a task, with `targets` L^T y / sigma.

    `unexplained` is half the squared norm of the part of the labels that no w can fit; with several outputs it is one
    number for each, and `targets` is r x c. `conditions` holds, for each direction, the factor by which rounding errors
    of the rows are multiplied.
    """

    basis: Array
    sigma: Array
    targets: Array
    unexplained: Array
    conditions: Array


class Singular(NamedTuple):
    """X = left diag(sigma) basis, up to the rank of X; `conditions` as in `Factor`."""

    basis: Array
    sigma: Array
    left: Array
    conditions: Array


def factor_task(matrix: Array, label: Array, tolerance: Tolerance) -> Factor:
    """Decide the rank of a task and factorise the task; see `singular`.

    >>> factor = factor_task(np.array([[1.0, -1, 1], [1e12, 2e12, 3e12]]), np.zeros(2), Tolerance(None, squared=False))
    >>> len(factor.sigma), bool(factor.conditions.max() < 2)
    (2, True)
    """
    decomposed = singular(matrix, tolerance)
    targets, unexplained = split_label(decomposed.sigma, decomposed.left, label)
    return Factor(decomposed.basis, decomposed.sigma, targets, unexplained, decomposed.conditions)


class Factors(NamedTuple):
    """The factors of all tasks, stacked; `ranks` has the number of directions of each task, and `unexplained` a row."""

    basis: Array
    sigma: Array
    targets: Array
    unexplained: Array
    conditions: Array
    ranks: IntArray


def factor_tasks(matrices: Sequence[Array], labels: Sequence[Array], tolerance: Tolerance) -> Factors:
    """Factorise every task by `factor_task`; tasks of one row in a dense stack are factorised together.

    >>> rows = RowBlocks(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([0, 1, 2]))
    >>> found = factor_tasks(rows, RowBlocks(np.array([5.0, 2.0]), rows.starts), Tolerance(None, squared=False))
    >>> found.basis, found.targets, found.ranks, found.unexplained
    (array([[0.6, 0.8]]), array([1.]), array([1, 0]), array([0., 2.]))
    """
    if isinstance(matrices, RowBlocks) and isinstance(labels, RowBlocks) and len(matrices) == len(matrices.stack):
        return _factor_rows(matrices.stack, labels.stack)
    each = [factor_task(matrix, label, tolerance) for matrix, label in zip(matrices, labels, strict=True)]
    basis, sigma, targets, conditions = (
        np.concatenate([getattr(factor, name) for factor in each])
        for name in ("basis", "sigma", "targets", "conditions")
    )
    unexplained = np.array([factor.unexplained for factor in each])
    ranks = np.array([len(factor.sigma) for factor in each], dtype=np.int64)
    return Factors(basis, sigma, targets, unexplained, conditions, ranks)


def _factor_rows(rows: Array, labels: Array) -> Factors:
    """The factors of tasks of one row each."""
    norms = np.empty(len(rows))
    for part in parts_of(rows):
        norms[part] = np.linalg.norm(rows[part], axis=1)
    filled = norms > 0
    if filled.all():
        picked, values, sigma = rows, labels, norms
    else:
        picked, values, sigma = rows[filled], labels[filled], norms[filled]
    basis = np.empty_like(picked, order="C")
    for part in parts_of(picked):
        np.divide(picked[part], sigma[part, None], out=basis[part])
    unexplained = np.where(filled, 0.0, 0.5 * (labels * labels).T).T
    with np.errstate(over="ignore"):  # the caller refuses infinite targets
        targets = (values.T / sigma).T
    return Factors(basis, sigma, targets, unexplained, np.ones(len(sigma)), filled.astype(np.int64))


def singular(matrix: Array, tolerance: Tolerance) -> Singular:
    """Decide the rank of a matrix and factorise the matrix.

    If singular values differ by more than 1e4, rows are first scaled to the same size. The rank is the rank of the
    scaled rows, so that a row counts however small it is, and the error of the basis depends only on the condition
    number of the scaled rows. The singular values are those of the unscaled rows, by one-sided Jacobi rotations
    (LAPACK's gejsv), which keep the digits of small singular values.
    """
    if matrix.shape[0] == 1:
        norm = np.linalg.norm(matrix, axis=1)
        if norm[0] == 0:
            return Singular(matrix[:0], np.zeros(0), np.zeros((1, 0)), np.ones(0))
        return Singular(matrix / norm, norm, np.ones((1, 1)), np.ones(1))
    left, sigma, right = np.linalg.svd(matrix, full_matrices=False)
    top = float(np.max(sigma, initial=0.0))
    if not tolerance.scales_rows or top == 0 or sigma[-1] > 1e-4 * top:
        rank = int(np.count_nonzero(sigma > tolerance(matrix.shape) * top))
        kept = sigma[:rank]
        return Singular(right[:rank], kept, left[:, :rank], top / kept)
    sizes = np.max(np.abs(matrix), axis=1)
    scaled = np.ldexp(matrix, -np.frexp(sizes)[1][:, None])  # by powers of 2, which do not round
    _, spectrum, directions = np.linalg.svd(scaled, full_matrices=False)
    rank = int(np.count_nonzero(spectrum > tolerance(matrix.shape) * spectrum[0]))
    condition = float(spectrum[0] / spectrum[rank - 1])
    left, sigma, turn = _graded_svd(matrix @ directions[:rank].T)
    basis = turn @ directions[:rank]
    # if rows are dependent, their part along a direction may be a small difference of large numbers
    spread = sigma[0] / sigma
    return Singular(basis, sigma, left, np.minimum(spread, condition) if rank == len(matrix) else spread)


def _graded_svd(matrix: Array) -> tuple[Array, Array, Array]:
    """Singular values and vectors of a matrix of full column rank with rows of any size, to relative accuracy."""
    from scipy.linalg.lapack import dgejsv

    # joba = 2: the matrix is well conditioned up to scales of rows and columns; jobr = 0: nothing is flushed to zero
    values, left, right, work, _, info = dgejsv(matrix, joba=2, jobu=0, jobv=0, jobr=0, jobt=0, jobp=0)
    if info != 0:
        left, sigma, right = np.linalg.svd(matrix, full_matrices=False)
        return left, sigma, right
    return left[:, : len(values)], values * (work[0] / work[1]), right.T


def split_label(sigma: Array, left: Array, label: Array) -> tuple[Array, Array]:
    """Split the labels into targets in the row space and half the square of a part that no w can fit."""
    along = left.T @ label
    missed = label - left @ along
    missed_sq = 0.5 * np.einsum("i...,i...->...", missed, missed)
    # a remainder below the rounding error of the projection counts as 0
    floor = (8 * EPS * np.linalg.norm(label, axis=0)) ** 2 * len(label)
    with np.errstate(over="ignore"):  # the caller, which knows the number of the task, refuses infinite targets
        targets = (along.T / sigma).T
    return targets, np.where(missed_sq > floor, missed_sq, 0.0)


def require_targets(squares: Array, index: IntArray) -> None:
    """Raise if |c_m|^2, the square of the smallest solution of a distinct task, is too large."""
    bad = np.flatnonzero(~(squares < SQUARED))
    if bad.size:
        raise InvalidInputError(
            f"task {int(np.argmax(index == bad[0]))}: its rows are so small beside its labels that its solution "
            "overflows when squared; rescale them"
        )


def joint_directions(
    rows: Array, conditions: Array, tolerance: Tolerance
) -> tuple[Array | None, Callable[[Array], Array]]:
    """A rotation to coordinates on the joint row space (None if all are needed), and a least-squares solver.

    The rounding error of each basis row is eps times its entry of `conditions`, at most 1e-6. A direction of the joint
    row space counts if its part in some basis row is larger than the rounding error of this row. Many rows are first
    reduced to a triangle by a tree of QR factorisations, which needs no second copy of the rows.
    """
    doubt = _doubt(rows, conditions, tolerance)
    tall = is_tall(rows)
    left, singular, right = (None, *spectrum_of(rows)) if tall else np.linalg.svd(rows, full_matrices=False)
    rank = 0
    if singular.size:
        scaled, directions = spectrum_of(rows, 1 / doubt)
        rank = int(np.count_nonzero(scaled > singular[0]))
    rotation = None
    if rank < rows.shape[1]:
        rotation = directions[:rank].T if rank else np.zeros((rows.shape[1], 0))
        if not tall:
            left, singular, right = np.linalg.svd(rows @ rotation, full_matrices=False)

    def solve(rhs: Array) -> Array:
        if left is None:
            return _solve_tall(rows, rotation, rhs)
        return np.asarray(right[:rank].T @ ((left[:, :rank].T @ rhs).T / singular[:rank]).T)

    return rotation, solve


def _doubt(rows: Array, conditions: Array, tolerance: Tolerance) -> Array:
    """The rounding error of each basis row."""
    doubt = tolerance.size(rows.shape) * EPS * conditions
    return np.maximum(tolerance(rows.shape), np.minimum(1e-6, doubt))


def more_directions(known: Array, rows: Array, conditions: Array, tolerance: Tolerance) -> Array:
    """Orthonormal columns that `known` begins, and that span the basis rows too, up to their rounding errors.

    >>> known, rows = np.eye(3)[:, :1], np.array([[0.6, 0.0, 0.8], [1.0, 0.0, 0.0]])
    >>> np.abs(more_directions(known, rows, np.ones(2), Tolerance(None, squared=False))).tolist()
    [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]
    """
    if not rows.size:
        return known
    largest, rest = spectrum_of(rows)[0][0], rows
    for _ in range(2):  # the second time removes what rounding left
        rest = rest - (rest @ known) @ known.T
    scaled, directions = spectrum_of(rest, 1 / _doubt(rows, conditions, tolerance))
    added = directions[: int(np.count_nonzero(scaled > largest))].T
    return np.hstack([known, np.linalg.qr(added - known @ (known.T @ added))[0]])


def _solve_tall(rows: Array, rotation: Array | None, rhs: Array) -> Array:
    """The v that minimises |rows rotation v - rhs|, by QR of the rows beside the right-hand sides, part by part."""
    sides = rhs.reshape(len(rhs), -1)
    width = rows.shape[1] if rotation is None else rotation.shape[1]

    def part(cut: slice) -> Array:
        own = rows[cut] if rotation is None else rows[cut] @ rotation
        return np.column_stack([own, sides[cut]])

    both = triangle_of(part, parts_of(rows))
    from scipy.linalg import solve_triangular

    solution = solve_triangular(both[:width, :width], both[:width, width:])
    return np.asarray(solution.reshape(width, *rhs.shape[1:]))
