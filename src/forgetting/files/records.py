"""Results as .npz files: the fields of a dataclass as JSON, and their arrays beside the JSON.

Plain values (None, truth values, numbers, text, tuples, lists, dictionaries with names as keys) and arrays need nothing
else. Other objects need a `Codec`, which the package that defines their class adds with `add_codec`. A field comes back
with the value it had, to the last bit. What is read is checked against the types that the dataclass declares.
"""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from forgetting.core.arrays import as_path
from forgetting.errors import ForgettingError, NotSupportedError, ProblemFileError
from forgetting.files.arrays import damaged, entry, read_arrays, write_arrays
from forgetting.files.json_and_toml import DEEPEST, WORDS, decode_json

Record = TypeVar("Record")
SEED_BITS = 128  # of seeds, which are the largest whole numbers in files


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


def write_record(path: str | PathLike[str], kind: str, values: Mapping[str, Any]) -> None:
    """Write named values to an .npz file whose format is forgetting/`kind`/1, atomically.

    An existing file that this library did not write is not replaced.
    """
    arrays: dict[str, Any] = {}
    text = json.dumps(_encode(values, arrays, DEEPEST), allow_nan=False)
    write_arrays(as_path(path), {"format": np.array(_format(kind)), "record": np.array(text), **arrays})


def read_record(path: str | PathLike[str], kind: str, restore: Callable[[dict[str, Any]], Record]) -> Record:
    """Read values that `write_record` wrote, and return `restore(values)`; errors name the file."""
    arrays = read_arrays(path)
    if str(arrays.get("format")) != _format(kind):
        given = f"its 'format' entry is {str(arrays['format'])!r:.80}" if "format" in arrays else "no 'format' entry"
        raise ProblemFileError(f"{path}: no saved {kind} ({given})")
    with damaged(path, kind):
        record = _decode(decode_json(str(entry(arrays, "record", "U", 0))), arrays, DEEPEST)
        if not isinstance(record, dict):
            raise ForgettingError("the record is not a dictionary of values")
        return restore(record)


def _format(kind: str) -> str:
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
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encode(part, arrays, left - 1) for part in value]}
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {"dict": {name: _encode(part, arrays, left - 1) for name, part in value.items()}}
    codec = next((codec for codec in _codecs.values() if isinstance(value, codec.kind)), None)
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
    if kind in ("list", "tuple") and isinstance(content, list):
        parts = [_decode(part, arrays, left - 1) for part in content]
        return parts if kind == "list" else tuple(parts)
    if kind == "dict" and isinstance(content, dict):
        return {name: _decode(part, arrays, left - 1) for name, part in content.items()}
    if kind == "float" and content in WORDS:
        return WORDS[content]
    raise ForgettingError(f"an object of an unknown kind ({kind!r:.40})")


def _conforms(value: Any, hint: Any, left: int, bits: int = 63) -> bool:
    """Whether a value is of a declared type, as far as the type says, and a whole number has no more than `bits`."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any or left == 0:
        return True
    if origin in (Union, types.UnionType):
        return any(_conforms(value, member, left - 1, bits) for member in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        kinds = [inner[0]] * len(value) if inner[1:] == (Ellipsis,) else list(inner)
        pairs = zip(value, kinds, strict=False)
        return len(kinds) == len(value) and all(_conforms(part, member, left - 1, bits) for part, member in pairs)
    if origin is np.ndarray:
        dtype = get_args(inner[1])[0]
        return isinstance(value, np.ndarray) and (dtype is Any or value.dtype == np.dtype(dtype))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, dict) and all(_conforms(part, inner[1], left - 1, bits) for part in value.values())
    if hint is float and isinstance(value, float):
        return True
    if hint in (float, int):
        return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= bits
    if hint is None:
        return value is None
    return isinstance(value, hint) if isinstance(hint, type) else True


def field_values(record: Any, skip: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The fields of a dataclass by name, but for those in `skip`."""
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name not in skip}


def checked_fields(cls: Any, values: Any) -> dict[str, Any]:
    """The values if they are fields of the dataclass, and of the declared types; else an error."""
    if not isinstance(values, dict):
        raise ForgettingError(f"the fields of {cls.__name__} are not a dictionary")
    coded = {codec.kind.__name__: codec.kind for codec in _codecs.values()}  # its module may import them for types only
    hints, known = get_type_hints(cls, localns=coded), {field.name for field in fields(cls)}
    for name, value in values.items():
        if name not in known:
            raise ForgettingError(f"{cls.__name__} has no field {name!r:.80}")
        if not _conforms(value, hints[name], DEEPEST, SEED_BITS if name == "seed" else 63):
            raise ForgettingError(f"field {name!r} of {cls.__name__} has a value of the wrong type")
    return values


def dataclass_codec(cls: Any, name: str) -> Codec:
    """The codec of a dataclass all of whose fields can be saved."""
    return Codec(name, cls, field_values, lambda values: cls(**checked_fields(cls, values)))
