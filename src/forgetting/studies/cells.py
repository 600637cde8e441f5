"""Cells: what a function is called with, as plain data, and the seed and the key that follow from that."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from forgetting.core.arrays import as_count, as_seed
from forgetting.core.registry import Registry
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError
from forgetting.studies.identity import canonical, digest_of, plain

__all__ = [
    "FAILURE",
    "Call",
    "Cell",
    "Function",
    "NamedFunction",
    "Traits",
    "as_cells",
    "as_rows",
    "functions",
    "grid",
    "made_function",
    "named_function",
    "register",
    "seed_of",
    "states",
    "takes",
]

Function = Callable[..., Any]
OWN = ("seed", "repeat")  # given to a function that asks for them
FAILURE = "failure"  # the column that says why a cell failed; not "error", which is a quantity
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Cell:
    """One call of a function.

    Attributes:
        values: what the function is called with, as plain data: numbers, texts, lists, dictionaries.
        seed: of the random numbers of the cell. The seed follows from the seed of the study and from `values`, and from
            nothing else: not from the other cells, their order, or the workers.
        key: what identifies the cell in a store: a SHA-256 of the function, the values and the seed.
    """

    values: Mapping[str, Any]
    seed: int
    key: str

    @property
    def text(self) -> str:
        """The values as JSON, in the order in which they were given."""
        return json.dumps(self.values)

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values.items())


# ------------------------------------------------------------------------------------------------------ of functions


@dataclass(frozen=True)
class Traits:
    """What a function states about its cells; a function of a user states nothing, which is fine.

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
        known, takes_all = ({}, True) if self.call is None else _parameters(self.call)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "takes_all", takes_all)

    @property
    def traits(self) -> Traits:
        """What the function states about its cells."""
        return getattr(self.call, "traits", None) or Traits()

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Raise unless the function takes these values."""
        if self.call is None:
            return
        known = self.known
        for name in values:
            if name == FAILURE:
                raise InvalidInputError(f"{where}: {name!r} is the column of what failed; use another name")
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
        found = _executed(Path(module)) if module.endswith(".py") else sys.modules.get(module) or import_module(module)
    except Exception as error:  # whatever the code of the module raises
        said = "" if isinstance(error, ImportError | InvalidInputError) else f"{type(error).__name__}: "
        raise InvalidInputError(f"function: there is no {name!r:.80} ({said}{error})") from error
    try:
        for part in qualified.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise InvalidInputError(f"function: there is no {name!r:.80} ({error})") from None
    if not callable(found):
        raise InvalidInputError(f"function: {name!r:.80} is not a function")
    return found  # type: ignore[no-any-return]


def _executed(path: Path) -> Any:
    """A module from a file. Python does not find it by its name, so that workers are sent the functions themselves."""
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InvalidInputError(f"{path}: no such file")
    module = module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses of the file look for it
    try:
        spec.loader.exec_module(module)
    finally:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
    return module


def _parameters(function: Function) -> tuple[dict[str, bool], bool]:
    """The parameters of a function, whether each must be given, and whether the function takes any other."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}, True
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    return {p.name: p.default is p.empty for p in named}, takes_all


def takes(function: NamedFunction, name: str) -> bool:
    """Whether a function has a parameter of this name.

    >>> takes(named_function(seed_of), "seed"), takes(named_function(seed_of), "store")
    (True, False)
    """
    return function.call is not None and name in _parameters(function.call)[0]


