"""A file of finished cells of a long computation, which survive a kill and are not computed again.

`Owner` says which process computes a cell, and `is_alive` whether that process still runs.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import count
from pathlib import Path
from threading import RLock
from typing import Any

from forgetting.core.text import visible
from forgetting.errors import ProblemFileError
from forgetting.files.atomic import require_place

BEAT = 60.0  # seconds between two signs of life of a process
LEASE = 600.0  # seconds without a sign of life after which a process of another machine counts as dead
_numbers = count()
_here: set[str] = set()  # the owners of this process


class Owner:
    """A user of a store, by a name that no other has: the machine, the process, its start, and a number within it.

    >>> owner = Owner()
    >>> is_alive(owner.name)
    True
    >>> owner.gone()
    >>> is_alive(owner.name)
    False
    """

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.name = f"{platform.node()} {self.pid} {_born(self.pid)} {next(_numbers)}"
        _here.add(self.name)

    def gone(self) -> None:
        """The owner needs its cells no more."""
        _here.discard(self.name)


def is_alive(name: str, seen: float | None = None) -> bool:
    """Whether the owner of this name still runs; on another machine or on Windows, whether it was seen lately."""
    machine, pid, born, _ = ("    " + name).rsplit(" ", 3)
    # where other systems only answer, Windows sends Ctrl-C to the process
    if machine.strip() != platform.node() or not pid.isdecimal() or (os.name == "nt" and int(pid) != os.getpid()):
        return seen is not None and time.time() - seen < LEASE
    if int(pid) == os.getpid():
        return name in _here
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        pass  # a process of another user
    except (ProcessLookupError, OverflowError):
        return False
    return _born(int(pid)) == born


def _born(pid: int) -> str:
    """When the process began, in ticks of the machine; empty on systems without /proc, and for a process that ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *fields = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" or len(fields) < 19 else fields[18]


MARK = 0x66677432  # "fgt2": the application id of SQLite files of this library
STATES = ("waiting", "running", "done", "failed")
SCHEMA = """
CREATE TABLE cells (
    place INTEGER NOT NULL,          -- in the list of cells of the study that came first
    key TEXT NOT NULL UNIQUE,        -- SHA-256 of the function, the cell and the seed
    function TEXT NOT NULL,          -- module:name
    cell TEXT NOT NULL,              -- JSON: what the function is called with
    seed TEXT NOT NULL,              -- a whole number, up to 128 bits
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    rows TEXT,                       -- JSON: what the function gave
    error TEXT,                      -- why the cell failed
    trace TEXT,                      -- where
    seconds REAL,                    -- that the cell took
    version TEXT,                    -- of this library
    digest TEXT,                     -- of a finished cell: SHA-256 of the columns above, since SQLite checks none
    changed REAL,                    -- when the state changed, in seconds since 1970
    owner TEXT                       -- the process that computes, or computed, the cell
);
CREATE TABLE owners (
    name TEXT PRIMARY KEY,           -- a process, as in `owner` above
    seen REAL NOT NULL               -- when the process was last alive, in seconds since 1970
);
"""
FUNCTIONS = """
CREATE TABLE IF NOT EXISTS functions (
    stated TEXT PRIMARY KEY,         -- the name in a TOML file
    name TEXT NOT NULL,              -- as in `function` above
    digest TEXT NOT NULL             -- of the source, when it was last run: without it nobody knows the keys of cells
)
"""
PROTECTED = "place, key, function, cell, seed, state, rows, error, trace, seconds, version"
CREATION = 1.0  # seconds that another process may take to create the tables in a new file
MOST_TEXT = 20_000  # characters of an error that are kept


class NoStoreError(ProblemFileError):
    """The error if a file that is only looked at is empty; the file stays so."""


@dataclass(frozen=True)
class Plan:
    """A cell to be computed, as the store knows it."""

    key: str
    place: int
    function: str
    cell: str
    seed: int


@dataclass(frozen=True)
class StoredCell:
    """A cell as the store holds it: see the columns of the table."""

    place: int
    key: str
    function: str
    cell: Any
    seed: int
    state: str
    rows: Any
    error: str | None
    trace: str | None
    seconds: float | None
    version: str | None
    changed: float | None
    owner: str | None


