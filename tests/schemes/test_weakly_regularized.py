"""Scheme 5 as written, for any lambda, and the curve to its limit by projections."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.reductions import angle_between, classification_to_pocs
from forgetting.schemes import WeaklyRegularized
from forgetting.tasks.classification import decide

TOL = 1.1e-11  # of the scheme, and a little for rounding


def learn(rows, before, log_lambda, **options):
    """One task, from `before`."""
    rows = np.asarray(rows, dtype=float)
    labels = np.where(np.arange(len(rows)) % 2, -1, 1)
    extra = np.zeros((2, rows.shape[1]))  # a task of zero rows brings both labels
    tasks = fg.ClassificationTasks([rows * labels[:, None], extra], [labels, [1, -1]])
    run = fg.run(
        tasks, fg.orderings.Explicit([0]), k=1, scheme=WeaklyRegularized(log_lambda, **options), w0=np.array(before)
    )
    return run


def optimality(rows, before, after, log_lambda):
    """|w - p - sum_i a_i z_i| with a_i = exp(-z_i.w) / lambda, in extended precision.

    It is relative to what margins off by their own size would make of it, so that it compares with `tol`.
    """
    z, p, w = (np.asarray(part, dtype=np.longdouble) for part in (rows, before, after))
    weights = np.exp(-(z @ w) - np.longdouble(log_lambda))
    gap = np.linalg.norm((w - p - weights @ z).astype(float))
    lengths = np.linalg.norm(rows, axis=1)
    margins = 1 + abs(log_lambda) + lengths.max() * (np.linalg.norm(before) + np.linalg.norm(after))
    return gap / (1 + margins * float(weights @ lengths))


# --------------------------------------------------------------------------------------------------- known answers


def test_one_row_has_a_closed_form():
    """w = p + a z with a exp(|z|^2 a) = exp(-z.p)/lambda: |z|^2 a is Lambert's W of |z|^2 exp(-z.p)/lambda."""
    from scipy.special import lambertw

    z, p = np.array([3.0, 4.0]), np.array([0.1, -0.2])
    for log_lambda in (0.0, -1.0, -20.0, -300.0):
        run = learn([z], p, log_lambda)
        a = lambertw(25 * np.exp(-z @ p - log_lambda)).real / 25
        np.testing.assert_allclose(run.iterates[1], p + a * z, rtol=1e-10)


def test_at_lambda_one_from_zero_a_unit_row_gives_the_omega_constant():
    run = learn([[1.0]], [0.0], 0.0)
    assert run.iterates[1, 0] == pytest.approx(0.567143290409783872999968662210, rel=1e-10)
    np.testing.assert_array_equal(run.scaled_iterates, run.iterates)  # log(1/lambda) is 0: nothing to divide by


def test_two_opposite_rows_balance():
    """sum exp(-w) + exp(w) + lambda/2 w^2 is least at 0, whatever lambda; these rows are not separable."""
    for log_lambda in (0.0, -5.0, -100.0, -10000.0):
        run = learn([[1.0], [-1.0]], [0.0], log_lambda)
        assert abs(run.iterates[1, 0]) <= 1e-9
        assert not run.complaints


def test_a_zero_row_adds_a_constant():
    with_zero, without = learn([[1.0, 2.0], [0.0, 0.0]], [0.1, 0.2], -3.0), learn([[1.0, 2.0]], [0.1, 0.2], -3.0)
    np.testing.assert_allclose(with_zero.iterates, without.iterates, rtol=1e-12)
    nothing = learn([[0.0, 0.0]], [0.1, 0.2], -3.0)
    np.testing.assert_array_equal(nothing.iterates[1], [0.1, 0.2])


# --------------------------------------------------------------------------------------------------------- oracles


@given(st.integers(0, 10**6), st.sampled_from([0.0, -0.5, -2.0, -5.0, -8.0]))
def test_moderate_lambda_against_a_general_minimiser(seed, log_lambda):
    from scipy.optimize import minimize

    rng = np.random.default_rng(seed)
    rows, p = rng.standard_normal((int(rng.integers(1, 8)), 3)), rng.standard_normal(3)  # separable or not
    w = learn(rows, p, log_lambda).iterates[1]
    lam = np.exp(log_lambda)

    def objective(x):
        e = np.exp(-rows @ x)
        return e.sum() / lam + 0.5 * (x - p) @ (x - p), x - p - e @ rows / lam

    other = minimize(objective, p, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 2000})
    assert objective(w)[0] <= other.fun * (1 + 1e-12)
    np.testing.assert_allclose(w, other.x, atol=1e-4)
    assert optimality(rows, p, w, log_lambda) <= TOL


