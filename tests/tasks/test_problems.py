"""The members that every problem has."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import NotSupportedError


def test_a_problem_without_a_radius_has_no_scale():
    class Points(fg.Problem):
        num_tasks, dim = 1, 1

        def project(self, task, w):
            return np.ones(1)

        def task_loss(self, task, w):
            return 0.5 * float(w[0] - 1) ** 2

        def task_losses(self, w):
            return np.array([self.task_loss(0, w)])

        def distances(self, w):
            return abs(w - 1)

        def nearest_solution(self, w0):
            return np.ones(1)

    with pytest.raises(NotSupportedError, match="Points has no radius"):
        _ = Points().scale
    Points.radius = 2.0
    assert Points().scale == 4.0
    assert Points().scale_from([3.0]) == 16.0
