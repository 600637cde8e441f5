"""Every statement of the paper with its verdict, and the statements that are false with their counterexamples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from forgetting import claims
from forgetting.claims import Claim
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Table
from forgetting.report.document import Section
from forgetting.report.settings import Settings, Step, no_step, section
from forgetting.studies.hunts import NO_SIZES, HuntedClaim, hunt_one, hunted_rows
from forgetting.theory.hunt import simplest_by_hand
from forgetting.theory.numbering import PRINTED
from forgetting.theory.sizes import as_sizes

TITLE = "The paper's statements, checked"
COLUMNS = ("statement", "label", "says", "status", "here", "left", "right", "tried")
NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def _surprises(section: Section) -> list[str]:
    """The violations that were not known, which is news; what is known to be false is said in the section."""
    surprises = section.text.partition("VIOLATED, and not known before: ")[2]
    return [f"Statements that are violated here, and were not known to be false: {surprises}"] if surprises else []


@section("claims", place=7, summary=_surprises, demonstration=True)
def statements_section(settings: Settings, step: Step = no_step) -> Section:
    """The section of a short hunt for each claim: the worst instance found, and whether the statement held on it."""
    false = counterexamples_table(claims.all())
    table, _, surprises = hunt_table(claims.all(), settings.seed, settings.hunt, step)
    printed = len({claim.label for claim in claims.all() if claim.status == "refuted" and claim.label in PRINTED})
    text = f"{_in_words(printed)} of the paper {'is' if printed == 1 else 'are'} [false as printed](#tab-false). "
    text += f"{len(table.rows)} statements and parts of statements were tried here"
    text += f"; VIOLATED, and not known before: {', '.join(surprises)}." if surprises else ", without a surprise."
    return Section("claims", TITLE, text, (false, table))


def _in_words(count: int) -> str:
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return f"{number} printed {'statement' if count == 1 else 'statements'}"


def counterexamples_table(chosen: Sequence[Claim]) -> Table:
    """The statements that are false, each with a counterexample that can be checked by hand.

    >>> table = counterexamples_table(claims.all("cor:dimensionality_bound"))
    >>> table.rows[0][2:]
    ('X = [1], y = 1 (2 times)', 1.0, 2.0)
    """
    rows: list[tuple[Any, ...]] = []
    for claim in chosen:
        if claim.status == "refuted":
            instance = simplest_by_hand(claim)
            if instance is None:
                rows.append((claim.name, claim.statement, claim.note, None, None))
            else:
                verdict = claim.check(instance)
                words = instance.written(labels=claim.labels_matter)
                rows.append((claim.name, claim.statement, words, verdict.lhs, verdict.rhs))
    return Table(
        "false",
        "What is false, as printed or as one would expect",
        "The left side exceeds the right side, or differs from it where they should be equal. "
        "fg.claims.get(label, part).check(fg.claims.Instance(...)) computes both again.",
        ("statement", "says", "counterexample", "left", "right"),
        tuple(rows),
    )


def hunt_table(
    chosen: Sequence[Claim],
    seed: int,
    budget: int,
    step: Step = no_step,
    store: Path | None = None,
    sizes: Mapping[str, range] = NO_SIZES,
) -> tuple[Table, list[str], list[str]]:
    """Hunt each claim; the table, the violations that were known, and those that were not.

    `sizes` are ranges of T, d and k that the hunts are confined to; an error says so if no claim has such problems.

    >>> table, known, surprises = hunt_table(claims.all("lem:regret_bound"), seed=0, budget=5)
    >>> len(table.rows), known, surprises
    (1, [], [])
    """
    step("", 0, len(chosen))
    found = hunted_rows(
        chosen,
        partial(hunt_one, sizes=sizes, known=True),
        seed=seed,
        budget=budget,
        identity={"known": True, "sizes": {name: [size[0], size[-1]] for name, size in sizes.items()}},
        store=store,
        finished=lambda row, done, total: step(row["label"], done, total),
    )
    hunts = [HuntedClaim(**row) for row in found]
    if sizes and not any(hunt.checked for hunt in hunts):
        raise InvalidInputError(hunts[0].finding)
    violated = [hunt for hunt in hunts if hunt.outcome in ("refuted", "suspected")]
    known = [hunt.name for hunt in violated if hunt.status == "refuted"]
    surprises = [hunt.name for hunt in violated if hunt.status != "refuted"]
    rows = []
    for claim, hunt in zip(chosen, hunts, strict=True):
        word = "violated" if hunt in violated else "" if hunt.lhs is None else "holds"
        rows.append((claim.name, hunt.label, hunt.statement, hunt.status, word, hunt.lhs, hunt.rhs, hunt.tried))
    confined = f" with {as_sizes(**sizes)}" if sizes else ""
    caption = (
        f"Each statement on the hardest of {budget} instances{confined} that a short hunt found (seed {seed}): "
        "left-hand side, right-hand side, and what longer searches and derivations have established (status)."
    )
    return Table("claims", "Statements and verdicts", caption, COLUMNS, tuple(rows)), known, surprises
