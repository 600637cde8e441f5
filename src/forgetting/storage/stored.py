"""Arrays in .npz files that are not compressed: written part by part, and read without being loaded."""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy

from forgetting.errors import ProblemFileError
from forgetting.storage.arrays import LOCAL, array_header, contents, is_ours, open_regular
from forgetting.storage.atomic import write

__all__ = ["Parts", "map_array", "write_stored"]

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
        raise ProblemFileError(
            f"{path} exists, was not written by forgetting, and is kept; move it away, or choose another name"
        )

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
    size, checksum = contents(path).get(name, (-1, 0))
    if size < 0:
        raise ProblemFileError(f"{path}: damaged (no array {name!r})")
    with open_regular(path) as handle, zipfile.ZipFile(handle) as archive:
        info = archive.getinfo(f"{name}.npy")
        if info.compress_type != zipfile.ZIP_STORED:
            raise ProblemFileError(f"{path}: array {name!r} is compressed, and cannot be mapped")
        handle.seek(info.header_offset)
        *_, title, extra = LOCAL.unpack(handle.read(LOCAL.size))
        start = info.header_offset + LOCAL.size + title + extra
        handle.seek(start)
        found, left = 0, size
        first = b""
        while left:
            part = handle.read(min(READ, left))
            if not part:
                raise ProblemFileError(f"{path}: damaged (array {name!r} ends early)")
            first = first or part
            found, left = zlib.crc32(part, found), left - len(part)
    if found != checksum:
        raise ProblemFileError(f"{path}: damaged (the checksum of array {name!r} is not that of its numbers)")
    shape, fortran, dtype, length = array_header(BytesIO(first), f"{path}, array {name!r}", "biuf")
    if int(np.prod(shape)) * dtype.itemsize != size - length:
        raise ProblemFileError(f"{path}: damaged (array {name!r} of shape {shape} has {size - length} bytes)")
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", start + length, shape, "F" if fortran else "C")
