"""forgetting audit FILE.npz, where the file holds values of orders instead of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

__all__ = ["audit_values", "names_values"]

SAVED = ("format", "record")  # what a file of `Landscape.save` holds, like those of all results
OWN = ("tasks", "as_json", "out", "force")  # options that mean something for values


def names_values(words: Sequence[str]) -> bool:
    """Whether the words of the command line name a file of values: arrays `permutations` and `values`, or a result.

    >>> names_values(["tasks.csv"]), names_values(["mine.npz", "values_key=accuracy_by_seed"])
    (False, True)
    """
    from forgetting.auditing.landscape_files import holds_values

    first, *rest = words
    if not first.lower().endswith(".npz"):
        return False
    named = {word.partition("=")[0] for word in rest} & {"permutations_key", "values_key"}
    return bool(named) or holds_values(first) or holds_values(first, SAVED)


def audit_values(words: Sequence[str], context: typer.Context, *, as_json: bool, out: Path | None, force: bool) -> None:
    """Audit values alone: their distribution over orders, what explains it, agreement of seeds, disparity of tasks."""
    from forgetting.auditing.landscape_files import holds_values
    from forgetting.auditing.landscape_page import landscape_report
    from forgetting.auditing.landscapes import Landscape
    from forgetting.cli.output import emit, ready, tell
    from forgetting.core.registry import call_with, values_in
    from forgetting.core.text import one_line

    first, *rest = words
    _only_own(first, context)
    ready(out, force, [first])
    given = values_in(rest)
    order = given.pop("order", None)

    def read(
        quantity: str = "value",
        higher_is_better: bool = False,
        permutations_key: str = "permutations",
        values_key: str = "values",
        seeds_key: str | None = "seeds",
        values_layout: Any = "group-by-seed",
    ) -> Landscape:
        return Landscape.from_npz(
            first, permutations_key=permutations_key, values_key=values_key, seeds_key=seeds_key,
            values_layout=values_layout, quantity=quantity, higher_is_better=higher_is_better, complete=False,
        )  # fmt: skip

    if holds_values(first, SAVED):
        found = call_with(lambda: Landscape.load(first), given, first)
    else:
        found = call_with(read, given, first)
        if "higher_is_better" not in given:
            tell(["low values are taken to be good; for accuracies add higher_is_better=true"])
    title = f"Audit of {one_line(Path(first).name)}: {found.headline}"
    emit(landscape_report(found, title, order), as_json=as_json, out=out, force=force)


def _only_own(file: str, context: typer.Context) -> None:
    """Raise if an option was given that is for tasks: nothing that a user says is ignored."""
    from forgetting.errors import InvalidInputError

    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in OWN and source is not None and source.name == "COMMANDLINE":
            raise InvalidInputError(
                f"{file} holds values of orders, and {parameter.opts[0]} is for tasks; leave {parameter.opts[0]} out"
            )
