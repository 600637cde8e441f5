"""Projections onto convex sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.schemes.base import Learned, Scheme

__all__ = ["POCS"]


@dataclass(frozen=True)
class POCS(Scheme):
    """Projections onto convex sets, the paper's `scheme:pocs`: w <- P_m(w), the nearest point that solves the task.

    The same as a step of SGD of size 1 on 1/2 dist(w, C_m)^2 (`reduc:pocs`). The memory holds, for each set, what its
    last projection left to start the next one from (the active rows of a polyhedron); `warm_start=False` does without,
    and gives the same iterates up to rounding. A run records as `inner_steps` one plus the changes of active rows.

    >>> import forgetting as fg
    >>> wedge = fg.ConvexSets([fg.Halfspace([0.0, 1.0], 0.0), fg.Halfspace([1.0, -1.0], 0.0)])
    >>> fg.run(wedge, fg.orderings.Cyclic(), k=3, scheme=POCS(), w0=[-2.0, -2.0]).iterates[1:]
    array([[-2.,  0.],
           [-1., -1.],
           [-1.,  0.]])
    """

    warm_start: bool = True

    def start(self, problem: Any, w0: Array, rng: np.random.Generator) -> list[Any]:
        return [None] * int(problem.num_tasks)

    def learn(self, problem: Any, task: int, w: Array, memory: list[Any]) -> Learned:
        project_from = getattr(problem, "project_from", None) if self.warm_start else None
        if project_from is None:
            return Learned(problem.project(task, w))
        point, memory[task], steps = project_from(task, w, memory[task])
        return Learned(point, steps)
