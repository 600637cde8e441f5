"""The system that a method solves, how far x is from a solution, and the base class of methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Any, ClassVar, Protocol

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS, rank_tolerance
from forgetting.core.registry import Registry, class_decorator
from forgetting.orderings import Ordering, Reshuffled
from forgetting.sets import ConvexSet
from forgetting.solver.pairs import as_complex
from forgetting.solver.sweepers import Iterate, Sweeper

POWERS = 8  # steps of the power method
SMALL = 3e8  # m n min(m, n) up to which a decomposition takes a second at most


registry: Registry[type[Any]] = Registry("method")


@dataclass(frozen=True)
class System:
    """The system that a method solves: the sweeper of its rows, the right-hand side, the start and the damping.

    `nearest` asks for the solution nearest to x0 also where rows are inequalities, x has bounds or lies in `sets`.
    `trusted` is the share of the rows that count for convergence: those with the smallest residuals. `exact` holds the
    rows without noise, of a system whose other rows have some.
    """

    sweeper: Sweeper
    b: Array
    x0: Array
    damp: float = 0.0
    nearest: bool = False
    seed: int = 0
    sets: tuple[ConvexSet, ...] = ()
    trusted: float = 1.0
    exact: ExactRows | None = None

    def shown(self, x: Array) -> Any:
        """x as the user sees it: complex if the system is."""
        return as_complex(x) if self.sweeper.unit > 1 else x

    @property
    def num_trusted(self) -> int:
        """The number of rows that count for convergence."""
        return max(1, int(np.floor(self.trusted * (len(self.b) // self.sweeper.unit))))

    @property
    def sizes(self) -> Array:
        """|b| of each right-hand side, to which residuals are relative; if b is 0, the norm of the gap at x0, or 1."""
        norms = np.atleast_1d(np.linalg.norm(self.b, axis=0))
        if not norms.all():
            start = np.atleast_1d(np.linalg.norm(self.sweeper.gap(self.b, self.x0), axis=0))
            norms = np.where(norms > 0, norms, np.where(start > 0, start, 1.0))
        return norms

    @property
    def limited(self) -> bool:
        """Whether x has bounds, rows are inequalities, or x lies in sets."""
        limits = self.sweeper.limits
        return len(limits.relations) > 0 or len(limits.low) > 0 or len(self.sets) > 0

    @property
    def small(self) -> bool:
        """Whether a decomposition of the matrix takes a second at most, with constraints an active-set method."""
        m, n = self.sweeper.shape
        if self.limited:
            sides = [convex.inequalities() for convex in self.sets]
            rows = m + sum(len(side[1]) for side in sides if side is not None)
            rows += int(np.isfinite([self.sweeper.limits.low, self.sweeper.limits.high]).sum())
            return self.sweeper.in_memory and None not in sides and (rows + n) * n * n <= SMALL
        return self.sweeper.in_memory and m * n * min(m, n) <= SMALL

    @cached_property
    def decomposition(self) -> Decomposition:
        """A factorisation of the matrix, computed once."""
        return Decomposition(self.sweeper.dense(), self.damp)


class ExactRows(Protocol):
    """Rows without noise, onto whose solutions x is projected."""

    def project(self, x: Array) -> None:
        """Change x to the nearest point that solves these rows."""


class Decomposition:
    """A factorisation of A, by which the least-squares or ridge solution is one step away from any x.

    A = Q R (or R^T Q^T where A is wide) if the rank is full and there is no damping, else the singular value
    decomposition, which takes three times as long.

    Attributes:
        largest: the largest singular value.
        curvature: the least square of a singular value that is not 0, plus damp^2: rounding errors are divided by it.
            Of Q R an estimate, of which a quarter is taken.
            Only damp^2 where rows have directions that were not resolved: beside a row of norm 1e17, one of norm 1 is
            lost in rounding errors, and with it the solution.
    """

    def __init__(self, dense: Array, damp: float) -> None:
        self.shape, self.squared = dense.shape, damp**2
        sizes = np.linalg.norm(dense, axis=1)
        self.factor = None if damp else self._triangular(dense, sizes)
        if self.factor is not None:
            return
        left, singular, right = np.linalg.svd(dense, full_matrices=False)
        self.largest = float(singular[0])
        kept = singular > rank_tolerance(dense.shape) * max(self.largest, np.finfo(float).tiny)
        self.left, self.right, self.singular = left[:, kept].T, right[kept].T, singular[kept]
        rank = np.linalg.matrix_rank(dense / np.where(sizes > 0, sizes, 1.0)[:, None])
        least = float(np.min(self.singular**2, initial=np.inf)) if rank <= len(self.singular) else 0.0
        self.curvature = least + self.squared

    def _triangular(self, dense: Array, sizes: Array) -> tuple[Array, Array] | None:
        """Q and R; None unless the rank is full beyond doubt."""
        from scipy.linalg import qr, solve_triangular

        if not 0 < sizes.max() <= 1e6 * sizes.min():
            return None
        frame, triangle = qr(dense if dense.shape[0] >= dense.shape[1] else dense.T, mode="economic")
        if not np.abs(np.diag(triangle)).min() > 0:
            return None
        tops = bottoms = np.random.default_rng(0).standard_normal(len(triangle))
        with np.errstate(all="ignore"):
            for _ in range(POWERS):  # the power method, forth and back, for the largest and the least singular value
                tops = triangle.T @ (triangle @ (tops / np.linalg.norm(tops)))
                bottoms = solve_triangular(triangle, bottoms / np.linalg.norm(bottoms), trans="T", check_finite=False)
                bottoms = solve_triangular(triangle, bottoms, check_finite=False)
            largest, least = 1.1 * norm(tops) ** 0.5, 0.5 * norm(bottoms) ** -0.5
        if not least > 1e3 * rank_tolerance(dense.shape) * largest:
            return None
        self.singular, self.largest, self.curvature = np.array([largest, least]), largest, least**2
        return frame, triangle

    def correction(self, gap: Array, moved: Array) -> Array:
        """The step to the solution from x with gap = b - A x and moved = x - x0."""
        if self.factor is not None:
            return self._solved(*self.factor, gap)
        along = self.right.T @ moved
        singular = self.singular.reshape(-1, *[1] * (gap.ndim - 1))
        pushed = singular * (self.left @ gap) - self.squared * along
        step: Array = self.right @ (pushed / (singular**2 + self.squared))
        return step - (moved - self.right @ along) if self.squared else step

    def _solved(self, frame: Array, triangle: Array, gap: Array) -> Array:
        from scipy.linalg import solve_triangular

        if self.shape[0] >= self.shape[1]:
            return np.asarray(solve_triangular(triangle, frame.T @ gap))
        return np.asarray(frame @ solve_triangular(triangle, gap, trans="T"))

    def rounding(self, sizes: Array, missed: Array) -> Array:
        """The size of rounding errors in a correction, for |b| + |A| |x| and |b - A x| of every right-hand side.

        By the perturbation of least squares: eps times the condition number of A for what solves the system, and times
        its square for the residual (Bjoerck 1996, section 1.4).
        """
        unit = 2 * np.sqrt(max(self.shape)) * EPS
        steps = np.max(self.singular / (self.singular**2 + self.squared), initial=0.0)
        with np.errstate(all="ignore"):
            return np.asarray(unit * (steps * sizes + self.largest * missed / self.curvature))


@dataclass(frozen=True)
class Distance:
    """The distance of x from the least-squares or ridge solution, relative to that solution.

    Attributes:
        error: a bound on the distance, up to rounding errors of what it is computed from.
        rounding: the part of it that rounding errors account for; no method gets below.
    """

    error: float
    rounding: float

    def accurate(self, tol: float) -> bool:
        """Whether x is as near as the tolerance or rounding errors ask."""
        return self.error <= max(tol, 2 * self.rounding)


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of x: how far it is from a solution.

    Attributes:
        residual: the largest |b - A x| / |b| over right-hand sides; of violated parts only where rows are inequalities.
        left: what must be at most the tolerance: the residual, and for the nearest point also the relative duality gap;
            infinite with damping, which is judged by `normal`.
        normal: the largest |A^T r| / (|A| |r|) over right-hand sides, with r = b - A x and the Frobenius norm; with
            damping that of the system with the rows damp x = damp x0, too. None for methods that solve systems.
        error: the distance to the limit, relative to |x|, as far as the moves of x tell; None if they do not.
        each: for every right-hand side its residual (with damping and without `error`, that of the system with the rows
            damp x = damp x0, too), its `normal`, and |A| (|x| + |x0|) / |b|; None without `normal`.
    """

    residual: float
    left: float
    normal: float | None = None
    error: float | None = None
    each: tuple[Array, Array, Array] | None = None

    def normal_above(self, allowed: float) -> float:
        """The largest `normal` of the right-hand sides whose residuals are larger than allowed; infinite if unknown."""
        if self.each is None:
            return np.inf
        residuals, normals, _ = self.each
        return float(np.max(normals[residuals > allowed], initial=0.0))

    def excludes(self, allowed: float) -> bool:
        """Whether some right-hand side has no solution x' near: |x' - x| must be 100 (|x| + |x0|) or more.

        r' = b - A x' of another x' has r.(r - r') = (A^T r).(x' - x), so that |r'| <= allowed |b| needs
        |A^T r| |x' - x| >= |r| (|r| - allowed |b|).
        """
        if self.each is None:
            return False
        residuals, normals, scales = self.each
        return bool(np.any(residuals - allowed > 100 * normals * scales))


