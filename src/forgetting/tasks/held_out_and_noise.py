"""Tasks with held-out data and with label noise, for expectations.

Held-out data of a task are a task of their own that is never learned: its loss is the test loss. Label noise is
outputs: every expectation is quadratic in the labels, so that zero-mean noise of covariance sum_j q_j q_j^T adds what
outputs with labels q_j and start 0 would add (their held-out labels are 0). So both need nothing but more tasks and
more outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from forgetting import geometry as _geometry
from forgetting.core.arrays import (
    Array,
    IntArray,
    any_array,
    as_dense,
    as_number,
    check_finite,
    fingerprint,
    is_sparse,
    real_array,
)
from forgetting.core.memory import require_memory
from forgetting.core.numerical import ASYMMETRY, EPS, NEGATIVE, numerical_rank
from forgetting.core.text import nearest
from forgetting.errors import InvalidInputError, NotSupportedError
from forgetting.geometry import ExactRoot, Geometry, Matrix, Rooted, exact_root, lift
from forgetting.tasks.linear_tasks import LinearTasks, Realizability
from forgetting.tasks.problem import Problem
from forgetting.tasks.regression import RegressionTasks

CLEAR = 1e-7  # share of the largest singular value: vectors of larger ones move values by less than (eps / CLEAR)^2
EXACT_ROOT = 32  # order of covariances up to which roots are exact: at most 0.1 seconds
FEW_ROWS = 24  # rows of a task up to which each row has an output of noise of its own, which is exact


class _Root(NamedTuple):
    """A root, with q_j in columns: as floats, and where it is known exactly, as an exact root times sqrt(factor)."""

    columns: Array
    exact: ExactRoot | None
    factor: Fraction
    off: float  # the error of the floats, relative to their norm

    def decimals(self) -> Any:
        """The columns with the digits of the current decimal context; None where no more than floats are known."""
        return None if self.exact is None else self.exact.decimals(self.factor)

    def times(self, factor: int) -> _Root:
        """The root of `factor` times the matrix."""
        if self.exact is None:
            return self._replace(columns=np.sqrt(factor) * self.columns)
        with localcontext(Context(prec=50)):
            columns = self.exact.decimals(self.factor * factor).astype(np.float64)
        return self._replace(columns=columns, factor=self.factor * factor)


class _Noise(NamedTuple):
    """Noise of the labels of a task: columns q_j, and the variance of what no w can fit, beyond the columns.

    `separate` says whether each row has a column of its own.
    """

    root: _Root
    rest: float
    separate: bool


@dataclass(frozen=True, eq=False)
class _NoisyTask:
    """A task with labels of noise, in the columns from `first`, or with labels 0 for outputs that are noise of others.

    `own` says more about the rows and the other labels, if these are not exactly the floats.
    """

    rows: Matrix
    labels: Array
    noise: _Noise | None
    first: int
    own: Rooted | None

    @property
    def rows_off(self) -> float:
        return 0.0 if self.own is None else self.own.rows_off

    @property
    def labels_off(self) -> float:
        mine = 0.0 if self.own is None else self.own.labels_off
        return mine + (0.0 if self.noise is None else self.noise.root.off)

    @property
    def scaled(self) -> bool:
        return self.own is None and self.noise is not None and self.noise.separate

    def decimals(self) -> tuple[Any, Any] | None:
        columns = None if self.noise is None else self.noise.root.decimals()
        if self.noise is not None and columns is None:
            return None
        labels, rows = lift(self.labels), None
        if self.own is not None:
            known = self.own.decimals()
            if known is None:
                return None
            rows = known[0]
            # columns of noise come after those of the task
            plain = known[1] if known[1].ndim == labels.ndim else known[1].reshape(len(rows), -1)
            labels[(slice(len(rows)), *[slice(width) for width in plain.shape[1:]])] = plain
        if columns is not None:
            labels[:, self.first : self.first + columns.shape[1]] = columns
        return lift(as_dense(self.rows)) if rows is None else rows, labels


@dataclass(frozen=True, eq=False)
class _Population:
    """Held-out data that are a covariance of inputs, with the labels of `teacher`; `noisy` outputs have labels 0."""

    root: _Root
    teacher: Array
    noisy: int
    scaled: ClassVar[bool] = False

    @property
    def rows_off(self) -> float:
        return self.root.off

    @property
    def labels_off(self) -> float:
        return self.root.off

    def decimals(self) -> tuple[Any, Any] | None:
        columns = self.root.decimals()
        if columns is None:
            return None
        rows = _rows(columns)
        labels = rows @ lift(self.teacher)
        if self.noisy:
            labels = np.column_stack([labels, lift(np.zeros((len(rows), self.noisy)))])
        return rows, labels


class ScoredTasks(LinearTasks):
    """Tasks that are learned, and beside them held-out data that are not, and outputs that stand for noise.

    Attributes:
        learned: the tasks.
        tests: the held-out data of each task; None if there are none.
        populations: the roots of covariances that held-out data stand for, if they do.
        noisy: the number of outputs that stand for noise.
    """

    learned: RegressionTasks
    tests: RegressionTasks | None
    populations: Sequence[_Root] | None
    noisy: int

    def __init__(
        self,
        learned: RegressionTasks,
        tests: RegressionTasks | None,
        noise: Sequence[_Noise] | None,
        populations: Sequence[_Root] | None = None,
    ) -> None:
        self.learned, self.tests, self.populations = learned, tests, populations
        self.dim, self.names, self.notes = learned.dim, learned.names, learned.notes
        self._set_options(learned.loss_kind, learned.rank_tol, learned.rtol)
        self._noise = noise
        self.noisy = 0 if noise is None else sum(part.root.columns.shape[1] for part in noise) + 1
        self.classes = learned.classes
        self.outputs = learned.outputs if noise is None else (learned.outputs or 1) + self.noisy

    @property
    def num_tasks(self) -> int:
        return self.learned.num_tasks

    def similarity(self, by: Literal["rows", "solutions"]) -> Array | None:
        return self.learned.similarity(by)

    @property
    def norms_as_given(self) -> Array:
        return self.norms if self.learned.given is self.learned else self.learned.given.norms

    @property
    def num_rows(self) -> IntArray:
        return self.learned.num_rows

    def start(self, w0: Array) -> Array:
        """w_0 with zeros for the outputs that stand for noise."""
        return w0 if not self.noisy else np.column_stack([w0, np.zeros((self.dim, self.noisy))])

    @cached_property
    def geometry(self) -> Geometry:
        """The geometry of the distinct tasks, followed by their held-out data, which stand for no task."""
        index: list[int] = []
        known: dict[Any, int] = {}
        parts: list[tuple[Matrix, Array, float]] = []
        held: list[tuple[Matrix, Array, float]] = []
        for m in range(self.num_tasks):
            X, y = self.learned.task(m)
            other = () if self.tests is None else self.tests.task(m)
            # tasks with noise of their own are never the same
            key: Any = m if self._noise is not None else fingerprint(X, y, *other)
            if known.setdefault(key, len(parts)) == len(parts):
                parts.append(self._training(m, X, y))
                if self.tests is not None:
                    held.append(self._held_out(m))
            index.append(known[key])
        matrices, labels, divisors = (list(column) for column in zip(*parts, *held, strict=True))
        roots: dict[int, Rooted] = {}
        for m, distinct in reversed(list(enumerate(index))):
            own, noise = self.learned.rooted(m), None if self._noise is None else self._noise[m]
            if own is not None or noise is not None:
                first = 0 if noise is None else self._first(m)
                roots[distinct] = _NoisyTask(matrices[distinct], labels[distinct], noise, first, own)
            place = len(parts) + distinct
            if self.tests is not None and (held_own := self.tests.rooted(m)) is not None:
                roots[place] = _NoisyTask(matrices[place], labels[place], None, 0, held_own)
            if self.populations is not None:
                roots[len(parts) + distinct] = _Population(self.populations[m], self.learned.w_star, self.noisy)
        tests = self.tests is not None
        return _geometry.from_data(
            matrices, labels, np.array(divisors), np.array(index), self.rank_tol, held_out=tests, roots=roots
        )

    @cached_property
    def realizability(self) -> Realizability:
        """Whether some w solves all tasks that are learned."""
        residuals = self.geometry.residuals[: self.geometry.num_learned]
        bad = np.flatnonzero(residuals > self.rtol)
        first = int(np.argmax(self.geometry.index == bad[0])) if bad.size else None
        return Realizability(first is None, float(np.max(residuals)), first, self.rtol)

    def _divisor(self, tasks: RegressionTasks, m: int) -> float:
        return 1.0 if self.loss_kind == "sum" else float(tasks.num_rows[m])

    def _training(self, m: int, X: Matrix, y: Array) -> tuple[Matrix, Array, float]:
        """The rows, the labels with those of noise, and the divisor of the squared loss."""
        divisor = self._divisor(self.learned, m)
        if self._noise is None:
            return X, y, divisor
        own = self._noise[m]
        labels = np.column_stack([y, np.zeros((len(y), self.noisy))])
        labels[:, self._first(m) : self._first(m) + own.root.columns.shape[1]] = own.root.columns
        if own.rest == 0:
            return X, labels, divisor
        # a row of zeros, which no w fits
        last = np.zeros((1, labels.shape[1]))
        last[0, -1] = np.sqrt(own.rest)
        if is_sparse(X):
            from scipy.sparse import csr_array, vstack

            return csr_array(vstack([X, csr_array((1, self.dim))])), np.concatenate([labels, last]), divisor
        return np.concatenate([X, np.zeros((1, self.dim))]), np.concatenate([labels, last]), divisor

    def _first(self, m: int) -> int:
        """The first output that stands for noise of a task."""
        assert self._noise is not None
        return (self.learned.outputs or 1) + sum(len(part.root.columns.T) for part in self._noise[:m])

    def _held_out(self, m: int) -> tuple[Matrix, Array, float]:
        assert self.tests is not None
        X, y = self.tests.task(m)
        labels = y if self._noise is None else np.column_stack([y, np.zeros((len(y), self.noisy))])
        return X, labels, self._divisor(self.tests, m)

    def labels_of(self, task: int) -> Array:
        return self.learned.labels_of(task)

    def predictions(self, task: int, points: Array) -> tuple[Array, Array]:
        return self.learned.predictions(task, self._without_noise(points))

    def row_lengths(self, task: int) -> Array:
        return self.learned.row_lengths(task)

    def accuracies_within(self, points: Array, off: Array, held_out: bool = False) -> tuple[Array, Array]:
        if held_out and self.tests is not None:
            return self.tests.accuracies_within(self._without_noise(points), off)
        return super().accuracies_within(points, off, held_out)

    def test_accuracies(self, points: Array) -> Array:
        """The accuracy of the held-out data of every task at each of a stack of w, (len(points), T)."""
        if self.tests is None:
            return super().test_accuracies(points)
        return self.tests.accuracies(self._without_noise(points))

    def _without_noise(self, points: Array) -> Array:
        if self.noisy:
            raise NotSupportedError("accuracy has no expectation over noise: leave out noise=")
        return points

    def task_losses(self, w: Any) -> Array:
        """L_m for every task, from the geometry."""
        return self.geometry.task_losses(self.geometry.start(self.point(w)))

    def task_loss(self, task: int, w: Any) -> float:
        """L_m, from the geometry."""
        return float(self.task_losses(w)[task])


def scored_tasks(problem: Problem, test: Any, noise: Any) -> ScoredTasks:
    """The tasks with held-out data and noise, as `expect` takes them.

    >>> import forgetting as fg
    >>> tasks = fg.RegressionTasks([[[1.0, 0.0]], [[0.6, 0.8]]], [[1.0], [0.6]])
    >>> scored_tasks(tasks, test=tasks, noise=0.1).outputs
    4
    """
    what = "noise=" if test is None else "test="
    linear = problem.linear
    if linear is None or linear.data is None:
        raise NotSupportedError(f"{what} needs the data of RegressionTasks, not {type(problem).__name__}")
    tasks = linear.data
    if noise is not None and linear is not problem:
        raise NotSupportedError(f"noise= is the noise of labels, which {type(problem).__name__} do not have")
    tests, populations = (None, None) if test is None else _tests(tasks.given, test)
    if populations is not None and tasks.given is not tasks:
        raise NotSupportedError(
            "test= by covariances is known for schemes that are linear in w; give rows and labels instead, such as the "
            "columns of a root of each covariance with the labels of w_star"
        )
    tests = None if tests is None else tasks.like_these(tests)
    return ScoredTasks(tasks, tests, None if noise is None else _noises(tasks, noise), populations)


# ------------------------------------------------------------------------------------------------------ held-out data


def _tests(tasks: RegressionTasks, given: Any) -> tuple[RegressionTasks, list[_Root] | None]:
    """The held-out data: tasks, pairs (X, y), or covariances of the inputs, whose labels are those of w*."""
    roots = None
    if isinstance(given, Problem):  # a caller may give arrays as well
        if given.linear is None or given.linear.data is None:
            raise InvalidInputError(f"test: expected regression tasks, got {type(given).__name__}")
        tests = _prepared(tasks, with_classes(tasks, _in_order(tasks, given.linear.data)))
    elif _are_covariances(given):
        tests, roots = _from_covariances(tasks, given)
    else:
        tests = _prepared(tasks, _from_pairs(tasks, given))
    if tests.num_tasks != tasks.num_tasks:
        raise InvalidInputError(f"test: {tests.num_tasks} tasks, but {tasks.num_tasks} are learned; give one for each")
    if tests.dim != tasks.dim:
        raise InvalidInputError(f"test: rows of {tests.dim} numbers, but tasks have d = {tasks.dim}")
    if tests.outputs != tasks.outputs:
        raise InvalidInputError(f"test: {tests.outputs or 1} outputs, but tasks have {tasks.outputs or 1}")
    return with_classes(tasks, tests), roots


def with_classes(tasks: RegressionTasks, test: RegressionTasks) -> RegressionTasks:
    """The held-out data, a task for each task, with outputs that stand for the classes of the tasks.

    Classes are known by their names, so that held-out data may lack some. Others are refused.

    >>> import forgetting as fg
    >>> learned, test = (
    ...     fg.RegressionTasks.from_labels([[1.0], [2.0], [3.0]], labels, ["a", "a", "b"])
    ...     for labels in (["cat", "dog", "owl"], ["dog", "dog", "owl"])
    ... )
    >>> with_classes(learned, test).task(0)[1].tolist()
    [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if tasks.classes is None or test.classes == tasks.classes or test.num_tasks != tasks.num_tasks:
        return test
    if test.classes is None and test.outputs is None:
        raise InvalidInputError(
            "test: labels are numbers, but those of the tasks are classes; load them with classes='all', or make both "
            "by from_labels"
        )
    if test.classes is None and test.outputs != tasks.outputs:
        return test
    pairs = [test.task(m) for m in range(test.num_tasks)]
    labels = [y for _, y in pairs]
    if test.classes is not None:
        labels = [
            _recoded(y, own, classes, task, tasks.outputs or 0)
            for y, own, classes, task in zip(labels, test.classes, tasks.classes, tasks.names, strict=True)
        ]
    made = test.with_data([X for X, _ in pairs], labels)
    made.preparation, made.notes, made.classes = test.preparation, test.notes, tasks.classes
    return made


def _recoded(y: Array, own: Sequence[str], classes: Sequence[str], task: str, outputs: int) -> Array:
    """One-hot labels whose columns stand for the classes of the task, in place of the held-out data's `own`."""
    labels = np.zeros((len(y), outputs))
    for place in np.flatnonzero(y.any(axis=0)).tolist():
        if own[place] not in classes:
            raise InvalidInputError(
                f"test, task {task!r:.60}: {own[place]!r:.60} is no class of the task"
                f"{nearest(own[place], classes, 'its classes are')}"
            )
        labels[:, classes.index(own[place])] = y[:, place]
    return labels


def _in_order(tasks: RegressionTasks, test: RegressionTasks) -> RegressionTasks:
    """The held-out tasks in the order of the tasks, if they have the same names in another order."""
    names = test.names
    if names == tasks.names or len(set(names)) < len(names) or sorted(names) != sorted(tasks.names):
        return test
    places = [names.index(name) for name in tasks.names]
    pairs = [test.task(place) for place in places]
    ordered = test.with_data([X for X, _ in pairs], [y for _, y in pairs], names=tasks.names)
    ordered.preparation = test.preparation
    ordered.classes = None if test.classes is None else tuple(test.classes[place] for place in places)
    return ordered


def _prepared(tasks: RegressionTasks, test: RegressionTasks) -> RegressionTasks:
    """The held-out data, prepared as the tasks were unless they are prepared already."""
    if tasks.preparation is None:
        return test
    if test.preparation is None:
        return tasks.preparation.apply_to(test)
    if not tasks.preparation.same_as(test.preparation):
        raise InvalidInputError(
            f"test: prepared otherwise than the tasks, by {test.preparation.in_words} of its own; give the rows as "
            "they are, which are then prepared like the tasks, or use tasks.preparation.apply_to"
        )
    return test


def _are_covariances(given: Any) -> bool:
    """Whether the entries, or all of them together, are matrices rather than pairs."""
    if hasattr(given, "ndim"):
        return True
    # matrices, or the rows of one matrix
    return isinstance(given, Sequence) and {_depth(entry) for entry in given} in ({1}, {2})


def _depth(given: Any) -> int | None:
    """The number of axes of an array or of nested lists; None where these make no array."""
    try:
        return int(np.ndim(given))
    except ValueError:
        return None


def _from_pairs(tasks: RegressionTasks, given: Any) -> RegressionTasks:
    try:
        matrices, labels = zip(*given, strict=True)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"test: expected regression tasks, a pair (X, y) for each task, or a covariance for each, got {given!r:.80}"
        ) from None
    try:
        return tasks.with_data(matrices, labels, names=[str(m) for m in range(len(matrices))])
    except InvalidInputError as error:
        raise InvalidInputError(f"test: {error}") from error


