"""Noise: rules that stop a solve, on residuals that are computed; weights of rows; every right-hand side on its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.solver.noise_rules import by_frequency, whiteness

rng = np.random.default_rng(3)
A = rng.standard_normal((60, 20)) * np.logspace(0, -2, 20)
X = rng.standard_normal((20, 3))
SIGMA = 0.05
B = A @ X + SIGMA * rng.standard_normal((60, 3))
b = B[:, 0]


class Sliced:
    """An object with a shape and row slices."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, rows):
        return self.array[rows]


def ratio(x, side=b, sigma=SIGMA, rows=slice(None)):
    """The mean of (r_i / sigma_i)^2."""
    return np.mean(((side - A @ x) / sigma)[rows] ** 2)


# -------------------------------------------------------------------------------------------- the discrepancy principle


@pytest.mark.parametrize("relaxation", [0.3, "auto", [1.0, 0.5, 0.25], lambda epoch: 1 / (1 + epoch)])
@pytest.mark.parametrize("options", [{}, {"blocks": 7}, {"tau": 1.2}, {"ordering": "with-replacement"}])
def test_the_first_epoch_whose_true_residual_is_at_most_tau_times_the_noise_is_the_last(relaxation, options):
    ratios = []
    found = fg.solve(A, b, noise=SIGMA, relaxation=relaxation, callback=lambda x: ratios.append(ratio(x)), **options)
    tau = options.get("tau", 1.02)
    assert found.converged, found.status
    assert ratios[-1] <= tau**2
    assert min(ratios[:-1], default=np.inf) > tau**2
    assert np.isclose(ratio(found.x), ratios[-1])
    assert found.rule == "discrepancy"
    assert found.stop_epochs.tolist() == [found.epochs]
    assert f"stopped by the discrepancy principle at epoch {found.epochs:.4g}" in found.status


def test_the_history_of_a_solve_with_noise_holds_computed_residuals_alone():
    residuals = []
    found = fg.solve(
        A, b, noise=SIGMA, callback=lambda x: residuals.append(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    )
    assert found.history.checked.all()
    np.testing.assert_allclose(found.history.residual, residuals, rtol=1e-12)
    assert np.isclose(found.residual, residuals[-1])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, Sliced], ids=["dense", "sparse", "streamed"])
def test_a_relative_level_is_the_norm_of_the_noise_divided_by_that_of_b(make):
    level = 0.2
    options = {"memory": 4 * 9 * 320, "blocks": 9} if make is Sliced else {}
    found = fg.solve(make(A), b, noise=("relative", level), relaxation=0.3, **options)
    assert found.converged
    assert found.residual <= 1.02 * level
    assert found.history.residual[:-1].min(initial=np.inf) > 1.02 * level


def test_a_number_a_list_of_it_and_the_relative_level_are_the_same_noise():
    plain = fg.solve(A, b, noise=SIGMA, relaxation="auto")
    level = SIGMA * np.sqrt(60) / np.linalg.norm(b)
    for noise in (np.full(60, SIGMA), [SIGMA] * 60, ("relative", level)):
        other = fg.solve(A, b, noise=noise, relaxation="auto")
        assert other.status == plain.status
        np.testing.assert_allclose(other.x, plain.x, rtol=1e-10)


def test_the_solve_begins_with_the_residual_of_x0():
    start = np.linalg.lstsq(A, b, rcond=None)[0]
    found = fg.solve(A, b, x0=start, noise=SIGMA)
    assert (found.epochs, found.stop_epochs.tolist()) == (0, [0])
    assert found.converged
    np.testing.assert_array_equal(found.x, start)


def test_rows_of_unequal_noise_are_weighted_by_it():
    sigma = np.geomspace(0.01, 1.0, 60)
    side = A @ X[:, 0] + sigma * np.random.default_rng(1).standard_normal(60)
    found = fg.solve(A, side, noise=sigma, relaxation="auto")
    assert found.converged
    assert ratio(found.x, side, sigma) <= 1.02**2
    factors = sigma.max() / sigma
    same = fg.solve(A * factors[:, None], side * factors, noise=sigma.max(), relaxation="auto")
    np.testing.assert_allclose(found.x, same.x, rtol=1e-9)


