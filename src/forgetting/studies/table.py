"""The table of a study: the rows of its finished cells, and the order of their columns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from forgetting.core.registry import dashed
from forgetting.files.store import StoredCell
from forgetting.studies.cells import FAILURE, Cell

__all__ = ["cell_rows", "column_names", "glance", "shown", "table_rows"]

Row = Mapping[str, Any]


def cell_rows(cell: Cell, entry: StoredCell) -> list[dict[str, Any]]:
    """The rows of a finished cell: the values of the cell, its seed, what the function gave, and why the cell failed.

    What the function gave replaces a value of the cell of the same name: a list of several k becomes one k in each row.
    """
    own = {**{name: _in_words(value) for name, value in cell.values.items()}, "seed": cell.seed}
    return [{**own, **row, FAILURE: entry.error} for row in entry.rows or [{}]]


def _in_words(value: Any) -> Any:
    """An ordering or a scheme as a user types it, so that tables can be grouped by it; other values as they are."""
    if not isinstance(value, Mapping) or not isinstance(value.get("class"), str):
        return value
    settings = (
        f"{name}={entry if isinstance(entry, str) else json.dumps(entry, separators=(',', ':'))}"
        for name, entry in value.items()
        if name != "class" and entry is not None
    )
    return " ".join((dashed(value["class"]), *settings))


def table_rows(
    cells: Sequence[Cell], entries: Sequence[StoredCell | None], *, times: bool = False
) -> list[dict[str, Any]]:
    """The rows of all finished cells, in the order of the cells.

    A failed cell has no row for each entry of its lists; they are left out where other cells have an entry in each row.
    """
    found = {name for entry in entries if entry is not None for row in entry.rows or () for name in row}
    made: list[dict[str, Any]] = []
    for cell, entry in zip(cells, entries, strict=True):
        if entry is None or entry.state not in ("done", "failed"):
            continue
        more = {"seconds": entry.seconds, "version": entry.version} if times else {}
        for row in cell_rows(cell, entry):
            if entry.state == "failed":
                row = {name: None if name in found and isinstance(v, list) else v for name, v in row.items()}
            made.append({**more, **row})  # a function may give its own seconds
    return made


def column_names(cells: Sequence[Cell], rows: Sequence[Row], *, times: bool = False) -> list[str]:
    """The columns of a table; their order does not depend on which cells are finished.

    First come the values of all cells, finished or not, then the seed, what the function gave, and the failures, if
    there are any; with `times`, seconds and version.
    """
    asked = list(dict.fromkeys(name for cell in cells for name in cell.values if name != "seed"))
    failed = [FAILURE] if any(row.get(FAILURE) is not None for row in rows) else []
    last = [*failed, *(["seconds", "version"] if times else [])]
    found = dict.fromkeys(name for row in rows for name in row)
    return [*asked, "seed", *(name for name in found if name not in {*asked, "seed", FAILURE, *last}), *last]


def glance(cells: Sequence[Cell], rows: Sequence[Row]) -> tuple[list[str], str]:
    """The columns that a short table shows, and a sentence on values that are the same in all cells.

    Seeds and uncertainties are left to `to_frame`.
    """
    values = {name: {json.dumps(cell.values.get(name)) for cell in cells} for cell in cells[:1] for name in cell.values}
    found = {name for row in rows for name in row} - {name for cell in cells for name in cell.values}
    same = {
        name: shown(_in_words(cells[0].values[name]))
        for name, several in values.items()
        if len(several) == 1 < len(cells)
    }
    varied = {
        name for name in same if len({json.dumps(row.get(name)) for row in rows}) > 1
    }  # a list, one k in each row
    said = ", ".join(f"{name} = {value}" for name, value in same.items() if name not in varied)
    hidden = {"seed", *(name for name in same if name not in varied)}
    hidden |= {name for name in found if name.endswith("_uncertainty") and name.removesuffix("_uncertainty") in found}
    return [name for name in column_names(cells, rows) if name not in hidden], f"in all rows: {said}" if said else ""


def shown(value: Any) -> Any:
    """A value in a table, whose cells are words and numbers."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else json.dumps(value)
