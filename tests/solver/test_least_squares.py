"""Systems without a solution, and damped ones: least squares against NumPy, and what is said about the system."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.linalg import lsmr

import forgetting as fg
from effort import pairwise
from forgetting.errors import NotSupportedError
from forgetting.solver.methods import Extended, System
from forgetting.solver.rows import Rows
from forgetting.solver.sweepers import RowSweeper


def conditioned(rng, m, n, values):
    """A matrix with these singular values."""
    left = np.linalg.qr(rng.standard_normal((m, len(values))))[0]
    right = np.linalg.qr(rng.standard_normal((n, len(values))))[0]
    return (left * values) @ right.T


def wide_with_contradictions(rng):
    rows = rng.standard_normal((10, 30))
    return np.vstack([rows, rows[:5]])


def with_zero_rows(rng):
    A = rng.standard_normal((12, 4))
    A[[2, 7]] = 0.0
    return A


MATRICES = {
    "tall": lambda rng: rng.standard_normal((60, 15)),
    "very tall": lambda rng: rng.standard_normal((300, 3)),
    "rank-deficient": lambda rng: rng.standard_normal((50, 8)) @ rng.standard_normal((8, 20)),
    "condition 30": lambda rng: conditioned(rng, 50, 15, np.geomspace(1, 1 / 30, 15)),
    "rows of different norms": lambda rng: rng.standard_normal((60, 10)) * 10.0 ** rng.uniform(-1.5, 1.5, (60, 1)),
    "wide, with contradictions": wide_with_contradictions,
    "zero rows": with_zero_rows,
    "one column": lambda rng: rng.standard_normal((9, 1)),
    "nearly equal rows": lambda rng: np.repeat(rng.standard_normal((9, 5)), 2, axis=0) + 1e-2 * rng.random((18, 5)),
}


def problem(name, seed=0):
    """A matrix of this kind, and a right-hand side that it does not reach."""
    rng = np.random.default_rng([seed, len(name)])
    A = MATRICES[name](rng)
    return A, rng.standard_normal(len(A))


def least_squares(A, b, x0=0.0, damp=0.0):
    """The minimiser of |A x - b|^2 + damp^2 |x - x0|^2 that is nearest to x0."""
    x0 = np.broadcast_to(x0, (A.shape[1], *b.shape[1:]))
    left, values, right = np.linalg.svd(A, full_matrices=False)
    kept = values > 1e-12 * values[0]
    gains = values[kept] / (values[kept] ** 2 + damp**2)
    return x0 + right[kept].T @ ((left[:, kept] * gains).T @ (b - A @ x0))


def error(x, wanted):
    return float(np.linalg.norm(x - wanted) / np.linalg.norm(wanted))


def residual(A, b, x):
    return float(np.max(np.linalg.norm(b - A @ x, axis=0) / np.linalg.norm(b, axis=0)))


@pairwise(seed=range(3), method=["auto", "auto, large", "multipliers", "direct", "extended"], name=list(MATRICES))
def test_least_squares_solutions(name, method, seed, monkeypatch):
    A, b = problem(name, seed)
    auto = method.startswith("auto")
    if method == "auto, large":  # as a system that is too large for a decomposition
        monkeypatch.setattr("forgetting.solver.methods.base.SMALL", 0.0)
    solution = fg.solve(A, b, method="auto" if auto else method, tol=1e-7, maxiter=5000, seed=seed)
    wanted = least_squares(A, b)
    assert solution.consistent is False, solution.status
    assert solution.converged is not auto
    assert solution.status.startswith("the system is inconsistent: no x with |x| up to ")
    named = {
        "auto": ["kaczmarz, then direct"],
        "auto, large": ["kaczmarz, then cgls", "kaczmarz, then cgmn, then cgls", "cgmn, then cgls"],
    }
    assert solution.method in named.get(method, [method])
    assert error(solution.x, wanted) <= 1e-6
    if method == "auto, large":
        assert solution.error is None  # not estimated without a decomposition
    else:
        assert solution.error <= 1e-7
        assert error(solution.x, wanted) <= max(2 * solution.error, 1e-12)
    gap = b - A @ solution.x
    assert solution.residual == pytest.approx(residual(A, b, solution.x), rel=1e-9)
    normal = np.linalg.norm(A.T @ gap) / (np.linalg.norm(A) * np.linalg.norm(gap))
    assert solution.normal == pytest.approx(normal, rel=1e-6, abs=1e-15)
    assert normal <= 1e-7


@pytest.mark.parametrize("options", [{"blocks": 7}, {"blocks": "rows"}, {"relaxation": 0.7}, {"average": 3}])
@pytest.mark.parametrize("method", ["multipliers", "extended"])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_least_squares_by_other_steps(kind, method, options):
    A, b = problem("rank-deficient")
    x0 = np.linspace(-2, 2, 20)
    solution = fg.solve(kind(A), b, x0=x0, method=method, tol=1e-7, maxiter=5000, **options)
    assert solution.converged, solution.status
    assert error(solution.x, least_squares(A, b, x0)) <= 1e-6


@pytest.mark.parametrize("method", ["multipliers", "extended"])
@pytest.mark.parametrize("ordering", ["cyclic", "with-replacement", "norm-weighted", "greedy-distance"])
def test_least_squares_in_other_orders(ordering, method):
    A, b = problem("tall")
    solution = fg.solve(A, b, x0=np.ones(15), ordering=ordering, method=method, tol=1e-7, maxiter=5000)
    assert solution.converged, solution.status
    assert error(solution.x, least_squares(A, b, 1.0)) <= 1e-6


def test_columns_of_the_extended_method_take_turns():
    """Columns drawn with repetition leave x at rest for a while, which looks like convergence."""
    A, b = problem("one column")
    A = np.column_stack([A, A**2, A**3, np.ones(9)])
    method = Extended(System(RowSweeper(Rows(A)), b, np.zeros(4), seed=5))
    visited = [method._next_columns(3).tolist() for _ in range(8)]
    turns = np.concatenate(visited).reshape(6, 4)
    assert np.array_equal(np.sort(turns, axis=1), np.tile(np.arange(4), (6, 1)))
    assert len(np.unique(turns, axis=0)) > 1


@pytest.mark.parametrize("kind", ["moderate", "strong"])
def test_the_method_of_multipliers_goes_on_where_the_matrix_is_ill_conditioned(kind):
    """Condition 100 and 300: the shrinkage s is tuned to the matrix, and errors keep falling."""
    rng = np.random.default_rng(3)
    A = conditioned(rng, 50, 15, np.geomspace(1, 0.01 if kind == "moderate" else 1 / 300, 15))
    b = rng.standard_normal(50)
    solution = fg.solve(A, b, tol=1e-6, maxiter=4000)
    assert solution.consistent is False
    assert error(solution.x, least_squares(A, b)) <= 1e-5


@pytest.mark.parametrize("method", ["auto", "extended"])
def test_right_hand_sides_with_and_without_a_solution(method):
    A, b = problem("tall")
    sides = np.column_stack([A @ np.ones(15), b, np.zeros(60), A @ np.arange(15.0), 1e3 * b])
    solution = fg.solve(A, sides, tol=1e-8, method=method)
    assert solution.consistent is False, solution.status
    np.testing.assert_allclose(solution.x, least_squares(A, sides), rtol=0, atol=1e-4)
    for column in (1, 4):
        assert error(solution.x[:, column], least_squares(A, sides[:, column])) <= 1e-6
    assert solution.normal <= 1e-8
    assert solution.residual == pytest.approx(residual(A, b, solution.x[:, 1]), rel=1e-6)


def test_averages_approach_the_least_squares_solution():
    A, b = problem("tall")
    wanted = least_squares(A, b, 1.0)
    errors = []
    for epochs in (16, 2048):
        solution = fg.solve(A, b, x0=np.ones(15), method="averaged", tol=0, maxiter=epochs)
        errors.append(error(solution.x, wanted))
        assert (solution.converged, solution.consistent, solution.error) == (False, None, None)
    assert errors[1] < min(
        0.06, errors[0] / 6
    )  # like one over the root of the number of steps, which is 11 times larger
    loose = fg.solve(A, b, method="averaged", tol=0.1, maxiter=1000)
    assert loose.converged
    assert np.linalg.norm(A.T @ (b - A @ loose.x)) <= 0.1 * np.linalg.norm(A) * np.linalg.norm(b - A @ loose.x)
    assert error(loose.x, least_squares(A, b)) <= 0.1


@pairwise(
    x0=[0.0, 2.0],
    damp=[1e-6, 0.1, 1.0, 30.0, 1e6],
    name=["tall", "wide, with contradictions", "rows of different norms", "zero rows"],
    reached=[False, True],
)
def test_damped_least_squares(name, damp, x0, reached):
    A, b = problem(name)
    b = A @ np.ones(A.shape[1]) if reached else b
    start = np.full(A.shape[1], x0)
    solution = fg.solve(A, b, damp=damp, x0=start, tol=1e-8, maxiter=10000)
    assert solution.converged, solution.status
    assert solution.consistent is None
    assert solution.status.startswith("converged: x minimises |A x - b|^2 + damp^2 |x - x0|^2")
    wanted = least_squares(A, b, start, damp)
    assert np.linalg.norm(solution.x - wanted) <= 1e-6 * np.linalg.norm(wanted)
    assert solution.residual == pytest.approx(residual(A, b, solution.x), rel=1e-6, abs=1e-12)


def test_damping_means_what_it_means_in_scipy():
    A, b = problem("rank-deficient")
    x0 = np.linspace(0, 1, 20)
    theirs = lsmr(A, b - A @ x0, damp=0.3, atol=1e-14, btol=1e-14, maxiter=10000)[0]
    ours = fg.solve(A, b, damp=0.3, x0=x0, tol=1e-10, maxiter=5000)
    np.testing.assert_allclose(ours.x - x0, theirs, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "options", [{"blocks": 6}, {"average": 4}, {"relaxation": 1.4}, {"ordering": "greedy-distance"}]
)
def test_damped_steps_of_other_kinds(options):
    A, b = problem("tall")
    solution = fg.solve(A, b, damp=2.0, x0=np.ones(15), tol=1e-9, maxiter=5000, **options)
    assert solution.converged, solution.status
    assert error(solution.x, least_squares(A, b, 1.0, 2.0)) <= 1e-7


def test_damped_right_hand_sides():
    A, b = problem("tall")
    sides = np.column_stack([b, A @ np.ones(15), 0 * b])
    x0 = np.ones((15, 3))
    solution = fg.solve(A, sides, damp=1.5, x0=x0, tol=1e-9)
    assert solution.converged
    np.testing.assert_allclose(solution.x, least_squares(A, sides, x0, 1.5), rtol=0, atol=1e-7)


def test_damped_averages_approach_the_damped_solution():
    A, b = problem("tall")
    x0 = np.linspace(-1, 1, 15)
    errors = [
        error(fg.solve(A, b, damp=4.0, x0=x0, method="averaged", tol=0, maxiter=k).x, least_squares(A, b, x0, 4.0))
        for k in (16, 2048)
    ]
    assert errors[1] < min(0.06, errors[0] / 6)


def test_damping_a_zero_matrix_stays_at_the_start():
    for method in ("auto", "averaged"):
        solution = fg.solve(np.zeros((3, 2)), np.ones(3), damp=1.0, x0=[1.0, 2.0], method=method)
        assert solution.converged
        assert solution.x.tolist() == [1.0, 2.0]


def test_what_damping_does_not_go_with():
    A, b = problem("tall")
    for options in ({"method": "extended"}, {"method": "kaczmarz"}):
        with pytest.raises(NotSupportedError, match="damp"):
            fg.solve(A, b, damp=1.0, **options)
    for options in ({"relaxation": 0.5}, {"average": 2}):  # the ridge would be another one
        with pytest.raises(NotSupportedError, match="relaxation=1 and average=1"):
            fg.solve(A, b, damp=1.0, method="averaged", **options)


def check_claims(A, b, solution, tol):
    """Whether what is said about the system is true: residuals by NumPy, and those of least squares."""
    size = np.linalg.norm(b) or 1.0
    gap = np.linalg.norm(b - A @ solution.x) / size
    best = np.linalg.norm(b - A @ np.linalg.lstsq(A, b, rcond=None)[0]) / size
    rounded = 1e-15 * float(np.linalg.norm(A) * np.linalg.norm(solution.x)) / size  # of the sums in A x
    assert solution.residual == pytest.approx(gap, rel=1e-6, abs=max(1e-13, rounded))
    if solution.converged:
        assert gap <= tol * (1 + 1e-6) + 1e-15
        assert solution.consistent is True
    if solution.consistent is False:
        assert best > tol
        assert not solution.converged
    if best > tol * (1 + 1e-6) + 1e-13:
        assert not solution.converged


@given(
    m=st.integers(1, 12),
    n=st.integers(1, 8),
    rank=st.integers(1, 8),
    noise=st.sampled_from([0.0, 1e-9, 1e-5, 1e-2, 1.0]),
    tol=st.sampled_from([1e-1, 1e-3, 1e-6, 1e-9]),
    norms=st.sampled_from([0.0, 1.0, 3.0]),
    method=st.sampled_from(["auto", "kaczmarz"]),
    blocks=st.sampled_from(["auto", "rows", 3]),
    seed=st.integers(0, 10**6),
)
def test_no_claim_is_false(m, n, rank, noise, tol, norms, method, blocks, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    A *= 10.0 ** (norms * rng.standard_normal((m, 1)))
    b = A @ rng.standard_normal(n)
    b = b + noise * np.linalg.norm(b) * rng.standard_normal(m)
    check_claims(A, b, fg.solve(A, b, tol=tol, method=method, blocks=blocks, maxiter=300, seed=seed), tol)


@pairwise(
    seed=range(4), kind=["even", "gap", "large solution"], condition=[1e3, 1e5, 1e8, 1e12], tol=[1e-3, 1e-6, 1e-9]
)
def test_ill_conditioned_systems_are_not_called_inconsistent(condition, kind, tol, seed):
    rng = np.random.default_rng(seed)
    m, n = [(30, 10), (12, 12), (10, 30), (40, 20)][seed]
    values = np.geomspace(1, 1 / condition, min(m, n))
    if kind == "gap":
        values = np.where(np.arange(len(values)) % 2, 1.0, 1 / condition)
    A = conditioned(rng, m, n, values)
    x = rng.standard_normal(n)
    if kind == "large solution":
        _, _, right = np.linalg.svd(A, full_matrices=False)
        x = right[0] + np.sqrt(condition) * right[-1]
    b = A @ x
    solution = fg.solve(A, b, tol=tol, maxiter=250, seed=seed)
    assert solution.consistent is not False, solution.status
    check_claims(A, b, solution, tol)
    assert fg.solve(A, b, tol=tol, maxiter=250, seed=seed, method="multipliers").consistent is not False


def test_a_residual_just_above_the_tolerance_is_left_undecided():
    """x is the least-squares solution, but no computed number says that no x is 0.1 % better."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 5))
    off = rng.standard_normal(20)
    off -= A @ np.linalg.lstsq(A, off, rcond=None)[0]
    b = A @ np.ones(5)
    b += off * (1e-6 * np.linalg.norm(b) / np.linalg.norm(off))
    solution = fg.solve(A, b, tol=1e-6 * (1 - 1e-8), method="multipliers")
    assert solution.consistent is None
    assert "is not decided" in solution.status
    np.testing.assert_allclose(solution.x, np.ones(5), rtol=0, atol=1e-5)


