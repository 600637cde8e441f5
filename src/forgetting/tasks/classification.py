"""Classification tasks with two labels, and the decision whether one w classifies all rows, with a proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_dense, as_task, as_vector, is_sparse, read_only, real_array
from forgetting.core.memory import require_memory
from forgetting.core.numerical import EPS
from forgetting.errors import ForgettingError, InfeasibleError, InvalidInputError, NotSeparableError
from forgetting.files.arrays import entry, words
from forgetting.sets import ConvexSet, Polyhedron
from forgetting.sets._certificate import refined, vanishes
from forgetting.sets.in_turn import Inequalities
from forgetting.tasks.convex import ConvexSets
from forgetting.tasks.files import row_ends
from forgetting.tasks.labels import Label, signs
from forgetting.tasks.problem import Kind, Problem
from forgetting.tasks.task_data import as_task_lists, as_task_matrix, split_rows

__all__ = ["ClassificationTasks", "Separability", "decide", "one_versus_rest"]


class ClassificationTasks(Problem):
    """T binary classification tasks, with L_m(w) = 1/2 max_i (1 - y_i x_i.w)_+^2.

    The solutions of a task are C_m = {w: y_i x_i.w >= 1 for its rows}. The default scheme projects onto C_m, which is
    the limit of weakly regularised learning (`reduc:classification_to_pocs`); `fg.schemes.WeaklyRegularized` is the
    scheme with a finite lambda. With R the largest row norm, L_m <= R^2/2 dist(w, C_m)^2.

    Args:
        matrices: T matrices of shape (n_m, d), NumPy or scipy.sparse (stored dense); n_m may differ.
        labels: T vectors of n_m labels: -1 and 1, 0 and 1 (0 becomes -1), truth values, or two strings (the
            alphabetically first becomes -1). All tasks use the same mapping, which is in `label_names`.
        label_names: the two labels, the negative label first; needed for other labels, or for the reverse mapping.
        names: T names for reports; task numbers if left out.

    The tasks need not be separable; operations that need separability raise an error with a certificate.

    >>> import forgetting as fg
    >>> tasks = fg.ClassificationTasks([[[1.0, 0.0]], [[0.0, 2.0], [0.0, -4.0]]], [["cat"], ["cat", "ant"]])
    >>> tasks
    ClassificationTasks(T=2, d=2, rows=3, labels 'ant' -> -1, 'cat' -> +1)
    >>> tasks.w_star, tasks.radius, tasks.scale, tasks.margins([1.0, 1.0])
    (array([1. , 0.5]), 4.0, 20.0, array([1., 2., 4.]))
    >>> fg.run(tasks, fg.orderings.Cyclic(), k=2).iterates
    array([[0. , 0. ],
           [1. , 0. ],
           [1. , 0.5]])
    """

    format = "forgetting/classification/1"
    kind: ClassVar[Kind] = "classification"
    half_squared_shortfalls: ClassVar[bool] = True

    def __init__(
        self,
        matrices: Sequence[Any],
        labels: Sequence[Any],
        *,
        label_names: Sequence[Any] | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        matrices, labels, self.names = as_task_lists(matrices, labels, names)
        parts = [as_task_matrix(matrix, f"task {task}") for task, matrix in enumerate(matrices)]
        self.dim = int(parts[0].shape[1])
        for task, part in enumerate(parts):
            if part.shape[1] != self.dim:
                raise InvalidInputError(
                    f"task {task}: X has {part.shape[1]} columns, but task 0 has {self.dim}; all need the same d"
                )
        y, self.label_names = signs(labels, label_names)
        for task, (part, sign) in enumerate(zip(parts, y, strict=True)):
            if len(sign) != part.shape[0]:
                raise InvalidInputError(f"task {task}: X has {part.shape[0]} rows, but y has {len(sign)} labels")
        self.num_rows: IntArray = read_only(np.array([len(sign) for sign in y]))
        self._starts: IntArray = np.concatenate([[0], np.cumsum(self.num_rows)[:-1]])
        self._signs = np.concatenate(y)
        require_memory(
            16.0 * self.dim * len(self._signs) if any(map(is_sparse, parts)) else 0.0,
            f"{len(self._signs)} sparse rows with {self.dim} columns, which are stored dense,",
            "keep fewer columns (those that few rows use), or fewer rows",
        )
        self._rows: Array = np.concatenate([as_dense(part) for part in parts]) * self._signs[:, None]
        self._rows.setflags(write=False)

    @classmethod
    def from_arrays(cls, X: Any, y: Any, groups: Any, **options: Any) -> ClassificationTasks:
        """Tasks from a stacked matrix: rows with the same entry of `groups` form a task, named after this entry.

        Tasks are in the same order as those of `RegressionTasks.from_arrays`.

        >>> import forgetting as fg
        >>> fg.ClassificationTasks.from_arrays([[1.0], [2.0], [-1.0]], [1, 1, 0], ["b", "a", "b"]).names
        ('b', 'a')
        """
        matrices, labels, known = split_rows(X, y, groups)
        tasks = cls(matrices, labels, **{"names": known.names, **options})
        tasks.notes = known.told(tasks.names)
        return tasks

    def file_arrays(self) -> dict[str, Any]:
        parts = [self.task(task) for task in range(self.num_tasks)]
        return {
            "format": np.array(self.format),
            "rows": self.num_rows,
            "X": np.concatenate([matrix for matrix, _ in parts]),
            "y": np.concatenate([label for _, label in parts]).astype(np.int8),
            "label_names": np.array(self.label_names),
            "names": np.array(self.names),
        }

    @classmethod
    def from_file_arrays(cls, arrays: dict[str, Any]) -> ClassificationTasks:
        given, X = entry(arrays, "y", "i", 1), entry(arrays, "X", "f", 2)
        ends = row_ends(arrays, len(given))
        if len(X) != len(given):
            raise ForgettingError(f"{len(X)} rows for {len(given)} labels")
        if not np.isin(given, (-1, 1)).all():
            raise ForgettingError("entry 'y' holds labels other than -1 and 1")
        pair = entry(arrays, "label_names", "biuU", 1)
        if len(pair) != 2:
            raise ForgettingError(f"{len(pair)} names of labels, but there are two labels")
        return ClassificationTasks(
            np.split(X, ends[:-1]),
            np.split(pair[(given + 1) // 2], ends[:-1]),
            names=words(arrays, "names", len(ends)),
            label_names=pair.tolist(),
        )

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        columns = super()._columns(rows, full=full)
        positive = [int(np.sum(self.task(int(row))[1] > 0)) for row in rows]
        return {**columns, "rows": self.num_rows[rows], f"of these {self.label_names[1]}": positive}

    def rebuilt(
        self, change: Callable[[Array], Array], without: int | None = None, common: Array | None = None
    ) -> ClassificationTasks:
        parts = [self.task(task) for task in range(self.num_tasks) if task != without]
        return ClassificationTasks([change(matrix) for matrix, _ in parts], [label for _, label in parts])

    # ------------------------------------------------------------------------------------------------------- the data

    @property
    def num_tasks(self) -> int:
        return len(self.num_rows)

    def signed_rows(self, task: int) -> Array:
        """The rows y_i x_i of the task, (n_m, d), read-only."""
        task = as_task(task, self.num_tasks)
        start = int(self._starts[task])
        return self._rows[start : start + int(self.num_rows[task])]

    def task(self, task: int) -> tuple[Array, Array]:
        """(X_m, y_m), with labels -1 and +1."""
        task = as_task(task, self.num_tasks)
        start = int(self._starts[task])
        label = self._signs[start : start + int(self.num_rows[task])]
        return self.signed_rows(task) * label[:, None], label.copy()

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The data of each task."""
        yield from ((self.signed_rows(m), self.task(m)[1]) for m in range(self.num_tasks))

    @property
    def loss_meaning(self) -> str:
        """The violation of the worst row."""
        return "half the squared shortfall from margin 1, at the worst row of a task"

    @cached_property
    def radius(self) -> float:
        """R, the largest row norm."""
        return float(np.max(np.linalg.norm(self._rows, axis=1)))

    # -------------------------------------------------------------------------------------------- losses and distances

    def margins(self, w: Any) -> Array:
        """y_i x_i.w for all rows, task after task."""
        return np.asarray(self._rows @ as_vector(w, self.dim, "w"))

    def task_loss(self, task: int, w: Any) -> float:
        """1/2 max_i (1 - y_i x_i.w)_+^2 over the rows of the task."""
        worst = float(self.signed_rows(task).dot(as_vector(w, self.dim, "w")).min())
        short = max(0.0, 1.0 - worst)
        return 0.5 * short * short  # a power of floats raises where a product overflows

    def task_losses(self, w: Any) -> Array:
        """The loss of every task."""
        worst = np.minimum.reduceat(self.margins(w), self._starts)
        return np.asarray(0.5 * np.maximum(0.0, 1.0 - worst) ** 2)

    @property
    def labels_stand_for(self) -> Literal["signs"]:
        """Labels are -1 and +1."""
        return "signs"

    def accuracies(self, points: Array) -> Array:
        """The share of the rows of each task whose label is the sign of x.w, at each of a stack of w: (len(points), T).

        A prediction of 0 up to rounding counts 1/2, as for `RegressionTasks.accuracy`.

        >>> import forgetting as fg
        >>> tasks = fg.ClassificationTasks([[[1.0], [2.0]], [[-1.0]]], [[1, -1], [1]])
        >>> tasks.accuracies([[1.0], [-3.0], [0.0]]).tolist()
        [[0.5, 0.0], [0.5, 1.0], [0.5, 0.5]]
        """
        stack = real_array(points, "points", squares=True)
        if stack.ndim != 2 or stack.shape[1] != self.dim:
            raise InvalidInputError(f"points: expected a w of {self.dim} numbers in each row, got {stack.shape}")
        margins = stack @ self._rows.T
        sizes = np.outer(np.linalg.norm(stack, axis=1), np.linalg.norm(self._rows, axis=1))
        right = np.where(np.abs(margins) <= 64 * EPS * sizes, 0.5, margins > 0)
        return np.asarray(np.add.reduceat(right, self._starts, axis=1) / self.num_rows)

    @cached_property
    def sets(self) -> ConvexSets:
        """The polyhedra C_m = {w: y_i x_i.w >= 1}; `NotSeparableError` if a task alone is not separable."""
        distinct: dict[bytes, ConvexSet] = {}
        polyhedra: list[ConvexSet] = []
        for task in range(self.num_tasks):
            rows = self.signed_rows(task)
            key = rows.tobytes()
            if key not in distinct:
                try:
                    distinct[key] = Polyhedron(rows, np.ones(len(rows)))
                except ForgettingError as error:
                    separability = decide(rows)
                    if separability.holds:  # the projection has no correct digits
                        raise ForgettingError(f"task {task} is {separability.message}, but {error}") from error
                    raise self._refusal(separability, f"projecting onto task {task}", task) from error
            polyhedra.append(distinct[key])
        return ConvexSets(polyhedra, names=self.names)

    @property
    def members(self) -> tuple[ConvexSet, ...]:
        return self.sets.sets

    @property
    def inequalities(self) -> Inequalities | None:
        return self.sets.inequalities

    def project(self, task: int, w: Any) -> Array:
        return self.sets.project(task, w)

    def distances(self, w: Any) -> Array:
        return self.sets.distances(w)

    # --------------------------------------------------------------------------------------------- the joint solution

    @cached_property
    def separability(self) -> Separability:
        """Whether some w solves all tasks, with a proof; see `Separability`. Rows are numbered over all tasks."""
        joint = decide(self._rows)
        if joint.certificate is None:
            return joint
        owners = np.searchsorted(self._starts, np.flatnonzero(joint.certificate), side="right") - 1
        return replace(joint, tasks=tuple(np.unique(owners).tolist()))

    @property
    def realizability(self) -> Separability:
        """Same as `separability`; all problems have `realizability`."""
        return self.separability

    def require_separable(self, what: str) -> None:
        """Raise unless some w solves all tasks; `what` names the operation that needs such a w."""
        if not self.separability.holds:
            raise self._refusal(self.separability, what)

    def _refusal(self, separability: Separability, what: str, task: int | None = None) -> NotSeparableError:
        whose = "jointly separable tasks, but these are" if task is None else "a separable task, but it is"
        return NotSeparableError(
            f"{what} needs {whose} {separability.message}. Leave out one of these rows, or use a richer feature map; "
            "WeaklyRegularized learns such tasks too, at its lambda",
            certificate=separability.certificate,
            residual=separability.residual,
            task=task,
        )

    @cached_property
    def _joint(self) -> Polyhedron:
        return Polyhedron(self._rows, np.ones(len(self._rows)), check=False)

    @property
    def w_star(self) -> Array:
        """The shortest w with all margins at least 1."""
        self.require_separable("w_star")
        return np.array(self.separability.w)

    def nearest_solution(self, w0: Any) -> Array:
        """The w nearest to w_0 with all margins at least 1."""
        start = as_vector(w0, self.dim, "w0")
        if not start.any():
            return self.w_star
        self.require_separable("the nearest solution")
        return self._joint.nearest(start)

    @property
    def margin(self) -> float:
        """1 / (|w*| R): the largest margin of a unit vector over all rows, relative to the largest row norm."""
        return 1 / (float(np.linalg.norm(self.w_star)) * self.radius)

    def __repr__(self) -> str:
        low, high = self.label_names
        mapping = "" if (low, high) == (-1, 1) else f", labels {low!r} -> -1, {high!r} -> +1"
        return f"ClassificationTasks(T={self.num_tasks}, d={self.dim}, rows={len(self._rows)}{mapping})"


