"""Complex systems, against NumPy: matrices of every kind, orderings, methods, and what a caller sees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array, save_npz
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import forgetting as fg
from forgetting.errors import NotSupportedError, OrderingError
from forgetting.solver.pairs import paired


def gaussian(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def system(m=30, n=15, condition=10.0, seed=0):
    """A complex matrix of this condition number, and x."""
    rng = np.random.default_rng(seed)
    rank = min(m, n)
    left, right = (np.linalg.qr(gaussian(rng, size, rank))[0] for size in (m, n))
    return (left * np.logspace(0, -np.log10(condition), rank)) @ right.conj().T, gaussian(rng, n)


class WithRows:
    """An object with row slices, as h5py and zarr give them."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    def __getitem__(self, rows):
        return self.matrix[rows]


def in_file(name):
    def save(A, folder):
        np.save(folder / name, A)
        return str(folder / name)

    return save


def in_sparse_file(A, folder):
    save_npz(folder / "A.npz", csr_array(A))
    return str(folder / "A.npz")


def in_folder(A, folder):
    (folder / "blocks").mkdir()
    np.save(folder / "blocks" / "0.npy", A[:7])
    np.save(folder / "blocks" / "1.npy", A[7:])
    return str(folder / "blocks")


KINDS = {
    "dense": lambda A, folder: A,
    "lists": lambda A, folder: A.tolist(),
    "complex64, in Fortran order": lambda A, folder: np.asfortranarray(A.astype(np.complex64)),
    "csr": lambda A, folder: csr_array(A),
    "coo": lambda A, folder: coo_array(A),
    "operator": lambda A, folder: aslinearoperator(A),
    "rows": lambda A, folder: WithRows(A),
    "sparse rows": lambda A, folder: WithRows(csr_array(A)),
    "npy": in_file("A.npy"),
    "npz": in_sparse_file,
    "folder": in_folder,
    "map": lambda A, folder: np.load(in_file("A.npy")(A, folder), mmap_mode="r"),
}


def test_pairs_of_rows_are_the_complex_product():
    A, x = system()
    for kind in (np.asarray, csr_array):
        real = paired(kind(A))
        product = real @ x.view(np.float64)
        np.testing.assert_allclose(product.view(np.complex128), A @ x, rtol=0, atol=1e-14)
        gram = real @ real.T
        gram = gram if isinstance(gram, np.ndarray) else gram.toarray()
        np.testing.assert_allclose(gram[::2, ::2].diagonal(), gram[1::2, 1::2].diagonal(), atol=1e-14)
        np.testing.assert_allclose(gram[::2, 1::2].diagonal(), 0.0, atol=1e-14)


