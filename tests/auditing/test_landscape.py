"""Landscapes of orders: projections against explicit function spaces, seeds, spread, disparity, runs, figures."""

import math
from itertools import combinations, permutations, product

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import Landscape, landscape, order_disparity
from forgetting.auditing.order_statistics import agreement_of, ranks_of
from forgetting.errors import InvalidInputError, NotSupportedError


def orders_of(T):
    return np.array(list(permutations(range(T))))


def noisy(T, M=1, seed=0):
    rng = np.random.default_rng(seed)
    return Landscape(orders_of(T), rng.normal(size=(math.factorial(T), M)))


def orthonormal(functions):
    """Gram-Schmidt, twice, of functions on orders; dependent ones are left out."""
    basis = []
    for function in functions:
        left = function.astype(float)
        for _ in range(2):
            for member in basis:
                left = left - (member @ left) * member
        if np.linalg.norm(left) > 1e-9 * np.linalg.norm(function):
            basis.append(left / np.linalg.norm(left))
    return np.array(basis)


def spaces(T):
    """Orthonormal bases of the constants, what positions add, what pairs add, and the rest."""
    orders = orders_of(T)
    single = [orders[:, a] == i for a in range(T) for i in range(T)]
    double = [one & other for one, other in combinations(single, 2) if (one & other).any()]
    constant = np.ones(len(orders))
    basis = orthonormal([constant, *single, *double, *np.eye(len(orders))])
    first = len(orthonormal([constant, *single]))
    second = len(orthonormal([constant, *single, *double]))
    return basis[:1], basis[1:first], basis[first:second], basis[second:]


@pytest.mark.parametrize("T", [2, 3, 4])
def test_parts_are_projections_onto_explicitly_built_spaces(T):
    found = noisy(T, M=3, seed=T)
    _, *parts = spaces(T)
    assert found.variance.dimensions == tuple(len(part) for part in parts)
    for part, products in zip(parts, found.variance.products, strict=True):
        inside = part @ found.values
        np.testing.assert_allclose(products, inside.T @ inside / len(found.values), rtol=0, atol=1e-13)


@pytest.mark.parametrize("T", [2, 3, 4, 5, 6])
def test_the_variances_of_the_parts_sum_to_the_variance(T):
    found = noisy(T, M=2, seed=T)
    centred = found.values - found.values.mean(axis=0)
    whole = centred.T @ centred / len(centred)
    np.testing.assert_allclose(found.variance.products.sum(axis=0), whole, rtol=0, atol=1e-12 * np.abs(whole).max())
    assert found.variance.variance == pytest.approx(found.means.var(), rel=1e-12)
    assert found.variance.variance == pytest.approx(found.spread.sd**2, rel=1e-12)
    assert sum(found.variance.dimensions) == math.factorial(T) - 1
    assert found.variance.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("T", [2, 3, 4, 5, 6])
def test_additive_values_are_explained_by_position_alone(T):
    orders, effects = orders_of(T), np.random.default_rng(T).normal(size=(T, T))
    found = Landscape(orders, sum(effects[orders[:, a], a] for a in range(T)) + 5)
    np.testing.assert_allclose(found.variance.shares, [1, 0, 0], atol=1e-13)
    # the means of an additive function are its effects with rows and columns centred, times T / (T - 1)
    centred = effects - effects.mean(axis=0) - effects.mean(axis=1)[:, None] + effects.mean()
    np.testing.assert_allclose(found.variance.table, centred * T / (T - 1), atol=1e-12)


