"""Agreement with kaczmarz-algorithms on single rows: the cyclic and the maximum-distance rule."""

import kaczmarz
import numpy as np
import pytest

import forgetting as fg
from forgetting.orderings import Cyclic, GreedyDistance


def theirs(method, X, y, w0, k):
    iterates = method.iterates(X, y, x0=w0, tol=None, maxiter=k)
    rows, points = [], []
    for point in iterates:
        points.append(np.array(point))
        rows.append(iterates.ik)
    return rows[1:], np.array(points)


@pytest.mark.parametrize(
    ("method", "ordering"),
    [(kaczmarz.Cyclic, Cyclic()), (kaczmarz.MaxDistance, GreedyDistance())],
    ids=["cyclic", "max"],
)
def test_row_kaczmarz_is_theirs(method, ordering):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 12)) * rng.uniform(0.1, 10, size=(8, 1))
    y, w0 = X @ rng.standard_normal(12), rng.standard_normal(12)
    rows, points = theirs(method, X, y, w0, 20)
    run = fg.run(fg.RegressionTasks([x[None] for x in X], y[:, None]), ordering, 20, w0=w0)
    assert run.order.tolist() == rows
    np.testing.assert_allclose(run.iterates, points, rtol=0, atol=1e-12)
