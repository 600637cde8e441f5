"""What the labels of rows stand for: numbers, +1 and -1, or classes with an output each; and what is said about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote
from typing import Literal

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.groups import Groups
from forgetting.core.text import nearest, spelt_number
from forgetting.errors import ForgettingError
from forgetting.files.tables import decimals, parse_number
from forgetting.tasks.labels import RowClasses, classes_note, one_hot, seen_alone
from forgetting.tasks.problem import Problem
from forgetting.tasks.readers.sheet import Columns, Sheet
from forgetting.tasks.regression import RegressionTasks

FEWEST, MOST = 3, 100  # different whole numbers that may be classes,
OFTEN = 5  # and how often each must occur
NAMES = ("class", "label", "target")  # of columns whose whole numbers are classes
MANY = 20  # words that are hardly classes if most occur once; whole numbers that are hardly classes
LISTED = 5  # labels in a note
WHOLE = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of all rows.

    Attributes:
        y: numbers, or +1 and -1; nothing for classes.
        known: the class of each row; None for numbers.
        mode: the classes that an output stands for, as in `RegressionTasks.from_labels`.
        reason: why whole numbers count as classes, unless the caller says so.
        words: the class of each row that `positive` makes +1 or -1.
    """

    y: Array = field(default_factory=lambda: np.empty(0))
    known: RowClasses | None = None
    mode: Literal["all", "task"] = "all"
    reason: str = ""
    words: tuple[str, ...] = ()

    def of(self, members: Sequence[IntArray]) -> tuple[list[Array], tuple[tuple[str, ...], ...] | None]:
        """The labels of each task, given its row numbers, and the classes that outputs stand for."""
        if self.known is None:
            return [self.y[rows] for rows in members], None
        return one_hot(self.known, members, self.mode)


def read_labels(sheets: Sequence[Sheet], columns: Columns, groups: Groups, learned: Problem | None) -> Labels:
    """The labels of the rows of all sheets, as `columns` says.

    Labels of held-out rows are classes if those of the `learned` tasks are, and the same classes.
    """
    if columns.positive is not None:
        words = tuple(_classes([word for sheet in sheets for word in sheet.labels]))
        return Labels(_signs(words, columns.positive, sheets[0]), words=words)
    mode, reason = columns.classes, ""
    names: tuple[str, ...] | None = None
    if learned is not None:
        classes = None if learned.linear is None else learned.linear.classes
        mode = None if classes is None else "all"
        names = tuple(dict.fromkeys(name for own in classes or () for name in own))
    elif mode == "auto":
        mode, reason = _guess(sheets, columns.label, groups)
    if mode == "all" or mode == "task":
        return Labels(known=_known(sheets, columns.label, names), mode=mode, reason=reason)
    return Labels(_numbers(sheets, columns.label))


