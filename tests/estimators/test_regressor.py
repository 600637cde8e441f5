import numpy as np
import pytest
from scipy.sparse import csr_array

import forgetting as fg
from forgetting.errors import InvalidInputError

ORDER = [0, 2, 1, 1, 0, 3, 2]


def plain(*arguments, **options):
    """Without an intercept, so that weights are those of a run."""
    return fg.ContinualRegressor(*arguments, fit_intercept=False, **options)


def several_tasks(seed=0, d=7, rows=(2, 1, 3, 4), outputs=()):
    """Tasks that are solvable one by one, but not together."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((n, d)), rng.standard_normal((n, *outputs))) for n in rows]


def learn(model, tasks, order=ORDER):
    for task in order:
        model.partial_fit(*tasks[task], task_id=task)
    return model


def relabelled(order):
    """Tasks numbered in the order in which they first come, and how many there are."""
    seen = list(dict.fromkeys(order))
    return [seen.index(task) for task in order], seen


@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_steps_and_history_are_those_of_a_run(loss):
    tasks = several_tasks()
    _, seen = relabelled(ORDER)
    problem = fg.RegressionTasks([tasks[m][0] for m in seen], [tasks[m][1] for m in seen], loss=loss)
    order = relabelled(ORDER)[0]
    run = fg.run(problem, fg.orderings.Explicit(order), k=len(ORDER))
    model = plain(loss=loss)
    for step, task in enumerate(ORDER, 1):
        model.partial_fit(*tasks[task], task_id=task)
        np.testing.assert_allclose(model.coef_, run.iterates[step], atol=1e-12)
    assert model.task_ids_ == seen
    assert model.order_.tolist() == order
    assert model.n_steps_ == len(ORDER)
    np.testing.assert_allclose(model.loss_matrix_, run.loss_matrix, atol=1e-12)
    np.testing.assert_allclose(model.forgetting_, run.forgetting, atol=1e-12)


def test_a_step_is_the_pseudoinverse_also_where_the_task_has_no_solution():
    rng = np.random.default_rng(1)
    model, w = plain(), np.zeros(6)
    for n, rank in [(3, 3), (20, 6), (20, 2), (1, 1)]:
        X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, 6))
        y = rng.standard_normal(n)
        w = w + np.linalg.pinv(X, rcond=1e-10) @ (y - X @ w)
        np.testing.assert_allclose(model.partial_fit(X, y).coef_, w, atol=1e-10)


def test_known_forgetting_of_two_lines():
    # lines at sin^2 = 1/k, learned in turns: F(k) = (1/4k)(1 - 1/k)^(k-1)
    k = 8
    angle = np.arcsin(k**-0.5)
    lines = [([[0.0, 1.0]], [0.0]), ([[-np.sin(angle), np.cos(angle)]], [-np.sin(angle)])]
    model = learn(plain(), lines, [0, 1] * (k // 2))
    assert model.forgetting_[-1] == pytest.approx((1 - 1 / k) ** (k - 1) / (4 * k), rel=1e-12)


def test_fit_learns_the_tasks_of_a_column_in_sorted_order_or_as_asked():
    tasks = several_tasks()
    X, y = np.concatenate([X for X, _ in tasks]), np.concatenate([y for _, y in tasks])
    numbers, names = (np.repeat(ids, [2, 1, 3, 4]) for ids in ([4, 1, 3, 2], ["d", "a", "c", "b"]))
    shuffled = np.random.default_rng(3).permutation(10)
    model = plain().fit(X[shuffled], y[shuffled], task_id=numbers[shuffled])
    assert model.task_ids_ == [1, 2, 3, 4]
    apart = learn(plain(), dict(zip("dacb", tasks, strict=True)), "abcd")
    np.testing.assert_allclose(model.coef_, apart.coef_, atol=1e-12)

    model.fit(X, y, task_id=names, order=["c", "a", "c"])
    apart = learn(plain(), dict(zip("dacb", tasks, strict=True)), ["c", "a", "c"])
    assert model.task_ids_ == ["c", "a"]
    assert model.order_.tolist() == [0, 1, 0]
    np.testing.assert_allclose(model.loss_matrix_, apart.loss_matrix_, atol=1e-12)
    model.partial_fit(X, y, task_id=names, order=["b", "c"])
    assert model.task_ids_ == ["c", "a", "b"]
    assert model.order_.tolist() == [0, 1, 0, 2, 0]


def test_outputs_are_learned_apart_and_their_losses_added():
    tasks = several_tasks(outputs=(3,))
    model = learn(fg.ContinualRegressor(fit_intercept=True), tasks)
    apart = [learn(fg.ContinualRegressor(fit_intercept=True), [(X, Y[:, j]) for X, Y in tasks]) for j in range(3)]
    np.testing.assert_allclose(model.coef_, [one.coef_ for one in apart], atol=1e-12)
    np.testing.assert_allclose(model.intercept_, [one.intercept_ for one in apart], atol=1e-12)
    np.testing.assert_allclose(model.forgetting_, sum(one.forgetting_ for one in apart), atol=1e-12)
    X = tasks[0][0]
    np.testing.assert_allclose(model.predict(X), np.stack([one.predict(X) for one in apart], axis=1), atol=1e-12)


def test_the_intercept_is_a_constant_feature():
    tasks = several_tasks()
    wide = [(np.column_stack([X, np.ones(len(X))]), y) for X, y in tasks]
    model = learn(fg.ContinualRegressor(fit_intercept=True), tasks)
    apart = learn(plain(), wide)
    np.testing.assert_array_equal([*model.coef_, model.intercept_], apart.coef_)
    np.testing.assert_array_equal(model.loss_matrix_, apart.loss_matrix_)
    np.testing.assert_allclose(model.predict(tasks[1][0]), apart.predict(wide[1][0]), atol=1e-14)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_sparse_rows_give_the_same(fit_intercept):
    tasks = several_tasks()
    dense = learn(fg.ContinualRegressor(fit_intercept), tasks)
    sparse = learn(fg.ContinualRegressor(fit_intercept), [(csr_array(X), y) for X, y in tasks])
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-12)
    np.testing.assert_allclose(sparse.loss_matrix_, dense.loss_matrix_, atol=1e-12)
    np.testing.assert_allclose(sparse.predict(csr_array(tasks[0][0])), dense.predict(tasks[0][0]), atol=1e-12)


@pytest.mark.parametrize("loss", ["sum", "mean"])
@pytest.mark.parametrize("outputs", [(), (2,)])
def test_long_tasks_are_kept_as_triangles_with_the_same_losses(loss, outputs):
    tasks = several_tasks(d=5, rows=(200, 40, 8), outputs=outputs)
    model = learn(plain(loss=loss), tasks, [0, 1, 2])
    for X, y in tasks:
        share = 1 if loss == "sum" else 1 / len(y)
        want = [0.5 * share * np.sum((X @ w.reshape(*outputs, 5).T - y) ** 2) for w in model._history.iterates]
        np.testing.assert_allclose(model.loss_matrix_[:, len(y) == np.array([200, 40, 8])][:, 0], want, rtol=1e-11)
    assert max(len(task.targets) for task in model._history.tasks) <= 5 + 2


def test_the_history_may_be_read_at_any_time_and_does_not_share_memory():
    tasks = several_tasks()
    once = learn(plain(), tasks)
    often, table = plain(), None
    for task in ORDER:
        X, y = (part.copy() for part in tasks[task])
        often.partial_fit(X, y, task_id=task)
        X[:], y[:] = 0, 7
        table = often.loss_matrix_
        table[:] = -1
    np.testing.assert_allclose(often.loss_matrix_, once.loss_matrix_, atol=1e-13)
    assert (table == -1).all()


def test_without_ids_every_call_is_a_task_and_forgetting_is_the_same():
    tasks = several_tasks()
    named, nameless = learn(plain(), tasks), plain()
    for task in ORDER:
        nameless.partial_fit(*tasks[task])
    assert nameless.task_ids_ == list(range(len(ORDER)))
    np.testing.assert_allclose(nameless.forgetting_, named.forgetting_, atol=1e-13)
    mixed = plain().partial_fit(*tasks[0], task_id=1).partial_fit(*tasks[1]).partial_fit(*tasks[2])
    assert mixed.task_ids_ == [1, 2, 3]


def test_a_call_that_raises_changes_nothing():
    tasks = several_tasks()
    model = learn(plain(), tasks, [0, 1])
    before = model.coef_.copy(), model.loss_matrix_
    with pytest.raises(InvalidInputError, match="task_id 1 came before with other data"):
        model.partial_fit(*tasks[2], task_id=1)
    with pytest.raises(InvalidInputError, match=r"expected one value, or one for each of 3 rows; got \(2,\)"):
        model.partial_fit(*tasks[2], task_id=[1, 2])
    with pytest.raises(InvalidInputError, match="order names none of the tasks of this call: 'x'; its tasks are a, b"):
        model.partial_fit(*tasks[2], task_id=["a", "b", "b"], order=["x", "y"])
    with pytest.raises(InvalidInputError, match="order must be a list, got 'ab'"):
        model.partial_fit(*tasks[2], task_id=["a", "b", "b"], order="ab")
    with pytest.raises(InvalidInputError, match=r"task_id: row 1 belongs to no group \(nan\)"):
        model.partial_fit(*tasks[2], task_id=[1.0, np.nan, np.nan])
    with pytest.raises(InvalidInputError, match=r"a task id is a number or a name, got {'a'}"):
        model.partial_fit(*tasks[2], task_id={"a"})
    with pytest.raises(InvalidInputError, match=r"task_id: row 1 belongs to no group \(None\)"):
        model.partial_fit(*tasks[2], task_id=np.array(["a", None, "b"], dtype=object))
    with pytest.raises(InvalidInputError, match="order is empty"):
        model.partial_fit(*tasks[2], order=[])
    with pytest.raises(InvalidInputError, match=r"y has shape \(3, 1\), but the tasks so far had one output"):
        model.partial_fit(tasks[2][0], tasks[2][1][:, None])
    with pytest.raises(InvalidInputError, match="fit_intercept was changed between two tasks"):
        model.set_params(fit_intercept=True).partial_fit(*tasks[2])
    with pytest.raises(InvalidInputError, match="loss must be 'sum' or 'mean', got 'max'"):
        model.set_params(fit_intercept=False, loss="max").partial_fit(*tasks[2])
    with pytest.raises(ValueError, match="features"):
        model.set_params(loss="sum").partial_fit(tasks[2][0][:, :3], tasks[2][1])
    assert model.n_steps_ == 2
    np.testing.assert_array_equal(model.coef_, before[0])
    np.testing.assert_array_equal(model.loss_matrix_, before[1])
