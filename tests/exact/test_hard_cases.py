"""Cases that broke one step of the bound on errors, each against exact rational numbers."""

import numpy as np
import pytest
from flint import fmpq
from rationals import cyclic, enclosed_expectation, exact_expectation, rational, reshuffled, with_replacement

import forgetting as fg
from forgetting.compute import twofold
from forgetting.expectation.engines import exact as exact_engines

ORDERINGS = {
    "cyclic": (fg.orderings.Cyclic(), cyclic()),
    "with replacement": (fg.orderings.WithReplacement(), with_replacement()),
    "reshuffled": (fg.orderings.Reshuffled(), reshuffled()),
}


def inside(value, doubt, true):
    return abs(rational(float(value)) - true) <= rational(float(doubt))


@pytest.mark.parametrize("law", ORDERINGS)
@pytest.mark.parametrize(("large", "off"), [(1e8, 1e-20), (1e12, 1e-16), (1e20, 1e-8)])
def test_labels_that_no_w_fits_are_seen_beside_a_large_one(law, large, off):
    X = [[[1.0, 0, 0]], [[0, 1.0, 0]], [[0, 0.5, 0.875]], [[0, -0.5, 0.875]]]
    y, w0, k = [[large], [0.0], [0.0], [off]], [0.0, 1.0, 1.0], 120
    ordering, exact_law = ORDERINGS[law]
    found = fg.expect(fg.RegressionTasks(X, y), ordering, k, w0=w0, quantities=("loss",))
    (true,) = enclosed_expectation(X, y, law=exact_law, ks=[k], w0=w0)["loss"]
    assert float(true) > 1e-3 * off**2
    assert found.loss == pytest.approx(float(true), rel=1e-12)


@pytest.mark.parametrize(("x", "k"), [(1e140, 560), (1e8, 540), (1.0, 700)])
def test_what_falls_below_all_floats_on_the_way_is_not_called_zero(x, k):
    found = fg.expect(fg.RegressionTasks([[[x]]], [[x]]), fg.orderings.Cyclic(), k, fg.schemes.SGD(0.5))
    true = rational(x) ** 2 / 2 * fmpq(1, 4) ** k
    assert inside(found.loss, found.uncertainty["loss"], true)
    assert found.uncertainty["loss"] > 0


def test_a_value_far_below_the_scale_of_the_data_is_not_called_zero():
    s = 2.0**240
    for exponent in (400, 415, 450):
        X, y = [[[s, 0.0]], [[s * 2.0**-exponent, s]]], [[s * s], [s * s]]
        found = fg.expect(fg.RegressionTasks(X, y), fg.orderings.Cyclic(), 3, quantities=("loss",))
        assert inside(found.loss, found.uncertainty["loss"], exact_expectation(X, y, law=cyclic(), ks=[3])["loss"][0])


def test_moments_of_visits_stay_symmetric_in_float64():
    rng = np.random.default_rng(0)
    X = [rng.integers(-4, 5, (20, 20)).astype(float) for _ in range(40)]
    w = rng.integers(-3, 4, 20).astype(float)
    found = fg.expect(fg.RegressionTasks(X, [x @ w for x in X]), fg.orderings.WithReplacement(), [2, 3, 20])
    assert "16 digits" in found.detail
    assert np.all(np.abs(found.forgetting) <= found.uncertainty["forgetting"])  # every task determines w


def test_runs_in_float64_know_how_far_their_own_solution_is_off(monkeypatch):
    monkeypatch.setattr(exact_engines, "QUICK", 0.0)
    monkeypatch.setattr(exact_engines, "ENOUGH", np.inf)
    for seed in range(150):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 6))
        X = rng.integers(-9, 10, (d, 1, d)).astype(float)
        X[1:] = X[0] + 2.0 ** -int(rng.integers(3, 12)) * X[1:]
        w = rng.integers(-9, 10, d).astype(float)
        w0 = rng.integers(-9, 10, d).astype(float) if seed % 2 else np.zeros(d)
        y = [x @ w for x in X]
        tasks = fg.RegressionTasks(list(X), y)
        if tasks.rank_joint < d:
            continue
        names = ("loss", "error", "regret")
        found = fg.expect(tasks, fg.orderings.Cyclic(), [1, 2], w0=w0, quantities=names)
        assert "16 digits" in found.detail
        true = exact_expectation(X, y, law=cyclic(), ks=[1, 2], w0=w0)
        for name in names:
            rows = zip(found.values[name], found.uncertainty[name], true[name], strict=True)
            assert all(inside(*row) for row in rows), (seed, name)


