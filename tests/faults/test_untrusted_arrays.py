"""Files from anywhere: one `ProblemFileError` that says what is wrong, before anything is unpacked or computed."""

import io
import os
import struct
import zipfile
import zlib
from itertools import count

import numpy as np
import pytest
import scipy.sparse as sp

import forgetting as fg
from forgetting.auditing import read_tasks
from forgetting.claims import Instance
from forgetting.core import memory
from forgetting.errors import ProblemFileError
from forgetting.files import arrays as storage
from forgetting.files.arrays import read_arrays

GIB = 2**30
SPARSE = fg.RegressionTasks(
    [sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]), np.array([[1.0, 1.0, 1.0]])], [[1.0, 2.0], [0.5]]
)
CLASSES = fg.families.separable(T=2, d=3, n=4, margin=0.5)


@pytest.fixture(autouse=True)
def _four_gib(monkeypatch):
    """What is refused does not depend on this machine."""
    monkeypatch.setattr(memory, "available_memory", lambda: 4.0 * GIB)


def described(descr="'<f8'", shape="(2,)", order="False", version=1):
    """The header of an array, as np.save writes it."""
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}".encode("latin1") + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text


def packed(path, entries, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return path


def refused(path, match, read=read_arrays):
    with pytest.raises(ProblemFileError, match=match) as caught:
        read(path)
    assert str(path) in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ archives


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["?", "<i2", ">i4", "<u8", "<f4", ">f8", "<U3"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (2, 2, 2)])
def test_what_numpy_writes_is_read_bit_for_bit(shape, kind, order, tmp_path):
    values = np.arange(8)[: int(np.prod(shape))].reshape(shape).astype(kind, order=order)
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "one.npz", a=values)
        again = read_arrays(tmp_path / "one.npz")["a"]
        assert (again.shape, again.dtype) == (values.shape, values.dtype)
        assert again.tobytes() == values.tobytes()


