"""Quantities of single runs in float64, which simulation averages; a run without randomness has their exact values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import quietly
from forgetting.dynamics.loop import run
from forgetting.dynamics.metrics import paper_regret
from forgetting.dynamics.taking_turns import runs_in_turn
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import OrderingError
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import LOSS, Form, Quantity, Term
from forgetting.expectation.request import Request
from forgetting.orderings.base import NO_UPDATE


class Along(NamedTuple):
    """A form along a run.

    Attributes:
        now: of every task at the steps of the request, (len(steps), T).
        before, after: of the task of each step, before and after it is learned, and 0 at a step that learns none; empty
            where no quantity needs them.
    """

    now: Array
    before: Array
    after: Array


def made_run(request: Request, seed: int = 0) -> Trajectory:
    """One run of the request, with one more step if a quantity looks at the next task and there is one."""

    def made(k: int) -> Trajectory:
        record = 1 if request.every_iterate else request.steps.tolist()
        return run(request.problem, request.ordering, k, request.scheme, seed, request.w0, record_every=record)

    try:
        return made(request.last + request.one_more)
    except OrderingError:
        if not request.one_more:
            raise
        return made(request.last)  # the visits end without having stated a limit


def made_runs(request: Request, seeds: Sequence[int]) -> list[Trajectory]:
    """One run of the request for each seed; see `made_run`."""
    record = 1 if request.every_iterate else request.steps.tolist()
    k = request.last + request.one_more
    try:
        return runs_in_turn(request.problem, request.ordering, k, seeds, request.scheme, request.w0, record)
    except OrderingError:
        return [made_run(request, seed) for seed in seeds]


def averaged(trajectory: Trajectory) -> Trajectory:
    """A run in which the mean of w_0, ..., w_(k-1) stands in the place of w_k, for forms at these means."""
    return replace(trajectory, states=trajectory.averaged_states)


@quietly()
def values_of(request: Request, trajectory: Trajectory) -> Values:
    """Every quantity of a run at the steps of the request."""
    reading = RunReading(request, trajectory)
    return {quantity.name: reading.of(quantity) for quantity in request.quantities}


class RunReading:
    """Quantities and their terms at the steps of a request, from one run."""

    def __init__(self, request: Request, trajectory: Trajectory) -> None:
        self.request, self.trajectory, self.steps = request, trajectory, request.steps
        self.tables: dict[tuple[Form, bool, str], Along] = {}
        self.evaluated: dict[tuple[Form, bool, str, str], Array] = {}

    def of(self, quantity: Quantity) -> Array:
        """A quantity at each step."""
        visits = np.cumsum(np.append(0, self.trajectory.order != NO_UPDATE))[self.steps]
        value = self.sum_of(quantity.after(2), per_task=quantity.per_task)
        if quantity.after(1) != quantity.after(2) and np.any(visits <= 1):
            value[visits <= 1] = self.sum_of(quantity.after(1), per_task=quantity.per_task)[visits <= 1]
        if quantity.needs_steps:
            value[self.steps == 0] = np.nan
        return value

    def sum_of(self, terms: Sequence[Term], *, per_task: bool) -> Array:
        """The sum of the terms."""
        total = np.zeros((len(self.steps), self.request.problem.num_tasks) if per_task else len(self.steps))
        for term in terms:
            key = term.form, term.held_out, term.iterate, term.average
            if key not in self.evaluated:
                self.evaluated[key] = self.evaluate(term)
            total += term.coefficient * self.evaluated[key]
        return total

    def evaluate(self, term: Term) -> Array:
        """A term without its coefficient."""
        trajectory, order = self.trajectory, self.trajectory.order
        where = np.searchsorted(trajectory.steps, self.steps)
        if term.average == "error":
            if self.request.linear is not None:
                return squared_norms(trajectory.errors)[where] + self.request.error_aside(self.steps)[0]
            iterates = trajectory.scaled_iterates
            return squared_norms(iterates - trajectory.problem.nearest_solution(iterates[0]))[where]
        if (term.average, term.form, term.held_out, term.iterate) == ("tasks", LOSS, False, "last"):
            return trajectory.losses[where]
        along = self._along(term)
        match term.average:
            case "each":
                return along.now
            case "tasks":
                return np.asarray(along.now.mean(axis=1))
            case "next":
                return next_at(along.before, self.steps)
            case "learnt":
                return curve_at(paper_regret(along.before, order), self.steps)
            case "kept":
                return curve_at(paper_regret(along.after, order), self.steps)
            case "incremental":
                return curve_at(_incremental(self.table(term, trajectory), order), self.steps)
        seen, visits, done = np.zeros(len(self.steps)), np.zeros(along.now.shape[1]), 0
        for i, k in enumerate(self.steps.tolist()):
            tasks = order[done:k]
            np.add.at(visits, tasks[tasks != NO_UPDATE], 1)
            done = k
            seen[i] = visits @ along.now[i] / max(visits.sum(), 1)
        return seen

    def table(self, term: Term, run: Trajectory) -> Array:
        """The form of every task at the recorded steps of a run, (len(run.steps), T)."""
        return term.form.along_tests(run) if term.held_out else term.form.along(run)

    def visited(self, losses: Array, steps: IntArray) -> Array:
        """The losses of the tasks of all steps, at iterates made by so many steps."""
        return losses

    def _along(self, term: Term) -> Along:
        """The form of the term along the run, or along the means of its iterates."""
        key = term.form, term.held_out, term.iterate
        if key not in self.tables:
            self.tables[key] = self._form_along(term)
        return self.tables[key]

    def _form_along(self, term: Term) -> Along:
        run = averaged(self.trajectory) if term.iterate == "mean" else self.trajectory
        table, order, steps = self.table(term, run), run.order, np.arange(run.k)
        now = table[np.searchsorted(run.steps, self.steps)]
        if term.form is LOSS and not term.held_out:
            return Along(now, self.visited(run.before, steps), self.visited(run.after, steps + 1))
        if len(table) <= run.k:
            return Along(now, np.empty(0), np.empty(0))
        before, after = (np.where(order == NO_UPDATE, 0.0, table[at, order]) for at in (steps, steps + 1))
        return Along(now, before, after)


def _incremental(table: Array, order: IntArray) -> Array:
    """The mean over the visits so far of the mean over the tasks visited by then; `table` has all steps."""
    updates = order != NO_UPDATE
    seen = np.zeros((len(order), table.shape[1]), dtype=bool)
    seen[np.flatnonzero(updates), order[updates]] = True
    seen = np.logical_or.accumulate(seen, axis=0)
    means = np.sum(np.where(seen, table[1 : len(order) + 1], 0.0), axis=1) / np.maximum(seen.sum(axis=1), 1)
    return paper_regret(means, order)


def squared_norms(states: Array) -> Array:
    """|z|^2 of each of a stack of states.

    >>> squared_norms(np.array([[3.0, 4.0]]))
    array([25.])
    """
    return np.asarray(np.sum(states.reshape(len(states), -1) ** 2, axis=1))


def curve_at(curve: Array, steps: IntArray) -> Array:
    """Values at the given steps of a curve over 1, ..., k (last axis); NaN at step 0.

    >>> curve_at(np.array([5.0, 6.0]), np.array([0, 2]))
    array([nan,  6.])
    """
    padded = np.concatenate([np.full((*curve.shape[:-1], 1), np.nan), curve], axis=-1)
    return np.asarray(padded[..., steps])


def next_at(curve: Array, steps: IntArray) -> Array:
    """The value of the curve at the step after each of the given steps (last axis); NaN where no step follows.

    >>> next_at(np.array([5.0, 6.0]), np.array([0, 2]))
    array([ 5., nan])
    """
    padded = np.concatenate([curve, np.full((*curve.shape[:-1], 1), np.nan)], axis=-1)
    return np.asarray(padded[..., steps])
