"""Loss, forgetting and regret of the paper, and the conventions of continual-learning libraries, worked by hand."""

import numpy as np
import pytest

import forgetting as fg
from forgetting import metrics
from forgetting.errors import InvalidInputError

nan = np.nan

# Three tasks, learned in the order 0, 1, 2; accuracies after each.
R = np.array(
    [
        [0.90, 0.20, 0.10],
        [0.70, 0.80, 0.30],
        [0.75, 0.60, 0.95],
    ]
)
ORDER = [0, 1, 2]


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-14)


# ------------------------------------------------------------------------------------------------------------ paper


def test_paper_forgetting_by_hand():
    # order 0, 1, 0; losses after each step:
    L = [[0.0, 2.0], [0.5, 0.0], [0.0, 0.8]]
    # F(1) = L_0(w_1) - L_0(w_1) = 0
    # F(2) = 1/2 [(0.5 - 0) + (0 - 0)] = 0.25
    # F(3) = 1/3 [(0 - 0) + (0.8 - 0) + (0 - 0)] = 0.8/3
    close(metrics.paper_forgetting([0, 1, 0], L), [0, 0.25, 0.8 / 3])


def test_paper_forgetting_counts_a_visit_each_and_subtracts_what_was_left_after_learning():
    # order 0, 0, 1; task 0 is not solved: 1.0 after the first visit, 0.6 after the second, 0.9 at the end
    L = [[1.0, 5.0], [0.6, 5.0], [0.9, 0.5]]
    # F(2) = 1/2 [(0.6 - 1.0) + 0] = -0.2;  F(3) = 1/3 [(0.9 - 1.0) + (0.9 - 0.6) + 0] = 0.2/3
    close(metrics.paper_forgetting([0, 0, 1], L), [0, -0.2, 0.2 / 3])
    close(metrics.paper_forgetting([0, 0, 1], L, learned=[0, 0, 0]), [1.0, 0.6, (0.9 * 2 + 0.5) / 3])


def test_paper_regret_by_hand():
    close(metrics.paper_regret([4.0, 0.0, 2.0]), [4, 2, 2])
    close(metrics.paper_regret([[4.0, 0.0], [1.0, 3.0]]), [[4, 2], [1, 2]])
    assert metrics.paper_regret([]).shape == (0,)


def test_paper_quantities_of_a_run_are_those_of_its_loss_matrix():
    tasks = fg.families.gaussian(5, 12, 2, seed=0)
    run = fg.run(tasks, fg.orderings.WithReplacement(), 20, scheme=fg.schemes.SGD(0.6))
    close(run.forgetting, metrics.paper_forgetting(run.order, run.loss_matrix[1:]))
    close(run.regret, metrics.paper_regret(run.loss_matrix[np.arange(20), run.order]))
    assert abs(run.after[3] - run.loss_matrix[4, run.order[3]]) < 1e-14
    assert run.after.max() > 1e-3  # damped steps leave something, and it is subtracted


def test_paper_forgetting_of_nothing_is_nothing():
    assert metrics.paper_forgetting([], np.empty((0, 3))).shape == (0,)


@pytest.mark.parametrize(
    ("order", "message"),
    [([0, 1], r"2 tasks in the order, but 3 rows"), ([0, 1, 7], r"order\[2\] is 7, but")],
)
def test_paper_forgetting_checks_its_order(order, message):
    with pytest.raises(InvalidInputError, match=message):
        metrics.paper_forgetting(order, np.zeros((3, 3)))


# ------------------------------------------------------------------------------------------------------- forgetting


def test_forgetting_first_by_hand():
    # right after learning: 0.90, 0.80, 0.95; at the end 0.75, 0.60, 0.95
    close(metrics.forgetting(R, ORDER), [0.15, 0.20, 0.0])


def test_forgetting_chaudhry_by_hand():
    # best of the rows before the last: 0.90, 0.80; task 2 is learned last and not counted
    close(metrics.forgetting(R, ORDER, "chaudhry"), [0.15, 0.20, nan])