@pytest.mark.parametrize("T", [3, 4, 5])
def test_values_of_pairs_without_their_positions_are_explained_by_pairs_alone(T):
    orders = orders_of(T)
    weights = np.random.default_rng(T).normal(size=(T, T, T, T))
    pairs = sum(weights[orders[:, a], a, orders[:, b], b] for a, b in combinations(range(T), 2))
    single = orthonormal([np.ones(len(orders)), *(orders[:, a] == i for a in range(T) for i in range(T))])
    found = Landscape(orders, pairs - single.T @ (single @ pairs))
    np.testing.assert_allclose(found.variance.shares, [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(("T", "shares"), [(2, [1, 0, 0]), (3, [0, 1, 0]), (4, [0, 0, 1]), (5, [0, 0, 1])])
def test_the_sign_of_an_order_needs_all_tasks_but_one(T, shares):
    signs = np.array([np.linalg.det(np.eye(T)[order]) for order in orders_of(T)])
    np.testing.assert_allclose(Landscape(orders_of(T), signs).variance.shares, shares, atol=1e-13)


@pytest.mark.parametrize("T", [2, 3, 4, 6])
def test_which_of_two_tasks_comes_first_is_mostly_position(T):
    """f = +1 if task 0 comes before task 1, else -1; its variance is 1.

    Given task 0 at position a (from 0), the mean is (T - 1 - 2a)/(T - 1), for task 1 its negative, for others 0. With
    sum_a (T - 1 - 2a)^2 = T (T^2 - 1)/3, position explains (T - 1)/T^2 times 2 T (T^2 - 1)/(3 (T - 1)^2), which is
    2 (T + 1)/(3 T), and as f is a function of two tasks, pairs explain all else, (T - 2)/(3 T).
    """
    place = np.argsort(orders_of(T), axis=1)
    found = Landscape(orders_of(T), np.where(place[:, 0] < place[:, 1], 1.0, -1.0))
    np.testing.assert_allclose(found.variance.shares, [2 * (T + 1) / (3 * T), (T - 2) / (3 * T), 0], atol=1e-13)


@pytest.mark.parametrize("T", [3, 4, 5])
def test_names_of_tasks_and_the_direction_of_time_do_not_change_shares(T):
    found, renamed = noisy(T), np.random.default_rng(1).permutation(T)
    shares = found.variance.shares
    for orders in (renamed[found.permutations], found.permutations[:, ::-1], np.argsort(found.permutations, axis=1)):
        np.testing.assert_allclose(Landscape(orders, found.values).variance.shares, shares, atol=1e-13)
    np.testing.assert_allclose(Landscape(found.permutations, 7 - 3 * found.values).variance.shares, shares, atol=1e-13)
    assert Landscape(renamed[found.permutations], found.values).spread.best.order == tuple(
        renamed[list(found.spread.best.order)].tolist()
    )


def test_equal_values_have_no_shares():
    found = Landscape(orders_of(4), np.full(24, 0.1))
    assert found.variance.shares is None
    assert "does not matter" in found.findings[1]
    assert found.position_figure() is None


# ---------------------------------------------------------------------------------------------------------- seeds


def test_the_signal_is_unbiased_and_the_plain_variance_is_not():
    """Noise is +-g for each seed, so that the mean over all signs is the expectation."""
    orders, rng = orders_of(4), np.random.default_rng(0)
    signal, noise = rng.normal(size=24), rng.normal(size=24)
    truth, wrong = (Landscape(orders, values).variance.variances for values in (signal, noise))
    splits = [
        Landscape(orders, signal[:, None] + np.outer(noise, signs)).variance for signs in product([-1, 1], repeat=3)
    ]
    np.testing.assert_allclose(np.mean([split.signal for split in splits], axis=0), truth, rtol=1e-12)
    np.testing.assert_allclose(np.mean([split.noise for split in splits], axis=0), wrong, rtol=1e-12)
    np.testing.assert_allclose(np.mean([split.variances for split in splits], axis=0), truth + wrong / 3, rtol=1e-12)


def test_variance_is_signal_plus_noise_over_seeds():
    split = noisy(5, M=4).variance
    np.testing.assert_allclose(split.variances, split.signal + split.noise / 4, rtol=1e-12)


def test_standard_errors_leave_out_one_seed_at_a_time():
    rng = np.random.default_rng(3)
    values = rng.normal(size=(24, 1)) + 0.3 * rng.normal(size=(24, 5))
    split = Landscape(orders_of(4), values).variance
    left = [Landscape(orders_of(4), np.delete(values, s, axis=1)).variance.signal_shares for s in range(5)]
    expected = np.sqrt(4 / 5 * np.sum((left - np.mean(left, axis=0)) ** 2, axis=0))
    np.testing.assert_allclose(split.signal_errors, expected, rtol=1e-10)
    assert split.signal_shares.sum() == pytest.approx(1)
    pair = Landscape(orders_of(4), values[:, :2]).variance
    assert pair.signal_errors is None
    assert pair.signal_shares is not None


def test_an_offset_of_a_seed_is_no_noise():
    values = np.random.default_rng(0).normal(size=(24, 1)) + np.array([0.0, 10.0, -3.0])
    np.testing.assert_allclose(Landscape(orders_of(4), values).variance.noise, 0, atol=1e-13)


def test_seeds_without_anything_in_common_have_no_shares_of_signal():
    values = np.random.default_rng(0).normal(size=24)
    found = Landscape(orders_of(4), np.column_stack([values, -values]) + 1)
    assert found.variance.signal_shares is None
    assert found.variance.signal.sum() == pytest.approx(-values.var())
    assert Landscape(orders_of(4), values).variance.signal is None
    noise = np.column_stack([values, 0.5 - values])  # the mean over seeds is constant
    assert "same value" in Landscape(orders_of(4), noise).findings[1]
    uneven = np.column_stack([values, -0.5 * values])
    assert "noise" in Landscape(orders_of(4), uneven).findings[1]


def test_agreement_of_seeds_by_hand():
    # the mean over seeds is 2, 3, 4, 7, 8, 9 / 3: the first order is best, the last is worst
    costs = np.array([[0, 0, 2], [1, 1, 1], [2, 2, 0], [3, 2, 2], [4, 1, 3], [3, 5, 1]]) / 1.0
    found = agreement_of(costs)
    assert found.best_ranks == (1, 1, 4)
    assert found.worst_ranks == (2, 1, 4)
    assert (found.best_agree, found.worst_agree) == (2, 1)
    assert (found.different_best, found.different_worst) == (2, 2)
    good = Landscape(orders_of(3), -costs, higher_is_better=True)
    assert good.agreement == found
    assert good.spread.best.order == (0, 1, 2)
    assert Landscape(orders_of(3), costs[:, 0]).agreement is None


def test_the_correlation_of_seeds_is_that_of_spearman():
    from scipy.stats import spearmanr

    values = np.random.default_rng(0).integers(0, 9, size=(24, 3)).astype(float)  # with ties
    expected = spearmanr(values).statistic[np.triu_indices(3, 1)].mean()
    assert Landscape(orders_of(4), values).agreement.correlation == pytest.approx(expected, rel=1e-12)
    values[:, 1] = 1.0
    assert Landscape(orders_of(4), values).agreement.correlation is None


# ------------------------------------------------------------------------------------- spread, ranks and disparity


def test_spread_and_ranks_by_hand():
    values = [3.0, 1.0, 2.0, 1.0, 6.0, 5.0]
    found = Landscape(orders_of(3), values, quantity="loss")
    assert (found.spread.best.order, found.spread.best.value) == ((0, 2, 1), 1.0)
    assert (found.spread.worst.order, found.spread.worst.value) == ((2, 0, 1), 6.0)
    assert found.spread.mean == pytest.approx(3)
    assert found.spread.sd == pytest.approx(math.sqrt(22 / 6))
    assert found.spread.quantiles[2] == pytest.approx(2.5)
    assert found.ranks.tolist() == [4, 1, 3, 1, 6, 5]
    high = Landscape(orders_of(3), values, quantity="accuracy", higher_is_better=True)
    assert high.spread.best.order == (2, 0, 1)
    assert high.ranks.tolist() == [3, 5, 4, 5, 1, 2]
    assert high.row([2, 1, 0]) == 5
    assert ranks_of(np.array([1.0, 1.0 + 1e-15]), np.array([0, 1])).tolist() == [1, 1]


def test_disparity_by_hand():
    # task 0: 0.9 - 0.4; task 1: 0.8 - 0.7; task 2: the same in every order
    found = order_disparity([[0.9, 0.7, 0.5], [0.4, 0.8, 0.5], [0.6, 0.75, 0.5]])
    np.testing.assert_allclose(found.per_task, [0.5, 0.1, 0.0], atol=1e-15)
    assert found.maximum == pytest.approx(0.5)
    assert found.mean == pytest.approx(0.2)
    assert found.orders == 3


@pytest.mark.parametrize("table", [[0.5, 0.5], np.empty((0, 3)), [[0.5, np.nan]]])
def test_disparity_needs_a_table_of_numbers(table):
    with pytest.raises(InvalidInputError, match="performance"):
        order_disparity(table)


def test_disparity_of_a_landscape_is_that_of_the_mean_over_seeds():
    parts = np.random.default_rng(0).normal(size=(6, 3, 2))
    found = Landscape(orders_of(3)[::-1], parts.mean(axis=1), task_values=parts)
    assert found.disparity == order_disparity(parts.mean(axis=2))
    np.testing.assert_array_equal(found.task_values, parts[::-1])
    assert noisy(3).disparity is None


# ---------------------------------------------------------------------------------------------- computed landscapes


def tasks_of(seed, T=4, noise=0.0):
    rng = np.random.default_rng(seed)
    Xs = [rng.normal(size=(2, 5)) for _ in range(T)]
    w = rng.normal(size=5)
    return fg.RegressionTasks(Xs, [X @ w + noise * rng.normal(size=2) for X in Xs])


@pytest.mark.parametrize("per_task", [False, True])
@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
@pytest.mark.parametrize(
    ("tasks", "options"),
    [
        (tasks_of(0), {}),
        (tasks_of(1, noise=1.0), {"w0": np.arange(5.0)}),
        (tasks_of(2, T=3, noise=1.0), {"scheme": fg.schemes.Ridge(0.5)}),
    ],
)
def test_a_landscape_is_a_run_of_every_order(tasks, options, quantity, per_task):
    found = landscape(tasks, quantity, per_task=per_task, **options)
    assert len(found.values) == math.factorial(tasks.num_tasks)
    for row, order in enumerate(permutations(range(tasks.num_tasks))):
        run = fg.run(tasks, fg.orderings.Explicit(order), tasks.num_tasks, **options)
        assert tuple(found.permutations[row].tolist()) == order
        expected = (run.losses if quantity == "loss" else run.forgetting)[-1]
        assert found.values[row, 0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
        if per_task:
            np.testing.assert_allclose(found.task_values[row, :, 0], run.loss_matrix[-1], rtol=1e-12)
    assert (found.disparity is None) is not per_task


def test_classification_tasks_and_sets_have_landscapes_too():
    separable = fg.families.separable(T=3, d=4, n=5, margin=0.2, seed=0)
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5), fg.Halfspace([0.2, 1.0], 0.6)])
    for problem in (separable, sets):
        found = landscape(problem)
        for row, order in enumerate(found.permutations.tolist()):
            assert found.values[row, 0] == pytest.approx(fg.run(problem, order, 3).losses[-1], abs=1e-14)


