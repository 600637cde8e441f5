"""Options and an exit code that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from forgetting.core.arrays import as_count
from forgetting.errors import ForgettingError
from forgetting.files.tables import parse_number
from forgetting.orderings import registry as orderings
from forgetting.schemes import registry as schemes
from forgetting.tasks.readers.sheet import Columns

VIOLATED = 3  # exit code: a statement was violated, a solve did not converge, a cell of a study failed

Problem = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROBLEM",
        help="A family with parameters, a file or several (.csv, .tsv, .parquet, .npz), or a .toml config.",
        show_default=False,
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


def as_steps(word: Any) -> int:
    """The number of steps that a word names, such as 100 or 1e3."""
    number = parse_number(str(word))
    exact = int(word) if str(word).isdecimal() else number
    try:
        return as_count(word if number is None else exact, "k", least=1)
    except ForgettingError as error:
        raise typer.BadParameter(str(error)) from None


Step = Annotated[
    int, typer.Option("--k", "-k", parser=as_steps, metavar="INTEGER", help="Number of tasks learned, such as 1e3.")
]
LastStep = Annotated[
    int | None,
    typer.Option(
        "--k",
        "-k",
        parser=as_steps,
        metavar="INTEGER",
        help="Number of tasks learned; left out: 1000, or one pass.",
        show_default=False,
    ),
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

#: how the rows of files are read, and what is done with their features; the names are the fields of `Columns`
READING = {
    "task": Annotated[str, typer.Option("--task", help="Of a file: the column that names the task of a row.")],
    "label": Annotated[str, typer.Option("--label", help="Of a file: the column of labels.")],
    "positive": Annotated[
        str | None,
        typer.Option("--positive", help="The class that counts as +1, all others as -1.", show_default=False),
    ],
    "drop": Annotated[
        list[str], typer.Option("--drop", help="A column that is no feature; may be repeated.", show_default=False)
    ],
    "drop_nan": Annotated[bool, typer.Option("--drop-nan", help="Leave out rows with missing numbers.")],
    "intercept": Annotated[bool, typer.Option("--intercept", help="Add a last column of ones to the features.")],
    "standardize": Annotated[
        str | None,
        typer.Option(
            "--standardize",
            metavar="all|first",
            help="Standardize each feature by the rows of all tasks, or of the first.",
            show_default=False,
        ),
    ],
    "features": Annotated[
        int | None,
        typer.Option("--features", help="Map the features to this many random ones, by --seed.", show_default=False),
    ],
    "loss": Annotated[
        str | None,
        typer.Option(
            "--loss", metavar="sum|mean", help="Sum the loss of a task over its rows, or average.", show_default=False
        ),
    ],
}


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how the rows of files are read; it gets them as `reading`.

    A command that has an option of the same name keeps its own.
    """
    own = inspect.signature(command, eval_str=True)
    shared = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=READING[field.name]
        )
        for field in fields(Columns)
        if field.name not in own.parameters
    ]
    parameters = [*(parameter for parameter in own.parameters.values() if parameter.name != "reading"), *shared]

    @wraps(command)
    def call(**values: Any) -> None:
        reading = Columns(**{parameter.name: values.pop(parameter.name) for parameter in shared})
        command(**values, reading=reading)

    call.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call
