"""How the rows of a system in memory are swept: row by row, by projections onto blocks, or several blocks at once.

A sweeper divides the rows into blocks, which an ordering visits, and makes the steps of visited blocks. With damping,
x and the duals u of the rows solve A x + shrink u = b, whose solution nearest to (x0, 0) minimises
|A x - b|^2 + shrink |x - x0|^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from forgetting._arrays import EPS, Array, IntArray
from forgetting.solver.rows import NONE, Limits, Rows, panels, together

__all__ = ["BlockSweeper", "Iterate", "RowSweeper", "Sweeper"]


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
    """Blocks of rows, and the steps of visited blocks."""

    shape: tuple[int, int]
    limits: Limits

    @property
    def num_blocks(self) -> int:
        """The number of blocks."""

    def rows_in(self, visits: IntArray) -> int:
        """The number of rows that these visits touch."""

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

    def columns(self) -> Sweeper:
        """A sweeper of the columns, one by one."""


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
    def norms(self) -> Array | None:
        """The spectral norm of every block; None if an ordering cannot use it."""

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

    def columns(self) -> Sweeper:
        """A sweeper of the columns, one by one."""
        return RowSweeper(self.rows.transposed(), threads=self.threads)

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

    Groups larger than one row make memory accesses consecutive, and save random numbers.
    """

    size: int = 1

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

    def _order(self, visits: IntArray) -> IntArray:
        if self.size == 1:
            return visits
        order = (visits[:, None] * self.size + np.arange(self.size)).ravel()
        return order[order < self.shape[0]]

    def _scale(self, shrink: float) -> Array:
        return scales(self.rows.squares, shrink, self.relaxation)

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Make the steps of the visited rows; the sum of the squared errors seen, for each right-hand side."""
        order, scale = self._order(visits), self._scale(iterate.shrink)
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

    def distances(self, b: Array, x: Array) -> Array:
        gap, squares = np.sqrt(2 * self.losses(b, x)), self.rows.squares
        return np.divide(gap, np.sqrt(squares), out=np.zeros_like(gap), where=squares > 0)

    def losses(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        return 0.5 * gap**2 if gap.ndim == 1 else np.asarray(0.5 * np.sum(gap**2, axis=1))


def scales(squares: Array, shrink: float, relaxation: float) -> Array:
    """relaxation / (|a_i|^2 + shrink), and 0 for rows that are zero."""
    return np.divide(relaxation, squares + shrink, out=np.zeros(len(squares)), where=squares > 0)


class _Factor:
    """The inverse of X X^T + shrink for the rows X of a block, a pseudo-inverse if rows depend on each other."""

    def __init__(self, rows: Rows, order: IntArray, shrink: float) -> None:
        from scipy.sparse import issparse

        picked = rows.matrix()[order]
        gram = (picked @ picked.T).toarray() if issparse(picked) else picked @ picked.T
        values, vectors = np.linalg.eigh(gram + shrink * np.eye(len(order)))
        self.norm = float(np.sqrt(max(values[-1] - shrink, 0.0)))
        if shrink == 0 and values[0] <= 1e-10 * values[-1]:
            # eigenvalues of a Gram matrix lose half of the digits: small singular values come from the rows instead
            dense = picked.toarray() if issparse(picked) else picked
            norms = np.linalg.norm(dense, axis=1)
            sizes = np.where(norms > 0, norms, 1.0)
            vectors, singular, _ = np.linalg.svd(dense / sizes[:, None], full_matrices=False)
            kept = singular > max(dense.shape) * EPS * max(float(singular[0]), EPS)
            whole = vectors[:, kept] / singular[kept]
            self.inverse = np.ascontiguousarray((whole @ whole.T) / np.outer(sizes, sizes))
        else:
            self.inverse = np.ascontiguousarray((vectors / values) @ vectors.T)


@dataclass
class BlockSweeper(InMemory):
    """Visits blocks of rows, and projects x onto the solutions of a visited block: block Kaczmarz.

    Attributes:
        blocks: the rows of each block.
        memory: bytes for factorisations that are kept; those of other blocks are computed at each visit.
    """

    blocks: tuple[IntArray, ...] = ()
    memory: float = 2.0**28
    _factors: dict[tuple[int, float], _Factor] = field(default_factory=dict, repr=False)
    _kept: float = 0.0

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
        return np.array([self._factor(m, 0.0).norm for m in range(self.num_blocks)])

    def _factor(self, block: int, shrink: float) -> _Factor:
        found = self._factors.get((block, shrink))
        if found is None:
            found = _Factor(self.rows, self.blocks[block], shrink)
            size = 8.0 * len(self.blocks[block]) ** 2
            if self._kept + size <= self.memory:
                self._factors[block, shrink] = found
                self._kept += size
        return found

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Project onto the visited blocks; the sum of the squared errors seen, for each right-hand side."""
        if iterate.x.ndim == 1:
            return np.array([self._project(visits, b, iterate, self.threads)])
        for block in set(visits.tolist()):
            self._factor(block, iterate.shrink)
        seen = np.zeros(iterate.x.shape[1])

        def work(panel: slice) -> None:
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
            order = self.blocks[block]
            error = b[order] - self.rows.products(iterate.x, order, within)
            if iterate.duals.size:
                error -= iterate.shrink * iterate.duals[order]
            weights = self._factor(block, iterate.shrink).inverse @ error
            weights *= self.relaxation
            return np.sum(error * error, axis=0), weights, self.rows.combined(weights, order, within)

        seen = 0.0
        for start in range(0, len(visits), self.average):
            several = visits[start : start + self.average].tolist()
            found = together(steps, several, 1 if self.average == 1 else threads)
            for block, (squares, weights, move) in zip(several, found, strict=True):
                seen = seen + squares
                iterate.x += move / self._share
                if iterate.duals.size:
                    iterate.duals[self.blocks[block]] += weights / self._share
            self._clip(iterate)
        return seen

    def distances(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        parts = ((self._factor(m, 0.0).inverse, gap[block]) for m, block in enumerate(self.blocks))
        return np.sqrt([max(0.0, float(np.vdot(part, inverse @ part))) for inverse, part in parts])

    def losses(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        return np.array([0.5 * float(np.vdot(gap[block], gap[block])) for block in self.blocks])
