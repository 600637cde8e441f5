"""A visit may say "no update": the step counts, learns nothing, and every result of the run knows it."""

import json
from dataclasses import replace

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, OrderingError
from forgetting.expectation import HALF_SQUARED_DISTANCE, Quantity
from forgetting.orderings import Ordering, Quantile, TaskView, laws

TASKS = fg.families.gaussian(T=3, d=5, rank=1, seed=1)
SCRIPT = [None, 0, -1, 1, 0, None, 2, 1]
LEARNED = [task for task in SCRIPT if task not in (None, -1)]
ORDER = [-1 if task is None else task for task in SCRIPT]
#: the steps after which as many tasks were learned as in the run without the skipped steps
AFTER = [step + 1 for step, task in enumerate(ORDER) if task >= 0]


class Skipping(Ordering):
    """The tasks of SCRIPT, again and again."""

    random = False
    skips = True

    def visits(self, tasks, rng):
        while True:
            yield from SCRIPT


class Arrays(Ordering):
    law = laws.Adaptive(draws=False, skips=True)

    def visits(self, tasks, rng):
        while True:
            yield np.array(ORDER)


OUTPUTS = fg.RegressionTasks([[[1.0, 2.0]], [[0.0, 1.0]], [[1.0, 0.5]]], np.arange(6.0).reshape(3, 1, 2))
PROBLEMS = {
    "compiled": (TASKS, None),
    "interpreted": (TASKS, fg.schemes.RecursiveLeastSquares()),
    "several outputs": (OUTPUTS, None),
    "classification": (fg.families.separable(T=3, d=4, n=3, margin=0.3, seed=0), None),
    "sets": (fg.ConvexSets([fg.Ball(np.ones(2), 1.0), fg.Halfspace([1.0, 0], 0.5), fg.Box([0, 0], [1, 1])]), None),
}


@pytest.mark.parametrize("ordering", [Skipping(), Arrays()], ids=str)
@pytest.mark.parametrize(("problem", "scheme"), PROBLEMS.values(), ids=PROBLEMS)
def test_a_step_without_an_update_changes_nothing_and_counts(problem, scheme, ordering):
    run = fg.run(problem, ordering, 8, scheme)
    plain = fg.run(problem, LEARNED, 5, scheme)
    assert run.order.tolist() == ORDER
    assert run.steps.tolist() == list(range(9))
    np.testing.assert_allclose(run.iterates[[0, *AFTER]], plain.iterates, rtol=0, atol=1e-12)
    skipped = np.flatnonzero(run.order < 0)
    np.testing.assert_array_equal(run.states[skipped + 1], run.states[skipped])
    assert not run.before[skipped].any()
    assert not run.after[skipped].any()
    assert not run.inner_steps[skipped].any()
    visits = np.array(AFTER) - 1
    for name in ("forgetting", "regret", "forgetting_bound"):
        values = getattr(run, name)
        np.testing.assert_allclose(values[visits], getattr(plain, name), rtol=1e-12, atol=1e-15)
        assert values[0] == 0  # nothing was learned yet
        np.testing.assert_allclose(values[[2, 5]], values[[1, 4]], rtol=1e-12, atol=1e-15)  # nothing changed
    assert "3 of 8 steps made no update" in run.status


def test_forgetting_and_regret_are_those_of_the_definitions():
    run = fg.run(TASKS, Skipping(), 8)
    matrix = run.loss_matrix[1:]
    np.testing.assert_allclose(fg.metrics.paper_forgetting(run.order, matrix), run.forgetting, atol=1e-15)
    np.testing.assert_allclose(fg.metrics.paper_regret(run.before, run.order), run.regret, atol=1e-15)
    # by hand: at step 5 the visits are tasks 0, 1, 0 of steps 2, 4, 5
    lost = [matrix[4, 0] - matrix[1, 0], matrix[4, 1] - matrix[3, 1], matrix[4, 0] - matrix[4, 0]]
    assert run.forgetting[4] == pytest.approx(np.mean(lost), rel=1e-9)
    seen = [run.loss_matrix[1, 0], run.loss_matrix[3, 1], run.loss_matrix[4, 0]]
    assert run.regret[4] == pytest.approx(np.mean(seen), rel=1e-9)


def test_metrics_leave_out_rows_that_learned_nothing():
    R, order = np.array([[0.5, 0.5], [0.9, 0.1], [0.9, 0.1], [0.6, 0.8]]), [-1, 0, -1, 1]
    for name in ("forgetting", "average_incremental", "backward_transfer"):
        metric = getattr(fg.metrics, name)
        np.testing.assert_array_equal(metric(R, order), metric(R[[1, 3]], [0, 1]))
    with pytest.raises(InvalidInputError, match="no step learned a task"):
        fg.metrics.forgetting(R[:2], [-1, -1])
    with pytest.raises(InvalidInputError, match=r"order\[0\] is -2"):
        fg.metrics.forgetting(R, [-2, 0, -1, 1])
    with pytest.raises(InvalidInputError, match="expected a task for each loss"):
        fg.metrics.paper_regret([1.0, 2.0], [0])


