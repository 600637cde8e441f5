"""What both estimators promise: `fit` starts anew, parameters, pipelines, memory, streams, the page of the docs."""

import doctest
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import forgetting as fg
from forgetting.errors import InvalidInputError

PAGE = Path(__file__).parents[2] / "docs" / "estimators.md"
MODELS = [
    fg.ContinualRegressor(),
    fg.ContinualRegressor(fit_intercept=False, scheme=fg.schemes.Ridge(1e-3)),
    fg.ContinualClassifier(fit_intercept=False),
    fg.ContinualClassifier("limit"),
]
both = pytest.mark.parametrize("model", MODELS, ids=repr)


def data(seed, n=8, d=12, classes=3):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.arange(n) % classes


def public(model):
    names = ("coef_", "intercept_", "n_steps_", "n_features_in_", "order_", "loss_matrix_", "forgetting_", "task_ids_")
    return {name: getattr(model, name) for name in names} | (
        {"classes_": model.classes_, "n_iter_": model.n_iter_} if hasattr(model, "classes_") else {}
    )


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@both
def test_fit_starts_anew(model):
    X, y = data(0)
    want = public(clone(model).fit(X, y))
    used = clone(model)
    for seed in range(1, 4):
        used.partial_fit(*data(seed))
    assert_same(public(used.fit(X, y)), want)
    assert_same(public(used.fit(X, y)), want)
    assert_same(public(clone(used).fit(X, y)), want)
    # another width, other labels
    used.fit(*data(5, d=20, classes=2))
    assert_same(public(used), public(clone(model).fit(*data(5, d=20, classes=2))))


@both
def test_a_fit_that_fails_leaves_nothing_of_before(model):
    used = clone(model).fit(*data(0))
    with pytest.raises(ValueError):
        used.fit([[np.nan]], [0])
    assert not hasattr(used, "coef_")
    assert not hasattr(used, "forgetting_")


@both
def test_fit_is_a_first_partial_fit(model):
    X, y = data(0)
    assert_same(public(clone(model).fit(X, y)), public(clone(model).partial_fit(X, y)))
    assert clone(model).fit(X, y, task_id="a").partial_fit(*data(1)).partial_fit(X, y, task_id="a").order_.tolist() == [
        0,
        1,
        0,
    ]


@both
def test_parameters_are_got_set_and_cloned(model):
    params = model.get_params()
    copy = clone(model.__class__().set_params(**params))
    assert copy.get_params() == params
    assert not hasattr(copy, "coef_")
    assert repr(copy) == repr(model)


@both
def test_a_pickled_model_goes_on_where_it_was(model):
    model = clone(model).fit(*data(0))
    copy = pickle.loads(pickle.dumps(model))
    assert_same(public(copy.partial_fit(*data(1))), public(model.partial_fit(*data(1))))


@both
def test_without_history_nothing_of_the_past_is_stored(model):
    model, lean = clone(model), clone(model).set_params(keep_history=False)
    sizes = []
    for seed in range(6):
        model.partial_fit(*data(seed))
        sizes.append(len(pickle.dumps(lean.partial_fit(*data(seed)))))
    np.testing.assert_allclose(lean.coef_, model.coef_, atol=1e-12)
    assert max(sizes) - min(sizes) < 50
    with pytest.raises(AttributeError, match="no history was kept; fit anew with keep_history=True"):
        lean.forgetting_  # noqa: B018
    lean.set_params(keep_history=True).partial_fit(*data(9))
    assert not hasattr(lean, "loss_matrix_")  # a history with holes would mislead
    assert lean.fit(*data(9)).loss_matrix_.shape == (2, 1)


