"""Small changes to files: to the bytes of any file, and to the parts of npz, JSON, CSV and TOML files.

All of them are functions of a random generator, the file and other good files of its kind.
"""

from __future__ import annotations

import io
import json
import math
import random
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.lib import format as npy

MARK = "<script>alert(7)</script>"
TAG = '"><img src=x>'

# fmt: off
NUMBERS = [
    math.nan, math.inf, -math.inf, 1e308, -1e308, 1e160, 1e-160, 1e-320, -0.0, 0, 1, -1, 2, 3, 0.5, 1e9,
    2**28, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**62, 2**63 - 1, -(2**63),
]
WORDS = [
    "", " ", "x", "sum", "mean", "\x00", "ä" * 99, "../../X", MARK, "1e400", "nan", "__class__", "Any", "dataclass",
    "Ordering", "Scheme", "LinearScheme", "Learned", "TaskView", "Visits", "Kaczmarz", "POCS", "Cyclic", "SGD",
    "NormWeighted", "Explicit", "Affine", "Ball", "CustomSet", "Polyhedron", "Subspace", "WeaklyRegularized",
    "forgetting/regression/1", "forgetting/classification/1", "forgetting/instance/1", "forgetting/regression/2",
]
DTYPES = [
    "?", "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "g", "c16", "U5", "S5", "M8[s]", "m8[s]", ">f8", ">i8",
]
SHAPES = [
    (2**28,), (2**40,), (-1,), (0,), (2**63,), (), (1,) * 33, (2**31, 2**31), (True,), (1.5,), ("a",),
    None, 3, (3, 0), (0, 2**62), (1, 1, 1, 1), (10**30,), (2,), (1,),
]
DESCRS = [
    "|O", "<f9", "f8,f8", [("a", "<f8")], "<U0", "<U99999999", "|V0", ">f8", "<f16", "", None, "<i8", "<f4", "<c16",
    "<M8[ns]", "|S3", (2,), "<U1", "|b1", [("a", "|O")], ("<f8", (2**20,)),
]
HEADERS = ["{}", "[]", "(" * 300, "{'a': 1}", "é", "__import__('os')", "{" * 50, "1" * 5000]
MEMBERS = ["z.npy", "problem/z.npy", "extras/z.npy", "../z.npy", "/", "0/A.npy", "X", "\0.npy"]
LITERALS = [
    "null", "true", "false", "0", "-1", "1", "2", "1.5", "1e308", "-1e308", "1e400", "NaN", "-Infinity", "1e-320",
    "1" + "0" * 30, "1" + "0" * 400, "1" + "0" * 5000, '""', '"x"', '"\\u0000"', '"\\ud800"', '"../../X"', '"a/b"',
    json.dumps(MARK), json.dumps(TAG), json.dumps("x" * 5000), '"1"', '"nan"', '"\\\\input{x}"',
    "[]", "{}", "[[]]", "[1]", "[null]", '[""]', '{"a": 1}', "[[1, 2], [3]]", "[" * 50 + "]" * 50,
    "[" * 20000 + "]" * 20000,
]
NAMES = ["x", "format", "kind", "", "__class__", "../../X", MARK]
CELLS = [
    "", " ", "nan", "NA", "inf", "-inf", "1e400", "1e308", "1e160", "1e-320", "1,5", "0x10", "1_000", "\u0661", "abc",
    '"', "'", "\x00", "\ufeff", "1" * 400, "1" * 5000, " 1 ", "-0.0", "TRUE", "=1+1", "9" * 20, "\r", "\n", "a;b", "\t",
    MARK, "y", "task", "a", "x" * 140000, "1e", "--1", "+", "\u2028", "\u00bd",
]
VALUES = [
    "true", "0", "-1", "1", "2", "1.5", "1e308", "nan", "inf", "-inf", "1e-320", "0x10", "1979-05-27", "07:32:00",
    "1" + "0" * 15, "1" + "0" * 30, "1" + "0" * 400, "1" + "0" * 5000, "''", "'x'", "'cyclic'", "'gaussian'",
    "'../../X'", "'/dev/null'", "'.'", "'a.npz'", "[]", "{}", "[[]]", "[1, 'a']", "[1, 2]", "[[1.0, 2.0]]", "{a = 1}",
    f"'{MARK}'", "[" * 5000 + "]" * 5000, "'explicit seq=0,1'", "['cyclic', 'cyclic']", "'\"'", '"\\u0000"',
]
KEYS = [
    "family", "file", "tasks", "seed", "copies", "T", "d", "rank", "theta", "X", "y", "title", "k", "condition",
    "w_star", '""', "zz",
]
# fmt: on

# ----------------------------------------------------------------------------------------------- changes to any bytes


