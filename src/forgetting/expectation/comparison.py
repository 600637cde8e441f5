"""The difference between two ways of learning, with common random numbers where it has to be simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forgetting._arrays import Array, IntArray, as_count, as_number, as_seed
from forgetting.errors import InvalidInputError
from forgetting.expectation import monte_carlo
from forgetting.expectation.api import ask, expect
from forgetting.expectation.result import Expectation, Outcome
from forgetting.orderings import Ordering
from forgetting.schemes import Scheme

__all__ = ["compare"]

Arm = Ordering | tuple[Ordering, Scheme | None]


def compare(
    problem: Any,
    first: Arm,
    second: Arm,
    k: int | Sequence[int] | IntArray,
    w0: Any = None,
    quantities: Sequence[str] = ("loss", "forgetting"),
    seed: int = 0,
    runs: int | None = None,
    confidence: float = 0.99,
) -> Expectation:
    """E[first] - E[second] for two orderings, or two (ordering, scheme) pairs.

    Exact if both are. Otherwise run i of both arms draws its order from the same random numbers, which cancels most of
    the noise between two schemes under one ordering, and the interval is that of the paired differences.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=5, d=8, rank=2, seed=0)
    >>> gap = compare(tasks, fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement(), k=5)
    >>> gap.method, bool(gap.loss > 0)
    ('exact difference', True)
    """
    arms = [arm if isinstance(arm, tuple) else (arm, None) for arm in (first, second)]
    if any(len(arm) != 2 for arm in arms):
        raise InvalidInputError("expected an ordering, or a pair of an ordering and a scheme, on either side")
    requests = [ask(problem, ordering, k, scheme, w0, quantities) for ordering, scheme in arms]
    if all(request.choose() != "monte-carlo" for request, _ in requests):
        a, b = (expect(problem, ordering, k, scheme, w0, quantities=quantities) for ordering, scheme in arms)
        values = {name: np.asarray(a.values[name]) - np.asarray(b.values[name]) for name in a.values}
        return Expectation(
            k=a.k,
            method="exact difference",
            detail=f"{a.method} less {b.method}",
            values=values,
            intervals={name: np.stack([value, value], axis=-1) for name, value in values.items()},
            uncertainty={
                name: np.asarray(a.uncertainty.get(name, 0.0)) + np.asarray(b.uncertainty.get(name, 0.0))
                for name in values
            },
            notes=tuple(dict.fromkeys(a.notes + b.notes)),
        )
    level = as_number(confidence, "confidence")
    if not 0 < level < 1:
        raise InvalidInputError(f"confidence must be between 0 and 1, got {level:g}")
    count = as_count(runs or monte_carlo.DEFAULT_RUNS, "runs", least=1)
    batches = range(-(-count // monte_carlo.BATCH))
    samples: list[dict[str, Array]] = []
    ranges: list[dict[str, tuple[float, float] | None]] = []
    for request, _ in requests:
        drawn = list(monte_carlo.sample(request, as_seed(seed), batches, None, count))
        samples.append({name: np.concatenate([part[name] for part in drawn]) for name in request.names})
        ranges.append({name: monte_carlo.value_range(request, name) for name in request.names})
    values, intervals = {}, {}
    for name in samples[0]:
        difference = samples[0][name] - samples[1][name]
        values[name] = np.mean(difference, axis=0)
        one, two = ranges[0][name], ranges[1][name]
        bounds = None if one is None or two is None else (one[0] - two[1], one[1] - two[0])
        intervals[name] = monte_carlo.column_intervals(difference, bounds, level)
    pairs = zip(requests, ranges, strict=True)
    notes = [note for (request, _), known in pairs for note in monte_carlo.caveats(request, known)]
    outcome = Outcome(
        "monte-carlo",
        f"{count} pairs of runs with common random numbers",
        values,
        {name: np.diff(value, axis=-1)[..., 0] / 2 for name, value in intervals.items()},
        intervals,
        level,
        count,
        tuple(dict.fromkeys(notes)),
    )
    return requests[0][1](outcome)
