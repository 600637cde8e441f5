"""Ranks that may change: between rounds of ascent a task gains or loses one direction where that pays.

For every task two moves are evaluated exactly: the kernel loses the direction in which the gradient of the value is
least, or gains the direction of the row space in which it is largest. The best move that was not tried since the last
change is followed for a round, beside the collection as it was, and the better of both stays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from forgetting._arrays import Array, IntArray
from forgetting._devices import Device
from forgetting.worstcase.ascent import Flags, Point, ascend, probabilities, projections_of
from forgetting.worstcase.objective import Objective

__all__ = ["climb_with_ranks"]

ROUND = 50  # steps between changes of ranks
NEAR = 3.0  # a move that divides the value by more than exp(3) is not followed
GAIN = 1e-9  # relative gain below which a change of rank does not count


def climb_with_ranks(
    objective: Objective, point: Point, steps: int, *, free: bool, weighted: bool, batch: int
) -> tuple[Point, Flags, Flags]:
    """The point after rounds of ascent, of `steps` steps in all; and of each collection how it ended.

    That is whether its gradient is 0, and whether no move leads to a larger value, which is so if ranks are not `free`.
    `batch` is how many collections are evaluated at once.
    """
    if not free:
        point, flat = _ascended(objective, point, steps, weighted, batch)
        return point, flat, flat
    point, flat = _ascended(objective, point, min(ROUND, steps), weighted, batch)
    curves = [np.stack(point.history)]
    tried = np.zeros((len(flat), 2 * point.kernel.shape[1]), dtype=bool)
    finished, left = np.zeros_like(flat), steps - ROUND
    while left > 0 and not finished.all():
        moved, owners = _best_moves(objective, point, np.flatnonzero(~finished), tried, batch)
        finished |= flat & ~np.isin(np.arange(len(flat)), owners)
        staying = np.flatnonzero(~flat)
        curve = np.tile(point.log_value, (min(ROUND, left), 1))
        for rows, begun in ((staying, point.part(staying)), (owners, moved)):
            if not len(rows):
                continue
            made, ended = _ascended(objective, begun, len(curve), weighted, batch)
            better = np.flatnonzero(made.log_value > point.log_value[rows] + (GAIN if begun is moved else -np.inf))
            curve[:, rows[better]] = np.maximum(curve[:, rows[better]], np.stack(made.history)[1:, better])
            point.replace(rows[better], made.part(better))
            flat[rows[better]] = ended[better]
            if begun is moved:
                tried[rows[better]] = False
        curves.append(curve)
        left -= ROUND
    curves.append(np.tile(point.log_value, (max(left, 0), 1)))
    point.history = list(np.concatenate(curves))
    return point, flat, finished


def _ascended(objective: Objective, point: Point, steps: int, weighted: bool, batch: int) -> tuple[Point, Flags]:
    """The ascent of all collections, of so many at a time."""
    rows = np.arange(len(point.kernel))
    made = [
        ascend(objective, point.part(rows[first : first + batch]), steps, weighted=weighted)
        for first in range(0, len(rows), batch)
    ]
    return Point.joined([part for part, _ in made]), np.concatenate([ended for _, ended in made])


def _best_moves(objective: Objective, point: Point, rows: IntArray, tried: Flags, batch: int) -> tuple[Point, IntArray]:
    """For each collection among `rows` its best move that was not tried, as points, and whose they are.

    What is followed is marked as tried, and so are moves that are not possible or not worth it.
    """
    device, T = objective.device, point.kernel.shape[1]
    found: dict[tuple[int, int], tuple[Array, Array]] = {}
    for first in range(0, len(rows), batch):
        some = rows[first : first + batch]
        P, p, start = _placed(device, point.part(some))
        slopes = device.take(objective.of(P, p, start).projections)
        for row, slope in zip(some.tolist(), slopes, strict=True):
            for move in np.flatnonzero(~tried[row]).tolist():
                made = _moved(point.frames[row, move // 2], point.kernel[row, move // 2], slope[move // 2], move % 2)
                if made is None:
                    tried[row, move] = True
                else:
                    found[row, move] = made
    values, keys = np.full((len(point.kernel), 2 * T), -np.inf), list(found)
    for first in range(0, len(keys), batch):
        part = keys[first : first + batch]
        P, p, start = _placed(device, _applied(point, part, found))
        values[tuple(zip(*part, strict=True))] = device.take(objective.of(P, p, start, gradient=False).log_value)
    best = [(row, int(np.argmax(values[row]))) for row in rows.tolist()]
    worth = [(row, move) for row, move in best if values[row, move] > point.log_value[row] - NEAR]
    tried[values < point.log_value[:, None] - NEAR] = True
    for row, move in worth:
        tried[row, move] = True
    return _applied(point, worth, found), np.array([row for row, _ in worth], dtype=np.int64)


def _placed(device: Device, point: Point) -> tuple[Any, Any, Any]:
    """The projections, the probabilities and the starts, on the device."""
    P = projections_of(device, device.put(point.frames), device.put(point.kernel))
    return P, probabilities(device, device.put(point.logits)), device.put(point.start)


def _applied(point: Point, moves: list[tuple[int, int]], found: dict[tuple[int, int], tuple[Array, Array]]) -> Point:
    """The collections after these moves, each of one collection."""
    made = point.part(np.array([row for row, _ in moves], dtype=np.int64))
    for place, (row, move) in enumerate(moves):
        made.frames[place, move // 2], made.kernel[place, move // 2] = found[row, move]
    return made


def _moved(frame: Array, kernel: Array, slope: Array, joins: int) -> tuple[Array, Array] | None:
    """Frame and kernel after the best direction left the kernel, or joined it; None if there is no such direction."""
    columns = np.flatnonzero(kernel == 1 - joins)
    if not len(columns):
        return None
    basis, turned, changed = frame[:, columns], frame.copy(), kernel.copy()
    turned[:, columns] = basis @ np.linalg.eigh(basis.T @ slope @ basis)[1]
    changed[columns[-1 if joins else 0]] = joins
    return turned, changed
