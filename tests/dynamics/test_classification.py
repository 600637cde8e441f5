"""Projections on classification tasks: runs, many runs, expectations and their intervals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import forgetting as fg
from forgetting.expectation import quantities as registry
from forgetting.expectation.api import ask
from forgetting.expectation.intervals import column_intervals, value_range

ORDERINGS = [
    fg.orderings.WithReplacement(),
    fg.orderings.WithReplacement(p=[0.4, 0.3, 0.2, 0.1]),
    fg.orderings.WithoutReplacement(),
    fg.orderings.Cyclic(),
    fg.orderings.Reshuffled(),
    fg.orderings.Explicit([3, 3, 0, 1]),
    fg.orderings.GreedyDistance(),
    fg.orderings.GreedyDistance(repeat=False),
    fg.orderings.GreedyResidual(),
]


@pytest.fixture(scope="module")
def tasks():
    return fg.families.separable(T=4, d=5, n=6, margin=0.15, seed=2)


# ------------------------------------------------------------------------------------------------------------- runs


@pytest.mark.parametrize("ordering", ORDERINGS, ids=repr)
@pytest.mark.parametrize("start", [None, [3.0, -2.0, 0.0, 1.0, -4.0]], ids=["zero", "elsewhere"])
def test_a_run_projects_under_every_ordering_from_any_start(tasks, ordering, start):
    run = fg.run(tasks, ordering, k=4, seed=3, w0=start)
    assert run.scheme == fg.schemes.POCS()
    w = np.zeros(5) if start is None else np.array(start)
    goal = tasks.nearest_solution(w)
    for t, task in enumerate(run.order):
        before = tasks.task_loss(task, w)
        assert run.regret[t] * (t + 1) - (run.regret[t - 1] * t if t else 0) == pytest.approx(before, abs=1e-12)
        w = fg.Polyhedron(tasks.signed_rows(task), np.ones(6)).project(w)
        np.testing.assert_allclose(run.iterates[t + 1], w, atol=1e-11)
        assert tasks.task_loss(task, w) <= 1e-20
        seen = np.mean([tasks.task_loss(m, w) for m in run.order[: t + 1]])
        assert run.forgetting[t] == pytest.approx(seen, abs=1e-12)
        distances = [tasks.distances(w)[m] for m in run.order[: t + 1]]
        assert run.forgetting_bound[t] == pytest.approx(0.5 * np.mean(np.square(distances)), abs=1e-12)  # R = 1
    np.testing.assert_allclose(run.losses, [tasks.loss(w) for w in run.iterates], atol=1e-12)
    np.testing.assert_allclose(run.residuals, [tasks.distances(w) for w in run.iterates], atol=1e-11)
    assert (np.diff(np.linalg.norm(run.iterates - goal, axis=1)) <= 1e-12).all()  # Fejer
    assert (run.forgetting <= run.forgetting_bound + 1e-12).all()
    np.testing.assert_array_equal(run.scaled_iterates, run.iterates)


@pytest.mark.parametrize("ordering", ORDERINGS, ids=repr)
def test_many_runs_are_runs(tasks, ordering):
    runs = fg.run_many(tasks, ordering, k=4, runs=3, seed=5)
    assert runs.losses.shape == (3, 5)
    assert runs.forgetting.shape == runs.forgetting_bound.shape == (3, 4)
    for i in range(3):
        one = fg.run(tasks, fg.orderings.Explicit(runs.order[i]), k=4)
        np.testing.assert_allclose(runs.losses[i], one.losses, atol=1e-12)
        np.testing.assert_allclose(runs.forgetting[i], one.forgetting, atol=1e-12)
        np.testing.assert_allclose(runs.regret[i], one.regret, atol=1e-12)
        np.testing.assert_allclose(runs.iterates[i], one.iterates, atol=1e-12)


def test_distances_of_w_k_bound_forgetting_and_those_of_the_step_before_do_not():
    """The display before cor:pocs_forgetting prints w_(k-1) and means w_k."""
    broken = 0
    for seed in range(30):
        tasks = fg.families.separable(T=3, d=3, n=3, margin=0.2, seed=seed)
        run = fg.run(tasks, fg.orderings.Cyclic(), k=3)
        assert (run.forgetting <= run.forgetting_bound + 1e-12).all()
        printed = [0.5 * np.mean(run.residuals[t - 1, run.order[:t]] ** 2) for t in (2, 3)]
        broken += bool((run.forgetting[1:] > np.array(printed) + 1e-9).any())
    assert broken > 0


def test_clones_of_a_task_share_their_set():
    one = fg.families.separable(T=2, d=4, n=3, margin=0.3, seed=0)
    parts = [one.task(m) for m in (0, 1, 0, 0)]
    clones = fg.ClassificationTasks([X for X, _ in parts], [y for _, y in parts])
    assert clones.sets.sets[0] is clones.sets.sets[2]
    np.testing.assert_allclose(clones.distances(np.zeros(4)), one.distances(np.zeros(4))[[0, 1, 0, 0]])


def test_warm_starts_do_not_change_a_run(tasks):
    cold = fg.run(tasks, fg.orderings.Cyclic(), k=100, scheme=fg.schemes.POCS(warm_start=False))
    np.testing.assert_allclose(fg.run(tasks, fg.orderings.Cyclic(), k=100).iterates, cold.iterates, atol=1e-11)


# ----------------------------------------------------------------------------------------------------- expectations


def all_runs(problem, k, **options):
    """Losses and forgetting of every order of k tasks, equally likely with replacement."""
    runs = [
        fg.run(problem, fg.orderings.Explicit(order), k=k, **options)
        for order in product(range(problem.num_tasks), repeat=k)
    ]
    return {name: np.array([getattr(run, name)[-1] for run in runs]) for name in ("losses", "forgetting", "regret")}


def test_simulated_expectations_hold_the_exact_value(tasks):
    exact = all_runs(tasks, 3)
    names = ("loss", "forgetting", "regret", "error", "task_losses")
    e = fg.expect(
        tasks, fg.orderings.WithReplacement(), k=[0, 3], quantities=names, seed=1, method="monte-carlo", runs=1024
    )
    listed = fg.expect(tasks, fg.orderings.WithReplacement(), k=[0, 3], quantities=names)
    assert (e.method, listed.method) == ("monte-carlo", "listing")
    for name, attribute in (("loss", "losses"), ("forgetting", "forgetting"), ("regret", "regret")):
        assert listed.values[name][1] == pytest.approx(exact[attribute].mean(), rel=1e-12)
    assert e.loss_interval.shape == (2, 2)
    assert e.loss[0] == pytest.approx(0.5)  # all margins are 0 at the start
    for name, attribute in (("loss", "losses"), ("forgetting", "forgetting")):
        low, high = getattr(e, f"{name}_interval")[1]
        assert 0 <= low <= exact[attribute].mean() <= high
        assert high - low <= 0.05 * tasks.scale  # they rely on nothing but values below |w*|^2 R^2 / 2
    assert e.regret[1] == pytest.approx(exact["regret"].mean(), rel=0.1)
    np.testing.assert_allclose(e.task_losses.mean(axis=-1), e.loss, rtol=1e-10)
    assert e.error[1] <= tasks.scale


@pytest.mark.parametrize("ordering", [fg.orderings.Cyclic(), fg.orderings.GreedyDistance()], ids=repr)
def test_orderings_without_randomness_are_one_run(tasks, ordering):
    e = fg.expect(tasks, ordering, k=[2, 4])
    run = fg.run(tasks, ordering, k=4)
    assert e.method == "deterministic"
    np.testing.assert_array_equal(e.loss, run.losses[[2, 4]])
    np.testing.assert_array_equal(e.forgetting_interval[:, 0], run.forgetting[[1, 3]])


def test_weakly_regularised_expectations_say_that_no_bound_is_known(tasks):
    scheme = fg.schemes.WeaklyRegularized(-10.0)
    e = fg.expect(tasks, fg.orderings.WithReplacement(), k=1, scheme=scheme, method="monte-carlo", runs=1)
    assert any("fail for heavy tails" in note for note in e.notes)
    assert e.loss_interval[0] <= all_runs(tasks, 1, scheme=scheme)["losses"].mean() <= e.loss_interval[1]


@pytest.mark.parametrize(
    "ordering", [fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement(), fg.orderings.Reshuffled()], ids=repr
)
def test_affine_sets_have_the_exact_expectations_of_regression(ordering):
    raw = fg.families.gaussian(T=5, d=12, rank=2, seed=3)
    # orthonormal rows, so that losses are half squared distances too
    parts = [np.linalg.qr(raw.task(m)[0].T)[0].T for m in range(5)]
    tasks = fg.RegressionTasks(parts, [X @ raw.w_star for X in parts])
    sets = fg.ConvexSets([fg.Affine(X, X @ raw.w_star) for X in parts])
    w0 = np.random.default_rng(4).standard_normal(12)
    for method in ("auto", "monte-carlo"):
        ours, theirs = (
            fg.expect(problem, ordering, k=[1, 3, 5], w0=w0, method=method, runs=1024) for problem in (sets, tasks)
        )
        assert ours.method == theirs.method
        assert (ours.method == "monte-carlo") == (method == "monte-carlo")
        np.testing.assert_allclose(ours.loss, theirs.loss, rtol=1e-10)
        np.testing.assert_allclose(ours.forgetting, theirs.forgetting, rtol=1e-10, atol=1e-12)


# -------------------------------------------------------------------------------------------------------- intervals


def mixed_sets():
    return fg.ConvexSets([fg.Ball([1.0, 0.0], 1.0), fg.Halfspace([1.0, 1.0], 1.0), fg.Affine([[0.2, 1.0]], [0.4])])


@pytest.mark.parametrize("kind", ["classification", "sets"])
@pytest.mark.parametrize("start", [[0.0, 0.0], [4.0, -3.0]], ids=str)
def test_no_run_leaves_the_range_that_intervals_rely_on(kind, start):
    problem = mixed_sets() if kind == "sets" else fg.families.separable(T=3, d=2, n=3, margin=0.2, seed=1)
    quantities = ("loss", "forgetting", "regret", "error", "task_losses")
    request, *_ = ask(problem, fg.orderings.WithReplacement(), [3], None, start, quantities)
    ranges = {name: value_range(request, registry.get(name)) for name in quantities}
    goal = problem.nearest_solution(start)
    for order in product(range(3), repeat=3):
        run = fg.run(problem, fg.orderings.Explicit(order), k=3, w0=start)
        values = {
            "loss": run.losses,
            "forgetting": run.forgetting,
            "regret": run.regret,
            "error": np.sum((run.iterates - goal) ** 2, axis=1),
            "task_losses": run.loss_matrix,
        }
        for name, value in values.items():
            low, high = ranges[name]
            assert low == 0
            assert value.min() >= -1e-12
            assert value.max() <= high * (1 + 1e-9), name
    # the start attains the range of the error, and the first loss is within it
    assert ranges["error"][1] == pytest.approx(problem.scale_from(start) / problem.radius**2)


def test_no_range_is_claimed_where_there_is_no_common_point():
    apart = fg.ConvexSets([fg.Ball([0.0], 1.0), fg.Ball([5.0], 1.0)])
    contrary = fg.ClassificationTasks([[[1.0]], [[1.0]]], [[1], [-1]])
    for problem in (apart, contrary):
        request, *_ = ask(problem, fg.orderings.WithReplacement(), [3], None, None, ("loss",))
        assert value_range(request, registry.get("loss")) is None


def test_intervals_cover_at_their_confidence():
    """300 samples of 200 runs each, drawn from the exact distribution over all orders: at most 1 in 10 may miss."""
    problem = fg.families.separable(T=3, d=3, n=2, margin=0.1, seed=3)
    rng = np.random.default_rng(0)
    for k in (2, 5):
        exact = all_runs(problem, k)
        request, *_ = ask(problem, fg.orderings.WithReplacement(), [k], None, None, ("loss", "forgetting"))
        for name, attribute in (("loss", "losses"), ("forgetting", "forgetting")):
            values = exact[attribute]
            samples = values[rng.integers(0, len(values), (200, 300))]
            intervals = column_intervals(samples, value_range(request, registry.get(name)), 0.9)
            missed = (intervals[:, 0] > values.mean()) | (intervals[:, 1] < values.mean())
            assert missed.mean() <= 0.1
            assert (intervals[:, 1] - intervals[:, 0] < value_range(request, registry.get(name))[1]).all()
