"""The matrices and labels of tasks: checked, converted to float64, and stacked in one array where there are many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import (
    Array,
    IntArray,
    any_array,
    as_list,
    check_finite,
    fingerprint,
    is_sparse,
    one_column,
    read_only,
    real_array,
    sealed,
)
from forgetting.core.groups import Groups, group_codes
from forgetting.core.numerical import SQUARED, VANISHING
from forgetting.errors import InvalidInputError
from forgetting.geometry import Matrix, RowBlocks, offsets_of, row_sums, squared_rows

MANY = 1000  # dense tasks from which on they are stacked
CHUNK = 2**20  # entries that are read at once


class Stacked(NamedTuple):
    """Distinct tasks as blocks of two stacks, and for each task the number of its distinct task."""

    matrices: RowBlocks
    labels: RowBlocks
    distinct: IntArray


def stacked(matrices: Sequence[Any], labels: Sequence[Any], copy: bool) -> Stacked | None:
    """Tasks that pass all checks, in one array; None for other tasks, which are to be looked at one by one.

    That is for blocks of a stack, for CSR tasks, and for 1000 dense tasks or more. A million dense tasks of one row
    take a second in place of 20. With `copy=False`, a stack that is given is used as it is.

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
        if not _are_plain(parts, targets, copy):
            return None
        rows = _joined(parts) if is_sparse(parts[0]) else np.concatenate(parts)
        label, copy = one_column(np.concatenate(targets)), False
        starts = offsets_of([part.shape[0] for part in parts])
    if label.dtype.kind not in "biuf" or rows.dtype.kind not in "biuf" or not np.diff(starts).all() or 0 in rows.shape:
        return None
    rows, label = _float64(rows, copy), np.array(label, dtype=np.float64, copy=copy or None)
    if not (_are_moderate(rows, starts) and _are_moderate(label, starts)):
        return None
    return _without_clones(rows, label, starts, given)


