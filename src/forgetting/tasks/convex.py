"""Convex sets as a problem: the points of a set solve its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from forgetting import sets as convex_sets
from forgetting.core.arrays import Array, IntArray, as_kind, as_list, as_task, as_vector, read_only
from forgetting.core.memory import require_memory
from forgetting.core.registry import registered_class
from forgetting.errors import ForgettingError, InfeasibleError, InvalidInputError, NotSupportedError
from forgetting.files.arrays import entry, words
from forgetting.geometry import Directions, Geometry
from forgetting.sets import (
    Affine,
    CommonPoint,
    ConvexSet,
    nearest_common_point,
)
from forgetting.sets.in_turn import Inequalities, inequalities_of
from forgetting.tasks.linear_tasks import Realizability
from forgetting.tasks.problem import Problem
from forgetting.tasks.regression import RegressionTasks

__all__ = ["ConvexSets"]


@dataclass(frozen=True, eq=False)
class Intersection:
    """Whether convex sets have a common point.

    Attributes:
        holds: True, False, or None if undecided.
        message: a sentence that says so, with the reason.
        certificate: for polyhedral sets without a common point, weights that prove that there is none.

    >>> import forgetting as fg
    >>> fg.ConvexSets([fg.Halfspace([1.0], 2.0), fg.Halfspace([-1.0], 0.0)]).realizability.certificate
    array([0.5, 0.5])
    """

    holds: bool | None
    message: str
    certificate: Array | None = field(default=None, repr=False)


class ConvexSets(Problem):
    """T closed convex sets C_m in R^d, with the loss L_m(w) = 1/2 dist(w, C_m)^2.

    The setting of the paper's `scheme:pocs`: L is the residual of `thm:pocs-rate`, and each L_m is convex and 1-smooth
    with gradient w - P_m(w) (`reduc:pocs`). If every set is `Affine` or `Subspace`, the problem has a `geometry`, and
    every method for regression tasks applies.

    Args:
        sets: T sets; a `CustomSet` without a dimension takes the dimension of the others.
        names: T names for reports; numbers if left out.

    >>> import forgetting as fg
    >>> sets = fg.ConvexSets([fg.Ball([0.0, 0.0], 1.0), fg.Halfspace([1.0, 0.0], 0.5)])
    >>> sets, sets.distances([3.0, 4.0]), sets.loss([3.0, 4.0])
    (ConvexSets(T=2, d=2), array([4., 0.]), 4.0)
    >>> fg.run(sets, fg.orderings.Cyclic(), k=2, w0=[-3.0, 4.0]).iterates.round(6)
    array([[-3. ,  4. ],
           [-0.6,  0.8],
           [ 0.5,  0.8]])
    """

    format = "forgetting/sets/1"
    half_squared_distances: ClassVar[bool] = True

    def __init__(self, sets: Sequence[ConvexSet], *, names: Sequence[str] | None = None) -> None:
        given = as_list(sets, "sets")
        if not given:
            raise InvalidInputError("no sets given; a collection needs at least one")
        for position, member in enumerate(given):
            as_kind(member, ConvexSet, "a convex set such as fg.Halfspace(a, b)", f"set {position}: ")
        dims = [(position, member.dim) for position, member in enumerate(given) if "dim" in member.__dict__]
        if not dims:
            raise InvalidInputError("no set knows its dimension; give dim= to a CustomSet")
        first, self.dim = dims[0]
        for position, dim in dims:
            if dim != self.dim:
                raise InvalidInputError(f"set {position} is in dimension {dim}, but set {first} in {self.dim}")
        self.sets: tuple[ConvexSet, ...] = tuple(member.with_dim(self.dim) for member in given)
        called = range(len(given)) if names is None else as_list(names, "names")
        if len(called) != len(given):
            raise InvalidInputError(f"{len(called)} names for {len(given)} sets")
        self.names = tuple(map(str, called))
        self._failed: dict[bytes, ForgettingError] = {}

    @classmethod
    def from_affine(cls, tasks: RegressionTasks) -> ConvexSets:
        """The solution sets {w: X_m w = y_m} of regression tasks.

        >>> import forgetting as fg
        >>> fg.ConvexSets.from_affine(fg.families.two_lines(0.5)).sets[0]
        Affine(d=2, rank=1)
        """
        as_kind(tasks, RegressionTasks, "RegressionTasks")
        distinct: dict[int, Affine] = {}
        sets: list[ConvexSet] = []
        for task, number in enumerate(tasks.index.tolist()):
            if number not in distinct:
                distinct[number] = Affine(*tasks.task(task))
            sets.append(distinct[number])
        return cls(sets, names=tasks.names)

    @property
    def num_tasks(self) -> int:
        return len(self.sets)

    def digest_parts(self) -> Iterator[tuple[object, ...]]:
        """The class name and the defining values of each set."""
        for member in self.sets:
            values = [getattr(member, name) for name in member.parts] if member.parts else vars(member)
            yield type(member).__name__, values

    def file_arrays(self) -> dict[str, Any]:
        arrays: dict[str, Any] = {
            "format": np.array(self.format),
            "kinds": np.array([type(member).__name__ for member in self.sets]),
            "names": np.array(self.names),
        }
        for position, member in enumerate(self.sets):
            if registered_class(convex_sets.registry, type(member).__name__) is not type(member) or not member.parts:
                raise NotSupportedError(
                    f"set {position}: {type(member).__name__} cannot be saved; a class with `parts` under "
                    "@fg.sets.register can"
                )
            values = {name: getattr(member, name) for name in member.parts}
            arrays |= {f"{position}/{name}": np.asarray(value) for name, value in values.items() if value is not None}
        return arrays

    @classmethod
    def from_file_arrays(cls, arrays: dict[str, Any]) -> ConvexSets:
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

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        return {**super()._columns(rows, full=full), "set": [repr(self.sets[row]) for row in rows]}

    def rebuilt(
        self, change: Callable[[Array], Array], without: int | None = None, common: Array | None = None
    ) -> ConvexSets:
        point = np.zeros(self.dim) if common is None else common
        kept = [member for position, member in enumerate(self.sets) if position != without]
        return ConvexSets([member.rebuilt(change, point) for member in kept])

    @property
    def members(self) -> tuple[ConvexSet, ...]:
        return self.sets

    @cached_property
    def inequalities(self) -> Inequalities | None:
        return inequalities_of(self.sets)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "inequalities"}

    @property
    def loss_meaning(self) -> str:
        """The distance to the set of the task."""
        return "half the squared distance to the set of a task"

    @property
    def radius(self) -> float:
        """1, since L_m(w) = 1/2 dist(w, C_m)^2."""
        return 1.0

    def project(self, task: int, w: Any) -> Array:
        return self.sets[as_task(task, self.num_tasks)].nearest(self._point(w))

    def task_loss(self, task: int, w: Any) -> float:
        """1/2 dist(w, C_m)^2."""
        point = self._point(w)
        gap = point - self.sets[as_task(task, self.num_tasks)].nearest(point)
        return 0.5 * float(gap @ gap)

    def task_losses(self, w: Any) -> Array:
        """1/2 dist(w, C_m)^2 for every set."""
        return np.asarray(0.5 * self.distances(w) ** 2)

    def distances(self, w: Any) -> Array:
        """dist(w, C_m) for every set; a set that is listed more than once is projected onto once."""
        point = self._point(w)
        known = {member: float(np.linalg.norm(point - member.nearest(point))) for member in set(self.sets)}
        return np.array([known[member] for member in self.sets])

    def _point(self, w: Any) -> Array:
        return as_vector(w, self.dim, "w")

    # ------------------------------------------------------------------------------------------------- intersection

    def nearest_in_intersection(
        self,
        w0: Any = None,
        *,
        tol: float = 1e-10,
        max_sweeps: int = 10_000,
        method: Literal["auto", "dykstra", "polyhedron"] = "auto",
    ) -> CommonPoint:
        """The common point nearest to w_0 (default 0); see `forgetting.sets.nearest_common_point`.

        >>> import forgetting as fg
        >>> sets = fg.ConvexSets([fg.Halfspace([1.0, 0.0], 1.0), fg.Halfspace([0.0, 1.0], 2.0)])
        >>> sets.nearest_in_intersection().point
        array([1., 2.])
        """
        start = np.zeros(self.dim) if w0 is None else self._point(w0)
        return nearest_common_point(self.sets, start, tol=tol, max_sweeps=max_sweeps, method=method)

    def nearest_solution(self, w0: Any) -> Array:
        """The common point nearest to w_0; an error if there is none or the search fails."""
        start = self._point(w0)
        return self._nearest(start) if start.any() else self.w_star.copy()

    @cached_property
    def w_star(self) -> Array:
        """The common point of least norm."""
        return read_only(self._nearest(np.zeros(self.dim)))

    def _nearest(self, start: Array) -> Array:
        """The common point nearest to `start`; the error of a failed search is kept and raised again."""
        key = start.tobytes()
        if key not in self._failed:
            try:
                nearest = self.nearest_in_intersection(start)
                if nearest.converged:
                    return nearest.point
                error = ForgettingError(f"the nearest common point was not found: {nearest.status}")
            except InfeasibleError as empty:
                error = empty
            self._failed[key] = error
        raise self._failed[key]

    @cached_property
    def realizability(self) -> Realizability | Intersection:
        """Whether the sets have a common point: by the residuals for affine sets, else by a search for a common point.

        >>> import forgetting as fg
        >>> print(fg.ConvexSets([fg.Ball([0.0], 1.0), fg.Halfspace([1.0], 2.0)]).realizability.message)
        the sets have no common point: none is nearer to the start than 9.5, but set 0, Ball(d=1, radius=1), ends at 1
        """
        if self.regression is not None:
            return self.regression.realizability
        try:
            return Intersection(True, f"the sets have a common point of norm {float(np.linalg.norm(self.w_star)):.4g}")
        except InfeasibleError as error:
            return Intersection(False, str(error), error.certificate)
        except ForgettingError as error:
            return Intersection(None, f"whether the sets have a common point is not known: {error}")

    # ------------------------------------------------------------------------------------------------- affine sets

    @cached_property
    def regression(self) -> RegressionTasks | None:
        """Regression tasks with orthonormal rows and the same losses; None unless every set is affine."""
        matrices, labels = [], []
        for member in self.sets:
            equations = member.equations()
            if equations is None:
                return None
            rows, targets = equations
            unrestricted = len(rows) == 0  # the set is R^d
            matrices.append(np.zeros((1, self.dim)) if unrestricted else rows)
            labels.append(np.zeros(1) if unrestricted else targets)
        return RegressionTasks(matrices, labels, names=self.names)

    @property
    def linear(self) -> RegressionTasks | None:
        """Same as `regression`; all problems have `linear`."""
        return self.regression

    @property
    def geometry(self) -> Geometry | None:
        """The reduction to subspaces for exact engines and compiled loops; None unless every set is affine."""
        return None if self.regression is None else self.regression.geometry

    @property
    def directions(self) -> Directions | None:
        """The directions on which linear schemes step; None unless every set is affine."""
        return None if self.regression is None else self.regression.directions

    def require_realizable(self, what: str) -> None:
        """Raise unless the sets have a common point; `what` names the operation that needs such a point."""
        if self.regression is not None:
            self.regression.require_realizable(what)
        else:
            _ = self.w_star