def test_a_solution_that_was_not_seen_is_longer_than_the_status_says(monkeypatch):
    monkeypatch.setattr("forgetting.solver.methods.base.SMALL", 0.0)  # a decomposition would see it
    A, b = np.array([[1.0, 0.0], [1.0, 1e-6]]), np.array([0.0, 1.0])
    found = fg.solve(A, b, tol=1e-3, method="multipliers")
    assert found.consistent is False  # x = (0, 1e6) is a solution
    length = float(found.status.partition("|x| up to ")[2].split()[0])
    assert 10 <= length < 1e6
    assert fg.solve([[0.0, 0.0]], [1.0]).status.startswith("the system is inconsistent: no x has a relative")


@pytest.mark.parametrize("method", ["averaged", "multipliers"])
@pytest.mark.parametrize("several", [False, True])
def test_a_solution_of_the_system_is_not_yet_the_ridge_solution(method, several):
    rng = np.random.default_rng(3)
    A = rng.standard_normal((2000, 40))
    b = A @ (rng.standard_normal((40, 2)) if several else rng.standard_normal(40))
    ridge = np.linalg.solve(A.T @ A + np.eye(40), A.T @ b)  # its relative residual is 5e-4
    short = fg.solve(A, b, damp=1.0, method=method, maxiter=2)
    assert not short.converged
    assert np.linalg.norm(short.x - ridge) > 1e-6 * np.linalg.norm(ridge)
    assert "with the rows of damping" in short.status
    assert "of which 1e-06 is allowed, after 2 epochs" in short.status


