"""Curves of expected values for the sections of a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting.expectation import Expectation, expect
from forgetting.figures.items import Role, Series
from forgetting.figures.numbers import column
from forgetting.orderings import Ordering
from forgetting.orderings.laws import Permutation, Reshuffled
from forgetting.tasks import Problem

__all__ = ["expected", "expected_series"]

#: beyond this many different tasks, all their subsets take longer than a report may
SUBSETS = 14


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
