"""Kaczmarz: projections onto the solutions of rows or blocks, one after another, and their usual order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.orderings import Ordering, TaskView, laws
from forgetting.solver.methods.base import Accuracy, Method, Moves, System, norm, registry
from forgetting.solver.sweepers import scales


@dataclass(frozen=True)
class _Repeated(laws.Unknown):
    """The law of one random order, repeated."""

    uses_norms: ClassVar[bool] = False


@dataclass(frozen=True)
class DrawnOnce(Ordering):
    """One random order, drawn at the start and repeated in every epoch.

    On random and on structured matrices it takes as many epochs as a new order for each epoch, or up to a third fewer
    where rows are fewer than columns.

    >>> DrawnOnce().first(TaskView(3), 6).tolist()
    [2, 0, 1, 2, 0, 1]
    """

    law = _Repeated()

    @property
    def in_words(self) -> str:
        """The ordering in words."""
        return "one random order, repeated"

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        order = rng.permutation(tasks.num_tasks)
        while True:
            yield order


class KaczmarzMethod(Method):
    """Projections onto the solutions of rows or blocks, one after another.

    Converges to the solution nearest to x0 if there is a solution. With inequalities or bounds, x converges to some
    point that satisfies them, or to the nearest to x0 (Hildreth 1957, Dykstra 1983) if the system asks for it. Convex
    sets have their turn after every round of visits.
    """

    name = "kaczmarz"
    usual_order: ClassVar[type[Ordering]] = DrawnOnce
    sees_residuals = True
    streams = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        limits = system.sweeper.limits
        if system.nearest and len(limits.relations):
            self.iterate.duals = np.zeros(system.b.shape)
        if len(limits.low):
            np.clip(self.iterate.x, limits.low, limits.high, out=self.iterate.x)
            if system.nearest:
                self.iterate.clipped = system.x0 - self.iterate.x
        #: what each set cut off, which Dykstra's method adds before the next projection
        self.cuts = np.zeros((len(system.sets) if system.nearest else 0, *self.iterate.x.shape))
        self.moves = Moves(self.iterate.x)

    def _steps(self, visits: IntArray) -> Array:
        """Make the steps of visited blocks; the sum of the squared errors seen, for each right-hand side."""
        return self.system.sweeper.sweep(visits, self.system.b, self.iterate)

    def sweep(self, visits: IntArray) -> Array:
        seen = self._steps(visits)
        if self.system.exact is not None:
            self.system.exact.project(self.iterate.x)
        for i, convex in enumerate(self.system.sets):
            wanted = self.iterate.x + self.cuts[i] if len(self.cuts) else self.iterate.x
            self.iterate.x = np.array(convex.nearest(wanted))
            if len(self.cuts):
                self.cuts[i] = wanted - self.iterate.x
        return seen

    @property
    def by_equations(self) -> bool:
        """Whether no step leads to a set or to the solutions of rows without noise."""
        return not self.system.sets and self.system.exact is None

    @property
    def by_rows(self) -> bool:
        return self.by_equations

    @property
    def simultaneous_weights(self) -> tuple[Array, Array] | None:
        sweeper = self.system.sweeper
        rows = sweeper.row_steps and sweeper.in_memory and sweeper.num_blocks == sweeper.shape[0]
        if not rows or sweeper.average < sweeper.num_blocks or len(sweeper.limits.relations) or not self.by_rows:
            return None
        return scales(sweeper.row_squares, 0.0, 1.0 / sweeper.num_blocks), np.ones(sweeper.shape[1])

    def end_epoch(self) -> None:
        if len(self.cuts):
            self.moves.add(self.iterate.x)

    def measure(self) -> Accuracy:
        measured = super().measure()
        left = max(measured.left, self.off(self.x))
        if self.system.nearest:
            left = max(left, self._duality_gap())
        if len(self.cuts):  # the duality gap of other sets is not known
            error = self.moves.error()
            left = np.inf if error is None else max(left, error)
        return replace(measured, left=left)

    def off(self, x: Array) -> float:
        sets, limits = self.system.sets, self.system.sweeper.limits
        off = max((convex.distance(x) for convex in sets), default=0.0)
        if sets and len(limits.low):  # a projection onto a set may leave the bounds
            off = max(off, norm(x - np.clip(x, limits.low, limits.high)))
        return off / self._size

    @property
    def _size(self) -> float:
        """The length to which distances are relative."""
        return max(float(np.linalg.norm(self.x)), float(np.linalg.norm(self.system.x0))) or 1.0

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), **self.moves.arrays(), "cuts": self.cuts}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.moves.restore(arrays)
        self.cuts = arrays["cuts"].copy()

    def _duality_gap(self) -> float:
        """The relative duality gap of the nearest point: |x - x*|^2 is at most the gap if x is feasible.

        x is x0 + A^T duals - (what the bounds cut off), so that only products of multipliers and slacks are missing.
        """
        limits = self.system.sweeper.limits
        gap = 0.0
        if len(self.iterate.duals):
            b = self.system.b
            slack = self.system.sweeper.slack(b, self.x)
            slack[np.abs(slack) <= 64 * EPS * (np.abs(b) + np.abs(b - slack))] = 0.0  # the root would magnify roundings
            gap += float(np.abs(self.iterate.duals * slack)[limits.relations != 0].sum())
        if len(self.iterate.clipped):
            cut = self.iterate.clipped  # positive where the upper bound acts, negative where the lower one does
            ends = np.where(cut > 0, limits.high, np.where(cut < 0, limits.low, self.x))
            gap += float(np.abs(cut * (ends - self.x)).sum())
        moved = float(np.linalg.norm(self.x - self.system.x0))
        return float(np.sqrt(gap)) / moved if moved > 0 else float(np.sqrt(gap))


registry.add(KaczmarzMethod.name, KaczmarzMethod)  # its name is shorter than that of the class
