"""Every format of files x every command that reads a problem, and the likely mistakes with what is said about them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import forgetting as fg
from forgetting.report.provenance import problem_hash

RNG = np.random.default_rng(3)
X = RNG.standard_normal((12, 20)).round(3)
Y = (X @ RNG.standard_normal(20)).round(6)
TASK = ["b", "a", "b", "c"] * 3
NAMES = ("b", "a", "c")  # in order of first appearance
MIXED = (
    "tasks are in order of first appearance, since their rows are mixed and their names are neither numbers nor dates "
    "such as 2024-01-31 or 31.01.2024"
)
COLUMNS = {"task": TASK, **{f"x{j}": X[:, j] for j in range(20)}, "y": Y}


def text(columns, separator=","):
    rows = [separator.join(columns), *(separator.join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    return "\n".join(rows) + "\n"


#: how a file of each format is written, and which options read it
FORMATS = {
    "saved.npz": lambda path: fg.RegressionTasks.from_arrays(X, Y, TASK).save(path),
    "plain.npz": lambda path: np.savez(path, X=X, y=Y, task=np.array(TASK)),
    "commas.csv": lambda path: path.write_text(text(COLUMNS)),
    "semicolons.csv": lambda path: path.write_text(text(COLUMNS, ";")),
    "tabs.tsv": lambda path: path.write_text(text(COLUMNS, "\t")),
    "columns.parquet": lambda path: pq.write_table(pa.table(COLUMNS), path),
}
#: the commands that read a problem, with options that keep them short, and where their JSON has the notes
COMMANDS = {
    "run": (("-k", "3"), lambda data: data["meta"]["notes"]),
    "expect": (("-k", "3"), lambda data: data["meta"]["notes"]),
    "weights": (("-k", "3"), lambda data: data["meta"]["notes"]),
    "bounds": (("-k", "3"), lambda data: data["meta"]["notes"]),
    "certify": (("-k", "2"), lambda data: data["meta"]["notes"]),
    "table": (("-k", "3"), lambda data: data["meta"]["notes"]),
    "audit": ((), lambda data: data["notes"]),
    "report": (("--sections", "reductions", "--out", "out"), lambda data: data["notes"]),  # one figure: they take long
}
SHORT_REPORT = "seed = 1\n[problem]\nfile = {file}\n[report]\nk = 6\npoints = 3\nruns = 20\norderings = ['cyclic']\n"


def call(inside, command, *words):
    options, notes = COMMANDS[command]
    name = ("regression",) if command == "table" else ()
    return inside(command, *name, *words, *options), notes


#: Every command reads one of the formats, and `expect` reads all; every command with every format in `make hunt`.
PAIRS = [
    pytest.param(file, command, marks=[] if place % len(FORMATS) == row or command == "expect" else pytest.mark.slow)
    for row, file in enumerate(FORMATS)
    for place, command in enumerate(COMMANDS)
]


@pytest.mark.parametrize(("file", "command"), PAIRS)
def test_every_command_reads_every_format(inside, tmp_path, monkeypatch, file, command):
    monkeypatch.setattr("forgetting.cli.report.MOST_PROCESSES", 1)  # others would take longer to start than to work
    FORMATS[file](tmp_path / file)
    if command == "report":  # a config makes it short; it is read in the same way
        (tmp_path / "my.toml").write_text(SHORT_REPORT.format(file=json.dumps(file)))
    done, notes = call(inside, command, "my.toml" if command == "report" else file, "--json")
    assert done.code == 0, done.err
    data = json.loads(done.out)
    said = [] if file == "saved.npz" else [f"{MIXED}: 'b', 'a', 'c'"]
    if said or command == "report":
        assert notes(data) == said
    expected = problem_hash(fg.RegressionTasks.from_arrays(X, Y, TASK))
    if command == "audit":
        assert [task["name"] for task in data["tasks"]] == list(NAMES)
    else:
        assert data["meta"]["sha256"] == expected
    assert done.err == "".join(f"note: {note}\n" for note in said)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "report"])
def test_notes_are_on_stderr_and_the_result_alone_on_stdout(inside, tmp_path, command):
    columns = {"": range(12), **COLUMNS}
    (tmp_path / "a.csv").write_text(text(columns))
    done, _ = call(inside, command, "a.csv")
    assert done.code == 0, done.err
    assert "note: column '' has no name and numbers the rows: it was taken for an index and left out\n" in done.err
    assert "note: " not in done.out


def test_a_report_of_a_table_says_the_notes(inside, tmp_path, monkeypatch):
    monkeypatch.setattr("forgetting.cli.report.MOST_PROCESSES", 1)
    (tmp_path / "a.csv").write_text(text({"id": range(12), **COLUMNS}))
    (tmp_path / "my.toml").write_text(SHORT_REPORT.format(file="'a.csv'") + "sections = ['reductions']\n")
    done = inside("report", "my.toml", "--out", "out")
    assert done.code == 0, done.err
    assert "warning: column 'id' numbers the rows like an index" in done.err
    # without a config the file is the problem, and the options are those of the other commands
    done = inside("report", "a.csv", "--label", "z", "--out", "other")
    assert (done.code, done.out) == (2, "")
    assert "a.csv: no column 'z' for the labels; the columns are id, task, x0" in done.err


#: a table, the options, and what is said: an error in one line, or a note
MISTAKES = {
    "missing label": ({}, ("--label", "price"), 2, "no column 'price' for the labels; the columns are task, x0, "),
    "nearly the label": ({}, ("--label", "Y"), 2, "no column 'Y' for the labels; did you mean 'y'?"),
    "missing task": ({}, ("--task", "taks"), 2, "no column 'taks' for the tasks; did you mean 'task'?"),
    "nothing to drop": ({}, ("--drop", "id"), 2, "no column 'id' to drop; the columns are task, x0"),
    "label dropped": ({}, ("--drop", "y"), 2, "column 'y' holds the tasks or the labels, and cannot be dropped"),
    "words": (
        {"name": ["Ann"] * 12},
        (),
        2,
        "row 2, column 'name': 'Ann' is not a number; if the column is no feature",
    ),
    "words dropped": ({"name": ["Ann"] * 12}, ("--drop", "name"), 0, "note: tasks are in order"),
    "class names": ({"y": ["cat", "dog"] * 6}, (), 2, "'cat' is not a number; for classes, give classes='all'"),
    "no such class": ({"y": ["cat", "dog"] * 6}, ("--positive", "cta"), 2, "no label is 'cta'; did you mean 'cat'?"),
    "class names, one positive": ({"y": ["cat", "dog"] * 6}, ("--positive", "cat"), 0, "note: class 'cat' is seen in"),
    "class numbers": ({"y": [0, 1, 2] * 4}, (), 0, "warning: the labels are the numbers 0, 1, 2, and are learned as "),
    "class numbers, one positive": ({"y": [0, 1, 2] * 4}, ("--positive", "1"), 0, "note: tasks are in order"),
    "index": ({"": range(12)}, (), 0, "note: column '' has no name and numbers the rows: it was taken for an index"),
    "index of pandas": ({"Unnamed: 0": range(12)}, (), 0, "note: column 'Unnamed: 0' has no name and numbers"),
    "index with a name": (
        {"id": range(1, 13)},
        (),
        0,
        "warning: column 'id' numbers the rows like an index, but is a f",
    ),
    "index dropped": ({"id": range(1, 13)}, ("--drop", "id"), 0, "note: tasks are in order"),
    "missing number": ({"x0": ["", *X[1:, 0]]}, (), 2, "row 2, column 'x0': nan or nothing is not a number to compute"),
    "missing number dropped": (
        {"x0": ["", *X[1:, 0]]},
        ("--drop-nan",),
        0,
        "note: mistake.csv: 1 row with missing num",
    ),
    "a label and a task": ({}, ("--task", "y"), 2, "task and label are both 'y'; they are two columns"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_likely_mistakes_are_named(inside, tmp_path, mistake):
    changes, options, code, words = MISTAKES[mistake]
    (tmp_path / "mistake.csv").write_text(text({**COLUMNS, **changes}))
    done = inside("expect", "mistake.csv", "-k", "2", "--quantity", "loss", *options)
    assert (done.code, words in done.err) == (code, True), done.err
    if code == 2:
        assert done.err.startswith("error: ")
        assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            text(COLUMNS, "|"),
            "commas, semicolons and tabs were tried as separators, but the first line is one column, 'ta",
        ),
        (
            text(COLUMNS, " "),
            "commas, semicolons and tabs were tried as separators, but the first line is one column, 'ta",
        ),
        (text(COLUMNS, ";").replace(".", ","), "is not a number; decimals have a point"),
        (
            text(COLUMNS).replace(".", ","),
            "a comma within a number or a word separates columns too: decimals have a poi",
        ),
        (
            text(COLUMNS).replace("\n", "\r\n", 1).replace(",", ";", 21),
            "the header has semicolons between its columns, b",
        ),
        (text(COLUMNS).partition("\n")[2], "its first line holds numbers (b, "),
        ("1,2,3\n4,5,6\n", "its first line holds numbers (1, 2, 3, ...); begin the file with the names of its columns"),
        (
            "task,0,1\n4,5,6\n",
            "no column 'y' for the labels; the columns are task, 0, 1; name it with label= (--label)",
        ),
    ],
    ids=["bars", "spaces", "decimal commas", "comma decimals", "two separators", "no header", "numbers", "no label"],
)
def test_a_wrong_separator_is_named_with_what_was_found(inside, tmp_path, content, words):
    (tmp_path / "a.csv").write_text(content)
    done = inside("expect", "a.csv", "-k", "2")
    assert (done.code, words in done.err) == (2, True), done.err
    assert len(done.err.splitlines()) == 1


def test_of_several_files_each_is_a_task(inside, tmp_path):
    for name, rows in (("north", slice(0, 3)), ("south", slice(3, 6))):
        columns = {column: values[rows] for column, values in COLUMNS.items() if column != "task"}
        (tmp_path / f"{name}.csv").write_text(text(columns))
    done = inside("run", "north.csv", "south.csv", "copies=2", "-o", "cyclic", "-k", "4", "--json")
    assert (done.code, done.err) == (0, "")
    data = json.loads(done.out)
    assert data["meta"]["problem"] == "north.csv, south.csv x 2"
    assert data["meta"]["order"] == [0, 1, 2, 3]
    assert inside("run", "north.csv", "gaussian", "-k", "2").err.startswith(
        "error: expected name=value, got 'gaussian'"
    )


@pytest.mark.parametrize("words", [("gaussian", "T=3", "d=4"), ("saved.npz",), ("my.toml",), ("digits", "split")])
def test_columns_of_what_has_none_are_refused(inside, tmp_path, words):
    fg.families.two_lines(0.5).save(tmp_path / "saved.npz")
    (tmp_path / "my.toml").write_text("[problem]\nfamily = 'orthogonal'\nd = 3\n")
    command = ("audit",) if words[0] == "digits" else ("expect", "-k", "2")
    for option in ("--label", "--task", "--positive", "--drop"):
        done = inside(*command, *words, option, "price")
        assert done.code == 2
        assert f"without columns that {option.lstrip('-')}= ({option}) could name" in done.err


def test_a_config_says_how_its_file_is_read(inside, tmp_path):
    columns = {"group": TASK, "id": range(12), "price": Y, "x": X[:, 0], "z": X[:, 1]}
    (tmp_path / "a.csv").write_text(text(columns))
    (tmp_path / "my.toml").write_text(
        "[problem]\nfile = 'a.csv'\ntask = 'group'\nlabel = 'price'\ndrop = ['id']\n[report]\nk = 5\n"
    )
    done = inside("run", "my.toml", "-k", "2", "--json")
    assert done.code == 0, done.err
    tasks = fg.RegressionTasks.from_arrays(X[:, :2], Y, TASK)
    assert json.loads(done.out)["meta"]["sha256"] == problem_hash(tasks)
    (tmp_path / "my.toml").write_text("[problem]\nfile = 'a.csv'\nlabels = 'price'\n")
    assert "unknown key in [problem] 'labels'; did you mean 'label'?" in inside("run", "my.toml").err


@pytest.mark.parametrize("command", ["run", "expect", "audit"])
def test_results_of_this_library_are_refused_by_name(inside, tmp_path, command):
    fg.claims.Instance(fg.families.two_lines(0.5), "cyclic", k=3).save(tmp_path / "case.npz")
    done = inside(command, "case.npz")
    assert "case.npz: holds 'forgetting/instance/1', a saved instance and no tasks" in done.err
    assert inside("expect", "orthogonal", "d=2", "-k", "2", "--out", "found.json").code == 0
    assert inside("certify", "orthogonal", "d=2", "-k", "2", "--out", "proof.json").code == 0
    (tmp_path / "other.json").write_text("{}")
    for name, words in (
        ("found.json", "holds 'forgetting/report/1', a saved report and no tasks"),
        ("proof.json", "holds 'forgetting/certificate/1', a saved certificate and no tasks"),
        ("other.json", "expected a .csv, .tsv, .parquet or .npz file"),
    ):
        done = inside(command, name)
        assert (done.code, f"{name}: {words}" in done.err) == (2, True), done.err


def test_the_number_of_steps_may_be_written_with_an_exponent(inside):
    for command in ("run", "bounds", "certify"):
        assert inside(command, "orthogonal", "d=2", "-k", "1e1", "--json").out == (
            inside(command, "orthogonal", "d=2", "-k", "10", "--json").out
        )
    for word, said in (("2.5", "a whole number, got 2.5"), ("0", "at least 1, got 0"), ("1e40", "at most 9.22337e+18")):
        assert said in inside("run", "-k", word).err


def test_help_has_the_options_of_files_for_every_command_that_reads_some(inside):
    for command in COMMANDS:
        words = inside(command, "--help").out
        for option in ("--task", "--label", "--positive", "--drop", "--drop-nan"):
            assert f"  {option} " in words
    assert "--label" not in inside("claims", "--help").out
