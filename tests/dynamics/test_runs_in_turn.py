"""Runs whose orderings look at the iterate, made in turn, against runs made one by one."""

from __future__ import annotations

import numpy as np
import pytest

import forgetting as fg
from forgetting.dynamics.taking_turns import runs_in_turn
from forgetting.geometry import Geometry

ADAPTIVE = [
    fg.orderings.GreedyDistance(),
    fg.orderings.GreedyResidual(repeat=False),
    fg.orderings.GreedyThenRandom(repeat=True),
    fg.orderings.Steinerberger(),
    fg.orderings.Quantile(q=0.6),
]


def two_outputs():
    rng = np.random.default_rng(3)
    return fg.RegressionTasks(list(rng.standard_normal((6, 3, 7))), list(rng.standard_normal((6, 3, 2))))


PROBLEMS = {
    "tasks": lambda: fg.families.gaussian(T=6, d=9, rank=2, seed=0),
    "clones": lambda: fg.families.repeated(fg.families.gaussian(T=3, d=6, rank=2, seed=1), 2),
    "two outputs": two_outputs,
    "classification": lambda: fg.families.separable(T=6, d=5, n=3, margin=0.1, seed=0),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("ordering", ADAPTIVE, ids=repr)
def test_runs_in_turn_are_the_runs_one_by_one(ordering, problem):
    tasks, seeds = PROBLEMS[problem](), [3, 1, 4]
    together = runs_in_turn(tasks, ordering, 6, seeds, record_every=2)
    for seed, made in zip(seeds, together, strict=True):
        alone = fg.run(tasks, ordering, 6, seed=seed, record_every=2)
        assert made.seed == seed
        assert made.order.tolist() == alone.order.tolist()
        np.testing.assert_allclose(made.iterates, alone.iterates, atol=1e-12)
        np.testing.assert_allclose(made.before, alone.before, atol=1e-12)


def test_distances_of_all_runs_are_computed_together(monkeypatch):
    asked = []
    distances = Geometry.distances
    monkeypatch.setattr(Geometry, "distances", lambda self, z: asked.append(len(z)) or distances(self, z))
    tasks = fg.families.gaussian(T=8, d=9, rank=2, seed=0)
    fg.run_many(tasks, fg.orderings.Steinerberger(), 5, runs=10)
    assert asked == [10] * 5


def test_an_expectation_over_runs_in_turn_is_the_mean_of_the_runs():
    tasks, ordering = fg.families.gaussian(T=5, d=9, rank=2, seed=0), fg.orderings.GreedyThenRandom()
    simulated = fg.expect(tasks, ordering, 5, method="monte-carlo", runs=128, seed=2, quantities=("loss", "next_loss"))
    seeds = np.random.default_rng(np.random.SeedSequence(2, spawn_key=(0,))).integers(2**62, size=128).tolist()
    runs = [fg.run(tasks, ordering, 5, seed=seed) for seed in seeds]
    assert simulated.loss == pytest.approx(np.mean([run.losses[-1] for run in runs]), rel=1e-12)
