"""Tasks by their own rows, in the user's coordinates: no joint row space, memory proportional to the nonzeros.

With U_m^T = L_m X_m, a linear scheme of gains g moves w by -X_m^T L_m^T (g * (L_m X_m w - c_m)): two products with the
rows of the task as they were given, sparse or dense, and two with the small matrix L_m (for a single row, 1 / |x|).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray, check_index, is_sparse, read_only, sealed
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError
from forgetting.geometry.directions import Directions, Recorded, StepGains
from forgetting.geometry.factor import Tolerance, require_targets, singular, split_label
from forgetting.geometry.qr import Matrix
from forgetting.geometry.row_blocks import RowBlocks, offsets_of, row_sums, squared_rows, stack_of

__all__ = ["OwnRows", "from_rows"]

GRADED = 1e4  # ratio of singular values beyond which L_m X_m loses too many digits, and the basis itself is kept


@dataclass(frozen=True, eq=False)
class OwnRows(Directions):
    """Directions U_m^T = L_m X_m of distinct tasks; states are iterates w (d numbers, or c x d with c outputs).

    Attributes:
        rows: N x d, the stacked X_m, CSR or dense. Tasks whose singular values differ by more than 1e4, and tasks whose
            basis takes less memory than their rows with L_m, have the basis in the place of their rows.
        starts: the rows of distinct task m are starts[m]:starts[m + 1].
        left: R x N, CSR: the matrices L_m as blocks on the diagonal.
        offsets, sigma, targets, unexplained, index: see `Directions`.
    """

    rows: Matrix
    starts: IntArray
    left: Any
    offsets: IntArray
    sigma: Array
    targets: Array
    unexplained: Array
    index: IntArray

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: sealed(value) for name, value in state.items()})

    def start(self, w0: Array) -> Array:
        return w0.copy() if self.outputs is None else np.ascontiguousarray(w0.T)

    def lift(self, states: Array, w0: Array) -> Array:
        return states if self.outputs is None else np.swapaxes(states, -1, -2)

    def errors(self, states: Array) -> Array:
        points = states.reshape(-1, states.shape[-1]).T
        along = self.left @ np.asarray(self.rows @ points)
        return np.ascontiguousarray(along.T).reshape(*states.shape[:-1], len(self.sigma)) - self.targets

    def project(self, task: int, state: Array) -> Array:
        point, loss, none = state.copy(), np.empty(1), np.empty(0, dtype=np.int64)
        gains, order = StepGains.alike(np.ones(len(self.sigma)), 1), self.index[task : task + 1]
        parts = [(None, point)] if self.outputs is None else enumerate(point)
        for output, part in parts:
            self.advance(gains, output, order, part, Recorded(none, np.empty((0, len(part))), loss, loss))
        return point

    def advance(self, gains: StepGains, output: int | None, order: IntArray, state: Array, recorded: Recorded) -> None:
        from forgetting.compute import row_kernels

        matrix, left = row_kernels.row_arrays(self.rows), self.left
        own = self.starts, left.data, left.indptr, self.offsets
        targets = self.targets if output is None else self.targets[output]
        table, which, keep = gains
        setting = *matrix, *own, table, which, keep, targets, self.sigma
        row_kernels.advance_by_rows(*setting, order, state, *recorded)


class _OwnTask(NamedTuple):
    """A task of several rows: its directions, and L_m; `basis` if it is kept in the place of the rows, with L_m = I."""

    sigma: Array
    targets: Array
    unexplained: float
    left: Array
    basis: Matrix | None


def from_rows(
    matrices: Sequence[Matrix], labels: Sequence[Array], divisors: Array, index: IntArray, rank_tol: float | None
) -> OwnRows:
    """Own rows of distinct tasks X_m w = y_m; the squared loss of task m is divided by divisors[m] (1, or n_m).

    Ranks are decided as in `from_data`. Cost: a pass over single rows; for a task of n rows with c nonzero columns
    O(n c min(n, c)), and n min(n, c) numbers at most for L_m.
    """
    from scipy.sparse import csr_array

    rows, values = stack_of(matrices), stack_of(labels)
    if is_sparse(rows):
        try:
            check_index(rows.data, rows.indices, rows.indptr, rows.shape)  # compiled code reads w at these columns
        except ValueError as error:
            raise InvalidInputError(f"X: not a valid CSR array ({error}); make it again from its entries") from None
    starts = offsets_of([len(label) for label in labels]) if not isinstance(labels, RowBlocks) else labels.starts
    sizes, weights = np.diff(starts), 1 / np.sqrt(divisors)
    several, first = np.flatnonzero(sizes > 1).tolist(), starts[:-1]
    # tasks of one row, all at once; what is computed here for other tasks is replaced below
    norms = np.sqrt(squared_rows(rows))[first]
    ranks = (norms > 0).astype(np.int64)
    single = np.flatnonzero((sizes == 1) & (norms > 0))
    tasks = _tasks_of_several_rows(RowBlocks(rows, starts), RowBlocks(values, starts), weights, rank_tol, several)
    ranks[several] = [len(task.sigma) for task in tasks]
    kept = {m: task.basis for m, task in zip(several, tasks, strict=True) if task.basis is not None}
    if kept:
        rows = stack_of([kept.get(m, block) for m, block in enumerate(RowBlocks(rows, starts))])
        sizes[list(kept)] = ranks[list(kept)]
        starts = offsets_of(sizes)
    offsets = offsets_of(ranks)
    left_at = offsets_of(np.repeat(sizes, ranks))
    sigma, left, targets = np.empty(offsets[-1]), np.empty(left_at[-1]), np.empty((offsets[-1], *values.shape[1:]))
    unexplained = 0.5 * squared_rows(values[first]) * weights**2
    at = offsets[single]
    sigma[at], left[left_at[at]], unexplained[single] = norms[single] * weights[single], 1 / norms[single], 0.0
    with np.errstate(over="ignore"):  # infinite targets are refused below
        targets[at] = (values[first[single]].T / norms[single]).T
    for m, task in zip(several, tasks, strict=True):
        a, b = int(offsets[m]), int(offsets[m + 1])
        sigma[a:b], targets[a:b], unexplained[m] = task.sigma, task.targets, task.unexplained
        left[left_at[a] : left_at[b]] = task.left.ravel()
    with np.errstate(over="ignore"):
        require_targets(row_sums(squared_rows(targets), offsets), index)
    # the entries of a row of L have the columns of its task, one after another
    columns = np.arange(len(left)) + np.repeat(np.repeat(starts[:-1], ranks) - left_at[:-1], np.diff(left_at))
    return OwnRows(
        rows=sealed(rows),
        starts=read_only(starts),
        left=sealed(csr_array((left, columns, left_at), shape=(len(sigma), int(starts[-1])))),
        offsets=read_only(offsets),
        sigma=read_only(sigma),
        targets=read_only(np.ascontiguousarray(targets.T)),
        unexplained=read_only(unexplained),
        index=read_only(index),
    )


def _tasks_of_several_rows(
    matrices: RowBlocks, labels: RowBlocks, weights: Array, rank_tol: float | None, which: list[int]
) -> list[_OwnTask]:
    """The factorisation of each of the tasks `which`."""
    if not which:
        return []
    sizes = np.diff(matrices.starts)[which].astype(np.float64)
    rows = matrices.stack
    width = int(np.count_nonzero(np.bincount(rows.indices))) if is_sparse(rows) else rows.shape[1]
    require_memory(
        12 * float(sizes @ np.minimum(sizes, width)) + 32 * float(sizes.max()) * width,
        f"the factors of {len(which)} tasks of up to {sizes.max():g} rows with {width} columns",
        "use tasks of fewer rows",
    )
    tolerance = Tolerance(rank_tol, squared=False, columns=width)
    return [_factored(matrices[m], labels[m], float(weights[m]), tolerance) for m in which]


def _factored(matrix: Matrix, label: Array, weight: float, tolerance: Tolerance) -> _OwnTask:
    columns, block = _filled_columns(matrix)
    decomposed = singular(weight * block, tolerance)
    targets, unexplained = split_label(decomposed.sigma, decomposed.left, weight * label)
    rank, size = len(decomposed.sigma), len(block)
    given = len(matrix.data) if is_sparse(matrix) else matrix.size
    left, basis = weight * decomposed.left.T / decomposed.sigma[:, None], None
    if rank and (decomposed.sigma[0] > GRADED * decomposed.sigma[-1] or decomposed.basis.size <= given + rank * size):
        left, basis = np.eye(rank), decomposed.basis
        if is_sparse(matrix):
            from scipy.sparse import csr_array

            at = np.arange(0, basis.size + 1, len(columns))
            basis = csr_array((basis.ravel(), np.tile(columns, rank), at), shape=(rank, matrix.shape[1]))
    return _OwnTask(decomposed.sigma, targets, float(np.sum(unexplained)), left, basis)


def _filled_columns(matrix: Matrix) -> tuple[IntArray, Array]:
    """The columns with an entry in some row, and these columns as a dense array."""
    if not is_sparse(matrix):
        return np.arange(matrix.shape[1]), matrix
    columns, place = np.unique(matrix.indices, return_inverse=True)
    block = np.zeros((matrix.shape[0], len(columns)))
    block[np.repeat(np.arange(len(block)), np.diff(matrix.indptr)), place] = matrix.data
    return columns, block
