"""The end of the page of hunted claims: what is known about constants that nothing comes close to, and all records."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forgetting.theory.claim import Claim
from forgetting.theory.record import all_records, record_of
from forgetting.theory.registry import all_claims

HEADING = "## What is known about constants that nothing comes close to"
INTRODUCTION = """{heading}

Statements whose largest ratio is below 1/2 (`claim.evidence`). All numbers are computed from the records, the closed
forms, the tasks that the package keeps, and the other bounds of the registry; S = |w_0 - w\\*|^2 R^2.
"""
RECORDS = """
## The largest ratios ever found

`fg.claims.get(label, part).record` and `fg.bounds.get(key).record` give the ratio, the file of the instance that
attains it, and `verify()`, which computes both sides again. The files are in `forgetting/theory/largest_ratios`;
`python -m tools.ratios`, in a copy of the repository, looks for larger ratios. Bounds without a claim of their own go
by their keys. Of the {claims} claims, {recorded} have a ratio; the others are equalities. Ratios above 1 refute a
statement.

| statement | largest ratio | at | found by |
|---|---|---|---|
"""


def records_section(chosen: tuple[Claim, ...] | None = None) -> str:
    """The evidence on the claims, and the table of all records, in Markdown.

    >>> records_section(all_claims("two-lines:single-pass")).splitlines()[0]
    '## What is known about constants that nothing comes close to'
    """
    claims = all_claims() if chosen is None else chosen
    lines = [INTRODUCTION.format(heading=HEADING), *_evidence(claims)]
    recorded = sum(record_of(claim) is not None for claim in claims)
    lines.append(RECORDS.format(claims=len(claims), recorded=recorded).rstrip("\n"))
    lines += [
        f"| `{record.key}` | {record.ratio:.4g} | {plain_text(record.at)} | {plain_text(record.found)} |"
        for record in all_records().values()
    ]
    return "\n".join(lines) + "\n"


def _evidence(claims: tuple[Claim, ...]) -> Iterator[str]:
    for claim in claims:
        evidence = claim.evidence
        if evidence is not None:
            name, statement = plain_text(claim.name), plain_text(claim.statement)
            yield f"- {name} (`{claim.label}`): {statement}. {plain_text(evidence.sentence)}"


def with_records(page: str) -> str:
    """A page of hunted claims with its end replaced by the records as they are now.

    >>> page = with_records("# Claims")
    >>> page.count(HEADING), with_records(page) == page
    (1, True)
    """
    return page.partition(HEADING)[0].rstrip("\n") + "\n\n" + records_section()


def plain_text(text: str) -> str:
    """Text in which Markdown sees no markup."""
    return re.sub(r"([\\`*\[|])", r"\\\1", text)
