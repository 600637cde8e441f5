"""Dataclasses in files: as .npz files, whose JSON says where which array belongs, and the check of what is read.

Plain values (None, truth values, numbers, text, tuples, lists, dictionaries with names as keys) and arrays need nothing
else. Other objects need a `Codec`, which the package that defines their class adds with `add_codec`. A field comes back
with the value it had, to the last bit. What is read, here or from JSON text, is checked by `typed` against the types
that dataclasses declare.
"""

from __future__ import annotations

import json
import math
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from os import PathLike
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from forgetting.core.arrays import as_path
from forgetting.errors import ForgettingError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import damaged, entry, read_arrays, write_arrays
from forgetting.files.json_and_toml import decode_json, in_words

Record = TypeVar("Record")
DEEPEST = 20  # the deepest nesting of values
WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Codec:
    """The way in which objects of one class are saved.

    Attributes:
        name: what stands in the file; it must never change.
        kind: the class; objects of its subclasses are saved in the same way.
        encode: the object as plain values and arrays, or as objects that have a codec.
        decode: the object of what `encode` gave; it raises a `ForgettingError` if that is wrong.
    """

    name: str
    kind: type
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


_codecs: dict[str, Codec] = {}


def add_codec(codec: Codec) -> None:
    """Make a codec known; a codec of the same name is replaced."""
    _codecs[codec.name] = codec


def dataclass_codec(cls: Any, name: str) -> Codec:
    """The codec of a dataclass all of whose fields can be saved."""
    return Codec(name, cls, field_values, lambda values: cls(**checked_fields(cls, values)))


def _codec_of(kind: type) -> Codec | None:
    """The codec of objects of a class, if there is one."""
    return next((codec for codec in _codecs.values() if issubclass(kind, codec.kind)), None)


def write_record(path: str | PathLike[str], kind: str, values: Mapping[str, Any]) -> None:
    """Write named values to an .npz file whose format is forgetting/`kind`/1, atomically.

    An existing file that this library did not write is not replaced.
    """
    arrays: dict[str, Any] = {}
    text = json.dumps(_encode(values, arrays, DEEPEST), allow_nan=False)
    write_arrays(as_path(path), {"format": np.array(format_name(kind)), "record": np.array(text), **arrays})


def read_record(path: str | PathLike[str], kind: str, restore: Callable[[dict[str, Any]], Record]) -> Record:
    """Read values that `write_record` wrote, and return `restore(values)`; errors name the file."""
    arrays = read_arrays(path)
    if str(arrays.get("format")) != format_name(kind):
        given = f"its 'format' entry is {str(arrays['format'])!r:.80}" if "format" in arrays else "no 'format' entry"
        raise ProblemFileError(f"{path}: no saved {kind} ({given})")
    with damaged(path, kind):
        record = _decode(decode_json(str(entry(arrays, "record", "U", 0))), arrays, DEEPEST)
        if not isinstance(record, dict):
            raise ForgettingError("the record is not a dictionary of values")
        return restore(record)


def format_name(kind: str) -> str:
    """What the 'format' entry of a file with this content says."""
    return f"forgetting/{kind.replace(' ', '-')}/1"


def _encode(value: Any, arrays: dict[str, Any], left: int) -> Any:
    if left == 0:
        raise NotSupportedError(f"values that are nested more than {DEEPEST} deep cannot be saved")
    if value is None or isinstance(value, bool | str) or type(value) is int:
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray | np.generic) and np.asarray(value).dtype.kind in "biufU":
        name = f"a{len(arrays)}"
        arrays[name] = np.asarray(value)
        return {"array" if isinstance(value, np.ndarray) else "scalar": name}
    if isinstance(value, np.ndarray) and value.dtype == np.complex128:
        name = f"a{len(arrays)}"
        arrays[name] = np.stack([value.real, value.imag], axis=-1)
        return {"complex": name}
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encode(part, arrays, left - 1) for part in value]}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"dict": {name: _encode(part, arrays, left - 1) for name, part in value.items()}}
    codec = _codec_of(type(value))
    if codec is not None:
        return {"object": codec.name, "of": _encode(codec.encode(value), arrays, left - 1)}
    raise NotSupportedError(f"{type(value).__name__} {value!r:.60} cannot be saved")


