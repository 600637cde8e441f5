"""Damaged files: what the library wrote, changed a little, is refused with an error of its own or can be used.

The files are made on the fly, one of every kind that the library reads. Some changes are to the bytes; most take the
file apart first, change one value, and put it together again, so that they get past the parsers of zip, JSON and TOML.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import random
import re
import sqlite3
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import campaign
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp
from campaign import Outcome, WrongResultError
from damage import (
    CELLS,
    MARK,
    TAG,
    as_npy,
    change_array,
    change_bytes,
    change_csv,
    change_json,
    change_npz,
    change_toml,
    packed,
    unpacked,
)
from numpy.lib import format as npy

import forgetting as fg
from forgetting import orderings, schemes
from forgetting.auditing import Audit, Reading, read_tasks
from forgetting.cli.problems import Loaded, Source, read_config
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.figures.items import Band, Curves, Line, Matrix, Paths, Regions, Series, Stage, Table
from forgetting.figures.text_formats import to_csv
from forgetting.files.best_known import seal_of
from forgetting.files.matrices import read_matrix
from forgetting.files.store import PROTECTED
from forgetting.files.store import _digest as digest_of_cell
from forgetting.report import Report, Section, load_report, write_report
from forgetting.report.document import to_latex_file
from forgetting.report.html import to_html
from forgetting.report.provenance import problem_hash
from forgetting.studies.study import export
from forgetting.tasks.levels import worst_equiangular, worst_levels
from forgetting.worstcase import DualCertificate
from forgetting.worstcase.check_certificate import digest

try:
    import h5py
    import zarr
except ImportError:  # one of them is not installed: fewer kinds of files
    h5py = zarr = None
LARGE = 200_000  # numbers in a problem, or coordinates of a step: more is loaded, but not run

# -------------------------------------------------------------------------------------------------------- good files


def saved(thing: Any) -> bytes:
    """The bytes of what `save` writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "saved.npz")
        thing.save(path)
        return path.read_bytes()


def npz(**arrays: Any) -> bytes:
    """The bytes of an npz file."""
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def regression_files() -> Iterator[bytes]:
    tasks = fg.families.gaussian(3, 4, 2, seed=0)
    matrices, labels = zip(*(tasks.task(m) for m in range(3)), strict=True)
    yield saved(tasks)
    yield saved(fg.RegressionTasks(matrices, labels, loss="mean", names=["a", "b", "ä b"], rank_tol=1e-6))
    yield saved(fg.families.repeated(tasks, 2))
    yield saved(tasks.prepared(features=6, standardize="all", intercept=True).prepared(standardize="first"))
    sparse = [sp.csr_array(np.where(abs(one) > 0.5, one, 0)) for one in matrices]
    yield saved(fg.RegressionTasks(sparse, labels))
    yield saved(fg.RegressionTasks([*sparse, matrices[0], sparse[0]], [*labels, labels[0], labels[0]]))


def classification_files() -> Iterator[bytes]:
    yield saved(fg.families.separable(3, 4, 3, seed=0))
    yield saved(fg.ClassificationTasks([[[1.0, 0.0]], [[-1.0, 2.0]]], [["cat"], ["ant"]], names=["one", "two"]))


def instance_files() -> Iterator[bytes]:
    Case = fg.claims.Instance
    lines, classes = fg.families.two_lines(0.5), fg.families.separable(2, 3, 2, seed=0)
    orders = [
        orderings.WithReplacement(),
        orderings.WithReplacement(p=[1, 3]),
        orderings.NormWeighted(),
        orderings.WithoutReplacement(),
        orderings.Cyclic(),
        orderings.Reshuffled(),
        orderings.Explicit([0, 1, 1]),
        orderings.GreedyDistance(),
        orderings.GreedyResidual(repeat=False),
        orderings.Cyclic([1, 0]),
        orderings.NonRepetitive(p=[1, 3]),
        orderings.Steinerberger(1.0),
        orderings.RelaxedGreedy(0.25),
        orderings.Quantile(0.5, sample=1),
    ]
    yield from (saved(Case(lines, order, 3, w0=[1.0, 2.0])) for order in orders)
    ways = [
        schemes.Kaczmarz(),
        schemes.SGD(0.5, "loss"),
        schemes.FiniteSteps(2, 0.5),
        schemes.Ridge(0.5),
        schemes.NLMS(0.5, 0.1),
        schemes.RecursiveLeastSquares(),
        schemes.GradientDescent(tol=1e-6, max_steps=100),
        schemes.GradientDescent(tol=1e-6, max_steps=100, batch_size=1),
    ]
    yield from (saved(Case(lines, orderings.Cyclic(), 3, scheme=way, extras={"gamma": 0.5})) for way in ways)
    yield saved(Case(classes, orderings.Cyclic(), 3, scheme=schemes.WeaklyRegularized(-5.0)))
    yield saved(Case(classes, orderings.Cyclic(), 3, scheme=schemes.POCS()))
    sets = [
        fg.Affine([[1.0, 1.0]], [1.0]),
        fg.Ball([0.0, 0.0], 1.0),
        fg.Box([0.0, 0.0], [1.0, 1.0]),
        fg.Halfspace([1.0, 0.0], 0.25),
        fg.Polyhedron([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.25]),
        fg.SecondOrderCone(2),
        fg.Simplex(2),
        fg.Slab([1.0, 0.0], 0.0, 1.0),
    ]
    yield saved(Case(fg.ConvexSets(sets), orderings.Cyclic(), 3))
    yield from (saved(Case(fg.ConvexSets([one]), orderings.Cyclic(), 3)) for one in sets)
    yield saved(Case(None, None, 3, extras={"A": np.eye(2), "n": 3, "z": [0.5, 0.25]}))


