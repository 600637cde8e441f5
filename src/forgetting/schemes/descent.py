"""The paper's Scheme 1 as printed: gradient descent on the current task, iterated to convergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array, as_count, as_flag, as_number
from forgetting.errors import InvalidInputError
from forgetting.geometry import Geometry
from forgetting.schemes.base import Learned, Scheme, register

__all__ = ["GradientDescent"]


@register
@dataclass(frozen=True)
class GradientDescent(Scheme):
    """Minimise L_m from w_(t-1) with (stochastic) gradient descent to convergence.

    Full batch: w <- w - A^T (A w - b) / |A|^2 until |A w - b| <= tol (|A| |w_(t-1) - w*| + |b|), where b is without the
    part that no w can fit: about cond^2 log(1/tol) steps. With `accelerated`, Polyak's heavy ball: about
    cond log(1/tol) steps. With `batch_size`, each step uses random rows of the task, with a step size of 1 over the
    largest squared norm of such a batch; convergence is checked about once an epoch.

    A run records the number of steps in `inner_steps`; `run.status` names a task that has not converged after
    `max_steps`.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=3, d=6, rank=2, seed=0)
    >>> run = fg.run(tasks, fg.orderings.Cyclic(), k=6, scheme=GradientDescent())
    >>> exact = fg.run(tasks, fg.orderings.Cyclic(), k=6)
    >>> bool(abs(run.iterates - exact.iterates).max() < 1e-10)
    True
    """

    tol: float = 1e-13
    max_steps: int = 10_000_000
    accelerated: bool = False
    batch_size: int | None = None
    intrinsic: ClassVar[bool] = True
    remembers = False  # `start` hands on the generator
    projects = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "tol", as_number(self.tol, "tol", above=0))
        object.__setattr__(self, "max_steps", as_count(self.max_steps, "max_steps", least=1))
        as_flag(self.accelerated, "accelerated")
        if self.batch_size is not None:
            object.__setattr__(self, "batch_size", as_count(self.batch_size, "batch_size", least=1))
            if self.accelerated:
                raise InvalidInputError("accelerated=True is for full batches; leave batch_size out")

    @property
    def random(self) -> bool:
        return self.batch_size is not None

    @property
    def nonexpansive(self) -> bool:
        return not self.accelerated  # momentum may overshoot before it converges

    def start(self, problem: Geometry, w0: Array, rng: np.random.Generator) -> np.random.Generator:  # type: ignore[override]
        return rng

    def learn(self, problem: Geometry, task: int, w: Array, memory: np.random.Generator) -> Learned:  # type: ignore[override]
        block = problem.block(int(problem.index[task]))
        sigma = problem.sigma[block]
        if len(sigma) == 0:
            return Learned(w, 0)
        matrix, label = problem.equations(task)
        if self.batch_size is None or self.batch_size >= len(matrix):
            # the part of the labels that no w can fit has no gradient; without this part the residual tends to 0
            reachable = matrix @ (problem.rows[block].T @ problem.targets[block])
            point, steps, residual = self._full_batch(matrix, reachable, w, sigma)
        else:
            point, steps, residual = self._stochastic(matrix, label, w, float(sigma[0]), memory)
        # gradients lie in the row space of the task, but their rounding errors do not, and momentum accumulates these
        basis = problem.rows[block]
        point = w + basis.T @ (basis @ (point - w))
        if residual <= self.tol:
            return Learned(point, steps)
        return Learned(
            point,
            steps,
            f"gradient descent on task {task} stopped after {steps} inner steps with a relative residual of "
            f"{residual:.1g}, above tol = {self.tol:g}; {self._remedy(steps)}",
        )

    def _remedy(self, steps: int) -> str:
        if steps < self.max_steps:
            return "rounding or overflow ends it there, raise tol"
        return "raise max_steps" + ("" if self.accelerated or self.batch_size else " or set accelerated=True")

    def _full_batch(self, matrix: Array, label: Array, w: Array, sigma: Array) -> tuple[Array, int, float]:
        from forgetting.compute import run_kernels

        norm = float(sigma[0])
        step, momentum = _heavy_ball(sigma) if self.accelerated else (norm**-2, 0.0)
        size_of = norm * float(np.linalg.norm(w)) + float(np.linalg.norm(label))
        point, steps, before = w, 0, np.inf
        while True:
            missed = label - matrix @ point
            residual = float(np.linalg.norm(missed)) / size_of if size_of else 0.0
            # a residual that a stage does not reduce is rounding, or has overflowed
            if not self.tol < residual < before or steps == self.max_steps:
                return point, steps, residual
            before = residual
            # Momentum amplifies rounding errors by up to cond^2. Each stage therefore computes only the correction that
            # is still missing, whose rounding errors are proportional to its size.
            goal = max(0.5 * self.tol / residual, 1e-6)
            change, stage_steps, _ = run_kernels.descend(
                matrix, missed, np.zeros_like(w), step, momentum, norm, goal, self.max_steps - steps
            )
            point, steps = point + change, steps + stage_steps

    def _stochastic(
        self, matrix: Array, label: Array, w: Array, norm: float, rng: np.random.Generator
    ) -> tuple[Array, int, float]:
        from forgetting.compute import run_kernels

        rows = len(matrix)
        size = int(self.batch_size or rows)
        row_sq = np.einsum("ij,ij->i", matrix, matrix)
        # the squared norm of a batch is at most the sum of its row norms, and at most |A|^2
        step = 1 / min(norm**2, float(np.sort(row_sq)[-size:].sum()))
        epoch = -(-rows // size)
        per_call = max(1, 1000 // rows) * epoch
        size_of = norm * float(np.linalg.norm(w)) + float(np.linalg.norm(label))
        point, steps, residual = w.copy(), 0, np.inf
        while steps < self.max_steps and residual > self.tol:
            picks = rng.integers(rows, size=(min(per_call, self.max_steps - steps), size))
            run_kernels.stochastic_steps(matrix, label, point, picks, step)
            residual = float(np.linalg.norm(matrix @ point - label)) / size_of if size_of else 0.0
            steps += len(picks)
        return point, steps, residual


def _heavy_ball(sigma: Array) -> tuple[float, float]:
    """Step size and momentum that are optimal for singular values between sigma[-1] and sigma[0]."""
    high, low = float(sigma[0]), float(sigma[-1])
    return 4 / (high + low) ** 2, ((high - low) / (high + low)) ** 2
