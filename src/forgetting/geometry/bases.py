"""The pieces of a reduction that expectations are computed from, each with a bound on its error.

`plain_bases` takes them as float64 found them. `precise_bases` finds them once more in numbers of two floats, where the
data enter as the exact numbers that their floats are: subspaces that differ by an angle theta are then told apart to
1e-31 / theta, and labels that no w fits are seen as such. Only ranks are taken from float64 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetting import _twofold as twofold
from forgetting._arrays import Array, IntArray, is_sparse
from forgetting._twofold import UNIT, Pair
from forgetting.geometry.rational import exact_rank
from forgetting.geometry.reduction import Data, Frame, Geometry

__all__ = ["Bases", "plain_bases", "precise_bases"]

EPS = float(np.finfo(np.float64).eps)
CHECKED = 3e4  # products up to which labels are compared with the data over the rationals: some milliseconds
Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Bases:
    """The rows, targets and singular values of a `Geometry`, as pairs of floats, and bounds on their errors.

    Attributes:
        rounding: the relative error of one operation.
        rows: R x D, orthonormal within each task, in coordinates on the joint row space.
        squares: R squared singular values, as they enter the loss.
        solution: the offline solution, D numbers.
        leftover: R numbers c: what the solution leaves of the targets; zero where that is rounding alone.
        unexplained: for each distinct task, half the squared norm of what no w can fit.
        unexplained_doubt: by how much that can be off.
        frame: the coordinates: a `Frame`, or D x d orthonormal rows as pairs of floats, or None for the user's own.
        turned: for each distinct task, by what angle its row space can be off.
        misread: for each distinct task, what its rows can be off by, relative to its norm.
        unsolved: |U (solution - the true one)| is at most this.
        misplaced: |solution - the true one| is at most this.
        weakest: the least singular value of the rows.
        dropped: what of the rows was taken for rounding when ranks were decided, relative to them, and is there in the
            data as they were given; 0 where nothing was, or where float64 cannot tell.
        size: |solution| + |targets|, the scale of errors that stay when z falls; 0 where one w is known to solve all
            tasks.
    """

    rounding: float
    rows: Pair
    squares: Pair
    solution: Pair
    leftover: Pair
    unexplained: Pair
    unexplained_doubt: Array
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
        if isinstance(self.frame, Frame):
            return self.frame.down(w0) - self.solution[0], np.zeros(len(self.solution[0]))
        point: Pair = (np.ascontiguousarray(w0, dtype=np.float64), np.zeros(len(w0)))
        if self.frame is not None:
            high, low = twofold.products(*self.frame, point[0][None], point[1][None])
            point = high[:, 0], low[:, 0]
        high, low = twofold.sub(*point, *self.solution)
        return high, low


def plain_bases(geometry: Geometry) -> Bases:
    """What float64 found."""
    rows, sigma, solution, leftover = geometry.rows, geometry.sigma, geometry.solution, geometry.targets
    owner = geometry.owner
    # rounding errors of many terms are taken to add up like the root of their number
    slips = np.full(geometry.num_distinct, (4 + np.sqrt(geometry.frame.dim + len(sigma)) / 4) * EPS)
    turned = 2 * slips * geometry.conditions
    targets = leftover + rows @ solution
    slack = _slack(targets, solution, turned, owner, (4 + np.sqrt(geometry.dim)) * EPS)
    consistent = len(sigma) == geometry.dim or bool(np.all(np.abs(leftover) <= slack))
    return _bounded(
        rounding=EPS,
        rows=(rows, np.zeros_like(rows)),
        squares=(sigma**2, np.zeros_like(sigma)),
        solution=(solution, np.zeros_like(solution)),
        leftover=(np.zeros_like(leftover) if consistent else leftover, np.zeros_like(leftover)),
        unexplained=(geometry.unexplained, np.zeros_like(geometry.unexplained)),
        fits=geometry.full,
        label_norms=geometry.label_norms,
        frame=geometry.frame,
        turned=turned,
        misread=slips,
        slack=slack,
        size=float(np.linalg.norm(solution) + np.linalg.norm(targets)),
        dropped=0.0,
        known=len(sigma) == geometry.dim,  # independent directions: some w solves all tasks whatever the labels are
    )


def precise_bases(geometry: Geometry, data: Data) -> Bases | None:
    """What numbers of two floats find; None where even they are too few."""
    # copies: a read-only array is another type for compiled code
    matrices = [np.array(one.toarray() if is_sparse(one) else one, dtype=np.float64) for one in data.matrices]
    labels, parts, sigma, offsets, dim = data.labels, data.divisors, geometry.sigma, geometry.offsets, geometry.dim
    width = matrices[0].shape[1]
    ranks = np.diff(offsets)
    frame, missed = (None, [np.zeros(len(matrix)) for matrix in matrices])
    if dim < width:
        found = _frame(matrices, dim)
        if found is None:
            return None
        frame, missed = found
    checked = sum(len(matrix) for matrix in matrices) * width**2 <= CHECKED
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
        # labels that fit to 31 digits, less what the condition number costs, fit
        small = np.sqrt(2 * max(task[1][0], 0.0)) <= 4 * rounded[-1] * np.linalg.norm(label)
        unexplained.append((0.0, 0.0) if fits[-1] or (small and not checked) else task[1])
    rows, squares, targets = (
        (np.concatenate([block[i][0] for block in blocks]), np.concatenate([block[i][1] for block in blocks]))
        for i in range(3)
    )
    owner = np.repeat(np.arange(len(ranks)), ranks)
    halves = (np.array([high for high, _ in unexplained]), np.array([low for _, low in unexplained]))
    solution, leftover, slack = _solve(rows, targets, np.array(rounded), owner)
    if not np.isfinite(solution[0]).all():  # 31 digits find fewer directions than float64 decided
        return None
    dropped = float(np.max(misread, initial=0.0)) > 32 * (width + max(map(len, matrices)) + 8) * UNIT
    known = len(owner) == dim  # independent directions: some w solves all tasks, whatever the labels are
    if checked and not known and not dropped and all(fits):
        known = _fits(np.concatenate(matrices), np.concatenate(labels), dim)
    zero = known or (not checked and bool(np.all(np.abs(leftover[0]) <= slack)))
    return _bounded(
        rounding=UNIT,
        rows=rows,
        squares=twofold.div(*squares, parts[owner], np.zeros(len(owner))),
        solution=solution,
        leftover=twofold.zeros(len(owner)) if zero else leftover,
        unexplained=twofold.div(*halves, parts, np.zeros(len(parts))),
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
    """Whether some w has matrix w = label, over the rationals, and the rank is the one that was decided."""
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
    """The pieces, and how far the solution is off.

    `known` says that one w is known to solve all tasks, and `fits` which tasks are known to be solved by some w.
    """
    spectrum = np.linalg.svd(rows[0], compute_uv=False) if rows[0].size else np.ones(1)
    weakest = max(float(spectrum[-1]), 1e-16)
    worst = float(np.max(turned, initial=0.0))
    unsolved = 2 * float(np.linalg.norm(slack)) + 2 * worst * size
    rest = float(np.linalg.norm(leftover[0]))
    missed = 16 * turned * label_norms  # of the norm of what no w can fit
    doubt = np.where(fits, 0.0, np.sqrt(2 * np.maximum(unexplained[0], 0)) * missed + missed**2)
    return Bases(
        rows=rows,
        leftover=leftover,
        unexplained=unexplained,
        unexplained_doubt=doubt,
        turned=turned,
        unsolved=unsolved,
        weakest=weakest,
        misplaced=(unsolved + 4 * worst * rest / weakest) / weakest,
        size=0.0 if known else size,
        **pieces,
    )


def _slack(targets: Array, solution: Array, turned: Array, owner: IntArray, rounding: float) -> Array:
    """What rounding alone can leave of the targets; `rounding` is that of an inner product."""
    blocks = np.sqrt(np.bincount(owner, weights=targets**2, minlength=len(turned)))
    return np.asarray(((turned + rounding) * (blocks + np.linalg.norm(solution)))[owner])


def _frame(matrices: Sequence[Array], dim: int) -> tuple[Pair, list[Array]] | None:
    """An orthonormal frame of the joint row space, and what it misses of each row, relative to the row."""
    stacked = np.concatenate(matrices)
    norms = np.max(np.abs(stacked), axis=1)
    powers = np.where(norms > 0, 2.0 ** -np.frexp(np.where(norms > 0, norms, 1.0))[1], 1.0)
    frame, low, missed = twofold.orthonormal_frame(stacked * powers[:, None], dim)
    if len(frame) < dim:
        return None
    lengths = np.linalg.norm(stacked * powers[:, None], axis=1)
    relative = np.divide(missed, lengths, out=np.zeros_like(missed), where=lengths > 0)
    # beyond rounding of the frame itself nothing is missed
    relative[relative <= 16 * stacked.shape[1] * UNIT] = 0.0
    return (frame, low), np.split(relative, np.cumsum([len(matrix) for matrix in matrices])[:-1])


def _task(
    matrix: Array, label: Array, frame: Pair | None, rank: int
) -> tuple[tuple[Pair, Pair, Pair], tuple[float, float], float] | None:
    """(basis, squared singular values, targets) of one task, half the square of what no w can fit, and what is dropped.

    The last is the largest singular value beyond the rank, relative to the largest of all.
    """
    coordinates: Pair = matrix, np.zeros_like(matrix)
    if frame is not None:
        coordinates = twofold.products(*coordinates, *frame)
    dim = coordinates[0].shape[1]
    both = np.column_stack([coordinates[0], label])
    low = np.column_stack([coordinates[1], np.zeros(len(label))])
    if len(both) > dim:
        both, low = twofold.triangle(both, low)  # its last row holds what the columns leave of the labels
    else:
        both, low = np.ascontiguousarray(both), np.ascontiguousarray(low)
    if not twofold.jacobi(both, low):
        return None
    squares = twofold.total(twofold.mul(both[:, :dim], low[:, :dim], both[:, :dim], low[:, :dim]))
    order = np.argsort(-squares[0], kind="stable")
    kept, dropped = order[:rank], order[rank:]
    if rank and not squares[0][kept[-1]] > 0:
        return None
    s, sl = squares[0][kept], squares[1][kept]
    root, root_low = twofold.root(s, sl) if rank else twofold.zeros(0)
    basis = twofold.div(both[kept, :dim], low[kept, :dim], root[:, None], root_low[:, None])
    target = twofold.div(both[kept, dim], low[kept, dim], root, root_low)
    missed = twofold.mul(both[dropped, dim], low[dropped, dim], both[dropped, dim], low[dropped, dim])
    rest, rest_low = twofold.total(missed)
    top, beyond = (np.sqrt(np.max(np.maximum(squares[0][part], 0.0), initial=0.0)) for part in (order, dropped))
    return (
        (basis, (s, sl), target),
        (0.5 * float(rest), 0.5 * float(rest_low)),
        float(beyond / top) if top > 0 else 0.0,
    )


def _solve(rows: Pair, targets: Pair, rounded: Array, owner: IntArray) -> tuple[Pair, Pair, Array]:
    """The v that minimises |U v - t|, what is left of t, and how much of that rounding alone can leave."""
    dim = rows[0].shape[1]
    v, rest = twofold.zeros(dim), targets
    for _ in range(2):  # once more with what was left: a refinement
        v = twofold.add(*v, *twofold.least_squares(*rows, *rest))
        high, low = twofold.products(*rows, v[0][None], v[1][None])
        rest = twofold.sub(*targets, high[:, 0], low[:, 0])
    return v, rest, _slack(targets[0], v[0], rounded, owner, 16 * (dim + 4) * UNIT)
