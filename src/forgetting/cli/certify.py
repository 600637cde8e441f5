"""forgetting certify."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forgetting.cli.options import VIOLATED, Force, Json, Orders, Problem, Scheme, Seed, Step, reads_files
from forgetting.tasks.readers.sheet import Columns


@reads_files
def certify_command(
    problem: Problem = None,
    ordering: Orders = "with-replacement",
    k: Step = 100,
    scheme: Scheme = None,
    seed: Seed = None,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write to a file: .json (reloads) or .txt.", show_default=False)
    ] = None,
    force: Force = False,
    *,
    reading: Columns,
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
    import json

    import forgetting as fg
    from forgetting.cli.interrupts import uninterrupted
    from forgetting.cli.output import diverging, not_finite, say, tell, write_and_show
    from forgetting.cli.problems import load_problem
    from forgetting.errors import InvalidInputError
    from forgetting.files.outputs import check_output, write_output
    from forgetting.report.provenance import versions

    if out is not None:
        if out.suffix.lower() not in (".json", ".txt"):
            raise InvalidInputError(f"{out}: a certificate is written as .json or .txt")
        check_output(out, force=force, inputs=problem or ())
    loaded = load_problem(problem, seed, reading)
    with uninterrupted(), diverging():
        certificate = fg.certify(loaded.problem, ordering, k, scheme, seed=loaded.seed)
    meta = {
        **loaded.origin,
        "method": sorted({quantity.method for quantity in certificate.measured}),
        "versions": versions(),
    }
    text = json.dumps({**json.loads(certificate.to_json()), "holds": certificate.holds, "meta": meta}, indent=1)

    def write(path: Path) -> None:
        words = text if path.suffix.lower() == ".json" else f"{certificate}\n"
        write_output(path, words.encode("utf-8", "backslashreplace"), force=force)

    def show() -> None:
        if as_json:
            print(text)
            return
        undecided = sum(not row.decided for row in certificate.claims)
        verdict = "everything that should hold here holds" if certificate.holds else "VIOLATED: see FAILS above"
        said = not_finite([quantity.value for quantity in certificate.measured], certificate.notes)
        say(
            str(certificate),
            *said,
            "",
            verdict + (f", as far as simulation decides it ({undecided} open)" if undecided else ""),
        )

    write_and_show(out, write, show, quiet=as_json)
    tell(loaded.problem.notes)
    if not certificate.holds:
        raise typer.Exit(VIOLATED)