class Call:
    """A function as it is called with a cell; the seed and the number of the repeat go to functions that ask for them.

    >>> Call(lambda T, seed: (T, seed))(Cell({"T": 3, "repeat": 0}, 7, ""))
    (3, 7)
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known, self.takes_all = _parameters(function)

    def __call__(self, cell: Cell) -> Any:
        takes_all, known = self.takes_all, self.known
        given = deepcopy(dict(cell.values))  # the function may change its lists
        values = {name: value for name, value in given.items() if takes_all or name in known or name not in OWN}
        if takes_all or "seed" in known:
            values["seed"] = cell.seed
        return self.function(**values)


# ---------------------------------------------------------------------------------------------------------- of cells


def as_cells(cells: Iterable[Mapping[str, Any]], function: NamedFunction, seed: int) -> list[Cell]:
    """Check the cells of a study, and give each its seed and its key."""
    made: list[Cell] = []
    places: dict[str, int] = {}
    if isinstance(cells, str | bytes | Mapping) or not isinstance(cells, Iterable) or hasattr(cells, "ndim"):
        raise InvalidInputError(f"cells: expected a list of dictionaries, got {cells!r:.80}")
    for place, given in enumerate(cells):
        where = f"cell {place}"
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise InvalidInputError(f"{where}: expected a dictionary of named values, got {given!r:.80}")
        values = {name: plain(value, f"{where}, {name}") for name, value in given.items()}
        function.check(values, where)
        own = values.pop("seed", None)
        if own is not None:
            values["seed"] = as_seed(own, f"{where}: seed")
        known = {name: _without_folder(value) if name in function.traits.files else value
                 for name, value in values.items()}  # fmt: skip
        drawing = {name: value for name, value in known.items() if name not in function.traits.paired}
        chosen = values["seed"] if own is not None else seed_of(seed, drawing)
        parts = function.name, function.digest, function.traits.marks(values), str(chosen), canonical(known)
        key = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
        cell = Cell(values, chosen, key)
        if key in places:
            raise InvalidInputError(
                f"{where} is the same as cell {places[key]} ({cell}); for other draws, number cells by repeat"
            )
        places[key] = place
        made.append(cell)
        if place >= MOST_CELLS:
            raise InvalidInputError(f"more than {MOST_CELLS} cells; split the study")
    if not made:
        raise InvalidInputError("no cells given; a study needs at least one")
    return made


def _without_folder(value: Any) -> Any:
    return PurePath(value).name if isinstance(value, str) else value


def grid(axes: Mapping[str, Any], repeats: int, whole: Sequence[str] = ()) -> list[dict[str, Any]]:
    """All combinations of the axes: lists are axes, other values are the same in all cells.

    >>> grid({"T": [2, 3], "d": 5}, repeats=1)
    [{'T': 2, 'd': 5}, {'T': 3, 'd': 5}]
    >>> len(grid({"T": [2, 3], "k": [1, 10]}, repeats=4, whole=("k",)))
    8
    """
    repeats = as_count(repeats, "repeats", least=1)
    values = {name: list(value) if _is_axis(value) and name not in whole else [value] for name, value in axes.items()}
    empty = next((name for name, several in values.items() if not several), None)
    if empty is not None:
        raise InvalidInputError(f"{empty}: an axis of the grid without values")
    if repeats > 1:
        values["repeat"] = list(range(repeats))
    count = math.prod(map(len, values.values()))
    if count > MOST_CELLS:
        raise InvalidInputError(f"a grid of {count} cells, more than {MOST_CELLS}; split the study")
    return [dict(zip(values, combination, strict=True)) for combination in itertools.product(*values.values())]


def _is_axis(value: Any) -> bool:
    return isinstance(value, (list, range)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def seed_of(seed: int, values: Mapping[str, Any]) -> int:
    """The seed that a study with this seed gives to a cell with these values.

    >>> seed_of(0, {"T": 3}) == seed_of(0, {"T": 3}) != seed_of(1, {"T": 3})
    True
    """
    words = np.frombuffer(hashlib.sha256(canonical(values).encode()).digest(), dtype="<u4")
    state = np.random.SeedSequence(seed, spawn_key=tuple(int(word) for word in words)).generate_state(1, np.uint64)
    return int(state[0]) >> 1  # SQLite and Parquet know 63 bits


def as_rows(found: Any) -> list[dict[str, Any]]:
    """The rows of a table that a function gave: a dictionary is a row, a list of them several, a number is a `value`.

    >>> as_rows({"loss": np.float64(0.5)}), as_rows(3)
    ([{'loss': 0.5}], [{'value': 3}])
    """
    if isinstance(found, Mapping):
        found = [found]
    elif isinstance(found, (bool, int, float, str, np.generic)):
        found = [{"value": found}]
    if not isinstance(found, (list, tuple)) or not all(isinstance(row, Mapping) for row in found):
        raise InvalidInputError(
            f"the function gave {type(found).__name__} {found!r:.60}; expected a dictionary, several, or a number"
        )
    rows = []
    for row in found:
        if not all(isinstance(name, str) for name in row):
            raise InvalidInputError(f"the function gave a dictionary whose names are not texts: {row!r:.60}")
        if FAILURE in row:
            raise InvalidInputError(f"the function gave a value {FAILURE!r}, the column of what failed; rename it")
        rows.append({name: plain(value, f"the value {name!r} of the function") for name, value in row.items()})
    return rows
