"""Evidence about the constant of a bound that no instance comes close to: from below, from above, and where."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from forgetting.errors import ForgettingError
from forgetting.tasks.worst_tasks import WORST_PAIRS, KnownWorst, known_worst
from forgetting.theory.instance import Instance
from forgetting.theory.record import Record, record_of
from forgetting.theory.registry import upper_bounds
from forgetting.theory.setting import Setting, as_regression, describe_ordering, describe_scheme
from forgetting.theory.verdict import RightSide

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound
    from forgetting.theory.claim import Claim

__all__ = ["Evidence", "Share", "evidence_of"]

CLOSE = 1e-6  # relative: shares that differ by less are the same
FAR = 0.5  # a record below this is far from 1
LAST = 9  # bounds are compared at k up to 10^9, on a logarithmic scale
POINTS = 400


@dataclass(frozen=True)
class Share:
    """A share of the right side of a bound, at k steps, and what it is from."""

    share: float
    k: int
    source: str


@dataclass(frozen=True)
class Evidence:
    """Evidence about the constant of a statement whose largest ratio is far below 1.

    Attributes:
        record: the largest ratio found. With its constant multiplied by less than this ratio, the statement is false.
        value, right: both sides there, in units of |w_0 - w*|^2 R^2.
        k: the number of steps there.
        pair: the supremum over all pairs of tasks after as many steps, in the same units (closed form); None where
            the statement is not about the expected loss or forgetting of regression tasks with replacement.
        known: the largest share of the right side that tasks of `known_worst` reach, or None. Said first where it is
            larger than the record: files of records are small.
        certified: for each k at which a supremum over any number of tasks is bounded by a certificate, the largest
            share of the right side that it allows.
        proved: the largest share that the other bounds of the registry on the same quantity allow, over 400 numbers of
            steps up to 10^9; None where the bound itself is for given T, d or ranks. With its constant multiplied by
            this share, the statement follows from them there. For SGD, at the eta beta of the record.
        smallest: the smallest bound of the registry on the instance of the record, and its share of the right side.

    >>> import forgetting as fg
    >>> evidence = fg.claims.get("thm:cl_by_sgd_main", "forgetting").evidence
    >>> evidence.record.ratio < 0.01 < evidence.proved.share < 0.5
    True
    >>> fg.claims.get("two-lines:random", "loss").evidence is None
    True
    """

    record: Record
    value: float
    right: float
    k: int
    pair: float | None
    known: Share | None
    certified: tuple[Share, ...]
    proved: Share | None
    smallest: Share | None

    @property
    def sentences(self) -> tuple[str, ...]:
        """The evidence, one sentence for each kind."""
        ratio, record = self.record.ratio, f"{self.record.at}; {self.record.found}"
        known = None if self.known is None or self.known.share <= ratio * (1 + CLOSE) else self.known
        words = [f"The left side is 0 on every instance that was tried ({self.record.at})"]
        if known is not None:  # too large a file for a record
            words = [
                _reached(known.share, f"the worst tasks that are kept, at k = {known.k}: {known.source}"),
                f"The record is {ratio:.3g} of it ({record})",
            ]
        elif ratio > 0:
            words = [_reached(ratio, record)]
        if self.pair is not None:
            words.append(
                f"At k = {self.k} the supremum over all pairs of tasks is {self.pair:.4g} S (closed form), "
                f"{self.pair / self.right:.3g} of the right side"
            )
        if self.known is not None and known is None:
            words.append(
                f"The worst tasks that are kept reach {self.known.share:.3g} of it, at k = {self.known.k} "
                f"({self.known.source})"
            )
        words += [
            f"At k = {share.k} no tasks, however many, reach more than {share.share:.3g} ({share.source})"
            for share in self.certified
        ]
        if self.proved is not None:
            words.append(
                f"Other bounds of the registry, compared at {POINTS} numbers of steps up to 10^{LAST}, allow at most "
                f"{self.proved.share:.3g} of it, most at k = {self.proved.k} ({self.proved.source}): there the "
                "constant need not be larger than that share of itself"
            )
        if self.smallest is not None:
            words.append(
                f"On the instance of the record the smallest other bound is {self.smallest.share:.3g} of it "
                f"({self.smallest.source})"
            )
        return tuple(words)

    @property
    def sentence(self) -> str:
        """All of the evidence."""
        return ". ".join(self.sentences) + "."

    def __str__(self) -> str:
        return self.sentence


def _reached(share: float, where: str) -> str:
    """The largest share of the right side that is known to be reached."""
    most = f"the constant cannot be divided by more than {1 / share:.3g}"
    return f"No instance reaches more than {share:.3g} of the right side ({where}): {most}"


@cache
def evidence_of(claim: Claim) -> Evidence | None:
    """The evidence about the constant of a bound; None for other statements, and where the record is above 1/2.

    Cost: the claim is checked once on the instance of its record, and bounds are evaluated at 400 numbers of steps.
    """
    record = record_of(claim)
    if record is None or record.ratio >= FAR or claim.status == "refuted":
        return None
    verdict = record.verify()
    right, scale = verdict.right, None if verdict.right is None else verdict.right.setting.scale
    if right is None or not scale:
        return None
    bound, instance = right.bound, record.instance
    others = _others(bound, right.setting, instance)
    universal = _universal(bound, right)
    drawn = bound.quantity in WORST_PAIRS and "regression" in bound.problems and "with replacement" in bound.orderings
    entries = known_worst(bound.quantity) if drawn and universal is not None else ()
    return Evidence(
        record=record,
        value=verdict.lhs / scale,
        right=verdict.rhs / scale,
        k=instance.k,
        pair=WORST_PAIRS[bound.quantity](instance.k).value if drawn else None,
        known=_known(bound, entries),
        certified=_certified(bound, entries),
        proved=None if universal is None else _proved(bound, universal, others),
        smallest=_smallest(right, others),
    )


def _others(bound: Bound, setting: Setting, instance: Instance) -> list[Bound]:
    """The other upper bounds on the same quantity that cover the ordering, the scheme and the kind of problem."""
    if instance.ordering is None or instance.problem is None:
        return []
    orderings = describe_ordering(instance.ordering, as_regression(instance.problem), instance.k)
    schemes = describe_scheme(instance.scheme, instance.problem)[0]
    known = upper_bounds(bound.quantity, setting.problem, orderings, schemes)
    return [other for other in known if other is not bound]


def _universal(bound: Bound, right: RightSide) -> Setting | None:
    """A setting that says nothing of T, d and ranks, if that is enough for the bound; None if it is not."""
    at = right.setting
    setting = Setting(eta=at.eta, beta=at.beta, problem=at.problem)
    return setting if bound.not_known(_with_steps(bound, setting, right.k)) is None else None


def _with_steps(bound: Bound, setting: Setting, k: int) -> Setting:
    """The setting; for a bound on one pass, with T = k + 1."""
    one_pass = bound.range.last is not None
    return Setting(T=k + 1, eta=setting.eta, beta=setting.beta, problem=setting.problem) if one_pass else setting


def value_of(bound: Bound, setting: Setting, k: int) -> float | None:
    """The bound at these numbers; None if the bound needs more numbers, or does not cover these."""
    try:
        return bound.value(setting, k)
    except ForgettingError:
        return None


def _proved(bound: Bound, setting: Setting, others: list[Bound]) -> Share | None:
    """The largest share of the bound, over k, that the smallest of the others allows."""
    worst: Share | None = None
    for k in np.unique(np.geomspace(1, 10**LAST, POINTS).astype(np.int64)).tolist():
        at = _with_steps(bound, setting, k)
        own = value_of(bound, at, k)
        values = {other.key: value for other in others if (value := value_of(other, at, k)) is not None}
        if not own or not values:  # a bound of 0 leaves nothing to compare
            continue
        key = min(values, key=lambda name: values[name])
        if worst is None or values[key] / own > worst.share:
            worst = Share(values[key] / own, k, key)
    return worst if worst is not None and worst.share < 1 else None


def _smallest(right: RightSide, others: list[Bound]) -> Share | None:
    values = {other.key: value for other in others if (value := value_of(other, right.setting, right.k)) is not None}
    best = min(values, key=lambda key: values[key], default=None)
    if best is None or values[best] >= right.value:
        return None
    return Share(values[best] / right.value, right.k, best)


def _known(bound: Bound, entries: tuple[KnownWorst, ...]) -> Share | None:
    shares = [
        Share(entry.value / right, entry.k, f"T = {entry.T}, {entry.evidence}: {entry.name}")
        for entry in entries
        if entry.value is not None and (right := value_of(bound, Setting(), entry.k)) is not None
    ]
    return max(shares, key=lambda share: share.share, default=None)


def _certified(bound: Bound, entries: tuple[KnownWorst, ...]) -> tuple[Share, ...]:
    shares: dict[int, Share] = {}
    for entry in entries:
        right = value_of(bound, Setting(), entry.k)
        if entry.upper is not None and entry.T is None and right is not None:
            share = Share(entry.upper / right, entry.k, "a certificate")
            shares[entry.k] = min(share, shares.get(entry.k, share), key=lambda known: known.share)
    return tuple(shares[k] for k in sorted(shares))
