"""ConvexSets as a problem, and the POCS scheme on it."""

from __future__ import annotations

import re

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError, NotSupportedError

ORDERINGS = [
    fg.orderings.WithReplacement(),
    fg.orderings.WithoutReplacement(),
    fg.orderings.Cyclic(),
    fg.orderings.Reshuffled(),
    fg.orderings.GreedyDistance(),
    fg.orderings.GreedyResidual(),
]


def mixed_sets(d=6, seed=0):
    """Sets of every kind around a common point."""
    rng = np.random.default_rng(seed)
    w = np.abs(rng.standard_normal(d))
    w[-1] = np.linalg.norm(w[:-1]) + 1
    A, B = rng.standard_normal((2, d)), rng.standard_normal((8, d))
    return fg.ConvexSets(
        [
            fg.Affine(A, A @ w),
            fg.Halfspace(A[0], A[0] @ w - 0.1),
            fg.Slab(A[1], A[1] @ w - 0.1, A[1] @ w + 0.1),
            fg.Polyhedron(B, B @ w - 0.2 * rng.random(8)),
            fg.Ball(w + 0.3, 1.0),
            fg.Box(w - 0.1, w + 2.0),
            fg.SecondOrderCone(d),
            fg.Simplex(d, total=w.sum()),
            fg.CustomSet(lambda x: np.maximum(x, 0)),
        ]
    ), w


def test_the_collection_is_a_problem_with_half_squared_distances():
    sets, w = mixed_sets()
    assert isinstance(sets, fg.Problem)
    assert sets.num_tasks == len(sets) == 9
    x = 5 * np.random.default_rng(1).standard_normal(6)
    np.testing.assert_allclose(sets.distances(x), [one.distance(x) for one in sets.sets])
    np.testing.assert_allclose(sets.task_losses(x), 0.5 * sets.distances(x) ** 2)
    assert [sets.task_loss(m, x) for m in range(9)] == pytest.approx(sets.task_losses(x).tolist())
    assert sets.loss(x) == pytest.approx(sets.task_losses(x).mean())
    np.testing.assert_allclose(sets.distances(w), 0, atol=1e-12)


@pytest.mark.parametrize("ordering", ORDERINGS, ids=repr)
def test_pocs_runs_under_every_ordering_from_any_start(ordering):
    sets, w = mixed_sets()
    start = 3 * np.random.default_rng(2).standard_normal(6)
    run = fg.run(sets, ordering, k=9, seed=4, w0=start)
    assert run.scheme == fg.schemes.POCS()
    point = start
    for t, task in enumerate(run.order):
        point = sets.sets[task].project(point)
        np.testing.assert_allclose(run.iterates[t + 1], point, atol=1e-12)
    np.testing.assert_allclose(run.losses, [sets.loss(x) for x in run.iterates], atol=1e-14)
    # Fejer monotone: no step moves away from a common point
    gaps = np.linalg.norm(run.iterates - w, axis=1)
    assert (np.diff(gaps) <= 1e-12).all()
    # F(k) = (1/2k) sum_t dist^2(w_k, C_tau(t))
    for k in range(1, 10):
        expected = np.mean([sets.task_loss(task, run.iterates[k]) for task in run.order[:k]])
        assert run.forgetting[k - 1] == pytest.approx(expected, abs=1e-12)


def test_a_step_is_a_step_of_sgd_on_half_the_squared_distance():
    """reduc:pocs, with the gradient by central differences."""
    sets, _ = mixed_sets()
    rng = np.random.default_rng(3)
    for task in range(sets.num_tasks):
        for _ in range(5):
            w = 4 * rng.standard_normal(6)
            h = 1e-5
            gradient = [
                (sets.task_loss(task, w + h * e) - sets.task_loss(task, w - h * e)) / (2 * h) for e in np.eye(6)
            ]
            np.testing.assert_allclose(sets.project(task, w), w - gradient, atol=2e-4)


def test_the_losses_are_one_smooth_and_convex():
    sets, _ = mixed_sets()
    rng = np.random.default_rng(4)
    for task in range(sets.num_tasks):
        for _ in range(20):
            x, y = 3 * rng.standard_normal((2, 6))
            at_x, at_y = x - sets.project(task, x), y - sets.project(task, y)
            assert np.linalg.norm(at_x - at_y) <= np.linalg.norm(x - y) + 1e-12
            assert sets.task_loss(task, y) >= sets.task_loss(task, x) + at_x @ (y - x) - 1e-12


