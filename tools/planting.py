"""Planted faults: statements with a fault in the right side, hunted to see what a hunt would notice.

A statement that holds on every problem of a hunt may hold with room to spare. The largest ratio of its sides says how
much smaller a constant would have been noticed; a term that matters nowhere is found by hunting without the term.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, Decimal

from forgetting.theory.claim import Claim
from forgetting.theory.hunt import Hunt
from forgetting.theory.registry import get_bound
from forgetting.theory.verdict import Check, Sides

FACTORS = (2, 10, 100)  # how many times smaller planted constants are
CLOSE = 1e-6  # by how much a share must exceed another to be called larger


def planted(claim: Claim, factor: float = 1.0, without: str | None = None) -> Claim:
    """The claim with the constant of its right side multiplied by a factor, or without one of its terms.

    >>> import forgetting as fg
    >>> false = planted(fg.claims.get("lem:ratio_avg_last", "independent"), 0.8)
    >>> false.hunt(budget=20).outcome
    'refuted'
    """

    def fault(sides: Sides) -> Sides:
        rhs = sides.rhs if without is None else sides.without[without]
        return replace(sides, rhs=sides.shift + factor * (rhs - sides.shift))

    def faulty(compute: Check) -> Check:
        return lambda instance: fault(compute(instance))

    precise = None if claim.precise is None else faulty(claim.precise)
    return replace(claim, sides=faulty(claim.sides), precise=precise)


@dataclass(frozen=True)
class Noticed:
    """The faults that a hunt would have noticed.

    Attributes:
        reached: the share of the right side that the left side exceeded for sure: the constant is noticed if it is
            smaller than this share of itself. None where the right side has no constant.
        terms: for each term of the right side, whether a hunt without it finds a violation.
        where: on how many problems the right side, and each branch of a minimum, said anything; a sentence each.

    >>> print(Noticed(0.13, {"S/k": True, "2 E L": False}))
    a constant 10 times smaller, but not half of it; the absence of S/k, but not of 2 E L
    """

    reached: float | None
    terms: dict[str, bool] = field(default_factory=dict)
    where: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [] if self.reached is None else [_smaller(self.reached)]
        seen, missed = ([name for name, seen in self.terms.items() if seen is kind] for kind in (True, False))
        if seen:
            parts.append(
                f"the absence of {' or '.join(seen)}" + (f", but not of {' or '.join(missed)}" if missed else "")
            )
        elif missed:
            parts.append(f"not the absence of {' or '.join(missed)}")
        return "; ".join([*(parts or ["wrong dynamics; there is no constant"]), *self.where])


def _smaller(reached: float) -> str:
    """The largest constant that is noticed, in words, given the share of the right side that is reached."""
    if reached > 1 - CLOSE:
        return "any smaller constant"
    factor = next((factor for factor in FACTORS if reached > (1 + CLOSE) / factor), None)
    if factor is None:
        return "not even a constant 100 times smaller"
    if factor == FACTORS[0]:
        return f"a constant {percent_smaller(reached)} % smaller"
    before = FACTORS[FACTORS.index(factor) - 1]
    return f"a constant {factor} times smaller, but not {'half of it' if before == 2 else f'{before} times smaller'}"


def percent_smaller(reached: float) -> str:
    """By how many per cent a constant must be smaller to be noticed for sure: two digits, rounded up.

    >>> percent_smaller(0.9954), percent_smaller(0.5714), percent_smaller(0.99999)
    ('0.47', '43', '0.0011')
    """
    percent = Decimal(100 * (1 - reached) + 100 * CLOSE)
    unit = Decimal(1).scaleb(percent.adjusted() - 1)
    return f"{float(percent.quantize(unit, ROUND_CEILING)):g}"


def noticed(result: Hunt, hunt: Callable[[Claim], Hunt]) -> Noticed:
    """The faults that the hunt of a claim would have noticed; `hunt` hunts the claim without one of its terms.

    >>> import forgetting as fg
    >>> result = fg.claims.get("lem:regret_bound").hunt(budget=60)
    >>> noticed(result, lambda claim: claim.hunt(budget=60)).reached > 0.5
    True
    """
    claim = result.claim
    assert isinstance(claim, Claim)
    if result.instance is None or result.verdict is None:
        return Noticed(None)
    sides = claim.sides(result.instance)
    terms = {name: hunt(planted(claim, without=name)).outcome in ("refuted", "suspected") for name in sides.without}
    return Noticed(result.reach.share, terms, tuple(_where(result)))


def _where(result: Hunt) -> Iterator[str]:
    """The number of problems on which the right side was below the trivial value, and each branch the smallest."""
    reach, right = result.reach, None if result.verdict is None else result.verdict.right
    if right is None or reach.telling is None:
        return
    trivial = get_bound(f"trivial/{right.bound.quantity}").formula.partition(",")[0]
    if reach.telling == 0:
        first = right.telling_from
        until = f"at least {trivial}" + ("" if first is None else f" until k > {first - 1}")
        yield f"trivial on every problem hunted (the right side is {until})"
    elif reach.telling < reach.problems:
        yield (
            f"the right side is below {trivial} on {reach.telling} of {reach.problems} problems, where the left side "
            f"reaches {reach.share_telling:.2g} of it"
        )
    for name, branch in reach.branches.items():
        yield (
            f"of the {name} branch: {_smaller(branch.share)} (it is the minimum and below {trivial} on "
            f"{branch.binding} of {reach.problems} problems)"
        )
