"""forgetting certify."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import forgetting as fg
from forgetting.cli.options import VIOLATED, Force, Json, Orders, Scheme, Step, grouped_options
from forgetting.cli.output import Output, computing
from forgetting.cli.problems import Source
from forgetting.errors import InvalidInputError


@grouped_options
def certify_command(
    *,
    ordering: Orders = "with-replacement",
    k: Step = 100,
    scheme: Scheme = None,
    source: Source,
    as_json: Json = False,
    out: Annotated[Path | None, typer.Option(help="Write to a file: .json (reloads) or .txt.")] = None,
    force: Force = False,
) -> None:
    """Measured values beside all theory that applies here.

    Expected values, every bound, identity and statement that applies to these tasks. The exit code is 3 if an
    identity fails, or a statement that is not known to be false. JSON (on stdout, or in --out FILE.json) reloads
    with fg.claims.Certificate.from_json.

    \b
    Examples:
      forgetting certify two_lines theta=0.14 -k 100
      forgetting certify tasks.csv -o without-replacement -k 10
      forgetting certify gaussian T=5 d=10 rank=2 --json
    """
    from forgetting.report.provenance import versions

    output = Output(as_json, out, force)
    if out is not None and output.ending not in (".json", ".txt"):
        raise InvalidInputError(f"{out}: a certificate is written as .json or .txt")
    output.check(source.words, more=(".json", ".txt"))
    loaded = source.load()
    with computing():
        certificate = fg.certify(loaded.problem, ordering, k, scheme, seed=loaded.seed)

    def data() -> str:
        methods = sorted({quantity.method for quantity in certificate.measured})
        meta = {**loaded.origin, "method": methods, "versions": versions()}
        return json.dumps({**json.loads(certificate.to_json()), "holds": certificate.holds, "meta": meta}, indent=1)

    def lines() -> Iterator[str]:
        undecided = sum(not row.decided for row in certificate.claims)
        verdict = "everything that should hold here holds" if certificate.holds else "VIOLATED: see FAILS above"
        yield str(certificate)
        yield ""
        yield verdict + (f", as far as simulation decides it ({undecided} open)" if undecided else "")

    output.give(lines, data, {".json": data, ".txt": lambda: f"{certificate}\n"})
    if not certificate.holds:
        raise typer.Exit(VIOLATED)
