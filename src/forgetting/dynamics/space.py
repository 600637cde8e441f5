"""The coordinates of a run: how iterates, losses and distances are computed from its states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array
from forgetting.dynamics.metrics import quietly
from forgetting.geometry import Directions, Geometry
from forgetting.tasks import Problem

__all__ = ["Direct", "Reduced", "Space"]


@dataclass(frozen=True)
class Reduced:
    """States are those of directions: errors z in the frame of a geometry, or iterates where tasks step on their rows.

    The states of a run that diverges may be infinite.
    """

    problem: Directions
    w0: Array
    scale: ClassVar[float] = 1.0

    @property
    def directions(self) -> Directions:
        return self.problem

    @property
    def geometry(self) -> Geometry | None:
        """The geometry whose frame the states refer to; None if states are iterates."""
        return self.problem.geometry

    def start(self) -> Array:
        return self.problem.start(self.w0)

    def origins(self) -> tuple[Array, ...]:
        """The points to whose sizes rounding errors of states are relative, beside the state itself."""
        return (self.start(),) if self.geometry is None else (self.start(), self.geometry.solution)

    @quietly
    def iterates(self, states: Array) -> Array:
        return self.problem.lift(states, self.w0)

    @quietly
    def task_losses(self, states: Array) -> Array:
        return self.problem.task_losses(states)

    @quietly
    def mean_losses(self, states: Array) -> Array:
        return self.problem.mean_losses(states)

    @quietly
    def distances(self, states: Array) -> Array:
        return self.problem.distances(states)


@dataclass(frozen=True)
class Direct:
    """States are iterates w; losses and distances are those of w / scale."""

    problem: Problem
    w0: Array
    scale: float = 1.0
    directions: ClassVar[None] = None
    geometry: ClassVar[None] = None

    def start(self) -> Array:
        return self.w0.copy()

    def origins(self) -> tuple[Array, ...]:
        """The points to whose sizes rounding errors of states are relative, beside the state itself."""
        return (self.w0,)

    def iterates(self, states: Array) -> Array:
        return states

    def task_losses(self, states: Array) -> Array:
        return _by_row(self.problem.task_losses, self._scaled(states), self.w0.ndim)

    @quietly
    def mean_losses(self, states: Array) -> Array:
        return np.asarray(np.mean(self.task_losses(states), axis=-1))

    def distances(self, states: Array) -> Array:
        return _by_row(self.problem.distances, self._scaled(states), self.w0.ndim)

    def _scaled(self, states: Array) -> Array:
        return states if self.scale == 1 else states / self.scale


#: the coordinates of states; `problem` is the object that `scheme.learn` gets
Space = Reduced | Direct


@quietly
def _by_row(function: Callable[[Array], Array], states: Array, ndim: int) -> Array:
    """The function at a state, which has `ndim` axes, or at each of a stack of states."""
    return np.stack([function(state) for state in states]) if states.ndim > ndim else function(states)
