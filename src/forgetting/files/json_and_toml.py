"""JSON text from files, of which every name is given once and every number is finite, and TOML files of the user."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from forgetting.core.arrays import as_kind
from forgetting.errors import ForgettingError, ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.atomic import as_file_error, foreign_file, write

LONGEST = 2**28  # the most characters of a text


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
        data = json.loads(words, object_pairs_hook=once, parse_constant=_no_number, parse_float=_finite)
        if not isinstance(data, dict):
            raise ValueError(f"{in_words(data)} where an object was expected")
    except UnicodeDecodeError as error:
        raise ProblemFileError(f"not JSON of this library (not in UTF-8: {error.reason})") from error
    except RecursionError:
        raise ProblemFileError("not JSON of this library (nested too deeply)") from None
    except ValueError as error:
        raise ProblemFileError(f"not JSON of this library ({error})") from error
    return data


def of_format(text: str | bytes, kind: str) -> dict[str, Any]:
    """The other entries of a JSON text whose 'format' entry is `kind`; an error for another format."""
    data = decode_json(text)
    given = data.pop("format", None)
    if given != kind:
        raise ProblemFileError(f"its 'format' entry is {given!r:.60}, not {kind!r}")
    return data


def finite(value: Any, instead: Callable[[float], Any] = lambda _: None) -> Any:
    """The value with None, or `instead` of the number, in place of NaN and infinity, which JSON does not know.

    >>> finite({"a": (1.0, float("inf"))}), finite([float("nan")], repr)
    ({'a': [1.0, None]}, ['nan'])
    """
    if isinstance(value, Mapping):
        return {name: finite(part, instead) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part, instead) for part in value]
    return instead(value) if isinstance(value, float) and not math.isfinite(value) else value


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


def in_words(data: Any) -> str:
    """A value from a file for a message, in at most 40 characters."""
    if isinstance(data, (Mapping, list, tuple)):
        return "an object" if isinstance(data, Mapping) else "a list"
    if data is not None and not isinstance(data, bool | int | float | str):
        return f"an object of the class {type(data).__name__}"
    words = repr(data)
    return words if len(words) <= 40 else f"{words[:37]}..."


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values, for `json.loads`; a name that is given twice is refused."""
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise ValueError(f"{in_words(name)} is given twice")
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
        with open_regular(path) as handle:
            return tomllib.load(handle)
    except ForgettingError:
        raise
    except RecursionError:
        raise ProblemFileError(f"{path}: not a readable TOML file (nested too deeply)") from None
    except (OSError, ValueError) as error:  # of what is no text, or no TOML
        raise ProblemFileError(f"{path}: not a readable TOML file ({error})") from error
