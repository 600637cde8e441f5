"""Evron et al. 2022: the first rates for continual regression, random and cyclic."""

from __future__ import annotations

import math

from forgetting.tasks import families
from forgetting.theory.bound import Bound, Condition, Origin, Range
from forgetting.theory.expression import (
    DIM,
    JOINT,
    RANK,
    RANK_MAX,
    E,
    Expression,
    K,
    S,
    T,
    gap,
    left_after,
    minimum,
    number,
    root,
)
from forgetting.theory.setting import known
from forgetting.theory.statement import register_bound

__all__ = ["HALVED", "ROOM", "WORST"]

CYCLIC = ("cyclic",)
HALVED = "the source has no factor 1/2; its number was halved"
WORST = "worst case over tasks, not a bound on given tasks"
ROOM = Condition(
    lambda s, k: s.d is None or (s.d >= 2 and (s.rank_max or 0) < s.d),
    "needs d >= 2 and no task of full rank d, so that two tasks can be lines in a plane",
)
SOURCE = "Evron et al. 2022"
JOINT_TITLE, JOINT_NOTE = ", joint rank for dimension", "D is the rank of all tasks together."


def _random(variant: str, dim: Expression, title: str = "", origin: Origin = "statement", note: str = "") -> Bound:
    return Bound(
        key=f"evron2022:random/forgetting{variant}",
        title=f"random ordering, linear in the dimension{title}",
        source=SOURCE,
        quantity="forgetting",
        orderings=("with replacement",),
        expression=9 * gap(dim, RANK) * S / (2 * K),
        convention=HALVED,
        origin=origin,
        note=note,
    )


def _cyclic(variant: str, right: Expression, title: str, origin: Origin = "statement", note: str = "") -> Bound:
    return Bound(
        key=f"evron2022:cyclic/forgetting{variant}",
        title=f"cyclic ordering{title}",
        source=SOURCE,
        quantity="forgetting",
        orderings=CYCLIC,
        range=Range(1, every="T"),
        expression=right,
        convention=HALVED,
        origin=origin,
        note=note,
    )


def _both_branches(dim: Expression) -> Expression:
    return T**2 * S / 2 * minimum(1 / root(K), gap(dim, RANK_MAX) / (2 * K))


register_bound(_random("", DIM))
register_bound(_random("/D", JOINT, JOINT_TITLE, "tightened", JOINT_NOTE))
register_bound(_cyclic("/universal", T**2 * S / (2 * root(K)), ", universal branch", "branch"))
register_bound(_cyclic("", _both_branches(DIM), ""))
register_bound(_cyclic("/D", _both_branches(JOINT), JOINT_TITLE, "tightened", JOINT_NOTE))
register_bound(
    Bound(
        key="evron2022:alternating/forgetting",
        title="two tasks in turn: the exact worst case",
        source=f"{SOURCE}, Theorem 10",
        quantity="forgetting",
        orderings=CYCLIC,
        expression=S / (4 * K) * left_after(number(1) / K, K - 1),
        range=Range(2),
        needs=("T",),
        conditions=(Condition(lambda s, k: s.T == 2, "is for T = 2"),),
        convention=HALVED,
        note="Reached by two lines with w* on the first and sin^2(theta) = 1/k, at even k.",
        tight=True,
    )
)
register_bound(
    Bound(
        key="evron2022:cyclic/forgetting/lower",
        title="cyclic ordering, back and forth",
        source=f"{SOURCE}, Theorem 11",
        quantity="forgetting",
        orderings=CYCLIC,
        kind="lower",
        expression=T**2 * S / (48 * E * K),
        range=Range("T^2", every="T"),
        conditions=(Condition(lambda s, k: known(s.T) % 2 == 0, "is for even T"), ROOM),
        convention=f"{HALVED}; {WORST}",
        note="Reached with room to spare by families.back_and_forth(T, 1/sqrt(k-1)); the range k >= T^2 is a cautious "
        "one.",
        instance=lambda tasks, k: families.back_and_forth(tasks, 1 / math.sqrt(k - 1)),
    )
)
