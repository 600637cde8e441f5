"""The decorators of all compiled code, and the files in which machine code is kept between processes.

A file holds one function, compiled for one signature and processor. It begins with a SHA-256 of its key and its data,
and the key names the sources that went in, the version of numba and its settings. A file that is stale, truncated or
changed does not fit its checksum, so that it is never loaded, and compiling the function replaces it. Files are written
aside and renamed: processes that write at the same time replace whole files. Where no file can be written, everything
is computed all the same, and a `NoCacheWarning` says so once.
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

__all__ = ["compiled", "compiled_fast", "folders", "inlined", "kept_in"]

F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).parent
NAME = f"forgetting-{hashlib.sha256(os.fsencode(PACKAGE)).hexdigest()[:16]}"  # of a folder that others use too
NO_MATTER = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "NUMBA_DEBUG_CACHE")  # settings that leave machine code as it is
LARGEST = 2**20  # bytes that no file of ours exceeds
REMEDY = "set NUMBA_CACHE_DIR to a folder that can be written"
DIGEST = hashlib.sha256().digest_size


def compiled(function: F) -> F:
    """Compile a function when it is first called; every operation is done as it is written.

    >>> @compiled
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(2.0)
    4.0
    """
    return _compiled(function, False)


def compiled_fast(function: F) -> F:
    """The same, but sums may be reassociated and contracted, which is what makes long ones fast.

    >>> @compiled_fast
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(2.0)
    4.0
    """
    return _compiled(function, {"reassoc", "contract", "nsz"})


def _compiled(function: F, fastmath: bool | set[str]) -> F:
    if numba.config.DISABLE_JIT:
        return np.errstate(all="ignore")(function)  # compiled code says nothing of overflow either
    made = numba.njit(nogil=True, fastmath=fastmath)(function)
    made._cache = Files(function)
    return cast(F, made)


def inlined(function: F) -> F:
    """A function that stays as it is in Python, on floats and arrays, and becomes a part of compiled ones that call it.

    >>> @inlined
    ... def twice(x: float) -> float:
    ...     return 2.0 * x
    >>> twice(2.0)
    4.0
    """
    return cast(F, register_jitable(function))


def folders() -> list[Path]:
    """Where compiled code is looked for, and kept in the first that can be written.

    That is NUMBA_CACHE_DIR if it is set, else the package itself and then the user's cache.

    >>> all(folder.is_absolute() for folder in folders())
    True
    """
    if numba.config.CACHE_DIR:
        return [Path(numba.config.CACHE_DIR).absolute() / NAME]
    user = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    return [PACKAGE / "__pycache__", *([user / NAME] if user.is_absolute() else [])]  # "~" where there is no home


def kept_in() -> str:
    """Where compiled code is kept, in words, or why it is kept nowhere. A file is written there and removed.

    >>> kept_in().endswith(("writable", "set NUMBA_CACHE_DIR to a folder that can be written"))
    True
    """
    trial, reasons = f"trial.{uuid4().hex}", []
    for folder in folders():
        try:
            _write(folder / trial, bytes(LARGEST))
            (folder / trial).unlink()
            return f"{folder}, writable"
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
    return f"not kept ({'; '.join(reasons)}): {REMEDY}"


class Files(caching.NullCache):  # type: ignore[misc]
    """The files of one function, as numba asks for them."""

    told = False  # that nothing can be kept

    def __init__(self, function: Any) -> None:
        self.function = function

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled before, or None."""
        target_context.refresh()
        name, key = self._name_and_key(sig, target_context.codegen())
        for folder in folders():
            try:
                content = (folder / name).read_bytes()
                if content[:DIGEST] == _checksum(key, content[DIGEST:]):
                    return CompileResult._rebuild(target_context, *pickle.loads(content[DIGEST:]))
            except Exception:  # whatever it is: compiling helps
                continue
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if there is a place."""
        if data.library.has_dynamic_globals:  # addresses within this process
            return
        name, key = self._name_and_key(sig, data.codegen)
        content = serialize.dumps(data._reduce())
        reasons = []
        for folder in folders():
            try:
                return _write(folder / name, _checksum(key, content) + content)
            except OSError as error:
                reasons.append(f"{folder}: {error.strerror or error}")
        if not Files.told:
            Files.told = True
            nowhere = f"compiled code cannot be kept ({'; '.join(reasons)}), so that every process compiles again"
            warnings.warn(f"{nowhere}, for up to a minute: {REMEDY}", NoCacheWarning, stacklevel=1)

    def _name_and_key(self, sig: Any, codegen: Any) -> tuple[str, bytes]:
        """The name of a file, and what its data must fit beyond the name."""
        settings = sorted((k, v) for k, v in os.environ.items() if k.startswith("NUMBA_") and k not in NO_MATTER)
        variant = repr((str(sig), codegen.magic_tuple(), settings)).encode()
        title = f"{self.function.__module__}.{self.function.__qualname__}".replace("<", "").replace(">", "")
        name = f"{title}-{sys.implementation.cache_tag}-{hashlib.sha256(variant).hexdigest()[:16]}.nbc"
        return name, variant + numba.__version__.encode() + _sources(self.function)


def _checksum(key: bytes, data: bytes) -> bytes:
    return hashlib.sha256(key + data).digest()


def _write(path: Path, content: bytes) -> None:
    """All of it or nothing, whoever else writes there."""
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
    """A checksum of the files in which a function and all that it calls are written, and of the constants they use.

    numba itself looks at the file of the function only, and would go on with old versions of what it calls.
    """
    found, parts = [function], set()
    for one in found:  # it grows meanwhile
        parts.add(_file(one.__code__.co_filename) or one.__code__.co_code)
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            value = getattr(value, "py_func", value)
            if isinstance(value, FunctionType) and value not in found:
                found.append(value)
            elif isinstance(value, bool | int | float | str | tuple):
                parts.add(f"{name} = {value!r}".encode())
    return hashlib.sha256(b"".join(sorted(parts))).digest()


@cache
def _file(name: str) -> bytes:
    """A checksum of a file; of nothing if there is none, as for code within a zip archive or typed at a prompt."""
    try:
        return hashlib.sha256(Path(name).read_bytes()).digest()
    except OSError:
        return b""
