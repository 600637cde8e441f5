"""Simulation: means over random runs, with confidence intervals. Covers everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from forgetting.compute.threads import cores
from forgetting.core.arrays import Array
from forgetting.core.memory import require_memory
from forgetting.core.progress import track
from forgetting.dynamics.ensembles import MOST_GAINS, batch_forgetting, batch_losses
from forgetting.dynamics.metrics import paper_regret
from forgetting.dynamics.space import view_of
from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.costs import (
    seconds_of_blocks,
    seconds_of_compiled_runs,
    seconds_of_drawing,
    seconds_of_scored_run,
)
from forgetting.expectation.engines.run_blocks import in_blocks, runs_at_once, values_of_runs
from forgetting.expectation.engines.single_runs import curve_at, made_runs, next_at, values_of
from forgetting.expectation.intervals import caveats, column_intervals, column_quantiles, least_and_most, value_range
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.quantities import LOSS, Average, Quantity
from forgetting.expectation.request import DEFAULT_RUNS, Request
from forgetting.orderings.base import drawn_orders

RANDOM_ORDERS = "Expected values over random orders"

BATCH = 1024  # runs simulated at once; part of what a seed means


@register_engine
class MonteCarloEngine(Engine):
    """Runs in rounds that double until `rtol` is reached or all runs are spent."""

    name = "monte-carlo"
    exact = False

    def covers(self, request: Request) -> str | None:
        return None

    def cost(self, request: Request) -> Cost:
        runs = request.simulation.most
        held, kept = _room(request, runs)
        if _compiled(request):
            seconds = seconds_of_compiled_runs(request, runs)
        elif _in_blocks(request):
            seconds = seconds_of_blocks(request, runs, min(runs, runs_at_once(request)))
        else:
            seconds = runs * (seconds_of_scored_run(request) + seconds_of_drawing(request))
        return Cost(held + kept, seconds + 8e-7 * runs * len(request.steps) * _numbers(request))

    def solve(self, request: Request) -> Outcome:
        return _simulate(request)


def gathered(request: Request, runs: int) -> Values:
    """The quantities of `runs` runs at the steps of the request, with a leading axis of runs."""
    batches = range(-(-runs // BATCH))
    drawn = list(_sample(request, batches, runs))
    return {quantity.name: np.concatenate([part[quantity.name] for part in drawn]) for quantity in request.quantities}


def _sample(request: Request, batches: Iterable[int], budget: int) -> Iterator[Values]:
    """Quantities of simulated runs, batch by batch; the last batch is smaller if `budget` runs do not fill it."""
    compiled = _compiled(request)
    for batch in track(list(batches), "simulating"):
        rng = np.random.default_rng(np.random.SeedSequence(request.simulation.seed, spawn_key=(batch,)))
        count = min(BATCH, budget - batch * BATCH)
        if compiled:
            yield _compiled_runs(request, count, rng)
        else:
            seeds = rng.integers(2**62, size=count).tolist()
            if _in_blocks(request):
                yield values_of_runs(request, seeds)
                continue
            made = [values_of(request, run) for run in made_runs(request, seeds)]
            yield {name: np.stack([values[name] for values in made]) for name in made[0]}


def _compiled(request: Request) -> bool:
    """Whether all runs of a batch can be made at once by the compiled loops, which compute losses alone."""
    averages = ("tasks", "visited", "next", "learnt", "kept")
    plain = all(term.form is LOSS and term.average in averages and not term.held_out for term in request.terms)
    if request.linear is None or request.ordering.adaptive or not plain or request.averaged:
        return False
    return request.linear.alike or request.last * len(request.geometry.sigma) <= MOST_GAINS


def _in_blocks(request: Request) -> bool:
    """Whether runs are made in blocks: not if tasks are many and steps are more, which compiled runs make sooner."""
    if not in_blocks(request):
        return False
    size = runs_at_once(request)
    return seconds_of_blocks(request, size, size) < size * seconds_of_scored_run(request)


def _compiled_runs(request: Request, count: int, rng: np.random.Generator) -> Values:
    """Quantities of `count` runs of a linear scheme, made at once."""
    geometry, scheme, steps = request.geometry, request.linear_steps, request.steps
    threads = request.simulation.threads or cores()
    orders = drawn_orders(request.ordering, view_of(request.problem), request.last + request.one_more, count, rng)
    keep = np.unique(steps)
    # the compiled loops know what was forgotten, so that visited terms are that plus what was kept
    sums = {quantity.name: _beyond_kept(quantity) for quantity in request.quantities}
    losses = before = after = forgotten = np.empty(0)
    if any(average != "visited" for coefficients in sums.values() for average in coefficients):
        losses, before, after = batch_losses(geometry, scheme, orders, request.w0, keep, threads=threads)
    if request.averages("visited"):
        later = keep[keep > 0]
        lost = batch_forgetting(geometry, scheme, orders, request.w0, later, threads=threads)
        padded = np.concatenate([np.full((count, 1), np.nan), lost], axis=1)
        forgotten = padded[:, np.where(steps > 0, np.searchsorted(later, steps) + 1, 0)]

    def evaluate(average: Average) -> Array:
        match average:
            case "tasks":
                return losses[:, np.searchsorted(keep, steps)]
            case "learnt":
                return curve_at(paper_regret(before), steps)
            case "kept":
                return curve_at(paper_regret(after), steps)
            case "next":
                return next_at(before, steps)
        return forgotten

    values = {name: np.zeros((count, len(steps))) for name in sums}
    for name, coefficients in sums.items():
        for average, factor in coefficients.items():
            values[name] += factor * evaluate(average)
    return values


def _beyond_kept(quantity: Quantity) -> dict[Average, float]:
    """The coefficient of each average, with "visited" for the loss at w_k less that just after the visit."""
    sums: dict[Average, float] = {}
    for term in quantity.terms():
        sums[term.average] = sums.get(term.average, 0.0) + term.coefficient
    sums["kept"] = sums.get("kept", 0.0) + sums.get("visited", 0.0)
    return {average: factor for average, factor in sums.items() if factor}


def _simulate(request: Request) -> Outcome:
    """Means over runs, in rounds."""
    settings = request.simulation
    rtol, confidence = settings.rtol, settings.confidence
    budget = settings.most
    _require_room(request, budget)
    most = -(-budget // BATCH)
    parts: dict[str, list[Array]] = {quantity.name: [] for quantity in request.quantities}
    ranges = {quantity.name: value_range(request, quantity) for quantity in request.quantities}
    done, look = 0, 0
    trusted = None not in ranges.values()
    notes = caveats(request, ranges.values())
    while True:
        upto = most if rtol is None else min(most, max(1, 2 * done))
        for batch in _sample(request, range(done, upto), budget):
            for name, value in batch.items():
                parts[name].append(value)
        done, look = upto, look + 1
        spent_runs = min(budget, done * BATCH)
        # each look at the data spends its own share of the error probability, so that stopping early stays honest
        spent = confidence if rtol is None else 1 - (1 - confidence) / (look * (look + 1))
        samples = {name: np.concatenate(batches) for name, batches in parts.items()}
        values = {name: np.mean(value, axis=0) for name, value in samples.items()}
        intervals = {name: column_intervals(value, ranges[name], spent) for name, value in samples.items()}
        without_spread(request, values, intervals)
        if rtol is None:
            break
        widths = {name: np.diff(intervals[name], axis=-1)[..., 0] / 2 for name in values}
        wide = {name: widths[name] > rtol * np.abs(values[name]) for name in values}
        if not any(part.any() for part in wide.values()):
            break
        if spent_runs >= DEFAULT_RUNS and not any(values[name][wide[name]].any() for name in values):
            notes.append(
                f"rtol = {rtol:g} was not reached: it is relative to a value that is 0 in all {spent_runs} runs"
            )
            break
        # an interval becomes at best as many times narrower as there are more runs
        hopeless = (widths[name] * spent_runs / budget > rtol * np.abs(values[name]) for name in values)
        if spent_runs >= DEFAULT_RUNS and any(part.any() for part in hopeless):
            notes.append(
                f"rtol = {rtol:g} was not reached with {spent_runs} runs, and {budget}, which are the most, would not "
                "be enough; use an exact method, or a larger rtol"
            )
            break
        if done == most:
            notes.append(
                f"rtol = {rtol:g} was not reached with {spent_runs} runs: too much of the mean comes from rare and "
                "large values; an exact method, or smaller k, would answer this"
            )
            break
    quantiles = {
        quantity.name: column_quantiles(samples[quantity.name], spent, least_and_most(quantity, ranges[quantity.name]))
        for quantity in request.quantities
    }
    without_spread(request, values, quantiles)
    kind = "betting intervals for bounded values" if trusted else "normal intervals"
    return Outcome(
        f"{spent_runs} runs, {kind} at {confidence:g}",
        values,
        {name: np.diff(value, axis=-1)[..., 0] / 2 for name, value in intervals.items()},
        intervals,
        confidence,
        spent_runs,
        tuple(notes),
        quantiles=quantiles,
        ranges={name: known for name, known in ranges.items() if known is not None},
        seed=settings.seed,
        heading=RANDOM_ORDERS,
    )


def without_spread(request: Request, values: Values, intervals: Values) -> None:
    """Let all ends of intervals equal the value, in place, at the steps at which no order changes a quantity."""
    for quantity in request.quantities:
        if quantity.certain_at is not None:
            name, sure = quantity.name, request.steps == quantity.certain_at
            more = intervals[name].ndim - values[name].ndim
            intervals[name][sure] = values[name][sure].reshape(*values[name][sure].shape, *[1] * more)


def _room(request: Request, budget: int) -> tuple[float, float]:
    """Bytes for one batch of runs, and for the values of all of them."""
    steps, problem = len(request.steps), request.problem
    each = 32.0 * request.last  # orders, and losses before and after each step
    if request.linear is None or request.ordering.adaptive:
        each += 8.0 * steps * problem.dim
    return min(BATCH, budget) * each, 16.0 * budget * steps * _numbers(request)


def _numbers(request: Request) -> int:
    """The number of values that all quantities have at one k."""
    return sum(request.problem.num_tasks if quantity.per_task else 1 for quantity in request.quantities)


def _require_room(request: Request, budget: int) -> None:
    """Raise unless one batch of runs and the values of all runs fit in memory."""
    count, steps, last = min(BATCH, budget), len(request.steps), request.last
    held, kept = _room(request, budget)
    require_memory(held, f"{count} simulated runs of {last} steps", "use fewer runs or steps")
    require_memory(kept, f"the values of {budget} simulated runs at {steps} steps", "ask for fewer of them")
