"""The result of `fg.solve`: x, a sentence on the end of the solve, and the history of the residual."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from forgetting.core.arrays import Array, IntArray
from forgetting.errors import InvalidInputError
from forgetting.figures.items import Curves, Series
from forgetting.files.records import add_codec, dataclass_codec
from forgetting.results import Result
from forgetting.solver.guarantee import Guarantee

__all__ = ["History", "Solution", "SolveState"]


@dataclass(frozen=True, eq=False)
class History:
    """The residuals of a solve: one entry for each epoch, or for several parts of an epoch of a tall matrix.

    Attributes:
        epoch: rows touched, divided by the number of rows.
        residual: the largest |b - A x| / |b| over right-hand sides: computed where `checked`, elsewhere estimated by
            the errors that rows had when they were visited; NaN there for least-squares methods, whose rows have other
            errors.
        seconds: time since the start; of all runs together if a checkpoint was resumed.
        checked: whether the residual was computed, by a pass over the matrix; always where a rule stops at the noise.
    """

    epoch: Array
    residual: Array
    seconds: Array
    checked: NDArray[np.bool_]

    def __post_init__(self) -> None:
        shapes = {array.shape for array in (self.epoch, self.residual, self.seconds, self.checked)}
        if len(shapes) != 1 or self.epoch.ndim != 1:
            raise InvalidInputError(f"the columns of a history have different shapes: {sorted(shapes)}")

    def __len__(self) -> int:
        return len(self.epoch)


class SolveState(NamedTuple):
    """The state of a solve, which a callback with a parameter named `state` gets.

    Attributes:
        x: the current x; with `noise`, also of right-hand sides that were stopped.
        epoch: rows touched, divided by the number of rows.
        residual: the largest |b - A x| / |b| over right-hand sides, computed from x.
        elapsed: seconds since the start.
    """

    x: Array
    epoch: float
    residual: float
    elapsed: float


@dataclass(frozen=True, eq=False, repr=False)
class Solution(Result):
    """The result of `fg.solve`.

    Attributes:
        x: n numbers, or n x c for c right-hand sides; complex if A, b or x0 is.
        converged: whether x is what was asked for, to the tolerance. An inconsistent system never converges, unless a
            least-squares method was asked for.
        status: how the solve ended, in a sentence.
        residual: the largest |b - A x| / |b| over right-hand sides, computed from x; of violated parts only where rows
            are inequalities.
        consistent: whether some x solves the system; None if that was not decided. False says that no x up to a length
            does, which is at least 99 (|x| + |x0|) and stands in the status.
        normal: the largest |A^T r| / (|A| |r|), which is 0 at a least-squares solution; None if it was not computed.
            Over bounds, inequalities and sets the KKT residual: the same for the gradient less multipliers, what rows
            miss relative to |b|, or the distance to a set relative to |x|, whatever is largest.
        error: the largest relative distance of x to the least-squares or ridge solution over right-hand sides, rounding
            errors included: by a decomposition of A, or with damp at most |gradient| / damp^2. None if it is not known:
            where the residual ended the solve, and for large matrices without damp, of which only the moves of x are
            known. They do not show directions in which A is nearly 0.
        history: epoch, residual, seconds and checked, as arrays.
        guarantee: what theorems promise before the start: `str(guarantee)` is a sentence, which says why if no theorem
            applies; see `Guarantee`.
        method: the name of the method; with "kaczmarz, then direct" (or another one) the residual of the first one no
            longer fell.
        ordering: in which order blocks were visited, in words.
        blocks: what a block is, in words.
        rows: the number of row steps.
        epochs: row steps divided by the number of rows.
        seconds: wall-clock time.
        tol: the tolerance.
        seed: the seed of the random numbers.
        rule: the rule that was asked to stop at the noise: "discrepancy", "ncp" or "monotone"; None without one.
        stop_epochs: the epoch at which it stopped each right-hand side, whose x is that of this epoch; NaN where it did
            not.
    """

    kind: ClassVar[str] = "solution"
    _along: ClassVar[bool] = True

    x: Array | NDArray[np.complex128]
    converged: bool
    status: str
    residual: float
    consistent: bool | None
    normal: float | None
    error: float | None
    history: History
    guarantee: Guarantee
    method: str
    ordering: str
    blocks: str
    rows: int
    epochs: float
    seconds: float
    tol: float
    seed: int
    rule: str | None = None
    stop_epochs: Array = field(default_factory=lambda: np.empty(0))

    @property
    def headline(self) -> str:
        """The solution in one line."""
        return f"Solution of {' x '.join(map(str, self.x.shape))} numbers by {self.method}: {self.status}"

    def _num_rows(self) -> int:
        return len(self.history)

    def _columns(self, rows: IntArray, *, full: bool) -> dict[str, Any]:
        names = ("epoch", "residual", "seconds", "checked")
        return {name: getattr(self.history, name)[rows].tolist() for name in names}

    def _remarks(self) -> tuple[str, ...]:
        return (f"{self.ordering}; {self.blocks}",)  # not the guarantee, which takes half a second to import

    def figure(self) -> Curves:
        """The relative residual against epochs, and the tolerance, unless a rule stopped at the noise."""
        history = self.history
        epochs = tuple(history.epoch.tolist())
        name = "relative residual" + ("" if history.checked.all() else ", partly estimated")
        curves: tuple[Series, ...] = (
            Series(name, epochs, tuple(history.residual.tolist()), role="simulated", group=0),
        )
        if self.rule is None:
            curves += (Series("tolerance", epochs, (self.tol,) * len(epochs), role="reference", group=1),)
        return Curves(
            "residual", f"Residual by {self.method}", self.headline, "epochs", "|b - A x| / |b|", curves, xlog=False
        )


add_codec(dataclass_codec(History, "history"))
