"""Orderings that do not look at the iterate: random draws, new permutations, cycles, and given sequences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nextafter
from typing import Any

import numpy as np

from forgetting.core.arrays import Array, IntArray, task_numbers
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.orderings import laws
from forgetting.orderings.base import Ordering, register
from forgetting.orderings.view import TaskView

__all__ = ["Cyclic", "Explicit", "NonRepetitive", "NormWeighted", "Reshuffled", "WithReplacement", "WithoutReplacement"]


@dataclass(frozen=True)
class _Weighted(Ordering):
    """Draws with probabilities p (normalised), or uniform ones; `_draws` keeps the weights as they were given."""

    p: Any = None

    def __post_init__(self) -> None:
        draws = laws.Independent(self.p)
        if self.p is not None:
            object.__setattr__(self, "p", tuple(draws.probabilities(TaskView(np.size(self.p))).tolist()))
        object.__setattr__(self, "_draws", draws)

    def settings(self) -> dict[str, Any]:
        # the given weights: normalising what was normalised before may move a last bit
        given = self._draws.p  # type: ignore[attr-defined]
        return {} if given is None else {"p": given}


@register
@dataclass(frozen=True)
class WithReplacement(_Weighted):
    """Independent draws, uniform or with probabilities p (normalised): the paper's random ordering with replacement.

    A class derived from this one may compute its own `probabilities`.

    >>> WithReplacement().first(TaskView(3), 8, seed=1).tolist()
    [1, 1, 2, 2, 0, 0, 2, 2]
    >>> WithReplacement(p=[0, 0, 2]).first(TaskView(3), 3).tolist()
    [2, 2, 2]
    """

    @property
    def law(self) -> laws.Independent:
        """Independent draws with the given weights."""
        if type(self).probabilities is not WithReplacement.probabilities:
            return laws.Independent(self.probabilities, str(self))
        law: laws.Independent = self._draws  # type: ignore[attr-defined]
        return law

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

    def __post_init__(self) -> None:
        if self.p is not None:
            raise InvalidInputError(f"NormWeighted takes no weights, got p = {self.p!r:.60}; use WithReplacement(p)")
        super().__post_init__()

    def __repr__(self) -> str:
        return "NormWeighted()"

    def probabilities(self, tasks: TaskView) -> Array:
        if tasks.norms is None:
            raise NotSupportedError(
                "norm-weighted sampling needs tasks with a norm; these have none, as the blocks of a streamed matrix; "
                "use another ordering"
            )
        weights: Array = tasks.norms**2
        if weights.sum() == 0:
            raise InvalidInputError("norm-weighted sampling needs a task that is not zero; all of these are")
        return weights / float(weights.sum())


@register
@dataclass(frozen=True)
class NonRepetitive(_Weighted):
    """Draws as `WithReplacement(p)`, but never the task just visited: p given that the next task differs.

    P(j after i) = p_j / (1 - p_i) for j != i (Yaniv et al. 2021, arXiv:2110.04703): a projection that is repeated at
    once changes nothing. The visits are a Markov chain, not independent draws, so that expectations are simulated and
    bounds for random orderings do not apply. If only one task has a positive probability, as where T = 1, the visits
    end after one step. A step costs O(log T).

    >>> NonRepetitive().first(TaskView(3), 8, seed=1).tolist()
    [1, 2, 0, 1, 0, 2, 1, 0]
    >>> NonRepetitive(p=[1, 0, 5]).first(TaskView(3), 4).tolist()
    [2, 0, 2, 0]
    >>> NonRepetitive().first(TaskView(1), 2)
    Traceback (most recent call last):
    forgetting.errors.OrderingError: NonRepetitive() ends after 1 steps over 1 tasks, but k = 2; use k <= 1
    """

    law = laws.Unknown()

    def __repr__(self) -> str:
        return "NonRepetitive()" if self.p is None else f"NonRepetitive(p={self.p})"

    def limit(self, num_tasks: int) -> int | None:
        return 1 if (num_tasks if self.p is None else np.count_nonzero(self.p)) == 1 else None

    def visits(self, tasks: TaskView, rng: np.random.Generator) -> Iterator[int | IntArray | None]:
        p = self._draws.probabilities(tasks)  # type: ignore[attr-defined]
        T = tasks.num_tasks
        # sums from both ends: the probability of all other tasks keeps its digits where p of the last task is nearly 1
        upto, back = np.cumsum(p).tolist(), np.cumsum(p[::-1]).tolist()
        left, right = upto[-1], 0.0  # the probability of the tasks before and after the last task
        while True:
            for u in rng.random(laws.BLOCK).tolist():
                x = u * (left + right)
                if x < left:
                    task = bisect_right(upto, x)
                else:
                    task = T - 1 - bisect_right(back, min(x - left, nextafter(right, 0.0)))
                yield task
                left, right = upto[task - 1] if task else 0.0, back[T - 2 - task] if task < T - 1 else 0.0
                if left + right == 0.0:
                    return


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


@register
@dataclass(frozen=True)
class Cyclic(Ordering):
    """Cyclic ordering: the tasks 0, 1, ..., T - 1, or those of `order`, repeated.

    `order` may be any list of tasks. Bounds on cyclic orderings cover it if it has every task once.

    >>> from forgetting.orderings import TaskView
    >>> Cyclic().first(TaskView(3), 5).tolist(), Cyclic([2, 0, 1]).first(TaskView(3), 5).tolist()
    ([0, 1, 2, 0, 1], [2, 0, 1, 2, 0])
    """

    order: Sequence[int] | Sequence[str] | IntArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", _as_listed(self.order))
        if not _has_names(self.order):
            object.__setattr__(self, "_law", laws.Cycle(self.order))  # type: ignore[arg-type]
            object.__setattr__(self, "order", self.law.order)

    @property
    def law(self) -> laws.Cycle:
        """A fixed cycle of tasks."""
        law: laws.Cycle = _law_of_numbers(self)
        return law

    def _numbered(self, names: Sequence[str]) -> Cyclic:
        return replace(self, order=task_numbers(self.order, names, "Cyclic ordering: order"))

    def __repr__(self) -> str:
        return "Cyclic()" if self.order is None else f"Cyclic(order={self.order})"

    def __str__(self) -> str:
        return repr(self) if self.order is None else f"Cyclic(order of {len(self.order)} tasks)"


@register
@dataclass(frozen=True)
class Explicit(Ordering):
    """The tasks of a given sequence, once: their numbers, or their names.

    >>> from forgetting.orderings import TaskView
    >>> Explicit([2, 0, 0]).first(TaskView(3), 3).tolist()
    [2, 0, 0]
    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0]], [[2.0]]], [[1.0], [2.0]], names=["north", "west"])
    >>> fg.run(tasks, Explicit(["west", "north"]), k=2).order.tolist()
    [1, 0]
    """

    seq: Sequence[int] | Sequence[str] | IntArray

    def __post_init__(self) -> None:
        if self.seq is None:
            raise InvalidInputError("seq must be a sequence of task numbers, got None")
        object.__setattr__(self, "seq", _as_listed(self.seq))
        if not _has_names(self.seq):
            object.__setattr__(self, "_law", laws.Fixed(self.seq))  # type: ignore[arg-type]
            object.__setattr__(self, "seq", self.law.sequence)

    @property
    def law(self) -> laws.Fixed:
        """A fixed sequence of tasks."""
        law: laws.Fixed = _law_of_numbers(self)
        return law

    def _numbered(self, names: Sequence[str]) -> Explicit:
        return replace(self, seq=task_numbers(self.seq, names, "Explicit ordering: seq"))

    def __str__(self) -> str:
        return f"Explicit({len(self.seq)} tasks)"


def _as_listed(tasks: Any) -> Any:
    """Tasks as they are; the words of a text with commas, as a user types them, as a tuple."""
    listed = tasks.tolist() if isinstance(tasks, np.ndarray) and tasks.dtype.kind in "UT" else tasks
    if isinstance(listed, str):
        listed = [word.strip() for word in listed.split(",")]
    return tuple(listed) if _has_names(listed) else tasks


def _has_names(tasks: Any) -> bool:
    return isinstance(tasks, list | tuple) and any(isinstance(task, str) for task in tasks)


def _law_of_numbers(ordering: Ordering) -> Any:
    """The law that was made with the ordering; an error if its tasks are named, so that it has none."""
    law = vars(ordering).get("_law")
    if law is None:
        raise InvalidInputError(
            f"{ordering} names its tasks, whose numbers are known only together with the tasks: give the ordering to "
            "fg.run, fg.expect, ... with tasks of these names, or give numbers"
        )
    return law
