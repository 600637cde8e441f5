"""Optimal weights: known answers, grids over the simplex, gradients against enumeration, and bounds that hold."""

from itertools import product

import numpy as np
import pytest

import forgetting as fg
from effort import pairwise
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation import least_loss
from forgetting.expectation.api import ask
from forgetting.expectation.engines.exact import moment_map
from forgetting.expectation.least_loss import ExpectedLoss

SCHEMES = {"kaczmarz": None, "ridge": fg.schemes.Ridge(0.7), "sgd": fg.schemes.SGD(0.15, "loss")}


def rate_of(matrices, p):
    """The largest eigenvalue of sum_m p_m P_m (x) P_m on the joint row space, from the matrices alone."""
    basis = np.linalg.svd(np.vstack(matrices), full_matrices=False)[2]
    basis = basis[: np.linalg.matrix_rank(np.vstack(matrices))]
    steps = [np.eye(len(basis)) - basis @ np.linalg.pinv(X) @ X @ basis.T for X in matrices]
    return np.linalg.eigvalsh(sum(q * np.kron(P, P) for q, P in zip(p, steps, strict=True)))[-1]


def tasks_of(matrices):
    return fg.RegressionTasks(matrices, [X @ np.ones(X.shape[1]) for X in matrices])


def random_data(seed, count, d=3, realizable=True, spread=0.5):
    """Matrices and labels of tasks of rank 1 and 2."""
    rng = np.random.default_rng(seed)
    matrices = [rng.standard_normal((1 + m % 2, d)) * 10.0 ** rng.uniform(-spread, spread) for m in range(count)]
    return matrices, [X @ np.ones(d) if realizable else rng.standard_normal(len(X)) for X in matrices]


def random_tasks(*arguments, **more):
    return fg.RegressionTasks(*random_data(*arguments, **more))


def grid(count, parts):
    """All weights that are multiples of 1 / parts."""
    points = [p for p in product(range(parts + 1), repeat=count - 1) if sum(p) <= parts]
    return np.array([(*p, parts - sum(p)) for p in points]) / parts


def losses_of_orders(tasks, k, scheme, w0):
    """The loss after each of the T^k orders, by running them."""
    return {
        order: fg.run(tasks, list(order), k, scheme, w0=w0).losses[-1]
        for order in product(range(tasks.num_tasks), repeat=k)
    }


def function_of(tasks, k, scheme=None, w0=None):
    return ExpectedLoss(moment_map(ask(tasks, fg.orderings.WithReplacement(), k, scheme, w0).request), k)


def norm_weights(tasks):
    return tasks.norms**2 / np.sum(tasks.norms**2)


# ------------------------------------------------------------------------------------------------ the decay rate


def test_orthogonal_rows_are_drawn_equally_often_whatever_their_norms():
    best = fg.optimal_weights(tasks_of([10.0**m * np.eye(4)[m : m + 1] for m in range(4)]))
    np.testing.assert_allclose(best.probabilities, 1 / 4, atol=1e-5)
    assert best.value == pytest.approx(1 - 1 / 4, abs=1e-5)


def test_two_lines_are_drawn_equally_often():
    best = fg.optimal_weights(fg.families.two_lines(0.7))
    np.testing.assert_allclose(best.probabilities, 1 / 2, atol=1e-2)  # the rate is flat about its minimum
    assert best.value == pytest.approx((1 + np.cos(0.7) ** 2) / 2, abs=2e-6)


def test_a_task_that_solves_all_others_is_the_only_one_drawn():
    best = fg.optimal_weights(tasks_of([np.eye(3)[:1], np.eye(3), np.eye(3)[1:]]))
    np.testing.assert_allclose(best.probabilities, [0, 1, 0], atol=1e-12)
    assert best.value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_no_weights_decay_faster(seed):
    rng = np.random.default_rng(seed)
    matrices = [rng.standard_normal((1 + seed % 2, 4)) * 10.0 ** rng.uniform(-1, 1) for _ in range(6)]
    tasks = tasks_of(matrices)
    best = fg.optimal_weights(tasks)
    assert best.probabilities.sum() == pytest.approx(1, rel=1e-12)
    assert best.probabilities.min() >= 0
    assert best.value == pytest.approx(rate_of(matrices, best.probabilities), rel=1e-9)
    assert best.value == pytest.approx(fg.decay_rate(tasks, best.ordering), rel=1e-9)
    assert best.uniform == pytest.approx(rate_of(matrices, np.full(6, 1 / 6)), rel=1e-9)
    assert best.norm_weighted == pytest.approx(rate_of(matrices, norm_weights(tasks)), rel=1e-9)
    assert 0 <= best.value - best.least <= 1e-6
    for p in rng.dirichlet(np.full(6, 0.5), 50):
        assert rate_of(matrices, p) >= best.least - 1e-12
    assert best.value < best.uniform - 0.01