def other_files() -> Iterator[bytes]:
    """Tasks of the other kinds."""
    yield saved(fg.KernelTasks(np.eye(3) + 0.5, [1.0, 2.0, 0.0], ["u", "v", "u"], loss="mean"))
    yield saved(fg.ConvexSets([fg.Affine([[1.0, 1.0]], [1.0], rtol=1e-6), fg.Subspace([[1.0, 2.0]]), fg.Simplex(2)]))


def trajectory_files() -> Iterator[bytes]:
    tasks, random_order = fg.families.gaussian(3, 4, 2, seed=0), orderings.WithReplacement()
    yield saved(fg.run(tasks, random_order, 6))
    yield saved(fg.run(tasks, random_order, 6, schemes.GradientDescent(tol=1e-6), record_every=3))
    yield saved(fg.run(fg.families.repeated(tasks, 2), orderings.Explicit([0, 5, 5]), 3, schemes.Ridge(0.5)))
    yield saved(fg.run(fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Box([0.0, 0.0], [1.0, 1.0])]), random_order, 3))
    sparse = [sp.csr_array([[0, 0, 1.0, 0, 2.0]]), sp.csr_array([[0, 1.0, 1.0, 0, 0]])]
    yield saved(fg.run(fg.RegressionTasks(sparse, [[1.0], [2.0]]), orderings.Cyclic(), 4))


def ensemble_files() -> Iterator[bytes]:
    tasks = fg.families.gaussian(3, 4, 2, seed=0)
    yield saved(fg.run_many(tasks, orderings.WithReplacement(), 5, runs=4))
    yield saved(fg.run_many(tasks, orderings.Reshuffled(), 4, runs=3, record_every=2, scheme=schemes.SGD(0.1, "loss")))


def expectation_files() -> Iterator[bytes]:
    tasks, order = fg.families.gaussian(3, 4, 2, seed=0), orderings.WithReplacement()
    yield saved(fg.expect(tasks, order, [1, 5], quantities=("loss", "task_losses")))
    yield saved(fg.expect(tasks, order, 3, method="monte-carlo", runs=8))
    yield saved(fg.compare(tasks, order, orderings.Cyclic(), 3))


def theory_files() -> Iterator[bytes]:
    yield saved(fg.bounds.evaluate(fg.families.two_lines(0.5), orderings.Cyclic(), [2, 4]))


def table_files() -> Iterator[bytes]:
    yield saved(fg.bounds.table("classification", k=10, T=3))


def hunt_files() -> Iterator[bytes]:
    yield saved(fg.claims.get("lem:regret_bound").hunt(budget=3))


def frontier_files() -> Iterator[bytes]:
    yield saved(fg.worstcase.Frontier("loss", "with-replacement", tuple(frontier_entries())))


def frontier_entries() -> Iterator[fg.worstcase.Entry]:
    """Entries of all kinds: with rows, with kernels, of a construction, and without tasks."""
    for rank in (1, 3):
        yield fg.worstcase.Entry.of(fg.families.gaussian(2, 4, rank, seed=0), "loss", 3, origin="by hand")
    for made in (worst_equiangular(5, 8), worst_levels(16)):
        yield fg.worstcase.Entry("loss", made.num_tasks, 8, value=made.loss(8), construction=made.construction)
    yield fg.worstcase.Entry("loss", None, 2, evidence="certified", upper=0.103)


def entry_texts() -> Iterator[bytes]:
    yield from (entry.to_json().encode() for entry in frontier_entries())