def test_rows_of_zeros_do_not_count():
    matrix, side = np.vstack([A, np.zeros((200, 20))]), np.concatenate([b, np.full(200, 0.2 * SIGMA)])
    found = fg.solve(matrix, side, noise=SIGMA, relaxation="auto")
    assert found.converged
    assert ratio(found.x) <= 1.02**2  # over 260 rows the mean would be small from the start
    streamed = fg.solve(Sliced(matrix), side, noise=SIGMA, memory=4 * 40 * 320, blocks=40)
    assert ratio(streamed.x) <= 1.02**2


@pytest.mark.parametrize("bounds", [None, (-3.0, 3.0)])
def test_rows_without_noise_hold_to_the_tolerance_and_do_not_count(bounds):
    sigma = np.where(np.arange(60) % 20 == 0, 0.0, SIGMA)
    side = A @ X[:, 0] + sigma * np.random.default_rng(2).standard_normal(60)
    found = fg.solve(A, side, noise=sigma, relaxation="auto", bounds=bounds, tol=1e-8)
    noisy = sigma > 0
    assert found.converged, found.status
    assert np.linalg.norm((side - A @ found.x)[~noisy]) <= 1e-8 * np.linalg.norm(side[~noisy])
    assert ratio(found.x, side, SIGMA, noisy) <= 1.02**2
    start = np.linalg.lstsq(A[noisy], side[noisy], rcond=None)[0]
    warm = fg.solve(A, side, noise=sigma, relaxation="auto", x0=start, tol=1e-8, bounds=bounds)
    assert warm.stop_epochs[0] > 0  # the noisy rows are solved by x0, the others are not


def test_rows_without_noise_that_contradict_each_other_are_said_to_keep_the_rule_from_stopping():
    matrix, side = np.vstack([A, A[:1]]), np.append(b, b[0] + 1)
    found = fg.solve(matrix, side, noise=[0.0] + [10.0] * 59 + [0.0], maxiter=5)
    assert not found.converged
    left = np.linalg.norm((side - matrix @ found.x)[[0, 60]]) / np.linalg.norm(side[[0, 60]])
    assert f"rows without noise have the relative residual {left:.2g}, above 1e-06" in found.status


def test_no_noise_at_all_is_an_ordinary_solve():
    consistent = A @ X[:, 0]
    plain = fg.solve(A, consistent)
    for noise in (0, np.zeros(60), ("relative", 0)):
        other = fg.solve(A, consistent, noise=noise)
        assert (other.status, other.rule) == (plain.status, None)


@pytest.mark.parametrize("make", [np.asarray, Sliced], ids=["dense", "streamed"])
def test_each_right_hand_side_is_stopped_as_if_it_were_alone(make):
    options = {"noise": 3 * SIGMA, "relaxation": 0.25}  # in reach of these steps, which are never shortened
    options |= {"memory": 4 * 9 * 320, "blocks": 9} if make is Sliced else {"blocks": "rows"}
    together = fg.solve(make(A), B, **options)
    assert together.converged
    assert len(set(together.stop_epochs)) > 1
    for column in range(3):
        alone = fg.solve(make(A), B[:, column], **options)
        assert together.stop_epochs[column] == alone.stop_epochs[0]
        np.testing.assert_allclose(together.x[:, column], alone.x, rtol=1e-9)


def test_a_right_hand_side_of_zeros_has_no_relative_noise():
    found = fg.solve(A, np.column_stack([b, np.zeros(60)]), noise=("relative", 0.2), relaxation=0.3)
    assert found.converged
    assert found.stop_epochs[1] == 0
    assert not found.x[:, 1].any()


def test_noise_that_is_too_small_is_said():
    found = fg.solve(A, b, noise=SIGMA / 10)
    assert not found.converged
    assert "noise= is too small, the least-squares residual is above it" in found.status
    assert np.isnan(found.stop_epochs).all()


