"""What cannot be used is refused: one clean line on stderr, exit code 2, nothing written."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg


def refused(done, *words: str) -> bool:
    lines = done.err.splitlines()
    assert done.code == 2, (done.code, done.err)
    assert len(lines) == 1, done.err
    assert lines[0].startswith("error: ")
    assert done.out == ""
    for word in words:
        assert word in lines[0], lines[0]
    return True


@pytest.mark.parametrize("command", ["run", "expect", "bounds", "certify", "report"])
def test_a_missing_file(inside, command):
    assert refused(inside(command, "nowhere.npz"), "nowhere.npz: no such file")


def test_a_missing_file_in_a_process_of_its_own(forgetting):
    assert refused(forgetting("run", "nowhere.npz"), "nowhere.npz: no such file")


def test_a_missing_config(inside):
    assert refused(inside("report", "--config", "nowhere.toml"), "nowhere.toml: no such file")


def test_an_unreadable_npz(inside, tmp_path):
    (tmp_path / "noise.npz").write_bytes(b"not an archive at all")
    assert refused(inside("expect", "noise.npz"), "noise.npz", "not a readable .npz file")


def test_a_truncated_npz(inside, tmp_path):
    fg.families.two_lines(0.5).save(tmp_path / "whole.npz")
    whole = (tmp_path / "whole.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    assert refused(inside("expect", "half.npz"), "half.npz", "not a readable .npz file")


def test_an_npz_of_something_else(inside, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    assert refused(inside("expect", "other.npz"), "other.npz: no column 'y' for the labels; the columns are a")


class Bomb:
    """Unpickling it would leave a file behind."""

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def test_pickled_objects_are_never_loaded(inside, tmp_path):
    np.savez(tmp_path / "objects.npz", allow_pickle=True, X=np.array([Bomb()], dtype=object))
    assert refused(inside("expect", "objects.npz"), "objects.npz", "pickled objects, which are never loaded")
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Bomb()))
    assert refused(inside("expect", "plain.npz"), "plain.npz", "never loaded")
    assert not (tmp_path / "exploded").exists()


def test_a_config_with_an_unknown_key(inside, tmp_path):
    (tmp_path / "my.toml").write_text("[problem]\nfamily = 'orthogonal'\nd = 3\n[report]\nordering = ['cyclic']")
    done = inside("report", "--config", "my.toml")
    assert refused(done, "my.toml: unknown key in [report] 'ordering'; did you mean 'orderings'?")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[problem]\nfamily = 'orthogonal'\nfile = 'a.npz'",
            ("needs one of family, file and tasks, not family and file",),
        ),
        ("[problem]\nfamily = 'orthogonal'\nd = 3\ncopies = 0", ("copies must be at least 1, got 0",)),
        ("[[problem.tasks]]\nX = [[1, 2], [3]]\ny = [1, 2]", ("task 0, X: rows of different lengths",)),
        ("[[problem.tasks]]\nX = [[1, 2]]\ny = ['a']", ("task 0, y: expected real numbers, got text such as 'a'",)),
        ("sed = 1\n[problem]\nfamily = 'orthogonal'\nd = 3", ("'sed'", "did you mean 'seed'?")),
        ("[problem]\nfamily = 'orthogonal'\nd = 3\n[report]\nordering = ['cyclic']", ("'ordering'", "'orderings'?")),
        ("[problem]\nfamily = 'gaussian'\nT = 3\nd = 4\nrnak = 2", ("'rnak'", "did you mean 'rank'?")),
        ("[problem]\nfamily = 'gausian'", ("'gausian'", "did you mean 'gaussian'?")),
        ("[problem]\nfamily = 'orthogonal'\nd = 3\n[report]\norderings = ['cylic']", ("'cylic'", "'cyclic'?")),
        ("[problem]\nfamily = 'orthogonal'\nd = 3\n[report]\norderings = 'cyclic'", ("orderings", "a list")),
        ("[problem]\nfamily = 'orthogonal'\nd = 3\n[report]\nk = 'many'", ("k", "many")),
        ("[problem]\nfamily = 'orthogonal'\nd = 3\n[report]\neps = []", ("eps is empty",)),
        ("[problem]\nfile = 'nowhere.npz'", ("nowhere.npz: no such file",)),
        ("[problem]\nfile = 'a.npz'\nfamily = 'gaussian'", ("one of family, file and tasks",)),
        ("[problem]\n", ("one of family, file and tasks",)),
        ("problem = 3", ("[problem]",)),
        ("[[problem.tasks]]\nX = [[1]]\nz = [1]", ("'z'", "task 0")),
        ("[[problem.tasks]]\nX = [[1]]", ("task 0 needs X",)),
        ("[[problem.tasks]]\nX = [[nan]]\ny = [1]", ("task 0", "nan")),
        ("this is not toml", ("not a readable TOML file",)),
        ("seed = -1\n[problem]\nfamily = 'orthogonal'\nd = 3", ("seed",)),
    ],
)
def test_a_config_that_is_wrong(inside, tmp_path, text, words):
    (tmp_path / "my.toml").write_text(text)
    assert refused(inside("report", "--config", "my.toml"), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "gausian"), ("'gausian'", "did you mean 'gaussian'?")),
        (("run", "gaussian"), ("needs T=..., d=...",)),
        (("run", "gaussian", "T=3", "d=2", "rank=5"), ("rank of task 0 is 5",)),
        (("run", "gaussian", "T=3", "d"), ("name=value", "'d'")),
        (("run", "gaussian", "T=3", "T=4"), ("T is given twice",)),
        (("run", "two_lines", "theta=wide"), ("theta", "wide")),
        (("run", "--ordering", "cylic"), ("'cylic'", "did you mean 'cyclic'?")),
        (("run", "--ordering", "without-replacement", "-k", "99"), ("ends after 12 steps", "k = 99")),
        (("run", "--scheme", "ridge"), ("scheme ridge needs lam=...",)),
        (("run", "--scheme", "pocks"), ("'pocks'", "did you mean 'pocs'?")),
        (("run", "-k", "0"), ("--k", "forgetting run --help")),
        (("run", "-k", "many"), ("--k",)),
        (("run", "--seed", "-1"), ("--seed",)),
        (("run", "--colour", "red"), ("--colour",)),
        (("runn",), ("'runn'", "forgetting --help")),
        (("expect", "-k", "1,two"), ("whole numbers", "1,two")),
        (("expect", "-k", "9..3"), ("9..3",)),
        (("expect", "--method", "magic"), ("'magic'",)),
        (("expect", "-o", "cyclic", "--method", "moments"), ("moments",)),
        (("bounds", "--quantity", "los"), ("'los'", "did you mean 'loss'?")),
        (("expect", "--quantity", "los"), ("no quantity 'los'", "did you mean 'loss'?")),
        (("expect", "--quantity", "task_losses"), ("no quantity 'task_losses'",)),
        (("table", "regresion"), ("'regresion'", "did you mean 'regression'?")),
        (("table", "regression", "two_lines", "theta=1"), ("--k",)),
        (("table", "sgd", "--format", "word"), ("'word'",)),
        (("claims", "thm:none_such"), ("'thm:none_such'",)),
        (("families", "gausian"), ("'gausian'", "did you mean 'gaussian'?")),
        (("report", "two_lines", "theta=1", "--config", "my.toml"), ("not both",)),
    ],
)
def test_wrong_usage_names_the_value_and_the_remedy(inside, tmp_path, arguments, words):
    assert refused(inside(*arguments), *words)
    assert list(tmp_path.iterdir()) == []


def test_tasks_that_are_not_realizable_have_a_floor_and_a_horizon(inside, tmp_path):
    fg.RegressionTasks([[[1.0]], [[1.0]]], [[1.0], [2.0]]).save(tmp_path / "clash.npz")
    done = inside("bounds", "clash.npz", "-k", "3", "--quantity", "all", "--all")
    assert done.code == 0
    assert "the least-squares floor" in done.out
    assert "tightest on the loss: at most 0.25, projections with noise: the loss" in done.out
    assert "needs jointly realizable tasks" in done.out


@pytest.mark.parametrize(
    "call",
    [("expect", "-k", "1", "--out", "{}.json"), ("certify", "-k", "2", "--out", "{}.json"), ("report", "--out", "{}")],
)
def test_an_unwritable_folder(forgetting, tmp_path, call):
    (tmp_path / "wall").write_text("a file, not a folder")
    inside = "wall/inside"
    done = forgetting(*(part.format(inside) for part in call))
    assert refused(done, "wall/inside", "cannot be written")
    if os.name == "posix" and os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "closed").mkdir(mode=0o500)
        assert refused(forgetting(*(part.format("closed/inside") for part in call)), "cannot be written")


@pytest.mark.parametrize("call", [("expect", "-k", "1"), ("certify", "-k", "2"), ("run", "-k", "2"), ("table", "sgd")])
def test_force_replaces_what_this_program_wrote_and_nothing_else(inside, tmp_path, call):
    target = tmp_path / "found.json"
    target.write_text("mine")
    assert refused(inside(*call, "--out", "found.json"), "found.json exists and is kept", "--force")
    assert refused(inside(*call, "--out", "found.json", "--force"), "found.json", "not as forgetting wrote it", "kept")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    target.unlink()
    assert inside(*call, "--out", "found.json").code == 0
    first = target.read_text()
    assert inside(*call, "--out", "found.json", "--force").code == 0
    assert target.read_text().startswith("{")
    target.write_text(first + " ")  # changed by hand
    assert refused(inside(*call, "--out", "found.json", "--force"), "found.json", "not as forgetting wrote it", "kept")
    assert {path.name for path in tmp_path.iterdir()} == {".forgetting", "found.json"}


def test_an_unknown_ending(inside, tmp_path):
    assert refused(inside("run", "-k", "2", "--out", "found.docx"), "unknown ending", ".json")
    assert list(tmp_path.iterdir()) == []


def test_a_table_has_no_picture(inside, tmp_path: Path):
    assert refused(inside("table", "sgd", "--out", "found.png"), "no figure")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run gaussian T=3 d=5 -k 1000000000000000", "use fewer steps"),
        ("expect gaussian T=3 d=5 -k 99999999999999999999999", "k must be at most 1e+15, got 1e+23"),
        ("run catastrophic eps=1e-9", "eps must be at least 0.01 (some 700,000 tasks), got 1e-09"),
    ],
)
def test_a_number_that_is_too_large(inside, line, words):
    assert refused(inside(*line.split()), words)
