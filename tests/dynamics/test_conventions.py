"""The formulas of libraries and papers for matrices of accuracies, against loops written after their definitions."""

import warnings

import numpy as np
import pytest

import forgetting as fg
from forgetting import metrics
from forgetting.errors import DataWarning, InvalidInputError

nan = np.nan


# ------------------------------------------------------ each definition as its source states it, with a loop of its own


def gem(R, b, _):  # Lopez-Paz and Ranzato 2017, equations 2 to 4
    T = len(R)
    return {
        "ACC": sum(R[T - 1][i] for i in range(T)) / T,
        "BWT": sum(R[T - 1][i] - R[i][i] for i in range(T - 1)) / (T - 1),
        "FWT": sum(R[i - 1][i] - b[i] for i in range(1, T)) / (T - 1),
    }


def gem_code(R, b, _):  # the published code takes means over vectors of T entries
    T = len(R)
    backward, forward = [R[T - 1][t] - R[t][t] for t in range(T)], [0.0] + [R[t - 1][t] - b[t] for t in range(1, T)]
    return {"Backward": sum(backward) / T, "Forward": sum(forward) / T}


def chaudhry(R, *_):  # Chaudhry et al. 2018, equation 3: the maximum is over all earlier rows
    T = len(R)
    return {"F_T": sum(max(R[i][j] for i in range(T - 1)) - R[T - 1][j] for j in range(T - 1)) / (T - 1)}


def diaz(R, *_):  # Diaz-Rodriguez et al. 2018: sums over triangles
    T, half = len(R), len(R) * (len(R) - 1) / 2
    return {
        "A": sum(R[i][j] for i in range(T) for j in range(i + 1)) / (T * (T + 1) / 2),
        "BWT": sum(R[i][j] - R[j][j] for i in range(1, T) for j in range(i)) / half,
        "FWT": sum(R[i][j] for j in range(T) for i in range(j)) / half,
    }


def avalanche(R, b, _):  # a dictionary of first values and one of last values, as the plugins fill them
    first, last, ahead = {}, {}, {}
    for step, row in enumerate(R):
        last = {}
        for task, value in enumerate(row):
            (first if task == step else last)[task] = value
            if task == step + 1:
                ahead[task] = value
    lost = [first[task] - last[task] for task in first if task in last]
    return {
        "StreamForgetting": sum(lost) / len(lost),
        "StreamBWT": -sum(lost) / len(lost),
        "StreamForwardTransfer": sum(ahead[task] - b[task] for task in ahead) / len(ahead),
    }


def mammoth(R, b, _):
    T = len(R)
    highest = [max(row[task] for row in R) for task in range(T)]
    return {
        "accmean_task of the last task": sum(R[-1]) / T,
        "backward_transfer": sum(R[-1][i] - R[i][i] for i in range(T - 1)) / (T - 1),
        "forward_transfer": sum(R[i - 1][i] - b[i] for i in range(1, T)) / (T - 1),
        "forgetting": sum(highest[i] - R[-1][i] for i in range(T - 1)) / (T - 1),
    }


def pycil(R, _, n):  # a table of zeros that is filled up to the diagonal, and turned
    T = len(R)
    table = [[R[step][task] if task <= step else 0.0 for step in range(T)] for task in range(T)]
    curve = [sum(n[j] * R[i][j] for j in range(i + 1)) / sum(n[: i + 1]) for i in range(T)]
    return {
        "Average Accuracy": sum(curve) / T,
        "Forgetting": sum(max(table[task]) - table[task][T - 1] for task in range(T - 1)) / (T - 1),
    }


def continuum(R, _, n):
    T = len(R)
    bwt = diaz(R)["BWT"]
    best = [max(R[i][j] for i in range(j, T - 1)) for j in range(T - 1)]
    return {
        "average_incremental_accuracy": pycil(R, None, n)["Average Accuracy"],
        "accuracy_A": diaz(R)["A"],
        "backward_transfer": bwt,
        "positive_backward_transfer": bwt if bwt > 0 else 0.0,
        "remembering": 1 - abs(bwt) if bwt < 0 else 1.0,
        "forward_transfer": sum(R[i - 1][i] for i in range(1, T)) / (T - 1),
        "forgetting": sum(best[j] - R[T - 1][j] for j in range(T - 1)) / (T - 1),
    }


