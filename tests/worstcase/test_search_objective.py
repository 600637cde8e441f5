"""What the search maximises: its values against `expect`, its gradients against differences, on every device."""

from __future__ import annotations

import numpy as np
import pytest

import forgetting as fg
from forgetting.compute.devices import as_device
from forgetting.worstcase.matrix_powers import Chain, bits_of
from forgetting.worstcase.search import SearchQuestion

RANKS = (1, 2, 2, 3)
T, d = 4, 5
P_OF_DRAWS = (0.1, 0.2, 0.3, 0.4)
DRAWS = fg.orderings.WithReplacement(P_OF_DRAWS)
CYCLE = fg.orderings.Cyclic([0, 2, 1, 3, 1])
ORDER = fg.orderings.Explicit([0, 1, 2, 0, 3, 1, 0, 2, 0, 1, 2, 3, 1, 0, 2, 1, 0, 3, 2, 1])
CASES = [
    (quantity, ordering, k)
    for quantity in ("loss", "next_loss", "forgetting")
    for ordering in (DRAWS, CYCLE, ORDER)
    for k in (1, 2, 5, 13, 19)
    if (quantity, k) != ("forgetting", 1)
]


def projections(batch: int = 2, seed: int = 0) -> np.ndarray:
    """Projections onto the kernels of random tasks of ranks 1, 2, 2, 3."""
    rng, found = np.random.default_rng(seed), np.empty((batch, T, d, d))
    for place in np.ndindex(batch, T):
        basis = np.linalg.qr(rng.standard_normal((d, RANKS[place[1]])))[0]
        found[place] = np.eye(d) - basis @ basis.T
    return found


def weights(batch: int = 2) -> np.ndarray:
    return np.tile(P_OF_DRAWS, (batch, 1))


def tasks_of(P: np.ndarray, w_star: np.ndarray) -> fg.RegressionTasks:
    rows = [np.linalg.eigh(p)[1][:, :rank].T for p, rank in zip(P, RANKS, strict=True)]
    return fg.RegressionTasks(rows, [X @ w_star for X in rows])


@pytest.mark.parametrize(("quantity", "ordering", "k"), CASES)
def test_values_are_those_of_expect_at_the_worst_solution(quantity, ordering, k):
    asked, P = SearchQuestion.checked(T, d, k, quantity, ordering, "fixed"), projections()
    found = asked.objective(as_device(None)).of(P, weights(), np.ones((2, d, 1)))
    for place in range(2):
        tasks = tasks_of(P[place], found.start[place, :, 0])
        exact = fg.expect(tasks, ordering, k, quantities=(quantity,)).values[quantity]
        assert np.exp(found.log_value[place]) == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
def test_no_other_solution_is_worse(quantity):
    asked, P = SearchQuestion.checked(T, d, 6, quantity, DRAWS, "fixed"), projections()
    found = asked.objective(as_device(None)).of(P, weights(), np.ones((2, d, 1)))
    for other in np.random.default_rng(1).standard_normal((20, d)):
        tasks = tasks_of(P[0], other / np.linalg.norm(other))
        value = float(fg.expect(tasks, DRAWS, 6, quantities=(quantity,)).values[quantity])
        assert value <= np.exp(found.log_value[0]) * (1 + 1e-12)


@pytest.mark.parametrize(("quantity", "ordering", "k"), CASES)
@pytest.mark.parametrize("device", [None, pytest.param("array-api-strict", marks=pytest.mark.slow)])
def test_gradients_are_limits_of_differences(quantity, ordering, k, device):
    where, P, p = as_device(device), projections(), weights()
    objective = SearchQuestion.checked(T, d, k, quantity, ordering, "fixed").objective(where)

    def log_value(P: np.ndarray, p: np.ndarray, start: np.ndarray) -> np.ndarray:
        return where.take(objective.of(where.put(P), where.put(p), where.put(start), gradient=False).log_value)

    start = np.linalg.eigh(np.eye(d))[1][None, :, -1:] + np.full((2, d, 1), 0.3)
    for _ in range(200):  # on devices the top eigenvector is found by powers
        start = where.take(objective.of(where.put(P), where.put(p), where.put(start), gradient=False).start)
        if device is None:
            break
    found = objective.of(where.put(P), where.put(p), where.put(start))
    rng, step = np.random.default_rng(2), 1e-6
    change = rng.standard_normal(P.shape)
    change += np.swapaxes(change, 2, 3)
    slope = (log_value(P + step * change, p, start) - log_value(P - step * change, p, start)) / (2 * step)
    expected = np.sum(where.take(found.projections) * change, axis=(1, 2, 3))
    np.testing.assert_allclose(slope, expected, rtol=1e-6, atol=1e-7 * np.abs(expected).max())
    change = rng.standard_normal(p.shape)
    slope = (log_value(P, p + step * change, start) - log_value(P, p - step * change, start)) / (2 * step)
    np.testing.assert_allclose(slope, np.sum(where.take(found.weights) * change, axis=1), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 16, 100, 1000])
def test_powers_by_squaring_are_powers(k):
    rng = np.random.default_rng(k)
    half = rng.standard_normal((3, 4, 6)) / 3
    matrix = np.swapaxes(half, 1, 2) @ half
    columns = rng.standard_normal((3, 6, 1))
    chain = Chain.made(as_device(None), matrix, k)
    found = chain.apply(columns)[0]
    expected = np.stack([np.linalg.matrix_power(one / np.linalg.norm(one), k) for one in matrix]) @ columns
    scale = np.exp(chain.log_scale - k * np.log(np.linalg.norm(matrix, axis=(1, 2))))[:, None, None]
    np.testing.assert_allclose(found * scale, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    assert sum(2**bit for bit in bits_of(k)) == k


def test_values_far_below_the_smallest_number_have_logarithms():
    asked, P = SearchQuestion.checked(T, d, 10**4, "loss", DRAWS, "fixed"), projections()
    objective = asked.objective(as_device(None))
    found = objective.of(P, weights(), np.ones((2, d, 1)))
    later = SearchQuestion.checked(T, d, 2 * 10**4, "loss", DRAWS, "fixed").objective(as_device(None))
    rate = (later.of(P, weights(), np.ones((2, d, 1))).log_value - found.log_value) / 10**4
    np.testing.assert_allclose(
        rate, np.log([fg.decay_rate(tasks_of(one, np.eye(d)[0]), DRAWS) for one in P]), rtol=1e-3
    )
    assert found.log_value.min() < -1000  # exp of this is 0
    assert np.isfinite(found.projections).all()
