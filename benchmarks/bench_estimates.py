"""Estimated times of exact methods against measured ones: the larger divided by the smaller.

`auto` chooses a method by these estimates, which are for one core.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import forgetting as fg
from benchmarks.timing import report
from forgetting.expectation.api import ask
from forgetting.expectation.engines import engines

WR, WOR, RESHUFFLED = fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement(), fg.orderings.Reshuffled()
BOTH = ("loss", "forgetting")
#: method, ordering, T, d, rank, k, quantities
CASES = [
    ("moments", WR, 3, 8, 2, 10_000, BOTH),
    ("moments", WR, 10, 30, 2, 1000, ("loss",)),
    ("moments", WR, 10, 30, 2, 1000, BOTH),
    ("moments", WR, 10, 30, 2, 10_000, BOTH),
    ("moments", WR, 40, 80, 2, 1000, ("loss",)),
    ("moments", WR, 40, 80, 2, 1000, BOTH),
    ("moments", WR, 40, 80, 2, 1000, ("averaged_loss",)),
    ("moments", WR, 200, 200, 1, 300, ("loss",)),
    ("moments", WR, 20, 300, 15, 100, BOTH),
    ("spectral", WR, 10, 30, 2, 10**6, BOTH),
    ("spectral", WR, 40, 80, 2, 1000, BOTH),
    ("spectral", WR, 40, 80, 2, 10**5, ("loss",)),
    ("spectral", WR, 40, 80, 2, 10**5, BOTH),
    ("spectral", WR, 50, 40, 1, 10**6, BOTH),
    ("spectral", WR, 20, 200, 10, 10**4, ("loss",)),
    ("subsets", WOR, 8, 100, 10, 8, BOTH),
    ("subsets", WOR, 12, 24, 2, 12, BOTH),
    ("subsets", WOR, 16, 20, 1, 16, BOTH),
    ("subsets", RESHUFFLED, 12, 30, 2, 60, BOTH),
    ("subsets", RESHUFFLED, 12, 30, 2, 60, ("averaged_loss",)),
]


def seconds(method: str, ordering: fg.orderings.Ordering, k: int, quantities: Sequence[str], **of: int) -> list[float]:
    """Estimated and measured seconds, on tasks of which nothing was computed before."""
    tasks = fg.families.gaussian(seed=7, **of)
    engine, request = engines.get(method), ask(tasks, ordering, k, quantities=tuple(quantities)).request
    clocks = time.process_time, time.perf_counter  # the first counts all threads, the second waits for other programs
    began = [clock() for clock in clocks]
    estimate = engine.cost(request).seconds
    engine.solve(request)
    return [estimate, min(clock() - start for clock, start in zip(clocks, began, strict=True))]


def main() -> None:
    for method, ordering, k in (("moments", WR, 3), ("subsets", WOR, 3)):  # compile
        for names in (BOTH, ("averaged_loss",)):
            seconds(method, ordering, k, names, T=3, d=4, rank=1)
    for method, ordering, T, d, rank, k, quantities in CASES:
        estimate, measured = seconds(method, ordering, k, quantities, T=T, d=d, rank=rank)
        name = f"{method}, {type(ordering).__name__}, T={T}, d={d}, rank {rank}, k={k:g}, {' and '.join(quantities)}"
        name += f": {estimate:.2g} s estimated, {measured:.2g} s measured"
        report(name, [max(estimate, measured)], [min(estimate, measured)], target=3, at_most=True)


if __name__ == "__main__":
    main()
