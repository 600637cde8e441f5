"""Hunt every claim with a fixed budget and write the findings as a table: `python -m tools.survey --out FILE`."""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.files.atomic import kept
from forgetting.files.outputs import check_output, write_output
from forgetting.studies.hunts import HuntedClaim, hunted_rows, seconds_until
from forgetting.studies.resuming import finished_parts
from forgetting.theory.claim import Claim
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PRINTED
from forgetting.theory.registry import all_claims, get_claim
from tools.planting import noticed
from tools.record_page import plain_text, with_records

INTRODUCTION = """# The statements of the paper, hunted

Each statement of "From Continual Learning to SGD and Back", and each that was added to it, is a claim that computes
both of its sides on a problem, and was hunted for a counterexample: structured families, random problems over all that
the statement allows, then local search for the largest lhs/rhs. What float64 calls a violation is computed again at 50
digits before it counts as a refutation; the problem is then saved, and reloads to the same numbers.

{claims} claims on {problems} problems (seed {seed}, at most {budget} for each): {holds} hold on all of theirs,
{refuted} are refuted. `fg.claims.get(label, part).hunt(seed={seed}, budget={budget}, known=False)` repeats a line of
the table, and `make hunt` all of it: these hunts do not start from what earlier ones found, which is at the end of the
page. `fg.claims.Instance.load(file)` gives a counterexample back, for `claim.check` and
`claim.confirm`. Equalities are judged by their residual, relative to the size of their terms. Statements about
eigenvalues are shifted, so that a ratio of 1 means that they are reached, which is no violation.

"Holds" is worth what the hunt would have noticed, and the last column says that: how much smaller the constant could
have been before a problem of the hunt had exceeded it, and whether the hunt still finds nothing without a term of the
right side. On small problems every claim about dynamics also compares the engines with the definitions of the paper in
plain numpy, and notices wrong projections and gains, and wrong orders if the order matters to what it says
(`tests/theory/test_planted.py` plants them).

A rate says something only where it is below what holds without it, because steps do not lengthen the error: `S/2` for
forgetting, `Rbar |w_0 - w*|^2 / 2` for the loss, `beta |w_0 - w*|^2 / 2` for SGD. Where a right side is not below that
on all problems of a hunt, the last column says on how many it is, and how much of it the left side reaches there. Each
branch of a minimum has a constant of its own, which is noticed or not.
"""
SECTIONS = {
    "gap in the printed proof": "Where the printed proof has a gap, though no counterexample was found",
    "corrected": "What stands instead (not printed in the paper)",
    "proved here": "What is printed nowhere, and proved here",
    "": "Remarks on the others",
}


@dataclass(frozen=True)
class SurveyRow(HuntedClaim):
    """A line of the table: beside the finding, what the hunt would have noticed, and files of counterexamples."""

    file: str | None = None
    noticed: str = ""
    simplest: str = ""
    simplest_file: str | None = None

    @property
    def heading(self) -> str:
        """The number and the title in the PDF, or the source; then label and part."""
        printed = PRINTED.get(self.label)
        known = self.source.partition(" (")[0] if printed is None else ", ".join(filter(None, printed))
        return f"**{plain_text(known)}** (`{self.label}`{f', {plain_text(self.part)}' if self.part else ''})"

    @property
    def verdict(self) -> str:
        """The finding, after what is known."""
        known = self.status if self.status in ("gap in the printed proof", "corrected") else ""
        return f"{known}; {self.finding}" if known else self.finding


