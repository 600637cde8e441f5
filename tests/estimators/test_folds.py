"""Tasks by the name of a column, and their order where rows are sorted by task, shuffled, or in folds."""

import warnings
from datetime import date

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

import forgetting as fg
from forgetting.errors import ChoiceWarning, DataWarning, InvalidInputError


class Frame:
    """As much of a table with named columns as the estimators and scikit-learn ask for."""

    def __init__(self, **columns):
        self.data = {name: np.asarray(column) for name, column in columns.items()}
        self.columns = list(columns)
        self.shape = len(next(iter(self.data.values()))), len(columns)

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, name):
        return Frame(**{one: self.data[one] for one in name}) if isinstance(name, list) else self.data[name]

    def __array__(self, dtype=None, copy=None):
        return np.column_stack(list(self.data.values())).astype(dtype)


def rows(n=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), rng.standard_normal(n), np.repeat(["c", "a", "b"], n // 3)


@pytest.mark.parametrize("library", [None, "pandas", "polars"])
def test_a_column_name_is_a_column_and_no_feature(library):
    X, y, groups = rows()
    columns = {"task": groups, "x": X[:, 0], "y": X[:, 1], "z": X[:, 2]}
    table = Frame(**columns) if library is None else pytest.importorskip(library).DataFrame(columns)
    model = fg.ContinualRegressor().fit(table, y, task_id="task")
    plain = fg.ContinualRegressor().fit(X, y, task_id=groups)
    assert model.task_ids_ == ["c", "a", "b"]
    assert model.n_features_in_ == 3
    np.testing.assert_allclose(model.coef_, plain.coef_)
    np.testing.assert_allclose(model.predict(table), plain.predict(X))  # the column is left out again
    without = table[["x", "y", "z"]]
    np.testing.assert_allclose(model.predict(without), plain.predict(X))
    assert model.score(table, y) == pytest.approx(plain.score(X, y))
    model.partial_fit(without, y, task_id="all of them")
    assert model.task_ids_ == ["c", "a", "b", "all of them"]
    model.partial_fit(table, y, task_id="and again")  # the column is known from before
    assert model.n_steps_ == 5
    other = fg.ContinualRegressor().partial_fit(table, y, task_id="task")
    np.testing.assert_allclose(other.coef_, plain.coef_)


def test_a_column_that_is_not_there_is_named():
    X, y, groups = rows()
    table = Frame(task=groups, x=X[:, 0])
    with pytest.raises(InvalidInputError, match="task_id: X has no column 'tsak'; did you mean 'task'"):
        fg.ContinualRegressor().fit(table, y, task_id="tsak")
    with pytest.raises(ValueError, match="convert"):  # names are no features
        fg.ContinualRegressor().fit(table, y, task_id=groups)
    assert fg.ContinualRegressor().fit(X, y, task_id="task").task_ids_ == ["task"]  # an array has no column names


@pytest.mark.parametrize(
    ("ids", "ordered"),
    [
        ([10, 9, 2], [2, 9, 10]),
        ([1.5, -1.0, 0.0], [-1.0, 0.0, 1.5]),
        (["2", 10, 9], ["2", 9, 10]),
        (["task 10", "task 9", "task 2"], ["task 2", "task 9", "task 10"]),
        (["2024-03", "2023-12", "2024-01"], ["2023-12", "2024-01", "2024-03"]),
        (
            [date(2024, 3, 1), date(2023, 12, 31), date(2024, 1, 1)],
            [date(2023, 12, 31), date(2024, 1, 1), date(2024, 3, 1)],
        ),
    ],
)
def test_shuffled_rows_give_the_same_order_of_numbers_and_dates(ids, ordered):
    X, y, _ = rows()
    groups = np.repeat(np.array(ids, dtype=object), 4)
    assert fg.ContinualRegressor().fit(X, y, task_id=groups).task_ids_ == ids  # that of the rows
    want = fg.ContinualRegressor().fit(X, y, task_id=groups, order=ordered)
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(12)
        model = fg.ContinualRegressor().fit(X[shuffled], y[shuffled], task_id=groups[shuffled])
        assert model.task_ids_ == ordered
        np.testing.assert_allclose(model.coef_, want.coef_, atol=1e-10)


def test_tasks_of_shuffled_rows_that_are_sorted_are_said_to_be():
    X, y, groups = rows()
    numbers = np.array([{"a": 2, "b": 1, "c": 0}[name] for name in groups])
    mixed = np.arange(12) * 5 % 12
    for model in (fg.ContinualRegressor(), fg.ContinualClassifier()):
        for learn in (model.fit, model.partial_fit):
            with pytest.warns(ChoiceWarning, match="tasks are sorted by number, since .* gives another order") as said:
                learn(X[mixed], np.sign(y)[mixed], task_id=numbers[mixed])
            assert said[0].filename == __file__


def test_other_names_of_shuffled_rows_are_learned_as_they_first_appear_with_a_warning():
    X, y, groups = rows()
    shuffled = np.random.default_rng(1).permutation(12)
    first = list(dict.fromkeys(groups[shuffled]))
    for model in (fg.ContinualRegressor(), fg.ContinualClassifier()):
        for learn in (model.fit, model.partial_fit):
            with pytest.warns(DataWarning, match="in order of first appearance, since .* gives another order") as said:
                learn(X[shuffled], np.sign(y)[shuffled], task_id=groups[shuffled])
            assert said[0].filename == __file__
        assert model.task_ids_ == first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[shuffled], np.sign(y)[shuffled], task_id=groups[shuffled], order=["a", "b", "c"])
    weights = [1, 1, 0, 1]  # rows of weight 0 are no rows: those that are left are not mixed
    model = fg.ContinualRegressor().fit(X[:4], y[:4], task_id=["c", "b", "c", "a"], sample_weight=weights)
    assert model.task_ids_ == ["c", "b", "a"]


def test_an_order_may_name_tasks_that_are_not_there():
    X, y, groups = rows()
    model = fg.ContinualRegressor().fit(X[:8], y[:8], task_id=groups[:8], order=["b", "c", "a", "c"])
    assert model.task_ids_ == ["c", "a"]
    assert model.order_.tolist() == [0, 1, 0]
    model.partial_fit(X[8:], y[8:], task_id="b", order=["a", "b"])
    assert model.task_ids_ == ["c", "a", "b"]


def test_cross_validation_with_tasks_a_fold_may_lack():
    X, y, groups = rows()
    order = ["b", "a", "c"]
    model = fg.ContinualRegressor()
    scores = []
    for train, test in KFold(3).split(X):  # each fold lacks one task
        fold = fg.ContinualRegressor().fit(X[train], y[train], task_id=groups[train], order=order)
        assert fold.task_ids_ == [name for name in order if name in groups[train]]
        scores.append(fold.score(X[test], y[test]))
    got = cross_val_score(model, X, y, cv=KFold(3), params={"task_id": groups, "order": order})
    np.testing.assert_allclose(got, scores)


def test_diabetes_needs_its_intercept_as_elsewhere_in_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    assert fg.ContinualRegressor().fit(X, y).score(X, y) == pytest.approx(LinearRegression().fit(X, y).score(X, y))
    assert round(fg.ContinualRegressor().fit(X, y).score(X, y), 2) == 0.52
    assert round(fg.ContinualRegressor(fit_intercept=False).fit(X, y).score(X, y), 2) == -3.39