def _from_covariances(tasks: RegressionTasks, given: Any) -> tuple[RegressionTasks, list[_Root]]:
    """Rows Sigma^(1/2), whose squared residual is (w - w*)^T Sigma (w - w*)."""
    T, d = tasks.num_tasks, tasks.dim
    covariances = real_array(given, "test", squares=True)
    if covariances.ndim == 2 and covariances.shape == (d, d):
        covariances = np.broadcast_to(covariances, (T, d, d))
    if covariances.shape != (T, d, d):
        raise InvalidInputError(
            f"test: expected {T} covariances of shape ({d}, {d}), or one for all, got {covariances.shape}"
        )
    tasks.require_realizable("test= by covariances, which are scored against w_star,")
    teacher = tasks.w_star
    # a population has no rows to sum over: its loss is not divided by their number either
    roots = [_root(covariance, f"test, task {m}") for m, covariance in enumerate(covariances)]
    if tasks.loss_kind == "mean":
        roots = [root.times(root.columns.shape[1]) for root in roots]
    rows = [_rows(root.columns) for root in roots]
    return tasks.with_data(rows, [part @ teacher for part in rows]), roots


def _rows(columns: Any) -> Any:
    """The columns as rows; a row of zeros if there are none."""
    if columns.shape[1]:
        return np.ascontiguousarray(columns.T)
    nothing = np.zeros((1, len(columns)))
    return lift(nothing) if columns.dtype == object else nothing


