"""Sweeps over the rows of a system in memory: row by row, by projections onto blocks, or several blocks at once.

A sweeper divides the rows into blocks, which an ordering visits, and makes the steps of visited blocks. With damping,
x and the duals u of the rows solve A x + shrink u = b, whose solution nearest to (x0, 0) minimises
|A x - b|^2 + shrink |x - x0|^2.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_dense, fingerprint
from forgetting.files.row_sources import sampled_rows
from forgetting.solver.rows import NONE, Limits, Rows

GRAM_ROWS = 2**14  # whose scaled copy is made at once


@dataclass
class Iterate:
    """The state that a sweep changes: x, the duals of rows (with damping, or for a nearest point), what bounds cut off.

    `shrink` is the squared damping; x is n numbers, or n x c with c right-hand sides.
    """

    x: Array
    duals: Array = field(default_factory=lambda: NONE)
    clipped: Array = field(default_factory=lambda: NONE)
    shrink: float = 0.0


class Sweeper(ABC):
    """The base class of sweepers: blocks of rows, and the steps of visited blocks.

    Attributes:
        shape: the shape of the matrix.
        limits: relations of rows, bounds on x.
        relaxation: the factor of every step.
        average: how many blocks make their steps from the same x; their average is taken.
        threads: the number of threads; no result depends on it.
        unit: the rows that stand for one row of the given matrix, and are visited together: 2 if it is complex, else 1.
        in_memory: whether the matrix lies in memory.
        row_steps: whether the rows of a block make their steps one after another; else a visit projects onto the block.
    """

    in_memory: ClassVar[bool] = True
    row_steps: ClassVar[bool] = True

    shape: tuple[int, int]
    limits: Limits
    relaxation: float
    average: int
    threads: int
    unit: int

    @property
    def units(self) -> int:
        """The number of rows of the given matrix."""
        return self.shape[0] // self.unit

    @property
    @abstractmethod
    def num_blocks(self) -> int:
        """The number of blocks."""

    @property
    def norms(self) -> Array | None:
        """The spectral norm of every block; None if an ordering cannot use it."""
        return None

    @abstractmethod
    def rows_in(self, visits: IntArray) -> int:
        """The number of rows that these visits touch."""

    def parts(self, visits: IntArray, following: IntArray, done: int) -> Iterable[IntArray]:
        """The visits in parts, after which the state may be saved; `following` come next, `done` visits came before.

        One part in memory, where sweeps are short.
        """
        return [visits]

    @abstractmethod
    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Make the steps of the visited blocks; the sum of the squared errors seen, for each right-hand side."""

    @property
    @abstractmethod
    def squares_sum(self) -> float:
        """The sum of the squares of all entries."""

    @property
    @abstractmethod
    def row_squares(self) -> Array:
        """|a_i|^2 of every row."""

    def relax(self, relaxation: float) -> None:
        """Let the factor of the steps to come be this one."""
        self.relaxation = relaxation

    @abstractmethod
    def slack(self, b: Array, x: Array) -> Array:
        """b - A x."""

    def gap(self, b: Array, x: Array) -> Array:
        """The part of b - A x that violates the rows."""
        return self.limits.missed(self.slack(b, x))

    @abstractmethod
    def back(self, gap: Array) -> Array:
        """A^T gap."""

    def gap_and_back(self, b: Array, x: Array) -> tuple[Array, Array]:
        """The gap and A^T gap, by one pass if the matrix is streamed."""
        gap = self.gap(b, x)
        return gap, self.back(gap)

    def normal(self, x: Array) -> tuple[Array, Array]:
        """A x and A^T A x, by one pass if the matrix is streamed; relations of rows do not count."""
        product = -self.slack(np.zeros((self.shape[0], *x.shape[1:])), x)
        return product, self.back(product)

    @abstractmethod
    def column_squares(self, weights: Array) -> Array:
        """The sum of weights_i a_ij^2 over the rows i, for every column j."""

    @abstractmethod
    def columns(self) -> Sweeper:
        """A sweeper of the columns, one by one."""

    @abstractmethod
    def dense(self) -> Array:
        """The matrix as a dense array."""

    @abstractmethod
    def marks(self) -> dict[str, str]:
        """Marks that a resumed solve must share: the matrix, its blocks and the settings of steps."""

    @abstractmethod
    def weighted_gram(self, weights: Array) -> Array | None:
        """A^T W A for a tall matrix, W^(1/2) A A^T W^(1/2) for a wide one; None if that takes a pass over a disk."""


