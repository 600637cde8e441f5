"""The difference between two ways of learning, with common random numbers where it has to be simulated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from forgetting.core.arrays import Seed, as_count, seed_from
from forgetting.core.progress import Progress, reports_progress
from forgetting.expectation.asking import Steps, as_level, ask, expect
from forgetting.expectation.engines import as_simulated, choose
from forgetting.expectation.engines.monte_carlo import gathered
from forgetting.expectation.intervals import caveats, column_intervals, value_range
from forgetting.expectation.outcome import Expectation, Outcome
from forgetting.expectation.quantiles import column_quantiles
from forgetting.expectation.quantities import Quantity
from forgetting.expectation.request import PATIENCE, Simulation
from forgetting.orderings.base import OrderingLike
from forgetting.schemes.base import Scheme, SchemeLike
from forgetting.tasks import Problem

__all__ = ["compare"]

Arm = OrderingLike | tuple[OrderingLike, SchemeLike | None]


@reports_progress
def compare(
    problem: Problem,
    first: Arm,
    second: Arm,
    k: Steps,
    w0: Any = None,
    quantities: Quantity | str | Sequence[Quantity | str] = ("loss", "forgetting"),
    seed: Seed = 0,
    runs: int | None = None,
    confidence: float = 0.99,
    patience: float = PATIENCE,
    *,
    progress: Progress = False,
) -> Expectation:
    """E[first] - E[second] for two orderings, or two (ordering, scheme) pairs; all arguments are as for `expect`.

    Exact if both are. Otherwise run i of both arms draws its order from the same random numbers, which cancels most of
    the noise between two schemes under one ordering, and intervals and quantiles are those of the paired differences.

    >>> import forgetting as fg
    >>> tasks = fg.families.gaussian(T=5, d=8, rank=2, seed=0)
    >>> gap = compare(tasks, fg.orderings.WithReplacement(), fg.orderings.WithoutReplacement(), k=5)
    >>> gap.method, bool(gap.loss > 0)
    ('exact difference', True)
    """
    arms = [_pair(first), _pair(second)]
    count = None if runs is None else as_count(runs, "runs", least=1)
    simulation = Simulation(seed_from(seed), count, confidence=as_level(confidence))
    questions = [
        ask(problem, ordering, k, scheme, w0, quantities, None, simulation, patience) for ordering, scheme in arms
    ]
    if all(choose(question.request).engine.exact for question in questions):
        a, b = (
            expect(problem, ordering, k, scheme, w0, quantities=quantities, patience=patience)
            for ordering, scheme in arms
        )
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
            heading="Differences of expected values over all orders",
            unit=a.unit,
        )
    requests = [as_simulated(question.request) for question in questions]
    count = min(request.simulation.most for request in requests)
    samples = [gathered(request, count) for request in requests]
    values, intervals, quantiles, bounded, notes = {}, {}, {}, {}, []
    ranges = [[value_range(request, quantity) for quantity in request.quantities] for request in requests]
    for quantity, first_range, second_range in zip(requests[0].quantities, *ranges, strict=True):
        name = quantity.name
        difference = samples[0][name] - samples[1][name]
        values[name] = np.mean(difference, axis=0)
        bounds = None
        if first_range is not None and second_range is not None:
            bounded[name] = bounds = first_range[0] - second_range[1], first_range[1] - second_range[0]
        intervals[name] = column_intervals(difference, bounds, simulation.confidence)
        quantiles[name] = column_quantiles(difference, simulation.confidence, bounds or (-np.inf, np.inf))
    for request, known in zip(requests, ranges, strict=True):
        notes += caveats(request, known)
    outcome = Outcome(
        f"{count} pairs of runs with common random numbers",
        values,
        {name: np.diff(value, axis=-1)[..., 0] / 2 for name, value in intervals.items()},
        intervals,
        simulation.confidence,
        count,
        tuple(dict.fromkeys(notes)),
        quantiles=quantiles,
        ranges=bounded,
        seed=simulation.seed,
        heading="Differences of expected values over random orders",
    )
    return questions[0].build("monte-carlo", outcome)


def _pair(arm: Arm) -> tuple[OrderingLike, SchemeLike | None]:
    """The ordering and the scheme of an arm; a tuple of task numbers is an ordering."""
    if isinstance(arm, tuple) and len(arm) == 2 and isinstance(arm[1], Scheme | str | None):
        return arm
    return cast(OrderingLike, arm), None
