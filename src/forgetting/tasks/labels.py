"""Class labels: two labels as -1 and +1, several as one-hot targets of regression, and the accuracy of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np

from forgetting.core.arrays import LARGEST, Array, IntArray, any_array, as_list, as_word, one_column
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS
from forgetting.core.text import one_line
from forgetting.errors import InvalidInputError

Label = int | bool | str
PAIR = "labels are two whole numbers or names"


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
    columns = [_class_vector(label, f"task {task}, y", PAIR) for task, label in enumerate(labels)]
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


def _class_vector(labels: Any, what: str, wanted: str) -> Any:
    """Classes as a vector of whole numbers, truth values or words; `wanted` says in errors what classes must be."""
    column = one_column(any_array(labels, what))
    if column.ndim != 1:
        raise InvalidInputError(f"{what}: expected a vector of labels, got shape {column.shape}")
    require_memory(64.0 * column.size, f"{what}: {column.size} labels", "give fewer")
    if column.dtype.kind == "O":
        column = np.asarray([_class(value, f"{what}[{row}]", wanted) for row, value in enumerate(column.tolist())])
    if column.dtype.kind == "f":
        with np.errstate(all="ignore"):
            column = column.astype(np.float64)
            broken = np.flatnonzero(~((column == np.rint(column)) & (np.abs(column) <= 2**53)))
        if broken.size:
            raise InvalidInputError(f"{what}[{broken[0]}] is {column[broken[0]]}; {wanted}")
        column = column.astype(np.int64)
    if column.dtype.kind == "u" and column.size:
        _class(int(column.max()), what, wanted)
    if column.dtype.kind not in "biuU":
        raise InvalidInputError(f"{what}: {wanted}, got dtype {column.dtype}")
    return column


def _class(value: Any, what: str, wanted: str) -> Any:
    """A class, checked; whole numbers may be floats."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    if not isinstance(value, str | bool | int | np.integer | np.bool_):
        raise InvalidInputError(f"{what} is {value!r:.60}; {wanted}")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise InvalidInputError(f"{what} is {value!r:.40}; labels that are numbers fit into 64 bits")
    return value


def _pair(distinct: Any, columns: Sequence[Any], given: Sequence[Any] | None) -> tuple[Label, Label]:
    """The two labels, the negative label first: those of `given`, else those that the data suggest."""
    if given is not None:
        listed = as_list(given, "label_names")
        names = [value.item() if isinstance(value, np.generic) else value for value in listed]
        checked = [_class(name, f"label_names[{place}]", PAIR) for place, name in enumerate(names)]
        if len(names) != 2 or checked[0] == checked[1]:
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


#: +1 and -1, or rows with a 1 in the column of their class and 0 elsewhere
LabelKind = Literal["signs", "classes"]


class RowClasses(NamedTuple):
    """The class of each row: `names[codes[row]]`."""

    names: tuple[str, ...]
    codes: IntArray


def row_classes(labels: Any) -> RowClasses:
    """The classes of rows, sorted: whole numbers, truth values or words.

    >>> row_classes([10, 9, 10])
    RowClasses(names=('9', '10'), codes=array([1, 0, 1]))
    """
    column = _class_vector(labels, "labels", "classes are whole numbers or words")
    if not column.size:
        raise InvalidInputError("labels: expected one class for each row, got none")
    known, codes = np.unique(column, return_inverse=True)
    return RowClasses(tuple(str(name) for name in known.tolist()), codes)


def one_hot(
    known: RowClasses, members: Sequence[Any], classes: Literal["all", "task"]
) -> tuple[list[Array], tuple[tuple[str, ...], ...]]:
    """One-hot targets of each task, and for each task the names of the classes that its columns stand for.

    With classes="all" every class has a column of its own. With "task" column j stands for the j-th class of the task
    (in sorted order), so that tasks share as many columns as the task with the most classes has.

    Args:
        known: the class of every row.
        members: the row numbers of each task.
        classes: which classes a column stands for.

    >>> animals = row_classes(["cat", "dog", "owl", "cat"])
    >>> targets, names = one_hot(animals, [[0, 1], [2, 3]], "all")
    >>> targets[1].tolist(), names[1]
    ([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], ('cat', 'dog', 'owl'))
    >>> targets, names = one_hot(animals, [[0, 1], [2, 3]], "task")
    >>> targets[1].tolist(), names[1]
    ([[0.0, 1.0], [1.0, 0.0]], ('cat', 'owl'))
    """
    as_word(classes, ("all", "task"), "classes")
    names, codes = known
    if len(names) < 2:
        raise InvalidInputError(f"all labels are {names[0]!r:.60}: two classes are needed")
    own = [np.arange(len(names)) if classes == "all" else np.unique(codes[rows]) for rows in members]
    width = max(2, *map(len, own))
    needed = 8.0 * width * (len(codes) + width)
    require_memory(needed, f"{len(codes)} rows with an output for each of {width} classes", "use fewer rows or classes")
    targets = [np.eye(width)[np.searchsorted(some, codes[rows])] for some, rows in zip(own, members, strict=True)]
    return targets, tuple(tuple(names[code] for code in some) for some in own)