def test_an_archive_that_unpacks_to_a_thousand_times_its_size_is_refused_unread(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_unpack", lambda *arguments: pytest.fail("something was unpacked"))
    size = 300 * 2**20
    pump = zlib.compressobj(9, zlib.DEFLATED, -15)
    header = described(shape=f"({size // 8},)")
    body = pump.compress(header) + pump.compress(bytes(size)) + pump.flush()
    path = packed(tmp_path / "bomb.npz", [("a.npy", b"")])
    raw = bytearray(path.read_bytes())
    at = raw.index(b"PK\x01\x02")
    for place, method, sizes in ((0, 8, 14), (at, 10, 16)):
        raw[place + method : place + method + 2] = struct.pack("<H", 8)
        raw[place + sizes : place + sizes + 12] = struct.pack("<III", 0, len(body), len(header) + size)
    raw[at:at] = body
    raw[-6:-2] = struct.pack("<I", at + len(body))
    path.write_bytes(raw)
    refused(path, r"KiB that unpack to 300 MiB, more than 100 times as much; .* uncompressed, with np\.savez")
    monkeypatch.setattr(memory, "available_memory", lambda: 1.0 * GIB)
    refused(
        path, "its arrays, and the copy that a problem keeps, need about 600 MiB, more than half of the 1 GiB available"
    )


@pytest.mark.parametrize(
    "shape", ["(10**18,)", "(1000000000000000000,)", "(3000000000, 4000000000, 0)", "(-2,)", "(1.5,)"]
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_header_with_an_absurd_shape_is_refused(shape, version, tmp_path):
    path = packed(tmp_path / "odd.npz", [("a.npy", described(shape=shape, version=version) + bytes(16))])
    refused(path, r"odd\.npz, array 'a': damaged")


@pytest.mark.parametrize(
    ("header", "match"),
    [
        (described("'|O'"), "pickled objects, which are never loaded"),
        (described("[('x', '<f8')]"), "truth values, numbers or text are read, no others"),
        (described("('<f8', (2,))"), "truth values, numbers or text are read, no others"),
        (described("'<c16'", "(1,)"), "of dtype complex128"),
        (described("'<M8[s]'"), "of dtype datetime64"),
        (described("'|V8'"), "truth values, numbers or text"),
        (described("'<U0'", f"({10**17},)"), "truth values, numbers or text"),
        (described("-" * 900 + "1"), "damaged"),
        (described("(" * 300), "damaged"),
        (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**31), "described by 2147483648 bytes"),
        (b"\x93NUMPY\x03\x00" + bytes(20), "does not begin like an array"),
        (b"\x93NUM", "does not begin like an array"),
        (b"PK\x03\x04 an archive within", "does not begin like an array"),
        (described("'|b1'", "(16,)") + b"\x02" * 16, "its bytes are no truth values"),
        (described("'<U4'", "(1,)") + b"\xff" * 16, "its bytes are no text"),
        (described(shape="(3,)"), "takes 24 bytes, but 16 are there"),
    ],
    ids=count(),
)
def test_a_header_that_is_not_of_numbers_or_text_is_refused(header, match, tmp_path):
    content = header if len(header) > 8 and header[-1:] in b"\x02\xff" else header + bytes(16)
    refused(packed(tmp_path / "odd.npz", [("a.npy", content)]), match)


@pytest.mark.parametrize("name", ["/etc/a.npy", "../a.npy", "b/../../a.npy", "a\\b.npy", "a", "a.npz", "a.npy/"])
def test_an_entry_that_is_not_named_like_an_array_is_refused(name, tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.ones(2))
    refused(packed(tmp_path / "odd.npz", [(name, buffer.getvalue())]), "not the name of an array")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_entries_of_one_name_are_refused(tmp_path):
    one = described() + bytes(16)
    refused(packed(tmp_path / "twice.npz", [("a.npy", one), ("a.npy", one)]), r"'a\.npy', twice")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compression_that_numpy_does_not_use_is_refused(method, tmp_path):
    refused(packed(tmp_path / "odd.npz", [("a.npy", described() + bytes(16))], method), "compressed by method")


def changed(path, entries, changes):
    """An archive with bytes changed in its directory, (place, value) each, counted from the first entry there."""
    raw = bytearray(packed(path, entries).read_bytes())
    at = raw.index(b"PK\x01\x02")
    for place, value in changes:
        raw[at + place : at + place + len(value)] = value
    path.write_bytes(raw)
    return path


def test_encrypted_entries_wrong_checksums_and_wrong_places_are_refused(tmp_path):
    one = [("a.npy", described() + bytes(16))]
    refused(changed(tmp_path / "a.npz", one, [(8, b"\x01\x00")]), r"'a\.npy', encrypted")
    refused(changed(tmp_path / "b.npz", one, [(16, b"\x01\x02\x03\x04")]), "Bad CRC-32")
    refused(changed(tmp_path / "c.npz", one, [(42, b"\x05\x00\x00\x00")]), "is not where it should be")
    refused(changed(tmp_path / "d.npz", one, [(42, b"\xff\xff\xff\x7f")]), "not a readable .npz file")
    refused(changed(tmp_path / "e.npz", one, [(10, b"\x63\x00")]), "compressed by method 99")


def test_entries_that_share_bytes_are_refused(tmp_path):
    same = [("a.npy", described() + bytes(16)), ("b.npy", described() + bytes(16))]
    second = 46 + len("a.npy")
    refused(changed(tmp_path / "shared.npz", same, [(second + 42, b"\x00\x00\x00\x00")]), "entries overlap")


def test_every_damage_of_a_byte_is_refused_or_harmless(tmp_path):
    path = tmp_path / "case.npz"
    Instance(SPARSE, fg.orderings.WithReplacement([1, 2]), 3, w0=[0.0, 1.0, 2.0], extras={"g": 0.5}).save(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    messages = []
    for place in rng.choice(len(whole), 400, replace=False).tolist():
        path.write_bytes(whole[:place] + bytes([whole[place] ^ int(rng.integers(1, 256))]) + whole[place + 1 :])
        try:
            Instance.load(path)
        except ProblemFileError as error:
            messages.append(str(error))
    assert len(messages) > 200
    assert all("case.npz" in message for message in messages)


READERS = [read_arrays, fg.RegressionTasks.load, fg.ClassificationTasks.load, Instance.load, read_tasks]


@pytest.mark.parametrize("read", READERS)
def test_pipes_folders_and_devices_are_refused_without_waiting(read, tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "zeros.npz").symlink_to("/dev/zero")
    for name in ("pipe", "folder", "zeros"):
        refused(tmp_path / f"{name}.npz", "not a regular file|is a folder|a folder, where a file", read)
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "not a regular file", read_tasks)


# -------------------------------------------------------------------------------------------------- what arrays make up


def altered(problem, changes, folder, prefix=""):
    path = folder / "odd.npz"
    problem.save(path)
    with np.load(path) as whole:
        arrays = dict(whole)
    for name, value in changes.items():
        arrays[prefix + name] = np.asarray(value(arrays[prefix + name]) if callable(value) else value)
    np.savez(path, **arrays)
    return path


def at(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    "changes",
    [
        {"indptr": at(1, 2**28)},
        {"indptr": at(1, -1)},
        {"indptr": at(0, 1)},
        {"indptr": at(-1, 4)},
        {"indptr": lambda one: one[::-1]},
        {"indptr": lambda one: one.astype(float)},
        {"indptr": [0, 6]},
        {"indices": at(0, 3)},
        {"indices": at(2, -1)},
        {"indices": at(0, 2**31 - 1)},
        {"indices": lambda one: one[:-1]},
        {"indices": lambda one: one.astype(np.float32)},
        {"data": lambda one: one[:-1]},
        {"data": lambda one: one[:, None]},
        {"data": at(0, np.nan)},
        {"data": lambda one: one.astype("U9")},
        {"dim": 0},
        {"dim": -3},
        {"dim": 2.5},
        {"dim": [3]},
        {"dim": 2**62},
        {"dim": 10**9},
        {"rows": [0, 3]},
        {"rows": [-1, 4]},
        {"rows": [2, 2]},
        {"rows": np.array([2**63, 2**63 + 3], dtype=np.uint64)},
        {"rows": [2.0, 1.0]},
        {"rows": [[2, 1]]},
        {"rows": np.zeros(0, dtype=int)},
        {"sparse": [True]},
        {"sparse": [1, 0]},
        {"index": [0, 2]},
        {"index": [0, -1]},
        {"index": [0.0, 1.0]},
        {"index": [True, False]},
        {"index": np.zeros(0, dtype=int)},
        {"names": ["one"]},
        {"names": [1, 2]},
        {"names": "ab"},
        {"loss": "median"},
        {"loss": 3},
        {"loss": ["sum"]},
        {"rtol": np.nan},
        {"rtol": -1.0},
        {"rtol": "1"},
        {"rtol": [0.1]},
        {"rank_tol": -1.0},
        {"rank_tol": np.inf},
        {"y": [1.0, 2.0]},
        {"y": [1, 2, 3]},
        {"y": [1.0, np.inf, 3.0]},
    ],
    ids=count(),
)
def test_sparse_tasks_are_checked_before_compiled_code_sees_them(changes, tmp_path):
    path = altered(SPARSE, changes, tmp_path)
    refused(path, r"odd\.npz: damaged collection of regression tasks", fg.RegressionTasks.load)


@pytest.mark.parametrize(
    "changes",
    [
        {"y": at(0, 3)},
        {"y": lambda one: one.astype(float)},
        {"y": lambda one: np.ones_like(one)},
        {"rows": [3, 4]},
        {"X": lambda one: one[:-1]},
        {"X": lambda one: one.ravel()},
        {"X": at((0, 0), np.inf)},
        {"label_names": ["a"]},
        {"label_names": ["a", "a"]},
        {"label_names": [0.5, 1.5]},
        {"names": ["a"]},
    ],
    ids=count(),
)
def test_classification_tasks_are_checked(changes, tmp_path):
    refused(altered(CLASSES, changes, tmp_path), "damaged collection of classification", fg.ClassificationTasks.load)


CASE = Instance(fg.families.two_lines(0.5), fg.orderings.GreedyDistance(), 3, scheme=fg.schemes.SGD(0.5))
SETS = Instance(fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Simplex(2)]), None, 1)


