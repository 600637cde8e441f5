"""A user's own set, given by its projection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import SQUARED, Array, as_count
from forgetting.errors import InvalidInputError
from forgetting.sets.base import ConvexSet, register

__all__ = ["CustomSet"]


@register
class CustomSet(ConvexSet):
    """The set whose projection is the given function; check the set once with `fg.checks.check_convex_set`.

    `dim` may be left out in a collection in which another set has a dimension. Every point that the function returns is
    checked for its shape and for NaN.

    >>> nonnegative = CustomSet(lambda w: np.maximum(w, 0), dim=2)
    >>> nonnegative.project([-1, 2])
    array([0., 2.])
    """

    function: Callable[[Array], Any]

    def __init__(self, project: Callable[[Array], Any], dim: int | None = None) -> None:
        if not callable(project):
            raise InvalidInputError(f"project must be a function of w, got {project!r}")
        self._freeze(function=project, **({} if dim is None else {"dim": as_count(dim, "dim", least=1)}))

    def __getattr__(self, name: str) -> Any:
        if name == "dim":
            raise InvalidInputError("this CustomSet does not know its dimension; give dim=")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def with_dim(self, dim: int) -> CustomSet:
        return self if "dim" in self.__dict__ else CustomSet(self.function, dim)

    def nearest(self, w: Array) -> Array:
        given = np.asarray(self.function(w.copy()))
        if given.dtype.kind not in "biuf":
            raise InvalidInputError(f"the projection of a CustomSet returned {given.dtype}, expected real numbers")
        point = np.array(given, dtype=np.float64)
        if point.shape != w.shape:
            raise InvalidInputError(f"the projection of a CustomSet returned shape {point.shape}, expected {w.shape}")
        if not np.vdot(point, point) < SQUARED:
            worst = point[np.argmax(np.nan_to_num(np.abs(point), nan=np.inf))]
            raise InvalidInputError(f"the projection of a CustomSet returned {worst}, whose square is not finite")
        return point

    def __repr__(self) -> str:
        return f"CustomSet(d={self.__dict__.get('dim', '?')})"