@both
@pytest.mark.parametrize("features", [PolynomialFeatures(2), RBFSampler(n_components=60, random_state=0)], ids=repr)
def test_pipelines_with_feature_maps(model, features):
    X, y = data(0, n=12, d=4)
    groups = np.repeat(["a", "b", "c"], 4)
    pipe = make_pipeline(StandardScaler(), clone(features), clone(model))
    name = pipe.steps[-1][0]
    pipe.fit(X, y, **{f"{name}__task_id": groups})
    lifted = clone(features).fit_transform(StandardScaler().fit_transform(X))
    alone = clone(model).fit(lifted, y, task_id=groups)
    assert_same(public(pipe[-1]), public(alone))
    np.testing.assert_array_equal(pipe.predict(X), alone.predict(lifted))
    assert pipe[-1].loss_matrix_[-1, 2] < 0.6  # the last task was learned
    pipe[-1].partial_fit(pipe[:-1].transform(X[:4]), y[:4], task_id="a")
    assert pipe[-1].order_.tolist() == [0, 1, 2, 0]


def test_grid_search_over_lambda():
    X, y = data(0, n=30)
    search = GridSearchCV(fg.ContinualClassifier(), {"log_lambda": [-1.0, -10.0]}, cv=3).fit(X, y)
    assert search.best_params_["log_lambda"] in (-1.0, -10.0)


def test_scikit_learn_is_imported_only_when_an_estimator_is_asked_for():
    code = (
        "import sys, forgetting as fg; assert 'sklearn' not in sys.modules\n"
        "names = {'ContinualRegressor', 'ContinualClassifier'}\n"
        "assert names <= set(dir(fg)) and names <= set(fg.__all__) and 'sklearn' not in sys.modules\n"
        "fg.ContinualRegressor(); assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_river_learns_row_by_row():
    compat = pytest.importorskip("river.compat")
    rng = np.random.default_rng(0)
    rows, w = rng.standard_normal((40, 3)), np.array([1.0, -2.0, 0.5])
    stream = [(dict(zip("abc", row.tolist(), strict=True)), float(row @ w)) for row in rows]
    model = compat.convert_sklearn_to_river(fg.ContinualRegressor(keep_history=False))
    for x, y in stream:
        model.learn_one(x, y)
    direct = fg.ContinualRegressor()
    for row in rows:
        direct.partial_fit([row], [row @ w])
    np.testing.assert_allclose(model.estimator.coef_, direct.coef_, atol=1e-14)
    problem = fg.RegressionTasks([row[None] for row in rows], [[row @ w] for row in rows])
    run = fg.run(problem, fg.orderings.Cyclic(), k=40, scheme=fg.schemes.NLMS(1.0))
    np.testing.assert_allclose(direct.coef_, run.iterates[-1], atol=1e-12)
    assert model.predict_one(stream[0][0]) == pytest.approx(stream[0][1], abs=1e-3)

    model = compat.convert_sklearn_to_river(fg.ContinualClassifier(), classes=["minus", "plus"])
    for x, y in stream:
        model.learn_one(x, "plus" if y > 0 else "minus")
    right = [model.predict_one(x) == ("plus" if y > 0 else "minus") for x, y in stream]
    assert np.mean(right) > 0.8
    assert model.estimator.n_steps_ == 40


def test_the_page_of_the_docs_prints_what_it_says():
    parser, runner, names = doctest.DocTestParser(), doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE), {}
    for part in PAGE.read_text().split("\n## "):
        if "river" in part and importlib.util.find_spec("river") is None:
            continue
        title = part.splitlines()[0]
        test = parser.get_doctest(part.replace("```", ""), names, title, str(PAGE), 0)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries >= 15


def test_what_sets_the_scale_of_a_history_may_not_change_within_it():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 8)), rng.standard_normal(6)
    model = fg.ContinualRegressor().partial_fit(X, y).set_params(loss="mean")
    with pytest.raises(InvalidInputError, match="loss was changed between two tasks; `fit` starts anew"):
        model.partial_fit(X, y)
    assert model.fit(X, y).partial_fit(X, y).n_steps_ == 2
    classifier = fg.ContinualClassifier().partial_fit(X, y > 0).set_params(log_lambda="limit")
    with pytest.raises(InvalidInputError, match="log_lambda was changed between two tasks"):
        classifier.partial_fit(X, y > 0)
