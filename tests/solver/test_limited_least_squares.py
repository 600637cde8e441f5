"""Least squares over bounds, inequalities and sets, against conditions of optimality, nnls, lsq_linear and a QP."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import lsq_linear, nnls
from scipy.sparse import csr_array
from tests.effort import rounds

import forgetting as fg
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.sets import Polyhedron
from forgetting.solver import quadratic
from forgetting.solver.methods import base
from forgetting.solver.quadratic import least_squares_over


@dataclass
class Problem:
    """min |A x - b|^2 + damp^2 |x - x0|^2 over low <= x <= high and B x >= c, of which there are points."""

    A: np.ndarray
    b: np.ndarray
    B: np.ndarray
    c: np.ndarray
    low: np.ndarray
    high: np.ndarray
    damp: float
    x0: np.ndarray

    @property
    def objective(self) -> tuple[np.ndarray, np.ndarray]:
        n = self.A.shape[1]
        return np.concatenate([self.A, self.damp * np.eye(n)]), np.concatenate([self.b, self.damp * self.x0])

    @property
    def region(self) -> tuple[np.ndarray, np.ndarray]:
        """G x >= h, with rows of norm 1."""
        eye, sides = np.eye(self.A.shape[1]), [(self.B, self.c)]
        for sign, ends in ((1, self.low), (-1, self.high)):
            kept = np.isfinite(ends)
            sides.append((sign * eye[kept], sign * ends[kept]))
        G, h = (np.concatenate(parts) for parts in zip(*sides, strict=True))
        norms = np.linalg.norm(G, axis=1)
        return G / norms[:, None], h / norms

    def solve(self, kind=np.asarray, **options) -> fg.solver.Solution:
        rows = kind(np.concatenate([self.A, self.B]))
        relations = ["="] * len(self.b) + [">="] * len(self.c)
        sides = np.concatenate([self.b, self.c])
        given = {"relations": relations if len(self.c) else "=", "bounds": (self.low, self.high), "x0": self.x0}
        return fg.solve(rows, sides, damp=self.damp, **given, **options)


def problem(seed: int) -> Problem:
    """Problems with and without solutions of A x = b, of any rank, with doubled and integer rows, tight constraints."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 30), rng.integers(2, 20)
    rank = min(m, n) if rng.random() < 0.5 else rng.integers(1, min(m, n) + 1)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    A = np.round(A) if rng.random() < 0.3 else A
    A = np.repeat(A, 2, axis=0) if rng.random() < 0.2 else A
    A = A * np.logspace(0, -int(rng.integers(1, 5)), n) if rng.random() < 0.2 else A
    low, high, B = np.full(n, -np.inf), np.full(n, np.inf), np.zeros((0, n))
    inside = rng.standard_normal(n)
    kind = rng.choice(["nonnegative", "box", "rows", "both"])
    if kind in ("nonnegative", "both"):
        low, inside = np.zeros(n), np.abs(inside) * (rng.random(n) < 0.7)
    if kind == "box":
        low, high = inside - rng.random(n) * (rng.random(n) < 0.7), inside + rng.random(n) * (rng.random(n) < 0.7)
    if kind in ("rows", "both"):
        B = rng.standard_normal((rng.integers(1, 2 * n), n))
        B = np.round(B) if rng.random() < 0.4 else B
        B = B[B.any(axis=1)] if B.any() else np.ones((1, n))
        B = np.repeat(B, 2, axis=0) if rng.random() < 0.3 else B
    c = B @ inside - rng.random(len(B)) * (rng.random(len(B)) < 0.5)
    noise = 0.0 if rng.random() < 0.3 else rng.choice([0.01, 1.0, 10.0])
    b = A @ inside + noise * rng.standard_normal(len(A))
    damp = 0.0 if rng.random() < 0.7 else 10.0 ** rng.uniform(-3, 1)
    x0 = np.zeros(n) if rng.random() < 0.5 else rng.standard_normal(n)
    return Problem(A, b, B, c, low, high, float(damp), x0)


def tight(given: Problem, x: np.ndarray, slack: float) -> np.ndarray:
    G, h = given.region
    assert np.max(h - G @ x, initial=0.0) <= slack * (1 + np.linalg.norm(x))
    return G[G @ x - h <= slack * (1 + np.linalg.norm(x))]


