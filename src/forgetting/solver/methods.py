"""The row-action methods: what one epoch does, and how far x is from what the method converges to."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from forgetting._arrays import EPS, Array, IntArray
from forgetting._registry import Registry, class_decorator
from forgetting.orderings import NormWeighted, Ordering, Reshuffled
from forgetting.sets import ConvexSet
from forgetting.solver.default_order import DrawnOnce
from forgetting.solver.sweepers import Iterate, Sweeper

__all__ = ["Averaged", "Direct", "Extended", "Kaczmarz", "Measure", "Method", "Multipliers", "System", "registry"]

registry: Registry[type[Any]] = Registry("method")
TRIAL = 8  # epochs, at least, before the damping of the method of multipliers changes


@dataclass(frozen=True)
class System:
    """The system that a method solves: the sweeper of its rows, the right-hand side, the start and the damping.

    `nearest` asks for the solution nearest to x0 also where rows are inequalities, x has bounds or lies in `sets`.
    `trusted` is the share of the rows that count for convergence: those with the smallest residuals.
    """

    sweeper: Sweeper
    b: Array
    x0: Array
    damp: float = 0.0
    nearest: bool = False
    seed: int = 0
    sets: tuple[ConvexSet, ...] = ()
    trusted: float = 1.0

    @property
    def num_trusted(self) -> int:
        """The number of rows that count for convergence."""
        return max(1, int(np.floor(self.trusted * len(self.b))))

    @property
    def sizes(self) -> Array:
        """|b| of each right-hand side, to which residuals are relative; if b is 0, the norm of the gap at x0, or 1."""
        norms = np.atleast_1d(np.linalg.norm(self.b, axis=0))
        if not norms.all():
            start = np.atleast_1d(np.linalg.norm(self.sweeper.gap(self.b, self.x0), axis=0))
            norms = np.where(norms > 0, norms, np.where(start > 0, start, 1.0))
        return norms


@dataclass(frozen=True)
class Measure:
    """How far x is from a solution.

    Attributes:
        residual: the largest |b - A x| / |b| over right-hand sides; of violated parts only where rows are inequalities.
        left: what must be at most the tolerance: the residual, and for the nearest point also the relative duality gap;
            infinite with damping, which is judged by `normal`.
        normal: the largest |A^T r| / (|A| |r|) over right-hand sides, with r = b - A x and the Frobenius norm; with
            damping that of the system with the rows damp x = damp x0, too. None for methods that solve systems.
        error: the estimated distance to the limit, relative to |x|; None if it is not estimated.
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
        estimates: whether the method estimates its error.
        by_epoch: whether x changes at the ends of epochs only, so that nothing is to be checked in between.
        streams: whether the method can make its steps block by block, for a matrix that is not in memory.
        usual_order: the ordering unless the user chooses one.
        sees_residuals: whether the errors of visited rows are about those of b - A x.
    """

    name: ClassVar[str]
    least_squares: ClassVar[bool] = False
    damps: ClassVar[bool] = False
    estimates: ClassVar[bool] = False
    by_epoch: ClassVar[bool] = False
    streams: ClassVar[bool] = False
    usual_order: ClassVar[type[Ordering]] = Reshuffled
    sees_residuals: ClassVar[bool] = False

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
    def target(self) -> Array:
        """The right-hand side that the steps of `iterate.x` aim at, for orderings that look at errors of rows."""
        return self.system.b

    @abstractmethod
    def sweep(self, visits: IntArray) -> Array:
        """Make the steps of visited blocks; the sum of the squared errors seen, for each right-hand side."""

    def end_epoch(self) -> None:  # noqa: B027  (most methods have nothing to do)
        """Do what follows after every block had its turn."""

    def error(self) -> float | None:
        """The estimated distance to the limit relative to |x|; None if there is no estimate."""
        return None

    def measure(self) -> Measure:
        """Compute the residual, by a pass over the matrix."""
        gap = self.system.sweeper.gap(self.system.b, self.x)
        residual = float(np.max(_norms(gap) / self.sizes))
        if self.system.trusted == 1 or gap.ndim == 2:
            return Measure(residual, residual)
        trusted = np.argsort(np.abs(gap), kind="stable")[: self.system.num_trusted]
        size = float(np.linalg.norm(self.system.b[trusted])) or 1.0
        return Measure(residual, float(np.linalg.norm(gap[trusted])) / size)

    def arrays(self) -> dict[str, Array]:
        """The numbers from which the method can go on, for checkpoints."""
        return {"x": self.iterate.x, "duals": self.iterate.duals, "clipped": self.iterate.clipped}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Go on from what `arrays` gave."""
        self.iterate.x = arrays["x"].copy()
        self.iterate.duals = arrays["duals"].copy()
        self.iterate.clipped = arrays["clipped"].copy()