def _root(covariance: Array, what: str) -> _Root:
    """Columns whose squares add up to the covariance."""
    largest = float(np.max(np.abs(covariance)))
    asymmetry = float(np.max(np.abs(covariance - covariance.T)))
    if asymmetry > ASYMMETRY * largest:
        raise InvalidInputError(f"{what}: a covariance is symmetric, but two entries differ by {asymmetry:.2g}")
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    top = max(float(values[-1]), 0.0)
    if values[0] < -NEGATIVE * top or values[-1] < 0:
        raise InvalidInputError(f"{what}: a covariance has no negative eigenvalue, but there is {values[0]:.2g}")
    exact = exact_root(covariance) if len(covariance) <= EXACT_ROOT else None
    if exact is not None:
        return _Root(np.zeros((len(covariance), 0)), exact, Fraction(1), EPS).times(1)
    # the entries are off by n eps of the largest eigenvalue, and a root by at most the root of that
    noise = 2 * len(covariance) * EPS
    least = max(float(values[0]), noise * top)
    off = min(np.sqrt(noise), noise * np.sqrt(top / least)) if top else 0.0
    return _Root(np.sqrt(np.maximum(values, 0.0)) * vectors, None, Fraction(1), float(off))


# --------------------------------------------------------------------------------------------------------------- noise