def rational_solution(A, b, damp):
    """The minimiser of |A x - b|^2 + damp^2 |x|^2 in exact arithmetic; None if it is not unique."""
    n, exact = A.shape[1], [[Fraction(float(entry)) for entry in row] for row in np.column_stack([A, b])]
    left = [
        [sum(row[i] * row[j] for row in exact) + (Fraction(damp) ** 2 if i == j else 0) for j in range(n + 1)]
        for i in range(n)
    ]
    for i in range(n):
        pivot = next((row for row in range(i, n) if left[row][i]), None)
        if pivot is None:
            return None
        left[i], left[pivot] = left[pivot], left[i]
        for row in range(n):
            if row != i and left[row][i]:
                factor = left[row][i] / left[i][i]
                left[row] = [entry - factor * other for entry, other in zip(left[row], left[i], strict=True)]
    return np.array([float(left[i][n] / left[i][i]) for i in range(n)])


CLAIMS = (
    {"damp": 0.3},
    {"method": "multipliers"},
    {"damp": 0.3, "method": "multipliers"},
    {"method": "extended"},
    {"method": "direct"},
    {"damp": 0.01, "blocks": 2},
    {"damp": 1e-6},
    {"method": "multipliers", "average": 2},
    {"method": "averaged", "tol": 0.03},
    {"damp": 0.3, "method": "averaged", "tol": 0.03},
)


