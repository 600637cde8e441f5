"""Regression tasks from rows, whatever they were read from, with notes on what is worth a look.

Errors name the source, the row and the column. Notes name index columns, rows that were left out, tasks with one row.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, is_sparse
from forgetting.core.groups import Groups, groups_of
from forgetting.core.text import nearest, one_line
from forgetting.errors import InvalidInputError
from forgetting.files.tables import NAMELESS, NOTHING, not_a_number, parse_number
from forgetting.geometry import Matrix
from forgetting.tasks.linear_tasks import LinearTasks
from forgetting.tasks.problem import Problem
from forgetting.tasks.readers.classes import about_labels, decided_of_labels, label_notes, numbers_doubt, read_labels
from forgetting.tasks.readers.sheet import Columns, Sheet
from forgetting.tasks.regression import RegressionTasks
from forgetting.tasks.task_data import as_slice

__all__ = ["Reading", "task_notes"]


@dataclass(frozen=True, eq=False)
class Reading:
    """Tasks that were read, and notes on what a reader of the results should know about them.

    Attributes:
        tasks: the tasks.
        notes: first what the labels were taken for, if they are classes; rows that were dropped, columns that look like
            an index, tasks with one row; the order of the tasks.
        features: names of the columns of X.
        doubts: the notes that are about likely mistakes.
        decided: what was decided for the caller beside them, and how to decide otherwise.
    """

    tasks: Problem
    notes: tuple[str, ...]
    features: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()


def check_options(options: Mapping[str, Any]) -> None:
    """Raise unless `RegressionTasks` takes the options, which `fg.load` passes on."""
    known = [name for name in inspect.signature(RegressionTasks).parameters if name not in ("matrices", "labels")]
    for name in options:
        if name not in known:
            ours = [field.name for field in fields(Columns)]
            raise InvalidInputError(f"there is no option {name!r:.60}{nearest(name, [*ours, *known])}")


def tasks_from(
    sheets: Sequence[Sheet], columns: Columns, options: Mapping[str, Any], learned: Problem | None = None
) -> Reading:
    """Regression tasks from the rows of one or more sources; `learned` are the tasks that the rows are held out of."""
    check_options(options)
    notes: list[str] = []
    doubts: list[str] = []
    decided: list[str] = []
    kept = []
    for sheet in sheets:
        without_index, left_out, doubted = index_columns(sheet)
        complete, dropped = completed(without_index, columns)
        kept.append(complete)
        notes += [*dropped, *left_out]
        doubts += doubted
    for sheet in kept[1:]:
        if (sheet.named or sheet.origin.path is not None) and sheet.features != kept[0].features:
            raise sheet.origin.refusal(_mismatch(kept[0], sheet))
    groups = groups_of(_owners(kept))
    if not groups.names:
        raise kept[0].origin.refusal(": every row has a missing number; nothing is left")
    labels = read_labels(kept, columns, groups, learned)
    members = groups.rows
    targets, classes = labels.of(members)
    try:
        copy = kept[0].origin.path is None  # nobody else has the arrays of a file
        tasks = RegressionTasks(_matrices(kept, groups), targets, **{"names": groups.names, "copy": copy, **options})
    except InvalidInputError as error:
        if kept[0].origin.path is None:
            raise
        raise kept[0].origin.refusal(f"{_others(kept)}: {error}") from error
    tasks.classes = classes
    if learned is None:
        said, about = about_labels(tasks, labels, columns, groups)
        doubts = [*about, *doubts]
        decided = decided_of_labels(said, labels, columns)
        order: tuple[str, ...] = ()
        if any(sheet.tasks is not None for sheet in kept):
            doubts += groups.doubts
            order, decided = groups.note(tasks.names), [*decided, *groups.decided(tasks.names)]
        notes = [*said, *doubts, *notes, *row_notes(tasks), *order]
    else:
        notes = [*doubts, *notes]
    tasks.notes = tuple(dict.fromkeys(notes))
    return Reading(tasks, tasks.notes, kept[0].features, tuple(dict.fromkeys(doubts)), tuple(decided))


# --------------------------------------------------------------------------------------------------- what is missing


def completed(sheet: Sheet, columns: Columns) -> tuple[Sheet, list[str]]:
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
            word = sheet.labels[row]
            what = f"column {columns.label!r}: {word or 'nothing'} is not a number to compute with"
            if (np.isnan(sheet.y) & ~unlabelled).any():  # others are words
                what = f"column {columns.label!r}: there is no label" + (f" ({word!r} stands for none)" if word else "")
        else:
            values = sheet.X[[row]].toarray()[0] if is_sparse(sheet.X) else sheet.X[row]
            column = int(np.argmin(np.isfinite(values)))
            what = f"column {sheet.features[column]!r}: {not_a_number(values[column])}"
        raise sheet.origin.refusal(
            f", row {sheet.place(row)}, {what}; fill it in, or drop such rows with drop_nan (--drop-nan)"
        )
    count = int(bad.sum())
    said = f"{count} row{'s' if count > 1 else ''} with missing numbers dropped"
    left = replace(sheet.take(np.flatnonzero(~bad).tolist()), gaps=bool(unlabelled.any()))
    return left, [f"{sheet.origin.name}: {said}" if sheet.origin.name else said]


def _not_finite(X: Matrix) -> NDArray[np.bool_]:
    """The rows that hold NaN or infinity."""
    if not is_sparse(X):
        return np.asarray(~np.isfinite(X).all(axis=1))
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.isin(np.arange(X.shape[0]), rows[~np.isfinite(X.data)])


# ----------------------------------------------------------------------------------------------------------- the tasks


def _owners(sheets: Sequence[Sheet]) -> list[str]:
    """The task of every row; a source without a task column is one task, whatever tasks of other sources are called."""
    files = [sheet.origin.path for sheet in sheets if sheet.tasks is None and sheet.origin.path is not None]
    named = {name for sheet in sheets for name in sheet.tasks or ()}
    owners = []
    for sheet in sheets:
        path = sheet.origin.path
        if sheet.tasks is not None:
            owners += sheet.tasks
        else:
            owners += [sheet.origin.task if path is None else _file_task(path, files, named)] * sheet.X.shape[0]
    return owners


def _matrices(sheets: Sequence[Sheet], groups: Groups) -> list[Matrix]:
    """The rows of each task."""
    parts: list[list[Matrix]] = [[] for _ in groups.names]
    start = 0
    for sheet in sheets:
        size = sheet.X.shape[0]
        codes = groups.codes[start : start + size]
        order = np.argsort(codes, kind="stable")
        present, first = np.unique(codes[order], return_index=True)
        for code, members in zip(present.tolist(), np.split(order, first[1:]) if size else (), strict=True):
            parts[code].append(sheet.X if len(members) == size else sheet.X[as_slice(members)])
        start += size
    return [pieces[0] if len(pieces) == 1 else _stacked(pieces) for pieces in parts]


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


# ---------------------------------------------------------------------------------------------------------------- notes


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


def task_notes(tasks: LinearTasks) -> tuple[str, ...]:
    """Notes on the labels of tasks, and on tasks with one row.

    >>> import forgetting as fg
    >>> task_notes(fg.RegressionTasks([[[1.0], [2.0]], [[1.0], [2.0]]], [[-1, 1], [-1, -1]]))
    ("class '1' is seen in task '0' only",)
    """
    if tasks.data is None:
        return ()
    notes = [*label_notes(tasks.data), *row_notes(tasks)]
    if tasks.outputs is None:
        y = np.concatenate([tasks.labels_of(task) for task in range(tasks.num_tasks)])
        notes += numbers_doubt(y, "make the tasks by RegressionTasks.from_labels")
    return tuple(notes)


def row_notes(tasks: LinearTasks) -> list[str]:
    """Notes on tasks with one row."""
    single = [name for name, rows in zip(tasks.names, tasks.num_rows.tolist(), strict=True) if rows == 1]
    if len(single) > 3:
        return [f"{len(single)} of {tasks.num_tasks} tasks have one row"]
    return [f"task {name!r} has one row" for name in single]