def change_bytes(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Some bytes flipped, removed, repeated, inserted, or taken from another file."""
    at, to = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    to = min(to, at + rng.choice([1, 2, 4, 16, 10**6]))
    other = rng.choice(others)
    change = rng.randrange(7)
    if change == 0 and data:
        at = min(at, len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]
    if change == 1:
        return data[:at]
    if change == 2:
        return data[:at] + data[to:]
    if change == 3:
        return data[:to] + data[at:]
    if change == 4:
        odd = [b"\x00", b"\xff", b"\x00" * 64, b"\n", b"9" * 400, struct.pack("<q", 2**63 - 1), rng.randbytes(8)]
        return data[:at] + rng.choice(odd) + data[at:]
    if change == 5:
        return data[:at] + other[rng.randrange(len(other)) :]
    size = rng.choice([1, 2, 4, 8])
    number = rng.choice([0, 1, 2**31 - 1, 2**28, 2**63 - 1, 2**64 - 1]) % 2 ** (8 * size)
    return data[:at] + number.to_bytes(size, "little") + data[at + size :]


# ------------------------------------------------------------------------------------------------ changes to an array


def change_array(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """One property of an array changed: a value, the type, the shape, the layout."""
    change = rng.randrange(14)
    if change <= 4 and array.size:  # a value
        changed = array.copy()
        at = rng.randrange(array.size)
        if array.dtype.kind in "US":
            words = changed.astype(f"U{max(map(len, WORDS))}")
            words.flat[at] = rng.choice(WORDS)
            return words
        old = changed.flat[at]
        with np.errstate(all="ignore"):
            near = [old + 1, old - 1, -old, 2 * old, 1e100 * old] if array.dtype.kind in "iuf" else []
            odd = rng.choice(NUMBERS + near)
            if array.dtype.kind in "biu":
                whole = math.isfinite(odd) and int(odd) == odd and -(2**63) <= odd < 2**63
                changed = changed.astype(np.int64 if whole else np.float64)
            changed.flat[at] = odd
        return changed
    if change == 5:  # the type
        kind = rng.choice(DTYPES)
        try:
            with np.errstate(all="ignore"):
                return array.astype(kind)
        except (TypeError, ValueError):
            return np.zeros(array.shape, kind)
    if change == 6:  # all values
        if array.dtype.kind not in "iuf":
            return np.full(array.shape, array.flat[0] if array.size else "")
        with np.errstate(all="ignore"):
            factor = rng.choice([0, -1, 1e-200, 1e-160, 1e-150, 1e-12, 1e12, 1e76, 1e150])
            return array * (int(factor) if array.dtype.kind in "iu" and abs(factor) <= 1 else factor)
    flat = array.ravel()
    shapes: list[Callable[[], np.ndarray]] = [
        lambda: flat,
        lambda: array[None],
        lambda: array[..., None],
        lambda: array.T,
        lambda: array[:0] if array.ndim else np.zeros(0, array.dtype),
        lambda: array[:-1] if array.ndim else array,
        lambda: array[1:] if array.ndim else array,
        lambda: array[::-1] if array.ndim else array,
        lambda: np.concatenate([array, array[-1:]]) if array.ndim else array,
        lambda: np.concatenate([array, array]) if array.ndim else np.stack([array] * 3),
        lambda: flat[0] if array.size else np.zeros((), array.dtype),
        lambda: np.array(None if array.size == 0 else str(flat[0])),
        lambda: np.asfortranarray(array),
        lambda: array.byteswap().view(array.dtype.newbyteorder()),
        lambda: np.resize(array, (2, 2, 2)) if array.size else array,
        lambda: np.sort(array) if array.ndim else array,
        lambda: np.zeros((1, 0)),
        lambda: np.full_like(array, flat[0]) if array.size else array,
        lambda: np.ones(rng.choice([1, 7, 1000])),
        lambda: np.zeros(array.shape, [("a", "f8"), ("b", "i4")]),
        lambda: np.array([], "U1"),
    ]
    return rng.choice(shapes)()


def as_npy(array: Any) -> bytes:
    """An array as the bytes of an .npy file."""
    sink = io.BytesIO()
    if np.asarray(array).dtype.kind == "O":
        array = np.asarray(array).astype(str)
    npy.write_array(sink, np.asarray(array), allow_pickle=False)
    return sink.getvalue()


def change_npy(rng: random.Random, member: bytes) -> bytes:
    """The header of an .npy file changed, or what follows it."""
    size = struct.unpack("<H", member[8:10])[0]
    header, data = member[10 : 10 + size].decode("latin-1"), member[10 + size :]
    change = rng.randrange(9)
    if change <= 2:
        shape = rng.choice(SHAPES)
        header = re.sub(r"'shape': \(.*?\)", lambda _: f"'shape': {shape!r}", header)
    elif change <= 4:
        descr = rng.choice(DESCRS)
        header = re.sub(r"'descr': '.*?'", lambda _: f"'descr': {descr!r}", header)
    elif change == 5:
        header = header.replace("False", rng.choice(["True", "2", "None", "''"]))
    elif change == 6:
        header = rng.choice([*HEADERS, header.replace("descr", "x")])
    elif change == 7:
        data = rng.choice([data[:-1], data + b"\0" * 8, b"", data[:1]])
    else:
        return change_bytes(rng, member, [member])
    version = rng.choice([b"\x01\x00"] * 8 + [b"\x02\x00", b"\x03\x00", b"\x09\x09"])
    text = header.rstrip(" \n").encode("latin-1", "replace") + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text) + rng.choice([0] * 9 + [-1, 5]))
    return b"\x93NUMPY" + version + length + text + data


def change_npz(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """An npz file taken apart, one of its arrays changed, and put together again."""
    members = unpacked(data)
    at = rng.randrange(len(members))
    name, member = members[at]
    change = rng.randrange(20)
    if change <= 10:
        members[at] = name, as_npy(change_array(rng, npy.read_array(io.BytesIO(member))))
    elif change <= 13:
        members[at] = name, change_npy(rng, member)
    elif change == 14:
        del members[at]
    elif change == 15:
        odd = as_npy(change_array(rng, npy.read_array(io.BytesIO(member))))
        members.insert(rng.randrange(len(members) + 1), (name, odd))  # two of one name
    elif change == 16:
        members.append((rng.choice(MEMBERS), member))
    elif change == 17:
        renamed = [rng.choice(members)[0], "X.npy", "y.npy", name[:-4], name.upper(), f"problem/{name}"]
        members[at] = rng.choice(renamed), member
    elif change == 18:
        members[at] = name, rng.choice(unpacked(rng.choice(others)))[1]
    else:
        to = rng.randrange(len(members))
        members[at], members[to] = (name, members[to][1]), (members[to][0], member)
    methods = [zipfile.ZIP_STORED] * 4 + [zipfile.ZIP_DEFLATED] * 4 + [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    return packed(members, rng.choice(methods))


@cache
def _unpacked(data: bytes) -> tuple[tuple[str, bytes], ...]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return tuple((one.filename, archive.read(one)) for one in archive.infolist())


def unpacked(data: bytes) -> list[tuple[str, bytes]]:
    """Names and contents of the members of a zip file."""
    return list(_unpacked(data))


def packed(members: list[tuple[str, bytes]], method: int) -> bytes:
    """A zip file of these members, two of one name included."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zipfile, about names that come twice
        for name, member in members:
            archive.writestr(zipfile.ZipInfo(name), member, method)
    return sink.getvalue()


# ---------------------------------------------------------------------------------------------------- changes to text

HOLE = "@hole@"


def change_json(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One value of a JSON text replaced, removed, repeated, or put under another name."""
    tree = json.loads(data)
    places = list(_places(tree))
    where, key = rng.choice(places)
    change = rng.randrange(10)
    if change <= 5:
        where[key] = HOLE
    elif change == 6:
        del where[key]
    elif change == 7:
        if isinstance(where, list):
            where.insert(key, where[key])
        else:
            where[rng.choice(NAMES)] = where.pop(key)
    elif change == 8:
        there, other = rng.choice(places)
        where[key] = json.loads(json.dumps(there[other]))
    else:
        where[key] = rng.choice([[where[key]], {"a": where[key]}, str(where[key])[:100]])
    return json.dumps(tree).replace(json.dumps(HOLE), rng.choice(LITERALS)).encode()


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every value of a tree, as what holds it and its key there."""
    for key, value in list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)):
        yield tree, key
        if isinstance(value, dict | list):
            yield from _places(value)


