"""Which process has a cell, and whether that process is alive."""

from __future__ import annotations

import os
import platform
import time
from itertools import count

__all__ = ["BEAT", "Owner", "is_alive"]

BEAT = 60.0  # seconds between two signs of life of a process
LEASE = 600.0  # seconds without a sign of life after which a process of another machine counts as dead
_numbers = count()
_here: set[str] = set()  # the owners of this process


class Owner:
    """A user of a store, by a name that no other has: the machine, the process, its start, and a number within it.

    >>> owner = Owner()
    >>> is_alive(owner.name)
    True
    >>> owner.gone()
    >>> is_alive(owner.name)
    False
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.name = f"{platform.node()} {self.pid} {_born(self.pid)} {next(_numbers)}"
        _here.add(self.name)

    def gone(self) -> None:
        """The owner needs its cells no more."""
        _here.discard(self.name)


def is_alive(name: str, seen: float | None = None) -> bool:
    """Whether the owner of this name still runs; on another machine, whether it was seen in the last ten minutes."""
    machine, pid, born, _ = ("    " + name).rsplit(" ", 3)
    if machine.strip() != platform.node() or not pid.isdecimal():
        return seen is not None and time.time() - seen < LEASE
    if int(pid) == os.getpid():
        return name in _here
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        pass  # a process of another user
    except (ProcessLookupError, OverflowError):
        return False
    return _born(int(pid)) == born


def _born(pid: int) -> str:
    """When the process began, in ticks of the machine; empty on systems without /proc, and for a process that ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" or len(fields) < 19 else fields[18]