def one_versus_rest(X: Any, y: Any, groups: Any) -> dict[Label, ClassificationTasks]:
    """A binary problem for each class, with the same rows and tasks: the class is +1, all other classes are -1.

    The predicted class of x is the class whose w has the largest x.w. Rows with the same entry of `groups` form a task.

    >>> problems = one_versus_rest([[2.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], ["a", "b", "c"], groups=[0, 1, 1])
    >>> {name: problem.num_tasks for name, problem in problems.items()}
    {'a': 2, 'b': 2, 'c': 2}
    >>> problems["b"].task(1)[1]
    array([ 1., -1.])
    """
    matrices, labels, known = split_rows(X, y, groups)
    classes = np.unique(np.asarray(y)).tolist()
    for value in classes:
        if isinstance(value, float) and not value.is_integer():
            raise InvalidInputError(f"y holds {value!r}; classes are whole numbers or names")
    if len(classes) < 2:
        raise InvalidInputError(f"one class only ({', '.join(map(repr, classes))}); two or more are needed")
    problems = {
        name: ClassificationTasks(matrices, [np.where(label == name, 1, -1) for label in labels], names=known.names)
        for name in classes
    }
    notes = known.told()
    for problem in problems.values():
        problem.notes = notes
    return problems


@dataclass(frozen=True, eq=False)
class Separability:
    """Whether some w has y_i x_i.w >= 1 for all rows, with a proof.

    Attributes:
        holds: whether such a w exists.
        w: the shortest such w, or None. All its margins are above 0 by more than rounding. (If columns differ so much
            in scale that the shortest w is lost to rounding, another such w.)
        certificate: if no such w exists, y >= 0 with sum y = 1 and |sum_i y_i (label_i x_i)| = `residual`, which is 0
            up to rounding in every coordinate; else None. A w as above would have
            1 <= sum_i y_i (label_i x_i).w <= residual |w| (Gordan's alternative).
        residual: the residual of the certificate; 0 without a certificate.
        tasks: the tasks whose rows the certificate combines; empty without a certificate, or for rows of one task.

    >>> import forgetting as fg
    >>> fg.ClassificationTasks([[[1.0], [-2.0]]], [[1, -1]]).separability.message
    'separable: w of norm 1 has all margins at least 1'
    >>> fg.ClassificationTasks([[[1.0], [2.0]]], [[1, -1]]).separability.certificate.round(6)
    array([0.666667, 0.333333])
    """

    holds: bool
    w: Array | None = field(repr=False)
    certificate: Array | None = field(repr=False)
    residual: float
    tasks: tuple[int, ...] = ()

    @property
    def message(self) -> str:
        """A sentence that says whether the rows are separable, and the proof."""
        if self.w is not None:
            return f"separable: w of norm {np.linalg.norm(self.w):.4g} has all margins at least 1"
        rows = np.flatnonzero(self.certificate) if self.certificate is not None else np.empty(0, dtype=np.int64)
        shown = ", ".join(str(row) for row in rows[:6]) + (", ..." if len(rows) > 6 else "")
        where = ""
        if self.tasks:
            named = ", ".join(str(task) for task in self.tasks[:6]) + (", ..." if len(self.tasks) > 6 else "")
            where = f" (in task{'s' * (len(self.tasks) > 1)} {named})"
        if len(rows) == 1:
            return f"not separable: row {shown}{where} is 0, so that no w has a positive margin on it"
        return (
            f"not separable: rows {shown}{where}, each times its label, average to 0 with the weights in .certificate "
            f"(to {self.residual:.1g}), so that no w has positive margins on all of them"
        )


