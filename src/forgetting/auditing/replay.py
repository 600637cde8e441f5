"""Whether replay of a few rows of each task would help on these tasks: the same orders, with it and without it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from forgetting.auditing.measures import DEVIATIONS, FLOPS, POINT, MeasuredOrders, order_tables
from forgetting.auditing.preparation import Prepared
from forgetting.core.arrangements import count_orders, distinct_orders
from forgetting.core.arrays import Array, IntArray
from forgetting.schemes import Replay

LISTED = 6  # orders up to which all are learned: those of three tasks
DRAWN = 12  # random orders that are learned where there are more
SHARE = 0.1  # of `patience` that may be taken
DECOMPOSITION = 20.0  # operations of a singular value decomposition of an N x D matrix, as a multiple of N D min(N, D)
STEP = 4e-4  # seconds of a step beside that
EFFECT = 0.05  # relative difference of losses below which replay makes no difference


@dataclass(frozen=True)
class Replayed:
    """The values of the measures after a pass in a random order, with some rows of each task replayed.

    Attributes:
        memory: the number of rows of each task that are kept, the first ones; 0 is no replay.
        values: of each measure, the mean over orders.
        errors: the standard error of the difference to no replay in the same orders; 0 if all orders were learned.
    """

    memory: int
    values: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True)
class ReplayTable:
    """What replay of a few rows of each task would change.

    Attributes:
        measures: the names of the measures, "forgetting" among them.
        rows: without replay, then with more and more rows.
        orders: the number of orders that were learned.
        exact: whether these are all orders.
    """

    measures: tuple[str, ...]
    rows: tuple[Replayed, ...]
    orders: int
    exact: bool

    def effect(self, measure: str, row: Replayed) -> Literal[-1, 0, 1]:
        """1 if replay makes a measure better, -1 if worse, 0 if by less than 5 % (half a percentage point of an
        accuracy), or by less than chance can explain."""
        at = self.measures.index(measure)
        one, other = row.values[at], self.rows[0].values[at]
        higher = measure.endswith("accuracy")
        gain = one - other if higher else other - one
        least = POINT if higher else EFFECT * max(abs(one), abs(other))
        if abs(gain) <= max(least, DEVIATIONS * row.errors[at]):
            return 0
        return 1 if gain > 0 else -1


def replay_orders(prepared: Prepared, measured: MeasuredOrders, patience: float) -> ReplayTable | str | None:
    """The table; or, in words, that it would take too long; or None where replay is not defined for the tasks.

    >>> import forgetting as fg
    >>> audit = fg.audit(fg.families.gaussian(T=3, d=8, rank=3, seed=0))
    >>> audit.replay.measures, [row.memory for row in audit.replay.rows], audit.replay.exact
    (('training loss', 'forgetting'), [0, 1, 2, 3], True)
    >>> [audit.replay.effect("training loss", row) for row in audit.replay.rows[1:]]
    [1, 1, 1]
    """
    problem = prepared.problem
    data = None if problem.linear is None else problem.linear.data
    linear, geometry = prepared.scheme.linear_on(problem), problem.geometry
    if data is None or linear is None or geometry is None or data.rows_read is not None or problem.num_tasks < 2:
        return None
    T, most = problem.num_tasks, int(data.num_rows.min())
    sizes = sorted({1, -(-most // 10), -(-most // 2), most if most <= 3 else 1} - {0})
    orders, exact = _orders(measured, T, prepared.seed)
    rank, dim = len(geometry.sigma) / geometry.num_distinct, geometry.dim
    seconds = 0.0
    for m in sizes:
        joined = rank + m * T / 2
        single = STEP + DECOMPOSITION * joined * dim * min(joined, dim) / FLOPS
        read = 2.0 * float(data.num_rows.sum()) * data.dim * dim / FLOPS  # the rows in the coordinates of a run
        seconds += len(orders) * (T * single + read)
    if seconds > SHARE * patience:
        return f"replay: it would take about {seconds:.1g} s, more than {SHARE:.0%} of patience= ({patience:g} s)"
    base: dict[str, Array] = {}
    rows = []
    for m in (0, *sizes):
        tables = order_tables(replace(prepared, scheme=Replay(linear, m)), orders)
        values = {name: table.mean(axis=1) for name, table in tables.items()}
        base = base or values
        spreads = [0.0 if exact else float(np.std(values[name] - base[name], ddof=1)) for name in values]
        errors = tuple(spread / math.sqrt(len(orders)) for spread in spreads)
        rows.append(Replayed(m, tuple(float(value.mean()) for value in values.values()), errors))
    return ReplayTable(tuple(base), tuple(rows), len(orders), exact)


def _orders(measured: MeasuredOrders, T: int, seed: int) -> tuple[IntArray, bool]:
    """All orders of the tasks if these are few, else some random ones."""
    if count_orders(np.ones(T, dtype=np.int64)) <= LISTED:
        return distinct_orders(np.ones(T, dtype=np.int64)), True
    if not measured.exact:
        return measured.tried[:DRAWN], False
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(13,)))
    return rng.permuted(np.tile(np.arange(T), (DRAWN, 1)), axis=1), False
