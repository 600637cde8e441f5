"""Signals that come before the command line answers them, while it is imported, or after, while Python ends.

The first import of the package, since the others take most of a second. It does nothing in other programs.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from types import FrameType

__all__: list[str] = []


def _is_command() -> bool:
    """Whether this process is `forgetting ...` or `python -m forgetting ...`; a worker has `sys.argv` of its parent."""
    name, words = sys.argv[0], sys.orig_argv
    if name not in words:
        return False
    return os.path.basename(name).removesuffix(".exe") == "forgetting" or (
        name == "-m" and words[words.index("-m") + 1] == "forgetting"
    )


def _end(number: int, frame: FrameType | None) -> None:
    """End now, with the exit code of the signal, and leave nothing half written."""
    try:
        getattr(sys.modules.get("forgetting.files.atomic"), "clean_up", int)()
        os.write(2, b"interrupted\n")
    finally:  # also if the terminal is gone
        os._exit(128 + number)


def _answer_signals() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:  # as by nohup
            signal.signal(number, _end)
            atexit.register(signal.signal, number, signal.SIG_IGN)  # runs last; Python would forget the function


if _is_command():
    _answer_signals()
