"""`fg.load`: one result from every source of the same rows, and what is said about them."""

import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.errors import (
    ChoiceWarning,
    DataWarning,
    ForgettingError,
    InvalidInputError,
    NotSupportedError,
    ProblemFileError,
)
from forgetting.files.matrices import read_matrix

RNG = np.random.default_rng(5)
X = RNG.standard_normal((12, 3)).round(3)
Y = (X @ [1.0, -2.0, 0.5]).round(6)
TASK = ["b", "a", "b", "c"] * 3
COLUMNS = {"task": TASK, **{f"x{j}": X[:, j] for j in range(3)}, "y": Y}
EXPECTED = fg.RegressionTasks.from_arrays(X, Y, TASK)
MIXED = (
    "tasks are in order of first appearance, since their rows are mixed and their names are neither numbers nor dates "
    "such as 2024-01-31 or 31.01.2024"
)
ORDER = f"{MIXED}: 'b', 'a', 'c'"


def same(tasks, expected=EXPECTED):
    assert tasks.names == expected.names
    for m in range(expected.num_tasks):
        for mine, theirs in zip(tasks.task(m), expected.task(m), strict=True):
            np.testing.assert_array_equal(mine.toarray() if sp.issparse(mine) else mine, theirs)
    return True


class Tensor:
    """What a tensor of torch has, and refuses: it follows gradients, and is on another device."""

    def __init__(self, values, follows=True, here=False):
        self.values, self.follows, self.here = np.asarray(values), follows, here

    def detach(self):
        return Tensor(self.values, False, self.here)

    def cpu(self):
        return Tensor(self.values, self.follows, True)

    def numpy(self):
        if self.follows:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if not self.here:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        if self.values.dtype == np.float16:
            raise TypeError("Got unsupported ScalarType")
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return (Tensor(row) for row in self.values)


