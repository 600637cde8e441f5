"""Bounds on tasks that no w solves, against expectations by dense matrices that use nothing of the library.

Expectations are second moments of (w - w_0, 1): E v v^T after a step is sum_m p_m A_m E v v^T A_m^T.
"""

import numpy as np
import pytest

import forgetting as fg
from effort import each
from forgetting.bounds import Misfit, Setting, evaluate, get
from forgetting.claims import Instance
from forgetting.theory.checking import noise_from_data
from forgetting.theory.noisy_draws import near, noisy_projected

ERROR, LOSS, CENTRED, MEAN = (f"here:noise/{end}" for end in ("error", "loss", "loss/centred", "averaged_loss"))
ROWS = "needell2010:single rows/error"
SEEDS = range(220)


def random_problem(seed):
    """Blocks (X_m, y_m) that no w solves, weights p and a start, in up to 4 dimensions."""
    rng = np.random.default_rng(seed)
    while True:
        d, T = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        matrices = [rng.standard_normal((rng.integers(1, d + 1), d)) * 10.0 ** rng.uniform(-1, 1) for _ in range(T)]
        labels = [X @ np.ones(d) + 10.0 ** rng.uniform(-2, 1) * rng.standard_normal(len(X)) for X in matrices]
        tasks = fg.RegressionTasks(matrices, labels)
        if not tasks.realizability.holds:
            return tasks, rng.dirichlet(np.ones(T)) + 1e-3, rng.standard_normal(d) * rng.integers(2), rng


class Dense:
    """Expectations of block Kaczmarz by dense second moments."""

    def __init__(self, tasks, p, w0, k):
        self.blocks = [tasks.task(m) for m in range(tasks.num_tasks)]
        self.T, self.d, self.p = tasks.num_tasks, tasks.dim, p / np.sum(p)
        self.inverses = [np.linalg.pinv(X) for X, _ in self.blocks]
        d = self.d
        self.moment = np.outer(start := np.append(w0, 1.0), start)
        one = np.eye(d + 1)
        total = np.zeros((2 * d + 2, 2 * d + 2))  # of (v, v_0 + ... + v_(t-1))
        total[: d + 1, : d + 1] = self.moment
        maps = []
        for inverse, (X, y) in zip(self.inverses, self.blocks, strict=True):
            step = np.eye(d + 1)
            step[:d, :d] -= inverse @ X
            step[:d, d] = inverse @ y
            maps.append(np.block([[step, 0 * one], [one, one]]))
        for _ in range(k):
            total = sum(q * A @ total @ A.T for q, A in zip(self.p, maps, strict=True))
        self.moment, self.sums = total[: d + 1, : d + 1], total[d + 1 :, d + 1 :] / k**2

    def loss(self, moment):
        forms = [np.column_stack([X, -y]) for X, y in self.blocks]
        return sum(np.trace(form @ moment @ form.T) for form in forms) / (2 * self.T)

    def error(self, x):
        form = np.column_stack([np.eye(self.d), -x])
        return np.trace(form @ self.moment @ form.T)


def values(rows):
    return {row.bound.key: row.value for row in rows if row.applies}


@each("seed", SEEDS)
def test_expectations_are_within_the_bounds(seed):
    tasks, p, w0, rng = random_problem(seed)
    k = int(rng.integers(1, 40))
    dense, order = Dense(tasks, p, w0, k), fg.orderings.WithReplacement(p)
    X, y = (np.concatenate(parts) for parts in zip(*dense.blocks, strict=True))
    best = w0 + np.linalg.lstsq(X, y - X @ w0, rcond=None)[0]
    rows = evaluate(tasks, order, k, w0)
    bound = values(rows)
    assert set(bound) == {ERROR, LOSS, CENTRED, MEAN, "floor/loss", "floor/averaged_loss", "attia2025:noise/objective"}
    assert rows.setting.dist_sq == pytest.approx(np.sum((best - w0) ** 2), rel=1e-7)
    error, loss, mean = dense.error(best), dense.loss(dense.moment), dense.loss(dense.sums)
    floor = np.mean([np.sum((A @ best - b) ** 2) / 2 for A, b in dense.blocks])
    assert bound["floor/loss"] == bound["floor/averaged_loss"] == pytest.approx(floor, rel=1e-7)
    assert floor <= min(loss, mean) * (1 + 1e-9)
    assert error <= bound[ERROR] * (1 + 1e-9)
    assert loss <= min(bound[LOSS], bound[CENTRED]) * (1 + 1e-9)
    assert mean <= bound[MEAN] * (1 + 1e-9)
    exact = fg.expect(tasks, order, k, w0=w0, quantities=("loss", "averaged_loss"))
    np.testing.assert_allclose([exact.loss, exact.averaged_loss], [loss, mean], rtol=1e-8)


