"""Hunts of many claims as a study: finished ones can be kept, and several processes can share the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import time
from typing import Any, Self

from forgetting.errors import ForgettingError
from forgetting.files.store import code_digest
from forgetting.studies.study import Study
from forgetting.theory.claim import Claim
from forgetting.theory.hunt import Hunt
from forgetting.theory.registry import get_claim, heading_of

NO_SIZES: Mapping[str, Any] = {}


@dataclass(frozen=True)
class HuntedClaim:
    """A claim and the finding of its hunt, as plain data."""

    label: str
    part: str | None
    statement: str
    status: str
    note: str
    outcome: str
    finding: str
    checked: int
    tried: int = 0
    lhs: float | None = None
    rhs: float | None = None
    cut_short: bool = False
    source: str = ""

    @classmethod
    def of(cls, hunt: Hunt, **more: Any) -> Self:
        """Read a hunt; `more` are the fields of a derived class."""
        claim, verdict = hunt.claim, hunt.verdict
        return cls(
            claim.label, claim.part, claim.statement, claim.status, claim.note, hunt.outcome, hunt.finding,
            hunt.checked, hunt.tried, None if verdict is None else float(verdict.lhs),
            None if verdict is None else float(verdict.rhs), hunt.cut_short, claim.source, **more,
        )  # fmt: skip

    @property
    def key(self) -> str:
        """Label and part."""
        return self.label if self.part is None else f"{self.label} ({self.part})"

    @property
    def name(self) -> str:
        """The name for readers, with the label second."""
        return heading_of(self.label, self.part)

    @property
    def surprising(self) -> bool:
        """Whether the hunt and what is declared about the claim disagree."""
        return (self.outcome != "holds") if self.status != "refuted" else (self.outcome != "refuted")


def hunt_one(
    label: str,
    part: str | None,
    seed: int,
    budget: int,
    deadline: float | None = None,
    sizes: Mapping[str, Any] = NO_SIZES,
    known: bool = False,
) -> HuntedClaim:
    """Hunt one claim.

    `deadline` is a time of day, in seconds; `known` is as for `Claim.hunt`. If the claim cannot be checked at the sizes
    (T, d, k) that are given, its outcome is "not applicable".

    >>> row = hunt_one("cor:dimensionality_bound", "rank equality", seed=0, budget=60)
    >>> row.outcome, row.status, row.surprising
    ('refuted', 'refuted', False)
    """
    claim = get_claim(label, part)
    try:
        return HuntedClaim.of(
            claim.hunt(seed=seed, budget=budget, seconds=seconds_until(deadline), known=known, **sizes)
        )
    except ForgettingError as error:
        if not sizes:
            raise
        about = claim.label, claim.part, claim.statement, claim.status, claim.note
        return HuntedClaim(*about, "not applicable", str(error), 0, source=claim.source)


def seconds_until(deadline: float | None) -> float | None:
    """The seconds that are left until a time of day, at least one; None without a deadline."""
    return None if deadline is None else max(deadline - time(), 1.0)


def hunted_rows(
    claims: Sequence[Claim],
    hunt: Callable[[str, str | None, int, int, float | None], HuntedClaim],
    *,
    seed: int,
    budget: int,
    identity: Mapping[str, Any],
    minutes: float | None = None,
    processes: int = 1,
    store: Path | None = None,
    finished: Callable[[Mapping[str, Any], int, int], None] = lambda *_: None,
) -> list[dict[str, Any]]:
    """The findings of hunts as plain data; those that are not done when the time is over are cut short and say so.

    Args:
        claims: what to hunt.
        hunt: called as hunt(label, part, seed, budget, deadline).
        seed, budget: for each hunt.
        identity: what else tells a hunt from another one, as plain data: the settings of `hunt`.
        minutes: when to stop; None for no limit.
        processes: how many.
        store: a file where finished hunts are kept, and looked for first; a hunt that was cut short is made again.
        finished: called as finished(row, done, total) after each claim.

    >>> import forgetting as fg
    >>> claims = fg.claims.all("lem:regret_bound")
    >>> [row["outcome"] for row in hunted_rows(claims, hunt_one, seed=0, budget=20, identity={})]
    ['holds']
    """
    deadline = None if minutes is None else time() + 60 * minutes
    common = {"budget": budget, "seed": seed, "identity": {**identity, "code": code_digest()}}
    cells = [{"label": claim.label, "part": claim.part, **common} for claim in claims]
    study = Study(cells, store, function=_Hunter(hunt, deadline))
    study.forget(lambda row: bool(row["cut_short"]))
    done = 0

    def report(cell: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
        nonlocal done
        done += 1
        finished(rows[0], done, len(cells))

    study.run(processes, progress=False, finished=report, check=True)
    return study.results()


class _Hunter:
    """A hunt as the function of a study. The deadline is no part of a cell: a hunt may end another day."""

    def __init__(
        self, hunt: Callable[[str, str | None, int, int, float | None], HuntedClaim], deadline: float | None
    ) -> None:
        self.hunt, self.deadline, self.__qualname__ = hunt, deadline, "hunt"

    def __call__(self, label: str, part: str | None, budget: int, seed: int, identity: Any) -> dict[str, Any]:
        return asdict(self.hunt(label, part, seed, budget, self.deadline))