def test_a_function_of_w_measures_each_task():
    tasks = tasks_of(3, T=3, noise=1.0)

    def accuracy(w):
        return [np.mean(np.sign(X @ w) == np.sign(y)) for X, y in map(tasks.task, range(3))]

    found = landscape(tasks, accuracy, higher_is_better=True)
    assert (found.quantity, found.higher_is_better) == ("accuracy", True)
    for row, order in enumerate(found.permutations.tolist()):
        expected = accuracy(fg.run(tasks, order, 3).iterates[-1])
        np.testing.assert_allclose(found.task_values[row, :, 0], expected)
        assert found.values[row, 0] == pytest.approx(np.mean(expected))
    with pytest.raises(InvalidInputError, match="higher_is_better"):
        landscape(tasks, accuracy)
    with pytest.raises(InvalidInputError, match=r"the function's values.*\(3,\)"):
        landscape(tasks, lambda w: w[:2], higher_is_better=True)


def test_arguments_of_a_landscape_are_checked():
    tasks = tasks_of(0)
    with pytest.raises(InvalidInputError, match="quantity must be"):
        landscape(tasks, "accuracy")
    with pytest.raises(InvalidInputError, match="a low loss is good"):
        landscape(tasks, "loss", higher_is_better=True)
    many = fg.families.gaussian(T=10, d=10, rank=1, seed=0)
    with pytest.raises(NotSupportedError, match="10 tasks have 3628800 orders"):
        landscape(many)
    eight = fg.families.gaussian(T=8, d=10, rank=1, seed=0)
    with pytest.raises(NotSupportedError, match="at most 5040"):
        landscape(eight, per_task=True)


