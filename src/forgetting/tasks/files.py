"""Problems of each kind as arrays of an .npz file, and back; every array is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from forgetting import sets as convex_sets
from forgetting.core.arrays import IntArray, as_index, is_sparse
from forgetting.core.memory import require_memory
from forgetting.core.registry import registered_class
from forgetting.errors import ForgettingError, NotSupportedError
from forgetting.files.arrays import entry, whole_number, words
from forgetting.geometry import sizes_of, stack_of
from forgetting.sets import ConvexSet

if TYPE_CHECKING:
    from forgetting.tasks.classification import ClassificationTasks
    from forgetting.tasks.convex import ConvexSets
    from forgetting.tasks.kernel import KernelTasks
    from forgetting.tasks.linear_tasks import LinearTasks
    from forgetting.tasks.regression import RegressionTasks

__all__ = [
    "classification_arrays",
    "classification_from",
    "kernel_arrays",
    "kernel_from",
    "regression_arrays",
    "regression_from",
    "set_arrays",
    "sets_from",
]


def regression_arrays(tasks: RegressionTasks) -> dict[str, Any]:
    """The arrays that represent the tasks: the distinct tasks, stacked, and for each task its distinct task."""
    from forgetting.tasks.preparation_files import preparation_arrays

    matrices, labels = tasks._matrices, tasks._labels
    arrays: dict[str, Any] = {
        "format": np.array(tasks.format),
        "rows": sizes_of(matrices),
        "sparse": np.array([is_sparse(matrix) for matrix in matrices]),
        "y": stack_of(labels),
        "index": tasks._index,
        **_options(tasks),
    }
    if tasks.rows_read is not None:
        arrays["rows_read"] = tasks.rows_read
    if tasks.classes is not None:
        arrays["classes"] = np.array([name for names in tasks.classes for name in names])
        arrays["classes_of"] = np.array([len(names) for names in tasks.classes])
    if arrays["sparse"].any():
        import scipy.sparse as sp

        stacked = sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices]))
        arrays |= {"data": stacked.data, "indices": stacked.indices, "indptr": stacked.indptr}
        arrays["dim"] = np.array(tasks.dim)
    else:
        arrays["X"] = stack_of(matrices)
    return arrays | preparation_arrays(tasks.preparation)


def _options(tasks: LinearTasks) -> dict[str, Any]:
    """Names, loss and tolerances of linear tasks."""
    return {
        "names": np.array(tasks.names),
        "loss": np.array(tasks.loss_kind),
        "rtol": np.array(tasks.rtol),
        "rank_tol": np.array(np.nan if tasks.rank_tol is None else tasks.rank_tol),
    }


def _options_from(arrays: dict[str, Any]) -> dict[str, Any]:
    """Loss and tolerances as keywords."""
    rank_tol = float(entry(arrays, "rank_tol", "f", 0))
    return {
        "loss": str(entry(arrays, "loss", "U", 0)),
        "rank_tol": None if np.isnan(rank_tol) else rank_tol,
        "rtol": float(entry(arrays, "rtol", "f", 0)),
    }


def regression_from(arrays: dict[str, Any]) -> RegressionTasks:
    """The tasks of the arrays that `regression_arrays` made."""
    from forgetting.tasks.preparation_files import preparation_from
    from forgetting.tasks.regression import RegressionTasks

    y = _labels(arrays)
    ends = _ends(arrays, len(y))
    if "X" in arrays:
        X = entry(arrays, "X", "f", 2)
        if len(X) != len(y):
            raise ForgettingError(f"{len(X)} rows for {len(y)} labels")
        matrices: list[Any] = np.split(X, ends[:-1])
    else:
        matrices = _sparse_parts(arrays, ends)
    labels = np.split(y, ends[:-1])
    index = as_index(entry(arrays, "index", "iu", 1), len(ends), "index")
    names = words(arrays, "names", len(index))
    tasks = RegressionTasks(
        [matrices[i] for i in index], [labels[i] for i in index], names=names, **_options_from(arrays)
    )
    if "rows_read" in arrays:
        tasks.rows_read = entry(arrays, "rows_read", "i", 1).astype(np.int64)
        if len(tasks.rows_read) != len(index) or (tasks.rows_read < tasks.num_rows).any():
            raise ForgettingError("entry 'rows_read' must hold at least the number of rows of each task")
    if "classes" in arrays:
        tasks.classes = _classes(arrays, len(index), tasks.outputs)
    tasks.preparation = preparation_from(arrays, tasks.dim)
    steps = () if tasks.preparation is None else tasks.preparation.steps
    tasks.notes = tuple(note for step in steps for note in step.notes())
    return tasks


def _classes(arrays: dict[str, Any], tasks: int, outputs: int | None) -> tuple[tuple[str, ...], ...]:
    """The names of the classes of each task."""
    names, counts = entry(arrays, "classes", "U", 1), entry(arrays, "classes_of", "iu", 1)
    if len(counts) != tasks or outputs is None or not all(1 <= count <= outputs for count in counts.tolist()):
        raise ForgettingError(f"entry 'classes_of' must hold {tasks} numbers between 1 and the number of outputs")
    if sum(counts.tolist()) != len(names):
        raise ForgettingError(f"{len(names)} names of classes, but entry 'classes_of' announces {sum(counts.tolist())}")
    ends = np.cumsum(counts.astype(np.int64))[:-1]
    return tuple(tuple(part.tolist()) for part in np.split(names, ends))


def _labels(arrays: dict[str, Any]) -> Any:
    """The entry 'y': a vector, or a matrix with a column for each of several outputs."""
    given = arrays.get("y")
    return entry(arrays, "y", "f", 2 if given is not None and given.ndim == 2 else 1)


def _ends(arrays: dict[str, Any], total: int) -> IntArray:
    """The row number after the last row of each task, from the checked entry 'rows'."""
    rows = entry(arrays, "rows", "iu", 1)
    if not len(rows) or rows.min() < 1 or rows.max() > total:
        raise ForgettingError("entry 'rows' must hold at least one number of rows, and each must be at least 1")
    ends = np.cumsum(rows.astype(np.int64))
    if len(rows) > total or int(ends[-1]) != total:  # no overflow: at most total^2 < 2^63
        raise ForgettingError(f"entry 'rows' announces {sum(rows.tolist())} rows, but there are {total} labels")
    return ends


def _sparse_parts(arrays: dict[str, Any], ends: IntArray) -> list[Any]:
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


def classification_arrays(tasks: ClassificationTasks) -> dict[str, Any]:
    """The arrays that represent the tasks: stacked rows and signs, rows per task, names, and the two labels."""
    parts = [tasks.task(task) for task in range(tasks.num_tasks)]
    return {
        "format": np.array(tasks.format),
        "rows": tasks.num_rows,
        "X": np.concatenate([matrix for matrix, _ in parts]),
        "y": np.concatenate([label for _, label in parts]).astype(np.int8),
        "label_names": np.array(tasks.label_names),
        "names": np.array(tasks.names),
    }


def classification_from(arrays: dict[str, Any]) -> ClassificationTasks:
    """The tasks of the arrays that `classification_arrays` made."""
    from forgetting.tasks.classification import ClassificationTasks

    signs, X = entry(arrays, "y", "i", 1), entry(arrays, "X", "f", 2)
    ends = _ends(arrays, len(signs))
    if len(X) != len(signs):
        raise ForgettingError(f"{len(X)} rows for {len(signs)} labels")
    if not np.isin(signs, (-1, 1)).all():
        raise ForgettingError("labels other than -1 and 1")
    pair = entry(arrays, "label_names", "biuU", 1)
    if len(pair) != 2:
        raise ForgettingError(f"{len(pair)} names of labels, but there are two labels")
    return ClassificationTasks(
        np.split(X, ends[:-1]),
        np.split(pair[(signs + 1) // 2], ends[:-1]),
        names=words(arrays, "names", len(ends)),
        label_names=pair.tolist(),
    )


def kernel_arrays(tasks: KernelTasks) -> dict[str, Any]:
    """The arrays that represent the tasks: the kernel matrix, the labels, and the task of each row."""
    owner = np.empty(tasks.dim, dtype=np.int64)
    for task, rows in enumerate(tasks.rows_of):
        owner[rows] = task
    return {
        "format": np.array(tasks.format),
        "kernel": tasks.kernel,
        "y": tasks.labels,
        "task": owner,
        **_options(tasks),
    }


def kernel_from(arrays: dict[str, Any]) -> KernelTasks:
    """The tasks of the arrays that `kernel_arrays` made."""
    from forgetting.tasks.kernel import KernelTasks

    owner = entry(arrays, "task", "iu", 1)
    tasks = KernelTasks(
        entry(arrays, "kernel", "f", 2), _labels(arrays), owner.astype(np.int64), **_options_from(arrays)
    )
    tasks.names = tuple(words(arrays, "names", tasks.num_tasks))
    return tasks


def set_arrays(problem: ConvexSets) -> dict[str, Any]:
    """The class and the `parts` of each set; a set of a class that is not registered, or has no parts, is refused."""
    arrays: dict[str, Any] = {
        "format": np.array(problem.format),
        "kinds": np.array([type(member).__name__ for member in problem.sets]),
        "names": np.array(problem.names),
    }
    for position, member in enumerate(problem.sets):
        if registered_class(convex_sets.registry, type(member).__name__) is not type(member) or not member.parts:
            raise NotSupportedError(
                f"set {position}: {type(member).__name__} cannot be saved; a class with `parts` under "
                "@fg.sets.register can"
            )
        values = {name: getattr(member, name) for name in member.parts}
        arrays |= {f"{position}/{name}": np.asarray(value) for name, value in values.items() if value is not None}
    return arrays


def sets_from(arrays: dict[str, Any]) -> ConvexSets:
    """The sets of the arrays that `set_arrays` made."""
    from forgetting.tasks.convex import ConvexSets

    members: list[ConvexSet] = []
    for position, kind in enumerate(entry(arrays, "kinds", "U", 1).tolist()):
        known: Any = registered_class(convex_sets.registry, kind)
        if known is None or not known.parts:
            raise ForgettingError(f"set {position}: there is no set {kind!r:.80}")
        given = {name: arrays.get(f"{position}/{name}") for name in known.parts}
        values = {name: value if value.ndim else value.item() for name, value in given.items() if value is not None}
        members.append(known(**values))
    require_memory(
        16.0 * max((member.dim for member in members), default=0), "points of the sets", "use fewer dimensions"
    )
    return ConvexSets(members, names=words(arrays, "names", len(members)))
