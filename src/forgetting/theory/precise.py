"""Both sides of a violated statement once more, at 50 digits: what float64 alone may not call a counterexample.

Arithmetic is that of `decimal` in the standard library, at 50 digits; every input is taken as the exact number that its
float is, and a result is rounded once, to the nearest float, when it is returned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Context, Decimal, localcontext
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from forgetting.core.arrays import Array
from forgetting.dynamics.space import resolve, view_of
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.costs import states_needed
from forgetting.expectation.engines.decimal_moments import DecimalMoments, Moment
from forgetting.expectation.quantities import quantities
from forgetting.geometry import lift
from forgetting.orderings.laws import Fixed, Independent, Permutation, Reshuffled
from forgetting.schemes import LinearSteps
from forgetting.schemes.linear import precise_gain
from forgetting.theory.expectations import Expected
from forgetting.theory.instance import Instance

DIGITS = 50
MOST_WORK = 10_000_000  # products of two numbers; a few seconds
Numeric = Any  # arrays of decimal numbers (dtype object)


_F = TypeVar("_F", bound=Callable[..., Any])


def at_full_precision(compute: _F) -> _F:
    """Run the decorated function at 50 digits."""

    @wraps(compute)
    def inner(*args: Any, **kwargs: Any) -> Any:
        with localcontext(Context(prec=DIGITS)):
            return compute(*args, **kwargs)

    return inner  # type: ignore[return-value]


class Precise(Expected):
    """`Numbers` at 50 digits, for linear schemes on regression tasks of small dimension.

    The problem is the one with the matrices and the w* of the instance, taken as exact; its labels are X_m w*. Where no
    w solves all tasks, the labels are those of the instance.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> round(Precise(case).loss(1), 15)
    0.125
    """

    @at_full_precision
    def __init__(self, instance: Instance) -> None:
        super().__init__(instance)
        problem, ordering = instance.problem, instance.ordering
        tasks = None if problem is None else problem.linear
        if problem is None or tasks is None or ordering is None:
            raise NotSupportedError("50 digits are available for regression tasks only")
        self.ordering = ordering
        self.how = f"{DIGITS} digits"
        scheme = resolve(problem, instance.scheme, instance.w0)[0].linear_on(problem)
        if scheme is None or tasks.geometry.data is None or precise_gain(scheme, Decimal(1)) is None:
            raise NotSupportedError(
                f"50 digits are available only for linear schemes with exact gains, not for {instance.scheme}"
            )
        realizable = tasks.realizability.holds
        self.solves = scheme.solves_task and realizable
        solution = tasks.nearest_solution(instance.start) if realizable else None
        steps = LinearSteps.of(scheme)
        self._moments_of = partial(DecimalMoments, tasks.geometry, steps, instance.start, solution)
        self.deep = self._moments_of(averaged=False)

    def forgetting(self, k: int) -> float:
        """E F(k), which is the loss of the tasks seen for schemes that solve each task."""
        return float(self.value("seen_loss" if self.solves and k > 1 else "forgetting", k))

    @at_full_precision
    def value(self, name: str, k: int) -> Any:
        if name.startswith("averaged"):  # iterates are summed on the way
            self.deep = self._moments_of(averaged=True)
        (moment,) = self._moments(k)
        return self.deep.value(quantities.get(name), moment)

    def _moments(self, k: int) -> Iterable[Moment]:
        """The second moments after k steps."""
        law, geometry, view = self.ordering.law, self.deep.geometry, view_of(self.instance.posed)
        kinds, size = geometry.num_distinct, len(self.deep.start)
        match law:
            case Independent():
                weights = law.weights(view)[0].tolist()
                if 2 * k * (kinds + kinds**2) * size**3 > MOST_WORK:
                    return [self._powered(k, lift(weights))]
                return self.deep.independent(weights, {k}, counted=True)
            case Permutation() | Reshuffled():
                tasks = int(geometry.num_tasks)
                states = -(-k // tasks) * states_needed(geometry.counts, min(k, tasks))[0]
                if states * kinds * size**3 > MOST_WORK:
                    raise NotSupportedError("too many states for 50 digits; use fewer tasks or steps")
                return self.deep.permutations({k}, epochs=isinstance(law, Reshuffled))
            case Fixed():
                return self.deep.along(geometry.distinct(self.ordering.first(view, k)), {k})
        raise NotSupportedError(
            f"50 digits are available for independent draws, permutations, epochs of them and given orders, not for "
            f"{self.ordering}"
        )

    def _powered(self, k: int, weights: Numeric) -> Moment:
        """Independent draws for very large k: the recursion as one matrix, raised to the power k by squaring.

        For schemes that solve each task, since what tasks keep when they are learned is not summed.
        """
        kinds, dim, geometry = len(self.deep.bases), len(self.deep.start), self.deep.geometry
        size = (kinds + 1) * dim**2
        if 2 * size**3 * np.log2(k + 2) > 5 * MOST_WORK or not self.solves:
            raise NotSupportedError("too many states for 50 digits; use fewer tasks or steps")
        p = [sum(weights[geometry.index == m]) / sum(weights) for m in range(kinds)]
        parts = [p[m] * np.kron(step, step) for m, step in enumerate(self.deep.steps(1))]
        matrix = lift(np.zeros((size, size)))
        for m in range(kinds + 1):
            rows = slice(m * dim**2, (m + 1) * dim**2)
            matrix[rows, rows] = sum(parts)
            if m:
                matrix[rows, : dim**2] = parts[m - 1]
        state = np.concatenate([np.outer(self.deep.start, self.deep.start).ravel(), lift(np.zeros(kinds * dim**2))])
        left = k
        while left:
            if left & 1:
                state = matrix @ state
            left >>= 1
            if left:
                matrix = matrix @ matrix
        now, *visited = state.reshape(kinds + 1, dim, dim)
        unknown = [0 * now * Decimal("nan")] * kinds
        return Moment(k, now, visited, unknown, unknown, [chance * now for chance in p])


@at_full_precision
def halfspace_walk(rows: Any, order: list[int], w0: Any) -> tuple[list[Array], list[Array]]:
    """Projections onto halfspaces {w: row.w >= 1} in turn: (1 - row.w)_+ and the distance to every one, at each step.

    >>> missed, distances = halfspace_walk([[1.0, 0.0], [0.0, 2.0]], [1], [0.0, 0.0])
    >>> missed[1].tolist(), distances[0].tolist()
    ([1.0, 0.0], [1.0, 0.5])
    """
    normals, w = lift(rows), lift(w0)
    sizes = [(row @ row).sqrt() for row in normals]
    missed, distances = [], []
    for task in [*order, None]:
        gaps = [max(1 - row @ w, Decimal(0)) for row in normals]
        missed.append(np.array([float(gap) for gap in gaps]))
        distances.append(np.array([float(gap / size) for gap, size in zip(gaps, sizes, strict=True)]))
        if task is not None:
            w = w + gaps[task] / sizes[task] ** 2 * normals[task]
    return missed, distances
