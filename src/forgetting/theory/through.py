"""The claim through which the two sides of a bound are compared: that of its statement, or that of a related bound.

A branch of a minimum, a step of a proof or a bound of another paper has no claim of its own. A claim on the same
quantity under the same orderings computes its left side all the same, and the setting at which the bound is evaluated.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np

from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.theory.bound import Bound
from forgetting.theory.checking import all_of, covers
from forgetting.theory.claim import Check, Claim, Sides
from forgetting.theory.instance import Instance
from forgetting.theory.right_side import RightSide
from forgetting.theory.setting import describe_scheme
from forgetting.theory.statement import Statement, all_statements

__all__ = ["NO_RATIO", "claim_of", "why_no_ratio"]

PROBES = 12  # problems on which a claim is tried
NO_RATIO = {
    "equality": "an equality: its sides are compared by their difference",
    "rate": "its constants are not known, so that there is no right side to divide by",
    "lower": "a lower bound holds for the worst tasks only; bound.instance(T, k) gives tasks that reach it",
}


def why_no_ratio(statement: Bound | Claim) -> str | None:
    """Why there is no ratio of the left side to the right side, or None where there is one.

    >>> import forgetting as fg
    >>> why_no_ratio(fg.claims.get("eq:loss"))
    'an equality: its sides are compared by their difference'
    """
    if statement.kind in NO_RATIO:
        return NO_RATIO[statement.kind]
    if statement.kind == "inequality" or statement.kind == "equality":  # a claim, which has both sides
        return None
    return None if claim_of(statement) is not None else "no claim computes its left side"


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
    statements = all_statements()
    own = next((one.claim for one in statements if one.bound is bound), None)
    if own is not None:
        return own
    related = [one for one in statements if _related(bound, one)]
    best = max(related, key=lambda one: _closeness(bound, one), default=None)
    return None if best is None else _compared(bound, best)


def _related(bound: Bound, other: Statement) -> bool:
    if other.bound is None or other.claim is None or other.claim.kind != "inequality":
        return False
    known = other.bound
    shared = bool(set(bound.problems) & set(known.problems) and set(bound.schemes) & set(known.schemes))
    ordered = "any" in bound.orderings or set(known.orderings) <= _included(bound.orderings)
    same = known.quantity == bound.quantity and known.kind == "upper" and known.noisy == bound.noisy
    return shared and ordered and same and _says_where(other.claim)


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
    """The orderings that are covered where these are."""
    return {*orderings, *(("with replacement", "norm-weighted") if "i.i.d." in orderings else ())}


def _closeness(bound: Bound, other: Statement) -> tuple[bool, bool, bool, bool]:
    """Statements of the same label first, then those with the same orderings, for any tasks, from early k on."""
    assert other.bound is not None
    known = other.bound
    early = known.range.first in (1, 2)
    return other.label == bound.label, known.orderings == bound.orderings, not known.conditions, early


def _compared(bound: Bound, other: Statement) -> Claim:
    """The claim of another bound, with this bound on its right side."""
    claim = other.claim
    assert claim is not None

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