@pytest.mark.parametrize("ordering", [fg.orderings.WithReplacement(), fg.orderings.Cyclic()], ids=repr)
def test_affine_sets_give_the_trajectories_of_regression(ordering):
    tasks = fg.families.gaussian(T=6, d=20, rank=3, seed=5)
    sets = fg.ConvexSets.from_affine(tasks)
    start = np.random.default_rng(6).standard_normal(20)
    pocs = fg.run(sets, ordering, k=60, seed=7, w0=start)
    kaczmarz = fg.run(tasks, ordering, k=60, seed=7, w0=start)
    np.testing.assert_array_equal(pocs.order, kaczmarz.order)
    np.testing.assert_allclose(pocs.iterates, kaczmarz.iterates, atol=1e-10)
    np.testing.assert_allclose(pocs.residuals, kaczmarz.residuals, atol=1e-10)
    # the compiled engine on the sets' own geometry: orthonormal rows, so that losses are half squared distances
    compiled = fg.run(sets, ordering, k=60, seed=7, w0=start, scheme=fg.schemes.Kaczmarz())
    np.testing.assert_allclose(compiled.iterates, pocs.iterates, atol=1e-10)
    np.testing.assert_allclose(compiled.losses, pocs.losses, atol=1e-10)
    np.testing.assert_allclose(compiled.forgetting, pocs.forgetting, atol=1e-10)


def test_affine_collections_have_a_geometry_and_others_do_not():
    rng = np.random.default_rng(8)
    sets = fg.ConvexSets([fg.Subspace(rng.standard_normal((2, 5))), fg.Affine(np.zeros((1, 5)), [0.0])])
    assert sets.geometry is not None
    assert sets.realizability.holds
    w = rng.standard_normal(5)
    np.testing.assert_allclose(sets.regression.task_losses(w), sets.task_losses(w), atol=1e-13)
    mixed, _ = mixed_sets()
    assert mixed.geometry is None
    with pytest.raises(NotSupportedError, match="regression"):
        fg.run(mixed, fg.orderings.Cyclic(), k=1, scheme=fg.schemes.Kaczmarz())


def test_affine_sets_without_a_common_point_are_told_in_the_status():
    sets = fg.ConvexSets([fg.Affine([[1.0, 0.0]], [0.0]), fg.Affine([[1.0, 0.0]], [1.0])])
    run = fg.run(sets, fg.orderings.Cyclic(), k=4)
    assert "not jointly realizable" in run.status
    np.testing.assert_allclose(run.iterates[:, 0], [0, 0, 1, 0, 1])


def test_sets_without_a_common_point_are_told_in_the_status_and_in_notes():
    apart = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Affine([[1.0, 0.0]], [3.0])])
    told = r"the sets have no common point: none is nearer to the start than [0-9.]+, but set 0, Ball\(.*, ends at 1"
    run = fg.run(apart, fg.orderings.Cyclic(), k=4)
    assert re.fullmatch(f"completed 4 steps; {told}", run.status)
    assert fg.expect(apart, fg.orderings.Cyclic(), 4).notes == run.remarks
    assert re.fullmatch(told, fg.expect(apart, fg.orderings.WithReplacement(), 4, runs=10).notes[0])
    assert re.search(told, fg.run_many(apart, fg.orderings.WithReplacement(), 4, runs=2).status)
    strips = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 2.0), fg.Halfspace([-1.0, 0.0], 0.0)])
    assert strips.realizability.holds is False
    np.testing.assert_allclose(strips.realizability.certificate @ [[1.0, 0.0], [-1.0, 0.0]], 0, atol=1e-15)
    assert (
        "the sets have no common point: sets 0, 1 contradict each other"
        in fg.run(strips, fg.orderings.Cyclic(), k=2).status
    )


def test_sets_with_a_common_point_have_a_plain_status_and_sets_that_touch_say_that_it_is_not_known():
    discs = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Ball([1.0, 0.0], 1.0)])
    assert fg.run(discs, fg.orderings.Cyclic(), k=4, w0=[5.0, 5.0]).status == "completed 4 steps"
    assert discs.realizability.message == "the sets have a common point of norm 0"
    touching = fg.ConvexSets([fg.Ball([-1.0, 1.0], 1.0), fg.Affine([[1.0, 0.0]], [0.0])])
    assert touching.realizability.holds is None
    assert "whether the sets have a common point is not known" in fg.run(touching, fg.orderings.Cyclic(), k=4).status


