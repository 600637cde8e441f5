"""forgetting frontier: show, verify and improve."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import forgetting as fg
from forgetting.cli.interrupts import uninterrupted
from forgetting.cli.options import VIOLATED, Json, grouped_options, steps_option
from forgetting.cli.output import Output, result, working
from forgetting.cli.worst_case import as_tasks
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.tasks.worst_tasks import FOLDER, entry_files

if TYPE_CHECKING:
    from forgetting.worstcase import Entry


HELP = """The worst tasks that are known, for anyone to verify and beat.

For each number of tasks T and of steps k: the largest known expected loss or
forgetting, tasks that reach it, and the smallest upper bound. Entries of your
own are files in a folder (--folder); those of the package are never changed.

\b
Examples:
  forgetting frontier show
  forgetting frontier verify
  forgetting frontier improve --T 8 --d 6 --k 64
"""
OWN = Path("frontier")

Quantity = Annotated[str, typer.Option("--quantity", help="loss or forgetting.")]
Folder = Annotated[Path, typer.Option("--folder", help="Your own entries.")]
OneStep = Annotated[int | None, steps_option("Steps.")]


@grouped_options
def show_frontier(
    quantity: Quantity = "loss",
    T: Annotated[float | None, typer.Option(parser=as_tasks, metavar="INTEGER", help="Tasks, or inf for any.")] = None,
    k: OneStep = None,
    upper: Annotated[bool, typer.Option("--upper", help="A picture with the upper bounds.")] = False,
    folder: Folder = OWN,
    *,
    output: Output,
) -> None:
    """The largest known values times k, from below and above.

    Without --T and --k, for any number of tasks: one row for each k. A picture (--out FILE.png) has a curve for each T.

    \b
    Examples:
      forgetting frontier show
      forgetting frontier show --quantity forgetting --T 3
      forgetting frontier show --k 64
      forgetting frontier show --out frontier.png
    """
    output.check()
    shown = fg.worstcase.frontier(quantity, T=T, k=k, folder=folder if folder.is_dir() else None)
    if not shown.rows:
        raise InvalidInputError(f"no entry on {quantity} with T = {T}, k = {k}; forgetting frontier show lists all k")
    every = shown.to_table()
    whole = T is not None or k is not None or output.as_json or output.ending in (".json", ".html")
    table = replace(every, key="entries", title="Largest known values times k") if whole else shown.envelope_table()
    report = result(
        shown.headline, "frontier", [replace(table, notes=()), shown.figure(upper=upper)], every.notes,
        quantity=quantity, ordering=shown.ordering, entries=len(shown.entries),
    )  # fmt: skip
    output.emit(report)


def verify_frontier(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES", help="Files of entries; left out: all of the package.")
    ] = None,
    folder: Folder = OWN,
    as_json: Json = False,
) -> None:
    """Compute values again, and check certificates.

    Every value is computed by the exact engine from the stored tasks, and every certificate that is kept is multiplied
    out in exact arithmetic: a minute for all. Exit code 3: an entry is damaged, or does not hold.

    \b
    Examples:
      forgetting frontier verify
      forgetting frontier verify frontier/loss-T8-k64.json
    """
    from forgetting.worstcase import Entry

    paths = list(files or [*entry_files(FOLDER), *entry_files(folder)])
    rows: list[dict[str, Any]] = []
    with working("verifying") as step:
        for done, path in enumerate(paths):
            step(path.name, done, len(paths))
            try:
                rows.append({"file": path.name, "holds": True, **_checked(Entry.read(path))})
            except ForgettingError as error:
                rows.append({"file": path.name, "holds": False, "error": str(error)})
    wrong = [row for row in rows if not row["holds"]]

    def lines() -> Iterator[str]:
        proved = sum(row["holds"] and row["upper"] is not None for row in rows)
        open_ones = ", ".join(row["file"] for row in rows if row["holds"] and row["unchecked"])
        yield f"{len(rows) - len(wrong)} of {len(rows)} entries hold; {proved} of them have a proved upper bound"
        if open_ones:
            yield f"certificates too large to be kept, so that the upper bound was not checked: {open_ones}"
        yield from (f"wrong: {row['error']}" for row in wrong)

    facts = {"verified": len(rows) - len(wrong), "wrong": len(wrong), "entries": rows}
    Output(as_json).give(lines, lambda: json.dumps(facts, indent=1))
    if wrong:
        raise typer.Exit(VIOLATED)


def _checked(entry: Entry) -> dict[str, Any]:
    value, upper = entry.verify()
    unchecked = entry.upper is not None and upper is None
    facts = {"quantity": entry.quantity, "T": entry.T, "k": entry.k, "d": entry.d}
    return {**facts, "value": value, "upper": upper, "unchecked": unchecked}


def improve_frontier(
    k: Annotated[int, steps_option("Steps.")],
    T: Annotated[int | None, typer.Option(min=2, help="Number of tasks.")] = None,
    d: Annotated[int | None, typer.Option(min=2, help="Dimensions.")] = None,
    quantity: Quantity = "loss",
    tasks: Annotated[str | None, typer.Option(metavar="FILE", help="Your own tasks, in place of a search.")] = None,
    restarts: Annotated[int, typer.Option(min=1, help="Starts of a search.")] = 16,
    steps: Annotated[int, typer.Option(min=1, help="Steps of a search.")] = 500,
    seconds: Annotated[float | None, typer.Option(help="Search as long, with new seeds.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random numbers.")] = 0,
    device: Annotated[str | None, typer.Option(help="cuda or another torch device, or cupy.")] = None,
    folder: Folder = OWN,
    as_json: Json = False,
) -> None:
    """Search for larger values, or check your own tasks.

    A search begins with known and with random tasks. A file is written to --folder if the exact value is larger than
    all that is known.

    \b
    Examples:
      forgetting frontier improve --T 8 --d 6 --k 64
      forgetting frontier improve --T 4 --d 4 --k 16 --seconds 60
      forgetting frontier improve --tasks mine.npz --k 10
    """
    if tasks is not None and (T is not None or d is not None):
        raise InvalidInputError("--tasks have their own T and d: leave --T and --d out")
    if tasks is None and (T is None or d is None):
        raise InvalidInputError("give --T and --d for a search, or --tasks FILE")
    given = None if tasks is None else fg.load(tasks)
    with uninterrupted():
        improved = fg.worstcase.improve_frontier(
            T, d, k, quantity, tasks=given, restarts=restarts, steps=steps, seconds=seconds, seed=seed, device=device,
            folder=folder,
        )  # fmt: skip
    entry, path = improved.entry, None if improved.path is None else str(improved.path)
    facts = {
        "quantity": quantity, "T": entry.T, "d": entry.d, "k": k, "value": entry.value, "known": improved.known,
        "better": improved.better, "file": path, "origin": entry.origin,
    }  # fmt: skip
    said = "no file was written" if path is None else f"wrote {path}"
    Output(as_json).give(lambda: (str(improved), said), lambda: json.dumps(facts))


COMMANDS: dict[str, Any] = {"show": show_frontier, "verify": verify_frontier, "improve": improve_frontier}
