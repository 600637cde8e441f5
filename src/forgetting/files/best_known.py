"""Halls of fame: for each question the best value that is known, in a file, with what reaches it and what proves it.

Two halls work in this way: the largest ratio of each statement (`forgetting.theory.record`), and the worst tasks of
each size (`forgetting.tasks.worst_tasks`). A hall is a folder. Each of its entries (`BestKnown`) is a JSON file with a
SHA-256 of all that it says. What is no JSON, or too large for it, is a file beside the entry under the same name with
another ending, of which the entry has the SHA-256 (`beside`). An entry is replaced only by a larger one (`keep`), and
whoever doubts a value computes it again (`confirmed`).
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from forgetting.core.arrays import as_path
from forgetting.errors import ProblemFileError
from forgetting.files.arrays import open_regular
from forgetting.files.atomic import as_file_error
from forgetting.files.json_and_toml import of_format, write_json
from forgetting.files.records import made

Best = TypeVar("Best", bound="BestKnown")
LARGER = 1e-6  # relative: by how much a value must exceed what is known to replace it


def larger(value: float | None, known: float | None, by: float = LARGER) -> bool:
    """Whether a value replaces what is known: it exceeds the known value by more than a relative `by`.

    >>> larger(1.0, None), larger(1.0, 0.9), larger(1.0, 1.0 - 1e-9), larger(None, 0.0)
    (True, True, False, False)
    """
    return value is not None and (known is None or value > known * (1 + by))


def confirmed(where: Path | str, name: str, stated: float, computed: float, allowed: float) -> float:
    """The computed value, if it is the stated one up to the allowed difference; an error names the file and the value.

    >>> confirmed("mine.json", "the value", 0.5, 0.6, 1e-9)
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: mine.json: the value is recorded as 0.5, and computing it again gives 0.6; ...
    """
    if not abs(computed - stated) <= allowed:  # NaN is not close
        raise ProblemFileError(
            f"{where}: {name} is recorded as {stated:.12g}, and computing it again gives {computed:.12g}; correct the "
            "record, or report the difference"
        )
    return computed


class BestKnown(ABC):
    """An entry of a hall of fame; classes of entries are frozen dataclasses, and their compared fields are in files.

    A field whose metadata have "kept as" is in the file under that name.

    Attributes:
        _FORMAT: what the 'format' entry of a file says.
        _WHAT: the entry in words, for errors.
    """

    _FORMAT: ClassVar[str]
    _WHAT: ClassVar[str]

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its file, without the ending."""

    @property
    @abstractmethod
    def _reached(self) -> float | None:
        """The value that counts; None for an entry that only says what cannot be reached."""

    @classmethod
    @abstractmethod
    def _place(cls, path: Path) -> dict[str, Any]:
        """The fields that are not in the file, of an entry that was read from it."""

    def to_json(self) -> str:
        """The text of the file: numbers as the shortest decimals that give the same float64, and a SHA-256 of all."""
        return sealed(self._FORMAT, {name: getattr(self, field) for name, field in _kept_fields(type(self)).items()})

    @classmethod
    def from_json(cls, text: str | bytes, path: Path | None = None) -> Self:
        """The entry that `to_json` wrote; an error says what is wrong with it."""
        data, names = unsealed(text, cls._FORMAT), _kept_fields(cls)
        odd = sorted({*names} ^ {*data})
        if odd:
            raise ProblemFileError(f"{odd[0]!r:.60} is {'missing' if odd[0] in names else 'unknown'}")
        made_of: Any = made(cls, {names[name]: value for name, value in data.items()}, "entry")
        entry: Self = made_of if path is None else replace(made_of, **cls._place(as_path(path)))
        return entry

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Self:
        """One entry; an error names the file and what is wrong with it."""
        path = as_path(path)
        with open_regular(path) as handle:
            text = handle.read()
        try:
            return cls.from_json(text, path)
        except ProblemFileError as error:
            raise ProblemFileError(f"{path}: damaged {cls._WHAT} ({error})") from error

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, atomically; a file that is no entry is not replaced."""
        write_json(as_path(path), self.to_json(), self._FORMAT)

    def _instead_of(self, old: Self, by: float) -> Self:
        """The better of two entries: the old one, unless this one is larger by a relative `by`."""
        return self if larger(self._reached, old._reached, by) else old


def keep(entry: Best, folder: Path, old: Best | None = None, by: float = LARGER) -> Best | None:
    """Write an entry into a folder if it is better than an old one; what was written, or None."""
    best: Best = entry if old is None else entry._instead_of(old, by)
    if best is old:
        return None
    path = folder / f"{best.name}.json"
    with as_file_error(path):
        folder.mkdir(parents=True, exist_ok=True)
    best.save(path)
    written: Any = best
    made: Best = replace(written, **best._place(path))
    return made


def _kept_fields(cls: Any) -> dict[str, str]:
    """The fields that are in a file, by their names there."""
    return {field.metadata.get("kept as", field.name): field.name for field in fields(cls) if field.compare}


def beside(path: Path, ending: str, sha256: str, name: str) -> Path:
    """The file of this ending beside an entry; an error unless it is the one whose SHA-256 the entry has."""
    other = path.with_suffix(ending)
    check_digest(other, sha256, name)
    return other


def digest_of(content: bytes) -> str:
    """The SHA-256 of what a file contains."""
    return hashlib.sha256(content).hexdigest()


def check_digest(path: Path, sha256: str, name: str) -> None:
    """Raise unless a file is the one whose SHA-256 was recorded as that of `name`."""
    with open_regular(path) as handle:
        digest = digest_of(handle.read())
    if digest != sha256:
        raise ProblemFileError(
            f"{path}: damaged: this is not {name} (its SHA-256 is {digest[:12]}..., not {sha256[:12]}...); replace "
            "the file by an undamaged copy"
        )


def sealed(kind: str, data: dict[str, Any]) -> str:
    """A JSON text that names its format, with a SHA-256 of all that it says.

    >>> unsealed(sealed("forgetting/x/1", {"a": 0.1}), "forgetting/x/1")
    {'a': 0.1}
    """
    data = {"format": kind, **data}
    return json.dumps({"sha256": seal_of(data), **data}, separators=(",", ":"))


def unsealed(text: str | bytes, kind: str) -> dict[str, Any]:
    """The data that `sealed` was given; an error if the text was changed, or has another format.

    >>> unsealed(sealed("forgetting/x/1", {"a": 1}).replace("1}", "2}"), "forgetting/x/1")
    Traceback (most recent call last):
    forgetting.errors.ProblemFileError: its content was changed: the SHA-256 does not fit
    """
    data = of_format(text, kind)
    if data.pop("sha256", None) != seal_of({"format": kind, **data}):
        raise ProblemFileError("its content was changed: the SHA-256 does not fit")
    return data


def seal_of(data: dict[str, Any]) -> str:
    """The SHA-256 of data: of their JSON text, by name."""
    text = json.dumps({name: data[name] for name in sorted(data)}, separators=(",", ":"))
    return digest_of(text.encode())
