"""Numbers on their way into figures and tables."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forgetting._arrays import IntArray
from forgetting.expectation import Expectation, expect
from forgetting.orderings import Ordering
from forgetting.orderings.laws import Permutation, Reshuffled
from forgetting.tasks import Problem

__all__ = ["cell", "column", "expected", "spread_steps"]

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
    """Plain floats.

    >>> column(np.array([1, 2]))
    (1.0, 2.0)
    """
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
