"""The rows of many tasks in one array, dense or CSR, from which the rows of each task are cut when they are used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, overload
from weakref import WeakValueDictionary

import numpy as np

from forgetting.core.arrays import Array, IntArray, is_sparse, sealed

__all__ = ["RowBlocks", "offsets_of", "row_sums", "sizes_of", "squared_rows", "stack_of"]

Rows: TypeAlias = Any  # a dense array or a scipy.sparse CSR array


@dataclass(frozen=True, eq=False)
class RowBlocks(Sequence[Any]):
    """T blocks of consecutive rows: block m is stack[starts[m]:starts[m + 1]], a view as long as the stack is dense.

    A CSR block shares its numbers with the stack. While a block is in use, the same object is given again. 18,000 CSR
    arrays of one row take 40 MB for their Python objects alone; their stack takes none.

    >>> blocks = RowBlocks(np.arange(6.0).reshape(3, 2), np.array([0, 1, 3]))
    >>> len(blocks), blocks[1].tolist()
    (2, [[2.0, 3.0], [4.0, 5.0]])
    """

    stack: Rows
    starts: IntArray
    _made: WeakValueDictionary[int, Any] = field(default_factory=WeakValueDictionary, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"stack": self.stack, "starts": self.starts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: sealed(value) for name, value in state.items()}, _made=WeakValueDictionary())

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[m] for m in range(len(self)))

    @overload
    def __getitem__(self, m: int) -> Any: ...
    @overload
    def __getitem__(self, m: slice) -> list[Any]: ...
    def __getitem__(self, m: int | slice) -> Any:
        if isinstance(m, slice):
            return [self[i] for i in range(*m.indices(len(self)))]
        block = self._made.get(m)
        if block is None:
            block = self._made[m] = self._cut(range(len(self))[m])
        return block

    def _cut(self, m: int) -> Any:
        first, last = int(self.starts[m]), int(self.starts[m + 1])
        if not is_sparse(self.stack):
            return self.stack[first:last]
        from scipy.sparse import csr_array

        stack = self.stack
        begin, end = int(stack.indptr[first]), int(stack.indptr[last])
        parts = stack.data[begin:end], stack.indices[begin:end], stack.indptr[first : last + 1] - stack.indptr[first]
        block = csr_array(parts, shape=(last - first, stack.shape[1]))
        block.has_canonical_format = stack.has_canonical_format
        return block if stack.data.flags.writeable else sealed(block)


def stack_of(blocks: Sequence[Any]) -> Rows:
    """All rows of the blocks in one array, which is CSR if a block is sparse; no copy of `RowBlocks`."""
    if isinstance(blocks, RowBlocks):
        return blocks.stack
    if not any(is_sparse(block) for block in blocks):
        return np.concatenate(blocks)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(block) for block in blocks]))


def sizes_of(blocks: Sequence[Any]) -> IntArray:
    """The number of rows of each block.

    >>> sizes_of([np.zeros((2, 3)), np.zeros((1, 3))])
    array([2, 1])
    """
    if isinstance(blocks, RowBlocks):
        return np.diff(blocks.starts)
    return np.array([block.shape[0] for block in blocks], dtype=np.int64)


def offsets_of(sizes: Any) -> IntArray:
    """0 and the running sums of the sizes: where each of the parts begins, and where the last one ends.

    >>> offsets_of([2, 0, 3])
    array([0, 2, 2, 5])
    """
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


def squared_rows(values: Rows) -> Array:
    """The square of each number of a vector, or the squared norm of each row of a matrix, dense or CSR.

    >>> squared_rows(np.array([[3.0, 4.0]])), squared_rows(np.array([2.0]))
    (array([25.]), array([4.]))
    """
    if is_sparse(values):
        return row_sums(values.data * values.data, values.indptr)
    flat = values[:, None] if values.ndim == 1 else values
    return np.asarray(np.einsum("ij,ij->i", flat, flat))


def row_sums(values: Array, offsets: IntArray) -> Array:
    """The sum of values[..., offsets[m]:offsets[m + 1]] for each m; 0 for an empty part.

    >>> row_sums(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 2, 3]))
    array([3., 0., 4.])
    """
    sums = np.zeros((*values.shape[:-1], len(offsets) - 1))
    filled = np.flatnonzero(np.diff(offsets))
    if filled.size:
        sums[..., filled] = np.add.reduceat(values, offsets[filled], axis=-1)
    return sums
