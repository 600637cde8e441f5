"""Tasks with several outputs: one-hot classes and multi-target regression, audited like tasks with one output."""

from itertools import permutations

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import find_duplicates, forgetting_matrix, principal_angles, search_orders
from forgetting.auditing.orders import pass_ends
from forgetting.errors import InvalidInputError

O = fg.orderings  # noqa: E741


def classes(which="all", T=4, seed=0, rows=9, d=12):
    """Tasks of 2 classes each, from 5 classes with centres of their own, and held-out rows of the same tasks."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(5, d))
    groups = np.repeat(np.arange(T), rows)
    labels = (groups + rng.integers(2, size=T * rows)) % 5

    def draw():
        return fg.RegressionTasks.from_labels(
            centres[labels] + 0.5 * rng.normal(size=(len(labels), d)), labels, groups, classes=which
        )

    return draw(), draw()


def targets(c=3, T=4, seed=0, loss="sum"):
    """Multi-target regression that no w solves."""
    rng = np.random.default_rng(seed)
    pairs = [(rng.normal(size=(m + 2, 6)), rng.normal(size=(m + 2, c))) for m in range(T)]
    return fg.RegressionTasks([X for X, _ in pairs], [y for _, y in pairs], loss=loss)


def pass_by_hand(tasks, order, lam=None):
    """w at the end of a pass from 0 and its path, task after task, by pseudo-inverses or normal equations."""
    w = np.zeros((tasks.dim, tasks.outputs))
    path = [w]
    for m in order:
        X, y = tasks.equations(m)
        step = np.linalg.pinv(X) if lam is None else np.linalg.solve(X.T @ X + lam * np.eye(tasks.dim), X.T)
        w = w - step @ (X @ w - y)
        path.append(w)
    return path


@pytest.mark.parametrize("which", ["all", "task"])
@pytest.mark.parametrize("lam", [None, 0.7])
def test_an_audit_of_classes_equals_brute_force(which, lam):
    tasks, held = classes(which)
    audit = fg.audit(tasks, test=held, scheme=None if lam is None else fg.schemes.Ridge(lam))
    names = ["training loss", "held-out loss", "training accuracy", "held-out accuracy"]
    assert [one.name for one in audit.measures if one.name != "forgetting"] == names
    every = list(permutations(range(4)))
    assert list(map(tuple, audit.orders)) == every
    forgotten = []
    for row, order in enumerate(every):
        path = pass_by_hand(tasks, order, lam)
        w = path[-1]
        wanted = [tasks.task_losses(w), held.task_losses(w), tasks.accuracy(w), held.accuracy(w)]
        for name, values in zip(names, wanted, strict=True):
            assert audit.measure(name).task_values[row] == pytest.approx(values, abs=1e-10), name
            assert audit.measure(name).values[row] == pytest.approx(np.mean(values), abs=1e-10)
        forgotten.append(
            np.mean([tasks.task_loss(m, w) - tasks.task_loss(m, path[t + 1]) for t, m in enumerate(order)])
        )
    assert audit.search.best.value == pytest.approx(min(forgotten))
    assert audit.search.worst.value == pytest.approx(max(forgotten))
    assert audit.ordering("random permutation").forgetting == pytest.approx(np.mean(forgotten))
    assert audit.ordering("given order").forgetting == pytest.approx(forgotten[0])
    assert audit.tasks[0].rows == 9
    assert fg.auditing.Audit.from_json(audit.to_json()) == audit
    assert "<html" in audit.to_html()


def test_an_output_twice_has_twice_the_losses_and_the_same_verdict():
    tasks = targets(c=2).output(0)
    pairs = [tasks.task(m) for m in range(4)]
    one = fg.audit(tasks)
    two = fg.audit(tasks.with_data([X for X, _ in pairs], [np.column_stack([y, y]) for _, y in pairs]))
    assert two.fit.floor == pytest.approx(2 * one.fit.floor)
    assert two.fit.start == pytest.approx(2 * one.fit.start)
    assert two.fit.offenders == one.fit.offenders
    for mine, theirs in zip(two.orderings, one.orderings, strict=True):
        assert mine.method == theirs.method
        assert (mine.loss, mine.forgetting) == pytest.approx((2 * theirs.loss, 2 * theirs.forgetting))
    assert np.array(two.influence) == pytest.approx(2 * np.array(one.influence))
    assert np.array(two.overlap) == pytest.approx(np.array(one.overlap))
    assert two.measure("training loss").values == pytest.approx(2 * np.array(one.measure("training loss").values))
    assert [two.verdict, two.luck] == [one.verdict, one.luck]
    assert [row.worst_by for row in two.tasks] == [row.worst_by for row in one.tasks]
    assert two.opening[0].split(":")[0] == one.opening[0].split(":")[0]


def test_a_number_of_outputs_is_the_sum_over_outputs():
    tasks = targets(c=3, loss="mean")
    whole, parts = fg.audit(tasks), [fg.audit(tasks.output(o)) for o in range(3)]
    assert whole.fit.floor == pytest.approx(sum(part.fit.floor for part in parts))
    assert np.array(whole.influence) == pytest.approx(sum(np.array(part.influence) for part in parts))
    for at, row in enumerate(whole.orderings):
        if row.name in ("given order", "random permutation", "with replacement"):
            assert row.loss == pytest.approx(sum(part.orderings[at].loss for part in parts))
            assert row.forgetting == pytest.approx(sum(part.orderings[at].forgetting for part in parts))
    assert "summed over 3 outputs" in whole.unit
    assert "accuracy: the labels are not classes" in whole.missing[0]


def test_who_forgets_whom_is_that_of_runs():
    tasks = targets(c=2)
    order = [2, 0, 3, 1]
    losses = fg.run(tasks, O.Explicit(order), 4).loss_matrix
    matrix = forgetting_matrix(tasks, [order]).matrix
    for i in range(4):
        for j in range(4):
            after = order.index(j) > order.index(i)
            step = order.index(j) + 1
            assert matrix[i, j] == pytest.approx(losses[step, i] - losses[step - 1, i] if after else 0.0, abs=1e-12)


def test_many_orders_at_once_end_where_single_runs_end():
    for tasks in (targets(c=2), targets(c=2).output(0)):
        for scheme in (fg.schemes.Kaczmarz(), fg.schemes.SGD(0.3), fg.schemes.Ridge(2.0)):
            w0 = np.arange(float(np.prod(tasks.point_shape))).reshape(tasks.point_shape)
            orders = np.array(list(permutations(range(4))))
            (ends,) = pass_ends(tasks, scheme, w0, orders)
            for row, order in enumerate(orders):
                run = fg.run(tasks, O.Explicit(order), 4, scheme, w0=w0)
                assert ends.points[row] == pytest.approx(run.iterates[-1])
                assert ends.losses[row] == pytest.approx(run.loss_matrix[-1])
                assert ends.forgetting[row] == pytest.approx(run.forgetting[-1])


def test_orders_of_large_tasks_have_the_values_of_runs():
    rng = np.random.default_rng(0)
    tasks = fg.RegressionTasks(rng.normal(size=(3, 30, 60)), rng.normal(size=(3, 30, 4)))
    for quantity in ("forgetting", "loss"):
        found = search_orders(tasks, quantity)
        values = {}
        for order in permutations(range(3)):
            run = fg.run(tasks, O.Explicit(order), 3)
            values[order] = (run.forgetting if quantity == "forgetting" else run.losses)[-1]
        assert found.best.order == min(values, key=values.get)
        assert found.worst.value == pytest.approx(max(values.values()))


@pytest.mark.parametrize(("change", "kind"), [(0.0, None), (1.0, "same inputs, other labels")])
def test_duplicates_are_compared_by_all_outputs(change, kind):
    rng = np.random.default_rng(1)
    X, y, other = rng.normal(size=(3, 5)), rng.normal(size=(3, 2)), rng.normal(size=(2, 5))
    changed = y + change * np.array([0.0, 1.0])  # the first output is the same
    tasks = fg.RegressionTasks([X, other, X], [y, rng.normal(size=(2, 2)), changed])
    found = find_duplicates(tasks.geometry, principal_angles(tasks.geometry), realizable=False)
    assert [(one.task, one.of, one.kind) for one in found] == [(2, 0, kind or "identical")]


def test_rescaled_copies_of_several_outputs_are_found():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(3, 5)), rng.normal(size=(3, 2))
    tasks = fg.RegressionTasks([X, 3 * X], [y, 3 * y])
    found = find_duplicates(tasks.geometry, principal_angles(tasks.geometry))
    assert [one.kind for one in found] == ["rescaled copy"]


def test_test_rows_of_other_outputs_are_refused():
    tasks, _ = classes()
    other = tasks.with_data(*zip(*[(X, y[:, :2]) for X, y in (tasks.task(m) for m in range(4))], strict=True))
    with pytest.raises(InvalidInputError, match="labels have 2 outputs, but those of the tasks have 5"):
        fg.audit(tasks, test=other)


def test_classes_seen_in_one_task_only_are_noted_by_name():
    rng = np.random.default_rng(0)
    words = ["ant", "bee", "cat", "bee"]
    tasks = fg.RegressionTasks.from_labels(rng.normal(size=(4, 3)), words, [0, 0, 1, 1], classes="task")
    (note,) = (note for note in fg.audit(tasks).notes if "classes" in note)
    assert note.endswith("2 of 3 classes are seen in one task only: 'ant' in task '0', 'cat' in task '1'")


@pytest.mark.parametrize(
    ("loss", "words"), [("sum", "summed over rows and outputs"), ("mean", "mean over rows, summed")]
)
def test_the_axis_says_what_a_loss_is_in_a_few_words(loss, words):
    figure = fg.audit(targets(c=3, loss=loss)).to_report().item("orders-tried")
    assert words in figure.panels[0].xlabel
    assert len(figure.panels[0].xlabel) < 60
    assert "summed over 3 outputs" in figure.caption


def test_what_is_simulated_is_said_with_the_number_of_runs():
    audit = fg.audit(targets(c=3, T=7), patience=0.0, runs=64)
    assert any("simulated, by 64 runs each" in note for note in audit.notes)
    assert "simulated, by 64 runs each" in audit.to_html()
    assert not any("simulated" in note for note in fg.audit(targets(c=3)).notes)
