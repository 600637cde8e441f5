"""How one task is learned: the protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from forgetting._arrays import Array

__all__ = ["Learned", "Scheme"]


class Learned(NamedTuple):
    """What learning one task gave: the new iterate, the inner steps it took, and a complaint if it did not converge.

    A scheme that knows the loss of the task before and after learning it may say so; else the loop computes them.

    >>> Learned(np.zeros(2)).inner_steps
    1
    """

    w: Array
    inner_steps: int = 1
    complaint: str | None = None
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True)
class Scheme(ABC):
    """Base class: implement `learn`; `start` if the scheme keeps a memory from task to task.

    Settings live in the frozen object, what changes during a run in the memory.

    >>> import forgetting as fg
    >>> class Halfway(Scheme):
    ...     def learn(self, problem, task, w, memory):
    ...         return Learned((w + problem.project(task, w)) / 2)
    >>> fg.run(fg.families.orthogonal(2), fg.orderings.Cyclic(), k=4, scheme=Halfway()).iterates[-1].round(4)
    array([0.5303, 0.5303])
    """

    #: True for schemes of regression that commute with rotations and never leave w_0 + row space: `learn` then gets a
    #: `Geometry` for its problem and the error z (D numbers) for w, whatever d is, from data or from a kernel.
    intrinsic: ClassVar[bool] = False
    needs_realizable: ClassVar[bool] = False

    @property
    def random(self) -> bool:
        """Whether learning draws random numbers; taken for granted where `start`, which is given the generator, is
        overridden, unless the scheme says otherwise here."""
        return type(self).start is not Scheme.start

    @property
    def scale_of_iterates(self) -> float:
        """Losses and distances are those of w divided by this: for schemes whose iterates grow without bound."""
        return 1.0

    def start(self, problem: Any, w0: Array, rng: np.random.Generator) -> Any:
        """The memory at step 0."""
        return None

    @abstractmethod
    def learn(self, problem: Any, task: int, w: Array, memory: Any) -> Learned:
        """Learn one task from w. Do not write into w."""
