"""Class-incremental benchmarks: labelled rows, whose classes are dealt to tasks in many ways, the class orders."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrangements import OrderedPartitions
from forgetting.core.arrays import (
    Array,
    IntArray,
    Seed,
    as_count,
    as_list,
    as_word,
    check_finite,
    is_sparse,
    read_only,
    real_array,
    seed_from,
)
from forgetting.core.text import joined, large, nearest
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import Matrix
from forgetting.results import Shown
from forgetting.tasks.labels import LISTED, RowClasses, one_hot, row_classes
from forgetting.tasks.readers.loading import labelled_rows
from forgetting.tasks.regression import RegressionTasks

__all__ = ["ClassSplits"]

MOST_LISTED = 400_000  # orders that `orders` lists
Classes = Literal["all", "task"]


class ClassSplits(Shown):
    """A class-incremental benchmark: rows with classes, and T tasks to which the classes are dealt.

    A class order says which classes are learned together in a task, and the order of these tasks: an ordered partition
    of the classes into tasks of the given sizes. `fg.audit` compares class orders, and `tasks(order)` are the
    regression tasks of one of them, for `fg.run`, `fg.expect` and all else.

    Args:
        X: a row of features for each example, dense or scipy.sparse; also a DataFrame of numbers.
        labels: the class of every row, whole numbers or words.
        tasks: the number of tasks, or the number of classes of each task. If a number of tasks does not divide the
            number of classes, the first tasks have one class more than the others.
        test: (X, labels), held-out rows of the same classes; accuracies are then those of these rows, and of the
            learned rows otherwise.
        classes: "all" for an output for each class; predictions are then among the classes seen so far
            (class-incremental learning). "task" if the task of a row is known when the row is predicted: outputs stand
            for the first, second, ... class of a task, and predictions are among the classes of the task.

    >>> import forgetting as fg
    >>> X, labels = np.eye(6), ["cat", "dog", "owl", "cat", "dog", "owl"]
    >>> splits = fg.ClassSplits(X, labels, tasks=2)
    >>> splits
    ClassSplits(3 classes in 2 tasks of 2 and 1, 6 rows, d=6)
    >>> splits.num_orders, splits.num_sets
    (3, 6)
    >>> splits.tasks(["owl", "cat", "dog"]).names
    ('cat, owl', 'dog')
    """

    #: the audit that `fg.audit` makes of these objects
    audited_as: ClassVar[str] = "class orders"
    #: the remedy in errors of functions that take tasks
    instead_of_tasks: ClassVar[str] = (
        "its class order is open: give splits.tasks(order), the tasks of one class order, such as "
        "splits.tasks(splits.class_names); fg.audit(splits) compares class orders"
    )

    def __init__(
        self,
        X: Any,
        labels: Any,
        tasks: int | Sequence[int] = 5,
        test: tuple[Any, Any] | None = None,
        classes: Classes = "all",
    ) -> None:
        self.classes: Classes = as_word(classes, ("all", "task"), "classes")
        self._X, self._codes, self.class_names = _labelled(X, labels, "")
        #: the class orders, by the numbers of the classes
        self.partitions = OrderedPartitions(_sizes(tasks, self.num_classes))
        self._test = None if test is None else self._held_out(test)

    @classmethod
    def from_table(
        cls,
        table: Any,
        tasks: int | Sequence[int] = 5,
        test: Any = None,
        classes: Classes = "all",
        *,
        label: str = "y",
        drop: str | Sequence[str] = (),
        drop_nan: bool = False,
    ) -> ClassSplits:
        """A benchmark from a DataFrame, or from a CSV, TSV, Parquet or npz file as `fg.load` reads it.

        Args:
            table: the rows; a column holds the classes, and all others are features.
            tasks, classes: as for `ClassSplits`.
            test: held-out rows, a table with the same columns.
            label: the column of classes.
            drop: columns that are no features. A column called "task" is none, either.
            drop_nan: leave out rows with a missing number; otherwise they are refused.

        >>> import forgetting as fg
        >>> table = {"X": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], "y": ["cat", "dog", "owl"]}
        >>> fg.ClassSplits.from_table(table, tasks=3).class_names
        ('cat', 'dog', 'owl')
        """
        X, labels, features = labelled_rows(table, label, drop, drop_nan)
        held = None
        if test is not None:
            *held, names = labelled_rows(test, label, drop, drop_nan)
            if names != features:
                odd = next(name for name in (*names, *features) if name not in names or name not in features)
                raise InvalidInputError(f"test: the column {odd!r:.60} is not in both tables; features are the same")
        return cls(X, labels, tasks, None if held is None else (held[0], held[1]), classes)

    def _held_out(self, test: Any) -> tuple[Matrix, IntArray]:
        """The held-out rows, and the numbers of their classes."""
        pair = as_list(test, "test")
        if len(pair) != 2:
            raise InvalidInputError(f"test: expected (X, labels), got {len(pair)} parts")
        X, codes, names = _labelled(pair[0], pair[1], "test: ")
        if X.shape[1] != self.dim:
            raise InvalidInputError(f"test: X has {X.shape[1]} columns, but the learned rows have {self.dim}")
        places = {name: place for place, name in enumerate(self.class_names)}
        for code, name in enumerate(names):
            if name not in places:
                row = int(np.argmax(codes == code))
                raise InvalidInputError(
                    f"test: row {row} is of the class {name!r:.60}, which was never learned{nearest(name, places)}"
                )
        missing = [name for name in self.class_names if name not in names]
        if missing:
            raise InvalidInputError(
                f"test: no rows of {_classes(missing)}; a benchmark needs held-out rows of each class"
            )
        return X, np.array([places[name] for name in names])[codes]

    # ------------------------------------------------------------------------------------------------- what there is

    @property
    def dim(self) -> int:
        """d, the number of features."""
        return int(self._X.shape[1])

    @property
    def num_classes(self) -> int:
        """The number of classes C."""
        return len(self.class_names)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of classes of each task."""
        return self.partitions.sizes

    @property
    def num_tasks(self) -> int:
        """The number of tasks T."""
        return len(self.sizes)

    @property
    def num_rows(self) -> IntArray:
        """The number of rows of each class that are learned."""
        return np.bincount(self._codes, minlength=self.num_classes)

    @property
    def has_test(self) -> bool:
        """Whether there are held-out rows, which accuracies are then of."""
        return self._test is not None

    @property
    def num_orders(self) -> int:
        """C! / prod c_t!, the number of class orders for tasks of c_1, ..., c_T classes.

        >>> ClassSplits(np.eye(10), range(10), tasks=5).num_orders
        113400
        """
        return self.partitions.count

    @property
    def num_sets(self) -> int:
        """The number of sets of classes that can be a task.

        >>> ClassSplits(np.eye(10), range(10), tasks=5).num_sets
        45
        """
        return self.partitions.num_sets

    # -------------------------------------------------------------------------------------------------- class orders

    def orders(self) -> NDArray[np.str_]:
        """All class orders, one per row: the classes of the first task, of the second task, ...; of a task, sorted.

        >>> ClassSplits(np.eye(3), ["a", "b", "c"], tasks=[1, 2]).orders().tolist()
        [['a', 'b', 'c'], ['b', 'a', 'c'], ['c', 'a', 'b']]
        """
        if self.num_orders > MOST_LISTED:
            raise NotSupportedError(
                f"there are {large(self.num_orders)} class orders, too many to list; draw(n) draws some of them"
            )
        return np.array(self.class_names)[self.partitions.all()]

    def draw(self, n: int, seed: Seed = 0) -> NDArray[np.str_]:
        """n random class orders, each drawn from all class orders with the same probability; rows as in `orders`.

        >>> ClassSplits(np.eye(4), ["a", "b", "c", "d"], tasks=2).draw(2).tolist()
        [['a', 'c', 'b', 'd'], ['c', 'd', 'a', 'b']]
        """
        rng = np.random.default_rng(seed_from(seed))
        return np.array(self.class_names)[self.partitions.draw(as_count(n, "n", least=1), rng)]

    # --------------------------------------------------------------------------------------------------------- tasks

    def tasks(self, order: Any) -> RegressionTasks:
        """The tasks of a class order, to be run, audited and so on; their learned rows.

        `run.accuracy` of these tasks is among all classes, also those that no task has shown yet; the audit of class
        orders compares classes seen so far. After the last task both are the same.

        Args:
            order: names of all classes, task after task (a row of `orders` or `draw`), or a list of names for each
                task. Classes that are numbers may be given as numbers.

        >>> import forgetting as fg
        >>> splits = fg.ClassSplits(np.eye(4), [3, 7, 8, 9], tasks=2)
        >>> fg.run(splits.tasks([9, 3, 8, 7]), "cyclic", k=2).accuracy[-1].tolist()
        [1.0, 1.0]
        """
        return self._of_order(codes_of(self, order), self._X, self._codes)

    def test_tasks(self, order: Any) -> RegressionTasks:
        """The held-out rows of the tasks of a class order, for `test=` of `fg.expect` and `fg.audit`.

        >>> import forgetting as fg
        >>> splits = fg.ClassSplits(np.eye(2), [3, 7], tasks=2, test=([[1.0, 0.5], [0.0, 1.0]], [3, 7]))
        >>> tasks, held = splits.tasks([7, 3]), splits.test_tasks([7, 3])
        >>> float(fg.expect(tasks, "cyclic", k=2, quantities=["test_accuracy"], test=held).values["test_accuracy"])
        1.0
        """
        if self._test is None:
            raise NotSupportedError("there are no held-out rows: give ClassSplits test=(X, labels)")
        return self._of_order(codes_of(self, order), *self._test)

    def _of_order(self, codes: IntArray, X: Matrix, labels: IntArray) -> RegressionTasks:
        parts = np.split(codes, self.partitions.cuts[1:-1])
        members = [np.flatnonzero(np.isin(labels, part)) for part in parts]
        targets, named = one_hot(RowClasses(self.class_names, labels), members, self.classes)
        names = [", ".join(self.class_names[code] for code in part) for part in parts]
        tasks = RegressionTasks([X[rows] for rows in members], targets, names=names, copy=False)
        tasks.classes = named
        return tasks

    # ------------------------------------------------------------------------------------------------- looking at it

    @property
    def headline(self) -> str:
        sizes = set(self.sizes)
        each = f"{self.sizes[0]}" if len(sizes) == 1 else joined(map(str, self.sizes))
        held = f", {len(self._test[1])} held out" if self._test is not None else ""
        dealt = f"{self.num_classes} classes in {self.num_tasks} tasks of {each}"
        return f"ClassSplits({dealt}, {len(self._codes)} rows{held}, d={self.dim})"

    def __repr__(self) -> str:
        return self.headline

    def _num_rows(self) -> int:
        return self.num_classes

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        columns = {"class": [self.class_names[row] for row in rows], "rows": self.num_rows[rows]}
        if self._test is not None:
            columns["held out"] = np.bincount(self._test[1])[rows]
        return columns