def test_recorded_steps_and_callbacks_count_steps_without_an_update():
    full = fg.run(TASKS, Skipping(), 8)
    called = []
    some = fg.run(TASKS, Skipping(), 8, record_every=3, callback=lambda step, w: called.append((step, w.copy())))
    assert some.steps.tolist() == [0, 3, 6, 8]
    assert [step for step, _ in called] == [3, 6, 8]
    np.testing.assert_array_equal(some.states, full.states[[0, 3, 6, 8]])
    np.testing.assert_allclose([w for _, w in called], full.iterates[[3, 6, 8]], rtol=0, atol=1e-12)
    np.testing.assert_allclose(some.forgetting[[2, 5, 7]], full.forgetting[[2, 5, 7]], rtol=1e-12, atol=1e-15)
    assert np.isnan(some.forgetting[[0, 1, 3, 4, 6]]).all()
    stopped = fg.run(TASKS, Skipping(), 8, callback=lambda step, w: step == 3)
    assert stopped.order.tolist() == ORDER[:3]


def test_a_run_that_learns_nothing_has_forgotten_nothing():
    class Never(Ordering):
        skips = True

        def visits(self, tasks, rng):
            while True:
                yield None

    run = fg.run(TASKS, Never(), 4, w0=np.ones(5))
    assert (run.iterates == 1).all()
    assert not run.forgetting.any()
    assert not run.regret.any()
    np.testing.assert_array_equal(run.losses, run.losses[0])


def test_only_orderings_that_say_so_may_skip_and_only_by_none_or_minus_one():
    def made(item, stated):
        body = {"visits": lambda self, tasks, rng: iter([0, item, 1]), **stated}
        return type("Mine", (Ordering,), body)()

    for item in (None, -1):
        for stated in ({}, {"adaptive": True}, {"random": False}):
            with pytest.raises(
                OrderingError, match=r"task -1 at step 2, but tasks are 0 to 2; for \"no update\" state"
            ):
                fg.run(TASKS, made(item, stated), 3)
        assert fg.run(TASKS, made(item, {"skips": True}), 3).order.tolist() == [0, -1, 1]
    for item in (-2, 3):
        with pytest.raises(OrderingError, match=f"named task {item} at step 2, but tasks are 0 to 2$"):
            fg.run(TASKS, made(item, {"skips": True}), 3)
    with pytest.raises(OrderingError, match="yields task numbers"):
        fg.run(TASKS, made("x", {"skips": True}), 3)
    with pytest.raises(InvalidInputError, match=r"seq\[1\] is -1"):
        fg.orderings.Explicit([0, -1])
    with pytest.raises(InvalidInputError, match="skips must be True or False"):
        laws.Adaptive(skips=1)


def test_an_ordering_that_skips_is_adaptive_and_conforms():
    assert Skipping().law == Arrays().law == laws.Adaptive(draws=False, skips=True)
    assert Skipping().adaptive
    assert Skipping().skips
    fg.checks.check_ordering(Skipping())
    fg.checks.check_ordering(Arrays())
    assert Skipping().first(TaskView(3), 8).tolist() == ORDER


def test_files_keep_steps_without_an_update(tmp_path):
    run = fg.run(TASKS, Quantile(0.5), 12, seed=3)
    assert (run.order < 0).any()
    run.save(tmp_path / "run.npz")
    again = type(run).load(tmp_path / "run.npz")
    np.testing.assert_array_equal(again.order, run.order)
    np.testing.assert_array_equal(again.forgetting, run.forgetting)
    assert again.ordering == Quantile(0.5)
    assert str(again) == str(run)
    replace(run, ordering=fg.orderings.Cyclic()).save(tmp_path / "wrong.npz")
    with pytest.raises(ForgettingError, match=r"order\[\d+\] is -1"):
        type(run).load(tmp_path / "wrong.npz")


def test_many_runs_are_single_runs(tmp_path):
    runs = fg.run_many(TASKS, Quantile(0.5), 9, runs=4, seed=5)
    assert (runs.order < 0).any()
    assert len({tuple(order) for order in runs.order.tolist()}) == 4
    assert f"{(runs.order < 0).sum()} of 36 steps made no update" in runs.status
    for i in range(4):
        single = runs[i]
        np.testing.assert_array_equal(single.order, runs.order[i])
        for name in ("losses", "forgetting", "regret", "iterates"):
            np.testing.assert_allclose(getattr(runs, name)[i], getattr(single, name), rtol=1e-12, atol=1e-15)
    runs.save(tmp_path / "runs.npz")
    again = type(runs).load(tmp_path / "runs.npz")
    np.testing.assert_array_equal(again.order, runs.order)
    np.testing.assert_allclose(again.forgetting, runs.forgetting)
    assert len(again.to_frame()) == 40
    other = replace(runs, order=np.where(runs.order < 0, 0, runs.order))
    with pytest.raises(ForgettingError, match="chose other tasks than are recorded"):
        other[0]