def _guess(sheets: Sequence[Sheet], label: str, groups: Groups) -> tuple[Literal["all"] | None, str]:
    """Whether labels are classes, and for whole numbers why they are.

    Words and categories are, if there are three or more. Whole numbers are if there are 3 to 100, each at least five
    times, and the column has the name of classes, or no task has more than half of them.
    """
    y = np.concatenate([sheet.y for sheet in sheets])
    no_numbers, content = np.isnan(y), {sheet.content() for sheet in sheets}
    if content == {"categories"} or (no_numbers.all() and content <= {"categories", "spelt"}):
        different = len({word for sheet in sheets for word in sheet.labels})
        if different < 2 and no_numbers.all():
            raise _single(sheets, label)
        if different > MANY and 2 * different > len(y):
            raise sheets[0].origin.refusal(
                f": column {label!r:.60} has {different} different words in {len(y)} rows, which are hardly classes; "
                "name the column of labels with label= (--label), or give classes='all' (--classes all)"
            )
        return ("all" if different >= FEWEST else None), ""
    if no_numbers.any() or (y != np.rint(y)).any() or np.abs(y).max() > 2**53:
        return None, ""
    values, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    if not FEWEST <= len(values) <= MOST or counts.min() < OFTEN or not all(map(_are_whole, sheets)):
        return None, ""
    if label.lower() in NAMES:
        return "all", "because of its name"
    seen = np.bincount(np.unique(groups.codes * len(values) + places) // len(values))
    return ("all", "since no task has more than half of them") if 2 * seen.max() <= len(values) else (None, "")


def _are_whole(sheet: Sheet) -> bool:
    """Whether labels, all of which have whole values, were meant to be whole: not 1.0, unless some labels are missing.

    pandas makes floats of whole numbers among which some are missing.
    """
    content = sheet.content()
    if content == "others" or sheet.gaps:
        return sheet.gaps and content != "others"
    return content != "floats" and all(WHOLE.fullmatch(word) for word in set(sheet.labels))


def _refusal(sheets: Sequence[Sheet], row: int, label: str, words: str) -> ForgettingError:
    """The error that says what is wrong with the label of a row, counted over all sheets."""
    for sheet in sheets:
        if row < len(sheet.y):
            return sheet.origin.refusal(f", row {sheet.place(row)}, column {label!r}: {words}")
        row -= len(sheet.y)
    raise IndexError(row)


def _single(sheets: Sequence[Sheet], label: str) -> ForgettingError:
    word = sheets[0].labels[0]
    return sheets[0].origin.refusal(f": all labels in column {label!r:.60} are {word!r:.60}; two classes are needed")


def _numbers(sheets: Sequence[Sheet], label: str) -> Array:
    """The labels of all rows as numbers."""
    y = np.concatenate([sheet.y for sheet in sheets])
    wrong = np.flatnonzero(np.isnan(y))
    if len(wrong):
        words = [word for sheet in sheets for word in sheet.labels]
        row = int(wrong[0])
        remedy = decimals(words[row]) or (
            "; for classes, give classes='all' (--classes all), or name the one that counts as +1 with "
            f"{_named_positive(words)}"
        )
        raise _refusal(sheets, row, label, f"{words[row]!r:.40} is not a number{remedy}")
    return y


def _named_positive(words: Sequence[str]) -> str:
    """The option that makes one class +1; of two words with the second of them, in the order of the alphabet.

    >>> _named_positive(["dog", "cat"]), _named_positive(["a cat", "dog", "owl"])
    ("positive='dog' (--positive dog)", 'positive= (--positive)')
    """
    two = sorted(set(words))
    if len(two) != 2 or len(two[1]) > 40:
        return "positive= (--positive)"
    return f"positive={two[1]!r} (--positive {quote(two[1])})"


def _known(sheets: Sequence[Sheet], label: str, names: tuple[str, ...] | None) -> RowClasses:
    """The class of each row; `names` are those of the tasks that the rows are held out of."""
    words = _classes([word for sheet in sheets for word in sheet.labels])
    known = list(dict.fromkeys(words))
    if names is None:
        if len(known) < 2:
            raise _single(sheets, label)
        if all(parse_number(word) is not None for word in known):
            broken = next((word for word in known if not WHOLE.fullmatch(word)), None)
            if broken is not None and {sheet.content() for sheet in sheets} != {"categories"}:
                words_of_error = f"{broken} is no class; classes are whole numbers or words"
                raise _refusal(sheets, words.index(broken), label, words_of_error)
            known.sort(key=spelt_number)
        else:
            known.sort()
        names = tuple(known)
    place = {name: number for number, name in enumerate(names)}
    stranger = next((word for word in known if word not in place), None)
    if stranger is not None:
        words_of_error = f"{stranger!r:.60} is no class of the tasks{nearest(stranger, names, 'their classes are')}"
        raise _refusal(sheets, words.index(stranger), label, words_of_error)
    return RowClasses(names, np.fromiter((place[word] for word in words), np.int64, len(words)))


def _signs(classes: Sequence[str], positive: str, sheet: Sheet) -> Array:
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
    number = spelt_number(word)
    return str(int(number)) if isinstance(number, int) or number.is_integer() else str(number)


# ---------------------------------------------------------------------------------------------------------------- notes


def about_labels(
    tasks: RegressionTasks, labels: Labels, columns: Columns, groups: Groups
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Notes on the labels of tasks that were read, and doubts about what they were taken for."""
    if labels.words:
        return _seen_alone(labels.words, groups.codes, tasks.names), ()
    notes = label_notes(tasks)
    if labels.reason:
        guess = f"The whole numbers in column {columns.label!r} count as classes {labels.reason}"
        return (), (f"{notes[0]}. {guess}; if they are numbers, give classes=None (--classes none)",)
    if labels.known is not None or columns.classes is None:
        return notes, ()
    remedy = "give classes='all' (--classes all), or name the one that counts as +1 with positive= (--positive)"
    return notes, numbers_doubt(labels.y, remedy)


def decided_of_labels(said: Sequence[str], labels: Labels, columns: Columns) -> list[str]:
    """What is said of classes that the caller did not name: of words; of whole numbers there is a doubt."""
    guessed = labels.known is not None and columns.classes == "auto" and not labels.reason
    return [f"{said[0]}. If this is meant, classes='all' (--classes all) says so"] if guessed else []


def label_notes(tasks: RegressionTasks) -> tuple[str, ...]:
    """A note on the classes of tasks, or on one of two labels that one task alone has.

    >>> import forgetting as fg
    >>> label_notes(fg.RegressionTasks([[[1.0], [2.0]], [[1.0], [2.0]]], [[1, -1], [1, 1]]))
    ("class '-1' is seen in task '0' only",)
    """
    labels = [tasks.task(m)[1] for m in range(tasks.num_tasks)]
    if tasks.classes is not None:
        return (classes_note(tasks.classes, labels, tasks.names),)
    y = np.concatenate(labels)
    if y.ndim > 1 or len(_few(y)) != 2:
        return ()
    return _seen_alone(y.astype(np.int64).tolist(), np.repeat(np.arange(tasks.num_tasks), tasks.num_rows), tasks.names)


def numbers_doubt(y: Array, remedy: str) -> tuple[str, ...]:
    """A doubt if labels are few whole numbers, as classes are; -1 and +1 are meant to be learned as numbers.

    >>> numbers_doubt(np.array([0.0, 1, 2, 1, 0, 2]), "give classes='all'")
    ("the labels are the numbers 0, 1, 2, and are learned as numbers; if they are classes, give classes='all'",)
    """
    values = _few(y)
    if len(values) < 2 or values.tolist() == [-1, 1]:
        return ()
    named = ", ".join(str(int(value)) for value in values[:LISTED]) + (", ..." if len(values) > LISTED else "")
    return (f"the labels are the numbers {named}, and are learned as numbers; if they are classes, {remedy}",)


def _few(y: Array) -> Array:
    """The different labels if they look like classes: few whole numbers; else none."""
    values = np.unique(y)
    few = len(values) <= min(MANY, len(y) / 2)
    return values if few and (values == np.round(values)).all() else values[:0]


def _seen_alone(labels: Sequence[object], codes: IntArray, tasks: Sequence[str]) -> tuple[str, ...]:
    """A note on labels that one task alone has; `codes` are the numbers of the tasks of the rows."""
    where: dict[str, list[str]] = {}
    for label, task in dict.fromkeys(zip(labels, codes.tolist(), strict=True)):
        where.setdefault(str(label), []).append(tasks[task])
    return seen_alone(where, len(tasks))
