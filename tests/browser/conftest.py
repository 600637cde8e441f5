"""The modules of this folder import `chromium` by name; each file of tests has one browser, or is skipped."""

import sys
from pathlib import Path

import pytest

folder = str(Path(__file__).parent)
if folder not in sys.path:
    sys.path.insert(0, folder)


@pytest.fixture(scope="module")
def browser():
    import chromium

    running = chromium.Browser()
    try:
        running.start()
    except chromium.CannotStartError as reason:
        pytest.skip(str(reason))
    with running:
        yield running
