"""Geometries from data matrices, and from inner products."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray, is_sparse
from forgetting.core.memory import require_memory
from forgetting.geometry import qr
from forgetting.geometry.factor import Tolerance, factor_tasks, joint_directions, more_directions, require_targets
from forgetting.geometry.frame import Data, Frame, Rooted, RowEquations
from forgetting.geometry.qr import Matrix, dense, row_space_qr
from forgetting.geometry.reduction import Geometry
from forgetting.geometry.row_blocks import RowBlocks, offsets_of, row_sums, sizes_of, squared_rows

__all__ = ["from_data", "from_gram"]


def from_data(
    matrices: Sequence[Matrix],
    labels: Sequence[Array],
    divisors: Array,
    index: IntArray,
    rank_tol: float | None,
    exact: bool = True,
    held_out: bool = False,
    roots: Mapping[int, Rooted] | None = None,
) -> Geometry:
    """Geometry of distinct tasks X_m w = y_m; the squared loss of task m is divided by divisors[m] (1, or n_m).

    With fewer rows than columns, a QR factorisation of X^T comes first, in chunks: d x N numbers are stored once, never
    d x d. The factorisation does not square the condition number and keeps the relative size of every row. If the
    condition number is above 100, so that float64 loses more than two digits, a small problem is computed again in
    numbers of two floats. Cost O(d N min(d, N)). `exact` says whether the floats of the data are what the user
    means, or rounded, so that more digits than those of float64 would say nothing. With `held_out`, the second half of
    the tasks are held-out data of the first half. `roots` are tasks whose numbers are not exactly these floats.
    """
    dim = matrices[0].shape[1]
    columns = _active_columns(matrices)
    width = dim if columns is None else len(columns)
    sizes = sizes_of(matrices)
    num_rows = int(sizes.sum())
    basis = None
    _require_room(sizes, num_rows, width)
    weights = 1 / np.sqrt(divisors)
    reduced: Sequence[Array]
    if num_rows < width:
        basis, triangle = row_space_qr(matrices, columns)
        reduced = [np.ascontiguousarray(part.T) for part in np.split(triangle, np.cumsum(sizes)[:-1], axis=1)]
    elif isinstance(matrices, RowBlocks) and not is_sparse(matrices.stack):
        reduced = matrices
    else:
        reduced = [dense(matrix, columns) for matrix in matrices]
    reduced, values = _weighted(reduced, weights), _weighted(labels, weights)
    frame = Frame(dim=dim, basis=basis, columns=columns)
    data = Data(matrices, labels, divisors, roots or {}) if exact else None
    tolerance = Tolerance(rank_tol, squared=False, columns=width)
    geometry = _assemble(reduced, values, index, frame, tolerance, data, held_out)
    delicate = float(np.max(geometry.spans, initial=1.0)) * geometry.condition > 100
    return _refined(geometry) if delicate and geometry.refinement < 2e6 else geometry  # 2e6 products take 10 ms


def _weighted(blocks: Sequence[Array], weights: Array) -> Sequence[Array]:
    """Each block times its weight; no copy if all weights are 1."""
    if np.all(weights == 1):
        return blocks
    if isinstance(blocks, RowBlocks):
        each = np.repeat(weights, sizes_of(blocks))
        return RowBlocks((blocks.stack.T * each).T, blocks.starts)
    return [weight * block for weight, block in zip(weights, blocks, strict=True)]


def _require_room(sizes: IntArray, num_rows: int, width: int) -> None:
    """Raise if the reduction needs too much memory; the message gives an estimate of the time too.

    Memory grows like d N and time like d N min(d, N), for sparse data too.
    """
    ranks = int(np.minimum(sizes, width).sum())
    if num_rows < width:  # the basis, some N x N matrices, and a dense chunk of X
        numbers = float(width) * num_rows + 12.0 * num_rows**2 + max(2.0 * num_rows**2, qr.CHUNK_ENTRIES)
    else:
        numbers = width * (2.0 * num_rows + 4.0 * ranks)
    small = min(num_rows, width)
    seconds = (8.0 * width * num_rows * small + 60.0 * ranks * small**2) / 1.7e11  # operations a second on two cores
    require_memory(
        8 * numbers,
        f"the row spaces of {num_rows} rows with {width} columns (and roughly {seconds:.2g} seconds)",
        "use fewer rows, or give inner products: fg.KernelTasks(X @ X.T, y, groups) needs N^2 numbers for N rows",
    )


def from_gram(
    kernel: Array, labels: Array, rows_of: Sequence[IntArray], weights: Array, index: IntArray, rank_tol: float | None
) -> Geometry:
    """Geometry of tasks given by inner products; `rows_of[m]` are the rows of the kernel matrix that form task m.

    The kernel matrix is scaled to a unit diagonal, so that a task of small norm is not lost, and factorised as F F^T by
    its eigenvectors. Ranks use the root of the tolerance for data, because a Gram matrix squares singular values.
    """
    num_rows = len(kernel)
    norms = np.sqrt(np.maximum(np.diag(kernel), 0.0))
    scale = np.where(norms > 0, norms, 1.0)
    values, vectors = np.linalg.eigh(kernel / np.outer(scale, scale))
    tolerance = Tolerance(rank_tol, squared=True)
    kept = values > tolerance(kernel.shape) ** 2 * max(float(values[-1]), 0.0)
    roots = np.sqrt(values[kept])
    factor = vectors[:, kept] * roots  # num_rows x D: row i is phi(x_i) / scale_i in frame coordinates
    down = factor * scale[:, None]
    up = (vectors[:, kept] / roots) / scale[:, None]
    frame = Frame(dim=num_rows, basis=down, dual_basis=up)
    reduced = [weight * down[members] for weight, members in zip(weights, rows_of, strict=True)]
    targets = [weight * labels[members] for weight, members in zip(weights, rows_of, strict=True)]
    return _assemble(reduced, targets, index, frame, tolerance, None)


def _assemble(
    matrices: Sequence[Array],
    labels: Sequence[Array],
    index: IntArray,
    frame: Frame,
    tolerance: Tolerance,
    data: Data | None,
    held_out: bool = False,
) -> Geometry:
    """Bases, joint rank and offline solution from tasks in (possibly redundant) frame coordinates.

    Held-out data come last and only add coordinates: what is learned is computed as if there were none.
    """
    rows, sigma, target, parts, conditions, ranks = factor_tasks(matrices, labels, tolerance)
    offsets = offsets_of(ranks)
    with np.errstate(over="ignore"):
        require_targets(row_sums(squared_rows(target), offsets), index)
    unexplained = parts if parts.ndim == 1 else parts.sum(axis=1)
    learned = int(offsets[len(ranks) // 2]) if held_out else len(rows)
    rotation, solve = joint_directions(rows[:learned], conditions[:learned], tolerance)
    dim = rows.shape[1] if rotation is None else rotation.shape[1]
    if rotation is not None:
        if held_out:
            rotation = more_directions(rotation, rows[learned:], conditions[learned:], tolerance)
        rows = rows @ rotation
        rows[:learned, dim:] = 0.0
        rows = _orthonormal_blocks(rows, offsets)
        frame = _rotate(frame, rotation)
    own = rows[:learned, :dim]
    solution = solve(target[:learned])
    solution = solution + solve(target[:learned] - own @ solution)
    solution = np.concatenate([solution, np.zeros((rows.shape[1] - dim, *solution.shape[1:]))])
    leftover = target - rows @ solution
    if isinstance(labels, RowBlocks):
        label_norms = np.sqrt(row_sums(squared_rows(labels.stack), labels.starts))
    else:
        label_norms = np.array([float(np.linalg.norm(label)) for label in labels])
    worst = np.ones(len(ranks))
    np.maximum.at(worst, np.repeat(np.arange(len(ranks)), ranks), conditions)
    return Geometry(
        rows=np.ascontiguousarray(rows),
        offsets=offsets,
        sigma=sigma,
        targets=np.ascontiguousarray(leftover.T),
        unexplained=unexplained,
        index=index,
        solution=np.ascontiguousarray(solution.T),
        residuals=_residuals(offsets, sigma, leftover.T, unexplained, solution, label_norms),
        frame=frame,
        full=ranks == sizes_of(matrices),
        conditions=worst,
        label_norms=label_norms,
        row_equations=RowEquations(matrices, labels, np.ones(len(matrices)), rotation, solution.T),
        data=data,
        unexplained_parts=None if parts.ndim == 1 else np.ascontiguousarray(parts.T),
        held_out=held_out,
    )


def _refined(geometry: Geometry) -> Geometry:
    """The geometry with bases, singular values and solution computed in numbers of two floats, then rounded."""
    precise = geometry.precise
    if precise is None or geometry.data is None:
        return geometry
    dim = geometry.frame.dim
    basis = np.ascontiguousarray(precise.frame[0].T) if isinstance(precise.frame, tuple) else None
    data, weights = geometry.data, 1 / np.sqrt(geometry.data.divisors)
    solution, leftover = precise.solution[0], precise.leftover[0]
    sigma = np.sqrt(precise.squares[0])
    # a part of the labels that float64 counts as rounding stays 0
    parts = geometry.unexplained_parts
    unexplained = np.where(geometry.unexplained > 0, np.maximum(precise.unexplained[0], 0.0), 0.0)
    if parts is not None and precise.unexplained_parts is not None:
        parts = np.where(parts > 0, np.maximum(precise.unexplained_parts, 0.0), 0.0)
        unexplained = parts.sum(axis=0)
    return replace(
        geometry,
        rows=np.ascontiguousarray(precise.rows[0]),
        sigma=sigma,
        targets=leftover,
        unexplained=unexplained,
        solution=solution,
        residuals=_residuals(geometry.offsets, sigma, leftover, unexplained, solution, geometry.label_norms),
        frame=Frame(dim=dim, basis=basis),
        conditions=np.ones(geometry.num_distinct),  # each number was rounded once, at the end
        row_equations=RowEquations(data.matrices, data.labels, weights, basis, solution),
        unexplained_parts=parts,
    )


def _residuals(
    offsets: IntArray, sigma: Array, leftover: Array, unexplained: Array, solution: Array, label_norms: Array
) -> Array:
    """For each distinct task, |X_m w* - y_m| / (|X_m| |w*| + |y_m|)."""
    squares = (sigma * leftover) ** 2
    missed = np.sqrt(row_sums(squares if squares.ndim == 1 else squares.sum(axis=0), offsets) + 2 * unexplained)
    norms = np.zeros(len(unexplained))
    filled = np.diff(offsets) > 0
    norms[filled] = np.maximum.reduceat(sigma, offsets[:-1][filled]) if filled.any() else 0.0
    sizes = norms * np.linalg.norm(solution) + label_norms
    return np.divide(missed, sizes, out=np.zeros(len(sizes)), where=sizes > 0)


def _orthonormal_blocks(rows: Array, offsets: IntArray) -> Array:
    """Make the rows of each task orthonormal again: a rotation into a smaller frame costs a rounding error."""
    fixed = rows.copy()
    single = offsets[:-1][np.diff(offsets) == 1]
    if len(single):
        fixed[single] *= 1.5 - 0.5 * squared_rows(rows[single])[:, None]
    longer = np.flatnonzero(np.diff(offsets) > 1)
    for start, stop in zip(offsets[longer].tolist(), offsets[longer + 1].tolist(), strict=True):
        block = rows[start:stop]
        # a Newton step of the polar decomposition: converges quadratically to the nearest orthonormal rows
        fixed[start:stop] = 1.5 * block - 0.5 * (block @ block.T) @ block
    return fixed


def _rotate(frame: Frame, rotation: Array) -> Frame:
    basis = rotation if frame.basis is None else frame.basis @ rotation
    dual = None if frame.dual_basis is None else frame.dual_basis @ rotation
    return Frame(frame.dim, basis, dual, frame.columns)


def _active_columns(matrices: Sequence[Matrix]) -> IntArray | None:
    """The columns with a nonzero entry in some task, if all tasks are sparse; None if all columns are needed."""
    if not all(is_sparse(matrix) for matrix in matrices):
        return None
    dim = matrices[0].shape[1]
    active: NDArray[np.bool_] = np.zeros(dim, dtype=bool)
    for matrix in matrices:
        active[matrix.indices] = True
    return np.flatnonzero(active).astype(np.int64) if not active.all() else None
