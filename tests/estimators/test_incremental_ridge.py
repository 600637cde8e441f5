"""Heads that do not forget: ridge regression of all rows, learned in any order and in any batches."""

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

import forgetting as fg
from forgetting.auditing import RandomFeatures
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.geometry.ridge_state import RidgeState

EPS = np.finfo(np.float64).eps


def data(n=120, d=6, outputs=3, seed=0, mean=2.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + mean
    return X, X @ rng.standard_normal((d, outputs)) + rng.standard_normal((n, outputs)) + 1, rng.uniform(0.2, 2, n)


def in_batches(model, X, y, cuts, weights=None, **more):
    for rows in cuts:
        model.partial_fit(X[rows], y[rows], sample_weight=None if weights is None else weights[rows], **more)
    return model


def ill_conditioned(condition, noise, n=200, d=6, seed=0):
    """Rows whose centred matrix has about this condition number, and a penalty that leaves it so."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((n, d)))[0]
    right = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = np.sqrt(n) * (left * np.geomspace(1, 1 / condition, d)) @ right + 0.3
    y = X @ rng.standard_normal(d) + noise * rng.standard_normal(n) + 1
    top = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)[0]
    return X, y, 0.1 * (top / condition) ** 2


def exact_ridge(X, y, alpha):
    """The coefficients of ridge regression with an intercept, from normal equations in 90 digits."""
    with mp.workdps(90):
        rows = [
            [mp.mpf(1), *map(mp.mpf, row), mp.mpf(target)] for row, target in zip(X.tolist(), y.tolist(), strict=True)
        ]
        size = X.shape[1] + 1
        gram = mp.matrix(size, size)
        right = mp.matrix(size, 1)
        for i in range(size):
            right[i] = mp.fsum(row[i] * row[-1] for row in rows)
            for j in range(size):
                gram[i, j] = mp.fsum(row[i] * row[j] for row in rows)
            gram[i, i] += mp.mpf(alpha) if i else 0
        return np.array([float(value) for value in mp.lu_solve(gram, right)])[1:]


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("condition", [1e2, 1e5, 1e8, 1e11, 1e14])
def test_coefficients_are_as_good_as_the_data_allow_in_any_batches(condition, noise):
    X, y, alpha = ill_conditioned(condition, noise)
    truth = exact_ridge(X, y, alpha)
    sigma = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    high, low = sigma[0] ** 2 + alpha, sigma[-1] ** 2 + alpha
    kappa = np.sqrt(high / low)
    residual = y - y.mean() - (X - X.mean(axis=0)) @ truth
    rho = np.sqrt((residual @ residual + alpha * truth @ truth) / high) / np.linalg.norm(truth)
    unit = EPS * (kappa + kappa**2 * rho) * np.linalg.norm(truth)
    for batches in (1, 10, 200):
        model = in_batches(fg.IncrementalRidge(alpha), X, y, np.array_split(np.arange(len(y)), batches))
        error = np.linalg.norm(model.coef_ - truth)
        assert error <= 5 * unit
        assert error <= model.coef_error_


def test_the_bound_on_rounding_errors_holds_where_all_rows_are_equal():
    row = np.array([[0.3, 1.7, -2.1]])
    state = RidgeState.empty(np.zeros(3), np.zeros(1))
    for _ in range(2000):
        state = state.with_rows(row, lambda cut: np.ones((1, 1)))
    whole = np.array([1, *map(Fraction, row[0].tolist())])
    sums = 2000 * np.outer(whole, whole)
    factor = np.array([[Fraction(value) for value in line] for line in state.factor.tolist()])
    errors = (factor.T @ factor - sums) / np.sqrt(np.outer(np.diag(sums), np.diag(sums)).astype(np.float64))
    assert 0 < np.abs(errors.astype(np.float64)).max() <= 2 * state.rounding < 1e-12


def test_the_bound_on_rounding_errors_holds_where_the_first_row_is_far_and_weighs_little():
    X, Y, _ = data(n=40, d=2, outputs=1)
    weights = np.r_[1e-16, np.ones(39)]
    for rows, targets in ((np.r_[X[:1] - 1e8, X[1:]], Y[:, 0]), (X, np.r_[-1e8, Y[1:, 0]])):
        for intercept in (True, False):
            model = in_batches(fg.IncrementalRidge(0.1, intercept), rows, targets, [slice(0, 1), slice(1, 40)], weights)
            again = fg.IncrementalRidge(0.1, intercept).fit(rows, targets, weights)
            assert np.linalg.norm(model.coef_ - again.coef_) <= model.coef_error_ + again.coef_error_


def test_the_bound_on_rounding_errors_holds_for_targets_that_are_equal():
    for seed in range(20):
        X, _, _ = data(n=30, seed=seed)
        weights = 10.0 ** np.random.default_rng(seed).uniform(-8, 8, 30)
        shards = [
            fg.IncrementalRidge(0.1).fit(X[rows], np.full(10, 1.1), weights[rows])
            for rows in np.split(np.arange(30), 3)
        ]
        merged = shards[0].merge(shards[1]).merge(shards[2])
        assert np.linalg.norm(merged.coef_) <= merged.coef_error_ < 1e-9  # the solution is 0


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_any_order_and_any_batches_equal_ridge_on_all_rows(intercept, weighted):
    X, Y, weights = data()
    weights = weights if weighted else None
    truth = Ridge(0.7, fit_intercept=intercept, solver="svd").fit(X, Y, weights)
    rng = np.random.default_rng(1)
    for batches in (1, 7, 120):
        cuts = np.array_split(rng.permutation(len(X)), batches)
        model = in_batches(fg.IncrementalRidge(0.7, intercept), X, Y, cuts, weights)
        np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-11)
        np.testing.assert_allclose(model.intercept_, truth.intercept_, rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(model.predict(X), truth.predict(X), atol=1e-11 * np.abs(Y).max())
    assert model.n_rows_ == 120
    assert model.weight_ == pytest.approx(120 if weights is None else weights.sum())


def test_one_output_is_flat_and_several_are_columns():
    X, Y, _ = data()
    flat, column = fg.IncrementalRidge().fit(X, Y[:, 0]), fg.IncrementalRidge().fit(X, Y[:, :1])
    assert flat.coef_.shape == (6,)
    assert isinstance(flat.intercept_, float)
    assert flat.predict(X).shape == (120,)
    assert column.coef_.shape == (1, 6)
    assert column.predict(X).shape == (120, 1)


def test_sparse_rows_and_float32_equal_dense_float64():
    X, Y, weights = data()
    X = np.where(np.abs(X) > 2, X, 0.0)
    dense = fg.IncrementalRidge().fit(X, Y, weights)
    for own in (sp.csr_array(X), sp.csc_matrix(X)):
        np.testing.assert_allclose(fg.IncrementalRidge().fit(own, Y, weights).coef_, dense.coef_, rtol=1e-12)
    small = X.astype(np.float32)
    found = fg.IncrementalRidge().fit(small, Y).coef_
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, fg.IncrementalRidge().fit(small.astype(np.float64), Y).coef_, rtol=1e-12)


def test_a_weight_of_two_counts_like_two_rows_and_one_of_zero_leaves_the_row_out():
    X, Y, _ = data(n=30)
    weights = np.arange(30) % 3
    weighted = fg.IncrementalRidge("gcv").fit(X, Y, weights)
    repeated = fg.IncrementalRidge("gcv").fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)
    assert weighted.weight_ == repeated.n_rows_ == 30
    assert weighted.n_rows_ == 20


def test_digits_that_all_rows_share_are_not_lost():
    X, Y, _ = data(mean=0.0)
    X = np.rint(X * 2**10) / 2**10
    far = in_batches(fg.IncrementalRidge(), X + 2.0**30, Y, np.array_split(np.arange(120), 9))  # the sums are exact
    np.testing.assert_allclose(far.coef_, fg.IncrementalRidge().fit(X, Y).coef_, rtol=1e-12, atol=1e-13)


def test_no_digit_depends_on_the_number_of_threads():
    X, Y, _ = data(n=700, d=300)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            model = fg.IncrementalRidge().fit(X, Y).unlearn(X[:9], Y[:9])
            path = model.path([0.1, 1.0])
            found.append((model.coef_, model.intercept_, model.coef_error_, path.coef, path.scores))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_without_a_penalty_the_shortest_least_squares_solution_is_taken():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 8))
    y = rng.standard_normal(40)
    model = in_batches(fg.IncrementalRidge(0.0, False), X, y, np.array_split(np.arange(40), 8))
    np.testing.assert_allclose(model.coef_, np.linalg.lstsq(X, y, rcond=1e-10)[0], rtol=1e-9)


# -------------------------------------------------------------------------------------------------------------- classes


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("count", [2, 4])
def test_classes_equal_ridge_classification_of_all_rows(intercept, count):
    X, _, weights = data(n=150)
    y = np.array(["ant", "bee", "cat", "dog"])[np.arange(150) % count]
    truth = RidgeClassifier(0.5, fit_intercept=intercept).fit(X, y, weights)
    model = in_batches(
        fg.IncrementalRidgeClassifier(0.5, intercept), X, y, np.array_split(np.arange(150), 6), weights, classes=None
    )
    np.testing.assert_allclose(model.coef_, np.atleast_2d(truth.coef_), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, truth.intercept_, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), truth.decision_function(X), atol=1e-10)
    assert (model.predict(X) == truth.predict(X)).all()


def test_new_classes_after_ten_batches_equal_having_known_them():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((220, 9)), np.concatenate([np.arange(200) % 3 * 2, np.arange(20) % 5])  # 1 and 3 are new
    cuts = np.array_split(np.arange(220), 11)
    late = in_batches(fg.IncrementalRidgeClassifier(0.3), X, y, cuts)
    known = fg.IncrementalRidgeClassifier(0.3).partial_fit(X[cuts[0]], y[cuts[0]], classes=range(5))
    in_batches(known, X, y, cuts[1:])
    np.testing.assert_allclose(late.coef_, known.coef_, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(late.coef_, RidgeClassifier(0.3, solver="svd").fit(X, y).coef_, rtol=1e-9, atol=1e-13)
    assert late.classes_.tolist() == [0, 1, 2, 3, 4]


def test_classes_of_other_shards_are_taken_in():
    X, _, _ = data(n=90)
    y = np.arange(90) // 30
    shards = [
        fg.IncrementalRidgeClassifier(0.1, keep_tasks=True).fit(X[y == c], y[y == c], task_id=c) for c in range(3)
    ]
    merged = shards[2].merge(shards[0]).merge(shards[1])
    np.testing.assert_allclose(merged.coef_, RidgeClassifier(0.1, solver="svd").fit(X, y).coef_, rtol=1e-9)
    assert merged.classes_.tolist() == [0, 1, 2]
    assert merged.task_ids_ == [2, 0, 1]


def test_numbers_and_words_do_not_mix_as_classes():
    model = fg.IncrementalRidgeClassifier().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidInputError, match="numbers in one place and words in another"):
        model.partial_fit([[0.0], [1.0]], [0, 1])


# ---------------------------------------------------------------------------------------------------- joining, removing


def test_merging_is_associative_and_equals_one_fit():
    X, Y, weights = data(mean=30.0)
    parts = np.array_split(np.arange(120), 3)

    def part(place):
        return fg.IncrementalRidge(0.2).fit(X[parts[place]], Y[parts[place]], weights[parts[place]])

    left, right = part(0).merge(part(1)).merge(part(2)), part(0).merge(part(1).merge(part(2)))
    whole = fg.IncrementalRidge(0.2).fit(X, Y, weights)
    for model in (left, right):
        np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)
        np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-10)
        np.testing.assert_allclose(model.path([0.1]).scores, whole.path([0.1]).scores, rtol=1e-10)


def test_what_is_unlearned_leaves_the_fit_of_the_other_rows():
    rng = np.random.default_rng(3)
    worst = 0.0
    for _ in range(60):
        n, d = int(rng.integers(3, 50)), int(rng.integers(1, 9))
        scales = 10.0 ** -rng.uniform(0, rng.choice([0, 3]), d)
        X = rng.standard_normal((n, d)) * scales @ np.linalg.qr(rng.standard_normal((d, d)))[0] + rng.choice([0, 5])
        Y = X @ rng.standard_normal((d, 2)) + rng.choice([0, 0.5]) * rng.standard_normal((n, 2))
        weights, alpha, intercept = rng.uniform(0.1, 3, n), 10.0 ** rng.uniform(-4, 1), bool(rng.integers(2))
        order = rng.permutation(n)
        gone, kept = np.split(order, [int(rng.integers(1, n))])
        model = fg.IncrementalRidge(alpha, intercept).fit(X, Y, weights)
        model.unlearn(X[gone], Y[gone], weights[gone], rtol=1e6)
        truth = fg.IncrementalRidge(alpha, intercept).fit(X[kept], Y[kept], weights[kept])
        errors = np.linalg.norm(model.coef_ - truth.coef_, axis=1)
        worst = max(worst, float(np.max(errors / (model.coef_error_ + truth.coef_error_))))
        assert model.n_rows_ == len(kept)
    assert 0 < worst <= 1


def test_rows_that_come_and_go_leave_the_fit_of_the_others_whatever_the_scales_of_columns():
    rng = np.random.default_rng(1)
    worst = 0.0
    for scales in ([1e-4, 1e-6, 1e-4], [1e6, 1, 1e-6], *[[1, 1, 0]] * 8):
        X, more = rng.standard_normal((20, 3)) * scales, rng.standard_normal((5, 3)) * scales
        y, others = 1 + X @ np.ones(3), 100 * rng.standard_normal(5)
        for intercept in (True, False):
            alpha = 1e-2 * np.max(X**2)
            model, truth = (fg.IncrementalRidge(alpha, intercept).fit(X, y) for _ in range(2))
            for _ in range(3):
                model.partial_fit(more, others).unlearn(more, others, rtol=1e9)
            error = np.linalg.norm(model.coef_ - truth.coef_)
            worst = max(worst, error / (model.coef_error_ + truth.coef_error_))
            assert model.n_rows_ == 20
    assert 0 < worst <= 1


@pytest.mark.parametrize("noise", [0.0, 1.0])
@pytest.mark.parametrize("condition", [1e2, 1e4])
def test_a_part_of_many_rows_is_removed_about_as_accurately_as_it_was_learned(condition, noise):
    X, y, alpha = ill_conditioned(condition, noise)
    model = fg.IncrementalRidge(alpha).fit(X, y).unlearn(X[:20], y[:20])  # not refused
    kept = fg.IncrementalRidge(alpha).fit(X[20:], y[20:])
    assert np.linalg.norm(model.coef_ - exact_ridge(X[20:], y[20:], alpha)) <= model.coef_error_ < 50 * kept.coef_error_


@pytest.mark.parametrize("step", [1, 7, 40])
def test_columns_that_only_removed_rows_had_vanish(step):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.where(rng.random((40, 5)) < 0.2, rng.standard_normal((40, 5)), 0.0)
        y = X @ np.ones(5) + rng.standard_normal(40)
        gone, kept = np.split(rng.permutation(40), [35])
        model = fg.IncrementalRidge(1e-3).fit(X, y)
        for first in range(0, 35, step):
            rows = gone[first : first + step]
            model.unlearn(X[rows], y[rows], rtol=1e12)
        error = np.linalg.norm(model.coef_ - fg.IncrementalRidge(1e-3).fit(X[kept], y[kept]).coef_)
        assert error <= model.coef_error_


def test_constant_targets_can_be_unlearned():
    X, _, _ = data()
    model = fg.IncrementalRidge().fit(X, np.full(120, 3.0)).unlearn(X[:50], np.full(50, 3.0))
    np.testing.assert_allclose(model.predict(X), 3.0)


@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_rows_with_other_weights_than_they_were_learned_with_are_not_removed(weight):
    X, Y, _ = data()
    model = fg.IncrementalRidge().fit(X, Y)
    with pytest.raises(InvalidInputError, match="learned"):
        model.unlearn(X, Y, np.full(120, weight))
    equal = fg.IncrementalRidge().fit(np.ones((10, 2)), np.ones(10))
    with pytest.raises(NotSupportedError, match="only rounding errors would be left, for 9 rows"):
        equal.unlearn(np.ones((1, 2)), [1.0], [10.0])
    assert (model.n_rows_, equal.n_rows_) == (120, 10)


def test_the_only_row_of_a_direction_is_not_removed_with_another_target():
    model = fg.IncrementalRidge(1.0, False).fit(np.eye(3), np.arange(3.0))
    with pytest.raises(InvalidInputError, match="not those of the only rows in some direction"):
        model.unlearn(np.eye(3)[:1], [1.0], rtol=1e9)
    np.testing.assert_allclose(model.unlearn(np.eye(3)[2:], [2.0]).coef_, [0, 0.5, 0], atol=1e-9)


def test_rows_that_were_never_learned_are_refused_and_nothing_changes():
    X, Y, _ = data()
    model = fg.IncrementalRidge().fit(X, Y)
    before = model.coef_.copy(), model.n_rows_
    for rows, targets in ((X[:2] * 30, Y[:2]), (X[:2], Y[:2] + 100), (np.tile(X, (2, 1)), np.tile(Y, (2, 1)))):
        with pytest.raises(InvalidInputError, match=r"never learned|were not learned"):
            model.unlearn(rows, targets)
        np.testing.assert_array_equal(model.coef_, before[0])
        assert model.n_rows_ == before[1]


def test_removing_what_alone_determines_the_coefficients_is_refused():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.standard_normal((20, 3)) * [1, 1, 1e-6], rng.standard_normal((5, 3))])
    y = rng.standard_normal(25)
    model = fg.IncrementalRidge(1e-12).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(NotSupportedError, match=r"relative error of the coefficients may be .* above rtol=1e-06"):
        model.unlearn(X[20:], y[20:])
    np.testing.assert_array_equal(model.coef_, before)
    model.unlearn(X[20:], y[20:], rtol=1e9)
    truth = fg.IncrementalRidge(1e-12).fit(X[:20], y[:20]).coef_
    assert np.linalg.norm(model.coef_ - truth) <= model.coef_error_


def test_a_kept_task_is_removed_as_if_it_had_never_been_there():
    X, Y, weights = data()
    owner = np.array(["a", "b", "c", "d"])[np.arange(120) % 4]
    model = fg.IncrementalRidge(0.1, keep_tasks=True).fit(X, Y, weights, task_id=owner)
    truth = fg.IncrementalRidge(0.1).fit(X[owner != "b"], Y[owner != "b"], weights[owner != "b"])
    model.unlearn(task_id="b")
    np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-11)
    assert model.task_ids_ == ["a", "c", "d"]
    with pytest.raises(InvalidInputError, match="no task 'b'"):
        model.unlearn(task_id="b")
    for name in "acd":
        model.unlearn(task_id=name)
    assert model.n_rows_ == 0
    np.testing.assert_array_equal(model.coef_, 0)


def test_tasks_without_names_are_numbered_by_calls_and_numbers_are_not_used_twice():
    X, Y, _ = data()
    model = in_batches(fg.IncrementalRidge(keep_tasks=True), X, Y, np.array_split(np.arange(120), 3))
    assert model.task_ids_ == [0, 1, 2]
    model.unlearn(task_id=0).partial_fit(X[:40], Y[:40])
    assert model.task_ids_ == [1, 2, 3]
    np.testing.assert_allclose(model.coef_, fg.IncrementalRidge().fit(X, Y).coef_, rtol=1e-11)


def test_a_task_all_of_whose_rows_are_removed_is_no_task_any_more():
    X, Y, _ = data()
    model = in_batches(fg.IncrementalRidge("tasks", keep_tasks=True), X, Y, np.array_split(np.arange(120), 3))
    model.unlearn(X[:40], Y[:40], task_id=0)
    assert model.task_ids_ == [1, 2]
    others = in_batches(fg.IncrementalRidge("tasks", keep_tasks=True), X, Y, np.array_split(np.arange(40, 120), 2))
    assert model.alpha_ == pytest.approx(others.alpha_, rel=0.2)


def test_rows_of_weight_zero_belong_to_no_task():
    X, Y, _ = data()
    weights, owner = np.arange(120) % 5 / 2, np.arange(120) // 40
    model = fg.IncrementalRidge(keep_tasks=True).fit(X, Y, weights, task_id=owner).unlearn(task_id=1)
    truth = fg.IncrementalRidge().fit(X[owner != 1], Y[owner != 1], weights[owner != 1])
    np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-10)
    assert model.n_rows_ == truth.n_rows_


def test_no_rows_are_lost_where_tasks_were_kept_for_some_of_them_only():
    X, Y, _ = data()
    late = fg.IncrementalRidge().fit(X[:60], Y[:60]).set_params(keep_tasks=True)
    for call in (
        lambda: late.partial_fit(X[60:], Y[60:], task_id="a"),
        lambda: late.unlearn(X[:9], Y[:9], task_id="a"),
    ):
        with pytest.raises(InvalidInputError, match=r"keep_tasks was set after|no tasks were kept"):
            call()
    early = fg.IncrementalRidge(keep_tasks=True).fit(X[:60], Y[:60], task_id="a").set_params(keep_tasks=False)
    early.partial_fit(X[60:], Y[60:])
    with pytest.raises(InvalidInputError, match="no tasks were kept"):
        early.unlearn(task_id="a")
    assert (late.n_rows_, early.n_rows_, early.task_ids_) == (60, 120, [])


def test_heads_on_other_features_are_not_merged_and_features_do_not_change():
    X, Y, _ = data()
    first = fg.IncrementalRidge(features=5).fit(X, Y)
    for features in (6, RandomFeatures(5, seed=1), None, np.tanh):
        with pytest.raises(InvalidInputError, match="learn both with the same"):
            first.merge(fg.IncrementalRidge(features=features).fit(X, Y))
    first.set_params(features=6)
    for call in (lambda: first.partial_fit(X, Y), lambda: first.predict(X)):
        with pytest.raises(InvalidInputError, match="features was changed"):
            call()
    assert first.fit(X, Y).predict(X).shape == Y.shape


def test_a_class_that_was_never_learned_cannot_be_removed():
    X, _, _ = data()
    model = fg.IncrementalRidgeClassifier().fit(X, np.arange(120) % 3)
    with pytest.raises(InvalidInputError, match=r"class .*7.* was never learned"):
        model.unlearn(X[:2], [0, 7])
    assert model.classes_.tolist() == [0, 1, 2]


def test_classes_that_cannot_be_told_apart_are_refused():
    X, _, _ = data(n=6)
    model = fg.IncrementalRidgeClassifier().fit(X, 2**60 + np.arange(6))
    assert len(model.classes_) == 6
    with pytest.raises(InvalidInputError, match="no longer told from its neighbours"):
        model.partial_fit(X, np.arange(6.0))
    assert len(model.classes_) == 6


# ------------------------------------------------------------------------------------------------------------ penalties


def test_a_change_of_the_penalty_needs_no_new_fit():
    X, Y, _ = data()
    model = fg.IncrementalRidge(1.0).fit(X, Y)
    for alpha in (0.0, 1e-3, 40.0):
        truth = Ridge(alpha, solver="svd").fit(X, Y)
        np.testing.assert_allclose(model.set_params(alpha=alpha).coef_, truth.coef_, rtol=1e-10)
    several = model.predict(X[:5], alphas=[1e-3, 40.0])
    assert several.shape == (2, 5, 3)
    np.testing.assert_allclose(several[1], model.predict(X[:5]), rtol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_generalised_cross_validation_is_that_of_the_hat_matrix(intercept):
    X, Y, _ = data(n=25)
    path = in_batches(fg.IncrementalRidge(1.0, intercept), X, Y, np.array_split(np.arange(25), 4)).path(
        [0.01, 1.0, 30.0]
    )
    centre = np.eye(25) - intercept / 25
    own, targets = centre @ X, centre @ Y
    for place, alpha in enumerate(path.alphas):
        hat = own @ np.linalg.solve(own.T @ own + alpha * np.eye(6), own.T)
        freedom = np.trace(hat) + intercept
        missed = targets - hat @ targets
        assert path.freedom[place] == pytest.approx(freedom, rel=1e-10)
        assert path.errors[place] == pytest.approx((missed**2).sum() / 25, rel=1e-10)
        assert path.scores[place] == pytest.approx(25 * (missed**2).sum() / (25 - freedom) ** 2, rel=1e-10)


@pytest.mark.parametrize("alphas", [[], [[1.0], [2.0]], [-1.0], [np.nan], "x"])
def test_penalties_that_are_none_are_refused(alphas):
    X, Y, _ = data()
    model = fg.IncrementalRidge().fit(X, Y)
    for call in (model.path, lambda given: model.predict(X, alphas=given)):
        with pytest.raises(InvalidInputError, match="alphas"):
            call(alphas)


def test_without_rows_there_is_no_path():
    X, Y, _ = data()
    model = fg.IncrementalRidge("gcv").fit(X, Y).unlearn(X, Y)
    with pytest.raises(InvalidInputError, match="no rows to choose a penalty by"):
        model.path()
    np.testing.assert_array_equal(model.coef_, 0)


@pytest.mark.parametrize(("n", "intercept"), [(5, True), (6, False), (7, True), (3, False)])
def test_generalised_cross_validation_has_its_limit_where_no_more_rows_than_columns(n, intercept):
    X, Y, _ = data(n=n, mean=0.0)
    centre = np.eye(n) - intercept / n
    inverse = np.linalg.pinv(centre @ X @ X.T @ centre, rcond=1e-10, hermitian=True)
    own = centre @ Y
    limit = n * ((inverse @ own) ** 2).sum() / np.trace(inverse) ** 2  # alpha cancels
    path = fg.IncrementalRidge(1.0, intercept).fit(X, Y).path([1e-12, 1e-10])
    np.testing.assert_allclose(path.scores, limit, rtol=1e-4)


def test_leaving_tasks_out_is_fitting_without_them():
    X, Y, _ = data()
    owner = np.arange(120) % 4
    model = fg.IncrementalRidge("tasks", keep_tasks=True).fit(X, Y, task_id=owner)
    path = model.path([0.1, 10.0, 1e4], by="tasks")
    for task in range(4):
        for place, alpha in enumerate(path.alphas):
            other = Ridge(alpha, solver="svd").fit(X[owner != task], Y[owner != task])
            missed = ((other.predict(X[owner == task]) - Y[owner == task]) ** 2).sum() / 30
            assert path.task_scores[task, place] == pytest.approx(missed, rel=1e-9)
    np.testing.assert_allclose(path.scores, path.task_scores.mean(axis=0))
    assert model.alpha_ == model.path(by="tasks").alpha


def test_held_out_rows_choose_by_squared_error_and_by_wrong_classes():
    X, Y, weights = data()
    model = fg.IncrementalRidge().fit(X[:80], Y[:80])
    path = model.path([1e-3, 1.0, 1e3], X[80:], Y[80:], weights[80:])
    for place, alpha in enumerate(path.alphas):
        missed = ((Ridge(alpha, solver="svd").fit(X[:80], Y[:80]).predict(X[80:]) - Y[80:]) ** 2).sum(axis=1)
        assert path.scores[place] == pytest.approx(np.average(missed, weights=weights[80:]), rel=1e-9)
    y = (Y[:, 0] > Y[:, 0].mean()).astype(int)
    head = fg.IncrementalRidgeClassifier().fit(X[:80], y[:80])
    path = head.path([1e-3, 1e5], X[80:], y[80:])
    truth = RidgeClassifier(1e5, solver="svd").fit(X[:80], y[:80])
    assert path.scores[1] == pytest.approx(np.mean(truth.predict(X[80:]) != y[80:]))
    assert path.criterion == "share of held-out rows in a wrong class"


def test_a_path_is_a_table_a_frame_and_a_picture():
    X, Y, _ = data()
    path = fg.IncrementalRidge("gcv").fit(X, Y).path()
    assert len(path.to_frame()) == len(path.alphas) == 200
    assert "generalised cross-validation" in repr(path)
    assert path.plot().get_xlabel() == "alpha"
    assert path.alpha == fg.IncrementalRidge("gcv").fit(X, Y).alpha_


# ------------------------------------------------------------------------------------------------------ where rows are


class FakeTensor:
    """As much of a torch tensor on a processor as the library asks for."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape = self.values.shape

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


def test_batches_of_a_loader_pass_through_a_network():
    X, _, _ = data()
    y = np.arange(120) % 3

    def network(tensor):
        return FakeTensor(np.tanh(tensor.numpy() @ np.ones((6, 4)) * [0.1, 0.2, 0.3, -0.1]))

    loader = [(FakeTensor(X[rows]), FakeTensor(y[rows])) for rows in np.array_split(np.arange(120), 7)]
    model = fg.IncrementalRidgeClassifier(features=network).learn_batches(loader)
    truth = RidgeClassifier(1.0, solver="svd").fit(network(FakeTensor(X)).numpy(), y)
    np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-8)
    assert (model.predict(FakeTensor(X)) == truth.predict(network(FakeTensor(X)).numpy())).all()
    with pytest.raises(InvalidInputError, match=r"batch 0: expected .X, y. or"):
        model.learn_batches([X])


