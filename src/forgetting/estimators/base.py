"""The base class of the estimators: reads the tasks of a call, learns them and keeps the history."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from forgetting.core.arrays import Array, IntArray, any_array, as_list, fingerprint, real_array
from forgetting.core.groups import group_codes
from forgetting.core.numerical import quietly
from forgetting.core.text import nearest
from forgetting.dynamics import metrics
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import ChoiceWarning, DataWarning, InvalidInputError
from forgetting.geometry import Matrix
from forgetting.schemes import Scheme
from forgetting.schemes.base import as_scheme
from forgetting.tasks.preparation import with_ones

INNER = "scheme__"  # what the names of the scheme's own parameters begin with


class Task(NamedTuple):
    """The rows of a task, its targets with a column for each output, and the weights of its rows (None: all 1)."""

    matrix: Matrix
    targets: Array
    weights: Array | None = None


@dataclass(frozen=True, eq=False)
class FitCall:
    """The tasks of a call of `fit` or `partial_fit`, and the order in which they are learned (`visits`)."""

    outputs: list[str]
    ids: list[Hashable]
    tasks: list[Task]
    visits: IntArray
    every: int  # every how many steps an iterate is recorded
    seed: int  # for schemes that draw random numbers: the number of steps before the call


@dataclass(eq=False)
class LearningHistory:
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
    scheme: Any
    keep_history: bool
    n_steps_: int
    _scales: ClassVar[tuple[str, ...]]  # parameters that must not change between calls of `partial_fit`
    _scaled_by: dict[str, Any]
    _weights: Array  # (outputs, d), or (outputs, d + 1) with the intercept last
    _history: LearningHistory | None
    _task_column: str | None = None  # the column of X that named the tasks; not a feature

    # ---------------------------------------------------------------------------------- implemented by each estimator

    @abstractmethod
    def _read(self, X: Any, y: Any, fresh: bool, classes: Any) -> tuple[Matrix, Array, list[str], dict[str, Any]]:
        """Validated X, the targets as columns, names of the columns, and attributes to set after the call succeeds."""

    @abstractmethod
    def _run(self, call: FitCall, output: int, w: Array) -> Trajectory:
        """Learn the tasks of the call for an output, from weights w."""

    @abstractmethod
    def _task_losses(self, output: int, tasks: Sequence[Task], iterates: Sequence[Array]) -> Array:
        """Losses of an output, (iterates, tasks)."""

    @abstractmethod
    def _publish(self, runs: Sequence[Trajectory]) -> None:
        """Set coef_ and intercept_ from the weights."""

    @abstractmethod
    def _kept(self, task: Task) -> Task:
        """The copy of a task that the history keeps."""

    # -------------------------------------------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with `deep`, those of the scheme too, as `scheme__lam`.

        >>> import forgetting as fg
        >>> fg.ContinualRegressor(scheme=fg.schemes.Ridge(0.1)).get_params()["scheme__lam"]
        0.1
        """
        params: dict[str, Any] = super().get_params(deep)
        if deep and isinstance(self.scheme, Scheme):  # else it is None, or words
            params |= {INNER + name: getattr(self.scheme, name) for name in _names(self.scheme)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `scheme__lam=0.5` puts a copy of the scheme with another `lam` in its place.

        >>> import forgetting as fg
        >>> fg.ContinualRegressor(scheme="kaczmarz").set_params(scheme=fg.schemes.Ridge(0.1), scheme__lam=0.5).scheme
        Ridge(lam=0.5)
        """
        inner = {name.removeprefix(INNER): value for name, value in params.items() if name.startswith(INNER)}
        super().set_params(**{name: value for name, value in params.items() if not name.startswith(INNER)})
        if inner:
            scheme = self._given_scheme
            if scheme is None:
                raise InvalidInputError(
                    f"{INNER}{next(iter(inner))} is a parameter of a scheme, but scheme is None; give scheme= too"
                )
            for name in inner:
                if name not in _names(scheme):
                    known = nearest(name, _names(scheme)) if _names(scheme) else "; it has none"
                    raise InvalidInputError(f"{INNER}{name}: {scheme} has no parameter {name!r}{known}")
            self.scheme = replace(scheme, **inner)
        return self

    @property
    def _given_scheme(self) -> Scheme | None:
        """The scheme that the user chose, None for the natural one."""
        return None if self.scheme is None else as_scheme(self.scheme)

    # ---------------------------------------------------------------------------------------------- learning

    def fit(
        self,
        X: Any,
        y: Any,
        task_id: Any = None,
        order: Sequence[Any] | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Discard what was learned, and learn the given tasks from w = 0.

        Args:
            X: (n, d), dense or sparse, or a table of pandas or polars.
            y: (n,) values, or (n, outputs), for regression; (n,) labels, numbers or names, for classification, where a
                task may lack classes that others have.
            task_id: None or a single value if all rows form a task; else n values, where rows of equal value form a
                task, or the name of the column of the table X that holds them (which is then no feature). Tasks are
                learned in the order of the rows if the rows of each come one after another. Where rows are mixed, as
                after a shuffle, tasks are learned in sorted order if all ids are numbers, dates, or numbers after the
                same words (task 2 before task 10); else in order of first appearance. A `ChoiceWarning` says which.
            order: task ids in the order to be learned, repetitions allowed; tasks that are not listed are left out,
                and ids that no row has (as in a fold of a cross-validation) are skipped.
            sample_weight: n weights of at least 0, or None for weights of 1. A row of weight 2 counts like two equal
                rows, and a row of weight 0 is left out.

        >>> import forgetting as fg
        >>> X, y = [[1.0, 0.0], [0.6, 0.8]], [1.0, 2.0]
        >>> model = fg.ContinualRegressor(fit_intercept=False)
        >>> model.fit(X, y, task_id=["a", "b"], order=["b", "a", "b"]).forgetting_.round(4)
        array([0.    , 0.0036, 0.0009])
        >>> X, y = [[1.0, 0.0], [-1.0, 2.0], [0.0, -4.0]], [1, 1, 0]
        >>> model = fg.ContinualClassifier("limit", fit_intercept=False)
        >>> model.fit(X, y, task_id=["a", "b", "b"]).forgetting_.round(12)
        array([0.  , 0.04])
        """
        names = "_weights", "_history", "_flat", "_task_column"
        for name in [name for name in vars(self) if name.endswith("_") or name in names]:
            delattr(self, name)
        known = column_names(X)
        if isinstance(task_id, str) and known and task_id not in known:
            raise InvalidInputError(f"task_id: X has no column {task_id!r}{nearest(task_id, map(str, known))}")
        return self._learn(X, y, task_id, order, sample_weight)

    def _learn(self, X: Any, y: Any, task_id: Any, order: Any, sample_weight: Any, classes: Any = None) -> Self:
        fresh = not hasattr(self, "_weights")
        named = isinstance(task_id, str) and task_id in column_names(X)
        column = task_id if named else self._task_column
        owners = X[column] if named else task_id
        matrix, targets, outputs, attributes = self._read(_features(X, column), y, fresh, classes)
        matrix = with_ones(matrix) if self.fit_intercept else matrix
        start = np.zeros((targets.shape[1], matrix.shape[1])) if fresh else self._weights
        self._check_unchanged(fresh, start.shape[1] == matrix.shape[1])
        history = None if not self.keep_history else LearningHistory() if fresh else self._history
        weights = read_weights(sample_weight, len(targets))
        visits = read_visits(owners, order, len(targets), [] if history is None else list(history.ids), weights)
        tasks = [Task(matrix[rows], targets[rows], None if weights is None else weights[rows]) for rows in visits.rows]
        marks = [] if history is None else [_mark(history, *pair) for pair in zip(visits.ids, tasks, strict=True)]
        before = 0 if fresh else self.n_steps_
        every = len(visits.order) if history is None else 1
        call = FitCall(outputs, visits.ids, tasks, visits.order, every, before)
        runs = []
        for output, w in enumerate(start):  # a loop, so that warnings point to the caller
            runs.append(self._run(call, output, w))
        final = np.stack([trajectory.iterates[-1] for trajectory in runs])
        if not np.isfinite(final).all():
            raise InvalidInputError(f"{runs[0].scheme} diverged to values that are not finite; use a smaller step size")

        # nothing can fail from here on: only now the estimator changes
        for name, value in attributes.items():
            setattr(self, name, value)
        if history is not None:
            self._remember(history, call, marks)
            history.iterates += [start] if fresh else []
            history.iterates += list(np.stack([trajectory.scaled_iterates[1:] for trajectory in runs], axis=1))
        self._history = history
        self._scaled_by = {name: getattr(self, name) for name in self._scales}
        self._task_column = column
        self._weights = final
        self.n_steps_ = before + len(visits.order)
        self._publish(runs)
        return self

    def _check_unchanged(self, fresh: bool, same_width: bool) -> None:
        """Raise if `partial_fit` cannot go on from the weights so far."""
        scheme = self._given_scheme
        if fresh:
            return
        if not same_width:
            raise InvalidInputError("fit_intercept was changed between two tasks; `fit` starts anew")
        for name in self._scales:
            if self._scaled_by[name] != getattr(self, name):
                raise InvalidInputError(f"{name} was changed between two tasks; `fit` starts anew")
        if scheme is not None and scheme.remembers:
            raise InvalidInputError(
                f"{scheme} remembers more of earlier tasks than the weights, which partial_fit goes on from; "
                "give all tasks to one call of `fit`"
            )
        if scheme is not None and scheme.depends_on_k:
            raise InvalidInputError(
                f"{scheme} depends on the number of all steps, which partial_fit does not know; give all tasks to one "
                "call of `fit`"
            )

    def _remember(self, history: LearningHistory, call: FitCall, marks: list[bytes]) -> None:
        numbers = []
        for name, task, mark in zip(call.ids, call.tasks, marks, strict=True):
            if name not in history.ids:
                history.ids[name] = len(history.ids)
                history.marks.append(mark)
                history.tasks.append(self._kept(task))
            numbers.append(history.ids[name])
        history.order.extend(numbers[visit] for visit in call.visits)

    def _split(self) -> tuple[Array, Array]:
        """Coefficients (outputs, d) and intercepts (outputs,)."""
        if self.fit_intercept:
            return self._weights[:, :-1].copy(), self._weights[:, -1].copy()
        return self._weights.copy(), np.zeros(len(self._weights))

    def _scores(self, X: Any) -> Array:
        """x.w for every output, (rows, outputs)."""
        check_is_fitted(self, "coef_")
        features = _features(X, self._task_column)
        matrix = validate_data(self, features, accept_sparse="csr", dtype=np.float64, reset=False)
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        with quietly():
            scores: Array = matrix @ coef.T + intercept
        beyond = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if beyond.size:
            raise InvalidInputError(f"X: row {beyond[0]} is so large that x.w overflows; rescale it")
        return scores

    # ----------------------------------------------------------------------------------------------- history

    @property
    def _past(self) -> LearningHistory:
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
    return [task.matrix for task in tasks], [task.targets[:, output] for task in tasks]


def warn_about(output: str, complaints: Sequence[str]) -> None:
    """A `ConvergenceWarning` for each complaint, which points to the call of `fit` or `partial_fit`."""
    for complaint in complaints:
        warnings.warn(f"{output}: {complaint}", ConvergenceWarning, stacklevel=5)


def _features(X: Any, column: str | None) -> Any:
    """X without the column that names the tasks, where X is a table that has one."""
    return X if column is None or column not in column_names(X) else without_column(X, column)


def _names(scheme: Scheme) -> list[str]:
    """The names of the parameters of a scheme."""
    return [parameter.name for parameter in fields(scheme) if parameter.init]


def _mark(history: LearningHistory, name: Hashable, task: Task) -> bytes:
    """A hash of the data of a task; an error if the history has other data for the task."""
    mark = fingerprint(*(part for part in task if part is not None))
    if name in history.ids and history.marks[history.ids[name]] != mark:
        raise InvalidInputError(
            f"task_id {name!r} came before with other data; a task is a fixed set of rows, so give new rows another id"
        )
    return mark


# -------------------------------------------------------------------------------------------------- the tasks of a call


def column_names(X: Any) -> list[Any]:
    """The names of the columns of a table (pandas, polars); an empty list for arrays and lists."""
    names = getattr(X, "columns", None)
    return [] if names is None else list(names)


def without_column(X: Any, name: str) -> Any:
    """The table without one of its columns."""
    return X[[other for other in column_names(X) if other != name]]


def read_weights(sample_weight: Any, rows: int) -> Array | None:
    """One weight of at least 0 for each row; None where no weights are given.

    >>> read_weights([1, 0], 2), read_weights(None, 2)
    (array([1., 0.]), None)
    >>> read_weights([1, -1], 2)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: sample_weight[1] is -1, but weights are at least 0 (0 leaves the row out)
    """
    if sample_weight is None:
        return None
    weights = real_array(sample_weight, "sample_weight", squares=True)
    weights = np.full(rows, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (rows,):
        raise InvalidInputError(
            f"sample_weight: expected one weight for each of {rows} rows, got shape {weights.shape}"
        )
    negative = np.flatnonzero(weights < 0)
    if negative.size:
        value = weights[negative[0]]
        raise InvalidInputError(
            f"sample_weight[{negative[0]}] is {value:g}, but weights are at least 0 (0 leaves the row out)"
        )
    if not weights.any():
        raise InvalidInputError("sample_weight: every weight is zero, so that there is no row to learn from")
    return weights


@dataclass(frozen=True, eq=False)
class TaskVisits:
    """The distinct tasks of a call, their row numbers, and the order in which they are learned."""

    ids: list[Hashable]
    rows: list[Any]  # row numbers, or a slice for all rows
    order: IntArray  # numbers of tasks in `ids`


def read_visits(
    task_id: Any, order: Sequence[Any] | None, rows: int, taken: Sequence[Hashable], weights: Array | None = None
) -> TaskVisits:
    """The tasks of a call and the order in which they are learned: the given one, else that of `Groups`.

    Rows of weight 0 are left out, and so are tasks without any other rows. An order may name tasks that are not there.

    >>> read_visits(["b", "a", "b"], ["b", "c", "a"], 3, []).rows
    [array([0, 2]), array([1])]
    >>> read_visits([10, 9, 10], None, 3, []).ids
    [9, 10]
    """
    kept = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
    if any_array(task_id, "task_id").ndim == 0:
        tasks = single_task(task_id, kept, taken)
    else:
        tasks = _grouped(task_id, kept, rows, given=order is not None)
    if order is None:
        wanted = list(tasks)
    else:
        named = [plain_id(name) for name in as_list(order, "order")]
        wanted = [name for name in named if name in tasks]
        if not named:
            raise InvalidInputError("order is empty; name at least one task")
        if not wanted:
            known = nearest(named[0], map(str, tasks), "its tasks are")
            raise InvalidInputError(f"order names none of the tasks of this call: {named[0]!r:.60}{known}")
    number = {name: place for place, name in enumerate(dict.fromkeys(wanted))}
    return TaskVisits(list(number), [tasks[name] for name in number], np.array([number[name] for name in wanted]))


def single_task(task_id: Any, kept: Any, taken: Sequence[Hashable]) -> dict[Hashable, Any]:
    """One task of the rows `kept`, under its id or the next free number."""
    number = len(taken)
    while number in taken:
        number += 1
    return {number if task_id is None else plain_id(task_id): kept}


def _grouped(task_id: Any, kept: Any, rows: int, *, given: bool) -> dict[Hashable, Any]:
    """The row numbers of every task among the rows `kept`; `given` says that the caller gives the order of tasks."""
    owner = np.asarray(task_id)
    if owner.shape != (rows,):
        raise InvalidInputError(f"task_id: expected one value, or one for each of {rows} rows; got {owner.shape}")
    places = np.arange(rows)[kept]
    groups = group_codes(owner[places], len(places), "task_id")
    for words in () if given else groups.decided(remedy="order= gives another order"):
        warnings.warn(words, ChoiceWarning, stacklevel=5)
    for words in groups.doubts:
        warnings.warn(words, DataWarning, stacklevel=5)
    return {plain_id(owner[own[0]]): own for own in (places[own] for own in groups.rows)}


def plain_id(value: Any) -> Hashable:
    """A task id as a Python object, so that 1 and np.int64(1) print alike."""
    plain = value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value
    if not isinstance(plain, Hashable) or plain != plain:
        raise InvalidInputError(f"a task id is a number or a name, got {plain!r}")
    return plain