def badly_scaled(seed, several):
    """Two or three unknowns, and up to two more rows, all of norms between 1e-4 and 1e4."""
    rng = np.random.default_rng([31, seed])
    n = int(rng.integers(2, 4))
    m = n + int(rng.integers(3)) * int(rng.integers(2))
    A = rng.integers(-9, 10, (m, n)) * 2.0 ** rng.integers(-13, 14, (m, 1))
    b = rng.integers(-9, 10, (m, 2) if several else m) * 10.0 ** rng.integers(-1, 4)
    return A, b


def honest(seeds, options, epochs):
    """Check what is said of the error of x; the numbers of systems that were compared, and of small errors claimed."""
    compared, claimed = 0, 0
    for seed in seeds:
        A, b = badly_scaled(seed, several=seed % 5 == 0)
        wanted = [rational_solution(A, side, options.get("damp", 0.0)) for side in np.atleast_2d(b.T)]
        if wanted[0] is None or not np.any(wanted, axis=1).all():
            continue
        found = fg.solve(A, b, seed=seed, maxiter=epochs, **options)
        sides = zip(np.atleast_2d(found.x.T), wanted, strict=True)
        off = max(float(np.linalg.norm(x - best) / np.linalg.norm(best)) for x, best in sides)
        compared += 1
        if found.error is not None:
            assert off <= 1.01 * found.error + 1e-15, (seed, options, off, found.status)
            claimed += found.error < 0.05
        if found.converged and "relative residual" not in found.status.partition(",")[0]:
            assert off <= 0.05, (seed, options, off, found.status)
        if "damp" in options:
            assert found.status.startswith("converged") == found.converged, (seed, options, found.status)
    return compared, claimed


