"""Nothing computes for ever: what does not converge ends within its steps and says so."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic
from forgetting.schemes import GradientDescent, WeaklyRegularized
from forgetting.schemes.weakly_regularized import ExponentialTask
from forgetting.theory.draws import permuted

RNG = np.random.default_rng(0)
OVERLAP = RNG.standard_normal((40, 3))
SIDES = (OVERLAP[:, 0] + 0.3 * RNG.standard_normal(40) > 0).astype(int)


def iris():
    from sklearn.datasets import load_iris

    return load_iris(return_X_y=True)


def test_a_lambda_too_small_for_the_digits_there_are_ends_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="stopped after .* Newton steps with a KKT residual of"):
        model = fg.ContinualClassifier(-1e12, max_iter=50).fit(*iris())
    assert model.n_iter_ <= 2 * 50 + 50
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("level", [1.0, 1e4, 1e8, 1e12, 1e14])
@pytest.mark.parametrize("most", [1, 7, 60])
def test_newton_steps_are_bounded_whatever_lambda_is(level, most):
    rng = np.random.default_rng(int(level) % 1000 + most)
    for case in range(20):
        rows = rng.standard_normal((rng.integers(1, 10), rng.integers(1, 5)))
        rows *= 10.0 ** rng.uniform(-6, 6, (len(rows), 1) if case % 2 else (1, 1))
        found = ExponentialTask(rows).solve(rng.standard_normal(rows.shape[1]), -level, 1e-11, most)
        assert found.steps <= 2 * most + 50  # the dual, a polish, and along lambda
        assert np.isfinite(found.w).all()


def test_steps_that_are_spent_are_no_success():
    rows = np.where(SIDES[:, None] > 0, OVERLAP, -OVERLAP)
    few, many = (ExponentialTask(rows).solve(np.zeros(3), -1e4, 1e-11, most) for most in (5, 500))
    assert few.residual > 1e-11
    assert many.residual <= 1e-11


@pytest.mark.parametrize("value", [-1.0000001e14, -1e300])
def test_a_lambda_beyond_all_digits_is_refused(value):
    with pytest.raises(InvalidInputError, match=r"log_lambda must be at least -1e\+14.*use POCS"):
        WeaklyRegularized(value)
    with pytest.raises(InvalidInputError, match="log_lambda must be at least"):
        fg.ContinualClassifier(value).fit(OVERLAP, SIDES)


def test_gradient_descent_from_where_squares_overflow_ends_at_once():
    tasks = fg.RegressionTasks(1e10 * RNG.standard_normal((2, 2, 4)), np.zeros((2, 2)))
    with np.errstate(all="ignore"):
        run = fg.run(tasks, Cyclic(), k=1, scheme=GradientDescent(max_steps=10**9), w0=[1e149, -1e149, 1e149, 1e149])
    assert run.inner_steps.max() < 10
    assert "gradient descent on task 0 stopped after" in run.status


@pytest.mark.parametrize("accelerated", [False, True])
def test_gradient_descent_below_rounding_ends_where_it_gets_no_nearer(accelerated):
    tasks = fg.families.gaussian(T=2, d=4, rank=2, seed=0)
    scheme = GradientDescent(tol=1e-320, max_steps=10**9, accelerated=accelerated)
    run = fg.run(tasks, Cyclic(), k=1, scheme=scheme, w0=np.ones(4))
    assert run.inner_steps.max() < 10_000
    assert run.losses[-1] == pytest.approx(fg.run(tasks, Cyclic(), k=1, w0=np.ones(4)).losses[-1])


def test_a_draw_that_no_chance_gives_is_an_error():
    with pytest.raises(InvalidInputError, match="1000 draws gave no 100000 tasks"):
        permuted(first=100_000, clones=2, distinct=2)(np.random.default_rng(0), 70)


def test_a_table_in_less_room_than_its_columns_need_is_as_narrow_as_it_is_told():
    from forgetting.figures.text_formats import columns_text

    lines = columns_text([("a long heading", "1"), ("another one", "2")], width=9, ruled=True).splitlines()
    assert max(map(len, lines)) <= 9
    assert "".join(lines).count("1") == 1


def test_a_tolerance_of_any_type_is_a_float():
    tasks = fg.families.gaussian(T=2, d=4, rank=2, seed=0)
    run = fg.run(tasks, Cyclic(), k=1, scheme=GradientDescent(tol=np.longdouble(1e-6)))
    assert type(run.scheme.tol) is float
