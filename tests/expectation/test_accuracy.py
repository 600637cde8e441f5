"""Digits: exact expectations against high-precision arithmetic, and error estimates against true errors."""

import mpmath as mp
import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines import spectral

WR = fg.orderings.WithReplacement()


def two_lines_loss(theta, k):
    """E L(w_k) of two lines in 60 digits, for the rows and labels as float64 has them.

    Given that a was learned last, rho_b^2 stays or is multiplied by cos^2 and becomes rho_a^2, with even chances.
    """
    tasks = fg.families.two_lines(theta)
    with mp.workdps(60):
        (a, y), (b, v) = (
            (mp.matrix(tasks.task(m)[0][0].tolist()), mp.mpf(float(tasks.task(m)[1][0]))) for m in range(2)
        )
        inner, a_sq, b_sq = (a.T * b)[0], (a.T * a)[0], (b.T * b)[0]
        cos_sq = inner**2 / (a_sq * b_sq)
        on_b, on_a = (inner * y / a_sq - v) ** 2 / b_sq, (inner * v / b_sq - y) ** 2 / a_sq
        even = (on_a + on_b) / 2 * ((1 + cos_sq) / 2) ** (k - 1)
        odd = (on_b - on_a) / 2 * ((1 - cos_sq) / 2) ** (k - 1)
        return (b_sq * (even + odd) + a_sq * (even - odd)) / 8


def high_precision(tasks, k, digits=60):
    """E L(w_k) and E F(k) by iterating moments of (w, 1) in mpmath on the data and labels as float64 has them."""
    with mp.workdps(digits):
        T, d = tasks.num_tasks, tasks.dim
        steps, forms = [], []
        for m in range(T):
            X, y = (mp.matrix(part.tolist()) for part in tasks.task(m))
            inverse = X.T * (X * X.T) ** -1
            step = mp.eye(d + 1)
            step[:d, :d] = mp.eye(d) - inverse * X
            step[:d, d] = inverse * y
            steps.append(step)
            both = mp.matrix(X.rows, d + 1)
            both[:, :d] = X
            both[:, d] = -y
            forms.append(both.T * both)
        start = mp.matrix([0] * d + [1])
        W = start * start.T
        S = [mp.zeros(d + 1) for _ in range(T)]
        kept = mp.mpf(0)

        def trace(G, A):
            return mp.fsum(G[i, j] * A[j, i] for i in range(d + 1) for j in range(d + 1))

        for _ in range(k):
            learned = [P * W * P.T / T for P in steps]
            S = [
                sum((P * A * P.T for P in steps), mp.zeros(d + 1)) / T + one for A, one in zip(S, learned, strict=True)
            ]
            kept += mp.fsum(trace(G, one) for G, one in zip(forms, learned, strict=True))
            W = sum(learned, mp.zeros(d + 1))
        loss = mp.fsum(trace(G, W) for G in forms) / (2 * T)
        forgetting = (mp.fsum(trace(G, A) for G, A in zip(forms, S, strict=True)) - kept) / (2 * k)
        return loss, forgetting


@pytest.mark.parametrize("theta", [1e-3, 1e-2, 0.05])
def test_loss_at_a_hundred_thousand_steps_has_ten_digits_also_on_nearly_identical_tasks(theta):
    for method in ("moments", "spectral"):
        e = fg.expect(fg.families.two_lines(theta), WR, 10**5, method=method, quantities=("loss",))
        true = two_lines_loss(theta, 10**5)
        assert abs(e.loss / true - 1) < 1e-10
        assert abs(e.loss - true) <= e.uncertainty["loss"]


@pytest.mark.parametrize("seed", range(3))
def test_loss_and_forgetting_agree_with_forty_digit_arithmetic(seed):
    tasks = fg.families.gaussian(T=3, d=4, rank=[1, 2, 2], seed=seed)
    for k in (5, 60):
        loss, forgetting = high_precision(tasks, k)
        for method in ("moments", "spectral"):
            e = fg.expect(tasks, WR, k, method=method)
            assert abs(e.loss / loss - 1) < 1e-10
            assert abs(e.forgetting / forgetting - 1) < 1e-10


def test_nearly_identical_random_tasks_keep_their_digits():
    rng = np.random.default_rng(0)
    base, bend = rng.standard_normal((2, 4)), rng.standard_normal((3, 2, 4))
    w = rng.standard_normal(4)
    matrices = [base + 1e-3 * turn for turn in bend]
    tasks = fg.RegressionTasks(matrices, [X @ w for X in matrices])
    loss, forgetting = high_precision(tasks, 40)
    e = fg.expect(tasks, WR, 40)
    assert e.method == "moments"
    assert "31 digits" in e.detail
    assert abs(e.loss / loss - 1) < 1e-10
    assert abs(e.forgetting / forgetting - 1) < 1e-10


