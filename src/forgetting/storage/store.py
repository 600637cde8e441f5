"""A file of finished cells of a long computation, which survive a kill and are not computed again."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from threading import RLock
from typing import Any

from forgetting.errors import ProblemFileError

__all__ = ["Entry", "Plan", "Store", "code_digest"]

MARK = 0x66677432  # "fgt2": the application id of SQLite files of this library
SCHEMA = """
CREATE TABLE IF NOT EXISTS cells (
    key TEXT PRIMARY KEY,            -- SHA-256 of the function, the cell and the seed
    place INTEGER NOT NULL,          -- in the list of cells of the study that came first
    function TEXT NOT NULL,          -- module:name
    cell TEXT NOT NULL,              -- JSON: what the function is called with
    seed TEXT NOT NULL,              -- a whole number, up to 128 bits
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    rows TEXT,                       -- JSON: what the function gave
    error TEXT,                      -- why the cell failed
    trace TEXT,                      -- where
    seconds REAL,                    -- that the cell took
    changed REAL,                    -- when the state changed, in seconds since 1970
    owner TEXT,                      -- the process that computes, or computed, the cell
    version TEXT                     -- of this library
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS states ON cells (state);
"""


@dataclass(frozen=True)
class Plan:
    """A cell to be computed, as the store knows it."""

    key: str
    place: int
    function: str
    cell: str
    seed: int


@dataclass(frozen=True)
class Entry:
    """What a store holds of a cell: see the columns of the table."""

    key: str
    place: int
    function: str
    cell: Any
    seed: int
    state: str
    rows: Any
    error: str | None
    trace: str | None
    seconds: float | None
    changed: float | None
    owner: str | None
    version: str | None


COLUMNS = "key, place, function, cell, seed, state, rows, error, trace, seconds, changed, owner, version"


class Store:
    """Cells and their results in an SQLite file, or in memory if the path is None.

    Every result is one transaction of a write-ahead log: a kill at any moment loses no cell that was finished. Several
    processes of one machine may use the file at the same time; `claim` gives a cell to one of them. A file on a network
    drive cannot be shared by several machines.

    >>> with Store(None) as store:
    ...     store.plan([Plan("a", 0, "module:function", '{"T": 3}', 7)])
    ...     store.claim("a"), store.claim("a")
    ...     store.finish("a", rows=[{"loss": 0.5}], seconds=0.1, version="1")
    ...     store.entries()[0].rows, store.counts()
    (True, False)
    ([{'loss': 0.5}], {'done': 1})
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.me = _process(os.getpid())
        self._lock = RLock()  # joblib asks for cells in threads of its own
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._base = sqlite3.connect(
                ":memory:" if path is None else path, timeout=60, isolation_level=None, check_same_thread=False
            )
        except (OSError, sqlite3.Error) as error:
            raise ProblemFileError(f"{path}: cannot be used as a store ({error})") from error
        try:
            with self._errors():
                self._open()
        except BaseException:
            self._base.close()
            raise

    def _open(self) -> None:
        """Create the table in a new file; raise if the file is a database of another program."""
        mark = self._base.execute("PRAGMA application_id").fetchone()[0]
        tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if mark != MARK and (mark or tables):
            raise ProblemFileError(f"{self.path}: a database of another program, and is kept")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last cells, a kill takes none
        if mark != MARK:
            with self._transaction():
                for statement in SCHEMA.split(";"):
                    self._base.execute(statement)
                self._base.execute(f"PRAGMA application_id = {MARK}")

    # ------------------------------------------------------------------------------------------------- to be computed

    def plan(self, plans: Sequence[Plan]) -> None:
        """Add the cells that are not there yet, as waiting."""
        rows = [(plan.key, plan.place, plan.function, plan.cell, str(plan.seed)) for plan in plans]
        with self._transaction():
            self._base.executemany(
                "INSERT OR IGNORE INTO cells (key, place, function, cell, seed) VALUES (?, ?, ?, ?, ?)", rows
            )

    def claim(self, key: str) -> bool:
        """Take a waiting cell, or a cell of a process that has ended; False if another process has the cell."""
        with self._transaction():
            row = self._base.execute("SELECT state, owner FROM cells WHERE key = ?", (key,)).fetchone()
            free = row is not None and (row[0] == "waiting" or (row[0] == "running" and not _alive(row[1])))
            if free:
                self._base.execute(
                    "UPDATE cells SET state = 'running', owner = ?, changed = ? WHERE key = ?",
                    (self.me, time.time(), key),
                )
        return free

    def finish(
        self,
        key: str,
        *,
        rows: Any = None,
        error: str | None = None,
        trace: str | None = None,
        seconds: float | None = None,
        version: str | None = None,
    ) -> None:
        """Record what a cell gave, or why the cell failed."""
        state = "done" if error is None else "failed"
        values = (state, json.dumps(rows), error, trace, seconds, time.time(), version, key)
        with self._errors():
            self._base.execute(
                "UPDATE cells SET state = ?, rows = ?, error = ?, trace = ?, seconds = ?, changed = ?, version = ? "
                "WHERE key = ?",
                values,
            )

    def release(self, *, failed: bool = False) -> None:
        """Give back the cells that this process has not finished; with `failed`, let all failed cells wait again."""
        with self._errors():
            self._base.execute(
                "UPDATE cells SET state = 'waiting', owner = NULL WHERE state = 'running' AND owner = ?", (self.me,)
            )
            if failed:
                self._base.execute("UPDATE cells SET state = 'waiting', error = NULL WHERE state = 'failed'")

    # ----------------------------------------------------------------------------------------------------- to look at

    def entries(self) -> list[Entry]:
        """All cells, in the order of the study."""
        with self._errors():
            found = self._base.execute(f"SELECT {COLUMNS} FROM cells ORDER BY place, key").fetchall()
            return [_entry(row) for row in found]

    def states(self) -> dict[str, str]:
        """The state of each cell by its key: waiting, running, done, failed. A dead process leaves cells waiting."""
        with self._errors():
            found = self._base.execute("SELECT key, state, owner FROM cells").fetchall()
        alive = {owner: _alive(owner) for owner in {owner for _, state, owner in found if state == "running"}}
        return {key: "waiting" if state == "running" and not alive[owner] else state for key, state, owner in found}

    def counts(self) -> dict[str, int]:
        """The number of cells in each state."""
        states = list(self.states().values())
        return {state: states.count(state) for state in ("waiting", "running", "done", "failed") if state in states}

    def __len__(self) -> int:
        with self._errors():
            return int(self._base.execute("SELECT count(*) FROM cells WHERE state = 'done'").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    def remove(self) -> None:
        """Close and remove the file, when the computation is finished."""
        self.close()
        if self.path is not None:
            for ending in ("", "-wal", "-shm"):
                Path(f"{self.path}{ending}").unlink(missing_ok=True)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._base.execute("ROLLBACK")
                raise
            self._base.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with self._lock:
                yield
        except (sqlite3.Error, ValueError, RecursionError, TypeError) as error:
            if isinstance(error, ProblemFileError):
                raise
            raise ProblemFileError(
                f"{self.path}: a damaged store, or a full disk ({error}); remove the file to begin again"
            ) from error


def _entry(row: tuple[Any, ...]) -> Entry:
    key, place, function, cell, seed, state, rows, *others = row
    cell, rows = json.loads(cell), None if rows is None else json.loads(rows)
    error, trace, seconds, changed, owner, version = others
    texts = [value for value in (key, function, error, trace, owner, version) if value is not None]
    numbers = [value for value in (seconds, changed) if value is not None]
    if (
        not isinstance(cell, dict)
        or not (rows is None or (isinstance(rows, list) and all(isinstance(one, dict) for one in rows)))
        or not all(isinstance(value, str) for value in texts)
        or not all(isinstance(value, (int, float)) for value in numbers)
    ):
        raise ValueError(f"cell {place} has values of the wrong type")
    return Entry(key, place, function, cell, int(seed), state, rows, error, trace, seconds, changed, owner, version)


def _process(pid: int) -> str:
    """A name of a process that no later process of this machine has: the machine, the number and the start."""
    try:
        with closing(open(f"/proc/{pid}/stat", encoding="utf-8")) as file:
            born = file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        born = ""  # a system without /proc: the number alone
    return f"{platform.node()} {pid} {born}"


def _alive(owner: str | None) -> bool:
    """Whether the process that has a cell still runs; processes of other machines count as running."""
    if owner is None:
        return False
    machine, _, rest = owner.partition(" ")
    pid, _, _ = rest.partition(" ")
    if machine != platform.node() or not pid.isdecimal():
        return True
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _process(int(pid)) == owner


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
