"""The memory that this process may use, checked before large arrays are made. No result depends on it, only errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from forgetting.errors import MemoryLimitError

UNNOTICED = 2**26  # bytes (64 MiB) that are used without a check
UNLIMITED = 2.0**62  # version 1 of control groups writes that there is no limit as a number above this


def available_memory(root: str = "/") -> float:
    """Bytes that this process may still use: the least that the machine, control groups and process limits leave.

    The machine leaves what is available without swapping. Each control group (containers, batch systems; version 1 and
    2), from the group of the process up to the root, leaves its limit less what the group uses; file pages that can be
    reclaimed do not count as used. `ulimit -v` and `ulimit -d` leave the limit less what the process uses. A limit that
    cannot be read is ignored.
    """
    system = Path(root)
    return max(0.0, min([_of_machine(system), *_of_groups(system), *_of_process(system)]))


def require_memory(needed: float, what: str, remedy: str) -> None:
    """Raise unless half of the available memory is enough for `needed` bytes.

    >>> require_memory(1e3, "a vector", "use a shorter one")
    >>> require_memory(1e30, "10^29 numbers", "use fewer")
    Traceback (most recent call last):
    forgetting.errors.MemoryLimitError: 10^29 numbers need about 9.095e+17 TiB, more than half of the ...; use fewer
    """
    if needed <= UNNOTICED:
        return
    free = available_memory()
    if needed > free / 2:
        raise MemoryLimitError(
            f"{what} need about {in_bytes(needed)}, more than half of the {in_bytes(free)} available; {remedy}",
            needed=needed,
            allowed=free / 2,
        )


def in_bytes(count: float) -> str:
    """A number of bytes with its unit.

    >>> in_bytes(3 * 2**30)
    '3 GiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def _of_machine(root: Path) -> float:
    kilobytes = _entry(_read(root / "proc/meminfo"), "MemAvailable")
    if kilobytes is not None:
        return 1024.0 * kilobytes
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 8.0 * 2**30  # a guess, for a machine that does not say how much memory it has


def _of_groups(root: Path) -> Iterator[float]:
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            home, limit, used, files = mount, "memory.max", "memory.current", "inactive_file"
        elif "memory" in controllers.split(","):
            home = mount / "memory"
            limit, used, files = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        here = home / path.lstrip("/")
        for group in (here, *here.parents):
            if not group.is_relative_to(home):
                break
            most = _number(_read(group / limit))
            if most is not None and most < UNLIMITED:
                taken = _number(_read(group / used)) or 0.0
                yield most - taken + (_entry(_read(group / "memory.stat"), files) or 0.0)


def _of_process(root: Path) -> Iterator[float]:
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, used in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(limit)[0]
        if most != resource.RLIM_INFINITY:
            yield most - 1024.0 * (_entry(_read(root / "proc/self/status"), used) or 0.0)


def _read(path: Path) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""


def _number(text: str) -> float | None:
    """The number in a file of one number; None for 'max' (no limit) and for an empty text."""
    return float(text) if text.strip().isdigit() else None


def _entry(text: str, name: str) -> float | None:
    """The number in the line 'name number' or 'name: number kB'; None if there is no such line.

    >>> _entry("MemFree: 12 kB\\nMemAvailable:  34 kB\\n", "MemAvailable")
    34.0
    """
    found = re.search(rf"^{name}:?\s+(\d+)\b", text, re.MULTILINE)
    return None if found is None else float(found[1])
