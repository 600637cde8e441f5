"""Matrices of accuracies: what is accepted, the logs of libraries, damaged files, and signs of another convention."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg
from effort import rounds
from forgetting.errors import InvalidInputError, ProblemFileError

nan = np.nan
LOGS = Path(__file__).parent / "accuracy_logs"
R = np.array([[0.9, 0.1, 0.2], [0.7, 0.8, 0.1], [0.6, 0.7, 0.9]])
LOWER = np.where(np.tri(3) > 0, R, nan)


def same(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (R, R[None]),
        (R.tolist(), R[None]),
        ([R, R], np.stack([R, R])),
        ([[0.9], [0.7, 0.8], [0.6, 0.7, 0.9]], LOWER[None]),
        ([[0.9, None], [0.7, 0.8]], [[[0.9, nan], [0.7, 0.8]]]),
        ([[[0.9], [0.7, 0.8]], [[0.5], [0.4, 0.3]]], [[[0.9, nan], [0.7, 0.8]], [[0.5, nan], [0.4, 0.3]]]),
        (100 * R.astype(np.float32), (100 * R.astype(np.float32)).astype(float)[None]),
    ],
)
def test_one_or_many_runs_and_rows_of_different_lengths(given, values):
    same(fg.AccuracyMatrices(given).values, values)


class Frame:
    """What a matrix needs of a DataFrame."""

    def __init__(self, columns):
        self.columns = list(columns)

    def __array__(self, dtype=None, copy=None):
        return R


def test_columns_of_a_frame_are_the_names_of_the_tasks():
    assert fg.AccuracyMatrices(Frame("abc")).names == ("a", "b", "c")
    assert fg.AccuracyMatrices([Frame("abc"), Frame("abc")]).names == ("a", "b", "c")
    assert fg.AccuracyMatrices(Frame("abc"), names=["x", "y", "z"]).names == ("x", "y", "z")


def test_one_row_more_than_tasks_is_from_before_learning():
    start = np.array([0.3, 0.4, 0.2])
    found = fg.AccuracyMatrices(np.vstack([start, R]))
    same(found.before, start[None])
    assert "before learning" in found.notes[0]
    for other in (
        fg.AccuracyMatrices(R, before=start),
        fg.AccuracyMatrices(np.vstack([start, R]), [0, 1, 2], before=True),
        fg.AccuracyMatrices([np.vstack([start, R])] * 2, before=True),
    ):
        same(other.values[0], R)
        same(other.before[0], start)
    assert fg.AccuracyMatrices(R, before=False).before is None


def test_orders_name_tasks_and_unequal_orders_have_unequal_names():
    found = fg.AccuracyMatrices(np.full((2, 2, 3), 0.5), [["c", "a"], [0, 2]], names=["a", "b", "c"])
    assert found.orders.tolist() == [[2, 0], [0, 2]]
    assert len(set(found.order_names)) == 2
    assert len(set(fg.AccuracyMatrices([R, R]).order_names)) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fg.AccuracyMatrices([[0.9, 0.1], [0.7, nan]]), r"task 1 was not evaluated in row 1"),
        (lambda: fg.AccuracyMatrices(R, names=["a", "b"]), r"names: 2 names for 3 tasks"),
        (lambda: fg.AccuracyMatrices(R, names=["a", "b", "a"]), r"two tasks are called 'a'"),
        (lambda: fg.AccuracyMatrices(R[:2]), r"2 rows after learning for 3 steps.*give the transpose"),
        (lambda: fg.AccuracyMatrices(R - 0.5), r"run 0, row 0, task 1: -0.4 is no accuracy"),
        (lambda: fg.AccuracyMatrices(1000 * R), r"run 0, row 0, task 0: 900 is no accuracy"),
        (lambda: fg.AccuracyMatrices(R, [0, 1, 3]), r"run 0 learns task 3 in step 2; tasks are 0 to 2"),
        (lambda: fg.AccuracyMatrices(R, [[0, 1, 2], [0, 1, 2]]), r"2 orders for 1 runs"),
        (lambda: fg.AccuracyMatrices(R, [-1, -1, -1]), r"no step learned a task"),
        (lambda: fg.AccuracyMatrices([[0.9], [0.8], [0.7, 0.6, 0.5]]), r"row 1 has 1 entries"),
        (lambda: fg.AccuracyMatrices([0.9, 0.8]), r"expected steps x tasks"),
        (lambda: fg.AccuracyMatrices([[[0.9]], [[0.5], [0.4, 0.3]]]), r"runs have 1 x 1 and 2 x 2"),
        (lambda: fg.AccuracyMatrices(R, before=[0.1]), r"before: expected shape \(1, 3\)"),
        (lambda: fg.AccuracyMatrices([R, R], order_names=["a"]), r"order_names: 1 for 2 runs"),
        (
            lambda: fg.AccuracyMatrices([Frame("abc"), Frame("bac")]),
            r"columns a, b, c and b, a, c; give all runs the same",
        ),
        (
            lambda: fg.AccuracyMatrices.from_predictions([[1]], [[1]], [["cats"]]),
            r"step 0: expected the number of a task",
        ),
    ],
)
def test_what_is_no_matrix_of_accuracies_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


@pytest.mark.parametrize(("orders", "before"), [(None, None), ([[2, 0, 1], [0, 1, 2]], [0.1, 0.2, 0.3])])
def test_a_file_of_matrices_comes_back(tmp_path, orders, before):
    found = fg.AccuracyMatrices([R, R], orders, before, ("a", "b", "c"), ("x", "y"), notes=("by hand",))
    found.save(tmp_path / "R.npz")
    again = fg.AccuracyMatrices.load(tmp_path / "R.npz")
    same(again.values, found.values)
    for name in ("orders", "before"):
        own, other = getattr(found, name), getattr(again, name)
        assert (own is None and other is None) or np.array_equal(own, other)
    for name in ("names", "runs", "order_names", "notes"):
        assert getattr(again, name) == getattr(found, name)


# --------------------------------------------------------------------------------------------------------------- logs


def test_all_logs_of_one_run_of_avalanche_are_one_matrix_with_the_row_before_learning():
    exact = fg.AccuracyMatrices.load(LOGS / "avalanche_all_metrics.json")
    assert exact.values.shape == (1, 5, 5)
    assert exact.values[0, 1, 1] == 0.675
    for name, digits in (("eval.json", 12), ("text.log", 4), ("eval_results.csv", 4)):
        found = fg.AccuracyMatrices.load(LOGS / f"avalanche_{name}")
        np.testing.assert_allclose(found.values, exact.values, atol=0.6 * 10.0**-digits)
        np.testing.assert_allclose(found.before, exact.before, atol=0.6 * 10.0**-digits)
        assert found.doubts == ()


def test_what_avalanche_evaluates_within_training_or_twice_is_no_row(tmp_path):
    exact = fg.AccuracyMatrices.load(LOGS / "avalanche_text.log")
    text = (LOGS / "avalanche_text.log").read_text()
    inner = "\tTop1_Acc_Exp/eval_phase/test_stream/Task000/Exp009 = 0.1234\n-- >> End of training phase << --"
    (tmp_path / "inner.log").write_text(text.replace("-- >> End of training phase << --", inner))
    same(fg.AccuracyMatrices.load(tmp_path / "inner.log").values, exact.values)
    (tmp_path / "twice.log").write_text(text + text.rpartition("-- >> Start of eval phase << --")[2])
    found = fg.AccuracyMatrices.load(tmp_path / "twice.log")
    same(found.values, exact.values)
    assert any("come twice" in note for note in found.notes)


def test_metrics_of_the_matrix_are_those_that_avalanche_logged():
    found = fg.AccuracyMatrices.load(LOGS / "avalanche_all_metrics.json")
    logged = json.loads((LOGS / "avalanche_all_metrics.json").read_text())
    table = fg.metrics.conventions(np.vstack([found.before, found.values[0]]))
    for row in table.rows:
        if row.library.startswith("Avalanche"):
            assert row.value == pytest.approx(logged[f"{row.theirs}/eval_phase/test_stream"][1][-1], abs=1e-12)


def test_lines_of_mammoth_are_runs_and_give_the_metrics_of_the_line():
    path = LOGS / "mammoth_logs_pyd.txt"
    found = fg.AccuracyMatrices.load(path)
    assert found.values.shape == (3, 5, 5)
    assert found.unit == "per cent"
    assert [name.rpartition(", ")[2] for name in found.runs] == ["seed 0", "seed 1", "seed 2"]
    assert len(set(found.order_names)) == 3  # classes permuted by the seed
    for values, line in zip(found.values, path.read_text().splitlines(), strict=True):
        for name, of in (("backward_transfer", 1), ("forgetting", 1)):
            logged = float(re.search(rf"'{name}': np.float64\(([-\d.]+)", line)[1])
            own = getattr(fg.metrics, name)(values, convention="mammoth")
            assert of * np.nanmean(own) == pytest.approx(logged, abs=1e-9)


def test_mammoth_rows_of_epochs_and_of_tasks_to_come_find_their_step(tmp_path):
    rows = [[60], [90], [50, 40], [70, 95]]  # eval_epochs: two evaluations of each task
    several = {f"accuracy_{j + 1}_task{i + 1}": v for i, row in enumerate(rows) for j, v in enumerate(row)}
    (tmp_path / "logs.pyd").write_text(f"{ {'seed': None, **several} }\n")
    found = fg.AccuracyMatrices.load(tmp_path / "logs.pyd")
    same(found.values[0], [[90, nan], [70, 95]])
    assert any("the last one is used" in note for note in found.notes)
    rows = [[90], [10, 20], [50, 80], [30], [40, 60, 70]]  # eval_future: rows of the tasks to come between the others
    future = {f"accuracy_{j + 1}_task{i + 1}": v for i, row in enumerate(rows) for j, v in enumerate(row)}
    (tmp_path / "future.pyd").write_text(f"{ {'eval_future': True, **future} }\n")
    same(fg.AccuracyMatrices.load(tmp_path / "future.pyd").values[0], [[90, 10, 20], [50, 80, 30], [40, 60, 70]])


def test_a_log_of_pycil_has_all_seeds_and_the_order_of_the_classes():
    found = fg.AccuracyMatrices.load(LOGS / "pycil.log")
    assert found.values.shape == (2, 5, 5)
    assert found.runs[1].endswith("seed 1994")
    assert found.order_names[0] != found.order_names[1]
    same(found.values[0, -1], [42, 48, 57, 75, 95])
    logged = [
        float(value) for value in re.findall(r"=> Forgetting \(CNN\): ([\d.]+)", (LOGS / "pycil.log").read_text())
    ]
    own = [np.nanmean(fg.metrics.forgetting(values, convention="pycil")) for values in found.values]
    same(own, logged)
    final = re.findall(r"Average Accuracy \(CNN\): ([\d.]+)", (LOGS / "pycil.log").read_text())[4::5]
    own = [fg.metrics.average_incremental(values) for values in found.values]
    np.testing.assert_allclose(own, [float(value) for value in final], atol=0.005)  # PyCIL rounds to two digits first


def test_what_pycil_prints_has_tasks_as_rows_and_is_turned():
    printed, logged = (fg.AccuracyMatrices.load(LOGS / name) for name in ("pycil_printed.txt", "pycil.log"))
    same(printed.values, logged.values)
    assert "turned" in printed.notes[0]


def test_pilot_has_two_classifiers_and_a_large_first_task():
    cnn, nme = (fg.AccuracyMatrices.load(LOGS / "pilot_nme.log", classifier=name) for name in ("CNN", "NME"))
    same(cnn.values[0], [[95.5, nan, nan, nan], [72.5, 95, nan, nan], [55, 75, 94, nan], [39.5, 65, 72, 94]])
    assert (nme.values[:, -1] > cnn.values[:, -1]).any()
    # PyCIL has groups of two classes, of which the first task has two
    large = fg.AccuracyMatrices.load(LOGS / "pycil_large_first_task.log")
    same(large.values[0], cnn.values[0])
    assert "2 groups of classes" in large.notes[1]


def test_classes_beyond_a_hundred_are_sorted_as_numbers(tmp_path):
    lines = []
    for step in range(12):
        groups = {f"{10 * task:02d}-{10 * task + 9:02d}": 90.0 - step + task for task in range(step + 1)}
        lines.append(f"CNN: { {'total': 50.0, **dict(sorted(groups.items())), 'old': 0, 'new': 1.0} }")
    (tmp_path / "large.log").write_text("\n".join(lines))
    found = fg.AccuracyMatrices.load(tmp_path / "large.log")
    same(found.values[0, -1], 90.0 - 11 + np.arange(12))


def test_a_logger_of_continuum_is_read_and_its_pickle_is_not(tmp_path):
    rng = np.random.default_rng(0)
    tasks = np.repeat([0, 1, 2], 10)
    epochs = [{"predictions": rng.integers(0, 2, 30), "targets": np.ones(30, int), "task_ids": tasks} for _ in range(3)]
    empty = {"predictions": np.zeros(0), "targets": np.zeros(0), "task_ids": np.zeros(0)}
    performance = [[empty, epoch] for epoch in epochs] + [[empty]]  # the last epoch counts, and nothing after the end
    found = fg.AccuracyMatrices.from_continuum({"test": {"performance": performance}})
    same(found.values[0], [[epoch["predictions"][tasks == t].mean() for t in range(3)] for epoch in epochs])
    with pytest.raises(InvalidInputError, match="Logger of Continuum with the subset 'train'"):
        fg.AccuracyMatrices.from_continuum({"test": {"performance": performance}}, "train")
    (tmp_path / "logger_dic_task_2.pkl").write_bytes(b"\x80\x04N.")
    with pytest.raises(ProblemFileError, match=r"never loaded.*from_continuum"):
        fg.AccuracyMatrices.load(tmp_path / "logger_dic_task_2.pkl")


# -------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize(
    "text",
    [
        "0.9,0.1,0.2\n0.7,0.8,0.1\n0.6,0.7,0.9\n",
        "cats;dogs;owls\n0.9;0.1;0.2\n0.7;0.8;0.1\n0.6;0.7;0.9\n",
        ",cats,dogs,owls\nfirst,0.9,0.1,0.2\nsecond,0.7,0.8,0.1\nthird,0.6,0.7,0.9\n",
        "step,task,accuracy\n"
        + "".join(f"{i + 1},{name},{R[i, j]}\n" for i in range(3) for j, name in enumerate(["cats", "dogs", "owls"])),
        "[[0.9, 0.1, 0.2], [0.7, 0.8, 0.1], [0.6, 0.7, 0.9]]",
    ],
)
def test_tables_of_numbers_are_read(tmp_path, text):
    (tmp_path / "R.txt").write_text(text)
    found = fg.AccuracyMatrices.load(tmp_path / "R.txt")
    same(found.values[0], R)
    assert found.names == (("cats", "dogs", "owls") if "cats" in text else ("0", "1", "2"))


def test_long_tables_have_runs_orders_and_the_row_before_learning(tmp_path):
    rows = ["run,step,task,learned,accuracy"]
    for run, order in (("s1", [0, 1, 2]), ("s2", [2, 0, 1])):
        rows += [f"{run},before,t{task},,0.25" for task in range(3)]
        rows += [f"{run},{i},t{task},t{order[i]},{R[i, task]}" for i in range(3) for task in range(3)]
    (tmp_path / "long.csv").write_text("\n".join(rows))
    found = fg.AccuracyMatrices.load(tmp_path / "long.csv")
    assert found.orders.tolist() == [[0, 1, 2], [2, 0, 1]]
    assert found.names == ("t0", "t1", "t2")
    same(found.before, np.full((2, 3), 0.25))
    same(found.values, [R, R])


def test_empty_cells_and_short_rows_are_not_evaluated(tmp_path):
    for text in ("0.9,,\n0.7,0.8,\n0.6,0.7,0.9\n", "0.9,nan\n0.7,0.8,\n0.6,0.7,0.9\n"):
        (tmp_path / "R.csv").write_text(text)
        same(fg.AccuracyMatrices.load(tmp_path / "R.csv").values[0], LOWER)


def test_arrays_of_npz_and_npy_files_are_read_by_name(tmp_path):
    np.savez(tmp_path / "a.npz", R=[R, R], orders=[[1, 0, 2]], names=["a", "b", "c"])
    found = fg.AccuracyMatrices.load(tmp_path / "a.npz")
    assert found.orders.tolist() == [[1, 0, 2]] * 2
    np.save(tmp_path / "b.npy", R)
    same(fg.AccuracyMatrices.load([tmp_path / "b.npy", tmp_path / "b.npy"]).values, [R, R])
    np.savez(tmp_path / "c.npz", R=R, other=R)
    with pytest.raises(ProblemFileError, match="unknown array 'other'"):
        fg.AccuracyMatrices.load(tmp_path / "c.npz")
    np.savez(tmp_path / "d.npz", X=R, y=R)
    with pytest.raises(ProblemFileError, match="holds X, y; call the array of accuracies"):
        fg.AccuracyMatrices.load(tmp_path / "d.npz")


# -------------------------------------------------------------------------------------------------------------- damage

DAMAGED = {
    "a word in a matrix": ("0.9,0.1\n0.7,O.8\n", r"line 2, column 1: 'O.8' where an accuracy"),
    "a row too short": ("0.9,0.1,0.2\n0.7\n0.6,0.7,0.9\n", r"task 1 was not evaluated in row 1"),
    "a word in a long table": ("step,task,accuracy\n0,a,high\n", r"line 2, accuracy: 'high' where"),
    "a step in words": ("step,task,accuracy\nlast,a,0.5\n", r"line 2, step: 'last' where a number"),
    "an entry twice": ("step,task,accuracy\n0,a,0.5\n0,a,0.6\n", r"line 3: step 0 and task 'a' come twice"),
    "an unknown column": ("step,task,accuracy,loss\n0,a,0.5,1\n", r"an unknown column 'loss'"),
    "two learned tasks": ("step,task,learned,accuracy\n0,a,a,0.5\n0,b,b,0.6\n", r"step 0 has learned two tasks"),
    "Avalanche without a value": (
        "-- Starting training on experience 0\n\tTop1_Acc_Exp/eval_phase/test_stream/Task000/Exp000 = oops\n",
        r"line 2: 'oops' where an accuracy was expected",
    ),
    "Avalanche CSV cut": ("eval_exp,training_exp,eval_accuracy,eval_loss,forgetting\n0,0,0.5\n", r"line 2: 3 cells"),
    "Avalanche CSV of two streams": (
        "eval_exp,training_exp,eval_accuracy,eval_loss,forgetting\n0,0,0.5,1.0,0\n0,0,0.6,1.0,0\n",
        r"line 3: experience 0 is evaluated twice after experience 0",
    ),
    "Avalanche CSV without accuracies": (
        "eval_exp,training_exp,eval_accuracy,eval_loss,forgetting\n0,0,0,0.1,0\n",
        r"no accuracy was monitored",
    ),
    "one evaluation of Avalanche": (
        '{"Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp000": 0.5}',
        r"0.5 is one evaluation; save the list",
    ),
    "JSON that ends": ('[{"Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp000": 0.5}', r"not JSON"),
    "Mammoth without tasks": ("{'seed': 0, 'accmean_task1': 80.0}\n", r"line 1: no 'accuracy_1_task1'; Mammoth logs"),
    "Mammoth with a hole": (
        "{'accuracy_1_task1': 9, 'accuracy_2_task2': 8}\n",
        r"evaluation 2 has the tasks 2, not 1 to",
    ),
    "Mammoth with a word": ("{'accuracy_1_task1': nothing}\n", r"line 1, accuracy_1_task1: 'nothing' where"),
    "PyCIL cut": ("a => CNN: {'total': 88.0, '00-01': 88.0, 'ol", r"line 1: .* has no accuracies of groups"),
    "PyCIL with a lost line": (
        "CNN: {'00-01': 88.0}\nCNN: {'00-01': 8.0, '02-03': 8.0, '04-05': 80.0}\n",
        r"line 2: 3 groups of classes after 1",
    ),
    "PyCIL with an endless number": (f"CNN: {{'0-{'9' * 5000}': 88.0}}\n", r"line 1: .* has no accuracies of groups"),
    "PyCIL, shortened": ("Accuracy Matrix (CNN):\n[[90. ... 10.]\n [ 0. ... 5.]]\n", r"line 2: NumPy left out entries"),
    "numbers without end": (
        "{'accuracy_1_task999999999': 50.0}\n",
        r"line 1: no accuracy of evaluation 1, but one of 999999999",
    ),
    "words": ("nothing to see here\n", r"no accuracies found"),
    "an infinite accuracy": ("0.9,0.1\n0.7,inf\n", r"line 2, column 1: the accuracy is inf"),
}


@pytest.mark.parametrize(("text", "message"), DAMAGED.values(), ids=DAMAGED)
def test_damaged_files_say_where_and_what(tmp_path, text, message):
    (tmp_path / "damaged.log").write_text(text)
    with pytest.raises(ProblemFileError, match=rf"damaged\.log: .*{message}|damaged\.log: {message}"):
        fg.AccuracyMatrices.load(tmp_path / "damaged.log")


def test_any_damage_is_an_error_of_this_library_or_none(tmp_path):
    rng = np.random.default_rng(0)
    for source in sorted(LOGS.glob("*")):
        if source.suffix == ".md":
            continue
        content = source.read_bytes()
        for _ in range(rounds(6, 200)):
            place = int(rng.integers(len(content)))
            cut = content[:place] + bytes(rng.integers(32, 127, 3).tolist()) + content[place + int(rng.integers(20)) :]
            (tmp_path / source.name).write_bytes(cut)
            words = source.name
            try:
                fg.AccuracyMatrices.load(tmp_path / source.name)
            except ProblemFileError as error:
                words = str(error)
            assert source.name in words


def test_an_evaluation_without_a_task_is_a_hole(tmp_path):
    evaluated = ((0,), (0, 1), (1, 2), (0, 1, 2, 3))
    key = "Top1_Acc_Exp/eval_phase/test_stream/Task000/Exp00"
    (tmp_path / "eval.json").write_text(json.dumps([{f"{key}{task}": 0.5 for task in row} for row in evaluated]))
    found = fg.AccuracyMatrices.load(tmp_path / "eval.json").values[0]
    assert [tuple(np.flatnonzero(~np.isnan(row)).tolist()) for row in found] == list(evaluated)


def test_an_unknown_stream_is_named():
    with pytest.raises(ProblemFileError, match="no accuracies on the stream 'valid'; there are test"):
        fg.AccuracyMatrices.load(LOGS / "avalanche_text.log", stream="valid")


# ----------------------------------------------------------------------------------------- signs of another convention


def networks(T, runs, seed, forget=0.3):
    """(runs, T + 1, T): tasks are at chance before they are learned, and forgotten by a share in each later step."""
    rng = np.random.default_rng(seed)
    rates = forget * rng.uniform(0.3, 1.7, (runs, T))
    found = np.full((runs, T + 1, T), 0.15)
    for row in range(1, T + 1):
        for task in range(row):
            found[:, row, task] = 0.15 + 0.75 * (1 - rates[:, task]) ** (row - 1 - task)
    return np.clip(found + 0.02 * rng.standard_normal(found.shape), 0.01, 1.0)


def kinds(values, **options):
    return [doubt.kind for doubt in fg.AccuracyMatrices(values, **options).doubts]


@pytest.mark.parametrize("T", [4, 5, 10])
@pytest.mark.parametrize("forget", [0.05, 0.2])
def test_planted_conventions_are_found(T, forget):
    for seed in range(rounds(5, 100)):
        full = networks(T, 1, seed, forget)
        after = full[:, 1:]
        ahead = np.tri(T, k=1) > 0
        shifted = np.concatenate([full[:, 2:], full[:, :1]], axis=1)
        order = np.roll(np.arange(T), 1 + seed % (T - 1))
        assert kinds(after) == []
        assert kinds(full[:, :-1]) == ["shifted"]  # row i before task i
        assert kinds(shifted, before=full[:, 1]) == ["shifted"]  # row i after task i + 1; the first row at the end
        assert kinds(np.where(ahead, np.concatenate([full[:, 2:], full[:, -1:]], axis=1), 0.0)) == ["shifted"]
        assert kinds(np.swapaxes(after, 1, 2)) == ["transposed"]
        assert kinds(np.swapaxes(np.where(np.tri(T) > 0, after, nan), 1, 2)) == ["transposed"]
        assert kinds(np.swapaxes(np.where(np.tri(T) > 0, after, 0.0), 1, 2)) == ["transposed"]
        assert kinds(np.concatenate([after, 100 * after])) == ["mixed units"]
        mixed = after.copy()
        mixed[:, 1] *= 100
        assert kinds(mixed) == ["mixed units"]
        by_task = after[:, :, np.argsort(order)]
        assert kinds(by_task, orders=order) == []
        if T > 5:  # the row and the reading of a few tasks may agree by chance
            assert kinds(after, orders=np.random.default_rng(seed).permutation(T)) != []


def test_rows_of_past_and_next_tasks_that_are_shifted_are_found():
    full = networks(6, 1, 0)
    after = np.where(np.tri(6, k=1) > 0, np.concatenate([full[:, 2:], full[:, -1:]], axis=1), nan)
    assert kinds(after) == ["shifted"]
    assert kinds(np.where(np.tri(6, k=1) > 0, full[:, 1:], nan)) == []


def test_matrices_of_simulated_networks_are_clean():
    for seed in range(rounds(40, 1000)):
        rng = np.random.default_rng(seed)
        T, runs = int(rng.integers(2, 12)), int(rng.integers(1, 4))
        full = networks(T, runs, seed, rng.choice([0.0, 0.05, 0.3, 0.55]))
        lower = np.where(np.tri(T) > 0, full[:, 1:], nan)
        for clean in (full, full[:, 1:], lower, 100 * lower, np.nan_to_num(lower)):
            assert kinds(clean) == [], (seed, clean)


def test_matrices_of_linear_runs_are_clean():
    rng = np.random.default_rng(0)
    for kind in ("split", "permuted", "rotated"):
        tasks = fg.datasets.digits(kind=kind, tasks=5, rows=20, seed=1)
        for _ in range(rounds(8, 100)):
            order = rng.permutation(5)
            accuracy = fg.run(tasks, fg.orderings.Explicit(order), 5).accuracy
            assert kinds(accuracy, orders=order, before=True) == []


def test_zeros_in_place_of_what_was_not_evaluated_show_a_transpose_even_if_much_is_forgotten():
    for seed in range(rounds(5, 100)):
        lower = np.where(np.tri(6) > 0, networks(6, 1, seed, 0.5)[:, 1:], 0.0)
        assert kinds(lower) == []
        assert kinds(np.swapaxes(lower, 1, 2)) == ["transposed"]
    diagonal = np.diag([0.9, 0.8, 0.7, 0.9])  # class-incremental learning that forgets all
    assert kinds(diagonal) == []


def test_a_sign_says_its_numbers_and_changes_nothing():
    full = networks(5, 1, 0)
    found = fg.AccuracyMatrices(full[:, :-1])
    assert re.search(
        r"rows seem to be shifted by one.*before task i was learned: tasks gain -?0\.0\d* on", str(found.doubts[0])
    )
    same(found.values, full[:, :-1])
    assert "shifted by one" in repr(found)