class Stream:
    """A table that is known by the stream protocol of Arrow alone."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, schema=None):
        return self.table.__arrow_c_stream__(schema)


class Interchange:
    """A table that is known by the DataFrame interchange protocol alone."""

    def __init__(self, table):
        self.table = table

    def __dataframe__(self, *rest, **more):
        return self.table.__dataframe__(*rest, **more)


class Frame:
    """The least that a DataFrame of another library has: named columns that become arrays."""

    def __init__(self, columns):
        self.held = columns

    @property
    def columns(self):
        return list(self.held)

    def __getitem__(self, name):
        return pd.Series(self.held[name])

    def __len__(self):
        return len(next(iter(self.held.values())))

    def to_numpy(self):
        return np.column_stack(list(self.held.values()))


def table():
    return pa.table(COLUMNS)


def viewed():
    """The same with words as newer libraries hand them on."""
    held = table()
    return held.set_column(0, "task", pa.chunked_array([pa.array(TASK, pa.string_view())]))


#: every source that is in memory already
SOURCES = {
    "DataFrame": lambda: pd.DataFrame(COLUMNS),
    "DataFrame, other index": lambda: pd.DataFrame(COLUMNS, index=[f"row {i}" for i in range(12)]),
    "DataFrame, categories": lambda: pd.DataFrame(COLUMNS).astype({"task": "category"}),
    "DataFrame, nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "DataFrame, objects": lambda: pd.DataFrame(COLUMNS).astype(object),
    "DataFrame, words": lambda: pd.DataFrame(COLUMNS).astype(str),
    "another DataFrame": lambda: Frame(COLUMNS),
    "pyarrow table": table,
    "record batch": lambda: table().to_batches()[0],
    "Arrow stream": lambda: Stream(table()),
    "Arrow stream, views": lambda: Stream(viewed()),
    "interchange": lambda: Interchange(table()),
    "arrays": lambda: (X, Y, TASK),
    "arrays, y a column": lambda: (X, Y[:, None], np.array(TASK)[:, None]),
    "lists": lambda: (X.tolist(), Y.tolist(), TASK),
    "sparse": lambda: (sp.csr_array(X), Y, TASK),
    "COO": lambda: (sp.coo_array(X), Y, TASK),
    "series": lambda: (pd.DataFrame(X), pd.Series(Y), pd.Series(TASK)),
    "mapping": lambda: {"X": X, "y": Y, "task": TASK},
    "mapping of frames": lambda: {"X": pd.DataFrame(X), "y": pd.DataFrame(Y), "task": pd.Series(TASK)},
    "tensors": lambda: (Tensor(X), Tensor(Y), TASK),
    "tensors, y a column": lambda: {"X": Tensor(X), "y": Tensor(Y[:, None]), "task": TASK},
    "lists of tensors": lambda: (list(Tensor(X)), list(Tensor(Y)), TASK),
}
PAIRS = {
    "pairs": lambda pairs: pairs,
    "generator": iter,
    "tuple of pairs": tuple,
    "lists": lambda pairs: [[X.tolist(), y.tolist()] for X, y in pairs],
    "sparse": lambda pairs: [(sp.csr_array(X), y) for X, y in pairs],
    "tensors": lambda pairs: [(Tensor(X), Tensor(y)) for X, y in pairs],
    "frames": lambda pairs: [(pd.DataFrame(X), pd.Series(y)) for X, y in pairs],
    "columns": lambda pairs: [(X, y[:, None]) for X, y in pairs],
}


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_of_the_same_rows_gives_the_same_tasks(name):
    tasks = fg.load(SOURCES[name]())
    assert same(tasks)
    assert tasks.notes == (ORDER,)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_tasks_and_so_are_mappings_from_names_to_pairs(name):
    pairs = [EXPECTED.task(m) for m in range(3)]
    unnamed = fg.load(PAIRS[name](pairs))
    assert unnamed.names == ("0", "1", "2")
    assert unnamed.notes == ()
    assert same(fg.load(dict(zip("bac", PAIRS[name](pairs), strict=True))))


@pytest.mark.parametrize("of", ["polars", "torch"])
def test_the_real_libraries_are_read_where_they_are_installed(of):
    library = pytest.importorskip(of)
    if of == "polars":
        frame = library.DataFrame(COLUMNS)
        assert same(fg.load(frame))
        assert same(fg.load(frame.with_columns(library.col("task").cast(library.Categorical))))
        with pytest.raises(InvalidInputError, match=r"collect\(\) it first"):
            fg.load(frame.lazy())
        return
    matrix, label = library.tensor(X, requires_grad=True), library.tensor(Y, requires_grad=True)
    assert same(fg.load((matrix, label, TASK)))
    assert same(fg.load({"X": matrix, "y": label[:, None], "task": TASK}))
    assert fg.RegressionTasks([matrix, matrix + 1], [label, label]).num_tasks == 2
    assert fg.run(EXPECTED, library.tensor([0, 2, 1]), 3).order.tolist() == [0, 2, 1]
    short = matrix.detach().to(library.bfloat16)  # which NumPy does not have
    assert fg.load((short, label, TASK)).task(0)[0].tolist() == short.double().numpy()[TASK == "b"].tolist()
    with pytest.raises(InvalidInputError, match="X: NumPy cannot hold this tensor"):
        fg.load((matrix.to_sparse(), label, TASK))


def test_a_problem_is_what_it_is_and_a_saved_one_comes_back(tmp_path):
    signs = fg.families.separable(T=3, d=4, n=5, margin=0.2)
    for tasks in (EXPECTED, signs):
        assert fg.load(tasks) is tasks
        tasks.save(tmp_path / "saved.npz")
        again = fg.load(tmp_path / "saved.npz")
        assert type(again) is type(tasks)
        assert again.notes == ()
        for m in range(tasks.num_tasks):
            np.testing.assert_array_equal(again.task(m)[0], tasks.task(m)[0])
    for source in (EXPECTED, tmp_path / "saved.npz"):
        with pytest.raises(InvalidInputError, match=r"without columns that label= \(--label\) could name"):
            fg.load(source, label="price")
        with pytest.raises(InvalidInputError, match="which has its own rtol; rtol= is for rows"):
            fg.load(source, rtol=0.1)
        assert fg.load(source, drop_nan=True).num_tasks == 3  # there is nothing to drop, which is no mistake


def test_tensors_are_arrays_everywhere():
    assert same(fg.RegressionTasks.from_arrays(Tensor(X), Tensor(Y[:, None]), TASK))
    tasks = fg.RegressionTasks([Tensor(X)], [list(Tensor(Y))])
    assert fg.run(tasks, "cyclic", 1, w0=Tensor(np.ones(3))).w0.tolist() == [1, 1, 1]
    assert fg.ClassificationTasks([Tensor(X)], [Tensor(Y > 0)]).num_rows.tolist() == [12]
    assert fg.KernelTasks(Tensor(X @ X.T), Tensor(Y[:, None]), TASK).names == ("b", "a", "c")
    with pytest.raises(
        InvalidInputError, match=r"task 0, X: NumPy cannot hold this tensor \(Got unsupported ScalarType"
    ):
        fg.RegressionTasks([Tensor(X.astype(np.float16))], [Y])


def test_no_library_is_imported_to_read_what_is_none_of_its(tmp_path):
    """In a process of its own, since other tests import all of them."""
    import subprocess

    np.savez(tmp_path / "plain.npz", X=X, y=Y, task=np.sort(TASK))
    code = (
        "import sys, forgetting as fg\n"
        "assert 'forgetting.tasks.readers' not in sys.modules\n"
        "tasks = fg.load(sys.argv[1])  # rows are in order\n"
        "fg.load([tasks.task(0)])\n"
        "assert not {'pandas', 'pyarrow', 'polars', 'torch', 'rich'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "plain.npz"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_frames_need_no_pyarrow_and_streams_say_that_they_do(monkeypatch):
    frames = [SOURCES[name]() for name in ("DataFrame", "another DataFrame", "DataFrame, words")]
    streams = [SOURCES[name]() for name in ("pyarrow table", "interchange")]
    for name in ("pyarrow", "forgetting.files.arrow_tables"):
        monkeypatch.setitem(sys.modules, name, None)  # its import fails
    monkeypatch.delattr("forgetting.files.arrow_tables", raising=False)
    for frame in frames:
        assert same(fg.load(frame))
    for stream in streams:
        with pytest.raises(NotSupportedError, match=r"pip install 'forgetting\[data\]', or give arrays"):
            fg.load(stream)


# ----------------------------------------------------------------------------------------------------- what is said


def said(source, **options):
    """The notes, and those of them that are doubts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ChoiceWarning)
        notes = fg.load(source, **options).notes
    assert all(warning.category is DataWarning and warning.filename == __file__ for warning in caught)
    return notes, [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "Unnamed: 0.1", "__index_level_0__"])
