"""Simulation with intervals that hold for heavy tails.

At large k the loss of a random run is mostly tiny and rarely large, so the sample mean is far from normal and normal
intervals fail. But losses are bounded: errors never grow for gains in [0, 2], so L <= |X^T X / T| |z_0|^2 / 2, and
forgetting is at most R^2 |z_0|^2 / 2. The intervals bet against candidate means (Waudby-Smith and Ramdas 2024) and hold
for every bounded distribution at every sample size. Projections onto convex sets are bounded the same way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from forgetting._arrays import Array
from forgetting._memory import require_memory
from forgetting.dynamics.ensembles import batch_forgetting, batch_losses
from forgetting.dynamics.loop import view_of, whole_run
from forgetting.dynamics.metrics import paper_regret
from forgetting.errors import InvalidInputError
from forgetting.expectation.exact import curve_at, errors_of
from forgetting.expectation.progress import track
from forgetting.expectation.request import Request
from forgetting.expectation.result import Outcome
from forgetting.geometry import Geometry
from forgetting.orderings.base import drawn_orders
from forgetting.schemes import NLMS, POCS, GradientDescent, LinearScheme, RecursiveLeastSquares
from forgetting.schemes.linear import linear_gains
from forgetting.tasks.problem import no_common_solution

__all__ = ["bounded_interval", "column_intervals", "sample", "simulate", "value_range"]

BATCH = 1024  # runs simulated at once; part of what a seed means
DEFAULT_RUNS = 4096
SMALL = 2000  # dimension up to which the largest curvature is worth an eigenvalue


def sample(
    request: Request, seed: int, batches: Iterable[int], threads: int | None, budget: int
) -> Iterator[dict[str, Array]]:
    """Simulated values of the quantities at the steps asked for, batch by batch; shape (BATCH, len(steps), ...),
    fewer in the last one if `budget` runs are not whole batches."""
    problem, ordering, scheme, w0 = request.problem, request.ordering, request.scheme, request.w0
    steps, last = request.steps, request.last
    wanted = set(request.names)
    workers = threads or os.cpu_count() or 1
    for batch in track(list(batches), "simulating"):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(batch,)))
        count = min(BATCH, budget - batch * BATCH)
        found: dict[str, Array] = {}
        if isinstance(scheme, LinearScheme) and not ordering.adaptive and not wanted & {"error", "task_losses"}:
            geometry: Geometry = problem.geometry
            orders = drawn_orders(ordering, view_of(problem), last, count, rng)
            keep = np.unique(steps)
            where = np.searchsorted(keep, steps)
            if wanted & {"loss", "regret"}:
                losses, before, _ = batch_losses(geometry, scheme, orders, w0, keep, threads=workers)
                found["loss"] = losses[:, where]
                found["regret"] = curve_at(paper_regret(before), steps)
            if "forgetting" in wanted:
                later = keep[keep > 0]
                values = batch_forgetting(geometry, scheme, orders, w0, later, threads=workers)
                padded = np.concatenate([np.full((count, 1), np.nan), values], axis=1)
                found["forgetting"] = padded[:, np.where(steps > 0, np.searchsorted(later, steps) + 1, 0)]
        else:
            seeds = rng.integers(2**62, size=count).tolist()
            runs = [whole_run(problem, ordering, last, scheme, one, w0, record_every=steps.tolist()) for one in seeds]
            where = np.searchsorted(runs[0].steps, steps)
            found["loss"] = np.stack([one.losses[where] for one in runs])
            found["regret"] = np.stack([curve_at(one.regret, steps) for one in runs])
            if "forgetting" in wanted:
                found["forgetting"] = np.stack([curve_at(one.forgetting, steps) for one in runs])
            if "task_losses" in wanted:
                found["task_losses"] = np.stack([one.loss_matrix[where] for one in runs])
            if "error" in wanted:
                found["error"] = np.stack([errors_of(one)[where] for one in runs])
        yield {name: found[name] for name in wanted}


def value_range(request: Request, name: str) -> tuple[float, float] | None:
    """The interval that a quantity cannot leave, or None if none is known."""
    scheme = request.scheme
    if isinstance(scheme, POCS):
        return _projection_range(request, name)
    geometry = getattr(request.problem, "geometry", None)
    if geometry is None or not request.problem.realizability.holds:
        return None
    if isinstance(scheme, LinearScheme):
        gains = linear_gains(geometry, scheme)
        if np.any(gains < 0) or np.any(gains > 2):
            return None
    elif (
        isinstance(scheme, RecursiveLeastSquares)
        or (isinstance(scheme, GradientDescent) and not scheme.accelerated)
        or (isinstance(scheme, NLMS) and scheme.mu <= 2)
    ):
        gains = np.zeros(1)  # they never lengthen the error either, and need not solve the task
    else:
        return None
    gap = geometry.start(request.w0)
    size = float(gap @ gap)
    if name == "error":
        return 0.0, size
    top = 0.5 * float(np.max(geometry.norms, initial=0.0)) ** 2 * size
    if name == "loss" and 0 < geometry.dim <= SMALL:  # the mean over tasks is at most |z|^2/2 times its curvature
        top = min(top, 0.5 * float(np.linalg.eigvalsh(geometry.hessian)[-1]) * size)
    if name == "forgetting" and np.any(gains != 1):
        return -top, top
    return 0.0, top


def _projection_range(request: Request, name: str) -> tuple[float, float] | None:
    """Projections never move away from a common point w*, and L_m <= R^2/2 dist(., C_m)^2 is 0 on C_m.

    So losses, regret and forgetting lie between 0 and R^2/2 |w_0 - w*|^2, where R = 1 for the residual of sets.
    """
    radius, size = getattr(request.problem, "radius", None), request.distance_sq
    if radius is None or size is None:
        return None
    return 0.0, size if name == "error" else 0.5 * float(radius) ** 2 * size


def caveats(request: Request, ranges: Mapping[str, tuple[float, float] | None]) -> list[str]:
    """What a reader of simulated values should know; `ranges` are those of `value_range`."""
    if None not in ranges.values():  # there is a common solution, which the ranges come from
        return []
    notes = no_common_solution(request.problem)
    return [*notes, "no bound on the values is known here: the intervals are normal ones and fail for heavy tails"]


def bounded_interval(samples: Array, low: float, high: float, confidence: float) -> tuple[float, float]:
    """A confidence interval for the mean of samples known to lie in [low, high].

    >>> rng = np.random.default_rng(0)
    >>> a, b = bounded_interval(rng.random(1000), 0.0, 1.0, 0.99)
    >>> bool(a < 0.5 < b), bool(b - a < 0.08)
    (True, True)
    """
    from forgetting.expectation import _moment_kernels as kernels

    width = high - low
    if width <= 0:  # what there is beyond the range is rounding
        return min(low, float(np.min(samples))), max(high, float(np.max(samples)))
    scaled = np.clip((samples - low) / width, 0.0, 1.0)
    count = len(scaled)
    level = (1 - confidence) / 2
    # the stake on sample i may depend on the samples before it only
    index = np.arange(1, count + 1)
    mean = (0.5 + np.cumsum(scaled)) / (index + 1)
    spread = (0.25 + np.cumsum((scaled - mean) ** 2)) / (index + 1)
    variance = np.concatenate([[0.25], spread[:-1]])
    stakes = np.sqrt(2 * np.log(1 / level) / (count * variance))
    lower = kernels.betting_bounds(scaled, stakes, level, False)
    upper = kernels.betting_bounds(scaled, stakes, level, True)
    return low + width * lower, low + width * upper


def simulate(
    request: Request, seed: int, runs: int | None, rtol: float | None, confidence: float, threads: int | None
) -> Outcome:
    """Monte Carlo, in rounds that double until `rtol` is reached or `runs` are spent."""
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must be between 0 and 1, got {confidence:g}")
    budget = runs or (DEFAULT_RUNS if rtol is None else 2**20)
    _require_room(request, budget)
    most = -(-budget // BATCH)
    gathered: dict[str, list[Array]] = {name: [] for name in request.names}
    ranges = {name: value_range(request, name) for name in request.names}
    done, look = 0, 0
    trusted = None not in ranges.values()
    notes = caveats(request, ranges)
    while True:
        upto = most if rtol is None else min(most, max(1, 2 * done))
        for found in sample(request, seed, range(done, upto), threads, budget):
            for name, value in found.items():
                gathered[name].append(value)
        done, look = upto, look + 1
        spent_runs = min(budget, done * BATCH)
        # each look at the data spends its own share of the error probability, so that stopping early stays honest
        spent = confidence if rtol is None else 1 - (1 - confidence) / (look * (look + 1))
        samples = {name: np.concatenate(parts) for name, parts in gathered.items()}
        values = {name: np.mean(value, axis=0) for name, value in samples.items()}
        intervals = {name: column_intervals(value, ranges[name], spent) for name, value in samples.items()}
        for name in set(intervals) - {"regret"}:  # what no order changes has no spread
            sure = request.steps == (1 if name == "forgetting" else 0)
            intervals[name][sure] = values[name][sure][..., None]
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
    kind = "betting intervals for bounded values" if trusted else "normal intervals"
    return Outcome(
        "monte-carlo",
        f"{spent_runs} runs, {kind} at {confidence:g}",
        values,
        {name: np.diff(value, axis=-1)[..., 0] / 2 for name, value in intervals.items()},
        intervals,
        confidence,
        spent_runs,
        notes,
    )


def _require_room(request: Request, budget: int) -> None:
    """One batch of runs, and the values of all of them."""
    count, steps, last = min(BATCH, budget), len(request.steps), request.last
    values = 16.0 * steps * sum(request.problem.num_tasks if name == "task_losses" else 1 for name in request.names)
    each = 32.0 * last  # orders, and losses before and after each step
    if not isinstance(request.scheme, LinearScheme) or request.ordering.adaptive:
        each += 8.0 * steps * request.problem.dim
    require_memory(count * each, f"{count} simulated runs of {last} steps", "use fewer runs or steps")
    require_memory(budget * values, f"the values of {budget} simulated runs at {steps} steps", "ask for fewer of them")


def column_intervals(samples: Array, bounds: tuple[float, float] | None, confidence: float) -> Array:
    """An interval for the mean of each column; without bounds on the values, a normal one."""
    flat = samples.reshape(len(samples), -1)
    if bounds is None:
        from scipy.stats import norm

        middle = flat.mean(axis=0)
        spread = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], np.inf)
        half = norm.ppf((1 + confidence) / 2) * spread / np.sqrt(len(flat))
        pairs = np.stack([middle - half, middle + half], axis=-1)
    else:
        pairs = np.array(
            [
                (np.nan, np.nan)
                if np.isnan(column).any()
                else bounded_interval(np.ascontiguousarray(column), *bounds, confidence)
                for column in flat.T
            ]
        )
    return pairs.reshape(*samples.shape[1:], 2)
