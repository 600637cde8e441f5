"""Arrays in .npz and .npy files, which may be damaged or malicious: sizes are checked first, nothing is unpickled.

Arrays that do not fit in memory are written part by part, uncompressed, and mapped when they are read.
"""

from __future__ import annotations

import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from math import prod
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from forgetting.core.arrays import as_path
from forgetting.core.memory import in_bytes, require_memory
from forgetting.core.text import one_line
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files.atomic import foreign_file, write

RATIO = 100  # the largest compression ratio of archives that unpack to more than 256 MiB
PART = 2**20  # bytes unpacked at once
KINDS = "biufU"  # kinds of dtypes that are read: truth values, numbers, text
LOCAL = struct.Struct("<4s22sHH")  # header of a zip entry; the last two numbers are the lengths of name and extra data


def read_arrays(path: str | PathLike[str], kinds: str = KINDS, only: str | None = None) -> dict[str, Any]:
    """Read all arrays of an .npz file; a `ProblemFileError` says what is wrong with the file.

    Arrays hold truth values, numbers or text; `kinds` are the kinds of dtypes that are read, and `only` is the name of
    the array to be read if not all are. Together the arrays may take a quarter of the available memory, and, if they
    take more than 256 MiB, at most 100 times the size of the file.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(pathlib.Path(folder, "two.npz"), a=[1, 2], b="text")
    ...     {name: value.tolist() for name, value in read_arrays(pathlib.Path(folder, "two.npz")).items()}
    {'a': [1, 2], 'b': 'text'}
    """
    with _opened(path) as (handle, archive, entries):
        wanted = {name: info for name, info in entries.items() if only in (None, name)}
        _check_total(sum(info.file_size for info in wanted.values()), os.fstat(handle.fileno()).st_size, path)
        return {name: _unpack(archive, info, path, kinds) for name, info in wanted.items()}


def contents(path: str | PathLike[str]) -> dict[str, tuple[int, int]]:
    """The size in bytes and the checksum (CRC-32) of every array of an .npz file, without reading the arrays.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(pathlib.Path(folder, "two.npz"), a=np.zeros(100))
    ...     contents(pathlib.Path(folder, "two.npz"))["a"][0]
    928
    """
    with _opened(path) as (_, _, entries):
        return {name: (info.file_size, info.CRC) for name, info in entries.items()}


