"""Tests run in a new order each time: `--order SEED` repeats one, `--order file` keeps the order of the files.

Files are shuffled, and the tests within each file, so that what a file shares is made once. Doctests of one page or
docstring are one test, and keep their order. `--seconds 30` skips what has not begun by then.
"""

import random
import signal
import time

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--order", metavar="SEED", help="seed of the order of the tests, or 'file' for that of the files")
    parser.addoption("--seconds", type=float, help="skip tests that have not begun after so many seconds")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)  # here, and in the programs that tests start
    if config.option.order is None:
        given = getattr(config, "workerinput", {}).get("order")  # by `pytest_configure_node`, within a process of xdist
        config.option.order = given or str(random.SystemRandom().randrange(10**6))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node) -> None:
    node.workerinput["order"] = node.config.option.order


def pytest_report_header(config: pytest.Config) -> str:
    return f"order of tests: --order {config.option.order}"


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.line(f"the same order again: --order {config.option.order}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.option.order
    if seed == "file":
        return
    items.sort(key=lambda item: [random.Random(f"{seed} {name}").random() for name in (item.location[0], item.nodeid)])


BEGAN = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    limit = item.config.option.seconds
    if limit is not None and time.monotonic() - BEGAN > limit:
        pytest.skip(f"not begun after {limit:.0f} seconds")
