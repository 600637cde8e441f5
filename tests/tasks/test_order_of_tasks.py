"""The order of tasks: that of the rows where they are sorted by task, else sorted, by one rule for all sources."""

import warnings
from datetime import date, datetime

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetting as fg
from forgetting.cli import run_app
from forgetting.errors import ChoiceWarning, DataWarning

SHUFFLES = [np.random.default_rng(seed).permutation(12) for seed in range(3)]
X = np.random.default_rng(7).standard_normal((12, 3))
Y = X @ [1.0, -2.0, 0.5]

#: the tasks in the order of the rows, and the order where rows are mixed (None: that of first appearance)
NAMES = {
    "numbers": ([10, 9, 2, 0], [0, 2, 9, 10]),
    "words of numbers": (["10", "9", "-2", "1e2"], ["-2", "9", "10", "1e2"]),
    "floats": ([2.5, -1.0, 10.0, 0.0], [-1.0, 0.0, 2.5, 10.0]),
    "long numbers": ([10**16 + 1, 10**16, 3, 2], [2, 3, 10**16, 10**16 + 1]),
    "numbered": (["task 10", "task 2", "task 1", "task 11"], ["task 1", "task 2", "task 10", "task 11"]),
    "numbered twice": (["a1_s10", "a1_s9", "a1_s07", "a1_s1"], ["a1_s1", "a1_s07", "a1_s9", "a1_s10"]),
    "dates": (["2024-02-01", "2023-12-31", "2024-01-31", "2024-01-01"],
              ["2023-12-31", "2024-01-01", "2024-01-31", "2024-02-01"]),
    "months": (["2024-10", "2024-09", "2023-12", "2024-01"], ["2023-12", "2024-01", "2024-09", "2024-10"]),
    "times": (["2024-01-01 10:00", "2024-01-01 09:30", "2023-01-01T23:00", "2024-01-02"],
              ["2023-01-01T23:00", "2024-01-01 09:30", "2024-01-01 10:00", "2024-01-02"]),
    "words": (["west", "north", "south", "east"], None),
    "other words before the number": (["b1", "a2", "b3", "a4"], None),
    "ranges": (["8-9", "0-1", "10-11", "2-3"], None),
    "a word among numbers": (["3", "2", "1", "rest"], None),
    "days first": (["31.01.2024", "1.2.2024", "02.01.2023", "3.01.2023"],
                   ["02.01.2023", "3.01.2023", "31.01.2024", "1.2.2024"]),
    "days in both ways": (["31.01.2024", "2024-01-30", "02.01.2023", "2023-01-03"],
                          ["02.01.2023", "2023-01-03", "2024-01-30", "31.01.2024"]),
    "slashes": (["3/15/2023", "1/2/2024", "2/1/2023", "12/31/2023"], None),
    "no days": (["31.02.2024", "01.02.2024", "02.01.2023", "03.01.2023"], None),
    "numbers in the manner of Python": (["1_5", "2_0", "1_0", "3_0"], None),
}  # fmt: skip


DATES = ("dates", "months", "times", "days first", "days in both ways")


def groups(ids):
    return [ids[i] for i in np.repeat(np.arange(4), 3)]


