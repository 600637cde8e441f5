"""Tasks as they are (no common solution, several outputs, noise, held-out rows) against tasks that one w solves."""

from __future__ import annotations

import numpy as np

import forgetting as fg
from benchmarks.timing import race, report, seconds


def made(T: int, d: int, n: int, noise: float, outputs: int = 0, seed: int = 0) -> fg.RegressionTasks:
    """Tasks of n rows in d dimensions, with noise in their labels."""
    rng = np.random.default_rng(seed)
    shape = (d, outputs) if outputs else (d,)
    X = [rng.standard_normal((n, d)) for _ in range(T)]
    w = rng.standard_normal(shape)
    return fg.RegressionTasks(X, [x @ w + noise * rng.standard_normal((n, *shape[1:])) for x in X])


def main() -> None:
    random, shuffled = fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement()
    cases = [
        ("moments, T=10, d=20, rank 4, k to 100", (10, 20, 4), random, range(1, 101), "moments"),
        ("moments, float64, T=30, d=60, rank 5, k to 50", (30, 60, 5), random, range(1, 51), "moments"),
        ("spectral, T=10, d=16, rank 3, k = 10^6", (10, 16, 3), random, [10**6], "spectral"),
        ("subsets, T=10, d=12, rank 3, k = 10", (10, 12, 3), shuffled, [10], "subsets"),
    ]
    names = ("loss", "forgetting")
    for name, (T, d, n), ordering, ks, method in cases:
        solved, unsolved = made(T, d, n, 0.0), made(T, d, n, 0.5)
        assert solved.realizability.holds
        assert not unsolved.realizability.holds

        def run(tasks, ordering=ordering, ks=ks, method=method):
            return lambda: fg.expect(tasks, ordering, ks, method=method, quantities=names)

        race(f"{name}: no common solution", run(unsolved), run(solved), target=3, at_most=True, rounds=5)
    one, ten = made(10, 40, 6, 0.5), made(10, 40, 6, 0.5, outputs=10)
    race(
        "moments, T=10, d=40, rank 6, k to 50: ten outputs against one",
        lambda: fg.expect(ten, random, range(1, 51), quantities=names),
        lambda: fg.expect(one, random, range(1, 51), quantities=names),
        target=3,
        at_most=True,
        rounds=5,
    )
    rng = np.random.default_rng(1)
    mixed = rng.standard_normal((784, 784)) / 28
    X = [np.maximum(rng.standard_normal((500, 784)) @ mixed[:, rng.permutation(784)], 0) for _ in range(10)]
    images = fg.RegressionTasks(X, [np.eye(10)[rng.integers(10, size=500)] for _ in range(10)])
    took = seconds(lambda: fg.expect(images, random, [10, 20], quantities="loss", patience=np.inf))
    took += seconds(lambda: fg.audit(images, passes=2).to_html())
    report("10 tasks x 500 x 784, 10 outputs: loss, audit, page, of 120 s", [took], [120.0], target=1, at_most=True)


if __name__ == "__main__":
    main()
