"""The names that `dir` shows of a public module, which a notebook offers after a dot."""

from __future__ import annotations

from collections.abc import Callable, Iterable


def only(names: Iterable[str]) -> Callable[[], list[str]]:
    """A `__dir__` for a module that lists its public names alone, also those that are imported when first asked for.

    >>> import forgetting as fg
    >>> "expect" in dir(fg), "audit" in dir(fg), "TYPE_CHECKING" in dir(fg)
    (True, True, False)
    """
    listed = sorted(names)
    return lambda: list(listed)
