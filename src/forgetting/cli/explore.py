"""forgetting explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetting.cli.options import Force, grouped_options
from forgetting.cli.output import say
from forgetting.cli.problems import Source
from forgetting.files.outputs import check_output


@grouped_options
def explore_command(
    *,
    out: Annotated[Path, typer.Option(help="The page to write, .html.")] = Path("explorer.html"),
    source: Source,
    force: Force = False,
) -> None:
    """One page on which tasks can be turned while exact values, bounds and worst cases follow.

    Opens from disk and needs no network. With a PROBLEM of up to 12 linear tasks that span up to 12 dimensions, the
    page begins with these; without one, with two lines. It has the families, a guided tour and "Copy as Python".

    \b
    Examples:
      forgetting explore
      forgetting explore gaussian T=5 d=200 rank=2 --out talk.html
      forgetting explore tasks.csv --label price --force
    """
    from forgetting.explorer import checked_name, explore

    words = source.words or []
    check_output(checked_name(out), force=force, inputs=words)
    problem = source.load().problem if words else None
    page = explore(problem, out, force=force)
    say(f"wrote {out}, {len(page.html.encode()) / 1000:.0f} kB: open it in a browser")
