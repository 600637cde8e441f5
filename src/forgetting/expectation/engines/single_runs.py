"""Quantities of single runs in float64, which simulation averages; a run without randomness has their exact values."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.dynamics.loop import run
from forgetting.dynamics.metrics import paper_regret, quietly
from forgetting.dynamics.trajectory import Trajectory
from forgetting.errors import OrderingError
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import LOSS, Form, Quantity
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


def form_along(request: Request, trajectory: Trajectory, form: Form, held_out: bool = False) -> Along:
    """A form at the steps of the request, and before and after each step; of the tasks, or of their held-out data."""
    table = form.along_tests(trajectory) if held_out else form.along(trajectory)
    now = table[np.searchsorted(trajectory.steps, request.steps)]
    if form is LOSS and not held_out:
        return Along(now, trajectory.before, trajectory.after)
    if len(table) <= trajectory.k:
        return Along(now, np.empty(0), np.empty(0))
    steps, order = np.arange(trajectory.k), trajectory.order
    before, after = (np.where(order == NO_UPDATE, 0.0, table[at, order]) for at in (steps, steps + 1))
    return Along(now, before, after)


def averaged(trajectory: Trajectory) -> Trajectory:
    """A run in which the mean of w_0, ..., w_(k-1) stands in the place of w_k, for forms at these means."""
    return replace(trajectory, states=trajectory.averaged_states)


def values_of(request: Request, trajectory: Trajectory) -> Values:
    """Every quantity of a run at the steps of the request."""
    return {quantity.name: _value(request, trajectory, quantity) for quantity in request.quantities}


@quietly
def _value(request: Request, trajectory: Trajectory, quantity: Quantity) -> Array:
    steps, where = request.steps, np.searchsorted(trajectory.steps, request.steps)
    if quantity.average == "error":
        if request.linear is not None:
            return _squared_norms(trajectory.errors)[where]
        iterates = trajectory.scaled_iterates
        return _squared_norms(iterates - trajectory.problem.nearest_solution(iterates[0]))[where]
    if quantity.iterate == "mean":
        trajectory = averaged(trajectory)
        table = form_along(request, trajectory, quantity.form, quantity.held_out).now
        means = table if quantity.average == "each" else table.mean(axis=1)
        means[steps == 0] = np.nan
        return means
    if quantity.average == "tasks" and quantity.form is LOSS and not quantity.held_out:
        return trajectory.losses[where]
    along = form_along(request, trajectory, quantity.form, quantity.held_out)
    match quantity.average:
        case "each":
            return along.now
        case "tasks":
            return np.asarray(along.now.mean(axis=1))
        case "next":
            return next_at(along.before, steps)
        case "learnt":
            return curve_at(paper_regret(along.before, trajectory.order), steps)
        case "incremental":
            return curve_at(_incremental(quantity.form.along(trajectory), trajectory.order), steps)
    seen, visits, done = np.full(len(steps), np.nan), np.zeros(along.now.shape[1]), 0
    learned = np.zeros(len(steps))
    for i, k in enumerate(steps.tolist()):
        tasks = trajectory.order[done:k]
        np.add.at(visits, tasks[tasks != NO_UPDATE], 1)
        done = k
        learned[i] = visits.sum()
        seen[i] = visits @ along.now[i] / max(learned[i], 1) if k else np.nan
    if not quantity.subtracts_kept:
        return seen
    # nothing is forgotten after one visit, by definition
    kept = curve_at(paper_regret(along.after, trajectory.order), steps)
    return np.where((learned <= 1) & (steps > 0), 0.0, seen - kept)


def _incremental(table: Array, order: IntArray) -> Array:
    """The mean over the visits so far of the mean over the tasks visited by then; `table` has all steps."""
    updates = order != NO_UPDATE
    seen = np.zeros((len(order), table.shape[1]), dtype=bool)
    seen[np.flatnonzero(updates), order[updates]] = True
    seen = np.logical_or.accumulate(seen, axis=0)
    means = np.sum(np.where(seen, table[1 : len(order) + 1], 0.0), axis=1) / np.maximum(seen.sum(axis=1), 1)
    return paper_regret(means, order)


def _squared_norms(states: Array) -> Array:
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
