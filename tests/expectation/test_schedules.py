"""Optimal schedules: gradients by differences, grids, known answers, certificates, losses that are nowhere worse."""

from itertools import permutations, product

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.expectation import scheduled_loss, schedules
from forgetting.expectation.api import ask
from forgetting.expectation.engines.exact import float64_map
from forgetting.expectation.scheduled_loss import ScheduledLoss
from forgetting.schemes import SGD, Kaczmarz, Ridge, Scheduled

ORDERS = [
    "with-replacement",
    fg.orderings.WithReplacement([1, 2, 3, 4]),
    "without-replacement",
    "reshuffled",
    [2, 0, 2, 1],
]


def random_tasks(seed, *, count=4, d=3, noise=0.0, outputs=None, clone=False):
    """Tasks of rank 1 and 2, without a common solution if there is noise; the last one may be the first again."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d if outputs is None else (d, outputs))
    matrices = [rng.standard_normal((1 + m % 2, d)) * 10.0 ** rng.uniform(-0.5, 0.5) for m in range(count)]
    labels = [X @ w + noise * rng.standard_normal((X @ w).shape) for X in matrices]
    if clone:
        matrices[-1], labels[-1] = matrices[0], labels[0]
    return fg.RegressionTasks(matrices, labels)


def function_of(tasks, ordering, k, kind="ridge", w0=None):
    request = ask(tasks, ordering, k, Kaczmarz(), w0, "loss").request
    moments = float64_map(request)
    used = schedules._kind(kind, request.geometry)
    return ScheduledLoss(moments, schedules._layers(request, moments), used.gains), used


def by_enumeration(tasks, orders, scheme_of, w0):
    """The mean loss of all orders, each learned by the definition of a ridge step in plain NumPy."""
    total = 0.0
    data = [tasks.task(m) for m in range(tasks.num_tasks)]
    for order in orders:
        w = w0
        for t, m in enumerate(order):
            X, y = map(np.asarray, data[m])
            w = w - np.linalg.solve(X.T @ X + scheme_of(t) * np.eye(len(w)), X.T @ (X @ w - y))
        total += np.mean([np.sum((np.asarray(X) @ w - np.asarray(y)) ** 2) / 2 for X, y in data])
    return total / len(orders)


# ------------------------------------------------------------------------------------------- the loss and its gradient


@pytest.mark.parametrize("kind", ["ridge", "step", "relaxation"])
@pytest.mark.parametrize("ordering", ORDERS, ids=str)
def test_the_gradient_is_that_of_differences(ordering, kind):
    for seed, more in enumerate([{}, {"noise": 1.0}, {"noise": 0.5, "outputs": 2, "clone": True}]):
        tasks = random_tasks(seed, **more)
        loss, _ = function_of(tasks, ordering, 4, kind, w0=None if seed else np.ones(3))
        x = np.random.default_rng(seed).uniform(0.1, 0.9, 4)
        value, slopes = loss.gradient(x)
        differences = [(loss.value(x + 1e-5 * unit) - loss.value(x - 1e-5 * unit)) / 2e-5 for unit in np.eye(4)]
        assert value == pytest.approx(loss.value(x), rel=1e-12)
        np.testing.assert_allclose(slopes, differences, rtol=1e-5, atol=1e-8 * value)


def test_the_loss_is_the_mean_over_all_orders():
    tasks, w0 = random_tasks(1, count=3, noise=0.5), np.array([0.3, -1.0, 2.0])
    everything = {
        "with-replacement": list(product(range(3), repeat=3)),
        "without-replacement": list(permutations(range(3))),
    }
    for ordering, orders in everything.items():
        loss, used = function_of(tasks, ordering, 3, w0=w0)
        x = np.array([0.9, 0.4, 0.2])
        lams = used.strength(x)
        assert loss.value(x) == pytest.approx(by_enumeration(tasks, orders, lams.__getitem__, w0), rel=1e-10)


def test_epochs_go_on_from_the_end_of_the_last_one():
    tasks = random_tasks(3, count=3, clone=True)
    loss, used = function_of(tasks, "reshuffled", 5)
    orders = [a + b[:2] for a in permutations(range(3)) for b in permutations(range(3))]
    x = np.linspace(0.9, 0.2, 5)
    expected = by_enumeration(tasks, orders, used.strength(x).__getitem__, np.zeros(3))
    assert loss.value(x) == pytest.approx(expected, rel=1e-10)


# ------------------------------------------------------------------------------------------------------ known answers


def test_no_point_of_a_fine_grid_is_better():
    tasks = random_tasks(5, count=3, noise=1.0)
    for ordering in ("with-replacement", "without-replacement"):
        best = fg.optimal_schedule(tasks, ordering, k=2)
        loss, _ = function_of(tasks, ordering, 2)
        grid = np.concatenate([np.linspace(0, 1, rounds(41, 101))[1:], np.geomspace(1e-6, 1e-2, rounds(8, 20))])
        lowest = min(loss.value(np.array(x)) for x in product(grid, repeat=2))
        assert best.loss <= lowest * (1 + 1e-9)
        assert best.loss == pytest.approx(lowest, rel=2e-2)


def test_in_one_dimension_the_strengths_are_those_of_a_kalman_filter():
    # lambda_t / sigma^2 = s^2 / v_(t-1), and 1 / v_t = 1 / v_(t-1) + 1 / s^2: strengths grow by sigma^2 a step
    tasks = fg.RegressionTasks([[[2.0]]] * 3, [[2.0], [4.0], [9.0]])
    targets, w0 = np.array([1.0, 2.0, 4.5]), 0.5
    spread, v = np.var(targets), (np.mean(targets) - w0) ** 2
    best = fg.optimal_schedule(tasks, "with-replacement", k=6, w0=[w0])
    assert best.certified
    assert "in one dimension" in best.reason
    np.testing.assert_allclose(best.strengths, 4 * (spread / v + np.arange(6)), rtol=1e-4)
    assert best.loss == pytest.approx(2 * (spread + 1 / (1 / v + 6 / spread)), rel=1e-9)


def test_orthogonal_tasks_with_a_common_solution_are_learned_to_convergence():
    for ordering in ("with-replacement", "without-replacement", [0, 0, 2]):
        best = fg.optimal_schedule(fg.families.orthogonal(4), ordering, k=3)
        assert best.certified
        assert best.loss == pytest.approx(best.unregularised, rel=1e-12)


def test_one_gradient_step_is_the_best_of_a_parabola():
    tasks, w0 = random_tasks(7, noise=1.0), np.array([1.0, 0.0, -1.0])
    best = fg.optimal_schedule(tasks, "with-replacement", 1, "step", w0=w0)
    values = [fg.expect(tasks, "with-replacement", 1, SGD(eta, "loss"), w0).loss for eta in (1e-3, 2e-3, 3e-3)]
    a, b, _ = np.polyfit([1e-3, 2e-3, 3e-3], values, 2)
    assert best.certified
    assert best.strengths[0] == pytest.approx(min(-b / (2 * a), 2 / tasks.radius**2), rel=1e-4)


@pytest.mark.parametrize("kind", ["step", "relaxation"])
def test_one_step_on_tasks_of_different_sizes_is_certified(kind):
    rng = np.random.default_rng(3)
    Xs = [size * rng.standard_normal((2, 2)) for size in (0.01, 1.0, 10.0)]
    tasks = fg.RegressionTasks(Xs, [rng.standard_normal(2) for _ in Xs])
    assert fg.optimal_schedule(tasks, "with-replacement", 1, kind, w0=[1.0, -1.0]).certified


def test_reaching_the_least_mean_loss_is_certified_and_nothing_else_by_chance():
    apart = fg.RegressionTasks([[[1.0]], [[1.0]]], [[0.0], [1.0]])
    assert fg.optimal_schedule(apart, [0, 1], k=2).certified  # w = 1/2
    noisy = fg.optimal_schedule(random_tasks(5, count=3, noise=1.0), "with-replacement", k=3)
    assert not noisy.certified
    assert "lower loss elsewhere is possible" in noisy.reason


# ------------------------------------------------------------------------------------------------------- nowhere worse


def test_a_schedule_is_never_worse_than_a_fixed_strength():
    for seed in range(rounds(12, 50)):
        rng = np.random.default_rng(seed)
        tasks = random_tasks(seed, count=3, noise=float(rng.choice([0.0, 0.1, 1.0])), outputs=[None, 2][seed % 2])
        ordering = ["with-replacement", "without-replacement", "cyclic"][seed % 3]
        k = int(rng.integers(1, 4))
        best = fg.optimal_schedule(tasks, ordering, k, ["ridge", "ridge", "relaxation", "step"][seed % 4])
        others = [best.fixed.loss] if best.by == "step" else [best.fixed.loss, best.unregularised]
        if best.by == "ridge":
            others += [best.levinstein, best.levinstein_fixed]
            around = [fg.expect(tasks, ordering, k, Ridge(10.0**power)).loss for power in (-2, 0, 2)]
            assert best.fixed.loss <= min(around) * (1 + 1e-9)
        assert best.loss <= min(others)
        again = fg.expect(tasks, ordering, k, best.scheme)
        assert float(again.loss) == best.loss
        assert float(again.uncertainty["loss"]) == best.uncertainty


def test_noise_of_labels_is_part_of_the_loss():
    tasks = random_tasks(2, count=3)
    best = fg.optimal_schedule(tasks, "without-replacement", 3, noise=0.7)
    assert best.loss < best.fixed.loss < best.unregularised
    assert float(fg.expect(tasks, "without-replacement", 3, best.scheme, noise=0.7).loss) == best.loss
    assert np.all(np.diff(best.strengths) > 0)


def test_the_search_looks_from_more_than_one_start(monkeypatch):
    """Sabotage: with the searches gone, the best fixed strength is what is left."""
    tasks = random_tasks(2, count=3, noise=0.7)
    monkeypatch.setattr(scheduled_loss, "_descend", lambda loss, start: (loss.value(start), start))
    best = fg.optimal_schedule(tasks, "without-replacement", 3)
    assert best.loss == best.fixed.loss


# ------------------------------------------------------------------------------------------------- the named strengths


def test_named_strengths_follow_their_formulas():
    tasks, k = random_tasks(0), 20
    size = tasks.radius**2
    assert Ridge("fixed").fitted_to(tasks, k).lam == pytest.approx(size * np.log(20))
    assert Ridge("fixed").fitted_to(tasks, 2).lam == pytest.approx(size)
    rising = Ridge("increasing").fitted_to(tasks, k)
    expected = [13 / 3 * size * 21 / (22 - t) for t in range(1, 21)]
    np.testing.assert_allclose([rising.made(t).lam for t in range(1, 21)], expected)


@pytest.mark.parametrize("word", ["fixed", "increasing"])
def test_named_strengths_work_by_words_and_are_those_of_their_numbers(word):
    tasks, k = random_tasks(0, noise=0.3), 6
    fitted = Ridge(word).fitted_to(tasks, k)
    numbers = [fitted.at_step(t) for t in range(1, k + 1)]
    for call in (fg.expect, fg.run):
        named, listed = call(tasks, "cyclic", k, f"ridge lam={word}"), call(tasks, "cyclic", k, Scheduled(numbers))
        np.testing.assert_allclose(
            np.asarray(named.loss if call is fg.expect else named.losses),
            np.asarray(listed.loss if call is fg.expect else listed.losses),
            rtol=1e-10,
        )
    runs = fg.run_many(tasks, "with-replacement", k, runs=20, scheme=Ridge(word))
    assert runs.losses.shape[0] == 20
    assert fg.expect(tasks, "with-replacement", k, Ridge(word)).method == "moments"


def test_a_named_strength_is_kept_in_the_result(tmp_path):
    e = fg.expect(random_tasks(0), "with-replacement", 4, "ridge lam=increasing")
    assert e.scheme == Ridge("increasing")
    e.save(tmp_path / "e.npz")
    assert type(e).load(tmp_path / "e.npz").scheme == Ridge("increasing")


# -------------------------------------------------------------------------------------------------- results and errors


def test_a_result_shows_itself_and_reloads(tmp_path):
    tasks = random_tasks(4, noise=0.5)
    best = fg.optimal_schedule(tasks, "with-replacement", 5)
    best.save(tmp_path / "best.npz")
    again = type(best).load(tmp_path / "best.npz")
    assert repr(again) == repr(best)
    assert again.fixed == best.fixed
    assert again.scheme == best.scheme
    assert list(best.to_frame()["lambda"]) == best.strengths.tolist()
    assert len(best.plot().lines) >= 2


def test_bad_input_is_named():
    tasks = random_tasks(0)
    with pytest.raises(InvalidInputError, match=r"kind.*'rigde'"):
        fg.optimal_schedule(tasks, "cyclic", 3, "rigde")
    with pytest.raises(InvalidInputError, match="k must be at least 1, got 0"):
        fg.optimal_schedule(tasks, "cyclic", 0)
    with pytest.raises(NotSupportedError, match="never look at w"):
        fg.optimal_schedule(tasks, "greedy-distance", 3)
    with pytest.raises(NotSupportedError, match="regression"):
        fg.optimal_schedule(fg.ConvexSets([fg.Ball([0.0], 1.0)]), "cyclic", 3)
    with pytest.raises(fg.errors.OrderingError, match="k"):
        fg.optimal_schedule(tasks, "without-replacement", 5)
    many = fg.families.gaussian(T=20, d=3, rank=1, seed=0)
    with pytest.raises(NotSupportedError, match="sets of tasks"):
        fg.optimal_schedule(many, "without-replacement", 20)
    with pytest.raises(InvalidInputError, match=r"lam.*'rising'"):
        Ridge("rising")
    with pytest.raises(InvalidInputError, match="fitted_to"):
        Ridge("fixed").gains(np.ones(1))


def test_a_loss_without_digits_in_float64_certifies_nothing():
    tasks = fg.RegressionTasks([[[3e-91], [2e-91]], [[2.34e-49]]], [[-0.46, 0.62], [0.888]])
    best = fg.optimal_schedule(tasks, "without-replacement", 1, "step", w0=[-2256.0])
    half = fg.expect(tasks, "without-replacement", 1, fg.schemes.SGD(1 / 2.34e-49**2, "loss"), w0=[-2256.0])
    assert half.loss < best.loss
    assert not best.certified
    assert "rescale" in best.reason


def test_strengths_far_below_the_sizes_of_the_tasks_are_searched_too():
    # the right strength leads the small task to the solution of the large one, from a start that is far away
    tasks = fg.RegressionTasks([[[105.0]], [[2.4e-4]]], [[-6.0], [-1.28e-5]])
    best = fg.optimal_schedule(tasks, "without-replacement", 1, w0=[-360.0])
    assert best.fixed.loss < 1e-6 < best.unregularised


@pytest.mark.parametrize("size", [1e-93, 1e91])
def test_tasks_of_any_size_have_a_best_strength(size):
    best = fg.optimal_schedule(fg.RegressionTasks([[[size]]], [[1.0]]), "cyclic", 1)
    assert best.certified
    assert best.loss < 1e-30
