"""Files of rows: what is read, and what is refused, with the file, the row and the column."""

import json

import numpy as np
import pytest

import forgetting as fg
from forgetting.auditing import Audit, read_tasks
from forgetting.cli import run_app
from forgetting.errors import ProblemFileError

GOOD = "task,a,b,y\nfirst,1,0,1\nsecond,0,1,2\nfirst,1,1,3\nsecond,2,1,4\n"


def notes(found):
    """The notes without the one on the order of tasks, which comes last wherever there is a column of tasks."""
    *others, last = found.notes
    assert last.startswith(("tasks are in order of", "tasks are in the order of", "tasks are sorted by"))
    return tuple(others)


@pytest.fixture
def write(tmp_path):
    def make(text, name="tasks.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make


def test_a_csv_file_becomes_tasks_in_order_of_appearance(write):
    found = read_tasks(write(GOOD))
    assert found.tasks.names == ("first", "second")
    assert found.features == ("a", "b")
    assert found.notes == (
        "tasks are in order of first appearance, since their rows are mixed and their names are neither numbers nor "
        "dates such as 2024-01-31 or 31.01.2024: 'first', 'second'",
    )
    X, y = found.tasks.task(0)
    assert X.tolist() == [[1, 0], [1, 1]]
    assert y.tolist() == [1, 3]


def test_blank_lines_spaces_quotes_and_a_byte_order_mark_do_no_harm(write):
    text = '\ufefftask, a ,b,y\n"first",1, 0,1\n\nsecond,0,1e0,2\n'
    found = read_tasks(write(text))
    assert found.features == ("a", "b")
    assert found.tasks.task(1)[0].tolist() == [[0, 1]]


def test_npz_files_say_the_same_as_csv_files(write, tmp_path):
    X, y = np.array([[1.0, 0], [0, 1], [1, 1], [2, 1]]), np.array([1, 2, 3, 4])
    np.savez(tmp_path / "tasks.npz", X=X, y=y, task=np.array(["first", "second", "first", "second"]))
    one, two = read_tasks(tmp_path / "tasks.npz").tasks, read_tasks(write(GOOD)).tasks
    assert one.names == two.names
    for m in range(2):
        assert np.array_equal(one.task(m)[0], two.task(m)[0])
        assert np.array_equal(one.task(m)[1], two.task(m)[1])


def test_a_saved_collection_is_read_as_it_is(tmp_path):
    tasks = fg.families.two_lines(0.5)
    tasks.save(tmp_path / "lines.npz")
    assert np.array_equal(read_tasks(tmp_path / "lines.npz").tasks.task(1)[0], tasks.task(1)[0])


def test_each_of_several_files_without_a_task_column_is_a_task(write):
    paths = [write("a,y\n1,1\n2,2\n", "north.csv"), write("a,y\n3,1\n", "south.csv")]
    found = read_tasks(paths)
    assert found.tasks.names == ("north", "south")
    assert "task 'south' has one row" in found.notes
    other = write("b,y\n3,1\n", "east.csv")
    with pytest.raises(ProblemFileError, match=r"east\.csv has other features.*'a'"):
        read_tasks([paths[0], other])


def test_files_of_one_name_in_two_folders_are_two_tasks(tmp_path):
    paths = [tmp_path / name for name in ("A/t.csv", "B/t.csv", "A/u.csv", "A/t.npz")]
    for folder in ("A", "B"):
        (tmp_path / folder).mkdir()
    for number, path in enumerate(paths[:3]):
        path.write_text(f"0,y\n{number},{number}\n5,5\n")
    np.savez(paths[3], X=np.ones((2, 1)), y=np.ones(2))
    found = read_tasks(paths[:3]).tasks
    assert found.names == ("A/t", "B/t", "u")
    assert found.task(1)[0].tolist() == [[1], [5]]
    assert read_tasks([paths[0], paths[3]]).tasks.names == (str(paths[0]), str(paths[3]))  # only endings differ
    with pytest.raises(ProblemFileError, match=r"t\.csv: given twice"):
        read_tasks([paths[0], paths[0]])
    (tmp_path / "c.csv").write_text("task,0,y\nu,1,1\n")  # the task of a row may have the name of a file
    assert read_tasks([tmp_path / "c.csv", paths[2]]).tasks.names == ("u", "A/u")


def test_saved_collections_among_several_files_are_refused(tmp_path):
    fg.families.two_lines(0.5).save(tmp_path / "a.npz")
    fg.families.two_lines(0.7).save(tmp_path / "b.npz")
    with pytest.raises(ProblemFileError, match=r"a\.npz: holds a saved collection of tasks; give it alone"):
        read_tasks([tmp_path / "a.npz", tmp_path / "b.npz"])
    np.savez(tmp_path / "plain.npz", X=np.ones((2, 4)), y=np.ones(2))
    fg.families.separable(T=2, n=3, d=4, seed=0).save(tmp_path / "c.npz")
    with pytest.raises(ProblemFileError, match=r"c\.npz: holds a saved collection of tasks; give it alone"):
        read_tasks([tmp_path / "plain.npz", tmp_path / "c.npz"])


def test_a_row_without_a_task_is_missing_data(write, tmp_path):
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4.0)
    np.savez(tmp_path / "tasks.npz", X=X, y=y, task=np.array([1.0, 2.0, np.nan, 2.0]))
    for path, row in ((tmp_path / "tasks.npz", 2), (write(GOOD.replace("first,1,1,3", ",1,1,3")), 4)):
        with pytest.raises(ProblemFileError, match=f"row {row}, column 'task': no task is named; .*drop_nan"):
            read_tasks(path)
        found = read_tasks(path, drop_nan=True)
        assert found.tasks.num_rows.tolist() == [1, 2]
        assert any("1 row with missing numbers dropped" in note for note in found.notes)
    assert read_tasks(write(GOOD.replace("first", "na"))).tasks.names == ("na", "second")


