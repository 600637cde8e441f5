"""`fg.load` and the commands prepare what they read: one set of options for every source."""

import json

import numpy as np
import pandas as pd
import pytest

import forgetting as fg
from forgetting.auditing import read_tasks
from forgetting.cli.problems import Source, read_config
from forgetting.errors import InvalidInputError
from forgetting.report.provenance import problem_hash
from forgetting.tasks import RandomFeatures
from forgetting.tasks.readers import Columns

FRAME = pd.DataFrame(
    {
        "task": ["a", "b", "a", "b", "b", "a"],
        "size": [1.0, 4.0, 3.5, 2.0, 6.5, 5.0],
        "tax": [7.0] * 6,
        "rooms": [2.0, 1.0, 5.0, 3.0, 2.5, 0.5],
        "y": [10.5, 11.25, 12.0, 9.5, 8.75, 10.0],
    }
)
PLAIN = fg.load(FRAME)
OPTIONS = {"intercept": True, "standardize": "first", "loss": "mean"}


def sources(folder):
    FRAME.to_csv(folder / "rows.csv", index=False)
    PLAIN.save(folder / "saved.npz")
    X = FRAME[["size", "tax", "rooms"]].to_numpy()
    return {
        "frame": FRAME,
        "csv": folder / "rows.csv",
        "saved": folder / "saved.npz",
        "problem": PLAIN,
        "arrays": (X, FRAME["y"], FRAME["task"]),
        "pairs": {name: PLAIN.task(m) for m, name in enumerate(PLAIN.names)},
    }


@pytest.mark.parametrize("name", ["frame", "csv", "saved", "problem", "arrays", "pairs"])
def test_every_source_is_prepared_alike(name, tmp_path):
    source = sources(tmp_path)[name]
    expected = PLAIN.prepared(**OPTIONS)
    found = fg.load(source, **OPTIONS)
    assert problem_hash(found) == problem_hash(expected)
    assert found.loss_kind == "mean"
    assert found.preparation.in_words == expected.preparation.in_words
    assert f"X was prepared: {expected.preparation.in_words}" in found.notes
    column = "'tax'" if name in ("frame", "csv") else "1"
    assert f"one column is constant in the first task and 0 after standardizing: {column}" in found.notes
    means = fg.load(source, loss="mean")
    assert (means.loss_kind, means.preparation, means.dim) == ("mean", None, 3)
    lifted = fg.load(source, features=RandomFeatures(8, seed=3))
    np.testing.assert_allclose(lifted.task(1)[0], RandomFeatures(8, seed=3)(PLAIN.task(1)[0]), rtol=1e-13, atol=1e-14)


