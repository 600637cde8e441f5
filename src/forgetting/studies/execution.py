"""The one loop that computes cells: claim, compute wherever joblib says, record."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from forgetting._progress import Report, progress_bar
from forgetting._version import __version__
from forgetting._workers import lost_part, some_parts
from forgetting.storage.store import Store
from forgetting.studies.cells import Cell, as_rows, called

__all__ = ["Finished", "execute"]

Finished = Callable[[Mapping[str, Any], Any], None]  # called with the values of a cell and the rows it gave

POLL = 0.5  # seconds between two looks at the cells of other processes


class _Found(NamedTuple):
    """What a worker sends back."""

    rows: Any
    error: str | None
    trace: str | None
    seconds: float


class _Work:
    """A cell as a worker computes it; an error becomes a result, so that other cells go on."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, cell: Cell) -> _Found:
        began = time.perf_counter()
        try:
            rows = as_rows(called(self.function, cell))
        except (Exception, SystemExit) as error:
            said = f"{type(error).__name__}: {error}"
            return _Found(None, said, traceback.format_exc(), time.perf_counter() - began)
        return _Found(rows, None, None, time.perf_counter() - began)


def execute(
    store: Store,
    cells: Sequence[Cell],
    function: Callable[..., Any],
    jobs: int | None,
    finished: Finished,
    *,
    retry: bool,
    wait: bool,
) -> None:
    """Compute the cells that are not finished; see `Study.run`. An interrupt leaves cells in flight waiting."""
    store.release(failed=retry)
    try:
        with progress_bar("study") as report:
            while True:
                _pass(store, cells, function, jobs, finished, report)
                states = store.states()
                if not wait or not any(states[cell.key] in ("running", "waiting") for cell in cells):
                    return
                time.sleep(POLL)  # another process has the rest; its cells are taken over if that process ends
    finally:
        store.release()


def _pass(
    store: Store,
    cells: Sequence[Cell],
    function: Callable[..., Any],
    jobs: int | None,
    finished: Finished,
    report: Report,
) -> None:
    """Compute the cells that nobody has."""
    states = store.states()
    total = len(cells)
    done = sum(states[cell.key] in ("done", "failed") for cell in cells)

    def waiting() -> Iterator[tuple[int, Cell]]:
        for place, cell in enumerate(cells):
            if states[cell.key] in ("waiting", "running") and store.claim(cell.key):
                yield place, cell

    def gave_up(place: int) -> None:
        store.finish(cells[place].key, error=f"WorkerError: {lost_part()}", version=__version__)

    report("study", done, total)
    for place, found in some_parts(_Work(function), waiting(), jobs, gave_up):
        store.finish(
            cells[place].key, rows=found.rows, error=found.error, trace=found.trace, seconds=found.seconds,
            version=__version__,
        )  # fmt: skip
        done += 1
        if found.error is None:
            finished(cells[place].values, found.rows)
        report("study", done, total)
