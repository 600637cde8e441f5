"""Regression tasks from files, with notes and the names of their features."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from forgetting.core.arrays import as_kind, as_list
from forgetting.errors import ProblemFileError
from forgetting.tasks.readers import Columns, Reading, read

__all__ = ["read_tasks"]

PathName = str | PathLike[str]


def read_tasks(
    paths: PathName | Sequence[PathName],
    *,
    task: str = "task",
    label: str = "y",
    positive: str | None = None,
    drop: str | Sequence[str] = (),
    drop_nan: bool = False,
    **options: Any,
) -> Reading:
    """Regression tasks from one or more files, with notes about them and the names of their features.

    The files and the options are those of `fg.load`, which gives the tasks alone.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     _ = Path(here, "tasks.csv").write_text("task,a,b,y\\nfirst,1,0,1\\nsecond,0,1,2\\nsecond,1,1,3\\n")
    ...     found = read_tasks(Path(here, "tasks.csv"))
    >>> found.tasks.names, found.features, found.notes[0]
    (('first', 'second'), ('a', 'b'), "task 'first' has one row")
    """
    files = [paths] if isinstance(paths, str | PathLike) else as_list(paths, "paths")
    if not files:
        raise ProblemFileError("no file given")
    for name in files:
        as_kind(name, str | PathLike, "the name of a file", "paths: ")
    reading = read(files, Columns(task, label, positive, drop, drop_nan), options)
    linear = reading.tasks.linear
    if linear is None or linear.data is None:
        raise ProblemFileError(f"{files[0]}: holds {reading.tasks!r:.60}, but an audit needs regression tasks")
    return reading