def test_the_readers_of_the_audit_take_the_same_options_and_name_the_columns(tmp_path):
    sources(tmp_path)
    found = read_tasks(tmp_path / "rows.csv", intercept=True)
    assert found.features == ("size", "tax", "rooms", "intercept")
    assert found.notes == found.tasks.notes
    assert read_tasks(tmp_path / "rows.csv", features=2).features == ("feature 0", "feature 1")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"standardize": "frist"}, "did you mean 'first'"),
        ({"features": 0}, "the number of features must be at least 1, got 0"),
        ({"intercept": "yes"}, "intercept must be True or False, got 'yes'"),
        ({"loss": "max"}, "loss must be 'sum' or 'mean', got 'max'"),
        ({"intercpt": True}, "no option 'intercpt'; did you mean 'intercept'"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(InvalidInputError, match=words):
        fg.load(FRAME, **options)


def test_families_and_configs_can_be_prepared_too(tmp_path):
    family = Source(["gaussian", "T=3", "d=4", "rank=2", "copies=2"], 5, Columns(intercept=True, features=6)).load()
    plain = fg.families.gaussian(T=3, d=4, rank=2, seed=5)
    expected = fg.families.repeated(plain.prepared(intercept=True, features=RandomFeatures(6, seed=5)), 2)
    assert problem_hash(family.problem) == problem_hash(expected)
    assert family.origin["preparation"] == ("6 random relu features (scale 1, seed 5), an intercept as the last column")
    assert "preparation" not in Source(["two_lines", "theta=0.5"]).load().origin
    sources(tmp_path)
    configs = {
        "file = 'rows.csv'": PLAIN,
        "family = 'gaussian'\nT = 3\nd = 4\nrank = 2": fg.families.gaussian(T=3, d=4, rank=2, seed=7),
        "[[problem.tasks]]\nX = [[1.0, 2.0], [3.0, 5.0]]\ny = [1.0, 2.5]": fg.RegressionTasks(
            [[[1.0, 2.0], [3.0, 5.0]]], [[1.0, 2.5]]
        ),
    }
    for source, tasks in configs.items():
        options = "intercept = true\nstandardize = 'first'\nloss = 'mean'\nfeatures = 9\n"
        (tmp_path / "my.toml").write_text(f"seed = 7\n[problem]\n{options}{source}\n")
        found = read_config(tmp_path / "my.toml").problem
        wanted = tasks.prepared(**OPTIONS, features=9, seed=7)
        assert problem_hash(found) == problem_hash(wanted)
    with pytest.raises(
        InvalidInputError, match=r"my.toml is a config, .*intercept= \(--intercept\) would have no effect"
    ):
        read_config(tmp_path / "my.toml", columns=Columns(intercept=True))


COMMANDS = {
    "run": ("-k", "3"),
    "expect": ("-k", "3"),
    "bounds": ("-k", "3"),
    "certify": ("-k", "2"),
    "table": ("-k", "3"),
}


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    def call(*words):
        from forgetting.cli import run_app

        sources(tmp_path)
        monkeypatch.chdir(tmp_path)
        assert run_app(list(words)) == 0
        return capsys.readouterr()

    return call


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_the_options_and_says_what_was_done(name, command):
    before = ("regression",) if name == "table" else ()
    words = (name, *before, "rows.csv", *COMMANDS[name], "--json")
    said = command(*words, "--intercept", "--standardize", "all", "--features", "40", "--seed", "2", "--loss", "mean")
    meta = json.loads(said.out)["meta"]
    wanted = PLAIN.prepared(intercept=True, standardize="all", features=40, seed=2, loss="mean")
    assert meta["sha256"] == problem_hash(wanted)
    assert meta["preparation"] == wanted.preparation.in_words
    assert f"note: X was prepared: {wanted.preparation.in_words}" in said.err
    if name in ("run", "expect"):  # for the others, 6 rows need more than 3 features
        assert "preparation" not in json.loads(command(*words).out)["meta"]


def test_a_run_with_an_intercept_prints_another_loss(command):
    plain, lifted = (
        command("run", "rows.csv", "--drop", "tax", "-o", "cyclic", "-k", "2", *more).out
        for more in ((), ("--intercept",))
    )
    losses = [float(out.split("loss ", 1)[1].split()[0]) for out in (plain, lifted)]
    assert losses[0] == losses[1] == pytest.approx(PLAIN.loss(np.zeros(3)), rel=1e-3)  # at the start
    tables = [next(line.split() for line in out.splitlines() if line.split()[:1] == ["2"]) for out in (plain, lifted)]
    two_features = fg.load(FRAME, drop="tax")  # a constant feature would do as well as an intercept
    for row, tasks in zip(tables, (two_features, two_features.prepared(intercept=True)), strict=True):
        assert float(row[2]) == pytest.approx(fg.run(tasks, "cyclic", 2).losses[-1], rel=1e-3)
    assert tables[0][2] != tables[1][2]


def test_an_audit_reads_the_options_too(command):
    said = command("audit", "rows.csv", "--intercept", "--loss", "mean", "--json")
    assert "X was prepared: an intercept as the last column" in json.loads(said.out)["notes"]
