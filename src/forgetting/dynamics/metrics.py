"""Forgetting and regret as the paper defines them, and the metrics of continual-learning libraries.

`paper_forgetting` and `paper_regret` use losses along a run. The other functions use a matrix R[step, task] of any
performance measure: row i is the evaluation after the i-th task of `order` was learned, NaN where a task was not
evaluated. Tasks may come more than once. -1 in `order` is a step that learned no task (an ordering that skips a suspect
task): the means of the paper are over the steps that learned a task, and the other functions leave out the row.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import Array, IntArray, any_array, as_flag, as_index, as_word, numbers
from forgetting.core.names import only
from forgetting.core.numerical import quietly
from forgetting.errors import InvalidInputError
from forgetting.orderings.base import NO_UPDATE

__all__ = [
    "average_incremental",
    "backward_transfer",
    "forgetting",
    "forward_transfer",
    "paper_forgetting",
    "paper_regret",
]
__dir__ = only(__all__)


@quietly()
def paper_forgetting(order: Any, loss_matrix: Any, learned: Any = None) -> Array:
    """F(k) = 1/k sum_{t<=k} (L_{tau(t)}(w_k) - L_{tau(t)}(w_t)) for k = 1..K (`def:forgetting`).

    Args:
        order: K tasks; -1 for a step that learned none: means are over the other steps, 0 before the first of them.
        loss_matrix: K x T; row k - 1 holds the losses of all tasks at w_k.
        learned: K losses L_{tau(t)}(w_t); read off the matrix if left out.

    >>> paper_forgetting([0, 1], [[0.0, 3.0], [0.5, 0.0]])
    array([0.  , 0.25])
    """
    losses = numbers(loss_matrix, "loss_matrix")
    if losses.ndim != 2:
        raise InvalidInputError(f"loss_matrix: expected one row per step and one column per task, got {losses.shape}")
    tasks = as_index(order, losses.shape[1], "order", least=NO_UPDATE)
    if len(losses) != len(tasks):
        raise InvalidInputError(f"{len(tasks)} tasks in the order, but {len(losses)} rows in the loss matrix")
    steps, updates = np.arange(len(tasks)), tasks != NO_UPDATE
    visits = np.zeros_like(losses)
    visits[steps[updates], tasks[updates]] = 1
    after = losses[steps, tasks] if learned is None else numbers(learned, "learned", shape=tasks.shape)
    seen = np.cumsum(visits, axis=0)
    in_sample: Array = np.sum(np.where(seen > 0, seen * losses, 0.0), axis=1)  # tasks not yet visited may be NaN
    return np.asarray((in_sample - np.cumsum(np.where(updates, after, 0.0))) / visits_so_far(tasks))


@quietly()
def paper_regret(before: Any, order: Any = None) -> Array:
    """1/k sum_{t<=k} L_{tau(t)}(w_{t-1}) for k = 1..K: the loss of each iterate on the next task.

    Args:
        before: K losses, or K losses for each of several runs along the last axis.
        order: tasks, of the same shape; with -1 in it the mean is over the other steps, 0 before the first of them.

    >>> paper_regret([1.0, 0.0, 2.0]), paper_regret([1.0, 0.0, 2.0], order=[0, -1, 1])
    (array([1. , 0.5, 1. ]), array([1. , 1. , 1.5]))
    """
    losses = numbers(before, "before")
    if losses.ndim == 0:
        raise InvalidInputError("before: expected the losses of several steps, got one number")
    if order is None:
        return np.cumsum(losses, axis=-1) / np.arange(1, losses.shape[-1] + 1)
    tasks = any_array(order, "order")
    if tasks.shape != losses.shape or tasks.dtype.kind not in "iu":
        raise InvalidInputError(f"order: expected a task for each loss, got {tasks.dtype} of shape {tasks.shape}")
    return np.asarray(np.cumsum(np.where(tasks == NO_UPDATE, 0.0, losses), axis=-1) / visits_so_far(tasks))


def visits_so_far(order: IntArray) -> IntArray:
    """The number of the first t steps that learned a task, for t = 1..k along the last axis; 1 where none did.

    >>> visits_so_far(np.array([-1, 0, -1, 2])).tolist()
    [1, 1, 1, 2]
    """
    return np.asarray(np.maximum(np.cumsum(order != NO_UPDATE, axis=-1), 1))


@quietly()
def average_incremental(R: Any, order: Any) -> float:
    """The mean over the rows of the mean performance of the tasks learned so far (Rebuffi et al. 2017).

    >>> average_incremental([[0.9, 0.1], [0.6, 0.8]], order=[0, 1]).__round__(12)
    0.8
    """
    values, first = _table(R, order)
    seen = np.array(
        [[first.get(task, len(values)) <= row for task in range(values.shape[1])] for row in range(len(values))]
    )
    return float(np.mean([np.mean(row[known]) for row, known in zip(values, seen, strict=True)]))


@quietly()
def forgetting(
    R: Any,
    order: Any,
    convention: Literal["first", "chaudhry", "max"] = "first",
    *,
    higher_is_better: bool = True,
) -> Array:
    """The performance that each task has lost by the last row; NaN for tasks that were never learned.

    - "first": performance right after the task was first learned, minus performance in the last row.
    - "chaudhry": best performance before the last row, minus performance in the last row; NaN for a task learned only
      in the last row (Chaudhry et al. 2018, where each task comes once).
    - "max": best performance since the task was first learned, including the last row, minus performance in the last
      row: never negative.

    Average with `np.nanmean`. For losses set `higher_is_better=False`.

    >>> R = [[0.9, 0.1], [0.6, 0.8]]
    >>> forgetting(R, order=[0, 1]).round(12), forgetting(R, [0, 1], "chaudhry").round(12)
    (array([0.3, 0. ]), array([0.3, nan]))
    """
    values, first = _table(R, order)
    as_word(convention, ("first", "chaudhry", "max"), "convention")
    sign = 1.0 if as_flag(higher_is_better, "higher_is_better") else -1.0
    values = sign * values
    last = values[-1]
    result = np.full(values.shape[1], np.nan)
    for task, start in first.items():
        if convention == "first":
            result[task] = values[start, task] - last[task]
        elif convention == "max":
            result[task] = _best(values[start:, task]) - last[task]
        elif start < len(values) - 1:
            result[task] = _best(values[:-1, task]) - last[task]
    return result


@quietly()
def backward_transfer(R: Any, order: Any, convention: Literal["gem", "diaz"] = "gem") -> float:
    """The influence of later learning on earlier tasks; negative is forgetting (higher performance is better).

    - "gem": mean over tasks learned before the last row of (performance in the last row - performance right after the
      task was first learned) (Lopez-Paz and Ranzato 2017).
    - "diaz": as "gem", with all rows after the task was first learned in place of the last row (Diaz-Rodriguez et al.
      2018).

    >>> R = [[0.9, 0.1], [0.6, 0.8]]
    >>> round(backward_transfer(R, [0, 1]), 12)
    -0.3
    """
    values, first = _table(R, order)
    _check_transfer(convention)
    terms: list[float] = []
    for task, start in first.items():
        later = values[start + 1 :, task] if convention == "diaz" else values[-1:, task]
        if start < len(values) - 1:
            terms.extend((later - values[start, task]).tolist())
    return _mean(terms)


@quietly()
def forward_transfer(R: Any, order: Any, convention: Literal["gem", "diaz"] = "gem", *, baseline: Any = None) -> float:
    """The influence of learning on tasks not yet learned (higher performance is better).

    - "gem": mean over tasks first learned after the first row of (performance just before the task was first learned -
      baseline); `baseline` holds the T performances of the untrained model (Lopez-Paz and Ranzato 2017).
    - "diaz": mean performance over all rows before the task was first learned (Diaz-Rodriguez et al. 2018).

    >>> forward_transfer([[0.9, 0.3], [0.6, 0.8]], [0, 1], baseline=[0.1, 0.1]).__round__(12)
    0.2
    """
    values, first = _table(R, order)
    _check_transfer(convention)
    if convention == "gem" and baseline is None:
        raise InvalidInputError("the 'gem' forward transfer needs baseline=, the performances of the untrained model")
    base = np.zeros(values.shape[1]) if convention == "diaz" else numbers(baseline, "baseline")
    if base.shape != (values.shape[1],):
        raise InvalidInputError(f"baseline: expected one value for each of {values.shape[1]} tasks, got {base.shape}")
    terms: list[float] = []
    for task, start in first.items():
        earlier = values[:start, task] if convention == "diaz" else values[max(start - 1, 0) : start, task]
        terms.extend((earlier - base[task]).tolist())
    return _mean(terms)


def _table(R: Any, order: Any) -> tuple[Array, dict[int, int]]:
    """The matrix R, checked, and for each task in `order` the row in which it was first learned."""
    values = numbers(R, "R")
    if values.ndim != 2 or values.size == 0:
        raise InvalidInputError(f"R must be a matrix of steps x tasks, got shape {values.shape}")
    tasks = as_index(order, values.shape[1], "order", least=NO_UPDATE)
    if len(tasks) != len(values):
        raise InvalidInputError(f"R has {len(values)} rows, but the order has {len(tasks)} tasks; give a row per step")
    values, tasks = values[tasks != NO_UPDATE], tasks[tasks != NO_UPDATE]
    if not len(tasks):
        raise InvalidInputError("order: no step learned a task (all are -1), so that there is nothing to measure")
    first: dict[int, int] = {}
    for row, task in enumerate(tasks.tolist()):
        first.setdefault(task, row)
    return values, first


def _check_transfer(convention: str) -> None:
    as_word(convention, ("gem", "diaz"), "convention")


def _best(column: Array) -> float:
    seen = column[~np.isnan(column)]
    return float(seen.max()) if seen.size else float("nan")


def _mean(terms: list[float]) -> float:
    seen = [term for term in terms if not np.isnan(term)]
    return float(np.mean(seen)) if seen else float("nan")
