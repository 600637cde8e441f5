"""The paper's reductions: Schemes 1, 2 and 3 have the same iterates; and every scheme x ordering x problem runs."""

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from effort import pairwise
from forgetting.orderings import (
    Cyclic,
    Explicit,
    GreedyDistance,
    GreedyResidual,
    NormWeighted,
    Reshuffled,
    WithoutReplacement,
    WithReplacement,
)
from forgetting.schemes import NLMS, SGD, FiniteSteps, GradientDescent, Kaczmarz, RecursiveLeastSquares, Ridge

T = 4
ORDERINGS = {
    "with replacement": WithReplacement(),
    "weighted": WithReplacement(p=[1, 2, 3, 4]),
    "norm-weighted": NormWeighted(),
    "without replacement": WithoutReplacement(),
    "cyclic": Cyclic(),
    "reshuffled": Reshuffled(),
    "explicit": Explicit([2, 0, 0, 3, 1, 2, 3, 0]),
    "greedy distance": GreedyDistance(),
    "greedy distance, once": GreedyDistance(repeat=False),
    "greedy residual": GreedyResidual(),
    "greedy residual, once": GreedyResidual(repeat=False),
}


def steps_of(ordering):
    limit = ordering.limit(T)
    return 8 if limit is None else limit


def realizable(matrices, seed):
    w = np.random.default_rng(seed).standard_normal(matrices[0].shape[1])
    return fg.RegressionTasks(matrices, [X @ w for X in matrices])


def random_tasks():
    return fg.families.gaussian(T, 12, rank=[3, 1, 2, 3], seed=1)


def rank_deficient_tasks():
    rng = np.random.default_rng(2)
    base = [rng.standard_normal((2, 10)) for _ in range(T)]
    return realizable(
        [
            np.vstack([base[0], base[0]]),  # rows twice
            np.vstack([base[1], base[1][0] - 2 * base[1][1]]),  # a dependent row
            np.vstack([base[2], np.zeros((1, 10))]),  # a zero row
            np.vstack([base[3], base[0][:1], base[3].sum(axis=0)]),  # a row of another task, and a dependent one
        ],
        3,
    )


def sparse_tasks():
    rng = np.random.default_rng(4)
    matrices = [sp.random_array((3, 40), density=0.2, rng=rng, format="csr") for _ in range(T)]
    return realizable([X + sp.csr_array(np.eye(3, 40, k=m)) for m, X in enumerate(matrices)], 5)


def wide_tasks():
    return fg.families.gaussian(T, 1500, rank=3, seed=6)


def ill_conditioned_tasks(condition):
    return fg.families.gaussian(T, 14, rank=3, seed=7, condition=condition)


PROBLEMS = {
    "random": random_tasks(),
    "rank-deficient": rank_deficient_tasks(),
    "sparse": sparse_tasks(),
    "wide": wide_tasks(),
    "condition 100": ill_conditioned_tasks(100),
    "condition 1e4": ill_conditioned_tasks(1e4),
    "well-conditioned": fg.families.gaussian(T, 12, rank=3, seed=8, condition=2),
}


def test_problems_are_what_their_names_say():
    assert PROBLEMS["rank-deficient"].ranks.tolist() == [2, 2, 2, 3]
    assert PROBLEMS["rank-deficient"].num_rows.tolist() == [4, 3, 3, 4]
    assert sp.issparse(PROBLEMS["sparse"].task(0)[0])
    assert PROBLEMS["wide"].dim > 100 * PROBLEMS["wide"].rank_joint
    for name, condition in (("condition 100", 100), ("condition 1e4", 1e4)):
        singular = np.linalg.svd(PROBLEMS[name].task(0)[0], compute_uv=False)
        assert singular[0] / singular[-1] == pytest.approx(condition, rel=1e-9)


def assert_same_run(tasks, ordering, scheme, tol):
    start = np.random.default_rng(0).standard_normal(tasks.dim) / np.sqrt(tasks.dim)
    k = steps_of(ordering)
    exact = fg.run(tasks, ordering, k, scheme=Kaczmarz(), seed=11, w0=start)
    other = fg.run(tasks, ordering, k, scheme=scheme, seed=11, w0=start)
    assert other.status == f"completed {k} steps"
    assert other.order.tolist() == exact.order.tolist()
    moved = np.linalg.norm(exact.iterates - start, axis=1).max()
    assert moved > 0.1
    np.testing.assert_allclose(other.iterates, exact.iterates, rtol=0, atol=tol * moved)
    np.testing.assert_allclose(other.losses, exact.losses, rtol=0, atol=tol * exact.losses.max())


@pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_kaczmarz_is_sgd_with_step_one_on_the_modified_objective(name, ordering):
    assert_same_run(PROBLEMS[name], ordering, SGD(1.0), 1e-13)


@pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS)
@pytest.mark.parametrize("name", ["random", "rank-deficient", "sparse", "wide", "condition 100"])
def test_gradient_descent_to_convergence_is_kaczmarz(name, ordering):
    assert_same_run(PROBLEMS[name], ordering, GradientDescent(), 1e-10)


@pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS)
@pytest.mark.parametrize("name", ["random", "rank-deficient", "sparse", "wide", "condition 1e4"])
def test_accelerated_gradient_descent_is_kaczmarz(name, ordering):
    assert_same_run(PROBLEMS[name], ordering, GradientDescent(accelerated=True), 2e-9)


@pytest.mark.parametrize("ordering", ORDERINGS.values(), ids=ORDERINGS)
@pytest.mark.parametrize("size", [1, 2])
def test_stochastic_gradient_descent_to_convergence_is_kaczmarz(size, ordering):
    assert_same_run(PROBLEMS["well-conditioned"], ordering, GradientDescent(batch_size=size), 1e-10)


@pytest.mark.parametrize("name", ["random", "rank-deficient", "sparse", "wide"])
def test_kaczmarz_is_the_pinv_update_of_the_paper(name, dynamics):
    tasks = PROBLEMS[name]
    matrices = [X.toarray() if sp.issparse(X) else X for X in (tasks.task(m)[0] for m in range(T))]
    for ordering in ORDERINGS.values():
        run = fg.run(tasks, ordering, steps_of(ordering), seed=4)
        dense = dynamics(matrices, [tasks.task(m)[1] for m in range(T)], run.order)
        np.testing.assert_allclose(run.iterates, dense.iterates, rtol=0, atol=1e-11)
        np.testing.assert_allclose(run.forgetting, dense.forgetting, rtol=0, atol=1e-11 * dense.losses.max())


def test_inner_steps_grow_as_condition_squared_plain_and_as_condition_accelerated():
    def inner(condition, **options):
        return fg.run(
            ill_conditioned_tasks(condition), Cyclic(), T, scheme=GradientDescent(**options)
        ).inner_steps.max()

    assert 50 < inner(100) / inner(10) < 150
    assert 5 < inner(100, accelerated=True) / inner(10, accelerated=True) < 20


def test_gradient_descent_cut_short_says_so_and_finite_steps_are_its_iterates():
    tasks = PROBLEMS["condition 100"]
    cut = fg.run(tasks, Cyclic(), T, scheme=GradientDescent(max_steps=7))
    assert "gradient descent on task 0 stopped after 7 inner steps" in cut.status
    assert "(and 3 more)" in cut.status
    assert cut.inner_steps.tolist() == [7] * T
    same = fg.run(tasks, Cyclic(), T, scheme=FiniteSteps(7, step_size=1.0))  # every task has norm 1
    np.testing.assert_allclose(cut.iterates, same.iterates, rtol=0, atol=1e-13)


def test_sgd_on_the_loss_is_one_gradient_step_of_the_loss():
    tasks, eta = PROBLEMS["random"], 0.01
    run = fg.run(tasks, ORDERINGS["explicit"], 8, scheme=SGD(eta, objective="loss"))
    w = np.zeros(tasks.dim)
    for t, m in enumerate(run.order, start=1):
        X, y = tasks.task(m)
        w = w - eta * X.T @ (X @ w - y)
        np.testing.assert_allclose(run.iterates[t], w, rtol=0, atol=1e-13)


def test_sgd_on_the_modified_objective_is_a_damped_projection():
    tasks, eta = PROBLEMS["rank-deficient"], 1.4
    run = fg.run(tasks, ORDERINGS["explicit"], 8, scheme=SGD(eta))
    w = np.zeros(tasks.dim)
    for t, m in enumerate(run.order, start=1):
        X, y = tasks.task(m)
        w = w - eta * np.linalg.pinv(X, rcond=1e-12) @ (X @ w - y)
        np.testing.assert_allclose(run.iterates[t], w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_ridge_minimises_the_loss_plus_the_distance_to_the_previous_solution(loss):
    base, lam = PROBLEMS["rank-deficient"], 0.7
    pairs = [base.task(m) for m in range(T)]
    tasks = fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs], loss=loss)
    run = fg.run(tasks, ORDERINGS["explicit"], 8, scheme=Ridge(lam))
    w = np.zeros(tasks.dim)
    for t, m in enumerate(run.order, start=1):
        X, y = pairs[m]
        n = len(y) if loss == "mean" else 1
        w = np.linalg.solve(X.T @ X / n + lam * np.eye(len(w)), X.T @ y / n + lam * w)
        np.testing.assert_allclose(run.iterates[t], w, rtol=0, atol=1e-12)


