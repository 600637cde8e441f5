"""forgetting cite."""

from __future__ import annotations

from typing import Annotated

import typer

from forgetting.cli.options import Json

__all__ = ["cite_command"]


def cite_command(
    keys: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY", help="A bound, a label of the paper, a source, or forgetting.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """The sources of bounds and statements, as BibTeX.

    Without KEY, a list of the sources.

    \b
    Examples:
      forgetting cite
      forgetting cite thm:cl_by_sgd_main
      forgetting cite evron2022:cyclic/forgetting lan2012optimal > sources.bib
      forgetting cite forgetting
    """
    from forgetting.cli.output import emit, result, say
    from forgetting.figures.items import Table
    from forgetting.theory.bibliography import SOURCES, entries, software_entry

    if keys:
        found = tuple(dict.fromkeys(entry for key in keys for entry in entries(key)))
        table = Table("sources", "Sources", "", ("bibtex",), tuple((entry,) for entry in found))
    else:
        sources = [*SOURCES.values(), software_entry()]
        rows = tuple((source.key, source.name, source.bibtex) for source in sources)
        table = Table("sources", "Sources", "", ("key", "source", "bibtex"), rows)
    if keys and not as_json:
        say("\n\n".join(found))
        return
    said = "a bound (forgetting bounds) or a label (forgetting claims) will do as a KEY, too"
    emit(result("Sources", "cite", [table], [said]), as_json=as_json, out=None, hidden=("bibtex",))
