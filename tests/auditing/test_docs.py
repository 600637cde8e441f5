"""docs/audit.md runs and prints what it says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def test_the_page_runs_and_prints_what_it_says():
    outcome = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted >= 10
    assert outcome.failed == 0