def test_batches_have_weights_and_are_one_task_of_a_call():
    X, Y, weights = data()
    cuts = np.array_split(np.arange(120), 6)
    model = fg.IncrementalRidge(0.3, keep_tasks=True)
    model.learn_batches([(X[rows], Y[rows], weights[rows]) for rows in cuts[:3]])
    model.learn_batches([(X[rows], Y[rows], weights[rows]) for rows in cuts[3:]], task_id="late")
    assert model.task_ids_ == [0, "late"]
    np.testing.assert_allclose(model.coef_, fg.IncrementalRidge(0.3).fit(X, Y, weights).coef_, rtol=1e-11)
    model.unlearn(task_id="late")
    np.testing.assert_allclose(
        model.coef_, fg.IncrementalRidge(0.3).fit(X[:60], Y[:60], weights[:60]).coef_, rtol=1e-11
    )


def test_random_features_come_first_and_are_saved(tmp_path):
    X, Y, _ = data()
    lift = RandomFeatures(30, seed=4)
    model = in_batches(fg.IncrementalRidge(features=lift), X, Y, np.array_split(np.arange(120), 5))
    truth = Ridge(1.0, solver="svd").fit(lift(X), Y)
    np.testing.assert_allclose(model.predict(X), truth.predict(lift(X)), rtol=1e-8)
    model.save(tmp_path / "head.npz")
    np.testing.assert_array_equal(fg.IncrementalRidge.load(tmp_path / "head.npz").predict(X), model.predict(X))