def _noises(tasks: RegressionTasks, given: Any) -> list[_Noise]:
    """The noise of each task: from one standard deviation, one for each task, or covariances of the labels."""
    tasks.require_rows("noise=")
    T, rows, c = tasks.num_tasks, tasks.num_rows, tasks.outputs or 1
    stacked = isinstance(given, Sequence) or _depth(given) == 3
    listed = list(given) if stacked and not isinstance(given, str) else []
    if listed and all(_depth(entry) == 2 for entry in listed):
        if len(listed) != T:
            raise InvalidInputError(f"noise: {len(listed)} covariances for {T} tasks")
        made = []
        for m, entry in enumerate(listed):
            covariance = real_array(entry, f"noise, task {m}", squares=True)
            if covariance.shape != (rows[m], rows[m]):
                raise InvalidInputError(
                    f"noise, task {m}: expected a covariance of its {rows[m]} labels, got shape {covariance.shape}"
                )
            made.append(_Noise(_root(covariance, f"noise, task {m}").times(c), 0.0, separate=False))
        return made
    deviations = any_array(given, "noise")
    if deviations.ndim == 2:
        raise InvalidInputError(
            f"noise: expected a standard deviation, {T} of them, or {T} covariances, got shape {deviations.shape}"
        )
    levels = [as_number(given, "noise", least=0)] * T if deviations.ndim == 0 else _levels(deviations, T)
    check_finite(np.array(levels), "noise", squares=True)
    total = sum(min(int(n), tasks.dim) if n > FEW_ROWS else int(n) for n in rows)
    require_memory(8.0 * total * float(rows.sum()), f"the noise of {int(rows.sum())} labels", "use fewer rows")
    return [_independent(tasks, m, level) for m, level in enumerate(levels)]


