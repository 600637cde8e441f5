"""What tells one function from another: its source, and the values that the function holds."""

from __future__ import annotations

import hashlib
import inspect
import json
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from forgetting.errors import InvalidInputError, NotSupportedError

__all__ = ["canonical", "digest_of", "plain"]

MOST_DEEP = 50  # lists within lists


def digest_of(function: Callable[..., Any]) -> str:
    """A digest of the source of a function, and of the values in its defaults and in its closure.

    Two functions of one name that differ in these have different digests, so that neither is given the results of the
    other. What a function calls is not looked at. Raise if the function holds a value that has no digest.

    >>> def times(factor):
    ...     return lambda x: factor * x
    >>> digest_of(times(2)) == digest_of(times(2)) != digest_of(times(3))
    True
    """
    return hashlib.sha256("\0".join(_pieces(function, ())).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _pieces(function: Any, above: tuple[Any, ...]) -> Iterator[str]:
    """The texts that a digest is made of; `above` are the functions that led here."""
    if any(function is other for other in above):
        return
    name = getattr(function, "__qualname__", None)
    owner = getattr(function, "__self__", None)
    if not isinstance(name, str) or not isinstance(getattr(function, "__module__", None), str):
        raise NotSupportedError(f"{function!r:.80} has no name")
    if owner is not None and not isinstance(owner, (type, types.ModuleType)):
        raise NotSupportedError(f"{name} is a method of an object, {type(owner).__name__}, whose state is not known")
    yield f"{function.__module__}:{name}"
    try:
        yield inspect.getsource(function)
    except (OSError, TypeError):
        yield from _code(getattr(function, "__code__", None))
    else:
        if name.endswith("<lambda>"):  # several may be on one line
            yield from _code(function.__code__)
    held = dict(enumerate(getattr(function, "__defaults__", None) or ()))
    held |= getattr(function, "__kwdefaults__", None) or {}
    held |= _closed_over(function)
    for key, value in held.items():
        yield str(key)
        if isinstance(value, types.ModuleType):
            yield value.__name__
        elif isinstance(value, types.FunctionType):
            yield from _pieces(value, (*above, function))
        elif isinstance(value, (type, types.BuiltinFunctionType, np.ufunc)):
            yield f"{getattr(value, '__module__', '')}:{value.__name__}"
        else:
            try:
                yield canonical(plain(value, f"{name} holds a value, {key}"))
            except (InvalidInputError, ValueError) as error:
                raise NotSupportedError(str(error).partition("; save")[0]) from None


def _closed_over(function: Any) -> dict[Any, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
    values = {}
    for name, cell in zip(code.co_freevars if code else (), cells, strict=False):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            values[name] = None  # not yet assigned
    return values


def _code(code: Any) -> Iterator[str]:
    """The instructions of compiled Python, where there is no source; never an address, which no two processes share."""
    if not isinstance(code, types.CodeType):
        return
    yield f"{code.co_code.hex()} {code.co_names} {code.co_varnames}"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _code(constant)
        else:
            yield str(sorted(map(repr, constant))) if isinstance(constant, frozenset) else repr(constant)


# ------------------------------------------------------------------------------------------------------- plain values


def canonical(values: Any) -> str:
    """Plain values as JSON, the same text for the same values.

    >>> canonical({"b": 1, "a": 1.0}), canonical([True, -0.0])
    ('{"a":1.0,"b":1}', '[true,-0.0]')
    """
    return _canonical(values)


_canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def plain(value: Any, where: str, deep: int = 0) -> Any:
    """Numbers, texts, lists and dictionaries as JSON has them; an error names what else there is.

    >>> plain({"k": (1, np.float32(0.5)), "p": np.arange(2)}, "cell 0")
    {'k': [1, 0.5], 'p': [0, 1]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        if isinstance(value, int) and value.bit_length() > 10_000:
            raise InvalidInputError(f"{where}: a whole number of {value.bit_length()} bits, more than 10000")
        return value
    if deep > MOST_DEEP:
        raise InvalidInputError(f"{where}: lists or dictionaries within each other, more than {MOST_DEEP} deep")
    if isinstance(value, np.ndarray):
        return plain(value.tolist(), where, deep + 1)
    if isinstance(value, (list, tuple, range)):
        return [plain(entry, where, deep + 1) for entry in value]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain(entry, where, deep + 1) for name, entry in value.items()}
    settings = getattr(value, "settings", None)
    if callable(settings) and not isinstance(value, type):  # an ordering or a scheme
        return {"class": type(value).__name__, **plain(settings(), where, deep + 1)}
    raise InvalidInputError(
        f"{where}: expected numbers, texts, lists, dictionaries, orderings or schemes, got "
        f"{type(value).__name__} {value!r:.60}; save tasks to a file, and give its name"
    )
