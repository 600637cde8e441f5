"""Accuracies of tasks after each step, from logs of Avalanche, Mammoth, PyCIL and PILOT.

Formats, by the code that writes them: Avalanche 0.6.0, logging/text_logging.py and csv_logger.py,
training/plugins/evaluation.py (what `eval` and `get_all_metrics` return, saved as JSON); Mammoth e75a491,
utils/loggers.py, `Logger.write`; PyCIL 87cc411 and PILOT 2647455, trainer.py, `_train`. Text is searched for numbers at
known places: nothing is evaluated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.core.text import one_line, spelt_number
from forgetting.errors import ProblemFileError

BEFORE = -1  # the step of the row from before learning
MOST = 10_000  # tasks or steps

NUMBER = r"(?:np\.float\d+\()?([^\s,(){}\[\]]+)\)?"
AVALANCHE = re.compile(r"Top1_Acc_Exp/eval_phase/([^/\s=]+)_stream(?:/Task(\d+))?/Exp(\d+)")
STARTS = re.compile(r"-- (?:>> (Start|End) of (training|eval) phase <<|Starting training on experience (\d+))")
MAMMOTH = re.compile(rf"'accuracy_(\d+)_task(\d+)': {NUMBER}")
CIL = re.compile(r"(?:^|=> )(CNN|NME): (\{.*)")
GROUP = re.compile(rf"'(\d{{1,9}})-(\d{{1,9}})': {NUMBER}")
TOTAL = re.compile(rf"'total': {NUMBER}")
SEED = re.compile(r"=> seed: (\S+)")
CLASS_ORDER = re.compile(r"=> \[(\d+(?:, \d+)+)\]\s*$")
PRINTED = re.compile(r"^Accuracy Matrix \((CNN|NME)\):\s*$")


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


@dataclass(frozen=True)
class Choice:
    """What is read where a file has several: "CNN" or "NME" of PyCIL, the evaluation stream of Avalanche."""

    classifier: str
    stream: str | None


def accuracy(word: Any, where: str) -> float:
    """An accuracy as a float; an error names the place and the value."""
    try:
        value = float(spelt_number(word) if isinstance(word, str) else word)
    except (TypeError, ValueError, OverflowError):
        raise ProblemFileError(f"{where}: {one_line(str(word), 40)!r} where an accuracy was expected") from None
    if not math.isfinite(value):
        raise ProblemFileError(f"{where}: the accuracy is {value}")
    return value


def task_or_step(word: str, where: str) -> int:
    """The number of a task or a step; an error names the place and the value."""
    if not re.fullmatch(r"\d{1,9}", word):
        raise ProblemFileError(f"{where}: {one_line(word, 40)!r} where a number of a task or a step was expected")
    return int(word)


def numbered_lines(content: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, numbered from 1."""
    return enumerate(content.splitlines(), 1)


# ------------------------------------------------------------------------------------------------------------ Avalanche


def read_avalanche_text(content: str, choice: Choice) -> list[LoggedRun]:
    """What a TextLogger or an InteractiveLogger wrote: evaluations between phases of training."""
    by_stream: dict[str, dict[tuple[int, int], float]] = {}
    order: list[int] = []
    training = repeated = False
    for line, words in numbered_lines(content):
        start = STARTS.search(words)
        if start is not None:
            training = start[1] == "Start" if start[2] == "training" else training
            order += [] if start[3] is None else [int(start[3])]
            continue
        found = AVALANCHE.search(words)
        if found is None or training:  # what is evaluated within training is not of the end of the step
            continue
        value = accuracy(words[found.end() :].strip().lstrip("=").strip(), f"line {line}")
        cells, key = by_stream.setdefault(found[1], {}), (len(order) - 1, int(found[3]))
        repeated = repeated or key in cells
        cells[key] = value
    notes = ["Avalanche, text log", *(["evaluations that come twice: the later one is used"] if repeated else [])]
    return [_avalanche(by_stream, choice, tuple(order), notes)]


