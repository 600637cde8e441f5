"""Tasks whose rows do not fit in memory: one pass over the rows leaves a small factor of each task, kept in a file.

Of [X_m | y_m] = Q R only R is kept, so that |X_m w - y_m| = |R (w, -1)| for every w: a task of n rows with d columns
and c outputs becomes d + c rows at most, and all losses stay what they are. R is turned such that its rows are
sigma_i v_i, the singular values and vectors of X_m; the last rows hold the part of the labels that no w can fit, beside
rows of zeros. Rows of a task may come in several parts, one below the other: R of the parts is R of the whole.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from forgetting.compute.workers import run_parts, workers
from forgetting.core.arrays import Array, IntArray, as_number, as_path, as_word
from forgetting.core.memory import in_bytes
from forgetting.core.numerical import EPS, rank_tolerance
from forgetting.core.progress import progress_bar
from forgetting.errors import (
    ForgettingError,
    InvalidInputError,
    MemoryLimitError,
    NotSupportedError,
    ProblemFileError,
    SmallRowWarning,
)
from forgetting.files.arrays import Parts, damaged, entry, is_ours, map_array, read_arrays, write_stored
from forgetting.geometry import RowBlocks, offsets_of, squared_rows
from forgetting.geometry.qr import triangle
from forgetting.tasks.labelled_rows import NO_CLASSES, LabelledRows, Owners, labelled_rows, owners_of

if TYPE_CHECKING:
    from forgetting.tasks.regression import RegressionTasks

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
    if options.get("classes") is not None:
        raise InvalidInputError(f"classes={options['classes']!r:.20}: {NO_CLASSES}")
    budget, count = as_number(memory, "memory", above=0), workers(jobs) or 1
    rows = labelled_rows(X, y, groups)
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
        options["rank_tol"] = rank_tolerance((int(owners.counts.max()), rows.shape[1]))
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
    tasks.notes += (*note, *owners.notes)
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


# ---------------------------------------------------------------------------------------------------------- the factors


PART = 2**26  # bytes of rows that are read at once, at most
SHARE = 16  # the part of memory= that such rows take, at most
PENDING = 4  # rows of a task that wait for a factorisation, as a multiple of the rows of its factor


@dataclass(eq=False)
class Factored:
    """Factors of all tasks: task m has sizes[m] rows of `both` = [X | y], from row starts[m] on.

    Attributes:
        both: the rows, in memory or mapped to a temporary file.
        starts: where the rows of each task begin.
        sizes: how many rows there are.
        small: the first task with rows whose squares are below 1e-24 of the largest square, or None.
    """

    both: Any
    starts: IntArray
    sizes: IntArray
    small: int | None = None
    _file: Any = field(default=None, repr=False)

    def rows(self, columns: slice, step: int = 2**21) -> Iterator[Array]:
        """Some columns of the rows of all tasks, in parts of about `step` numbers."""
        first, width = 0, self.both.shape[1]
        while first < len(self.sizes):
            last = int(np.searchsorted(self.starts, self.starts[first] + max(1, step // width), side="right"))
            last = min(max(last, first + 1), len(self.sizes))
            begin, sizes = int(self.starts[first]), self.sizes[first:last]
            span = self.both[begin : int(self.starts[last])]
            place = np.repeat(self.starts[first:last] - begin - offsets_of(sizes)[:-1], sizes) + np.arange(sizes.sum())
            yield np.asarray(span[place][:, columns])
            first = last


class _Piece(NamedTuple):
    """The result of reducing a part of the rows: rows of short tasks with their tasks, and factors of tall tasks."""

    short: IntArray
    rows: Array
    tall: list[tuple[int, int, Array, float, float]]


class _Parts(Sequence[Any]):
    """The parts of the rows, each with the tasks of its rows, which are looked up when they are needed."""

    def __init__(self, rows: LabelledRows, owners: Owners, size: int) -> None:
        self.rows, self.owners, self.spans = rows, owners, rows.spans(size)
        self.width = rows.shape[1] + (rows.outputs or 1)

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, place: Any) -> Any:
        start, stop = self.spans[place]
        codes = self.owners.of(start, stop)
        return self.rows.portion(start, stop), start, stop, codes, self.owners.counts[codes] > self.width


def _reduced(part: Any) -> _Piece:
    """Read a part of the rows, and factorise the rows of each tall task."""
    rows, start, stop, codes, tall_rows = part
    d = rows.shape[1]
    width = d + (rows.outputs or 1)
    short_codes, short_rows = [], []
    waiting: dict[int, list[Any]] = {}
    for block in rows.blocks(start, stop):
        span = slice(block.start - start, block.start - start + len(block.X))
        own, is_tall = codes[span], tall_rows[span]
        both = np.empty((len(own), width))
        both[:, :d], both[:, d:] = block.X, block.y
        del block
        if (own[1:] < own[:-1]).any():
            order = np.argsort(own, kind="stable")
            own, is_tall, both = own[order], is_tall[order], both[order]
        if not is_tall.all():
            short_codes.append(own[~is_tall])
            short_rows.append(both[~is_tall])
        cuts = [0, *(np.flatnonzero(np.diff(own)) + 1).tolist(), len(own)] if is_tall.any() else []
        for first, last in pairwise(cuts):
            if is_tall[first]:
                _gather(waiting, int(own[first]), both[first:last], d, width)
    tall = [
        (task, seen, np.array(triangle(np.concatenate(parts))), least, most)
        for task, (parts, _, seen, least, most) in waiting.items()
    ]
    empty = np.empty((0, width))
    return _Piece(np.concatenate([np.empty(0, np.int64), *short_codes]), np.concatenate([empty, *short_rows]), tall)


def _gather(
    waiting: dict[int, list[Any]],
    task: int,
    rows: Array,
    d: int,
    width: int,
    seen: int | None = None,
    spread: tuple[float, float] | None = None,
) -> None:
    """Put rows, or a factor of `seen` rows, below those of the task; many are factorised at once."""
    if spread is None:
        squares = squared_rows(rows[:, :d])
        filled = squares[squares > 0]
        spread = (float(filled.min(initial=np.inf)), float(filled.max(initial=0.0)))
    parts, count, before, least, most = waiting.get(task, [[], 0, 0, np.inf, 0.0])
    parts.append(rows.copy() if len(rows) <= width else triangle(rows))
    count += len(parts[-1])
    if count > PENDING * width:
        parts = [triangle(np.concatenate(parts))]
        count = len(parts[0])
    total = before + (len(rows) if seen is None else seen)
    waiting[task] = [parts, count, total, min(least, spread[0]), max(most, spread[1])]


def factored(
    rows: LabelledRows, owners: Owners, memory: float, jobs: int, rank_tol: float | None, scratch: Path | None
) -> Factored:
    """The factors of all tasks, in one pass over the rows.

    Args:
        rows, owners: the rows, and the task of each.
        memory: bytes that rows and factors may take; factors that take more than half are kept in a temporary file in
            the folder `scratch`.
        jobs: processes that read and factorise. Factors do not depend on their number.
        rank_tol: relative to the largest singular value of a task; None for max(n_m, d) eps.

    Cost: O(N (d + c)^2). A task of at most d + c rows keeps its rows.
    """
    d, c = rows.shape[1], rows.outputs or 1
    width = d + c
    reserved = np.minimum(owners.counts, width)
    starts = offsets_of(reserved)
    if jobs > 1:
        _require_pickles(rows)
    size = max(1, int(min(PART, memory / SHARE) / rows.row_bytes))
    _require_rows(rows, memory, size)
    made = Factored(*_room(int(starts[-1]), width, memory, scratch), starts, reserved.copy())
    both, filled = made.both, np.zeros(len(reserved), dtype=np.int64)
    waiting: dict[int, list[Any]] = {}
    parts = _Parts(rows, owners, size)

    def take(piece: _Piece) -> None:
        if len(piece.short):
            order = np.argsort(piece.short, kind="stable")
            own = piece.short[order]
            first = np.concatenate([[True], own[1:] != own[:-1]])
            begin = np.flatnonzero(first)[np.cumsum(first) - 1]
            both[starts[own] + filled[own] + np.arange(len(own)) - begin] = piece.rows[order]
            np.add.at(filled, own, 1)
        for task, seen, factor, least, most in piece.tall:
            _gather(waiting, task, factor, d, width, seen, (least, most))
            if waiting[task][2] == owners.counts[task]:
                parts_of_task, _, count, low, high = waiting.pop(task)
                own_rows = _finished(np.concatenate(parts_of_task), d, count, rank_tol)
                made.sizes[task] = len(own_rows)
                both[starts[task] : starts[task] + len(own_rows)] = own_rows
                if low < 1e-24 * high and (made.small is None or task < made.small):
                    made.small = task
        _require_waiting(waiting, width, memory)

    ready: dict[int, _Piece] = {}
    done = 0
    with progress_bar("reading") as report:
        for place, piece in run_parts(_reduced, parts, jobs):
            ready[place] = piece
            while done in ready:  # in their order, so that factors do not depend on the number of processes
                take(ready.pop(done))
                done += 1
            report("reading", done, len(parts))
    return made


def _finished(rows: Array, d: int, count: int, rank_tol: float | None) -> Array:
    """The factor of a task of `count` rows: sigma_i v_i beside their labels, then what no w can fit beside zeros.

    The rank is decided by the singular values alone. Labels that are not fitted by less than rounding count as fitted.
    """
    reduced = triangle(rows)
    left, sigma, right = np.linalg.svd(reduced[:, :d])
    top = float(np.max(sigma, initial=0.0))
    tolerance = rank_tolerance((count, d)) if rank_tol is None else rank_tol
    rank = int(np.count_nonzero(sigma > tolerance * top))
    labels = left.T @ reduced[:, d:]
    rest = np.array(triangle(labels[rank:])) if len(labels) - rank > labels.shape[1] else labels[rank:].copy()
    norms = np.linalg.norm(labels, axis=0)
    rest[:, 0.5 * np.sum(rest**2, axis=0) <= (8 * EPS * norms) ** 2 * count] = 0.0
    rest = rest[rest.any(axis=1)]
    kept = np.concatenate([sigma[:rank, None] * right[:rank], np.zeros((len(rest), d))])
    factor = np.column_stack([kept, np.concatenate([labels[:rank], rest])])
    return factor if len(factor) else np.zeros((1, reduced.shape[1]))


def _room(count: int, width: int, memory: float, scratch: Path | None) -> tuple[Any]:
    """Room for the factors: in memory, or in a temporary file that has no name."""
    if 8.0 * count * width <= memory / 2:
        return (np.empty((count, width)),)
    if scratch is None:
        needed = 16.0 * count * width
        raise MemoryLimitError(
            f"the factors of the tasks take {in_bytes(needed / 2)}, more than half of memory={in_bytes(memory)}; give "
            f"memory= of {in_bytes(needed)} or more, or cache=, a file for them",
            needed=needed,
            allowed=memory,
        )
    with tempfile.TemporaryFile(dir=scratch) as file:
        return (np.memmap(file, np.float64, "w+", shape=(count, width)),)


def _require_rows(rows: LabelledRows, memory: float, size: int) -> None:
    least = rows.row_bytes * min(size, max(stop - start for start, stop in rows.spans(size)))
    if 4 * least > memory:
        raise MemoryLimitError(
            f"rows that are read together take about {in_bytes(least)}, and four times as much must fit into memory="
            f"{in_bytes(memory)}; give more, or write smaller files or groups of rows",
            needed=4 * least,
            allowed=memory,
        )


def _require_waiting(waiting: dict[int, list[Any]], width: int, memory: float) -> None:
    """Raise if the tasks of which rows are still to come take too much memory; factorise what waits before."""
    if 8.0 * width * sum(task[1] for task in waiting.values()) <= memory / 4:
        return
    for task in waiting.values():
        task[0] = [triangle(np.concatenate(task[0]))]
        task[1] = len(task[0][0])
    taken = 8.0 * width * sum(task[1] for task in waiting.values())
    if taken > memory / 4:
        raise MemoryLimitError(
            f"the rows of {len(waiting)} tasks are scattered, and their factors take {in_bytes(taken)} until the last "
            f"row is read, more than a quarter of memory={in_bytes(memory)}; sort the rows by task, or give more",
            needed=4 * taken,
            allowed=memory,
        )


def _require_pickles(rows: LabelledRows) -> None:
    with suppress(Exception):
        pickle.dumps(rows)
        return
    raise NotSupportedError(
        "jobs= above 1 needs rows that other processes can read: .npy files, folders of them, or Parquet files"
    )
