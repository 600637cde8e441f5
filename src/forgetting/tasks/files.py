"""Entries of the files of tasks that several classes share: options, labels, rows, and preparations.

Every entry is checked when it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting.core.arrays import IntArray, as_index
from forgetting.core.memory import require_memory
from forgetting.errors import ForgettingError
from forgetting.files.arrays import entry, whole_number
from forgetting.tasks.preparation import MOST_STEPS, Preparation, RandomFeatures, UnknownMap, as_standardize

if TYPE_CHECKING:
    from forgetting.tasks.linear_tasks import LinearTasks


def linear_options(tasks: LinearTasks) -> dict[str, Any]:
    """Names, loss and tolerances of linear tasks."""
    return {
        "names": np.array(tasks.names),
        "loss": np.array(tasks.loss_kind),
        "rtol": np.array(tasks.rtol),
        "rank_tol": np.array(np.nan if tasks.rank_tol is None else tasks.rank_tol),
    }


def linear_options_from(arrays: dict[str, Any]) -> dict[str, Any]:
    """Loss and tolerances as keywords."""
    rank_tol = float(entry(arrays, "rank_tol", "f", 0))
    return {
        "loss": str(entry(arrays, "loss", "U", 0)),
        "rank_tol": None if np.isnan(rank_tol) else rank_tol,
        "rtol": float(entry(arrays, "rtol", "f", 0)),
    }


def classes_from(arrays: dict[str, Any], tasks: int, outputs: int | None) -> tuple[tuple[str, ...], ...]:
    """The names of the classes of each task."""
    names, counts = entry(arrays, "classes", "U", 1), entry(arrays, "classes_of", "iu", 1)
    if len(counts) != tasks or outputs is None or not all(1 <= count <= outputs for count in counts.tolist()):
        raise ForgettingError(f"entry 'classes_of' must hold {tasks} numbers between 1 and the number of outputs")
    if sum(counts.tolist()) != len(names):
        raise ForgettingError(f"{len(names)} names of classes, but entry 'classes_of' announces {sum(counts.tolist())}")
    ends = np.cumsum(counts.astype(np.int64))[:-1]
    return tuple(tuple(part.tolist()) for part in np.split(names, ends))


def labels_from(arrays: dict[str, Any]) -> Any:
    """The entry 'y': a vector, or a matrix with a column for each of several outputs."""
    given = arrays.get("y")
    return entry(arrays, "y", "f", 2 if given is not None and given.ndim == 2 else 1)


def row_ends(arrays: dict[str, Any], total: int) -> IntArray:
    """The row number after the last row of each task, from the checked entry 'rows'."""
    rows = entry(arrays, "rows", "iu", 1)
    if not len(rows) or rows.min() < 1 or rows.max() > total:
        raise ForgettingError("entry 'rows' must hold at least one number of rows, and each must be at least 1")
    ends = np.cumsum(rows.astype(np.int64))
    if len(rows) > total or int(ends[-1]) != total:  # no overflow: at most total^2 < 2^63
        raise ForgettingError(f"entry 'rows' announces {sum(rows.tolist())} rows, but there are {total} labels")
    return ends


def sparse_parts(arrays: dict[str, Any], ends: IntArray) -> list[Any]:
    """The matrices of the tasks from stacked CSR arrays, which are checked; matrices that were dense are made dense."""
    from scipy.sparse import csr_array

    dim, total = whole_number(arrays, "dim", 1), int(ends[-1])
    data, flags = entry(arrays, "data", "f", 1), entry(arrays, "sparse", "b", 1)
    indices, indptr = entry(arrays, "indices", "iu", 1), entry(arrays, "indptr", "iu", 1)
    if len(flags) != len(ends):
        raise ForgettingError(f"{len(flags)} entries in 'sparse' for {len(ends)} matrices")
    if len(indices) != len(data) or len(indptr) != total + 1:
        raise ForgettingError(
            f"{len(data)} numbers, {len(indices)} indices and {len(indptr)} pointers for {total} sparse rows"
        )
    if indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
        raise ForgettingError(f"entry 'indptr' must rise from 0 to {len(data)}")
    columns = as_index(indices, dim, "indices").astype(indices.dtype)
    dense = int(np.diff(ends, prepend=0)[~flags].sum())
    require_memory(16.0 * dim * (dense + 1), f"{dense} dense rows of dimension {dim}", "save sparse rows")
    starts = indptr.astype(np.int64).astype(indptr.dtype)
    parts = []
    for first, last, sparse in zip([0, *ends[:-1].tolist()], ends.tolist(), flags.tolist(), strict=True):
        where = slice(int(starts[first]), int(starts[last]))
        pieces = data[where], columns[where], starts[first : last + 1] - starts[first]
        part = csr_array(pieces, shape=(last - first, dim))
        parts.append(part if sparse else part.toarray())
    return parts


# --------------------------------------------------------------------------------------------------------- preparations


STATISTICS = ("mean", "rest", "deviation")


def preparation_arrays(done: Preparation | None) -> dict[str, Any]:
    """The entries of a file that hold a preparation, if there is one; a function is kept by its name only."""
    arrays: dict[str, Any] = {}
    for number, step in enumerate(done.steps if done is not None else ()):
        values: dict[str, Any] = {"columns": step.columns, "width": step.width, "intercept": step.intercept}
        if isinstance(step.features, RandomFeatures):
            lift = step.features
            values |= {"features": "random", "kind": lift.kind, "scale": lift.scale, "seed": str(lift.seed)}
        elif step.features is not None:
            values |= {"features": "function", "name": step.features_name}
        if step.standardize is not None:
            values |= {"standardize": step.standardize, **{name: getattr(step, name) for name in STATISTICS}}
        arrays |= {f"preparation/{number}/{name}": np.asarray(value) for name, value in values.items()}
    return arrays


def preparation_from(arrays: dict[str, Any], dim: int) -> Preparation | None:
    """The preparation that the entries of a file hold, checked, for tasks of dimension `dim`; None if there is none."""
    left = {name for name in arrays if name.startswith("preparation/")}
    done: Preparation | None = None
    for number in range(MOST_STEPS):
        prefix = f"preparation/{number}/"
        names = {name for name in left if name.startswith(prefix)}
        if not names:
            break
        done = _step(arrays, prefix, {name.removeprefix(prefix) for name in names}, done)
        left -= names
    if left:
        raise ForgettingError(f"an unknown entry {min(left)!r:.60}; a newer version may have written the file")
    if done is not None and done.dim != dim:
        raise ForgettingError(f"the preparation gives {done.dim} columns, but the tasks have {dim}")
    return done


def _step(arrays: dict[str, Any], prefix: str, names: set[str], before: Preparation | None) -> Preparation:
    columns, width = (whole_number(arrays, f"{prefix}{name}", 1) for name in ("columns", "width"))
    features, feature_entries = _features(arrays, prefix, width) if "features" in names else (None, ())
    statistics: dict[str, Any] = {}
    if "standardize" in names:
        statistics = {name: entry(arrays, f"{prefix}{name}", "f", 1) for name in STATISTICS}
        statistics["standardize"] = as_standardize(str(entry(arrays, f"{prefix}standardize", "U", 0)))
    unknown = names - {"columns", "width", "intercept", *feature_entries, *statistics}
    if unknown:
        raise ForgettingError(
            f"an unknown entry {prefix + min(unknown)!r:.60}; a newer version may have written the file"
        )
    if features is None and width != columns:
        raise ForgettingError(f"a preparation makes {width} columns of {columns}, but has no feature map")
    if before is not None and before.dim != columns:
        raise ForgettingError(f"a preparation takes {columns} columns, but the one before it gives {before.dim}")
    ones = bool(entry(arrays, f"{prefix}intercept", "b", 0))
    return Preparation(columns, width, features, **statistics, intercept=ones, before=before)


def _features(arrays: dict[str, Any], prefix: str, width: int) -> tuple[Any, tuple[str, ...]]:
    """The feature map, and the entries that hold it."""
    kind = str(entry(arrays, f"{prefix}features", "U", 0))
    if kind == "function":
        return UnknownMap(str(entry(arrays, f"{prefix}name", "U", 0))), ("features", "name")
    if kind != "random":
        raise ForgettingError(f"entry '{prefix}features' is {kind!r:.40}, but should be 'random' or 'function'")
    seed = str(entry(arrays, f"{prefix}seed", "U", 0))
    if not (seed.isascii() and seed.isdecimal() and len(seed) <= 1000):
        raise ForgettingError(f"entry '{prefix}seed' is {seed!r:.40}, but should be a whole number")
    lift: Any = str(entry(arrays, f"{prefix}kind", "U", 0))
    scale = float(entry(arrays, f"{prefix}scale", "f", 0))
    return RandomFeatures(width, lift, scale, int(seed)), ("features", "kind", "scale", "seed")
