"""The options that several commands share, alone and in groups, and an exit code."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from forgetting.core.arrays import as_count
from forgetting.errors import ForgettingError
from forgetting.files.tables import parse_number
from forgetting.orderings import registry as orderings
from forgetting.schemes import registry as schemes
from forgetting.tasks.readers.sheet import Columns

VIOLATED = 3  # exit code: a statement was violated, a solve did not converge, a cell of a study failed

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PROBLEM",
        help="A family with parameters, a file or several (.csv, .tsv, .parquet, .npz), or a .toml config.",
    ),
]
Orders = Annotated[
    str,
    typer.Option(
        "--ordering", "-o", help=f'{", ".join(orderings)}; with parameters in quotes, as in "explicit seq=0,1,1".'
    ),
]
Scheme = Annotated[
    str | None,
    typer.Option(
        "--scheme",
        help=f'How a task is learned: {", ".join(schemes)}; with parameters in quotes, as in "sgd step_size=0.5". '
        "Left out: each task is learned to convergence.",
    ),
]


def as_steps(word: Any, name: str = "k") -> int:
    """The number of steps, or of what `name` is, that a word names, such as 100 or 1e3."""
    number = parse_number(str(word))
    exact = int(word) if str(word).isdecimal() else number
    try:
        return as_count(word if number is None else exact, name, least=1)
    except ForgettingError as error:
        raise typer.BadParameter(str(error)) from None


def steps_option(words: str) -> Any:
    """The option --k for one number of steps."""
    return typer.Option("--k", "-k", parser=as_steps, metavar="INTEGER", help=words)


Step = Annotated[int, steps_option("Number of tasks learned, such as 1e3.")]
LastStep = Annotated[int | None, steps_option("Number of tasks learned; left out: 1000, or one pass.")]
Steps = Annotated[str, typer.Option("--k", "-k", help="Number of tasks learned; several with commas.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="The seed of all random numbers. [default: 0]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Out = Annotated[
    Path | None, typer.Option("--out", help="Write to a file: .json (reloads), .csv, .html, .tex, .png or .pdf.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that this program wrote.")]

#: how the rows of files are read, and what is done with their features; the names are the fields of `Columns`
READING = {
    "task": Annotated[str, typer.Option(help="Of a file: the column that names the task of a row.")],
    "label": Annotated[str, typer.Option(help="Of a file: the column of labels.")],
    "positive": Annotated[str | None, typer.Option(help="The class that counts as +1, all others as -1.")],
    "classes": Annotated[
        str,
        typer.Option(
            metavar="all|task|none",
            help="Labels are classes, an output for each (all) or for those of the task (task), or numbers (none); "
            "auto: three or more words are classes, and whole numbers that look like it; two words need --positive.",
        ),
    ],
    "drop": Annotated[list[str], typer.Option(help="A column that is no feature; may be repeated.")],
    "drop_nan": Annotated[bool, typer.Option("--drop-nan", help="Leave out rows with missing numbers.")],
    "intercept": Annotated[bool, typer.Option("--intercept", help="Add a last column of ones to the features.")],
    "standardize": Annotated[
        str | None,
        typer.Option(metavar="all|first", help="Standardize each feature by the rows of all tasks, or of the first."),
    ],
    "features": Annotated[int | None, typer.Option(help="Map the features to this many random ones, by --seed.")],
    "loss": Annotated[
        str | None, typer.Option(metavar="sum|mean", help="Sum the loss of a task over its rows, or average.")
    ],
}


def grouped_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its arguments that are groups: `Source`, `Output` and `Columns`.

    The options of a group stand in the place of the argument, but how files are read comes last. A command that has an
    option of the same name keeps its own, and the group has its default.
    """
    own = inspect.signature(command, eval_str=True).parameters
    groups = {name: argument.annotation for name, argument in own.items() if is_dataclass(argument.annotation)}
    options: list[inspect.Parameter] = []
    reading: list[inspect.Parameter] = []
    for name, argument in own.items():
        if name not in groups:
            options.append(argument.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        for option in _options(groups[name]) if name in groups else ():
            if option.name not in own:
                (reading if option.name in READING else options).append(option)

    @wraps(command)
    def call(**values: Any) -> None:
        shared = {name: values.pop(name) for name in list(values) if name not in own}
        command(**values, **{name: _made(group, shared) for name, group in groups.items()})

    parameters = [*options, *reading]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


def _fields(group: Any) -> dict[str, Any]:
    """The annotation of each field of a group: an option, or a group."""
    return READING if group is Columns else get_type_hints(group, include_extras=True)


def _options(group: Any) -> Iterator[inspect.Parameter]:
    """The options of a group, and of the groups in it."""
    for field in fields(group):
        annotation = _fields(group)[field.name]
        if is_dataclass(annotation):
            yield from _options(annotation)
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, kind, default=field.default, annotation=annotation)


def _made(group: Any, values: Mapping[str, Any]) -> Any:
    """The group with these values of its options; options without a value have their defaults."""
    parts = {}
    for name, annotation in _fields(group).items():
        if is_dataclass(annotation):
            parts[name] = _made(annotation, values)
        elif name in values:
            parts[name] = values[name]
    return group(**parts)