@pytest.mark.parametrize("options", CLAIMS, ids=str)
def test_no_small_error_of_x_is_claimed_that_is_not_there(options):
    compared, claimed = honest(range(30), options, 60)
    assert compared > 20
    assert claimed > 0


@pytest.mark.slow
@pytest.mark.parametrize("options", CLAIMS, ids=str)
def test_no_small_error_of_x_is_claimed_on_thousands_of_systems(options):
    compared, claimed = honest(range(1000, 1500), options, 100)
    assert compared > 400
    assert claimed > 10


def test_rows_of_very_different_norms_are_not_called_converged_before_the_small_ones_count():
    A, b = np.array([[1e4, 1e4], [0.0, 1e-2]]), np.array([1e4, 1e4])
    ridge = fg.solve(A, b, damp=0.3)
    np.testing.assert_allclose(ridge.x, rational_solution(A, b, 0.3), rtol=1e-5)
    assert (ridge.converged, ridge.method) == (True, "multipliers, then direct")
    A, b = np.array([[3e-4, 1.5e-3], [1e3, 2.1e4]]), np.array([-6.0, 2.0])
    slow = fg.solve(A, b, method="multipliers", maxiter=100)
    assert (slow.converged, slow.consistent) == (False, None)
    assert slow.error > 0.99
    np.testing.assert_allclose(fg.solve(A, b).x, [-26250, 1250], rtol=1e-5)


