"""Accuracies of tasks after each step, from logs of Avalanche, Mammoth, PyCIL and PILOT, and from CSV, JSON, npz files.

What a file is shows in its content. Formats, by the code that writes them: Avalanche 0.6.0, logging/text_logging.py and
csv_logger.py, training/plugins/evaluation.py (what `eval` and `get_all_metrics` return, saved as JSON); Mammoth
e75a491, utils/loggers.py, `Logger.write`; PyCIL 87cc411 and PILOT 2647455, trainer.py, `_train`. Text is searched for
numbers at known places: nothing is evaluated, and nothing unpickled.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_path
from forgetting.core.groups import groups_of
from forgetting.core.memory import require_memory
from forgetting.core.text import first_repeated, one_line, spelt_number
from forgetting.errors import ProblemFileError
from forgetting.files.arrays import as_text, open_regular, read_array, read_arrays, read_bytes
from forgetting.files.tables import NOTHING

BEFORE = -1  # the step of the row from before learning
BEGINNING = 2**20  # bytes by which a file is recognised
MOST = 10_000  # tasks or steps
MATRICES = ("R", "values", "accuracy", "accuracies", "matrix")  # names of an array in an npz file
BESIDE = ("orders", "before", "names", "runs", "order_names")  # and of what may stand beside it
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib")

_NUMBER = r"(?:np\.float\d+\()?([^\s,(){}\[\]]+)\)?"
_AVALANCHE = re.compile(r"Top1_Acc_Exp/eval_phase/([^/\s=]+)_stream(?:/Task(\d+))?/Exp(\d+)")
_STARTS = re.compile(r"-- (?:>> (Start|End) of (training|eval) phase <<|Starting training on experience (\d+))")
_MAMMOTH = re.compile(rf"'accuracy_(\d+)_task(\d+)': {_NUMBER}")
_CIL = re.compile(r"(?:^|=> )(CNN|NME): (\{.*)")
_GROUP = re.compile(rf"'(\d+)-(\d+)': {_NUMBER}")
_TOTAL = re.compile(rf"'total': {_NUMBER}")
_SEED = re.compile(r"=> seed: (\S+)")
_CLASS_ORDER = re.compile(r"=> \[(\d+(?:, \d+)+)\]\s*$")
_PRINTED = re.compile(r"^Accuracy Matrix \((CNN|NME)\):\s*$")


@dataclass
class LoggedRun:
    """The accuracies of one run, by step and task; the step -1 is before learning.

    Attributes:
        name: the run, in a word or two.
        cells: the accuracies.
        order: the task that each step learned; None for the tasks in their order, one a step.
        order_name: the order in words, where columns are positions: runs with equal words have the same order of
            classes; empty if that is not known.
        tasks: the names of the tasks; empty for their numbers.
        notes: what was read, and what was chosen.
    """

    name: str
    cells: dict[tuple[int, int], float] = field(default_factory=dict)
    order: tuple[int, ...] | None = None
    order_name: str = ""
    tasks: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)

    def matrix(self) -> tuple[Array, Array | None]:
        """The rows after each step, NaN where a task was not evaluated, and the row before learning.

        >>> LoggedRun("a", {(0, 0): 0.9, (1, 0): 0.5, (1, 1): 0.8, (-1, 1): 0.1}).matrix()[0].tolist()
        [[0.9, nan], [0.5, 0.8]]
        """
        steps = max((step for step, _ in self.cells), default=BEFORE) + 1
        tasks = max((task for _, task in self.cells), default=-1) + 1
        if max(steps, tasks) > MOST:
            raise ProblemFileError(f"{steps} steps and {tasks} tasks; at most {MOST} of each are read")
        require_memory(8.0 * (steps + 1) * tasks, f"a matrix of {steps} steps x {tasks} tasks", "give fewer")
        table = np.full((steps + 1, tasks), np.nan)
        for (step, task), value in self.cells.items():
            table[step, task] = value  # the row of step -1 is the last
        empty = np.flatnonzero(np.isnan(table[:-1]).all(axis=1))
        if empty.size or not steps:
            raise ProblemFileError(f"no accuracy after step {int(empty[0]) if empty.size else 0}")
        before = table[-1]
        return table[:-1], None if np.isnan(before).all() else before


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
        runs = reader(content, _Choice(classifier, stream))
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
    return reader is not None and (reader is not _read_table or _is_bare(content))


# --------------------------------------------------------------------------------------------------------- which format


@dataclass(frozen=True)
class _Choice:
    classifier: str
    stream: str | None


Reader = Callable[[str, _Choice], list[LoggedRun]]


def _reader_of(content: str) -> Reader | None:
    """The reader of a text; None if no reader knows it."""
    start = content.lstrip()
    first = start.split("\n", 1)[0].strip()
    if start[:1] in ("[", "{") and not first.startswith("{'"):
        return _read_json if _AVALANCHE.search(content) or re.match(r"\[\s*\[", start) else None
    if first.replace(" ", "").startswith("eval_exp,training_exp,eval_accuracy"):
        return _read_avalanche_csv
    if _AVALANCHE.search(content):
        return _read_avalanche_text
    if _MAMMOTH.search(content) or "'accmean_task1'" in content:
        return _read_mammoth
    if _PRINTED.search(content) or any(_CIL.search(line) or _PRINTED.match(line) for line in content.splitlines()):
        return _read_cil
    heads = _cells(first)
    if {"step", "task", "accuracy"} <= {head.lower() for head in heads}:
        return _read_long
    rows = [_cells(line) for line in content.splitlines()[1:4] if line.strip()]
    numeric = bool(rows) and all(any(map(_spells, row)) for row in rows) and max(map(len, rows)) > 1
    return _read_table if numeric else None


def _is_bare(content: str) -> bool:
    """Whether a table can only be a matrix: square (or one row more), of numbers, without names or with empty corner.

    With names above, a square table of numbers may be tasks, too, but not if nothing is above its diagonal.
    """
    rows = [_cells(line) for line in content.splitlines() if line.strip()]
    named = any(_is_word(cell) for cell in rows[0])
    rows = rows[named:]
    width = max((len(row) for row in rows), default=0)
    if len(rows) not in (width, width + 1) or any(_is_word(cell) for row in rows for cell in row):
        return False
    first = len(rows) - width
    return not named or not any(any(row[step - first + 1 :]) for step, row in enumerate(rows) if step >= first)


def _refuse_pickles(path: Path) -> None:
    if path.suffix.lower() in PICKLES:
        raise ProblemFileError(
            f"{path}: pickles run programs when they are read, and are never loaded; where the library is installed, "
            "use AccuracyMatrices.from_continuum(logger).save('R.npz') for a Logger of Continuum, else np.savez"
        )


def _number(word: Any, where: str) -> float:
    """An accuracy as a float; an error names the place and the value."""
    try:
        value = float(spelt_number(word) if isinstance(word, str) else word)
    except (TypeError, ValueError, OverflowError):
        raise ProblemFileError(f"{where}: {one_line(str(word), 40)!r} where an accuracy was expected") from None
    if not math.isfinite(value):
        raise ProblemFileError(f"{where}: the accuracy is {value}")
    return value


def _whole(word: str, where: str) -> int:
    if not re.fullmatch(r"\d{1,9}", word):
        raise ProblemFileError(f"{where}: {one_line(word, 40)!r} where a number of a task or a step was expected")
    return int(word)


def _spells(word: str) -> bool:
    try:
        spelt_number(word)
    except ValueError:
        return False
    return True


def _is_word(cell: str) -> bool:
    """Whether a cell is neither a number nor a missing one."""
    return cell.lower() not in NOTHING and not _spells(cell)


def _lines(content: str) -> Iterator[tuple[int, str]]:
    return enumerate(content.splitlines(), 1)


# ------------------------------------------------------------------------------------------------------------ Avalanche


def _read_avalanche_text(content: str, choice: _Choice) -> list[LoggedRun]:
    """What a TextLogger or an InteractiveLogger wrote: evaluations between phases of training."""
    by_stream: dict[str, dict[tuple[int, int], float]] = {}
    order: list[int] = []
    training = repeated = False
    for line, words in _lines(content):
        start = _STARTS.search(words)
        if start is not None:
            training = start[1] == "Start" if start[2] == "training" else training
            order += [] if start[3] is None else [int(start[3])]
            continue
        found = _AVALANCHE.search(words)
        if found is None or training:  # what is evaluated within training is not of the end of the step
            continue
        value = _number(words[found.end() :].strip().lstrip("=").strip(), f"line {line}")
        cells, key = by_stream.setdefault(found[1], {}), (len(order) - 1, int(found[3]))
        repeated = repeated or key in cells
        cells[key] = value
    notes = ["Avalanche, text log", *(["evaluations that come twice: the later one is used"] if repeated else [])]
    return [_avalanche(by_stream, choice, tuple(order), notes)]


def _avalanche(
    by_stream: Mapping[str, dict[tuple[int, int], float]],
    choice: _Choice,
    order: tuple[int, ...] | None,
    notes: list[str],
) -> LoggedRun:
    """The run with the accuracies on one stream: the one that was asked for, the only one, or the stream "test"."""
    stream = choice.stream or ("test" if "test" in by_stream else next(iter(by_stream), ""))
    if stream not in by_stream or (choice.stream is None and stream != "test" and len(by_stream) > 1):
        raise ProblemFileError(
            f"no accuracies on the stream {stream!r:.40}; there are {', '.join(by_stream) or 'none'}: choose by stream="
        )
    others = sorted(set(by_stream) - {stream})
    if others:
        notes.append(f"accuracies on the stream {stream!r}; there are also those on {', '.join(others)}")
    return LoggedRun("", by_stream[stream], order, notes=notes)


def _read_avalanche_csv(content: str, _: _Choice) -> list[LoggedRun]:
    """What a CSVLogger wrote into eval_results.csv: a row for each evaluated experience."""
    run = LoggedRun("", notes=["Avalanche, CSV log"])
    order: list[int] = []
    values = []
    for line, words in list(_lines(content))[1:]:
        row = [word.strip() for word in words.split(",")]
        if row == [""]:
            continue
        if len(row) != 5:
            raise ProblemFileError(f"line {line}: {len(row)} cells under 5 columns")
        task, learned = _whole(row[0], f"line {line}, eval_exp"), row[1]
        if learned not in ("None", ""):
            step = _whole(learned, f"line {line}, training_exp")
            if not order or order[-1] != step:
                order.append(step)
        key = (len(order) - 1, task)
        if key in run.cells and order:
            raise ProblemFileError(
                f"line {line}: experience {task} is evaluated twice after experience {order[-1]} was learned; the file "
                "does not say which stream each row is of: give a log with one evaluation stream"
            )
        values.append(row[2])
        run.cells[key] = _number(row[2], f"line {line}, eval_accuracy")
    if values and set(values) == {"0"}:
        raise ProblemFileError(
            "eval_accuracy is 0 in all rows, which the CSVLogger writes if no accuracy was monitored; add "
            "accuracy_metrics(experience=True) to the EvaluationPlugin"
        )
    run.order = tuple(order)
    return [run]


def _read_json(content: str, choice: _Choice) -> list[LoggedRun]:
    """Rows of numbers; a list of what `eval` returned; or what `get_all_metrics` returned."""
    try:
        data = json.loads(content, object_pairs_hook=_once)
    except RecursionError:
        raise ProblemFileError("not JSON (nested too deeply)") from None
    except ValueError as error:
        raise ProblemFileError(f"not JSON ({error})") from None
    by_stream: dict[str, dict[tuple[int, int], float]] = {}
    if isinstance(data, dict):
        curves = {key: _AVALANCHE.fullmatch(key) for key in data}
        points: dict[tuple[str, int], dict[float, float]] = {}
        for key, found in curves.items():
            if found is None:
                continue
            value = data[key]
            if not (isinstance(value, list) and len(value) == 2 and all(isinstance(part, list) for part in value)):
                raise ProblemFileError(
                    f"{key}: {one_line(str(value), 40)} is one evaluation; save the list of what eval returned after "
                    "each experience, or get_all_metrics()"
                )
            if len(value[0]) != len(value[1]):
                raise ProblemFileError(f"{key}: {len(value[0])} steps for {len(value[1])} values")
            points[found[1], int(found[3])] = {
                _number(x, f"{key}, step {i}"): _number(y, f"{key}, value {i}")
                for i, (x, y) in enumerate(zip(*value, strict=True))
            }
        for stream in {stream for stream, _ in points}:
            mine = {task: curve for (other, task), curve in points.items() if other == stream}
            places = sorted({x for curve in mine.values() for x in curve})
            first = BEFORE if places and places[0] == 0 else 0
            by_stream[stream] = {
                (first + places.index(x), task): y for task, curve in mine.items() for x, y in curve.items()
            }
        notes = ["Avalanche, all metrics; experiences were learned in the order of their numbers"]
        return [_avalanche(by_stream, choice, None, notes)]
    if all(isinstance(row, list) for row in data):
        return _runs_of_lists(data)
    rows = [row if isinstance(row, dict) else {} for row in data]
    for step, row in enumerate(rows):
        for key, value in row.items():
            found = _AVALANCHE.fullmatch(key)
            if found is not None:
                by_stream.setdefault(found[1], {})[step, int(found[3])] = _number(value, f"evaluation {step}, {key}")
    notes = ["Avalanche, results of eval; experiences were learned in the order of their numbers"]
    run = _avalanche(by_stream, choice, None, notes)
    if len(rows) == max(task for _, task in run.cells) + 2:  # one more than tasks
        run.cells = {(step - 1, task): value for (step, task), value in run.cells.items()}
    later = {key for key in run.cells if 0 <= key[1] < key[0]}
    if len(later) > 2 and all(run.cells[key] == run.cells[key[0] - 1, key[1]] for key in later if key[0]):
        run.notes.append(
            "no accuracy changes after its experience was learned: eval returns the last value of every metric, so "
            "that experiences which were not evaluated again keep their old values"
        )
    return [run]


def _runs_of_lists(data: list[Any]) -> list[LoggedRun]:
    """Rows of numbers, which may get longer, or several runs of them."""
    if data and all(isinstance(row, list) for run in data for row in run):
        return [replaced for number, rows in enumerate(data) for replaced in [_run_of_rows(rows, f"run {number}")]]
    return [_run_of_rows(data, "")]


def _run_of_rows(rows: list[Any], name: str, where: Callable[[int], str] = lambda row: f"row {row}") -> LoggedRun:
    width = max((len(row) for row in rows), default=0)
    first = BEFORE if len(rows) == width + 1 else 0
    cells = {
        (first + step, task): _number(value, f"{where(step)}, column {task}")
        for step, row in enumerate(rows)
        for task, value in enumerate(row)
        if value is not None and not (isinstance(value, str) and value.lower() in NOTHING)
    }
    notes = ["the first row is from before learning: there is one row more than tasks"] if first == BEFORE else []
    return LoggedRun(name, cells, notes=notes)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    repeated = first_repeated(name for name, _ in pairs)
    if repeated is not None:
        raise ValueError(f"{repeated!r:.60} is given twice")
    return dict(pairs)


# -------------------------------------------------------------------------------------------------------------- Mammoth


def _read_mammoth(content: str, _: _Choice) -> list[LoggedRun]:
    """Lines of logs.pyd: a dictionary for each run, with 'accuracy_2_task5' for task 2 in the fifth evaluation."""
    runs = []
    for line, words in _lines(content):
        if not words.strip():
            continue
        rows: dict[int, dict[int, float]] = {}
        for task, row, value in _MAMMOTH.findall(words):
            where = f"line {line}, accuracy_{task}_task{row}"
            rows.setdefault(int(row[:9]), {})[int(task[:9]) - 1] = _number(value, where)
        if not rows:
            raise ProblemFileError(
                f"line {line}: no 'accuracy_1_task1'; Mammoth logs the accuracies of tasks in the settings class-il "
                "and task-il, and their mean alone in others"
            )
        if sorted(rows) != list(range(1, len(rows) + 1)):
            lost = next(number for number in range(1, len(rows) + 1) if number not in rows)
            raise ProblemFileError(f"line {line}: no accuracy of evaluation {lost}, but one of {max(rows)}")
        options = dict(re.findall(r"'(\w+)': ('[^']*'|[\w.+-]+)", words))
        seed = options.get("seed", "None")
        run = LoggedRun(f"line {line}" if seed == "None" else f"seed {seed}", notes=["Mammoth, logs.pyd"])
        _mammoth_steps(run, [rows[row] for row in sorted(rows)], options.get("eval_future") in ("True", "1"), line)
        given = [options.get(name, "None") for name in ("custom_class_order", "custom_task_order")]
        if any(value != "None" for value in given):
            run.order_name = one_line(" ".join(value.strip("'") for value in given if value != "None"))
        elif options.get("permute_classes") in ("True", "1"):
            run.order_name = "" if seed == "None" else f"classes permuted by seed {seed}"
        else:
            run.order_name = "classes as they are"
        runs.append(run)
    return runs


def _mammoth_steps(run: LoggedRun, rows: list[dict[int, float]], future: bool, line: int) -> None:
    """Put rows into their steps: a row has the tasks up to its own; with eval_future another has those to come."""
    repeated = False
    ahead = False
    for number, row in enumerate(rows, 1):
        if sorted(row) != list(range(len(row))):
            raise ProblemFileError(
                f"line {line}: evaluation {number} has the tasks {', '.join(str(t + 1) for t in sorted(row)[:9])}, not "
                f"1 to {len(row)}; the line is damaged"
            )
        if future and ahead:
            step = max(step for step, _ in run.cells)
            run.cells |= {(step, step + 1 + task): value for task, value in row.items()}
            ahead = False
            continue
        step = len(row) - 1
        repeated = repeated or (step, step) in run.cells
        run.cells |= {(step, task): value for task, value in row.items()}
        ahead = future and number < len(rows)
    if repeated:
        run.notes.append("several evaluations of a task (eval_epochs): the last one is used")


# ------------------------------------------------------------------------------------------------------ PyCIL and PILOT


def _read_cil(content: str, choice: _Choice) -> list[LoggedRun]:
    """Lines "CNN: {...}" with accuracies of groups of classes; all seeds of a call stand in the file of the first."""
    runs: list[LoggedRun] = []
    widths: list[int] = []
    seed, order, printed = "", "", False
    for line, words in _lines(content):
        found = _SEED.search(words)
        if found is not None:
            seed, order, widths = one_line(found[1], 40), "", []
        elif (listed := _CLASS_ORDER.search(words)) is not None:
            order = f"classes {listed[1]}"
        found = _CIL.search(words)
        printed = printed or _PRINTED.match(words) is not None
        if found is None or found[1] != choice.classifier:
            continue
        groups = sorted(
            (int(low), _number(value, f"line {line}, {low}-{high}")) for low, high, value in _GROUP.findall(found[2])
        )
        if not groups or not found[2].rstrip().endswith("}"):
            raise ProblemFileError(f"line {line}: {one_line(found[2], 40)!r} has no accuracies of groups of classes")
        if not widths or len(groups) <= widths[-1]:  # fewer groups: another run
            widths = []
            name = f"seed {seed}" if seed else f"run {len(runs)}"
            runs.append(LoggedRun(name, order_name=order, notes=[f"PyCIL or PILOT, {choice.classifier}"]))
        run, step = runs[-1], len(widths)
        widths.append(len(groups))
        if step and widths[step] != widths[step - 1] + 1:
            raise ProblemFileError(
                f"line {line}: {widths[step]} groups of classes after {widths[step - 1]}, not one more"
            )
        first = widths[0]  # groups of the first task, which may have more classes
        values = [value for _, value in groups]
        start = float(np.mean(values[:first]))
        if first > 1 and step == 0:
            total = _TOTAL.search(found[2])
            start = start if total is None else _number(total[1], f"line {line}, total")
            run.notes.append(
                f"the first task has {first} groups of classes, whose mean stands for it after later steps: right if "
                "classes have equally many test rows"
            )
        run.cells |= {(step, task): value for task, value in enumerate([start, *values[first:]])}
    if not runs and printed:
        return _read_printed(content, choice)
    if not runs:
        raise ProblemFileError(f"no line {choice.classifier}: {{...}}; choose CNN or NME by classifier=")
    return runs


def _read_printed(content: str, choice: _Choice) -> list[LoggedRun]:
    """Matrices under "Accuracy Matrix (CNN):", which have a row for each task and zeros before it was learned."""
    runs: list[LoggedRun] = []
    lines = list(_lines(content))
    for place, (line, words) in enumerate(lines):
        found = _PRINTED.match(words)
        if found is None or found[1] != choice.classifier:
            continue
        rows: list[list[float]] = []
        for number, row in lines[place + 1 :]:
            if "..." in row:
                raise ProblemFileError(f"line {number}: NumPy left out entries (...); the lines CNN: {{...}} have all")
            rows.append([_number(word, f"line {number}") for word in row.strip(" []").split()])
            if row.rstrip().endswith("]]") or not row.strip():
                break
        if any(len(row) != len(rows) for row in rows):
            raise ProblemFileError(f"line {line}: the matrix below is not square, and damaged")
        notes = ["PyCIL or PILOT, printed matrix, turned to steps x tasks; zeros before a task is learned are left out"]
        cells = {(step, task): row[step] for task, row in enumerate(rows) for step in range(task, len(rows))}
        runs.append(LoggedRun(f"run {len(runs)}", cells, notes=notes))
    if not runs:
        raise ProblemFileError(f"no matrix of {choice.classifier}; choose CNN or NME by classifier=")
    return runs


# ------------------------------------------------------------------------------------------------------------------ CSV


def _cells(line: str) -> list[str]:
    separator = max(",;\t", key=line.count)
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator), [])]


def _read_table(content: str, _: _Choice) -> list[LoggedRun]:
    """A matrix: a row for each step, which may end with its own task; names of tasks may stand above."""
    lines = [(line, _cells(words)) for line, words in _lines(content) if words.strip()]
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


def _read_long(content: str, _: _Choice) -> list[LoggedRun]:
    """Columns step, task, accuracy and, if there, run and learned (the task that the step learned)."""
    lines = [(line, _cells(words)) for line, words in _lines(content) if words.strip()]
    heads = [head.lower() for head in lines[0][1]]
    repeated = first_repeated(heads)
    stranger = next((head for head in heads if head not in ("run", "step", "task", "accuracy", "learned")), None)
    if repeated is not None or stranger is not None:
        raise ProblemFileError(
            f"line {lines[0][0]}: {'two columns' if repeated else 'an unknown column'} {repeated or stranger!r:.40}; "
            "the columns are run, step, task, accuracy and learned"
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
        step = BEFORE if is_before else _whole(row["step"], f"line {line}, step")
        key = (step, tasks.index(row["task"]))
        if key in cells:
            raise ProblemFileError(f"line {line}: step {row['step']} and task {row['task']!r:.40} come twice")
        cells[key] = _number(row["accuracy"], f"line {line}, accuracy")
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
