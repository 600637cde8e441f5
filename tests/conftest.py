"""What all tests share: the dense reference, a browser, hypothesis without clocks, no figure left open, Windows."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

#: what is left out on Windows, files and tests, and why
NOT_ON_WINDOWS = {
    "cli/test_interrupts.py": "Ctrl-C and kill are signals of Unix",
    "cli/test_report.py::test_force_replaces_a_report_but_never": "needs a pseudo-terminal",
    "cli/test_report.py::test_an_interrupt_leaves_nothing_half_written": "needs a pseudo-terminal",
    "cli/test_report.py::test_an_interrupt_while_writing": "Ctrl-C and kill are signals of Unix",
    "faults/api_calls.py": "cases are limited by timers and limits of Unix",
    "faults/campaign.py": "cases are limited by timers and limits of Unix",
    "faults/files.py": "cases are limited by timers and limits of Unix",
    "faults/test_api_calls.py": "cases are limited by timers and limits of Unix",
    "faults/test_files_fuzz.py": "cases are limited by timers and limits of Unix",
    "faults/test_memory.py": "control groups and limits of Unix",
    "faults/test_outputs.py::test_what_is_read_is_never_replaced": "symbolic links need a privilege",
    "faults/test_outputs.py::test_a_link_is_not_followed": "symbolic links need a privilege",
    "faults/test_outputs.py::test_a_link_to_a_folder_stays_a_link": "symbolic links need a privilege",
    "faults/test_outputs.py::test_after_a_kill": "what a killed process leaves stays there",
    "faults/test_outputs.py::test_a_folder_that_is_being_made": "what a killed process leaves stays there",
    "faults/test_outputs.py::test_temporary_files_of_the_dead": "what a killed process leaves stays there",
    "faults/test_outputs.py::test_many_writers_at_once": "no folder is renamed while a file in it is read",
    "faults/test_outputs.py::test_a_signal_leaves": "Ctrl-C and kill are signals of Unix",
    "faults/test_outputs.py::test_sigterm_ends": "Ctrl-C and kill are signals of Unix",
    "faults/test_outputs.py::test_an_interrupt_after": "Ctrl-C and kill are signals of Unix",
    "faults/test_untrusted_arrays.py::test_pipes_folders_and_devices": "there are no pipes with names in folders",
    "studies/lives.py": "drivers of studies are forked",
    "studies/test_dask.py::test_killed_dask_worker": "Ctrl-C and kill are signals of Unix",
    "studies/test_kills.py": "drivers of studies are forked",
    "studies/test_store.py::test_number_of_a_dead_process": "processes are not asked there",
    "tasks/test_from_source.py::test_both_readers_of_parquet": "there are no pipes with names in folders",
    "worstcase/test_frontier.py::test_an_entry_whose_value_takes_too_long": "there are no pipes with names in folders",
}
TESTS = Path(__file__).parent

settings.register_profile("forgetting", deadline=None, derandomize=True, database=None, max_examples=25)
settings.load_profile("forgetting")
os.environ.setdefault("MPLBACKEND", "agg")  # a test opens no window


@pytest.fixture(autouse=True)
def no_figures_left():
    """Figures that a test opens are closed: matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session")
def dynamics():
    """`dynamics` of reference.py: (matrices, labels, order, w0, mean) -> iterates, losses, forgetting, regret."""
    spec = importlib.util.spec_from_file_location("reference", Path(__file__).with_name("reference.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.dynamics


@pytest.fixture(scope="session")
def browser():
    """One Chromium for the tests of pages; they are skipped where none starts, with the reason."""
    from browser import chromium

    running = chromium.Browser()
    try:
        running.start()
    except chromium.CannotStartError as reason:
        pytest.skip(str(reason))
    with running:
        yield running


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Files that cannot be imported on Windows; the header says so."""
    if sys.platform != "win32" or not collection_path.is_relative_to(TESTS):
        return None
    return collection_path.relative_to(TESTS).as_posix() in NOT_ON_WINDOWS or None


def pytest_report_header() -> list[str]:
    if sys.platform != "win32":
        return []
    return [f"left out on Windows: {name}: {reason}" for name, reason in NOT_ON_WINDOWS.items() if "::" not in name]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if sys.platform != "win32":
        return
    for item in items:
        name = item.nodeid.replace("\\", "/").removeprefix("tests/")
        for start, reason in NOT_ON_WINDOWS.items():
            if "::" in start and name.startswith(start):
                item.add_marker(pytest.mark.skip(reason=reason))