class Moves:
    """How far a sequence of points moved in its last epochs, relative to the size of the points."""

    def __init__(self, start: Array) -> None:
        self.last = start.copy()
        self.sizes: list[float] = []

    def add(self, point: Array) -> None:
        """Note the next point."""
        size = _norm(point)
        self.sizes.append(_norm(point - self.last) / size if size > 0 else 0.0)
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


def _norms(array: Array) -> Array:
    """The norm of every column, also where squares overflow or vanish."""
    with np.errstate(over="ignore"):
        norms = np.atleast_1d(np.linalg.norm(array, axis=0))
    if ((norms > 1e-140) & (norms < 1e140)).all():
        return norms
    largest = np.max(np.abs(array), axis=0, initial=0.0)
    sizes = np.where(largest > 0, largest, 1.0)
    return np.atleast_1d(sizes * np.linalg.norm(array / sizes, axis=0))


def _norm(array: Array) -> float:
    """The norm of all entries, also where squares overflow or vanish."""
    return float(_norms(array.ravel())[0])


register = class_decorator(registry, lambda: Method)


@register
class Kaczmarz(Method):
    """Projections onto the solutions of rows or blocks, one after another.

    Converges to the solution nearest to x0 if there is a solution. With inequalities or bounds, x converges to some
    point that satisfies them, or to the nearest to x0 (Hildreth 1957, Dykstra 1983) if the system asks for it. Convex
    sets have their turn after every round of visits.
    """

    name = "kaczmarz"
    usual_order = DrawnOnce
    sees_residuals = True
    streams = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        limits = system.sweeper.limits
        if system.nearest and len(limits.relations):
            self.iterate.duals = np.zeros(system.b.shape)
        if len(limits.low):
            np.clip(self.iterate.x, limits.low, limits.high, out=self.iterate.x)
            if system.nearest:
                self.iterate.clipped = system.x0 - self.iterate.x
        #: what each set cut off, which Dykstra's method adds before the next projection
        self.cuts = np.zeros((len(system.sets) if system.nearest else 0, *self.iterate.x.shape))
        self.moves = Moves(self.iterate.x)

    def sweep(self, visits: IntArray) -> Array:
        seen = self.system.sweeper.sweep(visits, self.system.b, self.iterate)
        for i, convex in enumerate(self.system.sets):
            wanted = self.iterate.x + self.cuts[i] if len(self.cuts) else self.iterate.x
            self.iterate.x = np.array(convex.nearest(wanted))
            if len(self.cuts):
                self.cuts[i] = wanted - self.iterate.x
        return seen

    @property
    def by_rows(self) -> bool:
        return not self.system.sets

    def end_epoch(self) -> None:
        if len(self.cuts):
            self.moves.add(self.iterate.x)

    def measure(self) -> Measure:
        measured = super().measure()
        left = max([measured.left, *(convex.distance(self.x) / self._size for convex in self.system.sets)])
        limits = self.system.sweeper.limits
        if self.system.sets and len(limits.low):  # a projection onto a set may leave the bounds
            left = max(left, _norm(self.x - np.clip(self.x, limits.low, limits.high)) / self._size)
        if self.system.nearest:
            left = max(left, self._duality_gap())
        if len(self.cuts):  # the duality gap of other sets is not known
            error = self.moves.error()
            left = np.inf if error is None else max(left, error)
        return replace(measured, left=left)

    @property
    def _size(self) -> float:
        """The length to which distances are relative."""
        return max(float(np.linalg.norm(self.x)), float(np.linalg.norm(self.system.x0))) or 1.0

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), **self.moves.arrays(), "cuts": self.cuts}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.moves.restore(arrays)
        self.cuts = arrays["cuts"].copy()

    def _duality_gap(self) -> float:
        """The relative duality gap of the nearest point: |x - x*|^2 is at most the gap if x is feasible.

        x is x0 + A^T duals - (what the bounds cut off), so that only products of multipliers and slacks are missing.
        """
        limits = self.system.sweeper.limits
        gap = 0.0
        if len(self.iterate.duals):
            b = self.system.b
            slack = self.system.sweeper.slack(b, self.x)
            slack[np.abs(slack) <= 64 * EPS * (np.abs(b) + np.abs(b - slack))] = 0.0  # the root would magnify roundings
            gap += float(np.abs(self.iterate.duals * slack)[limits.relations != 0].sum())
        if len(self.iterate.clipped):
            cut = self.iterate.clipped  # positive where the upper bound acts, negative where the lower one does
            ends = np.where(cut > 0, limits.high, np.where(cut < 0, limits.low, self.x))
            gap += float(np.abs(cut * (ends - self.x)).sum())
        moved = float(np.linalg.norm(self.x - self.system.x0))
        return float(np.sqrt(gap)) / moved if moved > 0 else float(np.sqrt(gap))