@pytest.mark.parametrize("label", ["1e400", "-infinity", "-1e999", "NaN"])
def test_a_label_that_is_no_finite_number_is_missing_data(write, label):
    path = write(GOOD.replace("1,1,3", f"1,1,{label}"))
    with pytest.raises(ProblemFileError, match=rf"tasks\.csv, row 4, column 'y': {label} is not a number to compute"):
        read_tasks(path)
    assert read_tasks(path, drop_nan=True).tasks.num_rows.tolist() == [1, 2]


def test_classes_that_are_numbers_are_compared_as_numbers(write, tmp_path):
    X, task = np.arange(8.0).reshape(4, 2), np.array(["a", "a", "b", "b"])
    np.savez(tmp_path / "tasks.npz", X=X, y=np.array([0.0, 1.0, 1.0, 0.0]), task=task)
    text = "task,a,b,y\na,0,1,0\na,2,3,1.0\nb,4,5,1\nb,6,7,0.0\n"
    for path in (tmp_path / "tasks.npz", write(text)):
        for positive in ("1", "1.0", "1e0"):
            found = read_tasks(path, positive=positive)
            assert [found.tasks.task(m)[1].tolist() for m in range(2)] == [[-1, 1], [1, -1]]
            assert notes(found) == ()  # 1 and 1.0 are one class
    # beside words, they are words
    words = write(text.replace("6,7,0.0", "6,7,cat"))
    assert read_tasks(words, positive="1").tasks.task(0)[1].tolist() == [-1, -1]
    # long numbers that are one float are still two classes
    long = write("task,a,y\none,1,10000000000000000\none,2,10000000000000001\n")
    assert read_tasks(long, positive="10000000000000001").tasks.task(0)[1].tolist() == [-1, 1]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (GOOD, {"task": "tsk"}, r"tasks\.csv: no column 'tsk' for the tasks; did you mean 'task'\?"),
        (GOOD, {"label": "Y"}, r"no column 'Y' for the labels"),
        (GOOD, {"label": "price"}, r"no column 'price' for the labels; the columns are task, a, b, y"),
        (GOOD.replace("1,1,3", "1,one,3"), {}, r"tasks\.csv, row 4, column 'b': 'one' is not a number"),
        (GOOD.replace("1,1,3", "1,1,three"), {}, r"tasks\.csv, row 4, column 'y': 'three' is not a number.*positive="),
        (GOOD.replace("1,1,3", "1,nan,3"), {}, r"tasks\.csv, row 4, column 'b': nan or nothing is not .*drop_nan"),
        (GOOD.replace("1,1,3", ",1,3"), {}, r"tasks\.csv, row 4, column 'a': nan"),
        (GOOD.replace("1,1,3", "1,inf,3"), {}, r"tasks\.csv, row 4, column 'b'"),
        (GOOD.replace("1,1,3", "1,1,"), {}, r"tasks\.csv, row 4, column 'y': nothing is not a number"),
        (GOOD.replace("first,1,1,3", "first,1,3"), {}, r"tasks\.csv, row 4: 3 cells under 4 columns"),
        (GOOD.replace("first,1,1,3", ",1,1,3"), {}, r"tasks\.csv, row 4, column 'task': no task is named"),
        (GOOD.replace("task,a,b,y", "task,a,a,y"), {}, r"two columns are called 'a'"),
        ("", {}, r"tasks\.csv: the file is empty"),
        ("task,a,y\n", {}, r"tasks\.csv: a header without rows"),
        ("task,y\n1,2\n", {}, r"no features"),
        ("task,a,y\n1,nan,2\n", {"drop_nan": True}, r"nothing is left"),
        (GOOD, {"positive": "7"}, r"no label is '7'"),
    ],
)
def test_bad_files_are_refused_with_the_place(write, text, options, words):
    with pytest.raises(ProblemFileError, match=words):
        read_tasks(write(text), **options)


