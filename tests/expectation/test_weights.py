"""The weights with the fastest decay: known answers, and the conditions that decide a convex problem."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import NotSupportedError
from forgetting.expectation import fastest_weights


def rate_of(matrices, p):
    """The largest eigenvalue of sum_m p_m P_m (x) P_m on the joint row space, from the matrices alone."""
    basis = np.linalg.svd(np.vstack(matrices), full_matrices=False)[2]
    basis = basis[: np.linalg.matrix_rank(np.vstack(matrices))]
    steps = [np.eye(len(basis)) - basis @ np.linalg.pinv(X) @ X @ basis.T for X in matrices]
    return np.linalg.eigvalsh(sum(q * np.kron(P, P) for q, P in zip(p, steps, strict=True)))[-1]


def tasks_of(matrices):
    return fg.RegressionTasks(matrices, [X @ np.ones(X.shape[1]) for X in matrices])


def test_orthogonal_rows_are_drawn_equally_often_whatever_their_norms():
    best = fastest_weights(tasks_of([10.0**m * np.eye(4)[m : m + 1] for m in range(4)]))
    np.testing.assert_allclose(best.probabilities, 1 / 4, atol=1e-5)
    assert best.rate == pytest.approx(1 - 1 / 4, abs=1e-5)


def test_two_lines_are_drawn_equally_often():
    best = fastest_weights(fg.families.two_lines(0.7))
    np.testing.assert_allclose(best.probabilities, 1 / 2, atol=1e-2)  # the rate is flat about its minimum
    assert best.rate == pytest.approx((1 + np.cos(0.7) ** 2) / 2, abs=2e-6)


def test_a_task_that_solves_all_others_is_the_only_one_drawn():
    best = fastest_weights(tasks_of([np.eye(3)[:1], np.eye(3), np.eye(3)[1:]]))
    np.testing.assert_allclose(best.probabilities, [0, 1, 0], atol=1e-12)
    assert best.rate == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_weights_are_faster(seed):
    rng = np.random.default_rng(seed)
    matrices = [rng.standard_normal((1 + seed % 2, 4)) * 10.0 ** rng.uniform(-1, 1) for _ in range(6)]
    tasks = tasks_of(matrices)
    best = fastest_weights(tasks)
    assert best.probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert best.probabilities.min() >= 0
    assert best.rate == pytest.approx(rate_of(matrices, best.probabilities), rel=1e-9)
    assert best.rate == pytest.approx(fg.decay_rate(tasks, fg.orderings.WithReplacement(best.probabilities)), rel=1e-9)
    assert 0 <= best.rate - best.least <= 1e-5
    for p in [np.full(6, 1 / 6), tasks.norms**2 / np.sum(tasks.norms**2), *rng.dirichlet(np.full(6, 0.5), 50)]:
        assert rate_of(matrices, p) >= best.least - 1e-7
    assert best.rate < rate_of(matrices, np.full(6, 1 / 6)) - 0.01


def test_a_step_of_sgd_has_weights_of_its_own():
    tasks = tasks_of([np.array([[1.0, 0.0]]), np.array([[0.0, 0.5]])])
    best = fastest_weights(tasks, fg.schemes.SGD(1.0, "loss"))
    # the squares of both coordinates fall by 1 - p and p + (1 - p) 9/16, equal at 16 p = 7 (1 - p)
    assert best.probabilities[0] == pytest.approx(7 / 23, abs=1e-4)
    assert best.rate == pytest.approx(16 / 23, abs=1e-5)


def test_what_is_not_linear_is_refused():
    with pytest.raises(NotSupportedError, match="fastest weights"):
        fastest_weights(fg.families.separable(3, 4, 2))
