"""Projections onto the solutions of blocks of rows: block Kaczmarz."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_dense, fingerprint
from forgetting.core.numerical import numerical_rank
from forgetting.solver.rows import NONE, Rows, panels, together
from forgetting.solver.sweepers import InMemory, Iterate


def _gram(rows: Rows, order: IntArray) -> Array:
    """X X^T for the rows X of a block."""
    picked = rows.picked(order)
    return as_dense(picked @ picked.T)


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
    rank = numerical_rank(singular, dense.shape)
    if rank == len(order):
        vectors /= sizes[:, None]
    else:  # rows that contradict each other: least squares, in which large rows count more
        vectors, singular, _ = np.linalg.svd(dense, full_matrices=False)
        rank = min(rank, numerical_rank(singular, dense.shape))
    halves = vectors[:, :rank] / singular[:rank]
    return np.ascontiguousarray(halves @ halves.T)


@dataclass
class BlockSweeper(InMemory):
    """Visits blocks of rows, and projects x onto the solutions of a visited block: block Kaczmarz.

    Attributes:
        blocks: the rows of each block.
        memory: bytes for factorisations that are kept; those of other blocks are computed at each visit.
    """

    row_steps: ClassVar[bool] = False

    blocks: tuple[IntArray, ...] = ()
    memory: float = 2.0**28
    _inverses: dict[int, Array] = field(default_factory=dict, repr=False)
    _of: float = 0.0
    _kept: int = 0

    @property
    def num_blocks(self) -> int:
        return len(self.blocks)

    def rows_in(self, visits: IntArray) -> int:
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
        inverse = self._inverses.get(block)
        if inverse is None:
            inverse = _inverse(self.rows, self.blocks[block], shrink)
            if self._kept + inverse.nbytes <= self.memory:
                self._inverses[block] = inverse
                self._kept += inverse.nbytes
        return inverse

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
        stacked = self._stacked if self.average == 1 and not iterate.duals.size and not iterate.shrink else None
        if stacked is None:
            for block in set(visits.tolist()):
                self._inverse(block, iterate.shrink)

        def work(panel: slice) -> None:
            if stacked is not None:
                x, part = np.ascontiguousarray(iterate.x[:, panel]), np.zeros(panel.stop - panel.start)
                side = np.ascontiguousarray(b[:, panel])
                self.rows.project_many(side, *stacked, self.relaxation, visits, x, part)
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
            part = None if iterate.x.ndim == 1 else self.rows.matrix[pick]
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
            steps_made = together(steps, several, 1 if self.average == 1 else threads)
            for block, (squares, weights, move) in zip(several, steps_made, strict=True):
                seen = seen + squares
                iterate.x += move if self.average == 1 else move / self._share
                if iterate.duals.size:
                    iterate.duals[self._picks[block]] += weights / self._share
            self.clip(iterate)
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
