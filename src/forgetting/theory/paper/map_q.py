"""Appendix C: the map Q[A] = (1/T) sum_m P_m A P_m, P_m = I - X_m^+ X_m, on all d x d matrices.

These are the lemmas of the 1/k rate. `forgetting.expectation.engines.float64_moments` has Q on symmetric matrices of
the row space, which is all that expectations need. These lemmas speak of every matrix and of the whole space, so Q is
applied here as it is defined.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from forgetting.core.arrays import Array
from forgetting.core.numerical import ROUNDING
from forgetting.geometry import exact_rank
from forgetting.theory.checking import all_of, covers, paths, projection, regression, small, steps
from forgetting.theory.claim import declare_claim
from forgetting.theory.definition import check_projections, equations
from forgetting.theory.draws import collection, points, projected
from forgetting.theory.expectations import Expected, distinct, remembered
from forgetting.theory.instance import Instance
from forgetting.theory.verdict import Sides

MOST_DIM = 500  # for products of d x d matrices
MOST_DIM_SQUARED = 40  # for eigenvalues of a d^2 x d^2 matrix
MOST_PRODUCTS = 20_000  # P_m A P_m, one by one


def directions(instance: Instance) -> list[tuple[float, Array]]:
    """The share of each distinct task, and orthonormal rows V_m with P_m = I - V_m^T V_m.

    >>> import forgetting as fg
    >>> share, rows = directions(Instance(fg.families.orthogonal(2), None, 1))[0]
    >>> share, np.abs(rows.round(12)).tolist()
    (0.5, [[1.0, 0.0]])
    """
    geometry = instance.tasks.geometry

    def compute() -> list[tuple[float, Array]]:
        blocks = [geometry.frame.up(geometry.rows[geometry.block(m)]) for m in range(geometry.num_distinct)]
        check_projections(instance, distinct(instance.tasks), [rows.T @ rows for rows in blocks])
        return list(zip((geometry.counts / geometry.num_tasks).tolist(), blocks, strict=True))

    return remembered(instance, "directions", compute)


def apply_q(instance: Instance, matrix: Array, times: int = 1) -> Array:
    """Q^n[A], for any A."""
    tasks = directions(instance)
    for _ in range(times):
        total = np.zeros_like(matrix)
        for share, rows in tasks:
            left = matrix - rows.T @ (rows @ matrix)
            total += share * (left - (left @ rows.T) @ rows)
        matrix = total
    return matrix


def kronecker_q(instance: Instance) -> Array:
    """Q as a d^2 x d^2 matrix on vec(A).

    >>> import forgetting as fg
    >>> np.linalg.eigvalsh(kronecker_q(Instance(fg.families.orthogonal(2), None, 1))).round(12) + 0.0
    array([0. , 0. , 0.5, 0.5])
    """
    dim = instance.tasks.dim
    total = np.zeros((dim**2, dim**2))
    for share, rows in directions(instance):
        projection = np.eye(dim) - rows.T @ rows
        total += share * np.kron(projection, projection)
    return total


def _eigenvalues(instance: Instance) -> Array:
    """The eigenvalues of Q in ascending order."""
    return remembered(instance, "eigenvalues of Q", lambda: np.asarray(np.linalg.eigvalsh(kronecker_q(instance))))


def _row_space(instance: Instance) -> Array:
    """X^+ X for the stack of all tasks."""
    geometry = instance.tasks.geometry
    basis = geometry.frame.up(np.eye(geometry.dim))
    return np.asarray(basis.T @ basis)


def _least(matrix: Array) -> float:
    return float(np.min(np.linalg.eigvalsh((matrix + matrix.T) / 2), initial=np.inf))


def _size(matrix: Array) -> float:
    return float(np.linalg.norm(matrix, 2))


_MATRICES = all_of(regression, small(MOST_DIM))
_EIGENVALUES = all_of(regression, small(MOST_DIM_SQUARED))


def _few_products(instance: Instance) -> str | None:
    few = instance.k * instance.tasks.geometry.num_distinct <= MOST_PRODUCTS
    return None if few else f"is checked for k times the number of distinct tasks up to {MOST_PRODUCTS}"


def _as_traced(instance: Instance, numbers: Expected) -> Sides:
    tasks = instance.tasks
    gap = instance.start - tasks.nearest_solution(instance.start)
    moment = np.outer(gap, gap)
    kinds = [
        (count / tasks.num_tasks, equations(tasks, task)[0])
        for count, task in zip(tasks.geometry.counts, distinct(tasks), strict=True)
    ]
    projections = [np.eye(tasks.dim) - np.linalg.pinv(matrix, rcond=1e-13) @ matrix for _, matrix in kinds]
    for _ in range(instance.k):
        moment = sum(share * (left @ moment @ left) for (share, _), left in zip(kinds, projections, strict=True))
    rhs = sum(share * float(np.trace(matrix @ moment @ matrix.T)) / 2 for share, matrix in kinds)
    scale = tasks.radius**2 * float(gap @ gap)
    return Sides(
        numbers.loss(instance.k), rhs, numbers.doubt + instance.k * ROUNDING * scale, scale or 1.0, numbers.how
    )


declare_claim(
    label="eq:loss",
    statement="E L(w_k) = tr(X^T X Q^k[z z^T]) / (2T), z = w_0 - w*, with replacement",
    kind="equality",
    note="Q is applied here with the projections I - X_m^+ X_m, in full.",
    draw=projected(most=60),
    missing=all_of(regression, small(MOST_DIM), projection, covers("with replacement"), _few_products),
)(paths(_as_traced))


@declare_claim(
    label="cor:Q-is-positive",
    statement="A >= 0 implies Q[A] >= 0; checked as |A| - lambda_min(Q[A]) <= |A|, with A = a a^T for extras a = A",
    draw=points("A"),
    missing=_MATRICES,
)
def _(instance: Instance, A: Array) -> Sides:
    psd = A @ A.T
    size = _size(psd)
    return Sides(size - _least(apply_q(instance, psd)), size, ROUNDING * size, how="eigenvalues", shift=size)


_symmetric = partial(declare_claim, label="cor:Q-is-symmetric", kind="equality", draw=points("A"), missing=_MATRICES)


@_symmetric(part="symmetric", statement="Q maps symmetric matrices to symmetric ones: |Q[A] - Q[A]^T| = 0")
def _(instance: Instance, A: Array) -> Sides:
    matrix = A + A.T
    value = apply_q(instance, matrix)
    return Sides(float(np.linalg.norm(value - value.T)), 0.0, ROUNDING * _size(matrix), _size(matrix))


@_symmetric(part="transpose", statement="Q[A]^T = Q[A^T] for every A")
def _(instance: Instance, A: Array) -> Sides:
    gap = float(np.linalg.norm(apply_q(instance, A).T - apply_q(instance, A.T)))
    return Sides(gap, 0.0, ROUNDING * _size(A), _size(A))


@declare_claim(
    label="rem:Qk-is-positive",
    statement="A >= 0 implies that Q^n[A], n = k, is symmetric and >= 0; checked as for n = 1",
    draw=points("A", exponent=True),
    missing=_MATRICES,
)
def _(instance: Instance, A: Array) -> Sides:
    psd = A @ A.T
    size, value = _size(psd), apply_q(instance, psd, instance.k)
    skew = float(np.linalg.norm(value - value.T))
    return Sides(size - _least(value) + skew, size, ROUNDING * size * (1 + instance.k), how="eigenvalues", shift=size)


@declare_claim(
    label="lem:Trace-inequality",
    statement="0 <= A <= B and C >= 0 imply tr(A C) <= tr(B C), with A = a a^T, B = A + b b^T, C = c c^T for extras",
    draw=points("A", "B", "C"),
)
def _(instance: Instance, A: Array, B: Array, C: Array) -> Sides:
    a, b, c = (matrix @ matrix.T for matrix in (A, B, C))
    lhs, rhs = float(np.trace(a @ c)), float(np.trace((a + b) @ c))
    return Sides(lhs, rhs, ROUNDING * abs(rhs))


@declare_claim(
    label="lem:A Upper Bound",
    statement="X^T X / (R^2 T) <= X^+ X - Q[X^+ X]; checked as v.A v <= v.B v for A and B on the left and on the right "
    "and the unit vector v of the row space at which v.(B - A) v is least",
    draw=points(),
    note="The difference is (1/T) sum_m V_m (1 - sigma^2/R^2) V_m^T, which is 0 for tasks with all sigma = R.",
    missing=_MATRICES,
)
def _(instance: Instance) -> Sides:
    problem, geometry = instance.tasks, instance.tasks.geometry
    up, space = geometry.frame.up(np.eye(geometry.dim)), _row_space(instance)
    right = up @ (space - apply_q(instance, space)) @ up.T
    stacked = np.concatenate(
        [
            np.sqrt(count / problem.num_tasks) * equations(problem, task)[0] @ up.T
            for count, task in zip(geometry.counts, distinct(problem), strict=True)
        ]
    )
    left = stacked.T @ stacked / (problem.radius**2 or 1.0)
    difference = (right + right.T) / 2 - left
    least = np.linalg.eigh(difference)[1][:, 0] if geometry.dim else np.zeros(0)
    return Sides(float(least @ left @ least), float(least @ right @ least), 10 * ROUNDING, how="eigenvalues")


@declare_claim(
    label="lem:Q trace",
    statement="tr(A Q^n[B]) = tr(Q^n[A] B) for all A, B and n = k >= 1",
    kind="equality",
    draw=points("A", "B", exponent=True),
    missing=_MATRICES,
)
def _(instance: Instance, A: Array, B: Array) -> Sides:
    lhs = float(np.trace(A @ apply_q(instance, B, instance.k)))
    rhs = float(np.trace(apply_q(instance, A, instance.k) @ B))
    return Sides(lhs, rhs, 0.0, float(np.linalg.norm(A) * np.linalg.norm(B)))


@declare_claim(
    label="cor:Q self adjoint",
    statement="<Q[A], B> = <A, Q[B]> for all A, B",
    kind="equality",
    draw=points("A", "B"),
    missing=_MATRICES,
)
def _(instance: Instance, A: Array, B: Array) -> Sides:
    lhs, rhs = float(np.sum(apply_q(instance, A) * B)), float(np.sum(A * apply_q(instance, B)))
    return Sides(lhs, rhs, 0.0, float(np.linalg.norm(A) * np.linalg.norm(B)))


_spectrum = partial(declare_claim, label="cor:Q spectrum", draw=points(), missing=_EIGENVALUES)


@_spectrum(part="at most 1", statement="every eigenvalue of Q is at most 1")
def _(instance: Instance) -> Sides:
    return Sides(float(_eigenvalues(instance)[-1]), 1.0, ROUNDING, how="eigenvalues")


@_spectrum(part="at least 0", statement="every eigenvalue of Q is at least 0; checked as 1 - lambda_min <= 1")
def _(instance: Instance) -> Sides:
    return Sides(1 - float(_eigenvalues(instance)[0]), 1.0, ROUNDING, how="eigenvalues", shift=1.0)


@declare_claim(
    label="cor:polynomial_Q_spectrum",
    statement="|Q^n (I - Q)| <= 1/(e n) for n = k >= 1",
    draw=points(exponent=True),
    note="The maximum of x^n (1 - x) is n^n/(n+1)^(n+1), which tends to 1/(e n) from below.",
    missing=all_of(_EIGENVALUES, steps(1)),
)
def _(instance: Instance) -> Sides:
    values = _eigenvalues(instance)
    return Sides(float(np.max(np.abs(values**instance.k * (1 - values)))), 1 / (math.e * instance.k), ROUNDING)


# cor:dimensionality_bound ---------------------------------------------------------------------------------------------


_ranks = partial(declare_claim, label="cor:dimensionality_bound", missing=_MATRICES)


@_ranks(part="bound", statement="|Q[X^+ X]|_F <= min(sqrt(T r), sqrt(d - r)), r the average rank", draw=points())
def _(instance: Instance) -> Sides:
    problem = instance.tasks
    rhs = min(problem.num_tasks * problem.rank_avg, max(problem.dim - problem.rank_avg, 0.0)) ** 0.5
    return Sides(float(np.linalg.norm(apply_q(instance, _row_space(instance)))), rhs, 10 * ROUNDING * problem.dim)


def _ranks_exactly(instance: Instance) -> Sides:
    """Elimination over the rationals; clones change the right-hand side only."""
    problem, geometry = instance.tasks, instance.tasks.geometry
    matrices = [np.asarray(problem.task(task)[0]) for task in distinct(problem)]
    total = sum(int(n) * exact_rank(matrix) for n, matrix in zip(geometry.counts, matrices, strict=True))
    return Sides(exact_rank(np.concatenate(matrices)), total, how="rationals")


def _few_rows(rng: np.random.Generator, index: int) -> Instance:
    return Instance(collection(rng, index, clones=50, distinct=4), None, 1)


@_ranks(
    part="rank equality",
    statement="rank(X^+ X) = T r, as the proof says",
    status="refuted",
    note="Tasks that share directions, clones for one, have a smaller joint rank; the proof needs <= only.",
    kind="equality",
    draw=_few_rows,
    precise=_ranks_exactly,
)
def _(instance: Instance) -> Sides:
    problem = instance.tasks
    return Sides(problem.rank_joint, problem.num_tasks * problem.rank_avg, how="singular values")


@_ranks(
    part="rank inequality",
    statement="rank(X^+ X) <= min(d, T r)",
    status="corrected",
    note="What the proof of the bound uses.",
    draw=_few_rows,
)
def _(instance: Instance) -> Sides:
    problem = instance.tasks
    most = min(float(problem.dim), problem.num_tasks * problem.rank_avg)
    return Sides(problem.rank_joint, most, how="singular values")