@each("seed", SEEDS)
def test_single_rows_are_within_the_horizon(seed):
    rng = np.random.default_rng([seed, 7])
    d = int(rng.integers(1, 5))
    rows = rng.standard_normal((d + int(rng.integers(1, 6)), d)) * 10.0 ** rng.uniform(-1, 1)
    rows[:, : d // 2 * int(rng.integers(2))] *= 0.01  # badly scaled columns, half of the time
    tasks = fg.RegressionTasks(list(rows[:, None]), list(rng.standard_normal((len(rows), 1))))
    assert not tasks.realizability.holds
    start, k = rng.standard_normal(d) * rng.integers(2), int(rng.integers(1, 60))
    dense = Dense(tasks, tasks.norms**2, start, k)
    X, y = (np.concatenate(parts) for parts in zip(*dense.blocks, strict=True))
    best = start + np.linalg.lstsq(X, y - X @ start, rcond=None)[0]
    sizes = np.linalg.svd(X, compute_uv=False)
    kappa = np.sum(sizes**2) / np.min(sizes[sizes > 1e-10 * sizes[0]]) ** 2
    off = (y - X @ best) ** 2
    away = (1 - 1 / kappa) ** k * np.sum((best - start) ** 2)
    by_hand = away + kappa * np.max(off / np.sum(X**2, axis=1))
    bound = values(evaluate(tasks, fg.orderings.NormWeighted(), k, start))
    assert bound[ROWS] == pytest.approx(by_hand, rel=1e-6)
    assert dense.error(best) <= bound[ERROR] * (1 + 1e-9)
    assert bound[ERROR] <= bound[ROWS] * (1 + 1e-9)
    horizon = kappa / np.sum(sizes**2) * np.sum(off)  # |y - X w*|^2 / sigma_min^2
    assert bound[ERROR] == pytest.approx(away + horizon * (1 - (1 - 1 / kappa) ** k), rel=1e-6)


# Each line of the proofs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_each_line_of_the_proofs(seed):
    tasks, p, w0, rng = random_problem(seed)
    dense = Dense(tasks, p, w0, 1)
    p, d, blocks = dense.p, tasks.dim, dense.blocks
    onto = [inverse @ X for inverse, (X, _) in zip(dense.inverses, blocks, strict=True)]
    mean = sum(q * P for q, P in zip(p, onto, strict=True))
    if np.linalg.eigvalsh(mean)[0] < 1e-9:
        pytest.skip("the tasks do not span")
    lam, H = min(np.linalg.eigvalsh(mean)[0], 1.0), sum(X.T @ X for X, _ in blocks) / len(blocks)
    top = np.linalg.eigvalsh(H)[-1]

    def moves(x):
        return [inverse @ (y - X @ x) for inverse, (X, y) in zip(dense.inverses, blocks, strict=True)]

    def noise(x):
        return sum(q * c @ c for q, c in zip(p, moves(x), strict=True))

    def loss(x):
        return np.mean([np.sum((X @ x - y) ** 2) / 2 for X, y in blocks])

    X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    best = np.linalg.lstsq(X, y, rcond=None)[0]
    centre = np.linalg.solve(mean, sum(q * c for q, c in zip(p, moves(np.zeros(d)), strict=True)))
    any_x, w = rng.standard_normal((2, d))
    for m, (inverse, (X, y)) in enumerate(zip(dense.inverses, blocks, strict=True)):
        z, c = w - any_x, moves(any_x)[m]
        after = w - inverse @ (X @ w - y) - any_x
        np.testing.assert_allclose(after, z - onto[m] @ z + c, atol=1e-9)
        assert after @ after == pytest.approx(z @ z - z @ onto[m] @ z + c @ c, rel=1e-9)  # (11)
    assert z @ (np.eye(d) - mean) @ z <= (1 - lam) * z @ z + 1e-12 * z @ z  # (12)
    gap = w - best
    assert loss(w) == pytest.approx(loss(best) + gap @ H @ gap / 2, rel=1e-9)  # (13)
    np.testing.assert_allclose(sum(q * c for q, c in zip(p, moves(centre), strict=True)), 0, atol=1e-9)  # (14)
    slope = sum(X.T @ (X @ centre - y) for X, y in blocks) / len(blocks)
    assert loss(w) == pytest.approx(loss(centre) + slope @ (w - centre) + (w - centre) @ H @ (w - centre) / 2, rel=1e-9)
    off = best - centre
    assert noise(best) == pytest.approx(noise(centre) + off @ mean @ off, rel=1e-8)  # (15)
    assert loss(centre) + top * noise(centre) / (2 * lam) <= (loss(best) + top * noise(best) / (2 * lam)) * (1 + 1e-9)
    contraction = np.eye(d) - mean
    for power in (1, 2, 5):
        assert z @ np.linalg.matrix_power(contraction, power) @ z <= (1 - lam) ** power * z @ z + 1e-12 * z @ z  # (16)
    for k in (1, 2, 7):
        sums, size = Dense(tasks, p, w0, k).sums, np.sum((w0 - centre) ** 2)
        form = np.column_stack([np.eye(d), -centre])
        bound = (2 - lam) / (lam * k) ** 2 * (size + (k - 1) * noise(centre))
        assert np.trace(form @ sums @ form.T) <= bound * (1 + 1e-9)  # (17)


# Equality -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 9, 60])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_orthogonal_rows_with_two_labels_each_reach_the_horizon(dim, k):
    # lambda_min = 1/d, N = 9/4, w* = 1, H = 1/d, floor = (3/2)^2 / 2, so that
    # E|w_k - w*|^2 = l^k d + 9/4 d (1 - l^k) for l = 1 - 1/d, and L = 9/8 + E|w_k - w*|^2 / (2 d)
    rows = list(np.eye(dim)[:, None])
    tasks = fg.RegressionTasks([*rows, *rows], [[2.5]] * dim + [[-0.5]] * dim)
    order, left = fg.orderings.WithReplacement(), (1 - 1 / dim) ** k
    bound, error = values(evaluate(tasks, order, k)), left * dim + 2.25 * dim * (1 - left)
    assert Dense(tasks, np.ones(2 * dim), np.zeros(dim), k).error(np.ones(dim)) == pytest.approx(error, rel=1e-12)
    assert bound[ERROR] == pytest.approx(error, rel=1e-12)
    exact = float(fg.expect(tasks, order, k).loss)
    assert bound[LOSS] == pytest.approx(exact, rel=1e-12)
    assert bound[CENTRED] == pytest.approx(exact, rel=1e-12)
    assert exact == pytest.approx(9 / 8 + error / (2 * dim), rel=1e-12)


@pytest.mark.parametrize("k", [1, 2, 9, 60])
def test_tasks_of_full_rank_reach_the_bound_on_the_mean(k):
    # labels -1 and 3 of w itself: w* = 1, every |z| is 2 but |z_0| = 1, so E|mean of z|^2 = (1 + 4 (k-1)) / k^2
    tasks = fg.RegressionTasks([[[1.0]], [[1.0]]], [[-1.0], [3.0]])
    rows = evaluate(tasks, fg.orderings.WithReplacement(), k)
    exact = float(fg.expect(tasks, fg.orderings.WithReplacement(), k, quantities=("averaged_loss",)).averaged_loss)
    assert values(rows)[MEAN] == pytest.approx(2 + (1 + 4 * (k - 1)) / (2 * k**2), rel=1e-12)
    assert values(rows)[MEAN] == pytest.approx(exact, rel=1e-12)
    assert rows.tightest("averaged_loss").bound.key == MEAN


def test_the_mean_of_single_rows_tends_to_the_floor_and_the_last_iterate_does_not():
    rng = np.random.default_rng(3)
    matrices = list(rng.standard_normal((30, 1, 3)))
    tasks = fg.RegressionTasks(matrices, list(rng.standard_normal((30, 1))))
    order, k = fg.orderings.NormWeighted(), 20_000
    bound = values(evaluate(tasks, order, k))
    exact = fg.expect(tasks, order, k, quantities=("loss", "averaged_loss"))
    assert bound["floor/loss"] < exact.averaged_loss < bound[MEAN] < 1.02 * bound["floor/loss"]
    assert exact.loss > 1.05 * bound["floor/loss"]


# The floor, for every order and scheme --------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["with-replacement", "without-replacement", "cyclic", "reshuffled"])
@pytest.mark.parametrize(
    "scheme", [None, fg.schemes.SGD(0.1, "loss"), fg.schemes.Ridge(0.7), fg.schemes.FiniteSteps(3, 0.05)], ids=str
)
def test_no_scheme_is_below_the_floor(order, scheme):
    rng = np.random.default_rng(5)
    tasks = fg.RegressionTasks(list(rng.standard_normal((4, 2, 3))), list(rng.standard_normal((4, 2))))
    rows = evaluate(tasks, order, 4, scheme=scheme)
    floor = next(row for row in rows if row.bound.key == "floor/loss")
    assert floor.applies
    assert 0 < floor.value <= float(fg.expect(tasks, order, 4, scheme).loss)
    if order != "with-replacement":
        assert {row.bound.key for row in rows.applicable()} == {"floor/loss", "floor/averaged_loss"}
        assert rows.tightest("loss") is None


# What the numbers are -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [*range(24), 60, 65, 70, 75, 88, 91])
def test_both_roads_to_the_noise_agree(index):
    case = noisy_projected(np.random.default_rng([index, 1]), index)
    one = Setting.of(case.posed, case.w0, ordering=case.ordering)
    two = noise_from_data(case).setting
    assert one.spectral_gap == pytest.approx(two.spectral_gap, abs=1e-9)
    assert one.dist_sq == pytest.approx(two.dist_sq, rel=1e-6)
    for name in ("floor", "smoothness", "noise", "noise_max", "centre_loss", "centre_dist_sq", "centre_noise"):
        upwards, plain = getattr(one.misfit, name), getattr(two.misfit, name)
        assert plain * (1 - 1e-5) - 1e-12 <= upwards <= plain * 1.02 + 1e-12, name
    assert one.misfit.centre_slope == pytest.approx(two.misfit.centre_slope, rel=2e-2, abs=1e-9 * one.misfit.smoothness)


@pytest.mark.parametrize(("objective", "w", "sigma"), [("loss", 1.8, 0.8), ("modified", 1.5, 0.5)])
def test_the_noise_of_sgd_is_that_at_the_minimiser_of_its_own_objective(objective, w, sigma):
    # X = 1, y = 1 and X = 2, y = 4, drawn evenly. On the loss f' = (w - 1 + 4 w - 8) / 2 is 0 at 9/5, where the
    # gradients are 4/5 and -4/5; on the modified objective the steps to 1 and to 2 are 1/2 at w = 3/2
    tasks = fg.RegressionTasks([[[1.0]], [[2.0]]], [[1.0], [4.0]])
    step = fg.schemes.SGD(0.1, objective)
    rows = evaluate(tasks, fg.orderings.WithReplacement(), 10, scheme=step)
    assert rows.setting.sgd_dist_sq == pytest.approx(w**2)
    assert rows.setting.sigma_star == pytest.approx(sigma)
    row = next(row for row in rows if row.bound.key == "attia2025:noise/objective")
    assert row.applies
    assert row.bound.status == "rate only"
    x = 0.1 * (4 if objective == "loss" else 1)
    first = w**2 / (0.1 * (2 - x) * 10 ** (1 - x / 2))
    assert row.value == pytest.approx(first + 0.1 * sigma**2 * 10 ** (x / 2) / (2 - x) ** 2)


def test_with_a_common_solution_the_horizon_is_the_known_linear_rate():
    tasks = fg.families.gaussian(T=6, d=5, rank=2, seed=1)
    rows = {row.bound.key: row for row in evaluate(tasks, fg.orderings.WithReplacement(), 40)}
    assert rows[ERROR].value == pytest.approx(rows["gower2015:any weights/error"].value, rel=1e-12)
    assert not rows[ERROR].tightest
    for key in (LOSS, CENTRED, MEAN, "floor/loss"):
        assert rows[key].why_not == "is for tasks that no w solves"


def test_what_is_not_known_is_said():
    unknown = Setting(spectral_gap=0.5, rank_max=1, misfit=Misfit())
    assert get(ERROR).why_not(unknown, 3) == "needs noise of the misfit, not known here"
    assert get("floor/loss").why_not(unknown, 3) == "needs floor of the misfit, not known here"
    never = Setting(spectral_gap=0.0, misfit=Misfit(centre_loss=1, smoothness=1, centre_noise=1))
    assert get(MEAN).why_not(never, 3) == "needs tasks with p_m > 0 that span what all tasks do"
    with pytest.raises(fg.errors.InvalidInputError, match="floor"):
        Misfit(floor=-1.0)
    with pytest.raises(fg.errors.InvalidInputError, match="misfit"):
        Setting(misfit=3.0)


def test_a_task_that_is_never_drawn_grows_the_horizon_with_k():
    tasks = fg.RegressionTasks([[[1.0, 0.0]]] * 2 + [[[0.0, 1.0]]], [[1.0], [3.0], [0.5]])
    rows = values(evaluate(tasks, fg.orderings.WithReplacement([1, 1, 0]), 5))
    assert rows[ERROR] == pytest.approx(4 + 0.25 + 5)  # w* = (2, 1/2), N = 1
    assert MEAN not in rows


def test_results_with_noise_are_drawn_written_and_kept(tmp_path):
    tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [3.0], [0.0]])
    rows = evaluate(tasks, "with-replacement", [2, 20])
    assert rows.at(20).tightest("loss").bound.key == LOSS
    assert r"\ge L_{\min}" in rows.to_latex("loss")
    assert "holds on these tasks" in rows.to_latex("loss")
    rows.save(tmp_path / "rows.npz")
    again = fg.bounds.Evaluation.load(tmp_path / "rows.npz")
    assert list(again) == list(rows)
    assert again.setting == rows.setting
    labels = {curve.label for curve in rows.figure("loss").series}
    assert "the least-squares floor: no less" in labels
    expected = fg.expect(tasks, "with-replacement", [2, 20])
    for quantity in (None, "loss"):
        axes = expected.plot(bounds=True) if quantity is None else expected.plot(quantity=quantity, bounds=True)
        assert axes is not None


