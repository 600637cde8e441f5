"""The examples in the docstrings of the maintainers' programs."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "tools"


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("[a-z]*.py")))
def test_examples_of_the_programs(name):
    module = import_module(f"tools.{name}")
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    assert result.failed == 0


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
