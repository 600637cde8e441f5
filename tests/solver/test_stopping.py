"""When a solve ends, what it reports about its way, and what callers can do in between."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info, threadpool_limits

import forgetting as fg
from forgetting.compute.threads import one_thread
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.solver import solving
from forgetting.solver.loop import TALL

RNG = np.random.default_rng(0)
A = RNG.standard_normal((40, 12))
X = RNG.standard_normal(12)
B = A @ X
OFF = B + RNG.standard_normal(40)  # not reached


def residual(x, b=B, matrix=A):
    return np.linalg.norm(b - matrix @ x) / np.linalg.norm(b)


@pytest.mark.parametrize("tol", [1e-1, 1e-4, 1e-12])
@pytest.mark.parametrize("options", [{}, {"blocks": 5}, {"ordering": "cyclic"}, {"average": 4}, {"x0": 100 * X}])
def test_the_residual_is_at_most_the_tolerance(tol, options):
    solution = fg.solve(A, B, tol=tol, **options)
    assert solution.converged
    assert solution.residual == pytest.approx(residual(solution.x), rel=1e-3, abs=1e-15)
    assert residual(solution.x) <= tol * (1 + 1e-6)
    assert solution.tol == tol
    assert solution.status.startswith("converged: relative residual")
    assert (solution.history.residual[-1], solution.history.checked[-1]) == (solution.residual, True)


def test_the_relative_residual_does_not_depend_on_scales():
    plain = fg.solve(A, B, tol=1e-5)
    scaled = fg.solve(1024 * A, B / 64, tol=1e-5)
    np.testing.assert_allclose(scaled.x * 1024 * 64, plain.x, rtol=1e-12)
    assert scaled.epochs == plain.epochs


def test_a_right_hand_side_of_zeros_is_measured_against_the_start():
    solution = fg.solve(A, np.zeros(40), x0=X, tol=1e-7)
    assert solution.converged
    assert np.linalg.norm(A @ solution.x) <= 1e-7 * np.linalg.norm(A @ X)
    assert fg.solve(A, np.zeros(40)).x.tolist() == [0.0] * 12


@pytest.mark.parametrize("atol", [1e-3, 1e-6])
def test_tolerances_as_in_lsmr(atol):
    size = np.linalg.norm(A)
    solution = fg.solve(A, B, atol=atol, btol=0.0, tol=1e-14)
    assert solution.converged
    gap = np.linalg.norm(B - A @ solution.x)
    assert gap <= atol * size * np.linalg.norm(solution.x) * (1 + 1e-6)
    assert gap > 1e-14 * np.linalg.norm(B)  # btol replaces tol
    loose = fg.solve(A, B, atol=0.0, btol=1e-2, tol=1e-14)
    assert 1e-14 < residual(loose.x) <= 1e-2
    inconsistent = fg.solve(A, OFF, atol=atol, tol=1e-12, method="multipliers")
    r = OFF - A @ inconsistent.x
    assert inconsistent.converged
    assert np.linalg.norm(A.T @ r) <= atol * size * np.linalg.norm(r)


def test_every_right_hand_side_meets_its_own_tolerance():
    """|x| / |b| is 1 and 1/100, and the first is solved from the start."""
    matrix = np.diag([1.0, 100.0])
    solution = fg.solve(matrix, matrix, x0=np.diag([1.0, 0.0]), atol=1e-4, btol=1e-12, relaxation=0.1)
    assert solution.converged
    for column, b in zip(solution.x.T, matrix.T, strict=True):
        allowed = 1e-4 * np.linalg.norm(matrix) * np.linalg.norm(column) + 1e-12 * np.linalg.norm(b)
        assert np.linalg.norm(b - matrix @ column) <= allowed * (1 + 1e-6)


@pytest.mark.parametrize("method", ["auto", "kaczmarz", "multipliers", "extended", "averaged"])
def test_no_epochs_leave_the_start(method):
    solution = fg.solve(A, B, x0=X + 1, maxiter=0, method=method)
    assert np.array_equal(solution.x, X + 1)
    assert (solution.converged, solution.rows, solution.epochs, len(solution.history)) == (False, 0, 0.0, 0)
    assert solution.residual == pytest.approx(residual(X + 1))
    assert solution.status.startswith("stopped: maxiter = 0 reached; ")
    assert repr(solution)
    assert solution.to_frame().shape[0] == 0
    already = fg.solve(A, B, x0=X, maxiter=0, method=method)
    assert already.converged


@pytest.mark.parametrize("options", [{}, {"blocks": 7}, {"ordering": "greedy-distance"}, {"method": "extended"}])
def test_epochs_and_rows_are_counted(options):
    solution = fg.solve(A, B, tol=0, maxiter=5, **options)
    if "blocks" not in options and "ordering" not in options:
        assert solution.history.epoch.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert solution.epochs == solution.rows / 40
    assert solution.rows == 200
    assert f"after 5 epochs ({solution.rows} row steps)" in solution.status
    assert "after 1 epoch (" in fg.solve(A, B, tol=0, maxiter=1, **options).status
    assert "maxiter = 5" in solution.status
    assert solution.history.epoch[-1] == solution.epochs


def test_maxiter_covers_both_methods_of_auto():
    solution = fg.solve(A, OFF, tol=0, maxiter=30)
    assert solution.method.startswith("kaczmarz, then")
    assert solution.epochs == 30
    assert (np.diff(solution.history.epoch) > 0).all()
    assert (np.diff(solution.history.seconds) >= 0).all()


@pytest.mark.parametrize("steps", [0, 1, 7, 40, 93])
@pytest.mark.parametrize("method", ["kaczmarz", "extended"])
def test_steps_are_counted_exactly(steps, method):
    solution = fg.solve(A, B, tol=0, max_steps=steps, blocks="rows", method=method)
    assert solution.rows == steps
    assert solution.status.startswith(f"stopped: {steps} visit{'s' * (steps != 1)} made; ")
    assert solution.status.endswith(f"({steps} row step{'s' * (steps != 1)})")
    assert solution.residual == pytest.approx(residual(solution.x), rel=1e-12)
    halves = fg.solve(A, OFF, tol=0, max_steps=steps, blocks=20, method=method)
    assert halves.rows == 20 * steps


def test_time_is_a_limit():
    solution = fg.solve(A, OFF, tol=0, seconds=0, method="kaczmarz")
    assert (solution.rows, solution.converged) == (0, False)
    assert solution.status.startswith("stopped: seconds = 0 reached; ")


def test_a_tolerance_of_zero_ends_and_says_what_rounding_allows():
    solution = fg.solve(A, B + 1e-3 * np.sin(B), tol=0, method="kaczmarz")
    assert not solution.converged
    assert solution.status.startswith("stopped: the residual falls no more")
    exact = fg.solve(A, B, tol=1e-18, method="kaczmarz")
    assert exact.residual < 1e-14
    assert exact.converged or "as small as rounding errors allow" in exact.status
    assert fg.solve(A, B, tol=0, method="multipliers", maxiter=300).residual < 1e-12


def test_the_callback_sees_every_entry_and_can_stop():
    seen = []
    solution = fg.solve(A, B, tol=0, maxiter=6, callback=seen.append)
    assert len(seen) == len(solution.history) == 6
    assert np.array_equal(seen[-1], solution.x)
    assert not np.array_equal(seen[0], seen[1])  # copies, which stay as they were
    stopped = fg.solve(A, B, tol=0, callback=lambda x: np.linalg.norm(B - A @ x) < 0.1 * np.linalg.norm(B))
    assert stopped.status.startswith("stopped by the callback")
    assert residual(stopped.x) < 0.1
    assert not stopped.converged
    assert fg.solve(A, B, tol=0.1, callback=lambda x: residual(x) < 0.1).converged


@pytest.mark.parametrize("method", ["kaczmarz", "multipliers", "extended", "averaged"])
def test_the_callback_cannot_change_the_solve(method):
    def spoil(x):
        with pytest.raises(ValueError, match="read-only"):
            x[:] = 0.0

    plain = fg.solve(A, OFF, tol=0, maxiter=5, method=method)
    spoilt = fg.solve(A, OFF, tol=0, maxiter=5, method=method, callback=spoil)
    assert np.array_equal(plain.x, spoilt.x)


def test_an_interrupted_solve_leaves_nothing_behind():
    def interrupt(x):
        raise KeyboardInterrupt

    kept = A.copy(), B.copy()
    threads = [library["num_threads"] for library in threadpool_info()]
    before = fg.solve(A, B, maxiter=3, tol=0).x
    for options in ({}, {"blocks": 5, "threads": 3, "average": 2}):
        with pytest.raises(KeyboardInterrupt):
            fg.solve(A, B, callback=interrupt, **options)
    assert np.array_equal(fg.solve(A, B, maxiter=3, tol=0).x, before)
    assert [library["num_threads"] for library in threadpool_info()] == threads
    assert np.array_equal(A, kept[0])
    assert np.array_equal(B, kept[1])


def test_solves_of_several_threads_that_overlap_restore_the_number_of_threads():
    def blas():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with one_thread():  # all libraries are loaded now
        pass
    with threadpool_limits(2, user_api="blas"):
        before = blas()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # the first solve ends while the second one goes on
        assert set(blas()) == {1}
        second.__exit__(None, None, None)
        assert blas() == before


def test_tall_matrices_are_judged_within_an_epoch():
    rng = np.random.default_rng(1)
    tall = rng.standard_normal((TALL * 2 * 10, 2))
    b = tall @ [1.0, 2.0]
    solution = fg.solve(tall, b, tol=1e-8)
    assert solution.converged
    assert solution.epochs < 1
    assert residual(solution.x, b, tall) <= 1e-8


def test_the_history_estimates_what_it_does_not_compute():
    solution = fg.solve(A, B, tol=1e-9)
    history = solution.history
    assert history.epoch.shape == history.residual.shape == history.seconds.shape == history.checked.shape
    assert len(history) == len(history.epoch) > 5
    assert history.checked.dtype == bool
    assert 0 < history.checked.sum() < len(history)
    assert (history.residual > 0).all()
    assert history.residual[0] > 1e3 * history.residual[-1]


def test_a_solve_that_diverges_says_so():
    """Ten equal rows, averaged with a factor for orthogonal rows: every step is 19 times too long."""
    solution = fg.solve(np.ones((10, 3)), np.ones(10), average=10, relaxation=19, maxiter=2000, method="kaczmarz")
    assert not solution.converged
    assert solution.consistent is None
    with np.errstate(all="ignore"):
        truth = np.linalg.norm(1 - 3 * solution.x[0])
    assert solution.residual > 1e3 or not np.isfinite(truth)


def test_average_and_orderings_that_look_at_x_exclude_each_other():
    with pytest.raises(NotSupportedError, match="average= needs an ordering that does not look at x"):
        fg.solve(A, B, average=2, ordering="greedy-distance")


def test_zero_matrices_are_solved_or_inconsistent():
    for method in ("auto", "kaczmarz", "multipliers", "extended", "averaged"):
        solution = fg.solve(np.zeros((3, 2)), np.zeros(3), x0=[1.0, 2.0], method=method)
        assert (solution.converged, solution.x.tolist()) == (True, [1.0, 2.0])
        other = fg.solve(np.zeros((3, 2)), np.ones(3), x0=[1.0, 2.0], method=method)
        assert (other.x.tolist(), other.residual) == ([1.0, 2.0], 1.0)
        assert other.consistent is (None if method == "kaczmarz" else False)
        assert other.converged is (method not in ("auto", "kaczmarz"))
        assert other.epochs < 100


def test_contradictory_zero_rows_are_found():
    rows = np.vstack([A, np.zeros((1, 12))])
    solution = fg.solve(rows, np.append(B, 1.0), tol=1e-8)
    assert solution.consistent is False
    np.testing.assert_allclose(solution.x, X, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1}, "tol must be at least 0"),
        ({"tol": np.nan}, "tol must be finite"),
        ({"tol": "small"}, "tol must be a number"),
        ({"atol": -1}, "atol"),
        ({"btol": None, "maxiter": -1}, "maxiter must be at least 0"),
        ({"maxiter": 1.5}, "maxiter must be a whole number"),
        ({"max_steps": -1}, "max_steps"),
        ({"seconds": -1}, "seconds"),
        ({"callback": 3}, "callback must be a function, got 3"),
        ({"relaxation": 0}, "relaxation"),
        ({"relaxation": 2}, "relaxation must be less than 2"),
        ({"relaxation": 4, "average": 2}, "relaxation must be less than 4"),
        ({"average": 0}, "average"),
        ({"average": "some"}, "average"),
        ({"threads": 0}, "threads"),
        ({"memory": -1}, "memory"),
        ({"damp": -1}, "damp"),
        ({"method": "conjugate"}, "no method 'conjugate'; there are kaczmarz"),
        ({"ordering": "cylic"}, "did you mean 'cyclic'"),
        ({"seed": -1}, "seed"),
        ({"blocks": "columns"}, "blocks: expected 'auto', 'rows', a number or a partition, got 'columns'"),
        ({"blocks": 0}, "blocks must be at least 1"),
        ({"blocks": 2.5}, "blocks must be a whole number"),
        ({"blocks": None}, "blocks must be a whole number"),
        ({"blocks": []}, "row 0 is in 0 blocks"),
        ({"blocks": [range(39)]}, "row 39 is in 0 blocks"),
        ({"blocks": [range(40), [7]]}, "row 7 is in 2 blocks"),
        ({"blocks": [range(40), []]}, "block 1 has no rows"),
        ({"blocks": [range(41)]}, r"block 0\[40\] is 40"),
        ({"relations": ["="]}, "relations: expected one for all rows, or one for each of 40, got 1"),
        ({"bounds": (0, None)}, "bounds: got None; use -inf or inf"),
        ({"bounds": (1, 0)}, r"bounds \(lo, hi\): the box is empty: lo\[0\] = 1 is above hi\[0\] = 0"),
        ({"sets": 3}, "sets: expected a convex set such as .*, got 3"),
        ({"x0": csr_array(np.ones((12, 1)))}, r"x0 is sparse; give x0.toarray\(\)"),
    ],
)
def test_odd_options_are_named(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(A, B, **options)


def test_the_default_number_of_epochs():
    assert solving.EPOCHS == 1000
    solution = fg.solve(A, OFF, tol=0, method="multipliers")
    assert "maxiter = 1000" in solution.status


def test_averages_with_too_long_steps_diverge_without_warnings():
    twins = np.repeat(A[:1], 20, axis=0)  # the average of equal steps is as long as one of them: 2 is the limit there
    solution = fg.solve(twins, np.ones(20), average=2, relaxation=3.99, method="kaczmarz")
    assert not solution.converged
    assert solution.status.startswith("diverged: x is not finite")


def test_rows_that_an_ordering_does_not_trust_decide_nothing():
    rows = np.zeros((60, 3))
    rows[:57, :2], rows[57:, 2] = RNG.standard_normal((57, 2)), 1.0
    solution = fg.solve(rows, rows @ [1.0, 2.0, 50.0], ordering="quantile")  # three rows look wrong, and are not
    assert solution.converged
    assert solution.residual > 0.5
    assert solution.consistent is None
    assert solution.status.startswith("converged on 54 of 60 rows, those that the ordering trusts: relative residual ")
    few = fg.solve(A, B, ordering=fg.orderings.Quantile(1e-9), maxiter=1)
    assert "converged on 0 of" not in few.status


@pytest.mark.parametrize("method", ["auto", "active-set", "projected"])
@pytest.mark.parametrize("options", [{"maxiter": 0}, {"seconds": 0}, {"max_steps": 1}])
def test_a_damped_solve_within_bounds_may_end_before_anything_was_done(method, options):
    solution = fg.solve(np.eye(2), [1.0, 2.0], bounds=(0, 1), damp=0.1, method=method, **options)
    if not solution.x.any():
        assert not solution.converged
        assert "x has not moved yet" in solution.status


def test_a_limit_after_which_all_numbers_are_allowed_is_not_said_to_miss_them():
    solution = fg.solve(np.eye(2), [1.0, 2.0], damp=0.1, method="cgls", max_steps=1)
    assert not solution.converged
    assert "at most 1e-06, but not yet" in solution.status
    assert "is allowed" not in solution.status