def newton_in_many_digits(rows, p, w, log_lambda, digits=60):
    """The minimiser, from a w that is close to it."""
    with mpmath.workdps(digits):
        Z, point, x = (mpmath.matrix(np.asarray(part).tolist()) for part in (rows, p, w))
        for _ in range(8):  # the error squares in each step
            margins = Z * x
            weights = mpmath.diag([mpmath.exp(-margin - mpmath.mpf(log_lambda)) for margin in margins])
            gradient = x - point - Z.T * weights * mpmath.ones(len(rows), 1)
            x = x - mpmath.lu_solve(Z.T * weights * Z + mpmath.eye(len(p)), gradient)
        return np.array([float(value) for value in x])


@pytest.mark.parametrize("log_lambda", [-3.0, -50.0, -1000.0, -10000.0])
def test_against_newton_in_many_digits(log_lambda):
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((4, 3))
    rows *= np.sign(rows @ [1.0, 1.0, 1.0])[:, None]
    rows[1] = rows[0] + 1e-4 * rng.standard_normal(3)  # nearly the same twice
    p = -0.2 * log_lambda * rng.standard_normal(3)
    w = learn(rows, p, log_lambda).iterates[1]
    exact = newton_in_many_digits(rows, p, w, log_lambda)
    np.testing.assert_allclose(w, exact, rtol=1e-9, atol=1e-9 * np.linalg.norm(exact))


PARTLY = {
    "a pair that contradicts itself": [[1, 0, 0], [-1, 0, 0], [0, 1, 1], [0, -1, 0.5]],
    "a pair, and a row across it": [[-2, 1], [-1, 0], [-1, 0], [0, 1], [0, -2], [0, 1]],
    "a row in the span of a pair": [[1, 0, 0], [-2, 0, 0], [128, 0, 0], [3, 1, 0], [1, 0, -1]],
    "rows of very different size": [
        [-48, -40, -24],
        [8, 4, 8],
        [2**-4, 3 * 2**-6, 2**-5],
        [0, 0, -64],
        [-64, -32, -64],
    ],
    # w_1 settles at about 18; rows 2 and 3, with margins of 184 there, contradict each other across it
    "a core within the rest": [[1, 0, 0], [-(2.0**-24), 0, 0], [10, 1, 0], [10, -2, 0], [1, 1, 1]],
}