def test_forgetting_max_by_hand():
    # best since learned, the last row included
    close(metrics.forgetting(R, ORDER, "max"), [0.15, 0.20, 0.0])


# Task 0 comes back: order 0, 1, 0, 2.
AGAIN = np.array(
    [
        [0.80, 0.50, 0.10],
        [0.60, 0.70, 0.40],
        [0.95, 0.75, 0.20],
        [0.85, 0.65, 0.90],
    ]
)
ORDER_AGAIN = [0, 1, 0, 2]


def test_forgetting_knows_that_a_task_may_come_again():
    # first: task 0 had 0.80 when first learned and ends at 0.85: it forgot -0.05; task 1: 0.70 - 0.65
    close(metrics.forgetting(AGAIN, ORDER_AGAIN), [-0.05, 0.05, 0.0])
    # chaudhry: best of rows 0..2: 0.95 and 0.75, less 0.85 and 0.65
    close(metrics.forgetting(AGAIN, ORDER_AGAIN, "chaudhry"), [0.10, 0.10, nan])
    # max: best since first learned: 0.95, 0.75 and 0.90
    close(metrics.forgetting(AGAIN, ORDER_AGAIN, "max"), [0.10, 0.10, 0.0])


def test_chaudhry_looks_at_rows_before_a_task_was_learned_and_max_does_not():
    table = [[0.5, 0.9, 0.0], [0.5, 0.6, 0.0], [0.5, 0.4, 0.7]]
    close(metrics.forgetting(table, [0, 1, 2], "chaudhry"), [0.0, 0.5, nan])
    close(metrics.forgetting(table, [0, 1, 2], "max"), [0.0, 0.2, 0.0])
    close(metrics.forgetting(table, [0, 1, 2], "first"), [0.0, 0.2, 0.0])


def test_forgetting_of_losses_turns_the_sign():
    losses = [[0.1, 3.0], [0.4, 0.2]]
    close(metrics.forgetting(losses, [0, 1], higher_is_better=False), [0.3, 0.0])
    close(metrics.forgetting(losses, [0, 1], "max", higher_is_better=False), [0.3, 0.0])
    close(metrics.forgetting(losses, [0, 1], "chaudhry", higher_is_better=False), [0.3, nan])


def test_what_was_not_evaluated_is_nan_and_what_was_never_learned_too():
    holes = [[0.9, nan, nan], [nan, 0.8, nan], [0.6, nan, nan]]
    # order 0, 1, 0: task 1 has no last value, task 2 was never learned
    close(metrics.forgetting(holes, [0, 1, 0]), [0.3, nan, nan])
    close(metrics.forgetting(holes, [0, 1, 0], "max"), [0.3, nan, nan])
    close(metrics.forgetting(holes, [0, 1, 0], "chaudhry"), [0.3, nan, nan])
    # a hole in the middle is passed over by the best
    close(metrics.forgetting([[0.9, 0.1], [nan, 0.3], [0.5, 0.3]], [0, 1, 1], "max"), [0.4, 0.0])
    assert np.isnan(metrics.forgetting([[nan, nan], [0.5, nan]], [0, 1], "chaudhry")).all()


# --------------------------------------------------------------------------------------------------------- transfer


def test_backward_transfer_gem_by_hand():
    # tasks 0 and 1: (0.75 - 0.90), (0.60 - 0.80); mean -0.175
    assert metrics.backward_transfer(R, ORDER) == pytest.approx(-0.175, abs=1e-14)


def test_backward_transfer_diaz_by_hand():
    # row 1: 0.70 - 0.90 = -0.20; row 2: 0.75 - 0.90 = -0.15 and 0.60 - 0.80 = -0.20; mean of three
    assert metrics.backward_transfer(R, ORDER, "diaz") == pytest.approx(-0.55 / 3, abs=1e-14)


def test_forward_transfer_gem_by_hand():
    # task 1 just before it was learned: 0.20 - 0.1; task 2: 0.30 - 0.25
    value = metrics.forward_transfer(R, ORDER, baseline=[0.5, 0.10, 0.25])
    assert value == pytest.approx((0.10 + 0.05) / 2, abs=1e-14)


