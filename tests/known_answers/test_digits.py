"""Values that were once wrong while called exact, against exact rational arithmetic (`tests/exact/rationals.py`).

Each stands for a family: norms far apart, tasks that nearly coincide, rows or columns of very different sizes, errors
that have become tiny, labels that fit only within `rtol`, a joint rank that one badly conditioned task used to decide.
"""

import numpy as np
import pytest

import forgetting as fg

WR = fg.orderings.WithReplacement()
S = 1e12


def tasks_of(matrices, w):
    arrays = [np.array(X, dtype=float) for X in matrices]
    return fg.RegressionTasks(arrays, [X @ np.array(w, dtype=float) for X in arrays])


def two_columns(c):
    return [[[c, 1, 0], [0, 1, 1]], [[c, 0, 1]], [[2 * c, 1, 1]]], (1, 2, 3)


CASES = {
    "norms 1e8 apart": (([[[1e8, 1]], [[0, 1]]], (1, 2)), "forgetting", 2, 0.2499999974999999625),
    "an angle of 2^-26": (([[[1, 0]], [[1, 2.0**-26]]], (1, 1)), "loss", 1, 5.55111504040772083e-17),
    "rows 1e12 apart": (([[[1, -1, 1], [S, 2 * S, 3 * S]], [[0, 1, 2]]], (1, 2, 3)), "loss", 3, 8.13080332409972299e22),
    "a column of 1e5": (two_columns(1e5), "forgetting", 3, 0.166666666570062319),
    "a column of 1e6": (two_columns(1e6), "loss", 3, 1.48456740740476852),
}


@pytest.mark.filterwarnings("ignore::forgetting.errors.SmallRowWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_value_and_its_uncertainty(name):
    problem, quantity, k, true = CASES[name]
    for names in ((quantity,), ("error", quantity), ("loss", "forgetting", "regret", "error", "task_losses")):
        e = fg.expect(tasks_of(*problem), WR, k, quantities=names)
        assert abs(e.values[quantity] - true) <= e.uncertainty[quantity] + 4e-16 * true
        assert e.uncertainty[quantity] <= 1e-13 * true


@pytest.mark.parametrize(
    ("ordering", "true"),
    [
        (WR, (7.81619169847743e-16, 1.25069660210349e-19)),
        (fg.orderings.Reshuffled(), (1.24631363606729e-29, 7.08666903349810e-37)),
    ],
    ids=["with replacement", "reshuffled"],
)
def test_errors_that_have_become_tiny_keep_their_digits_whatever_else_is_asked(ordering, true):
    tasks = fg.families.two_lines(1.0)
    both = fg.expect(tasks, ordering, [80, 100], quantities=("error",))
    np.testing.assert_allclose(both.error, true, rtol=1e-13)
    assert np.all(both.uncertainty["error"] <= 1e-13 * both.error)
    for i, k in enumerate((80, 100)):
        for names in (("error",), ("loss", "error", "regret")):
            alone = fg.expect(tasks, ordering, k, quantities=names)
            assert alone.uncertainty["error"] == pytest.approx(both.uncertainty["error"][i], rel=1e-9)
            assert abs(alone.error - both.error[i]) <= both.uncertainty["error"][i]


def test_labels_that_fit_only_in_single_precision_leave_a_loss():
    rows = [np.array([[1.0, 0.0]]), np.array([[0.6, 0.8]]), np.array([[0.0, 1.0]])]
    tasks = fg.RegressionTasks(rows, [[1.0], [2.2], [2 + 4e-8]])
    assert tasks.realizability.holds
    for k in (200, 2000):  # it stays: no w has a loss below 8.5e-17
        e = fg.expect(tasks, WR, k)
        assert e.loss == pytest.approx(1.70666667197547e-16, rel=1e-13)
        assert e.uncertainty["loss"] < 1e-13 * e.loss
    cyclic = fg.expect(tasks, fg.orderings.Cyclic(), 200)
    assert 8.5e-17 < cyclic.loss < 1e-15


@pytest.mark.parametrize("exponent", [-20, -24, -30])
def test_one_badly_conditioned_task_does_not_decide_the_joint_rank(exponent):
    near = [[[1, 0, 0, 0]], [[1, 2.0**exponent, 0, 0]], [[0, 0, 1, 0], [0, 0, 0, 1e-8]]]
    tasks = tasks_of(near, (1, 1, 1, 1))
    assert tasks.rank_joint == 4
    assert tasks.realizability.holds
    assert float(tasks.w_star @ tasks.w_star) == pytest.approx(4, rel=1e-9)
    assert tasks.scale == pytest.approx(4 * tasks.radius**2, rel=1e-9)


def test_a_tiny_row_counts_and_is_named():
    with pytest.warns(fg.errors.SmallRowWarning, match=r"task 1 \(b\), row 1: its largest entry is 1e-13"):
        tasks = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 1.0], [0.0, 1e-13]]], [[1.0], [2.0, 1e-13]], names=["a", "b"])
    assert tasks.ranks.tolist() == [1, 2]
    given = fg.RegressionTasks([[[1.0, 0.0]], [[1.0, 1.0], [0.0, 1e-13]]], [[1.0], [2.0, 1e-13]], rank_tol=1e-10)
    assert given.ranks.tolist() == [1, 1]
    zero = fg.RegressionTasks([[[1.0, 0.0], [0.0, 0.0]]], [[1.0, 0.0]])
    assert zero.ranks.tolist() == [1]