@pytest.mark.parametrize(
    "values",
    [range(12), range(1, 13), RNG.permutation(12), [3 * i + 7 for i in range(12)]],
    ids=["from 0", "from 1", "shuffled", "selected"],
)
def test_an_index_without_a_name_is_left_out_and_said(name, values):
    frame = pd.DataFrame({name: values, **COLUMNS})
    notes, warned = said(frame)
    assert notes == (f"column {name!r} has no name and numbers the rows: it was taken for an index and left out", ORDER)
    assert warned == []
    assert same(fg.load(frame))


def test_an_index_of_tables_put_one_below_the_other_is_left_out():
    index = [0, 1, 0, 1, 2, 0, 1, 0, 1, 2, 3, 4]
    frame = pd.DataFrame({"": index, **COLUMNS, "task": ["a"] * 2 + ["b"] * 3 + ["a"] * 2 + ["c"] * 5})
    assert "taken for an index" in said(frame)[0][0]
    notes, warned = said(pd.DataFrame({"": [0, 1] * 6, **COLUMNS}))  # these numbers count nothing
    assert (
        notes[0] == "column '' has no name, but is a feature; if it is not one, leave it out with drop='' (--drop '')"
    )
    assert warned == [notes[0]]


def test_an_empty_column_without_a_name_is_left_out(tmp_path):
    rows = [",".join([*COLUMNS, ""]), *(",".join([*map(str, row), ""]) for row in zip(*COLUMNS.values(), strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    assert said(tmp_path / "a.csv")[0][0] == "column '' has no name and no values, and was left out"
    assert same(fg.load(tmp_path / "a.csv"))


@pytest.mark.parametrize(
    ("name", "values", "doubted"),
    [
        ("id", range(12), True),
        ("Index", RNG.permutation(12), True),
        ("count", range(12), True),
        ("count", range(1, 13), True),
        ("count", range(2, 14), False),
        ("count", RNG.permutation(12), False),
        ("id", [0, 1] * 6, False),
        ("id", np.arange(12) + 0.5, False),
    ],
)
def test_an_index_with_a_name_stays_a_feature_and_is_warned_of(name, values, doubted):
    frame = pd.DataFrame({name: values, **COLUMNS})
    notes, warned = said(frame)
    option = f"drop={name!r} (--drop {name})"
    words = f"column {name!r} numbers the rows like an index, but is a feature; leave it out with {option}"
    assert warned == ([words] if doubted else [])
    assert notes == (*warned, ORDER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert fg.load(frame).dim == 4
    assert same(fg.load(frame, drop=name))


def test_few_rows_and_matrices_without_names_are_not_suspected():
    small = pd.DataFrame({"task": ["a", "a", "b"], "x": [1, 2, 3], "y": [0.5, 1.5, 2.5]})
    assert said(small)[1] == []
    counted = np.column_stack([np.arange(12), X])
    assert said((counted, Y, TASK))[1] == []
    assert said((pd.DataFrame(counted, columns=["t", *"abc"]), Y, TASK))[1][0].startswith("column 't' numbers the rows")


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1] * 6, "0, 1"),
        ([0, 1, 2] * 4, "0, 1, 2"),
        ([5, 6, 7, 8, 9, 4] * 2, "4, 5, 6, 7, 8, ..."),
        ([-1, 1] * 6, None),
        ([1] * 12, None),
        (list(range(12)), None),
        ([0.5, 1.5] * 6, None),
    ],
)
def test_classes_that_are_learned_as_numbers_are_warned_of(labels, words):
    for source in (pd.DataFrame({**COLUMNS, "y": labels}), (X, labels, TASK)):
        notes, warned = said(source)
        if words is None:
            assert warned == []
            continue
        (doubt,) = warned
        assert doubt in notes
        assert doubt == (
            f"the labels are the numbers {words}, and are learned as numbers; if they are classes, give classes='all' "
            "(--classes all), or name the one that counts as +1 with positive= (--positive)"
        )
        assert said(source, classes=None)[1] == []
        notes, warned = said(source, positive=labels[0])
        assert warned == []
        assert set(fg.load(source, positive=labels[0]).task(0)[1]) <= {-1.0, 1.0}


