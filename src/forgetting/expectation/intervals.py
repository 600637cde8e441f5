"""Confidence intervals for simulated means and quantiles, and the ranges of values that make those of means hold.

Means: at large k the loss of a random run is mostly tiny and rarely large, so the sample mean is far from normal and
normal intervals fail. But losses are bounded: errors never grow for gains in [0, 2], so L <= |X^T X / T| |z_0|^2 / 2,
and forgetting is at most R^2 |z_0|^2 / 2. The intervals bet against candidate means (Waudby-Smith and Ramdas 2024) and
hold for every bounded distribution at every sample size. Projections onto convex sets are bounded the same way.

Quantiles: their intervals lie between order statistics, and hold for every distribution. Of n independent values, the
number that are at most the p-quantile xi_p = inf{x : F(x) >= p} is binomial with a success probability of at least p,
and the number below it with one of at most p. So the i-th smallest value is above xi_p with probability at most
P(Bin(n, p) < i), and below it with probability at most P(Bin(n, p) >= i), whatever F is (David and Nagaraja, Order
Statistics, 2003, section 7.1). Means of heavy-tailed values are decided by rare large ones; quantiles are not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, as_number
from forgetting.errors import InvalidInputError
from forgetting.expectation.quantities import LOSS, Form, Quantity, Term
from forgetting.expectation.request import Request
from forgetting.geometry import Geometry
from forgetting.schemes.linear import linear_gains
from forgetting.tasks.problem import no_common_solution

__all__ = ["Quantile", "Range"]

SMALL = 2000  # dimension up to which the largest curvature is worth an eigenvalue
Range = tuple[float, float]
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
USELESS = 100.0  # an interval is no use if it is that many times wider than what it holds and most values are large


def value_range(request: Request, quantity: Quantity) -> Range | None:
    """The interval that a quantity of a run cannot leave, or None if none is known.

    Every term adds an interval of its own.
    """
    low = high = 0.0
    for term in quantity.after(2):
        known = _range_of_term(request, term)
        if known is None:
            return None
        ends = sorted(term.coefficient * end for end in known)
        low, high = low + ends[0], high + ends[1]
    return low, high


def _range_of_term(request: Request, term: Term) -> Range | None:
    """The interval that a term cannot leave, without its coefficient.

    Steps that never move away from a common point w* keep |w_k - w*| <= |w_0 - w*|, and a form of a task is at most b/2
    times the squared distance to its solutions.
    """
    if term.form.ends is not None and term.average != "error":
        return term.form.ends
    problem, solves = request.problem, request.scheme.solves_task
    if request.linear is not None and not request.linear.alike:
        return None
    if request.linear is not None:
        gains = linear_gains(request.geometry, request.linear_scheme)[: request.geometry.rows_learned]
        if not request.realizable or np.any(gains < 0) or np.any(gains > 2):
            return None
        gap = request.geometry.start(request.w0)
        size, solves = float(np.vdot(gap, gap)), bool(np.all(gains == 1))
    else:
        known = problem.distance_sq(request.w0) if request.scheme.nonexpansive else None
        if known is None:
            return None
        size = known
    if term.average == "error":
        return 0.0, size
    geometry = problem.geometry
    if term.held_out:
        assert geometry is not None
        return 0.0, _most_of_tests(term.form, geometry, float(np.sqrt(size)))
    bound = term.form.bound(problem)
    if bound is None:
        return None
    if term.average == "kept" and solves:
        return 0.0, 0.0
    if term.average == "tasks" and term.form is LOSS and geometry is not None and 0 < geometry.dim <= SMALL:
        bound = min(bound, float(np.linalg.eigvalsh(geometry.hessian)[-1]))  # the curvature of the mean over tasks
    return 0.0, 0.5 * bound * size


def _most_of_tests(form: Form, geometry: Geometry, distance: float) -> float:
    """The largest form of held-out data of a task within this distance of w*, which need not solve them."""
    weights = np.asarray(form.weights(geometry.sigma**2), dtype=float)
    missed = np.sqrt(geometry.per_task(weights * geometry.squared(np.zeros_like(geometry.solution))))
    steepest = np.zeros(geometry.num_distinct)
    np.maximum.at(steepest, geometry.owner, weights)
    most = 0.5 * (np.sqrt(steepest) * distance + missed) ** 2
    most = most + geometry.unexplained if form.with_unfitted else most
    return float(np.max(most[geometry.num_learned :], initial=0.0))


def caveats(request: Request, ranges: Iterable[Range | None]) -> list[str]:
    """Warnings for a reader of simulated values; `ranges` are those of `value_range`, for each quantity."""
    normal = [quantity.name for quantity, known in zip(request.quantities, ranges, strict=True) if known is None]
    if not normal:  # there is a common solution, which the ranges come from
        return []
    of = "" if len(normal) == len(request.quantities) else f" of {' and '.join(normal)}"
    return [
        *no_common_solution(request.problem),
        f"no bound on the values{of} is known here: the intervals of these means are normal approximations, which may "
        "fail for heavy tails",
    ]


def bounded_interval(samples: Array, low: float, high: float, confidence: float) -> tuple[float, float]:
    """A confidence interval for the mean of samples known to lie in [low, high].

    >>> rng = np.random.default_rng(0)
    >>> a, b = bounded_interval(rng.random(1000), 0.0, 1.0, 0.99)
    >>> bool(a < 0.5 < b), bool(b - a < 0.08)
    (True, True)
    """
    from forgetting.expectation import _kernels as kernels

    width = high - low
    if width <= 0:  # what there is beyond the range is rounding
        return min(low, float(np.min(samples))), max(high, float(np.max(samples)))
    scaled = np.clip((samples - low) / width, 0.0, 1.0)
    count = len(scaled)
    level = (1 - confidence) / 2
    # the stake on sample i may depend on the samples before it only
    index = np.arange(1, count + 1)
    mean = (0.5 + np.cumsum(scaled)) / (index + 1)
    spread = (0.25 + np.cumsum((scaled - mean) ** 2)) / (index + 1)
    variance = np.concatenate([[0.25], spread[:-1]])
    stakes = np.sqrt(2 * np.log(1 / level) / (count * variance))
    lower = kernels.betting_bounds(scaled, stakes, level, False)
    upper = kernels.betting_bounds(scaled, stakes, level, True)
    return low + width * lower, low + width * upper


def column_intervals(samples: Array, bounds: Range | None, confidence: float) -> Array:
    """An interval for the mean of each column; a normal interval if no bounds on the values are given."""
    flat = samples.reshape(len(samples), -1)
    if bounds is None:
        from scipy.stats import norm

        middle = flat.mean(axis=0)
        spread = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.inf)
        half = norm.ppf((1 + confidence) / 2) * spread / np.sqrt(len(flat))
        pairs = np.stack([middle - half, middle + half], axis=-1)
    else:
        pairs = np.array(
            [
                (np.nan, np.nan)
                if np.isnan(column).any()
                else bounded_interval(np.ascontiguousarray(column), *bounds, confidence)
                for column in flat.T
            ]
        )
    return pairs.reshape(*samples.shape[1:], 2)


class Quantile(NamedTuple):
    """A quantile of the values of single runs, and an interval that holds it.

    Attributes:
        value: the least value that the share `level` of the runs does not exceed.
        low, high: the ends of the interval.
    """

    value: Any
    low: Any
    high: Any


def column_quantiles(samples: Array, confidence: float, ends: Range) -> Array:
    """Quantiles of each column of samples (along the first axis) at all LEVELS: last axes (level, (value, low, high)).

    `ends` is the range of the values; an interval ends there if there are too few samples for another end. NaN in a
    column makes all its quantiles NaN. Cost: a selection in each column.

    >>> samples = np.random.default_rng(0).standard_cauchy(4000)
    >>> value, low, high = column_quantiles(samples, 0.99, (-np.inf, np.inf))[LEVELS.index(0.5)]
    >>> bool(low < 0 < high), bool(high - low < 0.15)
    (True, True)
    """
    count = len(samples)
    flat = samples.reshape(count, -1)
    places = np.array([_places(count, level, confidence) for level in LEVELS])
    inside = np.clip(places, 0, count - 1)
    table = np.empty((flat.shape[1], len(LEVELS), 3))
    for values, column in zip(table, flat.T, strict=True):
        if np.isnan(column).any():
            values[:] = np.nan
            continue
        values[:] = np.partition(column, np.unique(inside))[inside]
        values[places < 0] = min(ends[0], float(column.min()))
        values[places >= count] = max(ends[1], float(column.max()))
    return table.reshape(*samples.shape[1:], len(LEVELS), 3)


def _places(count: int, level: float, confidence: float) -> tuple[int, int, int]:
    """The places of the quantile and of the ends of its interval among `count` sorted values, from 0.

    A place outside means that there are too few values for this end.

    >>> _places(10, 0.5, 0.95), _places(4, 0.5, 0.95)   # P(Bin(10, 1/2) <= 1) = 0.0107, P(Bin(4, 1/2) = 0) = 0.0625
    ((4, 1, 8), (1, -1, 4))
    """
    from scipy.special import bdtr

    def below(share: float) -> int:
        """The number of j with P(Bin(count, share) <= j) <= (1 - confidence) / 2."""
        return bisect_right(range(count), (1 - confidence) / 2, key=lambda j: float(bdtr(j, count, share)))

    # the number of values above the quantile is binomial, too
    return max(0, int(np.ceil(count * level - 1e-9)) - 1), below(level) - 1, count - below(1 - level)


def least_and_most(quantity: Quantity, known: Range | None) -> Range:
    """The range of a quantity if it is known; else [0, inf], or [-inf, inf] for differences."""
    return known or ((-np.inf if quantity.signed else 0.0), np.inf)


def at_level(table: Array, level: float) -> Quantile:
    """The quantile at one of the LEVELS from what `column_quantiles` gave."""
    number = as_number(level, "level")
    if number not in LEVELS:
        raise InvalidInputError(f"quantiles are kept at the levels {', '.join(map(str, LEVELS))}; got {number:g}")
    parts = (table[..., LEVELS.index(number), part] for part in range(3))
    return Quantile(*(float(part) if part.ndim == 0 else part for part in parts))


def is_useless(mean: Array, interval: Array, quantiles: Array) -> Any:
    """Whether the interval of a mean is so much wider than the mean and the quantiles are large that it says nothing.

    >>> quantiles = np.full((2, len(LEVELS), 3), [[[0.5]], [[1e-12]]])
    >>> is_useless(np.array([0.5, 1.94e-10]), np.array([[0.4, 0.6], [0.0, 0.15]]), quantiles).tolist()
    [False, True]
    """
    size = np.maximum(np.abs(mean), np.max(np.abs(quantiles[..., 0]), axis=-1))
    with np.errstate(over="ignore"):
        return np.diff(interval, axis=-1)[..., 0] > USELESS * size
