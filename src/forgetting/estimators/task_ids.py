"""What a call of `fit` or `partial_fit` is given: the column of tasks, the order of tasks, and the weights of rows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, any_array, as_list, group_rows, real_array
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError

__all__ = ["Visits", "column_names", "read_visits", "read_weights", "without_column"]


@dataclass(frozen=True, eq=False)
class Visits:
    """The distinct tasks of a call, their row numbers, and the order in which they are learned."""

    ids: list[Hashable]
    rows: list[Any]  # row numbers, or a slice for all rows
    order: IntArray  # numbers of tasks in `ids`


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


def read_visits(
    task_id: Any, order: Sequence[Any] | None, rows: int, taken: Sequence[Hashable], weights: Array | None = None
) -> Visits:
    """The tasks of a call and the order in which they are learned: the given one, else sorted by id.

    Rows of weight 0 are left out, and so are tasks without any other rows. An order may name tasks that are not there.

    >>> read_visits(["b", "a", "b"], ["b", "c", "a"], 3, []).rows
    [array([0, 2]), array([1])]
    >>> read_visits([10, 9, 10], None, 3, []).ids
    [9, 10]
    """
    tasks = _single(task_id, taken) if any_array(task_id, "task_id").ndim == 0 else _grouped(task_id, rows)
    if weights is not None:
        positive = weights > 0
        kept = {name: np.arange(rows)[own] for name, own in tasks.items()}
        tasks = {name: own[positive[own]] for name, own in kept.items() if positive[own].any()}
    if order is None:
        wanted = sorted(tasks, key=_place)
    else:
        named = [_plain(name) for name in _listed(order)]
        wanted = [name for name in named if name in tasks]
        if not named:
            raise InvalidInputError("order is empty; name at least one task")
        if not wanted:
            known = nearest(named[0], map(str, tasks), "its tasks are")
            raise InvalidInputError(f"order names none of the tasks of this call: {named[0]!r:.60}{known}")
    number = {name: place for place, name in enumerate(dict.fromkeys(wanted))}
    return Visits(list(number), [tasks[name] for name in number], np.array([number[name] for name in wanted]))


def _single(task_id: Any, taken: Sequence[Hashable]) -> dict[Hashable, Any]:
    """One task of all rows, under its id or the next free number."""
    number = len(taken)
    while number in taken:
        number += 1
    return {number if task_id is None else _plain(task_id): slice(None)}


def _grouped(task_id: Any, rows: int) -> dict[Hashable, Any]:
    """The row numbers of every task."""
    owner = np.asarray(task_id)
    if owner.shape != (rows,):
        raise InvalidInputError(f"task_id: expected one value, or one for each of {rows} rows; got {owner.shape}")
    return {_plain(owner[own[0]]): own for own in group_rows(owner, rows, "task_id")[1]}


def _listed(order: Any) -> list[Any]:
    return as_list(order, "order")


def _place(name: Hashable) -> tuple[bool, Any]:
    """What tasks are sorted by, so that their order does not depend on that of the rows: numbers, then names."""
    return (False, name) if isinstance(name, Real) else (True, str(name))


def _plain(value: Any) -> Hashable:
    """A task id as a Python object, so that 1 and np.int64(1) print alike."""
    plain = value.item() if isinstance(value, np.generic | np.ndarray) and value.size == 1 else value
    if not isinstance(plain, Hashable) or plain != plain:
        raise InvalidInputError(f"a task id is a number or a name, got {plain!r}")
    return plain
