"""The base class of the estimators: reads the tasks of a call, learns them and keeps the history."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from forgetting._arrays import Array, IntArray, any_array, fingerprint, group_rows, is_sparse
from forgetting.dynamics import metrics
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import InvalidInputError
from forgetting.geometry import Matrix

__all__ = ["Call", "Continual", "History", "Task", "columns"]

Task = tuple[Matrix, Array]  # the rows of a task, and its targets with a column for each output


@dataclass(frozen=True, eq=False)
class Call:
    """The tasks of a call of `fit` or `partial_fit`, and the order in which they are learned (`visits`)."""

    outputs: list[str]
    ids: list[Hashable]
    tasks: list[Task]
    visits: IntArray
    every: int  # every how many steps an iterate is recorded


@dataclass(eq=False)
class History:
    """All tasks so far, all (scaled) iterates, and the losses computed so far."""

    ids: dict[Hashable, int] = field(default_factory=dict)
    marks: list[bytes] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    iterates: list[Array] = field(default_factory=list)
    losses: Array = field(default_factory=lambda: np.empty((0, 0)))


class Continual(BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators; each output has its own weight vector and is learned separately."""

    fit_intercept: bool
    keep_history: bool
    n_steps_: int
    _scales: ClassVar[tuple[str, ...]]  # parameters that must not change between calls of `partial_fit`
    _scaled_by: dict[str, Any]
    _weights: Array  # (outputs, d), or (outputs, d + 1) with the intercept last
    _history: History | None

    # ---------------------------------------------------------------------------------- implemented by each estimator

    @abstractmethod
    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        """Validated X, the targets as columns, names of the columns, and attributes to set after the call succeeds."""

    @abstractmethod
    def _run(self, call: Call, output: int, w: Array) -> Trajectory:
        """Learn the tasks of the call for an output, from weights w."""

    @abstractmethod
    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        """Losses of an output, (iterates, tasks)."""

    @abstractmethod
    def _publish(self, runs: Sequence[Trajectory]) -> None:
        """Set coef_ and intercept_ from the weights."""

    def _kept(self, task: Task) -> Task:
        """The copy of a task that the history keeps."""
        return task[0].copy(), task[1].copy()

    # ---------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, task_id: Any = None, order: Sequence[Any] | None = None) -> Self:
        """Discard what was learned, and learn the given tasks from w = 0.

        Args:
            X: (n, d), dense or sparse.
            y: (n,) values, or (n, outputs), for regression; (n,) labels, numbers or names, for classification, where a
                task may lack classes that others have.
            task_id: None or a single value if all rows form a task; else n values, where rows of equal value form a
                task. Tasks are learned in order of their first row.
            order: task ids in the order to be learned, repetitions allowed; tasks that are not listed are left out.

        >>> import forgetting as fg
        >>> X, y = [[1.0, 0.0], [0.6, 0.8]], [1.0, 2.0]
        >>> fg.ContinualRegressor().fit(X, y, task_id=["a", "b"], order=["b", "a", "b"]).forgetting_.round(4)
        array([0.    , 0.0036, 0.0009])
        >>> X, y = [[1.0, 0.0], [-1.0, 2.0], [0.0, -4.0]], [1, 1, 0]
        >>> fg.ContinualClassifier("limit").fit(X, y, task_id=["a", "b", "b"]).forgetting_.round(12)
        array([0.  , 0.04])
        """
        for name in [name for name in vars(self) if name.endswith("_") or name in ("_weights", "_history", "_flat")]:
            delattr(self, name)
        return self._learn(X, y, task_id, order)

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
        history = None if not self.keep_history else History() if fresh else self._history
        ids, members, visits = _visits(task_id, order, len(targets), {} if history is None else history.ids)
        tasks = [(matrix[rows], targets[rows]) for rows in members]
        marks = [] if history is None else [_mark(history, *pair) for pair in zip(ids, tasks, strict=True)]
        call = Call(outputs, ids, tasks, visits, len(visits) if history is None else 1)
        runs = [self._run(call, output, w) for output, w in enumerate(start)]

        # nothing can fail from here on: only now the estimator changes
        for name, value in attributes.items():
            setattr(self, name, value)
        if history is not None:
            self._remember(history, call, marks)
            history.iterates += [start] if fresh else []
            history.iterates += list(np.stack([trajectory.scaled_iterates[1:] for trajectory in runs], axis=1))
        self._history = history
        self._scaled_by = scale
        self._weights = np.stack([trajectory.iterates[-1] for trajectory in runs])
        self.n_steps_ = (0 if fresh else self.n_steps_) + len(visits)
        self._publish(runs)
        return self

    def _remember(self, history: History, call: Call, marks: list[bytes]) -> None:
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
        with np.errstate(over="ignore", invalid="ignore"):
            scores: Array = matrix @ coef.T + intercept
        beyond = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if beyond.size:
            raise InvalidInputError(f"X: row {beyond[0]} is so large that x.w overflows; rescale it")
        return scores

    # ----------------------------------------------------------------------------------------------- history

    @property
    def _past(self) -> History:
        check_is_fitted(self, "coef_")
        if self._history is None:
            raise AttributeError("no history was kept; fit anew with keep_history=True")
        return self._history

    @property
    def task_ids_(self) -> list[Hashable]:
        """The ids of the tasks, in order of their first call; a number for a task without an id."""
        return list(self._past.ids)

    @property
    def order_(self) -> IntArray:
        """(k,) the task of every step, as an index into `task_ids_`."""
        return np.array(self._past.order, dtype=np.int64)

    @property
    def loss_matrix_(self) -> Array:
        """(k + 1, T) the loss of every task at the start and after every step, including tasks learned later."""
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
        """(k,) F(1), ..., F(k): the mean over the steps so far of (current loss of the task - loss right after it was
        learned)."""
        return metrics.paper_forgetting(self.order_, self.loss_matrix_[1:])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def columns(tasks: Sequence[Task], output: int) -> tuple[list[Matrix], list[Array]]:
    """The rows of every task, and the targets of every task for an output."""
    return [X for X, _ in tasks], [Y[:, output] for _, Y in tasks]


def _visits(
    task_id: Any, order: Sequence[Any] | None, rows: int, taken: dict[Hashable, int]
) -> tuple[list[Hashable], list[Any], IntArray]:
    """Ids and row numbers of the distinct tasks of a call, and the order in which the tasks are learned."""
    ids: list[Hashable]
    members: list[Any]
    if any_array(task_id, "task_id").ndim == 0:
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
    """A task id as a Python object, so that 1 and np.int64(1) print alike."""
    plain = value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value
    if not isinstance(plain, Hashable) or plain != plain:
        raise InvalidInputError(f"a task id is a number or a name, got {plain!r}")
    return plain


def _mark(history: History, name: Hashable, task: Task) -> bytes:
    """A hash of the data of a task; an error if the history has other data for the task."""
    mark = fingerprint(*task)
    if name in history.ids and history.marks[history.ids[name]] != mark:
        raise InvalidInputError(
            f"task_id {name!r} came before with other data; a task is a fixed set of rows, so give new rows another id"
        )
    return mark
