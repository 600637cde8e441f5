"""Conjugate gradients: on the normal equations (CGLS), and on sweeps over the rows forth and back (CGMN)."""

from __future__ import annotations

import numpy as np

from forgetting.core.arrays import Array, IntArray
from forgetting.core.numerical import EPS
from forgetting.orderings import Cyclic
from forgetting.solver.methods.base import Accuracy, Method, System, norms, register
from forgetting.solver.methods.least_squares import LeastSquares
from forgetting.solver.sweepers import InMemory, Iterate

LOST_DIGITS = 4 * EPS
RENEWED = 40  # iterations after which the residual is computed anew, against rounding errors


class _Directions:
    """Directions of conjugate gradients: H p = g is solved for the sum of all steps, each right-hand side by itself."""

    def __init__(self, like: Array) -> None:
        self.gradient, self.direction = np.zeros_like(like), np.zeros_like(like)
        self.squares = np.zeros(1 if like.ndim == 1 else like.shape[1])
        self.begun = False

    def begin(self, gradient: Array) -> None:
        """Begin with the direction of steepest descent."""
        self.gradient, self.direction, self.begun = gradient, gradient.copy(), True
        self.squares = np.atleast_1d(np.sum(gradient * gradient, axis=0))

    def advance(self, bent: Array, bends: Array, floors: Array) -> Array:
        """The step lengths for H p and p.H p; the gradient follows.

        Gradients below `floors` are rounding errors, also in directions in which H is 0: they are not followed.
        """
        moves = (bends > 0) & (self.squares > floors**2)
        lengths = np.divide(self.squares, bends, out=np.zeros_like(bends), where=moves)
        self.gradient = self.gradient - lengths * bent
        return lengths

    def turn(self) -> None:
        """The next direction, by the squares of the gradient before and now."""
        after = np.atleast_1d(np.sum(self.gradient * self.gradient, axis=0))
        shares = np.divide(after, self.squares, out=np.zeros_like(after), where=self.squares > 0)
        self.squares = after
        self.direction = self.gradient + shares * self.direction

    def arrays(self) -> dict[str, Array]:
        numbers = np.array([float(self.begun)])
        return {"gradient": self.gradient, "direction": self.direction, "squares": self.squares, "numbers": numbers}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.gradient, self.direction, self.squares = (
            arrays[name].copy() for name in ("gradient", "direction", "squares")
        )
        self.begun = bool(arrays["numbers"][0])


@register
class Cgls(LeastSquares):
    """Conjugate gradients on A^T A x = A^T b (Hestenes and Stiefel 1952): what lsqr does, one read of A an iteration.

    Converges to the least-squares or ridge solution nearest to x0. A x and A^T A x are computed together, so that an
    iteration costs one pass over the rows, as an epoch of row steps does.
    """

    name = "cgls"
    damps = True
    by_epoch = True
    streams = True
    usual_order = Cyclic
    tells = True

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.slack = system.b.copy()
        self.directions = _Directions(self.iterate.x)
        self.lengths = norms(system.b)
        self.count = 0

    def _fresh(self) -> Array:
        """The gradient, computed from x; with it the residual."""
        sweeper, x = self.system.sweeper, self.iterate.x
        self.slack, back = sweeper.gap_and_back(self.system.b, x)
        return back - self.system.damp**2 * (x - self.system.x0)

    def sweep(self, visits: IntArray) -> Array:
        """The squared residual that is known, in the share of these visits: x moves at the ends of epochs only."""
        if not self.directions.begun:
            self.directions.begin(self._fresh())
        share = self.system.sweeper.rows_in(visits) / len(self.slack)
        return share * np.atleast_1d(np.sum(self.slack * self.slack, axis=0))

    def end_epoch(self) -> None:
        directions, damp = self.directions, self.system.damp
        direction = directions.direction
        along, bent = self.system.sweeper.normal(direction)
        bends = np.atleast_1d(np.sum(along * along, axis=0))
        if damp:
            bent = bent + damp**2 * direction
            bends = bends + damp**2 * np.atleast_1d(np.sum(direction * direction, axis=0))
        sizes = self.lengths + self.frobenius * norms(self.iterate.x)
        lengths = directions.advance(bent, bends, LOST_DIGITS * self.frobenius * sizes)
        self.iterate.x = self.iterate.x + lengths * direction
        self.slack = self.slack - lengths * along
        self.count += 1
        if self.count % RENEWED == 0:
            directions.gradient = self._fresh()
        directions.turn()
        super().end_epoch()

    def error(self) -> float | None:
        """By the moves, and only where the gradient is small as well."""
        error = super().error()
        if error is None:
            return None
        sizes = (self.frobenius or 1.0) * np.maximum(norms(self.slack), 1e-8 * self.sizes)
        return max(error, float(np.max(np.sqrt(self.directions.squares) / sizes)))

    def arrays(self) -> dict[str, Array]:
        kept = {"slack": self.slack, "count": np.array([self.count])}
        return {**super().arrays(), **self.directions.arrays(), **kept}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.directions.restore(arrays)
        self.slack, self.count = arrays["slack"].copy(), int(arrays["count"][0])