def test_the_residual_of_a_damped_solution_above_the_noise_is_said_to_be_damped():
    found = fg.solve(A, b, noise=2 * SIGMA, damp=50.0)
    assert "noise= is too small or damp= too large, the least-squares residual with damp is above it" in found.status


def test_a_stop_off_the_sets_is_no_solution():
    box, ball = fg.Box(np.zeros(20), np.full(20, 9.0)), fg.Ball(np.full(20, -1.0), 4.6)
    found = fg.solve(A, b, noise=40 * SIGMA, sets=[box, ball], x0=np.full(20, 5.0), relaxation="auto")
    assert found.stop_epochs[0] > 0
    off = max(box.distance(found.x), ball.distance(found.x)) / np.linalg.norm(found.x)
    assert found.converged == (off <= 1e-6)
    assert ("off the sets" in found.status) == (off > 1e-6)
    inside = fg.solve(A, b, noise=2 * SIGMA, sets=fg.Ball(np.zeros(20), 9.0), relaxation="auto")
    assert inside.converged


def test_steps_are_shortened_where_the_residual_stays_above_the_noise():
    """Row steps of length 1 go round in circles above the noise: shorter ones do not."""
    tall = np.random.default_rng(5).standard_normal((400, 20))
    side = tall @ X[:, 0] + SIGMA * np.random.default_rng(6).standard_normal(400)
    found = fg.solve(tall, side, noise=SIGMA)
    assert found.converged
    assert "relaxation shortened" in found.status
    assert np.linalg.norm(found.x - X[:, 0]) < np.linalg.norm(
        fg.solve(tall, side, tol=0, maxiter=5, method="kaczmarz").x - X[:, 0]
    )


@pytest.mark.parametrize(("bounds", "other"), [(None, "multipliers"), ((-9.0, 9.0), "projected")])
def test_least_squares_methods_go_on_where_row_steps_are_of_no_use(bounds, other):
    """Kaczmarz weighs rows by 1 / |a_i|^2: beside rows of another size, its limit may be above the noise."""
    sizes = np.where(np.arange(60) < 30, 1.0, 0.3)
    matrix = np.random.default_rng(7).standard_normal((60, 20)) * sizes[:, None]
    side = matrix @ X[:, 0] + SIGMA * np.random.default_rng(8).standard_normal(60)
    least = np.linalg.lstsq(matrix, side, rcond=None)[0]
    sigma = np.sqrt(np.mean((side - matrix @ least) ** 2)) / 1.01
    found = fg.solve(matrix, side, noise=sigma, bounds=bounds)
    assert found.converged, found.status
    assert found.method == f"kaczmarz, then {other}"


# ------------------------------------------------------------------------------------------------------ the other rules

T = (np.arange(128) + 0.5) / 128
BLUR = np.exp(-(((T[:, None] - T) / 0.03) ** 2) / 2)
BLUR /= BLUR.sum(axis=1, keepdims=True)
WAVE = np.exp(-(((T - 0.3) / 0.06) ** 2))
BLURRED = BLUR @ WAVE + 0.01 * np.random.default_rng(0).standard_normal(128)


def test_the_periodogram_keeps_the_x_whose_residual_is_most_like_white_noise():
    seen = []
    found = fg.solve(BLUR, BLURRED, stop="ncp", relaxation=0.3, callback=seen.append)
    order = by_frequency((128,))
    distances = [whiteness(BLURRED - BLUR @ x, order) for x in seen]
    best = int(np.argmin(distances))
    assert found.converged
    assert found.stop_epochs.tolist() == [best + 1]
    assert len(seen) >= best + 11  # it was waited for a smaller one
    np.testing.assert_array_equal(found.x, seen[best])
    assert "the rows as one series because residual_shape= was not given" in found.status
    said = fg.solve(BLUR, BLURRED, stop="ncp", relaxation=0.3, residual_shape=(128,))
    assert "one series" not in said.status
    np.testing.assert_array_equal(said.x, found.x)


