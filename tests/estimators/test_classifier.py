import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSeparableError
from forgetting.sets.in_turn import InTurn

ORDER = [0, 2, 1, 1, 0, 2]
SETTINGS = [("limit", fg.schemes.POCS()), (-10.0, fg.schemes.WeaklyRegularized(-10.0))]


def plain(*arguments, **options):
    """Without an intercept, so that weights are those of a run."""
    return fg.ContinualClassifier(*arguments, fit_intercept=False, **options)


def labelled_tasks(classes, separable=True, seed=0, T=3, n=12, d=6):
    rng = np.random.default_rng(seed)
    W = rng.standard_normal((classes, d + 20))
    tasks = []
    for _ in range(T):
        X = rng.standard_normal((n, d + 20))
        y = np.argmax(X @ W.T, axis=1) if separable else rng.integers(classes, size=n)
        tasks.append((X if separable else X[:, :d], y))
    return tasks


def learn(model, tasks, order=ORDER):
    classes = np.unique(np.concatenate([y for _, y in tasks]))
    for task in order:
        model.partial_fit(*tasks[task], classes=classes, task_id=task)
    return model


@pytest.mark.parametrize(("log_lambda", "scheme"), SETTINGS)
def test_steps_and_history_are_those_of_a_run(log_lambda, scheme):
    tasks = labelled_tasks(2)
    problem = fg.ClassificationTasks(*zip(*[tasks[m] for m in (0, 2, 1)], strict=True))
    run = fg.run(problem, fg.orderings.Explicit([0, 1, 2, 2, 0, 1]), k=len(ORDER), scheme=scheme)
    model = plain(log_lambda)
    for step, task in enumerate(ORDER, 1):
        model.partial_fit(*tasks[task], task_id=task)
        np.testing.assert_allclose(model.coef_[0], run.iterates[step], atol=1e-8)
    np.testing.assert_allclose(model.loss_matrix_, run.loss_matrix, atol=1e-8)
    np.testing.assert_allclose(model.forgetting_, run.forgetting, atol=1e-8)


@pytest.mark.parametrize(("log_lambda", "scheme"), SETTINGS)
def test_more_classes_are_learned_one_versus_rest(log_lambda, scheme):
    tasks = labelled_tasks(4)
    X, y = np.concatenate([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])
    groups = np.repeat([0, 1, 2], 12)
    runs = [
        fg.run(problem, fg.orderings.Explicit(ORDER), k=len(ORDER), scheme=scheme)
        for problem in fg.one_versus_rest(X, y, groups).values()
    ]
    model = plain(log_lambda).fit(X, y, task_id=groups, order=ORDER)
    assert model.task_ids_ == [0, 2, 1]
    np.testing.assert_allclose(model.coef_, [run.iterates[-1] for run in runs], atol=1e-10)
    np.testing.assert_allclose(model.forgetting_, sum(run.forgetting for run in runs), atol=1e-10)
    np.testing.assert_allclose(model.loss_matrix_, sum(run.loss_matrix for run in runs)[:, [0, 2, 1]], atol=1e-10)
    assert model.decision_function(X).shape == (36, 4)
    assert (model.predict(X) == model.decision_function(X).argmax(axis=1)).all()
    apart = learn(plain(log_lambda), tasks)
    np.testing.assert_allclose(apart.coef_, model.coef_, atol=1e-7)


def test_the_limit_on_one_task_is_the_hard_margin_machine():
    X, y = np.concatenate([X for X, _ in labelled_tasks(2)]), np.concatenate([y for _, y in labelled_tasks(2)])
    machine = LinearSVC(C=1e5, loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6).fit(X, y)
    np.testing.assert_allclose(plain("limit").fit(X, y).coef_, machine.coef_, atol=1e-5)


def test_a_finite_lambda_minimises_what_it_says_also_without_separability():
    (X, y), (X2, y2), _ = labelled_tasks(2, separable=False, n=30)
    model = plain(-3.0).fit(X, y)
    start = model.coef_[0].copy()

    def objective(w, X=X2, sign=2 * y2 - 1):
        return np.sum(np.exp(-sign * (X @ w))) + np.exp(-3.0) / 2 * np.sum((w - start) ** 2)

    best = minimize(objective, start, method="BFGS", options={"gtol": 1e-7}).x
    np.testing.assert_allclose(model.partial_fit(X2, y2).coef_[0], best, atol=1e-5)


def test_the_limit_refuses_what_is_not_separable_and_the_default_learns_it():
    tasks = labelled_tasks(2, separable=False, n=40)
    model = plain("limit").partial_fit(np.eye(6)[:2], [0, 1], task_id="easy")
    before = model.coef_.copy()
    with pytest.raises(NotSeparableError, match=r"task id 'hard', class 1 against.*finite log_lambda") as info:
        model.partial_fit(*tasks[0], task_id="hard")
    weights, signs = info.value.certificate, 2 * tasks[0][1] - 1
    np.testing.assert_allclose((weights * signs) @ tasks[0][0], 0, atol=1e-9)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.task_ids_ == ["easy"]
    model = learn(plain(), tasks)
    assert np.isfinite(model.coef_).all()
    assert (model.accuracy_matrix_[1:][np.arange(6), model.order_] > 0.5).all()


