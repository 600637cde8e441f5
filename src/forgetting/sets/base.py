"""The base class of convex sets, and the registry of the classes of convex sets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from forgetting.core.arrays import Array, as_number, as_vector
from forgetting.core.numerical import SQUARED
from forgetting.core.registry import Registry, class_decorator
from forgetting.errors import InvalidInputError

__all__ = ["ConvexSet", "UnitRows", "as_point", "check_near", "register", "registry"]

registry: Registry[type[ConvexSet]] = Registry("convex set")
register: Callable[[type], type] = class_decorator(registry, lambda: ConvexSet)


def as_point(values: Array, what: str) -> Array:
    """A copy of a vector of at least one number, for a set to keep.

    >>> as_point(np.zeros((2, 2)), "center")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: center: expected a vector, got shape (2, 2)
    """
    if values.ndim != 1 or values.size == 0:
        raise InvalidInputError(f"{what}: expected a vector, got shape {values.shape}")
    return np.array(values)


def check_near(distance: float, what: str) -> None:
    """Raise if a set is so far from 0 that squared distances overflow.

    >>> check_near(1e200, "the simplex")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: the simplex is at a distance of 1e+200 from 0, whose square overflows; ...
    """
    if not distance < SQUARED**0.5:
        raise InvalidInputError(f"{what} is at a distance of {distance:g} from 0, whose square overflows; rescale it")


class UnitRows(NamedTuple):
    """The set {w: rows w >= levels} with rows of norm 1, their norms before, and their inner products.

    >>> from forgetting.sets import Polyhedron
    >>> Polyhedron([[3.0, 4.0]], [10.0]).unit_rows()
    UnitRows(rows=array([[0.6, 0.8]]), levels=array([2.]), lengths=array([5.]), gram=array([[1.]]))
    """

    rows: Array
    levels: Array
    lengths: Array
    gram: Array


class ConvexSet(ABC):
    """Base class of closed convex sets: implement `nearest`, and set `dim` with `_freeze` in `__init__`.

    Sets do not change once made. A class that knows more may override `inequalities`, `reach` and `nearest_from`.
    `@fg.sets.register` lists a class in `fg.sets.registry`, also if another package defines the class; a registered
    class with `parts` is saved and loaded by its name. `fg.checks.check_convex_set` checks a set.

    >>> class Diagonal(ConvexSet):
    ...     def __init__(self):
    ...         self._freeze(dim=2)
    ...     def nearest(self, w):
    ...         return np.full(2, w.mean())
    >>> Diagonal(), Diagonal().project([1, 3]), round(Diagonal().distance([1, 3]), 6), Diagonal().contains([2, 2])
    (Diagonal(d=2), array([2., 2.]), 1.414214, True)
    """

    dim: int
    #: the names of the arguments of the constructor; a file holds the attributes of these names that are not None
    parts: ClassVar[tuple[str, ...]] = ()
    #: the names of the numbers that `repr` shows beside the dimension
    shown: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def nearest(self, w: Array) -> Array:
        """The projection of a trusted float64 vector, as a new array."""

    def project(self, w: Any) -> Array:
        """The point of the set nearest to w."""
        return self.nearest(as_vector(w, self.dim, "w"))

    def distance(self, w: Any) -> float:
        """|w - project(w)|."""
        point = as_vector(w, self.dim, "w")
        return float(np.linalg.norm(point - self.nearest(point)))

    def contains(self, w: Any, tol: float = 1e-9) -> bool:
        """Whether the distance to w is at most `tol`."""
        return self.distance(w) <= as_number(tol, "tol", least=0)

    def nearest_from(self, w: Array, warm: Any) -> tuple[Array, Any, int]:
        """(point, start, steps): the projection, a start for the next projection onto this set, and the inner steps.

        `warm` is the start that the last projection gave, or None. The point may be w itself if w is in the set.
        """
        return self.nearest(w), None, 1

    def inequalities(self) -> tuple[Array, Array] | None:
        """(A, b) with the set equal to {w: A w >= b}, or None if it is not a polyhedron."""
        return None

    def unit_rows(self) -> UnitRows | None:
        """The inequalities for compiled projections in place of `nearest_from`; None if that makes all projections."""
        return None

    def equations(self) -> tuple[Array, Array] | None:
        """(U, c) with orthonormal rows U and the set equal to {w: U w = c}, or None if the set is not affine."""
        return None

    def with_dim(self, dim: int) -> ConvexSet:
        """The set with its dimension filled in, for sets that may be made without one; else the set itself."""
        return self

    def rebuilt(self, change: Callable[[Array], Array], common: Array) -> ConvexSet:
        """A set of the same kind that holds `common`, with the other numbers changed; by default the set itself."""
        return self

    def reach(self, w: Array) -> float:
        """An upper bound on |w - x| over all points x of the set; infinite for unbounded sets."""
        return float("inf")

    def _freeze(self, **values: Any) -> None:
        for value in values.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
        self.__dict__.update(values)

    def __getstate__(self) -> tuple[dict[str, Any], list[str]]:
        """The values that define the set, without what can be computed again, and the names of read-only arrays."""
        computed = {
            name for kind in type(self).__mro__ for name, v in vars(kind).items() if isinstance(v, cached_property)
        }
        state = {name: value for name, value in self.__dict__.items() if name not in computed}
        sealed = [n for n, value in state.items() if isinstance(value, np.ndarray) and not value.flags.writeable]
        return state, sealed

    def __setstate__(self, state: tuple[dict[str, Any], list[str]]) -> None:
        self.__dict__.update(state[0])
        for name in state[1]:
            self.__dict__[name].setflags(write=False)

    def __repr__(self) -> str:
        numbers = "".join(f", {name}={getattr(self, name):g}" for name in self.shown)
        return f"{type(self).__name__}(d={self.dim}{numbers})"

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} does not change once made; make another one")