def test_the_periodogram_of_a_complex_residual_is_that_of_complex_numbers():
    matrix = BLUR * np.exp(2j * (T[:, None] - T))
    noise = np.array([1, 1j]) @ np.random.default_rng(0).standard_normal((2, 128))
    side, seen = matrix @ WAVE + 0.01 * noise, []
    found = fg.solve(matrix, side, stop="ncp", relaxation=0.3, callback=seen.append, residual_shape=(128,))
    distances = [whiteness(side - matrix @ x, by_frequency((128,))) for x in seen]
    assert found.stop_epochs.tolist() == [int(np.argmin(distances)) + 1]
    np.testing.assert_array_equal(found.x, seen[int(np.argmin(distances))])


def test_the_distance_from_white_noise_is_that_of_cumulative_sums():
    residual = np.random.default_rng(4).standard_normal((4, 6))
    power = np.abs(np.fft.fft2(residual)) ** 2
    waves = sorted(
        (round(np.hypot(np.fft.fftfreq(4)[i], np.fft.fftfreq(6)[j]), 9), i * 6 + j, power[i, j])
        for i in range(4)
        for j in range(6)
    )[1:]
    sums = np.cumsum([power for *_, power in waves])
    wanted = np.sqrt(np.mean((sums / sums[-1] - np.arange(1, 24) / 23) ** 2))
    assert np.isclose(whiteness(residual, by_frequency((4, 6))), wanted)


def test_a_periodogram_that_sees_no_signal_says_so():
    """The residual of random rows is as white as noise from the start."""
    matrix = np.random.default_rng(9).standard_normal((300, 40))
    found = fg.solve(matrix, matrix @ np.ones(40), stop="ncp", x0=None)
    if found.stop_epochs[0] == 0:
        assert not found.converged
        assert "sees no signal" in found.status


@pytest.mark.parametrize(
    "options",
    [{"average": "all", "blocks": "rows", "relaxation": 1.0}, {"method": "sirt"}, {"method": "sirt", "bounds": (0, 2)}],
)
def test_no_step_before_the_monotone_rule_moves_away_from_the_solution(options):
    """With the true norm of the noise in place of the expected one, the rule is a theorem."""
    matrix = np.abs(A)
    truth = np.abs(X[:, 0])
    noise = 6 * SIGMA * np.random.default_rng(11).standard_normal(60)
    sums = np.abs(matrix).sum(axis=1)
    weights = 1 / sums if "method" in options else 1 / np.sum(matrix**2, axis=1)
    sigma = np.sqrt(np.sum(weights * noise**2) / np.sum(weights))
    metric = matrix.sum(axis=0) if "method" in options else np.ones(20)
    errors = [np.sum(metric * truth**2)]
    found = fg.solve(
        matrix, matrix @ truth + noise, noise=sigma, stop="monotone", tau=1.0,
        callback=lambda x: errors.append(np.sum(metric * (x - truth) ** 2)), **options,
    )  # fmt: skip
    assert found.converged, found.status
    assert len(errors) > 5
    assert (np.diff(errors) <= 0).all()
    assert "stopped by the monotone error rule at epoch" in found.status


def test_the_monotone_rule_stops_at_the_first_step_that_is_not_known_to_help():
    options = {"noise": SIGMA, "stop": "monotone", "average": "all", "blocks": "rows", "relaxation": 20.0}
    seen = [np.zeros(20)]
    found = fg.solve(A, b, callback=seen.append, **options)
    weights = 1 / np.sum(A**2, axis=1) / 60
    delta = SIGMA * np.sqrt(weights.sum())

    def helps(x):
        residual = b - A @ x
        size = np.sum(weights * residual**2)
        step = A.T @ (weights * residual)
        return 2 * size - 20.0 * step @ step > 2 * 1.02 * delta * np.sqrt(size)

    assert [helps(x) for x in seen] == [True] * (len(seen) - 1) + [False]
    np.testing.assert_array_equal(found.x, seen[-1])


