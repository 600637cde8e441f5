"""Expectations where no w solves all tasks, with several outputs, label noise and held-out data: against enumeration.

The reference works on the data, knows nothing of subspaces or moments, enumerates all orders, and takes the expectation
over noise as the mean over all signs of the noise, which is exact for quadratic functions.
"""

import itertools

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotRealizableError, NotSupportedError
from forgetting.schemes import SGD, FiniteSteps, Kaczmarz, Ridge

TRAINING = ("loss", "forgetting", "regret", "seen_loss", "next_loss", "task_losses")
HELD_OUT = ("test_loss", "test_forgetting", "test_losses")
SCHEMES = {
    Kaczmarz(): lambda X: np.linalg.pinv(X, rcond=1e-12),
    SGD(0.6): lambda X: 0.6 * np.linalg.pinv(X, rcond=1e-12),
    SGD(1.4): lambda X: 1.4 * np.linalg.pinv(X, rcond=1e-12),
    SGD(0.1, objective="loss"): lambda X: 0.1 * X.T,
    Ridge(0.7): lambda X: X.T @ np.linalg.inv(X @ X.T + 0.7 * np.eye(len(X))),
    FiniteSteps(2, 0.1): lambda X: 0.2 * X.T - 0.01 * X.T @ X @ X.T,
}


def orders_of(ordering, p, k):
    """All orders of k tasks, one more if there is one, and their probabilities."""
    T = len(p)
    if ordering == "with replacement":
        return [(order, np.prod(p[list(order[:k])])) for order in itertools.product(range(T), repeat=k)]
    shuffles = list(itertools.permutations(range(T)))
    if ordering == "without replacement":
        return [(order, 1 / len(shuffles)) for order in shuffles]
    if ordering == "cyclic":
        return [((*range(T), *range(T))[: k + 1], 1.0)]
    return [((*a, *b), len(shuffles) ** -2.0) for a in shuffles for b in shuffles]


def losses(matrices, labels, w, mean):
    return np.array(
        [0.5 * np.sum((X @ w - y) ** 2) / (len(X) if mean else 1) for X, y in zip(matrices, labels, strict=True)]
    )


def along(case, labels, order, k):
    """All quantities of one order and one draw of the noise."""
    w, ws = case["w0"], [case["w0"]]
    for m in order[:k]:
        X, y = case["X"][m], labels[m]
        scale = len(X) ** -0.5 if case["mean"] else 1.0
        w = w - SCHEMES[case["scheme"]](scale * X) @ (scale * (X @ w - y))
        ws.append(w)
    L = np.array([losses(case["X"], labels, w, case["mean"]) for w in ws])
    H = np.array([losses(case["Xt"], case["yt"], w, case["mean"]) for w in ws])
    steps, at = np.arange(k), list(order[:k])
    following = L[-1] @ case["p"] if case["ordering"] == "with replacement" else np.nan
    if len(order) > k:
        following = L[-1][order[k]]
    return {
        "loss": L[-1].mean(),
        "forgetting": np.mean(L[-1][at] - L[steps + 1, at]),
        "regret": np.mean(L[steps, at]),
        "seen_loss": np.mean(L[-1][at]),
        "next_loss": following,
        "task_losses": L[-1],
        "test_loss": H[-1].mean(),
        "test_forgetting": np.mean(H[-1][at] - H[steps + 1, at]),
        "test_losses": H[-1],
    }


def over_noise(case, k):
    """The mean over all orders, and over all signs of the noise of every label."""
    sizes = [np.full(y.shape, level) for y, level in zip(case["y"], case["noise"], strict=True)]
    moved = [(m, place) for m, size in enumerate(sizes) for place in np.ndindex(size.shape) if size[place] > 0]
    total, orders = {}, orders_of(case["ordering"], case["p"], k)
    draws = list(itertools.product((-1, 1), repeat=len(moved)))
    for signs in draws:
        labels = [y.copy() for y in case["y"]]
        for sign, (m, place) in zip(signs, moved, strict=True):
            labels[m][place] += sign * sizes[m][place]
        for order, chance in orders:
            for name, value in along(case, labels, order, k).items():
                total[name] = total.get(name, 0.0) + chance * value / len(draws)
    return total