@pytest.mark.parametrize(
    "other",
    [fg.SecondOrderCone(2), fg.CustomSet(lambda w: np.maximum(w, 0), dim=2), fg.Ball([0.0, 0.0], 3.0)],
    ids=["cone", "custom", "ball"],
)
def test_polyhedral_sets_that_contradict_each_other_are_certified_beside_others(other):
    sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), other, fg.Halfspace([-1.0, 0.0], 1.0)])
    found = sets.realizability
    assert found.holds is False
    assert "sets 0, 2 contradict each other" in found.message
    np.testing.assert_allclose(found.certificate, [0.5, 0.5])
    with pytest.raises(fg.errors.InfeasibleError, match="sets 0, 2 contradict") as caught:
        sets.nearest_in_intersection([0.0, 5.0], method="dykstra", max_sweeps=50)
    np.testing.assert_allclose(caught.value.certificate, [0.5, 0.5])


def test_many_halfspaces_and_a_cone_are_two_sets_for_dykstra():
    rng = np.random.default_rng(1)
    normals, inside, start = rng.standard_normal((60, 6)), np.array([0.5, 0, 0, 0, 0, 3.0]), 4 * rng.standard_normal(6)
    sets = fg.ConvexSets([fg.SecondOrderCone(6), *(fg.Halfspace(a, a @ inside - 0.1) for a in normals)])
    grouped = sets.nearest_in_intersection(start)
    plain = sets.nearest_in_intersection(start, method="dykstra", max_sweeps=100_000)
    assert grouped.converged
    assert plain.converged
    assert grouped.sweeps < plain.sweeps
    np.testing.assert_allclose(grouped.point, plain.point, atol=1e-7)
    assert max(one.distance(grouped.point) for one in sets.sets) <= 1e-9


def test_a_search_that_failed_is_not_repeated(monkeypatch):
    touching = fg.ConvexSets([fg.Ball([-1.0, 1.0], 1.0), fg.Affine([[1.0, 0.0]], [0.0])])
    calls = []
    search = fg.ConvexSets.nearest_in_intersection
    monkeypatch.setattr(fg.ConvexSets, "nearest_in_intersection", lambda *a, **b: calls.append(a) or search(*a, **b))
    for _ in range(2):
        notes = fg.expect(touching, "with-replacement", 3, method="monte-carlo", runs=5, w0=[2.0, 2.0]).notes
        assert "whether the sets have a common point is not known" in notes[0]
    assert len(calls) == 2  # from w0, and from 0


def test_the_reach_of_a_set_is_measured_from_the_start():
    far, near = fg.Ball([10.0, 0.0], 1.0), fg.Ball([0.0, 0.0], 5.0)
    with pytest.raises(fg.errors.InfeasibleError, match=r"set 1, Ball\(d=2, radius=1\), ends at 1\b"):
        fg.ConvexSets([near, far]).nearest_in_intersection([10.0, 0.0])


def test_halfspaces_match_their_closed_form_along_a_run():
    rng = np.random.default_rng(9)
    normals, levels = rng.standard_normal((5, 4)), rng.standard_normal(5)
    sets = fg.ConvexSets([fg.Halfspace(a, b) for a, b in zip(normals, levels, strict=True)])
    run = fg.run(sets, fg.orderings.WithReplacement(), k=50, seed=1, w0=10 * rng.standard_normal(4))
    w = run.iterates[0]
    for t, m in enumerate(run.order):
        w = w + max(0.0, levels[m] - normals[m] @ w) / (normals[m] @ normals[m]) * normals[m]
        np.testing.assert_allclose(run.iterates[t + 1], w, atol=1e-12)


def test_two_lines_at_an_angle_shrink_by_the_cosine():
    theta = np.pi / 6
    lines = [fg.Subspace([[1.0, 0.0]]), fg.Subspace([[np.cos(theta), np.sin(theta)]])]
    run = fg.run(fg.ConvexSets(lines), fg.orderings.Cyclic(), k=6, w0=[1.0, 0.0])
    lengths = np.linalg.norm(run.iterates, axis=1)
    np.testing.assert_allclose(lengths, np.cos(theta) ** np.array([0, 0, 1, 2, 3, 4, 5]), atol=1e-14)


