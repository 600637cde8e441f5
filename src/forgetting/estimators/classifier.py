"""The classification estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from forgetting.core.arrays import Array, any_array
from forgetting.dynamics.loop import run
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import InvalidInputError, NotSeparableError
from forgetting.estimators.base import Continual, FitCall, Task, columns, warn_about
from forgetting.geometry import Matrix
from forgetting.orderings import Explicit
from forgetting.schemes import POCS, Scheme, WeaklyRegularized
from forgetting.tasks import ClassificationTasks


class ContinualClassifier(ClassifierMixin, Continual):  # type: ignore[misc]
    """Linear classifier that learns tasks one after another, each to convergence.

    With two classes a step is w <- argmin_v sum_i exp(-y_i x_i.v) + lambda/2 |v - w|^2, for any data; or, in the limit
    of small lambda, the projection onto {w: y_i x_i.w >= 1 for the rows of the task}. With more classes, each class is
    learned against the rest, and the largest x.w gives the class. `fit` starts from w = 0, `partial_fit` continues.

    Args:
        log_lambda: log(lambda), from 0 down to -1e14; or "limit" for projections, with `NotSeparableError` for a task
            that is not separable (each class from all others).
        scheme: another scheme for classification tasks, in place of `log_lambda`, `tol` and `max_iter`: an object, or
            the name of a scheme that needs no parameters. A grid search reaches its parameters as `scheme__...`.
        fit_intercept: add a constant feature of value 1, which is learned like any other feature.
        keep_history: keep the iterates and the rows of each task. If False, no past data are stored.
        tol: the largest allowed error of margins, relative to their size; not used in the limit.
        max_iter: the most Newton steps per task and class; if these are too few, a `ConvergenceWarning` is given.

    Losses are L_m(w) = 1/2 max_i (1 - y_i x_i.w)_+^2, summed over classes. At a finite lambda the losses are those of
    w / log(1/lambda), as in `fg.run`; `coef_` is w itself. Sparse X is accepted and stored dense. A row of weight s_i
    adds s_i exp(-y_i x_i.v) to the sum; in the limit of small lambda weights play no part, but for rows of weight 0,
    which are left out. Losses are largest values, and so do not weigh rows either.

    Attributes:
        classes_: the labels, sorted.
        coef_: (1, d) for two classes, else (classes, d).
        intercept_: (1,) or (classes,).
        n_steps_: the number of tasks learned since `fit`, including repetitions.
        n_iter_: the largest number of inner steps for a task in the last call.
        task_ids_, order_, loss_matrix_, forgetting_: the history, as in a `Trajectory`; and `accuracy_matrix_`.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import forgetting as fg
    >>> model = fg.ContinualClassifier(log_lambda="limit", fit_intercept=False)
    >>> model.partial_fit([[1.0, 0.0]], ["cat"], classes=["ant", "cat"]).coef_
    array([[1., 0.]])
    >>> model.partial_fit([[-1.0, 2.0], [0.0, -4.0]], ["cat", "ant"]).coef_
    array([[0.6, 0.8]])
    >>> model.predict([[3.0, -1.0], [-3.0, 1.0]]), model.forgetting_.round(12)
    (array(['cat', 'ant'], dtype='<U3'), array([0.  , 0.04]))
    """

    classes_: Any
    n_iter_: int

    _scales = ("log_lambda", "scheme")

    def __init__(
        self,
        log_lambda: float | Literal["limit"] = -10.0,
        *,
        fit_intercept: bool = True,
        scheme: Scheme | str | None = None,
        keep_history: bool = True,
        tol: float = 1e-11,
        max_iter: int = 500,
    ) -> None:
        self.log_lambda = log_lambda
        self.fit_intercept = fit_intercept
        self.scheme = scheme
        self.keep_history = keep_history
        self.tol = tol
        self.max_iter = max_iter

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        task_id: Any = None,
        order: Sequence[Any] | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Learn another task, or several with n values in `task_id`; arguments as for `fit`.

        The first call needs `classes`, the list of all classes, if its y does not contain all of them. A task id that
        was used before repeats the task and needs the same data. A call that raises changes nothing.
        """
        return self._learn(X, y, task_id, order, sample_weight, classes)

    def decision_function(self, X: Any) -> Array:
        """x.w, of shape (n,) for two classes (positive for the second class), else (n, classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The predicted labels, (n,)."""
        scores = self._scores(X)
        return self.classes_[_decided(scores)]

    @property
    def accuracy_matrix_(self) -> Array:
        """(k + 1, T) the fraction of correctly classified rows of every task, at the start and after each step.

        Rows count by their weights.
        """
        past = self._past
        truth = [_decided(task.targets) for task in past.tasks]
        return np.array(
            [
                [
                    np.average(_decided(task.matrix @ w.T) == true, weights=task.weights)
                    for task, true in zip(past.tasks, truth, strict=True)
                ]
                for w in past.iterates
            ]
        )

    @property
    def _scheme(self) -> Scheme:
        if (given := self._given_scheme) is not None:
            return given
        if isinstance(self.log_lambda, str):
            if self.log_lambda != "limit":
                raise InvalidInputError(f"log_lambda must be a number or 'limit', got {self.log_lambda!r}")
            return POCS()
        return WeaklyRegularized(self.log_lambda, self.tol, self.max_iter)

    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        matrix, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=fresh)
        with np.errstate(invalid="ignore"):  # scikit-learn converts labels to integers
            check_classification_targets(labels)
        known = _known_classes(labels, classes, None if fresh else self.classes_)
        places = np.searchsorted(known, labels).clip(max=len(known) - 1)
        other = np.flatnonzero(known[places] != labels)
        if other.size:
            raise InvalidInputError(
                f"y[{other[0]}] is {labels[other].tolist()[0]!r}, a class that is not among {known.tolist()}; "
                "give all classes in classes= at the first partial_fit"
            )
        signs = np.where(places[:, None] == np.arange(len(known)), 1.0, -1.0)
        names = [f"class {label!r} against the others" for label in known.tolist()]
        first = 0 if len(known) > 2 else 1
        return matrix, signs[:, first:], names[first:], {"classes_": known}

    def _run(self, call: FitCall, output: int, w: Array) -> Trajectory:
        problem, steps = _binary(call.tasks, output), len(call.visits)
        try:
            trajectory = run(problem, Explicit(call.visits), steps, self._scheme, call.seed, w, call.every)
        except NotSeparableError as error:
            task = "" if error.task is None else f"task id {call.ids[error.task]!r}, "
            raise NotSeparableError(
                f"{task}{call.outputs[output]}: {error}, and so does a finite log_lambda here",
                certificate=error.certificate,
                residual=error.residual,
                task=error.task,
            ) from error
        warn_about(call.outputs[output], trajectory.complaints)
        return trajectory

    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        problem = _binary(tasks, output)
        return np.array([problem.task_losses(w) for w in iterates]).reshape(len(iterates), -1)[:, : len(tasks)]

    def _kept(self, task: Task) -> Task:
        return Task(task.matrix.copy(), task.targets.copy(), None if task.weights is None else task.weights.copy())

    def _publish(self, runs: Sequence[Trajectory]) -> None:
        self.coef_, self.intercept_ = self._split()
        self.n_iter_ = max(int(trajectory.inner_steps.max()) for trajectory in runs)


