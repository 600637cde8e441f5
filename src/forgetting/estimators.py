"""scikit-learn estimators: one `partial_fit` is one task learned to convergence, by the library's own loop.

What is learned, and how, is decided elsewhere: an estimator builds the problem of the call (regression tasks, or one
binary classification problem per class), runs its tasks from the weights it has, and keeps what the history needs.
"""

from __future__ import annotations

import hashlib
import warnings
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from forgetting import metrics
from forgetting._arrays import Array, IntArray, group_rows, is_sparse
from forgetting.errors import InvalidInputError, NotSeparableError
from forgetting.geometry import Matrix
from forgetting.loop import Trajectory, whole_run
from forgetting.orderings import Explicit
from forgetting.schemes import POCS, Scheme, WeaklyRegularized
from forgetting.tasks import ClassificationTasks, RegressionTasks

__all__ = ["ContinualClassifier", "ContinualRegressor"]

Task = tuple[Matrix, Array]  # the rows of a task, and a column of targets for each output


@dataclass(frozen=True, eq=False)
class _Call:
    """What one call of `fit` or `partial_fit` brings: distinct tasks, and the order in which they are learned."""

    outputs: list[str]
    ids: list[Hashable]
    tasks: list[Task]
    visits: IntArray
    every: int  # steps from one recorded iterate to the next


@dataclass(eq=False)
class _History:
    """Every task once, every iterate (as losses are computed on it), and the losses known so far."""

    ids: dict[Hashable, int] = field(default_factory=dict)
    marks: list[bytes] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    iterates: list[Array] = field(default_factory=list)
    losses: Array = field(default_factory=lambda: np.empty((0, 0)))


