"""The progress bar of long computations: on stderr in a terminal, after the first second; nothing in a pipe."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from forgetting._text import one_line

__all__ = ["progress_bar", "track"]

Item = TypeVar("Item")
SOON = 1.0  # seconds until a bar is worth it
_open: list[str] = []  # a bar within another one stays silent


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[str, int, int], None]]:
    """A function to call as (name, done, total): a bar on stderr after the first second, nothing in a pipe."""
    if _open or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda *_: None
        return
    began = time.monotonic()
    bars: list[Any] = []
    shown = [""]

    def update(name: str, done: int, total: int) -> None:
        if not bars and time.monotonic() - began <= SOON:
            return
        if not bars:
            bars.append(_bar(what))
            bars[0].start()  # known before it starts, so that an interrupt stops it
        words, changed = one_line(name, 60), name != shown[0]
        shown[0] = name
        bars[0].update(bars[0].task_ids[0], description=words, completed=done, total=total, refresh=changed)

    _open.append(what)
    try:
        yield update
    finally:
        _open.remove(what)
        for bar in bars:
            bar.stop()


def _bar(what: str) -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn(what), BarColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task("", total=None)
    return bar


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield the items; after the first second, show how far along they are.

    >>> list(track(range(3), "counting"))
    [0, 1, 2]
    """
    with progress_bar(what) as step:
        for done, item in enumerate(items, start=1):
            yield item
            step("", done, len(items))
