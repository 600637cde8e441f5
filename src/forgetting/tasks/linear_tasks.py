"""The base class of `RegressionTasks` and `KernelTasks`: geometry, statistics of the paper, realizability."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from forgetting.core.arrays import Array, IntArray, as_flag, as_number, as_task, as_word, numbers
from forgetting.core.numerical import quietly
from forgetting.errors import ForgettingError, InvalidInputError, MissingValueError, NotRealizableError
from forgetting.geometry import Directions, Geometry
from forgetting.tasks.labels import correct_share, kind_of_labels, undecided_share
from forgetting.tasks.problem import Kind, Problem

if TYPE_CHECKING:
    from forgetting.tasks.regression import RegressionTasks

__all__ = ["LinearTasks", "Realizability"]

PART = 2**18  # numbers predicted at once: 2 MiB, which stay in the cache


@dataclass(frozen=True)
class Realizability:
    """Whether some w solves all linear tasks, decided by the residuals of the offline solution w*.

    Attributes:
        holds: whether the largest relative residual is at most the tolerance.
        residual: the largest of |X_m w* - y_m| / (|X_m| |w*| + |y_m|) over tasks.
        first_offender: the first task whose residual is above the tolerance, or None.
        tolerance: the largest relative residual that counts as zero.
    """

    holds: bool
    residual: float
    first_offender: int | None
    tolerance: float

    @property
    def message(self) -> str:
        """A sentence that says whether the tasks are jointly realizable, with the largest residual."""
        if self.holds:
            return f"jointly realizable: largest relative residual {self.residual:.2g}"
        return (
            f"not jointly realizable: no w solves all tasks; the first unsolved task is task {self.first_offender}, "
            f"and the largest relative residual is {self.residual:.2g} (tolerance {self.tolerance:.2g})"
        )


class LinearTasks(Problem):
    """T linear regression tasks, X_m w = y_m, represented by their geometry."""

    kind: ClassVar[Kind] = "regression"
    loss_kind: Literal["sum", "mean"]
    rank_tol: float | None
    rtol: float

    def _set_options(self, loss: Literal["sum", "mean"], rank_tol: float | None, rtol: float) -> None:
        self.loss_kind = as_word(loss, ("sum", "mean"), "loss")
        self.rank_tol = None if rank_tol is None else as_number(rank_tol, "rank_tol", least=0, below=1)
        self.rtol = as_number(rtol, "rtol", least=0)

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """The reduction to the joint row space, computed once."""

    @property
    def directions(self) -> Directions:
        """The directions on which linear schemes step: the geometry, or the rows of the tasks where none is needed."""
        return self.geometry

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        columns = {**super()._columns(rows, full=full), "rows": self.num_rows[rows]}
        if full:
            residuals = self.geometry.residuals[self.geometry.index]
            columns |= {"rank": self.ranks[rows], "norm": self.norms[rows], "residual": residuals[rows]}
        return columns

    def adopt(self, geometry: Geometry) -> None:
        """Use a geometry that was computed before from the same tasks, such as that of a file, instead of a new one."""
        if geometry.num_tasks != self.num_tasks or geometry.frame.dim != self.dim:
            raise ForgettingError(
                f"the geometry is that of {geometry.num_tasks} tasks in dimension {geometry.frame.dim}, not of these"
            )
        self.__dict__["geometry"] = geometry

    @property
    def linear(self) -> LinearTasks:
        """The tasks themselves."""
        return self

    @property
    def loss_meaning(self) -> str:
        """Half the squared residual, summed or averaged over the rows of a task."""
        rows = "summed over its rows" if self.loss_kind == "sum" else "its mean over the rows"
        outputs = "" if self.outputs is None else f" and summed over {self.outputs} outputs"
        return f"half the squared residual of a task, {rows}{outputs}"

    @property
    def data(self) -> RegressionTasks | None:
        """The tasks with their data matrices; None if only inner products are known."""
        return None

    @property
    @abstractmethod
    def num_rows(self) -> IntArray:
        """n_m for every task."""

    # -------------------------------------------------------------------------------------------------- accuracy

    #: for tasks made from class labels: the names of the classes that the outputs of each task stand for
    classes: tuple[tuple[str, ...], ...] | None = None

    @abstractmethod
    def labels_of(self, task: int) -> Array:
        """The labels of a task, (n,) or (n, c)."""

    @abstractmethod
    def predictions(self, task: int, points: Array) -> tuple[Array, Array]:
        """The predictions for the rows of a task at each of a stack of w, and the size that each is rounded from."""

    @abstractmethod
    def row_lengths(self, task: int) -> Array:
        """The norm |x| of each row of a task."""

    @cached_property
    def labels_stand_for(self) -> Literal["signs", "classes"] | None:
        """The meaning of labels, so that there is an accuracy: "signs" (+1, -1), "classes" (one-hot), or None."""
        return kind_of_labels([self.labels_of(task) for task in range(self.num_tasks)])

    def accuracy(self, w: Any) -> Array:
        """The share of the rows of every task whose class is predicted at w, T numbers between 0 and 1.

        The class is the sign of x.w where labels are +1 and -1, and the largest output among the classes of the task
        where they are one-hot. Classes that are equally likely up to rounding share the row: guessing. NaN where w is
        so large that its square overflows.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0], [-1.0]], [[2.0]]], [[1.0, 1.0], [-1.0]])
        >>> tasks.accuracy([3.0])
        array([0.5, 0. ])
        """
        return np.asarray(self.accuracies(self.point(w)[None])[0])

    def accuracies(self, points: Any) -> Array:
        """`accuracy` at each of a stack of w, (len(points), T)."""
        return self._scores(points, None)[0]

    def accuracies_within(self, points: Array, off: Array, held_out: bool = False) -> tuple[Array, Array]:
        """`accuracies` of w that are off by at most `off` each, and bounds on their errors, both (len(points), T).

        A bound is the share of the rows of a task whose margin is not clear, ties included.

        >>> import forgetting as fg
        >>> tasks = fg.RegressionTasks([[[1.0, 0.0], [1.0, -1.0]]], [[1.0, 1.0]])
        >>> tasks.accuracies_within([[2.0, 1.999], [2.0, 1.0]], [0.01, 0.01])
        (array([[1.],
               [1.]]), array([[0.5],
               [0. ]]))
        """
        if as_flag(held_out, "held_out"):
            return super().accuracies_within(points, off, held_out)
        stack, wrong = self._stack(points), numbers(off, "off")
        if wrong.shape != (len(stack),) or not np.all(wrong >= 0):
            raise InvalidInputError(
                f"off: expected a number of at least 0 for each of {len(stack)} points, got {off!r:.80}"
            )
        return self._scores(stack, wrong)

    def _scores(self, points: Any, off: Array | None) -> tuple[Array, Array]:
        """`accuracies_within`; without `off` nothing is computed in the place of the undecided shares."""
        points = self._stack(points)
        if self.labels_stand_for is None:
            raise MissingValueError(
                "accuracy needs classes: labels +1 and -1, or tasks made by RegressionTasks.from_labels"
            )
        table, undecided = np.empty((2, len(points), self.num_tasks))
        lengths = [] if off is None else [self.row_lengths(task) for task in range(self.num_tasks)]
        size = max(1, PART // (max(1, int(np.max(self.num_rows))) * (self.outputs or 1)))
        for start in range(0, len(points), size):
            part = slice(start, start + size)
            some = np.moveaxis(np.ascontiguousarray(np.moveaxis(points[part], 0, -1)), -1, 0)  # as products need them
            for task in range(self.num_tasks):
                own = None if self.classes is None else len(self.classes[task])
                with quietly():
                    predictions, sizes = self.predictions(task, some)
                    table[part, task] = correct_share(predictions, self.labels_of(task), sizes, own)
                    if off is not None:
                        wrong = off[part, None] * lengths[task]
                        undecided[part, task] = undecided_share(predictions, self.labels_of(task), sizes, wrong, own)
        return table, undecided

    def _stack(self, points: Any) -> Array:
        """A stack of w, checked; a run that diverges has points that are not finite."""
        stack = numbers(points, "points")
        if stack.ndim == 0 or stack.shape[1:] != self.point_shape:
            raise InvalidInputError(f"points: expected a stack of w of shape {self.point_shape}, got {stack.shape}")
        return stack

    @property
    def ranks(self) -> IntArray:
        """Rank of each data matrix."""
        return self.geometry.ranks[self.geometry.index]

    @property
    def rank_avg(self) -> float:
        """Average rank of the data matrices."""
        return float(np.mean(self.ranks))

    @property
    def rank_max(self) -> int:
        """Largest rank of a data matrix."""
        return int(np.max(self.ranks))

    @property
    def rank_joint(self) -> int:
        """D, the rank of all tasks together."""
        return self.geometry.dim

    @property
    def norms(self) -> Array:
        """Spectral norm of each data matrix (divided by n_m^(1/2) for a mean loss)."""
        return self.directions.norms[self.directions.index]

    @property
    def radius(self) -> float:
        """R, the largest spectral norm."""
        return float(np.max(self.norms))

    @property
    def radius_sq_mean(self) -> float:
        """The paper's R-bar: the mean squared spectral norm."""
        return float(np.mean(self.norms**2))

    @cached_property
    def realizability(self) -> Realizability:
        """Whether some w solves all tasks; see `Realizability`."""
        residuals = self.geometry.residuals[self.geometry.index]
        bad = np.flatnonzero(residuals > self.rtol)
        first = int(bad[0]) if bad.size else None
        return Realizability(first is None, float(residuals.max()), first, self.rtol)

    def require_realizable(self, what: str) -> None:
        """Raise unless some w solves all tasks; `what` names the operation that needs such a w."""
        realizability = self.realizability
        if realizability.first_offender is not None:
            raise NotRealizableError(
                f"{what} needs jointly realizable tasks, but these are {realizability.message}. "
                "Use fewer rows per task or a richer feature map (dimension above the number of rows), "
                "or raise rtol= if the labels are only known to that accuracy.",
                task=realizability.first_offender,
                residual=realizability.residual,
            )

    @property
    def w_star(self) -> Array:
        """The minimum-norm offline solution."""
        return self.nearest_solution(np.zeros(self.point_shape))

    def nearest_solution(self, w0: Array) -> Array:
        """The offline solution nearest to w_0."""
        self.require_realizable("w_star")
        return self.geometry.nearest_solution(self.point(w0, "w0"))

    def scale_from(self, w0: Array) -> float:
        """|w_0 - w*|^2 R^2 for a run that starts at w_0."""
        self.require_realizable("scale")
        gap = self.geometry.start(self.point(w0, "w0"))
        return float(np.vdot(gap, gap)) * self.radius**2

    def distances(self, w: Array) -> Array:
        """Distance from w to the solution set of every task."""
        return self.directions.distances(self.directions.start(self.point(w)))

    def project(self, task: int, w: Array) -> Array:
        """The solution of the task nearest to w: w - X_m^+ (X_m w - y_m)."""
        start, directions = self.point(w), self.directions
        return directions.lift(directions.project(as_task(task, self.num_tasks), directions.start(start)), start)
