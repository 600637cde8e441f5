"""Worst cases, side by side with PEPit, as ratios within one run.

    python -m benchmarks.bench_worst_case

The whole call of `fg.worst_case` counts: building the program, solving it, proving the upper bound in exact arithmetic,
and reading tasks off it. PEPit (pip install pepit) returns a value; without PEPit the race is left out.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

import forgetting as fg
from benchmarks.pepit_tree import worst_by_pepit
from benchmarks.timing import ROUNDS, report, seconds


def against_pepit(T: int, k: int, rounds: int, target: float | None) -> None:
    ours = [seconds(lambda: fg.worst_case(T, k)) for _ in range(ROUNDS)]
    theirs = [seconds(lambda: worst_by_pepit(T, k)) for _ in range(rounds)]
    report(f"worst case, T = {T}, k = {k}: against PEPit", [float(np.median(ours))] * rounds, theirs, target)


def against_all_words(T: int, k: int) -> None:
    """The same question without symmetry: weights that happen to be equal."""
    alike = [seconds(lambda: fg.worst_case(T, k)) for _ in range(3)]
    plain = fg.orderings.WithReplacement([1 / T] * T)
    apart = [seconds(lambda: fg.worst_case(T, k, ordering=plain)) for _ in range(3)]
    report(f"worst case, T = {T}, k = {k}: against the program without symmetry", alike, apart)


def main() -> None:
    fg.worst_case(2, 1)  # compile first
    print("\nworst cases (ours, theirs)")
    if find_spec("PEPit"):
        worst_by_pepit(2, 1)
        against_pepit(3, 2, 3, None)
        against_pepit(5, 2, 1, 50.0)
    took = seconds(lambda: fg.worst_case(5, 2))
    print(f"{'worst case, T = 5, k = 2: seconds of the whole call':<66} {took:>9.3g} s  (target: below 1)")
    against_all_words(3, 2)
    against_all_words(4, 2)


if __name__ == "__main__":
    main()