# ------------------------------------------------------------------------------------------------------ for the audit


def codes_of(splits: ClassSplits, order: Any) -> IntArray:
    """The numbers of the classes of an order that a user wrote: names, task after task, or a list for each task."""
    parts = [as_list(part, "order") for part in order] if _is_nested(order) else None
    if parts is not None and tuple(map(len, parts)) != splits.sizes:
        raise InvalidInputError(
            f"order: tasks of {joined(str(len(part)) for part in parts)} classes, but the benchmark has tasks of "
            f"{joined(map(str, splits.sizes))}"
        )
    words = as_list(order, "order") if parts is None else [name for part in parts for name in part]
    names = [str(word) for word in words]
    for place, name in enumerate(names):
        if name not in splits.class_names:
            raise InvalidInputError(f"order[{place}]: no class {name!r:.60}{nearest(name, splits.class_names)}")
    missing = [name for name in splits.class_names if name not in names]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if missing or twice:
        wrong = [f"without {_classes(missing)}"] if missing else []
        wrong += [f"with {_classes(twice)} more than once"] if twice else []
        raise InvalidInputError(
            f"order: a class order names each of the {splits.num_classes} classes once; got one {' and '.join(wrong)}"
        )
    codes = np.array([[splits.class_names.index(name) for name in names]])
    return np.asarray(splits.partitions.sorted(codes)[0])


