"""forgetting families."""

from __future__ import annotations

import inspect
import textwrap
from typing import Annotated

import typer

from forgetting.cli.options import Json
from forgetting.core.text import nearest

__all__ = ["families_command"]


def families_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Describe this family in full.", show_default=False)] = "",
    as_json: Json = False,
) -> None:
    """The named families of tasks and the data sets, with their parameters.

    \b
    Examples:
      forgetting families
      forgetting families catastrophic
    """
    from forgetting.cli.output import emit, result, say, terminal_width
    from forgetting.errors import InvalidInputError
    from forgetting.figures.items import Table
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
        rows.append((family, shown, _first(make.__doc__ or "")))
    if as_json:
        table = Table("families", "Families", "", ("family", "parameters", "what it is"), tuple(rows))
        emit(result("Named families of tasks", "families", [table], [], method="listing"), as_json=True, out=None)
        return
    width = terminal_width()
    for family, shown, words in rows:
        say(textwrap.fill(f"{family} {shown}", width, subsequent_indent="  ", break_long_words=False))
        prose = inspect.cleandoc(family_maker(key).__doc__ or "").split(">>>")[0] if name else words
        for paragraph in prose.strip().split("\n\n"):
            say(textwrap.fill(" ".join(paragraph.split()), width, initial_indent="    ", subsequent_indent="    "))
    if not name:
        say("", "copies=n repeats all tasks of any of them, as in", "  forgetting expect two_lines theta=0.1 copies=50")


def _first(words: str) -> str:
    return " ".join(words.split("\n\n")[0].split())
