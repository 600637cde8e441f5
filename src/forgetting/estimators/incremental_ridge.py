"""Ridge regression and classification that learn rows in any order and any batches, and forget none of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d, validate_data

from forgetting.compute.devices import HOST, as_device
from forgetting.core.arrays import Array, IntArray, any_array, as_kind, as_number, is_sparse, real_array
from forgetting.core.groups import group_codes
from forgetting.core.numerical import SQUARED, quietly
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.estimators.base import plain_id, read_weights, single_task
from forgetting.figures.items import Curves, Series
from forgetting.files.records import (
    add_codec,
    checked_fields,
    dataclass_codec,
    field_values,
    read_record,
    typed,
    write_record,
)
from forgetting.geometry.ridge_state import Decomposition, RidgeState, Rows, is_elsewhere, least_score, left_out
from forgetting.results import Shown
from forgetting.tasks import RandomFeatures
from forgetting.tasks.labelled_rows import labelled_rows
from forgetting.tasks.preparation import as_feature_map
from forgetting.tasks.task_data import as_task_matrix

Choice = Literal["gcv", "tasks"]
SOURCE_ROWS = 2**24  # numbers that are read from a file at once
KIND = "incremental ridge"

add_codec(dataclass_codec(RandomFeatures, "random features"))
_drawn = lru_cache(4)(RandomFeatures.drawn)  # random numbers are drawn once for many batches


@dataclass(frozen=True, eq=False, repr=False)
class RidgePath(Shown):
    """What each of several penalties gives, and the penalty that is chosen; see `IncrementalRidge.path`.

    Attributes:
        alphas: the penalties, from the smallest.
        freedom: the degrees of freedom of the fit with each of them.
        errors: the mean squared error on the learned rows, outputs together.
        scores: what the choice minimises, for each penalty.
        criterion: what `scores` are, in words.
        coef: (penalties, outputs, d).
        intercept: (penalties, outputs).
        task_scores: (tasks, penalties), the mean squared error on each task of the model that did not learn that task;
            empty unless tasks were left out.
    """

    alphas: Array
    freedom: Array
    errors: Array
    scores: Array
    criterion: str
    coef: Array
    intercept: Array
    task_scores: Array

    @property
    def alpha(self) -> float:
        """The penalty of the least score; of equal scores the largest."""
        return least_score(self.alphas, self.scores)

    @property
    def headline(self) -> str:
        """The chosen penalty in one line."""
        return f"{len(self.alphas)} penalties: alpha = {self.alpha:.3g} has the least {self.criterion}"

    def _num_rows(self) -> int:
        return len(self.alphas)

    def _columns(self, rows: IntArray, *, full: bool) -> Mapping[str, Any]:
        values = {"alpha": self.alphas, "freedom": self.freedom, "error": self.errors, "score": self.scores}
        return {name: value[rows] if full else value[rows].tolist() for name, value in values.items()}

    def figure(self) -> Curves:
        """The score and the error on learned rows over the penalty."""
        pairs = (("score", self.criterion, self.scores), ("error", "mean squared error on learned rows", self.errors))
        series = tuple(
            Series(name, tuple(self.alphas.tolist()), tuple(v if np.isfinite(v) else None for v in values.tolist()),
                   label=label, group=place)
            for place, (name, label, values) in enumerate(pairs)
        )  # fmt: skip
        caption = f"The least {self.criterion} is at alpha = {self.alpha:.3g}."
        return Curves("path", "The path of penalties", caption, "alpha", "squared error", series)


class _Incremental(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the state, and everything that is asked of it."""

    _state: RidgeState
    _tasks: dict[Hashable, RidgeState]
    _lift: Any  # the feature map of the rows so far
    _numeric: ClassVar[bool]  # whether targets are numbers

    def __init__(
        self,
        alpha: float | Choice = 1.0,
        fit_intercept: bool = True,
        *,
        features: Any = None,
        keep_tasks: bool = False,
        device: Any = None,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.features = features
        self.keep_tasks = keep_tasks
        self.device = device

    # ------------------------------------------------------------------------------------ implemented by each estimator

    def _targets(self, y: Any, fresh: bool, classes: Any) -> tuple[Rows, int, dict[str, Any]]:
        """A function that gives the targets of some rows, their number of columns, and attributes to set."""
        raise NotImplementedError

    def _as_learned(self, state: RidgeState) -> RidgeState:
        """The state of the targets that the coefficients are for."""
        raise NotImplementedError

    def _aligned(self, other: Any) -> tuple[Callable[[Any, RidgeState], RidgeState], dict[str, Any]]:
        """A function that gives the states of either estimator the outputs of both, and attributes to set; or raise."""
        raise NotImplementedError

    def _score_rows(self, coef: Array, intercept: Array, X: Any, y: Any, weights: Array | None) -> tuple[Array, str]:
        """What held-out rows say of each of several solutions, smaller is better, and its name."""
        raise NotImplementedError

    def _shaped(self, values: Array) -> Any:
        """Coefficients, intercepts or predictions of all outputs as users see them: outputs are the last axis."""
        raise NotImplementedError

    # -------------------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, task_id: Any = None) -> Self:
        """Discard what was learned, and learn these rows; arguments as for `partial_fit`."""
        for name in [
            name for name in vars(self) if name.endswith("_") or name in ("_state", "_tasks", "_flat", "_lift")
        ]:
            delattr(self, name)
        return self._learn(X, y, sample_weight, task_id)

    def _learn(self, X: Any, y: Any, sample_weight: Any, task_id: Any, classes: Any = None) -> Self:
        fresh = not hasattr(self, "_state")
        if not fresh:
            self._require_all_kept()
        matrix, targets, count, weighs, weights, attributes = self._read(X, y, sample_weight, fresh, classes)
        state = self._start(matrix, targets, weights) if fresh else self._state
        tasks = {} if fresh else dict(self._kept)
        places = attributes.pop("_places", None)
        if not fresh and places is not None:
            state = state.with_outputs(count, places)
            tasks = {name: task.with_outputs(count, places) for name, task in tasks.items()}
        new = state.with_rows(matrix, targets, weights)
        if self.keep_tasks:
            for name, rows in self._rows_of_tasks(task_id, weighs, list(tasks)).items():
                before = tasks.get(name)
                if before is None:
                    before = RidgeState.empty(state.shift, state.target_shift, state.device)
                own = None if weights is None else weights[rows]
                tasks[name] = before.with_rows(matrix[rows], _some(targets, rows), own)
        elif task_id is not None:
            raise InvalidInputError(
                "task_id means something with keep_tasks=True only; leave it out, or fit anew with it"
            )
        # nothing can fail from here on: only now the estimator changes
        for name, value in attributes.items():
            setattr(self, name, value)
        self._state, self._tasks = new, tasks
        return self

    @property
    def _kept(self) -> dict[Hashable, RidgeState]:
        """The tasks that are kept; none after `keep_tasks` was set to False."""
        return self._tasks if self.keep_tasks else {}

    def _require_all_kept(self) -> None:
        """Raise if tasks are to be kept, but there are rows of which none was."""
        if self.keep_tasks and sum(task.rows for task in self._tasks.values()) != self._state.rows:
            raise InvalidInputError("keep_tasks was set after rows had been learned without it; `fit` starts anew")

    def _read(
        self, X: Any, y: Any, sample_weight: Any, fresh: bool, classes: Any = None
    ) -> tuple[Any, Rows, int, Any, Array | None, dict[str, Any]]:
        """The rows of positive weight and their targets; which rows these are; attributes to set after the call."""
        if self._validated:
            matrix, labels = validate_data(
                self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32), multi_output=True,
                y_numeric=self._numeric, reset=fresh,
            )  # fmt: skip
            matrix = self._lifted(matrix)
        else:
            matrix, labels = self._mapped(X, None if fresh else self._state), self._labels(y)
            if matrix.shape[0] != labels.shape[0]:
                raise InvalidInputError(f"X has {matrix.shape[0]} rows, but y has {labels.shape[0]}")
        weights = read_weights(sample_weight, matrix.shape[0])
        weighs = np.ones(matrix.shape[0], dtype=bool) if weights is None else weights > 0
        if weights is not None and not weighs.all():
            kept = np.flatnonzero(weighs)
            matrix, labels, weights = matrix[kept], labels[kept], weights[kept]
        targets, count, attributes = self._targets(labels, fresh, classes)
        if fresh and not self._validated:
            attributes["n_features_in_"] = matrix.shape[1]
        return matrix, targets, count, weighs, weights, attributes | {"_lift": self._feature_map}

    @property
    def _validated(self) -> bool:
        """Whether X is a table of numbers that scikit-learn checks: no array of a device, and no input of a network."""
        return self.device is None and isinstance(self._feature_map, RandomFeatures | None)

    @property
    def _feature_map(self) -> Any:
        """The feature map, or None; an error if it is another one than that of the rows so far."""
        lift = as_feature_map(self.features)
        if hasattr(self, "_state") and not _same_map(lift, self._lift):
            raise InvalidInputError(f"features was changed after rows had been learned with {self._lift}; `fit` anew")
        return lift

    def _lifted(self, matrix: Any) -> Any:
        """Random features of the rows, or the rows themselves."""
        lift = self._feature_map
        return matrix if lift is None else _drawn(lift, matrix.shape[1])(matrix)

    def _mapped(self, X: Any, state: RidgeState | None) -> Any:
        """The features that a function, such as a network, gives, or rows on a device; checked against those so far."""
        lift, device = self._feature_map, as_device(self.device)
        made = X if lift is None else (lift if callable(lift) else lift.transform)(X)
        if device.host or not is_elsewhere(made):
            matrix = as_task_matrix(made, "features") if is_sparse(made) else real_array(made, "X", squares=True)
        else:
            matrix = _there(made, device, "X")
        if len(matrix.shape) != 2 or 0 in matrix.shape:
            raise InvalidInputError(f"X: expected a matrix of rows and columns, got shape {tuple(matrix.shape)}")
        if state is not None and matrix.shape[1] != len(state.shift):
            raise InvalidInputError(
                f"X has {matrix.shape[1]} features, but the rows so far had {len(state.shift)}; `fit` starts anew"
            )
        return matrix

    def _start(self, X: Any, targets: Rows, weights: Array | None) -> RidgeState:
        """The state before the rows: with an intercept, shifted by the means of the first of them."""
        first = slice(0, 256)
        head = X[first].toarray() if hasattr(X, "toarray") else any_array(X[first], "X")
        values, own = any_array(targets(first), "y"), None if weights is None else weights[first]
        shift, target_shift = np.zeros(head.shape[1]), np.zeros(values.shape[1])
        if self.fit_intercept:
            shift = np.average(head.astype(np.float64), axis=0, weights=own)
            if self._numeric:  # a class that comes later has 0 in all rows so far
                target_shift = np.average(values.astype(np.float64), axis=0, weights=own)
        return RidgeState.empty(shift, target_shift, as_device(self.device))

    def _labels(self, y: Any) -> Any:
        """The labels as an array: here, or on the device if they are numbers there."""
        return any_array(y, "y")

    def _rows_of_tasks(self, task_id: Any, weighs: Any, taken: list[Hashable]) -> dict[Hashable, Any]:
        """The places of each task among the rows of a call that weigh; without names, tasks are numbered by calls."""
        if any_array(task_id, "task_id").ndim == 0:
            return single_task(task_id, slice(None), taken)
        owner = np.asarray(task_id)
        if owner.shape != weighs.shape:
            raise InvalidInputError(
                f"task_id: expected one value, or one for each of {len(weighs)} rows; got {owner.shape}"
            )
        owner = owner[weighs]
        return {plain_id(owner[own[0]]): own for own in group_codes(owner, len(owner), "task_id").rows}

    def learn_batches(self, batches: Iterable[Any], task_id: Any = None) -> Self:
        """Learn pairs (X, y) one after another, such as those of a torch DataLoader; with `features`, of its outputs.

        Triples (X, y, sample_weight) have weights of rows. Only one batch is in memory at a time. A batch that raises
        leaves those before it learned. With `keep_tasks=True` all batches of a call are one task.

        >>> import forgetting as fg
        >>> batches = ([[float(i)]] for i in range(3)), [1.0, 3.0, 5.0]
        >>> model = fg.IncrementalRidge(alpha=0.0).learn_batches((X, [y]) for X, y in zip(*batches))
        >>> model.coef_.round(6), round(model.intercept_, 6)
        (array([2.]), 1.0)
        """
        if not isinstance(batches, Iterable):
            raise InvalidInputError(f"batches: expected pairs (X, y) one after another, got {type(batches).__name__}")
        name = self._task_of_call(task_id)
        for number, batch in enumerate(batches):
            if not isinstance(batch, tuple | list) or len(batch) not in (2, 3):
                raise InvalidInputError(
                    f"batch {number}: expected (X, y) or (X, y, sample_weight), got {type(batch).__name__}"
                )
            X, y, *weights = batch
            self._learn(X, y, weights[0] if weights else None, name)
        return self

    def _task_of_call(self, task_id: Any) -> Any:
        """The name of the only task of a call of several batches; None if tasks are not kept."""
        if task_id is None and not self.keep_tasks:
            return None
        (name,) = single_task(task_id, slice(None), list(getattr(self, "_kept", ())))
        return name

    def learn_source(self, X: Any, y: Any, task_id: Any = None) -> Self:
        """Learn rows from disk, part by part: files or folders (.npy, Parquet), as `RegressionTasks.from_source` reads.

        >>> import tempfile, pathlib
        >>> import forgetting as fg
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.save(pathlib.Path(folder, "X.npy"), [[0.0], [1.0], [2.0]])
        ...     model = fg.IncrementalRidge(alpha=0.0).learn_source(pathlib.Path(folder, "X.npy"), [1.0, 3.0, 5.0])
        >>> model.coef_.round(6), model.n_rows_
        (array([2.]), 3)
        """
        rows, name = labelled_rows(X, y), self._task_of_call(task_id)
        size = max(1, SOURCE_ROWS // rows.shape[1])
        for start, stop in rows.spans(size):
            for block in rows.blocks(start, stop):
                self._learn(block.X, self._source_labels(block.y if rows.outputs else block.y[:, 0]), None, name)
        return self

    def _source_labels(self, y: Array) -> Any:
        return y

    # ----------------------------------------------------------------------------------------------- joining, removing

    def merge(self, other: Self) -> Self:
        """Take in all that another estimator has learned, as from another part of the data or another machine.

        >>> import forgetting as fg
        >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0.0, 2.0, 2.0, 4.0])
        >>> here, there = fg.IncrementalRidge().fit(X[:2], y[:2]), fg.IncrementalRidge().fit(X[2:], y[2:])
        >>> bool(np.allclose(here.merge(there).coef_, fg.IncrementalRidge().fit(X, y).coef_))
        True
        """
        other = as_kind(other, type(self), type(self).__name__, "other")
        check_is_fitted(self, "_state")
        check_is_fitted(other, "_state")
        if self.n_features_in_ != other.n_features_in_:
            raise InvalidInputError(
                f"the other has {other.n_features_in_} features, and this one {self.n_features_in_}"
            )
        names = [list(getattr(model, "feature_names_in_", ())) for model in (self, other)]
        if all(names) and names[0] != names[1]:
            raise InvalidInputError("the names of the features differ; give both the same columns in the same order")
        width = len(self._state.shift)
        if not _same_map(self._lift, other._lift) or len(other._state.shift) != width:
            raise InvalidInputError(
                f"the features of the other are {other._lift} ({len(other._state.shift)} columns), and here "
                f"{self._lift} ({width} columns); learn both with the same"
            )
        if bool(self.keep_tasks) != bool(other.keep_tasks):
            raise InvalidInputError("keep_tasks differs: both keep tasks, or none")
        self._require_all_kept()
        other._require_all_kept()
        align, attributes = self._aligned(other)
        new = align(self, self._state).joined(align(other, other._state))
        tasks = {name: align(self, task) for name, task in self._kept.items()}
        for name, task in other._kept.items():
            own = align(other, task)
            tasks[name] = tasks[name].joined(own) if name in tasks else own
        for name, value in attributes.items():
            setattr(self, name, value)
        self._state, self._tasks = new, tasks
        return self

    def unlearn(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, task_id: Any = None, rtol: float = 1e-6
    ) -> Self:
        """Remove rows that were learned before, as if they had never been there; or a task that was kept.

        Rows are removed from the triangle by orthogonal transformations. Rounding errors grow where most of what was
        known of a direction is removed: the call is refused, and changes nothing, if the bound on the relative error of
        the coefficients exceeds `rtol`. Rows that were never learned are refused where that shows, which is where a
        sum of squares would be negative. With `keep_tasks=True` a whole task is removed by `task_id=` alone, without
        such errors: the other tasks are joined anew.

        >>> import forgetting as fg
        >>> X, y = np.array([[0.0], [1.0], [2.0], [5.0]]), np.array([0.0, 2.0, 2.0, 90.0])
        >>> model = fg.IncrementalRidge().fit(X, y).unlearn(X[3:], y[3:])
        >>> bool(np.allclose(model.coef_, fg.IncrementalRidge().fit(X[:3], y[:3]).coef_))
        True
        """
        check_is_fitted(self, "_state")
        rtol = as_number(rtol, "rtol", above=0)
        name = None if task_id is None else plain_id(task_id)
        tasks = dict(self._kept)
        if name is not None and name not in tasks:
            known = nearest(str(name), map(str, tasks), "its tasks are") if tasks else "; no tasks were kept"
            raise InvalidInputError(f"task_id: no task {name!r:.60}{known}")
        self._require_all_kept()
        changed = copy(self)
        if X is None:
            if name is None:
                raise InvalidInputError("give the rows to be removed, X and y, or a task that was kept, task_id=")
            del tasks[name]
            state = RidgeState.empty(self._state.shift, self._state.target_shift, self._state.device)
            for task in tasks.values():
                state = state.joined(task)
            changed._state, changed._tasks = state, tasks
        else:
            if self.keep_tasks and name is None:
                raise InvalidInputError("tasks are kept: say from which one these rows are, task_id=")
            matrix, targets, _, _, weights, attributes = self._read(X, y, sample_weight, fresh=False)
            new = [name for name in attributes.get("classes_", ()) if name not in self.classes_]
            if new:
                raise InvalidInputError(f"y: class {new[0]!r:.60} was never learned")
            state = self._state.without_rows(matrix, targets, weights)
            if name is not None:
                tasks[name] = tasks[name].without_rows(matrix, targets, weights)
                tasks = {own: task for own, task in tasks.items() if task.rows}
            changed._state, changed._tasks = state, tasks
            changed._require_accurate(rtol)
        self._state, self._tasks = state, tasks
        return self

    def _require_accurate(self, rtol: float) -> None:
        if not self._state.rows:
            return
        worst = float(np.max(self._solved.relative_errors(self.alpha_)))
        if worst > rtol:
            raise NotSupportedError(
                f"without these rows the relative error of the coefficients may be {worst:.1e}, above rtol={rtol:g}; "
                "allow more, use a larger alpha, or keep tasks (keep_tasks=True) and remove whole ones"
            )

    # ------------------------------------------------------------------------------------------ what it learned

    @property
    def _solved(self) -> Decomposition:
        check_is_fitted(self, "_state")
        return self._as_learned(self._state).decomposed(bool(self.fit_intercept))

    @property
    def alpha_(self) -> float:
        """The penalty in use: `alpha`, or the one that was chosen."""
        solved = self._solved
        if not isinstance(self.alpha, str):
            return as_number(self.alpha, "alpha", least=0)
        if self.alpha not in ("gcv", "tasks"):
            raise InvalidInputError(f"alpha must be a number of at least 0, 'gcv' or 'tasks', got {self.alpha!r:.40}")
        known, key = self._state.chosen, (self.alpha, solved.intercept)
        if key not in known:
            tried = solved.grid()
            known[key] = least_score(tried, self._without_rows(self.alpha, tried)[0])
        return known[key]

    @property
    def coef_(self) -> Any:
        """The coefficients for the penalty that `alpha` is now: a change of it needs no new fit."""
        return self._shaped_coef(self._solved.solution(self.alpha_)[0])

    def _shaped_coef(self, coef: Array) -> Any:
        raise NotImplementedError

    @property
    def intercept_(self) -> Any:
        """The intercept of each output; 0 without one."""
        return self._shaped(self._solved.solution(self.alpha_)[1])

    @property
    def coef_error_(self) -> Any:
        """A bound on the rounding error of the coefficients of each output, as a length; see `docs/heads.md`."""
        return self._shaped(self._solved.coefficient_errors(self.alpha_))

    @property
    def n_rows_(self) -> int:
        """The number of rows of positive weight that were learned, less those removed."""
        check_is_fitted(self, "_state")
        return self._state.rows

    @property
    def weight_(self) -> float:
        """The sum of the weights of these rows."""
        check_is_fitted(self, "_state")
        return self._state.weight

    @property
    def task_ids_(self) -> list[Hashable]:
        """The tasks that were kept."""
        check_is_fitted(self, "_state")
        return list(self._kept)

    def path(
        self,
        alphas: Any = None,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        by: Literal["gcv", "tasks", "rows"] | None = None,
    ) -> RidgePath:
        """The fits for many penalties, from one decomposition, and the penalty to choose.

        Args:
            alphas: the penalties; 200 of them, from none to all that matters, if left out.
            X, y, sample_weight: held-out rows, for by="rows".
            by: "gcv", generalised cross-validation, which needs no rows; "rows", the error on held-out rows (the
                default if there are any): squared, or the share of rows in a wrong class; "tasks", the squared error
                on each kept task of a model that learned the others.

        >>> import forgetting as fg
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((40, 20))
        >>> model = fg.IncrementalRidge().fit(X, X[:, 0] + rng.standard_normal(40))
        >>> path = model.path(np.array([0.01, 1.0, 100.0]))
        >>> path.alpha, path.coef.shape
        (1.0, (3, 1, 20))
        """
        solved = self._solved
        if not self._state.rows:
            raise InvalidInputError("there are no rows to choose a penalty by; learn some first")
        tried = solved.grid() if alphas is None else np.sort(_penalties(alphas))
        by = ("gcv" if X is None else "rows") if by is None else by
        if by not in ("gcv", "tasks", "rows"):
            raise InvalidInputError(f"by must be 'gcv', 'rows' or 'tasks', got {by!r:.40}")
        if (by == "rows") != (X is not None):
            raise InvalidInputError(f"by={by!r} {'needs' if X is None else 'does not use'} held-out rows X and y")
        _, errors, freedom = solved.errors_of(tried)
        coef, intercept = solved.solutions(tried)
        by_task = np.empty((0, len(tried)))
        if by == "rows":
            scores, criterion = self._held_out(coef, intercept, X, y, sample_weight)
        else:
            scores, criterion, by_task = self._without_rows(by, tried)
        mean = errors.sum(axis=1) / self._state.weight
        return RidgePath(tried, freedom, mean, scores, criterion, coef, intercept, by_task)

    def _without_rows(self, by: str, alphas: Array) -> tuple[Array, str, Array]:
        """What each penalty is chosen by if there are no other rows, what that is called, and that of each task."""
        if by == "gcv":
            return self._solved.generalised(alphas), "generalised cross-validation", np.empty((0, len(alphas)))
        by_task = self._left_out(alphas)
        weights = np.array([task.weight for task in self._kept.values()])
        return weights @ by_task / weights.sum(), "mean squared error on tasks left out", by_task

    def _held_out(self, coef: Array, intercept: Array, X: Any, y: Any, sample_weight: Any) -> tuple[Array, str]:
        if y is None:
            raise InvalidInputError("held-out rows need their targets, y")
        matrix, labels = self._rows(X), any_array(y, "y")
        check_consistent_length(matrix, labels)
        return self._score_rows(coef, intercept, matrix, labels, read_weights(sample_weight, matrix.shape[0]))

    def _left_out(self, alphas: Array) -> Array:
        """(tasks, penalties): the mean squared error on each task of the model that learned the others."""
        if len(self._kept) < 2:
            raise NotSupportedError(
                "leaving a task out needs two or more tasks that were kept: fit with keep_tasks=True and task_id="
            )
        states = [self._as_learned(task) for task in self._kept.values()]
        table = np.empty((len(states), len(alphas)))
        for row, task, others in zip(table, states, left_out(states), strict=True):
            coef, intercepts = others.decomposed(bool(self.fit_intercept)).solutions(alphas)
            row[:] = task.squared_errors(coef, intercepts).sum(axis=1) / task.weight
        return table

    # ------------------------------------------------------------------------------------------ predicting

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self, "_state")
        if self._validated:
            return self._lifted(validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False))
        matrix = self._mapped(X, self._state)
        return matrix if is_sparse(matrix) else real_array(matrix, "X", squares=True)

    def _scores(self, X: Any, alphas: Any) -> Array:
        """x.w + b: (rows, outputs), or (penalties, rows, outputs)."""
        matrix, solved = self._rows(X), self._solved
        if alphas is None:
            coef, intercepts = (part[None] for part in solved.solution(self.alpha_))
        else:
            coef, intercepts = solved.solutions(_penalties(alphas))
        with quietly():
            scores = np.stack([matrix @ w.T + b for w, b in zip(coef, intercepts, strict=True)])
        beyond = np.flatnonzero(~np.isfinite(scores).all(axis=(0, 2)))
        if beyond.size:
            raise InvalidInputError(f"X: row {beyond[0]} is so large that x.w overflows; rescale it")
        return scores[0] if alphas is None else scores

    # ------------------------------------------------------------------------------------------ files

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learned to an .npz file, atomically and without pickle; `load` gives the same estimator back.

        Random features are saved; any other feature map is given again to `load`.
        """
        check_is_fitted(self, "_state")
        features = self._feature_map
        if not isinstance(features, RandomFeatures | None):
            features = str(features)[:200]
        elif not isinstance(self.features, RandomFeatures | None):
            features = int(self.features)
        values = {
            "class": type(self).__name__,
            "alpha": self.alpha if isinstance(self.alpha, str) else as_number(self.alpha, "alpha", least=0),
            "fit_intercept": bool(self.fit_intercept),
            "features": features,
            "keep_tasks": bool(self.keep_tasks),
            "state": _values_of(self._state),
            "task_ids": list(self._kept),
            "tasks": [_values_of(task) for task in self._kept.values()],
            "own": self._own(),
            "columns": int(self.n_features_in_),
            "names": [str(name) for name in getattr(self, "feature_names_in_", [])],
        }
        write_record(path, KIND, values)

    @classmethod
    def load(cls, path: str | PathLike[str], *, features: Any = None, device: Any = None) -> Self:
        """Read what `save` wrote; nothing is unpickled, and every array is checked."""
        return read_record(path, KIND, lambda values: cls._restored(values, features, device))

    @classmethod
    def _restored(cls, values: dict[str, Any], features: Any, device: Any) -> Self:
        if values.get("class") != cls.__name__:
            raise ForgettingError(f"the file holds {values.get('class')!r:.60}, not {cls.__name__}")
        saved = values["features"]
        if isinstance(saved, str) and features is None:
            raise ForgettingError(f"the features were {saved!r:.80}, which no file holds: give features= again")
        alpha: Any = values["alpha"] if isinstance(values["alpha"], str) else typed(float, values["alpha"], "alpha")
        made = cls(
            alpha,
            typed(bool, values["fit_intercept"], "fit_intercept"),
            features=saved if features is None else features,
            keep_tasks=typed(bool, values["keep_tasks"], "keep_tasks"),
            device=device,
        )
        there = as_device(device)
        made._state = _state_of(values["state"], there)
        ids, tasks = values["task_ids"], values["tasks"]
        if not isinstance(ids, list) or not isinstance(tasks, list) or len(ids) != len(tasks):
            raise ForgettingError("the kept tasks and their names do not fit together")
        made._tasks = {plain_id(name): _state_of(task, there) for name, task in zip(ids, tasks, strict=True)}
        made.n_features_in_ = typed(int, values["columns"], "columns")
        names = values["names"]
        if names:
            if not isinstance(names, list) or len(names) != made.n_features_in_:
                raise ForgettingError(f"{len(names)} names of {made.n_features_in_} features")
            made.feature_names_in_ = np.array(names, dtype=object)
        made._take(values["own"])
        made._lift = as_feature_map(made.features)
        shapes = {(len(state.shift), len(state.left)) for state in (made._state, *made._tasks.values())}
        if len(shapes) != 1 or len(made._tasks) != len(ids):
            raise ForgettingError("the kept tasks have other shapes than all rows together, or one comes twice")
        known = made.n_features_in_ if made._lift is None else getattr(made._lift, "dim", len(made._state.shift))
        if made.n_features_in_ < 1 or len(made._state.shift) != known:
            raise ForgettingError(f"{len(made._state.shift)} columns of {known} features")
        return made

    def _own(self) -> dict[str, Any]:
        """What each estimator adds to a file."""
        raise NotImplementedError

    def _take(self, own: dict[str, Any]) -> None:
        """Set what `_own` gave; raise if it does not fit."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _there(array: Any, device: Any, what: str) -> Any:
    """An array of torch or CuPy on the device, checked."""
    xp = device.xp
    made = xp.asarray(array.detach() if hasattr(array, "detach") else array, device=device.where)
    if not bool(xp.all(xp.isfinite(made))):
        raise InvalidInputError(f"{what}: NaN or an infinite number; remove or impute these rows")
    return made


