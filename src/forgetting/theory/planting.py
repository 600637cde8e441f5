"""What a hunt would notice: a statement with a fault planted in its right side, hunted like the statement itself.

A statement that holds on every problem of a hunt may hold with room to spare. The largest ratio of its sides says how
much smaller a constant would have been noticed; a term that matters nowhere is found by hunting without the term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from forgetting.theory.claim import Check, Claim, Sides
from forgetting.theory.hunt import Hunt

__all__ = ["FACTORS", "Noticed", "noticed", "planted"]

FACTORS = (2, 10, 100)  # how many times smaller planted constants are


def planted(claim: Claim, factor: float = 1.0, without: str | None = None) -> Claim:
    """The claim with the constant of its right side multiplied by a factor, or without one of its terms.

    >>> import forgetting as fg
    >>> false = planted(fg.claims.get("lem:in_to_all_sample", "loss, with replacement"), without="S/k")
    >>> false.hunt(budget=150).outcome
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
    """What a hunt would have noticed.

    Attributes:
        reached: the share of the right side that the left side reached: a constant is noticed if it is smaller by more
            than this factor. None where the right side has no constant.
        terms: for each term of the right side, whether a hunt without it finds a violation.

    >>> print(Noticed(0.13, {"S/k": True, "2 E L": False}))
    a constant 10 times smaller, but not half of it; the absence of S/k, but not of 2 E L
    """

    reached: float | None
    terms: dict[str, bool] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [] if self.reached is None else [self._constant]
        seen, missed = ([name for name, found in self.terms.items() if found is kind] for kind in (True, False))
        if seen:
            parts.append(
                f"the absence of {' or '.join(seen)}" + (f", but not of {' or '.join(missed)}" if missed else "")
            )
        elif missed:
            parts.append(f"not the absence of {' or '.join(missed)}")
        return "; ".join(parts) or "wrong dynamics; there is no constant"

    @property
    def _constant(self) -> str:
        assert self.reached is not None
        if self.reached > 0.99:
            return "any smaller constant"
        words = {2: "half the constant", 10: "a constant 10 times smaller", 100: "a constant 100 times smaller"}
        small = next((factor for factor in FACTORS if self.reached > 1 / factor), None)
        if small is None:
            return "not even a constant 100 times smaller"
        if small == FACTORS[0]:
            return f"{words[small]} (below {self.reached:.2g} of it)"
        before = FACTORS[FACTORS.index(small) - 1]
        return f"{words[small]}, but not {'half of it' if before == 2 else f'{before} times smaller'}"


def noticed(found: Hunt, hunt: Callable[[Claim], Hunt]) -> Noticed:
    """What the hunt of a claim would have noticed; `hunt` hunts the claim without one of its terms.

    >>> import forgetting as fg
    >>> found = fg.claims.get("lem:regret_bound").hunt(budget=60)
    >>> noticed(found, lambda claim: claim.hunt(budget=60)).reached > 0.5
    True
    """
    claim = found.claim
    if found.instance is None or found.verdict is None:
        return Noticed(None)
    sides = claim.sides(found.instance)
    terms = {name: hunt(planted(claim, without=name)).outcome in ("refuted", "suspected") for name in sides.without}
    if claim.kind == "equality" or sides.rhs == sides.shift:
        constant = claim.kind == "equality" and not planted(claim, 0.99).check(found.instance).holds
        return Noticed(1.0 if constant else None, terms)
    reached = (float(sides.lhs) - sides.shift) / (float(sides.rhs) - sides.shift)
    return Noticed(max(reached, 0.0), terms)
