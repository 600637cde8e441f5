"""Bases, singular values and solution of a reduction with bounds on their errors, from which expectations are computed.

`plain_bases` takes these from a `Geometry`, computed in float64. `precise_bases` computes them from the data in numbers
of two floats (31 digits), where every float of the data counts as an exact number: subspaces at an angle theta are told
apart to 1e-31 / theta, and labels that no w fits are recognised. Only the ranks are those of float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetting import _twofold as twofold
from forgetting._arrays import EPS, Array, IntArray, is_sparse
from forgetting._twofold import UNIT, Pair
from forgetting.geometry.rational import exact_rank
from forgetting.geometry.reduction import Data, Frame, Geometry
from forgetting.geometry.triangles import spectrum_of

__all__ = ["Bases", "plain_bases", "precise_bases"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bases:
    """The rows, targets and singular values of a `Geometry`, as pairs of floats, and bounds on their errors.

    Attributes:
        rounding: the relative error of a single operation.
        rows: R x D, orthonormal within each task, in coordinates on the joint row space.
        squares: R squared singular values, as they enter the loss.
        solution: the offline solution, D numbers.
        leftover: R numbers c = targets - U solution; 0 where these are rounding errors only. With several outputs,
            `solution` and `leftover` have one row an output.
        unexplained: for each distinct task, half the squared norm of the part of its labels that no w can fit.
        unexplained_doubt: a bound on the error of `unexplained`.
        unexplained_parts: `unexplained` of each of several outputs.
        frame: the coordinates: a `Frame`, or D x d orthonormal rows as pairs of floats, or None for the user's own.
        turned: for each distinct task, a bound on the angle (radians) between the computed and the true row space.
        misread: for each distinct task, a bound on the error of its rows, relative to its norm.
        unsolved: a bound on |U (solution - true solution)|.
        misplaced: a bound on |solution - true solution|.
        weakest: the least singular value of the rows.
        dropped: the relative size of the part of the data that the ranks leave out although it is not rounding; 0 if
            there is none, or if float64 cannot tell.
        size: |solution| + |targets|, the scale of the errors that remain when z tends to 0; 0 if some w is known to
            solve all tasks.
    """

    rounding: float
    rows: Pair
    squares: Pair
    solution: Pair
    leftover: Pair
    unexplained: Pair
    unexplained_doubt: Array
    unexplained_parts: Array | None
    frame: Frame | Pair | None
    turned: Array
    misread: Array
    unsolved: float
    misplaced: float
    weakest: float
    size: float
    dropped: float

    def start(self, w0: Array) -> Pair:
        """z_0 for a start w_0 in the user's coordinates."""
        several = self.solution[0].ndim == 2
        if isinstance(self.frame, Frame):
            down = self.frame.down_all(w0) if several else self.frame.down(w0)
            return down - self.solution[0], np.zeros_like(self.solution[0])
        rows = np.ascontiguousarray(np.atleast_2d(w0.T), dtype=np.float64)
        point: Pair = rows, np.zeros_like(rows)
        if self.frame is not None:
            high, low = twofold.products(*self.frame, *point)
            point = np.ascontiguousarray(high.T), np.ascontiguousarray(low.T)
        if not several:
            point = point[0][0], point[1][0]
        high, low = twofold.sub(*point, *self.solution)
        return high, low


