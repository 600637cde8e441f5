"""Agreement with padasip: NLMS is row Kaczmarz, affine projection is sliding block Kaczmarz."""

import numpy as np
import padasip
import pytest

import forgetting as fg
from forgetting.orderings import Cyclic, Explicit


def samples(count, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((count, d)) * 10.0 ** rng.uniform(-1, 1, size=(count, 1))
    return X, X @ rng.standard_normal(d)


def history(peer, X, y):
    """Weights before the first sample and after each."""
    _, _, before = peer.run(y, X)
    return np.vstack([before, peer.w])


@pytest.mark.parametrize("mu", [1.0, 0.4, 1.7])
@pytest.mark.parametrize("eps", [0.0, 0.01])
def test_nlms_is_padasips(mu, eps):
    X, y = samples(40, 7, seed=0)
    theirs = history(padasip.filters.FilterNLMS(7, mu=mu, eps=eps, w="zeros"), X, y)
    tasks = fg.RegressionTasks([x[None] for x in X], y[:, None])
    ours = fg.run(tasks, Cyclic(), 40, scheme=fg.schemes.NLMS(mu=mu, eps=eps))
    np.testing.assert_allclose(ours.iterates, theirs, rtol=0, atol=1e-13 * abs(theirs).max())


def test_kaczmarz_on_single_rows_is_padasips_nlms_with_mu_one():
    X, y = samples(40, 60, seed=1)
    theirs = history(padasip.filters.FilterNLMS(60, mu=1.0, eps=0.0, w="zeros"), X, y)
    ours = fg.run(fg.RegressionTasks([x[None] for x in X], y[:, None]), Cyclic(), 40)
    np.testing.assert_allclose(ours.iterates, theirs, rtol=0, atol=1e-13 * abs(theirs).max())


def test_nlms_on_tasks_of_several_rows_is_padasips_row_by_row():
    X, y = samples(12, 6, seed=2)
    groups = np.repeat([0, 1, 2, 3], 3)
    order = [2, 0, 3, 0, 1]
    rows = np.concatenate([np.flatnonzero(groups == m) for m in order])
    theirs = history(padasip.filters.FilterNLMS(6, mu=1.0, eps=0.0, w="zeros"), X[rows], y[rows])
    ours = fg.run(fg.RegressionTasks.from_arrays(X, y, groups), Explicit(order), 5, scheme=fg.schemes.NLMS())
    np.testing.assert_allclose(ours.iterates, theirs[::3], rtol=0, atol=1e-13 * abs(theirs).max())


@pytest.mark.parametrize("order", [1, 2, 4])
def test_kaczmarz_on_a_sliding_window_is_padasips_affine_projection(order):
    X, y = samples(25, 9, seed=3)
    # ifc only keeps its empty memory invertible at the start: 1e-30 is nothing next to any row
    theirs = history(padasip.filters.FilterAP(9, order=order, mu=1.0, ifc=1e-30, w="zeros"), X, y)
    windows = [slice(max(0, t - order + 1), t + 1) for t in range(25)]
    tasks = fg.RegressionTasks([X[window] for window in windows], [y[window] for window in windows])
    ours = fg.run(tasks, Cyclic(), 25)
    np.testing.assert_allclose(ours.iterates, theirs, rtol=0, atol=1e-9 * abs(theirs).max())
