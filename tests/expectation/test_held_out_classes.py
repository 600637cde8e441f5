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
    with pytest.raises(InvalidInputError, match=r"test, task \d: its outputs stand for the classes .*, f, but those"):
        fg.expect(tasks, "cyclic", 2, quantities="test_accuracy", test=others)


def test_copies_of_tasks_keep_their_classes():
    copies = fg.families.repeated(TASKS, 2)
    assert copies.classes == TASKS.classes * 2
    assert copies.accuracy(np.zeros((4, 3))) == pytest.approx([1 / 3, 1 / 2] * 2)
