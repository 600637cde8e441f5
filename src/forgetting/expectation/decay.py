"""`decay_rate`, the speed at which the error falls in the long run, and the weights of draws that make it the least.

The rate of independent draws is the largest eigenvalue of Q: max <V, Q[V]> over symmetric V of norm 1. Q is linear in
the weights, so that the rate is convex. Any V gives a cut, the linear function p -> sum_m p_m <V, S_m V S_m>, which is
nowhere above the rate. For numbers y_j >= 0 that sum to 1, min_m sum_j y_j cut_jm is then a bound that no weights go
below (linear programming duality), whatever the accuracy of the eigenvectors that made the cuts and of the program that
found y.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, quietly
from forgetting.errors import NotSupportedError
from forgetting.expectation.api import ask
from forgetting.expectation.engines import engines
from forgetting.expectation.engines.costs import states_needed
from forgetting.expectation.engines.exact import float64_map, refusal
from forgetting.expectation.engines.float64_moments import Float64Moments
from forgetting.expectation.engines.multisets import Edges, none_seen, one_more
from forgetting.expectation.engines.powers import OVERFLOW, diagonalise, pack, unpack
from forgetting.expectation.engines.spectral import decay
from forgetting.orderings.base import OrderingLike
from forgetting.orderings.laws import Cycle, Independent, Reshuffled
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem

__all__ = ["decay_rate"]

MOST_SECONDS = 600.0  # for the decay rate of reshuffled epochs
LARGEST = 4000  # the order of a matrix whose eigenvalues take minutes
APPLICATIONS = 300  # of a map that Lanczos takes to find its largest eigenvalue, or more
PART = 2**24  # numbers held at once: 128 MiB

# the search for the least rate
GAP = 1e-6  # in the rate, between that of the best weights and the bound, at which the search ends
FIRST = 20  # evaluations of the rate by cutting planes alone, which is all that simple problems need
FIRST_LARGE = 3  # the same where one evaluation takes a while
DESCENT = 200  # evaluations by quadratic programs
MOST = 400  # evaluations in all
TOP = 3  # eigenvectors of each evaluation that make cuts
DENSE = 500  # the order up to which Q is diagonalised outright
WIDTH = 60  # vectors that a Lanczos run keeps
ROUNDS = 100  # restarts of a rough Lanczos run


@quietly()  # what overflows is found, and said
def decay_rate(problem: Problem, ordering: OrderingLike, scheme: SchemeLike | None = None) -> float:
    """The factor by which E|w_k - w*|^2 falls per step in the long run, for a linear scheme.

    Independent draws: the largest eigenvalue of Q on the row space. An order that repeats after T steps has the T-th
    root of what an epoch does, so that |w_(k+T) - w*|^2 is about rate^T |w_k - w*|^2: cyclic orders that of the squared
    spectral radius of S_T ... S_1 (for `Cyclic(order=...)` over its tasks, with their number in place of T), and
    reshuffled epochs that of the largest eigenvalue of A -> E S_pi(T) ... S_pi(1) A S_pi(1) ... S_pi(T) over
    permutations pi, computed over the sets of seen tasks as the method "subsets" does. The rate is 0 where an epoch
    leaves no more than rounding.

    Where no w solves all tasks there is no w* to approach, and the rate is that of E|w_k - v_k|^2 for two runs that
    learn the same tasks from different starts. Expected values then approach their limits (`expect` with k = inf) by
    this factor per step or by the largest eigenvalue of sum_m p_m S_m, which is at most the root of the rate.

    >>> import forgetting as fg
    >>> lines = fg.families.two_lines(np.pi / 3)
    >>> rate = fg.decay_rate(lines, fg.orderings.WithReplacement())
    >>> round(rate, 12)   # (1 + cos^2 theta) / 2
    0.625
    >>> round(fg.decay_rate(lines, fg.orderings.Cyclic()), 12)   # cos^2 theta
    0.25
    """
    request = ask(problem, ordering, 1, scheme).request
    reason = refusal(request, Independent, Cycle, Reshuffled, alike=True)
    if reason is not None:
        orders = "independent draws, cyclic orders or reshuffled epochs"
        raise NotSupportedError(f"the decay rate is that of {orders} under a linear scheme: {reason}")
    moments, T = float64_map(request, homogeneous=True), problem.num_tasks
    match request.law:
        case Independent():
            return decay(moments)
        case Cycle():
            if moments.size > LARGEST:
                raise NotSupportedError(f"the decay rate of a cyclic order takes D <= {LARGEST}, got {moments.size}")
            tasks = request.law.epoch(T)
            epoch, T = float(np.square(_radius(moments, moments.geometry.index[tasks]))), len(tasks)
        case _:
            needed, seconds, _ = engines.get("subsets").cost(replace(request, steps=np.array([T])))
            order = moments.size * (moments.size + 1) // 2
            if needed > request.memory or seconds * min(order, APPLICATIONS) > MOST_SECONDS:
                states, _ = states_needed(moments.geometry.counts, T)
                raise NotSupportedError(
                    f"the decay rate of reshuffled epochs would go through {states:.3g} sets of tasks"
                )
            epoch = decay(_Epoch(moments))
    if not np.isfinite(epoch):
        raise NotSupportedError(OVERFLOW)
    return 0.0 if epoch <= 64 * T * moments.size * EPS else float(epoch ** (1 / T))


def _radius(moments: Float64Moments, order: IntArray) -> float:
    """The spectral radius of S_T ... S_1, for the distinct tasks 1, ..., T of `order`."""
    product = np.eye(moments.size)
    for task in order.tolist():
        block = moments.geometry.block(task)
        product -= moments.left[0][block].T @ (moments.right[0][block] @ product)
    if not np.isfinite(product).all():
        raise NotSupportedError(OVERFLOW)
    return float(np.max(np.abs(np.linalg.eigvals(product)), initial=0.0))


class _Epoch:
    """The map from a second moment to its mean over permutations after an epoch; self-adjoint, as Q is."""

    def __init__(self, moments: Float64Moments) -> None:
        self.moments, self.size, self.device = moments, moments.size, moments.device
        counts = moments.geometry.counts
        seen, self.layers = none_seen(counts), list[tuple[int, list[Edges]]]()
        for _ in range(moments.geometry.num_tasks):
            seen, edges = one_more(seen, counts)
            self.layers.append((len(seen), edges))
        widest = max((count for count, _ in self.layers), default=1)
        self.part = max(1, int(PART / (widest * max(1, self.size) ** 2)))

    def apply(self, matrices: Array) -> Array:
        """The map at one matrix, or at each of several (along the first axis)."""
        if matrices.ndim == 2:
            return self._after(matrices)
        return np.concatenate([self._after(matrices[i : i + self.part]) for i in range(0, len(matrices), self.part)])

    def _after(self, matrices: Array) -> Array:
        layer = matrices[None]
        for size, (count, edges) in enumerate(self.layers, 1):
            grown = np.zeros((count, *matrices.shape))
            for edge in edges:
                for parent, child, _, seen in edge.single():  # what is learned at once should fit in the cache
                    grown[child] += self.moments.step(edge.task, layer[parent]) * (seen / size)
            layer = grown
        return np.asarray(layer[0])


# ------------------------------------------------------------------------------------------------- the least rate


class DecayOptimum(NamedTuple):
    """Weights of the distinct tasks, their decay rate, a bound that no weights go below, and the number of cuts."""

    weights: Array
    rate: float
    least: float
    cuts: int


def least_decay(moments: Float64Moments, start: Array) -> DecayOptimum:
    """The weights of distinct tasks with the least decay rate.

    Linear programs over cuts (Kelley) find the optimum of simple problems at once; they also prove `least`. Where the
    gap stays above 1e-6, the largest three eigenvalues are minimised as smooth functions (quadratic programs, SLSQP),
    which identifies the weights of ordinary problems in tens of evaluations; every evaluation adds its cuts. Each
    evaluation is a Lanczos run on matrices of order D, or a diagonalisation for D < 32.
    """
    search = _BestWeights(moments)
    if not moments.size:
        return DecayOptimum(start, 0.0, 0.0, 0)
    search.evaluate(start)
    search.cut_until(FIRST if moments.size * (moments.size + 1) // 2 <= DENSE else FIRST_LARGE)
    if search.gap > GAP:
        search.descend(DESCENT)
        search.cut_until(MOST)
    return DecayOptimum(search.best, search.rate, min(search.least, search.rate), len(search.cuts))


def rate_of(moments: Float64Moments, weights: Array) -> float:
    """The decay rate with these weights of distinct tasks."""
    if not moments.size:
        return 0.0
    values, _, settled = _top(_weighted(moments, weights), 1, None, rough=False)
    return float(values[-1]) if settled else decay(_weighted(moments, weights))


class _EnoughError(Exception):
    """The allowed number of evaluations was made."""


class _BestWeights:
    def __init__(self, moments: Float64Moments) -> None:
        self.moments, self.count = moments, moments.geometry.num_distinct
        self.cuts: list[Array] = []
        self.evaluations = 0
        self.best, self.rate, self.least = np.full(self.count, 1 / self.count), np.inf, 0.0
        self.guess: Array | None = None

    @property
    def gap(self) -> float:
        return self.rate - self.least

    def evaluate(self, p: Array) -> Array:
        """The cuts of the largest eigenvalues at p, largest last: their values at p are these eigenvalues."""
        self.evaluations += 1
        values, vectors, settled = _top(_weighted(self.moments, p), TOP, self.guess, rough=True)
        self.guess = vectors.sum(axis=0)
        matrices = unpack(vectors, self.moments.size)
        cuts = np.stack([np.sum(matrices * self.moments.step(m, matrices), axis=(1, 2)) for m in range(self.count)], 1)
        self.cuts += list(cuts)
        self.least = max(self.least, float(cuts.min(axis=1).max()))
        if settled and values[-1] < self.rate:
            self.rate, self.best = float(values[-1]), p
        return cuts

    def cut_until(self, most: int) -> None:
        """Evaluate the rate where the cuts are least, until the gap is closed or `most` evaluations are made."""
        from scipy.optimize import linprog

        while True:
            table, ones = np.array(self.cuts), np.ones(self.count)
            apart = table - self.rate  # weights sum to 1, so that the program may count from the rate
            apart /= np.max(np.abs(apart), initial=1e-300)
            program = linprog(
                np.append(0 * ones, 1.0),
                A_ub=np.column_stack([apart, np.full(len(apart), -1.0)]),
                b_ub=np.zeros(len(apart)),
                A_eq=[np.append(ones, 0.0)],
                b_eq=[1.0],
                bounds=[(0, 1)] * self.count + [(None, None)],
            )
            if program.x is None:  # what was found stands, with the bound that was proved
                return
            dual = np.maximum(-np.asarray(program.ineqlin.marginals), 0.0)
            if dual.sum() > 0:
                self.least = max(self.least, float(np.min(dual / dual.sum() @ table)))
            if self.gap <= GAP or self.evaluations >= most:
                return
            self.evaluate(_on_simplex(program.x[:-1]))

    def descend(self, evaluations: int) -> None:
        """Minimise the largest of the top eigenvalues, as smooth functions, from the best weights so far."""
        from scipy.optimize import minimize

        last: list[Any] = [None, None]
        limit = self.evaluations + evaluations

        def tangents(x: Array) -> Array:
            if last[0] is None or not np.array_equal(last[0], x):
                if self.evaluations >= limit:
                    raise _EnoughError
                last[:] = [x.copy(), self.evaluate(_on_simplex(x[:-1]))]
            return np.asarray(last[1])

        ones, height = np.ones(self.count), np.append(np.zeros(self.count), 1.0)
        constraints = [
            {"type": "eq", "fun": lambda x: np.sum(x[:-1]) - 1, "jac": lambda x: np.append(ones, 0.0)},
            {
                "type": "ineq",
                "fun": lambda x: x[-1] - tangents(x) @ x[:-1],
                "jac": lambda x: np.column_stack([-tangents(x), np.ones(len(tangents(x)))]),
            },
        ]
        bounds = [(0, 1)] * self.count + [(None, None)]
        first, options = np.append(self.best, self.rate), {"ftol": 1e-12, "maxiter": evaluations}
        with suppress(_EnoughError):
            minimize(
                lambda x: (x[-1], height), first, jac=True, method="SLSQP", bounds=bounds, constraints=constraints,
                options=options,
            )  # fmt: skip


# ------------------------------------------------------------------------------------------------------ eigenvalues
def _weighted(moments: Float64Moments, p: Array) -> Float64Moments:
    """The same maps with other weights."""
    return replace(moments, probability=(p, np.zeros_like(p)))


def _on_simplex(p: Array) -> Array:
    """The weights, corrected where rounding took one below 0 or their sum away from 1."""
    positive = np.maximum(p, 0.0)
    return np.asarray(positive / positive.sum())


def _top(moments: Float64Moments, count: int, guess: Array | None, *, rough: bool) -> tuple[Array, Array, bool]:
    """The largest eigenvalues of Q on symmetric matrices, ascending, their packed vectors (rows), whether they settled.

    Rough eigenvectors serve for cuts, and cost little where many eigenvalues are close to the largest.
    """
    size, order = moments.size, moments.size * (moments.size + 1) // 2
    if order <= DENSE:
        values, vectors = diagonalise(moments)
        return values[-count:], vectors[-count:], True
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def apply(vector: Array) -> Array:
        return np.asarray(pack(moments.apply(unpack(vector.ravel(), size))))

    first = pack(np.eye(size)) / np.sqrt(size) + (0.0 if guess is None else guess)
    operator, settled = LinearOperator((order, order), matvec=apply, dtype=np.float64), True
    options = {"ncv": WIDTH, "tol": 1e-6, "maxiter": ROUNDS} if rough else {"ncv": WIDTH}
    try:
        values, vectors = eigsh(operator, k=count, which="LA", v0=first, **options)
    except ArpackNoConvergence as error:
        values, vectors, settled = error.eigenvalues, error.eigenvectors, False
        if not len(values):
            values, vectors = np.zeros(1), (first / np.linalg.norm(first))[:, None]
    rank = np.argsort(values)
    return values[rank], vectors[:, rank].T, settled
