"""Systems with a solution: the one nearest to x0, for every shape, kind of matrix, division and ordering."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import forgetting as fg
from forgetting.solver.loop import TALL


def system(m, n, rank=None, seed=0):
    """A matrix of the given rank (full if None), and a right-hand side that it reaches."""
    rng = np.random.default_rng([m, n, seed])
    A = rng.standard_normal((m, n))
    if rank is not None:
        A = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    return A, A @ rng.standard_normal(n)


def edited(change):
    A, x = system(14, 6)[0], np.arange(1.0, 7.0)
    change(A)
    return A, A @ x


def zero_rows(A):
    A[[0, 5]] = 0.0


def zero_columns(A):
    A[:, [1, 4]] = 0.0


def duplicated_rows(A):
    A[7:] = 2 * A[:7]


def norms_far_apart(A):
    A *= 10.0 ** np.linspace(-8, 8, len(A))[:, None]


SYSTEMS = {
    "wide": system(10, 30),
    "tall": system(40, 8),
    "very tall": system(3 * TALL * 4, 3),
    "square": (system(8, 8)[0] + 4 * np.eye(8), np.arange(8.0)),
    "rank-deficient": system(20, 12, rank=4),
    "wide and rank-deficient": system(10, 30, rank=3),
    "zero rows": edited(zero_rows),
    "zero columns": edited(zero_columns),
    "duplicated rows": edited(duplicated_rows),
    "norms far apart": edited(norms_far_apart),
    "one row": system(1, 5),
    "one column": system(7, 1),
    "one number": (np.array([[3.0]]), np.array([6.0])),
    "zero right-hand side": (system(9, 4)[0], np.zeros(9)),
    "zero matrix": (np.zeros((3, 2)), np.zeros(3)),
}


def nearest(A, b, x0=0.0):
    """The solution nearest to x0."""
    x0 = np.broadcast_to(x0, (A.shape[1], *b.shape[1:]))
    return x0 + np.linalg.lstsq(A, b - A @ x0, rcond=None)[0]


def close(x, wanted, tol=1e-8):
    np.testing.assert_allclose(x, wanted, rtol=0, atol=tol * max(1.0, float(np.abs(wanted).max())))


def solved(A, b, **options):
    """The solution, after a check that the claim is true: the residual is what NumPy computes, and small enough."""
    options = {"tol": 1e-11, "maxiter": 20000, **options}
    solution = fg.solve(A, b, **options)
    assert solution.converged, solution.status
    assert solution.consistent
    dense = A.toarray() if sparse.issparse(A) else np.asarray(A, dtype=np.float64)
    sizes = np.linalg.norm(np.asarray(b, dtype=np.float64), axis=0)
    residual = np.max(np.linalg.norm(b - dense @ solution.x, axis=0) / np.where(sizes > 0, sizes, 1.0))
    assert residual <= options["tol"] * (1 + 1e-6) + 1e-15
    return solution


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_solution_of_least_norm(name):
    A, b = SYSTEMS[name]
    close(solved(A, b, tol=1e-12 if name != "norms far apart" else 1e-15).x, nearest(A, b))


@pytest.mark.parametrize("method", ["multipliers", "extended", "averaged"])
def test_least_squares_methods_solve_systems_too(method):
    A, b = SYSTEMS["rank-deficient"]
    close(solved(A, b, method=method).x, nearest(A, b))


@pytest.mark.parametrize("name", ["wide", "tall", "rank-deficient", "zero columns", "zero matrix", "one row"])
@pytest.mark.parametrize("method", ["auto", "multipliers", "extended", "averaged"])
def test_the_solution_nearest_to_the_start(name, method):
    A, b = SYSTEMS[name]
    x0 = 3 * np.random.default_rng(1).standard_normal(A.shape[1])
    solution = solved(A, b, x0=x0, method=method, tol=1e-11 if name != "zero matrix" else 0)
    close(solution.x, nearest(A, b, x0))


def test_a_start_that_solves_the_system_is_kept():
    A, b = SYSTEMS["wide"]
    x0 = nearest(A, b, 1.0)
    close(solved(A, b, x0=x0, tol=1e-10, maxiter=0).x, x0, 1e-15)


KINDS = {
    "list": lambda A: A.tolist(),
    "Fortran order": np.asfortranarray,
    "every other column": lambda A: np.repeat(A, 2, axis=1)[:, ::2],
    "reversed": lambda A: A[::-1].copy()[::-1],
    "read-only": lambda A: read_only(A),
    "float32": lambda A: A.astype(np.float32),
    "integers": lambda A: A.astype(np.int16),
    "booleans": lambda A: A > 0,
    "memory map": None,
    "matrix": lambda A: sparse.csr_matrix(A),
    "CSR": lambda A: sparse.csr_array(A),
    "CSR, read-only": lambda A: read_only_sparse(sparse.csr_array(A)),
    "CSR, long indices": lambda A: long_indices(sparse.csr_array(A)),
    "CSR, unsorted": lambda A: unsorted(sparse.csr_array(A)),
    "CSC": lambda A: sparse.csc_array(A),
    "COO with duplicates": lambda A: twice(sparse.coo_array(A)),
    "CSR with duplicates": lambda A: halves(sparse.csr_array(A)),
    "DOK": lambda A: sparse.dok_array(A),
    "sparse integers": lambda A: sparse.csr_array(A.astype(np.int64)),
}


def read_only(A):
    A = A.copy()
    A.setflags(write=False)
    return A


def read_only_sparse(A):
    for part in (A.data, A.indices, A.indptr):
        part.setflags(write=False)
    return A


def long_indices(A):
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def unsorted(A):
    """The same matrix with the entries of each row in reverse order."""
    for first, last in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        A.indices[first:last], A.data[first:last] = A.indices[first:last][::-1].copy(), A.data[first:last][::-1].copy()
    A.has_sorted_indices = False
    return A


def twice(A):
    """Every entry in two halves."""
    places = np.concatenate([A.row, A.row]), np.concatenate([A.col, A.col])
    return sparse.coo_array((np.concatenate([A.data / 2, A.data / 2]), places), shape=A.shape)


def halves(A):
    """Every entry in two halves, side by side."""
    data, indices, starts = np.repeat(A.data / 2, 2), np.repeat(A.indices, 2), 2 * A.indptr
    return sparse.csr_array((data, indices, starts), shape=A.shape)


def copied(A):
    return A.copy() if hasattr(A, "copy") else A


def dense(A):
    return A.toarray() if sparse.issparse(A) else np.asarray(A, dtype=np.float64)


@pytest.mark.parametrize("method", ["auto", "extended"])
@pytest.mark.parametrize("blocks", ["auto", 3])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_matrices(kind, blocks, method, tmp_path):
    rng = np.random.default_rng(0)
    A = rng.integers(-9, 10, (12, 5)) * (rng.random((12, 5)) < 0.7) + 5.0 * np.eye(12, 5)
    if kind == "memory map":
        np.save(tmp_path / "A.npy", A)
        given = np.load(tmp_path / "A.npy", mmap_mode="r")
    else:
        given = KINDS[kind](A)
    b = dense(given) @ np.arange(5.0)
    before, sides = copied(given), b.copy()
    x = solved(given, b, blocks=blocks, method=method, x0=np.ones(5)).x
    close(x, nearest(dense(given), b, 1.0))
    assert np.array_equal(dense(before), dense(given))
    assert np.array_equal(b, sides)


def test_inputs_are_not_changed_and_may_be_read_only():
    A, b = SYSTEMS["tall"]
    b, x0 = np.column_stack([b, b + 1, 0 * b]), np.ones((8, 3))
    kept = A.copy(), b.copy(), x0.copy()
    for array in (A := A.copy(), b, x0):
        array.setflags(write=False)
    for options in ({}, {"damp": 0.5}, {"method": "extended"}, {"method": "averaged"}, {"blocks": 3}, {"average": 3}):
        solution = fg.solve(A, b, x0=x0, maxiter=30, **options)
        assert not np.shares_memory(solution.x, x0)
        solution.x[:] = 0.0  # belongs to the caller
    assert all(np.array_equal(one, other) for one, other in zip((A, b, x0), kept, strict=True))


@pytest.mark.parametrize("count", [1, 2, 9, 40])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("options", [{}, {"blocks": "rows"}, {"blocks": 4}, {"average": 3}, {"damp": 0.7}])
def test_several_right_hand_sides_are_as_many_single_ones(kind, options, count):
    A = SYSTEMS["rank-deficient"][0]
    rng = np.random.default_rng(2)
    b = A @ rng.standard_normal((A.shape[1], count))
    x0 = rng.standard_normal((A.shape[1], count))
    options = {"tol": 0, "maxiter": 7, "ordering": "reshuffled", **options}
    together = fg.solve(kind(A), b, x0=x0, **options)
    assert together.x.shape == (A.shape[1], count)
    for column in range(0, count, 7):
        alone = fg.solve(kind(A), b[:, column], x0=x0[:, column], **options)
        close(together.x[:, column], alone.x, 1e-11)


def test_several_right_hand_sides_converge_together():
    A = SYSTEMS["wide"][0]
    b = A @ np.random.default_rng(0).standard_normal((30, 12)) * 10.0 ** np.arange(-6, 6)
    b[:, 3] = 0.0
    x = solved(A, b).x
    for column in range(12):
        wanted = nearest(A, b[:, column])
        assert np.linalg.norm(x[:, column] - wanted) <= 1e-8 * np.linalg.norm(wanted)


@pytest.mark.parametrize("name", ["wide", "tall", "rank-deficient", "zero rows", "duplicated rows", "norms far apart"])
@pytest.mark.parametrize("blocks", ["rows", 1, 2, 7, "m", 1000])
def test_divisions_into_blocks(name, blocks):
    A, b = SYSTEMS[name]
    x = solved(A, b, blocks=len(A) if blocks == "m" else blocks, tol=1e-11 if name != "norms far apart" else 1e-15).x
    close(x, nearest(A, b))


@pytest.mark.parametrize("kind", [list, tuple, lambda parts: [np.array(part) for part in parts], iter])
def test_partitions_of_ones_own(kind):
    A, b = SYSTEMS["rank-deficient"]
    parts = [[19, 0, 7], [1], *([i, i + 1] for i in (2, 4)), [6, *range(8, 19)]]
    close(solved(A, b, blocks=kind(parts)).x, nearest(A, b))
    two = np.arange(20).reshape(5, 4)
    close(solved(A, b, blocks=two).x, nearest(A, b))


def test_one_block_of_all_rows_is_one_step():
    A, b = SYSTEMS["rank-deficient"]
    solution = fg.solve(A, b, blocks=20, max_steps=1, tol=1e-10, x0=np.ones(12))
    close(solution.x, nearest(A, b, 1.0), 1e-9)
    assert solution.rows == 20


def test_the_memory_for_factorisations_changes_nothing():
    A, b = SYSTEMS["tall"]
    kept, computed = (fg.solve(A, b, blocks=3, tol=0, maxiter=4, memory=memory) for memory in (None, 0))
    close(computed.x, kept.x, 1e-13)


def endless(name):
    """Whether the ordering of this name can be made without arguments, and never ends."""
    made = None if name == "explicit" else fg.orderings.registry.get(name)()
    return made is not None and made.limit(5) is None


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("blocks", ["rows", 4])
@pytest.mark.parametrize("ordering", [name for name in fg.orderings.registry if endless(name)])
def test_every_ordering(ordering, blocks, several):
    A, b = SYSTEMS["rank-deficient"]
    b = np.column_stack([b, A @ np.ones(12)]) if several else b
    solution = solved(A, b, ordering=ordering, blocks=blocks, tol=1e-10)
    close(solution.x, nearest(A, b))
    assert solution.ordering == fg.orderings.registry.get(ordering)().in_words


def test_an_ordering_that_ends_ends_the_solve():
    A, b = SYSTEMS["square"]
    solution = fg.solve(A, b, ordering=[3, 1, 1])
    x = np.zeros(8)
    for i in (3, 1, 1):
        x += (b[i] - A[i] @ x) / (A[i] @ A[i]) * A[i]
    close(solution.x, x, 1e-14)
    assert (solution.rows, solution.converged) == (3, False)
    assert solution.status.startswith("stopped")


@pytest.mark.parametrize("blocks", ["auto", "rows", 3])
@pytest.mark.parametrize("relaxation", [0.5, 1.0, 1.3, 1.9])
def test_relaxed_steps(relaxation, blocks):
    A, b = SYSTEMS["rank-deficient"]
    close(solved(A, b, relaxation=relaxation, blocks=blocks).x, nearest(A, b))


@pytest.mark.parametrize("blocks", ["rows", 3])
@pytest.mark.parametrize("average", [2, 5, "all"])
@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_averaged_steps(average, blocks, relaxation):
    A, b = SYSTEMS["rank-deficient"]
    close(solved(A, b, average=average, blocks=blocks, relaxation=relaxation, tol=1e-10).x, nearest(A, b))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("name", ["zero rows", "wide", "very tall"])
def test_the_average_of_all_rows_is_the_step_of_cimmino(name, kind):
    A, b = SYSTEMS[name]
    x0 = np.linspace(-1, 1, A.shape[1])
    squares = np.sum(A * A, axis=1)
    steps = np.divide(b - A @ x0, squares, out=np.zeros(len(A)), where=squares > 0)
    x = fg.solve(kind(A), b, average="all", x0=x0, maxiter=1, relaxation=1.5, tol=0).x
    close(x, x0 + 1.5 * A.T @ steps / len(A), 1e-13)


def test_the_average_of_all_blocks_is_the_mean_of_their_projections():
    A, b = SYSTEMS["rank-deficient"]
    x0 = np.linspace(-1, 1, 12)
    steps = [np.linalg.lstsq(A[i : i + 4], (b - A @ x0)[i : i + 4], rcond=1e-12)[0] for i in range(0, 20, 4)]
    x = fg.solve(A, b, average="all", blocks=4, x0=x0, maxiter=1, tol=0).x
    close(x, x0 + np.mean(steps, axis=0), 1e-10)


def test_averaged_steps_have_equal_weights():
    """Seven orthogonal rows, five at a time: the last two rows count as much as the first five."""
    x = fg.solve(np.eye(7), np.ones(7), average=5, relaxation=8, maxiter=1, tol=0).x
    close(x, np.full(7, 1.6), 1e-15)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"average": 40},
        {"average": "all"},
        {"blocks": 50},
        {"blocks": 50, "average": 4},
        {"method": "extended"},
        {"damp": 1.0},
        {"blocks": 50, "damp": 1.0},
    ],
)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_any_number_of_threads_gives_the_same_bits(kind, several, options, monkeypatch):
    monkeypatch.setattr("forgetting.solver.rows.SLICE", 1000)  # many parts, though the matrix is small
    A, b = system(200, 40, seed=3)
    b = A @ np.random.default_rng(0).standard_normal((40, 70)) if several else b
    options = {"maxiter": 3, "tol": 0, **options}
    one, two, three = (fg.solve(kind(A), b, threads=threads, **options).x for threads in (1, 2, 3))
    assert np.array_equal(one, two)
    assert np.array_equal(one, three)


def test_the_same_seed_is_the_same_solve():
    A, b = SYSTEMS["tall"]
    one, again, other = (fg.solve(A, b, seed=seed, maxiter=3, tol=0) for seed in (1, 1, 2))
    assert np.array_equal(one.x, again.x)
    assert not np.array_equal(one.x, other.x)
    assert (one.seed, other.seed) == (1, 2)
    fresh = fg.solve(A, b, seed=None, maxiter=3, tol=0)
    assert np.array_equal(fg.solve(A, b, seed=fresh.seed, maxiter=3, tol=0).x, fresh.x)


def test_blocks_are_the_tasks_of_a_run():
    A, b = SYSTEMS["rank-deficient"]
    parts = [[0, 3], [1, 2, 4, 5, 6, 7], [8], list(range(9, 20))]
    order = np.random.default_rng(0).integers(4, size=50)
    tasks = fg.RegressionTasks([A[part] for part in parts], [b[part] for part in parts])
    run = fg.run(tasks, fg.orderings.Explicit(order), 50)
    close(fg.solve(A, b, blocks=parts, ordering=order, tol=0).x, run.iterates[-1], 1e-10)


def test_greedy_visits_are_those_of_a_run():
    A, b = SYSTEMS["tall"]
    tasks = fg.RegressionTasks([row[None] for row in A], [[value] for value in b])
    for ordering in (fg.orderings.GreedyDistance(), fg.orderings.GreedyResidual()):
        run = fg.run(tasks, ordering, 60)
        close(fg.solve(A, b, ordering=ordering, max_steps=60, tol=0).x, run.iterates[-1], 1e-10)