@pytest.mark.parametrize("realizable", [True, False])
def test_the_decay_rate_is_the_least_of_a_grid(realizable):
    matrices, labels = random_data(5, 3, realizable=realizable)
    tasks = fg.RegressionTasks(matrices, labels)
    rates = [rate_of(matrices, p) for p in grid(3, 60)]
    best = fg.optimal_weights(tasks)
    assert best.least <= min(rates)
    assert min(rates) - 1e-3 < best.value <= min(rates) + 1e-7
    assert best.value == pytest.approx(rate_of(matrices, best.probabilities), rel=1e-9)


@pytest.mark.parametrize("groups", [2, 3])
def test_groups_of_tasks_that_share_no_direction(groups):
    """The largest eigenvalue is then multiple at the optimum, and the rate has a kink there."""
    rng = np.random.default_rng(groups)
    matrices = [
        np.kron(np.eye(groups)[g : g + 1], rng.standard_normal((1, 4))) for g in range(groups) for _ in range(6)
    ]
    best = fg.optimal_weights(tasks_of(matrices))
    assert 0 <= best.gap <= 1e-6
    assert best.value == pytest.approx(rate_of(matrices, best.probabilities), rel=1e-9)


def test_matrices_too_large_to_diagonalise_q():
    tasks = fg.families.gaussian(T=30, d=35, rank=2, seed=3)
    best = fg.optimal_weights(tasks)
    assert best.value == pytest.approx(fg.decay_rate(tasks, best.ordering), rel=1e-9)
    assert 0 <= best.value - best.least <= 1e-6
    assert best.value < best.uniform
    rng = np.random.default_rng(0)
    for p in rng.dirichlet(np.full(30, 20.0), 3):
        assert fg.decay_rate(tasks, fg.orderings.WithReplacement(p)) >= best.least


def test_scaled_rows_and_other_labels_decay_alike():
    matrices, labels = random_data(2, 5, realizable=False)
    scaled = [X * c for X, c in zip(matrices, (0.1, 3, 9, 0.7, 2), strict=True)]
    first = fg.optimal_weights(fg.RegressionTasks(matrices, labels))
    second = fg.optimal_weights(fg.RegressionTasks(scaled, [np.zeros(len(X)) for X in matrices]))
    assert first.value == pytest.approx(second.value, abs=1e-6)
    np.testing.assert_allclose(first.probabilities, second.probabilities, atol=1e-3)


def test_a_step_of_sgd_has_weights_of_its_own():
    tasks = tasks_of([np.array([[1.0, 0.0]]), np.array([[0.0, 0.5]])])
    best = fg.optimal_weights(tasks, scheme=fg.schemes.SGD(1.0, "loss"))
    # the squares of both coordinates fall by 1 - p and p + (1 - p) 9/16, equal at 16 p = 7 (1 - p)
    assert best.probabilities[0] == pytest.approx(7 / 23, abs=1e-4)
    assert best.value == pytest.approx(16 / 23, abs=1e-5)