@pytest.mark.parametrize("log_lambda", [-20.0, -59.0, -61.0, -150.0, -1000.0])
@pytest.mark.parametrize("rows", PARTLY.values(), ids=PARTLY)
def test_rows_that_contradict_each_other_in_part_against_newton_in_many_digits(rows, log_lambda):
    rows, p = np.array(rows, dtype=float), np.array([0.3, -0.7, 0.2])[: len(rows[0])]
    run = learn(rows, p, log_lambda)
    assert not run.complaints
    w = run.iterates[1]
    exact = newton_in_many_digits(rows, p, w, log_lambda, digits=int(-log_lambda) + 60)
    size = 1 - log_lambda + np.linalg.norm(rows, axis=1).max() * np.linalg.norm(exact)
    np.testing.assert_allclose(rows @ w, rows @ exact, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(w, exact, rtol=0, atol=1e-8 * np.linalg.norm(exact))


@pytest.mark.parametrize("log_lambda", [-100.0, -1000.0])
@pytest.mark.parametrize("exponent", [5, 10, 15, 20, 25])
def test_small_margins_keep_their_digits(exponent, log_lambda):
    """Rows (1, e) and (-1, e): w = (0, v) with e v = omega(L + log 2 e^2), Wright's function."""
    from scipy.special import wrightomega

    e = 2.0**-exponent
    run = learn([[1.0, e], [-1.0, e]], [0.0, 0.0], log_lambda)
    assert not run.complaints
    assert e * run.iterates[1, 1] == pytest.approx(wrightomega(-log_lambda + np.log(2 * e * e)), rel=1e-11)
    assert abs(run.iterates[1, 0]) <= 1e-11 * run.iterates[1, 1]


@pytest.mark.parametrize("start", [0.0, 1e3, 1e5, -1e5])
def test_a_contradiction_is_settled_to_the_same_digits_from_everywhere(start):
    """5 exp(-5w) + 20 exp(-20w) = exp(w/2)/2, by mpmath; the start only adds what rounding makes of it."""
    with mpmath.workdps(30):
        root = mpmath.findroot(
            lambda w: 5 * mpmath.exp(-5 * w) + 20 * mpmath.exp(-20 * w) - mpmath.exp(w / 2) / 2, 0.42
        )
    run = learn([[5.0], [20.0], [-0.5]], [start], -1000.0)
    assert not run.complaints
    assert run.iterates[1, 0] == pytest.approx(float(root), rel=1e-11, abs=2e-16 * abs(start))


FAR = {  # rows, and a start at which one of them alone is violated, or all are met by far
    "far along a core": (
        [[1, 0, 0], [1, 0, 0], [-2, 0, 0], [63, 1, -3], [66, 0, -1], [1, 0, 0]],
        [256.0, -768.0, 1024.0],
    ),
    "one row violated": ([[0.96875], [15.5], [20.5], [0.796875], [3.5], [1.5], [-0.375]], [312.5]),
    "one row violated, further": ([[3.75], [-(2.0**-7)], [0.25], [2.6875], [0.5], [0.75]], [6021.25]),
}


@pytest.mark.parametrize("log_lambda", [-30.0, -150.0, -10000.0])
@pytest.mark.parametrize(("rows", "start"), FAR.values(), ids=FAR)
def test_starts_far_away_are_no_obstacle(rows, start, log_lambda):
    run = learn(rows, start, log_lambda)
    assert not run.complaints
    if log_lambda > -200:
        w = run.iterates[1]
        exact = newton_in_many_digits(rows, start, w, log_lambda, digits=400)
        size = 1 + np.abs(np.array(rows) @ exact).max()
        floor = 4e-16 * np.linalg.norm(rows, axis=1).max() * np.linalg.norm(start)
        np.testing.assert_allclose(np.array(rows) @ w, np.array(rows) @ exact, rtol=0, atol=1e-11 * size + 4 * floor)


def test_many_rows_of_which_half_contradict_each_other():
    """Half of 600 rows live on the last 60 of 120 axes, and contradict each other there."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((600, 120))
    rows[:300, :60] = 0
    rows[300:] *= np.sign(rows[300:, :60].sum(axis=1))[:, None]
    assert not decide(rows[:300]).holds
    run = learn(rows, np.zeros(120), -1000.0)
    assert not run.complaints
    w = run.iterates[1]
    # on the last axes the core alone decides; on the others, w = sum_i a_i z_i with a_i = exp(-z_i.w + 1000)
    pulls = np.exp(-rows[:300] @ w)[:, None] * rows[:300, 60:]
    np.testing.assert_allclose(pulls.sum(axis=0), 0, atol=1e-9 * np.abs(pulls).sum(axis=0).max())
    np.testing.assert_allclose(np.exp(1000 - rows[300:] @ w) @ rows[300:, :60], w[:60], atol=1e-6 * np.abs(w).max())


def test_small_whole_numbers_are_always_solved():
    """Rows drawn from {-2, ..., 2} contradict each other wholly, in part or not at all."""
    for seed in range(80):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 20)), int(rng.integers(1, 7))
        rows = rng.integers(-2, 3, size=(n, d)) * 10.0 ** rng.uniform(-2, 2, size=(n, 1))
        for log_lambda in (-10.0, -100.0, -10000.0):
            assert not learn(rows, 10 * rng.standard_normal(d), log_lambda).complaints, (seed, log_lambda)


# ------------------------------------------------------------------------------------------------------- properties


@pytest.mark.parametrize("log_lambda", [0.0, -1.0, -30.0, -1000.0, -10000.0])
@pytest.mark.parametrize("shape", [(3, 30, 8), (3, 4, 40), (2, 6, 300)], ids=str)
def test_every_step_is_optimal_whatever_lambda(shape, log_lambda):
    T, d, n = shape
    tasks = fg.families.separable(T=T, d=d, n=n, margin=0.1, seed=4)
    run = fg.run(tasks, fg.orderings.WithReplacement(), k=8, scheme=WeaklyRegularized(log_lambda), seed=1)
    assert run.status == "completed 8 steps"
    for t, task in enumerate(run.order):
        gap = optimality(tasks.signed_rows(task), run.iterates[t], run.iterates[t + 1], log_lambda)
        assert gap <= TOL, t


def test_hard_rows_are_solved_too():
    """Duplicated, nearly parallel and badly scaled rows, from far away."""
    rng = np.random.default_rng(7)
    base = np.abs(rng.standard_normal((3, 5)))
    for rows in (
        base[[0, 0, 1, 1, 2]],
        np.concatenate([base, base + 1e-7 * rng.standard_normal((3, 5))]),
        base * np.array([[1e-4], [1.0], [1e4]]),
    ):
        for log_lambda in (0.0, -100.0, -10000.0):
            p = 1e3 * rng.standard_normal(5)
            run = learn(rows, p, log_lambda)
            assert not run.complaints
            assert optimality(rows, p, run.iterates[1], log_lambda) <= TOL


@pytest.mark.parametrize("log_lambda", [0.0, -10000.0])
def test_ten_thousand_dimensions(log_lambda):
    tasks = fg.families.separable(T=3, d=10_000, n=20, margin=0.1, seed=0)
    run = fg.run(tasks, fg.orderings.Cyclic(), k=6, scheme=WeaklyRegularized(log_lambda))
    assert run.status == "completed 6 steps"
    for t, task in enumerate(run.order):
        gap = optimality(tasks.signed_rows(task), run.iterates[t], run.iterates[t + 1], log_lambda)
        assert gap <= TOL
    if log_lambda:
        limit = fg.run(tasks, fg.orderings.Cyclic(), k=6)
        np.testing.assert_allclose(run.scaled_iterates, limit.iterates, atol=0.01)


def test_tasks_that_are_not_separable_have_a_minimiser_too():
    rng = np.random.default_rng(2)
    rows, p = rng.standard_normal((12, 3)), rng.standard_normal(3)
    assert not decide(rows).holds
    steps = [learn(rows, p, log_lambda).iterates[1] for log_lambda in (-10.0, -40.0, -1000.0, -10000.0)]
    # without the regulariser: sum_i exp(-z_i.w) z_i = 0
    for w in steps[1:]:
        np.testing.assert_allclose(np.exp(-rows @ w) @ rows, 0, atol=1e-8)
    np.testing.assert_allclose(steps[1], steps[3], atol=1e-8)


# ---------------------------------------------------------------------------------------------- what a run records


def test_losses_are_those_of_scaled_iterates():
    tasks = fg.families.separable(T=3, d=5, n=4, margin=0.2, seed=0)
    run = fg.run(tasks, fg.orderings.Cyclic(), k=6, scheme=WeaklyRegularized(-50.0))
    np.testing.assert_array_equal(run.scaled_iterates, run.iterates / 50)
    np.testing.assert_allclose(run.losses, [tasks.loss(w) for w in run.iterates / 50], rtol=1e-13)
    np.testing.assert_allclose(run.loss_matrix, [tasks.task_losses(w) for w in run.iterates / 50], rtol=1e-13)
    np.testing.assert_allclose(run.residuals, [tasks.distances(w) for w in run.iterates / 50], atol=1e-10)
    before = [tasks.task_loss(task, run.iterates[t] / 50) for t, task in enumerate(run.order)]
    np.testing.assert_allclose(run.regret, np.cumsum(before) / np.arange(1, 7), rtol=1e-12)
    after = [tasks.task_loss(task, run.iterates[t + 1] / 50) for t, task in enumerate(run.order)]
    seen = [np.mean([tasks.task_loss(m, run.iterates[t] / 50) for m in run.order[:t]]) for t in range(1, 7)]
    np.testing.assert_allclose(run.forgetting, seen - np.cumsum(after) / np.arange(1, 7), rtol=1e-12)
    assert (run.inner_steps >= 0).all()


def test_a_step_that_does_not_converge_is_told():
    run = learn(np.eye(4) + 1, np.zeros(4), -1000.0, max_steps=1)
    assert "learning task 0 stopped after" in run.status
    assert "above tol = 1e-11; raise max_steps" in run.status


def test_bad_settings_and_problems_are_refused():
    with pytest.raises(InvalidInputError, match="log_lambda must be at most 0"):
        WeaklyRegularized(0.1)
    with pytest.raises(InvalidInputError, match="log_lambda"):
        WeaklyRegularized(float("nan"))
    with pytest.raises(InvalidInputError, match="tol"):
        WeaklyRegularized(-1.0, tol=0.0)
    with pytest.raises(NotSupportedError, match="a scheme for ClassificationTasks, not for RegressionTasks"):
        fg.run(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=1, scheme=WeaklyRegularized(-1.0))


# --------------------------------------------------------------------------------------------------------- the limit


LEVELS = 10.0 ** np.arange(3, 8)


@pytest.mark.parametrize("seed", range(4))
def test_without_repeats_the_angle_falls_like_one_over_l(seed):
    tasks = fg.families.separable(T=4, d=12, n=4, margin=0.3, seed=seed)
    curve = classification_to_pocs(tasks, fg.orderings.Cyclic(), k=4, log_lambdas=-LEVELS)
    assert curve.complaints == ()
    assert not curve.repeats.any()
    scaled = curve.angles * curve.levels[:, None]  # tends to a constant
    np.testing.assert_allclose(scaled[-1], scaled[-2], rtol=1e-3)
    np.testing.assert_allclose(scaled[1:], scaled[:-1], rtol=0.2)
    assert (scaled > 0.01).all()
    # iterates divided by L fall behind by (log L)/L
    gaps = curve.gaps * (curve.levels / np.log(curve.levels))[:, None]
    assert gaps.max() <= 10


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_from_an_immediate_repeat_on_the_angle_falls_like_log_l_over_l(seed):
    tasks = fg.families.separable(T=4, d=12, n=4, margin=0.3, seed=seed)
    curve = classification_to_pocs(tasks, fg.orderings.Explicit([0, 1, 1, 2, 2]), k=5, log_lambdas=-LEVELS)
    assert curve.repeats.tolist() == [False, False, True, False, True]
    scaled = curve.angles * curve.levels[:, None]
    np.testing.assert_allclose(scaled[-1, :2], scaled[-2, :2], rtol=1e-3)  # 1/L so far
    # and then L angle grows by a constant for every factor of 10 in L
    growth = np.diff(scaled[:, 2:], axis=0)
    assert (growth > 0.1).all()
    np.testing.assert_allclose(growth[-1], growth[-2], rtol=0.15)


def test_directions_are_compared_in_the_order_of_the_projections():
    tasks = fg.families.separable(T=3, d=5, n=3, margin=0.3, seed=0)
    curve = classification_to_pocs(tasks, fg.orderings.GreedyDistance(), k=6, log_lambdas=[0.0, -100.0])
    limit = fg.run(tasks, fg.orderings.GreedyDistance(), k=6)
    np.testing.assert_array_equal(curve.order, limit.order)
    assert np.isnan(curve.gaps[0]).all()
    assert curve.inner_steps.shape == curve.angles.shape == (2, 6)
    weak = fg.run(tasks, fg.orderings.Explicit(limit.order), k=6, scheme=WeaklyRegularized(-100.0))
    expected = [angle_between(u, v) for u, v in zip(weak.iterates[1:], limit.iterates[1:], strict=True)]
    np.testing.assert_array_equal(curve.angles[1], expected)
    with pytest.raises(InvalidInputError, match="expected ClassificationTasks"):
        classification_to_pocs(fg.families.two_lines(0.5), fg.orderings.Cyclic(), k=2, log_lambdas=[-1.0])


def test_angles():
    assert angle_between([1.0, 0.0], [0.0, 2.0]) == pytest.approx(np.pi / 2)
    assert angle_between([1.0, 0.0], [-3.0, 0.0]) == pytest.approx(np.pi)
    assert angle_between([1.0, 1e-9], [1.0, 0.0]) == pytest.approx(1e-9)
    assert np.isnan(angle_between([0.0, 0.0], [1.0, 0.0]))
