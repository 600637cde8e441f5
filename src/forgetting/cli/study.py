"""forgetting study: run, status and export."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forgetting.cli.interrupts import uninterrupted
from forgetting.cli.options import VIOLATED, Force, Json
from forgetting.cli.output import Output, result, say
from forgetting.core.extras import module_for
from forgetting.core.text import one_line
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError, WorkerError
from forgetting.files.atomic import kept

if TYPE_CHECKING:
    from forgetting.report import Report
    from forgetting.studies import Study


HELP = """Many problems, computed once, in any number of processes.

A STUDY.toml says what is computed, and a database beside it keeps every
finished cell: a study that was stopped or killed goes on where it was.
See docs/studies.md.

\b
Examples:
  forgetting study run my.toml --jobs 2
  forgetting study status my.toml
  forgetting study export my.toml --out table.parquet
"""
PICTURES = (".png", ".pdf", ".html")
MOST_FAILURES = 5  # that are shown
ANSWER = 10  # seconds that a scheduler has to answer
WIDEST = 200  # characters of a failure

StudyFile = Annotated[str, typer.Argument(metavar="STUDY", help="A .toml file, or the .db file of a study.")]


# --------------------------------------------------------------------------------------------------------- commands


def run_study(
    study: Annotated[str, typer.Argument(metavar="STUDY.toml", help="What is computed.")],
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Processes; -1: one for each core. [default: 1]")
    ] = None,
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Use the workers of a Dask scheduler: tcp://host:8786.")
    ] = None,
    function: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Allow the function that the file names, from an installed module or FILE.py; its code is run.",
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Compute failed cells again.")] = False,
    as_json: Json = False,
) -> None:
    """Compute the cells that are missing.

    Every finished cell is kept at once. Run the same command again after an interrupt, a crash, or an edit of the file:
    it computes only what is missing. Exit code 3: some cells failed.

    \b
    Examples:
      forgetting study run my.toml --jobs -1
      forgetting study run my.toml --dask tcp://192.168.0.7:8786
      forgetting study run my.toml --function mypkg.module:name
      forgetting study run my.toml --retry
    """
    from forgetting.studies import Study

    if dask is not None and jobs is not None:
        raise InvalidInputError("give --jobs or --dask, not both: a cluster has its own number of workers")
    if study.endswith(".db"):
        raise InvalidInputError(f"{study} holds results, and not what is computed: give the .toml file of the study")
    made = Study.from_toml(study, function=function)
    try:
        with uninterrupted(), nullcontext() if dask is None else cluster(dask):
            made.run(jobs, retry=retry)
    except KeyboardInterrupt:
        status = made.status
        kept.append(f"{status.done + status.failed} of {status.total} cells are in {made.store}; run it again to go on")
        raise
    _show(made, as_json=as_json)
    if made.status.failed:
        raise typer.Exit(VIOLATED)


def study_status(study: StudyFile, as_json: Json = False) -> None:
    """How far along a study is, also while it runs elsewhere.

    \b
    Examples:
      forgetting study status my.toml
      forgetting study status my.db --json
    """
    _show(_study(study), as_json=as_json)


def export_study(
    study: StudyFile,
    out: Annotated[Path, typer.Option(help="The file: .parquet, .csv, .json, .png, .pdf or .html.")],
    x: Annotated[str | None, typer.Option(help="A picture's column across; k if left out.")] = None,
    y: Annotated[str | None, typer.Option(help="A picture's column up; the first result if left out.")] = None,
    hue: Annotated[str | None, typer.Option(help="A curve for each value of this column.")] = None,
    times: Annotated[bool, typer.Option("--times", help="Add seconds and version to a table.")] = False,
    force: Force = False,
) -> None:
    """Write the table or a picture of the finished cells.

    \b
    Examples:
      forgetting study export my.toml --out table.parquet
      forgetting study export my.db --out curves.pdf --x k --y loss --hue T
    """
    from forgetting.report.saving import check_file, write_file
    from forgetting.studies.study import export
    from forgetting.studies.table import ENDINGS, check_export

    ending = out.suffix.lower()
    if ending not in (*ENDINGS, *PICTURES):
        raise ProblemFileError(f"{out}: unknown ending; use {', '.join((*ENDINGS, *PICTURES[:-1]))} or {PICTURES[-1]}")
    picture = ending in PICTURES
    if picture and times:
        raise InvalidInputError(f"--times is for tables, and {out} is a picture")
    wrong = next((f"--{name}" for name, value in (("x", x), ("y", y), ("hue", hue)) if value is not None), None)
    if not picture and wrong is not None:
        raise InvalidInputError(f"{wrong} is for pictures ({', '.join(PICTURES)}), and {out} is a table")
    made = _study(study)
    if picture:
        check_file(out, force, [study])
        write_file(_picture(made, x, y, hue), out, force=force)
    else:
        check_export(out, force=force)
        export(made, out, times=times, force=force)
    status = made.status
    say(f"wrote {out}: {len(made.rows())} rows of {status.done + status.failed} finished cells of {status.total}")


COMMANDS: dict[str, Any] = {"run": run_study, "status": study_status, "export": export_study}


# ------------------------------------------------------------------------------------------------------------- parts


def _study(source: str) -> Study:
    """The study of a .toml file, or of a store."""
    from forgetting.studies import Study

    return Study.open(source) if source.endswith(".db") else Study.from_toml(source)


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Send the cells of studies in the block to the workers of a Dask scheduler."""
    distributed = module_for("--dask", "distributed")
    import joblib

    try:
        client = distributed.Client(address, timeout=ANSWER)
    except (OSError, TimeoutError, ValueError) as error:
        raise WorkerError(
            f"no Dask scheduler answers at {address!r:.80} within {ANSWER} s ({error}); start one with dask scheduler"
        ) from error
    with client:
        if not client.scheduler_info().get("workers"):
            raise WorkerError(f"the Dask scheduler at {address} has no workers; start some with dask worker {address}")
        with joblib.parallel_config("dask"):
            yield


def _show(study: Study, *, as_json: bool) -> None:
    """Print the status, the first failures and the versions."""
    status, failures = study.status, study.failures

    def lines() -> Iterator[str]:
        yield from (str(status), f"store: {study.store}")
        if status.versions:
            yield f"computed by forgetting {', '.join(status.versions)}"
        for cell, error in list(failures.items())[:MOST_FAILURES]:
            yield one_line(f"failed: {cell}: {error}", WIDEST)
        if len(failures) > MOST_FAILURES:
            yield f"and {len(failures) - MOST_FAILURES} more failed cells"

    store = None if study.store is None else str(study.store)
    facts = {**asdict(status), "total": status.total, "store": store, "failures": failures}
    Output(as_json).give(lines, lambda: json.dumps(facts))


def _picture(study: Study, x: str | None, y: str | None, hue: str | None) -> Report:
    """The figure and the table of the finished cells."""
    figure = study.figure(x, y, hue)
    if figure is None:
        raise NotSupportedError(f"nothing to draw: {study.status}; name columns with --x and --y")
    return result(
        f"Study of {len(study)} cells", "study", [figure, study.to_table()], [str(study.status), figure.caption],
        function=study.function.name, seed=study.seed,
    )  # fmt: skip
