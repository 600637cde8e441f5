"""Threads: how many a computation may use, and matrix products by one thread.

With one thread, no digit depends on the number of threads of the linear algebra library. A process that computes one of
many parts (see `compute.workers`) leaves the other cores to the other parts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from threading import Lock
from typing import Any


@cache
def _libraries() -> Any:
    import scipy.linalg.cython_blas  # noqa: F401 - the library of compiled code must be there to be found
    from threadpoolctl import ThreadpoolController  # comes with scikit-learn

    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


class _Limit:
    """The limit of one thread, which is one for the whole process: the first context sets it, the last one ends it."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.users = 0
        self.limited: AbstractContextManager[Any] | None = None

    def enter(self) -> None:
        with self.lock:
            if self.limited is None:
                self.limited = _libraries().limit(limits=1, user_api="blas")
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0 and self.limited is not None:
                self.limited.__exit__(None, None, None)
                self.limited = None

    def forked(self) -> None:
        """The child of a fork has only the thread that forked, and no other that would release the lock."""
        self.lock = Lock()


_limit = _Limit()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_limit.forked)


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which the linear algebra library uses one thread; contexts of several threads may overlap."""
    _limit.enter()
    try:
        yield
    finally:
        _limit.leave()


_alone = ContextVar("alone", default=False)  # whether other parts of the same computation use the other cores


@contextmanager
def one_core() -> Iterator[None]:
    """A context whose computations use one core: `cores` is 1, and so are the threads of the linear algebra library.

    >>> with one_core():
    ...     cores()
    1
    """
    token = _alone.set(True)
    try:
        with one_thread():
            yield
    finally:
        _alone.reset(token)


def cores() -> int:
    """The number of threads that a computation uses if the caller does not say: all cores, or 1 within `one_core`."""
    return 1 if _alone.get() else os.cpu_count() or 1