def test_rows_with_missing_numbers_are_dropped_on_request_and_counted(write):
    text = GOOD + "second,nan,1,4\nsecond,1,1,\n"
    found = read_tasks(write(text), drop_nan=True)
    assert found.tasks.num_rows.tolist() == [2, 2]
    (note,) = notes(found)
    assert "tasks.csv: 2 rows with missing numbers dropped" in note


def test_a_task_with_one_row_is_said(write):
    found = read_tasks(write("task,a,y\none,1,0.5\ntwo,2,1.5\ntwo,3,2.5\n"))
    assert notes(found) == ("task 'one' has one row",)
    assert "task 'one' has one row" in str(fg.audit(found))


def test_a_class_seen_in_one_task_only_is_said(write):
    rows = [("one", 0), ("one", 1), ("one", 0), ("two", 1), ("two", 2), ("two", 2)]
    text = "task,a,b,y\n" + "".join(f"{task},{i},{i * i},{label}\n" for i, (task, label) in enumerate(rows, 1))
    assert notes(read_tasks(write(text), classes="all")) == (
        "labels are 3 classes, with an output each: '0', '1', '2'; 2 of 3 classes are seen in one task only: '0' in "
        "task 'one', '2' in task 'two'",
    )
    words = text.replace(",0\n", ",cat\n").replace(",1\n", ",dog\n").replace(",2\n", ",cow\n")
    found = read_tasks(write(words), positive="dog")
    assert found.tasks.task(0)[1].tolist() == [-1, 1, -1]
    assert notes(found) == ("2 of 3 classes are seen in one task only: 'cat' in task 'one', 'cow' in task 'two'",)
    # where classes are named, however few rows and however many classes there are
    few = "task,a,y\none,1,cat\none,2,dog\ntwo,3,dog\n"
    assert "class 'cat' is seen in task 'one' only" in read_tasks(write(few), positive="dog").notes
    assert (
        "class '0' is seen in task 'one' only"
        in read_tasks(write(few.replace("cat", "0").replace("dog", "1")), positive="1").notes
    )
    many = "task,a,b,y\n" + "".join(f"{i % 2},{i},{i * i},{min(i, 30)}\n" for i in range(40))
    assert notes(read_tasks(write(many), positive="30", drop="a")) == (
        "30 of 31 classes are seen in one task only: '0' in task '0', '1' in task '1', '2' in task '0', '3' in task "
        "'1', '4' in task '0', ...",
    )
    assert notes(read_tasks(write(many), drop="a")) == ()
    # numbers that are not classes are not taken for them
    assert notes(read_tasks(write(GOOD))) == ()


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": np.ones((2, 2)), "y": np.ones(2)}, r"no column 'task'"),
        ({"X": np.ones((2, 2)), "y": np.ones(3), "task": [1, 2]}, r"array 'y': shape \(3,\) for 2 rows"),
        ({"X": np.ones(2), "y": np.ones(2), "task": [1, 2]}, r"array 'X': expected a matrix"),
        ({"X": np.array([[1, np.nan]]), "y": [1.0], "task": [1]}, r"row 0, column '1': nan"),
        ({"X": np.ones((0, 2)), "y": np.ones(0), "task": np.ones(0)}, r"nothing is left"),
        (
            {"A": np.ones((1, 1)), "B": np.ones((1, 1)), "y": [1.0], "task": [1]},
            r"one matrix X of features, found A, B",
        ),
    ],
)
def test_bad_npz_files_are_refused(tmp_path, arrays, words):
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(ProblemFileError, match=words):
        read_tasks(tmp_path / "bad.npz")


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ProblemFileError, match="no such file"):
        read_tasks(tmp_path / "missing.csv")
    (tmp_path / "tasks.xlsx").touch()
    with pytest.raises(ProblemFileError, match=r"expected a \.csv, \.tsv, \.parquet or \.npz file"):
        read_tasks(tmp_path / "tasks.xlsx")
    with pytest.raises(ProblemFileError, match="no file given"):
        read_tasks([])
    (tmp_path / "latin.csv").write_bytes(b"task,a,y\n\xe9,1,2\n")
    with pytest.raises(ProblemFileError, match="not in UTF-8"):
        read_tasks(tmp_path / "latin.csv")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_semicolons_and_tabs_separate_columns_too(tmp_path, separator):
    (tmp_path / "a.csv").write_text(GOOD)
    (tmp_path / "b.csv").write_text(GOOD.replace(",", separator))
    one, other = (read_tasks(tmp_path / name).tasks for name in ("a.csv", "b.csv"))
    assert one.names == other.names
    for m in range(one.num_tasks):
        np.testing.assert_array_equal(one.task(m)[0], other.task(m)[0])
        np.testing.assert_array_equal(one.task(m)[1], other.task(m)[1])


