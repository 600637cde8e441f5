"""Agreement with kaczmarz-algorithms on single rows: cyclic, maximum-distance, quantile and greedy rules."""

import kaczmarz
import numpy as np
import pytest

import forgetting as fg
from forgetting.orderings import Cyclic, GreedyDistance, Quantile, RelaxedGreedy, TaskView


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


def system(m=30, n=5):
    rng = np.random.default_rng(7)
    A = rng.standard_normal((m, n)) * rng.uniform(0.2, 5, (m, 1))
    return A, rng.standard_normal(m), rng.standard_normal(n)


def view_at(A, b, x):
    norms = np.linalg.norm(A, axis=1)
    return TaskView(len(b), norms, lambda: np.abs(A @ x - b) / norms)


def test_a_given_cycle_is_theirs():
    A, b, x = system()
    order = np.random.default_rng(0).permutation(len(b)).tolist()
    iterates = kaczmarz.Cyclic.iterates(A, b, x0=x, tol=None, maxiter=70, order=order)
    picked = [iterates.ik for _ in iterates][1:]
    run = fg.run(fg.RegressionTasks([a[None] for a in A], b[:, None]), Cyclic(order), 70, w0=x)
    assert run.order.tolist() == picked


@pytest.mark.parametrize("q", [0.3, 0.5, 0.77, 0.9, 1.0])
def test_the_quantile_rule_accepts_the_rows_that_theirs_accepts(q, monkeypatch):
    A, b, x = system()
    theirs = kaczmarz.Quantile(A, b, x0=x, tol=None, maxiter=1, quantile=q)
    drawn = iter(range(len(b)))
    monkeypatch.setattr(np.random, "choice", lambda *args, **more: next(drawn))
    accepted = [theirs._select_row_index(x) for _ in range(len(b))]

    class Script:
        tasks = iter(range(len(b)))

        def integers(self, bound):
            return next(self.tasks)

    visits = Quantile(q).visits(view_at(A, b, x), Script())
    assert [next(visits) for _ in range(len(b))] == accepted
    assert (-1 in accepted) is (q < 1)


def test_the_greedy_rule_without_relaxation_draws_as_theirs(monkeypatch):
    # their rule takes the residual of each row in place of the largest, so that only theta = 0 can be compared
    A, b, x = system()
    given = []
    monkeypatch.setattr(np.random, "choice", lambda n, p: given.append(p.copy()) or int(np.argmax(p)))
    kaczmarz.RelaxedGreedy(A, b, x0=x, tol=None, maxiter=1, theta=0.0)._select_row_index(x)
    found = RelaxedGreedy(0.0).probabilities(view_at(A, b, x))
    np.testing.assert_allclose(found, given[0], rtol=1e-10)
    assert 1 < np.count_nonzero(found) < len(b)
