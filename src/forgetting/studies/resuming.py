"""Long computations that end in one file: finished parts are kept beside the file until the file is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from forgetting.errors import ProblemFileError
from forgetting.files.atomic import kept
from forgetting.files.store import Store


@contextmanager
def finished_parts(out: Path | None) -> Iterator[Path | None]:
    """The name of a store beside the file that is being made, named after it with `.partial`; it goes with the block.

    If the block is interrupted, the store stays, and the same computation goes on from there.

    >>> with finished_parts(None) as store:
    ...     store is None
    True
    """
    if out is None:
        yield None
        return
    path = out.with_name(f"{out.name}.partial")
    try:
        yield path
    except BaseException:
        with suppress(ProblemFileError), _there(path) as store:  # the error of the block says more
            count = 0 if store is None else len(store)
            if count:
                parts = "1 finished part is" if count == 1 else f"{count} finished parts are"
                kept.append(f"{parts} in {path}: the same command goes on from there")
            elif store is not None:
                store.remove()
        raise
    with _there(path) as store:
        if store is not None:
            store.remove()


@contextmanager
def _there(path: Path) -> Iterator[Store | None]:
    """The store, if there is such a file: looking for it makes none."""
    if not path.is_file():
        yield None
        return
    with Store(path, create=False) as store:
        yield store