def test_an_audit_warns_at_its_call_and_has_the_notes():
    frame = pd.DataFrame({"id": range(12), **COLUMNS})
    with pytest.warns(DataWarning, match="column 'id'") as caught:
        found = fg.audit(frame)
    assert caught[0].filename == __file__
    assert any("column 'id' numbers the rows" in note for note in found.notes)
    assert found.title == "3 tasks"
    assert fg.audit(fg.load(frame, drop=["id"])).notes == (ORDER,)


def test_many_names_are_not_all_listed():
    names = [f"task {i}" for i in range(12)]
    notes, _ = said((X, Y, names))
    assert notes[-1] == ("tasks are in the order of their rows: 'task 0', 'task 1', 'task 2', 'task 3', 'task 4', ...")


def test_rows_with_missing_numbers_are_counted():
    spoilt = X.copy()
    spoilt[2, 1], spoilt[5, 0] = np.nan, np.inf
    for source in ((spoilt, Y, TASK), (sp.csr_array(spoilt), Y, TASK), {"X": Tensor(spoilt), "y": Y, "task": TASK}):
        with pytest.raises(
            InvalidInputError, match=r"^row 2, column '1': nan or nothing is not a number to compute with"
        ):
            fg.load(source)
        tasks = fg.load(source, drop_nan=True)
        assert tasks.num_rows.tolist() == [5, 2, 3]
        assert tasks.notes[0] == "2 rows with missing numbers dropped"
    frame = pd.DataFrame({**COLUMNS, "x1": spoilt[:, 1], "task": [*TASK[:-1], None]})
    assert fg.load(frame, drop_nan=True).notes[0] == "DataFrame: 2 rows with missing numbers dropped"
    for kind in ("object", "string", "category"):
        missing = pd.DataFrame({**COLUMNS, "task": pd.Series([*TASK[:-1], None], dtype=kind)})
        with pytest.raises(InvalidInputError, match="DataFrame, row 11, column 'task': no task is named"):
            fg.load(missing)
        assert fg.load(missing, drop_nan=True).num_rows.tolist() == [6, 3, 2]
    with pytest.raises(InvalidInputError, match="task 1, row 0, column '0': nan"):
        fg.load([(X, Y), ([[np.nan, 1, 2]], [1.0])])


