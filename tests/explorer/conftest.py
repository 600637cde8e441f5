"""The page of the explorer, for the tests of this folder."""

import pytest

from forgetting.explorer.page import page_html


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(page_html(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def page(browser, page_file):
    with browser.page(page_file) as one:
        yield one
