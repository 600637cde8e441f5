"""The examples in the docstrings of the maintainers' programs."""

import doctest
import re
import runpy
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tools import tightest_table

FOLDER = Path(__file__).parents[1] / "tools"
DRAWING = FOLDER.parent / "docs" / "_tools"  # programs that write figures and tables of the docs


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))
def test_examples_of_the_programs(name):
    module = import_module(f"tools.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.failed == 0


@pytest.mark.parametrize(
    "program",
    sorted(path.stem for path in DRAWING.glob("*.py") if "__main__" in path.read_text() and path.stem != "listing"),
)
@pytest.mark.parametrize(("word", "code"), [("--help", 0), ("--figure.png", 2)])
def test_a_word_that_begins_with_a_dash_is_no_place_for_a_figure(program, word, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [f"{program}.py", word])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(DRAWING / f"{program}.py"), run_name="__main__")
    assert ended.value.code == code
    assert "usage" in "".join(capsys.readouterr())
    assert list(tmp_path.iterdir()) == []


def test_a_page_of_all_claims_is_not_replaced_by_a_few(tmp_path, capsys):
    from tools.survey import main

    page = tmp_path / "claims.md"
    page.write_text("rows of all claims")
    assert main(["--label", "lem:Q trace", "--budget", "5", "--out", str(page), "--force"]) == 2
    assert "would lose the rows of other claims" in capsys.readouterr().err
    assert page.read_text() == "rows of all claims"


def test_every_planted_fault_has_its_line():
    from tools.sabotage import FAULTS

    assert len(FAULTS) == 40
    for fault in FAULTS:
        assert fault.file().read_text(encoding="utf-8").count(fault.line) == 1, fault.line
        assert all((FOLDER.parent / test).exists() for test in fault.tests.split())


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("two lines, worst for k", "loss"),
        ("nearly parallel lines, T = 10, d = 10", "loss"),
        ("random, T = 10, rank 2, d = 30", "forgetting"),
    ],
)
def test_rows_of_the_table_of_tightest_bounds_are_current(name, quantity):
    page = tightest_table.PAGE.read_text(encoding="utf-8")
    part = page.partition(tightest_table.BEGIN)[2].partition(tightest_table.END)[0]
    (head,) = [line for line in part.splitlines() if line.startswith(f"| {quantity} of |")]
    written = next(line for line in part[part.index(head) :].splitlines() if line.startswith(f"| {name} |"))
    cells = [line.split("|")[2:-1] for line in (written, tightest_table.row(name, quantity))]
    for old, new in zip(*cells, strict=True):
        assert re.sub(r"[\d.e+]+", "#", old) == re.sub(r"[\d.e+]+", "#", new)  # the bound that is the smallest
        numbers = [[float(number) for number in re.findall(r"\d[\d.e+]*", cell)] for cell in (old, new)]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02)  # three digits are printed
