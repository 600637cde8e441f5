"""Regression tasks from data matrices, dense or sparse, ragged or stacked."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from forgetting import geometry as _geometry
from forgetting.core.arrays import (
    Array,
    IntArray,
    Seed,
    any_array,
    as_flag,
    as_index,
    as_task,
    as_word,
    fingerprint,
    is_sparse,
    one_column,
    read_only,
    sealed,
)
from forgetting.core.groups import group_codes
from forgetting.core.numerical import VANISHING, quietly
from forgetting.core.progress import Progress, shown
from forgetting.errors import ForgettingError, InvalidInputError, NotSupportedError, SmallRowWarning
from forgetting.files.arrays import entry, words
from forgetting.geometry import (
    Directions,
    Geometry,
    Matrix,
    OwnRows,
    Rooted,
    RowBlocks,
    offsets_of,
    row_sums,
    sizes_of,
    squared_rows,
    stack_of,
)
from forgetting.tasks.files import (
    classes_from,
    labels_from,
    linear_options,
    linear_options_from,
    preparation_arrays,
    preparation_from,
    row_ends,
    sparse_parts,
)
from forgetting.tasks.from_source import tasks_from_source
from forgetting.tasks.labels import classes_note, one_hot, row_classes
from forgetting.tasks.linear_tasks import LinearTasks
from forgetting.tasks.preparation import prepare
from forgetting.tasks.task_data import (
    as_slice,
    as_task_data,
    as_task_lists,
    largest_entries,
    outputs_in_words,
    split_rows,
    stacked,
)

__all__ = ["RegressionTasks"]

LARGE = 1e9  # N d min(N, d) beyond which sparse tasks and tasks of one row step on their own rows


class RegressionTasks(LinearTasks):
    """T linear regression tasks (X_m, y_m), with L_m(w) = 1/2 |X_m w - y_m|^2.

    Args:
        matrices: T matrices of shape (n_m, d), NumPy or scipy.sparse; n_m may differ.
        labels: T vectors of length n_m, or T matrices of shape (n_m, c) for c outputs: w is then d x c, and losses are
            summed over outputs. A matrix of one column counts as a vector.
        loss: "sum" as in the paper, or "mean" to divide L_m by n_m.
        rank_tol: relative tolerance for ranks. By default max(shape) * eps, after rows of different sizes are scaled to
            the same size; a number is relative to the largest singular value of the unscaled rows.
        rtol: relative residual below which the tasks count as jointly realizable.
        names: T names for reports; task numbers if left out.
        copy: False keeps references to float64 arrays instead of copies; do not change them afterwards.

    Identical tasks are stored once and computed once.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.6, 0.8]]], [[1.0], [0.6]])
    >>> tasks.num_tasks, tasks.dim, tasks.ranks.tolist(), round(tasks.radius, 12)
    (2, 2, [1, 1], 1.0)
    >>> tasks.w_star.round(12) + 0.0
    array([1., 0.])
    >>> tasks
    RegressionTasks(T=2, d=2, rows=2)
    """

    format = "forgetting/regression/1"

    def __init__(
        self,
        matrices: Sequence[Any],
        labels: Sequence[Any],
        *,
        loss: Literal["sum", "mean"] = "sum",
        rank_tol: float | None = None,
        rtol: float = 1e-8,
        names: Sequence[str] | None = None,
        copy: bool = True,
    ) -> None:
        matrices, labels, self.names = as_task_lists(matrices, labels, names)
        self._set_options(loss, rank_tol, rtol)
        self._matrices: Sequence[Matrix]
        self._labels: Sequence[Array]
        copy = as_flag(copy, "copy")
        stack = stacked(matrices, labels, copy)
        self._matrices, self._labels, self._index = self._take_in(matrices, labels, copy) if stack is None else stack
        self._sizes = np.diff(stack.labels.starts) if stack else np.array([len(label) for label in self._labels])
        first_blocks = self._matrices[:1] if stack else self._matrices
        self._sparse = all(is_sparse(matrix) for matrix in first_blocks)
        self.dim = int(self._matrices[0].shape[1])
        self.outputs = None if self._labels[0].ndim == 1 else int(self._labels[0].shape[1])
        self._warn_of_small_rows()

    @staticmethod
    def _take_in(
        matrices: Sequence[Any], labels: Sequence[Any], copy: bool
    ) -> tuple[list[Matrix], list[Array], IntArray]:
        """The data of each distinct task, and for every task the number of its distinct task."""
        matrices, labels = list(matrices), list(labels)  # kept alive, so that ids are unique
        known: list[Matrix] = []
        known_labels: list[Array] = []
        index = np.empty(len(matrices), dtype=np.int64)
        by_identity: dict[tuple[int, int], int] = {}
        by_content: dict[bytes, int] = {}
        width: int | None = None
        for task, (raw_matrix, raw_label) in enumerate(zip(matrices, labels, strict=True)):
            identity = (id(raw_matrix), id(raw_label))
            if identity not in by_identity:
                matrix, label = as_task_data(raw_matrix, raw_label, task)
                if width is not None and matrix.shape[1] != width:
                    raise InvalidInputError(
                        f"task {task}: X has {matrix.shape[1]} columns, but task 0 has {width}; all need the same d"
                    )
                width = matrix.shape[1]
                if known_labels and label.shape[1:] != known_labels[0].shape[1:]:
                    raise InvalidInputError(
                        f"task {task}: y has {outputs_in_words(label)}, but task 0 has "
                        f"{outputs_in_words(known_labels[0])}; all need the same outputs"
                    )
                same = by_content.setdefault(fingerprint(matrix, label), len(known))
                if same == len(known):
                    known.append(sealed(matrix.copy() if copy else matrix))
                    known_labels.append(read_only(label.copy()))
                by_identity[identity] = same
            index[task] = by_identity[identity]
        return known, known_labels, index

    def _warn_of_small_rows(self) -> None:
        """Warn if a row is below 1e-12 of the largest row of its task, and refuse rows below 1e-290 of such a task.

        Nothing is checked if the user has chosen `rank_tol`.
        """
        if self.rank_tol is not None:
            return
        for distinct in self._tasks_of_unlike_rows():
            sizes = largest_entries(self._matrices[distinct])
            small = np.flatnonzero((sizes > 0) & (sizes < 1e-12 * sizes.max()))
            if small.size:
                task = int(np.flatnonzero(self._index == distinct)[0])
                if sizes[small].min() < VANISHING:
                    row = int(small[np.argmin(sizes[small])])
                    raise InvalidInputError(
                        f"task {task} ({self.names[task]}), row {row}: its largest entry is {sizes[row]:.2g}, which "
                        "vanishes; rescale the row, or set it to zero"
                    )
                warnings.warn(
                    f"task {task} ({self.names[task]}), row {small[0]}: its largest entry is {sizes[small[0]]:.2g}, "
                    f"that of the task {sizes.max():.2g}. The row counts like any other; if it is noise, set it to "
                    "zero, or give rank_tol=, which is relative to the largest singular value of the task",
                    SmallRowWarning,
                    stacklevel=3,
                )
                return

    def _tasks_of_unlike_rows(self) -> list[int]:
        """The distinct tasks that may have a row below 1e-12 of their largest row; a stack of rows is read at once."""
        several = self._sizes > 1
        if isinstance(self._matrices, RowBlocks) and several.any():
            sizes = largest_entries(self._matrices.stack)
            starts = self._matrices.starts[:-1]
            least = np.minimum.reduceat(np.where(sizes > 0, sizes, np.inf), starts)
            several = least < 1e-12 * np.maximum.reduceat(sizes, starts)
        return np.flatnonzero(several).tolist()

    @classmethod
    def from_arrays(cls, X: Any, y: Any, groups: Any, **options: Any) -> RegressionTasks:
        """Tasks from a stacked matrix: rows with the same entry of `groups` form a task, named after this entry.

        Where the rows of each task come one after another, tasks have the order of the rows. Where rows are mixed, as
        after a shuffle, tasks are sorted if all entries of `groups` are numbers, dates (2024-01-31), or numbers after
        the same words (task 2 before task 10); else they are in order of first appearance. `notes` says which.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks.from_arrays([[1.0, 0], [0, 1], [1, 1]], [1.0, 2, 3], [10, 9, 10])
        >>> tasks.names, tasks.ranks.tolist(), tasks.notes
        (('9', '10'), [1, 2], ("tasks are sorted by number, since their rows are mixed: '9', '10'",))
        """
        matrices, labels, known = split_rows(X, y, groups)
        if isinstance(X, np.ndarray) and not np.may_share_memory(matrices.stack, X):
            options = {"copy": False, **options}  # the rows were copied when they were sorted
        tasks = cls(matrices, labels, **{"names": known.names, **options})
        tasks.notes = known.told(tasks.names)
        return tasks

    @classmethod
    def from_labels(
        cls, X: Any, labels: Any, groups: Any, classes: Literal["all", "task"] = "all", **options: Any
    ) -> RegressionTasks:
        """Tasks from class labels: one-hot targets, learned by regression, so that tasks have an accuracy.

        Args:
            X, groups, options: as for `from_arrays`.
            labels: the class of every row, whole numbers or words.
            classes: "all" for one output for each class of all tasks, and predictions among all of them
                (class-incremental learning). "task" if the task is known when a row is predicted: outputs stand for the
                first, second, ... class of the task, and predictions are among the classes of the task.

        >>> import forgetting as fg
        >>> X, labels, groups = [[1.0, 0], [0, 1], [1, 2], [1, -1]], ["cat", "dog", "owl", "cat"], [0, 0, 1, 1]
        >>> tasks = fg.RegressionTasks.from_labels(X, labels, groups)
        >>> tasks.outputs, tasks.classes[0], fg.run(tasks, "cyclic", k=2).accuracy[-1].tolist()
        (3, ('cat', 'dog', 'owl'), [0.5, 1.0])
        >>> fg.RegressionTasks.from_labels(X, labels, groups, classes="task").classes
        (('cat', 'dog'), ('cat', 'owl'))
        """
        matrix = X.tocsr() if is_sparse(X) else any_array(X, "X")
        if matrix.ndim != 2:
            raise InvalidInputError(f"X: expected a matrix, got shape {matrix.shape}")
        given = one_column(any_array(labels, "labels"))
        if given.shape != matrix.shape[:1]:
            raise InvalidInputError(f"X has {matrix.shape[0]} rows, but labels has the shape {given.shape}")
        known = group_codes(groups, matrix.shape[0])
        members = known.rows
        targets, named = one_hot(row_classes(labels), members, classes)
        tasks = cls([matrix[as_slice(rows)] for rows in members], targets, **{"names": known.names, **options})
        tasks.classes = named
        tasks.notes = (classes_note(named, targets, tasks.names), *known.told(tasks.names))
        return tasks

    @classmethod
    def from_source(
        cls,
        X: Any,
        y: Any,
        groups: Any = None,
        *,
        sizes: Any = None,
        memory: float = 2**30,
        cache: Any = None,
        jobs: int = 1,
        progress: Progress = False,
        **options: Any,
    ) -> RegressionTasks:
        """Tasks from data that do not fit in memory: one pass over the rows, which leaves a small factor of each task.

        A task of n_m rows with d columns and c outputs becomes [X_m | y_m] = Q R, of which R is kept: d + c rows at
        most. Losses (also where no w fits the labels), runs, expectations and bounds are those of the rows, up to
        rounding. What needs the rows themselves is refused: accuracies, `prepared`, `noise=`, held-out rows, NLMS.
        A task of at most d + c rows keeps its rows.

        Args:
            X: a path to an .npy file, a folder of .npy and .npz files, a Parquet file or a folder of them; a
                memory-mapped array, an array of h5py or zarr, or any object with `shape` and row slices.
            y: labels in the same ways, or in memory; for Parquet, the name of a column, or several names. Labels are
                numbers: which classes there are would be known after the last row only. Give a column of 0 and 1 for
                each class instead.
            groups: the task of every row, in any order, or the name of a column of Parquet. All of them are read first,
                so that tasks are in the same order as those of `from_arrays`. If groups and sizes are left out, each
                file of a folder is a task.
            sizes: the number of rows of each task, for rows that come task by task.
            memory: bytes that rows and factors may take. Factors that take more than half are memory-mapped.
            cache: the .npz file in which factors are kept, with checksums. By default it is beside the data, as
                X.npy.factors.npz, if these are in a file; False for none. It is used again as long as sizes and times
                of files, groups and 64 sampled rows are the same; otherwise, or if it is damaged, it is written again.
            jobs: processes that read and factorise, -1 for as many as there are cores; the factors do not depend on
                their number.
            progress: see `fg.run`.
            options: loss, rank_tol, rtol and names, as for `RegressionTasks`. Ranks of reduced tasks are relative to
                the largest singular value of a task.

        Cost: O(N (d + c)^2) for N rows, and d + c rows for each task.

        >>> import forgetting as fg
        >>> X, w = np.random.default_rng(0).standard_normal((500, 3)), np.array([1.0, 2.0, 3.0])
        >>> tasks = fg.RegressionTasks.from_source(X, X @ w, sizes=[200, 299, 1])
        >>> tasks, tasks.rows_read.tolist(), tasks.w_star.round(12).tolist()
        (RegressionTasks(T=3, d=3, rows=7), [200, 299, 1], [1.0, 2.0, 3.0])
        """
        with shown(progress):
            return tasks_from_source(cls, X, y, groups, sizes, memory, cache, jobs, options)

    #: the number of rows of each task before `from_source` reduced them; None if the rows are those that were given
    rows_read: IntArray | None = None

    @property
    def given(self) -> RegressionTasks:
        """The tasks as they were given; themselves unless they were put into other coordinates."""
        return self

    def like_these(self, other: RegressionTasks) -> RegressionTasks:
        """Other tasks, such as held-out data, in the coordinates of these."""
        return other

    def rooted(self, task: int) -> Rooted | None:
        """The digits of a task beyond its floats; None if its rows and labels are exactly the floats."""
        return None

    def require_rows(self, what: str) -> None:
        """Raise if `from_source` reduced the rows; `what` names the operation that needs the rows themselves."""
        if self.rows_read is not None:
            task = int(np.argmax(self.rows_read > self.num_rows))
            raise NotSupportedError(
                f"{what} needs the rows of the tasks, but from_source keeps a factor of them (of the "
                f"{self.rows_read[task]} rows of task {task}, {self.num_rows[task]} are left); give the rows in memory"
            )

    @cached_property
    def labels_stand_for(self) -> Literal["signs", "classes"] | None:
        return None if self.rows_read is not None else super().labels_stand_for

    def labels_of(self, task: int) -> Array:
        return self.task(task)[1]

    def row_lengths(self, task: int) -> Array:
        return np.sqrt(squared_rows(self.task(task)[0]))

    def predictions(self, task: int, points: Array) -> tuple[Array, Array]:
        X, _ = self.task(task)
        points = self._stack(points)
        with quietly():  # a run that diverges has points of any size
            lengths = np.linalg.norm(points, axis=-1) if self.outputs is None else np.linalg.norm(points, axis=(-2, -1))
            sizes = np.sqrt(squared_rows(X))[None] * lengths[:, None]
        if self.outputs is None:
            return np.asarray((X @ points.T).T), sizes
        c = self.outputs
        # d x (c points): each output of all points is one row in memory, and what compares outputs is quick
        flat = np.ascontiguousarray(np.moveaxis(points, 0, 2)).reshape(self.dim, -1)
        return np.moveaxis(np.asarray(X @ flat).reshape(X.shape[0], c, -1), 2, 0), sizes

    def file_arrays(self) -> dict[str, Any]:
        matrices, labels = self._matrices, self._labels
        arrays: dict[str, Any] = {
            "format": np.array(self.format),
            "rows": sizes_of(matrices),
            "sparse": np.array([is_sparse(matrix) for matrix in matrices]),
            "y": stack_of(labels),
            "index": self._index,
            **linear_options(self),
        }
        if self.rows_read is not None:
            arrays["rows_read"] = self.rows_read
        if self.classes is not None:
            arrays["classes"] = np.array([name for names in self.classes for name in names])
            arrays["classes_of"] = np.array([len(names) for names in self.classes])
        if arrays["sparse"].any():
            import scipy.sparse as sp

            stacked = sp.csr_array(sp.vstack([sp.csr_array(matrix) for matrix in matrices]))
            arrays |= {"data": stacked.data, "indices": stacked.indices, "indptr": stacked.indptr}
            arrays["dim"] = np.array(self.dim)
        else:
            arrays["X"] = stack_of(matrices)
        return arrays | preparation_arrays(self.preparation)

    @classmethod
    def from_file_arrays(cls, arrays: dict[str, Any]) -> RegressionTasks:
        y = labels_from(arrays)
        ends = row_ends(arrays, len(y))
        if "X" in arrays:
            X = entry(arrays, "X", "f", 2)
            if len(X) != len(y):
                raise ForgettingError(f"{len(X)} rows for {len(y)} labels")
            matrices: list[Any] = np.split(X, ends[:-1])
        else:
            matrices = sparse_parts(arrays, ends)
        labels = np.split(y, ends[:-1])
        index = as_index(entry(arrays, "index", "iu", 1), len(ends), "index")
        names = words(arrays, "names", len(index))
        tasks = RegressionTasks(
            [matrices[i] for i in index], [labels[i] for i in index], names=names, **linear_options_from(arrays)
        )
        if "rows_read" in arrays:
            tasks.rows_read = entry(arrays, "rows_read", "i", 1).astype(np.int64)
            if len(tasks.rows_read) != len(index) or (tasks.rows_read < tasks.num_rows).any():
                raise ForgettingError("entry 'rows_read' must hold at least the number of rows of each task")
        if "classes" in arrays:
            tasks.classes = classes_from(arrays, len(index), tasks.outputs)
        tasks.preparation = preparation_from(arrays, tasks.dim)
        steps = () if tasks.preparation is None else tasks.preparation.steps
        tasks.notes = tuple(note for step in steps for note in step.notes())
        return tasks

    @property
    def num_tasks(self) -> int:
        return len(self._index)

    @property
    def num_rows(self) -> IntArray:
        return self._sizes[self._index]

    @property
    def index(self) -> IntArray:
        """For each task, the number of its distinct task: identical tasks have the same number.

        >>> import forgetting as fg
        >>> fg.families.repeated(fg.families.two_lines(0.5), 2).index.tolist()
        [0, 1, 0, 1]
        """
        return read_only(self._index)

    def task(self, task: int) -> tuple[Matrix, Array]:
        """(X_m, y_m) as given, read-only."""
        distinct = self._index[as_task(task, self.num_tasks)]
        return self._matrices[distinct], self._labels[distinct]

    @property
    def data(self) -> RegressionTasks:
        """The tasks themselves."""
        return self

    def with_data(
        self,
        matrices: Sequence[Any],
        labels: Sequence[Any],
        names: Sequence[str] | None = None,
        loss: Literal["sum", "mean"] | None = None,
    ) -> RegressionTasks:
        """Tasks of other data, with the same tolerances and, unless they are given, the same names and loss.

        As many tasks with as many outputs stand for the same classes.

        >>> import forgetting as fg
        >>> fg.families.two_lines(0.5).with_data([[[1.0]], [[2.0]]], [[1.0], [2.0]])
        RegressionTasks(T=2, d=1, rows=2)
        """
        if loss is not None and as_word(loss, ("sum", "mean"), "loss") != self.loss_kind:
            self.require_rows(f"loss={loss!r}")
        options: dict[str, Any] = {"loss": loss or self.loss_kind, "rank_tol": self.rank_tol, "rtol": self.rtol}
        made = RegressionTasks(matrices, labels, names=self.names if names is None else names, **options)
        if made.num_tasks == self.num_tasks and made.outputs == self.outputs:
            made.classes = self.classes
        return made

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The loss and the tolerances, then the data of each task; identical tasks give the same objects."""
        yield self.loss_kind, self.rank_tol, self.rtol
        yield from (self.task(m) for m in range(self.num_tasks))

    @cached_property
    def _divisors(self) -> Array:
        """The divisor of the squared loss of each distinct task: 1, or n_m for a mean loss."""
        if self.loss_kind == "sum":
            return read_only(np.ones(len(self._sizes)))
        return read_only(self._sizes.astype(np.float64))

    @cached_property
    def geometry(self) -> Geometry:
        exact = self.rows_read is None  # factors are rounded: no more digits than those of float64 are known
        return _geometry.from_data(self._matrices, self._labels, self._divisors, self._index, self.rank_tol, exact)

    @cached_property
    def own_rows(self) -> OwnRows:
        """The tasks by their own rows, for linear schemes: memory proportional to the nonzeros, no joint row space."""
        return _geometry.from_rows(self._matrices, self._labels, self._divisors, self._index, self.rank_tol)

    @cached_property
    def steps_on_own_rows(self) -> bool:
        """Whether linear schemes step on the rows as they were given, and not in a frame of the joint row space.

        That is so for sparse tasks and tasks of one row, if the reduction of N rows with d columns to a joint row space
        would take about half a second or more: N d min(N, d) > 1e9. It depends on shapes and sparsity alone.

        >>> import forgetting as fg
        >>> fg.families.two_lines(0.5).steps_on_own_rows
        False
        """
        rows = float(self._sizes.sum())
        if rows * self.dim * min(rows, self.dim) <= LARGE:
            return False
        return self._sparse or bool(np.all(self._sizes == 1))

    @property
    def directions(self) -> Directions:
        """The directions on which linear schemes step: `own_rows` if `steps_on_own_rows`, else the geometry."""
        return self.own_rows if self.steps_on_own_rows else self.geometry

    def adopt(self, geometry: Geometry) -> None:
        data = _geometry.Data(self._matrices, self._labels, self._divisors)
        super().adopt(replace(geometry, data=data if self.rows_read is None else None))

    def equations(self, task: int) -> tuple[Matrix, Array]:
        """(A, b) with L_m(w) = 1/2 |A w - b|^2: the data, or the data divided by n_m^(1/2) for a mean loss."""
        weight = self._divisors[self._index[task]] ** -0.5
        matrix, label = self.task(task)
        return matrix * weight, label * weight

    def task_loss(self, task: int, w: Any) -> float:
        """L_m(w), computed from the data."""
        return self._distinct_loss(int(self._index[as_task(task, self.num_tasks)]), self.point(w))

    def task_losses(self, w: Any) -> Array:
        """L_m(w) for every task, computed from the data."""
        point = self.point(w)
        if self.steps_on_own_rows:
            missed = np.asarray(stack_of(self._matrices) @ point - stack_of(self._labels))
            return (0.5 * row_sums(squared_rows(missed), offsets_of(self._sizes)) / self._divisors)[self._index]
        return np.array([self._distinct_loss(distinct, point) for distinct in range(len(self._matrices))])[self._index]

    def _distinct_loss(self, distinct: int, w: Array) -> float:
        missed = self._matrices[distinct] @ w - self._labels[distinct]
        return 0.5 * float(np.vdot(missed, missed) / self._divisors[distinct])

    def output(self, o: int) -> RegressionTasks:
        """The tasks of one of several outputs, with vectors as labels.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.6, 0.8]]], [[[1.0, 2.0]], [[0.6, 0.0]]])
        >>> tasks.outputs, tasks.output(1).task(0)[1]
        (2, array([2.]))
        """
        if self.outputs is None:
            raise InvalidInputError("these tasks have one output; there is none to choose")
        column = as_index([o], self.outputs, "output")[0]
        pairs = [self.task(m) for m in range(self.num_tasks)]
        alone = self.with_data([X for X, _ in pairs], [y[:, column] for _, y in pairs])
        alone.rows_read = self.rows_read
        return alone

    def prepared(
        self,
        intercept: bool = False,
        standardize: Literal["all", "first"] | None = None,
        features: Any = None,
        seed: Seed = 0,
        loss: Literal["sum", "mean"] | None = None,
    ) -> RegressionTasks:
        """The same tasks with X replaced: a feature map, then standardized columns, then a last column of ones.

        `preparation` of the result is what was done: `preparation.apply(X)` does the same with other rows, such as test
        data, and `preparation.apply_to(tasks)` with other tasks. It is saved with the tasks.

        Args:
            intercept: whether a last column of ones is added; w then has one more entry, which is learned like others.
            standardize: whether each feature is replaced by (x - mean) / deviation: those of the rows of "all" tasks
                (a task that is there twice counts twice), or of the "first", which is all that a learner has seen
                when it begins. Columns that are constant there become 0, and a note says so. Sparse X is refused,
                since it would be dense.
            features: a number of random ReLU features, a `RandomFeatures`, another function of X, or a fitted
                scikit-learn transformer.
            seed: of the random features, where `features` is their number.
            loss: "sum" or "mean"; that of these tasks if left out.

        Cost: a few passes over X.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0], [3.0]], [[5.0], [7.0]]], [[1.0, 2.0], [3.0, 4.0]])
        >>> tasks.prepared(standardize="first", intercept=True).task(1)[0].tolist()
        [[3.0, 1.0], [5.0, 1.0]]
        """
        return prepare(self, intercept, standardize, features, seed, loss)

    def __repr__(self) -> str:
        several = "" if self.outputs is None else f", outputs={self.outputs}"
        return f"RegressionTasks(T={self.num_tasks}, d={self.dim}, rows={self.num_rows.sum()}{several})"