class LeastSquares(Method):
    """The base class of methods that converge to a least-squares solution."""

    least_squares = True
    estimates = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.moves = Moves(self.iterate.x)
        self.frobenius = float(np.sqrt(system.sweeper.squares_sum))  # |A|

    @property
    def result(self) -> Array:
        """The sequence whose limit is the solution."""
        return self.iterate.x

    def end_epoch(self) -> None:
        self.moves.add(self.result)

    def measure(self) -> Measure:
        gap, back = self.system.sweeper.gap_and_back(self.system.b, self.x)
        missed = _norms(gap)
        damp, moved = self.system.damp, self.x - self.system.x0
        damped = np.hypot(missed, damp * _norms(moved))
        size = np.hypot(self.frobenius, damp * np.sqrt(len(moved))) or 1.0  # |A| and |r| with the rows of damping
        normals = _norms(back - damp**2 * moved) / (size * np.where(damped > 0, damped, 1.0))
        residuals = missed / self.sizes
        residual = float(np.max(residuals))
        left = np.inf if damp else residual
        # a small |b - A x| does not make x the ridge solution; an estimate of the error tells, and needs no more
        judged = residuals if self.estimates else damped / self.sizes
        each = (judged, normals, self.frobenius * (_norms(self.x) + _norms(self.system.x0)) / self.sizes)
        return Measure(residual, left, float(np.max(normals)), self.error(), each)

    def error(self) -> float | None:
        """The estimated distance to the limit, relative to |x|; None if there is no estimate."""
        return self.moves.error()

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), **self.moves.arrays()}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.moves.restore(arrays)