@pytest.mark.parametrize("options", [{"noise": 1e-12}, {"stop": "ncp"}])
def test_a_system_that_is_solved_before_the_rule_stops_is_said_to_be_solved(options):
    matrix = np.linspace(1, 2, 5)[None] if "stop" in options else A[:4]
    found = fg.solve(matrix, matrix @ np.ones(matrix.shape[1]), **options)
    assert found.converged
    assert found.residual <= 1e-6
    assert found.status.startswith("converged: solved to 1e-06 before the")
    assert np.isnan(found.stop_epochs).all()


@pytest.mark.parametrize(
    ("name", "other"), [("noise", None), ("noise", 0.1), ("stop", "ncp"), ("tau", 1.5), ("residual_shape", (6, 10))]
)
def test_a_checkpoint_of_another_rule_is_refused_by_the_name_of_what_differs(name, other, tmp_path):
    options = {"noise": 0.01, "maxiter": 2, "checkpoint": tmp_path / "state.npz"}
    fg.solve(A, b, **options)
    with pytest.raises(InvalidInputError, match=f"another solve: {name} differs"):
        fg.solve(A, b, **options | {name: other})


# -------------------------------------------------------------------------------------------------- weights, bad input


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, Sliced], ids=["dense", "sparse", "streamed"])
def test_weighted_rows_give_weighted_least_squares(make):
    weights = np.linspace(0, 2, 60)
    given = weights.copy()
    roots = np.sqrt(weights)
    options = {"memory": 4 * 9 * 320, "blocks": 9} if make is Sliced else {}
    matrix = np.random.default_rng(17).standard_normal((60, 20))
    found = fg.solve(make(matrix), b, weights=weights, method="multipliers", tol=1e-8, **options)
    best = np.linalg.lstsq(matrix * roots[:, None], b * roots, rcond=None)[0]
    np.testing.assert_allclose(found.x, best, atol=1e-6 * np.linalg.norm(best))
    assert np.isclose(found.residual, np.linalg.norm(roots * (b - matrix @ found.x)) / np.linalg.norm(roots * b))
    np.testing.assert_array_equal(weights, given)


