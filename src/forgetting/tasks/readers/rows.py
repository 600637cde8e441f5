"""Regression tasks from rows, whatever they were read from, with notes on what is worth a look.

Errors name the source, the row and the column. Notes name index columns, classes taken for numbers, tasks with one row.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray, is_sparse
from forgetting.core.text import nearest, one_line
from forgetting.errors import InvalidInputError
from forgetting.files.tables import NAMELESS, NOTHING, decimals, not_a_number, parse_number
from forgetting.geometry import Matrix
from forgetting.tasks.linear_tasks import LinearTasks
from forgetting.tasks.problem import Problem
from forgetting.tasks.readers.sheet import Columns, Sheet
from forgetting.tasks.regression import RegressionTasks

__all__ = ["Reading", "task_notes"]


@dataclass(frozen=True, eq=False)
class Reading:
    """Tasks that were read, and notes on what a reader of the results should know about them.

    Attributes:
        tasks: the tasks, in the order in which they first appear.
        notes: rows that were dropped, columns that look like an index, labels that look like classes, the order of
            tasks, tasks with one row, classes seen in one task only.
        features: names of the columns of X.
        doubts: the notes that are about likely mistakes.
    """

    tasks: Problem
    notes: tuple[str, ...]
    features: tuple[str, ...]
    doubts: tuple[str, ...] = ()


def check_options(options: Mapping[str, Any]) -> None:
    """Raise unless `RegressionTasks` takes the options, which `fg.load` passes on."""
    known = [name for name in inspect.signature(RegressionTasks).parameters if name not in ("matrices", "labels")]
    for name in options:
        if name not in known:
            ours = [field.name for field in fields(Columns)]
            raise InvalidInputError(f"there is no option {name!r:.60}{nearest(name, [*ours, *known])}")


def tasks_from(sheets: Sequence[Sheet], columns: Columns, options: Mapping[str, Any]) -> Reading:
    """Regression tasks from the rows of one or more sources."""
    check_options(options)
    notes: list[str] = []
    doubts: list[str] = []
    kept = []
    for sheet in sheets:
        without_index, left_out, doubted = index_columns(sheet)
        complete, dropped = _complete(without_index, columns)
        kept.append(complete)
        notes += [*dropped, *left_out]
        doubts += doubted
    for sheet in kept[1:]:
        if (sheet.named or sheet.origin.path is not None) and sheet.features != kept[0].features:
            raise sheet.origin.refusal(_mismatch(kept[0], sheet))
    groups = _groups(kept)
    if not groups:
        raise kept[0].origin.refusal(": every row has a missing number; nothing is left")
    classes = [] if columns.positive is None else _classes([word for sheet in kept for word in sheet.labels])
    y = _numbers(kept, columns.label) if columns.positive is None else _signs(classes, columns.positive, kept[0])
    matrices, labels, names = _split(kept, y, groups)
    try:
        copy = kept[0].origin.path is None  # nobody else has the arrays of a file
        tasks = RegressionTasks(matrices, labels, **{"names": names, "copy": copy, **options})
    except InvalidInputError as error:
        if kept[0].origin.path is None:
            raise
        raise kept[0].origin.refusal(f"{_others(kept)}: {error}") from error
    doubts += [] if classes else regressed_classes(y)
    notes += [*doubts, *row_notes(tasks), *(class_notes(classes, groups) if classes else number_notes(y, groups))]
    if len(names) > 1 and any(sheet.tasks is not None for sheet in kept):
        notes.append(order_note(tasks.names))
    tasks.notes = tuple(dict.fromkeys(notes))
    return Reading(tasks, tasks.notes, kept[0].features, tuple(dict.fromkeys(doubts)))


# --------------------------------------------------------------------------------------------------- what is missing


def _complete(sheet: Sheet, columns: Columns) -> tuple[Sheet, list[str]]:
    """The sheet without rows that lack something, and a note that counts them; an error unless they may be dropped."""
    unnamed = np.zeros(sheet.X.shape[0], dtype=bool)
    if nameless := {name for name in set(sheet.tasks or ()) if name.lower() in NAMELESS}:
        unnamed[:] = [name in nameless for name in sheet.tasks or ()]
    unlabelled = ~np.isfinite(sheet.y)
    for row in np.flatnonzero(unlabelled).tolist():
        unlabelled[row] = sheet.labels[row].lower() in NOTHING or parse_number(sheet.labels[row]) is not None
    bad = _not_finite(sheet.X) | unlabelled | unnamed
    if not bad.any():
        return sheet, []
    if not columns.drop_nan:
        row = int(np.flatnonzero(bad)[0])
        if unnamed[row]:
            what = f"column {columns.task!r}: no task is named"
        elif unlabelled[row]:
            what = f"column {columns.label!r}: {sheet.labels[row] or 'nothing'} is not a number to compute with"
        else:
            values = sheet.X[[row]].toarray()[0] if is_sparse(sheet.X) else sheet.X[row]
            column = int(np.argmin(np.isfinite(values)))
            what = f"column {sheet.features[column]!r}: {not_a_number(values[column])}"
        raise sheet.origin.refusal(
            f", row {sheet.place(row)}, {what}; fill it in, or drop such rows with drop_nan (--drop-nan)"
        )
    count = int(bad.sum())
    said = f"{count} row{'s' if count > 1 else ''} with missing numbers dropped"
    return sheet.take(np.flatnonzero(~bad).tolist()), [f"{sheet.origin.name}: {said}" if sheet.origin.name else said]


def _not_finite(X: Matrix) -> NDArray[np.bool_]:
    """The rows that hold NaN or infinity."""
    if not is_sparse(X):
        return np.asarray(~np.isfinite(X).all(axis=1))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.isin(np.arange(X.shape[0]), rows[~np.isfinite(X.data)])


# ----------------------------------------------------------------------------------------------------------- the tasks


def _groups(sheets: Sequence[Sheet]) -> list[str]:
    """The task of every row; a source without a task column is one task, whatever tasks of other sources are called."""
    files = [sheet.origin.path for sheet in sheets if sheet.tasks is None and sheet.origin.path is not None]
    named = {name for sheet in sheets for name in sheet.tasks or ()}
    groups = []
    for sheet in sheets:
        path = sheet.origin.path
        if sheet.tasks is not None:
            groups += sheet.tasks
        else:
            groups += [sheet.origin.task if path is None else _file_task(path, files, named)] * sheet.X.shape[0]
    return groups


def _split(sheets: Sequence[Sheet], y: Array, groups: list[str]) -> tuple[list[Matrix], list[Array], list[str]]:
    """The rows, the labels and the name of each task, in order of first appearance."""
    rows: dict[str, list[IntArray]] = {}
    parts: dict[str, list[Matrix]] = {}
    start = 0
    for sheet in sheets:
        size = sheet.X.shape[0]
        for name, members in _members(groups[start : start + size]):
            contiguous = members[-1] - members[0] + 1 == len(members)
            pick = slice(members[0], members[-1] + 1) if contiguous else members  # a slice is a view
            parts.setdefault(name, []).append(sheet.X if len(members) == size else sheet.X[pick])
            rows.setdefault(name, []).append(members + start)
        start += size
    matrices = [pieces[0] if len(pieces) == 1 else _stacked(pieces) for pieces in parts.values()]
    return matrices, [y[np.concatenate(numbers)] for numbers in rows.values()], list(parts)


def _members(groups: list[str]) -> Iterator[tuple[str, IntArray]]:
    """The name and the row numbers of each group, in order of first appearance."""
    codes = {name: code for code, name in enumerate(dict.fromkeys(groups))}
    numbers = np.array([codes[name] for name in groups])
    if codes:
        ends = np.cumsum(np.bincount(numbers))[:-1]
        yield from zip(codes, np.split(np.argsort(numbers, kind="stable"), ends), strict=True)


def _stacked(pieces: list[Matrix]) -> Matrix:
    if not any(map(is_sparse, pieces)):
        return np.concatenate(pieces)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(piece) for piece in pieces]))


def _file_task(path: Path, files: list[Path], taken: set[str]) -> str:
    """The shortest end of a path that tells it from the other files.

    >>> files = [Path("A/t.csv"), Path("B/t.csv"), Path("A/u.csv")]
    >>> [_file_task(path, files, set()) for path in files]
    ['A/t', 'B/t', 'u']
    """
    for depth in range(1, len(path.parts) + 1):
        ends = ["/".join(file.with_suffix("").parts[-depth:]) for file in (path, *files)]
        if ends.count(ends[0]) == 2 and ends[0] not in taken:  # itself, and itself among the files
            return ends[0]
    return str(path)


def _mismatch(first: Sheet, other: Sheet) -> str:
    odd = sorted(set(first.features) ^ set(other.features))
    what = f"column {odd[0]!r} is in one of them only" if odd else "the columns come in another order"
    return f" has other features than {first.origin.name}: {what}"


def _others(sheets: Sequence[Sheet]) -> str:
    """The names of the second and third source, for messages about all."""
    return "".join(f", {sheet.origin.name}" for sheet in sheets[1:3])


# ---------------------------------------------------------------------------------------------------------- the labels


def _numbers(sheets: Sequence[Sheet], label: str) -> Array:
    """The labels of all rows as numbers."""
    for sheet in sheets:
        words = np.flatnonzero(np.isnan(sheet.y))
        if len(words):
            row = int(words[0])
            word = sheet.labels[row]
            remedy = decimals(word) or "; for classes, name the one that counts as +1 with positive= (--positive)"
            raise sheet.origin.refusal(
                f", row {sheet.place(row)}, column {label!r}: {word!r:.40} is not a number{remedy}"
            )
    return np.concatenate([sheet.y for sheet in sheets])


def _signs(classes: list[str], positive: str, sheet: Sheet) -> Array:
    """+1 for the positive class and -1 for the others; `sheet` is for the message."""
    known = sorted(set(classes))
    numbers = all(parse_number(word) is not None for word in known)
    wanted = _number_name(positive) if numbers and parse_number(positive) is not None else positive
    if wanted not in known:
        raise sheet.origin.refusal(f": no label is {positive!r:.60}{nearest(positive, known, 'the labels are')}")
    return np.array([1.0 if word == wanted else -1.0 for word in classes])


def _classes(words: list[str]) -> list[str]:
    """Labels under one name each: where all are numbers, 1 and 1.0 are the same.

    >>> _classes(["1", "1.0", "2.50"]), _classes(["1", "1.0", "cat"])
    (['1', '1', '2.5'], ['1', '1.0', 'cat'])
    """
    distinct = set(words)
    if any(parse_number(word) is None for word in distinct):
        return words
    names = {word: _number_name(word) for word in distinct}
    return [names[word] for word in words]


def _number_name(word: str) -> str:
    try:
        return str(int(word))  # first: a long number of a class is no float
    except ValueError:
        number = float(word)
        return str(int(number)) if number.is_integer() else str(number)


# ---------------------------------------------------------------------------------------------------------------- notes


CLASSES = 20  # the most different whole numbers that may be classes, and the most classes that are listed
LISTED = 5  # names in a note
LONG = 10  # rows of a table from which a feature that counts them is no coincidence
UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+)?|__index_level_\d+__")  # names that pandas gives an index without one
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
                    f"column {shown!r} has no name, but is a feature; if it is not one, leave it out with {option}"
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
        are_whole = bool((values == np.round(values)).all() and (values >= 0).all())
    return are_whole and len(values) > 1 and len(np.unique(values)) == len(values)


def regressed_classes(y: Array) -> Iterator[str]:
    """A doubt if labels are few whole numbers, as classes are; -1 and +1 are meant to be regressed.

    >>> list(regressed_classes(np.array([0.0, 1, 2, 1, 0, 2, 2])))
    ['the labels are the numbers 0, 1, 2, and are learned as numbers; if they are classes, name the one that ...
    """
    values = _class_labels(y)
    if len(values) > 1 and values.tolist() != [-1, 1]:
        named = ", ".join(str(int(value)) for value in values[:LISTED]) + (", ..." if len(values) > LISTED else "")
        yield (
            f"the labels are the numbers {named}, and are learned as numbers; if they are classes, name the one that "
            "counts as +1 with positive= (--positive)"
        )


def _class_labels(y: Array) -> Array:
    """The different labels if they look like classes: few whole numbers; else none."""
    values = np.unique(y)
    return values if len(values) <= min(CLASSES, len(y) / 2) and (values == np.round(values)).all() else values[:0]


def order_note(names: Sequence[str]) -> str:
    """A note on the order of the tasks.

    >>> order_note(["b", "a", "c"])
    "tasks are in order of first appearance: 'b', 'a', 'c'"
    """
    listed = ", ".join(repr(one_line(name, 40)) for name in names[:LISTED])
    return f"tasks are in order of first appearance: {listed}{', ...' if len(names) > LISTED else ''}"


def task_notes(tasks: LinearTasks) -> tuple[str, ...]:
    """Notes on tasks with one row, and on classes seen in one task only.

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
    """Notes on classes seen in one task only, where the labels are numbers that look like classes."""
    values = _class_labels(y) if y.ndim == 1 else np.empty(0)  # several outputs are no classes
    if len(values):
        names = [str(int(value)) for value in values.tolist()]
        yield from class_notes([names[place] for place in np.searchsorted(values, y).tolist()], groups)


def class_notes(classes: list[str], groups: list[str]) -> Iterator[str]:
    """Notes on classes seen in one task only, where there are two classes and two tasks."""
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
    """Notes on tasks with one row."""
    single = [name for name, rows in zip(tasks.names, tasks.num_rows.tolist(), strict=True) if rows == 1]
    if len(single) > 3:
        return [f"{len(single)} of {tasks.num_tasks} tasks have one row"]
    return [f"task {name!r} has one row" for name in single]
