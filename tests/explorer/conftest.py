"""One browser, and one page of the explorer, for the tests of this folder."""

import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "browser")]


@pytest.fixture(scope="session")
def page_file(tmp_path_factory):
    from forgetting.explorer.page import page_html

    path = tmp_path_factory.mktemp("explorer") / "page.html"
    path.write_text(page_html(), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def browser():
    import chromium

    running = chromium.Browser()
    try:
        running.start()
    except chromium.CannotStartError as reason:
        pytest.skip(str(reason))
    with running:
        yield running


@pytest.fixture(scope="module")
def page(browser, page_file):
    with browser.page(page_file) as one:
        yield one
