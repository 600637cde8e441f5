"""The proofs of docs/schedules.md: each line on numbers, and the bounds on exact values of hard tasks."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.schemes import Ridge

C = 13 / 3
B = 3 / (2 * C)


def rare(tasks):
    """A row of norm 1 among tasks of norm 0."""
    return fg.RegressionTasks([[[1.0]]] + [[[0.0]]] * (tasks - 1), [[1.0]] + [[0.0]] * (tasks - 1))


def bound_of(problem, k, scheme, key):
    rows = fg.bounds.evaluate(problem, "with-replacement", k, scheme=scheme)
    return next(row for row in rows if row.bound.key == f"here:ridge/loss{key}").value


def test_no_bracket_of_the_proof_is_negative_and_the_last_is_large_enough():
    for k in (1, 2, 7, 100, 5000):
        N = k + 1
        s = np.arange(1, k + 1)
        n = N - s
        x = n / (C * N)
        c = 1 / n + B / N
        before = 1 / (n + 1) + B / N
        sums = n + B * n * (n + 1) / (2 * N)
        brackets = c**2 * n / (1 + x) ** 2 - (c - before) * sums
        assert np.all(brackets >= 0)
        assert brackets[-1] >= 0.5
        np.testing.assert_allclose(sums, [np.sum((1 / np.arange(1, m + 1) + B / N) * np.arange(1, m + 1)) for m in n])


def test_the_constant_is_that_of_the_strengths():
    assert pytest.approx(1225 / 156, rel=1e-14) == C * (1 + B) ** 2
    unit = rare(1)
    fitted = Ridge("increasing").fitted_to(unit, 10)
    np.testing.assert_allclose(
        [fitted.at_step(t).penalty for t in range(1, 11)], [C * 11 / (12 - t) for t in range(1, 11)]
    )


@pytest.mark.parametrize("k", [1, 3, 10, 100, 1000])
def test_the_bounds_hold_on_hard_tasks(k):
    problems = [rare(max(1, round(k * times))) for times in (0.1, 0.4, 1.0, 2.0)] + [fg.families.two_lines(k**-0.5)]
    for problem in problems:
        for scheme, key in ((Ridge("fixed"), "/fixed"), (Ridge("increasing"), "/increasing"), (Ridge(0.5), "")):
            e = fg.expect(problem, "with-replacement", k, scheme, quantities="loss")
            assert float(e.loss) <= bound_of(problem, k, scheme, key)


def test_a_rare_row_makes_the_fixed_strength_pay_the_logarithm():
    paid = []
    for k in (100, 1000, 10_000):
        tasks = round(2 * k / (1 + np.log(k)))
        e = fg.expect(rare(tasks), "with-replacement", k, "ridge lam=fixed", quantities="loss")
        paid.append(k * float(e.loss) / (1 + np.log(k)) * 4 * np.e)
    np.testing.assert_allclose(paid, 1.0, atol=0.12)  # log k / (4 e k), times e^(g/2) for a gain of g
    assert paid[0] > paid[1] > paid[2] > 1


def test_the_loss_of_a_task_is_at_most_so_much_of_that_which_sgd_descends_on():
    rng = np.random.default_rng(0)
    for lam in (1e-3, 1.0, 1e3):
        A = (lambda X: X.T @ X)(rng.standard_normal((3, 5)))
        M = A @ np.linalg.inv(A + lam * np.eye(5))
        sizes = np.linalg.eigvalsh((np.linalg.norm(A, 2) + lam) * (M + M.T) / 2 - A)
        assert sizes[0] >= -1e-10 * np.linalg.norm(A, 2) * max(1, lam)