def test_nlms_passes_the_rows_of_a_task_once():
    tasks = PROBLEMS["rank-deficient"]
    run = fg.run(tasks, ORDERINGS["explicit"], 8, scheme=NLMS(mu=0.6, eps=0.1))
    w = np.zeros(tasks.dim)
    for t, m in enumerate(run.order, start=1):
        for x, y in zip(*tasks.task(m), strict=True):
            w = w - 0.6 * (x @ w - y) * x / (0.1 + x @ x)
        np.testing.assert_allclose(run.iterates[t], w, rtol=0, atol=1e-12)
    assert run.inner_steps.tolist() == tasks.num_rows[run.order].tolist()


# -------------------------------------------------------------------------------------------------- the whole table

SCHEMES = [
    Kaczmarz(),
    SGD(0.5),
    SGD(1.9),
    SGD(0.3, objective="loss"),
    FiniteSteps(3, step_size=0.5),
    Ridge(0.5),
    NLMS(),
    NLMS(mu=0.5, eps=0.1),
    RecursiveLeastSquares(),
    GradientDescent(),
    GradientDescent(accelerated=True),
    GradientDescent(batch_size=1),
]


def kernel_tasks():
    tasks = fg.families.gaussian(T, 12, rank=2, seed=9, condition=3)
    X = np.vstack([tasks.task(m)[0] for m in range(T)])
    return fg.KernelTasks(X @ X.T, np.concatenate([tasks.task(m)[1] for m in range(T)]), np.repeat(np.arange(T), 2))


def small_sparse_tasks():
    matrices = [sp.csr_array(np.eye(2, 9, k=m) + 0.3 * np.eye(2, 9, k=m + 3)) for m in range(T)]
    return realizable([0.8 * X for X in matrices], 10)


KINDS = {
    "dense": fg.families.gaussian(T, 12, rank=[2, 1, 3, 2], seed=9, condition=3),
    "sparse": small_sparse_tasks(),
    "kernel": kernel_tasks(),
}


@pairwise(kind=list(KINDS), ordering=list(ORDERINGS.values()), scheme=list(SCHEMES))
def test_every_scheme_runs_under_every_ordering_on_every_problem(scheme, ordering, kind):
    problem = KINDS[kind]
    k = steps_of(ordering)
    w0 = np.linspace(-0.1, 0.1, problem.dim)
    run = fg.run(problem, ordering, k, scheme=scheme, seed=1, w0=w0)
    assert run.status == f"completed {k} steps"
    assert not run.interrupted
    assert run.order.shape == run.inner_steps.shape == run.forgetting.shape == run.regret.shape == (k,)
    assert set(run.order.tolist()) <= set(range(T))
    assert run.iterates.shape == (k + 1, problem.dim)
    assert run.losses.shape == run.steps.shape == (k + 1,)
    assert run.loss_matrix.shape == run.residuals.shape == (k + 1, T)
    for values in (run.iterates, run.loss_matrix, run.forgetting, run.regret):
        assert np.isfinite(values).all()
    assert np.all(run.loss_matrix >= 0)
    np.testing.assert_allclose(run.iterates[0], w0, rtol=0, atol=1e-15)
    np.testing.assert_allclose(run.losses, run.loss_matrix.mean(axis=1), rtol=1e-12, atol=1e-18)
    for step in (0, 1, k):
        expected = problem.task_losses(run.iterates[step])
        np.testing.assert_allclose(run.loss_matrix[step], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(run.residuals[step], problem.distances(run.iterates[step]), rtol=1e-9, atol=1e-7)
    learned = run.loss_matrix[1:]
    np.testing.assert_allclose(run.forgetting, fg.metrics.paper_forgetting(run.order, learned), rtol=1e-9, atol=1e-14)
    before = run.loss_matrix[np.arange(k), run.order]
    np.testing.assert_allclose(run.regret, fg.metrics.paper_regret(before), rtol=1e-9, atol=1e-14)
    assert run.losses[-1] < run.losses[0]
