"""Landscapes of orders as arrays and files: every row is checked before it is used, and nothing is unpickled."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from itertools import permutations as all_permutations
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray, any_array, as_flag, as_kind, as_path, as_word, real_array
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.files.arrays import open_regular, read_arrays
from forgetting.files.atomic import write

KEYS = ("permutations", "values", "seeds", "task_values")
Layout = Literal["group-by-seed", "seed-by-group"]


def checked_orders(permutations: Any, complete: bool) -> tuple[IntArray, IntArray]:
    """The orders, each a row that names every task once, and the rows in lexicographic order; else an error.

    >>> checked_orders([[0, 1], [1, 1]], True)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: permutations: row 1 is [1, 1], but an order names each of the 2 tasks 0 to ...
    """
    raw = any_array(permutations, "permutations")
    if raw.ndim != 2 or raw.dtype.kind not in "iu":
        raise InvalidInputError(
            f"permutations: expected whole numbers, a row for each order, got {raw.dtype} of shape {raw.shape}"
        )
    count, T = raw.shape
    if T < 2 or count < 1:
        raise InvalidInputError(
            f"permutations: {count} orders of {T} tasks; orders of at least 2 tasks can be compared"
        )
    wrong = np.flatnonzero((np.sort(raw, axis=1) != np.arange(T)).any(axis=1))
    if wrong.size:
        row = raw[wrong[0]].tolist()
        hint = "; tasks are numbered from 0: subtract 1" if sorted(row) == list(range(1, T + 1)) else ""
        raise InvalidInputError(
            f"permutations: row {wrong[0]} is {row!r:.80}, but an order names each of the {T} tasks 0 to {T - 1} once"
            f"{hint}"
        )
    orders = raw.astype(np.int64)
    rows = np.lexsort(orders.T[::-1])
    same = np.flatnonzero((orders[rows][1:] == orders[rows][:-1]).all(axis=1))
    if same.size:
        one, other = sorted(rows[same[0] : same[0] + 2].tolist())
        raise InvalidInputError(
            f"permutations: rows {one} and {other} are the same order {orders[one].tolist()!r:.80}; each order comes "
            "once, and repeated trainings are seeds, in columns of the values"
        )
    if complete and count < math.factorial(T):
        missing = _first_missing(orders[rows])
        raise InvalidInputError(
            f"permutations: {count} rows, but {T} tasks have {math.factorial(T)} orders, and {list(missing)} is not "
            "among the rows; complete=False takes some orders as a sample"
        )
    return orders, rows


def _first_missing(orders: IntArray) -> tuple[int, ...]:
    """The first permutation that is not among the sorted orders.

    >>> _first_missing(np.array([[0, 1, 2], [0, 2, 1], [1, 2, 0]]))
    (1, 0, 2)
    """
    for row, order in enumerate(all_permutations(range(orders.shape[1]))):
        if row == len(orders) or tuple(orders[row].tolist()) != order:
            return order
    raise AssertionError("no permutation is missing")


def checked_values(values: Any, orders: int) -> Array:
    """Finite values, (orders, M); a vector is one seed. An error names the row and the column."""
    table = real_array(values, "values", squares=True)
    table = table[:, None] if table.ndim == 1 else table
    if table.ndim != 2 or len(table) != orders or table.shape[1] < 1:
        turned = table.ndim == 2 and table.shape[1] == orders
        hint = "; for a row per seed give values_layout='seed-by-group', or transpose them" if turned else ""
        raise InvalidInputError(
            f"values: expected a row for each of {orders} orders and a column for each seed, got shape {table.shape}"
            f"{hint}"
        )
    return table


def checked_seeds(seeds: Any, count: int) -> NDArray[Any]:
    """The names of the seeds, all different: numbers or words; 0, 1, ... if None.

    >>> checked_seeds([3, 5, 3], 3)
    Traceback (most recent call last):
    forgetting.errors.InvalidInputError: seeds: 3 comes twice, in columns 0 and 2; each column is a seed of its own
    """
    if seeds is None:
        return np.arange(count)
    names = any_array(seeds, "seeds")
    if names.shape != (count,) or names.dtype.kind not in "iufU":
        raise InvalidInputError(
            f"seeds: expected {count} numbers or words, one for each column of the values, got {names.dtype} of shape "
            f"{names.shape}"
        )
    places: dict[Any, int] = {}
    for column, name in enumerate(names.tolist()):
        if name != name or name in (math.inf, -math.inf):
            raise InvalidInputError(f"seeds: column {column} is {name}, which names no seed")
        if name in places:
            raise InvalidInputError(
                f"seeds: {name} comes twice, in columns {places[name]} and {column}; each column is a seed of its own"
            )
        places[name] = column
    return names


def checked_task_values(values: Any, shape: tuple[int, int, int]) -> Array:
    """Finite values of each task at the end of each order, (orders, T, M); (orders, T) for one seed."""
    table = real_array(values, "task_values", squares=True)
    table = table[:, :, None] if table.ndim == 2 else table
    if table.shape != shape:
        raise InvalidInputError(
            f"task_values: expected {shape[0]} orders, {shape[1]} tasks and {shape[2]} seeds, got shape {table.shape}"
        )
    return table


def holds_values(path: str | PathLike[str], names: Sequence[str] = KEYS[:2]) -> bool:
    """Whether a file is an .npz archive with arrays of these names; nothing is unpacked.

    >>> holds_values("nowhere.npz")
    False
    """
    try:
        with open_regular(path) as handle, zipfile.ZipFile(handle) as archive:
            return {f"{name}.npy" for name in names} <= set(archive.namelist())
    except Exception:  # no such file, or any of the many exceptions of damaged archives
        return False


def read_values(
    path: str | PathLike[str], permutations_key: str, values_key: str, seeds_key: str | None, values_layout: Layout
) -> dict[str, Any]:
    """The arrays of a landscape, by the names in `KEYS`; an error names what is missing."""
    as_word(values_layout, get_args(Layout), "values_layout")
    for name, what in ((permutations_key, "permutations_key"), (values_key, "values_key"), (seeds_key, "seeds_key")):
        if name is not None or what != "seeds_key":
            as_kind(name, str, "the name of an array", f"{what}: ")
    arrays = read_arrays(path)
    for name in (permutations_key, values_key):
        if name not in arrays:
            there = ", ".join(map(repr, sorted(arrays))) or "none"
            raise ProblemFileError(
                f"{path}: no array {name!r:.80}; there are {there:.200}; name them by permutations_key= and values_key="
            )
    values = np.asarray(arrays[values_key])
    landscape = {
        "permutations": arrays[permutations_key],
        "values": values.T if values_layout == "seed-by-group" else values,
        "seeds": None if seeds_key is None else arrays.get(seeds_key),
        "task_values": _task_values(arrays, values_key),
    }
    if seeds_key not in (None, "seeds") and seeds_key not in arrays:
        raise ProblemFileError(f"{path}: no array {seeds_key!r:.80}; seeds_key=None numbers the seeds")
    return landscape


def _task_values(arrays: dict[str, Any], values_key: str) -> Any:
    """The values of tasks that belong to the values: with several measures in a file, each has its own."""
    own = arrays.get(f"task_{values_key}")
    return arrays.get("task_values") if own is None and not {"values", values_key} <= set(arrays) else own


def write_values(path: str | PathLike[str], arrays: dict[str, Any], *, force: bool) -> None:
    """Write arrays to an .npz file, atomically; an existing file is replaced only with `force`."""
    name = as_path(path)
    if os.path.lexists(name) and not as_flag(force, "force"):
        raise ProblemFileError(f"{path} exists and is kept; force=True replaces it")
    write(name, lambda handle: np.savez_compressed(handle, **arrays), replace=force)