def test_random_features_are_a_step_of_pipelines_and_searches():
    X, _, _ = data()
    y = np.arange(120) % 3
    pipe = make_pipeline(FunctionTransformer(RandomFeatures(30, seed=4)), fg.IncrementalRidgeClassifier())
    search = GridSearchCV(pipe, {"incrementalridgeclassifier__alpha": [1e-2, 1e3]}, cv=3).fit(X, y)
    head = fg.IncrementalRidgeClassifier(**search.best_estimator_[-1].get_params()).set_params(features=pipe[0].func)
    assert (search.predict(X) == head.fit(X, y).predict(X)).all()


def test_rows_on_disk_are_learned_part_by_part(tmp_path, monkeypatch):
    X, _, _ = data()
    y = np.arange(120) % 3
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y.astype(float))
    monkeypatch.setattr("forgetting.estimators.incremental_head.SOURCE_ROWS", 300)
    model = fg.IncrementalRidgeClassifier().learn_source(tmp_path / "X.npy", tmp_path / "y.npy")
    np.testing.assert_allclose(model.coef_, RidgeClassifier(1.0, solver="svd").fit(X, y).coef_, rtol=1e-8)
    assert model.classes_.tolist() == [0, 1, 2]


def test_what_is_kept_does_not_grow_with_the_rows():
    model = fg.IncrementalRidge()
    sizes = set()
    for seed in range(5):
        X, Y, _ = data(n=500, seed=seed)
        state = model.partial_fit(X, Y)._state
        sizes.add(state.factor.nbytes + state.targets.nbytes + state.left.nbytes)
    assert sizes == {8 * (7 * 7 + 7 * 3 + 3)}


