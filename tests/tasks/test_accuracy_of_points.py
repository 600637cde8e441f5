"""The accuracy of tasks at given points: shapes are checked, and a point that overflows has no accuracy."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError

SIGNS = fg.RegressionTasks([np.eye(2), [[1.0, 1.0]]], [[1.0, -1.0], [1.0]])
CLASSES = fg.RegressionTasks([np.eye(2), [[1.0, 1.0]]], [np.eye(2), [[1.0, 0.0]]])


@pytest.mark.parametrize("shape", [(), (2,), (3, 3), (2, 2), (1, 2, 3)])
def test_a_stack_of_points_of_another_shape_is_refused(shape):
    for tasks in (SIGNS, CLASSES):
        if shape[1:] != tasks.point_shape or not shape:
            with pytest.raises(InvalidInputError, match="points: expected a stack of w of shape"):
                tasks.accuracies(np.ones(shape))
            with pytest.raises(InvalidInputError, match="points: expected a stack of w of shape"):
                tasks.predictions(0, np.ones(shape))


@pytest.mark.parametrize("tasks", [SIGNS, CLASSES], ids=["signs", "classes"])
def test_a_point_that_overflows_has_no_accuracy_and_no_warning(tasks):
    points = np.zeros((3, *tasks.point_shape))
    points[1], points[2] = 1e200, np.nan
    table = tasks.accuracies(points)
    assert table[0] == pytest.approx([0.5, 0.5])
    assert np.isnan(table[1:]).all()


def test_the_accuracy_of_a_run_that_diverges_is_not_known():
    run = fg.run(SIGNS, "cyclic", 2000, scheme=fg.schemes.SGD(5.0))
    assert np.isnan(run.accuracy[-1]).all()


def test_kernel_tasks_know_no_other_task():
    kernel = fg.KernelTasks(np.eye(2), [1.0, -1.0], [0, 1])
    for task in (2, 10**30):
        with pytest.raises(InvalidInputError, match="task"):
            kernel.predictions(task, np.eye(2))
        with pytest.raises(InvalidInputError, match="task"):
            kernel.labels_of(task)
