"""The words that statements are described by: quantities, kinds, origins, statuses, ranges of k and conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

from forgetting.core.arrays import as_count
from forgetting.theory.setting import Setting

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