def test_the_search_finds_the_ends_of_the_landscape():
    tasks = fg.families.gaussian(T=5, d=8, rank=2, seed=1)
    search, found = fg.auditing.search_orders(tasks, "loss"), landscape(tasks)
    assert found.spread.best.value == pytest.approx(search.best.value)
    assert found.spread.worst.value == pytest.approx(search.worst.value)


# ----------------------------------------------------------------------------------------------- samples and figures


def test_a_sample_has_spread_and_disparity_but_no_parts():
    orders = orders_of(5)[::7]
    found = Landscape(orders, np.arange(len(orders)), quantity="loss", complete=False)
    assert not found.complete
    assert found.spread.worst.order == tuple(orders[-1].tolist())
    assert "18 of the 120 orders" in found.headline
    assert "sample" in found.findings[1]
    assert found.position_figure() is None
    with pytest.raises(NotSupportedError, match="18 of the 120 orders of 5 tasks"):
        found.variance  # noqa: B018
    with pytest.raises(InvalidInputError, match="not among the 18 orders"):
        found.row(orders_of(5)[1])
    assert Landscape(orders_of(3), np.zeros(6), complete=False).complete


def test_a_sample_of_many_tasks_is_fine():
    rng = np.random.default_rng(0)
    orders = np.array([rng.permutation(200) for _ in range(30)])
    found = Landscape(orders, rng.normal(size=(30, 2)), complete=False)
    assert "30 of the" in repr(found)
    assert len(found.figure().series) == 4


