"""A progress bar for what takes more than a second in a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["track"]

Item = TypeVar("Item")


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield the items; after the first second, show how far along they are.

    >>> list(track(range(3), "counting"))
    [0, 1, 2]
    """
    if not sys.stderr.isatty():
        yield from items
        return
    began = time.monotonic()
    rest = iter(items)
    done = 0
    for item in rest:
        yield item
        done += 1
        if time.monotonic() - began > 1.0:
            break
    else:
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(what, total=len(items), completed=done)
        shown = time.monotonic()
        for item in rest:
            yield item
            done += 1
            if time.monotonic() - shown > 0.1:
                progress.update(bar, completed=done)
                shown = time.monotonic()
