"""Balls and second-order cones; boxes and simplices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number, numbers, real_array
from forgetting.errors import InvalidInputError
from forgetting.sets.base import ConvexSet, as_point, check_near, register

__all__ = ["Ball", "Box", "SecondOrderCone", "Simplex"]


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


@register
class Box(ConvexSet):
    """{w: lo <= w <= hi}, coordinate by coordinate; infinite bounds leave a coordinate free. Cost O(d).

    >>> Box([0.0, 0.0], [1.0, np.inf]).project([2, -3])
    array([1., 0.])
    >>> Box([0.0, 2.0], [1.0, 1.0])
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: the box is empty: lo[1] = 2 is above hi[1] = 1
    """

    parts = ("lo", "hi")
    lo: Array
    hi: Array

    def __init__(self, lo: Any, hi: Any) -> None:
        low, high = _bounds(lo, "lo"), _bounds(hi, "hi")
        if low.shape != high.shape:
            raise InvalidInputError(f"lo has shape {low.shape}, but hi has shape {high.shape}")
        bad = np.flatnonzero((low > high) | (low == np.inf) | (high == -np.inf))
        if bad.size:
            i = int(bad[0])
            odd = "is above" if low[i] > high[i] else "leaves no finite number below"
            raise InvalidInputError(f"the box is empty: lo[{i}] = {low[i]:g} {odd} hi[{i}] = {high[i]:g}")
        check_near(float(np.max(np.maximum(low, -high))) * len(low) ** 0.5, "the box")
        self._freeze(dim=len(low), lo=low, hi=high)

    def nearest(self, w: Array) -> Array:
        return np.minimum(np.maximum(w, self.lo), self.hi)

    def inequalities(self) -> tuple[Array, Array]:
        eye = np.eye(self.dim)
        below, above = np.isfinite(self.lo), np.isfinite(self.hi)
        return np.concatenate([eye[below], -eye[above]]), np.concatenate([self.lo[below], -self.hi[above]])

    def reach(self, w: Array) -> float:
        return float(np.linalg.norm(np.maximum(np.abs(self.lo - w), np.abs(self.hi - w))))


def _bounds(value: Any, what: str) -> Array:
    bounds = as_point(numbers(value, what), what)
    if np.isnan(bounds).any():
        raise InvalidInputError(
            f"{what}: entry {int(np.argmax(np.isnan(bounds)))} is nan; use -inf or inf for no bound"
        )
    return bounds


@register
class Simplex(ConvexSet):
    """{w: w >= 0, sum w = total}, with project(w) = (w - theta)_+ and theta found by sorting. Cost O(d log d).

    The formula is that of Held, Wolfe and Crowder (Math. Programming 6, 1974).

    >>> Simplex(3).project([1, 1, -5])
    array([0.5, 0.5, 0. ])
    """

    parts = ("dim", "total")
    shown = ("total",)
    total: float

    def __init__(self, dim: int, total: float = 1.0) -> None:
        size = as_number(total, "total", above=0)
        check_near(size, "the simplex")
        self._freeze(dim=as_count(dim, "dim", least=1), total=size)

    def nearest(self, w: Array) -> Array:
        # measured from the largest coordinate, so that a large common shift costs no digits
        shifted = w - w.max()
        falling = np.sort(shifted)[::-1]
        excess = np.cumsum(falling) - self.total
        count = np.arange(1, self.dim + 1)
        last = int(np.flatnonzero(falling * count > excess)[-1])
        return np.asarray(np.maximum(shifted - excess[last] / (last + 1), 0.0))

    def inequalities(self) -> tuple[Array, Array]:
        ones = np.ones((1, self.dim))
        return np.concatenate([np.eye(self.dim), ones, -ones]), np.append(np.zeros(self.dim), [self.total, -self.total])

    def reach(self, w: Array) -> float:
        return float(np.linalg.norm(w)) + self.total
