"""Runs made in blocks have the orders and the values of single runs with the same seeds."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.expectation.api import ask
from forgetting.expectation.engines import monte_carlo, run_blocks
from forgetting.expectation.engines.run_blocks import in_blocks, values_of_runs
from forgetting.expectation.engines.single_runs import made_run, values_of

SEEDS = [3, 10**15, 7, 12, 0, 2**40]
ACCURACIES = ("accuracy", "task_accuracies", "accuracy_forgetting", "incremental_accuracy")
SQUARES = ("loss", "forgetting", "regret", "seen_loss", "error", "averaged_loss", "averaged_task_losses")


def classes(outputs: int = 3, T: int = 5, d: int = 6) -> fg.RegressionTasks:
    rng = np.random.default_rng(2)
    labels = [rng.integers(outputs, size=4 + m % 2) for m in range(T)]
    Xs = [rng.standard_normal((len(y), d)) for y in labels]
    return fg.RegressionTasks(Xs, [np.eye(outputs)[y] if outputs > 1 else np.sign(y - 0.5) for y in labels])


def signs() -> fg.RegressionTasks:
    rng = np.random.default_rng(4)
    Xs = [rng.standard_normal((3, 8)) for _ in range(4)]
    return fg.RegressionTasks([*Xs, Xs[0]], [np.sign(X @ np.ones(8)) for X in [*Xs, Xs[0]]])


def assert_alike(problem, ordering, k, scheme=None, quantities=ACCURACIES, **more) -> None:
    request = ask(problem, ordering, k, scheme, quantities=quantities, **more).request
    assert in_blocks(request)
    blocks = values_of_runs(request, SEEDS)
    for i, seed in enumerate(SEEDS):
        single = values_of(request, made_run(request, seed))
        for name, value in single.items():
            np.testing.assert_allclose(blocks[name][i], value, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("ordering", ["without-replacement", "with-replacement", "reshuffled", "norm-weighted"])
def test_blocks_have_the_values_of_single_runs(ordering):
    assert_alike(classes(), ordering, [0, 1, 2, 5])
    assert_alike(signs(), ordering, [0, 1, 4], quantities=(*ACCURACIES, "loss", "forgetting", "regret"))


@pytest.mark.parametrize("scheme", ["sgd step_size=0.3", "ridge lam=0.5", "kaczmarz"])
def test_blocks_have_the_values_of_other_schemes(scheme):
    assert_alike(classes(), "with-replacement", [1, 7], scheme, (*ACCURACIES, "loss", "forgetting", "averaged_loss"))


def test_blocks_have_squares_beside_accuracies():
    tasks = fg.RegressionTasks([[[1.0, 2.0, 0.0]], [[0.0, 1.0, -1.0]], [[3.0, 0.0, 1.0]]], [[1.0], [-1.0], [1.0]])
    assert_alike(tasks, "with-replacement", [0, 1, 2, 9], quantities=(*ACCURACIES, *SQUARES))


def test_blocks_follow_steps_that_differ_and_decay():
    steps = fg.schemes.Scheduled(lambda t: fg.schemes.SGD(1 / t))
    assert_alike(classes(), "reshuffled", [1, 6], steps, (*ACCURACIES, "loss", "forgetting", "regret"))
    w0 = np.arange(8.0)
    forgets = fg.schemes.Decay(0.7, fg.schemes.SGD(0.5))
    assert_alike(signs(), "with-replacement", [1, 6], forgets, (*ACCURACIES, "loss", "regret"), w0=w0)


def test_blocks_score_held_out_rows():
    rng = np.random.default_rng(0)
    held = [(rng.standard_normal((7, 8)), np.sign(rng.standard_normal(7))) for _ in range(5)]
    assert_alike(signs(), "without-replacement", [2, 5], quantities=("test_accuracy", "test_loss"), test=held)


def test_values_do_not_depend_on_the_size_of_blocks(monkeypatch):
    request = ask(classes(), "without-replacement", [2, 5], quantities=ACCURACIES).request
    whole = values_of_runs(request, SEEDS)
    monkeypatch.setattr(run_blocks, "MOST", 2)
    for name, value in values_of_runs(request, SEEDS).items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-12)


def test_what_looks_at_more_than_w_is_run_by_itself():
    tasks = classes()
    assert not in_blocks(ask(tasks, "greedy-distance", 3, quantities=ACCURACIES).request)

    class Odd(fg.expectation.Form):
        quadratic = False

        def along(self, run):
            return np.tile(run.steps[:, None] % 2, (1, tasks.num_tasks)).astype(float)

    odd = fg.expectation.Quantity("odd", "whether k is odd", form=Odd())
    request = ask(tasks, "with-replacement", 3, quantities=odd).request
    assert not in_blocks(request)
    assert fg.expect(tasks, "with-replacement", 3, quantities=odd, method="monte-carlo", runs=3).values["odd"] == 1


def test_long_runs_through_many_tasks_are_made_one_by_one():
    few, many = classes(), fg.families.gaussian(T=300, d=5, rank=1, seed=0)
    assert monte_carlo._in_blocks(ask(few, "without-replacement", 5, quantities="accuracy").request)
    assert not monte_carlo._in_blocks(ask(few, "with-replacement", 10**6, quantities="accuracy").request)
    assert not monte_carlo._in_blocks(ask(many, "reshuffled", 10**5, quantities="averaged_loss").request)


def test_decay_of_no_w_leaves_no_w_and_tasks_of_zeros_change_nothing():
    X, labels = np.random.default_rng(0).standard_normal((4, 6)), np.eye(3)
    tasks = fg.RegressionTasks([X, np.zeros((1, 6))], [labels[[0, 1, 2, 2]], labels[[0]]])
    scheme = fg.schemes.Decay(0.7, fg.schemes.SGD(0.5))
    request = ask(tasks, [1, 1, 1], [1, 2, 3], scheme, quantities="accuracy").request
    states = run_blocks._Block(request, SEEDS).states
    assert not (states + request.geometry.solution).any()  # rounding would decide between classes that are tied
    assert not fg.run(tasks, [1, 1, 1], 3, scheme).iterates.any()
    nothing = fg.RegressionTasks([np.zeros((2, 3)), np.zeros((1, 3))], [np.array([1.0, -1.0]), np.array([1.0])])
    assert_alike(nothing, "with-replacement", [0, 5])