def decide(rows: Array) -> Separability:
    """Decide whether some w has rows w >= 1: find the shortest such w, or a convex combination of the rows that is 0.

    Either answer is checked on the rows. If a projection gives no valid answer, the projection is repeated with rows
    and columns divided by their largest entries (which does not change the answer), and then a linear programme is
    solved. An error is raised if the answer is still undecided. Margins below the rounding of the data count as 0.

    >>> decide(np.array([[1.0, 0.0], [0.0, 2.0]])).w
    array([1. , 0.5])
    """
    answer = _proven(rows, *_projected(rows))
    if answer is not None:
        return answer
    columns = _sizes(rows, 0)
    scaled = rows / columns
    lengths = _sizes(scaled, 1)
    scaled /= lengths[:, None]
    for method in (_projected, _programmed):
        w, weights = method(scaled)
        answer = _proven(rows, None if w is None else w / columns, None if weights is None else weights / lengths)
        if answer is not None:
            return answer
    raise ForgettingError(
        "whether one w has positive margins on all rows is undecided: neither such a w nor a combination of the rows "
        "that is 0 was found beyond rounding; scale the columns of X to similar size"
    )


def _sizes(rows: Array, axis: int) -> Array:
    """The largest magnitudes along an axis; 1 where all entries are 0."""
    largest: Array = np.max(np.abs(rows), axis=axis)
    return np.where(largest > 0, largest, 1.0)


