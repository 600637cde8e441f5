"""The paper's reduction of classification to projections: the computed distance of the scheme from its limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, Seed, as_count, as_kind, real_array
from forgetting.core.names import only
from forgetting.dynamics.loop import run
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings import Explicit
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.schemes import POCS, WeaklyRegularized
from forgetting.tasks import ClassificationTasks

__all__ = ["DirectionCurve", "angle_between", "classification_to_pocs"]
__dir__ = only(__all__)


def angle_between(u: Any, v: Any) -> float:
    """The angle between two vectors in radians, accurate for small angles too (Kahan); NaN if a vector is 0.

    >>> round(angle_between([1.0, 0.0], [1.0, 1e-12]) * 1e12, 6)
    1.0
    """
    a = real_array(u, "u", squares=True)
    b = real_array(v, "v", shape=a.shape, squares=True)
    sizes = float(np.linalg.norm(a)), float(np.linalg.norm(b))
    if not min(sizes) > 0:
        return float("nan")
    a, b = a / sizes[0], b / sizes[1]
    return 2 * float(np.arctan2(np.linalg.norm(a - b), np.linalg.norm(a + b)))


@dataclass(frozen=True, eq=False)
class DirectionCurve:
    """The iterates of weakly regularised classification compared with those of projections (`POCS`).

    Attributes:
        log_lambdas: (m,) the values of log(lambda).
        order: (k,) the tasks learned, the same for each lambda.
        angles: (m, k) the angle in radians between w_t and the iterate of `POCS`, for t = 1..k.
        gaps: (m, k) |w_t / log(1/lambda) - iterate of `POCS`|; NaN at lambda = 1.
        repeats: (k,) whether the task was also learned in the step before.
        inner_steps: (m, k) Newton steps.
        complaints: the steps that did not converge.
    """

    log_lambdas: Array
    order: IntArray
    angles: Array
    gaps: Array
    repeats: Any
    inner_steps: IntArray
    complaints: tuple[str, ...]

    @property
    def levels(self) -> Array:
        """L = log(1/lambda)."""
        return -self.log_lambdas


def classification_to_pocs(
    tasks: ClassificationTasks, ordering: OrderingLike, k: int, log_lambdas: Sequence[float], seed: Seed = 0
) -> DirectionCurve:
    """Compare `WeaklyRegularized` at each lambda with its limit `POCS`, from w_0 = 0 (`reduc:classification_to_pocs`).

    With L = log(1/lambda) and the multipliers mu of a projection, margins end at L - log(L mu) instead of L. The term
    log L is the same for all active rows and only scales the iterate, so that the angle falls like 1/L. If a task is
    learned twice in a row, the second time raises the margins of the active rows by log L, while a second projection
    does not move: from there on the angle falls like (log L)/L.

    >>> import forgetting as fg
    >>> tasks = fg.families.separable(T=3, d=6, n=4, margin=0.3, seed=1)
    >>> curve = classification_to_pocs(tasks, fg.orderings.Cyclic(), k=3, log_lambdas=[-100.0, -1000.0, -10000.0])
    >>> falls = curve.angles[:-1, 1:] / curve.angles[1:, 1:]
    >>> bool((falls > 8).all() and (falls < 12).all())
    True
    """
    as_kind(tasks, ClassificationTasks, "ClassificationTasks")
    k = as_count(k, "k")
    given = real_array(log_lambdas, "log_lambdas")
    if given.ndim != 1:
        raise InvalidInputError(f"log_lambdas: expected a list of numbers, got shape {given.shape}")
    ordering = as_ordering(ordering, tasks.names)
    if ordering.skips:
        raise NotSupportedError(f"{ordering} skips steps; use an ordering that learns a task at every step")
    limit = run(tasks, ordering, k, POCS(), seed=seed)
    angles, gaps, inner, complaints = [], [], [], []
    for value in given.tolist():
        scheme = WeaklyRegularized(value)
        weak = run(tasks, Explicit(limit.order), k, scheme)
        pairs = list(zip(weak.iterates[1:], limit.iterates[1:], strict=True))
        angles.append([angle_between(u, v) for u, v in pairs])
        scale = scheme.scale_of_iterates if value < 0 else float("nan")
        gaps.append([float(np.linalg.norm(u / scale - v)) for u, v in pairs])
        inner.append(weak.inner_steps)
        complaints += [f"log_lambda = {value:g}: {complaint}" for complaint in weak.complaints]
    shape = len(given), k
    return DirectionCurve(
        log_lambdas=given.copy(),
        order=limit.order,
        angles=np.array(angles).reshape(shape),
        gaps=np.array(gaps).reshape(shape),
        repeats=np.concatenate([[False], limit.order[1:] == limit.order[:-1]])[:k],
        inner_steps=np.array(inner, dtype=np.int64).reshape(shape),
        complaints=tuple(complaints),
    )