@register
class Cgmn(Method):
    """Conjugate gradients on sweeps forth and back over the rows (Bjoerck and Elfving 1979): CGMN.

    A sweep over all rows and another one back maps the error e of x to Q e with a symmetric Q, so that
    (I - Q) (x* - x) is the move of a double sweep from x, and conjugate gradients find x* with about the root of the
    number of double sweeps. Converges to the solution nearest to x0. An iteration makes the steps of two epochs, and
    needs a matrix in memory.
    """

    name = "cgmn"
    by_epoch = True
    passes = 2
    window = 16  # residuals of conjugate gradients also rise
    usual_order = Cyclic

    def __init__(self, system: System, x: Array | None = None) -> None:
        super().__init__(system, x)
        self.directions = _Directions(self.iterate.x)
        self.ratio = 1.0  # of the residual to the root of the squared moves
        count = system.sweeper.num_blocks
        self.order: IntArray = np.random.default_rng([system.seed, 1]).permutation(count).astype(np.int64)

    @property
    def _sweeper(self) -> InMemory:
        sweeper = self.system.sweeper
        assert isinstance(sweeper, InMemory)
        return sweeper

    def _double(self, b: Array, x: Array) -> Array:
        """The point after a sweep from x forth and another one back."""
        iterate = Iterate(x.copy())
        self._sweeper.sweep(self.order, b, iterate)
        self._sweeper.sweep_back(self.order, b, iterate)
        return iterate.x

    def sweep(self, visits: IntArray) -> Array:
        """The estimated squared residual, in the share of these visits: x moves at the ends of epochs only."""
        if not self.directions.begun:
            self.directions.begin(self._double(self.system.b, self.iterate.x) - self.iterate.x)
            self.measure()
        share = self._sweeper.rows_in(visits) / len(self.system.b)
        return share * self.ratio**2 * self.directions.squares

    def end_epoch(self) -> None:
        direction = self.directions.direction
        bent = direction - self._double(np.zeros_like(self.system.b), direction)
        bends = np.atleast_1d(np.sum(direction * bent, axis=0))
        sizes = norms(self.iterate.x) + norms(self.system.x0)
        lengths = self.directions.advance(bent, bends, LOST_DIGITS * sizes)
        self.iterate.x = self.iterate.x + lengths * direction
        self.directions.turn()

    def measure(self) -> Accuracy:
        measured = super().measure()
        sizes = np.sqrt(self.directions.squares)
        if self.directions.begun and (sizes > 0).all():
            self.ratio = float(np.max(norms(self.last_gap) / sizes))
        return measured

    def arrays(self) -> dict[str, Array]:
        return {**super().arrays(), **self.directions.arrays(), "ratio": np.array([self.ratio])}

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.directions.restore(arrays)
        self.ratio = float(arrays["ratio"][0])
