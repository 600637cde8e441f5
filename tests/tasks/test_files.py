"""Collections on disk: what was saved comes back bit for bit, and a bad file is named as such."""

import os
import pickle
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.errors import ProblemFileError
from forgetting.orderings import Cyclic

RNG = np.random.default_rng(0)
DENSE = [RNG.standard_normal((n, 5)) for n in (1, 3, 2)]
SPARSE = [sp.random_array((n, 5), density=0.5, rng=RNG, format="csr") for n in (2, 4)]


def labels_of(matrices):
    return [RNG.standard_normal(X.shape[0]) for X in matrices]


COLLECTIONS = {
    "dense": fg.RegressionTasks(DENSE, labels_of(DENSE)),
    "sparse": fg.RegressionTasks(SPARSE, labels_of(SPARSE)),
    "mixed": fg.RegressionTasks([*DENSE, *SPARSE], labels_of([*DENSE, *SPARSE])),
    "clones": fg.families.repeated(fg.families.gaussian(3, 7, [1, 2, 1], seed=1), 4),
    "names": fg.RegressionTasks(DENSE, labels_of(DENSE), names=["plain", "", "naïve — ünïcode"]),
    "options": fg.RegressionTasks(DENSE, labels_of(DENSE), loss="mean", rank_tol=1e-5, rtol=0.1),
    "one number": fg.RegressionTasks([[[1e-100]]], [[-0.0]]),
}


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_saved_collection_comes_back_bit_for_bit(name, tmp_path):
    tasks = COLLECTIONS[name]
    path = tmp_path / "tasks.npz"
    tasks.save(path)
    again = fg.RegressionTasks.load(path)
    assert again.num_tasks == tasks.num_tasks
    assert again.dim == tasks.dim
    assert again.names == tasks.names
    assert (again.loss_kind, again.rank_tol, again.rtol) == (tasks.loss_kind, tasks.rank_tol, tasks.rtol)
    assert again.geometry.num_distinct == tasks.geometry.num_distinct
    assert again.geometry.index.tolist() == tasks.geometry.index.tolist()
    for m in range(tasks.num_tasks):
        (X, y), (X2, y2) = tasks.task(m), again.task(m)
        assert sp.issparse(X) == sp.issparse(X2)
        for one, two in ((X, X2), (y, y2)):
            one, two = (A.toarray() if sp.issparse(A) else A for A in (one, two))
            assert one.shape == two.shape
            assert one.tobytes() == two.tobytes()
    k = 2 * tasks.num_tasks
    assert np.array_equal(fg.run(again, Cyclic(), k).iterates, fg.run(tasks, Cyclic(), k).iterates)
    assert [file.name for file in tmp_path.iterdir()] == ["tasks.npz"]


def test_a_path_may_be_a_string_and_need_no_suffix(tmp_path):
    path = str(tmp_path / "tasks")
    COLLECTIONS["dense"].save(path)
    assert os.path.exists(path)
    assert fg.RegressionTasks.load(path).num_tasks == 3


def test_saving_again_replaces_the_file(tmp_path):
    path = tmp_path / "tasks.npz"
    COLLECTIONS["dense"].save(path)
    COLLECTIONS["clones"].save(path)
    assert fg.RegressionTasks.load(path).num_tasks == 12


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError("disk full"), ValueError("odd")], ids=repr)
def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(error, tmp_path, monkeypatch):
    path = tmp_path / "tasks.npz"
    COLLECTIONS["dense"].save(path)
    before = path.read_bytes()

    def fail(handle, **arrays):
        handle.write(b"half of a file")
        raise error

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(
        ProblemFileError if isinstance(error, OSError) else error if isinstance(error, type) else type(error)
    ):
        COLLECTIONS["clones"].save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["tasks.npz"]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    path = tmp_path / "nowhere" / "tasks.npz"
    with pytest.raises(ProblemFileError, match=r"tasks.npz: there is no folder .*nowhere; make it first"):
        COLLECTIONS["dense"].save(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProblemFileError, match=r"absent\.npz: no such file"):
        fg.RegressionTasks.load(tmp_path / "absent.npz")


