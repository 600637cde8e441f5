"""The landing page, the story and the interface in the built documentation, wide and narrow, light and dark.

`make docs-check` builds the site and runs these tests; else they are skipped, since a site that lies around may be old.
"""

import os
from pathlib import Path

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = (
    "index.html",
    "auto_gallery/01_story.html",
    "api/index.html",
    "api/expectation.html",
    "explorer.html",
    "_static/explorer.html",
)


@pytest.fixture(scope="module")
def site():
    if not os.environ.get("FORGETTING_DOCS"):
        pytest.skip("make docs-check builds the site and checks it")
    return SITE


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 400])
def test_a_page_of_the_documentation_can_be_read(site, browser, name, theme, width):
    with browser.page(site / name, width, dark=theme == "dark") as page:
        page.evaluate(f"document.body.dataset.theme = {theme!r}")  # as the switch of the theme does
        page.settle()
        found = [*page.problems(), *page.findings()]
    assert not found, "\n".join(["", *found])
