"""Class labels of held-out data and of copies of tasks: the outputs of each task stand for its own classes."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError

ROWS = np.random.default_rng(16).standard_normal((12, 4))
LABELS = list("abcabc" + "dedede")
GROUPS = ["first"] * 6 + ["second"] * 6  # three classes, then two
TASKS = fg.RegressionTasks.from_labels(ROWS, LABELS, GROUPS, classes="task")
ACCURACY = ("accuracy", "test_accuracy")


def test_held_out_tasks_in_another_order_keep_their_classes():
    turned = fg.RegressionTasks.from_labels(ROWS[::-1], LABELS[::-1], GROUPS[::-1], classes="task")
    assert turned.names == ("second", "first")
    e = fg.expect(TASKS, "cyclic", [0, 1, 2], quantities=ACCURACY, test=turned)
    assert e.values["test_accuracy"] == pytest.approx(e.values["accuracy"], abs=1e-15)
    assert e.values["accuracy"][0] == pytest.approx((1 / 3 + 1 / 2) / 2)


def test_held_out_one_hot_labels_stand_for_the_classes_of_the_tasks():
    for test in ([TASKS.task(0), TASKS.task(1)], fg.RegressionTasks(*zip(*map(TASKS.task, range(2)), strict=True))):
        e = fg.expect(TASKS, "cyclic", [0, 1, 2], quantities=ACCURACY, test=test)
        assert e.values["test_accuracy"] == pytest.approx(e.values["accuracy"], abs=1e-15)


@pytest.mark.parametrize("classes", ["all", "task"])
def test_held_out_data_of_other_classes_are_refused(classes):
    tasks = fg.RegressionTasks.from_labels(ROWS, LABELS, GROUPS, classes=classes)
    others = fg.RegressionTasks.from_labels(ROWS, ["f" if c == "e" else c for c in LABELS], GROUPS, classes=classes)
    with pytest.raises(InvalidInputError, match=r"test, task 'second': 'f' is no class of the task; .*d"):
        fg.expect(tasks, "cyclic", 2, quantities="test_accuracy", test=others)
    with pytest.raises(InvalidInputError, match=r"test, task 'second': 'f' is no class of the task; .*d"):
        fg.audit(tasks, test=others)
    numbers = fg.RegressionTasks.from_arrays(ROWS, np.arange(12.0), GROUPS)
    for measure in (lambda: fg.audit(tasks, test=numbers), lambda: fg.expect(tasks, "cyclic", 2, test=numbers)):
        with pytest.raises(
            InvalidInputError, match="test: labels are numbers, but those of the tasks are classes; load"
        ):
            measure()


@pytest.mark.parametrize("classes", ["all", "task"])
def test_held_out_data_that_lack_classes_are_known_by_the_names_of_theirs(classes):
    """Columns of one-hot labels stand for other classes where a class is missing."""
    X = np.random.default_rng(3).standard_normal((12, 20))
    tasks = fg.RegressionTasks.from_labels(X, LABELS, GROUPS, classes=classes)
    some = [row for row, label in enumerate(LABELS) if label in "cbe"]
    test = fg.RegressionTasks.from_labels(
        X[some], [LABELS[row] for row in some], [GROUPS[row] for row in some], classes=classes
    )
    assert test.classes != tasks.classes
    e = fg.expect(tasks, "cyclic", [0, 1, 2], quantities=("test_accuracy", "test_loss"), test=test)
    run = fg.run(tasks, "cyclic", k=2)
    for step, w in enumerate(run.iterates):
        rates, losses = [], []
        for m, name in enumerate(tasks.names):
            own = [row for row in some if GROUPS[row] == name]
            outputs = X[own] @ w
            wanted = [tasks.classes[m].index(LABELS[row]) for row in own]
            if step == 2:  # before, classes that were never learned tie
                rates.append(np.mean(outputs[:, : len(tasks.classes[m])].argmax(axis=1) == wanted))
            losses.append(0.5 * np.sum((outputs - np.eye(tasks.outputs)[wanted]) ** 2))
        assert e.values["test_loss"][step] == pytest.approx(np.mean(losses))
        if step == 2:
            assert e.values["test_accuracy"][step] == pytest.approx(np.mean(rates))
    found = fg.audit(tasks, test=test)
    assert found.measure("held-out accuracy").given == pytest.approx(e.values["test_accuracy"][2])


def test_copies_of_tasks_keep_their_classes():
    copies = fg.families.repeated(TASKS, 2)
    assert copies.classes == TASKS.classes * 2
    assert copies.accuracy(np.zeros((4, 3))) == pytest.approx([1 / 3, 1 / 2] * 2)