# --------------------------------------------------------------------------------------------- the loss after k steps


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("realizable", [True, False])
@pytest.mark.parametrize(("count", "k"), [(2, 1), (2, 5), (3, 3), (3, 4)])
def test_the_gradient_is_that_of_the_sum_over_all_orders(scheme, realizable, count, k):
    tasks, w0 = random_tasks(count + k, count, realizable=realizable), [0.3, -1.0, 2.0]
    table = losses_of_orders(tasks, k, SCHEMES[scheme], w0)
    p = np.random.default_rng(1).dirichlet(np.ones(count))
    value, slopes = 0.0, np.zeros(count)
    for order, loss in table.items():
        value += loss * np.prod(p[list(order)])
        for place in range(k):
            slopes[order[place]] += loss * np.prod(np.delete(p[list(order)], place))
    function = function_of(tasks, k, SCHEMES[scheme], w0)
    for segment in (function.segment, 2, 1):  # moments kept, or computed again from some of them
        function.segment = segment
        log_value, gradient = function.log_gradient(p)
        assert log_value == pytest.approx(np.log(value), rel=1e-10, abs=1e-11)
        # what no w fits is a constant here, and a multiple of (sum_m p_m)^k in the sum over orders
        np.testing.assert_allclose(np.exp(log_value) * gradient + k * function.floor, slopes, rtol=1e-9)
    assert function.log_value(p) == log_value


@pytest.mark.parametrize("realizable", [True, False])
def test_the_gradient_is_the_slope_within_the_simplex(realizable):
    tasks, k = random_tasks(8, 4, realizable=realizable), 40
    function, p = function_of(tasks, k), np.full(4, 1 / 4)
    gradient = function.log_gradient(p)[1]
    for direction in (np.array([1, -1, 0, 0]), np.array([0, 1, 1, -2])):
        h = 1e-5 * direction
        slope = (function.log_value(p + h) - function.log_value(p - h)) / 2e-5
        assert gradient @ direction == pytest.approx(slope, rel=1e-6, abs=1e-7)


def test_powers_that_leave_the_range_of_floats_have_a_logarithm():
    function = function_of(tasks_of([np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])]), 3000)
    p = np.array([0.3, 0.7])
    value, gradient = function.log_gradient(p)
    # f = (0.7^k + 0.3^k) / 4, as a polynomial in both weights (p_2^k + p_1^k) / 4
    assert value == pytest.approx(3000 * np.log(0.7) - np.log(4), rel=1e-12)
    assert gradient @ [1, -1] == pytest.approx(-3000 / 0.7, rel=1e-9)


@pairwise(scheme=list(SCHEMES), realizable=[True, False], count_and_k=[(2, 2), (2, 9), (3, 2), (3, 6)])
def test_no_weights_of_a_grid_have_a_smaller_loss(scheme, realizable, count_and_k):
    count, k = count_and_k
    tasks, w0 = random_tasks(10 * count + k, count, realizable=realizable, spread=1.0), [1.0, 0.0, -1.0]
    best = fg.optimal_weights(tasks, "loss", k, SCHEMES[scheme], w0)
    function = function_of(tasks, k, SCHEMES[scheme], w0)
    values = np.exp([function.log_value(p) for p in grid(count, 200 if count == 2 else 40)])
    assert best.value <= values.min() * (1 + 1e-9)
    assert best.value >= values.min() * 0.9
    assert best.value <= min(best.uniform, best.norm_weighted)
    assert best.least is None

    def exact(p):
        order = fg.orderings.WithReplacement(p)
        return fg.expect(tasks, order, k, SCHEMES[scheme], w0, quantities="loss").loss

    assert best.value == pytest.approx(exact(best.probabilities), rel=1e-11)
    assert best.uniform == pytest.approx(exact(np.ones(count)), rel=1e-11)
    assert best.norm_weighted == pytest.approx(exact(norm_weights(tasks)), rel=1e-11)


@pytest.mark.parametrize("realizable", [True, False])
def test_after_one_step_one_task_is_best(realizable):
    tasks = random_tasks(4, 5, realizable=realizable)
    best = fg.optimal_weights(tasks, "loss", 1)
    table = losses_of_orders(tasks, 1, None, None)
    (task,) = min(table, key=table.get)
    np.testing.assert_array_equal(best.probabilities, np.eye(5)[task])
    assert best.value == best.least == pytest.approx(table[task,], rel=1e-11)