def problem(seed):
    """A random problem: ragged ranks, sometimes clones, weights, w_0, mean losses, two outputs, noise, test data."""
    rng = np.random.default_rng([16, seed])
    T, d = int(rng.integers(2, 4)), int(rng.integers(1, 4))
    several = (2,) if rng.random() < 0.4 else ()
    noisy = rng.random() < 0.5
    rows = rng.integers(1, 2 if noisy else 4, size=T)
    X = [rng.standard_normal((n, d)) * 10 ** rng.uniform(-0.5, 0.5) for n in rows]
    y = [rng.standard_normal((n, *several)) for n in rows]
    if rng.random() < 0.2 and not noisy:
        X[-1], y[-1] = X[0].copy(), y[0].copy()
    if rng.random() < 0.2:
        X[0] = np.ones((len(X[0]), 1)) * X[0][:1]  # of rank 1
    held = rng.integers(1, 4, size=T)
    ordering = ["with replacement", "without replacement", "reshuffled", "cyclic"][seed % 4]
    noise = np.where(rng.random(T) < 0.7, rng.uniform(0.1, 1.0, T), 0.0) * noisy
    if sum(np.size(label) for label, level in zip(y, noise, strict=True) if level) > 5:
        noise[1:] = 0.0
    return {
        "X": X,
        "y": y,
        "Xt": [rng.standard_normal((n, d)) for n in held],
        "yt": [rng.standard_normal((n, *several)) for n in held],
        "noise": noise,
        "mean": bool(rng.random() < 0.3),
        "w0": rng.standard_normal((d, *several)) * (rng.random() < 0.7),
        "p": rng.dirichlet(np.ones(T)) if seed % 4 == 0 else np.full(T, 1 / T),
        "ordering": ordering,
        "scheme": list(SCHEMES)[int(rng.integers(len(SCHEMES)))],
        "k": {"with replacement": 3, "without replacement": T, "reshuffled": T + 1, "cyclic": T + 1}[ordering],
    }


def asked(case, names, **options):
    orderings = {
        "with replacement": fg.orderings.WithReplacement(case["p"]),
        "without replacement": fg.orderings.WithoutReplacement(),
        "reshuffled": fg.orderings.Reshuffled(),
        "cyclic": fg.orderings.Cyclic(),
    }
    loss = "mean" if case["mean"] else "sum"
    tasks = fg.RegressionTasks(case["X"], case["y"], loss=loss)
    test = fg.RegressionTasks(case["Xt"], case["yt"], loss=loss) if set(names) & set(HELD_OUT) else None
    noise = case["noise"] if np.any(case["noise"]) else None
    settings = {"scheme": case["scheme"], "w0": case["w0"], "quantities": names, "test": test, "noise": noise}
    return tasks, fg.expect(tasks, orderings[case["ordering"]], case["k"], **settings, **options)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
def test_every_quantity_of_200_problems_agrees_with_enumeration(part):
    for seed in range(part, 200, 8):
        case = problem(seed)
        names = TRAINING + HELD_OUT if seed % 3 else TRAINING
        tasks, e = asked(case, names)
        assert e.exact
        expected = over_noise(case, case["k"])
        scale = float(expected["loss"]) + sum(np.sum(y**2) for y in case["y"]) / tasks.num_tasks
        for name in names:
            if name == "next_loss" and np.isnan(expected[name]):
                assert np.isnan(e.values[name])
                continue
            size = scale + (float(expected["test_loss"]) if name in HELD_OUT else 0.0)
            gap = np.max(np.abs(e.values[name] - expected[name]))
            assert gap <= 1e-12 * size, (seed, name, e.values[name], expected[name])


