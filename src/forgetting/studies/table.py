"""The table of a study: the rows of its finished cells, the order of their columns, and files: Parquet, CSV, JSON."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from forgetting.core.extras import module_for
from forgetting.core.registry import dashed
from forgetting.core.text import csv_text, encodable
from forgetting.errors import ProblemFileError
from forgetting.files.json_and_toml import finite
from forgetting.files.outputs import check_output
from forgetting.files.store import StoredCell
from forgetting.studies.cells import Cell
from forgetting.studies.functions import FAILURE

Row = Mapping[str, Any]
Rows = Sequence[Row]


def cell_rows(cell: Cell, entry: StoredCell) -> list[dict[str, Any]]:
    """The rows of a finished cell: the values of the cell, its seed, the values of the function, and the error if any.

    What the function gave replaces a value of the cell of the same name: a list of several k becomes one k in each row.
    """
    own = {**{name: _in_words(value) for name, value in cell.values.items()}, "seed": cell.seed}
    return [{**own, **row, FAILURE: entry.error} for row in entry.rows or [{}]]


def _in_words(value: Any) -> Any:
    """An ordering or a scheme as a user types it, so that tables can be grouped by it; other values as they are."""
    if not isinstance(value, Mapping) or not isinstance(value.get("class"), str):
        return value
    entries = ((name, _in_words(entry)) for name, entry in value.items() if name != "class" and entry is not None)
    settings = (
        f"{name}={entry if isinstance(entry, str) else json.dumps(entry, separators=(',', ':'))}"
        for name, entry in entries
    )
    return " ".join((dashed(value["class"]), *(shlex.quote(word) if " " in word else word for word in settings)))


def table_rows(
    cells: Sequence[Cell], entries: Sequence[StoredCell | None], *, times: bool = False
) -> list[dict[str, Any]]:
    """The rows of all finished cells, in the order of the cells.

    A failed cell has no row for each entry of its lists; they are left out where other cells have an entry in each row.
    """
    listed = {name for entry in entries if entry is not None for row in entry.rows or () for name in row}
    made: list[dict[str, Any]] = []
    for cell, entry in zip(cells, entries, strict=True):
        if entry is None or entry.state not in ("done", "failed"):
            continue
        more = {"seconds": entry.seconds, "version": entry.version} if times else {}
        for row in cell_rows(cell, entry):
            if entry.state == "failed":
                row = {name: None if name in listed and isinstance(v, list) else v for name, v in row.items()}
            made.append({**more, **row})  # a function may give its own seconds
    return made


def column_names(cells: Sequence[Cell], rows: Sequence[Row], *, times: bool = False) -> list[str]:
    """The columns of a table; their order does not depend on which cells are finished.

    First come the values of all cells, finished or not, then the seed, what the function gave, and the failures, if
    there are any; with `times`, seconds and version.
    """
    given = list(dict.fromkeys(name for cell in cells for name in cell.values if name != "seed"))
    failed = [FAILURE] if any(row.get(FAILURE) is not None for row in rows) else []
    last = [*failed, *(["seconds", "version"] if times else [])]
    names = dict.fromkeys(name for row in rows for name in row)
    return [*given, "seed", *(name for name in names if name not in {*given, "seed", FAILURE, *last}), *last]


def glance(cells: Sequence[Cell], rows: Sequence[Row]) -> tuple[list[str], str]:
    """The columns that a short table shows, and a sentence on values that are the same in all cells.

    Seeds and uncertainties are left to `to_frame`.
    """
    values = {name: {json.dumps(cell.values.get(name)) for cell in cells} for cell in cells[:1] for name in cell.values}
    results = {name for row in rows for name in row} - {name for cell in cells for name in cell.values}
    same = {
        name: shown(_in_words(cells[0].values[name]))
        for name, several in values.items()
        if len(several) == 1 < len(cells)
    }
    # a list becomes one k in each row
    varied = {name for name in same if len({json.dumps(row.get(name)) for row in rows}) > 1}
    said = ", ".join(f"{name} = {value}" for name, value in same.items() if name not in varied)
    hidden = {"seed", *(name for name in same if name not in varied)}
    stems = {name: name.removesuffix("_uncertainty") for name in results}
    hidden |= {name for name, stem in stems.items() if stem != name and stem in results}
    return [name for name in column_names(cells, rows) if name not in hidden], f"in all rows: {said}" if said else ""


def shown(value: Any) -> Any:
    """A value in a table, whose cells are words and numbers."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else json.dumps(value)


def check_export(path: Path, *, force: bool = False, only: str | None = None) -> None:
    """Raise unless a table can be written to this file.

    >>> check_export(Path("table.xls"))
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: table.xls: unknown ending; use .parquet, .csv or .json
    """
    known = tuple(ENDINGS) if only is None else (only,)
    if path.suffix.lower() not in known:
        listed = f"{', '.join(known[:-1])} or {known[-1]}" if len(known) > 1 else known[0]
        raise ProblemFileError(f"{path}: unknown ending; use {listed}")
    if path.suffix.lower() == ".parquet":
        _pyarrow()
    check_output(path, force=force)


def _pyarrow() -> Any:
    module_for("a Parquet file", "pyarrow.parquet", "use .csv or .json")
    return module_for("a Parquet file", "pyarrow")


def _parquet(columns: Sequence[str], rows: Rows) -> bytes:
    arrow = _pyarrow()
    arrays = [_arrow_column([row.get(name) for row in rows], arrow) for name in columns]
    sink = io.BytesIO()
    arrow.parquet.write_table(arrow.table(arrays, names=list(map(encodable, columns))), sink)
    return sink.getvalue()


def _arrow_column(values: list[Any], arrow: Any) -> Any:
    """A column of Parquet: numbers, texts or lists of numbers; a column of several kinds becomes one of texts."""
    given = [value for value in values if value is not None]
    if not any(isinstance(value, Mapping) for value in given):
        try:
            column = arrow.array(values)
        except (arrow.ArrowException, OverflowError, ValueError, TypeError):
            pass
        else:
            if not _nested(column.type, arrow):
                return column
    return arrow.array([value if value is None else encodable(_word(value)) for value in values], arrow.string())


def _nested(kind: Any, arrow: Any) -> bool:
    """Whether a column holds lists of values that are neither numbers nor texts."""
    if not arrow.types.is_list(kind):
        return False
    inner = kind.value_type
    return bool(arrow.types.is_nested(inner) or arrow.types.is_null(inner))


def _csv(columns: Sequence[str], rows: Rows) -> bytes:
    words = ([None if row.get(name) is None else _word(row[name]) for name in columns] for row in rows)
    return csv_text([columns, *words], end="\n").encode()


def _json(columns: Sequence[str], rows: Rows) -> bytes:
    plain = [{name: finite(row.get(name)) for name in columns} for row in rows]
    return json.dumps(plain, indent=1).encode()


def _word(value: Any) -> str:
    """A value as a text: numbers so that they read back to the last digit, lists and dictionaries as JSON."""
    return value if isinstance(value, str) else repr(value) if isinstance(value, float) else json.dumps(value)


#: functions that make the bytes of a file, by its ending
ENDINGS: dict[str, Callable[[Sequence[str], Rows], bytes]] = {".parquet": _parquet, ".csv": _csv, ".json": _json}