class _Continual(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: tasks, steps, history. One weight vector for each output, learned apart."""

    fit_intercept: bool
    keep_history: bool
    n_steps_: int
    _scales: ClassVar[tuple[str, ...]]  # parameters that set the scale of weights or losses, and may not change
    _scaled_by: dict[str, Any]
    _weights: Array  # (outputs, d), or d + 1 with the intercept last
    _history: _History | None

    # ------------------------------------------------------------------------------------------- what differs

    @abstractmethod
    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        """Validated X, the targets as columns, names for these, and attributes to set once the call has succeeded."""

    @abstractmethod
    def _run(self, call: _Call, output: int, w: Array) -> Trajectory:
        """Learn one output, task after task."""

    @abstractmethod
    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        """Losses of one output, (iterates, tasks)."""

    @abstractmethod
    def _publish(self, runs: Sequence[Trajectory]) -> None:
        """Set coef_ and intercept_ from the weights."""

    def _kept(self, task: Task) -> Task:
        """What the history keeps of a task."""
        return task[0].copy(), task[1].copy()

    # ---------------------------------------------------------------------------------------------- learning

    def _forget(self) -> None:
        for name in [name for name in vars(self) if name.endswith("_") or name in ("_weights", "_history", "_flat")]:
            delattr(self, name)

    def _learn(self, X: Any, y: Any, task_id: Any, order: Any, classes: Any = None) -> Self:
        fresh = not hasattr(self, "_weights")
        matrix, targets, outputs, attributes = self._read(X, y, fresh, classes)
        matrix = self._with_constant(matrix)
        start = np.zeros((targets.shape[1], matrix.shape[1])) if fresh else self._weights
        if start.shape[1] != matrix.shape[1]:
            raise InvalidInputError("fit_intercept was changed between two tasks; `fit` starts anew")
        scale = {name: getattr(self, name) for name in self._scales}
        for name, value in scale.items():
            if not fresh and self._scaled_by[name] != value:
                raise InvalidInputError(f"{name} was changed between two tasks; `fit` starts anew")
        history = None if not self.keep_history else _History() if fresh else self._history
        ids, members, visits = _visits(task_id, order, len(targets), {} if history is None else history.ids)
        tasks = [(matrix[rows], targets[rows]) for rows in members]
        marks = [] if history is None else [_mark(history, *pair) for pair in zip(ids, tasks, strict=True)]
        call = _Call(outputs, ids, tasks, visits, len(visits) if history is None else 1)
        runs = [self._run(call, output, w) for output, w in enumerate(start)]

        # all went well: from here on the estimator changes
        for name, value in attributes.items():
            setattr(self, name, value)
        if history is not None:
            self._remember(history, call, marks)
            history.iterates += [start] if fresh else []
            history.iterates += list(np.stack([one.scaled_iterates[1:] for one in runs], axis=1))
        self._history = history
        self._scaled_by = scale
        self._weights = np.stack([one.iterates[-1] for one in runs])
        self.n_steps_ = (0 if fresh else self.n_steps_) + len(visits)
        self._publish(runs)
        return self

    def _remember(self, history: _History, call: _Call, marks: list[bytes]) -> None:
        numbers = []
        for name, task, mark in zip(call.ids, call.tasks, marks, strict=True):
            if name not in history.ids:
                history.ids[name] = len(history.ids)
                history.marks.append(mark)
                history.tasks.append(self._kept(task))
            numbers.append(history.ids[name])
        history.order.extend(numbers[visit] for visit in call.visits)

    def _with_constant(self, matrix: Matrix) -> Matrix:
        if not self.fit_intercept:
            return matrix
        ones = np.ones((matrix.shape[0], 1))
        if not is_sparse(matrix):
            return np.hstack([matrix, ones])
        from scipy.sparse import csr_array, hstack

        return csr_array(hstack([matrix, ones]))

    def _split(self) -> tuple[Array, Array]:
        """Coefficients (outputs, d) and intercepts (outputs,)."""
        if self.fit_intercept:
            return self._weights[:, :-1].copy(), self._weights[:, -1].copy()
        return self._weights.copy(), np.zeros(len(self._weights))

    def _scores(self, X: Any) -> Array:
        """x.w for every output, (rows, outputs)."""
        check_is_fitted(self, "coef_")
        matrix = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        scores: Array = matrix @ coef.T + intercept
        return scores

    # ----------------------------------------------------------------------------------------------- history

    @property
    def _past(self) -> _History:
        check_is_fitted(self, "coef_")
        if self._history is None:
            raise AttributeError("no history was kept; fit anew with keep_history=True")
        return self._history

    @property
    def task_ids_(self) -> list[Hashable]:
        """The tasks, in the order in which they first came; a number where none was given."""
        return list(self._past.ids)

    @property
    def order_(self) -> IntArray:
        """(k,) the task of every step, as its place in `task_ids_`."""
        return np.array(self._past.order, dtype=np.int64)

    @property
    def loss_matrix_(self) -> Array:
        """(k + 1, T) the loss of every task after every step, from the start at 0; those learned later included."""
        past = self._past
        shape = len(past.iterates), len(past.tasks)
        rows, columns = past.losses.shape
        if past.losses.shape != shape:
            table = np.zeros(shape)
            table[:rows, :columns] = past.losses
            for output in range(len(self._weights)):
                path = [iterate[output] for iterate in past.iterates]
                if columns < shape[1] and rows:
                    table[:rows, columns:] += self._task_losses(output, past.tasks[columns:], path[:rows])
                table[rows:] += self._task_losses(output, past.tasks, path[rows:])
            past.losses = table
        return past.losses.copy()

    @property
    def forgetting_(self) -> Array:
        """(k,) F(1), ..., F(k): the mean over the visits so far of the loss now minus the loss when just learned."""
        return metrics.paper_forgetting(self.order_, self.loss_matrix_[1:])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ContinualRegressor(RegressorMixin, _Continual):  # type: ignore[misc]
    """Linear regression that learns one task after another, each to convergence.

    A step is w <- w + X^+ (y - X w), the solution of the task nearest to w (block Kaczmarz; the nearest least-squares
    solution where the task has none). `fit` starts anew from w = 0, `partial_fit` goes on. Several outputs are learned
    apart, and their losses added; each costs one singular value decomposition per task.

    Args:
        fit_intercept: add a constant feature of value 1, which is learned and counted in |w| like any other.
        keep_history: keep the iterates and, of each task, its rows (or, if there are more rows than columns, the
            triangle of their QR factorisation, with the same losses). Without it nothing of the past is stored.
        loss: "sum" for L_m(w) = 1/2 |X_m w - y_m|^2, or "mean" to divide by n_m. It changes the history only.

    Attributes:
        coef_: (d,), or (outputs, d).
        intercept_: a number, or (outputs,).
        n_steps_: tasks learned since `fit`, repetitions counted.
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

    def fit(self, X: Any, y: Any, task_id: Any = None, order: Sequence[Any] | None = None) -> Self:
        """Forget all, then learn.

        Args:
            X: (n, d), dense or sparse.
            y: (n,), or (n, outputs).
            task_id: None or one value: the rows are one task. n values: rows of equal value are a task, and tasks are
                learned in the order in which they first appear.
            order: task ids in the order to be learned, with repetitions if wanted; others are left out.

        >>> import forgetting as fg
        >>> X, y = [[1.0, 0.0], [0.6, 0.8]], [1.0, 2.0]
        >>> fg.ContinualRegressor().fit(X, y, task_id=["a", "b"], order=["b", "a", "b"]).forgetting_.round(4)
        array([0.    , 0.0036, 0.0009])
        """
        self._forget()
        return self._learn(X, y, task_id, order)

    def partial_fit(self, X: Any, y: Any, task_id: Any = None, order: Sequence[Any] | None = None) -> Self:
        """Learn one more task, or several with n values in `task_id`; arguments as for `fit`.

        A task id that came before is a repetition, and must come with the same data. A call that raises changes
        nothing.
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

    def _run(self, call: _Call, output: int, w: Array) -> Trajectory:
        problem = RegressionTasks(*_columns(call.tasks, output), copy=False)
        return whole_run(problem, Explicit(call.visits), len(call.visits), w0=w, record_every=call.every)

    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        problem = RegressionTasks(*_columns(tasks, output), copy=False)
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


class ContinualClassifier(ClassifierMixin, _Continual):  # type: ignore[misc]
    """Linear classification that learns one task after another, each to convergence.

    With two classes a step is w <- argmin_v sum_i exp(-y_i x_i.v) + lambda/2 |v - w|^2, which any data allow; or, in
    the limit of small lambda, the nearest w with margins y_i x_i.w >= 1 on the task. More classes are learned one
    versus rest, apart, and the largest x.w names the class. `fit` starts anew from w = 0, `partial_fit` goes on.

    Args:
        log_lambda: log(lambda), at most 0; or "limit" for projections, with `NotSeparableError` for a task that is
            not separable (each class from all others).
        fit_intercept: add a constant feature of value 1, which is learned and counted in |w| like any other.
        keep_history: keep the iterates and the rows of each task. Without it nothing of the past is stored.
        tol: by how much margins may be off, relative to their size; not used in the limit.
        max_iter: Newton steps per task and class before it is given up with a `ConvergenceWarning`.

    Losses are L_m(w) = 1/2 max_i (1 - y_i x_i.w)_+^2, added over classes. At a finite lambda they are those of
    w / log(1/lambda), as in `fg.run`; `coef_` is as learned. Sparse X is accepted and stored dense.

    Attributes:
        classes_: the labels, sorted.
        coef_: (1, d) for two classes, else (classes, d).
        intercept_: (1,) or (classes,).
        n_steps_: tasks learned since `fit`, repetitions counted.
        n_iter_: the largest number of inner steps that a task took in the last call.
        task_ids_, order_, loss_matrix_, forgetting_: the history, as in a `Trajectory`; and `accuracy_matrix_`.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import forgetting as fg
    >>> model = fg.ContinualClassifier(log_lambda="limit")
    >>> model.partial_fit([[1.0, 0.0]], ["cat"], classes=["ant", "cat"]).coef_
    array([[1., 0.]])
    >>> model.partial_fit([[-1.0, 2.0], [0.0, -4.0]], ["cat", "ant"]).coef_
    array([[0.6, 0.8]])
    >>> model.predict([[3.0, -1.0], [-3.0, 1.0]]), model.forgetting_.round(12)
    (array(['cat', 'ant'], dtype='<U3'), array([0.  , 0.04]))
    """

    classes_: Any
    n_iter_: int

    _scales = ("log_lambda",)

    def __init__(
        self,
        log_lambda: float | Literal["limit"] = -10.0,
        *,
        fit_intercept: bool = False,
        keep_history: bool = True,
        tol: float = 1e-11,
        max_iter: int = 500,
    ) -> None:
        self.log_lambda = log_lambda
        self.fit_intercept = fit_intercept
        self.keep_history = keep_history
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, task_id: Any = None, order: Sequence[Any] | None = None) -> Self:
        """Forget all, then learn.

        Args:
            X: (n, d), dense or sparse.
            y: (n,) labels, numbers or names. A task may lack classes that others have.
            task_id: None or one value: the rows are one task. n values: rows of equal value are a task, and tasks are
                learned in the order in which they first appear.
            order: task ids in the order to be learned, with repetitions if wanted; others are left out.

        >>> import forgetting as fg
        >>> X, y = [[1.0, 0.0], [-1.0, 2.0], [0.0, -4.0]], [1, 1, 0]
        >>> fg.ContinualClassifier("limit").fit(X, y, task_id=["a", "b", "b"]).forgetting_.round(12)
        array([0.  , 0.04])
        """
        self._forget()
        return self._learn(X, y, task_id, order)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, task_id: Any = None, order: Sequence[Any] | None = None
    ) -> Self:
        """Learn one more task, or several with n values in `task_id`; arguments as for `fit`.

        All classes are given in `classes` at the first call, if its y does not have them all. A task id that came
        before is a repetition, and must come with the same data. A call that raises changes nothing.
        """
        return self._learn(X, y, task_id, order, classes)

    def decision_function(self, X: Any) -> Array:
        """x.w, of shape (n,) for two classes (above 0: the second), else (n, classes)."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Any:
        """The labels."""
        scores = self._scores(X)
        return self.classes_[_decided(scores)]

    @property
    def accuracy_matrix_(self) -> Array:
        """(k + 1, T) the share of rows of every task that are classified correctly after every step."""
        past = self._past
        truth = [_decided(signs) for _, signs in past.tasks]
        return np.array(
            [
                [np.mean(_decided(X @ w.T) == true) for (X, _), true in zip(past.tasks, truth, strict=True)]
                for w in past.iterates
            ]
        )

    @property
    def _scheme(self) -> Scheme:
        if isinstance(self.log_lambda, str):
            if self.log_lambda != "limit":
                raise InvalidInputError(f"log_lambda must be a number or 'limit', got {self.log_lambda!r}")
            return POCS()
        return WeaklyRegularized(self.log_lambda, self.tol, self.max_iter)

    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        matrix, labels = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=fresh)
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

    def _run(self, call: _Call, output: int, w: Array) -> Trajectory:
        problem, steps = _binary(call.tasks, output), len(call.visits)
        try:
            done = whole_run(problem, Explicit(call.visits), steps, scheme=self._scheme, w0=w, record_every=call.every)
        except NotSeparableError as error:
            which = "" if error.task is None else f"task id {call.ids[error.task]!r}, "
            raise NotSeparableError(
                f"{which}{call.outputs[output]}: {error}, and so does a finite log_lambda here",
                certificate=error.certificate,
                residual=error.residual,
                task=error.task,
            ) from error
        for complaint in done.complaints:
            warnings.warn(f"{call.outputs[output]}: {complaint}", ConvergenceWarning, stacklevel=4)
        return done

    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        problem = _binary(tasks, output)
        return np.array([problem.task_losses(w) for w in iterates]).reshape(len(iterates), -1)[:, : len(tasks)]

    def _publish(self, runs: Sequence[Trajectory]) -> None:
        self.coef_, self.intercept_ = self._split()
        self.n_iter_ = max(int(one.inner_steps.max()) for one in runs)


