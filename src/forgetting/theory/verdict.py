"""Both sides of a statement on an instance, and the verdict on them.

A right side that is a bound keeps the bound, its terms and branches, and what holds without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from forgetting.core.arrays import as_kind, as_number
from forgetting.errors import InvalidInputError
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.theory.instance import Instance
from forgetting.theory.setting import Setting

if TYPE_CHECKING:
    from forgetting.theory.bound import Bound

LATEST = 10**15  # steps up to which a bound may come below the trivial value


@dataclass(frozen=True, eq=False)
class RightSide:
    """A bound at a setting and a number of steps k.

    Attributes:
        bound, setting, k: what is evaluated, and where.
        branches: the parts of a minimum that are bounds of their own, by the last part of their keys.

    >>> import forgetting as fg
    >>> side = RightSide(fg.bounds.get("thm:cl_by_sgd_main/forgetting"), Setting(radius=2.0), 17)
    >>> side.value, side.trivial, side.telling_from
    (10.0, 2.0, 10002)
    """

    bound: Bound
    setting: Setting
    k: int
    branches: Mapping[str, Bound] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The bound."""
        return float(self.bound.compute(self.setting, self.k))

    @property
    def without(self) -> dict[str, float]:
        """The bound without one of its terms, by the name of the term."""
        return self.bound.without(self.setting, self.k)

    @property
    def branch_values(self) -> dict[str, float]:
        """The value of each branch."""
        return {name: float(branch.compute(self.setting, self.k)) for name, branch in self.branches.items()}

    @property
    def trivial(self) -> float | None:
        """The trivial value, which holds without the statement (`Setting.trivial`); None where it is not known."""
        return self.setting.trivial(self.bound.quantity)

    @property
    def telling_from(self) -> int | None:
        """The first k at which the bound is below the trivial value at this setting, if it falls with k; else None.

        A bound for one pass is taken at T = k + 1 where that is more than the T of the setting.
        """
        first = self.bound.range.first
        if not isinstance(first, int) or self.trivial is None:
            return None

        def telling(k: int) -> bool:
            one_pass = self.bound.range.last is not None and (self.setting.T or 0) < k + 1
            at = replace(self.setting, T=k + 1) if one_pass else self.setting
            return self.bound.compute(at, k) < float(self.trivial or 0.0) * (1 - 1e-12)

        low, high = max(first, 1) - 1, max(first, 1)
        while not telling(high):
            low, high = high, 2 * high
            if high > LATEST:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if telling(middle) else (middle, high)
        return high


add_codec(dataclass_codec(RightSide, "right-side"))


Kind = Literal["inequality", "equality"]