def change_csv(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One cell, row or column of a CSV text changed."""
    text = data.decode("utf-8-sig")
    separator = max(",;\t", key=text.split("\n")[0].count)
    rows = [row.rstrip("\r").split(separator) for row in text.split("\n")]
    at = rng.randrange(len(rows))
    column = rng.randrange(len(rows[at]) or 1)
    change = rng.randrange(9)
    if change <= 4:
        rows[at][column] = rng.choice(CELLS)
    elif change == 5:
        rows[at] = rng.choice([[], rows[at][:-1], [*rows[at], "1"], rows[at][::-1], rows[0]])
    elif change == 6:
        rows.insert(at, rng.choice(rows))
    elif change == 7:
        del rows[at]
    else:
        rows = [[*row[:column], rng.choice(CELLS), *row[column:]] for row in rows]
    return "\n".join((separator if rng.random() < 0.95 else "|").join(row) for row in rows).encode()


def change_toml(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """One line of a TOML text changed: its value, its key, or whether it is there."""
    lines = data.decode().splitlines()
    at = rng.randrange(len(lines))
    key, sign, value = lines[at].partition(" = ")
    change = rng.randrange(10)
    if change <= 5 and sign:
        inner = re.search(r"[\d.]+", value)
        odd = rng.choice(VALUES)
        if inner and rng.random() < 0.3:
            odd = value[: inner.start()] + odd + value[inner.end() :]
        lines[at] = f"{key} = {odd}"
    elif change == 6 and sign:
        lines[at] = f"{rng.choice(KEYS)} = {value}"
    elif change == 7:
        del lines[at]
    elif change == 8:
        lines.insert(at + 1, f"{rng.choice(KEYS)} = {rng.choice(VALUES)}")
    else:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return "\n".join(lines).encode()
