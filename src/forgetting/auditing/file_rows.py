"""The rows of one file: which columns hold the tasks and the labels, and the reader of npz files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting._text import nearest
from forgetting.errors import ProblemFileError
from forgetting.storage.arrays import read_arrays
from forgetting.tasks.files import FORMAT

__all__ = ["NOTHING", "Sheet", "column_places", "first_repeated", "parse_number", "read_npz"]

NOTHING = ("", "nan", "na", "n/a", "null", "none")  # spellings, in lower case, of a number that is missing
COLUMNS = "the columns are"


@dataclass(frozen=True, eq=False)
class Sheet:
    """The rows of one file.

    Attributes:
        path: the file.
        features: names of the columns of X.
        X: a number for each row and feature, NaN where the number is missing.
        labels: the label of each row, as the file spells it.
        y: the same labels as numbers, NaN where a label is missing or is a word.
        tasks: the name of the task of each row; None where the file is one task.
        place: gives the number by which a user knows a row: its line in a text file, its index elsewhere.
    """

    path: Path
    features: tuple[str, ...]
    X: Array
    labels: list[str]
    y: Array
    tasks: list[str] | None
    place: Callable[[int], int]

    def take(self, rows: list[int]) -> Sheet:
        """The sheet with these rows only."""
        return replace(
            self,
            X=self.X[rows],
            labels=[self.labels[row] for row in rows],
            y=self.y[rows],
            tasks=None if self.tasks is None else [self.tasks[row] for row in rows],
            place=lambda row: self.place(rows[row]),
        )


def read_npz(path: Path, task: str, label: str, several: bool) -> Sheet:
    """The rows of an npz file with a matrix X, an array of labels and, unless each file is a task, one of tasks."""
    arrays = read_arrays(path)
    form = str(arrays.get("format"))
    if form == FORMAT:
        raise ProblemFileError(f"{path}: holds a saved collection of tasks; give it alone")
    if form.startswith("forgetting/"):
        raise ProblemFileError(f"{path}: holds {form}, but an audit needs regression tasks")
    names = list(arrays)
    group, target = column_places(path, names, task, label, several)
    rest = [name for i, name in enumerate(names) if i not in (group, target)]
    name = "X" if "X" in rest else rest[0] if len(rest) == 1 else ""
    if not name:
        raise ProblemFileError(f"{path}: expected one matrix X of features, found {', '.join(rest) or 'none'}")
    X = np.asarray(arrays[name])
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ProblemFileError(f"{path}, array {name!r}: expected a matrix of numbers, got {X.dtype}, shape {X.shape}")
    words = {}
    for key in (label,) if group is None else (label, task):
        column = np.asarray(arrays[key])
        if column.shape != (len(X),):
            raise ProblemFileError(f"{path}, array {key!r}: shape {column.shape} for {len(X)} rows of {name!r}")
        words[key] = [str(value) for value in column.tolist()]
    numbers = [parse_number(word) for word in words[label]]
    return Sheet(
        path,
        tuple(map(str, range(X.shape[1]))),
        X.astype(np.float64),
        words[label],
        np.array([np.nan if number is None else number for number in numbers], dtype=np.float64),
        None if group is None else words[task],
        lambda row: row,
    )


def parse_number(word: str) -> float | None:
    """The number that a word spells, or None.

    >>> parse_number("1e3"), parse_number("cat")
    (1000.0, None)
    """
    try:
        return float(word)
    except ValueError:
        return None


def column_places(path: Path, names: list[str], task: str, label: str, several: bool) -> tuple[int | None, int]:
    """The places of the task column (None where the file is one of several and has no such column) and of the label."""
    repeated = first_repeated(names)
    if repeated is not None:
        raise ProblemFileError(f"{path}: two columns are called {repeated!r:.60}")
    if label not in names:
        raise ProblemFileError(f"{path}: no column {label!r} for the labels{nearest(label, names, COLUMNS)}")
    if task not in names and not several:
        raise ProblemFileError(f"{path}: no column {task!r} for the tasks{nearest(task, names, COLUMNS)}")
    return (names.index(task) if task in names else None), names.index(label)


def first_repeated(names: Iterable[Any]) -> Any:
    """The first name that occurs more than once, or None.

    >>> first_repeated(["a", "b", "a"]), first_repeated([])
    ('a', None)
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)
