"""Quantities of many runs of a linear scheme at once: the steps and the predictions of a block of runs are products.

The orders are those of single runs with the same seeds, and the values agree with theirs up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import quietly
from forgetting.dynamics.loop import seed_of_order
from forgetting.dynamics.metrics import paper_regret
from forgetting.dynamics.space import Reduced, view_of
from forgetting.dynamics.trajectory import Trajectory
from forgetting.expectation.engines.single_runs import curve_at, squared_norms
from forgetting.expectation.outcome import Values
from forgetting.expectation.quantities import LOSS, Form, Quantity, Term
from forgetting.expectation.request import Request
from forgetting.orderings import Visits
from forgetting.schemes.linear import linear_gains

ROOM = 2**22  # numbers of the states and iterates of a block: 32 MiB
MOST = 1024  # runs of a block


def in_blocks(request: Request) -> bool:
    """Whether runs can be made in blocks: no step looks at w but through the tasks, and forms depend on w alone."""
    if request.linear is None or request.ordering.adaptive or request.ordering.skips or not request.scheme.intrinsic:
        return False
    if request.problem.directions is not request.problem.geometry or request.averages("next"):
        return False
    return all(term.form.quadratic or term.form.bounded for term in request.terms)


def values_of_runs(request: Request, seeds: Sequence[int]) -> Values:
    """Every quantity of one run for each seed, at the steps of the request."""
    size = runs_at_once(request)
    parts = []
    for first in range(0, len(seeds), size):
        block = _Block(request, seeds[first : first + size])
        parts.append({quantity.name: block.of(quantity) for quantity in request.quantities})
    return {quantity.name: np.concatenate([part[quantity.name] for part in parts]) for quantity in request.quantities}


def runs_at_once(request: Request) -> int:
    """The number of runs of a block."""
    geometry, recorded = request.geometry, request.last + 1 if request.every_iterate else len(request.steps)
    each = recorded * ((2 * geometry.dim + geometry.frame.dim) * (geometry.outputs or 1) + request.problem.num_tasks)
    return int(np.clip(ROOM // max(1, each), 1, MOST))


def _recorded(request: Request) -> IntArray:
    """The steps whose iterates are needed."""
    return np.arange(request.last + 1) if request.every_iterate else np.unique(request.steps)


class _Block:
    """Some runs: their orders, their states at the recorded steps, and the quantities at the steps of the request.

    Attributes:
        orders: (runs, k).
        recorded: the recorded steps.
        states: (runs, len(recorded), D), or (runs, len(recorded), c, D) with c outputs.
        before, after: (runs, k), the loss of the task of each step before and after it is learned; empty if not needed.
    """

    @quietly()
    def __init__(self, request: Request, seeds: Sequence[int]) -> None:
        self.request, self.steps, self.recorded = request, request.steps, _recorded(request)
        self.orders = _orders(request, seeds)
        self.tables: dict[tuple[Form, bool, str], Array] = {}
        self.sums: dict[tuple[Form, bool, str, str], Array] = {}
        self._learn()

    def _learn(self) -> None:
        """Make all steps: those of one number that learn the same task are made at once."""
        geometry, steps = self.request.geometry, self.request.linear_steps
        runs, last = self.orders.shape
        start = geometry.start(self.request.w0)
        states = np.repeat(start[None], runs, axis=0)
        self.states = np.empty((runs, len(self.recorded), *start.shape))
        watched = any(t.form is LOSS and t.average in ("visited", "kept", "learnt") for t in self.request.terms)
        self.before, self.after = np.empty((2, runs, last if watched else 0))
        distinct, gains, scheme = geometry.distinct(self.orders), np.empty(0), None
        kept = 0
        for t in range(last + 1):
            if kept < len(self.recorded) and self.recorded[kept] == t:
                self.states[:, kept] = states
                kept += 1
            if t == last:
                return
            step = steps.at(t + 1)
            if step.scheme is not scheme:
                scheme, gains = step.scheme, linear_gains(geometry, step.scheme)
            by_task = np.argsort(distinct[:, t], kind="stable")
            tasks, firsts = np.unique(distinct[by_task, t], return_index=True)
            for task, own in zip(tasks.tolist(), np.split(by_task, firsts[1:]), strict=True):
                block, part = geometry.block(task), states[own]
                basis, targets, sigma = geometry.rows[block], geometry.targets[..., block], geometry.sigma[block]
                missed = _times(part, basis.T) - targets
                unfit = 0.0 if geometry.explained else float(geometry.unexplained[task])
                if watched:
                    self.before[own, t] = 0.5 * squared_norms(sigma * missed) + unfit
                if step.keep != 1:
                    part = step.keep * (part + geometry.solution) - geometry.solution  # w = 0 stays 0
                    missed = _times(part, basis.T) - targets
                if watched:
                    self.after[own, t] = 0.5 * squared_norms(sigma * (1 - gains[block]) * missed) + unfit
                states[own] = part - _times(missed * gains[block], basis)

    # ------------------------------------------------------------------------------------------------ quantities

    @quietly()
    def of(self, quantity: Quantity) -> Array:
        """A quantity of every run at each step."""
        value, few = self._sum_of(quantity.after(2), per_task=quantity.per_task), self.steps <= 1
        if quantity.after(1) != quantity.after(2) and np.any(few):
            value[:, few] = self._sum_of(quantity.after(1), per_task=quantity.per_task)[:, few]
        if quantity.needs_steps:
            value[:, self.steps == 0] = np.nan
        return value

    def _sum_of(self, terms: Sequence[Term], *, per_task: bool) -> Array:
        """The sum of the terms."""
        shape = (len(self.orders), len(self.steps), *((self.request.problem.num_tasks,) if per_task else ()))
        total = np.zeros(shape)
        for term in terms:
            key = term.form, term.held_out, term.iterate, term.average
            if key not in self.sums:
                self.sums[key] = self._evaluate(term)
            total += term.coefficient * self.sums[key]
        return total

    def _evaluate(self, term: Term) -> Array:
        """A term without its coefficient, (runs, len(steps)) or (runs, len(steps), T)."""
        at = np.searchsorted(self.recorded, self.steps)
        match term.average:
            case "error":
                states = self.states[:, at]
                squares = squared_norms(states.reshape(-1, *states.shape[2:])).reshape(states.shape[:2])
                return np.asarray(squares + self.request.error_aside(self.steps)[0])
            case "each":
                return self._table(term)[:, at]
            case "tasks":
                return np.asarray(self._table(term)[:, at].mean(axis=-1))
            case "learnt":
                return curve_at(paper_regret(self._of_visits(term, before=True)), self.steps)
            case "kept":
                return curve_at(paper_regret(self._of_visits(term, before=False)), self.steps)
            case "incremental":
                return curve_at(paper_regret(self._incremental(term)), self.steps)
        table, visits, done = self._table(term)[:, at], np.zeros((len(self.orders), self.request.problem.num_tasks)), 0
        seen = np.zeros((len(self.orders), len(self.steps)))
        runs = np.arange(len(self.orders))
        for i, k in enumerate(self.steps.tolist()):
            np.add.at(visits, (runs[:, None], self.orders[:, done:k]), 1)
            done = k
            seen[:, i] = np.einsum("rt,rt->r", visits, table[:, i]) / max(k, 1)
        return seen

    def _of_visits(self, term: Term, *, before: bool) -> Array:
        """The form of the task of each step, before or after it is learned, (runs, k)."""
        if term.form is LOSS and not term.held_out:
            return self.before if before else self.after
        table, runs = self._table(term), np.arange(len(self.orders))[:, None]
        return np.asarray(table[runs, np.arange(self.orders.shape[1]) + (not before), self.orders])

    def _incremental(self, term: Term) -> Array:
        """The mean over the tasks visited by then of the form after each step, (runs, k)."""
        runs, last = self.orders.shape
        seen = np.zeros((runs, last, self.request.problem.num_tasks), dtype=bool)
        seen[np.arange(runs)[:, None], np.arange(last), self.orders] = True
        seen = np.logical_or.accumulate(seen, axis=1)
        return np.asarray(np.sum(np.where(seen, self._table(term)[:, 1:], 0.0), axis=2) / seen.sum(axis=2))

    def _table(self, term: Term) -> Array:
        """The form of every task at the recorded steps of all runs, (runs, len(recorded), T)."""
        key = term.form, term.held_out, term.iterate
        if key not in self.tables:
            states = self._averaged() if term.iterate == "mean" else self.states
            runs, count = states.shape[:2]
            frame = self._frame(states.reshape(runs * count, *states.shape[2:]), np.tile(self.recorded, runs))
            table = term.form.along_tests(frame) if term.held_out else term.form.along(frame)
            self.tables[key] = table.reshape(runs, count, -1)
        return self.tables[key]

    def _averaged(self) -> Array:
        """The means of w_0, ..., w_(k-1), with w_0 at k = 0."""
        sums = np.cumsum(self.states[:, :-1], axis=1)
        counts = np.arange(1, sums.shape[1] + 1).reshape(-1, *[1] * (sums.ndim - 2))
        return np.concatenate([self.states[:, :1], sums / counts], axis=1)

    def _frame(self, states: Array, steps: IntArray) -> Trajectory:
        """A run with these states after so many steps, for forms, which depend on the states alone."""
        request, empty = self.request, np.empty(0)
        whole = np.zeros(request.last, dtype=np.int64)  # any tasks: only their number counts
        return Trajectory(
            problem=request.problem, ordering=request.ordering, scheme=request.scheme, seed=0, order=whole,
            steps=steps, inner_steps=whole, ending="", complaints=(), interrupted=False, w0=request.w0,
            states=states, before=empty, after=empty, _space=Reduced(request.geometry, request.w0),
        )  # fmt: skip


def _times(stack: Array, matrix: Array) -> Array:
    """Each row of a stack times a matrix, by one product."""
    flat = stack.reshape(prod(stack.shape[:-1]), stack.shape[-1]) @ matrix
    return flat.reshape(*stack.shape[:-1], matrix.shape[1])


def _orders(request: Request, seeds: Sequence[int]) -> IntArray:
    """The order of a run with each of the seeds, one per row."""
    view, orders = view_of(request.problem), np.empty((len(seeds), request.last), dtype=np.int64)
    for i, seed in enumerate(seeds):
        rng = np.random.default_rng(seed_of_order(seed))
        orders[i] = Visits(request.ordering, view, rng).take(request.last)
    return orders
