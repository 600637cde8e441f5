"""Ensembles and searches for orders on a device: the orders of the CPU, and its losses up to rounding."""

import pickle

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import search_orders
from forgetting.dynamics import device_runs
from forgetting.errors import NotSupportedError

RNG = np.random.default_rng(0)
SHAPES = [(1, 5), (3, 5), (2, 5), (1, 5)]
NO_SOLUTION = fg.RegressionTasks([RNG.standard_normal(s) for s in SHAPES], [RNG.standard_normal(s[0]) for s in SHAPES])
UNFITTED = fg.RegressionTasks([np.ones((3, 2)), np.array([[1.0, -1.0]])], [[0.0, 1.0, 5.0], [2.0]])
OUTPUTS = fg.RegressionTasks(
    [RNG.standard_normal((2, 4)) for _ in range(3)], [RNG.standard_normal((2, 2)) for _ in "abc"]
)
CASES = {
    "rank 1": (fg.families.rank_one(T=6, d=4, seed=0), {}),
    "mixed ranks": (NO_SOLUTION, {}),
    "rank 1, gradient steps": (fg.families.rank_one(T=6, d=4, seed=0), {"scheme": fg.schemes.SGD(0.4)}),
    "gradient steps": (NO_SOLUTION, {"scheme": fg.schemes.SGD(0.05, objective="loss"), "w0": np.arange(5.0)}),
    "clones": (fg.families.repeated(NO_SOLUTION, 3), {}),
    "labels that no w fits": (UNFITTED, {}),
    "several outputs": (OUTPUTS, {}),
    "permutations": (NO_SOLUTION, {"ordering": "without-replacement", "k": 4}),
}


def made(case, device, **more):
    problem, options = CASES[case]
    options = {"ordering": "with-replacement", "k": 150, "runs": 40, "seed": 3, "record_every": 7, **options, **more}
    return fg.run_many(problem, device=device, **options)


def equal(here, there):
    assert np.array_equal(here.order, there.order)
    for name in ("losses", "before", "after", "forgetting", "regret"):
        expected, found = getattr(here, name), getattr(there, name)
        assert np.array_equal(np.isnan(expected), np.isnan(found)), name
        # losses of tasks that were solved are rounding errors, which differ
        np.testing.assert_allclose(
            found, expected, rtol=1e-12, atol=1e-13 * np.nanmax(np.abs(here.losses)), err_msg=name
        )


@pytest.mark.parametrize("case", CASES)
def test_runs_equal_those_of_the_cpu(case, device):
    equal(made(case, None), made(case, device))


def test_parts_that_fit_give_the_same_runs(device, monkeypatch):
    monkeypatch.setattr(device_runs, "SHARE", 1e-15)  # one run at a time
    equal(made("mixed ranks", None, k=20, runs=5), made("mixed ranks", device, k=20, runs=5))


def test_steps_that_are_recorded_do_not_matter(device):
    every, some = (made("mixed ranks", device, record_every=steps) for steps in (1, [0, 64, 65, 150]))
    np.testing.assert_allclose(every.losses[:, some.steps], some.losses, rtol=1e-14)
    assert np.array_equal(every.before, some.before)
    assert made("mixed ranks", device, k=0).losses.shape == (40, 1)


def test_ensembles_pickle_and_save_without_their_device(device, tmp_path):
    runs = made("mixed ranks", device, k=10)
    equal(runs, pickle.loads(pickle.dumps(runs)))
    runs.save(tmp_path / "runs.npz")
    loaded = fg.Ensemble.load(tmp_path / "runs.npz")
    equal(runs, loaded)
    assert loaded.device is None


def test_runs_that_are_not_made_at_once_are_refused(device):
    with pytest.raises(NotSupportedError, match=r"device= makes runs of linear schemes .* GreedyDistance"):
        made("mixed ranks", device, ordering=fg.orderings.GreedyDistance())
    with pytest.raises(NotSupportedError, match="device= makes runs of linear schemes"):
        fg.run_many(fg.families.separable(T=3, d=4, n=5, margin=0.1, seed=0), "cyclic", 5, runs=2, device=device)


@pytest.mark.parametrize("quantity", ["forgetting", "loss"])
def test_the_search_for_orders_finds_those_of_the_cpu(quantity, device):
    small, large = NO_SOLUTION, fg.families.gaussian(T=12, d=20, rank=2, seed=0)
    for problem, options in ((small, {}), (large, {"evaluations": 300})):
        here, there = (search_orders(problem, quantity, device=where, **options) for where in (None, device))
        assert (here.best.order, here.worst.order) == (there.best.order, there.worst.order)
        assert there.worst.value == pytest.approx(here.worst.value, rel=1e-12)
        assert there.best.value == pytest.approx(here.best.value, rel=1e-11)


def test_orders_of_other_tasks_are_not_evaluated_on_devices(device):
    with pytest.raises(NotSupportedError, match="device= evaluates orders of linear schemes"):
        search_orders(fg.families.separable(T=3, d=4, n=5, margin=0.1, seed=0), device=device)
