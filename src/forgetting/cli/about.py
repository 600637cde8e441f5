"""forgetting families, cite and doctor: what the package holds, where it comes from, and whether it works here."""

from __future__ import annotations

import inspect
import os
import shutil
import textwrap
from collections.abc import Callable
from math import cos, sin
from typing import Annotated, Any

import numpy as np
import typer

import forgetting as fg
from forgetting.cli.options import VIOLATED, Json
from forgetting.cli.output import Output, result, say, terminal_width
from forgetting.core.extras import EVERYTHING, EXTRAS
from forgetting.core.memory import available_memory
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Table


def families_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Describe this family in full.")] = "",
    as_json: Json = False,
) -> None:
    """The named families of tasks and the data sets, with their parameters.

    \b
    Examples:
      forgetting families
      forgetting families catastrophic
    """
    from forgetting.studies.measuring import family_maker, family_names

    names = family_names()
    key = name.replace("-", "_")
    if name and key not in names:
        raise InvalidInputError(f"no family {name!r}{nearest(key, names)}")
    rows = []
    for family in [key] if name else names:
        make = family_maker(family)
        parameters = inspect.signature(make).parameters.values()
        shown = " ".join(p.name + ("=" if p.default is p.empty else f"={p.default}") for p in parameters)
        rows.append((family, shown, " ".join((make.__doc__ or "").split("\n\n")[0].split())))
    if as_json:
        table = Table("families", "Families", "", ("family", "parameters", "what it is"), tuple(rows))
        Output(as_json).emit(result("Named families of tasks", "families", [table], [], method="listing"))
        return
    width = terminal_width()
    for family, shown, words in rows:
        say(textwrap.fill(f"{family} {shown}", width, subsequent_indent="  ", break_long_words=False))
        prose = inspect.cleandoc(family_maker(key).__doc__ or "").split(">>>")[0] if name else words
        for paragraph in prose.strip().split("\n\n"):
            say(textwrap.fill(" ".join(paragraph.split()), width, initial_indent="    ", subsequent_indent="    "))
    if not name:
        say("", "copies=n repeats all tasks of any of them, as in", "  forgetting expect two_lines theta=0.1 copies=50")


# ----------------------------------------------------------------------------------------------------------------- cite


def cite_command(
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY", help="A bound, a label of the paper, a source, or forgetting.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The sources of bounds and statements, as BibTeX.

    Without KEY, a list of the sources.

    \b
    Examples:
      forgetting cite
      forgetting cite thm:cl_by_sgd_main
      forgetting cite evron2022:cyclic/forgetting lan2012optimal > sources.bib
      forgetting cite forgetting
    """
    from forgetting.theory.bibliography import SOURCES, entries, software_entry

    if keys:
        bibtex = tuple(dict.fromkeys(entry for key in keys for entry in entries(key)))
        table = Table("sources", "Sources", "", ("bibtex",), tuple((entry,) for entry in bibtex))
    else:
        sources = [*SOURCES.values(), software_entry()]
        rows = tuple((source.key, source.name, source.bibtex) for source in sources)
        table = Table("sources", "Sources", "", ("key", "source", "bibtex"), rows)
    if keys and not as_json:
        say("\n\n".join(bibtex))
        return
    said = "a bound (forgetting bounds) or a label (forgetting claims) will do as a KEY, too"
    Output(as_json).emit(result("Sources", "cite", [table], [said]), hidden=("bibtex",))


# --------------------------------------------------------------------------------------------------------------- doctor


def doctor_command(as_json: Json = False) -> None:
    """Versions, extras, threads, memory, where compiled code is kept, and a short self test.

    The test compares the engines with known answers; the exit code is 3 if an answer differs or is missing. A line says
    what is broken, and why. Extras that are not installed are named with what they unlock and the command that installs
    them.

    \b
    Examples:
      forgetting doctor
      forgetting doctor --json
    """
    from forgetting.report.provenance import versions

    machine = [*versions().items(), *((name, _protected(value)) for name, value in MACHINE.items())]
    tests = [(name, *_verdict(test)) for name, test in TESTS.items()]
    extras = [(extra.name, extra.unlocks, extra.missing or "yes") for extra in EXTRAS]
    items = [
        Table("extras", "Extras", "", ("extra", "unlocks", "installed"), (("(none)", BASE, "yes"), *extras)),
        Table("machine", "This machine", "", ("what", "value"), tuple(machine)),
        Table("tests", "Known answers", "", ("test", "error", "verdict"), tuple(tests)),
    ]
    broken = [row[0] for row in tests if row[2] != "holds"]
    said = [f"FAILS: {name}" for name in broken] or ["every known answer holds"]
    absent = [extra.name for extra in EXTRAS if extra.missing]
    if absent:
        said.append(f"not installed: {', '.join(absent)}; see below what they unlock; {EVERYTHING} installs all extras")
    Output(as_json).emit(result("Doctor", "doctor", items, said, method="self test"))
    if broken:
        raise typer.Exit(VIOLATED)


def _protected(value: Callable[[], Any]) -> Any:
    """A value, or the error that it raised, in words."""
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
    return 0.25 * sin(THETA) ** 2 * (1 + cos(THETA)) / 2 * ((1 + cos(THETA) ** 2) / 2) ** (STEPS - 1)


def _exact() -> float:
    expected = fg.expect(fg.families.two_lines(THETA), fg.orderings.WithReplacement(), STEPS)
    return abs(float(expected.loss) / _expected_loss() - 1)


def _simulated() -> float:
    lines = fg.families.two_lines(THETA)
    expected = fg.expect(lines, fg.orderings.WithReplacement(), STEPS, method="monte-carlo", runs=2048)
    low, high = expected.loss_interval
    return max(float(low) - _expected_loss(), _expected_loss() - float(high), 0.0)


def _orthogonal() -> float:
    run = fg.run(fg.families.orthogonal(4), fg.orderings.Cyclic(), 4)
    return float(np.abs(run.forgetting).max())


BASE = "runs, exact expectations, bounds, audits, linear systems, CSV, TSV and npz files"
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
