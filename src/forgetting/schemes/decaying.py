"""Decay: the iterate shrinks before each task is learned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, as_number
from forgetting.errors import InvalidInputError
from forgetting.schemes.base import Learned, LinearStep, LinearSteps, Scheme, SchemeLike, as_scheme, register
from forgetting.tasks.problem import Problem

__all__ = ["Decay"]


@register
@dataclass(frozen=True)
class Decay(Scheme):
    """w <- alpha w, and then a step of the scheme, with alpha from 0 (nothing is kept) to 1 (the scheme alone).

    On tasks of one row with several outputs, `Decay(gate, Kaczmarz())` is the gated delta rule of linear attention.
    The decay pulls w to 0, which solves no task: w need not settle at a common solution, and bounds of the
    theory do not apply. The part of w_0 that no task sees shrinks, too. Gates that depend on the step are
    `Scheduled(lambda t: Decay(gate(t), Kaczmarz()))`.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.0, 1.0]]], [[1.0], [1.0]])
    >>> fg.run(tasks, [0, 1, 1], k=3, scheme=fg.schemes.Decay(0.5, "kaczmarz")).iterates
    array([[0.  , 0.  ],
           [1.  , 0.  ],
           [0.5 , 1.  ],
           [0.25, 1.  ]])
    """

    alpha: float
    scheme: SchemeLike

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", as_number(self.alpha, "alpha", least=0))
        if self.alpha > 1:
            raise InvalidInputError(
                f"alpha must be at most 1, got {self.alpha}: a larger one lets w grow without bound"
            )
        object.__setattr__(self, "scheme", as_scheme(self.scheme))

    # ------------------------------------------------------------------------------------------- what it states

    @property
    def inner(self) -> Scheme:
        """The scheme that makes the steps."""
        return as_scheme(self.scheme)

    @property
    def intrinsic(self) -> bool:  # type: ignore[override]
        return self.inner.intrinsic

    @property
    def needs_realizable(self) -> bool:  # type: ignore[override]
        return self.inner.needs_realizable

    @property
    def reads_rows(self) -> bool:  # type: ignore[override]
        return self.inner.reads_rows

    @property
    def random(self) -> bool:
        return self.inner.random

    @property
    def remembers(self) -> bool:
        return self.inner.remembers

    @property
    def solves_task(self) -> bool:
        return self.inner.solves_task

    @property
    def scale_of_iterates(self) -> float:
        return self.inner.scale_of_iterates

    def linear_steps_on(self, problem: Problem) -> LinearSteps | None:
        steps = self.inner.linear_steps_on(problem)
        if steps is None:
            return None

        def at(t: int) -> LinearStep:
            step = steps.at(t)
            return LinearStep(step.scheme, self.alpha * step.keep)

        return LinearSteps(at, alike=steps.alike and self.alpha == 1)

    def fitted_to(self, problem: Problem, k: int) -> Scheme:
        fitted = self.inner.linear_on(problem) or self.inner.fitted_to(problem, k)
        return self if fitted is self.inner else Decay(self.alpha, fitted)

    def at_step(self, t: int) -> Scheme:
        step = self.inner.at_step(t)
        return self if step is self.inner else Decay(self.alpha, step)

    def kept_at(self, t: int) -> float:
        return self.alpha * self.inner.kept_at(t)

    # ------------------------------------------------------------------------------------------------- a run

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> Any:
        return self.inner.start(problem, w0, rng)

    def learn(self, problem: Problem, task: int, w: Array, memory: Any) -> Learned:
        origin = getattr(problem, "solution", 0.0) if self.intrinsic else 0.0
        return self.inner.learn(problem, task, self.alpha * w + (self.alpha - 1) * origin, memory)
