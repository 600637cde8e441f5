"""The coordinates of a run: its states, the iterates, losses and distances at them, and the view that orderings get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from forgetting import schemes
from forgetting.core.arrays import Array, as_kind, as_number
from forgetting.core.numerical import quietly
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.geometry import Directions, Geometry
from forgetting.orderings import TaskView
from forgetting.orderings.view import rounding_of
from forgetting.schemes import Scheme
from forgetting.schemes.base import SchemeLike, as_scheme
from forgetting.tasks import Problem
from forgetting.tasks.problem import as_problem


@dataclass(frozen=True)
class Reduced:
    """Coordinates along directions: errors z in the frame of a geometry, or iterates where tasks step on their rows.

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

    @quietly()
    def iterates(self, states: Array, left: Array | None = None) -> Array:
        """Iterates at some states; `left` of what no task sees of w_0 is left at each of them, where schemes decay."""
        points, geometry = self.problem.lift(states, self.w0), self.geometry
        if left is None or geometry is None:
            return points
        aside = geometry.lift(-geometry.solution, self.w0)
        return points - np.multiply.outer(1 - left, aside)

    @quietly()
    def task_losses(self, states: Array) -> Array:
        return self.problem.task_losses(states)

    @quietly()
    def mean_losses(self, states: Array) -> Array:
        return self.problem.mean_losses(states)

    @quietly()
    def distances(self, states: Array) -> Array:
        return self.problem.distances(states)


@dataclass(frozen=True)
class Unreduced:
    """Coordinates without a reduction: states are iterates w; losses and distances are those of w / scale."""

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

    def iterates(self, states: Array, left: Array | None = None) -> Array:
        return states

    def task_losses(self, states: Array) -> Array:
        return _by_row(self.problem.task_losses, self._scaled(states), self.w0.ndim)

    @quietly()
    def mean_losses(self, states: Array) -> Array:
        return np.asarray(np.mean(self.task_losses(states), axis=-1))

    def distances(self, states: Array) -> Array:
        return _by_row(self.problem.distances, self._scaled(states), self.w0.ndim)

    def _scaled(self, states: Array) -> Array:
        return states if self.scale == 1 else states / self.scale


@quietly()
def _by_row(function: Callable[[Array], Array], states: Array, ndim: int) -> Array:
    """The function at a state, which has `ndim` axes, or at each of a stack of states."""
    return np.stack([function(state) for state in states]) if states.ndim > ndim else function(states)


#: the coordinates of states; `problem` is the object that `scheme.learn` gets
Space = Reduced | Unreduced


def given_scheme(problem: Problem, scheme: SchemeLike | None) -> Scheme:
    """The scheme that a caller means; None is the natural scheme of the problem."""
    return schemes.natural_scheme(as_problem(problem)) if scheme is None else as_scheme(scheme)


def resolve(problem: Problem, scheme: SchemeLike | None, w0: Any, k: int | None = None) -> tuple[Scheme, Space]:
    """The scheme, fitted to k steps if k is given, and the coordinates of a run that starts at w0."""
    chosen = given_scheme(problem, scheme)
    if k is not None:
        chosen = as_kind(chosen.fitted_to(problem, k), Scheme, "a scheme", f"{chosen}: fitted_to: ")
    as_number(chosen.scale_of_iterates, f"{chosen}: scale_of_iterates", above=0)
    start = np.zeros(problem.point_shape) if w0 is None else problem.point(w0, "w0").copy()
    if not chosen.intrinsic:
        return chosen, Unreduced(problem, start, chosen.scale_of_iterates)
    directions = problem.geometry if chosen.linear_steps_on(problem) is None else problem.directions
    if directions is None:
        raise NotSupportedError(f"{chosen} is a scheme for regression tasks, not for {type(problem).__name__}")
    if chosen.reads_rows and problem.linear is not None and problem.linear.data is not None:
        problem.linear.data.require_rows(str(chosen))
    if chosen.needs_realizable and problem.linear is not None:
        problem.linear.require_realizable(str(chosen))
    return chosen, Reduced(directions, start)


def restored_space(problem: Problem, scheme: Scheme, w0: Array, geometry: Any, k: int) -> Space:
    """The coordinates of a run of k steps from a file, whose states were coordinates of this geometry.

    Without a geometry, states were iterates.
    """
    if geometry is not None:
        if problem.linear is None:
            raise ForgettingError(f"{type(problem).__name__} with a geometry")
        problem.linear.adopt(as_kind(geometry, Geometry, "a geometry"))
    space = resolve(problem, scheme, w0, k)[1]
    if geometry is None or space.directions is None or problem.geometry is None:
        return space
    return Reduced(problem.geometry, space.w0)


def view_of(problem: Problem, space: Space | None = None, state: Callable[[], Array] | None = None) -> TaskView:
    """The view of the problem that an ordering gets; with `space` and `state`, current distances and losses too."""
    if space is None or state is None:
        return TaskView(problem.num_tasks, problem.norms)
    fixed = space.origins()
    return TaskView(
        problem.num_tasks,
        problem.norms,
        lambda: space.distances(state()),
        lambda: space.task_losses(state()),
        lambda: rounding_of(*fixed, state()) / space.scale,
    )
