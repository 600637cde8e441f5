"""A study of small problems by a bare loop, one worker and two: wall-clock seconds, and what a cell costs the study."""

from __future__ import annotations

import time
from multiprocessing.connection import Connection
from typing import Any

import forgetting as fg
from benchmarks.costs.measuring import in_child
from forgetting.compute.threads import one_core
from forgetting.studies import Study, measure

PROBLEM: dict[str, Any] = {"family": "gaussian", "T": 10, "d": 20, "rank": 2, "k": [1, 3, 10, 30, 100, 300, 1000]}
COUNT, EMPTY = 40, 1000
ROUNDS = 2


def nothing(a: int) -> int:
    return a


def with_workers(jobs: int, code: str) -> dict[str, Any]:
    """Seconds of COUNT problems and of a cell that computes nothing; `jobs` = 0 is a bare loop without a study."""
    found: dict[str, Any] = in_child(_measure, jobs)
    return found


def _measure(sender: Connection, jobs: int) -> None:
    def problems(count: int) -> None:
        if jobs:
            fg.Study.grid(**PROBLEM, repeats=count, store=None).run(jobs=jobs, progress=False)
            return
        with one_core():
            for repeat in range(count):
                measure(**PROBLEM, seed=repeat)

    def cells(count: int) -> None:
        if jobs:
            Study([{"a": a} for a in range(count)], None, function=nothing).run(jobs=jobs, progress=False)

    row: dict[str, Any] = {"count": COUNT, "cpu": float("inf")}
    for name, work, count in (("seconds", problems, COUNT), ("cell", cells, EMPTY)):
        work(4)  # starts the workers, which compile
        times = []
        for _ in range(ROUNDS):
            start, used = time.perf_counter(), time.process_time()
            work(count)
            times.append(time.perf_counter() - start)
            if name == "seconds":
                row["cpu"] = min(row["cpu"], time.process_time() - used)
        row[name] = min(times) / (count if name == "cell" else 1)
    sender.send(row)
