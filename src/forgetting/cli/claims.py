"""forgetting claims."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any

import typer

from forgetting.cli.options import VIOLATED, Seed, grouped_options
from forgetting.cli.output import Output, result, say, terminal_width, working
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Table

RATIO = "ratio: the largest one of left to right side ever found (claim.record)"


def as_size(text: str) -> range:
    """The numbers that a text names: one, or those from a first to a last one.

    >>> as_size("3"), as_size("2-5")
    (range(3, 4), range(2, 6))
    """
    first, dash, last = text.partition("-")
    if not (first.isdecimal() and (last.isdecimal() if dash else True)):
        raise typer.BadParameter(f"expected a number such as 3, or a range such as 2-5, got {text!r:.40}")
    size = range(int(first), int(last or first) + 1)
    if len(size) == 0 or size[0] < 1:
        raise typer.BadParameter(f"expected numbers from 1 on, the smaller one first, got {text!r:.40}")
    return size


def _size(name: str, what: str) -> Any:
    words = f"With --hunt: only problems with this {what}; a number, or a range such as 2-5."
    return typer.Option(name, parser=as_size, metavar="SIZE", help=words)


@grouped_options
def claims_command(
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Only statements whose label contains this.")] = "",
    hunt: Annotated[
        int | None, typer.Option(min=1, help="Search a counterexample of each, with this many evaluations.")
    ] = None,
    tasks: Annotated[range | None, _size("--T", "number of tasks")] = None,
    dim: Annotated[range | None, _size("--d", "dimension")] = None,
    k: Annotated[range | None, _size("--k", "number of steps")] = None,
    strict: Annotated[bool, typer.Option(help="Count violations that are already known, too.")] = False,
    seed: Seed = None,
    *,
    output: Output,
) -> None:
    """The statements of the paper, and a hunt for counterexamples.

    Statements go by the paper's own LaTeX labels. With --hunt, the exit code is 3 if a statement is violated that is
    not already known to be false. With --out, finished hunts are kept beside the file, in FILE.partial, until it is
    written: after an interruption, the same command goes on where it stopped.

    \b
    Examples:
      forgetting claims
      forgetting claims thm:cl_by_sgd_main
      forgetting claims prop:mean_norm --hunt 200
      forgetting claims thm:cl_by_sgd_main --hunt 200 --T 3 --k 2-5
      forgetting claims --hunt 24 --out claims.csv
    """
    from forgetting import claims
    from forgetting.studies.resuming import finished_parts
    from forgetting.theory.registry import label_of

    output.check()
    every = claims.all()
    label = label_of(label)
    chosen = [claim for claim in every if label in claim.label]
    if not chosen:
        raise InvalidInputError(f"no claim {label!r}{nearest(label, sorted({claim.label for claim in every}))}")
    sizes = {name: size for name, size in (("T", tasks), ("d", dim), ("k", k)) if size is not None}
    if sizes and hunt is None:
        raise InvalidInputError(f"--{min(sizes)} is for a hunt; give --hunt 200 as well")
    if hunt is None and label and not output.as_json and output.out is None:
        _in_words(chosen)
        return
    with finished_parts(output.out if hunt is not None else None) as store:
        if hunt is not None:
            table, said, broken = _hunted(chosen, hunt, seed or 0, strict, store, sizes)
        else:
            table, broken = _listing(chosen), []
            said = [f"{len(chosen)} statements and parts; name one for its words, --hunt 100 to test", RATIO]
        meta = {"seed": seed or 0, "method": "hunt", "budget": hunt}
        report = result("The statements of the paper", "claims", [table], said, **meta)
        hidden = "statement", "note", "tried", *(("label", "part") if hunt is None else ())
        output.emit(report, hidden=hidden)
    if broken:
        raise typer.Exit(VIOLATED)


def _in_words(chosen: list[Any]) -> None:
    for claim in chosen:
        say(textwrap.fill(f"{claim.heading}: {claim.status}", terminal_width(), subsequent_indent="  "))
        evidence = claim.evidence
        record = None if claim.record is None or evidence is not None else f"Record: {claim.record.sentence}."
        for words in (claim.statement, claim.note, record, None if evidence is None else evidence.sentence):
            if words:
                filled = textwrap.fill(words, terminal_width() - 4, break_on_hyphens=False)  # keys stay whole
                say(textwrap.indent(filled, "    "))


def _listing(chosen: list[Any]) -> Table:
    columns = "name", "label", "part", "statement", "status", "ratio", "note"
    rows = []
    for claim in chosen:
        ratio = None if claim.record is None else claim.record.ratio
        rows.append((claim.heading, claim.label, claim.part, claim.statement, claim.status, ratio, claim.note))
    return Table("claims", "Statements", "", columns, tuple(rows))


def _hunted(
    chosen: list[Any], budget: int, seed: int, strict: bool, store: Any, sizes: dict[str, range]
) -> tuple[Table, list[str], list[str]]:
    from forgetting.report.sections.statements import hunt_table
    from forgetting.theory.sizes import as_sizes

    with working("claims") as step:
        table, known, surprises = hunt_table(chosen, seed, budget, step, store, sizes)
    confined = f", {as_sizes(**sizes)}" if sizes else ""
    said = [f"{len(chosen)} statements and parts, {budget} evaluations each{confined}"]
    said += [f"known to be false: {name}" for name in known]
    said += [f"VIOLATED: {name}" for name in surprises]
    return table, said, surprises + (known if strict else [])