@pytest.mark.parametrize("damp", [0.3, 1e-2])
def test_the_gradient_bounds_the_error_of_a_damped_system_that_is_not_decomposed(damp, monkeypatch):
    monkeypatch.setattr("forgetting.solver.methods.base.SMALL", 0.0)
    assert honest(range(25), {"damp": damp}, 60)[1] > 0
    A, b = problem("tall")
    found = fg.solve(A, b, damp=2.0, tol=1e-8)
    assert found.converged
    assert found.error <= 1e-8
    assert error(found.x, least_squares(A, b, damp=2.0)) <= found.error


def test_errors_that_nothing_bounds_are_called_unknown(monkeypatch):
    monkeypatch.setattr("forgetting.solver.methods.base.SMALL", 0.0)
    A, b = problem("tall")
    found = fg.solve(A, b, method="multipliers")
    assert (found.converged, found.error) == (True, None)
    assert "its error is not known without a decomposition of A" in found.status


def test_a_ridge_solution_whose_error_is_above_the_tolerance_has_stopped_and_has_not_converged():
    solution = fg.solve([[3600.0, 3300.0], [-2e-4, -1e-4]], [2200.0, 1.5], damp=0.1, tol=1e-12)  # sizes 10^7 apart
    assert solution.error > 1e-12
    assert not solution.converged
    assert solution.status.startswith("stopped: x minimises")
