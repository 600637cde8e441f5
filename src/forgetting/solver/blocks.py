"""The division of rows into blocks, and what a block is, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_count, as_index
from forgetting.core.memory import in_bytes
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.files.row_sources import RowSource, block_starts
from forgetting.orderings import Ordering
from forgetting.solver.block_sweeper import BlockSweeper
from forgetting.solver.methods import Method, Sirt, registry
from forgetting.solver.rows import Rows
from forgetting.solver.streams import StreamSweeper
from forgetting.solver.sweepers import InMemory, RowSweeper

GROUP_BYTES = 2**16  # of the consecutive rows that are visited one after another
GROUP_ROWS = 4
BLOCK_ROWS = 32  # of a block where several right-hand sides are solved by matrix products
MANY = 8  # right-hand sides from which on blocks are worth their factorisation


def divided(
    rows: Rows, b: Array, blocks: Any, single: bool, budget: float, options: dict[str, Any]
) -> tuple[InMemory, str]:
    """The sweeper of the blocks that were asked for, and what a block is, in words; `single` asks for single rows."""
    (m, n), unit = rows.shape, options["unit"]
    if isinstance(blocks, str):
        if blocks not in ("auto", "rows"):
            raise InvalidInputError(f"blocks: expected 'auto', 'rows', a number or a partition, got {blocks!r:.40}")
        if blocks == "auto" and not single and options["average"] == 1:
            if b.ndim == 2 and b.shape[1] >= MANY and rows.entries == m * n:
                blocks = min(BLOCK_ROWS, max(1, n // 2))
            else:
                size = int(np.clip(GROUP_BYTES * m // (8 * max(1, rows.entries)), 1, GROUP_ROWS))
                size -= size % unit if size > unit else size - unit  # pairs stay together
                return RowSweeper(rows, **options, size=size), _counted(size // unit)
        if isinstance(blocks, str):
            return RowSweeper(rows, **options, size=unit, memory=budget), _counted(1)
    try:
        listed = list(blocks)
    except TypeError:  # not a partition: a number
        size = as_count(blocks, "blocks", least=1)
        parts = tuple(np.arange(start, min(start + size * unit, m)) for start in range(0, m, size * unit))
        words = f"blocks of {size} rows, projections onto their solutions"
    else:
        parts = tuple(as_index(part, m // unit, f"block {i}") for i, part in enumerate(listed))
        _check_partition(parts, m // unit)
        if unit > 1:
            parts = tuple((unit * part[:, None] + np.arange(unit)).ravel() for part in parts)
        words = f"{len(parts)} given blocks, projections onto their solutions"
    return BlockSweeper(rows, **options, blocks=parts, memory=budget), words


def streamed(
    source: RowSource,
    blocks: Any,
    method: str,
    ordering: Ordering | None,
    budget: float,
    seed: int,
    options: dict[str, Any],
) -> tuple[StreamSweeper, str]:
    """The sweeper of a matrix that is read block by block, and what a block is, in words."""
    remedy = f"give memory= of {in_bytes(2 * source.row_bytes * source.shape[0])} or more for a matrix in memory"
    wanted: type[Method] | None = None if method == "auto" else registry.get(method)
    if wanted is not None and not wanted.streams:
        raise NotSupportedError(
            f"method={method!r} needs single rows or columns in any order, but A is streamed block by block; "
            f"method='multipliers' finds the least-squares solution from blocks of rows, or {remedy}"
        )
    if ordering is not None and ordering.adaptive:
        raise NotSupportedError(
            f"{ordering.in_words!r} looks at all rows before every visit, but A is streamed block by block; "
            f"leave ordering= out, or {remedy}"
        )
    if not isinstance(blocks, str) and np.ndim(blocks) > 0:
        raise NotSupportedError(
            f"a streamed matrix is read in blocks of consecutive rows; give their size, or {remedy}"
        )
    if isinstance(blocks, str) and blocks not in ("auto", "rows"):
        raise InvalidInputError(f"blocks: expected 'auto', 'rows' or a number of rows, got {blocks!r:.40}")
    size = None if isinstance(blocks, str) else as_count(blocks, "blocks", least=1)
    unit = options["unit"]
    starts = block_starts(source, budget, None if size is None else unit * size)
    longest = int(np.diff(starts).max())
    if unit * options["average"] > longest:
        raise NotSupportedError(
            f"average={options['average']} rows, but a streamed matrix has {longest // unit} rows in memory at a time; "
            f"average fewer rows, or {remedy}"
        )
    keep = max(0.0, budget - 4 * longest * source.row_bytes)
    words = (
        f"{len(starts) - 1} blocks of up to {longest // unit} rows, read one after another; their rows in random order"
    )
    return StreamSweeper(source, starts, **options, keep=keep, seed=seed), words


def _counted(size: int) -> str:
    return "single rows" if size == 1 else f"groups of {size} consecutive rows, one after another"


def _check_partition(parts: tuple[Any, ...], m: int) -> None:
    """Raise unless every row is in exactly one block."""
    counts = np.zeros(m, dtype=np.int64)
    for i, part in enumerate(parts):
        if len(part) == 0:
            raise InvalidInputError(f"block {i} has no rows; leave it out")
        np.add.at(counts, part, 1)
    odd = np.flatnonzero(counts != 1)
    if odd.size:
        raise InvalidInputError(f"row {odd[0]} is in {counts[odd[0]]} blocks; a partition has every row in one block")


def views(method: str, blocks: Any, rows: int, shape: Any) -> Any:
    """The blocks of a simultaneous method: all rows together, or the rows of a view."""
    unset = isinstance(blocks, str) and blocks == "auto"
    if registry.get(method) is Sirt:
        if not unset:
            raise NotSupportedError("method='sirt' makes the steps of all rows at once; method='sart' has blocks=")
        return rows
    if unset and shape is not None:
        return rows // int(shape[0])
    if isinstance(blocks, str):
        raise InvalidInputError("method='sart' needs the number of rows of a view: give blocks= or residual_shape=")
    return blocks