def _proven(rows: Array, w: Array | None, weights: Array | None) -> Separability | None:
    """The answer that w, or else the weights, prove; None if neither proves an answer."""
    if w is not None:
        margins = rows @ w
        smallest = float(margins.min())
        if bool(np.all(margins > EPS * rows.shape[1] * np.abs(rows) @ np.abs(w))):
            return Separability(True, w if abs(smallest - 1) <= 1e-9 else w / smallest, None, 0.0)
    if weights is not None and weights.any():
        weights = refined(rows, weights)
        weights = weights / weights.sum()
        if vanishes(rows, weights):
            return Separability(False, None, weights, float(np.linalg.norm(rows.T @ weights)))
    return None


def _projected(rows: Array) -> tuple[Array | None, Array | None]:
    """(w, None) with the shortest w such that rows w >= 1, or (None, certificate), or (None, None) on failure."""
    try:
        return Polyhedron(rows, np.ones(len(rows)), check=False).nearest(np.zeros(rows.shape[1])), None
    except InfeasibleError as error:
        return None, np.asarray(error.certificate)
    except ForgettingError:
        return None, None


def _programmed(rows: Array) -> tuple[Array | None, Array | None]:
    """The w with |w_j| <= 1 that maximises the smallest margin t, and the multipliers, a certificate if t is 0."""
    from scipy.optimize import linprog

    n, d = rows.shape
    solution = linprog(
        -np.eye(1, d + 1, d)[0],
        A_ub=np.concatenate([-rows, np.ones((n, 1))], axis=1),
        b_ub=np.zeros(n),
        bounds=[(-1, 1)] * d + [(0, None)],
        options={"maxiter": 100 * (n + d) + 1000},
    )
    if solution.status != 0:
        return None, None
    return solution.x[:d], np.maximum(0.0, -solution.ineqlin.marginals)
