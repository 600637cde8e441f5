"""The regression estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from forgetting.core.arrays import Array, as_word, is_sparse
from forgetting.dynamics.loop import run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import InvalidInputError
from forgetting.estimators.base import Continual, FitCall, Task, columns, warn_about
from forgetting.geometry import Matrix
from forgetting.orderings import Explicit
from forgetting.schemes import Scheme
from forgetting.schemes.linear import growth
from forgetting.tasks import RegressionTasks


class ContinualRegressor(RegressorMixin, Continual):  # type: ignore[misc]
    """Linear regression that learns tasks one after another, by default each to convergence.

    A step is w <- w + X^+ (y - X w), the solution (or least-squares solution) of the task nearest to w (block
    Kaczmarz), unless `scheme` names another. `fit` starts from w = 0, `partial_fit` continues. Several outputs are
    learned separately, and their losses are summed; each output costs a singular value decomposition per task.

    Args:
        fit_intercept: add a constant feature of value 1, which is learned like any other feature.
        scheme: how a task is learned: an object such as `fg.schemes.Ridge(0.1)`, or the name of a scheme that needs no
            parameters; None learns each task to convergence. A grid search reaches the parameters as `scheme__lam`.
        keep_history: keep the iterates and the rows of each task (or, if there are more rows than columns, the triangle
            of their QR factorisation, which has the same losses). If False, no past data are stored.
        loss: "sum" for L_m(w) = 1/2 |X_m w - y_m|^2, or "mean" to divide by n_m. With weights s_i of rows,
            L_m(w) = 1/2 sum_i s_i (x_i.w - y_i)^2, and "mean" divides by their sum.

    Weights and the kind of loss do not change what solves a task, nor the step to convergence on a task that has a
    solution. They change its singular values, and with them the steps of schemes such as ridge or SGD on the loss.

    Attributes:
        coef_: (d,), or (outputs, d).
        intercept_: a number, or (outputs,).
        n_steps_: the number of tasks learned since `fit`, including repetitions.
        task_ids_, order_, loss_matrix_, forgetting_: the history, as in a `Trajectory`.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import forgetting as fg
    >>> model = fg.ContinualRegressor(fit_intercept=False)
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
        self,
        fit_intercept: bool = True,
        *,
        scheme: Scheme | str | None = None,
        keep_history: bool = True,
        loss: Literal["sum", "mean"] = "sum",
    ) -> None:
        self.fit_intercept = fit_intercept
        self.scheme = scheme
        self.keep_history = keep_history
        self.loss = loss

    def partial_fit(
        self, X: Any, y: Any, task_id: Any = None, order: Sequence[Any] | None = None, sample_weight: Any = None
    ) -> Self:
        """Learn another task, or several with n values in `task_id`; arguments as for `fit`.

        A task id that was used before repeats the task and needs the same data. A call that raises changes nothing.
        """
        return self._learn(X, y, task_id, order, sample_weight)

    def predict(self, X: Any) -> Array:
        """X w, of shape (n,) or (n, outputs)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores

    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        as_word(self.loss, ("sum", "mean"), "loss")
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

    def _run(self, call: FitCall, output: int, w: Array) -> Trajectory:
        problem = RegressionTasks(*columns(list(map(self._scaled, call.tasks)), output), copy=False)
        k, scheme = len(call.visits), self._given_scheme
        trajectory = run(problem, Explicit(call.visits), k, scheme, call.seed, w, call.every)
        warn_about(call.outputs[output], [*growth(problem, trajectory.scheme), *trajectory.complaints])
        return trajectory

    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        problem = RegressionTasks(*columns(tasks, output), copy=False)
        return np.array([problem.task_losses(w) for w in iterates]).reshape(len(iterates), len(tasks))

    def _scaled(self, task: Task) -> Task:
        """The task with rows times the roots of their weights, so that its loss is 1/2 |X w - y|^2."""
        n = len(task.targets)
        if task.weights is None and self.loss == "sum":
            return task
        weights = np.ones(n) if task.weights is None else task.weights
        roots = np.sqrt(weights / (1.0 if self.loss == "sum" else weights.sum()))[:, None]
        rows = task.matrix.multiply(roots).tocsr() if is_sparse(task.matrix) else task.matrix * roots
        return Task(rows, task.targets * roots)

    def _kept(self, task: Task) -> Task:
        matrix, targets, _ = self._scaled(task)
        if is_sparse(matrix) or len(targets) <= matrix.shape[1] + targets.shape[1]:
            return Task(matrix.copy(), targets.copy())
        triangle = np.asarray(np.linalg.qr(np.hstack([matrix, targets]), mode="r"))
        return Task(triangle[:, : matrix.shape[1]].copy(), triangle[:, matrix.shape[1] :].copy())

    def _publish(self, runs: Sequence[Trajectory]) -> None:
        coef, intercept = self._split()
        self.coef_ = coef[0] if self._flat else coef
        self.intercept_ = float(intercept[0]) if self._flat else intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
