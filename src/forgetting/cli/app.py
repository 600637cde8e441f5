"""The program with all its commands, in the order of the help."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from forgetting.core.extras import EXTRAS
from forgetting.core.plugins import load_plugin, load_plugins

UNLOCKED = "\n".join(f"  {extra.command:<36}{extra.unlocks}" for extra in EXTRAS)
HELP = f"""Continual linear models: run them, know what to expect, and see every guarantee.

\b
Start here:
  forgetting report                             the whole story, as one page
  forgetting expect gaussian T=10 d=50 rank=3   expected loss and forgetting
  forgetting bounds tasks.csv -k 1000           every bound on your own tasks
  forgetting audit tasks.csv                    what the order of them does
  forgetting explore tasks.csv                  turn them by hand, in a page
  forgetting claims --hunt 100                  look for counterexamples
  forgetting frontier show                      the worst tasks that are known
  forgetting solve A.npz b.npy                  a linear system by row action
  forgetting study run my.toml --jobs -1        thousands of problems

\b
A PROBLEM is one of
  gaussian T=10 d=50 rank=3   a family with parameters (forgetting families)
  tasks.csv                   rows with task and y; also .tsv and .parquet
  tasks.npz                   saved tasks, or arrays X, y and task
  my.toml                     a config with a [problem] table (docs/cli.md)
Without one, gaussian T=12 d=20 rank=2 condition=3.

\b
Some things need an extra, which a command installs:
{UNLOCKED}
forgetting doctor says which are installed here.

\b
Exit codes: 0 done, 2 wrong usage or input, 3 a statement was violated, a
solve did not converge or a cell of a study (one of its computations) failed,
130 interrupted (143 by SIGTERM).
"""


def _version(wanted: bool) -> None:
    if wanted:
        from forgetting import __version__

        print(f"forgetting {__version__}")
        raise typer.Exit


def _plugins(names: list[str]) -> list[str]:
    for name in names or ():
        load_plugin(name)
    return names


def make_app() -> Any:
    """All commands, in the order of the help. Plugins are loaded first, so that the help names what they add."""
    load_plugins()
    from forgetting.cli import (
        about,
        audit,
        bounds,
        certify,
        claims,
        expect,
        explore,
        frontier,
        report,
        run,
        solve,
        study,
        worst_case,
    )

    app = typer.Typer(
        help=HELP,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    )

    @app.callback()
    def everything(
        version: Annotated[
            bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
        ] = False,
        plugin: Annotated[
            list[str] | None,
            typer.Option(
                callback=_plugins,
                metavar="FILE.py",
                help="First run a Python file (or import a module) that adds bounds, schemes, ...",
            ),
        ] = None,
    ) -> None: ...

    everything.__doc__ = HELP
    for name, command in (
        ("report", report.report_command),
        ("run", run.run_command),
        ("expect", expect.expect_command),
        ("weights", expect.weights_command),
        ("bounds", bounds.bounds_command),
        ("table", bounds.table_command),
        ("certify", certify.certify_command),
        ("audit", audit.audit_command),
        ("explore", explore.explore_command),
        ("claims", claims.claims_command),
        ("worst-case", worst_case.worst_case_command),
        ("solve", solve.solve_command),
        ("cite", about.cite_command),
        ("families", about.families_command),
        ("doctor", about.doctor_command),
    ):
        app.command(name)(command)
    for name, words, commands in (
        ("study", study.HELP, study.COMMANDS), ("frontier", frontier.HELP, frontier.COMMANDS)
    ):  # fmt: skip
        group = typer.Typer(help=words, no_args_is_help=True, rich_markup_mode=None)
        for verb, command in commands.items():
            group.command(verb)(command)
        app.add_typer(group, name=name)
    return app
