"""Recursive least squares: the scheme that does not forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetting.core.arrays import Array
from forgetting.geometry import Geometry
from forgetting.schemes.base import Learned, Scheme, register

__all__ = ["RecursiveLeastSquares"]


@register
@dataclass(frozen=True)
class RecursiveLeastSquares(Scheme):
    """The point nearest to w_0 that solves every task seen so far (the limit of RLS as its regularisation vanishes).

    The memory is an orthonormal basis of the row spaces seen so far (D numbers per direction). Learning a task moves w
    only along the directions of the task that are new. The tasks must be jointly realizable.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=3, d=8, rank=2, seed=0)
    >>> run = fg.run(tasks, fg.orderings.Cyclic(), k=3, scheme=RecursiveLeastSquares())
    >>> bool(run.forgetting.max() < 1e-25), bool(abs(run.iterates[-1] - tasks.w_star).max() < 1e-12)
    (True, True)
    """

    intrinsic: ClassVar[bool] = True
    needs_realizable: ClassVar[bool] = True
    random = False
    solves_task = nonexpansive = True

    def start(self, problem: Geometry, w0: Array, rng: np.random.Generator) -> list[Array]:  # type: ignore[override]
        return [np.empty((0, len(w0)))]

    def learn(self, problem: Geometry, task: int, w: Array, memory: list[Array]) -> Learned:  # type: ignore[override]
        block = problem.block(int(problem.index[task]))
        basis, seen = problem.rows[block], memory[0]
        fresh = basis - (basis @ seen.T) @ seen
        fresh -= (fresh @ seen.T) @ seen  # twice, because one pass of Gram-Schmidt leaves rounding errors along `seen`
        left, size, new = np.linalg.svd(fresh, full_matrices=False)
        rank = int(np.count_nonzero(size > 1e-10))
        missed = basis @ w - problem.targets[block]
        memory[0] = np.concatenate([seen, new[:rank]])
        return Learned(w - new[:rank].T @ ((left[:, :rank].T @ missed) / size[:rank]))
