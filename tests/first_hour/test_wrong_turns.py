"""The likeliest wrong turns of a first hour: each is told what it is about, and what to do instead."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting.cli import run_app
from forgetting.errors import ForgettingError

TASKS = fg.families.gaussian(T=3, d=4, rank=2, seed=0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fg.load("https://example.org/tasks.csv"), r"nothing is read over a network; download the file"),
        (lambda: fg.expect(TASKS, "random", 3).save("a.csv"), r"a\.csv: an \.npz file would be written.* a\.csv\.npz"),
        (lambda: TASKS.save("a.json"), r"an \.npz file would be written"),
        (
            lambda: fg.bounds.evaluate(TASKS, "random", 3).tightest("risk"),
            r"a quantity must be one of loss, forgetting",
        ),
        (
            lambda: fg.bounds.evaluate(TASKS, "random", 3).applicable("los"),
            r"a quantity must be one of loss, forgetting",
        ),
        (lambda: fg.bounds.evaluate(TASKS, "random", 3).to_latex("los"), r"a quantity must be one of loss, forgetting"),
        (lambda: fg.bounds.get("Theorem 99"), r"see fg\.bounds\.all_bounds\(\)"),
        (lambda: fg.expect(TASKS, "random", 3).plot(), r"has no picture.*; give several k, as in k=\[1, 10, 100\]"),
        (lambda: fg.RegressionTasks(np.ones((4, 3)), np.ones(4)), r"one matrix, of shape \(4, 3\); from_arrays"),
        (lambda: fg.RegressionTasks(sparse.eye_array(3).tocsr(), np.ones(3)), r"one matrix, of shape \(3, 3\)"),
        (
            lambda: fg.Study.grid(families="two_lines", k=2, store=None),
            r"family, with its parameters.*families. alone",
        ),
    ],
)
def test_a_wrong_turn_in_python_is_explained(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ForgettingError, match=message):
        call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("expect mine -k 3", "no family 'mine'; did you mean the file 'mine.csv'?"),
        ("expect mine.cvs", "mine.cvs: no such file; did you mean 'mine.csv'?"),
        ("audit mine.cvs", "mine.cvs: no such file; did you mean 'mine.csv'?"),
        ("bounds ./mone.csv", "mone.csv: no such file; did you mean 'mine.csv'?"),
        ("audit mine.csv --test other.xyz", "other.xyz: no such file"),
        ("expect data/mine", "mine: no such file"),
        ("expect mine.csv --out e.parquet", ".tex, .png or .pdf; in Python, result.to_frame().to_parquet(...) writes"),
        ("run mine.csv task=sensor", "mine.csv is a file and takes copies=n only, got 'task'; say --task sensor"),
        ("solve A.csv b.csv --out x", "x: unknown ending; use .npy, .json, .html, .csv, .tex, .png or .pdf"),
        ("audit mine.csv --out page", "page: unknown ending; use .txt, .json, .html, .csv, .tex, .png or .pdf"),
        ("worst-case a 2", "Invalid value for 'T': T must be a whole number, got 'a'"),
        ("table 4", "no table '4'; there are regression, classification, sgd"),
    ],
)
def test_a_wrong_turn_in_a_shell_is_explained(line, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("mine.csv").write_text("task,a,y\ns,1,1\nt,2,3\n")
    Path("A.csv").write_text("1,2\n3,4\n")
    Path("b.csv").write_text("1\n2\n")
    assert run_app(line.split()) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_tables_and_statements_go_by_their_numbers_in_a_shell_too(capsys):
    said = []
    for name in ("regression", "1", "table 1", "Table 1", "Table1", "tab. 1"):
        assert run_app(["table", name]) == 0
        said.append(capsys.readouterr().out)
    assert len(set(said)) == 1
    for name in ("thm:random_convergence_rate", "Theorem 8"):
        assert run_app(["claims", name]) == 0
        said.append(capsys.readouterr().out)
    assert said[-1] == said[-2]


def test_a_system_may_be_in_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    A, x = np.random.default_rng(0).standard_normal((30, 6)), np.arange(6.0)
    for name, array in {"A": A, "b": A @ x, "x0": x + 0.1}.items():
        np.save(f"{name}.npy", array)
    for b, x0 in (("b.npy", Path("x0.npy")), (A @ x, None)):
        np.testing.assert_allclose(fg.solve("A.npy", b, 1e-10, x0=x0).x, x, atol=1e-8)


def test_bounds_that_a_study_asks_of_a_quantity_without_any_are_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = fg.Study.grid(
            family="two_lines", theta=0.5, k=[2, 3], quantities=["loss", "seen_loss"], bounds=True, store=None
        )
    rows = study.run(progress=False).rows()
    assert [row["seen_loss_bound"] for row in rows] == [None, None]
    assert all(row["loss_bound"] > 0 for row in rows)
