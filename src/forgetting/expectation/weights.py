"""The weights of independent draws with which the error decays fastest (Agaskar, Wang and Lu 2014)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from forgetting._arrays import Array
from forgetting._memory import require_memory
from forgetting.errors import NotSupportedError
from forgetting.expectation.asking import ask
from forgetting.expectation.engines.digits import refusal
from forgetting.expectation.engines.moment_map import moment_map
from forgetting.orderings import WithReplacement
from forgetting.orderings.laws import Independent
from forgetting.schemes.base import SchemeLike
from forgetting.tasks import Problem

__all__ = ["FastestWeights", "fastest_weights"]

MOST_CUTS = 300
GAP = 1e-6  # in the rate; the linear programs are accurate to 1e-7


class FastestWeights(NamedTuple):
    """Weights, their decay rate, and a number that no weights can go below.

    Attributes:
        probabilities: p_m of each task; clones share theirs equally.
        rate: `decay_rate` with these weights.
        least: a lower bound on the decay rate with any weights.
    """

    probabilities: Array
    rate: float
    least: float


def fastest_weights(problem: Problem, scheme: SchemeLike | None = None) -> FastestWeights:
    """The probabilities of independent draws that make `decay_rate` as small as possible.

    The rate is the largest eigenvalue of Q[A] = sum_m p_m S_m A S_m, a convex function of p. An eigenvector V of one p
    gives the lower bound <V, Q[V]>, linear in p, on the rate of every p. Linear programs over such bounds (cutting
    planes) give the next p and `least`, until rate and `least` differ by 1e-6 or 300 bounds are made. Lengths of rows
    do not matter to projections, so that drawing tasks by their squared norms is not the best in general. Cost: for
    each bound an eigenvalue problem of order D^2 and a linear program; a second or two for 20 tasks with D = 5.

    >>> import forgetting as fg
    >>> from forgetting.expectation import fastest_weights
    >>> tasks = fg.RegressionTasks([[[1, 0]], [[1, 0]], [[0, 5]]], [[1], [1], [0]])
    >>> best = fastest_weights(tasks)
    >>> best.probabilities.round(5).tolist(), round(best.rate, 5)
    ([0.25, 0.25, 0.5], 0.5)
    """
    from scipy.optimize import linprog

    request = ask(problem, WithReplacement(), 1, scheme, memory=np.finfo(float).max).request
    reason = refusal(request, Independent)
    if reason is not None:
        raise NotSupportedError(f"the fastest weights are those of a linear scheme: {reason}")
    moments = moment_map(request, homogeneous=True)
    geometry, n, count = moments.geometry, moments.size, moments.geometry.num_distinct
    require_memory(32.0 * n**4, f"second moments in dimension {n}", "use tasks of a smaller joint rank")
    blocks = [geometry.block(task) for task in range(count)]
    steps = np.array([np.eye(n) - moments.left[0][block].T @ moments.right[0][block] for block in blocks])
    p = best = np.full(count, 1 / count)
    cuts: list[Array] = []
    rate, least = np.inf, 0.0
    while n and len(cuts) < MOST_CUTS and rate - least > GAP:
        mixed = np.einsum("m,mij,mkl->ikjl", p, steps, steps, optimize=True).reshape(n * n, n * n)
        values, vectors = np.linalg.eigh(mixed)
        if values[-1] < rate:
            rate, best = float(values[-1]), p
        vector = vectors[:, -1].reshape(n, n)
        cuts.append(np.einsum("ij,mik,kl,mjl->m", vector, steps, vector, steps, optimize=True))
        program = linprog(
            np.append(np.zeros(count), 1.0),
            A_ub=np.column_stack([cuts, np.full(len(cuts), -1.0)]),
            b_ub=np.zeros(len(cuts)),
            A_eq=[np.append(np.ones(count), 0.0)],
            b_eq=[1.0],
            bounds=[(0, 1)] * count + [(None, None)],
        )
        p, least = np.maximum(program.x[:-1], 0.0), max(least, float(program.x[-1]))
        p /= p.sum()
    share = best / np.bincount(geometry.index, minlength=count)
    return FastestWeights(share[geometry.index], rate if n else 0.0, min(least, rate))
