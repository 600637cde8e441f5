"""A file of finished parts of a long computation, which survive a kill or a power cut and are not computed again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from forgetting.errors import ProblemFileError

__all__ = ["Store", "code_digest"]

MARK = 0x66677431  # "fgt1": the application id of SQLite files of this library


class Store:
    """A dictionary in an SQLite file: keys are text, values are JSON data.

    Several processes may use the file at the same time.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as here:
    ...     with Store(Path(here, "parts.db")) as store:
    ...         store.put("a", {"loss": 0.5})
    ...     with Store(Path(here, "parts.db")) as store:
    ...         store.get("a"), store.get("b"), len(store)
    ({'loss': 0.5}, None, 1)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(path, timeout=60, isolation_level=None)
            with self._errors():
                self._open()
        except (OSError, sqlite3.Error) as error:
            raise ProblemFileError(f"{path}: cannot be used as a store ({error})") from error
        except BaseException:
            self._base.close()
            raise

    def _open(self) -> None:
        """Create the table in a new file; raise if the file is a database of another program."""
        self._base.execute("PRAGMA synchronous = FULL")  # a setting of the connection, which writes nothing
        mark = self._base.execute("PRAGMA application_id").fetchone()[0]
        tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if mark != MARK:
            if mark or tables:
                raise ProblemFileError(f"{self.path}: a database of another program, and is kept")
            self._base.execute(
                "CREATE TABLE IF NOT EXISTS parts (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID"
            )
            self._base.execute(f"PRAGMA application_id = {MARK}")

    def get(self, key: str) -> Any:
        """The value of a key; None if the key is not stored."""
        with self._errors():
            row = self._base.execute("SELECT value FROM parts WHERE key = ?", (key,)).fetchone()
            return None if row is None else json.loads(row[0])

    def put(self, key: str, value: Any) -> None:
        """Store a value; the value is on the disk when the method returns."""
        with self._errors():
            self._base.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (key, json.dumps(value)))

    def __len__(self) -> int:
        with self._errors():
            return int(self._base.execute("SELECT count(*) FROM parts").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def remove(self) -> None:
        """Close and remove the file, when the computation is finished."""
        self.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, RecursionError) as error:
            if isinstance(error, ProblemFileError):
                raise
            raise ProblemFileError(
                f"{self.path}: a damaged store, or a full disk ({error}); remove the file to begin again"
            ) from error


@cache
def code_digest() -> str:
    """The SHA-256 of the source of this package, so that parts computed by other versions are not used."""
    total = hashlib.sha256()

    def read(folder: Traversable) -> None:
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if entry.is_dir() and entry.name != "__pycache__":
                read(entry)
            elif entry.name.endswith(".py"):
                total.update(f"{entry.name}\0".encode() + entry.read_bytes())

    read(files("forgetting"))
    return total.hexdigest()
