"""How the rows of a system in memory are swept: row by row, by projections onto blocks, or several blocks at once.

A sweeper divides the rows into blocks, which an ordering visits, and makes the steps of visited blocks. With damping,
x and the duals u of the rows solve A x + shrink u = b, whose solution nearest to (x0, 0) minimises
|A x - b|^2 + shrink |x - x0|^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from forgetting._arrays import EPS, Array, IntArray, fingerprint
from forgetting.solver.rows import NONE, Limits, Rows, panels, together

__all__ = ["BlockSweeper", "Iterate", "RowSweeper", "Sweeper"]

SAMPLE = 64  # rows that are compared when a solve is resumed
GRAM_ROWS = 2**14  # whose scaled copy is made at once


@dataclass
class Iterate:
    """What a sweep changes: x, the duals of rows (with damping, or for a nearest point), what bounds cut off.

    `shrink` is the squared damping; x is n numbers, or n x c with c right-hand sides.
    """

    x: Array
    duals: Array = field(default_factory=lambda: NONE)
    clipped: Array = field(default_factory=lambda: NONE)
    shrink: float = 0.0


class Sweeper(Protocol):
    """Blocks of rows, and the steps of visited blocks; `in_memory` says whether the matrix lies in memory."""

    in_memory: ClassVar[bool]

    limits: Limits
    relaxation: float
    average: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""

    @property
    def row_steps(self) -> bool:
        """Whether the rows of a block make their steps one after another; else a visit projects onto the block."""

    @property
    def norms(self) -> Array | None:
        """The spectral norm of every block; None if an ordering cannot use it."""

    def rows_in(self, visits: IntArray) -> int:
        """The number of rows that these visits touch."""

    def parts(self, visits: IntArray, following: IntArray, done: int) -> Iterable[IntArray]:
        """The visits in parts, after which the state may be saved; `following` come next, `done` visits came before."""

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Make the steps of the visited blocks; the sum of the squared errors seen, for each right-hand side."""

    @property
    def squares_sum(self) -> float:
        """The sum of the squares of all entries."""

    def slack(self, b: Array, x: Array) -> Array:
        """b - A x."""

    def gap(self, b: Array, x: Array) -> Array:
        """The part of b - A x that violates the rows."""

    def back(self, gap: Array) -> Array:
        """A^T gap."""

    def gap_and_back(self, b: Array, x: Array) -> tuple[Array, Array]:
        """The gap and A^T gap, by one pass if the matrix is streamed."""

    def columns(self) -> Sweeper:
        """A sweeper of the columns, one by one."""

    def dense(self) -> Array:
        """The matrix as a dense array."""

    def marks(self) -> dict[str, str]:
        """What a resumed solve must share: the matrix, its blocks and the settings of steps."""

    def weighted_gram(self, weights: Array) -> Array | None:
        """A^T W A for a tall matrix, W^(1/2) A A^T W^(1/2) for a wide one; None if that takes a pass over a disk."""