def test_a_device_gives_the_same_numbers():
    X, Y, weights = data()
    here, there = (fg.IncrementalRidge(0.5, device=device, keep_tasks=True) for device in (None, "array-api-strict"))
    for model in (here, there):
        in_batches(model, X, Y, np.array_split(np.arange(120), 4), weights)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-11)
    for model in (here, there):
        model.unlearn(X[:30], Y[:30], weights[:30], task_id=0)
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-11)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-11)


def test_heads_of_several_devices_merge_and_sparse_rows_go_to_a_device():
    X, Y, _ = data()
    truth = fg.IncrementalRidge().fit(X, Y)
    for devices in ((None, "array-api-strict"), ("array-api-strict", None)):
        parts = [
            fg.IncrementalRidge(device=device).fit(sp.coo_array(X[rows]), Y[rows])
            for device, rows in zip(devices, np.split(np.arange(120), 2), strict=True)
        ]
        np.testing.assert_allclose(parts[0].merge(parts[1]).coef_, truth.coef_, rtol=1e-11)


def test_sparse_values_of_a_feature_map_are_read_and_checked():
    X, Y, _ = data()
    model = fg.IncrementalRidge(features=sp.coo_array).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), fg.IncrementalRidge().fit(X, Y).predict(X), rtol=1e-10)
    X[3, 2] = np.nan
    with pytest.raises(InvalidInputError, match="row 3, column 2 is nan"):
        fg.IncrementalRidge(features=sp.coo_array).fit(X, Y)


