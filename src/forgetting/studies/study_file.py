"""Studies as TOML files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from forgetting.core.arrays import as_count, as_seed
from forgetting.core.text import nearest
from forgetting.errors import ForgettingError, InvalidInputError
from forgetting.files.json_and_toml import read_toml
from forgetting.studies.cells import grid
from forgetting.studies.functions import Function, NamedFunction, functions, named_function
from forgetting.studies.measuring import measure

TOP = ("store", "seed", "repeats", "function", "cells")
LONGEST = 200  # characters of the name of a function, which messages repeat in full


@dataclass(frozen=True)
class StudyFile:
    """The arguments of `Study` that a TOML file gives."""

    cells: Sequence[Mapping[str, Any]]
    store: Path
    function: NamedFunction
    seed: int


def read_study(path: Path, function: Function | str | None = None) -> StudyFile:
    """Read a study from a TOML file; see docs/studies.md. Nothing that the file names is imported or run.

    The keys are `store` (a file; the name of the TOML file with .db if left out), `seed`, `repeats`, `function` (such
    as "module:name", or "file.py:name") and `cells`: a table whose lists are axes of a grid, or several such tables,
    [[cells]], which may have `repeats` of their own. All files are beside the TOML file. The function has a `call` if
    it is given here or registered.

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
        named = _function(values.get("function"), function, path)
        seed = as_seed(values.get("seed", 0), "seed")
        repeats = as_count(values.get("repeats", 1), "repeats", least=1)
        cells = _cells(values.get("cells"), repeats, named, path.parent)
        store = values.get("store", path.with_suffix(".db").name)
        if not isinstance(store, str) or not store:
            raise InvalidInputError(f"store must be the name of a file, got {store!r:.60}")
    except ForgettingError as error:
        raise InvalidInputError(f"{path}: {error}") from error
    return StudyFile(cells, path.parent / store, named, seed)


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
            if name in axes and function.call is not None and name not in function.known:
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


def _function(stated: Any, given: Function | str | None, path: Path) -> NamedFunction:
    """The function that the file at `path` names, if the caller gives it or it is registered; else its name alone."""
    if stated is None:
        if given is not None:
            raise InvalidInputError(
                f"the file names no function, and {given!r:.80} is given; write function = ... above the first table"
            )
        return named_function(measure)
    home, _, name = stated.rpartition(":") if isinstance(stated, str) else ("", "", "")
    if not (home and stated.isprintable() and len(stated) <= LONGEST and all(map(str.isidentifier, name.split(".")))):
        raise InvalidInputError(f"function must be a text such as 'module:name' or 'file.py:name', got {stated!r:.60}")
    if given is not None:
        made = named_function(given)
        if made.name.rpartition(":")[2] != name:
            raise InvalidInputError(f"the file names the function {stated!r}, and {made.name!r:.80} is given")
        return replace(made, stated=stated)
    known = f"{Path(home).stem}:{name}" if home.endswith(".py") else stated
    if known in functions:
        return replace(named_function(functions.get(known)), stated=stated)
    allowed = f"{path.parent / home}:{name}" if home.endswith(".py") else stated
    return NamedFunction(
        None, known, stated=stated,
        why_not=f"{path} names the function {stated!r}, and no file runs code by itself. If you know what the function "
        f"does, allow it: forgetting study run {quote(str(path))} --function {quote(allowed)} (in Python, "
        f"fg.Study.from_toml({str(path)!r}, function={allowed!r}), or fg.studies.register on the function)",
    )  # fmt: skip
