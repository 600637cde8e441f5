"""Reshuffled orders at very large k: what one epoch does to second moments, raised to a power.

An epoch is a random permutation of all tasks, and acts on E z z^T by the map P[A] = E S_T ... S_1 A S_1 ... S_T. Each
S_m is symmetric and a permutation is as likely as its reverse, so that P is self-adjoint, and P^e comes from its
eigenvalues whatever e is. The part of an epoch that is left, k off a multiple of T, is walked from there over all sets
of tasks. P itself is made by walking one epoch from every matrix of a basis, D (D + 1) / 2 of them.

Errors: one step in float64 is off by at most s |A| (Frobenius norms; products of matrices of order D are off by D u
times the product of their norms, u the unit roundoff, bases by the angles that `Bases` states), an epoch by T s, and P,
column by column, by q = (D (D + 1) / 2)^(1/2) T s in operator norm. The residual of the computed eigenvectors is added
to q. Then P^e is off by at most e q (r + q)^(e-1), with r the largest eigenvalue, and by no more than 2 (r + q)^e; sums
of powers by the sums of that. Gains between 0 and 2 keep all norms of S_m at most 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import comb, prod
from typing import NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.core.progress import track
from forgetting.expectation.engines.base import Cost
from forgetting.expectation.engines.costs import FLOPS, reduction, states_needed
from forgetting.expectation.engines.exact import concluded, float64_map, kept_off, sums_of_terms
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.multisets import Edges, none_seen, one_more
from forgetting.expectation.engines.powers import differences, pack, unpack
from forgetting.expectation.outcome import Outcome
from forgetting.expectation.quantities import Form, Term
from forgetting.expectation.request import Request
from forgetting.orderings.laws import Reshuffled
from forgetting.schemes.linear import linear_gains

ROOM = 2**23  # numbers of the moments of one layer of the walk: 64 MiB
TINIEST = 1e-300


def raises_epochs(request: Request) -> bool:
    """Whether powers of epochs have all that is asked: reshuffled orders, equal steps of gains 0 to 2, a common w."""
    if not isinstance(request.law, Reshuffled) or request.linear is None or not request.linear.alike:
        return False
    if request.averaged or request.decays or not request.realizable or any(term.held_out for term in request.terms):
        return False
    if request.last < 2 * request.problem.num_tasks or not all(term.form.quadratic for term in request.terms):
        return False
    gains = linear_gains(request.geometry, request.linear_scheme)
    return bool(np.all((gains >= 0) & (gains <= 2)))


def cost_of_powers(request: Request) -> Cost:
    """Bytes and seconds: an epoch from each matrix of a basis, and the eigenvalues of P."""
    geometry, dim = request.geometry, request.geometry.dim
    states, widest = states_needed(geometry.counts, geometry.num_tasks)
    parents = states * float(np.sum(geometry.counts / (geometry.counts + 1.0)))
    epochs, first = len(np.unique(request.steps // request.problem.num_tasks)), reduction(request) + 5e-3

    def seconds(dim: int) -> float:
        order, product = dim * (dim + 1) / 2, dim**2 * (4e-9 + 4 * dim / FLOPS)
        taken = (order + 2 * epochs) * parents * product + parents * 2e-5 + 12 * order**3 / FLOPS
        return first + taken

    held = 8.0 * (dim**2 * (dim + 1) ** 2 + 4 * max(ROOM, widest * dim**2))
    most = next((size - 1 for size in range(1, dim + 1) if seconds(size) > request.patience), dim)
    reach = f"for T = {request.problem.num_tasks} tasks in D = {dim} dimensions; D = {most} would be quick enough"
    return Cost(held, seconds(dim), reach if 0 < most < dim else "")


def solve_by_powers(request: Request) -> Outcome:
    """Every quantity at the steps of the request, with bounds on the errors."""
    moments = float64_map(request, homogeneous=True)
    powers = _EpochPowers(request, moments)
    values, doubts = sums_of_terms(request, moments, powers.evaluate)
    order = powers.size * (powers.size + 1) // 2
    detail = f"the map of an epoch on matrices of order {powers.size}, {order} eigenvalues, and the rest of an epoch"
    return concluded(request, values, doubts, detail)


class _Layer(NamedTuple):
    """All multisets of one size, and how they come from those with one task less.

    Attributes:
        seen: (sets, distinct tasks), how often each task is in each set.
        weights: the probability of each set.
        moves: the ways from the layer before.
    """

    seen: IntArray
    weights: Array
    moves: list[Edges]

    @property
    def size(self) -> int:
        """The number of tasks in each set."""
        return int(self.seen[0].sum())


def _layers(counts: IntArray) -> list[_Layer]:
    """The layers of one epoch.

    >>> [layer.weights.round(3).tolist() for layer in _layers(np.array([1, 2]))]
    [[1.0], [0.667, 0.333], [0.333, 0.667], [1.0]]
    """
    total = int(counts.sum())
    seen, moves = none_seen(counts), list[Edges]()
    layers: list[_Layer] = []
    for size in range(total + 1):
        ways = [prod(comb(int(n), int(c)) for n, c in zip(counts, row, strict=True)) for row in seen]
        layers.append(_Layer(seen, np.array(ways) / comb(total, size), moves))
        seen, moves = one_more(seen, counts)
    return layers


class _Reading(NamedTuple):
    """Mean moments within an epoch: (n, n) of all sets, and (tasks, n, n) with the visits to each task, and coming."""

    mean: Array
    visited: Array
    coming: Array


@dataclass(eq=False)
class _EpochPowers:
    """P, its eigenvalues, and the terms of a request from them."""

    request: Request
    moments: Float64Moments
    _reached: dict[tuple[int, bool], tuple[Array, float]] = field(default_factory=dict)
    _walked: dict[tuple[int, bool], list[_Reading]] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """D, the order of the moments."""
        return self.moments.size

    @cached_property
    def tasks(self) -> int:
        """T, the number of steps of an epoch."""
        return self.request.problem.num_tasks

    @cached_property
    def layers(self) -> list[_Layer]:
        return _layers(self.request.geometry.counts)

    @cached_property
    def maps(self) -> Array:
        """S_m of each distinct task."""
        geometry, moments = self.request.geometry, self.moments
        left, right = moments.left[0], moments.right[0]
        blocks = [geometry.block(task) for task in range(geometry.num_distinct)]
        made = np.stack([np.eye(self.size) - left[block].T @ right[block] for block in blocks])
        return np.asarray((made + made.swapaxes(1, 2)) / 2)

    @cached_property
    def start(self) -> Array:
        return np.asarray(self.moments.second()[0])

    # ------------------------------------------------------------------------------------------------ an epoch

    def walk(self, stack: Array) -> Iterator[tuple[_Layer, Array]]:
        """Each layer of an epoch, with the moments of its sets (sets, matrices, n, n), from a stack of matrices."""
        n, moved = self.size, stack[None]
        for layer in self.layers:
            if layer.moves:
                before, moved = moved, np.zeros((len(layer.seen), *stack.shape))
                for edge in layer.moves:
                    step, share = self.maps[edge.task], edge.seen / layer.size
                    shape = len(edge.parents), len(stack), n, n
                    rows, many = shape[0] * shape[1] * n, (shape[0] * shape[1], n, n)
                    half = (before[edge.parents].reshape(rows, n) @ step).reshape(many)
                    whole = (half.swapaxes(1, 2).reshape(rows, n) @ step).reshape(shape)
                    moved[edge.children] += share[:, None, None, None] * whole
            yield layer, moved

    @cached_property
    def spectrum(self) -> tuple[Array, Array, float, float]:
        """Eigenvalues and eigenvectors (columns) of P, and the bounds q and r."""
        n = self.size
        order = n * (n + 1) // 2
        if order == 0:  # all tasks are zero
            return np.zeros(0), np.zeros((0, 0)), 0.0, 0.0
        widest = max(len(layer.seen) for layer in self.layers)
        columns, at_once = [], max(1, ROOM // max(1, widest * n**2))
        for first in track(range(0, order, at_once), "epochs"):
            unit = np.eye(order)[first : first + at_once]
            for _, moved in self.walk(unpack(unit, n)):
                last = moved
            columns.append(pack(last[0]))
        matrix = np.concatenate(columns)
        matrix = (matrix + matrix.T) / 2
        values, vectors = np.linalg.eigh(matrix)
        off = np.linalg.norm(matrix @ vectors - vectors * values) + 2 * order * EPS * np.sqrt(order)
        skew = np.linalg.norm(vectors.T @ vectors - np.eye(order)) + order**1.5 * EPS
        q = float(1.1 * np.sqrt(order) * self.tasks * self.slip + off + 5 * skew)
        return values, vectors, q, float(np.max(np.abs(values), initial=0.0))

    @cached_property
    def slip(self) -> float:
        """s, a bound on the error of one step, relative to the Frobenius norm of what it is applied to."""
        noise = float(np.max(self.moments.doubts.noise[:, 0], initial=0.0))  # of the bases and the gains, and more
        return 2 * noise + (2 * self.size**2 + 2 * self.tasks + 16) * EPS

    # --------------------------------------------------------------------------------------------- many epochs

    def reached(self, epochs: int, *, summed: bool) -> tuple[Array, float]:
        """P^e of the start, or the sum of P^i over i < e, and a bound on its error."""
        key = epochs, summed
        if key not in self._reached:
            values, vectors, q, r = self.spectrum
            start = pack(self.start)
            terms = differences(np.ones(1), values, epochs) if summed else np.power(values, epochs)
            moved = unpack(vectors @ (terms * (vectors.T @ start)), self.size)
            largest = float(np.max(np.abs(terms), initial=0.0))
            off = _power_error(q, r, epochs, summed=summed) + 2 * len(start) * EPS * largest
            first = float(np.linalg.norm(self.moments.doubts.first)) * (largest + off)
            self._reached[key] = moved, off * float(np.linalg.norm(start)) + first
        return self._reached[key]

    def walked(self, epochs: int, *, summed: bool) -> list[_Reading]:
        """The means within the epoch that follows, after each number of its steps."""
        key = epochs, summed
        if key not in self._walked:
            stack, _ = self.reached(epochs, summed=summed)
            counts, readings = self.request.geometry.counts, []
            for size, (layer, moved) in enumerate(self.walk(stack[None])):
                own, weights = moved[:, 0], layer.weights[:, None]
                visited = np.einsum("sm,sij->mij", weights * layer.seen, own)
                share = weights * (counts - layer.seen) / max(1, self.tasks - size)
                mean = np.einsum("s,sij->ij", layer.weights, own)
                readings.append(_Reading(mean, visited, np.einsum("sm,sij->mij", share, own)))
            self._walked[key] = readings
        return self._walked[key]

    # -------------------------------------------------------------------------------------------------- terms

    def forms(self, form: Form, *, kept: bool = False) -> Array:
        """Half the matrix of the form of each distinct task, or of what is left of it once the task is learned."""
        geometry, moments = self.request.geometry, self.moments
        weights = 0.5 * moments.weights(form)[0] * ((1 - moments.gains[0]) ** 2 if kept else 1.0)
        rows = moments.right[0]
        blocks = [geometry.block(task) for task in range(geometry.num_distinct)]
        return np.stack([(rows[block].T * weights[block]) @ rows[block] for block in blocks])

    def blurs(self, form: Form) -> Array:
        """By how much the form of what is left of a task once it is learned is off, since gains are; of each task."""
        return self.request.geometry.per_task(0.5 * kept_off(self.moments) * self.moments.weights(form)[0])

    def evaluate(self, term: Term, steps: IntArray) -> tuple[Array, Array]:
        """A term at some steps, without its coefficient, and a bound on its error."""
        geometry, unit = self.request.geometry, self.moments.unit**2
        shape = (len(steps), self.tasks) if term.average == "each" else (len(steps),)
        values, doubts = np.zeros(shape), np.zeros(shape)
        if term.average == "kept" and self.moments.solves:
            return values, doubts
        forms = self.forms(term.form, kept=term.average == "kept")
        if term.average == "error":
            forms = np.eye(self.size)[None]
        norms = np.linalg.norm(forms, axis=(1, 2))
        tops = np.max(np.linalg.eigvalsh(forms), axis=1, initial=0.0)
        blurs = self.blurs(term.form) if term.average == "kept" else 0 * norms
        for i, k in enumerate(steps.tolist()):
            epochs, rest = divmod(k, self.tasks)
            if term.average in ("learnt", "kept"):
                value, scale, off = self._over_steps(forms, norms, blurs, epochs, rest)
                value, scale, off = value / max(k, 1), scale / max(k, 1), off / max(k, 1)
                top = float(np.max(tops))
            else:
                reading, (_, wrong) = self.walked(epochs, summed=False)[rest], self.reached(epochs, summed=False)
                value, share = self._at(term, forms, reading, epochs, k)
                size = float(np.linalg.norm(self.reached(epochs, summed=False)[0]))
                scale, off, top = share @ norms * size, share @ norms * wrong, share @ tops
            slack = scale * (2 * self.tasks * self.slip + self.size**2 * EPS) + off
            misled = self.misled(k)
            slack = slack + 2 * np.sqrt(np.maximum(value + slack, 0) * top) * misled + top * misled**2
            values[i], doubts[i] = value * unit, slack * unit * (1 + 64 * EPS) + TINIEST
        left = self.moments.unexplained[0]
        if term.average == "each" and term.form.with_unfitted:
            values = values + left[geometry.index]
            doubts = doubts + self.moments.doubts.unexplained[geometry.index] + 8 * EPS * left[geometry.index]
        return values, self._of_weights(term.form, values, doubts)

    def _at(self, term: Term, forms: Array, reading: _Reading, epochs: int, k: int) -> tuple[Array, Array]:
        """A term after k steps, and how much each form counts in it at most."""
        geometry = self.request.geometry
        counts = geometry.counts / self.tasks
        match term.average:
            case "error":
                return np.asarray(np.trace(reading.mean)), np.ones(1)
            case "each":
                each = np.einsum("mij,ij->m", forms, reading.mean)[geometry.index]
                return each, np.eye(geometry.num_distinct)[geometry.index]
            case "tasks":
                return np.einsum("m,mij,ij->", counts, forms, reading.mean), counts
            case "next":
                return np.einsum("mij,mij->", forms, reading.coming), np.minimum(1.0, geometry.counts)
        seen = epochs * geometry.counts
        total = np.einsum("m,mij,ij->", seen, forms, reading.mean) + np.einsum("mij,mij->", forms, reading.visited)
        return total / max(k, 1), (seen + geometry.counts) / max(k, 1)

    def _over_steps(
        self, forms: Array, norms: Array, blurs: Array, epochs: int, rest: int
    ) -> tuple[Array, Array, Array]:
        """The sum over all steps of the form of the task that is learned, its scale, and a bound on its error."""
        total, scale, off = np.zeros(()), np.zeros(()), np.zeros(())
        for summed, taken in ((True, self.tasks if epochs else 0), (False, rest)):
            if taken:
                reached, wrong = self.reached(epochs, summed=summed)
                readings = self.walked(epochs, summed=summed)[:taken]
                total = total + sum(np.einsum("mij,mij->", forms, reading.coming) for reading in readings)
                scale = scale + taken * float(np.max(norms)) * float(np.linalg.norm(reached))
                off = off + taken * float(np.max(norms)) * wrong
                off = off + taken * float(np.max(blurs)) * (float(np.linalg.norm(reached)) + wrong)
        return total, scale, off

    def misled(self, k: int) -> float:
        """By how much z is off after k steps, in root mean square, because labels are only known up to rounding.

        A step moves it by `drift` at most; an epoch shrinks what is off by the root of |P[I]|.
        """
        doubts = self.moments.doubts
        if doubts.drift == 0:
            return 0.0
        values, vectors, q, _ = self.spectrum
        identity = pack(np.eye(self.size))
        shrunk = unpack(vectors @ (values * (vectors.T @ identity)), self.size)
        rate = np.sqrt(min(1.0, float(np.linalg.norm(shrunk, 2)) + 2 * q * np.sqrt(self.size)))
        drifts = min(float(k), self.tasks * (1 / (1 - rate) + 1)) if rate < 1 else float(k)
        return float(drifts * doubts.drift)

    def _of_weights(self, form: Form, values: Array, doubts: Array) -> Array:
        """Doubts with those of the singular values, from which the weights of a form come."""
        slips = float(np.max(self.moments.slips(form), initial=0.0))
        largest = float(np.sqrt(np.max(self.moments.weights(form)[0], initial=0.0)))
        share = 0.0 if largest == 0 else slips / largest
        return np.asarray(doubts + (4 * share + 64 * EPS) * np.abs(values))


def _power_error(q: float, r: float, epochs: int, *, summed: bool) -> float:
    """A bound on the error of P^e, or of the sum of P^i over i < e, in operator norm.

    >>> _power_error(1e-12, 0.5, 1, summed=False), _power_error(1e-12, 0.5, 10**15, summed=False)
    (1e-12, 0.0)
    >>> f"{_power_error(1e-12, 0.5, 10**15, summed=True):.1e}"
    '4.0e-12'
    """
    top = max(r, min(r + q, 1.0))  # P shrinks all matrices
    with np.errstate(under="ignore"):
        if not summed:
            return float(min(epochs * q * top ** max(epochs - 1, 0), 2 * top**epochs))
    gap = 1 - top
    return float(q * min(epochs**2 / 2 * max(1.0, top**epochs), 1 / gap**2 if gap > 0 else np.inf))
