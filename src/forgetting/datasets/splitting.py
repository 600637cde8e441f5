"""Rows that are held out for testing: the same tasks twice, with different rows."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from forgetting.core.arrays import Array, IntArray, Seed, as_kind, as_number, as_word, seed_from
from forgetting.errors import InvalidInputError
from forgetting.tasks import RegressionTasks

Part = Literal["all", "train", "test"]
SHARE = 0.25  # of rows that are held out


def hold_out(tasks: RegressionTasks, share: float = SHARE, seed: Seed = 0) -> tuple[RegressionTasks, RegressionTasks]:
    """The tasks as (train, test): of each task, a share of the rows drawn at random is test data, the others train.

    Each task keeps at least one row for each. Identical tasks stay identical. Prepare the train tasks afterwards, and
    the test tasks by `preparation.apply_to`: means and deviations of all rows would tell the learner of the test data.

    >>> import forgetting as fg
    >>> train, test = fg.datasets.hold_out(fg.datasets.diabetes(bins=5), share=0.2)
    >>> train.num_rows.tolist(), test.num_rows.tolist()
    ([71, 71, 70, 70, 70], [18, 18, 18, 18, 18])
    """
    as_kind(tasks, RegressionTasks, "RegressionTasks").require_rows("hold_out")
    rng = np.random.default_rng(seed_from(seed))
    known: dict[int, list[tuple[Any, Array]]] = {}
    pairs = []
    for number, distinct in enumerate(tasks.index.tolist()):
        if distinct not in known:
            X, y = tasks.task(number)
            if len(y) < 2:
                raise InvalidInputError(
                    f"task {number} ({tasks.names[number]!r:.60}) has one row, of which none can be held out; leave "
                    "the task out"
                )
            known[distinct] = [(X[rows], y[rows]) for rows in split_indices(len(y), share, rng)]
        pairs.append(known[distinct])
    parts = [tasks.with_data([pair[side][0] for pair in pairs], [pair[side][1] for pair in pairs]) for side in (0, 1)]
    for part in parts:
        part.preparation, part.notes = tasks.preparation, tasks.notes
    return parts[0], parts[1]


def split_indices(count: int, share: float, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """The numbers from 0 to count - 1 in two sorted parts, the second with about the given share; none is empty.

    >>> [len(part) for part in split_indices(10, 0.25, np.random.default_rng(0))]
    [8, 2]
    """
    wanted = as_number(share, "share", above=0, below=1)
    held = min(max(1, round(wanted * count)), count - 1)
    order = rng.permutation(count)
    return np.sort(order[held:]), np.sort(order[:held])


def as_part(part: Any) -> Part:
    """The part, if it is "all", "train" or "test"; else raise.

    >>> as_part("tests")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: part must be 'all', 'train' or 'test', got 'tests'
    """
    checked: Part = as_word(part, get_args(Part), "part")
    return checked


def part_of(tasks: RegressionTasks, part: Part, share: float, seed: Seed) -> RegressionTasks:
    """All rows of the tasks, or those that `hold_out` leaves for training, or those that it holds out."""
    if as_part(part) == "all":
        return tasks
    return hold_out(tasks, share, seed)[part == "test"]