# ------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (3, {}, "source: expected a file or several, a DataFrame, arrays .*, got 3"),
        (None, {}, "source: expected .*, got None"),
        ([], {}, "source: nothing is there"),
        ({}, {}, "source: nothing is there"),
        (X, {}, "source: expected .*, got ndarray"),
        (sp.csr_array(X), {}, "source: expected"),
        ((X, Y), {}, r"task 0: expected a pair \(X, y\), got ndarray; a source is a file or several"),
        ([(X, Y), X], {}, r"task 1: expected a pair \(X, y\), got ndarray"),
        ({1: (X, Y), "1": (X, Y)}, {}, "two tasks are called '1'"),
        ((X, Y[:-1], TASK), {}, r"array 'y': shape \(11,\) for 12 rows of 'X'"),
        ((X, Y, TASK[:-1]), {}, r"array 'task': shape \(11,\) for 12 rows of 'X'"),
        ((X[0], Y, TASK), {}, r"array 'X': expected a matrix of numbers, got float64, shape \(3,\)"),
        ((X + 1j, Y, TASK), {}, r"array 'X': expected a matrix of numbers, got complex128"),
        ((np.broadcast_to(X[:1], (2**40, 3)), Y, TASK), {}, "GiB|shape"),
        ({"X": X, "y": Y}, {}, "no column 'task' for the tasks; the columns are X, y"),
        ({"X": X, "task": TASK}, {}, "no column 'y' for the labels"),
        ((X, ["cat", "dog"] * 6, TASK), {}, "row 0, column 'y': 'cat' is not a number; for classes"),
        ((X, Y, TASK), {"drop": "3"}, "no column '3' to drop; the columns are 0, 1, 2"),
        ((X, Y, TASK), {"drop": ["0", "1", "2"]}, "no features are left"),
        ((X, Y, TASK), {"drop": 0.5j}, "drop: expected names of columns"),
        ((X, Y, TASK), {"label": None}, "label: expected a name, got None"),
        ((X, Y, TASK), {"task": ["a"]}, "task: expected a name, got list"),
        ((X, Y, TASK), {"drop_nan": "yes"}, "drop_nan must be True or False, got 'yes'"),
        ((X, Y, TASK), {"lable": "z"}, "there is no option 'lable'; did you mean 'label'?"),
        ((X, Y, TASK), {"loss": "max"}, "loss must be 'sum' or 'mean', got 'max'"),
        (pd.DataFrame(COLUMNS).set_index("task"), {}, r"DataFrame: 'task' is in the index; frame\.reset_index\(\)"),
        (pd.DataFrame(COLUMNS)[:0], {}, "DataFrame: columns without rows"),
        (pd.DataFrame(COLUMNS).rename(columns={"x1": "x0"}), {}, "DataFrame: two columns are called 'x0'"),
        (
            pd.DataFrame({**COLUMNS, "day": pd.Timestamp("2024-01-01")}),
            {},
            "row 0, column 'day': '2024-01-01' is not a n",
        ),
        (table()[:0], {}, "Table: columns without rows"),
        (Stream(pa.chunked_array([[1, 2]])), {}, "Stream: not a table that pyarrow can read"),
    ],
)
def test_what_is_no_source_is_refused_with_what_is(source, options, words):
    with pytest.raises((InvalidInputError, fg.errors.MemoryLimitError), match=words):
        fg.load(source, **options)


def test_arrays_of_the_caller_stay_his(tmp_path):
    mine = X.copy()
    tasks = fg.load([(mine, Y)])
    mine[:] = 0
    assert np.array_equal(tasks.task(0)[0], X)
    assert mine.flags.writeable


def test_files_and_arrays_of_one_task_in_two_places_are_joined(tmp_path):
    half = pa.table({name: values[:6] for name, values in COLUMNS.items()})
    rest = pa.table({name: values[6:] for name, values in COLUMNS.items()})
    pq.write_table(half, tmp_path / "a.parquet")
    pq.write_table(rest, tmp_path / "b.parquet")
    assert same(fg.load([tmp_path / "a.parquet", tmp_path / "b.parquet"]))
    assert same(fg.load(path for path in sorted(tmp_path.glob("*.parquet"))))