def scored_rows(splits: ClassSplits) -> tuple[Matrix, IntArray]:
    """The rows that accuracies are of, and the numbers of their classes: held-out rows if there are any."""
    return (splits._X, splits._codes) if splits._test is None else splits._test


def learned_rows(splits: ClassSplits) -> tuple[Matrix, IntArray, Array]:
    """The rows that are learned, the numbers of their classes, and the target of each in the column of its class.

    Classes of many more rows than features are reduced, to about as many rows as there are features (R of
    [X_c | 1] = Q R): the solutions of each set of classes stay the same.
    """
    X, labels, ones = splits._X, splits._codes, np.ones(len(splits._codes))
    if is_sparse(X) or splits.num_rows.max() <= 2 * (splits.dim + 1):
        return X, labels, ones
    order = np.argsort(labels, kind="stable")
    small = RegressionTasks.from_source(X[order], ones, sizes=splits.num_rows.tolist(), cache=False)
    parts = [small.task(code) for code in range(splits.num_classes)]
    return (
        np.concatenate([part for part, _ in parts]),
        np.repeat(np.arange(splits.num_classes), [len(part) for part, _ in parts]),
        np.concatenate([target for _, target in parts]),
    )


# -------------------------------------------------------------------------------------------------------------- checks


def _labelled(X: Any, labels: Any, what: str) -> tuple[Matrix, IntArray, tuple[str, ...]]:
    """Rows and the numbers of their classes, checked, and the names of the classes."""
    matrix: Matrix
    if is_sparse(X):
        matrix = X.tocsr().astype(np.float64)
        check_finite(matrix, f"{what}X", squares=True)
    else:
        matrix = read_only(np.array(real_array(X, f"{what}X", squares=True)))
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInputError(f"{what}X: expected a matrix with a row for each example, got shape {matrix.shape}")
    try:
        known = row_classes(labels)
    except InvalidInputError as error:
        raise InvalidInputError(f"{what}{error}") from None
    if len(known.codes) != matrix.shape[0]:
        raise InvalidInputError(f"{what}X has {matrix.shape[0]} rows, but there are {len(known.codes)} labels")
    return matrix, known.codes, known.names