class _WeightedTasks(ClassificationTasks):
    """Classification tasks whose rows have weights."""

    weights: Sequence[Array | None] = ()

    def row_weights(self, task: int) -> Array | None:
        return self.weights[task]


def _binary(tasks: Sequence[Task], output: int) -> ClassificationTasks:
    """The tasks of an output as a problem with two labels.

    If all labels are equal, a task with a single row (-x, -y) is added, which gives the other label; the row restricts
    w in the same way as (x, y), and the task is never learned.
    """
    matrices, signs = columns(tasks, output)
    if len({sign for column in signs for sign in np.unique(column).tolist()}) == 1:
        matrices, signs = [*matrices, -matrices[0][:1]], [*signs, -signs[0][:1]]
    problem = _WeightedTasks(matrices, signs)
    problem.weights = [task.weights for task in tasks]
    return problem


def _decided(scores: Array) -> Any:
    """The index of the predicted class: of the largest score, or, with a single score, 1 if the score is above 0."""
    return np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)


def _known_classes(labels: Any, given: Any, before: Any) -> Any:
    """All classes, sorted: those of the first call, else those given, else those of the labels."""
    given = None if given is None else any_array(given, "classes")
    if given is not None and given.dtype.kind == "V":
        raise InvalidInputError(f"classes must be a list of labels, got an array of records, {given.dtype}")
    if before is not None:
        if given is not None and not np.array_equal(np.unique(given), before):
            raise InvalidInputError(f"classes {given.tolist()} differ from those of the first call, {before.tolist()}")
        return before
    known = np.unique(labels if given is None else given)
    if len(known) < 2:
        raise InvalidInputError(
            f"one class only, {known.tolist()[0]!r}; two or more are needed: name them in classes= of partial_fit"
        )
    return known