@contextmanager
def _opened(path: str | PathLike[str]) -> Iterator[tuple[BinaryIO, zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """The file, its archive, and the entries by the names of their arrays, all checked, and open in the block."""
    with open_regular(path) as handle:
        if not zipfile.is_zipfile(handle):
            raise ProblemFileError(
                f"{path}: not a readable .npz file (no archive; single arrays and pickles are never loaded)"
            )
        try:
            with zipfile.ZipFile(handle) as archive:
                _check_names(archive.infolist(), path)
                _check_places(handle, archive, path)
                yield handle, archive, {info.filename[: -len(".npy")]: info for info in archive.infolist()}
        except ProblemFileError:
            raise
        except Exception as error:  # zipfile and zlib raise a dozen kinds of exceptions for damaged files
            raise ProblemFileError(f"{path}: not a readable .npz file ({_reason(error)})") from error


def read_array(path: str | PathLike[str], kinds: str = KINDS) -> Any:
    """Read the array of an .npy file; a `ProblemFileError` says what is wrong with the file. Nothing is unpickled.

    `kinds` are the kinds of dtypes that are read.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(pathlib.Path(folder, "one.npy"), [[1, 2], [3, 4]])
    ...     read_array(pathlib.Path(folder, "one.npy")).tolist()
    [[1, 2], [3, 4]]
    """
    with open_regular(path) as handle:
        try:
            described = array_header(handle, str(path), kinds)
            there = os.fstat(handle.fileno()).st_size - described[3]
            require_memory(2.0 * there, f"{path}, and a copy of it,", "give a smaller file")
            return _filled(handle, described, there, str(path))
        except ForgettingError:
            raise
        except Exception as error:  # as of headers that end too early
            raise ProblemFileError(f"{path}: not a readable .npy file ({_reason(error)})") from error


def write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an .npz file atomically; an existing file that this library did not write is not replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(Path(folder, "mine.npz"), X=[1.0])
    ...     write_arrays(Path(folder, "mine.npz"), {"format": np.array("forgetting/regression/1")})
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...mine.npz exists, was not written by forgetting, and is kept; ...
    """
    if path.suffix.lower() not in ("", ".npz"):
        raise ProblemFileError(
            f"{path}: an .npz file would be written, which no program reads by the ending {path.suffix!r:.20}; call it "
            f"{one_line(path.name, 60)}.npz"
        )
    if os.path.lexists(path) and not is_ours(path):
        raise foreign_file(path)
    write(path, lambda handle: np.savez_compressed(handle, **arrays))


def is_ours(path: Path) -> bool:
    """Whether the 'format' entry of a file says that this library wrote the file; other entries may be damaged."""
    try:
        with open_regular(path) as handle, zipfile.ZipFile(handle) as archive:
            return str(_unpack(archive, archive.getinfo("format.npy"), path)).startswith("forgetting/")
    except Exception:  # damaged files raise many kinds of exceptions
        return False


def open_regular(path: str | PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; folders, pipes and devices are refused.

    >>> open_regular("nowhere.npz")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: nowhere.npz: no such file
    """
    name = as_path(path)
    if os.path.isdir(name):
        raise ProblemFileError(f"{path}: a folder, where a file is expected")
    try:
        number = os.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        raise ProblemFileError(f"{path}: cannot be read ({_reason(error)})") from error
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise ProblemFileError(f"{path}: not a regular file, but a pipe or a device")
    return os.fdopen(number, "rb")


def read_bytes(path: str | PathLike[str], what: str, instead: str) -> bytes:
    """The content of a file of text, if what it says can be held in memory; an error names `what` and the remedy."""
    with open_regular(path) as handle:
        require_memory(8.0 * os.fstat(handle.fileno()).st_size, what, instead)
        return handle.read()


def as_text(path: str | PathLike[str], content: bytes) -> str:
    """The content of a file as text; an error names the first byte that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = f"{content[error.start : error.start + 1]!r} at byte {error.start}"
        raise ProblemFileError(f"{path}: not in UTF-8 ({what}); save it as UTF-8") from None


# -------------------------------------------------------------------------------------- archives, before unpacking


def _check_names(members: list[zipfile.ZipInfo], path: str | PathLike[str]) -> None:
    seen = set()
    for member in members:
        name = member.filename
        fault = ""
        if not name.endswith(".npy") or name.startswith("/") or "\\" in name or ".." in name.split("/"):
            fault = "which is not the name of an array"
        elif name in seen:
            fault = "twice"
        elif member.flag_bits & 0x41:  # bits 0 and 6: encryption
            fault = "encrypted"
        elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            fault = f"compressed by method {member.compress_type}, which np.savez does not use"
        if fault:
            raise ProblemFileError(f"{path}: not a readable .npz file (it holds {name!r:.80}, {fault})")
        seen.add(name)


def _check_places(handle: BinaryIO, archive: zipfile.ZipFile, path: str | PathLike[str]) -> None:
    """Raise if entries share bytes of the file: such a file could unpack to any multiple of its size."""
    spans = []
    for member in archive.infolist():
        start = member.header_offset
        handle.seek(start)
        magic, _, name, extra = LOCAL.unpack(handle.read(LOCAL.size))
        if magic != b"PK\x03\x04":
            raise ProblemFileError(
                f"{path}: not a readable .npz file ({member.filename!r:.80} is not where it should be)"
            )
        spans.append((start, start + LOCAL.size + name + extra + member.compress_size))
    spans.sort()
    if any(after < end for (_, end), (after, _) in pairwise([*spans, (archive.start_dir, 0)])):
        raise ProblemFileError(f"{path}: not a readable .npz file (its entries overlap)")


def _check_total(total: int, size: int, path: str | PathLike[str]) -> None:
    require_memory(2.0 * total, "its arrays, and the copy that a problem keeps,", "split the file")
    if total > 256 * 2**20 and total > RATIO * size:
        raise ProblemFileError(
            f"{path}: {in_bytes(size)} that unpack to {in_bytes(total)}, more than {RATIO} times as much; if that is "
            "meant, write the file uncompressed, with np.savez"
        )


# --------------------------------------------------------------------------------------------------------- one array


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | PathLike[str], kinds: str = KINDS) -> Any:
    """The array in an entry of the archive."""
    where = f"{path}, array {info.filename[: -len('.npy')]!r:.80}"
    with archive.open(info) as member:
        described = array_header(member, where, kinds)
        array = _filled(member, described, info.file_size - described[3], where)
        member.read(1)  # at the end of the entry, zipfile compares the checksum
    return array


def _filled(member: IO[bytes], described: Described, there: int, where: str) -> Any:
    """The array whose `there` bytes follow."""
    shape, fortran, dtype, _ = described
    declared = prod(shape) * dtype.itemsize
    if declared != there or prod(max(n, 1) for n in shape) * dtype.itemsize >= 2**62:
        raise ProblemFileError(
            f"{where}: damaged (shape {shape!r:.80} of {dtype} takes {declared} bytes, but {there} are there)"
        )
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    room: Any = array.reshape(-1, order="A").view(np.uint8) if declared else None
    done = 0
    while done < declared:
        count = member.readinto(memoryview(room[done : done + PART]))  # type: ignore[attr-defined]
        if not count:
            raise ProblemFileError(f"{where}: damaged (it ends after {done} of {declared} bytes)")
        done += count
    limits = {"b": (np.uint8, 1, "truth values"), "U": (np.uint32, 0x10FFFF, "text")}  # the largest valid values
    if declared and dtype.kind in limits:
        kind, most, name = limits[dtype.kind]
        if int(array.reshape(-1, order="A").view(np.dtype(kind).newbyteorder(dtype.byteorder)).max()) > most:
            raise ProblemFileError(f"{where}: damaged (its bytes are no {name})")
    return array


Described = tuple[tuple[int, ...], bool, np.dtype[Any], int]


def array_header(member: IO[bytes], where: str, kinds: str = KINDS) -> Described:
    """Shape, whether the order is Fortran's, dtype and header length of an array in .npy format, from its header.

    >>> content = BytesIO()
    >>> np.save(content, np.zeros((2, 3)))
    >>> array_header(BytesIO(content.getvalue()), "zeros.npy")
    ((2, 3), False, dtype('float64'), 128)
    """
    start = member.read(8)
    sizes = {b"\x93NUMPY\x01\x00": "<H", b"\x93NUMPY\x02\x00": "<I"}
    if start not in sizes:
        raise ProblemFileError(f"{where}: damaged (it does not begin like an array)")
    counted = member.read(struct.calcsize(sizes[start]))
    length = struct.unpack(sizes[start], counted)[0]
    if length > 1024:  # enough for a dtype and 32 lengths
        raise ProblemFileError(
            f"{where}: described by {length} bytes; arrays of truth values, numbers or text need few"
        )
    text = BytesIO(counted + member.read(length))
    reader = npy.read_array_header_1_0 if start[6] == 1 else npy.read_array_header_2_0
    try:
        shape, fortran, dtype = reader(text)
    except Exception as error:  # parsing the text of the header can fail in many ways
        raise ProblemFileError(f"{where}: damaged ({_reason(error):.80})") from error
    if dtype.hasobject:
        raise ProblemFileError(f"{where}: it holds pickled objects, which are never loaded")
    if dtype.kind not in kinds or dtype.subdtype is not None or dtype.itemsize == 0:
        readable = "truth values, numbers or text" if "U" in kinds else "truth values or numbers"
        raise ProblemFileError(f"{where}: of dtype {dtype}; arrays of {readable} are read, no others")
    if not all(type(n) is int and n >= 0 for n in shape) or len(shape) > 32:
        raise ProblemFileError(f"{where}: damaged (impossible shape {shape!r:.80})")
    return shape, fortran, dtype, len(start) + len(counted) + length


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or str(error) or type(error).__name__)


# ----------------------------------------------------------------------------------------------- entries of a file


@contextmanager
def damaged(path: str | PathLike[str], what: str) -> Iterator[None]:
    """Turn errors in the block, which makes `what` from the arrays of a file, into one that names the file.

    >>> with damaged("tasks.npz", "collection"):
    ...     entry({}, "rows", "iu", 1)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: tasks.npz: damaged collection (no entry 'rows')
    """
    try:
        yield
    except (ForgettingError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, MemoryError) as error:
        if isinstance(error, ProblemFileError) and str(error).startswith(str(path)):
            raise
        raise ProblemFileError(f"{path}: damaged {what} ({_reason(error)})") from error


def entry(arrays: Mapping[str, Any], name: str, kinds: str, ndim: int) -> Any:
    """The array `name` of a file, checked: its dtype kind is in `kinds` ("iu": whole numbers), its dimension `ndim`.

    >>> entry({"rows": np.array([1.5])}, "rows", "iu", 1)
    Traceback (most recent call last):
    forgetting.errors.ForgettingError: entry 'rows' is float64 of shape (1,), but should be ...
    """
    if name not in arrays:
        raise ForgettingError(f"no entry {name!r:.80}")
    array = np.asarray(arrays[name])
    if array.dtype.kind not in kinds or array.ndim != ndim:
        names = {"b": "truth values", "i": "whole numbers", "f": "numbers", "U": "text"}
        wanted = " or ".join(names[kind] for kind in kinds if kind in names)
        raise ForgettingError(
            f"entry {name!r:.80} is {array.dtype} of shape {array.shape}, but should be {wanted} in {ndim} dimensions"
        )
    return array


def whole_number(arrays: Mapping[str, Any], name: str, least: int) -> int:
    """The whole number `name` of a file, checked to be at least `least`."""
    number = int(entry(arrays, name, "iu", 0))
    if number < least:
        raise ForgettingError(f"entry {name!r} is {number}, but must be at least {least}")
    return number


def words(arrays: Mapping[str, Any], name: str, count: int) -> list[str]:
    """The `count` words in the array `name` of a file."""
    listed: list[str] = entry(arrays, name, "U", 1).tolist()
    if len(listed) != count:
        raise ForgettingError(f"entry {name!r} holds {len(listed)} words, but should hold {count}")
    return listed


# --------------------------------------------------------------------------------------- arrays that are not compressed


ALIGNED = 64  # bytes: numbers begin at multiples of it
ZIP64 = 20  # bytes that zipfile adds to the header of an entry that may be large
PADDING = 0x6674  # the mark of a field of zeros in a zip entry
READ = 2**22  # bytes that are read at once


class Parts(NamedTuple):
    """An array of this shape and dtype, given as parts of its rows, one after another."""

    shape: tuple[int, ...]
    dtype: Any
    parts: Iterable[Any]


def write_stored(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write an .npz file atomically and uncompressed; a file that this library did not write is not replaced.

    Entries are arrays, or `Parts`, of which one part at a time is in memory.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "a.npz")
    ...     write_stored(path, {"X": Parts((3, 2), np.float64, [np.ones((1, 2)), np.zeros((2, 2))])})
    ...     np.load(path)["X"].tolist(), map_array(path, "X").tolist()
    ([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    """
    if os.path.exists(path) and not is_ours(path):
        raise foreign_file(path)

    def content(handle: BinaryIO) -> None:
        with zipfile.ZipFile(handle, "w", zipfile.ZIP_STORED) as archive:
            for name, value in arrays.items():
                array = value if isinstance(value, Parts) else _whole(value)
                info = zipfile.ZipInfo(f"{name}.npy")
                start = handle.tell() + LOCAL.size + len(info.filename) + ZIP64 + 4
                info.extra = struct.pack("<HH", PADDING, -start % ALIGNED) + bytes(-start % ALIGNED)
                with archive.open(info, "w", force_zip64=True) as member:
                    header = {"descr": npy.dtype_to_descr(np.dtype(array.dtype)), "fortran_order": False}
                    npy.write_array_header_1_0(member, header | {"shape": array.shape})
                    for part in array.parts:
                        member.write(np.ascontiguousarray(part, dtype=array.dtype).reshape(-1).view(np.uint8).data)

    write(path, content)


def _whole(value: Any) -> Parts:
    array = np.asarray(value)
    return Parts(array.shape, array.dtype, [array] if array.size else [])


def map_array(path: str | PathLike[str], name: str) -> Any:
    """The numbers `name` of an .npz file that is not compressed, mapped and read-only; their checksum is compared.

    Cost: one pass over the numbers.
    """
    with _opened(path) as (handle, _, entries):
        if name not in entries:
            raise ProblemFileError(f"{path}: damaged (no array {name!r})")
        info = entries[name]
        if info.compress_type != zipfile.ZIP_STORED:
            raise ProblemFileError(f"{path}: array {name!r} is compressed, and cannot be mapped")
        handle.seek(info.header_offset)
        *_, title, extra = LOCAL.unpack(handle.read(LOCAL.size))
        start = info.header_offset + LOCAL.size + title + extra
        handle.seek(start)
        computed, left = 0, info.file_size
        first = b""
        while left:
            part = handle.read(min(READ, left))
            if not part:
                raise ProblemFileError(f"{path}: damaged (array {name!r} ends early)")
            first = first or part
            computed, left = zlib.crc32(part, computed), left - len(part)
    if computed != info.CRC:
        raise ProblemFileError(f"{path}: damaged (the checksum of array {name!r} is not that of its numbers)")
    shape, fortran, dtype, length = array_header(BytesIO(first), f"{path}, array {name!r}", "biuf")
    left = info.file_size - length
    if int(np.prod(shape)) * dtype.itemsize != left:
        raise ProblemFileError(f"{path}: damaged (array {name!r} of shape {shape} has {left} bytes)")
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start + length, shape, "F" if fortran else "C")
