"""Both sides of a violated statement once more, at 50 digits: what float64 alone may not call a counterexample.

Arithmetic is that of `decimal` in the standard library, at 50 digits; every input is taken as the exact number that its
float is, and a result is rounded once, to the nearest float, when it is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from functools import wraps
from math import comb, prod
from typing import Any, TypeVar

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting.dynamics.loop import view_of
from forgetting.errors import NotSupportedError
from forgetting.expectation.engines.deep import lift
from forgetting.orderings.laws import Fixed, Independent, Permutation, Unknown
from forgetting.schemes import natural_scheme
from forgetting.theory.expectations import distinct, equations, probabilities
from forgetting.theory.instance import Instance

__all__ = ["DIGITS", "Precise", "at_full_precision", "halfspace_walk"]

DIGITS = 50
ROUNDED = Decimal("1e-45")  # relative, of a product of two numbers
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


class Precise:
    """`Numbers` at 50 digits, for projections and SGD on regression tasks of small dimension.

    The problem is the one with the matrices and the w* of the instance, taken as exact; its labels are X_m w*.

    >>> import forgetting as fg
    >>> case = Instance(fg.families.orthogonal(2), fg.orderings.WithReplacement(), k=1)
    >>> round(Precise(case).loss(1), 15)
    0.125
    """

    @at_full_precision
    def __init__(self, instance: Instance) -> None:
        if instance.problem is None or instance.problem.linear is not instance.problem:
            raise NotSupportedError("high precision is for regression tasks")
        self.instance = instance
        self.scheme = instance.scheme or natural_scheme(instance.tasks)
        self.law = Unknown() if instance.ordering is None else instance.ordering.law
        self.doubt = 0.0
        self.how = f"{DIGITS} digits"
        problem = instance.tasks
        self.index = problem.geometry.index
        self.counts: IntArray = problem.geometry.counts
        matrices = [lift(equations(problem, task)[0]) for task in distinct(problem)]
        self.grams = [matrix.T @ matrix for matrix in matrices]
        self.steps = [self._step(matrix) for matrix in matrices]
        z0 = lift(instance.start) - lift(problem.nearest_solution(instance.start))
        self.start = np.outer(z0, z0)
        self.dim = len(z0)

    def _step(self, matrix: Numeric) -> Numeric:
        """I - g(X^T X) for a gain g(sigma^2) that is constant or proportional to sigma^2."""
        scheme = self.scheme.linear_on(self.instance.posed)
        if scheme is not None:
            identity = lift(np.eye(matrix.shape[1]))
            gain, quarter = scheme.precise_gain(Decimal(1)), scheme.precise_gain(Decimal("0.25"))
            if gain is not None and gain == quarter:
                return identity - gain * _span(matrix)
            if gain is not None and quarter is not None and abs(gain - 4 * quarter) <= gain * ROUNDED:
                return identity - gain * (matrix.T @ matrix)
        raise NotSupportedError(f"high precision is not there for {self.scheme}")

    @at_full_precision
    def loss(self, k: int) -> float:
        """E L(w_k)."""
        total = sum(loss * int(count) for loss, count in zip(self._distinct(k), self.counts, strict=True))
        return float(total / len(self.index))

    @at_full_precision
    def task_losses(self, k: int) -> Array:
        """E L_m(w_k) for every task."""
        return np.array([float(value) for value in self._distinct(k)])[self.index]

    @at_full_precision
    def forgetting(self, k: int) -> float:
        """E F(k)."""
        seen, _, _, kept = self._totals(k)
        return float((seen - kept) / k)

    @at_full_precision
    def in_sample(self, k: int) -> float:
        """E (1/k) sum_(t<k) f(w_k; i_t)."""
        return float(self._totals(k)[0] / k)

    @at_full_precision
    def next_loss(self, k: int) -> float:
        """E f(w_k; i_k)."""
        return float(self._totals(k)[1])

    @at_full_precision
    def regret_sum(self, k: int) -> float:
        """E sum_(t<k) f(w_t; i_t)."""
        return float(self._totals(k)[2])

    def _value(self, m: int, moment: Numeric) -> Any:
        return np.sum(self.grams[m] * moment) / 2

    def _distinct(self, k: int) -> list[Any]:
        if isinstance(self.law, Permutation):
            moment = sum(chance * m for chance, _, m in self._layers(k)[-1])
        else:
            moment = self._independent(k)[0]
        return [self._value(m, moment) for m in range(len(self.counts))]

    def _totals(self, k: int) -> tuple[Any, Any, Any, Any]:
        """Sums over visits: loss of w_k on the tasks seen, the next loss, losses before learning and after it."""
        if isinstance(self.law, Permutation):
            return self._permuted(k)
        if isinstance(self.law, Fixed):
            return self._along(k)
        second, visited, before, kept = self._independent(k)
        p = self._p()
        after = sum(p[m] * self._value(m, second) for m in range(len(p)))
        return sum(self._value(m, visited[m]) for m in range(len(p))), after, before, kept

    def _p(self) -> list[Any]:
        sums = [Decimal(0)] * len(self.counts)
        for task, p in enumerate(lift(probabilities(self.instance))):
            sums[self.index[task]] += p
        total = sum(sums)
        return [p / total for p in sums]

    def _independent(self, k: int) -> tuple[Any, Any, Any, Any]:
        """E z z^T, E c_m z z^T, and the sums of losses before and after learning, for independent draws."""
        if not isinstance(self.law, Independent):
            raise NotSupportedError(f"high precision is not there for {self.instance.ordering}")
        p, kinds, n = self._p(), len(self.counts), self.dim
        if 2 * k * (kinds + kinds**2) * n**3 > MOST_WORK:
            return self._powered(k, p)
        kept_form = [s @ g @ s for s, g in zip(self.steps, self.grams, strict=True)]
        second, visited = self.start, [0 * self.start for _ in range(kinds)]
        before = kept = Decimal(0)
        for _ in range(k):
            before += sum(p[m] * self._value(m, second) for m in range(kinds))
            kept += sum(p[m] * np.sum(kept_form[m] * second) / 2 for m in range(kinds))
            learned = [p[m] * (self.steps[m] @ second @ self.steps[m]) for m in range(kinds)]
            visited = [
                sum(p[j] * (self.steps[j] @ visited[m] @ self.steps[j]) for j in range(kinds)) + learned[m]
                for m in range(kinds)
            ]
            second = sum(learned)
        return second, visited, before, kept

    def _powered(self, k: int, p: list[Any]) -> tuple[Any, Any, Any, Any]:
        """The same for very large k: the recursion as one matrix, raised to the power k by squaring."""
        kinds, square = len(self.counts), self.dim**2
        size = (kinds + 1) * square
        if 2 * size**3 * np.log2(k + 2) > 5 * MOST_WORK or not self.scheme.solves_task:
            raise NotSupportedError("too large for high precision")
        parts = [p[m] * np.kron(self.steps[m], self.steps[m]) for m in range(kinds)]
        whole = sum(parts)
        matrix = lift(np.zeros((size, size)))
        for m in range(kinds + 1):
            rows = slice(m * square, (m + 1) * square)
            matrix[rows, rows] = whole
            if m:
                matrix[rows, :square] = parts[m - 1]
        state = np.concatenate([self.start.ravel(), lift(np.zeros(kinds * square))])
        left = k
        while left:
            if left & 1:
                state = matrix @ state
            left >>= 1
            if left:
                matrix = matrix @ matrix
        blocks = state.reshape(kinds + 1, self.dim, self.dim)
        return blocks[0], list(blocks[1:]), Decimal("nan"), Decimal(0)

    def _layers(self, k: int) -> list[list[tuple[Any, tuple[int, ...], Numeric]]]:
        """For each number of steps: (probability, tasks seen, second moment given those)."""
        T, counts = len(self.index), [int(c) for c in self.counts]
        layer = {(0,) * len(counts): self.start}
        layers = []
        for size in range(k + 1):
            total = comb(T, size)
            layers.append(
                [
                    (Decimal(prod(comb(c, s) for c, s in zip(counts, seen, strict=True))) / total, seen, moment)
                    for seen, moment in layer.items()
                ]
            )
            if len(layer) * len(counts) * self.dim**3 * k > MOST_WORK:
                raise NotSupportedError("too large for high precision")
            grown: dict[tuple[int, ...], Numeric] = {}
            for seen, moment in layer.items() if size < k else ():
                for m, count in enumerate(counts):
                    if seen[m] < count:
                        larger = (*seen[:m], seen[m] + 1, *seen[m + 1 :])
                        part = (self.steps[m] @ moment @ self.steps[m]) * larger[m] / (size + 1)
                        grown[larger] = grown[larger] + part if larger in grown else part
            layer = grown
        return layers

    def _permuted(self, k: int) -> tuple[Any, Any, Any, Any]:
        T, kinds = len(self.index), range(len(self.counts))
        before = kept = Decimal(0)
        layers = self._layers(k)
        for size in range(k):
            for chance, seen, moment in layers[size]:
                for m in kinds:
                    share = chance * (int(self.counts[m]) - seen[m]) / (T - size)
                    after = self.steps[m] @ moment @ self.steps[m]
                    before += share * self._value(m, moment)
                    kept += share * self._value(m, after)
        last = layers[-1]
        seen_sum = sum(c * s[m] * self._value(m, moment) for c, s, moment in last for m in kinds)
        left = max(T - k, 1)
        after_sum = sum(c * (int(self.counts[m]) - s[m]) * self._value(m, w) for c, s, w in last for m in kinds)
        return seen_sum, after_sum / left, before, kept

    def _along(self, k: int) -> tuple[Any, Any, Any, Any]:
        ordering = self.instance.ordering
        assert ordering is not None
        order = self.index[ordering.first(view_of(self.instance.posed), k)]
        before = kept = Decimal(0)
        moment = self.start
        for m in order:
            before += self._value(m, moment)
            moment = self.steps[m] @ moment @ self.steps[m]
            kept += self._value(m, moment)
        return sum(self._value(m, moment) for m in order), Decimal("nan"), before, kept


def _span(matrix: Numeric) -> Numeric:
    """The projection onto the row space, by Gram-Schmidt; rows that add less than 1e-12 of the norm are dropped."""
    size = np.sum(matrix * matrix).sqrt()
    result = lift(np.zeros((matrix.shape[1], matrix.shape[1])))
    for row in matrix:
        rest = row - result @ row
        rest = rest - result @ rest
        norm = (rest @ rest).sqrt()
        if norm > size * Decimal("1e-12"):
            result = result + np.outer(rest / norm, rest / norm)
    return result


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
