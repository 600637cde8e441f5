"""Many runs whose orders look at the iterate: the runs take steps in turn, and are looked at by one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from forgetting.core.arrays import Array
from forgetting.dynamics.loop import run, steps_of
from forgetting.dynamics.space import Space
from forgetting.dynamics.trajectory import Trajectory
from forgetting.orderings.base import OrderingLike, as_ordering
from forgetting.orderings.view import TaskView
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem
from forgetting.tasks.problem import as_problem

MOST = 2**21  # distances and losses of runs that take turns: 16 MiB


def runs_in_turn(
    problem: Problem,
    ordering: OrderingLike,
    k: int,
    seeds: Sequence[int],
    scheme: SchemeLike | None = None,
    w0: Any = None,
    record_every: int | Sequence[int] = 1,
) -> list[Trajectory]:
    """The run of each seed. Runs take steps in turn where the ordering looks at the iterate.

    Distances and losses are then computed for many runs by one product, when the first of them asks.

    >>> import forgetting as fg
    >>> runs = runs_in_turn(fg.families.two_lines(0.5, w_star=(1, 0)), "greedy-distance", 3, [0, 1])
    >>> [run.order.tolist() for run in runs]
    [[1, 0, 1], [1, 0, 1]]
    """
    if not as_ordering(ordering, as_problem(problem).names).adaptive:
        return [run(problem, ordering, k, scheme, seed, w0, record_every) for seed in seeds]
    directions = problem.directions
    size = 1 if directions is None else max(1, MOST // (len(directions.sigma) * (directions.outputs or 1) + 1))
    made: list[Trajectory] = []
    for first in range(0, len(seeds), size):
        shared = _Shared()
        left = {
            number: steps_of(problem, ordering, k, scheme, seed, w0, record_every, None, shared)
            for number, seed in enumerate(seeds[first : first + size], first)
        }
        for making in left.values():
            next(making)  # all runs are there before the first of them asks
        ended: dict[int, Trajectory] = {}
        while left:
            for number, making in list(left.items()):
                try:
                    next(making)
                except StopIteration as end:
                    ended[number] = end.value
                    del left[number]
        made += [ended[number] for number in sorted(ended)]
    return made


class _AtOnce:
    """Values at the states of several runs, computed for all runs when one of them asks after its state has changed."""

    def __init__(self) -> None:
        self.current: list[Callable[[], Array]] = []
        self.states: list[Array] = []
        self.values = np.empty(0)

    def of(self, function: Callable[[Array], Array], state: Callable[[], Array]) -> Callable[[], Array]:
        """The function at the current state of a run."""
        place = len(self.current)
        self.current.append(state)

        def value() -> Array:
            if place >= len(self.states) or self.states[place] is not state():
                self.states = [each() for each in self.current]
                self.values = function(np.stack(self.states))
            return np.array(self.values[place])

        return value


class _Shared:
    """Distances and losses of runs that take turns."""

    def __init__(self) -> None:
        self.distances, self.losses = _AtOnce(), _AtOnce()

    def __call__(self, view: TaskView, space: Space, state: Callable[[], Array]) -> TaskView:
        """What the ordering of one run sees."""
        if space.directions is None:
            return view
        distances = self.distances.of(space.distances, state)
        return replace(view, _distances=distances, _losses=self.losses.of(space.task_losses, state))
