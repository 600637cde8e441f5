"""Noise of labels: what results say of it, and tasks of many rows, whose noise is turned into few outputs."""

import numpy as np
import pytest

import forgetting as fg

NOISY = fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]])


def test_the_result_says_that_labels_have_noise():
    for noise in (0.1, [0.1, 0.2], [np.eye(1), np.eye(1)]):
        e = fg.expect(NOISY, "with-replacement", 2, noise=noise)
        assert any("labels have noise" in note for note in e.notes)
    assert not any("labels have noise" in note for note in fg.expect(NOISY, "with-replacement", 2).notes)


@pytest.mark.parametrize("size", [*(pytest.param(size, marks=pytest.mark.slow) for size in (1e-3, 1e-9)), 1e-14])
@pytest.mark.filterwarnings("ignore::forgetting.errors.SmallRowWarning")
def test_the_noise_of_many_rows_is_not_lost_where_one_of_them_is_small(size):
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.standard_normal((30, 2)), np.zeros(30)])
    X[0] = [0.0, 0.0, size]  # the only row that knows the last direction, where its noise is divided by its size
    tasks = fg.RegressionTasks([X, [[1.0, 1.0, 1.0]]], [X @ np.ones(3), [3.0]])
    e = fg.expect(tasks, [0], 1, noise=[0.1, 0.0], quantities="task_losses")
    inverse = np.linalg.pinv(X[1:, :2])
    spread = inverse @ inverse.T
    assert e.values["task_losses"][1] == pytest.approx(0.5 * 0.01 * (size**-2 + spread.sum()), rel=1e-9)


def test_the_noise_of_many_rows_knows_directions_that_rank_tol_drops():
    rng = np.random.default_rng(4)
    X = [rng.standard_normal((30, 3)), rng.standard_normal((2, 3))]
    tasks = fg.RegressionTasks(X, [np.ones(30), np.ones(2)], rank_tol=0.9)
    assert tasks.ranks[0] < 3
    by_level = fg.expect(tasks, "with-replacement", 3, noise=0.1)
    by_covariance = fg.expect(tasks, "with-replacement", 3, noise=[0.01 * np.eye(30), 0.01 * np.eye(2)])
    assert by_level.loss == pytest.approx(by_covariance.loss, rel=1e-12)
