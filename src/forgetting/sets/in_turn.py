"""Projections onto many sets in turn, each from where the last one onto the same set ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.sets.base import ConvexSet, UnitRows

__all__ = ["InTurn", "Inequalities", "inequalities_of"]

MOST = 2**23  # numbers that may be copied, of rows and of their inner products: 64 MiB
ELSEWHERE = -1  # a set without inequalities


class Inequalities(NamedTuple):
    """The inequalities of sets, one set after another: set m has the rows from starts[m] to starts[m + 1].

    Attributes:
        places: for each of the sets, its number m among those that are different; -1 if it has no such rows.
        rows: (N, d), of norm 1.
        levels: (N,), with the sets equal to {w: rows w >= levels}.
        lengths: (N,), the norms of the rows before they were divided by them.
        grams: the inner products of the rows of each set, (n_m, n_m), flat and one set after another.
        starts: where the rows of each set begin, and the end.
        squares: where the inner products of each set begin, and the end.
        corners: where the factor of the active rows of each set has its room, and the end.
    """

    places: IntArray
    rows: Array
    levels: Array
    lengths: Array
    grams: Array
    starts: IntArray
    squares: IntArray
    corners: IntArray


def inequalities_of(sets: Sequence[ConvexSet]) -> Inequalities | None:
    """The inequalities of sets for `InTurn`; None if no set has any, or if they are too many to be copied.

    >>> from forgetting.sets import Ball, Polyhedron
    >>> made = inequalities_of([Ball([0.0], 2.0), Polyhedron([[2.0], [1.0]], [2.0, 0.0])])
    >>> made.places.tolist(), made.rows.tolist(), made.levels.tolist(), made.lengths.tolist()
    ([-1, 0], [[1.0], [1.0]], [1.0, 0.0], [2.0, 1.0])
    """
    parts: dict[ConvexSet, UnitRows] = {}
    room = 0
    for member in dict.fromkeys(sets):
        part = member.unit_rows()
        if part is not None:
            parts[member] = part
            room += part.rows.size + part.gram.size
        if room > MOST:
            return None
    if not parts:
        return None
    shapes = np.array([part.rows.shape for part in parts.values()])
    places = {member: place for place, member in enumerate(parts)}
    rows, levels, lengths, _ = (list(column) for column in zip(*parts.values(), strict=True))
    return Inequalities(
        np.array([places.get(member, ELSEWHERE) for member in sets]),
        np.concatenate(rows),
        np.concatenate(levels),
        np.concatenate(lengths),
        np.concatenate([part.gram.ravel() for part in parts.values()]),
        _edges(shapes[:, 0]),
        _edges(shapes[:, 0] ** 2),
        _edges(shapes.min(axis=1) ** 2),
    )


def _edges(sizes: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(sizes)])


class InTurn:
    """Projects a point onto sets in turn, and keeps what each projection leaves for the next one onto the same set.

    With `inequalities`, many projections are made by one call of compiled code.

    >>> from forgetting.sets import Halfspace
    >>> turn = InTurn([Halfspace([1.0, 0.0], 1.0), Halfspace([0.0, 1.0], 2.0)])
    >>> turn.nearest(1, np.zeros(2))
    (array([0., 2.]), 1)
    """

    def __init__(self, sets: Sequence[ConvexSet], inequalities: Inequalities | None = None, warm: bool = True) -> None:
        self.sets, self.warm = sets, warm
        self.left: dict[ConvexSet, Any] = {}
        self.inequalities = inequalities if warm else None
        if self.inequalities is not None:
            known = self.inequalities
            self.state = (
                np.zeros(len(known.starts) - 1, dtype=np.int64),  # numbers of active rows
                np.empty(len(known.levels), dtype=np.int64),
                np.empty(known.corners[-1]),
            )

    def nearest(self, task: int, w: Array) -> tuple[Array, int]:
        """The projection of w onto a set, and the inner steps; the point may be w itself."""
        member = self.sets[task]
        point, self.left[member], steps = member.nearest_from(w, self.left.get(member) if self.warm else None)
        return point, steps

    def advance(
        self,
        order: IntArray,
        w: Array,
        shortfalls: bool,
        kept_at: IntArray,
        kept: Array,
        before: Array,
        after: Array,
        changes: IntArray,
    ) -> int:
        """Project w onto the sets of `order`, in place, as far as compiled code can; returns the number of steps.

        `kept[i]` becomes w after step `kept_at[i]` (counted from 1). `before` and `after` become half the squared
        distance to the set, or with `shortfalls` half the square of the most by which a row is missed. `changes` become
        the numbers of rows that entered or left the active rows.
        """
        if self.inequalities is None:
            return 0
        from forgetting.sets import _in_turn  # here: numba takes long to import

        places, *data = self.inequalities
        arrays: Any = *data, *self.state, shortfalls, places[order], w, kept_at, kept, before, after, changes
        made: int = _in_turn.advance(*arrays)
        return made
