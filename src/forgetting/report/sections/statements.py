"""Every statement of the paper with its verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from forgetting import claims
from forgetting.claims import Claim
from forgetting.report.data import Section, Table
from forgetting.report.settings import Settings

__all__ = ["hunt_table", "statements_section"]

TITLE = "The paper's statements, checked"
COLUMNS = ("label", "part", "statement", "status", "here", "lhs", "rhs", "tried")
Step = Callable[[str, int, int], None]


def statements_section(settings: Settings, step: Step = lambda *_: None) -> Section:
    """A short hunt per claim: the worst instance found, and whether the statement held on it.

    >>> from forgetting.report.settings import default_problem
    >>> section = statements_section(Settings(default_problem(), hunt=1))
    >>> section.items[0].columns[:2]
    ('label', 'part')
    """
    table, known, surprises = hunt_table(claims.all(), settings.seed, settings.hunt, step)
    text = f"{len(table.rows)} statements and parts. {_words(known, surprises)}"
    return Section("claims", TITLE, text, (table,))


def hunt_table(
    chosen: Sequence[Claim], seed: int, budget: int, step: Step = lambda *_: None
) -> tuple[Table, list[str], list[str]]:
    """Hunt each claim; the table, the violations that were known, and those that were not.

    >>> table, known, surprises = hunt_table(claims.all("lem:regret_bound"), seed=0, budget=5)
    >>> len(table.rows), known, surprises
    (1, [], [])
    """
    rows: list[tuple[Any, ...]] = []
    known: list[str] = []
    surprises: list[str] = []
    for place, claim in enumerate(chosen):
        step(claim.label, place, len(chosen))
        found = claim.hunt(seed=seed, budget=budget)
        verdict = found.verdict
        violated = found.outcome in ("refuted", "suspected")
        if violated:
            (known if claim.status == "refuted" else surprises).append(claim.name)
        word = "violated" if violated else "" if verdict is None else "holds"
        sides = (None, None) if verdict is None else (float(verdict.lhs), float(verdict.rhs))
        rows.append((claim.label, claim.part or "", claim.statement, claim.status, word, *sides, int(found.tried)))
    caption = (
        f"Each statement on the hardest of {budget} instances that a short hunt found (seed {seed}): left-hand side, "
        "right-hand side, and what longer searches and derivations have established (status)."
    )
    return Table("claims", "Statements and verdicts", caption, COLUMNS, tuple(rows)), known, surprises


def _words(known: list[str], surprises: list[str]) -> str:
    said = "None was violated" if not known + surprises else f"{len(known)} violated, as is known"
    return f"{said}." if not surprises else f"{said}; VIOLATED, and not known before: {', '.join(surprises)}."