def _same_map(own: Any, other: Any) -> bool:
    """Whether two feature maps are the same, as far as that can be seen: functions may have been loaded anew."""
    known = isinstance(own, RandomFeatures | None), isinstance(other, RandomFeatures | None)
    return own == other if all(known) else not any(known)


def _penalties(alphas: Any) -> Array:
    """Several penalties, checked."""
    tried = np.atleast_1d(real_array(alphas, "alphas"))
    if tried.ndim != 1 or not tried.size or (tried < 0).any():
        raise InvalidInputError(f"alphas must be numbers of at least 0, got {tried.tolist()!s:.80}")
    return tried


def _some(targets: Rows, rows: Any) -> Rows:
    """The targets of some rows of a call."""
    return targets if isinstance(rows, slice) else lambda cut: targets(rows[cut])


def _values_of(state: RidgeState) -> dict[str, Any]:
    """What a file holds of a state, here."""
    factor, targets = state._here
    return {**field_values(state, skip="device"), "factor": factor, "targets": targets}


def _state_of(values: Any, device: Any) -> RidgeState:
    """A state from the values of a file, checked."""
    fields = checked_fields(RidgeState, values, "state")
    factor, targets, left = (np.asarray(fields[name], dtype=np.float64) for name in ("factor", "targets", "left"))
    d, c = len(fields["shift"]), len(fields["target_shift"])
    shapes = [part.shape for part in (factor, targets, left, fields["lost"], fields["moved"])]
    if shapes != [(d + 1, d + 1), (d + 1, c), (c,), (d + 2,), (3, c)]:
        raise ForgettingError(f"R, Z, what is left and its errors have the shapes {shapes}")
    counts = np.array([fields["rows"], fields["weight"], fields["steps"], *fields["lost"], *np.ravel(fields["moved"])])
    everything = (factor, targets, left, fields["shift"], fields["target_shift"], counts)
    if not all((np.abs(part) <= np.sqrt(SQUARED)).all() for part in everything) or np.tril(factor, -1).any():
        raise ForgettingError("R is not a triangle of finite numbers, or a number is too large")
    if (
        (left < 0).any()
        or (counts < 0).any()
        or len({bool(n) for n in (fields["rows"], fields["weight"], factor[0, 0])}) > 1
    ):
        raise ForgettingError("a sum of squares is negative, or numbers of rows cannot be")
    if device is not HOST:
        factor, targets = device.put(factor), device.put(targets)
    return RidgeState(**{**fields, "factor": factor, "targets": targets}, device=device)