LISTED = 5  # names in a note


def classes_note(classes: Sequence[tuple[str, ...]], targets: Sequence[Array], tasks: Sequence[str]) -> str:
    """A note on the classes of one-hot targets: how many, their names, and which of them a single task has.

    Args:
        classes: for each task the names of the classes that its columns stand for.
        targets: of each task.
        tasks: the names of the tasks.

    >>> targets, names = one_hot(row_classes(["cat", "dog", "owl", "cat"]), [[0, 1], [2, 3]], "all")
    >>> classes_note(names, targets, ["a", "b"])
    "labels are 3 classes, with an output each: 'cat', 'dog', 'owl'; 2 of 3 classes are seen in one task only: ..."
    """
    where: dict[str, list[str]] = {}
    for task, own, hot in zip(tasks, classes, targets, strict=True):
        for place in np.flatnonzero(hot.any(axis=0)).tolist():
            where.setdefault(own[place], []).append(task)
    names = list(dict.fromkeys(name for own in classes for name in own))
    width = targets[0].shape[1]
    how = "with an output each" if width == len(names) else f"with {width} outputs, for those of a task"
    named = ", ".join(repr(one_line(name, 40)) for name in names[:LISTED]) + (", ..." if len(names) > LISTED else "")
    alone = seen_alone(where, len(tasks))
    return "; ".join([f"labels are {len(names)} classes, {how}: {named}", *alone])


def seen_alone(where: Mapping[str, Sequence[str]], tasks: int) -> tuple[str, ...]:
    """A note on the classes that one task alone has; `where` has the tasks of each class.

    >>> seen_alone({"cat": ["a"], "dog": ["a", "b"], "owl": ["b"]}, 2)
    ("2 of 3 classes are seen in one task only: 'cat' in task 'a', 'owl' in task 'b'",)
    """
    alone = {name: owners[0] for name, owners in where.items() if len(owners) == 1}
    if not alone or len(where) < 2 or tasks < 2:
        return ()
    shown = [(repr(one_line(name, 40)), repr(one_line(owner, 40))) for name, owner in islice(alone.items(), LISTED)]
    if len(alone) == len(where):
        return ("each class is seen in one task only",)
    if len(alone) == 1:
        return (f"class {shown[0][0]} is seen in task {shown[0][1]} only",)
    listed = ", ".join(f"{name} in task {owner}" for name, owner in shown) + (", ..." if len(alone) > LISTED else "")
    return (f"{len(alone)} of {len(where)} classes are seen in one task only: {listed}",)


def kind_of_labels(labels: Sequence[Array]) -> LabelKind | None:
    """The meaning of the labels of regression tasks: signs, classes, or numbers that are no classes (None).

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
    mine, rival = _contenders(predictions, labels, own)
    least = np.maximum(mine, rival) - 2 * slack
    right, tied = mine >= least, rival >= least
    share = right.astype(np.float64)
    if np.any(several := right & tied):
        shared = predictions[several][:, :own]
        share[several] = 1 / np.sum(shared >= least[several][:, None], axis=1)
    return np.where(known, np.mean(share, axis=-1), np.nan)


def _contenders(predictions: Array, labels: Array, own: int | None) -> tuple[Array, Array]:
    """The output of the class of each row, and the largest of the others; -inf where there is none."""
    others = predictions[..., :own].copy(order="K")
    rows, columns = np.nonzero(labels[:, :own] == 1)
    mine = np.full(predictions.shape[:-1], -np.inf)
    mine[..., rows] = others[..., rows, columns]
    others[..., rows, columns] = -np.inf
    # one column after another: reductions of short axes are slow
    return mine, np.asarray(reduce(np.maximum, np.moveaxis(others, -1, 0)))


def undecided_share(predictions: Array, labels: Array, sizes: Array, off: Array, own: int | None = None) -> Array:
    """A bound on the error of `correct_share` if predictions are off: the share of rows whose margin is not clear.

    The margin of a row is the distance of its prediction from 0, or that of the output of its class from the largest of
    the others. It is clear where neither the error of the prediction nor the rounding within which `correct_share` sees
    a tie can bridge it. Ties count as undecided; a prediction of 0 that is exact is none.

    Args:
        predictions, labels, sizes, own: as for `correct_share`.
        off: (..., n) by how much predictions are off, beside the rounding of the product x.w: of several outputs, the
            norm of what all of them are off.

    >>> undecided_share(np.array([0.3, -2.0, 0.0]), np.array([1.0, 1.0, 1.0]), np.ones(3), np.full(3, 1e-9)).round(6)
    np.float64(0.333333)
    """
    reach = off + 128 * EPS * sizes
    if labels.ndim == 1:
        margins = np.abs(predictions)
    else:
        mine, rival = _contenders(predictions, labels, own)
        margins, reach = np.abs(mine - rival), 2 * reach
    share = np.mean(~(margins > reach) & (reach != 0), axis=-1)
    return np.where(np.all(np.isfinite(reach), axis=-1), share, np.inf)
