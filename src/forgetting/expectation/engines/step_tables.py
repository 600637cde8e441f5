"""What the steps of a scheme are made of, in tables: gains, what is kept of w, and bounds on the errors of steps.

Steps that are all alike have a table of one row. A schedule has one row for each different scheme, for a part of the
steps at a time, since a table of all steps need not fit in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, quietly
from forgetting.expectation.engines.error_bounds import (
    WIDTH,
    Pair,
    per_task_most,
    sensitivity_of,
    step_noise,
    two_floats,
)
from forgetting.geometry import Geometry
from forgetting.schemes import LinearScheme, LinearSteps
from forgetting.schemes.linear import different_steps, linear_gains, precise_gain

if TYPE_CHECKING:
    from forgetting.geometry.bases import Bases

PART = 256  # steps in a table
ROOM = 2**21  # numbers of a table
FEW = 2**12  # gains that are computed at once


class Table(NamedTuple):
    """Some steps in a row, and the rows of the different ones among them.

    Attributes:
        which: for each step, its row.
        keep: for each step, the factor that w is multiplied with before the task is learned.
        gains: of the R directions, (rows, R).
        noise: what a step adds to E, (rows, tasks, 4), as in `Doubts`.
        slips: for each task, by how much its gains are off where they say what is kept of a loss, (rows, tasks): 0 for
            gains that are exactly 1.
    """

    which: IntArray
    keep: Array
    gains: Pair
    noise: Array
    slips: Array

    def row(self) -> tuple[Pair, Array, Array]:
        """Gains, noise and slips of the first of the steps."""
        at = int(self.which[0])
        return (self.gains[0][at], self.gains[1][at]), self.noise[at], self.slips[at]


class StepTables:
    """The tables of the steps of a request, made as they are asked for, from the first step to the last."""

    def __init__(
        self, geometry: Geometry, steps: LinearSteps, source: Bases, n: int, known: float, twofold: bool, last: int
    ) -> None:
        self.geometry, self.steps, self.source, self.n, self.known = geometry, steps, source, n, known
        self.twofold, self.last = twofold, 1 if steps.alike else last
        self.size = PART if steps.alike else int(np.clip(ROOM // max(1, len(geometry.sigma)), 1, PART))
        self.begin = 0
        self.grown = [1.0]  # after each step so far: the factor by which the steps can multiply an error, at least 1
        self.paces: list[float] = []  # the largest pace of the first and of all steps so far; see `step_noise`
        self.noisiest = np.zeros(geometry.num_distinct)  # the most that a step so far adds to E
        self.spared = np.zeros(geometry.num_distinct)  # the largest root of what a step so far leaves of a square
        self.solves = True  # whether all steps so far solve their tasks
        self.table = self._made(1, min(self.size, max(1, self.last)))

    def of(self, first: int, count: int) -> Table:
        """The table of `count` steps, the first of which is step `first`."""
        held = self.table
        if self.steps.alike:
            return held._replace(which=held.which[:1].repeat(count), keep=held.keep[:1].repeat(count))
        if not self.begin <= first <= first + count <= self.begin + len(held.which):
            held = self.table = self._made(first, max(count, min(self.size, self.last + 1 - first)))
        own = slice(first - self.begin, first - self.begin + count)
        return held._replace(which=held.which[own], keep=held.keep[own])

    def place(self, t: int) -> tuple[Table, int, float]:
        """The table that holds step t, its row there, and the factor that it keeps of w."""
        if self.steps.alike:
            return self.table, 0, float(self.table.keep[0])
        if not self.begin <= t < self.begin + len(self.table.which):
            self.of(t, 1)
        at = t - self.begin
        return self.table, int(self.table.which[at]), float(self.table.keep[at])

    def known_to(self, k: int) -> None:
        """Look at all steps up to k, so that `grown`, `paces` and `noisiest` hold for them."""
        while not self.steps.alike and len(self.grown) <= k:
            first = len(self.grown)
            self.table = self._made(first, min(self.size, k + 1 - first))

    def _made(self, first: int, count: int) -> Table:
        different, which, keep = different_steps(self.steps, first, count)
        gains, moving, vague = self._gains(different)
        noise, pace = step_noise(self.geometry, self.source, self.n, gains[0], moving, vague, self.known, self.twofold)
        solves = np.array([scheme.solves_task for scheme in different])
        slips = np.where(solves[:, None], 0.0, noise[:, :, 1])
        self.begin, new = first, which[len(self.grown) - first :]
        with quietly():
            left = np.abs(1 - gains[0])
            growth = np.maximum(1.0, np.max(left, axis=1, initial=0.0))
            self.grown.extend((self.grown[-1] * np.cumprod(growth[new])).tolist())
        self.paces = [(self.paces or pace.tolist())[0], float(np.max(pace, initial=max(self.paces, default=0.0)))]
        self.noisiest = np.maximum(self.noisiest, noise[:, :, 1].max(axis=0, initial=0.0))
        spared = per_task_most(self.geometry, left) + slips
        self.spared = np.maximum(self.spared, spared.max(axis=0, initial=0.0))
        self.solves = self.solves and bool(solves.all())
        return Table(which, keep, gains, noise, slips)

    def _gains(self, schemes: Sequence[LinearScheme]) -> tuple[Pair, Array, Array]:
        """For each scheme, the gain of each direction, the sensitivity of the gains, and a bound on their errors."""
        geometry, size, learned = self.geometry, len(self.geometry.sigma), self.geometry.rows_learned
        kinds = {type(scheme) for scheme in schemes}
        kind = kinds.pop() if len(kinds) == 1 and len(schemes) > 1 else LinearScheme
        with quietly():
            table = kind._gain_table(schemes, _column, self.moved**2)
            if table is None or not np.isfinite(table).all():
                table = np.array([self._moved(scheme) for scheme in schemes])
        plain, above, below = table[:, :size].copy(), table[:, size : 2 * size], table[:, 2 * size :]
        plain[:, learned:] = 0.0
        moving, low = sensitivity_of(geometry, above, below), np.zeros_like(plain)
        vague = (8 + 4 * geometry.conditions * moving) * EPS
        vague[[scheme.solves_task for scheme in schemes]] = 0.0
        if not self.twofold:
            return (plain, low), moving, vague
        made = self._together(kind, schemes)
        if made is not None:
            plain[:, :learned], low[:, :learned] = made
            vague[:] = 4 * two_floats().UNIT
            return (plain, low), moving, vague
        for row, scheme in enumerate(schemes):
            exact = [precise_gain(scheme, square) for square in self.squares]
            if all(gain is not None for gain in exact):
                plain[row, :learned], low[row, :learned] = two_floats().from_decimals(exact)
                vague[row] = 4 * two_floats().UNIT
        return (plain, low), moving, vague

    def _moved(self, scheme: LinearScheme) -> Array:
        """The gains at all singular values, and at values that are a little larger and smaller, in one row."""
        given = np.asarray(scheme.gains(self.moved))
        if given.shape != self.moved.shape or given.dtype != np.float64 or not np.isfinite(given).all():
            plain = linear_gains(self.geometry, scheme)  # raises, unless other dtypes or values nearby are the reason
            sigma, wide = self.geometry.sigma, (1 + WIDTH, 1 - WIDTH)
            return np.concatenate([plain, *(np.asarray(scheme.gains(sigma * w), dtype=np.float64) for w in wide)])
        return given

    def _together(self, kind: type[LinearScheme], schemes: Sequence[LinearScheme]) -> Pair | None:
        """The gains of several schemes of a class that knows them in numbers of two floats; else None."""
        learned, numbers = self.geometry.rows_learned, two_floats().Numbers
        square = numbers(self.source.squares[0][:learned], self.source.squares[1][:learned])
        high, low = np.empty((len(schemes), learned)), np.empty((len(schemes), learned))
        few = max(1, FEW // max(1, learned))
        for at in range(0, len(schemes), few):  # numbers that stay in the cache
            gains = kind._gain_table(schemes[at : at + few], lambda settings: numbers(_column(settings)), square)
            if gains is None:
                return None
            high[at : at + few], low[at : at + few] = gains.high, gains.low
        return high, low

    @cached_property
    def squares(self) -> list[Decimal]:
        """The squares of the singular values of the learned directions."""
        learned = self.geometry.rows_learned
        known: list[Decimal] = two_floats().decimals(tuple(part[:learned] for part in self.source.squares))
        return known

    @cached_property
    def moved(self) -> Array:
        """All singular values, and values that are a little larger and smaller."""
        sigma = self.geometry.sigma
        return np.concatenate([sigma, sigma * (1 + WIDTH), sigma * (1 - WIDTH)])


def _column(settings: Sequence[float]) -> Array:
    """One setting of several schemes, as a column."""
    return np.array(settings, dtype=np.float64)[:, None]
