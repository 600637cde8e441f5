"""Measured seconds of methods divided by the seconds that were estimated, on problems drawn at random.

`auto` chooses a method by these estimates, which are for one core. `patience=` means what it says where they are right.
"""

from __future__ import annotations

import gc
import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

import forgetting as fg
from benchmarks.timing import report
from forgetting.compute.threads import one_core
from forgetting.errors import ForgettingError
from forgetting.expectation.api import ask
from forgetting.expectation.engines import engines
from forgetting.expectation.request import Simulation

FACTOR = 2.0  # wanted of SHARE of the problems
SHARE = 0.95
SHORTEST, LONGEST = 0.02, 3.0  # seconds: shorter calls are not measured well, longer ones are left out
PROBLEMS = 30  # of each grid

WR, WOR, RESHUFFLED = "with-replacement", "without-replacement", "reshuffled"
LOSS, BOTH = ("loss",), ("loss", "forgetting")
Several = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Grid:
    """Problems of one method: Gaussian tasks with sizes between two ends, evenly spread on a logarithmic scale.

    Ranks are at most half the dimension: a task of full rank is all that there is to learn.
    """

    method: str
    orderings: tuple[str, ...]
    tasks: tuple[int, int]
    dims: tuple[int, int]
    ranks: tuple[int, int]
    steps: tuple[int, int]
    quantities: Several = (LOSS, BOTH)
    runs: tuple[int, int] = (1, 1)

    @property
    def name(self) -> str:
        return f"{self.method}, {' and '.join(self.orderings)}"

    def problems(self, seed: int) -> Iterator[Problem]:
        """Endless problems, the same for each seed."""
        rng = np.random.default_rng(seed)

        def between(ends: tuple[int, int]) -> int:
            return round(math.exp(rng.uniform(*map(math.log, ends))))

        while True:
            T, d, rank, k, runs = map(between, (self.tasks, self.dims, self.ranks, self.steps, self.runs))
            ordering, names = (several[rng.integers(len(several))] for several in (self.orderings, self.quantities))
            k = min(k, T) if ordering == WOR else k
            rank = min(rank, max(1, d // 2))
            yield Problem(self.method, ordering, T, d, rank, k, names, runs if self.runs[1] > 1 else None)


@dataclass(frozen=True)
class Problem:
    """One call of `expect` by a named method."""

    method: str
    ordering: str
    T: int
    d: int
    rank: int
    k: int
    quantities: tuple[str, ...]
    runs: int | None

    def times(self, longest: float = LONGEST) -> tuple[float, float] | None:
        """Estimated and measured seconds, on tasks of which nothing was computed before; None if it takes too long."""
        engine, measured, estimate = engines.get(self.method), math.inf, 0.0
        for _ in range(3):
            tasks = fg.families.gaussian(self.T, self.d, self.rank, seed=7)
            simulation = Simulation(runs=self.runs)
            asked = ask(tasks, self.ordering, self.k, quantities=self.quantities, memory=4e9, simulation=simulation)
            if engine.covers(asked.request) is not None:
                return None
            gc.collect()
            start = time.process_time()
            cost = engine.cost(asked.request)
            estimate = cost.seconds
            if estimate > longest or cost.bytes > 2e9:
                return None
            engine.solve(asked.request)
            measured = min(measured, time.process_time() - start)
            if measured > longest / 10:
                break
        return estimate, measured


DRAWN, LOOKING = (WR, WOR, RESHUFFLED, "norm-weighted"), ("steinerberger", "greedy-distance")
GRIDS = [
    Grid("moments", (WR,), (2, 200), (2, 200), (1, 8), (1, 10_000), (LOSS, BOTH, ("averaged_loss",), ("seen_loss",))),
    Grid("spectral", (WR,), (2, 400), (4, 200), (1, 8), (10, 10**7), (LOSS, BOTH, ("task_losses",), ("regret",))),
    Grid("subsets", (WOR, RESHUFFLED), (3, 15), (3, 60), (1, 6), (2, 100), (LOSS, BOTH, ("averaged_loss",))),
    Grid("deterministic", ("cyclic",), (2, 2000), (2, 200), (1, 8), (1, 10**5)),
    Grid("monte-carlo", DRAWN, (3, 30_000), (2, 500), (1, 8), (1, 4000), runs=(64, 4096)),
    Grid("monte-carlo", LOOKING, (3, 100), (2, 60), (1, 4), (1, 200), runs=(4, 128)),
]


def ratios_of(grid: Grid, count: int = PROBLEMS, seed: int = 0) -> list[tuple[float, Problem]]:
    """Measured seconds divided by estimated ones on `count` problems that take long enough to be measured."""
    found: list[tuple[float, Problem]] = []
    for tried, problem in enumerate(grid.problems(seed)):
        if len(found) == count or tried == 10 * count:
            break
        try:
            pair = problem.times()
        except ForgettingError:
            continue
        if pair is not None and pair[1] >= SHORTEST:
            found.append((pair[1] / pair[0], problem))
    return found


def within(ratios: Sequence[float], factor: float = FACTOR) -> float:
    """The share of ratios between 1 / factor and factor.

    >>> within([0.4, 0.6, 1.9, 2.1])
    0.5
    """
    return sum(1 / factor <= ratio <= factor for ratio in ratios) / len(ratios)


def main() -> None:
    everything: list[float] = []
    with one_core(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for grid in GRIDS:
            for ordering in grid.orderings:  # compile
                for names in grid.quantities:
                    Problem(grid.method, ordering, 3, 4, 1, 3, names, 4 if grid.runs[1] > 1 else None).times()
            found = sorted(ratios_of(grid), key=lambda pair: pair[0])
            ratios = [ratio for ratio, _ in found]
            everything += ratios
            low, middle, high = np.quantile(ratios, (0.025, 0.5, 0.975))
            print(f"{grid.name}: measured / estimated {low:.2g}, {middle:.2g}, {high:.2g} (2.5 %, 50 %, 97.5 %), "
                  f"{within(ratios):.0%} of {len(ratios)} within a factor of {FACTOR:g}")  # fmt: skip
            for ratio, problem in (found[0], found[-1]):
                print(f"    {ratio:.2g}: {problem}")
    outside = 1 - within(everything)
    report(f"estimates off by more than a factor of {FACTOR:g}, of {len(everything)}",
           [outside], [1 - SHARE], target=1, at_most=True)  # fmt: skip


if __name__ == "__main__":
    main()
