"""What sample weights mean: a row of weight 2 is two rows, a row of weight 0 is none."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

import forgetting as fg
from forgetting.errors import InvalidInputError

COUNTS = np.array([2, 0, 1, 3, 1, 0, 4, 1, 2, 1, 0, 2])
GROUPS = np.repeat(["a", "b", "c"], 4)
REGRESSORS = [
    fg.ContinualRegressor(),
    fg.ContinualRegressor(loss="mean"),
    fg.ContinualRegressor(scheme=fg.schemes.Ridge(0.3)),
    fg.ContinualRegressor(scheme=fg.schemes.Ridge(0.3), loss="mean"),
    fg.ContinualRegressor(scheme=fg.schemes.SGD(0.01, objective="loss")),
    fg.ContinualRegressor(scheme=fg.schemes.FiniteSteps(5, 0.01)),
]
CLASSIFIERS = [fg.ContinualClassifier(), fg.ContinualClassifier(-2.0), fg.ContinualClassifier("limit")]


def rows(seed=0, d=20):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((12, d)), rng.standard_normal(12)


@pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=repr)
@pytest.mark.parametrize("d", [2, 20])
def test_a_row_of_weight_n_is_n_rows(model, d):
    X, y = rows(d=d)
    if hasattr(model, "log_lambda"):
        X, y = rows()[0], (y > 0).astype(int)  # separable
    weighted = model.fit(X, y, task_id=GROUPS, sample_weight=COUNTS)
    weighted.partial_fit(X[:4], y[:4], task_id="again", sample_weight=COUNTS[:4])
    got = weighted.coef_, weighted.intercept_, weighted.loss_matrix_, weighted.forgetting_
    times = np.repeat(np.arange(12), COUNTS)
    first = np.repeat(np.arange(4), COUNTS[:4])
    repeated = model.fit(X[times], y[times], task_id=GROUPS[times]).partial_fit(X[first], y[first], task_id="again")
    want = repeated.coef_, repeated.intercept_, repeated.loss_matrix_, repeated.forgetting_
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)
    if hasattr(model, "log_lambda"):
        np.testing.assert_allclose(
            model.fit(X, y, task_id=GROUPS, sample_weight=COUNTS).accuracy_matrix_,
            model.fit(X[times], y[times], task_id=GROUPS[times]).accuracy_matrix_,
        )


def test_a_task_that_has_a_solution_is_solved_whatever_the_weights():
    X, y = rows()
    even, uneven = (fg.ContinualRegressor().fit(X, y, sample_weight=s) for s in (None, np.arange(1.0, 13)))
    np.testing.assert_allclose(uneven.coef_, even.coef_, atol=1e-11)
    ridge = fg.ContinualRegressor(scheme=fg.schemes.Ridge(1.0))
    apart = [ridge.fit(X, y, sample_weight=s).coef_.copy() for s in (None, np.arange(1.0, 13))]
    assert np.abs(apart[0] - apart[1]).max() > 1e-3


def test_weighted_least_squares_is_that_of_numpy():
    X, y = rows(d=3)
    weights = np.arange(1.0, 13)
    model = fg.ContinualRegressor().fit(X, y, sample_weight=weights)
    wide = np.column_stack([X, np.ones(12)])
    root = np.sqrt(weights)
    want = np.linalg.lstsq(wide * root[:, None], y * root, rcond=None)[0]
    np.testing.assert_allclose([*model.coef_, model.intercept_], want, atol=1e-12)
    assert model.loss_matrix_[1, 0] == pytest.approx(0.5 * np.sum(weights * (wide @ want - y) ** 2))
    sparse = fg.ContinualRegressor().fit(csr_array(X), y, sample_weight=weights)
    np.testing.assert_allclose(sparse.coef_, model.coef_, atol=1e-12)


def test_a_weighted_classifier_minimises_what_it_says():
    X, y = rows(d=3)
    signs, weights, lam = np.where(y > 0, 1.0, -1.0), np.linspace(0.1, 5.0, 12), np.exp(-3.0)
    model = fg.ContinualClassifier(-3.0, fit_intercept=False).fit(X, signs, sample_weight=weights)

    def objective(v):
        return np.sum(weights * np.exp(-signs * (X @ v))) + lam / 2 * v @ v

    best = minimize(objective, np.zeros(3), tol=1e-12)
    np.testing.assert_allclose(model.coef_[0], best.x, atol=1e-4)
    assert objective(model.coef_[0]) <= best.fun + 1e-9


def test_tasks_whose_rows_all_have_weight_zero_are_left_out():
    X, y = rows()
    weights = np.where(GROUPS == "b", 0.0, 1.0)
    assert fg.ContinualRegressor().fit(X, y, task_id=GROUPS, sample_weight=weights).task_ids_ == ["a", "c"]
    model = fg.ContinualRegressor().fit(X, y, task_id=GROUPS, order=["b", "c", "a"], sample_weight=weights)
    assert model.task_ids_ == ["c", "a"]


def test_wrong_weights_are_named():
    X, y = rows()
    model = fg.ContinualRegressor()
    with pytest.raises(
        InvalidInputError, match=r"sample_weight: expected one weight for each of 12 rows, got shape \(3,\)"
    ):
        model.fit(X, y, sample_weight=[1, 2, 3])
    with pytest.raises(InvalidInputError, match=r"sample_weight\[2\] is -1, but weights are at least 0"):
        model.fit(X, y, sample_weight=np.where(np.arange(12) == 2, -1, 1))
    with pytest.raises(InvalidInputError, match="sample_weight: every weight is zero"):
        model.fit(X, y, sample_weight=0)
    with pytest.raises(InvalidInputError, match="sample_weight: entry 1 is nan"):
        model.fit(X, y, sample_weight=[1, np.nan] + 10 * [1])
    model.partial_fit(X, y, task_id="a", sample_weight=COUNTS)
    with pytest.raises(InvalidInputError, match="task_id 'a' came before with other data"):
        model.partial_fit(X, y, task_id="a")
