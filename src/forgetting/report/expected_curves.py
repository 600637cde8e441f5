"""Expected values for the sections of a report."""

from __future__ import annotations

from typing import Any

from forgetting.expectation import Expectation, expect
from forgetting.orderings import Ordering
from forgetting.orderings.laws import Permutation, Reshuffled
from forgetting.tasks import Problem

__all__ = ["expected"]

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
