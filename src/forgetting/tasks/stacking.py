"""Rows of tasks out of one array, and sparse tasks in one CSR array: checked together, and stored once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from forgetting._arrays import (
    SQUARED,
    Array,
    IntArray,
    any_array,
    group_rows,
    is_sparse,
    one_column,
    read_only,
    sealed,
)
from forgetting.errors import InvalidInputError
from forgetting.geometry import Matrix, RowBlocks, offsets_of, row_sums

__all__ = ["Stacked", "as_slice", "split_rows", "stacked"]


class Stacked(NamedTuple):
    """Distinct tasks as blocks of two stacks, and for each task the number of its distinct task."""

    matrices: RowBlocks
    labels: RowBlocks
    distinct: IntArray


def stacked(matrices: Sequence[Any], labels: Sequence[Any], copy: bool) -> Stacked | None:
    """CSR tasks that pass all checks, in one array; None for other tasks, which are to be looked at one by one.

    18,000 tasks of one row take 0.1 seconds in place of 2. With `copy=False`, a stack that is given is used as it is.

    >>> import scipy.sparse as sp
    >>> row = sp.csr_array([[1.0, 0.0, 2.0]])
    >>> stacked([row, 3 * row, row], [np.ones(1)] * 3, copy=True).distinct
    array([0, 1, 0])
    >>> stacked([row, np.ones((1, 3))], [np.ones(1)] * 2, copy=True) is None
    True
    """
    if isinstance(matrices, RowBlocks) and isinstance(labels, RowBlocks):
        given = np.arange(len(matrices))
        rows, label, starts = matrices.stack, one_column(np.asarray(labels.stack)), matrices.starts
    else:
        # objects that are given several times are read once
        pairs = list(zip(map(id, matrices), map(id, labels), strict=True))
        place = {pair: task for task, pair in reversed(list(enumerate(pairs)))}
        first = sorted(place.values())
        number = {pairs[task]: i for i, task in enumerate(first)}
        given = np.array([number[pair] for pair in pairs])
        parts, targets = [matrices[i] for i in first], [labels[i] for i in first]
        if not _are_plain(parts, targets):
            return None
        rows, label, copy = _joined(parts), one_column(np.concatenate(targets)), False
        starts = offsets_of([part.shape[0] for part in parts])
    if label.dtype.kind not in "biuf" or rows.dtype.kind not in "biuf" or not np.diff(starts).all() or 0 in rows.shape:
        return None
    rows, label = _float64(rows, copy), np.array(label, dtype=np.float64)
    if not (_are_moderate(rows.data, rows.indptr[starts]) and _are_moderate(label.T, starts)):
        return None
    return _without_clones(rows, label, starts, given)


def _are_plain(parts: list[Any], targets: list[Any]) -> bool:
    """Whether all matrices are CSR with as many columns, and all labels arrays of numbers with as many entries."""
    if not is_sparse(parts[0]) or type(targets[0]) is not np.ndarray:
        return False
    width, shape = parts[0].shape[-1], targets[0].shape[1:]
    return all(
        is_sparse(part)
        and part.format == "csr"
        and part.ndim == 2
        and part.dtype.kind in "biuf"
        and type(target) is np.ndarray
        and target.dtype.kind in "biuf"
        and 1 <= target.ndim <= 2
        and part.shape == (len(target), width)
        and target.shape[1:] == shape
        and 0 not in target.shape
        for part, target in zip(parts, targets, strict=True)
    )


def _joined(parts: list[Any]) -> Matrix:
    """CSR matrices on top of each other; several times faster than `scipy.sparse.vstack`."""
    from scipy.sparse import csr_array

    filled = [int(part.indptr[-1]) for part in parts]
    data = np.concatenate([part.data[:size] for part, size in zip(parts, filled, strict=True)])
    columns = np.concatenate([part.indices[:size] for part, size in zip(parts, filled, strict=True)])
    ends = [np.zeros(1, dtype=np.int64)]
    ends += [part.indptr[1:] + before for part, before in zip(parts, offsets_of(filled)[:-1].tolist(), strict=True)]
    return csr_array((data, columns, np.concatenate(ends)), shape=(sum(map(len, ends)) - 1, parts[0].shape[1]))


def _float64(rows: Matrix, copy: bool) -> Matrix:
    from scipy.sparse import csr_array

    made = csr_array(rows, dtype=np.float64, copy=copy)
    if not made.has_canonical_format:
        made = made.copy()  # the conversion may share arrays with the caller; the next line works in place
        made.sum_duplicates()
    return made


def _are_moderate(values: Array, starts: IntArray) -> bool:
    """Whether the squares of each part are finite and their sum neither too large nor, unless it is 0, too small."""
    with np.errstate(all="ignore"):
        squares = row_sums(values * values, starts)
        sums = squares if squares.ndim == 1 else squares.sum(axis=0)
        zero = row_sums((values != 0).astype(np.float64), starts).reshape(-1, len(sums)).sum(axis=0) == 0
        return bool(np.all((sums < SQUARED) & ((sums > 1e-290) | zero)))


def _without_clones(rows: Matrix, label: Array, starts: IntArray, given: IntArray) -> Stacked:
    known: dict[bytes, int] = {}
    number = np.empty(len(starts) - 1, dtype=np.int64)
    at, cuts = rows.indptr[starts].tolist(), starts.tolist()
    for m in range(len(number)):
        digest = hashlib.sha256(np.diff(rows.indptr[cuts[m] : cuts[m + 1] + 1]).data)
        for part in (rows.indices[at[m] : at[m + 1]], rows.data[at[m] : at[m + 1]], label[cuts[m] : cuts[m + 1]]):
            digest.update(part.data)
        number[m] = known.setdefault(digest.digest(), len(known))
    if len(known) < len(number):
        first = np.unique(number, return_index=True)[1]
        sizes = np.diff(starts)
        kept = np.flatnonzero(np.isin(np.repeat(np.arange(len(number)), sizes), first))
        rows, label, starts = rows[kept], label[kept], offsets_of(sizes[first])
    blocks = RowBlocks(sealed(rows), read_only(starts)), RowBlocks(read_only(label), read_only(starts))
    return Stacked(*blocks, number[given])


def split_rows(X: Any, y: Any, groups: Any) -> tuple[Sequence[Any], Sequence[Any], list[str]]:
    """Matrices, labels and names of the groups of rows; groups are in order of their first row.

    Sparse rows are put in the order of the groups and stay in one array, of which the matrices are blocks.

    >>> split_rows([[1.0], [2.0], [3.0]], [1, 2, 3], ["b", "a", "b"])[1:]
    ([array([1, 3]), array([2])], ['b', 'a'])
    """
    matrix = X.tocsr() if is_sparse(X) else any_array(X, "X")
    label = one_column(any_array(y, "y"))
    if matrix.ndim != 2:
        raise InvalidInputError(f"X: expected a matrix, got shape {matrix.shape}")
    if label.ndim not in (1, 2) or len(label) != matrix.shape[0]:
        raise InvalidInputError(f"X has {matrix.shape[0]} rows, but y has shape {label.shape}")
    names, members = group_rows(groups, matrix.shape[0])
    if is_sparse(matrix):
        order, starts = np.concatenate(members), offsets_of([len(rows) for rows in members])
        if not np.array_equal(order, np.arange(len(order))):
            matrix, label = matrix[order], label[order]
        return RowBlocks(matrix, starts), RowBlocks(label, starts), names
    picks = [as_slice(rows) for rows in members]
    return [matrix[pick] for pick in picks], [label[pick] for pick in picks], names


def as_slice(members: IntArray) -> slice | IntArray:
    """The row numbers as a slice if they are contiguous, so that indexing gives a view instead of a copy."""
    if members[-1] - members[0] + 1 == len(members):
        return slice(int(members[0]), int(members[-1]) + 1)
    return members