@dataclass
class InMemory(ABC):
    """What sweepers of rows in memory share.

    Attributes:
        rows: the rows.
        limits: relations of rows, bounds on x.
        relaxation: the factor of every step.
        average: how many blocks make their steps from the same x; their average is taken.
        threads: the number of threads; no result depends on it.
    """

    in_memory: ClassVar[bool] = True

    rows: Rows
    limits: Limits = field(default_factory=Limits)
    relaxation: float = 1.0
    average: int = 1
    threads: int = 1

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the matrix."""
        return self.rows.shape

    @property
    @abstractmethod
    def num_blocks(self) -> int:
        """The number of blocks."""

    @property
    def _share(self) -> int:
        """What steps from the same x are divided by: the same number also for the last blocks, which may be fewer."""
        return min(self.average, self.num_blocks)

    @property
    @abstractmethod
    def row_steps(self) -> bool:
        """Whether the rows of a block make their steps one after another; else a visit projects onto the block."""

    @property
    @abstractmethod
    def norms(self) -> Array | None:
        """The spectral norm of every block; None if an ordering cannot use it."""

    @abstractmethod
    def rows_in(self, visits: IntArray) -> int:
        """The number of rows that these visits touch."""

    @abstractmethod
    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Make the steps of the visited blocks; the sum of the squared errors seen, for each right-hand side."""

    @abstractmethod
    def distances(self, b: Array, x: Array) -> Array:
        """The distance from x to the solutions of every block."""

    @abstractmethod
    def losses(self, b: Array, x: Array) -> Array:
        """Half the sum of the squared residuals of every block."""

    @cached_property
    def squares_sum(self) -> float:
        """The sum of the squares of all entries."""
        return float(self.rows.squares.sum())

    def slack(self, b: Array, x: Array) -> Array:
        """b - A x."""
        return b - self.rows.products(x, threads=self.threads)

    def gap(self, b: Array, x: Array) -> Array:
        """The part of b - A x that violates the rows."""
        return self.limits.missed(self.slack(b, x))

    def back(self, gap: Array) -> Array:
        """A^T gap."""
        return self.rows.combined(gap, threads=self.threads)

    def gap_and_back(self, b: Array, x: Array) -> tuple[Array, Array]:
        """The gap and A^T gap."""
        gap = self.gap(b, x)
        return gap, self.back(gap)

    def parts(self, visits: IntArray, following: IntArray, done: int) -> Iterable[IntArray]:
        """All visits as one part: sweeps in memory are short."""
        return [visits]

    def marks(self) -> dict[str, str]:
        """What a resumed solve must share: the matrix, its blocks and the settings of steps."""
        sample = np.unique(np.linspace(0, self.shape[0] - 1, min(self.shape[0], SAMPLE)).astype(int))
        return {
            "A": f"{self.shape} {fingerprint(self.rows.matrix()[sample]).hex()}",
            "blocks": self._division(),
            "relaxation": repr(self.relaxation),
            "average": repr(self.average),
        }

    @abstractmethod
    def _division(self) -> str:
        """How the rows are divided into blocks, in words."""

    def columns(self) -> Sweeper:
        """A sweeper of the columns, one by one."""
        return RowSweeper(self.rows.transposed(), threads=self.threads)

    def dense(self) -> Array:
        """The matrix as a dense array."""
        return self.rows.dense(slice(None))

    def tracked(self, b: Array, x: Array) -> Tracked | None:
        """The gaps of all rows, kept up to date step by step; None if they are computed anew."""
        return None

    def weighted_gram(self, weights: Array) -> Array | None:
        """A^T W A for a tall matrix, W^(1/2) A A^T W^(1/2) for a wide one."""
        m, n = self.shape
        matrix, roots = self.rows.matrix(), np.sqrt(weights)
        if m < n:
            wide: Array = as_dense(matrix @ matrix.T) * np.outer(roots, roots)
            return wide
        total = np.zeros((n, n))
        for start in range(0, m, GRAM_ROWS):
            part = matrix[start : start + GRAM_ROWS]
            scaled = part.T * weights[start : start + GRAM_ROWS]
            total += as_dense(scaled @ part)
        return total

    def _clip(self, iterate: Iterate) -> None:
        """Move x into its bounds; for a nearest point, remember what was cut off."""
        if len(self.limits.low):
            wanted = iterate.x + iterate.clipped if len(iterate.clipped) else iterate.x.copy()
            np.clip(wanted, self.limits.low, self.limits.high, out=iterate.x)
            if len(iterate.clipped):
                iterate.clipped[:] = wanted - iterate.x


