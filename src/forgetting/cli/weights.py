"""forgetting weights."""

from __future__ import annotations

from typing import Annotated

import typer

from forgetting.cli.options import Force, Json, Out, Problem, Scheme, Seed, as_steps, reads_files
from forgetting.tasks.readers.sheet import Columns

__all__ = ["weights_command"]


@reads_files
def weights_command(
    problem: Problem = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            "-k",
            parser=as_steps,
            metavar="INTEGER",
            help="The least expected loss after k steps; left out: the fastest decay.",
            show_default=False,
        ),
    ] = None,
    scheme: Scheme = None,
    seed: Seed = None,
    as_json: Json = False,
    out: Out = None,
    force: Force = False,
    *,
    reading: Columns,
) -> None:
    """How often to draw each task: the best sampling weights.

    Beside the value that they reach stand those of uniform and norm-weighted draws.

    \b
    Examples:
      forgetting weights gaussian T=10 d=15 rank=2
      forgetting weights tasks.csv -k 100
      forgetting weights two_lines theta=0.5 -k 20 --scheme "ridge lam=0.1"
    """
    import forgetting as fg
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.cli.output import diverging, emit, ready, result
    from forgetting.cli.problems import load_problem
    from forgetting.figures.items import Item, Table

    ready(out, force, problem)
    loaded = load_problem(problem, seed, reading)
    with uninterrupted(), diverging():
        found = fg.optimal_weights(loaded.problem, "decay" if k is None else "loss", k, scheme)
    table = found.to_table()
    items: list[Item] = [Table("probabilities", "Probabilities", "", table.columns, table.rows), found.figure()]
    report = result(
        f"{loaded.name}: {found.headline[:1].lower()}{found.headline[1:]}",
        "weights",
        items,
        list(table.notes),
        **loaded.origin,
        method=found.method,
        detail=found.detail,
        goal=found.goal,
        k=k,
        scheme=scheme or type(fg.schemes.natural_scheme(loaded.problem)).__name__,
        value=found.value,
        least=found.least,
        uniform=found.uniform,
        norm_weighted=found.norm_weighted,
    )
    emit(report, as_json=as_json, out=out, force=force)
