"""Tasks from rows that are read once, and the file in which their factors are kept."""

from __future__ import annotations

import os
import warnings
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.compute.workers import workers
from forgetting.core.arrays import EPS, Array, IntArray, as_number, as_path, as_word
from forgetting.errors import ForgettingError, InvalidInputError, ProblemFileError, SmallRowWarning
from forgetting.files.arrays import Parts, damaged, entry, is_ours, map_array, read_arrays, write_stored
from forgetting.files.labelled_rows import LabelledRows, Owners, labelled_rows, owners_of
from forgetting.geometry import RowBlocks, offsets_of
from forgetting.tasks.factored import Factored, factored

if TYPE_CHECKING:
    from forgetting.tasks.regression import RegressionTasks

__all__ = ["tasks_from_source"]

FORMAT = "forgetting/factors/1"


def tasks_from_source(
    kind: type[RegressionTasks],
    X: Any,
    y: Any,
    groups: Any,
    sizes: Any,
    memory: Any,
    cache: Any,
    jobs: Any,
    options: dict[str, Any],
) -> RegressionTasks:
    """See `RegressionTasks.from_source`."""
    budget, count = as_number(memory, "memory", above=0), workers(jobs) or 1
    rows = labelled_rows(X, y)
    owners = owners_of(rows, groups, sizes, options.pop("names", None))
    loss, rank_tol = options.get("loss", "sum"), options.get("rank_tol")
    as_word(loss, ("sum", "mean"), "loss")
    path = _place(rows, cache, loss)
    mark = _mark(rows, owners, loss, rank_tol)
    kept, note = _kept(path, mark, budget)
    if kept is None:
        scratch = None if path is None else path.absolute().parent
        made = factored(rows, owners, budget, count, rank_tol, scratch)
        if made.small is not None and rank_tol is None:
            _warn_of_small_rows(owners.names[made.small], made.small)
        _scale(made, owners.counts, loss)
        d = rows.shape[1]
        if path is not None:
            _write(path, made, d, mark)
        if path is not None and 8.0 * made.both.shape[1] * float(made.sizes.sum()) > budget / 2:
            del made
            kept, _ = _kept(path, mark, budget)
        else:
            kept = (*(np.concatenate(list(made.rows(part))) for part in (slice(0, d), slice(d, None))), made.sizes)
            del made
    if kept is None:
        raise ProblemFileError(f"{path}: the factors that were written cannot be read back")
    matrix, labels, stored = kept
    starts = offsets_of(stored)
    fewer = bool((stored < owners.counts).any())
    if fewer and rank_tol is None:
        options["rank_tol"] = max(int(owners.counts.max()), rows.shape[1]) * EPS
    flat = labels[:, 0] if rows.outputs is None else labels
    tasks = kind(
        RowBlocks(matrix, starts),
        RowBlocks(flat, starts),
        names=owners.names,
        copy=False,
        **options,
    )
    if fewer:
        tasks.rows_read = owners.counts
        tasks.notes = (f"{int(owners.counts.sum())} rows were read, of which factors of {len(matrix)} rows are kept",)
    tasks.notes += note
    return tasks


def _place(rows: LabelledRows, cache: Any, loss: str) -> Path | None:
    """The file of the factors: beside the data unless the caller names a file, or wants none."""
    if cache is False:
        return None
    if cache is not None and not isinstance(cache, bool):
        path = as_path(cache, "cache")
        return path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
    if rows.home is None:
        if cache is True:
            raise InvalidInputError("cache=True: it is not known where the data are; give the name of a file, cache=")
        return None
    home = rows.home.absolute()
    return home.with_name(f"{home.name}.{'' if loss == 'sum' else 'mean-'}factors.npz")


def _mark(rows: LabelledRows, owners: Owners, loss: str, rank_tol: Any) -> str:
    return sha256(f"{FORMAT} {rows.mark()} {owners.mark()} {loss} {rank_tol}".encode(errors="replace")).hexdigest()


def _kept(path: Path | None, mark: str, budget: float) -> tuple[Any, tuple[str, ...]]:
    """(X, y, rows of each task) from a file of factors of the same data, and notes; None if there is no such file."""
    if path is None or not os.path.exists(path):
        return None, ()
    if not is_ours(path):
        raise ProblemFileError(
            f"{path} exists, is damaged or was not written by forgetting, and is kept; move it away, or give another "
            "name, cache="
        )
    form = str(read_arrays(path, only="format")["format"])
    if form != FORMAT:
        raise ProblemFileError(f"{path} holds {form!r:.60} and no factors, and is kept; give another name, cache=")
    try:
        with damaged(path, "file of factors"):
            about = {name: read_arrays(path, only=name)[name] for name in ("mark", "sizes")}
            if str(about["mark"]) != mark:
                return None, ()
            sizes = entry(about, "sizes", "i", 1)
            X, y = (_array(path, name, budget) for name in ("X", "y"))
            if X.ndim != 2 or y.ndim != 2 or not len(X) == len(y) == int(sizes.sum()) or sizes.min() < 1:
                raise ForgettingError("its arrays do not fit together")
    except ProblemFileError as error:
        return None, (f"the factors were computed again: {error}",)
    return (X, y, sizes.astype(np.int64)), ()


def _array(path: Path, name: str, budget: float) -> Array:
    """The numbers of the file, mapped; in memory, if they take at most half of the budget."""
    mapped = map_array(path, name)
    if mapped.dtype != np.float64:
        raise ForgettingError(f"array {name!r} is {mapped.dtype}")
    return np.array(mapped) if mapped.nbytes <= budget / 2 else mapped


def _write(path: Path, made: Factored, d: int, mark: str) -> None:
    count, width = int(made.sizes.sum()), made.both.shape[1]
    write_stored(
        path,
        {
            "format": np.array(FORMAT),
            "mark": np.array(mark),
            "sizes": made.sizes,
            "X": Parts((count, d), np.float64, made.rows(slice(0, d))),
            "y": Parts((count, width - d), np.float64, made.rows(slice(d, None))),
        },
    )


def _scale(made: Factored, counts: IntArray, loss: str) -> None:
    """For a mean loss, multiply factors of r rows by (r / n)^(1/2): the mean over them is then that over n rows."""
    if loss == "sum":
        return
    for m in np.flatnonzero(made.sizes < counts).tolist():
        start, size = int(made.starts[m]), int(made.sizes[m])
        made.both[start : start + size] *= np.sqrt(size / float(counts[m]))


def _warn_of_small_rows(name: str, task: int) -> None:
    warnings.warn(
        f"task {task} ({name}): some rows are below 1e-12 of the largest, and there are more rows than columns, so "
        "that rows are reduced, and what only small rows say is lost; scale them, or give rank_tol= if that is meant",
        SmallRowWarning,
        stacklevel=4,
    )
