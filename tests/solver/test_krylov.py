"""Conjugate gradients on the normal equations and on sweeps, the kernels below them, and when they are chosen."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

import forgetting as fg
from forgetting.solver.methods import base
from forgetting.solver.rows import Limits, Rows
from forgetting.solver.sweepers import Iterate, RowSweeper

KINDS = [np.asarray, csr_array]


def system(m, n, condition=30.0, seed=0):
    rng = np.random.default_rng(seed)
    rank = min(m, n)
    left, right = (np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in (m, n))
    return (left * np.logspace(0, -np.log10(condition), rank)) @ right.T, rng.standard_normal(n)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [3, 8, 21])
@pytest.mark.parametrize("size", [1, 4])
def test_a_sweep_back_makes_the_steps_in_the_opposite_order(kind, m, size):
    rng = np.random.default_rng(m)
    A, b, start = rng.standard_normal((m, 6)), rng.standard_normal(m), rng.standard_normal(6)
    A[m // 2] = 0.0
    sweeper = RowSweeper(Rows(kind(A)), Limits(), relaxation=1.3, size=size)
    groups = rng.permutation(sweeper.num_blocks).astype(np.int64)
    iterate, wanted = Iterate(start.copy()), start.copy()
    sweeper.sweep_back(groups, b, iterate)
    for group in groups[::-1]:
        for i in reversed(range(group * size, min((group + 1) * size, m))):
            if A[i].any():
                wanted += 1.3 * (b[i] - A[i] @ wanted) / (A[i] @ A[i]) * A[i]
    np.testing.assert_allclose(iterate.x, wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("columns", [None, 3])
def test_the_normal_product_reads_rows_once_and_is_both_products(kind, columns, monkeypatch):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((23, 7))
    x = rng.standard_normal(7 if columns is None else (7, columns))
    for part in (2**20, 30):  # also in several slices
        monkeypatch.setattr("forgetting.solver.rows.SLICE", part)
        product, normal = Rows(kind(A)).normal(x, threads=2)
        np.testing.assert_allclose(product, A @ x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(normal, A.T @ (A @ x), rtol=0, atol=1e-11)


@pytest.mark.parametrize("method", ["cgls", "cgmn"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(60, 20), (20, 60), (30, 30)])
@pytest.mark.parametrize("several", [False, True])
def test_the_solution_nearest_to_the_start(method, kind, shape, several):
    A, x = system(*shape)
    rng = np.random.default_rng(2)
    x = np.column_stack([x, 3 * x, np.zeros(len(x))]) if several else x
    start = rng.standard_normal(x.shape)
    nearest = start + np.linalg.pinv(A) @ (A @ x - A @ start)
    solution = fg.solve(kind(A), A @ x, x0=start, method=method, tol=1e-11)
    assert solution.converged, solution.status
    np.testing.assert_allclose(solution.x, nearest, rtol=0, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", [12, 20])
def test_least_squares_and_damping_by_the_normal_equations(kind, rank):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((50, rank)) @ rng.standard_normal((rank, 20))
    b, x0 = rng.standard_normal(50), rng.standard_normal(20)
    nearest = x0 + np.linalg.pinv(A) @ (b - A @ x0)
    solution = fg.solve(kind(A), b, x0=x0, method="cgls", tol=1e-9)
    assert (solution.converged, solution.consistent) == (True, False)
    np.testing.assert_allclose(solution.x, nearest, rtol=0, atol=1e-6)
    ridge = x0 + np.linalg.solve(A.T @ A + np.eye(20), A.T @ (b - A @ x0))
    damped = fg.solve(kind(A), b, x0=x0, method="cgls", tol=1e-9, damp=1.0)
    assert damped.converged
    np.testing.assert_allclose(damped.x, ridge, rtol=0, atol=1e-8)


def test_a_tolerance_below_rounding_leaves_x_where_it_is():
    """Steps along gradients that are rounding errors would leave the solution in directions in which A is 0."""
    rng = np.random.default_rng(4)
    A = rng.standard_normal((50, 5)) @ rng.standard_normal((5, 20))
    b = rng.standard_normal(50)
    for method, side in (("cgls", b), ("cgls", A @ np.ones(20)), ("cgmn", A @ np.ones(20))):
        solution = fg.solve(A, side, method=method, tol=0, maxiter=400)
        np.testing.assert_allclose(solution.x, np.linalg.pinv(A) @ side, rtol=0, atol=1e-9)


def test_complex_systems_by_conjugate_gradients():
    A, x = system(40, 15)
    A, x = A + 1j * A[::-1], x + 2j
    for method in ("cgls", "cgmn"):
        np.testing.assert_allclose(fg.solve(A, A @ x, method=method, tol=1e-12).x, x, rtol=0, atol=1e-8)


def test_slow_rows_are_followed_by_sweeps_forth_and_back(monkeypatch):
    monkeypatch.setattr(base, "SMALL", 0.0)  # as a larger matrix
    scan = fg.datasets.tomography(size=25, angles=60, detectors=36)
    solution = fg.solve(scan.A, scan.b, tol=1e-8)
    assert solution.method == "kaczmarz, then cgmn"
    assert solution.converged
    alone = fg.solve(scan.A, scan.b, tol=1e-8, method="kaczmarz")
    assert solution.epochs < alone.epochs / 2
    np.testing.assert_allclose(solution.x, scan.image.ravel(), rtol=0, atol=1e-4)
    assert "cgmn" not in fg.solve(scan.A, scan.b, tol=1e-8, ordering="cyclic").method  # row steps were asked for


def test_fast_rows_stay_and_few_rows_begin_with_sweeps(monkeypatch):
    monkeypatch.setattr(base, "SMALL", 0.0)
    rng = np.random.default_rng(5)
    tall, wide = rng.standard_normal((600, 60)), rng.standard_normal((60, 240))
    assert fg.solve(tall, tall @ np.ones(60)).method == "kaczmarz"
    solution = fg.solve(wide, wide @ np.ones(240), tol=1e-10)
    assert solution.method == "cgmn"
    np.testing.assert_allclose(solution.x, np.linalg.pinv(wide) @ wide @ np.ones(240), rtol=0, atol=1e-8)
    noisy = np.vstack([wide, wide]) @ np.ones(240)
    noisy[:60] += rng.standard_normal(60)
    found = fg.solve(np.vstack([wide, wide]), noisy)
    assert found.method == "cgmn, then cgls"
    assert found.consistent is False
    best = np.linalg.pinv(np.vstack([wide, wide])) @ noisy
    np.testing.assert_allclose(found.x, best, rtol=0, atol=1e-4)


def test_a_large_system_without_a_solution_ends_with_the_normal_equations(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "SMALL", 0.0)
    rng = np.random.default_rng(6)
    A, b = rng.standard_normal((400, 30)), rng.standard_normal(400)
    np.save(tmp_path / "A.npy", A)
    best = np.linalg.lstsq(A, b, rcond=None)[0]
    for matrix, memory in ((A, None), (csr_array(A), None), (tmp_path / "A.npy", 5e4)):
        solution = fg.solve(matrix, b, memory=memory)
        assert solution.method == "kaczmarz, then cgls"
        assert solution.epochs < 20 or memory  # row steps in memory are left as soon as their errors fall no more
        assert (solution.converged, solution.consistent) == (False, False)
        assert np.linalg.norm(solution.x - best) <= 1e-6 * np.linalg.norm(best)


@pytest.mark.parametrize("weight", [100, 1000])
def test_an_epoch_in_which_a_heavy_row_raises_the_residual_does_not_end_row_steps(weight):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 750))
    A[0] *= weight
    solution = fg.solve(A, A @ rng.standard_normal(750), tol=1e-12, seed=0)
    assert solution.converged, solution.status
    assert solution.method == "kaczmarz, then cgmn"
    assert solution.epochs < 200


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_a_solve_that_is_stopped_in_every_method_ends_as_the_uninterrupted_one(noise, tmp_path, monkeypatch):
    monkeypatch.setattr(base, "SMALL", 0.0)
    scan = fg.datasets.tomography(size=15, angles=40, detectors=22)
    b = scan.b + noise * np.random.default_rng(7).standard_normal(len(scan.b))
    whole = fg.solve(scan.A, b, tol=1e-6)
    assert whole.method == ("kaczmarz, then cgls" if noise else "kaczmarz, then cgmn")

    class KilledError(Exception):
        pass

    for kill in [k for k in (2, 5, 9, 16, 25) if k < len(whole.history)]:
        path, seen = tmp_path / f"{kill}.npz", []

        def stop(x, kill=kill, seen=seen):
            seen.append(x)
            if len(seen) == kill:
                raise KilledError

        with pytest.raises(KilledError):
            fg.solve(scan.A, b, tol=1e-6, checkpoint=path, checkpoint_every=0, callback=stop)
        again = fg.solve(scan.A, b, tol=1e-6, checkpoint=path)
        assert np.array_equal(again.x, whole.x)
        assert np.array_equal(again.history.epoch, whole.history.epoch)
        assert again.status == whole.status


def test_a_solve_names_all_of_its_methods_and_ends_at_maxiter_epochs(tmp_path):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1400, 600)) * np.logspace(0, -3, 600)
    b = A @ rng.standard_normal(600)
    found = fg.solve(A, b, maxiter=300)
    assert found.method == "kaczmarz, then cgmn, then cgls"
    assert found.epochs == 300
    for epochs in (2, 100, 300):
        part = fg.solve(A, b, maxiter=epochs, checkpoint=tmp_path / "c.npz")
    assert (part.method, part.epochs) == (found.method, found.epochs)
    assert np.array_equal(part.x, found.x)
    assert fg.solve(A, b, method="cgmn", maxiter=6).epochs == 6