def test_the_loss_is_not_convex():
    """The docstring's example: f(q) = q c_21 + q^2 (c_22 - c_21), with c_21 = 1/16 and c_22 = 1/1600."""
    tasks = fg.RegressionTasks([[[0.1, 0.0]], [[1.0, 1.0]]], [[0.1], [1.0]])
    function = function_of(tasks, 2)
    for q in (0.0, 0.2, 0.5, 0.9, 1.0):
        meant = q / 16 + q**2 * (1 / 1600 - 1 / 16)
        assert np.exp(function.log_value(np.array([1 - q, q]))) == pytest.approx(meant, rel=1e-12, abs=1e-30)
    ends = [np.exp(function.log_value(np.array([1 - q, q]))) for q in (0.1, 0.5, 0.9)]
    assert ends[1] > (ends[0] + ends[2]) / 2 * 1.1


def test_the_better_of_two_local_minima_is_found():
    """Both single tasks are local minima: learning the short row last leaves the long row unsolved."""
    w = np.array([-0.468, 0.612])
    matrices = [np.array([[16.3, -11.2]]), np.array([[0.13, -0.17]])]
    for order in ([0, 1], [1, 0]):
        tasks = fg.RegressionTasks([matrices[m] for m in order], [matrices[m] @ w for m in order])
        function = function_of(tasks, 2)
        values = np.array([function.log_value(np.array([1 - q, q])) for q in np.linspace(0, 1, 101)])
        assert values[0] < values[1]
        assert values[-1] < values[-2]
        best = fg.optimal_weights(tasks, "loss", 2)
        assert best.value <= max(np.exp(values.min()) * (1 + 1e-9), 1e-28)  # rounding of a loss of size 1
        assert best.probabilities[order.index(1)] == 1


def test_a_minimum_of_two_tasks_is_found_that_searches_from_all_of_them_miss():
    """The best of the losses after 6 steps is on the edge of tasks 2 and 3, in either order of the tasks."""
    matrices, labels = random_data(6, 5)
    function = function_of(fg.RegressionTasks(matrices, labels), 6)
    edge = min(function.log_value(np.array([0, 0, q, 1 - q, 0])) for q in np.linspace(0, 1, 201))
    assert least_loss._descend(function, np.full(5, 1 / 5))[0] > edge + 0.1
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 3, 1]):
        best = fg.optimal_weights(
            fg.RegressionTasks([matrices[m] for m in order], [labels[m] for m in order]), "loss", 6
        )
        assert np.log(best.value) <= edge
        assert np.flatnonzero(best.probabilities[np.argsort(order)]).tolist() == [2, 3]


@pytest.mark.parametrize("goal", [{"goal": "decay"}, {"goal": "loss", "k": 6}])
def test_relabelled_tasks_have_relabelled_weights(goal):
    (matrices, labels), order = random_data(11, 5), [3, 0, 4, 1, 2]
    turned = fg.RegressionTasks([matrices[m] for m in order], [labels[m] for m in order])
    first, second = fg.optimal_weights(fg.RegressionTasks(matrices, labels), **goal), fg.optimal_weights(turned, **goal)
    assert first.value == pytest.approx(second.value, rel=1e-6)
    np.testing.assert_allclose(first.probabilities[order], second.probabilities, atol=2e-3)


@pytest.mark.parametrize("goal", [{"goal": "decay"}, {"goal": "loss", "k": 4}])
def test_clones_share_the_weight_of_one_task(goal):
    (matrices, labels), which = random_data(12, 3), (0, 1, 1, 2, 1)
    cloned = fg.RegressionTasks([matrices[m] for m in which], [labels[m] for m in which])
    best = fg.optimal_weights(cloned, **goal)
    assert best.probabilities[1] == best.probabilities[2] == best.probabilities[4]
    assert best.probabilities.sum() == pytest.approx(1, rel=1e-12)
    if goal["goal"] == "loss":  # the mean over tasks counts every clone
        weights = np.array([0.2, 0.3, 0.5])
        value = function_of(cloned, 4).log_value(weights)
        each = fg.orderings.WithReplacement([0.2, 0.1, 0.1, 0.5, 0.1])
        assert np.exp(value) == pytest.approx(fg.expect(cloned, each, 4, quantities="loss").loss, rel=1e-11)
    else:
        assert best.value == pytest.approx(fg.optimal_weights(random_tasks(12, 3)).value, abs=1e-6)


