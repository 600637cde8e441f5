"""Bases, singular values and solution of a reduction with bounds on their errors, from which expectations are computed.

`plain_bases` takes these from a `Geometry`, computed in float64. `precise_bases` computes them from the data in numbers
of two floats (31 digits), where every float of the data counts as an exact number: subspaces at an angle theta are told
apart to 1e-31 / theta, and labels that no w fits are recognised. Only the ranks are those of float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from forgetting.compute import twofold
from forgetting.compute.twofold import UNIT, Pair
from forgetting.core.arrays import Array, IntArray, as_dense
from forgetting.core.numerical import EPS
from forgetting.geometry.frame import Data, Frame
from forgetting.geometry.qr import spectrum_of
from forgetting.geometry.rational import exact_rank

if TYPE_CHECKING:
    from forgetting.geometry.reduction import Geometry

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
        weakest: the least singular value of the rows that are learned.
        dropped: the relative size of the part of the data that the ranks leave out although it is not rounding; 0 if
            there is none, or if float64 cannot tell.
        size: |solution| + |targets|, the scale of the errors that remain when z tends to 0; 0 if some w is known to
            solve all tasks that are learned.
        test_size: |solution| + |targets of held-out data|.
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
    test_size: float
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
    owner, learned = geometry.owner, geometry.rows_learned
    targets = leftover + solution @ rows.T
    rows_off, labels_off = _known_to(geometry)
    turned = geometry.turned + 2 * rows_off * geometry.spans
    rounding = (4 + np.sqrt(geometry.dim)) * EPS
    slack = _slack(targets, solution, turned + labels_off, owner, rounding)
    # labels of large rows, along small singular values, unless these were computed with more digits
    slack = slack + np.where(geometry.conditions > 1, rounding * geometry.label_norms, 0.0)[owner] / sigma
    known = learned == geometry.learned_dim  # all directions are independent: some w solves all tasks, for any labels
    consistent = known or bool(np.all(np.abs(leftover[..., :learned]) <= slack[:learned]))
    return _bounded(
        geometry,
        rounding=EPS,
        rows=(rows, np.zeros(rows.shape)),  # unlike zeros_like, this takes no memory until it is written to
        squares=(sigma**2, np.zeros_like(sigma)),
        solution=(solution, np.zeros_like(solution)),
        leftover=_solved((leftover, np.zeros_like(leftover)), learned if consistent else 0),
        unexplained=(geometry.unexplained, np.zeros_like(geometry.unexplained)),
        unexplained_parts=geometry.unexplained_parts,
        fits=geometry.full,
        label_norms=geometry.label_norms,
        labels_off=labels_off,
        frame=geometry.frame,
        turned=turned,
        misread=geometry.slip + rows_off,
        slack=slack,
        targets=targets,
        dropped=0.0,
        known=known,
    )


def precise_bases(geometry: Geometry, data: Data) -> Bases | None:
    """The bases computed from the data in numbers of two floats; None if 31 digits are too few."""
    # copies: compiled code would be compiled again for read-only arrays
    matrices = [np.array(as_dense(x), dtype=np.float64) for x in data.matrices]
    lows = [np.zeros_like(matrix) for matrix in matrices]
    labels, label_lows = [np.array(label) for label in data.labels], [np.zeros(label.shape) for label in data.labels]
    rows_off, labels_off = np.zeros(len(matrices)), np.zeros(len(matrices))
    for m, root in data.roots.items():
        if root.decimals() is None:
            rows_off[m], labels_off[m] = root.rows_off, root.labels_off
            continue
        with localcontext(Context(prec=twofold.DIGITS)):
            rooted = data.decimals(m)
        (matrices[m], lows[m]), (labels[m], label_lows[m]) = (_pairs(part) for part in rooted)
    parts, sigma, offsets, dim = data.divisors, geometry.sigma, geometry.offsets, geometry.dim
    width = matrices[0].shape[1]
    ranks, count, learned, own = np.diff(offsets), geometry.num_learned, geometry.rows_learned, geometry.learned_dim
    frame, missed = (None, [np.zeros(len(matrix)) for matrix in matrices])
    if own < width:
        framed = _frame(matrices, lows, dim, count, own)
        if framed is None:
            return None
        frame, missed = framed
    # whether labels are compared with the data over the rationals, which takes some milliseconds at this size
    checked = sum(len(matrix) for matrix in matrices) * width**2 <= 3e4
    blocks, unexplained, turned, misread, rounded, fits = [], [], [], [], [], []
    for m, matrix in enumerate(matrices):
        label = labels[m]
        rank, part = int(ranks[m]), sigma[offsets[m] : offsets[m + 1]]
        condition = float(part[0] / part[-1]) if rank else 1.0
        task = _task((matrix, lows[m]), (label, label_lows[m]), frame, rank, own if m < count else dim)
        if task is None:
            return None
        slip = 16 * (sum(matrix.shape) + 8) * UNIT
        rounded.append(4 * slip * condition + labels_off[m])
        lost = float(np.max(missed[m], initial=0.0)) + (task[2] if task[2] > 4 * slip else 0.0)
        misread.append(slip + 2 * lost + rows_off[m])
        turned.append(4 * misread[-1] * condition)
        decided = checked and (m not in data.roots or data.roots[m].scaled)
        fits.append(len(matrix) == rank or (decided and _fits(matrix, label, rank)))
        blocks.append(task[0])
        # labels count as fitted if their remainder is rounding of 31 digits times the condition number
        half, half_low = task[1]
        small = np.sqrt(2 * np.maximum(half, 0.0)) <= 4 * rounded[-1] * np.linalg.norm(label, axis=0)
        nothing = fits[-1] | (small & (not decided))
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
    solution, leftover, slack = _solve(rows, targets, np.array(rounded), owner, (learned, own))
    if not np.isfinite(solution[0]).all():  # with 31 digits there are fewer directions than float64 decided
        return None
    lost = float(np.max(misread - rows_off, initial=0.0))
    dropped = lost > 32 * (width + max(map(len, matrices)) + 8) * UNIT
    checked = checked and all(root.scaled for m, root in data.roots.items() if m < count)
    known = learned == own  # all directions are independent: some w solves all tasks, for any labels
    if checked and not known and not dropped and all(fits[:count]):
        known = _fits(np.concatenate(matrices[:count]), np.concatenate(labels[:count]), own)
    zero = known or (not checked and bool(np.all(np.abs(leftover[0][..., :learned]) <= slack[:learned])))
    return _bounded(
        geometry,
        rounding=UNIT,
        rows=rows,
        squares=twofold.div(*squares, parts[owner], np.zeros(len(owner))),
        solution=solution,
        leftover=_solved(leftover, learned if zero else 0),
        unexplained=twofold.div(halves[0], halves[1], parts, np.zeros(len(parts))),
        unexplained_parts=None if each is None else each / parts,
        fits=np.array(fits),
        label_norms=np.array([np.linalg.norm(label) for label in labels]) / np.sqrt(parts),
        labels_off=labels_off,
        frame=frame,
        turned=np.array(turned),
        misread=np.array(misread),
        slack=slack,
        targets=targets[0].T,
        known=known,
        dropped=lost if dropped else 0.0,
    )


def _known_to(geometry: Geometry) -> tuple[Array, Array]:
    """For each distinct task, bounds on the errors of the floats of rows and of labels, relative to their norms."""
    off = np.zeros((2, geometry.num_distinct))
    for m, root in {}.items() if geometry.data is None else geometry.data.roots.items():
        off[:, m] = root.rows_off, root.labels_off
    return off[0], off[1]


def _pairs(numbers: Any) -> Pair:
    """Decimal numbers as pairs of floats."""
    high, low = twofold.from_decimals(numbers.ravel().tolist())
    return high.reshape(numbers.shape), low.reshape(numbers.shape)


def _fits(matrix: Array, label: Array, rank: int) -> bool:
    """Whether the exact rank of the matrix is `rank` and some w has matrix w = label exactly."""
    return exact_rank(matrix) == rank == exact_rank(np.column_stack([matrix, label]))


def _solved(leftover: Pair, learned: int) -> Pair:
    """The leftover, whose first `learned` numbers are only rounding errors and become zero."""
    high, low = leftover[0].copy(), leftover[1].copy()
    high[..., :learned], low[..., :learned] = 0.0, 0.0
    return high, low


def _bounded(
    geometry: Geometry,
    *,
    rows: Pair,
    leftover: Pair,
    unexplained: Pair,
    fits: Flags,
    label_norms: Array,
    labels_off: Array,
    turned: Array,
    slack: Array,
    targets: Array,
    solution: Pair,
    known: bool,
    **pieces: Any,
) -> Bases:
    """`Bases` of these pieces, with bounds on the errors of the solution and of `unexplained`.

    `known` says whether some w is known to solve all tasks that are learned; `fits` says for each task whether some w
    is known to solve the task; `slack` bounds the leftover that rounding alone can cause.
    """
    learned, own = geometry.rows_learned, rows[0][: geometry.rows_learned, : geometry.learned_dim]
    outputs = np.sqrt(leftover[0].size / max(1, leftover[0].shape[-1]))  # the root of their number
    spectrum = spectrum_of(own)[0] if own.size else np.ones(1)
    weakest = max(float(spectrum[-1]), 1e-16)
    worst = float(np.max(turned[: geometry.num_learned], initial=0.0))
    size, test_size = (
        float(np.linalg.norm(solution[0]) + np.linalg.norm(part))
        for part in (targets[..., :learned], targets[..., learned:])
    )
    unsolved = 2 * outputs * float(np.linalg.norm(slack[:learned])) + 2 * worst * size
    # error of the norm of the part of the labels that no w can fit
    missed = np.where(fits, 0.0, 16 * turned + labels_off) * label_norms
    doubt = np.sqrt(2 * np.maximum(unexplained[0], 0)) * missed + missed**2
    return Bases(
        rows=rows,
        leftover=leftover,
        unexplained=unexplained,
        unexplained_doubt=doubt,
        turned=turned,
        unsolved=unsolved,
        weakest=weakest,
        misplaced=(unsolved + 4 * worst * float(np.linalg.norm(leftover[0][..., :learned])) / weakest) / weakest,
        size=0.0 if known else size,
        test_size=test_size,
        solution=solution,
        **pieces,
    )


def _slack(targets: Array, solution: Array, turned: Array, owner: IntArray, rounding: float) -> Array:
    """A bound on targets - U solution if only rounding causes it; `rounding` is the error of an inner product."""
    squares = targets**2 if targets.ndim == 1 else np.sum(targets**2, axis=0)
    blocks = np.sqrt(np.bincount(owner, weights=squares, minlength=len(turned)))
    return np.asarray(((turned + rounding) * (blocks + np.linalg.norm(solution)))[owner])


def _frame(
    matrices: Sequence[Array], lows: Sequence[Array], dim: int, learned: int, own: int
) -> tuple[Pair, list[Array]] | None:
    """An orthonormal frame of the joint row space, and the relative distance of each row of each task from it.

    Its first `own` vectors are a frame of the first `learned` tasks, whose distances are those from these vectors.
    """
    stacked = np.concatenate(matrices)
    norms = np.max(np.abs(stacked), axis=1)
    powers = np.where(norms > 0, 2.0 ** -np.frexp(np.where(norms > 0, norms, 1.0))[1], 1.0)
    first = sum(len(matrix) for matrix in matrices[:learned])
    small = np.concatenate(lows) * powers[:, None]
    frame, low, missed = twofold.orthonormal_frame(stacked * powers[:, None], small, dim, first, own)
    if len(frame) < dim:
        return None
    lengths = np.linalg.norm(stacked * powers[:, None], axis=1)
    relative = np.divide(missed, lengths, out=np.zeros_like(missed), where=lengths > 0)
    # distances below the rounding error of the frame count as 0
    relative[relative <= 16 * stacked.shape[1] * UNIT] = 0.0
    return (frame, low), np.split(relative, np.cumsum([len(matrix) for matrix in matrices])[:-1])


def _task(
    matrix: Pair, label: Pair, frame: Pair | None, rank: int, own: int
) -> tuple[tuple[Pair, Pair, Pair], Pair, float] | None:
    """Factorise a task in numbers of two floats; None if the rank is too high for 31 digits.

    Its coordinates beyond the first `own` are only rounding errors.

    Returns (basis, squared singular values, targets), half the squared norm of the part of the labels that no w can
    fit (of each output, where there are several), and the largest singular value beyond the rank, relative to the
    largest of all.
    """
    coordinates = matrix
    if frame is not None:
        coordinates = twofold.products(*matrix, *frame)
        coordinates[0][:, own:], coordinates[1][:, own:] = 0.0, 0.0
    dim = coordinates[0].shape[1]
    both, low = (np.column_stack(parts) for parts in zip(coordinates, label, strict=True))
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
    several = label[0].ndim == 2
    sides = slice(dim, None) if several else dim
    lengths = (root[:, None], root_low[:, None]) if several else (root, root_low)
    target = twofold.div(both[kept, sides], low[kept, sides], *lengths)
    missed = twofold.mul(both[dropped, sides], low[dropped, sides], both[dropped, sides], low[dropped, sides])
    half, half_low = twofold.total((missed[0].T, missed[1].T))
    top, beyond = (np.sqrt(np.max(np.maximum(squares[0][part], 0.0), initial=0.0)) for part in (order, dropped))
    return (
        (basis, (s, sl), target),
        (0.5 * half, 0.5 * half_low),
        float(beyond / top) if top > 0 else 0.0,
    )


def _solve(
    rows: Pair, targets: Pair, rounded: Array, owner: IntArray, learned: tuple[int, int]
) -> tuple[Pair, Pair, Array]:
    """The v that minimises |U v - t|, the remainder t - U v, and a bound on the remainder that rounding can cause.

    `learned` says how many rows U and coordinates v has; the other rows only leave remainders, with v = 0 elsewhere.
    Several outputs are columns of t, and become rows of v and of the remainder.
    """
    dim = rows[0].shape[1]
    if targets[0].ndim == 2:
        high, low = targets[0].T, targets[1].T
        columns: list[Pair] = [
            (np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in zip(high, low, strict=True)
        ]
        each = [_solve(rows, column, rounded, owner, learned) for column in columns]
        v, remainder = _stacked([solved[0] for solved in each]), _stacked([solved[1] for solved in each])
        return v, remainder, _slack(high, v[0], rounded, owner, 16 * (dim + 4) * UNIT)
    v, remainder, (count, own) = twofold.zeros(dim), targets, learned
    block = tuple(np.ascontiguousarray(part[:count, :own]) for part in rows)
    for _ in range(2):  # the second pass refines the solution
        change = twofold.least_squares(*block, *(part[:count].copy() for part in remainder))
        v = twofold.add(*v, *(np.append(part, np.zeros(dim - own)) for part in change))
        high, low = twofold.products(*rows, v[0][None], v[1][None])
        remainder = twofold.sub(*targets, high[:, 0], low[:, 0])
    return v, remainder, _slack(targets[0], v[0], rounded, owner, 16 * (dim + 4) * UNIT)


def _stacked(pairs: Sequence[Pair]) -> Pair:
    return np.array([high for high, _ in pairs]), np.array([low for _, low in pairs])