#: A statement holds if lhs <= rhs + TOLERANCE max(|lhs|, |rhs|) + the doubt that the computation reports; an equality
#: if |lhs - rhs| is within the same, relative to its natural scale.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Sides:
    """Both sides of a statement on one instance.

    Attributes:
        lhs, rhs: what is compared.
        doubt: how far rounding or simulation may have moved the difference.
        scale: the natural size of an equality's terms; the larger side if left out.
        how: how the values were obtained.
        without: the right side without one of its terms, by the name of the term, for each term.
        shift: what was added to both sides, so that they are positive; constants of the statement do not multiply it.
        right: the bound that the right side is, where it is one.

    >>> Sides(1.0, 2.0).how
    'closed form'
    """

    lhs: Any
    rhs: Any
    doubt: float = 0.0
    scale: float | None = None
    how: str = "closed form"
    without: Mapping[str, float] = field(default_factory=dict)
    shift: float = 0.0
    right: RightSide | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of checking a statement on one instance.

    Attributes:
        lhs, rhs: both sides.
        slack: rhs - lhs.
        ratio: lhs / rhs; 0/0 is 0, and NaN where rhs is negative.
        residual: |lhs - rhs| relative to the scale of an equality; for an inequality, how far it is exceeded.
        holds: up to numerical error, `TOLERANCE` plus the doubt of the computation.
        how: how the values were obtained.
        doubt: what was allowed for, beyond the tolerance.
        scale: the natural size of an equality's terms, the larger side of an inequality.
        disputed: whether an engine and the definition of what it computes differ; lhs is what the engine gives, and
            rhs what the definition gives.
        shift, right: as in `Sides`.

    >>> import forgetting as fg
    >>> case = fg.claims.Instance(fg.families.two_lines(0.1), fg.orderings.WithReplacement(), k=100)
    >>> print(fg.claims.get("thm:random_convergence_rate", "loss").check(case))
    holds: 0.001516 <= 0.001858, ratio 0.8158 (moments)
    """

    lhs: float
    rhs: float
    slack: float
    ratio: float
    residual: float
    holds: bool
    how: str
    doubt: float = 0.0
    kind: Kind = "inequality"
    scale: float = 0.0
    disputed: bool = False
    shift: float = 0.0
    right: RightSide | None = field(default=None, repr=False, compare=False)

    @property
    def coarse(self) -> bool:
        """Whether more than rounding was allowed for, as where a side is simulated."""
        return self.doubt > 1e3 * TOLERANCE * self.scale

    @property
    def decided(self) -> bool:
        """False where simulation leaves open on which side of the other a side is."""
        return not self.coarse or not self.holds or self.kind == "equality" or self.lhs + self.doubt <= self.rhs

    @property
    def measure(self) -> str:
        """The measure of closeness: the ratio, the slack where sides are negative, the residual of an equality."""
        if self.kind == "equality":
            return f"residual {self.residual:.2g}"
        return f"slack {self.slack:.3g}" if math.isnan(self.ratio) else f"ratio {self.ratio:.4g}"

    def reached(self, rhs: float | None = None) -> float | None:
        """The share of the right side, or of another value in its place, that the left side exceeds for sure.

        With its constant multiplied by less than this, the statement would be violated here. At most 0 if the
        tolerance and the doubt leave nothing, and None if the value has no constant: if it is 0, or negative in an
        inequality.

        >>> sides = Sides(1.0, 4.0, doubt=0.2)
        >>> round(Verdict.of(sides, "inequality").reached(), 6), round(Verdict.of(sides, "inequality").reached(2.0), 6)
        (0.2, 0.4)
        """
        value = (self.rhs if rhs is None else as_number(rhs, "rhs")) - self.shift
        if self.kind == "equality":
            off = abs(self.lhs - self.rhs) + TOLERANCE * self.scale + self.doubt
            return None if value == 0 else 1 - off / abs(value)
        return None if value <= 0 else (self.lhs - TOLERANCE * abs(self.lhs) - self.doubt - self.shift) / value

    def __str__(self) -> str:
        if self.disputed:
            return f"disputed: {self.how}"
        sign = "=" if self.kind == "equality" else "<="
        word = "violated" if not self.holds else "holds" if self.decided else "undecided"
        within = f", give or take {self.doubt:.2g}" if self.coarse else ""
        return f"{word}: {self.lhs:.4g} {sign} {self.rhs:.4g}, {self.measure} ({self.how}{within})"

    @classmethod
    def of(cls, sides: Sides, kind: Kind) -> Verdict:
        """The verdict on both sides."""
        as_kind(sides, Sides, "fg.claims.Sides(lhs, rhs)")
        if as_kind(kind, str, "a kind of statement", "kind: ") not in get_args(Kind):
            raise InvalidInputError(f"kind must be 'inequality' or 'equality', got {kind!r:.80}")
        lhs, rhs = float(sides.lhs), float(sides.rhs)
        size = max(abs(lhs), abs(rhs))
        scale = size if sides.scale is None else float(sides.scale)
        excess = abs(lhs - rhs) if kind == "equality" else max(lhs - rhs, 0.0)
        allowed = TOLERANCE * (scale if kind == "equality" else size) + sides.doubt
        ratio = lhs / rhs if rhs > 0 else (0.0 if lhs <= sides.doubt and rhs == 0 else math.nan)
        return cls(
            lhs=lhs,
            rhs=rhs,
            slack=rhs - lhs,
            ratio=ratio,
            residual=excess / scale if scale > 0 else (0.0 if excess == 0 else math.inf),
            holds=bool(excess <= allowed),
            how=sides.how,
            doubt=sides.doubt,
            kind=kind,
            scale=scale,
            shift=sides.shift,
            right=sides.right,
        )


Check: TypeAlias = Callable[[Instance], Sides]


class CheckPaths(NamedTuple):
    """The computation of both sides of a statement: in float64, and at 50 digits where that is possible."""

    sides: Check
    precise: Check | None = None


#: the problem of a number for a hunt: structured ones first, then random ones
Draw: TypeAlias = Callable[[np.random.Generator, int], Instance]
Missing: TypeAlias = Callable[[Instance], str | None]
Settle: TypeAlias = Callable[[Instance], Instance]


def always(instance: Instance) -> None:
    """None: the statement applies to every instance."""


def unchanged(instance: Instance) -> Instance:
    """The statement applies to every instance as it is."""
    return instance


add_codec(dataclass_codec(Verdict, "verdict"))
