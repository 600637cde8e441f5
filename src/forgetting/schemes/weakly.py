"""Weakly regularised classification, as it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetting._arrays import Array, as_count, as_number
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes._exponential import ExponentialTask
from forgetting.schemes.base import Learned, Scheme, register
from forgetting.tasks.problem import Problem

__all__ = ["WeaklyRegularized"]

SMALLEST = -1e14  # of log(lambda): its rounding moves log a, whose exponential is the weight of a row, by 1/64


@register
@dataclass(frozen=True)
class WeaklyRegularized(Scheme):
    """The paper's `scheme:regularized_cl`: w <- argmin_w sum_i exp(-y_i x_i.w) + lambda/2 |w - w_(t-1)|^2.

    The sum is over the rows of the task learned, and lambda is given by its logarithm, from 0 down to -10000 and
    far beyond. Solved by Newton's method on the dual, in as many variables as the task has rows (or in d, where that is
    less), at O(n^3) per step after one O(n^2 d) for the inner products; see `forgetting.schemes._exponential`. A run
    records the Newton steps in `inner_steps`, and its `status` names a task whose residual stayed above `tol`. Tasks
    that are not separable, or whose rows contradict each other in part, are learned too.

    The iterates grow like L = log(1/lambda). `run.iterates` are as they are; `run.scaled_iterates` are divided by L,
    and losses and distances are computed on those (at lambda = 1, where L is 0, on the iterates themselves). As L
    grows, scaled iterates from w_0 = 0 tend to those of `POCS` (`reduc:classification_to_pocs`).

    Args:
        log_lambda: log(lambda), from 0 down to -1e14.
        tol: by how much margins y_i x_i.w may be off, relative to their size.
        max_steps: Newton steps per task before it is given up; as many again where the dual has failed.

    >>> import forgetting as fg
    >>> tasks = fg.families.separable(T=2, d=3, n=4, margin=0.5, seed=0)
    >>> weak = fg.run(tasks, fg.orderings.Cyclic(), k=2, scheme=WeaklyRegularized(-10000))
    >>> limit = fg.run(tasks, fg.orderings.Cyclic(), k=2)
    >>> bool(abs(weak.scaled_iterates - limit.iterates).max() < 0.005)
    True
    """

    log_lambda: float
    tol: float = 1e-11
    max_steps: int = 500
    short_of_its_limit: ClassVar[str] = "a finite lambda (the rates are those of its limit, POCS)"

    def __post_init__(self) -> None:
        value = as_number(self.log_lambda, "log_lambda")
        if value > 0:
            raise InvalidInputError(f"log_lambda must be at most 0 (lambda at most 1), got {self.log_lambda!r}")
        if value < SMALLEST:
            raise InvalidInputError(
                f"log_lambda must be at least {SMALLEST:g}, got {self.log_lambda!r}: below it the weights of the rows "
                "have no digits left; use POCS, the limit of small lambda"
            )
        as_number(self.tol, "tol", above=0)
        object.__setattr__(self, "max_steps", as_count(self.max_steps, "max_steps", least=1))

    @property
    def scale_of_iterates(self) -> float:
        """L = log(1/lambda), or 1 where that is 0."""
        return -float(self.log_lambda) or 1.0

    @property
    def random(self) -> bool:
        return False

    def start(self, problem: Problem, w0: Array, rng: np.random.Generator) -> list[ExponentialTask | None]:
        if problem.signed_rows(0) is None:
            raise NotSupportedError(f"{self} is a scheme for ClassificationTasks, not for {type(problem).__name__}")
        return [None] * int(problem.num_tasks)

    def learn(self, problem: Problem, task: int, w: Array, memory: list[ExponentialTask | None]) -> Learned:
        prepared = memory[task]
        if prepared is None:
            rows = problem.signed_rows(task)
            assert rows is not None  # `start` refused all other problems
            prepared = memory[task] = ExponentialTask(rows)
        found = prepared.solve(w, float(self.log_lambda), self.tol, self.max_steps)
        if found.residual <= self.tol:
            return Learned(found.w, found.steps)
        return Learned(
            found.w,
            found.steps,
            f"learning task {task} stopped after {found.steps} Newton steps with a KKT residual of "
            f"{found.residual:.1g}, above tol = {self.tol:g}; raise max_steps, or use a larger lambda",
        )
