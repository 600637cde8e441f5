"""The base of ridge heads: what they learn, join, remove, choose and save; rows are kept as a `RidgeState`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable
from copy import copy
from functools import lru_cache
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from forgetting.compute.devices import HOST, as_device
from forgetting.core.arrays import Array, any_array, as_kind, as_number, is_sparse, real_array
from forgetting.core.groups import group_codes
from forgetting.core.numerical import SQUARED, quietly
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.estimators.base import plain_id, read_weights, single_task
from forgetting.estimators.ridge_path import RidgePath
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
from forgetting.tasks import RandomFeatures
from forgetting.tasks.labelled_rows import labelled_rows
from forgetting.tasks.preparation import as_feature_map
from forgetting.tasks.task_data import as_task_matrix

Choice = Literal["gcv", "tasks"]
SOURCE_ROWS = 2**24  # numbers that are read from a file at once
KIND = "incremental ridge"

add_codec(dataclass_codec(RandomFeatures, "random features"))
_drawn = lru_cache(4)(RandomFeatures.drawn)  # random numbers are drawn once for many batches


class IncrementalHead(BaseEstimator):  # type: ignore[misc]
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

    @abstractmethod
    def _targets(self, y: Any, fresh: bool, classes: Any) -> tuple[Rows, int, dict[str, Any]]:
        """A function that gives the targets of some rows, their number of columns, and attributes to set."""

    @abstractmethod
    def _as_learned(self, state: RidgeState) -> RidgeState:
        """The state of the targets that the coefficients are for."""

    @abstractmethod
    def _aligned(self, other: Any) -> tuple[Callable[[Any, RidgeState], RidgeState], dict[str, Any]]:
        """A function that gives the states of either estimator the outputs of both, and attributes to set; or raise."""

    @abstractmethod
    def _score_rows(self, coef: Array, intercept: Array, X: Any, y: Any, weights: Array | None) -> tuple[Array, str]:
        """What held-out rows say of each of several solutions, smaller is better, and its name."""

    @abstractmethod
    def _shaped(self, values: Array) -> Any:
        """Coefficients, intercepts or predictions of all outputs as users see them: outputs are the last axis."""

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
            matrix = on_device(made, device, "X")
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

    @abstractmethod
    def _shaped_coef(self, coef: Array) -> Any:
        """The coefficients of all outputs, (outputs, d), as users see them."""

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

    @abstractmethod
    def _own(self) -> dict[str, Any]:
        """What each estimator adds to a file."""

    @abstractmethod
    def _take(self, own: dict[str, Any]) -> None:
        """Set what `_own` gave; raise if it does not fit."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def on_device(array: Any, device: Any, what: str) -> Any:
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
