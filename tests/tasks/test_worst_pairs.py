"""Worst pairs in closed form."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError

RANDOM = fg.orderings.WithReplacement()


@pytest.mark.parametrize("quantity", ["loss", "forgetting"])
@pytest.mark.parametrize("k", [2, 3, 10, pytest.param(1000, marks=pytest.mark.slow), 100])
def test_no_angle_and_no_other_pair_is_worse_than_the_worst_pair(k, quantity):
    def value(tasks):
        return float(getattr(fg.expect(tasks, RANDOM, k), quantity)) / tasks.scale

    worst = value(fg.families.worst_pair(k, quantity))
    angles = np.sqrt(2 / k) * np.linspace(0.3, 1.4, 23)
    assert all(value(fg.families.two_lines(min(angle, 1.5))) <= worst * (1 + 1e-9) for angle in angles)
    assert any(value(fg.families.two_lines(min(angle, 1.5))) > 0.99 * worst for angle in angles)
    for seed in range(5):
        assert value(fg.families.gaussian(T=2, d=3, rank=1 + seed % 2, seed=seed)) <= worst * (1 + 1e-9)


def test_a_worst_pair_needs_a_step_and_a_known_quantity():
    with pytest.raises(InvalidInputError, match="quantity must be 'loss' or 'forgetting', got 'regret'"):
        fg.families.worst_pair(3, "regret")
    with pytest.raises(InvalidInputError, match="k must be"):
        fg.families.worst_pair(0)
