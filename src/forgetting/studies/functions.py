"""Functions of studies: their names, what they state about their cells, and digests that tell one from another."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np

from forgetting.core.registry import Registry
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError

__all__ = ["register"]

Function = Callable[..., Any]
OWN = ("seed", "repeat")  # given to a function that asks for them
FAILURE = "failure"  # the column that says why a cell failed; not "error", which is a quantity
MOST_DEEP = 50  # lists within lists


@dataclass(frozen=True)
class Traits:
    """Traits that a function states about its cells; a function of a user need not state any.

    Attributes:
        paired: parameters that do not change the seed: cells that differ in them alone have the same random numbers.
        whole: parameters whose lists are one value in a grid, not an axis.
        files: parameters that name files. Their folders change neither the seed nor the key of a cell.
        marks: what else identifies a cell, such as the contents of a file that the values name.
        check: raise for values that no cell can have, before anything is computed.
    """

    paired: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    marks: Callable[[Mapping[str, Any]], str] = lambda values: ""
    check: Callable[[Mapping[str, Any]], None] = lambda values: None


def states(traits: Traits) -> Callable[[Any], Any]:
    """A decorator by which a function states its traits."""

    def decorated(function: Any) -> Any:
        function.traits = traits
        return function

    return decorated


@dataclass(frozen=True)
class NamedFunction:
    """A function with the name that a store knows it by, and a digest of its source.

    Attributes:
        call: the function; None where it is only known by name, and its cells are looked at.
        doubt: why a store in a file could take the function for another one; empty for most functions.
        stated: the name in the TOML file that asks for the function, if one does.
        why_not: why `call` is None, and what to do.
    """

    call: Function | None
    name: str
    digest: str = ""
    doubt: str = ""
    stated: str = ""
    why_not: str = ""
    known: Mapping[str, bool] = field(init=False)
    takes_all: bool = field(init=False)

    def __post_init__(self) -> None:
        known, takes_all = ({}, True) if self.call is None else parameters_of(self.call)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "takes_all", takes_all)

    @property
    def traits(self) -> Traits:
        """The traits that the function states about its cells."""
        return getattr(self.call, "traits", None) or Traits()

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Raise unless the function takes these values."""
        if self.call is None:
            return
        known = self.known
        for name in values:
            if name == FAILURE:
                raise InvalidInputError(f"{where}: {name!r} is the name of the column of failures; use another name")
            if not self.takes_all and name not in known and name not in OWN:
                others = nearest(name, known) if known else "; its values cannot be given by name"
                raise InvalidInputError(f"{where}: {self.name} has no parameter {name!r:.60}{others}")
        missing = [name for name, needed in known.items() if needed and name not in values and name != "seed"]
        if missing:
            raise InvalidInputError(f"{where}: {self.name} needs {', '.join(missing)}")
        try:
            self.traits.check(values)
        except ForgettingError as error:
            raise InvalidInputError(f"{where}: {error}") from error


functions: Registry[Function] = Registry("function")  # those that TOML files may name


def register(function: Function) -> Function:
    """Let TOML files of studies name a function of yours, as "module:function"; to be used as a decorator.

    A plugin, or a file given with `--plugin`, registers its functions in this way. A file that comes from elsewhere can
    then call them with values of its own.

    >>> import forgetting as fg
    >>> @fg.studies.register
    ... def area(a, b):
    ...     return {"area": a * b}
    >>> fg.studies.register("area")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: function: expected a function, ..., got 'area'
    """
    if isinstance(function, str):
        raise InvalidInputError(f"function: expected a function, and not its name, got {function!r:.80}")
    name = named_function(function).name
    return functions.add(name, function, replace=not name.startswith("forgetting."))


def named_function(function: Function | str) -> NamedFunction:
    """A function and its name; a text such as "module:function" is imported, and so must come from the caller.

    >>> import math
    >>> named_function(math.hypot).name, named_function("math:hypot").call is math.hypot
    ('math:hypot', True)
    """
    if isinstance(function, str):
        return named_function(made_function(function))
    if not callable(function):
        raise InvalidInputError(
            f"function: expected a function, or its name as in 'module:function', got {function!r:.80}"
        )
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", type(function).__qualname__)
    if isinstance(module, str) and module.startswith("forgetting."):
        return NamedFunction(function, f"{module}:{name}")
    try:
        digest, doubt = digest_of(function), ""
    except NotSupportedError as error:
        digest, doubt = "", str(error)
    return NamedFunction(function, f"{module}:{name}", digest, doubt)


def made_function(name: str) -> Function:
    """The function that a name such as "module:function" or "file.py:function" says; the module or file is run.

    >>> made_function("math:hypo")
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: function: there is no 'math:hypo' (module 'math' has no attribute 'hypo')
    """
    module, _, qualified = name.rpartition(":")
    if not module:
        raise InvalidInputError(f"function: expected a name as in 'module:function', got {name!r:.80}")
    try:
        thing = _executed(Path(module)) if module.endswith(".py") else sys.modules.get(module) or import_module(module)
    except Exception as error:  # whatever the code of the module raises
        said = "" if isinstance(error, ImportError | InvalidInputError) else f"{type(error).__name__}: "
        raise InvalidInputError(f"function: there is no {name!r:.80} ({said}{error})") from error
    try:
        for part in qualified.split("."):
            thing = getattr(thing, part)
    except AttributeError as error:
        raise InvalidInputError(f"function: there is no {name!r:.80} ({error})") from None
    if not callable(thing):
        raise InvalidInputError(f"function: {name!r:.80} is not a function")
    return thing  # type: ignore[no-any-return]


def _executed(path: Path) -> Any:
    """A module from a file. Python does not find it by its name, so that workers are sent the functions themselves."""
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None:
        raise InvalidInputError(f"{path}: no such file")
    module = module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses of the file look for it
    try:
        # compiled anew: a file edited within a second, to the same size, would run as its cached bytecode
        exec(compile(path.read_bytes(), path, "exec"), vars(module))
    finally:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
    return module


def parameters_of(function: Function) -> tuple[dict[str, bool], bool]:
    """The parameters of a function, whether each must be given, and whether the function takes any other."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}, True
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return {p.name: p.default is p.empty for p in named}, takes_all


# --------------------------------------------------------------------------------------------------- digests and values


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


def canonical(values: Any) -> str:
    """Plain values as JSON, the same text for the same values.

    >>> canonical({"b": 1, "a": 1.0}), canonical([True, -0.0])
    ('{"a":1.0,"b":1}', '[true,-0.0]')
    """
    return ENCODER.encode(values)


ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def plain(value: Any, where: str, deep: int = 0) -> Any:
    """A value as numbers, texts, lists and dictionaries, as in JSON; an error names any other value.

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