def continuum_127(R, *_):  # the release, whose loops end one early and whose forward transfer looks below the diagonal
    T, half = len(R), len(R) * (len(R) - 1) / 2
    return {
        "backward_transfer": sum(R[i][j] - R[j][j] for i in range(1, T) for j in range(i - 1)) / half,
        "forward_transfer": sum(R[i][j] for i in range(T) for j in range(i)) / half,
        "forgetting": sum(max(R[i][j] for i in range(j, T - 2)) - R[T - 1][j] for j in range(T - 2)) / (T - 1),
    }


SOURCES = {
    "Lopez-Paz": gem,
    "GEM's": gem_code,
    "Chaudhry": chaudhry,
    "Diaz-Rodriguez": diaz,
    "Avalanche": avalanche,
    "Mammoth": mammoth,
    "PyCIL": pycil,
    "Continuum 43ba009": continuum,
    "Continuum 1.2.7": continuum_127,
}


def by_definition(row, R, b, n):
    (source,) = (formulas for name, formulas in SOURCES.items() if row.library.startswith(name))
    return source(R, b, n)[row.theirs]


@pytest.mark.filterwarnings("ignore:R.* rows seem to be")  # random numbers may look like anything
@pytest.mark.parametrize("T", [2, 3, 4, 7])
def test_each_convention_is_the_definition_of_its_source(T):
    rng = np.random.default_rng(T)
    for _ in range(20):
        R, n = rng.random((T + 1, T)), rng.integers(10, 90, T).tolist()
        for row in metrics.conventions(R, weights=n).rows:
            assert row.value == pytest.approx(by_definition(row, R[1:].tolist(), R[0].tolist(), n), abs=1e-13), row


def test_conventions_know_any_order_of_the_tasks():
    rng = np.random.default_rng(0)
    R, order = rng.random((6, 5)), [3, 0, 4, 1, 2]
    n = rng.integers(10, 90, 5)
    turned = metrics.conventions(R[:, np.argsort(order)], order, before=True, weights=n[np.argsort(order)])
    assert [row.value for row in turned.rows] == pytest.approx(
        [r.value for r in metrics.conventions(R, weights=n).rows]
    )


def test_what_was_not_evaluated_before_learning_is_no_accuracy_of_zero():
    R = np.where(np.tri(4) > 0, np.random.default_rng(0).random((4, 4)), nan)
    rows = {(row.library.split()[0], row.theirs): row.value for row in metrics.conventions(R).rows}
    assert rows["Mammoth", "forgetting"] == pytest.approx(rows["PyCIL", "Forgetting"])
    assert rows["Mammoth", "forward_transfer"] is None


def test_a_number_that_needs_what_was_not_evaluated_has_no_value():
    R = np.random.default_rng(0).random((4, 4))
    full = metrics.conventions(R, [0, 1, 2, 3]).rows
    R[2, 0] = nan  # in the middle: the last row, and the row of each task's own learning, are there
    some = metrics.conventions(R, [0, 1, 2, 3]).rows
    for before, after in zip(full, some, strict=True):
        needed = before.quantity == "average_incremental" or before.word in ("diaz", "continuum", "continuum_1.2.7")
        needed = (needed and before.quantity != "forward_transfer") or before.word == "continuum_1.2.7"
        if not needed and before.quantity != "forgetting":  # a maximum need not be there
            assert after.value == before.value, before
    assert {row.theirs for row in some if row.value is None} >= {"A", "accuracy_A", "Average Accuracy"}
    R[3, 1] = nan
    last = metrics.conventions(R, [0, 1, 2, 3]).rows
    assert not any(row.value for row in last if row.word in ("gem", "avalanche") and row.quantity != "forward_transfer")


def test_the_table_of_conventions_differs_where_libraries_do():
    R = [[0.5, 0.9, 0.1], [0.7, 0.8, 0.3], [0.6, 0.6, 0.95]]
    lost = {row.library.split()[0]: row.value for row in metrics.conventions(R).rows if row.quantity == "forgetting"}
    # right after learning: 0.5 and 0.8; best since then: 0.7 and 0.8; best of all rows: 0.7 and 0.9; last: 0.6 and 0.6
    expected = {"Chaudhry": 0.2, "Avalanche": 0.05, "Mammoth": 0.2, "PyCIL": 0.15}
    assert {name: lost[name] for name in expected} == pytest.approx(expected)
    assert "value" in repr(metrics.conventions(R))
    assert "value" not in repr(metrics.conventions()).replace("values", "")


# ------------------------------------------------------------------------------------------------------------- defaults


