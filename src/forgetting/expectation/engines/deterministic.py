"""Orderings and schemes without randomness: one run has all expected values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import track
from forgetting.dynamics.trajectory import Trajectory
from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.costs import READING, reduction, seconds_of_run
from forgetting.expectation.engines.error_bounds import two_floats
from forgetting.expectation.engines.exact import in_two_floats, moment_map, products_of_step, refined
from forgetting.expectation.engines.moment_map import Moments, batches
from forgetting.expectation.engines.moment_readings import Concluded, conclude, tables
from forgetting.expectation.engines.single_runs import averaged, form_along, made_run, values_of
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.quantities import Form, Quantity, Term
from forgetting.expectation.request import Request
from forgetting.orderings import TaskView, Visits
from forgetting.orderings.view import rounding_of

ONE_RUN = "Values of the only possible run"
LOOK = 5e4  # products that take as long as a look at the iterate by an ordering, which is not compiled


@register_engine
class DeterministicEngine(Engine):
    """One run, computed again with 31 digits where that is quick and the scheme is linear."""

    name = "deterministic"

    def covers(self, request: Request) -> str | None:
        if request.deterministic:
            return None
        return f"{request.ordering if request.ordering.random else request.scheme} is random"

    def cost(self, request: Request) -> Cost:
        seconds, last, readings = seconds_of_run(request), request.last, len(request.steps)
        if request.linear is not None:
            seconds += reduction(request) + READING * readings
            if in_two_floats(request, products := _products(request)):
                seconds += 4e-9 * (products - LOOK * last * request.ordering.adaptive)
                seconds += last * 1e-4 * request.ordering.adaptive + 1e-9 * readings * last
        return Cost(0.0, seconds)

    def solve(self, request: Request) -> Outcome:
        quadratic = tuple(quantity for quantity in request.quantities if quantity.quadratic)
        if request.linear is not None and 0 < len(quadratic) < len(request.quantities):
            outcome = self.solve(replace(request, quantities=quadratic))
            others = replace(request, quantities=tuple(q for q in request.quantities if q not in quadratic))
            return replace(outcome, values={**outcome.values, **self.solve(others).values}, intervals={})
        trajectory = made_run(request)
        detail = f"{request.ordering} has no randomness: one run"
        if request.linear is None or not quadratic or request.ordering.skips:
            values = values_of(request, trajectory)
            detail = f"{detail}, its rounding not bounded"
            return Outcome(detail, values, notes=trajectory.remarks, heading=ONE_RUN)
        twofold = in_two_floats(request, _products(request))
        moments = moment_map(request, twofold=twofold, as_run=not twofold)
        order, notes = request.geometry.distinct(trajectory.order), trajectory.remarks
        if twofold:
            if request.ordering.adaptive:
                order = _decided(moments, request, trajectory.k)
            values, doubts = tables(_along(moments, order, request))
        else:
            if request.ordering.adaptive:
                notes = (*notes, "the order was chosen in float64: another processor may break near ties differently")
            values = values_of(request, trajectory)
            bounds = _RunBounds(request, trajectory, moments)
            doubts = {quantity.name: bounds.of(quantity) for quantity in request.quantities}
        return replace(refined(request, moments, values, doubts, f"{detail},", order, notes), heading=ONE_RUN)


def _products(request: Request) -> float:
    """Products of two numbers that a run takes, roughly."""
    geometry = request.geometry
    looks = LOOK if request.ordering.adaptive else 0.0
    return float(request.last * (products_of_step(request) / geometry.num_distinct + 4 * geometry.dim**2 + looks))


def _along(moments: Moments, order: IntArray, request: Request) -> Concluded:
    """Each quantity at each step of one run through the distinct tasks of `order`."""
    state = moments.begin(visits=False)
    tasks = moments.geometry.num_distinct
    nothing = np.zeros(tasks)
    concluded: Concluded = []
    for k, part in batches(request.steps, moments, order):
        moments.advance(state, part)
        if k is not None:
            counts = np.bincount(order[:k], minlength=tasks).astype(np.float64)
            chance = None
            if request.averages("next") and k < len(order):
                chance = (np.arange(tasks) == order[k]).astype(np.float64), nothing
            reading = moments.reading(state, (counts, nothing), chance, certain=True)
            concluded.append(conclude(moments, reading, request.quantities))
    return concluded


def _decided(moments: Moments, request: Request, k: int) -> IntArray:
    """The first k distinct tasks that an ordering chooses by looking at the iterate, with 31 digits of the iterate.

    In float64, distances that are rounding decide differently on each processor.
    """
    tools, geometry = two_floats(), moments.geometry
    (left, left_low), (right, right_low) = moments.left, moments.right
    state = moments.first

    def squares() -> Array:
        """(b_i . v)^2 for all R directions, summed over outputs."""
        high, _ = tools.products(right, right_low, *state)
        return np.asarray(np.sum(high**2, axis=1))

    def distances() -> Array:
        return np.asarray(moments.unit * np.sqrt(geometry.per_task(squares()))[geometry.index])

    def losses() -> Array:
        missed = 0.5 * moments.unit**2 * geometry.per_task(moments.squares[0] * squares())
        return np.asarray((missed + moments.unexplained[0])[geometry.index])

    rounding = moments.unit * rounding_of(state[0], geometry.solution / moments.unit, unit=two_floats().UNIT)
    view = TaskView(geometry.num_tasks, geometry.norms[geometry.index], distances, losses, lambda: rounding)
    visits = Visits(request.ordering, view, np.random.default_rng(0))
    order = np.empty(k, dtype=np.int64)
    for step in track(range(k), "order"):
        order[step] = task = int(geometry.index[visits.take(1)[0]])
        block = geometry.block(task)
        high, low = tools.products(right[block], right_low[block], *state)
        move, move_low = tools.products(left[block].T.copy(), left_low[block].T.copy(), high.T.copy(), low.T.copy())
        state = tools.sub(*state, move.T, move_low.T)
        state = np.ascontiguousarray(state[0]), np.ascontiguousarray(state[1])
    return order


class _RunBounds:
    """Bounds on the rounding errors of one run in float64, where the errors of all steps in z add up."""

    def __init__(self, request: Request, trajectory: Trajectory, moments: Moments) -> None:
        self.request, self.trajectory, self.moments = request, trajectory, moments
        steps, doubts = request.steps.astype(float), moments.doubts
        noise = float(np.max(doubts.noise[: request.geometry.num_learned, 1], initial=0.0))
        pace = noise * float(np.linalg.norm(moments.first[0])) + doubts.drift
        with np.errstate(over="ignore"):
            grown = moments.unit * (steps + 1) * moments.growth**steps
        self.off, self.seen = pace * grown, doubts.unsolved * grown  # of z, and as the rows see it

    def of(self, quantity: Quantity) -> Array:
        """A bound on the error of a quantity at each step."""
        geometry, steps = self.request.geometry, self.request.steps
        total = np.zeros((len(steps), geometry.num_tasks) if quantity.per_task else len(steps))
        for visits in (1, 2):
            own = (steps == 1) == (visits == 1)
            for term in quantity.after(visits) if own.any() else ():
                total[own] += abs(term.coefficient) * self.evaluate(term)[own]
        if quantity.needs_steps:
            total[steps == 0] = np.nan
        return total

    def evaluate(self, term: Term) -> Array:
        """A bound on the error of a term, without its coefficient, at each step."""
        geometry, steps, mean = self.request.geometry, self.request.steps, term.iterate == "mean"
        if term.average == "error":
            value = np.sum(self.trajectory.errors.reshape(len(self.trajectory.errors), -1) ** 2, axis=1)
            value = value[np.searchsorted(self.trajectory.steps, steps)]
            lost = self.off + self.moments.unit * self.moments.doubts.misplaced
            return np.asarray(2 * np.sqrt(value) * lost + lost**2 + 64 * geometry.dim * EPS * value)
        trajectory = averaged(self.trajectory) if mean else self.trajectory
        along = form_along(self.request, trajectory, term.form, term.held_out)
        self.distinct = geometry.index + (geometry.num_learned if term.held_out else 0)
        every = np.arange(geometry.num_tasks, dtype=np.int64)
        each = self._doubt(term.form, along.now, every, ((1 + mean) * self.off + self.seen)[:, None])
        if term.average == "each":
            return each
        if term.average == "tasks":
            return np.asarray(each.mean(axis=1) + geometry.num_tasks * EPS * np.abs(along.now.mean(axis=1)))
        result = np.zeros(len(steps))
        for i, k in enumerate(steps.tolist()):
            past = trajectory.order[:k]
            if term.average == "next":
                result[i] = each[i][trajectory.order[k]] if k < len(trajectory.order) else np.nan
            elif k:
                values, doubts = along.now[i][past], each[i][past]
                if term.average != "visited":
                    values = (along.before if term.average == "learnt" else along.after)[:k]
                    doubts = self._doubt(term.form, values, past, self.off[i] + self.seen[i])
                result[i] = float(np.mean(doubts)) + k * EPS * float(np.mean(values))
        return result

    def _doubt(self, form: Form, values: Array, which: IntArray, far: Array) -> Array:
        """Bounds on the errors of the forms of the tasks `which`, where z is off by `far`."""
        geometry, moments = self.request.geometry, self.moments
        largest = np.zeros(geometry.num_distinct)
        np.maximum.at(largest, geometry.owner, moments.weights(form)[0])
        tops = np.sqrt(largest)[self.distinct]
        labels, displaced = (part[self.distinct] for part in (moments.doubts.labels, moments.doubts.displaced))
        slips = moments.unit * (moments.slips(form)[self.distinct] * (1 + labels) + tops * displaced)
        e = tops[which] * far * np.sqrt(geometry.ranks[self.distinct][which]) + slips[which]
        return np.asarray(np.sqrt(2 * np.abs(values)) * e + e**2 + 64 * EPS * np.abs(values))
