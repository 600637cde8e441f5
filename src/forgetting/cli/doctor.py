"""forgetting doctor."""

from __future__ import annotations

import os
import shutil
from typing import Any

import typer

from forgetting.cli.certify import VIOLATED
from forgetting.cli.options import Json

__all__ = ["doctor_command"]


def doctor_command(as_json: Json = False) -> None:
    """Versions, threads, memory, and a short self test.

    The engines are compared with known answers; the exit code is 3 if they disagree.

    \b
    Examples:
      forgetting doctor
      forgetting doctor --json
    """
    from forgetting.cli.output import emit, result
    from forgetting.report.data import Table
    from forgetting.report.provenance import versions

    machine = [(name, value) for name, value in versions().items()] + _machine()
    tests = _tests()
    items = [
        Table("machine", "This machine", "", ("what", "value"), tuple(machine)),
        Table("tests", "Known answers", "", ("test", "error", "verdict"), tuple(tests)),
    ]
    broken = [row[0] for row in tests if row[2] != "holds"]
    said = [f"FAILS: {name}" for name in broken] or ["all is well"]
    emit(result("Doctor", "doctor", [*items], said, method="self test"), as_json=as_json, out=None)
    if broken:
        raise typer.Exit(VIOLATED)


def _machine() -> list[tuple[str, Any]]:
    import numba

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    rows: list[tuple[str, Any]] = [("cores", cores), ("threads of numba", numba.get_num_threads())]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        rows.append(("memory, GiB", round(total / 2**30, 1)))
    rows.append(("free disk here, GiB", round(shutil.disk_usage(".").free / 2**30, 1)))
    return rows


def _tests() -> list[tuple[str, float, str]]:
    import numpy as np

    import forgetting as fg

    theta = 0.5
    lines = fg.families.two_lines(theta)
    closed = 0.25 * np.sin(theta) ** 2 * (1 + np.cos(theta)) / 2 * ((1 + np.cos(theta) ** 2) / 2) ** 9
    random = fg.orderings.WithReplacement()
    exact = fg.expect(lines, random, 10)
    simulated = fg.expect(lines, random, 10, method="monte-carlo", runs=2048)
    low, high = simulated.loss_interval
    run = fg.run(fg.families.orthogonal(4), fg.orderings.Cyclic(), 4)
    errors = {
        "expected loss of two lines": abs(float(exact.loss) / closed - 1),
        "simulation around it": max(float(low) - closed, closed - float(high), 0.0),
        "orthogonal tasks are not forgotten": float(np.abs(run.forgetting).max()),
    }
    return [(name, error, "holds" if error < 1e-12 else "FAILS") for name, error in errors.items()]