def test_a_matrix_needs_no_order_and_may_have_the_row_before_learning():
    rng = np.random.default_rng(0)
    R = rng.random((5, 4))
    order, calls = [0, 1, 2, 3], (
        metrics.average_accuracy, metrics.average_incremental, metrics.forgetting, metrics.backward_transfer,
    )  # fmt: skip
    for call in calls:
        expected = call(R[1:], order)
        for given in (call(R[1:]), call(R), call(R, before=True), call(R, order, before=True)):
            np.testing.assert_allclose(given, expected, atol=1e-15)
    expected = metrics.forward_transfer(R[1:], order, baseline=R[0])
    assert metrics.forward_transfer(R) == metrics.forward_transfer(R, order, before=True) == pytest.approx(expected)


def test_the_matrix_of_a_run_has_the_row_before_learning():
    tasks = fg.load({"X": np.eye(4), "y": ["a", "b", "a", "b"], "task": [0, 0, 1, 1]}, classes="all")
    accuracy = fg.run(tasks, "cyclic", k=2).accuracy
    assert accuracy.shape == (3, 2)
    assert metrics.average_incremental(accuracy) == pytest.approx(metrics.average_incremental(accuracy[1:], [0, 1]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.backward_transfer([[0.9, 0.1], [0.6, nan]]), r"task 1 was not evaluated in row 1.*R\[1, 1\]"),
        (lambda: metrics.forgetting([[0.5, 0.5], [nan, 0.1], [0.6, 0.7]]), r"task 0 was not evaluated in row 0"),
        (lambda: metrics.forgetting(np.ones((2, 3))), r"R has 2 rows and 3 columns \(tasks x steps\? then transpose"),
        (lambda: metrics.forgetting(np.ones((5, 3))), r"needs a row after each task, 3, and may have one from before"),
        (lambda: metrics.forgetting(np.ones((3, 2)), [0, 1]), r"3 rows, but the order has 2 tasks.*before=True"),
        (lambda: metrics.forgetting(np.ones((2, 2)), before="yes"), r"before must be True or False"),
        (lambda: metrics.forward_transfer(np.ones((3, 2)), baseline=[0, 0]), r"row before learning, which is the base"),
        (lambda: metrics.forward_transfer(np.ones((2, 2))), r"needs baseline=, .* or the row before learning"),
        (lambda: metrics.forgetting(np.ones((3, 2)), [0, 1, 0], "pycil"), r"task 0 is learned in rows 0 and 2; use"),
        (lambda: metrics.forgetting(np.ones((2, 2)), convention=["first"]), r"convention must be one of"),
        (lambda: metrics.average_incremental(np.ones((2, 2)), weights=[1, 0]), r"weights: expected a positive number"),
    ],
)
def test_matrices_that_contradict_what_is_said_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_a_matrix_of_tasks_by_steps_is_noticed_and_entries_before_learning_are_not():
    R = np.array([[0.9, nan, nan], [0.5, 0.8, nan], [0.4, 0.6, 0.7]])
    with pytest.warns(DataWarning, match="as if rows were tasks and columns steps.*give the transpose") as caught:
        metrics.backward_transfer(R.T)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.backward_transfer(R) == pytest.approx(-0.35)
        metrics.backward_transfer([[0.9, 0.1, 0.2], [0.5, 0.8, nan], [0.4, 0.6, 0.7]])


def test_rows_that_are_shifted_by_one_are_noticed_without_an_order_and_losses_are_not():
    steps, tasks = np.arange(6)[:, None], np.arange(5)
    full = np.where(steps > tasks, 0.9 - 0.1 * (steps - tasks - 1), 0.1)  # the row before learning, and five others
    for shifted in (full[:-1], np.vstack([full[1:], full[:1]])):
        for call in (metrics.backward_transfer, metrics.forgetting, metrics.average_incremental, metrics.conventions):
            with pytest.warns(DataWarning, match="rows seem to be shifted by one") as caught:
                call(shifted)
            assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics.backward_transfer(full)
        metrics.backward_transfer(full[:-1], [0, 1, 2, 3, 4])  # the order is given
        tasks = fg.families.gaussian(6, 8, 2, seed=0)
        for seed in range(20):
            losses = fg.run(
                tasks, fg.orderings.Explicit(range(6)), 6, w0=np.random.default_rng(seed).standard_normal(8)
            )
            metrics.forgetting(losses.loss_matrix, higher_is_better=False)
            metrics.backward_transfer(losses.loss_matrix[1:])
        step, task = np.indices((5, 5))
        metrics.forgetting(np.where(step < task, 1.0, np.where(step == task, 0.0, 0.6)), higher_is_better=False)
        metrics.backward_transfer(np.triu(np.ones((4, 4)), 1))  # losses of tasks that do not disturb each other
