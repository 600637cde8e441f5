"""Tasks from CSV and npz files with a task column; errors name the file, the row and the column."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from io import TextIOWrapper
from os import PathLike, fstat
from pathlib import Path
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting._memory import require_memory
from forgetting._text import one_line
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError
from forgetting.storage.arrays import open_regular, read_arrays
from forgetting.tasks import RegressionTasks
from forgetting.tasks.files import FORMAT, regression_from

__all__ = ["Reading", "read_tasks", "task_notes"]

PathName = str | PathLike[str]
SEPARATORS = (",", ";", "\t")  # of which the header has most
MISSING = ("", "nan", "na", "n/a", "null", "none", "inf", "-inf", "+inf", "infinity")
COMPARED = 1000  # columns that a wrong name is compared with
UNNAMED = ("", "nan")  # no name of a task; "na" and "none" may be one
CLASSES = 20  # labels of at most so many different whole numbers may be classes, and so many classes are listed


@dataclass(frozen=True, eq=False)
class Reading:
    """Tasks read from files, and what a reader of the results should know about them.

    Attributes:
        tasks: the tasks, in the order in which they first appear.
        notes: rows that were dropped, tasks with one row, classes seen in one task only.
        features: names of the columns of X.
    """

    tasks: RegressionTasks
    notes: tuple[str, ...]
    features: tuple[str, ...]


@dataclass(frozen=True)
class _Sheet:
    """One file: a number for each row and feature, its label, its task, and the row as a user counts it.

    Tasks are None where the file is one.
    """

    path: Path
    features: tuple[str, ...]
    X: Array
    labels: list[str]
    tasks: list[str] | None
    lines: list[int]


def read_tasks(
    paths: PathName | Sequence[PathName],
    *,
    task: str = "task",
    label: str = "y",
    positive: str | None = None,
    drop_nan: bool = False,
    **options: Any,
) -> Reading:
    """Regression tasks from one or more CSV or npz files.

    A CSV file has a header, and commas, semicolons or tabs between its columns; the column `task` says which task a row
    belongs to, the column `label` is y, and all others are features. An npz file holds an array of each name: a task
    for each row, a label for each row, and the features as one matrix X. Of several files without a task column each is
    a task, named after the file, and after its folder too where two files have one name. A file of
    `RegressionTasks.save` is read as it is, alone.

    Args:
        paths: a file, or several.
        task, label: names of the two columns.
        positive: the class that counts as y = +1, all others as -1; labels may then be words. Where all labels are
            numbers, 1 and 1.0 are one class.
        drop_nan: leave out rows with a missing number (empty, NaN or infinite) or task, and say how many; otherwise
            they are refused.
        **options: for `RegressionTasks`.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "tasks.csv").write_text("task,a,b,y\\nfirst,1,0,1\\nsecond,0,1,2\\nsecond,1,1,3\\n")
    ...     found = read_tasks(Path(here, "tasks.csv"))
    >>> found.tasks.names, found.features, found.notes
    (('first', 'second'), ('a', 'b'), ("task 'first' has one row",))
    """
    several: Sequence[PathName] = [paths] if isinstance(paths, str | PathLike) else list(paths)
    if not several:
        raise ProblemFileError("no file given")
    files = [Path(one) for one in several]
    twice = _repeated(files)
    if twice is not None:
        raise ProblemFileError(f"{twice}: given twice")
    if len(files) == 1 and files[0].suffix.lower() == ".npz":
        arrays = read_arrays(files[0])
        if str(arrays.get("format")) == FORMAT:
            tasks = regression_from(arrays, files[0])
            return Reading(tasks, task_notes(tasks), tuple(map(str, range(tasks.dim))))
    dropped: dict[str, int] = {}
    sheets = [_read(path, task, label, len(files) > 1, drop_nan, dropped) for path in files]
    for sheet in sheets[1:]:
        if sheet.features != sheets[0].features:
            raise ProblemFileError(_mismatch(sheets[0], sheet))
    classes = _classes([word for sheet in sheets for word in sheet.labels])
    groups = _groups(sheets)
    if not classes:
        raise ProblemFileError(f"{files[0]}: every row has a missing number; nothing is left")
    y = _numbers(sheets, label) if positive is None else _signs(classes, positive, files[0])
    notes = [
        f"{path}: {count} row{'s' if count > 1 else ''} with missing numbers dropped" for path, count in dropped.items()
    ]
    try:
        tasks = RegressionTasks.from_arrays(np.concatenate([sheet.X for sheet in sheets]), y, groups, **options)
    except InvalidInputError as error:
        raise ProblemFileError(f"{', '.join(map(str, files[:3]))}: {error}") from error
    notes += [*_row_notes(tasks), *_class_notes(classes, groups, positive is not None)]
    return Reading(tasks, tuple(notes), sheets[0].features)


def task_notes(tasks: Any) -> tuple[str, ...]:
    """Tasks with one row, and classes seen in one task only.

    >>> import forgetting as fg
    >>> task_notes(fg.RegressionTasks([[[1.0], [2.0]], [[1.0], [2.0]]], [[0, 1], [0, 0]]))
    ("class '1' is seen in task '0' only",)
    """
    if not isinstance(tasks, RegressionTasks):
        return ()
    pairs = [(str(y), name) for m, name in enumerate(tasks.names) for y in tasks.task(m)[1].tolist()]
    return (*_row_notes(tasks), *_class_notes(_classes([word for word, _ in pairs]), [name for _, name in pairs]))


def _read(path: Path, task: str, label: str, several: bool, drop: bool, dropped: dict[str, int]) -> _Sheet:
    readers = {".csv": _read_csv, ".npz": _read_npz}
    if path.suffix.lower() not in readers:
        raise ProblemFileError(f"{path}: expected a .csv or .npz file")
    sheet = readers[path.suffix.lower()](path, task, label, several)
    named = sheet.tasks or ["one task"] * len(sheet.X)
    unnamed = np.array([name.lower() in UNNAMED for name in named], dtype=bool)
    unlabelled = np.array([_is_missing(word) for word in sheet.labels], dtype=bool)
    bad = ~np.isfinite(sheet.X).all(axis=1) | unlabelled | unnamed
    if not bad.any():
        return sheet
    if not drop:
        row = int(np.flatnonzero(bad)[0])
        if unnamed[row]:
            what = f"column {task!r}: no task is named"
        elif unlabelled[row]:
            what = f"column {label!r}: {sheet.labels[row] or 'nothing'} is not a number to compute with"
        else:
            column = int(np.argmin(np.isfinite(sheet.X[row])))
            value = "nan or nothing" if np.isnan(sheet.X[row, column]) else f"{sheet.X[row, column]}"
            what = f"column {sheet.features[column]!r}: {value} is not a number to compute with"
        raise ProblemFileError(
            f"{path}, row {sheet.lines[row]}, {what}; fill it in, or drop such rows with drop_nan (--drop-nan)"
        )
    kept = np.flatnonzero(~bad).tolist()
    dropped[str(path)] = int(bad.sum())
    tasks = None if sheet.tasks is None else [sheet.tasks[i] for i in kept]
    labels, lines = [sheet.labels[i] for i in kept], [sheet.lines[i] for i in kept]
    return _Sheet(path, sheet.features, sheet.X[kept], labels, tasks, lines)


def _is_missing(word: str) -> bool:
    """Whether a label is empty, NaN, or too large for a number: 1e400."""
    number = _parsed(word)
    return word.lower() in MISSING or (number is not None and not np.isfinite(number))


def _parsed(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _groups(sheets: list[_Sheet]) -> list[str]:
    """The task of every row; a file without a task column is one task, whatever the tasks of others are called."""
    whole = [sheet.path for sheet in sheets if sheet.tasks is None]
    named = {name for sheet in sheets for name in sheet.tasks or ()}
    groups = []
    for sheet in sheets:
        groups += sheet.tasks if sheet.tasks is not None else [_file_task(sheet.path, whole, named)] * len(sheet.X)
    return groups


def _file_task(path: Path, files: list[Path], taken: set[str]) -> str:
    """The shortest end of a path that tells it from the other files.

    >>> files = [Path("A/t.csv"), Path("B/t.csv"), Path("A/u.csv")]
    >>> [_file_task(path, files, set()) for path in files]
    ['A/t', 'B/t', 'u']
    """
    for depth in range(1, len(path.parts) + 1):
        ends = ["/".join(one.with_suffix("").parts[-depth:]) for one in (path, *files)]
        if ends.count(ends[0]) == 2 and ends[0] not in taken:  # itself, and itself among the files
            return ends[0]
    return str(path)


def _read_csv(path: Path, task: str, label: str, several: bool) -> _Sheet:
    try:
        with open_regular(path) as opened:
            size = fstat(opened.fileno()).st_size
        require_memory(8.0 * size, f"the cells of {path}", "split the file, or save its columns with np.savez")
        with open_regular(path) as opened, TextIOWrapper(opened, newline="", encoding="utf-8-sig") as handle:
            first = handle.readline()
            handle.seek(0)
            rows = csv.reader(handle, delimiter=max(SEPARATORS, key=first.count))
            header = [name.strip() for name in next(rows, [])]
            table = [(rows.line_num, [word.strip() for word in row]) for row in rows if any(map(str.strip, row))]
    except UnicodeDecodeError as error:
        what = f"{error.object[error.start : error.start + 1]!r} at byte {error.start}"
        raise ProblemFileError(f"{path}: not in UTF-8 ({what}); save it as UTF-8") from error
    except ForgettingError:
        raise
    except (OSError, ValueError, csv.Error) as error:
        raise ProblemFileError(f"{path}: cannot be read as CSV ({error})") from error
    if not table:
        raise ProblemFileError(f"{path}: a header without rows" if header else f"{path}: the file is empty")
    group, target = _columns(path, header, task, label, several)
    rest = [i for i in range(len(header)) if i not in (group, target)]
    if not rest:
        raise ProblemFileError(f"{path}: no features beside {label!r} and {task!r}")
    for line, row in table:
        if len(row) != len(header):
            raise ProblemFileError(f"{path}, row {line}: {len(row)} cells under {len(header)} columns")
    return _Sheet(
        path,
        tuple(header[i] for i in rest),
        np.array([[_number(row[i], path, line, header[i]) for i in rest] for line, row in table]),
        [row[target] for _, row in table],
        None if group is None else [row[group] for _, row in table],
        [line for line, _ in table],
    )


def _read_npz(path: Path, task: str, label: str, several: bool) -> _Sheet:
    arrays = read_arrays(path)
    form = str(arrays.get("format"))
    if form == FORMAT:
        raise ProblemFileError(f"{path}: holds a saved collection of tasks; give it alone")
    if form.startswith("forgetting/"):
        raise ProblemFileError(f"{path}: holds {form}, but an audit needs regression tasks")
    names = list(arrays)
    group, target = _columns(path, names, task, label, several)
    rest = [name for i, name in enumerate(names) if i not in (group, target)]
    name = "X" if "X" in rest else rest[0] if len(rest) == 1 else ""
    if not name:
        raise ProblemFileError(f"{path}: expected one matrix X of features, found {', '.join(rest) or 'none'}")
    X = np.asarray(arrays[name])
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ProblemFileError(f"{path}, array {name!r}: expected a matrix of numbers, got {X.dtype}, shape {X.shape}")
    words = {}
    for one in (label,) if group is None else (label, task):
        column = np.asarray(arrays[one])
        if column.shape != (len(X),):
            raise ProblemFileError(f"{path}, array {one!r}: shape {column.shape} for {len(X)} rows of {name!r}")
        words[one] = [str(value) for value in column.tolist()]
    tasks = None if group is None else words[task]
    features = tuple(map(str, range(X.shape[1])))
    return _Sheet(path, features, X.astype(np.float64), words[label], tasks, list(range(len(X))))


def _columns(path: Path, names: list[str], task: str, label: str, several: bool) -> tuple[int | None, int]:
    """Where the task (None: the file is one task) and the label are."""
    twice = _repeated(names)
    if twice is not None:
        raise ProblemFileError(f"{path}: two columns are called {twice!r:.60}")
    if label not in names:
        raise ProblemFileError(f"{path}: no column {label!r} for the labels{_nearest(label, names)}")
    if task not in names and not several:
        raise ProblemFileError(f"{path}: no column {task!r} for the tasks{_nearest(task, names)}")
    return (names.index(task) if task in names else None), names.index(label)


def _repeated(names: Iterable[Any]) -> Any:
    """The first of several that is there more than once, or None.

    >>> _repeated(["a", "b", "a"]), _repeated([])
    ('a', None)
    """
    return next((name for name, times in Counter(names).items() if times > 1), None)


def _nearest(name: str, names: Iterable[str]) -> str:
    known = list(names)
    close = get_close_matches(name, [one for one in known[:COMPARED] if len(one) <= 60], n=1, cutoff=0.4)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    listed = [one_line(one, 60) for one in known[:12]]
    return f"{hint} the columns are {', '.join(listed)}{', ...' if len(known) > 12 else ''}"


def _number(word: str, path: Path, line: int, column: str) -> float:
    try:
        return float("nan") if word.lower() in MISSING and "inf" not in word.lower() else float(word)
    except ValueError:
        hint = "; decimals have a point" if word.replace(",", "", 1).lstrip("+-").isdigit() else ""
        raise ProblemFileError(f"{path}, row {line}, column {column!r}: {word!r:.40} is not a number{hint}") from None


def _numbers(sheets: list[_Sheet], label: str) -> Array:
    """The labels of all rows as numbers."""
    values = []
    for sheet in sheets:
        for word, line in zip(sheet.labels, sheet.lines, strict=True):
            number = _parsed(word)
            if number is None:
                raise ProblemFileError(
                    f"{sheet.path}, row {line}, column {label!r}: {word!r:.40} is not a number; for classes, name "
                    "the one that counts as +1 with positive= (--positive)"
                )
            values.append(number)
    return np.array(values)


def _signs(classes: list[str], positive: str, path: Path) -> Array:
    """+1 for the positive class and -1 for the others; `path` is for the message."""
    known = sorted(set(classes))
    numbers = all(_parsed(word) is not None for word in known)
    wanted = _number_name(positive) if numbers and _parsed(positive) is not None else positive
    if wanted not in known:
        raise ProblemFileError(
            f"{path}: no label is {positive!r}{_nearest(positive, known).replace('columns', 'labels')}"
        )
    return np.array([1.0 if word == wanted else -1.0 for word in classes])


def _classes(words: list[str]) -> list[str]:
    """Labels under one name each: where all are numbers, 1 and 1.0 are the same.

    >>> _classes(["1", "1.0", "2.50"]), _classes(["1", "1.0", "cat"])
    (['1', '1', '2.5'], ['1', '1.0', 'cat'])
    """
    if any(_parsed(word) is None for word in words):
        return words
    return [_number_name(word) for word in words]


def _number_name(word: str) -> str:
    try:
        return str(int(word))  # first: a long number of a class is no float
    except ValueError:
        number = float(word)
        return str(int(number)) if number.is_integer() else str(number)


def _class_notes(classes: list[str], groups: list[str], sure: bool = False) -> Iterable[str]:
    """Classes seen in one task only, where labels are classes for sure, or are numbers that look like it."""
    where: dict[str, set[str]] = {}
    for word, group in zip(classes, groups, strict=True):
        where.setdefault(word, set()).add(group)
    if len(where) < 2 or len(set(groups)) < 2:
        return
    few = len(where) <= CLASSES and len(classes) >= 2 * len(where)
    if not sure and not (few and all(float(word).is_integer() for word in where)):
        return
    alone = {word: next(iter(tasks)) for word, tasks in where.items() if len(tasks) == 1}
    if len(alone) > CLASSES:
        yield f"{len(alone)} of {len(where)} classes are seen in one task only"
        return
    for word, task in alone.items():
        yield f"class {word!r} is seen in task {task!r} only"


def _row_notes(tasks: RegressionTasks) -> list[str]:
    single = [name for name, rows in zip(tasks.names, tasks.num_rows.tolist(), strict=True) if rows == 1]
    if len(single) > 3:
        return [f"{len(single)} of {tasks.num_tasks} tasks have one row"]
    return [f"task {name!r} has one row" for name in single]


def _mismatch(first: _Sheet, other: _Sheet) -> str:
    odd = sorted(set(first.features) ^ set(other.features))
    what = f"column {odd[0]!r} is in one of them only" if odd else "the columns come in another order"
    return f"{other.path} has other features than {first.path}: {what}"
