"""Sweeps over the rows of a matrix that is not in memory: block by block, while a thread reads the next block."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from threading import Lock, Thread
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray, is_sparse
from forgetting.errors import NotSupportedError
from forgetting.files.row_sources import RowSource
from forgetting.solver.rows import Limits, Rows
from forgetting.solver.sweepers import Iterate, RowSweeper, Sweeper


@dataclass
class StreamSweeper(Sweeper):
    """Visits blocks of consecutive rows, and makes the steps of their rows one after another, in a random order.

    The order of the rows is drawn from the seed and the number of the visit. No result depends on the number of threads
    or on which blocks are kept.

    Attributes:
        source: what reads the rows.
        starts: the first row of every block, and the number of rows.
        limits, relaxation, average: as for matrices in memory; averages are over rows of a block.
        threads: the number of threads; with more than one, a thread reads the next block.
        unit: the rows that stand for one row of the given matrix.
        keep: bytes for blocks that stay in memory.
        seed: of the random orders.
    """

    in_memory: ClassVar[bool] = False

    source: RowSource
    starts: IntArray
    limits: Limits = field(default_factory=Limits)
    relaxation: float = 1.0
    average: int = 1
    threads: int = 1
    unit: int = 1
    keep: float = 0.0
    seed: int = 0
    visited: int = 0  # the number of the next visit

    def __post_init__(self) -> None:
        self.shape = self.source.shape
        self._kept: dict[int, Rows] = {}
        self._kept_bytes = 0.0
        self._reading: dict[int, Future[Rows]] = {}
        self._squares: dict[int, Array] = {}  # of the rows of blocks that were read
        self._next: int | None = None
        self._lock = Lock()  # a user's object need not be safe for several threads

    @property
    def num_blocks(self) -> int:
        return len(self.starts) - 1

    def rows_in(self, visits: IntArray) -> int:
        return int(np.diff(self.starts)[visits].sum())

    # ------------------------------------------------------------------------------------------------------- reading

    def _span(self, block: int) -> slice:
        return slice(int(self.starts[block]), int(self.starts[block + 1]))

    def _read(self, block: int) -> Rows:
        span = self._span(block)
        with self._lock:
            rows = Rows(self.source.read(span.start, span.stop))
        rows.squares  # noqa: B018 - computed by the thread that reads
        return rows

    def _read_ahead(self, block: int | None) -> None:
        """Let a thread read a block that will be visited."""
        if block is None or block in self._kept or block in self._reading or self.threads == 1:
            return
        future: Future[Rows] = Future()

        def work() -> None:
            try:
                future.set_result(self._read(block))
            except BaseException as error:  # raised where the block is visited
                future.set_exception(error)

        self._reading[block] = future
        Thread(target=work, name="reads ahead", daemon=True).start()

    def _rows(self, block: int, following: int | None) -> Rows:
        """The rows of a block; a thread begins to read the block that follows."""
        rows = self._kept.get(block)
        if rows is None:
            ahead = self._reading.pop(block, None)
            rows = self._read(block) if ahead is None else ahead.result()
            self._squares[block] = rows.squares
            size = (16.0 if is_sparse(rows.matrix) else 8.0) * (rows.entries + rows.shape[0])
            if self._kept_bytes + size <= self.keep:
                self._kept[block] = rows
                self._kept_bytes += size
        self._read_ahead(following)
        return rows

    def _pass(self, blocks: list[int] | None = None) -> Iterator[tuple[slice, Rows]]:
        """Yield the rows of all blocks (or of some), one after another."""
        blocks = list(range(self.num_blocks)) if blocks is None else blocks
        for block, following in zip(blocks, [*blocks[1:], None], strict=False):  # no block, nothing follows
            yield self._span(block), self._rows(block, following)

    # ------------------------------------------------------------------------------------------------------ visiting

    def parts(self, visits: IntArray, following: IntArray, done: int) -> Iterator[IntArray]:
        """One visit after another; meanwhile a thread reads the block of the next visit."""
        upcoming = [*visits.tolist(), *following.tolist()[:1], None]
        for i in range(len(visits)):
            self.visited, self._next = done + i, upcoming[i + 1]
            yield visits[i : i + 1]

    def sweep(self, visits: IntArray, b: Array, iterate: Iterate) -> Array:
        """Make the steps of the rows of visited blocks; the sum of the squared errors, for each right-hand side."""
        seen = np.zeros(1 if iterate.x.ndim == 1 else iterate.x.shape[1])
        upcoming = [*visits.tolist()[1:], self._next]
        for block, following in zip(visits.tolist(), upcoming, strict=True):
            rows, span = self._rows(block, following), self._span(block)
            order = np.random.default_rng([self.seed, self.visited]).permutation(rows.shape[0] // self.unit)
            own = Iterate(iterate.x, iterate.duals[span], iterate.clipped, iterate.shrink)
            options = {"relaxation": self.relaxation, "average": self.average, "threads": self.threads}
            options |= {"unit": self.unit, "size": self.unit}
            seen += RowSweeper(rows, self.limits.of_rows(span), **options).sweep(order, b[span], own)  # type: ignore[arg-type]
            self.visited += 1
        return seen

    # ------------------------------------------------------------------------------------------ passes over the matrix

    @cached_property
    def row_squares(self) -> Array:
        """|a_i|^2 of every row; blocks that were never read are read."""
        for _ in self._pass([block for block in range(self.num_blocks) if block not in self._squares]):
            pass
        return np.concatenate([self._squares[block] for block in range(self.num_blocks)])

    @cached_property
    def squares_sum(self) -> float:
        """The sum of the squares of all entries; blocks that were never read are read."""
        squares = self.row_squares
        return float(sum(float(squares[first:last].sum()) for first, last in pairwise(self.starts.tolist())))

    def slack(self, b: Array, x: Array) -> Array:
        slack = np.empty_like(b)
        for span, rows in self._pass():
            slack[span] = b[span] - rows.products(x, threads=self.threads)
        return slack

    def back(self, gap: Array) -> Array:
        total = np.zeros((self.shape[1], *gap.shape[1:]))
        for span, rows in self._pass():
            total += rows.combined(gap[span], threads=self.threads)
        return total

    def gap_and_back(self, b: Array, x: Array) -> tuple[Array, Array]:
        gap, total = np.empty_like(b), np.zeros_like(x)
        for span, rows in self._pass():
            gap[span] = self.limits.of_rows(span).missed(b[span] - rows.products(x, threads=self.threads))
            total += rows.combined(gap[span], threads=self.threads)
        return gap, total

    def normal(self, x: Array) -> tuple[Array, Array]:
        product, total = np.empty((self.shape[0], *x.shape[1:])), np.zeros_like(x)
        for span, rows in self._pass():
            product[span] = rows.products(x, threads=self.threads)
            total += rows.combined(product[span], threads=self.threads)
        return product, total

    def column_squares(self, weights: Array) -> Array:
        total = np.zeros(self.shape[1])
        for span, rows in self._pass():
            total += rows.column_squares(weights[span])
        return total

    def weighted_gram(self, weights: Array) -> Array | None:
        """None: products of all rows would take a pass over the source."""
        return None

    def dense(self) -> Array:
        """Raise: the matrix is not in memory."""
        raise NotSupportedError("a streamed matrix is not decomposed; method='multipliers' reads blocks of rows")

    def columns(self) -> Sweeper:
        """Raise: the columns of a streamed matrix are spread over all blocks."""
        raise NotSupportedError(
            "method='extended' reads columns, which a streamed matrix does not have; method='multipliers' finds the "
            "least-squares solution by rows only"
        )

    def marks(self) -> dict[str, str]:
        starts = self.starts if len(self.starts) < 4 else np.array([*self.starts[:2], *self.starts[-2:]])
        return {
            "A": f"{self.shape} {self.source.mark()}",
            "blocks": f"{self.num_blocks} blocks of a streamed matrix, {starts.tolist()}",
            "relaxation": repr(self.relaxation),
            "average": repr(self.average),
        }
