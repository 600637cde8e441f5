"""Ranks that may change: between rounds of ascent a task gains or loses one direction where that pays.

For every task two moves are evaluated exactly: the kernel loses the direction in which the gradient of the value is
least, or gains the direction of the row space in which it is largest. The best move that was not tried since the last
change is followed for a round, beside the collection as it was, and the better of both stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.worstcase.ascent import Point, ascend, probabilities, projections_of
from forgetting.worstcase.objective import Objective

__all__ = ["climb_with_ranks"]

ROUND = 50  # steps between changes of ranks
NEAR = 3.0  # a move that divides the value by more than exp(3) is not followed
GAIN = 1e-9  # relative gain below which a change of rank does not count


def climb_with_ranks(
    objective: Objective, point: Point, steps: int, *, free: bool, weighted: bool, batch: int
) -> tuple[Point, Array]:
    """The point after rounds of ascent, of `steps` steps in all, and whether each collection is finished.

    A collection is finished if its gradient is 0 and, where ranks are `free`, no move leads to a larger value. `batch`
    is how many collections are evaluated at once.
    """
    total, T = len(point.kernel), point.kernel.shape[1]
    if not free:
        return _in_parts(lambda part: ascend(objective, part, steps, weighted=weighted), point, np.arange(total), batch)
    tried = np.zeros((total, 2 * T), dtype=bool)
    finished, flat = np.zeros(total, dtype=bool), np.zeros(total, dtype=bool)
    history: list[Array] = []
    left = steps
    while left > 0:
        round_steps, first = min(ROUND, left), left == steps
        left -= round_steps
        rows = np.flatnonzero(~finished)
        if not len(rows):
            history += [point.log_value.copy()] * round_steps
            continue
        moved = Point(*(np.empty((0, *part.shape[1:])) for part in _parts(point)))
        owners = np.empty(0, dtype=np.int64)
        if not first:
            moved, owners = _best_moves(objective, point, rows, tried, batch)
            finished[rows] = flat[rows] & ~np.isin(rows, owners)
            rows = np.flatnonzero(~finished)
        staying = rows[~flat[rows]]
        both = Point(*(np.concatenate(pair) for pair in zip(_parts(point.part(staying)), _parts(moved), strict=True)))
        if not len(both.kernel):
            history += [point.log_value.copy()] * round_steps
            continue
        made, ended = _in_parts(
            lambda part, n=round_steps: ascend(objective, part, n, weighted=weighted),
            both, np.arange(len(both.kernel)), batch,
        )  # fmt: skip
        curves = np.stack(made.history)
        seen = np.tile(point.log_value if history else curves[0, :total], (round_steps + 1, 1))
        count = len(staying)
        seen[:, staying] = curves[:, :count]
        point.replace(staying, made.part(np.arange(count)))
        flat[staying] = ended[:count]
        better = made.log_value[count:] > point.log_value[owners] + GAIN
        seen[:, owners[better]] = np.maximum(seen[:, owners[better]], curves[:, count:][:, better])
        point.replace(owners[better], made.part(count + np.flatnonzero(better)))
        flat[owners[better]] = ended[count:][better]
        tried[owners[better]] = False
        history += list(seen if not history else seen[1:])
    point.history = list(np.maximum.accumulate(np.stack(history)))
    return point, finished | (flat & tried.all(axis=1))


def _parts(point: Point) -> tuple[Array, ...]:
    return point.frames, point.kernel, point.logits, point.start, point.log_value, point.slope


def _in_parts(
    climb: Callable[[Point], tuple[Point, Array]], point: Point, rows: Any, batch: int
) -> tuple[Point, Array]:
    """The climb of all collections, of so many at a time."""
    made = [climb(point.part(rows[first : first + batch])) for first in range(0, len(rows), batch)]
    joined = Point(*(np.concatenate(parts) for parts in zip(*(_parts(part) for part, _ in made), strict=True)))
    joined.history = [np.concatenate(step) for step in zip(*(part.history for part, _ in made), strict=True)]
    return joined, np.concatenate([ended for _, ended in made])


def _best_moves(objective: Objective, point: Point, rows: Array, tried: Array, batch: int) -> tuple[Point, Array]:
    """For each collection among `rows` its best move that was not tried, as points, and whose they are.

    What is followed is marked as tried.
    """
    device, chosen, owners = objective.device, [], []
    for row in rows.tolist():
        here = point.part([row])
        P = projections_of(device, device.put(here.frames), device.put(here.kernel))
        p, start = probabilities(device, device.put(here.logits)), device.put(here.start)
        gradient = device.take(objective.of(P, p, start).projections)[0]
        frames, kernel = _moves(here.frames[0], here.kernel[0], gradient)
        open_moves = np.flatnonzero(~tried[row] & np.array([frame is not None for frame in frames]))
        tried[row, [frame is None for frame in frames]] = True
        values = np.full(len(frames), -np.inf)
        for first in range(0, len(open_moves), batch):
            some = open_moves[first : first + batch]
            values[some] = _values(objective, here, frames, kernel, some)
        best = int(np.argmax(values)) if len(open_moves) else -1
        tried[row] |= values < point.log_value[row] - NEAR
        if best < 0 or tried[row, best]:
            continue
        tried[row, best] = True
        task = best // 2
        here.frames[0, task], here.kernel[0, task] = frames[best], kernel[best]
        here.log_value[0] = values[best]
        chosen.append(here)
        owners.append(row)
    if not chosen:
        return Point(*(np.empty((0, *part.shape[1:])) for part in _parts(point))), np.empty(0, dtype=np.int64)
    return Point(*map(np.concatenate, zip(*map(_parts, chosen), strict=True))), np.array(owners)


def _values(objective: Objective, here: Point, frames: list[Any], kernel: list[Any], some: Array) -> Array:
    """The logarithms of the values after these moves."""
    device, count = objective.device, len(some)
    all_frames, all_kernels = np.repeat(here.frames, count, axis=0), np.repeat(here.kernel, count, axis=0)
    for place, move in enumerate(some.tolist()):
        all_frames[place, move // 2], all_kernels[place, move // 2] = frames[move], kernel[move]
    P = projections_of(device, device.put(all_frames), device.put(all_kernels))
    p = probabilities(device, device.put(np.repeat(here.logits, count, axis=0)))
    start = device.put(np.repeat(here.start, count, axis=0))
    return device.take(objective.of(P, p, start, gradient=False).log_value)


def _moves(frames: Array, kernel: Array, gradient: Array) -> tuple[list[Any], list[Any]]:
    """The frame and the kernel of each task after it gained (move 2 m) and lost (move 2 m + 1) a direction."""
    new_frames: list[Any] = []
    new_kernels: list[Any] = []
    for frame, own, slope in zip(frames, kernel, gradient, strict=True):
        for side, pick in ((1.0, 0), (0.0, -1)):  # a direction leaves the kernel, or joins it
            columns = np.flatnonzero(own == side)
            if not len(columns):
                new_frames.append(None)
                new_kernels.append(None)
                continue
            basis = frame[:, columns]
            turned, changed = frame.copy(), own.copy()
            turned[:, columns] = basis @ np.linalg.eigh(basis.T @ slope @ basis)[1]
            changed[columns[pick]] = 1.0 - side
            new_frames.append(turned)
            new_kernels.append(changed)
    return new_frames, new_kernels
