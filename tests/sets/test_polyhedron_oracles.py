"""The polyhedron projection against two independent solvers: daqp, and least-distance programming by scipy's NNLS."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

import forgetting as fg
from effort import each, rounds
from forgetting.errors import InfeasibleError

daqp = pytest.importorskip("daqp")

FAMILIES = [
    "random",
    "correlated",
    "low_rank",
    "duplicated",
    "nearly_parallel",
    "degenerate_vertex",
    "single_point",
    "equations",
    "integers",
    "badly_scaled",
    "autoregressive",
]


def a_set(family, seed):
    """A non-empty polyhedron of the family, with a point to project."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    n, d = int(rng.integers(1, 60)), int(rng.integers(1, 40))
    A = rng.standard_normal((n, d))
    inside = rng.standard_normal(d) * rng.choice([0.0, 1.0, 10.0])
    slack = rng.random(n) * rng.choice([0.1, 1.0, 5.0])
    if family == "correlated":
        A += rng.choice([1.0, 10.0, 100.0]) * rng.standard_normal(d)
    elif family == "low_rank":
        rank = int(rng.integers(1, d + 1))
        A = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, d))
    elif family == "duplicated":
        A = A[rng.integers(0, n, n)] * rng.uniform(0.1, 10, (n, 1))
    elif family == "nearly_parallel":
        A = A[rng.integers(0, max(1, n // 3), n)] + 10.0 ** rng.uniform(-12, -2) * rng.standard_normal((n, d))
    elif family == "integers":
        A = rng.integers(-2, 3, (n, d)).astype(float)
        A[np.all(A == 0, axis=1)] = 1
        inside = np.round(inside)
        slack *= 0
    elif family == "degenerate_vertex":
        slack *= 0
    elif family == "single_point":
        A = np.concatenate([A, -A.sum(axis=0)[None]])
        slack = np.zeros(n + 1)
    elif family == "equations":
        A = np.concatenate([A, -A])
        slack = np.zeros(2 * n)
    elif family == "badly_scaled":
        A *= 10.0 ** rng.uniform(-6, 6, (n, 1))
        slack *= np.linalg.norm(A, axis=1)
    elif family == "autoregressive":
        for i in range(1, n):
            A[i] = 0.95 * A[i - 1] + np.sqrt(1 - 0.95**2) * A[i]
    point = inside + rng.standard_normal(d) * rng.choice([1.0, 10.0])
    return A, A @ inside - slack, point


def by_daqp(A, b, p):
    """The projection, with rows of norm 1 as daqp's tolerances assume."""
    norms = np.linalg.norm(A, axis=1)
    point, _, flag, _ = daqp.solve(
        np.eye(len(p)),
        -p,
        np.ascontiguousarray(A / norms[:, None]),
        np.full(len(b), 1e30),
        b / norms,
        np.zeros(len(b), dtype=np.int32),
        primal_tol=1e-11,
    )
    return point if flag == 1 else None


def by_nnls(A, b, p):
    """Lawson and Hanson's least-distance programming: min |x| subject to A x >= b - A p."""
    norms = np.linalg.norm(A, axis=1)
    rows, need = A / norms[:, None], (b - A @ p) / norms
    system = np.concatenate([rows.T, need[None]])
    target = np.eye(1, len(p) + 1, len(p))[0]
    y, _ = nnls(system, target, maxiter=100 * len(b))
    missed = system @ y - target
    return None if np.linalg.norm(missed) < 1e-9 else p - missed[:-1] / missed[-1]


def proven(A, b, p, found):
    """Feasibility and KKT residual from their definitions, rows scaled to norm 1."""
    norms = np.linalg.norm(A, axis=1)
    slack = (A @ found.point - b) / norms
    y = found.multipliers * norms
    stationarity = np.linalg.norm(found.point - p - A.T @ found.multipliers)
    return max(0.0, -slack.min()), max(stationarity, np.abs(np.minimum(y, slack)).max())


@pytest.mark.parametrize("family", FAMILIES)
def test_projections_are_proven_and_agree_with_two_solvers(family):
    answered = 0
    for seed in range(200):
        A, b, p = a_set(family, seed)
        found = fg.Polyhedron(A, b).project_full(p)
        feasibility, residual = proven(A, b, p, found)
        assert feasibility <= 1e-10, seed
        assert residual <= 1e-8, seed
        assert found.feasibility == pytest.approx(feasibility, abs=1e-11), seed
        assert found.kkt_residual == pytest.approx(residual, abs=1e-9), seed
        # the other solvers give up on some degenerate sets; where they answer, it must be the same point
        size = 1 + np.abs(found.point).max()
        for other in (by_daqp(A, b, p), by_nnls(A, b, p)):
            if other is not None:
                answered += 1
                assert np.linalg.norm(other - p) == pytest.approx(np.linalg.norm(found.point - p), abs=1e-6 * size), (
                    seed
                )
    assert answered >= 300


def test_both_solvers_answer_on_easy_sets():
    for seed in range(20):
        A, b, p = a_set("random", 1000 + seed)
        point = fg.Polyhedron(A, b).project(p)
        np.testing.assert_allclose(by_daqp(A, b, p), point, atol=1e-8)
        np.testing.assert_allclose(by_nnls(A, b, p), point, atol=1e-7)


@each("seed", range(rounds(100, 300)))
def test_empty_sets_are_recognised_with_a_certificate(seed):
    rng = np.random.default_rng(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    A, b, _ = a_set(family, 500 + seed)
    weights = rng.random(len(b)) * (rng.random(len(b)) < 0.5)
    weights[rng.integers(len(b))] = 1.0
    weights /= np.linalg.norm(A, axis=1)
    # the last row contradicts a positive combination of the others
    A = np.concatenate([A, -(weights @ A)[None]])
    b = np.append(b, -weights @ b + 10.0 ** rng.uniform(-4, 1))
    with pytest.raises(InfeasibleError) as caught:
        fg.Polyhedron(A, b)
    y = caught.value.certificate
    assert y.min() >= 0
    assert b @ y == pytest.approx(1, abs=1e-6)
    size = np.max(np.abs(b) / np.linalg.norm(A, axis=1))
    assert np.linalg.norm(A.T @ y) * size <= 1e-8
    assert caught.value.residual == pytest.approx(np.linalg.norm(A.T @ y), abs=1e-9)


@pytest.mark.parametrize("seed", range(40))
def test_a_warm_start_gives_the_same_points_as_a_cold_one(seed):
    A, b, p = a_set(FAMILIES[seed % len(FAMILIES)], 800 + seed)
    rng = np.random.default_rng(seed)
    polyhedron = fg.Polyhedron(A, b)
    warm = None
    for _ in range(10):
        found = polyhedron.project_full(p, warm=warm)
        np.testing.assert_allclose(found.point, polyhedron.project(p), atol=1e-9 * (1 + np.abs(p).max()))
        warm = found.warm
        p = p + 0.3 * rng.standard_normal(len(p))