def off_optimum(given: Problem, x: np.ndarray, slack: float) -> float:
    """The distance of the gradient to the cone of the tight rows, in units of |M| |c|."""
    M, c = given.objective
    gradient, scale = M.T @ (M @ x - c), np.linalg.norm(M) * (np.linalg.norm(c) or 1.0) or 1.0
    rows = tight(given, x, slack)
    return (nnls(rows.T, gradient / scale)[1] if len(rows) else np.linalg.norm(gradient) / scale) or 0.0


def off_nearest(given: Problem, x: np.ndarray) -> float:
    """The distance of x - x0 to the cone that x has in {y: A y = A x, G y >= h}, relative to |x - x0|."""
    moved = x - given.x0
    if not moved.any():
        return 0.0
    rows = np.concatenate([given.A, -given.A]) / (np.linalg.norm(given.A) or 1.0)
    return nnls(np.concatenate([rows, tight(given, x, 1e-9)]).T, moved / np.linalg.norm(moved), maxiter=10_000)[1]


@pytest.mark.parametrize("seed", range(rounds(100, 500)))
def test_the_active_set_finds_the_minimiser_nearest_to_the_start(seed):
    given = problem(seed)
    solution = given.solve(method="active-set")
    assert (given.low <= solution.x).all()
    assert (solution.x <= given.high).all()
    assert off_optimum(given, solution.x, 1e-9) <= 1e-8
    if not given.damp:
        assert off_nearest(given, solution.x) <= 1e-6
    assert solution.converged or solution.error > 1e-6, solution.status


