"""The nearest common point: Dykstra's method against a QP solver, known answers, and empty intersections."""

from __future__ import annotations

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ForgettingError, InfeasibleError, InvalidInputError, NotSupportedError
from forgetting.sets import nearest_common_point, stacked


def polyhedra(seed):
    rng = np.random.default_rng(seed)
    d, w = int(rng.integers(2, 8)), rng.standard_normal(8)
    sets = []
    for _ in range(int(rng.integers(2, 6))):
        A = rng.standard_normal((int(rng.integers(1, 4)), d))
        sets.append(fg.Polyhedron(A, A @ w[:d] - 0.5 * rng.random(len(A))))
    return sets, 3 * rng.standard_normal(d)


@pytest.mark.parametrize("seed", range(25))
def test_dykstra_agrees_with_a_qp_solver(seed):
    daqp = pytest.importorskip("daqp")
    sets, start = polyhedra(seed)
    A, b = (np.concatenate(parts) for parts in zip(*(one.inequalities() for one in sets), strict=True))
    sense = np.zeros(len(b), dtype=np.int32)
    expected, _, flag, _ = daqp.solve(np.eye(len(start)), -start, A, np.full(len(b), 1e30), b, sense, primal_tol=1e-11)
    assert flag == 1
    dykstra = nearest_common_point(sets, start, method="dykstra")
    assert dykstra.converged
    assert dykstra.violation <= 1e-8
    np.testing.assert_allclose(dykstra.point, expected, atol=1e-7)
    at_once = nearest_common_point(sets, start)
    assert at_once.method == "polyhedron"
    np.testing.assert_allclose(at_once.point, expected, atol=1e-9)
    # the bound is a bound, and tight at the end
    distance = np.linalg.norm(start - expected)
    assert dykstra.lower_bound <= distance + 1e-8
    assert dykstra.lower_bound == pytest.approx(distance, abs=1e-5 * (1 + distance))


def test_plain_projections_do_not_find_the_nearest_point_but_dykstra_does():
    sets = [fg.Halfspace([0.0, 1.0], 0.0), fg.Halfspace([1.0, -1.0], 0.0)]
    start = np.array([-1.0, 0.5])
    found = nearest_common_point(sets, start, method="dykstra")
    np.testing.assert_allclose(found.point, [0.0, 0.0], atol=1e-9)
    slanted = [fg.Halfspace([1.0, 0.0], 0.0), fg.Halfspace([1.0, 1.0], 1.0)]
    pocs = fg.run(fg.ConvexSets(slanted), fg.orderings.Cyclic(), k=50, w0=[-2.0, 0.0]).iterates[-1]
    nearest = nearest_common_point(slanted, [-2.0, 0.0], method="dykstra").point
    np.testing.assert_allclose(nearest, [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(pocs, [0.5, 0.5], atol=1e-9)


def test_round_sets_meet_where_geometry_says():
    # two unit discs around (-0.6, 0) and (0.6, 0): a lens with tips at (0, +-0.8)
    lens = [fg.Ball([-0.6, 0.0], 1.0), fg.Ball([0.6, 0.0], 1.0)]
    found = fg.ConvexSets(lens).nearest_in_intersection([0.0, 5.0])
    assert found.converged
    assert found.method == "dykstra"
    np.testing.assert_allclose(found.point, [0.0, 0.8], atol=1e-7)
    np.testing.assert_allclose(fg.ConvexSets(lens).nearest_in_intersection([0.1, 0.1]).point, [0.1, 0.1])


def test_subspaces_give_the_projection_onto_their_intersection():
    tasks = fg.families.gaussian(T=3, d=8, rank=2, seed=1)
    sets = fg.ConvexSets.from_affine(tasks)
    start = np.random.default_rng(2).standard_normal(8)
    expected = tasks.nearest_solution(start)
    np.testing.assert_allclose(sets.nearest_solution(start), expected, atol=1e-10)
    slow = sets.nearest_in_intersection(start, method="dykstra", max_sweeps=100_000)
    assert slow.converged
    np.testing.assert_allclose(slow.point, expected, atol=1e-7)
    np.testing.assert_allclose(sets.w_star, tasks.w_star, atol=1e-10)
    assert sets.scale == pytest.approx(tasks.w_star @ tasks.w_star)


def test_an_empty_polyhedral_intersection_has_a_certificate():
    sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Box([-1.0, -1.0], [0.5, 1.0])])
    for method in ("auto", "polyhedron", "dykstra"):
        with pytest.raises(InfeasibleError) as caught:
            sets.nearest_in_intersection(method=method)
        rows, levels = (np.concatenate(part) for part in zip(*(s.inequalities() for s in sets.sets), strict=True))
        y = caught.value.certificate
        np.testing.assert_allclose(rows.T @ y, 0, atol=1e-9)
        assert levels @ y == pytest.approx(1)


def test_an_empty_intersection_with_a_bounded_set_is_proven():
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 1.0], 2.0)])
    with pytest.raises(InfeasibleError, match="no common point"):
        sets.nearest_in_intersection()


def test_what_cannot_be_proven_empty_reports_how_far_it_came():
    # the cone and a halfspace below it, both unbounded
    sets = fg.ConvexSets([fg.SecondOrderCone(2), fg.Halfspace([0.0, -1.0], 1.0)])
    short, long = (sets.nearest_in_intersection(max_sweeps=n) for n in (50, 500))
    assert not short.converged
    assert "not converged after 50 sweeps" in short.status
    assert long.lower_bound > 5 * short.lower_bound > 0
    with pytest.raises(ForgettingError, match="was not found"):
        sets.nearest_solution(np.zeros(2))


def test_dykstra_does_not_stop_while_it_stands_still():
    """From far away the iterates of a wedge stay at one point for many sweeps while the increments still change."""
    sets = [fg.Box([0.0, 0.0], [1.0, 1.0]), fg.Halfspace([1.0, -1.0], 0.5)]
    start = np.array([-2000.0, 3000.0])
    expected = stacked(sets).project(start)
    found = nearest_common_point(sets, start, method="dykstra", max_sweeps=100_000)
    assert found.converged
    np.testing.assert_allclose(found.point, expected, atol=1e-6)
    assert found.sweeps > 100


def test_bad_requests_are_refused():
    ball = fg.Ball([0.0, 0.0], 1.0)
    with pytest.raises(InvalidInputError, match="no sets"):
        nearest_common_point([], [0.0])
    with pytest.raises(InvalidInputError, match="w0: expected shape"):
        nearest_common_point([ball], [0.0])
    with pytest.raises(InvalidInputError, match="method must be"):
        nearest_common_point([ball], [0.0, 0.0], method="admm")
    with pytest.raises(InvalidInputError, match="max_sweeps"):
        nearest_common_point([ball], [0.0, 0.0], max_sweeps=0)
    with pytest.raises(NotSupportedError, match=r"set 0, Ball\(d=2, radius=1\), is not a polyhedron"):
        nearest_common_point([ball], [0.0, 0.0], method="polyhedron")