def _are_plain(parts: list[Any], targets: list[Any], copy: bool) -> bool:
    """Whether the tasks can be stacked: all CSR or all dense, of as many columns, and labels of as many entries.

    Few dense tasks, and those of which no copy is to be made, stay as they are.
    """
    sparse = is_sparse(parts[0])
    if type(targets[0]) is not np.ndarray or not (sparse or (copy and len(parts) >= MANY)):
        return False
    width, shape = parts[0].shape[-1] if hasattr(parts[0], "shape") else 0, targets[0].shape[1:]
    return all(
        ((is_sparse(part) and part.format == "csr") if sparse else type(part) is np.ndarray)
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
    if not is_sparse(rows):
        return np.array(rows, dtype=np.float64, order="C", copy=copy or None)
    from scipy.sparse import csr_array

    made = csr_array(rows, dtype=np.float64, copy=copy)
    if not made.has_canonical_format:
        made = made.copy()  # the conversion may share arrays with the caller; the next line works in place
        made.sum_duplicates()
    return made


def _are_moderate(values: Any, starts: IntArray) -> bool:
    """Whether the squares of each task are finite and their sum neither too large nor, unless it is 0, too small."""
    with np.errstate(all="ignore"):
        sums = row_sums(squared_rows(values), starts)
    if not np.all(sums < SQUARED):  # False for NaN
        return False
    small = np.flatnonzero(sums <= VANISHING).tolist()
    stored = values.data if is_sparse(values) else values
    at = values.indptr[starts] if is_sparse(values) else starts
    return not any(stored[at[m] : at[m + 1]].any() for m in small)


def _without_clones(rows: Matrix, label: Array, starts: IntArray, given: IntArray) -> Stacked:
    """The stack without tasks that equal an earlier one, entry for entry.

    Only tasks whose sums of entries, weighted by random whole numbers modulo 2^64, are equal are compared.
    """
    sizes, count = np.diff(starts), len(starts) - 1
    sums = _weighted_sums(rows, label, starts)
    _, first, group = np.unique(sums, return_index=True, return_inverse=True)
    number = np.arange(count)
    suspects = np.flatnonzero(np.bincount(group)[group] > 1).tolist() if len(first) < count else []
    known: dict[bytes, int] = {}
    for m in suspects:
        number[m] = known.setdefault(fingerprint(*_task(rows, label, starts, m)), m)
    if (number < np.arange(count)).any():
        first = np.flatnonzero(number == np.arange(count))
        kept = np.flatnonzero(np.isin(np.repeat(np.arange(count), sizes), first))
        rows, label, starts = rows[kept], label[kept], offsets_of(sizes[first])
        place = np.empty(count, dtype=np.int64)
        place[first] = np.arange(len(first))
        number = place[number]
    blocks = RowBlocks(sealed(rows), read_only(starts)), RowBlocks(read_only(label), read_only(starts))
    return Stacked(*blocks, number[given])


def _task(rows: Matrix, label: Array, starts: IntArray, m: int) -> tuple[Matrix, Array]:
    part = slice(int(starts[m]), int(starts[m + 1]))
    return rows[part], label[part]


def _weighted_sums(rows: Matrix, label: Array, starts: IntArray) -> NDArray[np.uint64]:
    """A number for each task: the same for equal tasks, and for others with probability 2^-64 or so."""
    rng = np.random.default_rng(0)
    outputs = label.reshape(len(label), -1)
    weights = rng.integers(1, 2**63, size=rows.shape[1] + outputs.shape[1], dtype=np.uint64)
    sums = np.empty(len(label), dtype=np.uint64)
    step = max(1, CHUNK // (rows.shape[1] + 1))
    for start in range(0, len(sums), step):
        part = slice(start, start + step)
        if is_sparse(rows):
            at = rows.indptr[part.start : part.stop + 1]
            inside = slice(int(at[0]), int(at[-1]))
            terms = _bits(rows.data[inside]) * weights[rows.indices[inside]]
            filled = np.flatnonzero(np.diff(at))
            sums[part] = 0
            if filled.size:
                sums[start + filled] = np.add.reduceat(terms, at[filled] - at[0])
        else:
            sums[part] = _bits(rows[part]) @ weights[: rows.shape[1]]
        sums[part] += _bits(outputs[part]) @ weights[rows.shape[1] :]
    if len(sums) == len(starts) - 1:
        return sums
    place = np.arange(len(sums)) - np.repeat(starts[:-1], np.diff(starts))
    mixed = sums * (2 * place.astype(np.uint64) + np.uint64(1))
    return np.add.reduceat(mixed, starts[:-1]) + np.diff(starts).astype(np.uint64)


def _bits(values: Array) -> NDArray[np.uint64]:
    """The bits of numbers, mixed so that low bits depend on high ones: sums modulo 2^64 would not see some changes."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    return bits ^ (bits >> np.uint64(32))


def split_rows(X: Any, y: Any, groups: Any) -> tuple[RowBlocks, RowBlocks, Groups]:
    """Matrices, labels and the groups of rows.

    Rows are put in the order of the groups and stay in one array, of which the matrices are blocks.

    >>> matrices, labels, known = split_rows([[1.0], [2.0], [3.0]], [1, 2, 3], ["b", "a", "b"])
    >>> [label.tolist() for label in labels], known.names
    ([[1, 3], [2]], ['b', 'a'])
    """
    matrix = X.tocsr() if is_sparse(X) else any_array(X, "X")
    label = one_column(any_array(y, "y"))
    if matrix.ndim != 2:
        raise InvalidInputError(f"X: expected a matrix, got shape {matrix.shape}")
    if label.ndim not in (1, 2) or len(label) != matrix.shape[0]:
        raise InvalidInputError(f"X has {matrix.shape[0]} rows, but y has shape {label.shape}")
    known = group_codes(groups, matrix.shape[0])
    starts = offsets_of(np.bincount(known.codes))
    if known.mixed:
        order = np.argsort(known.codes, kind="stable")
        matrix, label = matrix[order], label[order]
    return RowBlocks(matrix, starts), RowBlocks(label, starts), known


def as_slice(members: IntArray) -> slice | IntArray:
    """The row numbers as a slice if they are contiguous, so that indexing gives a view instead of a copy."""
    if members[-1] - members[0] + 1 == len(members):
        return slice(int(members[0]), int(members[-1]) + 1)
    return members


# ------------------------------------------------------------------------------------------------------- data of a task


def as_task_lists(
    matrices: Sequence[Any], labels: Sequence[Any], names: Sequence[str] | None
) -> tuple[Sequence[Any], Sequence[Any], tuple[str, ...]]:
    """The matrices, labels and names of tasks as sequences of equal length; default names are task numbers."""
    if is_sparse(matrices) or (isinstance(matrices, np.ndarray) and matrices.ndim == 2 and matrices.dtype.kind != "O"):
        raise InvalidInputError(
            "the matrices of the tasks: expected a list with a matrix for each task, got one matrix, of shape "
            f"{np.shape(matrices)}; from_arrays(X, y, groups) splits it into tasks"
        )
    matrices = matrices if isinstance(matrices, RowBlocks) else as_list(matrices, "the matrices of the tasks")
    labels = labels if isinstance(labels, RowBlocks) else as_list(labels, "the labels of the tasks")
    if not matrices:
        raise InvalidInputError("no tasks given; a collection needs at least one")
    if len(matrices) != len(labels):
        raise InvalidInputError(f"{len(matrices)} matrices but {len(labels)} label vectors; give one per task")
    called = range(len(matrices)) if names is None else as_list(names, "names")
    if len(called) != len(matrices):
        raise InvalidInputError(f"{len(called)} names for {len(matrices)} tasks")
    return matrices, labels, tuple(map(str, called))


def as_task_matrix(raw_matrix: Any, name: str) -> Matrix:
    """Convert the matrix X of a task to float64, dense or CSR; `name` names the task in errors.

    >>> as_task_matrix([1.0, 2.0], "task 0")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: task 0, X: expected a matrix of shape (rows, d), got shape (2,); ...
    """
    matrix: Matrix
    if is_sparse(raw_matrix):
        if raw_matrix.dtype.kind not in "biuf":
            raise InvalidInputError(f"{name}, X: expected real numbers, got dtype {raw_matrix.dtype}")
        from scipy.sparse import csr_array

        matrix = csr_array(raw_matrix, dtype=np.float64)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()  # the conversion may share arrays with the caller; the next line works in place
            matrix.sum_duplicates()
        check_finite(matrix, f"{name}, X", squares=True)
    else:
        matrix = real_array(raw_matrix, f"{name}, X", squares=True)
    if matrix.ndim != 2:
        raise InvalidInputError(
            f"{name}, X: expected a matrix of shape (rows, d), got shape {matrix.shape}; a single row is [x]"
        )
    if matrix.shape[0] == 0 or matrix.shape[1] == 0:
        raise InvalidInputError(f"{name}: X of shape {matrix.shape} is empty; leave the task out")
    return matrix


def as_task_data(raw_matrix: Any, raw_label: Any, task: int) -> tuple[Matrix, Array]:
    """Convert X and y of a task to float64 and check their shapes."""
    name = f"task {task}"
    matrix = as_task_matrix(raw_matrix, name)
    label = one_column(real_array(raw_label, f"{name}, y", squares=True))
    n = matrix.shape[0]
    if label.ndim not in (1, 2) or len(label) != n or 0 in label.shape:
        raise InvalidInputError(
            f"{name}: X has {n} rows, but y has shape {label.shape}; expected ({n},), or ({n}, c) for c outputs"
        )
    return matrix, label


def outputs_in_words(label: Array) -> str:
    """The number of outputs of labels, in words for messages."""
    return "one output" if label.ndim == 1 else f"{label.shape[1]} outputs"


def largest_entries(matrix: Matrix) -> Array:
    """The largest magnitude in each row."""
    if is_sparse(matrix):
        return np.asarray(abs(matrix).max(axis=1).toarray(), dtype=np.float64).ravel()
    return np.asarray(np.maximum(matrix.max(axis=1), -matrix.min(axis=1)))