def test_tables_and_figures_leave_the_task_empty():
    run = fg.run(TASKS, Skipping(), 8)
    shown = [-1 if task is None else task for task in run.to_frame()["task"].tolist()]
    assert shown == [-1, *ORDER]
    assert len(run.figure().series[0].x) == 8


def test_expectations_are_simulated_or_those_of_the_only_run():
    distance = Quantity("next_distance", "half the squared distance to the next task", "next", HALF_SQUARED_DISTANCE)
    names = ("loss", "forgetting", "regret", "seen_loss", "next_loss", "error", "task_losses", distance)
    only = fg.expect(TASKS, Skipping(), [1, 5, 8], quantities=names)
    run = fg.run(TASKS, Skipping(), 9)
    at = np.array([1, 5, 8])
    assert only.method == "deterministic"
    np.testing.assert_allclose(only.loss, run.losses[at], rtol=1e-9)
    np.testing.assert_allclose(only.forgetting, run.forgetting[at - 1], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(only.values["regret"], run.regret[at - 1], rtol=1e-9)
    np.testing.assert_allclose(only.values["next_loss"], run.before[at], rtol=1e-9)
    following = [0.5 * run.residuals[k, ORDER[k]] ** 2 if ORDER[k] >= 0 else 0.0 for k in (1, 5)]
    assert following[0] > 0  # the task after step 1, and no update after step 5
    np.testing.assert_allclose(only.values["next_distance"][:2], following, rtol=1e-9)
    drawn = fg.expect(TASKS, Quantile(0.5), [1, 4], runs=64, seed=2, quantities=names)
    assert drawn.method == "monte-carlo"
    runs = [fg.run(TASKS, Quantile(0.5), 4, seed=s) for s in range(400)]
    for i, k in enumerate((1, 4)):
        for name, values in (("loss", [r.losses[k] for r in runs]), ("regret", [r.regret[k - 1] for r in runs])):
            np.testing.assert_allclose(drawn.values[name][i], np.mean(values), rtol=0.5)
    assert np.isfinite(drawn.forgetting).all()


def test_quantities_of_held_out_data_and_classes_leave_out_skipped_steps():
    labels = np.array([0, 1, 0, 1, 1, 0])
    X = np.random.default_rng(0).standard_normal((6, 3))
    tasks = fg.RegressionTasks.from_labels(X, labels, [0, 0, 1, 1, 2, 2])
    e = fg.expect(tasks, Skipping(), [1, 4, 8], quantities=("incremental_accuracy", "accuracy_forgetting"))
    run = fg.run(tasks, Skipping(), 8)
    for i, k in ((1, 4), (2, 8)):
        wanted = fg.metrics.average_incremental(run.accuracy[1 : k + 1], run.order[:k])
        assert e.values["incremental_accuracy"][i] == pytest.approx(wanted)
    assert e.values["incremental_accuracy"][0] == 0
    assert e.values["accuracy_forgetting"][0] == 0


def test_no_statement_is_about_an_ordering_that_skips():
    rows = fg.bounds.evaluate(TASKS, Quantile(), 5)
    assert not rows.applicable()
    assert sum("learn a task at every step" in row.why_not for row in rows) > 50
    case = fg.claims.Instance(TASKS, Quantile(), 5)
    assert all(claim.why_not(case) is not None for claim in fg.claims.all())
    certificate = fg.certify(TASKS, Quantile(0.5), 4)
    assert not certificate.bounds
    assert not certificate.claims
    assert not certificate.residuals
    classes = fg.families.separable(T=2, d=3, n=2, margin=0.3, seed=0)
    with pytest.raises(NotSupportedError, match="skips steps"):
        fg.reductions.classification_to_pocs(classes, Quantile(), 3, [-10.0])


def test_the_command_line_says_which_steps_made_no_update(capsys):
    from forgetting.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["run", "gaussian", "T=4", "d=6", "rank=1", "-k", "9", "--ordering", "quantile q=0.5", "--json"])
    assert not ended.value.code
    made = json.loads(capsys.readouterr().out)
    text = json.dumps(made)
    assert "steps made no update" in text
    assert -1 in _find(made, "order")


def _find(value, name):
    if isinstance(value, dict):
        return value[name] if name in value else next((f for v in value.values() if (f := _find(v, name))), None)
    return None
