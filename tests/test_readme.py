"""The README and the docs run, print what they say, and link to what exists."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_code_in_the_readme_runs_and_prints_what_it_says():
    outcome = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.attempted >= 10
    assert outcome.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_counts_the_bounds_that_there_are():
    import forgetting as fg

    (count,) = re.findall(r"the best of (\d+) bounds", (ROOT / "README.md").read_text())
    assert int(count) == len(fg.bounds.all_bounds())
