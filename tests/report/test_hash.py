"""The hash of a problem: equal numbers have one hash, however they are stored, and other numbers have another."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.report import provenance
from forgetting.report.provenance import problem_hash

X = np.array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])
Y = [1.0, 2.0]


def sets(one):
    return fg.ConvexSets([one, fg.Ball([0.0, 0.0], 5.0)])


OF_SETS = {
    "ball": [fg.Ball([0.0, 0.0], 1.0), fg.Ball([9.0, 9.0], 1.0), fg.Ball([0.0, 0.0], 1.5)],
    "cone": [fg.SecondOrderCone(2), fg.Simplex(2), fg.Simplex(2, 2.0)],
    "box": [fg.Box([0.0, 0.0], [1.0, 1.0]), fg.Box([0.0, 0.5], [1.0, 1.0]), fg.Box([0.0, 0.0], [1.0, np.inf])],
    "halfspace": [fg.Halfspace([1.0, 0.0], 0.5), fg.Halfspace([1.0, 0.1], 0.5), fg.Halfspace([1.0, 0.0], 0.6)],
    "slab": [fg.Slab([1.0, 0.0], 0.0, 1.0), fg.Slab([1.0, 0.0], 0.0, 2.0), fg.Slab([1.0, 2.0], 0.0, 1.0)],
    "affine": [fg.Affine([[1.0, 0.0]], [1.0]), fg.Affine([[1.0, 0.5]], [1.0]), fg.Affine([[1.0, 0.0]], [2.0])],
    "subspace": [fg.Subspace([[1.0, 0.0]]), fg.Subspace([[0.0, 1.0]])],
    "polyhedron": [fg.Polyhedron([[1.0, 0.0]], [1.0]), fg.Polyhedron([[1.0, 1.0]], [1.0])],
}


@pytest.mark.parametrize("kind", OF_SETS)
def test_every_number_of_a_set_counts(kind):
    hashes = {problem_hash(sets(one)) for one in OF_SETS[kind]}
    assert len(hashes) == len(OF_SETS[kind])
    assert problem_hash(sets(OF_SETS[kind][0])) in hashes


def test_functions_do_not_count_but_the_numbers_of_a_users_set_do():
    class Around(fg.sets.ConvexSet):
        def __init__(self, center):
            self._freeze(dim=2, center=np.array(center))

        def nearest(self, w):
            return self.center.copy()

    assert problem_hash(sets(fg.CustomSet(np.abs, 2))) == problem_hash(sets(fg.CustomSet(lambda w: w, 2)))
    assert problem_hash(sets(Around([0.0, 1.0]))) == problem_hash(sets(Around([0.0, 1.0])))
    assert problem_hash(sets(Around([0.0, 1.0]))) != problem_hash(sets(Around([1.0, 0.0])))


def test_the_numbers_of_kernel_and_classification_tasks_count():
    K = np.array([[2.0, 1.0], [1.0, 2.0]])
    kernels = [
        fg.KernelTasks(K, [1.0, 0.0], [0, 1]),
        fg.KernelTasks(2 * K, [1.0, 0.0], [0, 1]),
        fg.KernelTasks(K, [1.0, 0.5], [0, 1]),
        fg.KernelTasks(K, [1.0, 0.0], [0, 0]),
    ]
    classes = [fg.families.separable(T=2, d=3, n=4, margin=margin) for margin in (0.5, 0.4)]
    assert len({problem_hash(one) for one in [*kernels, *classes]}) == 6


def test_loss_tolerances_labels_and_order_count():
    others = [
        fg.RegressionTasks([X, X[:1]], [Y, [1.0]]),
        fg.RegressionTasks([X[:1], X], [[1.0], Y]),
        fg.RegressionTasks([X, X[:1]], [Y, [2.0]]),
        fg.RegressionTasks([X, X[:1]], [Y, [1.0]], loss="mean"),
        fg.RegressionTasks([X, X[:1]], [Y, [1.0]], rank_tol=0.1),
        fg.RegressionTasks([X, X, X[:1]], [Y, Y, [1.0]]),
        fg.RegressionTasks([X.T, X.T[:1]], [[1.0, 2.0, 3.0], [1.0]]),
    ]
    assert len({problem_hash(one) for one in others}) == len(others)


@pytest.mark.parametrize("at_once", [1, 4, 2**20])
def test_dense_and_sparse_tasks_have_one_hash_however_they_are_read(at_once, monkeypatch):
    dense = problem_hash(fg.RegressionTasks([X], [Y]))
    monkeypatch.setattr(provenance, "AT_ONCE", at_once)
    zeros = sp.csr_array((np.array([1.0, 0.0, 2.0, 3.0]), [0, 1, 2, 2], [0, 3, 4]), shape=(2, 3))
    for matrix in (X, np.where(X == 0, -0.0, X), np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X), zeros):
        tasks = fg.RegressionTasks([matrix], [Y])
        before = tasks.task(0)[0].copy()
        assert problem_hash(tasks) == dense
        assert (tasks.task(0)[0] != before).sum() == 0


def test_a_sparse_matrix_is_never_made_dense_and_a_dense_one_never_copied():
    wide = fg.RegressionTasks(
        [sp.random_array((2000, 10**6), density=1e-5, rng=np.random.default_rng(0), format="csr")], [np.ones(2000)]
    )
    large = fg.RegressionTasks([np.random.default_rng(0).standard_normal((2000, 4000))], [np.ones(2000)], copy=False)
    for tasks in (wide, large):
        tracemalloc.start()
        problem_hash(tasks)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 50 * 2**20  # 16 GB, and 64 MB


def test_a_subspace_can_be_saved(tmp_path):
    from forgetting.claims import Instance

    given = sets(fg.Subspace([[3.0, 4.0], [6.0, 8.0]]))
    Instance(given, None, 1).save(tmp_path / "case.npz")
    again = Instance.load(tmp_path / "case.npz").problem
    assert problem_hash(again) == problem_hash(given)
    assert np.array_equal(again.project(0, [1.0, 2.0]), given.project(0, [1.0, 2.0]))
