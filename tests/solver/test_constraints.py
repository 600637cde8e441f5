"""Inequalities, bounds and nearest points against quadratic programming, NNLS and bounded least squares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize, nnls
from scipy.sparse import csr_array

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError

KINDS = [np.asarray, csr_array]


def inequalities(seed, m=14, n=6):
    """A x <= b with points inside, and a point outside."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n)) * (rng.random((m, n)) < 0.8)
    b = A @ rng.standard_normal(n) + rng.uniform(0.0, 0.5, m)
    return A, b, 3 * rng.standard_normal(n)


def mixed(seed, m=10, n=8):
    """Rows of all three relations with a common point, on which half of the inequalities are tight."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, n))
    relations = np.array(["=", ">=", "<=", ">=", "<="] * 2)
    slack = rng.random(m) * np.select([relations == ">=", relations == "<="], [-1, 1], 0) * (rng.random(m) < 0.5)
    return A, A @ rng.standard_normal(n) + slack, relations.tolist(), 3 * rng.standard_normal(n)


def missed(A, b, relations, x):
    """The part of b - A x that violates the rows, relative to |b|."""
    gap = b - A @ x
    gap[(np.array(relations) == ">=") & (gap < 0)] = 0.0
    gap[(np.array(relations) == "<=") & (gap > 0)] = 0.0
    return float(np.linalg.norm(gap) / np.linalg.norm(b))


def projection(x0, A, b, relations, low=None, high=None):
    """The point nearest to x0 that satisfies rows and bounds, by the active-set projection of `fg.Polyhedron`."""
    n = len(x0)
    normals, offsets = [], []
    for row, value, relation in zip(A, b, relations, strict=True):
        if relation in ("=", ">="):
            normals, offsets = [*normals, row], [*offsets, value]
        if relation in ("=", "<="):
            normals, offsets = [*normals, -row], [*offsets, -value]
    for j in range(n):
        for bound, sign in ((low, 1.0), (high, -1.0)):
            if bound is not None and np.isfinite(bound[j]):
                normals, offsets = [*normals, sign * np.eye(n)[j]], [*offsets, sign * bound[j]]
    return fg.Polyhedron(np.array(normals), np.array(offsets)).nearest(x0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("options", [{}, {"average": 3}, {"relaxation": 1.5}, {"ordering": "greedy-distance"}])
def test_points_that_satisfy_inequalities(kind, seed, options):
    A, b, x0 = inequalities(seed)
    solution = fg.solve(kind(A), b, relations="<=", x0=x0, tol=1e-9, maxiter=5000, **options)
    assert solution.converged, solution.status
    assert solution.residual == pytest.approx(missed(A, b, ["<="] * len(A), solution.x), abs=1e-14)
    assert solution.residual <= 1e-9
    assert np.max(A @ solution.x - b) <= 1e-8


@pytest.mark.parametrize("seed", range(4))
def test_both_senses_are_the_same_up_to_signs(seed):
    A, b, x0 = inequalities(seed)
    below = fg.solve(A, b, relations="<=", x0=x0, maxiter=4, tol=0)
    above = fg.solve(-A, -b, relations=[">="] * len(A), x0=x0, maxiter=4, tol=0)
    np.testing.assert_allclose(below.x, above.x, rtol=0, atol=1e-13)


def test_a_start_that_satisfies_all_rows_is_kept():
    A, b, _ = inequalities(0)
    inside = fg.solve(A, b - 0.01, relations="<=", tol=1e-12, maxiter=5000).x
    for nearest in (False, True):
        assert np.array_equal(fg.solve(A, b, relations="<=", x0=inside, nearest=nearest).x, inside)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("average", [1, 3])
def test_the_nearest_point_of_inequalities(kind, seed, average):
    A, b, x0 = inequalities(seed)
    solution = fg.solve(kind(A), b, relations="<=", x0=x0, nearest=True, tol=1e-8, maxiter=20000, average=average)
    assert solution.converged, solution.status
    np.testing.assert_allclose(solution.x, projection(x0, A, b, ["<="] * len(A)), rtol=0, atol=1e-6)


def test_a_point_that_satisfies_all_rows_need_not_be_the_nearest():
    """After two steps x = (0, -1/2) satisfies both rows, but (0, 0) is nearer to x0 = (2, 1)."""
    A, x0 = np.array([[1.0, 1.0], [1.0, 0.0]]), [2.0, 1.0]
    found = fg.solve(A, [0.0, 0.0], relations="<=", x0=x0, ordering="cyclic")
    np.testing.assert_allclose(found.x, [0.0, -0.5], rtol=0, atol=1e-15)
    nearest = fg.solve(A, [0.0, 0.0], relations="<=", x0=x0, ordering="cyclic", nearest=True, tol=1e-8)
    assert nearest.converged
    np.testing.assert_allclose(nearest.x, [0.0, 0.0], rtol=0, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_mixed_rows(kind, nearest, bounded, seed):
    A, b, relations, x0 = mixed(seed)
    low, high = (np.full(8, -4.0), np.full(8, 4.0)) if bounded else (None, None)
    options = {"bounds": (low, high)} if bounded else {}
    solution = fg.solve(kind(A), b, relations=relations, x0=x0, nearest=nearest, tol=1e-9, maxiter=30000, **options)
    assert solution.converged, solution.status
    assert missed(A, b, relations, solution.x) <= 1e-9 * (1 + 1e-6)
    if bounded:
        assert (low <= solution.x).all()
        assert (solution.x <= high).all()
    if nearest:
        np.testing.assert_allclose(solution.x, projection(x0, A, b, relations, low, high), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("blocks", ["auto", 3])
@pytest.mark.parametrize("seed", range(3))
def test_non_negative_solutions(kind, blocks, seed):
    rng = np.random.default_rng(seed)
    A = rng.random((20, 8))
    b = A @ np.maximum(rng.standard_normal(8), 0)
    solution = fg.solve(kind(A), b, bounds=(0, np.inf), tol=1e-10, blocks=blocks, maxiter=20000)
    assert solution.converged, solution.status
    assert solution.x.min() >= 0
    np.testing.assert_allclose(solution.x, nnls(A, b)[0], rtol=0, atol=1e-6)  # the only solution


@pytest.mark.parametrize("seed", range(3))
def test_the_non_negative_solution_of_least_norm(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((6, 15))
    inside = np.maximum(rng.standard_normal(15), 0)
    b = A @ inside
    wanted = minimize(
        lambda x: x @ x / 2,
        inside,
        jac=lambda x: x,
        bounds=[(0, None)] * 15,
        constraints={"type": "eq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    for blocks in ("rows", 2):
        solution = fg.solve(A, b, bounds=(0, np.inf), nearest=True, tol=1e-9, maxiter=20000, blocks=blocks)
        assert solution.converged, solution.status
        np.testing.assert_allclose(solution.x, wanted.x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_solutions_within_a_box(kind, seed):
    rng = np.random.default_rng(seed)
    A, low = rng.standard_normal((20, 8)), -rng.random(8)
    high = low + rng.random(8)
    b = A @ np.clip(rng.standard_normal(8), low, high)
    solution = fg.solve(kind(A), b, bounds=(low, high), tol=1e-10, maxiter=20000)
    assert solution.converged, solution.status
    assert ((low <= solution.x) & (solution.x <= high)).all()
    np.testing.assert_allclose(solution.x, lsq_linear(A, b, (low, high), tol=1e-14).x, rtol=0, atol=1e-6)


def test_bounds_hold_where_no_row_looks():
    """Column 1 is zero: x_1 is clipped all the same, and x0 may lie outside."""
    A = np.array([[1.0, 0.0], [2.0, 0.0]])
    for kind in KINDS:
        for nearest in (False, True):
            solution = fg.solve(kind(A), [0.5, 1.0], bounds=(0, [1, 2]), x0=[-5.0, 9.0], nearest=nearest, tol=1e-9)
            assert solution.converged
            np.testing.assert_allclose(solution.x, [0.5, 2.0], rtol=0, atol=1e-8)


INFEASIBLE = {
    "two half-lines": ([[1.0], [1.0]], [1.0, 0.0], {"relations": [">=", "<="]}, "row 0, row 1 contradict"),
    "a row that is zero": ([[0.0, 0.0], [1.0, 1.0]], [1.0, 1.0], {"relations": ">="}, "row 0 contradict"),
    "a row beyond the bounds": ([[1.0, 1.0]], [3.0], {"bounds": (0, 1)}, "the bounds exclude every solution"),
    "negative": ([[1.0, 2.0]], [-1.0], {"bounds": (0, np.inf)}, "the bounds exclude every solution"),
    "equations": (
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
        [1.0, 2.0, 0.0],
        {"relations": ["=", "=", ">="]},
        "no x solves the system",
    ),
    "a bound and a row": (
        [[1.0, 1.0], [1.0, -1.0]],
        [5.0, 0.0],
        {"relations": [">=", "="], "bounds": (0, 1)},
        "row 0, the upper bound on x[0], the upper bound on x[1] contradict",
    ),
    "a set and a row": (
        [[1.0, 1.0]],
        [5.0],
        {"relations": [">="], "sets": [fg.Box([-1.0, -1.0], [1.0, 1.0])]},
        "row 0, set 0 contradict",
    ),
}


@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("name", INFEASIBLE)
def test_infeasible_systems_do_not_converge_and_the_status_says_why(name, nearest):
    A, b, options, words = INFEASIBLE[name]
    solution = fg.solve(A, b, nearest=nearest, maxiter=500, **options)
    assert (solution.converged, solution.consistent) == (False, False)
    assert words in solution.status
    assert solution.residual > 0.1


def test_what_inequalities_do_not_go_with():
    A, b = np.eye(3), np.ones(3)
    for options in ({"relations": ">="}, {"bounds": (0, 1)}):
        for others in ({"b": np.ones((3, 2))}, {"method": "multipliers"}, {"method": "extended"}):
            with pytest.raises(NotSupportedError, match="inequalities"):
                fg.solve(A, others.get("b", b), **options, **{k: v for k, v in others.items() if k != "b"})
    with pytest.raises(NotSupportedError, match="row by row"):
        fg.solve(A, b, relations=">=", blocks=2)
    for method in ("active-set", "projected"):
        with pytest.raises(NotSupportedError, match="there are none"):
            fg.solve(A, b, method=method)
    with pytest.raises(NotSupportedError, match="method='projected' takes them"):
        fg.solve(A, b, bounds=(0, 1), method="active-set", sets=fg.Ball([0.0, 0.0, 0.0], 1.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relations": 3}, "relations: expected '=', '>=' or '<=', got 3"),
        ({"relations": "<"}, "relation '<' of row 0"),
        ({"relations": ["=", ">", "="]}, "relation '>' of row 1"),
        ({"relations": ["=", "="]}, "one for all rows, or one for each of 3, got 2"),
        ({"bounds": 1}, r"expected \(low, high\), got 1"),
        ({"bounds": (0, 1, 2)}, r"expected \(low, high\)"),
        ({"bounds": (0, [1, 2])}, "3 numbers"),
        ({"bounds": (2, 1)}, "box is empty"),
        ({"bounds": (np.nan, 1)}, "nan"),
        ({"bounds": ("a", 1)}, "bounds: expected real numbers"),
        ({"nearest": "yes"}, "nearest must be True or False"),
    ],
)
def test_odd_constraints_are_named(options, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.solve(np.eye(3), np.ones(3), **options)


def test_the_status_names_the_distance_to_the_nearest_point_beside_the_residual():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 10))
    b = A @ rng.standard_normal(10) - 1
    found = fg.solve(A, b, relations=">=", nearest=True, callback=lambda x: (A @ x >= b).all())
    assert (found.converged, found.residual) == (False, 0.0)
    assert "; relative residual 0, but the relative distance to the nearest point may be 0." in found.status
    found = fg.solve(A, b, relations=">=", nearest=True, tol=1e-2)
    assert found.converged
    assert found.status.startswith(f"converged: relative residual {found.residual:.2g} and the relative distance to ")
    early = fg.solve([[1.0, 0.0]], [0.0], sets=fg.Ball([0.0, 3.0], 1.0), nearest=True, maxiter=1)
    assert "but the relative distance to the nearest point is not known, after" in early.status


@pytest.mark.parametrize("nearest", [False, True])
def test_x_lies_in_the_sets_and_between_the_bounds(nearest):
    ball = fg.Ball([0.0, 0.0], 1.0)
    apart = fg.solve([[0.0, 1.0]], [0.0], bounds=([2.0, -5.0], [9.0, 5.0]), sets=ball, nearest=nearest, maxiter=300)
    assert not apart.converged
    both = fg.solve([[1.0, 1.0]], [1.2], relations=">=", bounds=(0, 0.7), sets=ball, x0=[3.0, 0.0], nearest=nearest)
    assert both.converged
    assert both.x.max() <= 0.7 + 1e-6
    assert np.linalg.norm(both.x) <= 1 + 1e-6
    assert both.x.sum() >= 1.2 - 2e-6


def test_a_column_is_told_from_one_right_hand_side():
    with pytest.raises(NotSupportedError, match=r"one right-hand side, a b of shape \(2,\) and not \(2, 1\)"):
        fg.solve(np.eye(2), np.ones((2, 1)), bounds=(0, 1))


def test_the_nearest_point_of_two_sets_is_not_where_plain_projections_end():
    # y <= 0 and x + y <= 0: projections in turn lead (1, 2) to (1, 0) and (0.5, -0.5); the nearest point is the corner
    sets = [fg.Halfspace([0.0, -1.0, 0.0], 0.0), fg.Halfspace([-1.0, -1.0, 0.0], 0.0)]
    solution = fg.solve([[0.0, 0.0, 1.0]], [0.0], sets=sets, x0=[1.0, 2.0, 0.0], nearest=True, tol=1e-8)
    assert solution.converged
    np.testing.assert_allclose(solution.x, 0.0, atol=1e-6)


@pytest.mark.parametrize("options", [{}, {"nearest": True}, {"method": "active-set"}])
def test_rows_that_contradict_each_other_by_rounding_errors_alone_have_a_solution(options):
    """The only x is written down; all rows hold with equality there."""
    A = np.array(
        [
            *([0, 100, 0], [1, 100, 0], [-1, 0, 0], [1, 0, 10], [1, 0, 10], [0, 100, 0]),
            *([0, 0, -20], [0, 0, 20], [0, 100, 10], [1, -200, 0]),
        ]
    )
    relations = ["<=", ">=", ">=", "<=", ">=", "<=", ">=", ">=", "=", "<="]
    x = np.array([0.91079, 0.3879, -0.61895])
    b = A @ x
    solution = fg.solve(A, b, relations=relations, x0=[-1.5, 3.2, 2.7], seed=0, tol=1e-8, **options)
    assert solution.converged, solution.status
    assert missed(A, b, relations, solution.x) <= 1e-8
