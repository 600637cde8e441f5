"""Sweeps as operators: equal to the dense formulas, adjoint, symmetric, and what they save `lsmr` and `cg`."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import cg, lsmr

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.solver import swept, symmetric_sweeps


def system(kind, zero_row=True):
    """A matrix of 13 rows and 7 columns, or of 7 rows and 13 columns, with a zero row, a right-hand side, an order."""
    rng = np.random.default_rng(3)
    A = rng.standard_normal((7, 13) if kind == "wide" else (13, 7))
    if kind == "sparse":
        A[rng.random(A.shape) < 0.5] = 0
    if zero_row:
        A[4] = 0
    order = rng.permutation(len(A))
    return (sp.csr_array(A) if kind == "sparse" else A), A, rng.standard_normal(len(A)), order


def triangle(A, order, relaxation):
    """D, and the inverse of D / w + L for the rows in their order, back in the numbering of A; zero rows stay zero."""
    picked = A[order]
    K = picked @ picked.T
    D = np.diag(K)
    kept = np.flatnonzero(D > 0)
    inverse = np.zeros_like(K)
    inverse[np.ix_(kept, kept)] = np.linalg.inv((np.diag(D / relaxation) + np.tril(K, -1))[np.ix_(kept, kept)])
    at = np.empty_like(order)
    at[order] = np.arange(len(order))
    return np.diag(D[at]), inverse[np.ix_(at, at)]


def double_sweep(A, order, relaxation):
    """The matrix that maps the error of x to the error after a sweep and a sweep back, by rank-one projections."""
    Q = np.eye(A.shape[1])
    for i in [*order, *order[::-1]]:
        if A[i].any():
            Q = Q - relaxation * np.outer(A[i], A[i] @ Q) / (A[i] @ A[i])
    return Q


KINDS = pytest.mark.parametrize("kind", ["tall", "wide", "sparse"])
RELAXATIONS = pytest.mark.parametrize("relaxation", [0.4, 1.0, 1.7])


@KINDS
@RELAXATIONS
def test_the_swept_matrix_and_side_are_those_of_the_formula(kind, relaxation):
    given, A, b, order = system(kind)
    B, c = swept(given, b, relaxation, order)
    D, inverse = triangle(A, order, relaxation)
    factor = np.sqrt((2 - relaxation) / relaxation) * np.sqrt(D) @ inverse
    np.testing.assert_allclose(B @ np.eye(A.shape[1]), factor @ A, atol=1e-12)
    np.testing.assert_allclose(B.T @ np.eye(len(A)), (factor @ A).T, atol=1e-12)
    np.testing.assert_allclose(c, factor @ b, atol=1e-12)


@KINDS
@RELAXATIONS
def test_the_squared_swept_matrix_is_what_a_double_sweep_takes_away(kind, relaxation):
    given, A, b, order = system(kind)
    B, _ = swept(given, b, relaxation, order)
    whole = B @ np.eye(A.shape[1])
    np.testing.assert_allclose(whole.T @ whole, np.eye(A.shape[1]) - double_sweep(A, order, relaxation), atol=1e-12)


@KINDS
def test_products_with_one_vector_are_adjoint_and_equal_those_with_many(kind):
    given, A, b, _ = system(kind)
    B, _ = swept(given, b, 1.3)
    rng = np.random.default_rng(0)
    v, w = rng.standard_normal((A.shape[1], 3)), rng.standard_normal((len(A), 3))
    for k in range(3):
        assert (B @ v[:, k]) @ w[:, k] == pytest.approx(v[:, k] @ (B.T @ w[:, k]), rel=1e-11)
        np.testing.assert_allclose(B @ v[:, k], (B @ v)[:, k], atol=1e-12)
        np.testing.assert_allclose(B.T @ w[:, k], (B.T @ w)[:, k], atol=1e-12)
    np.testing.assert_allclose(B @ v[:, :1], (B @ v)[:, :1], atol=1e-12)
    before = v.copy()
    B.matvec(v[:, 0])
    np.testing.assert_array_equal(v, before)


@KINDS
def test_several_right_hand_sides_are_swept_one_by_one(kind):
    given, A, b, _ = system(kind)
    both = np.column_stack([b, -2 * b[::-1]])
    together = swept(given, both, 0.8)[1]
    for k in range(2):
        np.testing.assert_allclose(together[:, k], swept(given, both[:, k], 0.8)[1], atol=1e-12)
    assert together.shape == (len(A), 2)


@KINDS
def test_lsmr_finds_the_solution_of_least_norm_on_the_swept_system(kind):
    given, A, _, _ = system(kind)
    b = A @ np.random.default_rng(5).standard_normal(A.shape[1])
    x = lsmr(*swept(given, b), atol=1e-14, btol=1e-14, conlim=0)[0]
    np.testing.assert_allclose(x, np.linalg.lstsq(A, b)[0], atol=1e-9)


@KINDS
@RELAXATIONS
@pytest.mark.parametrize("count", [1, 3])
def test_symmetric_sweeps_are_those_of_the_formula(kind, relaxation, count):
    given, A, _, order = system(kind)
    M = symmetric_sweeps(given, count, relaxation, order) @ np.eye(len(A))
    D, inverse = triangle(A, order, relaxation)
    once = (2 - relaxation) / relaxation * inverse.T @ D @ inverse
    expected = sum(np.linalg.matrix_power(np.eye(len(A)) - once @ A @ A.T, k) @ once for k in range(count))
    np.testing.assert_allclose(M, expected, atol=1e-11 * np.abs(expected).max())


@KINDS
@RELAXATIONS
def test_symmetric_sweeps_are_symmetric_and_positive_definite(kind, relaxation):
    given, A, _, _ = system(kind, zero_row=False)
    M = symmetric_sweeps(given, 2, relaxation)
    whole = M @ np.eye(len(A))
    np.testing.assert_allclose(whole, whole.T, atol=1e-12 * np.abs(whole).max())
    np.testing.assert_allclose(M.T @ np.eye(len(A)), whole, atol=1e-12 * np.abs(whole).max())
    assert np.linalg.eigvalsh((whole + whole.T) / 2)[0] > 0


def test_many_sweeps_approach_the_inverse():
    A = np.random.default_rng(1).standard_normal((5, 9))
    far, near = (symmetric_sweeps(A, count) @ np.eye(5) @ A @ A.T - np.eye(5) for count in (1, 200))
    assert np.linalg.norm(near) < 1e-6 < 0.1 < np.linalg.norm(far)


def iterations(solver, *arguments, **options):
    seen = []
    found = solver(*arguments, callback=lambda x: seen.append(1), **options)[0]
    return len(seen), found


def test_sweeps_save_iterations_of_lsmr_and_cg_on_a_tomography_matrix():
    scan = fg.datasets.tomography(size=21, angles=60, detectors=30)
    A, b, x = scan.A, scan.b, scan.image.ravel()
    plain = lsmr(A, b, atol=0, btol=1e-6, conlim=0)
    fewer = lsmr(*swept(A, b), atol=0, btol=1e-6, conlim=0)
    assert fewer[2] < plain[2] / 4
    assert np.linalg.norm(b - A @ fewer[0]) < 1e-6 * np.linalg.norm(b)
    normal, side = A.T @ A, A.T @ b
    alone, _ = iterations(cg, normal, side, rtol=1e-8)
    helped, found = iterations(cg, normal, side, rtol=1e-8, M=symmetric_sweeps(A.T))
    assert helped < 0.7 * alone
    assert np.linalg.norm(found - x) < 1e-4 * np.linalg.norm(x)


def test_sweeps_over_columns_precondition_least_squares():
    rng = np.random.default_rng(2)
    A = rng.standard_normal((60, 20)) * np.logspace(0, 3, 20)
    b = rng.standard_normal(60)
    alone, _ = iterations(cg, A.T @ A, A.T @ b, rtol=1e-12)
    helped, x = iterations(cg, A.T @ A, A.T @ b, rtol=1e-12, M=symmetric_sweeps(A.T))
    assert helped < alone
    np.testing.assert_allclose(x, np.linalg.lstsq(A, b)[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda A, b: swept(A, b[:-1]), "b has shape"),
        (lambda A, b: swept(A, b, 2.0), "relaxation"),
        (lambda A, b: swept(A, b, order=[0, 1, 1]), "order: row 1 occurs 2 times"),
        (lambda A, b: swept(A, b, order=[0, 1]), "order: row 2 occurs 0 times"),
        (lambda A, b: swept(A, b, order=[0, 1, 7]), "order"),
        (lambda A, b: swept([[np.nan]], [1.0]), "A"),
        (lambda A, b: symmetric_sweeps(A, 0), "sweeps"),
    ],
)
def test_messages_name_the_argument(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call(np.arange(6.0).reshape(3, 2), np.ones(3))


def test_the_random_order_is_that_of_the_seed():
    _, A, b, _ = system("tall")
    first, again, other = (swept(A, b, seed=seed)[1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)