def plain_bases(geometry: Geometry) -> Bases:
    """The bases of a `Geometry` as float64 computed them, with bounds on their errors."""
    rows, sigma, solution, leftover = geometry.rows, geometry.sigma, geometry.solution, geometry.targets
    owner = geometry.owner
    # rounding errors of n terms are assumed to add up like the root of n
    slips = np.full(geometry.num_distinct, (4 + np.sqrt(geometry.frame.dim + len(sigma)) / 4) * EPS)
    turned = 2 * slips * geometry.conditions
    targets = leftover + solution @ rows.T
    slack = _slack(targets, solution, turned, owner, (4 + np.sqrt(geometry.dim)) * EPS)
    consistent = len(sigma) == geometry.dim or bool(np.all(np.abs(leftover) <= slack))
    return _bounded(
        rounding=EPS,
        rows=(rows, np.zeros(rows.shape)),  # unlike zeros_like, this takes no memory until it is written to
        squares=(sigma**2, np.zeros_like(sigma)),
        solution=(solution, np.zeros_like(solution)),
        leftover=(np.zeros_like(leftover) if consistent else leftover, np.zeros_like(leftover)),
        unexplained=(geometry.unexplained, np.zeros_like(geometry.unexplained)),
        unexplained_parts=geometry.unexplained_parts,
        fits=geometry.full,
        label_norms=geometry.label_norms,
        frame=geometry.frame,
        turned=turned,
        misread=slips,
        slack=slack,
        size=float(np.linalg.norm(solution) + np.linalg.norm(targets)),
        dropped=0.0,
        known=len(sigma) == geometry.dim,  # all directions are independent: some w solves all tasks, for any labels
    )


def precise_bases(geometry: Geometry, data: Data) -> Bases | None:
    """The bases computed from the data in numbers of two floats; None if 31 digits are too few."""
    # copies: compiled code would be compiled again for read-only arrays
    matrices = [np.array(x.toarray() if is_sparse(x) else x, dtype=np.float64) for x in data.matrices]
    labels, parts, sigma, offsets, dim = data.labels, data.divisors, geometry.sigma, geometry.offsets, geometry.dim
    width = matrices[0].shape[1]
    ranks = np.diff(offsets)
    frame, missed = (None, [np.zeros(len(matrix)) for matrix in matrices])
    if dim < width:
        framed = _frame(matrices, dim)
        if framed is None:
            return None
        frame, missed = framed
    # whether labels are compared with the data over the rationals, which takes some milliseconds at this size
    checked = sum(len(matrix) for matrix in matrices) * width**2 <= 3e4
    blocks, unexplained, turned, misread, rounded, fits = [], [], [], [], [], []
    for m, (matrix, label) in enumerate(zip(matrices, labels, strict=True)):
        rank, part = int(ranks[m]), sigma[offsets[m] : offsets[m + 1]]
        condition = float(part[0] / part[-1]) if rank else 1.0
        task = _task(matrix, label, frame, rank)
        if task is None:
            return None
        slip = 16 * (sum(matrix.shape) + 8) * UNIT
        rounded.append(4 * slip * condition)
        lost = float(np.max(missed[m], initial=0.0)) + (task[2] if task[2] > 4 * slip else 0.0)
        misread.append(slip + 2 * lost)
        turned.append(4 * misread[-1] * condition)
        fits.append(len(matrix) == rank or (checked and _fits(matrix, label, rank)))
        blocks.append(task[0])
        # labels count as fitted if their remainder is rounding of 31 digits times the condition number
        half, half_low = task[1]
        small = np.sqrt(2 * np.maximum(half, 0.0)) <= 4 * rounded[-1] * np.linalg.norm(label, axis=0)
        nothing = fits[-1] | (small & (not checked))
        unexplained.append((np.where(nothing, 0.0, half), np.where(nothing, 0.0, half_low)))
    rows, squares, targets = (
        (np.concatenate([block[i][0] for block in blocks]), np.concatenate([block[i][1] for block in blocks]))
        for i in range(3)
    )
    owner = np.repeat(np.arange(len(ranks)), ranks)
    halves = (np.array([high for high, _ in unexplained]), np.array([low for _, low in unexplained]))
    each = None
    if halves[0].ndim == 2:  # several outputs
        each, halves = halves[0].T, twofold.total(halves)
    solution, leftover, slack = _solve(rows, targets, np.array(rounded), owner)
    if not np.isfinite(solution[0]).all():  # with 31 digits there are fewer directions than float64 decided
        return None
    dropped = float(np.max(misread, initial=0.0)) > 32 * (width + max(map(len, matrices)) + 8) * UNIT
    known = len(owner) == dim  # all directions are independent: some w solves all tasks, for any labels
    if checked and not known and not dropped and all(fits):
        known = _fits(np.concatenate(matrices), np.concatenate(labels), dim)
    zero = known or (not checked and bool(np.all(np.abs(leftover[0]) <= slack)))
    return _bounded(
        rounding=UNIT,
        rows=rows,
        squares=twofold.div(*squares, parts[owner], np.zeros(len(owner))),
        solution=solution,
        leftover=twofold.zeros(*leftover[0].shape) if zero else leftover,
        unexplained=twofold.div(halves[0], halves[1], parts, np.zeros(len(parts))),
        unexplained_parts=None if each is None else each / parts,
        fits=np.array(fits),
        label_norms=np.array([np.linalg.norm(label) for label in labels]) / np.sqrt(parts),
        frame=frame,
        turned=np.array(turned),
        misread=np.array(misread),
        slack=slack,
        size=float(np.linalg.norm(solution[0]) + np.linalg.norm(targets[0])),
        known=known,
        dropped=float(np.max(misread, initial=0.0)) if dropped else 0.0,
    )


