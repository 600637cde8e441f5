"""Cells: the values that a function is called with, as plain data, and the seed and the key that follow from them."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np

from forgetting.core.arrays import as_count, as_seed
from forgetting.errors import InvalidInputError
from forgetting.studies.functions import FAILURE, OWN, Function, NamedFunction, canonical, parameters_of, plain

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


class CellCall:
    """A function as it is called with a cell; the seed and the number of the repeat go to functions that ask for them.

    >>> CellCall(lambda T, seed: (T, seed))(Cell({"T": 3, "repeat": 0}, 7, ""))
    (3, 7)
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known, self.takes_all = parameters_of(function)

    def __call__(self, cell: Cell) -> Any:
        takes_all, known = self.takes_all, self.known
        given = deepcopy(dict(cell.values))  # the function may change its lists
        values = {name: value for name, value in given.items() if takes_all or name in known or name not in OWN}
        if takes_all or "seed" in known:
            values["seed"] = cell.seed
        return self.function(**values)


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
        raise InvalidInputError(f"{empty}: this axis of the grid has no values")
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


def as_rows(given: Any) -> list[dict[str, Any]]:
    """The rows of a table that a function gave: a dictionary is a row, a list of them several, a number is a `value`.

    >>> as_rows({"loss": np.float64(0.5)}), as_rows(3)
    ([{'loss': 0.5}], [{'value': 3}])
    """
    if isinstance(given, Mapping):
        given = [given]
    elif isinstance(given, (bool, int, float, str, np.generic)):
        given = [{"value": given}]
    if not isinstance(given, (list, tuple)) or not all(isinstance(row, Mapping) for row in given):
        raise InvalidInputError(
            f"the function gave {type(given).__name__} {given!r:.60}; expected a dictionary, several, or a number"
        )
    rows = []
    for row in given:
        if not all(isinstance(name, str) for name in row):
            raise InvalidInputError(f"the function gave a dictionary whose names are not texts: {row!r:.60}")
        if FAILURE in row:
            raise InvalidInputError(
                f"the function gave a value {FAILURE!r}, the name of the column of failures; rename it"
            )
        rows.append({name: plain(value, f"the value {name!r} of the function") for name, value in row.items()})
    return rows
