"""Bounds on tasks with several outputs: the sum of the bounds on each output, and never below what is measured."""

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import NotSupportedError


def tasks_of(seed, noise):
    rng = np.random.default_rng([61, seed])
    X = [rng.standard_normal((n, 5)) for n in ((1, 2, 2) if noise == 0 else (2, 3, 3))]
    W = rng.standard_normal((5, 3))
    return fg.RegressionTasks(X, [x @ W + noise * rng.standard_normal((len(x), 3)) for x in X])


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("ordering", ["with-replacement", "without-replacement", "cyclic", "norm-weighted"])
def test_bounds_hold_and_add_up_over_outputs(ordering, noise):
    for seed in range(4):
        tasks = tasks_of(seed, noise)
        e = fg.expect(tasks, ordering, 3, quantities=("loss", "forgetting", "averaged_loss"))
        rows = {row.bound.key: row for row in fg.bounds.evaluate(tasks, ordering, 3) if row.applies}
        parts = [fg.bounds.evaluate(tasks.output(o), ordering, 3) for o in range(3)]
        assert rows
        for key, row in rows.items():
            if row.bound.kind != "upper":
                continue
            if row.quantity in e.values:
                assert e.values[row.quantity] <= row.value * (1 + 1e-9) + 1e-12, key
            each = [part.value for table in parts for part in table if part.bound.key == key and part.applies]
            if len(each) == 3:  # equal where a bound is linear in squared norms, at least as large elsewhere
                assert row.value >= sum(each) * (1 - 1e-9), key


def test_an_order_that_looks_at_all_outputs_is_that_of_one_large_task():
    tasks = tasks_of(0, 0.0)
    setting = fg.bounds.Setting.of(tasks, ordering="greedy-distance")
    assert (setting.d, setting.rank_max) == (15, 6)
    measured = fg.expect(tasks, "greedy-distance", 4).loss
    for row in fg.bounds.evaluate(tasks, "greedy-distance", 4):
        if row.applies and row.bound.kind == "upper" and row.quantity == "loss":
            assert measured <= row.value * (1 + 1e-9), row.bound.key


def test_the_floor_of_several_outputs_is_the_sum_of_floors():
    tasks = tasks_of(1, 0.5)
    floors = [fg.bounds.Setting.of(t, ordering="with-replacement").misfit for t in [tasks.output(o) for o in range(3)]]
    both = fg.bounds.Setting.of(tasks, ordering="with-replacement").misfit
    for name in ("floor", "noise", "centre_loss", "centre_dist_sq", "centre_noise"):
        np.testing.assert_allclose(getattr(both, name), sum(getattr(one, name) for one in floors), rtol=1e-9)


def test_claims_name_the_way_to_one_output():
    with pytest.raises(NotSupportedError, match=r"one output, and these have 3: give tasks\.output\(0\)"):
        fg.claims.Instance(tasks_of(0, 0.0), "cyclic", 3)
