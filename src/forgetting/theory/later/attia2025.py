"""Attia et al. 2025: the last iterate of SGD at the greedy step, with and without replacement."""

from __future__ import annotations

from forgetting.theory.bound import Bound, Quantity, Range
from forgetting.theory.expression import K, S, root
from forgetting.theory.statement import register_bound


def _bound(name: str, quantity: Quantity, covered: Range) -> Bound:
    return Bound(
        key=f"attia2025:{name}/{quantity}",
        title="last iterate at the greedy step",
        source="Attia et al. 2025",
        quantity=quantity,
        orderings=(f"{name} replacement",),
        range=covered,
        status="second-hand",
        expression=6.5 * S / root(K),
        note="O(1/sqrt(k)) is theirs; the constant in this convention is second-hand.",
    )


register_bound(_bound("with", "loss", Range(1)))
register_bound(_bound("with", "forgetting", Range(1)))
register_bound(_bound("without", "loss", Range(1, "T")))
register_bound(_bound("without", "forgetting", Range(1, "T")))
