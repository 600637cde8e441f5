"""Orderings and schemes without randomness: one run has all expected values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, quietly
from forgetting.core.progress import track
from forgetting.dynamics.trajectory import Trajectory
from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.costs import READING, reduction, seconds_of_run
from forgetting.expectation.engines.error_bounds import two_floats
from forgetting.expectation.engines.exact import in_two_floats, moment_map, products_of_step, refined
from forgetting.expectation.engines.moment_map import MomentReading, Moments
from forgetting.expectation.engines.moment_readings import evaluated
from forgetting.expectation.engines.run_bounds import RunBounds
from forgetting.expectation.engines.single_runs import RunReading, made_run, squared_norms, values_of
from forgetting.expectation.engines.two_float_moments import TwoFloatMoments
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.quantities import LOSS, Quantity, Term
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
                seconds += 5e-7 * last + 2.5e-9 * (products - LOOK * last * request.ordering.adaptive)
                seconds += last * 1e-4 * request.ordering.adaptive + 1e-9 * readings * last
        return Cost(0.0, seconds)

    def solve(self, request: Request) -> Outcome:
        quadratic = tuple(quantity for quantity in request.quantities if quantity.quadratic)
        if request.linear is not None and 0 < len(quadratic) < len(request.quantities):
            outcome = self.solve(replace(request, quantities=quadratic))
            others = replace(request, quantities=tuple(q for q in request.quantities if q not in quadratic))
            rest = self.solve(others)
            values, doubts = outcome.values | rest.values, outcome.uncertainty | rest.uncertainty
            values = {quantity.name: values[quantity.name] for quantity in request.quantities}
            return replace(outcome, values=values, uncertainty=doubts, intervals={})
        trajectory = made_run(request)
        detail = f"{request.ordering} has no randomness: one run"
        if request.linear is None or not quadratic or request.ordering.skips:
            values, doubts = values_of(request, trajectory), {}
            if request.linear is not None and not request.ordering.adaptive:
                reading = _DoubtsOfRun(request, trajectory, moment_map(request, as_run=True))
                doubts = reading.known(request.quantities)
            if len(doubts) < len(values):
                detail = f"{detail}, its rounding not bounded"
            return Outcome(detail, values, doubts, notes=trajectory.remarks, heading=ONE_RUN)
        twofold = in_two_floats(request, _products(request))
        moments = moment_map(request, twofold=twofold, as_run=not twofold)
        order, notes = request.geometry.distinct(trajectory.order), trajectory.remarks
        if isinstance(moments, TwoFloatMoments):
            if request.ordering.adaptive:
                order = _decided(moments, request, trajectory.k)
            values, doubts = evaluated(request, moments, _along(moments, order, request))
        else:
            if request.ordering.adaptive:
                notes = (*notes, "the order was chosen in float64: another processor may break near ties differently")
            values = values_of(request, trajectory)
            doubts = _DoubtsOfRun(request, trajectory, moments).known(request.quantities)
        return replace(refined(request, moments, values, doubts, f"{detail},", order, notes), heading=ONE_RUN)


def _products(request: Request) -> float:
    """Products of two numbers that a run takes, roughly."""
    geometry = request.geometry
    looks = LOOK if request.ordering.adaptive else 0.0
    return float(request.last * (products_of_step(request) / geometry.num_distinct + 4 * geometry.dim**2 + looks))


def _along(moments: Moments, order: IntArray, request: Request) -> Iterator[MomentReading]:
    """What is read at each step of one run through the distinct tasks of `order`."""
    tasks = moments.geometry.num_distinct
    nothing = np.zeros(tasks)
    for state in moments.states(request.steps, order):
        counts = np.bincount(order[: state.steps], minlength=tasks).astype(np.float64)
        chance = None
        if request.averages("next") and state.steps < len(order):
            chance = (np.arange(tasks) == order[state.steps]).astype(np.float64), nothing
        yield moments.reading(state, (counts, nothing), chance, certain=True)


def _decided(moments: TwoFloatMoments, request: Request, k: int) -> IntArray:
    """The first k distinct tasks that an ordering chooses by looking at the iterate, with 31 digits of the iterate.

    In float64, distances that are rounding decide differently on each processor.
    """
    tools, geometry = two_floats(), moments.geometry
    right, right_low = moments.right
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
        block, table = geometry.block(task), moments.tables.of(step + 1, 1)
        left, left_low = moments.left_of(table.row()[0])
        state = moments.shrunk(state, float(table.keep[0]))
        high, low = tools.products(right[block], right_low[block], *state)
        move, move_low = tools.products(left[block].T.copy(), left_low[block].T.copy(), high.T.copy(), low.T.copy())
        state = tools.sub(*state, move.T, move_low.T)
        state = np.ascontiguousarray(state[0]), np.ascontiguousarray(state[1])
    return order


class _DoubtsOfRun(RunReading):
    """Bounds on the rounding errors of the quantities of one run in float64, in the place of their values."""

    def __init__(self, request: Request, trajectory: Trajectory, moments: Moments) -> None:
        super().__init__(request, trajectory)
        self.bounds = RunBounds(request, moments)
        self.summing = (request.problem.num_tasks + trajectory.k + 64) * EPS

    def known(self, quantities: Iterable[Quantity]) -> Values:
        """The bounds of those quantities that have one."""
        able = [quantity for quantity in quantities if all(map(self._bounded, quantity.terms()))]
        with quietly():
            return {quantity.name: self.of(quantity) for quantity in able}

    def _bounded(self, term: Term) -> bool:
        return term.form.quadratic or (term.form.bounded and self.bounds.knows_iterates)

    def sum_of(self, terms: Sequence[Term], *, per_task: bool) -> Array:
        return super().sum_of([replace(t, coefficient=abs(t.coefficient)) for t in terms], per_task=per_task)

    def table(self, term: Term, run: Trajectory) -> Array:
        values, doubts = self.bounds.of_term(term, run, run.steps)
        return self._averaged(doubts, values)

    def visited(self, losses: Array, steps: IntArray) -> Array:
        tasks = self.bounds.distinct(held_out=False)[self.trajectory.order]
        doubts = self.bounds.of_form(LOSS, losses, tasks, self.bounds.off(steps) + self.bounds.seen(steps))
        return self._averaged(doubts, losses)

    def _averaged(self, doubts: Array, values: Array) -> Array:
        """The bounds, with the rounding of a mean of the values; infinite where a value is not known."""
        doubts = doubts + self.summing * np.abs(values)
        return np.where(np.isnan(doubts), np.inf, doubts)

    def evaluate(self, term: Term) -> Array:
        if term.average == "error":
            errors = self.trajectory.errors[np.searchsorted(self.trajectory.steps, self.steps)]
            doubt = self.bounds.of_error(squared_norms(errors), self.bounds.off(self.steps))
            return doubt + self.request.error_aside(self.steps)[1]
        return np.asarray(self._along(term).now.mean(axis=1)) if term.average == "tasks" else super().evaluate(term)
