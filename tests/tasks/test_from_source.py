"""Tasks whose rows are read once are the tasks of the same rows in memory, whatever holds the rows."""

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import forgetting as fg
from forgetting.errors import (
    ForgettingError,
    InvalidInputError,
    MemoryLimitError,
    NotSupportedError,
    ProblemFileError,
    SmallRowWarning,
)
from forgetting.files.row_sources import FileRows

D = 5
SIZES = [40, 3, 1, 200, 6, 7]  # two tasks of more rows than d + 1, one of exactly d + 1


def data(outputs=None, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((sum(SIZES), D))
    X[:40] = rng.standard_normal((40, 3)) @ X[:3]  # a tall task of rank 3
    w = rng.standard_normal(D if outputs is None else (D, outputs))
    y = X @ w
    return X, y + noise * rng.standard_normal(y.shape), np.repeat([f"t{m}" for m in range(len(SIZES))], SIZES)


def assert_same(tasks, plain):
    """The same tasks, up to the rows of tall ones."""
    assert tasks.names == plain.names
    assert tasks.ranks.tolist() == plain.ranks.tolist()
    assert tasks.realizability.holds == plain.realizability.holds
    rng = np.random.default_rng(1)
    w = rng.standard_normal(plain.point_shape)
    np.testing.assert_allclose(tasks.task_losses(w), plain.task_losses(w), rtol=1e-12)
    np.testing.assert_allclose(tasks.geometry.unexplained, plain.geometry.unexplained, rtol=1e-10, atol=1e-28)
    np.testing.assert_allclose(tasks.norms, plain.norms, rtol=1e-12)
    mine, theirs = (fg.run(each, "with-replacement", 30, seed=3) for each in (tasks, plain))
    np.testing.assert_allclose(mine.iterates, theirs.iterates, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(mine.losses, theirs.losses, rtol=1e-10, atol=1e-20)
    exact = [fg.expect(each, "with-replacement", [1, 5]) for each in (tasks, plain)]
    np.testing.assert_allclose(exact[0].loss, exact[1].loss, rtol=1e-10)
    np.testing.assert_allclose(exact[0].forgetting, exact[1].forgetting, rtol=1e-8, atol=1e-12)


class Rows:
    """An object with a shape and row slices."""

    def __init__(self, array):
        self.array, self.shape, self.read = array, array.shape, 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        self.read += len(self.array[rows])
        return self.array[rows]


class FewerRows(Rows):
    """An object that gives two rows of any three."""

    def __getitem__(self, rows):
        return self.array[rows][:2]


def as_npy(X, y, folder):
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    return folder / "X.npy", folder / "y.npy"


def as_map(X, y, folder):
    return tuple(np.load(path, mmap_mode="r") for path in as_npy(X, y, folder))


def as_hdf5(X, y, folder):
    h5py = pytest.importorskip("h5py")
    file = h5py.File(folder / "data.h5", "w")
    return file.create_dataset("X", data=X, chunks=(16, D)), file.create_dataset("y", data=y)


def as_zarr(X, y, folder):
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(folder / "data.zarr"), mode="w")
    return root.create_array("X", data=X, chunks=(16, D)), root.create_array("y", data=y)


def as_blocks(X, y, folder):
    (folder / "blocks").mkdir()
    for number, part in enumerate(np.array_split(X, 7)):
        np.save(folder / "blocks" / f"{number}.npy", part)
    return folder / "blocks", y


KINDS = {
    "arrays": lambda X, y, folder: (X, y),
    "npy": as_npy,
    "fortran": lambda X, y, folder: as_npy(np.asfortranarray(X), y, folder),
    "memmap": as_map,
    "slices": lambda X, y, folder: (Rows(X), Rows(y)),
    "h5py": as_hdf5,
    "zarr": as_zarr,
    "folder": as_blocks,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outputs", [None, 2])
def test_rows_of_any_kind_give_the_tasks_of_rows_in_memory(kind, outputs, tmp_path):
    X, y, groups = data(outputs)
    tasks = fg.RegressionTasks.from_source(*KINDS[kind](X, y, tmp_path), groups)
    assert tasks.rows_read.tolist() == SIZES
    assert tasks.num_rows.tolist() == [3, 3, 1, 5, 6, 5 if outputs is None else 7]
    assert_same(tasks, fg.RegressionTasks.from_arrays(X, y, groups))


@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("outputs", [None, 3])
@pytest.mark.parametrize("loss", ["sum", "mean"])
@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("memory", [2**30, 2**15])
def test_losses_are_those_of_all_rows_also_where_no_w_fits_them(noise, outputs, loss, scattered, memory):
    X, y, groups = data(outputs, noise)
    if scattered:
        order = np.random.default_rng(5).permutation(len(X))
        X, y, groups = X[order], y[order], groups[order]
    tasks = fg.RegressionTasks.from_source(Rows(X), y, groups, loss=loss, memory=memory)
    assert tasks.realizability.holds == (noise == 0)
    assert_same(tasks, fg.RegressionTasks.from_arrays(X, y, groups, loss=loss))


def test_rows_are_read_once_and_short_tasks_are_kept_as_they_are():
    X, y, groups = data()
    rows = Rows(X)
    tasks = fg.RegressionTasks.from_source(rows, y, groups, memory=2**15)
    assert rows.read <= len(X) + 1 + 64  # a look at the type of the first row, and the rows of the mark
    for task in (1, 2, 4):
        start = sum(SIZES[:task])
        np.testing.assert_array_equal(tasks.task(task)[0], X[start : start + SIZES[task]])
        np.testing.assert_array_equal(tasks.task(task)[1], y[start : start + SIZES[task]])


def test_without_tall_tasks_nothing_is_reduced():
    X, y = np.eye(4), np.arange(4.0)
    tasks = fg.RegressionTasks.from_source(Rows(X), y, [0, 1, 1, 2])
    assert tasks.rows_read is None
    assert tasks.notes == ("tasks are in the order of their rows: '0', '1', '2'",)
    assert tasks.rank_tol is None
    plain = fg.RegressionTasks.from_arrays(X, y, [0, 1, 1, 2])
    assert fg.report.provenance.problem_hash(tasks) == fg.report.provenance.problem_hash(plain)


def test_a_folder_without_groups_has_a_task_in_each_file(tmp_path):
    X, y, groups = data()
    (tmp_path / "X").mkdir()
    (tmp_path / "y").mkdir()
    for m in range(len(SIZES)):
        np.save(tmp_path / "X" / f"t{m}.npy", X[groups == f"t{m}"])
        np.save(tmp_path / "y" / f"t{m}.npy", y[groups == f"t{m}"])
    tasks = fg.RegressionTasks.from_source(tmp_path / "X", tmp_path / "y")
    assert_same(tasks, fg.RegressionTasks.from_arrays(X, y, groups))
    assert (tmp_path / "X.factors.npz").exists()


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("files", [1, 3])
@pytest.mark.parametrize("outputs", [None, 2])
def test_parquet_files_have_columns_of_labels_and_groups(words, files, outputs, tmp_path):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y, groups = data(outputs)
    groups = groups if words else np.array([int(name[1:]) for name in groups])
    order = np.random.default_rng(2).permutation(len(X))
    X, y, groups = X[order], y[order], groups[order]
    labels = ["y"] if outputs is None else ["y0", "y1"]
    columns = {f"x{j}": X[:, j] for j in range(D)} | {"task": groups}
    columns |= dict(zip(labels, y.reshape(len(y), -1).T, strict=True))
    table = pa.table(columns)
    path = tmp_path / "data"
    path.mkdir()
    for number, part in enumerate(np.array_split(np.arange(len(X)), files)):
        parquet.write_table(table.take(part), path / f"{number}.parquet", row_group_size=50)
    source = path if files > 1 else path / "0.parquet"
    tasks = fg.RegressionTasks.from_source(source, labels if outputs else "y", "task")
    assert_same(tasks, fg.RegressionTasks.from_arrays(X, y, groups))


def test_processes_give_the_same_factors_as_one(tmp_path):
    X, y, groups = data(noise=0.1)
    paths = as_npy(X, y, tmp_path)
    one, two = (
        fg.RegressionTasks.from_source(paths[0], y, groups, memory=2**15, cache=False, jobs=jobs) for jobs in (1, 2)
    )
    for m in range(len(SIZES)):
        for mine, theirs in zip(one.task(m), two.task(m), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    with pytest.raises(NotSupportedError, match="jobs"):
        fg.RegressionTasks.from_source(Rows(X), y, groups, jobs=2)


# ------------------------------------------------------------------------------------------------------------ the file


def mapped(array):
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


def without_reading(monkeypatch):
    """Let every read of more than a row fail."""
    real = FileRows._raw

    def only_samples(self, start, stop):
        assert stop - start == 1, "the data were read again"
        return real(self, start, stop)

    monkeypatch.setattr(FileRows, "_raw", only_samples)


@pytest.mark.parametrize("memory", [2**30, 1.8e4])  # factors in memory, and mapped
def test_a_second_load_takes_the_factors_and_does_not_read_the_data(memory, tmp_path, monkeypatch):
    X, y, groups = data(noise=0.2)
    X, y, groups = (
        np.concatenate([X * (i + 1) for i in range(10)]),
        np.tile(y, 10),
        [f"{g}/{i}" for i in range(10) for g in groups],
    )
    paths = as_npy(X, y, tmp_path)
    first = fg.RegressionTasks.from_source(*paths, groups, memory=memory)
    assert mapped(first._matrices.stack) == (memory < 1e6)
    without_reading(monkeypatch)
    second = fg.RegressionTasks.from_source(*paths, groups, memory=memory)
    assert second.names == first.names
    assert second.rows_read.tolist() == first.rows_read.tolist()
    assert second.notes == first.notes
    for m in range(second.num_tasks):
        for mine, theirs in zip(first.task(m), second.task(m), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(
        fg.run(first, "cyclic", 50, record_every=50).iterates, fg.run(second, "cyclic", 50, record_every=50).iterates
    )
    with pytest.raises(AssertionError, match="read again"):  # another loss, another file
        fg.RegressionTasks.from_source(*paths, groups, memory=memory, loss="mean")


@pytest.mark.parametrize("change", ["data", "labels", "groups", "rank_tol"])
def test_factors_of_other_data_are_computed_again(change, tmp_path):
    X, y, groups = data()
    paths = as_npy(X, y, tmp_path)
    fg.RegressionTasks.from_source(*paths, groups)
    options = {}
    if change == "data":
        X[150] *= 2
        np.save(paths[0], X)
    elif change == "labels":
        y[150] += 1
        np.save(paths[1], y)
    elif change == "groups":
        groups = np.roll(groups, 1)
    else:
        options = {"rank_tol": 1e-3}
    tasks = fg.RegressionTasks.from_source(*paths, groups, **options)
    w = np.ones(D)
    plain = fg.RegressionTasks.from_arrays(X, y, groups, **options)
    np.testing.assert_allclose(tasks.task_losses(w), plain.task_losses(w), rtol=1e-12)


def test_damaged_factors_are_noticed_and_computed_again(tmp_path):
    X, y, groups = data()
    paths = as_npy(X, y, tmp_path)
    whole = fg.RegressionTasks.from_source(*paths, groups)
    file = tmp_path / "X.npy.factors.npz"
    content = bytearray(file.read_bytes())
    number = whole.task(3)[0][1, 1].tobytes()
    place = bytes(content).find(number)
    assert place > 0
    content[place] ^= 1
    file.write_bytes(content)
    tasks = fg.RegressionTasks.from_source(*paths, groups)
    np.testing.assert_array_equal(tasks.task(3)[0], whole.task(3)[0])
    assert any("computed again: " in note and "damaged" in note and "checksum" in note for note in tasks.notes)
    assert fg.RegressionTasks.from_source(*paths, groups).notes == whole.notes  # written anew
    file.write_bytes(file.read_bytes()[:-2000])
    with pytest.raises(ProblemFileError, match="not written by forgetting"):  # it does not even say whose it is
        fg.RegressionTasks.from_source(*paths, groups)


def test_files_of_the_user_are_kept(tmp_path):
    X, y, groups = data()
    mine = tmp_path / "mine.npz"
    np.savez(mine, X=X)
    before = mine.read_bytes()
    with pytest.raises(ProblemFileError, match="is kept"):
        fg.RegressionTasks.from_source(X, y, groups, cache=mine)
    saved = tmp_path / "tasks.npz"
    fg.families.two_lines(0.5).save(saved)
    with pytest.raises(ProblemFileError, match="no factors, and is kept"):
        fg.RegressionTasks.from_source(X, y, groups, cache=saved)
    assert mine.read_bytes() == before
    assert fg.load(saved).num_tasks == 2
    fg.RegressionTasks.from_source(X, y, groups, cache=tmp_path / "own")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.npz", "own.npz", "tasks.npz"]


# ------------------------------------------------------------------------------------------------ what is refused


def test_what_needs_the_rows_is_refused_and_says_why(tmp_path):
    X, y, groups = data()
    tasks = fg.RegressionTasks.from_source(X, np.sign(y), groups)
    tasks.save(tmp_path / "tasks.npz")
    for each in (tasks, fg.RegressionTasks.load(tmp_path / "tasks.npz"), pickle.loads(pickle.dumps(tasks))):
        assert each.rows_read.tolist() == SIZES
        for call in (
            lambda each=each: each.prepared(intercept=True),
            lambda each=each: fg.datasets.hold_out(each),
            lambda each=each: fg.expect(each, "cyclic", 2, noise=0.1),
            lambda each=each: fg.run(each, "cyclic", 2, scheme="nlms"),
            lambda each=each: each.with_data(*zip(*map(each.task, range(6)), strict=True), loss="mean"),
        ):
            with pytest.raises(NotSupportedError, match="40 rows of task 0"):
                call()
        with pytest.raises(NotSupportedError, match="accuracy"):
            each.accuracy(np.ones(D))


def test_memory_that_is_too_small_is_refused_with_what_is_needed():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((4000, 20)), rng.standard_normal(4000)
    with pytest.raises(MemoryLimitError, match="read together"):
        fg.RegressionTasks.from_source(X, y, sizes=[4000], memory=100)
    with pytest.raises(MemoryLimitError, match="cache=, a file"):
        fg.RegressionTasks.from_source(X, y, sizes=[20] * 200, memory=1e5)
    with pytest.raises(MemoryLimitError, match="sort the rows by task"):
        fg.RegressionTasks.from_source(X, y, np.arange(4000) % 40, memory=3e5)
    assert fg.RegressionTasks.from_source(X, y, sizes=[100] * 40, memory=3e5).rows_read.tolist() == [100] * 40


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((np.eye(3), np.ones(2)), {"sizes": [3]}, "X has 3 rows, but y has 2"),
        ((np.eye(3), np.ones(3)), {}, "which rows form a task"),
        ((np.eye(3), np.ones(3), [0, 0, 1]), {"sizes": [3]}, "not both"),
        ((np.eye(3), np.ones(3)), {"sizes": [2]}, "2 rows in all, but X has 3"),
        ((np.eye(3), np.ones(3)), {"sizes": [3], "names": ["a", "b"]}, "2 names for 1 tasks"),
        ((np.eye(3), np.ones(3)), {"sizes": [3], "cache": True}, "not known where the data are"),
        ((np.eye(3), np.ones(3)), {"sizes": [3], "loss": "median"}, "'sum' or 'mean'"),
        ((np.eye(3), np.ones(3), "task"), {}, "names a column"),
        ((np.eye(3), np.ones(3)), {"sizes": [0, 3]}, r"sizes\[0\] is 0, but must be at least 1"),
        ((np.eye(3), np.ones(3)), {"sizes": [3], "jobs": 0}, "jobs .* must be at least 1"),
        (
            ({"A": np.eye(3), "B": np.eye(3)}, np.ones(3)),
            {"sizes": [3]},
            "dict with the arrays 'A', 'B'; give an array",
        ),
        ((np.array([[1.0], [np.nan]]), np.ones(2)), {"sizes": [2]}, "row 1, column 0 is nan"),
        ((Rows(np.array([[1.0], [np.nan]])), np.ones(2)), {"sizes": [2]}, "X: entry at row 1, column 0 is nan"),
        (
            (FewerRows(np.eye(3)), np.ones(3)),
            {"sizes": [3]},
            r"X: rows 0 to 2 came in shape \(2, 3\), expected \(3, 3\)",
        ),
        ((np.eye(2), np.array([1.0, np.inf])), {"sizes": [2]}, "y: entry at row 1, column 0 is inf"),
    ],
)
def test_mistakes_are_named(arguments, options, message):
    with pytest.raises(InvalidInputError, match=message):
        fg.RegressionTasks.from_source(*arguments, **options)


def test_files_that_are_not_read_are_named(tmp_path):
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    with pytest.raises(ProblemFileError, match=r"<U1; arrays of truth values or numbers are read"):
        fg.RegressionTasks.from_source(tmp_path / "words.npy", np.ones(1), sizes=[1])
    (tmp_path / "X.h5").write_bytes(b"")
    with pytest.raises(ProblemFileError, match=r"unknown ending .*h5py\.File"):
        fg.RegressionTasks.from_source(tmp_path / "X.h5", np.ones(1), sizes=[1])


def test_small_rows_of_a_tall_task_are_warned_of():
    X, _, groups = data()
    X[50] *= 1e-14
    with pytest.warns(SmallRowWarning, match=r"task 3 \(t3\)"):
        fg.RegressionTasks.from_source(X, X @ np.ones(D), groups)


SCRIPT = """
import resource, sys
import numpy as np
import forgetting as fg

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

fg.RegressionTasks.from_source(np.eye(3).repeat(3, 0), np.ones(9), sizes=[9]).geometry
before = peak()
tasks = fg.RegressionTasks.from_source(sys.argv[1], np.load(sys.argv[2]), sizes=[2000] * 100, memory=24 * 2**20)
tasks.geometry
print(peak() - before, tasks.num_tasks, int(tasks.ranks.sum()))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")
def test_data_of_several_times_the_memory_are_read_within_it(tmp_path):
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float64, (200000, 40))
    y = np.empty(len(X))
    for start in range(0, len(X), 20000):
        X[start : start + 20000] = rng.standard_normal((20000, 40))
        y[start : start + 20000] = X[start : start + 20000].sum(axis=1)
    X.flush()
    np.save(tmp_path / "y.npy", y)
    script = [sys.executable, "-c", SCRIPT, str(tmp_path / "X.npy"), str(tmp_path / "y.npy")]
    used, count, ranks = subprocess.run(script, capture_output=True, text=True, check=True).stdout.split()
    assert (int(count), int(ranks)) == (100, 4000)
    assert float(used) < 32  # MiB; the data are 61 MiB


@pytest.mark.parametrize("reader", ["load", "from_source"])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_damaged_parquet_is_refused_by_name_or_read(reader, codec, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    columns = {"x": np.arange(40.0) / 8, "y": np.arange(40.0) ** 2, "task": [f"name {i % 3}" for i in range(40)]}
    pq.write_table(pa.table(columns), path, compression=codec)
    whole, refused = path.read_bytes(), 0
    for at in range(0, len(whole), 41):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
        try:
            if reader == "load":
                fg.load(path)
            else:
                fg.RegressionTasks.from_source(path, "y", "task", cache=False)
        except ForgettingError:
            refused += 1
    assert refused > 5


@pytest.mark.parametrize(
    ("columns", "names", "words"),
    [
        ([[1.0], [2.0], [0.5], ["a"]], ["x", "x", "y", "task"], "two columns are called 'x'"),
        ([[1.0], [0.5], [{"a": 1}]], ["x", "y", "task"], "column 'task': struct.* is neither numbers nor words"),
        ([[1.0], [0.5], [[1, 2]]], ["x", "y", "task"], "column 'task': list.* is neither numbers nor words"),
        (None, None, "not a regular file"),
    ],
)
def test_both_readers_of_parquet_say_the_same(columns, names, words, tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    if columns is None:
        os.mkfifo(path)
    else:
        pq.write_table(pa.table([pa.array(column) for column in columns], names=names), path)
    for read in (fg.load, lambda path: fg.RegressionTasks.from_source(path, "y", "task", cache=False)):
        with pytest.raises(ProblemFileError, match=words):
            read(path)


@pytest.mark.parametrize("kind", ["h5py", "zarr"])
@pytest.mark.parametrize("part", ["X", "y", "groups"])
def test_damaged_chunks_are_refused_with_the_file_and_the_rows(kind, part, tmp_path):
    module = pytest.importorskip(kind)
    X, y, _ = data()
    codes = np.repeat(np.arange(len(SIZES)), SIZES)
    if kind == "h5py":
        with module.File(tmp_path / "d.h5", "w") as file:
            for name, array in (("X", X), ("y", y), ("groups", codes)):
                file.create_dataset(name, data=array, chunks=array.shape, compression="gzip")
                place = file[name].id.get_chunk_info(0).byte_offset
                if name == part:
                    start = place
        content = (tmp_path / "d.h5").read_bytes()
        (tmp_path / "d.h5").write_bytes(content[:start] + bytes(16) + content[start + 16 :])
        found = module.File(tmp_path / "d.h5")
    else:
        made = module.open_group(str(tmp_path / "d.zarr"), mode="w")
        for name, array in (("X", X), ("y", y), ("groups", codes)):
            made.create_array(name, data=array, chunks=array.shape)
        chunk = next(path for path in (tmp_path / "d.zarr" / part).rglob("*") if path.is_file() and path.suffix == "")
        chunk.write_bytes(bytes(16))
        found = module.open_group(str(tmp_path / "d.zarr"))
    with pytest.raises(ProblemFileError, match=rf"d\.(h5|zarr).{part}, {part}, rows 0 to .* cannot be read"):
        fg.RegressionTasks.from_source(found["X"], found["y"], found["groups"], cache=False)


def test_a_closed_file_and_a_row_that_fills_the_memory_are_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "d.h5", "w") as file:
        wide = file.create_dataset("X", (2, 10**13), "f8", chunks=(1, 1000))
        with pytest.raises(MemoryLimitError, match=r"d\.h5\.X, X: rows that are read together"):
            fg.RegressionTasks.from_source(wide, [1.0, 2.0], sizes=[1, 1], cache=False)
    with pytest.raises(ProblemFileError, match="X: cannot be read"):
        fg.RegressionTasks.from_source(wide, [1.0, 2.0], sizes=[1, 1], cache=False)


def test_no_array_of_zarr_is_unpickled(tmp_path):
    zarr = pytest.importorskip("zarr")

    class Code:
        def __reduce__(self):
            return Path.touch, (tmp_path / "ran",)

    (tmp_path / "a.zarr").mkdir()
    described = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "dtype": "|O", "order": "C", "fill_value": ""}
    way = {"filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}], "compressor": None}
    (tmp_path / "a.zarr" / ".zarray").write_text(json.dumps({**described, **way}))
    (tmp_path / "a.zarr" / "0.0").write_bytes(pickle.dumps(Code()))
    with pytest.raises(ProblemFileError, match=r"a\.zarr, X: it holds pickled objects"):
        fg.RegressionTasks.from_source(zarr.open_array(str(tmp_path / "a.zarr")), [1.0, 2.0], sizes=[1, 1])
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("ending", [".parquet", ".npy", ".csv", ""])
def test_names_that_no_file_can_have_are_refused(ending):
    name = f"{'a' * 5000}{ending}"
    for X, y in ((name, "y"), ([[1.0]], name)):
        with pytest.raises(ProblemFileError):
            fg.RegressionTasks.from_source(X, y, sizes=[1], cache=False)