def hunt_one(
    label: str, part: str | None, seed: int, budget: int, deadline: float | None = None, folder: str | None = None
) -> SurveyRow:
    """Hunt one claim, save what refutes it to the folder, and say what the hunt would have noticed.

    `deadline` is a time of day, in seconds.

    >>> row = hunt_one("cor:dimensionality_bound", "rank equality", seed=0, budget=60)
    >>> row.outcome, row.status, row.surprising
    ('refuted', 'refuted', False)
    """
    claim = get_claim(label, part)
    hunt = claim.hunt(seed=seed, budget=budget, seconds=seconds_until(deadline), known=False)
    files: list[str | None] = [None, None]
    if folder is not None and hunt.outcome in ("refuted", "suspected"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9]+", "_", claim.key).strip("_")
        for place, (ending, instance) in enumerate((("", hunt.instance), ("_simplest", hunt.simplest))):
            assert instance is not None
            instance.save(Path(folder) / f"{name}{ending}.npz")
            files[place] = f"{Path(folder).name}/{name}{ending}.npz"
    left = seconds_until(deadline)
    noticing = noticed(hunt, lambda faulty: faulty.hunt(seed, max(budget // 2, 1), left, known=False))
    simplest = "" if hunt.simplest is None else _by_hand(claim, hunt.simplest)
    return SurveyRow.of(hunt, file=files[0], noticed=str(noticing), simplest=simplest, simplest_file=files[1])


def own_digest() -> str:
    """The SHA-256 of these programs, so that parts computed by other versions are not used."""
    total = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _by_hand(claim: Claim, instance: Instance) -> str:
    """A counterexample written out, with both sides."""
    verdict = claim.confirm(instance) or claim.check(instance)
    return f"{instance.written(labels=claim.labels_matter)}: {verdict.lhs:.6g} against {verdict.rhs:.6g}"


def table(rows: Sequence[SurveyRow], *, seed: int, budget: int) -> str:
    """The findings in Markdown: a summary, the table, then what there is to say about each statement.

    >>> row = hunt_one("lem:regret_bound", None, seed=0, budget=20)
    >>> table([row], seed=0, budget=20).splitlines()[0]
    '# The statements of the paper, hunted'
    """
    counts = Counter(row.outcome for row in rows)
    text = INTRODUCTION.format(
        claims=len(rows),
        problems=sum(row.checked for row in rows),
        seed=seed,
        budget=budget,
        holds=counts["holds"],
        refuted=counts["refuted"],
    )
    lines = [text]
    false = [row for row in rows if row.status == "refuted" or row.outcome == "refuted"]
    if false:
        lines += ["## What is false as printed, or as one would expect", ""]
    for row in false:
        lines += [f"- {row.heading}: {plain_text(row.statement)}. {plain_text(row.note)}"]
        link = f" ([problem]({row.simplest_file}))" if row.simplest_file else ""
        lines += [f"  By hand: {plain_text(row.simplest)}{link}."] if row.simplest else []
    lines += _remarks(rows, "gap in the printed proof")
    lines += ["", "## All statements", "", "| statement | verdict | what would have been noticed |", "|---|---|---|"]
    for row in rows:
        link = f" ([problem]({row.file}))" if row.file else ""
        noticed = plain_text(row.noticed) if row.outcome == "holds" else ""
        lines.append(f"| {row.heading}: {plain_text(row.statement)} | {plain_text(row.verdict)}{link} | {noticed} |")
    for status in list(SECTIONS)[1:]:
        lines += _remarks(rows, status)
    return "\n".join(lines) + "\n"


def _remarks(rows: Sequence[SurveyRow], status: str) -> list[str]:
    """The notes on the statements of one status, or of all statuses without a section of their own."""
    others = {"refuted", *SECTIONS}
    noted = [row for row in rows if row.note and (row.status if row.status in others else "") == status]
    lines = [f"- {row.heading}: {plain_text(row.note)}" for row in noted]
    return ["", f"## {SECTIONS[status]}", "", *lines] if lines else []


def _announce(result: Mapping[str, Any], done: int, total: int) -> None:
    """Print the finding of a hunt."""
    row = SurveyRow(**result)
    print(f"{row.key}: {row.finding}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status is 1 if a hunt and what is declared about its claim disagree, 2 after an error.

    >>> main(["--label", "lem:Q trace", "--budget", "20", "--processes", "1"])  # doctest: +ELLIPSIS
    lem:Q trace: holds on 20 problems, worst residual ...
    1 claims hunted, 20 problems; no surprises
    0
    """
    parser = argparse.ArgumentParser(prog="python -m tools.survey", description=__doc__)
    parser.add_argument("--budget", type=int, default=2000, help="evaluations per claim")
    parser.add_argument("--minutes", type=float, default=15.0, help="when to stop, budget or not; 0 for no limit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--label", default="", help="only claims whose label contains this")
    parser.add_argument("--out", type=Path, help="write the table here; finished parts are kept beside it until then")
    parser.add_argument("--save", help="folder for the problems that refute a claim")
    parser.add_argument("--force", action="store_true", help="replace a table that this program wrote")
    chosen = parser.parse_args(arguments)
    claims = [claim for claim in all_claims() if chosen.label in claim.label]
    try:
        if chosen.out is not None and chosen.out.exists() and chosen.label:
            raise InvalidInputError(f"--label: {chosen.out} would lose the rows of other claims; choose another --out")
        if chosen.out is not None:
            check_output(chosen.out, force=chosen.force)
        with finished_parts(chosen.out) as store:
            results = hunted_rows(
                claims,
                partial(hunt_one, folder=chosen.save),
                seed=chosen.seed,
                budget=chosen.budget,
                identity={"folder": chosen.save, "programs": own_digest()},
                minutes=chosen.minutes or None,
                processes=chosen.processes,
                store=store,
                finished=_announce,
            )
            rows = [SurveyRow(**result) for result in results]
            if chosen.out is not None:
                text = with_records(table(rows, seed=chosen.seed, budget=chosen.budget))
                write_output(chosen.out, text.encode(), force=chosen.force)
    except ForgettingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted; {kept[-1] if kept else 'nothing was written'}", file=sys.stderr)
        return 130
    surprises = [row.key for row in rows if row.surprising]
    total = sum(row.checked for row in rows)
    ending = f"unexpected: {', '.join(surprises)}" if surprises else "no surprises"
    print(f"{len(rows)} claims hunted, {total} problems; {ending}")
    return 1 if surprises else 0


if __name__ == "__main__":
    from tools import survey  # other processes cannot import what stands here

    raise SystemExit(survey.main())
