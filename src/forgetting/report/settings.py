"""What a report is about."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

from forgetting._arrays import as_count, as_number, as_seed
from forgetting.errors import InvalidInputError
from forgetting.orderings import Cyclic, Ordering, WithoutReplacement, WithReplacement
from forgetting.tasks import families

__all__ = ["Settings", "default_problem", "ordering_key", "ordering_name"]


def default_problem(seed: int = 0) -> Any:
    """Twelve random tasks of rank 2 in 20 dimensions, of radius 1 and condition 3: small enough to be exact everywhere.

    >>> default_problem()
    RegressionTasks(T=12, d=20, rows=24)
    """
    return families.gaussian(T=12, d=20, rank=2, seed=seed, condition=3.0)


def ordering_name(ordering: Ordering) -> str:
    """In words, with the parameters that are not as usual.

    >>> ordering_name(WithoutReplacement()), ordering_name(WithReplacement(p=[1, 3]))
    ('without replacement', 'with replacement, p=(0.25, 0.75)')
    """
    name = type(ordering).__name__
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
    unusual = []
    for one in fields(ordering):
        value = getattr(ordering, one.name)
        if value != one.default:
            text = str(value)
            unusual.append(f"{one.name}={text if len(text) <= 24 else text[:21] + '...'}")
    return ", ".join([words, *unusual])


def ordering_key(ordering: Ordering) -> str:
    """The same for names of files.

    >>> from forgetting.orderings import Explicit
    >>> ordering_key(Explicit((0, 1)))
    'explicit-seq-0-1'
    """
    return re.sub("[^a-z0-9]+", "-", ordering_name(ordering).lower()).strip("-")[:60]


@dataclass(frozen=True)
class Settings:
    """A problem, the orderings to compare on it, and how much work to spend.

    Attributes:
        problem: regression tasks, or affine sets.
        name: what the report calls it.
        orderings: those compared.
        k: the largest number of steps; orderings that end earlier are shown as far as they go.
        points: values of k per curve, and of d per map.
        runs: simulated runs for the bands.
        seed: decides all randomness.
        hunt: evaluations per claim in the search for counterexamples.
        eps: the catastrophic families, in decreasing order.

    >>> Settings(default_problem(), k=100).k
    100
    """

    problem: Any
    name: str = "gaussian(T=12, d=20, rank=2, condition=3)"
    orderings: tuple[Ordering, ...] = (WithReplacement(), WithoutReplacement(), Cyclic())
    k: int = 1000
    points: int = 40
    runs: int = 400
    seed: int = 0
    hunt: int = 24
    eps: tuple[float, ...] = field(default=(6.0, 3.0, 2.0, 1.4, 1.0, 0.7, 0.5, 0.4, 0.3))

    def __post_init__(self) -> None:
        for name, least in (("k", 3), ("points", 2), ("runs", 2), ("hunt", 1)):
            as_count(getattr(self, name), name, least=least)
        as_seed(self.seed)
        if not self.orderings:
            raise InvalidInputError("no orderings given; a report compares at least one")
        keys = [ordering_key(ordering) for ordering in self.orderings]
        twice = next((place for place, key in enumerate(keys) if key in keys[:place]), None)
        if twice is not None:
            raise InvalidInputError(f"two orderings are called {ordering_name(self.orderings[twice])!r}; leave one out")
        if not self.eps:
            raise InvalidInputError("eps is empty; give at least one value for the catastrophic family")
        for one in self.eps:
            if not 0.01 <= as_number(one, "eps") <= 6:
                raise InvalidInputError(f"eps must be between 0.01 and 6, got {one!r}")
