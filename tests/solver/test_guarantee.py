"""The guarantee of a solve holds for exact expectations, is reached where its theorem is tight, and says why not."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ProblemFileError
from forgetting.orderings import Cyclic, NormWeighted, Reshuffled, WithoutReplacement, WithReplacement
from forgetting.solver.guarantee import Terms, promised, smallest_eigenvalue
from forgetting.solver.rows import Rows
from forgetting.solver.sweepers import RowSweeper


def system(m=12, n=8, seed=0, spread=3.0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * np.geomspace(1, spread, m)[:, None]
    return A, rng.standard_normal(n)


def nearest_distance(A, x):
    """|x0 - x*|^2 from x0 = 0: the part of x in the row space."""
    return float(np.sum((np.linalg.pinv(A) @ (A @ x)) ** 2))


def as_tasks(A, b, size=1):
    cuts = range(0, len(A), size)
    return fg.RegressionTasks([A[i : i + size] for i in cuts], [b[i : i + size] for i in cuts])


@pytest.mark.parametrize("ordering", [WithReplacement(), NormWeighted(), WithReplacement(np.arange(1.0, 13.0))])
@pytest.mark.parametrize(("m", "n"), [(12, 8), (12, 30)])
@pytest.mark.parametrize("k", [5, 40, 200])
def test_exact_expectations_are_below_the_guarantee(ordering, m, n, k):
    A, x = system(m, n)
    solution = fg.solve(A, A @ x, tol=0, method="kaczmarz", blocks="rows", ordering=ordering, max_steps=k)
    promise = solution.guarantee
    unit = nearest_distance(A, x) * np.max(np.sum(A * A, axis=1))
    exact = fg.expect(as_tasks(A, A @ x), ordering, k, quantities=("loss",)).loss
    assert solution.rows == k
    assert 0 < exact <= promise.value * unit
    assert promise.value < 0.5  # says more than nothing


def test_the_means_of_solves_are_below_the_guarantee():
    A, x = system()
    b = A @ x
    unit = nearest_distance(A, x) * np.max(np.sum(A * A, axis=1))
    for k in (10, 60):
        solves = [
            fg.solve(A, b, tol=0, method="kaczmarz", ordering="norm-weighted", max_steps=k, seed=seed)
            for seed in range(40)
        ]
        loss = np.mean([np.mean((b - A @ one.x) ** 2) / 2 for one in solves])
        assert loss <= solves[0].guarantee.value * unit


@pytest.mark.parametrize(("size", "length"), [(1.0, 1.0), (3.0, 0.5)])
def test_the_bound_is_nearly_reached_on_two_lines(size, length):
    k = 60
    angles = np.linspace(0.01, 1.5, 2000)
    sine, cosine = np.sin(angles), np.cos(angles)
    losses = 0.25 * sine**2 * (1 + cosine) / 2 * ((1 + cosine**2) / 2) ** (k - 1)  # E L of two lines, w* between them
    best = angles[np.argmax(losses)]
    A = size * np.array([[0.0, 1.0], [-np.sin(best), np.cos(best)]])
    x = length * np.array([np.cos(best / 2), np.sin(best / 2)])
    solution = fg.solve(A, A @ x, tol=0, method="kaczmarz", ordering="with-replacement", max_steps=k)
    reached = losses.max() * size**2 * length**2 / (solution.guarantee.value * size**2 * length**2)
    assert solution.guarantee.bound == "two-lines:random/loss"
    assert 0.999 < reached <= 1


def test_blocks_have_the_guarantee_of_their_tasks():
    A, x = system(12, 30)
    k = 3000
    solution = fg.solve(A, A @ x, tol=0, method="kaczmarz", blocks=3, ordering="with-replacement", max_steps=k)
    norms = [np.linalg.norm(A[i : i + 3], 2) for i in range(0, 12, 3)]
    unit = nearest_distance(A, x) * max(norms) ** 2
    early = fg.solve(A, A @ x, tol=0, method="kaczmarz", blocks=3, ordering="with-replacement", max_steps=5)
    exact = fg.expect(as_tasks(A, A @ x, 3), WithReplacement(), 5, quantities=("loss",)).loss
    assert exact <= early.guarantee.value * unit
    assert "over blocks" in str(solution.guarantee)
    assert solution.guarantee.value < 0.5


def test_every_order_has_the_bound_on_the_errors_met_and_one_row_reaches_it():
    for relaxation in (1.0, 0.5, 1.5):
        terms = Terms(None, 7, 1, 1, True, None, relaxation)
        left, met = 1.0, 0.0  # a row of norm 1, |x0 - x*| = 1: the error shrinks by 1 - relaxation at each step
        for _ in range(7):
            met += 0.5 * left**2 / 7
            left *= 1 - relaxation
        value = promised(terms).value
        assert value == pytest.approx(1 / (2 * relaxation * (2 - relaxation) * 7))
        assert met <= value * (1 + 1e-12)
    assert promised(Terms(None, 7, 1, 1, True, None)).value == pytest.approx(1 / 14)  # met = 1/14 at relaxation 1


def test_the_default_solve_meets_errors_below_its_guarantee():
    A, x = system(40, 10)
    b = A @ x
    squares = np.sum(A * A, axis=1)
    solution = fg.solve(A, b, tol=1e-8)
    assert "groups of 4" in solution.blocks
    y, met = np.zeros(10), 0.0
    steps = 0
    for order in [np.random.default_rng(epoch).permutation(40) for epoch in range(5)]:  # any order will do
        for i in order:
            error = b[i] - A[i] @ y
            met += error**2 / 2
            y += error / squares[i] * A[i]
            steps += 1
    assert met / steps <= promised(Terms(None, steps, 40, 10, True, None)).value * (x @ x) * squares.max()
    assert solution.guarantee.bound == "lem:regret_bound/regret"
    assert solution.guarantee.value == pytest.approx(1 / (2 * solution.rows))
    assert "in every order" in str(solution.guarantee)


def test_whole_cycles_have_the_bounds_on_forgetting():
    # at the end of a cycle the mean over visits is the mean over rows; Evron 2022: T^2 (d - rank_max) / (2k)
    T, d, k = 3, 2, 3 * 40
    found = promised(Terms(Cyclic(), k, T, d, True, np.ones(T)))
    assert found.bound == "evron2022:cyclic/forgetting"
    assert found.value <= T**2 * (d - 1) / (2 * k)
    assert "is at most" in found.sentence
    assert "expected" not in found.sentence
    assert promised(Terms(Cyclic(), k + 1, T, d, True, np.ones(T))).bound == "lem:regret_bound/regret"


def test_one_pass_is_without_replacement_and_two_are_not():
    one = promised(Terms(Reshuffled(), 10**6, 10**6, 10**6, True, np.ones(10**6)))
    again = promised(Terms(WithoutReplacement(), 10**6, 10**6, 10**6, True, np.ones(10**6)))
    two = promised(Terms(Reshuffled(), 2 * 10**6, 10**6, 10**6, True, np.ones(10**6)))
    assert one == again
    assert one.bound == "here:single-pass/loss"
    assert two.bound == "lem:regret_bound/regret"


@pytest.mark.parametrize(("m", "n"), [(30, 4), (4, 30), (5, 5)])
@pytest.mark.parametrize("ordering", [NormWeighted(), WithReplacement()])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_least_eigenvalue_is_that_of_the_mean_projection(m, n, ordering, kind):
    from scipy.sparse import csr_array

    A, _ = system(m, n)
    sweeper = RowSweeper(Rows(A if kind == "dense" else csr_array(A)))
    norms = np.linalg.norm(A, axis=1)
    p = norms**2 / np.sum(norms**2) if isinstance(ordering, NormWeighted) else np.full(m, 1 / m)
    mean = sum(chance * np.outer(a, a) / (a @ a) for chance, a in zip(p, A, strict=True))
    expected = np.sort(np.linalg.eigvalsh(mean))[-min(m, n)]
    assert smallest_eigenvalue(sweeper, ordering, 10**6) == pytest.approx(expected, rel=1e-10)
    assert smallest_eigenvalue(sweeper, ordering, 10) is None  # a solve of ten steps costs less
    assert smallest_eigenvalue(sweeper, Cyclic(), 10**6) is None


def test_dependent_rows_have_no_linear_rate():
    A = np.ones((5, 3))
    assert smallest_eigenvalue(RowSweeper(Rows(A)), WithReplacement(), 10**6) is None
    A = np.array([[1.0, 0.0], [1.0, 1e-6]])  # the least eigenvalue is 5e-13, near the rounding errors of the largest
    assert smallest_eigenvalue(RowSweeper(Rows(A)), WithReplacement(), 10**6) is None


def test_the_linear_rate_is_above_the_exact_error():
    A, x = system(30, 3)
    solution = fg.solve(A, A @ x, tol=0, method="kaczmarz", ordering="norm-weighted", max_steps=180)
    exact = fg.expect(as_tasks(A, A @ x), NormWeighted(), 180, quantities=("error",)).values["error"]
    singular = np.linalg.svd(A, compute_uv=False)
    rate = (1 - singular[-1] ** 2 / np.sum(singular**2)) ** 180  # Strohmer and Vershynin 2009
    assert solution.guarantee.rate == pytest.approx(rate, rel=1e-9, abs=0)
    assert exact <= rate * (x @ x)
    assert "Strohmer and Vershynin" in str(solution.guarantee)


def test_orthogonal_rows_reach_the_linear_rate():
    k, n = 30, 4
    promise = promised(Terms(WithReplacement(), k, n, n, True, np.ones(n), gap=1 / n))
    tasks = fg.RegressionTasks([row[None] for row in np.eye(n)], np.ones((n, 1)))
    exact = fg.expect(tasks, WithReplacement(), k, quantities=("error",)).values["error"]
    assert exact == pytest.approx(promise.rate * n, rel=1e-9, abs=0)


TALL, ONES = np.random.default_rng(1).standard_normal((20, 4)), np.ones(4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"b": np.arange(20.0)}, "a system without a solution"),
        ({"b": np.arange(20.0), "method": "kaczmarz", "maxiter": 3}, ""),  # nobody knows that it is inconsistent
        ({"damp": 1.0}, "the method 'multipliers'"),
        ({"method": "extended"}, "the method 'extended'"),
        ({"average": 2}, "averages of several steps"),
        ({"bounds": (0, 9)}, "inequalities, bounds"),
        ({"relations": ">="}, "inequalities, bounds"),
        ({"maxiter": 0}, "no step was made"),
    ],
)
def test_where_no_theorem_applies_the_sentence_says_why(options, words):
    solution = fg.solve(TALL, **({"b": TALL @ ONES} | options))
    assert (solution.guarantee.value is None) == bool(words)
    assert (solution.guarantee.bound is None) == bool(words)
    assert words in str(solution.guarantee)


def test_several_right_hand_sides_share_the_guarantee():
    one = fg.solve(TALL, TALL @ ONES, tol=0, method="kaczmarz", blocks="rows", ordering="norm-weighted", max_steps=50)
    many = fg.solve(
        TALL, TALL @ np.ones((4, 3)), tol=0, method="kaczmarz", blocks="rows", ordering="norm-weighted", max_steps=50
    )
    assert one.guarantee == many.guarantee


def test_rows_that_are_zero_count_as_rows_without_rank():
    padded = np.concatenate([TALL, np.zeros((5, 4))])
    solution = fg.solve(
        padded, padded @ ONES, tol=0, method="kaczmarz", blocks="rows", ordering="with-replacement", max_steps=30
    )
    exact = fg.expect(as_tasks(padded, padded @ ONES), WithReplacement(), 30, quantities=("loss",)).loss
    assert exact <= solution.guarantee.value * 4 * np.max(np.sum(TALL**2, axis=1))
    nothing = fg.solve(
        np.zeros((3, 2)), np.zeros(3), tol=0, method="kaczmarz", blocks="rows", ordering="with-replacement", maxiter=2
    )
    assert str(nothing.guarantee)


def test_guarantees_are_kept_in_files_and_pickles(tmp_path):
    solution = fg.solve(TALL, TALL @ ONES, ordering="with-replacement")
    solution.save(tmp_path / "solution.npz")
    for again in (fg.solver.Solution.load(tmp_path / "solution.npz"), pickle.loads(pickle.dumps(solution))):
        assert again.guarantee == solution.guarantee
        assert hash(again.guarantee) == hash(solution.guarantee)
        assert repr(again.guarantee) == repr(solution.guarantee)
    other = fg.solve(TALL, TALL @ ONES, ordering="norm-weighted")
    assert other.guarantee != solution.guarantee


def test_a_damaged_guarantee_is_refused(tmp_path):
    solution = fg.solve(TALL, TALL @ ONES)
    solution.save(tmp_path / "solution.npz")
    with np.load(tmp_path / "solution.npz") as file:
        arrays = dict(file)
    arrays["record"] = np.array(str(arrays["record"]).replace('"sentence"', '"sentense"'))
    np.savez(tmp_path / "damaged.npz", **arrays)
    with pytest.raises(ProblemFileError, match="not a guarantee of a solution"):
        fg.solver.Solution.load(tmp_path / "damaged.npz")


def test_a_solve_does_not_wait_for_the_registry_of_bounds():
    code = (
        "import sys, numpy as np, forgetting as fg\n"
        "s = fg.solve(np.eye(3), np.ones(3)); repr(s); s.to_table()\n"
        "assert 'forgetting.theory' not in sys.modules\n"
        "str(s.guarantee)\n"
        "assert 'forgetting.theory' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
