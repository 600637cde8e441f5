"""forgetting worst-case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

import forgetting as fg
from forgetting.cli.interrupts import uninterrupted
from forgetting.cli.options import Orders, as_steps, grouped_options
from forgetting.cli.output import Content, Output, result
from forgetting.errors import InvalidInputError
from forgetting.files.outputs import check_output


def as_tasks(word: Any) -> float:
    """The number of tasks that a word names, or inf.

    >>> as_tasks("inf"), as_tasks("3")
    (inf, 3)
    """
    return float("inf") if str(word).lower() in ("inf", "infinity") else as_steps(word, "T")


@grouped_options
def worst_case_command(
    T: Annotated[float, typer.Argument(metavar="T", parser=as_tasks, help="Number of tasks; inf for any number.")],
    k: Annotated[int, typer.Argument(metavar="K", parser=as_steps, help="Number of tasks learned.")],
    kind: Annotated[str, typer.Option(help="subspaces, or convex for closed convex sets.")] = "subspaces",
    quantity: Annotated[str, typer.Option(help="loss, forgetting or next_loss.")] = "loss",
    ordering: Orders = "with-replacement",
    patience: Annotated[float, typer.Option(help="Seconds that it may take, as estimated; inf to wait.")] = 60.0,
    certificate: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the proof to this file.")] = None,
    tasks: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write tasks that attain the value.")] = None,
    *,
    output: Output,
) -> None:
    """The worst case over all tasks, with a proof.

    The largest expected loss or forgetting after K steps that any T tasks have (radius 1, |w*| = 1), a certificate of
    an upper bound in exact arithmetic, and tasks that attain the value. k = 4 takes up to a minute.

    \b
    Examples:
      forgetting worst-case 5 2
      forgetting worst-case inf 3 --quantity forgetting
      forgetting worst-case 3 2 --certificate proof.json --tasks worst.npz
      python -m forgetting.worstcase.check_certificate proof.json
    """
    output.check()
    for path, ending in ((certificate, ".json"), (tasks, ".npz")):
        if path is not None:
            if path.suffix.lower() != ending:
                raise InvalidInputError(f"{path}: the name must end in {ending}")
            check_output(path, force=output.force)
    with uninterrupted():
        worst = fg.worst_case(T, k, kind, quantity, ordering, patience)
    if tasks is not None and worst.tasks is None:
        raise InvalidInputError(f"--tasks: {worst.why_no_tasks}")
    files: dict[Path, Content] = {}
    if certificate is not None:
        files[certificate] = worst.certificate.to_json
    if tasks is not None:
        files[tasks] = lambda: _saved(worst.tasks)
    table = worst.to_table()
    report = result(
        worst.headline,
        "worst-case",
        [replace(table, key="worst-case", title="Worst case", notes=())],
        [f"{worst.certificate}", *table.notes],
        T=None if float("inf") == T else T, k=k, sets=kind, quantity=quantity,
        ordering=ordering, value=worst.value, upper=worst.upper, lower=worst.lower,
        dim=None if worst.tasks is None else worst.tasks.dim,
        status=worst.status,
    )  # fmt: skip
    output.emit(report, files=files)


def _saved(thing: Any) -> bytes:
    """The bytes that `save` writes."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "saved.npz")
        thing.save(path)
        return path.read_bytes()