def _sizes(tasks: Any, classes: int) -> tuple[int, ...]:
    """The number of classes of each task, from the number of tasks or from the numbers themselves.

    >>> _sizes(3, 10), _sizes([2, 8], 10)
    ((4, 3, 3), (2, 8))
    """
    if isinstance(tasks, str) or (isinstance(tasks, Sized) and not len(tasks)):
        raise InvalidInputError(
            f"tasks: expected a number of tasks, or the number of classes of each, got {tasks!r:.40}"
        )
    if isinstance(tasks, Iterable):
        sizes = tuple(as_count(size, f"tasks[{place}]", least=1) for place, size in enumerate(as_list(tasks, "tasks")))
        if sum(sizes) != classes:
            raise InvalidInputError(
                f"tasks: sizes {', '.join(map(str, sizes)):.80} sum to {sum(sizes)}, but there are {classes} classes"
            )
    else:
        number = as_count(tasks, "tasks", least=1)
        if number > classes:
            raise InvalidInputError(
                f"tasks = {number}, but there {'is' if classes == 1 else 'are'} only {classes} "
                f"class{'' if classes == 1 else 'es'}, and each task learns at least one"
            )
        sizes = tuple(classes // number + (place < classes % number) for place in range(number))
    if len(sizes) < 2:
        raise InvalidInputError("one task learns all classes at once and has no class order; give two tasks or more")
    return sizes


def _is_nested(order: Any) -> bool:
    """Whether an order has a list of classes for each task."""
    parts = order if isinstance(order, list | tuple) else ()
    return len(parts) > 0 and all(isinstance(part, list | tuple | np.ndarray) for part in parts)


def _classes(names: Sequence[str]) -> str:
    """Names of classes in words, the first few of them."""
    more = [f"{len(names) - LISTED} more"] if len(names) > LISTED else []
    return f"class{'es' if len(names) > 1 else ''} {joined([*(repr(name) for name in names[:LISTED]), *more])}"
