"""`forgetting audit --class-tasks`: a file with labels is audited over class orders."""

import json

import numpy as np
import pytest

import forgetting as fg


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A file with learned rows and a file with held-out rows of four classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names = ["ant", "bee", "cat", "dog"]
    centres = rng.standard_normal((4, 6))
    for file, count in (("train.csv", 5), ("test.csv", 8)):
        lines = ["a,b,c,d,e,f,kind"]
        for code, name in enumerate(names):
            X = centres[code] + rng.standard_normal((count, 6))
            lines += [",".join([*(f"{x:.6f}" for x in row), name]) for row in X]
        (tmp_path / file).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_a_file_is_audited_over_class_orders(inside, rows):
    order, scheme = "dog,cat,bee,ant", "ridge lam=2"
    words = ("train.csv", "--class-tasks", "2", "--test", "test.csv", "--label", "kind", "--scheme", scheme)
    done = inside("audit", *words, "--order", order, "--json", "--out", "page.html")
    data = json.loads(done.out)
    splits = fg.ClassSplits.from_table("train.csv", 2, "test.csv", label="kind")
    audit = fg.audit(splits, order=order.split(","), scheme=scheme, title="train.csv")
    assert data == json.loads(audit.to_json())
    assert data["drawn"] == 6
    assert "Class orders of train.csv" in (rows / "page.html").read_text(encoding="utf-8")
    assert "The given class order, cat, dog | ant, bee, reaches" in " ".join(
        inside("audit", *words, "--order", order).out.split()
    )


def test_sizes_and_outputs_are_chosen(inside, rows):
    done = inside("audit", "train.csv", "--class-tasks", "1,3", "--label", "kind", "--classes", "task", "--json")
    data = json.loads(done.out)
    assert (data["sizes"], data["outputs"], data["held_out"]) == ([1, 3], "task", False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--rows", "5"], "--class-tasks compares class orders, and --rows is for tasks; leave --rows out"),
        (["--passes", "4"], "--passes is for tasks"),
        (["--class-tasks", "9"], "tasks = 9, but there are only 4 classes"),
        (["--class-tasks", "two"], "tasks"),
        (["--classes", "none"], "--classes none"),
        (["--order", "ant,bee"], "without classes 'cat' and 'dog'"),
        (["--test", "none.csv"], "none.csv"),
    ],
)
def test_what_is_wrong_is_named(inside, rows, words, message):
    done = inside("audit", "train.csv", "--class-tasks", "2", "--label", "kind", *words)
    assert done.code == 2
    assert message in " ".join(done.err.split())


def test_images_are_audited_too(inside, rows):
    done = inside("audit", "digits", "--class-tasks", "5,5")
    assert "over all 252 class orders" in " ".join(done.out.split())
    assert "'split' is more" in inside("audit", "digits", "split", "--class-tasks", "5").err