def test_a_useless_task_is_never_drawn():
    nothing = np.zeros((1, 3))
    tasks = tasks_of([np.eye(3)[:1], nothing, np.eye(3)[1:]])
    for goal in ({"goal": "decay"}, {"goal": "loss", "k": 5}):
        best = fg.optimal_weights(tasks, **goal)
        assert best.probabilities[1] == 0
        assert best.value < best.uniform


def test_a_task_that_solves_everything_leaves_no_loss():
    best = fg.optimal_weights(tasks_of([np.eye(3)[:1], np.eye(3)]), "loss", 3)
    np.testing.assert_allclose(best.probabilities, [0, 1], atol=1e-12)
    assert best.value == pytest.approx(0, abs=1e-30)


def test_tasks_without_a_direction_keep_their_loss():
    tasks = fg.RegressionTasks([np.zeros((1, 2)), np.zeros((2, 2))], [[1.0], [1.0, 2.0]])
    assert fg.optimal_weights(tasks).value == 0
    best = fg.optimal_weights(tasks, "loss", 3)
    assert best.value == best.uniform == best.norm_weighted == pytest.approx(1.5)


def test_moments_that_do_not_fit_are_computed_twice(monkeypatch):
    tasks = random_tasks(13, 4, realizable=False)
    kept = function_of(tasks, 30)
    monkeypatch.setattr(least_loss, "STORED", 0.0)
    again = function_of(tasks, 30)
    assert (kept.segment, again.segment) == (30, 6)
    p = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_array_equal(kept.log_gradient(p)[1], again.log_gradient(p)[1])


def test_the_same_call_gives_the_same_weights():
    first, second = (fg.optimal_weights(random_tasks(14, 4), "loss", 5) for _ in range(2))
    np.testing.assert_array_equal(first.probabilities, second.probabilities)


def test_kernel_tasks_have_the_weights_of_their_features():
    matrices, labels = random_data(15, 3)
    X, tasks = np.vstack(matrices), fg.RegressionTasks(matrices, labels)
    kernel = fg.KernelTasks(X @ X.T, np.concatenate(labels), np.repeat(np.arange(3), [len(part) for part in matrices]))
    for goal in ({"goal": "decay"}, {"goal": "loss", "k": 3}):
        first, second = fg.optimal_weights(kernel, **goal), fg.optimal_weights(tasks, **goal)
        assert first.value == pytest.approx(second.value, rel=1e-6)


# ------------------------------------------------------------------------------------------------- the result, errors


def test_the_result_says_what_was_reached_and_how():
    best = fg.optimal_weights(fg.families.two_lines(0.7), "loss", 3)
    assert best.headline.startswith("Weights for the least expected loss after 3 steps: ")
    assert "searches ended here" in repr(best)
    assert best.figure().values == tuple(best.probabilities)
    assert best.ordering == fg.orderings.WithReplacement(best.probabilities)
    assert "no weights go below" in repr(fg.optimal_weights(fg.families.two_lines(0.7)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"goal": "loss"}, "needs k"),
        ({"goal": "decay", "k": 3}, "takes no k, got 3"),
        ({"goal": "decay", "w0": [1.0, 2.0]}, "leave out w0"),
        ({"goal": "forgetting"}, "goal must be 'decay' or 'loss', got 'forgetting'"),
        ({"goal": "loss", "k": 0}, "k must be at least 1"),
    ],
)
def test_wrong_arguments_are_named(arguments, words):
    with pytest.raises(InvalidInputError, match=words):
        fg.optimal_weights(fg.families.two_lines(0.7), **arguments)


@pytest.mark.parametrize(
    ("problem", "scheme"),
    [
        (fg.families.separable(3, 4, 2), None),
        (fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5)]), None),
        (fg.families.two_lines(0.7), fg.schemes.RecursiveLeastSquares()),
    ],
)
@pytest.mark.parametrize("goal", [{"goal": "decay"}, {"goal": "loss", "k": 3}])
def test_what_is_not_linear_is_refused(problem, scheme, goal):
    with pytest.raises(NotSupportedError, match="optimal weights are those of a linear scheme"):
        fg.optimal_weights(problem, scheme=scheme, **goal)
