"""Records: for each statement the largest ratio of its sides ever found, and the instance that attains it.

The folder `largest_ratios` has an entry for each record (`forgetting.files.best_known`), and beside it the saved
`Instance`; in a copy of the repository `python -m tools.ratios` makes them, and only ever replaces a record by a larger
one.

The sides of a bound are compared by the claim of its statement, or by that of a related bound (`claim_of`): a branch of
a minimum, a step of a proof or a bound of another paper has no claim of its own, but a claim on the same quantity under
the same orderings computes its left side all the same, and the setting at which the bound is evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.files.best_known import BestKnown, beside, confirmed, larger
from forgetting.theory.checking import all_of, covers
from forgetting.theory.instance import Instance
from forgetting.theory.registry import all_claims, all_halves, get_bound, halves_of
from forgetting.theory.setting import describe_scheme
from forgetting.theory.verdict import Check, RightSide, Sides, Verdict

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound
    from forgetting.theory.claim import Claim
    from forgetting.theory.statement import Statement

__all__ = [
    "FOLDER",
    "NO_RATIO",
    "Record",
    "all_records",
    "both_sides",
    "claim_of",
    "has_ratio",
    "read_records",
    "record_of",
    "why_no_ratio",
    "why_no_record",
]

FOLDER = Path(__file__).with_name("largest_ratios")
CASE = ".npz"  # ending of the file beside an entry that has its instance
PROBES = 12  # problems on which a claim is tried
NO_RATIO = {
    "equality": "an equality: its sides are compared by their difference",
    "rate": "its constants are not known, so that there is no right side to divide by",
    "lower": "a lower bound holds for the worst tasks only; bound.instance(T, k) gives tasks that reach it",
}
DOUBT = 1e-4  # of the larger side: what rounding or simulation may have done to sides that have a ratio
CLOSE = 1e-6  # relative: how far a ratio that is computed again may be off, beyond its own doubt


@dataclass(frozen=True)
class Record(BestKnown):
    """The largest ratio lhs/rhs of a statement ever found, and the file of the instance that attains it.

    Attributes:
        key: of the claim; for a bound without a claim of its own, the key of the bound.
        ratio: of the two sides.
        found: how the instance was found.
        at: the instance in a few words.
        file: its name in the folder of records.
        sha256: the digest of the file.
        folder: where the file is.

    >>> import forgetting as fg
    >>> record = fg.claims.get("thm:random_convergence_rate", "loss").record
    >>> record.ratio > 0.99, record.verify().holds
    (True, True)
    """

    _FORMAT = "forgetting/largest-ratio/1"
    _WHAT = "record"

    key: str
    ratio: float
    found: str
    at: str
    file: str
    sha256: str = field(metadata={"kept as": "instance"})
    folder: Path = field(default=FOLDER, repr=False, compare=False)

    def __post_init__(self) -> None:
        if Path(self.file).name != self.file or not (math.isfinite(self.ratio) and self.ratio >= 0):
            raise InvalidInputError(f"{self.key}: no file {self.file!r:.60} or ratio {self.ratio}")

    @property
    def name(self) -> str:
        """The name of its files, without the endings."""
        return self.file.removesuffix(CASE)

    @property
    def _reached(self) -> float:
        return self.ratio

    @classmethod
    def _place(cls, path: Path) -> dict[str, Any]:
        return {"folder": path.parent}

    @property
    def path(self) -> Path:
        """The file of the instance, for `fg.claims.Instance.load`."""
        return self.folder / self.file

    @property
    def claim(self) -> Claim:
        """The claim that computes both sides."""
        own = next((claim for claim in all_claims() if claim.key == self.key), None)
        claim = own if own is not None else claim_of(get_bound(self.key))
        if claim is None:
            raise ProblemFileError(f"{self.path}: no claim computes both sides of {self.key}")
        return claim

    @property
    def instance(self) -> Instance:
        """The instance, read anew each time; an error names the file if the file is not what was recorded."""
        return Instance.load(beside(self.path, CASE, self.sha256, f"the instance of {self.key}"))

    def verify(self) -> Verdict:
        """Compute both sides again; an error names file and statement if the ratio is not the recorded one.

        >>> import forgetting as fg
        >>> print(fg.claims.get("two-lines:random", "loss").record.verify().holds)
        True
        """
        verdict = both_sides(self.claim, self.instance)
        allowed = CLOSE * self.ratio + (verdict.doubt / verdict.rhs if verdict.rhs > 0 else 0.0)
        confirmed(self.path, f"the ratio of {self.key}", self.ratio, verdict.ratio, allowed)
        return verdict

    @property
    def sentence(self) -> str:
        """The ratio, where it is attained, and how that was found."""
        return f"the largest ratio found is {self.ratio:.4g}, at {self.at} ({self.found}; {self.file})"


def read_records(folder: Path | None = None) -> dict[str, Record]:
    """The records of a folder by key, the largest of each; an error names a file that is damaged."""
    records: dict[str, Record] = {}
    for path in (FOLDER if folder is None else folder).glob("*.json"):
        record = Record.read(path)
        if record.key not in records or larger(record.ratio, records[record.key].ratio, 0.0):
            records[record.key] = record
    return dict(sorted(records.items()))


@cache
def all_records() -> Mapping[str, Record]:
    """The records of the package, by the key of their claim or bound.

    >>> all_records()["thm:cl_by_sgd_main (forgetting)"].ratio < 0.01
    True
    """
    return read_records()


def record_of(statement: Statement) -> Record | None:
    """The record of a claim or a bound, or None; `why_no_record` says why.

    >>> import forgetting as fg
    >>> record_of(fg.claims.get("eq:loss")) is None
    True
    """
    if statement.kind in NO_RATIO:
        return None
    return all_records().get((halves_of(statement).claim or statement).key)


def why_no_record(statement: Statement) -> str | None:
    """Why there is no record of a statement, or None where there is one.

    >>> import forgetting as fg
    >>> why_no_record(fg.bounds.get("derezinski2026:random/loss"))
    'its constants are not known, so that there is no right side to divide by'
    """
    if record_of(statement) is not None:
        return None
    return why_no_ratio(statement) or "no ratio was recorded; a hunt looks for the largest one"


def has_ratio(verdict: Verdict) -> bool:
    """Whether the sides have a ratio that can be recorded: both are positive or 0, and known to four digits.

    >>> from forgetting.theory.verdict import Sides
    >>> [has_ratio(Verdict.of(Sides(1.0, 2.0, doubt), "inequality")) for doubt in (0.0, 0.1)]
    [True, False]
    """
    size = max(abs(verdict.lhs), abs(verdict.rhs))
    sure = not verdict.disputed and verdict.doubt <= DOUBT * size
    return sure and math.isfinite(size) and verdict.rhs > 0 and verdict.lhs >= 0


def both_sides(claim: Claim, instance: Instance) -> Verdict:
    """The verdict in float64, or at 50 digits where float64 leaves the ratio in doubt."""
    verdict = claim.check(instance)
    return verdict if has_ratio(verdict) else claim.confirm(instance) or verdict


def why_no_ratio(statement: Statement) -> str | None:
    """Why there is no ratio of the left side to the right side, or None where there is one.

    >>> import forgetting as fg
    >>> why_no_ratio(fg.claims.get("eq:loss"))
    'an equality: its sides are compared by their difference'
    """
    if statement.kind in NO_RATIO:
        return NO_RATIO[statement.kind]
    compared = statement.claim is not None or (statement.bound is not None and claim_of(statement.bound) is not None)
    return None if compared else "no claim computes its left side"


def claim_of(bound: Bound) -> Claim | None:
    """The claim that compares the quantity with the bound; None for a rate, a lower bound, or where nothing does.

    >>> import forgetting as fg
    >>> claim_of(fg.bounds.get("thm:cl_by_sgd_main/loss")).key
    'thm:cl_by_sgd_main (loss)'
    >>> case = fg.claims.Instance(fg.families.worst_pair(8), fg.orderings.WithReplacement(), 8)
    >>> round(claim_of(fg.bounds.get("attia2025:with/loss")).check(case).ratio, 3)
    0.01
    """
    if bound.kind in NO_RATIO:
        return None
    if (own := bound.claim) is not None:
        return own
    related = [
        (known, claim)
        for known, claim in all_halves()
        if known is not None and claim is not None and claim.kind == "inequality" and _related(bound, known, claim)
    ]
    best = max(related, key=lambda other: _closeness(bound, other[0]), default=None)
    return None if best is None else _compared(bound, best[1])


def _related(bound: Bound, known: Bound, claim: Claim) -> bool:
    """Whether the check of another bound computes what this bound is about."""
    shared = bool(set(bound.problems) & set(known.problems) and set(bound.schemes) & set(known.schemes))
    ordered = "any" in bound.orderings or set(known.orderings) <= _included(bound.orderings)
    same = known.quantity == bound.quantity and known.kind == "upper" and known.noisy == bound.noisy
    return shared and ordered and same and _says_where(claim)


@cache
def _says_where(claim: Claim) -> bool:
    """Whether the sides of a claim name the bound on the right, and the setting; tried on its first problems."""
    for index in range(PROBES):
        with suppress(ForgettingError):
            instance = claim.settle(claim.draw(np.random.default_rng([0, index]), index))
            if claim.why_not(instance) is None:
                return claim.sides(instance).right is not None
    return False


def _included(orderings: tuple[str, ...]) -> set[str]:
    """These orderings, with the special cases that a bound on them covers too."""
    return {*orderings, *(("with replacement", "norm-weighted") if "i.i.d." in orderings else ())}


def _closeness(bound: Bound, known: Bound) -> tuple[bool, bool, bool, bool]:
    """The rank of a related bound: same label first, then same orderings, no conditions, an early first k."""
    early = known.range.first in (1, 2)
    return known.label == bound.label, known.orderings == bound.orderings, not known.conditions, early


def _compared(bound: Bound, claim: Claim) -> Claim:
    """The claim of another bound, with this bound on its right side."""

    def against(compute: Check) -> Check:
        def sides(instance: Instance) -> Sides:
            both = compute(instance)
            if both.right is None:
                raise InvalidInputError(f"{bound.key}: {claim.key} does not say at which setting")
            setting, k = both.right.setting, both.right.k
            reason = bound.why_not(setting, k)
            if reason is None and setting.problem not in bound.problems:
                reason = f"is about {' or '.join(bound.problems)}"
            if reason is not None:
                raise InvalidInputError(f"{bound.key}: {reason}")
            right = RightSide(bound, setting, k)
            return replace(both, rhs=right.value, without=right.without, right=right)

        return sides

    def scheme(instance: Instance) -> str | None:
        tags = describe_scheme(instance.scheme, instance.problem)[0]
        return f"covers {' or '.join(bound.schemes)} schemes" if tags.isdisjoint(bound.schemes) else None

    return replace(
        claim,
        label=bound.key,
        part=None,
        statement=f"{bound.quantity} <= {bound.formula}, {bound.range}",
        source=bound.source,
        status=bound.status,
        note=bound.note,
        title=bound.title,
        sides=against(claim.sides),
        precise=None if claim.precise is None else against(claim.precise),
        missing=all_of(claim.missing, covers(*bound.orderings), scheme),
    )
