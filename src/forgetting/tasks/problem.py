"""The small protocol that is all the loop sees of a problem."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from forgetting._arrays import Array
from forgetting.errors import ForgettingError

__all__ = ["Problem", "no_common_solution"]


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


def no_common_solution(problem: Any) -> list[str]:
    """What to say of a problem that no single w solves, or of which that is not known; nothing of all others.

    >>> import forgetting as fg
    >>> no_common_solution(fg.families.two_lines(0.5))
    []
    """
    try:
        found = getattr(problem, "realizability", None)
    except ForgettingError as error:  # undecided
        return [str(error)]
    return [] if found is None or found.holds else [str(found.message)]
