"""What keeps the suite short: samples of random cases (FORGETTING_LONG=1 takes all of them), and shared results."""

import inspect
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest

LONG = os.environ.get("FORGETTING_LONG", "") not in ("", "0")


def rounds(few: int, many: int) -> int:
    """The number of random cases: few by default, many in `make hunt`."""
    return many if LONG else few


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder that `make` fills in one process of the run; the others wait for it, and read it."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    place = factory.getbasetemp() if alone else factory.getbasetemp().parent
    folder, done = place / name, place / f"{name}.done"
    with (place / f"{name}.lock").open("w") as lock:
        _wait_for(lock)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder


def _wait_for(lock: Any) -> None:
    """Lock an open file, however long another process holds it."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(lock, fcntl.LOCK_EX)
        return
    import msvcrt

    while True:
        with suppress(OSError):  # it waits for ten seconds
            return msvcrt.locking(lock.fileno(), msvcrt.LK_LOCK, 1)


def each(name: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call a test for each value, as one test: what pytest does around a test takes longer than many of them.

    Fixtures are the same for all values. An error says which value it was.
    """
    values = list(values)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def loop(*args: Any, **fixtures: Any) -> None:
            for value in values:
                try:
                    test(*args, **fixtures, **{name: value})
                except BaseException as error:
                    error.add_note(f"{name} = {value!r}")
                    raise

        parameters = inspect.signature(test).parameters
        loop.__signature__ = inspect.Signature([parameter for key, parameter in parameters.items() if key != name])
        return loop

    return decorate


def pairwise(**choices: Sequence[Any]) -> pytest.MarkDecorator:
    """Parameters such that every two values of different names occur together; all combinations in `make hunt`."""
    rows = list(product(*map(range, map(len, choices.values()))))
    chosen = rows if LONG else []
    left = {pair for row in rows for pair in _pairs(row)}
    while left and not LONG:
        best = max(rows, key=lambda row: len(left.intersection(_pairs(row))))
        left.difference_update(_pairs(best))
        chosen.append(best)
    columns = list(choices.values())
    return pytest.mark.parametrize(
        tuple(choices), [tuple(column[place] for column, place in zip(columns, row, strict=True)) for row in chosen]
    )


def _pairs(row: tuple[int, ...]) -> set[tuple[tuple[int, int], ...]]:
    """Every two entries of a row, with their places."""
    return set(combinations(enumerate(row), 2))