@pytest.mark.parametrize("seed", [4, 9, 18, 35, 101])
def test_the_float64_path_agrees_with_31_digits_within_its_bounds(seed, monkeypatch):
    from forgetting.expectation.engines import exact as exact_engines
    from forgetting.expectation.engines import float64_moments

    case = problem(seed)
    _, precise = asked(case, TRAINING + HELD_OUT)
    monkeypatch.setattr(exact_engines, "QUICK", -1.0)
    monkeypatch.setattr(exact_engines, "SECONDS_PER_PRODUCT", np.inf)
    monkeypatch.setattr(float64_moments, "WIDE", 0)  # matrix products instead of compiled loops
    _, plain = asked(case, TRAINING + HELD_OUT)
    assert "16 digits" in plain.detail or "one run" in plain.detail
    for name, value in precise.values.items():
        gap = np.abs(value - plain.values[name])
        assert np.all((gap <= plain.uncertainty[name] + precise.uncertainty[name]) | np.isnan(value)), name


def test_noise_by_one_number_and_by_covariances_is_the_same():
    rng = np.random.default_rng(0)
    tasks = fg.RegressionTasks([rng.standard_normal((n, 3)) for n in (2, 4)], [rng.standard_normal(n) for n in (2, 4)])
    names = ("loss", "forgetting")
    same = [0.5, [0.5, 0.5], [0.25 * np.eye(2), 0.25 * np.eye(4)]]
    square = tasks.with_data([tasks.task(0)[0]] * 2, [tasks.task(0)[1]] * 2)
    stacked = fg.expect(square, "with-replacement", 5, noise=np.array([0.25 * np.eye(2)] * 2), quantities=names)
    assert stacked.loss == pytest.approx(fg.expect(square, "with-replacement", 5, noise=0.5).loss, rel=1e-12)
    values = [fg.expect(tasks, "with-replacement", 5, noise=noise, quantities=names) for noise in same]
    for e in values[1:]:
        np.testing.assert_allclose(e.loss, values[0].loss, rtol=1e-12)
        np.testing.assert_allclose(e.forgetting, values[0].forgetting, rtol=1e-12)
    # correlated noise is another matter: equal on the rows of a task, it acts like a shift of all labels
    both = [0.25 * np.ones((2, 2)), 0.25 * np.ones((4, 4))]
    assert abs(fg.expect(tasks, "with-replacement", 5, noise=both).loss - values[0].loss) > 1e-3


def test_many_rows_of_noise_are_turned_into_few_outputs_with_the_same_values(monkeypatch):
    from forgetting.tasks import held_out_and_noise as scored

    rng = np.random.default_rng(1)
    tasks = fg.RegressionTasks(
        [rng.standard_normal((9, 2)) for _ in range(3)], [rng.standard_normal(9) for _ in range(3)]
    )
    names = ("loss", "forgetting", "regret", "test_loss")
    before = fg.expect(tasks, "with-replacement", 4, noise=0.7, test=tasks, quantities=names)
    monkeypatch.setattr(scored, "FEW_ROWS", 0)
    assert scored.scored_tasks(tasks, None, 0.7).noisy == 3 * 2 + 1
    after = fg.expect(tasks, "with-replacement", 4, noise=0.7, test=tasks, quantities=names)
    for name in names:
        np.testing.assert_allclose(after.values[name], before.values[name], rtol=1e-11, err_msg=name)


def test_population_risk_is_the_quadratic_form_of_the_covariance():
    rng = np.random.default_rng(2)
    tasks = fg.families.gaussian(T=3, d=4, rank=2, seed=1)
    roots = [rng.standard_normal((4, 4)) for _ in range(3)]
    covariances = [root.T @ root for root in roots]
    e = fg.expect(tasks, "cyclic", 2, test=covariances, quantities=("test_losses", "test_loss"))
    gap = fg.run(tasks, "cyclic", 2).iterates[-1] - tasks.w_star
    expected = [0.5 * gap @ covariance @ gap for covariance in covariances]
    np.testing.assert_allclose(e.values["test_losses"], expected, rtol=1e-11)
    np.testing.assert_allclose(e.values["test_loss"], np.mean(expected), rtol=1e-11)
    one_for_all = fg.expect(tasks, "cyclic", 2, test=covariances[0], quantities="test_loss")
    np.testing.assert_allclose(one_for_all.values["test_loss"], expected[0], rtol=1e-11)


def test_excess_risk_of_noise_alone_is_that_of_least_squares():
    """One task of n rows, learned once from 0: w - w* = X^+ noise, so E risk = sigma^2 / 2 tr(Sigma (X^T X)^-1)."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 3))
    tasks = fg.RegressionTasks([X], [X @ np.ones(3)])
    e = fg.expect(tasks, "cyclic", 1, noise=0.3, test=np.eye(3), quantities=("loss", "test_loss"))
    np.testing.assert_allclose(e.values["test_loss"], 0.045 * np.trace(np.linalg.inv(X.T @ X)), rtol=1e-10)
    np.testing.assert_allclose(e.loss, 0.045 * (40 - 3), rtol=1e-10)  # n - d degrees of freedom are left


@pytest.mark.parametrize("ordering", ["with-replacement", "without-replacement", "cyclic", "greedy-distance"])
def test_several_outputs_are_the_sum_over_outputs(ordering):
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((n, 4)) for n in (1, 2, 5)]
    tasks = fg.RegressionTasks(X, [rng.standard_normal((len(x), 3)) for x in X])
    w0 = rng.standard_normal((4, 3))
    e = fg.expect(tasks, ordering, 3, w0=w0, quantities=("loss", "forgetting", "task_losses"))
    if ordering == "greedy-distance":  # which looks at all outputs together
        order = fg.run(tasks, ordering, 3, w0=w0).order.tolist()
        gaps = [np.linalg.norm(np.linalg.pinv(x) @ (x @ w0 - y)) for x, y in map(tasks.task, range(3))]
        assert order[0] == np.argmax(gaps)
        ordering = order
    parts = [fg.expect(tasks.output(o), ordering, 3, w0=w0[:, o], quantities=tuple(e.values)) for o in range(3)]
    for name, value in e.values.items():
        np.testing.assert_allclose(value, sum(part.values[name] for part in parts), rtol=1e-11, err_msg=name)


def test_kernel_tasks_with_several_outputs_are_those_of_their_features():
    rng = np.random.default_rng(5)
    X, y, groups = rng.standard_normal((6, 4)), rng.standard_normal((6, 2)), [0, 0, 1, 1, 2, 2]
    data = fg.RegressionTasks.from_arrays(X, y, groups)
    kernel = fg.KernelTasks(X @ X.T, y, groups)
    run = fg.run(kernel, "cyclic", 4)
    np.testing.assert_allclose(run.predictions[-1], X @ fg.run(data, "cyclic", 4).iterates[-1], atol=1e-7)
    for ordering in ("with-replacement", "without-replacement"):
        a, b = (fg.expect(tasks, ordering, 3, quantities=("loss", "forgetting")) for tasks in (data, kernel))
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-7)
        np.testing.assert_allclose(a.forgetting, b.forgetting, rtol=1e-7)


def test_simulated_values_with_noise_and_held_out_data_agree_with_exact_ones():
    case = problem(4)
    names = ("loss", "test_loss", "test_forgetting")
    _, exact = asked(case, names)
    _, e = asked(case, names, method="monte-carlo", runs=2048)
    for name in names:
        low, high = e.interval(name)
        assert low - 1e-9 <= exact.values[name] <= high + 1e-9, name


def test_accuracy_is_exact_for_a_given_order_and_for_few_orders_and_simulated_elsewhere():
    rng = np.random.default_rng(6)
    X, labels, groups = rng.standard_normal((30, 4)), rng.integers(3, size=30), np.repeat([0, 1, 2], 10)
    tasks = fg.RegressionTasks.from_labels(X, labels, groups)
    names = ("accuracy", "task_accuracies", "accuracy_forgetting", "incremental_accuracy")
    np.testing.assert_allclose(tasks.accuracy(np.zeros((4, 3))), 1 / 3, rtol=1e-12)  # guessing among three classes
    order = [2, 0, 1]
    e = fg.expect(tasks, order, 3, quantities=(*names, "loss"))
    w, table = np.zeros((4, 3)), []
    for m in order:
        x, y = tasks.task(m)
        w = w - np.linalg.pinv(x) @ (x @ w - y)
        table.append([np.mean(np.argmax(X[groups == j] @ w, axis=1) == labels[groups == j]) for j in range(3)])
    table = np.array(table)
    np.testing.assert_allclose(e.values["task_accuracies"], table[-1], atol=1e-12)
    np.testing.assert_allclose(e.values["accuracy"], table[-1].mean(), atol=1e-12)
    forgotten = np.mean([table[t, m] - table[-1, m] for t, m in enumerate(order)])
    np.testing.assert_allclose(e.values["accuracy_forgetting"], forgotten, atol=1e-12)
    seen = [table[t, order[: t + 1]].mean() for t in range(3)]
    np.testing.assert_allclose(e.values["incremental_accuracy"], np.mean(seen), atol=1e-12)
    np.testing.assert_allclose(fg.metrics.average_incremental(table, order), np.mean(seen), atol=1e-12)
    np.testing.assert_allclose(e.loss, fg.run(tasks, order, 3).losses[-1], rtol=1e-12)
    assert all(np.all(e.uncertainty[name] < 1e-13) for name in names)
    listed = fg.expect(tasks, "without-replacement", 3, quantities=names)
    random = fg.expect(tasks, "without-replacement", 3, quantities=names, runs=600, method="monte-carlo")
    assert listed.method == "listing"
    assert random.ranges["accuracy"] == (0.0, 1.0)
    every = [fg.run(tasks, list(o), 3).accuracy[-1].mean() for o in itertools.permutations(range(3))]
    low, high = random.interval("accuracy")
    assert low <= np.mean(every) <= high
    np.testing.assert_allclose(listed.values["accuracy"], np.mean(every), rtol=1e-12)
    both = fg.expect(tasks, "with-replacement", 60, quantities=("loss", "accuracy"), runs=64)
    assert any("loss: simulated beside accuracy" in note for note in both.notes)
    with pytest.raises(NotSupportedError, match="accuracy is not a quadratic form"):
        fg.expect(tasks, "with-replacement", 3, quantities="accuracy", method="moments")


def test_held_out_data_are_scored_also_if_no_quantity_is_named():
    tasks = fg.families.gaussian(T=2, d=3, rank=2, seed=0)
    e = fg.expect(tasks, "with-replacement", 3, test=tasks)
    assert list(e.values) == ["loss", "forgetting", "test_loss"]
    np.testing.assert_allclose(e.test_loss, e.loss, rtol=1e-12)


def test_held_out_accuracy_uses_the_held_out_rows():
    rng = np.random.default_rng(7)
    X, labels, groups = rng.standard_normal((20, 4)), np.where(rng.random(20) < 0.5, 1.0, -1.0), np.repeat([0, 1], 10)
    tasks = fg.RegressionTasks.from_arrays(X[::2], labels[::2], groups[::2])
    test = fg.RegressionTasks.from_arrays(X[1::2], labels[1::2], groups[1::2])
    e = fg.expect(tasks, "cyclic", 2, test=test, quantities=("accuracy", "test_accuracy"))
    w = fg.run(tasks, "cyclic", 2).iterates[-1]
    np.testing.assert_allclose(e.values["test_accuracy"], test.accuracy(w).mean(), atol=1e-12)
    np.testing.assert_allclose(e.values["accuracy"], tasks.accuracy(w).mean(), atol=1e-12)


TASKS = fg.families.gaussian(T=2, d=3, rank=2, seed=0)
NOISY = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"quantities": "test_loss"}, InvalidInputError, "test_loss is about held-out data; give them by test="),
        ({"test": NOISY}, InvalidInputError, "test: rows of 1 numbers, but tasks have d = 3"),
        ({"test": [(np.eye(3), np.ones(3))]}, InvalidInputError, "test: 1 tasks, but 2 are learned"),
        ({"test": [(np.eye(3), np.ones(2))] * 2}, InvalidInputError, "test: task 0: X has 3 rows, but y has shape"),
        ({"test": np.eye(2)}, InvalidInputError, r"expected 2 covariances of shape \(3, 3\), or one for all"),
        ({"test": [np.eye(3), -np.eye(3)]}, InvalidInputError, "test, task 1: a covariance has no negative eigenvalue"),
        ({"test": np.triu(np.ones((3, 3)))}, InvalidInputError, "test, task 0: a covariance is symmetric"),
        ({"test": 7}, InvalidInputError, "test: expected regression tasks, a pair"),
        ({"test": ([np.eye(3)], [np.ones(3)])}, InvalidInputError, "test: expected regression tasks, a pair"),
        ({"test": [([[1.0, 2.0], [3.0]], [1.0])] * 2}, InvalidInputError, "test: task 0, X: rows of different lengths"),
        ({"noise": -1.0}, InvalidInputError, "noise must be at least 0"),
        ({"noise": [0.1, 0.1, 0.1]}, InvalidInputError, "noise: 3 standard deviations for 2 tasks"),
        ({"noise": [0.1, np.nan]}, InvalidInputError, "noise, task 1"),
        ({"noise": [0.1, 1j]}, InvalidInputError, "noise, task 0 must be a number"),
        ({"noise": 1e200}, InvalidInputError, "noise: entries of size 1e.200 overflow when squared"),
        ({"noise": [[[1.0, 2.0], [3.0]]] * 2}, InvalidInputError, "noise: rows of different lengths"),
        ({"noise": [np.eye(2)]}, InvalidInputError, "noise: 1 covariances for 2 tasks"),
        ({"noise": [np.eye(2), np.eye(3)]}, InvalidInputError, "noise, task 1: expected a covariance of its 2 labels"),
        ({"noise": 0.1, "quantities": "error"}, NotSupportedError, "the quantity 'error' does not work with noise="),
        ({"noise": 0.1, "scheme": fg.schemes.GradientDescent()}, NotSupportedError, "noise= needs a linear scheme"),
        ({"noise": 0.1, "quantities": "accuracy"}, NotSupportedError, "accuracy"),
    ],
)
def test_what_cannot_be_scored_is_refused_in_words(options, error, message):
    with pytest.raises(error, match=message):
        fg.expect(TASKS, "with-replacement", 2, **options)


def test_what_depends_on_the_noise_or_has_no_teacher_is_refused():
    with pytest.raises(NotSupportedError, match="an order that does not depend on the noise"):
        fg.expect(TASKS, "greedy-distance", 2, noise=0.1)
    with pytest.raises(NotRealizableError, match="test= by covariances"):
        fg.expect(NOISY, "with-replacement", 2, test=np.eye(1), quantities="test_loss")
    with pytest.raises(NotSupportedError, match="needs the data of RegressionTasks"):
        fg.expect(fg.KernelTasks(np.eye(2), [1.0, 2.0], [0, 1]), "cyclic", 2, noise=0.1)
    with pytest.raises(NotSupportedError, match="noise= is the noise of labels, which ConvexSets do not have"):
        fg.expect(fg.ConvexSets([fg.Affine([[2.0]], [1.0])] * 2), "cyclic", 2, noise=0.1)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([[1.0, 2.0], [[1.0, 2.0]]], "task 1: y has 2 outputs, but task 0 has one output"),
        ([np.ones((2, 2)), np.ones((1, 3))], "task 1: y has 3 outputs, but task 0 has 2 outputs"),
        ([np.ones((2, 2)), np.ones((2, 2))], r"task 1: X has 1 rows, but y has shape \(2, 2\)"),
        ([np.ones((2, 0)), np.ones((1, 0))], "task 0: X has 2 rows, but y has shape"),
    ],
)
def test_labels_that_do_not_fit_name_their_task(labels, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.RegressionTasks([np.eye(2), [[1.0, 1.0]]], labels)


@pytest.mark.parametrize("seed", range(0, 96, 4))
def test_the_spectrum_agrees_with_iterated_moments_and_with_the_limit(seed):
    case = problem(seed) | {"k": [2, 40]}
    names = TRAINING + HELD_OUT
    tasks, e = asked(case, names, method="moments")
    _, s = asked(case, names, method="spectral")
    scale = float(e.loss[0]) + sum(np.sum(y**2) for y in case["y"]) / tasks.num_tasks
    for name in names:
        size = scale + (float(e.values["test_loss"][0]) if name in HELD_OUT else 0.0)
        gap = np.abs(s.values[name] - e.values[name])
        assert np.all(gap <= 1e-10 * (size + np.abs(e.values[name]))), (name, s.values[name], e.values[name])
        assert np.all(gap <= s.uncertainty[name] + e.uncertainty[name]), name
    _, far = asked(case | {"k": [10**11, 10**12, np.inf]}, names, method="spectral")
    if not np.isfinite(far.loss).all():  # steps that are too long
        return
    for name in names:  # means over steps approach their limits like 1/k
        early, late, limit = far.values[name]
        off = np.sum(far.uncertainty[name], axis=0)
        assert np.all(off <= 1e-4 * (np.abs(limit) + scale)), (name, off)
        gaps = np.abs(early - limit), np.abs(late - limit)
        assert np.all(gaps[1] <= 0.11 * gaps[0] + 1e-10 * (np.abs(limit) + scale) + off), (name, gaps, off)


@pytest.mark.parametrize("seed", [1, 2, 4, 8, 11, 35])
def test_decimals_agree_with_31_digits_within_their_bounds(seed, monkeypatch):
    from forgetting.expectation.engines import exact as exact_engines

    case = problem(seed)
    names = TRAINING + HELD_OUT
    monkeypatch.setattr(exact_engines, "SECONDS_PER_PRODUCT", np.inf)
    _, twofold = asked(case, names)
    assert "31 digits" in twofold.detail
    monkeypatch.setattr(exact_engines, "SECONDS_PER_PRODUCT", 0.0)
    monkeypatch.setattr(exact_engines, "ENOUGH", -1.0)
    _, deep = asked(case, names)
    assert "some values with" in deep.detail
    for name, value in deep.values.items():
        gap = np.abs(value - twofold.values[name])
        assert np.all((gap <= twofold.uncertainty[name] + deep.uncertainty[name]) | np.isnan(value)), name


def test_held_out_values_and_accuracy_are_attributes_and_say_when_they_were_not_asked_for():
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.6, 0.8]]], [[1.0], [-1.0]])
    names = ("test_loss", "test_forgetting", "accuracy")
    e = fg.expect(tasks, [0, 1], 2, test=[([[1.0, 1.0]], [1.0]), ([[0.0, 1.0]], [-1.0])], quantities=names)
    assert [getattr(e, name) for name in names] == [e.values[name] for name in names]
    with pytest.raises(InvalidInputError, match="accuracy was not asked for"):
        _ = fg.expect(tasks, [0, 1], 2).accuracy
