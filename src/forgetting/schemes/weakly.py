"""The paper's weakly regularised classification, with its lambda."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, as_count, as_number
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.schemes._exponential import ExponentialTask
from forgetting.schemes.base import Learned, Scheme, register
from forgetting.tasks.problem import Problem

__all__ = ["WeaklyRegularized"]

SMALLEST = -1e14  # least log(lambda): its rounding changes log a by 1/64, where a is the weight of a row


@register
@dataclass(frozen=True)
class WeaklyRegularized(Scheme):
    """The paper's `scheme:regularized_cl`: w <- argmin_w sum_i exp(-y_i x_i.w) + lambda/2 |w - w_(t-1)|^2.

    The sum is over the rows of the task, each times its weight if the problem has `row_weights`. The minimiser is
    computed by Newton's method on the dual, with n variables for n rows (or d variables, if d is smaller), at O(n^3)
    per step after O(n^2 d) for the inner products; see `forgetting.schemes._exponential`. A run records the Newton
    steps in `inner_steps`, and its `status` names a task whose residual stayed above `tol`. Tasks that are not
    separable are learned too.

    The iterates grow like L = log(1/lambda). `run.iterates` are the iterates themselves; `run.scaled_iterates` are
    divided by L, and losses and distances are computed from these (at lambda = 1, where L is 0, from the iterates
    themselves). As L grows, scaled iterates from w_0 = 0 tend to those of `POCS` (`reduc:classification_to_pocs`).

    Args:
        log_lambda: log(lambda), from 0 down to -1e14.
        tol: the largest allowed error of margins y_i x_i.w, relative to their size.
        max_steps: the most Newton steps per task on the dual; if the dual fails, as many again on w itself.

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
        object.__setattr__(self, "tol", as_number(self.tol, "tol", above=0))
        object.__setattr__(self, "max_steps", as_count(self.max_steps, "max_steps", least=1))

    @property
    def scale_of_iterates(self) -> float:
        """L = log(1/lambda), or 1 if L is 0."""
        return -float(self.log_lambda) or 1.0

    @property
    def random(self) -> bool:
        return False

    @property
    def remembers(self) -> bool:
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
            prepared = memory[task] = ExponentialTask(rows, problem.row_weights(task))
        solution = prepared.solve(w, float(self.log_lambda), self.tol, self.max_steps)
        if solution.residual <= self.tol:
            return Learned(solution.w, solution.steps)
        return Learned(
            solution.w,
            solution.steps,
            f"learning task {task} stopped after {solution.steps} Newton steps with a KKT residual of "
            f"{solution.residual:.1g}, above tol = {self.tol:g}; raise max_steps, or use a larger lambda",
        )
