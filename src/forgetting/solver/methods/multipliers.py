"""The method of multipliers by rows: least squares and ridge, reading rows only."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.solver.methods.base import LeastSquares, System, norm, register

__all__ = ["Multipliers"]


TRIAL = 8  # epochs, at least, before the damping changes


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