def test_probabilities_that_are_rounded_are_part_of_the_uncertainty():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X, w = rng.integers(-9, 10, (2, 1, 2)).astype(float), rng.integers(-3, 4, 2).astype(float)
        if not X.any(axis=(1, 2)).all():
            continue
        y = [x @ w for x in X]
        norms = [int(np.sum(x**2)) for x in X]
        found = fg.expect(fg.RegressionTasks(list(X), y), fg.orderings.NormWeighted(), [1, 3], quantities=("regret",))
        true = exact_expectation(X, y, law=with_replacement(norms), ks=[1, 3])["regret"]
        assert all(inside(*row) for row in zip(found.regret, found.uncertainty["regret"], true, strict=True))


def test_the_error_of_kernel_tasks_is_that_of_the_function_for_every_method():
    tasks = fg.KernelTasks([[4.0]], [2.0], [0])
    for ordering in (fg.orderings.Cyclic(), fg.orderings.WithReplacement()):
        assert fg.expect(tasks, ordering, 0, quantities=("error",)).error == pytest.approx(1.0, rel=1e-12)


def test_schemes_that_diverge_have_an_uncertainty():
    for label in (20.0, 0.0):
        tasks = fg.RegressionTasks([[[20.0]]], [[label]])
        found = fg.expect(tasks, fg.orderings.Cyclic(), [0, 1, 2, 40], fg.schemes.FiniteSteps(200, 0.01))
        assert not np.isnan(found.uncertainty["loss"]).any()
        assert np.all(found.loss == 0) if label == 0 else np.all(found.loss[2:] == np.inf)
        assert np.all(np.isfinite(found.forgetting) <= ~np.isnan(found.uncertainty["forgetting"]))


def test_a_direction_that_was_taken_for_rounding_is_named():
    tiny = 2.0**-50
    near = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, tiny]]], [[1.0], [1 + tiny]])
    within = fg.RegressionTasks([[[1.0, 0.0], [1.0, tiny]], [[1.0, 1.0]]], [[1.0, 1 + tiny], [2.0]])
    for tasks in (near, within):
        (note,) = [note for note in fg.expect(tasks, fg.orderings.Cyclic(), 5).notes if "rounding" in note]
        assert note.startswith("some rows have directions of ")
    clear = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 2.0**-40]]], [[1.0], [1 + 2.0**-40]])
    assert fg.expect(clear, fg.orderings.Cyclic(), 5).notes == ()


def test_labels_that_no_w_fits_stay_unexplained_beside_rows_that_depend_up_to_rounding():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2, 4))
    X = [rng.standard_normal((3, 2)) @ np.diag([1.0, 1e-4]) @ rows for _ in range(2)]  # rank 2, up to rounding
    y = [rng.standard_normal(3) for _ in range(2)]
    tasks = fg.RegressionTasks(X, y)
    assert tasks.ranks.tolist() == [2, 2]
    best = [np.linalg.lstsq(x, label, rcond=1e-12)[0] for x, label in zip(X, y, strict=True)]
    for task in range(2):
        run = fg.run(tasks, fg.orderings.Explicit([task]), 1)
        left = 0.5 * float(np.sum((X[task] @ best[task] - y[task]) ** 2))
        assert left > 1e-3
        assert run.loss_matrix[-1, task] == pytest.approx(left, rel=1e-9)


def test_greedy_orders_are_chosen_with_all_digits(monkeypatch):
    """Where distances are rounding, float64 chooses by noise; another noise must not change the answer."""
    tasks = fg.families.gaussian(8, 6, 2, seed=2)
    turned = fg.RegressionTasks([tasks.task(m)[0][::-1] for m in range(8)], [tasks.task(m)[1][::-1] for m in range(8)])
    for ordering in (fg.orderings.GreedyDistance(), fg.orderings.GreedyResidual()):
        one, other = (fg.expect(problem, ordering, 400) for problem in (tasks, turned))
        assert one.loss == pytest.approx(other.loss, rel=1e-12)
        assert one.loss < 1e-30


@pytest.mark.parametrize("d", [1000, 30_000])
@pytest.mark.parametrize("kind", ["constant", "random"])
def test_parallel_rows_of_wide_tasks_are_one_direction(d, kind):
    row = np.ones(d) if kind == "constant" else np.random.default_rng(d).standard_normal(d)
    apart = fg.RegressionTasks([row[None], 3 * row[None], 0.1 * row[None]], [[1.0], [3.0], [0.1]])
    assert apart.geometry.dim == 1
    assert apart.loss(apart.w_star) <= 1e-25
    together = fg.RegressionTasks([np.stack([row, 3 * row, 0.1 * row])], [[1.0, 3.0, 0.1]])
    assert together.ranks.tolist() == [1]


def test_a_matrix_without_full_column_rank_has_no_least_squares_solution():
    matrix = np.array([[1.0, 0.0], [2.0, 0.0]])
    high, _ = twofold.least_squares(matrix, np.zeros((2, 2)), np.ones(2), np.zeros(2))
    assert np.isnan(high).all()
