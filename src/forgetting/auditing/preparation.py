"""The tasks as they are learned: sub-sampled rows, features, standardised columns, an intercept; test rows alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from forgetting._arrays import Array, IntArray, as_count, is_sparse
from forgetting.auditing.sources import RandomFeatures, apply_features, subsample_rows
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.tasks import LinearTasks, Problem, RegressionTasks
from forgetting.tasks.readers import Columns, read

__all__ = ["Preparation", "Recipe", "held_out", "prepare"]

Standard = Literal["all", "first"]


@dataclass(frozen=True)
class Recipe:
    """What to do with the rows before they are learned: the options of `audit`, checked.

    >>> Recipe(rows=20, features=200).random, Recipe(intercept=True).random
    (True, False)
    """

    rows: int | None = None
    features: Any = None
    standardize: Standard | None = None
    intercept: bool = False
    loss: Literal["sum", "mean"] | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            object.__setattr__(self, "rows", as_count(self.rows, "rows", least=1))
        if self.standardize is not None and self.standardize not in get_args(Standard):
            raise InvalidInputError(f"standardize must be 'all' or 'first', got {self.standardize!r}")
        if self.loss not in (None, "sum", "mean"):
            raise InvalidInputError(f"loss must be 'sum' or 'mean', got {self.loss!r}")
        if not isinstance(self.intercept, bool | np.bool_):
            raise InvalidInputError(f"intercept must be True or False, got {self.intercept!r}")

    @property
    def random_features(self) -> bool:
        """Whether the feature map is drawn at random."""
        number = isinstance(self.features, int | float | np.number) and not isinstance(self.features, bool)
        return number or isinstance(self.features, RandomFeatures)

    @property
    def random(self) -> bool:
        """Whether the prepared tasks depend on the seed, if some task has more rows than `rows`."""
        return self.rows is not None or self.random_features

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return any((self.rows is not None, self.features is not None, self.standardize, self.intercept, self.loss))

    def feature_map(self, seed: int, repeat: int = 0) -> Any:
        """The feature map of the given repeat: random features of another seed for every repeat."""
        if isinstance(self.features, RandomFeatures):
            return replace(self.features, seed=self.features.seed + repeat)
        return RandomFeatures(self.features, seed=seed + repeat) if self.random_features else self.features


@dataclass(frozen=True, eq=False)
class Preparation:
    """Maps rows to what is learned: features, then standardised columns, then a column of ones.

    >>> Preparation(None, np.array([1.0]), np.array([2.0]), True).apply(np.array([[5.0]])).tolist()
    [[2.0, 1.0]]
    """

    features: Callable[[Any], Any] | None
    shift: Array | None
    scale: Array | None
    intercept: bool

    def apply(self, X: Any) -> Any:
        """The prepared rows."""
        rows = X if self.features is None else self.features(X)
        if self.shift is not None:
            rows = ((rows.toarray() if is_sparse(rows) else rows) - self.shift) / self.scale
        if self.intercept:
            rows = np.hstack([rows.toarray() if is_sparse(rows) else rows, np.ones((rows.shape[0], 1))])
        return rows


def prepare(
    tasks: LinearTasks, recipe: Recipe, seed: int, first: int = 0, repeat: int = 0
) -> tuple[LinearTasks, Preparation, str]:
    """The prepared tasks, the map of their rows, and a phrase for the title; another draw for every `repeat`.

    `first` is the task whose rows standardize="first" takes the means and deviations of.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0], [3.0]], [[5.0]]], [[1.0, 2.0], [3.0]])
    >>> made, preparation, words = prepare(tasks, Recipe(standardize="first", intercept=True), 0)
    >>> made.task(1)[0].tolist(), words
    ([[3.0, 1.0]], ', standardised, with an intercept')
    """
    features = recipe.feature_map(seed, repeat)
    plain = Preparation(None, None, None, False)
    if not recipe.changes:
        return tasks, plain, ""
    words = ""
    if recipe.rows is not None:
        tasks = subsample_rows(tasks, recipe.rows, seed + repeat)
        words += f", at most {recipe.rows} row{'s' if recipe.rows != 1 else ''} each"
    if features is not None:
        tasks = apply_features(tasks, features)
        words += f", {tasks.dim} features"
    if not (recipe.standardize or recipe.intercept or recipe.loss):
        return tasks, Preparation(_called(features), None, None, False), words
    data = tasks.data
    if data is None:
        raise NotSupportedError(
            f"standardize, intercept and loss need the data of RegressionTasks, not {type(tasks).__name__}"
        )
    shift = scale = None
    if recipe.standardize:
        chosen = range(data.num_tasks) if recipe.standardize == "all" else [first]
        stacked = np.concatenate([_dense(data.task(task)[0]) for task in chosen])
        shift, scale = stacked.mean(axis=0), stacked.std(axis=0)
        scale = np.where(scale > 1e-12 * np.abs(stacked).max(axis=0, initial=0.0), scale, 1.0)  # of constant columns
        words += ", standardised"
    words += ", with an intercept" * recipe.intercept + ", mean loss" * (recipe.loss == "mean")
    further = Preparation(None, shift, scale, recipe.intercept)
    parts: dict[int, Any] = {}
    for task in range(data.num_tasks):
        X = data.task(task)[0]
        if id(X) not in parts:  # identical tasks are one object
            parts[id(X)] = further.apply(X)
    pairs = [data.task(task) for task in range(data.num_tasks)]
    made = RegressionTasks(
        [parts[id(X)] for X, _ in pairs], [y for _, y in pairs], loss=recipe.loss or data.loss_kind,
        rank_tol=data.rank_tol, rtol=data.rtol, names=data.names,
    )  # fmt: skip
    return made, Preparation(_called(features), shift, scale, recipe.intercept), words


def held_out(source: Any, given: Problem, prepared: Problem, preparation: Preparation) -> Problem:
    """The held-out rows of the same tasks, prepared like the rows that are learned.

    `source` is whatever `fg.load` reads, with a task for each task of `given`: of the same names in any order, or of
    any names in the same order.
    """
    reading = source if isinstance(source, Problem) else read(source, Columns(), {}).tasks
    if reading.dim != given.dim:
        raise InvalidInputError(f"test: rows have {reading.dim} columns, but those of the tasks have {given.dim}")
    order = _matched(reading, given)
    if given.linear is None:
        if not hasattr(reading, "task") or given.kind != "classification":
            raise NotSupportedError(f"test: {type(given).__name__} have no rows, so that none can be held out")
        pairs = [reading.task(int(task)) for task in order]
        return type(given)([X for X, _ in pairs], [y for _, y in pairs], names=given.names)  # type: ignore[call-arg]
    data = reading.linear.data if reading.linear is not None else None
    if data is None or prepared.linear is None or prepared.linear.data is None:
        raise NotSupportedError(f"test: held-out rows are of RegressionTasks, not of {type(reading).__name__}")
    pairs = [data.task(int(task)) for task in order]
    learned = prepared.linear.data
    return RegressionTasks(
        [preparation.apply(X) for X, _ in pairs], [y for _, y in pairs], loss=learned.loss_kind, names=learned.names
    )


def _matched(test: Problem, given: Problem) -> IntArray:
    """The number of the test task of every task."""
    T = given.num_tasks
    if sorted(test.names) == sorted(given.names) and len(set(given.names)) == T:
        place = {name: task for task, name in enumerate(test.names)}
        return np.array([place[name] for name in given.names])
    strangers = [name for name in test.names if name not in given.names]
    if test.num_tasks != T:
        unknown = f"; {strangers[0]!r} is no task" if strangers and len(strangers) < test.num_tasks else ""
        raise InvalidInputError(
            f"test: {test.num_tasks} tasks for {T} tasks; give held-out rows of every task{unknown}"
        )
    if strangers and len(strangers) < T:
        raise InvalidInputError(
            f"test: there is no task {strangers[0]!r}; name the tasks as in the data, or not at all"
        )
    return np.arange(T)


def _called(features: Any) -> Any:
    return features if features is None or callable(features) else features.transform


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if is_sparse(matrix) else matrix)