@pytest.mark.parametrize("seed", range(rounds(40, 500)))
def test_the_status_of_the_default_is_true(seed):
    given = problem(seed)
    solution = given.solve()
    gap = float(np.linalg.norm(given.b - given.A @ solution.x)) / (np.linalg.norm(given.b) or 1.0)
    if solution.consistent is False or given.damp:
        assert off_optimum(given, solution.x, 1e-9) <= 1e-7
        assert "x minimises" in solution.status
        assert solution.normal <= 1e-6
    else:
        assert solution.converged
        size = np.linalg.norm(np.concatenate([given.b, given.c]))
        assert gap * np.linalg.norm(given.b) <= 1e-6 * size * (1 + 1e-9) + 1e-14
        tight(given, solution.x, 1e-5 * max(1.0, size))


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("seed", range(rounds(8, 60)))
def test_projected_conjugate_gradients_find_the_minimum_over_bounds(kind, seed):
    rng = np.random.default_rng(seed)
    m, n = [(40, 15), (15, 30)][seed % 2]
    A, low = rng.standard_normal((m, n)) * np.logspace(0, -1.5, n), -rng.random(n)
    high = np.where(rng.random(n) < 0.5, low + rng.random(n), np.inf)
    b = A @ rng.standard_normal(n) + rng.standard_normal(m)
    solution = fg.solve(kind(A), b, bounds=(low, high), method="projected", tol=1e-9)
    assert solution.converged, solution.status
    best = lsq_linear(A, b, (low, high), tol=1e-14, lsmr_tol=None)
    assert ((low <= solution.x) & (solution.x <= high)).all()
    cost = 0.5 * np.sum((A @ solution.x - b) ** 2)
    assert cost <= best.cost * (1 + 1e-8) + 1e-12
    if m > n:
        np.testing.assert_allclose(solution.x, best.x, rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", range(rounds(12, 100)))
def test_projected_conjugate_gradients_find_the_minimum_over_inequalities(seed):
    """With multipliers; the objective and what is missed of the constraints are those of the tolerance."""
    rng = np.random.default_rng(seed)
    n = 8
    A, B, inside = rng.standard_normal((12, n)), rng.standard_normal((6, n)), np.abs(rng.standard_normal(n))
    damp = 0.0 if seed % 2 else 0.7
    b, c = A @ inside + rng.standard_normal(12), B @ inside - 0.1 * (rng.random(6) < 0.5)
    given = Problem(A, b, B, c, np.zeros(n), np.full(n, np.inf), damp, rng.standard_normal(n))
    solution, exact = given.solve(method="projected", tol=1e-8, maxiter=5000), given.solve(method="active-set")
    assert solution.converged, solution.status
    np.testing.assert_allclose(solution.x, exact.x, rtol=0, atol=1e-5)


def test_least_squares_over_sets_is_that_over_their_inequalities_and_over_balls():
    rng = np.random.default_rng(3)
    A, b, side = rng.standard_normal((20, 6)), rng.standard_normal(20), rng.standard_normal(6)
    plain = fg.solve(A, b, sets=fg.Halfspace(side, 0.5))
    assert plain.method.endswith("active-set")
    rows = fg.solve(np.vstack([A, side]), [*b, 0.5], relations=["="] * 20 + [">="])
    np.testing.assert_allclose(plain.x, rows.x, rtol=0, atol=1e-9)
    again = fg.solve(A, b, sets=fg.Halfspace(side, 0.5), method="projected", tol=1e-9)
    np.testing.assert_allclose(plain.x, again.x, rtol=0, atol=1e-6)
    free = np.linalg.lstsq(A, b, rcond=None)[0]
    radius = 0.5 * float(np.linalg.norm(free))
    found = fg.solve(A, b, sets=fg.Ball(np.zeros(6), radius), tol=1e-8)
    assert found.method.endswith("projected")
    low, high = 0.0, 1e4  # the multiplier of the ball, by bisection
    for _ in range(200):
        middle = 0.5 * (low + high)
        wanted = np.linalg.solve(A.T @ A + middle * np.eye(6), A.T @ b)
        low, high = (middle, high) if np.linalg.norm(wanted) > radius else (low, middle)
    np.testing.assert_allclose(found.x, wanted, rtol=0, atol=1e-5)


def test_noisy_data_end_at_the_residual_of_bounded_least_squares(monkeypatch):
    rng = np.random.default_rng(0)
    A = rng.random((200, 100))
    b = A @ np.maximum(rng.standard_normal(100), 0)
    b += 0.05 * np.linalg.norm(b) / np.sqrt(200) * rng.standard_normal(200)
    best, best_norm = nnls(A, b)
    for small in (base.SMALL, 0.0):
        monkeypatch.setattr(base, "SMALL", small)
        solution = fg.solve(A, b, bounds=(0, np.inf))
        assert solution.method == f"kaczmarz, then {'active-set' if small else 'projected'}"
        assert (solution.converged, solution.consistent) == (False, False)
        assert solution.residual == pytest.approx(best_norm / np.linalg.norm(b), rel=1e-9)
        assert solution.normal <= 1e-6
        np.testing.assert_allclose(solution.x, best, rtol=0, atol=1e-3)
        assert "x minimises |A x - b|^2 over the bounds" in solution.status


def test_the_status_says_that_the_bounds_make_it_another_problem():
    A, b = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
    status = fg.solve(A, b, bounds=(0, np.inf)).status
    assert "the bounds exclude every solution of the system" in status
    assert "relative residual 0.7071 (without the bounds 0)" in status
    doubled = fg.solve(np.vstack([A, A]), [*b, 2.0, -1.0], bounds=(0, np.inf)).status
    assert "no x solves the system" in doubled
    several = fg.solve([[1.0, 1.0]], [-1.0], bounds=(-0.25, np.inf), x0=[3.0, 2.0]).status
    assert "x is the only minimiser" in several
    flat = fg.solve([[1.0, 1.0], [1.0, 1.0]], [1.0, 2.0], bounds=(0, np.inf), x0=[3.0, 2.0])
    assert "x is the minimiser nearest to x0" in flat.status
    np.testing.assert_allclose(flat.x, [1.25, 0.25], rtol=0, atol=1e-12)


def test_damping_is_drawn_to_the_start_within_the_bounds(monkeypatch):
    rng = np.random.default_rng(5)
    A, b, x0 = rng.standard_normal((30, 12)), rng.standard_normal(30), rng.standard_normal(12)
    M, c = np.vstack([A, 0.5 * np.eye(12)]), np.concatenate([b, 0.5 * x0])
    best = lsq_linear(M, c, (0, 1), tol=1e-14).x
    for small in (base.SMALL, 0.0):
        monkeypatch.setattr(base, "SMALL", small)
        solution = fg.solve(A, b, damp=0.5, x0=x0, bounds=(0, 1), tol=1e-9)
        assert solution.converged
        assert solution.consistent is None
        assert solution.error <= 1e-9 or small == 0.0
        assert solution.status.startswith(
            "converged: x minimises |A x - b|^2 + damp^2 |x - x0|^2 over the bounds, up to"
        )
        np.testing.assert_allclose(solution.x, best, rtol=0, atol=1e-7)


def test_a_streamed_matrix_and_a_resumed_solve_give_the_same_projected_steps(tmp_path):
    rng = np.random.default_rng(6)
    A, b = rng.standard_normal((400, 30)), rng.standard_normal(400)
    np.save(tmp_path / "A.npy", A)
    options = {"bounds": (0, np.inf), "tol": 1e-8}
    streamed = fg.solve(str(tmp_path / "A.npy"), b, memory=5e4, **options)
    assert streamed.method == "kaczmarz, then projected"
    assert "read one after another" in streamed.blocks
    np.testing.assert_allclose(streamed.x, nnls(A, b)[0], rtol=0, atol=1e-6)
    whole = fg.solve(A, b, method="projected", **options)
    for steps in (3, 6, 20, 100):
        part = fg.solve(A, b, method="projected", checkpoint=tmp_path / "c.npz", maxiter=steps, **options)
    assert np.array_equal(part.x, whole.x)
    assert np.array_equal(part.history.epoch, whole.history.epoch)


def test_least_squares_over_a_polyhedron_without_rows_is_least_squares():
    rng = np.random.default_rng(7)
    M, c = rng.standard_normal((5, 9)), rng.standard_normal(5)
    start = rng.standard_normal(9)
    found = least_squares_over(M, c, np.zeros((0, 9)), np.zeros(0), start)
    np.testing.assert_allclose(found.point, start + np.linalg.pinv(M) @ (c - M @ start), rtol=0, atol=1e-9)
    assert not found.unique


@pytest.mark.parametrize("seed", range(rounds(20, 200)))
def test_objectives_are_those_of_a_quadratic_program(seed):
    daqp = pytest.importorskip("daqp")
    given = problem(seed)
    (M, c), (G, h), n = given.objective, given.region, given.A.shape[1]
    singular = np.linalg.svd(M, compute_uv=False)
    if len(M) < n or singular[-1] < 1e-4 * singular[0]:
        pytest.skip("daqp needs a curved objective")
    sides = np.ascontiguousarray(G), np.full(len(h), 1e30), h.copy(), np.zeros(len(h), dtype=np.int32)
    x, _, flag, _ = daqp.solve(np.ascontiguousarray(M.T @ M), -M.T @ c, *sides)
    assert flag == 1
    solution = given.solve(method="active-set")
    assert np.sum((M @ solution.x - c) ** 2) <= np.sum((M @ x - c) ** 2) + 1e-6 * np.sum(c**2)
    np.testing.assert_allclose(solution.x, x, rtol=0, atol=1e-4 * (1 + np.linalg.norm(x)))


def test_projected_steps_do_not_depend_on_the_units_of_inequalities():
    rng = np.random.default_rng(13)
    A, B, inside = rng.standard_normal((18, 8)), rng.standard_normal((10, 8)), rng.standard_normal(8)
    sizes = 10.0 ** rng.uniform(-3, 3, 10)
    b, c = A @ inside + rng.standard_normal(18), B @ inside
    relations = ["="] * 18 + [">="] * 10
    rows, sides = np.vstack([A, sizes[:, None] * B]), np.concatenate([b, sizes * c])
    solution, exact = (fg.solve(rows, sides, relations=relations, method=name) for name in ("projected", "active-set"))
    assert solution.normal <= 1e-6, solution.status
    assert solution.epochs < 500
    cost, best = (np.linalg.norm(A @ found.x - b) for found in (solution, exact))
    assert cost == pytest.approx(best, rel=1e-2)


@pytest.mark.parametrize("damp", [0.0, 0.05])
def test_projected_steps_go_on_while_columns_of_other_units_move_x(damp):
    """Gradients along small columns are small from the start, and say nothing of x there."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((30, 12)) * np.logspace(0, -4, 12), rng.standard_normal(30)
        solution = fg.solve(A, b, bounds=(0, np.inf), damp=damp, method="projected", maxiter=5000)
        best = fg.solve(A, b, bounds=(0, np.inf), damp=damp, method="active-set").x
        assert solution.converged, solution.status
        np.testing.assert_allclose(solution.x, best, rtol=0, atol=1e-5 * np.linalg.norm(best))
        assert ("as far as its moves and the KKT residual tell" in solution.status) == (damp == 0)


@pytest.mark.parametrize("size", [1e-8, 1e8])
def test_the_units_of_the_matrix_do_not_matter_to_the_active_set(size):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 8)), rng.standard_normal(30)
    for damp in (0.0, 0.3):
        plain, scaled = (fg.solve(s * A, s * b, bounds=(0, 1), damp=s * damp) for s in (1.0, size))
        assert max(scaled.error, plain.error) <= 1e-11
        assert scaled.epochs == plain.epochs
        np.testing.assert_allclose(scaled.x, plain.x, rtol=0, atol=1e-12)


def test_bounds_that_are_both_infinite_are_named_as_such():
    with pytest.raises(InvalidInputError, match="leaves no finite number below"):
        fg.solve([[1.0]], [1.0], bounds=(np.inf, np.inf))


@pytest.mark.parametrize("seed", range(rounds(30, 300)))
def test_projected_steps_that_converged_are_at_the_minimum_with_columns_of_any_units(seed):
    """Columns up to 1e8 apart: the minimum is that of columns of one size, found by the active set."""
    rng = np.random.default_rng(seed)
    m, n = (40, 15) if seed % 2 else (15, 30)
    units = 10.0 ** rng.uniform(-4, 4, n)
    A, inside = rng.standard_normal((m, n)), rng.standard_normal(n)
    low = np.zeros(n) if seed % 3 else -rng.random(n)
    high = np.where(rng.random(n) < 0.5, low + rng.random(n), np.inf)
    b = A @ inside + rng.choice([0.01, 1.0]) * rng.standard_normal(m)
    solution = fg.solve(A * units, b, bounds=(low / units, high / units), method="projected", maxiter=5000)
    assert solution.converged, solution.status
    best = fg.solve(A, b, bounds=(low, high), method="active-set").x
    cost, least = (np.sum((A @ x - b) ** 2) for x in (units * solution.x, best))
    assert cost <= least * (1 + 1e-6) + 1e-12 * np.sum(b**2)
    assert solution.epochs < 1000


@pytest.mark.parametrize("seed", range(rounds(6, 40)))
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_the_nearest_minimiser_of_a_large_system(seed, noise, monkeypatch):
    rng = np.random.default_rng(seed)
    A, x0 = rng.standard_normal((30, 15)) @ rng.standard_normal((15, 40)), rng.standard_normal(40)
    b = A @ np.maximum(rng.standard_normal(40), 0) + noise * 10 * rng.standard_normal(30)
    options = {"bounds": (0, np.inf), "x0": x0, "nearest": True, "maxiter": 5000}
    best = fg.solve(A, b, method="active-set", **options).x
    monkeypatch.setattr(base, "SMALL", 0.0)
    found = [fg.solve(A, b, **options), fg.solve(csr_array(A), b, method="projected", **options)]
    for solution in found:
        if noise:
            assert solution.consistent is False, solution.status
            assert "x is the minimiser nearest to x0" in solution.status
        else:
            assert solution.converged, solution.status
        np.testing.assert_allclose(solution.x, best, rtol=0, atol=1e-4 * np.linalg.norm(best - x0))


def test_the_nearest_point_of_large_inequalities_and_sets(monkeypatch):
    rng = np.random.default_rng(2)
    A, B, x0 = rng.standard_normal((12, 6)) @ rng.standard_normal((6, 14)), rng.standard_normal((5, 14)), np.ones(14)
    b, c = A @ rng.standard_normal(14) + rng.standard_normal(12), B @ rng.standard_normal(14)
    rows, sides, relations = np.vstack([A, B]), np.concatenate([b, c]), ["="] * 12 + [">="] * 5
    options = {"x0": x0, "nearest": True, "maxiter": 5000}
    best = fg.solve(rows, sides, relations=relations, method="active-set", **options).x
    by_sets = [fg.Halfspace(row, side) for row, side in zip(B, c, strict=True)]
    for given in ((rows, sides, relations, ()), (A, b, "=", by_sets)):
        solution = fg.solve(*given[:2], relations=given[2], sets=given[3], method="projected", **options)
        assert solution.converged, solution.status
        np.testing.assert_allclose(solution.x, best, rtol=0, atol=1e-4 * np.linalg.norm(best - x0))


@pytest.mark.parametrize("seed", range(rounds(60, 500)))
def test_the_active_set_finds_the_minimum_with_columns_of_any_units(seed):
    """Columns up to 1e8 apart, of any rank: the objective is that of columns of one size."""
    given, rng = problem(seed), np.random.default_rng(seed)
    n = given.A.shape[1]
    units = 10.0 ** rng.uniform(-4, 4, n)
    plain = Problem(given.A, given.b, given.B, given.c, given.low, given.high, 0.0, given.x0)
    low, high = given.low / units, given.high / units
    scaled = Problem(given.A * units, given.b, given.B * units, given.c, low, high, 0.0, given.x0 / units)
    found, best = (each.solve(method="active-set") for each in (scaled, plain))
    costs = [np.sum((given.A @ x - given.b) ** 2) for x in (units * found.x, best.x)]
    assert costs[0] <= costs[1] + 1e-9 * np.sum(given.b**2), found.status
    if best.error is not None and best.error < 1e-8:  # and that of units is known as well
        assert found.error is not None, found.status
        assert found.error < 1e-6, found.status
    tight(plain, units * found.x, 1e-8)


@pytest.mark.parametrize("short", [1e-4, 1e-6])
def test_the_nearest_point_is_measured_in_x_where_columns_have_other_units(short):
    """-1.8 (x_0 + short x_1) = -1.8 (1.1 + short / 2) with x_0 >= 1.1: from (5, 4) the nearest x is (1.1, 0.5)."""
    side = -1.8 * (1.1 + 0.5 * short)
    solution = fg.solve(
        [[-1.8, -1.8 * short]], [side], bounds=([1.1, -np.inf], np.inf), x0=[5.0, 4.0], nearest=True, seed=0
    )
    assert solution.converged, solution.status
    np.testing.assert_allclose(solution.x, [1.1, 0.5], rtol=0, atol=1e-6)


def test_a_minimiser_that_is_not_known_to_be_the_nearest_has_not_converged(monkeypatch):
    class Lost(Polyhedron):
        def nearest(self, w):
            raise ForgettingError("rows that agree up to rounding")

    monkeypatch.setattr(quadratic, "Polyhedron", Lost)
    given = {"bounds": (0, 1), "x0": [0.6, 0.0, 0.0], "method": "active-set", "seed": 0, "maxiter": 3}
    for A, b in ([[1.0, 1.0, 1.0]], [1.0]), ([[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], [1.0, 1.5]):
        assert fg.solve(A, b, **given).converged
        solution = fg.solve(A, b, nearest=True, **given)
        assert not solution.converged, solution.status
        assert "distance to the nearest point is not known" in solution.status


@pytest.mark.parametrize("seed", ["two rows", 17, 78, 87, 178, 179, 238, 250, 260])
def test_projected_steps_end_at_a_minimum_of_matrices_without_full_rank(seed):
    """What is left of the gradient there is rounding errors along directions in which A is 0."""
    A, b, low = np.array([[-3.0, -1.0], [-9.0, -3.0]]), np.array([-1.0, 3.0]), np.array([-2.0, -np.inf])
    if seed != "two rows":
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(2, 7)), int(rng.integers(1, 8))
        k = int(rng.integers(1, min(m, n) + 1))
        A = np.round(2 * rng.standard_normal((m, k))) @ np.round(2 * rng.standard_normal((k, n)))
        low = np.where(rng.random(n) < 0.5, -rng.random(n), -np.inf)
        low[0] = -1
        b = np.round(3 * rng.standard_normal(m))
    found, best = (
        fg.solve(A, b, bounds=(low, np.inf), method=method, seed=0) for method in ("projected", "active-set")
    )
    assert found.epochs < 1000, found.status
    assert np.linalg.norm(found.x) < 1e6
    assert np.linalg.norm(A @ found.x - b) <= np.linalg.norm(A @ best.x - b) + 1e-6 * np.linalg.norm(b)
