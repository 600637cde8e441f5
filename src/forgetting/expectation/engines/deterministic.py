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
from forgetting.expectation.engines.run_bounds import RunBounds
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
            rest = self.solve(others)
            values, doubts = outcome.values | rest.values, outcome.uncertainty | rest.uncertainty
            values = {quantity.name: values[quantity.name] for quantity in request.quantities}
            return replace(outcome, values=values, uncertainty=doubts, intervals={})
        trajectory = made_run(request)
        detail = f"{request.ordering} has no randomness: one run"
        if request.linear is None or not quadratic or request.ordering.skips:
            values, doubts = values_of(request, trajectory), {}
            if request.linear is not None and not request.ordering.adaptive:
                bounds = _DoubtsOfRun(request, trajectory, moment_map(request, as_run=True))
                known = {quantity.name: bounds.of_shares(quantity) for quantity in request.quantities}
                doubts = {name: doubt for name, doubt in known.items() if doubt is not None}
            if len(doubts) < len(values):
                detail = f"{detail}, its rounding not bounded"
            return Outcome(detail, values, doubts, notes=trajectory.remarks, heading=ONE_RUN)
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
            bounds = _DoubtsOfRun(request, trajectory, moments)
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


class _Undecided(Form):
    """The bounds on the errors of a form of iterates, in the place of its values."""

    quadratic = False

    def __init__(self, form: Form, bounds: RunBounds) -> None:
        self.form, self.bounds = form, bounds

    def along(self, run: Trajectory) -> Array:
        return self._along(run, held_out=False)

    def along_tests(self, run: Trajectory) -> Array:
        return self._along(run, held_out=True)

    def _along(self, run: Trajectory, *, held_out: bool) -> Array:
        return self.form.within(run, self.bounds.of_iterates(run.iterates, run.steps), held_out)[1]


class _DoubtsOfRun:
    """Bounds on the rounding errors of the quantities of one run in float64."""

    def __init__(self, request: Request, trajectory: Trajectory, moments: Moments) -> None:
        self.request, self.trajectory = request, trajectory
        self.bounds = RunBounds(request, moments)
        self.off, self.seen = self.bounds.off(request.steps), self.bounds.seen(request.steps)

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

    def of_shares(self, quantity: Quantity) -> Array | None:
        """`of` for a quantity whose forms are shares of rows; None if a form has no bound."""
        steps = self.request.steps
        total = np.zeros((len(steps), self.request.problem.num_tasks) if quantity.per_task else len(steps))
        for visits in (1, 2):
            own = (steps == 1) == (visits == 1)
            terms = quantity.after(visits) if own.any() else ()
            if not (self.bounds.knows_iterates and all(term.form.bounded for term in terms)):
                return None
            if terms:
                parts = tuple(
                    replace(term, form=_Undecided(term.form, self.bounds), coefficient=abs(term.coefficient))
                    for term in terms
                )
                doubts = replace(self.request, quantities=(Quantity("doubts", quantity.meaning, parts),))
                total[own] += values_of(doubts, self.trajectory)["doubts"][own]
        if quantity.needs_steps:
            total[steps == 0] = np.nan
        return np.asarray(total + 64 * EPS)

    def evaluate(self, term: Term) -> Array:
        """A bound on the error of a term, without its coefficient, at each step."""
        geometry, steps, mean = self.request.geometry, self.request.steps, term.iterate == "mean"
        if term.average == "error":
            value = np.sum(self.trajectory.errors.reshape(len(self.trajectory.errors), -1) ** 2, axis=1)
            return self.bounds.of_error(value[np.searchsorted(self.trajectory.steps, steps)], self.off)
        trajectory = averaged(self.trajectory) if mean else self.trajectory
        along = form_along(self.request, trajectory, term.form, term.held_out)
        distinct = self.bounds.distinct(term.held_out)
        far = ((1 + mean) * self.off + self.seen)[:, None]
        each = self.bounds.of_form(term.form, along.now, distinct, far)
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
                    doubts = self.bounds.of_form(term.form, values, distinct[past], self.off[i] + self.seen[i])
                result[i] = float(np.mean(doubts)) + k * EPS * float(np.mean(values))
        return result
