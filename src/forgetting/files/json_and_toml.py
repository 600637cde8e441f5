"""JSON from files, converted to dataclasses whose fields are checked, and TOML files of the user.

The contents of fields that are dictionaries are checked by who reads them.
"""

from __future__ import annotations

import json
import math
import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints

from forgetting.core.arrays import as_kind
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files.atomic import as_file_error, foreign_file, write

LONGEST = 2**28  # the most characters of a text
DEEPEST = 20  # the deepest nesting of values
WORDS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def decode_json(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object in UTF-8; duplicate names and numbers that are not finite are refused.

    >>> decode_json('{"seed": 0}')
    {'seed': 0}
    >>> decode_json('{"seed": 0, "seed": 1}')
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: not JSON of this library ('seed' is given twice)
    """
    as_kind(text, str | bytes, "JSON as a text", "text: ")
    try:
        if len(text) > LONGEST:
            raise ValueError(f"{len(text)} characters, more than {LONGEST}")
        words = text.decode("utf-8") if isinstance(text, bytes) else text
        data = json.loads(words, object_pairs_hook=_once, parse_constant=_no_number, parse_float=_finite)
        if not isinstance(data, dict):
            raise ValueError(f"{_name(data)} where an object was expected")
    except UnicodeDecodeError as error:
        raise ProblemFileError(f"not JSON of this library (not in UTF-8: {error.reason})") from error
    except RecursionError:
        raise ProblemFileError("not JSON of this library (nested too deeply)") from None
    except ValueError as error:
        raise ProblemFileError(f"not JSON of this library ({error})") from error
    return data


def write_json(path: Path, text: str, kind: str) -> None:
    """Write a JSON text whose format is `kind`, atomically; an existing file of another format is not replaced.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "mine.json").write_text('{"x": 1}')
    ...     write_json(Path(folder, "mine.json"), '{"format": "forgetting/x/1"}', "forgetting/x/1")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: ...mine.json exists, was not written by forgetting, and is kept; ...
    """
    with as_file_error(path):
        if path.exists() and not (path.is_file() and _has_format(path.read_bytes(), kind)):
            raise foreign_file(path)
        write(path, text.encode())


def _has_format(text: bytes, kind: str) -> bool:
    try:
        return decode_json(text).get("format") == kind
    except ProblemFileError:
        return False


def typed(kind: Any, data: Any, where: str, *, unbounded: bool = False) -> Any:
    """Convert JSON data to the type `kind` (a dataclass, tuple, number, ...); `where` names the data in errors.

    Fields with a default may be missing; fields that the dataclass does not have are refused. With `unbounded`, a float
    may also be given as the word nan, inf or -inf.

    >>> typed(tuple[float, ...], [1, 0.5], "x"), typed(int | None, None, "k")
    ((1.0, 0.5), None)
    >>> typed(tuple[float, float], [1, "2"], "point")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: point[1]: '2' where a number was expected
    """
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _object(kind, data, where, unbounded)
    if origin is tuple:
        entries = _of(data, (list, tuple), "a list", where)
        kinds = [inner[0]] * len(entries) if inner[1:] == (Ellipsis,) else list(inner)
        if len(kinds) != len(entries):
            raise ProblemFileError(f"{where}: {len(entries)} entries where {len(kinds)} were expected")
        return tuple(
            typed(member, value, f"{where}[{i}]", unbounded=unbounded)
            for i, (member, value) in enumerate(zip(kinds, entries, strict=True))
        )
    if origin in (Union, types.UnionType):
        return _either(inner, data, where, unbounded)
    if origin is Literal:
        if not isinstance(data, str) or data not in inner:
            raise ProblemFileError(f"{where}: {_name(data)} where one of {', '.join(inner)} was expected")
        return data
    if origin is dict or kind is Any:
        return _plain(_of(data, dict, "an object", where) if origin is dict else data, where, DEEPEST)
    if kind is float:
        return _number(data, where, unbounded)
    words = {int: "a whole number", bool: "true or false", str: "a text"}[kind]
    return _of(data, kind, words, where)


def _object(kind: type[Any], data: Any, where: str, unbounded: bool) -> Any:
    given = _of(data, Mapping, "an object", where)
    hints, values = get_type_hints(kind), {}
    for attribute in fields(kind):
        if attribute.name in given:
            values[attribute.name] = typed(
                hints[attribute.name], given[attribute.name], f"{where}, {attribute.name}", unbounded=unbounded
            )
        elif attribute.default is MISSING and attribute.default_factory is MISSING:
            raise ProblemFileError(f"{where}: no {attribute.name!r}")
    unknown = next((name for name in given if name not in hints), None)
    if unknown is not None:
        raise ProblemFileError(f"{where}: unknown {_name(unknown)}")
    try:
        return kind(**values)
    except ProblemFileError:
        raise
    except ForgettingError as error:
        raise ProblemFileError(f"{where}: {error}") from error


def _either(kinds: tuple[Any, ...], data: Any, where: str, unbounded: bool) -> Any:
    """Convert data to a member of a union: None, the class whose `kind` the data name, or the only other member."""
    if data is None and type(None) in kinds:
        return None
    candidates = [member for member in kinds if member is not type(None)]
    if len(candidates) > 1:
        name = _of(data, Mapping, "an object", where).get("kind")
        named = {member.kind: member for member in candidates}
        if not isinstance(name, str) or name not in named:
            raise ProblemFileError(f"{where}: unknown kind {_name(name)}; known kinds are {', '.join(named)}")
        candidates = [named[name]]
    return typed(candidates[0], data, where, unbounded=unbounded)


def _number(data: Any, where: str, unbounded: bool) -> float:
    if unbounded and isinstance(data, str) and data in WORDS:
        return WORDS[data]
    try:
        number = float(data) if isinstance(data, (int, float)) and not isinstance(data, bool) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ProblemFileError(f"{where}: {_name(data)} where a number was expected")
    return number


def _of(data: Any, kind: Any, words: str, where: str) -> Any:
    if not isinstance(data, kind) or (kind is int and isinstance(data, bool)):
        raise ProblemFileError(f"{where}: {_name(data)} where {words} was expected")
    return data


def _plain(data: Any, where: str, left: int) -> Any:
    """Any data that are nested at most `left` deep."""
    if left == 0:
        raise ProblemFileError(f"{where}: nested more than {DEEPEST} deep")
    for value in data.values() if isinstance(data, Mapping) else data if isinstance(data, (list, tuple)) else ():
        _plain(value, where, left - 1)
    return data


def _name(data: Any) -> str:
    if isinstance(data, (Mapping, list, tuple)):
        return "an object" if isinstance(data, Mapping) else "a list"
    words = repr(data)
    return words if len(words) <= 40 else f"{words[:37]}..."


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise ValueError(f"{_name(name)} is given twice")
        data[name] = value
    return data


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a JSON number")


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{word[:40]} is too large")
    return number


# ----------------------------------------------------------------------------------------------------------------- TOML


def read_toml(path: Path) -> dict[str, Any]:
    """The contents of a TOML file; an error names the file and says what is wrong.

    >>> read_toml(Path("missing.toml"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: missing.toml: no such file
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProblemFileError(f"{path}: no such file") from None
    except RecursionError:
        raise ProblemFileError(f"{path}: not a readable TOML file (nested too deeply)") from None
    except (OSError, ValueError) as error:  # of what is no file, no text, or no TOML
        raise ProblemFileError(f"{path}: not a readable TOML file ({error})") from error