class IncrementalRidge(RegressorMixin, _Incremental):  # type: ignore[misc]
    """Ridge regression that learns rows in any order and in any batches, and forgets none of them.

    After every call the coefficients are those of ridge regression on all rows so far, as of `Ridge` in scikit-learn:
    they minimise sum_i s_i (y_i - x_i.w - b)^2 + alpha |w|^2. What is kept is a triangle of (d + 1)^2 numbers and
    (d + 1) c for c outputs, whatever the number of rows, made by Householder's reflections: never a Gram matrix or an
    inverse, which lose twice the digits. The penalty is no part of it, so that `alpha` may be changed, or chosen, at
    any time.

    Args:
        alpha: the penalty, at least 0; "gcv" chooses it by generalised cross-validation, "tasks" by leaving out each of
            the kept tasks in turn.
        fit_intercept: whether there is an intercept, which is not penalised.
        features: a feature map that comes first: `RandomFeatures`, a function of X such as a torch network, a fitted
            transformer, or a number of random features.
        keep_tasks: keep a triangle for each task as well (`task_id=`), to remove tasks exactly and to choose `alpha` by
            leaving tasks out.
        device: where rows are factorised: None for NumPy and LAPACK, or as for `fg.expect` ("cuda", "cupy").

    Attributes:
        coef_: (d,), or (outputs, d), for what `alpha` is now.
        intercept_: a number, or (outputs,).
        alpha_: the penalty in use.
        coef_error_: a bound on the rounding error of the coefficients, as a length.
        n_rows_, weight_, task_ids_: the rows so far, the sum of their weights, and the kept tasks.
        n_features_in_, feature_names_in_: as in scikit-learn.

    >>> import forgetting as fg
    >>> model = fg.IncrementalRidge(alpha=0.0)
    >>> model.partial_fit([[0.0], [1.0]], [1.0, 3.0]).partial_fit([[2.0]], [5.0]).coef_.round(6)
    array([2.])
    >>> model.set_params(alpha=2.0).coef_.round(6)    # no new fit
    array([1.])
    """

    _flat: bool
    _numeric = True

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, task_id: Any = None) -> Self:
        """Learn more rows.

        A call that raises changes nothing.

        Args:
            X: (n, d), dense or sparse; float32 is kept as it is and factorised in float64.
            y: (n,), or (n, outputs).
            sample_weight: n weights of at least 0: a row of weight 2 counts like two equal rows, one of 0 is left out.
            task_id: with `keep_tasks=True`, the task of all rows, or of each; calls are numbered if left out.
        """
        return self._learn(X, y, sample_weight, task_id)

    def predict(self, X: Any, alphas: Any = None) -> Any:
        """X w + b, (n,) or (n, outputs); with several penalties `alphas`, a leading axis of them."""
        return self._shaped(self._scores(X, alphas))

    def _labels(self, y: Any) -> Any:
        device = as_device(self.device)
        return _there(y, device, "y") if is_elsewhere(y) and not device.host else any_array(y, "y")

    def _targets(self, y: Any, fresh: bool, classes: Any) -> tuple[Rows, int, dict[str, Any]]:
        labels = y if is_elsewhere(y) else real_array(y, "y", squares=True)
        if labels.ndim not in (1, 2):
            raise InvalidInputError(
                f"y: expected one value for each row, or a column for each output, got {labels.shape}"
            )
        flat = labels.ndim == 1
        columns = labels.reshape(len(labels), -1)
        if not fresh and (flat, columns.shape[1]) != (self._flat, len(self._state.left)):
            raise InvalidInputError(
                f"y has shape {labels.shape}, but the rows so far had "
                f"{'one output' if self._flat else f'{len(self._state.left)} outputs in columns'}; `fit` starts anew"
            )
        return lambda cut: columns[cut], columns.shape[1], {"_flat": flat}

    def _as_learned(self, state: RidgeState) -> RidgeState:
        return state

    def _aligned(self, other: Any) -> tuple[Callable[[Any, RidgeState], RidgeState], dict[str, Any]]:
        if (other._flat, len(other._state.left)) != (self._flat, len(self._state.left)):
            raise InvalidInputError(
                f"the other has {len(other._state.left)} outputs, and this one {len(self._state.left)}"
            )
        return lambda model, state: state, {}

    def _score_rows(self, coef: Array, intercept: Array, X: Any, y: Any, weights: Array | None) -> tuple[Array, str]:
        truth = real_array(y, "y").reshape(X.shape[0], -1)
        if truth.shape[1] != coef.shape[1]:
            raise InvalidInputError(f"y: {truth.shape[1]} outputs, but {coef.shape[1]} were learned")
        errors = [np.sum((X @ w.T + b - truth) ** 2, axis=1) for w, b in zip(coef, intercept, strict=True)]
        return np.average(errors, axis=1, weights=weights), "mean squared error on held-out rows"

    def _shaped(self, values: Array) -> Any:
        picked = values[..., 0] if self._flat else values
        return float(picked) if picked.ndim == 0 else picked

    def _shaped_coef(self, coef: Array) -> Any:
        return coef[0] if self._flat else coef

    def _own(self) -> dict[str, Any]:
        return {"flat": self._flat}

    def _take(self, own: dict[str, Any]) -> None:
        self._flat = typed(bool, own["flat"], "flat")
        if self._flat and len(self._state.left) != 1:
            raise ForgettingError("one output, but several columns of targets")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class IncrementalRidgeClassifier(ClassifierMixin, _Incremental):  # type: ignore[misc]
    """Ridge classification that learns rows and classes in any order and in any batches, and forgets none of them.

    Each class has an output, 1 for its rows and -1 for all others, fitted as by `IncrementalRidge`; the class of the
    largest x.w + b is predicted, as by `sklearn.linear_model.RidgeClassifier` on all rows. A class may appear at any
    time: the result is the same as if it had been known from the start.

    Args:
        alpha, fit_intercept, features, keep_tasks, device: as for `IncrementalRidge`.

    Attributes:
        classes_: the classes so far, sorted.
        coef_: (1, d) for two classes, else (classes, d).
        intercept_: (1,) or (classes,).
        alpha_, coef_error_, n_rows_, weight_, task_ids_, n_features_in_: as for `IncrementalRidge`.

    >>> import forgetting as fg
    >>> model = fg.IncrementalRidgeClassifier(alpha=0.1)
    >>> model = model.partial_fit([[1.0, 0.0], [0.0, 1.0]], ["ant", "bee"])
    >>> model.partial_fit([[-1.0, -1.0]], ["cat"]).predict([[0.9, 0.1], [-2.0, -1.0]])
    array(['ant', 'cat'], dtype='<U3')
    """

    classes_: Any
    _numeric = False

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, task_id: Any = None) -> Self:
        """Learn more rows, of known or of new classes; `classes` names classes that may come later.

        Other arguments as for `IncrementalRidge.partial_fit`. A call that raises changes nothing.
        """
        return self._learn(X, y, sample_weight, task_id, classes)

    def decision_function(self, X: Any, alphas: Any = None) -> Array:
        """x.w + b, (n,) for two classes (positive for the second), else (n, classes); with `alphas`, a leading axis."""
        scores = self._scores(X, alphas)
        return np.asarray(scores[..., 1] if scores.shape[-1] == 2 else scores)

    def predict(self, X: Any, alphas: Any = None) -> Any:
        """The predicted classes, (n,); with several penalties `alphas`, (penalties, n)."""
        scores = self._scores(X, alphas)
        return self.classes_[np.argmax(scores, axis=-1)]

    def _targets(self, y: Any, fresh: bool, classes: Any) -> tuple[Rows, int, dict[str, Any]]:
        check_classification_targets(y)
        labels = column_or_1d(y, warn=True)
        before = None if fresh else self.classes_
        given = None if classes is None else any_array(classes, "classes")
        known = _union([part for part in (before, given, labels) if part is not None])
        codes, count = np.searchsorted(known, labels), len(known)

        def hot(cut: slice) -> Array:
            own = codes[cut]
            made = np.zeros((len(own), count))
            made[np.arange(len(own)), own] = 1.0
            return made

        places = None if before is None else np.searchsorted(known, before).tolist()
        return hot, count, {"classes_": known, "_places": places}

    def _as_learned(self, state: RidgeState) -> RidgeState:
        return state.as_signs

    def _aligned(self, other: Any) -> tuple[Callable[[Any, RidgeState], RidgeState], dict[str, Any]]:
        known = _union([self.classes_, other.classes_])

        def align(model: Any, state: RidgeState) -> RidgeState:
            return state.with_outputs(len(known), np.searchsorted(known, model.classes_).tolist())

        return align, {"classes_": known}

    def _score_rows(self, coef: Array, intercept: Array, X: Any, y: Any, weights: Array | None) -> tuple[Array, str]:
        labels = column_or_1d(y)
        pairs = zip(coef, intercept, strict=True)
        wrong = [self.classes_[np.argmax(X @ w.T + b, axis=1)] != labels for w, b in pairs]
        return np.average(wrong, axis=1, weights=weights), "share of held-out rows in a wrong class"

    def _shaped(self, values: Array) -> Any:
        return values[..., 1:] if values.shape[-1] == 2 else values

    def _shaped_coef(self, coef: Array) -> Any:
        return coef[1:] if len(coef) == 2 else coef

    def _source_labels(self, y: Array) -> Any:
        if not np.array_equal(y, np.rint(y)):
            raise InvalidInputError("y: classes on disk are whole numbers, and these are not")
        return y.astype(np.int64)

    def _own(self) -> dict[str, Any]:
        classes = self.classes_
        return {"classes": classes.astype(str) if classes.dtype.kind == "O" else classes}

    def _take(self, own: dict[str, Any]) -> None:
        classes = own["classes"]
        if not isinstance(classes, np.ndarray) or classes.ndim != 1 or len(classes) != len(self._state.left):
            raise ForgettingError("the classes are not as many as the outputs")
        if not np.array_equal(np.unique(classes), classes):
            raise ForgettingError("the classes are not sorted, or come twice")
        self.classes_ = classes


def _union(parts: list[Any]) -> Any:
    """All classes, sorted; numbers and words do not mix, and no two whole numbers become one."""
    words = {np.asarray(part).dtype.kind in "UO" for part in parts}
    if len(words) > 1:
        raise InvalidInputError("classes are numbers in one place and words in another; use one kind")
    both = np.unique(np.concatenate([np.ravel(part) for part in parts]))
    if both.dtype.kind == "f" and any(np.asarray(part).dtype.kind in "iu" for part in parts):
        beyond = both[np.abs(both) > 2**53]
        if beyond.size:
            raise InvalidInputError(f"class {beyond[0]:.0f} is no longer told from its neighbours beside float classes")
    return both
