"""Groups of rows, such as tasks: their names, the rows of each, and their order, by one rule for all sources."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from forgetting.core.arrays import IntArray, any_array, one_column
from forgetting.core.text import one_line, spelt_number
from forgetting.errors import ChoiceWarning, DataWarning, InvalidInputError

LISTED = 5  # names in a note
REMEDY = "rows that come task by task give any order"


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows, in their order.

    Where the rows of each group come one after another, groups have the order of the rows. Where rows are mixed, as
    after a shuffle, groups are sorted if all names are numbers, dates (2024-01-31), or numbers after the same words
    (task 2 before task 10); else they are in order of first appearance. Dates are 2024-01-31 or 31.01.2024: slashes are
    read in two ways.

    Attributes:
        names: of the groups.
        codes: for each row the number of its group.
        mixed: whether rows of different groups are mixed.
        sorted_by: "number" or "date" if they are, and groups were sorted; else "".
        moved: whether they were sorted into another order than that of first appearance.
    """

    names: list[str]
    codes: IntArray
    mixed: bool = False
    sorted_by: str = ""
    moved: bool = False

    @classmethod
    def in_order(cls, names: Sequence[str], codes: IntArray) -> Groups:
        """The groups in their order; `names` and `codes` number them by first appearance.

        >>> Groups.in_order(["task 10", "task 2"], np.array([0, 1, 0])).names
        ['task 2', 'task 10']
        >>> Groups.in_order(["task 10", "task 2"], np.array([0, 0, 1])).names
        ['task 10', 'task 2']
        """
        if not (codes[1:] < codes[:-1]).any():
            return cls(list(names), codes)
        for what, keys_of in KEYS:
            keys = keys_of(names)
            if keys is not None:
                places: Sequence[int] = range(len(names))
                if len(set(keys)) < len(keys):  # as 7 and 07
                    places = sorted(places, key=names.__getitem__)
                order = sorted(places, key=keys.__getitem__)
                moved = order != sorted(order)
                return cls([names[place] for place in order], np.argsort(order)[codes], True, what, moved)
        return cls(list(names), codes, True)

    @property
    def rows(self) -> list[IntArray]:
        """The row numbers of each group."""
        return np.split(np.argsort(self.codes, kind="stable"), np.cumsum(np.bincount(self.codes))[:-1])

    def note(self, called: Sequence[str] | None = None) -> tuple[str, ...]:
        """A note on the order of tasks, if there are several; `called` are names that the caller gave them.

        >>> groups_of(["b", "a", "b"]).note()
        ("tasks are in order of first appearance, since their rows are mixed and their names are neither numbers ...
        >>> groups_of([2, 1, 2]).note(["one", "two"])
        ("tasks are sorted by number, since their rows are mixed: '1' (called 'one'), '2' (called 'two')",)
        """
        if len(self.names) < 2:
            return ()
        words = "in the order of their rows"
        if self.sorted_by:
            words = f"sorted by {self.sorted_by}, since their rows are mixed"
        elif self.mixed:
            names = "their names are neither numbers nor dates such as 2024-01-31 or 31.01.2024"
            words = f"in order of first appearance, since their rows are mixed and {names}"
        named = [repr(one_line(name, 40)) for name in self.names[:LISTED]]
        if called is not None and list(called) != self.names:
            named = [f"{name} (called {one_line(str(own), 40)!r})" for name, own in zip(named, called, strict=False)]
        return (f"tasks are {words}: {', '.join(named)}{', ...' if len(self.names) > LISTED else ''}",)

    def decided(self, called: Sequence[str] | None = None, remedy: str = REMEDY) -> tuple[str, ...]:
        """The note, where the order is neither that of rows which come task by task nor that in which they appear.

        `remedy` is how the caller decides otherwise.

        >>> groups_of([2, 1, 2]).decided()
        ("tasks are sorted by number, since their rows are mixed: '1', '2'; rows that come task by task give ...
        >>> groups_of([1, 2, 1]).decided(), groups_of([2, 2, 1]).decided()
        ((), ())
        """
        if not self.mixed or (self.sorted_by and not self.moved):
            return ()
        return tuple(f"{note}; {remedy}" for note in self.note(called))

    @property
    def doubts(self) -> tuple[str, ...]:
        """A doubt about two groups whose names spell one number.

        >>> groups_of(["0", "1", "0.0"]).doubts
        ("tasks '0' and '0.0' spell one number, but are two tasks; if they are one, spell them alike",)
        """
        known: dict[Any, str] = {}
        for name, key in zip(self.names, _numbers(self.names) or (), strict=False):
            if key in known:
                pair = " and ".join(repr(one_line(word, 40)) for word in sorted([known[key], name], key=len))
                return (f"tasks {pair} spell one number, but are two tasks; if they are one, spell them alike",)
            known[key] = name
        return ()

    def told(self, called: Sequence[str] | None = None, stacklevel: int = 2) -> tuple[str, ...]:
        """The notes on the groups, after a warning of what was decided and what may be a mistake.

        With `stacklevel` 1 the warning points to the caller of this method, with 2 to the caller of that, and so on.
        """
        for words in self.decided(called):
            warnings.warn(words, ChoiceWarning, stacklevel=stacklevel + 1)
        for words in self.doubts:
            warnings.warn(words, DataWarning, stacklevel=stacklevel + 1)
        return (*self.doubts, *self.note(called))


