"""Swartworth et al. 2023: cyclic orderings without the dimension."""

from __future__ import annotations

from forgetting.theory.bound import Bound
from forgetting.theory.expression import K, S, T
from forgetting.theory.statement import register_bound

register_bound(
    Bound(
        key="swartworth2023:cyclic/forgetting",
        title="cyclic ordering, dimension-free",
        source="Swartworth et al. 2023",
        quantity="forgetting",
        orderings=("cyclic",),
        kind="rate",
        status="rate only",
        expression=T**3 * S / K,
    )
)