# ---------------------------------------------------------------------------------------------------------------- files


def test_a_saved_head_goes_on_where_it_was(tmp_path):
    X, Y, _ = data()
    y = np.array(["ant", "bee", "cat"])[np.arange(120) % 3]
    for model, targets in ((fg.IncrementalRidge("gcv"), Y), (fg.IncrementalRidgeClassifier(0.2, keep_tasks=True), y)):
        model.fit(X[:60], targets[:60])
        model.save(tmp_path / "head.npz")
        again = type(model).load(tmp_path / "head.npz")
        assert again.get_params() == model.get_params()
        for each in (model, again):
            each.partial_fit(X[60:], targets[60:])
        np.testing.assert_array_equal(again.coef_, model.coef_)
        assert again.task_ids_ == model.task_ids_


def test_a_head_on_a_device_is_saved(tmp_path):
    X, Y, _ = data()
    model = fg.IncrementalRidge(device="array-api-strict", keep_tasks=True).fit(X, Y)
    model.save(tmp_path / "head.npz")
    for device in (None, "array-api-strict"):
        again = fg.IncrementalRidge.load(tmp_path / "head.npz", device=device)
        np.testing.assert_allclose(again.partial_fit(X, Y).coef_, fg.IncrementalRidge(0.5).fit(X, Y).coef_, rtol=1e-10)


@pytest.mark.parametrize("alpha", [1, np.int64(2), np.float32(0.5), np.array(1.0)])
def test_numbers_of_numpy_as_parameters_are_saved(alpha, tmp_path):
    X, Y, _ = data()
    model = fg.IncrementalRidge(alpha, features=np.int64(7)).fit(X, Y)
    model.save(tmp_path / "head.npz")
    np.testing.assert_array_equal(fg.IncrementalRidge.load(tmp_path / "head.npz").predict(X), model.predict(X))


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "head.npz"
    X, Y, _ = data()
    fg.IncrementalRidge().fit(X, Y).save(path)
    with pytest.raises(ProblemFileError, match="holds 'IncrementalRidge', not IncrementalRidgeClassifier"):
        fg.IncrementalRidgeClassifier.load(path)
    arrays = dict(np.load(path))
    name = next(name for name in arrays if arrays[name].shape == (7, 7))
    for broken in (np.full((7, 7), 1.0), np.full((7, 7), np.nan), np.eye(6)):
        np.savez(path, **{**arrays, name: broken})
        with pytest.raises(ProblemFileError, match=r"triangle|shapes"):
            fg.IncrementalRidge.load(path)
    record = str(arrays["record"])
    for good, bad in (
        ('"rows": 120', '"rows": 0'),
        ('"columns": 6', '"columns": 5'),
        ('"features": null', '"features": 9'),
    ):
        assert record.count(good) == 1
        np.savez(path, **{**arrays, "record": np.array(record.replace(good, bad))})
        with pytest.raises(ProblemFileError, match=r"numbers of rows|columns of"):
            fg.IncrementalRidge.load(path)
    for name in (name for name in arrays if arrays[name].dtype.kind == "f"):
        np.savez(path, **{**arrays, name: np.where(arrays[name] == arrays[name].flat[0], 1e300, arrays[name])})
        with pytest.raises(ProblemFileError, match=r"finite|negative"):
            fg.IncrementalRidge.load(path)
    fg.IncrementalRidge(features=np.tanh).fit(X, Y).save(tmp_path / "tanh.npz")
    with pytest.raises(ProblemFileError, match="give features= again"):
        fg.IncrementalRidge.load(tmp_path / "tanh.npz")
    assert fg.IncrementalRidge.load(tmp_path / "tanh.npz", features=np.tanh).n_rows_ == 120


# --------------------------------------------------------------------------------------------------------------- errors


def test_a_call_that_raises_changes_nothing():
    X, Y, _ = data()
    model = fg.IncrementalRidge().fit(X, Y)
    before = model.coef_.copy()
    bad = X.copy()
    bad[3, 2] = np.nan
    calls = [
        ({"X": bad, "y": Y}, "NaN"),
        ({"X": X[:, :4], "y": Y}, "features"),
        ({"X": X, "y": Y[:, 0]}, "3 outputs in columns"),
        ({"X": X, "y": Y, "sample_weight": -np.ones(120)}, "sample_weight.0. is -1"),
        ({"X": X, "y": Y, "task_id": "a"}, "keep_tasks=True"),
        ({"X": X[:5] * 1e200, "y": Y[:5]}, "overflow"),
    ]
    for arguments, words in calls:
        with pytest.raises(ValueError, match=words):
            model.partial_fit(**arguments)
        np.testing.assert_array_equal(model.coef_, before)
        assert model.n_rows_ == 120


def test_a_first_call_that_raises_leaves_an_estimator_that_is_not_fitted():
    X, Y, _ = data()
    model = fg.IncrementalRidge()
    with pytest.raises(InvalidInputError, match="sample_weight"):
        model.partial_fit(X, Y, -np.ones(120))
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_an_interrupted_call_changes_nothing(monkeypatch):
    X, Y, _ = data()
    model = fg.IncrementalRidge().fit(X, Y)
    before = model.coef_.copy()
    step, calls = RidgeState._with_block, []

    def interrupted(self, *arguments, **options):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(self, *arguments, **options)

    monkeypatch.setattr(RidgeState, "_with_block", interrupted)
    monkeypatch.setattr("forgetting.geometry.ridge_state.BLOCK", 10)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(fg.IncrementalRidge.predict(model, X[:2]), model.predict(X[:2]))
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("alpha", [-1.0, "best", np.nan])
def test_a_penalty_that_is_none_is_refused(alpha):
    X, Y, _ = data()
    with pytest.raises(InvalidInputError, match="alpha"):
        fg.IncrementalRidge(alpha).fit(X, Y).coef_  # noqa: B018


def test_leaving_tasks_out_needs_kept_tasks():
    X, Y, _ = data()
    with pytest.raises(NotSupportedError, match="keep_tasks=True"):
        fg.IncrementalRidge("tasks").fit(X, Y).coef_  # noqa: B018
    with pytest.raises(InvalidInputError, match="needs held-out rows"):
        fg.IncrementalRidge().fit(X, Y).path(by="rows")
    assert not hasattr(fg.IncrementalRidge(), "coef_")
