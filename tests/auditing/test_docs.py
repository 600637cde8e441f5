"""The pages about audits run and print what they say."""

import doctest
from pathlib import Path

import pytest

from forgetting import metrics

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["audit.md", "accuracy-matrices.md"])
def test_the_page_runs_and_prints_what_it_says(page):
    outcome = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted >= 10
    assert outcome.failed == 0


def test_the_page_has_the_formula_of_each_convention():
    page = (DOCS / "accuracy-matrices.md").read_text(encoding="utf-8")
    for row in metrics.conventions().rows:
        word = f', `"{row.word}"`' if row.word else ""
        formula = row.formula.replace("|", "\\|")
        assert f"| {row.library}, {row.source} | {row.theirs} | {formula} | `{row.quantity}`{word} |" in page
