"""Many dense tasks in one array are the tasks that were given; time and memory grow with their number, no faster."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import InvalidInputError
from forgetting.expectation.engines import exact as exact_engines
from forgetting.expectation.engines import float64_moments
from forgetting.geometry import RowBlocks
from forgetting.tasks import task_data as stacking
from forgetting.tasks.task_data import stacked


def one_by_one(matrices, labels, monkeypatch, **options):
    """The tasks as if none of them could be stacked."""
    with monkeypatch.context() as patch:
        patch.setattr("forgetting.tasks.regression.stacked", lambda *_: None)
        return fg.RegressionTasks(list(matrices), list(labels), **options)


@pytest.fixture
def few_are_many(monkeypatch):
    monkeypatch.setattr(stacking, "MANY", 2)
    monkeypatch.setattr(stacking, "CHUNK", 8)  # so that sums are made in several parts


def drawn(sizes, outputs=(), d=4, seed=0):
    rng = np.random.default_rng(seed)
    matrices = [rng.integers(-4, 5, (n, d)).astype(np.float64) for n in sizes]
    w = rng.standard_normal((d, *outputs))
    return matrices, [X @ w for X in matrices]


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("outputs", [(), (2,)])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (1, 3, 2, 1)])
@pytest.mark.parametrize("loss", ["sum", "mean"])
def test_stacked_tasks_are_the_tasks_that_were_given(sizes, outputs, loss, monkeypatch):
    matrices, labels = drawn(sizes, outputs)
    matrices[2][0] = 0.0  # of rank 0 if it is the only row
    labels[2] = labels[2] + 1.0
    matrices += [matrices[1], matrices[2].copy()]
    labels += [labels[1], labels[2].copy()]
    made, plain = fg.RegressionTasks(matrices, labels, loss=loss), one_by_one(matrices, labels, monkeypatch, loss=loss)
    assert isinstance(made._matrices, RowBlocks)
    assert not isinstance(plain._matrices, RowBlocks)
    assert made.index.tolist() == plain.index.tolist() == [0, 1, 2, 3, 1, 2]
    for tasks in (made, pickle.loads(pickle.dumps(made))):
        for m in range(6):
            for mine, theirs in zip(tasks.task(m), plain.task(m), strict=True):
                assert not mine.flags.writeable
                np.testing.assert_array_equal(mine, theirs)
    assert fg.report.provenance.problem_hash(made) == fg.report.provenance.problem_hash(plain)
    mine, theirs = made.geometry, plain.geometry
    for name in ("rows", "sigma", "offsets", "index", "full", "conditions"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), err_msg=name)
    for name in ("targets", "unexplained", "solution", "residuals", "label_norms"):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-13, atol=1e-15, err_msg=name)
    for m in range(6):
        for part, expected in zip(mine.equations(m), theirs.equations(m), strict=True):
            np.testing.assert_allclose(part, expected, atol=1e-13)


@pytest.mark.usefixtures("few_are_many")
def test_tasks_that_differ_in_one_bit_stay_apart():
    matrices, labels = drawn([1] * 6)
    matrices[3:], labels[3:] = [X.copy() for X in matrices[:3]], [y.copy() for y in labels[:3]]
    matrices[3][0, 0] = np.nextafter(matrices[3][0, 0], 9)
    labels[4][0] = np.nextafter(labels[4][0], 9)
    assert fg.RegressionTasks(matrices, labels).index.tolist() == [0, 1, 2, 3, 4, 2]


def test_equal_sums_do_not_make_tasks_equal(monkeypatch):
    monkeypatch.setattr(stacking, "_weighted_sums", lambda rows, label, starts: np.zeros(len(starts) - 1, np.uint64))
    X = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]])
    tasks = fg.RegressionTasks.from_arrays(X, [1.0, 1.0, 1.0], [0, 1, 2])
    assert tasks.index.tolist() == [0, 1, 0]


@pytest.mark.usefixtures("few_are_many")
@pytest.mark.parametrize("value", [np.nan, 1e200])
@pytest.mark.parametrize("where", ["X", "y"])
def test_what_is_wrong_is_said_as_for_a_single_task(value, where, monkeypatch):
    matrices, labels = drawn([1, 2, 1])
    (matrices if where == "X" else labels)[1].flat[1] = value
    with pytest.raises(InvalidInputError) as alone:
        one_by_one(matrices, labels, monkeypatch)
    with pytest.raises(InvalidInputError) as together:
        fg.RegressionTasks(matrices, labels)
    assert str(together.value) == str(alone.value)
    assert stacked(matrices, labels, True) is None


def test_arrays_of_the_caller_are_neither_kept_nor_changed():
    X, y = np.eye(4), np.arange(4.0)
    for groups in ([0, 1, 2, 3], ["b", "a", "b", "a"]):
        tasks = fg.RegressionTasks.from_arrays(X, y, groups)
        X[0, 0] = y[0] = 7.0
        assert tasks.task(0)[0][0, 0] == 1.0
        assert tasks.task(0)[1][0] == 0.0
        X[0, 0], y[0] = 1.0, 0.0
    kept = fg.RegressionTasks.from_arrays(X, y, [0, 1, 2, 3], copy=False)
    assert np.shares_memory(kept.task(1)[0], X)


def test_held_out_rows_of_stacked_tasks_are_their_own():
    """Blocks of a stack are made when they are asked for, and may have the address of an earlier one."""
    X, y = np.arange(4000.0).reshape(2000, 2) + 1, np.arange(2000.0)
    tasks = fg.RegressionTasks.from_arrays(X, y, np.repeat(np.arange(1000), 2))
    train, test = fg.datasets.hold_out(tasks, 0.5)
    for m in range(1000):
        assert {train.task(m)[1].item(), test.task(m)[1].item()} == {2.0 * m, 2.0 * m + 1}


@pytest.mark.parametrize("rank", [1, 3, 30])  # compiled loops, and matrix products
@pytest.mark.parametrize("method", ["moments", "spectral"])
def test_parts_of_the_tasks_add_up_to_all_of_them(rank, method, monkeypatch):
    monkeypatch.setattr(exact_engines, "QUICK", 0.0)  # float64, as for large problems
    monkeypatch.setattr(exact_engines, "ENOUGH", np.inf)
    tasks = fg.families.gaussian(T=12, d=40, rank=rank, seed=2)
    quantities = ("loss", "forgetting") if method == "moments" else "loss"
    whole = fg.expect(tasks, "with-replacement", [3, 12], method=method, quantities=quantities)
    cuts = float64_moments.Float64Moments._cuts
    seen = []
    monkeypatch.setattr(float64_moments, "PART", 5 * 40)
    monkeypatch.setattr(
        float64_moments.Float64Moments, "_cuts", lambda self, size: seen.append(cuts(self, size)) or seen[-1]
    )
    parts = fg.expect(tasks, "with-replacement", [3, 12], method=method, quantities=quantities)
    assert max(map(len, seen)) > 3  # three parts or more
    np.testing.assert_allclose(parts.loss, whole.loss, rtol=1e-12)
    if method == "moments":
        np.testing.assert_allclose(parts.forgetting, whole.forgetting, rtol=1e-11)


SCRIPT = """
import resource, sys
import numpy as np
import forgetting as fg

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

def everything(T, d=50):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((T, d))
    tasks = fg.RegressionTasks.from_arrays(X, X @ np.ones(d), np.arange(T))
    run = fg.run(tasks, "with-replacement", 10 * T, record_every=5 * T)
    loss = fg.expect(tasks, "with-replacement", [10, T], method="spectral", quantities="loss").loss
    rows = fg.bounds.evaluate(tasks, "with-replacement", T)
    return float(run.losses[-1]), float(loss[0]), sum(row.applies for row in rows)

everything(500)
before = peak()
print(*everything(5000), peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_memory_grows_with_the_number_of_tasks_and_not_with_its_square():
    found = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout.split()
    last, early, bounds, used = map(float, found)
    assert last < 1e-20
    assert early > 1
    assert bounds > 10
    assert used < 110  # MiB; the rows are 2 MiB, and a matrix of 5,000 x 5,000 would be 191 MiB
