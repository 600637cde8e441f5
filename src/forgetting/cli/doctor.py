"""forgetting doctor."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from typing import Any

import typer

from forgetting.cli.certify import VIOLATED
from forgetting.cli.options import Json
from forgetting.core.memory import available_memory

__all__ = ["doctor_command"]


def doctor_command(as_json: Json = False) -> None:
    """Versions, threads, memory, where compiled code is kept, and a short self test.

    The test compares the engines with known answers; the exit code is 3 if an answer differs or is missing. A line says
    what is broken, and why.

    \b
    Examples:
      forgetting doctor
      forgetting doctor --json
    """
    from forgetting.cli.output import emit, result
    from forgetting.figures.items import Table
    from forgetting.report.provenance import versions

    machine = [*versions().items(), *((name, _protected(value)) for name, value in MACHINE.items())]
    tests = [(name, *_verdict(test)) for name, test in TESTS.items()]
    items = [
        Table("machine", "This machine", "", ("what", "value"), tuple(machine)),
        Table("tests", "Known answers", "", ("test", "error", "verdict"), tuple(tests)),
    ]
    broken = [row[0] for row in tests if row[2] != "holds"]
    said = [f"FAILS: {name}" for name in broken] or ["all is well"]
    emit(result("Doctor", "doctor", [*items], said, method="self test"), as_json=as_json, out=None)
    if broken:
        raise typer.Exit(VIOLATED)


def _protected(value: Callable[[], Any]) -> Any:
    """A value, or the reason why there is none."""
    try:
        return value()
    except Exception as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]


def _verdict(test: Callable[[], float]) -> tuple[Any, str]:
    """The error of a test and what it means, or the reason why it could not be run."""
    error = _protected(test)
    return error, "holds" if isinstance(error, float) and error < 1e-12 else "FAILS"


def _threads() -> int:
    import numba

    return int(numba.get_num_threads())


def _compiled_code() -> str:
    import numba

    from forgetting.compute.compiling import kept_in

    return "none, by NUMBA_DISABLE_JIT" if numba.config.DISABLE_JIT else kept_in()


def _expected_loss() -> float:
    """The expected loss of two lines at an angle of THETA after STEPS random tasks, by its formula."""
    from math import cos, sin

    return 0.25 * sin(THETA) ** 2 * (1 + cos(THETA)) / 2 * ((1 + cos(THETA) ** 2) / 2) ** (STEPS - 1)


def _exact() -> float:
    import forgetting as fg

    found = fg.expect(fg.families.two_lines(THETA), fg.orderings.WithReplacement(), STEPS)
    return abs(float(found.loss) / _expected_loss() - 1)


def _simulated() -> float:
    import forgetting as fg

    lines = fg.families.two_lines(THETA)
    found = fg.expect(lines, fg.orderings.WithReplacement(), STEPS, method="monte-carlo", runs=2048)
    low, high = found.loss_interval
    return max(float(low) - _expected_loss(), _expected_loss() - float(high), 0.0)


def _orthogonal() -> float:
    import numpy as np

    import forgetting as fg

    run = fg.run(fg.families.orthogonal(4), fg.orderings.Cyclic(), 4)
    return float(np.abs(run.forgetting).max())


THETA, STEPS = 0.5, 10
MACHINE: dict[str, Callable[[], Any]] = {
    "cores": lambda: len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
    "threads of numba": _threads,
    "compiled code": _compiled_code,
    "available memory, GiB": lambda: round(available_memory() / 2**30, 1),
    "free disk here, GiB": lambda: round(shutil.disk_usage(".").free / 2**30, 1),
}
TESTS: dict[str, Callable[[], float]] = {
    "expected loss of two lines": _exact,
    "simulation around it": _simulated,
    "orthogonal tasks are not forgotten": _orthogonal,
}