def _decode(node: Any, arrays: Mapping[str, Any], left: int) -> Any:
    if left == 0:
        raise ForgettingError(f"nested more than {DEEPEST} deep")
    if node is None or isinstance(node, bool | str | int | float):
        return node
    if not isinstance(node, dict):
        raise ForgettingError("a list where a value was expected")
    if set(node) == {"object", "of"}:
        if node["object"] not in _codecs:
            raise ForgettingError(f"unknown kind of object: {node['object']!r:.80}")
        return _codecs[node["object"]].decode(_decode(node["of"], arrays, left - 1))
    if len(node) != 1:
        raise ForgettingError("an object of an unknown kind")
    (kind, content), *_ = node.items()
    if kind in ("array", "scalar") and isinstance(content, str) and content in arrays:
        array = np.asarray(arrays[content])
        return array if kind == "array" else array[()]
    if kind == "complex" and isinstance(content, str) and content in arrays:
        pairs = np.asarray(arrays[content])
        if pairs.dtype != np.float64 or pairs.ndim == 0 or pairs.shape[-1] != 2:
            raise ForgettingError(f"complex numbers as {pairs.dtype} of shape {pairs.shape}")
        return pairs[..., 0] + 1j * pairs[..., 1]
    if kind in ("list", "tuple") and isinstance(content, list):
        parts = [_decode(part, arrays, left - 1) for part in content]
        return parts if kind == "list" else tuple(parts)
    if kind == "dict" and isinstance(content, dict):
        return {name: _decode(part, arrays, left - 1) for name, part in content.items()}
    if kind == "float" and content in WORDS:
        return WORDS[content]
    raise ForgettingError(f"an object of an unknown kind ({kind!r:.40})")


# -------------------------------------------------------------------------------------------------- the declared types


def field_values(record: Any, skip: str = "") -> dict[str, Any]:
    """The fields of a dataclass by name, but for `skip` and those whose names begin with an underscore."""
    return {name: getattr(record, name) for name in _saved_fields(record.__class__) if name != skip}


