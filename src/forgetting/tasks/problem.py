"""The small protocol that is all the loop sees of a problem."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from forgetting._arrays import Array

__all__ = ["Problem"]


@runtime_checkable
class Problem(Protocol):
    """T tasks that can be projected onto, with a loss and a distance each.

    >>> import forgetting as fg
    >>> isinstance(fg.families.two_lines(0.5), Problem)
    True
    """

    natural_scheme: str

    @property
    def num_tasks(self) -> int:
        """T."""

    @property
    def dim(self) -> int:
        """d, the length of an iterate."""

    def project(self, task: int, w: Array) -> Array:
        """The point nearest to w that solves the task."""

    def task_loss(self, task: int, w: Array) -> float:
        """The loss of one task at w."""

    def task_losses(self, w: Array) -> Array:
        """The T losses at w."""

    def distances(self, w: Array) -> Array:
        """The T distances from w to the solution sets."""
