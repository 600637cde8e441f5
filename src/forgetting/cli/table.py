"""forgetting table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from forgetting.cli.options import Force, Json, Out, Seed, as_steps, reads_files
from forgetting.core.text import nearest
from forgetting.tasks.readers.sheet import Columns

__all__ = ["table_command"]

FORMATS = ("text", "markdown", "latex", "html")


@reads_files
def table_command(
    name: Annotated[str, typer.Argument(help="regression, classification or sgd: Table 1, 2 or 3.")] = "regression",
    problem: Annotated[
        list[str] | None,
        typer.Argument(metavar="PROBLEM", help="Tasks whose numbers to fill in.", show_default=False),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            "--k", "-k", parser=as_steps, metavar="INTEGER", help="Fill in numbers at k steps.", show_default=False
        ),
    ] = None,
    style: Annotated[str, typer.Option("--format", help="text, markdown, latex or html.")] = "text",
    seed: Seed = None,
    as_json: Json = False,
    out: Out = None,
    force: Force = False,
    *,
    reading: Columns,
) -> None:
    """The paper's three tables, in symbols or in numbers.

    \b
    Examples:
      forgetting table regression
      forgetting table regression gaussian T=10 d=50 rank=3 -k 1000
      forgetting table classification separable T=5 d=10 n=8 -k 1000
      forgetting table sgd -k 1000 --format latex
    """
    import forgetting as fg
    from forgetting.cli.output import emit, ready, result, say, tell, terminal_width
    from forgetting.cli.problems import load_problem
    from forgetting.errors import InvalidInputError
    from forgetting.report.sections.guarantees import TITLES, bounds_table, paper_table

    ready(out, force, problem)
    if name not in TITLES:
        raise InvalidInputError(f"no table {name!r}{nearest(name, TITLES)}")
    if style not in FORMATS:
        raise InvalidInputError(f"no format {style!r}{nearest(style, FORMATS)}")
    if problem and k is None:
        raise InvalidInputError("numbers need --k, the number of tasks learned")
    meta: dict[str, Any] = {"seed": seed or 0, "method": "closed forms", "k": k}
    numbers = None
    if k is not None and (name != "sgd" or problem):
        loaded = load_problem(problem, seed, reading)
        numbers = fg.bounds.Setting.of(loaded.problem)
        meta |= loaded.origin
    found = paper_table(name, k, numbers)
    report = result(f"Table: {name}", "table", [bounds_table(found)], [], **meta)
    if as_json or out is not None:
        emit(report, as_json=as_json, out=out, force=force, latex=found.to_latex)
        return
    formats = {"markdown": found.to_markdown, "latex": found.to_latex, "html": found.to_html}
    say(found.to_text(terminal_width()) if style == "text" else formats[style]().rstrip("\n"))
    tell(meta.get("notes", ()))
