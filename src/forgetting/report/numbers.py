"""Numbers on their way into figures and tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forgetting._arrays import IntArray
from forgetting.expectation import Expectation, expect
from forgetting.orderings import Ordering
from forgetting.orderings.laws import Permutation, Reshuffled
from forgetting.report.data import Role, Series
from forgetting.tasks import Problem

__all__ = ["cell", "column", "expected", "expected_series", "spread_steps"]

#: beyond this many different tasks, all their subsets take longer than a report may
SUBSETS = 14


def spread_steps(k: int, points: int, first: int = 1) -> IntArray:
    """At most `points` different steps from `first` to k, evenly on a log scale, both ends included.

    >>> spread_steps(100, 5).tolist()
    [1, 3, 10, 32, 100]
    """
    if k <= first:
        return np.array([k], dtype=np.int64)
    return np.unique(np.round(np.geomspace(first, k, points)).astype(np.int64))


def column(values: Any) -> tuple[float, ...]:
    """Plain floats."""
    return tuple(float(value) for value in np.asarray(values).ravel())


def expected(problem: Problem, ordering: Ordering, steps: Any, seed: int, quantities: tuple[str, ...]) -> Expectation:
    """`expect`, simulated where an exact answer would take minutes.

    >>> import forgetting as fg
    >>> expected(fg.families.two_lines(0.5), fg.orderings.WithoutReplacement(), [1, 2], 0, ("loss",)).method
    'subsets'
    """
    geometry = problem.geometry
    different = problem.num_tasks if geometry is None else geometry.num_distinct
    if isinstance(ordering.law, (Permutation, Reshuffled)) and different > SUBSETS:
        return expect(problem, ordering, steps, method="monte-carlo", quantities=quantities, seed=seed, runs=2048)
    runs = 1024 if geometry is None else None  # sets are projected onto one by one
    return expect(problem, ordering, steps, quantities=quantities, seed=seed, runs=runs)


def expected_series(result: Expectation, quantity: str, name: str, group: int) -> Series:
    """The curve of an expected quantity, with its intervals if the values are simulated."""
    low, high = (None, None) if result.exact else map(column, np.moveaxis(result.interval(quantity), -1, 0))
    role: Role = "exact" if result.exact else "simulated"
    method = f"{result.method}: {result.detail}"
    return Series(name, column(result.k), column(result.values[quantity]), low, high, role, method, group)


def cell(value: Any) -> str:
    """A number or a word as a short cell of a table.

    >>> [cell(x) for x in (3, 0.123456, 1e-12, None, True, "word")]
    ['3', '0.1235', '1e-12', '', 'yes', 'word']
    """
    if value is None:
        return ""
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return "" if math.isnan(value) else f"{float(value):.4g}"
    return str(value)
