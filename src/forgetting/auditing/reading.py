"""Tasks from tables (CSV, TSV, Parquet) and npz files; errors name the file, the row and the column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting._text import nearest
from forgetting.auditing.file_rows import NOTHING, Sheet, first_repeated, parse_number, read_npz
from forgetting.errors import InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.storage.arrays import read_arrays
from forgetting.tasks import LinearTasks, RegressionTasks
from forgetting.tasks.files import FORMAT, regression_from

__all__ = ["ENDINGS", "Reading", "read_tasks", "task_notes"]

ENDINGS = (".csv", ".tsv", ".parquet", ".npz")
PathName = str | PathLike[str]
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


def read_tasks(
    paths: PathName | Sequence[PathName],
    *,
    task: str = "task",
    label: str = "y",
    positive: str | None = None,
    drop_nan: bool = False,
    **options: Any,
) -> Reading:
    """Regression tasks from one or more tables (CSV, TSV, Parquet) or npz files.

    The column `task` says which task a row belongs to, the column `label` is y, and all other columns are features. A
    CSV or TSV file has a header, and commas, semicolons or tabs between its columns. An npz file holds an array of each
    name: a task for each row, a label for each row, and the features as one matrix X. Of several files without a task
    column each is a task, named after the file, and after its folder too where two files have one name. A file of
    `RegressionTasks.save` is read as it is, alone. Tables are read by pyarrow: `pip install 'forgetting[data]'`.

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
    files = [Path(name) for name in several]
    repeated = first_repeated(files)
    if repeated is not None:
        raise ProblemFileError(f"{repeated}: given twice")
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
    groups = _groups(sheets)
    if not groups:
        raise ProblemFileError(f"{files[0]}: every row has a missing number; nothing is left")
    classes = [] if positive is None else _classes([word for sheet in sheets for word in sheet.labels])
    y = _numbers(sheets, label) if positive is None else _signs(classes, positive, files[0])
    notes = [
        f"{path}: {count} row{'s' if count > 1 else ''} with missing numbers dropped" for path, count in dropped.items()
    ]
    try:
        codes = {name: code for code, name in enumerate(dict.fromkeys(groups))}  # NumPy pads words to the longest
        numbers, names = [codes[name] for name in groups], {"names": list(codes), **options}
        tasks = RegressionTasks.from_arrays(np.concatenate([sheet.X for sheet in sheets]), y, numbers, **names)
    except InvalidInputError as error:
        raise ProblemFileError(f"{', '.join(map(str, files[:3]))}: {error}") from error
    notes += [*_row_notes(tasks), *(_class_notes(classes, groups) if classes else _number_notes(y, groups))]
    return Reading(tasks, tuple(notes), sheets[0].features)


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
    return (*_row_notes(tasks), *_number_notes(np.concatenate(labels), groups))


def _read(path: Path, task: str, label: str, several: bool, drop: bool, dropped: dict[str, int]) -> Sheet:
    sheet = _reader(path)(path, task, label, several)
    unnamed = np.zeros(len(sheet.X), dtype=bool)
    if nameless := {name for name in set(sheet.tasks or ()) if name.lower() in UNNAMED}:
        unnamed[:] = [name in nameless for name in sheet.tasks or ()]
    unlabelled = ~np.isfinite(sheet.y)
    for row in np.flatnonzero(unlabelled).tolist():
        unlabelled[row] = sheet.labels[row].lower() in NOTHING or parse_number(sheet.labels[row]) is not None
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
            f"{path}, row {sheet.place(row)}, {what}; fill it in, or drop such rows with drop_nan (--drop-nan)"
        )
    dropped[str(path)] = int(bad.sum())
    return sheet.take(np.flatnonzero(~bad).tolist())


def _reader(path: Path) -> Callable[[Path, str, str, bool], Sheet]:
    """The function that reads a file with this ending."""
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ProblemFileError(f"{path}: expected a {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file")
    if ending == ".npz":
        return read_npz
    try:
        from forgetting.auditing import arrow
    except ImportError:
        raise NotSupportedError(
            f"{path}: tables ({', '.join(ENDINGS[:-1])}) are read by pyarrow, which is not installed: "
            "pip install 'forgetting[data]', or save the columns with np.savez as an .npz file"
        ) from None
    return arrow.read_parquet if ending == ".parquet" else arrow.read_text


def _groups(sheets: list[Sheet]) -> list[str]:
    """The task of every row; a file without a task column is one task, whatever the tasks of other files are called."""
    files = [sheet.path for sheet in sheets if sheet.tasks is None]
    named = {name for sheet in sheets for name in sheet.tasks or ()}
    groups = []
    for sheet in sheets:
        groups += sheet.tasks if sheet.tasks is not None else [_file_task(sheet.path, files, named)] * len(sheet.X)
    return groups


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


def _numbers(sheets: list[Sheet], label: str) -> Array:
    """The labels of all rows as numbers."""
    for sheet in sheets:
        words = np.flatnonzero(np.isnan(sheet.y))
        if len(words):
            row = int(words[0])
            raise ProblemFileError(
                f"{sheet.path}, row {sheet.place(row)}, column {label!r}: {sheet.labels[row]!r:.40} is not a number; "
                "for classes, name the one that counts as +1 with positive= (--positive)"
            )
    return np.concatenate([sheet.y for sheet in sheets])


def _signs(classes: list[str], positive: str, path: Path) -> Array:
    """+1 for the positive class and -1 for the others; `path` is for the message."""
    known = sorted(set(classes))
    numbers = all(parse_number(word) is not None for word in known)
    wanted = _number_name(positive) if numbers and parse_number(positive) is not None else positive
    if wanted not in known:
        raise ProblemFileError(f"{path}: no label is {positive!r}{nearest(positive, known, 'the labels are')}")
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


def _number_notes(y: Array, groups: list[str]) -> Iterator[str]:
    """Classes seen in one task only, where the labels are numbers that look like classes: few, and whole."""
    values, places = np.unique(y, return_inverse=True)
    if len(values) <= min(CLASSES, len(y) / 2) and (values == np.round(values)).all():
        names = [str(int(value)) for value in values.tolist()]
        yield from _class_notes([names[place] for place in places.tolist()], groups)


def _class_notes(classes: list[str], groups: list[str]) -> Iterator[str]:
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


def _row_notes(tasks: LinearTasks) -> list[str]:
    single = [name for name, rows in zip(tasks.names, tasks.num_rows.tolist(), strict=True) if rows == 1]
    if len(single) > 3:
        return [f"{len(single)} of {tasks.num_tasks} tasks have one row"]
    return [f"task {name!r} has one row" for name in single]


def _mismatch(first: Sheet, other: Sheet) -> str:
    odd = sorted(set(first.features) ^ set(other.features))
    what = f"column {odd[0]!r} is in one of them only" if odd else "the columns come in another order"
    return f"{other.path} has other features than {first.path}: {what}"
