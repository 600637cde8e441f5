"""Signs that a matrix of accuracies follows another convention than R[step, task], row i after the i-th task.

Learning a task raises the accuracy on this task. Where no task gains in its own row, and all gain in the row before or
after it, rows are shifted by one; where the columns fit in another order, or the transpose fits, that is said. A sign
is said with its numbers, and nothing is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray

LEAST = 0.1  # the least gain that is a sign, as a share of the largest accuracy
CLEAR, CLEAR_OF_FEW, MANY = 0.05, 0.3, 4  # the least difference of the two gains, for this many tasks and for fewer
SHARE = 0.9  # of the tasks that must agree
SMALL = 0.25  # a gain in the own row that is small compared with the other gain
TURNED = 0.5  # the same for a transpose, where forgetting in one step is such a gain
FEWEST = 2  # tasks that must be there


@dataclass(frozen=True)
class Doubt:
    """A sign of another convention: a word, and a sentence that says why and what to do."""

    kind: str
    words: str

    def __str__(self) -> str:
        return self.words


def doubts_of(
    values: Array, orders: IntArray | None, before: Array | None, *, any_measure: bool = False
) -> tuple[Doubt, ...]:
    """The signs of another convention in matrices (runs, steps, tasks), of which a run may learn a task once only.

    With `any_measure` the numbers may be losses, too: signs that losses may have are left out.

    >>> R = np.array([[0.9, 0.1, 0.1, 0.1], [0.7, 0.9, 0.1, 0.1], [0.6, 0.7, 0.9, 0.1], [0.5, 0.6, 0.7, 0.9]])
    >>> doubts_of(R[None], None, None), doubts_of(R.T[None], None, None)[0].kind
    ((), 'transposed')
    """
    found = [] if any_measure else list(_mixed_units(values))
    given = None if orders is None else _in_order(values, orders)
    by_place = values if values.shape[1] == values.shape[2] else None
    if orders is None:
        given = by_place
    scale = 0.0 if given is None else float(np.nanmax(given))
    if given is None or not 0 < scale < np.inf:
        return tuple(found)
    start = before if orders is None or before is None else np.take_along_axis(before, orders, axis=1)
    sign = _turned_pattern(given, any_measure) or _shifted(given, start, scale, any_measure) or _turned(given, scale)
    if sign is None and orders is not None and by_place is not None and (orders != np.arange(len(orders[0]))).any():
        sign = _by_place(given, by_place, orders, scale)
    return (*found, *([] if sign is None else [sign]))


def _in_order(values: Array, orders: IntArray) -> Array | None:
    """The matrices with columns in the order of learning; None if a task comes twice, or a step learned none."""
    if any(len(set(order)) < len(order) or min(order) < 0 for order in orders.tolist()):
        return None
    return np.take_along_axis(values, orders[:, None, :], axis=2)


def _gains(given: Array, start: Array | None, offset: int) -> Array:
    """(runs, tasks): what each task gains in the row `offset` after its own, NaN where that is not known."""
    rows = given if start is None else np.concatenate([start[:, None], given], axis=1)
    first = 0 if start is None else 1
    gains = np.full((len(given), given.shape[2]), np.nan)
    for task in range(min(given.shape[1:])):
        row = task + first + offset
        if 1 <= row < rows.shape[1]:
            gains[:, task] = rows[:, row, task] - rows[:, row - 1, task]
    return gains


def _agree(own: Array, other: Array, scale: float, small: float) -> bool:
    """Whether nearly all tasks gain much elsewhere, and little in their own row."""
    known = ~(np.isnan(own) | np.isnan(other))
    if np.count_nonzero(known) < FEWEST:
        return False
    own, other = own[known], other[known]
    much = other.mean() >= LEAST * scale and own.mean() <= small * other.mean()
    clear = (CLEAR if own.size >= MANY else CLEAR_OF_FEW) * scale
    return bool(much and np.mean(other - own >= clear) >= SHARE)


def _shifted(given: Array, start: Array | None, scale: float, any_measure: bool) -> Doubt | None:
    own = _gains(given, start, 0)
    for offset, what, remedy in (
        (1, "before task i was learned", "give the row after the last task, too, and the first row as before="),
        (-1, "after task i + 1 was learned", "the first row after learning is missing, or counted as before learning"),
    ):
        other = _gains(given, start, offset)
        known = ~(np.isnan(own) | np.isnan(other))
        # losses drop where a task is learned, and rise after it
        dropped = any_measure and own[known].sum() < -TURNED * other[known].sum()
        if _agree(own, other, scale, SMALL) and not dropped:
            return Doubt(
                "shifted",
                f"rows seem to be shifted by one, as if row i were the evaluation {what}: tasks gain "
                f"{np.mean(own[known]):.3g} on average in the row of their own learning, and "
                f"{np.mean(other[known]):.3g} in the row {'after' if offset > 0 else 'before'} it; {remedy}",
            )
    if any_measure:
        return None
    own[:, 0] = np.nan
    lost = own[~np.isnan(own)]
    nothing_else = np.isnan(_gains(given, start, -1)[:, 2:]).all()  # no task but the next one is evaluated ahead
    if nothing_else and lost.size > FEWEST and (lost < 0).mean() >= 0.75 and lost.mean() < -SMALL * LEAST * scale:
        return Doubt(
            "shifted",
            "rows seem to be shifted by one, as if row i were the evaluation after task i + 1 was learned: tasks lose "
            f"{-lost.mean():.3g} on average in the row of their own learning; the first row after learning is missing, "
            "or counted as before learning",
        )
    return None


TURNED_REMEDY = "rows are steps here, and columns tasks: give the transpose if so"


def _turned_pattern(given: Array, any_measure: bool) -> Doubt | None:
    """A sign of rows that are tasks: entries above the diagonal alone."""
    T = given.shape[2]
    if given.shape[1] != T or T < 2:
        return None
    if all(looks_turned(run) for run in np.isnan(given)):
        return Doubt(
            "transposed",
            f"entries are above the diagonal alone, as if rows were tasks and columns steps; {TURNED_REMEDY}",
        )
    lower, upper = _mirrored(given)
    if T > 2 and not any_measure and (lower == 0).all() and (upper > 0).all():
        return Doubt(
            "transposed",
            "all accuracies below the diagonal are 0 and all above are not, as if rows were tasks and columns steps, "
            f"with 0 for what was not evaluated; {TURNED_REMEDY}",
        )
    return None


def _turned(given: Array, scale: float) -> Doubt | None:
    """A sign of rows that are tasks: accuracies above the diagonal are those of learned tasks."""
    T = given.shape[2]
    if given.shape[1] != T or T < 3:
        return None
    lower, upper = _mirrored(given)
    differ = upper - lower
    if np.isnan(differ).any() or np.mean(differ > 0) < SHARE or np.mean(differ) < LEAST * scale:
        return None
    if not _agree(_gains(given, None, 0), _gains(np.swapaxes(given, 1, 2), None, 0), scale, TURNED):
        return None
    return Doubt(
        "transposed",
        f"rows seem to be tasks and columns steps: accuracies above the diagonal are {np.mean(differ):.3g} higher on "
        f"average than their mirror images below, where tasks have been learned; {TURNED_REMEDY}",
    )


def _mirrored(given: Array) -> tuple[Array, Array]:
    """The entries below the diagonal, and their mirror images above."""
    below = np.tril(np.ones(given.shape[1:], dtype=bool), -1)
    return given[:, below], np.swapaxes(given, 1, 2)[:, below]


def _by_place(given: Array, by_place: Array, orders: IntArray, scale: float) -> Doubt | None:
    """A sign of columns that have the order of learning, although the orders say that they are tasks by number."""
    moved = np.flatnonzero((orders != np.arange(orders.shape[1])).any(axis=1))
    by_order, as_they_are = _gains(given[moved], None, 0), _gains(by_place[moved], None, 0)
    # the task that is learned in the same step in both readings says nothing
    same = orders[moved] == np.arange(orders.shape[1])
    by_order[same], as_they_are[same] = np.nan, np.nan
    if not _agree(by_order, as_they_are, scale, SMALL):
        return None
    return Doubt(
        "columns by place",
        "columns seem to be in the order of learning, but the orders say that column j is task j: with the columns as "
        f"they are tasks gain {np.nanmean(as_they_are):.3g} on average when they are learned, by the orders "
        f"{np.nanmean(by_order):.3g}; give order_names= instead of orders= for columns by place",
    )


def _mixed_units(values: Array) -> list[Doubt]:
    """A sign of rows, tasks or runs in per cent among others in fractions."""
    there = np.where(np.isnan(values), -np.inf, values)
    for axes, what in (((1, 2), "run {0}"), (2, "run {0}, row {1}"), (1, "run {0}, task {1}")):
        tops = there.max(axis=axes)
        low, high = np.argwhere((tops <= 1.0) & (tops > 0)), np.argwhere(tops > 1.5)
        if len(low) and len(high):
            one, other = tuple(low[0].tolist()), tuple(high[0].tolist())
            return [
                Doubt(
                    "mixed units",
                    f"per cent and fractions seem to be mixed: the largest accuracy of {what.format(*one)} is "
                    f"{tops[one]:.4g}, and of {what.format(*other)} it is {tops[other]:.4g}; multiply fractions by 100",
                )
            ]
    return []


def looks_turned(missing: Any) -> bool:
    """Whether all entries below the diagonal are missing, and some above are there.

    >>> looks_turned(np.array([[False, False], [True, False]]))
    True
    """
    below = np.tril(np.ones(missing.shape, dtype=bool), -1)
    return bool(below.any() and missing[below].all() and not missing[below.T].all())
