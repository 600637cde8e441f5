"""Class labels as targets of regression, and the accuracy of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import EPS, Array, any_array, as_word, one_column
from forgetting.errors import InvalidInputError

__all__ = ["Kind", "correct_share", "kind_of_labels", "one_hot"]

#: +1 and -1, or rows with a 1 in the column of their class and 0 elsewhere
Kind = Literal["signs", "classes"]


def one_hot(
    labels: Any, members: Sequence[Any], classes: Literal["all", "task"]
) -> tuple[list[Array], tuple[tuple[str, ...], ...]]:
    """One-hot targets of each task, and for each task the names of the classes that its columns stand for.

    With classes="all" every class has a column of its own. With "task" column j stands for the j-th class of the task
    (in sorted order), so that tasks share as many columns as the task with the most classes has.

    Args:
        labels: the class of every row: whole numbers, truth values or words.
        members: the row numbers of each task.
        classes: which classes a column stands for.

    >>> targets, names = one_hot(["cat", "dog", "owl", "cat"], [[0, 1], [2, 3]], "all")
    >>> targets[1].tolist(), names[1]
    ([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], ('cat', 'dog', 'owl'))
    >>> targets, names = one_hot(["cat", "dog", "owl", "cat"], [[0, 1], [2, 3]], "task")
    >>> targets[1].tolist(), names[1]
    ([[0.0, 1.0], [1.0, 0.0]], ('cat', 'owl'))
    """
    as_word(classes, ("all", "task"), "classes")
    column = _classes(labels)
    known, codes = np.unique(column, return_inverse=True)
    names = [str(name) for name in known.tolist()]
    own = [np.unique(codes[rows]) for rows in members]
    if len(known) < 2:
        raise InvalidInputError(f"all labels are {names[0]!r:.60}: two classes are needed")
    if classes == "all":
        return [np.eye(len(known))[codes[rows]] for rows in members], (tuple(names),) * len(members)
    width = max(2, *(len(some) for some in own))
    targets = [np.eye(width)[np.searchsorted(some, codes[rows])] for some, rows in zip(own, members, strict=True)]
    return targets, tuple(tuple(names[code] for code in some) for some in own)


def _classes(labels: Any) -> Any:
    """The labels as a vector of whole numbers, truth values or words."""
    column = one_column(any_array(labels, "labels"))
    if column.ndim != 1 or not column.size:
        raise InvalidInputError(f"labels: expected one class for each row, got shape {column.shape}")
    if column.dtype.kind == "O":
        column = np.asarray(
            [value if isinstance(value, str) else _whole(value, row) for row, value in enumerate(column)]
        )
    if column.dtype.kind == "f":
        column = np.array([_whole(value, row) for row, value in enumerate(column.tolist())])
    if column.dtype.kind not in "biuU":
        raise InvalidInputError(f"labels: classes are whole numbers or words, got dtype {column.dtype}")
    return column


def _whole(value: Any, row: int) -> Any:
    if isinstance(value, bool | int | np.integer | np.bool_):
        return value
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return int(value)
    raise InvalidInputError(f"labels[{row}] is {value!r:.60}; classes are whole numbers or words")


def kind_of_labels(labels: Sequence[Array]) -> Kind | None:
    """What the labels of regression tasks stand for: signs, classes, or numbers that are no classes (None).

    >>> kind_of_labels([np.array([1.0, -1.0])]), kind_of_labels([np.eye(2)]), kind_of_labels([np.array([0.5])])
    ('signs', 'classes', None)
    """
    if labels[0].ndim == 1:
        return "signs" if all(bool(np.all(np.abs(y) == 1)) for y in labels) else None
    hot = all(bool(np.all((y == 0) | (y == 1))) and bool(np.all(y.sum(axis=1) == 1)) for y in labels)
    return "classes" if hot else None


def correct_share(predictions: Array, labels: Array, sizes: Array, own: int | None = None) -> Array:
    """The share of rows whose class is predicted, for each of a stack of predictions.

    The class of a prediction is its sign, or its largest column among the first `own` columns. Where several classes
    are equally likely up to rounding, one of k counts 1/k: at w = 0 the accuracy is that of guessing. The share is NaN
    where sizes overflow, as after a scheme that diverges.

    Args:
        predictions: (..., n) or (..., n, c).
        labels: (n,) signs or (n, c) one-hot.
        sizes: (..., n) the size |x| |w| of what each prediction is rounded from.
        own: how many columns the task has classes for.

    >>> correct_share(np.array([0.3, -2.0, 0.0]), np.array([1.0, 1.0, 1.0]), np.ones(3))
    array(0.5)
    """
    known = np.all(np.isfinite(sizes), axis=-1)
    slack = 64 * EPS * sizes
    if labels.ndim == 1:
        aligned = predictions * labels
        share = np.mean(np.where(np.abs(predictions) <= slack, 0.5, aligned > 0), axis=-1)
        return np.where(known, share, np.nan)
    among = predictions[..., :own]
    top = np.max(among, axis=-1, keepdims=True)
    tied = among >= top - 2 * slack[..., None]
    right = np.any(tied & (labels[:, :own] == 1), axis=-1)
    return np.where(known, np.mean(right / np.maximum(tied.sum(axis=-1), 1), axis=-1), np.nan)