def _numbers(names: Sequence[str]) -> list[Any] | None:
    """The numbers that the names spell; None if a name spells none."""
    try:
        keys = [spelt_number(name) for name in names]
    except ValueError:
        return None
    return keys if all(key == key for key in keys) else None


def _dates(names: Sequence[str]) -> list[Any] | None:
    """The times that the names spell, as 2024-01, 2024-01-31 (12:00) or 31.01.2024; None if a name spells none."""
    try:
        times = [_time(name) for name in names]
    except ValueError:
        return None
    return times if len({time.tzinfo is None for time in times}) == 1 else None


def _time(name: str) -> datetime:
    if re.fullmatch(r"\d{1,2}\.\d{1,2}\.\d{4}", name):
        return datetime.strptime(name, "%d.%m.%Y")
    return datetime.fromisoformat(f"{name}-01" if re.fullmatch(r"\d{4}-\d\d", name) else name)


def _numbered(names: Sequence[str]) -> list[Any] | None:
    """The numbers at the end of the names; None unless the same words come before all of them."""
    ends = [re.fullmatch(r"(.*?)([0-9]+)", name, re.DOTALL) for name in names]
    if len({end and end[1] for end in ends}) > 1:
        return None
    return _numbers([end[2] for end in ends if end]) if all(ends) else None


Keys = Callable[[Sequence[str]], list[Any] | None]

#: what groups may be sorted by, and the keys; None for names that have none
KEYS: list[tuple[str, Keys]] = [("number", _numbers), ("date", _dates), ("number", _numbered)]


def groups_of(names: Iterable[Hashable]) -> Groups:
    """The groups of rows, given the group of each row.

    >>> groups_of(["b", "a", "b"]).codes.tolist()
    [0, 1, 0]
    """
    listed = list(names)
    place = {name: number for number, name in enumerate(dict.fromkeys(listed))}
    codes = np.fromiter((place[name] for name in listed), np.int64, len(listed))
    return Groups.in_order([str(name) for name in place], codes)


def group_codes(groups: Any, rows: int, what: str = "groups") -> Groups:
    """The groups of rows, given an array with the group of each row.

    >>> group_codes(np.array([10, 9, 10]), 3).names
    ['9', '10']
    """
    owner = one_column(any_array(groups, what))
    if owner.shape != (rows,):
        raise InvalidInputError(f"{what}: expected one entry for each of {rows} rows, got shape {owner.shape}")
    for row, name in enumerate(owner.tolist() if owner.dtype.kind in "fO" else []):
        if name is None or name != name:
            raise InvalidInputError(f"{what}: row {row} belongs to no group ({name})")
    if owner.dtype.kind == "O":  # np.unique sorts, and a mix of strings and numbers cannot be sorted
        try:
            return groups_of(owner.tolist())
        except TypeError:
            raise InvalidInputError(f"{what}: expected words or numbers, got {owner.tolist()[0]!r:.60}") from None
    distinct, first, group_of_row = np.unique(owner, return_index=True, return_inverse=True)
    order = np.argsort(first)
    named = np.datetime_as_string(distinct, unit="auto") if distinct.dtype.kind == "M" else distinct
    return Groups.in_order([str(name) for name in named[order].tolist()], np.argsort(order)[group_of_row])
