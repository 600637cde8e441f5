"""The regression estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from forgetting._arrays import Array, is_sparse
from forgetting.dynamics.loop import run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import InvalidInputError
from forgetting.estimators.base import Call, Continual, Task, columns
from forgetting.geometry import Matrix
from forgetting.orderings import Explicit
from forgetting.tasks import RegressionTasks

__all__ = ["ContinualRegressor"]


class ContinualRegressor(RegressorMixin, Continual):  # type: ignore[misc]
    """Linear regression that learns tasks one after another, each to convergence.

    A step is w <- w + X^+ (y - X w), the solution (or least-squares solution) of the task nearest to w (block
    Kaczmarz). `fit` starts from w = 0, `partial_fit` continues. Several outputs are learned separately, and their
    losses are summed; each output costs a singular value decomposition per task.

    Args:
        fit_intercept: add a constant feature of value 1, which is learned like any other feature.
        keep_history: keep the iterates and the rows of each task (or, if there are more rows than columns, the triangle
            of their QR factorisation, which has the same losses). If False, no past data are stored.
        loss: "sum" for L_m(w) = 1/2 |X_m w - y_m|^2, or "mean" to divide by n_m; this changes only the history.

    Attributes:
        coef_: (d,), or (outputs, d).
        intercept_: a number, or (outputs,).
        n_steps_: the number of tasks learned since `fit`, including repetitions.
        task_ids_, order_, loss_matrix_, forgetting_: the history, as in a `Trajectory`.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import forgetting as fg
    >>> model = fg.ContinualRegressor()
    >>> model.partial_fit([[1.0, 0.0]], [1.0], task_id="first").coef_
    array([1., 0.])
    >>> model.partial_fit([[0.6, 0.8]], [2.0], task_id="second").coef_.round(12)
    array([1.84, 1.12])
    >>> model.loss_matrix_.round(4)
    array([[0.5   , 2.    ],
           [0.    , 0.98  ],
           [0.3528, 0.    ]])
    >>> model.forgetting_.round(4)
    array([0.    , 0.1764])
    """

    _flat: bool

    _scales = ("loss",)

    def __init__(
        self, fit_intercept: bool = False, *, keep_history: bool = True, loss: Literal["sum", "mean"] = "sum"
    ) -> None:
        self.fit_intercept = fit_intercept
        self.keep_history = keep_history
        self.loss = loss

    def partial_fit(self, X: Any, y: Any, task_id: Any = None, order: Sequence[Any] | None = None) -> Self:
        """Learn another task, or several with n values in `task_id`; arguments as for `fit`.

        A task id that was used before repeats the task and needs the same data. A call that raises changes nothing.
        """
        return self._learn(X, y, task_id, order)

    def predict(self, X: Any) -> Array:
        """X w, of shape (n,) or (n, outputs)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        if self.loss not in ("sum", "mean"):
            raise InvalidInputError(f"loss must be 'sum' or 'mean', got {self.loss!r}")
        matrix, labels = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True, y_numeric=True, reset=fresh
        )
        targets = np.asarray(labels, dtype=np.float64)
        flat = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        if not fresh and (flat, targets.shape[1]) != (self._flat, len(self._weights)):
            raise InvalidInputError(
                f"y has shape {np.shape(labels)}, but the tasks so far had "
                f"{'one output' if self._flat else f'{len(self._weights)} outputs in columns'}; `fit` starts anew"
            )
        return matrix, targets, [f"output {j}" for j in range(targets.shape[1])], {"_flat": flat}

    def _run(self, call: Call, output: int, w: Array) -> Trajectory:
        problem = RegressionTasks(*columns(call.tasks, output), copy=False)
        return run(problem, Explicit(call.visits), len(call.visits), w0=w, record_every=call.every)

    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        problem = RegressionTasks(*columns(tasks, output), copy=False)
        return np.array([problem.task_losses(w) for w in iterates]).reshape(len(iterates), len(tasks))

    def _kept(self, task: Task) -> Task:
        matrix, targets = task
        scale = 1.0 if self.loss == "sum" else len(targets) ** -0.5
        if is_sparse(matrix) or len(targets) <= matrix.shape[1] + targets.shape[1]:
            return matrix * scale, targets * scale
        triangle = np.asarray(np.linalg.qr(np.hstack([matrix, targets]) * scale, mode="r"))
        return triangle[:, : matrix.shape[1]].copy(), triangle[:, matrix.shape[1] :].copy()

    def _publish(self, runs: Sequence[Trajectory]) -> None:
        coef, intercept = self._split()
        self.coef_ = coef[0] if self._flat else coef
        self.intercept_ = float(intercept[0]) if self._flat else intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
