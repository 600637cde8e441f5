"""Each task of an audit in a row: its size, what is forgotten of it and what it causes; and tasks that stand out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from forgetting.auditing.influence import Influence
from forgetting.core.arrays import Array
from forgetting.geometry import Similarity
from forgetting.tasks import Problem


@dataclass(frozen=True)
class TaskRow:
    """The results of an audit for a task.

    Attributes:
        name, rows, rank: name, number of rows and rank of the task.
        norm: spectral norm of X.
        residual: relative residual at the common solution.
            Rank, norm and residual are None for tasks that are not linear.
        forgotten: expected increase of its loss from when it was learned to the end of a random pass.
        causes: expected increase of the losses of earlier tasks while this task is learned, in a random pass.
        forgotten_error, causes_error: standard errors of `forgotten` and `causes`; 0 if exact.
        forgotten_given: increase of its loss from when it was learned to the end of a pass in the given order.
        worst_by: the task that causes most of its forgetting, or None.
        nearest: the task whose row space overlaps most with its row space, or None.
        overlap: mean cos^2 of the principal angles with the row space of `nearest`.
    """

    name: str
    rows: int
    rank: int | None
    norm: float | None
    residual: float | None
    forgotten: float
    causes: float
    forgotten_error: float
    causes_error: float
    forgotten_given: float
    worst_by: int | None
    nearest: int | None
    overlap: float


def task_rows(
    problem: Problem, similarity: Similarity | None, influence: Influence, alone: Influence
) -> tuple[TaskRow, ...]:
    """The rows of all tasks; `influence` is over random orders, `alone` in the given order."""
    linear, T = problem.linear, problem.num_tasks
    others = np.full((T, T), -1.0) if similarity is None else similarity.overlap.copy()
    np.fill_diagonal(others, -1.0)
    rows = []
    for task in range(T):
        nearest = int(np.argmax(others[task])) if T > 1 and similarity is not None else None
        by = int(np.argmax(influence.matrix[task]))
        rows.append(
            TaskRow(
                problem.names[task],
                _num_rows(problem, task),
                None if linear is None else int(linear.ranks[task]),
                None if linear is None else float(linear.norms[task]),
                None if linear is None else float(linear.geometry.residuals[linear.geometry.index[task]]),
                float(influence.forgotten[task]),
                float(influence.caused[task]),
                float(influence.forgotten_error[task]),
                float(influence.caused_error[task]),
                float(alone.forgotten[task]),
                by if influence.matrix[task, by] > 0 else None,
                nearest,
                float(others[task, nearest]) if nearest is not None else 0.0,
            )
        )
    return tuple(rows)


def _num_rows(problem: Problem, task: int) -> int:
    """The number of rows of a task; 0 for tasks that have none, such as convex sets."""
    if problem.linear is not None:
        return int(problem.linear.num_rows[task])
    rows = problem.signed_rows(task)
    return 0 if rows is None else len(rows)


# ------------------------------------------------------------------------------------------------------------- outliers

FACTOR = 3.0  # an outlier is at least this many times the typical value


@dataclass(frozen=True)
class Outlier:
    """A task that is far from the others in some measure.

    Attributes:
        task: the number of the task.
        measure: "norm", "forgotten" or "causes".
        value, typical: the value of the task, and the median over tasks.

    >>> Outlier(2, "norm", 50.0, 1.0).ratio
    50.0
    """

    task: int
    measure: str
    value: float
    typical: float

    @property
    def ratio(self) -> float:
        """The value divided by the typical value."""
        return self.value / self.typical if self.typical > 0 else float("inf")


def find_outliers(measures: Mapping[str, Array], errors: Mapping[str, Array], floor: float) -> tuple[Outlier, ...]:
    """Tasks whose value is far above the median (for norms: also far below), if there are at least 4 tasks.

    An outlier is at least 3 times the median and 5 robust standard deviations (1.4826 times the median absolute
    deviation) away from the median. Norms are compared on a logarithmic scale. For the other measures, the value less
    several standard errors must also be above 30 % of the sum over tasks (or 10 times the mean, if that is less) and
    above `floor`. If more than a quarter of the tasks are outliers in a measure, none is reported.

    >>> values = np.array([1.0, 1.2, 0.9, 1.1, 40.0])
    >>> find_outliers({"norm": values}, {}, 0.0)
    (Outlier(task=4, measure='norm', value=40.0, typical=1.1),)
    """
    outliers: list[Outlier] = []
    for measure, values in measures.items():
        if len(values) < 4:
            continue
        typical = float(np.median(values))
        if measure == "norm":
            logs = np.log(np.maximum(values, 1e-300))
            away = np.abs(logs - np.median(logs))
            picked = away > max(np.log(FACTOR), _spread(logs))
        else:
            doubt = 2 + np.sqrt(2 * np.log(len(values)))  # above the expected largest of T standard normal numbers
            sure = values - doubt * errors.get(measure, 0.0)
            share = min(0.3, 10 / len(values)) * float(np.maximum(values, 0.0).sum())
            picked = (sure > typical + _spread(values)) & (sure > max(FACTOR * abs(typical), share, floor))
        if picked.sum() <= len(values) / 4:
            outliers += [
                Outlier(task, measure, float(values[task]), typical) for task in np.flatnonzero(picked).tolist()
            ]
    return tuple(outliers)


def _spread(values: Array) -> float:
    """Five robust standard deviations of the values."""
    return 5.0 * 1.4826 * float(np.median(np.abs(values - np.median(values))))