class Method(ABC):
    """A row-action method.

    Attributes:
        least_squares: whether x converges to the least-squares solution nearest to x0 if no x solves the system.
        damps: whether the method can minimise |A x - b|^2 + damp^2 |x - x0|^2.
        constrains: whether the method minimises |A x - b|^2 over bounds, inequalities and sets.
        estimates: whether the method estimates its error.
        by_epoch: whether x changes at the ends of epochs only, so that nothing is to be checked in between.
        streams: whether the method can make its steps block by block, for a matrix that is not in memory.
        usual_order: the ordering unless the user chooses one.
        sees_residuals: whether the errors of visited rows are about those of b - A x.
        window: epochs over which progress is judged.
        passes: how many steps each visit makes with every row.
        tells: whether `error` says when x is accurate enough, so that nothing is to be checked before.
        simultaneous: whether all rows of a block step from the same x, weighted by sums of rows and columns.
        last_gap: b - A x (of violated parts only where rows are inequalities) when it was last computed.
    """

    name: ClassVar[str]
    least_squares: ClassVar[bool] = False
    damps: ClassVar[bool] = False
    constrains: ClassVar[bool] = False
    estimates: ClassVar[bool] = False
    by_epoch: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    usual_order: ClassVar[type[Ordering]] = Reshuffled
    sees_residuals: ClassVar[bool] = False
    window: ClassVar[int] = 6
    passes: ClassVar[int] = 1
    tells: ClassVar[bool] = False
    simultaneous: ClassVar[bool] = False
    last_gap: Array

    def __init__(self, system: System, x: Array | None = None) -> None:
        self.system = system
        self.iterate = Iterate(np.array(system.x0 if x is None else x, dtype=np.float64, order="C"))
        self.sizes = system.sizes

    @property
    def x(self) -> Array:
        """The current approximation."""
        return self.iterate.x

    @property
    def by_rows(self) -> bool:
        """Whether a visit changes x by a multiple of the visited row, and by nothing else."""
        return False

    @property
    def simultaneous_weights(self) -> tuple[Array, Array] | None:
        """The diagonals of M and D where an epoch is x <- x + relaxation D A^T M (b - A x); None of other methods."""
        return None

    @property
    def target(self) -> Array:
        """The right-hand side that the steps of `iterate.x` aim at, for orderings that look at errors of rows."""
        return self.system.b

    @property
    def contradiction(self) -> str | None:
        """What contradicts itself, in words, so that no x satisfies all constraints; None unless that is certain."""
        return None

    @property
    def floor(self) -> float:
        """The part of `normal` that may be rounding errors, where nothing more can be done."""
        return 0.0

    @abstractmethod
    def sweep(self, visits: IntArray) -> Array:
        """Make the steps of visited blocks; the sum of the squared errors seen, for each right-hand side."""

    def end_epoch(self) -> None:  # noqa: B027  (most methods have nothing to do)
        """Do what follows after every block had its turn."""

    def error(self) -> float | None:
        """The estimated distance to the limit relative to |x|; None if there is no estimate."""
        return None

    def distance(self, *, decompose: bool = True) -> Distance | None:
        """The distance of x from the least-squares solution; None if that is not known."""
        return None

    def measure(self) -> Accuracy:
        """Compute the residual, by a pass over the matrix."""
        self.last_gap = gap = self.system.sweeper.gap(self.system.b, self.x)
        residual = float(np.max(norms(gap) / self.sizes))
        if self.system.trusted == 1 or gap.ndim == 2:
            return Accuracy(residual, residual)
        sweeper: Any = self.system.sweeper
        errors, sides = sweeper.of_units(gap), sweeper.of_units(self.system.b)
        trusted = np.argsort(errors, kind="stable")[: self.system.num_trusted]
        size = float(np.linalg.norm(sides[trusted])) or 1.0
        return Accuracy(residual, float(np.linalg.norm(errors[trusted])) / size)

    def off(self, x: Array) -> float:
        """The relative distance of x to the sets and bounds that steps of rows may leave."""
        return 0.0

    def arrays(self) -> dict[str, Array]:
        """The numbers from which the method can go on, for checkpoints."""
        return {"x": self.iterate.x, "duals": self.iterate.duals, "clipped": self.iterate.clipped}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Go on from what `arrays` gave."""
        self.iterate.x = arrays["x"].copy()
        self.iterate.duals = arrays["duals"].copy()
        self.iterate.clipped = arrays["clipped"].copy()


class Moves:
    """The moves of a sequence of points in its last epochs, relative to the size of the points."""

    def __init__(self, start: Array) -> None:
        self.last = start.copy()
        self.sizes: list[float] = []

    def add(self, point: Array) -> None:
        """Note the next point."""
        size = norm(point)
        self.sizes.append(norm(point - self.last) / size if size > 0 else 0.0)
        del self.sizes[:-40]
        self.last = point.copy()

    def error(self) -> float | None:
        """The estimated distance to the limit, relative to its size; None before five epochs are over.

        Moves that shrink by the factor q add up to q / (1 - q) times the last one; q is judged over several spans of
        epochs, and the largest sum counts, because the slowest part of the error moves least.
        """
        guesses = []
        for span in (5, 10, 20, 40):
            if len(self.sizes) >= span:
                half = span // 2
                later, earlier = max(self.sizes[-half:]), max(self.sizes[-span:-half])
                rate = min((later / earlier) ** (1 / (span - half)), 0.9999) if earlier > 0 else 0.9999
                guesses.append(max(self.sizes[-2:]) * rate / (1 - rate))
        return max(guesses, default=None)

    def arrays(self) -> dict[str, Array]:
        """The numbers from which to go on."""
        return {"last": self.last, "moves": np.array(self.sizes)}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Go on from what `arrays` gave."""
        self.last, self.sizes = arrays["last"].copy(), arrays["moves"].tolist()


def norms(array: Array) -> Array:
    """The norm of every column, also where squares overflow or vanish."""
    if array.ndim == 1:
        square = float(np.dot(array, array))
        if 1e-280 < square < 1e280:
            return np.array([sqrt(square)])
    with np.errstate(over="ignore"):
        norms = np.atleast_1d(np.linalg.norm(array, axis=0))
    if ((norms > 1e-140) & (norms < 1e140)).all():
        return norms
    largest = np.max(np.abs(array), axis=0, initial=0.0)
    sizes = np.where(largest > 0, largest, 1.0)
    return np.atleast_1d(sizes * np.linalg.norm(array / sizes, axis=0))


def norm(array: Array) -> float:
    """The norm of all entries, also where squares overflow or vanish."""
    return float(norms(array.ravel())[0])


register = class_decorator(registry, lambda: Method)
