"""Methods that converge to a least-squares solution: multipliers, direct, extended and averaged."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.orderings import NormWeighted
from forgetting.solver.methods.base import Accuracy, Distance, Method, Moves, System, norm, norms, register, registry
from forgetting.solver.sweepers import Iterate

VAGUE = 1e-3  # relative rounding error above which a bound by damping says nothing, and is not waited for
TRIAL = 8  # epochs, at least, before the damping changes


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

    def measure(self) -> Accuracy:
        gap, back = self.system.sweeper.gap_and_back(self.system.b, self.x)
        self.last_gap, missed = gap, norms(gap)
        damp, moved = self.system.damp, self.x - self.system.x0
        damped = np.hypot(missed, damp * norms(moved))
        size = np.hypot(self.frobenius, damp * np.sqrt(len(moved))) or 1.0  # |A| and |r| with the rows of damping
        normals = norms(back - damp**2 * moved) / (size * np.where(damped > 0, damped, 1.0))
        residuals = missed / self.sizes
        residual = float(np.max(residuals))
        left = np.inf if damp else residual
        # a small |b - A x| does not make x the ridge solution; an estimate of the error tells, and needs no more
        judged = residuals if self.estimates else damped / self.sizes
        each = (judged, normals, self.frobenius * (norms(self.x) + norms(self.system.x0)) / self.sizes)
        return Accuracy(residual, left, float(np.max(normals)), self.error(), each)

    def error(self) -> float | None:
        """The estimated distance to the limit, relative to |x|; None if there is no estimate."""
        return self.moves.error()

    def distance(self, *, decompose: bool = True) -> Distance | None:
        """The distance of x from the solution, by a decomposition of a small matrix or by the damping; None if unknown.

        With damping, the gradient g of |A x - b|^2 / 2 + damp^2 |x - x0|^2 / 2 has |x - x*| <= |g| / damp^2. Moves of
        x, in contrast, do not see directions in which A is nearly 0, as beside rows that are much larger than others.
        Without `decompose`, a decomposition counts that was computed before.
        """
        system, moved = self.system, self.x - self.system.x0
        small = system.small and (decompose or "decomposition" in vars(system))
        if not small and not system.damp:
            return None
        gap = system.sweeper.slack(system.b, self.x)
        sizes = norms(system.b) + self.frobenius * norms(self.x)
        if small:
            decomposition = system.decomposition
            step = decomposition.correction(gap, moved)
            off, rounding, length = norms(step), decomposition.rounding(sizes, norms(gap)), norms(self.x + step)
        else:
            off = norms(system.sweeper.back(gap) - system.damp**2 * moved) / system.damp**2
            rounding = EPS * self.frobenius * sizes / system.damp**2
            length = np.maximum(norms(self.x) - off, 0.0)
        nothing = 64 * EPS * (norms(system.b) / (self.frobenius or 1.0) + norms(system.x0))  # all but the solution 0
        zero = off + length <= nothing
        with np.errstate(all="ignore"):
            errors, floors = (np.where(zero, 0.0, each / length) for each in (off + rounding, rounding))
        error, floor = float(np.max(errors)), float(np.max(floors))
        return None if floor > VAGUE and not small else Distance(error, floor)

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
        self._steer(norm(self.x - before))

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
        sweeper = self.system.sweeper
        several = min(sweeper.average, sweeper.num_blocks)  # which makes every step shorter
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


class DirectMethod(LeastSquares):
    """The projection onto the solutions of all rows together, by a singular value decomposition, repeated to refine it.

    For systems that are small enough, and too ill-conditioned for row steps. Cost about 10 m n min(m, n) operations.
    """

    name = "direct"
    damps = True

    def sweep(self, visits: IntArray) -> Array:
        gap = self.system.sweeper.slack(self.system.b, self.x)
        self.iterate.x = self.x + self.system.decomposition.correction(gap, self.x - self.system.x0)
        return np.atleast_1d(np.sum(gap * gap, axis=0))

    def error(self) -> float | None:
        """The size of the last refinement, relative to |x|; None before there was one."""
        return self.moves.sizes[-1] if len(self.moves.sizes) > 1 else None


registry.add(DirectMethod.name, DirectMethod)  # its name is shorter than that of the class


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
        unit = self.system.sweeper.unit  # rows that one visit takes together
        ridge, rows = unit * n * self.system.damp**2, self.system.sweeper.squares_sum
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
        """None: the moves of an average say nothing about its error."""
        return None

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), "total": self.total, "counts": np.array([self.count, self.epochs, self.begun])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.total = arrays["total"].copy()
        self.count, self.epochs, self.begun = (int(number) for number in arrays["counts"])
