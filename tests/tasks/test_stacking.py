"""Sparse tasks in one array are the tasks that were given, and are refused in the same words."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.errors import InvalidInputError, SmallRowWarning
from forgetting.geometry import RowBlocks
from forgetting.tasks.task_data import split_rows, stacked


def rows(n, d=6, seed=0):
    return sp.random_array((n, d), density=0.5, rng=np.random.default_rng(seed), format="csr")


def one_by_one(matrices, labels, monkeypatch, **options):
    """The tasks as if none of them could be stacked."""
    with monkeypatch.context() as patch:
        patch.setattr("forgetting.tasks.regression.stacked", lambda *_: None)
        return fg.RegressionTasks(matrices, labels, **options)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("outputs", [(), (1,), (3,)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_stacked_tasks_are_the_tasks_that_were_given(kind, outputs, dtype, monkeypatch):
    matrices = [kind((8 * rows(n, seed=seed)).astype(dtype)) for seed, n in enumerate((1, 3, 2, 1))]
    matrices += [matrices[1], matrices[2].copy()]
    labels = [np.arange(X.shape[0] * max(1, *outputs, 1), dtype=dtype).reshape(-1, *outputs) for X in matrices]
    labels[4] = labels[1]
    made = fg.RegressionTasks(matrices, labels)
    assert isinstance(made._matrices, RowBlocks)
    plain = one_by_one(matrices, labels, monkeypatch)
    assert not isinstance(plain._matrices, RowBlocks)
    assert made._index.tolist() == plain._index.tolist() == [0, 1, 2, 3, 1, 2]
    assert made.num_rows.tolist() == plain.num_rows.tolist()
    for tasks in (made, pickle.loads(pickle.dumps(made))):
        for m in range(6):
            (X, y), (expected, label) = tasks.task(m), plain.task(m)
            assert tasks.task(m)[0] is X
            assert not any(part.flags.writeable for part in (X.data, X.indices, X.indptr, y))
            np.testing.assert_array_equal(X.toarray(), expected.toarray())
            np.testing.assert_array_equal(y, label)
    assert fg.report.provenance.problem_hash(made) == fg.report.provenance.problem_hash(plain)
    np.testing.assert_array_equal(fg.run(made, "cyclic", 9).iterates, fg.run(plain, "cyclic", 9).iterates)


def test_the_arrays_of_the_caller_are_neither_kept_nor_changed():
    X = sp.csr_array((np.ones(3), np.array([2, 0, 0]), np.array([0, 3])), shape=(1, 4))  # a column twice, not sorted
    tasks = fg.RegressionTasks.from_arrays(X, [1.0], ["a"])
    assert tasks.task(0)[0].toarray().tolist() == [[2.0, 0.0, 1.0, 0.0]]
    assert X.indices.tolist() == [2, 0, 0]
    A = rows(5)
    before = A.toarray()
    tasks = fg.RegressionTasks.from_arrays(A, np.ones(5), range(5))
    A.data[:] = 0
    np.testing.assert_array_equal(np.vstack([tasks.task(m)[0].toarray() for m in range(5)]), before)


def test_groups_that_are_not_in_order_are_put_in_order():
    A, y = rows(6), np.arange(6.0)
    matrices, labels, known = split_rows(A, y, ["b", "a", "b", "c", "a", "b"])
    assert known.names == ["b", "a", "c"]
    for pick, X, label in zip(([0, 2, 5], [1, 4], [3]), matrices, labels, strict=True):
        np.testing.assert_array_equal(X.toarray(), A.toarray()[pick])
        assert label.tolist() == pick
    assert [block.shape for block in matrices[1:]] == [(2, 6), (1, 6)]
    with pytest.raises(IndexError):
        _ = matrices[3]
    assert matrices[-1].toarray().tolist() == matrices[2].toarray().tolist()


def damaged(change):
    matrices, labels = [rows(n, seed=n) for n in (2, 1, 3)], [np.ones(n) for n in (2, 1, 3)]
    change(matrices, labels)
    return matrices, labels


def nan(X, y):
    X[2].data[1] = np.nan


def vanishing(X, y):
    X[1] = X[1] * 1e-200


def overflowing(X, y):
    y[1][0] = 1e200


def longer(X, y):
    y[2] = np.ones(4)


def narrower(X, y):
    X[1] = X[1][:, :3]


def outputs(X, y):
    y[2] = np.ones((3, 2))


def empty(X, y):
    X[1], y[1] = sp.csr_array((0, 6)), np.ones(0)


def text(X, y):
    y[0] = np.array(["a", "b"])


@pytest.mark.parametrize(
    "change", [nan, vanishing, overflowing, longer, narrower, outputs, empty, text], ids=lambda change: change.__name__
)
def test_what_is_wrong_is_said_as_for_a_single_task(change, monkeypatch):
    matrices, labels = damaged(change)
    with pytest.raises(InvalidInputError) as alone:
        one_by_one(matrices, labels, monkeypatch)
    with pytest.raises(InvalidInputError) as together:
        fg.RegressionTasks(matrices, labels)
    assert str(together.value) == str(alone.value)
    assert stacked(matrices, labels, True) is None


def test_a_small_row_of_a_stack_is_named(monkeypatch):
    matrices, labels = [rows(2, seed=3), sp.csr_array([[1.0, 0.0], [0.0, 1e-13]]), rows(2)], np.ones((3, 2))
    matrices[0] = matrices[2] = sp.csr_array(np.eye(2))
    with pytest.warns(SmallRowWarning, match=r"task 1 \(1\), row 1: its largest entry is 1e-13"):
        made = fg.RegressionTasks(matrices, list(labels))
    assert isinstance(made._matrices, RowBlocks)
    matrices[1].data[1] = 1e-300
    with pytest.raises(InvalidInputError, match=r"task 1 .*, row 1: .* which vanishes"):
        fg.RegressionTasks(matrices, list(labels))
