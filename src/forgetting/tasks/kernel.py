"""Regression tasks given by inner products."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from forgetting import geometry as _geometry
from forgetting.core.arrays import Array, IntArray, as_task, one_column, read_only, real_array
from forgetting.core.groups import Groups, group_codes
from forgetting.core.memory import require_memory
from forgetting.core.numerical import ASYMMETRY, NEGATIVE, SQUARED
from forgetting.errors import InvalidInputError
from forgetting.files.arrays import entry, words
from forgetting.geometry import Geometry
from forgetting.tasks.files import labels_from, linear_options, linear_options_from
from forgetting.tasks.linear_tasks import LinearTasks

__all__ = ["KernelTasks"]


class KernelTasks(LinearTasks):
    """Kernel regression tasks phi(x_i) . w = y_i, given by the inner products K[i, j] = phi(x_i) . phi(x_j).

    Iterates are dual coefficients a with w = sum_i a_i phi(x_i), so that `dim` is the number of rows; a run has
    `predictions`, the values K a at all rows. Tasks are in the same order as those of `RegressionTasks.from_arrays`.

    Args:
        kernel: N x N symmetric positive semidefinite matrix.
        labels: N values, or N x c values for c outputs; dual coefficients are then N x c.
        groups: N group labels; rows of a group form a task.
        loss: "sum", or "mean" to divide L_m by n_m.
        rank_tol: relative tolerance for ranks; default sqrt(N * eps), since a Gram matrix squares singular values.
        rtol: relative residual below which the tasks count as jointly realizable.

    >>> import forgetting as fg
    >>> tasks = fg.KernelTasks([[2.0, 1.0], [1.0, 2.0]], [1.0, 0.0], groups=[0, 1])
    >>> tasks.num_tasks, tasks.rank_joint, round(tasks.radius ** 2, 12)
    (2, 2, 2.0)
    >>> tasks.w_star.round(12)   # solves K a = y
    array([ 0.66666667, -0.33333333])
    """

    format = "forgetting/kernel/1"
    kernel: Array

    def __init__(
        self,
        kernel: Any,
        labels: Any,
        groups: Any,
        *,
        loss: Literal["sum", "mean"] = "sum",
        rank_tol: float | None = None,
        rtol: float = 1e-6,
    ) -> None:
        matrix = real_array(kernel, "K")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
            raise InvalidInputError(f"K: expected a square matrix, got shape {matrix.shape}")
        rows = len(matrix)
        require_memory(64.0 * rows**2, f"the eigenvectors of a kernel matrix of {rows} rows", "use fewer rows")
        largest = float(np.max(np.abs(matrix)))
        if largest > SQUARED:
            raise InvalidInputError(f"K: entries of size {largest:g} overflow when added; rescale them")
        asymmetry = float(np.max(np.abs(matrix - matrix.T)))
        if asymmetry > ASYMMETRY * largest:
            raise InvalidInputError(f"K is not symmetric: K - K^T has an entry of size {asymmetry:.2g}")
        known = groups if isinstance(groups, Groups) else group_codes(groups, rows)
        self.rows_of = [read_only(part) for part in known.rows]
        self.kernel = read_only((matrix + matrix.T) / 2)
        given = one_column(real_array(labels, "y", squares=True))
        if given.ndim not in (1, 2) or len(given) != rows or 0 in given.shape:
            raise InvalidInputError(f"y: expected shape ({rows},), or ({rows}, c) for c outputs, got {given.shape}")
        self.labels = read_only(given.copy())
        self.outputs = None if given.ndim == 1 else int(given.shape[1])
        self.names, self.notes = tuple(known.names), known.told()
        self.dim = rows
        self._set_options(loss, rank_tol, rtol)
        lowest = float(np.linalg.eigvalsh(self.kernel)[0])
        if lowest < -NEGATIVE * float(np.max(np.diag(self.kernel), initial=0.0)):
            raise InvalidInputError(
                f"K is not positive semidefinite: its least eigenvalue is {lowest:.2g}, so these are no inner products"
            )

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The loss and the tolerances, then the kernel matrix, the labels and the rows of each task."""
        yield self.loss_kind, self.rank_tol, self.rtol
        yield self.kernel, self.labels, self.rows_of

    def file_arrays(self) -> dict[str, Any]:
        owner = np.empty(self.dim, dtype=np.int64)
        for task, rows in enumerate(self.rows_of):
            owner[rows] = task
        return {
            "format": np.array(self.format),
            "kernel": self.kernel,
            "y": self.labels,
            "task": owner,
            **linear_options(self),
        }

    @classmethod
    def from_file_arrays(cls, arrays: dict[str, Any]) -> KernelTasks:
        kernel, owner = entry(arrays, "kernel", "f", 2), entry(arrays, "task", "iu", 1)
        # numbers, so that tasks of mixed rows keep their order, too, and nothing is decided
        groups = replace(group_codes(owner.astype(np.int64), len(kernel)), moved=False)
        tasks = KernelTasks(kernel, labels_from(arrays), groups, **linear_options_from(arrays))
        tasks.names, tasks.notes = tuple(words(arrays, "names", tasks.num_tasks)), ()
        return tasks

    @cached_property
    def _weights(self) -> Array:
        if self.loss_kind == "sum":
            return np.ones(len(self.rows_of))
        return np.array([len(rows) ** -0.5 for rows in self.rows_of])

    @cached_property
    def geometry(self) -> Geometry:
        """The reduction to the joint row space, computed once from the kernel matrix."""
        known: dict[bytes, int] = {}
        index = np.array(
            [
                known.setdefault(self.kernel[rows].tobytes() + self.labels[rows].tobytes(), len(known))
                for rows in self.rows_of
            ]
        )
        first = np.unique(index, return_index=True)[1]
        distinct = [self.rows_of[task] for task in first]
        return _geometry.from_gram(self.kernel, self.labels, distinct, self._weights[first], index, self.rank_tol)

    @property
    def num_rows(self) -> IntArray:
        return np.array([len(rows) for rows in self.rows_of])

    def predict(self, coefficients: Any) -> Array:
        """The predictions K a for all rows; `coefficients` is a vector a, or a matrix with such vectors as rows.

        With c outputs, a is N x c, and several of them are stacked along the first axis.
        """
        given = real_array(coefficients, "coefficients")
        shape = self.point_shape
        if given.ndim not in (len(shape), len(shape) + 1) or given.shape[-len(shape) :] != shape:
            several = "a matrix with such rows" if self.outputs is None else "a stack of such arrays"
            what = f"{self.dim} numbers" if self.outputs is None else f"shape {shape}"
            raise InvalidInputError(f"coefficients: expected {what}, or {several}, got {given.shape}")
        return np.asarray(given @ self.kernel if self.outputs is None else self.kernel @ given)

    def labels_of(self, task: int) -> Array:
        return np.asarray(self.labels[self.rows_of[as_task(task, self.num_tasks)]])

    def row_lengths(self, task: int) -> Array:
        rows = self.rows_of[as_task(task, self.num_tasks)]
        return np.asarray(np.sqrt(np.maximum(np.diag(self.kernel)[rows], 0.0)))

    def predictions(self, task: int, points: Array) -> tuple[Array, Array]:
        rows = self.rows_of[as_task(task, self.num_tasks)]
        kernel = self.kernel[rows]
        points = self._stack(points)
        # |phi(x_i)| |phi| sum_j |a_j|, at least
        largest = np.sqrt(float(np.max(np.diag(self.kernel), initial=0.0)))
        sizes = np.sqrt(np.maximum(np.diag(self.kernel)[rows], 0.0))[None] * largest
        sizes = sizes * np.abs(points).sum(axis=tuple(range(1, points.ndim)))[:, None]
        if self.outputs is None:
            return points @ kernel.T, sizes
        return kernel @ points, sizes

    def task_losses(self, w: Any) -> Array:
        """L_m for every task at dual coefficients w."""
        missed = self.predict(self.point(w)) - self.labels
        return np.array(
            [
                0.5 * weight**2 * float(np.sum(missed[rows] ** 2))
                for rows, weight in zip(self.rows_of, self._weights, strict=True)
            ]
        )

    def task_loss(self, task: int, w: Any) -> float:
        """L_m at dual coefficients w."""
        return float(self.task_losses(w)[as_task(task, self.num_tasks)])

    @property
    def num_tasks(self) -> int:
        return len(self.rows_of)

    def __repr__(self) -> str:
        several = "" if self.outputs is None else f", outputs={self.outputs}"
        return f"KernelTasks(T={len(self.rows_of)}, N={self.dim}{several})"
