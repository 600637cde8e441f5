"""The loop that computes cells: claim a cell, compute it wherever joblib says, record the result."""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from forgetting._version import __version__
from forgetting.compute.workers import lost_part, some_parts
from forgetting.core.plugins import load_missing, loaded
from forgetting.core.progress import Report, progress_bar
from forgetting.core.text import error_words
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.store import BEAT, Store
from forgetting.studies.cells import Cell, CellCall, as_rows
from forgetting.studies.functions import Function

Finished = Callable[[Mapping[str, Any], Any], None]  # called with the values of a cell and the rows it gave

MOST_ROWS = 50_000_000  # characters that a cell may give
POLL = 0.5  # seconds between two looks at the cells of other processes


class _CellResult(NamedTuple):
    """The result of a worker: texts and a number, which can always be sent."""

    rows: str | None
    error: str | None
    trace: str | None
    seconds: float


class _Work:
    """A cell as a worker computes it; an error becomes a result, so that other cells go on."""

    def __init__(self, function: Function) -> None:
        self.call, self.plugins = CellCall(function), tuple(loaded)

    def __call__(self, cell: Cell) -> _CellResult:
        began, process = time.perf_counter(), os.getpid()
        rows = error = trace = None
        try:
            load_missing(self.plugins)
            rows = json.dumps(as_rows(self.call(cell)))
            if len(rows) > MOST_ROWS:
                size, rows = len(rows), None
                raise InvalidInputError(f"the function gave {size / 1e6:.0f} MB; save arrays to files, and give names")
        except KeyboardInterrupt:
            raise
        except BaseException as caught:  # also SystemExit, and what other libraries derive from BaseException
            error, trace = error_words(caught), traceback.format_exc()
        finally:
            if os.getpid() != process:
                os._exit(1)  # a child that the function forked and that came back: this is the work of its parent
        return _CellResult(rows, error, trace, time.perf_counter() - began)


def execute(
    store: Store,
    cells: Sequence[Cell],
    function: Function,
    jobs: int | None,
    finished: Finished,
    *,
    retry: bool,
    wait: bool,
) -> None:
    """Compute the cells that are not finished; see `Study.run`. An interrupt leaves cells in flight waiting."""
    store.release(failed=[cell.key for cell in cells] if retry else ())
    try:
        with progress_bar("study") as report, _beating(store):
            while True:
                _pass(store, cells, function, jobs, finished, report)
                store.release()  # cells that a pool asked for while it broke
                states = store.states_of([cell.key for cell in cells])
                if not wait or not {"running", "waiting"}.intersection(states):
                    return
                time.sleep(POLL)  # another process has the rest; its cells are taken over if that process ends
    finally:
        with suppress(ProblemFileError):  # the error that ended the loop says more; a dead owner's cells are free
            store.release()


@contextmanager
def _beating(store: Store) -> Iterator[None]:
    """Write signs of life for other machines, from a thread of their own, while the block runs."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(BEAT):
            with suppress(ProblemFileError):
                store.beat()

    if store.path is None:
        yield
        return
    store.beat()
    thread = threading.Thread(target=beat, name="signs of life", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _pass(
    store: Store,
    cells: Sequence[Cell],
    function: Function,
    jobs: int | None,
    finished: Finished,
    report: Report,
) -> None:
    """Compute the cells that no process has claimed."""
    states = store.states_of([cell.key for cell in cells])
    total = len(cells)
    done = sum(state in ("done", "failed") for state in states)

    def waiting() -> Iterator[tuple[int, Cell]]:
        for place, cell in enumerate(cells):
            if states[place] in ("waiting", "running") and store.claim(cell.key):
                yield place, cell

    def gave_up(place: int) -> None:
        store.finish(cells[place].key, error=f"WorkerError: {lost_part()}", version=__version__)

    report("study", done, total)
    for place, result in some_parts(_Work(function), waiting(), jobs, gave_up):
        store.finish(cells[place].key, **result._asdict(), version=__version__)
        done += 1
        if result.error is None:
            finished(cells[place].values, json.loads(result.rows or "[]"))
        report("study", done, total)
