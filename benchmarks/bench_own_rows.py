"""Sparse tasks of one row each: the first run against the second, which has nothing left to prepare."""

from __future__ import annotations

import tracemalloc

import numpy as np
import scipy.sparse as sp

import forgetting as fg
from benchmarks.timing import ROUNDS, report, seconds


def main() -> None:
    rng = np.random.default_rng(0)
    m, d = 18_000, 2_025
    A = sp.random_array((m, d), density=60 / d, rng=rng, format="csr")
    b = A @ rng.standard_normal(d)

    def made() -> fg.RegressionTasks:
        return fg.RegressionTasks.from_arrays(A, b, groups=range(m))

    def epoch(tasks: fg.RegressionTasks) -> object:
        return fg.run(tasks, "cyclic", m, record_every=m)

    epoch(made())  # compiled code is loaded
    first, second = [], []
    for _ in range(ROUNDS):
        tasks = made()
        first.append(seconds(lambda: epoch(tasks)))  # noqa: B023
        second.append(seconds(lambda: epoch(tasks)))  # noqa: B023
        assert "geometry" not in tasks.__dict__
    report("18,000 sparse rows x 2,025, an epoch: first run / second", first, second, target=3, at_most=True)
    tracemalloc.start()
    epoch(made())
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    size = (A.data.nbytes + A.indices.nbytes + A.indptr.nbytes) / 1e6
    report("the same, with the tasks: peak of memory / matrix", [peak], [size], target=3, unit="MB", at_most=True)


if __name__ == "__main__":
    main()
