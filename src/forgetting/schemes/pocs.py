"""Projections onto convex sets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag
from forgetting.geometry import Recorded
from forgetting.schemes.base import Learned, LearnInTurn, Scheme, register
from forgetting.schemes.linear import Kaczmarz
from forgetting.sets.in_turn import InTurn
from forgetting.tasks.problem import Problem

__all__ = ["POCS"]


@register
@dataclass(frozen=True)
class POCS(Scheme):
    """Projections onto convex sets, the paper's `scheme:pocs`: w <- P_m(w), the nearest point that solves the task.

    The step equals an SGD step of size 1 on 1/2 dist(w, C_m)^2 (`reduc:pocs`). The memory holds, for each set, a start
    for the next projection (the active rows of a polyhedron); `warm_start=False` does not use it and gives the same
    iterates up to rounding. A run records in `inner_steps` 1 plus the number of changes of active rows.

    >>> import forgetting as fg
    >>> wedge = fg.ConvexSets([fg.Halfspace([0.0, 1.0], 0.0), fg.Halfspace([1.0, -1.0], 0.0)])
    >>> fg.run(wedge, fg.orderings.Cyclic(), k=3, scheme=POCS(), w0=[-2.0, -2.0]).iterates[1:]
    array([[-2.,  0.],
           [-1., -1.],
           [-1.,  0.]])
    """

    warm_start: bool = True
    random = remembers = False  # the memory saves work, and changes no step
    projects = True

    def __post_init__(self) -> None:
        as_flag(self.warm_start, "warm_start")

    def linear_on(self, problem: Problem) -> Kaczmarz | None:
        return Kaczmarz() if Kaczmarz().linear_on(problem) is not None else None

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> InTurn:
        return InTurn(problem.members, problem.inequalities, self.warm_start)

    def learn(self, problem: Problem, task: int, w: Array, memory: InTurn) -> Learned:
        if not memory.sets:
            return Learned(problem.project(task, w))
        point, steps = memory.nearest(task, w)
        if point is w:  # one loss, before and after
            loss = 0.0 if problem.half_squared_distances else float(problem.task_loss(task, w))
            return Learned(w, steps, None, loss, loss)
        if not problem.half_squared_distances:
            return Learned(point, steps)
        gap = w - point  # the loss is half the squared distance, which is known here
        return Learned(point, steps, None, 0.5 * float(gap.dot(gap)), 0.0)

    def learn_in_turn(self, problem: Problem, memory: InTurn) -> LearnInTurn | None:
        known = problem.half_squared_distances or problem.half_squared_shortfalls
        if memory.inequalities is None or not known or type(self).learn is not POCS.learn:
            return None

        def learn(order: IntArray, w: Array, recorded: Recorded, inner_steps: IntArray) -> int:
            made = memory.advance(order, w, not problem.half_squared_distances, *recorded, inner_steps)
            inner_steps[:made] += 1
            return made

        return learn
