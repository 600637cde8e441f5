"""Matrices of the accuracies of networks that were trained anywhere: R[run, step, task], from arrays and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np

from forgetting.core.arrays import (
    Array,
    IntArray,
    any_array,
    as_list,
    as_path,
    as_word,
    numbers,
    read_only,
    task_numbers,
)
from forgetting.core.text import counted, error_words, first_repeated, one_line
from forgetting.dynamics.matrix_doubts import Doubt, doubts_of
from forgetting.errors import InvalidInputError, ProblemFileError
from forgetting.figures.items import Matrix
from forgetting.files.accuracy_files import holds_accuracies, read_matrices, read_runs
from forgetting.files.accuracy_logs import LoggedRun
from forgetting.files.arrays import read_arrays
from forgetting.files.records import format_name
from forgetting.orderings.base import NO_UPDATE
from forgetting.results import Result

DRAWN = 60  # steps and tasks of a picture


@dataclass(frozen=True, eq=False, repr=False)
class AccuracyMatrices(Result):
    """The accuracies of one or many runs: `values[run, step, task]`, where step i is after the i-th task was learned.

    `fg.audit` reads them: metrics in the convention of each library, uncertainty over runs, how much the order matters.
    Accuracies are fractions or per cent, whatever they were; NaN is what was not evaluated. Nothing is changed
    silently: `doubts` has the signs of another convention, such as rows that are shifted by one.

    Attributes:
        values: (T, T) for one run, or (runs, steps, T); also with one row more, from before learning; or rows of
            different lengths, each with the tasks so far.
        orders: the task that each step learned, (steps,) for all runs or (runs, steps), -1 for none; left out if step i
            learns column i.
        before: (runs, T), the accuracies before learning; True says that the first row has them, False that no row has;
            if left out, one row more than tasks is such a row.
        names: the names of the tasks; if left out, the columns of a DataFrame, or numbers.
        runs: the names of the runs; their numbers if left out.
        order_names: for each run words for its order, which runs with the same order share, if columns are places in
            the order and not tasks: the classes in their order, or its seed. Made of `orders` if left out; "" is an
            order that is not known.
        notes: where the numbers are from.

    >>> R = AccuracyMatrices([[0.9, 0.1], [0.6, 0.8]])
    >>> R.values.shape, R.unit, R.doubts
    ((1, 2, 2), 'fraction', ())
    """

    kind = "accuracy matrices"
    audited_as = "accuracy matrices"
    #: the remedy in errors of functions that take tasks
    instead_of_tasks = "accuracies are no tasks; fg.audit(R) reads them"

    values: Array
    orders: IntArray | None = None
    before: Array | None = None
    names: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    order_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        values, said = _matrices(self.values), self.before
        T = values.shape[2]
        names = _names(self.names or _columns_of(self.values), T, "names", "task")
        orders = _orders(self.orders, names, len(values))
        steps = T if orders is None else orders.shape[1]
        notes = tuple(map(str, as_list(self.notes, "notes")))
        before = None
        flagged = said is None or isinstance(said, bool | np.bool_)
        has_row = flagged and (bool(said) if said is not None else values.shape[1] == steps + 1)
        if has_row:
            before, values = values[:, 0], values[:, 1:]
            if said is None:
                notes += ("the first row is from before learning: there is one row more than steps",)
        elif not flagged:
            before = np.atleast_2d(numbers(said, "before"))
            if before.shape == (1, T):
                before = np.repeat(before, len(values), axis=0)
            if before.shape != (len(values), T):
                raise InvalidInputError(f"before: expected shape {(len(values), T)}, got {before.shape}")
        if values.shape[1] != steps:
            turned = "; for tasks x steps give the transpose" if values.shape[1] in (T - 1, T - 2) else ""
            raise InvalidInputError(
                f"values: {values.shape[1]} rows after learning for {steps} steps and {T} tasks; give a row after each "
                f"step, and at most one from before learning first{turned}"
            )
        runs = _names(self.runs, len(values), "runs", "run")
        _check_learned(values, orders, runs, names)
        for where, rows in (("", values), (", before learning", before)):
            _check_range(rows, runs, names, where)
        kinds = tuple(map(str, as_list(self.order_names, "order_names"))) or _order_words(orders, len(values), T)
        if len(kinds) != len(values):
            raise InvalidInputError(f"order_names: {len(kinds)} for {len(values)} runs")
        for name, array in (("values", values), ("orders", orders), ("before", before)):
            object.__setattr__(self, name, None if array is None else read_only(array))
        for name, words in (("names", names), ("runs", runs), ("order_names", kinds), ("notes", notes)):
            object.__setattr__(self, name, words)

    # --------------------------------------------------------------------------------------------------- sources

    @classmethod
    def load(
        cls,
        path: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        classifier: str = "CNN",
        stream: str | None = None,
    ) -> AccuracyMatrices:
        """Read one or several files; what a file is shows in its content, and nothing is unpickled.

        - CSV: a matrix (a row for each step, with the names of the tasks above if there are any), or the columns step,
          task and accuracy, also run (runs that are stacked) and learned (the task that the step learned);
        - npz: an array R, (steps, tasks) or (runs, steps, tasks), and orders, before, names, runs, order_names if there
          are; npy; JSON: lists of rows; what `save` wrote;
        - Avalanche: what a TextLogger or an InteractiveLogger wrote, eval_results.csv of a CSVLogger, the list of what
          `eval` returned after each experience or `get_all_metrics()`, saved as JSON; Mammoth: logs.pyd; PyCIL and
          PILOT: the log file, or the captured output.

        Runs of several files are stacked. Damaged files raise errors that name the line and the value.

        Args:
            path: the file, or several.
            classifier: "CNN" or "NME", of PyCIL and PILOT.
            stream: the evaluation stream of Avalanche ("test" or the only one if left out).

        >>> import tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "R.csv")
        ...     _ = file.write_text("cats,dogs\\n0.9,\\n0.6,0.8\\n")
        ...     AccuracyMatrices.load(file).names
        ('cats', 'dogs')
        """
        as_word(classifier, ("CNN", "NME"), "classifier")
        paths = [path] if isinstance(path, str | PathLike) else as_list(path, "path")
        if not paths:
            raise InvalidInputError("path: no file was given")
        parts = []
        for name in map(as_path, paths):
            if name.suffix.lower() in (".npz", ".npy"):
                parts.append(cls._from_arrays(name))
                continue
            read = read_runs(name, classifier, stream)
            try:
                parts.append(_stacked(read))
            except (InvalidInputError, ProblemFileError) as error:
                raise ProblemFileError(f"{name}: {error}") from error
        return parts[0] if len(parts) == 1 else _joined(parts)

    @classmethod
    def _from_arrays(cls, path: Any) -> AccuracyMatrices:
        if path.suffix.lower() == ".npz" and "format" in read_arrays(path, only="format"):
            return super().load(path)
        fields = read_matrices(path)
        for name in ("names", "runs", "order_names"):
            if name in fields:
                fields[name] = tuple(map(str, np.ravel(fields[name]).tolist()))
        try:
            return cls(**fields)
        except InvalidInputError as error:
            raise ProblemFileError(f"{path}: {error}") from error

    @classmethod
    def from_predictions(cls, predictions: Any, labels: Any, tasks: Any, **fields: Any) -> AccuracyMatrices:
        """The matrix of one run from what was predicted after each step: for each test row its label and its task.

        Args:
            predictions, labels, tasks: lists with an entry for each step: vectors with an entry for each test row;
                tasks are numbered from 0.
            **fields: as for `AccuracyMatrices`.

        >>> AccuracyMatrices.from_predictions([[1, 0], [1, 1]], [[1, 1], [1, 1]], [[0, 1], [0, 1]]).values.tolist()
        [[[1.0, 0.0], [1.0, 1.0]]]
        """
        lists = [as_list(given, "predictions, labels and tasks") for given in (predictions, labels, tasks)]
        if not lists[0] or len({len(given) for given in lists}) > 1:
            raise InvalidInputError(
                f"{len(lists[0])} predictions, {len(lists[1])} labels and {len(lists[2])} tasks; give an entry for "
                "each step, equally many"
            )
        rows: list[dict[int, float]] = []
        for step, parts in enumerate(zip(*lists, strict=True)):
            predicted, label, task = (np.ravel(any_array(part, f"step {step}")) for part in parts)
            if not predicted.shape == label.shape == task.shape:
                raise InvalidInputError(
                    f"step {step}: {predicted.size} predictions, {label.size} labels and {task.size} tasks"
                )
            real = task.dtype.kind in "biuf" and task.size > 0
            if not real or (task != np.floor(task)).any() or task.min() < 0 or task.max() >= 10_000:
                raise InvalidInputError(f"step {step}: expected the number of a task for each test row, from 0")
            rows.append({int(t): float(np.mean((predicted == label)[task == t])) for t in np.unique(task)})
        T = max(map(max, rows)) + 1
        return cls(np.array([[row.get(task, np.nan) for task in range(T)] for row in rows]), **fields)

    @classmethod
    def from_continuum(cls, logger: Any, subset: str = "test", **fields: Any) -> AccuracyMatrices:
        """The matrix in a `Logger` of Continuum, or in its `logger_dict`: the last epoch of each task.

        Continuum saves this dictionary as a pickle, which is never loaded here: load it yourself if you trust it.

        >>> epoch = {"predictions": np.ones(2), "targets": np.array([1, 0]), "task_ids": np.zeros(2)}
        >>> AccuracyMatrices.from_continuum({"test": {"performance": [[epoch]]}}).values.tolist()
        [[[0.5]]]
        """
        logged = getattr(logger, "logger_dict", logger)
        try:
            epochs = [task[-1] for task in logged[subset]["performance"]]
            kept = [epoch for epoch in epochs if len(epoch["predictions"])]
            parts = [[epoch[key] for epoch in kept] for key in ("predictions", "targets", "task_ids")]
        except (KeyError, IndexError, TypeError) as error:
            raise InvalidInputError(
                f"logger: expected a Logger of Continuum with the subset {subset!r:.40} ({error_words(error)})"
            ) from None
        return cls.from_predictions(*parts, **{"notes": (f"Continuum, subset {subset}",), **fields})

    # --------------------------------------------------------------------------------------------------- figures

    @property
    def num_runs(self) -> int:
        """The number of runs."""
        return len(self.values)

    @property
    def num_tasks(self) -> int:
        """The number of tasks T."""
        return int(self.values.shape[2])

    @property
    def unit(self) -> str:
        """'per cent' if an accuracy is larger than 1, else 'fraction'."""
        return "per cent" if np.nanmax(self.values) > 1.0 else "fraction"

    @cached_property
    def doubts(self) -> tuple[Doubt, ...]:
        """The signs of another convention: shifted rows, tasks x steps, columns by place, mixed units."""
        return doubts_of(self.values, self.orders, self.before)

    @property
    def headline(self) -> str:
        steps, unit = self.values.shape[1], "fractions" if self.unit == "fraction" else self.unit
        runs = f"{self.num_runs} runs, " if self.num_runs > 1 else ""
        return f"accuracies of {counted(self.num_tasks, 'task')} after {counted(steps, 'step')}, {runs}in {unit}"

    def _num_rows(self) -> int:
        return self.values.size

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        run, step, task = np.unravel_index(rows, self.values.shape)
        learned = np.tile(np.arange(self.values.shape[1]), (self.num_runs, 1)) if self.orders is None else self.orders
        return {
            "run": [self.runs[i] for i in run],
            "step": step.tolist(),
            "learned": [self.names[i] if i >= 0 else "" for i in learned[run, step]],
            "task": [self.names[i] for i in task],
            "accuracy": self.values[run, step, task].tolist(),
        }

    def figure(self) -> Matrix:
        """The mean accuracies over runs, in per cent: a row for each step."""
        mean, columns, by_place = mean_matrix(self)
        return drawn_matrix(mean / (100.0 if self.unit == "per cent" else 1.0), columns, by_place, self.num_runs)

    def _remarks(self) -> tuple[str, ...]:
        return (*map(str, self.doubts), *self.notes)


def known_mean(values: Array) -> Any:
    """The mean over runs, the first axis, of what is not NaN; NaN where no run has a value.

    >>> known_mean(np.array([[1.0, np.nan], [np.nan, np.nan]])).tolist()
    [1.0, nan]
    """
    counts = (~np.isnan(values)).sum(axis=0)
    return np.where(counts > 0, np.nansum(values, axis=0) / np.maximum(counts, 1), np.nan)


def mean_matrix(matrices: AccuracyMatrices) -> tuple[Array, tuple[str, ...], bool]:
    """The mean matrix over runs, the names of its columns, and whether they are places in the order.

    Columns are brought into the order of learning where the orders differ. They have it already where runs have
    different orders of classes, and no tasks in common.

    >>> R = AccuracyMatrices([[[1.0, 0.5], [0.0, 0.5]], [[0.5, 1.0], [0.5, 0.0]]], [[0, 1], [1, 0]], names=("a", "b"))
    >>> mean_matrix(R)
    (array([[1. , 0.5],
           [0. , 0.5]]), ('1', '2'), True)
    """
    values, orders, names = matrices.values, matrices.orders, matrices.names
    places = tuple(str(place + 1) for place in range(values.shape[1]))
    if orders is None:
        by_place = len(set(matrices.order_names)) > 1
        numbered = names == tuple(map(str, range(len(names))))
        return known_mean(values), places if by_place and numbered else names, by_place
    if (orders == orders[0]).all() or any(len(set(o)) < len(o) or min(o) < 0 for o in orders.tolist()):
        return known_mean(values), names, False
    return known_mean(np.take_along_axis(values, orders[:, None, :], axis=2)), places, True


def drawn_matrix(mean: Array, columns: Sequence[str], by_place: bool, runs: int) -> Matrix:
    """The picture of a mean matrix, in per cent; of many steps and tasks, some that are evenly spaced."""
    rows, kept = (np.unique(np.linspace(0, n - 1, min(n, DRAWN)).round().astype(int)) for n in mean.shape)
    values = tuple(tuple(None if v != v else 100 * v for v in row) for row in mean[np.ix_(rows, kept)].tolist())
    several = f", mean over {runs} runs" if runs > 1 else ""
    some = f" {len(rows)} of {len(mean)} steps and {len(kept)} of {len(columns)} tasks are drawn."
    caption = f"Row i is after the i-th task was learned.{some if values and max(mean.shape) > DRAWN else ''}"
    return Matrix(
        "matrix", f"Accuracy after each step, %{several}", caption, "place in the order" if by_place else "task",
        "after step", tuple(str(row + 1) for row in rows), tuple(one_line(columns[task], 24) for task in kept), values,
    )  # fmt: skip


def holds_matrices(path: str | PathLike[str]) -> bool:
    """Whether a file is one that `AccuracyMatrices.load` reads and that cannot be meant otherwise, by its content."""
    return holds_accuracies(path, format_name(AccuracyMatrices.kind))


# -------------------------------------------------------------------------------------------------------- the arguments


def _matrices(values: Any) -> Array:
    """(runs, rows, tasks): one run may come without its axis, and rows with the tasks so far get NaN at their end."""
    listed = values.tolist() if isinstance(values, np.ndarray) and values.dtype == object else values
    if isinstance(listed, list | tuple) and listed and all(isinstance(part, list | tuple) for part in listed):
        deep = all(isinstance(row, list | tuple | np.ndarray) for part in listed for row in part)
        listed = [_padded(run, f"run {number}, ") for number, run in enumerate(listed)] if deep else _padded(listed, "")
        if deep and len({np.shape(run) for run in listed}) > 1:
            shapes = " and ".join(dict.fromkeys(f"{len(run)} x {len(run[0])}" for run in listed))
            raise InvalidInputError(f"values: runs have {shapes} rows and columns; give runs of one size together")
    array = numbers(listed, "values")
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or 0 in array.shape:
        raise InvalidInputError(
            f"values: expected steps x tasks, or runs x steps x tasks, got shape {np.shape(listed)}"
        )
    return array


def _padded(rows: Any, where: str) -> list[list[Any]]:
    width = max((len(row) for row in rows), default=0)
    extra = len(rows) == width + 1
    for number, row in enumerate(rows):
        if len(row) < min(number + 1 - extra, width):
            raise InvalidInputError(
                f"values: {where}row {number} has {len(row)} entries; a row has those of all tasks so far, at least "
                f"{number + 1 - extra}"
            )
    return [[np.nan if v is None else v for v in row] + [np.nan] * (width - len(row)) for row in rows]


def _columns_of(values: Any) -> tuple[str, ...]:
    """The names of the columns of a DataFrame, or of several, which must agree; none of anything else."""
    frames = [part for part in (values if isinstance(values, list | tuple) else [values]) if hasattr(part, "columns")]
    columns = [tuple(map(str, frame.columns)) for frame in frames]
    odd = next((names for names in columns if names != columns[0]), None)
    if odd is not None:
        raise InvalidInputError(
            f"values: DataFrames with the columns {', '.join(columns[0]):.60} and {', '.join(odd):.60}; give all runs "
            "the same columns"
        )
    return columns[0] if columns else ()


def _names(given: Any, count: int, what: str, of: str) -> tuple[str, ...]:
    names = tuple(map(str, as_list(given, what))) or tuple(map(str, range(count)))
    if len(names) != count:
        raise InvalidInputError(f"{what}: {len(names)} names for {count} {of}{'s' if count != 1 else ''}")
    repeated = first_repeated(names)
    if repeated is not None and of == "task":
        raise InvalidInputError(f"{what}: two tasks are called {repeated!r:.60}")
    return names


def _orders(given: Any, names: tuple[str, ...], runs: int) -> IntArray | None:
    """(runs, steps), tasks by number; names of tasks are found, and one order is that of all runs."""
    if given is None:
        return None
    listed = given.tolist() if isinstance(given, np.ndarray) else as_list(given, "orders")
    rows = listed if listed and isinstance(listed[0], list | tuple | np.ndarray) else [listed]
    array = any_array([task_numbers(list(row), names, "orders") for row in rows], "orders")
    if array.ndim != 2 or array.dtype.kind not in "iu" or array.size == 0:
        raise InvalidInputError(f"orders: expected numbers of tasks, a row for each run, got {listed!r:.60}")
    if len(array) not in (1, runs):
        raise InvalidInputError(f"orders: {len(array)} orders for {runs} runs")
    if (array == NO_UPDATE).all():
        raise InvalidInputError("orders: no step learned a task (all are -1), so that there is nothing to measure")
    wrong = np.argwhere((array < NO_UPDATE) | (array >= len(names)))
    if wrong.size:
        run, step = wrong[0].tolist()
        raise InvalidInputError(
            f"orders: run {run} learns task {array[run, step]} in step {step}; tasks are 0 to {len(names) - 1}"
        )
    return np.array(np.broadcast_to(array, (runs, array.shape[1])), dtype=np.int64)


def _order_words(orders: IntArray | None, runs: int, T: int) -> tuple[str, ...]:
    """Equal words for equal orders."""
    rows = [list(range(T))] * runs if orders is None else orders.tolist()
    return tuple(" ".join(map(str, row)) for row in rows)


def _check_learned(values: Array, orders: IntArray | None, runs: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Raise if a task was not evaluated right after it was learned."""
    for run, table in enumerate(values):
        order = range(len(table)) if orders is None else orders[run].tolist()
        for step, task in enumerate(order):
            if task >= 0 and np.isnan(table[step, task]):
                raise InvalidInputError(
                    f"values: run {one_line(runs[run], 40)}: task {one_line(names[task], 40)} was not evaluated in row "
                    f"{step}, right after it was learned; give orders= if tasks were learned in another order, and the "
                    "last row, too, if rows come before their tasks"
                )