def test_the_histogram_holds_all_orders_and_marks_the_ends():
    found = noisy(5)
    figure = found.figure(order=[4, 3, 2, 1, 0])
    steps, best, worst, mean, given = figure.series
    heights = np.array(steps.y[2:-2:2])  # each bar has two corners
    assert heights.sum() == pytest.approx(100)
    width = steps.x[3] - steps.x[2]
    inside = np.sum((found.means >= steps.x[2]) & (found.means < steps.x[2] + width))
    assert heights[0] == pytest.approx(100 * inside / 120)
    assert (best.x[0], worst.x[0]) == (found.means.min(), found.means.max())
    assert mean.x[0] == pytest.approx(found.means.mean())
    assert given.x[0] == found.means[-1]
    assert min(steps.x) < best.x[0] < worst.x[0] < max(steps.x)


def test_positions_are_drawn_only_if_they_explain_something():
    orders, rng = orders_of(4), np.random.default_rng(0)
    first = (orders[:, 0] == 2).astype(float)
    matrix = Landscape(orders, first, names=("a", "b", "c", "d")).position_figure()
    assert matrix.rows == ("a", "b", "c", "d")
    np.testing.assert_allclose(matrix.values[2], [0.75, -0.25, -0.25, -0.25], atol=1e-15)
    np.testing.assert_allclose(matrix.values[0], [-0.25, 1 / 12, 1 / 12, 1 / 12], atol=1e-15)
    assert Landscape(orders, np.linalg.det(np.eye(4)[orders])).position_figure() is None
    noise = Landscape(orders, rng.normal(size=(24, 1)) * [[1.0, -0.9]])
    assert noise.position_figure() is None
