"""The exact engine against what it replaces: dense projections, iteration, simulation."""

from __future__ import annotations

import numpy as np

import forgetting as fg
from benchmarks.timing import race
from forgetting.expectation.api import ask
from forgetting.expectation.engines.exact import moment_map


def main() -> None:
    tasks = fg.families.gaussian(T=50, d=100, rank=5, seed=0)
    geometry = tasks.geometry
    request = ask(tasks, fg.orderings.WithReplacement(), 1, quantities="loss").request
    moments = moment_map(request, homogeneous=True)
    A, rows = moments.second()[0], moments.right[0]
    projections = [np.eye(100) - rows[geometry.block(m)].T @ rows[geometry.block(m)] for m in range(50)]

    def many(work):
        return lambda: [work() for _ in range(20)]

    def dense():
        return sum(P @ A @ P for P in projections) / 50

    weights = moments.left[0] / 50

    def products():
        return weights.T @ (rows @ A)

    np.testing.assert_allclose(moments.apply(A), dense(), atol=1e-14)
    race("Q once, T=50, rank 5, D=100, against dense P A P", many(lambda: moments.apply(A)), many(dense), target=15)
    race(
        "Q once, against its two matrix products alone",
        many(lambda: moments.apply(A)),
        many(products),
        target=2,
        at_most=True,
    )
    ordering = fg.orderings.WithReplacement()
    small = fg.families.gaussian(T=50, d=60, rank=1, seed=0)

    def expected(method, problem, k, names=("loss",)):
        return lambda: fg.expect(problem, ordering, k, method=method, quantities=names)

    race(
        "E loss at k = 10^5, spectral against iterating (T=50, D=50)",
        expected("spectral", small, 10**5),
        expected("moments", small, 10**5),
        target=10,
        rounds=1,
    )
    race(  # at 10^5 steps nothing is left of this loss
        "E loss at k = 10^4, spectral against iterating (T=50, rank 5, D=100)",
        expected("spectral", tasks, 10**4),
        expected("moments", tasks, 10**4),
        target=10,
        rounds=1,
    )
    ks = range(1, 1001)
    race(
        "E forgetting curve to k = 1000 against E loss curve (T=50)",
        expected("moments", tasks, ks, ("forgetting",)),
        expected("moments", tasks, ks),
        target=60,
        at_most=True,
        rounds=2,
    )


if __name__ == "__main__":
    main()
