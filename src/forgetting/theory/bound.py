"""Bounds as they are stated: the right-hand side, where it applies, and what is known about its truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from forgetting.core.arrays import as_count, as_kind
from forgetting.errors import InvalidInputError
from forgetting.tasks import Problem
from forgetting.theory.bibliography import check_entry
from forgetting.theory.expression import Compute, Expression
from forgetting.theory.numbering import name_of
from forgetting.theory.setting import ORDERINGS, PROBLEMS, SCHEMES, SCHEMES_ELSEWHERE, ProblemKind, Setting

__all__ = ["ORIGINS", "QUANTITIES", "STATUSES", "Condition", "Range", "StatedBound", "Status"]

Quantity = Literal[
    "loss", "forgetting", "objective", "averaged_objective", "residual", "regret", "error", "averaged_loss"
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
]
QUANTITIES: tuple[str, ...] = get_args(Quantity)
NAMES = {
    "loss": "E L(w_k)",
    "forgetting": "E F(k)",
    "objective": "E f(w_k)",
    "averaged_objective": "E f((w_0 + ... + w_(k-1)) / k)",
    "error": "E |w_k - w*|^2",
    "averaged_loss": "E L((w_0 + ... + w_(k-1)) / k)",
}
KINDS: tuple[str, ...] = get_args(Kind)
ORIGINS: tuple[str, ...] = get_args(Origin)
STATUSES: tuple[str, ...] = get_args(Status)
PARAMETERS = (
    *(parameter.name for parameter in fields(Setting)),
    "span",
    "scale",
    "sgd_dist_sq",
    "sigma_star",
)  # what a formula may need


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


def _no_formula(setting: Setting, k: int) -> float:
    raise InvalidInputError("this bound was declared without a formula: give an expression, or compute")


@dataclass(frozen=True)
class StatedBound:
    """A bound as it is stated: the fields that `forgetting.theory.statement.Bound` describes, and the value.

    >>> demo = StatedBound("demo/loss", "half the scale", "nobody", "loss", ("any",), compute=lambda s, k: s.scale / 2)
    >>> demo.value(Setting(radius=2), k=1), demo.why_not(Setting(), k=0)
    (2.0, 'k = 0, but the bound covers k >= 1')
    """

    key: str
    title: str
    source: str
    quantity: Quantity
    orderings: tuple[str, ...]
    formula: str = ""
    latex: str = ""
    compute: Compute = field(default=_no_formula, repr=False)
    kind: Kind = "upper"
    status: Status = "holds as stated"
    origin: Origin = "statement"
    schemes: tuple[str, ...] = ("projection",)
    problems: tuple[ProblemKind, ...] = ("regression",)
    assumptions: str = "jointly realizable tasks, each learned to convergence"
    range: Range = Range()
    needs: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    convention: str = "losses carry the factor 1/2"
    note: str = ""
    tight: bool = False
    instance: Callable[[int, int], Problem] | None = field(default=None, repr=False)
    expression: Expression | None = field(default=None, repr=False)
    bibtex: str = field(default="", repr=False)
    noisy: bool = False

    def __post_init__(self) -> None:
        as_kind(self.key, str, "a key such as 'newer2027:random/loss'", "key: ")
        if self.expression is not None:
            formula = as_kind(self.expression, Expression, "an expression such as 2 * S / K")
            object.__setattr__(self, "formula", formula.text)
            object.__setattr__(self, "latex", formula.latex)
            object.__setattr__(self, "compute", formula.compute)
            object.__setattr__(self, "needs", tuple(dict.fromkeys((*formula.needs, *self.needs))))
        self._check_words()
        for name, allowed in (("quantity", QUANTITIES), ("kind", KINDS), ("status", STATUSES), ("origin", ORIGINS)):
            if getattr(self, name) not in allowed:
                raise InvalidInputError(
                    f"{self.key}: {name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r:.60}"
                )
        schemes = (*SCHEMES, *SCHEMES_ELSEWHERE)
        lists = {"orderings": ORDERINGS, "schemes": schemes, "problems": PROBLEMS, "needs": PARAMETERS}
        for name, allowed in lists.items():
            if isinstance(getattr(self, name), str):  # one name
                object.__setattr__(self, name, (getattr(self, name),))
            given = as_kind(getattr(self, name), tuple, f"names from {', '.join(allowed)}", f"{self.key}: {name}: ")
            stranger = next((word for word in given if word not in allowed), None)
            if stranger is not None:
                raise InvalidInputError(f"{self.key}: {name} must be from {', '.join(allowed)}, got {stranger!r:.60}")

    def _check_words(self) -> None:
        """Raise unless the fields that hold words, a range and conditions do."""
        if not self.key.strip():
            raise InvalidInputError("key: a bound needs a key, such as 'newer2027:random/loss'")
        for name in ("title", "source", "formula", "latex", "assumptions", "convention", "note", "bibtex"):
            as_kind(getattr(self, name), str, "words", f"{self.key}: {name}: ")
        for name in ("title", "source"):
            if not getattr(self, name).strip():
                raise InvalidInputError(f"{self.key}: {name} is empty; give it in a few words")
        if self.bibtex:
            check_entry(self.bibtex, self.key)
        as_kind(self.range, Range, "fg.bounds.Range(first, last), the k that are covered", f"{self.key}: range: ")
        conditions = as_kind(self.conditions, tuple, "a tuple of fg.bounds.Condition", f"{self.key}: conditions: ")
        for condition in conditions:
            as_kind(condition, Condition, "fg.bounds.Condition(holds, reason)", f"{self.key}: conditions: ")
        if not callable(self.compute):
            raise InvalidInputError(f"{self.key}: compute must be a function of (setting, k), got {self.compute!r:.60}")

    @property
    def label(self) -> str:
        """The part of the key that names the statement."""
        return self.key.split("/")[0]

    @property
    def part(self) -> str | None:
        """The rest of the key: which part or variant of the statement; None where the key is a label alone."""
        return self.key.partition("/")[2] or None

    @property
    def name(self) -> str:
        """The name for readers: the number in the PDF, or authors and year, and the title.

        >>> import forgetting as fg
        >>> fg.bounds.get("thm:cl_by_sgd_main/loss").name
        'Theorem 10, universal rate'
        """
        return name_of(self.label, self.source, self.title)

    @property
    def heading(self) -> str:
        """The name, and then the key."""
        return f"{self.name} [{self.key}]"

    def why_not(self, setting: Setting, k: int) -> str | None:
        """Why the formula cannot be used at these numbers, or None."""
        return self.not_known(setting) or self.not_covered(setting, k)

    def not_known(self, setting: Setting) -> str | None:
        """The reason if a number that the formula needs is missing or wrong, whatever k is, or None."""
        misfit = as_kind(setting, Setting, "a Setting").misfit
        if misfit is not None and not self.noisy:
            return f"needs jointly realizable tasks: {misfit.message}"
        needed = {*self.needs, *(("T",) if self.range.needs_tasks else ())}
        missing = sorted(name for name in needed if getattr(setting, name) is None)
        if missing:
            names = ", ".join("rank_joint (or d, or T and rank_avg)" if name == "span" else name for name in missing)
            return f"needs {names}, not known here"
        if "beta" in needed and not (setting.beta is not None and setting.beta > 0):
            return f"beta must be positive, got {setting.beta:g}"
        if "eta" in needed and not (setting.eta is not None and setting.eta > 0):
            return f"eta must be positive, got {setting.eta:g}"
        return None

    def not_covered(self, setting: Setting, k: int) -> str | None:
        """Why k is not covered where all numbers are known, or None."""
        outside = self.range.why_not(k, as_kind(setting, Setting, "a Setting").T)
        return outside or next((c.reason for c in self.conditions if not c.holds(setting, k)), None)

    def value(self, setting: Setting, k: int) -> float:
        """The right-hand side at k; an error names the reason where the formula cannot be used."""
        k = as_count(k, "k")
        reason = self.why_not(setting, k)
        if reason is not None:
            raise InvalidInputError(f"{self.key}: {reason}")
        return float(self.compute(setting, k))

    def without(self, setting: Setting, k: int) -> dict[str, float]:
        """The right-hand side at k without each of its terms, where it is one expression with several."""
        terms = {} if self.expression is None else self.expression.without
        return {text: float(compute(setting, k)) for text, compute in terms.items()}

    def __str__(self) -> str:
        sign = {"upper": "<=", "lower": ">=", "rate": "= O of", "floor": ">="}[self.kind]
        bounded = NAMES.get(self.quantity, self.quantity)
        return f"{self.heading}: {bounded} {sign} {self.formula}, {self.range} ({self.source}; {self.status})"