@register
class Multipliers(LeastSquares):
    """The method of multipliers by rows: converges to the least-squares solution nearest to x0, and reads only rows.

    The minimiser of |A x - b|^2 + s |x - c|^2 is x = c + A^T u with A x + s u = b, which row steps solve. A small s is
    slow, and a large one draws towards the centre c: so each epoch makes one sweep, and then moves the centre to x, or
    with damping to the mean of x and x0 with weights s - damp^2 and damp^2. At the limit A^T u = 0, or
    A^T u = damp^2 / s (x - x0). One sweep in random order is enough (Sun, Luo and Ye 2020, on random permutations in
    the method of multipliers). s is tuned on the way.
    """

    name = "multipliers"
    damps = True
    by_epoch = True
    streams = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        mean = float(system.sweeper.squares_sum / max(1, system.sweeper.shape[0]))
        self.iterate.duals = np.zeros(system.b.shape)
        self.iterate.shrink = max(mean, system.damp**2) or 1.0
        self.centre = self.iterate.x.copy()
        #: epochs of this trial of s, |move| when it began, the squared errors that this epoch has seen
        self.trial = [0.0, 0.0, 0.0]

    @property
    def x(self) -> Array:
        return self.moves.last

    @property
    def target(self) -> Array:
        return self.system.b - self.iterate.shrink * self.iterate.duals

    def sweep(self, visits: IntArray) -> Array:
        seen = self.system.sweeper.sweep(visits, self.system.b, self.iterate)
        self.trial[2] += float(np.sum(seen))
        return seen

    def end_epoch(self) -> None:
        before, move = self.x, self.iterate.x - self.centre  # move = A^T u
        super().end_epoch()
        self._recentre(move)
        self._steer(_norm(self.x - before))

    def _recentre(self, move: Array) -> None:
        """Move the centre to x, or with damping between x and x0, and keep A^T u."""
        pull = self.system.damp**2 / self.iterate.shrink
        self.centre = self.x + pull * (self.system.x0 - self.x)
        self.iterate.x = self.centre + move

    def _steer(self, move: float) -> None:
        """Double or halve s after a trial if u settles more slowly than the centre moves, or faster.

        The errors that a sweep sees, in units of a = |A| / sqrt(m), are 2 to 5 times the move of x while u settles, for
        any s (measured on matrices of condition up to 300), and less as soon as the centre is what is slow. u settles
        in about a^2 / s epochs: a trial is 3 times as long. Moves that grow a thousandfold say that s is too small for
        sweeps to settle: s is raised, and u begins anew.
        """
        epochs, start, seen = self.trial
        self.trial = [epochs + 1, start, 0.0]
        sweeper: Any = self.system.sweeper
        several = min(getattr(sweeper, "average", 1), sweeper.num_blocks)  # which makes every step shorter
        typical = self.frobenius / np.sqrt(sweeper.shape[0])
        if start > 0 and not move <= 1000 * start:
            self._rescale(8.0)
            self.iterate.duals[:], self.iterate.x = 0.0, self.centre.copy()
            self.trial = [0.0, 0.0, 0.0]
        elif epochs + 1 >= max(TRIAL, 3 * several * typical**2 / self.iterate.shrink) and move > 0:
            ratio = np.sqrt(seen) / (several * typical * move)
            raise_s = ratio > 3.5 and self.iterate.shrink < 16 * typical**2
            factor = self._rescale(2.0 if raise_s else 0.5 if ratio < 1.5 else 1.0)
            self.trial = [0.0, move / factor, 0.0]

    def _rescale(self, factor: float) -> float:
        """Multiply s by a factor, at least to damp^2, and keep the residual s u; the factor that was used."""
        iterate = self.iterate
        factor = max(factor, self.system.damp**2 / iterate.shrink)
        move = (iterate.x - self.centre) / factor
        iterate.shrink *= factor
        iterate.duals /= factor
        self.moves.sizes = [size / factor for size in self.moves.sizes]
        self._recentre(move)
        return factor

    def arrays(self) -> dict[str, Array]:
        numbers = np.array([self.iterate.shrink, *self.trial])
        return {**super().arrays(), "centre": self.centre, "numbers": numbers}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.centre = arrays["centre"].copy()
        self.iterate.shrink, *self.trial = arrays["numbers"].tolist()


@register
class Direct(LeastSquares):
    """The projection onto the solutions of all rows together, by a singular value decomposition, repeated to refine it.

    For systems that are small enough, and too ill-conditioned for row steps. Cost about 10 m n min(m, n) operations.
    """

    name = "direct"

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        dense = system.sweeper.dense()
        left, singular, right = np.linalg.svd(dense, full_matrices=False)
        kept = singular > max(dense.shape) * EPS * max(float(singular[0]), np.finfo(float).tiny)
        self.left, self.right = left[:, kept].T / singular[kept, None], right[kept].T

    def sweep(self, visits: IntArray) -> Array:
        gap = self.system.sweeper.slack(self.system.b, self.x)
        self.iterate.x = self.x + self.right @ (self.left @ gap)
        return np.atleast_1d(np.sum(gap * gap, axis=0))

    def error(self) -> float | None:
        """The size of the last refinement, relative to |x|; None before there was one."""
        return self.moves.sizes[-1] if len(self.moves.sizes) > 1 else None


