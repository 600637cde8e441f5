"""Sets given by bounds on one linear function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_number, real_array
from forgetting.errors import InvalidInputError
from forgetting.sets.base import ConvexSet, as_point, check_near, register

__all__ = ["Halfspace", "Slab"]


def _normal(a: Any) -> tuple[Array, Array, float]:
    """The vector, its direction and its norm; the zero vector is refused."""
    normal = as_point(real_array(a, "a"), "a")
    largest = float(np.max(np.abs(normal)))
    if largest == 0.0:
        raise InvalidInputError("a is zero, so that a.w is 0 for every w; leave the set out, or there is no solution")
    scaled = normal / largest  # first by the largest entry: squares must not overflow
    norm = float(np.linalg.norm(scaled))
    return normal, scaled / norm, largest * norm


@register
class Halfspace(ConvexSet):
    """{w: a.w >= b}, with project(w) = w + (b - a.w)_+ a / |a|^2. Cost O(d).

    >>> Halfspace([0.0, 2.0], 2.0).project([5, 0]), Halfspace([0.0, 2.0], 2.0).distance([5, 3])
    (array([5., 1.]), 0.0)
    """

    parts = ("a", "b")
    shown = ("b",)
    a: Array
    b: float
    _unit: Array
    _level: float

    def __init__(self, a: Any, b: float) -> None:
        normal, unit, norm = _normal(a)
        level = as_number(b, "b")
        check_near(level / norm, "the halfspace")
        self._freeze(dim=len(normal), a=normal, b=level, _unit=unit, _level=level / norm)

    def nearest(self, w: Array) -> Array:
        return w + max(0.0, self._level - float(self._unit @ w)) * self._unit

    def inequalities(self) -> tuple[Array, Array]:
        return self.a[None], np.array([self.b])

    def rebuilt(self, change: Callable[[Array], Array], common: Array) -> Halfspace:
        normal = change(self.a)
        return Halfspace(normal, min(self.b, float(normal @ common)))


@register
class Slab(ConvexSet):
    """{w: lo <= a.w <= hi}: between two parallel hyperplanes (or on one, if lo = hi). Cost O(d).

    >>> Slab([1.0, 0.0], -1.0, 1.0).project([3, 2])
    array([1., 2.])
    >>> Slab([1.0, 0.0], 1.0, -1.0)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: the slab is empty: lo = 1 is above hi = -1
    """

    parts = ("a", "lo", "hi")
    shown = ("lo", "hi")
    a: Array
    lo: float
    hi: float
    _unit: Array
    _norm: float

    def __init__(self, a: Any, lo: float, hi: float) -> None:
        normal, unit, norm = _normal(a)
        low, high = as_number(lo, "lo"), as_number(hi, "hi")
        if low > high:
            raise InvalidInputError(f"the slab is empty: lo = {low:g} is above hi = {high:g}")
        check_near(max(low, -high) / norm, "the slab")
        self._freeze(dim=len(normal), a=normal, lo=low, hi=high, _unit=unit, _norm=norm)

    def nearest(self, w: Array) -> Array:
        level = float(self._unit @ w)
        return w + (min(max(level, self.lo / self._norm), self.hi / self._norm) - level) * self._unit

    def inequalities(self) -> tuple[Array, Array]:
        return np.stack([self.a, -self.a]), np.array([self.lo, -self.hi])