@pytest.mark.parametrize("theta", [1e-2, 1e-3, 1e-4])
def test_a_hundred_million_steps_have_six_digits(theta):
    e = fg.expect(fg.families.two_lines(theta), WR, [10**6, 10**7, 10**8], quantities=("loss",))
    assert e.method == "spectral"
    for k, value in zip(e.k, e.loss, strict=True):
        true = two_lines_loss(theta, int(k))
        if true > 1e-300:
            assert abs(value / true - 1) < 1e-6


def test_lanczos_and_diagonalisation_agree_with_iteration(monkeypatch):
    tasks = fg.families.gaussian(T=8, d=12, rank=2, seed=1)
    ks = [1, 10, 100, 1000, 3000]
    names = ("loss", "forgetting", "regret", "error", "task_losses")
    iterated = fg.expect(tasks, WR, ks, method="moments", quantities=names)
    dense = fg.expect(tasks, WR, ks, method="spectral", quantities=names)
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
    lanczos = fg.expect(tasks, WR, ks, method="spectral", quantities=names)
    assert "Lanczos" in lanczos.detail
    for other in (dense, lanczos):
        for name in names:
            gap = np.abs(other.values[name] - iterated.values[name])
            assert np.all(gap <= other.uncertainty[name] + iterated.uncertainty[name]), name
            np.testing.assert_allclose(other.values[name][:-1], iterated.values[name][:-1], rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("seed", range(rounds(2, 6)))
def test_the_error_estimate_covers_the_true_error(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    T, d = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    tasks = fg.families.gaussian(T=T, d=d, rank=1, seed=seed)
    for k in (3, 50, 200):
        loss, forgetting = high_precision(tasks, k)
        for method, dense in (("moments", True), ("spectral", True), ("spectral", False)):
            with monkeypatch.context() as patch:
                if not dense:
                    patch.setattr(spectral, "DENSE_LIMIT", 0)
                e = fg.expect(tasks, WR, k, method=method)
            assert abs(e.loss - loss) <= e.uncertainty["loss"]
            assert abs(e.forgetting - forgetting) <= e.uncertainty["forgetting"]
            # and it is an estimate, not a disclaimer: within 1e-9 of a value that is not tiny
            if loss > 1e-3 * tasks.scale:
                assert e.uncertainty["loss"] < 1e-9 * loss


def test_a_lanczos_run_that_does_not_settle_is_replaced_or_owned_up_to(monkeypatch):
    tasks = fg.families.gaussian(T=25, d=30, rank=1, seed=0)
    true = fg.expect(tasks, WR, 2000, method="moments", quantities=("loss",)).loss
    easy = fg.expect(tasks, WR, 2000, method="spectral", quantities=("loss",))
    assert "Lanczos" in easy.detail
    assert abs(easy.loss / true - 1) < 1e-10
    monkeypatch.setattr(spectral, "MAX_LANCZOS", 12)
    dense = fg.expect(tasks, WR, 2000, method="spectral", quantities=("loss",))
    assert "diagonalised" in dense.detail
    assert abs(dense.loss / true - 1) < 1e-10
    monkeypatch.setattr(spectral, "UNSETTLED_LIMIT", 0)
    cut = fg.expect(tasks, WR, 2000, method="spectral", quantities=("loss",))
    assert abs(cut.loss / true - 1) > 1e-6
    assert abs(cut.loss - true) <= cut.uncertainty["loss"]


def test_losses_are_never_negative_and_noise_is_named():
    tasks = fg.families.gaussian(T=4, d=3, rank=2, seed=0)  # D = 3 < R: primal, converges at once
    e = fg.expect(tasks, WR, [1, 10, 1000, 10**5], quantities=("loss", "error"), method="spectral")
    assert np.all(e.loss >= 0)
    rank_deficient = fg.families.two_lines(1e-9)
    e = fg.expect(rank_deficient, WR, [1, 10, 1000], method="spectral", quantities=("loss",))
    assert any("no larger than its error" in note and "loss" in note for note in e.notes)
    e = fg.expect(rank_deficient, WR, [1, 10, 1000], method="moments", quantities=("loss",))
    assert e.notes == ()
    assert abs(e.loss[-1] / two_lines_loss(1e-9, 1000) - 1) < 1e-10


def test_step_sizes_above_one_have_negative_eigenvalues_and_may_forget_less_than_nothing():
    tasks = fg.families.gaussian(T=3, d=4, rank=2, seed=0)
    scheme = fg.schemes.SGD(1.9)
    a = fg.expect(tasks, WR, [1, 2, 3, 11, 400], scheme=scheme, method="moments")
    b = fg.expect(tasks, WR, [1, 2, 3, 11, 400], scheme=scheme, method="spectral")
    np.testing.assert_allclose(a.loss, b.loss, rtol=1e-9)
    np.testing.assert_allclose(a.forgetting, b.forgetting, rtol=1e-8)
    assert a.forgetting.min() < 0


@pytest.mark.parametrize("theta", [0.1, 0.7, 1.5])
def test_the_decay_rate_of_two_lines_is_known(theta):
    tasks = fg.families.two_lines(theta)
    assert fg.decay_rate(tasks, WR) == pytest.approx((1 + np.cos(theta) ** 2) / 2, rel=1e-13)


def test_the_decay_rate_is_what_the_error_decays_by(monkeypatch):
    tasks = fg.families.gaussian(T=6, d=10, rank=2, seed=2)
    e = fg.expect(tasks, WR, [20000, 20001], quantities=("error",), method="spectral")
    rate = fg.decay_rate(tasks, WR)
    assert e.error[1] / e.error[0] == pytest.approx(rate, rel=1e-9)
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
    assert fg.decay_rate(tasks, WR) == pytest.approx(rate, rel=1e-12)


def test_kernel_and_data_give_the_same_expectations():
    tasks = fg.families.gaussian(T=5, d=30, rank=3, seed=4, condition=10)
    X = np.concatenate([tasks.task(m)[0] for m in range(5)])
    y = np.concatenate([tasks.task(m)[1] for m in range(5)])
    kernel = fg.KernelTasks(X @ X.T, y, np.repeat(np.arange(5), 3))
    for ordering in (WR, fg.orderings.WithoutReplacement()):
        a, b = fg.expect(tasks, ordering, [1, 3, 5]), fg.expect(kernel, ordering, [1, 3, 5])
        np.testing.assert_allclose(a.loss, b.loss, rtol=1e-10)
        np.testing.assert_allclose(a.forgetting, b.forgetting, rtol=1e-9, atol=1e-15)


# ------------------------------------------------------------------------------------- Lanczos that does not settle


def ill_conditioned(D=24, T=30, spread=1e-3, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((T, 1, D)) * np.geomspace(1, spread, D)
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    w = rng.standard_normal(D) / np.sqrt(D)
    return fg.RegressionTasks(list(rows), list(rows @ w))


LARGE = [10**5, 10**6, 10**7, 10**8]


@pytest.mark.parametrize("ks", [LARGE, LARGE[-1:]], ids=["several", "one"])
@pytest.mark.parametrize("quantities", [("loss", "error", "regret"), ("loss", "forgetting")])
def test_lanczos_that_does_not_settle_is_given_up_for_the_diagonalisation(monkeypatch, ks, quantities):
    tasks, order = ill_conditioned(), fg.orderings.WithReplacement()
    ask = {"method": "spectral", "quantities": quantities}
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 10**4)
    monkeypatch.setattr(spectral, "ONE_RUN_LIMIT", 10**4)
    whole = fg.expect(tasks, order, ks, **ask)
    rate = fg.decay_rate(tasks, order)
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
    monkeypatch.setattr(spectral, "MAX_LANCZOS", 60)
    again = fg.expect(tasks, order, ks, **ask)
    assert "diagonalised" in again.detail
    for name in quantities:
        np.testing.assert_array_equal(again.values[name], whole.values[name])
    assert fg.decay_rate(tasks, order) == rate
    # where the diagonalisation does not fit either, the error is bounded and the note says so
    monkeypatch.setattr(spectral, "UNSETTLED_LIMIT", 0)
    rough = fg.expect(tasks, order, ks, **ask)
    assert "did not settle" in rough.detail
    for name in quantities:
        assert np.all(np.abs(rough.values[name] - whole.values[name]) <= rough.uncertainty[name])
    assert any(note.startswith("loss from k = ") for note in rough.notes)
    with pytest.raises(NotSupportedError, match=r"the decay rate was not found: at least 0\.9"):
        fg.decay_rate(tasks, order)


def test_the_bound_of_unsettled_lanczos_is_small_where_k_is_small(monkeypatch):
    tasks, order = ill_conditioned(), fg.orderings.WithReplacement()
    exact = fg.expect(tasks, order, [1, 10, 50, 10**7], quantities=("loss",), method="spectral").loss
    monkeypatch.setattr(spectral, "DENSE_LIMIT", 0)
    monkeypatch.setattr(spectral, "MAX_LANCZOS", 60)
    monkeypatch.setattr(spectral, "UNSETTLED_LIMIT", 0)
    rough = fg.expect(tasks, order, [1, 10, 50, 10**7], quantities=("loss",), method="spectral")
    assert np.all(rough.uncertainty["loss"][:3] < 1e-12)
    np.testing.assert_allclose(rough.loss[:3], exact[:3], atol=1e-13)
    assert rough.uncertainty["loss"][3] > abs(rough.loss[3] - exact[3]) > 1e-12