def test_a_smaller_lambda_is_nearer_to_the_limit():
    tasks = labelled_tasks(3)
    limit = learn(plain("limit"), tasks)
    gaps = [np.abs(learn(plain(-size), tasks).coef_ / size - limit.coef_).max() for size in (1e2, 1e3, 1e4)]
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < 0.02 * np.abs(limit.coef_).max()


@pytest.mark.parametrize("log_lambda", [-10.0, "limit"])
def test_a_task_may_hold_one_class_or_one_row(log_lambda):
    model = plain(log_lambda).partial_fit([[2.0, 0.0]], ["b"], classes=["a", "b", "c"])
    assert model.predict([[1.0, 0.0]]) == ["b"]
    model.partial_fit([[0.0, 1.0], [0.0, 2.0]], ["a", "a"]).partial_fit([[-1.0, -1.0]], ["c"])
    assert model.predict([[0.0, 3.0], [-1.0, -1.0]]).tolist() == ["a", "c"]
    assert model.loss_matrix_.shape == (4, 3)
    problem = fg.ClassificationTasks([[[2.0, 0.0]], [[0.0, 1.0], [0.0, 2.0]], [[-1.0, -1.0]]], [[1], [-1, -1], [-1]])
    scheme = dict(SETTINGS)[log_lambda]
    run = fg.run(problem, fg.orderings.Cyclic(), k=3, scheme=scheme)
    np.testing.assert_allclose(model.coef_[1], run.iterates[-1], atol=1e-10)


def test_accuracies_are_those_of_predict_after_each_task():
    tasks = labelled_tasks(3, separable=False)
    model, rows = fg.ContinualClassifier(fit_intercept=True), []
    for task in ORDER:
        model.partial_fit(*tasks[task], classes=[0, 1, 2], task_id=task)
        rows.append([model.score(*tasks[m]) for m in (0, 2, 1)])
    np.testing.assert_allclose(model.accuracy_matrix_[1:], rows)
    lost = fg.metrics.forgetting(model.accuracy_matrix_[1:], model.order_)
    assert lost.shape == (3,)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_rows_give_the_same(fit_intercept):
    tasks = labelled_tasks(3)
    dense = learn(fg.ContinualClassifier(fit_intercept=fit_intercept), tasks)
    sparse = learn(fg.ContinualClassifier(fit_intercept=fit_intercept), [(csr_array(X), y) for X, y in tasks])
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
    np.testing.assert_allclose(sparse.accuracy_matrix_, dense.accuracy_matrix_)
    assert (sparse.predict(csr_array(tasks[0][0])) == dense.predict(tasks[0][0])).all()


def test_the_intercept_is_a_constant_feature():
    tasks = labelled_tasks(3)
    wide = [(np.column_stack([X, np.ones(len(X))]), y) for X, y in tasks]
    model = learn(fg.ContinualClassifier("limit", fit_intercept=True), tasks)
    np.testing.assert_array_equal(np.column_stack([model.coef_, model.intercept_]), learn(plain("limit"), wide).coef_)


def test_digits_two_classes_at_a_time():
    X, y = load_digits(return_X_y=True)
    rows = np.flatnonzero(np.arange(len(y)) % 4 == 0)
    X, y = X[rows] / 16, y[rows]
    model = plain().fit(X, y, task_id=y // 2)
    table = model.accuracy_matrix_[1:]
    assert (np.diag(table) > 0.95).all()
    assert table[-1, :-1].mean() < np.diag(table)[:-1].mean() - 0.2  # earlier digits are forgotten
    assert model.forgetting_[-1] > 0
    twice = plain().fit(X, y, task_id=y // 2, order=[0, 1, 2, 3, 4] * 3)
    assert twice.loss_matrix_.shape == (16, 5)


def test_bad_labels_and_settings_are_named():
    X = np.eye(3)
    with pytest.raises(InvalidInputError, match=r"one class only, 1;.*classes="):
        plain().partial_fit(X, [1, 1, 1])
    model = plain().partial_fit(X, [1, 2, 1])
    with pytest.raises(InvalidInputError, match=r"y\[2\] is .*3.*, a class that is not among \[1, 2\]"):
        model.partial_fit(X, [1, 2, 3])
    with pytest.raises(InvalidInputError, match=r"classes \[1, 3\] differ from those of the first call, \[1, 2\]"):
        model.partial_fit(X, [1, 1, 1], classes=[1, 3])
    with pytest.raises(InvalidInputError, match="log_lambda must be a number or 'limit', got 'none'"):
        plain("none").fit(X, [1, 2, 1])
    with pytest.raises(InvalidInputError, match="log_lambda must be at most 0"):
        plain(1.0).fit(X, [1, 2, 1])
    with pytest.raises(ValueError, match="continuous"):
        plain().fit(X, [0.5, 1.5, 2.5])


def test_a_task_given_up_is_reported():
    with pytest.warns(ConvergenceWarning, match=r"class 1 against the others: .*raise max_steps"):
        plain(max_iter=1).fit(*labelled_tasks(2, separable=False, n=40)[0])


def test_ctrl_c_leaves_the_model_as_it_was(monkeypatch):
    tasks = labelled_tasks(3)
    model = learn(plain("limit"), tasks, [0])
    before, calls = model.coef_.copy(), []

    def interrupted(*args):
        calls.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr(InTurn, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(*tasks[1])
    assert len(calls) == 1
    assert model.n_steps_ == 1
    np.testing.assert_array_equal(model.coef_, before)
