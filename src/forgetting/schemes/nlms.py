"""Normalised least mean squares: a step on each row of the task in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from forgetting.core.arrays import Array, as_number
from forgetting.geometry import Geometry
from forgetting.schemes.base import Learned, Scheme, register

__all__ = ["NLMS"]


@register
@dataclass(frozen=True)
class NLMS(Scheme):
    """For each row x of the task, in order: w <- w - mu (x.w - y) x / (eps + |x|^2).

    With mu = 1 and eps = 0 this is row Kaczmarz, which solves a task of one row exactly; a task of several rows gets
    one pass. Zero rows are skipped.

    >>> import forgetting as fg
    >>> tasks = fg.families.rank_one(T=3, d=4)
    >>> nlms, exact = (fg.run(tasks, fg.orderings.Cyclic(), k=6, scheme=s) for s in (NLMS(), fg.schemes.Kaczmarz()))
    >>> bool(abs(nlms.iterates - exact.iterates).max() < 1e-14)
    True
    """

    mu: float = 1.0
    eps: float = 0.0
    intrinsic: ClassVar[bool] = True
    reads_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", as_number(self.mu, "mu", above=0))
        object.__setattr__(self, "eps", as_number(self.eps, "eps", least=0))

    @property
    def nonexpansive(self) -> bool:
        return self.mu <= 2

    def learn(self, problem: Geometry, task: int, w: Array, memory: Any) -> Learned:  # type: ignore[override]
        matrix, label = problem.equations(task)
        point = w.copy()
        for row, value in zip(matrix, label, strict=True):
            size = float(row @ row)
            if size > 0:
                point -= self.mu * (row @ point - value) / (self.eps + size) * row
        return Learned(point, len(matrix))