def change_entry(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """An entry with one value changed, mostly with a digest that fits."""
    changed = change_json(rng, data, others)
    try:
        content = json.loads(changed)
        content["sha256"] = seal_of({name: value for name, value in content.items() if name != "sha256"})
        return json.dumps(content).encode() if rng.random() < 0.9 else changed
    except (ValueError, TypeError, AttributeError, RecursionError):
        return changed


def use_entry(entry: fg.worstcase.Entry, folder: Path) -> None:
    """Verify an entry, which refuses most of the changed ones, and write the entry again."""
    str(entry)
    path = folder / f"again-{os.getpid()}.json"
    entry.save(path)
    if fg.worstcase.Entry.read(path) != entry:
        raise WrongResultError(f"saved and read again {entry} is another entry")
    entry.verify()


def proof_files() -> Iterator[bytes]:
    """Certificates of worst cases, of all laws and kinds."""
    weights, given = orderings.WithReplacement([1, 3]), orderings.Explicit([1, 0, 1])
    yield from (fg.worst_case(T, 1).certificate.to_json().encode() for T in (2, 5, np.inf))
    yield fg.worst_case(3, 2, ordering="without-replacement").certificate.to_json().encode()
    yield fg.worst_case(2, 3, quantity="forgetting", ordering="cyclic").certificate.to_json().encode()
    yield fg.worst_case(2, 2, "convex", "next_loss", given).certificate.to_json().encode()
    yield fg.worst_case(2, 2, ordering=weights).certificate.to_json().encode()


LENGTHS = ["3306252529", "1000000000", "10001", "300", "40", "12", "5", "0", "-1", "null", '"' + "9" * 3000 + '"']


def change_proof(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A proof with a few values changed, or made long, mostly with a digest that fits."""
    changed = data
    for _ in range(rng.choice([1, 1, 2, 3])):
        with contextlib.suppress(ValueError, TypeError, AttributeError, RecursionError, LookupError):
            changed = change_json(rng, changed, others)
            content = json.loads(changed)
            if rng.random() < 0.5:
                content[rng.choice(["k", "bits", "tasks", "upper"])] = json.loads(rng.choice(LENGTHS))
            if rng.random() < 0.2:
                content["squares"] += [[[list(range(-9, 9))] * 2, [[1, 10**90]]]]
            content["digest"] = digest(content)
            changed = json.dumps(content).encode() if rng.random() < 0.9 else changed
    return changed


def use_proof(proof: DualCertificate, folder: Path) -> None:
    str(proof)
    proof.verify()


def solution_files() -> Iterator[bytes]:
    A = np.arange(12.0).reshape(6, 2) % 5
    yield saved(fg.solve(A, A @ np.ones(2), ordering="norm-weighted"))
    yield saved(fg.solve(A, np.arange(6.0)))


def matrix_files() -> Iterator[bytes]:
    """What `forgetting solve` reads: sparse matrices of scipy, and a single array."""
    A = np.arange(12.0).reshape(6, 2) % 5
    for made in (sp.csr_array(A), sp.csc_array(A), sp.coo_array(A)):
        buffer = io.BytesIO()
        sp.save_npz(buffer, made)
        yield buffer.getvalue()
    yield npz(A=A, b=A @ np.ones(2))


def use_matrix(matrix: Any, path: Path) -> None:
    if matrix.ndim == 2 and min(matrix.shape) > 0 and max(matrix.shape) < 1000:
        fg.solve(matrix, np.ones(matrix.shape[0]), maxiter=2)


def market_files() -> Iterator[bytes]:
    """Matrix Market files of all kinds."""
    rest = "2 1 2.5\n3 3 -1e3\n3 1 7\n"
    yield f"%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 3\n{rest}".encode()
    yield f"%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n{rest}".encode()
    yield b"%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 2\n3 1 -7\n"
    yield b"%%MatrixMarket matrix coordinate pattern general\n3 3 2\n2 1\n3 2"
    yield b"%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4.5\n"
    yield b"%%MatrixMarket matrix array real hermitian\n2 2\n1\n2\n3\n"


def change_market(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One word of a Matrix Market file replaced, or one line repeated or removed."""
    lines = [line.split() for line in data.decode().split("\n")]
    at = rng.randrange(len(lines))
    change = rng.randrange(8)
    if change <= 4 and lines[at]:
        words = ["real", "integer", "complex", "pattern", "array", "symmetric", "9" * 18, "1x", "1\0", "1.5", "-1", "0"]
        lines[at][rng.randrange(len(lines[at]))] = rng.choice([*words, *CELLS[:20]])
    elif change == 5:
        lines.insert(at, rng.choice(lines))
    elif change == 6:
        del lines[at]
    else:
        lines[at] = [*lines[at], rng.choice(["1", "%", "x", "\0"])]
    return "\n".join(map(" ".join, lines)).encode()


def parquet_files() -> Iterator[bytes]:
    """Tables as pyarrow writes them, plain and compressed, in one group of rows and in several."""
    columns: dict[str, Any] = {
        "task": ["a", "a", "b", "ä b"],
        "x": [1.0, 2, 3, 5],
        "z": [1, 0, 2, 7],
        "y": [0, 1, 0, 2.5],
    }
    for options in ({"compression": "none"}, {"compression": "gzip", "row_group_size": 3}, {"use_dictionary": False}):
        yield parquet(pa.table(columns), **options)


def parquet(table: Any, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def change_parquet(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One byte of a Parquet file, or one of its columns: its type, its name, its values."""
    if rng.random() < 0.4:  # most bytes are of a page or of the description at the end
        at = rng.randrange(len(data) - 8)
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    table = pq.read_table(io.BytesIO(data))
    at = rng.randrange(table.num_columns)
    rows = len(table)
    odd: list[Any] = [
        pa.array([{"a": 1}] * rows), pa.array([[1, 2]] * rows), pa.nulls(rows), pa.array([b"\xff\x00"] * rows),
        pa.array([math.nan, math.inf, 1e308, -0.0][:rows]), pa.array([None, 1.0, 2.0, 3.0][:rows]),
        pa.array(["1", "x", "", "nan"][:rows]), pa.array([2**62] * rows), pa.array([True, None, False, True][:rows]),
        pa.array(["a", "b", "a", "b"][:rows]).dictionary_encode(), pa.array([0, 1, 2, 3][:rows], pa.timestamp("s")),
        pa.array(["x" * 5000] * rows), pa.array(["a"] * rows, pa.large_string()), pa.array([[[]]] * rows),
    ]  # fmt: skip
    names = list(table.column_names)
    if rng.random() < 0.2:
        names[at] = rng.choice([*names, "", "y", MARK, "\0"])
        return parquet(pa.table(table.columns, names=names))
    table = table.slice(0, rng.choice([rows, rows, 1, 0]))
    return parquet(table.set_column(at, names[at], rng.choice(odd)[: len(table)]))


def read_parquet_rows(path: Path, rng: random.Random) -> Any:
    return fg.RegressionTasks.from_source(path, "y", "task", cache=False)


LABELS = [1.0, 2.0, 0.0, 1.0, 2.0, 0.5]


def array_files() -> Iterator[bytes]:
    """Archives with the parts of a folder of zarr, and single files of HDF5."""
    X = np.arange(12.0).reshape(6, 2) % 5
    for more in ({}, {"zarr_format": 2}, {"compressors": None}, {"shards": (6, 2)}):
        with tempfile.TemporaryDirectory() as folder:
            zarr.create_array(folder, data=X, chunks=(3, 2), **more)
            parts = sorted(path for path in Path(folder).rglob("*") if path.is_file())
            yield packed([(str(path.relative_to(folder)), path.read_bytes()) for path in parts], zipfile.ZIP_STORED)


def change_zarr(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One part of a folder of zarr changed: its description, or a chunk."""
    members = unpacked(data)
    at = rng.randrange(len(members))
    name, member = members[at]
    if rng.random() < 0.1:
        del members[at]
    elif member[:1] == b"{" and len(member) > 4:
        members[at] = name, change_json(rng, member, [member])
    else:
        members[at] = name, change_bytes(rng, member, [member])
    return packed(members, zipfile.ZIP_STORED)


class NotOpenedError(ForgettingError):
    """zarr or h5py, which a user calls, refuses a file."""


def read_zarr(path: Path, rng: random.Random) -> Any:
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
            found = zarr.open_array(folder, mode="r")
        except Exception as error:
            raise NotOpenedError from error
        return fg.RegressionTasks.from_source(found, LABELS, sizes=[3, 2, 1], cache=False)


def zarr_opens(path: Path) -> bool:
    try:
        return read_zarr(path, random.Random(0)) is not None
    except NotOpenedError:
        return False
    except Exception:
        return True


def hdf5(**options: Any) -> bytes:
    sink = io.BytesIO()
    with h5py.File(sink, "w") as file:
        file.create_dataset("X", **options)
        file.create_dataset("y", data=LABELS)
    return sink.getvalue()


def hdf5_files() -> Iterator[bytes]:
    X = np.arange(12.0).reshape(6, 2) % 5
    for options in (
        {},
        {"chunks": (2, 2), "compression": "gzip", "fletcher32": True},
        {"chunks": (3, 2), "shuffle": True},
    ):
        yield hdf5(data=X, **options)


def change_hdf5(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Some bytes of an HDF5 file, or another type, shape or layout of its matrix."""
    if rng.random() < 0.6:
        at = rng.randrange(len(data))
        return data[:at] + bytes([rng.choice([0, 255, data[at] ^ (1 << rng.randrange(8))])]) + data[at + 1 :]
    X = np.arange(12.0).reshape(6, 2) % 5
    kinds: list[dict[str, Any]] = [
        {"data": X.astype(rng.choice(["f2", "f4", "i1", "u8", "?", "c16", "S3", ">f8"]))},
        {"data": np.array([["a", "b"]] * 6, dtype=object), "dtype": h5py.string_dtype()},
        {"shape": (6, 2), "dtype": h5py.vlen_dtype(np.int32)},
        {"shape": (6, 2), "dtype": np.dtype([("a", "f8"), ("b", "i4")])},
        {"shape": rng.choice([(6,), (6, 2, 1), (0, 2), (6, 0), (), (7, 2)]), "dtype": "f8"},
        {"shape": rng.choice([(2**40, 2), (6, 2**40)]), "dtype": "f8", "chunks": (1, 2)},
        {"shape": (6, 2**20), "dtype": "f8", "chunks": (6, 2**20)},
        {"data": h5py.Empty("f8")},
        {"data": change_array(rng, X)},
    ]
    try:
        return hdf5(**rng.choice(kinds))
    except (TypeError, ValueError, OSError):  # what HDF5 cannot hold
        return data[: rng.randrange(len(data))]


def read_hdf5(path: Path, rng: random.Random) -> Any:
    try:
        file = h5py.File(path, "r")
    except Exception as error:
        raise NotOpenedError from error
    with file:
        try:
            X, y = file["X"], file["y"]
        except Exception as error:
            raise NotOpenedError from error
        return fg.RegressionTasks.from_source(X, y, sizes=[3, 2, 1], cache=False)


def hdf5_opens(path: Path) -> bool:
    try:
        with h5py.File(path, "r") as file:
            return bool(file["X"])
    except Exception:
        return False


CHECKED = np.arange(24.0).reshape(8, 3) % 7
SOLVES: list[dict[str, Any]] = [
    {},
    {"method": "averaged", "average": 2},
    {"method": "extended"},
    {"bounds": (0, 1)},
    {"damp": 0.5},
]


def checkpoint_files() -> Iterator[bytes]:
    """States of solves by several methods, some of which went on by another method."""
    for options in (
        {},
        {"method": "averaged", "average": 2},
        {"method": "extended"},
        {"bounds": (0, 1)},
        {"damp": 0.5},
    ):
        with tempfile.TemporaryDirectory() as folder:
            fg.solve(CHECKED, np.arange(8.0), maxiter=3, checkpoint=Path(folder, "s.npz"), **options)
            yield Path(folder, "s.npz").read_bytes()


def change_checkpoint(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A state with one value changed, and its marks as they were."""
    marks = json.loads(str(npy.read_array(io.BytesIO(dict(unpacked(data))["record.npy"]))))["dict"]["marks"]
    members = dict(unpacked(change_record(rng, data, others)))
    try:
        record = json.loads(str(npy.read_array(io.BytesIO(members["record.npy"]))))
        record["dict"]["marks"] = marks
        members["record.npy"] = as_npy(np.array(json.dumps(record)))
    except (KeyError, TypeError, ValueError, RecursionError, MemoryError):
        pass
    return packed(list(members.items()), zipfile.ZIP_STORED)


def read_checkpoint(path: Path, rng: random.Random) -> Any:
    marks = path.read_bytes()
    for one in SOLVES:  # the marks say to which it belongs
        try:
            return fg.solve(CHECKED, np.arange(8.0), maxiter=6, checkpoint=path, **one)
        except InvalidInputError as error:
            if "holds the state of another solve" not in str(error):
                raise
            last = error
        finally:
            path.write_bytes(marks)
    raise last


def raw_files() -> Iterator[bytes]:
    X = np.arange(12.0).reshape(6, 2) % 5
    yield npz(X=X, y=np.array([0.0, 1, 0, 1, 0, 1]), task=np.array(list("aabbcc")))
    yield npz(X=X.astype(np.float32), y=np.arange(6), task=np.array([3, 3, 1, 1, 2, 2]))


def csv_files() -> Iterator[bytes]:
    rows = [
        ["task", "a", "b", "y"],
        ["first", "1", "0", "1"],
        ["second", "0", "1.5", "-2e-1"],
        ["second", "1", "1", "3"],
    ]
    for separator in ",;\t":
        yield "\n".join(separator.join(row) for row in rows).encode()
    yield b"\xef\xbb\xbf" + "\r\n".join(",".join(f'"{word}"' for word in row) for row in rows).encode()
    yield b"y,x1,x2,task\ncat,1,2,a\ndog,2,1,a\n\ncat,3,1,b\n"


def toml_files() -> Iterator[bytes]:
    yield b"title = 'mine'\nseed = 3\n[problem]\nfamily = 'gaussian'\nT = 3\nd = 4\nrank = 2\n[report]\nk = 10\n"
    yield b'[problem]\nfamily = "two_lines"\ntheta = 0.5\ncopies = 2\n'
    yield b"[problem]\nfamily = 'principal_angles'\nangles = [0.25, 0.5]\n[report]\norderings = ['cyclic']\neps = [3]"
    yield b'[problem]\nfamily = "separable"\nT = 2\nd = 3\nn = 2\nmargin = 0.5\n'
    yield b'[problem]\nfamily = "heterogeneous_norms"\nT = 2\nd = 3\nspread = 10.0\n'
    yield b"[problem]\nfamily = 'catastrophic'\neps = 3.0\n"
    yield b"[problem]\nfamily = 'back_and_forth'\nT = 3\ntheta = 0.5\n"
    yield b"[[problem.tasks]]\nX = [[1.0, 0.0]]\ny = [1.0]\n[[problem.tasks]]\nX = [[0.5, 0.5], [1, 2]]\ny = [1, 2]\n"


def study_files() -> Iterator[bytes]:
    """Stores of studies, with a cell that failed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.db")
        axes = {"family": "gaussian", "T": 2, "d": 3, "rank": [1, 9], "k": [1, 5], "repeats": 2}
        fg.Study.grid(**axes, store=path).run(progress=False)
        yield path.read_bytes()


def change_study(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A store with one value of one cell changed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "s.db")
        path.write_bytes(data)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
            column = rng.choice(
                ["cell", "rows", "cell", "rows", "seed", "state", "error", "seconds", "changed", "owner", "version"]
            )
            key, old = rng.choice(base.execute(f"SELECT key, {column} FROM cells").fetchall())
            odd: Any = rng.choice([None, 0, -1.5, "", "x", b"\xff", 2**62, "1e999", "[]", "null", "NaN", "9" * 5000])
            if column in ("cell", "rows") and str(old).startswith(("{", "[")) and rng.random() < 0.8:
                odd = change_json(rng, old.encode(), [old.encode()]).decode("utf-8", "replace")
            with contextlib.suppress(sqlite3.IntegrityError):
                base.execute(f"UPDATE cells SET {column} = ? WHERE key = ?", (odd, key))
                if rng.random() < 0.5:  # a forged digest
                    base.create_function("digest", 11, digest_of_cell)
                    base.execute(f"UPDATE cells SET digest = digest({PROTECTED}) WHERE key = ?", (key,))
        return path.read_bytes()


def sqlite_opens(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path)) as base:
            return bool(base.execute("SELECT count(*) FROM cells").fetchone()[0])
    except (sqlite3.Error, UnicodeDecodeError):
        return False


def use_study(found: fg.Study, folder: Path) -> None:
    """Look at a study in all ways."""
    repr(found)
    found.to_frame(times=True)
    for ending in ("csv", "json", "parquet"):
        path = folder / f"exported.{ending}"
        try:
            export(found, path)
        finally:
            path.unlink(missing_ok=True)
    with contextlib.suppress(ForgettingError):
        found.figure()
    page = found._repr_html_()
    if MARK in page or TAG in page:
        raise WrongResultError("the table in a notebook holds a script that the file brought")


def study_configs() -> Iterator[bytes]:
    yield b"seed = 3\nstore = 'my.db'\n[cells]\nfamily = 'gaussian'\nT = [2, 3]\nd = 4\nrank = 1\nk = [1, 5]\n"
    yield b"[[cells]]\nfamily = 'two_lines'\ntheta = 0.5\n[[cells]]\nfamily = 'orthogonal'\nd = [2, 3]\nbounds = true\n"
    yield b"function = 'forgetting.studies:measure'\n[cells]\nfamily = 'two_lines'\ntheta = 1\nordering = ['cyclic']\n"


def use_study_config(found: fg.Study, folder: Path) -> None:
    str(found.status)
    repr(found)


def report_files() -> Iterator[bytes]:
    items = (
        Curves(
            "c",
            "Curves",
            "caption",
            "k",
            "loss",
            (
                Series("exact", (1.0, 10.0), (1.0, 0.1)),
                Series("runs", (1.0, 10.0), (1.0, None), (0.5, 0.05), (2.0, 0.2), role="simulated", group=1),
            ),
        ),
        Curves(
            "plain",
            "Plain",
            "",
            "k",
            "loss",
            (Series("a", (0.0, 1.0), (0.0, -1.0)),),
            xlog=False,
            ylog=False,
            floor=0.5,
        ),
        Regions(
            "r", "Map", "", "k", "d", (Band(2.0, 1, 5, "trivial"), Band(3.0, 6, 9, "theorem")), ("trivial", "theorem")
        ),
        Paths(
            "p",
            "Path",
            "",
            (Line("a", (0.0, 0.0), (1.0, 1.0)),),
            (0.0, 0.0),
            (Stage("s", ((1.0, 0.0), (0.5, 0.5)), (0,)),),
        ),
        Matrix("m", "Overlap", "", "task", "task", ("a", "b"), ("a", "b"), ((1.0, 0.5), (0.5, 1.0))),
        Table("t", "Table", "", ("k", "value"), ((1, 0.5), (2, None), ("word", True)), ("a note",), compact=True),
    )
    report = Report(
        "Title",
        (Section("s", "Section", "Text.", items), Section("e", "Empty", "", (), "why")),
        {"seed": 0, "versions": {"numpy": "2"}},
        ("one finding",),
    )
    yield report.to_json().encode()


@cache
def certificates() -> tuple[fg.claims.Certificate, ...]:
    tasks = fg.families.two_lines(0.5)
    return (
        fg.certify(tasks, orderings.WithReplacement(), 3),
        fg.certify(tasks, orderings.Cyclic(), 2, w0=[1.0, 0.0]),
    )


@cache
def audit() -> Audit:
    return fg.audit(fg.families.gaussian(3, 4, 2, seed=0))


# ---------------------------------------------------------------------------------------------- what is done with it


def use_problem(problem: Any, folder: Path, case: Any = None) -> None:
    """Run 3 steps and look at everything; numbers that are not finite come with a word."""
    str(problem)
    rows = np.sum(getattr(problem, "num_rows", problem.num_tasks))
    if problem.dim * max(int(rows), 4) > LARGE:
        return
    ordering = getattr(case, "ordering", None) or orderings.Cyclic()
    run = fg.run(problem, ordering, 3, getattr(case, "scheme", None), w0=getattr(case, "w0", None))
    for name in ("losses", "iterates", "forgetting", "regret"):
        values = getattr(run, name)
        if not np.isfinite(values).all() and not re.search("not finite|diverge", run.status):
            raise WrongResultError(f"{name} are {values}, but the status is {run.status!r}")
    repr(run)


def saved_again(thing: Any, problem: Any, folder: Path) -> None:
    """What was loaded can be saved, and is the same when loaded again."""
    if problem is not None and problem.dim * problem.num_tasks > LARGE:
        return
    path = folder / f"again-{os.getpid()}.npz"
    try:
        thing.save(path)
        again = type(thing).load(path)
    except ForgettingError as error:
        raise WrongResultError(f"it was loaded, but not again: {error}") from error
    finally:
        path.unlink(missing_ok=True)
    if problem is not None and problem_hash(problem) != problem_hash(getattr(again, "problem", again)):
        raise WrongResultError("saved and loaded again it is another problem")
    if str(again) != str(thing):
        raise WrongResultError(f"saved and loaded again {thing} is {again}")


def use_tasks(tasks: Any, folder: Path) -> None:
    use_problem(tasks, folder)
    saved_again(tasks, tasks, folder)


def use_result(result: Any, folder: Path) -> None:
    """Look at a result, compute all that it can compute, and save it again."""
    repr(result)
    result._repr_html_()
    names = ("losses", "forgetting", "regret", "iterates", "loss_matrix", "residuals", "averaged_losses")
    for name in names if isinstance(result, fg.Trajectory | fg.Ensemble) else ():
        with contextlib.suppress(ForgettingError):
            getattr(result, name, None)
    if isinstance(result, fg.Ensemble) and len(result):
        with contextlib.suppress(ForgettingError):
            repr(result[0])
    result.save(folder / f"again-{os.getpid()}.npz")
    again = type(result).load(folder / f"again-{os.getpid()}.npz")
    if repr(again) != repr(result):
        raise WrongResultError(f"saved and loaded again {result!r} is {again!r}")


def use_instance(case: Any, folder: Path) -> None:
    str(case)
    saved_again(case, case.problem, folder)
    if case.problem is not None:
        use_problem(case.problem, folder, case)
    small = case.k <= 10 and all(np.size(one) < LARGE for one in case.extras.values())
    for claim in random.Random(case.k).sample(fg.claims.all(), 3):
        if small and claim.why_not(case) is None:
            str(claim.check(case))


def use_reading(found: Reading, folder: Path) -> None:
    use_tasks(found.tasks, folder)


def use_loaded(found: Loaded, folder: Path) -> None:
    use_problem(found.problem, folder)


def use_report(report: Report, folder: Path) -> None:
    """All renderers; nothing that a file says becomes part of the page's code, or a path."""
    pages = [to_html(report), to_latex_file(report), *map(to_csv, report.items())]
    if MARK in pages[0] or TAG in pages[0]:
        raise WrongResultError("the page holds a script that the file brought")
    if Report.from_json(report.to_json()).to_json() != report.to_json():
        raise WrongResultError("written and read again it is another report")
    if any("/" in str(one.key) for one in report.items()):
        with tempfile.TemporaryDirectory(dir=folder) as outside:
            inside = Path(outside, "a", "b", "out")
            inside.parent.mkdir(parents=True)
            write_report(report, inside)
            files = [path for path in Path(outside).rglob("*") if path.is_file()]
            strangers = [path.relative_to(outside) for path in files if not path.is_relative_to(inside)]
            if strangers:
                raise WrongResultError(f"writing a report into a/b/out made {strangers[0]}")


def use_certificate(found: Any, folder: Path) -> None:
    str(found)
    str(found.holds)
    if type(found).from_json(found.to_json()).to_json() != found.to_json():
        raise WrongResultError("written and read again it is another certificate")


def use_audit(found: Audit, folder: Path) -> None:
    str(found)
    page = found.to_html()
    if MARK in page or TAG in page:
        raise WrongResultError("the page holds a script that the file brought")
    if Audit.from_json(found.to_json()).to_json() != found.to_json():
        raise WrongResultError("written and read again it is another audit")


def text_of(path: Path) -> str:
    return path.read_bytes().decode(errors="replace")


def zip_opens(path: Path) -> bool:
    """Whether zipfile and the parser of .npy headers find nothing wrong, and there are as many bytes as announced."""
    try:
        with zipfile.ZipFile(path) as archive:
            for one in archive.infolist():
                member = io.BytesIO(archive.read(one))
                version = npy.read_magic(member)
                header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, _, dtype = header(member)
                if math.prod(shape) * dtype.itemsize != len(member.getbuffer()) - member.tell() or dtype.hasobject:
                    return False
    except Exception:
        return False
    return True


def arrow_opens(path: Path) -> bool:
    try:
        return pq.ParquetFile(path).metadata is not None
    except Exception:
        return False


def parses(parse: Callable[[str], Any]) -> Callable[[Path], bool]:
    def opens(path: Path) -> bool:
        try:
            parse(path.read_bytes().decode())
        except (ValueError, RecursionError, csv.Error):
            return False
        return True

    return opens


@dataclass(frozen=True)
class Kind:
    """One kind of files: good ones, how to change them within their format, read them and use what was read."""

    ending: str
    good: Callable[[], Iterator[bytes]]
    change: Callable[[random.Random, bytes, list[bytes]], bytes]
    opens: Callable[[Path], bool]
    read: Callable[[Path, random.Random], Any]
    use: Callable[[Any, Path], None]


def read_rows(path: Path, rng: random.Random) -> Reading:
    positive = rng.choice([None, None, None, "cat", "1", "x"])
    return read_tasks(path, positive=positive, drop_nan=rng.random() < 0.3)


def change_record(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """A saved result with one of its arrays changed, or one value of its record."""
    if rng.random() < 0.5:
        return change_npz(rng, data, others)
    members = dict(unpacked(data))
    text = str(npy.read_array(io.BytesIO(members["record.npy"])))
    changed = change_json(rng, text.encode(), [text.encode()]).decode("utf-8", "replace").replace("\0", "")
    return packed(list({**members, "record.npy": as_npy(np.array(changed))}.items()), zipfile.ZIP_STORED)


def result_kind(cls: Any, good: Callable[[], Iterator[bytes]]) -> Kind:
    return Kind("npz", good, change_record, zip_opens, lambda path, _: cls.load(path), use_result)


def read_npz_problem(path: Path, rng: random.Random) -> Any:
    return Source([str(path)]).load().problem if rng.random() < 0.1 else fg.RegressionTasks.load(path)


KINDS = {
    "regression": Kind("npz", regression_files, change_npz, zip_opens, read_npz_problem, use_tasks),
    "classification": Kind(
        "npz", classification_files, change_npz, zip_opens, lambda path, _: fg.ClassificationTasks.load(path), use_tasks
    ),
    "instance": Kind(
        "npz", instance_files, change_npz, zip_opens, lambda path, _: fg.claims.Instance.load(path), use_instance
    ),
    "other tasks": Kind("npz", other_files, change_npz, zip_opens, lambda path, _: fg.Problem.load(path), use_tasks),
    "trajectory": result_kind(fg.Trajectory, trajectory_files),
    "ensemble": result_kind(fg.Ensemble, ensemble_files),
    "expectation": result_kind(fg.Expectation, expectation_files),
    "evaluation": result_kind(fg.bounds.Evaluation, theory_files),
    "table of bounds": result_kind(fg.bounds.Table, table_files),
    "hunt": result_kind(fg.claims.Hunt, hunt_files),
    "frontier": result_kind(fg.worstcase.Frontier, frontier_files),
    "frontier entry": Kind(
        "json",
        entry_texts,
        change_entry,
        parses(json.loads),
        lambda path, _: fg.worstcase.Entry.read(path),
        use_entry,
    ),
    "proof": Kind(
        "json", proof_files, change_proof, parses(json.loads), lambda path, _: DualCertificate.load(path), use_proof
    ),
    "solution": result_kind(fg.solver.Solution, solution_files),
    "matrix": Kind("npz", matrix_files, change_npz, zip_opens, lambda path, _: read_matrix(path), use_matrix),
    "market": Kind(
        "mtx",
        market_files,
        change_market,
        lambda path: path.read_bytes().startswith(b"%%MatrixMarket matrix "),
        lambda path, _: read_matrix(path),
        use_matrix,
    ),
    "checkpoint": Kind(
        "npz", checkpoint_files, change_checkpoint, zip_opens, read_checkpoint, lambda found, _: str(found)
    ),
    "parquet": Kind("parquet", parquet_files, change_parquet, arrow_opens, read_rows, use_reading),
    "parquet rows": Kind("parquet", parquet_files, change_parquet, arrow_opens, read_parquet_rows, use_tasks),
    "rows": Kind("npz", raw_files, change_npz, zip_opens, read_rows, use_reading),
    "table": Kind(
        "csv", csv_files, change_csv, parses(lambda text: list(csv.reader(io.StringIO(text)))), read_rows, use_reading
    ),
    "config": Kind(
        "toml", toml_files, change_toml, parses(tomllib.loads), lambda path, _: read_config(path), use_loaded
    ),
    "study": Kind("db", study_files, change_study, sqlite_opens, lambda path, _: fg.Study.open(path), use_study),
    "study config": Kind(
        "toml",
        study_configs,
        change_toml,
        parses(tomllib.loads),
        lambda path, _: fg.Study.from_toml(path),
        use_study_config,
    ),
    "report": Kind(
        "json", report_files, change_json, parses(json.loads), lambda path, _: load_report(path), use_report
    ),
    "certificate": Kind(
        "json",
        lambda: (made.to_json().encode() for made in certificates()),
        change_json,
        parses(json.loads),
        lambda path, _: fg.claims.Certificate.from_json(text_of(path)),
        use_certificate,
    ),
    "saved certificate": Kind(
        "npz",
        lambda: map(saved, certificates()),
        change_record,
        zip_opens,
        lambda path, _: fg.claims.Certificate.load(path),
        use_certificate,
    ),
    "audit": Kind(
        "json",
        lambda: iter([audit().to_json().encode()]),
        change_json,
        parses(json.loads),
        lambda path, _: Audit.from_json(text_of(path)),
        use_audit,
    ),
    "saved audit": Kind(
        "npz", lambda: iter([saved(audit())]), change_record, zip_opens, lambda path, _: Audit.load(path), use_audit
    ),
}
if zarr is not None:
    KINDS["zarr"] = Kind("zip", array_files, change_zarr, zarr_opens, read_zarr, use_tasks)
if h5py is not None:
    KINDS["hdf5"] = Kind("h5", hdf5_files, change_hdf5, hdf5_opens, read_hdf5, use_tasks)
SHARES = {"regression": 6, "instance": 6, "classification": 3, "rows": 3, "table": 3, "config": 3, "report": 3}
SHARES |= {"other tasks": 2, "trajectory": 4, "ensemble": 3, "expectation": 3, "evaluation": 3, "table of bounds": 1}
SHARES |= {
    "hunt": 2,
    "certificate": 2,
    "saved certificate": 1,
    "audit": 1,
    "saved audit": 1,
    "frontier": 1,
    "frontier entry": 2,
    "proof": 3,
    "solution": 2,
    "matrix": 3,
    "study": 2,
    "study config": 1,
    "market": 3,
    "checkpoint": 2,
    "parquet": 2,
    "parquet rows": 2,
}  # slow ones come rarely
SHARES |= {name: 2 for name in ("zarr", "hdf5") if name in KINDS}
CLOSED, REFUSED, USED = "not opened", "refused", "loaded and used"


@cache
def corpus() -> dict[str, list[bytes]]:
    """The good files of every kind."""
    return {name: list(kind.good()) for name, kind in KINDS.items()}


def examine(seed: int, case: int, folder: Path, name: str | None = None) -> Outcome:
    """Change a file, of any kind unless one is named, read it, use it; the file is kept if there is a defect."""
    rng = random.Random(f"{seed} {case}")
    drawn = rng.choices(list(SHARES), list(SHARES.values()))[0]
    name = name or drawn
    kind, good = KINDS[name], corpus()[name]
    data = rng.choice(good)
    data = change_bytes(rng, data, good) if rng.random() < 0.2 else kind.change(rng, data, good)
    path = folder / f"{seed}-{case}.{kind.ending}"
    path.write_bytes(data)
    outcome = judged(name, kind, path, rng, case)
    if not outcome.defect:
        path.unlink()
    return outcome


def judged(name: str, kind: Kind, path: Path, rng: random.Random, case: int) -> Outcome:
    outcome = Outcome(case, name, REFUSED if kind.opens(path) else CLOSED)
    try:
        with campaign.strict_warnings():
            found = kind.read(path, rng)
            outcome = replace(outcome, stage=USED)
            kind.use(found, path.parent)
    except Exception as error:
        if not campaign.is_refusal(error):
            return replace(outcome, defect=campaign.name_defect(error), story=campaign.tell(error))
    return outcome


def warm() -> None:
    """Make the good files, and use each: what is compiled at first use is not timed."""
    with tempfile.TemporaryDirectory() as folder:
        for name, files in corpus().items():
            for number, data in enumerate(files):
                path = Path(folder, f"{number}.{KINDS[name].ending}")
                path.write_bytes(data)
                rng = random.Random(1)
                rng.choice = lambda options: options[0]  # no positive class
                outcome = judged(name, KINDS[name], path, rng, number)
                if outcome.defect:
                    raise WrongResultError(f"good file {number} of {name}: {outcome.defect}\n{outcome.story}")


if __name__ == "__main__":
    campaign.main(examine, warm)