def _check_range(rows: Array | None, runs: tuple[str, ...], names: tuple[str, ...], where: str) -> None:
    """Raise if a number is no accuracy."""
    if rows is None:
        return
    wrong = np.argwhere((rows < 0) | (rows > 100 * (1 + 1e-9)))
    if wrong.size:
        *place, task = wrong[0].tolist()
        row = f", row {place[1]}" if len(place) > 1 else ""
        raise InvalidInputError(
            f"values: run {one_line(runs[place[0]], 40)}{row}, task {one_line(names[task], 40)}{where}: "
            f"{rows[tuple(wrong[0])]:g} is no accuracy, which is between 0 and 1, or between 0 and 100 per cent"
        )


def _stacked(read: list[LoggedRun]) -> AccuracyMatrices:
    """The runs of one file as one object."""
    if not read:
        raise ProblemFileError("no accuracies")
    tables = [run.matrix() for run in read]
    shapes = {table.shape for table, _ in tables}
    if len(shapes) > 1:
        words = " and ".join(f"{steps} x {tasks}" for steps, tasks in sorted(shapes))
        raise ProblemFileError(f"runs have {words} steps and tasks; give runs of one size together")
    befores = [before for _, before in tables]
    known = [run.order for run in read if run.order is not None]
    identity = known and all(order == tuple(range(len(order))) for order in known)
    return AccuracyMatrices(
        np.stack([table for table, _ in tables]),
        orders=known if len(known) == len(read) and not identity else None,  # type: ignore[arg-type]
        before=np.stack(befores) if all(row is not None for row in befores) else False,  # type: ignore[arg-type]
        names=read[0].tasks,
        runs=tuple(run.name for run in read),
        order_names=tuple(run.order_name for run in read) if any(run.order_name for run in read) else (),
        notes=tuple(dict.fromkeys(note for run in read for note in run.notes)),
    )


def _joined(parts: list[AccuracyMatrices]) -> AccuracyMatrices:
    """The runs of several files as one object; what they must have in common is checked."""
    first = parts[0]
    for part in parts[1:]:
        if part.values.shape[1:] != first.values.shape[1:] or part.names != first.names:
            raise ProblemFileError(
                f"{part.runs[0]} has {part.headline}, and {first.runs[0]} {first.headline}: the runs of several files "
                "have equally many steps and the same tasks"
            )
    orders = None
    if any(part.orders is not None for part in parts):
        identity = np.arange(first.num_tasks)
        rows = [np.tile(identity, (part.num_runs, 1)) if part.orders is None else part.orders for part in parts]
        orders = np.concatenate(rows)
    known = [part.before for part in parts if part.before is not None]
    return AccuracyMatrices(
        np.concatenate([part.values for part in parts]),
        orders,
        np.concatenate(known) if len(known) == len(parts) else False,  # type: ignore[arg-type]
        first.names,
        tuple(run for part in parts for run in part.runs),
        tuple(name for part in parts for name in part.order_names),
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )
