"""The scheme of an estimator: the steps are those of a run, and a grid search reaches its parameters."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import forgetting as fg
from forgetting.errors import InvalidInputError, NotRealizableError

LINEAR = [
    fg.schemes.Ridge(0.5),
    fg.schemes.SGD(0.7),
    fg.schemes.SGD(0.02, objective="loss"),
    fg.schemes.FiniteSteps(3, 0.02),
    fg.schemes.NLMS(0.5),
    fg.schemes.GradientDescent(),
]


def several_tasks(T=4, n=3, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X, groups = rng.standard_normal((T * n, d)), np.repeat(np.arange(T), n)
    return X, X @ rng.standard_normal(d), groups


@pytest.mark.parametrize("scheme", LINEAR, ids=str)
@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_steps_and_losses_are_those_of_a_run_with_the_scheme(scheme, loss):
    X, y, groups = several_tasks()
    tasks = fg.RegressionTasks.from_arrays(X, y, groups, loss=loss)
    run = fg.run(tasks, fg.orderings.Cyclic(), k=4, scheme=scheme)
    model = fg.ContinualRegressor(fit_intercept=False, scheme=scheme, loss=loss).fit(X, y, task_id=groups)
    np.testing.assert_allclose(model.coef_, run.iterates[-1], atol=1e-10)
    np.testing.assert_allclose(model.loss_matrix_, run.loss_matrix, atol=1e-10)
    stream = fg.ContinualRegressor(fit_intercept=False, scheme=scheme, loss=loss)
    for task in range(4):
        stream.partial_fit(X[groups == task], y[groups == task], task_id=task)
    np.testing.assert_allclose(stream.coef_, model.coef_, atol=1e-10)


def test_names_of_schemes_are_those_of_the_registry():
    X, y, groups = several_tasks()
    for name in ("kaczmarz", "Kaczmarz", "gradient-descent", "gradient_descent"):
        model = fg.ContinualRegressor(scheme=name).fit(X, y, task_id=groups)
        np.testing.assert_allclose(model.coef_, fg.ContinualRegressor().fit(X, y, task_id=groups).coef_, atol=1e-9)
    schemes = "ridge lam=0.5", fg.schemes.Ridge(0.5)
    worded, given = (fg.ContinualRegressor(scheme=scheme).fit(X, y, task_id=groups) for scheme in schemes)
    np.testing.assert_array_equal(worded.coef_, given.coef_)
    for model in (fg.ContinualRegressor(), fg.ContinualClassifier()):
        with pytest.raises(InvalidInputError, match="no scheme 'kacmarz'; did you mean 'kaczmarz'"):
            clone(model).set_params(scheme="kacmarz").fit(X, groups % 2)
        with pytest.raises(InvalidInputError, match=r"scheme ridge needs lam=\.\.\."):
            clone(model).set_params(scheme="ridge").fit(X, groups % 2)
        with pytest.raises(InvalidInputError, match=r"scheme: expected a scheme such as .*ridge lam=0.1.*, got 3"):
            clone(model).set_params(scheme=3).fit(X, groups % 2)


def test_a_grid_search_over_schemes_and_their_parameters():
    X, y, groups = several_tasks(T=6, n=5)
    y = y + 0.5 * np.random.default_rng(1).standard_normal(len(y))
    schemes = [fg.schemes.Ridge(0.1), fg.schemes.Ridge(10.0), None]
    search = GridSearchCV(fg.ContinualRegressor(), {"scheme": schemes}, cv=3).fit(X, y, task_id=groups)
    assert search.best_params_["scheme"] in schemes
    grid = {"scheme__lam": [0.01, 1.0, 100.0]}
    search = GridSearchCV(fg.ContinualRegressor(scheme=schemes[0]), grid, cv=3).fit(X, y, task_id=groups)
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores.round(6))) == 3
    best = search.best_params_["scheme__lam"]
    assert search.best_estimator_.scheme == fg.schemes.Ridge(best)
    pipe = make_pipeline(StandardScaler(), fg.ContinualRegressor(scheme=schemes[0]))
    assert pipe.set_params(continualregressor__scheme__lam=2.0)[-1].scheme == fg.schemes.Ridge(2.0)


def test_the_parameters_of_a_scheme_are_those_of_the_estimator():
    scheme = fg.schemes.SGD(0.5, objective="loss")
    model = fg.ContinualRegressor(scheme=scheme)
    inner = {name: value for name, value in model.get_params().items() if name.startswith("scheme__")}
    assert inner == {"scheme__step_size": 0.5, "scheme__objective": "loss"}
    assert "scheme__step_size" not in model.get_params(deep=False)
    other = clone(model).set_params(scheme__step_size=0.25)
    assert other.scheme == fg.schemes.SGD(0.25, objective="loss")
    assert model.scheme is scheme  # a copy takes its place
    assert clone(model).set_params(scheme=fg.schemes.Ridge(1.0), scheme__lam=2.0).scheme == fg.schemes.Ridge(2.0)
    assert fg.ContinualRegressor(scheme="sgd").set_params(scheme__step_size=0.5).scheme == fg.schemes.SGD(0.5)
    with pytest.raises(InvalidInputError, match=r"scheme__lam: SGD\(.*\) has no parameter 'lam'; there are step_size"):
        model.set_params(scheme__lam=1.0)
    with pytest.raises(InvalidInputError, match="scheme__lam is a parameter of a scheme, but scheme is None"):
        fg.ContinualRegressor().set_params(scheme__lam=1.0)
    with pytest.raises(InvalidInputError, match="lam must be greater than 0"):
        fg.ContinualRegressor(scheme=fg.schemes.Ridge(1.0)).set_params(scheme__lam=-1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'lam'"):
        model.set_params(lam=1.0)


def test_a_scheme_for_classification_takes_the_place_of_lambda():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 20)), np.arange(8) % 2
    weak = fg.ContinualClassifier(scheme=fg.schemes.WeaklyRegularized(-3.0)).fit(X, y)
    np.testing.assert_allclose(weak.coef_, fg.ContinualClassifier(-3.0).fit(X, y).coef_)
    limit = fg.ContinualClassifier(scheme="pocs").fit(X, y)
    np.testing.assert_allclose(limit.coef_, fg.ContinualClassifier("limit").fit(X, y).coef_)
    with pytest.raises(InvalidInputError, match="scheme was changed between two tasks"):
        limit.set_params(scheme=None).partial_fit(X, y)
    with pytest.raises(ValueError, match="is a scheme for regression tasks"):
        fg.ContinualClassifier(scheme=fg.schemes.Ridge(1.0)).fit(X, y)


@pytest.mark.parametrize("scheme", ["ridge lam=increasing", fg.schemes.Decay(0.9, "ridge lam=fixed")])
def test_strengths_that_depend_on_the_number_of_all_steps_cannot_be_continued(scheme):
    X, y, groups = several_tasks(T=2)
    model = fg.ContinualRegressor(scheme=scheme).fit(X, y, task_id=groups)
    with pytest.raises(InvalidInputError, match=r"depends on the number of all steps, .* one call of `fit`"):
        model.partial_fit(X, y)


def test_what_the_weights_do_not_hold_cannot_be_continued():
    X, y, groups = several_tasks(T=2)
    model = fg.ContinualRegressor(scheme=fg.schemes.RecursiveLeastSquares()).fit(X, y, task_id=groups)
    assert model.forgetting_.max() < 1e-20
    with pytest.raises(
        InvalidInputError, match=r"remembers more of earlier tasks than the weights.* one call of `fit`"
    ):
        model.partial_fit(X, y)
    with pytest.raises(NotRealizableError):
        model.fit(np.ones((2, 1)), [0.0, 1.0], task_id=[0, 1])

    @dataclass(frozen=True)
    class Momentum(fg.schemes.Scheme):
        def start(self, problem, w0, rng):
            return [w0]

        def learn(self, problem, task, w, memory):
            last, memory[0] = memory[0], w
            return fg.schemes.Learned(problem.project(task, w) + 0.1 * (w - last))

    assert Momentum().remembers
    told = {type(scheme).__name__ for scheme in (*LINEAR, fg.schemes.POCS()) if scheme.remembers}
    assert told == set()


def test_schemes_that_draw_rows_go_on_with_new_draws():
    X, y, _ = several_tasks(T=1, n=6)
    scheme = fg.schemes.GradientDescent(batch_size=1, max_steps=5, tol=1e-13)
    with pytest.warns(ConvergenceWarning, match="output 0: .*stopped after 5"):
        model = fg.ContinualRegressor(scheme=scheme).fit(X, y)
    again = fg.ContinualRegressor(scheme=scheme)
    with pytest.warns(ConvergenceWarning):
        np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)
    before = model.coef_.copy()
    start = np.append(before, model.intercept_)
    wide = fg.RegressionTasks([np.column_stack([X, np.ones(6)])], [y])
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X, y)
    want = fg.run(wide, fg.orderings.Cyclic(), k=1, scheme=scheme, seed=1, w0=start).iterates[-1]
    np.testing.assert_allclose([*model.coef_, model.intercept_], want)


def test_divergence_is_said_and_overflow_refused():
    X, y, groups = several_tasks()
    growing = fg.ContinualRegressor(scheme=fg.schemes.SGD(2.5))
    with pytest.warns(ConvergenceWarning, match=r"output 0: this scheme diverges: .* by -1.5") as caught:
        growing.fit(X, y, task_id=groups)
    assert caught[0].filename == __file__
    with (
        pytest.warns(ConvergenceWarning, match="diverges"),
        pytest.raises(InvalidInputError, match=r"SGD\(.*\) diverged to values that are not finite; use a smaller step"),
    ):
        growing.fit(X, y, task_id=groups, order=[0, 1, 2, 3] * 1000)
    assert not hasattr(growing, "coef_")
