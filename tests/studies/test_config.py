"""Studies as TOML files: what they say is what is computed, and what they cannot mean is named."""

import re
import shlex
from pathlib import Path

import pytest

import forgetting as fg
from forgetting.errors import ForgettingError
from forgetting.studies import functions
from forgetting.studies.study_file import read_study

GAUSSIAN = "family = 'gaussian'\nd = 9\nrank = 1\nk = [5, 50]\n"


def write(folder, text, name="my.toml"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_the_same_study_as_the_grid(tmp_path):
    path = write(tmp_path, f"seed = 3\nrepeats = 2\n[cells]\n{GAUSSIAN}T = [2, 4]\nordering = ['cyclic', 'reshuffled']")
    study = fg.Study.from_toml(path)
    same = fg.Study.grid(
        family="gaussian", d=9, rank=1, k=[5, 50], T=[2, 4], ordering=["cyclic", "reshuffled"], repeats=2, seed=3
    )
    assert [cell.key for cell in study.cells] == [cell.key for cell in same.cells]
    assert len(study) == 8
    assert study.path == tmp_path / "my.db"


def test_several_tables_have_repeats_of_their_own_and_come_one_after_the_other(tmp_path):
    text = f"repeats = 2\nstore = 'other.db'\n[[cells]]\n{GAUSSIAN}T = 2\n[[cells]]\n{GAUSSIAN}T = [3, 4]\nrepeats = 3"
    settings = read_study(write(tmp_path, text))
    assert [(cell["T"], cell["repeat"]) for cell in settings.cells] == [
        (2, 0), (2, 1), (3, 0), (3, 1), (3, 2), (4, 0), (4, 1), (4, 2),
    ]  # fmt: skip
    assert settings.store == tmp_path / "other.db"


def test_a_function_of_a_file_beside_the_study_is_sent_to_processes_that_cannot_import_it(tmp_path):
    write(
        tmp_path,
        "from __future__ import annotations\nfrom dataclasses import dataclass\n\n\n@dataclass\nclass Pair:\n"
        "    a: int\n\n\ndef twice(a, seed):\n    return {'twice': 2 * Pair(a).a, 'list': [a], 'seed_given': seed}\n",
        "mine.py",
    )
    path = write(tmp_path, "function = 'mine.py:twice'\n[cells]\na = [1, 2, 3]")
    allowed = {"function": f"{tmp_path}/mine.py:twice"}
    study = fg.Study.from_toml(path, **allowed).run(jobs=2, progress=False)
    rows = study.rows()
    assert [row["twice"] for row in rows] == [2, 4, 6]
    assert all(row["seed_given"] == row["seed"] for row in rows)
    assert fg.Study.from_toml(path).status.done == fg.Study.from_toml(path, **allowed).status.done == 3
    source = (tmp_path / "mine.py").read_text()
    (tmp_path / "mine.py").write_text(source.replace("2 *", "3 *"))
    edited = fg.Study.from_toml(path, **allowed)
    assert edited.status.waiting == 3  # an edited function is computed again
    assert [row["twice"] for row in fg.Study.from_toml(path).rows()] == [2, 4, 6]  # what the last run computed
    edited.run(progress=False)
    assert [row["twice"] for row in fg.Study.from_toml(path).rows()] == [3, 6, 9]
    (tmp_path / "mine.py").write_text(source)
    fg.Study.from_toml(path, **allowed).run(progress=False)
    assert [row["twice"] for row in fg.Study.from_toml(path).rows()] == [2, 4, 6]


def test_a_function_of_a_module(tmp_path):
    path = write(tmp_path, "function = 'forgetting.studies:measure'\n[cells]\nfamily = 'orthogonal'\nd = 3")
    assert fg.Study.from_toml(path).function.call is fg.studies.measure


TRACES = {  # each would leave a file
    "a module of Python": ("os:system", "command = 'touch trace'"),
    "a file beside the study": ("mine.py:f", "a = 1"),
    "a module beside the study": ("mine:f", "a = 1"),
    "a function of this package": ("forgetting.core.plugins:load_plugin", "name = 'mine.py'"),
    "a part of a function of this package": ("forgetting.studies.measuring:os.system", "command = 'touch trace'"),
    "another name of a function of this package": ("forgetting.studies.functions:made_function", "name = 'mine:f'"),
}


@pytest.mark.parametrize("name", TRACES)
def test_no_file_runs_code_that_the_user_did_not_allow(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    function, values = TRACES[name]
    write(tmp_path, "open('trace', 'w').close()\ndef f(a):\n    return a\n", "mine.py")
    path = write(tmp_path, f"function = '{function}'\n[cells]\n{values}")
    study = fg.Study.from_toml("my.toml")
    assert study.status.waiting == 1
    assert study.rows() == []
    with pytest.raises(ForgettingError) as caught:
        study.run(progress=False)
    assert f"forgetting study run my.toml --function {function} (" in str(caught.value)
    assert {file.name for file in tmp_path.iterdir()} == {path.name, "mine.py"}


def test_the_command_that_allows_a_function_can_be_copied_whatever_the_file_says(tmp_path):
    path = write(tmp_path, "function = '$(touch trace)/my file.py:f'\n[cells]\na = 1")
    with pytest.raises(ForgettingError) as caught:
        fg.Study.from_toml(path).run(progress=False)
    command = str(caught.value).partition("allow it: ")[2].partition(" (in Python")[0]
    words = ["forgetting", "study", "run", str(path), "--function", f"{tmp_path}/$(touch trace)/my file.py:f"]
    assert shlex.split(command) == words
    for odd in ("mine.py:f; touch trace", "mine.py:f\\n", "mine.py", ":f", "m" * 500 + ":f"):
        with pytest.raises(ForgettingError, match="function must be a text such as"):
            fg.Study.from_toml(write(tmp_path, f'function = "{odd}"\n[cells]\na = 1'))


def test_a_function_given_in_python_or_registered_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(functions.functions, "_members", dict(functions.functions._members))

    def double(a):
        return 2 * a

    path = write(tmp_path, f"function = '{__name__}:double'\n[cells]\na = 4")
    double.__qualname__ = "double"
    assert fg.Study.from_toml(path, function=double).run(progress=False).results() == [{"value": 8}]
    with pytest.raises(ForgettingError, match=r"names the function '.*:double', and 'builtins:abs' is given"):
        fg.Study.from_toml(path, function=abs)
    fg.studies.register(double)
    assert fg.Study.from_toml(path).function.call is double
    with pytest.raises(ForgettingError, match="names no function"):
        fg.Study.from_toml(write(tmp_path, f"[cells]\n{GAUSSIAN}T = 2"), function=double)


def test_no_function_takes_the_name_of_one_of_this_package(monkeypatch):
    def measure(**values):
        return values

    measure.__module__, measure.__qualname__ = fg.studies.measure.__module__, "measure"
    with pytest.raises(ForgettingError, match=r"already a function 'forgetting\.studies\.measuring:measure'"):
        fg.studies.register(measure)


def test_files_are_beside_the_study_and_their_folder_does_not_change_the_cell(tmp_path, monkeypatch):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        fg.families.two_lines(0.5).save(tmp_path / folder / "tasks.npz")
        write(tmp_path / folder, "[cells]\nfile = 'tasks.npz'\nk = 4")
    first, second = (fg.Study.from_toml(tmp_path / folder / "my.toml") for folder in ("one", "two"))
    assert first.cells[0].key == second.cells[0].key
    assert first.cells[0].seed == second.cells[0].seed
    first.run(progress=False)
    monkeypatch.chdir(tmp_path / "one")
    near = fg.Study.from_toml("my.toml")
    assert near.status.done == 1
    exact = fg.expect(fg.families.two_lines(0.5), "with-replacement", 4).loss
    assert near.rows()[0]["loss"] == pytest.approx(exact, rel=1e-12)
    fg.families.two_lines(0.25).save(tmp_path / "one" / "tasks.npz")  # a file that changed is measured again
    assert fg.Study.from_toml("my.toml").status.done == 0


BAD = {
    "no TOML": ("[cells", "not a readable TOML file"),
    "an unknown key": (f"repeat = 2\n[cells]\n{GAUSSIAN}T = 2", "unknown key 'repeat'; did you mean 'repeats'?"),
    "no cells": ("seed = 1", "no [cells]"),
    "cells that are no table": ("cells = 3", "cells must be a table"),
    "no tables": ("cells = []", "cells must be a table"),
    "a key of the study in the table": (f"[cells]\n{GAUSSIAN}T = 2\nstore = 'a.db'", "write it above the first table"),
    "an unknown parameter": (f"[cells]\n{GAUSSIAN}T = 2\nranks = 3", "no parameter 'ranks'"),
    "an unknown family": ("[cells]\nfamily = 'gausian'", "no family 'gausian'; did you mean 'gaussian'?"),
    "an axis without values": (f"[cells]\n{GAUSSIAN}T = []", "T: this axis of the grid has no values"),
    "a wrong number of repeats": (f"repeats = 0\n[cells]\n{GAUSSIAN}T = 2", "repeats"),
    "repeats of a table": (f"[[cells]]\n{GAUSSIAN}T = 2\n[[cells]]\n{GAUSSIAN}T = 3\nrepeats = 'x'", "[[cells]] 1"),
    "a wrong seed": (f"seed = -1\n[cells]\n{GAUSSIAN}T = 2", "seed"),
    "a wrong store": (f"store = 3\n[cells]\n{GAUSSIAN}T = 2", "store must be the name of a file"),
    "the same cell twice": (f"[[cells]]\n{GAUSSIAN}T = 2\n[[cells]]\n{GAUSSIAN}T = 2", "cell 1 is the same as cell 0"),
    "a date": ("[cells]\nfamily = 'orthogonal'\nd = 2020-01-01", "cell 0, d"),
    "a missing file": ("[cells]\nfile = 'missing.npz'", "missing.npz"),
    "a function that is no text": ("function = 3\n[cells]\na = 1", "function must be a text"),
    "a function without a home": ("function = 'f'\n[cells]\na = 1", "function must be a text"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_file_cannot_mean_is_named_with_the_file(tmp_path, name):
    text, words = BAD[name]
    path = write(tmp_path, text)
    with pytest.raises(ForgettingError) as caught:
        fg.Study.from_toml(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert not path.with_suffix(".db").exists()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("gone.py:f", "gone.py: no such file"),
        ("here.py:f", "has no attribute 'f'"),
        ("fails.py:f", "ZeroDivisionError"),
        ("no_such_module_at_all:f", "no_such_module_at_all"),
        ("f", "expected a name as in 'module:function'"),
        (3, "expected a function"),
    ],
)
def test_a_function_that_cannot_be_had_is_named_with_the_file_of_the_study(tmp_path, monkeypatch, function, said):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "", "here.py")
    write(tmp_path, "1 / 0\n", "fails.py")
    path = write(tmp_path, "function = 'any.py:f'\n[cells]\na = 1")
    with pytest.raises(ForgettingError) as caught:
        fg.Study.from_toml(path, function=function)
    assert said in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_missing_study_is_named(tmp_path):
    with pytest.raises(ForgettingError, match="no such file"):
        fg.Study.from_toml(tmp_path / "gone.toml")


def test_the_page_on_studies_says_what_is_true(tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (config,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    study = fg.Study.from_toml(write(tmp_path, config))
    assert len(study) == 3 * 3 * 2 * 20
    grid, own, _ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec(grid.split("study.run")[0], names)
    assert [cell.key for cell in names["study"].cells] == [cell.key for cell in study.cells]
    monkeypatch.chdir(tmp_path)
    exec(own, {"fg": fg, "__name__": "mine"})
    rows = fg.Study.open("decay.db").rows()
    assert len(rows) == 40
    assert all(0 < row["halved"] < 1 for row in rows)


def test_cells_of_a_file_say_how_it_is_read(tmp_path):
    rows = [f"{i % 3 + 10 * (i % 2)},{i * i % 7}.5,{i % 5},{i % 3},{i}" for i in range(60)]
    (tmp_path / "digits.csv").write_text("\n".join(["session,a,b,class,id", *rows]))
    text = "[cells]\nfile = 'digits.csv'\ntask = 'session'\nlabel = 'class'\ndrop = ['id']\nk = 3\n"
    path = write(
        tmp_path, f"{text}ordering = 'cyclic'\nclasses = ['all', 'none']\nintercept = true\nquantities = ['loss']"
    )
    study = fg.Study.from_toml(path).run(progress=False)
    options = {"task": "session", "label": "class", "drop": ["id"], "intercept": True}
    for row, classes in zip(study.rows(), ("all", None), strict=True):
        tasks = fg.load(tmp_path / "digits.csv", classes=classes, **options)
        assert tasks.outputs == (3 if classes else None)
        assert row["loss"] == pytest.approx(fg.expect(tasks, "cyclic", 3).loss)
    for wrong, words in (
        ("lable = 'class'", "a file has no option 'lable'; did you mean 'label'?"),
        ("theta = 0.5", "a file has no option 'theta'"),
        ("classes = 'most'", "classes must be one of auto, all, task, none, got 'most'"),
    ):
        with pytest.raises(ForgettingError, match=re.escape(words)):
            fg.Study.from_toml(write(tmp_path, f"[cells]\nfile = 'digits.csv'\n{wrong}", "wrong.toml"))
