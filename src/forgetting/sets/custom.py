"""A user's own set, given by its projection, and the check that a projection is one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, Seed, as_count, as_kind, as_number, real_array, seed_from
from forgetting.core.numerical import SQUARED
from forgetting.errors import InvalidInputError
from forgetting.sets.base import ConvexSet, register

__all__ = ["CustomSet", "ProjectionCheckError", "check_convex_set"]


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


class ProjectionCheckError(AssertionError):
    """The error if a function is not the projection onto a closed convex set.

    `failed` names the property that fails, and `witnesses` holds the points that show the failure.

    >>> ProjectionCheckError("no", failed="idempotent", witnesses=(np.zeros(1),)).failed
    'idempotent'
    """

    def __init__(self, message: str, *, failed: str, witnesses: tuple[Array, ...]) -> None:
        super().__init__(message)
        self.failed = failed
        self.witnesses = witnesses


def check_convex_set(
    convex_set: ConvexSet,
    dim: int | None = None,
    *,
    points: Any = None,
    trials: int = 100,
    seed: Seed = 0,
    tol: float = 1e-8,
) -> None:
    """Raise `ProjectionCheckError` unless `convex_set.project` behaves like a projection onto a closed convex set.

    For random points x, y at scales from 0.1 to 100, near the set and in `points` (rows), with tolerance
    tol (1 + |x| + |y|)^2 on inner products and tol (1 + |x| + |y|) on lengths:

    - pure: P leaves x as it is and gives the same answer twice;
    - idempotent: P(P(x)) = P(x);
    - obtuse-angle: (x - P(x)).(P(y) - P(x)) <= 0, which together with idempotence makes P the projection onto a convex
      set (Zarantonello 1971);
    - nonexpansive: |P(x) - P(y)| <= |x - y|;
    - consistent: distance(x) = |x - P(x)|, and contains(P(x)).

    A set that passes is right at these points, which is no proof. Cost: about 5 trials projections.

    >>> from forgetting.sets import Ball
    >>> check_convex_set(Ball([0.0, 0.0], 1.0))
    >>> check_convex_set(CustomSet(lambda w: w / np.linalg.norm(w), dim=2))  # a sphere is not convex
    Traceback (most recent call last):
    forgetting.sets.custom.ProjectionCheckError: ... is not obtuse-angle: ...
    """
    as_kind(convex_set, ConvexSet, "a set such as fg.CustomSet(project, dim)")
    if dim is not None and isinstance(convex_set, CustomSet):
        convex_set = convex_set.with_dim(as_count(dim, "dim", least=1))
    tol = as_number(tol, "tol", above=0)
    samples = _samples(convex_set, points, as_count(trials, "trials", least=2), seed)
    images = []
    for x in samples:
        before = x.copy()
        image = convex_set.project(x)
        size = tol * (1 + float(np.linalg.norm(x)))
        if not np.array_equal(x, before):
            _fail(convex_set, "pure", "project changed its argument", before)
        _within(convex_set, "pure", "|second P(x) - P(x)|", image, convex_set.project(x), size, x)
        _within(convex_set, "idempotent", "|P(P(x)) - P(x)|", image, convex_set.project(image), size, x)
        gap = abs(convex_set.distance(x) - float(np.linalg.norm(x - image)))
        if gap > size:
            _fail(convex_set, "consistent", f"distance(x) and |x - P(x)| differ by {gap:.2g}", x)
        if not convex_set.contains(image, tol=size):
            _fail(convex_set, "consistent", "contains(P(x)) is False", x)
        images.append(image)
    for i, j in _pairs(len(samples)):
        x, y, px, py = samples[i], samples[j], images[i], images[j]
        angle = float((x - px) @ (py - px))
        if angle > tol * (1 + float(np.linalg.norm(x)) + float(np.linalg.norm(y))) ** 2:
            _fail(convex_set, "obtuse-angle", f"(x - P(x)).(P(y) - P(x)) = {angle:.3g}, must be at most 0", x, y)
    for i, j in _pairs(len(samples)):
        x, y, px, py = samples[i], samples[j], images[i], images[j]
        size = 1 + float(np.linalg.norm(x)) + float(np.linalg.norm(y))
        stretch = float(np.linalg.norm(px - py) - np.linalg.norm(x - y))
        if stretch > tol * size:
            _fail(convex_set, "nonexpansive", f"|P(x) - P(y)| exceeds |x - y| by {stretch:.3g}", x, y)


def _samples(convex_set: ConvexSet, points: Any, trials: int, seed: Seed) -> list[Array]:
    """Random points at several scales, some of them pushed out from the set, and the user's own."""
    rng = np.random.default_rng(seed_from(seed))
    scales = np.geomspace(0.1, 100, trials)
    samples = list(rng.standard_normal((trials, convex_set.dim)) * scales[:, None])
    for index in range(0, trials, 2):
        image = convex_set.project(samples[index])
        samples[index] = image + scales[trials - 1 - index] / 100 * rng.standard_normal(convex_set.dim)
    if points is not None:
        samples.extend(np.array(np.atleast_2d(real_array(points, "points", squares=True))))
    return samples


def _pairs(count: int) -> list[tuple[int, int]]:
    """Each point with a few others, near and far in the list."""
    return [(i, (i + step) % count) for step in (1, 2, 5, count // 2) for i in range(count) if step % count]


def _within(convex_set: ConvexSet, failed: str, what: str, a: Array, b: Array, allowed: float, x: Array) -> None:
    gap = float(np.linalg.norm(a - b))
    if gap > allowed:
        _fail(convex_set, failed, f"{what} = {gap:.3g}", x)


def _fail(convex_set: ConvexSet, failed: str, detail: str, *witnesses: Array) -> None:
    shown = "; ".join(
        f"{name} = {np.array2string(point, threshold=8, precision=6)}"
        for name, point in zip(("x", "y"), witnesses, strict=False)
    )
    raise ProjectionCheckError(
        f"the projection of {convex_set} is not {failed}: {detail}, at {shown}", failed=failed, witnesses=witnesses
    )