def test_kernels_have_the_same_bounds_as_their_data():
    rng = np.random.default_rng(2)
    X, y, groups = rng.standard_normal((6, 2)), rng.standard_normal(6), [0, 0, 1, 1, 2, 2]
    data, kernel = fg.RegressionTasks.from_arrays(X, y, groups), fg.KernelTasks(X @ X.T, y, groups)
    one, two = (values(evaluate(tasks, "with-replacement", 5)) for tasks in (data, kernel))
    assert set(one) == set(two)
    for key, value in one.items():
        assert two[key] == pytest.approx(value, rel=1e-6)


def test_neighbours_keep_the_noise_of_tasks_that_no_w_solves():
    from forgetting.theory.candidates import mutate

    case = noisy_projected(np.random.default_rng(0), 20)
    other = mutate(np.random.default_rng(1), case, 0.1)
    assert not other.tasks.realizability.holds
    solved = Instance(fg.families.two_lines(0.5), fg.orderings.WithReplacement(), 3)
    assert not np.any(np.concatenate(near(solved.tasks)[1]))


@pytest.mark.parametrize(
    ("start", "p", "message"),
    [
        (None, None, "start: expected real numbers"),
        ([], None, r"start: expected shape \(1,\), got \(0,\)"),
        ([0.0], [1, 2, 3], r"p: expected shape \(2,\), got \(3,\)"),
    ],
)
def test_the_noise_of_another_start_or_of_other_weights_is_refused(start, p, message):
    geometry = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [3.0]]).geometry
    with pytest.raises(fg.errors.InvalidInputError, match=message):
        fg.bounds.Misfit.of(geometry, start, p, "loss", "words")
