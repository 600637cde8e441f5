"""Whatever is typed, a user sees a result, or one line that says what is wrong and the exit code 2."""

from __future__ import annotations

import importlib.util
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import forgetting as fg
from effort import rounds
from forgetting.auditing import read_tasks
from forgetting.cli import run_app
from forgetting.cli.problems import read_config
from forgetting.cli.report import settings_from
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.files.tables import Origin
from forgetting.tasks.readers.sheet import Columns, column_places


def short(value: object) -> str:
    """The name of a case."""
    return ascii(value)[1:20]


SCRIPT = Path(__file__).with_name("command_lines.py")
SPEC = importlib.util.spec_from_file_location("command_lines", SCRIPT)
lines = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(lines)


@pytest.mark.parametrize("batch", range(rounds(2, 6)))
def test_odd_command_lines_end_in_a_result_or_in_one_line(batch, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    lines.prepare(tmp_path)
    codes = set()
    for case in range(25):
        line = lines.command_line(random.Random(f"tests {batch} {case}"))
        code, out, err = lines.run(line)
        assert list(lines.faults(code, out, err)) == [], (line, out, err)
        codes.add(code)
    assert codes >= {0, 2}


@pytest.mark.slow
def test_many_odd_command_lines_in_processes_of_their_own():
    done = subprocess.run([sys.executable, SCRIPT, "--cases", "2500", "--seed", "0"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["expect", "two_lines", "theta=1", "-k", "nan"], "whole numbers with commas"),
        (["expect", "two_lines", "theta=1", "-k", "1e400"], "at most 1e+15"),
        (["expect", "two_lines", "theta=1", "-k", "1..1e400"], "at most 1e+15"),
        (["run", "two_lines", "theta=1", "-k", "1" + "0" * 30], "k must be at most 9.22337e+18, got 1e+30"),
        (["run", "--ordering", "explicit 'seq=0"], "no closing quotation"),
        (["run", "--scheme", 'ridge "lam=1'], "no closing quotation"),
        (["run", "--scheme", "ridge lam=" + "9" * 400], "lam must be at most 1.8e+308 in size"),
        (["run", "two_lines", "theta=" + "[" * 1000], "theta must be a number"),
        (["run", "two_lines", "theta=" + "9" * 5000], "theta must be a number, got '9999"),
        (["run", "gaussian", "T=3", "d=4", "seed=-1"], "seed must be at least 0, got -1"),
        (["run", ""], "no family ''"),
        (["run", "a\x00.npz"], "a\\x00.npz"),
        (["run", "folder.npz"], "folder.npz"),
        (["run", "x" * 300 + ".npz"], "File name too long"),
        (["run", "\udc80.npz"], "\\udc80.npz: no such file"),
        (["audit", "a\x00.csv"], "a\\x00.csv: no such file"),
        (["run", "\x1b[31m"], "\\x1b[31m"),
    ],
    ids=short,
)
def test_what_ended_in_a_traceback_is_one_line(line, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.npz").mkdir()
    code, out, err = lines.run(line)
    assert list(lines.faults(code, out, err)) == []
    assert code == 2
    assert words in err


@pytest.mark.parametrize("scheme", ["sgd step_size=1e308", "nlms mu=1e308", "nlms mu=1e150"])
@pytest.mark.parametrize("command", ["run -k 3", "expect -k 1,2", "expect -k 2 --method monte-carlo --runs 1"])
def test_values_that_are_not_finite_come_with_a_word(command, scheme):
    name, *rest = command.split()
    code, out, err = lines.run([name, "rank_one", "T=3", "d=4", *rest, "--scheme", scheme])
    assert (code, err) == (0, "")
    assert "diverge" in out


@pytest.mark.parametrize("width", ["1", "20", "40", "60"])
@pytest.mark.parametrize("line", ["table regression", "table classification -k 10", "table sgd", "claims", "families"])
def test_tables_fit_into_any_terminal(line, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", width)
    assert run_app(line.split()) == 0
    assert capsys.readouterr().out


@pytest.mark.parametrize("digits", [30, 400, 9000])
def test_numbers_of_any_length_are_refused_by_name(digits):
    value = 10**digits
    with pytest.raises(InvalidInputError, match="k must be at most"):
        fg.run(fg.families.two_lines(0.5), fg.orderings.Cyclic(), value)
    with pytest.raises(InvalidInputError, match="k must be at least 0"):
        fg.expect(fg.families.two_lines(0.5), fg.orderings.Cyclic(), -value)
    if digits > 308:
        with pytest.raises(InvalidInputError, match="lam must be at most"):
            fg.schemes.Ridge(value)


def test_a_seed_may_have_any_length():
    tasks, random_order = fg.families.two_lines(0.5), fg.orderings.WithReplacement()
    assert fg.run(tasks, random_order, 3, seed=10**30).k == 3


ODD = ["1979-05-27", "07:32:00", "inf", "nan", "-1.5", "'a'", "''", "[]", "[[1]]", "{a = 1}", "9" * 400]


@pytest.mark.parametrize("value", ODD, ids=short)
@pytest.mark.parametrize("name", ["k", "points", "runs", "hunt", "eps", "orderings"])
def test_odd_settings_of_a_report_are_refused_by_name(name, value, tmp_path):
    path = tmp_path / "my.toml"
    for text in (value, f"[{value}]") if name in ("eps", "orderings") else (value,):
        path.write_text(f"[problem]\nfamily = 'two_lines'\ntheta = 0.5\n[report]\n{name} = {text}\n")
        with pytest.raises(ForgettingError, match=name.rstrip("s")):
            settings_from(read_config(path))


@pytest.mark.parametrize("value", ODD, ids=short)
@pytest.mark.parametrize("name", ["seed", "problem.copies", "problem.theta", "problem.family", "problem.file"])
def test_odd_problems_of_a_config_are_refused(name, value, tmp_path):
    path = tmp_path / "my.toml"
    rest = {"problem.family": "", "problem.file": ""}.get(name, "problem.family = 'two_lines'\n")
    rest += "problem.theta = 0.5\n" if name not in ("problem.theta", "problem.file") else ""
    path.write_text(f"{rest}{name} = {value}\n")
    if (name, value) in (("seed", "9" * 400), ("problem.theta", "-1.5")):
        assert read_config(path).problem.num_tasks == 2
        return
    with pytest.raises(ForgettingError):
        read_config(path)


@pytest.mark.parametrize(
    "text",
    ["a = " + "[" * 5000 + "]" * 5000, "a = {" * 3000, "a = 1\na = 2", "\x00", "a = " + "9" * 5000],
    ids=short,
)
def test_a_config_that_cannot_be_parsed_is_refused(text, tmp_path):
    (tmp_path / "my.toml").write_text(text)
    with pytest.raises(ProblemFileError, match=r"my.toml: not a readable TOML file"):
        read_config(tmp_path / "my.toml")


# ----------------------------------------------------------------------------------------------------- sheets


def sheet(path: Path, columns: int, rows: int = 2) -> Path:
    names = [f"c{i}" for i in range(columns)]
    body = "\n".join(",".join(["t", "1", *("1" * columns)]) for _ in range(rows))
    path.write_text(",".join(["task", "y", *names]) + "\n" + body + "\n")
    return path


class Name(str):
    """A text that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_the_header_is_checked_in_one_pass():
    names = [Name(f"c{i}") for i in range(2000)] + [Name("task"), Name("y")]
    Name.compared = 0
    assert column_places(Origin("a.csv"), names, Columns(), False).label == 2001
    assert Name.compared < 20 * len(names)


def test_many_columns_are_read_and_a_wrong_name_is_compared_with_some(tmp_path):
    path = sheet(tmp_path / "wide.csv", 30_000)
    assert read_tasks(path).tasks.dim == 30_000
    with pytest.raises(ProblemFileError, match="no column 'lable' for the labels; the columns are task, y, c0"):
        read_tasks(path, label="lable")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("task,a,y\nt," + "1" * 200_000 + ",1\n", "column 'a': inf"),
        ("task,a,y\nt,1\x00,1\n", "column 'a'"),
        ("task,a,y\nt,1e400,1\n", "column 'a': inf"),
        ("task," + "a" * 100_000 + "," + "a" * 100_000 + ",y\n1,1,1,1\n", "two columns are called"),
        ("task," + "a" * 100_000 + ",z\n1,1,1\n", "no column 'y'"),
    ],
    ids=short,
)
def test_sheets_with_strange_cells_are_refused_in_a_short_line(text, words, tmp_path):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(ProblemFileError, match=words) as found:
        read_tasks(tmp_path / "a.csv")
    assert len(str(found.value)) < 400 + len(os.fspath(tmp_path))