# ----------------------------------------------------------------------------------------------------------- helpers


def _columns(tasks: Sequence[Task], output: int) -> tuple[list[Matrix], list[Array]]:
    return [X for X, _ in tasks], [Y[:, output] for _, Y in tasks]


def _binary(tasks: Sequence[Task], output: int) -> ClassificationTasks:
    """The tasks as one problem, which must have two labels: if there is one only, a task that is never learned has the
    other. It is a row (-x, -y), which asks of w what (x, y) asks.
    """
    matrices, signs = _columns(tasks, output)
    if len({sign for column in signs for sign in np.unique(column).tolist()}) == 1:
        matrices, signs = [*matrices, -matrices[0][:1]], [*signs, -signs[0][:1]]
    return ClassificationTasks(matrices, signs)


def _decided(scores: Array) -> Any:
    """The place of the class: the larger score, or above 0."""
    return np.argmax(scores, axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(np.int64)


def _known_classes(labels: Any, given: Any, before: Any) -> Any:
    """All classes, sorted."""
    if before is not None:
        if given is not None and not np.array_equal(np.unique(given), before):
            raise InvalidInputError(f"classes {list(given)} differ from those of the first call, {before.tolist()}")
        return before
    known = np.unique(labels if given is None else given)
    if len(known) < 2:
        raise InvalidInputError(
            f"one class only, {known.tolist()[0]!r}; two or more are needed: name them in classes= of partial_fit"
        )
    return known


def _visits(
    task_id: Any, order: Sequence[Any] | None, rows: int, taken: dict[Hashable, int]
) -> tuple[list[Hashable], list[Any], IntArray]:
    """Ids and rows of the distinct tasks of a call, and the order in which these are learned."""
    ids: list[Hashable]
    members: list[Any]
    if np.ndim(task_id) == 0:
        number = len(taken)
        while number in taken:
            number += 1
        ids, members = [number if task_id is None else _plain(task_id)], [slice(None)]
    else:
        owner = np.asarray(task_id)
        if owner.shape != (rows,):
            raise InvalidInputError(f"task_id: expected one value, or one for each of {rows} rows; got {owner.shape}")
        members = list(group_rows(owner, rows, "task_id")[1])
        ids = [_plain(owner[group[0]]) for group in members]
    if order is None:
        return ids, members, np.arange(len(ids))
    place = {name: number for number, name in enumerate(ids)}
    wanted = [_plain(name) for name in order]
    for name in wanted:
        if name not in place:
            raise InvalidInputError(f"order names {name!r}, which is not in task_id; the tasks are {ids}")
    if not wanted:
        raise InvalidInputError("order is empty; name at least one task")
    distinct = {name: number for number, name in enumerate(dict.fromkeys(wanted))}
    return list(distinct), [members[place[name]] for name in distinct], np.array([distinct[name] for name in wanted])


def _plain(value: Any) -> Hashable:
    """A task id as Python has it, so that 1 and np.int64(1) are the same in print too."""
    plain = value.item() if isinstance(value, np.generic | np.ndarray) else value
    if not isinstance(plain, Hashable) or plain != plain:
        raise InvalidInputError(f"a task id is a number or a name, got {plain!r}")
    return plain


def _mark(history: _History, name: Hashable, task: Task) -> bytes:
    """A fingerprint of the data; an error if the task came before with others."""
    matrix, targets = task
    parts = (matrix.indptr, matrix.indices, matrix.data) if is_sparse(matrix) else (matrix,)
    digest = hashlib.blake2b(repr((matrix.shape, targets.shape)).encode())
    for part in (*parts, targets):
        digest.update(np.ascontiguousarray(part).tobytes())
    mark = digest.digest()
    if name in history.ids and history.marks[history.ids[name]] != mark:
        raise InvalidInputError(
            f"task_id {name!r} came before with other data; a task is a fixed set of rows, so give new rows another id"
        )
    return mark
