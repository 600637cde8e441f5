"""The decorators of compiled functions, and the files that keep machine code between processes.

A file holds one function, compiled for one signature and processor. The file begins with the SHA-256 of its key and its
data; the key contains the sources of the function, the version of numba and its settings. A file that is stale,
truncated or changed does not match its checksum: the file is not loaded, and compiling the function replaces it. Files
are written under a temporary name and renamed, so that a reader never sees a half-written file. If no file can be
written, all results stay the same, and a `NoCacheWarning` is given once.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Timer
from types import FunctionType
from typing import Any, TypeVar, cast
from uuid import uuid4

import numba
import numpy as np
from numba.core import caching, serialize
from numba.core.compiler import CompileResult
from numba.extending import register_jitable
from numba.misc.appdirs import AppDirs

from forgetting.errors import NoCacheWarning

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).parent.parent
NAME = f"forgetting-{hashlib.sha256(os.fsencode(PACKAGE)).hexdigest()[:16]}"  # folder within a shared cache folder
REMEDY = "set NUMBA_CACHE_DIR to a folder that can be written"
DIGEST = hashlib.sha256().digest_size
PATIENCE = 1.0  # seconds of compiling after which a person is told
WAITING = "forgetting: compiling for this machine, a few seconds, and only after an installation"


def compiled(function: F) -> F:
    """Compile a function when it is first called; every operation is done as it is written."""
    return _compiled(function, False)


def compiled_fast(function: F) -> F:
    """Compile a function when it is first called; sums may be reassociated and contracted, which makes them faster."""
    return _compiled(function, {"reassoc", "contract", "nsz"})


def _compiled(function: F, fastmath: bool | set[str]) -> F:
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # compiled code does not warn of overflow either
    dispatcher = numba.njit(nogil=True, fastmath=fastmath, no_cfunc_wrapper=True, error_model="numpy")(function)
    dispatcher._cache = Files(function)
    return cast(F, dispatcher)


def inlined(function: F) -> F:
    """Mark a function that stays plain Python for Python callers and is compiled together with compiled callers."""
    return cast(F, register_jitable(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def folders() -> list[Path]:
    """Folders that are searched for compiled code; new files go into the first writable one.

    The folder is NUMBA_CACHE_DIR if that is set; else the folders are the package's own and the user's cache.
    """
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR).absolute() / NAME]
    user = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    return [PACKAGE / "__pycache__", *([user / NAME] if user.is_absolute() else [])]  # "~" where there is no home


def watched() -> bool:
    """Whether a person reads what is written to stderr: in a terminal or a notebook."""
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def kept_in() -> str:
    """The folder in which compiled code is kept, or the reasons why none can be used, as text for `forgetting doctor`.

    Each folder is tried by writing a file of 1 MiB (no compiled function needs more) and removing the file.
    """
    trial, reasons = f"trial.{uuid4().hex}", []
    for folder in folders():
        try:
            _write(folder / trial, bytes(2**20))
            (folder / trial).unlink()
            return f"{folder}, writable"
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
    return f"not kept ({'; '.join(reasons)}): {REMEDY}"


class Files(caching.NullCache):  # type: ignore[misc]
    """The cache files of one function, with the methods that numba calls."""

    warned = False  # whether a `NoCacheWarning` was given in this process
    compiling = 0  # functions that this process compiles now
    announced = False  # whether this process says after a second, or has said, that functions are being compiled

    def __init__(self, function: Any) -> None:
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function for this signature from a file; None if no file has it."""
        target_context.refresh()
        name, key = self._name_and_key(sig, target_context.codegen())
        for folder in folders():
            try:
                content = (folder / name).read_bytes()
                if content[:DIGEST] == _checksum(key, content[DIGEST:]):
                    return CompileResult._rebuild(target_context, *pickle.loads(content[DIGEST:]))
            except Exception:  # any unreadable file: the function is compiled instead
                continue
        Files.compiling += 1
        if not Files.announced and watched():
            Files.announced = True
            timer = Timer(PATIENCE, Files._announce)
            timer.daemon = True
            timer.start()
        return None

    @classmethod
    def _announce(cls) -> None:
        """Say that functions are being compiled, if they still are."""
        cls.announced = cls.compiling > 0
        if cls.announced:
            print(WAITING, file=sys.stderr, flush=True)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write the compiled function to a file; warn once per process if no folder can be written."""
        Files.compiling -= 1
        if data.library.has_dynamic_globals:  # such code contains addresses of this process
            return
        name, key = self._name_and_key(sig, data.codegen)
        content = serialize.dumps(data._reduce())
        reasons = []
        for folder in folders():
            try:
                return _write(folder / name, _checksum(key, content) + content)
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
        if not Files.warned:
            Files.warned = True
            nowhere = f"compiled code cannot be kept ({'; '.join(reasons)}), so that every process compiles again"
            warnings.warn(f"{nowhere}, for up to a minute: {REMEDY}", NoCacheWarning, stacklevel=1)

    def _name_and_key(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """The file name for a signature, and the key that goes into the checksum of the file."""
        ignored = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DEBUG_CACHE")  # these do not change machine code
        settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in ignored)
        variant = repr((str(sig), codegen.magic_tuple(), settings)).encode()
        title = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        name = f"{title}-{sys.implementation.cache_tag}-{hashlib.sha256(variant).hexdigest()[:16]}.nbc"
        return name, variant + numba.__version__.encode() + _sources(self.function)


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.sha256(key + data).digest()


def _write(path: Path, content: bytes) -> None:
    """Write a file atomically: under a temporary name, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.{uuid4().hex}")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


@cache
def _sources(function: Any) -> bytes:
    """A checksum of the source files of a function and of all functions that it calls, and of the constants they use.

    numba's own cache checks the file of the function only, and would miss changes in the functions that it calls.
    """
    functions, parts = [function], set()
    for current in functions:  # the loop also visits the functions that are appended below
        parts.add(_file(current.__code__.co_filename) or current.__code__.co_code)
        for name in current.__code__.co_names:
            value = current.__globals__.get(name)
            value = getattr(value, "py_func", value)
            if isinstance(value, FunctionType) and value not in functions:
                functions.append(value)
            elif isinstance(value, bool | int | float | str | tuple):
                parts.add(f"{name} = {value!r}".encode())
    return hashlib.sha256(b"".join(sorted(parts))).digest()


@cache
def _file(name: str) -> bytes:
    """A checksum of a file; empty if the file cannot be read, as for code in a zip archive or typed at a prompt."""
    try:
        return hashlib.sha256(Path(name).read_bytes()).digest()
    except OSError:
        return b""