def test_pickles_are_refused_inside_and_out(tmp_path):
    bomb = type("Bomb", (), {"__reduce__": lambda self: (pytest.fail, ("a pickle was loaded",))})()
    inside, outside = tmp_path / "inside.npz", tmp_path / "outside.npz"
    np.savez(inside, format=np.array([bomb], dtype=object))
    with pytest.raises(ProblemFileError, match="pickled objects, which are never loaded"):
        fg.RegressionTasks.load(inside)
    outside.write_bytes(pickle.dumps(bomb))
    with pytest.raises(ProblemFileError, match="single arrays and pickles are never loaded"):
        fg.RegressionTasks.load(outside)


@pytest.mark.parametrize("content", [b"", b"not a zip file", b"PK\x03\x04 and no more"], ids=["empty", "text", "cut"])
def test_what_is_no_archive_is_said_to_be_none(content, tmp_path):
    path = tmp_path / "tasks.npz"
    path.write_bytes(content)
    with pytest.raises(ProblemFileError, match=r"tasks\.npz: not a readable \.npz file"):
        fg.RegressionTasks.load(path)


def test_damage_anywhere_is_noticed_or_harmless(tmp_path):
    path = tmp_path / "tasks.npz"
    COLLECTIONS["mixed"].save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    noticed = []
    for _ in range(300):
        damaged = bytearray(whole)
        damaged[int(rng.integers(len(damaged)))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            fg.RegressionTasks.load(path)
        except ProblemFileError as error:
            noticed.append(str(error))
    assert all("tasks.npz" in message for message in noticed)
    assert len(noticed) > 150  # the rest hit bytes that mean nothing, such as time stamps
    for cut in range(0, len(whole), 97):
        path.write_bytes(whole[:cut])
        with pytest.raises(ProblemFileError):
            fg.RegressionTasks.load(path)


def test_an_array_or_an_archive_of_another_kind_is_refused(tmp_path):
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(ProblemFileError, match="no archive; single arrays"):
        fg.RegressionTasks.load(tmp_path / "one.npy")
    np.savez(tmp_path / "other.npz", X=np.ones(3))
    with pytest.raises(ProblemFileError, match="not a file of tasks that this library saved"):
        fg.RegressionTasks.load(tmp_path / "other.npz")


@pytest.mark.parametrize("entry", ["rows", "y", "index", "names", "X", "loss", "rtol"])
def test_an_archive_with_an_entry_missing_is_damaged(entry, tmp_path):
    COLLECTIONS["dense"].save(tmp_path / "whole.npz")
    with zipfile.ZipFile(tmp_path / "whole.npz") as whole, zipfile.ZipFile(tmp_path / "part.npz", "w") as part:
        for name in whole.namelist():
            if name != f"{entry}.npy":
                part.writestr(name, whole.read(name))
    with pytest.raises(ProblemFileError, match=r"part\.npz: damaged collection of regression tasks"):
        fg.RegressionTasks.load(tmp_path / "part.npz")


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("index", [0, 1, 9]),
        ("rows", [1, 3, 200]),
        ("rows", [1.5, 2.5, 2.0]),
        ("y", np.full(6, np.nan)),
        ("loss", "median"),
        ("X", np.zeros((2, 2, 2))),
    ],
)
def test_an_archive_with_impossible_entries_is_damaged(entry, value, tmp_path):
    COLLECTIONS["dense"].save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as whole:
        arrays = dict(whole) | {entry: np.array(value)}
    np.savez(tmp_path / "odd.npz", **arrays)
    with pytest.raises(ProblemFileError, match=r"odd\.npz: damaged collection of regression tasks"):
        fg.RegressionTasks.load(tmp_path / "odd.npz")


def test_a_file_of_a_newer_version_is_said_to_be_one(tmp_path):
    COLLECTIONS["dense"].save(tmp_path / "whole.npz")
    with np.load(tmp_path / "whole.npz") as whole:
        arrays = dict(whole) | {"format": np.array("forgetting/regression/99")}
    np.savez(tmp_path / "newer.npz", **arrays)
    with pytest.raises(
        ProblemFileError, match=r"newer\.npz: tasks in the format 'forgetting/regression/99', .* update"
    ):
        fg.load(tmp_path / "newer.npz")
