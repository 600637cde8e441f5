"""All orders of a random ordering, one by one: the exact mean of whatever a run has, accuracies included.

Orders that begin alike share what they have learned: they are the paths of a tree, which is walked in depth, so that
few of its nodes are in memory at a time. Its level t holds the orders of t tasks, T!/(T - t)! without replacement and
T^t with it, each with its probability, so that one walk answers all k. Under linear schemes identical tasks are one
branch; schemes and forms of other kinds, which may tell them apart, are run in every order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import progress_bar
from forgetting.core.text import joined
from forgetting.dynamics.loop import run
from forgetting.dynamics.space import Reduced
from forgetting.dynamics.trajectory import Trajectory
from forgetting.expectation.engines.base import SOON, Cost, Engine, engines, register_engine
from forgetting.expectation.engines.costs import FLOPS, READING, reduction, seconds_of_run, seconds_of_scores
from forgetting.expectation.engines.exact import concluded, moment_map, sums_of_terms
from forgetting.expectation.engines.order_tree import ENDLESS, Tree, countless, walks
from forgetting.expectation.engines.run_bounds import RunBounds
from forgetting.expectation.engines.single_runs import values_of
from forgetting.expectation.outcome import Outcome, Values
from forgetting.expectation.quantities import Form, Quantity, Term
from forgetting.expectation.request import Request
from forgetting.geometry import Geometry
from forgetting.orderings import Explicit
from forgetting.orderings.laws import Fixed, Independent, Permutation, Reshuffled
from forgetting.schemes import LinearScheme
from forgetting.schemes.linear import linear_gains

ROOM = 2**24  # numbers of the nodes in memory: 128 MiB
LEARNING = 3e-4  # seconds of a step of a scheme that solves each task by a method of its own: 1e-4 to 7e-4
WITH_BOUNDS = 4  # times as long as scores alone take scores with bounds on their errors
MOST_NODES = 2**12  # of a block of nodes that is learned and read at once


@register_engine
class ListingEngine(Engine):
    """Every order that can come, weighted with its probability; for any quantity, and any scheme that draws nothing."""

    name = "listing"

    def covers(self, request: Request) -> str | None:
        if not isinstance(request.law, Independent | Permutation | Reshuffled | Fixed):
            return f"it lists permutations, independent draws and fixed orders, not what {request.ordering} chooses"
        if request.ordering.skips:
            return f"{request.ordering} has steps that learn no task"
        if request.scheme.random:
            return f"{request.scheme} draws random numbers, so that an order does not decide its run"
        if countless(request):
            return f"there are more than {ENDLESS:g} orders of {request.last} tasks to list"
        return None

    def cost(self, request: Request) -> Cost:
        tree = Tree.of(request)
        nodes = tree.nodes(request.last)
        if not walks(request, request.terms):
            orders = tree.width(request.last + request.one_more)
            unknown = LEARNING * request.last if request.linear is None else 0.0
            problem = request.problem
            needed = 64.0 * (request.last + 1.0) * (problem.dim * (problem.outputs or 1) + problem.num_tasks)
            return Cost(needed, orders * (seconds_of_run(request) + unknown + WITH_BOUNDS * seconds_of_scores(request)))
        read = nodes if request.every_iterate else float(sum(tree.width(k) for k in request.steps.tolist()))
        geometry = request.geometry
        size = (geometry.outputs or 1) * geometry.dim * (2 if request.averaged else 1)
        rank = len(geometry.sigma) / max(1, geometry.num_distinct)
        step = 1e-7 + size * (4e-9 + 8 * rank / FLOPS)
        begin = reduction(request) + 1e-8 * geometry.dim**2 + 2e-10 * geometry.dim**2 * geometry.rows_learned
        overhead = 5e-4 * min(float(request.last), nodes) + READING * len(request.steps)
        seconds = begin + overhead + nodes * step + read * WITH_BOUNDS * seconds_of_scores(request)
        return Cost(16.0 * min(ROOM, (nodes + 1) * _numbers(geometry)) + 64.0 * geometry.dim**2, seconds)

    def solve(self, request: Request) -> Outcome:
        tree, squares = Tree.of(request), tuple(quantity for quantity in request.quantities if quantity.quadratic)
        orders = tree.width(request.last)
        detail = f"{orders:,.0f} order{'s' if orders > 1 else ''}, each with its probability"
        if squares and len(squares) < len(request.quantities) and (engine := self._better(request, squares)):
            outcome = engine.solve(replace(request, quantities=squares))
            others = self.solve(replace(request, quantities=tuple(q for q in request.quantities if q not in squares)))
            found = others.values | outcome.values
            names = joined([quantity.name for quantity in squares])
            return replace(
                others,
                values={quantity.name: found[quantity.name] for quantity in request.quantities},
                detail=f"{others.detail}; {names} by the method {engine.name}: {outcome.detail}",
                uncertainty=others.uncertainty | outcome.uncertainty,
                intervals={},
                estimated=outcome.estimated,
                notes=tuple(dict.fromkeys((*others.notes, *outcome.notes))),
            )
        walked = tuple(quantity for quantity in request.quantities if walks(request, quantity.terms()))
        rest = tuple(quantity for quantity in request.quantities if quantity not in walked)
        values: Values = {}
        doubts: Values = {}
        notes: tuple[str, ...] = ()
        if walked:
            walk = _Walk(replace(request, quantities=walked), tree)
            values, known = walk.walk()
            doubts = {q.name: known[q.name] for q in walked if q.quadratic or walk.bounds.knows_iterates}
        if rest:
            told, notes = _one_by_one(replace(request, quantities=rest))
            values |= told
        if open_ones := [quantity.name for quantity in request.quantities if quantity.name not in doubts]:
            detail += f", rounding{f' of {joined(open_ones)}' if doubts else ''} not bounded"
        if not doubts:
            return Outcome(detail, values, notes=notes)
        outcome = concluded(request, {name: values[name] for name in doubts}, doubts, detail, notes)
        return replace(outcome, values={q.name: values[q.name] for q in request.quantities}, intervals={})

    def _better(self, request: Request, squares: tuple[Quantity, ...]) -> Engine | None:
        """The exact engine with more digits that has these quadratic quantities in no more time, if there is one."""
        part, limit = replace(request, quantities=squares), max(SOON, self.cost(request).seconds)
        for engine in engines.members():
            if engine is self or not engine.exact or engine.needs_realizable or engine.covers(part) is not None:
                continue
            cost = engine.cost(part)
            if cost.bytes <= request.memory and cost.seconds <= limit:
                return engine
        return None


def _numbers(geometry: Geometry) -> int:
    """The numbers of a node: its state, its iterate, and by how much it misses the tasks."""
    return (geometry.outputs or 1) * (2 * geometry.dim + geometry.frame.dim + len(geometry.sigma))


# ------------------------------------------------------------------------------------------------- runs, order by order


def _one_by_one(request: Request) -> tuple[Values, tuple[str, ...]]:
    """The mean of every quantity over a run in each order, for schemes and forms of any kind; and the remarks of a
    run, of the first that complains if there is one."""
    tree = Tree.of(request).drawn(request)
    length = request.last + request.one_more if tree.order is None else len(tree.order)
    sums = {quantity.name: _Sum() for quantity in request.quantities}
    record = 1 if request.every_iterate else request.steps.tolist()
    told: Trajectory | None = None
    with progress_bar("orders") as report:
        for done, (branches, weight) in enumerate(_orders(tree, length), 1):
            order = Explicit(tree.as_tasks(branches))
            made = run(request.problem, order, length, request.scheme, 0, request.w0, record_every=record)
            told = made if told is None or (made.complaints and not told.complaints) else told
            for name, value in values_of(request, made).items():
                sums[name].add(weight * value)
            report("orders", done, int(tree.width(length)))
    return {name: total.value for name, total in sums.items()}, () if told is None else told.remarks


def _orders(tree: Tree, length: int) -> Iterator[tuple[IntArray, float]]:
    """Yield all orders of so many branches, in depth, and their probabilities."""
    stack = [(np.zeros(0, dtype=np.int64), 1.0)]
    while stack:
        order, weight = stack.pop()
        if len(order) == length:
            yield order, weight
            continue
        visits = np.bincount(order, minlength=len(tree.tasks))[None]
        chances = tree.chances(visits, len(order))[0]
        stack += [(np.append(order, b), weight * chances[b]) for b in np.flatnonzero(chances)[::-1].tolist()]


# ------------------------------------------------------------------------------------------------------------ the walk


class _Sum:
    """A sum of arrays whose rounding error does not grow with their number (Kahan)."""

    def __init__(self) -> None:
        self.value: Array = np.zeros(())
        self.lost: Array = np.zeros(())

    def add(self, part: Array) -> None:
        part = np.asarray(part) - self.lost
        total = self.value + part
        self.lost = np.where(np.isfinite(total), (total - self.value) - part, 0.0)
        self.value = total


class _Block(NamedTuple):
    """Some nodes of one level of the tree.

    Attributes:
        t: the level.
        states: (n, D) or (n, c, D).
        sums: of the states before, if means of iterates are asked for.
        visits: (n, branches).
        last: the branch that was learned last.
        weights: the probabilities.
    """

    t: int
    states: Array
    sums: Array | None
    visits: IntArray
    last: IntArray
    weights: Array

    def parts(self, size: int) -> Iterator[_Block]:
        """The block in parts of at most so many nodes."""
        for first in range(0, len(self.states), size):
            own = slice(first, first + size)
            sums = None if self.sums is None else self.sums[own]
            yield _Block(self.t, self.states[own], sums, self.visits[own], self.last[own], self.weights[own])


Key = tuple[Term, int]


class _Walk:
    """Learns all nodes of the tree under a linear scheme, block by block, and adds up what quantities need of them."""

    def __init__(self, request: Request, tree: Tree) -> None:
        self.request, self.tree = request, tree.drawn(request)
        self.geometry, self.last = request.geometry, request.last
        self.steps_made = request.linear_steps
        self.bounds = RunBounds(request, moment_map(request, as_run=True))
        self.last_gains: tuple[LinearScheme, Array] | None = None
        self.known = self.bounds.moments.doubts.known
        self.wanted = dict.fromkeys(
            replace(term, coefficient=1.0) for q in request.quantities for n in (1, 2) for term in q.after(n)
        )
        self.steps = set(request.steps.tolist())
        self.sums: dict[Key, _Sum] = {}
        self.doubts: dict[Key, _Sum] = {}
        empty = np.empty(0)
        self.frame = Trajectory(
            problem=request.problem, ordering=request.ordering, scheme=request.scheme, seed=0,
            order=np.empty(0, dtype=np.int64), steps=np.empty(0, dtype=np.int64),
            inner_steps=np.empty(0, dtype=np.int64), ending="", complaints=(), interrupted=False, w0=request.w0,
            states=empty, before=empty, after=empty, _space=Reduced(self.geometry, request.w0),
        )  # fmt: skip

    def walk(self) -> tuple[Values, Values]:
        """Every quantity at the steps of the request, and bounds on the errors of those that have one."""
        m, start = len(self.tree.tasks), self.geometry.start(self.request.w0)[None]
        sums = np.zeros_like(start) if self.request.averaged else None
        nothing = np.zeros((1, m), dtype=np.int64)
        stack = [_Block(0, start, sums, nothing, np.zeros(1, dtype=np.int64), np.ones(1))]
        total, done = self.tree.nodes(self.last), 0
        with progress_bar("orders") as report:
            while stack:
                block = stack.pop()
                done += len(block.states)
                self.read(block)
                if block.t < self.last:
                    stack.extend(self.grown(block).parts(self.size))
                report("orders", done, int(total) + 1)
        over = np.array([self._over(k) for k in self.request.steps.tolist()])
        return sums_of_terms(self.request, None, self.evaluate, over=over)

    @cached_property
    def size(self) -> int:
        """The number of nodes of a block: as many as leave room for all blocks that wait."""
        branches = len(self.tree.tasks)
        waiting = max(1, branches * min(self.last, int(np.log2(min(self.tree.nodes(self.last), ENDLESS) + 2)) + 1))
        return int(np.clip(ROOM // (_numbers(self.geometry) * waiting), 1, MOST_NODES))

    def grown(self, block: _Block) -> _Block:
        """The nodes that follow those of a block."""
        geometry, chances = self.geometry, self.tree.chances(block.visits, block.t)
        rows, branches = np.nonzero(chances)
        by_branch = np.argsort(branches, kind="stable")
        rows, branches = rows[by_branch], branches[by_branch]
        step = self.steps_made.at(block.t + 1)
        gains, states = self._gains(step.scheme), block.states[rows]
        if step.keep != 1:
            states = step.keep * states + (step.keep - 1) * geometry.solution
        for branch in np.unique(branches).tolist():
            own = slice(*np.searchsorted(branches, [branch, branch + 1]).tolist())
            directions = geometry.block(int(geometry.index[self.tree.tasks[branch]]))
            basis, part = geometry.rows[directions], states[own]
            flat = part.reshape(prod(part.shape[:-1]), geometry.dim)
            missed = (flat @ basis.T).reshape(*part.shape[:-1], -1) - geometry.targets[..., directions]
            moved = (missed * gains[directions]).reshape(len(flat), -1) @ basis
            states[own] -= moved.reshape(part.shape)
        visits = block.visits[rows]
        visits[np.arange(len(rows)), branches] += 1
        sums = None if block.sums is None else (block.sums + block.states)[rows]
        return _Block(block.t + 1, states, sums, visits, branches, block.weights[rows] * chances[rows, branches])

    def _gains(self, scheme: LinearScheme) -> Array:
        """The gains of the directions; those of the last scheme are kept."""
        if self.last_gains is None or self.last_gains[0] is not scheme:
            self.last_gains = scheme, linear_gains(self.geometry, scheme)
        return self.last_gains[1]

    # -------------------------------------------------------------------------------------------------- reading

    def read(self, block: _Block) -> None:
        """Add what the quantities need of a block."""
        t, asked = block.t, block.t in self.steps
        tables: dict[tuple[Form, bool, str], tuple[Array, Array]] = {}
        for term in self.wanted:
            match term.average:
                case "learnt":
                    needed = t < self.last
                case "kept" | "incremental":
                    needed = t > 0
                case _:
                    needed = asked
            if not needed or (term.needs_steps and t == 0 and term.average != "learnt"):
                continue
            if term.average == "error":
                values = np.sum(block.states.reshape(len(block.states), -1) ** 2, axis=1)
                aside, off = self.request.error_aside(np.array([t]))
                self._add(term, block, values + aside, self.bounds.of_error(values, self._off(t)) + off)
                continue
            source = term.form, term.held_out, term.iterate
            if source not in tables:
                tables[source] = self._table(term, block)
            values, doubts = tables[source]
            self._add(term, block, self._averaged(term, block, values), self._averaged(term, block, doubts))

    def _add(self, term: Term, block: _Block, values: Array, doubts: Array) -> None:
        for table, part in ((self.sums, values), (self.doubts, doubts)):
            table.setdefault((term, block.t), _Sum()).add(block.weights @ part)

    def _off(self, t: int) -> Array:
        return self.bounds.off(np.array([t]))

    def _table(self, term: Term, block: _Block) -> tuple[Array, Array]:
        """The form of every task at each node, and bounds on the errors."""
        states = block.states
        if term.iterate == "mean" and block.sums is not None:
            states = block.sums / block.t
        steps = np.full(len(states), block.t)
        order = np.zeros(block.t, dtype=np.int64)  # any tasks: only their number counts
        return self.bounds.of_term(term, replace(self.frame, states=states, order=order, steps=steps), steps)

    def _averaged(self, term: Term, block: _Block, table: Array) -> Array:
        """The average of a term at each node, from the table of all tasks."""
        own = table[:, self.tree.tasks]
        match term.average:
            case "each":
                return table
            case "tasks":
                return np.asarray(table.mean(axis=1))
            case "visited":
                return np.asarray(np.sum(block.visits * own, axis=1) / block.t)
            case "kept":
                return np.asarray(own[np.arange(len(own)), block.last])
            case "incremental":
                seen = np.minimum(block.visits, self.tree.counts)
                return np.asarray(np.sum(seen * own, axis=1) / seen.sum(axis=1))
        return np.asarray(np.sum(self.tree.chances(block.visits, block.t) * own, axis=1))

    # ----------------------------------------------------------------------------------------------- quantities

    def evaluate(self, term: Term, steps: IntArray) -> tuple[Array, Array]:
        """A term at some steps, without its coefficient, from what was added up, and a bound on its error."""
        values, doubts = zip(*(self._evaluated(replace(term, coefficient=1.0), k) for k in steps.tolist()), strict=True)
        return np.array(values), np.array(doubts)

    def _evaluated(self, term: Term, k: int) -> tuple[Array, Array]:
        part, off = self._at(self.sums, term, k), self._at(self.doubts, term, k)
        # weights are products of k probabilities, and sums of them are made in blocks
        off = off + (k * (self.known + 4 * EPS) + 64 * EPS) * np.abs(part)
        if term.form.quadratic:  # NaN is more than float64 can hold
            part = np.where(np.isnan(part), np.inf, part)
        return part, np.where(np.isfinite(part) & ~np.isnan(off), off, np.inf)

    def _over(self, k: int) -> bool:
        """Whether no task comes after k steps."""
        limit = self.request.ordering.limit(self.request.problem.num_tasks)
        order = self.tree.order
        return (limit is not None and k >= limit) or (order is not None and k >= len(order))

    def _at(self, table: dict[Key, _Sum], term: Term, k: int) -> Array:
        """What was added up of a term at level k, or on the way to it."""
        if term.average not in ("learnt", "kept", "incremental"):
            return table[term, k].value if (term, k) in table else np.zeros(self._shape(term))
        first = 0 if term.average == "learnt" else 1
        parts = [table[term, t].value for t in range(first, first + k)]
        return np.asarray(np.sum(parts, axis=0) / max(k, 1))

    def _shape(self, term: Term) -> tuple[int, ...]:
        return (self.request.problem.num_tasks,) if term.average == "each" else ()
