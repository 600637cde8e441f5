"""Crossovers: from which number of steps k which bound is tightest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from forgetting.core.arrays import as_count, as_flag, as_kind, as_list, as_word
from forgetting.errors import InvalidInputError
from forgetting.orderings import Ordering
from forgetting.tasks import Problem
from forgetting.theory.bound import Bound
from forgetting.theory.evaluation import is_vacuous
from forgetting.theory.registry import upper_bounds
from forgetting.theory.setting import Setting, describe_ordering, ordering_named
from forgetting.theory.statement import ORIGINS, QUANTITIES


@dataclass(frozen=True)
class Stretch:
    """One bound is the tightest from step `first` to step `last`.

    `last` is None if it is still the tightest at the largest k examined (`up_to`).

    >>> import forgetting as fg
    >>> stretch = fg.bounds.crossovers(d=100, T=10, rank_avg=2, rows="stated")[0]
    >>> stretch.first, stretch.bound.key
    (1, 'trivial/loss')
    """

    ordering: str
    quantity: str
    first: int
    last: int | None
    bound: Bound

    def __str__(self) -> str:
        span = f"k >= {self.first}" if self.last is None else f"k = {self.first} to {self.last}"
        return f"{self.ordering}, {self.quantity}: {span}: {self.bound.heading}: {self.bound.formula}"


class Crossovers(list[Stretch]):
    """The stretches of `crossovers`, by ordering and quantity, then by k.

    >>> import forgetting as fg
    >>> found = fg.bounds.crossovers(d=100, T=50, rank_avg=2)
    >>> found.winner("without replacement", "forgetting", k=30).key
    'here:single-pass/forgetting'
    """

    def __init__(self, stretches: Sequence[Stretch], setting: Setting) -> None:
        super().__init__(stretches)
        self.setting = setting

    def winner(self, ordering: str | Ordering, quantity: str, k: int) -> Bound | None:
        """The tightest bound at k, or None if no bound covers k."""
        ordering = ordering_named(as_kind(ordering, str | Ordering, "an ordering, or the name of one"))
        as_kind(quantity, str, "a quantity such as 'loss'")
        k = as_count(k, "k")
        for row in self:
            if (row.ordering, row.quantity) == (ordering, quantity) and row.first <= k <= (row.last or math.inf):
                return row.bound
        return None

    def __str__(self) -> str:
        return "\n".join(str(row) for row in self)


def crossovers(
    d: int | Problem | Setting | None = None,
    T: int | str | Ordering | Sequence[str | Ordering] | None = None,
    rank_avg: float | None = None,
    *,
    quantities: Sequence[str] = ("loss", "forgetting"),
    orderings: str | Ordering | Sequence[str | Ordering] = ("with replacement", "without replacement"),
    rows: Literal["all", "stated"] = "all",
    second_hand: bool = True,
    up_to: int = 10**12,
    **more: Any,
) -> Crossovers:
    """The tightest upper bound for each ordering and quantity, and the k from which it is that.

    Args:
        d, T, rank_avg: dimension, number of tasks, average rank; or tasks, or a `Setting`, in place of all three.
            Without T there is nothing without replacement. After tasks, the second argument may be `orderings`.
        quantities, orderings: what to compare; orderings as `fg.run` takes them.
        rows: "stated" leaves out what only proofs give and what this library tightened.
        second_hand: whether bounds whose constant is second-hand take part.
        up_to: the largest k that is looked at.
        **more: further parameters of `Setting` (rank_joint, rank_max, ...).

    The trivial bound takes part, so that the first k at which a theorem says anything is visible. Crossings are found
    to the exact k, on the assumption that two bounds do not cross back between neighbouring points of a fine
    logarithmic grid.

    >>> import forgetting as fg
    >>> found = fg.bounds.crossovers(d=10**6, T=10**6, rank_avg=1, rows="stated", second_hand=False)
    >>> [(s.first, s.bound.key) for s in found if (s.ordering, s.quantity) == ("with replacement", "loss")]
    [(1, 'trivial/loss'), (2, 'here:last-iterate/loss')]
    >>> two_lines = fg.families.two_lines(0.5)
    >>> fg.bounds.crossovers(two_lines, "random").winner("random", "loss", k=10).key
    'two-lines:random/loss'
    """
    as_word(rows, ("all", "stated"), "rows")
    second_hand = as_flag(second_hand, "second_hand")
    typed = d is None or isinstance(d, int | np.integer | float)
    count: Any = T
    if isinstance(T, str | Ordering | list | tuple):
        if typed:
            raise InvalidInputError(f"T is the number of tasks, got {T!r:.60}; orderings= names orderings")
        count, orderings = None, T
    listed = [orderings] if isinstance(orderings, str | Ordering) else as_list(orderings, "orderings")
    kinds = str | Ordering
    named = [ordering_named(as_kind(name, kinds, "orderings, or their names", "orderings: ")) for name in listed]
    names = [name if isinstance(name, str) else name.in_words for name in named]
    unknown = set(more) - {field.name for field in fields(Setting)}
    if unknown:
        raise InvalidInputError(f"no parameter {min(unknown)!r}; see fg.bounds.Setting")
    steps = {"eta": 1.0, "beta": 1.0}
    if d is None or isinstance(d, int | np.integer | float):
        setting = Setting(
            d=as_count(d, "d") if d is not None else None, T=count, rank_avg=rank_avg, **{**steps, **more}
        )
    elif count is None and rank_avg is None:
        setting = replace(Setting.of(d), **{**steps, **more})
        count = setting.T
    else:
        raise InvalidInputError("T and rank_avg are those of the tasks; leave them out, or give d as a number")
    if count is None:  # without replacement k is at most T
        names = [name for name in names if name != "without replacement"]
        if not names:
            raise InvalidInputError("bounds without replacement need T, the number of tasks")
    quantities = [quantities] if isinstance(quantities, str) else as_list(quantities, "quantities")
    for name in quantities:
        if not isinstance(name, str) or name not in QUANTITIES:
            raise InvalidInputError(f"no bound is on {name!r}; choose from {', '.join(QUANTITIES)}")
    eta, beta = setting.eta, setting.beta
    if eta is not None and beta is not None and not (beta > 0 and 0 < eta * beta < 2):
        raise InvalidInputError(f"bounds on SGD need 0 < eta < 2/beta, got eta = {eta:g} and beta = {beta:g}")
    limit = as_count(up_to, "up_to", least=1)
    left_out = ("refuted",) if second_hand else ("refuted", "second-hand")
    stretches: list[Stretch] = []
    for ordering in names:
        tags = describe_ordering(ordering)
        most = setting.T if ordering == "without replacement" else None
        last = limit if most is None else min(limit, most)
        for quantity in quantities:
            bounds = [
                bound
                for bound in upper_bounds(quantity, setting.problem, tags, {"projection"}, left_out)
                if (rows == "all" or bound.origin in ("statement", "trivial")) and bound.not_known(setting) is None
            ]
            stretches += _stretches(bounds, setting, ordering, quantity, last, open_end=last == limit)
    return Crossovers(stretches, setting)


def _stretches(
    bounds: list[Bound], setting: Setting, ordering: str, quantity: str, last: int, *, open_end: bool
) -> list[Stretch]:
    ranked = sorted(bounds, key=lambda b: ORIGINS.index(b.origin))

    @cache
    def best(k: int) -> Bound | None:
        usable = [(b.compute(setting, k), b) for b in ranked if b.not_covered(setting, k) is None]
        # a bound that ties with the trivial one says nothing
        telling = [row for row in usable if not is_vacuous(row[1], row[0], setting)]
        return min(telling, key=lambda row: row[0])[1] if telling else None

    grid = sorted({*range(1, min(last, 64) + 1), *(round(64 * 1.02**i) for i in range(1500)), last})
    grid = [k for k in grid if k <= last]
    changes: list[tuple[int, Bound | None]] = [(grid[0], best(grid[0]))]
    for left, right in pairwise(grid):
        low = left
        while best(right) is not changes[-1][1]:  # several winners may change hands between two grid points
            low = _first_change(best, low, right, changes[-1][1])
            changes.append((low, best(low)))
    ends = [*(first - 1 for first, _ in changes[1:]), None if open_end else last]
    return [
        Stretch(ordering, quantity, first, end, bound)
        for (first, bound), end in zip(changes, ends, strict=True)
        if bound is not None
    ]


def _first_change(best: Callable[[int], Bound | None], low: int, high: int, now: Bound | None) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        if best(middle) is now:
            low = middle
        else:
            high = middle
    return high
