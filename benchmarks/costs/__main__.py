"""Measure what calls cost, and write the page "How far it goes": `python -m benchmarks.costs --page docs/how_far.md`.

What is measured goes to a JSON file beside the page, from which the page and its figures are written; `--write-only`
writes them again without measuring. A measurement that was stopped goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import forgetting as fg
from benchmarks.costs.calls import CALLS, CONTESTS, Call
from benchmarks.costs.contests import where_auto_changes
from benchmarks.costs.measuring import measured
from benchmarks.costs.page import write_page
from benchmarks.costs.workers import with_workers
from forgetting.files.store import code_digest
from forgetting.studies import Study
from forgetting.studies.resuming import finished_parts


def cells(only: str = "") -> list[dict[str, Any]]:
    """All that is measured: a call, an axis and a value each, and what decides what is measured there."""
    calls = [*CALLS, *(call for contest in CONTESTS for call in contest.calls)]
    return [
        {"call": call.name, "axis": axis, "value": value, "sizes": call.sizes(axis, value), "code": digest(call)}
        for call in calls
        if only in call.name
        for axis, values in call.axes.items()
        for value in values
    ]


def measure_all(store: Path | None, only: str = "") -> dict[str, Any]:
    """The data of the page."""
    study = Study(cells(only), store, function=measured)
    study.run(jobs=1, retry=True, check=True, finished=_say)
    names = ("call", "axis", "value", "seconds", "rounds", "bytes", "detail", "estimated_seconds", "estimated_bytes")
    data: dict[str, Any] = {
        "machine": {
            "forgetting": fg.__version__, "python": platform.python_version(), "numpy": np.__version__,
            "processor": platform.machine(), "cores": os.cpu_count(),
        },
        "points": [{name: row[name] for name in names if name in row} for row in study.rows()],
        "workers": [],
        "auto": [],
    }  # fmt: skip
    if not only:
        teams = Study([{"jobs": jobs, "code": digest()} for jobs in (0, 1, 2)], store, function=with_workers)
        teams.run(jobs=1, progress=False, retry=True, check=True)
        rows = teams.rows()
        data["workers"] = [{name: row[name] for name in ("jobs", "count", "seconds", "cpu", "cell")} for row in rows]
        data["auto"] = [{"question": contest.question, **where_auto_changes(contest)} for contest in CONTESTS]
    return data


def _say(cell: dict[str, Any], rows: Any) -> None:
    row = rows[0]
    size = "" if row["bytes"] is None else f"{row['bytes'] / 2**20:8.1f} MiB"
    print(f"{cell['call']:<40} {cell['axis']:>5} = {cell['value']:<9} {row['seconds']:9.4f} s {size}", flush=True)


def digest(call: Call | None = None) -> str:
    """Of the library, of how costs are measured, and of what a call does: other code is measured anew."""
    total = hashlib.sha256(code_digest().encode())
    for name in ("measuring.py", "warm.py", "workers.py"):
        total.update(Path(__file__).with_name(name).read_bytes())
    for part in () if call is None else (call.prepare, call.work):
        total.update(inspect.getsource(part).encode())
    return total.hexdigest()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--page", type=Path, help="the page to write, with its data and figures beside it")
    parser.add_argument("--write-only", action="store_true", help="write the page again from its data")
    parser.add_argument("--only", default="", help="only calls whose name contains this; nothing is written")
    chosen = parser.parse_args(arguments)
    page: Path | None = None if chosen.only else chosen.page
    if page is None:
        measure_all(None, chosen.only)
        return
    source = page.with_suffix(".json")
    if not chosen.write_only:
        with finished_parts(source) as store:
            text = json.dumps(measure_all(store), indent=1)
            source.write_text(text + "\n", encoding="utf-8")
    write_page(json.loads(source.read_text(encoding="utf-8")), page)


if __name__ == "__main__":
    main()
