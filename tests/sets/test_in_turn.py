"""Runs of projections by one compiled loop, against projections one by one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InfeasibleError
from forgetting.sets import ConvexSet, in_turn

ONE_BY_ONE = fg.schemes.POCS(warm_start=False)


def polyhedra(T=6, n=8, d=5, seed=0, spread=1.0):
    """Polyhedra with a common point, with rows that `spread` draws together."""
    rng = np.random.default_rng(seed)
    w = 2 * rng.standard_normal(d)
    sets = []
    for _ in range(T):
        A = rng.standard_normal(d) + spread * rng.standard_normal((n, d))
        A *= 10.0 ** rng.integers(-2, 3, n)[:, None]
        sets.append(fg.Polyhedron(A, A @ w - 0.3 * np.linalg.norm(A, axis=1) * rng.random(n)))
    return sets


def same_runs(problem, k=60, scheme=None, w0=None, **options):
    """Compare a run with one in which each projection starts anew."""
    rng = np.random.default_rng(1)
    start = 5 * rng.standard_normal(problem.dim) if w0 is None else w0
    ours = fg.run(problem, fg.orderings.WithReplacement(), k, scheme, seed=3, w0=start, **options)
    theirs = fg.run(problem, fg.orderings.WithReplacement(), k, ONE_BY_ONE, seed=3, w0=start)
    np.testing.assert_allclose(ours.iterates, theirs.iterates[ours.steps], atol=1e-10)
    np.testing.assert_allclose(ours.before, theirs.before, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.after, theirs.after, rtol=1e-9, atol=1e-12)
    return ours


@pytest.mark.parametrize("seed", range(5))
def test_polyhedra_in_turn_are_projections_one_by_one(seed):
    run = same_runs(fg.ConvexSets(polyhedra(seed=seed)))
    assert (run.inner_steps >= 1).all()
    assert (run.before > 0).any()


def test_losses_of_classification_are_those_of_the_tasks_at_the_iterates():
    tasks = fg.families.separable(T=5, d=6, n=7, margin=0.1, seed=2)
    run = same_runs(tasks)
    for t, task in enumerate(run.order):
        assert run.before[t] == pytest.approx(tasks.task_loss(task, run.iterates[t]), abs=1e-12)
        assert run.after[t] == pytest.approx(tasks.task_loss(task, run.iterates[t + 1]), abs=1e-12)
    assert run.before.max() > 0.01


@pytest.mark.parametrize(
    "options", [{"record_every": 7}, {"record_every": [3, 50]}, {"callback": lambda step, w: None}]
)
def test_what_is_recorded_does_not_change_the_run(options):
    same_runs(fg.ConvexSets(polyhedra()), **options)


def test_other_sets_among_polyhedra_and_sets_listed_twice():
    sets = polyhedra(T=2)
    same_runs(fg.ConvexSets([sets[0], fg.Ball(np.zeros(5), 30.0), sets[1], sets[0], fg.Halfspace(np.ones(5), -20.0)]))


def test_rows_that_are_nearly_parallel_are_left_to_orthogonal_factors(monkeypatch):
    sets = polyhedra(T=3, n=4, spread=1e-7)
    exact = []
    monkeypatch.setattr(
        fg.Polyhedron, "_room", lambda self: exact.append(self) or np.empty((min(self._rows.shape), self.dim))
    )
    same_runs(fg.ConvexSets(sets), k=20)
    assert exact


def test_a_class_with_a_projection_of_its_own_keeps_it():
    class Shifted(fg.Polyhedron):
        def nearest_from(self, w, warm):
            return np.full(self.dim, 7.0), None, 1

    problem = fg.ConvexSets([Shifted(np.eye(2), np.ones(2))])
    assert fg.run(problem, fg.orderings.Cyclic(), k=1).iterates[-1].tolist() == [7.0, 7.0]

    class Lazy(fg.schemes.POCS):
        def learn(self, problem, task, w, memory):
            return fg.schemes.Learned(w + 1.0)

    sets = fg.ConvexSets(polyhedra())
    assert fg.run(sets, fg.orderings.Cyclic(), k=2, scheme=Lazy()).iterates[-1].tolist() == [2.0] * 5


def test_an_empty_set_is_refused_with_its_certificate():
    empty = fg.Polyhedron([[1.0], [-1.0]], [1.0, 0.0], check=False)
    with pytest.raises(InfeasibleError) as error:
        fg.run(fg.ConvexSets([fg.Polyhedron([[1.0]], [-5.0]), empty]), fg.orderings.Cyclic(), k=4)
    np.testing.assert_allclose(error.value.certificate, [1.0, 1.0])


def test_sets_too_large_to_be_copied_are_projected_onto_one_by_one(monkeypatch):
    problem = fg.ConvexSets(polyhedra())
    monkeypatch.setattr(in_turn, "MOST", 100)
    assert problem.inequalities is None
    same_runs(problem)


def test_copied_rows_are_not_pickled():
    problem = fg.ConvexSets(polyhedra())
    same_runs(problem)
    assert "inequalities" in vars(problem)
    again = pickle.loads(pickle.dumps(problem))
    assert "inequalities" not in vars(again)
    same_runs(again)


def test_a_set_of_ones_own_says_that_it_has_no_unit_rows():
    class Point(ConvexSet):
        def __init__(self):
            self._freeze(dim=1)

        def nearest(self, w):
            return np.zeros(1)

    assert Point().unit_rows() is None
    assert fg.ConvexSets([Point()]).inequalities is None
