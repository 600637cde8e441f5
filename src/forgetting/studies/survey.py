"""Hunt every claim with a fixed budget and write the findings as a table: `python -m forgetting.claims --out FILE`."""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import time
from typing import Any

from forgetting.errors import ForgettingError
from forgetting.storage.atomic import kept
from forgetting.storage.outputs import check_output, write_output
from forgetting.storage.store import code_digest
from forgetting.studies.partial import finished_parts
from forgetting.studies.record_page import with_records
from forgetting.studies.study import Study
from forgetting.theory.claim import StatedClaim
from forgetting.theory.hunt import Hunt
from forgetting.theory.instance import Instance
from forgetting.theory.numbering import PRINTED
from forgetting.theory.registry import all_claims, get_claim, heading_of
from forgetting.theory.statement import Claim

__all__ = ["Row", "hunt_all", "hunt_one", "main", "table"]

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
NO_SIZES: Mapping[str, Any] = {}
SECTIONS = {
    "gap in the printed proof": "Where the printed proof has a gap, though no counterexample was found",
    "corrected": "What stands instead (not printed in the paper)",
    "proved here": "What is printed nowhere, and proved here",
    "": "Remarks on the others",
}


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    label: str
    part: str | None
    statement: str
    status: str
    note: str
    outcome: str
    finding: str
    checked: int
    file: str | None
    tried: int = 0
    lhs: float | None = None
    rhs: float | None = None
    cut_short: bool = False
    source: str = ""
    noticed: str = ""
    simplest: str = ""
    simplest_file: str | None = None

    @classmethod
    def of(
        cls,
        hunt: Hunt,
        file: str | None = None,
        noticed: str = "",
        simplest: Instance | None = None,
        simplest_file: str | None = None,
    ) -> Row:
        """Read a hunt, with what it would have noticed, its simplest counterexample, and where both problems are."""
        claim, verdict = hunt.claim, hunt.verdict
        return cls(
            claim.label,
            claim.part,
            claim.statement,
            claim.status,
            claim.note,
            hunt.outcome,
            hunt.finding,
            hunt.checked,
            file,
            hunt.tried,
            None if verdict is None else float(verdict.lhs),
            None if verdict is None else float(verdict.rhs),
            hunt.cut_short,
            claim.source,
            noticed,
            "" if simplest is None else _by_hand(claim, simplest),
            simplest_file,
        )

    @property
    def key(self) -> str:
        """Label and part."""
        return self.label if self.part is None else f"{self.label} ({self.part})"

    @property
    def name(self) -> str:
        """The name for readers, with the label second."""
        return heading_of(self.label, self.part)

    @property
    def heading(self) -> str:
        """The number and the title in the PDF, or the source; then label and part."""
        printed = PRINTED.get(self.label)
        known = self.source.partition(" (")[0] if printed is None else ", ".join(filter(None, printed))
        return f"**{_plain(known)}** (`{self.label}`{f', {_plain(self.part)}' if self.part else ''})"

    @property
    def surprising(self) -> bool:
        """Whether the hunt and what is declared about the claim disagree."""
        return (self.outcome != "holds") if self.status != "refuted" else (self.outcome != "refuted")

    @property
    def verdict(self) -> str:
        """What was found, beside what is known."""
        known = self.status if self.status in ("gap in the printed proof", "corrected") else ""
        return f"{known}; {self.finding}" if known else self.finding


