"""What a reader of results should know about rows: index columns, classes taken for numbers, tasks with one row, ..."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from shlex import quote

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.text import one_line
from forgetting.tasks.linear_tasks import LinearTasks
from forgetting.tasks.readers.sheet import Sheet

__all__ = ["class_notes", "index_columns", "number_notes", "order_note", "regressed_classes", "row_notes", "task_notes"]

CLASSES = 20  # labels of at most so many different whole numbers may be classes, and so many classes are listed
LISTED = 5  # names in a note
LONG = 10  # rows of a table from which a feature that counts them is no coincidence
UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+)?|__index_level_\d+__")  # what pandas calls an index without a name
INDEX = {"id", "index", "row", "rowid", "row_id", "row_number", "rownames", "level_0", "nr", "no", "#"}


def index_columns(sheet: Sheet) -> tuple[Sheet, list[str], list[str]]:
    """The sheet without columns that are an index and have no name, notes about these, and doubts about other columns.

    A column without a name is what pandas writes for the index of a DataFrame. It is left out if it counts the rows, of
    all tasks or of each, or holds different whole numbers, as after a selection or a shuffle. Columns with a name stay
    features.
    """
    gone, notes, doubts = [], [], []
    for name, values in zip(sheet.features, sheet.X.T, strict=True) if sheet.named else ():
        shown = one_line(name, 40)
        option = f"drop={shown!r} (--drop {quote(shown)})"
        if UNNAMED.fullmatch(name):
            if np.isnan(values).all():
                gone.append(name)
                notes.append(f"column {shown!r} has no name and no values, and was left out")
            elif _counts(values) or _different(values) or _counts_each(values, sheet.tasks):
                gone.append(name)
                notes.append(
                    f"column {shown!r} has no name and numbers the rows: it was taken for an index and left out"
                )
            else:
                doubts.append(
                    f"column {shown!r} has no name, but is a feature; if it is none, leave it out with {option}"
                )
        elif (_counts(values) and len(values) >= LONG) or (name.lower() in INDEX and _different(values)):
            doubts.append(
                f"column {shown!r} numbers the rows like an index, but is a feature; leave it out with {option}"
            )
    return (sheet.without(gone) if gone else sheet), notes, doubts


def _counts(values: Array) -> bool:
    """Whether a column is 0, 1, 2, ... or 1, 2, 3, ..."""
    return bool(values[0] in (0, 1) and np.array_equal(values, np.arange(len(values)) + values[0]))


def _counts_each(values: Array, tasks: list[str] | None) -> bool:
    """Whether a column counts the rows of each task, as the index of tables that were put one below the other does."""
    if tasks is None:
        return False
    rows = np.arange(len(values))
    begins = np.array([True, *(before != task for before, task in pairwise(tasks))])
    offsets = values - (rows - np.maximum.accumulate(np.where(begins, rows, 0)))
    return bool(not begins.all() and offsets[0] in (0, 1) and (offsets == offsets[0]).all())


def _different(values: Array) -> bool:
    """Whether a column of two rows or more holds a different whole number in each."""
    with np.errstate(invalid="ignore"):
        whole = bool((values == np.round(values)).all() and (values >= 0).all())
    return whole and len(values) > 1 and len(np.unique(values)) == len(values)


def regressed_classes(y: Array) -> Iterator[str]:
    """A doubt if labels are few whole numbers, as classes are; -1 and +1 are meant to be regressed.

    >>> list(regressed_classes(np.array([0.0, 1, 2, 1, 0, 2, 2])))
    ['the labels are the numbers 0, 1, 2, and are learned as numbers; if they are classes, name the one that ...
    """
    values = _classes(y)
    if len(values) > 1 and values.tolist() != [-1, 1]:
        named = ", ".join(str(int(value)) for value in values[:LISTED]) + (", ..." if len(values) > LISTED else "")
        yield (
            f"the labels are the numbers {named}, and are learned as numbers; if they are classes, name the one that "
            "counts as +1 with positive= (--positive)"
        )


def _classes(y: Array) -> Array:
    """The different labels if they look like classes: few whole numbers; else none."""
    values = np.unique(y)
    return values if len(values) <= min(CLASSES, len(y) / 2) and (values == np.round(values)).all() else values[:0]


def order_note(names: Sequence[str]) -> str:
    """In which order the tasks are.

    >>> order_note(["b", "a", "c"])
    "tasks are in order of first appearance: 'b', 'a', 'c'"
    """
    listed = ", ".join(repr(one_line(name, 40)) for name in names[:LISTED])
    return f"tasks are in order of first appearance: {listed}{', ...' if len(names) > LISTED else ''}"


def task_notes(tasks: LinearTasks) -> tuple[str, ...]:
    """Tasks with one row, and classes seen in one task only.

    >>> import forgetting as fg
    >>> task_notes(fg.RegressionTasks([[[1.0], [2.0]], [[1.0], [2.0]]], [[0, 1], [0, 0]]))
    ("class '1' is seen in task '0' only",)
    """
    if tasks.data is None:
        return ()
    labels = [tasks.data.task(m)[1] for m in range(tasks.num_tasks)]
    groups = [name for name, y in zip(tasks.names, labels, strict=True) for _ in range(len(y))]
    if tasks.classes is not None:
        known = zip(tasks.classes, labels, strict=True)
        words = [own[place] for own, y in known for place in y.argmax(axis=1).tolist()]
        return (*row_notes(tasks), *class_notes(words, groups))
    return (*row_notes(tasks), *number_notes(np.concatenate(labels), groups))


def number_notes(y: Array, groups: list[str]) -> Iterator[str]:
    """Classes seen in one task only, where the labels are numbers that look like classes."""
    values = _classes(y) if y.ndim == 1 else np.empty(0)  # several outputs are no classes
    if len(values):
        names = [str(int(value)) for value in values.tolist()]
        yield from class_notes([names[place] for place in np.searchsorted(values, y).tolist()], groups)


def class_notes(classes: list[str], groups: list[str]) -> Iterator[str]:
    """Classes seen in one task only, where there are two classes and two tasks."""
    where: dict[str, list[str]] = {}
    for word, group in dict.fromkeys(zip(classes, groups, strict=True)):
        where.setdefault(word, []).append(group)
    if len(where) < 2 or len(set(groups)) < 2:
        return
    alone = {word: tasks[0] for word, tasks in where.items() if len(tasks) == 1}
    if len(alone) > CLASSES:
        yield f"{len(alone)} of {len(where)} classes are seen in one task only"
        return
    for word, task in alone.items():
        yield f"class {word!r} is seen in task {task!r} only"


def row_notes(tasks: LinearTasks) -> list[str]:
    """Tasks with one row."""
    single = [name for name, rows in zip(tasks.names, tasks.num_rows.tolist(), strict=True) if rows == 1]
    if len(single) > 3:
        return [f"{len(single)} of {tasks.num_tasks} tasks have one row"]
    return [f"task {name!r} has one row" for name in single]