def test_a_disc_and_a_line_apart_settle_at_the_gap():
    # the disc of radius 1 around 0 and the line x = 3: the iterates end at (1, 0) and (3, 0)
    sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Affine([[1.0, 0.0]], [3.0])])
    run = fg.run(sets, fg.orderings.Cyclic(), k=80, w0=[0.0, 4.0])
    np.testing.assert_allclose(run.iterates[-2:], [[1.0, 0.0], [3.0, 0.0]], atol=1e-12)
    assert run.losses[-1] == pytest.approx(0.5 * 2**2 / 2)


def test_a_disc_touching_a_line_is_slow():
    """Two sets that touch at (0, 0): y_(k+1) = y_k / sqrt(1 + y_k^2), so that y_k = y_0 / sqrt(1 + k y_0^2)."""
    sets = fg.ConvexSets([fg.Ball([-1.0, 0.0], 1.0), fg.Affine([[1.0, 0.0]], [0.0])])
    run = fg.run(sets, fg.orderings.Cyclic(), k=200, w0=[0.0, 1.0])
    turns = np.arange(101)
    np.testing.assert_allclose(run.iterates[::2, 1], 1 / np.sqrt(1 + turns), atol=1e-12)


def test_warm_starts_do_not_change_a_run():
    rng = np.random.default_rng(10)
    w = rng.standard_normal(30)
    sets = []
    for _ in range(8):
        A = rng.standard_normal((12, 30))
        sets.append(fg.Polyhedron(A, A @ w - 0.1 * rng.random(12)))
    problem = fg.ConvexSets(sets)
    start = 5 * rng.standard_normal(30)
    warm, cold = (
        fg.run(problem, fg.orderings.Cyclic(), k=200, scheme=fg.schemes.POCS(warm_start=flag), w0=start)
        for flag in (True, False)
    )
    np.testing.assert_allclose(warm.iterates, cold.iterates, atol=1e-11)
    assert (warm.inner_steps >= 1).all()
    again = fg.run(problem, fg.orderings.Cyclic(), k=200, w0=start)
    np.testing.assert_array_equal(warm.iterates, again.iterates)  # no state is left in the sets


def test_pocs_is_a_scheme_for_regression_too():
    tasks = fg.families.gaussian(T=4, d=10, rank=2, seed=0)
    pocs = fg.run(tasks, fg.orderings.Cyclic(), k=12, scheme=fg.schemes.POCS())
    np.testing.assert_allclose(pocs.iterates, fg.run(tasks, fg.orderings.Cyclic(), k=12).iterates, atol=1e-12)


def test_many_runs_of_pocs():
    sets, _ = mixed_sets()
    runs = fg.run_many(sets, fg.orderings.WithReplacement(), k=5, runs=3, seed=0)
    assert runs.losses.shape == (3, 6)


def test_the_residual_is_below_the_universal_rate():
    """thm:pocs-rate on one problem: E (1/2T) sum dist^2 <= 7 k^(-1/4) min |w_0 - w|^2."""
    sets, _ = mixed_sets()
    start = 4 * np.random.default_rng(11).standard_normal(6)
    runs = fg.run_many(sets, fg.orderings.WithReplacement(), k=20, runs=20, seed=0, w0=start)
    k = np.arange(1, 21)
    assert (runs.losses.mean(axis=0)[1:] <= 7 * k**-0.25 * sets.scale_from(start)).all()


def test_bad_collections_are_refused():
    with pytest.raises(InvalidInputError, match="no sets given"):
        fg.ConvexSets([])
    with pytest.raises(InvalidInputError, match="set 1: expected a convex set"):
        fg.ConvexSets([fg.Ball([0.0], 1.0), "disc"])
    with pytest.raises(InvalidInputError, match="set 2 is in dimension 3, but set 1 in 2"):
        fg.ConvexSets([fg.CustomSet(lambda w: w), fg.Simplex(2), fg.Simplex(3)])
    with pytest.raises(InvalidInputError, match="no set knows its dimension"):
        fg.ConvexSets([fg.CustomSet(lambda w: w)])
    with pytest.raises(InvalidInputError, match="2 names for 1 sets"):
        fg.ConvexSets([fg.Simplex(2)], names=["a", "b"])
    with pytest.raises(InvalidInputError, match=r"w: expected shape \(2,\)"):
        fg.ConvexSets([fg.Simplex(2)]).loss([1.0])
    with pytest.raises(InvalidInputError, match="nan"):
        fg.ConvexSets([fg.Simplex(2)]).task_loss(0, np.array([np.nan, 0.0]))
