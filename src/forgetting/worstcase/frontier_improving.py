"""`improve_frontier`: look for larger values than those of the frontier, by a search or from tasks of the user."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, replace
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Any

from forgetting.core.arrays import Seed, as_count, as_kind, as_number, as_path, seed_from
from forgetting.errors import InvalidInputError
from forgetting.files.atomic import require_place
from forgetting.files.best_known import keep, larger
from forgetting.orderings.base import as_ordering
from forgetting.tasks import Problem, RegressionTasks
from forgetting.tasks.levels import levels_within
from forgetting.worstcase.frontier_entry import DRAWS, Entry
from forgetting.worstcase.frontier_table import Frontier, best_entry, frontier, upper_bound
from forgetting.worstcase.search import adversarial_search

__all__ = ["Improvement", "improve_frontier"]

CONTRADICTS = 1e-7  # relative: how far above an upper bound a value is no rounding
IMPROVED = 1e-9  # relative: by how much an exact value must exceed what is known


@dataclass(frozen=True)
class Improvement:
    """The result of `improve_frontier`.

    Attributes:
        entry: the best of the search, or of the tasks that were given.
        known: the largest value that was known before, 0 if none was.
        path: the file that was written; None if the value is no larger.
    """

    entry: Entry
    known: float
    path: Path | None

    @property
    def better(self) -> bool:
        """Whether the value is larger than the largest that was known."""
        return larger(self.entry.value, self.known, IMPROVED)

    def __str__(self) -> str:
        entry = self.entry
        assert entry.value is not None
        words = f"T = {entry.T}, d = {entry.d}, k = {entry.k}: {entry.quantity} {entry.value:.12g}"
        if not self.known:
            return f"{words}; nothing was known for this T and k"
        share = abs(entry.value / self.known - 1)
        if self.better:
            return f"{words}, larger than the known {self.known:.12g} by {share:.3g} of it"
        return f"{words}; known is {self.known:.12g}, which is not less" + (
            f": {share:.3g} of it are missing" * (share > IMPROVED)
        )


def improve_frontier(
    T: int | None = None,
    d: int | None = None,
    k: int = 1,
    quantity: Any = "loss",
    ordering: str = DRAWS,
    *,
    tasks: Problem | None = None,
    restarts: int = 16,
    steps: int = 500,
    seconds: float | None = None,
    seed: Seed = 0,
    device: Any = None,
    store: str | Path | None = None,
    folder: str | PathLike[str] = "frontier",
) -> Improvement:
    """Look for tasks with a larger value than the frontier has, and keep them in a folder of your own if they have.

    A search (`fg.adversarial_search`) begins with known tasks of at most T tasks and d dimensions, at the same and at
    neighbouring numbers of steps, for the loss with tasks in levels, and with random tasks. Or `tasks` are given: then
    only their value is computed, with singular values set to 1 and |w*| = 1. A file is written only if the exact value
    is larger than what the package and the folder have; the package itself is never changed.

    Args:
        T, d: the numbers of tasks and of dimensions; those of `tasks`, if these are given.
        k: the number of steps.
        quantity, ordering: as for `frontier`.
        tasks: tasks of your own.
        restarts, steps, device, store: of a search, as for `fg.adversarial_search`.
        seconds: searches with other seeds follow until so many seconds are over; one search if left out.
        seed: of the first search.
        folder: where entries of your own are.

    >>> import forgetting as fg, tempfile
    >>> with tempfile.TemporaryDirectory() as here:
    ...     tried = fg.worstcase.improve_frontier(k=2, tasks=fg.families.two_lines(0.5), folder=here)
    >>> tried.better, tried.path
    (False, None)
    """
    k = as_count(k, "k", least=1)
    limit = None if seconds is None else as_number(seconds, "seconds", above=0)
    as_ordering(ordering)
    own = as_path(folder, "folder")
    require_place(own / "entry.json" if os.path.lexists(own) else own)
    there = frontier(quantity, ordering, folder=own)
    if tasks is not None:
        if T is not None or d is not None:
            raise InvalidInputError("tasks have their own T and d: leave both out")
        entry = Entry.of(_regression(tasks), quantity, k, ordering, origin="tasks of the user", own=True)
    else:
        if T is None or d is None:
            raise InvalidInputError("give T and d, or tasks")
        entry = search(
            there, as_count(T, "T", least=2), as_count(d, "d", least=2), k, as_count(restarts, "restarts", least=1),
            as_count(steps, "steps", least=1), seed_from(seed), limit, device=device, store=store,
        )  # fmt: skip
    known = best_entry(there.entries, ordering, entry.T, k)
    improvement = Improvement(entry, 0.0 if known is None or known.value is None else known.value, None)
    if not improvement.better:
        return improvement
    upper = upper_bound(there.entries, quantity, ordering, entry.T, k)
    if larger(entry.value, upper.value, CONTRADICTS):
        raise InvalidInputError(
            f"T = {entry.T}, k = {k}: the value {entry.value:.12g} is above the upper bound "
            f"{upper.value:.12g} ({upper.source}): one of the two is wrong; please report it"
        )
    path = own / f"{entry.name}.json"
    written = keep(entry, own, Entry.read(path) if path.exists() else None, IMPROVED)
    assert written is not None
    return replace(improvement, path=path, entry=written)


def _regression(tasks: Problem) -> RegressionTasks:
    problem = as_kind(tasks, Problem, "tasks", "tasks: ")
    data = problem.linear.data if problem.linear is not None else None
    if data is None or data.geometry.dim == 0:
        raise InvalidInputError("tasks: expected linear regression tasks that are not all zero")
    return data


def search(
    there: Frontier, T: int, d: int, k: int, restarts: int, steps: int, seed: int = 0, seconds: float | None = None,
    **where: Any,
) -> Entry:  # fmt: skip
    """The largest value of searches from random and known tasks, with more seeds until the seconds are over."""
    quantity: Any = there.quantity
    given = [(entry.tasks, entry.name) for entry in starts(there, T, d, k)]
    if quantity == "loss" and there.ordering == DRAWS and (made := levels_within(T, d, k)) is not None:
        given.append((made.tasks(), made.construction))
    share = max(restarts // (len(given) + 2), 1)
    begins: list[tuple[RegressionTasks | None, int, str]] = [
        (None, max(restarts - share * len(given), 1), "random tasks"),
        *((tasks, share, words) for tasks, words in given),
    ]
    end = time.monotonic() + (seconds or 0.0)
    largest: Entry | None = None
    for number in [seed] if seconds is None else count(seed):
        for start, tries, words in begins:
            result = adversarial_search(
                T, d, None, k, quantity, there.ordering, restarts=tries, steps=steps, seed=number, start=start,
                **where,
            )  # fmt: skip
            origin = (
                f"fg.adversarial_search({T}, {d}, None, {k}, {quantity!r}, restarts={tries}, steps={steps}, "
                f"seed={number}) from {words}"
            )
            entry = Entry.of(result.tasks, quantity, k, there.ordering, origin=origin, own=True)
            if largest is None or larger(entry.value, largest.value, 0.0):
                largest = entry
            if seconds is not None and time.monotonic() > end:
                return largest
    assert largest is not None
    return largest


def starts(there: Frontier, T: int, d: int, k: int) -> list[Entry]:
    """Known entries that a search may begin with: the best at the same k, and those of T at the k below and above."""
    known = sorted(
        (entry for entry in there.entries if entry.T is not None and entry.T <= T and entry.d <= d),
        key=lambda entry: (entry.T or 0, entry.d),
    )
    several = [entry for entry in known if entry.T != 2]
    groups = [
        [entry for entry in known if entry.k == k],
        [entry for entry in several if entry.k < k],
        [entry for entry in several if entry.k > k],
    ]
    return [
        max(group, key=lambda entry: (-abs(math.log(entry.k / k)), entry.value or 0.0)) for group in groups if group
    ]
