"""A worst case as a performance-estimation tree in PEPit (Goujaud et al. 2024), as a theorist writes one by hand today.

All runs are followed one by one, with a point for each iterate; the tests use it as an oracle, the benchmark as a peer.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

Word = tuple[int, ...]


def worst_by_pepit(T: int, k: int, kind: str = "subspaces", orders: Iterable[Word] | None = None) -> float:
    """The supremum of the loss after k steps, averaged over `orders` (all T^k if left out), over T sets.

    Sets that are convex use PEPit's indicator functions. Projections on subspaces are points with
    <x - P x, P y> = 0 for all x and y that are projected on the same subspace.
    """
    from PEPit import PEP, Expression, Point
    from PEPit.functions import ConvexIndicatorFunction

    problem = PEP()
    start, common = problem.set_initial_point(), problem.set_initial_point()
    problem.set_initial_condition((start - common) ** 2 <= 1)
    sets = [problem.declare_function(ConvexIndicatorFunction) for _ in range(T)] if kind == "convex" else []
    for one in sets:
        one.add_point((common, 0 * common, Expression()))
    errors: dict[Word, Any] = {(): start - common}
    pairs: list[list[tuple[Any, Any]]] = [[] for _ in range(T)]

    def learned(word: Word, task: int) -> Word:
        after = word if word[-1:] == (task,) else (*word, task)
        if after not in errors:
            kept = Point()
            errors[after] = kept
            if sets:
                sets[task].add_point((kept + common, errors[word] - kept, Expression()))
            pairs[task].append((errors[word], kept))
        return after

    chosen = list(product(range(T), repeat=k) if orders is None else orders)
    total: Any = 0
    for order in chosen:
        word: Word = ()
        for task in order:
            word = learned(word, task)
        for task in range(T):
            if word[-1] != task:
                total += (errors[word] - errors[learned(word, task)]) ** 2 / (2 * T * len(chosen))
    if not sets:
        for mine in pairs:
            for (before, after), (_, other) in product(mine, repeat=2):
                problem.add_constraint((before - after) * other == 0)
    problem.set_performance_metric(total)
    return float(problem.solve(wrapper="cvxpy", solver="CLARABEL", verbose=0))
