"""Tsipory et al. 2025: greedy orderings, in one pass and with repetition."""

from __future__ import annotations

from forgetting.tasks import families
from forgetting.theory.bound import Condition
from forgetting.theory.expression import DIM, K, S, number, root
from forgetting.theory.later.published_rates import HALVED, ROOM, WORST
from forgetting.theory.setting import known
from forgetting.theory.statement import Bound, register_bound

register_bound(
    Bound(
        key="tsipory2025:single-pass/loss/lower",
        title="greedy single pass can fail",
        source="Tsipory et al. 2025",
        quantity="loss",
        orderings=("greedy single pass",),
        kind="lower",
        expression=(number(1) / 16 - 1 / (8 * DIM)) * S,
        needs=("T",),
        conditions=(
            Condition(lambda s, k: known(s.d) >= 30, "is for d >= 30"),
            Condition(
                lambda s, k: known(s.T) == known(s.d) - 1 == k, "is for a whole pass over T = d - 1 tasks, k = T"
            ),
            ROOM,
        ),
        convention=f"{HALVED}; {WORST}",
        note="Reached with room to spare by families.greedy_failure(d), by both greedy rules.",
        instance=lambda tasks, k: families.greedy_failure(tasks + 1),
    )
)
register_bound(
    Bound(
        key="tsipory2025:repeated/loss",
        title="greedy with repetition",
        source="Tsipory et al. 2025",
        quantity="loss",
        orderings=("greedy",),
        kind="rate",
        status="rate only",
        expression=S / root(K, 3),
    )
)
