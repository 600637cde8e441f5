"""Ctrl-C, `kill` and a closed terminal: all end the program in the same way, with nothing half written."""

from __future__ import annotations

import signal
import threading
from _thread import interrupt_main
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupted(KeyboardInterrupt):
    """Raised by a signal; not `KeyboardInterrupt` itself, for once that passed `exec`, Python ends by SIGINT."""


SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_pressed: list[int] = []  # the signals that came


def exit_code() -> int:
    """128 plus the number of the last signal, as shells use it; the signal then counts as answered."""
    number = _pressed[-1] if _pressed else signal.SIGINT
    _pressed.clear()
    return 128 + number


def pressed() -> bool:
    """Whether a signal came that was not answered yet. A library may have made another error of the interrupt."""
    return bool(_pressed)


@contextmanager
def uninterrupted() -> Iterator[Callable[[], None]]:
    """Raise `Interrupted` if a signal comes in the block; the function that the block gets raises if one came.

    A signal that was ignored before, as by nohup, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield lambda: None
        return
    _pressed.clear()
    later = threading.Timer(0.0, interrupt_main)

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal later
        _pressed.append(number)
        if not _swallowing(frame):
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


def _swallowing(frame: FrameType | None) -> bool:
    """Whether an exception would be lost in a callback of the import system or the compiler, or free memory twice."""
    if frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        return True
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in ("numba", "llvmlite"):
            return True
        frame = frame.f_back
    return False
