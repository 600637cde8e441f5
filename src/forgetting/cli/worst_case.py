"""forgetting worst-case."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from forgetting.cli.options import Force, Json, Orders, Out, as_steps


def as_tasks(word: Any) -> float:
    """The number of tasks that a word names, or inf.

    >>> as_tasks("inf"), as_tasks("3")
    (inf, 3)
    """
    return float("inf") if str(word).lower() in ("inf", "infinity") else as_steps(word)


def worst_case_command(
    T: Annotated[float, typer.Argument(metavar="T", parser=as_tasks, help="Number of tasks; inf for any number.")],
    k: Annotated[int, typer.Argument(metavar="K", parser=as_steps, help="Number of tasks learned.")],
    kind: Annotated[str, typer.Option("--kind", help="subspaces, or convex for closed convex sets.")] = "subspaces",
    quantity: Annotated[str, typer.Option("--quantity", help="loss, forgetting or next_loss.")] = "loss",
    ordering: Orders = "with-replacement",
    patience: Annotated[float, typer.Option(help="Seconds that it may take, as estimated; inf to wait.")] = 60.0,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE.json", help="Write the proof to this file.", show_default=False),
    ] = None,
    tasks: Annotated[
        Path | None,
        typer.Option("--tasks", metavar="FILE.npz", help="Write tasks that attain the value.", show_default=False),
    ] = None,
    as_json: Json = False,
    out: Out = None,
    force: Force = False,
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
    import forgetting as fg
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.cli.output import emit, ready, result, say
    from forgetting.errors import InvalidInputError
    from forgetting.figures.items import Item, Table
    from forgetting.files.outputs import check_output, write_output

    ready(out, force)
    for path, ending in ((certificate, ".json"), (tasks, ".npz")):
        if path is not None:
            if path.suffix.lower() != ending:
                raise InvalidInputError(f"{path}: the name must end in {ending}")
            check_output(path, force=force)
    with uninterrupted():
        worst = fg.worst_case(T, k, kind, quantity, ordering, patience)
    if tasks is not None and worst.tasks is None:
        raise InvalidInputError(f"--tasks: {worst.why_no_tasks}")
    if certificate is not None:
        write_output(certificate, worst.certificate.to_json().encode(), force=force)
    if tasks is not None:
        write_output(tasks, _saved(worst.tasks), force=force)
    table = worst.to_table()
    items: list[Item] = [Table("worst-case", "Worst case", "", table.columns, table.rows)]
    report = result(
        worst.headline, "worst-case", items, [f"{worst.certificate}", *table.notes],
        T=None if float("inf") == T else T, k=k, sets=kind, quantity=quantity,
        ordering=ordering, value=worst.value, upper=worst.upper, lower=worst.lower,
        dim=None if worst.tasks is None else worst.tasks.dim,
        status=worst.status,
    )  # fmt: skip
    emit(report, as_json=as_json, out=out, force=force)
    if not as_json:
        say(*(f"wrote {path}" for path in (certificate, tasks) if path is not None))


def _saved(thing: Any) -> bytes:
    """The bytes that `save` writes."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder, "saved.npz")
        thing.save(path)
        return path.read_bytes()