BAD = {
    "negative": ({"noise": -1.0}, "noise must be at least 0, got -1"),
    "negative row": ({"noise": [0.1, -0.2] * 30}, "noise: the number of row 1 is -0.2; it must not be negative"),
    "length": ({"noise": [0.1, 0.2]}, r"noise: expected one number for each of 60 rows, got shape \(2,\)"),
    "nan": ({"noise": np.where(np.arange(60) == 7, np.nan, 0.1)}, "noise: entry 7 is nan"),
    "complex": ({"noise": 0.1j}, "noise must be a number"),
    "word": ({"noise": "relative"}, r"noise: expected a number, one for each row, or \('relative', 0.05\)"),
    "level": ({"noise": ("relative", -0.1)}, "relative level must be at least 0"),
    "vanishing": ({"noise": 1e-300}, "noise: the square of 1e-300 vanishes"),
    "overflowing": ({"noise": [1e250] * 60}, r"noise: the square of 1e\+250 overflows"),
    "unequal": ({"noise": [0.1] * 59 + [1e-300]}, "the number of row 59 is 1e-300 and the largest 0.1, too"),
    "noise, large A": ({"A": A * 1e100, "noise": [1e-99] + [1.0] * 59}, "A times max.noise. / noise: .* overflow"),
    "weights, large A": ({"A": A * 1e100, "weights": [1e200] * 60}, r"A times sqrt.weights.: .* overflow when squared"),
    "both": ({"noise": 0.1, "weights": np.ones(60)}, "noise= and weights= together"),
    "weights, length": ({"weights": np.ones(5)}, r"weights: expected one number for each of 60 rows, got shape \(5,\)"),
    "weights, negative": ({"weights": -np.ones(60)}, "weights: the number of row 0 is -1"),
    "weights, nothing": ({"weights": np.zeros(60)}, "weights: all are 0"),
    "rule": ({"noise": 0.1, "stop": "ncpp"}, "no stopping rule 'ncpp'; did you mean 'ncp'"),
    "rule without noise": ({"stop": "discrepancy"}, "stop='discrepancy' needs noise= above 0"),
    "tau": ({"noise": 0.1, "tau": 0}, "tau must be greater than 0"),
    "shape": ({"stop": "ncp", "residual_shape": (7, 8)}, r"residual_shape \(7, 8\) is for 56 rows, but A has 60"),
    "no shape": ({"stop": "ncp", "residual_shape": 60}, "residual_shape: expected lengths such as"),
    "matrix": ({"A": np.where(A[3, 1] == A, np.nan, A), "noise": 0.1}, "A: entry at row 3, column 1 is nan"),
    "side": ({"b": np.where(np.arange(60) == 4, np.nan, b), "noise": 0.1}, "b: entry 4 is nan"),
}
MISFITS = {
    "monotone": ({"noise": 0.1, "stop": "monotone"}, "stop='monotone' is for methods that make all steps of an epoch"),
    "monotone, exact rows": (
        {"noise": [0, 0.1] * 30, "stop": "monotone", "method": "sirt"},
        r"stop='monotone' is for .* \(no inequalities, sets or exact rows\)",
    ),
    "monotone, sets": (
        {"noise": 0.1, "stop": "monotone", "method": "sirt", "sets": fg.Ball(np.zeros(20), 1.0)},
        r"stop='monotone' is for .* \(no inequalities, sets or exact rows\)",
    ),
    "exact rows": ({"noise": [0, 0.1] * 30, "method": "multipliers"}, "row 0 has none, which needs method='kaczmarz'"),
    "exact rows, streamed": (
        {"A": Sliced(A), "noise": [0.1, 0] * 30, "memory": 4 * 9 * 320, "blocks": 9},
        "row 1 has none, and A is streamed block by block",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_noise_weights_and_rules_are_named(name):
    options, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(**{"A": A, "b": b} | options)


@pytest.mark.parametrize("name", MISFITS)
def test_rules_that_do_not_fit_the_method_say_what_does(name):
    options, message = MISFITS[name]
    with pytest.raises(NotSupportedError, match=message):
        fg.solve(**{"A": A, "b": b} | options)


def test_a_solution_with_a_rule_is_saved_and_loaded(tmp_path):
    found = fg.solve(A, B, noise=SIGMA, relaxation="auto")
    found.save(tmp_path / "s.npz")
    loaded = fg.solver.Solution.load(tmp_path / "s.npz")
    assert (loaded.status, loaded.rule) == (found.status, "discrepancy")
    np.testing.assert_array_equal(loaded.stop_epochs, found.stop_epochs)
    assert str(found.guarantee) == "no theorem here covers noise, and rules that stop at it"


def test_a_row_of_zeros_without_noise_that_no_x_solves_is_named():
    A = np.vstack([np.eye(3), np.zeros((1, 3))])
    for matrix, wanted in ((A, 3), (1j * A, 3)):
        with pytest.raises(InvalidInputError, match=f"row {wanted} has none, all its entries are 0 and b is 2 there"):
            fg.solve(matrix, [1.0, 1.0, 1.0, 2.0], noise=[0.1, 0.1, 0.1, 0.0])
    assert fg.solve(A, [1.0, 1.0, 1.0, 0.0], noise=[0.1, 0.1, 0.1, 0.0]).converged


def test_the_periodogram_says_of_how_many_right_hand_sides_it_sees_nothing():
    rng = np.random.default_rng(3)
    t = np.linspace(0, 1, 60)
    kernel = np.exp(-(((t[:, None] - t) / 0.05) ** 2) / 2)
    signal = kernel @ np.sin(5 * t) + 0.01 * rng.standard_normal(60)
    found = fg.solve(kernel, np.stack([signal, rng.standard_normal(60)], axis=1), stop="ncp", relaxation=0.2)
    assert found.stop_epochs[0] > 0
    assert found.stop_epochs[1] == 0
    assert "sees no signal of 1 of 2 right-hand sides" in found.status
    assert "their x is x0" in found.status
