"""Statements, and the words that they are described by: quantities, kinds, origins, statuses, ranges and conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from forgetting.core.arrays import as_count, as_kind
from forgetting.theory.numbering import name_of
from forgetting.theory.record import Record, record_of, why_no_record
from forgetting.theory.registry import halves_of
from forgetting.theory.setting import Setting

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound
    from forgetting.theory.claim import Claim

Quantity = Literal[
    "loss", "forgetting", "next_loss", "objective", "averaged_objective", "residual", "regret", "error", "averaged_loss"
]  # fmt: skip
Kind = Literal["upper", "lower", "rate", "floor"]
Origin = Literal["statement", "branch", "proof", "tightened", "trivial"]
#: What is known about the truth of a statement, for bounds and claims alike.
Status = Literal[
    "holds as stated",
    "holds where proved",
    "gap in the printed proof",
    "corrected",
    "proved here",
    "refuted",
    "second-hand",
    "rate only",
    "conjecture",
]
QUANTITIES: tuple[str, ...] = get_args(Quantity)
NAMES = {
    "loss": "E L(w_k)",
    "forgetting": "E F(k)",
    "next_loss": "E L_tau(k+1)(w_k)",
    "objective": "E f(w_k)",
    "averaged_objective": "E f((w_0 + ... + w_(k-1)) / k)",
    "error": "E |w_k - w*|^2",
    "averaged_loss": "E L((w_0 + ... + w_(k-1)) / k)",
}
KINDS: tuple[str, ...] = get_args(Kind)
ORIGINS: tuple[str, ...] = get_args(Origin)
STATUSES: tuple[str, ...] = get_args(Status)


@dataclass(frozen=True)
class Range:
    """The k that a bound covers: from `first` to `last`, which may be T, T-1 or T^2, in steps of `every`.

    >>> print(Range(2, "T"))
    2 <= k <= T
    >>> Range(2, "T").why_not(7, T=5)
    'k = 7, but the bound covers 2 <= k <= T = 5'
    >>> print(Range("T^2", every="T"))
    k >= T^2, a multiple of T
    """

    first: int | Literal["T^2"] = 1
    last: Literal["T", "T-1"] | None = None
    every: Literal["T"] | None = None

    def __str__(self) -> str:
        span = f"k >= {self.first}" if self.last is None else f"{self.first} <= k <= {self.last}"
        return span + (f", a multiple of {self.every}" if self.every else "")

    @property
    def needs_tasks(self) -> bool:
        """Whether T must be known."""
        return self.first == "T^2" or self.last is not None or self.every is not None

    def why_not(self, k: int, T: int | None) -> str | None:
        """The reason why k is outside, or None."""
        k, tasks = as_count(k, "k"), 1 if T is None else as_count(T, "T")
        first = tasks**2 if self.first == "T^2" else self.first
        last = {"T": tasks, "T-1": tasks - 1, None: math.inf}[self.last]
        if first <= k <= last and (self.every is None or k % tasks == 0):
            return None
        return f"k = {k}, but the bound covers {self}" + (f" = {last}" if self.last else "")


@dataclass(frozen=True)
class Condition:
    """One more thing that must hold: a test on (setting, k) and the reason given when it fails.

    >>> even = Condition(lambda s, k: s.T % 2 == 0, "T must be even")
    >>> even.holds(Setting(T=3), 1)
    False
    """

    holds: Callable[[Setting, int], bool]
    reason: str


class Statement:
    """One statement of a paper or of another source: the right side, a `Bound`, or the check of both sides, a `Claim`.

    Attributes:
        key: unique among bounds, or among claims; `label` and `part` of it.
        title: what it is, in a few words.
        source: authors, year and theorem.
        status: what is known of its truth; `note` says more.
    """

    key: str
    label: str
    part: str | None
    title: str
    source: str
    status: Status
    note: str
    kind: Any

    def _check_words(self, *names: str) -> None:
        """Raise unless the fields of these names hold words."""
        for name in names:
            as_kind(getattr(self, name), str, "words", f"{self.key}: {name}: ")

    @property
    def bound(self) -> Bound | None:
        """The right side of the registered statement; None where it is no bound on a quantity of this library.

        >>> import forgetting as fg
        >>> fg.claims.get("thm:cl_by_sgd_main", "loss").bound.formula
        '2 S / k^(1/4)'
        """
        return halves_of(self).bound

    @property
    def claim(self) -> Claim | None:
        """The check of the registered statement; None where it is not checked on instances.

        >>> import forgetting as fg
        >>> fg.bounds.get("thm:cl_by_sgd_main/loss").claim.part
        'loss'
        """
        return halves_of(self).claim

    @property
    def name(self) -> str:
        """The name for readers: the number in the PDF, or authors and year, the title and, of a claim, the part.

        >>> import forgetting as fg
        >>> fg.bounds.get("thm:cl_by_sgd_main/loss").name, fg.claims.get("thm:cl_by_sgd_main", "loss").name
        ('Theorem 10, universal rate', 'Theorem 10, universal rate: loss')
        """
        return name_of(self.label, self.source, self.title)

    @property
    def heading(self) -> str:
        """The name, and then the key of a bound, or the label of a claim."""
        return f"{self.name} [{self.key}]"

    @property
    def record(self) -> Record | None:
        """The largest ratio lhs/rhs ever found, with the instance that attains it; None where `why_no_record` says why.

        >>> import forgetting as fg
        >>> record = fg.claims.get("thm:cl_by_sgd_main", "forgetting").record
        >>> 0.008 < record.ratio < 0.01, record.verify().holds, fg.claims.get("eq:loss").record
        (True, True, None)
        >>> fg.bounds.get("two-lines:random/loss").record.ratio > 0.999999
        True
        """
        return record_of(self)

    @property
    def why_no_record(self) -> str | None:
        """Why there is no record, or None where there is one.

        >>> import forgetting as fg
        >>> fg.bounds.get("two-lines:random/loss/lower").why_no_record
        'a lower bound holds for the worst tasks only; bound.instance(T, k) gives tasks that reach it'
        """
        return why_no_record(self)
