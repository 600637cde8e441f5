"""Fewer rows or other features of any tasks, before they are audited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, Seed, as_count, as_kind, seed_from
from forgetting.datasets import digits, image_tasks, mnist
from forgetting.errors import NotSupportedError
from forgetting.tasks import Problem, RandomFeatures, RegressionTasks, prepare

__all__ = ["RandomFeatures", "apply_features", "digits", "image_tasks", "mnist", "subsample_rows"]


def apply_features(tasks: Problem, features: Callable[[Any], Any] | Any) -> RegressionTasks:
    """The tasks with X replaced by features(X): the same as `tasks.prepared(features=features)`.

    >>> import forgetting as fg
    >>> lifted = apply_features(fg.families.two_lines(0.5), RandomFeatures(20))
    >>> lifted.dim, lifted.names
    (20, ('0', '1'))
    """
    return prepare(tasks, features=features)


def subsample_rows(tasks: Problem, rows: int, seed: Seed = 0) -> RegressionTasks:
    """The same tasks with at most this many rows each, drawn at random; identical tasks stay identical.

    >>> import forgetting as fg
    >>> subsample_rows(fg.families.gaussian(T=3, d=9, rank=5, seed=0), 2).ranks.tolist()
    [2, 2, 2]
    """
    tasks = _with_data(tasks, "sub-sampling of rows")
    tasks.require_rows("sub-sampling of rows")
    most = as_count(rows, "rows", least=1)
    rng = np.random.default_rng(seed_from(seed))
    drawn: dict[int, tuple[Any, Array]] = {}
    pairs = []
    for task, distinct in enumerate(tasks.index.tolist()):
        if distinct not in drawn:
            X, y = tasks.task(task)
            chosen = np.sort(rng.permutation(len(y))[:most])
            drawn[distinct] = X[chosen], y[chosen]
        pairs.append(drawn[distinct])
    fewer = tasks.with_data([X for X, _ in pairs], [y for _, y in pairs])
    fewer.preparation = tasks.preparation
    return fewer


def _with_data(tasks: Problem, what: str) -> RegressionTasks:
    """The tasks as regression tasks with data; an error says that `what` needs the data."""
    linear = as_kind(tasks, Problem, "RegressionTasks").linear
    if linear is None or linear.data is None:
        raise NotSupportedError(f"{what} needs the data of RegressionTasks, not {type(tasks).__name__}")
    return linear.data
