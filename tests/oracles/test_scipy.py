"""Agreement with SciPy and NumPy: one task learned, the offline solution, the scheme that does not forget."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr, lsqr

import forgetting as fg
from forgetting.orderings import Explicit, WithoutReplacement

TASKS = {
    "dense": fg.families.gaussian(3, 20, rank=[4, 1, 6], seed=0),
    "tall": fg.RegressionTasks([np.random.default_rng(1).standard_normal((9, 4))] * 3, [np.arange(9.0)] * 3),
    "sparse": fg.RegressionTasks(
        [sp.random_array((5, 60), density=0.3, rng=np.random.default_rng(seed), format="csr") for seed in range(3)],
        [np.arange(5.0), np.ones(5), -np.arange(5.0)],
    ),
}


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("task", [0, 2])
def test_one_task_learned_is_lsqr_and_lsmr_started_at_w0(name, task):
    tasks = TASKS[name]
    X, y = tasks.task(task)
    w0 = np.random.default_rng(2).standard_normal(tasks.dim)
    learned = fg.run(tasks, Explicit([task]), 1, w0=w0).iterates[1]
    by_lsqr = lsqr(X, y, x0=w0, atol=1e-15, btol=1e-15, iter_lim=1000)[0]
    by_lsmr = w0 + lsmr(X, y - X @ w0, atol=1e-15, btol=1e-15, maxiter=1000)[0]
    np.testing.assert_allclose(learned, by_lsqr, rtol=0, atol=1e-10)
    np.testing.assert_allclose(learned, by_lsmr, rtol=0, atol=1e-10)
    np.testing.assert_allclose(tasks.project(task, w0), by_lsqr, rtol=0, atol=1e-10)


@pytest.mark.parametrize(("T", "d", "rank"), [(3, 20, 4), (10, 8, 2), (4, 8, 2), (1, 5, 5), (2, 300, 5)])
def test_w_star_is_the_least_norm_solution_of_the_stack(T, d, rank):
    tasks = fg.families.gaussian(T, d, rank, seed=3)
    X = np.vstack([tasks.task(m)[0] for m in range(T)])
    y = np.concatenate([tasks.task(m)[1] for m in range(T)])
    solution, _, joint, _ = np.linalg.lstsq(X, y, rcond=None)
    np.testing.assert_allclose(tasks.w_star, solution, rtol=0, atol=1e-12)
    assert tasks.rank_joint == joint
    radius = max(np.linalg.norm(tasks.task(m)[0], 2) for m in range(T))
    assert tasks.radius == pytest.approx(radius, rel=1e-13)
    assert tasks.scale == pytest.approx(solution @ solution * radius**2, rel=1e-11)
    assert tasks.radius_sq_mean == pytest.approx(np.mean([np.linalg.norm(tasks.task(m)[0], 2) ** 2 for m in range(T)]))
    np.testing.assert_allclose(tasks.geometry.hessian.trace(), np.sum(X**2) / T, rtol=1e-12)


def test_recursive_least_squares_is_the_pseudoinverse_of_what_was_seen():
    tasks = fg.families.gaussian(6, 15, rank=[2, 1, 3, 2, 4, 2], seed=4)
    w0 = np.random.default_rng(5).standard_normal(15)
    order = [3, 1, 1, 4, 0, 2, 5, 3]
    run = fg.run(tasks, Explicit(order), len(order), scheme=fg.schemes.RecursiveLeastSquares(), w0=w0)
    for t in range(1, len(order) + 1):
        X = np.vstack([tasks.task(m)[0] for m in order[:t]])
        y = np.concatenate([tasks.task(m)[1] for m in order[:t]])
        expected = w0 + np.linalg.pinv(X, rcond=1e-12) @ (y - X @ w0)
        np.testing.assert_allclose(run.iterates[t], expected, rtol=0, atol=1e-11)
    assert run.forgetting.max() < 1e-22


def test_recursive_least_squares_ends_at_the_offline_solution_whatever_the_order():
    tasks = fg.families.gaussian(8, 10, rank=2, seed=6)
    for seed in range(3):
        run = fg.run(tasks, WithoutReplacement(), 8, scheme=fg.schemes.RecursiveLeastSquares(), seed=seed)
        np.testing.assert_allclose(run.iterates[-1], tasks.w_star, rtol=0, atol=1e-11)