@cache
def _saved_fields(cls: Any) -> dict[str, tuple[Any, bool]]:
    """For each field of a dataclass that is saved, its declared type and whether files must have it."""
    coded = {codec.kind.__name__: codec.kind for codec in _codecs.values()}  # its module may import them for types only
    hints = get_type_hints(cls, localns=coded | vars(sys.modules[cls.__module__]))
    return {
        field.name: (hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(cls)
        if not field.name.startswith("_")
    }


def checked_fields(cls: Any, values: Any, where: str = "", *, unbounded: bool = True) -> dict[str, Any]:
    """The values of the fields of a dataclass, converted to the declared types; `where` names the object in errors.

    Fields with a default may be missing; fields that the dataclass does not have are refused.
    """
    where = where or cls.__name__
    given, known = _of(values, Mapping, "an object", where), _saved_fields(cls)
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ProblemFileError(f"{where}: unknown {in_words(unknown)}")
    missing = next((name for name, (_, needed) in known.items() if needed and name not in given), None)
    if missing is not None:
        raise ProblemFileError(f"{where}: no {missing!r}")
    return {
        name: typed(known[name][0], value, f"{where}, {name}", unbounded=unbounded) for name, value in given.items()
    }


def typed(kind: Any, data: Any, where: str, *, unbounded: bool = False) -> Any:
    """Convert data from a file to the type `kind` (a dataclass, tuple, number, ...); `where` names the data in errors.

    An object of a class that has a codec must be there already: it is never made of the values of its fields. With
    `unbounded`, a float may be NaN or infinite, and may also be given as the word nan, inf or -inf.

    >>> typed(tuple[float, ...], [1, 0.5], "x"), typed(int | None, None, "k")
    ((1.0, 0.5), None)
    >>> typed(tuple[float, float], [1, "2"], "point")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: point[1]: '2' where a number was expected
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return _plain(data, where, DEEPEST)
    if origin in (Union, types.UnionType):
        return _either(inner, data, where, unbounded)
    if origin is Literal:
        if not isinstance(data, str) or data not in inner:
            raise ProblemFileError(f"{where}: {in_words(data)} where one of {', '.join(inner)} was expected")
        return data
    if origin is np.ndarray:
        dtype = get_args(inner[1])[0]
        array = _of(data, np.ndarray, "an array", where)
        if dtype is not Any and array.dtype != np.dtype(dtype):
            raise ProblemFileError(f"{where}: an array of {array.dtype} where {np.dtype(dtype)} was expected")
        return array
    if isinstance(origin, type) and issubclass(origin, Mapping):
        given = _of(data, Mapping, "an object", where)
        return {
            name: typed(inner[1], value, f"{where}, {name!r:.40}", unbounded=unbounded) for name, value in given.items()
        }
    if isinstance(origin, type) and issubclass(origin, Sequence):
        entries = _of(data, list | tuple, "a list", where)
        kinds = inner if origin is tuple and inner[1:] != (Ellipsis,) else inner[:1] * len(entries)
        if len(kinds) != len(entries):
            raise ProblemFileError(f"{where}: {len(entries)} entries where {len(kinds)} were expected")
        return tuple(
            typed(member, value, f"{where}[{i}]", unbounded=unbounded)
            for i, (member, value) in enumerate(zip(kinds, entries, strict=True))
        )
    if kind is float:
        return _number(data, where, unbounded)
    if isinstance(kind, type) and is_dataclass(kind) and not isinstance(data, kind) and _codec_of(kind) is None:
        return made(kind, data, where, unbounded)
    names = {int: "a whole number", bool: "true or false", str: "a text"}
    return _of(data, kind, names.get(kind, f"an object of the class {kind.__name__}"), where)


def made(kind: type[Any], data: Any, where: str, unbounded: bool = False) -> Any:
    """The dataclass of the values of its fields, whether it has a codec or not."""
    values = checked_fields(kind, data, where, unbounded=unbounded)
    try:
        return kind(**values)
    except ProblemFileError:
        raise
    except ForgettingError as error:
        raise ProblemFileError(f"{where}: {error}") from error


def _either(kinds: tuple[Any, ...], data: Any, where: str, unbounded: bool) -> Any:
    """Convert data to a member of a union: None, the dataclass whose `kind` the data name, or the first that fits."""
    if data is None and type(None) in kinds:
        return None
    candidates = [member for member in kinds if member is not type(None)]
    if len(candidates) > 1 and isinstance(data, Mapping) and all(map(is_dataclass, candidates)):
        named = {member.kind: member for member in candidates}
        name = data.get("kind")
        if not isinstance(name, str) or name not in named:
            raise ProblemFileError(f"{where}: unknown kind {in_words(name)}; known kinds are {', '.join(named)}")
        candidates = [named[name]]
    for member in candidates[:-1]:
        with suppress(ProblemFileError):
            return typed(member, data, where, unbounded=unbounded)
    return typed(candidates[-1], data, where, unbounded=unbounded)


def _number(data: Any, where: str, unbounded: bool) -> float:
    number = WORDS.get(data) if unbounded and isinstance(data, str) else data
    if isinstance(data, int) and not isinstance(data, bool):
        with suppress(OverflowError):
            number = float(data)
    if not isinstance(number, float) or not (unbounded or math.isfinite(number)):
        raise ProblemFileError(f"{where}: {in_words(data)} where a number was expected")
    return number


def _of(data: Any, kind: Any, words: str, where: str) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ProblemFileError(f"{where}: {in_words(data)} where {words} was expected")
    if kind is int and data.bit_length() > 63 and not where.endswith("seed"):  # only seeds may be of any size
        raise ProblemFileError(f"{where}: {in_words(data)}, which has more than 63 bits")
    return data


def _plain(data: Any, where: str, left: int) -> Any:
    """Any data that are nested at most `left` deep."""
    if left == 0:
        raise ProblemFileError(f"{where}: nested more than {DEEPEST} deep")
    for value in data.values() if isinstance(data, Mapping) else data if isinstance(data, (list, tuple)) else ():
        _plain(value, where, left - 1)
    return data