def stored(values, path):
    """Groups in an array that is not NumPy's."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["groups"] = values
    return h5py.File(path, "r")["groups"]


def parquet(owner, path):
    columns = {"task": owner, "y": Y, **{f"x{j}": X[:, j] for j in range(3)}}
    pq.write_table(pa.table(columns), path, row_group_size=5)
    return path


#: the names of the tasks that each source gives for the group of each row
SOURCES = {
    "load": lambda owner, _: fg.load((X, Y, owner)),
    "load, a frame": lambda owner, _: fg.load(pd.DataFrame({"task": owner, "x": X[:, 0], "y": Y})),
    "load, csv": lambda owner, path: fg.load(csv(owner, path / "rows.csv")),
    "load, two files": lambda owner, path: fg.load([csv(owner[:5], path / "a.csv"), csv(owner[5:], path / "b.csv", 5)]),
    "from_arrays": lambda owner, _: fg.RegressionTasks.from_arrays(X, Y, owner),
    "from_labels": lambda owner, _: fg.RegressionTasks.from_labels(X, list("abc") * 4, owner),
    "classification": lambda owner, _: fg.ClassificationTasks.from_arrays(X, np.sign(Y), owner),
    "kernel": lambda owner, _: fg.KernelTasks(X @ X.T, Y, owner),
    "from_source": lambda owner, _: fg.RegressionTasks.from_source(X, Y, owner),
    "from_source, parquet": lambda owner, path: fg.RegressionTasks.from_source(
        parquet(owner, path / "rows.parquet"), "y", "task", cache=False
    ),
}  # fmt: skip


def csv(owner, path, first=0):
    rows = [f"{task},{x},{y}" for task, x, y in zip(owner, X[first:, 0].tolist(), Y[first:].tolist(), strict=False)]
    path.write_text("\n".join(["task,x,y", *rows]))
    return path


@pytest.mark.parametrize("kind", NAMES)
def test_all_sources_have_the_same_order(kind, tmp_path):
    ids, in_order = NAMES[kind]
    owner = groups(ids)
    for source in SOURCES.values():
        tasks = source(owner, tmp_path)
        assert [float(name) if kind == "floats" else name for name in tasks.names] == [
            float(name) if kind == "floats" else str(name) for name in ids
        ]
        assert tasks.notes[-1].startswith("tasks are in the order of their rows: ")
        for shuffle in SHUFFLES:
            shuffled = [owner[row] for row in shuffle]
            expected = list(dict.fromkeys(shuffled)) if in_order is None else in_order
            tasks = source(shuffled, tmp_path)
            assert [float(name) if kind == "floats" else name for name in tasks.names] == [
                float(name) if kind == "floats" else str(name) for name in expected
            ]
            words = "in order of first appearance, since" if in_order is None else "sorted by "
            assert tasks.notes[-1].startswith(f"tasks are {words}")
            assert ("sorted by date" in tasks.notes[-1]) == (kind in DATES)
            assert "since their rows are mixed" in tasks.notes[-1]


@pytest.mark.parametrize("source", SOURCES)
def test_rows_go_with_their_tasks_whatever_the_order(source, tmp_path):
    owner = [f"part {i}" for i in [10, 9, 2, 2, 10, 9, 1, 1, 2, 9, 10, 1]]
    tasks = SOURCES[source](owner, tmp_path)
    assert tasks.names == ("part 1", "part 2", "part 9", "part 10")
    for m, name in enumerate(tasks.names):
        rows = [row for row in range(12) if owner[row] == name]
        if source == "kernel":
            np.testing.assert_array_equal(tasks.rows_of[m], rows)
        elif source == "from_labels":
            assert [tasks.classes[m][place] for place in tasks.task(m)[1].argmax(axis=1)] == [
                (list("abc") * 4)[row] for row in rows
            ]
        elif "load, " in source:
            np.testing.assert_array_equal(tasks.task(m)[0][:, 0], X[rows, 0])
            np.testing.assert_array_equal(tasks.task(m)[1], Y[rows])
        else:
            np.testing.assert_array_equal(np.sort(tasks.task(m)[0][:, 0]), np.sort(X[rows, 0]))


@pytest.mark.parametrize(
    "ids",
    [
        [date(2024, 2, 1), date(2023, 12, 31), date(2024, 1, 31)],
        [datetime(2024, 2, 1, 12), datetime(2023, 12, 31), datetime(2024, 1, 31, 5)],
        np.array(["2024-02-01", "2023-12-31", "2024-01-31"], "M8[ns]"),
        pd.to_datetime(["2024-02-01", "2023-12-31", "2024-01-31"], utc=True),
        pd.Series(["t10", "t1", "t9"], dtype="category"),
        pd.Series([3, 1, 2], dtype="Int64"),
    ],
    ids=["dates", "times", "datetime64", "time zones", "categories", "nullable"],
)
def test_ids_of_other_types_are_sorted_too(ids):
    owner = pd.Series([ids[i] for i in (0, 1, 2, 0, 1, 2)])
    for make in (fg.load, lambda rows: fg.RegressionTasks.from_arrays(*rows)):
        tasks = make((X[:6], Y[:6], owner))
        assert [tasks.task(m)[1][0] for m in range(3)] == [Y[1], Y[2], Y[0]]
        assert "sorted by" in tasks.notes[-1]


def test_tasks_whose_rows_come_in_turn_keep_the_order_of_the_file_and_a_single_stray_row_ends_that():
    owner = ["3", "3", "1", "1", "2"]
    assert fg.load((X[:5], Y[:5], owner)).names == ("3", "1", "2")
    assert fg.load((X[:6], Y[:6], [*owner, "3"])).names == ("1", "2", "3")
    # rows that are dropped are no rows
    spoilt = X[:6].copy()
    spoilt[5] = np.nan
    assert fg.load((spoilt, Y[:6], [*owner, "3"]), drop_nan=True).names == ("3", "1", "2")


@pytest.mark.parametrize("source", SOURCES)
def test_a_choice_of_the_order_is_said_at_the_call(source, tmp_path):
    """Rows that come task by task, and tasks that first appear in the order of their names, leave nothing to choose."""
    chosen = {
        "sorted": (["b2", "b1", "b2", "b0"], "tasks are sorted by number, since"),
        "unsorted": (["w", "n", "w", "e"], "in order of first appearance, since .* nor dates such as 2024-01-31 or 31"),
    }
    for ids, words in chosen.values():
        with pytest.warns(ChoiceWarning, match=f"{words}.*; rows that come task by task give any order") as caught:
            tasks = SOURCES[source](ids * 3, tmp_path)
        (warning,) = (one for one in caught if "tasks are" in str(one.message))
        assert str(warning.message).startswith(tasks.notes[-1])
        assert warning.filename == __file__
    for owner in (groups(["b2", "b1", "b0", "b3"]), ["b0", "b1", "b2", "b3"] * 3, groups(["w", "n", "e", "s"])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            SOURCES[source](owner, tmp_path)
        assert not any("tasks are" in str(one.message) for one in caught)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("ids", [["0", "1", "0.0"], ["07", "8", "7"]])
def test_tasks_whose_names_spell_one_number_are_said(source, ids, tmp_path):
    pair = " and ".join(repr(ids[place]) for place in ((0, 2) if len(ids[0]) < len(ids[2]) else (2, 0)))
    with pytest.warns(DataWarning, match=f"tasks {pair} spell one number, but are two tasks") as caught:
        tasks = SOURCES[source](ids * 4, tmp_path)
    assert len(tasks.names) == 3
    assert [one.filename for one in caught if one.category is DataWarning] == [__file__]


def test_files_that_are_a_task_each_keep_the_order_in_which_they_are_named(tmp_path):
    paths = []
    for name in ("task10", "task9"):
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text("x,y\n1,2.5\n3,4.5\n")
    assert fg.load(paths).names == ("task10", "task9")
    assert fg.load(paths[::-1]).names == ("task9", "task10")


def test_a_folder_and_sizes_name_the_order_of_a_stream_and_arrays_of_other_libraries_are_read_for_it(tmp_path):
    sized = fg.RegressionTasks.from_source(X, Y, sizes=[3, 3, 6])
    assert sized.names == ("0", "1", "2")
    assert not any("tasks are" in note for note in sized.notes)
    owner = stored([10, 9] * 6, tmp_path / "groups.h5")
    assert fg.RegressionTasks.from_source(X, Y, owner).names == ("9", "10")


def test_names_that_the_caller_gives_are_in_the_order_of_the_tasks_which_the_note_shows():
    owner = [10, 9] * 6
    for tasks in (
        fg.load((X, Y, owner), names=["nine", "ten"]),
        fg.RegressionTasks.from_arrays(X, Y, owner, names=["nine", "ten"]),
        fg.RegressionTasks.from_labels(X, list("abc") * 4, owner, names=["nine", "ten"]),
        fg.ClassificationTasks.from_arrays(X, np.sign(Y), owner, names=["nine", "ten"]),
        fg.RegressionTasks.from_source(X, Y, owner, names=["nine", "ten"]),
    ):
        assert tasks.names == ("nine", "ten")
        assert tasks.notes[-1].endswith(": '9' (called 'nine'), '10' (called 'ten')")


@pytest.mark.parametrize("ids", [[10, 9, 2, 0], ["west", "north", "south", "east"], ["t10", "t9", "t1", "t0"]])
def test_saved_tasks_keep_their_order(ids, tmp_path):
    owner = groups(ids)
    for make in (
        lambda owner: fg.RegressionTasks.from_arrays(X, Y, owner),
        lambda owner: fg.KernelTasks(X @ X.T, Y, owner),
        lambda owner: fg.ClassificationTasks.from_arrays(X, np.sign(Y), owner),
    ):
        for rows in (range(12), *SHUFFLES):
            tasks = make([owner[row] for row in rows])
            tasks.save(tmp_path / "saved.npz")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                again = fg.load(tmp_path / "saved.npz")
            assert again.names == tasks.names
            assert again.notes == ()
            np.testing.assert_array_equal(again.task_losses(np.ones(again.dim)), tasks.task_losses(np.ones(tasks.dim)))


def test_the_given_order_of_an_audit_is_that_of_the_numbers(tmp_path, capsys):
    """Rows that were shuffled: an audit must not take the chance of the shuffle for the order of the tasks."""
    owner = [f"session {i}" for i in [2, 0, 3, 1, 0, 2, 1, 3, 10, 10, 0, 1]]
    csv(owner, tmp_path / "rows.csv")
    assert run_app(["audit", str(tmp_path / "rows.csv")]) == 0
    out, err = capsys.readouterr()
    named = "session 0, session 1, session 2, session 3, session 10"
    assert f"given order: {named}" in " ".join(out.split())
    assert "note: tasks are sorted by number, since their rows are mixed: 'session 0', 'session 1'" in err