@pytest.mark.parametrize("memory", [None, 3e4])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_complex_matrices(kind, memory, tmp_path):
    A, x = system()
    A = A.astype(np.complex64).astype(complex) if "64" in kind else A
    solution = fg.solve(KINDS[kind](A, tmp_path), A @ x, tol=1e-12, memory=memory)
    assert solution.converged, solution.status
    assert solution.x.dtype == np.complex128
    np.testing.assert_allclose(solution.x, x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("condition", [3.0, 1e3])
@pytest.mark.parametrize("shape", [(40, 20), (20, 40), (25, 25)])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_complex_solutions_are_those_of_lstsq(condition, shape, noise):
    A, x = system(*shape, condition, seed=3)
    b = A @ x + noise * gaussian(np.random.default_rng(4), shape[0])
    best = np.linalg.lstsq(A, b, rcond=None)[0]
    for kind in (np.asarray, csr_array):
        solution = fg.solve(kind(A), b, tol=1e-13)
        assert np.linalg.norm(solution.x - best) <= 1e-10 * np.linalg.norm(best), solution.status
        gap = np.linalg.norm(b - A @ solution.x) / np.linalg.norm(b)
        assert solution.residual == pytest.approx(gap, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("ordering", [*fg.orderings.registry, "norm-weighted"])
@pytest.mark.parametrize("blocks", ["rows", 4])
def test_every_ordering_visits_complex_rows(ordering, blocks):
    if ordering in ("explicit", "random-explicit"):
        pytest.skip("needs an order")
    A, x = system(24, 8, 3.0)
    try:
        chosen = fg.orderings.registry.get(ordering)()
    except TypeError:
        pytest.skip("needs arguments")
    if ordering in ("periphery-first", "dissimilar-neighbours"):
        with pytest.raises(OrderingError, match="nor do the blocks of"):
            fg.solve(A, A @ x, ordering=chosen, blocks=blocks)
        return
    solution = fg.solve(A, A @ x, ordering=chosen, blocks=blocks, tol=1e-10, maxiter=4000)
    finite = chosen.limit(24 if blocks == "rows" else 6) is not None
    assert solution.converged or finite, solution.status
    if solution.converged:
        np.testing.assert_allclose(solution.x, x, rtol=0, atol=1e-6)


@pytest.mark.parametrize("method", ["kaczmarz", "multipliers", "direct", "extended"])
@pytest.mark.parametrize("several", [False, True])
def test_methods_for_complex_right_hand_sides(method, several):
    A, x = system(seed=5)
    x = np.column_stack([x, 1j * x, x.real]) if several else x
    solution = fg.solve(A, A @ x, method=method, tol=1e-11)
    assert solution.x.shape == x.shape
    np.testing.assert_allclose(solution.x, x, rtol=0, atol=1e-8)


def test_a_complex_visit_is_the_step_for_the_complex_row():
    A, x = system(5, 3)
    b = A @ x
    wanted = np.zeros(3, dtype=complex)
    for i in range(5):
        wanted += (b[i] - A[i] @ wanted) / np.linalg.norm(A[i]) ** 2 * A[i].conj()
    solution = fg.solve(A, b, ordering="cyclic", maxiter=1, tol=0)
    np.testing.assert_allclose(solution.x, wanted, rtol=0, atol=1e-14)
    assert (solution.rows, solution.epochs) == (5, 1.0)
    mean = A.conj().T @ (b / np.sum(np.abs(A) ** 2, axis=1)) / 5
    cimmino = fg.solve(A, b, average="all", blocks="rows", maxiter=1, tol=0)
    np.testing.assert_allclose(cimmino.x, mean, rtol=0, atol=1e-14)


@pytest.mark.parametrize("method", ["multipliers", "direct", "averaged"])
def test_damped_complex_systems(method):
    A, x = system(seed=6)
    b, x0 = A @ x + 0.3, gaussian(np.random.default_rng(1), 15)
    best = x0 + np.linalg.solve(A.conj().T @ A + 0.25 * np.eye(15), A.conj().T @ (b - A @ x0))
    solution = fg.solve(A, b, method=method, damp=0.5, x0=x0, tol=1e-9, maxiter=600)
    allowed = 0.1 if method == "averaged" else 1e-7
    assert np.linalg.norm(solution.x - best) <= allowed * np.linalg.norm(best)


def test_the_nearest_complex_solution_and_a_real_matrix_with_a_complex_side():
    A, x = system(8, 20, seed=7)
    x0 = gaussian(np.random.default_rng(2), 20)
    nearest = x0 + np.linalg.pinv(A) @ (A @ x - A @ x0)
    np.testing.assert_allclose(fg.solve(A, A @ x, x0=x0, tol=1e-12).x, nearest, rtol=0, atol=1e-9)
    real = A.real
    np.testing.assert_allclose(fg.solve(real, real @ x, tol=1e-12).x, np.linalg.pinv(real) @ real @ x, atol=1e-9)
    assert fg.solve(A, (A @ x).real).x.dtype == np.complex128


def test_callbacks_histories_files_and_checkpoints_are_those_of_complex_numbers(tmp_path):
    A, x = system(seed=8)
    b, seen = A @ x, []
    solution = fg.solve(A, b, tol=1e-9, callback=lambda point: seen.append(point) and False)
    assert all(point.dtype == np.complex128 and point.shape == (15,) for point in seen)
    assert np.array_equal(seen[-1], solution.x)
    last = np.linalg.norm(b - A @ seen[-1]) / np.linalg.norm(b)
    assert solution.history.residual[-1] == pytest.approx(last, rel=1e-6)
    solution.save(tmp_path / "s.npz")
    again = fg.solver.Solution.load(tmp_path / "s.npz")
    assert np.array_equal(again.x, solution.x)
    assert again.status == solution.status
    for steps in (2, 5, 1000):
        resumed = fg.solve(A, b, tol=1e-9, checkpoint=tmp_path / "c.npz", maxiter=steps)
    assert np.array_equal(resumed.x, solution.x)


def test_complex_operators_need_the_conjugate_product():
    A, x = system(seed=9)
    operator = LinearOperator(A.shape, matvec=lambda v: A @ v, rmatvec=lambda v: A.conj().T @ v, dtype=complex)
    np.testing.assert_allclose(fg.solve(operator, A @ x, tol=1e-12).x, x, rtol=0, atol=1e-9)


def test_noise_of_complex_rows_stops_where_that_of_their_parts_does():
    rng = np.random.default_rng(10)
    A, x = system(200, 40, 50.0, seed=10)
    noise = 0.02 * gaussian(rng, 200)  # of variance 2 x 0.02^2
    solution = fg.solve(A, A @ x + noise, noise=0.02 * np.sqrt(2))
    gap = np.linalg.norm(A @ x + noise - A @ solution.x) ** 2
    assert "discrepancy" in solution.status
    assert gap <= 1.02**2 * 200 * 2 * 0.02**2
    whole = fg.solve(A, A @ x + noise, noise=np.full(200, 0.02 * np.sqrt(2)))
    assert np.array_equal(whole.x, solution.x)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"bounds": (0, 1)}, "bounds: A is complex"),
        ({"bounds": (0j, 1)}, "bounds: A is complex"),
        ({"relations": ">="}, "relations: A is complex"),
        ({"sets": fg.Ball(np.zeros(15), 1.0)}, "sets: A is complex"),
    ],
)
def test_complex_numbers_have_no_order(options, word):
    A, x = system()
    with pytest.raises(NotSupportedError, match=word):
        fg.solve(A, A @ x, **options)


def test_complex_bounds_of_a_real_system_are_named():
    with pytest.raises(fg.errors.InvalidInputError, match="bounds: expected real numbers, got complex"):
        fg.solve(np.eye(2), np.ones(2), bounds=(0, 1 + 1j))