def _fits(matrix: Array, label: Array, rank: int) -> bool:
    """Whether the exact rank of the matrix is `rank` and some w has matrix w = label exactly."""
    return exact_rank(matrix) == rank == exact_rank(np.column_stack([matrix, label]))


def _bounded(
    *,
    rows: Pair,
    leftover: Pair,
    unexplained: Pair,
    fits: Flags,
    label_norms: Array,
    turned: Array,
    slack: Array,
    size: float,
    known: bool,
    **pieces: Any,
) -> Bases:
    """`Bases` of these pieces, with bounds on the errors of the solution and of `unexplained`.

    `known` says whether some w is known to solve all tasks; `fits` says for each task whether some w is known to solve
    the task; `slack` bounds the leftover that rounding alone can cause.
    """
    outputs = np.sqrt(leftover[0].size / max(1, leftover[0].shape[-1]))  # the root of their number
    spectrum = spectrum_of(rows[0])[0] if rows[0].size else np.ones(1)
    weakest = max(float(spectrum[-1]), 1e-16)
    worst = float(np.max(turned, initial=0.0))
    unsolved = 2 * outputs * float(np.linalg.norm(slack)) + 2 * worst * size
    missed = 16 * turned * label_norms  # error of the norm of the part of the labels that no w can fit
    doubt = np.where(fits, 0.0, np.sqrt(2 * np.maximum(unexplained[0], 0)) * missed + missed**2)
    return Bases(
        rows=rows,
        leftover=leftover,
        unexplained=unexplained,
        unexplained_doubt=doubt,
        turned=turned,
        unsolved=unsolved,
        weakest=weakest,
        misplaced=(unsolved + 4 * worst * float(np.linalg.norm(leftover[0])) / weakest) / weakest,
        size=0.0 if known else size,
        **pieces,
    )


def _slack(targets: Array, solution: Array, turned: Array, owner: IntArray, rounding: float) -> Array:
    """A bound on targets - U solution if only rounding causes it; `rounding` is the error of an inner product."""
    squares = targets**2 if targets.ndim == 1 else np.sum(targets**2, axis=0)
    blocks = np.sqrt(np.bincount(owner, weights=squares, minlength=len(turned)))
    return np.asarray(((turned + rounding) * (blocks + np.linalg.norm(solution)))[owner])


def _frame(matrices: Sequence[Array], dim: int) -> tuple[Pair, list[Array]] | None:
    """An orthonormal frame of the joint row space, and the relative distance of each row of each task from it."""
    stacked = np.concatenate(matrices)
    norms = np.max(np.abs(stacked), axis=1)
    powers = np.where(norms > 0, 2.0 ** -np.frexp(np.where(norms > 0, norms, 1.0))[1], 1.0)
    frame, low, missed = twofold.orthonormal_frame(stacked * powers[:, None], dim)
    if len(frame) < dim:
        return None
    lengths = np.linalg.norm(stacked * powers[:, None], axis=1)
    relative = np.divide(missed, lengths, out=np.zeros_like(missed), where=lengths > 0)
    # distances below the rounding error of the frame count as 0
    relative[relative <= 16 * stacked.shape[1] * UNIT] = 0.0
    return (frame, low), np.split(relative, np.cumsum([len(matrix) for matrix in matrices])[:-1])