@pytest.mark.parametrize(
    ("case", "changes"),
    [
        *(
            (CASE, {"ordering/class": name})
            for name in ("Ordering", "TaskView", "Visits", "np", "BLOCK", "_Greedy", "__all__", "Iterator", "Scheme")
        ),
        *((CASE, {"scheme/class": name}) for name in ("Scheme", "LinearScheme", "Learned", "linear", "Cyclic", 7)),
        (CASE, {"ordering/repeat": 2}),
        (CASE, {"ordering/repeat": [True]}),
        (CASE, {"ordering/adaptive": True}),
        (CASE, {"ordering/__class__": "Cyclic"}),
        (CASE, {"scheme/step_size": -1.0}),
        (CASE, {"scheme/step_size": "1"}),
        (CASE, {"scheme/step_size": [0.5, 0.5]}),
        (CASE, {"scheme/step_size": np.nan}),
        (CASE, {"scheme/objective": "other"}),
        (CASE, {"scheme/learn": 1.0}),
        (CASE, {"k": -1}),
        (CASE, {"k": 2.0}),
        (CASE, {"k": [3]}),
        (CASE, {"w0": [1.0]}),
        (CASE, {"w0": "a"}),
        (CASE, {"extras/g": "a"}),
        (CASE, {"problem/index": [0, 5]}),
        (SETS, {"problem/kinds": ["Ball", "CustomSet"]}),
        (SETS, {"problem/kinds": ["Ball", "as_point"]}),
        (SETS, {"problem/kinds": ["Ball"]}),
        (SETS, {"problem/kinds": [1, 2]}),
        (SETS, {"problem/0/radius": -1.0}),
        (SETS, {"problem/0/radius": "a"}),
        (SETS, {"problem/0/center": [1.0, 2.0, 3.0]}),
        (SETS, {"problem/0/center": [[1.0], [2.0]]}),
        (SETS, {"problem/1/dim": 10**12}),
        (SETS, {"problem/1/total": np.inf}),
        (SETS, {"problem/names": ["a"]}),
    ],
    ids=count(),
)
def test_instances_are_rebuilt_by_public_classes_that_check_their_values(case, changes, tmp_path):
    path = tmp_path / "odd.npz"
    case.save(path)
    with np.load(path) as whole:
        arrays = dict(whole) | {name: np.asarray(value) for name, value in changes.items()}
    np.savez(path, **arrays)
    refused(path, r"odd\.npz: damaged", Instance.load)