@dataclass
class InMemory(Sweeper):
    """The base class of sweepers of `rows` in memory; the other fields are those of `Sweeper`."""

    rows: Rows
    limits: Limits = field(default_factory=Limits)
    relaxation: float = 1.0
    average: int = 1
    threads: int = 1
    unit: int = 1

    def __post_init__(self) -> None:
        self.shape = self.rows.shape

    def of_units(self, values: Array) -> Array:
        """The root of the sum of squares of the numbers of each unit of rows."""
        return np.abs(values) if self.unit == 1 else np.linalg.norm(values.reshape(-1, self.unit), axis=1)

    @property
    def _share(self) -> int:
        """The divisor of steps from the same x: the same number also for the last blocks, which may be fewer."""
        return min(self.average, self.num_blocks)

    @abstractmethod
    def distances(self, b: Array, x: Array) -> Array:
        """The distance from x to the solutions of every block."""

    @abstractmethod
    def losses(self, b: Array, x: Array) -> Array:
        """Half the sum of the squared residuals of every block."""

    @cached_property
    def squares_sum(self) -> float:
        return float(self.rows.squares.sum())

    @property
    def row_squares(self) -> Array:
        return self.rows.squares

    def slack(self, b: Array, x: Array) -> Array:
        return b - self.rows.products(x, threads=self.threads)

    def back(self, gap: Array) -> Array:
        return self.rows.combined(gap, threads=self.threads)

    def normal(self, x: Array) -> tuple[Array, Array]:
        return self.rows.normal(np.ascontiguousarray(x), self.threads)

    def sweep_back(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """The steps of `sweep` in the opposite order, for equations without duals."""
        return self.sweep(visits[::-1], b, iterate)

    def marks(self) -> dict[str, str]:
        sample = sampled_rows(self.shape[0])
        return {
            "A": f"{self.shape} {fingerprint(self.rows.matrix[sample]).hex()}",
            "blocks": self._division(),
            "relaxation": repr(self.relaxation),
            "average": repr(self.average),
        }

    @abstractmethod
    def _division(self) -> str:
        """The division of the rows into blocks, in words."""

    def column_squares(self, weights: Array) -> Array:
        return self.rows.column_squares(weights)

    def columns(self) -> Sweeper:
        return RowSweeper(self.rows.transposed(), threads=self.threads)

    def dense(self) -> Array:
        return self.rows.dense(slice(None))

    def tracked(self, b: Array, x: Array) -> Tracked | None:
        """The gaps of all rows, kept up to date step by step; None if they are computed anew."""
        return None

    def weighted_gram(self, weights: Array) -> Array:
        m, n = self.shape
        matrix, roots = self.rows.matrix, np.sqrt(weights)
        if m < n:
            wide: Array = as_dense(matrix @ matrix.T) * np.outer(roots, roots)
            return wide
        total = np.zeros((n, n))
        for start in range(0, m, GRAM_ROWS):
            part = matrix[start : start + GRAM_ROWS]
            scaled = part.T * weights[start : start + GRAM_ROWS]
            total += as_dense(scaled @ part)
        return total

    def clip(self, iterate: Iterate) -> None:
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
    _of: tuple[float, float] = (-1.0, 0.0)  # the shrink and the relaxation to which the scales belong
    _scales: Array = field(default_factory=lambda: NONE, repr=False)

    @property
    def num_blocks(self) -> int:
        return -(-self.shape[0] // self.size)

    @cached_property
    def norms(self) -> Array | None:
        return np.sqrt(self.rows.squares[:: self.unit]) if self.size == self.unit else None

    def rows_in(self, visits: IntArray) -> int:
        last = self.shape[0] - (self.num_blocks - 1) * self.size
        return len(visits) * self.size - int(np.count_nonzero(visits == self.num_blocks - 1)) * (self.size - last)

    def _division(self) -> str:
        return f"groups of {self.size} rows"

    def _order(self, visits: IntArray) -> IntArray:
        if self.size == 1:
            return visits
        if visits.min(initial=0) < 0:  # rows of a ridge, one by one
            lengths = np.where(visits < 0, 1, self.size)
            firsts = np.where(visits < 0, visits, visits * self.size)
            within = np.arange(lengths.sum()) - np.repeat(lengths.cumsum() - lengths, lengths)
            return np.asarray(np.repeat(firsts, lengths) + within)
        order = (visits[:, None] * self.size + np.arange(self.size)).ravel()
        return order[order < self.shape[0]]

    @property
    def _by_fours(self) -> bool:
        plain = not len(self.limits.relations) and not len(self.limits.low) and self.average == 1
        return plain and self.size == 4 and self.rows.by_fours

    def step_scales(self, shrink: float) -> Array:
        """The factor of the error of every row in its step."""
        if (shrink, self.relaxation) != self._of:
            self._of, self._scales = (shrink, self.relaxation), scales(self.rows.squares, shrink, self.relaxation)
        return self._scales

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        scale = self.step_scales(iterate.shrink)
        if self._by_fours and iterate.x.ndim == 1:
            return self.rows.sweep_fours(b, scale, iterate.shrink, visits, iterate.x, iterate.duals)
        order = self._order(visits)
        if self.average == 1:
            state = (iterate.x, iterate.duals, iterate.clipped)
            return self.rows.sweep(b, scale, iterate.shrink, self.limits, order, *state, threads=self.threads)
        seen = np.zeros(1 if iterate.x.ndim == 1 else iterate.x.shape[1])
        several = self.average * self.unit
        for start in range(0, len(order), several):
            seen += self._together(order[start : start + several], scale, b, iterate)
        return seen

    def sweep_back(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        scale = self.step_scales(0.0)
        if self._by_fours and iterate.x.ndim == 1:
            return self.rows.sweep_fours_back(b, scale, visits, iterate.x)
        order = np.ascontiguousarray(self._order(visits)[::-1])
        return self.rows.sweep(b, scale, 0.0, Limits(), order, iterate.x, threads=self.threads)

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
        self.clip(iterate)
        return np.atleast_1d(np.sum(error * error, axis=0))

    def tracked(self, b: Array, x: Array) -> Tracked | None:
        """The gaps of all rows, kept up to date step by step; None if a step adds more than a multiple of a row."""
        plain = self.average == 1 and self.size == self.unit and x.ndim == 1
        if not plain or len(self.limits.relations) or len(self.limits.low):
            return None
        return Tracked(self, b, x)

    def distances(self, b: Array, x: Array) -> Array:
        gap, squares = np.sqrt(2 * self.losses(b, x)), self.rows.squares[:: self.unit]
        return np.divide(gap, np.sqrt(squares), out=np.zeros_like(gap), where=squares > 0)

    def losses(self, b: Array, x: Array) -> Array:
        gap = self.gap(b, x)
        return np.asarray(0.5 * np.sum(gap.reshape(self.units, -1) ** 2, axis=1))


class Tracked:
    """b - A x for orderings that look at x at every step, kept up to date by inner products of rows.

    The step t a_i changes the gaps by t A a_i. The m numbers A a_i are kept as long as memory lasts, so that a second
    visit costs m operations and not a pass over the matrix.
    """

    def __init__(self, sweeper: RowSweeper, b: Array, x: Array) -> None:
        self.rows, self.b, self.sweeper = sweeper.rows, b, sweeper
        self.products: dict[int, Array] = {}
        self.most = int(sweeper.memory / (8.0 * self.rows.shape[0]))
        norms = np.sqrt(self.rows.squares[:: sweeper.unit])
        self._inverse_norms = np.divide(1.0, norms, out=np.zeros(len(norms)), where=norms > 0)
        self.scale = sweeper.step_scales(0.0)
        self.refresh(x)

    def refresh(self, x: Array) -> None:
        """Compute all gaps anew, so that rounding errors do not add up."""
        self.gap = self.b - self.rows.products(x)

    def moved(self, block: int) -> None:
        """Note the step of a row, or of a pair of rows."""
        for row in range(block * self.sweeper.unit, (block + 1) * self.sweeper.unit):
            self._step(row)

    def _step(self, row: int) -> None:
        product = self.products.get(row)
        if product is None:
            product = self.rows.products(self.rows.dense([row])[0])
            if len(self.products) < self.most:
                self.products[row] = product
        self.gap -= (self.scale[row] * self.gap[row]) * product

    def distances(self) -> Array:
        """The distance from x to the solutions of every row."""
        return self.sweeper.of_units(self.gap) * self._inverse_norms

    def losses(self) -> Array:
        """Half the squared residual of every row."""
        return 0.5 * self.sweeper.of_units(self.gap) ** 2


def scales(squares: Array, shrink: float, relaxation: float) -> Array:
    """relaxation / (|a_i|^2 + shrink), and 0 for rows that are zero."""
    return np.divide(relaxation, squares + shrink, out=np.zeros(len(squares)), where=squares > 0)