def _task(
    matrix: Array, label: Array, frame: Pair | None, rank: int
) -> tuple[tuple[Pair, Pair, Pair], Pair, float] | None:
    """Factorise a task in numbers of two floats; None if the rank is too high for 31 digits.

    Returns (basis, squared singular values, targets), half the squared norm of the part of the labels that no w can
    fit (of each output, where there are several), and the largest singular value beyond the rank, relative to the
    largest of all.
    """
    coordinates: Pair = matrix, np.zeros_like(matrix)
    if frame is not None:
        coordinates = twofold.products(*coordinates, *frame)
    dim = coordinates[0].shape[1]
    both = np.column_stack([coordinates[0], label])
    low = np.column_stack([coordinates[1], np.zeros(label.shape)])
    if len(both) > dim:
        both, low = twofold.triangle(both, low)  # the last rows are the part of the labels outside the column space
    else:
        both, low = np.ascontiguousarray(both), np.ascontiguousarray(low)
    if not twofold.jacobi(both, low, dim):
        return None
    squares = twofold.total(twofold.mul(both[:, :dim], low[:, :dim], both[:, :dim], low[:, :dim]))
    order = np.argsort(-squares[0], kind="stable")
    kept, dropped = order[:rank], order[rank:]
    if rank and not squares[0][kept[-1]] > 0:
        return None
    s, sl = squares[0][kept], squares[1][kept]
    root, root_low = twofold.root(s, sl) if rank else twofold.zeros(0)
    basis = twofold.div(both[kept, :dim], low[kept, :dim], root[:, None], root_low[:, None])
    own = slice(dim, None) if label.ndim == 2 else dim
    lengths = (root[:, None], root_low[:, None]) if label.ndim == 2 else (root, root_low)
    target = twofold.div(both[kept, own], low[kept, own], *lengths)
    missed = twofold.mul(both[dropped, own], low[dropped, own], both[dropped, own], low[dropped, own])
    half, half_low = twofold.total((missed[0].T, missed[1].T))
    top, beyond = (np.sqrt(np.max(np.maximum(squares[0][part], 0.0), initial=0.0)) for part in (order, dropped))
    return (
        (basis, (s, sl), target),
        (0.5 * half, 0.5 * half_low),
        float(beyond / top) if top > 0 else 0.0,
    )


def _solve(rows: Pair, targets: Pair, rounded: Array, owner: IntArray) -> tuple[Pair, Pair, Array]:
    """The v that minimises |U v - t|, the remainder t - U v, and a bound on the remainder that rounding can cause.

    Several outputs are columns of t, and become rows of v and of the remainder.
    """
    dim = rows[0].shape[1]
    if targets[0].ndim == 2:
        high, low = targets[0].T, targets[1].T
        columns: list[Pair] = [
            (np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in zip(high, low, strict=True)
        ]
        each = [_solve(rows, column, rounded, owner) for column in columns]
        v, remainder = _stacked([found[0] for found in each]), _stacked([found[1] for found in each])
        return v, remainder, _slack(high, v[0], rounded, owner, 16 * (dim + 4) * UNIT)
    v, remainder = twofold.zeros(dim), targets
    for _ in range(2):  # the second pass refines the solution
        v = twofold.add(*v, *twofold.least_squares(*rows, *remainder))
        high, low = twofold.products(*rows, v[0][None], v[1][None])
        remainder = twofold.sub(*targets, high[:, 0], low[:, 0])
    return v, remainder, _slack(targets[0], v[0], rounded, owner, 16 * (dim + 4) * UNIT)


def _stacked(pairs: Sequence[Pair]) -> Pair:
    return np.array([high for high, _ in pairs]), np.array([low for _, low in pairs])