def test_a_set_that_is_far_too_large_is_refused(tmp_path):
    path = tmp_path / "odd.npz"
    Instance(fg.ConvexSets([fg.Simplex(2)]), None, 1).save(path)
    with np.load(path) as whole:
        arrays = dict(whole) | {"problem/0/dim": np.array(10**12)}
    np.savez(path, **arrays)
    refused(path, "points of the sets need about 14.55 TiB", Instance.load)


def test_weights_of_an_ordering_come_back_as_they_were_given(tmp_path):
    ordering = fg.orderings.WithReplacement([0.1, 0.2, 0.4])
    Instance(None, ordering, 1).save(tmp_path / "case.npz")
    again = Instance.load(tmp_path / "case.npz").ordering
    view = fg.orderings.TaskView(3)
    assert again == ordering
    assert again.law.weights(view)[0].tolist() == ordering.law.weights(view)[0].tolist() == [0.1, 0.2, 0.4]


@pytest.mark.parametrize(
    "arrays",
    [
        {"X": np.ones((2, 2)), "y": [1.0], "task": [0, 1]},
        {"X": np.ones((2, 0)), "y": [1.0, 2.0], "task": [0, 1]},
        {"X": np.ones((0, 2)), "y": [], "task": []},
        {"X": np.ones((2, 2)) * 1e200, "y": [1.0, 2.0], "task": [0, 1]},
        {"X": [["a"], ["b"]], "y": [1.0, 2.0], "task": [0, 1]},
        {"X": np.ones((2, 2)), "y": [[1.0, 0.0], [2.0, 0.0]], "task": [0, 1]},
        {"X": np.ones((2, 2)), "y": ["a", "b"], "task": [0, 1]},
        {"X": np.ones((2, 2)), "y": [1.0, 2.0], "task": 3},
    ],
    ids=count(),
)
def test_tasks_for_an_audit_are_checked(arrays, tmp_path):
    np.savez(tmp_path / "odd.npz", **arrays)
    refused(tmp_path / "odd.npz", r"odd\.npz", read_tasks)