@register
class Extended(LeastSquares):
    """Randomised extended Kaczmarz (Zouzias and Freris 2013): column steps take b onto the range of A; row steps.

    z starts at b and is projected onto the orthogonal complement of columns; x makes row steps for b - z. Rows and
    columns are read, so that a matrix in memory is needed, and a copy of its columns.
    """

    name = "extended"

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.columns = system.sweeper.columns()
        self.z = system.b.copy()
        self.visited = 0

    @property
    def target(self) -> Array:
        return self.system.b - self.z

    def sweep(self, visits: IntArray) -> Array:
        sweeper = self.system.sweeper
        count = self.columns.num_blocks
        picked = self._next_columns(-(-count * len(visits) // sweeper.num_blocks))
        self.columns.sweep(picked, np.zeros((count, *self.z.shape[1:])), Iterate(self.z))
        return sweeper.sweep(visits, self.target, self.iterate)

    def _next_columns(self, share: int) -> IntArray:
        """The next columns: each once before any has its second turn, in a new random order for every turn."""
        count, first = self.columns.num_blocks, self.visited
        self.visited += share
        turns = range(first // count, (self.visited - 1) // count + 1)
        orders = [np.random.default_rng([self.system.seed, turn]).permutation(count) for turn in turns]
        return np.concatenate(orders)[first % count :][:share].astype(np.int64)

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "z": self.z, "visited": np.array([self.visited])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.z, self.visited = arrays["z"].copy(), int(arrays["visited"][0])


@register
class Averaged(LeastSquares):
    """Tail averaging (Epperly, Goldshlager and Webber 2024): the average of the iterates of random row steps.

    Rows are drawn with probabilities proportional to |a_i|^2, for which the mean of the iterates is a least-squares
    solution. The average begins anew whenever the number of epochs doubles, so that it covers the last half.
    """

    name = "averaged"
    usual_order = NormWeighted
    damps = True
    estimates = False  # the moves of an average shrink faster than its error

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        #: steps are those of x - x0, so that the ridge rows draw towards x0
        self.shifted = system.sweeper.slack(system.b, system.x0)
        self.iterate.x -= system.x0
        self.total, self.count = np.zeros_like(self.iterate.x), 0
        self.epochs, self.begun = 0, 0  # epochs that are over, now and when the average began

    @property
    def result(self) -> Array:
        return self.system.x0 + (self.total / self.count if self.count else self.iterate.x)

    @property
    def x(self) -> Array:
        return self.result

    @property
    def target(self) -> Array:
        return self.shifted

    def sweep(self, visits: IntArray) -> Array:
        sweeper = self.system.sweeper
        seen = np.zeros(1 if self.iterate.x.ndim == 1 else self.iterate.x.shape[1])
        size = max(1, sweeper.shape[1] // 4)  # iterates that are fewer steps apart hardly differ
        order = self._with_ridge(visits) if self.system.damp else visits
        if self.epochs & (self.epochs - 1) == 0 and self.epochs > self.begun:
            self.total, self.count, self.begun = np.zeros_like(self.total), 0, self.epochs
        for start in range(0, len(order), size):
            seen += sweeper.sweep(order[start : start + size], self.shifted, self.iterate)
            self.total += self.iterate.x
            self.count += 1
        return seen

    def _with_ridge(self, visits: IntArray) -> IntArray:
        """The visits with steps of the rows damp e_j among them, as often as their norms ask; -1 - j is row j."""
        n = self.system.sweeper.shape[1]
        ridge, rows = n * self.system.damp**2, self.system.sweeper.squares_sum
        if rows == 0:
            return visits
        rng = np.random.default_rng([self.system.seed, self.epochs, self.count])
        many = rng.geometric(rows / (rows + ridge), len(visits)) - 1  # steps of ridge rows before each visit
        places = np.repeat(np.arange(len(visits)), many)
        return np.insert(visits, places, -1 - rng.integers(n, size=len(places)))

    def end_epoch(self) -> None:
        self.epochs += 1
        super().end_epoch()

    def error(self) -> None:
        """No estimate."""
        return None

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "total": self.total, "counts": np.array([self.count, self.epochs, self.begun])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.total = arrays["total"].copy()
        self.count, self.epochs, self.begun = (int(number) for number in arrays["counts"])
