"""What keeps the suite short: samples of random cases (FORGETTING_LONG=1 takes all of them), and shared results."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

LONG = os.environ.get("FORGETTING_LONG", "") not in ("", "0")


def rounds(few: int, many: int) -> int:
    """The number of random cases: few by default, many in `make hunt`."""
    return many if LONG else few


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills in one process of the run; the others wait for it, and read it."""
    import fcntl

    alone = "PYTEST_XDIST_WORKER" not in os.environ
    place = factory.getbasetemp() if alone else factory.getbasetemp().parent
    folder, done = place / name, place / f"{name}.done"
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder
