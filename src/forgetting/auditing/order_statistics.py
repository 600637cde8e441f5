"""Statistics of values over orders: the variance split by what an order says, spread, disparity, agreement of seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import fdtr, fdtri

from forgetting.auditing.orders import GAIN, FoundOrder, first_least
from forgetting.core.arrays import Array, IntArray, as_list, as_number, real_array
from forgetting.core.numerical import ROUNDING
from forgetting.errors import InvalidInputError

PARTS = ("position", "pairs", "rest")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)


# ------------------------------------------------------------------------------------------------------------- variance


@dataclass(frozen=True, eq=False)
class OrderVariance:
    """The variance over orders, split into orthogonal parts, for one or more seeds.

    f(order) - mean = position + pairs + rest, where "position" is the sum over tasks of a number for each task and
    position (the best fit of that kind), "pairs" is what numbers for two tasks at two positions add to the fit, and
    "rest" is what needs three tasks or more. The parts are orthogonal, so that their variances sum to that of f.

    Each seed has its own f, and seeds differ by noise. The variance of the mean over M seeds contains 1/M of the
    variance of the noise. Products of different seeds do not: their mean is an unbiased estimate of the variance of the
    signal, which all seeds share. For each part, variances = signal + noise / M.

    Attributes:
        dimensions: the number of free parameters of each part; together T! - 1.
        variances: (3,) the variance over orders of each part, of the mean over seeds.
        products: (3, M, M); entry (part, s, t) is the mean over orders of the part of seed s times that of seed t.
        table: (T, T), for the mean over seeds: the mean over orders with task i at position a, minus the mean over all
            orders.
        scale: the largest absolute value, against which variances are rounding or not.
    """

    dimensions: tuple[int, ...]
    variances: Array
    products: Array
    table: Array
    scale: float

    @property
    def num_seeds(self) -> int:
        """The number of seeds M."""
        return len(self.products[0])

    @property
    def variance(self) -> float:
        """The variance over orders of the mean over seeds."""
        return float(self.variances.sum())

    @property
    def shares(self) -> Array | None:
        """The part of the variance that each part explains; None if all orders have the same value."""
        if math.sqrt(max(self.variance, 0.0)) <= ROUNDING * self.scale:
            return None
        return self.variances / self.variance

    @property
    def chance(self) -> Array:
        """The shares of pure noise, independent from order to order: dimensions / (T! - 1)."""
        return np.array(self.dimensions) / sum(self.dimensions)

    @property
    def noise(self) -> Array | None:
        """The variance between seeds of each part (divided by M - 1); None for a single seed."""
        M = self.num_seeds
        if M < 2:
            return None
        trace = np.trace(self.products, axis1=1, axis2=2)
        return np.asarray(np.maximum(trace - M * self.variances, 0.0) / (M - 1))

    @property
    def signal(self) -> Array | None:
        """The unbiased estimate of the variance that all seeds share, for each part; None for a single seed.

        It is the mean of the products of different seeds, and may be negative where there is no signal.
        """
        return None if self.num_seeds < 2 else _different(self.products)

    @property
    def signal_shares(self) -> Array | None:
        """The shares of the parts in the signal; None for a single seed, or if no signal stands out from the noise.

        A ratio of two unbiased estimates: it has a bias of its own, which falls with the number of seeds.
        """
        return None if self.num_seeds < 2 else _signal_shares(self.products)

    @property
    def signal_errors(self) -> Array | None:
        """Standard errors of `signal_shares`, by leaving out one seed at a time; None for fewer than three seeds."""
        M = self.num_seeds
        if M < 3 or self.signal_shares is None:
            return None
        kept = [np.delete(np.arange(M), seed) for seed in range(M)]
        shares = [_signal_shares(self.products[:, seeds][:, :, seeds]) for seeds in kept]
        known = [part for part in shares if part is not None]
        if len(known) < M:
            return None
        return np.asarray(np.sqrt((M - 1) * np.var(known, axis=0)))


def _different(products: Array) -> Array:
    """The mean of the products of different seeds."""
    M = products.shape[1]
    trace = np.trace(products, axis1=1, axis2=2)
    return np.asarray((products.sum(axis=(1, 2)) - trace) / (M * (M - 1)))


def _signal_shares(products: Array) -> Array | None:
    """The shares of the parts in the signal; None if the signal is rounding, or negative."""
    signal = _different(products)
    if signal.sum() <= ROUNDING * products.sum(axis=0).trace() / products.shape[1]:
        return None
    return np.asarray(signal / signal.sum())


def split_variance(permutations: IntArray, values: Array) -> OrderVariance:
    """Split the variance over orders: all T! permutations, one per row, and their values for M seeds, (T!, M).

    In words of representations of the symmetric group S_T, the parts are the isotypic components of the partitions
    (T - 1, 1); (T - 2, 2) and (T - 2, 1, 1); and all others (Diaconis 1988, Group Representations in Probability and
    Statistics, chapter 8). Conditional means give the projections in closed form. With m(i, a) the mean of the centred
    values over orders with task i at position a,

        position(order) = (T - 1)/T sum_a m(order[a], a),

    and with g_ab(i, j) the mean over orders with i at a and j at b of what is left, split into its symmetric part s and
    its antisymmetric part t,

        pairs(order) = sum_{a < b} (T - 3)/(T - 1) s_ab(order[a], order[b]) + (T - 2)/T t_ab(order[a], order[b]).

    Cost: about T^2 T! M operations.

    >>> from itertools import permutations
    >>> orders = np.array(list(permutations(range(3))))
    >>> last = split_variance(orders, (orders[:, 2:] == 0).astype(float))    # 1 if task 0 comes last
    >>> last.dimensions, last.shares.round(12).tolist()
    ((4, 1, 0), [1.0, 0.0, 0.0])
    """
    count, T = permutations.shape
    M = values.shape[1]
    with_mean = np.column_stack([values, values.mean(axis=1)])  # a mean of products of seeds would lose half the digits
    centred = with_mean - with_mean.mean(axis=0)
    seeds = range(M + 1)
    tables = np.stack(
        [[_means(permutations[:, a], centred[:, s], T) for a in range(T)] for s in seeds], axis=-1
    )  # position, task, seed
    position = np.zeros_like(centred)
    for a in range(T):
        position += (T - 1) / T * tables[a][permutations[:, a]]
    left = centred - position
    pairs = np.zeros_like(centred)
    for a in range(T):
        for b in range(a + 1, T):
            both = permutations[:, a] * T + permutations[:, b]
            for s in seeds:
                g = _means(both, left[:, s], T * T).reshape(T, T)
                fitted = max(T - 3, 0) / (T - 1) * (g + g.T) / 2 + (T - 2) / T * (g - g.T) / 2
                pairs[:, s] += fitted.ravel()[both]
    products = np.stack([part.T @ part / count for part in (position, pairs, left - pairs)])
    first = (T - 1) ** 2
    second = (T * max(T - 3, 0) // 2) ** 2 + ((T - 1) * (T - 2) // 2) ** 2
    dimensions = (first, second, count - 1 - first - second)
    scale = float(np.abs(values).max())
    return OrderVariance(dimensions, products[:, M, M], products[:, :M, :M], tables[:, :, M].T, scale)


def _means(groups: IntArray, values: Array, number: int) -> Array:
    """The mean of the values in each group; 0 for groups without members."""
    counts = np.bincount(groups, minlength=number)
    return np.asarray(np.bincount(groups, values, minlength=number) / np.maximum(counts, 1))


# -------------------------------------------------------------------------------------- spread, disparity and agreement


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
    every = np.arange(len(costs))
    # the smaller values less the larger ones: twice the rank, up to a constant, where equal values share their ranks
    ranks = np.stack([ranks_of(column, every) - ranks_of(-column, every) for column in columns])
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


# ---------------------------------------------------------------------------------------------- some orders, some seeds


@dataclass(frozen=True)
class OrderShare:
    """How much of the variance of runs is between orders, by a one-way model with random effects.

    A run has the value mean + effect of its order + noise of its seed, both normal and independent: the share of the
    order is the variance of its effect in the sum of both variances.

    Attributes:
        share: the estimate from mean squares, 0 if the orders differ less than noise alone makes them differ; None if
            nothing differs, or `reason` says why it cannot be told.
        low, high: the 95 % interval of the share (Wald 1940), exact for normal values and any numbers of runs; None
            without noise.
        p_value: the probability of orders that differ as much or more if the order has no effect (F test).
        between, within: the standard deviations of the effect of the order and of the noise.
        orders, runs: their numbers.
        reason: why the share cannot be told; else empty.
    """

    share: float | None
    low: float | None
    high: float | None
    p_value: float | None
    between: float | None
    within: float | None
    orders: int
    runs: int
    reason: str = ""


def share_of_order(values: Any, orders: Sequence[str], level: float = 0.95) -> OrderShare:
    """The share of the order in the variance of runs; runs whose `orders` have equal words have the same order.

    With g orders of n_i runs, theta = (variance of the effect) / (variance of the noise) and w_i = n_i/(1 + n_i theta),

        sum_i w_i (mean_i - weighted mean)^2 / (g - 1) / (mean square within orders)

    has the F distribution with g - 1 and N - g degrees of freedom, and falls with theta: the ends of the interval are
    where it has the quantiles of that distribution (A. Wald, A note on the analysis of variance with unequal class
    frequencies, Ann. Math. Statist. 11, 1940).

    >>> found = share_of_order([1.0, 1.2, 2.0, 2.2, 4.0, 4.2], ["a", "a", "b", "b", "c", "c"])
    >>> round(found.share, 3), round(found.low, 3), round(found.high, 3)
    (0.991, 0.871, 1.0)
    >>> share_of_order([1.0, 2.0], ["a", "b"]).reason
    'every run has an order of its own, so that order and seed cannot be told apart'
    """
    array = real_array(values, "values")
    names, level = [str(name) for name in as_list(orders, "orders")], as_number(level, "level", above=0, below=1)
    if array.shape != (len(names),):
        raise InvalidInputError(f"values: {array.shape} for the orders of {len(names)} runs")
    groups = [array[[name == own for own in names]] for name in dict.fromkeys(names)]
    N, g = len(array), len(groups)
    reason = ""
    if N < 2:
        reason = "there is one run"
    elif "" in names:
        reason = f"the order of {names.count('')} of {N} runs is not known"
    elif g == 1:
        reason = "all runs have the same order"
    elif g == N:
        reason = "every run has an order of its own, so that order and seed cannot be told apart"
    if reason:
        return OrderShare(None, None, None, None, None, None, g, N, reason)
    sizes = np.array([len(group) for group in groups], dtype=float)
    means = np.array([group.mean() for group in groups])
    inside = float(sum(((group - group.mean()) ** 2).sum() for group in groups)) / (N - g)
    outside = float((sizes * (means - array.mean()) ** 2).sum()) / (g - 1)
    rounding = (ROUNDING * float(np.abs(array).max())) ** 2
    if inside <= rounding:
        share = None if outside <= rounding else 1.0
        same = "all runs have the same value" if share is None else "runs with the same order have the same value"
        return OrderShare(share, None, None, None, math.sqrt(outside / sizes.mean()), 0.0, g, N, same)
    effect = max((outside - inside) * (g - 1) / (N - float((sizes**2).sum()) / N), 0.0)

    def ratio(theta: float) -> float:
        weights = sizes / (1 + sizes * theta)
        centre = (weights * means).sum() / weights.sum()
        return float((weights * (means - centre) ** 2).sum() / (g - 1) / inside)

    def end(tail: float) -> float:
        target = float(fdtri(g - 1, N - g, tail))
        if ratio(0.0) <= target:
            return 0.0
        top = 1.0
        while ratio(top) > target:
            top *= 4.0
        theta = float(brentq(lambda x: ratio(x) - target, 0.0, top, xtol=1e-12, rtol=1e-12))
        return theta / (1 + theta)

    return OrderShare(
        effect / (effect + inside),
        end((1 + level) / 2),
        end((1 - level) / 2),
        float(1 - fdtr(g - 1, N - g, ratio(0.0))),
        math.sqrt(effect),
        math.sqrt(inside),
        g,
        N,
    )
