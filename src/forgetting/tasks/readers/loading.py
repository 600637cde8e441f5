"""`load`: a problem from files, DataFrames, arrays or tensors. All commands read their files with `read`."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from forgetting.core.arrays import is_sparse
from forgetting.core.memory import require_memory
from forgetting.core.text import first_repeated, one_line
from forgetting.errors import ChoiceWarning, DataWarning, InvalidInputError, ProblemFileError
from forgetting.files.arrays import open_regular, read_arrays
from forgetting.files.table_files import TextFile, arrow_for, arrow_for_parquet
from forgetting.files.tables import Origin
from forgetting.geometry import Matrix
from forgetting.tasks.capabilities import is_saved, no_tasks, problem_from
from forgetting.tasks.preparation import prepare
from forgetting.tasks.problem import Problem
from forgetting.tasks.readers.rows import Reading, completed, index_columns, tasks_from
from forgetting.tasks.readers.sheet import (
    PREPARING,
    Columns,
    Sheet,
    check_header,
    column_places,
    is_frame,
    sheet_from_arrays,
    sheet_from_frame,
    sheet_from_mapping,
    sheet_of,
)

__all__ = ["ENDINGS", "folder_error", "labelled_rows", "load", "read", "warn_of"]

ENDINGS = (".csv", ".tsv", ".parquet", ".npz")
MOST_LISTED = 5  # files of a folder in a message
SOURCES = (
    "a file or several, a DataFrame, arrays (X, y, task), a mapping with X, y and task, or pairs (X, y), one for each "
    "task"
)


def load(
    source: Any,
    *,
    task: str = "task",
    label: str = "y",
    positive: str | None = None,
    classes: Literal["auto", "all", "task"] | None = "auto",
    drop: str | Sequence[str] = (),
    drop_nan: bool = False,
    intercept: bool = False,
    standardize: Literal["all", "first"] | None = None,
    features: Any = None,
    loss: Literal["sum", "mean"] | None = None,
    **options: Any,
) -> Problem:
    """Tasks from a file, a DataFrame, arrays or tensors; the commands read their files in the same way.

    Sources:

    - a file that `save` wrote, with tasks of any kind; how rows are read cannot be chosen for such a file;
    - a CSV or TSV file with a header, and commas, semicolons or tabs between its columns, or a Parquet file: the column
      `task` says which task a row belongs to, the column `label` is y, and all others are features. Parquet needs
      pyarrow, and CSV is read faster by it: `pip install 'forgetting[data]'`;
    - an npz file with arrays X (a matrix), y and task; labels are numbers unless `classes` or `positive` is given;
    - several such files: of those without a task column each is a task, named after the file, and after its folder too
      where two files have one name;
    - a DataFrame of pandas or polars, a table of pyarrow, or anything else with the Arrow stream protocol;
    - (X, y, task), or a mapping with these names; X may be a scipy.sparse matrix;
    - a list of pairs (X, y), one for each task, or a mapping from names of tasks to pairs.

    Arrays may be tensors of torch. Where the rows of each task come one after another, tasks have the order of their
    rows. Where rows are mixed, as after a shuffle, tasks are sorted if all names are numbers, dates (2024-01-31), or
    numbers after the same words (task 2 before task 10); else they are in order of first appearance.

    `notes` of the result says what was done and what is worth a look. What was chosen for the caller (that words are
    classes, or the order of tasks whose rows are mixed) is a `ChoiceWarning` as well, and what may be a mistake is a
    `DataWarning`.
    An index that pandas wrote as a column without a name is left out. Errors name the file, the row and the column.

    Args:
        source: as above.
        task, label: the names of the two columns.
        positive: the class that counts as y = +1, all others as -1; labels may then be words. Where all labels are
            numbers, 1 and 1.0 are one class.
        classes: whether labels are classes, learned as one-hot targets, so that tasks have an accuracy. "all" and
            "task" as in `RegressionTasks.from_labels`: an output for each class of all tasks, or for those of the task.
            None for numbers. "auto" for "all" where labels are three words or more, or categories (of pandas, polars or
            Arrow), or 3 to 100 whole numbers, each at least five times, if the column is named class, label or target,
            or no task has more than half of them; a `DataWarning` says so. Floats (1.0, unless labels are missing) and
            arrays of npz files never do, and two values only if the caller says so, here or by `positive`.
        drop: columns that are no features.
        drop_nan: leave out rows with a missing number (empty, NaN or infinite) or task, and note how many; otherwise
            they are refused.
        intercept, standardize, features: what is done with the features, as in `RegressionTasks.prepared`.
        loss: "sum" (the default) or "mean".
        **options: for `RegressionTasks`: rank_tol, rtol, names.

    >>> import forgetting as fg
    >>> tasks = fg.load({"X": [[1.0, 0.5], [0.5, 1.0], [2.0, 1.5]], "y": [0.5, 1.5, 2.5], "task": [10, 9, 10]})
    >>> tasks.names, tasks.task(1)[1].tolist()
    (('9', '10'), [0.5, 2.5])
    >>> for note in tasks.notes:
    ...     print(note)
    task '9' has one row
    tasks are sorted by number, since their rows are mixed: '9', '10'
    >>> tasks = fg.load({"X": [[1.0, 0.0], [0.0, 1.0], [2.0, 1.0]], "y": ["cat", "dog", "owl"], "task": [0, 0, 1]})
    >>> tasks.outputs, tasks.notes[0]
    (3, "labels are 3 classes, with an output each: 'cat', 'dog', 'owl'; each class is seen in one task only")
    """
    columns = Columns(task, label, positive, classes, drop, drop_nan, intercept, standardize, features, loss)
    reading = read(source, columns, options)
    warn_of(reading, stacklevel=3)
    return reading.tasks


def warn_of(reading: Reading, stacklevel: int) -> None:
    """Warn of what was decided for the caller, and of what looks like a mistake."""
    for words in reading.decided:
        warnings.warn(words, ChoiceWarning, stacklevel=stacklevel)
    for words in reading.doubts:
        warnings.warn(words, DataWarning, stacklevel=stacklevel)


def read(source: Any, columns: Columns, options: Mapping[str, Any], learned: Problem | None = None) -> Reading:
    """Read any source of `load`, and prepare its features; their preparation may be in `options`, too.

    Rows that are held out of `learned` tasks have labels of the same kind: the same classes, or numbers.
    """
    preparing = {name: value for name, value in options.items() if name in PREPARING}
    columns = replace(columns, **preparing)
    rest = {name: value for name, value in options.items() if name not in PREPARING}
    reading = _read(source, columns, rest, learned)
    if not columns.preparing:
        return reading
    tasks = prepare(reading.tasks, **columns.preparing)
    done = tasks.preparation
    if done is None or done is reading.tasks.preparation:  # the loss alone
        return replace(reading, tasks=tasks)
    tasks.notes = (*reading.notes, *done.notes(reading.features))
    return replace(reading, tasks=tasks, notes=tasks.notes, features=done.column_names(reading.features))


def labelled_rows(
    source: Any, label: str = "y", drop: str | Sequence[str] = (), drop_nan: bool = False
) -> tuple[Matrix, list[str], tuple[str, ...]]:
    """The features of all rows, their labels as they are spelt, and the names of the features, of a table.

    Tasks play no part: a column "task" is left out.

    >>> labelled_rows({"X": [[1.0, 0.5], [0.5, 1.0]], "y": ["cat", "dog"]})[1:]
    (['cat', 'dog'], ('0', '1'))
    """
    columns = Columns(label=label, drop=drop, drop_nan=drop_nan)
    if isinstance(source, str | PathLike):
        sheet = _sheet(Path(source), columns, True)
    elif is_frame(source):
        sheet = sheet_from_frame(source, columns, True)
    elif isinstance(source, Mapping):
        sheet = sheet_from_mapping(Origin(""), columns, source, True)
    else:
        got = one_line(repr(source), 60)
        raise InvalidInputError(f"table: expected a file, a DataFrame, or a mapping with X and {label}, got {got}")
    complete = completed(index_columns(sheet)[0], columns)[0]
    return complete.X, complete.labels, complete.features


def _read(source: Any, columns: Columns, options: Mapping[str, Any], learned: Problem | None) -> Reading:
    found = _found(source, columns, options)
    return found if isinstance(found, Reading) else tasks_from(found, columns, options, learned)


def _found(source: Any, columns: Columns, options: Mapping[str, Any]) -> Reading | list[Sheet]:
    """The rows of a source; a reading, if the source holds tasks already."""
    if isinstance(source, Reading):
        return source
    if isinstance(source, Problem):  # one of many kinds of sources
        _require_nothing(f"{type(source).__name__} is a problem already", columns, options)
        return Reading(source, source.notes, ())
    if isinstance(source, str | PathLike):
        return _from_files([source], columns, options)
    if is_frame(source):
        return [sheet_from_frame(source, columns)]
    if _is_stream(source):
        return [_from_stream(source, columns)]
    if isinstance(source, Mapping):
        if "X" in source or {columns.label, columns.task} <= set(source):
            return [sheet_from_mapping(Origin(""), columns, source, False)]
        return _from_pairs(list(source.values()), [str(name) for name in source], columns)
    array = hasattr(source, "__array__") or is_sparse(source)
    if array or not isinstance(source, Iterable) or isinstance(source, bytes | type):
        got = type(source).__name__ if array else one_line(repr(source), 60)
        hint = "; collect() it first" if hasattr(source, "collect") else ""
        raise InvalidInputError(f"source: expected {SOURCES}, got {got}{hint}")
    if isinstance(source, Sized):
        require_memory(64.0 * len(source), f"{len(source)} sources", "give fewer")
    members = list(source)
    if members and all(isinstance(member, str | PathLike) for member in members):
        return _from_files(members, columns, options)
    if isinstance(source, tuple) and len(members) == 3 and not all(isinstance(member, tuple) for member in members):
        return [sheet_from_arrays(Origin(""), columns, *members)]
    return _from_pairs(members, [str(number) for number in range(len(members))], columns)


def _require_nothing(source: str, columns: Columns, options: Mapping[str, Any]) -> None:
    """Raise if the caller says how to read what is read as it is."""
    columns.require_unused(source, preparing=False)
    if options:
        name = next(iter(options))
        raise InvalidInputError(f"{source}, which has its own {name}; {name}= is for rows that become tasks")


# --------------------------------------------------------------------------------------------------------------- files


def _from_files(
    names: Sequence[str | PathLike[str]], columns: Columns, options: Mapping[str, Any]
) -> Reading | list[Sheet]:
    distant = next((name for name in names if isinstance(name, str) and "://" in name), None)
    if distant is not None:
        raise ProblemFileError(f"{distant}: nothing is read over a network; download the file, and give its name here")
    files = [Path(name) for name in names]
    repeated = first_repeated(files)
    if repeated is not None:
        raise ProblemFileError(f"{repeated}: given twice")
    if len(files) == 1 and files[0].suffix.lower() == ".npz":
        arrays = read_arrays(files[0])
        if is_saved(arrays):
            _require_nothing(f"{files[0]}: holds a saved collection of tasks", columns, options)
            tasks = problem_from(arrays, files[0])
            return Reading(tasks, tasks.notes, tuple(map(str, range(tasks.dim))))
    return [_sheet(path, columns, len(files) > 1) for path in files]


def _sheet(path: Path, columns: Columns, several: bool) -> Sheet:
    """The rows of a file, by its ending."""
    ending = path.suffix.lower()
    if os.path.isdir(path):
        raise folder_error(path)
    if not os.path.exists(path):
        raise missing_file(path)
    if ending not in ENDINGS:
        raise ProblemFileError(f"{path}: {_foreign(path)}")
    if ending == ".npz":
        arrays = read_arrays(path)
        if is_saved(arrays):
            raise ProblemFileError(f"{path}: holds a saved collection of tasks; give it alone")
        sheet = sheet_from_mapping(Origin.file(path), columns, arrays, several)
        return replace(sheet, content=lambda: "others")  # whoever made arrays chose their types: nothing is guessed
    if ending == ".parquet":
        return sheet_of(arrow_for_parquet(path).parquet_table(path), columns, several)
    file = TextFile.read(path)
    check_header(Origin.file(path), file.header, columns)
    column_places(Origin.file(path), file.header, columns, several)  # a wrong name explains whatever else is wrong
    return sheet_of(file.table(), columns, several)


def folder_error(folder: Path) -> ProblemFileError:
    """The error for a folder in the place of a file; it names the files in the folder that could be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     Path(here, "a.csv").touch()
    ...     print(folder_error(Path(here)))
    /.../... is a folder; give files in it, each by its name: .../a.csv
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir() if entry.suffix.lower() in ENDINGS)
    except OSError as error:
        return ProblemFileError(f"{folder} is a folder, and cannot be read ({error.strerror or error})")
    if not names:
        return ProblemFileError(f"{folder} is a folder, and holds no {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file")
    listed = ", ".join(one_line(str(folder / name)) for name in names[:MOST_LISTED])
    more = f" and {len(names) - MOST_LISTED} others" if len(names) > MOST_LISTED else ""
    return ProblemFileError(f"{folder} is a folder; give files in it, each by its name: {listed}{more}")