def _levels(given: Any, T: int) -> list[float]:
    if len(given) != T:
        raise InvalidInputError(f"noise: {len(given)} standard deviations for {T} tasks")
    return [as_number(level, f"noise, task {m}", least=0) for m, level in enumerate(given.tolist())]


def _independent(tasks: RegressionTasks, m: int, level: float) -> _Noise:
    """Independent noise of this standard deviation on each label.

    Where there are many rows, the noise is turned such that only as many columns as the rank are needed: what is left
    is noise that no w can fit. Where a singular value is small, or the geometry knows more directions, as it scales
    rows of different sizes, the vectors are not known well enough, and each row has a column of its own.
    """
    X, y = tasks.given.task(m)  # labels and their noise are the same in other coordinates
    n, c = len(y), tasks.outputs or 1
    size = np.sqrt(c) * level

    def separate(count: int) -> _Noise:
        units = ExactRoot(tuple(tuple(map(int, row)) for row in np.eye(n, count).T), (Fraction(1),) * count, n)
        return _Noise(_Root(size * np.eye(n, count), units, c * Fraction(level) ** 2, EPS), 0.0, separate=True)

    if level == 0:
        return separate(0)
    if n <= FEW_ROWS:
        return separate(n)
    dense = as_dense(X)
    left, sigma, _ = np.linalg.svd(dense, full_matrices=False)
    rank = numerical_rank(sigma, dense.shape)
    if rank < tasks.ranks[m] or (rank and sigma[rank - 1] < CLEAR * sigma[0]):
        return separate(n)
    off = 8 * float(np.sqrt(n)) * EPS  # orthonormal vectors are off by that
    return _Noise(_Root(size * left[:, :rank], None, Fraction(1), off), size**2 * (n - rank), separate=False)
