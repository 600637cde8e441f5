"""The weights of independent draws with the least decay rate: the largest eigenvalue of Q, minimised over the simplex.

The rate is max <V, Q[V]> over symmetric V of norm 1, and Q is linear in the weights, so that the rate is convex. Any V
gives a cut, the linear function p -> sum_m p_m <V, S_m V S_m>, which is nowhere above the rate. For numbers y_j >= 0
that sum to 1, min_m sum_j y_j cut_jm is then a bound that no weights go below (linear programming duality), whatever
the accuracy of the eigenvectors that made the cuts and of the program that found y.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.expectation.engines.moment_map import Moments
from forgetting.expectation.engines.spectral import decay

__all__ = ["DecayOptimum", "least_decay", "rate_of"]

GAP = 1e-6  # in the rate
FIRST = 20  # evaluations of the rate by cutting planes alone, which is all that simple problems need
FIRST_LARGE = 3  # the same where one evaluation takes a while
DESCENT = 200  # evaluations by quadratic programs
MOST = 400  # evaluations in all
TOP = 3  # eigenvectors of each evaluation that make cuts
DENSE = 500  # the order up to which Q is diagonalised outright
WIDTH = 60  # vectors that a Lanczos run keeps
ROUNDS = 100  # restarts of a rough Lanczos run


class DecayOptimum(NamedTuple):
    """Weights of the distinct tasks, their decay rate, a bound that no weights go below, and the number of cuts."""

    weights: Array
    rate: float
    least: float
    cuts: int


def least_decay(moments: Moments, start: Array) -> DecayOptimum:
    """The weights of distinct tasks with the least decay rate.

    Linear programs over cuts (Kelley) find the optimum of simple problems at once; they also prove `least`. Where the
    gap stays above 1e-6, the largest three eigenvalues are minimised as smooth functions (quadratic programs, SLSQP),
    which identifies the weights of ordinary problems in tens of evaluations; every evaluation adds its cuts. Each
    evaluation is a Lanczos run on matrices of order D, or a diagonalisation for D < 32.
    """
    search = _Search(moments)
    if not moments.size:
        return DecayOptimum(start, 0.0, 0.0, 0)
    search.evaluate(start)
    search.cut_until(FIRST if moments.size * (moments.size + 1) // 2 <= DENSE else FIRST_LARGE)
    if search.gap > GAP:
        search.descend(DESCENT)
        search.cut_until(MOST)
    return DecayOptimum(search.best, search.rate, min(search.least, search.rate), len(search.cuts))


def rate_of(moments: Moments, weights: Array) -> float:
    """The decay rate with these weights of distinct tasks."""
    if not moments.size:
        return 0.0
    values, _, settled = _top(_weighted(moments, weights), 1, None, rough=False)
    return float(values[-1]) if settled else decay(_weighted(moments, weights))


class _EnoughError(Exception):
    """As many evaluations as are worth it."""


class _Search:
    def __init__(self, moments: Moments) -> None:
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
        matrices = _unpacked(vectors, self.moments.size)
        cuts = np.stack([np.sum(matrices * self.moments.step(m, matrices), axis=(1, 2)) for m in range(self.count)], 1)
        self.cuts += list(cuts)
        self.least = max(self.least, float(cuts.min(axis=1).max()))
        if settled and values[-1] < self.rate:
            self.rate, self.best = float(values[-1]), p
        return cuts

    def cut_until(self, most: int) -> None:
        """Evaluate the rate where the cuts are least, until the gap is closed or so many evaluations are made."""
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


def _weighted(moments: Moments, p: Array) -> Moments:
    """The same maps with other weights."""
    return replace(moments, probability=(p, np.zeros_like(p)))


def _on_simplex(p: Array) -> Array:
    """The weights without what rounding took below 0 or away from the sum 1."""
    positive = np.maximum(p, 0.0)
    return np.asarray(positive / positive.sum())


def _top(moments: Moments, count: int, guess: Array | None, *, rough: bool) -> tuple[Array, Array, bool]:
    """The largest eigenvalues of Q on symmetric matrices, ascending, packed eigenvectors (rows), and if they settled.

    Rough eigenvectors serve for cuts, and cost little where many eigenvalues are close to the largest.
    """
    size, order = moments.size, moments.size * (moments.size + 1) // 2
    if order <= DENSE:
        matrix = _packed(moments.apply(_unpacked(np.eye(order), size)))
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        return values[-count:], vectors[:, -count:].T, True
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

    def apply(vector: Array) -> Array:
        return _packed(moments.apply(_unpacked(vector.ravel(), size)))

    first = _packed(np.eye(size)) / np.sqrt(size) + (0.0 if guess is None else guess)
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


@lru_cache(maxsize=8)
def _packing(size: int) -> tuple[IntArray, IntArray, Array]:
    rows, columns = np.triu_indices(size)
    return rows, columns, np.where(rows == columns, 1.0, np.sqrt(2.0))


def _packed(matrices: Array) -> Array:
    """Symmetric matrices as vectors with the same inner product."""
    rows, columns, factor = _packing(matrices.shape[-1])
    return np.asarray(matrices[..., rows, columns] * factor)


def _unpacked(vectors: Array, size: int) -> Array:
    rows, columns, factor = _packing(size)
    matrices = np.zeros((*vectors.shape[:-1], size, size))
    matrices[..., rows, columns] = matrices[..., columns, rows] = vectors / factor
    return matrices
