"""Files of accuracies of tasks after each step: logs, CSV, JSON, npz and npy files, known by their content."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from forgetting.core.arrays import as_path
from forgetting.core.groups import groups_of
from forgetting.core.text import first_repeated, joined, spelt_number
from forgetting.errors import ProblemFileError
from forgetting.files.accuracy_logs import (
    AVALANCHE,
    BEFORE,
    Choice,
    LoggedRun,
    accuracy,
    is_cil,
    is_mammoth,
    numbered_lines,
    read_avalanche_csv,
    read_avalanche_json,
    read_avalanche_text,
    read_cil,
    read_mammoth,
    task_or_step,
)
from forgetting.files.arrays import as_text, open_regular, read_array, read_arrays, read_bytes
from forgetting.files.json_and_toml import once
from forgetting.files.tables import NOTHING

BEGINNING = 2**20  # bytes by which a file is recognised
MATRICES = ("R", "values", "accuracy", "accuracies", "matrix")  # names of an array in an npz file
BESIDE = ("orders", "before", "names", "runs", "order_names")  # and of what may stand beside it
COLUMNS = ("run", "step", "task", "accuracy", "learned")  # of a table with an accuracy in each row
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")


def read_runs(path: str | PathLike[str], classifier: str = "CNN", stream: str | None = None) -> list[LoggedRun]:
    """The runs in a text file; an error names the line and the value."""
    name = as_path(path)
    _refuse_pickles(name)
    content = as_text(name, read_bytes(name, f"the accuracies in {name}", "split the file"))
    reader = _reader_of(content)
    if reader is None:
        raise ProblemFileError(
            f"{name}: no accuracies found: expected a CSV matrix (rows are steps), columns step, task and accuracy, "
            "or a log of Avalanche, Mammoth, PyCIL or PILOT"
        )
    try:
        runs = reader(content, Choice(classifier, stream))
    except ProblemFileError as error:
        raise ProblemFileError(f"{name}: {error}") from error
    for run in runs:
        run.name = f"{name.name}, {run.name}" if run.name else name.name
    return runs


def read_matrices(path: str | PathLike[str]) -> dict[str, Any]:
    """The arrays of an npz or npy file by the names of the fields they are for: values, orders, before, names, ..."""
    name = as_path(path)
    if name.suffix.lower() == ".npy":
        return {"values": read_array(name)}
    arrays = read_arrays(name)
    known = [key for key in MATRICES if key in arrays] or ([*arrays] if len(arrays) == 1 else [])
    if len(known) != 1:
        raise ProblemFileError(
            f"{name}: holds {', '.join(arrays) or 'nothing'}; call the array of accuracies (steps x tasks, or runs x "
            f"steps x tasks) R, and what stands beside it {', '.join(BESIDE)}"
        )
    stranger = next((key for key in arrays if key not in (*known, *BESIDE)), None)
    if stranger is not None:
        raise ProblemFileError(
            f"{name}: unknown array {stranger!r:.60}; beside {known[0]} there are {', '.join(BESIDE)}"
        )
    return {"values" if key == known[0] else key: array for key, array in arrays.items()}


def holds_accuracies(path: str | PathLike[str], saved: str) -> bool:
    """Whether a file is a log or a table of accuracies, by its content, or a result of the format `saved`.

    >>> holds_accuracies("nowhere.log", "forgetting/accuracy-matrices/1")
    False
    """
    name = as_path(path)
    try:
        if name.suffix.lower() == ".npz":
            arrays = read_arrays(name, only="format")
            return str(arrays["format"]) == saved if arrays else "R" in read_arrays(name, only="R")
        if name.suffix.lower() in (".npy", ".parquet", ".toml", *PICKLES):
            return False
        with open_regular(name) as handle:
            content = handle.read(BEGINNING).decode("utf-8-sig", "replace")
    except (ProblemFileError, OSError):
        return False
    reader = _reader_of(content)
    if reader is _read_long:  # with other columns beside these it may be tasks
        return set(map(str.lower, _cells(content.lstrip().split("\n", 1)[0].strip()))) <= set(COLUMNS)
    return reader is not None and (reader is not _read_table or _is_bare(content))


# --------------------------------------------------------------------------------------------------------- which format


Reader = Callable[[str, Choice], list[LoggedRun]]


def _reader_of(content: str) -> Reader | None:
    """The reader of a text; None if no reader knows it."""
    start = content.lstrip()
    first = start.split("\n", 1)[0].strip()
    if start[:1] in ("[", "{") and not first.startswith("{'"):
        return _read_json if AVALANCHE.search(content) or re.match(r"\[\s*\[", start) else None
    if first.replace(" ", "").startswith("eval_exp,training_exp,eval_accuracy"):
        return read_avalanche_csv
    if AVALANCHE.search(content):
        return read_avalanche_text
    if is_mammoth(content):
        return read_mammoth
    if is_cil(content):
        return read_cil
    heads = _cells(first)
    if {"step", "task", "accuracy"} <= {head.lower() for head in heads}:
        return _read_long
    rows = [_cells(line) for line in content.splitlines()[1:4] if line.strip()]
    numeric = bool(rows) and all(any(map(_spells, row)) for row in rows) and max(map(len, rows)) > 1
    return _read_table if numeric else None


def _is_bare(content: str) -> bool:
    """Whether a table can only be a matrix: square (or one row more), of numbers, without names or with empty corner.

    With names above, a square table of numbers may be tasks, too, but not if nothing is above its diagonal, or if all
    numbers are between 0 and 1 and no column is called y or task.
    """
    rows = [_cells(line) for line in content.splitlines() if line.strip()]
    named, names = any(_is_word(cell) for cell in rows[0]), {cell.lower() for cell in rows[0]}
    rows = rows[named:]
    width = max((len(row) for row in rows), default=0)
    if len(rows) not in (width, width + 1) or any(_is_word(cell) for row in rows for cell in row):
        return False
    numbers = [spelt_number(cell) for row in rows for cell in row if _spells(cell)]
    if not named or (not names & {"y", "task"} and all(0 <= number <= 1 for number in numbers)):
        return True
    first = len(rows) - width
    return not any(any(row[step - first + 1 :]) for step, row in enumerate(rows) if step >= first)


def _refuse_pickles(path: Path) -> None:
    if path.suffix.lower() in PICKLES:
        raise ProblemFileError(
            f"{path}: pickles run programs when they are read, and are never loaded; where the library is installed, "
            "use AccuracyMatrices.from_continuum(logger).save('R.npz') for a Logger of Continuum, else np.savez"
        )


def _spells(word: str) -> bool:
    try:
        spelt_number(word)
    except ValueError:
        return False
    return True


def _is_word(cell: str) -> bool:
    """Whether a cell is neither a number nor a missing one."""
    return cell.lower() not in NOTHING and not _spells(cell)


# --------------------------------------------------------------------------------------------------------------- tables


def _read_json(content: str, choice: Choice) -> list[LoggedRun]:
    """Rows of numbers, which may get longer, several runs of them, or metrics of Avalanche."""
    try:
        data = json.loads(content, object_pairs_hook=once)
    except RecursionError:
        raise ProblemFileError("not JSON (nested too deeply)") from None
    except ValueError as error:
        raise ProblemFileError(f"not JSON ({error})") from None
    if not isinstance(data, list) or not all(isinstance(row, list) for row in data):
        return read_avalanche_json(data, choice)
    if data and all(isinstance(row, list) for run in data for row in run):
        return [_run_of_rows(rows, f"run {number}") for number, rows in enumerate(data)]
    return [_run_of_rows(data, "")]


def _run_of_rows(rows: list[Any], name: str, where: Callable[[int], str] = lambda row: f"row {row}") -> LoggedRun:
    width = max((len(row) for row in rows), default=0)
    first = BEFORE if len(rows) == width + 1 else 0
    cells = {
        (first + step, task): accuracy(value, f"{where(step)}, column {task}")
        for step, row in enumerate(rows)
        for task, value in enumerate(row)
        if value is not None and not (isinstance(value, str) and value.lower() in NOTHING)
    }
    notes = ["the first row is from before learning: there is one row more than tasks"] if first == BEFORE else []
    return LoggedRun(name, cells, notes=notes)


def _cells(line: str) -> list[str]:
    separator = max(",;\t", key=line.count)
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _read_table(content: str, _: Choice) -> list[LoggedRun]:
    """A matrix: a row for each step, which may end with its own task; names of tasks may stand above."""
    lines = [(line, _cells(words)) for line, words in numbered_lines(content) if words.strip()]
    head = lines[0][1]
    names: tuple[str, ...] = ()
    if any(map(_is_word, head)):
        names, lines = tuple(head), lines[1:]
    rows = [row for _, row in lines]
    labelled = all(row[0] and not _spells(row[0]) for row in rows) or (names[:1] == ("",))
    if labelled:
        names, rows = names[1:], [row[1:] for row in rows]
    rows = [row[: max((i + 1 for i, cell in enumerate(row) if cell), default=0)] for row in rows]
    run = _run_of_rows(rows, "", lambda row: f"line {lines[row][0]}")
    width = max(map(len, rows))
    if names and len(names) != width:
        raise ProblemFileError(f"line {lines[0][0]}: {width} columns under {len(names)} names")
    run.tasks = names
    return [run]


def _read_long(content: str, _: Choice) -> list[LoggedRun]:
    """Columns step, task, accuracy and, if there, run and learned (the task that the step learned)."""
    lines = [(line, _cells(words)) for line, words in numbered_lines(content) if words.strip()]
    heads = [head.lower() for head in lines[0][1]]
    repeated = first_repeated(heads)
    stranger = next((head for head in heads if head not in COLUMNS), None)
    if repeated is not None or stranger is not None:
        raise ProblemFileError(
            f"line {lines[0][0]}: {'two columns' if repeated else 'an unknown column'} {repeated or stranger!r:.40}; "
            f"the columns are {joined(COLUMNS)}"
        )
    rows: list[tuple[int, dict[str, str]]] = []
    for line, cells in lines[1:]:
        if len(cells) != len(heads):
            raise ProblemFileError(f"line {line}: {len(cells)} cells under {len(heads)} columns")
        rows.append((line, dict(zip(heads, cells, strict=True))))
    tasks = groups_of(row["task"] for _, row in rows).names
    by_run: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for line, row in rows:
        by_run.setdefault(row.get("run", ""), []).append((line, row))
    return [_long_run(name, mine, tasks) for name, mine in by_run.items()]


def _long_run(name: str, rows: Iterable[tuple[int, dict[str, str]]], tasks: list[str]) -> LoggedRun:
    cells: dict[tuple[int, int], float] = {}
    learned: dict[int, int] = {}
    for line, row in rows:
        is_before = row["step"].lower() in ("before", "-1")
        step = BEFORE if is_before else task_or_step(row["step"], f"line {line}, step")
        key = (step, tasks.index(row["task"]))
        if key in cells:
            raise ProblemFileError(f"line {line}: step {row['step']} and task {row['task']!r:.40} come twice")
        cells[key] = accuracy(row["accuracy"], f"line {line}, accuracy")
        if row.get("learned") and not is_before:
            if row["learned"] not in tasks:
                raise ProblemFileError(f"line {line}: learned {row['learned']!r:.40} is no task of the file")
            if learned.setdefault(step, tasks.index(row["learned"])) != tasks.index(row["learned"]):
                raise ProblemFileError(f"line {line}: step {step} has learned two tasks, also {row['learned']!r:.40}")
    run = LoggedRun(f"run {name}" if name else "", tasks=tuple(tasks))
    places = sorted({step for step, _ in cells if step != BEFORE})
    has_before = any(step == BEFORE for step, _ in cells)
    if not learned and not has_before and len(places) == len(tasks) + 1:
        run.notes.append(f"step {places[0]} is from before learning: there is one step more than tasks")
        first = BEFORE
    else:
        first = 0
    if learned and set(learned) != set(places):
        missing = sorted(set(places) - set(learned))[0]
        raise ProblemFileError(f"step {missing} of {run.name or 'the file'} does not say which task it has learned")
    run.cells = {
        (BEFORE if step == BEFORE else first + places.index(step), task): value for (step, task), value in cells.items()
    }
    run.order = tuple(learned[step] for step in places) if learned else None
    return run
