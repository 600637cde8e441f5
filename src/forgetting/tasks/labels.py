"""Converts two labels of any kind to -1 and +1, in the same way for all tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forgetting.core.arrays import LARGEST, Array, any_array, as_list, one_column
from forgetting.core.memory import require_memory
from forgetting.errors import InvalidInputError

__all__ = ["Label", "signs"]

Label = int | bool | str


def signs(labels: Sequence[Any], given: Sequence[Any] | None = None) -> tuple[list[Array], tuple[Label, Label]]:
    """The labels of every task as vectors of -1 and +1, and the two original labels, the negative label first.

    Numbers must be -1 and 1, or 0 and 1; of two strings the alphabetically first becomes -1. `given` names any other
    two labels, or another order.

    >>> signs([["spam", "ham"], ["ham"]])
    ([array([ 1., -1.]), array([-1.])], ('ham', 'spam'))
    >>> signs([[1, -1], [1, 2]])
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: task 1, y[1] is 2, which is neither -1 nor 1...
    """
    columns = [_column(label, f"task {task}, y") for task, label in enumerate(labels)]
    kinds = {"strings" if column.dtype.kind == "U" else "numbers" for column in columns}
    if len(kinds) > 1:
        raise InvalidInputError(f"y holds {' and '.join(sorted(kinds))}; use one kind of label in all tasks")
    distinct = np.unique(np.concatenate(columns))
    low, high = _pair(distinct, columns, given)
    result = []
    for task, column in enumerate(columns):
        outside = np.flatnonzero((column != low) & (column != high))
        if outside.size:
            row = int(outside[0])
            value = column[row].item()
            raise InvalidInputError(
                f"task {task}, y[{row}] is {value!r}, which is neither {low!r} nor {high!r}; "
                "for more than two classes use one_versus_rest, for two others name them in label_names="
            )
        result.append(np.where(column == high, 1.0, -1.0))
    if len(distinct) < 2:
        raise InvalidInputError(
            f"all labels of all tasks are {distinct[0].item()!r}: one class only, which any bias separates; "
            "two are needed"
        )
    return result, (low, high)


def _column(label: Any, what: str) -> Any:
    """The labels of a task as a vector of integers, truth values or strings."""
    column = one_column(any_array(label, what))
    require_memory(64.0 * column.size, f"{what}: {column.size} labels", "give fewer")
    if column.dtype.kind == "O":
        column = np.asarray([_plain(value, f"{what}[{row}]") for row, value in enumerate(column.ravel().tolist())])
    if column.dtype.kind == "f":
        with np.errstate(over="ignore"):
            column = column.astype(np.float64)
        bad = np.flatnonzero(~np.isfinite(column))
        if bad.size:
            raise InvalidInputError(f"{what}[{bad[0]}] is {column[bad[0]]}; remove or impute it first")
        broken = np.flatnonzero((column != np.rint(column)) | (np.abs(column) > 2**53))
        if broken.size:
            raise InvalidInputError(
                f"{what}[{broken[0]}] is {column[broken[0]]}; labels are two whole numbers or names"
            )
        column = column.astype(np.int64)
    if column.dtype.kind == "u" and column.size:
        _plain(int(column.max()), what)
    if column.dtype.kind not in "biuU":
        raise InvalidInputError(f"{what}: labels are two whole numbers or names, got dtype {column.dtype}")
    if column.ndim != 1:
        raise InvalidInputError(f"{what}: expected a vector of labels, got shape {column.shape}")
    return column


def _plain(value: Any, what: str) -> Any:
    if not isinstance(value, str | int | float):
        raise InvalidInputError(f"{what} is {value!r}; labels are two whole numbers or names")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InvalidInputError(f"{what} is {value!r:.40}; labels that are numbers fit into 64 bits")
    return value


def _pair(distinct: Any, columns: Sequence[Any], given: Sequence[Any] | None) -> tuple[Label, Label]:
    """The two labels, the negative label first: those of `given`, else those that the data suggest."""
    if given is not None:
        listed = as_list(given, "label_names")
        names = [value.item() if isinstance(value, np.generic) else value for value in listed]
        if len(names) != 2 or _plain(names[0], "label_names[0]") == _plain(names[1], "label_names[1]"):
            raise InvalidInputError(
                f"label_names must be two different labels, the negative one first, got {given!r:.80}"
            )
        return names[0], names[1]
    present = [value.item() for value in distinct]
    if isinstance(present[0], str):
        if len(present) > 2:  # keep the two labels that appear first, so that the error names the third
            seen = list(dict.fromkeys(value for column in columns for value in column.tolist()))
            present = sorted(seen[:2])
        return present[0], present[-1] if len(present) > 1 else ""
    if all(isinstance(value, bool) for value in present):
        return False, True
    usual: tuple[tuple[Label, Label], ...] = ((-1, 1), (0, 1))
    return max(usual, key=lambda pair: len(set(pair) & set(present)))
