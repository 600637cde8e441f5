"""Ridge to the previous solution in the norm of a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from forgetting.core.arrays import Array, as_dense, is_sparse, read_only, real_array
from forgetting.core.numerical import ASYMMETRY, EPS
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes.base import Learned, OtherCoordinates, Scheme, register
from forgetting.schemes.linear import Ridge
from forgetting.tasks.problem import Problem
from forgetting.tasks.regression import RegressionTasks
from forgetting.tasks.turned import Metric, TurnedTasks

__all__ = ["GeneralizedRidge"]


@register
@dataclass(frozen=True, eq=False, repr=False)
class GeneralizedRidge(Scheme):
    """argmin_w L_m(w) + 1/2 (w - w_(t-1))^T M (w - w_(t-1)), with a positive definite matrix M, or its diagonal.

    With M = L L^T this is `Ridge(1)` in the coordinates v = L^T w: expected losses and forgetting are as exact as those
    of `Ridge`, and their uncertainty includes the rounding of the coordinates, which grows with the condition number of
    M. Runs, adaptive orders and the quantity "error", a distance in w, are computed in w, in float64. M = lam I is
    `Ridge(lam)`. The best M for random tasks: X. Zhao, H. Wang, W. Huang and W. Lin, A Statistical Theory of
    Regularization-Based Continual Learning, ICML 2024.

    M with an eigenvalue 0 is refused: along such a direction, nothing keeps w, unless a task sees it. A small multiple
    of the identity added to M keeps it.

    Args:
        matrix: M, d x d, dense or sparse, or d numbers, its diagonal.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 1.0]], [[1.0, -1.0]]], [[2.0], [0.0]])
    >>> scheme = GeneralizedRidge([1.0, 3.0])   # the second weight is kept three times as much as the first
    >>> fg.run(tasks, [0], k=1, scheme=scheme).iterates[1].round(6).tolist()
    [0.857143, 0.285714]
    >>> e = fg.expect(tasks, fg.orderings.WithoutReplacement(), k=2, scheme=scheme)
    >>> e.method, round(float(e.loss), 6)
    ('subsets', 0.270304)
    """

    matrix: Any
    #: the memory of a run saves work alone: the matrices that are divided by
    random: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given = as_dense(self.matrix) if is_sparse(self.matrix) else self.matrix
        matrix = real_array(given, "matrix", squares=True)
        if matrix.ndim not in (1, 2) or matrix.shape[0] == 0 or matrix.shape[-1] != len(matrix):
            raise InvalidInputError(f"matrix: expected d x d numbers, or d numbers, got shape {matrix.shape}")
        condition = 1.0
        if matrix.ndim == 2:
            largest = float(np.max(np.abs(matrix)))
            gaps = np.abs(matrix - matrix.T)
            if float(np.max(gaps)) > ASYMMETRY * largest:
                i, j = (int(part) for part in np.unravel_index(np.argmax(gaps), gaps.shape))
                raise InvalidInputError(
                    f"matrix is not symmetric: entry ({i}, {j}) is {matrix[i, j]:.6g}, and entry ({j}, {i}) is "
                    f"{matrix[j, i]:.6g}; (M + M^T) / 2 has the same penalty"
                )
            matrix = (matrix + matrix.T) / 2
            if np.array_equal(matrix, np.diag(np.diag(matrix))):
                matrix = np.diag(matrix).copy()
        values = matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix)
        least, top = float(np.min(values)), float(np.max(values))
        doubt = 0.0 if matrix.ndim == 1 else 4 * len(matrix) * EPS * max(top, -least)
        if least < -doubt:
            raise InvalidInputError(
                f"matrix is not positive definite: it has the eigenvalue {least:.6g}, so that the penalty has no least "
                "value; all eigenvalues must be above 0"
            )
        if least <= doubt:
            raise InvalidInputError(
                f"matrix is singular: its least eigenvalue is {least:.2g}, which is 0 up to rounding, and the largest "
                f"is {top:.6g}. No penalty keeps w along its eigenvector; add a small multiple of the identity"
            )
        condition = 1.0 if matrix.ndim == 1 else top / least
        object.__setattr__(self, "matrix", read_only(np.ascontiguousarray(matrix)))
        object.__setattr__(self, "_metric", Metric(self.matrix, condition))

    def __repr__(self) -> str:
        d = len(self.matrix)
        if self.matrix.ndim == 1 and d <= 4:
            return f"GeneralizedRidge({self.matrix.tolist()})"
        return f"GeneralizedRidge({'diagonal of ' if self.matrix.ndim == 1 else ''}{d} x {d} matrix)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeneralizedRidge) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.matrix.shape, self.matrix.tobytes()))

    def _gain(self, A: Array) -> Array:
        """(M + A^T A)^-1 A^T, by the smaller of two systems."""
        M = self.matrix
        if len(A) < len(M):
            solved = A.T / M[:, None] if M.ndim == 1 else np.linalg.solve(M, A.T)  # M^-1 A^T
            return np.asarray(np.linalg.solve(np.eye(len(A)) + A @ solved, solved.T).T)
        return np.asarray(np.linalg.solve((np.diag(M) if M.ndim == 1 else M) + A.T @ A, A.T))

    def _tasks_of(self, problem: Problem) -> RegressionTasks:
        """The tasks with their rows; an error if there are none, or if they do not fit the matrix."""
        linear = problem.linear
        if linear is None or linear.data is None:
            raise NotSupportedError(
                f"{self} needs RegressionTasks, since its matrix is about columns of X, not {type(problem).__name__}"
            )
        if problem.dim != len(self.matrix):
            d = len(self.matrix)
            raise InvalidInputError(
                f"the matrix of {self} is {d} x {d}, but w has {problem.dim} entries (an intercept is one)"
            )
        return linear.data

    def in_coordinates(self, problem: Problem, w0: Array) -> OtherCoordinates:
        metric: Metric = self._metric  # type: ignore[attr-defined]
        tasks = TurnedTasks(self._tasks_of(problem), metric, w0)
        return OtherCoordinates(tasks, Ridge(1.0), np.zeros(tasks.point_shape))

    def start(self, problem: Problem, w0: Array, rng: Generator) -> dict[int, tuple[Array, Array, Array]]:
        self._tasks_of(problem)
        return {}

    def learn(
        self, problem: Problem, task: int, w: Array, memory: dict[int, tuple[Array, Array, Array]] | None
    ) -> Learned:
        """w - M^-1 A^T (I + A M^-1 A^T)^-1 (A w - b), with the rows A and labels b of the task."""
        known = {} if memory is None else memory
        tasks = self._tasks_of(problem)
        distinct = int(tasks.index[task])
        if distinct not in known:
            A, b = tasks.equations(task)
            known[distinct] = (as_dense(A), b, self._gain(as_dense(A)))
        A, b, gain = known[distinct]
        return Learned(w - gain @ (A @ w - b))
