"""Expectations of schemes whose step depends on the tasks seen, exactly, by a recursion over what is remembered.

A scheme states what its memory is a function of (`Scheme.memory_law`), how the memory changes with a task (`remember`),
and its step on a task where something is remembered, an affine map (`affine_step`). Runs with equal memories, and with
equal tasks to come, are taken together: A(c) = E[z z^T, memory c] obeys

    A'(c') = sum over (c, m) with remember(c, m) = c' of p(m | c) S_(m, c) A(c) S_(m, c)^T.

These are the sets of the tasks seen where the memory depends on the set (2^T at most, also with replacement, where a
set stays what it is when one of its tasks comes again), multisets or orders where it depends on them, and one memory in
a given order. A matrix E with -E <= (error of A) <= E in the order of symmetric matrices obeys the same recursion, as
in `moment_map`, and gathers what rounding and the errors of the maps add in each step.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import comb
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import EPS
from forgetting.dynamics.space import view_of
from forgetting.expectation.engines.base import Cost, Engine, register_engine
from forgetting.expectation.engines.costs import FLOPS, READING
from forgetting.expectation.engines.error_bounds import Pair
from forgetting.expectation.engines.exact import concluded, moment_map
from forgetting.expectation.engines.moment_map import MomentReading, Moments, Squares
from forgetting.expectation.engines.moment_readings import evaluated, readings_of
from forgetting.expectation.engines.order_tree import Tree
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.request import Request
from forgetting.geometry import Frame, Geometry
from forgetting.geometry.frame import RowEquations
from forgetting.orderings.laws import Fixed, Independent, Permutation, Reshuffled
from forgetting.schemes import Kaczmarz
from forgetting.schemes.affine import AffineStep

MOST_STATES = 1e7  # beyond it nobody waits for the answer
STATE = 4e-5  # seconds for a step from a memory, beside products of matrices
MOST_COLUMNS = 1000  # of w, for schemes whose step is not the same in all coordinates
MAP = 2e-4  # seconds for a map, beside its decomposition


@register_engine
class SeenEngine(Engine):
    """Second moments given what is remembered, for schemes that remember and follow from the tasks seen."""

    name = "seen"

    def covers(self, request: Request) -> str | None:
        scheme, geometry = request.scheme, request.problem.geometry
        law = scheme.memory_law
        if request.linear is not None or law not in ("set", "multiset", "order") or geometry is None:
            return f"it is for schemes whose memory follows from the tasks seen, not for {scheme}"
        if not isinstance(request.law, Independent | Permutation | Reshuffled | Fixed) or request.ordering.skips:
            return f"it does not cover {request.ordering}"
        odd = [quantity.name for quantity in request.quantities if not quantity.quadratic]
        if odd:
            return f"{odd[0]} is not a quadratic form of w"
        if request.averaged:
            return "it does not cover means of iterates"
        if self._states(request) > MOST_STATES:
            return f"there are more than {MOST_STATES:g} {law}s of tasks to follow"
        if not scheme.intrinsic and (geometry.frame.dual_basis is not None or _width(geometry) > MOST_COLUMNS):
            return f"{scheme} moves single coordinates of w, and is followed in up to {MOST_COLUMNS} of them"
        if scheme.affine_step(geometry if scheme.intrinsic else _in_coordinates_of_w(geometry), 0, ()) is None:
            return f"the step of {scheme} on these tasks is not stated as an affine map"
        return None

    def cost(self, request: Request) -> Cost:
        geometry, T = request.geometry, request.problem.num_tasks
        states = self._states(request)
        size = (geometry.dim if request.scheme.intrinsic else _width(geometry)) + request.constants
        counted = geometry.num_distinct if _counts(request) else 0
        branches = 1 if isinstance(request.law, Fixed) else T
        maps = min(states, 2.0**T if request.scheme.memory_law == "set" else np.inf) * branches
        rows = float(len(geometry.sigma))
        mapping = maps * (MAP + 20 * min(rows, size) * max(rows, size) * size / FLOPS)
        step = STATE + (2 + counted) * size**2 * (2e-9 + 6 * size / FLOPS)
        widest = min(states, 2.0**T * 4)
        needed = 8.0 * size**2 * (widest * (4 + counted) + min(maps, 2e4))
        return Cost(needed, mapping + states * branches * step + READING * len(request.steps))

    def solve(self, request: Request) -> Outcome:
        own = replace(request, scheme=Kaczmarz())  # of whose moment map the parts that know the data are used
        moments = moment_map(own)
        if request.scheme.reads_rows and not request.geometry.explained:
            moments = _with_constants(moments)  # a w that fits each task as well as any w misses some of its rows
        geometry = _in_best_coordinates(request.geometry)
        if not request.scheme.intrinsic:
            moments, geometry = _turned(moments, geometry), _in_coordinates_of_w(geometry)
        walk = _Walk(request, moments, geometry)
        values, doubts = evaluated(request, walk.moments, readings_of(walk, request, "memories"))
        words = {"set": "the set of the tasks seen", "multiset": "the visits to each task", "order": "the order so far"}
        detail = f"second moments given {words[request.scheme.memory_law]}, {walk.met} cases, with 16 digits"
        return concluded(request, values, doubts, detail)

    def _states(self, request: Request) -> float:
        """The number of memories from which steps are made, at most."""
        law, k, memory = request.law, request.last, request.scheme.memory_law
        T = request.problem.num_tasks
        if isinstance(law, Fixed) or memory == "order":
            return 1 + Tree.of(request).nodes(max(0, k - 1))
        if isinstance(law, Independent):
            T = int(np.count_nonzero(law.probabilities(view_of(request.problem))))
            if memory == "set":
                sizes = list(accumulate(comb(T, j) if T < 60 else 2.0**60 for j in range(min(k, T) + 1)))
                return float(sum(sizes[min(t, T)] for t in range(min(k, 2 * T))) + max(0, k - 2 * T) * sizes[-1])
            return float(comb(T + min(k, 10**4) - 1, T)) if T < 60 else 2.0**60
        whole, rest = divmod(k, T)
        return whole * 2.0 ** min(T, 60) + sum(comb(T, j) if T < 60 else 2.0**60 for j in range(rest + 1))


def _counts(request: Request) -> bool:
    """Whether visits to each task have to be counted, because what is remembered does not tell them."""
    return (
        request.averages("visited") and isinstance(request.law, Independent) and request.scheme.memory_law != "multiset"
    )


def _in_best_coordinates(geometry: Geometry) -> Geometry:
    """The geometry in the coordinates of its best bases, whose origin is known to more digits, rounded to float64."""
    best = geometry.best
    if best is geometry.plain or geometry.data is None:
        return geometry
    data, frame = geometry.data, best.frame
    rotation = frame[0].T if isinstance(frame, tuple) else None
    solution = best.solution[0].reshape(geometry.solution.shape)
    return replace(
        geometry,
        rows=best.rows[0],
        sigma=np.sqrt(best.squares[0]),
        targets=best.leftover[0].reshape(geometry.targets.shape),
        solution=solution,
        frame=Frame(geometry.frame.dim, rotation),
        row_equations=RowEquations(data.matrices, data.labels, data.divisors**-0.5, rotation, solution),
    )


def _width(geometry: Geometry) -> int:
    """The number of coordinates of w that some task has entries in."""
    basis = geometry.frame.basis
    return geometry.dim if basis is None else len(basis)


def _in_coordinates_of_w(geometry: Geometry) -> Geometry:
    """The geometry in the coordinates of w - w*, for schemes that leave the joint row space."""
    frame = geometry.frame
    if frame.basis is None:
        return geometry
    turned = Frame(frame.dim, columns=frame.columns)
    return replace(
        geometry, rows=geometry.rows @ frame.basis.T, solution=geometry.solution @ frame.basis.T, frame=turned
    )


def _turned(moments: Moments, geometry: Geometry) -> Moments:
    """The moments in the coordinates of w - w*; the geometry has the frame of those before."""
    basis = geometry.frame.basis
    if basis is None:
        return moments
    outputs = moments.size - moments.dim
    turn = np.zeros((len(basis) + outputs, moments.size))
    turn[: len(basis), : moments.dim] = basis
    turn[len(basis) :, moments.dim :] = np.eye(outputs)
    left, right, first = ((part[0] @ turn.T, part[1] @ turn.T) for part in (moments.left, moments.right, moments.first))
    doubts = moments.doubts
    more = (len(basis) / max(1, moments.dim)) ** 2
    return replace(
        moments,
        geometry=_in_coordinates_of_w(geometry),
        left=left,
        right=right,
        first=first,
        doubts=doubts._replace(first=turn @ doubts.first @ turn.T, noise=more * doubts.noise),
    )


def _with_constants(moments: Moments) -> Moments:
    """The moments of (z, 1), also where z = 0 fits each task as well as any z."""
    if moments.size > moments.dim:
        return moments
    outputs, rows = len(moments.first[0]), len(moments.squares[0])

    def widened(pair: Pair, columns: Array) -> Pair:
        return np.hstack([pair[0], columns]), np.hstack([pair[1], 0 * columns])

    nothing, ones = np.zeros((rows, outputs)), np.eye(outputs)
    first = np.pad(moments.doubts.first, (0, outputs))
    return replace(
        moments,
        left=widened(moments.left, nothing),
        right=widened(moments.right, nothing),
        first=widened(moments.first, ones),
        doubts=moments.doubts._replace(first=first),
    )


class _Group(NamedTuple):
    """What tells apart the runs that are not taken together.

    Attributes:
        visits: to each branch of the tree of orders; () where they are not needed, as with independent draws.
        memory: what the scheme remembers.
    """

    visits: tuple[int, ...]
    memory: Hashable


@dataclass(eq=False)
class _Moment:
    """E[x x^T] and the bound on its error of the runs of one group, times their probability; x is (z, 1).

    `counted` has E[c_m x x^T] for each distinct task m, with c_m the visits to m, or is empty.
    """

    second: Array
    error: Array
    counted: Array


@dataclass(eq=False)
class _Walk:
    """Learns one more task at a time, over all orders at once."""

    request: Request
    moments: Moments
    geometry: Geometry
    k: int = 0
    travelled: float = 0.0
    met: int = 0
    _maps: dict[tuple[int, Hashable], AffineStep] = field(default_factory=dict)

    def __post_init__(self) -> None:
        request, moments = self.request, self.moments
        self.tree = Tree.of(request).drawn(request)  # no scheme that remembers has its clones in one branch
        self.tasks, self.follows = self.tree.tasks, self.tree.chance is None or request.scheme.memory_law == "multiset"
        self.dim, self.size = moments.dim, moments.size
        self.constants = self.size - self.dim
        n, tasks = self.size, self.geometry.num_learned
        counted = np.zeros((tasks if _counts(request) else 0, n, n))
        start = _Group((0,) * len(self.tasks) if self.follows else (), ())
        self.groups = {start: _Moment(moments.second()[0], moments.doubts.first.copy(), counted)}
        rows = len(moments.squares[0])
        self.learnt, self.learnt_doubt = np.zeros(rows), np.zeros(rows)
        self.kept, self.kept_doubt = np.zeros(rows), np.zeros(rows)

    def chances(self, group: _Group) -> Array:
        """The probability of each branch to be learned next."""
        visits = np.array([group.visits], dtype=np.int64) if self.follows else np.zeros((1, len(self.tasks)), np.int64)
        return np.asarray(self.tree.chances(visits, self.k)[0])

    def step(self) -> None:
        """Learn one more task."""
        moments, following = self.moments, dict[_Group, _Moment]()
        for group, moment in self.groups.items():
            chances = self.chances(group)
            squares, doubts = self._read(moment.second, moment.error)
            weights = self._by_direction(chances)
            self.learnt += weights * squares
            self.learnt_doubt += weights * doubts
            for branch in np.flatnonzero(chances).tolist():
                self.met += 1
                task = int(self.tasks[branch])
                after = self._after(moment, self._map(task, group.memory), task, float(chances[branch]))
                squares, doubts = self._read(after.second, after.error)
                for own in self._blocks(int(self.geometry.index[task])):
                    self.kept[own] += squares[own]
                    self.kept_doubt[own] += doubts[own]
                to = self._following(group, branch)
                if to not in following:
                    following[to] = after
                    continue
                there = following[to]
                there.second += after.second
                there.error += after.error
                there.counted += after.counted
        # both before and after the step, since what was learned and what was kept is read at these points
        self.travelled += self._spread() + moments.doubts.base
        self.groups = following
        self.travelled += self._spread()
        self.k += 1

    def _following(self, group: _Group, branch: int) -> _Group:
        visits = group.visits
        if self.follows:
            visits = (*visits[:branch], visits[branch] + 1, *visits[branch + 1 :])
        return _Group(visits, self.request.scheme.remember(self.geometry, group.memory, int(self.tasks[branch])))

    def _map(self, task: int, memory: Hashable) -> AffineStep:
        """The step on a task, in units of the moments; without a push where some w solves all tasks."""
        if (task, memory) in self._maps:
            return self._maps[task, memory]
        made = self.request.scheme.affine_step(self.geometry, task, memory)
        assert made is not None
        push, noise = made.push / self.moments.unit, made.push_noise / self.moments.unit**2
        if not self.constants:  # z = 0 solves all tasks; if that is known up to rounding, steps may move it
            noise = 2 * (noise + push.T @ push) if self.moments.doubts.drift else 0 * noise
            push = push[:0]
        step = AffineStep(made.matrix, push, made.matrix_noise, noise)
        if len(self._maps) * self.dim**2 < 2**24:  # 128 MiB
            self._maps[task, memory] = step
        return step

    def _after(self, moment: _Moment, step: AffineStep, task: int, chance: float) -> _Moment:
        """The moment once a task was learned, times the chance that it was."""
        dim, n = self.dim, self.size
        whole = np.eye(n)
        whole[:dim, :dim] = step.matrix
        whole[:dim, dim:] = step.push.T
        second = whole @ moment.second @ whole.T
        likely = float(np.trace(moment.second[dim:, dim:])) if self.constants else 1.0
        carried = max(0.0, float(np.trace(moment.error)))
        spread, left = self._trace(moment.second) + carried, self._trace(second)
        # the map is off: t (S A S^T) + (1 + 1 / t) dS A dS^T for every t; what is mapped is A and its error
        off = 2 * (spread * step.matrix_noise + likely * step.push_noise)
        t = min(1.0, float(np.sqrt(np.trace(off) / left))) if left > 0 else 1.0
        # rounding: n terms a product, two products, and the sum over groups
        rounding = 4 * (n + 8) * EPS
        moved = 2 * (float(np.sum(step.matrix**2)) * spread + float(np.sum(step.push**2)) * likely)
        error = (1 + t) * (whole @ moment.error @ whole.T) + (t + 8 * EPS + self.moments.doubts.known) * second
        places = np.arange(n)
        own = 8 * (n + 8) * EPS * float(np.sum(whole**2)) * carried
        error[places, places] += np.where(places < dim, 2 * rounding * moved, 2 * rounding * likely) + own
        if t > 0:
            error[:dim, :dim] += (1 + 1 / t) * off
        counted = moment.counted
        if len(counted):
            counted = whole @ counted @ whole.T
            counted[self.geometry.index[task]] += second
        return _Moment(chance * second, chance * error, chance * counted)

    # ------------------------------------------------------------------------------------------------------ reading

    def _trace(self, second: Array) -> float:
        return float(self.moments.trace(second))

    def _spread(self) -> float:
        return sum(self._trace(moment.second) for moment in self.groups.values())

    def _read(self, second: Array, error: Array) -> tuple[Array, Array]:
        """b_i^T A b_i for each direction, and bounds on the errors."""
        (high, _), doubts = self.moments.read((second[None], np.zeros((1, *second.shape))), error[None])
        return high[0], doubts[0]

    def _blocks(self, task: int) -> list[slice]:
        """The directions of a distinct task, and those of its held-out data."""
        tests = [task + self.geometry.num_learned] if self.geometry.held_out else []
        return [self.geometry.block(m) for m in (task, *tests)]

    def _by_task(self, branches: Array) -> Array:
        """For each distinct task, the sum over its branches."""
        index = self.geometry.index[self.tasks]
        return np.asarray(np.bincount(index, branches, self.geometry.num_distinct), dtype=np.float64)

    def _by_direction(self, branches: Array) -> Array:
        """For each direction, the sum over the branches of its task; held-out data count when their task does."""
        return np.asarray(self._by_task(branches)[self.moments.observer])

    def reading(self, *, coming: bool) -> MomentReading:
        """The squares and sums that quantities are computed from; with `coming`, also those of the next task."""
        moments, tasks = self.moments, self.geometry.num_distinct
        now, visited, following = ([np.zeros(len(moments.squares[0])) for _ in range(2)] for _ in range(3))
        second, error = np.zeros((self.size, self.size)), np.zeros((self.size, self.size))
        for group, moment in self.groups.items():
            squares, doubts = self._read(moment.second, moment.error)
            second += moment.second
            error += moment.error
            now[0] += squares
            now[1] += doubts
            if self.follows:
                times = self._by_direction(np.array(group.visits, dtype=np.float64))
                visited[0] += times * squares
                visited[1] += times * doubts
            for m, matrix in enumerate(moment.counted):
                for own in self._blocks(m):
                    visited[0][own] += self._read(matrix, moment.error)[0][own]
            if coming:
                weights = self._by_direction(self.chances(group))
                following[0] += weights * squares
                following[1] += weights * doubts
        if not self.follows:  # visits add up to k, so that the errors of all counted moments are at most k E
            visited[1] = self.k * now[1]
        order, many, of_first = self.tree.order, len(self.tasks), self.chances(next(iter(self.groups)))
        ahead = np.full(many, 1 / many) if self.tree.chance is None else self.tree.chance  # expected, of any step
        visits = self.k * self._by_task(ahead)
        if order is not None:
            visits = self._by_task(np.bincount(order[: self.k], minlength=many).astype(np.float64))
            ahead = of_first
        chance, over = self._by_task(ahead), not of_first.any()
        pair, zeros = (second[None], np.zeros((1, *second.shape))), np.zeros(tasks)
        spread, spread_doubt = moments.spread(pair, error[None])
        return MomentReading(
            k=self.k,
            now=_squares(*now),
            visited=_squares(*visited),
            learnt=_squares(self.learnt, self.learnt_doubt),
            after=_squares(self.kept, self.kept_doubt),
            coming=_squares(*following) if coming and not over else None,
            visits=(visits, zeros),
            chance=(chance, zeros) if coming and not over else None,
            spread=(float(spread[0][0]), 0.0),
            spread_doubt=float(spread_doubt[0]),
            travelled=self.travelled,
            remembered=_squares(self.kept, self.kept_doubt),
        )


def _squares(value: Array, doubt: Array) -> Squares:
    pair: Pair = value.copy(), np.zeros_like(value)
    return Squares(pair, doubt.copy())
