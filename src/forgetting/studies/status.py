"""How far along a study is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from forgetting.expectation.engines.base import in_time

__all__ = ["Status", "status_of"]

RECENT = 20  # finished cells from which the time that is left is estimated


@dataclass(frozen=True)
class Status:
    """The number of cells in each state, and an estimate of the time that is left.

    Attributes:
        done, failed, running, waiting: numbers of cells.
        seconds_left: an estimate from the cells that were finished last; None if nothing runs or too few are finished.
        versions: of this library, by which the cells were computed.

    >>> print(Status(done=3, failed=1, running=2, waiting=4, seconds_left=90.0))
    4 of 10 cells are finished, 1 of them failed; 2 are running, 4 are waiting; about 90 s are left
    """

    done: int = 0
    failed: int = 0
    running: int = 0
    waiting: int = 0
    seconds_left: float | None = None
    versions: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """The number of all cells."""
        return self.done + self.failed + self.running + self.waiting

    @property
    def complete(self) -> bool:
        """Whether all cells are finished."""
        return self.done + self.failed == self.total

    def __str__(self) -> str:
        failed = f", {self.failed} of them failed" if self.failed else ""
        text = f"{self.done + self.failed} of {self.total} cells are finished{failed}"
        if not self.complete:
            text += f"; {self.running} are running, {self.waiting} are waiting"
        if self.seconds_left is not None:
            text += f"; about {in_time(self.seconds_left)} are left"
        if len(self.versions) > 1:
            text += f"; computed by versions {', '.join(self.versions)} of this library"
        return text


def status_of(states: Sequence[str], endings: Sequence[tuple[float, str | None]]) -> Status:
    """The status of the cells with these states; `endings` say when and by which version cells were finished."""
    counts = {state: states.count(state) for state in ("done", "failed", "running", "waiting")}
    ended = sorted(changed for changed, _ in endings)
    left = None
    if counts["running"] and len(ended) > 1:
        recent = ended[-RECENT:]
        pace = max(time.time() - recent[0], 1e-3) / len(recent)  # seconds a cell, all workers together
        left = pace * (counts["running"] + counts["waiting"])
    versions = sorted({version for _, version in endings if version})
    return Status(**counts, seconds_left=left, versions=tuple(versions))