def test_forward_transfer_diaz_by_hand():
    # above the diagonal: 0.20, 0.10, 0.30
    assert metrics.forward_transfer(R, ORDER, "diaz") == pytest.approx(0.2, abs=1e-14)


def test_transfer_knows_that_a_task_may_come_again():
    # gem backward: tasks 0 and 1 against their first time: (0.85 - 0.80), (0.65 - 0.70)
    assert metrics.backward_transfer(AGAIN, ORDER_AGAIN) == pytest.approx(0.0, abs=1e-14)
    # diaz backward: task 0 rows 1..3: -0.20, 0.15, 0.05; task 1 rows 2..3: 0.05, -0.05; mean of five
    assert metrics.backward_transfer(AGAIN, ORDER_AGAIN, "diaz") == pytest.approx(0.0 / 5, abs=1e-14)
    # gem forward: task 1 from row 0: 0.50; task 2 from row 2: 0.20
    assert metrics.forward_transfer(AGAIN, ORDER_AGAIN, baseline=[0, 0, 0]) == pytest.approx(0.35, abs=1e-14)
    # diaz forward: task 1 row 0: 0.50; task 2 rows 0..2: 0.10, 0.40, 0.20
    assert metrics.forward_transfer(AGAIN, ORDER_AGAIN, "diaz") == pytest.approx(1.2 / 4, abs=1e-14)


def test_transfer_passes_over_what_was_not_evaluated():
    holes = [[0.9, nan, 0.1], [nan, 0.8, nan], [0.5, nan, 0.9]]
    # backward: task 0: 0.5 - 0.9; task 1 has no last value
    assert metrics.backward_transfer(holes, ORDER) == pytest.approx(-0.4, abs=1e-14)
    assert metrics.backward_transfer(holes, ORDER, "diaz") == pytest.approx(-0.4, abs=1e-14)
    # forward: only (row 0, task 2) = 0.1 was seen above the diagonal; gem looks at row 1 for it: not there
    assert metrics.forward_transfer(holes, ORDER, "diaz") == pytest.approx(0.1, abs=1e-14)
    assert np.isnan(metrics.forward_transfer(holes, ORDER, baseline=[0, 0, 0]))


def test_transfer_of_a_single_task_is_undefined():
    assert np.isnan(metrics.backward_transfer([[0.9]], [0]))
    assert np.isnan(metrics.forward_transfer([[0.9]], [0], "diaz"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: metrics.forgetting(R, ORDER, "best"),
            r"convention must be one of first, chaudhry, .*pycil, got 'best'",
        ),
        (lambda: metrics.backward_transfer(R, ORDER, "first"), r"convention must be one of gem, diaz, .*, got 'first'"),
        (lambda: metrics.forward_transfer(R, ORDER), r"needs baseline="),
        (lambda: metrics.forward_transfer(R, ORDER, baseline=[0.1]), r"one value for each of 3 tasks, got \(1,\)"),
        (lambda: metrics.forgetting(R, [0, 1]), r"R has 3 rows, but the order has 2 tasks"),
        (lambda: metrics.forgetting(R, [0, 1, 3]), r"order\[2\] is 3, but"),
        (lambda: metrics.forgetting(R, [0, 1, 1.5]), r"sequence of whole numbers, got float64"),
        (lambda: metrics.forgetting([0.1, 0.2], [0, 1]), r"matrix of steps x tasks, got shape \(2,\)"),
        (lambda: metrics.forgetting(np.empty((0, 2)), []), r"matrix of steps x tasks, got shape \(0, 2\)"),
    ],
)
def test_bad_tables_are_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_a_loss_matrix_has_rows_and_columns():
    with pytest.raises(InvalidInputError, match=r"one row per step and one column per task, got \(2,\)"):
        fg.metrics.paper_forgetting([0], [1.0, 2.0])


def test_tasks_not_yet_visited_may_be_unknown():
    found = fg.metrics.paper_forgetting([0, 1], [[0.0, np.nan], [0.5, 0.0]])
    np.testing.assert_array_equal(found, [0.0, 0.25])
