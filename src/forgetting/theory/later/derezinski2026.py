"""Derezinski and Dong 2026: smooth quadratics under interpolation."""

from __future__ import annotations

from forgetting.theory.bound import Bound
from forgetting.theory.expression import K, S, number
from forgetting.theory.statement import register_bound

register_bound(
    Bound(
        key="derezinski2026:random/loss",
        title="smooth quadratics under interpolation, greedy step",
        source="Derezinski and Dong 2026",
        quantity="loss",
        orderings=("with replacement",),
        kind="rate",
        status="rate only",
        expression=S / K ** (number(3) / 4),
    )
)