def hunt_one(
    label: str,
    part: str | None,
    seed: int,
    budget: int,
    folder: str | None = None,
    brief: bool = False,
    deadline: float | None = None,
    sizes: Mapping[str, Any] = NO_SIZES,
    known: bool = False,
) -> Row:
    """Hunt one claim, and save what refutes it to the folder.

    `deadline` is a time of day, in seconds; `known` is as for `Claim.hunt`. A brief hunt looks for no simplest
    counterexample and plants no faults. If the claim cannot be checked at the sizes (T, d, k) that are given, its
    outcome is "not applicable".

    >>> row = hunt_one("cor:dimensionality_bound", "rank equality", seed=0, budget=60)
    >>> row.outcome, row.status, row.surprising
    ('refuted', 'refuted', False)
    """
    seconds = None if deadline is None else max(deadline - time(), 1.0)
    claim = get_claim(label, part)
    try:
        hunt = claim.hunt(seed=seed, budget=budget, seconds=seconds, known=known, **sizes)
    except ForgettingError as error:
        if not sizes:
            raise
        about = claim.label, claim.part, claim.statement, claim.status, claim.note
        return Row(*about, "not applicable", str(error), 0, None, source=claim.source)
    if brief:
        return Row.of(hunt)
    files: list[str | None] = [None, None]
    if folder is not None and hunt.outcome in ("refuted", "suspected"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^A-Za-z0-9]+", "_", claim.key).strip("_")
        for place, (ending, instance) in enumerate((("", hunt.instance), ("_simplest", hunt.simplest))):
            assert instance is not None
            instance.save(Path(folder) / f"{name}{ending}.npz")
            files[place] = f"{Path(folder).name}/{name}{ending}.npz"
    from tools.planting import noticed

    left = None if deadline is None else max(deadline - time(), 1.0)
    noticing = noticed(hunt, lambda faulty: faulty.hunt(seed, max(budget // 2, 1), left, known=known))
    return Row.of(hunt, files[0], str(noticing), hunt.simplest, files[1])


class _Hunter:
    """`hunt_one` as the function of a study. The deadline is no part of a cell: a hunt may end another day."""

    def __init__(self, deadline: float | None) -> None:
        self.deadline, self.__qualname__ = deadline, "hunt"

    def __call__(
        self,
        label: str,
        part: str | None,
        budget: int,
        folder: str | None,
        brief: bool,
        code: str,
        seed: int,
        known: bool,
        **sizes: Sequence[int],
    ) -> dict[str, Any]:
        fixed = {name: range(first, last + 1) for name, (first, last) in sizes.items()}
        return asdict(hunt_one(label, part, seed, budget, folder, brief, self.deadline, fixed, known))


def _by_hand(claim: StatedClaim, instance: Instance) -> str:
    """A counterexample written out, with both sides."""
    verdict = claim.confirm(instance) or claim.check(instance)
    return f"{instance.written(labels=claim.labels_matter)}: {verdict.lhs:.6g} against {verdict.rhs:.6g}"


def hunt_all(
    claims: Sequence[Claim],
    *,
    seed: int,
    budget: int,
    minutes: float | None = None,
    folder: str | None = None,
    processes: int = 1,
    brief: bool = False,
    store: Path | None = None,
    finished: Callable[[Row, int, int], None] = lambda *_: None,
    sizes: Mapping[str, range] = NO_SIZES,
    known: bool = False,
) -> list[Row]:
    """Hunt the claims, in several processes; those that are not done when the time is over are cut short and say so.

    Args:
        claims: what to hunt.
        seed, budget: for each hunt.
        minutes: when to stop; None for no limit.
        folder: where problems that refute a claim are saved.
        processes: how many.
        brief: whether to leave out the simplest counterexamples, and what would have been noticed.
        store: a file where finished hunts are kept, and looked for first; a hunt that was cut short is made again.
        finished: called as finished(row, done, total) after each claim.
        sizes: ranges of T, d and k, by these names, that the hunts are confined to.
        known: whether hunts also start from records and tasks that are known to be worst.

    >>> [row.outcome for row in hunt_all(all_claims("lem:regret_bound"), seed=0, budget=20)]
    ['holds']
    """
    deadline = None if minutes is None else time() + 60 * minutes
    common: dict[str, Any] = {"budget": budget, "folder": folder, "brief": brief, "code": code_digest(), "seed": seed}
    common |= {"known": known} | {name: [size[0], size[-1]] for name, size in sizes.items()}
    cells = [{"label": claim.label, "part": claim.part, **common} for claim in claims]
    study = Study(cells, store, function=_Hunter(deadline))
    study.forget(lambda row: bool(row["cut_short"]))
    done = 0

    def report(cell: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> None:
        nonlocal done
        done += 1
        finished(_row(found[0]), done, len(cells))

    study.run(processes, progress=False, finished=report, check=True)
    return [_row(found) for found in study.results()]


def _row(found: Mapping[str, Any]) -> Row:
    return Row(**found)


def table(rows: Sequence[Row], *, seed: int, budget: int) -> str:
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
        lines += [f"- {row.heading}: {_plain(row.statement)}. {_plain(row.note)}"]
        link = f" ([problem]({row.simplest_file}))" if row.simplest_file else ""
        lines += [f"  By hand: {_plain(row.simplest)}{link}."] if row.simplest else []
    lines += _remarks(rows, "gap in the printed proof")
    lines += ["", "## All statements", "", "| statement | verdict | what would have been noticed |", "|---|---|---|"]
    for row in rows:
        link = f" ([problem]({row.file}))" if row.file else ""
        noticed = _plain(row.noticed) if row.outcome == "holds" else ""
        lines.append(f"| {row.heading}: {_plain(row.statement)} | {_plain(row.verdict)}{link} | {noticed} |")
    for status in list(SECTIONS)[1:]:
        lines += _remarks(rows, status)
    return "\n".join(lines) + "\n"


def _remarks(rows: Sequence[Row], status: str) -> list[str]:
    """The notes on the statements of one status, or of all statuses without a section of their own."""
    others = {"refuted", *SECTIONS}
    noted = [row for row in rows if row.note and (row.status if row.status in others else "") == status]
    lines = [f"- {row.heading}: {_plain(row.note)}" for row in noted]
    return ["", f"## {SECTIONS[status]}", "", *lines] if lines else []


def _plain(text: str) -> str:
    """Text in which Markdown sees no markup."""
    return re.sub(r"([\\`*\[|])", r"\\\1", text)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; the exit status is 1 if a hunt and what is declared about its claim disagree, 2 after an error.

    >>> main(["--label", "lem:Q trace", "--budget", "20", "--processes", "1"])  # doctest: +ELLIPSIS
    lem:Q trace: holds on 20 problems, worst residual ...
    1 claims hunted, 20 problems; no surprises
    0
    """
    parser = argparse.ArgumentParser(prog="python -m forgetting.claims", description=__doc__)
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
        if chosen.out is not None:
            check_output(chosen.out, force=chosen.force)
        with finished_parts(chosen.out) as store:
            rows = hunt_all(
                claims,
                seed=chosen.seed,
                budget=chosen.budget,
                minutes=chosen.minutes or None,
                folder=chosen.save,
                processes=chosen.processes,
                store=store,
                finished=lambda row, *_: print(f"{row.key}: {row.finding}", flush=True),
            )
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
