"""Regression tasks in other coordinates, v = L^T (w - w_0) with M = L L^T, in which |v|^2 is the norm of a matrix M."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, getcontext, localcontext
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.linalg import solve_triangular

from forgetting import geometry as _geometry
from forgetting.core.arrays import Array, as_dense, as_task, is_sparse, read_only
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS
from forgetting.errors import NotSupportedError
from forgetting.geometry import Geometry, Rooted, lift
from forgetting.tasks.regression import RegressionTasks

__all__ = ["Metric", "TurnedTasks"]

FEW = 3e5  # products of decimal numbers up to which rows are turned with any number of digits: about 0.1 seconds
GUARD = 12  # digits beyond those of the context and of the condition number


class Metric:
    """The norm w^T M w of a positive definite matrix, or of a vector, which is its diagonal; M = L L^T.

    Attributes:
        matrix: M, d x d, or d numbers.
        condition: the largest eigenvalue over the least; 1 for a diagonal, whose entries are scaled one by one.
    """

    def __init__(self, matrix: Array, condition: float) -> None:
        self.matrix, self.condition = matrix, condition
        self._decimals: dict[int, Any] = {}

    @cached_property
    def factor(self) -> Array:
        """L, or the roots of the diagonal."""
        return np.asarray(np.sqrt(self.matrix) if self.matrix.ndim == 1 else np.linalg.cholesky(self.matrix))

    def into(self, w: Array) -> Array:
        """L^T w."""
        return (self.factor * w.T).T if self.matrix.ndim == 1 else self.factor.T @ w

    def back(self, v: Array) -> Array:
        """L^(-T) v."""
        if self.matrix.ndim == 1:
            return (v.T / self.factor).T
        return np.asarray(solve_triangular(self.factor, v, lower=True, trans="T"))

    def turned(self, X: Any) -> Any:
        """X L^(-T), the rows in the coordinates L^T w; sparse rows stay sparse where M is diagonal."""
        if self.matrix.ndim == 1:
            return X.multiply(1 / self.factor).tocsr() if is_sparse(X) else X / self.factor
        return np.ascontiguousarray(solve_triangular(self.factor, as_dense(X).T, lower=True).T)

    @property
    def off(self) -> float:
        """A bound on the error of turned rows, relative to their norm."""
        size = len(self.matrix)
        return 4 * EPS * np.sqrt(size) if self.matrix.ndim == 1 else 4 * (size + 8) * EPS * self.condition

    def products(self, rows: int) -> float:
        """The products that turning so many rows takes."""
        size = float(len(self.matrix))
        return rows * size if self.matrix.ndim == 1 else size**3 / 6 + rows * size**2 / 2

    @property
    def guard(self) -> int:
        """Digits that turning with decimal numbers may lose."""
        return GUARD + int(np.log10(self.condition)) + 1

    def turned_decimals(self, X: Any) -> Any:
        """X L^(-T) of decimal numbers, with the digits of the current context; it should have `guard` more."""
        L = self._decimal_factor()
        if L.ndim == 1:
            return X / L
        columns: list[Any] = []
        for i in range(len(L)):
            known = sum((L[i, j] * columns[j] for j in range(i)), start=0 * X[:, i])
            columns.append((X[:, i] - known) / L[i, i])
        return np.stack(columns, axis=1)

    def _decimal_factor(self) -> Any:
        """L with the digits of the current context."""
        digits = getcontext().prec
        if digits not in self._decimals:
            L = lift(self.matrix)
            if L.ndim == 1:
                L = np.array([value.sqrt() for value in L], dtype=object)
            else:
                for j in range(len(L)):
                    L[j:, j] = L[j:, j] - (L[j:, :j] @ L[j, :j] if j else 0)
                    L[j:, j] = L[j:, j] / L[j, j].sqrt()
            self._decimals[digits] = L
        return self._decimals[digits]


@dataclass(frozen=True, eq=False)
class _TurnedTask:
    """The rows and labels of a task in the coordinates of a metric, and how far their floats are off."""

    rows_off: float
    labels_off: float
    known: bool
    compute: Callable[[], tuple[Any, Any]]
    scaled = False

    def decimals(self) -> tuple[Any, Any] | None:
        return self.compute() if self.known else None


class TurnedTasks(RegressionTasks):
    """Tasks X L^(-T) v = y - X w_0 for v = L^T (w - w_0): losses are those of the tasks as they were given.

    A run from v = 0 that makes steps of ridge makes those of ridge with |w - w_(t-1)|^2 in the metric, from w_0.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[2.0, 1.0]]], [[4.0]])
    >>> turned = TurnedTasks(tasks, Metric(np.array([4.0, 1.0]), 1.0), np.zeros(2))
    >>> turned.task(0)[0].tolist(), turned.back([[2.0, 2.0]]).tolist()
    ([[1.0, 1.0]], [[1.0, 2.0]])
    """

    def __init__(self, given: RegressionTasks, metric: Metric, w0: Array) -> None:
        self._given, self._metric, self._w0 = given, metric, read_only(w0)
        rows, size = int(given.num_rows.sum()), given.dim
        require_memory(
            8.0 * rows * size + 16.0 * metric.matrix.size,
            f"{rows} rows of {size} numbers in the coordinates of a matrix",
            "give its diagonal alone, which keeps sparse rows sparse",
        )
        #: whether rows have as many digits as a computation asks for
        self._known = given.rows_read is None and metric.products(rows) <= FEW
        first = np.unique(given.index, return_index=True)[1]
        parts = [self._floats(*given.task(m)) for m in first.tolist()]
        super().__init__(
            [parts[i][0] for i in given.index],
            [parts[i][1] for i in given.index],
            loss=given.loss_kind,
            rank_tol=given.rank_tol,
            rtol=given.rtol,
            names=given.names,
        )
        self.notes, self.classes, self.rows_read = given.notes, given.classes, given.rows_read

    def _floats(self, X: Any, y: Array) -> tuple[Any, Array]:
        """The rows and labels of a task, rounded once where they are computed with more digits."""
        if self._known:
            with localcontext(Context(prec=17)):
                rows, labels = self._computed(X, y)
            return rows.astype(np.float64), labels.astype(np.float64)
        return self._metric.turned(X), np.asarray(y - X @ self._w0)

    def _computed(self, X: Any, y: Array) -> tuple[Any, Any]:
        """The rows and labels of a task with the digits of the current decimal context."""
        digits = getcontext().prec
        with localcontext(Context(prec=digits + self._metric.guard)):
            exact, labels = lift(as_dense(X)), lift(y)
            rows = self._metric.turned_decimals(exact)
            moved = labels - exact @ lift(self._w0) if self._w0.any() else labels
        return rows, moved

    @property
    def given(self) -> RegressionTasks:
        """The tasks as they were given, in the coordinates w."""
        return self._given

    @property
    def norms_as_given(self) -> Array:
        return self._given.norms

    def similarity(self, by: Literal["rows", "solutions"]) -> Array | None:
        return self._given.similarity(by)

    def like_these(self, other: RegressionTasks) -> TurnedTasks:
        """Other tasks, such as held-out data, in the same coordinates."""
        return TurnedTasks(other, self._metric, self._w0)

    def into(self, points: Any) -> Array:
        """The iterates v of a stack of iterates w."""
        return np.stack([self._metric.into(np.asarray(w) - self._w0) for w in points])

    def back(self, points: Any) -> Array:
        """The iterates w of a stack of iterates v."""
        return np.stack([self._w0 + self._metric.back(np.asarray(v)) for v in points])

    def rooted(self, task: int) -> Rooted:
        """What is known of the rows and labels of a task beyond their floats."""
        X, y = self._given.task(as_task(task, self.num_tasks))
        if self._known:
            return _TurnedTask(EPS, EPS if self._w0.any() else 0.0, True, lambda: self._computed(X, y))
        reduced = 0.0 if self.rows_read is None else 16 * EPS * np.sqrt(self.dim)
        moved = 0.0
        if self._w0.any():
            sizes = np.linalg.norm(y) + np.sqrt(self.dim) * np.linalg.norm(as_dense(X)) * np.linalg.norm(self._w0)
            left = float(np.linalg.norm(self.task(task)[1]))
            moved = min(1.0, 4 * EPS * float(sizes) / left) if left > 0 else 1.0
        return _TurnedTask(self._metric.off + reduced, moved + reduced, False, lambda: (None, None))

    @cached_property
    def geometry(self) -> Geometry:
        first = np.unique(self._index, return_index=True)[1].tolist()
        roots = {distinct: self.rooted(task) for distinct, task in enumerate(first)}
        made = _geometry.from_data(
            self._matrices, self._labels, self._divisors, self._index, self.rank_tol, roots=roots
        )
        ranks = made.ranks[made.index]
        differs = np.flatnonzero(ranks != self._given.ranks)
        if differs.size or made.dim != self._given.rank_joint:
            where = f"task {differs[0]} has rank" if differs.size else "the tasks together have rank"
            was = int(self._given.ranks[differs[0]]) if differs.size else self._given.rank_joint
            raise NotSupportedError(
                f"the matrix, whose condition number is {self._metric.condition:.2g}, hides rows of the tasks from "
                f"float64: {where} {was}, and {int(ranks[differs[0]]) if differs.size else made.dim} in its "
                "coordinates; rescale the columns of X such that the matrix is closer to a multiple of the identity"
            )
        return made

    def _warn_of_small_rows(self) -> None:
        """Say nothing: the rows as they were given were looked at."""

    def labels_of(self, task: int) -> Array:
        return self._given.labels_of(task)

    def predictions(self, task: int, points: Array) -> tuple[Array, Array]:
        return self._given.predictions(task, self.back(points))
