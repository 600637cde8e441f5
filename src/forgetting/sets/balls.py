"""Round sets: balls and second-order cones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number, real_array
from forgetting.errors import InvalidInputError
from forgetting.sets.base import ConvexSet, as_point, register

__all__ = ["Ball", "SecondOrderCone"]


@register
class Ball(ConvexSet):
    """{w: |w - c| <= r}, with project(w) = c + (w - c) min(1, r / |w - c|). Cost O(d).

    >>> Ball([0.0, 0.0], 1.0).project([3, 4])
    array([0.6, 0.8])
    >>> Ball([0.0], -1.0)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: the ball is empty: radius must be at least 0, got -1.0
    """

    parts = ("center", "radius")
    shown = ("radius",)
    center: Array
    radius: float

    def __init__(self, center: Any, radius: float) -> None:
        middle = as_point(real_array(center, "center", squares=True), "center")
        size = as_number(radius, "radius")
        if size < 0:
            raise InvalidInputError(f"the ball is empty: radius must be at least 0, got {radius!r}")
        self._freeze(dim=len(middle), center=middle, radius=size)

    def nearest(self, w: Array) -> Array:
        offset = w - self.center
        length = float(np.linalg.norm(offset))
        return w.copy() if length <= self.radius else self.center + (self.radius / length) * offset

    def reach(self, w: Array) -> float:
        return float(np.linalg.norm(w - self.center)) + self.radius

    def rebuilt(self, change: Callable[[Array], Array], common: Array) -> Ball:
        center = change(self.center)
        return Ball(center, max(self.radius, float(np.linalg.norm(center - common))))


@register
class SecondOrderCone(ConvexSet):
    """{(x, t): |x| <= t}: the last coordinate bounds the norm of the others. Cost O(d).

    project(x, t) is (x, t) if |x| <= t, 0 if |x| <= -t, and (|x| + t)/2 (x/|x|, 1) otherwise
    (Parikh and Boyd, Proximal Algorithms, 2014, section 6.3.2).

    >>> SecondOrderCone(3).project([3, 4, 0]), SecondOrderCone(3).project([1, 0, -2])
    (array([1.5, 2. , 2.5]), array([0., 0., 0.]))
    """

    parts = ("dim",)

    def __init__(self, dim: int) -> None:
        self._freeze(dim=as_count(dim, "dim", least=2))

    def nearest(self, w: Array) -> Array:
        scale = float(np.max(np.abs(w))) or 1.0  # squares must not overflow
        across, height = w[:-1] / scale, float(w[-1]) / scale
        length = float(np.linalg.norm(across))
        if length <= height:
            return w.copy()
        if length <= -height:
            return np.zeros_like(w)
        half = (length + height) / 2
        return np.append((half / length) * across, half) * scale
