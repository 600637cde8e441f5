"""How much performance depends on the order of the tasks: the spread, the disparity of tasks, agreement of seeds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.auditing.orders import GAIN, FoundOrder, first_least
from forgetting.core.arrays import Array, IntArray, real_array
from forgetting.errors import InvalidInputError

__all__ = ["LEVELS", "OrderDisparity", "OrderSpread", "SeedAgreement", "order_disparity", "ranks_of"]

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class OrderDisparity:
    """The order-normalised performance disparity (OPD) of each task, and its maximum and mean over tasks.

    >>> OrderDisparity((0.5, 0.25), 2).maximum, OrderDisparity((0.5, 0.25), 2).mean
    (0.5, 0.375)
    """

    per_task: tuple[float, ...]
    orders: int

    @property
    def maximum(self) -> float:
        """The disparity of the task that depends most on the order (MOPD)."""
        return max(self.per_task)

    @property
    def mean(self) -> float:
        """The mean disparity of the tasks (AOPD)."""
        return sum(self.per_task) / len(self.per_task)


def order_disparity(performance: Any) -> OrderDisparity:
    """The order-normalised performance disparity of Yoon et al. (2020), from the performance at the end of each order.

    With P[r, t] the performance on task t (its accuracy, or its loss) after all tasks were learned in order r,

        OPD_t = max_r P[r, t] - min_r P[r, t],    MOPD = max_t OPD_t,    AOPD = mean_t OPD_t,

    in the unit of P; 0 if the order does not matter. Column t is the same task in all rows, whenever it was learned. A
    range grows with the number of orders: that of some orders is at most that of all orders, and disparities are
    comparable for the same number of orders only. Noise of single trainings adds to it: average over seeds first.

    Source: J. Yoon, S. Kim, E. Yang, S. J. Hwang, Scalable and Order-robust Continual Learning with Additive Parameter
    Decomposition, ICLR 2020.

    Args:
        performance: (orders, T).

    >>> disparity = order_disparity([[0.9, 0.5], [0.7, 0.8], [0.8, 0.75]])
    >>> [round(value, 12) for value in disparity.per_task], round(disparity.maximum, 12), round(disparity.mean, 12)
    ([0.2, 0.3], 0.3, 0.25)
    """
    table = real_array(performance, "performance")
    if table.ndim != 2 or 0 in table.shape:
        raise InvalidInputError(
            f"performance: expected a row for each order and a column for each task, got {table.shape}"
        )
    return OrderDisparity(tuple((table.max(axis=0) - table.min(axis=0)).tolist()), len(table))


@dataclass(frozen=True)
class OrderSpread:
    """The values of all orders in a few numbers, for the mean over seeds.

    Attributes:
        best, worst: the orders with the best and the worst value, these values, and how many orders are tied.
        mean, sd: mean and standard deviation over orders.
        quantiles: the values below which `LEVELS` = 5 %, 25 %, 50 %, 75 % and 95 % of the orders are.
    """

    best: FoundOrder
    worst: FoundOrder
    mean: float
    sd: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class SeedAgreement:
    """Whether seeds agree about the orders.

    Attributes:
        seeds: M.
        best_ranks, worst_ranks: in each seed, the rank of the best order of the mean over seeds, counted from the best
            order of the seed, and the rank of the worst order, counted from the worst; 1 if the seed agrees.
        different_best, different_worst: the number of different orders that are the best of a seed, or the worst.
        correlation: the mean over pairs of seeds of Spearman's rank correlation of their values; None if the values of
            a seed are all equal.
    """

    seeds: int
    best_ranks: tuple[int, ...]
    worst_ranks: tuple[int, ...]
    different_best: int
    different_worst: int
    correlation: float | None

    @property
    def best_agree(self) -> int:
        """The number of seeds whose best order is that of the mean over seeds; equal values count as agreement."""
        return self.best_ranks.count(1)

    @property
    def worst_agree(self) -> int:
        """The number of seeds whose worst order is that of the mean over seeds."""
        return self.worst_ranks.count(1)


def ranks_of(costs: Array, rows: IntArray) -> IntArray:
    """1 + the number of costs that are smaller than the costs in these rows by more than rounding.

    >>> ranks_of(np.array([3.0, 1.0, 1.0, 2.0]), np.array([0, 1, 2])).tolist()
    [4, 1, 1]
    """
    slack = GAIN * float(np.abs(costs).max())
    return 1 + np.searchsorted(np.sort(costs), costs[rows] - slack)


def agreement_of(costs: Array) -> SeedAgreement:
    """The agreement of seeds, from costs (smaller is better) of all orders, one column for each seed."""
    mean = costs.mean(axis=1)
    columns = list(costs.T)
    best, worst = np.array([first_least(mean)]), np.array([first_least(-mean)])
    ranks = np.stack([_average_ranks(column) for column in columns])
    correlation = None
    if (np.ptp(ranks, axis=1) > 0).all():
        pairs = np.triu_indices(len(columns), 1)
        correlation = float(np.asarray(np.corrcoef(ranks))[pairs].mean())
    return SeedAgreement(
        len(columns),
        tuple(int(ranks_of(column, best)[0]) for column in columns),
        tuple(int(ranks_of(-column, worst)[0]) for column in columns),
        len({first_least(column) for column in columns}),
        len({first_least(-column) for column in columns}),
        correlation,
    )


def _average_ranks(values: Array) -> Array:
    """The ranks of the values, from 0; values that are equal up to rounding share the mean of their ranks.

    >>> _average_ranks(np.array([5.0, 1.0, 1.0 + 1e-15])).tolist()
    [2.0, 0.5, 0.5]
    """
    _, place, counts = np.unique(ranks_of(values, np.arange(len(values))), return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[place])
