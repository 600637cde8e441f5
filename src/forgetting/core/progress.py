"""Progress of long computations: a bar on stderr in a terminal or in a notebook, calls of a function, or nothing.

A computation says how far along it is with `progress_bar` or `track`. Whether anybody sees that is up to the caller:
`progress=True` of a public function, or the command line, opens a context with `shown`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from math import inf
from typing import Any, Protocol, TypeVar, cast

from forgetting.core.text import one_line
from forgetting.errors import InvalidInputError

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])
Report = Callable[[str, int, int], None]  # called as (name of the part, done, total)
Progress = bool | Report
SOON = 1.0  # seconds until a bar is worth it
EVERY = 0.2  # seconds between two pictures in a notebook


@dataclass(eq=False)
class _Audience:
    """The audience of progress: calls of `report`, or a bar if that is None. Inside a bar, others are silent."""

    report: Report | None
    busy: bool = False


_audience: ContextVar[_Audience | None] = ContextVar("audience", default=None)


@contextmanager
def shown(progress: Progress) -> Iterator[None]:
    """Show the progress of all computations in the block: as a bar (True), or by calls of a function; False: as before.

    >>> with shown(lambda name, done, total: print(name, done, total)):
    ...     for _ in track("ab", "counting"):
    ...         pass
    counting 1 2
    counting 2 2
    """
    if not isinstance(progress, bool) and not callable(progress):
        raise InvalidInputError(
            f"progress must be True, False or a function of (name, done, total), got {progress!r:.80}"
        )
    before = _audience.get()
    if progress is False or (progress is True and before is not None):
        yield
        return
    token = _audience.set(_Audience(None if progress is True else progress))
    try:
        yield
    finally:
        _audience.reset(token)


def reports_progress(function: Function) -> Function:
    """Decorate a function whose last keyword is `progress`: while it works, `shown` does what the keyword says."""

    @wraps(function)
    def call(*arguments: Any, progress: Progress = False, **more: Any) -> Any:
        with shown(progress):
            return function(*arguments, **more)

    return cast(Function, call)


@contextmanager
def progress_bar(what: str) -> Iterator[Report]:
    """A function to call as (name, done, total); a bar appears after the first second, and vanishes at the end."""
    audience = _audience.get()
    if audience is None or audience.busy:
        yield _silent
        return
    audience.busy = True
    picture = None
    try:
        if audience.report is not None:
            yield audience.report
            return
        picture = _Picture(what)
        yield picture.update
    finally:
        audience.busy = False
        if picture is not None:
            picture.stop()


def track(items: Sequence[Item], what: str) -> Iterator[Item]:
    """Yield the items, and report how far along they are.

    >>> list(track(range(3), "counting"))
    [0, 1, 2]
    """
    with progress_bar(what) as step:
        for done, item in enumerate(items, start=1):
            yield item
            step(what, done, len(items))


def _silent(name: str, done: int, total: int) -> None: ...


# ------------------------------------------------------------------------------------------------------------ the bar


class _Bar(Protocol):
    """A bar on the screen."""

    def start(self) -> None: ...
    def update(self, words: str, done: int, total: int, *, changed: bool) -> None: ...
    def stop(self) -> None: ...


class _Picture:
    """The bar of a computation, if that takes longer than a second and somebody sees it."""

    def __init__(self, what: str) -> None:
        self.what, self.name = what, ""
        self.due = time.monotonic() + SOON
        self.bar: _Bar | None = None

    def update(self, name: str, done: int, total: int) -> None:
        """Show how far along it is."""
        if self.bar is None and time.monotonic() > self.due:
            self.due = inf  # nobody is asked twice
            self.bar = _bar(self.what)
            if self.bar is not None:
                self.bar.start()  # known before it starts, so that an interrupt stops it
        if self.bar is not None:
            words = "" if name == self.what else one_line(name, 60)
            self.bar.update(words, done, total, changed=name != self.name)
            self.name = name

    def stop(self) -> None:
        """Take the bar away."""
        if self.bar is not None:
            self.bar.stop()


def _bar(what: str) -> _Bar | None:
    """A bar for this terminal or notebook; None in a pipe and in a terminal that cannot move its cursor."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_jupyter:
        return _NotebookBar(what)
    return _TerminalBar(what, console) if sys.stderr.isatty() and os.environ.get("TERM") != "dumb" else None


class _TerminalBar:
    """A bar that rich redraws in place."""

    def __init__(self, what: str, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (
            TextColumn(what),
            BarColumn(style="grey50"),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left"),
        )
        self.rich = Progress(*columns, console=console, transient=True)
        self.task = self.rich.add_task("", total=None)

    def start(self) -> None:
        """Begin to draw."""
        self.rich.start()

    def update(self, words: str, done: int, total: int, *, changed: bool) -> None:
        """Move the bar; a new name is drawn at once."""
        self.rich.update(self.task, description=words, completed=done, total=total, refresh=changed)

    def stop(self) -> None:
        """Take the bar away."""
        self.rich.stop()


class _NotebookBar(_TerminalBar):
    """The same bar below a cell. rich itself needs ipywidgets there; a display that is replaced needs nothing."""

    def __init__(self, what: str) -> None:
        from io import StringIO

        from rich.console import Console

        self.paper = Console(file=StringIO(), force_jupyter=False, force_terminal=True, record=True, width=100)
        super().__init__(what, self.paper)
        self.drawn = 0.0
        self.display: Any = None

    def start(self) -> None:
        """Open a display below the cell."""
        display = import_module("IPython.display").display
        self.display = display({"text/plain": ""}, raw=True, display_id=True)

    def update(self, words: str, done: int, total: int, *, changed: bool) -> None:
        """Replace the picture, a few times a second."""
        self.rich.update(self.task, description=words, completed=done, total=total)
        if changed or time.monotonic() - self.drawn > EVERY:
            self.drawn = time.monotonic()
            self.paper.print(self.rich)
            page = self.paper.export_html(inline_styles=True, code_format="<pre>{code}</pre>")
            self._show({"text/html": page, "text/plain": words})

    def stop(self) -> None:
        """Empty the display."""
        self._show({"text/html": "", "text/plain": ""})

    def _show(self, picture: dict[str, str]) -> None:
        if self.display is not None:
            self.display.update(picture, raw=True)
