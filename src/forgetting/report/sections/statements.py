"""Every statement of the paper with its verdict."""

from __future__ import annotations

from collections.abc import Sequence

from forgetting import claims
from forgetting.claims import Claim
from forgetting.figures.items import Table
from forgetting.report.document import Section
from forgetting.report.section_registry import section
from forgetting.report.settings import Settings, Step, no_step
from forgetting.storage.store import Store
from forgetting.theory.survey import hunt_all

__all__ = ["hunt_table", "statements_section"]

TITLE = "The paper's statements, checked"
COLUMNS = ("label", "part", "statement", "status", "here", "lhs", "rhs", "tried")


@section("claims", place=7, summary=lambda section: [f"claims: {section.text}"])
def statements_section(settings: Settings, step: Step = no_step) -> Section:
    """A short hunt per claim: the worst instance found, and whether the statement held on it."""
    table, known, surprises = hunt_table(claims.all(), settings.seed, settings.hunt, step)
    text = f"{len(table.rows)} statements and parts. {_words(known, surprises)}"
    return Section("claims", TITLE, text, (table,))


def hunt_table(
    chosen: Sequence[Claim], seed: int, budget: int, step: Step = no_step, store: Store | None = None
) -> tuple[Table, list[str], list[str]]:
    """Hunt each claim; the table, the violations that were known, and those that were not.

    >>> table, known, surprises = hunt_table(claims.all("lem:regret_bound"), seed=0, budget=5)
    >>> len(table.rows), known, surprises
    (1, [], [])
    """
    step("", 0, len(chosen))
    hunts = hunt_all(
        chosen, seed=seed, budget=budget, store=store, finished=lambda row, done, total: step(row.label, done, total)
    )
    violated = [hunt for hunt in hunts if hunt.outcome in ("refuted", "suspected")]
    known = [hunt.name for hunt in violated if hunt.status == "refuted"]
    surprises = [hunt.name for hunt in violated if hunt.status != "refuted"]
    rows = []
    for hunt in hunts:
        word = "violated" if hunt in violated else "" if hunt.lhs is None else "holds"
        rows.append((hunt.label, hunt.part or "", hunt.statement, hunt.status, word, hunt.lhs, hunt.rhs, hunt.tried))
    caption = (
        f"Each statement on the hardest of {budget} instances that a short hunt found (seed {seed}): left-hand side, "
        "right-hand side, and what longer searches and derivations have established (status)."
    )
    return Table("claims", "Statements and verdicts", caption, COLUMNS, tuple(rows)), known, surprises


def _words(known: list[str], surprises: list[str]) -> str:
    said = "None was violated" if not known + surprises else f"{len(known)} violated, as is known"
    return f"{said}." if not surprises else f"{said}; VIOLATED, and not known before: {', '.join(surprises)}."
