"""Ranks that may change: between rounds of ascent a task gains or loses one direction where that pays.

For every task two moves are evaluated exactly: the kernel loses the direction in which the gradient of the value is
least, or gains the direction of the row space in which it is largest. The best moves that were not tried since the last
change are followed for a round, beside the collection as it was, and the best of all stays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from forgetting.compute.devices import Device
from forgetting.core.arrays import Array, IntArray
from forgetting.worstcase.ascent import Climb, Flags, Point, probabilities, projections_of
from forgetting.worstcase.objective import Objective

TRIES = 4  # moves of a collection with gradient 0 that are followed at once
ROUND = 50  # steps between changes of ranks
NEAR = 3.0  # a move that divides the value by more than exp(3) is not followed
GAIN = 1e-9  # relative gain below which a change of rank does not count


class Climbed(NamedTuple):
    """Collections after an ascent.

    Attributes:
        point: the collections.
        flat: whether the gradient of each is 0.
        finished: whether, beyond that, no change of a rank leads to a larger value.
        history: log_value after each step, (batch, steps + 1); it never falls.
    """

    point: Point
    flat: Flags
    finished: Flags
    history: Array


def climb_with_ranks(
    objective: Objective, point: Point, steps: int, *, free: bool, weighted: bool, batch: int
) -> Climbed:
    """An ascent of so many steps, with changes of ranks between its rounds if ranks are `free`.

    `batch` is how many moves are evaluated at once.
    """
    climb, rows = Climb(objective, point, weighted=weighted), np.arange(len(point.kernel))
    curves = [climb.values[None], climb.run(min(ROUND, steps) if free else steps)]
    point, flat = climb.point(), climb.finished.copy()
    tried = np.zeros((len(flat), 2 * point.kernel.shape[1]), dtype=bool)
    finished, left = np.zeros_like(flat) if free else flat.copy(), steps + 1 - sum(map(len, curves))
    while left > 0 and not finished.all():
        most = np.where(finished, 0, np.where(flat, TRIES, 1))
        moved, owners = _best_moves(objective, point, most, tried, batch)
        finished |= flat & ~np.isin(np.arange(len(flat)), owners)
        curve = np.tile(point.log_value, (min(ROUND, left), 1))
        active = np.flatnonzero(~climb.finished)
        rows, climb, count = rows[active], climb.picked(active), len(active)
        if len(owners):  # one batch with the moves: on a GPU a step of many takes as long as a step of few
            climb = climb.with_others(Climb(objective, moved, weighted=weighted, place=climb.place))
        seen = climb.run(len(curve))
        made = climb.point()
        curve[:, rows] = seen[:, :count]
        point.put(rows, made.part(np.arange(count)))
        flat[rows] = climb.finished[:count]
        better = count + _best_of_each(owners, climb.values[count:], point.log_value + GAIN)
        winners = owners[better - count]
        curve[:, winners] = np.maximum(curve[:, winners], seen[:, better])
        point.put(winners, made.part(better))
        flat[winners], tried[winners] = climb.finished[better], False
        staying = np.flatnonzero(~np.isin(rows, winners))
        rows, climb = np.concatenate([rows[staying], winners]), climb.picked(np.concatenate([staying, better]))
        curves.append(curve)
        left -= len(curve)
    curves.append(np.tile(point.log_value, (left, 1)))
    return Climbed(point, flat, finished, np.maximum.accumulate(np.concatenate(curves)).T)


def _best_of_each(owners: IntArray, values: Array, least: Array) -> IntArray:
    """The place of the largest value of each owner, if that is above the least.

    >>> _best_of_each(np.array([0, 0, 1]), np.array([2.0, 3.0, 1.0]), np.array([1.0, 1.0])).tolist()
    [1]
    """
    ranked = np.lexsort((-values, owners))
    first = ranked[np.unique(owners[ranked], return_index=True)[1]]
    chosen: IntArray = first[values[first] > least[owners[first]]]
    return chosen


def _best_moves(objective: Objective, point: Point, most: IntArray, tried: Flags, batch: int) -> tuple[Point, IntArray]:
    """The best untried moves of each collection, at most `most` of each, as points; and the collection of each move.

    Moves that are followed are marked as tried, and so are moves that are not possible or not worth it.
    """
    rows = np.flatnonzero(most)
    device, T = objective.device, point.kernel.shape[1]
    changed: dict[tuple[int, int], tuple[Array, Array]] = {}
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
                    changed[row, move] = made
    values, keys = np.full((len(point.kernel), 2 * T), -np.inf), list(changed)
    for first in range(0, len(keys), batch):
        part = keys[first : first + batch]
        P, p, start = _placed(device, _applied(point, part, changed))
        values[tuple(zip(*part, strict=True))] = device.take(objective.of(P, p, start, gradient=False).log_value)
    tried[values < point.log_value[:, None] - NEAR] = True
    ranked = np.argsort(-values, axis=1, kind="stable")
    worth = [(row, move) for row in rows.tolist() for move in ranked[row, : most[row]].tolist() if not tried[row, move]]
    for row, move in worth:
        tried[row, move] = True
    return _applied(point, worth, changed), np.array([row for row, _ in worth], dtype=np.int64)


def _placed(device: Device, point: Point) -> tuple[Any, Any, Any]:
    """The projections, the probabilities and the starts, on the device."""
    P = projections_of(device, device.put(point.frames), device.put(point.kernel))
    return P, probabilities(device, device.put(point.logits)), device.put(point.start)


def _applied(point: Point, moves: list[tuple[int, int]], changed: dict[tuple[int, int], tuple[Array, Array]]) -> Point:
    """The collections after these moves, each of one collection."""
    made = point.part(np.array([row for row, _ in moves], dtype=np.int64))
    for place, (row, move) in enumerate(moves):
        made.frames[place, move // 2], made.kernel[place, move // 2] = changed[row, move]
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