class Store:
    """Cells and their results in an SQLite file, or in memory if the path is None.

    Every result is one transaction of a write-ahead log: a kill at any moment loses no cell that was finished. Several
    processes of one machine may use the file at the same time; `claim` gives a cell to one of them. A file on a network
    drive may be used by several machines one after the other, not at the same time. A damaged file raises an error: a
    digest of each result is kept with the result. With `create=False`, a file that is not a store is left as it is.

    >>> with Store(None) as store:
    ...     store.plan([Plan("a", 0, "module:function", '{"T": 3}', 7)])
    ...     store.claim("a"), store.claim("a")
    ...     store.finish("a", rows='[{"loss": 0.5}]', seconds=0.1, version="1")
    ...     store.entries()[0].rows, store.counts()
    (True, False)
    ([{'loss': 0.5}], {'done': 1})
    """

    def __init__(self, path: Path | None, *, create: bool = True) -> None:
        self.path = path
        self.me = Owner()
        self._lock = RLock()  # joblib asks for cells in threads of its own
        if path is not None and create and not os.path.lexists(path):
            require_place(path)
        try:
            self._base = _connected(path)
        except (OSError, sqlite3.Error, ValueError) as error:
            raise ProblemFileError(f"{path}: cannot be used as a store ({error})") from error
        try:
            with self._errors():
                self._open(create)
        except BaseException:
            self.close()
            raise
        self._file = None if path is None else _file_number(path)

    def _open(self, create: bool) -> None:
        """Create the tables in a new file; raise if the file is a database of another program, or is only looked at."""
        deadline = time.monotonic() + CREATION
        while not create and not self._is_ours():
            time.sleep(0.02)
            if time.monotonic() > deadline:
                raise NoStoreError(f"{self.path}: empty, and no store of a study; the file is left as it is")
        if create and not self._is_ours():
            self._wal()
            with self._transaction():  # another process may have been faster
                if not self._is_ours(begin=False):
                    for statement in SCHEMA.split(";"):
                        self._base.execute(statement)
                    self._base.execute(f"PRAGMA application_id = {MARK}")
        self._base.execute("PRAGMA synchronous = NORMAL")  # a power cut may take the last cells, a kill takes none

    def _is_ours(self, *, begin: bool = True) -> bool:
        """Whether the tables are there; raise if others are. One transaction: both looks are at the same moment."""
        if begin:
            self._base.execute("BEGIN")
        try:
            mark = self._base.execute("PRAGMA application_id").fetchone()[0]
            tables = {name for (name,) in self._base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        finally:
            if begin and self._base.in_transaction:
                self._base.execute("COMMIT")
        if mark == MARK and tables >= {"cells", "owners"}:
            return True
        if mark or tables:
            raise ProblemFileError(f"{self.path}: a database of another program, and is kept; name another file")
        return False

    def _wal(self) -> None:
        """Use a write-ahead log. SQLite does not wait for others here, so that this loop does."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self._base.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    # ------------------------------------------------------------------------------------------------- to be computed

    def plan(self, plans: Sequence[Plan]) -> None:
        """Add the cells that are not there yet, as waiting."""
        rows = ((plan.place, plan.key, plan.function, plan.cell, str(plan.seed)) for plan in plans)
        with self._transaction():
            self._base.executemany(
                "INSERT OR IGNORE INTO cells (place, key, function, cell, seed) VALUES (?, ?, ?, ?, ?)", rows
            )

    def keep_function(self, stated: str, name: str, digest: str) -> None:
        """Keep the function that a name in a TOML file stands for: its name, and its digest as it is run now."""
        with self._transaction():
            self._base.execute(FUNCTIONS)  # older files have no such table
            self._base.execute("INSERT OR REPLACE INTO functions VALUES (?, ?, ?)", (stated, name, digest))

    def function(self, stated: str) -> tuple[str, str] | None:
        """The name and the digest of the function last run under this name of a TOML file, if any."""
        with self._errors():
            if not self._base.execute("SELECT 1 FROM sqlite_master WHERE name = 'functions'").fetchone():
                return None
            row = self._base.execute("SELECT name, digest FROM functions WHERE stated = ?", (stated,)).fetchone()
            if row is not None and not all(isinstance(value, str) for value in row):
                raise ValueError(f"the function {stated!r:.60} has values of the wrong type")
        return row  # type: ignore[no-any-return]

    def claim(self, key: str) -> bool:
        """Take a waiting cell, or a cell of a process that has ended; False if another process has the cell."""
        take = "UPDATE cells SET state = 'running', owner = ?, changed = ? WHERE key = ? AND "  # one of two succeeds
        values = (self.me.name, time.time(), key)
        with self._errors():
            if self._base.execute(f"{take} state = 'waiting'", values).rowcount == 1:
                return True
            row = self._base.execute("SELECT owner FROM cells WHERE key = ? AND state = 'running'", (key,)).fetchone()
            if row is None or self._is_alive(row[0]):
                return False
            return self._base.execute(f"{take} state = 'running' AND owner IS ?", (*values, row[0])).rowcount == 1

    def finish(
        self,
        key: str,
        *,
        rows: str | None = None,
        error: str | None = None,
        trace: str | None = None,
        seconds: float | None = None,
        version: str | None = None,
    ) -> None:
        """Record what a cell gave, as JSON, or why the cell failed."""
        state = "done" if error is None else "failed"
        values = (state, rows, _kept(error), _kept(trace), None if seconds is None else float(seconds), version)
        with self._errors():
            self._check_file()
            changed = self._base.execute(
                "UPDATE cells SET (state, rows, error, trace, seconds, version) = (?1, ?2, ?3, ?4, ?5, ?6), "
                "changed = ?7, digest = digest(place, key, function, cell, seed, ?1, ?2, ?3, ?4, ?5, ?6) "
                "WHERE key = ?8",
                (*values, time.time(), key),
            ).rowcount
        if changed != 1:
            raise ProblemFileError(f"{self.path}: the cell {key} is gone; another program changed the store")

    def _check_file(self) -> None:
        """Raise if the file was removed or replaced: SQLite goes on in the old one, which nobody finds again."""
        if self.path is not None and _file_number(self.path) != self._file:
            raise ProblemFileError(f"{self.path}: removed or replaced while cells were computed; run the study again")

    def release(self, failed: Iterable[str] = ()) -> None:
        """Give back the cells that this process has not finished, and let these cells wait again if they failed."""
        with self._transaction():
            self._base.execute(
                "UPDATE cells SET state = 'waiting', owner = NULL WHERE state = 'running' AND owner = ?",
                (self.me.name,),
            )
            self._base.executemany(
                "UPDATE cells SET state = 'waiting', error = NULL, trace = NULL, rows = NULL, digest = NULL "
                "WHERE key = ? AND state = 'failed'",
                ((key,) for key in failed),
            )

    def beat(self) -> None:
        """Tell other machines that this process is alive."""
        with self._errors():
            self._base.execute("INSERT OR REPLACE INTO owners VALUES (?, ?)", (self.me.name, time.time()))

    def _is_alive(self, owner: str | None) -> bool:
        if owner is None:
            return False
        row = self._base.execute("SELECT seen FROM owners WHERE name = ?", (owner,)).fetchone()
        return is_alive(owner, None if row is None else row[0])

    def forget(self, keys: Sequence[str]) -> None:
        """Let finished cells wait again."""
        with self._transaction():
            self._base.executemany(
                "UPDATE cells SET state = 'waiting', rows = NULL, error = NULL, trace = NULL, digest = NULL "
                "WHERE key = ? AND state IN ('done', 'failed')",
                [(key,) for key in keys],
            )

    # ----------------------------------------------------------------------------------------------------- to look at

    def entries(self) -> list[StoredCell]:
        """All cells, in the order of the study."""
        with self._errors():
            found = self._base.execute(f"SELECT {PROTECTED}, changed, owner, digest FROM cells ORDER BY place, key")
            return [self._entry(row) for row in found]

    def _entry(self, row: tuple[Any, ...]) -> StoredCell:
        place, key, function, cell, seed, state, rows, error, trace, seconds, version, changed, owner, digest = row
        if state not in STATES or (state in ("done", "failed") and digest != _digest(*row[:11])):
            raise ValueError(f"the digest of cell {place} is wrong")
        values = json.loads(cell)
        results = None if rows is None else json.loads(rows)
        listed = [{}] if results is None else results  # a digest can be forged
        texts, numbers = (error, trace, version, owner), (place, seconds, changed)
        fits = isinstance(values, dict) and isinstance(key, str) and isinstance(function, str)
        fits = fits and isinstance(listed, list) and all(isinstance(part, dict) for part in listed)
        fits = fits and all(text is None or isinstance(text, str) for text in texts)
        fits = fits and all(number is None or isinstance(number, float | int) for number in numbers)
        if not fits or (results is None) == (state == "done"):
            raise ValueError(f"cell {place} has values of the wrong type")
        return StoredCell(place, key, function, values, int(seed), state, results, *row[7:13])

    def states_of(self, keys: Sequence[str]) -> list[str]:
        """The states of planned cells. An index of SQLite may know a key that the table has lost by damage."""
        states = self.states()
        lost = next((key for key in keys if key not in states), None)
        if lost is not None:
            raise ProblemFileError(
                f"{self.path}: a damaged store; remove the file to begin again (the cell with the key {lost} is lost)"
            )
        return [states[key] for key in keys]

    def states(self) -> dict[str, str]:
        """The state of each cell by its key: waiting, running, done, failed. A dead process leaves cells waiting."""
        with self._errors():
            cells = self._base.execute("SELECT key, state, owner FROM cells").fetchall()
            odd = next((state for _, state, _ in cells if state not in STATES), None)
            if odd is not None:
                raise ValueError(f"a cell has the state {odd!r:.40}")
            alive = {name: self._is_alive(name) for name in {name for _, state, name in cells if state == "running"}}
        return {key: "waiting" if state == "running" and not alive[owner] else state for key, state, owner in cells}

    def endings(self) -> dict[str, tuple[float, str | None]]:
        """When each finished cell was finished, in seconds since 1970, and by which version of this library."""
        with self._errors():
            cells = self._base.execute("SELECT key, changed, version FROM cells WHERE state IN ('done', 'failed')")
            return {key: (float(changed), None if version is None else str(version)) for key, changed, version in cells}

    def counts(self) -> dict[str, int]:
        """The number of cells in each state."""
        states = list(self.states().values())
        return {state: states.count(state) for state in STATES if state in states}

    def __len__(self) -> int:
        with self._errors():
            return int(self._base.execute("SELECT count(*) FROM cells WHERE state = 'done'").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        self.me.gone()
        with self._lock, suppress(sqlite3.Error):  # what is finished is in the file, also if the log stays beside it
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
            if self._base.in_transaction:  # left open by an interrupt
                self._base.execute("ROLLBACK")
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:  # a full disk ends the transaction by itself
                    self._base.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        if os.getpid() != self.me.pid:
            raise ProblemFileError(f"{self.path}: opened by process {self.me.pid}, and used in a fork of that process")
        try:
            with self._lock:
                yield
        except ProblemFileError:
            raise
        except (sqlite3.Error, ValueError, RecursionError, TypeError, OverflowError) as error:
            raise ProblemFileError(f"{self.path}: {_why(error)} ({error})") from error


def _connected(path: Path | None) -> sqlite3.Connection:
    """A connection; to a file in a folder without permission to write, one that reads."""
    where, uri = ":memory:" if path is None else str(path), False
    if path is not None and path.is_file() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        logged = Path(f"{path}-wal").exists()  # without a log nobody writes, and SQLite needs no file beside this one
        where, uri = f"{path.resolve().as_uri()}?{'mode=ro' if logged else 'immutable=1'}", True
    base = sqlite3.connect(where, timeout=60, isolation_level=None, check_same_thread=False, uri=uri)
    base.create_function("digest", 11, _digest, deterministic=True)
    return base


def _file_number(path: Path) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _why(error: Exception) -> str:
    """The meaning of an error of SQLite for the user."""
    words = str(error)
    if "full" in words or "disk I/O" in words:
        return "the disk is full or failed; all finished cells are kept, so run the study again when there is space"
    if "readonly" in words or "read-only" in words or "unable to open" in words:
        return "the store or its folder cannot be written"
    if "locked" in words or "busy" in words:
        return "another process holds the store for more than 60 s"
    if "not a database" in words:
        return "not a store of this library, and is kept; name another file"
    return "a damaged store; remove the file to begin again"


def _digest(*values: Any) -> str:
    return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _kept(words: str | None) -> str | None:
    """The text without characters that SQLite or a terminal cannot take, and not longer than the limit."""
    if words is None:
        return None
    half = MOST_TEXT // 2
    return visible(words if len(words) <= MOST_TEXT else f"{words[:half]}\n[...]\n{words[-half:]}")


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
