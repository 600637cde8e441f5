"""Three people's first hour, from the source tree; `make wheel` runs the same scripts from the wheel alone."""

from __future__ import annotations

import ast
import re
import runpy
import warnings

import numpy as np
import pytest

import forgetting as fg
from first_hour.run_all import HERE, SCRIPTS, prepare


@pytest.fixture
def folder(tmp_path, monkeypatch):
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed_by(name, capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_short_and_uses_public_names(name):
    text = (HERE / f"{name}.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(('"""', "#"))]
    assert len(lines) <= 15
    used = re.findall(r"\bfg((?:\.\w+)+)", text)
    assert used
    for path in used:
        thing = fg
        for part in path.removeprefix(".").split("."):
            assert part in getattr(thing, "__all__", [part])
            thing = getattr(thing, part)
    imported = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    assert not [node for node in imported if (node.module or "").startswith("forgetting")]


def test_a_theorist_gets_a_figure_and_tables_for_a_paper(folder, capsys):
    said = printed_by("theorist", capsys)
    assert "Expected values over all orders, exact" in said
    assert (folder / "forgetting.pdf").read_bytes().startswith(b"%PDF")
    exact = fg.expect(fg.load("tasks.csv", task="sensor"), "random", k=300).forgetting
    tightest = float(re.search(r"forgetting <= (\S+)", said)[1])
    assert exact < tightest < 1
    for name in ("bounds.tex", "table1.tex"):
        latex = (folder / name).read_text(encoding="utf-8")
        for part in ("table*", "tabular"):
            assert latex.count(rf"\begin{{{part}}}") == latex.count(rf"\end{{{part}}}") == 1
        rows = re.search(r"\\midrule\n(.*)\\bottomrule", latex, re.DOTALL)[1].strip().splitlines()
        assert len({re.sub(r"\\&", "", row).count("&") for row in rows}) == 1
        assert all(row.endswith(r"\\") for row in rows)


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name.startswith("designer")])
def test_a_designer_gets_an_audit_of_ten_classes(name, folder, capsys):
    if "frame" in name:
        pytest.importorskip("pandas")
    said = printed_by(name, capsys)
    accuracies = [float(number) for number in re.search(r"after the last: \[(.*?)\]", said, re.DOTALL)[1].split()]
    assert len(accuracies) == 5
    assert accuracies[-1] > 0.8  # of the task just learned
    page = (folder / "audit.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "accuracy" in page


def test_a_designer_gets_a_page_on_class_orders_from_a_frame(folder, capsys):
    pytest.importorskip("pandas")
    said = printed_by("class_orders", capsys)
    assert said.startswith("The final accuracy (held-out rows) depends on the class order, by ")
    assert "over all 113,400 class orders" in said
    page = (folder / "class_orders.html").read_text(encoding="utf-8")
    assert "Which classes should not share a task" in page


def test_a_numerical_user_gets_a_solution_with_its_residual(folder, capsys):
    from scipy import sparse

    said = printed_by("numerical_user", capsys)
    x, A, b = np.load("x.npy"), sparse.load_npz("A.npz"), np.load("b.npy")
    assert np.linalg.norm(A @ x - b) <= 1e-8 * np.linalg.norm(b)
    assert "converged" in said
