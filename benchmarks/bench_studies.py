"""Studies of small problems: two workers against one, one worker against a bare loop, and the cost of a cell.

Each problem has T = 10, d = 20, and the exact loss and forgetting at seven k up to 1000. `python -m
benchmarks.bench_studies 1000` takes 1,000 problems a round instead of 40, which takes 10 minutes or more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import forgetting as fg
from benchmarks.timing import report, seconds
from forgetting.compute.threads import one_core
from forgetting.studies import Study, measure

PROBLEM: dict[str, Any] = {"family": "gaussian", "T": 10, "d": 20, "rank": 2, "k": [1, 3, 10, 30, 100, 300, 1000]}
ROUNDS = 3
TINY = 3000


def nothing(a: int) -> int:
    return a


def bare(count: int) -> None:
    """The same problems without a study, on one core as in a study."""
    with one_core():
        for repeat in range(count):
            measure(**PROBLEM, seed=repeat)


def small_problems(count: int) -> None:
    with TemporaryDirectory() as folder:
        number = iter(range(1000))

        def study(jobs: int, cells: int = count) -> Callable[[], object]:
            store = Path(folder, f"{next(number)}.db")  # a new one, so that everything is computed
            return lambda: fg.Study.grid(**PROBLEM, repeats=cells, store=store).run(jobs=jobs, progress=False)

        bare(1)
        study(2, 4)()  # starts the workers, which compile
        one, two, loop = [], [], []
        for _ in range(ROUNDS if count < 500 else 1):
            loop.append(seconds(lambda: bare(count)))
            one.append(seconds(study(1)))
            two.append(seconds(study(2)))
    report(f"{count} small problems, 1 worker against a bare loop", one, loop, target=1.1, at_most=True)
    report(f"{count} small problems, 2 workers against 1", two, one, target=1.7)


def tiny_cells() -> None:
    """What the study itself costs: cells that compute nothing, as a share of 1 ms a cell."""
    with TemporaryDirectory() as folder:
        for jobs in (1, 2):
            Study([{"a": a} for a in range(50)], None, function=nothing).run(jobs=jobs, progress=False)
            for where in ("memory", "file"):
                store = Path(folder, f"{jobs}.db") if where == "file" else None
                study = Study([{"a": a} for a in range(TINY)], store, function=nothing)
                took = seconds(lambda: study.run(jobs=jobs, progress=False))  # noqa: B023
                name = f"a cell that computes nothing, in {where}, {jobs} worker{'s' * (jobs > 1)}, of 1 ms"
                report(name, [took / TINY], [1e-3], target=1, at_most=True)
        study = Study([{"a": a} for a in range(TINY)], Path(folder, "1.db"), function=nothing)
        for name, work in (("status", lambda: study.status), ("rows", study.rows)):
            report(f"{name} of {TINY} cells, a cell, of 0.1 ms", [seconds(work) / TINY], [1e-4], target=1, at_most=True)


def main(count: int = 40) -> None:
    tiny_cells()
    small_problems(count)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
