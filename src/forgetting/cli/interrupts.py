"""Ctrl-C, `kill` and a closed terminal: all end the program in the same way, with nothing half written."""

from __future__ import annotations

import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupted", "exit_code", "uninterrupted"]


class Interrupted(KeyboardInterrupt):
    """A signal came. Not `KeyboardInterrupt` itself: Python, once that passed through `exec`, ends by SIGINT.

    >>> issubclass(Interrupted, KeyboardInterrupt)
    True
    """


SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_pressed: list[int] = []  # the signals that came


def exit_code() -> int:
    """128 plus the number of the signal that came, as shells have it; the signal is answered by that.

    >>> exit_code()
    130
    """
    number = _pressed[-1] if _pressed else signal.SIGINT
    _pressed.clear()
    return 128 + number


@contextmanager
def uninterrupted() -> Iterator[Callable[[], None]]:
    """A function that raises if a signal came since: runs and simulations return early on it and go on.

    A signal that is ignored when the program starts (nohup) stays ignored.

    >>> with uninterrupted() as check:
    ...     check()
    """
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield lambda: None
        return
    _pressed.clear()
    later = threading.Timer(0.0, interrupt_main)

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal later
        _pressed.append(number)
        if not _compiling(frame):
            raise Interrupted
        later = threading.Timer(0.05, interrupt_main, [signal.Signals(number)])
        later.daemon = True
        later.start()

    def check() -> None:
        if _pressed:
            raise Interrupted

    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, press)
        yield check
        check()
    finally:
        later.cancel()
        for number, handler in before.items():
            if handler is not None:  # set by Python
                signal.signal(number, handler)


def _compiling(frame: FrameType | None) -> bool:
    """Whether the compiler is at work: an exception there is swallowed in a callback, or frees memory twice."""
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("numba", "llvmlite"):
            return True
        frame = frame.f_back
    return False
