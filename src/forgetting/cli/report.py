"""forgetting report."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forgetting.cli.options import Force, Json, grouped_options
from forgetting.cli.output import Output, say, terminal_width, working
from forgetting.cli.problems import Loaded, Source, read_config
from forgetting.core.plugins import loaded as loaded_plugins
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings.base import as_ordering
from forgetting.tasks import Problem

if TYPE_CHECKING:
    from forgetting.report import Settings


MOST_PROCESSES = 2


def explorer_of(problem: Problem) -> str:
    """The explorer with these tasks, or with named families where the tasks are too many, too large or not linear.

    >>> import forgetting as fg
    >>> '"own":null' in explorer_of(fg.families.gaussian(T=30, d=40))
    True
    """
    from forgetting.explorer import explore

    try:
        return explore(problem).html
    except (InvalidInputError, NotSupportedError):
        return explore().html


@grouped_options
def report_command(
    *,
    config: Annotated[Path | None, typer.Option(help="A TOML config; the same as giving it as PROBLEM.")] = None,
    out: Annotated[Path, typer.Option(help="The folder to write.")] = Path("report-out"),
    sections: Annotated[str | None, typer.Option(help="Only these, as in rates,plane; a wrong name lists all.")] = None,
    source: Source,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Figures, tables and verdicts on one problem, as an HTML file.

    Writes report.html (opens from disk, needs no network), explorer.html (the tasks, or named families where they are
    too many, to turn by hand), report.json (reloads), tables.tex, each figure as PNG and PDF in figures/, and the
    data of every figure and table as CSV in data/. An existing folder is kept unless --force is given; an interrupt
    leaves it as it was, and finished parts in OUT.partial, from which the same command goes on.

    \b
    Examples:
      forgetting report
      forgetting report gaussian T=8 d=30 rank=3 --out my-report
      forgetting report tasks.csv --label price
      forgetting report --config my.toml --force
      forgetting report --sections rates,guarantees
    """
    from forgetting.files.outputs import check_folder
    from forgetting.report import build_report, section_makers, write_report
    from forgetting.report.document import summary_text
    from forgetting.studies.resuming import finished_parts

    if config is not None and source.words:
        raise InvalidInputError("give a PROBLEM or --config, not both")
    began = time.monotonic()
    check_folder(out, force=force)
    loaded = source.load() if config is None else read_config(config, source.seed, source.columns)
    settings = settings_from(loaded, sections)
    ours = all(maker.make.__module__.startswith("forgetting.") for maker in section_makers(settings.sections).values())
    # a new process knows nothing of plugins
    processes = min(os.cpu_count() or 1, MOST_PROCESSES) if ours and not loaded_plugins else 1
    kept_beside = out if ours and not loaded_plugins else None  # the code of plugins may change
    with finished_parts(kept_beside) as store, working("report") as step:
        made = build_report(settings, step, processes, store)
        try:
            explorer = explorer_of(settings.problem)
            paths = write_report(made, out, force=force, progress=step, processes=processes, explorer=explorer)
        except Exception:  # such as a full disk: the result, which took long to compute, is shown before the error
            say(summary_text(made, terminal_width()), "")
            raise

    def lines() -> Iterator[str]:
        yield from (summary_text(made, terminal_width()), "")
        figures = sum(path.suffix == ".png" for path in paths)
        yield f"wrote {out / 'report.html'} and {figures} figures in {time.monotonic() - began:.0f} s"

    def data() -> str:
        about = {"title": made.title, "subtitle": made.subtitle, "summary": made.summary, "meta": made.meta}
        return json.dumps({**about, "notes": list(loaded.problem.notes), "files": [str(path) for path in paths]})

    Output(as_json).give(lines, data)


def settings_from(loaded: Loaded, sections: str | None = None) -> Settings:
    """The settings of a report: what the command line says, else what the config says, else the defaults."""
    from forgetting.report import Settings

    chosen = dict(loaded.config.get("report", {}))
    if sections is not None:
        chosen["sections"] = sections.split(",")
    for name, entry in (("orderings", lambda word: as_ordering(str(word))), ("eps", lambda x: x), ("sections", str)):
        if name in chosen:
            if not isinstance(chosen[name], list):
                raise InvalidInputError(f"{name} in [report] must be a list, got {chosen[name]!r}")
            chosen[name] = tuple(entry(word) for word in chosen[name])
    return Settings(loaded.problem, loaded.name, seed=loaded.seed, **chosen)