@dataclass
class RowSweeper(InMemory):
    """Visits groups of `size` consecutive rows, and makes the steps of their rows one after another.

    Groups larger than one row make memory accesses consecutive, and save random numbers. `memory` is for inner products
    of rows, which orderings that look at x need.
    """

    size: int = 1
    memory: float = 2.0**30
    _shrink: float = -1.0  # to which the scales belong
    _scales: Array = field(default_factory=lambda: NONE, repr=False)

    @property
    def row_steps(self) -> bool:
        return True

    @property
    def num_blocks(self) -> int:
        return -(-self.shape[0] // self.size)

    @cached_property
    def norms(self) -> Array | None:
        return np.sqrt(self.rows.squares) if self.size == 1 else None

    def rows_in(self, visits: IntArray) -> int:
        """The number of rows that these visits touch."""
        last = self.shape[0] - (self.num_blocks - 1) * self.size
        return len(visits) * self.size - int(np.count_nonzero(visits == self.num_blocks - 1)) * (self.size - last)

    def _division(self) -> str:
        return f"groups of {self.size} rows"

    def _order(self, visits: IntArray) -> IntArray:
        if self.size == 1:
            return visits
        order = (visits[:, None] * self.size + np.arange(self.size)).ravel()
        return order[order < self.shape[0]]

    @property
    def _by_fours(self) -> bool:
        plain = not len(self.limits.relations) and not len(self.limits.low) and self.average == 1
        return plain and self.size == 4 and self.rows.by_fours

    def _scale(self, shrink: float) -> Array:
        if shrink != self._shrink:
            self._shrink, self._scales = shrink, scales(self.rows.squares, shrink, self.relaxation)
        return self._scales

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Make the steps of the visited rows; the sum of the squared errors seen, for each right-hand side."""
        scale = self._scale(iterate.shrink)
        if self._by_fours and iterate.x.ndim == 1:
            rows: Any = self.rows
            return np.asarray(rows.sweep_fours(b, scale, iterate.shrink, visits, iterate.x, iterate.duals))
        order = self._order(visits)
        if self.average == 1:
            state = (iterate.x, iterate.duals, iterate.clipped)
            return self.rows.sweep(b, scale, iterate.shrink, self.limits, order, *state, threads=self.threads)
        seen = np.zeros(1 if iterate.x.ndim == 1 else iterate.x.shape[1])
        for start in range(0, len(order), self.average):
            seen += self._together(order[start : start + self.average], scale, b, iterate)
        return seen

    def _together(self, order: IntArray, scale: Array, b: Array, iterate: Iterate) -> Array:
        """The average of the steps of these rows, all from the same x."""
        error = b[order] - self.rows.products(iterate.x, order, self.threads)
        if iterate.duals.size:
            error -= iterate.shrink * iterate.duals[order]
        part = scale[order] if error.ndim == 1 else scale[order][:, None]
        steps = part * error
        relations = self.limits.relations[order] if len(self.limits.relations) else self.limits.relations
        error = Limits(relations).missed(error)
        if len(relations) and iterate.duals.size:
            floor = -iterate.duals[order]
            steps = np.where(relations > 0, np.maximum(steps, floor), steps)
            steps = np.where(relations < 0, np.minimum(steps, floor), steps)
        elif len(relations):
            steps = part * error
        steps /= self._share
        iterate.x += self.rows.combined(steps, order, self.threads)
        if iterate.duals.size:
            np.add.at(iterate.duals, order, steps)
        self._clip(iterate)
        return np.atleast_1d(np.sum(error * error, axis=0))

    def tracked(self, b: Array, x: Array) -> Tracked | None:
        """The gaps of all rows, kept up to date step by step; None if a step adds more than a multiple of a row."""
        plain = self.average == 1 and self.size == 1 and x.ndim == 1
        if not plain or len(self.limits.relations) or len(self.limits.low):
            return None
        return Tracked(self.rows, b, x, scales(self.rows.squares, 0.0, self.relaxation), self.memory)

    def distances(self, b: Array, x: Array) -> Array:
        gap, squares = np.sqrt(2 * self.losses(b, x)), self.rows.squares
        return np.divide(gap, np.sqrt(squares), out=np.zeros_like(gap), where=squares > 0)

    def losses(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        return 0.5 * gap**2 if gap.ndim == 1 else np.asarray(0.5 * np.sum(gap**2, axis=1))


class Tracked:
    """b - A x for orderings that look at x at every step, kept up to date by inner products of rows.

    The step t a_i changes the gaps by t A a_i. The m numbers A a_i are kept as long as memory lasts, so that a second
    visit costs m operations and not a pass over the matrix.
    """

    def __init__(self, rows: Rows, b: Array, x: Array, scale: Array, memory: float) -> None:
        self.rows, self.b, self.scale = rows, b, scale
        self.products: dict[int, Array] = {}
        self.most = int(memory / (8.0 * rows.shape[0]))
        norms = np.sqrt(rows.squares)
        self._inverse_norms = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
        self.refresh(x)

    def refresh(self, x: Array) -> None:
        """Compute all gaps anew, so that rounding errors do not add up."""
        self.gap = self.b - self.rows.products(x)

    def moved(self, row: int) -> None:
        """Note the step of a row."""
        product = self.products.get(row)
        if product is None:
            product = self.rows.products(self.rows.dense([row])[0])
            if len(self.products) < self.most:
                self.products[row] = product
        self.gap -= (self.scale[row] * self.gap[row]) * product

    def distances(self) -> Array:
        """The distance from x to the solutions of every row."""
        return np.abs(self.gap) * self._inverse_norms

    def losses(self) -> Array:
        """Half the squared residual of every row."""
        return 0.5 * self.gap**2


def as_dense(product: Any) -> Array:
    """A product of matrices as a NumPy array."""
    dense: Array = product.toarray() if hasattr(product, "toarray") else np.asarray(product)
    return dense


def scales(squares: Array, shrink: float, relaxation: float) -> Array:
    """relaxation / (|a_i|^2 + shrink), and 0 for rows that are zero."""
    return np.divide(relaxation, squares + shrink, out=np.zeros(len(squares)), where=squares > 0)


def _gram(rows: Rows, order: IntArray) -> Array:
    """X X^T for the rows X of a block."""
    picked = rows.picked(order)
    product = picked @ picked.T
    return np.asarray(product if isinstance(product, np.ndarray) else product.toarray())


def _inverse(rows: Rows, order: IntArray, shrink: float) -> Array:
    """The inverse of X X^T + shrink for the rows X of a block, a pseudo-inverse if rows depend on each other."""
    from scipy.linalg import lapack

    # rows of different sizes are scaled to the same size, which leaves their solutions as they are
    gram = _gram(rows, order)
    norms = np.sqrt(np.diag(gram) + shrink)
    sizes = np.where(norms > 0, norms, 1.0)
    gram /= np.outer(sizes, sizes)
    gram[np.diag_indices(len(order))] += shrink / sizes**2
    factor, failed = lapack.dpotrf(gram)
    if not failed and lapack.dpocon(factor, float(np.abs(gram).sum(axis=0).max()))[0] > 1e-10:
        half = lapack.dpotri(factor)[0]
        return np.asarray((np.triu(half) + np.triu(half, 1).T) / np.outer(sizes, sizes))
    # eigenvalues of a Gram matrix lose half of the digits: singular values of the rows do not
    dense = rows.dense(order)
    if shrink:
        vectors, singular, _ = np.linalg.svd(dense)
        squares = np.full(len(order), shrink)
        squares[: len(singular)] += singular**2
        return np.ascontiguousarray((vectors / squares) @ vectors.T)
    vectors, singular, _ = np.linalg.svd(dense / sizes[:, None], full_matrices=False)
    rank = int(np.count_nonzero(singular > max(dense.shape) * EPS * singular[0]))
    if rank == len(order):
        vectors /= sizes[:, None]
    else:  # rows that contradict each other: least squares, in which large rows count more
        vectors, singular, _ = np.linalg.svd(dense, full_matrices=False)
        rank = min(rank, int(np.count_nonzero(singular > max(dense.shape) * EPS * singular[0])))
    halves = vectors[:, :rank] / singular[:rank]
    return np.ascontiguousarray(halves @ halves.T)


@dataclass
class BlockSweeper(InMemory):
    """Visits blocks of rows, and projects x onto the solutions of a visited block: block Kaczmarz.

    Attributes:
        blocks: the rows of each block.
        memory: bytes for factorisations that are kept; those of other blocks are computed at each visit.
    """

    blocks: tuple[IntArray, ...] = ()
    memory: float = 2.0**28
    _inverses: dict[int, Array] = field(default_factory=dict, repr=False)
    _of: float = 0.0
    _kept: int = 0

    @property
    def row_steps(self) -> bool:
        return False

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    def rows_in(self, visits: IntArray) -> int:
        """The number of rows that these visits touch."""
        return int(self._sizes[visits].sum())

    @cached_property
    def _sizes(self) -> IntArray:
        return np.array([len(block) for block in self.blocks], dtype=np.int64)

    @cached_property
    def norms(self) -> Array:
        largest = (float(np.linalg.eigvalsh(_gram(self.rows, block))[-1]) for block in self.blocks)
        return np.sqrt([max(0.0, square) for square in largest])

    def _division(self) -> str:
        return f"{self.num_blocks} blocks {fingerprint(np.concatenate(self.blocks), self._sizes).hex()[:16]}"

    def _inverse(self, block: int, shrink: float) -> Array:
        """The inverse of X X^T + shrink for a block, kept for the current `shrink` as long as memory lasts."""
        if self._of != shrink:
            self._inverses, self._of, self._kept = {}, shrink, 0
        found = self._inverses.get(block)
        if found is None:
            found = _inverse(self.rows, self.blocks[block], shrink)
            if self._kept + found.nbytes <= self.memory:
                self._inverses[block] = found
                self._kept += found.nbytes
        return found

    @cached_property
    def _picks(self) -> list[slice | IntArray]:
        """The rows of each block as a slice if they are consecutive, so that dense ones need no copy."""
        return [
            slice(int(block[0]), int(block[-1]) + 1) if np.all(np.diff(block) == 1) else block for block in self.blocks
        ]

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Project onto the visited blocks; the sum of the squared errors seen, for each right-hand side."""
        if iterate.x.ndim == 1:
            return np.array([self._project(visits, b, iterate, self.threads)])
        seen = np.zeros(iterate.x.shape[1])
        stacked = self._stacked if self.average == 1 and not iterate.duals.size else None
        if stacked is None:
            for block in set(visits.tolist()):
                self._inverse(block, iterate.shrink)

        def work(panel: slice) -> None:
            if stacked is not None:
                x, part = np.ascontiguousarray(iterate.x[:, panel]), np.zeros(panel.stop - panel.start)
                side = np.ascontiguousarray(b[:, panel])
                rows: Any = self.rows
                rows.project_many(side, *stacked, self.relaxation, visits, x, part)
                iterate.x[:, panel], seen[panel] = x, part
                return
            kept = iterate.duals[:, panel].copy() if iterate.duals.size else NONE
            own = Iterate(np.ascontiguousarray(iterate.x[:, panel]), kept, shrink=iterate.shrink)
            seen[panel] = self._project(visits, np.ascontiguousarray(b[:, panel]), own, 1)
            iterate.x[:, panel] = own.x
            if iterate.duals.size:
                iterate.duals[:, panel] = own.duals

        together(work, panels(iterate.x.shape[1]), self.threads)
        return seen

    def _project(self, visits: IntArray, b: Array, iterate: Iterate, threads: int) -> Any:
        """The steps of the visited blocks, for right-hand sides that are computed by one thread."""
        within = threads if self.average == 1 else 1

        def steps(block: int) -> tuple[Any, Array, Array]:
            order, pick = self.blocks[block], self._picks[block]
            part = None if iterate.x.ndim == 1 else self.rows.matrix()[pick]
            error = b[pick] - (self.rows.products(iterate.x, order, within) if part is None else part @ iterate.x)
            if iterate.duals.size:
                error -= iterate.shrink * iterate.duals[pick]
            weights = self._inverse(block, iterate.shrink) @ error
            if self.relaxation != 1:
                weights *= self.relaxation
            move = self.rows.combined(weights, order, within) if part is None else part.T @ weights
            return np.einsum("i...,i...->...", error, error), weights, move

        seen = 0.0
        for start in range(0, len(visits), self.average):
            several = visits[start : start + self.average].tolist()
            found = together(steps, several, 1 if self.average == 1 else threads)
            for block, (squares, weights, move) in zip(several, found, strict=True):
                seen = seen + squares
                iterate.x += move if self.average == 1 else move / self._share
                if iterate.duals.size:
                    iterate.duals[self._picks[block]] += weights / self._share
            self._clip(iterate)
        return seen

    @cached_property
    def _stacked(self) -> tuple[IntArray, Array] | None:
        """The first row of every block, and all inverses below one another; None unless the blocks are slices in order.

        For dense rows whose inverses fit into memory.
        """
        longest = int(self._sizes.max())
        in_order = np.array_equal(np.concatenate(self.blocks), np.arange(self.shape[0]))
        if not self.rows.by_fours or not in_order or 8.0 * self.shape[0] * longest > self.memory:
            return None
        inverses = np.zeros((self.shape[0], longest))
        for block, rows in enumerate(self.blocks):
            inverses[rows, : len(rows)] = self._inverse(block, 0.0)
        self._inverses, self._kept = {}, 0
        return np.concatenate([[0], np.cumsum(self._sizes)]), inverses

    def distances(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        parts = ((self._inverse(m, 0.0), gap[block]) for m, block in enumerate(self.blocks))
        return np.sqrt([max(0.0, float(np.vdot(part, inverse @ part))) for inverse, part in parts])

    def losses(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        return np.array([0.5 * float(np.vdot(gap[block], gap[block])) for block in self.blocks])
