"""Random orderings: draws with and without replacement, and a new permutation every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetting._arrays import Array
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, register
from forgetting.orderings.view import TaskView

__all__ = ["NormWeighted", "Reshuffled", "WithReplacement", "WithoutReplacement"]


@register
@dataclass(frozen=True)
class WithReplacement(Ordering):
    """Independent draws, uniform or with probabilities p (normalised): the paper's random ordering with replacement.

    A class derived from this one may compute its own `probabilities`.

    >>> WithReplacement().first(TaskView(3), 8, seed=1).tolist()
    [1, 1, 2, 2, 0, 0, 2, 2]
    >>> WithReplacement(p=[0, 0, 2]).first(TaskView(3), 3).tolist()
    [2, 2, 2]
    """

    p: Any = None

    def __post_init__(self) -> None:
        law = laws.Independent(self.p)
        if self.p is not None:
            object.__setattr__(self, "p", tuple(law.probabilities(TaskView(np.size(self.p))).tolist()))
        object.__setattr__(self, "_law", law)

    @property
    def law(self) -> laws.Independent:
        """Independent draws with the given weights."""
        if type(self).probabilities is not WithReplacement.probabilities:
            return laws.Independent(self.probabilities, str(self))
        law: laws.Independent = self._law  # type: ignore[attr-defined]
        return law

    def settings(self) -> dict[str, Any]:
        # the given weights: normalising what was normalised before may move a last bit
        return {} if self.p is None else {"p": self.law.p}

    def probabilities(self, tasks: TaskView) -> Array:
        """The probability of each task."""
        return self.law.probabilities(tasks)


@register
@dataclass(frozen=True)
class NormWeighted(WithReplacement):
    """Independent draws with probability proportional to the squared spectral norm (the paper's `prop:mean_norm`).

    >>> import forgetting as fg
    >>> tasks = fg.families.heterogeneous_norms(T=3, d=4, spread=1e6)
    >>> fg.run(tasks, NormWeighted(), k=6).order.tolist()
    [0, 0, 0, 0, 0, 0]
    """

    p: None = None

    def __repr__(self) -> str:
        return "NormWeighted()"

    def probabilities(self, tasks: TaskView) -> Array:
        if tasks.norms is None:
            raise NotSupportedError("norm-weighted sampling needs tasks with a norm; these have none")
        weights: Array = tasks.norms**2
        if weights.sum() == 0:
            raise InvalidInputError("norm-weighted sampling needs a task that is not zero; all of these are")
        return weights / float(weights.sum())


@register
@dataclass(frozen=True)
class WithoutReplacement(Ordering):
    """A uniformly random permutation: every task once, so at most T steps.

    >>> WithoutReplacement().first(TaskView(5), 5, seed=0).tolist()
    [2, 4, 3, 0, 1]
    >>> WithoutReplacement().first(TaskView(3), 4)
    Traceback (most recent call last):
    forgetting.errors.OrderingError: WithoutReplacement() ends after 3 steps over 3 tasks, but k = 4; use k <= 3
    """

    law = laws.Permutation()


@register
@dataclass(frozen=True)
class Reshuffled(Ordering):
    """A new random permutation every epoch.

    >>> Reshuffled().first(TaskView(3), 6, seed=0).tolist()
    [2, 0, 1, 2, 1, 0]
    """

    law = laws.Reshuffled()
