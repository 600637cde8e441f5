"""The base classes of results, which show themselves, become frames, draw themselves, are saved and loaded."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np

from forgetting.core.arrays import IntArray, as_count
from forgetting.core.extras import module_for
from forgetting.core.text import encodable
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, ProblemFileError
from forgetting.figures.items import Item, Table
from forgetting.figures.notebook import notebook_html
from forgetting.figures.text_formats import table_text
from forgetting.files.json_and_toml import finite, of_format
from forgetting.files.records import checked_fields, field_values, format_name, read_record, typed, write_record

__all__ = ["Result", "Shown"]

ROWS = 8  # of a table that `repr` and notebooks show


def _early_ones(total: int, most: int) -> IntArray:
    """`most` of all rows, the first and the last among them, closer together at the start.

    >>> _early_ones(10, 8).tolist(), _early_ones(1000, 5).tolist()
    ([0, 1, 2, 3, 4, 5, 6, 9], [0, 1, 10, 100, 999])
    """
    rows = [0]
    for row in np.geomspace(1, total - 1, most - 1).round().astype(np.int64).tolist():
        rows.append(max(row, rows[-1] + 1))
    latest: IntArray = np.arange(total - len(rows), total)
    return np.minimum(rows, latest)


class Shown:
    """The base class of everything that people look at: results, and collections of tasks.

    A class gives its `headline`, the number of rows of its table (`_num_rows`) and the columns of some or all rows
    (`_columns`); for a picture, `figure`.
    """

    #: whether the rows of the table are steps, of which early ones matter most
    _along: ClassVar[bool] = False

    @property
    def headline(self) -> str:
        """The object in one line."""
        raise NotImplementedError

    def _num_rows(self) -> int:
        raise NotImplementedError

    def _columns(self, rows: IntArray, *, full: bool) -> Mapping[str, Sequence[Any]]:
        """The values in these rows of the table, by the names of the columns; `full` is for frames."""
        raise NotImplementedError

    def _remarks(self) -> tuple[str, ...]:
        """Warnings for a reader who quotes a number."""
        return ()

    def figure(self) -> Item | None:
        """The picture as data; None if a picture would say no more than the table."""
        return None

    def to_table(self, most: int | None = None) -> Table:
        """The values as a table: all rows, or at most `most`."""
        most = None if most is None else as_count(most, "most", least=1)
        total = self._num_rows()
        rows = np.arange(total)
        if most is not None and total > most and self._along:  # closer together at the start
            rows = _early_ones(total, most)
        elif most is not None:
            rows = rows[:most]
        columns = self._columns(rows, full=False)
        cells = tuple(zip(*columns.values(), strict=True))
        more = () if len(rows) == total else (f"{len(rows)} of {total} rows; to_frame() has all",)
        return Table("values", self.headline, "", tuple(columns), cells, (*more, *self._remarks()))

    def __repr__(self) -> str:
        try:
            return table_text(self.to_table(ROWS), 100)
        except ForgettingError:  # values that cannot be computed; asking for them says why
            return self.headline

    def _repr_html_(self) -> str:
        """The headline, a short table and a small picture, for notebooks."""
        return notebook_html(self.to_table(ROWS), self.figure())

    def to_frame(self) -> Any:
        """All values as a pandas DataFrame, at full precision; an error says so if pandas is not installed."""
        pd = module_for("to_frame", "pandas")
        columns = self._columns(np.arange(self._num_rows()), full=True)
        arrays = {name: np.asarray(values) for name, values in columns.items()}
        return pd.DataFrame({n: list(map(encodable, a)) if a.dtype.kind == "U" else a for n, a in arrays.items()})

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the picture onto matplotlib axes, new ones if none are given, and return the axes.

        `options` are those of `figure`.
        """
        from forgetting.figures.drawing import draw_on

        known = inspect.signature(self.figure).parameters
        unknown = next((name for name in options if name not in known), None)
        if unknown is not None:
            there = f"there are {', '.join(known)}" if known else "there are none"
            raise InvalidInputError(f"{type(self).__name__}.plot has no option {unknown!r:.40}; {there}")
        item = self.figure(**options)
        if item is None:
            hint = "; give several k, as in k=[1, 10, 100]" if self._along and self._num_rows() == 1 else ""
            raise NotSupportedError(f"{type(self).__name__} has no picture: {self.headline}{hint}")
        return draw_on(item, ax)


class Result(Shown):
    """The base class of results, which are dataclasses: they can be saved and loaded, too."""

    #: the content of a file, in words; it must never change
    kind: ClassVar[str]

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to an .npz file, atomically and without pickle; `load` gives the same result back.

        An existing file that this library did not write is not replaced.
        """
        write_record(path, self.kind, self._saved())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what `save` wrote; nothing is unpickled, and every field is checked."""
        return read_record(path, cls.kind, cls._restored)

    def _saved(self) -> dict[str, Any]:
        """The saved values, by name."""
        return field_values(self)

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        """The result made from the values of `_saved`."""
        return cls(**checked_fields(cls, values))


class PlainResult(Result):
    """The base class of results that hold plain data alone, and are JSON texts, too."""

    #: whether numbers may be NaN or infinite, which are words in JSON
    _unbounded: ClassVar[bool] = True
    #: entries that others may add to the JSON
    _beside: ClassVar[tuple[str, ...]] = ()

    def to_json(self, indent: int | None = None) -> str:
        """The result as JSON text, on a single line, or with every level indented by `indent` spaces."""
        spaces = None if indent is None else as_count(indent, "indent", most=100)
        data = {"format": format_name(self.kind), **self._saved()}
        return json.dumps(finite(data, repr) if self._unbounded else data, allow_nan=False, indent=spaces)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """The result from the text that `to_json` gave; an error for any other text."""
        try:
            data = of_format(text, format_name(cls.kind))
            own = {name: value for name, value in data.items() if name not in cls._beside}
            made: Self = typed(cls, own, cls.kind, unbounded=cls._unbounded)
            made._check()
        except ProblemFileError as error:
            raise InvalidInputError(f"not {'an' if cls.kind[0] in 'aeiou' else 'a'} {cls.kind} ({error})") from error
        return made

    def _saved(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def _restored(cls, values: dict[str, Any]) -> Self:
        if "json" in values:  # files of earlier versions
            return cls.from_json(str(values["json"]))
        made = cls(**checked_fields(cls, values, unbounded=cls._unbounded))
        made._check()
        return made

    def _check(self) -> None:
        """Raise a ProblemFileError if the values of a file do not fit together."""
