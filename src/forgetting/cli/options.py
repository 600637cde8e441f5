"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetting.orderings import registry as orderings
from forgetting.schemes import registry as schemes

__all__ = ["Force", "Json", "Orders", "Out", "Problem", "Scheme", "Seed", "Step", "Steps"]

Problem = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROBLEM", help="A family with parameters, an .npz file, or a .toml config.", show_default=False
    ),
]
Orders = Annotated[
    str,
    typer.Option(
        "--ordering",
        "-o",
        help=f'{", ".join(orderings)}; with parameters in quotes, as in "explicit seq=0,1,1".',
    ),
]
Scheme = Annotated[
    str | None,
    typer.Option(
        "--scheme",
        help=f'How a task is learned: {", ".join(schemes)}; with parameters in quotes, as in "sgd step_size=0.5". '
        "Left out: each task is learned to convergence.",
        show_default=False,
    ),
]
Step = Annotated[int, typer.Option("--k", "-k", min=1, help="Number of tasks learned.")]
LastStep = Annotated[
    int | None,
    typer.Option("--k", "-k", min=1, help="Number of tasks learned; left out: 1000, or one pass.", show_default=False),
]
Steps = Annotated[str, typer.Option("--k", "-k", help="Number of tasks learned; several with commas.")]
Seed = Annotated[
    int | None, typer.Option("--seed", min=0, help="The seed of all random numbers. [default: 0]", show_default=False)
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Write to a file: .json (reloads), .csv, .html, .tex, .png or .pdf.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that this program wrote.")]