def missing_file(path: Path) -> ProblemFileError:
    """The error for a file that is not there, with the most similar name in its folder of a file that could be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     Path(here, "tasks.csv").touch()
    ...     print(missing_file(Path(here, "tasks.cvs")))
    /.../tasks.cvs: no such file; did you mean '/.../tasks.csv'?
    """
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.suffix.lower() in (*ENDINGS, ".toml")]
    except (OSError, ValueError):  # of a folder that is not there, or a zero byte
        names = []
    close = get_close_matches(path.name, names, n=1)
    hint = f"; did you mean {one_line(str(path.with_name(close[0])))!r}?" if close else ""
    return ProblemFileError(f"{one_line(str(path))}: no such file{hint}")


def _foreign(path: Path) -> str:
    """The message for a file with another ending; results of this library in JSON are known by their beginning."""
    if path.suffix.lower() == ".json":
        with open_regular(path) as opened:
            beginning = re.search(rb'"format": ?"(forgetting/[a-z]+/\d+)"', opened.read(1000))
        if beginning:
            return no_tasks(beginning[1].decode())
    return f"expected a {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file"


# -------------------------------------------------------------------------------------------------------------- memory


def _is_stream(source: Any) -> bool:
    parts = ("__arrow_c_stream__", "__dataframe__")
    return not isinstance(source, type) and any(hasattr(source, part) for part in parts)


def _from_stream(source: Any, columns: Columns) -> Sheet:
    name = type(source).__name__
    reader = arrow_for(f"{name}: such a table", "give arrays (X, y, task)")
    return sheet_of(reader.stream_table(source, Origin(name)), columns, False)


def _from_pairs(pairs: list[Any], names: list[str], columns: Columns) -> list[Sheet]:
    """The rows of each task, from a pair (X, y) for each."""
    if not pairs:
        raise InvalidInputError(f"source: nothing is there; expected {SOURCES}")
    repeated = first_repeated(names)
    if repeated is not None:
        raise InvalidInputError(f"two tasks are called {repeated!r:.60}")
    for number, pair in enumerate(pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidInputError(
                f"task {number}: expected a pair (X, y), got {type(pair).__name__}; a source is {SOURCES}"
            )
    return [
        sheet_from_arrays(Origin(f"task {number}", task=name), columns, *pair)
        for number, (name, pair) in enumerate(zip(names, pairs, strict=True))
    ]
