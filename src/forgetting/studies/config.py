"""Studies as TOML files."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from forgetting._arrays import as_count, as_seed
from forgetting._text import nearest
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.storage.toml_text import read_toml
from forgetting.studies.cells import Function, NamedFunction, grid, named_function, takes
from forgetting.studies.measuring import measure

__all__ = ["Settings", "read_study"]

TOP = ("store", "seed", "repeats", "function", "cells")


@dataclass(frozen=True)
class Settings:
    """What a TOML file says of a study: the arguments of `Study`."""

    cells: Sequence[Mapping[str, Any]]
    store: Path
    function: Function
    seed: int


def read_study(path: Path) -> Settings:
    """Read a study from a TOML file; see docs/studies.md.

    The keys are `store` (a file; the name of the TOML file with .db if left out), `seed`, `repeats`, `function` (such
    as "module:name", or "file.py:name") and `cells`: a table whose lists are axes of a grid, or several such tables,
    [[cells]], which may have `repeats` of their own. All files are beside the TOML file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     file = Path(here, "my.toml")
    ...     _ = file.write_text("repeats = 2\\n[cells]\\nfamily = 'gaussian'\\nT = [2, 4]\\nd = 9\\nrank = 1")
    ...     settings = read_study(file)
    >>> len(settings.cells), settings.store.name, settings.cells[0]
    (4, 'my.db', {'family': 'gaussian', 'T': 2, 'd': 9, 'rank': 1, 'repeat': 0})
    """
    values = read_toml(path)
    unknown = next((name for name in values if name not in TOP), None)
    if unknown is not None:
        raise InvalidInputError(f"{path}: unknown key {unknown!r:.60}{nearest(unknown, TOP)}")
    try:
        function = _function(values.get("function"), path.parent)
        seed = as_seed(values.get("seed", 0), "seed")
        repeats = as_count(values.get("repeats", 1), "repeats", least=1)
        cells = _cells(values.get("cells"), repeats, named_function(function), path.parent)
        store = values.get("store", path.with_suffix(".db").name)
        if not isinstance(store, str) or not store:
            raise InvalidInputError(f"store must be the name of a file, got {store!r:.60}")
    except ForgettingError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    return Settings(cells, path.parent / store, function, seed)


def _cells(tables: Any, repeats: int, function: NamedFunction, folder: Path) -> list[dict[str, Any]]:
    """The cells of one table, or of several."""
    if tables is None:
        raise InvalidInputError("no [cells]: a table with the values of the cells, in which lists are axes")
    several = tables if isinstance(tables, list) else [tables]
    if not several or not all(isinstance(table, Mapping) for table in several):
        raise InvalidInputError("cells must be a table, [cells], or several tables, [[cells]]")
    made: list[dict[str, Any]] = []
    for number, table in enumerate(several):
        where = "[cells]" if len(several) == 1 else f"[[cells]] {number}"
        axes = dict(table)
        for name in ("store", "function"):
            if name in axes and not takes(function, name):
                raise InvalidInputError(f"{where}: {name} is a key of the whole study: write it above the first table")
        try:
            own = as_count(axes.pop("repeats", repeats), "repeats", least=1)
            axes |= {name: _beside(axes[name], folder) for name in function.traits.files if name in axes}
            made += grid(axes, own, function.traits.whole)
        except ForgettingError as error:
            raise InvalidInputError(f"{where}: {error}") from error
    return made


def _beside(value: Any, folder: Path) -> Any:
    """The name of a file, or of several, that is beside the TOML file."""
    if isinstance(value, list):
        return [_beside(entry, folder) for entry in value]
    return str(folder / value) if isinstance(value, str) else value


def _function(name: Any, folder: Path) -> Function:
    """The function that a text names: in a module, or in a file beside the TOML file."""
    if name is None:
        usual: Function = measure
        return usual
    if not isinstance(name, str):
        raise InvalidInputError(f"function must be a text such as 'module:name' or 'file.py:name', got {name!r:.60}")
    file, _, function = name.rpartition(":")
    if not file.endswith(".py"):
        call = named_function(name).call
        assert call is not None
        return call
    path = folder / file
    found: Function | None = getattr(_executed(path), function, None)
    if not callable(found):
        raise InvalidInputError(f"function: {path} has no function {function!r:.60}")
    return found


def _executed(path: Path) -> Any:
    """A module from a file. Python does not find it by its name, so that workers are sent the functions themselves."""
    spec = spec_from_file_location(path.stem, path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise InvalidInputError(f"function: {path}: no such file")
    module = module_from_spec(spec)
    before = sys.modules.get(path.stem)
    sys.modules[path.stem] = module  # dataclasses of the file look for it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInputError(f"function: {path}: {type(error).__name__}: {error}") from error
    finally:
        if before is None:
            del sys.modules[path.stem]
        else:
            sys.modules[path.stem] = before
    return module
