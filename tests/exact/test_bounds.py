"""Bounds against exact values: extreme weights, tasks that nearly coincide, tasks that solve all others."""

from __future__ import annotations

import numpy as np
import pytest
from rationals import exact_expectation, rational, with_replacement

import forgetting as fg

PROVED = ("holds as stated", "holds where proved", "corrected", "proved here")
QUANTITIES = ("loss", "forgetting", "regret", "error", "next_loss", "seen_loss")


def extreme(seed):
    """Matrices, of which some are zero, some have full rank, some nearly coincide; labels, weights and k."""
    rng = np.random.default_rng([5, seed])
    n, T = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    matrices = []
    for _ in range(T):
        kinds = {
            0: np.eye(n),
            1: np.zeros((1, n)),
            2: 2.0**20 + rng.integers(-2, 3, (1, n)),
        }
        X = kinds.get(int(rng.integers(5)), rng.integers(-9, 10, (int(rng.integers(1, n + 1)), n)))
        matrices.append(X * 2.0 ** rng.integers(-10, 11))
    weights = 10.0 ** rng.uniform(-16, 0, T) if seed % 2 else np.ones(T)
    w = rng.integers(-9, 10, n)
    return matrices, [X @ w for X in matrices], weights, int(rng.choice([1, 2, 3, 6, 10]))


def bounded(seeds, noisy=False):
    """Compare each upper bound with the exact value; the number of comparisons, and of nearly equal ones.

    With `noisy`, labels are off by powers of two, so that mostly no w solves all tasks.
    """
    compared, close = 0, 0
    for seed in seeds:
        matrices, labels, weights, k = extreme(seed)
        if not any(X.any() for X in matrices):
            continue
        if noisy:
            rng = np.random.default_rng([9, seed])
            labels = [y + rng.integers(-3, 4, len(y)) * 2.0 ** rng.integers(-12, 3) for y in labels]
        tasks = fg.RegressionTasks(matrices, labels)
        if noisy and tasks.realizability.holds:  # up to the tolerance, by which bounds may then be off
            continue
        rows = fg.bounds.evaluate(tasks, fg.orderings.WithReplacement(weights), k)
        exact = exact_expectation(matrices, labels, law=with_replacement(list(weights)), ks=[k])
        for row in rows:
            bound = row.bound
            if not row.applies or bound.kind != "upper" or bound.status not in PROVED:
                continue
            if bound.quantity in QUANTITIES and (true := exact[bound.quantity][0]) is not None:
                compared += 1
                assert rational(float(row.value)) >= true, (seed, bound.key, row.value, float(true))
                close += bool(true and rational(float(row.value)) <= true * rational(1 + 1e-9))
    return compared, close


def test_bounds_are_never_below_what_they_bound():
    compared, close = bounded(range(60))
    assert compared > 600
    assert close > 20  # the bounds are not loose for being safe


def test_bounds_on_tasks_that_no_w_solves_are_never_below_what_they_bound():
    compared, close = bounded(range(300), noisy=True)
    assert compared > 400
    assert close > 20


@pytest.mark.slow
def test_bounds_on_more_tasks_that_no_w_solves_are_never_below_what_they_bound():
    assert bounded(range(1000, 3000), noisy=True)[0] > 10000


@pytest.mark.slow
def test_bounds_are_never_below_what_they_bound_on_more_tasks():
    assert bounded(range(1000, 4000))[0] > 30000


@pytest.mark.parametrize("key", ["gower2015:any weights/error", "here:noise/error"])
def test_a_bound_keeps_the_digits_of_a_rate_that_is_nearly_one(key):
    """The second task teaches nothing, with probability 1e-14: that is 1 - lambda, of which floats keep one digit."""
    tasks = fg.RegressionTasks([[[1.0]], [[0.0]]], [[1.0], [0.0]])
    ordering = fg.orderings.WithReplacement([1, 1e-14])
    (row,) = (row for row in fg.bounds.evaluate(tasks, ordering, 1) if row.bound.key == key)
    true = rational(1e-14) / (1 + rational(1e-14))
    assert true <= rational(float(row.value)) <= true * rational(1 + 1e-12)


def test_many_steps_do_not_multiply_the_rounding_of_a_rate():
    setting = fg.bounds.Setting(T=2, spectral_gap=1e-14)
    value = fg.bounds.get("gower2015:any weights/error").value(setting, 10**15)
    assert value == pytest.approx(np.exp(-10 * (1 + 0.5e-14)), rel=1e-12)  # log(1 - x) = -x - x^2/2 - ...