def test_files_of_other_kinds_and_missing_files_are_named(tmp_path):
    (tmp_path / "tasks.xlsx").write_bytes(b"PK")
    with pytest.raises(ProblemFileError, match=r"tasks\.xlsx: expected a \.csv, \.tsv, \.parquet or \.npz file"):
        fg.load(tmp_path / "tasks.xlsx")
    for name in ("nowhere.csv", "nowhere.xlsx"):
        with pytest.raises(ProblemFileError, match=rf"{name}: no such file"):
            fg.load(tmp_path / name)


def test_a_text_file_of_many_columns_and_few_rows_makes_no_column_of_arrow(tmp_path, monkeypatch):
    wide = RNG.integers(-9, 9, (3, 3000)) / 8
    names = ",".join(f"x{j}" for j in range(3000))
    rows = [f"{name},{','.join(map(str, row))},1e0" for name, row in zip("aab", wide.tolist(), strict=True)]
    (tmp_path / "wide.csv").write_text("\n".join([f"task,{names},y", *rows]))
    monkeypatch.setattr("forgetting.files.arrow_tables.text_table", None)  # 6 KiB and 30 microseconds each
    assert same(fg.load(tmp_path / "wide.csv"), fg.RegressionTasks.from_arrays(wide, np.ones(3), list("aab")))


@pytest.mark.parametrize(
    "text",
    [
        "task,a,y\n b ,1_0, 2\n\nc,NA,3\n,,\n",
        "task;a;y\nb;1e400;cat\nc;-0;dog",
        'task,a,y\nb,1,2\nc,"1,5",3\n',
        "task,a,y\nb,1,2\nc,1\n",
        "task,a,y\n",
    ],
)
def test_a_wide_text_file_is_read_like_any_other(text, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(text)
    found = []
    for limit in (-1, 1000):
        monkeypatch.setattr("forgetting.files.table_files.WIDE", limit)
        try:
            tasks = fg.load(tmp_path / "a.csv", drop_nan=True)
            found.append(repr([tasks.names, tasks.notes, [tasks.task(m) for m in range(tasks.num_tasks)]]))
        except ForgettingError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_a_folder_is_called_one_and_lists_what_could_be_read(tmp_path, monkeypatch, capsys):
    from forgetting.cli import run_app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "inside").mkdir(parents=True)
    readers = [
        lambda: fg.load("data"),
        lambda: fg.load([Path("data")]),
        *(partial(run_app, [command, "data"]) for command in ("run", "expect", "bounds", "certify", "audit", "report")),
    ]

    def said(call):
        try:
            assert call() == 2
        except ProblemFileError as error:
            return str(error)
        return " ".join(capsys.readouterr().err.split()).removeprefix("error: ")

    for call in readers:
        assert said(call) == "data is a folder, and holds no .csv, .tsv, .parquet or .npz file"
    for name in ("b.csv", "a.npz", "notes.txt", *(f"c{number}.CSV" for number in range(5))):
        (tmp_path / "data" / name).touch()
    for call in readers:
        listed = ", ".join(str(Path("data", name)) for name in ("a.npz", "b.csv", "c0.CSV", "c1.CSV", "c2.CSV"))
        assert said(call) == f"data is a folder; give files in it, each by its name: {listed} and 2 others"
    (tmp_path / "gaussian").mkdir()  # a family comes first
    assert run_app(["run", "gaussian", "T=3", "d=4", "-k", "3"]) == 0


@pytest.mark.parametrize("name", ["folder.npz", "folder.toml", "folder.json", "folder"])
def test_a_folder_in_the_place_of_another_file_is_called_one(tmp_path, name):
    (tmp_path / name).mkdir()
    calls = {
        "folder.npz": lambda path: fg.RegressionTasks.load(path),
        "folder.toml": lambda path: fg.Study.from_toml(path),
        "folder.json": lambda path: fg.worstcase.Entry.read(path),
        "folder": read_matrix,
    }
    with pytest.raises(ForgettingError, match="a folder, where a file"):
        calls[name](tmp_path / name)
