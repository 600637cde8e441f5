"""Rows of a matrix in memory, dense or compressed, with the operations that row-action methods need."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from forgetting.compute.row_kernels import row_arrays
from forgetting.core.arrays import Array, IntArray, as_dense, is_sparse, read_only
from forgetting.files.matrices import as_matrix
from forgetting.files.row_sources import times_rows
from forgetting.solver import _row_kernels as kernels

NONE = np.empty(0)
ALL = np.empty(0, dtype=np.int64)  # an empty order stands for all rows
NONE_2D = np.empty((0, 0))
NO_RELATIONS = np.empty(0, dtype=np.int8)
PANEL = 32  # right-hand sides in one call of a kernel
SLICE = 2**20  # entries of the matrix in one part of a residual


@dataclass(frozen=True)
class Limits:
    """Inequalities and bounds of a system: the relation of each row, and bounds on x; empty if there are none."""

    relations: Any = field(default_factory=lambda: NO_RELATIONS)
    low: Array = field(default_factory=lambda: NONE)
    high: Array = field(default_factory=lambda: NONE)

    def of_rows(self, rows: slice) -> Limits:
        """The limits of some of the rows; bounds on x stay."""
        return Limits(self.relations[rows] if len(self.relations) else self.relations, self.low, self.high)

    def missed(self, gap: Array) -> Array:
        """The part of b - A x that violates the rows; `gap` is changed in place."""
        if len(self.relations):
            gap[(self.relations > 0) & (gap < 0)] = 0.0
            gap[(self.relations < 0) & (gap > 0)] = 0.0
        return gap


def panels(count: int) -> list[slice]:
    """The right-hand sides in parts of at most `PANEL`; the parts do not depend on the number of threads."""
    return [slice(start, min(start + PANEL, count)) for start in range(0, count, PANEL)]


def together(work: Callable[[Any], Any], parts: list[Any], threads: int) -> list[Any]:
    """The results of `work` for all parts, in their order, computed by this thread and others."""
    count = min(threads, len(parts))
    if count == 1:
        return [work(part) for part in parts]
    shares = [parts[first::count] for first in range(count)]

    def each(share: list[Any]) -> list[Any]:
        return [work(part) for part in share]

    others = [_worker(number).submit(each, share) for number, share in enumerate(shares[1:])]
    try:
        results = [each(shares[0])]
    finally:
        wait(others)
    results += [other.result() for other in others]
    return [results[i % count][i // count] for i in range(len(parts))]


@cache
def _worker(number: int) -> ThreadPoolExecutor:
    """A thread that stays: a new one would begin with no memory of its own, and get it page by page.

    Each has a queue of its own, because a common queue often leaves all work to one of them.
    """
    return ThreadPoolExecutor(1, thread_name_prefix=f"forgetting-solve-{number}")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_worker.cache_clear)  # threads do not survive a fork


class Rows:
    """The rows of a checked matrix in memory: a C-contiguous float64 array, or a scipy.sparse CSR array of float64.

    Attributes:
        matrix: the array.
        shape: its shape.
        by_fours: whether `sweep_fours` is there, as it is for dense rows.
    """

    def __init__(self, matrix: Any) -> None:
        self.by_fours = not is_sparse(matrix)
        self.matrix: Any = read_only(matrix) if self.by_fours else matrix
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self._arrays = row_arrays(matrix)

    @cached_property
    def squares(self) -> Array:
        """|a_i|^2 for every row."""
        if self.by_fours:
            return self._squares_and_products[0]
        _, data, _, starts = self._arrays
        return read_only(kernels.squares_sparse(data, starts))

    @cached_property
    def _squares_and_products(self) -> tuple[Array, Array]:
        """Squares of dense rows, and inner products of the rows of each group of four."""
        squares, products = np.empty(self.shape[0]), np.empty((self.shape[0] // 4, 6))
        kernels.products_of_fours(self.matrix, squares, products)
        return read_only(squares), read_only(products)

    def column_squares(self, weights: Array) -> Array:
        """The sum of weights_i a_ij^2 over the rows i, for every column j."""
        if self.by_fours:
            return np.asarray(np.einsum("i,ij,ij->j", weights, self.matrix, self.matrix))
        matrix = self.matrix
        every = np.repeat(weights, np.diff(matrix.indptr)) * matrix.data**2
        return np.asarray(np.bincount(matrix.indices, every, minlength=self.shape[1]), dtype=np.float64)

    @property
    def entries(self) -> int:
        """The number of stored entries."""
        return int(self.matrix.size)

    def dense(self, rows: Any) -> Array:
        """Some rows as a dense array."""
        return as_dense(self.matrix[rows])

    def scaled(self, factors: Array) -> Rows:
        """The rows, multiplied by factors, a copy."""
        return Rows(times_rows(self.matrix, factors))

    def transposed(self) -> Rows:
        """The columns as rows, a copy."""
        return Rows(np.ascontiguousarray(self.matrix.T) if self.by_fours else self.matrix.T.tocsr())

    def project_many(self, *arguments: Any) -> None:
        """Project onto the solutions of blocks of dense rows, for several right-hand sides."""
        kernels.project_many(self.matrix, *arguments)

    def sweep_fours(
        self, b: Array, scale: Array, shrink: float, groups: IntArray, x: Array, duals: Array = NONE
    ) -> Array:
        """`sweep` for equations with one right-hand side, in groups of four consecutive rows; the same steps."""
        products = self._squares_and_products[1]
        return np.array([kernels.sweep_fours(self.matrix, products, b, scale, shrink, groups, x, duals)])

    def sweep(
        self,
        b: Array,
        scale: Array,
        shrink: float,
        limits: Limits,
        order: IntArray,
        x: Array,
        duals: Array = NONE,
        clipped: Array = NONE,
        threads: int = 1,
    ) -> Array:
        """Make the steps of the rows in `order`, changing x, duals and clipped; squared errors seen, by output.

        With several right-hand sides x is n x c; limits are for a single right-hand side.
        """
        if x.ndim == 1:
            bounds = limits.low, limits.high
            return np.array(
                [kernels.sweep(*self._arrays, b, scale, shrink, limits.relations, order, x, duals, *bounds, clipped)]
            )
        seen = np.zeros(x.shape[1])

        def work(panel: slice) -> None:
            own, part = np.ascontiguousarray(x[:, panel]), np.zeros(panel.stop - panel.start)
            kept = np.ascontiguousarray(duals[:, panel]) if duals.size else NONE_2D
            kernels.sweep_many(*self._arrays, np.ascontiguousarray(b[:, panel]), scale, shrink, order, own, kept, part)
            x[:, panel], seen[panel] = own, part
            if duals.size:
                duals[:, panel] = kept

        together(work, panels(x.shape[1]), threads)
        return seen

    def sweep_fours_back(self, b: Array, scale: Array, groups: IntArray, x: Array) -> Array:
        """The steps of `sweep_fours` in the opposite order."""
        return np.array([kernels.sweep_fours_back(self.matrix, self._squares_and_products[1], b, scale, groups, x)])

    def normal(self, x: Array, threads: int = 1) -> tuple[Array, Array]:
        """A x and A^T A x, for one x by one read of the rows."""
        if x.ndim == 2:
            product = self.products(x, threads=threads)
            return product, self.combined(product, threads=threads)
        products = np.empty(self.shape[0])

        def work(cut: tuple[int, int]) -> Array:
            total = np.zeros(self.shape[1])
            kernels.normal(*self._arrays, *cut, x, products, total)
            return total

        parts = together(work, self._cuts(self.shape[0]), threads)
        return products, np.asarray(sum(parts))

    def products(self, x: Array, order: IntArray = ALL, threads: int = 1) -> Array:
        """a_i.x for the rows in `order`, or for all rows."""
        count = len(order) or self.shape[0]
        if x.ndim == 2:
            matrix = self.picked(order)
            return np.concatenate(
                together(lambda part: matrix @ np.ascontiguousarray(x[:, part]), panels(x.shape[1]), threads), axis=1
            )
        products = np.empty(count)

        def work(cut: tuple[int, int]) -> None:
            kernels.row_products(*self._arrays, order, *cut, x, products)

        together(work, self._cuts(count), threads)
        return products

    def combined(self, weights: Array, order: IntArray = ALL, threads: int = 1) -> Array:
        """The sum of weights[i] a_i over the rows in `order`, or over all rows: A^T weights."""
        count = len(order) or self.shape[0]
        if weights.ndim == 2:
            matrix = self.picked(order).T
            return np.concatenate(
                together(
                    lambda part: matrix @ np.ascontiguousarray(weights[:, part]), panels(weights.shape[1]), threads
                ),
                axis=1,
            )

        def work(cut: tuple[int, int]) -> Array:
            total = np.zeros(self.shape[1])
            kernels.combine(*self._arrays, order, *cut, weights, total)
            return total

        return np.asarray(sum(together(work, self._cuts(count), threads)))

    def _cuts(self, count: int) -> list[tuple[int, int]]:
        """Parts of `count` rows, of about `SLICE` entries each; they do not depend on the number of threads."""
        size = max(1, self.shape[0] * SLICE // max(1, self.entries))
        return [(start, min(start + size, count)) for start in range(0, count, size)]

    def picked(self, order: IntArray) -> Any:
        """The rows in `order`, or all rows, as a NumPy array or a scipy.sparse array; consecutive ones are a view."""
        matrix = self.matrix
        if len(order) == 0:
            return matrix
        if order[-1] - order[0] + 1 == len(order) and (np.diff(order) == 1).all():
            return matrix[order[0] : order[-1] + 1]  # a view of a dense matrix
        return matrix[order]


def as_rows(matrix: Any, what: str = "A") -> Rows:
    """The rows of a matrix in memory: dense in C order, or compressed; copied only if they must be converted.

    >>> as_rows([[1, 2], [3, 4]]).squares
    array([ 5., 25.])
    """
    return Rows(as_matrix(matrix, what))