def _avalanche(
    by_stream: Mapping[str, dict[tuple[int, int], float]],
    choice: Choice,
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


def read_avalanche_csv(content: str, _: Choice) -> list[LoggedRun]:
    """What a CSVLogger wrote into eval_results.csv: a row for each evaluated experience."""
    run = LoggedRun("", notes=["Avalanche, CSV log"])
    order: list[int] = []
    values = []
    for line, words in list(numbered_lines(content))[1:]:
        row = [word.strip() for word in words.split(",")]
        if row == [""]:
            continue
        if len(row) != 5:
            raise ProblemFileError(f"line {line}: {len(row)} cells under 5 columns")
        task, learned = task_or_step(row[0], f"line {line}, eval_exp"), row[1]
        if learned not in ("None", ""):
            step = task_or_step(learned, f"line {line}, training_exp")
            if not order or order[-1] != step:
                order.append(step)
        key = (len(order) - 1, task)
        if key in run.cells and order:
            raise ProblemFileError(
                f"line {line}: experience {task} is evaluated twice after experience {order[-1]} was learned; the file "
                "does not say which stream each row is of: give a log with one evaluation stream"
            )
        values.append(row[2])
        run.cells[key] = accuracy(row[2], f"line {line}, eval_accuracy")
    if values and set(values) == {"0"}:
        raise ProblemFileError(
            "eval_accuracy is 0 in all rows, which the CSVLogger writes if no accuracy was monitored; add "
            "accuracy_metrics(experience=True) to the EvaluationPlugin"
        )
    run.order = tuple(order)
    return [run]


def read_avalanche_json(data: Any, choice: Choice) -> list[LoggedRun]:
    """The list of what `eval` returned, or what `get_all_metrics` returned."""
    by_stream: dict[str, dict[tuple[int, int], float]] = {}
    if isinstance(data, dict):
        curves = {key: AVALANCHE.fullmatch(key) for key in data}
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
                accuracy(x, f"{key}, step {i}"): accuracy(y, f"{key}, value {i}")
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
    rows = [row if isinstance(row, dict) else {} for row in data]
    for step, row in enumerate(rows):
        for key, value in row.items():
            found = AVALANCHE.fullmatch(key)
            if found is not None:
                by_stream.setdefault(found[1], {})[step, int(found[3])] = accuracy(value, f"evaluation {step}, {key}")
    notes = ["Avalanche, results of eval; experiences were learned in the order of their numbers"]
    run = _avalanche(by_stream, choice, None, notes)
    if len(rows) == max(task for _, task in run.cells) + 2:  # one more than tasks
        run.cells = {(step - 1, task): value for (step, task), value in run.cells.items()}
    later = {key for key in run.cells if 0 <= key[1] < key[0]}
    if len(later) > 2 and all(run.cells[key] == run.cells.get((key[0] - 1, key[1])) for key in later if key[0]):
        run.notes.append(
            "no accuracy changes after its experience was learned: eval returns the last value of every metric, so "
            "that experiences which were not evaluated again keep their old values"
        )
    return [run]


# -------------------------------------------------------------------------------------------------------------- Mammoth


def read_mammoth(content: str, _: Choice) -> list[LoggedRun]:
    """Lines of logs.pyd: a dictionary for each run, with 'accuracy_2_task5' for task 2 in the fifth evaluation."""
    runs = []
    for line, words in numbered_lines(content):
        if not words.strip():
            continue
        rows: dict[int, dict[int, float]] = {}
        for task, row, value in MAMMOTH.findall(words):
            where = f"line {line}, accuracy_{task}_task{row}"
            rows.setdefault(int(row[:9]), {})[int(task[:9]) - 1] = accuracy(value, where)
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


def read_cil(content: str, choice: Choice) -> list[LoggedRun]:
    """Lines "CNN: {...}" with accuracies of groups of classes; all seeds of a call stand in the file of the first."""
    runs: list[LoggedRun] = []
    widths: list[int] = []
    seed, order, printed = "", "", False
    for line, words in numbered_lines(content):
        found = SEED.search(words)
        if found is not None:
            seed, order, widths = one_line(found[1], 40), "", []
        elif (listed := CLASS_ORDER.search(words)) is not None:
            order = f"classes {listed[1]}"
        found = CIL.search(words)
        printed = printed or PRINTED.match(words) is not None
        if found is None or found[1] != choice.classifier:
            continue
        groups = sorted(
            (int(low), accuracy(value, f"line {line}, {low}-{high}")) for low, high, value in GROUP.findall(found[2])
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
            total = TOTAL.search(found[2])
            start = start if total is None else accuracy(total[1], f"line {line}, total")
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


def _read_printed(content: str, choice: Choice) -> list[LoggedRun]:
    """Matrices under "Accuracy Matrix (CNN):", which have a row for each task and zeros before it was learned."""
    runs: list[LoggedRun] = []
    lines = list(numbered_lines(content))
    for place, (line, words) in enumerate(lines):
        found = PRINTED.match(words)
        if found is None or found[1] != choice.classifier:
            continue
        rows: list[list[float]] = []
        for number, row in lines[place + 1 :]:
            if "..." in row:
                raise ProblemFileError(f"line {number}: NumPy left out entries (...); the lines CNN: {{...}} have all")
            rows.append([accuracy(word, f"line {number}") for word in row.strip(" []").split()])
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


# ------------------------------------------------------------------------------------------------- known by their words


def is_mammoth(content: str) -> bool:
    """Whether a text is one of Mammoth's logs.pyd."""
    return MAMMOTH.search(content) is not None or "'accmean_task1'" in content


def is_cil(content: str) -> bool:
    """Whether a text is a log of PyCIL or PILOT, or what they print."""
    return any(CIL.search(line) or PRINTED.match(line) for line in content.splitlines())