def test_decimal_commas_infinity_and_saved_classification_are_named(tmp_path):
    (tmp_path / "a.csv").write_text("task;a;y\nfirst;1,5;2\n")
    with pytest.raises(ProblemFileError, match=r"row 2, column 'a': '1,5' is not a number; decimals have a point"):
        read_tasks(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("task,a,y\nfirst,-inf,2\n")
    with pytest.raises(ProblemFileError, match=r"row 2, column 'a': -inf is not a number to compute with"):
        read_tasks(tmp_path / "b.csv")
    fg.families.separable(T=2, n=3, d=4, seed=0).save(tmp_path / "c.npz")
    with pytest.raises(ProblemFileError, match=r"holds ClassificationTasks\(.*, but an audit needs regression"):
        read_tasks(tmp_path / "c.npz")


# ---------------------------------------------------------------------------------------------------- command line


def test_random_features_on_the_command_line(write, capsys):
    path = str(write(GOOD))
    assert run_app(["audit", path, "--kind", "fourier"]) == 2
    assert "give their number by --features" in capsys.readouterr().err
    assert run_app(["audit", path, "--kind", "cosine", "--features", "9"]) == 2
    assert "'relu' or 'fourier', got 'cosine'" in capsys.readouterr().err
    assert run_app(["audit", path, "--features", str(10**11)]) == 2
    assert "GiB available; choose fewer" in capsys.readouterr().err
    assert run_app(["audit", path, "--kind", "fourier", "--features", "9"]) == 0
    assert "d = 9" in capsys.readouterr().out


def test_the_command_prints_a_page_and_writes_files(write, tmp_path, capsys):
    path = str(write(GOOD))
    assert run_app(["audit", path, "--out", str(tmp_path / "a.html")]) == 0
    page = capsys.readouterr().out
    assert page.startswith("Audit of tasks.csv")
    assert "What each ordering leads to" in page
    assert "<!doctype html>" in (tmp_path / "a.html").read_text()
    assert run_app(["audit", path, "--out", str(tmp_path / "a.json")]) == 0
    assert Audit.from_json((tmp_path / "a.json").read_text()).num_tasks == 2
    assert run_app(["audit", path, "--out", str(tmp_path / "a.json")]) == 2
    assert run_app(["audit", path, "--out", str(tmp_path / "a.txt"), "--force"]) == 0
    capsys.readouterr()
    assert run_app(["audit", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "forgetting/audit/1"


def test_the_command_looks_at_the_file_to_write_before_it_computes(write, tmp_path, capsys, monkeypatch):
    def never(*_, **__):
        raise AssertionError("computed")

    path = str(write(GOOD))
    for ending in ("html", "json", "txt"):
        (tmp_path / f"there.{ending}").touch()
    monkeypatch.setattr("forgetting.auditing.audit", never)
    for name, message in (
        ("there.html", "exists and is kept"),
        ("there.json", "exists and is kept"),
        ("there.txt", "exists and is kept"),
        ("new.docx", "unknown ending"),
    ):
        assert run_app(["audit", path, "--out", str(tmp_path / name)]) == 2
        assert message in capsys.readouterr().err


def test_the_command_knows_images_families_and_options(capsys):
    assert run_app(["audit", "digits", "rotated", "tasks=3", "rows=4", "--features", "30", "--kind", "fourier"]) == 0
    assert "T = 3 tasks, d = 30 dimensions" in capsys.readouterr().out
    assert run_app(["audit", "two_lines", "theta=0.5", "--passes", "2"]) == 0
    assert "x2: k = 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["digit", "split"], "did you mean 'digits'?"),
        (["digits", "size=3"], "no parameter 'size'"),
        (["digits", "shuffled"], "'split', 'permuted' or 'rotated'"),
        (["missing.csv"], "missing.csv: no such file"),
        (["two_lines", "theta=0.5", "--features", "5", "--kind", "tanh"], "'relu' or 'fourier'"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line(capsys, words, message):
    assert run_app(["audit", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
